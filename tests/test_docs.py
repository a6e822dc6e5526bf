"""The pages that are made from the code say what the code says."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_of_metrics_is_up_to_date() -> None:
    """docs/metrics.md is what the catalog makes of it."""
    command = [sys.executable, "tools/make_metric_docs.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_ensembles_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The code of docs/ensembles.md, from images to the posterior, holds what the page says."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    page = (ROOT / "docs" / "ensembles.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    held: dict[str, Any] = {"__name__": "ensembles_page"}
    for block in blocks:
        exec(compile(block, "docs/ensembles.md", "exec"), held)
    assert "robust_ece_mixture" in held["found"].models["draws"]
    assert len(held["ranked"]) == 5
    assert "temperature + alpha" in capsys.readouterr().out

"""The pages that are made from the code say what the code says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_of_metrics_is_up_to_date() -> None:
    """docs/metrics.md is what the catalog makes of it."""
    command = [sys.executable, "tools/make_metric_docs.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

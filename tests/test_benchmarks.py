"""The benchmarks start processes of their own, wherever the repository lies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_speed_starts_a_python_whose_path_has_a_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter is one argument, not words to be split; what it runs is timed and checked."""
    pytest.importorskip("torch")
    from benchmarks import speed

    (tmp_path / "my clone").mkdir()
    python = tmp_path / "my clone" / "python"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    assert 0 < speed.seconds("import time; time.sleep(0.01)", turns=1) < 60
    with pytest.raises(subprocess.CalledProcessError):
        speed.seconds("raise SystemExit(1)", turns=1)


def test_an_unknown_benchmark_is_named() -> None:
    """`make bench ARGS=spede` says which there are not, and measures nothing."""
    command = [sys.executable, "benchmarks", "spede"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no benchmark is called spede" in done.stderr

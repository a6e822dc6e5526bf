"""The benchmarks start processes of their own, wherever the repository lies."""

from __future__ import annotations

import json
import lzma
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


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """What is in the file is not simulated again; other settings and half a line do not count."""
    from benchmarks.resumed import finished

    made: list[str] = []

    def simulate(name: str) -> dict[str, int]:
        made.append(name)
        return {"covered": len(name)}

    out = tmp_path / "rows.jsonl"
    list(finished(out, {"seed": 1}, ["a"], simulate))
    out.write_text(out.read_text() + '{"design": "bb", "sett\n')
    found = list(finished(out, {"seed": 1}, ["a", "bb"], simulate))
    assert made == ["a", "bb"] and [record["covered"] for record in found] == [1, 2]
    list(finished(out, {"seed": 2}, ["a"], simulate))
    assert made == ["a", "bb", "a"]


def test_every_figure_is_drawn_once_and_told(tmp_path: Path) -> None:
    """A second run finds everything drawn, and the table counts what the verdicts said."""
    command = [
        sys.executable, "benchmarks/every_figure.py", "--workers", "1", "--out", str(tmp_path),
        "--seed", "3", "--sets", "3", "--parts", "verdict", "--designs", "n50-k2-r1-plain-*",
    ]  # fmt: skip
    runs = [
        subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=True)
        for more in ([], ["--seconds", "60"], ["--report"])
    ]
    assert "drew 4 of 4 portions" in runs[0].stderr
    assert "drew 0 of 0 portions" in runs[1].stderr
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    called = {line["design"]: sum(row["called"] for row in line["rows"]) for line in lines}
    assert called["n50-k2-r1-plain-overconfident-annotation"] > 0
    for model in ("calibrated", "overconfident"):
        share = 100 * called[f"n50-k2-r1-plain-{model}-annotation"] / 3
        assert f"| {model} | plain | 50 | {share:.1f} | –" in runs[2].stdout
    assert lzma.decompress((tmp_path / "rows.jsonl.xz").read_bytes()).count(b"\n") == 4

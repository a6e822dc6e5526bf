"""The benchmarks start processes of their own, wherever the repository lies."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def test_a_measurement_is_of_what_is_called() -> None:
    """A child tells the value of the cases, by hand the same; what breaks it is told."""
    from benchmarks import growth

    p, y = growth.cases(1000)
    place = np.minimum((p * 15).astype(int), 14)
    by_hand = sum(abs((y - p.astype(float))[place == b].sum()) for b in range(15)) / 1000
    found = growth.in_a_process("raterwise", 1000)
    assert found["value"] == pytest.approx(by_hand) and found["seconds"] > 0
    assert growth.in_a_process("nobody", 1000)["stopped"].startswith("error: KeyError")


def test_sizes_beyond_a_limit_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a stop, or where ten times the last time is too long; the quicker turn counts."""
    from benchmarks import growth

    times = {"NumPy": 1.0, "raterwise": 20.0, "netcal": None}
    called: list[tuple[str, int]] = []

    def pretend(name: str, number: int) -> dict[str, object]:
        called.append((name, number))
        took = times[name]
        return {"stopped": "more than 8 GB"} if took is None else {"seconds": took, "value": 0.1}

    monkeypatch.setattr(growth, "in_a_process", pretend)
    monkeypatch.setattr(growth, "installed", lambda: iter(times))
    monkeypatch.setattr(growth, "SIZES", (10**6, 10**7))
    monkeypatch.setattr(type(growth.PEERS["netcal"]), "version", "1.0")
    growth.run(tmp_path / "g.jsonl", 60, 1)
    assert called == [("NumPy", 10**6), ("raterwise", 10**6), ("netcal", 10**6), ("NumPy", 10**7)]
    times["NumPy"] = 0.5
    growth.run(tmp_path / "g.jsonl", 60, 2)
    found = growth.rows(tmp_path / "g.jsonl")
    assert found["NumPy"][10**7]["seconds"] == 0.5
    assert found["raterwise"][10**7]["stopped"].startswith("not tried: more than 60 s")


def test_the_truth_of_the_accuracy_is_an_integral() -> None:
    """E|g(c) - c| by adaptive quadrature over x, cut at 0, where |x| has its corner."""
    from scipy.integrate import quad
    from scipy.stats import norm

    from benchmarks import accuracy

    def off(x: float) -> float:
        c = 1 / (1 + np.exp(-abs(x)))
        return float(abs(0.8 + 0.5 * (c - 0.8) - c) * norm.pdf(x, 2, 2))

    by_hand = sum(quad(off, *ends, limit=200)[0] for ends in ((-20, 0), (0, 3), (3, 25)))
    assert accuracy.truths("too sure and too unsure")[0] == pytest.approx(by_hand, abs=1e-6)
    assert accuracy.truths("calibrated") == (0, 0)

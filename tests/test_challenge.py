"""The challenge in examples/: its script scores the sample, and tells a team what is wrong."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import raterwise as rw

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "challenge"
Rows = list[list[str]]


def run(given: Path, out: Path) -> tuple[int, dict[str, Any]]:
    """Score a submission in a process of its own, as the container does."""
    script = EXAMPLE / "score.py"
    command = [sys.executable, str(script), str(given), str(EXAMPLE / "truth"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads((out / "metrics.json").read_text(encoding="utf-8"))


def rows_of(name: str) -> Rows:
    """Return the lines of a table of the example."""
    with (EXAMPLE / name).open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def test_the_sample_is_scored(tmp_path: Path) -> None:
    """The Brier score is that of the definition: the mean over the labels, counted by hand."""
    code, content = run(EXAMPLE / "submission", tmp_path)
    assert code == 0, content
    classes = ("benign", "uncertain", "malignant")
    probs = {
        case: [float(p) for p in row] for case, *row in rows_of("submission/predictions.csv")[1:]
    }
    labels = rows_of("truth/ratings.csv")[1:]
    losses = [
        sum((p - (name == said)) ** 2 for p, name in zip(probs[case], classes, strict=True))
        for case, _, said in labels
    ]
    assert content["score"] == pytest.approx(sum(losses) / len(losses), abs=1e-12)
    assert content["metrics"]["brier"]["low"] < content["score"]
    patients = {patient for _, patient in rows_of("truth/cases.csv")[1:]}
    assert (content["cases"], content["patients"]) == (len(probs), len(patients))
    assert rw.Results.from_json(tmp_path / "results.json")["brier"].value == content["score"]


def without_a_case(rows: Rows) -> Rows:
    """Leave a case out."""
    return [row for row in rows if row[0] != "c07"]


def not_a_distribution(rows: Rows) -> Rows:
    """Make the probabilities of a case sum to more than 1."""
    return [[row[0], "0.9", "0.9", "0.9"] if row[0] == "c07" else row for row in rows]


def another_class(rows: Rows) -> Rows:
    """Call a class something else."""
    return [[cell.replace("uncertain", "unsure") for cell in row] for row in rows]


def nothing(rows: Rows) -> Rows:
    """Hand in the first line alone."""
    return rows[:1]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_a_case, "c07"),
        (not_a_distribution, "sum"),
        (another_class, "prob_uncertain"),
        (nothing, "columns"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_team_is_told_what_is_wrong(
    damage: Callable[[Rows], Rows], message: str, tmp_path: Path
) -> None:
    """Exit code 2, and a metrics.json with the reason in place of a score."""
    given = tmp_path / "input"
    given.mkdir()
    with (given / "predictions.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(damage(rows_of("submission/predictions.csv")))
    code, content = run(given, tmp_path / "output")
    assert (code, list(content)) == (2, ["error"])
    assert message in content["error"]


def test_an_empty_folder_is_no_submission(tmp_path: Path) -> None:
    """The missing file is named."""
    code, content = run(tmp_path, tmp_path / "output")
    assert code == 2 and "predictions.csv" in content["error"]


def test_the_container_copies_what_is_there() -> None:
    """The Dockerfile builds on the one of the repository and copies the script."""
    lines = (EXAMPLE / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [line.split()[1] for line in lines if line.startswith("COPY")]
    assert copied == ["score.py"] and all((EXAMPLE / name).is_file() for name in copied)

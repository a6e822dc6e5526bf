"""Score a submission to a challenge against the hidden ratings, into metrics.json.

    python score.py INPUT TRUTH OUTPUT

INPUT/predictions.csv has a column `case` and one per class, `prob_…`; TRUTH/cases.csv says which
patient each case is of, and TRUTH/ratings.csv who said what. OUTPUT/metrics.json is for the leader
board, and OUTPUT/results.json for `raterwise compare`, which says whether teams can be told apart.
A submission that cannot be used gives metrics.json with the reason, and exit code 2.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import raterwise as rw

CLASSES = ("benign", "uncertain", "malignant")
# A proper score ranks the teams: it is best for those who say what they believe. Others explain.
RANKED_BY = "brier"
METRICS = (RANKED_BY, "calibration_error", "epistemic_loss", "accuracy")


def table_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8-sig") as stream:
        return list(csv.DictReader(stream))


def scored(submission: Path, truth: Path) -> rw.Results:
    """Evaluate a submission with every rater's label, resampling whole patients."""
    if not submission.is_file():
        raise rw.InvalidInputError(f"predictions: must be a file {submission.name}; there is none")
    patients = {row["case"]: row["patient"] for row in table_of(truth / "cases.csv")}
    wanted = ["case", *(f"prob_{name}" for name in CLASSES)]
    rows = table_of(submission)
    missing = [name for name in wanted if not rows or name not in rows[0]]
    if missing:
        raise rw.InvalidInputError(f"predictions: must have columns {wanted}; no {missing}")
    with tempfile.TemporaryDirectory() as folder:
        # Patients are ours to say, whatever else the team's table holds.
        joined = Path(folder) / "predictions.csv"
        with joined.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow([*wanted, "patient"])
            for row in rows:
                writer.writerow([*(row[name] for name in wanted), patients.get(row["case"], "")])
        cases = rw.read_cases(joined, ratings=truth / "ratings.csv", group_column="patient")
    return rw.evaluate(cases, metrics=METRICS, resamples=1000, seed=0)


def metrics_of(results: rw.Results) -> dict[str, Any]:
    """Return what a leader board shows."""
    shown = {
        name: {"value": found.value, "low": found.low, "high": found.high}
        for name, found in results.items()
    }
    return {
        "ranked_by": RANKED_BY,
        "score": results[RANKED_BY].value,
        "metrics": shown,
        "verdict": results.data["verdict"]["sentence"],
        "cases": results.data["cases"],
        "patients": results.data["patients"],
        "warnings": list(results.warnings),
        "raterwise": rw.__version__,
    }


def main(words: list[str]) -> int:
    """Score, write and say what happened."""
    if len(words) != 3:
        sys.stderr.write("usage: python score.py INPUT TRUTH OUTPUT\n")
        return 2
    given, truth, output = map(Path, words)
    output.mkdir(parents=True, exist_ok=True)
    code = 0
    try:
        results = scored(given / "predictions.csv", truth)
        results.to_json(output / "results.json")
        content = metrics_of(results)
    except rw.RaterwiseError as error:
        sys.stderr.write(f"{error}\n")
        content, code = {"error": str(error)}, 2
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (output / "metrics.json").write_text(text + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

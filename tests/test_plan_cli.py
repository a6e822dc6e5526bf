"""`raterwise plan` on a pilot whose plan can be worked out by hand.

Every case has the probabilities 3/4 and 1/4 and one rater for each class, so the Brier losses of
its raters are 1/16 and 9/16: their variance within a case is 1/8, between cases nothing is left,
and the variance of the mean loss 5/16 of N cases with n raters is 1/8 / (n N). Its interval is that
of `evaluate`, Fay and Feuer's, with Student's t of N - 1 degrees of freedom.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.cli import app
from raterwise.planning import plan


def width(cases: int, raters: int) -> float:
    """Return the width by hand: gamma quantiles, the upper one with one more event."""
    expansion = stats.t.ppf(0.975, cases - 1) / stats.norm.ppf(0.975)
    mean, variance = 5 / 16, 1 / 8 / (raters * cases) * expansion**2
    more = variance / mean
    above, spread = mean + more, variance + more**2
    low = stats.gamma.ppf(0.025, mean**2 / variance, scale=variance / mean)
    return float(stats.gamma.ppf(0.975, above**2 / spread, scale=spread / above) - low)


@pytest.fixture(name="folder")
def folder_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the pilot into an empty working folder."""
    lines = [f"n{i},p{i // 2},0.75,0.25,1,1,2" for i in range(40)]
    head = "case,patient,prob_a,prob_b,count_a,count_b,importance"
    (tmp_path / "pilot.csv").write_text("\n".join((head, *lines)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> Result:
    """Run the command line within this process."""
    return CliRunner().invoke(app, shlex.split(command))


def planned(options: str) -> dict[str, Any]:
    """Run `raterwise plan` quietly and return its JSON."""
    result = run(f"plan {options} --count-prefix count_ --quiet --out plan.json")
    assert result.exit_code == 0, result.output
    assert result.output == ""
    content: dict[str, Any] = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    return content


def test_widths_by_hand(folder: Path) -> None:
    """Four designs of the Brier score, by the formula of the docstring above."""
    found = planned("brier pilot.csv --cases 100,400 --raters 1,2 --csv plan.csv")
    for row in found["designs"]:
        assert row["width"] == pytest.approx(width(row["cases"], row["raters"]))
        assert row["bias"] == 0 and row["method"] == "formula"
        assert row["cost"] == row["readings"] == row["cases"] * row["raters"]
    assert found["metric"] == "brier" and found["level"] == 0.95 and found["advice"] is None
    with open("plan.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["width"]) for row in rows] == [row["width"] for row in found["designs"]]


def test_the_metric_may_be_told_as_everywhere(folder: Path) -> None:
    """`plan FILE --metrics brier` is `plan brier FILE`; the file has the names of all results."""
    told = "--cases 100 --raters 2 --seed 3 --per case --option brier.scale_by_half=true"
    first, second = planned(f"brier pilot.csv {told}"), planned(f"pilot.csv --metrics brier {told}")
    assert first.pop("provenance")["call"] != second.pop("provenance")["call"]
    assert first == second
    assert second["metrics"] == {"brier": second["designs"]}
    assert second["data"]["cases"] == 40 and second["data"]["classes"] == 2
    assert second["data"]["ratings"] == 80 and second["data"]["dropped"] == {}
    asked = {"per": "case", "question": None, "seed": 3, "options": second["options"]["options"]}
    assert asked.items() <= second["options"].items()
    assert second["options"]["options"] == {"brier": {"scale_by_half": True}}


def test_the_best_design_by_hand(folder: Path) -> None:
    """At 300 a case costs 2 and a reading 1: 100 cases with 1 rater, or 75 with 2: the latter."""
    options = "brier pilot.csv --cases 50,75,100 --raters 1,2 --budget 300 --case-cost 2"
    found = planned(options)
    best = [row for row in found["designs"] if row["best"]]
    assert [(row["cases"], row["raters"], row["cost"]) for row in best] == [(75, 2, 300)]
    assert "better spent on another rater of the same case than on a new case" in found["advice"]
    shown = run(f"plan {options} --count-prefix count_").stdout
    told = f"{width(75, 2):.4f}"
    assert f"75 cases with 2 raters each: expected interval width {width(75, 2):.3g}." in shown
    assert re.search(rf"75 +2 +150 +300 +{told} +0\.0000 +formula ← best within the budget", shown)
    dear = planned(options.replace("--case-cost 2", "--reading-cost 3"))
    assert [row["cost"] for row in dear["designs"]][:2] == [150, 300]


def test_simulation_is_that_of_the_library(folder: Path) -> None:
    """A metric without a formula: the numbers of `planning.plan`, with standard errors shown."""
    random = np.random.default_rng(0)
    p = random.beta(2, 2, 40)
    counts = random.multinomial(3, np.column_stack((1 - p, p)))
    lines = [
        f"n{i},p{i // 2},{float(q)!r},{a},{b},{1 + i % 3}"
        for i, (q, (a, b)) in enumerate(zip(p, counts, strict=True))
    ]
    text = "\n".join(("case,patient,prob_b,count_0,count_1,w", *lines))
    (folder / "varied.csv").write_text(text, encoding="utf-8")
    options = "--cases 50 --raters 1,2 --repeats 4 --resamples 20 --seed 3 --group-column patient"
    found = planned(f"ece varied.csv {options}")
    labels, groups = rw.Labels.from_counts(counts), np.arange(40) // 2
    again = plan("ece", p, labels, (50,), (1, 2), 3, groups=groups, repeats=4, resamples=20)
    assert [row["width"] for row in found["designs"]] == [d.width for d in again.designs]
    assert [row["bias_error"] for row in found["designs"]] == [d.bias_error for d in again.designs]
    weights = 1 + np.arange(40) % 3
    again = plan("brier", p, labels, (50,), (1, 2), 3, groups=groups, weights=weights)
    found = planned(f"brier varied.csv {options} --weight-column w")
    assert [row["width"] for row in found["designs"]] == [d.width for d in again.designs]
    shown = run(f"plan ece varied.csv --count-prefix count_ {options}").stdout
    assert re.search(r"width +± +bias +± +by", shown)
    assert "±: standard error of the simulation" in shown


def test_doubts_of_the_label_model_are_shown(folder: Path) -> None:
    """Probabilities that say nothing about the labels have no best temperature; a line says so."""
    options = "--cases 50 --raters 2 --repeats 2 --resamples 2"
    found = planned(f"ece pilot.csv {options}")
    assert "TemperatureScaling: the logits say nothing about the labels" in found["warnings"][0]
    assert "warning: Temp" in run(f"plan ece pilot.csv --count-prefix count_ {options}").stdout


ERRORS = {
    "no metric": ("exe pilot.csv", "'exe'"),
    "of a belief": ("posterior_gain pilot.csv", "posterior_gain: it needs a belief"),
    "no numbers": ("brier pilot.csv --cases many", "--cases: must be whole numbers"),
    "no cases": ("brier pilot.csv --cases 0", "cases: must be at least 2; got 0"),
    "too dear": ("brier pilot.csv --cases 100 --budget 10", "budget: must pay for one of the"),
    "too few raters": ("epistemic_loss pilot.csv --raters 1", "with at least 2 raters"),
    "no resamples": ("ece pilot.csv --resamples 0", "resamples: must be at least 2; got 0"),
    "weights": ("brier pilot.csv --weight-column patient", "patient"),
    "no file": ("brier", "needs a metric and the file of the pilot; got only 'brier'"),
    "a metric twice": ("ece pilot.csv --metrics brier", "--metrics: must be left out if a"),
    "two metrics": ("pilot.csv --metrics ece,brier", "--metrics: a plan is for one metric; got"),
    "all metrics": ("pilot.csv --metrics all", "--metrics: a plan is for one metric; got 'all'"),
    "no folder": ("brier pilot.csv --out no/plan.json", "the folder no must exist"),
}


@pytest.mark.parametrize(("command", "message"), ERRORS.values(), ids=ERRORS)
def test_bad_input_is_one_line_and_exit_code_2(folder: Path, command: str, message: str) -> None:
    """The message is one line on stderr, and nothing is written."""
    before = sorted(folder.iterdir())
    result = run(f"plan {command} --count-prefix count_")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("raterwise: ") and result.stderr.count("\n") == 1
    assert message in result.stderr
    assert sorted(folder.iterdir()) == before


def test_single_labels_are_no_pilot(folder: Path) -> None:
    """One label per case cannot tell raters from cases."""
    text = "case,prob_a,prob_b,truth\nn1,0.75,0.25,a\nn2,0.75,0.25,b\n"
    (folder / "single.csv").write_text(text, encoding="utf-8")
    result = run("plan brier single.csv --label-column truth")
    assert result.exit_code == 2
    assert "the pilot needs cases with two labels" in result.stderr


def test_equal_weights_change_no_plan(folder: Path) -> None:
    """The column `importance` is 2 throughout."""
    options = "brier pilot.csv --cases 50,75 --raters 1,2"
    plain = [row["width"] for row in planned(options)["designs"]]
    told = planned(f"{options} --weight-column importance")["designs"]
    assert [row["width"] for row in told] == pytest.approx(plain)

"""First sentences follow from the table below them: of a comparison, a plan, raters."""

from __future__ import annotations

import io
import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app
from raterwise.cli.show import print_results
from raterwise.inference.paired import Difference
from raterwise.report.findings import verdicts_by_finding
from raterwise.report.headlines import designs_in_words, differences_in_words
from raterwise.report.key_figures import figures, in_brackets
from raterwise.report.raters import interchangeable
from raterwise.report.sections import _repairable
from raterwise.report.verdicts import _most_telling, _open
from raterwise.results import Results


def compared(*clear: tuple[str, float, float], metrics: int = 3, names: str = "ab") -> Any:
    """Return a comparison of differences and adjusted p-values that are stated, 0 and 1 else."""
    all_of = ["brier", "accuracy", "nll", "auroc", *(f"m{i}" for i in range(metrics - 4))][:metrics]
    results = {
        name: SimpleNamespace(
            name=name,
            title=name.title(),
            direction="higher" if name in ("accuracy", "auroc") else "lower",
        )
        for name in [*all_of, "irreducible_loss"]
    }
    results["irreducible_loss"].direction = "none"
    told = {name: (gap, p) for name, gap, p in clear}
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    found = [
        Difference(name, a, b, gap, gap, gap, p, p)
        for name in results
        for a, b in pairs
        for gap, p in [told.get(name, (0.0, 1.0)) if b == "b" else (0.0, 1.0)]
    ]
    return SimpleNamespace(models=dict.fromkeys(names, results), differences=found)


@pytest.mark.parametrize(
    ("comparison", "told"),
    [
        (compared(("irreducible_loss", 0.1, 0.01)), "No difference that these cases can show: no "),
        (compared(("brier", 0.1, 0.0501)), "No difference that these cases can show: no adjusted "),
        (compared(("brier", -0.1, 0.05)), "a is better in Brier (1 of 3 metrics with adjusted p ≤"),
        (compared(("accuracy", -0.1, 0.05)), "b is better in Accuracy (1 of 3 metrics"),
        (
            compared(("brier", -0.1, 0.01), ("nll", -0.1, 0.01), ("accuracy", -0.1, 0.01)),
            "a is better in Brier and Nll; b is better in Accuracy (3 of 3 metrics",
        ),
        (
            compared(("nll", 0.1, 0.01), metrics=20),
            "1 of 20 metrics with adjusted p ≤ 0.05, no mor",
        ),
        (
            compared(("nll", 0.1, 0.01), names="abc"),
            "b is better than a in Nll (1 of 3 metrics with adjusted p ≤ 0.05). a and c: no differ",
        ),
        (compared(("nll", 0.1, 0.01), names="abcd"), "1 of 6 pairs of models differ in at least"),
    ],
)
def test_which_models_differ(comparison: Any, told: str) -> None:
    """The side of a difference is that of its metric; what describes the raters does not count."""
    assert told in differences_in_words(comparison)


def test_the_corrected_difference_says_who_is_better() -> None:
    """The interval and p are for it, so its sign is the one that counts."""
    comparison = compared(("brier", 0.1, 0.01))
    first = comparison.differences[0]
    comparison.differences[0] = Difference("brier", "a", "b", 0.1, -0.3, -0.1, 0.01, 0.01, -0.2)
    assert first.difference > 0
    assert differences_in_words(comparison).startswith("a is better in Brier")


def rows(*designs: tuple[int, int, float | None]) -> list[dict[str, Any]]:
    """Return rows of a plan: cases, raters, width."""
    return [
        {"cases": n, "raters": r, "readings": n * r, "cost": n * r, "width": width}
        for n, r, width in designs
    ]


@pytest.mark.parametrize(
    ("designs", "told"),
    [
        ([(100, 1, 0.3), (400, 1, 0.109), (200, 3, 0.109), (900, 3, 0.1)],
         "400 cases with 1 rater each are enough for an interval 0.109 wide, within 10% of the "
         "narrowest here (0.100, 900 cases with 3 raters each)."),
        ([(100, 1, 0.3), (400, 1, 0.112), (900, 3, 0.1)],
         "The width of the interval shrinks from 0.300 (100 cases with 1 rater each) to 0.100 (900 "
         "cases with 3 raters each); no cheaper design comes within 10% of that."),
        ([(100, 1, 0.3), (900, 3, None)], "100 cases with 1 rater each: an interval 0.300 wide."),
    ],
)  # fmt: skip
def test_the_headline_of_a_plan(designs: list[tuple[int, int, float | None]], told: str) -> None:
    """The cheapest design nearly as narrow as the narrowest; else how the width shrinks."""
    assert designs_in_words(rows(*designs)) == told


def written(tmp_path: Path, command: str) -> tuple[str, str]:
    """Return what a command prints, and the page that it writes."""
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, shlex.split(f"{command} --html '{page}'"))
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8").replace("\xa0", " ")
    return " ".join(done.output.split()), text


def test_compare_concludes_in_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    """The same sentence, of a model that is right and one that says the opposite."""
    y = np.arange(60) % 2
    for name, p in (("right", 0.1 + 0.8 * y), ("wrong", 0.9 - 0.8 * y)):
        lines = [f"{q:.1f},{k}" for q, k in zip(p, y, strict=True)]
        (tmp_path / f"{name}.csv").write_text("prob_1,y\n" + "\n".join(lines) + "\n")
    files = f"'{tmp_path}/right.csv' '{tmp_path}/wrong.csv'"
    told = written(
        tmp_path,
        f"compare {files} --label-column y --on-single drop --metrics brier,accuracy "
        "--resamples 50",
    )
    for text in told:
        assert "right is better in Brier score and Accuracy (2 of 2 metrics with adj" in text


def test_ordered_classes_are_headed_by_the_ordinal_alpha(tmp_path: Path) -> None:
    """Where the order is told; without one, by κ."""
    reads = [[i % 3, min(i % 3 + (i % 4 == 0), 2)] for i in range(40)]
    lines = [f"n{i},{'abc'[one]},{'abc'[two]}" for i, (one, two) in enumerate(reads)]
    (tmp_path / "r.csv").write_text("case,reader_1,reader_2\n" + "\n".join(lines) + "\n")
    command = f"agreement '{tmp_path}/r.csv' --resamples 20"
    heading = r'class="headline">([^:]*):'
    _, plain = written(tmp_path, command)
    _, ordered = written(tmp_path, f"{command} --class-names a,b,c")
    assert re.findall(heading, plain) == ["Fleiss&#x27; κ"]
    assert re.findall(heading, ordered) == ["Krippendorff&#x27;s α, ordinal"]


def test_the_page_says_what_the_others_are_without_the_one_who_stands_out() -> None:
    """Three readers tossing the same coin and one who always says yes."""
    random = np.random.default_rng(0)
    ratings = np.c_[(random.random((80, 3)) < 0.5).astype(int), np.ones(80, int)]
    test = rw.exchangeability_test(rw.Labels.from_ratings(ratings, num_classes=2))
    said = interchangeable(test)[-1].replace("\xa0", " ")
    assert re.fullmatch(r"Without rater 3 the others look alike \(p = [\d.]+\)\.", said)
    assert test.rest_p_value is not None and test.rest_p_value > 0.05


@pytest.mark.parametrize(
    ("calibration", "dispersion", "told"),
    [
        (0.007, -0.014, "below 0 does not say what a better model could remove. The calibration"),
        (-0.002, -0.014, "below 0 does not say what a better model could remove."),
        (-0.002, 0.014, "Recalibration would remove none of it."),
        (0.007, -0.002, "Better calibration could remove all of it."),
        (0.007, 0.014, "Of that, 0.007 (33%) is calibration loss"),
    ],
)
def test_a_loss_below_zero_is_not_there_to_be_removed(
    calibration: float, dispersion: float, told: str
) -> None:
    """The sum of the two parts is the epistemic loss; all of less than nothing is nothing."""
    results: Any = {
        "calibration_loss": SimpleNamespace(value=calibration),
        "dispersion_loss": SimpleNamespace(value=dispersion),
    }
    said = _repairable(results)
    assert told in said and ("could remove all" in said) == (told.startswith("Better"))


def deviation(statistic: str, gap: float, *, channel: str = "top label") -> dict[str, Any]:
    """Return a clear deviation of so much, upwards or downwards."""
    return {
        "statistic": statistic, "channel": channel, "standardised": np.sign(gap) * 5, "predicted":
        0.5, "observed": 0.5 + gap, "adjusted": 0.001, "sentence": "over-confident: it is so",
    }  # fmt: skip


BOTH_WAYS = (deviation("bin 1", 0.1), deviation("bin 9", -0.1))


@pytest.mark.parametrize(
    ("slope", "mean", "bins", "first"),
    [
        (0.09, 0.05, BOTH_WAYS, "mean"),  # not twice as much
        (0.11, 0.05, BOTH_WAYS, "slope"),
        (0.11, 0.05, BOTH_WAYS[:1], "mean"),  # off in one direction, which the mean tells
        (0.11, 0.05, [{**one, "channel": "mass"} for one in BOTH_WAYS], "mean"),
        (0.025, 0.015, (), "slope"),  # the mean is as good as right
        (0.015, 0.005, BOTH_WAYS, "mean"),  # and so is the slope
    ],
)
def test_a_verdict_begins_with_the_mean_unless_it_hides_a_slope(
    slope: float, mean: float, bins: Any, first: str
) -> None:
    """Where bins are off both ways and the slope by twice as much, or the mean by next to nothing.

    What is said of another class is no reason.
    """
    deviations = [deviation("mean", mean), deviation("slope", slope), *bins]
    found = {"channel": "top label", "significance": 0.05, "deviations": deviations}
    assert _most_telling(found)[0]["statistic"] == first


@pytest.mark.parametrize(("together", "told"), [(0.05, True), (0.051, False), (None, False)])
def test_intervals_speak_where_chance_does_not_explain_them(
    together: float | None, told: bool
) -> None:
    """An interval that excludes 0 is no reason where the p-value of all of them is large."""
    found = {
        "p_value": 0.4, "significance": 0.05, "above_zero": ["ece"], "reach_zero": ["mce"],
        "intervals_p_value": together,
    }  # fmt: skip
    results: Any = {"ece": SimpleNamespace(title="ECE")}
    text = _open(found, results, "p = 0.4", 9)
    assert text.startswith("None of 9 checks for miscalibration stands out (corrected p = 0.4).")
    assert ("interval of ECE excludes 0, and chance is unlikely to explain it" in text) == told
    assert ("corrected for 2 intervals" in text) == told


@pytest.mark.parametrize(("fewest", "told"), [(1, True), (3, False)])
def test_the_accuracy_says_what_counts_once(fewest: int, told: bool) -> None:
    """Where cases have unequal numbers of raters, each case counts once."""
    accuracy = rw.Estimate("accuracy", 0.9, meaning="How often a rater agrees.")
    data = {"classes": 3, "cases": 9, "raters": {"min": fewest, "max": 3}}
    shown = "".join(map(str, figures(Results({"accuracy": accuracy}, data=data))))
    assert ("How often a rater agrees, counting every case once." in shown) == told


def test_findings_that_are_off_come_first() -> None:
    """The second finding is said far too often: its verdict is read before that of the first."""
    random = np.random.default_rng(0)
    p = random.uniform(0.1, 0.9, (400, 2))
    said = (random.random((400, 2)) < p * [1, 0.4]).astype(int)
    found = rw.evaluate_multilabel(p, said, np.ones_like(said), metrics="ece", names=["a", "b"])
    verdicts = verdicts_by_finding(found)
    assert [(title, v.tone) for title, v in verdicts.items()] == [("b", "bad"), ("a", "good")]


def test_a_corrected_error_above_the_error_is_explained() -> None:
    """Chance pushes an error up, so that a reader would take a larger corrected one for wrong."""
    told = "Where it is larger, chance or smoothing hides a part of the error."
    found = rw.evaluate([0.9, 0.2], [1, 0], "ece", resamples=0)
    for debiased, times in ((0.3, 1), (0.1, 0), (0.20001, 0)):
        e = replace(found["ece"], value=0.2, debiased=debiased)
        results, written = replace(found, estimates={"ece": e}), io.StringIO()
        print_results(results, Console(file=written, width=200))
        assert written.getvalue().count(told) == times
        assert in_brackets(results, [e]).count(told) == times

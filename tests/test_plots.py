"""Figures: what is drawn is the data, and looks as it did.

The numbers are given by hand, so that the images depend on nothing but the drawing. After a change
that is meant, `python tests/test_plots.py` draws the images in tests/baseline again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.testing.compare import compare_images

import raterwise as rw
from raterwise import plots
from raterwise.curves import ReliabilityCurve, ThresholdCurve
from raterwise.errors import InvalidInputError, MissingExtraError, UndefinedMetricError
from raterwise.labels import Labels
from raterwise.palette import SERIES
from raterwise.planning import Design, StudyPlan
from raterwise.results import Estimate, LevelDifference, Results, Subgroup
from raterwise.stability import SubsampleCurve

matplotlib.use("Agg")

BASELINE = Path(__file__).parent / "baseline"
TOLERANCE = 4.0
"""Root mean square of the grey levels: fonts are rendered a little differently elsewhere."""

AS_THEN = pytest.mark.skipif(
    matplotlib.__version_info__ < (3, 11),
    reason="tests/baseline is drawn by matplotlib 3.11; earlier ones set text in other sizes",
)


def reliability(name: str = "top label", shift: float = 0.0) -> ReliabilityCurve:
    """Return five bins, the first empty."""
    observed = np.array([np.nan, 0.3, 0.42, 0.6, 0.75]) + shift
    return ReliabilityCurve(
        name,
        edges=np.linspace(0, 1, 6),
        cases=np.array([0.0, 12, 40, 60, 25]),
        share=np.array([0, 12, 40, 60, 25]) / 137,
        predicted=np.array([np.nan, 0.32, 0.5, 0.7, 0.9]),
        observed=observed,
        low=observed - 0.1,
        high=observed + 0.08,
        level=0.95,
        gap=0.1,
        gap_low=0.05,
        gap_high=0.15,
    )


def thresholds() -> ThresholdCurve:
    """Return the curve of three cases and two raters: 2, 1 and 0 of them agree."""
    return ThresholdCurve(
        thresholds=np.array([np.inf, 0.9, 0.8, 0.6]),
        correct_accepts=np.array([0.0, 2, 3, 3]),
        incorrect_accepts=np.array([0.0, 0, 1, 3]),
        correct_rejects=np.array([3.0, 3, 2, 0]),
        incorrect_rejects=np.array([3.0, 1, 0, 0]),
        accepted_cases=np.array([0.0, 1, 2, 3]),
    )


def with_bands() -> ThresholdCurve:
    """Return that curve with bands."""
    return replace(
        thresholds(),
        rate_low=np.array([0.0, 0.3, 0.8, 1.0]),
        rate_high=np.array([0.2, 0.9, 1.0, 1.0]),
        risk_low=np.array([np.nan, 0.0, 0.1, 0.3]),
        risk_high=np.array([np.nan, 0.4, 0.5, 0.7]),
    )


def results(calibration: float = 0.02, dispersion: float = 0.05) -> Results:
    """Return results with the two losses and every curve."""
    found = {
        "calibration_loss": Estimate("calibration_loss", calibration, calibration / 2, 0.04),
        "dispersion_loss": Estimate("dispersion_loss", dispersion, 0.04, 0.07),
    }
    curves = {
        "top_label": reliability().to_dict(),
        "per_class": [reliability("benign").to_dict(), reliability("$x_1$ <b>", 0.05).to_dict()],
        "disagreement": reliability("disagreement").to_dict(),
        "thresholds": thresholds().to_dict(),
    }
    return Results(found, curves=curves)


def subsets(start: float) -> SubsampleCurve:
    """Return a curve that falls to 0.1."""
    spread = np.linspace(0.04, 0.0, 4)[:, None] * np.array([-1.0, 1.0])
    values = np.linspace(start, 0.1, 4)[:, None] + spread
    return SubsampleCurve((0.1, 0.25, 0.5, 1.0), (20, 50, 100, 200), values, 0.1)


def plan() -> StudyPlan:
    """Return six designs."""
    designs = [
        Design(cases, raters, 2.0 / np.sqrt(cases * (1 + raters) / 2), 0.0, "formula")
        for cases in (50, 100, 200)
        for raters in (1, 3)
    ]
    return StudyPlan("brier", 0.95, tuple(designs))


def by_level() -> Results:
    """Return two scanners, one of which is clearly worse, and a sex that only one case has."""
    overall = Estimate("ece", 0.1, 0.05, 0.14, debiased=0.09, title="ECE")

    def level(variable: str, name: str, shift: float, p: float | None, **change: Any) -> Subgroup:
        low, high = 0.04 + shift, 0.12 + shift
        e = replace(overall, value=0.1 + shift, low=low, high=high, debiased=0.08 + shift)
        gap = LevelDifference("ece", shift, low - 0.08, high - 0.08, p, p)
        return Subgroup(variable, name, 120, 30, {"ece": replace(e, **change)}, {"ece": gap})

    alone = {"low": None, "high": None, "debiased": None}
    levels = (
        level("scanner", "A", 0.0, 0.7),
        level("scanner", "B $x_1$", 0.1, 0.01),
        level("sex", "f", 0.02, 0.3),
        level("sex", "m", 0.05, None, **alone),
        level("sex", "(missing)", 0.0, None, **alone, value=None, undefined="no cases"),
    )
    return Results({"ece": overall}, subgroups=levels)


def overlaid() -> Any:
    """Draw two models in one diagram."""
    first = plots.ReliabilityDisplay(reliability()).plot(name="A", histogram=False)
    second = plots.ReliabilityDisplay(reliability(shift=0.1))
    return second.plot(ax=first.ax_, name="B", histogram=False)


FIGURES: dict[str, Callable[[], Any]] = {
    "reliability": lambda: plots.ReliabilityDisplay.from_results(results(), name="model"),
    "reliability_of_a_class": lambda: plots.ReliabilityDisplay.from_results(
        results(), of_class="benign"
    ),
    "reliability_of_two": overlaid,
    "disagreement": lambda: plots.DisagreementReliabilityDisplay.from_results(results()),
    "ccc": lambda: plots.CCCDisplay.from_results(results(), threshold=0.8),
    "risk_coverage": lambda: plots.RiskCoverageDisplay.from_results(results(), name="model"),
    "calibration_dispersion": lambda: plots.CalibrationDispersionDisplay.from_results(
        {"raw": results(), "scaled": results(0.008, 0.048)}
    ),
    "ccc_with_band": lambda: plots.CCCDisplay(with_bands()).plot(),
    "risk_coverage_with_band": lambda: plots.RiskCoverageDisplay(with_bands()).plot(),
    "stability": lambda: plots.StabilityDisplay.from_curves(
        {"ece": subsets(0.2), "robust_ece": subsets(0.12)}
    ),
    "plan": lambda: plots.PlanDisplay.from_plan(plan(), budget=200),
    "subgroups": lambda: plots.SubgroupDisplay.from_results(by_level(), "ece"),
}


def save(name: str, folder: Path) -> Path:
    """Draw a figure, small."""
    path = folder / f"{name}.png"
    with plots.journal_style():
        FIGURES[name]().figure_.savefig(path, dpi=50, metadata={"Software": None})
    return path


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    """Close what a test has drawn."""
    yield
    plt.close("all")


@AS_THEN
@pytest.mark.parametrize("name", FIGURES)
def test_the_figure_looks_as_it_did(name: str, tmp_path: Path) -> None:
    """Each display is drawn like the image in tests/baseline."""
    drawn = save(name, tmp_path)
    difference = compare_images(str(BASELINE / f"{name}.png"), str(drawn), tol=TOLERANCE)
    assert difference is None, difference


@AS_THEN
def test_another_picture_is_told_apart(tmp_path: Path) -> None:
    """The tolerance is small enough to see a different curve in the same frame."""
    display = plots.ReliabilityDisplay(reliability(shift=0.1)).plot(name="model")
    with plots.journal_style():
        display.figure_.savefig(tmp_path / "other.png", dpi=50)
    baseline = str(BASELINE / "reliability.png")
    assert compare_images(baseline, str(tmp_path / "other.png"), tol=TOLERANCE) is not None


def test_what_is_drawn_is_the_data() -> None:
    """The line runs through the bins that have cases; the bars are their counts."""
    display = plots.ReliabilityDisplay(reliability()).plot()
    assert display.line_.get_xdata().tolist() == [0.32, 0.5, 0.7, 0.9]
    assert display.line_.get_ydata().tolist() == [0.3, 0.42, 0.6, 0.75]
    heights = [bar.get_height() for bar in display.histogram_ax_.patches]
    assert heights == [0, 12, 40, 60, 25]
    curve = plots.RiskCoverageDisplay(thresholds()).plot()
    assert curve.line_.get_xdata() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert curve.line_.get_ydata()[1:] == pytest.approx([0, 0.25, 0.5])


def test_models_in_one_diagram_have_the_colours_of_the_palette() -> None:
    """The second curve in the same axes takes the second colour; the diagonal is drawn once."""
    ax = overlaid().ax_
    drawn = [line for line in ax.lines if line.get_gid() == "series"]
    assert [line.get_color() for line in drawn] == list(SERIES[:2])
    assert sum(line.get_gid() == "identity" for line in ax.lines) == 1


def test_levels_are_drawn_less_chance_and_those_that_differ_stand_out() -> None:
    """The value less chance, in the order of the levels; a diamond where p is below 0.05."""
    display = plots.SubgroupDisplay.from_results(by_level())
    drawn = [line for line in display.ax_.lines if len(line.get_xdata()) == 1]
    assert [float(line.get_xdata()[0]) for line in drawn] == pytest.approx([0.08, 0.18, 0.1, 0.15])
    assert [line.get_marker() for line in drawn] == ["o", "D", "o", "o"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()][:2] == [
        "A (120)", r"B \$x_1\$ (120)",
    ]  # fmt: skip
    one = plots.SubgroupDisplay.from_results(by_level(), variables=["scanner"])
    assert len(one.ax_.get_yticklabels()) == 2


def test_predictions_are_drawn_directly() -> None:
    """Two bins by hand: 0.6 with nobody agreeing, 0.85 with three of four."""
    probs = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    labels = Labels.from_counts([[2, 0], [1, 1], [0, 2]])
    display = plots.ReliabilityDisplay.from_predictions(probs, labels, bins=4, resamples=0)
    assert display.line_.get_ydata() == pytest.approx([0, 0.75])
    one = plots.ReliabilityDisplay.from_predictions(
        probs, labels, of_class=1, bins=1, resamples=0, class_names=["no", "yes"]
    )
    assert one.ax_.get_ylabel() == "Raters who say yes"
    pairs = plots.DisagreementReliabilityDisplay.from_predictions(
        probs, labels, bins=1, resamples=0
    )
    assert pairs.line_.get_ydata() == pytest.approx([1 / 3])
    ccc = plots.CCCDisplay.from_predictions(probs, labels)
    # Of 9 pairs of a right and a wrong label, the right one is more confident in 8, equally in 1.
    assert ccc.line_.get_label() == f"AUCCC {8.5 / 9:.3f}"


def test_a_threshold_is_marked_on_curves_of_probabilities() -> None:
    """From 75% on two of four cases test positive, one of them rightly: all rates are a half."""
    probs, classes = [0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1]
    for display in (plots.RocDisplay, plots.PrecisionRecallDisplay):
        drawn = display.from_predictions(probs, classes, threshold=0.75, resamples=0)
        (mark,) = (line for line in drawn.ax_.lines if line.get_marker() == "o")
        assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (0.5, 0.5)
        assert [text.get_text() for text in drawn.ax_.texts] == ["positive from 75%"]
    curve = rw.precision_recall_curve(probs, classes, resamples=0)
    with pytest.raises(InvalidInputError, match=r"threshold: must be at most 0\.9; got 0\.95"):
        plots.PrecisionRecallDisplay(curve).plot(threshold=0.95)


def test_bands_are_the_data_and_may_be_missing() -> None:
    """The band's corners are the ends of the intervals; a curve without them has no band."""
    display = plots.RiskCoverageDisplay(with_bands()).plot()
    corners = display.band_.get_paths()[0].vertices
    assert {(round(x, 3), round(y, 3)) for x, y in corners} >= {
        (0.333, 0.0), (0.333, 0.4), (0.667, 0.1), (0.667, 0.5), (1.0, 0.3), (1.0, 0.7),
    }  # fmt: skip
    assert plots.CCCDisplay(thresholds()).plot().band_ is None
    made = plots.CCCDisplay.from_predictions([0.9, 0.8, 0.7, 0.6] * 5, [1, 1, 0, 1] * 5)
    assert made.band_ is not None


def test_the_area_is_that_of_the_results() -> None:
    """Results keep some points of a curve, and the area under all of them."""
    made = replace(results(), estimates={"auccc": Estimate("auccc", 0.512)})
    assert plots.CCCDisplay.from_results(made).line_.get_label() == "AUCCC 0.512"


def test_a_display_says_what_it_lacks() -> None:
    """The common base of two displays is no display itself."""
    with pytest.raises(TypeError, match="abstract"):
        plots.CCCDisplay.__base__(thresholds())


LONG = "ResNet-50, ImageNet weights, temperature scaled"
NAMED: dict[str, Callable[[], Any]] = {
    "reliability": lambda: plots.ReliabilityDisplay.from_results(results(), name=LONG),
    "ccc": lambda: plots.CCCDisplay.from_results(results(), name=LONG, threshold=0.5),
    "risk": lambda: plots.RiskCoverageDisplay.from_results(results(), name=LONG, threshold=0.5),
    "map": lambda: plots.CalibrationDispersionDisplay.from_results({LONG: results()}),
    "stability": lambda: plots.StabilityDisplay.from_curves({LONG: subsets(0.2)}),
    "roc": lambda: plots.RocDisplay.from_predictions([0.9, 0.2, 0.7, 0.4], [1, 0, 0, 1], name=LONG),
    "precision": lambda: plots.PrecisionRecallDisplay.from_predictions(
        [0.9, 0.2, 0.7, 0.4], [1, 0, 0, 1], name=LONG
    ),
    "plan": lambda: plots.PlanDisplay.from_plan(plan(), budget=200),
    "subgroups": lambda: plots.SubgroupDisplay.from_results(long_levels(), "ece"),
}


def long_levels() -> Results:
    """Return the levels with a name as scanners have them, of a metric with a long one."""
    found = by_level()
    levels = tuple(replace(s, level=f"{s.level} {LONG}") for s in found.subgroups)
    whole = replace(found["ece"], title="Expected calibration error")
    return replace(found, estimates={"ece": whole}, subgroups=levels)


@pytest.mark.parametrize("name", NAMED)
def test_a_long_name_leaves_room_for_the_curve(name: str) -> None:
    """One column of a journal: the legend is within the figure, and half of it are the axes."""
    display = NAMED[name]()
    display.figure_.draw_without_rendering()
    whole, drawn = display.figure_.bbox, display.ax_.get_window_extent()
    legend = display.ax_.get_legend()
    texts = [display.ax_.xaxis.label, display.ax_.yaxis.label, *display.ax_.get_yticklabels()]
    texts = texts if name == "subgroups" else [*texts[:2], *legend.get_texts()]
    for box in (text.get_window_extent() for text in texts if text.get_text()):
        assert whole.x0 - 1 <= box.x0 and box.x1 <= whole.x1 + 1
        assert whole.y0 - 1 <= box.y0 and box.y1 <= whole.y1 + 1
    assert drawn.width > (0.4 if name == "subgroups" else 0.6) * whole.width


def test_the_text_of_a_threshold_stays_off_the_ticks() -> None:
    """A point at no risk has it above, not between the numbers of the axis."""
    display = plots.RiskCoverageDisplay(thresholds()).plot(threshold=0.9)
    display.figure_.draw_without_rendering()
    (text,) = display.ax_.texts
    assert text.get_window_extent().y0 >= display.ax_.get_window_extent().y0


def test_stability_is_of_patients_where_patients_were_drawn() -> None:
    """The axis names what the subsets are of."""
    curve = replace(subsets(0.2), unit="patients")
    assert plots.StabilityDisplay.from_curves({"ece": curve}).ax_.get_xlabel() == (
        "Patients in the subset"
    )


def test_dollar_signs_in_a_name_are_no_formula(tmp_path: Path) -> None:
    """A class or a model may be called anything, also what would be a broken formula."""
    name = r"$\frac$ <b>"
    display = plots.ReliabilityDisplay(reliability(name)).plot(name=name)
    models = {name: results(), "other": results()}
    plots.CalibrationDispersionDisplay.from_results(models).figure_.savefig(tmp_path / "b.svg")
    with plots.journal_style():
        display.figure_.savefig(tmp_path / "a.svg")
    assert "Raters who say $\\frac$ &lt;b&gt;" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_files_are_vectors_with_text(tmp_path: Path) -> None:
    """An SVG keeps its words as text, which a journal can set in its own font."""
    display = plots.CCCDisplay(thresholds()).plot()
    with plots.journal_style():
        display.figure_.savefig(tmp_path / "ccc.svg")
    content = (tmp_path / "ccc.svg").read_text(encoding="utf-8")
    assert "<text" in content and "Wrong predictions accepted" in content
    assert "<image" not in content


def test_what_a_display_refuses() -> None:
    """Curves that results do not hold, a class they do not know, a model without the losses."""
    empty = Results({})
    with pytest.raises(InvalidInputError, match="metrics that include 'ece'"):
        plots.ReliabilityDisplay.from_results(empty)
    with pytest.raises(InvalidInputError, match="metrics that include 'auccc'"):
        plots.CCCDisplay.from_results(empty)
    with pytest.raises(InvalidInputError, match=r"of_class: must be one of .* got 'other'"):
        plots.ReliabilityDisplay.from_results(results(), of_class="other")
    with pytest.raises(InvalidInputError, match="disagreement has no classes"):
        plots.DisagreementReliabilityDisplay.from_results(results(), of_class="benign")
    with pytest.raises(InvalidInputError, match="'raw' has no dispersion_loss"):
        plots.CalibrationDispersionDisplay({"raw": empty})
    with pytest.raises(InvalidInputError, match="results: hold no sub-groups"):
        plots.SubgroupDisplay.from_results(empty)
    with pytest.raises(InvalidInputError, match="variables: must be among scanner, sex; got 'age'"):
        plots.SubgroupDisplay.from_results(by_level(), variables=["age"])
    with pytest.raises(InvalidInputError, match="metric: results hold no 'mce'"):
        plots.SubgroupDisplay.from_results(by_level(), "mce")
    with pytest.raises(InvalidInputError, match="'mce' was not evaluated in scanner = A; name it"):
        plots.SubgroupDisplay(Estimate("mce", 0.1), by_level().subgroups)


def test_no_curve_where_every_prediction_is_right() -> None:
    """Nothing can be told apart: an error that says so, not an empty picture and a warning."""
    with pytest.raises(UndefinedMetricError, match="needs right predictions and wrong ones"):
        plots.CCCDisplay.from_predictions([[0.8, 0.2], [0.3, 0.7]], [0, 1])


def test_the_map_of_one_model() -> None:
    """Results need no dictionary around them to be drawn."""
    display = plots.CalibrationDispersionDisplay.from_results(results())
    assert list(display.models) == ["model"]


def test_without_matplotlib_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A display without matplotlib is an error that names the extra."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"raterwise\[report\]"):
        plots.CCCDisplay(thresholds()).plot()


def test_importing_plots_loads_no_matplotlib() -> None:
    """The module is there before matplotlib is."""
    code = "import sys, raterwise.plots, raterwise.report; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


if __name__ == "__main__":
    for figure in FIGURES:
        save(figure, BASELINE)

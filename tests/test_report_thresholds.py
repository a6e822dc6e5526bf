"""The section "At a threshold" of a report, and the figures of the same curves."""

from __future__ import annotations

import json
import re
from typing import Any

import matplotlib
import numpy as np
import pytest

import raterwise as rw
import reports
from raterwise import plots
from raterwise.errors import InvalidInputError
from raterwise.report import report_html

matplotlib.use("Agg")


def cell(page: str, name: str) -> str:
    """Return the text of the table's cell with an id."""
    found = re.search(rf'id="{name}">([^<]*)<', page)
    assert found is not None, name
    return found.group(1)


def test_the_table_has_the_measures_at_the_start() -> None:
    """Half, unless the results were asked for another threshold."""
    curve = reports.two_classes_curve()
    page = report_html(reports.two_classes())
    for who, points in (("model", curve.model), ("raters", curve.raters)):
        for name in ("sensitivity", "specificity", "ppv", "npv", "net_benefit"):
            band = getattr(points, name)
            told = f"{band.value[49]:.3f} [{band.low[49]:.3f}, {band.high[49]:.3f}]"
            assert cell(page, f"{who}-{name}") == told.replace("-", "−")
    assert cell(page, "all-net_benefit") == f"{curve.treat_all[49]:.3f}".replace("-", "−")
    assert reports.HOSTILE[1] not in page
    p = np.linspace(0.01, 0.99, 60)
    y = (np.arange(60) % 3 == 0).astype(int)
    for told in ({"threshold": 0.2}, {"options": {"clinical": {"threshold": 0.2}}}):
        asked = rw.evaluate(p, y, "auroc,ppv", resamples=0, **told)
        page = report_html(asked)
        assert cell(page, "model-ppv") == f"{asked['ppv'].value:.3f}"
        assert cell(page, "model-ppv") != cell(report_html(reports.two_classes()), "model-ppv")
    assert 'id="raters-ppv"' not in page  # one label per case


def test_findings_can_be_chosen() -> None:
    """A curve for each finding that has one."""
    random = np.random.default_rng(0)
    p = random.beta(1, 2, (80, 2))
    said = (random.random((80, 2)) < p).astype(int)
    found = rw.evaluate_multilabel(
        p, said, np.ones((80, 2), int), names=["mass", "<b>nodule</b>"], metrics="auroc",
        resamples=20,
    )  # fmt: skip
    page = report_html(found)
    assert '<option value="&lt;b&gt;nodule&lt;/b&gt;">' in page
    held = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert held is not None
    operating = json.loads(held.group(1))["operating"]
    assert list(operating) == ["mass", "<b>nodule</b>"]
    exact = rw.sensitivity(p[:, 1], said[:, 1], 0.3)
    assert operating["<b>nodule</b>"]["model"]["sensitivity"][0][29] == pytest.approx(
        exact, abs=1e-5
    )
    assert operating["mass"]["raters"] is None


def test_three_classes_have_no_such_section() -> None:
    """There is no one threshold."""
    assert "At a threshold" not in report_html(reports.results())


def test_figures_draw_the_curves() -> None:
    """Lines are the data, bands where there are intervals."""
    p, y = np.r_[np.linspace(0.1, 0.9, 30)], np.r_[np.zeros(12), np.ones(18)].astype(int)
    y[[5, 20]] = 1 - y[[5, 20]]
    roc = rw.roc_curve(p, y, resamples=50)
    drawn: Any = plots.RocDisplay(roc).plot(name="net")
    assert drawn.line_.get_ydata().tolist() == roc.sensitivity.tolist()
    assert drawn.band_ is not None and drawn.line_.get_label() == f"net (AUROC {roc.area:.3f})"
    ranked = rw.precision_recall_curve(p, y, resamples=0)
    drawn = plots.PrecisionRecallDisplay(ranked).plot()
    assert drawn.line_.get_xdata().tolist() == ranked.recall.tolist() and drawn.band_ is None
    labels = rw.Labels.from_counts(np.stack((2 - 2 * y, 2 * y), axis=1))
    display = plots.DecisionDisplay.from_predictions({"a": p, "b": p[::-1]}, labels, resamples=20)
    assert list(display.lines_) == ["a", "b", "one more rater", "everybody", "nobody"]
    curve = display.curves["b"]
    assert display.lines_["b"].get_ydata().tolist() == curve.net_benefit.tolist()
    bars = plots.OutcomeDisplay(curve).plot(bins=20)
    heights = [patch.get_height() for patch in bars.ax_.patches]
    assert sum(heights[:20]) == pytest.approx(1) and sum(heights[20:]) == pytest.approx(-1)


def test_results_without_the_curve_say_what_brings_it() -> None:
    """Named by the metric."""
    results = rw.evaluate([0.2, 0.9], [0, 1], "brier", resamples=0)
    with pytest.raises(InvalidInputError, match=r"hold no curve 'operating'.*'auroc'"):
        plots.DecisionDisplay.from_results(results)


def test_the_sentence_at_a_threshold_by_hand() -> None:
    """Of 20 cases 4 positive ones test positive and 1 does not, and 6 negative ones do."""
    probs = [0.9] * 4 + [0.1] + [0.8] * 6 + [0.2] * 9
    found = rw.evaluate(probs, [1] * 5 + [0] * 15, resamples=20)
    page = report_html(found)
    assert "In 100 ratings: 20.0 positives found, 30.0 false alarms, 5.0 positives missed." in page

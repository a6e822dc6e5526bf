"""Reports as files: one file, no address outside, nothing from outside becomes markup."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import raterwise as rw
import reports
from raterwise.catalog import CATALOG
from raterwise.cli import app
from raterwise.cli.stability_curves import measure
from raterwise.curves import ReliabilityCurve
from raterwise.evaluate import predictions_of
from raterwise.report import as_csv, as_latex, as_markdown, comparison_html, report_html
from raterwise.report.confidence_verdict import Verdict
from raterwise.report.key_figures import answers, key_figures
from raterwise.report.markup import el, json_block
from raterwise.report.references import cited
from raterwise.report.verdicts import verdict
from raterwise.report.words import basis, number
from raterwise.results import Estimate, Results
from raterwise.worklist import Worklist, worklist


class Page(HTMLParser):
    """The elements of a page, its text, its scripts and every attribute that could load a thing."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.data = ""
        self.words: list[str] = []
        self._open: list[str] = []
        self._kind = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the element."""
        self.tags.append(tag)
        self._open.append(tag)
        self._kind = dict(attrs).get("type") or ""
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Forget which element is open."""
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, text: str) -> None:
        """Keep scripts, data and words apart."""
        inside = self._open[-1] if self._open else ""
        if inside == "script" and self._kind == "application/json":
            self.data += text
        elif inside == "script":
            self.scripts.append(text)
        elif inside != "style":
            self.words.append(text)


@pytest.fixture(scope="module", name="page")
def page_of_hostile_names() -> Page:
    """The report of results whose class names try to break out."""
    return Page(report_html(reports.results(), title="<i>model</i>", single=reports.results()))


FACTS = {"cases": 5, "classes": 2, "ratings": 5, "raters": {"mean": 1.0, "min": 1, "max": 1}}


def curve(predicted: float, observed: float, gap: tuple[float, float, float]) -> dict[str, object]:
    """Return a curve of one bin of 100 cases, with an interval of ±0.06."""
    return ReliabilityCurve(
        "top label", np.array([0.0, 1.0]), np.array([100.0]), np.array([1.0]),
        np.array([predicted]), np.array([observed]), np.array([observed - 0.06]),
        np.array([observed + 0.06]), 0.95, *gap,
    ).to_dict()  # fmt: skip


# Words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "observed", "gap", "ece", "headline", "tone"),
    [
        (0.9, 0.78, (0.12, 0.06, 0.18), (0.12, 0.05, 0.18), "Over-confident", "bad"),
        (0.7, 0.78, (-0.08, -0.14, -0.02), (0.08, 0.01, 0.14), "Under-confident", "bad"),
        (0.79, 0.78, (0.01, 0.005, 0.015), (0.01, 0, 0.02), "Slightly over-confident", "caution"),
        (0.8, 0.78, (0.02, -0.02, 0.06), (0.06, 0.03, 0.09), "Miscalibrated in places", "caution"),
        (0.8, 0.78, (0.02, -0.02, 0.06), (0.03, 0.0, 0.07), "No miscalibration found", "good"),
    ],
)
def test_the_verdict(
    predicted: float,
    observed: float,
    gap: tuple[float, float, float],
    ece: tuple[float, float, float],
    headline: str,
    tone: str,
) -> None:
    """The intervals of the gap and of the ECE decide the verdict; a bin is its example."""
    found = verdict(
        Results(
            {"ece": Estimate("ece", *ece)}, curves={"top_label": curve(predicted, observed, gap)}
        )
    )
    assert (found.headline, found.tone) == (headline, tone)
    example = f"When it says {predicted:.0%}, the raters agree 78% of the time [72–84]."
    assert found.explanation.startswith(example)


def test_too_little_data_to_say() -> None:
    """Where a gap of 20 points is not excluded, the average is told and no bin is an example."""
    data = {"raters": {"mean": 1.0, "min": 1, "max": 1}}
    content = curve(0.75, 0.7, (0.05, -0.05, 0.15))
    found = verdict(
        Results({"ece": Estimate("ece", 0.1, 0.0, 0.2)}, data, curves={"top_label": content})
    )
    assert (found.headline, found.tone) == ("Too little data to say", "caution")
    assert found.explanation == (
        "On average it says 75%, and the rater agrees 70% of the time. So few cases cannot exclude "
        "a typical gap of up to 20.0 percentage points between the two."
    )


def two_bins(first: float, second: float) -> dict[str, object]:
    """Return a curve that says 60 and 80 %, of 10 and of 90 cases, with these observed."""
    observed = np.array([first, second])
    return ReliabilityCurve(
        "top label", np.array([0, 0.7, 1.0]), np.array([10.0, 90]), np.array([0.1, 0.9]),
        np.array([0.6, 0.8]), observed, observed - 0.004, observed + 0.004, 0.95, 0.0, -0.01, 0.01,
    ).to_dict()  # fmt: skip


@pytest.mark.parametrize(
    ("observed", "low", "told"),
    [
        ((0.6, 0.802), 0.0, "When it says 80%, the raters agree 80.2% of the time [79.8–80.6]."),
        ((0.3, 0.79), 0.0, "When it says 60%, the raters agree 30.0% of the time [29.6–30.4]."),
        ((0.3, 0.79), 0.01, "When it says 60%, the raters agree 30.0% of the time [29.6–30.4]."),
        ((0.6, 0.998), 0.01, "When it says 80%, the raters agree 99.8% of the time"),
    ],
)
def test_the_example_of_the_verdict(observed: tuple[float, float], low: float, told: str) -> None:
    """Where nothing is wrong the most cases, otherwise the largest part of the error.

    A bin whose interval excludes the prediction is never an example of a model that is right.
    """
    ece = Estimate("ece", 0.02, low, 0.05)
    found = verdict(Results({"ece": ece}, curves={"top_label": two_bins(*observed)}))
    assert found.explanation.startswith(told)


def test_the_verdict_says_how_far_off() -> None:
    """Over-confidence in percentage points, with its interval; none without a curve."""
    content = curve(0.9, 0.78, (0.12, 0.06, 0.18))
    assert (
        "12.0 percentage points more sure"
        in verdict(Results({}, curves={"top_label": content})).explanation
    )
    assert "[6.0–18.0]" in verdict(Results({}, curves={"top_label": content})).explanation
    without = verdict(Results({}))
    assert without == Verdict("No verdict on calibration", without.explanation, "caution")
    assert "metrics that include ece" in without.explanation
    bare = {**content, "gap_low": None, "gap_high": None, "low": [None], "high": [None]}
    assert "No interval was made" in verdict(Results({}, curves={"top_label": bare})).explanation


def test_the_basis_and_the_findings() -> None:
    """What it rests on, and how often raters agree with the model and with one another."""
    data = {"cases": 1412, "patients": 300, "raters": {"mean": 3.12, "min": 1, "max": 4}}
    assert basis(data) == "1,412 cases of 300 patients, 3.1 raters per case"
    data = {"cases": 5, "patients": None, "raters": {"mean": 1.0, "min": 1, "max": 1}}
    assert basis(data) == "5 cases, 1 rater per case"
    pairs = curve(0.5, 0.4, (0.1, 0.05, 0.15))
    found = dict(
        answers(
            Results(
                {"accuracy": Estimate("accuracy", 0.7, 0.65, 0.75)}, curves={"disagreement": pairs}
            )
        )
    )
    assert "Two raters of the same case agree 60%" in found["Is it right?"]
    assert "expects too much disagreement" in found["Does it know when raters will differ?"]


# Markup ------------------------------------------------------------------------------------------


def test_text_is_never_markup() -> None:
    """Children and attributes are escaped; data cannot end their script element."""
    assert el("p", "<b>", title='"') == '<p title="&quot;">&lt;b&gt;</p>'
    block = json_block("data", ["</script><!--", "\u2028"])
    assert "</script><!--" not in block[:-9]
    inside = block[block.index(">") + 1 : -len("</script>")]
    assert json.loads(inside) == ["</script><!--", "\u2028"]


def test_hostile_names_are_shown_as_text(page: Page) -> None:
    """Scripts and images in class names and the title are words, never elements."""
    assert not {"img", "i"} & set(page.tags)
    assert len(page.scripts) == 2
    text = "".join(page.words)
    assert "<script>alert(1)</script>" in text and "<i>model</i>" in text
    assert any("onerror" in str(row) for row in json.loads(page.data)["charts"].values())
    assert "alert(" not in "".join(page.scripts[1:])


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    """No element refers to another file, and the policy allows two scripts by their hashes."""
    links = [(t, n, v) for t, n, v in page.attributes if n in ("src", "href", "action", "srcset")]
    assert [value for _, _, value in links if not value.startswith(("#", "data:,"))] == []
    policy = next(value for _, name, value in page.attributes if "default-src" in value)
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy
    for script in page.scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_page_can_be_found_ones_way_in(page: Page) -> None:
    """Landmarks, one main heading, a name for every chart, a label for every control."""
    assert page.tags.count("h1") == 1 and page.tags.count("main") == 1
    assert {"header", "footer", "section", "figcaption", "details", "caption"} <= set(page.tags)
    charts = [v for t, n, v in page.attributes if n == "class" and v == "chart"]
    named = [v for t, n, v in page.attributes if n == "aria-label" and t == "div" and len(v) > 15]
    assert len(named) >= len(charts) == len(json.loads(page.data)["charts"])
    ids = [v for _, n, v in page.attributes if n == "id"]
    assert len(ids) == len(set(ids))
    labelled = {v for t, n, v in page.attributes if t == "label" and n == "for"}
    assert labelled == {"what", "threshold"} <= set(ids)


def test_numbers_in_the_report_are_those_of_the_results(page: Page) -> None:
    """Every metric's title, value and meaning stand in the page; the data tables have the bins."""
    text = "".join(page.words)
    for e in reports.results().values():
        assert e.title in text and e.meaning in text
        assert f"{e.value:.3f}".replace("-", "−") in text
    assert "240 cases, 3 raters per case" in text
    assert "Every rater" in page.words and "One rater per case" in page.words


def test_the_file_is_small_and_whole(tmp_path: Path) -> None:
    """The file is below 1.2 MB, and nothing else is in the folder."""
    path = tmp_path / "report.html"
    reports.results().to_html(path)
    assert path.stat().st_size < 1_200_000
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_six_key_figures_of_two_classes() -> None:
    """The rule by hand: AUROC, Brier, ECE of the positive class, slope, net benefit, agreement."""
    random = np.random.default_rng(1)
    p = random.uniform(0.02, 0.98, 200)
    labels = rw.Labels.from_counts(np.stack((3 - (v := random.binomial(3, p)), v), axis=1))
    results = rw.evaluate(p, labels, "all", resamples=20)
    found = key_figures(results)
    assert [e.name for e in found] == [
        *("auroc", "brier", "classwise_ece", "calibration_slope", "net_benefit", "fleiss_kappa"),
    ]
    at = {e.name: e.value for e in found}
    # Of two classes the class-wise ECE is that of the positive one, as the page says.
    assert at["classwise_ece"] == pytest.approx(rw.ece(p, labels, question="positive"), abs=1e-12)
    assert at["net_benefit"] == pytest.approx(rw.net_benefit(p, labels), abs=1e-12)
    page = Page(report_html(results))
    cards = page.tags.index("ul", page.tags.index("main"))
    assert page.tags[cards:].index("li") > 0
    text = "".join(page.words)
    assert text.index("Does 90") < text.index("Key figures") < text.index(f"All {len(results)}")


def test_six_key_figures_of_more_classes_and_of_few_metrics() -> None:
    """Of three classes others have a place; where metrics are missing, the rest follow in order."""
    names = [e.name for e in key_figures(reports.results())]
    assert names == ["accuracy", "brier", "ece", "classwise_ece", "auccc", "fleiss_kappa"]
    few = rw.evaluate([0.9, 0.2, 0.7, 0.4], [1, 0, 0, 1], "nll,rms_ce,brier", resamples=0)
    assert [e.name for e in key_figures(few)] == ["brier", "nll", "rms_ce"]


def test_every_reference_is_written_out() -> None:
    """Authors, title and year of every paper in the catalog; no letters of ours on the page."""
    for row in CATALOG.values():
        for paper, _ in cited(row.reference):
            assert re.fullmatch(r"(?:[^.]\. )+.{12,}, (?:18|19|20)\d\d\.", paper), paper
    text = "".join(Page(report_html(reports.results())).words)
    assert "T. Mimori, K. Sasada" in text and "Epistemic loss (eqs 9–10)" in text
    assert not re.search(r"\b(LH|RECE|MR) (eqs?|section|Fig|Table)\b", text)


def test_raters_in_the_order_of_their_names() -> None:
    """Rater 2 comes before rater 10, whatever order the ratings came in."""
    ratings = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 1], [1, 0, 1]] * 20)
    who = np.array(["R10", "R2", "R1"] * 80)
    panel = rw.Labels.from_long(np.repeat(np.arange(80), 3), who, ratings.ravel(), num_classes=2)
    found = rw.evaluate(np.full((80, 2), 0.5), panel, "fleiss_kappa", resamples=0)
    words = Page(report_html(found)).words
    assert [word for word in words if word in ("R1", "R2", "R10")][:3] == ["R1", "R2", "R10"]
    assert "in the order of their names" in "".join(words)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.00017, "<\u00a00.001"), (-0.00017, ">\u00a0−0.001"), (0.0005, "0.001"), (0.0, "0.000")],
)
def test_numbers_for_people(value: float, shown: str) -> None:
    """No powers of ten: what rounds to 0 is below 0.001, and 0 itself is 0.000."""
    assert number(value) == shown


def test_a_report_of_one_number() -> None:
    """Without curves: no charts, no script but that which opens it for print, and a report."""
    bare = rw.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 0], "brier", resamples=0)
    html = report_html(bare)
    page = Page(html)
    assert len(page.scripts) == 1 and "beforeprint" in page.scripts[0]
    assert html.count("sha256-") == 1 and len(html) < 100_000
    assert "No verdict on calibration" in page.words
    assert "No intervals were made." in page.words
    assert "In brackets" not in html and "Corrected" not in html  # for there are none


def test_what_is_undefined_or_left_out_is_told() -> None:
    """The reasons of undefined metrics and the counts of dropped cases stand in the page."""
    bare = rw.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1], "auccc,epistemic_loss", resamples=0)
    counted = replace(bare, data={**bare.data, "dropped": {"unrated": 7}})
    text = "".join(Page(report_html(counted)).words)
    assert "Undefined: AUCCC: every prediction is right" in text
    assert "Left out: 7 cases (unrated)." in text


def test_all_the_further_parts_of_a_report() -> None:
    """Stability, raters, worklist and a model before calibration each have their section."""
    probs, labels = reports.cases()
    names = [f"<u>{i}</u>" for i in range(240)]
    ratings = [[0, 0, 1], [1, 1, 1], [0, 1, 2], [2, 2, 2]] * 10
    raters = rw.Labels.from_ratings(ratings, num_classes=3)
    page = Page(
        report_html(
            reports.results(),
            before=reports.results(),
            stability={"ece": rw.stability.subsample_curve("ece", probs, labels, repeats=2)},
            raters=rw.exchangeability_test(raters, permutations=99),
            worklist=worklist(
                rw.DirichletBelief(probs, np.full(240, 5.0)), names, class_names=reports.HOSTILE
            ),
        )
    )
    ids = {v for t, n, v in page.attributes if t == "section" and n == "id"}
    assert {"stability", "raters", "worklist", "map", "recalibration"} <= ids
    assert "u" not in page.tags
    assert any(word.startswith("<u>") for word in page.words)


def test_before_and_after() -> None:
    """Every metric with its change in words; without pairs no interval, and the page says so."""
    named = {"title": "Brier score", "direction": "lower"}
    before = Results({"brier": Estimate("brier", 0.3, 0.2, 0.4, **named)}, FACTS)
    after = Results({"brier": Estimate("brier", 0.25, 0.2, 0.3, **named)}, FACTS)
    page = Page(report_html(after, before=before))
    assert "−0.050" in page.words and any("no interval" in word for word in page.words)
    cases = {
        (-0.05, -0.08, -0.02): "better",
        (-0.05, -0.15, 0.05): "may be chance",
        (0.05, 0.02, 0.08): "worse",
        (0.0, 0.0, 0.0): "unchanged",
    }
    for (gap, low, high), words in cases.items():
        pair = rw.Difference("brier", "after", "before", gap, low, high, 0.01, 0.01)
        found = Page(report_html(before, after=after, differences=[pair]))
        assert words in found.words
        assert not any("no interval" in word for word in found.words)
    named = {"title": "AUROC", "direction": "higher"}
    both = [Results({"auroc": Estimate("auroc", v, 0.2, 0.9, **named)}, FACTS) for v in (0.6, 0.7)]
    pair = rw.Difference("auroc", "after", "before", 0.1, 0.05, 0.15, 0.01, 0.01)
    found = Page(report_html(both[0], after=both[1], differences=[pair]))
    assert "better" in found.words and "worse" not in found.words
    with pytest.raises(rw.InvalidInputError, match="before, after: must be one of them"):
        report_html(after, before=before, after=before)


def test_interchangeable_raters_come_with_the_results(tmp_path: Path) -> None:
    """Where it is known who said what, the results hold the test and the report tells it.

    Rater "<c>" says class 1 of all forty cases, of which the others give it half (by construction).
    """
    ratings = [[i % 2, (i // 2) % 2, (i // 4) % 2, 1] for i in range(40)]
    items, raters = np.repeat(np.arange(40), 4), ["a", "b", "d", "<c>"] * 40
    labels = rw.Labels.from_long(items, raters, np.ravel(ratings), num_classes=2)
    found = rw.evaluate(np.full((40, 2), 0.5), labels, "fleiss_kappa,brier", resamples=0)
    found.to_json(tmp_path / "r.json")
    again = Results.from_json(tmp_path / "r.json")
    test = rw.ExchangeabilityTest.from_dict(again.data["exchangeability"])
    assert "<c>" in test.breaking
    assert test.raters[3].excess == {"0": -0.5, "1": 0.5}
    assert test.p_value == rw.exchangeability_test(labels).p_value
    text = "".join(Page(report_html(again, notes={"raters": "A note."})).words)
    assert "Rater <c> says “1” 50.0 percentage points more often than the others do" in text
    assert "A note." in text
    unnamed = rw.Labels.from_counts(labels.counts)
    for given, metrics in ((unnamed, "fleiss_kappa"), (labels, "brier")):
        other = rw.evaluate(np.full((40, 2), 0.5), given, metrics, resamples=0)
        assert "exchangeability" not in other.data


def test_raters_are_listed_in_the_order_of_their_numbers() -> None:
    """2 before 10; a raised digit is no number, and no reason not to write the report."""
    names = ["R10", "R2", "R1\u00b2"]
    labels = rw.Labels.from_long(
        np.repeat(np.arange(30), 3), names * 30, [0, 1, 1, 1, 0, 1, 1, 1, 0] * 10, num_classes=2
    )
    found = rw.evaluate(np.full((30, 2), 0.5), labels, "krippendorff_alpha", resamples=0)
    text = "".join(Page(report_html(found)).words)
    assert text.index("R1\u00b2") < text.index("R2") < text.index("R10")


def test_raters_of_whom_none_stands_out() -> None:
    """The same labels by turns: the raters look interchangeable."""
    ratings = [[0, 1, 1], [1, 0, 1], [1, 1, 0]] * 10
    labels = rw.Labels.from_ratings(ratings, num_classes=2)
    found = rw.evaluate(np.full((30, 2), 0.5), labels, "krippendorff_alpha", resamples=0)
    text = "".join(Page(report_html(found)).words)
    assert "The raters look interchangeable: p\u00a0=\u00a01.00" in text


def test_without_altair_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report without altair is an error that names the extra."""
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(rw.MissingExtraError, match=r"raterwise\[report\]"):
        report_html(reports.results())


# Comparison --------------------------------------------------------------------------------------


def test_the_comparison_as_a_page() -> None:
    """Models' names are text; every difference stands in the page; the map has both models."""
    found = reports.comparison()
    page = Page(comparison_html(found))
    text = "".join(page.words)
    assert len(page.scripts) == 2
    assert "sharp − <script>alert(3)</script>" in text
    for d in found.differences:
        if found.models["sharp"][d.metric].direction != "none":
            assert f"[{number(d.low)}, {number(d.high)}]" in text
    assert set(json.loads(page.data)["charts"]) == {
        *("reliability-chart", "ccc-chart", "risk-chart", "map-chart"),
    }


def test_the_comparison_begins_with_what_differs() -> None:
    """The first sentence is the terminal's; beside who is best stands how sure that is."""
    models = {"a": [0.9, 0.2] * 10, "b": [0.8, 0.3] * 10, "c": [0.6, 0.4] * 10}
    found = rw.compare(models, [1, 0] * 10, "brier", resamples=20)
    p = {("a", "b"): 0.3, ("a", "c"): 0.02, ("b", "c"): 0.4}
    given = (replace(d, adjusted_p_value=p[d.first, d.second]) for d in found.differences)
    words = " ".join(Page(comparison_html(replace(found, differences=tuple(given)))).words)
    assert words.index("a is better than c in Brier score") < words.index("No verdict")
    assert "a is the best in 100% of the resamples (largest adjusted p\u00a0=\u00a00.30)." in words
    pair = rw.compare({"a": models["a"], "c": models["c"]}, [1, 0] * 10, "brier", resamples=20)
    given = (replace(d, adjusted_p_value=0.25) for d in pair.differences)
    words = " ".join(Page(comparison_html(replace(pair, differences=tuple(given)))).words)
    assert "of the resamples (adjusted p\u00a0=\u00a00.25)." in words
    assert "No difference that these cases can show" in words.partition("Based on")[0]


def test_captions_speak_of_bands_that_are_drawn() -> None:
    """Without resamples no chart has a band; with them the captions say of what level."""
    labels = rw.Labels.from_counts([[0, 3], [3, 0], [1, 2], [2, 1]] * 10)
    probs = [0.9, 0.2, 0.8, 0.1] * 10
    told = "Shaded: 90% interval at each point"
    for resamples, times in ((0, 0), (20, 3)):
        results = rw.evaluate(probs, labels, "auroc,auccc", resamples=resamples, level=0.9)
        assert report_html(results).count(told) == times
    for patients, drawn in (([1] * 40, False), (None, True)):
        results = rw.evaluate(probs, labels, "ece", groups=patients, resamples=20)
        assert ("so, with an interval." in report_html(results)) is drawn
        assert ("how often raters say so. On" in report_html(results)) is not drawn
    both = rw.compare({"a": probs, "b": probs}, labels, "auroc,auccc", resamples=20, level=0.9)
    assert comparison_html(both).count(told) == 3


def test_the_comparison_draws_the_decision_curves_of_all_models() -> None:
    """Two classes: a curve per model, one more rater and everybody; a table with dcurves' numbers.

    At one half the net benefit is (true - false positives) / N: 4 cases, 3 raters who agree.
    """
    labels = rw.Labels.from_counts([[0, 3], [3, 0], [0, 3], [3, 0]] * 5)
    models = {"all right": [0.9, 0.2, 0.8, 0.1] * 5, "one off": [0.9, 0.6, 0.8, 0.1] * 5}
    page = comparison_html(rw.compare(models, labels, "auroc,brier", resamples=30))
    assert "What does acting on them do?" in page
    row = page[page.index('<th scope="row">50') :].split("</tr>")[0]
    assert [float(cell) for cell in re.findall(r"<td[^>]*>([^<]+)</td>", row)] == [
        0.5,
        0.25,
        0.5,
        0,
    ]
    three = rw.compare({"a": np.full((6, 3), 1 / 3), "b": np.eye(3)[[0, 1, 2] * 2] * 0.8 + 0.2 / 3},
                       [0, 1, 2] * 2, "brier", resamples=10)  # fmt: skip
    assert "What does acting on them do?" not in comparison_html(three)


def test_names_from_right_to_left_keep_their_places() -> None:
    """Each name in a list has a bdi element, as the HTML standard has it, or two would swap."""
    names = ["שפיר", "ממאיר"]
    labels = rw.Labels.from_counts([[0, 3], [3, 0]] * 10, class_names=names)
    models = {"ישן": [0.9, 0.2] * 10, "חדש": [0.7, 0.4] * 10}
    found = rw.compare(models, labels, "brier", resamples=40)
    classes = "<p>Classes: <bdi>שפיר</bdi>, <bdi>ממאיר</bdi></p>"
    assert classes in report_html(found.models["ישן"])
    page = comparison_html(found)
    assert classes in page and "<h3><bdi>ישן</bdi> − <bdi>חדש</bdi></h3>" in page


def test_the_comparison_overlays_the_positive_class() -> None:
    """Of two classes the dots are at the probability of yes; where none is there, at confidence."""
    labels = rw.Labels.from_counts([[0, 3], [3, 0]] * 10, class_names=["no", "<b>yes"])
    models = {"a": [0.9, 0.2] * 10, "b": [0.7, 0.4] * 10}

    def page_of(metrics: str, **options: Any) -> Page:
        return Page(comparison_html(rw.compare(models, labels, metrics, resamples=40, **options)))

    def dots(page: Page) -> set[tuple[str, float, float]]:
        data = json.loads(page.data)["charts"]["reliability-chart"]["data"]
        rows = [row for part in data for row in part.get("values", []) if "predicted" in row]
        return {(row["name"], row["predicted"], row["observed"]) for row in rows}

    yes = {("a", 0.9, 1), ("a", 0.2, 0), ("b", 0.7, 1), ("b", 0.4, 0)}
    page = page_of("ece,classwise_ece")
    assert dots(page) == yes and "thinks “<b>yes” is" in "".join(page.words)
    page = page_of("ece", question="positive")
    assert dots(page) == yes and "thinks a yes is" in "".join(page.words)
    sure = {("a", 0.9, 1), ("a", 0.8, 1), ("b", 0.7, 1), ("b", 0.6, 1)}
    page = page_of("ece")
    assert dots(page) == sure and "How sure each model is" in "".join(page.words)


def test_the_comparison_as_tables() -> None:
    """CSV has every digit; Markdown and LaTeX escape what they must and mark the best in bold."""
    estimates = {
        "a|b_c": {
            "brier": Estimate("brier", 0.25, 0.2, 0.3, title="Brier & 50%", direction="lower")
        },
        "two": {"brier": Estimate("brier", 0.3, title="Brier & 50%", direction="lower")},
    }
    found = rw.Comparison(
        {name: Results(e) for name, e in estimates.items()},
        (rw.Difference("brier", "a|b_c", "two", -0.05, -0.1, 1 / 3, 0.2, 0.4),),
        {},
    )
    assert as_markdown(found) == (
        "| Metric | a\\|b\\_c | two |\n| --- | --- | --- |\n"
        "| Brier & 50% | **0.250** [0.200, 0.300] | 0.300 |\n"
    )
    assert as_latex(found) == (
        "\\begin{tabular}{lcc}\n\\toprule\nMetric & a|b\\_c & two \\\\\n\\midrule\n"
        "Brier \\& 50\\% & \\textbf{0.250} {\\small [0.200, 0.300]} & 0.300 \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
    )
    rows = list(csv.DictReader(as_csv(found).splitlines()))
    assert rows[0]["first"] == "a|b_c" and float(rows[0]["high"]) == 1 / 3


# Command line ------------------------------------------------------------------------------------


def run(*words: str) -> Result:
    """Run the command line within this process."""
    return CliRunner().invoke(app, list(words))


def write_predictions(path: Path, probs: np.ndarray, order: np.ndarray, extra: str = "") -> None:
    """Write a table of predictions with the cases in some order."""
    lines = ["case,prob_a,prob_b,prob_c"]
    lines += [f"n{i},{probs[i, 0]!r},{probs[i, 1]!r},{probs[i, 2]!r}" for i in order]
    text = "\n".join(lines).replace("np.float64(", "").replace(")", "") + extra
    path.write_text(text + "\n", encoding="utf-8")


@pytest.fixture(name="folder")
def folder_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models of the same cases in different orders, and the ratings."""
    probs, labels = reports.cases()
    forward = np.arange(len(probs))
    write_predictions(tmp_path / "sharp.csv", probs, forward)
    write_predictions(tmp_path / "same.csv", probs, forward[::-1])
    write_predictions(tmp_path / "blunt.csv", np.full_like(probs, 1 / 3), forward)
    write_predictions(tmp_path / "short.csv", probs, forward[1:])
    write_predictions(tmp_path / "long.csv", probs, forward, "\nother,0.2,0.3,0.5")
    rows = [f"n{i},{a},{b},{c}" for i, (a, b, c) in enumerate(labels.counts)]
    text = "\n".join(["case,count_a,count_b,count_c", *rows]) + "\n"
    (tmp_path / "ratings.csv").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_compare_on_the_command_line(folder: Path) -> None:
    """Differences in every format; two orders of the same cases are the same model."""
    done = run(
        *("compare", "sharp.csv", "blunt.csv", "same.csv", "--ratings", "ratings.csv"),
        *("--metrics", "brier,ece", "--resamples", "50", "--names", "A,<b>,C"),
        *("--out", "c.json", "--out", "c.html", "--csv", "c.csv", "--latex", "c.tex"),
        *("--markdown", "c.md"),
    )
    assert done.exit_code == 0, done.output
    assert "A - <b>" in done.output
    content = json.loads((folder / "c.json").read_text(encoding="utf-8"))
    assert content["schema_version"] == 1
    rows = {(r["metric"], r["first"], r["second"]): r for r in content["differences"]}
    assert rows["brier", "A", "C"]["difference"] == pytest.approx(0, abs=1e-12)
    probs, labels = reports.cases()
    gap = rw.brier(probs, labels) - rw.brier(np.full_like(probs, 1 / 3), labels)
    assert rows["brier", "A", "<b>"]["difference"] == pytest.approx(gap)
    assert (folder / "c.tex").read_text(encoding="utf-8").startswith("\\begin{tabular}{lccc}")
    assert (folder / "c.md").read_text(encoding="utf-8").startswith("| Metric | A | &lt;b> | C |")
    assert len((folder / "c.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 3
    assert "&lt;b&gt;" in (folder / "c.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sharp.csv", "must be at least two files; got 1"),
        ("sharp.csv short.csv", "n0"),
        ("sharp.csv long.csv", "other"),
        ("sharp.csv results.json", "must be all results or all tables; results.json is of results"),
        ("sharp.csv blunt.csv --names A", "--names: must name each of the 2 files; got 1"),
        ("sharp.csv blunt.csv --names A,A", "--names: must differ"),
        ("sharp.csv blunt.csv --out c.pdf", "--out: must end in .json or .html; got c.pdf"),
    ],
)
def test_what_compare_refuses(folder: Path, words: str, message: str) -> None:
    """One line on stderr that says what is wrong, and exit code 2."""
    done = run("compare", *words.split(), "--ratings", "ratings.csv", "--resamples", "20")
    assert done.exit_code == 2
    assert message in done.output


def test_report_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result file becomes a page with the versions that the file names; --open opens it."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    source = tmp_path / "results.json"
    reports.results().to_json(source)
    content = json.loads(source.read_text(encoding="utf-8"))
    content["versions"]["numpy"] = "0.0.7"
    source.write_text(json.dumps(content), encoding="utf-8")
    out = tmp_path / "a report.html"
    done = run(
        "report", str(source), "-o", str(out), "--single", str(source), "--title", "M", "--open"
    )
    assert done.exit_code == 0, done.output
    page = Page(out.read_text(encoding="utf-8"))
    assert "M" in page.words and "numpy 0.0.7" in "".join(page.words)
    assert opened == [out.resolve().as_uri()]


def test_everything_else_on_the_command_line(tmp_path: Path) -> None:
    """Stability, a worklist and results after a recalibration come from files, with pairs.

    The worklist that is read is the one that was written; results of other cases have no pairs.
    """
    probs, labels = reports.cases()
    reports.results().to_json(tmp_path / "results.json")
    blunt = np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True)
    rw.evaluate(blunt, labels, "brier,ece", resamples=100).to_json(tmp_path / "after.json")
    rw.evaluate(blunt[:50], labels.take(np.arange(50)), "brier", resamples=100).to_json(
        tmp_path / "few.json"
    )
    belief = rw.DirichletBelief([[0.5, 0.5, 0], [0.9, 0.1, 0]], concentration=[19.0, 1.0])
    listed = worklist(belief, ["<u>1</u>", "2, left"], class_names=["a", "if_b", "prob_c, d"])
    listed.to_csv(tmp_path / "worklist.csv")
    again = Worklist.from_csv(tmp_path / "worklist.csv")
    assert (again.case_ids, again.class_names) == (listed.case_ids, listed.class_names)
    assert np.array_equal(again.posterior, listed.posterior, equal_nan=True)
    found, _ = measure(predictions_of(probs, labels), ["ece"], fractions=[0.5, 1], repeats=2)
    content = {"schema_version": 1, "metrics": {"ece": [one.to_dict() for one in found]}}
    (tmp_path / "stability.json").write_text(json.dumps(content), encoding="utf-8")
    files = [f"{name}={tmp_path / file}" for name, file in (
        ("--after", "after.json"), ("--stability", "stability.json"),
        ("--worklist", "worklist.csv"), ("--out", "r.html"),
    )]  # fmt: skip
    done = run("report", str(tmp_path / "results.json"), *files)
    assert done.exit_code == 0, done.output
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "<u>1</u>" in page.words and "u" not in page.tags
    text = "".join(page.words)
    assert "Expected calibration error, one rater" in text
    assert "The change is after minus before" in text
    done = run("report", str(tmp_path / "results.json"), *files[1:],
               f"--before={tmp_path / 'few.json'}")  # fmt: skip
    assert done.exit_code == 0 and "The differences have no intervals: " in done.output
    assert "other numbers of cases: 240 and 50" in done.output


def test_a_recalibration_of_few_resamples_says_so(tmp_path: Path) -> None:
    """One pair of 19 resamples cannot have a p below 2 / 20; by hand 39 are enough for 0.05."""
    y = np.arange(200) % 4 == 0
    for name, p in (("before", 0.9), ("after", 0.25)):
        found = rw.evaluate(np.full(200, p), y, "ece,brier", resamples=19)
        found.to_json(tmp_path / f"{name}.json")
    before = f"--before={tmp_path / 'before.json'}"
    done = run("report", str(tmp_path / "after.json"), before, f"--out={tmp_path / 'r.html'}")
    assert done.exit_code == 0 and "resamples: 19 are too few for 1 pair" in done.output
    assert "cannot be below 0.1," in done.output and "39 are enough" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--before x.json --after x.json", "--before, --after: must be one of them; got both"),
        (
            "--worklist ratings.csv",
            "ratings.csv: is not a list that raterwise worklist --out wrote",
        ),
        ("--worklist bad.csv", "bad.csv: every line must have as many values as the first"),
        ("--stability results.json", "results.json: is not what raterwise stability --out writes"),
    ],
)
def test_what_report_refuses(folder: Path, options: str, message: str) -> None:
    """One line on stderr that says what is wrong, and exit code 2."""
    reports.results().to_json(folder / "results.json")
    (folder / "bad.csv").write_text("rank,case\n1\n", encoding="utf-8")
    done = run("report", "results.json", *options.split(), "-o", "r.html")
    assert done.exit_code == 2
    assert message in done.output
    assert not (folder / "r.html").exists()


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    """The message names the file; the exit code is 2."""
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    done = run("report", str(tmp_path / "x.json"), "-o", str(tmp_path / "r.html"))
    assert done.exit_code == 2
    assert re.search(r"x\.json: is not a raterwise result file", done.output)
    assert not (tmp_path / "r.html").exists()


def test_before_and_after_are_drawn_of_the_positive_class() -> None:
    """Of two classes the diagram of a recalibration is that of the report: the positive class."""
    random = np.random.default_rng(3)
    p = random.uniform(0.05, 0.95, 120)
    y = (random.random(120) < p).astype(int)
    before, after = (
        rw.evaluate(q, y, "ece,classwise_ece", class_names=["no", "edema"], resamples=20)
        for q in (p, p**1.5)
    )
    page = report_html(after, before=before)
    part = page[page.index('id="recalibration"') :]
    assert "Predicted probability of “edema”, and how often raters say so" in part
    assert "How sure the model is of its predicted class" not in part


def test_figures_of_a_part_of_the_cases_say_so() -> None:
    """A verdict that rests on a bin names the bin beside its means."""
    from raterwise.report.verdicts import _after_headline

    told = "says *mass* too often where it predicts 68% to 100%: on average 82%; raters say so"
    assert _after_headline(told).startswith("Where it predicts 68% to 100%: on average")


def test_versions_are_those_of_the_results_everywhere(tmp_path: Path) -> None:
    """Results made elsewhere: no section names what is installed here."""
    page = report_html(reports.results(), versions={"numpy": "0.0.7"})
    assert "numpy 0.0.7" in page and f"numpy {np.__version__}" not in page

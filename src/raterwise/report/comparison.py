"""A report on several models that were judged on the same cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from raterwise.curves import ThresholdCurve
from raterwise.curves.clinical_tables import DecisionCurve
from raterwise.io.files import write_text_atomically
from raterwise.report import charts, operating_charts, sections
from raterwise.report.acceptance import has_both
from raterwise.report.findings import differences_by_finding
from raterwise.report.headlines import LEVEL, differences_in_words
from raterwise.report.markup import Html, data_table, el, names_apart
from raterwise.report.method import method, provenance
from raterwise.report.page import page
from raterwise.report.sections import Charts, figure, paired_table, section
from raterwise.report.words import (
    basis,
    best_of,
    bracketed,
    classes_in_words,
    joined,
    number,
    p_value,
    percent,
    same_on_these_cases,
    shaded,
    warnings_by_model,
)
from raterwise.results import Estimate, Results

TITLE = "Which model's probabilities can be trusted?"
TELLING = ("nll", "brier", "epistemic_loss", "calibration_error", "ece", "auccc", "accuracy")
"""The metrics whose ranking the summary tells, where they are there."""
TABLE_STEP = 5
"""Of how many thresholds the table of net benefits shows one."""


def write_comparison(
    comparison: Any,
    path: str | PathLike[str],
    title: str = TITLE,
    *,
    findings: Mapping[str, Any] | None = None,
) -> None:
    """Write a report on several models to one self-contained HTML file.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    path : str or path
        The file to write. It is written completely or not at all.
    title : str, default "Which model's probabilities can be trusted?"
        The heading.
    findings : mapping of str to Comparison, optional
        The comparison of each finding, if `comparison` is of their means.

    See Also
    --------
    report.comparison_html : the page as text.
    compare : makes the comparison.

    Examples
    --------
    >>> import raterwise as rw
    >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    >>> path = getfixture("tmp_path") / "models.html"
    >>> write_comparison(rw.compare(models, [1, 0] * 20, "brier", resamples=50), path, "Two models")
    >>> "Two models" in path.read_text(encoding="utf-8")
    True
    """
    write_text_atomically(path, comparison_html(comparison, title, findings=findings))


def comparison_html(
    comparison: Any, title: str = TITLE, *, findings: Mapping[str, Any] | None = None
) -> str:
    """Return a report on several models as HTML.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    title : str, default "Which model's probabilities can be trusted?"
        The heading.
    findings : mapping of str to Comparison, optional
        The comparison of each finding, if `comparison` is of their means.

    Returns
    -------
    str
        A page that opens without a network.

    See Also
    --------
    report.write_comparison : writes it to a file.

    Examples
    --------
    >>> import raterwise as rw
    >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    >>> html = comparison_html(rw.compare(models, [1, 0] * 20, "brier", resamples=50))
    >>> "sharp is the best in" in html
    True
    """
    found = Charts()
    models: Mapping[str, Results] = comparison.models
    first = next(iter(models.values()))
    content = [
        _summary(comparison, first),
        _metrics(models),
        _differences(comparison, first),
        differences_by_finding(findings, comparison),
        _ranking(comparison),
        _reliability(models, found),
        _thresholds(models, found),
        _acting(models, found),
        sections.dispersion(models, found),
        method(first, first.to_dict()["versions"]),
        provenance(comparison.provenance, first.to_dict()["versions"], first.data),
    ]
    return page(title, classes_in_words(first.data), content, found)


def _summary(comparison: Any, first: Results) -> Html:
    lines = []
    for metric in TELLING:
        shares = comparison.ranking.get(metric)
        if shares:
            title = el("strong", f"{_estimate(comparison, metric).title}: ")
            lines.append(el("li", title, _best_in_words(shares, comparison, metric)))
    # Findings have no curve in common.
    judged = {name: results for name, results in comparison.models.items() if not results.findings}
    rests = el("p", f"Based on {basis(first.data)}.", class_="basis")
    differ = differences_in_words(comparison)
    first_words = el("strong", differ) if len(comparison.models) == 2 else differ
    told = [el("p", first_words) if differ else None, sections.verdicts(judged) if judged else None]
    return section(
        "verdict",
        "Verdict",
        el("div", told, rests, class_="panel"),
        [el("h3", "Which is the best?"), el("ul", lines)] if lines else None,
        sections.warned(*warnings_by_model(comparison.models)),
    )  # fmt: skip


def _best_in_words(shares: Mapping[str, float], comparison: Any, metric: str) -> str:
    """Return who is best most often, with the p-value of the difference that is least clear."""
    names = best_of(shares)
    if len(names) > 1:
        return f"{joined(names)} are equally often the best."
    best = names[0]
    against = [d.adjusted_p_value for d in comparison.differences
               if d.metric == metric and best in (d.first, d.second)]  # fmt: skip
    largest = "largest adjusted p" if len(against) > 1 else "adjusted p"
    p = f" ({p_value(max(against), largest)})" if against else ""
    return f"{best} is the best in {percent(shares[best])} of the resamples{p}."


def _metrics(models: Mapping[str, Results]) -> Html:
    first = next(iter(models.values()))
    rows = []
    for e in first.values():
        cells = [el("td", sections.value_of(results.get(e.name))) for results in models.values()]
        rows.append(el("tr", sections.metric_name(e), cells))
    wide = paired_table(("Metric", *models), rows, "All metrics")
    return section("metrics", "All metrics", wide)


def _differences(comparison: Any, first: Results) -> Html | None:
    """Return the differences pair by pair, each pair to be unfolded where there are several."""
    pairs: dict[tuple[str, str], list[Any]] = {}
    for d in comparison.differences:
        if _estimate(comparison, d.metric).direction != "none":  # else it is of the raters alone
            pairs.setdefault((d.first, d.second), []).append(d)
    if not pairs:
        return None
    corrected = any(d.debiased is not None for d in comparison.differences)
    level = percent(first.options.get("level", 0.95))
    note = (
        "First minus second model; the same cases are resampled for both. In brackets, the "
        f"{level} interval. p is two-sided, adjusted for the number of pairs by Holm's method; "
        f"bold where it is at most {LEVEL:g}."
    )
    if corrected:
        note += (
            " Chance pushes calibration errors up, and more in some models than in others. "
            "“Corrected” is the difference without that; the interval and p are for it."
        )
    if alike := same_on_these_cases(comparison):
        note += f" {alike}"
    shown = [_pair(comparison, pair, found, folded=len(pairs) > 1) for pair, found in pairs.items()]
    return section("differences", "Do they differ?", el("p", note, class_="note"), shown)


def _pair(
    comparison: Any, pair: tuple[str, str], found: Sequence[Any], *, folded: bool
) -> Sequence[Html]:
    """Return the differences of two models, metric by metric."""
    corrected = any(d.debiased is not None for d in found)
    rows = [
        el("tr",
           el("th", _estimate(comparison, d.metric).title, scope="row"),
           el("td", number(d.difference), el("small", bracketed(d).strip())),
           el("td", "" if d.debiased is None else number(d.debiased)) if corrected else None,
           el("td", p_value(d.adjusted_p_value)),
           class_="clear" if d.adjusted_p_value <= LEVEL else None)
        for d in found
    ]  # fmt: skip
    columns = ["Metric", "Difference", *(["Corrected"] if corrected else []), "p"]
    title = names_apart(pair, " − ")
    wide = paired_table(columns, rows, " − ".join(pair), "metrics paired differences")
    clear = sum(d.adjusted_p_value <= LEVEL for d in found)
    words = f"{clear} of {len(found)} metrics differ by more than chance"
    if not folded:
        return [el("h3", title), el("p", f"{words}.", class_="note"), wide]
    return [el("details", el("summary", el("strong", title), f": {words}"), wide)]


def _ranking(comparison: Any) -> Html | None:
    """Return in how many resamples each model is the best, for every metric with a better side."""
    if not comparison.ranking:
        return None
    names = list(comparison.models)
    rows = []
    for metric, shares in comparison.ranking.items():
        best = best_of(shares)
        cells = [
            el("td", el("strong", text) if name in best else text)
            for name in names
            for text in [percent(shares[name]) if name in shares else ""]
        ]
        rows.append(el("tr", el("th", _estimate(comparison, metric).title, scope="row"), cells))
    wide = paired_table(("Metric", *names), rows, "Ranking")
    note = (
        "The share of resamples in which each model is best. Near 100%, another sample of "
        "cases would choose the same model; where the shares are similar, the choice is open."
    )
    return section("ranking", "Would other cases choose the same model?",
                   el("p", note, class_="note"), wide)  # fmt: skip


def _estimate(comparison: Any, metric: str) -> Estimate:
    """Return the metric of the first model that has it."""
    found: Estimate = next(r[metric] for r in comparison.models.values() if metric in r)
    return found


def _reliability(models: Mapping[str, Results], found: Charts) -> Html | None:
    """Return the diagrams of all models: of the positive class, of more than two the predicted."""
    each = {name: sections.reliability_curves(results) for name, results in models.items()}
    what = next((title for curves in each.values() for title in curves), None)
    classes = next(iter(models.values())).data.get("classes")
    if what is None or (what.startswith("Class: ") and classes != 2):
        return None
    curves = {name: of_one[what] for name, of_one in each.items() if what in of_one}
    if what == "Predicted class":
        axes, gap = ("Confidence", "Raters who agree"), "confidence minus agreement"
        caption = (
            "How sure each model is, and how often the raters agree. Below the dashed line a model "
            "is too sure."
        )
    else:
        axes, gap = ("Predicted probability", "Raters who say so"), "predicted minus observed"
        said = f"“{what.removeprefix('Class: ')}”" if what.startswith("Class: ") else "a yes"
        caption = (
            f"How probable each model thinks {said} is, and how often the raters say so. Below the "
            "dashed line a model says it too often."
        )
    spec = charts.reliability(curves, x=axes[0], y=axes[1], overlay=True)
    words = "; ".join(f"{name}: {gap} {number(curve.gap)}" for name, curve in curves.items())
    chart = found.place("reliability-chart", spec, f"Reliability diagrams. {words}.")
    table = sections.bins_table(curves)
    title = "Does 90% mean 90%?"
    return section("reliability", title, figure(chart, caption, table))


def _thresholds(models: Mapping[str, Results], found: Charts) -> Html | None:
    curves = {
        name: curve
        for name, results in models.items()
        if "thresholds" in results.curves
        and has_both(curve := ThresholdCurve.from_dict(results.curves["thresholds"]))
    }
    if not curves:
        return None
    # Results keep some points of a curve, and the area under all of them.
    whole = {name: models[name].get("auccc") for name in curves}
    areas = [
        (name, number(curve.area if (e := whole[name]) is None else e.value))
        for name, curve in curves.items()
    ]
    words = "; ".join(f"{name}: {area}" for name, area in areas)
    ccc = found.place("ccc-chart", charts.ccc(curves), f"CCC curves; area under each: {words}.")
    final = "; ".join(f"{name}: {percent(curve.risk[-1])}" for name, curve in curves.items())
    first = next(iter(models.values()))
    band = shaded(first, drawn=any(curve.risk_low is not None for curve in curves.values()))
    risk = found.place(
        "risk-chart",
        charts.risk_coverage(curves),
        f"Risk-coverage curves; wrong when all are accepted: {final}.",
    )
    pair = el(
        "div",
        figure(ccc, "Confidence-classification characteristic (CCC): right predictions accepted, "
               f"against wrong ones that slip through.{band}",
               data_table(("Model", "AUCCC"), areas, "Areas")),
        figure(risk, f"The more predictions are accepted, the more of them are wrong.{band}"),
        class_="pair",
    )  # fmt: skip
    return section("thresholds", "Do they know when they are wrong?", pair)


def _acting(models: Mapping[str, Results], found: Charts) -> Html | None:
    """Return the decision curves of the models, of which there are some of two classes."""
    curves = {
        name: DecisionCurve.from_dict(results.curves["operating"])
        for name, results in models.items()
        if "operating" in results.curves
    }
    if not curves:
        return None
    first = next(iter(curves.values()))
    benefits = {name: curve.model.net_benefit.value for name, curve in curves.items()}
    if first.raters is not None:
        benefits[operating_charts.RATER] = first.raters.net_benefit.value
    benefits[operating_charts.ALL] = first.treat_all
    rows = [
        (percent(t), *(number(values[i]) for values in benefits.values()))
        for i, t in enumerate(first.thresholds)
        if (i + 1) % TABLE_STEP == 0
    ]
    table = data_table(("Act from", *benefits), rows, "Net benefit")
    told = (
        f"Net benefit of acting on “{first.name}”: positives acted on, less the false alarms that "
        "the threshold says they are worth. The dashed line is acting on nobody."
    )
    if first.raters is not None:
        told += " “One more rater” is acting on what another rater says, judged by the others."
    bands = [curve.model.net_benefit.low for curve in curves.values()]
    told += shaded(next(iter(models.values())), drawn=any(np.isfinite(b).any() for b in bands))
    half = round(len(first.thresholds) / 2) - 1
    words = "; ".join(f"{name}: {number(values[half])}" for name, values in benefits.items())
    words = f"Decision curves. Net benefit at {percent(first.thresholds[half])}: {words}."
    chart = found.place("decisions-chart", operating_charts.decisions(curves), words)
    return section("acting", "What does acting on them do?", figure(chart, told, table))

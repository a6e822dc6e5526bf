"""The key figures of a report: six, by one rule, so that nobody picks the flattering ones.

And answers, in sentences, to what people ask of a model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from raterwise.catalog import CATALOG
from raterwise.curves import ReliabilityCurve
from raterwise.curves.clinical_tables import DecisionCurve
from raterwise.report.markup import Html, el
from raterwise.report.words import (
    better,
    bracketed,
    counting,
    estimated,
    hidden,
    level_of,
    number,
    percent,
    positive_class,
    unit_of,
)
from raterwise.results import Estimate, Results

LESS_CHANCE = (
    "Chance pushes a calibration error up: even a perfectly calibrated model would not reach 0 on "
    "these cases. “Corrected” is the error without that part, and the interval is for it."
)
HOW_MANY = 6
COLUMNS = 5
"""How many of them have room beside the name of a finding, on paper, too."""
OF_RATERS = "Rater agreement"
"""The group of metrics that no model is asked for."""
START = 0.5
"""The threshold where none was asked for."""
RULES = (
    "Key figures are the same six in every report of two classes: AUROC, Brier score, class-wise "
    "ECE (with two classes, the ECE of the positive one), calibration slope, net benefit and how "
    "far the raters agree.",
    "Key figures are the same six in every report of more than two classes: accuracy, Brier score, "
    "ECE, class-wise ECE, AUCCC and how far the raters agree.",
)
OTHERWISE = " Where one is missing, the next metric of the full list takes its place."


def key_figures(results: Results) -> list[Estimate]:
    """Return the six figures to show first: those with a place, then the others in their order.

    >>> found = {name: Estimate(name, 0.5, direction="lower") for name in ("nll", "ece")}
    >>> [e.name for e in key_figures(Results(found, data={"classes": 3}))]
    ['ece', 'nll']
    """
    more = 0 if _of_two(results) else 1
    at = _at_threshold(results)
    there = {e.name: e for e in (*results.values(), *at) if e.value is not None}
    chosen: dict[int, Estimate] = {}
    for name, e in there.items():
        place = CATALOG[name].headline[more] if name in CATALOG else None
        if place is not None:
            chosen.setdefault(place, e)
    found = [chosen[place] for place in sorted(chosen)]
    rest = [e for e in there.values() if e not in found and e.direction != "none"]
    return (found + rest)[:HOW_MANY]


def names_of_figures(results: Results) -> list[str]:
    """Return which metrics to show of every finding: the first key figures, so by the same rule."""
    return [e.name for e in key_figures(results) if e.name in results][:COLUMNS]


def names_of_differences(means: Any) -> list[str]:
    """Return which metrics to show where models are compared: key figures that have a difference.

    How far raters agree does not depend on the model, and is none.
    """
    shown = [e for e in key_figures(next(iter(means.models.values()))) if e.group != OF_RATERS]
    there = {d.metric for d in means.differences}
    return [e.name for e in shown if e.name in there][:COLUMNS]


def _of_two(results: Results) -> bool:
    return bool(results.findings) or results.data.get("classes") == 2


def asked_threshold(results: Results) -> float:
    """Return the threshold that the metrics were asked for, where it is one."""
    own = (results.options.get("options") or {}).values()
    told = {given["threshold"] for given in own if "threshold" in given}
    shared = results.options.get("threshold")
    told |= set() if shared is None else {shared}
    return float(told.pop()) if len(told) == 1 else START


def _at_threshold(results: Results) -> list[Estimate]:
    """Return what its curve says at the threshold, where that is no metric of its own."""
    content = results.curves.get("operating")
    if content is None:
        return []
    curve, found = DecisionCurve.from_dict(content), []
    i = round(100 * min(max(round(asked_threshold(results), 2), 0.01), 0.99)) - 1
    for name, band in vars(curve.model).items():
        row, value = CATALOG.get(name), float(band.value[i])
        if row is None or name in results or row.headline == (None, None) or math.isnan(value):
            continue
        low, high = (None if math.isnan(v[i]) else float(v[i]) for v in (band.low, band.high))
        found.append(Estimate(name, value, low, high, title=row.title, group=row.group,
                              meaning=row.meaning, direction=row.direction))  # fmt: skip
    return found


def figures(results: Results) -> list[Html]:
    """Return the key figures, each with its interval and what it means, and how they were chosen.

    Of findings they are the means.
    """
    cards = [_card(e, results) for e in key_figures(results)]
    if not cards:
        return []
    rule = RULES[0 if _of_two(results) else 1] + OTHERWISE
    note = f"{in_brackets(results, key_figures(results))} {rule}".strip()
    return [el("ul", cards, class_="figures"), el("p", note, class_="note small")]


def in_brackets(results: Results, shown: Iterable[Estimate]) -> str:
    """Return what stands in brackets beside these values, and what "corrected" means, if it does.

    >>> ece = Estimate("ece", 0.1, 0.0, 0.2)
    >>> in_brackets(Results({}, {}), [ece]), in_brackets(Results({}, {}), [Estimate("ece", 0.1)])
    ('In brackets: 95% interval.', '')
    """
    shown = list(shown)
    notes = [f"In brackets: {level_of(results)} interval."] * any(e.low is not None for e in shown)
    notes += [LESS_CHANCE + hidden(shown)] * any(e.debiased not in (None, e.value) for e in shown)
    return " ".join(notes)


def _card(e: Estimate, results: Results) -> Html:
    meaning, ends = e.meaning, bracketed(e)
    if e.name in CATALOG and "threshold" in CATALOG[e.name].options:
        meaning += f" At a threshold of {percent(asked_threshold(results))}."
    if e.name == "accuracy" and (once := counting(results)):
        meaning = f"{meaning.removesuffix('.')}{once}."
    return el(
        "li",
        el("h3", e.title),
        el("p", el("strong", number(e.value)), el("span", ends) if ends else None, class_="figure"),
        el("p", f"Corrected for chance: {number(e.debiased)}", class_="less")
        if e.debiased not in (None, e.value)
        else None,
        el("p", f"{meaning} {better(e.direction)}".strip(), class_="means"),
    )


def answers(results: Results) -> list[tuple[str, str]]:
    """Return what else there is to say, as question and answer."""
    found = []
    accuracy = results.get("accuracy")
    disagreement = results.curves.get("disagreement")
    if accuracy is not None and accuracy.value is not None:
        text = (
            "A rater agrees with the predicted class "
            f"{estimated(accuracy.value, accuracy.low, accuracy.high)}{counting(results)}."
        )
        if disagreement is not None:
            curve = ReliabilityCurve.from_dict(disagreement)
            observed = float(np.nansum(curve.share * curve.observed))
            same = f"the same {unit_of(results.data)}"
            text += f" Two raters of {same} agree {percent(1 - observed)} of the time."
        found.append(("Is it right?", text))
    ranking = results.get("auccc")
    if ranking is not None and ranking.value is not None:
        found.append(_on_ranks(results, ranking))
    if disagreement is not None:
        found.append(("Does it know when raters will differ?", _on_disagreement(results)))
    return found


def _on_ranks(results: Results, ranking: Estimate) -> tuple[str, str]:
    question, one, other = "Does it know when it is wrong?", "right prediction", "wrong one"
    if results.options.get("question") == "positive":
        event, unit = positive_class(results.data), unit_of(results.data)
        question = f"Does it tell {event} from the rest?"
        one, other = f"{unit} that a rater calls {event}", f"{unit} that is not"
    assert ranking.value is not None
    what = "confidence" if other == "wrong one" else "probability"
    return question, (
        f"A {one} has a higher {what} than a {other} "
        f"{estimated(ranking.value, ranking.low, ranking.high)}; chance would be {percent(0.5)}."
    )


def _on_disagreement(results: Results) -> str:
    curve = ReliabilityCurve.from_dict(results.curves["disagreement"])
    observed = float(np.nansum(curve.share * curve.observed))
    expected = float(np.nansum(curve.share * curve.predicted))
    if np.isnan(curve.gap_low) or curve.gap_low <= 0 <= curve.gap_high:
        same = percent(expected) == percent(observed)
        tail = "on average that is right." if same else "the difference may be chance."
    else:
        tail = f"it expects too {'much' if curve.gap > 0 else 'little'} disagreement."
    return (
        f"It expects two raters to differ on {percent(expected)} of the "
        f"{unit_of(results.data)}s; they differ on "
        f"{percent(observed)}: {tail}"
    )

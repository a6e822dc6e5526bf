"""The verdict of all statistics together, in two lines that people read first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raterwise.curves import ReliabilityCurve
from raterwise.report.words import (
    ENOUGH,
    LARGE,
    SLIGHT,
    Verdict,
    estimated,
    p_value,
    percent,
    points,
    unit_of,
    verdict_on_confidence,
    who_agrees,
)
from raterwise.results import Results

__all__ = ["Verdict", "verdict"]

TOP_LABEL, ALL_CLASSES = "top label", "all classes"
NONE = "No verdict on calibration"
MOST_MORE = 2
"""How many further deviations a verdict names."""
MANY_INTERVALS = 5
"""So many at 95 % let one in ten calibrated models or more have one that excludes 0."""


def verdict(results: Results) -> Verdict:
    """Return what to believe of the probabilities: the verdict of all statistics together.

    Where there is none the confidence in the predicted class is described, unless the cases cannot
    tell chance from anything (one patient, one image). The stated rule where intervals are shown
    beside it: green only if none of a calibration error excludes 0; and where raters are taken for
    a sample, red only if one of them does.
    """
    judged = results.data.get("verdict")
    if judged and judged["miscalibrated"] is not None:
        return _judged(judged, results)
    if judged and any(word in judged["sentence"] for word in ("of one patient", "of one image")):
        return Verdict(NONE, f"There is {judged['sentence']}.", "caution")
    return verdict_on_confidence(results)


def _judged(found: Mapping[str, Any], results: Results) -> Verdict:
    """Return the verdict of all statistics together, in two lines."""
    p = p_value(found["p_value"], "p")
    checks = len(found["deviations"])
    if found["miscalibrated"]:
        first, others = _most_telling(found)
        gap, doubt = abs(first["predicted"] - first["observed"]), _doubt(found, results)
        text = " ".join((
            f"{_after_headline(first['sentence'])}.",
            *(f"It {_quoted(_without_counting(d['sentence']))}." for d in others),
            f"Chance is unlikely to explain this ({p}, corrected for {checks} checks).{doubt}",
        ))  # fmt: skip
        return Verdict(_headline(first), text, "caution" if doubt or gap < SLIGHT else "bad")
    tested = f"None of {checks} checks for miscalibration stands out (corrected {p})."
    if above := [results[n].title for n in found.get("above_zero", ()) if n in results]:
        text = f"{tested} But the {_intervals_of(above)} 0.{_by_chance(found)}{_of_raters(found)}"
        return Verdict("Possibly miscalibrated", text, "caution")
    ece = results.get("ece")
    drawn = results.curves.get("top_label")
    curve = None if drawn is None else ReliabilityCurve.from_dict(drawn)
    high = None if ece is None else ece.high
    if high is not None and high >= LARGE:
        text = (
            f"{tested} But a typical gap of up to {points(high)} percentage points cannot be "
            f"excluded with so few {unit_of(results.data)}s."
        )
        return Verdict("Too little data to say", text, "caution")
    example = "" if curve is None else _agreeing_example(curve, results)
    ceiling = "" if high is None or points(high) == "0.0" else (
        f" These data cannot exclude a typical gap of up to {points(high)} percentage points."
    )  # fmt: skip
    return Verdict("No miscalibration found", f"{tested}{example}{ceiling}", "good")


def _doubt(found: Mapping[str, Any], results: Results) -> str:
    """Return what an interval over raters says against a verdict that takes them as they are."""
    reach = [results[n].title for n in found.get("reach_zero", ()) if n in results]
    if found.get("unit", "cases") == "cases" or found.get("above_zero") or not reach:
        return ""
    return (
        f" This holds for these raters. With others it might look different: the "
        f"{_intervals_of(reach, 'includes', 'include')} 0 once raters count as a sample."
    )


def _by_chance(found: Mapping[str, Any]) -> str:
    """Return what many intervals, each at its own level, do to a calibrated model."""
    number = len(found["above_zero"]) + len(found.get("reach_zero", ()))
    if number < MANY_INTERVALS:
        return ""
    return f" Each of {number} intervals stands on its own, so chance alone makes some exclude 0."


def _of_raters(found: Mapping[str, Any]) -> str:
    if found.get("unit") != "raters":
        return ""
    return " This holds for these cases; others might look different."


def _intervals_of(titles: Sequence[str], one: str = "excludes", many: str = "exclude") -> str:
    """Return which intervals do what.

    >>> _intervals_of(["ECE"]), _intervals_of(["ECE", "MCE"])
    ('interval of ECE excludes', 'intervals of ECE and MCE exclude')
    """
    few = list(titles[:MOST_MORE])
    more = [f"{len(titles) - len(few)} more"] if len(titles) > len(few) else []
    named = " and ".join((*few, *more)) if not more else f"{', '.join(few)} and {more[0]}"
    return f"interval of {named} {one}" if len(titles) == 1 else f"intervals of {named} {many}"


def _most_telling(found: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return the deviation to begin with, and classes that are off by themselves.

    Of all that is clear, the mean of the top label (or, of two classes, of the positive one) is
    the easiest to grasp; the statistic that attains the smallest p-value is often a bin.
    """
    clear = [d for d in found["deviations"] if d["adjusted"] <= found["significance"]]
    clear.sort(key=lambda d: d["adjusted"])
    leading = [d for d in clear if d["channel"] == found["channel"]]
    top = [d for d in clear if d["channel"] == TOP_LABEL]
    same = leading if found["channel"] not in (TOP_LABEL, ALL_CLASSES) else top or leading
    first = next((d for d in same if d["statistic"].startswith("mean")), (same or [found])[0])
    classes = dict.fromkeys(d["channel"] for d in clear)
    named = [c for c in classes if c not in (TOP_LABEL, ALL_CLASSES, first["channel"])]
    says = [d for d in clear if d["sentence"].startswith("says ") and d["channel"] in named]
    each = {d["channel"]: d for d in reversed(says)}
    return first, list(each.values())[::-1][:MOST_MORE]


def _without_counting(sentence: str) -> str:
    return sentence.removesuffix(", over all ratings")


def _headline(found: Mapping[str, Any]) -> str:
    name, direction = found["channel"], found["direction"]
    if direction in ("too often", "too rarely"):
        return f"Says “{name}” {direction}"
    what = "" if name in (TOP_LABEL, ALL_CLASSES) else f" about “{name}”"
    return f"{direction.capitalize()}{what}"


def _after_headline(text: str) -> str:
    """Return the sentence of the verdict without what the headline says already."""
    head, colon, rest = _sentence(text).partition(": ")
    return f"{rest[:1].upper()}{rest[1:]}" if colon else head


def _sentence(text: str) -> str:
    """Return a sentence of the verdict as it stands on a page.

    >>> _sentence("says *oedema* too often: predicted 42 %, read 20 %")
    'Says “oedema” too often: predicted 42\xa0%, read 20\xa0%'
    """
    quoted = _quoted(text)
    return quoted[:1].upper() + quoted[1:]


def _quoted(text: str) -> str:
    return re.sub(r"\*([^*]+)\*", r"“\1”", text).replace(" %", "\u00a0%")


def _agreeing_example(curve: ReliabilityCurve, results: Results) -> str:
    """Return a sentence about the most typical bin of those that hold the prediction."""
    holds = (curve.low <= curve.predicted) & (curve.predicted <= curve.high)
    share = np.where(holds & (curve.cases >= ENOUGH), curve.share, -1.0)
    b = int(np.argmax(share))
    if share[b] < 0:
        return ""
    return (
        f" When it says {percent(curve.predicted[b])}, {who_agrees(results)[1]} "
        f"{estimated(curve.observed[b], curve.low[b], curve.high[b])}."
    )

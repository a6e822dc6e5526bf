"""The verdict of one reliability curve, where there is none of all statistics together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterwise.curves import ReliabilityCurve
from raterwise.report.words import (
    counted_in_words,
    estimated,
    percent,
    points,
    positive_class,
    unit_of,
)
from raterwise.results import Estimate, Results

SLIGHT = 0.02
"""A gap between confidence and agreement below this is called slight."""
LARGE = 0.1
"""A typical gap that would matter; data that do not exclude it say too little."""
SMALL = 0.01
"""A bin with less than this part of all cases is no example of anything."""
ENOUGH = 10
"""Cases that a bin needs to be the example in the verdict, where some bin has them."""


@dataclass(frozen=True)
class Verdict:
    """What to believe of the probabilities, in two lines."""

    headline: str
    explanation: str
    tone: str
    """"good", "caution" or "bad": the colour of the panel, never the only sign."""


def verdict_on_confidence(results: Results) -> Verdict:
    """Return the verdict on the confidence in the predicted class, from its reliability curve."""
    content = results.curves.get("top_label")
    if content is None:
        return Verdict(
            "No verdict on calibration",
            "The results hold no reliability curve: evaluate with metrics that include ece.",
            "caution",
        )
    curve = ReliabilityCurve.from_dict(content)
    example, (bear, _) = _example(curve, results), who_agrees(results, curve)
    known = not np.isnan(curve.gap_low)
    low, high = (curve.gap_low, curve.gap_high) if known else (curve.gap, curve.gap)
    slightly = "Slightly " if abs(curve.gap) < SLIGHT else ""
    tone = "caution" if slightly else "bad"
    chance = "" if known else " No interval was made, so chance is not excluded."
    if (low > 0 or high < 0) and _may_be_chance(curve, results, known):
        return _cannot_tell(curve, results)
    if low > 0 or high < 0:
        which = "over" if low > 0 else "under"
        too = "more" if low > 0 else "less"
        headline, sure = f"{slightly}{which}-confident".capitalize(), "it is"
        if curve.name == "positive":
            event = positive_class(results.data)
            headline, sure = f"{slightly}{which}estimates {event}", f"of {event} it is"
            headline = headline[:1].upper() + headline[1:]
        text = (
            f"{example} Over all {unit_of(results.data)}s {sure} {points(curve.gap)} percentage "
            f"points {too} sure than {bear} out{_points_span(curve.gap_low, curve.gap_high)}."
            f"{chance}"
        )
        return Verdict(headline, text, tone)
    ece = results.get("ece")
    off = (curve.low > curve.predicted) | (curve.high < curve.predicted)
    if bool((off & (curve.cases >= ENOUGH) & (curve.share >= SMALL)).any()):
        text = (
            f"{example} Over all {unit_of(results.data)}s it is right on average: too sure in some "
            "places and not sure enough in others."
        )
        return Verdict("Miscalibrated in places", text, "caution")
    if ece is not None and ece.value is not None and results.per_case:
        # A mean of errors is above 0 by chance alone, and its interval does not know.
        text = (
            f"{example} Over all images it is right on average; a typical gap within one "
            f"image is {points(ece.value)} percentage points, part of which is chance."
        )
        return Verdict("Right on average", text, "caution")
    if ece is not None and ece.low is not None and ece.low > 0:
        text = (
            f"{example} Too sure in some places and not sure enough in others, it "
            f"is right on average; a typical gap is {points(_best(ece))} percentage points"
            f"{_points_span(ece.low, ece.high)}."
        )
        return Verdict("Miscalibrated in places", text, "caution")
    return _nothing_found(curve, results, ece)


def _may_be_chance(curve: ReliabilityCurve, results: Results, known: bool) -> bool:
    """Return whether a calibrated model would often show such a gap, where no interval tells.

    There is none without resamples, and none to trust where the raters agree with every prediction
    or with none: every resample says the same. Of n cases of a calibrated model with confidences c
    the gap has a standard error of at least sqrt(mean(c (1 - c)) / n); two of them are chance.
    """
    observed = float(np.nansum(curve.share * curve.observed))
    varies = 1e-9 < observed < 1 - 1e-9
    if unit_of(results.data) == "voxel" or (known and varies):
        return False
    spread = float(np.nansum(curve.share * curve.predicted * (1 - curve.predicted)))
    cases = results.data.get("patients") or results.data.get("cases", np.inf)
    return abs(curve.gap) <= 2 * float(np.sqrt(spread / cases))


def _cannot_tell(curve: ReliabilityCurve, results: Results) -> Verdict:
    count = counted_in_words(results.data["cases"], unit_of(results.data))
    text = f"{_on_average(curve, results)} With {count}, that may be chance."
    return Verdict("Too little data to say", text, "caution")


def _on_average(curve: ReliabilityCurve, results: Results) -> str:
    confident = float(np.nansum(curve.share * curve.predicted))
    return (
        f"On average it says {percent(confident)}, and {who_agrees(results, curve)[1]} "
        f"{percent(abs(confident - curve.gap))} of the time."
    )


def _nothing_found(curve: ReliabilityCurve, results: Results, ece: Estimate | None) -> Verdict:
    """Return that nothing was found, or that nothing could have been."""
    high = None if ece is None else ece.high
    if high is not None and high >= LARGE:
        text = (
            f"{_on_average(curve, results)} So few {unit_of(results.data)}s cannot exclude a "
            f"typical gap of up to {points(high)} percentage points between the two."
        )
        return Verdict("Too little data to say", text, "caution")
    ceiling = ""
    if high is not None and points(high) != "0.0":
        ceiling = (
            f" These data cannot exclude a typical gap of up to {points(high)} percentage points."
        )
    tone = "caution" if high is None else "good"
    text = _example(curve, results, typical=True)
    return Verdict("No miscalibration found", f"{text}{ceiling}", tone)


def who_agrees(results: Results, curve: ReliabilityCurve) -> tuple[str, str]:
    """Return that the raters bear something (out), and that they agree; or that one rater does.

    Where the question is about a class there is nothing to agree with: they say so.
    """
    one = results.data.get("raters", {}).get("max") == 1
    agree = "agree" if curve.name == "top label" else "say"
    more = "" if agree == "agree" else " so"
    return (
        ("the rater bears", f"the rater {agree}s{more}")
        if one
        else ("the raters bear", f"the raters {agree}{more}")
    )


def _best(ece: Estimate) -> float:
    """Return the value with chance taken out, where there is one."""
    value = ece.debiased if ece.debiased is not None else ece.value
    assert value is not None
    return value


def _example(curve: ReliabilityCurve, results: Results, *, typical: bool = False) -> str:
    """Return one sentence about one bin: the largest part of the error, or the most typical."""
    gap = np.abs(np.nan_to_num(curve.predicted - curve.observed))
    weight = curve.share * (1 if typical else gap)
    enough = curve.cases >= ENOUGH
    weight = np.where(enough, weight, -1) if enough.any() else np.where(curve.cases > 0, weight, -1)
    return example_of(curve, int(np.argmax(weight)), results)


def example_of(curve: ReliabilityCurve, b: int, results: Results) -> str:
    """Return one sentence about one bin: what the model says, and how often that is right."""
    says = "says"
    if curve.name != "top label":
        two = curve.name == "positive" or results.data.get("classes") == 2
        says = f"gives {positive_class(results.data) if two else f'“{curve.name}”'}"
    return (
        f"When it {says} {percent(curve.predicted[b])}, {who_agrees(results, curve)[1]} "
        f"{estimated(curve.observed[b], curve.low[b], curve.high[b])}."
    )


def _points_span(low: float | None, high: float | None) -> str:
    if low is None or high is None or np.isnan(low):
        return ""
    ends = sorted((abs(low), abs(high)))
    return f" [{points(ends[0])}–{points(ends[1])}]"

"""The verdict of all statistics together, in two lines that people read first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raterwise.curves import ReliabilityCurve
from raterwise.report.confidence_verdict import (
    ENOUGH,
    LARGE,
    SLIGHT,
    Verdict,
    example_of,
    verdict_on_confidence,
)
from raterwise.report.words import joined, p_value, percent, points, unit_of
from raterwise.results import Results

TOP_LABEL, ALL_CLASSES = "top label", "all classes"
COUNTING = ", counting every rating"
"""What sentences about all cases end with where every rating counts once."""
NONE = "No verdict on calibration"
PART = " where it predicts "
"""Before the probabilities that a sentence about a part of the cases is limited to."""
DISAGREEMENT = "Off about how often raters differ"
HIDDEN = 2
"""Where bins are off both ways: from how many gaps of the mean the gap of the slope says more."""
MOST_MORE = 2
"""How many further deviations a verdict names."""
ROUNDING = 1e-9
BEYOND_CHANCE = 0.01
"""So seldom are as many bins of a calibrated model outside their intervals: no longer by chance."""


def verdict(results: Results) -> Verdict:
    """Return what to believe of the probabilities: the verdict of all statistics together.

    Where there is none the confidence in the predicted class is described, unless the cases cannot
    tell chance from anything (one patient, one image). The stated rule: red where all checks
    together have p ≤ 0.05; amber up to 0.1, or where the intervals of calibration errors, counted
    together, or more bins than chance explains speak against a model (against what it says of
    disagreement, where that alone is off); otherwise green, with a sentence on single intervals.
    Where raters are taken for a sample, red only if the interval of a calibration error excludes 0.
    """
    judged = results.data.get("verdict")
    if judged and judged["miscalibrated"] is not None:
        return _judged(judged, results)
    if judged and any(word in judged["sentence"] for word in ("one patient", "one image")):
        return Verdict(NONE, f"There is {judged['sentence']}.", "caution")
    return verdict_on_confidence(results)


def _judged(found: Mapping[str, Any], results: Results) -> Verdict:
    """Return the verdict of all statistics together, in two lines.

    The p-value beside deviations is theirs, the largest of those that are named; the smallest of
    all may belong to a bin that is not.
    """
    p = p_value(found["p_value"], "p")
    checks = len(found["deviations"])
    if found["miscalibrated"]:
        first, others = _most_telling(found)
        gap, doubt = _gap(first), _doubt(found, results)
        p = p_value(max(d.get("adjusted", found["p_value"]) for d in (first, *others)), "p")
        text = " ".join((
            f"{_after_headline(first['sentence'])}.",
            *(f"It {_quoted(d['sentence'].removesuffix(COUNTING))}." for d in others),
            f"Chance is unlikely to explain this ({p}, corrected for {checks} checks)."
            f"{doubt or _of_raters(found)}",
        ))  # fmt: skip
        return Verdict(_headline(first), text, "caution" if doubt or gap < SLIGHT else "bad")
    outside = _outside(results)
    if found.get("possibly") or found.get("off_about_disagreement") or outside.beyond_chance:
        classes = found.get("possibly") or outside.beyond_chance
        explained = "" if classes else _off_target(found, results)
        text = f"{_open(found, results, p, checks)}{explained}{outside.told}{_of_raters(found)}"
        return Verdict("Possibly miscalibrated" if classes else DISAGREEMENT, text, "caution")
    tested = (
        f"None of {checks} checks for miscalibration stands out (corrected {p})."
        f"{_single_intervals(found, results)}{_off_target(found, results)}{outside.told}"
        f"{_of_raters(found)}"
    )
    ece = results.get("ece")
    curve = _first_curve(results)
    high = None if ece is None else ece.high
    if high is not None and high >= LARGE:
        text = (
            f"{tested} But so few {unit_of(results.data)}s cannot exclude a typical gap of up to "
            f"{points(high)} percentage points."
        )
        return Verdict("Too little data to say", text, "caution")
    example = "" if curve is None else _agreeing_example(curve, results)
    ceiling = "" if high is None or points(high) == "0.0" else (
        f" These data cannot exclude a typical gap of up to {points(high)} percentage points."
    )  # fmt: skip
    return Verdict("No miscalibration found", f"{tested}{example}{ceiling}", "good")


def _doubt(found: Mapping[str, Any], results: Results) -> str:
    """Return what an interval over raters says against a verdict that takes them as they are."""
    reach = _titles(found, results, "reach_zero")
    if found.get("unit", "cases") == "cases" or found.get("above_zero") or not reach:
        return ""
    return (
        f" This holds for these raters. With others it might look different: the "
        f"{_intervals_of(reach, 'includes', 'include')} 0 once raters count as a sample."
    )


def _open(found: Mapping[str, Any], results: Results, p: str, checks: int) -> str:
    """Return what speaks against a model that is not called miscalibrated."""
    together = found.get("intervals_p_value")
    if found["p_value"] <= found.get("possibly_up_to", 0.0):
        lead = next(d for d in found["deviations"] if d["statistic"] == found["statistic"])
        does = "" if lead["sentence"].startswith("says ") else "is "
        return (
            f"The checks leave the question open. In the clearest of {checks}, it {does}"
            f"{_quoted(lead['sentence'].removesuffix(COUNTING))}. A calibrated model would look "
            f"this bad {percent(found['p_value'])} of the time (corrected {p})."
        )
    text = f"None of {checks} checks for miscalibration stands out (corrected {p})."
    above = _titles(found, results, "above_zero")
    if not above or together is None or together > found["significance"]:
        return text
    last = (
        " A model can be right about every class and still expect too much or too little "
        "disagreement."
    )
    return (
        f"{text} But the {_intervals_of(above)} 0, and chance is unlikely to explain it "
        f"(p\u00a0=\u00a0{max(together, 0.001):.2g}, corrected for "
        f"{_number_of_intervals(found)} intervals)."
        f"{last if found.get('off_about_disagreement') else ''}"
    )


def _single_intervals(found: Mapping[str, Any], results: Results) -> str:
    """Return why intervals that exclude 0, each at its own level, do not make a model suspect."""
    above, number = _titles(found, results, "above_zero"), _number_of_intervals(found)
    if not above:
        return ""
    if results.per_case:  # no test of means of errors, each of which is above 0
        return (
            f" The {_intervals_of(above)} 0, but that says little: an error within one image is "
            "above 0 by chance alone, and so is the mean over images."
        )
    many = f"; among {number} intervals, chance can do that" if number > 1 else "; chance can"
    return f" The {_intervals_of(above)} 0 when looked at alone{many}."


def _off_target(found: Mapping[str, Any], results: Results) -> str:
    """Return why intervals that exclude what a calibrated model has do not make one suspect."""
    off = {n: value for n, value in found.get("off_target", {}).items() if n in results}
    if not off:
        return ""
    values = set(off.values())
    what = f"{values.pop():g}" if len(values) == 1 else "what a calibrated model has"
    return (
        f" The {_intervals_of([results[name].title for name in off])} {what} when looked at alone; "
        f"among {len(found['deviations'])} checks, chance can do that."
    )


def _number_of_intervals(found: Mapping[str, Any]) -> int:
    return len(found.get("above_zero", ())) + len(found.get("reach_zero", ()))


def _titles(found: Mapping[str, Any], results: Results, which: str) -> list[str]:
    return [results[name].title for name in found.get(which, ()) if name in results]


@dataclass(frozen=True)
class _Outside:
    """Bins of the reliability charts whose intervals do not hold the prediction."""

    told: str = ""
    beyond_chance: bool = False


def _outside(results: Results) -> _Outside:
    """Count them: of every 20 bins of a calibrated model one is outside its interval at 95%.

    More than chance explains is what a calibrated model shows in fewer than `BEYOND_CHANCE`, all
    charts together. Of two classes the other says the same.
    """
    from scipy.special import bdtrc

    drawn, by_class = [], results.curves.get("per_class", [])
    if (first := results.curves.get("top_label")) is not None:
        drawn.append(first)
    if len(by_class) == 2:
        mirrored = first is not None and first["name"] == "positive"
        by_class = [] if mirrored else by_class[1:]
    drawn += by_class
    number = out = 0
    smallest, level = 1.0, 0.95
    for curve in map(ReliabilityCurve.from_dict, drawn):
        seen = (curve.cases > 0) & np.isfinite(curve.low)
        beyond = seen & ~_holds(curve)
        many, few, level = int(seen.sum()), int(beyond.sum()), curve.level
        number, out = number + many, out + few
        if few:
            smallest = min(smallest, float(bdtrc(few - 1, many, 1 - level)))
    if not out:
        return _Outside()
    lies = "lies outside its own interval" if out == 1 else "lie outside their own intervals"
    if smallest * len(drawn) <= BEYOND_CHANCE:
        return _Outside(f" {out} of {number} bins {lies}, more than chance explains.", True)
    mean = number * (1 - level)
    expected = "fewer than 1" if mean < 0.5 else f"about {mean:.0f}"
    seldom = ", and seldom as many" if bdtrc(out - 1, number, 1 - level) <= 0.05 else ""
    return _Outside(f" {out} of {number} bins {lies}; by chance {expected} would{seldom}.")


def _of_raters(found: Mapping[str, Any]) -> str:
    """Return in words that the checks do not take the raters for a sample, where intervals do."""
    if found.get("unit", "cases") == "cases":
        return ""
    if found["unit"] == "raters":
        return (
            " The checks allow for other cases read by these raters; the intervals, for these "
            "cases read by other raters."
        )
    return " The checks take these raters as they are; the intervals allow for others."


def _intervals_of(titles: Sequence[str], one: str = "excludes", many: str = "exclude") -> str:
    """Return which intervals do what.

    >>> _intervals_of(["ECE"]), _intervals_of(["ECE", "MCE"])
    ('interval of ECE excludes', 'intervals of ECE and MCE exclude')
    """
    named = joined(titles, MOST_MORE)
    return f"interval of {named} {one}" if len(titles) == 1 else f"intervals of {named} {many}"


def _most_telling(found: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return the deviation to begin with, and classes that are off by themselves.

    Of all that is clear, the mean of the top label (or, of two classes, of the positive one) is
    the easiest to grasp; the statistic that attains the smallest p-value is often a bin. But a
    model that is off both ways has a mean that hides it, and is called over- or under-confident.
    """
    clear = [d for d in found["deviations"] if d["adjusted"] <= found["significance"]]
    clear.sort(key=lambda d: d["adjusted"])
    leading = [d for d in clear if d["channel"] == found["channel"]]
    top = [d for d in clear if d["channel"] == TOP_LABEL]
    same = leading if found["channel"] not in (TOP_LABEL, ALL_CLASSES) else top or leading
    first = next((d for d in same if d["statistic"].startswith("mean")), (same or [found])[0])
    slopes = [d for d in same if d["statistic"].startswith("slope") and _gap(d) >= SLIGHT]
    ways = {d["standardised"] > 0 for d in same if d["statistic"].startswith("bin")}
    hides = len(ways) == 2 and slopes and _gap(slopes[0]) >= HIDDEN * _gap(first)
    if slopes and (hides or _gap(first) < SLIGHT):
        first = slopes[0]
    classes = dict.fromkeys(d["channel"] for d in clear)
    named = [c for c in classes if c not in (TOP_LABEL, ALL_CLASSES, first["channel"])]
    says = [d for d in clear if d["sentence"].startswith("says ") and d["channel"] in named]
    each = {d["channel"]: d for d in reversed(says)}
    return first, list(each.values())[::-1][:MOST_MORE]


def _gap(found: Mapping[str, Any]) -> float:
    return abs(float(found["predicted"]) - float(found["observed"]))


def _headline(found: Mapping[str, Any]) -> str:
    name, direction = found["channel"], found["direction"]
    if direction in ("too often", "too rarely"):
        return f"Says “{name}” {direction}"
    what = "" if name in (TOP_LABEL, ALL_CLASSES) else f" about “{name}”"
    return f"{direction.capitalize()}{what}"


def _after_headline(text: str) -> str:
    """Return the sentence of the verdict without what the headline says already.

    >>> _after_headline("says *mass* too often where it predicts 5% to 9%: on average 6%, …")
    'Where it predicts 5% to 9%: on average 6%, …'
    >>> _after_headline("over-confident: 55% sure on average and right 45% of the time")
    'It is 55% sure on average and right 45% of the time'
    """
    head, colon, rest = _sentence(text).partition(": ")
    if not colon:
        return head
    if PART in head:  # the figures are of a part of the cases, and must say so
        rest = f"{PART.strip()} {head.partition(PART)[2]}: {rest}"
    elif not rest.startswith(("where ", "it ")):
        rest = f"it is {rest}" if rest[:1].isdigit() else f"it {rest}"
    return f"{rest[:1].upper()}{rest[1:]}"


def _sentence(text: str) -> str:
    """Return a sentence of the verdict as it stands on a page.

    >>> _sentence("says *oedema* too often: it predicts 42% on average")
    'Says “oedema” too often: it predicts 42% on average'
    """
    quoted = _quoted(text)
    return quoted[:1].upper() + quoted[1:]


def _quoted(text: str) -> str:
    return re.sub(r"\*([^*]+)\*", r"“\1”", text)


def _first_curve(results: Results) -> ReliabilityCurve | None:
    """Return the curve that the report draws first: of two classes, that of the positive one."""
    by_class = results.curves.get("per_class", [])
    if len(by_class) == 2:
        return ReliabilityCurve.from_dict(by_class[1])
    drawn = results.curves.get("top_label")
    return None if drawn is None else ReliabilityCurve.from_dict(drawn)


def _holds(curve: ReliabilityCurve) -> Any:
    """Tell of each bin whether its interval holds the prediction; what is left of 1 - 1 is 0."""
    return (curve.low <= curve.predicted + ROUNDING) & (curve.predicted <= curve.high + ROUNDING)


def _agreeing_example(curve: ReliabilityCurve, results: Results) -> str:
    """Return a sentence about the most typical bin of those that hold the prediction."""
    share = np.where(_holds(curve) & (curve.cases >= ENOUGH), curve.share, -1.0)
    b = int(np.argmax(share))
    if share[b] < 0:
        return ""
    return f" {example_of(curve, b, results)}"

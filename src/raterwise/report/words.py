"""Numbers in words: the verdict of a report, and how its figures are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raterwise.curves import ReliabilityCurve
from raterwise.results import Estimate, Results

SLIGHT = 0.02
"""A gap between confidence and agreement below this is called slight."""
LARGE = 0.1
"""A typical gap that would matter; data that do not exclude it say too little."""
SMALL = 0.01
"""A bin with less than this part of all cases is no example of anything."""
ENOUGH = 10
"""Cases that a bin needs to be the example in the verdict, where some bin has them."""


TIED = 1e-9
"""Shares of resamples that differ by less are equal."""
MANY = 12
"""More classes than this are counted, not named."""


@dataclass(frozen=True)
class Verdict:
    """What to believe of the probabilities, in two lines."""

    headline: str
    explanation: str
    tone: str
    """"good", "caution" or "bad": the colour of the panel, never the only sign."""


def percent(value: float) -> str:
    """Return a proportion as a percentage, which is not broken at the end of a line.

    What is nearly nothing or nearly everything is not rounded to it.

    >>> percent(0.778), percent(0.0007), percent(0.9968), percent(0.9999), percent(1.0)
    ('78%', '0.1%', '99.7%', '>99.9%', '100%')
    """
    if 0.9995 <= value < 1:
        return ">99.9%"
    digits = 1 if 0 < abs(value) < 0.0095 or 0.9905 < value < 1 else 0
    return f"{value:.{digits}%}"


def estimated(value: float, low: float | None, high: float | None) -> str:
    """Return a proportion with its interval, to as many digits as the interval is worth.

    >>> estimated(0.778, 0.72, 0.84), estimated(0.7521, 0.7463, 0.7571)
    ('78% of the time [72–84]', '75.2% of the time [74.6–75.7]')
    """
    ends = span(low, high)
    fine = "." in ends and 0.0095 <= value <= 0.9905
    shown = f"{value:.1%}" if fine else percent(value)
    return f"{shown} of the time{ends}"


def points(value: float) -> str:
    """Return a difference of proportions in percentage points, without its sign."""
    return f"{100 * abs(value):.1f}"


def span(low: float | None, high: float | None) -> str:
    """Return an interval of proportions in brackets, or nothing where there is none.

    >>> span(0.72, 0.84), span(None, None)
    (' [72–84]', '')
    """
    if low is None or high is None or np.isnan(low) or np.isnan(high):
        return ""
    digits = 1 if high - low < 0.02 else 0
    return f" [{100 * low:.{digits}f}–{100 * high:.{digits}f}]"


def number(value: float | None, digits: int = 3) -> str:
    r"""Return a number with so many decimals; what would round to 0 is told from 0 itself.

    >>> number(0.1234), number(-0.5), number(2e-5), number(-2e-5), number(0.0), number(None)
    ('0.123', '−0.500', '<\xa00.001', '>\xa0−0.001', '0.000', '–')
    >>> number(123.456), number(12345.6)
    ('123.5', '12,346')
    """
    if value is None or np.isnan(value):
        return "–"
    least = 10.0**-digits
    if value and abs(value) < 0.5 * least:
        return f"<\u00a0{least:.{digits}f}" if value > 0 else f">\u00a0−{least:.{digits}f}"
    large = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else digits
    return f"{value:,.{min(large, digits)}f}".replace("-", "−")


def bracketed(e: Any, digits: int = 3) -> str:
    """Return the interval of an estimate or a difference, " [0.100, 0.200]"; "" without one."""
    if e.low is None or e.high is None:
        return ""
    return f" [{number(e.low, digits)}, {number(e.high, digits)}]"


def level_of(results: Results) -> str:
    """Return the level of confidence of the intervals, such as 95%."""
    return f"{100 * results.options.get('level', 0.95):g}%"


def signed(value: float, digits: int = 3) -> str:
    r"""Return a difference with its sign.

    >>> signed(0.1234), signed(-0.1234), signed(2e-5), signed(0.0)
    ('+0.123', '−0.123', '<\xa0+0.001', '0.000')
    """
    text = number(value, digits)
    if not value > 0:
        return text
    return f"<\u00a0+{text[2:]}" if text.startswith("<") else f"+{text}"


def p_value(p: float | None, name: str = "") -> str:
    r"""Return a p-value for people, after its name and a sign where it is named.

    >>> p_value(0.0005), p_value(0.0213), p_value(0.2), p_value(0.0005, "p"), p_value(1.0, "p")
    ('<\xa00.001', '0.021', '0.20', 'p\xa0<\xa00.001', 'p\xa0=\xa01.00')
    """
    if p is None or np.isnan(p):
        return "–"
    shown = "<\u00a00.001" if p < 0.001 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"
    if not name:
        return shown
    return f"{name}\u00a0{shown}" if p < 0.001 else f"{name}\u00a0=\u00a0{shown}"


def natural(name: Any) -> tuple[Any, ...]:
    """Return what to sort names by: their numbers as numbers.

    >>> sorted(["R10", "R2", "a", 3], key=natural)
    [3, 'a', 'R2', 'R10']
    """
    parts = re.split(r"(\d+)", str(name).casefold())
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part)


def basis(data: Any) -> str:
    """Return what the figures rest on."""
    (counted, unit), mean = _counted(data), data["raters"]["mean"]
    each = f"{mean:.0f}" if mean == round(mean) else f"{mean:.1f}"
    if "findings" in data:
        counted += f", {counted_in_words(len(data['findings']), 'finding')}"
    return f"{counted}, {each} {'rater' if mean == 1 else 'raters'} per {unit}"


def facts_in_words(data: Any) -> str:
    """Return what the figures rest on, with classes and ratings, in one line."""
    counted, unit = _counted(data)
    fewest, most = data["raters"]["min"], data["raters"]["max"]
    each = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    classes = f"{data['classes']:,} classes"
    if "findings" in data:
        classes = counted_in_words(len(data["findings"]), "finding")
    ratings = counted_in_words(data["ratings"], "rating")
    return f"{counted}, {classes}, {ratings} ({each} per {unit})"


def _counted(data: Any) -> tuple[str, str]:
    """Return how many cases or images there are, of how many patients, and what was rated."""
    known = data.get("patients")
    patients = f" of {counted_in_words(known, 'patient')}" if known else ""
    if "voxels" in data:
        images = counted_in_words(data["cases"], "image")
        return f"{images}{patients}, {data['voxels']:,} voxels", "voxel"
    unit = "case and finding" if "findings" in data else "case"
    return f"{counted_in_words(data['cases'], 'case')}{patients}", unit


def counted_in_words(count: int, noun: str) -> str:
    """Return so many of something.

    >>> counted_in_words(1, "case"), counted_in_words(1880, "case")
    ('1 case', '1,880 cases')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def unit_of(data: Any) -> str:
    """Return what has a probability and labels: a case, or a voxel of an image."""
    return "voxel" if data and "voxels" in data else "case"


def classes_in_words(data: Any) -> str:
    """Return the names of the classes (or findings), where there are names and not too many."""
    if findings := data.get("findings"):
        count = counted_in_words(len(findings), "finding")
        return count if len(findings) > MANY else f"Findings: {', '.join(findings)}"
    names = data.get("class_names")
    if not names or len(names) > MANY:
        return f"{data['classes']:,} classes"
    return f"Classes: {', '.join(names)}"


def best_of(shares: Mapping[str, float]) -> list[str]:
    """Return the models that are best in most resamples: several where they are equally often.

    >>> best_of({"old": 0.5, "new": 0.5}), best_of({"old": 0.1, "new": 0.9})
    (['old', 'new'], ['new'])
    """
    return [name for name, share in shares.items() if share >= max(shares.values()) - TIED]


def warnings_by_model(
    models: Mapping[str, Results],
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return what every model is warned about, and what each one is besides."""
    first = next(iter(models.values()))
    shared = tuple(w for w in first.warnings if all(w in m.warnings for m in models.values()))
    own = {name: tuple(w for w in m.warnings if w not in shared) for name, m in models.items()}
    return shared, own


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
            event = _positive(results.data)
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


def _positive(data: Any) -> str:
    """Return what the positive class is called."""
    names = data.get("class_names")
    if names:
        return f"“{names[1]}”"
    return "the foreground" if unit_of(data) == "voxel" else "the positive class"


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
        says = f"gives {_positive(results.data) if two else f'“{curve.name}”'}"
    return (
        f"When it {says} {percent(curve.predicted[b])}, {who_agrees(results, curve)[1]} "
        f"{estimated(curve.observed[b], curve.low[b], curve.high[b])}."
    )


def _points_span(low: float | None, high: float | None) -> str:
    if low is None or high is None or np.isnan(low):
        return ""
    ends = sorted((abs(low), abs(high)))
    return f" [{points(ends[0])}–{points(ends[1])}]"


def findings(results: Results) -> list[tuple[str, str]]:
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


def counting(results: Results) -> str:
    """Return that every case counts once, where the verdict, which counts ratings, may differ."""
    raters = results.data.get("raters", {})
    same = raters.get("min") == raters.get("max") or results.options.get("per") == "annotation"
    return "" if same else f", counting every {unit_of(results.data)} once"


def _on_ranks(results: Results, ranking: Estimate) -> tuple[str, str]:
    question, one, other = "Does it know when it is wrong?", "right prediction", "wrong one"
    if results.options.get("question") == "positive":
        event, unit = _positive(results.data), unit_of(results.data)
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

"""Numbers in words: the verdict of a report, and how its figures are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.curves import ReliabilityCurve
from quorate.results import Estimate, Results

__all__ = [
    "Verdict",
    "basis",
    "classes_in_words",
    "findings",
    "number",
    "percent",
    "span",
    "verdict",
]

SLIGHT = 0.02
"""A gap between confidence and agreement below this is called slight."""
ENOUGH = 10
"""Cases that a bin needs to be the example in the verdict, where some bin has them."""


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
    r"""Return a proportion as a percentage, which is not broken at the end of a line.

    >>> percent(0.778), percent(0.0007), percent(0.9996)
    ('78\xa0%', '0.1\xa0%', '100\xa0%')
    """
    digits = 1 if 0 < abs(value) < 0.0095 else 0
    return f"{100 * value:.{digits}f}\u00a0%"


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
    """Return a number with so many decimals, or in powers of ten where those would all be 0.

    >>> number(0.1234), number(-0.5), number(2e-5), number(None)
    ('0.123', '−0.500', '2.0e−05', '–')
    """
    if value is None:
        return "–"
    small = value and abs(value) < 0.5 * 10**-digits
    return (f"{value:.1e}" if small else f"{value:.{digits}f}").replace("-", "−")


def basis(data: Any) -> str:
    """Return what the figures rest on."""
    raters = data["raters"]
    patients = f" of {data['patients']:,} patients" if data.get("patients") else ""
    mean = raters["mean"]
    each = f"{mean:.0f}" if mean == round(mean) else f"{mean:.1f}"
    noun = "rater" if mean == 1 else "raters"
    return f"{data['cases']:,} cases{patients}, {each} {noun} per case"


def classes_in_words(data: Any) -> str:
    """Return the names of the classes, where there are names and not too many."""
    names = data.get("class_names")
    if not names or len(names) > MANY:
        return f"{data['classes']:,} classes"
    return f"Classes: {', '.join(names)}"


def verdict(results: Results) -> Verdict:
    """Return the verdict on the confidence in the predicted class."""
    content = results.curves.get("top_label")
    if content is None:
        return Verdict(
            "No verdict on calibration",
            "The results hold no reliability curve: evaluate with metrics that include ece.",
            "caution",
        )
    curve = ReliabilityCurve.from_dict(content)
    known = not np.isnan(curve.gap_low)
    low, high = (curve.gap_low, curve.gap_high) if known else (curve.gap, curve.gap)
    slightly = "Slightly " if abs(curve.gap) < SLIGHT else ""
    tone = "caution" if slightly else "bad"
    chance = "" if known else " No interval was made, so chance is not excluded."
    if low > 0 or high < 0:
        which = "over" if low > 0 else "under"
        too = "more" if low > 0 else "less"
        headline = f"{slightly}{which}-confident".capitalize()
        text = (
            f"{_example(curve)} Over all cases it is {points(curve.gap)} percentage points "
            f"{too} sure than the raters bear out{_points_span(curve)}.{chance}"
        )
        return Verdict(headline, text, tone)
    ece = results.get("ece")
    if ece is not None and ece.low is not None and ece.low > 0:
        text = (
            f"{_example(curve)} Too sure in some places and not sure enough in others, it is right "
            f"on average; a typical gap is {points(_best(ece))} percentage points."
        )
        return Verdict("Miscalibrated in places", text, "caution")
    return _nothing_found(curve, ece)


def _nothing_found(curve: ReliabilityCurve, ece: Estimate | None) -> Verdict:
    ceiling = ""
    if ece is not None and ece.high is not None:
        ceiling = (
            f" What these data cannot exclude is a typical gap of up to {points(ece.high)} "
            "percentage points."
        )
    tone = "good" if ece is not None and ece.high is not None and ece.high < 0.1 else "caution"
    return Verdict("No miscalibration found", f"{_example(curve)}{ceiling}", tone)


def _best(ece: Estimate) -> float:
    """Return the value with chance taken out, where there is one."""
    value = ece.debiased if ece.debiased is not None else ece.value
    assert value is not None
    return value


def _example(curve: ReliabilityCurve) -> str:
    """Return one sentence about the bin that says the most: the largest part of the error."""
    weight = curve.share * np.abs(np.nan_to_num(curve.predicted - curve.observed))
    enough = curve.cases >= ENOUGH
    weight = np.where(enough, weight, -1) if enough.any() else np.where(curve.cases > 0, weight, -1)
    b = int(np.argmax(weight))
    return (
        f"When it says {percent(curve.predicted[b])}, the raters agree "
        f"{percent(curve.observed[b])} of the time{span(curve.low[b], curve.high[b])}."
    )


def _points_span(curve: ReliabilityCurve) -> str:
    if np.isnan(curve.gap_low):
        return ""
    ends = sorted((abs(curve.gap_low), abs(curve.gap_high)))
    return f" [{points(ends[0])}–{points(ends[1])}]"


def findings(results: Results) -> list[tuple[str, str]]:
    """Return what else there is to say, as question and answer."""
    found = []
    accuracy = results.get("accuracy")
    disagreement = results.curves.get("disagreement")
    if accuracy is not None and accuracy.value is not None:
        text = (
            f"A rater agrees with the predicted class {percent(accuracy.value)} of the time"
            f"{span(accuracy.low, accuracy.high)}."
        )
        if disagreement is not None:
            curve = ReliabilityCurve.from_dict(disagreement)
            observed = float(np.nansum(curve.share * curve.observed))
            text += f" Two raters of the same case agree {percent(1 - observed)} of the time."
        found.append(("Is it right?", text))
    ranking = results.get("auccc")
    if ranking is not None and ranking.value is not None:
        found.append(
            (
                "Does it know when it is wrong?",
                f"A right prediction has the higher confidence than a wrong one "
                f"{percent(ranking.value)} of the time{span(ranking.low, ranking.high)}; "
                f"chance would be {percent(0.5)}.",
            )
        )
    if disagreement is not None:
        found.append(("Does it know when raters will differ?", _on_disagreement(disagreement)))
    return found


def _on_disagreement(content: Any) -> str:
    curve = ReliabilityCurve.from_dict(content)
    observed = float(np.nansum(curve.share * curve.observed))
    expected = float(np.nansum(curve.share * curve.predicted))
    if np.isnan(curve.gap_low) or curve.gap_low <= 0 <= curve.gap_high:
        tail = "on average it expects what happens."
    else:
        tail = f"it expects too {'much' if curve.gap > 0 else 'little'} disagreement."
    return (
        f"It expects two raters to differ on {percent(expected)} of the cases; they differ on "
        f"{percent(observed)}: {tail}"
    )

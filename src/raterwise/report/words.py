"""Numbers in words: how a report writes its figures, and what they rest on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from raterwise.report.markup import names_apart
from raterwise.results import Estimate, Results

TIED = 1e-9
"""Shares of resamples that differ by less are equal."""
MANY = 12
"""More classes than this are counted, not named."""


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


def better(direction: str) -> str:
    """Return which values of a metric are better, in words, or nothing."""
    return {"lower": "Lower is better.", "higher": "Higher is better."}.get(direction, "")


def level_of(results: Results) -> str:
    """Return the level of confidence of the intervals, such as 95%."""
    return f"{100 * results.options.get('level', 0.95):g}%"


def shaded(results: Results, *, drawn: bool) -> str:
    """Return what the caption of a chart says of its bands; nothing where none is drawn."""
    return f" Shaded: {level_of(results)} interval at each point." if drawn else ""


def hidden(shown: Iterable[Estimate]) -> str:
    """Return how a corrected error can be larger than the error, where one is; otherwise nothing.

    >>> hidden([Estimate("ece", 0.1, debiased=0.09)]), hidden([Estimate("ece", 0.1, debiased=0.12)])
    ('', ' Where it is larger, chance or smoothing hides a part of the error.')
    """
    larger = any(e.debiased is not None and e.value is not None and e.debiased > e.value
                 and number(e.debiased) != number(e.value) for e in shown)  # fmt: skip
    return " Where it is larger, chance or smoothing hides a part of the error." * larger


def signed(value: float) -> str:
    r"""Return a difference with its sign.

    >>> signed(0.1234), signed(-0.1234), signed(2e-5), signed(0.0)
    ('+0.123', '−0.123', '<\xa0+0.001', '0.000')
    """
    text = number(value)
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


def joined(names: Iterable[str], most: int | None = None) -> str:
    """Return names as in a sentence; of more than `most`, the first ones and how many more.

    >>> joined(["ECE"]), joined(["AUROC", "ECE"]), joined("abc"), joined("abcdef", most=4)
    ('ECE', 'AUROC and ECE', 'a, b and c', 'a, b, c, d and 2 more')
    """
    each = list(names)
    shown = each[:most]
    if len(each) > len(shown):
        shown.append(f"{len(each) - len(shown)} more")
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def natural(name: Any) -> tuple[Any, ...]:
    """Return what to sort names by: their numbers as numbers.

    >>> sorted(["R10", "R2", "a", 3], key=natural)
    [3, 'a', 'R2', 'R10']
    """
    parts = re.split(r"(\d+)", str(name).casefold())
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part)


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


def titles_by(pairs: Iterable[tuple[Any, str]]) -> Iterable[tuple[Any, str]]:
    """Return each key with the titles that share it; a key of None or 0 is nobody's."""
    grouped: dict[Any, list[str]] = {}
    for key, title in pairs:
        if key:
            grouped.setdefault(key, []).append(title)
    return [(key, ", ".join(titles)) for key, titles in grouped.items()]


def unit_of(data: Any) -> str:
    """Return what has a probability and labels: a case, or a voxel of an image."""
    return "voxel" if data and "voxels" in data else "case"


def subject_of(data: Any) -> str:
    """Return what belongs to a patient and to a sub-group: a case, or an image of many voxels."""
    return "image" if data and "voxels" in data else "case"


def classes_in_words(data: Any) -> list[str]:
    """Return the names of the classes (or findings), where there are names and not too many."""
    if findings := data.get("findings"):
        count = counted_in_words(len(findings), "finding")
        return [count] if len(findings) > MANY else ["Findings: ", names_apart(findings)]
    names = data.get("class_names")
    if not names or len(names) > MANY:
        return [f"{data['classes']:,} classes"]
    return ["Classes: ", names_apart(names)]


def best_of(shares: Mapping[str, float]) -> list[str]:
    """Return the models that are best in most resamples: several where they are equally often.

    >>> best_of({"old": 0.5, "new": 0.5}), best_of({"old": 0.1, "new": 0.9})
    (['old', 'new'], ['new'])
    """
    return [name for name, share in shares.items() if share >= max(shares.values()) - TIED]


def same_on_these_cases(comparison: Any) -> str:
    """Return what intervals of differences say that are 0 alone; nothing where there are none.

    >>> import raterwise as rw
    >>> models = {"old": [0.9, 0.2] * 20, "new": [0.8, 0.3] * 20}
    >>> same_on_these_cases(rw.compare(models, [1, 0] * 20, "accuracy,brier", resamples=50))[:56]
    'Accuracy: [0, 0] means that models are alike on all thes'
    """
    first = next(iter(comparison.models.values()))
    alike = [first[d.metric].title for d in comparison.differences if d.low == d.high == 0]
    if not alike:
        return ""
    return (
        f"{', '.join(dict.fromkeys(alike))}: [0, 0] means that models are alike on all these "
        "cases, which cannot tell them apart. It is no evidence that they are alike on others."
    )


def warnings_by_model(
    models: Mapping[str, Results],
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return what every model is warned about, and what each one is besides."""
    first = next(iter(models.values()))
    shared = tuple(w for w in first.warnings if all(w in m.warnings for m in models.values()))
    own = {name: tuple(w for w in m.warnings if w not in shared) for name, m in models.items()}
    return shared, own


def positive_class(data: Any) -> str:
    """Return what the positive class is called."""
    names = data.get("class_names")
    if names:
        return f"“{names[1]}”"
    return "the foreground" if unit_of(data) == "voxel" else "the positive class"


def counting(results: Results) -> str:
    """Return that every case counts once, where the verdict, which counts ratings, may differ."""
    raters = results.data.get("raters", {})
    same = raters.get("min") == raters.get("max") or results.options.get("per") == "annotation"
    return "" if same else f", counting every {unit_of(results.data)} once"


def cost(value: float) -> str:
    """Return a cost with every digit before the point and at most two after it.

    >>> cost(8000), cost(1200000.0), cost(12.5), cost(0)
    ('8,000', '1,200,000', '12.5', '0')
    """
    return f"{value:,.2f}".rstrip("0").rstrip(".")

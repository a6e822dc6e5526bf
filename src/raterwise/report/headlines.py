"""First sentences: what follows from the table below them, in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from raterwise.report.words import joined, number
from raterwise.results import Estimate

LEVEL = 0.05
"""An adjusted p-value up to this counts as a difference."""
MOST_NAMED = 4
"""Of more metrics than this the first are named."""
MOST_PAIRS = 3
"""More pairs of models than this are counted."""
NEAR = 1.1
"""So many times as wide as the narrowest interval is nearly as narrow."""


def differences_in_words(comparison: Any) -> str:
    """Return which models differ in which metrics, adjusted for the number of pairs.

    >>> import raterwise as rw
    >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    >>> print(differences_in_words(rw.compare(models, [1, 0] * 20, "brier", resamples=50)))
    sharp is better in Brier score (adjusted p ≤ 0.05).
    """
    titles: dict[str, Estimate] = {}
    for results in comparison.models.values():
        titles |= {name: e for name, e in results.items() if e.direction != "none"}
    pairs: dict[tuple[str, str], list[Any]] = {}
    for d in comparison.differences:
        if d.metric in titles:
            pairs.setdefault((d.first, d.second), []).append(d)
    if not pairs:
        return ""
    clear = {pair: [d for d in found if d.adjusted_p_value <= LEVEL]
             for pair, found in pairs.items()}  # fmt: skip
    differing = [pair for pair, found in clear.items() if found]
    metrics = len({d.metric for found in pairs.values() for d in found})
    if not differing:
        of = "the metric" if metrics == 1 else f"any of the {metrics} metrics"
        return f"No difference that these cases can show: no adjusted p ≤ {LEVEL:g} in {of}."
    if len(pairs) > MOST_PAIRS:
        return (
            f"{len(differing)} of {len(pairs)} pairs of models differ in at least one of "
            f"{metrics} metrics (adjusted p ≤ {LEVEL:g})."
        )
    return " ".join(
        _of_pair(pair, clear[pair], len(found), titles, named=len(pairs) > 1)
        for pair, found in pairs.items()
    )


def _of_pair(
    pair: tuple[str, str],
    clear: Sequence[Any],
    metrics: int,
    titles: Mapping[str, Estimate],
    *,
    named: bool,
) -> str:
    """Return in what one model is better than the other one."""
    if not clear:
        return f"{pair[0]} and {pair[1]}: no difference that these cases can show."
    better: dict[str, list[str]] = {}
    for d in clear:
        gap = d.difference if d.debiased is None else d.debiased
        first = (gap < 0) == (titles[d.metric].direction == "lower")
        better.setdefault(pair[0] if first else pair[1], []).append(titles[d.metric].title)
    than = dict(zip(pair, pair[::-1], strict=True))
    told = [
        f"{model} is better{f' than {than[model]}' if named else ''} in {joined(names, MOST_NAMED)}"
        for model, names in better.items()
    ]
    few = metrics > 1 and len(clear) <= LEVEL * metrics
    of = f"{len(clear)} of {metrics} metrics with " if metrics > 1 else ""
    counted = f"{of}adjusted p ≤ {LEVEL:g}"
    return f"{'; '.join(told)} ({counted}{', no more than chance gives' if few else ''})."


def designs_in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the cheapest design whose interval is nearly as narrow as the narrowest.

    >>> rows = [
    ...     {"cases": n, "raters": 1, "readings": n, "cost": n, "width": w}
    ...     for n, w in [(100, 0.2), (200, 0.105), (400, 0.1)]
    ... ]
    >>> print(designs_in_words(rows))
    200 cases with 1 rater each are enough for an interval 0.105 wide, within 10% of the narrowest
    here (0.100, 400 cases with 1 rater each).
    """
    known = [row for row in rows if row["width"] is not None]
    if not known:
        return ""
    price = ("cost", "readings", "cases")
    narrow = min(known, key=lambda row: (row["width"], *(row[key] for key in price)))
    near = [row for row in known if row["width"] <= NEAR * narrow["width"]]
    enough = min(near, key=lambda row: tuple(row[key] for key in price))
    small = min(known, key=lambda row: tuple(row[key] for key in price))
    width = number(narrow["width"])
    if enough is not narrow:
        return (
            f"{_design(enough)} are enough for an interval {number(enough['width'])} wide, within "
            f"{100 * (NEAR - 1):.0f}% of the narrowest here ({width}, {_design(narrow)})."
        )
    if small is narrow:
        return f"{_design(narrow)}: an interval {width} wide."
    return (
        f"The width of the interval shrinks from {number(small['width'])} ({_design(small)}) to "
        f"{width} ({_design(narrow)}); no cheaper design comes within {100 * (NEAR - 1):.0f}% of "
        "that."
    )


def _design(row: Mapping[str, Any]) -> str:
    raters = "1 rater" if row["raters"] == 1 else f"{row['raters']} raters"
    return f"{row['cases']:,} cases with {raters} each"

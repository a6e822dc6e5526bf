"""Higher-order statistics of the labels, such as disagreement (LH section 4, appendix C).

Their losses are those of `metrics.proper`. For a 0/1 statistic, as for any indicator,
E[(φ - z)²] = (μ - z)² + μ(1 - μ), so LH eq 8 serves for LH eq 40 with μ the U-statistic, and LH eqs
42-45 have the form of LH eq 14; an M-valued statistic sums over its values, the channels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.types import FloatArray

Statistic = Callable[..., Any]

MAX_HISTOGRAMS = 2_000_000


def histograms(order: int, num_classes: int) -> NDArray[np.int64]:
    """Return every histogram of `order` labels over the classes, one per row.

    >>> histograms(2, 2)
    array([[2, 0],
           [1, 1],
           [0, 2]])
    """
    number = comb(order + num_classes - 1, num_classes - 1)
    if number > MAX_HISTOGRAMS:
        raise InvalidInputError(
            f"order: {order} labels of {num_classes} classes have {number} histograms; "
            f"at most {MAX_HISTOGRAMS} are enumerated"
        )
    return np.array(list(_compositions(order, num_classes)), np.int64).reshape(number, num_classes)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def mean_statistic(
    statistic: Statistic, counts: NDArray[Any], order: int, values: int
) -> FloatArray:
    """Return μ̂_φ of each case: the mean of φ over all subsets of `order` raters (LH eq 16).

    A subset matters only through its histogram h, and Π_k C(n_k, h_k) subsets share it, so the
    sum runs over histograms: μ̂ = Σ_h φ(h) Π_k C(n_k, h_k) / C(n, order). The answer is (N, 1)
    for a 0/1 statistic (`values` = 1), otherwise (N, M) with the frequency of each of M values.
    """
    distinct, inverse = np.unique(counts, axis=0, return_inverse=True)
    rows = histograms(order, counts.shape[1])
    phi = statistic_of_histograms(statistic, rows, values)
    largest = int(counts.max(initial=0))
    choose = np.array([[comb(n, h) for h in range(order + 1)] for n in range(largest + 1)], float)
    means = np.empty((len(distinct), phi.shape[1]))
    for i, n in enumerate(distinct):
        ways = np.ones(len(rows))
        for k in range(len(n)):
            ways *= choose[n[k], rows[:, k]]
        means[i] = ways @ phi / comb(int(n.sum()), order)
    return means[inverse.ravel()]


def statistic_of_histograms(
    statistic: Statistic, rows: NDArray[np.int64], values: int
) -> FloatArray:
    """Return φ of each histogram as indicators (H, M), or (H, 1) for a 0/1 statistic.

    `statistic` is asked with the labels themselves, in increasing order: as one tuple, or as
    separate arguments where it takes several.
    """
    spread = _takes_several(statistic)
    out = np.zeros((len(rows), values))
    for i, h in enumerate(rows):
        labels = tuple(np.repeat(np.arange(len(h)), h).tolist())
        value = np.asarray(statistic(*labels) if spread else statistic(labels))
        if value.ndim == 0 and values > 1:
            if not (value == int(value) and 0 <= value < values):
                raise InvalidInputError(
                    f"statistic: must be one of 0 … {values - 1}, as predicted has {values} "
                    f"columns; it is {value} for the labels {labels}"
                )
            out[i, int(value)] = 1
        elif value.shape not in ((), (values,)) or not np.isin(value, (0, 1)).all():
            raise InvalidInputError(
                f"statistic: must be 0 or 1, or one of {values} values; it is {value} for the "
                f"labels {labels}"
            )
        else:
            out[i] = value
    return out


def _takes_several(statistic: Statistic) -> bool:
    try:
        parameters = inspect.signature(statistic).parameters.values()
    except (TypeError, ValueError):  # built-ins without a signature take one sequence
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(needed) > 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters)

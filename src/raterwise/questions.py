"""Questions: a chunk of predictions becomes scored cases (z, μ, v, w).

Each question asks for the probability z that the model gave to an event and the frequency μ of
that event among the raters of the case:

    top_label         is the predicted class right?          z = max_k p_k
    positive          is it class 1? (K = 2)                 z = p_1
    per_class         is it class k?, for every k            z = p_k, one channel per class
    predicted_class   is the predicted class right?,         one channel per predicted class
    disagreement      do two raters differ?                  z = 1 - Σ p_k², or what a belief says

Of those who have a confidence of their own, or cases from elsewhere (CCC), also

    confidence        is the predicted class right?          z = the confidence that was given
    with_outside      the same, outside cases being wrong    z = that, or max_k p_k
    inside            is the case not from elsewhere?        z = that, or max_k p_k

A case counts once per rater (`per="annotation"`, the multi-rater errors) or once (`per="case"`).

An `Event` is about the class that a clinician looks for: class 1 of two, a class that is named,
each class against the rest, or class k and higher of ordered classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.predictions import Rows
from raterwise.rules import choose, one_class, positive_integer
from raterwise.types import FloatArray, Integers

QUESTIONS = (
    *("top_label", "positive", "per_class", "predicted_class", "disagreement"),
    *("confidence", "with_outside", "inside"),
)
MOST_PLACES = 300
POWERS_OF_TEN = 10.0 ** np.arange(MOST_PLACES + 1)
NO_COLUMNS = np.empty((0, 0))
NO_INDEX = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class ScoredCases:
    """Flat scored cases of one chunk; empty arrays stand for 'not needed'."""

    z: NDArray[Any]
    """(n, C): predicted probability of the event."""
    observed: FloatArray
    """(n, C): observed frequency of the event among the raters; empty where `said` tells it."""
    weights: FloatArray
    """(n,)."""
    v: FloatArray = field(default_factory=lambda: NO_COLUMNS)
    """(n, C): the within-case correction μ(1-μ)/(n-1), where every case has two raters."""
    channel: NDArray[np.int64] = field(default_factory=lambda: NO_INDEX)
    """(n,): the channel of the case where it is not the column."""
    units: NDArray[np.int64] = field(default_factory=lambda: NO_INDEX)
    """(n,): the resampling unit."""
    rounding: float = 0.0
    """How close below an edge a score counts as on it: see `raterwise.binning`."""
    share: FloatArray = field(default_factory=lambda: NO_COLUMNS)
    """(n, bins): how much of the case is in each soft bin, where that is its own (RECE eq 7)."""
    said: NDArray[Any] = field(default_factory=lambda: NO_INDEX)
    """(n,): of cases of weight 1 with one label each, the column it names; no column if none."""

    @property
    def mu(self) -> FloatArray:
        """(n, C): observed frequency of the event among the raters."""
        if not self.said.size:
            return self.observed
        return np.asarray(self.said[:, None] == np.arange(self.z.shape[1]), np.float64)

    def take(self, rows: NDArray[Any], units: NDArray[np.int64] = NO_INDEX) -> ScoredCases:
        """Return the chosen cases, in the resampling units given."""
        names = ("z", "observed", "weights", "v", "channel", "share", "said")
        columns = {name: getattr(self, name) for name in names}
        taken = {name: column[rows] for name, column in columns.items() if column.size}
        return replace(self, **taken, units=units)


@dataclass(frozen=True)
class Question:
    """One of the QUESTIONS, counted per annotation or per case."""

    kind: ClassVar[str] = "question"

    name: str = "top_label"
    per: str = "annotation"

    def __post_init__(self) -> None:
        choose("question", self.name, QUESTIONS)
        choose("per", self.per, ("annotation", "case"))

    @property
    def takes_outside(self) -> bool:
        """Whether cases from elsewhere are among those it is asked of."""
        return self.name in ("with_outside", "inside")

    def channels(self, num_classes: int) -> int:
        """How many channels the answer has."""
        if self.name == "positive" and num_classes != 2:
            raise InvalidInputError(
                f'question: "positive" is for 2 classes; probs has {num_classes}. '
                'Use "per_class" or "top_label"'
            )
        return num_classes if self.name in ("per_class", "predicted_class") else 1

    def score(self, rows: Rows) -> ScoredCases:
        """Return the scored cases of a chunk."""
        said = NO_INDEX
        if rows.classes is not None and rows.weights is None and self.name in _SAID:
            z, said = _SAID[self.name](rows)
            mu = NO_COLUMNS
        else:
            z, mu = _ASK[self.name](rows)
        return ScoredCases(
            z,
            mu,
            _weights(rows, self.per),
            _within(rows, self.per, mu),
            channel=rows.predicted if self.name == "predicted_class" else NO_INDEX,
            units=NO_INDEX if rows.units is None else rows.units,
            rounding=rows.rounding,
            said=said,
        )


@dataclass(frozen=True)
class Event:
    """Is it the positive class? z = p_k and μ the fraction of raters who say k.

    Of two classes, class 1 unless told otherwise; of more, each class against the rest, a channel
    each. Of ordered classes, class k or higher: z = Σ_{j >= k} p_j, for every k but the lowest.
    """

    kind: ClassVar[str] = "event"
    name: ClassVar[str] = "event"

    positive: int | None = None
    """The only class to ask about; of ordered ones, the lowest that counts as positive."""
    per: str = "annotation"
    ordered: bool = False
    alone: bool = False
    """Ask of one class only: nothing is asked where there are three and none is named."""

    def __post_init__(self) -> None:
        choose("per", self.per, ("annotation", "case"))
        if not isinstance(self.ordered, bool):
            raise InvalidTypeError(f"ordered: must be True or False; got {self.ordered!r}")
        if self.positive is not None:
            positive_integer("positive", self.positive, least=1 if self.ordered else 0)

    def classes(self, num_classes: int) -> list[int]:
        """Return the classes asked about, or the cuts below them, one for each channel."""
        if self.positive is not None:
            return [one_class("positive", self.positive, num_classes)]
        if num_classes == 2:
            return [1]
        if self.alone:
            return []
        return list(range(1 if self.ordered else 0, num_classes))

    def columns(self, num_classes: int) -> slice:
        """Return the same as a slice of columns."""
        asked = self.classes(num_classes)
        return slice(asked[0], asked[-1] + 1) if asked else slice(0, 0)

    def channels(self, num_classes: int) -> int:
        """How many channels the answer has."""
        return len(self.classes(num_classes))

    def score(self, rows: Rows) -> ScoredCases:
        """Return the scored cases of a chunk."""
        chosen = self.columns(rows.probs.shape[1])
        z, mu = rows.probs, _frequencies(rows)
        if self.ordered and rows.probs.shape[1] > 2:
            z, mu = cumulative(z, rows.rounding), np.minimum(at_least(mu), 1)
        z, mu = z[:, chosen], mu[:, chosen]
        units = NO_INDEX if rows.units is None else rows.units
        weights, v = _weights(rows, self.per), _within(rows, self.per, mu)
        return ScoredCases(z, mu, weights, v, units=units, rounding=rows.rounding)


def cumulative(probs: NDArray[Any], rounding: float) -> FloatArray:
    """Return the probability of class k or higher, for every k, to the digits that sums hold.

    0.7 + 0.1 is a little less than 0.8: cases that are tied would be ranked by such rounding, and
    fall below a threshold that they reach. What is not sure is not made sure: it stays below 1.

    >>> cumulative(np.array([[0.2, 0.7, 0.1], [0.2, 0.0, 0.8], [1.0, 0.0, 1e-30]]), 0.0).tolist()
    [[1.0, 0.8, 0.1], [1.0, 0.8, 0.8], [1.0, 1e-30, 1e-30]]
    """
    probs = probs.astype(np.float64)
    sums = np.minimum(at_least(probs), 1)
    with np.errstate(divide="ignore"):
        place = np.clip(sum_digits(rounding) - 1 - np.floor(np.log10(sums)), 0, MOST_PLACES)
    scale = POWERS_OF_TEN[place.astype(np.int64)]
    rounded = np.round(sums * scale) / scale
    unsure = probs.cumsum(axis=1) - probs > 0
    return np.asarray(np.where(unsure & (rounded >= 1), sums, rounded))


def sum_digits(rounding: float) -> int:
    """Return to how many digits sums of probabilities with that rounding can be told apart.

    >>> sum_digits(0.0), sum_digits(2.0**-24), sum_digits(2.0**-11)
    (14, 7, 3)
    """
    return 14 if rounding == 0 else int(-np.log10(rounding))


def at_least(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sums over class k and those above, for every k.

    >>> at_least(np.array([[0.5, 0.25, 0.25]]))
    array([[1.  , 0.5 , 0.25]])
    """
    return np.asarray(values[:, ::-1].cumsum(axis=1)[:, ::-1])


@dataclass(frozen=True)
class PerCaseScore:
    """A score that each case has by itself; its sums are kept as one bin with μ the score.

    log      -Σ_k μ_k log p_k
    ranked   Σ_k (F_k - F̂_k)² + F̂_k (1 - F̂_k), for ordered classes, with F_k the probability of
             class k or lower and F̂_k the fraction of raters there
    ranked_by_chance   what `ranked` of one label would be by p: the mean over labels drawn from p;
             its z is not 0 but the variance of that. Of a second channel z is the third moment
    ranked_log     -Σ_k F̂_k log F_k + (1 - F̂_k) log(1 - F_k)
    majority       whether the predicted class is that of most raters, ties to the lowest class
    spiegelhalter  Σ_k p_k (p_k - μ_k), half of what the squared loss is above its expectation;
                   its z is not 0 but the variance of that, Σ p³ - (Σ p²)²
    another name is that of a value the cases carry (`Predictions.case_values`)
    """

    kind: ClassVar[str] = "score"

    name: str
    per: str = "case"

    def channels(self, num_classes: int) -> int:
        """One, or two where z has two columns."""
        return 2 if self.name == "ranked_by_chance" else 1

    def score(self, rows: Rows) -> ScoredCases:
        """Return cases whose μ is the score and whose z is 0, or the variance of the score."""
        value = _SCORES[self.name](rows) if self.name in _SCORES else rows.case_values[self.name]
        spread = _SPREADS[self.name](rows) if self.name in _SPREADS else np.zeros(len(value))
        spread = spread.reshape(len(value), -1)
        return ScoredCases(
            spread,
            np.repeat(value[:, None], spread.shape[1], axis=1),
            _weights(rows, self.per),
            units=NO_INDEX if rows.units is None else rows.units,
        )


def _log_score(rows: Rows) -> FloatArray:
    frequency = _frequencies(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(frequency > 0, frequency * np.log(rows.probs.astype(np.float64)), 0)
    return np.asarray(-each.sum(axis=1))


def _ranked_score(rows: Rows) -> FloatArray:
    observed = _frequencies(rows).cumsum(axis=1)[:, :-1]
    gap = rows.probs.astype(np.float64).cumsum(axis=1)[:, :-1] - observed
    return np.asarray((gap**2 + observed * (1 - observed)).sum(axis=1))


def _ranked_of_each(rows: Rows) -> FloatArray:
    """Return what `ranked` would be of each label y: Σ_{k<y} F_k² + Σ_{k>=y} (1 - F_k)²."""
    below = np.minimum(rows.probs.astype(np.float64).cumsum(axis=1)[:, :-1], 1)
    none = np.zeros((len(below), 1))
    missed = np.hstack([none, (below**2).cumsum(axis=1)])
    reached = np.hstack([none, ((1 - below) ** 2)[:, ::-1].cumsum(axis=1)])[:, ::-1]
    return np.asarray(missed + reached)


def _ranked_by_chance(rows: Rows) -> FloatArray:
    return np.asarray((rows.probs.astype(np.float64) * _ranked_of_each(rows)).sum(axis=1))


def _moments_of_ranked(rows: Rows) -> FloatArray:
    """Return the second and the third central moment, (n, 2)."""
    probs, each = rows.probs.astype(np.float64), _ranked_of_each(rows)
    off = each - (probs * each).sum(axis=1, keepdims=True)
    return np.stack([(probs * off**power).sum(axis=1) for power in (2, 3)], axis=1)


def _ranked_log_score(rows: Rows) -> FloatArray:
    """From below and from above, so that neither end of the scale loses digits."""
    probs, observed = rows.probs.astype(np.float64), _frequencies(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = [
            np.where(share > 0, share * np.log(np.minimum(reached, 1)), 0)
            for share, reached in (
                (observed.cumsum(axis=1)[:, :-1], probs.cumsum(axis=1)[:, :-1]),
                (_from_above(observed), _from_above(probs)),
            )
        ]
    return np.asarray(-(each[0] + each[1]).sum(axis=1))


def _from_above(values: FloatArray) -> FloatArray:
    """Return Σ_{j > k} of each row, for every k but the last."""
    return values[:, :0:-1].cumsum(axis=1)[:, ::-1]


def _majority_hit(rows: Rows) -> FloatArray:
    said = rows.classes if rows.counts is None else rows.counts.argmax(axis=1)
    return np.asarray(rows.predicted == said, np.float64)


def _excess_squares(rows: Rows) -> FloatArray:
    probs = rows.probs.astype(np.float64)
    return np.asarray((probs * (probs - _frequencies(rows))).sum(axis=1))


def _variance_of_squares(rows: Rows) -> FloatArray:
    """Σ p³ - (Σ p²)² as the variance that it is: Σ_k p_k (p_k - Σ p²)²."""
    probs = rows.probs.astype(np.float64)
    return np.asarray((probs * (probs - (probs**2).sum(axis=1, keepdims=True)) ** 2).sum(axis=1))


_SCORES = {
    "log": _log_score,
    "ranked": _ranked_score,
    "ranked_by_chance": _ranked_by_chance,
    "ranked_log": _ranked_log_score,
    "majority": _majority_hit,
    "spiegelhalter": _excess_squares,
}
_SPREADS = {"spiegelhalter": _variance_of_squares, "ranked_by_chance": _moments_of_ranked}


def score_outside(confidence: FloatArray, units: NDArray[np.int64] | None = None) -> ScoredCases:
    """Return cases from elsewhere as scored cases: each counts once, and none is right."""
    return ScoredCases(
        np.ascontiguousarray(confidence[:, None]),
        np.zeros((len(confidence), 1)),
        np.ones(len(confidence)),
        units=NO_INDEX if units is None else units,
    )


def disagreement_frequency(counts: Integers) -> FloatArray:
    """Return how often two of a case's raters differ: LH eq 16 for φ^D, in closed form.

    μ = 1 - Σ_k n_k (n_k - 1) / (n (n - 1)), over the pairs of distinct raters.

    >>> disagreement_frequency(np.array([[1, 1], [2, 1], [3, 0]]))
    array([1.        , 0.66666667, 0.        ])
    """
    n = counts.sum(axis=1).astype(np.float64)
    same = (counts.astype(np.float64) * (counts - 1.0)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - same / (n * (n - 1)), np.float64)


def _top_label(rows: Rows) -> tuple[FloatArray, FloatArray]:
    if rows.classes is not None:
        hits = (rows.predicted == rows.classes).astype(np.float64)
    else:
        assert rows.counts is not None and rows.num_raters is not None
        chosen = np.take_along_axis(rows.counts, rows.predicted[:, None], axis=1)[:, 0]
        hits = chosen / rows.num_raters
    return rows.confidence[:, None], hits[:, None]


def _ranked(rows: Rows) -> tuple[FloatArray, FloatArray]:
    z, hits = _top_label(rows)
    return z if rows.own_confidence is None else rows.own_confidence[:, None], hits


def _inside(rows: Rows) -> tuple[FloatArray, FloatArray]:
    z, _ = _ranked(rows)
    return z, np.ones(z.shape)


def _disagreement(rows: Rows) -> tuple[FloatArray, FloatArray]:
    assert rows.counts is not None, "disagreement needs two labels per case"
    differ = rows.case_values.get("disagreement")
    if differ is None:
        probs = rows.probs.astype(np.float64)
        differ = np.clip(1 - (probs * probs).sum(axis=1), 0, 1)
    return differ[:, None], disagreement_frequency(rows.counts)[:, None]


_ASK: dict[str, Callable[[Rows], tuple[NDArray[Any], FloatArray]]] = {
    "top_label": _top_label,
    "positive": lambda rows: (rows.probs[:, 1:2], _frequencies(rows)[:, 1:2]),
    "per_class": lambda rows: (rows.probs, _frequencies(rows)),
    "predicted_class": _top_label,
    "disagreement": _disagreement,
    "confidence": _ranked,
    "with_outside": _ranked,
    "inside": _inside,
}
_SAID: dict[str, Callable[[Rows], tuple[NDArray[Any], NDArray[Any]]]] = {
    # Of one column, 0 (False) is the column of a hit.
    "top_label": lambda rows: (rows.confidence[:, None], rows.predicted != rows.classes),
    "predicted_class": lambda rows: (rows.confidence[:, None], rows.predicted != rows.classes),
    "per_class": lambda rows: (rows.probs, np.asarray(rows.classes)),
}
"""The same of single labels of weight 1: z, and the column that the label names."""


def _frequencies(rows: Rows) -> FloatArray:
    if rows.classes is not None:
        onehot = np.zeros(rows.probs.shape)
        onehot[np.arange(len(onehot)), rows.classes] = 1
        return onehot
    assert rows.counts is not None and rows.num_raters is not None
    return np.asarray(rows.counts / rows.num_raters[:, None], np.float64)


def _weights(rows: Rows, per: str) -> FloatArray:
    weights = np.ones(len(rows.probs)) if rows.weights is None else rows.weights
    if per == "annotation" and rows.num_raters is not None:
        return weights * rows.num_raters
    return weights


def _within(rows: Rows, per: str, mu: FloatArray) -> FloatArray:
    """Return the within-case correction, where every case has two raters and counts once."""
    if rows.num_raters is None or per != "case" or rows.num_raters.min() < 2:
        return NO_COLUMNS
    return np.asarray(mu * (1 - mu) / (rows.num_raters - 1)[:, None])

"""Probabilities at another prevalence than that of the cases a model was made or tested with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_float_array
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.predictions import Predictions

__all__ = ["AtPrevalence", "at_prevalence", "shift_prevalence"]

FloatArray = NDArray[np.float64]


def shift_prevalence(
    probs: ArrayLike, from_: float | ArrayLike, to: float | ArrayLike
) -> FloatArray:
    """Return probabilities as they would be where classes are as frequent as `to` says.

    By Bayes' rule, with images of a class looking the same everywhere: p_k is multiplied by
    to_k / from_k, and rows are brought to sum 1 again. For two classes that multiplies the odds.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; (N,) are those of class 1 of two.
    from_ : float or array-like of shape (K,)
        How frequent the classes are where the probabilities are right; of two classes the
        prevalence of class 1 suffices.
    to : float or array-like of shape (K,)
        How frequent they are where the probabilities are to be used.

    Returns
    -------
    array of the shape of `probs`
        Probabilities of 0 and 1 stay as they are.

    Raises
    ------
    InvalidInputError
        If a prevalence does not lie between 0 and 1, both excluded, or those of all classes do not
        sum to 1.

    See Also
    --------
    evaluate : with target_prevalence it weights the cases of an enriched test set as well.

    References
    ----------
    Saerens, Latinne & Decaestecker, Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 14 (2002) 21-41.

    Examples
    --------
    >>> shift_prevalence([0.5, 0.9], from_=0.5, to=0.1).round(4)  # odds 1 and 9, times 1/9
    array([0.1, 0.5])
    """
    given = as_float_array(probs, "probs", ndim=(1, 2))
    classes = 2 if given.ndim == 1 else given.shape[1]
    _check(given, classes)
    given = given.astype(np.float64)
    both = np.stack((1 - given, given), axis=1) if given.ndim == 1 else given
    before, after = _prior("from_", from_, classes), _prior("to", to, classes)
    moved = both * (after / before)
    total = moved.sum(axis=1, keepdims=True)
    shifted = moved / np.where(total > 0, total, 1)
    return np.asarray(shifted[:, 1] if given.ndim == 1 else shifted)


def _check(probs: NDArray[Any], classes: int) -> None:
    """Raise what `evaluate` would raise about these probabilities."""
    nobody = Labels.from_classes(np.zeros(len(probs), np.int64), num_classes=classes)
    cases = Predictions.of(probs, nobody)
    for start in range(0, len(cases), cases.chunk_rows):
        cases.read(start, min(start + cases.chunk_rows, len(cases)))


def _prior(name: str, value: Any, classes: int) -> FloatArray:
    prior = np.atleast_1d(as_float_array(value, name, ndim=(0, 1)).astype(np.float64))
    if len(prior) == 1 and classes == 2:
        prior = np.array([1 - prior[0], prior[0]])
    if len(prior) != classes:
        raise InvalidInputError(
            f"{name}: must give the prevalence of each of the {classes} classes; got {len(prior)}"
        )
    if not ((prior > 0) & (prior < 1)).all():
        raise InvalidInputError(
            f"{name}: a prevalence must lie between 0 and 1, both excluded; got {prior.tolist()}"
        )
    if abs(prior.sum() - 1) > 1e-6:
        raise InvalidInputError(
            f"{name}: the prevalences of all classes must sum to 1; they sum to {prior.sum():g}"
        )
    return np.asarray(prior / prior.sum())


@dataclass(frozen=True, eq=False)
class AtPrevalence:
    """A test set as it counts where classes are as frequent as in use."""

    probs: FloatArray
    """(M, K): shifted, a row for every class that a rater of a case chose."""
    labels: Labels
    weights: FloatArray
    groups: NDArray[Any]
    """(M,): the patient, or the case where there are no patients: its rows are drawn together."""
    rows: NDArray[np.int64]
    """(M,): the case of each row."""
    told: dict[str, Any]
    """What results say of it."""

    def in_words(self, class_names: Sequence[str] | None) -> str:
        """Return what was done, in a sentence or two."""
        told = self.told
        names = class_names or [f"class {k}" for k in range(len(told["to"]))]
        each = ", ".join(
            f"{name} {before:.3g} → {after:.3g} (weight {weight:.3g})"
            for name, before, after, weight in zip(
                names, told["labels"], told["to"], told["weights"], strict=True
            )
        )
        moved = "" if told["from"] == told["to"] else " Probabilities are shifted alike."
        return (
            f"Results at the prevalence of use: {each}.{moved} Every label is weighted by its "
            f"class and every case counts once; the weights leave {told['worth']:.0f} cases' "
            "worth of information. How raters of one case differ is not carried over."
        )


def at_prevalence(
    probs: Any,
    labels: Labels,
    target: float | ArrayLike,
    source: float | ArrayLike | None = None,
    *,
    weights: FloatArray | None = None,
    groups: Any = None,
) -> AtPrevalence:
    """Return a test set in which some classes are enriched as it would count in use.

    A label of class k weighs to_k / (its share of all labels), for images of a class look the same
    everywhere; a case whose raters differ becomes a row for each class that they chose, together
    of the weight of its labels. `source` is where the probabilities are right: with these labels
    by default, or already in use where it equals `target`.

    >>> found = at_prevalence([0.2, 0.6], Labels.from_counts([[3, 1], [0, 2]]), 0.25)
    >>> found.rows.tolist(), found.weights.round(3).tolist()  # 5 of 8 are positive, per case
    ([0, 0, 1], [1.5, 0.1, 0.4])
    """
    frequencies, classes = labels.frequencies, labels.counts.shape[1]
    each = np.ones(len(labels)) if weights is None else np.asarray(weights, np.float64)
    each = np.where(labels.num_raters > 0, each, 0)
    shares = np.nan_to_num(frequencies) * each[:, None]
    seen = shares.sum(axis=0) / shares.sum()
    to = _prior("target_prevalence", target, classes)
    if (absent := np.flatnonzero(seen == 0)).size:
        raise InvalidInputError(
            f"target_prevalence: no label is of class {absent[0]}, so that no weight can make it "
            f"{to[absent[0]]:g} of all"
        )
    before = seen if source is None else _prior("source_prevalence", source, classes)
    rows, said = np.nonzero(shares > 0)
    mass = shares[rows, said] * (to / seen)[said]
    told = {
        "labels": seen.tolist(), "from": before.tolist(), "to": to.tolist(),
        "weights": (to / seen).tolist(), "worth": _worth(mass, rows),
    }  # fmt: skip
    return AtPrevalence(
        shift_prevalence(probs, before, to)[rows],
        Labels.from_classes(said, num_classes=classes, class_names=labels.class_names),
        mass,
        np.asarray(rows if groups is None else np.asarray(groups)[rows]),
        rows,
        told,
    )


def _worth(mass: FloatArray, rows: NDArray[np.int64]) -> float:
    """Return how many cases of equal weight would carry as much (Kish)."""
    by_case = np.bincount(rows, mass)
    return float(by_case.sum() ** 2 / (by_case**2).sum())

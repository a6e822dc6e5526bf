"""Probabilities at a prevalence that differs from the training or test cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_float_array
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.predictions.mixtures import Draws
from raterwise.predictions.predictions import rows_of
from raterwise.types import FloatArray


def shift_prevalence(
    probs: ArrayLike, from_: float | ArrayLike, to: float | ArrayLike
) -> FloatArray:
    """Return the probabilities adjusted to a population with class frequencies `to`.

    By Bayes' rule, assuming that images of a class look the same in both populations: p_k is
    multiplied by to_k / from_k and each row is rescaled to sum to 1. For two classes this
    multiplies the odds.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
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
    rows_of(given)
    given = given.astype(np.float64)
    both = np.stack((1 - given, given), axis=1) if given.ndim == 1 else given
    before, after = _prior("from_", from_, classes), _prior("to", to, classes)
    moved = both * (after / before)
    total = moved.sum(axis=1, keepdims=True)
    shifted = moved / np.where(total > 0, total, 1)
    return np.asarray(shifted[:, 1] if given.ndim == 1 else shifted)


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


@dataclass(frozen=True)
class Prior:
    """How frequent classes are among labels, where the probabilities are right, and in use."""

    seen: tuple[float, ...]
    before: tuple[float, ...]
    to: tuple[float, ...]

    @staticmethod
    def of(shares: FloatArray, target: Any, source: Any = None) -> Prior:
        """Return the prior of labels whose classes have these sums of weight, every case once."""
        classes = len(shares)
        to = _prior("target_prevalence", target, classes)
        if (absent := np.flatnonzero(shares == 0)).size:
            raise InvalidInputError(
                f"target_prevalence: no label is of class {absent[0]}, so weights cannot give it a "
                f"prevalence of {to[absent[0]]:g}"
            )
        seen = shares / shares.sum()
        before = seen if source is None else _prior("source_prevalence", source, classes)
        return Prior(*(tuple(each.tolist()) for each in (seen, before, to)))

    @staticmethod
    def of_cases(predictions: Predictions, target: Any, source: Any = None) -> Prior:
        """Return the prior of the labels of these cases."""
        return Prior.of(
            _shares(predictions.labels, predictions.weights).sum(axis=0), target, source
        )

    @property
    def ratios(self) -> FloatArray:
        """(K,): how much a label of each class weighs."""
        return np.asarray(np.array(self.to) / np.array(self.seen), np.float64)

    def told(self, worth: float) -> dict[str, Any]:
        """Return what results say of it; `worth` is that of the weighted cases."""
        return {
            "labels": list(self.seen), "from": list(self.before), "to": list(self.to),
            "weights": self.ratios.tolist(), "worth": worth,
        }  # fmt: skip


def refuse_source_alone(target: Any, source: Any) -> None:
    """Refuse where probabilities are right without where they are to be used."""
    if target is None and source is not None:
        raise InvalidInputError(f"source_prevalence: needs target_prevalence; got only {source!r}")


def in_words(told: Mapping[str, Any], class_names: Sequence[str] | None) -> str:
    """Return what was done, in a sentence or two."""
    names = class_names or [f"class {k}" for k in range(len(told["to"]))]
    each = ", ".join(
        f"“{name}” {before:.3g} → {after:.3g} (weight {weight:.3g})"
        for name, before, after, weight in zip(
            names, told["labels"], told["to"], told["weights"], strict=True
        )
    )
    moved = "" if told["from"] == told["to"] else " Probabilities are shifted alike."
    return (
        f"results at the prevalence of use: {each}.{moved} Every label is weighted by its "
        f"class and every case counts once; the weights leave {told['worth']:.0f} cases' "
        "worth of information. How raters of one case differ is not carried over."
    )


def in_use(
    predictions: Predictions, prior: Prior, first: int = 0
) -> tuple[Predictions, NDArray[np.int64]]:
    """Return an enriched test set, or a part of one, as it counts in use, and the case of each row.

    A label of class k weighs to_k / (its share of all labels), for images of a class look the same
    everywhere; a case whose raters differ becomes a row for each class that they chose, together
    of the weight of its labels. `first` is the number of its first case among all of them.

    >>> cases = Predictions.of([0.2, 0.6], Labels.from_counts([[3, 1], [0, 2]]))
    >>> found, rows = in_use(cases, Prior.of_cases(cases, 0.25))  # 5 of 8 are positive, per case
    >>> rows.tolist(), found.weights.round(3).tolist()
    ([0, 0, 1], [1.5, 0.1, 0.4])
    """
    for name in ("confidence", "outside"):
        if getattr(predictions, name) is not None:
            raise InvalidInputError(
                f"target_prevalence: cannot be combined with {name}; leave out one"
            )
    probs, before, samples = predictions.probs, prior.before, None
    if predictions.belief is not None:
        samples = _shifted_draws(predictions.belief, prior)
    if samples is not None:  # every draw is shifted already, which is not to shift their mean
        probs, before = samples.mean(axis=0), prior.to
    labels, groups = predictions.labels, predictions.groups
    shares = _shares(labels, predictions.weights)
    rows, said = np.nonzero(shares > 0)
    moved = Predictions.of(
        shift_prevalence(probs, before, prior.to)[rows],
        Labels.from_classes(said, num_classes=shares.shape[1], class_names=labels.class_names),
        weights=shares[rows, said] * prior.ratios[said],
        # The rows of a case are drawn together.
        groups=rows + first if groups is None else groups[rows],
        class_names=predictions.class_names,
    )
    if samples is not None and predictions.draws is not None:
        moved = replace(moved, draws=Draws.of(samples, probs)[rows])
    kept = np.arange(len(predictions)) if predictions.kept is None else predictions.kept
    moved = replace(
        moved, kept=kept[rows], dropped=predictions.dropped, notes=predictions.notes,
        left_out=predictions.left_out, sources=predictions.sources,
        case_raters=labels.num_raters[rows].astype(np.int64),
        groups_are_cases=groups is None, class_weights=prior.ratios,
    )  # fmt: skip
    return moved, rows


def _shifted_draws(belief: Any, prior: Prior) -> FloatArray | None:
    """Return each draw of an ensemble shifted by itself; None of a belief that is a point."""
    samples = getattr(belief, "samples", None)
    if hasattr(belief, "concentration"):
        raise InvalidInputError(
            "target_prevalence: a belief with a concentration cannot be shifted; give probabilities"
        )
    if samples is None:
        return None
    return np.stack([shift_prevalence(draw, prior.before, prior.to) for draw in samples])


def _shares(labels: Labels, weights: Any) -> FloatArray:
    """Return (N, K): how much each case counts for each class, every case once."""
    each = np.ones(len(labels)) if weights is None else np.asarray(weights, np.float64)
    each = np.where(labels.num_raters > 0, each, 0)
    return np.asarray(np.nan_to_num(labels.frequencies) * each[:, None])

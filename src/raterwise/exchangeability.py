"""Are the raters interchangeable? A test of the assumption that every estimate here makes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import positive_integer
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.labels import Labels, Ratings
from raterwise.metrics.exchangeability import name_deviants

__all__ = ["ExchangeabilityTest", "RaterDeviation", "exchangeability_test"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RaterDeviation:
    """How one rater compares with the others on the same cases."""

    rater_id: Hashable
    ratings: int
    """How many of the rater's labels are on cases that somebody else labelled too."""
    statistic: float
    """dᵀ V⁺ d: χ² with K - 1 degrees of freedom, roughly, for an interchangeable rater."""
    p_value: float
    """Against all the others, not adjusted for the number of raters."""
    adjusted_p_value: float
    """Adjusted for the number of raters, those named before set aside."""
    excess: dict[Hashable, float]
    """For each class, how much more often this rater gives it than the others on the same cases."""
    breaks: bool
    """Whether the rater is named: adjusted p-value at most the level."""


@dataclass(frozen=True)
class ExchangeabilityTest:
    """The outcome of `exchangeability_test`."""

    statistic: float
    """(R-1)/R Σ_r of the raters' statistics; with complete ratings the generalised
    Cochran-Mantel-Haenszel statistic (two classes: Cochran's Q; two raters: Stuart-Maxwell)."""
    p_value: float
    """Of all raters together."""
    raters: tuple[RaterDeviation, ...]
    level: float
    permutations: int
    cases: int
    """How many cases have two labels or more."""
    divided_cases: int
    """On how many of them the labels differ: the others say nothing about the raters."""

    @property
    def breaking(self) -> tuple[Hashable, ...]:
        """The raters that break the assumption, the most deviant first."""
        named = [rater for rater in self.raters if rater.breaks]
        return tuple(r.rater_id for r in sorted(named, key=lambda r: r.adjusted_p_value))

    def __str__(self) -> str:
        verdict = (
            "The raters are not interchangeable"
            if self.p_value <= self.level
            else "Nothing speaks against interchangeable raters"
        )
        lines = [
            f"{verdict}: p = {self.p_value:.4g} ({self.permutations} permutations; labels differ "
            f"on {self.divided_cases} of {self.cases} cases with two labels or more)."
        ]
        for rater in self.raters:
            if rater.breaks:
                klass, most = max(rater.excess.items(), key=lambda item: abs(item[1]))
                lines.append(
                    f"Rater {rater.rater_id!r} gives class {klass!r} {abs(most):.1%} "
                    f"{'more' if most > 0 else 'less'} often than the others on the same "
                    f"{rater.ratings} cases (adjusted p = {rater.adjusted_p_value:.4g})."
                )
        if not self.breaking:
            lines.append(f"No single rater stands out at level {self.level:g}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; raters and classes are called by their names, as text."""
        content = asdict(self)
        for rater in content["raters"]:
            rater["rater_id"] = str(rater["rater_id"])
            rater["excess"] = {str(name): value for name, value in rater["excess"].items()}
        return {**content, "raters": list(content["raters"])}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the outcome that `to_dict` wrote down."""
        raters = tuple(RaterDeviation(**rater) for rater in content["raters"])
        return cls(**{**content, "raters": raters})


def exchangeability_test(
    labels: Labels, permutations: int = 2000, seed: int = 0, *, level: float = 0.05
) -> ExchangeabilityTest:
    """Test whether the raters are interchangeable given the case, and name those who are not.

    The estimates from several labels per case assume that the labels of a case are independent
    draws from one distribution (LH section 3, appendix D.6). Then dealing the labels of each case
    to its raters anew changes nothing. For every rater r, with f_i the label frequencies of case i,

        d_r = Σ_i (1[label of r on i = k] - f_ik)_k,    T_r = d_rᵀ V_r⁺ d_r,

    where V_r = Σ_i (diag f_i - f_i f_iᵀ) is the exact covariance of d_r under such dealing.
    `statistic` is (R-1)/R Σ_r T_r, with a p-value from `permutations` random dealings. Raters are
    named step by step: the most deviant one, if its max-T p-value (Westfall & Young 1993) is at
    most `level`, is set aside and the rest are tested among themselves. Setting aside matters: an
    outlier makes those it is compared with look deviant the other way. Two raters alone differ
    from each other equally, and are named together.

    This finds raters whose policies differ: who give some class more or less often than others do
    on the same cases. It does not find two raters with the same policy who copy each other, nor a
    careless one whose errors balance. A rater with one label to compare cannot be judged (p = 1).

    >>> ratings = [[i % 2, (i // 2) % 2, (i // 4) % 2, 1] for i in range(40)]
    >>> test = exchangeability_test(Labels.from_ratings(ratings, num_classes=2))
    >>> test.breaking
    (3,)
    >>> test.raters[3].excess  # class 1 on all of 40 cases, of which the others give it half
    {0: -0.5, 1: 0.5}
    """
    permutations = positive_integer("permutations", permutations)
    seed = positive_integer("seed", seed, least=0)
    _check_level(level, permutations)
    ratings = _compared_ratings(labels)
    raters, classes = len(ratings.rater_ids), labels.num_classes
    step_down = name_deviants(
        ratings.case,
        ratings.rater,
        ratings.label,
        raters,
        classes,
        seeds=np.random.default_rng(seed).integers(2**64, size=permutations, dtype=np.uint64),
        level=level,
    )
    excess, number = _excess(ratings, labels)
    names = labels.class_names or range(classes)
    deviations = tuple(
        RaterDeviation(
            rater_id,
            ratings=int(number[r]),
            statistic=float(step_down.rater_statistics[r]),
            p_value=float(step_down.rater_p_values[r]),
            adjusted_p_value=float(step_down.adjusted_p_values[r]),
            excess=dict(zip(names, excess[r].tolist(), strict=True)),
            breaks=bool(step_down.adjusted_p_values[r] <= level),
        )
        for r, rater_id in enumerate(ratings.rater_ids)
    )
    several = labels.num_raters >= 2
    divided = several & (labels.counts.max(axis=1) < labels.num_raters)
    return ExchangeabilityTest(
        step_down.statistic,
        step_down.p_value,
        raters=deviations,
        level=level,
        permutations=permutations,
        cases=int(several.sum()),
        divided_cases=int(divided.sum()),
    )


def _check_level(level: float, permutations: int) -> None:
    if not 0 < level < 1:
        raise InvalidInputError(f"level: must lie between 0 and 1; got {level}")
    if (permutations + 1) * level < 1 - 1e-9:
        raise InvalidInputError(
            f"permutations: the smallest p-value is 1 / (permutations + 1), which must reach level "
            f"{level:g}: at least {math.ceil(1 / level - 1e-9) - 1} are needed; got {permutations}"
        )


def _compared_ratings(labels: Any) -> Ratings:
    """Return the ratings of cases that at least two different raters labelled."""
    if not isinstance(labels, Labels):
        raise InvalidTypeError(
            "labels: must be Labels that say which rater gave which label, as made by "
            f"Labels.from_ratings or from_long; got {type(labels).__name__}"
        )
    if labels.ratings is None:
        raise InvalidInputError(
            "labels: must say which rater gave which label; make them with Labels.from_ratings or "
            "Labels.from_long"
        )
    ratings = labels.ratings
    lowest = np.full(len(labels), len(ratings.rater_ids))
    highest = np.full(len(labels), -1)
    np.minimum.at(lowest, ratings.case, ratings.rater)
    np.maximum.at(highest, ratings.case, ratings.rater)
    shared = (lowest < highest)[ratings.case]
    if not shared.any():
        raise InvalidInputError(
            "labels: needs cases labelled by at least two different raters; there is none among "
            f"{len(labels)} cases and {len(ratings.rater_ids)} raters"
        )
    return Ratings(
        ratings.case[shared], ratings.rater[shared], ratings.label[shared], ratings.rater_ids
    )


def _excess(ratings: Ratings, labels: Labels) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return (R, K): how much more often each rater gives each class than the others, and (R,).

    The mean over a rater's labels of 1[label = k] minus the frequency of k among the others' labels
    of the same case; the second is how many labels that is.
    """
    raters, classes = len(ratings.rater_ids), labels.num_classes
    pairs, inverse = np.unique(
        ratings.rater.astype(np.int64) * len(labels) + ratings.case, return_inverse=True
    )
    own = np.zeros((len(pairs), classes))
    np.add.at(own, (inverse, ratings.label), 1.0)
    rater, case = np.divmod(pairs, len(labels))
    m = own.sum(axis=1, keepdims=True)
    others = (labels.counts[case] - own) / (labels.num_raters[case][:, None] - m)
    total = np.zeros((raters, classes))
    np.add.at(total, rater, own - m * others)
    number = np.bincount(ratings.rater, minlength=raters)
    with np.errstate(invalid="ignore"):
        return total / number[:, None], number

"""How far the raters agree with one another, and whether they are interchangeable."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arrays import choose, positive_integer
from quorate.errors import InvalidInputError, InvalidTypeError, UndefinedMetricError
from quorate.labels import Labels, Ratings
from quorate.metrics import agreement as formulas
from quorate.metrics.exchangeability import name_deviants
from quorate.predictions import check_weights

__all__ = [
    "ExchangeabilityTest",
    "RaterDeviation",
    "exchangeability_test",
    "fleiss_kappa",
    "krippendorff_alpha",
]

FloatArray = NDArray[np.float64]


def fleiss_kappa(labels: Labels, weights: Any = None, *, on_single: str = "error") -> float:
    """Return Fleiss' kappa: agreement on the class beyond chance; 1 is perfect, 0 is chance.

        κ = 1 - Σ_i Σ_k n_ik (n_i - n_ik) / n_i / [N (n̄ - 1) Σ_k p_k (1 - p_k)]

    n_ik raters of n_i give case i the class k, n̄ is the mean of n_i and p_k the share of class k
    among all labels. With the same number of raters for every case this is (P̄ - P_e) / (1 - P_e)
    (Fleiss 1971); with unequal numbers it is the form of Fleiss & Cuzick (1979) and Fleiss, Levin
    & Paik (2003, chapter 18), in which the agreement of a case counts in proportion to n_i - 1.

    Cases with fewer than two labels are an error, or are left out with `on_single="drop"`. A
    case of weight 2 counts as two such cases. Undefined when all labels are the same class.

    Reference: Fleiss, Levin & Paik, Statistical Methods for Rates and Proportions, 3rd edition,
    Wiley 2003, https://doi.org/10.1002/0471445428.

    >>> labels = Labels.from_ratings([[0, 0, 0], [1, 1, 0], [1, 1, 1]], num_classes=2)
    >>> fleiss_kappa(labels)  # 1 - (2/3) / (3 · 40/81)
    0.55
    """
    case_weights = _checked(labels, weights)
    labels.require_raters(2, on_single)
    kappa = float(formulas.fleiss_from_sums(formulas.fleiss_sums(labels.counts, case_weights)))
    return _defined("fleiss_kappa", kappa)


def krippendorff_alpha(labels: Labels, level: str = "nominal", weights: Any = None) -> float:
    """Return Krippendorff's alpha: agreement beyond chance, for any number of labels per case.

        α = 1 - D_o / D_e = 1 - (n-1) Σ_ck o_ck δ²_ck / Σ_ck n_c n_k δ²_ck

    o_ck counts the pairs of labels c and k of one case, n_c = Σ_k o_ck. `level` says what a
    disagreement weighs: "nominal", any two classes alike; "interval", (k - c)²; "ordinal", the
    squared number of labels that lie between, (Σ_{g=c..k} n_g - (n_c + n_k)/2)², so that the
    distance of two classes depends on how often the classes between them occur.

    A case with fewer than two labels has no pair and is ignored, as the definition says. A case of
    weight 2 counts as two such cases; because of n - 1, multiplying all weights by a number
    changes alpha a little. Undefined when all paired labels are the same class.

    Reference: Krippendorff, Computing Krippendorff's Alpha-Reliability, University of Pennsylvania
    2011, https://repository.upenn.edu/asc_papers/43.

    >>> labels = Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, -1]], num_classes=2)
    >>> krippendorff_alpha(labels)  # 1 - 5 · 2 / (2 · 3 · 3)
    0.444
    """
    choose("level", level, formulas.LEVELS)
    case_weights = _checked(labels, weights)
    labels.require_raters(2, "drop")
    coincidences = formulas.coincidence_sums(labels.counts, case_weights)
    total = float(coincidences.sum())
    if total <= 1:
        raise UndefinedMetricError(
            "krippendorff_alpha: undefined, needs more than one paired label; the weights of the "
            f"labels that can be paired sum to {total:.6g} (a weight is a number of repetitions)"
        )
    alpha = float(formulas.krippendorff_from_coincidences(coincidences, level))
    return _defined("krippendorff_alpha", alpha)


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


def _checked(labels: Labels, weights: Any) -> FloatArray:
    _check_labels(labels)
    case_weights = check_weights(weights, len(labels))
    return np.ones(len(labels)) if case_weights is None else case_weights


def _check_labels(labels: Any) -> None:
    if not isinstance(labels, Labels):
        raise InvalidTypeError(
            "labels: must be Labels with several labels per case, as made by Labels.from_ratings, "
            f"from_counts or from_long; got {type(labels).__name__}"
        )


def _defined(name: str, value: float) -> float:
    if math.isnan(value):
        raise UndefinedMetricError(
            f"{name}: undefined, all labels of cases with two or more are the same class"
        )
    return value


def _check_level(level: float, permutations: int) -> None:
    if not 0 < level < 1:
        raise InvalidInputError(f"level: must lie between 0 and 1; got {level}")
    if (permutations + 1) * level < 1 - 1e-9:
        raise InvalidInputError(
            f"permutations: the smallest p-value is 1 / (permutations + 1), which must reach level "
            f"{level:g}: at least {math.ceil(1 / level - 1e-9) - 1} are needed; got {permutations}"
        )


def _compared_ratings(labels: Labels) -> Ratings:
    """Return the ratings of cases that at least two different raters labelled."""
    _check_labels(labels)
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

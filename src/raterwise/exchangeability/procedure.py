"""The test of interchangeable raters: whole blocks of labels change hands."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.exchangeability.outcome import ExchangeabilityTest, RaterDeviation
from raterwise.exchangeability.permutations import (
    Comparison,
    at_least_as_large,
    compare_raters,
    step_down,
)
from raterwise.labels import Labels, Ratings
from raterwise.predictions.checks import patient_codes
from raterwise.rules import between_zero_and_one, positive_integer
from raterwise.summaries.deciders import asked_to_decide
from raterwise.types import Integers


def exchangeability_test(
    labels: Labels,
    groups: ArrayLike | None = None,
    significance: float = 0.05,
    *,
    permutations: int = 2000,
    seed: int = 0,
) -> ExchangeabilityTest:
    """Test whether the raters are interchangeable, and name those who stand out.

    Estimates from several labels per case assume that it does not matter which rater gave which
    label (LH section 3, appendix D.6). The test finds raters who give a class more or less often
    than the others do on the same cases. It does not find raters who copy each other, or a careless
    rater whose errors balance out.

    Parameters
    ----------
    labels : Labels
        The raters' labels with their identity, from `Labels.from_ratings`, `Labels.from_long` or
        `Labels.from_frame`. Cases with fewer than two raters are left out.
    groups : array-like of N patients, default None
        The patient of each case. A rater's labels of one patient are usually correlated (a reader
        who calls one nodule malignant tends to call the next one malignant too). Without `groups`
        the test treats them as independent and can find differences that do not exist.
    significance : float, default 0.05
        Significance level: the chance to call interchangeable raters different.
    permutations : int, default 2000
        Number of random permutations; the smallest p-value is 1 / (permutations + 1).
    seed : int, default 0
        The same seed gives the same digits with any number of threads.

    Returns
    -------
    ExchangeabilityTest
        The p-value of all raters together and the deviation of each; `print` it for sentences.

    Raises
    ------
    InvalidInputError
        If the labels do not say who gave them, no case has two raters, `groups` does not name the
        patient of each case, or `permutations` are too few to reach `significance`.
    InvalidTypeError
        If `labels` are not `Labels`, or a number is not a whole one.

    See Also
    --------
    fleiss_kappa, krippendorff_alpha : how far the raters agree.

    Notes
    -----
    **Null hypothesis.** What each rater said about one patient (labels and gaps) is a block. The
    blocks of a patient are exchangeable: handing them to other raters of that patient does not
    change their joint distribution. Labels within a block may depend on each other in any way, so
    a reader may be strict with one patient and lax with the next; patients are independent.

    **Permutations.** Within each patient, raters who labelled the same cases trade whole blocks,
    at random and independently of other patients. The p-values of such trades are exact for any
    number of patients. Where raters of a patient labelled different, overlapping cases,
    those with the same cases still trade, and all deviations of that patient are multiplied by one
    random sign in addition. They are 0 on average under the null hypothesis whatever the gaps, so
    this is right for many patients and close for 20; `uneven_patients` counts them.

    **Statistics.** The deviation of rater r is Σ_i (1[own label = k] - share of k among the
    others)_k over its cases: d_r. Divided by their number it is `excess`, so that what is shown is
    what is tested. T_r = d_rᵀ V_r⁺ d_r, where V_r is the covariance of d_r under permutation, and
    all raters together have (R-1)/R Σ_r T_r. Adjusted p-values are those of the step-down max-T
    method (Westfall & Young) with all T_r brought to one scale, and at least the p-value of all
    raters together: nobody stands out from a panel that looks interchangeable. A rater with one
    patient (or case) to compare cannot be judged (p = 1).

    **Arbiters.** A rater who was asked only where the others differ always sides with some of them,
    as no rater chosen beforehand does. Where at least 95% of the cases that a rater shares with two
    others divide these, and at most 5% of their other cases do (12 cases of each kind at least),
    the rater is left out and named in `arbiters`.

    One rater who differs from all makes the others differ from the rest, in the other direction
    and by less. `rest_p_value` says whether they still differ when the most deviant is left out.

    References
    ----------
    Landis, Heyman & Koch, Average partial association in three-way contingency tables,
    International Statistical Review 46 (1978), https://doi.org/10.2307/1402373.
    Westfall & Young, Resampling-Based Multiple Testing, Wiley 1993.

    Examples
    --------
    >>> import raterwise as rw
    >>> ratings = [[i % 2, (i // 2) % 2, (i // 4) % 2, 1] for i in range(40)]
    >>> labels = rw.Labels.from_ratings(ratings, num_classes=2)
    >>> test = rw.exchangeability_test(labels)
    >>> test.breaking
    (3,)
    >>> test.raters[3].excess  # class 1 on all of 40 cases, of which the others give it half
    {0: -0.5, 1: 0.5}
    >>> patients = [i // 2 for i in range(40)]
    >>> print(rw.exchangeability_test(labels, groups=patients))
    The raters are not interchangeable (p < 0.001; their labels differ on 35 of 40 shared cases of
    20 patients).
    Rater 3 gives class 1 more often than the other raters of the same 40 cases: +50.0 percentage
    points (adjusted p < 0.001).
    Without rater 3 the others look alike (p = 1).
    """
    permutations = positive_integer("permutations", permutations)
    seed = positive_integer("seed", seed, least=0)
    _check_significance(significance, permutations)
    ratings, arbiters = _without_arbiters(_shared_ratings(labels), len(labels), labels.num_classes)
    codes, _ = patient_codes(groups, len(labels))
    patient = np.arange(len(labels)) if codes is None else codes
    seeds = np.random.default_rng(seed).integers(2**64, size=permutations, dtype=np.uint64)

    comparison = _compare(ratings, patient, labels.num_classes)
    observed, permuted = comparison.observed(), comparison.permuted(seeds)
    p_value = float(at_least_as_large(comparison.overall(permuted), comparison.overall(observed)))
    scaled, scaled_permuted = (comparison.common_scale(t) for t in (observed, permuted))
    adjusted = np.maximum(step_down(scaled_permuted, scaled), p_value)
    single = at_least_as_large(scaled_permuted, scaled)
    shared = np.unique(ratings.case)
    said = _counts(ratings, len(labels), labels.num_classes)[shared]
    divided = said.max(axis=1) < said.sum(axis=1)
    test = ExchangeabilityTest(
        float(comparison.overall(observed)),
        p_value,
        raters=_deviations(comparison, ratings, labels, observed, single, adjusted, significance),
        significance=significance,
        permutations=permutations,
        cases=len(shared),
        divided_cases=int(divided.sum()),
        patients=None if codes is None else len(np.unique(patient[shared])),
        uneven_patients=len(np.unique(comparison.flip[comparison.flip > 0])),
        arbiters=arbiters,
    )
    if not test.breaking or comparison.informative.sum() < 3:
        return test
    most_deviant = ratings.rater_ids.index(test.breaking[0])
    rest = _without(ratings, most_deviant, patient, labels.num_classes, seeds)
    return replace(test, rest_p_value=rest)


def _without_arbiters(
    ratings: Ratings, cases: int, classes: int
) -> tuple[Ratings, tuple[Hashable, ...]]:
    """Return the ratings without raters who were asked only where the others differ, and these."""
    said, raters = _counts(ratings, cases, classes), len(ratings.rater_ids)
    others = said[ratings.case]
    others[np.arange(len(others)), ratings.label] -= 1

    def of_each(which: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(ratings.rater[which], minlength=raters)

    all_divided = said.max(axis=1, initial=0) < said.sum(axis=1)
    shared = said.sum(axis=1) > 1
    asked = others.sum(axis=1) > 1
    divided = asked & (others.max(axis=1, initial=0) < others.sum(axis=1))
    numbers = zip(
        of_each(divided),
        of_each(asked),
        all_divided.sum() - of_each(all_divided[ratings.case]),
        shared.sum() - of_each(shared[ratings.case]),
        strict=True,
    )
    found = [rater for rater, each in enumerate(numbers) if asked_to_decide(*map(int, each))]
    rest = _of_two_raters(_chosen(ratings, ~np.isin(ratings.rater, found)), cases)
    return rest, tuple(ratings.rater_ids[rater] for rater in found)


def _counts(ratings: Ratings, cases: int, classes: int) -> NDArray[np.int64]:
    counts = np.zeros((cases, classes), np.int64)
    np.add.at(counts, (ratings.case, ratings.label), 1)
    return counts


def _compare(ratings: Ratings, patient: Integers, classes: int) -> Comparison:
    return compare_raters(
        ratings.case,
        ratings.rater,
        ratings.label,
        patient[ratings.case],
        len(ratings.rater_ids),
        classes,
    )


def _without(
    ratings: Ratings, rater: int, patient: Integers, classes: int, seeds: NDArray[np.uint64]
) -> float:
    """Return the p-value of all raters together but one, whose labels are left out."""
    others = ratings.rater != rater
    rest = _of_two_raters(_chosen(ratings, others), len(patient))
    if len(rest.case) == 0:
        return 1.0
    comparison = _compare(rest, patient, classes)
    permuted = comparison.overall(comparison.permuted(seeds))
    return float(at_least_as_large(permuted, comparison.overall(comparison.observed())))


def _deviations(
    comparison: Comparison,
    ratings: Ratings,
    labels: Labels,
    statistics: NDArray[np.float64],
    single: NDArray[np.float64],
    adjusted: NDArray[np.float64],
    significance: float,
) -> tuple[RaterDeviation, ...]:
    names = labels.class_names or range(labels.num_classes)
    with np.errstate(invalid="ignore"):
        excess = comparison.totals / comparison.ratings[:, None]
    return tuple(
        RaterDeviation(
            rater_id,
            ratings=int(comparison.ratings[r]),
            statistic=float(statistics[r]),
            p_value=float(single[r]),
            adjusted_p_value=float(adjusted[r]),
            excess=dict(zip(names, excess[r].tolist(), strict=True)),
            breaks=bool(adjusted[r] <= significance),
        )
        for r, rater_id in enumerate(ratings.rater_ids)
    )


def _check_significance(significance: float, permutations: int) -> None:
    between_zero_and_one("significance", significance)
    if (permutations + 1) * significance < 1 - 1e-9:
        raise InvalidInputError(
            f"permutations: the smallest p-value is 1 / (permutations + 1), which must reach "
            f"significance {significance:g}: at least {math.ceil(1 / significance - 1e-9) - 1} are "
            f"needed; got {permutations}"
        )


def _shared_ratings(labels: Any) -> Ratings:
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
    shared = _of_two_raters(labels.ratings, len(labels))
    if len(shared.case) == 0:
        raise InvalidInputError(
            "labels: needs cases labelled by at least two different raters; there is none among "
            f"{len(labels)} cases and {len(shared.rater_ids)} raters"
        )
    return shared


def _of_two_raters(ratings: Ratings, cases: int) -> Ratings:
    lowest = np.full(cases, len(ratings.rater_ids))
    highest = np.full(cases, -1)
    np.minimum.at(lowest, ratings.case, ratings.rater)
    np.maximum.at(highest, ratings.case, ratings.rater)
    return _chosen(ratings, (lowest < highest)[ratings.case])


def _chosen(ratings: Ratings, rows: NDArray[np.bool_]) -> Ratings:
    return Ratings(ratings.case[rows], ratings.rater[rows], ratings.label[rows], ratings.rater_ids)

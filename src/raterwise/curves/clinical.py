"""ROC, precision-recall and decision curves, with bands by patient; every rater counts.

A case of which the fraction μ of the raters say the positive class is a positive of mass μ and a
negative of mass 1 - μ. A probability of at least the threshold is a positive test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raterwise.catalog import find
from raterwise.curves.clinical_tables import DecisionCurve, PrecisionRecallCurve, RocCurve
from raterwise.curves.operating import decision_of
from raterwise.curves.reliability import measure_in_memory
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.inference.classes import MORE_THAN_SEEN
from raterwise.inference.jackknife import (
    Linearised,
    normal_quantile,
    resampling_of,
    student_quantile,
)
from raterwise.inference.measures import Measure
from raterwise.inference.settings import Settings
from raterwise.inference.small_samples import proportion_interval
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.summaries import BinTable
from raterwise.types import FloatArray, OnUnrated, Per

GRID = np.linspace(0, 1, 201)
"""Where the resampled curves are compared; the band between is a straight line."""


def roc_curve(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    ordered: bool = False,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on_unrated: OnUnrated = "error",
) -> RocCurve:
    """Return sensitivity against 1 - specificity at every threshold.

    The band is pointwise: Korn and Graubard's interval of the sensitivity at the same
    1 - specificity, with the standard error from resampling patients (or cases).

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    positive : int, default None
        The positive class; by default class 1 of two. It is required with more classes.
    ordered : bool, default False
        Whether all classes above that class are positive too.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    groups : sequence of length N, default None
        The patient of each case.
    resamples : int, default 1000
        How many, for the band; 0 for none.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the resamples.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    RocCurve
        One point per distinct probability, from the highest down.

    Raises
    ------
    UndefinedMetricError
        If no rater chose the positive class, or all did.

    See Also
    --------
    raterwise.auroc : the area under it.
    precision_recall_curve, decision_curve : other views of the same thresholds.

    References
    ----------
    Hanley & McNeil, The meaning and use of the area under a receiver operating characteristic
    curve, Radiology 143 (1982), 29-36.

    Examples
    --------
    >>> curve = roc_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    >>> curve.thresholds.tolist(), curve.area
    ([inf, 0.9, 0.8, 0.4, 0.3], 0.75)
    """
    told = {"positive": positive, "ordered": ordered, "per": per}
    settings = Settings(resamples, level, seed)
    measure = _measure("auroc", probs, labels, weights, groups, told, settings, on_unrated)
    score, found, wrong = _accumulated(measure)
    if not (found[-1] > 0 and wrong[-1] > 0):
        raise UndefinedMetricError(f"roc_curve: undefined, {measure.row.undefined}")
    start = np.zeros(1)
    x, y = (np.concatenate((start, v / v[-1])) for v in (wrong, found))
    low = high = np.full(len(x), np.nan)
    if measure.pass_.resampled:
        drawn_found, drawn_wrong = _drawn(measure)
        usable = (drawn_found[:, -1] > 0) & (drawn_wrong[:, -1] > 0)
        curves = [
            np.interp(GRID, np.append(0, w / w[-1]), np.append(0, f / f[-1]))
            for f, w in zip(drawn_found[usable], drawn_wrong[usable], strict=True)
        ]
        ends = _band(curves, np.interp(GRID, x, y), measure.unit_positives, level)
        low, high = _on_curve(ends, x, y)
        low[x >= 1], high[x >= 1] = 1, 1  # where every case tests positive
    area = float(np.trapezoid(y, x))
    return RocCurve(np.concatenate(([np.inf], score)), x, y, low, high, area, level)


def precision_recall_curve(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    ordered: bool = False,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on_unrated: OnUnrated = "error",
) -> PrecisionRecallCurve:
    """Return the positive predictive value against the sensitivity at every threshold.

    The band is pointwise: Korn and Graubard's interval of the precision at the same recall, with
    the standard error from resampling patients (or cases). It is based on at most twice the cases
    behind the recall, so with few positives it is wide at the beginning of the curve.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    positive : int, default None
        The positive class; by default class 1 of two. It is required with more classes.
    ordered : bool, default False
        Whether all classes above that class are positive too.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    groups : sequence of length N, default None
        The patient of each case.
    resamples : int, default 1000
        How many, for the band; 0 for none.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the resamples.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    PrecisionRecallCurve
        One point per distinct probability, from the highest down.

    Raises
    ------
    UndefinedMetricError
        If no rater chose the positive class.

    See Also
    --------
    raterwise.average_precision : the area under its steps.

    References
    ----------
    Davis & Goadrich, The relationship between precision-recall and ROC curves, ICML 2006.

    Examples
    --------
    >>> curve = precision_recall_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    >>> round(curve.average_precision, 4), curve.prevalence
    (0.8333, 0.5)
    """
    told = {"positive": positive, "ordered": ordered, "per": per}
    settings = Settings(resamples, level, seed)
    measure = _measure(
        "average_precision", probs, labels, weights, groups, told, settings, on_unrated
    )
    score, found, wrong = _accumulated(measure)
    if not found[-1] > 0:
        raise UndefinedMetricError(f"precision_recall_curve: undefined, {measure.row.undefined}")
    recall, precision = found / found[-1], found / (found + wrong)
    low = high = np.full(len(recall), np.nan)
    if measure.pass_.resampled:
        drawn_found, drawn_wrong = _drawn(measure)
        accepted = drawn_found + drawn_wrong
        curves = [
            np.interp(GRID, f[a > 0] / f[-1], f[a > 0] / a[a > 0])
            for f, a in zip(drawn_found, accepted, strict=True)
            if f[-1] > 0
        ]
        shown = np.interp(GRID, recall, precision)
        hits = measure.scores().cases(0)[2]
        worth = float(found[-1] ** 2 / (hits @ hits))
        most = MORE_THAN_SEEN * worth * GRID / np.maximum(shown, 1e-12)
        ends = _band(curves, shown, measure.unit_positives, level, most)
        low, high = _on_curve(ends, recall, precision)
    prevalence = float(found[-1] / (found[-1] + wrong[-1]))
    value = measure.value()[0]
    return PrecisionRecallCurve(score, recall, precision, low, high, value, prevalence, level)


def decision_curve(
    probs: ArrayLike | Mapping[str, ArrayLike],
    labels: Labels | ArrayLike,
    *,
    positive: int | None = None,
    ordered: bool = False,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on_unrated: OnUnrated = "error",
) -> Any:
    """Return the net benefit of acting on the model, and on a rater, at every threshold.

    The net benefit of acting if p >= t is TP / n - FP / n · t / (1 - t): acting from t means that a
    false alarm costs t / (1 - t) of a true positive. The curve also has treating all, treating
    none, and the raters themselves: the net benefit of acting on one more rater's label, evaluated
    against the other raters of the case, over all pairs of raters. Intervals are those of the
    metrics at each threshold, by patient.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,), or mapping of str to these
        Class probabilities; with shape (N,), the probability of class 1 of two. For several models
        by name, there is a curve for each.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    positive : int, default None
        The positive class; by default class 1 of two. It is required with more classes.
    ordered : bool, default False
        Whether all classes above that class are positive too.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    groups : sequence of length N, default None
        The patient of each case.
    class_names : sequence of str, default None
        Names of the classes.
    resamples : int, default 1000
        0 for no intervals, which leave out one patient (or case) at a time.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the blocks into which more than 4,096 patients or cases are pooled.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    DecisionCurve, or dict of str to DecisionCurve
        At the thresholds 0.01, 0.02, … 0.99.

    See Also
    --------
    raterwise.net_benefit : at one threshold, exactly.
    raterwise.plots.DecisionDisplay : draws it.

    References
    ----------
    Vickers & Elkin, Decision curve analysis, Medical Decision Making 26 (2006), 565-574.

    Examples
    --------
    >>> from raterwise import Labels
    >>> labels = Labels.from_ratings([[1, 1], [0, 1], [0, 0], [1, 1]], 2)
    >>> curve = decision_curve([0.9, 0.8, 0.3, 0.4], labels, resamples=0)
    >>> curve.at(0.5)["net_benefit"]  # 3 positive and 1 negative of 8 labels
    0.25
    >>> float(curve.raters.net_benefit.value[49])  # 2 of 4 pairs agree on yes; in one they differ
    0.375
    """
    told = {"positive": positive, "ordered": ordered, "per": per}
    settings = Settings(resamples, level, seed)
    models = probs if isinstance(probs, Mapping) else {"": probs}
    curves: dict[str, DecisionCurve] = {}
    for name, of_model in models.items():
        measure = _measure(
            "auroc", of_model, labels, weights, groups, told, settings, on_unrated, class_names
        )
        found = decision_of(measure, measure.pass_.facts.class_names)
        assert found is not None
        curves[name] = found
    return curves if isinstance(probs, Mapping) else curves[""]


def _measure(
    name: str,
    probs: Any,
    labels: Any,
    weights: Any,
    groups: Any,
    told: Mapping[str, Any],
    settings: Settings,
    on_unrated: OnUnrated,
    class_names: Sequence[str] | None = None,
) -> Measure:
    """Return the metric on a pass over the predictions with what it needs."""
    predictions = Predictions.of(
        probs, labels, weights=weights, groups=groups, class_names=class_names,
        on_unrated=on_unrated,
    )  # fmt: skip
    row = find(name)
    own = row.with_options({}, told)
    if row.plan(own).question.channels(predictions.num_classes) != 1:
        raise InvalidInputError(
            f"positive: must name one of the {predictions.num_classes} classes; got None"
        )
    extra = () if row.curve_plans is None else row.curve_plans(own)
    return measure_in_memory(predictions, row, own, settings, *extra)


def _accumulated(measure: Measure) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return falling scores, and the positives and negatives at or above each."""
    scores = measure.scores().pooled()
    hits, misses = scores.hits[::-1], (scores.mass - scores.hits)[::-1]
    return scores.score[::-1], np.cumsum(hits), np.cumsum(misses)


def _drawn(measure: Measure) -> tuple[FloatArray, FloatArray]:
    """Return the same over cells of scores, for every resample."""
    table = BinTable(measure.stack.sums[:, 0, ::-1])
    hits = np.cumsum(table.positive, axis=1)
    return hits, np.cumsum(table.weight, axis=1) - hits


def _band(
    curves: Sequence[FloatArray],
    value: FloatArray,
    positives: FloatArray,
    level: float,
    most: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the interval of a share at every place of the grid.

    The error is that of the resampled `curves`, as large as that of so few units with `positives`
    should be. Quantiles of the curves themselves would end where the curves do: of five positives
    they held the truth in 53 to 93 % of test sets. `most` cases are as much as a share may rest on.
    """
    if len(curves) < 2 or np.count_nonzero(positives) < 2:
        return np.full(len(GRID), np.nan), np.full(len(GRID), np.nan)
    inflation, freedom, worth = resampling_of(positives)
    error = inflation * np.std(curves, axis=0)
    few = Linearised(0.0, 1.0, freedom, worth, int(np.count_nonzero(positives)))
    t = student_quantile(few, level) / normal_quantile(level)
    if most is not None:
        spread = np.clip(value * (1 - value), 0, None)
        error = np.maximum(error, np.sqrt(spread / np.maximum(most, 1e-12)) / t)
    ends = []
    for i, (at, off) in enumerate(zip(value, error, strict=True)):
        alone = worth if most is None else min(worth, float(most[i]))
        one = replace(few, value=float(at), error=float(off), worth=alone)
        ends.append(proportion_interval(one, level))
    low, high = np.array(ends).T
    return low, high


def _on_curve(
    ends: tuple[FloatArray, FloatArray], at: FloatArray, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return a band at the points of a curve, which it holds."""
    low, high = (np.interp(at, GRID, end) for end in ends)
    return np.minimum(low, value), np.maximum(high, value)

"""Reliability and threshold curves, with intervals by patient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from raterwise.catalog import Metric, find
from raterwise.catalog.metric import OF_THE_PREDICTION, Given
from raterwise.curves.operating import decision_of
from raterwise.curves.smooth import smooth_calibration, wilson_interval
from raterwise.curves.tables import ReliabilityCurve, ThresholdCurve, spread_evenly
from raterwise.errors import InvalidInputError
from raterwise.inference import intervals
from raterwise.inference.draws import digest_in_memory
from raterwise.inference.measures import Measure
from raterwise.inference.passes import Pass
from raterwise.inference.settings import Settings
from raterwise.labels import Labels
from raterwise.metrics.ranking import CCCCurve, ccc_curve
from raterwise.predictions import Predictions
from raterwise.rules import choose, one_class
from raterwise.summaries import BinTable, SortedScores
from raterwise.types import FloatArray, OnSingle, OnUnrated, Per

LOOKED_AT = 1 << 17
"""How many scores are compared with thresholds at a time."""
MOST_CLASSES = 30
"""For how many classes, those with the most labels, a result keeps a reliability curve."""


def reliability_curve(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    question: Literal["top_label", "positive", "per_class", "disagreement"] = "top_label",
    bins: int | ArrayLike = 15,
    *,
    of_class: int | None = None,
    per: Per = "annotation",
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on_single: OnSingle = "error",
    on_unrated: OnUnrated = "error",
) -> ReliabilityCurve:
    """Return predicted against observed frequencies of an event (LH Fig 1, RECE Fig 1).

    The interval of a bin is Wilson's for its effective number of cases. The design effect comes
    from resampling whole patients (or cases), over all bins together, because a single bin is too
    small to estimate it.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    question : {"top_label", "positive", "per_class", "disagreement"}, default "top_label"
        Is the predicted class right; of two classes, is it class 1; is it class `of_class`; do two
        raters differ.
    bins : int or array-like, default 15
        Number of equal-width bins, or their edges from 0 to 1.
    of_class : int, default None
        The class that "per_class" asks about.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    groups : sequence of length N, default None
        The patient of each case.
    class_names : sequence of str, default None
        Names of the classes.
    resamples : int, default 1000
        How many, for the intervals; 0 for none.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the resamples.
    on_single : {"error", "drop"}, default "error"
        What "disagreement" does with cases that have fewer than two labels.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    ReliabilityCurve
        Predicted and observed frequency, bin by bin.

    See Also
    --------
    plots.ReliabilityDisplay : draws it.
    ece : the mean gap as one number.

    Examples
    --------
    >>> curve = reliability_curve([0.9, 0.9, 0.9, 0.2], [1, 1, 0, 0], bins=2, resamples=0)
    >>> curve.cases.tolist(), float(curve.predicted[1]), float(curve.observed[1])
    ([0.0, 4.0], 0.875, 0.75)
    """
    choose("question", question, ("top_label", "positive", "per_class", "disagreement"))
    if (of_class is None) == (question == "per_class"):
        raise InvalidInputError(
            f'of_class: goes with question="per_class"; got {of_class!r} with {question!r}'
        )
    predictions = Predictions.of(
        probs, labels, weights=weights, groups=groups, class_names=class_names,
        on_unrated=on_unrated,
    )  # fmt: skip
    channel = 0 if of_class is None else one_class("of_class", of_class, predictions.num_classes)
    settings = Settings(resamples, level, seed, on_single=on_single)
    own: dict[str, Any] = {"bins": bins, "per": per, "question": question}
    row = find({"per_class": "classwise_ece"}.get(question, "ece"))
    if question == "disagreement":
        predictions.labels.require_raters(2, on_single, rows=predictions.kept)
        row, own = find("disagreement_calibration_error"), {"bins": bins}
    own = row.with_defaults(own)
    measure = measure_in_memory(predictions, row, own, settings)
    name = question.replace("_", " ")
    if question == "per_class":
        name = _class_name(predictions.class_names, channel)
    return _reliability(measure, {channel: name})[0]


def threshold_curve(
    probs: ArrayLike,
    labels: Labels | ArrayLike,
    *,
    confidence: ArrayLike | None = None,
    outside: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    on_unrated: OnUnrated = "error",
) -> ThresholdCurve:
    """Return the accepted and rejected predictions at each confidence threshold (CCC section 2.2).

    Whole patients (or cases) are resampled for the bands. The band of the CCC is pointwise:
    quantiles of the share of right predictions accepted, for the same share of wrong ones. The
    band of the risk is Wilson's interval for the effective number of accepted cases, as in
    `reliability_curve`, because resampling a few cases that are all right would show no risk.

    Parameters
    ----------
    probs : array-like of shape (N, K) or (N,)
        Class probabilities; with shape (N,), the probability of class 1 of two.
    labels : Labels or array-like of shape (N,)
        The raters' labels, or one class per case.
    confidence : array-like of shape (N,), default None
        Confidence that ranks the cases, instead of the largest probability.
    outside : array-like of shape (M,) or (M, K), default None
        Confidences of out-of-distribution cases, or their class probabilities: all of them wrong.
    weights : array-like of shape (N,), default None
        Weight of each case; 1 by default.
    groups : sequence of length N, default None
        The patient of each case.
    resamples : int, default 1000
        How many, for the bands; 0 for none.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Seed of the resamples.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.

    Returns
    -------
    ThresholdCurve
        The accepted and rejected predictions at each threshold, with bands.

    See Also
    --------
    raterwise.ccc_curve : every threshold, without bands.

    Examples
    --------
    >>> probs = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]]
    >>> curve = threshold_curve(probs, [0, 1, 1, 1], resamples=0)
    >>> curve.at(0.75)["correct_accepts"], curve.coverage.tolist(), float(curve.risk[-1])
    (2.0, [0.0, 0.25, 0.5, 0.75, 1.0], 0.25)
    """
    predictions = Predictions.of(
        probs, labels, weights=weights, groups=groups, confidence=confidence, outside=outside,
        on_unrated=on_unrated,
    )  # fmt: skip
    settings, row = Settings(resamples, level, seed), find("auccc")
    own = row.with_defaults({"question": Given.of(predictions).ranking})
    return _thresholds(measure_in_memory(predictions, row, own, settings))


def measure_in_memory(
    predictions: Predictions, row: Metric, own: Mapping[str, Any], settings: Settings, *more: Any
) -> Measure:
    """Return one metric on a pass over predictions, which has the tables of `more` plans too."""
    digest = digest_in_memory(predictions, [row.plan(own), *more], settings)
    return Measure(row, own, Pass(digest, {row.name: (row, own)}, settings))


def curves_of(
    measures: Iterable[Measure], class_names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return, as plain values, the curves whose tables these metrics have made already."""
    found: dict[str, Any] = {}
    for measure in measures:
        row, own = measure.row, measure.own
        if row.curve == "thresholds":
            if own["question"] in OF_THE_PREDICTION:
                found[row.curve] = _thresholds(measure).to_dict()
            if measure.with_outside:
                found[f"{row.curve}_inside"] = _without_outside(measure).to_dict()
        elif row.curve == "operating":
            decision = decision_of(measure, class_names)
            if decision is not None:
                found[row.curve] = decision.to_dict()
        elif row.curve == "smooth":
            if measure.channels == 1:  # of one class: two classes, or one that is named
                name = _class_name(class_names, 1 if own["positive"] is None else own["positive"])
                found[row.curve] = smooth_calibration(measure, name).to_dict()
        elif row.curve == "per_class":
            labels = measure.table.positive.sum(axis=-1)
            most = np.sort(np.argsort(-labels, kind="stable")[:MOST_CLASSES])
            names = {int(k): _class_name(class_names, int(k)) for k in most}
            found[row.curve] = [c.to_dict() for c in _reliability(measure, names)]
        elif row.curve is not None and not row.by_class(own):
            event = str(own.get("question", row.curve)).replace("_", " ")
            (curve,) = _reliability(measure, {0: event})
            found[row.curve] = curve.to_dict()
    return found


def _reliability(measure: Measure, names: Mapping[int, str]) -> list[ReliabilityCurve]:
    """Return the curves of the named channels of a binned metric."""
    table, pass_ = measure.table, measure.pass_
    stack = measure.stack if pass_.resampled else None
    edges = measure.row.plan(measure.own).edges
    level = pass_.settings.level
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted, observed = table.score / table.weight, table.positive / table.weight
        share = table.weight / table.weight.sum(axis=-1, keepdims=True)
    low, high = np.full_like(observed, np.nan), np.full_like(observed, np.nan)
    gaps = [(float(g), np.nan, np.nan) for g in _gap(table)]
    if stack is not None:
        for c in names:
            part = BinTable(stack.sums[:, c])
            one = BinTable(table.sums[c])
            size = _kish(one) / _design_effect(_kish(one), one, part, pass_.raters)
            low[c], high[c] = wilson_interval(observed[c], size, level)
            gap = gaps[c][0]
            ends = intervals.bias_corrected_interval(gap, _gap(part), level, units=pass_.units)
            gaps[c] = (gap, *ends)
    return [
        ReliabilityCurve(
            name, edges, table.cases[c], share[c], predicted[c], observed[c], low[c], high[c],
            level, *gaps[c],
        )
        for c, name in names.items()
    ]  # fmt: skip


def _gap(table: BinTable) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample may hold no case that counts
        return np.asarray(-table.deviation.sum(axis=-1) / table.weight.sum(axis=-1))


def _kish(table: BinTable) -> FloatArray:
    """Return (Σw)²/Σw²: how many cases of equal weight would carry as much."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(table.weight > 0, table.weight**2 / table.squared_weight, 0.0)


def _design_effect(cases: FloatArray, table: BinTable, stack: BinTable, raters: float) -> float:
    """Return the variance that resampling finds over all bins, as a multiple of the binomial one.

    Below 1 where several raters per case tell more than one, above where cases of a patient hang
    together. `cases` is how many cases of equal weight each bin is worth.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = table.positive / table.weight
        drawn = stack.positive / stack.weight
    usable = cases >= 2
    if not usable.any():
        return 1.0
    drawn, n, p = drawn[:, usable], cases[usable], rate[usable]
    centred = np.where(np.isnan(drawn), 0.0, drawn - p)
    times = np.maximum((~np.isnan(drawn)).sum(axis=0), 1)
    variance = (centred**2).sum(axis=0) / times * n / (n - 1)
    expected = p * (1 - p)
    if not (n * expected).sum() > 0:
        return 1.0
    effect = float((n * n * variance).sum() / (n * expected).sum())
    # Labels of one case cannot tell more than independent ones would.
    return max(effect, 1 / raters)


def _thresholds(measure: Measure) -> ThresholdCurve:
    scores: SortedScores = measure.scores()
    masses = scores.pooled()
    curve = ccc_curve(masses.score, masses.mass, masses.hits, kept=spread_evenly)
    columns = {f.name: getattr(curve, f.name) for f in fields(CCCCurve)}
    score, counts = scores.cases()[0], np.zeros(len(curve.thresholds))
    stands_for = measure.kept.case_counts  # None where each score is one case
    for i in range(0, len(score), LOOKED_AT):
        # Thresholds fall; a case is accepted from the first one on that is not above its score.
        first = np.searchsorted(-curve.thresholds, -score[i : i + LOOKED_AT], side="left")
        each = None if stands_for is None else stands_for[i : i + LOOKED_AT]
        counts += np.bincount(first, each, minlength=len(counts))
    thin = ThresholdCurve(**columns, accepted_cases=np.cumsum(counts))
    return _with_bands(thin, measure) if measure.pass_.resampled else thin


def _without_outside(measure: Measure) -> ThresholdCurve:
    """Return the curve of the cases of the test set alone, ranked by the same confidence."""
    row, pass_, digest = measure.row, measure.pass_, measure.pass_.digest
    asked = [{**measure.own, "question": question} for question in ("confidence", "top_label")]
    plans = [row.plan(one) for one in asked]
    inside = asked[0 if {plans[0], plans[0].bounded()} & set(digest.summaries) else 1]
    alone = Pass(digest, {row.name: (row, inside)}, pass_.settings, rater_draws=pass_.rater_draws)
    return _thresholds(Measure(row, inside, alone))


def _with_bands(curve: ThresholdCurve, measure: Measure) -> ThresholdCurve:
    """Return the curve with its bands, from the sums over cells of the score, as resampled."""
    pass_, level, all_cases = measure.pass_, measure.pass_.settings.level, measure.worth
    tables = measure.table, measure.stack
    sums, drawn = (BinTable(np.cumsum(t.sums[..., 0, ::-1, :], axis=-2)) for t in tables)
    worth = all_cases * sums.weight / sums.weight[-1]
    cases = all_cases * curve.coverage / _design_effect(worth, sums, drawn, pass_.raters)
    low, high = wilson_interval(curve.risk, cases, level)
    right, wrong = drawn.positive, drawn.weight - drawn.positive
    both = (right[:, -1] > 0) & (wrong[:, -1] > 0)
    if not both.any() or not (curve.correct_accepts[-1] > 0 and curve.incorrect_accepts[-1] > 0):
        return replace(curve, risk_low=low, risk_high=high)
    start = np.zeros((int(both.sum()), 1))
    x, y = (np.hstack([start, r[both] / r[both, -1:]]) for r in (wrong, right))
    places = 1 - curve.correct_reject_rate
    rates = [np.interp(places, at, rate) for at, rate in zip(x, y, strict=True)]
    ends = np.quantile(rates, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return replace(curve, rate_low=ends[0], rate_high=ends[1], risk_low=low, risk_high=high)


def _class_name(names: Sequence[str] | None, index: int) -> str:
    return f"class {index}" if names is None else names[index]

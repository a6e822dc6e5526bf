"""The tables behind clinical pictures: ROC, precision-recall and decision curves."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from raterwise.brief import brief
from raterwise.curves.tables import Table
from raterwise.types import FloatArray


@dataclass(frozen=True, eq=False)
class Band(Table):
    """A value at every threshold with its interval; NaN where there is none.

    Attributes
    ----------
    value : array of shape (T,)
        The value.
    low, high : arrays of shape (T,)
        The interval; NaN without resampling.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class OperatingPoints(Table):
    """What acting on a test does, at every threshold: of a model, or of one rater as the test.

    Attributes
    ----------
    sensitivity, specificity, ppv, npv, net_benefit : Band
        At each threshold. A rater's opinion has no threshold: of raters the first four are the
        same at all of them, and the net benefit differs by what a false alarm costs.
    """

    parts: ClassVar = dict.fromkeys(
        ("sensitivity", "specificity", "ppv", "npv", "net_benefit"), Band
    )

    sensitivity: Band
    specificity: Band
    ppv: Band
    npv: Band
    net_benefit: Band

    def at(self, i: int) -> dict[str, float]:
        """Return the values at the i-th threshold.

        Parameters
        ----------
        i : int
            Which.

        Returns
        -------
        dict of str to float
            By the names of the measures.
        """
        return {f.name: float(getattr(self, f.name).value[i]) for f in fields(self)}


@dataclass(frozen=True, eq=False)
class DecisionCurve(Table):
    """What acting on p >= t is worth at every threshold t, for the model and for its raters.

    Attributes
    ----------
    name : str
        The positive class.
    thresholds : array of shape (T,)
        0.01, 0.02, … 0.99.
    model : OperatingPoints
        Net benefit of acting on the model's probability.
    raters : OperatingPoints or None
        Net benefit of acting on one more rater's label, evaluated against the others; None if no
        case has two labels.
    prevalence : float
        The part of the labels that is of the positive class.
    edges : array of shape (T + 2,)
        Edges of the bins of `positives` and `negatives`.
    positives, negatives : arrays of shape (T + 1,)
        How the probabilities are distributed over the labels of the positive class and over the
        others: parts of all labels.
    level : float
        Confidence level of the intervals.

    See Also
    --------
    raterwise.decision_curve : makes one.

    References
    ----------
    Vickers & Elkin, Decision curve analysis, Medical Decision Making 26 (2006), 565-574.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.decision_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    >>> curve.at(0.5)["net_benefit"], curve.at(0.5)["treat_all"]
    (0.0, 0.0)
    """

    __repr__ = brief

    parts: ClassVar = dict.fromkeys(("model", "raters"), OperatingPoints)

    name: str
    thresholds: FloatArray
    model: OperatingPoints
    raters: OperatingPoints | None
    prevalence: float
    edges: FloatArray
    positives: FloatArray
    negatives: FloatArray
    level: float

    @property
    def net_benefit(self) -> FloatArray:
        """Of acting on the model."""
        return self.model.net_benefit.value

    @property
    def treat_all(self) -> FloatArray:
        """The net benefit of acting on every case; that of acting on none is 0."""
        odds = self.thresholds / (1 - self.thresholds)
        return np.asarray(self.prevalence - (1 - self.prevalence) * odds)

    @property
    def treat_none(self) -> FloatArray:
        """The net benefit of acting on no case: 0."""
        return np.zeros(len(self.thresholds))

    @property
    def interventions_avoided(self) -> FloatArray:
        """How many cases fewer are acted on, per case, than if all were, at no loss of benefit."""
        odds = self.thresholds / (1 - self.thresholds)
        return np.asarray((self.net_benefit - self.treat_all) / odds)

    def at(self, threshold: float) -> dict[str, float]:
        """Return the model's values at the nearest threshold, and what treating all would bring.

        Parameters
        ----------
        threshold : float
            Between 0 and 1.

        Returns
        -------
        dict of str to float
            By the names of the measures, with `threshold` and `treat_all`.
        """
        i = int(np.abs(self.thresholds - threshold).argmin())
        known = {"threshold": float(self.thresholds[i]), "treat_all": float(self.treat_all[i])}
        return {**self.model.at(i), **known}


@dataclass(frozen=True, eq=False)
class RocCurve:
    """Sensitivity against 1 - specificity at every threshold, with a band.

    Attributes
    ----------
    thresholds : array of shape (T,)
        Falling; the first is infinite, where no case tests positive.
    false_positive_rate : array of shape (T,)
        1 - specificity.
    sensitivity : array of shape (T,)
        The part of the labels of the positive class whose case tests positive.
    low, high : arrays of shape (T,)
        The interval of the sensitivity where 1 - specificity is as it is; NaN without resampling.
    area : float
        The AUROC.
    level : float
        Confidence level of the intervals.

    See Also
    --------
    raterwise.roc_curve : makes one.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.roc_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    >>> curve.sensitivity.tolist(), curve.false_positive_rate.tolist(), curve.area
    ([0.0, 0.5, 0.5, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5, 1.0], 0.75)
    """

    __repr__ = brief

    thresholds: FloatArray
    false_positive_rate: FloatArray
    sensitivity: FloatArray
    low: FloatArray
    high: FloatArray
    area: float
    level: float


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Positive predictive value (precision) against sensitivity (recall), with a band.

    Attributes
    ----------
    thresholds : array of shape (T,)
        Falling: every probability there is.
    recall : array of shape (T,)
        The sensitivity.
    precision : array of shape (T,)
        The positive predictive value.
    low, high : arrays of shape (T,)
        The interval of the precision where the recall is as it is; NaN without resampling.
    average_precision : float
        The area under its steps.
    prevalence : float
        The precision of chance.
    level : float
        Confidence level of the intervals.

    See Also
    --------
    raterwise.precision_recall_curve : makes one.

    Examples
    --------
    >>> import raterwise as rw
    >>> curve = rw.precision_recall_curve([0.9, 0.8, 0.3, 0.4], [1, 0, 0, 1], resamples=0)
    >>> curve.recall.tolist(), [round(p, 3) for p in curve.precision.tolist()]
    ([0.5, 0.5, 1.0, 1.0], [1.0, 0.5, 0.667, 0.5])
    """

    __repr__ = brief

    thresholds: FloatArray
    recall: FloatArray
    precision: FloatArray
    low: FloatArray
    high: FloatArray
    average_precision: float
    prevalence: float
    level: float

"""What a clinical reader expects of a class's probability: over its ranks and at a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from raterwise.catalog import common
from raterwise.catalog.metric import Metric
from raterwise.catalog.recipes import events as recipes
from raterwise.metrics import cell_bounds, operating
from raterwise.summaries import BinTable
from raterwise.types import Array, Options

CLASS: dict[str, Any] = {"positive": None, "per": "annotation", "ordered": False}
AT: dict[str, Any] = {"threshold": 0.5, **CLASS}
ELSEWHERE: dict[str, Any] = {**AT, "prevalence": None}
NO_CLASS = "no rater chose the positive class, or all did"


def _all(table: BinTable) -> Array:
    return np.asarray(table.weight.sum(axis=(-1, -2)))


def _positives(table: BinTable, options: Options | None = None) -> Array:
    return np.asarray(table.positive.sum(axis=(-1, -2)))


def _negatives(table: BinTable, options: Options) -> Array:
    return _all(table) - _positives(table)


def _above(table: BinTable, options: Options) -> Array:
    # At another prevalence every case has a say in sensitivity and specificity.
    elsewhere = options["prevalence"] is not None
    return _all(table) if elsewhere else table.weight[..., 1].sum(axis=-1)


def _below(table: BinTable, options: Options) -> Array:
    elsewhere = options["prevalence"] is not None
    return _all(table) if elsewhere else table.weight[..., 0].sum(axis=-1)


def _positive_or_above(table: BinTable, options: Options) -> Array:
    return np.asarray(_positives(table) + table.weight[..., 1].sum(axis=-1))


ROWS = (
    Metric(
        "auroc", "AUROC", "Clinical",
        "How often a positive case has a higher probability than a negative one (0.5 is chance).",
        "higher", "Hanley & McNeil 1982",
        **recipes.of_event_ranks(operating.auroc, cell_bounds.auroc), options=CLASS,
        shape="separation", bounds=common.UNIT, undefined=NO_CLASS, in_all="two classes",
        curve="operating", curve_plans=recipes.operating_plans,
        headline=(1, None),
    ),
    Metric(
        "average_precision", "Average precision", "Clinical",
        "Mean positive predictive value over all sensitivities; chance is the prevalence.",
        "higher", "Davis & Goadrich 2006",
        **recipes.of_event_ranks(operating.average_precision, cell_bounds.average_precision),
        options=CLASS, shape="proportion", counts_positives=True, bounds=common.UNIT,
        undefined="no rater chose the positive class", in_all=False,
    ),
    Metric(
        "sensitivity", "Sensitivity", "Clinical",
        "Of the labels of the positive class, the share whose case tests positive.",
        "higher", "Yerushalmy 1947",
        plan=recipes.at_threshold, formula=operating.sensitivity, options=AT, shape="proportion",
        denominator=_positives, bounds=common.UNIT, undefined="no rater chose the positive class",
        in_all=False,
    ),
    Metric(
        "specificity", "Specificity", "Clinical",
        "Of the labels of other classes, the share whose case tests negative.",
        "higher", "Yerushalmy 1947",
        plan=recipes.at_threshold, formula=operating.specificity, options=AT, shape="proportion",
        denominator=_negatives, bounds=common.UNIT,
        undefined="every rater chose the positive class", in_all=False,
    ),
    Metric(
        "ppv", "Positive predictive value", "Clinical",
        "Of the labels of cases that test positive, the share of the positive class.",
        "higher", "Vecchio 1966",
        plan=recipes.at_threshold, formula=operating.ppv,
        options=ELSEWHERE, shape="proportion", hits="positive", denominator=_above,
        bounds=common.UNIT,
        undefined="no case tests positive", in_all=False,
    ),
    Metric(
        "npv", "Negative predictive value", "Clinical",
        "Of the labels of cases that test negative, the share of other classes.",
        "higher", "Vecchio 1966",
        plan=recipes.at_threshold, formula=operating.npv,
        options=ELSEWHERE, shape="proportion", hits="others", denominator=_below,
        bounds=common.UNIT,
        undefined="no case tests negative", in_all=False,
    ),
    Metric(
        "f1", "F1 score", "Clinical",
        "Harmonic mean of sensitivity and positive predictive value.",
        "higher", "van Rijsbergen 1979",
        plan=recipes.at_threshold, formula=operating.f1, options=AT, shape="proportion",
        hits="any", denominator=_positive_or_above, bounds=common.UNIT,
        undefined="no case tests positive, and no rater chose the positive class", in_all=False,
    ),
    Metric(
        "net_benefit", "Net benefit", "Clinical",
        "True positives per case minus false alarms, weighted by the odds of the threshold.",
        "higher", "Vickers & Elkin 2006",
        plan=recipes.at_threshold, formula=operating.net_benefit,
        options=ELSEWHERE, shape="difference",
        parts=operating.net_benefit_parts, bounds=(-float("inf"), 1.0), undefined=NO_CLASS,
        in_all=False,
        headline=(5, None),
    ),
)  # fmt: skip

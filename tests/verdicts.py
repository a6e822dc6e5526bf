"""The verdict on cases in memory by itself, without the metrics that results have beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from raterwise.inference.verdict import About, Verdict, judge_sums
from raterwise.predictions import Predictions
from raterwise.summaries import DeviationPlan, summarise


def judge(
    probs: Any,
    labels: Any,
    groups: Any = None,
    class_names: Any = None,
    per: str = "annotation",
    simulations: int = 2000,
    seed: int = 0,
) -> Verdict:
    """Return the verdict on probabilities and labels; `groups` are the patients."""
    cases = Predictions.of(probs, labels, groups=groups, class_names=class_names)
    plan, asked = DeviationPlan(groups is not None), cases.labels.num_raters
    patients = len(cases.group_ids) or 1
    sums = summarise(cases, [plan], units=cases.groups, num_units=patients)[plan]
    alone = groups is None or len(np.unique(cases.groups)) == len(cases)
    about = About(
        cases.num_classes, cases.class_names, int(asked.min()), int(asked.max()),
        None if alone else patients,
    )  # fmt: skip
    return judge_sums(sums, about, per, simulations, seed)

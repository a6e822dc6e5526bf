"""Metrics over tables of bins: one of any formula, and the losses of label histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor

from raterwise.catalog import find
from raterwise.errors import UndefinedMetricError
from raterwise.questions import Question
from raterwise.rules import choose
from raterwise.summaries import BinPlan, BinTable
from raterwise.tensors.cases import TensorCases, require_raters
from raterwise.tensors.device import add_cases
from raterwise.torch._pictures import reliability_diagram
from raterwise.torch._tables import TableMetric


class BinnedMetric(TableMetric):
    """One metric of the catalog over one table."""

    metric_name = ""

    def __init__(self, num_classes: int, options: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(num_classes, **kwargs)
        row = find(self.metric_name)
        self.options = row.checked(options)
        self.plan: BinPlan = row.plan(self.options)
        self._add_plan("sums", self.plan)

    def _add(self, cases: TensorCases, tables: Mapping[str, Tensor]) -> None:
        add_cases(cases, {self.plan: tables["sums"]}, check=self.validate_args)

    def _value(self, tables: Mapping[str, Tensor]) -> Tensor:
        table = BinTable(tables["sums"].cpu().numpy())
        if not table.weight.any():
            raise UndefinedMetricError(f"{self.metric_name}: undefined, no case was given yet")
        row = find(self.metric_name)
        value = float(row.over(table, self.options))
        if not math.isfinite(value):
            raise UndefinedMetricError(f"{self.metric_name}: undefined, {row.undefined}")
        return self._scalar(value)


class ReliabilityMetric(BinnedMetric):
    """One that stands for a reliability diagram."""

    def _draw(self, ax: Any) -> Any:
        table = BinTable(self.tables["sums"].cpu().numpy())
        return reliability_diagram(table, self.plan, self.metric_name, ax)


class LabelHistogramLosses(TableMetric):
    """The losses of label histograms, by the names of raterwise's functions (LH sections 2-4).

    `compute` gives a dictionary: expected_squared_loss (eq 8), epistemic_loss (eq 10),
    irreducible_loss, calibration_loss (eq 14), calibration_error, dispersion_loss (eq 36), and
    disagreement_loss (eq 40), disagreement_calibration_loss and _error. Most need two labels per
    case: with `on_single="drop"` they leave the other cases out, and are NaN if none is left.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    bins : int, default 15
        Number of equal-width bins.
    estimator : {"debiased", "plugin"}, default "debiased"
        With "plugin", every loss is the plug-in estimate, including the epistemic loss (eqs 9, 13).
    singletons : {"zero", "plugin"}, default "zero"
        What a bin with one case contributes to a debiased calibration loss.
    on_single : {"error", "drop"}, default "error"
        Whether cases with fewer than two labels are an error or are left out.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    raterwise.epistemic_loss, raterwise.calibration_loss, raterwise.disagreement_loss

    Examples
    --------
    >>> import torch
    >>> metric = LabelHistogramLosses(num_classes=2)
    >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[2, 2]]))
    >>> round(metric.compute()["expected_squared_loss"].item(), 4)
    0.5
    """

    names = (
        "expected_squared_loss", "calibration_loss", "calibration_error", "epistemic_loss",
        "irreducible_loss", "dispersion_loss", "disagreement_loss",
        "disagreement_calibration_loss", "disagreement_calibration_error",
    )  # fmt: skip
    """Rows of the catalog."""

    def __init__(
        self,
        num_classes: int,
        bins: int = 15,
        estimator: Literal["debiased", "plugin"] = "debiased",
        singletons: Literal["zero", "plugin"] = "zero",
        on_single: Literal["error", "drop"] = "error",
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, **kwargs)
        self.on_single = choose("on_single", on_single, ("error", "drop"))
        choose("estimator", estimator, ("debiased", "plugin"))
        self.options = {"singletons": choose("singletons", singletons, ("zero", "plugin"))}
        if estimator == "plugin":  # otherwise every row has its own
            self.options["estimator"] = estimator
        self.plans = {
            "every_case": BinPlan(Question("per_class", "case"), bins),
            "two_labels": BinPlan(Question("per_class", "case"), bins, 2),
            "disagreement": BinPlan(Question("disagreement", "case"), bins, 2),
        }
        for name, plan in self.plans.items():
            self._add_plan(name, plan)

    def _add(self, cases: TensorCases, tables: Mapping[str, Tensor]) -> None:
        if self.on_single == "error" and self.validate_args:
            require_raters(cases, 2)
        plans: dict[BinPlan, Tensor] = {plan: tables[name] for name, plan in self.plans.items()}
        add_cases(cases, plans, check=self.validate_args)

    def _value(self, tables: Mapping[str, Tensor]) -> dict[str, Tensor]:
        asked = {(plan.question, plan.least_raters): name for name, plan in self.plans.items()}
        if not BinTable(tables["every_case"].cpu().numpy()).weight.any():
            raise UndefinedMetricError("label histograms: undefined, no case was given yet")
        values = self._undefined()
        for name in self.names:
            row = find(name)
            own = row.with_defaults(self.options)
            plan = row.plan_of(own, "drop")
            table = BinTable(tables[asked[plan.question, plan.least_raters]].cpu().numpy())
            if table.weight.any():
                values[name] = self._scalar(float(row.over(table, own)))
        return values

    def _draw(self, ax: Any) -> Any:
        table = BinTable(self.tables["disagreement"].cpu().numpy())
        return reliability_diagram(table, self.plans["disagreement"], "disagreement", ax)

    def _undefined(self) -> dict[str, Tensor]:
        return {name: self._scalar(math.nan) for name in self.names}

"""Metrics over one table of bins, whatever their formula."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from raterwise.catalog import find
from raterwise.errors import UndefinedMetricError
from raterwise.kernels import _torch as kernels
from raterwise.summaries import BinPlan, BinTable
from raterwise.tensors.cases import TensorCases
from raterwise.tensors.device import add_cases
from raterwise.torch._pictures import reliability_diagram
from raterwise.torch._tables import TableMetric, identity


class BinnedMetric(TableMetric):
    """One metric of the catalog over one table."""

    metric_name = ""

    def __init__(self, num_classes: int, options: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(num_classes, **kwargs)
        row = find(self.metric_name)
        self.options = row.with_defaults(options)
        self.plan: BinPlan = row.plan(self.options)
        channels = self.plan.question.channels(self.num_classes)
        bins = len(self.plan.edges) - 1
        self._add_table("sums", channels, bins, kernels.FIELDS, of=identity(self.plan))

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

"""The base of the metrics: a torchmetrics Metric whose state is tables of sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from quorate.arrays import choose, positive_integer
from quorate.engines.tensor_cases import TensorCases, rated_cases
from quorate.errors import InvalidInputError, MissingExtraError
from quorate.labels import Labels

try:
    from torchmetrics import Metric
except ImportError as error:
    raise MissingExtraError(
        'quorate.torch.metrics: needs torchmetrics; pip install "quorate[torch]"'
    ) from error

__all__ = ["TableMetric"]


class TableMetric(Metric):
    """A metric whose state is one or more tables of sums; what the metrics here share.

    Parameters
    ----------
    num_classes
        K.
    ignore_index
        A class that does not count, such as the pixels outside a region.
    on_unrated
        "error", or "drop" to leave out cases with label counts that are all 0.
    validate_args
        Check the values of every batch. Without it a GPU need not wait, and wrong values pass.
    """

    is_differentiable = False
    full_state_update = False
    higher_is_better: bool | None = False

    def __init__(
        self,
        num_classes: int,
        *,
        ignore_index: int | None = None,
        on_unrated: str = "error",
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_classes = positive_integer("num_classes", num_classes, least=2)
        self.ignore_index = ignore_index
        self.on_unrated = choose("on_unrated", on_unrated, ("error", "drop"))
        self.validate_args = validate_args
        self.table_names: tuple[str, ...] = ()

    def add_table(self, name: str, *shape: int) -> None:
        """Add a table of float64 sums to the state."""
        self.add_state(name, torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")
        self.table_names = (*self.table_names, name)

    def update(self, probs: Tensor, labels: Any, weights: Any = None) -> None:
        """Add a batch: probabilities and classes or label counts; `weights` (N,) of the cases."""
        cases = self._cases(probs, labels, weights)
        if cases is not None:
            self._add(cases, {name: getattr(self, name) for name in self.table_names})

    def tables_of(self, probs: Tensor, labels: Any, weights: Any = None) -> dict[str, Tensor]:
        """Return the tables of one batch, without adding them to the state."""
        tables = {
            name: torch.zeros(getattr(self, name).shape, dtype=torch.float64, device=probs.device)
            for name in self.table_names
        }
        cases = self._cases(probs, labels, weights)
        if cases is not None:
            self._add(cases, tables)
        return tables

    def compute(self) -> Any:
        """Return the metric of all cases so far."""
        return self.compute_from({name: getattr(self, name) for name in self.table_names})

    def compute_from(self, tables: Mapping[str, Tensor]) -> Any:
        """Return the metric of tables, such as the sum of those of several batches."""
        raise NotImplementedError

    def _add(self, cases: TensorCases, tables: Mapping[str, Tensor]) -> None:
        """Add the cases to the tables in place."""
        raise NotImplementedError

    def _cases(self, probs: Tensor, labels: Any, weights: Any) -> TensorCases | None:
        """Return a batch as flat cases; None where nothing in it counts."""
        probs = probs.detach()
        if not isinstance(labels, Labels):
            labels = torch.as_tensor(labels)
        if probs.ndim > 2:
            if isinstance(labels, Tensor):
                labels = _rows(labels) if labels.ndim == probs.ndim else labels.reshape(-1)
            probs = _rows(probs)
        if self.ignore_index is not None and isinstance(labels, Tensor) and labels.ndim == 1:
            labels = labels.to(probs.device)
            kept = labels != self.ignore_index
            if weights is not None:
                weights = torch.as_tensor(weights, device=probs.device)[kept]
            probs, labels = probs[kept], labels[kept]
            if len(probs) == 0:
                return None
        cases = TensorCases.of(probs, labels, weights, check=self.validate_args)
        if cases.probs.shape[1] != self.num_classes:
            raise InvalidInputError(
                f"probs: must have num_classes = {self.num_classes} classes; "
                f"got {cases.probs.shape[1]}"
            )
        return rated_cases(cases, self.on_unrated) if self.validate_args else cases

    def _scalar(self, value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64, device=self.device)


def _rows(values: Tensor) -> Tensor:
    """Return (N, K, …) as (M, K)."""
    return values.movedim(1, -1).reshape(-1, values.shape[1])

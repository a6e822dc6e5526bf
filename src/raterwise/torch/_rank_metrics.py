"""The area under the CCC curve as a metric of the training loop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from raterwise.catalog import find
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.kernels import _torch as kernels
from raterwise.metrics import ranking
from raterwise.summaries.cells import fine_cells, fine_cells_for
from raterwise.tensors.cases import TensorCases, as_tensor
from raterwise.tensors.questions import score
from raterwise.torch._tables import TableMetric

__all__ = ["AUCCC"]


class AUCCC(TableMetric):
    """How well confidence separates right from wrong, `raterwise.auccc` (CCC section 2.2).

    Confidences are counted in 8,348 fine cells, finest near 0 and 1 where they pile up. Two cases
    of one cell count as tied; `bound` says by how much that can matter. With several raters every
    label counts.

    Parameters
    ----------
    num_classes : int
        K.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    auccc : the function.

    Examples
    --------
    >>> metric = AUCCC(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), torch.tensor([0, 0, 1]))
    >>> metric.compute().item(), metric.bound.item()
    (1.0, 0.0)
    """

    higher_is_better = True

    def __init__(self, num_classes: int, **kwargs: Any) -> None:
        super().__init__(num_classes, **kwargs)
        cells = len(fine_cells()) - 1
        self._add_table("mass", cells)
        self._add_table("hits", cells)
        self._bound = math.nan

    def update(self, probs: Any, labels: Any, weights: Any = None, confidence: Any = None) -> None:
        """Add a batch.

        Parameters
        ----------
        probs : array or Tensor
            (N, K), (N, K, …) or (N,): probabilities.
        labels : array, Tensor, Labels or None
            Classes (N, …) or label counts (N, K, …); None for out-of-distribution cases, which
            count as wrong.
        weights : array or Tensor, optional
            (N, …): of the cases.
        confidence : array or Tensor, optional
            (N, …): from elsewhere, in [0, 1]; by default the largest probability.

        >>> metric = AUCCC(num_classes=2)
        >>> metric.update([[0.9, 0.1], [0.8, 0.2]], [0, 0])
        >>> metric.update([[0.6, 0.4], [0.85, 0.15]], None)  # of another distribution
        >>> metric.compute().item()  # of four pairs, (0.8, 0.85) is the wrong way round
        0.75
        """
        outside = labels is None
        if outside:
            probs = as_tensor(probs, "probs")
            shape = (probs.shape[0], *probs.shape[2:])
            stand_in = 1 if self.ignore_index == 0 else 0  # any class that is not ignored
            labels = torch.full(shape, stand_in, device=probs.device)
        cases, given = self._cases(probs, labels, weights, confidence)
        if cases is not None:
            self._add_scores(cases, self.tables, given, outside)

    def _add(self, cases: TensorCases, tables: Mapping[str, Tensor]) -> None:
        self._add_scores(cases, tables)

    def _add_scores(
        self,
        cases: TensorCases,
        tables: Mapping[str, Tensor],
        given: Tensor | None = None,
        outside: bool = False,
    ) -> None:
        if given is not None and self.validate_args:
            _check_confidence(given)
        cells = fine_cells_for(cases.rounding if given is None else 0.0)
        edges = torch.tensor(cells, dtype=torch.float64, device=cases.probs.device)
        start = 0
        for rows in cases.chunks(16 + 2 * self.num_classes, check=self.validate_args):
            scored = score("top_label", "annotation", rows)
            stop = start + len(scored.z)
            z = scored.z[:, 0] if given is None else given[start:stop]
            right = torch.zeros_like(scored.mu) if outside else scored.mu
            fields = scored.weights[:, None] * torch.cat((torch.ones_like(right), right), dim=1)
            sums = kernels.sums_by_cell(kernels.locate(z, edges), fields, len(edges) - 1)
            tables["mass"].add_(sums[:, 0])
            tables["hits"].add_(sums[:, 1])
            start = stop

    def compute_from(self, tables: Mapping[str, Tensor]) -> Tensor:
        """Return the area under the curve.

        Parameters
        ----------
        tables : mapping of str to Tensor
            As `tables_of` gives them.

        Returns
        -------
        Tensor
            One number, float64.

        >>> import torch
        >>> metric = AUCCC(num_classes=2)
        >>> tables = metric.tables_of(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        >>> metric.compute_from(tables).item()
        1.0
        """
        mass, hits = (tables[name].cpu().numpy() for name in ("mass", "hits"))
        value = float(ranking.auccc(mass, hits))
        if math.isnan(value):
            raise UndefinedMetricError(f"auccc: undefined, {find('auccc').undefined}")
        right, wrong = hits, mass - hits
        self._bound = float(0.5 * (right * wrong).sum() / (right.sum() * wrong.sum()))
        return self._scalar(value)

    @property
    def bound(self) -> Tensor:
        """By how much `compute` may be off: half the share of pairs that fall into one cell."""
        self.compute()  # kept by torchmetrics; of all processes where there are several
        return self._scalar(self._bound)


def _check_confidence(given: Tensor) -> None:
    outside = (~((given >= 0) & (given <= 1))).nonzero()  # NaN too
    if len(outside):
        case = int(outside[0, 0])
        raise InvalidInputError(
            f"confidence: must lie in [0, 1]; case {case} has {given[case].item():.6g}"
        )

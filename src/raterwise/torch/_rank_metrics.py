"""Areas under the CCC and ROC curves as metrics of the training loop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from raterwise.catalog import find
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.kernels import _torch as kernels
from raterwise.metrics import ranking
from raterwise.metrics.operating import mean_over_classes
from raterwise.questions import Question
from raterwise.rules import choose
from raterwise.summaries.cells import fine_cells, fine_cells_for
from raterwise.tensors.cases import TensorCases, as_tensor
from raterwise.tensors.questions import score
from raterwise.torch._pictures import ccc_diagram, roc_diagram
from raterwise.torch._tables import TableMetric


class _RankMetric(TableMetric):
    """Mass and hits by fine cell of a score, over which ranks are compared."""

    higher_is_better = True
    _bound = math.nan

    @property
    def bound(self) -> Tensor:
        """By how much `compute` may be off: half the share of pairs that fall into one cell."""
        self.compute()  # kept by torchmetrics; of all processes where there are several
        return self._scalar(self._bound)

    def _mean_area(self, name: str, tables: Mapping[str, Tensor]) -> Tensor:
        """Return the mean area of the channels, and remember how far off it may be."""
        mass, hits = _on_host(tables)
        if not mass.any():
            raise UndefinedMetricError(f"{name}: undefined, no case was given yet")
        others = mass - hits
        pairs = hits.sum(axis=-1) * others.sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            bounds = 0.5 * (hits * others).sum(axis=-1) / pairs
        self._bound = float(mean_over_classes(np.atleast_1d(bounds)))
        value = float(mean_over_classes(np.atleast_1d(ranking.auccc(mass, hits))))
        if math.isnan(value):
            raise UndefinedMetricError(f"{name}: undefined, {find(name).undefined}")
        return self._scalar(value)


def _on_host(tables: Mapping[str, Tensor]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return tables["mass"].cpu().numpy(), tables["hits"].cpu().numpy()


class AUCCC(_RankMetric):
    """How well confidence separates right from wrong, `raterwise.auccc` (CCC section 2.2).

    Confidences are counted in 8,348 fine cells, finest near 0 and 1 where they pile up. Two cases
    of one cell count as tied; `bound` limits the effect of this. With several raters every
    label counts.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
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

    def __init__(self, num_classes: int, **kwargs: Any) -> None:
        super().__init__(num_classes, **kwargs)
        cells = len(fine_cells()) - 1
        self._add_table("mass", cells)
        self._add_table("hits", cells)

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
            (N, …): a separate confidence in [0, 1]; by default the largest probability.

        >>> metric = AUCCC(num_classes=2)
        >>> metric.update([[0.9, 0.1], [0.8, 0.2]], [0, 0])
        >>> metric.update([[0.6, 0.4], [0.85, 0.15]], None)  # of another distribution
        >>> metric.compute().item()  # of four pairs, (0.8, 0.85) is the wrong way round
        0.75
        """
        outside = labels is None
        if outside:
            probs = as_tensor(probs, "probs")
            shape = self._case_shape(tuple(probs.shape))
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
            scored = score(Question("top_label", "annotation"), rows)
            stop = start + len(scored.z)
            z = scored.z[:, 0] if given is None else given[start:stop]
            right = torch.zeros_like(scored.mu) if outside else scored.mu
            fields = scored.weights[:, None] * torch.cat((torch.ones_like(right), right), dim=1)
            sums = kernels.sums_by_cell(kernels.locate(z, edges), fields, len(edges) - 1)
            tables["mass"].add_(sums[:, 0])
            tables["hits"].add_(sums[:, 1])
            start = stop

    def _value(self, tables: Mapping[str, Tensor]) -> Tensor:
        return self._mean_area("auccc", tables)

    def _draw(self, ax: Any) -> Any:
        return ccc_diagram(fine_cells()[:-1], *_on_host(self.tables), ax)


class AUROC(_RankMetric):
    """How well the probability of a class separates its cases from the others.

    The area under the ROC curve: for class 1 of two; with more classes, each class against the
    rest, averaged over those that have a value. Probabilities are counted in fine cells, as in
    `AUCCC`. With several raters, a case is positive to the extent that they say so.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    per : {"annotation", "case"}, default "annotation"
        Whether each label or each case counts once.
    **kwargs : keyword arguments
        `ignore_index`, `on_unrated` and `validate_args` of `TableMetric`, and what every
        `torchmetrics.Metric` takes.

    See Also
    --------
    AUCCC : whether confidence tells right from wrong predictions.

    Examples
    --------
    >>> metric = AUROC(num_classes=2)
    >>> metric.update([0.9, 0.6, 0.4, 0.2], [1, 0, 1, 0])
    >>> metric.compute().item(), metric.bound.item()
    (0.75, 0.0)
    """

    def __init__(
        self, num_classes: int, per: Literal["annotation", "case"] = "annotation", **kwargs: Any
    ) -> None:
        super().__init__(num_classes, **kwargs)
        self.per = choose("per", per, ("annotation", "case"))
        channels = 1 if num_classes == 2 else num_classes
        for name in ("mass", "hits"):
            self._add_table(name, channels, len(fine_cells()) - 1, of=("auroc", per))

    def _add(self, cases: TensorCases, tables: Mapping[str, Tensor]) -> None:
        question = "positive" if self.num_classes == 2 else "per_class"
        edges = torch.tensor(
            fine_cells_for(cases.rounding), dtype=torch.float64, device=cases.probs.device
        )
        for rows in cases.chunks(16 + 4 * self.num_classes, check=self.validate_args):
            scored = score(Question(question, self.per), rows)
            for c in range(scored.z.shape[1]):
                positive = scored.mu[:, c : c + 1].double()
                both = torch.cat((torch.ones_like(positive), positive), dim=1)
                at = kernels.locate(scored.z[:, c], edges)
                sums = kernels.sums_by_cell(at, scored.weights[:, None] * both, len(edges) - 1)
                tables["mass"][c].add_(sums[:, 0])
                tables["hits"][c].add_(sums[:, 1])

    def _value(self, tables: Mapping[str, Tensor]) -> Tensor:
        return self._mean_area("auroc", tables)

    def _draw(self, ax: Any) -> Any:
        mass, hits = _on_host(self.tables)
        first = 1 if self.num_classes == 2 else 0
        areas = ranking.auccc(mass, hits)
        names = [f"class {k + first} (AUROC {area:.3f})" for k, area in enumerate(areas)]
        return roc_diagram(mass, hits, names, ax)


def _check_confidence(given: Tensor) -> None:
    outside = (~((given >= 0) & (given <= 1))).nonzero()  # NaN too
    if len(outside):
        case = int(outside[0, 0])
        raise InvalidInputError(
            f"confidence: must lie in [0, 1]; case {case} has {given[case].item():.6g}"
        )

"""Metrics for the training loop: the tables of raterwise as the state of torchmetrics metrics.

Each has a state of constant size, the sums per channel and bin that the functions of raterwise
are formulas over; no prediction is stored. Batches, devices and processes add up their sums, so
any batching gives the numbers of the functions, and synchronising is one sum of a small table.

    metric = ECE(num_classes=4).to(device)
    for images, labels in loader:
        metric.update(model(images).softmax(dim=1), labels)
    metric.compute()

Probabilities are (N, K), dense (N, K, H, W[, D]), or (N,) for the probability of class 1 of two;
labels are classes (N, …) or label counts (N, K, …) where several raters labelled each case.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from raterwise.arrays import choose
from raterwise.catalog import find
from raterwise.engines.device import add_cases
from raterwise.engines.tensor_cases import TensorCases
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.kernels import _torch as kernels
from raterwise.kernels._torch_questions import score
from raterwise.metrics import proper, ranking
from raterwise.questions import Question
from raterwise.summaries import BinPlan, BinTable
from raterwise.summaries.cells import fine_cells, fine_cells_for
from raterwise.torch._tables import TableMetric

__all__ = [
    "AUCCC",
    "ClasswiseECE",
    "ECE",
    "LabelHistogramLosses",
    "MCE",
    "RMSCE",
    "RobustECE",
    "SCE",
    "TableMetric",
]


class _BinnedMetric(TableMetric):
    """One metric of the catalog over one table."""

    metric_name = ""

    def __init__(self, num_classes: int, options: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(num_classes, **kwargs)
        row = find(self.metric_name)
        self.options = row.with_defaults(options)
        self.plan: BinPlan = row.plan(self.options)
        channels = self.plan.question.channels(self.num_classes)
        bins = len(self.plan.edges) - 1
        self.add_table("sums", channels, bins, kernels.FIELDS, of=_identity(self.plan))

    def _add(self, cases: TensorCases, tables: Mapping[str, Tensor]) -> None:
        add_cases(cases, {self.plan: tables["sums"]}, check=self.validate_args)

    def compute_from(self, tables: Mapping[str, Tensor]) -> Tensor:
        """Return the metric of the table."""
        table = BinTable(tables["sums"].cpu().numpy())
        if not table.weight.any():
            raise UndefinedMetricError(f"{self.metric_name}: undefined, no case was given yet")
        return self._scalar(float(find(self.metric_name).over(table, self.options)))


def _identity(plan: BinPlan) -> tuple[object, ...]:
    """What decides the sums of a plan: the metrics that have it in common may share a table."""
    return plan.question, plan.least_raters, plan.spread, tuple(float(edge) for edge in plan.edges)


class _TopLabelMetric(_BinnedMetric):
    def __init__(
        self,
        num_classes: int,
        bins: Any = 15,
        question: str = "top_label",
        per: str = "annotation",
        **kwargs: Any,
    ) -> None:
        options = {"bins": bins, "question": question, "per": per}
        super().__init__(num_classes, options, **kwargs)


class ECE(_TopLabelMetric):
    """The expected calibration error, `raterwise.ece` (RECE eq 2, MR eq 5).

    >>> metric = ECE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([[0.3, 0.7]]), torch.tensor([1]))
    >>> round(metric.compute().item(), 4)
    0.3667
    """

    metric_name = "ece"


class MCE(_TopLabelMetric):
    """The largest gap of any bin, `raterwise.mce`.

    >>> metric = MCE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.4
    """

    metric_name = "mce"


class RMSCE(_TopLabelMetric):
    """The root mean squared gap, `raterwise.rms_ce`.

    >>> metric = RMSCE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.4
    """

    metric_name = "rms_ce"


class _PerClassMetric(_BinnedMetric):
    def __init__(
        self, num_classes: int, bins: Any = 15, per: str = "annotation", **kwargs: Any
    ) -> None:
        super().__init__(num_classes, {"bins": bins, "per": per}, **kwargs)


class ClasswiseECE(_PerClassMetric):
    """The mean over classes of the ECE of each class's probability, `raterwise.classwise_ece`.

    >>> metric = ClasswiseECE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.15
    """

    metric_name = "classwise_ece"


class SCE(_PerClassMetric):
    """The static calibration error over the cases predicted as each class, `raterwise.sce`.

    >>> metric = SCE(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.075
    """

    metric_name = "sce"


class RobustECE(_BinnedMetric):
    """RECE-G: ECE with each confidence spread over the bins by a Gaussian, `raterwise.robust_ece`.

    >>> metric = RobustECE(num_classes=2, sigma=1e-6)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.4
    """

    metric_name = "robust_ece"

    def __init__(
        self,
        num_classes: int,
        bins: int = 15,
        sigma: float = 0.1,
        observed_bins_only: bool = False,
        question: str = "top_label",
        per: str = "annotation",
        **kwargs: Any,
    ) -> None:
        if not 0 < sigma < float("inf"):
            raise InvalidInputError(f"sigma: must be positive and finite; got {sigma}")
        options = {
            "bins": bins, "sigma": sigma, "observed_bins_only": observed_bins_only,
            "question": question, "per": per,
        }  # fmt: skip
        super().__init__(num_classes, options, **kwargs)


class LabelHistogramLosses(TableMetric):
    """The losses of label histograms, by the names of raterwise's functions (LH sections 2-4).

    `compute` gives a dictionary: expected_squared_loss (eq 8), epistemic_loss (eq 10),
    irreducible_loss, calibration_loss (eq 14), calibration_error, dispersion_loss (eq 36), and
    disagreement_loss (eq 40), disagreement_calibration_loss and _error. Most need two labels per
    case: with `on_single="drop"` they leave the other cases out, and are NaN where none is left.

    >>> metric = LabelHistogramLosses(num_classes=2)
    >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[2, 2]]))
    >>> round(metric.compute()["expected_squared_loss"].item(), 4)
    0.5
    """

    paired = (
        "epistemic_loss", "irreducible_loss", "dispersion_loss", "disagreement_loss",
        "disagreement_calibration_loss", "disagreement_calibration_error",
    )  # fmt: skip
    """Those that need two labels per case."""
    of_every_case = ("expected_squared_loss", "calibration_loss", "calibration_error")

    def __init__(
        self,
        num_classes: int,
        bins: int = 15,
        estimator: str = "debiased",
        singletons: str = "zero",
        on_single: str = "error",
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, **kwargs)
        self.on_single = choose("on_single", on_single, ("error", "drop"))
        self.options = {
            "estimator": choose("estimator", estimator, ("debiased", "plugin")),
            "singletons": choose("singletons", singletons, ("zero", "plugin")),
        }
        self.plans = {
            "every_case": BinPlan(Question("per_class", "case"), bins),
            "two_labels": BinPlan(Question("per_class", "case"), bins, 2),
            "disagreement": BinPlan(Question("disagreement", "case"), bins, 2),
        }
        for name, plan in self.plans.items():
            channels = plan.question.channels(self.num_classes)
            bins_of = len(plan.edges) - 1
            self.add_table(name, channels, bins_of, kernels.FIELDS, of=_identity(plan))

    def _add(self, cases: TensorCases, tables: Mapping[str, Tensor]) -> None:
        if self.on_single == "error":
            raters = (
                torch.ones(len(cases.probs)) if cases.counts is None else cases.counts.sum(dim=1)
            )
            few = (raters < 2).nonzero()[:, 0]
            if len(few):
                raise InvalidInputError(
                    f"labels: needs at least 2 labels per case, as counts (N, K); {len(few)} of "
                    f"{len(raters)} cases have fewer (the first is case {int(few[0])}); "
                    'on_single="drop" leaves them out where two are needed'
                )
        plans: dict[BinPlan, Tensor] = {plan: tables[name] for name, plan in self.plans.items()}
        add_cases(cases, plans, check=self.validate_args)

    def compute_from(self, tables: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the losses of the tables."""
        every, two, differ = (BinTable(tables[name].cpu().numpy()) for name in self.plans)
        if not every.weight.any():
            raise UndefinedMetricError("label histograms: undefined, no case was given yet")
        values = {
            "expected_squared_loss": float(proper.expected_squared_loss(every)),
            "calibration_loss": float(proper.calibration_loss(every, **self.options)),
            "calibration_error": float(proper.calibration_error(every, **self.options)),
        }
        values |= dict.fromkeys(self.paired, math.nan)
        if two.weight.any():
            values |= {
                "epistemic_loss": float(proper.epistemic_loss(two)),
                "irreducible_loss": float(proper.irreducible_loss(two)),
                "dispersion_loss": float(proper.dispersion_loss(two, **self.options)),
                "disagreement_loss": float(proper.expected_squared_loss(differ)),
                "disagreement_calibration_loss": float(
                    proper.calibration_loss(differ, **self.options)
                ),
                "disagreement_calibration_error": float(
                    proper.calibration_error(differ, **self.options)
                ),
            }
        return {name: self._scalar(value) for name, value in values.items()}

    def _undefined(self) -> dict[str, Tensor]:
        return {name: self._scalar(math.nan) for name in (*self.of_every_case, *self.paired)}


class AUCCC(TableMetric):
    """How well confidence separates right from wrong, `raterwise.auccc` (CCC section 2.2).

    Confidences are counted in 8,348 fine cells, finest near 0 and 1 where they pile up. Two cases
    of one cell count as tied; `bound` says by how much that can matter. With several raters every
    label counts. `update(probs, None)` adds out-of-distribution cases, which count as wrong, and
    `update(…, confidence=c)` takes the confidence (N,) from elsewhere, in [0, 1].

    >>> metric = AUCCC(num_classes=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), torch.tensor([0, 0, 1]))
    >>> metric.compute().item(), metric.bound.item()
    (1.0, 0.0)
    """

    higher_is_better = True

    def __init__(self, num_classes: int, **kwargs: Any) -> None:
        super().__init__(num_classes, **kwargs)
        cells = len(fine_cells()) - 1
        self.add_table("mass", cells)
        self.add_table("hits", cells)
        self._bound = math.nan

    def update(self, probs: Any, labels: Any, weights: Any = None, confidence: Any = None) -> None:
        """Add a batch; see the class for `labels=None` and `confidence`."""
        outside = labels is None
        if outside:
            probs = torch.as_tensor(probs)
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
        rounding = cases.rounding if given is None else 0.0
        cells = fine_cells_for(rounding)
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
        """Return the area under the curve."""
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

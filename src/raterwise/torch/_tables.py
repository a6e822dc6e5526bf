"""The base of the metrics: a torchmetrics Metric whose state is tables of sums."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal
from zlib import crc32

import torch
from torch import Tensor

from raterwise import rules
from raterwise.errors import (
    InvalidInputError,
    InvalidTypeError,
    UndefinedMetricError,
    missing_extra,
)
from raterwise.kernels._torch import FIELDS
from raterwise.labels import Labels
from raterwise.rules import choose, positive_integer
from raterwise.summaries import BinPlan
from raterwise.tensors.cases import TensorCases, as_tensor, rated_cases, weighted_cases

try:
    from torchmetrics import Metric

    from raterwise.torch._merging import refuse_unlike
except ImportError as error:
    raise missing_extra("raterwise.torch.metrics needs torchmetrics", "torch") from error


class TableMetric(Metric):
    """The base of the metrics here: a metric with tables of sums as its state.

    Parameters
    ----------
    num_classes : int
        Number of classes, K.
    ignore_index : int, optional
        A class to ignore, such as the pixels outside a region. With label counts, labels of this
        class are ignored, and cases without other labels.
    on_unrated : {"error", "drop"}, default "error"
        Whether cases whose label counts are all 0 are an error or are left out.
    validate_args : bool, default True
        Check the values of every batch. Without the check a GPU need not wait, but wrong values are
        not noticed: rows that do not sum to 1 count as they are, and a label that is not a class
        counts for none.
    **kwargs : keyword arguments
        Arguments of every `torchmetrics.Metric`.

    See Also
    --------
    torch.metrics.ECE : one of them.

    Examples
    --------
    >>> from raterwise.torch.metrics import ECE
    >>> issubclass(ECE, TableMetric)
    True
    """

    is_differentiable = False
    full_state_update = False
    higher_is_better: bool | None = False

    def __init__(
        self,
        num_classes: int,
        *,
        ignore_index: int | None = None,
        on_unrated: Literal["error", "drop"] = "error",
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_classes = positive_integer("num_classes", num_classes, least=2)
        if ignore_index is not None and not isinstance(ignore_index, int):
            raise InvalidTypeError(
                f"ignore_index: must be a whole number or None; got {ignore_index!r}"
            )
        self.ignore_index = ignore_index
        self.on_unrated = choose("on_unrated", on_unrated, ("error", "drop"))
        self.validate_args = validate_args
        self._state_names: dict[str, str] = {}
        self._of_batch = False

    def _add_table(self, name: str, *shape: int, of: object = None) -> None:
        """Add a table of float64 sums to the state; `of` says what decides which sums they are.

        It is part of the state's name. A `MetricCollection` lets metrics whose states are called
        the same and are equal after the first batch share one from then on: what may differ
        later must be called otherwise.
        """
        key = crc32(repr((of, self.ignore_index, self.on_unrated)).encode())
        self._state_names[name] = state = f"{name}_{key:08x}"
        self.add_state(state, torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")

    def _add_plan(self, name: str, plan: BinPlan) -> None:
        """Add the table of a plan, which metrics that ask the same over the same bins may share."""
        channels, edges = plan.question.channels(self.num_classes), plan.edges.tolist()
        of = plan.question, plan.least_raters, plan.spread, tuple(edges)
        self._add_table(name, channels, len(edges) - 1, FIELDS, of=of)

    @property
    def tables(self) -> dict[str, Tensor]:
        """The tables of sums so far, by name: the whole state."""
        return {name: getattr(self, state) for name, state in self._state_names.items()}

    def update(self, probs: Any, labels: Any, weights: Any = None) -> None:
        """Add a batch.

        Parameters
        ----------
        probs : array or Tensor
            (N, K) or dense (N, K, …); for the probability of class 1 of two (N,), or sigmoid maps
            (N, 1, …) and (N, H, …).
        labels : array, Tensor or Labels
            Classes (N, …), or label counts (N, K, …) where several raters labelled each case.
        weights : array or Tensor, optional
            (N, …): weights of the cases; cases of weight 0 are ignored.

        Raises
        ------
        InvalidInputError
            With the messages of raterwise's functions; the state is not changed.

        >>> from raterwise.torch.metrics import ECE
        >>> metric = ECE(num_classes=2)
        >>> metric.update([[0.9, 0.1]], [0])
        >>> round(metric.compute().item(), 4)
        0.1
        """
        cases, _ = self._cases(probs, labels, weights)
        if cases is not None:
            self._add(cases, self.tables)

    def merge_state(self, incoming_state: Any) -> None:
        """Add the state of another metric with the same options.

        Parameters
        ----------
        incoming_state : TableMetric or mapping of str to Tensor
            The other metric, or its `metric_state`.

        Raises
        ------
        MergeError
            If its classes, bins or options differ.

        >>> from raterwise.torch.metrics import ECE
        >>> here, there = ECE(num_classes=2), ECE(num_classes=2)
        >>> here.update([[0.9, 0.1]], [0])
        >>> there.update([[0.4, 0.6]], [0])
        >>> here.merge_state(there)
        >>> round(here.compute().item(), 4)
        0.35
        """
        refuse_unlike(self, incoming_state, self._state_names)
        super().merge_state(incoming_state)
        self._computed = None  # what was computed before is no longer the value
        self._update_count = max(self._update_count, 1)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and return the batch's own value, NaN if it has none.

        A batch without a value, such as one with only ignored pixels, should not end a training
        run; `compute` raises if all batches together have none. After an error the state is
        unchanged.
        """
        before = {name: table.clone() for name, table in self.tables.items()}
        updates = self._update_count
        self._of_batch = True
        try:
            return super().forward(*args, **kwargs)
        except Exception:
            self.reset()  # torchmetrics has put the state aside to look at the batch alone
            for name, table in before.items():
                setattr(self, self._state_names[name], table)
            self._update_count, self._enable_grad = updates, False
            self._to_sync, self._should_unsync = self.sync_on_compute, True
            raise
        finally:
            self._of_batch = False

    def tables_of(self, probs: Any, labels: Any, weights: Any = None) -> dict[str, Tensor]:
        """Return the tables of one batch, without adding them to the state.

        Parameters
        ----------
        probs, labels, weights : arrays or Tensors
            As in `update`.

        Returns
        -------
        dict of str to Tensor
            Tables of sums by name; the tables of several batches can be added.

        >>> from raterwise.torch.metrics import ECE
        >>> ECE(num_classes=2, bins=5).tables_of([0.9], [1])["sums"].shape[:2]  # channels, bins
        torch.Size([1, 5])
        """
        probs = as_tensor(probs, "probs")
        tables = {
            name: torch.zeros(table.shape, dtype=torch.float64, device=probs.device)
            for name, table in self.tables.items()
        }
        cases, _ = self._cases(probs, labels, weights)
        if cases is not None:
            self._add(cases, tables)
        return tables

    def compute(self) -> Any:
        """Return the metric for all cases so far.

        Returns
        -------
        Tensor or dict of str to Tensor
            Float64, on the device of the metric.

        Raises
        ------
        UndefinedMetricError
            If there is no value, for example before the first case.

        >>> from raterwise.torch.metrics import MCE
        >>> metric = MCE(num_classes=2)
        >>> metric.update([[0.9, 0.1], [0.6, 0.4]], [0, 1])
        >>> round(metric.compute().item(), 4)
        0.6
        """
        try:
            return self.compute_from(self.tables)
        except UndefinedMetricError:
            if not self._of_batch:
                raise
            return self._undefined()

    def compute_from(self, tables: Mapping[str, Tensor]) -> Any:
        """Return the metric for tables, such as the sum of the tables of several batches.

        Parameters
        ----------
        tables : mapping of str to Tensor
            As returned by `tables_of`.

        Returns
        -------
        Tensor or dict of str to Tensor
            As from `compute`: one float64 number, or several by the names of their functions.

        Raises
        ------
        UndefinedMetricError
            If it is not defined, such as the AUROC of a class without cases.

        >>> from raterwise.torch.metrics import ECE
        >>> metric = ECE(num_classes=2)
        >>> one, other = metric.tables_of([0.9], [1]), metric.tables_of([0.6], [0])
        >>> round(metric.compute_from({"sums": one["sums"] + other["sums"]}).item(), 4)
        0.35
        """
        return self._value(tables)

    @abstractmethod
    def _value(self, tables: Mapping[str, Tensor]) -> Any:
        """Return the metric of tables."""

    @abstractmethod
    def _add(self, cases: TensorCases, tables: Mapping[str, Tensor]) -> None:
        """Add the cases to the tables in place."""

    def _undefined(self) -> Any:
        """What stands for the metric of a batch that has none."""
        return self._scalar(math.nan)

    def _cases(
        self, probs: Any, labels: Any, weights: Any, confidence: Any = None
    ) -> tuple[TensorCases | None, Tensor | None]:
        """Return a batch as flat cases with their confidences; no cases where nothing counts."""
        probs = as_tensor(probs, "probs")
        if probs.ndim == 0:
            rules.check_probabilities_shape("probs", probs.shape)
        if self.num_classes == 2:
            probs, labels, weights, confidence = _flat_maps(probs, labels, weights, confidence)
        cases = (probs.shape[0], *probs.shape[2:])
        labels = _label_rows(labels, tuple(probs.shape), cases, probs.device)
        weights = _per_case("weights", weights, cases, probs.device)
        confidence = _per_case("confidence", confidence, cases, probs.device)
        if probs.ndim > 2:
            probs = _rows(probs)
        kept = None
        if labels.ndim in (1, 2) and len(labels) == len(probs):  # others are refused below
            labels, kept = self._counted(labels)
        if kept is not None:
            kept = kept.nonzero()[:, 0]
            probs, labels = probs[kept], labels[kept]
            weights = None if weights is None else weights[kept]
            confidence = None if confidence is None else confidence[kept]
        if labels.ndim and len(probs) == len(labels) == 0:
            return None, None
        if weights is not None and self.validate_args and not bool(weights.any()):
            return None, None  # other batches may hold the cases that have weight
        found = TensorCases.of(probs, labels, weights, check=self.validate_args, kept=kept)
        if found.probs.shape[1] != self.num_classes:
            raise InvalidInputError(
                f"probs: must have num_classes = {self.num_classes} classes; "
                f"got {found.probs.shape[1]}"
            )
        if not self.validate_args:
            return found, confidence
        if confidence is not None and found.weights is not None:
            confidence = confidence[found.weights > 0]
        return rated_cases(weighted_cases(found), "error"), confidence

    def _case_shape(self, probs: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of labels of one class per case."""
        maps = self.num_classes == 2 and len(probs) > 2 and probs[1] not in (1, 2)
        return probs if maps else (probs[0], *probs[2:])

    def plot(self, val: Any = None, ax: Any = None) -> tuple[Any, Any]:
        """Draw the curve behind the number: reliability, CCC or ROC.

        For a metric without a curve, such as NLL, the value is drawn, as torchmetrics does.

        Parameters
        ----------
        val : Tensor or sequence of Tensor, optional
            Values of `compute` or `forward`, to draw these instead, as torchmetrics does.
        ax : matplotlib Axes, optional
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        tuple of Figure and Axes
            The figure and axes used.

        Raises
        ------
        UndefinedMetricError
            If no case was given yet.

        >>> from raterwise.torch.metrics import ECE
        >>> metric = ECE(num_classes=2)
        >>> metric.update([[0.9, 0.1], [0.6, 0.4]], [0, 1])
        >>> figure, ax = metric.plot()
        >>> ax.get_ylabel()
        'Raters who agree'
        """
        if val is not None:
            found: tuple[Any, Any] = self._plot(val, ax)
            return found
        ax = self._draw(ax)
        return ax.figure, ax

    def _draw(self, ax: Any) -> Any:
        """Draw the curve, or the value where no curve belongs to it; the axes."""
        return self._plot(self.compute_from(self.tables), ax)[1]

    def _counted(self, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the labels without those of the ignored class, and which cases still count."""
        ignored = self.ignore_index
        if labels.ndim == 1:
            return labels, None if ignored is None else labels != ignored
        kept = (labels != 0).any(dim=1) if self.on_unrated == "drop" else None
        if ignored is not None and 0 <= ignored < labels.shape[1]:
            rated = (labels != 0).any(dim=1)
            labels = labels.clone()
            labels[:, ignored] = 0
            others = ~rated | (labels != 0).any(dim=1)
            kept = others if kept is None else kept & others
        return labels, kept

    def _scalar(self, value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64, device=self.device)


def _flat_maps(probs: Tensor, labels: Any, *others: Any) -> tuple[Any, ...]:
    """Return sigmoid maps (N, 1, …) or (N, …) as (M,) probabilities of class 1, the rest alike.

    (N, H, …) with H = 2 is taken for (N, K, …): give such a map a channel, (N, 1, H, …). Anything
    that is no map comes back as it was.
    """
    shape = tuple(probs.shape)
    if probs.ndim < 3 or shape[1] == 2:
        return probs, labels, *others
    channel = shape[1] == 1
    cases = (shape[0], *shape[2:]) if channel else shape
    counts = (cases[0], 2, *cases[1:])

    def flat(values: Any) -> Any:
        if values is None or isinstance(values, Labels):
            return values
        tensor = as_tensor(values, "labels", probs.device)
        if tuple(tensor.shape) == counts:
            return _rows(tensor)
        return tensor.reshape(-1) if tuple(tensor.shape) in (shape, cases) else values

    said = flat(labels)
    if not channel and said is labels and not isinstance(labels, Labels):
        return probs, labels, *others  # neither a map nor classes of one: it is refused as such
    return probs.reshape(-1), said, *(flat(values) for values in others)


def _rows(values: Tensor) -> Tensor:
    """Return (N, K, …) as (M, K)."""
    return values.movedim(1, -1).reshape(-1, values.shape[1])


def _label_rows(
    labels: Any, probs: tuple[int, ...], cases: tuple[int, ...], device: torch.device
) -> Tensor:
    """Return classes as (M,) or label counts as (M, K); dense ones must have the probs' shape."""
    if isinstance(labels, Labels):
        labels = labels.classes if labels.classes is not None else labels.counts
    tensor = as_tensor(labels, "labels", device)
    if len(probs) <= 2:
        return tensor
    if tuple(tensor.shape) == probs:
        return _rows(tensor)
    flat = (math.prod(cases),), (math.prod(cases), probs[1])
    if tuple(tensor.shape) in flat:
        return tensor
    if tuple(tensor.shape) != cases:
        raise rules.unfit_labels("labels", tensor.shape, cases, probs, "probs")
    return tensor.reshape(-1)


def _per_case(
    name: str, values: Any, cases: tuple[int, ...], device: torch.device
) -> Tensor | None:
    """Return one number per case as (M,)."""
    if values is None:
        return None
    tensor = as_tensor(values, name, device)
    if len(cases) == 1:
        rules.check_one_per_case(name, tensor.shape, cases[0])
    if tuple(tensor.shape) not in (cases, (math.prod(cases),)):
        raise InvalidInputError(
            f"{name}: must have one value per case, {cases}; got shape {tuple(tensor.shape)}"
        )
    return tensor.reshape(-1)

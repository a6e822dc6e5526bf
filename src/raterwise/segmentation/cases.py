"""An image with its rater masks, and its voxels as predictions with label histograms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_array, as_float_array
from raterwise.beliefs import DirichletBelief
from raterwise.errors import InvalidInputError, InvalidTypeError, RaterwiseError
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.predictions.checks import row_sum_tolerance
from raterwise.rules import a_number, choose, one_value
from raterwise.types import Array

Flags = NDArray[np.bool_]

SLAB_VOXELS = 1 << 20
"""How many voxels are looked at together: what bounds the memory beside the image itself."""
ROUNDING = 1e-5
"""How far float32 may take a sum of classes from what was stored in steps."""
BY_CHANCE = 64
"""Fewer voxels than these may sum to 1 along an axis that is not one of classes."""


@dataclass(frozen=True, eq=False)
class Case:
    """An image: the model's probabilities and the masks of R raters for each voxel.

    Parameters
    ----------
    probabilities : array-like of shape (K, *spatial), (*spatial) or (1, *spatial)
        The probability of each class; (*spatial) and (1, *spatial) are the probability of class 1
        of two.
    masks : array-like of shape (R, *spatial) or (R, K, *spatial), or sequence of R arrays
        Label maps with classes 0 … K-1, or one-hot. R may differ from case to case.
    region : array-like of shape (*spatial), default None
        The voxels to evaluate; all by default.
    spacing : sequence of float, default None
        The size of a voxel along each spatial axis, in millimetres.
    patient : hashable, default None
        The patient of the image; whole patients are then resampled.
    name : str, default None
        The name used in messages.
    concentration : array-like of shape (*spatial), default None
        α0 of a Dirichlet belief around the probabilities, for disagreement.
    layout : {"auto", "labels", "one_hot"}, default "auto"
        Layout of the masks. "auto" recognises it by the shape and, if that is ambiguous, by whether
        the classes of every voxel sum to 1. A voxel without a class in a one-hot mask was not
        rated; if there are such voxels, use "one_hot".
    raters : sequence of str, default None
        Who drew each of the masks; needed to resample raters if they differ between images.
    step : float, default 0
        Step between the stored values of the probabilities, such as 1/255 for 8 bits: the K
        classes of a voxel may then miss the sum 1 by K/2 steps. Nothing else changes.

    See Also
    --------
    segmentation.evaluate : takes an iterable of them.

    Examples
    --------
    >>> image = [[0.2, 0.9], [0.1, 0.6]]  # the probability of class 1
    >>> masks = [[[0, 1], [0, 1]], [[0, 1], [0, 0]]]  # two raters
    >>> Case(image, masks, spacing=(0.7, 0.7), patient="ann").patient
    'ann'
    """

    probabilities: ArrayLike
    masks: NDArray[Any] | Iterable[ArrayLike]
    region: ArrayLike | None = None
    spacing: Sequence[float] | None = None
    patient: Hashable | None = None
    name: str | None = None
    concentration: ArrayLike | None = None
    layout: Literal["auto", "labels", "one_hot"] = "auto"
    raters: Sequence[str] | None = None
    step: float = 0.0


@dataclass(frozen=True)
class Selection:
    """Which voxels of an image are looked at, beyond its own region."""

    ignore_label: int | None = None
    foreground_only: bool = False
    boundary_mm: float | None = None

    def __post_init__(self) -> None:
        one_value("foreground_only", self.foreground_only)
        if self.boundary_mm is not None:
            a_number("boundary_mm", self.boundary_mm)
            if not self.boundary_mm > 0:
                raise InvalidInputError(f"boundary_mm: must be positive; got {self.boundary_mm}")
        if self.ignore_label is not None:
            a_number("ignore_label", self.ignore_label)
            if not float(self.ignore_label).is_integer():
                raise InvalidInputError(
                    f"ignore_label: must be a whole number; got {self.ignore_label}"
                )


@dataclass(frozen=True, eq=False)
class Voxels:
    """The checked arrays of one case, flat, without a copy where their memory allows."""

    name: str
    shape: tuple[int, ...]
    """Of the image."""
    probs: Array
    """(K, n), or (n,) for the probability of class 1 of two."""
    raters: tuple[Array, ...]
    """R label maps (n,), or one-hot (K, n)."""
    one_hot: bool
    num_classes: int
    kept: Flags | None
    """(n,): the voxels to look at; all where it is None."""
    concentration: Array | None
    ignore_label: int | None
    tolerance: float
    reversed_axes: bool
    """Whether the voxels are in the order of the last axis first, as NIfTI files are."""

    @staticmethod
    def of(case: Case, num_classes: int | None, selection: Selection, number: int = 0) -> Voxels:
        """Return the voxels of a case, shapes and kinds checked; values are when they are read."""
        name = case.name if case.name is not None else f"{number}"
        try:
            return _checked(case, name, num_classes, selection)
        except RaterwiseError as error:
            raise InvalidInputError(f"case {name}: {error}", argument=error.argument) from error

    def __len__(self) -> int:
        """How many voxels are looked at."""
        return int(self.probs.shape[-1] if self.kept is None else np.count_nonzero(self.kept))

    def parts(self) -> Iterator[Predictions]:
        """Yield the voxels as predictions, some at a time; those that nobody rated are left out."""
        return (part for _, part in self.slabs())

    def slabs(self) -> Iterator[tuple[int, Predictions]]:
        """Yield the same with the first voxel of the slab that each is of."""
        for first in range(0, self.probs.shape[-1], SLAB_VOXELS):
            last = min(first + SLAB_VOXELS, self.probs.shape[-1])
            chosen = np.empty(0, np.int64)
            if self.kept is not None:
                chosen = np.flatnonzero(self.kept[first:last])
                if len(chosen) == 0:
                    continue
                if len(chosen) == last - first:
                    chosen = np.empty(0, np.int64)
            part = self._part(first, last, chosen)
            if part is not None:
                yield first, part

    def _part(self, first: int, last: int, chosen: NDArray[np.int64]) -> Predictions | None:
        labels = self._labels(first, last, chosen)
        probs = self.probs[..., first:last]
        alpha = None if self.concentration is None else self.concentration[first:last]
        if len(chosen):
            probs = probs[..., chosen]
            alpha = None if alpha is None else alpha[chosen]
        if labels.classes is None and not (rated := labels.num_raters > 0).all():
            if not rated.any():
                return None
            labels, probs = labels.take(rated), probs[..., rated]
            alpha = None if alpha is None else alpha[rated]
        rows = probs if probs.ndim == 1 else probs.T
        belief = None
        if alpha is not None:
            both = np.stack((1 - rows, rows), axis=1) if rows.ndim == 1 else rows
            belief = DirichletBelief(both, alpha)
        return Predictions(rows, labels, belief=belief, tolerance=self.tolerance)

    def _labels(self, first: int, last: int, chosen: NDArray[np.int64]) -> Labels:
        from raterwise.kernels import _voxels as kernels

        size = len(chosen) or last - first
        counts = np.zeros((size, self.num_classes), np.int16)
        ignored = self.ignore_label
        for r, rater in enumerate(self.raters):
            labels = rater[..., first:last]
            if self.one_hot:
                bad = kernels.count_one_hot(labels, chosen, counts)
            else:
                has = ignored is not None
                bad = kernels.count_labels(labels, chosen, ignored or 0, has, counts)
            if bad >= 0:
                raise self.bad_label(r, first + int(bad))
        if len(self.raters) == 1 and ignored is None and not self.one_hot:
            classes = self.raters[0][first:last]
            classes = classes[chosen] if len(chosen) else classes
            return Labels(self.num_classes, classes=np.asarray(classes, np.int64))
        if self.one_hot and ignored is not None and 0 <= ignored < self.num_classes:
            counts[:, ignored] = 0
        return Labels(self.num_classes, histogram=counts)

    def bad_label(self, rater: int, voxel: int) -> InvalidInputError:
        """Return the error about a rater's label."""
        where = f"case {self.name}: masks: rater {rater}, voxel {self.at(voxel)}"
        if self.one_hot:
            held = self.raters[rater][:, voxel].tolist()
            return InvalidInputError(
                f"{where}: one-hot masks must mark one class; got {held}", argument="masks"
            )
        rule = f"labels must be classes 0 … {self.num_classes - 1}"
        got, hint = self.raters[rater][voxel], ""
        if self.ignore_label is not None:
            rule += f" or the ignored {self.ignore_label}"
        elif set(np.unique(self.raters[rater]).tolist()) <= {0, got}:
            hint = f" (where 0 and {got} are no and yes: store them as 0 and 1)"
        else:
            hint = f" (if it marks voxels that do not count: ignore_label={got})"
        return InvalidInputError(f"{where}: {rule}; got {got}{hint}", argument="masks")

    def bad_probability(self, first: int, last: int, nth: int) -> InvalidInputError:
        """Return the error about the n-th voxel that is looked at among first … last - 1."""
        if self.kept is not None:
            nth = int(np.flatnonzero(self.kept[first:last])[nth])
        value = self.probs[first + nth]
        if np.isnan(value):
            looked_at = self.probs if self.kept is None else self.probs[self.kept]
            return InvalidInputError(
                f"case {self.name}: probabilities: must not contain NaN; "
                f"{int(np.isnan(looked_at).sum())} values are NaN, one in voxel "
                f"{self.at(first + nth)}",
                argument="probabilities",
            )
        hint = " (logits need a sigmoid first)" if np.isfinite(value) else ""
        return InvalidInputError(
            f"case {self.name}: probabilities: must lie in [0, 1]; voxel {self.at(first + nth)} "
            f"holds {value:.6g}{hint}",
            argument="probabilities",
        )

    def at(self, voxel: int) -> tuple[int, ...]:
        """Return the index of a voxel in the image, from its place in the flat arrays."""
        shape = self.shape[::-1] if self.reversed_axes else self.shape
        index = tuple(int(i) for i in np.unravel_index(voxel, shape))
        return index[::-1] if self.reversed_axes else index

    def _voxel(self, where: str | None, first: int | None) -> str:
        """Return what messages call the voxel of "row 3" of the part of a slab."""
        if where is None or first is None:
            return "a voxel"
        kept = None if self.kept is None else self.kept[first : first + SLAB_VOXELS]
        size = min(SLAB_VOXELS, self.probs.shape[-1] - first)
        chosen = np.arange(size) if kept is None else np.flatnonzero(kept)
        rated = self._labels(first, first + size, chosen).num_raters > 0
        return f"voxel {self.at(first + int(chosen[rated][int(where.split()[1])]))}"

    def explained(self, error: RaterwiseError, first: int | None = None) -> InvalidInputError:
        """Return an error about the values of a part with the name of the case and the voxel.

        `first` is the first voxel of the slab that it is about.
        """
        if error.argument == "probs":
            error = error.renamed("probabilities", self._voxel(error.where, first))
        text, here = str(error), f"case {self.name}: "
        whole = text if text.startswith(here) else f"{here}{text}"
        return InvalidInputError(whole, argument=error.argument)


def row_sums_within(probabilities: Any, classes: int, step: float) -> float:
    """Return how far the classes of a voxel may be from the sum 1; `step` as in `Case`."""
    if not 0 <= step < 1:
        raise InvalidInputError(f"step: must be at least 0 and below 1; got {step}")
    return max(row_sum_tolerance(probabilities), classes * step / 2 + ROUNDING)


def _masks_of(case: Case) -> list[Array]:
    if not isinstance(case.masks, Iterable):
        raise InvalidTypeError(f"masks: must be one for each rater; got {case.masks!r}")
    masks = [_as_mask(mask) for mask in case.masks]
    if not masks:
        raise InvalidInputError("masks: must be of at least one rater; got none")
    if any(mask.shape != masks[0].shape for mask in masks):
        shapes = sorted({mask.shape for mask in masks})
        raise InvalidInputError(f"masks: must have one shape; got {shapes}")
    return masks


def _checked(case: Case, name: str, num_classes: int | None, selection: Selection) -> Voxels:
    choose("layout", case.layout, ("auto", "labels", "one_hot"))
    probs = as_float_array(case.probabilities, "probabilities", ndim=tuple(range(1, 9)))
    masks = _masks_of(case)
    one_hot = _is_one_hot(case, probs, masks, num_classes)
    spatial = masks[0].shape[1:] if one_hot else masks[0].shape
    if probs.shape == (1, *spatial):
        probs = probs[0]
    channels = probs.shape == spatial
    if not channels and probs.shape[1:] != spatial:
        raise InvalidInputError(
            f"probabilities and masks: must be (classes, *spatial) and (raters, *spatial); got "
            f"shapes {probs.shape} and {(len(masks), *masks[0].shape)}",
            argument="probabilities",
        )
    classes = 2 if channels else probs.shape[0]
    if num_classes is not None and classes != num_classes:
        raise InvalidInputError(
            f"num_classes: must be that of probabilities; got {num_classes} and {classes}"
        )
    if classes < 2 or 0 in spatial:
        raise InvalidInputError(f"probabilities: must have 2 classes or more; got {probs.shape}")
    if one_hot and masks[0].shape[0] != classes:
        raise InvalidInputError(
            f"masks: one-hot masks must have {classes} classes; got {masks[0].shape[0]}"
        )
    reverse = _in_reverse(probs, len(spatial))
    flat = partial(_flat, reverse=reverse)
    region = _region(case, spatial)
    if selection.boundary_mm is not None or selection.foreground_only:
        from raterwise.segmentation.bands import selected

        own = selected(probs, masks, one_hot, case.spacing, selection)
        region = own if region is None else own & region
        if not region.any():
            raise InvalidInputError(
                "region, foreground_only, boundary_mm: must leave at least one voxel; none is left"
            )
    alpha = case.concentration
    if alpha is not None:
        alpha = _of_shape(as_float_array(alpha, "concentration", ndim=len(spatial)), spatial)
    return Voxels(
        name=name,
        shape=spatial,
        probs=flat(probs, 0 if channels else 1),
        raters=tuple(flat(mask, 1 if one_hot else 0) for mask in masks),
        one_hot=one_hot,
        num_classes=classes,
        kept=None if region is None else flat(region, 0),
        concentration=None if alpha is None else flat(alpha, 0),
        ignore_label=selection.ignore_label,
        tolerance=row_sums_within(case.probabilities, classes, case.step),
        reversed_axes=reverse,
    )


def _as_mask(mask: Any) -> Array:
    array = as_array(mask, "masks")
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def _is_one_hot(case: Case, probs: Array, masks: list[Array], num_classes: int | None) -> bool:
    if case.layout != "auto":
        return case.layout == "one_hot"
    mask = masks[0]
    as_labels = mask.shape == probs.shape or mask.shape == probs.shape[1:]
    as_one_hot = mask.shape == probs.shape or mask.shape[1:] == probs.shape
    if as_labels and as_one_hot and probs.shape[0] >= 2 and probs.ndim >= 2:
        # One channel of an image whose first axis is short, or the classes of one-hot masks.
        if num_classes not in (None, probs.shape[0]):
            return False
        within = row_sums_within(case.probabilities, len(probs), case.step)
        whole = np.abs(probs.sum(axis=0, dtype=np.float64) - 1).max() <= within
        marked = all((m.sum(axis=0) == 1).all() for m in masks)
        if whole and not marked and probs[0].size >= BY_CHANCE:
            raise InvalidInputError(
                "layout: must be given; the masks have the shape of the probabilities, but not one "
                'class in every voxel. Use "one_hot" if voxels without a class were not rated, '
                'or "labels"'
            )
        return bool(whole and marked)
    return as_one_hot and not as_labels


def _in_reverse(probs: Array, dimensions: int) -> bool:
    """Tell whether the image lies in memory with its first spatial axis running fastest."""
    strides = probs.strides[-dimensions:]
    return dimensions > 1 and list(strides) == sorted(strides) and len(set(strides)) > 1


def _flat(array: Array, leading: int, reverse: bool) -> Array:
    if reverse:
        axes = (*range(leading), *reversed(range(leading, array.ndim)))
        array = array.transpose(axes)
    return array.reshape(*array.shape[:leading], -1)


def _of_shape(array: Array, spatial: tuple[int, ...]) -> Array:
    if array.shape != spatial:
        raise InvalidInputError(f"concentration: must have the shape {spatial}; got {array.shape}")
    return array


def _region(case: Case, spatial: tuple[int, ...]) -> Flags | None:
    if case.region is None:
        return None
    region = as_array(case.region, "region")
    if region.shape != spatial:
        raise InvalidInputError(f"region: must have the shape {spatial}; got {region.shape}")
    if region.dtype.kind == "f" and (missing := int(np.isnan(region).sum())):
        raise InvalidInputError(f"region: must not contain NaN; {missing} values are NaN")
    if not region.any():
        raise InvalidInputError("region: must hold at least one voxel; none is left")
    return region.astype(np.bool_, copy=False)

"""Which voxels matter: those near a rater's boundary, or those that anybody calls foreground."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.types import Array

if TYPE_CHECKING:
    from raterwise.segmentation.cases import Selection

Flags = NDArray[np.bool_]

SLAB_VOXELS = 1 << 20
"""Of how many voxels distances are in memory at a time: they take some fifty bytes each."""
UNRATED = -1
"""The label of voxels that one-hot masks mark as no class."""


def selected(
    probs: Array,
    masks: Sequence[Array],
    one_hot: bool,
    spacing: Sequence[float] | None,
    selection: Selection,
) -> Flags:
    """Return the voxels (*spatial) that a selection asks for."""
    labels, ignored = masks, selection.ignore_label
    if one_hot:
        labels = [_as_label_map(mask, ignored) for mask in masks]
        ignored = UNRATED
    kept = np.ones(labels[0].shape, np.bool_)
    if selection.boundary_mm is not None:
        kept &= boundary_band(labels, selection.boundary_mm, spacing, ignored)
        if not kept.any():
            raise InvalidInputError("boundary_mm: a rater must draw a boundary; none did")
    if selection.foreground_only:
        kept &= foreground(probs, labels, ignored)
    return kept


def _as_label_map(one_hot: Array, ignored: int | None) -> Array:
    label = np.where(one_hot.any(axis=0), one_hot.argmax(axis=0), UNRATED)
    return label if ignored is None else np.where(label == ignored, UNRATED, label)


def foreground(probs: Array, labels: Sequence[Array], ignore_label: int | None = None) -> Flags:
    """Return the voxels that the prediction or any rater calls other than class 0.

    Both: by the raters' foreground alone, false alarms would never count.
    """
    if probs.shape == labels[0].shape:
        kept = np.asarray(probs > 0.5)
    else:
        kept = np.asarray(probs[1:].max(axis=0) > probs[0])
    for label in labels:
        kept |= label != 0 if ignore_label is None else (label != 0) & (label != ignore_label)
    return kept


def boundary_voxels(label: Array, ignore_label: int | None = None) -> Flags:
    """Return the voxels with a neighbour, across a face, of another label.

    >>> boundary_voxels(np.array([0, 0, 1, 1, 0])).astype(int)
    array([0, 1, 1, 1, 1])
    """
    found = np.zeros(label.shape, np.bool_)
    for axis in range(label.ndim):
        before = tuple(slice(None, -1) if a == axis else slice(None) for a in range(label.ndim))
        after = tuple(slice(1, None) if a == axis else slice(None) for a in range(label.ndim))
        differs = label[before] != label[after]
        if ignore_label is not None:
            differs &= (label[before] != ignore_label) & (label[after] != ignore_label)
        found[before] |= differs
        found[after] |= differs
    return found


def boundary_band(
    labels: Sequence[Array],
    distance: float,
    spacing: Sequence[float] | None,
    ignore_label: int | None = None,
) -> Flags:
    """Return the voxels within `distance` mm of a boundary voxel of any rater.

    Boundary voxels lie on both sides of a boundary; distances are between centres of voxels.

    Parameters
    ----------
    labels : sequence of ndarray of shape (*spatial)
        The label map of each rater.
    distance : float
        In mm.
    spacing : sequence of float
        The size of a voxel along each axis, in mm.
    ignore_label : int, default None
        The label of voxels that a rater left out: next to them there is no boundary.

    Returns
    -------
    ndarray of bool of shape (*spatial)
        True in the band; nowhere, if no rater drew a boundary.

    Raises
    ------
    InvalidInputError
        If `spacing` is not one positive size per axis.

    See Also
    --------
    segmentation.evaluate : looks at such a band with `boundary_mm`.

    Examples
    --------
    >>> masks = [np.array([0, 0, 0, 0, 1, 1, 1, 1])]
    >>> boundary_band(masks, 2.0, (1.5,)).astype(int)
    array([0, 0, 1, 1, 1, 1, 0, 0])
    """
    from scipy.ndimage import find_objects

    shape = labels[0].shape
    if spacing is None:
        raise InvalidInputError("spacing: must be given in mm where boundary_mm is")
    sizes = [float(size) for size in spacing]
    if len(sizes) != len(shape) or not all(math.isfinite(s) and s > 0 for s in sizes):
        raise InvalidInputError(
            f"spacing: must be {len(shape)} positive sizes, one per axis; got {tuple(spacing)}"
        )
    boundary = np.zeros(shape, np.bool_)
    for label in labels:
        boundary |= boundary_voxels(label, ignore_label)
    band = np.zeros(shape, np.bool_)
    around = find_objects(boundary.view(np.uint8))
    if not around or around[0] is None:
        return band
    # Nothing beyond the box of the boundaries and the distance around it can be in the band.
    margins = [math.ceil(distance / size) for size in sizes]
    box = tuple(
        slice(max(0, part.start - margin), part.stop + margin)
        for part, margin in zip(around[0], margins, strict=True)
    )
    band[box] = _within(distance, boundary[box], sizes, margins[0])
    return band


def _within(distance: float, boundary: Flags, sizes: Sequence[float], margin: int) -> Flags:
    """Return the voxels within `distance` of a boundary voxel, one slab of the image at a time.

    `margin` is how many voxels along the first axis the distance spans at most.
    """
    from scipy.ndimage import distance_transform_edt

    found = np.zeros(boundary.shape, np.bool_)
    thick = max(SLAB_VOXELS // boundary[0].size, margin, 1)
    for first in range(0, len(boundary), thick):
        before = max(0, first - margin)
        around = boundary[before : first + thick + margin]
        if around.any():
            far = distance_transform_edt(~around, sampling=sizes)[first - before :][:thick]
            found[first : first + thick] = far <= distance * (1 + 1e-9)
    return found

"""The order of the axes of arrays that do not say where they lie in the patient.

A NIfTI file has its axes in the order x, y, z; what SimpleITK and nnU-Net save as an array has them
in the order z, y, x. In a cube both have one shape, so the order is told or known, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.types import Array

KNOWN_KEYS = {"probabilities": "zyx", "softmax": "zyx"}
"""The arrays of NPZ files whose axes are known: nnU-Net's, of version 2 and of version 1."""


def check_axes(axes: str) -> str:
    """Return the names of the axes, first to last, in small letters.

    >>> check_axes("ZYX")
    'zyx'
    """
    named = axes.lower() if isinstance(axes, str) else axes
    if not isinstance(named, str) or sorted(named) not in (list("xy"), list("xyz")):
        raise InvalidInputError(
            "axes: must name the axes of an image from the first to the last, each once, such as "
            f'"zyx" or "xyz" (of flat images "yx" or "xy"); got {axes!r}'
        )
    return named


def order_of(
    path: Path, known: str | None, told: str | None, located: Sequence[Path]
) -> str | None:
    """Return the order of the axes of an array without geometry, None where it does not matter.

    `known` is what its file tells, `told` what somebody says, who is believed first; `located` are
    the files beside it that have a geometry.
    """
    if told is not None or not located:
        return told
    if known is None:
        raise InvalidInputError(
            f"{path} and {located[0]}: one is an array that does not say where it lies, the other "
            'has a geometry, and a cube would fit either way round; axes="zyx" says that the axes '
            'of arrays are z, y, x (as SimpleITK and nnU-Net save them), axes="xyz" that they are '
            "those of the NIfTI file"
        )
    return known


def ordered(array: Array, axes: str, path: Path) -> Array:
    """Return an image with its axes in the order x, y, z; classes, if any, are the first axis.

    >>> ordered(np.zeros((2, 3, 4, 5)), "zyx", Path("c1.npz")).shape
    (2, 5, 4, 3)
    """
    spatial = len(axes)
    if array.ndim not in (spatial, spatial + 1):
        raise InvalidInputError(
            f"{path}: must have the axes {', '.join(axes)}, and perhaps classes before them; got "
            f"shape {array.shape}"
        )
    ahead = array.ndim - spatial
    order = [ahead + axes.index(name) for name in sorted(axes)]
    return np.transpose(array, [*range(ahead), *order])

"""CIFAR-10H and CIFAR-10N: what people see in the images of CIFAR-10.

CIFAR-10H (Peterson et al., ICCV 2019, https://doi.org/10.1109/ICCV.2019.00971, CC BY-NC-SA 4.0)
has about 51 labels for each of the 10,000 test images. CIFAR-10N (Wei et al., ICLR 2022,
https://openreview.net/forum?id=TBWA6PLJZQm, CC BY-NC 4.0) has three for each of the 50,000
training images. Neither comes with quorate.
"""

from __future__ import annotations

from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.arrays import as_integer_array
from quorate.errors import InvalidInputError

__all__ = ["CIFAR10_CLASSES", "Cifar10N", "read_cifar10h", "read_cifar10n"]

CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)

IntArray = NDArray[np.int64]


class Cifar10N(NamedTuple):
    """The labels of CIFAR-10N, in the order of the original training images."""

    ratings: IntArray
    """(N, 3): the label of each of the three people; a column is not one person."""
    clean: IntArray
    """(N,): the label of CIFAR-10 itself."""
    aggregate: IntArray
    """(N,): the majority of the three, at random where all differ."""
    worst: IntArray
    """(N,): a wrong label where any of the three is wrong."""


def read_cifar10h(counts_npy: str | PathLike[str]) -> IntArray:
    """Return the (N, 10) label histograms of `cifar10h-counts.npy`, for `Labels.from_counts`."""
    counts = as_integer_array(np.load(counts_npy, allow_pickle=False), "counts_npy", ndim=2)
    if counts.shape[1] != len(CIFAR10_CLASSES):
        raise InvalidInputError(
            f"counts_npy: must have 10 columns, one per class; got shape {counts.shape}"
        )
    if counts.size and counts.min() < 0:
        raise InvalidInputError(f"counts_npy: counts must not be negative; got {counts.min()}")
    return counts.astype(np.int64)


def read_cifar10n(npz: str | PathLike[str]) -> Cifar10N:
    """Return the labels of CIFAR-10N from an NPZ file, for `Labels.from_ratings`.

    The authors publish `CIFAR-10_human.pt`, a pickled dictionary; quorate does not open pickles.
    Where you trust the file, ``np.savez("cifar10n.npz", **torch.load("CIFAR-10_human.pt",
    weights_only=False))`` makes the NPZ file once, and its names are understood. So are the
    shorter names `raters` (N, 3), `clean`, `aggre` and `worse`.
    """
    with np.load(npz, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if "raters" not in arrays:
        arrays = _with_short_names(arrays)
    if missing := [name for name in ("raters", "clean", "aggre", "worse") if name not in arrays]:
        raise InvalidInputError(
            f"npz: must hold raters, clean, aggre, worse; {', '.join(missing)} missing "
            f"(found: {', '.join(sorted(arrays)) or 'nothing'})"
        )
    ratings = _classes(arrays["raters"], "raters", ndim=2)
    if ratings.shape[1] != 3:
        raise InvalidInputError(f"raters: must be (N, 3); got shape {ratings.shape}")
    single = [_classes(arrays[name], name, ndim=1) for name in ("clean", "aggre", "worse")]
    if len(lengths := {len(ratings), *map(len, single)}) != 1:
        raise InvalidInputError(
            f"npz: raters, clean, aggre, worse must have one length; got {sorted(lengths)}"
        )
    return Cifar10N(ratings, *single)


def _with_short_names(arrays: dict[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    columns = [arrays.get(f"random_label{i}") for i in (1, 2, 3)]
    short = {name.removesuffix("_label"): array for name, array in arrays.items()}
    found = [column for column in columns if column is not None]
    if len(found) == 3 and len({column.shape for column in found}) == 1:
        short["raters"] = np.stack(found, axis=1)
    return short


def _classes(values: NDArray[np.generic], name: str, *, ndim: int) -> IntArray:
    classes = as_integer_array(values, name, ndim=ndim).astype(np.int64)
    if classes.size and (classes.min() < 0 or classes.max() > 9):
        worst = classes.min() if classes.min() < 0 else classes.max()
        raise InvalidInputError(f"{name}: must be classes 0 … 9; got {worst}")
    return classes

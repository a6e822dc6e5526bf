"""SVHN: house numbers in street-view photographs, cropped to single digits (Netzer et al. 2011).

http://ufldl.stanford.edu/housenumbers, for non-commercial use. It does not come with raterwise.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np

from raterwise.arrays import as_integer_array
from raterwise.datasets.dataset import Dataset
from raterwise.datasets.sheets import required
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.rules import choose

SIDE = 32
ZERO = 10
"""The class that the files give the digit 0."""


def read_svhn(
    folder: str | PathLike[str], part: Literal["train", "test", "extra"] = "test"
) -> Dataset:
    """Return the cropped digits of SVHN, "format 2".

    Parameters
    ----------
    folder : str or path
        Holds train_32x32.mat, test_32x32.mat or extra_32x32.mat as published: MATLAB files with X
        (32, 32, 3, N) of bytes and y (N, 1) of classes 1 … 10, where 10 is the digit 0.
    part : {"train", "test", "extra"}, default "test"
        Which images.

    Returns
    -------
    Dataset
        Images (N, 32, 32, 3) and one label per image, the digits 0 … 9.

    See Also
    --------
    datasets.read_mnist : handwritten digits.

    Examples
    --------
    >>> from scipy.io import savemat
    >>> X, y = np.zeros((32, 32, 3, 2), np.uint8), np.array([[10], [7]])
    >>> savemat(getfixture("tmp_path") / "test_32x32.mat", {"X": X, "y": y})
    >>> read_svhn(getfixture("tmp_path")).labels.majority()
    array([0, 7])
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    choose("part", part, ("train", "test", "extra"))
    file = required(Path(folder) / f"{part}_32x32.mat")
    try:
        # Numbers only: nothing of MATLAB's objects, functions or structures is made.
        arrays = loadmat(file, variable_names=("X", "y"), chars_as_strings=False)
    except (MatReadError, LookupError, ValueError, TypeError, RuntimeError, OSError) as error:
        raise InvalidInputError(f"{file}: must be a MATLAB file of version 5; {error}") from error
    if missing := [name for name in ("X", "y") if name not in arrays]:
        raise InvalidInputError(f"{file}: must hold X and y; {', '.join(missing)} missing")
    images = arrays["X"]
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (SIDE, SIDE, 3):
        raise InvalidInputError(
            f"{file}: X must be bytes (32, 32, 3, N); got {images.dtype} {images.shape}"
        )
    classes = as_integer_array(arrays["y"].reshape(-1), f"{file.name}: y", ndim=1).astype(np.int64)
    if len(classes) != images.shape[3] or not len(classes):
        raise InvalidInputError(
            f"{file}: y must have a class per image; got {len(classes)} for {images.shape[3]}"
        )
    if classes.min() < 1 or classes.max() > ZERO:
        raise InvalidInputError(
            f"{file}: y must be classes 1 … 10; got {classes.min()} … {classes.max()}"
        )
    return Dataset(
        "SVHN",
        tuple(str(i) for i in range(len(classes))),
        Labels.from_classes(classes % ZERO, ZERO, class_names=[str(i) for i in range(ZERO)]),
        parts=np.full(len(classes), part),
        images=np.ascontiguousarray(images.transpose(3, 0, 1, 2)),
    )

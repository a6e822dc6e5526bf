"""Lung nodules of LIDC-IDRI with their ratings, and the folds of their patients.

This module needs NumPy alone.
"""

from __future__ import annotations

from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError

__all__ = ["FOLDS", "GRADES", "TASKS", "Nodules", "folds_of", "one_rating", "read_nodules"]

TASKS = ("malignancy", "texture")
FOLDS = 5
GRADES = 5
FOLD, RATER = 11, 12
"""What a seed is for; each draws numbers of its own."""


class Nodules(NamedTuple):
    """Slices of nodules, and what the radiologists say of them."""

    images: NDArray[np.uint8]
    ratings: NDArray[np.int64]
    """(N, R) grades 0 … 4, -1 where a radiologist did not mark the nodule."""
    patients: NDArray[np.str_]


def read_nodules(file: str | PathLike[str], task: str) -> Nodules:
    """Return the nodules of lidc_nodules.npz with the ratings of one kind."""
    if task not in TASKS:
        raise InvalidInputError(f"task: must be of {', '.join(TASKS)}; got {task!r}")
    with np.load(file, allow_pickle=False) as stored:
        column = stored["rating_names"].tolist().index(task)
        ratings = stored["ratings"][:, :, column].astype(np.int64) - 1
        return Nodules(stored["images"], ratings, stored["patient"].astype(np.str_))


def folds_of(patients: NDArray[np.str_], seed: int = 0) -> NDArray[np.int64]:
    """Return the fold 0 … 4 of each nodule; those of one patient have the same."""
    names, patient = np.unique(patients, return_inverse=True)
    order = np.random.default_rng([seed, FOLD]).permutation(len(names))
    fold = np.empty(len(names), np.int64)
    fold[order] = np.arange(len(names)) % FOLDS
    return np.asarray(fold[patient])


def one_rating(ratings: NDArray[np.int64], seed: int = 0) -> NDArray[np.int64]:
    """Return one rater's label of each case, drawn at random among those there are."""
    chance = np.random.default_rng([seed, RATER]).random(ratings.shape)
    return np.asarray(
        np.take_along_axis(
            ratings, np.where(ratings >= 0, chance, -1).argmax(axis=1)[:, None], axis=1
        )[:, 0]
    )

"""The images of the segmentation experiment: who is trained on, who is tested, and by whom.

LIDC is split by patient into 60 % to train on, 15 % to choose the epoch by and 25 % to test; the
82 cells of BU-BIL and the 39 brains of QUBIQ are tested in five folds. Each network's predictions
lie in a file of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.kept import fingerprint, kept_arrays
from raterwise.datasets.mask_arrays import OutlinedImages, read_bubil_cells, read_lidc_nodules
from raterwise.errors import InvalidInputError

__all__ = [
    "STUDIES",
    "Arrays",
    "Split",
    "Study",
    "Training",
    "Unit",
    "kept_predictions",
    "one_rater",
    "read_study",
    "splits_of",
    "units_of",
]

IntArray = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

VERSION = 2
RATER, ORDER, NETWORK = 1, 2, 3
"""What a seed is for; each draws numbers of its own."""


def read_qubiq_slices(path: str | PathLike[str]) -> OutlinedImages:
    """Return the slices of an NPZ of QUBIQ brain growth, each of a patient of its own.

    The file has the arrays images (N, H, W) uint8, masks (N, R, H, W) of 0 and 1, case (N,).
    """
    with np.load(path, allow_pickle=False) as file:
        images, masks, names = (file[name] for name in ("images", "masks", "case"))
    cases = len(images)
    return OutlinedImages(
        "QUBIQ brain growth",
        images,
        masks.astype(np.uint8),
        np.full(cases, masks.shape[1]),
        names.astype(np.str_),
        np.zeros(cases, np.int64),
        tuple(str(name) for name in names),
    )


@dataclass(frozen=True)
class Study:
    """A data set, and how its images are divided and learnt."""

    key: str
    file: str
    read: Callable[[str | PathLike[str]], OutlinedImages]
    parts: int
    """Patients are dealt into so many parts."""
    test: int
    """How many parts are the test images of a split; the splits take them in turn."""
    validation: int
    splits: int
    epochs: int
    batch_size: int


STUDIES = {
    "lidc": Study("lidc", "lidc_nodules.npz", read_lidc_nodules, 20, 5, 3, 1, 60, 16),
    "bubil": Study("bubil", "bubil_cells.npz", read_bubil_cells, 5, 1, 1, 5, 150, 8),
    "qubiq": Study("qubiq", "qubiq_brain_growth.npz", read_qubiq_slices, 5, 1, 1, 5, 150, 8),
}


@dataclass(frozen=True)
class Training:
    """What the networks depend on, besides the data."""

    seed: int = 0
    """Of the split and of the rater of each image; networks differ by their weights and order."""
    networks: int = 3
    """Networks per split."""
    channels: int = 16
    """Of the first level of the U-Net; 16 make 0.5 million weights."""
    epochs: int | None = None
    """In place of the study's."""
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from, to choose the epoch by, and to test on; no patient is in two of them."""

    train: IntArray
    validation: IntArray
    test: IntArray


@dataclass(frozen=True)
class Unit:
    """One network to train."""

    study: str
    split: int
    network: int

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{self.study}-split{self.split}-network{self.network}"


def read_study(data: str | PathLike[str], key: str) -> OutlinedImages:
    """Return the images of a study from the folder of its file."""
    if key not in STUDIES:
        raise InvalidInputError(f"studies: must be of {', '.join(STUDIES)}; got {key!r}")
    file = Path(data) / STUDIES[key].file
    if not file.is_file():
        raise InvalidInputError(f"data: {Path(data)} must hold {file.name}")
    return STUDIES[key].read(file)


def splits_of(images: OutlinedImages, study: Study, seed: int = 0) -> list[Split]:
    """Deal the patients of each stratum into parts, and return the study's splits of them."""
    patients, first, patient = np.unique(images.patients, return_index=True, return_inverse=True)
    if len(patients) < study.parts:
        raise InvalidInputError(
            f"{study.file}: must have at least {study.parts} patients; got {len(patients)}"
        )
    order = np.random.default_rng([seed, ORDER]).permutation(len(patients))
    order = order[np.argsort(images.strata[first][order], kind="stable")]
    part = np.empty(len(patients), np.int64)
    part[order] = np.arange(len(patients)) % study.parts
    found = []
    for split in range(study.splits):
        ahead = (part[patient] - split * study.test) % study.parts
        tested = ahead < study.test
        validated = ~tested & (ahead < study.test + study.validation)
        rows = (np.flatnonzero(kept) for kept in (~tested & ~validated, validated, tested))
        found.append(Split(*rows))
    return found


def one_rater(images: OutlinedImages, seed: int = 0, *key: int) -> IntArray:
    """Return one rater of each image, drawn at random among those who outlined it."""
    return np.random.default_rng([seed, RATER, *key]).integers(images.num_raters)


def units_of(studies: Sequence[str], settings: Training) -> Iterator[Unit]:
    """Yield the networks to train: every split once before any of them twice."""
    for key in studies:
        for network in range(settings.networks):
            for split in range(STUDIES[key].splits):
                yield Unit(key, split, network)


def network_seed(settings: Training, unit: Unit) -> int:
    """Return the seed of a network's weights, order and augmentation."""
    seeds = np.random.SeedSequence((settings.seed, NETWORK, unit.network))
    return int(seeds.generate_state(1)[0])


def kept_predictions(
    images: OutlinedImages,
    unit: Unit,
    folder: Path,
    settings: Training,
    make: Callable[[], Arrays] | None = None,
) -> Arrays:
    """Return `probabilities` (n, H, W) of the foreground in the test images `rows` (n,).

    They come from the network's file where that was made of the same data and settings, and
    otherwise from `make`, if there is one.
    """
    study, file = STUDIES[unit.study], folder / f"{unit.name}.npz"
    recipe = {
        "epochs": settings.epochs or study.epochs,
        "batch_size": study.batch_size,
        "learning_rate": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "seed": network_seed(settings, unit),
    }
    made_of = {
        "version": VERSION,
        "data": fingerprint(images.images, np.packbits(images.masks), images.patients),
        "unit": asdict(unit),
        "recipe": recipe,
        "seed": settings.seed,
        "channels": settings.channels,
    }

    def missing() -> Arrays:
        raise InvalidInputError(
            f"{file}: must hold the predictions of a network that was trained on these data with "
            "these settings; train it first"
        )

    return kept_arrays(file, made_of, make or missing)

"""What the networks behind RECE Table 2 predict, and how surely: their outputs, kept small.

    python -m experiments.robust_ece.tops FOLDER OUT

writes OUT/tops-DATA.npz.xz of the networks of CIFAR-10 in FOLDER, those of the focal loss with and
without RCR: the predicted class, whether it is right, and its confidence to seven bits. Accuracy,
ECE, SCE and RECE-G follow from them; Brier and the temperature need all ten probabilities, which
are ten times as much.
"""

from __future__ import annotations

import argparse
import io
import lzma
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.robust_ece.judging import network_of
from experiments.robust_ece.runs import MORE_DATA, Run, load_runs
from raterwise.io.files import write_bytes_atomically

__all__ = ["LOSSES", "Tops", "keep", "load"]

LOSSES = ("focal", "focal+rcr")
LEVELS = 127


class Tops(NamedTuple):
    """The top label of every test image, by one network."""

    predicted: NDArray[np.int64]
    right: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    """Rounded to one of 128 levels from 0 to 1."""


def keep(folder: str | PathLike[str], target: str | PathLike[str]) -> list[Path]:
    """Write the top labels of the networks in a folder, a file per data set."""
    found: dict[str, dict[Run, tuple[NDArray[np.uint8], NDArray[np.uint8]]]] = {}
    for run, arrays in load_runs(folder):
        if run.loss in LOSSES and run.data in MORE_DATA and run.data.startswith("cifar10"):
            probs = network_of(arrays).probs
            predicted = probs.argmax(axis=1)
            said = 2 * predicted + (predicted == arrays["test_labels"])
            codes = np.rint(LEVELS * probs.max(axis=1)).astype(np.uint8)
            found.setdefault(run.data, {})[run] = said.astype(np.uint8), codes
    files = []
    for data, networks in found.items():
        # Image by image: what the networks say of one is alike, and so needs less room.
        said, codes = (np.stack([own[i] for own in networks.values()], axis=1) for i in (0, 1))
        buffer = io.BytesIO()
        names = np.array([run.name for run in networks])
        np.savez(buffer, names=names, said=said, codes=codes)
        files.append(Path(target) / f"tops-{data}.npz.xz")
        packed = lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)
        write_bytes_atomically(files[-1], packed)
    return files


def load(file: str | PathLike[str]) -> dict[str, Tops]:
    """Return the top labels by the name of the network, such as cifar10-1000-focal+rcr-1-0."""
    content = io.BytesIO(lzma.decompress(Path(file).read_bytes()))
    with np.load(content, allow_pickle=False) as kept:
        names, said, codes = (kept[key] for key in ("names", "said", "codes"))
    return {
        str(name): Tops(said[:, i] // 2, said[:, i] % 2 == 1, codes[:, i] / LEVELS)
        for i, name in enumerate(names)
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    keep(given.folder, given.out)

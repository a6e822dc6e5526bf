"""Files that commands write: tables in the format of another, and JSON; whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.cli.show import print_results
from quorate.errors import InvalidInputError
from quorate.io.files import check_can_write, write_text_atomically
from quorate.io.sources import file_format, open_table
from quorate.results import Results

__all__ = ["check_folder", "deliver", "metrics_as_csv", "write_json", "write_like"]

Columns = Mapping[str, NDArray[Any]]


METRIC_COLUMNS = (
    *("name", "title", "group", "value", "low", "high", "debiased"),
    *("direction", "dropped", "undefined"),
)
OPTIONAL_COLUMNS = ("std", "defined", "bound")
"""Columns of metrics of images, and of approximations."""


def deliver(results: Results, out: Path | None, csv_out: Path | None, *, quiet: bool) -> None:
    """Write results to the files that are wanted, and to the terminal."""
    if out is not None:
        results.to_json(out)
    if csv_out is not None:
        write_text_atomically(csv_out, metrics_as_csv(results))
    if not quiet:
        print_results(results)


def metrics_as_csv(results: Results) -> str:
    """Return one line per metric, with every digit; what a metric does not have stays empty."""
    extra = [
        name
        for name in OPTIONAL_COLUMNS
        if any(getattr(e, name) is not None for e in results.values())
    ]
    columns = {
        name: np.array([getattr(e, name) for e in results.values()], object)
        for name in (*METRIC_COLUMNS, *extra)
    }
    return _as_csv(columns, ",")


def check_folder(path: Path) -> Path:
    """Return a folder that is there, or that could be made; before the work and not after it."""
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"{path}: must be a folder to write into; it is a file")
    return path


def write_json(path: Path, content: Any) -> Path:
    """Write plain values as JSON."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return write_text_atomically(path, text + "\n")


def write_like(
    source: Path, folder: Path, stem: str, columns: Columns, arrays: Columns, delimiter: str | None
) -> Path:
    """Write columns into `folder` in the format of `source`; an NPZ file receives `arrays`."""
    kind = file_format(source)
    if kind == "csv":
        suffix = ".tsv" if ".tsv" in source.suffixes else ".csv"
        text = _as_csv(columns, open_table(source, delimiter=delimiter).delimiter)
        return write_text_atomically(folder / f"{stem}{suffix}", text)
    if kind == "npz":
        with_text = {key: _plain_text(array) for key, array in arrays.items()}
        return _written(folder / f"{stem}.npz", lambda part: _save_npz(part, with_text))
    return _written(
        folder / f"{stem}{source.suffix}", lambda part: _save_arrow(part, columns, kind)
    )


def _as_csv(columns: Columns, delimiter: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return text.getvalue()


def _plain_text(array: NDArray[Any]) -> NDArray[Any]:
    """Return text as NumPy's own; Python strings would be stored as a pickle."""
    return array.astype(np.str_) if array.dtype == object else array


def _save_npz(part: Path, arrays: Columns) -> None:
    with open(part, "xb") as stream:  # a name without .npz would be given one
        np.savez_compressed(stream, allow_pickle=False, **dict(arrays))


def _save_arrow(part: Path, columns: Columns, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if kind == "parquet":
        pyarrow.parquet.write_table(table, part)
    else:
        pyarrow.feather.write_feather(table, str(part), compression="uncompressed")


def _written(path: Path, write: Callable[[Path], None]) -> Path:
    """Let `write` make a file under a temporary name, then rename it."""
    target = check_can_write(path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        write(part)
        os.replace(part, target)
    except BaseException:  # Ctrl-C too must leave nothing behind
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    return target

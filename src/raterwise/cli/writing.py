"""Files that commands write: tables in the format of another, and JSON; whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from raterwise.cli.show import new_console, print_results
from raterwise.errors import InvalidInputError
from raterwise.io.files import check_can_write, replaced, write_text_atomically
from raterwise.io.outputs import refuse_overwriting
from raterwise.io.sources import file_format, open_table
from raterwise.results import Results

__all__ = [
    "announce",
    "check_folder",
    "check_json",
    "check_outputs",
    "deliver",
    "metrics_as_csv",
    "write_json",
    "write_like",
]

Columns = Mapping[str, NDArray[Any]]


METRIC_COLUMNS = (
    *("name", "title", "group", "value", "low", "high", "debiased"),
    *("direction", "dropped", "undefined"),
)
OPTIONAL_COLUMNS = ("std", "defined", "bound")
"""Columns of metrics of images, and of approximations."""


NOT_JSON = frozenset(
    (".arrow", ".csv", ".feather", ".htm", ".html", ".npz", ".parquet", ".pdf", ".tsv", ".txt")
)
"""Endings that promise another format; a name without one of its own is taken."""


def deliver(
    results: Results,
    out: Path | None,
    csv_out: Path | None,
    *,
    quiet: bool,
    written: Iterable[Path | None] = (),
) -> None:
    """Write results to the files that are wanted, and to the terminal; `written` are there."""
    if out is not None:
        results.to_json(out)
    if csv_out is not None:
        write_text_atomically(csv_out, metrics_as_csv(results))
    if not quiet:
        console = new_console()
        print_results(results, console)
        announce(console, (out, csv_out, *written))


def announce(console: Console, files: Iterable[Path | None]) -> None:
    """Say which files were written; without any, say nothing."""
    names = [str(file) for file in files if file is not None]
    if names:
        console.print(Text(f"Written: {', '.join(names)}"), soft_wrap=True)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuse files that could not be written, or should not be; before the work, not after it.

    `inputs` are all files, folders and patterns that the run reads.
    """
    files = [file for file in outputs if file is not None]
    for i, file in enumerate(files):
        check_can_write(file)
        if any(_same(file, other) for other in files[:i]):
            raise InvalidInputError(f"{file}: must be written once; two options name it")
    refuse_overwriting(files, inputs)


def _same(first: Path, second: Path) -> bool:
    return first.resolve() == second.resolve() or (
        first.exists() and second.exists() and first.samefile(second)
    )


def check_json(out: Path | None) -> None:
    """Refuse a name for JSON that promises another format."""
    if out is not None and out.suffix.lower() in NOT_JSON:
        page = out.suffix.lower() in (".htm", ".html")
        hint = "; raterwise report makes a page of it" if page else ""
        raise InvalidInputError(f"--out: is a JSON file and should end in .json; got {out}{hint}")


def metrics_as_csv(results: Results) -> str:
    """Return one line per metric, with every digit; what a metric does not have stays empty.

    Where there are findings, they follow the means, which have no finding.
    """
    parts = {"": results, **results.findings}
    rows = [(title, e) for title, part in parts.items() for e in part.values()]
    extra = [
        name for name in OPTIONAL_COLUMNS if any(getattr(e, name) is not None for _, e in rows)
    ]
    columns = {
        name: np.array([getattr(e, name) for _, e in rows], object)
        for name in (*METRIC_COLUMNS, *extra)
    }
    if results.findings:
        columns = {"finding": np.array([title for title, _ in rows], object), **columns}
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
    with replaced(target) as part:
        write(part)
    return target

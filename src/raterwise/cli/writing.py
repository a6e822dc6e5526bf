"""Files that commands write: tables in the format of another, and JSON; whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray
from rich.console import Console

from raterwise.cli import options
from raterwise.cli.show import new_console, print_results
from raterwise.compare.comparison import Comparison
from raterwise.errors import InvalidInputError
from raterwise.io.files import (
    check_can_write,
    refuse_overwriting,
    replaced,
    write_npz_atomically,
    write_text_atomically,
)
from raterwise.io.layouts import TableColumns
from raterwise.io.sources import file_format
from raterwise.progress_bar import ProgressBar
from raterwise.provenance import files_of, made, versions
from raterwise.results import Results, plain
from raterwise.results.exports import csv_text

Columns = Mapping[str, NDArray[Any]]

COMMAND_LINE: ContextVar[str] = ContextVar("command_line", default="")
"""What was typed."""


FORMATS = frozenset(
    (
        *(".arrow", ".csv", ".docx", ".feather", ".gz", ".htm", ".html", ".json", ".md", ".npz"),
        *(".ods", ".parquet", ".pdf", ".png", ".svg", ".tex", ".tsv", ".txt", ".xls", ".xlsx"),
        ".zip",
    )
)
"""Endings that promise a format; a name with an ending of its own is taken."""
CSV_ENDINGS = (".csv", ".txt")
MARKDOWN_ENDINGS = (".md", ".txt")


def with_notes(results: Results, notes: Sequence[str]) -> Results:
    """Return the results with what the reader of their file noticed before their own warnings."""
    return replace(results, warnings=(*notes, *results.warnings)) if notes else results


@dataclass(frozen=True)
class Pages:
    """The files of a command that writes JSON and a page, and whether it prints."""

    out: options.Out = None
    html: options.HtmlOut = None
    quiet: options.Quiet = False

    @property
    def paths(self) -> tuple[Path | None, ...]:
        """The files, where they are wanted."""
        return self.out, self.html

    def check(self, inputs: Iterable[Path | None], *others: Path | None) -> None:
        """Refuse names that promise another format, and files that should not be written."""
        page = self.out is not None and self.out.suffix.lower() in (".htm", ".html")
        hint = "; --html writes a page, raterwise report makes one of the JSON" if page else ""
        check_ending("--out", self.out, "JSON", ".json", hint=hint)
        check_html(self.html)
        check_outputs((*self.paths, *others), inputs)

    def progress(self) -> ProgressBar:
        """Return the bar that somebody who waits is shown."""
        return ProgressBar(shown=not self.quiet)


@dataclass(frozen=True)
class Files(Pages):
    """The files of a command that writes a table, too."""

    csv_out: options.CsvOut = None

    @property
    def paths(self) -> tuple[Path | None, ...]:
        """The files, where they are wanted."""
        return self.out, self.csv_out, self.html

    def check(self, inputs: Iterable[Path | None], *others: Path | None) -> None:
        """Refuse the same of the table."""
        super().check(inputs, *others)
        check_ending("--csv", self.csv_out, "CSV", *CSV_ENDINGS)

    def deliver(
        self, results: Results, inputs: Iterable[Path | None], *written: Path | None
    ) -> None:
        """Write results to the files that are wanted, and to the terminal; `written` are there.

        The files say which command made them of which `inputs`.
        """
        if self.out is not None or self.html is not None:
            results = with_origin(results, inputs)
        if self.out is not None:
            results.to_json(self.out)
        if self.csv_out is not None:
            results.to_csv(self.csv_out)
        if self.html is not None:
            results.to_html(self.html)
        if not self.quiet:
            console = new_console()
            print_results(results, console)
            announce(console, (*self.paths, *written))


Made = TypeVar("Made", Results, Comparison)


def with_origin(results: Made, inputs: Iterable[Path | None]) -> Made:
    """Return results, or a comparison, that name the command and the files that it read."""
    command = COMMAND_LINE.get()
    origin = {**results.provenance, "inputs": files_of(inputs)}
    return replace(results, provenance=origin | ({"call": command} if command else {}))


def origin_of(inputs: Iterable[Path | None]) -> dict[str, Any]:
    """Return what any JSON says of its making: the command, its files, the versions."""
    return {
        "provenance": made(COMMAND_LINE.get(), inputs=files_of(inputs)),
        "versions": versions(),
    }


def announce(console: Console, files: Iterable[Path | None]) -> None:
    """Say which files were written; without any, say nothing."""
    names = [str(file) for file in files if file is not None]
    if names:
        console.print(f"Written: {', '.join(names)}", soft_wrap=True)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuse files that could not be written, or should not be; before the work, not after it.

    `inputs` are all files, folders and patterns that the run reads.
    """
    files = [file for file in outputs if file is not None]
    for i, file in enumerate(files):
        check_can_write(file)
        if any(same_file(file, other) for other in files[:i]):
            raise InvalidInputError(f"{file}: must be written once; two options name it")
    refuse_overwriting(files, inputs)


def same_file(first: Path, second: Path) -> bool:
    """Tell whether two paths are of one file, whether it is there or not."""
    return first.resolve() == second.resolve() or (
        first.exists() and second.exists() and first.samefile(second)
    )


def check_ending(option: str, file: Path | None, kind: str, *endings: str, hint: str = "") -> None:
    """Refuse a name that promises another format than the file will have."""
    if file is not None and file.suffix.lower() in FORMATS - {*endings}:
        raise InvalidInputError(
            f"{option}: is a {kind} file and should end in {endings[0]}; got {file}{hint}"
        )


def check_html(html: Path | None) -> None:
    """Refuse a name for a page that browsers would not open."""
    if html is not None and html.suffix.lower() not in (".htm", ".html"):
        raise InvalidInputError(f"--html: must end in .html, for browsers to open it; got {html}")


def check_folder(path: Path) -> Path:
    """Return a folder that is there, or that could be made; before the work and not after it."""
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"{path}: must be a folder to write into; it is a file")
    if path.suffix.lower() in FORMATS and not path.is_dir():
        raise InvalidInputError(
            f"{path}: must be a folder to write into; its name is that of a file"
        )
    return path


def write_json(path: Path, content: Any) -> Path:
    """Write plain values as JSON."""
    text = json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False)
    return write_text_atomically(path, text + "\n")


def write_like(
    source: Path, folder: Path, stem: str, columns: Columns, arrays: Columns, told: TableColumns
) -> Path:
    """Write columns into `folder` in the format of `source`; an NPZ file receives `arrays`."""
    kind = file_format(source)
    if kind in ("csv", "excel"):
        suffix = ".tsv" if ".tsv" in source.suffixes else ".csv"
        mark = told.open(source).delimiter if kind == "csv" else ","
        text = csv_text({name: column.tolist() for name, column in columns.items()}, mark)
        return write_text_atomically(folder / f"{stem}{suffix}", text)
    if kind == "npz":
        return write_npz_atomically(folder / f"{stem}.npz", arrays)
    target = check_can_write(folder / f"{stem}{source.suffix}")
    with replaced(target) as part:
        _save_arrow(part, columns, kind)
    return target


def _save_arrow(part: Path, columns: Columns, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if kind == "parquet":
        pyarrow.parquet.write_table(table, part)
    else:
        pyarrow.feather.write_feather(table, str(part), compression="uncompressed")

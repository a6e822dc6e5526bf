"""Parts of tables larger than memory: Parquet row groups and Zarr chunks, each read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.errors import InvalidInputError
from raterwise.io.damaged import check_fits
from raterwise.io.image_files import imaging_module
from raterwise.io.layouts import TableColumns, columns_beside
from raterwise.io.numbers import (
    LEAST_PERCENT,
    as_numbers,
    as_weights,
    as_whole_numbers,
    has_signs,
    refuse_fractions,
)
from raterwise.io.probabilities import (
    check_probabilities,
    class_names_of,
    normalized,
    probability_columns,
)
from raterwise.io.ratings import Coding
from raterwise.io.sources import (
    FORMATS,
    TO_PARQUET,
    TableFile,
    existing_file,
    matching_files,
)
from raterwise.io.values import as_ids
from raterwise.labels import Labels
from raterwise.labels.misread import IN_ORDER_OF_CODES, code_notes, one_hot_notes
from raterwise.predictions import Predictions
from raterwise.rules import listed
from raterwise.subgroups.variables import Variable, variables_of
from raterwise.types import OnUnrated

ZARR_ROWS = 1 << 18
"""At least how many rows of a Zarr store are read together."""
MOST_ROWS_A_BYTE = 1 << 14
"""Of a Zarr store: constant columns compress well, but not endlessly."""

STREAMED = (
    *("prob_prefix", "prob_columns", "class_names", "label_column", "group_column"),
    *("weight_column", "rater_columns", "rater_prefix", "count_columns", "count_prefix"),
    *("missing", "normalize", "percent", "ignore_case"),
)
"""What a stream may be told, of all `TableColumns`."""


@dataclass(frozen=True)
class StreamColumns:
    """Which columns of a table, or arrays of a Zarr store, are what."""

    probs: tuple[str, ...]
    """One per class; one alone is the probability of the second of two classes."""
    class_names: tuple[str, ...]
    label: str | None = None
    raters: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    group: str | None = None
    weight: str | None = None
    missing: tuple[str, ...] = ()
    subgroups: tuple[str, ...] = ()
    """What tells cases apart."""
    confidence: str | None = None
    normalize: bool = False
    percent: bool = False
    ignore_case: bool = False

    @staticmethod
    def of(
        columns: Sequence[str],
        *,
        subgroups: Sequence[str] = (),
        confidence_column: str | None = None,
        source: str = "the files",
        **options: Any,
    ) -> StreamColumns:
        """Return the columns by the names and prefixes, STREAMED, that `raterwise evaluate` takes.

        `source` is what messages call the files that have these `columns`.
        """
        told = TableColumns(**options)
        file = TableFile(Path(source), "parquet", tuple(columns))
        probs = tuple(probability_columns(file, told.prob_prefix, told.prob_columns))
        names = class_names_of(probs, told.prob_prefix, told.class_names, exclusive=True)
        layout: str | None = None
        held: list[str] = []
        if told.label_column is None or told.ratings_named:
            layout, held = columns_beside(file, told, names)
        given = (told.label_column is not None) + (layout is not None)
        if given != 1:
            raise InvalidInputError(
                "label_column, rater_columns or count_columns: a stream needs the labels in the "
                f"same file as the probabilities, given by one of them; got {given}"
            )
        single = ("label_column", "group_column", "weight_column")
        named = {argument: getattr(told, argument) for argument in single}
        for argument, name in {**named, "confidence_column": confidence_column}.items():
            if name is not None:
                file.require(name, argument)
        for name in subgroups:
            file.require(name, "subgroups")
        raters, counts = (tuple(held) if layout == of else () for of in ("wide", "counts"))
        return StreamColumns(
            probs, names, told.label_column, raters, counts, told.group_column, told.weight_column,
            tuple(told.missing), tuple(subgroups), confidence_column,
            told.normalize, told.percent, told.ignore_case,
        )  # fmt: skip

    @property
    def coding(self) -> Coding:
        """How ratings become classes."""
        return Coding(self.class_names, self.missing, self.ignore_case)

    @property
    def coded(self) -> tuple[str, ...]:
        """The columns that hold classes: of one label, or of each rater."""
        return (self.label,) if self.label is not None else self.raters

    @property
    def needed(self) -> list[str]:
        """Every column that is read."""
        single = self.label, self.group, self.weight, self.confidence
        names = [*self.probs, *self.raters, *self.counts, *self.subgroups, *single]
        return list(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True)
class Part:
    """Rows first … first + rows - 1 of a whole that may be in several files."""

    path: str
    group: int
    """The row group of a Parquet file; the first row of a Zarr store."""
    first: int
    rows: int

    @property
    def name(self) -> str:
        """What messages call it."""
        what = "rows from" if self.path.endswith(".zarr") else "row group"
        return f"{Path(self.path).name}, {what} {self.group}"

    def column(self, name: str) -> str:
        """Return what messages call one of its columns."""
        return f"{self.name}, column {name!r}"


def parts_of(paths: Sequence[str | PathLike[str]]) -> tuple[list[Part], list[str]]:
    """Return the parts of Parquet files or Zarr stores, and the names of their columns."""
    files = matching_files(paths)
    parts: list[Part] = []
    known: list[str] | None = None
    first = 0
    for file in files:
        groups, columns = _zarr_parts(file) if file.suffix == ".zarr" else _parquet_parts(file)
        if known is not None and columns != known:
            raise InvalidInputError(
                f"{files[0].name} and {file.name}: must have the same columns; got "
                f"{listed(known)} and {listed(columns)}"
            )
        known = columns
        for group, rows in groups:
            if rows:
                parts.append(Part(str(file.absolute()), group, first, rows))
                first += rows
    if not parts or known is None:
        raise InvalidInputError("files: must hold at least one case; got none")
    return parts, known


def _parquet_parts(file: Path) -> tuple[list[tuple[int, int]], list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.is_dir():
        raise InvalidInputError(
            f"{file}: a stream is read from files or Zarr stores; it is a folder, so give a "
            f"pattern of the files in it: {file / '*.parquet'}"
        )
    existing_file(file)
    if file.suffix == ".gz" or FORMATS.get(file.suffix.lower(), "parquet") != "parquet":
        # What a column of text means (decimal commas, codes or names) is decided by all of it.
        raise InvalidInputError(
            f"{file.name}: a stream is read from Parquet or Zarr. Of several files, {TO_PARQUET}; "
            "one that fits into memory is evaluated without a stream"
        )
    try:
        with pq.ParquetFile(file) as table:
            meta = table.metadata
            groups = [(g, meta.row_group(g).num_rows) for g in range(meta.num_row_groups)]
            return groups, list(table.schema_arrow.names)
    except (pa.lib.ArrowException, OSError) as error:
        raise InvalidInputError(f"{file.name}: cannot be read as Parquet; {error}") from error


def _zarr_group(file: Path) -> Any:
    zarr = imaging_module("zarr")
    if not file.is_dir():
        raise InvalidInputError(f"{file}: there is no such Zarr store")
    try:
        group = zarr.open(file, mode="r")
    except Exception as error:  # zarr and its codecs raise errors of many kinds
        raise InvalidInputError(f"{file.name}: cannot be read as Zarr; {error}") from error
    if not isinstance(group, zarr.Group):
        raise InvalidInputError(f"{file.name}: must be a Zarr group with arrays, one per column")
    return group


def _zarr_parts(file: Path) -> tuple[list[tuple[int, int]], list[str]]:
    group = _zarr_group(file)
    try:
        arrays = dict(group.arrays())
    except Exception as error:  # of each array, its own metadata is read only now
        raise InvalidInputError(f"{file.name}: cannot be read as Zarr; {error}") from error
    shapes = {name: array.shape for name, array in arrays.items() if array.ndim != 1}
    if shapes:
        name, shape = next(iter(shapes.items()))
        raise InvalidInputError(
            f"{file.name}: its arrays must be columns, with one dimension; {name!r} is {shape}"
        )
    lengths = {array.shape[0] for array in arrays.values()}
    if len(lengths) != 1:
        raise InvalidInputError(
            f"{file.name}: its arrays must have one length; got {sorted(lengths) or 'none'}"
        )
    rows = lengths.pop()
    held = sum(one.stat().st_size for one in file.rglob("*") if one.is_file())
    if rows > MOST_ROWS_A_BYTE * held:  # chunks that are not there stand for numbers that are
        raise InvalidInputError(
            f"{file.name}: promises {rows:,} rows in {held:,} bytes; it is damaged, or no table"
        )
    chunk = max(array.chunks[0] for array in arrays.values())
    step = chunk * max(1, -(-ZARR_ROWS // chunk))
    check_fits(step * sum(array.dtype.itemsize for array in arrays.values()), file.name)
    return [(i, min(step, rows - i)) for i in range(0, rows, step)], sorted(arrays)


def _columns_of(part: Part, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a part, as Arrow arrays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = Path(part.path)
    if file.suffix == ".zarr":
        group = _zarr_group(file)
        rows = slice(part.group, part.group + part.rows)
        return {name: pa.chunked_array([_zarr_column(group, name, rows, part)]) for name in names}
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as source:
            table = source.read_row_group(part.group, columns=list(names), use_threads=False)
    except (pa.lib.ArrowException, OSError) as error:
        raise InvalidInputError(f"{part.name}: cannot be read; {error}") from error
    return {name: table.column(name) for name in names}


def _zarr_column(group: Any, name: str, rows: slice, part: Part) -> Any:
    import pyarrow as pa

    try:
        return pa.array(group[name][rows])
    except Exception as error:  # zarr's codecs raise errors of many kinds on damaged chunks
        raise InvalidInputError(f"{part.name}: {name!r} cannot be read; {error}") from error


def read_part(
    part: Part, columns: StreamColumns, on_unrated: OnUnrated, by_rater: bool = False
) -> tuple[Predictions, Any, tuple[Variable, ...]]:
    """Return the predictions of a part, the patients of its cases, and what tells these apart.

    There are no patients (None) where they are not known. `by_rater` keeps who said what, which
    takes memory.
    """
    held = _columns_of(part, columns.needed)
    probs = _probabilities(held, columns, part)
    labels = _labels(held, columns, part, by_rater)
    weights = groups = None
    if columns.weight is not None:
        weights = as_weights(held[columns.weight], part.column(columns.weight))
    if columns.group is not None:
        groups = as_ids(held[columns.group], part.column(columns.group))
    unrated, weightless = _left_out(labels, weights)
    if on_unrated == "error" and unrated.any():
        first = rules.first_cases((row + 1 for row in np.flatnonzero(unrated)), "rows")
        raise rules.unrated("labels", int(unrated.sum()), part.rows, first)
    if (unrated | weightless).all():  # of this part; others may hold cases that count
        whole = _no_cases(probs, labels, by_rater)
        dropped = {"weight 0": int(weightless.sum()), "unrated": int(unrated.sum())}
        whole = replace(whole, dropped={reason: n for reason, n in dropped.items() if n})
    else:
        whole = Predictions.of(probs, labels, weights=weights, groups=groups, on_unrated=on_unrated)
    if columns.confidence is not None:
        where = part.column(columns.confidence)
        confidence = as_numbers(held[columns.confidence], where, gaps=True)
        check_in_cells(confidence, where, whole.kept)
        counted = confidence if whole.kept is None else confidence[whole.kept]
        whole = replace(whole, confidence=counted.astype(np.float64))
    told = {name: held[name].to_pylist() for name in columns.subgroups}
    variables = variables_of(told, part.rows) if told else ()
    return whole, groups, tuple(variable.take(whole.kept) for variable in variables)


def _left_out(labels: Labels, weights: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which cases nobody rated, and which have no weight, whether rated or not."""
    none = np.zeros(len(labels), np.bool_)
    weightless = none if weights is None else weights == 0
    unrated = none if labels.classes is not None else labels.num_raters == 0
    return unrated & ~weightless, weightless


def _no_cases(probs: Any, labels: Labels, by_rater: bool) -> Predictions:
    """Return predictions of the kinds of a part without any of its cases."""
    classes, names = labels.num_classes, labels.class_names
    if labels.ratings is not None and by_rater:
        everybody = np.zeros((1, len(labels.ratings.rater_ids)), int)
        one = Labels.from_ratings(everybody, classes, class_names=names)
    else:
        one = Labels.from_counts(np.eye(1, classes, dtype=int), class_names=names)
    even = np.full((1, *probs.shape[1:]), 1 / classes, probs.dtype)
    return Predictions.of(even, one).take(np.empty(0, int))


def _labels(held: Mapping[str, Any], columns: StreamColumns, part: Part, by_rater: bool) -> Labels:
    """Return what the raters said; `by_rater` keeps who said what."""
    names = columns.class_names
    if columns.counts:
        counts = [as_whole_numbers(held[name], part.column(name)) for name in columns.counts]
        return Labels.from_counts(np.stack(counts, axis=1), class_names=names)
    codes = [columns.coding.codes(held[name], part.column(name)) for name in columns.coded]
    if len(codes) == 1 and (codes[0] >= 0).all() and not by_rater:
        return Labels.from_classes(codes[0], num_classes=len(names), class_names=names)
    matrix = np.stack(codes, axis=1)
    labels = Labels.from_ratings(matrix, num_classes=len(names), class_names=names)
    one_hot_notes(labels)  # which refuses what can only be classes
    ratings = labels.ratings if by_rater else None
    if ratings is not None:
        ratings = replace(ratings, rater_ids=columns.coded)
    return replace(labels, ratings=ratings)


def notes_on_labels(
    parts: Sequence[Part], columns: StreamColumns, *, in_order: bool
) -> tuple[str, ...]:
    """Return what labels may be besides what they are taken for, as of tables in memory.

    `in_order` says that somebody told the order of the classes. Of more than the first part
    nothing is read but where all that was read is doubtful.
    """
    notes: tuple[str, ...] = ()
    if (
        columns.coded
        and not in_order
        and (doubt := code_notes(columns.class_names, IN_ORDER_OF_CODES))
    ):
        held = _columns_of(parts[0], columns.coded)
        notes = doubt if columns.coding.takes_codes(list(held.values())) else ()
    if len(columns.raters) != len(columns.class_names):
        return notes
    told: tuple[str, ...] = ()
    for part in parts:
        labels = _labels(_columns_of(part, columns.raters), columns, part, by_rater=True)
        if not (told := one_hot_notes(labels)):
            break
    return (*notes, *told)


def refuse_stream_of_fractions(parts: Sequence[Part], columns: StreamColumns) -> None:
    """Refuse `percent` where no part has a percentage above 1; most often the first one has."""
    largest: list[Any] = []
    for part in parts:
        held = _columns_of(part, columns.probs)
        probs = _probabilities(held, columns, part)
        largest.append(np.fmax.reduce(probs, axis=None, initial=0.0))  # NaN where no case counts
        if largest[-1] > LEAST_PERCENT or any(map(has_signs, held.values())):
            return
    name = Path(parts[0].path).name + (" and the others" if len(parts) > 1 else "")
    refuse_fractions((), np.array(largest), name)


def _probabilities(held: Mapping[str, Any], columns: StreamColumns, part: Part) -> Any:
    """Return the probabilities (N, K), or (N,) of one column, as a table in memory has them.

    What is empty is NaN, as there: cases of weight 0 are not there, whatever their values.
    """
    values = [
        as_numbers(held[name], part.column(name), percent=columns.percent, gaps=True)
        for name in columns.probs
    ]
    probs = values[0] if len(values) == 1 else np.stack(values, axis=1)
    return normalized(probs) if columns.normalize else probs


def check_part(part: Part, columns: StreamColumns, kept: Any) -> None:
    """Refuse what is not a probability by its column and row, which only the file knows.

    Whoever sums the cases checks them all, once; this says what is wrong where something is. `kept`
    are the rows that count, None for all of them.
    """
    probs = _probabilities(_columns_of(part, columns.probs), columns, part)
    counted = probs if kept is None else probs[kept]
    check_probabilities(counted, part.name, columns.probs, None, exclusive=True, rows=kept)


def check_in_cells(confidence: Any, where: str, kept: Any = None) -> None:
    """Refuse confidences beyond [0, 1], for which a stream has no cells, in the rows that count."""
    beyond = ~((confidence >= 0) & (confidence <= 1))
    rows = np.flatnonzero(beyond) if kept is None else kept[beyond[kept]]
    if len(rows):
        row = int(rows[0])
        raise InvalidInputError(
            f"{where}: confidences of a stream must lie in [0, 1]; data row {row + 1} has "
            f"{confidence[row]:g} (rescaling them does not change their order)"
        )

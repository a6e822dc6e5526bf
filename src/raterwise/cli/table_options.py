"""The options that say which column of which table is what; the same in every command."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from raterwise.cli.options import COLUMNS, EVALUATION, RATINGS, in_panel
from raterwise.cli.parsing import comma_list
from raterwise.io.layouts import TableColumns
from raterwise.labels.duplicates import Duplicates
from raterwise.types import OnUnrated

LISTS = ("prob_columns", "class_names", "missing", "rater_columns", "count_columns")
"""Options that hold several values, a,b,c."""


@dataclass(frozen=True)
class ColumnOptions:
    """Where a table has the predictions, and how they are read."""

    id_column: Annotated[
        str | None, in_panel(COLUMNS, "Column with the case id, in both files. Default: case.")
    ] = None
    prob_prefix: Annotated[
        str, in_panel(COLUMNS, "Prefix of the probability columns; the class name follows it.")
    ] = "prob_"
    prob_columns: Annotated[
        str | None,
        in_panel(
            COLUMNS, "Or the column names: a,b,c. A single one is for the second of two classes."
        ),
    ] = None
    class_names: Annotated[
        str | None, in_panel(COLUMNS, "Names of the classes, in the order of the columns: a,b,c.")
    ] = None
    label_column: Annotated[
        str | None, in_panel(COLUMNS, "Column with the label, if each case has one.")
    ] = None
    group_column: Annotated[
        str | None, in_panel(COLUMNS, "Column with the patient. Resampling draws whole patients.")
    ] = None
    weight_column: Annotated[
        str | None, in_panel(COLUMNS, "Column with the weight of each case.")
    ] = None
    delimiter: Annotated[
        str | None, in_panel(COLUMNS, "Separator of a CSV file. Default: detected.")
    ] = None
    encoding: Annotated[
        str | None,
        in_panel(COLUMNS, "Encoding of a CSV file, such as cp1252. Default: UTF-8 or UTF-16."),
    ] = None
    normalize: Annotated[
        bool,
        in_panel(
            COLUMNS, "The probabilities are rounded: divide each row by its sum.", "--normalize"
        ),
    ] = False
    percent: Annotated[
        bool,
        in_panel(COLUMNS, "The probabilities are percentages: 75 or 75% means 0.75.", "--percent"),
    ] = False


@dataclass(frozen=True)
class RatingOptions:
    """Where a table has the ratings, and how they are read."""

    ratings_layout: Annotated[
        Literal["wide", "long", "counts"] | None,
        in_panel(
            RATINGS,
            "wide: a column per rater. long: a row per rating. counts: a count per class. Default: "
            "detected, if the column names leave no doubt.",
        ),
    ] = None
    rater_columns: Annotated[
        str | None, in_panel(RATINGS, "wide: columns of the raters, a,b,c.")
    ] = None
    rater_prefix: Annotated[
        str | None, in_panel(RATINGS, "wide: prefix of those columns. Default: reader_ or rater_.")
    ] = None
    rater_column: Annotated[
        str | None, in_panel(RATINGS, "long: column with the rater. Default: reader or rater.")
    ] = None
    rating_column: Annotated[
        str | None, in_panel(RATINGS, "long: column with the label. Default: label or rating.")
    ] = None
    count_columns: Annotated[
        str | None, in_panel(RATINGS, "counts: one column per class, in order.")
    ] = None
    count_prefix: Annotated[
        str | None, in_panel(RATINGS, "counts: prefix of those columns. Default: count_.")
    ] = None
    missing: Annotated[
        str | None,
        in_panel(RATINGS, "Values that mean no rating, such as NA,-1; an empty cell always does."),
    ] = None
    ignore_case: Annotated[
        bool, in_panel(RATINGS, "Treat Benign and BENIGN as the class benign.", "--ignore-case")
    ] = False
    duplicates: Annotated[
        Duplicates,
        in_panel(
            RATINGS,
            "long: if a rater rated a case more than once: refuse, keep all ratings, take the most "
            "frequent one or the last.",
        ),
    ] = "error"


@dataclass(frozen=True)
class TableOptions(RatingOptions, ColumnOptions):
    """Where tables have the predictions and the ratings, and how they are joined."""

    ratings_id_column: Annotated[
        str | None, in_panel(RATINGS, "Column with the case id in this file, if its name differs.")
    ] = None
    allow_unmatched: Annotated[
        bool,
        in_panel(
            RATINGS, "Leave out and count cases that are in one file only.", "--allow-unmatched"
        ),
    ] = False
    loose_ids: Annotated[
        bool,
        in_panel(
            RATINGS,
            "Ids may differ in capitals, zeros, folder, ending: IMG_001.PNG is img-1.",
            "--loose-ids",
        ),
    ] = False
    on_unrated: Annotated[
        OnUnrated, in_panel(EVALUATION, "What to do with a case that nobody rated.")
    ] = "error"

    @property
    def told(self) -> TableColumns:
        """The same for the reader of the library."""
        return table_columns(**{f.name: getattr(self, f.name) for f in fields(TableColumns)})


def table_columns(**given: Any) -> TableColumns:
    """Return options as the reader of the library takes them: a,b,c is a list there."""
    lists = {name: comma_list(given.get(name)) for name in LISTS}
    return TableColumns(**{**given, **lists, "class_names": lists["class_names"] or None})

"""`raterwise agreement`: how far the readers agree with one another, without any model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from raterwise.cli import options
from raterwise.cli.options import RATINGS, in_panel
from raterwise.cli.show import (
    interval,
    new_console,
    number,
    p_value,
    plain_table,
    print_table,
    print_warnings,
)
from raterwise.cli.table_options import RatingOptions, table_columns
from raterwise.cli.writing import Pages, announce, origin_of, write_json
from raterwise.inference.settings import Settings
from raterwise.io.files import write_text_atomically
from raterwise.io.ratings import RatedTable, read_rated
from raterwise.rater_agreement import RaterAgreement, rater_agreement
from raterwise.report.pages import agreement_page
from raterwise.report.words import counted_in_words, natural

EXAMPLES = """[bold]Examples[/bold]

[dim]# one row per (case, reader, label); whole patients are resampled[/dim]
raterwise agreement ratings.csv --group-column patient

[dim]# one column per reader; the order of the classes, for the ordinal α[/dim]
raterwise agreement reads.csv --id-column nodule --rater-columns smith,jones,lee \\
    --class-names absent,mild,severe

[dim]# also: would other readers agree as much?[/dim]
raterwise agreement ratings.csv --unit both --out agreement.json --html agreement.html

[bold]How to read it[/bold]

κ and α are 1 if raters always agree, and 0 if they agree as often as by
chance; below 0 they agree less often. Nominal: classes are equal or not.
Ordinal and interval: a miss by one step is better than a miss by three.
The test of exchangeability asks whether some rater chooses a class more
often than the other raters of the same cases do; the table of raters says
who does, and by how much."""

SCHEMA_VERSION = 1
TITLES = {
    "fleiss_kappa": "Fleiss' κ",
    "krippendorff_alpha_nominal": "Krippendorff's α, nominal",
    "krippendorff_alpha_ordinal": "Krippendorff's α, ordinal",
    "krippendorff_alpha_interval": "Krippendorff's α, interval",
}
SCALES: dict[str, tuple[Any, ...]] = {
    "nominal": ("nominal",),
    "ordinal": ("nominal", "ordinal"),
    "interval": ("nominal", "ordinal", "interval"),
}
MOST_CLASSES = 6
"""Up to how many classes the table of raters has a column for each."""

RatingsTable = Annotated[
    Path, typer.Argument(help="CSV, Excel, Parquet or Arrow file of ratings; no model is needed.")
]
# Elsewhere these stand among the columns of predictions, of which there are none here.
CaseColumn = Annotated[str | None, in_panel(RATINGS, "The column of the case. Default: case.")]
Classes = Annotated[
    str | None,
    in_panel(
        RATINGS,
        "All classes in order, a,b,c; needed for scales and for classes that nobody used. "
        "Default: those in the file; whole numbers are steps of a scale.",
    ),
]
GroupColumn = Annotated[
    str | None, in_panel(RATINGS, "Column with the patient. Resampling draws whole patients.")
]
Delimiter = Annotated[str | None, in_panel(RATINGS, "Separator of a CSV file. Default: detected.")]
Encoding = Annotated[
    str | None,
    in_panel(RATINGS, "Encoding of a CSV file, such as cp1252. Default: UTF-8 or UTF-16."),
]


@options.with_options
def agreement(
    columns: RatingOptions,
    files: Pages,
    ratings: RatingsTable,
    id_column: CaseColumn = None,
    class_names: Classes = None,
    group_column: GroupColumn = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    resamples: options.Resamples = 1000,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    unit: options.UnitDrawn = "cases",
) -> None:
    """Say how far raters agree with one another, and who says what more often.

    Kappa and Krippendorff's alpha with intervals, a test whether the raters
    are interchangeable, and each rater's tendencies. No model is needed. An
    empty cell is no rating; raters need not have rated every case.
    """
    files.check((ratings,))
    asked: dict[str, Any] = {
        "resamples": resamples,
        "level": level,
        "seed": seed,
        "unit": unit,
    }
    Settings(**asked)  # which says at once what cannot be
    with files.progress() as report:
        report(f"reading {ratings.name}", 0.0)
        told = table_columns(
            **vars(columns), class_names=class_names, id_column=id_column,
            group_column=group_column, delimiter=delimiter, encoding=encoding,
        )  # fmt: skip
        table = read_rated(ratings, told)
        report("resampling", 0.2)
        found = rater_agreement(
            table.ratings.labels, table.groups, scales=SCALES[table.scale], **asked
        )
    if files.out is not None:
        write_json(files.out, _content(table, found, ratings, asked))
    if files.html is not None:
        text = agreement_page(
            found,
            TITLES,
            table.class_names,
            basis=_facts(table, found),
            incomparable=None if found.test is not None else _exchangeable(found),
            notes=(*_left_out(found), *table.ratings.notes, *found.warnings),
            origin=origin_of([ratings]),
        )
        write_text_atomically(files.html, text)
    if not files.quiet:
        console = new_console()
        _show(console, table, found)
        announce(console, files.paths)


def _content(
    table: RatedTable, found: RaterAgreement, file: Path, asked: dict[str, Any]
) -> dict[str, Any]:
    """Return what the JSON holds, under the names that results have."""
    content = found.to_dict()
    content["data"] |= {"classes": len(table.class_names), "dropped": {"single": found.single}}
    return {
        "schema_version": SCHEMA_VERSION,
        "file": file.name,
        "class_names": list(table.class_names),
        **content,
        "warnings": [*table.ratings.notes, *found.warnings],
        "options": asked,
        **origin_of([file]),
    }


def _facts(table: RatedTable, found: RaterAgreement) -> str:
    raters = f", {len(found.raters)} raters" if found.raters else ""
    of = "" if found.patients is None else f" of {found.patients:,} patients"
    return (
        f"{found.cases:,} cases{of}{raters}, {found.ratings:,} ratings, {len(table.class_names)} "
        "classes"
    )


def _show(console: Console, table: RatedTable, found: RaterAgreement) -> None:
    console.print(f"{table.ratings.source}: {_facts(table, found)}", style="bold")
    shown = plain_table("agreement", "value")
    shown.add_column(f"{100 * found.level:g}% interval", no_wrap=True)
    for name, estimate in found.estimates.items():
        value = "undefined" if estimate.value is None else number(estimate.value)
        shown.add_row(TITLES[name], value, interval(estimate))
    print_table(shown, console)
    for reason in dict.fromkeys(e.undefined for e in found.estimates.values() if e.undefined):
        console.print(f"undefined: {reason}", style="yellow")
    if table.scale == "nominal" and len(table.class_names) > 2:  # of two, all α are the same
        console.print("The classes have no known order: --class-names a,b,c adds the ordinal α.")
    for line in _left_out(found):
        console.print(f"{line}.")
    print_warnings((*table.ratings.notes, *found.warnings), console)
    console.print(_exchangeable(found))
    if found.raters:
        print_table(_raters_table(table, found), console)


def _left_out(found: RaterAgreement) -> tuple[str, ...]:
    if not found.single:
        return ()
    return (f"Left out: {counted_in_words(found.single, 'case')} with fewer than two ratings",)


def _exchangeable(found: RaterAgreement) -> str:
    if found.test is not None:
        return found.test.summary()
    if not found.raters:
        return "The file does not name the raters, so they cannot be compared."
    return "Too few raters share a case to test whether they are interchangeable."


def _raters_table(table: RatedTable, found: RaterAgreement) -> Any:
    """Return a line per rater: what they say, and how often another one says it too."""
    names = table.class_names
    columns = names if len(names) <= MOST_CLASSES else ()
    shown = plain_table("rater", "ratings", "agree", *columns, "differs most on", "", "p")
    for one in sorted(found.raters, key=lambda rater: natural(rater.rater)):
        agree = "" if one.agreement is None else f"{one.agreement:.1%}"
        most, by = "", ""
        if one.largest is not None:
            most, by = one.largest[0], f"{100 * one.largest[1]:+.1f} points"
        p = "" if one.adjusted_p_value is None else p_value(one.adjusted_p_value)
        cells = [str(one.rater), f"{one.ratings:,}", agree]
        cells += [f"{one.shares[name]:.1%}" for name in columns]
        shown.add_row(*cells, most, by, p)
    return shown

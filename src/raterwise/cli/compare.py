"""`raterwise compare`: several models on the same cases, with paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from raterwise.cli import model_options, options
from raterwise.cli.findings import (
    arrays_of_findings,
    read_findings,
    refuse_finding_column,
    with_what_was_read,
)
from raterwise.cli.models import Draws, read_models, same_rows
from raterwise.cli.options import OUTPUT, Asked, Drawn, InUse, in_panel, with_options
from raterwise.cli.parsing import comma_list
from raterwise.cli.reading import heard_warnings
from raterwise.cli.show import (
    comparison_table,
    new_console,
    number,
    p_value,
    plain_table,
    print_notes,
    print_table,
    print_warnings,
)
from raterwise.cli.show_findings import print_differences
from raterwise.cli.table_options import TableOptions
from raterwise.cli.writing import (
    CSV_ENDINGS,
    MARKDOWN_ENDINGS,
    announce,
    check_ending,
    check_html,
    check_outputs,
    with_notes,
    with_origin,
    write_json,
)
from raterwise.compare import Comparison
from raterwise.compare import compare as compared
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import within
from raterwise.io.damaged import making_sense
from raterwise.io.files import write_text_atomically
from raterwise.io.findings import Findings
from raterwise.multilabel.evaluation import evaluate_multilabel
from raterwise.progress_bar import ProgressBar
from raterwise.report import as_csv, write_comparison
from raterwise.report.headlines import differences_in_words
from raterwise.report.words import best_of, facts_in_words, same_on_these_cases, warnings_by_model
from raterwise.results import Results

EXAMPLES = """[bold]Examples[/bold]

[dim]# from predictions: two models, the same cases, the same readers[/dim]
raterwise compare old.csv new.csv --ratings ratings.csv --group-column patient

[dim]# from results: each model was evaluated where its predictions are, with the same seed[/dim]
raterwise evaluate old.csv --ratings ratings.csv --out old.json
raterwise evaluate new.csv --ratings ratings.csv --out new.json
raterwise compare old.json new.json

[dim]# an ensemble and a single network, each with its out-of-distribution cases[/dim]
raterwise compare one.csv ensemble.csv --label-column truth --samples ensemble=draws.npz \\
    --outside one=other_one.csv --outside ensemble=other_ensemble.csv

[dim]# findings that may occur together: their means, and each finding[/dim]
raterwise compare old.csv new.csv --ratings ratings.csv --multilabel

[dim]# a table for the paper and a page for everybody[/dim]
raterwise compare a.json b.json c.json --metrics ece,brier,auccc \\
    --names "ResNet,ViT,ensemble" --latex table.tex --out comparison.html"""

Files = Annotated[
    list[Path],
    typer.Argument(
        help="One file per model, of the same cases: predictions (CSV, Parquet, Arrow, NPZ), or "
        "results (JSON) that raterwise evaluate --out wrote."
    ),
]
Names = Annotated[
    str | None, typer.Option(help="Names of the models: a,b. Default: the file names.")
]
Outs = Annotated[
    list[Path] | None,
    in_panel(OUTPUT, "Write everything to this .json or .html file; may be repeated."),
]
CsvFile = Annotated[Path | None, in_panel(OUTPUT, "Write the differences to this file.", "--csv")]
LatexFile = Annotated[Path | None, in_panel(OUTPUT, "Write a LaTeX table.")]
MarkdownFile = Annotated[Path | None, in_panel(OUTPUT, "Write a Markdown table.")]


@with_options
def compare(
    asked: Asked,
    drawn: Drawn,
    in_use: InUse,
    tables: TableOptions,
    predictions: Files,
    ratings: options.RatingsFile = None,
    samples: model_options.SamplesByModel = None,
    member: model_options.MembersByModel = None,
    confidence_column: model_options.ConfidenceColumn = None,
    outside: model_options.OutsideByModel = None,
    multilabel: options.Multilabel = False,
    finding_column: options.FindingColumn = None,
    names: Names = None,
    finding: Annotated[
        str | None, typer.Option(help="Compare this finding only, if the results have several.")
    ] = None,
    metrics: options.Metrics = "all",
    out: Outs = None,
    html: options.HtmlOut = None,
    csv_out: CsvFile = None,
    latex: LatexFile = None,
    markdown: MarkdownFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Say which of several models is better, and whether the difference is more than chance.

    Each file holds the predictions of one model for the same cases, or its
    results. All models are resampled together, and p-values are adjusted for
    the number of pairs.

    Results must be of the same cases in the same order, with the same labels,
    patients, weights, bins and seed. Results of several findings, and tables
    with --multilabel, are compared by their means and finding by finding;
    --finding compares one of them.
    """
    check_html(html)
    whole = [*(out or ()), *([] if html is None else [html])]
    files = (*whole, csv_out, latex, markdown)
    draws = Draws.of(samples, member, outside, confidence_column)
    check_outputs(files, (*predictions, ratings, *draws.paths))
    check_ending("--csv", csv_out, "CSV", *CSV_ENDINGS)
    check_ending("--latex", latex, "LaTeX", ".tex", ".txt")
    check_ending("--markdown", markdown, "Markdown", *MARKDOWN_ENDINGS)
    for file in out or ():
        if file.suffix.lower() not in (".json", ".html"):
            raise InvalidInputError(f"--out: must end in .json or .html; got {file}")
    titles = _names(predictions, comma_list(names))
    how: dict[str, Any] = {"metrics": metrics, **asked.told, **drawn.told, **in_use.told}
    asked.check(metrics, **drawn.told)
    with ProgressBar(shown=not quiet) as report, heard_warnings() as heard:
        report("reading", 0.0)
        if _are_results(predictions):
            _refuse_unread(ratings, tables, drawn.on_single, multilabel)
            _refuse_draws(draws, "results")
            refuse_finding_column(finding_column)
            with making_sense(*predictions):
                results = [Results.from_json(file) for file in predictions]
                del how["on_single"]
                found, each = _of_results(dict(zip(titles, results, strict=True)), finding, how)
        else:
            if finding is not None:
                raise InvalidInputError(f"--finding: is for results, not tables; got {finding!r}")
            how["progress"] = report
            of = (predictions, titles, ratings, tables)
            if multilabel:
                _refuse_draws(draws, "findings")
                found, each = _of_findings(*of, finding_column, how)
            else:
                refuse_finding_column(finding_column)
                found, each = _of_tables(*of, draws, how), {}
    if whole:
        found = with_origin(found, (*predictions, ratings))
    with making_sense(*predictions):
        _write(found, each, whole, csv_out, latex, markdown)
        if not quiet:
            console = new_console()
            _print(console, found, each)
            print_warnings(heard, console)
            announce(console, files)


def _of_results(
    models: Mapping[str, Results], finding: str | None, asked: Mapping[str, Any]
) -> tuple[Comparison, dict[str, Comparison]]:
    """Return the comparison of results, and that of each finding where they have several."""
    chosen = dict(models) if finding is None else _finding_of(models, finding)
    return compared(chosen, **asked), _of_each_finding(chosen, **asked)


def _finding_of(models: Mapping[str, Results], name: str) -> dict[str, Results]:
    """Return one finding of every model."""
    for model, results in models.items():
        if name not in results.findings:
            known = ", ".join(results.findings) or "none: they are not of --multilabel"
            raise InvalidInputError(
                f"--finding: must be among those of the results; {model} has no {name!r} "
                f"(it has {known})"
            )
    return {model: results.findings[name] for model, results in models.items()}


def _of_each_finding(models: Mapping[str, Results], **asked: Any) -> dict[str, Comparison]:
    """Return the comparison of every finding; the models must have the same ones."""
    (first, one), *rest = models.items()
    for name, other in rest:
        if list(other.findings) != list(one.findings):
            raise InvalidInputError(
                f"models: must have the same findings in the same order; {first!r} has "
                f"{', '.join(one.findings) or 'none'}, {name!r} has "
                f"{', '.join(other.findings) or 'none'}"
            )
    return {title: compared(_finding_of(models, title), **asked) for title in one.findings}


def _of_tables(
    files: Sequence[Path],
    titles: Sequence[str],
    ratings: Path | None,
    tables: TableOptions,
    draws: Draws,
    asked: Mapping[str, Any],
) -> Comparison:
    """Return the comparison of tables of exclusive classes."""
    models, notes = read_models(files, titles, ratings, tables, draws)
    found = compared(**models, **asked)
    each = found.models.items()
    return replace(found, models={name: with_notes(one, notes) for name, one in each})


def _of_findings(
    files: Sequence[Path],
    titles: Sequence[str],
    ratings: Path | None,
    tables: TableOptions,
    finding_column: str | None,
    asked: Mapping[str, Any],
) -> tuple[Comparison, dict[str, Comparison]]:
    """Return the comparison of tables of findings, by their means and finding by finding."""
    if asked["resamples"] < 2:
        raise InvalidInputError(
            f"resamples: must be at least 2 to compare; got {asked['resamples']}"
        )
    unit, report = asked["unit"], asked["progress"]
    models: dict[str, Results] = {}
    first = None
    for i, (file, title) in enumerate(zip(files, titles, strict=True)):
        table, found = read_findings(file, ratings, tables, finding_column, unit)
        first = first or found
        found = found.take(_rows_of(first, found, files[0], file))

        part = within(report, i / len(files), (i + 1) / len(files), title)
        results = evaluate_multilabel(
            **arrays_of_findings(found),
            **{**asked, "progress": part, "on_unrated": tables.on_unrated},
        )
        models[title] = with_notes(with_what_was_read(results, found), table.notes)
    return _of_results(models, None, {})


def _rows_of(first: Findings, other: Findings, one: Path, two: Path) -> NDArray[np.int64]:
    """Return the rows of `other` that hold the cases of `first`, in their order."""
    if other.names != first.names:
        raise InvalidInputError(
            f"{two.name}: must have the findings of {one.name}, {', '.join(first.names)}; got "
            f"{', '.join(other.names)}"
        )
    whole = np.arange(len(other.probs))
    return same_rows(first.ids, other.ids, (len(first.probs), whole), (one.name, two.name))


def _names(files: Sequence[Path], given: Sequence[str]) -> list[str]:
    if len(files) < 2:
        raise InvalidInputError(f"PREDICTIONS: must be at least two files; got {len(files)}")
    if given and len(given) != len(files):
        raise InvalidInputError(
            f"--names: must name each of the {len(files)} files; got {len(given)}"
        )
    stems = [file.stem for file in files]
    chosen = list(given) or (stems if len(set(stems)) == len(stems) else [str(f) for f in files])
    if len(set(chosen)) != len(chosen):
        raise InvalidInputError(f"--names: must differ; got {', '.join(chosen)}")
    return chosen


def _are_results(files: Sequence[Path]) -> bool:
    """Return whether the files are results; some of each is a mistake."""
    results = [file for file in files if file.suffix.lower() == ".json"]
    tables = [file for file in files if file not in results]
    if results and tables:
        raise InvalidInputError(
            f"PREDICTIONS: must be all results or all tables; {results[0]} is of results, "
            f"{tables[0]} a table (raterwise evaluate {tables[0]} --out … makes results of it)"
        )
    return bool(results)


def _refuse_draws(draws: Draws, what: str) -> None:
    """Refuse draws, confidences and cases from elsewhere that would be left unread."""
    if draws.given:
        raise InvalidInputError(
            "--samples, --member, --outside, --confidence-column: cannot be used with "
            f"{what}; leave them out"
        )


def _refuse_unread(
    ratings: Path | None, tables: TableOptions, on_single: str, multilabel: bool
) -> None:
    """Refuse options about tables where there are none."""
    usual = TableOptions()
    given = [f.name for f in fields(tables) if getattr(tables, f.name) != getattr(usual, f.name)]
    given += [] if on_single == "error" else ["on_single"]
    given += [] if ratings is None else ["ratings"]
    given += ["multilabel"] if multilabel else []
    if given:
        raise InvalidInputError(
            f"--{given[0].replace('_', '-')}: is for tables; results already contain their cases"
        )


def _write(
    found: Comparison,
    each: Mapping[str, Comparison],
    out: Sequence[Path],
    csv_out: Path | None,
    latex: Path | None,
    markdown: Path | None,
) -> None:
    for file in out:
        if file.suffix.lower() in (".htm", ".html"):
            write_comparison(found, file, findings=each)
        elif each:
            findings = {
                title: {"differences": [asdict(d) for d in one.differences], "ranking": one.ranking}
                for title, one in each.items()
            }
            write_json(file, {**found.to_dict(), "findings": findings})
        else:
            found.to_json(file)
    if csv_out is not None:
        write_text_atomically(csv_out, as_csv(found, each))
    if latex is not None:
        found.to_latex(latex)
    if markdown is not None:
        found.to_markdown(markdown)


def _print(console: Console, found: Comparison, each: Mapping[str, Comparison]) -> None:
    first = next(iter(found.models.values()))
    console.print(facts_in_words(first.data), style="bold")
    if told := differences_in_words(found):
        console.print(told, style="bold")
    print_table(comparison_table(found.models, list(first)), console)
    console.print()
    table = plain_table("metric")
    for name in ("models", "difference", "corrected", "interval", "p", "adjusted p", "best"):
        table.add_column(name, no_wrap=True)
    for d in found.differences:
        shares = found.ranking.get(d.metric, {})
        best = best_of(shares) if shares else []
        share = f"{', '.join(best)} ({shares[best[0]]:.0%})" if best else ""
        share = "equal" if len(best) == len(found.models) else share
        cells = [first[d.metric].title, f"{d.first} - {d.second}", number(d.difference)]
        cells += [number(d.debiased) if d.debiased is not None else ""]
        cells += [f"[{number(d.low)}, {number(d.high)}]", p_value(d.p_value)]
        cells += [p_value(d.adjusted_p_value), share]
        table.add_row(*cells)
    print_table(table, console)
    console.print()
    console.print(
        "corrected: the difference without what chance adds to each error; the interval is for it."
    )
    console.print("best: the model that is best in most resamples, and in how many.")
    if alike := same_on_these_cases(found):
        console.print(alike)
    if each:
        print_differences(each, found, console)
    shared, own = warnings_by_model(found.models)
    print_notes(replace(first, warnings=shared), console)
    for name, warnings in own.items():
        print_warnings(warnings, console, f"{name}: ")

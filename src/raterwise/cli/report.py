"""`raterwise report`: results as one HTML file that a clinician can read."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from raterwise.cli.before_after import read_results
from raterwise.cli.reading import heard_warnings
from raterwise.cli.stability import read_stability
from raterwise.cli.stability_curves import parts_of_report
from raterwise.cli.writing import MARKDOWN_ENDINGS, check_ending, check_outputs
from raterwise.compare import Difference, compare
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.io.damaged import making_sense
from raterwise.progress_bar import ProgressBar
from raterwise.results import Results
from raterwise.worklist import Worklist

EXAMPLES = """[bold]Examples[/bold]

[dim]# results.json is what raterwise evaluate --out wrote[/dim]
raterwise report results.json -o report.html

[dim]# what raterwise calibrate wrote: before and after; also text for a paper[/dim]
raterwise report calibrated/before_after.json -o report.html --text methods.md

[dim]# with everything else that raterwise can say about the same cases, opened at once[/dim]
raterwise report results.json -o report.html --single one_rater.json --after scaled.json \\
    --stability stability.json --worklist worklist.csv --open"""

ResultsFile = Annotated[
    Path,
    typer.Argument(help="JSON file that raterwise evaluate --out or raterwise calibrate wrote."),
]


def report(
    results: ResultsFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", "--html", help="The HTML file to write.")
    ] = Path("report.html"),
    single: Annotated[
        Path | None, typer.Option(help="Results with one rater per case, to show alongside.")
    ] = None,
    before: Annotated[
        Path | None, typer.Option(help="Results before a recalibration, to compare with.")
    ] = None,
    after: Annotated[
        Path | None, typer.Option(help="Or results after a recalibration of this model.")
    ] = None,
    stability: Annotated[
        Path | None, typer.Option(help="JSON file that raterwise stability --out wrote.")
    ] = None,
    worklist: Annotated[
        Path | None, typer.Option(help="CSV file that raterwise worklist --out wrote.")
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(help="Also write methods and results for a paper to this .md file."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="The heading, such as the name of the model.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write a report of results: one file that opens anywhere, without a network."""
    check_outputs((out, text), (results, single, before, after, stability, worklist))
    check_ending("--text", text, "Markdown", *MARKDOWN_ENDINGS)
    if out.suffix.lower() not in (".htm", ".html"):
        raise InvalidInputError(f"--out: must end in .html, for browsers to open it; got {out}")
    if before is not None and after is not None:
        raise InvalidInputError("--before, --after: must be one of them; got both")
    given = (results, single, before, after, stability, worklist)
    with making_sense(*given):
        content, parts = _read(*given)
        if title is not None:
            parts["title"] = title
        with ProgressBar() as progress:
            progress(f"drawing {out.name}", 0.5)
            content.to_html(out, versions=content.versions, **parts)
        if text is not None:
            content.to_text(text)
    typer.echo(f"Written: {', '.join(str(file) for file in (out, text) if file is not None)}")
    if show:
        open_in_browser(out)


def _read(
    results: Path,
    single: Path | None,
    before: Path | None,
    after: Path | None,
    stability: Path | None,
    worklist: Path | None,
) -> tuple[Results, dict[str, Any]]:
    """Return the results, and what is shown beside them, from their files."""
    content, parts = read_results(results)
    if parts and (before is not None or after is not None):
        raise InvalidInputError(
            f"--before, --after: must be left out; {results} holds both sides of a recalibration"
        )
    for name, path in (("single", single), ("before", before), ("after", after)):
        if path is not None:
            parts[name] = Results.from_json(path)
    if single is not None:
        _check_alike(content, parts["single"], single)
    if before is not None or after is not None:
        first, second = parts.get("after", content), parts.get("before", content)
        parts["differences"], notes = paired(first, second)
        for note in notes:
            typer.echo(note, err=True)
    if stability is not None:
        parts |= parts_of_report(read_stability(stability))
    if worklist is not None:
        parts["worklist"] = Worklist.from_csv(worklist)
    return content, parts


def _check_alike(results: Results, single: Results, file: Path) -> None:
    """Refuse to show figures of other cases as if they were those of one rater of the same."""
    for what in ("cases", "classes"):
        got, wanted = single.data.get(what), results.data.get(what)
        if got != wanted:
            raise InvalidInputError(
                f"--single: must be of the same cases with one rater each; {file} has {got} {what} "
                f"for {wanted}"
            )


def paired(after: Results, before: Results) -> tuple[tuple[Difference, ...], list[str]]:
    """Return after minus before if both are of the same resamples, and what to know of that.

    Only metrics that both have are compared.
    """
    none = "The differences have no intervals:"
    both = [metric for metric in after if metric in before]
    if not both:
        return (), [f"{none} no metric is in both files"]
    try:
        with heard_warnings() as heard:
            found = compare({"after": after, "before": before}, metrics=both)
    except RaterwiseError as error:
        return (), [f"{none} {error}"]
    return found.differences, heard


def open_in_browser(path: Path) -> None:
    """Show a file in the user's browser; where there is none, say so and go on."""
    if not webbrowser.open(path.resolve().as_uri()):
        typer.echo(f"No browser was found; open {path} in one.", err=True)

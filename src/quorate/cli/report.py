"""`quorate report`: results as one HTML file that a clinician can read."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from quorate.io.files import check_can_write
from quorate.results import Results

__all__ = ["EXAMPLES", "open_in_browser", "report"]

EXAMPLES = """[bold]Examples[/bold]

[dim]# results.json is what quorate evaluate --out wrote[/dim]
quorate report results.json -o report.html

[dim]# with the same cases and one rater each beside, and shown at once[/dim]
quorate report results.json -o report.html --single one_rater.json --open"""

ResultsFile = Annotated[Path, typer.Argument(help="JSON file that quorate evaluate --out wrote.")]


def report(
    results: ResultsFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    single: Annotated[
        Path | None, typer.Option(help="Results with one rater per case, to show beside.")
    ] = None,
    before: Annotated[
        Path | None, typer.Option(help="Results before a recalibration, to compare with.")
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="The heading, such as the name of the model.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write a report of results: one file that opens anywhere, without a network."""
    check_can_write(out)
    content = Results.from_json(results)
    content.to_html(
        out,
        single=None if single is None else Results.from_json(single),
        before=None if before is None else Results.from_json(before),
        versions=content.versions,
        **({} if title is None else {"title": title}),
    )
    typer.echo(f"Written: {out}")
    if show:
        open_in_browser(out)


def open_in_browser(path: Path) -> None:
    """Show a file in the user's browser; where there is none, say so and go on."""
    if not webbrowser.open(path.resolve().as_uri()):
        typer.echo(f"No browser was found; open {path} in one.", err=True)

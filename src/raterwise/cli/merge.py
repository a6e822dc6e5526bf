"""`raterwise merge`: results from summaries that were saved where the cases are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from raterwise.cli import options
from raterwise.cli.writing import Files
from raterwise.errors import MergeError
from raterwise.inference.settings import Settings
from raterwise.io.damaged import making_sense
from raterwise.io.sources import matching_files
from raterwise.streaming.checked import check_totals
from raterwise.streaming.evaluation import evaluate_digest, request_of_header
from raterwise.streaming.saved import load_saved, save_digest

EXAMPLES = """[bold]Examples[/bold]

[dim]# each hospital summarises its own cases; the files hold no case[/dim]
raterwise evaluate ours.parquet --label-column truth --save-summary ours.npz
raterwise merge ours.npz theirs.npz --out results.json

[dim]# every site of a folder, and a summary of all for the next round[/dim]
raterwise merge "sites/*.npz" --save-summary all.npz --html report.html"""

Summaries = Annotated[
    list[Path], typer.Argument(help="Files that --save-summary wrote, or patterns.")
]


@options.with_options
def merge(
    files: Files,
    summaries: Summaries,
    resamples: options.Resamples = 1000,
    level: options.Level = 0.95,
    save_summary: Annotated[
        Path | None, typer.Option(help="Write the combined summary to this file.")
    ] = None,
) -> None:
    """Combine saved summaries into results, as if all cases were in one place.

    The summaries must have the same metrics, bins, classes and seed. They
    count patients and readers without naming them: one in two files counts
    as two.
    """
    files.check(summaries, save_summary)
    Settings(resamples, level)  # which says at once what cannot be
    read = matching_files(summaries)
    with making_sense(*summaries):
        digest, about, sources, notes = merged_files(read)
        request = request_of_header(about, resamples=resamples, level=level)
        with files.progress() as report:
            levels = about.get("subgroup_metrics")
            chosen = None if levels is None else request.only(levels)
            results = evaluate_digest(digest, request, report, chosen)
    results = replace(results, warnings=(*results.warnings, *notes))
    if save_summary is not None:
        save_digest(save_summary, digest, about, sources=sources, notes=notes)
    files.deliver(results, read, save_summary)


def merged_files(files: Sequence[Path]) -> tuple[Any, dict[str, Any], list[str], list[str]]:
    """Return the sum of saved summaries, the options they share, what was added up, and notes."""
    total: Any = None
    number = 0
    about: dict[str, Any] = {}
    owner: dict[str, str] = {}
    notes: list[str] = []
    for i, file in enumerate(files):
        saved = load_saved(file)
        again = sum(other.stem == file.stem for other in files[:i])
        digest = _with_readers_of(saved.digest, file.stem + (f" ({again + 1})" if again else ""))
        check_totals(digest, file.name)
        notes += [f"{file.name}: {note}" for note in (*saved.notes, *_without_readers(digest))]
        _refuse_again(saved.sources, file, owner)
        number += digest.facts.fingerprint.summaries
        options_of = {"options": {}, **saved.options}  # the first files had none to write
        if total is None:
            total, about = digest, options_of
            continue
        unlike = [key for key in {**about, **options_of} if about.get(key) != options_of.get(key)]
        if unlike:
            key = unlike[0]
            first, second = _said(about.get(key)), _said(options_of.get(key))
            raise MergeError(
                f"{files[0].name} and {file.name}: were made with different {key}: "
                f"{first} and {second}"
            )
        try:
            total = total + digest
        except MergeError as error:
            raise MergeError(f"{files[0].name} and {file.name}: {error}") from error
    facts = total.facts
    merged = replace(facts, fingerprint=replace(facts.fingerprint, summaries=number))
    return replace(total, facts=merged), about, list(owner), notes


def _said(option: Any) -> str:
    """Return an option as it is typed.

    >>> _said(["ece", "brier"]), _said(None), _said(15)
    ('ece,brier', 'none', '15')
    """
    if option is None:
        return "none"
    return ",".join(map(str, option)) if isinstance(option, list | tuple) else str(option)


def _with_readers_of(digest: Any, place: str) -> Any:
    """Return a digest whose readers are those of a place: the first of another is another."""
    named = {
        who: {f"{place}: {reader}": own for reader, own in each.items()}
        for who, each in digest.readers.items()
    }
    return replace(digest, readers=named)


def _without_readers(digest: Any) -> list[str]:
    """Return that there are several raters and none to put the model beside, if so."""
    facts = digest.facts
    if facts.panel is None or facts.most < 2 or any(digest.readers.values()):
        return []  # raters are not compared, or there is one, or here they are
    return [
        "holds nothing of its readers one by one, so that they are no yardstick for the model: its "
        "labels do not say who said what, or it was saved without intervals, or by version 0.2 or "
        "earlier"
    ]


def _refuse_again(sources: Sequence[str], file: Path, owner: dict[str, str]) -> None:
    """Refuse cases that are in another file already, alone or added up with others."""
    for content in sources:
        if (other := owner.setdefault(content, file.name)) != file.name:
            raise MergeError(
                f"{other} and {file.name}: hold the same cases; they must be counted once"
            )

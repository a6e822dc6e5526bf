"""`raterwise worklist`: which cases are most worth a second opinion, and what it would change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.table import Table

from raterwise.beliefs import (
    Belief,
    DirichletBelief,
    DirichletMixtureBelief,
    EnsembleBelief,
    PointBelief,
)
from raterwise.cli import model_options, options
from raterwise.cli.members import Members
from raterwise.cli.reading import Cases, read_cases
from raterwise.cli.show import new_console, number, plain_table, print_table, print_warnings
from raterwise.cli.table_options import TableOptions
from raterwise.cli.writing import (
    CSV_ENDINGS,
    announce,
    check_ending,
    check_html,
    check_outputs,
    origin_of,
    write_json,
)
from raterwise.errors import InvalidInputError
from raterwise.io.damaged import read_archive
from raterwise.io.files import write_text_atomically
from raterwise.io.layouts import AS_USUAL, TableColumns
from raterwise.io.npz import is_npz
from raterwise.io.scores import read_numbers
from raterwise.labels import Labels
from raterwise.report.pages import worklist_page
from raterwise.rules import listed
from raterwise.worklist import Worklist
from raterwise.worklist import worklist as ranked

EXAMPLES = """[bold]Examples[/bold]

[dim]# the cases of raterwise calibrate --alpha, whose file has the column alpha0[/dim]
raterwise worklist calibrated/calibrated.csv --top 20

[dim]# new cases, with the calibrators that were saved; the list as a file[/dim]
raterwise worklist today.csv --calibrator calibrated/calibrator.json \\
    --alpha-model calibrated/alpha.json --out worklist.csv --html worklist.html

[dim]# the draws of an ensemble, as raterwise calibrate left them, or as they are[/dim]
raterwise worklist --samples calibrated/samples.npz
raterwise worklist --member net_1.csv --member net_2.csv --member net_3.csv

[dim]# once the first readings are in[/dim]
raterwise worklist calibrated/calibrated.csv --ratings first.csv"""

MOST_SHOWN, MOST_ANSWERS = 30, 5
"""Cases that a terminal shows unless --top says otherwise, and answers beside each."""
ALPHA_COLUMN = "alpha0"
SCHEMA_VERSION = 1


@options.with_options
def worklist(
    tables: TableOptions,
    predictions: model_options.OptionalPredictionsFile = None,
    ratings: Annotated[
        Path | None,
        typer.Option(help="Ratings that you already have; they update the probabilities."),
    ] = None,
    samples: model_options.SamplesFile = None,
    member: model_options.MemberFiles = None,
    by: Annotated[
        Literal["gain", "disagreement"],
        typer.Option(help="Rank by the expected gain of one more label, or by disagreement."),
    ] = "gain",
    top: Annotated[int | None, typer.Option(help="How many cases to list. Default: all.")] = None,
    calibrator: model_options.CalibratorFile = None,
    alpha_model: model_options.AlphaModel = None,
    alpha_column: model_options.AlphaColumn = None,
    features_prefix: model_options.FeaturesPrefix = None,
    logit_prefix: model_options.LogitPrefix = "logit_",
    out: Annotated[
        Path | None, options.in_panel(options.OUTPUT, "Write the list to this CSV file, or .json.")
    ] = None,
    html: options.HtmlOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Rank cases by what one more expert's label is worth, or by disagreement.

    The list shows how each possible answer would change the probabilities.
    α0, which says how certain the probabilities of a case are, comes from
    raterwise calibrate --alpha, or from the spread of an ensemble's draws
    (--samples, --member).
    """
    if tables.weight_column is not None:
        raise InvalidInputError("weight_column: raterwise worklist does not use weights")
    members = Members.of(samples, member)
    predictions = members.base(predictions)
    inputs = (predictions, ratings, calibrator, alpha_model, *members.paths)
    check_html(html)
    check_outputs((out, html), inputs)
    check_ending("--out", out, "CSV", *CSV_ENDINGS, ".json")
    fitted = _load(calibrator, "--calibrator", alpha=False)
    sure = _load(alpha_model, "--alpha-model", alpha=True)
    cases = read_cases(
        predictions,
        ratings,
        tables,
        input="probs" if fitted is None else fitted.input or "logits",
        logit_prefix=logit_prefix,
        features_prefix=features_prefix,
        rated="some",
        members=members,
    )
    probs: Any = cases.belief("probs") if cases.ensemble else cases.table.probs
    if fitted is not None:
        _check_classes(fitted, calibrator, cases)
        probs = fitted.predict_proba(cases.scores)
    belief = _belief(cases, probs, sure, predictions, alpha_column, tables.told, by, members)
    belief = _updated(belief, cases)
    ids = None if cases.table.ids is None else cases.table.ids.tolist()
    found = ranked(belief, ids, by, top, class_names=cases.table.class_names)
    if out is not None and out.suffix.lower() == ".json":
        asked = {"by": found.by, "top": top}
        write_json(out, {**_content(found, cases), "options": asked, **origin_of(inputs)})
    elif out is not None:
        found.to_csv(out)
    if html is not None:
        notes, origin = cases.table.notes, origin_of(inputs)
        text = worklist_page(found, basis=cases.in_words(), notes=notes, origin=origin)
        write_text_atomically(html, text)
    if not quiet:
        _show(found, len(cases), cases, top, out)
        announce(new_console(), (html,))


def _content(found: Worklist, cases: Cases) -> dict[str, Any]:
    """Return what the JSON holds: the lines of the CSV file, under the names that results have."""
    labels = cases.labels
    return {
        "schema_version": SCHEMA_VERSION,
        "cases": found.records(),
        "data": {
            "cases": len(cases),
            "classes": len(cases.table.class_names),
            "class_names": list(cases.table.class_names),
            "ratings": 0 if labels is None else int(labels.num_raters.sum()),
            "dropped": cases.dropped,
        },
        "warnings": list(cases.table.notes),
    }


def _load(path: Path | None, option: str, *, alpha: bool) -> Any:
    """Return a saved calibrator of the kind that the option takes."""
    from raterwise.calibrators.alpha import AlphaCalibration
    from raterwise.calibrators.saved import load

    if path is None:
        return None
    model = load(path)
    if isinstance(model, AlphaCalibration) != alpha:
        wanted = "α-calibration" if alpha else "a calibrator of class probabilities"
        raise InvalidInputError(
            f"{option}: must be {wanted}; {path.name} holds {type(model).__name__}"
        )
    return model


def _check_classes(fitted: Any, path: Path | None, cases: Cases) -> None:
    """Refuse a calibrator whose classes have other names, or another order."""
    assert path is not None
    names = cases.table.class_names
    if fitted.class_names_ is not None and tuple(fitted.class_names_) != names:
        raise InvalidInputError(
            f"--calibrator: must be of the same classes in the same order; {path.name} has "
            f"{listed(fitted.class_names_)} and {cases.table.source} {listed(names)}"
        )


def _belief(
    cases: Cases,
    probs: Any,
    model: Any,
    predictions: Path,
    column: str | None,
    told: TableColumns,
    by: str,
    members: Members,
) -> Belief:
    """Return the belief about every case: Dirichlet where α0 is known, of draws, or a point."""
    if model is not None and column is not None:
        raise InvalidInputError("--alpha-model, --alpha-column: must be one of them; got both")
    if model is not None:
        found: Belief = model.predict(cases.features, probs=probs)
        return found
    if isinstance(probs, EnsembleBelief):
        return _of_draws(probs, cases, members, column)
    if column is None and _holds(predictions, ALPHA_COLUMN, told):
        column = ALPHA_COLUMN
    if column is not None:
        return DirichletBelief(probs, read_numbers(predictions, column, "alpha_column", told))
    if by == "gain":
        raise InvalidInputError(
            f"--by gain: needs α0 for each case; {predictions.name} has no column 'alpha0'. Give "
            "--alpha-model or --alpha-column, or rank --by disagreement"
        )
    return PointBelief(probs)


def _of_draws(belief: EnsembleBelief, cases: Cases, members: Members, column: str | None) -> Belief:
    """Return the belief of draws, with the α0 of each where their file has it."""
    if column is not None:
        raise InvalidInputError(
            "--alpha-column: is for a single model; for draws, α0 comes from the array "
            "'concentration' of --samples or from --alpha-model"
        )
    if members.samples is None or not _holds(members.samples, "concentration", AS_USUAL):
        return belief
    sure = members.draws(cases.table, "concentration", lambda file: (cases.table, cases.scores))
    assert sure is not None
    return DirichletMixtureBelief(belief.samples, sure)


def _holds(path: Path, column: str, told: TableColumns) -> bool:
    if is_npz(path):
        return column in read_archive(path, path.name, (column,))
    return column in told.open(path).columns


def _updated(belief: Belief, cases: Cases) -> Belief:
    """Return the belief after the labels that are there already."""
    if cases.labels is None:
        return belief
    counts = np.zeros((len(cases), belief.num_classes), np.int64)
    counts[cases.rated] = cases.labels.counts
    return belief.posterior(Labels.from_counts(counts))


def _show(found: Worklist, total: int, cases: Cases, top: int | None, out: Path | None) -> None:
    console = new_console()
    shown = min(len(found), MOST_SHOWN if top is None else top)
    order = "expected gain of one more label" if found.by == "gain" else "predicted disagreement"
    console.print(f"{shown} of {total} cases, by {order}", style="bold")
    if cases.labels is not None:
        console.print(f"after {int(cases.labels.num_raters.sum()):,} ratings so far")
    known = bool(found.expected_gain.max() > 0)
    print_table(_table(found, shown, known), console)
    if not known:
        console.print("Without α0, it is unknown how much an answer would change.")
    print_warnings(cases.about_ratings, console)
    if out is not None:
        console.print(f"Written: {out} ({len(found)} cases)", soft_wrap=True)


def _table(found: Worklist, shown: int, known: bool) -> Table:
    """Return the first cases; each answer in its order, or the likeliest where there are many.

    Without answers and gains where it is not `known` how sure to be of a case.
    """
    table = plain_table("case", "disagree", *(["gain"] if known else []), "now")
    names, classes = found.class_names, len(found.class_names) if known else 0
    many = classes > MOST_ANSWERS
    answers = MOST_ANSWERS if many else classes
    for k in range(answers):
        table.add_column(f"answer {k + 1}" if many else f"if {names[k]}", no_wrap=True)
    after = found.top_class_after
    for i in range(shown):
        best = found.top_class[i]
        cells = [str(found.case_ids[i]), f"{found.disagreement[i]:.3f}"]
        cells += [number(float(found.expected_gain[i]))] if known else []
        cells += [f"{names[best]} {found.probs[i, best]:.2f}"]
        order = np.argsort(-found.probs[i], kind="stable")[:answers] if many else range(classes)
        for k in order:
            then = after[i, k]
            believed = "-" if then < 0 else f"{names[then]} {found.posterior[i, k, then]:.2f}"
            cells.append(f"{names[k]}: {believed}" if many else believed)
        table.add_row(*cells)
    return table

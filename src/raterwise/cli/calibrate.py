"""`raterwise calibrate`: better probabilities, how sure of them to be, and what that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from rich.console import Console

from raterwise.beliefs import PointBelief
from raterwise.cli import model_options, options
from raterwise.cli.before_after import record_of, write_page
from raterwise.cli.members import Members, each_draw, write_draws
from raterwise.cli.options import EVALUATION, OUTPUT, Asked, Drawn, in_panel, with_options
from raterwise.cli.parsing import prevalences
from raterwise.cli.reading import Cases, heard_warnings, read_cases, shared_names
from raterwise.cli.show import (
    difference_table,
    new_console,
    print_notes,
    print_table,
    print_warnings,
)
from raterwise.cli.table_options import TableOptions
from raterwise.cli.writing import (
    announce,
    check_folder,
    check_html,
    check_outputs,
    origin_of,
    same_file,
    write_json,
    write_like,
)
from raterwise.compare import Comparison, compare
from raterwise.errors import InvalidInputError
from raterwise.io.files import refuse_overwriting
from raterwise.prevalence import shift_prevalence
from raterwise.progress_bar import ProgressBar
from raterwise.rules import listed
from raterwise.types import FloatArray

if TYPE_CHECKING:
    from raterwise.calibrators.alpha import AlphaCalibration


EXAMPLES = """[bold]Examples[/bold]

[dim]# one temperature; ratings.csv has the readers of both sets[/dim]
raterwise calibrate --fit validation.csv --apply test.csv --out calibrated \\
    --fit-ratings ratings.csv --apply-ratings ratings.csv \\
    --allow-unmatched --group-column patient

[dim]# logits in; α0, and so how often readers will disagree, from columns feat_…[/dim]
raterwise calibrate --fit val.parquet --apply test.parquet --out calibrated \\
    --input logits --count-prefix count_ --alpha --features-prefix feat_

[dim]# then: which cases most need a second opinion?[/dim]
raterwise worklist calibrated/calibrated.csv"""

SAMPLES_FILE = "samples.npz"
"""Every calibrated draw of an ensemble."""
METRICS = (
    *("accuracy", "brier", "nll", "ece", "classwise_ece", "calibration_error"),
    *("epistemic_loss", "disagreement_loss", "disagreement_calibration_error"),
)
BELIEF_METRICS = ("prior_epistemic_loss", "posterior_epistemic_loss")
CALIBRATORS = {
    "temperature": "TemperatureScaling",
    "vector": "VectorScaling",
    "matrix": "MatrixScaling",
    "dirichlet": "DirichletCalibration",
    "isotonic": "IsotonicCalibration",
    "beta": "BetaCalibration",
    "histogram": "HistogramBinning",
}


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What was fitted, and what it says of every case of the table it was applied to."""

    calibrator: Any
    """None where the class probabilities stay as they are."""
    alpha: AlphaCalibration | None
    probs: FloatArray
    """(N, K)."""
    belief: Any
    """Where α0 or several draws say more than the probabilities; otherwise None."""
    shifted: str = ""
    """To which prevalence the probabilities were shifted, if to any."""

    @property
    def models(self) -> dict[str, Any]:
        """The fitted calibrators, by the name of their file."""
        found = {"calibrator": self.calibrator, "alpha": self.alpha}
        return {name: model for name, model in found.items() if model is not None}

    def in_words(self) -> str:
        """Return what was fitted, in one line."""
        words = []
        if self.calibrator is not None:
            name = type(self.calibrator).__name__
            keys = ("temperature", "bias_l2", "off_diagonal_l2")
            fitted = {key: getattr(self.calibrator, f"{key}_", None) for key in keys}
            parts = [f"{key} {value:.4g}" for key, value in fitted.items() if value is not None]
            words.append(f"{name} ({', '.join(parts)})" if parts else name)
        if self.alpha is not None:
            low, middle, high = np.quantile(self.belief.concentration, (0.25, 0.5, 0.75))
            within = f"half of the cases within {low:.3g} … {high:.3g}, l2 {self.alpha.l2_:.3g}"
            words.append(f"α0 {middle:.3g} ({'every case' if low == high else within})")
        return "; ".join(words)


@with_options
def calibrate(
    asked: Asked,
    drawn: Drawn,
    tables: TableOptions,
    out: Annotated[Path, in_panel(OUTPUT, "Folder for the output; made if needed.")],
    fit: model_options.FitFile = None,
    apply: model_options.ApplyFile = None,
    fit_samples: model_options.FitSamples = None,
    fit_member: model_options.FitMembers = None,
    apply_samples: model_options.ApplySamples = None,
    apply_member: model_options.ApplyMembers = None,
    method: model_options.Method = "temperature",
    fit_ratings: model_options.FitRatings = None,
    apply_ratings: model_options.ApplyRatings = None,
    alpha: model_options.Alpha = False,
    features_prefix: model_options.FeaturesPrefix = None,
    alpha_l2: model_options.AlphaL2 = None,
    cross_validate: model_options.CrossValidate = False,
    allow_overlap: model_options.AllowOverlap = False,
    input: model_options.Input = "probs",
    logit_prefix: model_options.LogitPrefix = "logit_",
    metrics: Annotated[
        str | None, in_panel(EVALUATION, "all, or a list: ece,brier. Default: about a dozen.")
    ] = None,
    target_prevalence: Annotated[
        str | None,
        in_panel(
            EVALUATION,
            "Prevalence of the second class in use (or of every class: a,b,c). The probabilities "
            "that are written are shifted to it.",
        ),
    ] = None,
    html: options.HtmlOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Fit a calibrator to one table, apply it to another, show what it changes.

    Labels may be those of several raters: every rating counts. With --alpha
    each case also gets α0, which says how certain its probabilities are, and
    the probability that two raters disagree about it. The same column options
    apply to both files.

    The draws of an ensemble are calibrated one by one, with one calibrator that
    is fitted to all of them. They are written to samples.npz, for raterwise
    worklist.
    """
    check_folder(out)
    both = (
        Members.of(fit_samples, fit_member, "fit-"),
        Members.of(apply_samples, apply_member, "apply-"),
    )
    fit, apply = both[0].base(fit, "--fit"), both[1].base(apply, "--apply")
    tables_made = (f"calibrated{apply.suffix}", "calibrated.csv", "calibrated.tsv", SAMPLES_FILE)
    names = (*tables_made, "calibrator.json", "alpha.json", "before_after.json")
    inputs = (fit, apply, fit_ratings, apply_ratings, *both[0].paths, *both[1].paths)
    check_html(html)
    check_outputs((html,), inputs)
    refuse_overwriting([out / name for name in names], inputs)
    if method == "none" and not alpha:
        raise InvalidInputError("--method: none needs --alpha; otherwise there is nothing to do")
    asked.check(metrics or "all", **drawn.told)
    with ProgressBar(shown=not quiet) as report, heard_warnings() as heard:
        report("reading", 0.0)
        known, new = (
            read_cases(
                file,
                ratings,
                tables,
                input=input,
                logit_prefix=logit_prefix,
                features_prefix=features_prefix if alpha else None,
                members=members,
            )
            for file, ratings, members in zip(
                (fit, apply), (fit_ratings, apply_ratings), both, strict=True
            )
        )
        if html is not None and new.labels is None:
            raise InvalidInputError("--html: compares before and after; it needs --apply-ratings")
        overlap = _overlap(known, new, same=same_file(fit, apply), allowed=allow_overlap)
        _check_alike(known, new)
        report("fitting", 0.1)
        calibrator = _new_calibrator(method, cross_validate, alpha, input)
        found = _calibrated(known, new, calibrator, alpha, alpha_l2, drawn.seed, input)
        comparison = None
        if new.labels is not None:
            comparison = _compared(
                new, found, new.belief(input), metrics,
                **asked.told, **drawn.told, progress=report,
            )  # fmt: skip
    read = dict.fromkeys((*known.table.notes, *new.table.notes))
    notes = [*overlap["warnings"], *read, *heard, *both[0].notes(fit), *both[1].notes(apply)]
    if target_prevalence is not None:
        found = _in_use(known, found, prevalences("--target-prevalence", target_prevalence))
        notes.append(found.shifted)
    files = _write(out, apply, tables, new, found)
    record = record_of(method, known, new, found, comparison, overlap, notes)
    record |= origin_of(inputs)
    files.append(write_json(out / "before_after.json", record))
    if html is not None:
        files.append(write_page(html, comparison, record, notes))
    if not quiet:
        _show(known, new, found, comparison, notes, files)


def _in_use(known: Cases, found: Calibrated, target: Any) -> Calibrated:
    """Return probabilities at the prevalence of use; those fitted are right at that of the labels.

    What is compared before and after stays at the prevalence of the files.
    """
    if found.belief is not None:
        raise InvalidInputError("target_prevalence: α0 cannot be shifted; leave out --alpha")
    shares = np.nan_to_num(known.require_labels().frequencies)
    weights = known.of_rated(known.table.weights)
    before = np.average(shares, axis=0, weights=weights)
    after = np.array(target if len(target) > 1 else [1 - target[0], target[0]])
    names = known.table.class_names
    probs = shift_prevalence(found.probs, before, target)
    moved = ", ".join(
        f"{n} {b:.3g} → {a:.3g}" for n, b, a in zip(names, before, after, strict=True)
    )
    words = (
        f"the probabilities written are those at the prevalence of use ({moved}); the comparison "
        "is at that of the file"
    )
    return replace(found, probs=probs, shifted=words)


def _overlap(known: Cases, new: Cases, *, same: bool, allowed: bool) -> dict[str, Any]:
    """Return which cases and patients are in both files; refuse them unless that is allowed.

    A calibrator that is judged on what it was fitted to looks better than it is.
    """
    cases = shared_names(known.table.ids, new.table.ids)
    patients = shared_names(known.table.groups, new.table.groups)
    both = {"cases": cases, "patients": patients}
    said = [
        f"{len(names)} {what if len(names) > 1 else what[:-1]} "
        f"({listed(names[:5], most=5)}{' …' if len(names) > 5 else ''})"
        for what, names in both.items()
        if names
    ]
    if same and not said:
        said = ["every case (it is the same file)"]
    again, warnings = " and ".join(said), []
    if said and not allowed:
        raise InvalidInputError(
            f"--fit and --apply: must have no cases or patients in common; they share {again} "
            "(--allow-overlap continues, but the calibrator will look better than it is)"
        )
    if said:
        warnings.append(f"in both files: {again}; the difference looks better than it is")
    if cases is None and patients is None:
        warnings.append("neither cases nor patients have names, so overlap could not be checked")
    shared = {what: None if names is None else list(names) for what, names in both.items()}
    return {"shared": shared, "warnings": warnings}


def _check_alike(known: Cases, new: Cases) -> None:
    """Refuse files whose classes or features are not the same, in the same order."""
    for what, first, second in (
        ("classes", known.table.class_names, new.table.class_names),
        ("features", known.feature_names, new.feature_names),
    ):
        if first != second:
            raise InvalidInputError(
                f"--fit and --apply: must have the same {what} in the same order; "
                f"got {listed(first)} in {known.table.source} and {listed(second)} in "
                f"{new.table.source}"
            )


def _calibrated(
    known: Cases,
    new: Cases,
    calibrator: Any,
    alpha: bool,
    paper_l2: float | None,
    seed: int,
    input: str,
) -> Calibrated:
    """Fit to the known cases and apply to the new; without λ of LH eq 50 α0 is cross-validated.

    Draws of the known cases are S·N cases of weight 1/S.
    """
    from raterwise.calibrators.alpha import AlphaCalibration

    labels, groups = known.require_labels(), known.of_rated(known.table.groups)
    weights = known.of_rated(known.table.weights)
    before, after = known.belief(input).take(known.rated), new.belief(input)
    if calibrator is not None:
        scores = known.of_rated(known.scores)
        by_patient = {"groups": groups} if type(calibrator).__name__.endswith("CV") else {}
        calibrator.fit(*each_draw(scores, labels, weights, by_patient), **by_patient)
        before, after = (
            PointBelief(found) if isinstance(found, np.ndarray) else found
            for found in map(calibrator.predict_proba, (scores, new.scores))
        )
    if not alpha:
        return Calibrated(calibrator, None, after.mean, after if new.ensemble else None)
    model = AlphaCalibration(seed=seed)
    if paper_l2 is not None:
        model.set_params(l2=paper_l2, penalty="paper")
    features = known.of_rated(known.features)
    model.fit(features, labels, probs=before, sample_weight=weights, groups=groups)
    belief = model.predict(new.features, probs=after)
    return Calibrated(calibrator, model, belief.mean, belief)


def _new_calibrator(method: str, cross_validate: bool, alpha: bool, input: str) -> Any:
    """Return the calibrator to fit; None where the class probabilities stay as they are."""
    from raterwise.calibrators.saved import KINDS

    if method == "none":
        return None
    name = CALIBRATORS[method]
    has_choice = f"{name}CV" in KINDS
    if cross_validate and not (has_choice or alpha):
        raise InvalidInputError(
            f"--cross-validate: must be used with vector, matrix or --alpha; got {method}"
        )
    return KINDS[f"{name}CV" if cross_validate and has_choice else name](input=input)


def _compared(
    new: Cases, found: Calibrated, belief: Any, metrics: str | None, **chosen: Any
) -> Comparison:
    """Return after and before on the rated cases, resampled together."""
    before: Any = new.of_rated(new.table.probs)
    after: Any = found.probs[new.rated]
    names: str | Sequence[str] = metrics or METRICS
    if found.belief is not None:
        before, after = belief.take(new.rated), found.belief.take(new.rated)
        names = metrics or (*METRICS, *BELIEF_METRICS)
    return compare(
        {"after": after, "before": before},
        new.labels,
        names,
        groups=new.of_rated(new.table.groups),
        class_names=new.table.class_names,
        weights=new.of_rated(new.table.weights),
        **chosen,
    )


def _write(
    out: Path, apply: Path, tables: TableOptions, new: Cases, found: Calibrated
) -> list[Path]:
    """Write the calibrated probabilities and the calibrators; return the files."""
    from raterwise.calibrators.saved import save

    out.mkdir(parents=True, exist_ok=True)
    table, names = new.table, new.table.class_names
    columns, arrays = {}, {"probs": found.probs, "class_names": np.array(names)}
    for key, name, values in (
        ("ids", tables.id_column or "case", table.ids),
        ("groups", tables.group_column or "patient", table.groups),
    ):
        if values is not None:
            columns[name] = arrays[key] = values
    columns |= {f"prob_{name}": found.probs[:, k] for k, name in enumerate(names)}
    if found.belief is not None:
        doubt = {"disagreement": found.belief.disagreement()}
        if found.alpha is not None and not new.ensemble:
            doubt = {"alpha0": found.belief.concentration, **doubt}
        columns |= doubt
        arrays |= doubt
    files = [write_like(apply, out, "calibrated", columns, arrays, tables.told)]
    if new.ensemble:
        files.append(write_draws(out / SAMPLES_FILE, arrays, found.belief))
    return files + [save(model, out / f"{name}.json") for name, model in found.models.items()]


def _show(
    known: Cases,
    new: Cases,
    found: Calibrated,
    comparison: Comparison | None,
    notes: Sequence[str],
    files: Sequence[Path],
) -> None:
    console: Console = new_console()
    console.print(f"Fitted on {known.table.source}: {known.in_words()}", style="bold")
    console.print(found.in_words())
    console.print(f"Applied to {new.table.source}: {new.in_words()}", style="bold")
    if comparison is None:
        console.print("Nothing to compare: the second file has no ratings.")
    else:
        print_table(difference_table(comparison, "after", "before"), console)
        print_notes(comparison.models["after"], console)
    print_warnings(notes, console)
    announce(console, files)

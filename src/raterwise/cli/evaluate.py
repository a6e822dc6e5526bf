"""`raterwise evaluate`: predictions, ratings, every metric with an interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from raterwise.cli import draw_options, options
from raterwise.cli import stream as streaming
from raterwise.cli.checks import check_told
from raterwise.cli.findings import evaluate_findings, refuse_finding_column
from raterwise.cli.members import Members
from raterwise.cli.options import OnProblem, Unit, asked_of, prevalences
from raterwise.cli.reading import (
    TableOptions,
    notes_on_stream,
    probabilities_or_belief,
    read_confidence,
    read_joined,
    read_outside_cases,
    read_subgroups,
    with_table_options,
)
from raterwise.cli.show import ProgressBar
from raterwise.cli.writing import check_html, check_json, check_outputs, deliver, with_notes
from raterwise.errors import InvalidInputError
from raterwise.io.cases import predictions_of_tables
from raterwise.io.outputs import checkpoint_files
from raterwise.io.sources import matching_files

EXAMPLES = """[bold]Examples[/bold]

[dim]# ratings.csv has one row per (case, reader, label); whole patients are resampled[/dim]
raterwise evaluate predictions.csv --ratings ratings.csv --group-column patient

[dim]# one column per reader, in the same file as the probabilities[/dim]
raterwise evaluate all.parquet --id-column nodule --rater-columns smith,jones,lee

[dim]# the whole way in one step: a report to open in a browser[/dim]
raterwise evaluate predictions.csv --ratings ratings.xlsx --html report.html

[dim]# one label per case, three metrics, results for a program to read[/dim]
raterwise evaluate cases.csv --label-column truth --metrics ece,brier,auccc --out results.json

[dim]# the same for every scanner and both sexes?[/dim]
raterwise evaluate cases.csv --label-column truth --subgroup-column scanner --subgroup-column sex

[dim]# the probability of the second of two classes; RECE-G with a narrower kernel[/dim]
raterwise evaluate cases.csv --label-column truth --question positive --option robust_ece.sigma=0.05

[dim]# half of these films have the disease; in the clinic 3 in 100 have it[/dim]
raterwise evaluate cases.csv --label-column truth --target-prevalence 0.03

[dim]# test-time augmentation, a table per draw: RECE-M, disagreement, the posterior[/dim]
raterwise evaluate --member tta_1.csv --member tta_2.csv --member tta_3.csv --ratings ratings.csv

[dim]# a confidence of the network's own, and images that it should not know[/dim]
raterwise evaluate cases.csv --label-column truth --confidence-column udist --outside other.csv

[dim]# findings that may occur together: prob_edema, prob_mass, reader_1_edema, …[/dim]
raterwise evaluate chest.csv --multilabel --group-column patient --out chest.json

[dim]# two classes, of which the file has the second one's probability, as a percentage[/dim]
raterwise evaluate cases.csv --prob-columns risk --percent --label-column biopsy"""


@with_table_options
def evaluate(
    tables: TableOptions,
    predictions: draw_options.OptionalPredictionsFile = None,
    ratings: options.RatingsFile = None,
    samples: draw_options.SamplesFile = None,
    member: draw_options.MemberFiles = None,
    confidence_column: draw_options.ConfidenceColumn = None,
    outside: draw_options.OutsideFile = None,
    multilabel: options.Multilabel = False,
    finding_column: options.FindingColumn = None,
    metrics: options.Metrics = "all",
    bins: options.Bins = 15,
    resamples: options.Resamples = 1000,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    unit: options.UnitDrawn = Unit.cases,
    question: options.QuestionAsked = None,
    per: options.Counted = None,
    option: options.MetricOptions = None,
    threshold: options.Threshold = None,
    on_single: options.OnSingle = OnProblem.error,
    subgroup_column: options.SubgroupColumn = None,
    subgroup_metrics: options.SubgroupMetrics = None,
    target_prevalence: options.TargetPrevalence = None,
    source_prevalence: options.SourcePrevalence = None,
    stream: streaming.Stream = False,
    save_summary: streaming.SaveSummary = None,
    cluster: streaming.Clustered = None,
    workers: streaming.Workers = None,
    checkpoint: streaming.Checkpointing = None,
    out: options.Out = None,
    csv_out: options.CsvOut = None,
    html: options.HtmlOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how far the probabilities in a file can be trusted, with an interval on every figure.

    The first line of a table names its columns. Ratings are names of classes,
    or numbers: 0 is the class of the first probability column, 1 of the next.
    An empty cell is no rating.

    With --multilabel each probability column is a finding: rows need not sum
    to 1, and ratings say whether it is there: 1 or 0, yes or no, true or false.

    With --samples or --member the probabilities are the mean of the draws.
    """
    from raterwise.evaluate import evaluate as compute

    members = Members.of(samples, member)
    predictions = members.base(predictions)
    told = {**locals(), **vars(tables)}  # every option by its name, for a stream
    check_json(out)
    check_html(html)
    check_told(told)
    inputs = (predictions, ratings, outside, *members.paths)
    check_outputs((out, csv_out, html, save_summary), (*inputs, *checkpoint_files(checkpoint)))
    files: dict[str, Any] = {"html": html, "inputs": inputs, "quiet": quiet}
    request = streaming.StreamRequest(stream, save_summary, cluster, workers, checkpoint)
    if multilabel or request.wanted:
        _refuse_extras(told, multilabel=multilabel)
    if multilabel:
        results = evaluate_findings(told, tables, streamed=request.wanted)
        deliver(results, out, csv_out, **files)
        return
    refuse_finding_column(finding_column)
    if request.wanted:
        results = request.evaluate(told)
        notes = (*notes_on_stream(predictions, tables), *streaming.unused_in_stream(told))
        results = with_notes(results, notes)
        files["inputs"] = matching_files([predictions])
        deliver(results, out, csv_out, written=(save_summary,), **files)
        return
    with ProgressBar(shown=not quiet) as report:
        report(f"reading {predictions.name}", 0.0)
        used = (*(subgroup_column or ()), confidence_column or "")
        table, joined = read_joined(predictions, ratings, tables, used)
        results = compute(
            predictions_of_tables(
                table,
                joined,
                on_unrated=tables.on_unrated.value,
                probs=probabilities_or_belief(members, tables, table, joined),
                confidence=read_confidence(predictions, confidence_column, tables, table, joined),
                outside=read_outside_cases(outside, confidence_column, tables),
            ),
            metrics=metrics,
            **asked_of(bins, question, per, option, threshold),
            resamples=resamples,
            level=level,
            seed=seed,
            unit=unit.value,
            on_single=on_single.value,
            subgroups=read_subgroups(predictions, subgroup_column, tables, table, joined.report),
            subgroup_metrics=subgroup_metrics,
            target_prevalence=prevalences("--target-prevalence", target_prevalence),
            source_prevalence=prevalences("--source-prevalence", source_prevalence),
            progress=report,
        )
    results = replace(results, warnings=(*results.warnings, *members.notes(predictions)))
    deliver(results, out, csv_out, **files)


def _refuse_extras(told: Mapping[str, Any], *, multilabel: bool) -> None:
    """Refuse options that findings, or streams, would leave unread."""
    findings = ("samples", "member", "confidence_column", "outside")
    for name in findings if multilabel else ("samples", "member"):
        if told[name]:
            what = "findings have" if multilabel else "a stream has"
            raise InvalidInputError(f"{name}: {what} no such thing; leave it out")

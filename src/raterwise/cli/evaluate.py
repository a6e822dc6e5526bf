"""`raterwise evaluate`: predictions, ratings, every metric with an interval."""

from __future__ import annotations

from dataclasses import replace

from raterwise.cli import options
from raterwise.cli import stream as streaming
from raterwise.cli.findings import evaluate_findings, refuse_finding_column
from raterwise.cli.options import OnProblem, Unit, asked_of
from raterwise.cli.reading import TableOptions, read_joined, read_subgroups, with_table_options
from raterwise.cli.show import ProgressBar
from raterwise.cli.writing import check_json, check_outputs, deliver
from raterwise.io.outputs import checkpoint_files
from raterwise.io.tables import JoinReport
from raterwise.results import Results

__all__ = ["EXAMPLES", "evaluate"]

EXAMPLES = """[bold]Examples[/bold]

[dim]# ratings.csv has one row per (case, reader, label); whole patients are resampled[/dim]
raterwise evaluate predictions.csv --ratings ratings.csv --group-column patient

[dim]# one column per reader, in the same file as the probabilities[/dim]
raterwise evaluate all.parquet --id-column nodule --rater-columns smith,jones,lee

[dim]# one label per case, three metrics, results for a program to read[/dim]
raterwise evaluate cases.csv --label-column truth --metrics ece,brier,auccc --out results.json

[dim]# the same for every scanner and both sexes?[/dim]
raterwise evaluate cases.csv --label-column truth --subgroup-column scanner --subgroup-column sex

[dim]# the probability of the second of two classes; RECE-G with a narrower kernel[/dim]
raterwise evaluate cases.csv --label-column truth --question positive --option robust_ece.sigma=0.05

[dim]# findings that may occur together: prob_edema, prob_mass, reader_1_edema, …[/dim]
raterwise evaluate chest.csv --multilabel --group-column patient --out chest.json

[dim]# semicolons; two classes, of which the file has the second one's probability[/dim]
raterwise evaluate cases.csv --delimiter ";" --prob-columns risk --label-column biopsy"""


@with_table_options
def evaluate(
    tables: TableOptions,
    predictions: options.PredictionsFile,
    ratings: options.RatingsFile = None,
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
    on_single: options.OnSingle = OnProblem.error,
    subgroup_column: options.SubgroupColumn = None,
    subgroup_metrics: options.SubgroupMetrics = None,
    stream: streaming.Stream = False,
    save_summary: streaming.SaveSummary = None,
    cluster: streaming.Clustered = None,
    workers: streaming.Workers = None,
    checkpoint: streaming.Checkpointing = None,
    out: options.Out = None,
    csv_out: options.CsvOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how far the probabilities in a file can be trusted, with an interval on every figure.

    The first line of a table names its columns. Ratings are names of classes,
    or numbers: 0 is the class of the first probability column, 1 of the next.
    An empty cell is no rating.

    With --multilabel each probability column is a finding: rows need not sum
    to 1, and ratings say whether it is there: 1 or 0, yes or no, true or false.
    """
    told = {**locals(), **vars(tables)}  # every option by its name, for a stream
    from raterwise.evaluate import evaluate as compute

    check_json(out)
    read = predictions, ratings, *checkpoint_files(checkpoint)
    check_outputs((out, csv_out, save_summary), read)
    request = streaming.StreamRequest(stream, save_summary, cluster, workers, checkpoint)
    if multilabel:
        results = evaluate_findings(told, tables, streamed=request.wanted)
        deliver(results, out, csv_out, quiet=quiet)
        return
    refuse_finding_column(finding_column)
    if request.wanted:
        results = request.evaluate(told)
        deliver(results, out, csv_out, quiet=quiet, written=(save_summary,))
        return
    with ProgressBar(shown=not quiet) as report:
        report(f"reading {predictions.name}", 0.0)
        table, joined = read_joined(predictions, ratings, tables)
        results = compute(
            joined.probs,
            joined.labels,
            metrics=metrics,
            groups=joined.groups,
            class_names=table.class_names,
            weights=joined.weights,
            **asked_of(bins, question, per, option),
            resamples=resamples,
            level=level,
            seed=seed,
            unit=unit.value,
            on_unrated=tables.on_unrated.value,
            on_single=on_single.value,
            subgroups=read_subgroups(predictions, subgroup_column, tables, table, joined.report),
            subgroup_metrics=subgroup_metrics,
            progress=report,
        )
    deliver(_with_dropped(results, joined.report), out, csv_out, quiet=quiet)


def _with_dropped(results: Results, report: JoinReport) -> Results:
    """Return the results with the cases counted that never reached the evaluation."""
    dropped = {**report.dropped, **results.data.get("dropped", {})}
    return replace(results, data={**results.data, "dropped": dropped})

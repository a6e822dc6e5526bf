"""`quorate evaluate`: a table of predictions, a table of ratings, every metric with an interval."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

from quorate.cli import options
from quorate.cli import stream as streaming
from quorate.cli.options import OnProblem, Resample, comma_list
from quorate.cli.show import ProgressBar, print_results
from quorate.errors import InvalidInputError
from quorate.io.files import check_can_write, write_text_atomically
from quorate.io.tables import (
    JoinReport,
    RatingColumns,
    join,
    read_predictions,
    read_ratings,
)
from quorate.results import Results

__all__ = ["EXAMPLES", "evaluate", "metrics_as_csv"]

EXAMPLES = """[bold]Examples[/bold]

[dim]# ratings.csv has one row per (case, reader, label); whole patients are resampled[/dim]
quorate evaluate predictions.csv --ratings ratings.csv --group-column patient

[dim]# one column per reader, in the same file as the probabilities[/dim]
quorate evaluate all.parquet --id-column nodule --rater-columns smith,jones,lee

[dim]# one label per case, three metrics, results for a program to read[/dim]
quorate evaluate cases.csv --label-column truth --metrics ece,brier,auccc --out results.json

[dim]# semicolons; two classes, of which the file has the second one's probability[/dim]
quorate evaluate cases.csv --delimiter ";" --prob-columns risk --label-column biopsy"""

METRIC_COLUMNS = (
    *("name", "title", "group", "value", "low", "high", "debiased"),
    *("direction", "dropped", "undefined"),
)


def evaluate(
    predictions: options.PredictionsFile,
    ratings: options.RatingsFile = None,
    id_column: options.IdColumn = None,
    prob_prefix: options.ProbPrefix = "prob_",
    prob_columns: options.ProbColumns = None,
    class_names: options.ClassNames = None,
    label_column: options.LabelColumn = None,
    group_column: options.GroupColumn = None,
    weight_column: options.WeightColumn = None,
    delimiter: options.Delimiter = None,
    ratings_layout: options.RatingsLayout = None,
    ratings_id_column: options.RatingsIdColumn = None,
    rater_columns: options.RaterColumns = None,
    rater_prefix: options.RaterPrefix = None,
    rater_column: options.RaterColumn = None,
    rating_column: options.RatingColumn = None,
    count_columns: options.CountColumns = None,
    count_prefix: options.CountPrefix = None,
    missing: options.Missing = None,
    allow_unmatched: options.AllowUnmatched = False,
    metrics: options.Metrics = "all",
    bins: options.Bins = 15,
    resamples: options.Resamples = 1000,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    resample: options.ResampleWhat = Resample.cases,
    on_unrated: options.OnUnrated = OnProblem.error,
    on_single: options.OnSingle = OnProblem.error,
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
    """
    told = dict(locals())  # every option by its name, for a stream
    from quorate.evaluate import evaluate as compute

    for file in filter(None, (out, csv_out)):
        check_can_write(file)  # before the work, not after it
    request = streaming.StreamRequest(stream, save_summary, cluster, workers, checkpoint)
    if request.wanted:
        _deliver(request.evaluate(told), out, csv_out, quiet=quiet)
        return
    columns = RatingColumns(
        layout=ratings_layout and ratings_layout.value,
        rater_columns=comma_list(rater_columns),
        rater_prefix=rater_prefix,
        rater_column=rater_column,
        rating_column=rating_column,
        count_columns=comma_list(count_columns),
        count_prefix=count_prefix,
    )
    source = _file_of_ratings(predictions, ratings, columns, label_column)
    ids, absent = ratings_id_column or id_column, comma_list(missing)
    with ProgressBar(shown=not quiet) as report:
        report(f"reading {predictions.name}", 0.0)
        table = read_predictions(
            predictions,
            prob_prefix=prob_prefix,
            prob_columns=comma_list(prob_columns),
            class_names=comma_list(class_names) or None,
            id_column=id_column,
            label_column=label_column,
            group_column=group_column,
            weight_column=weight_column,
            missing=absent,
            delimiter=delimiter,
        )
        rated = None
        if source is not None:
            names = table.class_names
            rated = read_ratings(
                source, names, columns, id_column=ids, missing=absent, delimiter=delimiter
            )
        joined = join(table, rated, allow_unmatched=allow_unmatched)
        results = compute(
            joined.probs,
            joined.labels,
            metrics=metrics,
            groups=joined.groups,
            class_names=table.class_names,
            weights=joined.weights,
            bins=bins,
            resamples=resamples,
            level=level,
            seed=seed,
            resample=resample.value,
            on_unrated=on_unrated.value,
            on_single=on_single.value,
            progress=report,
        )
    _deliver(_with_dropped(results, joined.report), out, csv_out, quiet=quiet)


def _file_of_ratings(
    predictions: Path, ratings: Path | None, columns: RatingColumns, label_column: str | None
) -> Path | None:
    """Return the file to read ratings from: the one given, or that of the predictions, or none."""
    told = columns.layout is not None or bool(columns.named)
    if label_column is not None and (ratings is not None or told):
        raise InvalidInputError(
            f"label_column: is for one label per case, and {label_column!r} would be left unread; "
            "give it, or the ratings, but not both"
        )
    return predictions if ratings is None and told else ratings


def _with_dropped(results: Results, report: JoinReport) -> Results:
    """Return the results with the cases counted that never reached the evaluation."""
    dropped = {**report.dropped, **results.data.get("dropped", {})}
    return replace(results, data={**results.data, "dropped": dropped})


def _deliver(results: Results, out: Path | None, csv_out: Path | None, *, quiet: bool) -> None:
    if out is not None:
        results.to_json(out)
    if csv_out is not None:
        write_text_atomically(csv_out, metrics_as_csv(results))
    if not quiet:
        print_results(results)


def metrics_as_csv(results: Results) -> str:
    """Return one line per metric, with every digit; what a metric does not have stays empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(METRIC_COLUMNS)
    for estimate in results.values():
        writer.writerow(getattr(estimate, column) for column in METRIC_COLUMNS)
    return text.getvalue()

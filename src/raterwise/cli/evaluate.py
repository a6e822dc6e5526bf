"""`raterwise evaluate`: predictions, ratings, every metric with an interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from raterwise.catalog import find
from raterwise.cli import model_options, options
from raterwise.cli.findings import evaluate_findings, refuse_finding_column, refuse_unread
from raterwise.cli.members import Members
from raterwise.cli.options import Asked, Drawn, InUse, with_options
from raterwise.cli.parsing import comma_list
from raterwise.cli.reading import belief_of, read_confidence, read_subgroups
from raterwise.cli.stream import Streamed, stream_columns
from raterwise.cli.table_options import TableOptions
from raterwise.cli.writing import Files
from raterwise.errors import InvalidInputError
from raterwise.evaluate import evaluate as compute
from raterwise.io.cases import predictions_of_tables, read_tables
from raterwise.io.files import checkpoint_files
from raterwise.io.scores import read_outside
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


@with_options
def evaluate(
    asked: Asked,
    drawn: Drawn,
    in_use: InUse,
    streamed: Streamed,
    files: Files,
    tables: TableOptions,
    predictions: model_options.OptionalPredictionsFile = None,
    ratings: options.RatingsFile = None,
    samples: model_options.SamplesFile = None,
    member: model_options.MemberFiles = None,
    confidence_column: model_options.ConfidenceColumn = None,
    outside: model_options.OutsideFile = None,
    multilabel: options.Multilabel = False,
    finding_column: options.FindingColumn = None,
    metrics: options.Metrics = "all",
    subgroup_column: options.SubgroupColumn = None,
    subgroup_metrics: options.SubgroupMetrics = None,
) -> None:
    """Say how far the probabilities in a file can be trusted, with an interval on every figure.

    The first line of a table names its columns. Ratings are names of classes,
    or numbers: 0 is the class of the first probability column, 1 of the next.
    An empty cell is no rating.

    With --multilabel each probability column is a finding: rows need not sum
    to 1, and ratings say whether it is there: 1 or 0, yes or no, true or false.

    With --samples or --member the probabilities are the mean of the draws.
    """
    members = Members.of(samples, member)
    predictions = members.base(predictions)
    inputs = (predictions, ratings, outside, *members.paths)
    read = (*inputs, *checkpoint_files(streamed.checkpoint))
    files.check(read, streamed.save_summary)
    given = {"confidence": confidence_column is not None, "outside": outside is not None}
    asked.check(metrics, **drawn.told, **given)
    _check_metrics_by_level(subgroup_metrics)
    how: dict[str, Any] = {"metrics": metrics, **asked.told, **drawn.told, **in_use.told}
    how |= {"subgroup_metrics": subgroup_metrics}
    unread: dict[str, Any] = {"samples": samples, "member": member}
    if multilabel:
        unread |= {"confidence_column": confidence_column, "outside": outside}
        refuse_unread(unread, "findings")
        if streamed.wanted:
            raise InvalidInputError(
                "--multilabel: findings are read into memory; leave out the options that stream"
            )
    else:
        if streamed.wanted:
            refuse_unread(unread, "a stream")
        refuse_finding_column(finding_column)
    with files.progress() as report:
        if multilabel:
            report(f"reading {predictions.name}", 0.0)
            results = evaluate_findings(
                predictions, ratings, tables, finding_column, subgroup_column, report,
                on_unrated=tables.on_unrated, **how,
            )  # fmt: skip
        elif streamed.wanted:
            columns = stream_columns(tables, ratings, confidence_column)
            elsewhere = read_outside(outside, confidence_column, tables.told)
            results = streamed.evaluate(
                predictions, columns, report, outside=elsewhere, subgroups=subgroup_column,
                on_unrated=tables.on_unrated, **how,
            )  # fmt: skip
            inputs = tuple(matching_files([predictions]))
        else:
            report(f"reading {predictions.name}", 0.0)
            used = (*(subgroup_column or ()), confidence_column or "")
            table, joined = read_tables(predictions, ratings, tables.told, used)
            cases = predictions_of_tables(
                table,
                joined,
                on_unrated=tables.on_unrated,
                probs=belief_of(members, tables, table, joined),
                confidence=read_confidence(predictions, confidence_column, tables, joined),
                outside=read_outside(outside, confidence_column, tables.told),
            )
            levels = read_subgroups(predictions, subgroup_column, tables, joined.report)
            results = compute(cases, **how, subgroups=levels, progress=report)
            notes = members.notes(predictions)
            results = replace(results, warnings=(*results.warnings, *notes))
    files.deliver(results, inputs, streamed.save_summary)


def _check_metrics_by_level(names: str | None) -> None:
    for name in comma_list(names):
        try:
            find(name.strip())
        except InvalidInputError as error:
            raise error.renamed("subgroup_metrics") from None

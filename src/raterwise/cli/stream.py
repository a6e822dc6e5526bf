"""`raterwise evaluate` on tables larger than memory: parts, summaries, a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from raterwise.cli.options import ASKED, Duplicates, asked_of, comma_list, prevalences
from raterwise.cli.show import ProgressBar
from raterwise.errors import InvalidInputError
from raterwise.io.columns import unused_notes
from raterwise.io.sources import FORMATS, matching_files, open_table
from raterwise.results import Results

SCALE = "More cases than memory"
NOT_STREAMED = (".arrow", ".csv", ".feather", ".gz", ".ipc", ".npz", ".tsv", ".txt")

Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Read Parquet row groups or Zarr chunks one by one, in constant memory. The labels "
        "must be in the same files; a pattern may name several.",
        rich_help_panel=SCALE,
    ),
]
SaveSummary = Annotated[
    Path | None,
    typer.Option(
        help="Write a summary for raterwise merge; it holds no single case. Implies --stream.",
        rich_help_panel=SCALE,
    ),
]
Clustered = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="A Dask scheduler, tcp://host:port, or local for this machine. Implies --stream.",
        rich_help_panel=SCALE,
    ),
]
Workers = Annotated[
    int | None, typer.Option(help="Number of processes of --cluster local.", rich_help_panel=SCALE)
]
Checkpointing = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="Keep finished parts in this folder and resume from them. Implies --stream.",
        rich_help_panel=SCALE,
    ),
]


@dataclass(frozen=True)
class StreamRequest:
    """Whether and how to stream."""

    stream: bool = False
    save_summary: Path | None = None
    cluster: str | None = None
    workers: int | None = None
    checkpoint: Path | None = None

    @property
    def wanted(self) -> bool:
        """Whether any of the options asks for a stream."""
        return self.stream or any((self.save_summary, self.cluster, self.checkpoint))

    def evaluate(self, told: Mapping[str, Any]) -> Results:
        """Return the results of a table that is read part by part; `told` are all options."""
        from raterwise.streaming.evaluation import evaluate_stream

        if told["predictions"].suffix.lower() in NOT_STREAMED:
            raise InvalidInputError(
                f"{told['predictions']}: a stream is read from Parquet or Zarr; save it as one of "
                "them, or leave out the options that stream"
            )
        with (
            ProgressBar(shown=not told["quiet"]) as report,
            client_of(self.cluster, self.workers) as client,
        ):
            return evaluate_stream(
                told["predictions"],
                told["metrics"],
                told["resamples"],
                told["level"],
                told["seed"],
                unit=told["unit"].value,
                **asked_of(*(told[name] for name in ASKED)),
                outside=outside_of(told),
                on_unrated=told["on_unrated"].value,
                on_single=told["on_single"].value,
                subgroups=told["subgroup_column"],
                subgroup_metrics=told["subgroup_metrics"],
                target_prevalence=prevalences("--target-prevalence", told["target_prevalence"]),
                source_prevalence=prevalences("--source-prevalence", told["source_prevalence"]),
                client=client,
                checkpoint=self.checkpoint,
                save_summary=self.save_summary,
                progress=report,
                **stream_columns(told),
            )


@contextlib.contextmanager
def client_of(cluster: str | None, workers: int | None) -> Iterator[Any]:
    """Give a Dask client of the cluster that is asked for, or None where none is."""
    if cluster is None:
        yield None
        return
    from raterwise.streaming.cluster import connected

    with connected(cluster, workers) as client:
        yield client


def outside_of(told: Mapping[str, Any]) -> Any:
    """Return the cases from elsewhere, which are read at once; None where there are none."""
    from raterwise.io.scores import read_outside

    if told["outside"] is None:
        return None
    return read_outside(
        told["outside"], told["confidence_column"], prob_prefix=told["prob_prefix"],
        prob_columns=comma_list(told["prob_columns"]), delimiter=told["delimiter"],
        encoding=told["encoding"],
    )  # fmt: skip


def unused_in_stream(told: Mapping[str, Any]) -> tuple[str, ...]:
    """Return which columns of a stream look like something and were not read."""
    from raterwise.streaming.parts import StreamColumns

    file = matching_files([told["predictions"]])[0]
    if FORMATS.get(file.suffix.lower()) != "parquet":
        return ()
    table, apart = open_table(file), told["subgroup_column"] or ()
    used = StreamColumns.of(table.columns, subgroups=apart, **stream_columns(told)).needed
    return unused_notes(table, used)


def stream_columns(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of columns as `StreamColumns.of` takes them; refuse what streams lack."""
    for name in ("ratings", "ratings_layout", "rater_column", "rating_column"):
        if told[name]:
            raise InvalidInputError(
                f"{name}: a stream has its labels in the file of the probabilities, one row a case"
            )
    if told["duplicates"] is not Duplicates.error:
        raise InvalidInputError(
            f"duplicates: a stream has one row a case, so no rater says anything twice; got "
            f"{told['duplicates'].value!r}"
        )
    single = ("prob_prefix", "label_column", "rater_prefix", "count_prefix")
    read = ("normalize", "percent", "ignore_case")
    lists = ("prob_columns", "class_names", "rater_columns", "count_columns", "missing")
    return {
        **{name: told[name] for name in (*single, *read, "group_column", "weight_column")},
        "confidence_column": told["confidence_column"],
        **{name: comma_list(told[name]) for name in lists},
    }

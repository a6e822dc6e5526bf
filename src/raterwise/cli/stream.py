"""`raterwise evaluate` on tables larger than memory: parts, summaries, a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from raterwise.cli.options import in_panel
from raterwise.cli.table_options import TableOptions
from raterwise.cli.writing import with_notes
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Progress
from raterwise.io.sources import FORMATS, matching_files, open_table
from raterwise.io.unused_columns import unused_notes, unused_patients
from raterwise.results import Results
from raterwise.streaming.evaluation import evaluate_stream
from raterwise.streaming.parts import STREAMED, StreamColumns

SCALE = "More cases than memory"


@dataclass(frozen=True)
class Streamed:
    """Whether and how to stream."""

    stream: Annotated[
        bool,
        in_panel(
            SCALE,
            "Read Parquet row groups or Zarr chunks one by one, in constant memory. The labels "
            "must be in the same files; a pattern may name several.",
            "--stream",
        ),
    ] = False
    save_summary: Annotated[
        Path | None,
        in_panel(
            SCALE, "Write a summary for raterwise merge; it holds no single case. Implies --stream."
        ),
    ] = None
    cluster: Annotated[
        str | None,
        in_panel(
            SCALE,
            "A Dask scheduler, tcp://host:port, or local for this machine. Implies --stream.",
        ),
    ] = None
    workers: Annotated[int | None, in_panel(SCALE, "Number of processes of --cluster local.")] = (
        None
    )
    checkpoint: Annotated[
        Path | None,
        in_panel(
            SCALE, "Keep finished parts in this folder and resume from them. Implies --stream."
        ),
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether any of the options asks for a stream."""
        return self.stream or any((self.save_summary, self.cluster, self.checkpoint))

    def evaluate(
        self,
        predictions: Path,
        columns: Mapping[str, Any],
        report: Progress,
        **asked: Any,
    ) -> Results:
        """Return the results of a table that is read part by part, with notes on its columns."""
        with client_of(self.cluster, self.workers) as client:
            results = evaluate_stream(
                predictions,
                **asked,
                client=client,
                checkpoint=self.checkpoint,
                save_summary=self.save_summary,
                progress=report,
                **columns,
            )
        return with_notes(results, _notes(predictions, columns, asked["subgroups"] or ()))


@contextlib.contextmanager
def client_of(cluster: str | None, workers: int | None) -> Iterator[Any]:
    """Give a Dask client of the cluster that is asked for, or None where none is."""
    if cluster is None:
        yield None
        return
    from raterwise.streaming.cluster import connected

    with connected(cluster, workers) as client:
        yield client


def _notes(
    predictions: Path, columns: Mapping[str, Any], subgroups: Sequence[str]
) -> tuple[str, ...]:
    """Return which columns of a stream look like something and were not read."""
    file = matching_files([predictions])[0]
    if FORMATS.get(file.suffix.lower()) != "parquet":
        return ()
    table = open_table(file)
    patients = () if columns["group_column"] else unused_patients(table, (), look=False)
    used = StreamColumns.of(table.columns, subgroups=subgroups, **columns).needed
    return (*patients, *unused_notes(table, used))


def stream_columns(
    tables: TableOptions, ratings: Path | None, confidence_column: str | None
) -> dict[str, Any]:
    """Return the options of columns as `StreamColumns.of` takes them; refuse what streams lack."""
    unread = {"ratings": ratings, **vars(tables)}
    for name in ("ratings", "ratings_layout", "rater_column", "rating_column"):
        if unread[name]:
            raise InvalidInputError(
                f"{name}: a stream needs its labels in the file of the probabilities, with one row "
                "per case"
            )
    if tables.duplicates != "error":
        raise InvalidInputError(
            f"duplicates: is not for a stream, which has one row per case; got "
            f"{tables.duplicates!r}"
        )
    told = tables.told
    return {
        **{name: getattr(told, name) for name in STREAMED},
        "confidence_column": confidence_column,
    }

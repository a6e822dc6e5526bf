"""`quorate evaluate` on tables larger than memory: parts, summaries, a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from quorate.cli.options import OnProblem, comma_list
from quorate.cli.show import ProgressBar
from quorate.errors import InvalidInputError
from quorate.io.files import check_can_write
from quorate.results import Results

__all__ = ["Checkpointing", "Clustered", "SaveSummary", "Stream", "StreamRequest", "Workers"]

SCALE = "More cases than memory"

Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Read Parquet row groups or Zarr chunks one by one, in memory that does not grow. "
        "The labels must be in the same file, which may be a pattern.",
        rich_help_panel=SCALE,
    ),
]
SaveSummary = Annotated[
    Path | None,
    typer.Option(
        help="Write a summary, which holds no case, for quorate merge. Streams.",
        rich_help_panel=SCALE,
    ),
]
Clustered = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="A Dask scheduler, tcp://host:port, or local for this machine. Streams.",
        rich_help_panel=SCALE,
    ),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes of --cluster local.", rich_help_panel=SCALE)
]
Checkpointing = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="Keep finished parts in this folder, and go on from them. Streams.",
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

    def evaluate(
        self,
        predictions: Path,
        columns: dict[str, Any],
        metrics: str,
        bins: int,
        settings: Any,
        on_unrated: OnProblem,
        report: ProgressBar,
    ) -> Results:
        """Return the results of a table that is read part by part."""
        from quorate.binning import bin_edges
        from quorate.evaluate import rows_of
        from quorate.io.streams import PartJob, StreamColumns, digest_of_parts, parts_of
        from quorate.merged import asked_of, plans_of, results_of
        from quorate.summaries.saved import save_digest

        if self.save_summary is not None:
            check_can_write(self.save_summary)
        if settings.resample == "raters":
            raise InvalidInputError('resample: a stream can resample "cases" or patients only')
        bin_edges(bins)
        given = {"bins": bins}
        asked = asked_of(rows_of(metrics), given)
        report(f"looking at {predictions.name}", 0.0)
        parts, names = parts_of([predictions])
        job = PartJob(
            StreamColumns.of(names, **columns),
            tuple(plans_of(asked)),
            settings.seed,
            settings.resamples > 0,
            on_unrated.value,
        )
        digest = digest_of_parts(
            job,
            parts,
            cluster=self.cluster,
            workers=self.workers,
            checkpoint=self.checkpoint,
            progress=lambda what, done: report(what, 0.9 * done),
        )
        if self.save_summary is not None:
            about = {
                "metrics": list(asked), "bins": bins, "seed": settings.seed,
                "on_single": settings.on_single,
            }  # fmt: skip
            save_digest(self.save_summary, digest, about)
        return results_of(digest, asked, given, settings)


def stream_columns(**given: Any) -> dict[str, Any]:
    """Return the options of columns as `StreamColumns.of` takes them; refuse what streams lack."""
    for name in ("ratings", "ratings_layout", "rater_column", "rating_column", "allow_unmatched"):
        if given.pop(name, None):
            raise InvalidInputError(
                f"{name}: a stream has its labels in the file of the probabilities, one row a case"
            )
    for name in ("ratings_id_column", "id_column", "delimiter"):
        given.pop(name, None)
    for name in ("prob_columns", "class_names", "rater_columns", "count_columns", "missing"):
        given[name] = comma_list(given[name])
    return given

"""`quorate evaluate` on tables larger than memory: parts, summaries, a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from quorate.cli.options import comma_list
from quorate.cli.show import ProgressBar
from quorate.errors import InvalidInputError
from quorate.io.files import check_can_write
from quorate.results import Results

__all__ = ["StreamRequest"]

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

    def evaluate(self, told: Mapping[str, Any]) -> Results:
        """Return the results of a table that is read part by part; `told` are all options."""
        with ProgressBar(shown=not told["quiet"]) as report:
            return self._evaluate(told, report)

    def _evaluate(self, told: Mapping[str, Any], report: ProgressBar) -> Results:
        from quorate.binning import bin_edges
        from quorate.evaluate import rows_of
        from quorate.inference import Settings
        from quorate.io.streams import PartJob, StreamColumns, digest_of_parts, parts_of
        from quorate.merged import asked_of, plans_of, results_of
        from quorate.summaries.saved import save_digest

        if self.save_summary is not None:
            check_can_write(self.save_summary)
        if told["resample"].value == "raters":
            raise InvalidInputError('resample: a stream can resample "cases" or patients only')
        settings = Settings(
            told["resamples"], told["level"], told["seed"], on_single=told["on_single"].value
        )
        bin_edges(told["bins"])
        given = {"bins": told["bins"]}
        asked = asked_of(rows_of(told["metrics"]), given)
        parts, names = parts_of([told["predictions"]])
        job = PartJob(
            StreamColumns.of(names, **stream_columns(told)),
            tuple(plans_of(asked)),
            settings.seed,
            settings.resamples > 0,
            told["on_unrated"].value,
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
                "metrics": list(asked), **given, "seed": settings.seed,
                "on_single": settings.on_single,
            }  # fmt: skip
            save_digest(self.save_summary, digest, about)
        return results_of(digest, asked, given, settings)


def stream_columns(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of columns as `StreamColumns.of` takes them; refuse what streams lack."""
    for name in ("ratings", "ratings_layout", "rater_column", "rating_column"):
        if told[name]:
            raise InvalidInputError(
                f"{name}: a stream has its labels in the file of the probabilities, one row a case"
            )
    single = ("prob_prefix", "label_column", "rater_prefix", "count_prefix")
    lists = ("prob_columns", "class_names", "rater_columns", "count_columns", "missing")
    return {
        **{name: told[name] for name in (*single, "group_column", "weight_column")},
        **{name: comma_list(told[name]) for name in lists},
    }

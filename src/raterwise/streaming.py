"""Tables larger than memory: every metric from one pass over their parts, here or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from raterwise.binning import bin_edges
from raterwise.evaluate import rows_of
from raterwise.inference import Progress, Settings
from raterwise.io.files import check_can_write
from raterwise.io.streams import PartJob, StreamColumns, digest_of_parts, parts_of
from raterwise.merged import asked_of, plans_of, results_of
from raterwise.results import Results
from raterwise.summaries.saved import save_digest

__all__ = ["evaluate_stream"]

READING = 0.9
"""How much of the progress is reading and adding up; the rest is making intervals."""


def evaluate_stream(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    metrics: str | Sequence[str] = "all",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    *,
    bins: int = 15,
    on_unrated: str = "error",
    on_single: str = "error",
    threads: int | None = None,
    client: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    save_summary: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    **columns: Any,
) -> Results:
    """Return what `evaluate` does of tables that need not fit into memory.

    Each Parquet row group, or run of Zarr chunks, is read once, summarised and forgotten. Metrics
    of ranks, quantiles and kernels come from fine cells and say how far they may be from the exact
    value (`bound`). Patients or cases are pooled into 512 blocks for the intervals.

    Parameters
    ----------
    paths
        Parquet files or Zarr stores with the same columns, or patterns of their names.
    metrics, resamples, level, seed, bins, on_unrated, on_single
        As in `evaluate`.
    client
        A Dask client: parts are summarised by its workers, with the same digits.
    checkpoint
        A folder that keeps finished parts, so that a run that was killed goes on.
    save_summary
        A file for the summary, which holds no case, for `raterwise merge`.
    progress
        Called with a description and the fraction done.
    columns
        Which column is what, as options of `raterwise evaluate`: `prob_prefix` or `prob_columns`,
        `label_column`, `rater_columns` or `rater_prefix`, `count_columns` or `count_prefix`,
        `group_column`, `weight_column`, `class_names`, `missing`.

    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> path = getfixture("tmp_path") / "cases.parquet"
    >>> pq.write_table(pa.table({"prob_1": [0.9, 0.8, 0.3, 0.4], "y": [1, 0, 0, 0]}), path)
    >>> evaluate_stream(path, "accuracy", resamples=0, label_column="y")["accuracy"].value
    0.75
    """
    if save_summary is not None:
        check_can_write(save_summary)
    settings = Settings(resamples, level, seed, on_single=on_single, threads=threads)
    bin_edges(bins)
    given = {"bins": bins}
    asked = asked_of(rows_of(metrics), given)
    parts, names = parts_of([paths] if isinstance(paths, str | PathLike) else list(paths))
    job = PartJob(
        StreamColumns.of(names, **columns),
        tuple(plans_of(asked)),
        seed,
        resamples > 0,
        on_unrated,
        threads,
    )
    report = progress or (lambda what, done: None)
    digest = digest_of_parts(
        job,
        parts,
        cluster=client,
        checkpoint=checkpoint,
        progress=lambda what, done: report(what, READING * done),
    )
    if save_summary is not None:
        about = {"metrics": list(asked), **given, "seed": seed, "on_single": on_single}
        save_digest(fspath(save_summary), digest, about)
    return results_of(
        digest,
        asked,
        given,
        settings,
        lambda what, done: report(what, READING + (1 - READING) * done),
    )

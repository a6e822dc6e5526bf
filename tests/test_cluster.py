"""A real Dask cluster of two processes: the same digits, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import quorate as qr
from quorate.cli.app import app
from quorate.engines.checkpoint import Checkpoint
from quorate.engines.dask import connected, merged_on_cluster, results_on_cluster
from quorate.evaluate import rows_of
from quorate.io import streams
from quorate.merged import asked_of, plans_of
from quorate.predictions import Predictions
from quorate.summaries.digest import Digest, merged_in_order
from test_streaming import assert_same_digits, table
from test_volumes import study

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

Array = NDArray[Any]
PLANS = plans_of(asked_of(rows_of("ece,brier,auccc"), {}))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Give a client of two worker processes on this machine."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as own,
    ):
        yield own


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[streams.PartJob, list[streams.Part]]:
    """Give what is asked of a Parquet file, and its forty parts."""
    path = tmp_path_factory.mktemp("cluster") / "t.parquet"
    pq.write_table(table(2000), path, row_group_size=50)
    parts, columns = streams.parts_of([path])
    chosen = streams.StreamColumns.of(columns, rater_columns=("r0", "r1", "r2"))
    return streams.PartJob(chosen, tuple(PLANS), 0, False, threads=1), parts


def slow_digest(job: streams.PartJob, seconds: float, part: streams.Part) -> Digest:
    """Take a while over a part, as real ones do."""
    time.sleep(seconds)
    return streams.digest_of_part(job, part)


def failing_digest(job: streams.PartJob, part: streams.Part) -> Digest:
    """Fail on one part as a disk does, and on no other."""
    if part.group == 7:
        raise OSError("the disk is gone")
    return streams.digest_of_part(job, part)


def test_the_digits_are_those_of_this_process(client: Any, job: Any) -> None:
    """Forty parts on two workers add up to what they add up to here, bit by bit."""
    request, parts = job
    here = merged_in_order(streams.digest_of_part(request, part) for part in parts)
    assert_same_digits(streams.digest_of_parts(request, parts, cluster=client), here)
    address = client.scheduler.address
    seen: list[float] = []
    there = streams.digest_of_parts(
        request, parts, cluster=address, progress=lambda what, done: seen.append(done)
    )
    assert_same_digits(there, here)
    assert seen[-1] == 1.0 and len(seen) == len(parts)


def test_a_killed_worker_changes_nothing(client: Any, job: Any) -> None:
    """One of the two workers is killed in the middle; its parts are done again elsewhere."""
    request, parts = job
    here = merged_in_order(streams.digest_of_part(request, part) for part in parts)
    workers = client.run(os.getpid)
    victim = next(iter(workers.values()))
    killed: list[int] = []

    def kill_one(what: str, done: float) -> None:
        if done > 0.2 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    function = partial(slow_digest, request, 0.02)
    names = [part.name for part in parts]
    there = merged_on_cluster(function, parts, client, names=names, progress=kill_one)
    assert killed == [victim]
    assert_same_digits(there, here)
    client.wait_for_workers(2, timeout=20)
    assert victim not in client.run(os.getpid).values()


def test_a_part_that_fails_is_named(client: Any, job: Any, tmp_path: Path) -> None:
    """Bad data name the file and the row group; so does a disk that fails."""
    request, parts = job
    frame = table(100).set_column(0, "prob_a", [np.full(100, 1.5)])
    pq.write_table(frame, tmp_path / "bad.parquet", row_group_size=50)
    bad, _ = streams.parts_of([tmp_path / "bad.parquet"])
    with pytest.raises(qr.InvalidInputError, match=r"bad\.parquet, row group [01]: .*1\.5"):
        streams.digest_of_parts(request, bad, cluster=client)
    names = [part.name for part in parts]
    function = partial(failing_digest, request)
    with pytest.raises(qr.InvalidInputError, match=r"t\.parquet, row group 7.*the disk is gone"):
        merged_on_cluster(function, parts, client, names=names, retries=0)
    with pytest.raises(qr.InvalidInputError, match=r"t\.parquet, row group 7.*the disk is gone"):
        list(results_on_cluster(function, parts, client, names=names, retries=0))


def test_stopping_leaves_nothing_behind(client: Any, job: Any) -> None:
    """Ctrl-C in the middle cancels what is still on the cluster."""
    request, parts = job

    def stop(what: str, done: float) -> None:
        raise KeyboardInterrupt

    names = [part.name for part in parts]
    for run in (merged_on_cluster, results_on_cluster):

        def interrupted(run: Any = run) -> None:
            function = partial(slow_digest, request, 0.05)
            list(run(function, parts, client, names=names, progress=stop))

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        for _ in range(100):
            if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
                break
            time.sleep(0.05)
        else:
            pytest.fail("tasks are still on the scheduler")


def test_a_run_goes_on_where_it_was_killed(client: Any, job: Any, tmp_path: Path) -> None:
    """Parts that finished before the end of a run are kept, and not done again."""
    request, parts = job
    names = [part.name for part in parts]
    kept = Checkpoint.open(tmp_path / "kept", {"job": 1})
    with pytest.raises(qr.InvalidInputError, match="row group 7"):
        merged_on_cluster(
            partial(failing_digest, request), parts, client, names=names, checkpoint=kept, retries=0
        )
    assert [kept.has(i) for i in range(9)] == [True] * 7 + [False] * 2
    before = (tmp_path / "kept" / "part_000003.npz").stat().st_mtime_ns
    resumed = merged_on_cluster(
        partial(streams.digest_of_part, request), parts, client, names=names, checkpoint=kept
    )
    assert (tmp_path / "kept" / "part_000003.npz").stat().st_mtime_ns == before
    here = merged_in_order(streams.digest_of_part(request, part) for part in parts)
    assert_same_digits(resumed, here)


def test_images_on_a_cluster(client: Any, tmp_path: Path) -> None:
    """`quorate segment --cluster` writes what it writes without one, skipped images included."""
    manifest, _ = study(tmp_path)
    (tmp_path / "p1.nii.gz").write_bytes(b"damaged")
    options = [
        "segment", str(manifest), "--metrics", "ece,kde_ece,auccc", "--skip-bad", "--resamples",
        "20", "-q",
    ]  # fmt: skip
    for where in ([], ["--cluster", client.scheduler.address, "--checkpoint", f"{tmp_path}/kept"]):
        out = tmp_path / f"{len(where)}.json"
        done = CliRunner().invoke(app, [*options, *where, "--out", str(out)])
        assert done.exit_code == 0, done.output
    here, there = (json.loads((tmp_path / f"{n}.json").read_text()) for n in (0, 4))
    assert here == there
    assert here["data"]["dropped"] == {"bad images": 1}


def test_what_is_no_cluster_is_refused() -> None:
    """An address where nobody answers, and what is no address at all, are errors."""
    with pytest.raises(qr.InvalidInputError, match="cluster: must be"), connected(42):
        pass
    with (
        pytest.raises(qr.InvalidInputError, match="cluster: no scheduler answers"),
        connected("x:"),
    ):
        pass


def test_one_part_needs_no_addition(client: Any) -> None:
    """A single part is its own sum, and no parts are an error."""
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    whole = Predictions.of(probs, probs.argmax(axis=1))
    from quorate.engines.streaming import digest

    function = partial(digest, plans=PLANS[:2])
    there = merged_on_cluster(function, [whole], client, names=["all"])
    assert_same_digits(there, digest(whole, PLANS[:2]))
    with pytest.raises(qr.InvalidInputError, match="at least one"):
        merged_on_cluster(function, [], client, names=[])

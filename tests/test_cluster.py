"""A real Dask cluster of two processes: the same digits, whatever happens to the workers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
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

import raterwise as rw
from raterwise.cli.app import app
from raterwise.evaluation.request import Request
from raterwise.segmentation import Case
from raterwise.streaming import digests
from raterwise.streaming import parts as streams
from raterwise.streaming.cluster import connected, merged_on_cluster, results_on_cluster
from raterwise.streaming.saved import Checkpoint
from raterwise.summaries.digest import Digest, merged_in_order
from test_streaming import assert_same_digits, table
from test_volumes import image_and_masks, study

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

Array = NDArray[Any]
PLANS = Request.of("ece,brier,auccc").plans(bounded=True)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Give a client of two worker processes on this machine."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # 8787 may be another run's
        ) as cluster,
        distributed.Client(cluster) as own,
    ):
        yield own


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[digests.PartJob, list[streams.Part]]:
    """Give what is asked of a Parquet file, and its forty parts."""
    path = tmp_path_factory.mktemp("cluster") / "t.parquet"
    pq.write_table(table(2000), path, row_group_size=50)
    parts, columns = streams.parts_of([path])
    chosen = streams.StreamColumns.of(columns, rater_columns=("r0", "r1", "r2"))
    return digests.PartJob(chosen, tuple(PLANS), 0, False), parts


def slow_digest(job: digests.PartJob, seconds: float, part: streams.Part) -> Digest:
    """Take a while over a part, as real ones do."""
    time.sleep(seconds)
    return digests.digest_of_part(job, part)


def failing_digest(job: digests.PartJob, part: streams.Part) -> Digest:
    """Fail on one part as a disk does, and on no other."""
    if part.group == 7:
        raise OSError("the disk is gone")
    return digests.digest_of_part(job, part)


def test_the_digits_are_those_of_this_process(client: Any, job: Any) -> None:
    """Forty parts on two workers add up to what they add up to here, bit by bit."""
    request, parts = job
    here = merged_in_order(digests.digest_of_part(request, part) for part in parts)
    assert_same_digits(digests.digest_of_parts(request, parts, cluster=client), here)
    address = client.scheduler.address
    seen: list[float] = []
    there = digests.digest_of_parts(
        request, parts, cluster=address, progress=lambda what, done: seen.append(done)
    )
    assert_same_digits(there, here)
    assert seen[-1] == 1.0 and len(seen) == len(parts)


def test_a_stream_in_python_takes_a_client(client: Any, tmp_path: Path) -> None:
    """`evaluate_stream` has the same digits with a client, and keeps what it has finished."""
    pq.write_table(table(600), tmp_path / "t.parquet", row_group_size=60)
    told = {"rater_prefix": "r", "group_column": "patient", "resamples": 20}
    here = rw.evaluate_stream(tmp_path / "t.parquet", "ece,auccc", **told)
    there = rw.evaluate_stream([tmp_path / "*.parquet"], "ece,auccc", client=client, **told)
    assert digits(there) == digits(here)
    kept = tmp_path / "kept"
    again = rw.evaluate_stream(
        tmp_path / "t.parquet", "ece,auccc", client=client, checkpoint=kept, **told
    )
    assert digits(again) == digits(here) and len(list(kept.glob("part_*"))) == 10


def test_a_killed_worker_changes_nothing(client: Any, job: Any) -> None:
    """One of the two workers is killed in the middle; its parts are done again elsewhere."""
    request, parts = job
    here = merged_in_order(digests.digest_of_part(request, part) for part in parts)
    workers = client.run(os.getpid)
    victim = next(iter(workers.values()))
    killed: list[int] = []

    def kill_one(what: str, done: float) -> None:
        if done > 0.2 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    function = partial(slow_digest, request, 0.02)
    there = merged_on_cluster(function, parts, client, progress=kill_one)
    assert killed == [victim]
    assert_same_digits(there, here)
    client.wait_for_workers(2, timeout=20)
    assert victim not in client.run(os.getpid).values()


def untold_digest(folder: Path, part: streams.Part) -> Digest:
    """Fail, and leave a file that tells of the attempt."""
    (folder / str(time.time_ns())).touch()
    raise OSError("the disk is gone")


def test_a_part_that_fails_is_tried_once_more(client: Any, job: Any, tmp_path: Path) -> None:
    """There are two attempts, whether results are added there or come back."""
    for i, run in enumerate((merged_on_cluster, results_on_cluster)):
        folder = tmp_path / str(i)
        folder.mkdir()
        with pytest.raises(rw.InvalidInputError, match="the disk is gone"):
            list(run(partial(untold_digest, folder), job[1][:1], client))
        assert len(list(folder.iterdir())) == 2


def test_a_part_that_fails_is_named(client: Any, job: Any, tmp_path: Path) -> None:
    """Bad data name the file and the row group; so does a disk that fails."""
    request, parts = job
    frame = table(100).set_column(0, "prob_a", [np.full(100, 1.5)])
    pq.write_table(frame, tmp_path / "bad.parquet", row_group_size=50)
    bad, _ = streams.parts_of([tmp_path / "bad.parquet"])
    with pytest.raises(rw.InvalidInputError, match=r"bad\.parquet, row group [01]: .*1\.5"):
        digests.digest_of_parts(request, bad, cluster=client)
    function = partial(failing_digest, request)
    with pytest.raises(rw.InvalidInputError, match=r"t\.parquet, row group 7.*the disk is gone"):
        merged_on_cluster(function, parts, client)
    with pytest.raises(rw.InvalidInputError, match=r"t\.parquet, row group 7.*the disk is gone"):
        list(results_on_cluster(function, parts, client))


def test_stopping_leaves_nothing_behind(client: Any, job: Any) -> None:
    """Ctrl-C in the middle cancels what is still on the cluster."""
    request, parts = job

    def stop(what: str, done: float) -> None:
        raise KeyboardInterrupt

    for run in (merged_on_cluster, results_on_cluster):

        def interrupted(run: Any = run) -> None:
            function = partial(slow_digest, request, 0.05)
            list(run(function, parts, client, progress=stop))

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        wait_for_no_tasks(client)


def test_a_run_goes_on_where_it_was_killed(client: Any, job: Any, tmp_path: Path) -> None:
    """Parts that finished before the end of a run are kept, and not done again."""
    request, parts = job
    kept = Checkpoint.open(tmp_path / "kept", {"job": 1})
    with pytest.raises(rw.InvalidInputError, match="row group 7"):
        merged_on_cluster(
            partial(failing_digest, request),
            parts,
            client,
            checkpoint=kept,
        )  # fmt: skip
    assert [kept.has(i) for i in range(9)] == [True] * 7 + [False] * 2
    before = (tmp_path / "kept" / "part_000003.npz").stat().st_mtime_ns
    resumed = merged_on_cluster(
        partial(digests.digest_of_part, request), parts, client, checkpoint=kept
    )
    assert (tmp_path / "kept" / "part_000003.npz").stat().st_mtime_ns == before
    here = merged_in_order(digests.digest_of_part(request, part) for part in parts)
    assert_same_digits(resumed, here)


def test_images_on_a_cluster(client: Any, tmp_path: Path) -> None:
    """`raterwise segment --cluster` writes what it writes without one, skipped images included."""
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
    assert "--cluster" in there.pop("provenance")["call"] and here.pop("provenance")
    assert here == there
    assert here["data"]["dropped"] == {"bad images": 1}


# images in Python ---------------------------------------------------------------------------------


def slow_case(path: Path, seconds: float) -> Case:
    """Open an image that a function stands for, in a while."""
    time.sleep(seconds)
    image, masks = image_and_masks(int(path.name))
    return Case(image, masks, name=path.name, patient=f"p{int(path.name) // 2}")


def no_case() -> Case:
    """Fail as code that somebody else wrote does."""
    raise KeyError("no such scan")


def openers(number: int, seconds: float = 0.0) -> list[Any]:
    """Return functions that open images."""
    return [partial(slow_case, Path(str(i)), seconds) for i in range(number)]


def digits(results: rw.Results) -> str:
    """Return results with every digit."""
    return json.dumps(results.to_dict())


@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
def test_images_have_the_digits_of_this_process(
    client: Any, tmp_path: Path, reduction: str
) -> None:
    """Arrays, a generator of them, files and functions: a cluster's digits are those of here."""
    manifest, cases = study(tmp_path, cases=5)
    metrics = "ece,kde_ece,auccc,disagreement_calibration_error"

    def evaluate(images: Any, **where: Any) -> rw.Results:
        return rw.segmentation.evaluate(images, metrics, reduction, resamples=20, **where)

    here = digits(evaluate(cases))
    seen: list[float] = []
    where = {"client": client, "progress": lambda what, done: seen.append(done)}
    assert digits(evaluate(cases, **where)) == here
    assert seen == [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]
    assert digits(evaluate(iter(cases), client=client)) == here
    files = rw.segmentation.read_manifest(manifest)
    here = digits(evaluate(files))  # whose voxels are added up in the order of the files
    assert digits(evaluate(files, client=client, checkpoint=tmp_path / "kept")) == here
    assert len(list((tmp_path / "kept").glob("part_*.npz"))) == 5
    assert digits(evaluate(files, checkpoint=tmp_path / "kept")) == here
    assert digits(evaluate(openers(3), client=client)) == digits(evaluate(openers(3)))


def test_images_survive_a_killed_worker(client: Any) -> None:
    """A worker killed in the middle changes no digit of the images."""
    here = digits(rw.segmentation.evaluate(openers(16), "ece,brier", resamples=20))
    victim = next(iter(client.run(os.getpid).values()))
    killed: list[int] = []

    def kill_one(what: str, done: float) -> None:
        if done > 0.2 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    there = rw.segmentation.evaluate(
        openers(16, 0.05), "ece,brier", resamples=20, client=client, progress=kill_one
    )
    assert killed == [victim] and digits(there) == here
    client.wait_for_workers(2, timeout=20)


def test_an_image_that_fails_names_its_file(client: Any, tmp_path: Path) -> None:
    """A damaged file is named with its case, or left out on request; so is a function's error."""
    manifest, _ = study(tmp_path)
    (tmp_path / "p1.nii.gz").write_bytes(b"damaged")
    files = rw.segmentation.read_manifest(manifest)
    for where in ({}, {"client": client}):
        with pytest.raises(rw.InvalidInputError, match=r"case c1: .*p1\.nii\.gz.*skip_bad=True"):
            rw.segmentation.evaluate(files, "ece", resamples=0, **where)
        kept = tmp_path / f"kept{len(where)}"
        found = rw.segmentation.evaluate(
            files, "ece", resamples=0, skip_bad=True, checkpoint=kept, **where
        )
        assert len(list(kept.glob("part_*.npz"))) == 3  # those that can be used
        assert found.data["cases"] == 3 and found.data["dropped"] == {"bad images": 1}
        assert any("case c1" in note and "p1.nii.gz" in note for note in found.warnings)
    with pytest.raises(rw.InvalidInputError, match=r"case 1: failed .*KeyError: 'no such scan'"):
        rw.segmentation.evaluate([*openers(1), no_case], "ece", client=client)


def test_stopping_images_leaves_nothing_behind(client: Any) -> None:
    """Ctrl-C among images withdraws those that wait, and a generator is not read to its end."""
    read: list[int] = []

    def images() -> Iterator[Any]:
        for i, opener in enumerate(openers(200, 0.02)):
            read.append(i)
            yield opener

    class Counted:
        def __iter__(self) -> Iterator[Any]:
            return images()

        def __len__(self) -> int:
            return 200

    def stop(what: str, done: float) -> None:
        if done >= 5 / 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rw.segmentation.evaluate(Counted(), "ece", client=client, progress=stop)
    assert len(read) < 30
    wait_for_no_tasks(client)


def wait_for_no_tasks(client: Any) -> None:
    """Wait until the scheduler has forgotten everything; fail where it does not."""
    for _ in range(100):
        if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            return
        time.sleep(0.05)
    pytest.fail("tasks are still on the scheduler")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Give the address of a scheduler with a worker, each started by its own command."""
    told = tmp_path / "scheduler.json"
    commands = [
        ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        ["dask_worker", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)],
    ]
    with contextlib.ExitStack() as started:
        for module, *options in commands:
            command = [sys.executable, "-m", f"distributed.cli.{module}", *options]
            process = subprocess.Popen(
                [*command, "--scheduler-file", str(told)], cwd=tmp_path, stderr=subprocess.DEVNULL
            )
            started.callback(process.wait)
            started.callback(process.terminate)
        for _ in range(600):
            if told.exists() and told.read_text().strip():
                break
            time.sleep(0.05)
        found: str = json.loads(told.read_text())["address"]
        yield found


def test_a_scheduler_and_a_worker_of_their_own(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--cluster tcp://…` finds workers in other folders; the files are found by them."""
    folder = tmp_path / "study"
    folder.mkdir()
    study(folder, cases=2)
    monkeypatch.chdir(folder)
    command = ["segment", "manifest.csv", "--metrics", "ece", "--resamples", "0", "-q"]
    for where, out in ((["--cluster", address, "--maps", "maps"], "there"), ([], "here")):
        done = CliRunner().invoke(app, [*command, *where, "--out", f"{out}.json"])
        assert done.exit_code == 0, done.output
    there, here = (json.loads(Path(f"{name}.json").read_text()) for name in ("there", "here"))
    assert there.pop("provenance")["inputs"] == here.pop("provenance")["inputs"]
    assert there == here
    assert len(list(Path("maps").glob("*.nii.gz"))) == 2


def test_what_is_no_cluster_is_refused() -> None:
    """An address where nobody answers, and what is no address at all, are errors."""
    with pytest.raises(rw.InvalidInputError, match="cluster: must be"), connected(42):
        pass
    with (
        pytest.raises(rw.InvalidInputError, match="cluster: no scheduler answers"),
        connected("x:"),
    ):
        pass


def test_one_part_needs_no_addition(client: Any, job: Any) -> None:
    """A single part is its own sum, and no parts are an error."""
    request, parts = job
    function = partial(digests.digest_of_part, request)
    there = merged_on_cluster(function, parts[:1], client)
    assert_same_digits(there, function(parts[0]))
    with pytest.raises(rw.InvalidInputError, match="at least one"):
        merged_on_cluster(function, [], client)


def test_a_local_cluster_is_closed_to_others() -> None:
    """Scheduler and workers speak TLS with their own certificates, and show no pages."""
    with connected("local", 1) as client:
        address = client.scheduler.address
        assert address.startswith("tls://")
        assert all(name.startswith("tls://") for name in client.scheduler_info()["workers"])
        with pytest.raises((OSError, TypeError, distributed.comm.core.CommClosedError)):
            distributed.Client(address.replace("tls://", "tcp://"), timeout="5s")
        for page in ("info/main/workers.html", "status", "metrics", "json/counts.json", "health"):
            port = client.scheduler_info()["services"]["dashboard"]
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10)
        assert client.submit(len, "abc").result() == 3

"""Parts of the cases on a Dask cluster: the same parts, added in the same order, the same digits.

Dask does the scheduling, the retries and the transport; a part that was on a worker that died is
done again elsewhere. Ours is the function of a part, and `+`.
"""

from __future__ import annotations

import contextlib
import logging
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from importlib import import_module
from typing import Any

from raterwise.errors import InvalidInputError, RaterwiseError, missing_extra, named
from raterwise.inference.settings import Progress
from raterwise.kernels._threads import with_threads
from raterwise.streaming.saved import Checkpoint
from raterwise.summaries.digest import Digest, additions, merged_in_order

RETRIES = 1
"""How often a part that failed is tried again."""
IN_FLIGHT = 4
"""Parts per thread of the cluster that are scheduled ahead; more would only fill the scheduler."""

NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""Without a dashboard, Dask would still show tasks and logs to everybody on the machine."""


@contextlib.contextmanager
def connected(cluster: Any, workers: int | None = None) -> Iterator[Any]:
    """Give a Dask client for "local", an address such as "tcp://10.0.0.1:8786", or a client.

    "local" starts worker processes on this machine, as many as it has processors unless told
    otherwise, and stops them afterwards. A client that was given is left open.
    """
    distributed = _distributed()
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    if not isinstance(cluster, str):
        raise InvalidInputError(
            f'cluster: must be "local", an address or a Dask client; got {cluster!r}'
        )
    if cluster == "local":
        with _local_cluster(workers) as own, distributed.Client(own) as client:
            yield client
        return
    try:
        client = distributed.Client(cluster, timeout="10s")
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"cluster: no scheduler answers at {cluster!r} ({error})"
        ) from error
    with client:
        yield client


@contextlib.contextmanager
def _local_cluster(workers: int | None) -> Iterator[Any]:
    """Start worker processes here, and stop them; how they end is no news."""
    try:
        with (
            import_module("dask").config.set(NO_PAGES),
            _distributed().LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                # Dask listens for web pages all the same: here, on a port that is free.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                security=_own_certificates(),
                preload=["raterwise.streaming.cluster_worker"],
            ) as cluster,
        ):
            try:
                yield cluster
            finally:
                logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
    except KeyboardInterrupt:  # while they are being started, most often
        for name in ("distributed", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        raise


def _own_certificates() -> bool:
    """Return that workers and scheduler speak TLS with certificates made for this run alone.

    Without it, every account of the machine could connect and run code as the user.
    """
    try:
        import_module("cryptography")
    except ImportError as error:
        raise missing_extra("a protected local cluster", "dask") from error
    return True


def results_on_cluster(
    function: Callable[[Any], Any],
    parts: Iterable[Any],
    client: Any,
    *,
    total: int | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    keep: Callable[[Any], bool] = lambda result: True,
    ahead: int = IN_FLIGHT,
) -> Iterator[Any]:
    """Yield function(part) of every part, in order; an error has the `part.name` it comes from.

    Parts are taken from the iterable as the cluster gets to them, `ahead` of them per thread;
    `total` is how many there are, where the iterable has no length.
    Results that are in the checkpoint are read, not made again, and those that are made are put
    there if `keep` says so. Whoever stops early, by an error or Ctrl-C, cancels what is still on
    the cluster.
    """
    most = ahead * max(sum(client.nthreads().values()), 2)
    total = len(parts) if isinstance(parts, Sized) else total
    source = enumerate(parts)
    # Number, name and future of the parts in order; no future where a result is kept.
    waiting: deque[tuple[int, str, Any]] = deque()
    made: dict[int, Any] = {}

    def submit() -> None:
        busy = sum(future is not None and i not in made for i, _, future in waiting)
        while busy < most and (following := next(source, None)) is not None:
            i, part = following
            future = None
            if checkpoint is None or not checkpoint.has(i):
                future = _submitted(client, function, part, i)
                busy += 1
            waiting.append((i, part.name, future))

    def fetch(first: Any, name: str) -> None:
        """Get the result of the first, and in the same exchange of all others that are done."""
        _wait_for(first, name)
        done = {i: f for i, _, f in waiting if f is not None and f.status == "finished"}
        new = [i for i in done if i not in made]
        made.update(zip(new, client.gather([done[i] for i in new]), strict=True))

    try:
        submit()
        while waiting:
            i, name, future = waiting[0]
            if future is None:
                assert checkpoint is not None
                result = checkpoint.get(i)
            else:
                if i not in made:
                    fetch(future, name)
                result = made.pop(i)
                if checkpoint is not None and keep(result):
                    checkpoint.put(i, result)
            waiting.popleft()
            submit()
            if progress and total:
                progress(f"{name} ({i + 1} of {total})", (i + 1) / total)
            yield result
    finally:
        _let_go(future for _, _, future in waiting if future is not None)


def merged_on_cluster(
    function: Callable[[Any], Digest],
    parts: Sequence[Any],
    client: Any,
    *,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Digest:
    """Return the sum of the digests of all parts, added on the workers as in `merged_in_order`.

    With a checkpoint every digest comes to this process to be kept, and is added here.
    """
    if checkpoint is not None:
        return merged_in_order(
            results_on_cluster(function, parts, client, checkpoint=checkpoint, progress=progress)
        )
    if not parts:
        raise InvalidInputError("cases: must be at least one; got none")
    leaves: list[Any] = []
    nodes: dict[int, Any] = {}
    try:
        for i, part in enumerate(parts):
            leaves.append(_submitted(client, function, part, i))
        place = {future.key: i for i, future in enumerate(leaves)}
        nodes = dict(enumerate(leaves))
        for left, right in additions(len(parts)):
            nodes[left] = client.submit(operator.add, nodes[left], nodes[right], pure=False)
        for done, future in enumerate(_distributed().as_completed(leaves), start=1):
            if future.status == "error":
                raise _explained(future, parts[place[future.key]].name)
            if progress:
                progress(f"part {done} of {len(parts)}", done / len(parts))
            if future is not nodes[0]:
                future.release()  # the addition that waits for it keeps it as long as needed
        _wait_for(nodes[0], "the sum of all parts")
        total: Digest = nodes[0].result()
        return total
    finally:
        _let_go([*leaves, *nodes.values()])


def _let_go(futures: Iterable[Any]) -> None:
    """Tell the scheduler that nobody wants these any more: what has not begun never will."""
    for future in futures:
        future.release()


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError as error:
        raise missing_extra("a cluster needs Dask", "dask") from error


def _submitted(client: Any, function: Callable[[Any], Any], part: Any, place: int) -> Any:
    """Return the future of function(part); earlier parts come first."""
    return client.submit(_named, function, part, retries=RETRIES, pure=False, priority=-place)


def _named(function: Callable[[Any], Any], part: Any) -> Any:
    """Run on a worker: whatever goes wrong says with which part.

    In one thread: as many parts run at once as the worker has threads.
    """
    try:
        with with_threads(1):
            return function(part)
    except RaterwiseError as error:
        raise InvalidInputError(named(error, part.name)) from error


def _wait_for(future: Any, name: str) -> None:
    future.exception()  # waits; Ctrl-C ends the waiting
    if future.status != "finished":
        raise _explained(future, name)


def _explained(future: Any, name: str) -> RaterwiseError:
    error = future.exception()
    if isinstance(error, RaterwiseError):
        return error
    return InvalidInputError(f"{name}: failed on the cluster ({type(error).__name__}: {error})")

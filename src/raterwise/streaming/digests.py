"""From the parts of a table to one digest: a part is read, summarised and forgotten.

files -> parts -> digests -> + -> results
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, RaterwiseError, named
from raterwise.inference.raters import of_those_who_rated, summaries_by_panel
from raterwise.inference.settings import Progress
from raterwise.kernels._threads import number_of_threads
from raterwise.predictions import Predictions
from raterwise.prevalence import Prior, in_use
from raterwise.readers.against import readers_of
from raterwise.streaming.in_process import results_here
from raterwise.streaming.parts import Part, StreamColumns, check_part, read_part
from raterwise.streaming.saved import Checkpoint, stamp
from raterwise.subgroups.variables import Variable
from raterwise.summaries import summarise
from raterwise.summaries.digest import Digest, digest_of, merged_in_order
from raterwise.types import IntArray, OnUnrated

STREAM_UNITS = 512
"""Into how many blocks the patients, or cases, of a stream are pooled for the bootstrap.

Who is in which block depends on the patient's name, or the number of the case, and the seed alone:
parts can be read in any order and anywhere. Pooling leaves the variance of sums as it is.
"""


RUNS = 128
"""How many runs of so many cases are put into an order together."""


@dataclass(frozen=True)
class PartJob:
    """How a part becomes a digest: what is sent to a worker."""

    columns: StreamColumns
    plans: tuple[Any, ...]
    seed: int
    intervals: bool
    on_unrated: OnUnrated = "error"
    panels: tuple[tuple[int, ...], ...] = ()
    """How often each rater who rated anything counts, where raters are resampled."""
    rated: tuple[int, ...] = ()
    """Which of the raters' columns these are."""
    verdict_plans: tuple[Any, ...] = ()
    """Of the verdict, which knows patients also where raters are resampled."""
    compares_raters: bool = False
    level_plans: tuple[Any, ...] = ()
    """Of the metrics that are made within the levels of what tells cases apart."""
    reader_plans: tuple[Any, ...] = ()
    """Of the metrics by which each rater is judged beside the others, and the model there."""
    prior: Prior | None = None
    """How frequent classes are here and in use, where the cases are to count as in use."""


def digest_of_part(job: PartJob, part: Part) -> Digest:
    """Return the digest of one part; an error names it."""
    by_rater = bool(job.panels) or job.compares_raters
    with _named(part):
        predictions, *about = read_part(part, job.columns, job.on_unrated, by_rater)
        try:
            return _digest_of_part(job, part, predictions, *about)
        except RaterwiseError:
            check_part(part, job.columns, predictions.kept)
            raise


@contextmanager
def _named(part: Part) -> Iterator[None]:
    """Name the part in every error."""
    try:
        yield
    except RaterwiseError as error:
        raise InvalidInputError(named(error, part.name)) from error


def those_who_rated(
    parts: Sequence[Part], columns: StreamColumns, on_unrated: OnUnrated
) -> tuple[int, ...]:
    """Return which of the raters' columns hold a rating that counts.

    It must be known before parts are summarised panel by panel. Most often the first part has a
    rating of everybody, and no other is read.
    """
    found: set[int] = set()
    for part in parts:
        with _named(part):
            predictions, *_ = read_part(part, columns, on_unrated, by_rater=True)
        ratings = predictions.labels.ratings
        assert ratings is not None
        found.update(np.unique(ratings.rater).tolist())
        if len(found) == len(columns.raters):
            break
    return tuple(sorted(found))


def _digest_of_part(
    job: PartJob,
    part: Part,
    predictions: Predictions,
    groups: Any,
    variables: tuple[Variable, ...],
) -> Digest:
    blocks = _blocks(job, part, predictions) if job.intervals else None
    if job.prior is not None and len(predictions):
        predictions, rows = in_use(predictions, job.prior, part.first)
        blocks = None if blocks is None else blocks[rows]
        variables = tuple(v.take(rows) for v in variables)
    about: dict[str, Any] = {
        "number": STREAM_UNITS if job.intervals else 1,
        "unit": "cases" if groups is None else "patients",
        "first": part.first,
    }
    alone = job.intervals or groups is None
    found = digest_of(
        predictions,
        (*job.plans, *job.verdict_plans) if alone else job.plans,
        units=blocks,
        panel=job.compares_raters,
        **about,
    )
    found = replace(found, facts=replace(found.facts, rater_names=job.columns.raters))
    if not alone and job.verdict_plans:  # raters are resampled, but patients are patients
        codes = _blocks(job, part, predictions)
        own = summarise(predictions, job.verdict_plans, units=codes, num_units=STREAM_UNITS)
        found = replace(found, summaries={**found.summaries, **own})
    levels = {v.name: _levels(job, predictions, v, blocks, about) for v in variables}
    if levels:
        found = replace(found, levels=levels)
    if job.reader_plans:
        codes = _blocks(job, part, predictions) if blocks is None else blocks
        readers = readers_of(predictions, job.reader_plans, codes, STREAM_UNITS)
        found = replace(found, readers=readers)
    if not job.panels:
        return found
    known = found.facts.fingerprint.with_raters(predictions.labels, part.first)
    facts = replace(found.facts, fingerprint=known)
    persons = of_those_who_rated(predictions, job.rated)
    panels = summaries_by_panel(persons, job.plans, job.panels)
    return replace(found, facts=facts, panels=panels)


def _blocks(job: PartJob, part: Part, predictions: Predictions) -> IntArray:
    """Return the block of each case, by its patient where patients are known."""
    if predictions.groups is not None:
        return blocks_of_groups(predictions.group_ids, job.seed)[predictions.groups]
    # Blocks are random: which of the cases were dropped before makes no difference.
    return blocks_of_cases(part.first, part.rows, job.seed)[: len(predictions)]


def _levels(
    job: PartJob,
    predictions: Predictions,
    variable: Variable,
    blocks: IntArray | None,
    about: Mapping[str, Any],
) -> dict[str, Digest]:
    """Return the digests of the levels of a variable."""
    found = {}
    for code, level in enumerate(variable.levels):
        rows = np.flatnonzero(variable.codes == code)
        own, units = predictions.take(rows), None if blocks is None else blocks[rows]
        digest = digest_of(own, job.level_plans, units=units, **about)
        if job.panels:
            persons = of_those_who_rated(own, job.rated)
            panels = summaries_by_panel(persons, job.level_plans, job.panels)
            digest = replace(digest, panels=panels)
        found[level] = digest
    return found


def digest_of_parts(
    job: PartJob,
    parts: Sequence[Part],
    *,
    cluster: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Digest:
    """Return the digest of all parts: here, or on a cluster with the same digits.

    With a checkpoint, parts that are finished are kept in that folder, and a run that was killed
    goes on from there.
    """
    kept = None
    if checkpoint is not None:
        files = dict.fromkeys(part.path for part in parts)
        sizes = {file: stamp(Path(file)) for file in files}
        about = {"job": asdict(job), "parts": [asdict(p) for p in parts], "sizes": sizes}
        kept = Checkpoint.open(checkpoint, about)
    function = partial(digest_of_part, job)
    if cluster is not None:
        from raterwise.streaming.cluster import connected, merged_on_cluster

        with connected(cluster) as client:
            return merged_on_cluster(function, parts, client, checkpoint=kept, progress=progress)
    threads = number_of_threads()
    workers = threads if threads > 1 else 0
    return merged_in_order(
        results_here(parts, function, checkpoint=kept, progress=progress, workers=workers)
    )


def blocks_of_groups(groups: Iterable[Hashable], seed: int) -> IntArray:
    """Return the block of each patient, from the patient's name and the seed.

    >>> first, second, again = blocks_of_groups(["p1", "p2", "p1"], seed=0).tolist()
    >>> first == again, 0 <= second < STREAM_UNITS
    (True, True)
    """
    known: dict[Hashable, int] = {}
    out = []
    for name in groups:
        if name not in known:
            text = f"{seed}\n{name}".encode()
            known[name] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        out.append(known[name] % STREAM_UNITS)
    return np.array(out, np.int64)


def blocks_of_cases(first: int, number: int, seed: int) -> IntArray:
    """Return the block of cases first … first + number - 1 of a stream.

    Every run of STREAM_UNITS cases is spread over all blocks, in an order of its own.
    """
    step = STREAM_UNITS * RUNS
    groups = range(first // step, (first + number - 1) // step + 1)
    orders = [_orders(seed, group) for group in groups]
    start = first % step
    return np.concatenate(orders)[start : start + number].astype(np.int64)


@lru_cache(maxsize=8)
def _orders(seed: int, group: int) -> NDArray[np.uint16]:
    """Return the orders of RUNS runs, one after the other.

    Position j of a run is in block (a j + b) mod STREAM_UNITS, with a drawn among the odd numbers
    and b among all: every block once per run, any block as likely as another at every position,
    and much quicker than shuffling. Sixteen bits overflow, which leaves the last ones as they are.
    """
    random = np.random.default_rng([seed, 4, group])
    slope = 2 * random.integers(STREAM_UNITS // 2, size=(RUNS, 1)) + 1
    start = random.integers(STREAM_UNITS, size=(RUNS, 1))
    place = np.arange(STREAM_UNITS, dtype=np.uint16)
    return ((slope.astype(np.uint16) * place + start.astype(np.uint16)) % STREAM_UNITS).ravel()

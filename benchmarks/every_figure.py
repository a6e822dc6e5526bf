"""Every figure of docs/coverage.md's simulations and docs/verdict.md, by one command that resumes.

    python benchmarks/every_figure.py --workers 16 --seconds 500 --out coverage
    python benchmarks/every_figure.py --out coverage --report > tables.md

Test sets are drawn in portions. All designs advance together, those that matter most a little
ahead, so that whenever the time is up every table can be made from what there is. Each portion is a
line of DIR/rows.jsonl (low, value and high minus the truth, or counts); a run that was stopped goes
on where it was. At the end, or when the time is up, DIR/rows.jsonl.xz holds the same in a file that
travels; where there is only that one, a run starts from it.

The parts: `ordinary` (interval_coverage.py), `small` (small_sample_coverage.py), `real`
(real_subsamples.py, where RATERWISE_DATA says where the sets are), `nulls` (null_rates.py),
`verdict` (verdict_errors.py) and `headlines` (headlines.py). Processes have one thread each.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

import headlines
import interval_coverage
import null_rates
import real_subsamples
import small_sample_coverage
import verdict_errors
from simulated_test_sets import DESIGNS as ORDINARY
from simulated_test_sets import truth_of

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PORTION = 10
"""Test sets of a portion."""
RESAMPLES, HEADLINE_RESAMPLES, SIMULATIONS = 300, 1000, 500
FEW_RATERS = 100
"""Resamples where raters are drawn, too."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One of the benchmarks: its designs, what is known of them, and one test set."""

    name: str
    designs: Mapping[str, Any]
    sets: int
    """How many test sets each design has when all is done."""
    ahead: float
    """Of two parts that are as far, the one with the larger number goes on first."""
    truth: Callable[..., Any]
    kind: Callable[[Any], tuple[Any, ...]]
    """What the truth of a design depends on: the arguments of `truth`; none without a truth."""
    one: Callable[[Any, Any, int, int], Row]
    """one(design, truth, replication, seed) -> what goes into a line."""


def _ordinary(design: Any, truth: Any, replication: int, seed: int) -> Row:
    asked = interval_coverage.METRICS + interval_coverage.OF_SEVERAL_RATERS
    settings = interval_coverage.Settings(asked, 1, 1, RESAMPLES, "auto", seed)
    return dict(interval_coverage.one(design, truth, settings, replication))


def _small(design: Any, truth: Any, replication: int, seed: int) -> Row:
    resamples = FEW_RATERS if design.unit != "cases" else RESAMPLES
    found = small_sample_coverage.one(design, truth, replication, seed, ["evaluate"], resamples)
    return {name: row for (_, name), row in found.items()}


def _real(design: Any, truth: Any, replication: int, seed: int) -> Row:
    return dict(real_subsamples.one(design, truth, replication, seed, FEW_RATERS))


def _null(design: Any, _: Any, replication: int, seed: int) -> Row:
    name, draw = design
    return dict(draw(np.random.default_rng([seed, replication, *name.encode()]), replication))


def _verdict(design: Any, _: Any, replication: int, seed: int) -> Row:
    found = verdict_errors.one(design, SIMULATIONS, replication, seed)
    return {
        "called": int(found.miscalibrated),
        "possibly": int(found.significance < found.p_value <= 2 * found.significance),
        "counting": int(found.counting is not None and found.counting.matters),
    }


def _headline(design: Any, _: Any, replication: int, seed: int) -> Row:
    return dict(headlines.one(design, HEADLINE_RESAMPLES, replication, seed))


def _nothing(*_: Any) -> tuple[()]:
    return ()


def _itself(design: Any) -> tuple[Any, ...]:
    return (design,)


def parts() -> dict[str, Part]:
    """Return the benchmarks, with the designs whose data are at hand."""
    there = real_subsamples.DATA.is_dir()
    small = [d for d in small_sample_coverage.DESIGNS if there or not d.name.startswith("chest")]
    real = real_subsamples.DESIGNS if there else ()
    every = (
        Part("ordinary", {d.name: d for d in ORDINARY}, 200, 1.0,
             truth_of, lambda design: (design.classes, design.model), _ordinary),
        Part("small", {d.name: d for d in small}, 300, 1.2,
             small_sample_coverage.known_truth, _itself, _small),
        Part("real", {d.name: d for d in real}, 200, 1.2,
             real_subsamples.known_truth, _itself, _real),
        Part("nulls", {n: (n, draw) for n, draw in null_rates.DESIGNS.items()}, 400, 1.0,
             _nothing, _nothing, _null),
        Part("verdict", {d.name: d for d in verdict_errors.designs()}, 300, 1.2,
             _nothing, _nothing, _verdict),
        Part("headlines", {d.name: d for d in headlines.DESIGNS}, 150, 1.0,
             _nothing, _nothing, _headline),
    )  # fmt: skip
    return {part.name: part for part in every}


# --- drawing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Portion:
    """Some test sets of one design."""

    part: str
    design: str
    first: int
    sets: int
    seed: int

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What tells it from others in the file; one that was cut short has the same."""
        return self.part, self.design, self.first, self.seed


def _kind(portion: Portion) -> tuple[Any, ...]:
    part = parts()[portion.part]
    return part.kind(part.designs[portion.design])


def _truth(part: str, kind: tuple[Any, ...]) -> Any:
    return parts()[part].truth(*kind)


def _draw(portion: Portion, truth: Any) -> tuple[Portion, list[Row], float]:
    part, start = parts()[portion.part], time.perf_counter()
    design, rows = part.designs[portion.design], []
    for replication in range(portion.first, portion.first + portion.sets):
        found = part.one(design, truth, replication, portion.seed)
        rows.append({name: _short(value) for name, value in found.items()})
    return portion, rows, time.perf_counter() - start


def _short(value: Any) -> Any:
    """Return numbers with six digits: far more than a coverage needs."""
    if isinstance(value, tuple):
        return [float(f"{one:.6g}") for one in value]
    return int(value)


def waiting(done: Mapping[Any, int], given: argparse.Namespace) -> list[Portion]:
    """Return the portions that the file lacks, in the order in which they are drawn."""
    ranked = []
    for part in parts().values():
        if part.name not in given.parts:
            continue
        sets = given.sets or part.sets
        for name in part.designs:
            if not any(fnmatch(name, pattern) for pattern in given.designs):
                continue
            for first in range(0, sets, PORTION):
                portion = Portion(part.name, name, first, min(PORTION, sets - first), given.seed)
                if done.get(portion.key, 0) < portion.sets:
                    ranked.append((first / sets / part.ahead, len(ranked), portion))
    return [portion for _, _, portion in sorted(ranked, key=lambda entry: entry[:2])]


def draw_all(given: argparse.Namespace) -> None:
    """Draw what the file lacks until the time is up."""
    limit = time.monotonic() + given.seconds
    records = read(given.out)
    todo = waiting({key: len(rows) for key, rows in records.items()}, given)
    start = time.monotonic()
    _warm_up(todo)
    print(f"compiled in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    # Forked, the processes have the loops that were compiled here.
    pool = ProcessPoolExecutor(given.workers, mp_context=multiprocessing.get_context("fork"))
    drawn, running = 0, set()
    with (given.out / "rows.jsonl").open("a") as file:
        for future in _submitted(pool, todo, limit, running, given.workers):
            portion, rows, seconds = future.result()
            line = {**portion.__dict__, "seconds": round(seconds, 2), "rows": rows}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
            file.flush()
            drawn += 1
            if drawn % 50 == 0:
                left = max(limit - time.monotonic(), 0)
                print(f"{drawn}/{len(todo)}, {left:.0f} s left", file=sys.stderr, flush=True)
    print(f"drew {drawn} of {len(todo)} portions", file=sys.stderr)
    for process in list(pool._processes.values()):  # what is still running is drawn next time
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def _warm_up(todo: list[Portion]) -> None:
    """Compile what the portions need, once, before there are processes."""
    for name in dict.fromkeys(portion.part for portion in todo):
        portion = next(p for p in todo if p.part == name)
        _draw(Portion(name, portion.design, 0, 1, 0), _truth(name, _kind(portion)))


def _submitted(
    pool: ProcessPoolExecutor, todo: list[Portion], limit: float, running: set[Any], workers: int
) -> Iterator[Future[Any]]:
    """Yield portions as they are finished, with few more in hand than there are processes."""
    truths: dict[tuple[str, tuple[Any, ...]], Future[Any]] = {
        needed: pool.submit(_truth, *needed)
        for needed in dict.fromkeys((portion.part, _kind(portion)) for portion in todo)
    }
    rest = iter(todo)
    while True:
        while len(running) < workers + 2 and (portion := next(rest, None)) is not None:
            known = truths[portion.part, _kind(portion)].result()
            running.add(pool.submit(_draw, portion, known))
        left = limit - time.monotonic()
        if not running or left <= 0:
            return
        finished, _ = wait(running, timeout=left, return_when=FIRST_COMPLETED)
        running -= finished
        yield from finished


# --- reading --------------------------------------------------------------------------------------


def read(folder: Path) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows of every portion in the folder; the longest where one is there twice."""
    folder.mkdir(parents=True, exist_ok=True)
    plain, packed = folder / "rows.jsonl", folder / "rows.jsonl.xz"
    if not plain.exists() and packed.exists():
        plain.write_bytes(lzma.decompress(packed.read_bytes()))
    found: dict[tuple[Any, ...], list[Row]] = {}
    for line in plain.read_text().splitlines() if plain.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # the line that a killed run was writing
            continue
        key = record["part"], record["design"], record["first"], record["seed"]
        if len(record["rows"]) > len(found.get(key, [])):
            found[key] = record["rows"]
    return found


def pack(folder: Path) -> None:
    """Write the rows once more, in a file that travels."""
    target = folder / "rows.jsonl.xz"
    target.write_bytes(lzma.compress((folder / "rows.jsonl").read_bytes(), preset=6))
    print(f"{target}: {target.stat().st_size / 2**20:.1f} MiB", file=sys.stderr)


def gathered(folder: Path, seed: int) -> dict[str, dict[str, list[Row]]]:
    """Return the rows of every part and design."""
    out: dict[str, dict[str, list[Row]]] = {}
    for (part, design, _, of), rows in sorted(read(folder).items()):
        if of == seed:
            out.setdefault(part, {}).setdefault(design, []).extend(rows)
    return out


def main() -> None:
    """Draw test sets, or print the tables of those that were drawn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of rows.jsonl")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop drawing after so long")
    parser.add_argument("--seed", type=int, default=101, help="another seed: other test sets")
    parser.add_argument("--parts", nargs="+", default=list(parts()), choices=list(parts()))
    parser.add_argument("--designs", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--sets", type=int, default=0, help="test sets of each design")
    parser.add_argument("--report", action="store_true", help="print Markdown, draw nothing")
    given = parser.parse_args()
    if given.report:
        import figure_tables

        rows = gathered(given.out, given.seed)
        print("\n".join(figure_tables.tables(rows)))
        return
    if not all(os.environ.get(name) == "1" for name in ONE_THREAD):  # read as NumPy is loaded
        os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
        os.execv(sys.executable, [sys.executable, *sys.argv])
    draw_all(given)
    pack(given.out)


if __name__ == "__main__":
    main()

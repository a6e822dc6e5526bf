"""Kill runs at random moments, let them go on, and compare every digit.

    python tools/kill.py --kills 200 --seed 1

Each command (evaluate, a stream, segment, calibrate, report) is run once in peace. Then it is
killed (SIGKILL, which no program can answer) at a random moment of its run, or in the very moment
in which a temporary file appears, perhaps twice in a row, and run again. After each kill the inputs
must be as they were, and under the name of an output there must be nothing, the whole file of an
earlier run, or the whole new one; a checkpoint must hold whole parts only. After the last run the
outputs must have the digits of the run in peace.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib
import io
import json
import os
import pkgutil
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PATIENCE = 300
"""Seconds after which a run hangs."""
CHANGING = ("date", "started", "finished", "seconds", "file_times")
"""Of JSON: what differs between two runs of one command."""


@dataclass(frozen=True)
class Job:
    """A command, and the files or folders that it writes."""

    name: str
    words: tuple[str, ...]
    outputs: tuple[str, ...]
    checkpoint: str | None = None


@dataclass
class Count:
    """What was seen."""

    kills: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


METRICS = ("--metrics", "ece,brier,auccc", "--resamples", "100", "-q")

JOBS = (
    Job(
        "evaluate",
        ("evaluate", "p.csv", "--ratings", "r.csv", "--out", "o.json", "--csv", "o.csv",
         *METRICS),
        ("o.json", "o.csv"),
    ),
    Job(
        "stream",
        ("evaluate", "p.parquet", "--stream", "--checkpoint", "kept", "--save-summary", "s.npz",
         "--out", "s.json", *METRICS),
        ("s.json", "s.npz"),
        "kept",
    ),
    Job(
        "segment",
        ("segment", "m.csv", "--checkpoint", "parts", "--maps", "maps", "--out", "g.json",
         "--metrics", "ece,brier", "--resamples", "100", "-q"),
        ("g.json", "maps"),
        "parts",
    ),
    Job(
        "calibrate",
        ("calibrate", "--fit", "p.csv", "--apply", "q.csv", "--fit-ratings", "r.csv",
         "--apply-ratings", "t.csv", "--out", "cal", *METRICS),
        ("cal",),
    ),
    Job("report", ("report", "a.json", "-o", "a.html"), ("a.html",)),
)  # fmt: skip


def make_inputs(folder: Path) -> list[str]:
    """Write what the commands read; return the names of these files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    for table, ratings, shift in (("p", "r", 0), ("q", "t", 1000)):
        probs = np.round(random.beta(0.7, 0.7, 300), 4)
        said = (random.random((300, 3)) < probs[:, None] ** 1.3).astype(int)
        lines = [f"{i + shift},{p}" for i, p in enumerate(probs)]
        (folder / f"{table}.csv").write_text("case,prob_sick\n" + "\n".join(lines) + "\n")
        lines = [f"{i + shift},R{k},{v}" for i, row in enumerate(said) for k, v in enumerate(row)]
        (folder / f"{ratings}.csv").write_text("case,reader,label\n" + "\n".join(lines) + "\n")
    many = random.beta(0.7, 0.7, 16_000)
    columns = {f"reader_{k}": (random.random(16_000) < many).astype(int) for k in range(3)}
    table = pa.table({"prob_sick": many, **columns})
    pq.write_table(table, folder / "p.parquet", row_group_size=2_000)
    rows = ["case,probabilities,raters"]
    for i in range(8):
        image = random.random((24, 24, 12)).astype(np.float32)
        np.save(folder / f"i{i}.npy", image)
        for k in range(2):
            np.save(folder / f"i{i}_{k}.npy", (random.random(image.shape) < image).astype(np.uint8))
        rows.append(f"c{i},i{i}.npy,i{i}_0.npy;i{i}_1.npy")
    (folder / "m.csv").write_text("\n".join(rows) + "\n")
    own = ("evaluate", "p.csv", "--ratings", "r.csv", "--out", "a.json", *METRICS)
    assert in_peace(folder, own) == 0
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())


# Runs ---------------------------------------------------------------------------------------------


def begun(folder: Path, words: tuple[str, ...]) -> int:
    """Begin a command in a process of its own; return its number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.chdir(folder)
        with open(folder / ".said", "ab", buffering=0) as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        from raterwise.cli import app

        app(list(words), prog_name="raterwise", standalone_mode=False)
        code = 0
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(child: int, seconds: float) -> int | None:
    """Return how a process ended within this time, or None."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.0005)


def in_peace(folder: Path, words: tuple[str, ...]) -> int:
    """Run a command to its end; return its exit code."""
    child = begun(folder, words)
    code = ended(child, PATIENCE)
    if code is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return 124
    return code


def killed(folder: Path, job: Job, after: float, writes: int) -> bool:
    """Kill a command after some seconds, or when it begins its n-th file; tell whether it lived."""
    child = begun(folder, job.words)
    if writes:
        seen: set[str] = set()
        until = time.monotonic() + PATIENCE
        while len(seen) < writes and time.monotonic() < until:
            seen |= {str(f) for f in temporary(folder)}
            if (found := ended(child, 0)) is not None:
                return False
    found = ended(child, after)
    if found is not None:
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def temporary(folder: Path) -> list[Path]:
    """Return the files that are being written, or were when somebody was killed."""
    found = []
    for place in (folder, *(folder / n for n in ("kept", "parts", "maps", "cal"))):
        try:
            found += [Path(e.path) for e in os.scandir(place) if e.name.startswith(".")]
        except FileNotFoundError:
            continue
    return [file for file in found if file.name != ".said"]


# Content ------------------------------------------------------------------------------------------


def hashes(folder: Path, names: list[str]) -> dict[str, str]:
    """Return the hash of every file."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def files_of(folder: Path, outputs: tuple[str, ...]) -> list[str]:
    """Return the files under the final names of some outputs."""
    found = []
    for name in outputs:
        place = folder / name
        inside = place.rglob("*") if place.is_dir() else [place]
        found += [f for f in inside if f.is_file() and not f.name.startswith(".")]
    return sorted(str(f.relative_to(folder)) for f in found)


def digits(file: Path) -> Any:
    """Return what a file holds, without what differs between two runs; half of one is an error."""
    content = file.read_bytes()
    if file.suffix == ".json":
        return _without_dates(json.loads(content))
    if file.suffix == ".npz":
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: hashlib.sha256(arrays[name].tobytes()).hexdigest() for name in arrays}
    if file.suffix == ".gz":
        return hashlib.sha256(gzip.decompress(content)).hexdigest()
    text = content.decode("utf-8")
    if file.suffix == ".html":
        assert text.rstrip().endswith("</html>"), "the page has no end"
        text = re.sub(
            r"\d{4}-\d\d-\d\d(T| )\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00|Z| UTC)?", "DATE", text
        )
    return text


def _without_dates(content: Any) -> Any:
    if isinstance(content, dict):
        return {k: _without_dates(v) for k, v in content.items() if k not in CHANGING}
    if isinstance(content, list):
        return [_without_dates(one) for one in content]
    return content


def look(folder: Path, job: Job, known: dict[str, Any], old: dict[str, str], count: Count) -> None:
    """Look at the outputs of a run that was killed: each is absent, old and whole, or new."""
    for name in files_of(folder, job.outputs):
        now = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if old.get(name) == now:
            count.found["outputs still those of an earlier run"] += 1
            continue
        try:
            same = digits(folder / name) == known[name]
        except Exception as error:
            count.failures.append(f"{job.name}: {name} is not whole after a kill ({error!r:.200})")
            continue
        if not same:
            count.failures.append(f"{job.name}: {name} has other digits after a kill")
        count.found["outputs already new and whole"] += 1
    gone = set(old) - set(files_of(folder, job.outputs))
    count.failures += [f"{job.name}: {name} of an earlier run is gone" for name in gone]
    if job.checkpoint is not None and (folder / job.checkpoint).is_dir():
        for part in (folder / job.checkpoint).glob("part_*.npz"):
            digits(part)
            count.found["whole parts of a checkpoint"] += 1
    count.found["temporary files left behind"] += len(temporary(folder))


# The whole ----------------------------------------------------------------------------------------


def clean(folder: Path, inputs: list[str]) -> None:
    """Remove everything but the inputs."""
    keep = {folder / name for name in inputs}
    for file in sorted(folder.rglob("*"), reverse=True):
        if file.is_dir():
            file.rmdir()
        elif file not in keep and file.name != ".said":
            file.unlink()


def one_round(
    folder: Path, job: Job, state: dict[str, Any], random: np.random.Generator, count: Count
) -> int:
    """Kill a command once or more, and let it go on; return how often it was killed."""
    inputs, known, seconds = state["inputs"], state["known"][job.name], state["seconds"][job.name]
    clean(folder, inputs)
    old: dict[str, str] = {}
    if random.random() < 0.5 and job.checkpoint is None:  # there are finished files of before
        earlier = (*job.words, "--seed", "7") if job.name != "report" else job.words
        assert in_peace(folder, earlier) == 0
        old = hashes(folder, files_of(folder, job.outputs))
    done = 0
    for _ in range(int(random.choice([1, 1, 2, 3]))):
        files = len(known) + (4 if job.checkpoint else 0)
        writes = int(random.integers(1, files + 1)) if random.random() < 0.3 else 0
        after = random.random() * (0.002 if writes else 0.98 * seconds)
        if not killed(folder, job, after, writes):
            break
        done += 1
        count.kills[f"{job.name}{', while writing' if writes else ''}"] += 1
        if hashes(folder, inputs) != state["hashes"]:
            count.failures.append(f"{job.name}: an input changed")
        look(folder, job, known, old, count)
    if done:
        start = time.monotonic()
        code = in_peace(folder, job.words)
        if job.checkpoint is None:  # with one, it went on in the middle
            state["seconds"][job.name] = time.monotonic() - start
        if code != 0:
            said = (folder / ".said").read_text(errors="replace")[-600:]
            count.failures.append(f"{job.name}: exit {code} after a kill: {said}")
        elif {n: digits(folder / n) for n in files_of(folder, job.outputs)} != known:
            count.failures.append(f"{job.name}: other digits after a kill")
        else:
            count.found["runs that went on to the same digits"] += 1
        if hashes(folder, inputs) != state["hashes"]:
            count.failures.append(f"{job.name}: an input changed")
    return done


def kill(kills: int, seed: int, progress: Callable[[int], None]) -> Count:
    """Kill so many runs, each command in turn."""
    count, random = Count(), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state: dict[str, Any] = {"known": {}, "seconds": {}}
        state["inputs"] = make_inputs(folder)
        state["inputs"] = [one for one in state["inputs"] if one != ".said"]
        state["hashes"] = hashes(folder, state["inputs"])
        for job in JOBS:
            for _ in range(2):  # the first one compiles
                clean(folder, state["inputs"])
                start = time.monotonic()
                if in_peace(folder, job.words) != 0:
                    raise SystemExit(f"{job.name}: {(folder / '.said').read_text()}")
                state["seconds"][job.name] = time.monotonic() - start
            found = files_of(folder, job.outputs)
            state["known"][job.name] = {n: digits(folder / n) for n in found}
        done, turn = 0, 0
        while done < kills:
            done += one_round(folder, JOBS[turn % len(JOBS)], state, random, count)
            turn += 1
            progress(done)
    return count


def load() -> None:
    """Import once what every process that begins here would import."""
    import raterwise

    for found in pkgutil.walk_packages(raterwise.__path__, "raterwise."):
        if not re.search(r"torch|tensors|triton|__main__|cluster", found.name):
            importlib.import_module(found.name)
    for name in (
        "pyarrow.parquet",
        "pyarrow.csv",
        "pyarrow.compute",
        "nibabel",
        "scipy.optimize",
        "altair",
        "typer._adapters",
        "pydantic.main",
    ):
        importlib.import_module(name)


def main() -> int:
    """Kill, print the counts and the failures, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    load()
    begin = time.monotonic()
    count = kill(told.kills, told.seed, lambda done: print(f"\r{done} kills", end="", flush=True))
    print()
    for failure in count.failures:
        print(failure)
    for what, number in (*count.kills.most_common(), *count.found.most_common()):
        print(f"{number:6d}  {what}")
    total, seconds = sum(count.kills.values()), time.monotonic() - begin
    print(f"seed {told.seed}: {total} kills, {len(count.failures)} failures, {seconds:.0f} s")
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())

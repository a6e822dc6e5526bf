"""Time and memory of a calibration error from 10^3 to 10^8 cases, ours and ten other libraries'.

    python -P benchmarks/growth.py --report            # measure what is missing; table and picture
    python -P benchmarks/growth.py --turn 2 --report   # once more: the quicker turn counts

Each library and size is a process of its own: it imports the library, makes the cases, calls once
with 1,000 of them, and is then measured. Time is the best of up to five calls within three seconds;
memory is how far the resident size rises above what the process held when the first call began. A
call may take a minute and 8 GB; beyond that, or where ten times the last time is more than a
minute, larger sizes are not tried. A run goes on where it was stopped (--out), and libraries that
are not installed are left out, so that several environments may write into one file.

The probabilities are uniform and the outcome has the probability 0.5 + 0.7 (p - 0.5):
over-confident by 0.075 on average, and by 0.075 - 0.3 / 900 = 0.07467 in 15 bins, one of which
is around 0.5.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

try:
    from benchmarks.peers import PEERS
    from benchmarks.resumed import finished
except ImportError:  # run as a script with -P
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from peers import PEERS
    from resumed import finished

SIZES = tuple(10**power for power in range(3, 9))
BINS = 15
MINUTE, GIGABYTES = 60, 8
IMAGE = Path(__file__).resolve().parents[1] / "docs" / "images" / "growth.svg"
Record = dict[str, Any]


# One measurement, in a process of its own ---------------------------------------------------------


def cases(number: int) -> tuple[Any, Any]:
    """Return probabilities in float32 and outcomes in int64, made in pieces to need no more."""
    random = np.random.default_rng(0)
    p = random.random(number, dtype=np.float32)
    np.clip(p, 1e-6, 1 - 1e-6, out=p)
    y = np.empty(number, np.int64)
    for i in range(0, number, 10**6):
        part = slice(i, i + 10**6)
        drawn = random.random(len(p[part]), dtype=np.float32)
        y[part] = drawn < np.float32(0.15) + np.float32(0.7) * p[part]
    return p, y


def status(field: str) -> int:
    """Return a size of this process in bytes, as Linux tells it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise SystemExit(f"/proc/self/status has no {field}")


def measure(name: str, number: int) -> Record:
    """Return the best time, the memory and the value of one library at one size."""
    warnings.simplefilter("ignore")
    prepare = PEERS[name].make(BINS)
    p, y = cases(number)
    prepare(p[:1000].copy(), y[:1000].copy())()  # compiles, and loads what is loaded late
    call = prepare(p, y)
    ctypes.CDLL(None).malloc_trim(0)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest resident size starts anew
    most = status("VmSize") + GIGABYTES * 10**9
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(MINUTE)
    times: list[float] = []
    memory, value = 0, float("nan")
    while not times or (len(times) < 5 and sum(times) < 3):
        start = time.perf_counter()
        value = call()
        times.append(time.perf_counter() - start)
        memory = memory or status("VmHWM") - before
    return {"seconds": min(times), "bytes": memory, "value": value}


def in_a_process(name: str, number: int) -> Record:
    """Return what a child measures, or which limit it met."""
    child = [sys.executable, "-P", __file__, "--measure", name, str(number)]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    if done.returncode == -signal.SIGALRM:
        return {"stopped": f"more than {MINUTE} s"}
    said = done.stderr.strip().splitlines()[-1:] or [""]
    if "memory" in said[0].lower() or "alloc" in said[0].lower():
        return {"stopped": f"more than {GIGABYTES} GB"}
    return {"stopped": f"error: {said[0][:200]}"}


# All of them --------------------------------------------------------------------------------------


def installed() -> Iterator[str]:
    """Yield the names of what can be measured here."""
    from importlib.metadata import PackageNotFoundError

    for name, peer in PEERS.items():
        try:
            yield name if peer.version else ""
        except PackageNotFoundError:
            print(f"{name}: not installed here", file=sys.stderr)


class OutOfTime(Exception):
    """The seconds that were given are over."""


def run(out: Path, seconds: float, turn: int) -> None:
    """Measure what the file does not have of this turn, until the seconds are over."""
    end = time.monotonic() + seconds
    found: dict[tuple[str, int], Record] = {}
    settings = {"bins": BINS, "seconds": MINUTE, "gigabytes": GIGABYTES, "turn": turn}

    def simulate(design: str) -> Record:
        if time.monotonic() > end:
            raise OutOfTime
        name, size = design.rsplit(" ", 1)
        number = int(size)
        last = found.get((name, number // 10), {})
        record: Record = {"version": PEERS[name].version}
        if "stopped" in last:
            return record | {"stopped": "not tried"}
        if 10 * last.get("seconds", 0) > MINUTE:
            return record | {"stopped": f"not tried: more than {MINUTE} s expected"}
        return record | in_a_process(name, number)

    designs = [f"{name} {number}" for number in SIZES for name in installed()]
    try:
        for record in finished(out, settings, designs, simulate):
            name, size = record["design"].rsplit(" ", 1)
            found[name, int(size)] = record
    except OutOfTime:
        print(f"{len(found)} of {len(designs)} measured: run it again", file=sys.stderr)


# Table and picture --------------------------------------------------------------------------------


def rows(out: Path) -> dict[str, dict[int, Record]]:
    """Return the records by library and size; of several turns the quickest."""
    found: dict[str, dict[int, Record]] = {}
    for line in out.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        name, size = record["design"].rsplit(" ", 1)
        at = found.setdefault(name, {})
        others = at.get(int(size), {})
        if "seconds" not in others or record.get("seconds", np.inf) < others["seconds"]:
            at[int(size)] = record
    return {name: found[name] for name in PEERS if name in found}


def spoken(seconds: float) -> str:
    """Return a time with two digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{float(f'{seconds * scale:.2g}'):g}\N{NO-BREAK SPACE}{unit}"
    return ""


def table(found: dict[str, dict[int, Record]]) -> Iterator[str]:
    """Yield a line for each library: time by size, memory and value at the largest size."""
    head = " | ".join(f"10{'³⁴⁵⁶⁷⁸'[i]}" for i in range(len(SIZES)))
    yield f"| | {head} | bytes per case | value |"
    yield "| --- |" + " ---: |" * (len(SIZES) + 2)
    for name, at in found.items():
        peer, version = PEERS[name], next(iter(at.values()))["version"]
        times = []
        for number in SIZES:
            record = at.get(number, {"stopped": "not tried"})
            times.append(spoken(record["seconds"]) if "seconds" in record else "–")
        largest = max((n for n in at if "seconds" in at[n]), default=0)
        memory = f"{max(at[largest]['bytes'], 0) / largest:.1f}" if largest >= 10**6 else ""
        value = f"{at[largest]['value']:.5f}" if largest else ""
        label = name.split(",")[0] + f" {version.split('+')[0]}, {peer.what}"
        if name.startswith("raterwise"):
            label = f"**{label}**"
        yield f"| {label} | {' | '.join(times)} | {memory} | {value} |"
    for name, at in found.items():
        for number, record in at.items():
            if "stopped" in record and record["stopped"] != "not tried":
                yield f"<!-- {name}, {number:,} cases: {record['stopped']} -->"


def picture(found: dict[str, dict[int, Record]], path: Path) -> None:
    """Draw time and memory by the number of cases."""
    from pictures import COLOURS, drawn, plain

    def draw(left: Any, right: Any) -> None:
        peers = [name for name in found if not name.startswith("raterwise")]
        for name, at in found.items():
            kept = {n: r for n, r in sorted(at.items()) if "seconds" in r}
            own = name.startswith("raterwise")
            colour = COLOURS[0] if own else plain(peers.index(name))
            dash = {"raterwise, interval": "--", "raterwise, file": ":"}.get(name, "-")
            dash = "-." if name == "raterwise, smooth" else dash
            look: Any = {"color": colour, "linestyle": dash, "linewidth": 2.2 if own else 1.1}
            look |= {"label": name, "zorder": 3 if own else 2}
            left.plot(list(kept), [r["seconds"] for r in kept.values()], **look)
            far = {n: r for n, r in kept.items() if n >= 10**5}
            right.plot(list(far), [max(r["bytes"], 10**5) / 1e6 for r in far.values()], **look)
        left.set(xscale="log", yscale="log", xlabel="cases", ylabel="seconds")
        right.set(xscale="log", yscale="log", xlabel="cases", ylabel="MB beyond the data")
        lines, names = left.get_legend_handles_labels()
        left.figure.legend(lines, names, loc="outside lower center", ncols=3, frameon=False)

    drawn(draw, path, (7.2, 4.9))


def main() -> None:
    """Measure, or tell what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("growth.jsonl"))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--turn", type=int, default=1, help="2 measures all of it once more")
    parser.add_argument("--report", action="store_true", help="table, and docs/images/growth.svg")
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "CASES"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(asked.measure[0], int(asked.measure[1]))))
        return
    run(asked.out, asked.seconds, asked.turn)
    found = rows(asked.out)
    print("\n".join(table(found)))
    if asked.report:
        picture(found, IMAGE)


if __name__ == "__main__":
    main()

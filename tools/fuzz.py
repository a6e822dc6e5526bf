"""Damage files of every kind that raterwise reads, and see what the commands make of them.

    python tools/fuzz.py --inputs 10000 --seed 1

Each input is a whole file of which bytes were flipped, zeroed, put in, repeated or cut off, or JSON
of which one value is another. A command must end in exit 2 with one sentence, or in exit 0: with
the numbers of the whole file where the format has checksums, so that damage can be told. (A digit
of a CSV file that became another digit is another valid file: such runs are counted apart.)
Anything else is a failure, and is printed with its seed, which makes it again:

    python tools/fuzz.py --only 1:4711
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PATIENCE = 60
"""Seconds after which a command hangs."""
CHECKSUMS = (".png", ".npz", ".gz")
"""Files of these kinds know when they were damaged."""
FEW = ("--resamples", "0", "-q")
METRICS = ("--metrics", "brier,ece,accuracy")


@dataclass(frozen=True)
class Target:
    """A command and the file of it that is damaged."""

    name: str
    file: str
    words: tuple[str, ...]
    checksums: bool = False
    slow: bool = False


@dataclass
class Count:
    """How the commands ended."""

    by_end: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


# Whole files --------------------------------------------------------------------------------------


def make_corpus(folder: Path) -> list[Target]:
    """Write whole files into a folder; return the commands that read them."""
    random = np.random.default_rng(0)
    probs = np.round(random.random(60), 4)
    said = (random.random((60, 2)) < probs[:, None]).astype(np.int64)
    targets = [*_tables(folder, probs, said), *_images(folder, random), *_saved(folder)]
    for target in targets:
        code, said_, _ = run(target.words, folder)
        if code != 0:
            raise SystemExit(f"{target.name}: the whole file must be taken; {said_}")
    return targets


def _tables(folder: Path, probs: Any, said: Any) -> list[Target]:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq
    import zarr

    columns = {"case": np.arange(60), "prob_1": probs, "y": said[:, 0], "r0": said[:, 0]}
    table = pa.table({**columns, "r1": said[:, 1]})
    pq.write_table(table, folder / "p.parquet", row_group_size=20)
    pyarrow.feather.write_feather(table, str(folder / "p.feather"))
    lines = ["case,prob_1,y,r0,r1"]
    lines += [",".join(map(str, row.values())) for row in table.to_pylist()]
    (folder / "p.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    long = ["case,reader,label"]
    long += [f"{i},r{k},{said[i, k]}" for i in range(60) for k in range(2)]
    (folder / "r.csv").write_text("\n".join(long) + "\n", encoding="utf-8")
    np.savez_compressed(folder / "p.npz", probs=probs, labels=said[:, 0], ids=np.arange(60))
    group = zarr.open_group(folder / "p.zarr", mode="w")
    for name, values in columns.items():
        group.create_array(name, data=np.asarray(values), chunks=(30,))
    label = ("--label-column", "y")
    out = ("--out", "out.json", *METRICS, *FEW)
    ratings = ("--ratings", "r.csv")
    _excel(folder / "p.xlsx", [row.values() for row in table.to_pylist()], table.column_names)
    found = ["case,reader,finding,label"]
    found += [f"{i},r{k},1,{said[i, k]}" for i in range(60) for k in range(2)]
    (folder / "f.csv").write_text("\n".join(found) + "\n", encoding="utf-8")
    several = ("evaluate", "p.csv", "--ratings", "f.csv", "--multilabel", *out)
    agree = ("agreement", "r.csv", "--out", "out.json", *FEW)
    return [
        Target("excel", "p.xlsx", ("evaluate", "p.xlsx", *label, *out), checksums=True),
        Target("findings", "f.csv", several),
        Target("agreement", "r.csv", agree),
        Target("csv", "p.csv", ("evaluate", "p.csv", *label, *out)),
        Target("ratings", "r.csv", ("evaluate", "p.csv", *ratings, *out)),
        Target("parquet", "p.parquet", ("evaluate", "p.parquet", *label, *out)),
        Target("feather", "p.feather", ("evaluate", "p.feather", *label, *out)),
        Target("npz", "p.npz", ("evaluate", "p.npz", *out), checksums=True),
        Target("stream", "p.parquet", ("evaluate", "p.parquet", "--stream", *label, *out)),
        Target("zarr", "p.zarr", ("evaluate", "p.zarr", "--stream", *label, *out)),
    ]


def _excel(path: Path, rows: list[Any], names: list[str]) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (names, *rows):
        book.active.append(list(row))
    book.save(path)


def _images(folder: Path, random: np.random.Generator) -> list[Target]:
    import nibabel
    import tifffile
    import zarr
    from PIL import Image

    smooth = random.random((12, 10, 1)).astype(np.float32)
    mask = (random.random((12, 10, 1)) < smooth).astype(np.uint8)
    flat = mask[:, :, 0]

    def nifti(name: str, array: Any) -> None:
        nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), folder / name)

    np.save(folder / "i.npy", smooth)
    np.save(folder / "flat.npy", smooth[:, :, 0])
    for name in ("m.nii", "m.nii.gz"):
        nifti(name, mask)
    nifti("i.nii.gz", smooth)
    Image.fromarray(flat * 255).save(folder / "m.png")
    tifffile.imwrite(folder / "m.tif", flat)
    tifffile.imwrite(folder / "z.tif", flat, compression="zlib")
    np.save(folder / "m.npy", flat)
    np.savez_compressed(folder / "m.npz", flat)
    zarr.create_array(folder / "m.zarr", data=flat, chunks=(6, 10))
    targets = []
    files = ("m.nii", "m.nii.gz", "m.png", "m.tif", "z.tif", "m.npy", "m.npz", "m.zarr")
    for name in files:
        probs = "i.nii.gz" if name.startswith("m.nii") else "flat.npy"
        manifest = f"case,probabilities,raters\nc,{probs},{name}\n"
        (folder / f"{name}.csv").write_text(manifest, encoding="utf-8")
        words = ("segment", f"{name}.csv", "--out", "out.json", *METRICS, *FEW)
        targets.append(Target(name, name, words, checksums=name.endswith(CHECKSUMS)))
    words = ("segment", "m.npy.csv", "--out", "out.json", *METRICS, *FEW)
    both = np.stack((1 - smooth, smooth)).transpose(0, 3, 2, 1)
    np.savez_compressed(folder / "nn.npz", probabilities=both)
    manifest = "case,probabilities,raters\nc,nn.npz,m.nii.gz\n"
    (folder / "nn.csv").write_text(manifest, encoding="utf-8")
    network = ("segment", "nn.csv", "--out", "out.json", *METRICS, *FEW)
    kept = ("--checkpoint", "kept")
    return [
        *targets,
        Target("manifest", "m.npy.csv", words),
        Target("nnU-Net", "nn.npz", network, checksums=True),
        Target("checkpoint", "kept", (*words, *kept)),
    ]


def _saved(folder: Path) -> list[Target]:
    label, quiet = ("--label-column", "y"), ("--resamples", "20", "-q")
    half = {"a": "p.parquet", "b": "q.parquet"}
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "p.parquet")
    pq.write_table(table.slice(7, 40), folder / "q.parquet")
    for name, file in half.items():
        saved = ("--save-summary", f"{name}.npz", "--out", f"{name}s.json")
        must(("evaluate", file, *label, *METRICS, *quiet, *saved), folder)
    for name, seed in (("a", "0"), ("b", "0")):
        own = ("--out", f"{name}.json", "--seed", seed)
        must(("evaluate", "p.csv", *label, *METRICS, *quiet, *own), folder)
    ratings = ("--ratings", "r.csv")
    steady = ("--metrics", "ece", "--repeats", "2", "--fractions", "0.5,1", "--out", "s.json", "-q")
    must(("stability", "p.csv", *ratings, *steady), folder)
    must(("worklist", "p.csv", "--by", "disagreement", "--out", "w.csv", "-q"), folder)
    fit = ("calibrate", "--fit", "p.csv", "--apply", "p.csv", "--allow-overlap", "--out", "c")
    rated = ("--fit-ratings", "r.csv", "--apply-ratings", "r.csv")
    must((*fit, *rated, "--alpha", *METRICS, *quiet), folder)
    report = ("report", "a.json", "-o", "out.html")
    page = ("report", "c/before_after.json")
    listed = ("worklist", "p.csv", "--by", "disagreement", "--out", "out.csv", "-q")
    return [
        Target("merge", "b.npz", ("merge", "a.npz", "b.npz", "--out", "out.json", *FEW), True),
        Target("compare", "b.json", ("compare", "a.json", "b.json", "--out", "out.json", "-q")),
        Target("report", "a.json", report, slow=True),
        Target("steadiness", "s.json", (*report, "--stability", "s.json"), slow=True),
        Target("recalibration", "c/before_after.json", (*page, *report[2:]), slow=True),
        Target("worklist", "w.csv", (*report, "--worklist", "w.csv"), slow=True),
        Target("calibrator", "c/calibrator.json", (*listed, "--calibrator", "c/calibrator.json")),
        Target("alpha", "c/alpha.json", (*listed, "--alpha-model", "c/alpha.json")),
    ]


def must(words: tuple[str, ...], folder: Path) -> None:
    """Run a command that must not fail."""
    code, said, _ = run(words, folder)
    if code != 0:
        raise SystemExit(f"raterwise {' '.join(words)}: {said}")


# Damage -------------------------------------------------------------------------------------------


def damage(content: bytes, name: str, random: np.random.Generator) -> bytes:
    """Return a file's content with one thing wrong with it, at times with more."""
    if name.endswith(".json") and random.random() < 0.8:
        with contextlib.suppress(ValueError):
            return _damaged_json(content, random)
    for _ in range(int(random.choice([1, 1, 1, 2, 8]))):
        content = HARM[int(random.integers(len(HARM)))](content, random)
    return content


def _place(content: bytes, random: np.random.Generator) -> int:
    near = random.random() < 0.4  # headers are where harm is done
    return int(random.integers(min(len(content), 200) if near else len(content) or 1) or 0)


def _flip(content: bytes, random: np.random.Generator) -> bytes:
    if not content:
        return b"\x00"
    i = _place(content, random)
    return content[:i] + bytes([content[i] ^ (1 << int(random.integers(8)))]) + content[i + 1 :]


def _cut(content: bytes, random: np.random.Generator) -> bytes:
    return content[: _place(content or b"0", random)]


def _zero(content: bytes, random: np.random.Generator) -> bytes:
    i, n = _place(content or b"0", random), int(random.integers(1, 32))
    return content[:i] + bytes(len(content[i : i + n])) + content[i + n :]


def _insert(content: bytes, random: np.random.Generator) -> bytes:
    i = _place(content or b"0", random)
    return content[:i] + random.bytes(int(random.integers(1, 16))) + content[i:]


def _repeat(content: bytes, random: np.random.Generator) -> bytes:
    i, n = _place(content or b"0", random), int(random.integers(1, 64))
    return content[:i] + content[i : i + n] * 2 + content[i + n :]


def _odd(content: bytes, random: np.random.Generator) -> bytes:
    words = (b"nan", b"-1", b"1e999", b"\xff\xfe", b'"', b";", b"\x00", b"9" * 40, b"\n\n", b"=")
    i = _place(content or b"0", random)
    return content[:i] + words[int(random.integers(len(words)))] + content[i + 1 :]


HARM: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    _flip, _flip, _cut, _zero, _insert, _repeat, _odd,
)  # fmt: skip

VALUES = (
    None, True, -5, 0, 10**30, -0.5, 1e308, "x", "", [], {}, [[]], [None], {"a": 1}, "DEEP", "NAN",
    "HUGE", [1, 2, 3],
)  # fmt: skip


def _damaged_json(content: bytes, random: np.random.Generator) -> bytes:
    """Return JSON with one value changed or taken away."""
    whole = json.loads(content)
    node, above, key = whole, None, None
    while isinstance(node, dict | list) and node:
        if above is not None and random.random() < 0.15:
            break
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        above, key = node, keys[int(random.integers(len(keys)))]
        node = above[key]
    if above is None or key is None:
        return content
    value = VALUES[int(random.integers(len(VALUES)))]
    if random.random() < 0.2:
        del above[key]
    else:
        above[key] = value
    text = json.dumps(whole)
    deep = "[" * 5000 + "]" * 5000
    text = text.replace('"DEEP"', deep).replace('"NAN"', "NaN").replace('"HUGE"', "9" * 5000)
    return text.encode()


@contextlib.contextmanager
def damaged(folder: Path, target: Target, random: np.random.Generator) -> Iterator[None]:
    """Harm the file of a target; afterwards it is whole again."""
    file = folder / target.file
    if file.is_dir():
        files = sorted(f for f in file.rglob("*") if f.is_file())
        file = files[int(random.integers(len(files)))]
    whole = file.read_bytes()
    try:
        content = damage(whole, file.name, random)
        file.write_bytes(content)
        yield
    finally:
        file.write_bytes(whole)


# Commands -----------------------------------------------------------------------------------------


class Hangs(Exception):
    """A command took too long."""


def _alarm(*_: Any) -> None:
    raise Hangs


def run(words: tuple[str, ...], folder: Path) -> tuple[int, str, str]:
    """Run a command in a folder; return its exit code, what it said and, where it broke, where."""
    from typer.testing import CliRunner

    from raterwise.cli import app

    before = os.getcwd()
    os.chdir(folder)
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(PATIENCE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = CliRunner().invoke(app, list(words))
    finally:
        signal.alarm(0)
        os.chdir(before)
    broken = done.exception is not None and not isinstance(done.exception, SystemExit)
    trace = "".join(traceback.format_exception(done.exception)[-3:]) if broken else ""
    return done.exit_code, done.output, trace


def numbers(folder: Path) -> Any:
    """Return the metrics that a command wrote, or None."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        found = json.loads((folder / "out.json").read_text(encoding="utf-8"))["metrics"]
        return {name: one["value"] for name, one in found.items()}
    return None


def try_one(folder: Path, target: Target, seed: int, number: int, known: Any) -> tuple[str, str]:
    """Return how a command ended on a damaged file: its kind, and what to say of a failure."""
    random = np.random.default_rng((seed, number))
    (folder / "out.json").unlink(missing_ok=True)
    with damaged(folder, target, random):
        code, said, trace = run(target.words, folder)
    mark = f"{target.name} {seed}:{number}"
    if trace:
        return "hang" if "Hangs" in trace else "traceback", f"{mark}: {trace}"
    if code == 2 and said.startswith(("raterwise: ", "Usage", "warning", "The diff")):
        lines = [line for line in said.splitlines() if line.startswith("raterwise: ")]
        return ("refused", "") if len(lines) == 1 else ("noise", f"{mark}: {said[:300]}")
    if code != 0:
        return "exit", f"{mark}: exit {code}: {said[-300:]}"
    if numbers(folder) == known:
        return "same", ""
    if target.checksums:
        return "silent", f"{mark}: {known} became {numbers(folder)}"
    return "another valid file", ""


FINE = ("refused", "same", "another valid file")


def fuzz(inputs: int, seed: int, *, slow: bool = True, only: int | None = None) -> Count:
    """Try so many damaged files, each command in turn; every input has a seed of its own."""
    count = Count()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        targets = [t for t in make_corpus(folder) if slow or not t.slow]
        known = {}
        for target in targets:
            (folder / "out.json").unlink(missing_ok=True)
            must(target.words, folder)
            known[target.name] = numbers(folder)
        for i in range(inputs) if only is None else (only,):
            target = targets[i % len(targets)]
            end, said = try_one(folder, target, seed, i, known[target.name])
            count.by_end[end] += 1
            if end not in FINE:
                count.failures.append(f"[{end}] {said}")
    return count


def main() -> int:
    """Fuzz, print the counts and the failures, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="SEED:NUMBER of one input")
    told = parser.parse_args()
    seed, only = told.seed, None
    if told.only:
        seed, only = (int(part) for part in told.only.split(":"))
    begin = time.monotonic()
    count = fuzz(told.inputs, seed, only=only)
    for failure in count.failures:
        print(failure)
    ends = ", ".join(f"{number} {end}" for end, number in count.by_end.most_common())
    print(f"seed {seed}: {sum(count.by_end.values())} inputs in {time.monotonic() - begin:.0f} s")
    print(ends)
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())

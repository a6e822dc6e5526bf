"""Runs that go on where they were stopped: a line of JSON for each design that is done."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def finished(
    out: Path, settings: Record, designs: Iterable[str], simulate: Callable[[str], Record]
) -> Iterator[Record]:
    """Yield the record of each design: as it is in the file, or simulated and written there.

    Lines of other settings are left alone, as is the last one of a run that was killed.
    """
    settings = json.loads(json.dumps(settings))  # as they will be read
    done: dict[str, Record] = {}
    for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if record.get("settings") == settings:
            done[record["design"]] = record
    for name in designs:
        if name not in done:
            done[name] = {"design": name, "settings": settings, **simulate(name)}
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[name]) + "\n")
        yield done[name]


def tell(records: Iterator[Record], report: Callable[[list[Record]], str] | None) -> None:
    """Print each record as soon as it is there; with a report, that of all of them alone."""
    if report is not None:
        print(report(list(records)))
        return
    for record in records:
        print(json.dumps(record), flush=True)


def command(
    about: str | None,
    designs: Mapping[str, Iterable[Any]],
    simulate: Callable[..., Record],
    report: Callable[[list[Record]], str],
    **usual: Any,
) -> None:
    """Run every design as the command line says; `usual` are repeats, seed and the file out."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--repeats", type=int, default=usual["repeats"])
    parser.add_argument("--seed", type=int, default=usual["seed"])
    parser.add_argument("--out", type=Path, default=Path(usual["out"]))
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    settings = {"repeats": asked.repeats, "seed": asked.seed}
    records = finished(
        asked.out, settings, designs, lambda name: simulate(*designs[name], **settings)
    )
    tell(records, report if asked.report else None)

"""Runs that go on where they were stopped: a line of JSON for each design that is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
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

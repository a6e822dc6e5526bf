"""Results: every metric with its interval, what they rest on, and how they were made."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from quorate.errors import InvalidInputError

__all__ = ["SCHEMA_VERSION", "Estimate", "Results"]

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Estimate:
    """The value of one metric with its interval; or why it has none."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    debiased: float | None = None
    """The median-unbiased value, for errors whose plain value is biased upwards."""
    bound: float | None = None
    """How far the value may be from the exact one, where it is an approximation."""
    undefined: str | None = None
    """Why there is no value."""
    dropped: int = 0
    """Cases that this metric had to leave out."""
    title: str = ""
    group: str = ""
    meaning: str = ""
    direction: str = "none"
    reference: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.title}: undefined ({self.undefined})"
        if self.low is None or self.high is None:
            return f"{self.title}: {self.value:.4f}"
        return f"{self.title}: {self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True, eq=False)
class Results(Mapping[str, Estimate]):
    """Estimates by name, with the facts about the data and the options they were made with."""

    estimates: Mapping[str, Estimate]
    data: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    curves: Mapping[str, Any] = field(default_factory=dict)
    """The tables that pictures are drawn from, as `quorate.curves` writes them down."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of what computed them, where they were read from a file; otherwise what is running."""

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        width = max((len(e.title) for e in self.values()), default=0)
        lines = [f"Results({self.data.get('cases')} cases)"]
        for e in self.values():
            if e.value is None:
                lines.append(f"  {e.title:{width}}  undefined: {e.undefined}")
            elif e.low is None or e.high is None:
                lines.append(f"  {e.title:{width}}  {e.value:8.4f}")
            else:
                lines.append(f"  {e.title:{width}}  {e.value:8.4f}  [{e.low:.4f}, {e.high:.4f}]")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: what `to_json` writes."""
        return {
            "schema_version": SCHEMA_VERSION,
            "metrics": {name: _plain(asdict(e)) for name, e in self.items()},
            "data": _plain(dict(self.data)),
            "options": _plain(dict(self.options)),
            "warnings": list(self.warnings),
            "versions": dict(self.versions) or _versions(),
            "curves": _plain(dict(self.curves)),
        }

    def to_json(self, path: str | Path) -> None:
        """Write the results as JSON, whole or not at all."""
        from quorate.io.files import write_text_atomically

        text = json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
        write_text_atomically(path, text + "\n")

    def to_html(self, path: str | Path, **parts: Any) -> None:
        """Write a report for people: one file that opens without a network.

        `parts` are further things to show, such as `single=` (the same with one rater per case);
        see `quorate.report.write_report`.
        """
        from quorate.report import write_report

        write_report(self, path, **parts)

    @staticmethod
    def from_json(path: str | Path) -> Results:
        """Read results that `to_json` wrote."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            version = content["schema_version"]
            if version != SCHEMA_VERSION:
                raise InvalidInputError(
                    f"{path}: schema_version must be {SCHEMA_VERSION}; got {version!r}"
                )
            metrics = {name: Estimate(**row) for name, row in content["metrics"].items()}
            return Results(
                metrics,
                content["data"],
                content["options"],
                tuple(content["warnings"]),
                content.get("curves", {}),
                content.get("versions", {}),
            )
        except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path}: is not a quorate result file ({error})") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    names = ("quorate", "numpy", "scipy", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}

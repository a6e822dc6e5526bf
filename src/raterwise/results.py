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
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError

__all__ = [
    "DIGITS",
    "SCHEMA_VERSION",
    "Estimate",
    "LevelDifference",
    "Results",
    "Subgroup",
    "to_digits",
]

SCHEMA_VERSION = 1
END = "\n}"
DIGITS = 9
"""Significant digits of a resampled value, far beyond what a thousand resamples can tell."""
OWN_NOUNS = ("bad images", "voxels")
"""With which the reasons begin that count something else than cases."""


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
    std: float | None = None
    """Standard deviation over images, where the value is their mean."""
    rater_share: float | None = None
    """The part of the variance that is between raters, where cases and raters are resampled."""
    defined: int | None = None
    """Images that the mean is of: those on which the metric has a value."""

    @property
    def less_chance(self) -> float | None:
        """The value without the part that chance adds to an error; of other metrics, the value."""
        return self.value if self.debiased is None else self.debiased

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.title}: undefined ({self.undefined})"
        if self.low is None or self.high is None:
            return f"{self.title}: {self.value:.4f}"
        return f"{self.title}: {self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class LevelDifference:
    """One metric of the cases of a level minus that of all other cases, both less chance."""

    metric: str
    difference: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    """Two-sided, of no difference: below 1 - level where 0 is outside the interval."""
    adjusted_p_value: float | None = None
    """Adjusted over all levels of the variable and all metrics, by permuting levels."""


@dataclass(frozen=True)
class Subgroup:
    """The cases of one level of a variable: metrics within it, and how it differs from the rest."""

    variable: str
    level: str
    cases: int
    patients: int | None
    estimates: Mapping[str, Estimate]
    differences: Mapping[str, LevelDifference]

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Subgroup:
        """Read what `asdict` wrote."""
        parts: dict[str, Any] = {
            "estimates": {k: Estimate(**e) for k, e in content["estimates"].items()},
            "differences": {k: LevelDifference(**d) for k, d in content["differences"].items()},
        }
        return Subgroup(**{**content, **parts})


@dataclass(frozen=True, eq=False)
class Results(Mapping[str, Estimate]):
    """Estimates by name, with the facts about the data and the options they were made with."""

    estimates: Mapping[str, Estimate]
    data: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    curves: Mapping[str, Any] = field(default_factory=dict)
    """The tables that pictures are drawn from, as `raterwise.curves` writes them down."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of what computed them, where they were read from a file; otherwise what is running."""
    case_names: tuple[str, ...] = ()
    """Of images, where each has values of its own."""
    per_case: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """By metric, one value per image (NaN where it is undefined)."""
    per_class: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By metric, one value per class, of the metrics that are sums over classes."""
    subgroups: tuple[Subgroup, ...] = ()
    """The levels of every variable that cases were told apart by."""
    replicates: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """By metric, its value on every resample, to nine digits: what a paired comparison needs."""
    findings: Mapping[str, Results] = field(default_factory=dict)
    """The results of each finding, where the estimates are means over several."""

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
        for variable in dict.fromkeys(s.variable for s in self.subgroups):
            levels = [f"{s.level} ({s.cases})" for s in self.subgroups if s.variable == variable]
            lines.append(f"  by {variable}: {', '.join(levels)}")
        return "\n".join(lines)

    def subgroup(self, variable: str, level: str) -> Subgroup:
        """Return one level of one variable."""
        for found in self.subgroups:
            if (found.variable, found.level) == (variable, str(level)):
                return found
        known = ", ".join(f"{s.variable} = {s.level}" for s in self.subgroups) or "none"
        raise InvalidInputError(f"no sub-group is {variable} = {level}; there are: {known}")

    def to_dict(self, *, replicates: bool = True) -> dict[str, Any]:
        """Return plain Python values: what `to_json` writes."""
        content = {
            "schema_version": SCHEMA_VERSION,
            "metrics": {name: _plain(asdict(e)) for name, e in self.items()},
            "data": _plain(dict(self.data)),
            "options": _plain(dict(self.options)),
            "warnings": list(self.warnings),
            "versions": dict(self.versions) or _versions(),
            "curves": _plain(dict(self.curves)),
        }
        if self.case_names:
            content["per_case"] = {"cases": list(self.case_names), "values": _plain(self.per_case)}
        if self.per_class:
            content["per_class"] = _plain(self.per_class)
        if self.subgroups:
            content["subgroups"] = [_plain(asdict(found)) for found in self.subgroups]
        if self.findings:
            content["findings"] = {
                name: found.to_dict(replicates=replicates) for name, found in self.findings.items()
            }
        if self.replicates and replicates:
            content["replicates"] = _plain(self.replicates)
        return content

    def to_json(self, path: str | Path, *, replicates: bool = True) -> None:
        """Write the results as JSON, whole or not at all.

        Without `replicates` the file is smaller, and cannot be compared with another.
        """
        from raterwise.io.files import write_text_atomically

        content = self.to_dict(replicates=bool(self.findings) and replicates)
        content.pop("replicates", None)
        text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
        if self.replicates and replicates:
            # A line for each metric: a thousand numbers, one below the other, help nobody.
            rows = (
                f"    {json.dumps(k)}: {json.dumps(_plain(v))}" for k, v in self.replicates.items()
            )
            drawn = ",\n".join(rows)
            text = f'{text.removesuffix(END)},\n  "replicates": {{\n{drawn}\n  }}{END}'
        write_text_atomically(path, text + "\n")

    def to_html(self, path: str | Path, **parts: Any) -> None:
        """Write a report for people: one file that opens without a network.

        `parts` are further things to show, such as `single=` (the same with one rater per case);
        see `raterwise.report.write_report`.
        """
        from raterwise.report import write_report

        write_report(self, path, **parts)

    @staticmethod
    def from_json(path: str | Path) -> Results:
        """Read results that `to_json` wrote."""
        try:
            return Results.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path}: is not a raterwise result file ({error})") from error
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from error

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Results:
        """Return the results that `to_dict` gave."""
        try:
            version = content["schema_version"]
            if version != SCHEMA_VERSION:
                raise InvalidInputError(f"schema_version must be {SCHEMA_VERSION}; got {version!r}")
            metrics = {name: Estimate(**row) for name, row in content["metrics"].items()}
            each = content.get("per_case", {"cases": [], "values": {}})
            by_class = content.get("per_class", {})
            return Results(
                metrics,
                content["data"],
                _options_of(content["options"]),
                tuple(content["warnings"]),
                content.get("curves", {}),
                content.get("versions", {}),
                tuple(each["cases"]),
                {name: np.array(values, np.float64) for name, values in each["values"].items()},
                {name: tuple(np.array(v, np.float64).tolist()) for name, v in by_class.items()},
                tuple(Subgroup.from_dict(found) for found in content.get("subgroups", [])),
                {k: np.array(v, np.float64) for k, v in content.get("replicates", {}).items()},
                {k: Results.from_dict(v) for k, v in content.get("findings", {}).items()},
            )
        except KeyError as error:
            raise InvalidInputError(f"is not a raterwise result file (no {error} in it)") from error
        except (AttributeError, TypeError) as error:
            raise InvalidInputError(f"is not a raterwise result file ({error})") from error


def _options_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options by their present names; early files said `resample` for `unit`."""
    if "resample" not in content:
        return content
    rest = {name: value for name, value in content.items() if name != "resample"}
    return {"options": {}, **rest, "unit": content["resample"]}


def left_out(reason: str, count: int) -> str:
    """Return how many cases were left out and why; some reasons say themselves what is counted.

    >>> left_out("nobody rated", 2), left_out("bad images", 1), left_out("no_prediction", 1)
    ('2 cases (nobody rated)', '1 bad image', '1 case (no prediction)')
    """
    noun = next((noun for noun in OWN_NOUNS if reason.startswith(noun)), "cases")
    rest = reason.removeprefix(noun) if reason.startswith(noun) else f" ({reason})"
    noun = noun.removesuffix("s") if count == 1 else noun
    return f"{count:,} {noun}{rest}".replace("_", " ")


def to_digits(values: Any) -> NDArray[np.float64]:
    """Return values as a file will hold them, so that reading it back changes nothing.

    >>> to_digits([1 / 3, 2e-7 / 3, float("nan")]).tolist()
    [0.333333333, 6.66666667e-08, nan]
    """
    return np.array([float(f"{value:.{DIGITS}g}") for value in np.asarray(values).tolist()])


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

    names = ("raterwise", "numpy", "scipy", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}

"""Results: every metric with its interval, what they rest on, and how they were made."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.io.damaged import read_json
from raterwise.provenance import versions
from raterwise.results.checks import check_parts, estimates_of, subgroup_of, written_by_another
from raterwise.results.estimate import Estimate, Subgroup
from raterwise.results.exports import Exports
from raterwise.rules import did_you_mean

SCHEMA_VERSION = 1
END = "\n}"
DIGITS = 9
"""Significant digits of a resampled value, far beyond what a thousand resamples can tell."""
OWN_NOUNS = ("bad images", "voxels")
"""With which the reasons begin that count something else than cases."""


@dataclass(frozen=True, eq=False)
class Results(Exports, Mapping[str, Estimate]):
    """Estimates by name, with facts about the data and the options used.

    A mapping: `results["ece"]` is an `Estimate`, `list(results)` are the metrics.

    Parameters
    ----------
    estimates : mapping of str to Estimate
        By metric.
    data : mapping
        Facts about the data: cases, patients, raters, classes, what was left out and why.
    options : mapping
        The options used.
    warnings : tuple of str
        Cautions.
    curves : mapping
        The tables behind the charts, as written by `raterwise.curves`.
    versions : mapping of str to str
        The versions of the software that computed the results, if they were read from a file;
        otherwise of the running software.
    case_names : tuple of str
        Names of the images, if each has its own values.
    per_case : mapping of str to ndarray
        For each metric, one value per image; NaN if it is undefined.
    per_class : mapping of str to tuple of float
        For each metric that is a sum over classes, one value per class.
    subgroups : tuple of Subgroup
        The levels of every sub-group variable.
    replicates : mapping of str to ndarray
        For each metric, its value on every resample to nine digits, as needed for paired
        comparisons.
    findings : mapping of str to Results
        The results of each finding, where the estimates are means over several.
    provenance : mapping
        When the results were made, with which call or command, from which files and raters, and
        which cases were left out.

    See Also
    --------
    evaluate, evaluate_stream, evaluate_multilabel, segmentation.evaluate : return them.

    Examples
    --------
    >>> import raterwise as rw
    >>> rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy,brier", resamples=0)
    Results(4 cases)
      Accuracy       0.7500
      Brier score    0.2250
    """

    estimates: Mapping[str, Estimate]
    data: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    curves: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    case_names: tuple[str, ...] = ()
    per_case: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    per_class: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    subgroups: tuple[Subgroup, ...] = ()
    replicates: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    findings: Mapping[str, Results] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Estimate:
        try:
            return self.estimates[name]
        except KeyError:
            meant = did_you_mean(name, self.estimates)
            known = ", ".join(self.estimates) or "none"
            raise KeyError(
                f"no metric {name!r} in these results{meant}; there are: {known}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        width = max((len(e.title) for e in self.values()), default=0)
        lines = [f"Results({self.data.get('cases')} cases)"]
        for e in self.values():
            if e.value is None:
                lines.append(f"  {e.title:{width}}  undefined")
            elif e.low is None or e.high is None:
                lines.append(f"  {e.title:{width}}  {e.value:8.4f}")
            else:
                lines.append(f"  {e.title:{width}}  {e.value:8.4f}  [{e.low:.4f}, {e.high:.4f}]")
        for variable in dict.fromkeys(s.variable for s in self.subgroups):
            levels = [f"{s.level} ({s.cases})" for s in self.subgroups if s.variable == variable]
            lines.append(f"  by {variable}: {', '.join(levels)}")
        reasons = dict.fromkeys(e.undefined for e in self.values() if e.value is None)
        lines += [f"  undefined: {reason}" for reason in reasons]
        return "\n".join(lines)

    def subgroup(self, variable: str, level: str) -> Subgroup:
        """Return one level of one variable.

        Parameters
        ----------
        variable : str
            Name of the sub-group variable.
        level : str
            Value of the variable.

        Returns
        -------
        Subgroup
            Its cases, estimates and differences from all other cases.

        Raises
        ------
        InvalidInputError
            If there is no such level; the message lists the existing ones.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate(
        ...     [0.9, 0.8, 0.3, 0.6] * 5,
        ...     [1, 0, 0, 1] * 5,
        ...     "accuracy",
        ...     resamples=20,
        ...     subgroups={"scanner": ["A", "B", "A", "A"] * 5},
        ... )
        >>> results.subgroup("scanner", "A").estimates["accuracy"].value
        1.0
        """
        for found in self.subgroups:
            if (found.variable, found.level) == (variable, str(level)):
                return found
        names = [f"{s.variable} = {s.level}" for s in self.subgroups]
        meant = did_you_mean(f"{variable} = {level}", names)
        raise InvalidInputError(
            f"no sub-group is {variable} = {level}; there are: {', '.join(names) or 'none'}{meant}"
        )

    def to_dict(self, *, replicates: bool = True) -> dict[str, Any]:
        """Return plain Python values: what `to_json` writes.

        Parameters
        ----------
        replicates : bool, default True
            Whether to include the resampled values, which comparisons need.

        Returns
        -------
        dict
            `schema_version`, `metrics`, `data`, `options`, `warnings`, `versions`, `curves`,
            `provenance`, and other entries if there are any.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0)
        >>> results.to_dict()["metrics"]["accuracy"]["value"]
        0.75
        """
        content = {
            "schema_version": SCHEMA_VERSION,
            "metrics": {name: plain(asdict(e)) for name, e in self.items()},
            "data": plain(dict(self.data)),
            "options": plain(dict(self.options)),
            "warnings": list(self.warnings),
            "versions": dict(self.versions) or versions(),
            "curves": plain(dict(self.curves)),
        }
        if self.provenance:
            made = {key: plain(value) for key, value in self.provenance.items()}
            same = {key: content[key] for key in ("options", "versions")}
            content["provenance"] = {**made, **same}
        if self.case_names:
            content["per_case"] = {"cases": list(self.case_names), "values": plain(self.per_case)}
        if self.per_class:
            content["per_class"] = plain(self.per_class)
        if self.subgroups:
            content["subgroups"] = [plain(asdict(found)) for found in self.subgroups]
        if self.findings:
            content["findings"] = {
                name: found.to_dict(replicates=replicates) for name, found in self.findings.items()
            }
        if self.replicates and replicates:
            content["replicates"] = plain(self.replicates)
        return content

    def to_json(self, path: str | Path, *, replicates: bool = True) -> None:
        """Write the results as JSON. The file is written completely or not at all.

        Parameters
        ----------
        path : str or path
            The file.
        replicates : bool, default True
            Whether to include the resampled values. Without them the file is smaller, but cannot be
            used in comparisons.

        Examples
        --------
        >>> import raterwise as rw
        >>> path = getfixture("tmp_path") / "results.json"
        >>> rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0).to_json(path)
        >>> rw.Results.from_json(path)["accuracy"].value
        0.75
        """
        from raterwise.io.files import write_text_atomically

        content = self.to_dict(replicates=bool(self.findings) and replicates)
        content.pop("replicates", None)
        text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
        if self.replicates and replicates:
            # A line for each metric: a thousand numbers, one below the other, help nobody.
            rows = (
                f"    {json.dumps(k)}: {json.dumps(plain(v))}" for k, v in self.replicates.items()
            )
            drawn = ",\n".join(rows)
            text = f'{text.removesuffix(END)},\n  "replicates": {{\n{drawn}\n  }}{END}'
        write_text_atomically(path, text + "\n")

    def to_html(self, path: str | Path, **parts: Any) -> None:
        """Write an HTML report: a single file that opens offline.

        Parameters
        ----------
        path : str or path
            The file.
        **parts : Any
            Further parts to show, such as `single=` (the same with one rater per case): see
            `report.report_html`.

        See Also
        --------
        report.report_html : the report as text, and its parts.

        Examples
        --------
        >>> import raterwise as rw
        >>> path = getfixture("tmp_path") / "report.html"
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "brier", resamples=20)
        >>> results.to_html(path, title="Nodule model 3")
        >>> "Nodule model 3" in path.read_text(encoding="utf-8")
        True
        """
        from raterwise.report import write_report

        write_report(self, path, **parts)

    @staticmethod
    def from_json(path: str | Path) -> Results:
        """Read results written by `to_json`.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Results
            As they were written.

        Raises
        ------
        InvalidInputError
            If the file is something else, or has another version.

        Examples
        --------
        >>> import raterwise as rw
        >>> path = getfixture("tmp_path") / "results.json"
        >>> rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0).to_json(path)
        >>> rw.Results.from_json(path).data["cases"]
        4
        """
        content = read_json(path, "a raterwise result file")
        try:
            return Results.from_dict(content)
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {written_by_another(content) or error}") from error

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Results:
        """Rebuild the results from the output of `to_dict`.

        Parameters
        ----------
        content : mapping
            The output of `to_dict`.

        Returns
        -------
        Results
            The same results.

        Raises
        ------
        InvalidInputError
            If something is missing, or the version is another one.

        Examples
        --------
        >>> import raterwise as rw
        >>> results = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0)
        >>> rw.Results.from_dict(results.to_dict())["accuracy"] == results["accuracy"]
        True
        """
        try:
            version = content["schema_version"]
            if version != SCHEMA_VERSION:
                raise InvalidInputError(f"schema_version must be {SCHEMA_VERSION}; got {version!r}")
            check_parts(content)
            metrics = estimates_of(content["metrics"])
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
                tuple(subgroup_of(found) for found in content.get("subgroups", [])),
                {k: np.array(v, np.float64) for k, v in content.get("replicates", {}).items()},
                {k: Results.from_dict(v) for k, v in content.get("findings", {}).items()},
                {
                    key: value
                    for key, value in content.get("provenance", {}).items()
                    if key not in ("options", "versions")
                },
            )
        except KeyError as error:
            raise InvalidInputError(f"is not a raterwise result file (no {error} in it)") from error
        except InvalidInputError:
            raise
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
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


def plain(value: Any) -> Any:
    """Return what JSON can hold: NaN and infinity are null there."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""How everything was computed, and where it comes from: on the screen and on paper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from raterwise.report.markup import Html, data_table, el, names_apart
from raterwise.report.references import papers_of
from raterwise.report.sections import section
from raterwise.report.words import (
    counted_in_words,
    facts_in_words,
    level_of,
    subject_of,
    titles_by,
    unit_of,
)
from raterwise.results import Results, left_out

MOST_FILES = 8
"""More files than this are folded."""
MOST_NAMED = 20
"""How many of the cases that were left out are named for each reason."""


def method(results: Results, versions: Mapping[str, str]) -> Html:
    """Return how it was computed: options, what was left out, what is undefined, versions."""
    data, options = results.data, results.options
    unit = "patients" if data.get("patients") else f"{subject_of(data)}s"
    drawn = unit if options.get("unit", "cases") == "cases" else "raters"
    lines = []
    if options.get("resamples"):
        lines.append(
            f"Intervals ({level_of(results)}) from {options['resamples']:,} bootstrap resamples of "
            f"{drawn}, seed {options.get('seed', 0)}."
        )
        if results.per_case:
            lines.append("Each value is the mean over the images.")
        else:
            lines[-1] += " Intervals of calibration errors invert a test, so they can include 0."
    else:
        lines.append("No intervals were made.")
    lines.append(f"{facts_in_words(data)}.")
    for reason, count in data.get("dropped", {}).items():
        lines.append(f"Left out: {left_out(str(reason), count)}.")
    lines += _not_in_every_finding(results) if results.findings else _not_in_every_metric(results)
    rows = [(str(name), _as_given(value)) for name, value in options.items() if value != {}]
    if not results.provenance:  # which has them
        rows += [(f"version of {name}", version) for name, version in versions.items()]
    table = data_table(("Option", "Value"), rows)
    references = [
        el("li", paper, el("small", f" For: {', '.join(titles)}."))
        for paper, titles in papers_of(results.values()).items()
    ]
    return section(
        "method",
        "How this was computed",
        el("ul", [el("li", line) for line in lines]),
        el("details", el("summary", "Options"), table),
        el("details", el("summary", "References"), el("ol", references)) if references else None,
    )


def _as_given(value: Any) -> str:
    """Return an option as it is written in a command.

    >>> _as_given(None), _as_given(["ece", "brier"]), _as_given({"robust_ece": {"sigma": 0.05}})
    ('default', 'ece, brier', 'robust_ece.sigma=0.05')
    """
    if isinstance(value, Mapping):
        return ", ".join(
            f"{name}.{key}={_as_given(one)}"
            for name, own in value.items()
            for key, one in own.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(map(_as_given, value))
    return "default" if value is None else str(value)


def _not_in_every_metric(results: Results) -> list[str]:
    """Return which cases some metrics go without, and which metrics have no value."""
    short = titles_by((e.dropped, e.title) for e in results.values())
    why = titles_by((e.undefined, e.title) for e in results.values())
    unit = f"{unit_of(results.data)}s"
    return [
        *(f"Left out for too few raters: {count:,} {unit} in {titles}." for count, titles in short),
        *(f"Undefined: {titles}: {reason}." for reason, titles in why),
    ]


def _not_in_every_finding(results: Results) -> list[str]:
    """Return which cases the findings go without, and in which a metric has no value."""
    lines = []
    for title, found in results.findings.items():
        for reason, count in found.data.get("dropped", {}).items():
            lines.append(f"Left out of {title}: {left_out(str(reason), count)}.")
    for name, e in results.items():
        absent = [title for title, found in results.findings.items() if found[name].value is None]
        if absent:
            where = "every finding" if len(absent) == len(results.findings) else ", ".join(absent)
            reason = results.findings[absent[0]][name].undefined
            lines.append(f"Undefined: {e.title} in {where}: {reason}.")
    return lines


def provenance(
    found: Mapping[str, Any], versions: Mapping[str, str], data: Mapping[str, Any]
) -> Html | None:
    """Return when, by what, from which files and whose ratings; None for files that do not say."""
    if not found:
        return None
    rows: list[tuple[str, Any]] = [
        ("Made", str(found.get("date", "unknown")).replace("T", " ").replace("Z", " UTC")),
        ("By", _command(str(found.get("call", "unknown")))),
        ("Software", ", ".join(f"{name} {number}" for name, number in versions.items())),
    ]
    rows += [("Seed", found["seed"])] if found.get("seed") is not None else []
    rows += [("Raters", _raters(found["raters"], data))] if "raters" in found else []
    rows += [(f"Left out: {left_out(reason, part['cases'])}", _named(part))
             for reason, part in found.get("left_out", {}).items()]  # fmt: skip
    files = found.get("inputs", [])
    content: list[Any] = [data_table(("What", "Value"), rows, "When, by what, whose ratings")]
    if files:
        listed = [
            (file["name"], f"{file['bytes']:,}", el("code", file["sha256"] or "too large to read"))
            for file in files
        ]
        title = "Files that were read"
        table = data_table(("File", "Bytes", "SHA-256"), listed, title, class_="files")
        if len(files) > MOST_FILES:
            told = el("summary", f"The {len(files):,} files that were read")
            table = el("details", told, table)
        content.append(table)
    else:
        content.append(el("p", "The data came from memory, not from files.", class_="note"))
    heading = el("h2", "Provenance", id="provenance-heading")
    # All of it in print, too: wide hashes wrap, and nothing is hidden behind a scroll bar.
    body = el("div", content, style="overflow-wrap:anywhere")
    return el("section", heading, body, id="provenance", aria_labelledby="provenance-heading")


def _command(call: str) -> Html:
    """Return a command that wraps between its words, not after the hyphens of an option."""
    parts = re.split(r"(\S*-\S*)", call)
    return el("code", [el("span", part, class_="word") if "-" in part else part for part in parts])


def _raters(names: Any, data: Any) -> str:
    if isinstance(names, list):
        return names_apart(names)
    most = data.get("raters", {}).get("max")
    if most is None:
        return "not named"
    return f"not named, up to {counted_in_words(most, 'rating')} per {unit_of(data)}"


def _named(part: Any) -> list[str]:
    names = part.get("names", [])
    more = f" and {part['cases'] - MOST_NAMED:,} more" if part["cases"] > MOST_NAMED else ""
    return [names_apart(names[:MOST_NAMED]), more] if names else ["names are not known"]

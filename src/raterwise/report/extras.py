"""The sections that a report has where their data are given, and how everything was computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from raterwise.catalog import CATALOG
from raterwise.exchangeability import ExchangeabilityTest
from raterwise.report.markup import Html, data_table, el
from raterwise.report.references import papers_of
from raterwise.report.sections import scrolled, section
from raterwise.report.words import (
    bracketed,
    facts_in_words,
    level_of,
    natural,
    number,
    p_value,
    percent,
    points,
    unit_of,
)
from raterwise.results import Results, left_out

MOST_CASES = 25
"""How many cases of a worklist a report shows."""


def raters(results: Results, test: Any, note: str | None = None) -> Html | None:
    """Return how far the raters agree, and whether they are interchangeable.

    Results hold the test where it was known who said what.
    """
    if test is None and results.data.get("exchangeability"):
        test = ExchangeabilityTest.from_dict(results.data["exchangeability"])
    lines = []
    for name, e in results.items():
        if name in CATALOG and "of_pairs" in CATALOG[name].tags and e.value is not None:
            title = el("strong", f"{e.title}: {number(e.value, 2)}{bracketed(e, 2)}. ")
            lines.append(el("li", title, e.meaning))
    if not lines and test is None:
        return None
    content: list[Any] = [el("ul", lines)] if lines else []
    if test is not None:
        content += [el("p", line) for line in interchangeable(test)]
        content += [el("p", note, class_="note")] if note else []
        rows = [
            (r.rater_id, f"{r.ratings:,}", _difference(r), p_value(r.adjusted_p_value),
             "stands out" if r.breaks else "–")
            for r in by_name(test.raters)
        ]  # fmt: skip
        header = ("Rater", "Ratings compared", "Largest difference", "Adjusted p-value", "Verdict")
        caption = "Each rater against the others on the same cases, in the order of their names"
        table = scrolled(data_table(header, rows, caption), "Each rater")
        content.append(el("details", el("summary", "Each rater"), table))
    return section("raters", "Do the raters agree?", *content)


def interchangeable(test: Any) -> list[str]:
    """Return the outcome of the test in sentences."""
    rests = (
        f"labels differ on {test.divided_cases:,} of the {test.cases:,} cases with two or more; "
        f"{test.permutations:,} permutations"
    )
    p = p_value(test.p_value, "p")
    if test.p_value > test.significance:
        return [f"The raters look interchangeable: {p} ({rests})."]
    lines = [
        f"The raters are not interchangeable: {p} ({rests}). The figures in this report describe "
        "the panel that rated these cases; another panel might say something else."
    ]
    for rater in (r for r in by_name(test.raters) if r.breaks):
        klass, most = rater.largest
        lines.append(
            f"{called(rater.rater_id)} says “{klass}” {points(abs(most))} percentage points "
            f"{'more' if most > 0 else 'less'} often than the others do on the same "
            f"{rater.ratings:,} cases (adjusted {p_value(rater.adjusted_p_value, 'p')})."
        )
    if len(lines) == 1:
        lines.append("No single rater stands out.")
    return lines


def called(name: Any) -> str:
    """Return what to call a rater at the beginning of a sentence.

    >>> called(3), called("Smith"), called("reader_2")
    ('Rater 3', 'Rater Smith', 'reader_2')
    """
    own = str(name)
    return own if own.casefold().startswith(("rater", "reader")) else f"Rater {own}"


def by_name(raters: Iterable[Any]) -> list[Any]:
    """Return raters in the order of their names, in which 2 comes before 10."""
    return sorted(raters, key=lambda rater: natural(rater.rater_id))


def _difference(rater: Any) -> str:
    """Return the class on which a rater differs most, and by how many percentage points."""
    if not rater.ratings:
        return "–"
    klass, most = rater.largest
    return f"{klass}: {100 * most:+.1f} points".replace("-", "−")


def worklist(found: Any, most: int = MOST_CASES) -> Html | None:
    """Return the cases that need a second opinion, and what each answer would change."""
    if found is None:
        return None
    names = found.class_names
    known = bool(len(found)) and bool(found.expected_gain.max() > 0)  # how sure to be of a case
    items = []
    for i in range(min(len(found), most)):
        top = int(np.argmax(found.probs[i]))
        told = f": now “{names[top]}” {percent(found.probs[i, top])}; two raters would differ with "
        told += f"probability {percent(found.disagreement[i])}"
        case = el("strong", found.case_ids[i])
        if not known:
            items.append(el("li", case, told))
            continue
        summary = el("summary", case, f"{told}; gain {number(found.expected_gain[i])}")
        items.append(
            el("li", el("details", summary, el("ul", _answers(found.posterior[i], names))))
        )
    rest = len(found) - len(items)
    more = el("p", f"And {rest:,} more.", class_="note") if rest > 0 else None
    text = (
        "The cases where one more expert's label is worth most come first."
        if found.by == "gain" and known
        else "The cases that two raters are most likely to differ about come first."
    )
    text += (
        " The gain is how much one more expert's label is expected to lower the squared error of "
        "the probabilities. Open a case to see what each answer would change."
        if known
        else " How sure to be of each case is unknown, and so what an answer would change."
    )
    return section("worklist", "Which cases need a second opinion?", el("p", text),
                   el("ol", items, class_="worklist"), more)  # fmt: skip


def _answers(posterior: Any, names: Sequence[str]) -> list[Html]:
    """Return what each answer of an expert would make the likeliest class, and how likely."""
    told = []
    for name, after in zip(names, posterior, strict=True):
        if not np.isnan(after).any():
            best = int(np.argmax(after))
            says = f"If the expert says “{name}”: “{names[best]}” {percent(after[best])}"
            told.append(el("li", says))
    return told


def method(results: Results, versions: Mapping[str, str]) -> Html:
    """Return how it was computed: options, what was left out, what is undefined, versions."""
    data, options = results.data, results.options
    unit = "patients" if data.get("patients") else "images" if "voxels" in data else "cases"
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
    rows = [(str(name), _written(value)) for name, value in options.items() if value != {}]
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


def _not_in_every_metric(results: Results) -> list[str]:
    """Return which cases some metrics go without, and which metrics have no value."""
    short: dict[int, list[str]] = {}
    why: dict[str, list[str]] = {}
    for e in results.values():
        if e.dropped:
            short.setdefault(e.dropped, []).append(e.title)
        if e.undefined:
            why.setdefault(e.undefined, []).append(e.title)
    lines = []
    for count, titles in short.items():
        few = f"{count:,} {unit_of(results.data)}s in {', '.join(titles)}"
        lines.append(f"Left out for too few raters: {few}.")
    return lines + [f"Undefined: {', '.join(titles)}: {reason}." for reason, titles in why.items()]


def _not_in_every_finding(results: Results) -> list[str]:
    """Return which cases the findings go without, and in which a metric has no value."""
    lines = []
    for title, found in results.findings.items():
        for reason, count in found.data.get("dropped", {}).items():
            lines.append(f"Left out of {title}: {left_out(str(reason), count)}.")
    for name, e in results.items():
        absent = [title for title, found in results.findings.items() if found[name].value is None]
        if absent:
            where = "every finding" if e.value is None else ", ".join(absent)
            reason = results.findings[absent[0]][name].undefined
            lines.append(f"Undefined: {e.title} in {where}: {reason}.")
    return lines


def _written(value: Any) -> str:
    return "default" if value is None else str(value)

"""The sections that a report has where their data are given, and how everything was computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from quorate.report import charts
from quorate.report.markup import Html, data_table, el
from quorate.report.sections import Charts, figure, section
from quorate.report.words import number, percent
from quorate.results import Results

__all__ = ["method", "raters", "stability", "worklist"]

MOST_CASES = 25
"""How many cases of a worklist a report shows."""


def stability(curves: Mapping[str, Any] | None, found: Charts) -> Html | None:
    """Return the metrics against the size of the test set (RECE Fig 2, MR Fig 3)."""
    if not curves:
        return None
    rows = [
        (name, f"{size:,}", number(float(mean), 4), number(float(std), 4))
        for name, curve in curves.items()
        for size, mean, std in zip(curve.sizes, curve.mean, curve.std, strict=True)
    ]
    table = data_table(("Metric", "Cases", "Mean", "Standard deviation"), rows, "Subsets")
    words = "Metrics on random subsets of growing size: " + "; ".join(
        f"{name} {number(curve.full)} on all cases" for name, curve in curves.items()
    )
    chart = found.place("stability-chart", charts.stability(curves), words)
    caption = (
        "Each metric on random subsets of the cases. A curve that is still falling where it ends "
        "says that the figure would be smaller with more cases."
    )
    return section("stability", "Would fewer cases say the same?", figure(chart, caption, table))


def raters(results: Results, test: Any) -> Html | None:
    """Return how far the raters agree, and whether they are interchangeable."""
    lines = []
    for name in ("fleiss_kappa", "krippendorff_alpha"):
        e = results.get(name)
        if e is not None and e.value is not None:
            ends = "" if e.low is None else f" [{number(e.low, 2)}, {number(e.high, 2)}]"
            lines.append(
                el("li", el("strong", f"{e.title}: {number(e.value, 2)}{ends}. "), e.meaning)
            )
    if not lines and test is None:
        return None
    content: list[Any] = [el("ul", lines)] if lines else []
    if test is not None:
        content += [el("p", line) for line in str(test).splitlines()]
        rows = [
            (r.rater_id, r.ratings, number(r.adjusted_p_value, 3),
             "stands out" if r.breaks else "–")
            for r in test.raters
        ]  # fmt: skip
        header = ("Rater", "Ratings compared", "Adjusted p-value", "Verdict")
        table = data_table(header, rows, "Each rater against the others on the same cases")
        content.append(el("details", el("summary", "Each rater"), el("div", table, class_="scroll",
                       tabindex="0", role="group", aria_label="Each rater")))  # fmt: skip
    return section("raters", "Do the raters agree?", *content)


def worklist(found: Any) -> Html | None:
    """Return the cases that want a second opinion, and what each answer would change."""
    if found is None:
        return None
    names = found.class_names
    items = []
    for i in range(min(len(found), MOST_CASES)):
        top = int(np.argmax(found.probs[i]))
        answers = []
        for k, name in enumerate(names):
            after = found.posterior[i, k]
            if np.isnan(after).any():
                continue
            best = int(np.argmax(after))
            answers.append(el("li", f"If the expert says “{name}”: {names[best]}, "
                                    f"{percent(after[best])}"))  # fmt: skip
        now = f"{names[top]} {percent(found.probs[i, top])}"
        differ = percent(found.disagreement[i])
        summary = el("summary", el("strong", found.case_ids[i]), f" – now {now}; two raters differ "
                     f"{differ}; expected gain {number(found.expected_gain[i], 4)}")  # fmt: skip
        items.append(el("li", el("details", summary, el("ul", answers))))
    rest = len(found) - len(items)
    more = el("p", f"And {rest:,} more.", class_="note") if rest > 0 else None
    text = "The cases where another expert's label is worth most, the most worthwhile first."
    return section("worklist", "Who wants a second opinion?", el("p", text),
                   el("ol", items, class_="worklist"), more)  # fmt: skip


def method(results: Results, versions: Mapping[str, str]) -> Html:
    """Return how it was computed: options, what was left out, what is undefined, versions."""
    data, options = results.data, results.options
    unit = "patients" if data.get("patients") else "cases"
    drawn = unit if options.get("resample", "cases") == "cases" else "raters"
    lines = []
    if options.get("resamples"):
        level = span_of_level(options.get("level", 0.95))
        lines.append(
            f"Intervals ({level}) from {options['resamples']:,} bootstrap resamples of {drawn}, "
            f"seed {options.get('seed', 0)}. Those of calibration errors invert a test, so that "
            "they may include 0."
        )
    else:
        lines.append("No intervals were made.")
    lines.append(
        f"{data['cases']:,} cases, {data['classes']} classes, {data['ratings']:,} ratings "
        f"({data['raters']['min']} to {data['raters']['max']} per case)."
    )
    for reason, count in data.get("dropped", {}).items():
        lines.append(f"Left out: {count:,} cases ({str(reason).replace('_', ' ')}).")
    short: dict[int, list[str]] = {}
    why: dict[str, list[str]] = {}
    for e in results.values():
        if e.dropped:
            short.setdefault(e.dropped, []).append(e.title)
        if e.undefined:
            why.setdefault(e.undefined, []).append(e.title)
    for count, titles in short.items():
        lines.append(f"Left out, having too few raters: {count:,} cases in {', '.join(titles)}.")
    lines += [f"Undefined: {', '.join(titles)}: {reason}." for reason, titles in why.items()]
    rows = [(str(name), _written(value)) for name, value in options.items()]
    rows += [(f"version of {name}", version) for name, version in versions.items()]
    table = data_table(("Option", "Value"), rows, "Options and versions")
    references = [el("li", f"{e.title}: {e.reference}") for e in results.values() if e.reference]
    return section(
        "method",
        "How this was computed",
        el("ul", [el("li", line) for line in lines]),
        el("details", el("summary", "Options and versions"), table),
        el("details", el("summary", "References"), el("ul", references)) if references else None,
    )


def span_of_level(level: float) -> str:
    """Return the level of an interval."""
    return f"{100 * level:g}\u00a0%"


def _written(value: Any) -> str:
    return "default" if value is None else str(value)

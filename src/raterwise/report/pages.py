"""Pages of what is not an evaluation: stability, a plan, the raters' agreement, a worklist.

Each is made of the sections that a report has, with its own first lines and where it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from raterwise.report.charts import Spec, altair, colour_of, compiled, log_axis
from raterwise.report.headlines import designs_in_words
from raterwise.report.markup import Html, data_table, el
from raterwise.report.method import provenance
from raterwise.report.page import page
from raterwise.report.raters import by_points, interchangeable
from raterwise.report.sections import Charts, figure, section, warned, wide
from raterwise.report.stability import stability
from raterwise.report.words import bracketed, cost, natural, number, p_value, percent

MOST_CASES = 25
"""How many cases of a worklist a report shows."""
MOST_LISTED = 200
"""How many cases a page of a worklist has."""
MOST_CLASSES = 6
"""Up to how many classes the table of raters has a column for each."""

Origin = Mapping[str, Any]
"""`provenance` and `versions`, as the JSON of every command has them."""


def stability_page(
    curves: Mapping[str, Any],
    variation: Mapping[str, Any],
    told: Sequence[str],
    *,
    basis: str,
    notes: Iterable[str] = (),
    findings: bool = False,
    origin: Origin,
) -> str:
    """Return how steady metrics are when the test set shrinks; `told` are the first lines."""
    found = Charts()
    shown = stability(curves, variation, found, findings=findings)
    content = [_first(told, basis, notes), shown, _origin(origin)]
    return page("How steady are these figures?", "", content, found)


def plan_page(
    metric: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    level: float,
    advice: str | None,
    basis: str,
    notes: Iterable[str] = (),
    origin: Origin,
) -> str:
    """Return how wide an interval each design would give; `rows` are those of the CSV file."""
    found = Charts()
    best = next((row for row in rows if row["best"]), None)
    told = [] if advice is None else advice.split(". ", 1)
    told[:1] = [f"{line.removesuffix('.')}." for line in told[:1]]
    if best is None and not told:
        told = [designs_in_words(rows)]
    words = f"Expected width of the {100 * level:g}% interval of {metric} by design."
    chart = found.place("plan-chart", _widths(rows), f"{words} The table below has the numbers.")
    mark = "narrowest" if "cannot tell" in (advice or "") else "best"
    header = ["Cases", "Raters per case", "Readings", "Cost", "Width", "Bias", "By"]
    cells = [
        (f"{row['cases']:,}", row["raters"], f"{row['readings']:,}", cost(row["cost"]),
         _with_error(row, "width"), _with_error(row, "bias"),
         row["method"] + (f", the {mark} within the budget" if row["best"] else ""))
        for row in rows
    ]  # fmt: skip
    caption = (
        f"{words} Each line is a number of raters per case. Bias: how far the expected value is "
        "from that of the pilot. ±: standard error of the simulation and of the pilot."
    )
    table = wide(data_table(header, cells, "Every design"), "Every design")
    shown = section("plan", "What would each design give?", figure(chart, caption), table)
    content = [_first(told, basis, notes), shown, _origin(origin)]
    title = "How many cases and raters does the study need?"
    return page(title, f"Planned for: {metric}", content, found)


def agreement_page(
    agreement: Any,
    titles: Mapping[str, str],
    class_names: Sequence[str],
    *,
    basis: str,
    origin: Origin,
) -> str:
    """Return how far raters agree with one another, and what each of them says."""
    rows = [
        (titles[name], "undefined" if e.value is None else number(e.value),
         "–" if e.low is None else f"{number(e.low)} to {number(e.high)}")
        for name, e in agreement.estimates.items()
    ]  # fmt: skip
    level = f"{100 * agreement.level:g}%"
    coefficients = data_table(("Coefficient", "Value", f"{level} interval"), rows, "Agreement")
    note = "1 is perfect agreement. At 0, raters agree as often as by chance; below 0, less often."
    parts: list[Any] = [coefficients, el("p", note, class_="note")]
    if agreement.test is not None:
        parts += [el("p", line) for line in interchangeable(agreement.test)]
    shown = section("agreement", "Do the raters agree?", parts)
    each = _each_rater(agreement, class_names) if agreement.raters else None
    known = [name for name, e in agreement.estimates.items() if e.value is not None]
    # Where classes have an order, κ and the nominal α count a miss by one step as any other.
    telling = sorted(known, key=lambda name: not name.endswith("_ordinal"))[:1]
    told = [f"{titles[name]}: {number(e.value, 2)}{bracketed(e, 2)}."
            for name in telling for e in [agreement.estimates[name]]]  # fmt: skip
    content = [_first(told, basis, agreement.warnings), shown, each, _origin(origin)]
    return page("How far do the raters agree?", "", content, Charts())


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


def worklist_page(found: Any, *, basis: str, origin: Origin) -> str:
    """Return which cases need a second opinion first."""
    order = {"gain": "what one more label is worth", "disagreement": "predicted disagreement"}
    told = [f"{len(found):,} cases, ranked by {order[found.by]}."]
    content = [_first(told, basis, ()), worklist(found, MOST_LISTED), _origin(origin)]
    return page("Worklist", "", content, Charts())


def _first(told: Sequence[str], basis: str, notes: Iterable[str]) -> Html:
    """Return the first lines of a page: what was found, on what it rests, what to know."""
    lines = [el("p", line, class_="headline" if i == 0 else None) for i, line in enumerate(told)]
    panel = el("div", lines, el("p", f"Based on {basis}.", class_="basis"), class_="panel")
    return section("verdict", "In brief", panel, warned(notes))


def _origin(origin: Origin) -> Html | None:
    return provenance(origin["provenance"], origin["versions"], {})


def _with_error(row: Mapping[str, Any], key: str) -> str:
    error = row.get(f"{key}_error")
    return number(row[key]) + (f"\u00a0±\u00a0{number(error)}" if error else "")


def _widths(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """Return the width of the interval against the number of cases, a line per number of raters."""
    alt = altair()
    names = [_raters(n) for n in sorted({row["raters"] for row in rows})]
    points = [
        {"name": _raters(row["raters"]), "cases": row["cases"], "width": row["width"],
         "readings": row["readings"]}
        for row in rows
        if row["width"] is not None
    ]  # fmt: skip
    x = log_axis(alt, "Cases", (row["cases"] for row in rows))
    y = alt.Y("width:Q", title="Width of the interval", axis=alt.Axis(tickCount=5))
    tips = ["name:N", "cases:Q", "readings:Q", alt.Tooltip("width:Q", format=".3f")]
    line = alt.Chart(alt.Data(values=points)).mark_line(point=True, strokeWidth=2)
    chart = line.encode(x=x, y=y, color=colour_of(alt, names), tooltip=tips)
    return compiled(chart.properties(width="container", height=280))


def _raters(count: int) -> str:
    return f"{count} rater per case" if count == 1 else f"{count} raters per case"


def _each_rater(agreement: Any, class_names: Sequence[str]) -> Html:
    names = class_names if len(class_names) <= MOST_CLASSES else ()
    header = ["Rater", "Ratings", "Agrees", *names, "Differs most on", "Adjusted p-value"]
    rows = []
    for one in sorted(agreement.raters, key=lambda rater: natural(rater.rater)):
        most = max(one.excess, key=lambda k: abs(one.excess[k])) if one.excess else None
        differs = "–" if most is None else by_points(most, one.excess[most])
        rows.append(
            (one.rater, f"{one.ratings:,}",
             "–" if one.agreement is None else percent(one.agreement),
             *(percent(one.shares[name]) for name in names), differs,
             p_value(one.adjusted_p_value))
        )  # fmt: skip
    caption = (
        "Raters in the order of their names. “Agrees”: how often another rater of the same case "
        "says the same. “Differs most on”: compared with the others on the same cases."
    )
    table = wide(data_table(header, rows, caption), "Each rater")
    return section("raters", "What does each rater say?", table)

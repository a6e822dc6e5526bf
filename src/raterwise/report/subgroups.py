"""The section on sub-groups: is it the same for everybody?"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from raterwise.report.charts import FAINT, SERIES, altair, compiled
from raterwise.report.markup import Html, data_table, el
from raterwise.report.sections import Charts, choice, figure, section
from raterwise.report.words import bracketed, joined, number, p_value, subject_of
from raterwise.results import Estimate, LevelDifference, Results, Subgroup

Rows = list[dict[str, Any]]

ROW_HEIGHT, LINE_HEIGHT = 26, 14
"""Pixels between the levels of the chart, and for the second line of their names."""
SHORT, LONG = (118, 16), (186, 24)
"""Pixels for the names of the levels, and letters in a line of them; if some are long, two lines.

What is longer still is cut there, and whole in the table.
"""
MOST_TOLD = 12
"""How many differences are told in words; the table has them all."""


def subgroups(results: Results, found: Charts) -> Html | None:
    """Return a metric by level, to choose, and which levels differ from the other cases."""
    if not results.subgroups:
        return None
    metrics = {name: results[name] for name in results.subgroups[0].estimates if name in results}
    titles = [e.title or name for name, e in metrics.items()]
    clear = clear_differences(results)
    words = f"Metrics by level. {_verdict(results, clear)} The table below has the numbers."
    chart = found.place("subgroups-chart", forest(results, metrics), words)
    many = f"{subject_of(results.data)}s"
    caption = (
        f"Each line is a level with its interval; the dashed line is all {many} together. A filled "
        f"diamond differs clearly from the {many} of all other levels. Calibration errors are "
        f"corrected for chance, which adds more to levels with few {many}. Levels are ordered by "
        "their first number, or else alphabetically."
    )
    return section(
        "subgroups",
        "Is it the same in every sub-group?",
        el("p", _verdict(results, clear)),
        _told(clear),
        choice("Metric ", titles, "subgroup-metric", "subgroups-chart"),
        figure(chart, caption, _table(results, metrics)),
    )


def clear_differences(results: Results) -> list[tuple[Subgroup, LevelDifference]]:
    """Return the levels that differ from the rest, the surest first."""
    found = [
        (s, d)
        for s in results.subgroups
        for d in s.differences.values()
        if d.adjusted_p_value is not None and d.adjusted_p_value <= _most(results)
    ]
    return sorted(found, key=lambda pair: pair[1].adjusted_p_value or 0.0)


def _most(results: Results) -> float:
    """Return the largest p-value that is called clear: 0.05 with 95% intervals."""
    return round(1 - float(results.options.get("level", 0.95)), 10)


def _verdict(results: Results, clear: Sequence[Any]) -> str:
    made = [d for s in results.subgroups for d in s.differences.values()]
    told = [d for d in made if d.adjusted_p_value is not None]
    variables = joined(dict.fromkeys(s.variable for s in results.subgroups))
    if not told:
        return f"By {variables}: no level could be compared with the others."
    adjusted = (
        "p-values are adjusted for all levels and metrics together, by permuting the levels "
        "between patients (or cases)."
    )
    if not clear:
        return (
            f"By {variables}: no level differs clearly from the other cases, in {len(told)} "
            f"comparisons. That does not show that all levels are the same: with few cases, only a "
            f"large difference would stand out. The {adjusted}"
        )
    return (
        f"By {variables}: {len(clear)} of {len(told)} comparisons of a level with the other cases "
        f"{'shows' if len(clear) == 1 else 'show'} a clear difference (p at most "
        f"{_most(results):g}). The {adjusted}"
    )


def _told(clear: Sequence[tuple[Subgroup, LevelDifference]]) -> list[Html]:
    """Return the clear differences, a line for each level."""
    by_level: dict[tuple[str, str], list[tuple[Subgroup, LevelDifference]]] = {}
    for s, d in clear[:MOST_TOLD]:
        by_level.setdefault((s.variable, s.level), []).append((s, d))
    lines = [
        el("li", el("strong", f"{variable}: {level}"), f" ({pairs[0][0].cases:,} cases): ",
           "; ".join(_in_words(s, d) for s, d in pairs), ".")
        for (variable, level), pairs in by_level.items()
    ]  # fmt: skip
    rest = len(clear) - MOST_TOLD
    more = [el("p", f"And {rest} more, in the table below.", class_="note")] if rest > 0 else []
    return [el("ul", lines), *more] if lines else []


def _in_words(s: Subgroup, d: LevelDifference) -> str:
    """Return by how much a metric is higher or lower; its interval has the same sign."""
    e = s.estimates[d.metric]
    way = "higher" if d.difference > 0 else "lower"
    better = {"lower": d.difference < 0, "higher": d.difference > 0}.get(e.direction)
    which = "" if better is None else f" ({'better' if better else 'worse'})"
    ends = sorted(abs(end) for end in (d.low, d.high) if end is not None)
    span = f" [{number(ends[0])} to {number(ends[1])}]" if len(ends) == 2 else ""
    gap, p = number(abs(d.difference)), p_value(d.adjusted_p_value, "p")
    return f"{e.title} {gap} {way} than in the other cases{which}{span}, {p}"


def _table(results: Results, metrics: dict[str, Estimate]) -> Html:
    rows = []
    for s in results.subgroups:
        for name in metrics:
            e, d = s.estimates[name], s.differences.get(name)
            value = "undefined" if e.value is None else f"{number(e.less_chance)}{bracketed(e)}"
            rows.append(
                (f"{s.variable}: {s.level}", f"{s.cases:,}",
                 "–" if s.patients is None else f"{s.patients:,}", e.title, value,
                 "–" if d is None else f"{number(d.difference)}{bracketed(d)}",
                 "–" if d is None else p_value(d.adjusted_p_value))
            )  # fmt: skip
    many = f"{subject_of(results.data)}s"
    header = ("Level", many.capitalize(), "Patients", "Metric", "Value (errors corrected)",
              f"Minus the other {many}", "Adjusted p")  # fmt: skip
    caption = "Metrics by level; p is two-sided and adjusted for all levels and metrics together"
    return data_table(header, rows, caption)


def _broken(name: str, letters: int) -> list[str]:
    """Return a name in two lines at most.

    >>> _broken("Siemens SOMATOM Definition Flash (kernel B70f)", 26)
    ['Siemens SOMATOM Definition', 'Flash (kernel B70f)']
    """
    return wrap(name, letters, max_lines=2, placeholder=" …", break_long_words=False)


def forest(results: Results, metrics: dict[str, Estimate]) -> dict[str, Any]:
    """Return the chart of the metric called by the parameter `what`: levels one above another."""
    alt = altair()
    lines = _lines(results)
    rows = _rows(lines, metrics, _most(results))
    # Names come from outside: they are values of parameters, never part of an expression.
    pixels, letters = LONG if any(len(text) > SHORT[1] for _, text, _ in lines) else SHORT
    broken = {line: _broken(text, letters) for line, text, _ in lines}
    height = ROW_HEIGHT + LINE_HEIGHT * (max(map(len, broken.values())) - 1)
    names = alt.param(name="names", value=broken)
    variables = alt.param(name="variables", value=[line for line, _, s in lines if s is None])
    what = alt.param(name="what", value=rows[0]["metric"])
    bold = {
        "condition": {"test": "indexof(variables, datum.value) >= 0", "value": 600},
        "value": 400,
    }
    axis = alt.Axis(
        labelExpr="names[datum.value]", labelFontWeight=bold, labelLimit=pixels - 6,
        minExtent=pixels, maxExtent=pixels, title=None, grid=False,
    )  # fmt: skip
    y = alt.Y("line:N", scale=alt.Scale(domain=[line for line, _, _ in lines]), axis=axis)
    x = alt.X("value:Q", title=None, scale=alt.Scale(zero=False, nice=True),
              axis=alt.Axis(tickCount=5, grid=True))  # fmt: skip
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.metric == what")
    by_level = base.transform_filter("datum.line != null")
    colour = alt.condition("datum.differs", alt.value(SERIES[1]), alt.value(SERIES[0]))
    whiskers = (
        by_level.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", title=None), x2="high:Q", y=y, color=colour)
    )
    dots = by_level.mark_point(size=80, opacity=1, strokeWidth=2).encode(
        x=x, y=y, stroke=colour,
        shape=alt.condition("datum.differs", alt.value("diamond"), alt.value("circle")),
        fill=alt.condition("datum.differs", alt.value(SERIES[1]), alt.value("var(--page)")),
        tooltip=[alt.Tooltip("name:N", title="level"), alt.Tooltip("cases:Q"),
                 alt.Tooltip("shown:N", title="value"),
                 alt.Tooltip("difference:N", title="minus the others"),
                 alt.Tooltip("p:N", title="adjusted p")],
    )  # fmt: skip
    overall = (
        base.transform_filter("datum.line == null && isValid(datum.value)")
        .mark_rule(strokeDash=[5, 4], color=FAINT, strokeWidth=1.5)
        .encode(x=x, tooltip=[alt.Tooltip("shown:N", title="all cases")])
    )
    chart = alt.layer(overall, whiskers, dots).add_params(what, names, variables)
    return compiled(chart.properties(width="container", height=height * len(lines)))


def _lines(results: Results) -> list[tuple[str, str, Subgroup | None]]:
    """Return the lines of the chart: an id, what is written, and the level if it is one."""
    lines: list[tuple[str, str, Subgroup | None]] = []
    for i, variable in enumerate(dict.fromkeys(s.variable for s in results.subgroups)):
        lines.append((f"{i}", variable, None))
        levels = [s for s in results.subgroups if s.variable == variable]
        lines += [(f"{i}.{j}", s.level, s) for j, s in enumerate(levels)]
    return lines


def _rows(
    lines: Sequence[tuple[str, str, Subgroup | None]], metrics: dict[str, Estimate], most: float
) -> Rows:
    """Return a row for each metric and level, and one of all cases, which has no line."""
    rows: Rows = []
    for name, overall in metrics.items():
        metric = {"metric": overall.title or name}
        shown = f"{number(overall.less_chance)}{bracketed(overall)}"
        rows.append({**metric, "line": None, "value": overall.less_chance, "shown": shown})
        for line, _, s in lines:
            if s is None or (e := s.estimates[name]).less_chance is None:
                continue
            d = s.differences.get(name)
            p = None if d is None else d.adjusted_p_value
            rows.append(
                {
                    **metric,
                    "line": line,
                    "name": f"{s.variable}: {s.level}",
                    "cases": s.cases,
                    "value": e.less_chance,
                    "low": e.low,
                    "high": e.high,
                    "shown": f"{number(e.less_chance)}{bracketed(e)}",
                    "difference": "–" if d is None else f"{number(d.difference)}{bracketed(d)}",
                    "p": p_value(p),
                    "differs": p is not None and p <= most,
                }
            )
    return rows

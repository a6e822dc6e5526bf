"""The sections on findings that may occur together: a verdict and key figures for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from raterwise.report.confidence_verdict import Verdict
from raterwise.report.key_figures import in_brackets, names_of_differences, names_of_figures
from raterwise.report.markup import Html, el, names_apart
from raterwise.report.sections import paired_table, panel, section, value_of, warned
from raterwise.report.verdicts import verdict
from raterwise.report.words import number, p_value
from raterwise.results import Results

TONES = ("bad", "caution", "good")
JUDGED_ALONE = (
    "Each finding is judged on its own, its p-value corrected for all checks of that finding: of "
    "twenty well-calibrated findings, chance makes about one look miscalibrated."
)


def summary_of_findings(results: Results) -> Html:
    """Return how many findings are miscalibrated, which, and what the verdicts rest on."""
    verdicts = verdicts_by_finding(results)
    found = verdict_on_findings(results)
    told = [el("li", el("strong", f"{title}: {v.headline}. "), v.explanation)
            for title, v in in_a_list(verdicts).items()]  # fmt: skip
    each = el(
        "details",
        el("summary", "The verdict on each finding"),
        el("ul", told),
        el("p", JUDGED_ALONE, class_="note"),
    )
    which = [el("p", line) for line in _which(results, verdicts)] if len(verdicts) > 1 else None
    return section(
        "verdict",
        "Verdict",
        panel(found, results, which),
        each if len(verdicts) > 1 else None,
        warned(results.warnings),
    )


def verdicts_by_finding(results: Results) -> dict[str, Verdict]:
    """Return the verdict on each finding, those first that are off."""
    found = [(title, _verdict(title, each)) for title, each in results.findings.items()]
    return dict(sorted(found, key=lambda pair: TONES.index(pair[1].tone)))


def in_a_list(verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Return the verdicts as they stand beside the names of the findings, without repetition."""
    return {title: _beside_its_name(title, found) for title, found in verdicts.items()}


def _beside_its_name(title: str, found: Verdict) -> Verdict:
    """Return a verdict that need not name its finding, nor say again what p-values are.

    >>> told = "It predicts 9%; raters say so 3% of the time. Chance is unlikely to explain this "
    >>> told += "(p = 0.02, corrected for 8 checks)."
    >>> found = _beside_its_name("mass", Verdict("Says “mass” too often", told, "bad"))
    >>> found.headline, found.explanation
    ('said too often', 'It predicts 9%; raters say so 3% of the time (p = 0.02).')
    """
    headline = found.headline.replace(f"Says “{title}” ", "said ").replace(f" about “{title}”", "")
    told = re.sub(
        r"\. Chance is unlikely to explain this \((p[^,]*), corrected for \d+ checks\)\.",
        r" (\1).",
        found.explanation,
    )
    return replace(found, headline=f"{headline[:1].lower()}{headline[1:]}", explanation=told)


def verdict_on_findings(results: Results) -> Verdict:
    """Return what to believe of all findings: how many are off; of a single one its verdict."""
    verdicts = verdicts_by_finding(results)
    several = len(verdicts)
    if several == 1:
        title, found = next(iter(verdicts.items()))
        named = f"“{title}”" in found.headline
        return found if named else replace(found, headline=f"{title}: {found.headline.lower()}")
    tones = [v.tone for v in verdicts.values()]
    wrong = sum(_is_miscalibrated(results.findings[title], v) for title, v in verdicts.items())
    doubtful = tones.count("caution")
    if wrong:
        are = "is" if wrong == 1 else "are"
        tone = "bad" if "bad" in tones else "caution"
        return Verdict(f"{wrong} of {several} findings {are} miscalibrated", "", tone)
    if doubtful:
        return Verdict(f"No clear answer for {doubtful} of {several} findings", "", "caution")
    return Verdict(f"No miscalibration found in {several} findings", "", "good")


def _verdict(title: str, found: Results) -> Verdict:
    """Return the verdict on one finding, called by its name."""
    return verdict(replace(found, data={**found.data, "class_names": ["no", title]}))


def _is_miscalibrated(found: Results, told: Verdict) -> bool:
    """Tell whether a finding was judged so; a small gap may be beyond doubt, too."""
    judged = found.data.get("verdict")
    if judged is None or judged["miscalibrated"] is None:
        return told.tone == "bad"
    return bool(judged["miscalibrated"])


def _which(results: Results, verdicts: Mapping[str, Verdict]) -> list[list[str]]:
    """Return which findings are off, which may be, and which are not."""
    kinds: dict[str, list[str]] = {"Miscalibrated": [], "No clear answer": [], "Nothing found": []}
    for title, told in verdicts.items():
        off = _is_miscalibrated(results.findings[title], told)
        kind = "Miscalibrated" if off else "Nothing found"
        kinds[kind if off or told.tone == "good" else "No clear answer"].append(title)
    return [[f"{kind}: ", names_apart(titles), "."] for kind, titles in kinds.items() if titles]


def by_finding(results: Results) -> Html | None:
    """Return the key figures of every finding with their intervals, the means first."""
    if not results.findings:
        return None
    chosen = names_of_figures(results)
    head = ["Finding", "Cases", *(results[name].title for name in chosen)]
    rows = [_row("Mean over the findings", "", results, chosen)]
    for title, found in results.findings.items():
        rows.append(_row(title, f"{found.data['cases']:,}", found, chosen))
    beside = in_brackets(results, (results[name] for name in chosen))
    note = f"{beside} The mean is over the findings in which a metric is defined.".strip()
    return section("findings", "Finding by finding", el("p", note, class_="note"),
                   paired_table(head, rows, "Finding by finding"))  # fmt: skip


def _row(title: str, cases: str, results: Results, chosen: list[str]) -> Html:
    cells = [el("td", value_of(results.get(name))) for name in chosen]
    return el("tr", el("th", title, scope="row"), el("td", cases), cells)


def differences_by_finding(findings: Mapping[str, Any] | None, means: Any) -> Html | None:
    """Return the differences between models in the key figures of every finding."""
    if not findings:
        return None
    first, chosen = next(iter(means.models.values())), names_of_differences(means)
    pairs = dict.fromkeys((d.first, d.second) for c in findings.values() for d in c.differences)
    rows = []
    for title, comparison in findings.items():
        made = {(d.first, d.second, d.metric): d for d in comparison.differences}
        for pair in pairs:
            cells = [el("td", _difference(made.get((*pair, name)))) for name in chosen]
            models = el("td", names_apart(pair, " − ")) if len(pairs) > 1 else None
            rows.append(el("tr", el("th", title, scope="row"), models, cells))
    alone = " minus ".join(next(iter(pairs))) if len(pairs) == 1 else "First minus second model"
    note = (
        f"{alone}, calibration errors corrected, with the interval of the "
        "difference. p is adjusted for the number of pairs of models, not for the number of "
        "findings: of twenty findings without a difference, one has p below 0.05 by chance."
    )
    head = [
        "Finding",
        *(["Models"] if len(pairs) > 1 else []),
        *(first[name].title for name in chosen),
    ]
    return section("findings", "Do they differ in each finding?", el("p", note, class_="note"),
                   paired_table(head, rows, "Differences by finding"))  # fmt: skip


def _difference(d: Any) -> list[Any]:
    if d is None:
        return ["–"]
    gap = number(d.difference if d.debiased is None else d.debiased)
    parts = [el("strong", gap), el("small", f"[{number(d.low)}, {number(d.high)}]"),
             el("small", p_value(d.adjusted_p_value, "p"))]  # fmt: skip
    return [el("div", parts, class_="value")]

"""Words for a paper: the methods and the results in sentences, and what guidance asks besides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from raterwise.catalog import CATALOG
from raterwise.report.findings import (
    JUDGED_ALONE,
    in_a_list,
    verdict_on_findings,
    verdicts_by_finding,
)
from raterwise.report.references import papers_of
from raterwise.report.tables import markdown_table, markdown_text
from raterwise.report.verdicts import verdict
from raterwise.report.words import counted_in_words, joined, level_of, number, p_value
from raterwise.results import Results, left_out

TRIPOD = (
    "Collins GS, Moons KGM, Dhiman P, et al. TRIPOD+AI statement: updated guidance for reporting "
    "clinical prediction models that use regression or machine learning methods. BMJ 2024;385:"
    "e078378."
)
CLAIM = (
    "Tejani AS, Klontzas ME, Gatti AA, et al. Checklist for Artificial Intelligence in Medical "
    "Imaging (CLAIM): 2024 update. Radiology: Artificial Intelligence 2024;6(4):e240300."
)

FOR_THE_AUTHORS = (
    ("5a", "5-7", "Where the data come from, and whether they represent those the model is for"),
    ("5b, 6a", "7", "Dates, setting, number and place of the centres"),
    ("6b, 6c", "8", "Who was eligible, and treatments received"),
    ("7", "9-11, 13", "How images were acquired, prepared, chosen and de-identified"),
    ("8a", "14, 15", "What the classes mean clinically, and why this reference standard"),
    ("8b", "16", "Qualification and experience of the raters"),
    ("8c", "17", "Whether the raters were blinded to the model and to each other; their tools"),
    ("10", "21", "How the sample size was chosen (raterwise plan computes it from a pilot)"),
    ("12a, 16", "19, 20", "That no patient of the training set is among these cases"),
    ("12c, 12g, 22", "22-27", "The model: kind, inputs, training, version, how it was run"),
    ("15", "22", "Why these thresholds, and how they were chosen"),
    ("17-19", "34, 42-44", "Ethics, funding, protocol, registration, data, patient involvement"),
    ("18f", "43", "Where the code of the analysis is available"),
    ("20b, 20c", "36", "Characteristics of the patients, beside those of the training set"),
    ("", "31, 39", "Which cases fail, and whether the model can be explained"),
    ("25-27", "40, 41", "Interpretation, limitations, use in practice"),
)
"""By item of TRIPOD+AI and of CLAIM: what no table of predictions and ratings can answer."""


def text_of(results: Any) -> str:
    """Return methods, results, a checklist and references as Markdown."""
    parts = (
        "## Methods",
        *_methods(results),
        "## Results",
        *_results(results),
        "## Checklist",
        "Items of TRIPOD+AI and of CLAIM (both of 2024), and where the text above answers them.",
        _checklist(results),
        "## What these data cannot answer",
        "raterwise cannot know the following; the authors need to add it:",
        _unanswered(results),
        "## References",
        _references(results),
    )
    return "\n\n".join(parts) + "\n"


# methods ------------------------------------------------------------------------------------------


def _methods(results: Results) -> Iterator[str]:
    yield f"**Reference standard.** {_reference_standard(results)}"
    yield f"**Cases.** {_cases(results)}"
    yield f"**Measures.** {_measures(results)}"
    yield f"**Uncertainty.** {_uncertainty(results)}"
    yield f"**Software.** {_software(results)}"


def _reference_standard(results: Results) -> str:
    data: Any = results.data
    names: Any = results.provenance.get("raters")
    raters, unit = data["raters"], "voxel" if "voxels" in data else "case"
    fewest, most = raters["min"], raters["max"]
    each = counted_in_words(most, "rating") if fewest == most else f"{fewest} to {most} ratings"
    mean = "" if fewest == most else f" (mean {raters['mean']:.1f})"
    of = " of each finding" if results.findings else ""
    who = f" The raters were {', '.join(map(markdown_text, names))}." if _named(names) else (
        " The data do not name the raters."
    )  # fmt: skip
    if most == 1:
        return (
            f"The reference standard was one label per {unit}. With a single rating, disagreement "
            f"between raters cannot be told from errors of the model.{who}"
        )
    counted = {
        "annotation": "Every rating counted once in measures that can count ratings or cases.",
        "case": f"Every {unit} counted once, its ratings in equal parts.",
    }.get(_counted_per(results), "Measures count ratings or cases as their definitions say.")
    return (
        f"The reference standard was the label distribution of the raters, not a consensus: each "
        f"{unit} had {each}{mean}{of}, {data['ratings']:,} in all. {counted}{who}"
    )


def _counted_per(results: Results) -> str:
    """Return what counts once in every measure that has the choice; "" where they differ."""
    if results.data.get("target_prevalence"):
        return "case"
    told = results.options.get("per")
    usual = {CATALOG[name].options.get("per") for name in results if name in CATALOG} - {None}
    return str(told) if told else str(usual.pop()) if len(usual) == 1 else ""


def _cases(results: Results) -> str:
    data = results.data
    counted = counted_in_words(data["cases"], "image" if "voxels" in data else "case")
    patients = (
        f" of {counted_in_words(data['patients'], 'patient')}" if data.get("patients") else ""
    )
    findings: Any = data.get("findings")
    names, what = (findings, "findings") if findings else (data.get("class_names"), "classes")
    classes = f" with {len(findings) if findings else data['classes']} {what}"
    if names and len(names) <= 12:
        classes = f" with the {what} {', '.join(markdown_text(str(name)) for name in names)}"
    dropped = [left_out(str(reason), count) for reason, count in data.get("dropped", {}).items()]
    few = "".join(f" {sentence}" for sentence in _too_few_raters(results))
    none = "" if few else " No case was left out."
    out = f" We left out {joined(dropped)}." if dropped else none
    where = f" {_voxels(results)}" if "voxels" in data else ""
    return f"We evaluated {counted}{patients}{classes}.{where}{out}{few}{_in_use(data)}"


def _voxels(results: Results) -> str:
    """Return how many voxels were evaluated, and which of them."""
    options: Any = results.options
    only = []
    if (near := options.get("boundary_mm")) is not None:
        only.append(f"within {near:g} mm of a boundary that a rater drew")
    if options.get("foreground_only"):
        only.append("that the prediction or a rater calls other than background")
    number = f"{results.data['voxels']:,} voxels"
    if not only:
        return f"They have {number}."
    return f"Of their voxels we evaluated the {number} {joined(only)}."


def _too_few_raters(results: Results) -> Iterator[str]:
    """Yield which measures go without how many cases; of findings, the largest number."""
    unit = "voxel" if "voxels" in results.data else "case"
    without: dict[int, list[str]] = {}
    for name, e in results.items():
        each = [r[name].dropped or 0 for r in results.findings.values() if name in r]
        if dropped := max(each, default=e.dropped or 0):
            without.setdefault(dropped, []).append(_in_sentence(e.title))
    most = "up to " if results.findings else ""
    for dropped, titles in without.items():
        counted = f"{most}{counted_in_words(dropped, unit)}"
        them = "it" if len(titles) == 1 else "them"
        yield (
            f"{counted[:1].upper()}{counted[1:]} had too few raters for {joined(titles)}, and "
            f"{'was' if counted.startswith('1 ') else 'were'} left out of {them}."
        )


def _in_use(data: Mapping[str, Any]) -> str:
    """Return at which prevalence the results are, where it is not that of the cases."""
    told = data.get("target_prevalence")
    if not told:
        return ""
    names = data.get("class_names") or [f"class {k}" for k in range(len(told["to"]))]
    each = ", ".join(
        f"{markdown_text(str(name))} {seen:.3g} to {to:.3g}"
        for name, seen, to in zip(names, told["labels"], told["to"], strict=True)
    )
    moved = "" if told["from"] == told["to"] else (
        ", and the probabilities were shifted by Bayes' rule from "
        f"{', '.join(f'{share:.3g}' for share in told['from'])}"
    )  # fmt: skip
    return (
        " Labels were weighted by their class to the prevalence of the intended use "
        f"({each}){moved}."
    )


def _measures(results: Results) -> str:
    titles = [_in_sentence(e.title) for e in results.values()]
    bins = results.options.get("bins")
    binned = f" Binned measures used {bins} bins." if isinstance(bins, int) else ""
    question = results.options.get("question")
    asked = f" Calibration was asked of: {question.replace('_', ' ')}." if question else ""
    over = "images" if results.per_case else "findings" if results.findings else ""
    mean = f" Each value is the mean over the {over}." if over else ""
    return f"We computed {joined(titles)}.{mean}{binned}{asked}"


def _uncertainty(results: Results) -> str:
    options = results.options
    if not options.get("resamples"):
        return "No confidence intervals were computed."
    unit, level = options.get("unit", "cases"), level_of(results)
    patients = "patients" if results.data.get("patients") else (
        "images" if "voxels" in results.data else "cases"
    )  # fmt: skip
    drawn = {"raters": "raters", "both": f"{patients} and raters"}.get(unit, patients)
    one = " or ".join(each[:-1] for each in drawn.split(" and "))
    jackknife = f"from the jackknife standard error, leaving out one {one} at a time"
    usual = jackknife if results.per_case else (  # means of errors are not tested
        "by test inversion for calibration errors (so that they may include 0) and, for the other "
        f"measures, {jackknife}"
    )  # fmt: skip
    how = {
        "percentile": "by bootstrap percentiles",
        "bias_corrected": "by the bias-corrected bootstrap",
    }.get(options.get("interval", "auto"), usual)
    return (
        f"{level} confidence intervals were made {how}, with {options['resamples']:,} resamples "
        f"of {drawn} (seed {options.get('seed', 0)})."
    )


def _software(results: Results) -> str:
    versions = dict(results.to_dict()["versions"])
    own, python = versions.pop("raterwise", ""), versions.pop("python", "")
    others = ", ".join(f"{name} {number}" for name, number in versions.items())
    made = str(results.provenance.get("date", ""))[:10]
    when = f" The analysis was run on {made}." if made else ""
    return f"raterwise {own} on Python {python} ({others}).{when}"


# results ------------------------------------------------------------------------------------------


def _results(results: Results) -> Iterator[str]:
    if results.findings:
        yield _verdict_on_findings(results)
    elif "verdict" in results.data or "top_label" in results.curves:
        found = verdict(results)
        headline = f"{found.headline[:1].lower()}{found.headline[1:]}"
        told = re.sub(r"^It ", "The model ", found.explanation)
        yield f"Verdict on calibration: {_plain(headline)}. {_plain(told)}."
    for group in dict.fromkeys(e.group for e in results.values()):
        said = [_sentence(e, results) for e in results.values()
                if e.group == group and e.value is not None]  # fmt: skip
        if said:
            yield f"*{group or 'Measures'}.* {' '.join(said)}"
    if test := results.data.get("exchangeability"):
        found_out = (
            "the raters were not interchangeable"
            if test["p_value"] < test["significance"]
            else "there was no evidence that the raters are not interchangeable"
        )
        cases = f"{test['cases']:,} cases"
        yield f"By a permutation test over {cases}, {found_out} (p {_p(test['p_value'])})."
    if readers := results.data.get("readers"):
        level = f"{level_of(results)} CI"
        yield _plain(re.sub(r"\[(\S+), (\S+)\]", rf"({level} \1 to \2)", readers["sentence"])) + "."
    undefined = [e for e in results.values() if e.value is None]
    for reason in dict.fromkeys(e.undefined for e in undefined):
        names = joined([_in_sentence(e.title) for e in undefined if e.undefined == reason])
        yield f"Not defined on these data: {names} ({markdown_text(str(reason))})."
    if results.subgroups:
        yield _about_subgroups(results)


def _verdict_on_findings(results: Results) -> str:
    """Return how many findings are off, and how those are that are not calibrated."""
    off = {title: v for title, v in in_a_list(verdicts_by_finding(results)).items()
           if v.tone != "good"}  # fmt: skip
    headline = verdict_on_findings(results).headline
    each = " ".join(f"{_plain(f'{t}: {v.headline}. {v.explanation}')}." for t, v in off.items())
    head = f"Verdict on calibration: {headline[:1].lower()}{headline[1:]}."
    return f"{_plain(head)}. {each} {JUDGED_ALONE}" if off else f"{_plain(head)}."


def _sentence(e: Any, results: Results) -> str:
    title, level = markdown_text(e.title), f"{level_of(results)} CI"
    ends = "" if e.low is None else f" ({level} {number(e.low)} to {number(e.high)})"
    tested = "" if e.p_value is None else f", p {_p(e.p_value)}"
    return f"{title} was {number(e.value)}{ends}{tested}."


def _about_subgroups(results: Results) -> str:
    significance = 1 - results.options.get("level", 0.95)
    told = [
        (group, d)
        for group in results.subgroups
        for d in group.differences.values()
        if d.adjusted_p_value is not None and d.adjusted_p_value < significance
    ]
    names = dict.fromkeys(markdown_text(group.variable) for group in results.subgroups)
    variables = joined(names)
    made = results.data.get("comparisons", 0)
    if not made:
        return f"Levels of {variables} could not be compared with all other cases."
    if not told:
        return (
            f"Of {made} comparisons between levels of {variables} and all other cases, none "
            f"differed after adjustment for multiple comparisons (p < {significance:.2g})."
        )
    said = "; ".join(
        f"{markdown_text(d.metric)} in {markdown_text(g.variable)} = {markdown_text(g.level)} "
        f"differed by {number(d.difference)} (adjusted p {_p(d.adjusted_p_value)})"
        for g, d in told
    )
    return f"Of {made} comparisons between levels of {variables} and all other cases: {said}."


# the checklist ------------------------------------------------------------------------------------


def _checklist(results: Results) -> str:
    many = results.data["raters"]["max"] > 1
    agreement = any(e.group == "Rater agreement" and e.value is not None for e in results.values())
    interval = bool(results.options.get("resamples"))
    rows = (
        ("8a", "14", "Reference standard", "Methods, reference standard"),
        ("8b", "16", "Number of raters", "Methods, reference standard"),
        ("–", "18", "Variability between raters",
         "Results, rater agreement" if agreement else
         "Not computed" if many else "Cannot be answered with one rating per case"),
        ("11", "12", "Missing data", "Methods, cases"),
        ("–", "29", "Dependence of cases of one patient",
         "Methods, uncertainty" if results.data.get("patients") else
         "Not answered: patients were not named, and cases taken as independent"),
        ("12e", "28", "Measures of performance", "Methods, measures"),
        ("23a", "29", "Uncertainty",
         "Methods, uncertainty" if interval else "Not answered: no intervals were made"),
        ("14, 23a", "30", "Performance in sub-groups",
         "Results" if results.subgroups else "Not answered: no sub-groups were given"),
        ("–", "23", "Software of the analysis", "Methods, software"),
        ("20a, 21", "35", "Numbers analysed and left out", "Methods, cases"),
        ("23a", "37, 38", "Performance with intervals",
         "Results" if interval else "Results, without intervals"),
    )  # fmt: skip
    return markdown_table(("TRIPOD+AI", "CLAIM", "Item", "Answered in"), rows).rstrip("\n")


def _unanswered(results: Results) -> str:
    items = [
        f"- {f'TRIPOD+AI {t}; ' if t else ''}CLAIM {c}: {what}." for t, c, what in FOR_THE_AUTHORS
    ]
    if not _named(results.provenance.get("raters")):
        items.insert(5, "- Who the raters were: these data do not name them.")
    return "\n".join(items)


def _references(results: Results) -> str:
    papers = map(markdown_text, papers_of(results.values()))
    return "\n".join(f"- {text}" for text in (TRIPOD, CLAIM, *papers))


def _named(names: Any) -> bool:
    return isinstance(names, list | tuple) and len(names) > 0


def _in_sentence(title: str) -> str:
    """Return the title of a measure within a sentence: small, unless it is a name or an acronym.

    >>> [_in_sentence(t) for t in ("Robust ECE (RECE-G)", "KS calibration error", "Brier score")]
    ['robust ECE (RECE-G)', 'KS calibration error', 'Brier score']
    >>> _in_sentence("Krippendorff's alpha"), _in_sentence("In/out AUROC"), _in_sentence("E50")
    ("Krippendorff's alpha", 'in/out AUROC', 'E50')
    """
    first = title.partition(" ")[0]
    small = first[1:].islower() and "'" not in first
    title = title[:1].lower() + title[1:] if small and first != "Brier" else title
    return markdown_text(title)


def _p(value: float | None) -> str:
    if value is None:
        return "unknown"
    shown = p_value(value).replace("\u00a0", " ")
    return shown if shown.startswith("<") else f"= {shown}"


def _plain(text: str) -> str:
    return markdown_text(text.replace("\u00a0", " ").rstrip(".")).replace("&lt; ", "< ")

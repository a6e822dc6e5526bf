"""The pages of the site about metrics, one per family, from the catalog and metric_words.toml."""

from __future__ import annotations

import inspect
import math
import re
import tomllib
from importlib import import_module
from pathlib import Path

import metric_pictures
import raterwise
from raterwise.catalog import CATALOG
from raterwise.catalog.metric import Metric

WORDS = tomllib.loads((Path(__file__).parent / "metric_words.toml").read_text(encoding="utf-8"))
SYMBOLS = """
In the formulas there are $N$ cases. Case $i$ has $n_i$ raters, and $n_{ik}$ of them chose class
$k$: a share of $\\mu_{ik}=n_{ik}/n_i$. The predicted probability is $p_{ik}$; $c_i$ is the
largest of them, and $a_i$ the share of raters who chose that class. LH, RECE, MR and CCC are [the
four papers](../citing.md).
"""
BINS = """
Bin $m$ contains a share $b_m/N$ of the labels, with mean confidence $C_m$ and mean agreement $A_m$.
Each label counts once, so a case counts as often as it has raters (with `per="case"`, once).
"""
TUTORIALS = {
    "Proper scores": "tutorial_01_evaluate",
    "Label histograms": "tutorial_02_several_raters",
    "Calibration": "tutorial_03_small_test_sets",
    "Disagreement": "tutorial_05_second_opinions",
    "Ranking": "tutorial_12_out_of_distribution",
    "Clinical": "tutorial_13_clinical",
    "Rater agreement": "tutorial_02_several_raters",
}


NEITHER = "neither: it describes the data"


def pages(folder: Path) -> dict[str, str]:
    """Return the text of every family's page, by its name, and draw the pictures into a folder."""
    groups = dict.fromkeys(row.group for row in CATALOG.values())
    return {slug(group): page(group, folder) for group in groups}


def slug(group: str) -> str:
    """Return the name of a family's file."""
    return re.sub(r"\W+", "_", group.lower())


def page(group: str, folder: Path) -> str:
    """Return the page of a family: a table of its metrics, what moves them, then each of them."""
    rows = [row for row in CATALOG.values() if row.group == group]
    lines = [f"# {group}", SYMBOLS, *([BINS] if group == "Calibration" else [])]
    lines += ["| metric | what it says | better | raters |", "| --- " * 4 + "|"]
    for row in rows:
        better = WORDS.get(row.name, {}).get("better", row.direction.replace("none", ""))
        link = f"[{row.title}](#{row.name})"
        lines.append(f"| {link} | {row.meaning} | {better} | {row.least_raters} |")
    tutorial = f"../gallery_of_tutorials/{TUTORIALS[group]}"
    lines += ["", f"See them in use in [this tutorial]({tutorial})."]
    words = metric_pictures.draw(slug(group), folder)
    lines += ["", "## What drives them", "", f"![{words}]({slug(group)}.png)", "", words]
    for row in rows:
        lines += ["", *section(row)]
    return "\n".join(lines) + "\n"


def section(row: Metric) -> list[str]:
    """Return what a page says of one metric."""
    words = WORDS[row.name]
    lines = [f"({row.name})=", f"## {row.title}", "", row.meaning, ""]
    if "formula" in words:
        lines += ["$$", words["formula"], "$$", ""]
    if "where" in words:
        lines += [f"Here: {words['where']}.", ""]
    facts = {
        "Name": f"`{row.name}`",
        "Range": words.get("range", interval(row.bounds)),
        "Better": words.get("better", row.direction.replace("none", NEITHER)),
        "Raters per case": f"{row.least_raters} or more",
        "Options": ", ".join(f"`{k}={v!r}`" for k, v in row.options.items()),
        "Pitfalls": words["pitfall"],
        "Reference": reference(row),
        "Function": api(row.name),
    }
    for name, text in facts.items():
        if text:
            lines += [name, f": {text}", ""]
    return lines


def reference(row: Metric) -> str:
    """Return where a metric comes from: the place in short, and what the function cites in full."""
    value = getattr(raterwise, row.name, None) or getattr(raterwise.confidence, row.name, None)
    cited = re.search(r"\nReferences\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(value) or "", re.S)
    full = " ".join(cited[1].split()) if cited else ""
    ours = re.search(r"\b(LH|RECE|MR|CCC)\b", row.reference)  # where in one of the four papers
    return f"{row.reference}. {full}".strip() if ours or not full else full


def interval(bounds: tuple[float, float]) -> str:
    """Return the smallest and the largest value in words."""
    low, high = (number(bound) for bound in bounds)
    return f"{low} … {high}"


def number(bound: float) -> str:
    """Return a bound as a person writes it."""
    if math.isinf(bound):
        return "−∞" if bound < 0 else "∞"
    return "√2" if math.isclose(bound, math.sqrt(2)) else f"{bound:g}"


def api(name: str) -> str:
    """Return a link to the function of a metric; some are of a belief and have none."""
    for module in ("raterwise", "raterwise.confidence"):
        if hasattr(import_module(module), name):
            return f"{{py:func}}`{module}.{name}`"
    return "none; `rw.evaluate` computes it for a belief"

"""The claims at a glance, at the top of the papers' pages: what they say stands below them, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[1] / "docs" / "reproduction"
NAMES = ("label_histograms", "robust_ece", "multi_rater", "confidence_curves")
VERDICT = re.compile(r"\*\*(holds|holds in part|does not hold|not testable)\*\*")
NUMBER = re.compile(r"(?<![\w.])[+−-]?\d*\.\d+|\b\d+ (?:of|in) \d+\b")


def anchor(heading: str) -> str:
    """Return what a heading is called in links, as GitHub and the site have it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def at_a_glance(page: str) -> tuple[list[list[str]], str]:
    """Return the cells of the table of claims, and the rest of the page."""
    before, _, after = page.partition("\n## The claims at a glance\n")
    table = re.search(r"(?:^\|.*\n)+", after, re.MULTILINE)
    assert table
    rows = [line.strip("| ").split(" | ") for line in table[0].splitlines()[2:]]
    return rows, before + after.replace(table[0], "")


@pytest.mark.parametrize("name", NAMES)
def test_claims_at_a_glance(name: str) -> None:
    """A verdict in one of four words, numbers that the page explains, a link that leads there."""
    rows, rest = at_a_glance((PAGES / f"{name}.md").read_text(encoding="utf-8"))
    assert len(rows) >= 5 and all(len(row) == 4 for row in rows), rows
    anchors = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", rest, re.MULTILINE)}
    for claim, verdict, decides, where in rows:
        assert VERDICT.match(verdict), claim
        assert set(re.findall(r"\(#([^)]+)\)", where)) <= anchors and "(#" in where, where
        for number in NUMBER.findall(decides):
            assert number.lstrip("+−-") in rest, (claim, number)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_in_the_first_screen(name: str) -> None:
    """Before it stands only what was repeated: no command, no plan, not two hundred words."""
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    before = page.partition("\n## The claims at a glance\n")[0]
    assert len(before.split()) < 200 and "```" not in before and "\n## " not in before


@pytest.mark.parametrize("name", NAMES)
def test_links_within_a_page_lead_to_a_heading(name: str) -> None:
    """A link to a section that was renamed leads nowhere."""
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    anchors = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= anchors

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


def sections(page: str) -> dict[str, str]:
    """Return each section by its name in links, with the smaller sections that it has."""
    heads = list(re.finditer(r"^(#+) (.+)$", page, re.MULTILINE))
    found: dict[str, str] = {}
    for i, head in enumerate(heads):
        ends = (other.start() for other in heads[i + 1 :] if len(other[1]) <= len(head[1]))
        found.setdefault(anchor(head[2]), page[head.start() : next(ends, len(page))])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_claims_at_a_glance(name: str) -> None:
    """A verdict in one of four words; the numbers stand in the sections that it leads to."""
    rows, rest = at_a_glance((PAGES / f"{name}.md").read_text(encoding="utf-8"))
    assert len(rows) >= 5 and all(len(row) == 4 for row in rows), rows
    below, numbers = sections(rest), 0
    for claim, verdict, decides, where in rows:
        assert VERDICT.match(verdict), claim
        links = re.findall(r"\(#([^)]+)\)", where)
        assert links and set(links) <= set(below), where
        text = "\n".join(below[link] for link in links)
        for number in NUMBER.findall(decides):
            assert re.search(rf"(?<![\d.]){re.escape(number.lstrip('+−-'))}(?!\d)", text), (
                f"{claim}: {number} is not in {', '.join(links)}"
            )
            numbers += 1
    assert numbers > len(rows)


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

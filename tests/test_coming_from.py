"""The pages "Coming from …": what they say of other libraries is what those libraries printed.

Examples that need torchmetrics, MONAI or scikit-learn run as doctests, and so does every call of
ours. Those of other peers were run by tools/peer_outputs.py, which kept what they said.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))

import peer_outputs  # noqa: E402

PAGES = sorted(path.stem for path in (ROOT / "docs" / "coming_from").glob("*.md"))
KEPT = json.loads(peer_outputs.KEPT.read_text(encoding="utf-8"))
IN_TABLES = ["metrics_reloaded", "val_prob"]


def text_of(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / "docs" / "coming_from" / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_peers_show_what_they_said(page: str) -> None:
    """Every example that the doctests skip was run, as it stands there, and said what is shown."""
    shown = [
        {"source": example.source, "says": example.want}
        for example in peer_outputs.examples(page)
        if peer_outputs.of_the_peer(example)
    ]
    assert shown == KEPT.get(page, {}).get("examples", [])


@pytest.mark.parametrize("page", sorted(peer_outputs.PACKAGES))
def test_pages_name_the_version(page: str) -> None:
    """The version that was run stands on the page."""
    assert f" {KEPT[page]['version']}" in text_of(page).partition("## ")[0]


@pytest.mark.parametrize("page", IN_TABLES)
def test_tables_show_what_was_said(page: str) -> None:
    """Numbers of peers that cannot be installed here are those that were kept."""
    rows = re.findall(r"^\| `?(.+?)`? \| (-?[\d.]+) \|", text_of(page), flags=re.MULTILINE)
    assert {name: float(value) for name, value in rows} == {
        name: pytest.approx(value, abs=5.1e-7) for name, value in KEPT[page]["says"].items()
    }


def test_the_pages_have_the_same_data() -> None:
    """What the index calls the data of these pages is what every page prepares."""
    data = [line for line in text_of("index").splitlines() if line.startswith(">>> ")]
    known = {line for line in data if "=" in line}
    for page in set(PAGES) - {"index", "val_prob"}:
        prepared = [
            line
            for line in text_of(page).splitlines()
            if re.match(r">>> (i|p|y|scores|probs|labels) = ", line)
        ]
        assert prepared and set(prepared) <= known, page

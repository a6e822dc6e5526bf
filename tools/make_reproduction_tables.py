"""Write the tables of docs/reproduction again from what is kept in experiments/outputs.

    python tools/make_reproduction_tables.py

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`; the text around it is
written by hand. Run it after outputs were added, then read whether the text still holds.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from experiments.confidence_curves import paper, tables  # noqa: E402
from experiments.label_histograms import several_data, several_judging, several_tables  # noqa: E402
from experiments.multi_rater import judging  # noqa: E402
from experiments.multi_rater.tables import as_markdown, beside_the_paper  # noqa: E402
from experiments.robust_ece import losses_paper, sizes, sizes_tables  # noqa: E402
from experiments.robust_ece.tables import read_judged  # noqa: E402

OUTPUTS = ROOT / "experiments" / "outputs"
PAGES = ROOT / "docs" / "reproduction"


def confidence_curves() -> dict[str, str]:
    """Return over-confidence and CCC Tables 1 and 3, twice, and every table of the judging."""
    found = paper.read_judged(OUTPUTS / "confidence_curves")
    blocks = {"all": tables.as_markdown(found)}
    longer = paper.read_judged(OUTPUTS / "confidence_curves_100_epochs")
    for judged, which in ((found, ""), (longer, "longer ")):
        three = paper.as_markdown(judged).strip().split("\n\n")
        names = ("over-confidence", "1", "3")
        blocks |= {f"{which}{name}": text for name, text in zip(names, three, strict=True)}
    return blocks


def label_histograms() -> dict[str, str]:
    """Return the tables of the networks that learnt from one label or several."""
    with tempfile.TemporaryDirectory() as folder:
        for file in (OUTPUTS / "label_histograms").glob("rows-*.json*"):
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        settings = several_judging.Judging()
        found = several_judging.judge(None, folder, several_data.STUDIES, settings)
    return {"several": several_tables.as_markdown(found)}


def multi_rater() -> dict[str, str]:
    """Return MR Table 2 beside the paper's cells, and every table of the judging."""
    with tempfile.TemporaryDirectory() as folder:
        for file in (OUTPUTS / "multi_rater").glob("judged-*.json*"):
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        found = judging.judge(None, folder)
    return {"2": beside_the_paper(found), "all": as_markdown(found)}


def robust_ece() -> dict[str, str]:
    """Return RECE Table 2, ours below the paper's cells, and the tables of the small test sets."""
    with tempfile.TemporaryDirectory() as folder:
        for file in (OUTPUTS / "robust_ece" / "sample_sizes").glob("*.json*"):
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        samples = sizes_tables.as_markdown(sizes.judge(folder))
    return {
        "2": losses_paper.beside_the_paper(read_judged(OUTPUTS / "robust_ece")),
        "samples": samples,
    }


def rewritten(page: str, blocks: dict[str, str]) -> str:
    """Return a page with its tables in the place of those that it had."""
    for name, text in blocks.items():
        first, last = f"<!-- table {name} -->", "<!-- end of table -->"
        pattern = re.compile(re.escape(first) + ".*?" + re.escape(last), re.DOTALL)
        if len(pattern.findall(page)) != 1:
            raise SystemExit(f"the page must have one {first} … {last}")
        block = f"{first}\n\n{text.strip()}\n\n{last}"
        page = pattern.sub(lambda _, block=block: block, page)
    return page


def main() -> None:
    """Rewrite the pages."""
    for make in (confidence_curves, label_histograms, multi_rater, robust_ece):
        file = PAGES / f"{make.__name__}.md"
        file.write_text(rewritten(file.read_text(encoding="utf-8"), make()), encoding="utf-8")
        print(file.name)


if __name__ == "__main__":
    main()

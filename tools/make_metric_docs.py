"""Write docs/metrics.md from the catalog, so that the page cannot disagree with the code.

python tools/make_metric_docs.py [--check]
"""

import argparse
import sys
from pathlib import Path

from raterwise.catalog import CATALOG

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
INTRODUCTION = """\
# Metrics

Every metric of `raterwise evaluate` and `rw.evaluate`, from `src/raterwise/catalog/`.
*Raters* is how many labels a case needs. *Interval* is how the interval is made: *inversion* of a
test for errors that cannot be negative; otherwise the error is that of leaving out one patient or
case at a time, and the shape is that of a *proportion*, a *loss*, a *separation* of right from
wrong cases, a *difference* of two proportions, a *ratio*, or *Student's*; a metric that jumps from
case to case has a *bootstrap* interval (see [coverage](coverage.md)).

The clinical metrics look for a class: class 1 of two, the one that `positive=` names, or each class
against the rest and the mean over the classes (`ordered=True`: class k or higher, for every k but
the lowest). A case of which the fraction μ of the raters say the class is a positive of mass μ and
a negative of mass 1 - μ. A probability of at least `threshold=` (0.5) is a positive test.
`metrics="clinical"` asks for all of them; "all" has the AUROC of two classes.
LH, RECE, MR and CCC are [the four papers](citing.md) behind it.

This page is made by `python tools/make_metric_docs.py`. On the site each family has a page with
formulas and with what each metric cannot tell.
"""

# Sphinx reads this, and makes the families' pages when it builds the site.
FAMILIES = """
```{toctree}
:hidden:
:glob:

metrics/*
```
"""


def page() -> str:
    """Return the page."""
    lines = [INTRODUCTION]
    groups = dict.fromkeys(row.group for row in CATALOG.values())
    for group in groups:
        lines += [
            f"## {group}\n",
            "| name | what it says | better | raters | interval | reference |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for row in CATALOG.values():
            if row.group == group:
                better = "" if row.direction == "none" else row.direction
                shown = {"student": "Student's", "resampled": "bootstrap"}
                interval = "inversion" if row.error else shown.get(row.shape, row.shape)
                title = "" if row.title.lower() == row.name else f"**{row.title}.** "
                lines.append(
                    f"| `{row.name}` | {title}{row.meaning} | {better} | {row.least_raters} "
                    f"| {interval} | {row.reference} |"
                )
        lines.append("")
        silent = [row for row in CATALOG.values() if row.group == group and row.cannot_tell]
        if silent:
            lines += ["What they cannot tell:\n"]
            lines += [f"- `{row.name}`: {_begun_small(row.cannot_tell)}" for row in silent]
            lines.append("")
    return "\n".join(lines) + FAMILIES


def _begun_small(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def main() -> int:
    """Write the page, or with --check say whether it is what it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if outdated")
    if parser.parse_args().check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
        print("docs/metrics.md is up to date" if same else "docs/metrics.md is outdated")
        return 0 if same else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

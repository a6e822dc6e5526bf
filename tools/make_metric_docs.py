"""Write docs/metrics.md from the catalog, so that the page cannot disagree with the code.

python tools/make_metric_docs.py [--check]
"""

import argparse
import sys
import tomllib
from pathlib import Path

from raterwise.catalog import CATALOG

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
INTRODUCTION = """\
# Metrics

Every metric of `raterwise evaluate` and `rw.evaluate`, family by family. On the site each family
has a page with the formulas, the ranges, the pitfalls and a picture of what moves the numbers;
[Which metric should I report?](start/which_metric.md) goes the other way, from the question.

```{toctree}
:glob:
:maxdepth: 1

metrics/*
```

**How to read the tables.** *Raters* is how many labels a case needs. *Interval* is how the interval
is made: *inversion* of a test for errors that cannot be negative; otherwise the error is that of
leaving out one patient or case at a time, and the shape is that of a *proportion*, a *loss* (a
*signed loss* may be below 0), a *separation* of right from wrong cases, a *difference* of two
proportions, a *ratio*, or *Student's*; a metric that jumps from case to case has a *bootstrap*
interval (see [coverage](coverage.md)). LH, RECE, MR and CCC are [the four papers](citing.md) behind
it.

**The clinical metrics** look for a class: class 1 of two, the one that `positive=` names, or each
class against the rest and the mean over the classes (`ordered=True`: class k or higher, for every k
but the lowest). Every label counts once: a case read by four raters of whom three say the class is
three positives and one negative (`per="case"` makes that three quarters and one quarter of a case).
A probability of at least `threshold=` (0.5) is a positive test. `metrics="clinical"` asks for all
of them; "all" has, of two classes, AUROC, O/E, intercept, slope and ICI.
"""
WORDS = tomllib.loads((Path(__file__).parent / "metric_words.toml").read_text(encoding="utf-8"))


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
                better = WORDS[row.name].get("better", row.direction.replace("none", ""))
                shown = {
                    "student": "Student's",
                    "resampled": "bootstrap",
                    "signed_loss": "signed loss",
                }
                interval = "inversion" if row.error else shown.get(row.shape, row.shape)
                title = "" if row.title.lower() == row.name else f"**{row.title}.** "
                lines.append(
                    f"| `{row.name}` | {title}{row.meaning} | {better} | {row.least_raters} "
                    f"| {interval} | {row.reference} |"
                )
        lines.append("")
    return "\n".join(lines)


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

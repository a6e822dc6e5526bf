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

This page lists every metric of `raterwise evaluate` and `rw.evaluate`, by family. Each family
also has a page on the site with formulas, ranges, pitfalls, references and a picture of what
drives the values. If you have a question rather than a metric in mind, start with [Which metric
should I report?](start/which_metric.md)

```{toctree}
:glob:
:maxdepth: 1

metrics/*
```

**How to read the tables.** *Raters* is the minimum number of labels per case. *Interval* is how
the interval is made ([details](coverage.md)). *Inversion*: by inverting a test, for errors that
cannot be negative. *Bootstrap*: by resampling, for metrics that jump from case to case. The other
intervals use the standard error from leaving out one patient or case at a time, with a shape that
suits the metric: a *proportion*, a *loss* (a *signed loss* may be below 0), a *separation* of
correct from wrong cases, a *difference* of two proportions, a *ratio*, or *Student's* t.

**Clinical metrics** are about one class: the second of two, or the class named by `positive=`.
With more classes they are computed for each class against the rest and averaged (`ordered=True`:
class k or higher, for every k except the lowest). Every label counts once, so a case that three
of four raters call positive counts as three positives and one negative (with `per="case"`, as
three quarters and one quarter of a case). A probability of at least `threshold=` (0.5) counts as
a positive test. `metrics="clinical"` selects them all; "all" includes, for two classes, AUROC,
O/E, intercept, slope and ICI.
"""
WORDS = tomllib.loads((Path(__file__).parent / "metric_words.toml").read_text(encoding="utf-8"))


def page() -> str:
    """Return the page."""
    lines = [INTRODUCTION]
    groups = dict.fromkeys(row.group for row in CATALOG.values())
    for group in groups:
        lines += [
            f"## {group}\n",
            "| metric | what it says | better | raters | interval |",
            "| --- | --- | --- | --- | --- |",
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
                title = "" if row.title.lower() == row.name else f"{row.title} "
                lines.append(
                    f"| {title}`{row.name}` | {row.meaning} | {better} | {row.least_raters} "
                    f"| {interval} |"
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

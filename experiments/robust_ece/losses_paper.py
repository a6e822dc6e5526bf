"""The numbers that RECE prints in Table 2, and ours beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from experiments.markdown import table_head, table_row
from experiments.robust_ece.tables import METRICS, TITLES

__all__ = ["TABLE_2", "beside_the_paper", "best_in"]

Found = Mapping[str, Any]

LOSSES = ("cross-entropy", "focal", "focal+mdca", "flsd", "dca", "focal+rcr")
"""In the order of the paper: Cross-Entropy, FL, FL+MDCA, FLSD, DCA, RCR."""

# Accuracy, ECE, SCE, RECE-G, RECE-M, Brier score, in the order of LOSSES.
TABLE_2: dict[str, tuple[str, ...]] = {
    "GBC-USG": (
        *(".9016 .0802 .0841 .0607 .0610 .2005", ".8934 .0913 .0911 .0644 .0702 .2084"),
        *(".8934 .0810 .0811 .0508 .0604 .1929", ".9016 .1036 .0909 .0660 .0581 .1967"),
        *(".8934 .0869 .0905 .0603 .0433 .1957", ".8852 .0810 .0863 .0355 .0372 .1957"),
    ),
    "BUSI": (
        *(".9487 .0726 .0485 .0301 .0329 .1000", ".9487 .0761 .0613 .0276 .0415 .1065"),
        *(".9615 .0683 .0505 .0378 .0358 .0977", ".9615 .0939 .0530 .0493 .0568 .1028"),
        *(".9487 .0669 .0489 .0337 .0308 .0988", ".9231 .0608 .0680 .0201 .0235 .1277"),
    ),
    "POCUS": (
        *(".8845 .0456 .0443 .0368 .0452 .1594", ".8866 .0488 .0649 .0301 .0408 .1584"),
        *(".8761 .0646 .0685 .0598 .0595 .2014", ".9349 .0455 .0541 .0394 .0444 .1085"),
        *(".8782 .0689 .0567 .0583 .0607 .1853", ".8908 .0387 .0625 .0205 .0339 .1522"),
    ),
    "Diabetic Retinopathy": (
        *(".8641 .0464 .0889 .0456 .0458 .2007", ".8765 .0369 .0884 .0365 .0369 .1813"),
        *(".9351 .0442 .0752 .0439 .0442 .1023", ".8620 .0359 .0896 .0277 .0216 .1947"),
        *(".8332 .0669 .1171 .0665 .0669 .2474", ".8297 .0316 .0951 .0250 .0206 .2400"),
    ),
}
OURS = {"BUSI": "busi", "POCUS": "pocus", "Diabetic Retinopathy": "retinamnist"}
"""What stands beside the paper's data: the same images, and RetinaMNIST for Kaggle's."""


def beside_the_paper(found: Iterable[Found]) -> str:
    """Return RECE Table 2 with ours beside every cell that we have."""
    ours = {part["data"]: part for part in found}
    lines = table_head(("data", "loss", *METRICS.values()))
    for data, rows in TABLE_2.items():
        part = ours.get(OURS.get(data, ""))
        for loss, row in zip(LOSSES, rows, strict=True):
            lines.append(table_row((f"paper: {data}", loss, *row.split())))
            if part is not None:
                own = part["metrics"][loss]
                cells = (_cell(own[metric]) if metric in own else "" for metric in METRICS)
                lines.append(table_row((f"here: {TITLES[part['data']]}", loss, *cells)))
    lines += ["", "Data sets of the paper in which a loss has the best value of a column:", ""]
    lines += table_head(("loss", *METRICS.values()))
    for loss in LOSSES:
        counts = (str(len(best_in(loss, metric))) for metric in METRICS)
        lines.append(table_row((loss, *counts)))
    return "\n".join(lines)


def best_in(loss: str, metric: str) -> list[str]:
    """Return the data sets in which a loss has the paper's best value; ties count for each.

    >>> best_in("focal+rcr", "ece")
    ['BUSI', 'POCUS', 'Diabetic Retinopathy']
    """
    column, row = list(METRICS).index(metric), LOSSES.index(loss)
    sign = -1 if metric == "accuracy" else 1
    found = []
    for data, rows in TABLE_2.items():
        values = [sign * float(own.split()[column]) for own in rows]
        if values[row] == min(values):
            found.append(data)
    return found


def _cell(found: Found) -> str:
    return f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"

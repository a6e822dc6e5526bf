"""CCC Tables 1 and 3, the paper's cells beside ours, and the over-confidence that comes first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from experiments.confidence_curves.tables import NETWORKS, TITLES
from experiments.markdown import table_head, table_row

__all__ = ["as_markdown", "place_of", "read_judged"]

Found = Mapping[str, Any]
TABLE_1 = (
    ("accuracy, one network", "max softmax", "accuracy", "VGG 90.80, DenseNet 91.61"),
    ("accuracy, ensemble", "ensemble", "accuracy", "92.99 (T = 1), 93.00 (T = 3)"),
    ("AUCCC, one network", "max softmax", "auccc", "VGG 90.48, DenseNet 91.21"),
    ("AUCCC, ensemble, T = 1", "ensemble", "auccc", "92.75"),
    ("AUCCC, ensemble, T = 3", "softened", "auccc", "93.03"),
    ("AUCCC, ensemble, T = 10", "softened, T = 10", "auccc", ""),
    ("AUCCC, UDist, T = 3", "udist", "auccc", "93.56"),
    ("AUCCC, UDist, T = 10", "udist, T = 10", "auccc", ""),
    ("AUCCC, UDist on held-out images, T = 3", "udist, held out", "auccc", ""),
    ("AUCCC, UDist on held-out images, T = 10", "udist, held out, T = 10", "auccc", ""),
    ("AUCCC, UDist of one network, T = 3", "udist, single", "auccc", ""),
)
"""What it is, our names of it, and the paper's cells of CIFAR-10, in per cent."""
DIFFERENCES = (
    ("ensemble: T = 3 less T = 1", "softened", "ensemble", "+0.28"),
    ("T = 3: UDist less ensemble", "udist", "softened", "+0.53"),
    ("T = 3: UDist on held-out images less ensemble", "udist, held out", "softened", ""),
    ("T = 3: UDist of one network less one network", "udist, single", "max softmax", ""),
)
"""Of AUCCC in distribution."""
TABLE_3 = {
    "CIFAR-10 and SVHN": (97.76, 98.18, 98.04, 98.25),
    "ChestX-ray14 and OCT2017": (68.09, 69.42, 70.61, 71.77),
}
"""I/O AUROC of the ensemble and of UDist, AUCCC of both; T = 10."""
DISTILLED = {"udist": "UDist", "udist, held out": "UDist on held-out images"}
ORDER = ("cifar10-densenet", "cifar10-vgg", "cifar8-vgg", "pneumonia-densenet")


def read_judged(folder: str | PathLike[str]) -> list[dict[str, Any]]:
    """Return what was judged of each problem and kind of network that a folder has."""
    files = [Path(folder) / f"{name}.json" for name in ORDER]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]


def place_of(part: Found) -> int:
    """Return where a problem and kind of network stand in the paper's tables: others come last."""
    name = f"{part['problem']}-{part['network']}"
    return ORDER.index(name) if name in ORDER else len(ORDER)


def as_markdown(found: Sequence[Found]) -> str:
    """Return over-confidence, Table 1 and Table 3, in per cent."""
    lines = [*_over_confidence(found), "", *_table_1(found), "", *_table_3(found), ""]
    return "\n".join(lines)


def _name(part: Found) -> str:
    return f"{TITLES[part['problem']]}, {NETWORKS[part['network']]}"


def _over_confidence(found: Sequence[Found]) -> list[str]:
    lines = table_head(
        ("one network", "epochs", "cascades", "of", "accuracy", "mean confidence", "ECE", "AUCCC")
    )
    lines.append(
        table_row(("paper: CIFAR-10, DenseNet", "300", "1", "training images", "", "", "", "> 99"))
    )
    lines.append(table_row(("", "", "", "test images", "91.61", "", "", "91.21")))
    for part in found:
        first = (_name(part), str(part["settings"]["epochs"]), str(len(part["seeds"])))
        for key, said in (("train", "training images"), ("held_out", "held-out images"),
                          ("test", "test images")):  # fmt: skip
            each = [one[key] for one in part["over_confidence"]]
            cells = [_spread([one[m] for one in each])
                     for m in ("accuracy", "confidence", "ece", "auccc")]  # fmt: skip
            lines.append(table_row((*(first if key == "train" else ("", "", "")), said, *cells)))
    return lines


def _spread(values: Iterable[float | None]) -> str:
    """Return the mean over cascades, and the least and the largest of several."""
    known = [100 * value for value in values if value is not None]
    if not known:
        return "no errors"
    text = f"{np.mean(known):.2f}"
    return text if len(known) == 1 else f"{text} ({min(known):.2f}-{max(known):.2f})"


def _table_1(found: Sequence[Found]) -> list[str]:
    lines = table_head(("", "paper: CIFAR-10", *(_name(part) for part in found)))
    for title, method, metric, paper in TABLE_1:
        each = [part["values"].get(method) for part in found]
        cells = ("" if own is None else _cell(own[metric]) for own in each)
        lines.append(table_row((title, paper, *cells)))
    for title, first, second, paper in DIFFERENCES:
        rows = [_difference(part, first, second, "auccc") for part in found]
        cells = ("" if row is None else _cell(row, "+.2f") for row in rows)
        lines.append(table_row((title, paper, *cells)))
    return lines


def _table_3(found: Sequence[Found]) -> list[str]:
    lines = table_head(
        ("images, and images from elsewhere", "confidence network",
         "I/O AUROC: ensemble, T = 10", "UDist, T = 10", "difference",
         "AUCCC: ensemble, T = 10", "UDist, T = 10", "difference")
    )  # fmt: skip
    for name, cells in TABLE_3.items():
        shown = [f"{value:.2f}" for value in cells]
        changes = [f"{cells[1] - cells[0]:+.2f}", f"{cells[3] - cells[2]:+.2f}"]
        row = (f"paper: {name}", "UDist", *shown[:2], changes[0], *shown[2:], changes[1])
        lines.append(table_row(row))
    for part in found:
        for kind in part["cases"]:
            if kind != "test":
                lines += _rows_of(part, kind)
    return lines


def _rows_of(part: Found, kind: str) -> list[str]:
    """Return a row for each confidence network at T = 10, or one without any; none without T."""
    values, name = part["values"], f"{_name(part)}; {kind}"
    rows: list[str] = []
    if (before := values.get("softened, T = 10")) is None:
        return rows
    for method, title in DISTILLED.items():
        after = values.get(f"{method}, T = 10")
        if after is None:
            continue
        cells = []
        for metric in (f"io_auroc, {kind}", f"auccc, {kind}"):
            change = _difference(part, f"{method}, T = 10", "softened, T = 10", metric)
            shown = "" if change is None else _cell(change, "+.2f")
            cells += [_cell(before[metric]), _cell(after[metric]), shown]
        rows.append(table_row((name, title, *cells)))
    if not rows:
        cells = [_cell(before[f"io_auroc, {kind}"]), "", "", _cell(before[f"auccc, {kind}"])]
        rows.append(table_row((name, "none was trained", *cells, "", "")))
    return rows


def _difference(part: Found, first: str, second: str, metric: str) -> Found | None:
    """Return the paired difference, where both were judged."""
    asked = (first, second, metric)
    rows = (r for r in part["differences"] if (r["first"], r["second"], r["metric"]) == asked)
    return next(rows, None)


def _cell(row: Found, form: str = ".2f") -> str:
    value, low, high = (100 * row[key] for key in ("value", "low", "high"))
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"

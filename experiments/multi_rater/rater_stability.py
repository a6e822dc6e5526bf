"""MR Table 1, from models' outputs and raters' labels: the run and its tables.

What came of each model stays in a JSON file, from which a run goes on that was stopped, and from
which the tables can be remade without the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from experiments.kept import fingerprint, json_files, kept, read_json, write_json
from experiments.markdown import table_head, table_row
from experiments.multi_rater.classification import (
    METRICS,
    VERSION,
    Column,
    Settings,
    factor,
    judged_column,
)
from experiments.multi_rater.columns import columns_of
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Progress
from raterwise.io.files import write_text_atomically

__all__ = ["as_markdown", "run", "table"]

Found = Mapping[str, Any]
NAMES = {"ece": "ECE", "kde_ece": "kdeECE", "classwise_ece": "cwECE", "robust_ece": "RECE-G"}
PAPER = {
    "MHIST": (7, {"ece": ".25±.06 .04±.01", "kde_ece": ".47±.01 .07±.02"}),
    "CSAW-M": (5, {"ece": ".32±.07 .05±.01", "kde_ece": ".41±.06 .13±.02"}),
    "LIDC-IDRI": (4, {"ece": ".13±.03 .10±.02", "kde_ece": ".26±.05 .15±.03"}),
}
"""MR Table 1: raters (LIDC: at most, as its own papers have it), and SR and MR of each error."""
SAME = {"LIDC-IDRI": "LIDC texture"}
"""Which of our columns is of the paper's data and question."""


def run(
    data: str | PathLike[str] | None,
    out: str | PathLike[str],
    nodules: str | PathLike[str] | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Judge every model, and write tables.md and summary.json; without data, those that `out` has.

    `nodules` is the folder of the networks of `nodule_networks`.
    """
    folder, settings = Path(out), settings or Settings()
    folder.mkdir(parents=True, exist_ok=True)
    if data is not None:
        columns = list(columns_of(data, nodules))
        if not columns:
            raise InvalidInputError(
                f"data: {data} must hold cifar10h_counts.npy and cifar10_test_outputs.npz, or "
                "cxr14_chexnet_test.npz and cxr14_readers, or lidc_nodules.npz with --nodules"
            )
        for i, (name, models) in enumerate(columns):
            for j, model in enumerate(models):
                if progress:
                    progress(f"{name}: {model.name}", (i + j / len(models)) / len(columns))
                _judged_once(folder, name, model, settings)
    files = [file for file in json_files(folder, "*.json") if file.name != "summary.json"]
    found = [one for one in map(read_json, files) if "column" in one.get("made_of", {})]
    if not found:
        raise InvalidInputError(f"out: {folder} must hold what was judged; it has none")
    rows = table(found)
    write_json(folder / "summary.json", rows)
    write_text_atomically(folder / "tables.md", as_markdown(rows))
    return rows


def _judged_once(folder: Path, name: str, model: Column, settings: Settings) -> dict[str, Any]:
    made_of = {
        "version": VERSION,
        "column": name,
        "model": model.name,
        "data": fingerprint(model.probs, model.counts),
        "metrics": list(model.metrics),
        **asdict(settings),
    }
    place = "-".join("".join(c if c.isalnum() else " " for c in f"{name} {model.name}").split())
    return kept(folder / f"{place}.json", made_of, lambda: judged_column(model, settings))


def table(found: Iterable[Found]) -> list[dict[str, Any]]:
    """Return a row for each column and metric; models of a column are averaged, boot by boot."""
    columns: dict[str, list[Found]] = {}
    for one in found:
        columns.setdefault(one["made_of"]["column"], []).append(one)
    rows = []
    for name, models in columns.items():
        for metric in METRICS:
            own = [model for model in models if metric in model["variation"]]
            if own:
                rows.append(_row(name, metric, own))
    return rows


def _row(name: str, metric: str, models: Sequence[Found]) -> dict[str, Any]:
    variation = {
        key: np.mean([model["variation"][metric][key] for model in models], axis=0)
        for key in models[0]["variation"][metric]
    }
    one = variation["1"].tolist()
    return {
        "column": name,
        "metric": metric,
        "models": len(models),
        "cases": models[0]["cases"],
        "raters": models[0]["raters"],
        "values": {k: float(np.mean([m["values"][metric][k] for m in models]))
                   for k in models[0]["values"][metric]},
        "variation": {k: [float(v.mean()), float(v.std())] for k, v in variation.items()},
        "factor": factor(one, variation["all"].tolist()),
        "each": [factor(m["variation"][metric]["1"], m["variation"][metric]["all"])["value"]
                 for m in models],
        "predicted": float(np.mean([m["predicted"][metric] for m in models])),
        "predicted_each": [m["predicted"][metric] for m in models],
        "labels_drawn": factor(one, variation["all, labels drawn"].tolist())
        if "all, labels drawn" in variation else None,
    }  # fmt: skip


def as_markdown(rows: Sequence[Found]) -> str:
    """Return the paper's table with the bounds of √raters, and ours."""
    lines = ["### The paper's cells", ""]
    beside = ("data", "raters n", "√n", "error", "SR", "MR", "SR / MR", "here: SR / MR")
    lines += table_head(beside)
    ours = {(row["column"], row["metric"]): row for row in rows}
    for name, (raters, cells) in PAPER.items():
        for metric, text in cells.items():
            one, several = text.split()
            ratio = float(one.split("±")[0]) / float(several.split("±")[0])
            shown = f"**{ratio:.2f}**" if ratio > raters**0.5 else f"{ratio:.2f}"
            own = ours.get((SAME.get(name, ""), metric))
            found = (NAMES[metric], *(cell.replace("±", " ± ") for cell in (one, several)), shown)
            bound = (name, str(raters), f"{raters**0.5:.2f}")
            lines.append(table_row((*bound, *found, _interval(own["factor"]) if own else "")))
    numbers = [key for key in ("1", "3", "7", "all") if any(key in r["variation"] for r in rows)]
    lines += ["", "### Ours", "", "Total variation × 1000, mean ± standard deviation.", ""]
    head = ("data", "cases", "raters", "error", *(f"R = {n}" for n in numbers))
    lines += table_head((*head, "SR / MR", "√n_eff", "SR / MR, labels drawn"))
    for row in rows:
        lines.append(table_row((
            row["column"], str(row["cases"]), f"{row['raters']:.1f}", NAMES[row["metric"]],
            *(_thousandths(row["variation"].get(n)) for n in numbers),
            _interval(row["factor"]), f"{row['predicted']:.2f}",
            "" if row["labels_drawn"] is None else _interval(row["labels_drawn"]),
        )))  # fmt: skip
    return "\n".join([*lines, ""])


def _thousandths(cell: Sequence[float] | None) -> str:
    return "" if cell is None else f"{1000 * cell[0]:.2f} ± {1000 * cell[1]:.2f}"


def _interval(row: Mapping[str, float]) -> str:
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"

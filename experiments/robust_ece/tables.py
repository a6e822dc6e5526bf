"""The tables of the experiment with training losses, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from experiments.kept import is_there, read_json
from experiments.markdown import table_head, table_row

__all__ = ["METRICS", "MIXTURE", "REFERENCES", "TITLES", "as_markdown", "read_judged"]

Found = Mapping[str, Any]

MIXTURE = "robust_ece_mixture"
METRICS = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "sce": "SCE",
    "robust_ece": "RECE-G",
    MIXTURE: "RECE-M",
    "brier": "Brier",
}
REFERENCES = ("cross-entropy", "focal")
TITLES = {
    "breastmnist": "BreastMNIST",
    "pneumoniamnist": "PneumoniaMNIST",
    "busi": "BUSI",
    "pocus": "POCUS",
    "covid_ct": "Covid-CT",
    "retinamnist": "RetinaMNIST",
    "dermamnist": "DermaMNIST",
    "cifar10-1000": "CIFAR-10, 1,000 training images",
    "cifar10-1000-batch32": "CIFAR-10, 1,000 training images, batches of 32",
    "cifar10-5000": "CIFAR-10, 5,000 training images",
    "cifar10-5000-batch32": "CIFAR-10, 5,000 training images, batches of 32",
}


def read_judged(folder: str | PathLike[str]) -> list[dict[str, Any]]:
    """Return what was judged of each data set that a folder has, in the order of the page."""
    files = [Path(folder) / f"{name}.json" for name in TITLES]
    return [read_json(file) for file in files if is_there(file)]


def as_markdown(found: Iterable[Found]) -> str:
    """Return a table of values and two of differences for each data set."""
    return "\n".join(line for part in found for line in _section(part))


def _section(part: Found) -> list[str]:
    fewer = "".join(f", {name} {own}" for name, own in part.get("fewer_seeds", {}).items())
    lines = [
        f"### {TITLES[part['data']]}",
        "",
        f"{part['cases']['test']} test images, training runs of each loss: {part['seeds']}{fewer}. "
        f"Means over runs, {part['level']:.0%} intervals over test images and runs.",
        "",
        *_values(part),
    ]
    for reference in REFERENCES:
        lines += ["", f"Minus {reference}, paired (bold where the interval excludes 0):", ""]
        lines += _differences(part, reference)
    return [
        *lines,
        "",
        f"The {part['cases']['validation']} validation images: negative log-likelihood by weight "
        "β, and with the least weight how often the networks are right there, and how sure they "
        "are:",
        "",
        *_validation(part),
        "",
    ]


def _values(part: Found) -> list[str]:
    lines = table_head(("loss", *METRICS.values(), "confidence"))
    for name, own in part["metrics"].items():
        cells = [_value(own[metric]) if metric in own else "" for metric in METRICS]
        lines.append(table_row((name, *cells, f"{part['confidence'][name]:.3f}")))
    return lines


def _differences(part: Found, reference: str) -> list[str]:
    lines = table_head(("loss", *METRICS.values()))
    rows = [row for row in part["differences"] if row["reference"] == reference]
    for name in dict.fromkeys(row["loss"] for row in rows):
        own = {row["metric"]: _signed(row) for row in rows if row["loss"] == name}
        cells = [own.get(metric, "") for metric in METRICS]
        lines.append(table_row((name, *cells)))
    return lines


def _validation(part: Found) -> list[str]:
    nlls = part["validation_nll"]
    betas = sorted({beta for own in nlls.values() for beta in own}, key=float)
    lines = table_head(("loss", *(f"β = {beta}" for beta in betas), "accuracy", "confidence"))
    for loss, own in nlls.items():
        cells = [f"{own[beta]:.3f}" if beta in own else "" for beta in betas]
        cells += [f"{part['validation'][loss][key]:.3f}" for key in ("accuracy", "confidence")]
        lines.append(table_row((loss, *cells)))
    return lines


def _value(found: Found) -> str:
    return f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


def _signed(row: Found) -> str:
    # Adding 0 makes a rounded -0 a +0.
    value, low, high = (round(row[key], 3) + 0.0 for key in ("difference", "low", "high"))
    text = f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"**{text}**" if low > 0 or high < 0 else text

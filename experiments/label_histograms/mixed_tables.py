"""The tables of Mix-MNIST and Mix-CIFAR-10, ours and the paper's beside each other, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.label_histograms.intervals import change
from experiments.label_histograms.mixed_paper import paper_value
from experiments.markdown import table_head, table_row

__all__ = ["as_markdown"]

Network = Mapping[str, Any]
Key = tuple[str, str, bool]

TITLES = {"mixed_mnist": "Mix-MNIST", "mixed_cifar10": "Mix-CIFAR-10"}
PREDICTION = {
    "accuracy": "Acc",
    "true_accuracy": "Acc, true",
    "squared_loss": "L_sq",
    "epistemic_loss": "EL",
    "epistemic_loss_true": "EL, true",
    "calibration_error": "CE",
    "true_calibration_error": "CE, true",
}
DISAGREEMENT = {
    "disagreement": "mean predicted",
    "disagreement_loss": "L_φD",
    "disagreement_calibration_error": "CE_φD",
    "true_disagreement_calibration_error": "CE_φD, true",
}
POSTERIOR = {
    "prior": "prior EL",
    "posterior": "posterior EL",
    "posterior_true": "posterior EL, true",
    "posterior_sum_true": "the same, released sum",
}
CHANGES = {
    "unbiasedness": "EL, estimated - true",
    "alpha": "L_φD, with α - without",
    "gain": "EL, posterior - prior",
    "gain_sum": "the same, released sum",
    "product_over_sum": "posterior EL, product - sum",
}


def as_markdown(found: Iterable[Network]) -> str:
    """Return the tables of every data set and number of validation labels."""
    by_data: dict[str, list[Network]] = {}
    for network in found:
        by_data.setdefault(network["data"], []).append(network)
    lines: list[str] = []
    for data, networks in by_data.items():
        lines += _redrawn(data, networks)
        for number in (2, 5):
            lines += _section(data, number, networks)
    return "\n".join(lines)


def _redrawn(data: str, networks: Sequence[Network]) -> list[str]:
    """Return how far the estimates are off on average over new labels, network by network."""
    lines = [
        f"### {TITLES[data]}: estimates over new labels",
        "",
        "Raw; mean of estimate minus truth over new sets of ten labels per case, ± standard error.",
        "",
        *table_head(("network", "EL", "CL")),
    ]
    for network in networks:
        pairs = [network["redrawn"][name] for name in ("epistemic_loss", "calibration_loss")]
        cells = (f"{mean:+.5f} ± {error:.5f}" for mean, error in pairs)
        lines.append(table_row((f"seed {network['seed']}", *cells)))
    return [*lines, ""]


def _section(data: str, number: int, networks: Sequence[Network]) -> list[str]:
    rows = _gathered(networks, number)
    temperatures = ", ".join(f"{n['fitted'][str(number)]['temperature']:.3f}" for n in networks)
    return [
        f"### {TITLES[data]}({number})",
        "",
        f"Networks: {len(networks)}; {number} labels per validation case. Means over networks "
        "± their standard deviation; in brackets what the paper has, judged by the truth. "
        f"T: {temperatures}.",
        "",
        *_levels(data, number, rows, PREDICTION),
        "",
        *_levels(data, number, rows, DISAGREEMENT),
        "",
        *_levels(data, number, rows, POSTERIOR),
        "",
        "Differences with 95 % intervals over cases and networks:",
        "",
        *_changes(rows),
        "",
        *_counted(rows),
        "",
    ]


def _gathered(networks: Sequence[Network], number: int) -> dict[Key, list[Mapping[str, Any]]]:
    """Return the rows of all networks, by method, scaling and α."""
    rows: dict[Key, list[Mapping[str, Any]]] = {}
    for network in networks:
        for row in network["rows"]:
            if row["labels"] == number:
                key = (row["method"], row["scaling"], row["alpha"])
                rows.setdefault(key, []).append(row)
    return rows


def _name(key: Key) -> str:
    method, scaling, alpha = key
    parts = [{"raw": "Raw", "mcdo": "MCDO", "tta": "TTA"}[method]]
    parts += [scaling] if scaling != "none" else []
    return "+".join(parts + (["α"] if alpha else []))


def _levels(
    data: str,
    number: int,
    rows: Mapping[Key, Sequence[Mapping[str, Any]]],
    metrics: Mapping[str, str],
) -> list[str]:
    lines = table_head(("method", *metrics.values()))
    for key, parts in rows.items():
        cells = []
        for metric in metrics:
            values = [part["values"][metric] for part in parts if metric in part["values"]]
            paper = paper_value(data, number, key, metric)
            cells.append(f"{_level(values)} ({paper})" if paper else _level(values))
        lines.append(table_row((_name(key), *cells)))
    return lines


def _level(values: Sequence[float]) -> str:
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"


def _changes(rows: Mapping[Key, Sequence[Mapping[str, Any]]]) -> list[str]:
    lines = table_head(("method", *CHANGES.values()))
    for key, parts in rows.items():
        cells = []
        for name in CHANGES:
            pairs = [part["differences"][name] for part in parts if name in part["differences"]]
            cells.append(change(pairs))
        lines.append(table_row((_name(key), *cells)))
    return lines


def _counted(rows: Mapping[Key, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return in how many networks α lowers the disagreement metrics, row by row."""
    lines = table_head(("α added to", "L_φD lower in", "CE_φD lower in"))
    for (method, scaling, alpha), parts in rows.items():
        if not alpha:
            continue
        before = rows[method, scaling, False]
        cells = []
        for metric in ("disagreement_loss", "disagreement_calibration_error"):
            lower = sum(
                after["values"][metric] < plain["values"][metric]
                for after, plain in zip(parts, before, strict=True)
            )
            cells.append(f"{lower} of {len(parts)}")
        lines.append(table_row((_name((method, scaling, False)), *cells)))
    return lines

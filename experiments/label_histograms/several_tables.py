"""The tables of `several_judging`: ours, with LH's of blood cells in brackets, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.label_histograms.intervals import change, mean_and_half
from experiments.label_histograms.several_paper import paper_value
from experiments.label_histograms.several_rows import Key
from experiments.label_histograms.several_scores import error_of
from experiments.markdown import table_head, table_row

__all__ = ["as_markdown", "by_study", "gathered", "method_name"]

Network = Mapping[str, Any]
Rows = Mapping[Key, Sequence[Mapping[str, Any]]]

TITLES = {
    "cifar10n_1": "CIFAR-10N, one label",
    "cifar10n_3": "CIFAR-10N, three labels",
    "lidc_1": "LIDC malignancy, one radiologist",
    "lidc_all": "LIDC malignancy, all radiologists",
}
COLUMNS = {
    "accuracy": "Acc",
    "squared_loss": "L_sq",
    "epistemic_loss": "EL",
    "calibration_error": "CE",
    "disagreement": "mean predicted",
    "disagreement_loss": "L_φD",
    "disagreement_calibration_error": "CE_φD",
    "prior": "prior EL",
    "posterior": "posterior EL",
    "posterior_sum": "the same, released sum",
}
CHANGES = {
    "alpha disagreement_loss": "L_φD, with α",
    "alpha disagreement_calibration_error": "CE_φD, with α",
    "scaling epistemic_loss": "EL, with the scaling",
    "scaling calibration_error": "CE, with the scaling",
    "method accuracy": "Acc, against Raw",
    "method epistemic_loss": "EL, against Raw",
    "method disagreement_calibration_error": "CE_φD, against Raw",
    "posterior - prior": "EL, after the expert",
    "posterior_sum - prior": "the same, released sum",
}
MORE = ("accuracy", "squared_loss", "epistemic_loss", "calibration_error", "disagreement_loss")


def as_markdown(found: Iterable[Network]) -> str:
    """Return the tables of every study, and of what more labels to learn from change."""
    studies = by_study(found)
    lines: list[str] = []
    for study, networks in studies.items():
        lines += _section(study, networks)
    for fewer, more in (("cifar10n_1", "cifar10n_3"), ("lidc_1", "lidc_all")):
        if fewer in studies and more in studies:
            lines += _more_labels(studies[fewer], studies[more], f"{TITLES[more]}, against one")
    return "\n".join(lines)


def by_study(found: Iterable[Network]) -> dict[str, list[Network]]:
    """Return the networks of each study."""
    studies: dict[str, list[Network]] = {}
    for network in found:
        studies.setdefault(network["study"], []).append(network)
    return studies


def gathered(networks: Iterable[Network]) -> dict[Key, list[Mapping[str, Any]]]:
    """Return the rows of all networks by their key."""
    rows: dict[Key, list[Mapping[str, Any]]] = {}
    for network in networks:
        for row in network["rows"]:
            rows.setdefault(Key.of(row), []).append(row)
    return rows


def method_name(key: Key) -> str:
    """Return the paper's name of a row, such as MCDO+ts+α."""
    parts = [{"raw": "Raw", "mcdo": "MCDO", "tta": "TTA"}[key.method]]
    parts += [key.scaling] if key.scaling != "none" else []
    return "+".join(parts + (["α"] if key.alpha else []))


def _section(study: str, networks: Sequence[Network]) -> list[str]:
    rows = gathered(networks)
    labels = "1" if study.endswith("_1") else "all"
    temperatures = [t for network in networks for t in network["temperatures"]]
    lines = [
        f"### {TITLES[study]}",
        "",
        f"Networks: {len(networks)}; epochs: {networks[0]['epochs']}; "
        f"T: {min(temperatures):.3f} to {max(temperatures):.3f}. Means over networks ± half of "
        "the 95 % interval over networks and cases; in brackets what the paper has of blood cells.",
        "",
        *_levels(_of(rows, "valid", "test"), labels),
        "",
        "Differences with their 95 % intervals:",
        "",
        *_changes(_of(rows, "valid", "test")),
        "",
    ]
    for fitted, part, title in (
        ("valid", "same", "Judged by people of CIFAR-10N, to whom the calibrators are fitted"),
        ("other", "test", "Calibrators fitted to five labels of CIFAR-10H, on the other half"),
        ("chosen", "test", "α with a penalty on its coefficients that is cross-validated"),
    ):
        some = _of(rows, fitted, part)
        if some:
            lines += [f"{title}:", "", *_levels(some, ""), "", *_changes(some), ""]
    return lines


def _of(rows: Rows, fitted: str, part: str) -> dict[Key, Sequence[Mapping[str, Any]]]:
    return {key: own for key, own in rows.items() if (key.fitted, key.part) == (fitted, part)}


def _levels(rows: Rows, labels: str) -> list[str]:
    lines = table_head(("method", *COLUMNS.values()))
    for key, own in rows.items():
        cells = []
        for metric in COLUMNS:
            pairs = [row["values"][metric] for row in own if metric in row["values"]]
            paper = paper_value(labels, key[2:], metric) if labels else ""
            cells.append(_level(pairs) + (f" ({paper})" if paper and pairs else ""))
        lines.append(table_row((method_name(key), *cells)))
    return lines


def _changes(rows: Rows) -> list[str]:
    names = [
        name
        for name in CHANGES
        if any(name in row["differences"] for own in rows.values() for row in own)
    ]
    lines = table_head(("method", *(CHANGES[name] for name in names)))
    for key, own in rows.items():
        cells = [
            change([row["differences"][name] for row in own if name in row["differences"]])
            for name in names
        ]
        lines.append(table_row((method_name(key), *cells)))
    return lines


def _more_labels(fewer: Sequence[Network], more: Sequence[Network], title: str) -> list[str]:
    """Return what learning from more labels changes, on the same cases, network by network."""
    lines = [f"### {title}", "", *table_head(("method", *(COLUMNS[m] for m in MORE)))]
    before, after = gathered(fewer), gathered(more)
    for key, own in after.items():
        pairs = list(zip(before.get(key, ()), own, strict=False))
        if not pairs or key.fitted != "valid" or "groups" not in own[0]:
            continue
        cells = []
        for metric in MORE:
            each = [np.subtract(b["groups"][metric], a["groups"][metric]) for a, b in pairs]
            cells.append(change([(float(d[0]), error_of(d)) for d in each]))
        lines.append(table_row((method_name(key), *cells)))
    return [*lines, ""]


def _level(pairs: Sequence[Sequence[float]]) -> str:
    if not pairs:
        return ""
    mean, half = mean_and_half(pairs)
    return f"{mean:.4f} ± {half:.4f}"

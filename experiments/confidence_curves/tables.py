"""The tables of the distillation experiment, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.markdown import table_head, table_row

__all__ = ["KINDS", "METHODS", "PAIRS", "TEMPERED", "as_markdown"]

Found = Mapping[str, Any]

METHODS = {
    "max softmax": "max softmax, one network",
    "ensemble": "ensemble",
    "softened": "softened ensemble, T = 3",
    "softened, T = 10": "softened ensemble, T = 10",
    "softened, chosen": "softened ensemble, T chosen",
    "udist": "UDist, T = 3",
    "udist, T = 10": "UDist, T = 10",
    "udist, chosen": "UDist, T chosen",
    "udist, held out": "UDist on held-out images, T = 3",
    "udist, held out, T = 10": "UDist on held-out images, T = 10",
    "udist, single": "UDist of one network, T = 3",
}
TEMPERED = {
    "softened": "softened ensemble",
    "udist": "UDist",
    "udist, held out": "UDist on held-out images",
    "udist, single": "UDist of one network",
}
"""Those that depend on a temperature."""
KINDS = {"udist": "udist", "udist, held out": "udist_held_out", "udist, single": "udist_single"}
"""What the files call those that are distilled."""
PAIRS = (
    ("udist", "max softmax"),
    ("udist", "ensemble"),
    ("udist", "softened"),
    ("udist, T = 10", "softened, T = 10"),
    ("udist, chosen", "softened, chosen"),
    ("udist, held out", "softened"),
    ("udist, held out, T = 10", "softened, T = 10"),
    ("udist, single", "max softmax"),
    ("softened", "ensemble"),
)
"""What is compared: first minus second."""
TITLES = {
    "cifar10": "CIFAR-10",
    "cifar8": "CIFAR-10 without cats and trucks",
    "mnist": "MNIST",
    "pneumonia": "PneumoniaMNIST",
}
NETWORKS = {"densenet": "DenseNets", "vgg": "VGGs", "resnet9": "small residual networks"}
INSIDE = {
    "accuracy": "accuracy",
    "auccc": "AUCCC",
    "aurc": "AURC (lower is better)",
    "auccc by raters": "AUCCC by the raters of CIFAR-10H",
}


def as_markdown(found: Iterable[Found]) -> str:
    """Return the tables of every problem."""
    return "\n".join(line for part in found for line in _section(part))


def _section(part: Found) -> list[str]:
    settings, values = part["settings"], part["values"]
    cases = [f"{number} {kind}" for kind, number in part["cases"].items() if kind != "test"]
    inside = [metric for metric in INSIDE if metric in values["ensemble"]]
    kinds = [kind for kind in part["cases"] if kind != "test"]
    lines = [
        f"### {TITLES[part['problem']]}, {NETWORKS[part['network']]}",
        "",
        f"Cascades: {len(part['seeds'])} of {settings['members']} members; "
        f"{part['cases']['test']} test images; from elsewhere: {', '.join(cases) or 'none'}. "
        f"T chosen on {settings['held_out']} held-out images: {_temperatures(part)}.",
        "",
        *_over_confidence(part["over_confidence"]),
        *table_head(("confidence", *(INSIDE[metric] for metric in inside))),
        *_rows(values, inside),
        "",
    ]
    for title, prefix in (("AUCCC", "auccc, "), ("I/O AUROC", "io_auroc, ")):
        if kinds:
            lines += [
                *table_head((f"{title} with", *kinds)),
                *_rows(values, [prefix + kind for kind in kinds]),
                "",
            ]
    return [*lines, *_differences(part, kinds), "", *_by_temperature(part, kinds), ""]


def _temperatures(part: Found) -> str:
    chosen = part["temperatures"]
    each = {key: [one[key] for one in chosen if key in one] for key in ("softened", "udist")}
    return "; ".join(
        f"{TEMPERED[key]} {', '.join(f'{t:g}' for t in known)}"
        for key, known in each.items()
        if known
    )


def _rows(values: Mapping[str, Any], metrics: Sequence[str]) -> list[str]:
    return [
        table_row((name, *(_cell(values[method][metric], ".4f") for metric in metrics)))
        for method, name in METHODS.items()
        if method in values
    ]


def _over_confidence(each: Sequence[Found]) -> list[str]:
    """Return what one network says of images that it was trained on and of others."""
    if "train" not in each[0]:
        return []
    lines = table_head(("one network, of", "accuracy", "mean confidence", "ECE", "AUCCC"))
    for part, name in (
        ("train", "images it was trained on"),
        ("held_out", "images held out"),
        ("test", "test images"),
    ):
        cells = []
        for metric in ("accuracy", "confidence", "ece", "auccc"):
            known = [one[part][metric] for one in each if one[part][metric] is not None]
            cells.append(", ".join(f"{value:.4f}" for value in known) or "no errors")
        lines.append(table_row((name, *cells)))
    return [*lines, ""]


def _differences(part: Found, kinds: Sequence[str]) -> list[str]:
    """Return the table of paired differences in AUCCC, each seed's beside the mean's interval."""
    metrics = ["auccc", *(f"auccc, {kind}" for kind in kinds)]
    found = {(row["first"], row["second"], row["metric"]): row for row in part["differences"]}
    lines = table_head(("difference in AUCCC", "in distribution", *(f"with {k}" for k in kinds)))
    for first, second in PAIRS:
        if (first, second, metrics[0]) not in found:
            continue
        rows = [found[first, second, metric] for metric in metrics]
        cells = [f"{_cell(row, '+.4f')} ({_each(row)})" for row in rows]
        lines.append(table_row((f"{METHODS[first]} − {METHODS[second]}", *cells)))
    return lines


def _by_temperature(part: Found, kinds: Sequence[str]) -> list[str]:
    temperatures = part["settings"]["test_temperatures"]
    lines = table_head(("AUCCC", "", *(f"T = {t:g}" for t in temperatures)))
    for method, name in TEMPERED.items():
        if method not in part["by_temperature"]:
            continue
        for kind in ("test", *kinds):
            areas = [f"{value:.4f}" for value in part["by_temperature"][method][kind]]
            where = "in distribution" if kind == "test" else f"with {kind}"
            lines.append(table_row((name if kind == "test" else "", where, *areas)))
    return lines


def _each(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{value:+.4f}" for value in row["each"])


def _cell(row: Mapping[str, Any], form: str) -> str:
    return f"{row['value']:{form}} [{row['low']:{form}}, {row['high']:{form}}]"

"""The tables of the segmentation experiment, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from experiments.markdown import table_head, table_row

__all__ = ["as_markdown", "beside_the_paper"]

Found = Mapping[str, Any]

TITLES = {"ece": "ECE", "robust_ece": "RECE-G", "kde_ece": "kdeECE"}
REGIONS = {"image": "whole image", "band": "band"}
PAPER = {
    "Chákṣu": ((1.15, 0.44), (0.54, 0.20)),
    "QUBIQ kidney": ((0.11, 0.09), (0.01, 0.01)),
    "QUBIQ prostate T1": ((0.15, 0.06), (0.01, 0.01)),
    "QUBIQ prostate T2": ((0.08, 0.06), (0.01, 0.01)),
    "QUBIQ brain growth": ((0.85, 0.22), (0.69, 0.21)),
    "QUBIQ brain tumour T1": ((1.06, 0.58), (0.50, 0.08)),
    "QUBIQ brain tumour T2": ((1.08, 0.69), (0.94, 0.18)),
    "QUBIQ brain tumour T3": ((0.84, 0.15), (0.40, 0.02)),
}
"""MR Table 2: mean and standard deviation of SR and of MR."""
SCALE = 1e4
"""Of the total variation: one step changes an error in its fourth decimal."""


def as_markdown(found: Iterable[Found]) -> str:
    """Return the tables of each data set: values, total variation, and that by raters."""
    return "\n".join(line for part in found for line in _section(part))


def beside_the_paper(found: Iterable[Found]) -> str:
    """Return MR Table 2, and ours: total variation of ECE of whole images."""
    lines = table_head(("data", "SR", "MR", "SR / MR", "MR lower in"))
    for name, (one, several) in PAPER.items():
        cells = (f"{one[0]:.2f} ± {one[1]:.2f}", f"{several[0]:.2f} ± {several[1]:.2f}")
        lines.append(table_row((f"paper: {name}", *cells, f"{one[0] / several[0]:.2f}", "")))
    for part in found:
        single, all_of_them, _, ratio, lower = _pair(part["variation"]["image"]["ece"])
        name = f"{part['data']} (× 10⁻⁴)"
        lines.append(table_row((name, single, all_of_them, ratio, lower)))
    return "\n".join([*lines, ""])


def _section(part: Found) -> list[str]:
    lines = [
        f"### {part['data']}",
        "",
        _description(part),
        "",
        *_values(part["values"]),
        "",
        f"Total variation, in units of 10⁻⁴ ({_bootstraps(part)}):",
        "",
        *_variations(part),
        "",
    ]
    if len(part["by_raters"]) > 1:
        lines += ["Whole image, by how many raters there were:", "", *_by_raters(part), ""]
    return lines


def _bootstraps(part: Found) -> str:
    """Return how many bootstraps of each image there are, of all networks, metric by metric."""
    totals = {TITLES[metric]: sum(each) for metric, each in part["bootstraps"].items()}
    if len(set(totals.values())) == 1:
        return f"{next(iter(totals.values()))} bootstraps of each image"
    return "bootstraps of each image: " + ", ".join(f"{n} of {m}" for m, n in totals.items())


def _description(part: Found) -> str:
    settings = part["settings"]
    each = ", ".join(f"{dice:.3f}" for dice in part["dice_by_network"])
    networks = f"{part['networks']} trained network{'s' * (part['networks'] > 1)}"
    return (
        f"{part['images']} test images of {part['patients']} patients that at least two raters "
        f"outlined, {part['raters']:.2f} on average. The values of an image are means over "
        f"{networks}, whose Dice with the raters is "
        f"{_estimate(part['dice'], 3)} ({each}). ± is the standard deviation over images, brackets "
        f"are {100 * settings['level']:g} % intervals over patients. The band is that of "
        f"{settings['band']:g} pixels around the raters' outlines."
    )


def _values(values: Found) -> list[str]:
    lines = table_head(("", "", "one rater (SR)", "all raters (MR)", "SR - MR"))
    for region, metrics in values.items():
        for metric, both in metrics.items():
            cells = (_estimate(both["SR"], 4), _estimate(both["MR"], 4))
            change = _signed(both["difference"], 4)
            lines.append(table_row((REGIONS[region], TITLES[metric], *cells, change)))
    return lines


def _variations(part: Found) -> list[str]:
    heads = ("", "TV of", "SR", "MR", "SR - MR", "SR / MR", "MR lower in")
    lines = table_head((*heads, "TV / value: SR", "MR"))
    for region, metrics in part["variation"].items():
        for metric, both in metrics.items():
            relative = (_percent(both["relative"][who]) for who in ("SR", "MR"))
            cells = (REGIONS[region], TITLES[metric], *_pair(both), *relative)
            lines.append(table_row(cells))
    return lines


def _by_raters(part: Found) -> list[str]:
    lines = table_head(
        ("raters", "images", "TV of", "SR", "MR", "SR - MR", "SR / MR", "MR lower in")
    )
    for raters, metrics in part["by_raters"].items():
        for metric, both in metrics.items():
            images = str(both["SR"]["images"])
            lines.append(table_row((raters, images, TITLES[metric], *_pair(both))))
    return lines


def _pair(both: Found) -> tuple[str, ...]:
    return (
        _estimate(both["SR"], 2, SCALE),
        _estimate(both["MR"], 2, SCALE),
        _signed(both["difference"], 2, SCALE),
        _estimate(both["ratio"], 2),
        f"{100 * both['lower_share']:.0f} %",
    )


def _percent(fraction: float | None) -> str:
    return "undefined" if fraction is None else f"{100 * fraction:.1f} %"


def _estimate(found: Found, digits: int, scale: float = 1.0) -> str:
    return _written(found, scale, f".{digits}f")


def _signed(found: Found, digits: int, scale: float = 1.0) -> str:
    return _written({**found, "std": None}, scale, f"+.{digits}f")


def _written(found: Found, scale: float, form: str) -> str:
    if found["mean"] is None:
        return "undefined"
    text = f"{scale * found['mean']:{form}}"
    if found["std"] is not None:
        text += f" ± {scale * found['std']:{form}}"
    if found["low"] is not None:
        text += f" [{scale * found['low']:{form}}, {scale * found['high']:{form}}]"
    return text

"""LH Figs 1 to 6, drawn from what is kept of the networks; needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from experiments.label_histograms.figure_data import (
    RATERS,
    RUNS,
    SIZES,
    Change,
    Curves,
    debiasing,
    mixed_changes,
    mixed_reliability,
    several_changes,
    several_reliability,
)
from experiments.label_histograms.mixed_tables import TITLES as MIXED
from experiments.label_histograms.several_paper import ROWS, paper_value
from experiments.label_histograms.several_tables import TITLES as SEVERAL
from experiments.label_histograms.several_tables import by_study, gathered
from raterwise.palette import IDEAL, SERIES
from raterwise.plots import OptimalConcentrationDisplay, journal_style
from raterwise.plots.style import pyplot

__all__ = ["draw_mixed", "draw_several", "parts_of_loss"]

Parts = Mapping[tuple[str, str], tuple[float, ...]]
"""CL and DL, by method and scaling."""

STUDENT = 1.833
"""The 95 % point of Student's t with nine degrees of freedom: 90 % intervals of ten runs."""
COLOURS = {
    (method, scaling): SERIES[i]
    for i, (method, scaling) in enumerate(
        (method, scaling) for method in ("raw", "mcdo", "tta") for scaling in ("none", "ts")
    )
}
MARKS = {"none": "o", "ts": "^", "vs": "s", "ms": "D"}
FEW = 20
"""A bin of fewer cases for each network is not drawn."""
POINTS = 2000
NAMES = ("Largest probability", "Disagreement")
"""What Fig 4 shows of each case."""


def draw_mixed(out: str | PathLike[str]) -> list[Path]:
    """Draw Figs 2 and 3, and Figs 1 and 4 of Mix-MNIST and Mix-CIFAR-10, into a folder."""
    folder = Path(out)
    have = [name for name in MIXED if list(folder.glob(f"{name}-*.npz"))]
    figures: dict[str, Any] = {}
    with journal_style():
        figures["figure_2.svg"] = _debiasing()
        figures["figure_3.svg"] = _concentrations()
        changes = {MIXED[name]: mixed_changes(folder, name) for name in have}
        figures["figure_4_mixed.png"] = _changes(changes)
        if "mixed_mnist" in have:
            curves = {"Mix-MNIST(2)": mixed_reliability(folder)}
            figures["figure_1_mixed.svg"] = _reliability(curves)
        return _written(folder, figures)


def draw_several(out: str | PathLike[str], found: Iterable[Mapping[str, Any]]) -> list[Path]:
    """Draw Figs 1, 4, 5a and 6a with people in the place of blood cells, into the same folder."""
    folder = Path(out)
    studies = by_study(found)
    curves = {SEVERAL[s]: several_reliability(gathered(own)) for s, own in studies.items()}
    # The first network of each: of others the logits may not be kept.
    changes = {SEVERAL[s]: [several_changes(folder, own[0])] for s, own in studies.items()}
    with journal_style():
        figures = {"figure_1.svg": _reliability(curves), "figure_4.png": _changes(changes)}
        figures["figure_5.svg"] = _dispersion(parts_of_loss(studies))
        return _written(folder, figures)


def parts_of_loss(studies: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Parts]:
    """Return CL and DL = EL - CL of the paper's blood cells, and of each study's networks."""
    panels: dict[str, Parts] = {}
    for title, labels in (("paper: MDS-1", "1"), ("paper: MDS-full", "all")):
        cells = {
            row[:2]: [paper_value(labels, row, m) for m in ("calibration_error", "epistemic_loss")]
            for row in ROWS
            if not row[2]
        }
        panels[title] = {key: _split(*map(float, own)) for key, own in cells.items() if all(own)}
    for study, networks in studies.items():
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for network in networks:
            for row in network["rows"]:
                if (row["fitted"], row["part"], row["alpha"]) == ("valid", "test", False):
                    values = row["values"]
                    own = _split(values["calibration_error"][0], values["epistemic_loss"][0])
                    found.setdefault((row["method"], row["scaling"]), []).append(own)
        panels[SEVERAL[study]] = {
            key: tuple(np.mean(own, axis=0).tolist()) for key, own in found.items()
        }
    return panels


def _split(error: float, loss: float) -> tuple[float, float]:
    return error**2, loss - error**2


def _written(folder: Path, figures: Mapping[str, Any]) -> list[Path]:
    files = []
    for name, figure in figures.items():
        # No date and no random names: the same numbers give the same file.
        metadata = {"Date": None} if name.endswith("svg") else None
        with pyplot().rc_context({"svg.hashsalt": name}):
            figure.savefig(folder / name, dpi=110, metadata=metadata)
        pyplot().close(figure)
        files.append(folder / name)
    return files


def _reliability(panels: Mapping[str, Curves]) -> Any:
    """Draw observed against predicted disagreement: dotted without α, solid with it."""
    figure, axes = _grid(len(panels))
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        axis.plot([0, 1], [0, 1], color=IDEAL, lw=0.8, ls=(0, (4, 3)))
        for (method, scaling, alpha), bins in curves.items():
            name = {"raw": "Raw", "mcdo": "MCDO", "tta": "TTA"}[method]
            name += "" if scaling == "none" else f"+{scaling}"
            many = bins["cases"] >= FEW
            line = {"ls": "-" if alpha else ":", "color": COLOURS[method, scaling]}
            label = f"{name}+α" if alpha else name
            axis.plot(bins["predicted"][many], bins["observed"][many], label=label, **line)
        axis.set(title=title, xlim=(0, 0.9), ylim=(0, 0.9), xlabel="Predicted disagreement")
        axis.set_aspect("equal")
    axes[0].set_ylabel("Pairs of raters who differ")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3 if len(panels) < 3 else 6)
    return figure


def _dispersion(panels: Mapping[str, Parts]) -> Any:
    """Draw the calibration-dispersion maps: nearer to the lower left is better in both parts."""
    plt = pyplot()
    rows = -(-len(panels) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(7.8, 2.5 * rows + 0.3), layout="constrained")
    for axis, (title, parts) in zip(axes.flat, panels.items(), strict=False):
        for (method, scaling), (calibration, dispersion) in parts.items():
            colour = COLOURS[method, "none"]
            axis.plot(calibration, dispersion, MARKS[scaling], ms=4, color=colour)
        axis.set_title(title)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis in axes[-1]:
        axis.set_xlabel("CL")
    for axis in axes[:, 0]:
        axis.set_ylabel("DL = EL - CL")
    named = [("Raw", "o", "raw"), ("MCDO", "o", "mcdo"), ("TTA", "o", "tta")]
    named += [(f"+{s}", mark, "") for s, mark in MARKS.items() if s != "none"]
    handles = [
        plt.Line2D([], [], ls="", marker=mark, ms=4, label=name,
                   color=COLOURS[method, "none"] if method else IDEAL)
        for name, mark, method in named
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    return figure


def _debiasing() -> Any:
    """Draw the estimates against the number of cases, with 90 % intervals of their means."""
    found = debiasing()
    figure, axes = _grid(2)
    for axis, kind in zip(axes, ("EL", "CL"), strict=True):
        axis.axhline(0, color=IDEAL, lw=0.8)
        for name, by_raters in found.items():
            if not name.startswith(kind):
                continue
            for i, raters in enumerate(RATERS):
                values = by_raters[raters]
                half = STUDENT * values.std(axis=1, ddof=1) / np.sqrt(RUNS)
                style = ":" if "plug-in" in name else "-"
                axis.errorbar(
                    SIZES, values.mean(axis=1), half, color=SERIES[i], ls=style, capsize=2,
                    label=f"{name.split(', ')[1]}, {raters} labels",
                )  # fmt: skip
        axis.set(xscale="log", xlabel="Cases", title=f"{kind} of a perfect predictor")
        axis.legend(loc="center right" if kind == "EL" else "upper right")
    axes[0].set_ylabel("Estimate; the truth is 0")
    return figure


def _concentrations() -> Any:
    figure, axes = _grid(3)
    for axis, raters in zip(axes, (2, 5, 10), strict=True):
        OptimalConcentrationDisplay(raters).plot(ax=axis)
        axis.set_title(f"{raters} labels")
    return figure


def _changes(panels: Mapping[str, Sequence[Change]]) -> Any:
    """Draw what ts does to single cases: those of the first network, at most 2,000 of them."""
    plt = pyplot()
    size = (2.2 * len(panels) + 0.4, 4.4)
    figure, axes = plt.subplots(2, len(panels), figsize=size, layout="constrained", squeeze=False)
    for column, (title, changes) in enumerate(panels.items()):
        pairs = changes[0].confidence, changes[0].disagreement
        for axis, (before, after), name in zip(axes[:, column], pairs, NAMES, strict=True):
            axis.plot([0, 1], [0, 1], color=IDEAL, lw=0.8, ls=(0, (4, 3)))
            axis.plot(before[:POINTS], after[:POINTS], ".", ms=1.5, color=SERIES[0], alpha=0.3)
            axis.set(xlabel=f"{name}, Raw", xlim=(0, 1), ylim=(0, 1))
            axis.set_aspect("equal")
        axes[0, column].set_title(title)
    for axis, name in zip(axes[:, 0], NAMES, strict=True):
        axis.set_ylabel(f"{name}, Raw+ts")
    return figure


def _grid(columns: int) -> tuple[Any, Any]:
    plt = pyplot()
    size = (2.5 * columns + 0.3, 3.1)
    figure, axes = plt.subplots(1, columns, figsize=size, layout="constrained", squeeze=False)
    return figure, axes[0]

"""Draw docs/images/robust_ece_sizes.png and robust_ece_truth.png: RECE Figs 1 to 3, remade.

    python -m experiments.robust_ece.picture OUT

OUT is what --out of `python -m experiments sample_sizes` was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from experiments.robust_ece.sizes_tables import METRICS, STUDENT
from experiments.robust_ece.truth import SIGMAS
from raterwise.palette import SERIES

TARGET = Path(__file__).parents[2] / "docs" / "images"
SHOWN = (
    ("BUSI", "cross-entropy, seed 0"),
    ("POCUS", "cross-entropy, seed 0"),
    ("CIFAR-10", "ResNet-50"),
)
"""The paper's own data, as far as they can be had; its Figs 1 and 2 have GBCU, POCUS, Kaggle DR."""
COLOURS = dict(zip(METRICS, SERIES, strict=True))


def main() -> None:
    """Make both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    found = json.loads((parser.parse_args().out / "summary.json").read_text(encoding="utf-8"))
    matplotlib.use("Agg")
    for draw, name in ((sizes, "robust_ece_sizes"), (truth, "robust_ece_truth")):
        path = TARGET / f"{name}.png"
        draw(found).savefig(path, dpi=100)
        print(f"{path} ({path.stat().st_size / 1024:.0f} KB)")


def sizes(found: Mapping[str, Any]) -> Any:
    """Draw the metrics by sample size, and how far they are from their values on all cases.

    With 95 % intervals over samples.
    """
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10, 6), layout="constrained", sharex="col")
    parts = {(part["data"], part["name"]): part for part in found["samples"]}
    for column, key in enumerate(SHOWN):
        part = parts[key]
        for metric, title in METRICS.items():
            if part["full"][metric] is None:
                continue
            values = np.array(part["values"][metric], float)  # None becomes NaN
            mean = values.mean(axis=1)
            half = STUDENT * values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
            top, low = axes[:, column]
            top.errorbar(part["sizes"], mean, half, color=COLOURS[metric], label=title)
            top.axhline(part["full"][metric], color=COLOURS[metric], lw=0.6, ls=":")
            apart = abs(mean - part["full"][metric])
            low.errorbar(part["sizes"], apart, half, color=COLOURS[metric])
        top.set_title(f"{key[0]} ({part['cases']} cases)", fontsize=9)
        top.set_ylim(0, 0.45)
        low.set_ylim(0, 0.2)
        low.set_xscale("log")
        low.set_xticks(part["sizes"], labels=[str(size) for size in part["sizes"]])
        low.minorticks_off()
        low.set_xlabel("cases in a sample")
    axes[0, 0].set_ylabel("value; dotted: on all cases")
    axes[1, 0].set_ylabel("distance from it")
    axes[0, 0].legend(fontsize=7)
    return figure


def truth(found: Mapping[str, Any]) -> Any:
    """Draw bias and spread against a known truth, and what the width of RECE-G does to them."""
    from matplotlib import pyplot as plt

    known = found["truth"]
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
    for axis, (name, world) in zip(axes, known["worlds"].items(), strict=False):
        for metric, title in METRICS.items():
            mean = np.array(world["metrics"][metric]["mean"]) - world["truth"]
            axis.plot(known["sizes"], mean, color=COLOURS[metric], label=title)
        axis.axhline(0, color="black", lw=0.6)
        axis.set_xscale("log")
        axis.set_title(f"{name}: truth {world['truth']:.3f}", fontsize=9)
        axis.set_ylim(-0.05, 0.22)
        axis.set_xlabel("cases")
    axes[0].set_ylabel("bias")
    axes[0].legend(fontsize=7)
    place = known["sizes"].index(100)
    for beside, (name, world) in zip((0.94, 1.0, 1.06), known["ablation"].items(), strict=True):
        own = [world["metrics"][f"σ = {sigma:g}"] for sigma in SIGMAS]
        bias = [row["mean"][place] - world["truth"] for row in own]
        spread = [row["sd"][place] for row in own]
        axes[3].errorbar(beside * np.array(SIGMAS), bias, spread, label=name)
    axes[3].axhline(0, color="black", lw=0.6)
    axes[3].set_xscale("log")
    axes[3].set_xlabel("σ of RECE-G")
    axes[3].set_title("100 cases: bias ± standard deviation", fontsize=9)
    axes[3].legend(fontsize=7)
    return figure


if __name__ == "__main__":
    main()

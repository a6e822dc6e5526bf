"""Draw docs/images/multi_rater_curves.png: MR Figs 1 and 3, an error as cases are taken away.

    python -m experiments.multi_rater.curves DATA NODULES

DATA is what --data of `python -m experiments rater_stability` was, NODULES what --nodules was.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.multi_rater.classification import BINS, Column, drawn_raters
from experiments.multi_rater.columns import columns_of
from raterwise.evaluate import predictions_of
from raterwise.labels import Labels
from raterwise.palette import SERIES
from raterwise.stability.parts import Partition, measure_of, paths_of

TARGET = Path(__file__).parents[2] / "docs" / "images" / "multi_rater_curves.png"
SHOWN = ("LIDC malignancy", "LIDC texture", "CIFAR-10H, VGG16, 1000 images")
ERRORS = {"ece": "ECE", "kde_ece": "kdeECE"}
REPEATS = 8
"""Bootstraps of the cases, each with raters of its own."""


def main() -> None:
    """Make the picture, and print how much each error rises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("nodules", type=Path)
    given = parser.parse_args()
    import matplotlib as mpl

    mpl.use("Agg")
    models = {name: own[0] for name, own in columns_of(given.data, given.nodules) if name in SHOWN}
    draw(models).savefig(TARGET, dpi=80)
    print(f"{TARGET} ({TARGET.stat().st_size / 1024:.0f} KB)")
    for name in SHOWN[:2]:
        for raters, said in ((1, "one rater"), (None, "all")):
            print_ends(
                f"{name}, debiased CE, {said}", curves_of(models[name], "calibration_error", raters)
            )


def print_ends(name: str, curves: NDArray[np.float64]) -> None:
    """Print the mean of several curves on a fifth of the cases and on all."""
    mean = curves.mean(axis=0)
    print(f"{name}: {mean[0]:.4f} of a fifth, {mean[-1]:.4f} of all")


def curves_of(column: Column, metric: str, raters: int | None) -> NDArray[np.float64]:
    """Return an error (repeats, sizes) on a fifth … all of the cases, by so many raters (or all).

    The cases are the same whatever the number of raters.
    """
    found = []
    for repeat in range(REPEATS):
        counts = column.counts
        if raters is not None:
            counts = drawn_raters(counts, raters, [0, repeat])
        labels = Labels.from_counts(counts)
        predictions = predictions_of(column.probs, labels, groups=column.patients)
        measure = measure_of(
            metric,
            predictions,
            bins=BINS,
            question=None if metric == "calibration_error" else column.question,
            per=None,
            options=None,
        )
        found.append(paths_of(predictions, measure, Partition(repeats=1, seed=repeat))[0])
    return np.array(found)


def draw(models: dict[str, Column]) -> Any:
    """Draw one rater's curves and all raters', for each model and error."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        2, len(models), figsize=(10, 5.6), layout="constrained", sharex=True, squeeze=False
    )
    for k, (name, column) in enumerate(models.items()):
        for ax, (metric, title) in zip(axes[:, k], ERRORS.items(), strict=True):
            for raters, said, colour in ((1, "one rater", SERIES[1]), (None, "all", SERIES[0])):
                curves = curves_of(column, metric, raters)
                shares = np.linspace(0.2, 1, curves.shape[1])
                ax.plot(shares, curves.T, color=colour, lw=0.7, alpha=0.8)
                ax.plot([], [], color=colour, label=said)
                print_ends(f"{name}, {title}, {said}", curves)
            ax.set_ylim(bottom=0)
            ax.set_ylabel(title if k == 0 else "")
        axes[0, k].set_title(name, fontsize=10)
        axes[1, k].set_xlabel("share of the cases")
        axes[1, k].invert_xaxis()
    axes[0, 0].legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()

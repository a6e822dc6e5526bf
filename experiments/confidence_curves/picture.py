"""Draw the CCC curves of docs/reproduction/confidence_curves.md from what is kept.

    python -m experiments.confidence_curves.picture FOLDER

FOLDER is experiments/outputs/confidence_curves, or what --out of
`python -m experiments confidence_curves --network vgg` was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

from experiments.confidence_curves.judging import Cascade, Judgement, load_cascades
from experiments.confidence_curves.tables import METHODS
from raterwise import plots
from raterwise.confidence import ccc_curve
from raterwise.curves import ThresholdCurve

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "confidence_curves.png"
SHOWN = ("ensemble", "softened", "udist", "udist, held out")
PANELS = (
    ("cifar10", None, "CIFAR-10"),
    ("cifar10", "digits", "CIFAR-10, and digits"),
    ("cifar8", "cats and trucks", "Eight classes, and cats and trucks"),
)
DPI = 110


def main() -> None:
    """Draw the first cascade of VGGs of each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    cascades: dict[str, Cascade] = {}
    for cascade in load_cascades(folder):
        if cascade.made_of["network"] == "vgg":
            cascades.setdefault(cascade.made_of["problem"], cascade)
    with plots.journal_style():
        figure, axes = plt.subplots(1, len(PANELS), figsize=(10.5, 3.6), layout="constrained")
        for ax, (problem, kind, title) in zip(axes, PANELS, strict=True):
            methods = cascades[problem].methods()
            for name in SHOWN:
                curve = curve_of(methods[name][0], kind)
                plots.CCCDisplay(curve).plot(ax=ax, name=METHODS[name])
            ax.set_title(title)
            ax.legend(loc="lower right", fontsize=6, frameon=False)
        figure.savefig(IMAGE, dpi=DPI)
    print(IMAGE.name, IMAGE.stat().st_size)


def curve_of(judgement: Judgement, kind: str | None) -> ThresholdCurve:
    """Return the CCC curve of one confidence, with cases from elsewhere where there are some."""
    outside = None if kind is None else judgement.outside[kind]
    curve = ccc_curve(judgement.confidence, judgement.right, outside=outside)
    accepted = curve.correct_accepts + curve.incorrect_accepts
    return ThresholdCurve(**vars(curve), accepted_cases=accepted).thinned()


if __name__ == "__main__":
    main()

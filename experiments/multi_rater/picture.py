"""Draw docs/images/segmentation_raters.png: a nodule, its outlines, what a network says of it.

    python -m experiments.multi_rater.picture DATA OUT

DATA and OUT are what --data and --out of `python -m experiments multi_rater` were.

The image is of LIDC-IDRI (CC BY 3.0), cited in docs/segmentation_networks.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

from experiments.multi_rater.data import Training, Unit, kept_predictions, read_study
from raterwise.datasets.mask_arrays import OutlinedImages
from raterwise.palette import SERIES
from raterwise.segmentation import disagreement_map

TARGET = Path(__file__).parents[2] / "docs" / "images" / "segmentation_raters.png"
MARGIN = 12
"""Pixels around the outlines."""
LEAST = 250
"""Pixels that some rater calls nodule."""


def main() -> None:
    """Make the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--name", help="of the nodule, such as LIDC-IDRI-0001-n0")
    given = parser.parse_args()
    matplotlib.use("Agg")
    images = read_study(given.data, "lidc")
    kept = kept_predictions(images, Unit("lidc", 0, 0), given.out, Training())
    rows = kept["rows"].tolist()
    place = (
        chosen(images, rows) if given.name is None else rows.index(images.names.index(given.name))
    )
    draw(images, rows[place], kept["probabilities"][place].astype(np.float64))
    print(f"{images.names[rows[place]]}: {TARGET} ({TARGET.stat().st_size / 1024:.0f} KB)")


def chosen(images: OutlinedImages, rows: list[int]) -> int:
    """Return the place of a nodule whose four outlines share about half of what any of them holds.

    All four must be there, differ, and be large enough to be seen.
    """
    apart = []
    for row in rows:
        masks = images.masks_of(row)
        union = masks.any(axis=0).sum()
        different = len({mask.tobytes() for mask in masks if mask.any()})
        usable = len(masks) == different == 4 and union >= LEAST
        apart.append(abs(masks.all(axis=0).sum() / union - 0.5) if usable else np.inf)
    return int(np.argmin(apart))


def draw(images: OutlinedImages, row: int, probs: NDArray[np.float64]) -> None:
    """Draw the image with its outlines, the probability, and both kinds of disagreement."""
    from matplotlib import pyplot as plt

    masks = images.masks_of(row)
    around = np.argwhere(masks.any(axis=0) | (probs > 0.2))
    low, high = np.maximum(around.min(axis=0) - MARGIN, 0), around.max(axis=0) + MARGIN + 1
    part = (slice(low[0], high[0]), slice(low[1], high[1]))
    share = masks.mean(axis=0)
    raters = len(masks)
    observed = 2 * share * (1 - share) * raters / (raters - 1)
    said = disagreement_map(probs, one_channel=True)
    panels = (
        ("CT and four radiologists", images.images[row], "gray", 255),
        ("foreground probability", probs, "viridis", 1),
        ("predicted disagreement", said, "magma", 0.7),
        ("observed disagreement", observed, "magma", 0.7),
    )
    figure, axes = plt.subplots(1, 4, figsize=(10, 3.4), layout="constrained")
    for axis, (title, values, colours, most) in zip(axes, panels, strict=True):
        shown = axis.imshow(values[part], cmap=colours, vmin=0, vmax=most, interpolation="nearest")
        axis.set_title(title, fontsize=9)
        axis.set_axis_off()
        if colours == "gray":
            for mask, colour in zip(masks, SERIES, strict=False):
                if mask.any():
                    axis.contour(mask[part], [0.5], colors=[colour], linewidths=1.2)
        figure.colorbar(shown, ax=axis, orientation="horizontal", shrink=0.8)
    figure.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    main()

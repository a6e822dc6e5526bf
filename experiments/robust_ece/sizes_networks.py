"""The networks of the experiment with small test sets: two losses on small medical data sets.

Half as wide as those of `training_losses`. A processor trains those of the MedMNIST data in
minutes; the larger images, of which every one is judged by the network of another fold, need a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from experiments.robust_ece.runs import CROSSED, DATA, EPOCHS, Settings
from experiments.robust_ece.training_losses import train_all

__all__ = ["LOSSES", "PROBLEMS", "RECIPE", "train_networks"]

LOSSES = ("cross-entropy", "focal")
PROBLEMS = (*DATA, *CROSSED)
RECIPE = Settings(seeds=1, width=16, epochs={**EPOCHS, "pneumoniamnist": 10}, betas=(1.0,))


def train_networks(
    data: str | PathLike[str],
    out: str | PathLike[str],
    recipe: Settings = RECIPE,
    *,
    problems: Sequence[str] = DATA,
    device: str = "cpu",
    progress: Callable[[str, float], None] | None = None,
) -> list[Path]:
    """Train those that `out` does not hold yet, of the data that are there."""
    there = [name for name in problems if (Path(data) / f"{name}.npz").is_file()]
    if not there:
        return []
    return train_all(
        data, out, recipe, data=there, losses_named=LOSSES, device=device, progress=progress
    )

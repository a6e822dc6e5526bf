"""The networks of the experiment with small test sets: two losses, two small medical data sets.

Half as wide as those of `training_losses`, so that a processor trains them in minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from experiments.robust_ece.runs import DATA, Settings
from experiments.robust_ece.training_losses import train_all

__all__ = ["LOSSES", "RECIPE", "train_networks"]

LOSSES = ("cross-entropy", "focal")
RECIPE = Settings(
    seeds=1, width=16, epochs={"breastmnist": 160, "pneumoniamnist": 10}, betas=(1.0,)
)


def train_networks(
    data: str | PathLike[str],
    out: str | PathLike[str],
    recipe: Settings = RECIPE,
    *,
    device: str = "cpu",
    progress: Callable[[str, float], None] | None = None,
) -> list[Path]:
    """Train those that `out` does not hold yet, of the data that are there."""
    there = [name for name in DATA if (Path(data) / f"{name}.npz").is_file()]
    if not there:
        return []
    return train_all(
        data, out, recipe, data=there, losses_named=LOSSES, device=device, progress=progress
    )

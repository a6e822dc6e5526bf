"""What MR eq 6 may have meant: four readings of its total variation, and the factor of each.

    python -m experiments.multi_rater.readings [DATA NODULES]

Eq 6 does not say whether a larger part holds the smaller one, nor whether the one rater of a case
(SR) is drawn once or again for every part. Where he is drawn again, his labels change from part
to part although the cases hardly do, and the factor SR / MR is no longer bounded by √n: the bound
of `classification` is for labels that stay. MHIST is published as numbers of votes, without the
raters, so that one rater's label has to be drawn there.

Changes are added up in the table, not averaged: only so have the paper's cells our size.
Simulated cases (no data needed) and, with the folders of `rater_stability`, real ones.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.markdown import table_head, table_row
from experiments.multi_rater.classification import BINS, Column, agreement, effective_raters
from experiments.multi_rater.columns import columns_of
from raterwise import kde_ece
from raterwise.labels import Labels
from raterwise.stability.parts import Partition

__all__ = [
    "READINGS",
    "Cases",
    "change_with_bins",
    "correlations",
    "ece",
    "kde_of_both_classes",
    "made_up",
    "variations",
]

FloatArray = NDArray[np.float64]
READINGS = {
    "rater drawn once, parts grow": (False, True),
    "rater drawn once, parts drawn anew": (False, False),
    "rater drawn for each part, parts grow": (True, True),
    "rater drawn for each part, parts drawn anew": (True, False),
}
"""Is the one rater of a case drawn again for each part; does a part hold the one before it."""
MHIST_CASES, MHIST_RATERS = 977, 7
BANDWIDTH, BLUR = 0.05, 2
IMAGES = 12
SHOWN = ("LIDC malignancy", "LIDC texture", "CIFAR-10H, VGG16, 1000 images")
BY_BIN = ("LIDC malignancy", "LIDC texture", "CIFAR-10H, VGG16", "CIFAR-10H, LeNet-5")
FEW_CASES = 50
"""A bin with fewer says little of its raters."""


@dataclass(frozen=True, eq=False)
class Cases:
    """Events with their predicted probability, and the share of the raters who say so."""

    z: FloatArray
    mu: FloatArray
    raters: FloatArray
    masks: FloatArray | None = None
    """(R, N): what each rater says of the pixels of one image; else raters are drawn by case."""

    def one_rater(self, random: np.random.Generator) -> FloatArray:
        """Return what one rater of each case says, or one rater of the image."""
        if self.masks is not None:
            return np.asarray(self.masks[random.integers(len(self.masks))])
        return (random.random(len(self.mu)) < self.mu).astype(float)

    @staticmethod
    def of_image(masks: NDArray[np.bool_], drawn_by: int) -> Cases:
        """Return the pixels of an image, as predicted by one rater's mask, blurred."""
        from scipy.ndimage import gaussian_filter

        every = masks.reshape(len(masks), -1).astype(np.float64)
        z = np.clip(gaussian_filter(masks[drawn_by].astype(np.float64), BLUR).ravel(), 0, 1)
        return Cases(z, every.mean(axis=0), np.full(z.shape, float(len(masks))), every)

    @staticmethod
    def of(column: Column) -> Cases:
        """Return whether raters name the predicted class."""
        raters = column.counts.sum(axis=1)
        rows, top = np.arange(len(raters)), column.probs.argmax(axis=1)
        return Cases(column.probs[rows, top], column.counts[rows, top] / raters, raters)


def made_up(spread: float, seed: int = 0) -> Cases:
    """Return as many cases and raters as MHIST's test set has, and an over-confident model.

    The raters' probability of class 1 is Beta(spread, spread): near 0 and 1 where `spread` is
    small. The model knows its logit with an error of standard deviation 1, and is too sure by half.
    """
    random = np.random.default_rng(seed)
    q = np.clip(random.beta(spread, spread, MHIST_CASES), 1e-3, 1 - 1e-3)
    logit = 1.5 * (np.log(q / (1 - q)) / 2 + random.normal(size=MHIST_CASES))
    share = random.binomial(MHIST_RATERS, q) / MHIST_RATERS
    z = 1 / (1 + np.exp(-np.abs(logit)))
    mu = np.where(logit > 0, share, 1 - share)
    return Cases(z, mu, np.full(MHIST_CASES, float(MHIST_RATERS)))


def ece(z: FloatArray, said: FloatArray, bins: int = BINS) -> float:
    """Return the expected calibration error of events: MR eqs 2 and 5, with b_m / N."""
    place = np.minimum((z * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(place, said - z, bins)).sum() / len(z))


def kde_of_both_classes(z: FloatArray, said: FloatArray) -> float:
    """Return the kernel error of two classes, added up: twice that of the event."""
    counts = np.rint(np.stack((1 - said, said), axis=1) * MHIST_RATERS).astype(np.int64)
    probs, labels = np.stack((1 - z, z), axis=1), Labels.from_counts(counts)
    return 2 * kde_ece(probs, labels, question="positive", bandwidth=BANDWIDTH)


def variations(
    cases: Cases,
    *,
    one: bool,
    redrawn: bool,
    growing: bool,
    partition: Partition,
    error: Callable[[FloatArray, FloatArray], float] = ece,
) -> FloatArray:
    """Return the sum of the absolute changes along the parts, for every bootstrap of the cases.

    By one rater of each case, drawn once or for each part, or by all of them.
    """
    size = len(cases.z)
    out = []
    for repeat in range(partition.repeats):
        random = np.random.default_rng([partition.seed, repeat])
        drawn = random.integers(0, size, size)
        said = cases.one_rater(random) if one else cases.mu
        path = []
        for end in partition.ends(size):
            if one and redrawn:
                said = cases.one_rater(random)
            part = drawn[:end] if growing else random.permutation(drawn)[:end]
            path.append(error(cases.z[part], said[part]))
        out.append(np.abs(np.diff(path)).sum())
    return np.array(out)


ERRORS = {"ECE": ece, "kdeECE": kde_of_both_classes}
SPREADS = (0.2, 0.5, 1.0)


def change_with_bins(cases: Cases, *, one: bool, share: float, repeats: int = 100) -> float:
    """Return by how much ECE changes on average where there is one bin more, from 5 to 30 bins.

    Of random parts of the cases, by one rater of each or by all.
    """
    random = np.random.default_rng(0)
    found = []
    for _ in range(repeats):
        part = random.permutation(len(cases.z))[: round(share * len(cases.z))]
        drawn = cases.one_rater(random)
        said = (drawn if one else cases.mu)[part]
        path = [ece(cases.z[part], said, bins) for bins in range(5, 31)]
        found.append(np.abs(np.diff(path)).mean())
    return float(np.mean(found))


def correlations(cases: Cases) -> FloatArray:
    """Return ρ = A / (A + B) of each bin of many cases: how alike two raters' errors are there.

    MR section 2.2 expects raters to hang together "in a similar way across bins".
    """
    place = np.minimum((cases.z * BINS).astype(int), BINS - 1)
    found = []
    for number in np.flatnonzero(np.bincount(place) >= FEW_CASES):
        own = place == number
        a, b = agreement(cases.z[own], cases.mu[own], cases.raters[own].astype(np.int64))
        found.append(a / (a + b) if a + b else 0.0)
    return np.array(found)


def _rows(cases: Cases, name: str, errors: Sequence[str]) -> Iterator[str]:
    raters = cases.raters.astype(np.int64)
    expected = math.sqrt(effective_raters(*agreement(cases.z, cases.mu, raters), raters))
    bounds = (f"{math.sqrt(cases.raters.mean()):.2f}", f"{expected:.2f}")
    partition = Partition(repeats=100)
    for error in errors:
        for reading, (redrawn, growing) in READINGS.items():
            sr, mr = (
                variations(cases, one=one, redrawn=redrawn, growing=growing,
                           partition=partition, error=ERRORS[error])
                for one in (True, False)
            )  # fmt: skip
            sums = (f"{v.mean():.2f} ± {v.std():.2f}" for v in (sr, mr))
            ratio = f"{sr.mean() / mr.mean():.2f}"
            yield table_row((name, error, reading, *sums, ratio, *bounds))


def _images(masks: NDArray[np.bool_]) -> None:
    """Print the sums of images that parts of their pixels are taken of: MR Table 2."""
    found = {reading: np.empty((len(masks), 2)) for reading in READINGS}
    for i, own in enumerate(masks):
        cases = Cases.of_image(own, drawn_by=i % len(own))
        for reading, (redrawn, growing) in READINGS.items():
            for k, one in enumerate((True, False)):
                found[reading][i, k] = variations(
                    cases, one=one, redrawn=redrawn, growing=growing, partition=Partition(repeats=5)
                ).mean()
    for reading, sums in found.items():
        (sr, mr), (about, around) = sums.mean(axis=0), sums.std(axis=0)
        cells = (f"{sr:.3f} ± {about:.3f}", f"{mr:.3f} ± {around:.3f}", f"{sr / mr:.1f}")
        print(table_row(("QUBIQ brain growth, pixels", "ECE", reading, *cells, "2.65", "")))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="DATA and NODULES")
    folders = parser.parse_args().folders
    head = ("cases", "error", "reading", "SR", "MR", "SR / MR", "√n", "√n_eff")
    print("\n".join(table_head(head)))
    for spread in SPREADS:
        print("\n".join(_rows(made_up(spread), f"made up, spread {spread:g}", tuple(ERRORS))))
    every = {
        name: Cases.of(models[0]) for name, models in (columns_of(*folders) if folders else ())
    }
    real = {name: cases for name, cases in every.items() if name in SHOWN}
    for name, cases in real.items():
        print("\n".join(_rows(cases, name, ("ECE",))))
    if folders and (folders[0] / "qubiq_brain_growth.npz").is_file():
        with np.load(folders[0] / "qubiq_brain_growth.npz", allow_pickle=False) as stored:
            _images(stored["masks"][:IMAGES] > 0)
    for name, cases in real.items():
        for share in (1.0, 0.2):
            one, several = (change_with_bins(cases, one=one, share=share) for one in (True, False))
            print(f"one bin more, {name}, {share:.0%} of the cases: SR {one:.4f}, MR {several:.4f}")
    for name in BY_BIN:
        if name in every:
            found = correlations(every[name])
            print(f"ρ by bin, {name}: {found.min():.2f} to {found.max():.2f} in {len(found)} bins")


if __name__ == "__main__":
    main()

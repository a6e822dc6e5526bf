"""Make the demonstration data of raterwise from the ratings of the LIDC-IDRI radiologists.

    python tools/make_lidc_demo.py RATINGS.csv [--out FILE.npz] [--leak-check]

One radiologist per nodule, chosen at random, describes it: size, and shape on the LIDC scales,
never malignancy. Gradient boosting with scikit-learn's default settings learns from such
descriptions the malignancy that *one other* radiologist gave, also chosen at random, as models
are trained where every case has one label. Predictions are out of fold, folds split by patient.

Why one reader and not the mean of all: somebody who sees spicules also answers "malignant", so a
description made by the readers who give the labels foretells their answers better than the image
could. `--leak-check` measures by how much.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import GroupKFold

from raterwise.datasets.lidc import CITATION, CLASS_NAMES, LICENCE, read_lidc_ratings

SEED = 20240229
FOLDS = 5
SHAPE = ("sphericity", "margin", "lobulation", "spiculation", "texture")
FEATURES = (
    "diameter_mm",
    "height_mm",
    "log_volume_mm3",
    "pixel_spacing_mm",
    "slice_thickness_mm",
    *SHAPE,
    "calcified",
)
ABSENT = 6  # the answer "no calcification" on the LIDC scale, whose other answers have no order
DEFAULT_OUT = Path(__file__).parents[1] / "src" / "raterwise" / "datasets" / "lidc_demo.npz"

Table = dict[str, NDArray[Any]]
IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Nodules:
    """The annotation table, with its rows gathered by nodule."""

    table: Table
    rows: list[IntArray]
    """For each nodule, the rows of the table that are about it, in the order of reader slots."""

    @classmethod
    def of(cls, table: Table) -> Nodules:
        """Return the nodules in the order patient, scan, nodule."""
        keys = ("rater_slot", "nodule", "scan_id", "patient_id")  # the last one sorts first
        order = np.lexsort([table[key] for key in keys])
        same = np.ones(len(order) - 1, bool)
        for key in keys[1:]:
            same &= table[key][order][1:] == table[key][order][:-1]
        return cls(table, np.split(order, np.flatnonzero(~same) + 1))

    @property
    def patients(self) -> NDArray[np.str_]:
        """The patient of each nodule."""
        return np.array([self.table["patient_id"][rows[0]] for rows in self.rows])

    def histograms(self, without: IntArray | None = None) -> IntArray:
        """Return the malignancy histograms (N, 5), leaving out one row per nodule if asked."""
        counts = np.zeros((len(self.rows), len(CLASS_NAMES)), np.int64)
        for case, rows in enumerate(self.rows):
            kept = rows if without is None else rows[rows != without[case]]
            np.add.at(counts[case], self.table["malignancy"][kept] - 1, 1)
        return counts


def features_of(table: Table, rows: IntArray) -> list[float]:
    """Return what the given annotations say about one nodule, averaged if there are several."""

    def mean(name: str) -> float:
        return float(table[name][rows].mean())

    diameter, thickness = mean("diameter_mm"), mean("slice_thickness")
    height = mean("n_slices") * thickness
    volume = math.pi / 6 * diameter**2 * height  # an ellipsoid
    size = [diameter, height, math.log(volume), mean("pixel_spacing"), thickness]
    calcified = float((table["calcification"][rows] != ABSENT).mean())
    return [round(x, 6) for x in (*size, *(mean(name) for name in SHAPE), calcified)]


def choose_readers(nodules: Nodules, seed: int) -> tuple[IntArray, IntArray]:
    """Return the describing and the labelling row of each nodule, two different ones.

    The labelling row is -1 where a nodule has one reader only.
    """
    rng = np.random.default_rng(seed)
    describing, labelling = [], []
    for rows in nodules.rows:
        shuffled = rng.permutation(rows)
        describing.append(shuffled[0])
        labelling.append(shuffled[1] if len(rows) > 1 else -1)
    return np.array(describing), np.array(labelling)


def predict_out_of_fold(
    features: FloatArray, targets: IntArray, patients: NDArray[np.str_]
) -> tuple[FloatArray, IntArray]:
    """Return each nodule's class probabilities by a model that never saw its patient; the folds.

    Nodules with target -1 are predicted, not learnt from.
    """
    probs = np.zeros((len(features), len(CLASS_NAMES)))
    folds = np.full(len(features), -1)
    for fold, (rest, held_out) in enumerate(GroupKFold(FOLDS).split(features, groups=patients)):
        learnt = rest[targets[rest] >= 0]
        model = GradientBoostingClassifier(random_state=SEED)
        model.fit(features[learnt], targets[learnt])
        probs[held_out] = model.predict_proba(features[held_out])
        folds[held_out] = fold
    return probs, folds


def as_millionths(probs: FloatArray) -> NDArray[np.int32]:
    """Return `probs` in whole millionths whose rows sum to exactly one million.

    Rounded down, and what is then missing goes to the classes that lost most, one millionth each.
    """
    exact = probs * 1e6
    whole = np.floor(exact).astype(np.int32)
    missing = 1_000_000 - whole.sum(axis=1)
    rank = np.argsort(np.argsort(-(exact - whole), axis=1, kind="stable"), axis=1)
    whole += rank < missing[:, None]
    if whole.min() < 1:
        raise ValueError("a probability rounds to 0, which would make the log-loss infinite")
    return whole


def build(table: Table, seed: int = SEED) -> Table:
    """Return the arrays of the demonstration file."""
    nodules = Nodules.of(table)
    describing, labelling = choose_readers(nodules, seed)
    features = np.array([features_of(table, np.array([row])) for row in describing])
    targets = np.where(labelling >= 0, table["malignancy"][labelling] - 1, -1)
    probs, folds = predict_out_of_fold(features, targets, nodules.patients)
    rows = np.concatenate(nodules.rows)
    first = np.array([rows[0] for rows in nodules.rows])
    lengths = [len(rows) for rows in nodules.rows]
    numbers = [int(patient.removeprefix("LIDC-IDRI-")) for patient in nodules.patients]
    return {
        "patient": np.array(numbers, np.int16),
        "scan": table["scan_id"][first].astype(np.int16),
        "nodule": table["nodule"][first].astype(np.int8),
        "fold": folds.astype(np.int8),
        "probs_millionths": as_millionths(probs),
        "features": features,
        "rating_case": np.repeat(np.arange(len(first)), lengths).astype(np.int16),
        "rating_reader": table["rater_slot"][rows].astype(np.int8),
        "rating_class": (table["malignancy"][rows] - 1).astype(np.int8),
        "rating_is_describing_reader": np.isin(rows, describing),
        "feature_names": np.array(FEATURES),
        "class_names": np.array(CLASS_NAMES),
        "citation": np.array(CITATION),
        "licence": np.array(LICENCE),
    }


def write(arrays: Table, path: Path) -> None:
    """Write the arrays under a temporary name and rename the file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def facts(probs: FloatArray, counts: IntArray) -> str:
    """Say how good and how sure the predictions are, on the nodules that `counts` rates."""
    rated = counts.sum(axis=1) > 0
    probs, counts = probs[rated], counts[rated]
    readers = counts.sum(axis=1)
    chosen = probs.argmax(axis=1)
    agreeing = np.take_along_axis(counts, chosen[:, None], axis=1)[:, 0]
    text = (
        f"{len(probs)} nodules, {readers.sum()} ratings; "
        f"predicted class is the majority's: {np.mean(chosen == counts.argmax(axis=1)):.4f}; "
        f"mean confidence {np.average(probs.max(axis=1), weights=readers):.4f}, "
        f"readers who agree {agreeing.sum() / readers.sum():.4f} (both per rating), "
        f"{np.mean(agreeing / readers):.4f} per nodule"
    )
    if readers.max() == 1:
        return text
    loss, error = epistemic_loss(probs, counts)
    return (
        f"{text}; epistemic loss {loss:.4f} (standard error {error:.4f}, nodules with 2+ ratings)"
    )


def epistemic_loss(probs: FloatArray, counts: IntArray) -> tuple[float, float]:
    """Return the unbiased estimate (LH eq 9-10) and its standard error over the nodules."""
    several = counts.sum(axis=1) > 1
    readers = counts[several].sum(axis=1, keepdims=True)
    mean = counts[several] / readers
    within = mean * (1 - mean) / (readers - 1)
    losses = ((probs[several] - mean) ** 2 - within).sum(axis=1)
    return float(losses.mean()), float(losses.std(ddof=1) / math.sqrt(len(losses)))


def leak_check(table: Table, arrays: Table, seed: int = SEED) -> str:
    """Measure what a description foretells about its own author's answer, and what it costs."""
    nodules = Nodules.of(table)
    describing, labelling = choose_readers(nodules, seed)
    others = nodules.histograms(without=describing)
    shared = (others.sum(axis=1) > 0)[:, None]  # nodules with a second reader
    own, everybody = (nodules.histograms() - others) * shared, nodules.histograms() * shared
    taught_by_other = arrays["probs_millionths"] / 1e6
    own_answer = np.where(labelling >= 0, table["malignancy"][describing] - 1, -1)
    taught_by_own, _ = predict_out_of_fold(arrays["features"], own_answer, nodules.patients)
    averaged = np.array([features_of(table, rows) for rows in nodules.rows])
    other_answer = np.where(labelling >= 0, table["malignancy"][labelling] - 1, -1)
    from_averages, _ = predict_out_of_fold(averaged, other_answer, nodules.patients)
    base_rates = np.tile(others.sum(axis=0) / others.sum(), (len(others), 1))
    lines = [
        ("the model, describing readers", taught_by_other, own),
        ("the model, every reader", taught_by_other, nodules.histograms()),
        ("taught by the describing reader, describing readers", taught_by_own, own),
        ("taught by the describing reader, other readers", taught_by_own, others),
        ("descriptions averaged over every reader, every reader", from_averages, everybody),
        ("base rates only, other readers", base_rates, others),
    ]
    return "\n".join(f"{name}: {facts(probs, counts)}" for name, probs, counts in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the file, and say how good the model is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ratings", type=Path, help="the LIDC annotation table (CSV)")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--leak-check", action="store_true", help="compare ways of describing")
    options = parser.parse_args(arguments)
    table = read_lidc_ratings(options.ratings)
    arrays = build(table)
    write(arrays, options.out)
    nodules = Nodules.of(table)
    others = nodules.histograms(without=choose_readers(nodules, SEED)[0])
    print(f"{options.out.name}: {options.out.stat().st_size} bytes")
    print(f"the model, other readers: {facts(arrays['probs_millionths'] / 1e6, others)}")
    if options.leak_check:
        print(leak_check(table, arrays))


if __name__ == "__main__":
    main()

"""Calibration and its stability in segmented images, by one rater and by all (MR Table 2).

Every test image that at least two raters outlined is judged by one of them, drawn at random (SR),
and by all of them (MR): ECE, RECE-G and KDE-ECE of the foreground's probability (MR eq 5), and the
total variation of each as the image has fewer pixels (MR eq 6). Images are judged whole, and in
the band around the raters' outlines, where they differ.

The values of an image are averaged over the networks; intervals come from resampling patients.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.kept import fingerprint, kept, write_json
from experiments.multi_rater.data import (
    STUDIES,
    IntArray,
    Training,
    kept_predictions,
    one_rater,
    read_study,
    units_of,
)
from experiments.multi_rater.tables import as_markdown
from raterwise.datasets.masks import OutlinedImages
from raterwise.errors import InvalidInputError
from raterwise.inference.draws import multiplicities
from raterwise.inference.intervals import percentile_interval
from raterwise.inference.settings import Progress
from raterwise.io.files import write_text_atomically
from raterwise.segmentation.bands import boundary_band
from raterwise.segmentation.cases import Case
from raterwise.segmentation.evaluation import evaluate
from raterwise.segmentation.variation import total_variation

__all__ = ["Judging", "judge", "judged_network", "mean_over_patients", "summary_of"]

FloatArray = NDArray[np.float64]
Probabilities = Mapping[int, NDArray[np.float32]]
"""By the row of an image."""

VERSION = 1
METRICS = ("ece", "robust_ece", "kde_ece")
REGIONS = ("image", "band")
RATERS = ("SR", "MR")
"""One rater of each image, and all of them."""


@dataclass(frozen=True)
class Judging:
    """What the numbers depend on, besides the predictions."""

    seed: int = 0
    """Of the single rater, of the subsets of pixels and of the resamples."""
    resamples: int = 1000
    level: float = 0.95
    band: float = 5.0
    """In pixels, on either side of an outline."""
    repeats: int = 10
    """Bootstraps of each image's pixels, for each network."""
    kernel_images: int = 30
    """About how many images the total variation of KDE-ECE is found for, of the first network."""
    kernel_repeats: int = 2


def judge(
    data: str | PathLike[str],
    out: str | PathLike[str],
    training: Training | None = None,
    settings: Judging | None = None,
    studies: Sequence[str] = tuple(STUDIES),
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Judge the networks whose predictions are in `out`, and write tables.md and summary.json.

    KDE-ECE, which takes most of the time, is judged for the first network alone. The values of
    every image stay in one JSON file per network, from which a run goes on that was stopped.
    """
    training, settings = training or Training(), settings or Judging()
    folder = Path(out)
    found = []
    for s, key in enumerate(studies):
        images = read_study(data, key)
        networks = []
        present = _present(key, folder, training)
        for i, network in enumerate(present):
            if progress:
                part = (s + i / len(present)) / len(studies)
                progress(f"judging {key}, network {network}", part)
            metrics = METRICS if i == 0 else METRICS[:-1]
            values = _values_of(images, key, network, folder, training)
            networks.append(_judged_once(images, values, folder, settings, key, network, metrics))
        found.append(summary_of(images, key, networks, settings))
    if progress:
        progress("judged", 1.0)
    write_json(folder / "summary.json", found)
    write_text_atomically(folder / "tables.md", as_markdown(found))
    return found


def _present(key: str, folder: Path, training: Training) -> list[int]:
    """Return the networks that have predicted every test image; the first where none has.

    Training may have been stopped before the last network; those that are whole can be judged.
    """
    units = list(units_of([key], training))
    missing = {unit.network for unit in units if not (folder / f"{unit.name}.npz").is_file()}
    return [n for n in range(training.networks) if n not in missing] or [0]


def _values_of(
    images: OutlinedImages, key: str, network: int, folder: Path, training: Training
) -> Probabilities:
    """Return what a network says of the test images of all splits."""
    probabilities: dict[int, NDArray[np.float32]] = {}
    for unit in units_of([key], training):
        if unit.network == network:
            stored = kept_predictions(images, unit, folder, training)
            values = stored["probabilities"].astype(np.float32)
            probabilities.update(zip(stored["rows"].tolist(), values, strict=True))
    return probabilities


def _judged_once(
    images: OutlinedImages,
    probabilities: Probabilities,
    folder: Path,
    settings: Judging,
    key: str,
    network: int,
    metrics: Sequence[str],
) -> dict[str, Any]:
    """Return the values of every image, from their file where it was made of the same things."""
    own = asdict(settings)
    made_of = {
        "version": VERSION,
        "data": fingerprint(np.packbits(images.masks), images.num_raters),
        "predictions": fingerprint(*(probabilities[row] for row in sorted(probabilities))),
        "metrics": list(metrics),
        **{name: own[name] for name in own if name not in ("resamples", "level")},
    }
    file = folder / f"judged-{key}-network{network}.json"
    return kept(
        file, made_of, lambda: judged_network(images, probabilities, network, settings, metrics)
    )


# One network -------------------------------------------------------------------------------------


def judged_network(
    images: OutlinedImages,
    probabilities: Probabilities,
    network: int,
    settings: Judging,
    metrics: Sequence[str] = METRICS,
) -> dict[str, Any]:
    """Return the values of every image that at least two raters outlined.

    The number of the network decides which rater is the single one.
    """
    rows = np.array([row for row in sorted(probabilities) if images.num_raters[row] > 1], np.int64)
    if not len(rows):
        raise InvalidInputError(f"{images.name}: no test image was outlined by two raters")
    single = one_rater(images, settings.seed, 1 + network)
    values: dict[str, Any] = {}
    variation: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for region in REGIONS:
        for name in RATERS:
            raters = single if name == "SR" else None
            cases = _cases(images, probabilities, rows, raters, region, settings)
            for metric in metrics:
                begun = time.perf_counter()
                found = evaluate(cases, metric, question="positive", resamples=0)
                levels = [v if np.isfinite(v) else None for v in found.per_case[metric].tolist()]
                values.setdefault(region, {}).setdefault(metric, {})[name] = levels
                middle = time.perf_counter()
                steps = _variation(cases, metric, settings)
                variation.setdefault(region, {}).setdefault(metric, {})[name] = steps
                ended = time.perf_counter()
                for what, took in ((metric, middle - begun), (f"tv {metric}", ended - middle)):
                    seconds[what] = seconds.get(what, 0.0) + took
    return {
        "rows": rows.tolist(),
        "dice": [_dice(probabilities[row], images.masks_of(row)) for row in rows.tolist()],
        "values": values,
        "variation": variation,
        "seconds": seconds,
    }


def _cases(
    images: OutlinedImages,
    probabilities: Probabilities,
    rows: IntArray,
    raters: IntArray | None,
    region: str,
    settings: Judging,
) -> list[Case]:
    """Return the images with the masks of one rater each, or of all, over the same pixels."""
    cases = []
    for row in rows.tolist():
        masks = images.masks_of(row)
        band = None
        if region == "band":  # of all raters' outlines, whoever judges
            band = boundary_band(list(masks), settings.band, (1.0, 1.0))
        judges = masks if raters is None else masks[raters[row] : raters[row] + 1]
        name = images.names[row]
        cases.append(Case(probabilities[row], judges, region=band, name=name, layout="labels"))
    return cases


def _variation(cases: list[Case], metric: str, settings: Judging) -> list[float | None]:
    """Return the total variation of each image; None for those that were left out."""
    kernel = metric == "kde_ece"
    step = max(1, len(cases) // settings.kernel_images) if kernel else 1
    found = total_variation(
        cases[::step],
        metric,
        repeats=settings.kernel_repeats if kernel else settings.repeats,
        seed=settings.seed,
        question="positive",
    )
    each: list[float | None] = [None] * len(cases)
    each[::step] = found.per_case.tolist()
    return each


def _dice(probabilities: NDArray[np.float32], masks: NDArray[np.uint8]) -> float:
    """Return the mean over raters of 2|A ∩ B| / (|A| + |B|); 1 where both are empty."""
    said = probabilities > 0.5
    both = (masks & said).sum(axis=(1, 2))
    sizes = masks.sum(axis=(1, 2)) + said.sum()
    return float(np.where(sizes > 0, 2 * both / np.maximum(sizes, 1), 1.0).mean())


# All networks ------------------------------------------------------------------------------------


def summary_of(
    images: OutlinedImages, key: str, networks: Sequence[Mapping[str, Any]], settings: Judging
) -> dict[str, Any]:
    """Return means over images with intervals over patients, SR and MR and what is between."""
    rows = np.array(networks[0]["rows"])
    patients, raters = images.patients[rows], images.num_raters[rows]

    def compared(part: str, region: str, metric: str, chosen: Any = slice(None)) -> dict[str, Any]:
        one, several = (_averaged(networks, part, region, metric, who) for who in RATERS)
        found = _compared(one[chosen], several[chosen], patients[chosen], settings)
        if part == "variation":
            found["relative"] = {
                who: _relative(steps, _averaged(networks, "values", region, metric, who))
                for who, steps in zip(RATERS, (one, several), strict=True)
            }
        return found

    def table(part: str) -> dict[str, Any]:
        return {r: {m: compared(part, r, m) for m in METRICS} for r in REGIONS}

    dice = np.mean([network["dice"] for network in networks], axis=0)
    return {
        "study": key,
        "data": images.name,
        "images": len(rows),
        "patients": len(np.unique(patients)),
        "raters": float(raters.mean()),
        "networks": len(networks),
        "settings": asdict(settings),
        "dice": mean_over_patients(dice, patients, settings),
        "dice_by_network": [float(np.mean(network["dice"])) for network in networks],
        "values": table("values"),
        "variation": table("variation"),
        "by_raters": {
            str(n): {
                m: compared("variation", "image", m, raters == n) for m in ("ece", "robust_ece")
            }
            for n in np.unique(raters).tolist()
        },
        "seconds": {
            what: sum(network["seconds"].get(what, 0.0) for network in networks)
            for what in networks[0]["seconds"]
        },
        "kernel_seconds_per_image": networks[0]["seconds"]["kde_ece"] / (4 * len(rows)),
    }


def _averaged(
    networks: Sequence[Mapping[str, Any]], part: str, region: str, metric: str, raters: str
) -> FloatArray:
    """Return the mean over the networks that judged it of each image; NaN where none did."""
    each = [n[part][region][metric][raters] for n in networks if metric in n[part][region]]
    return np.asarray(np.mean(np.array(each, np.float64), axis=0))


def _relative(variation: FloatArray, values: FloatArray) -> float | None:
    """Return the mean total variation as a fraction of the mean value, of the same images."""
    known = np.isfinite(variation) & np.isfinite(values)
    level = values[known].sum()
    return float(variation[known].sum() / level) if level else None


def _compared(
    single: FloatArray, several: FloatArray, patients: NDArray[Any], settings: Judging
) -> dict[str, Any]:
    """Return what one rater gives, what several give, and the paired difference and ratio."""
    known = np.isfinite(single) & np.isfinite(several)
    single, several, patients = single[known], several[known], patients[known]
    return {
        "SR": mean_over_patients(single, patients, settings),
        "MR": mean_over_patients(several, patients, settings),
        "difference": mean_over_patients(single - several, patients, settings),
        "ratio": mean_over_patients(single, patients, settings, several),
        "lower_share": float((several < single).mean()),
    }


def mean_over_patients(
    values: FloatArray,
    patients: NDArray[Any],
    settings: Judging,
    over: FloatArray | None = None,
) -> dict[str, float | int | None]:
    """Return the mean over images, or its ratio to the mean of `over`, resampling patients.

    `std` is over images, as in the MR paper's tables.
    """
    weights = np.ones(len(values)) if over is None else over
    names, patient = np.unique(patients, return_inverse=True)
    top, bottom = np.bincount(patient, values), np.bincount(patient, weights)
    found: dict[str, float | int | None] = {
        "mean": float(top.sum() / bottom.sum()) if bottom.sum() else None,
        "std": float(values.std(ddof=1)) if over is None and len(values) > 1 else None,
        "low": None,
        "high": None,
        "images": len(values),
    }
    if settings.resamples and len(names) > 1 and bottom.sum():
        times = multiplicities(len(names), settings.resamples, settings.seed)
        with np.errstate(invalid="ignore", divide="ignore"):
            replicates = (times @ top) / (times @ bottom)
        ends = percentile_interval(replicates, settings.level, units=len(names))
        found |= {"low": ends.low, "high": ends.high}
    return found

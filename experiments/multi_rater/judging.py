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

from experiments.kept import fingerprint, is_there, json_files, kept, read_json, write_json
from experiments.multi_rater.data import (
    STUDIES,
    IntArray,
    Training,
    kept_predictions,
    one_rater,
    read_study,
    units_of,
)
from experiments.multi_rater.tables import as_markdown, beside_the_paper
from raterwise.datasets.mask_arrays import OutlinedImages
from raterwise.densities.bandwidth import select_bandwidth
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

VERSION = 2
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
    repeats: int = 34
    """Bootstraps of each image's pixels, for each network: 102 with three networks."""


def judge(
    data: str | PathLike[str] | None,
    out: str | PathLike[str],
    training: Training | None = None,
    settings: Judging | None = None,
    studies: Sequence[str] = tuple(STUDIES),
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Judge the networks whose predictions are in `out`, and write tables.md and summary.json.

    The values of every image stay in one JSON file per network and metric, from which a run goes
    on that was stopped. Without `data`, those files make the tables.
    """
    training, settings = training or Training(), settings or Judging()
    folder = Path(out)
    found = []
    for s, key in enumerate(studies):
        images = None if data is None else read_study(data, key)
        networks = []
        present = _present(key, folder, training, "" if images is not None else "judged")
        for i, network in enumerate(present):
            if progress:
                part = (s + i / len(present)) / len(studies)
                progress(f"judging {key}, network {network}", part)
            if images is None:
                networks.append(_merged(_judged_before(folder, key, network)))
            else:
                values = _values_of(images, key, network, folder, training)
                parts = [
                    _judged_once(images, values, folder, settings, key, network, metric)
                    for metric in METRICS
                ]
                networks.append(_merged(parts))
        found.append(summary_of(key, networks, settings))
    if progress:
        progress("judged", 1.0)
    write_json(folder / "summary.json", found)
    text = f"### MR Table 2\n\n{beside_the_paper(found)}\n\n{as_markdown(found)}"
    write_text_atomically(folder / "tables.md", text)
    return found


def _present(key: str, folder: Path, training: Training, judged: str = "") -> list[int]:
    """Return the networks that have predicted every test image; the first where none has.

    Training may have been stopped before the last network; those that are whole can be judged.
    With `judged`, those that were judged before.
    """
    if judged:
        every = range(training.networks)
        return [n for n in every if any(json_files(folder, _judged_file(key, n, "*")))] or [0]
    units = list(units_of([key], training))
    missing = {unit.network for unit in units if not (folder / f"{unit.name}.npz").is_file()}
    return [n for n in range(training.networks) if n not in missing] or [0]


def _judged_file(key: str, network: int, metric: str) -> str:
    return f"judged-{key}-network{network}-{metric}.json"


def _judged_before(folder: Path, key: str, network: int) -> list[dict[str, Any]]:
    """Return what was judged of a network, metric by metric."""
    files = [folder / _judged_file(key, network, metric) for metric in METRICS]
    found = [read_json(file) for file in files if is_there(file)]
    if not found:
        raise InvalidInputError(f"out: {folder} must hold {files[0].name}; judge with data first")
    return found


def _merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values of all metrics of a network as one."""
    merged: dict[str, Any] = {**parts[0]}
    for name in ("values", "variation"):
        merged[name] = {
            region: {metric: both for part in parts for metric, both in part[name][region].items()}
            for region in REGIONS
        }
    merged["repeats"] = {p["made_of"]["metric"]: p["made_of"]["repeats"] for p in parts}
    merged["seconds"] = {what: took for part in parts for what, took in part["seconds"].items()}
    return merged


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
    metric: str,
) -> dict[str, Any]:
    """Return the values of every image, from their file where it was made of the same things."""
    made_of = {
        "version": VERSION,
        "data": fingerprint(np.packbits(images.masks), images.num_raters),
        "predictions": fingerprint(*(probabilities[row] for row in sorted(probabilities))),
        "metric": metric,
        "seed": settings.seed,
        "band": settings.band,
        "repeats": settings.repeats,
    }
    file = folder / _judged_file(key, network, metric)
    return kept(
        file, made_of, lambda: judged_network(images, probabilities, network, settings, (metric,))
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
        whole = _cases(images, probabilities, rows, None, region, settings)
        alone = _cases(images, probabilities, rows, single, region, settings)
        # Of an image's probabilities alone: the same for one rater and for all.
        widths = [_bandwidth(case) if "kde_ece" in metrics else None for case in whole]
        for metric in metrics:
            begun = time.process_time()
            for name, cases in zip(RATERS, (alone, whole), strict=True):
                each = [
                    _measured(case, metric, settings, width)
                    for case, width in zip(cases, widths, strict=True)
                ]
                values.setdefault(region, {}).setdefault(metric, {})[name] = [v for v, _ in each]
                variation.setdefault(region, {}).setdefault(metric, {})[name] = [t for _, t in each]
            took = time.process_time() - begun
            seconds[metric] = round(seconds.get(metric, 0.0) + took, 1)
    return {
        "name": images.name,
        "rows": rows.tolist(),
        "patients": images.patients[rows].tolist(),
        "raters": images.num_raters[rows].tolist(),
        "dice": [_short(_dice(probabilities[row], images.masks_of(row))) for row in rows.tolist()],
        "values": values,
        "variation": variation,
        "repeats": dict.fromkeys(metrics, settings.repeats),
        "seconds": seconds,
    }


def _measured(
    case: Case, metric: str, settings: Judging, width: float | None
) -> tuple[float | None, float | None]:
    """Return a metric of an image and its total variation; None where it is undefined."""
    own = {metric: {"bandwidth": width} if metric == "kde_ece" else {}}
    found = evaluate([case], metric, question="positive", resamples=0, options=own)
    steps = total_variation(
        [case],
        metric,
        repeats=settings.repeats,
        seed=settings.seed,
        question="positive",
        options=own,
    )
    return _short(float(found.per_case[metric][0])), _short(steps.mean)


def _bandwidth(case: Case) -> float:
    """Return the bandwidth that the foreground's probabilities choose."""
    probs = np.asarray(case.probabilities, np.float64)
    chosen = probs if case.region is None else probs[np.asarray(case.region, bool)]
    score, times = np.unique(chosen, return_counts=True)
    return float(select_bandwidth(score, times.astype(np.float64)))


def _short(value: float) -> float | None:
    """Return a number with seven digits, or None where it is none."""
    return float(f"{value:.7g}") if np.isfinite(value) else None


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


def _dice(probabilities: NDArray[np.float32], masks: NDArray[np.uint8]) -> float:
    """Return the mean over raters of 2|A ∩ B| / (|A| + |B|); 1 where both are empty."""
    said = probabilities > 0.5
    both = (masks & said).sum(axis=(1, 2))
    sizes = masks.sum(axis=(1, 2)) + said.sum()
    return float(np.where(sizes > 0, 2 * both / np.maximum(sizes, 1), 1.0).mean())


# All networks ------------------------------------------------------------------------------------


def summary_of(
    key: str, networks: Sequence[Mapping[str, Any]], settings: Judging
) -> dict[str, Any]:
    """Return means over images with intervals over patients, SR and MR and what is between."""
    patients, raters = (np.array(networks[0][name]) for name in ("patients", "raters"))
    judged = [m for m in METRICS if any(m in network["values"]["image"] for network in networks)]

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
        return {r: {m: compared(part, r, m) for m in judged} for r in REGIONS}

    dice = np.mean([network["dice"] for network in networks], axis=0)
    return {
        "study": key,
        "data": networks[0]["name"],
        "images": len(patients),
        "patients": len(np.unique(patients)),
        "raters": float(raters.mean()),
        "networks": len(networks),
        "settings": asdict(settings),
        "bootstraps": {m: [n["repeats"][m] for n in networks if m in n["repeats"]] for m in judged},
        "dice": mean_over_patients(dice, patients, settings),
        "dice_by_network": [float(np.mean(network["dice"])) for network in networks],
        "values": table("values"),
        "variation": table("variation"),
        "by_raters": {
            str(n): {m: compared("variation", "image", m, raters == n) for m in judged}
            for n in np.unique(raters).tolist()
        },
        "seconds": {m: sum(network["seconds"].get(m, 0.0) for network in networks) for m in judged},
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
        low, high = percentile_interval(replicates, settings.level, units=len(names))
        found |= {"low": low, "high": high}
    return found

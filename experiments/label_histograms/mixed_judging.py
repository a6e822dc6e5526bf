"""LH Tables 1, 2, 4 and 5 from the kept outputs of the networks: on a CPU, without PyTorch.

Calibrators (`calibrators`) are fitted to validation cases with 2 or 5 labels each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.kept import (
    fingerprint,
    is_there,
    json_files,
    kept,
    kept_arrays,
    pack_json,
    read_json,
    write_json,
)
from experiments.label_histograms.calibrators import (
    SCALINGS,
    Pair,
    calibrated,
    drawn,
    fit_all,
    restored_pair,
    within_reach,
)
from experiments.label_histograms.mixed_data import (
    VALIDATION_LABELS,
    TestLabels,
    test_labels,
    validation_labels,
)
from experiments.label_histograms.mixed_outputs import Outputs, load_outputs, output_file
from experiments.label_histograms.mixed_scores import case_losses, redrawn, scored
from experiments.label_histograms.mixed_tables import as_markdown
from raterwise.beliefs import Belief, EnsembleBelief, PointBelief
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Progress
from raterwise.io.files import write_bytes_atomically, write_text_atomically
from raterwise.labels import Labels

__all__ = ["METHODS", "SCALINGS", "Judging", "judge", "keep_small", "kept_labels"]

VERSION = 1
ROWS_VERSION = {"raw": 2, "mcdo": 2, "tta": 3}
"""Of the rows alone, by method: a metric more needs no calibrator fitted again."""
METHODS = ("raw", "mcdo", "tta")
NEEDS = {"raw": "pooled_test", "mcdo": "pooled_test", "tta": "hidden_tta"}
"""What must be kept of a network for a method to be judged."""
Fitted = dict[int, dict[str, Pair]]
"""Scaling and α-calibrations, by number of labels and scaling."""
PAIRS = {
    "unbiasedness": ("epistemic_loss", "epistemic_loss_true"),
    "gain": ("posterior", "prior"),
    "gain_sum": ("posterior_sum", "prior"),
    "product_over_sum": ("posterior", "posterior_sum"),
}
"""Differences of two losses of the same cases: the first minus the second."""


@dataclass(frozen=True)
class Judging:
    """What the numbers depend on, besides the networks and the labels."""

    samples: int = 20
    """Draws of Monte-Carlo dropout."""
    fit_samples: int = 5
    """Draws of the validation cases that its α is fitted to."""
    redraws: int = 100
    """New labels of the test cases, drawn from the true probabilities."""
    seed: int = 0
    """Of those draws."""


@dataclass(frozen=True, eq=False)
class StudyLabels:
    """The labels of one data set that calibrators and tables need."""

    test: TestLabels
    validation: dict[int, NDArray[np.int64]]
    """The histograms of the validation cases, by the number of labels of each."""

    @cached_property
    def digest(self) -> str:
        """What tells these labels from others."""
        test = (self.test.counts, self.test.expert, self.test.truth)
        return fingerprint(*test, *self.validation.values())

    def labels(self, number: int, cases: int) -> Labels:
        """Return the labels of the first validation cases, of which each has so many."""
        return Labels.from_counts(self.validation[number][:cases])


def judge(
    data: str | PathLike[str] | None,
    out: str | PathLike[str],
    names: list[str],
    settings: Judging,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Judge the networks that `out` holds; write summary.json and tables.md there.

    The labels are read from `data`, or where that is None from what an earlier run kept in `out`.
    """
    folder = Path(out)
    found = []
    for name in names:
        networks = load_outputs(folder, name)
        if not networks:
            continue
        labels = kept_labels(data, folder, name)
        for i, outputs in enumerate(networks):
            if progress:
                progress(f"{name}, seed {outputs.seed}", i / len(networks))
            found.append(_network(outputs, labels, folder, settings))
    if not found:
        raise InvalidInputError(f"out: {folder} must hold networks of {', '.join(names)}; none do")
    write_json(folder / "summary.json", found)
    write_text_atomically(folder / "tables.md", as_markdown(found))
    if progress:
        progress("done", 1.0)
    return found


def kept_labels(data: str | PathLike[str] | None, folder: Path, name: str) -> StudyLabels:
    """Return the labels of a data set, and keep them in `folder` (the authors' licence is MIT)."""
    file = folder / f"labels-{name}.npz"
    if data is None and not file.is_file():
        raise InvalidInputError(f"data: must be given, as {file.name} is not kept in {folder}")
    if data is not None:
        file.unlink(missing_ok=True)  # what is in the data counts, whatever was kept

    def make() -> dict[str, NDArray[Any]]:
        assert data is not None  # said above
        test, validation = test_labels(data, name), validation_labels(data, name)
        return {
            **{"test": test.counts.astype(np.uint8), "expert": test.expert.astype(np.uint8)},
            **{"classes": test.classes.astype(np.uint8), "ratio": test.ratio},
            **{f"valid_{n}": part.counts.astype(np.uint8) for n, part in validation.items()},
        }

    arrays = kept_arrays(file, {"version": VERSION, "data": name}, make)
    counts, expert, classes = (arrays[k].astype(np.int64) for k in ("test", "expert", "classes"))
    validation = {n: arrays[f"valid_{n}"].astype(np.int64) for n in VALIDATION_LABELS}
    return StudyLabels(TestLabels(counts, expert, classes, arrays["ratio"]), validation)


def _network(
    outputs: Outputs, labels: StudyLabels, folder: Path, settings: Judging
) -> dict[str, Any]:
    """Return every row of the tables for one network."""
    fitted = _calibrators(outputs, labels, folder, settings)
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {}
    for method in METHODS:
        file = folder / f"{outputs.data}-{outputs.seed}-{method}.json"
        if outputs.has(NEEDS[method]):
            made_of = {
                **{"version": ROWS_VERSION[method], "labels": labels.digest},
                "outputs": outputs.digest(NEEDS[method]),
                "settings": asdict(settings),
            }
            make = partial(_rows, method, outputs, labels, fitted, settings)
            found |= kept(file, made_of, make)
        elif is_there(file):
            # Draws that are too many to keep: what was found while they were there.
            found |= read_json(file)
        else:
            continue
        rows += found["rows"]
    about = {"data": outputs.data, "seed": outputs.seed, "fitted": _said_of(fitted)}
    return {**about, "redrawn": found["redrawn"], "rows": rows}


def _calibrators(outputs: Outputs, labels: StudyLabels, folder: Path, settings: Judging) -> Fitted:
    """Return the calibrators of a network by number of labels and scaling, fitted once."""
    file = folder / f"{outputs.data}-{outputs.seed}-calibrators.json"
    if outputs.has("pooled_valid"):
        made_of = {
            **{"version": VERSION, "labels": labels.digest},
            **{"outputs": outputs.digest("pooled_valid"), "settings": asdict(settings)},
        }
        stored = kept(file, made_of, partial(_fitted, outputs, labels, settings))
    else:
        stored = read_json(file)
    return {
        int(number): {name: restored_pair(name, pair) for name, pair in by_scaling.items()}
        for number, by_scaling in stored["fitted"].items()
    }


def _fitted(outputs: Outputs, labels: StudyLabels, settings: Judging) -> dict[str, Any]:
    """Return every calibrator of one network, as plain numbers."""
    cases = len(outputs.arrays["pooled_valid"])
    samples, seed = settings.fit_samples, settings.seed
    found = {
        str(number): fit_all(outputs, labels.labels(number, cases), samples, seed)
        for number in VALIDATION_LABELS
    }
    return {"fitted": found}


def _rows(
    method: str, outputs: Outputs, labels: StudyLabels, fitted: Fitted, settings: Judging
) -> dict[str, Any]:
    """Return the rows of one method: four scalings, with and without α, 2 and 5 labels."""
    logits, features = drawn(method, outputs, settings.samples, settings.seed)
    if method == "tta" and outputs.has("pooled_valid"):
        features = within_reach(features, outputs.plain("valid")[1])
    test = labels.test.first(logits.shape[-2])
    rows = []
    for number, by_scaling in fitted.items():
        for name, (scaling, alphas) in by_scaling.items():
            probs = calibrated(scaling, logits)
            plain = PointBelief(probs) if probs.ndim == 2 else EnsembleBelief(probs)
            pair = _judged_pair(plain, alphas[method].predict(features, probs=probs), test)
            key = {"method": method, "scaling": name, "labels": number}
            rows += [{**key, "alpha": i == 1, **row} for i, row in enumerate(pair)]
    found: dict[str, Any] = {"rows": rows}
    if method == "raw":
        plain = PointBelief(calibrated(None, logits))
        found["redrawn"] = redrawn(plain, test, settings.redraws, settings.seed)
    return found


def _judged_pair(plain: Belief, calibrated: Belief, test: TestLabels) -> list[dict[str, Any]]:
    """Return what comes of a belief without and with α."""
    rows = []
    before = None
    for belief in (plain, calibrated):
        losses = case_losses(belief, test)
        differences = dict(_differences(losses))
        if before is not None:
            differences["alpha"] = _mean_and_error(losses["disagreement_loss"] - before)
        before = losses["disagreement_loss"]
        rows.append({"values": scored(belief, test, losses), "differences": differences})
    return rows


def _differences(
    losses: dict[str, NDArray[np.float64]],
) -> Iterator[tuple[str, tuple[float, float]]]:
    for name, (first, second) in PAIRS.items():
        if first in losses and second in losses:
            yield name, _mean_and_error(losses[first] - losses[second])


def _mean_and_error(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return a mean over cases and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _said_of(fitted: Fitted) -> dict[str, Any]:
    """Return the temperatures, by number of labels."""
    return {str(n): {"temperature": pairs["ts"][0].temperature_} for n, pairs in fitted.items()}


def keep_small(out: str | PathLike[str], to: str | PathLike[str], names: list[str]) -> None:
    """Copy to a folder what the tables can be remade from, without what is large.

    Of wide networks the validation outputs are left out, as their calibrators are kept; of
    Mix-CIFAR-10 the channels and the draws, of which the rows of the tables are kept.
    """
    folder, place = Path(out), Path(to)
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        for outputs in load_outputs(folder, name):
            kept_arrays(output_file(place, name, outputs.seed), outputs.made_of, outputs.slim)
    for file in sorted(folder.glob("labels-*.npz")):
        write_bytes_atomically(place / file.name, file.read_bytes())
    for file in json_files(folder, "*.json"):
        if file.name != "summary.json":
            pack_json(file, place)

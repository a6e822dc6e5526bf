"""Models and raters of MR Table 1: CIFAR-10H, nodules of LIDC-IDRI, chest X-rays.

MHIST and CSAW-M, the paper's other two, could not be had.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.multi_rater.classification import METRICS, Column, IntArray
from raterwise.datasets import read_cifar10h

__all__ = ["columns_of"]

CIFAR10_MODELS = {
    "probs_vgg16_keras": "VGG16",
    "logits_resnet50_psr": "ResNet-50",
    "probs_lenet5_netcal": "LeNet-5",
}
"""The models agree with 93, 86 and 53 % of the raters' majorities."""
READERS = "cxr14_readers/all_findings_individual_readers.csv"
TASKS = ("malignancy", "texture")
GRADES = 5
FEW = 1000
LEAST_POSITIVES = 30
"""Labels of a finding, among those of all readers; rarer ones say little about stability."""


def columns_of(
    data: str | PathLike[str], nodules: str | PathLike[str] | None = None
) -> Iterator[tuple[str, list[Column]]]:
    """Yield the columns of the table, each with its models (or findings), as far as files go.

    `nodules` is a folder with the logits of `nodule_networks`.
    """
    folder = Path(data)
    outputs, people = folder / "cifar10_test_outputs.npz", folder / "cifar10h_counts.npy"
    if outputs.is_file() and people.is_file():
        counts = read_cifar10h(people)
        with np.load(outputs, allow_pickle=False) as stored:
            for key, name in CIFAR10_MODELS.items():
                probs = _probs(stored[key], key)
                yield f"CIFAR-10H, {name}", [Column(name, probs, counts)]
                # About as many as MHIST tests with.
                few = Column(name, probs[:FEW], counts[:FEW])
                yield f"CIFAR-10H, {name}, {FEW} images", [few]
    if nodules is not None and (folder / "lidc_nodules.npz").is_file():
        for task in TASKS:
            yield f"LIDC {task}", list(_nodules(folder / "lidc_nodules.npz", Path(nodules), task))
    chests = folder / "cxr14_chexnet_test.npz"
    if chests.is_file() and (folder / READERS).is_file():
        yield "CheXNet × radiologists", list(_findings(chests, folder / READERS))


def _probs(values: NDArray[np.float32], key: str = "logits") -> NDArray[np.float64]:
    found = values.astype(np.float64)
    if key.startswith("logits"):
        found = np.exp(found - found.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _nodules(file: Path, folder: Path, task: str) -> Iterator[Column]:
    """Yield the networks that rated the nodules, on those that at least three people rated."""
    with np.load(file, allow_pickle=False) as stored:
        column = stored["rating_names"].tolist().index(task)
        ratings, patients = stored["ratings"][:, :, column].astype(np.int64), stored["patient"]
    counts = (ratings[:, :, None] == np.arange(1, GRADES + 1)).sum(axis=1)
    chosen = counts.sum(axis=1) >= 3
    for number in range(len(list(folder.glob(f"{task}-fold0-network*.npz")))):
        logits = np.full((len(counts), GRADES), np.nan, np.float32)
        for each in sorted(folder.glob(f"{task}-fold*-network{number}.npz")):
            with np.load(each, allow_pickle=False) as stored:
                logits[stored["rows"]] = stored["logits"]
        if np.isfinite(logits).all():
            probs = _probs(logits[chosen])
            yield Column(f"{task}, network {number}", probs, counts[chosen], patients[chosen])


def _findings(chests: Path, readers: Path) -> Iterator[Column]:
    """Yield a column for each finding: CheXNet's probability, and what five radiologists saw."""
    with np.load(chests, allow_pickle=False) as stored:
        probs, names = stored["probs"].astype(np.float64), stored["image"].tolist()
        findings = [str(name).replace("_", " ") for name in stored["classes"]]
    row_of = {name: i for i, name in enumerate(names)}
    seen: dict[int, list[list[int]]] = {}
    patient: dict[int, str] = {}
    with readers.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            row = row_of.get(line["Image ID"])
            if row is not None:
                seen.setdefault(row, []).append([int(line[name] == "YES") for name in findings])
                patient[row] = line["Patient ID"]
    rows = np.array(sorted(row for row in seen if len(seen[row]) > 1), np.int64)
    patients = np.array([patient[row] for row in rows.tolist()])
    for k, finding in enumerate(findings):
        positive: IntArray = np.array([sum(one[k] for one in seen[row]) for row in rows.tolist()])
        total = np.array([len(seen[row]) for row in rows.tolist()])
        if positive.sum() >= LEAST_POSITIVES:
            z = probs[rows, k]
            yield Column(
                finding,
                np.stack((1 - z, z), axis=1),
                np.stack((total - positive, positive), axis=1),
                patients,
                "positive",
                tuple(metric for metric in METRICS if metric != "classwise_ece"),
            )

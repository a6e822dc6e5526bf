"""The files that the pages speak of, small, so that every command and block of theirs can run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import raterwise as rw

CLASSES = ("benign", "malignant")


def make(folder: Path) -> None:
    """Write tables, draws, images, results and what else a page takes for granted."""
    random = np.random.default_rng(0)
    truth = random.beta(0.7, 0.7, 80)
    cases = [f"n{i}" for i in range(80)]
    patients = [f"p{i // 2}" for i in range(80)]
    for name, power in {"predictions": 1.5, "old": 1.5, "new": 1.0, "submission": 1.2}.items():
        write_predictions(folder / f"{name}.csv", cases, patients, _odds(truth, power))
    for name, rows in {"validation": slice(0, 40), "test": slice(40, 80)}.items():
        write_predictions(
            folder / f"{name}.csv", cases[rows], patients[rows], _odds(truth, 1.5)[rows]
        )
    votes = (random.random((80, 3)) < truth[:, None]).astype(int)
    said = [(c, r, CLASSES[v]) for c, row in zip(cases, votes, strict=True)
            for r, v in zip("ABC", row, strict=True)]  # fmt: skip
    for place in (folder, folder / "hidden"):
        write(place / "ratings.csv", ("case", "reader", "rating"), said)
    write_findings(folder / "chest.csv", random, patients)
    write_streams(folder, random, truth, patients, votes)
    write_draws(folder, random, truth, cases, votes)
    write_images(folder, random)
    write_results(folder, truth, votes, patients)
    write_public(folder, random)


def _odds(p: Any, power: float) -> Any:
    """Return probabilities with their odds taken to a power: more than 1 is over-confident."""
    return p**power / (p**power + (1 - p) ** power)


def write(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(head)
        writer.writerows(rows)


def write_predictions(path: Path, cases: Sequence[str], patients: Sequence[str], p: Any) -> None:
    """Write a table of predictions of two classes."""
    head = ("case", "patient", *(f"prob_{name}" for name in CLASSES))
    write(path, head, zip(cases, patients, 1 - p, p, strict=True))


def write_findings(path: Path, random: np.random.Generator, patients: Sequence[str]) -> None:
    """Write a table of two findings that may occur together."""
    p = random.random((80, 2))
    seen = random.binomial(2, p)
    names = ("edema", "mass")
    head = ("case", "patient", *(f"prob_{n}" for n in names),
            *(f"{what}_{n}" for n in names for what in ("positives", "raters")))  # fmt: skip
    rows = ((i, patients[i], *p[i], seen[i, 0], 2, seen[i, 1], 2) for i in range(80))
    write(path, head, rows)


def write_streams(
    folder: Path, random: np.random.Generator, truth: Any, patients: Sequence[str], votes: Any
) -> None:
    """Write Parquet files, and the summary of another hospital."""
    p = _odds(truth, 1.5)
    columns = {"prob_benign": 1 - p, "prob_malignant": p, "patient": patients}
    columns |= {"y": votes[:, 0], "truth": votes[:, 0]}
    columns |= {f"r{rater + 1}": votes[:, rater] for rater in range(3)}
    table = pa.table({"case": [f"n{i}" for i in range(80)], **columns})
    (folder / "cases").mkdir()
    for name in ("cases/a.parquet", "big.parquet", "ours.parquet"):
        pq.write_table(table, folder / name, row_group_size=40)
    other = table.set_column(0, "case", pa.array([f"m{i}" for i in range(80)]))
    order = random.permutation(80)
    pq.write_table(other.take(pa.array(order)), folder / "theirs.parquet")
    rw.evaluate_stream(
        folder / "theirs.parquet", label_column="truth", save_summary=folder / "theirs.npz"
    )


def write_draws(
    folder: Path, random: np.random.Generator, truth: Any, cases: Sequence[str], votes: Any
) -> None:
    """Write draws of an ensemble, whole and in two halves, and as a table for each draw."""
    logit = np.log(_odds(truth, 1.5) / (1 - _odds(truth, 1.5)))
    p = 1 / (1 + np.exp(-(logit + random.normal(0, 0.5, (10, 80)))))
    samples = np.stack((1 - p, p), axis=2)
    parts = {"draws": slice(0, 80), "validation": slice(0, 40), "test": slice(40, 80)}
    for name, rows in parts.items():
        np.savez(folder / f"{name}.npz", samples=samples[:, rows], ratings=votes[rows],
                 ids=np.array(cases[rows]), class_names=np.array(CLASSES))  # fmt: skip
    for draw in range(3):
        write(folder / f"tta_{draw + 1}.csv", ("case", "prob_benign", "prob_malignant"),
              ((c, *samples[draw, i]) for i, c in enumerate(cases)))  # fmt: skip


def write_images(folder: Path, random: np.random.Generator) -> None:
    """Write three small volumes, two masks of each, and their manifest."""
    (folder / "images").mkdir()
    rows = []
    for n in range(3):
        p = random.random((6, 8, 8))
        np.save(folder / f"images/p{n}.npy", np.stack((1 - p, p)))
        for rater in "ab":
            np.save(folder / f"images/m{n}{rater}.npy", (random.random(p.shape) < p).astype(int))
        rows.append((f"c{n}", f"images/p{n}.npy", f"images/m{n}a.npy;images/m{n}b.npy", f"p{n}",
                     "2.5;0.7;0.7"))  # fmt: skip
    write(folder / "manifest.csv", ("case", "probabilities", "raters", "patient", "spacing"), rows)


def write_results(folder: Path, truth: Any, votes: Any, patients: Sequence[str]) -> None:
    """Write results of two models, and a work list."""
    labels = rw.Labels.from_ratings(votes, num_classes=2)
    powers = {"old": 1.5, "results": 1.5, "new": 1.0, "scaled": 1.0}
    for name, power in powers.items():
        rw.evaluate(
            _odds(truth, power), labels, "ece,brier,epistemic_loss", groups=patients,
            class_names=CLASSES, resamples=20,
        ).to_json(folder / f"{name}.json")  # fmt: skip
    p = _odds(truth, 1.0)
    belief = rw.DirichletBelief(np.stack((1 - p, p), axis=1), np.full(80, 4.0))
    found = rw.worklist.worklist(belief, [f"n{i}" for i in range(80)], top=5, class_names=CLASSES)
    found.to_csv(folder / "worklist.csv")


def write_public(folder: Path, random: np.random.Generator) -> None:
    """Write two public data sets in their layouts: MHIST's votes, CheXpert's radiologists."""
    votes = random.integers(8, size=60)
    counted = "Number of Annotators who Selected SSA (Out of 7)"
    head = ("Image Name", "Majority Vote Label", counted, "Partition")
    rows = [(f"MHIST_{i}.png", "SSA" if v > 3 else "HP", v, "test") for i, v in enumerate(votes)]
    write(folder / "MHIST" / "annotations.csv", head, rows)
    place = folder / "cheXpert-test-set-labels"
    readers = [f"radiologists/benchmark_radiologists/{name}" for name in ("bc4", "bc6", "bc8")]
    for name in ("groundtruth", *readers):
        said = random.integers(2, size=(60, 2))
        studies = [f"CheXpert-v1.0/test/patient{i}/study1" for i in range(60)]
        seen = [(study, *row) for study, row in zip(studies, said.tolist(), strict=True)]
        write(place / f"{name}.csv", ("Study", "Edema", "Fracture"), seen)

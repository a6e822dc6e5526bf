"""What is kept of a cascade in the repository: ranks of confidences, and which answers are right.

CCC curves, risk-coverage curves and I/O AUROC depend on the order of confidences alone. So each
confidence is kept as its rank (16 bits) among all images of the cascade, test images, held-out
images and those from elsewhere: the tables follow from them without images, labels or logits. Of
more than ten thousand images the ranks are kept in 1,024 classes, which changes no area of the kept
cascades by more than 0.00003. Over-confidence, which is not a matter of order, is kept as the
numbers that the tables show.

    python -m experiments.confidence_curves.condensed FOLDER OUT

condenses the cascades of FOLDER, what --out of `python -m experiments confidence_curves` was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.kept import fingerprint, write_json
from raterwise.confidence import auccc
from raterwise.functions.calibration import ece

__all__ = ["RANKED", "condensed", "in_bytes", "in_levels", "keep", "of_bytes", "softened"]

Array = NDArray[Any]
Arrays = Mapping[str, Array]
DISTILLED = ("udist", "udist_held_out", "udist_single")
RANKED = ("members", "softened", *DISTILLED)
LEVELS = 1024
"""Classes of ranks that are kept of many images."""
FEW_IMAGES = 10_000
"""So many are kept rank by rank: a class of theirs would hold several of the few errors."""


def softened(logits: Array, temperature: float = 1.0) -> Array:
    """Return softmax(log P̄ / T), (N, K), of the members' logits (M, N, K) (CCC eq 2).

    >>> logits = np.log([[[0.8, 0.2]], [[1.0, 1e-300]]])  # P̄ is 9 : 1
    >>> softened(logits, temperature=2.0)
    array([[0.75, 0.25]])
    """
    from scipy.special import log_softmax, logsumexp, softmax

    each = log_softmax(logits.astype(np.float64), axis=2)
    mean = logsumexp(each, axis=0) - np.log(len(each))
    return np.asarray(softmax(mean / temperature, axis=1))


def condensed(arrays: Arrays, temperatures: Sequence[float]) -> dict[str, Array]:
    """Return what judging needs of the arrays that `distillation.cascade` returns.

    `members` (M, n), `softened` and what is distilled (temperatures, n) are ranks of confidences
    among the n images of all `parts`; `right.test` and `right.held_out` say whether the ensemble's
    class is the image's, `member_right` (M, N) whether a member's is.
    """
    parts = ["test", "held_out"]
    parts += [name.removeprefix("logits.") for name in arrays if name.startswith("logits.out.")]
    logits = {part: arrays[f"logits.{part}"] for part in parts}
    classes = {"test": arrays["classes"], "held_out": arrays["held_out_classes"]}
    ensemble = {part: softened(logits[part]) for part in ("test", "held_out")}
    alone = [softened(member[None]) for member in logits["test"]]
    found: dict[str, Array] = {
        "parts": np.array(parts),
        "sizes": np.array([logits[part].shape[1] for part in parts]),
        "rows": arrays["rows"],
        "same": np.array(fingerprint(arrays["classes"], arrays["rows"])),
        "predicted": ensemble["test"].argmax(axis=1).astype(np.uint8),
        "member_predicted": np.stack([p.argmax(axis=1) for p in alone]).astype(np.uint8),
        "member_right": np.stack([p.argmax(axis=1) == classes["test"] for p in alone]),
        "over_confidence": np.array(json.dumps(_over_confidence(arrays))),
        "members": np.stack(
            [
                _ranks([softened(logits[part][m : m + 1]).max(axis=1) for part in parts])
                for m in range(len(logits["test"]))
            ]
        ),
        "softened": np.stack(
            [
                _ranks([softened(logits[part], t).max(axis=1) for part in parts])
                for t in temperatures
            ]
        ),
    }
    for part, probs in ensemble.items():
        found[f"right.{part}"] = probs.argmax(axis=1) == classes[part]
    for kind in DISTILLED:
        if f"{kind}.test" in arrays:
            nothing = {part: np.zeros((len(temperatures), logits[part].shape[1])) for part in parts}
            each = [arrays.get(f"{kind}.{part}", nothing[part]) for part in parts]
            found[kind] = np.stack(
                [_ranks([values[t] for values in each]) for t in range(len(temperatures))]
            )
    return found


def _ranks(values: Sequence[Array]) -> Array:
    """Return the rank of each value among all parts, equal ones alike, as 16 bits if they fit."""
    _, rank = np.unique(np.concatenate(values), return_inverse=True)
    return rank.astype(np.uint16 if rank.max() < 2**16 else np.uint32)


def in_levels(ranks: Array) -> Array:
    """Return ranks (confidences, n) in classes of alike size, equal ones alike, where n is large.

    >>> in_levels(np.arange(10_240)[None])[0, [0, 9, 10, 10_239]]
    array([   0,    0,    1, 1023], dtype=uint16)
    """
    if ranks.shape[1] <= FEW_IMAGES:
        return ranks
    most = ranks.max(axis=1, keepdims=True).astype(np.int64) + 1
    return np.asarray(ranks * np.int64(LEVELS) // most).astype(np.uint16)


def in_bytes(ranks: Array) -> Array:
    """Return ranks (confidences, n) as low and high bytes (2, confidences, n) that compress well.

    A rank at one temperature is much like that at the one before, so differences are kept, with
    small ones of either sign as small numbers (0, -1, 1, -2 as 0, 1, 2, 3), and the high bytes,
    which are few different ones, stand apart.
    """
    steps = np.diff(ranks.astype(np.int32), axis=0, prepend=0)
    small = np.where(steps < 0, -2 * steps - 1, 2 * steps)
    return np.stack([small & 255, small >> 8]).astype(np.uint8)


def of_bytes(stored: Array) -> Array:
    """Return the ranks that `in_bytes` took apart; others as they are.

    >>> of_bytes(in_bytes(np.array([[3, 700], [5, 0]], dtype=np.uint16)))
    array([[  3, 700],
           [  5,   0]], dtype=uint16)
    """
    if stored.ndim < 3:
        return stored
    small = stored[0] | stored[1].astype(np.int32) << 8
    steps = np.where(small % 2, -(small + 1) // 2, small // 2)
    return np.asarray(steps.cumsum(axis=0)).astype(np.uint16)


def _over_confidence(arrays: Arrays) -> dict[str, dict[str, float | None]]:
    """Return what one network (the mean over them) says of images it was trained on, and not.

    Accuracy, mean confidence, ECE and AUCCC of the train, held_out and test images; AUCCC is
    None where a network makes no error.
    """
    out: dict[str, dict[str, float | None]] = {}
    for part, key in (("train", "train_classes"), ("held_out", "held_out_classes"),
                      ("test", "classes")):  # fmt: skip
        if f"logits.{part}" not in arrays or key not in arrays:
            continue
        rows: dict[str, list[float]] = {}
        for member in arrays[f"logits.{part}"]:
            probs = softened(member[None])
            correct = probs.argmax(axis=1) == arrays[key]
            rows.setdefault("accuracy", []).append(float(correct.mean()))
            rows.setdefault("confidence", []).append(float(probs.max(axis=1).mean()))
            rows.setdefault("ece", []).append(ece(probs, arrays[key]))
            if 0 < correct.mean() < 1:
                rows.setdefault("auccc", []).append(auccc(probs.max(axis=1), correct))
        out[part] = {
            name: float(np.mean(rows[name])) if name in rows else None
            for name in ("accuracy", "confidence", "ece", "auccc")
        }
    return out


def softened_before(arrays: Arrays, temperatures: Sequence[float]) -> dict[str, float]:
    """Return AUCCC on the test images where members are softened before they are averaged.

    CCC eq 2 softens their mean, which cannot change the class; the paper's accuracy changes.
    """
    from scipy.special import softmax

    out = {}
    for temperature in temperatures:
        mean = softmax(arrays["logits.test"].astype(np.float64) / temperature, axis=2).mean(axis=0)
        correct = mean.argmax(axis=1) == arrays["classes"]
        out[f"{temperature:g}"] = auccc(mean.max(axis=1), correct)
    return out


def keep(folder: Path, out: Path) -> None:
    """Write the condensed cascades of a folder into another, and `softened_before`."""
    out.mkdir(parents=True, exist_ok=True)
    before: dict[str, dict[str, float]] = {}
    for file in sorted(folder.glob("*-seed*.npz")):
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files if name != "made_of"}
            made_of = stored["made_of"]
        temperatures = json.loads(str(made_of))["test_temperatures"]
        small: dict[str, Any] = condensed(arrays, temperatures)
        for kind in RANKED:
            if kind in small:
                small[kind] = in_bytes(in_levels(small[kind]))
        before[file.stem] = softened_before(arrays, temperatures)
        np.savez_compressed(out / file.name, made_of=made_of, **small)
    write_json(out / "softened_before.json", before)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    keep(given.folder, given.out)

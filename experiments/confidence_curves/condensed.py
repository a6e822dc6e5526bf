"""What is kept of a cascade in the repository: ranks of confidences, and which answers are right.

CCC curves, risk-coverage curves and I/O AUROC depend on the order of confidences alone. So each
confidence is kept as its rank (16 bits) among all images of the cascade, test images, held-out
images and those from elsewhere: the tables follow from them to the last digit, without images,
labels or logits. Over-confidence, which is not a matter of order, is kept as the numbers that the
tables show.

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

__all__ = ["condensed", "keep", "softened"]

Array = NDArray[Any]
Arrays = Mapping[str, Array]
DISTILLED = ("udist", "udist_held_out", "udist_single")


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
        before[file.stem] = softened_before(arrays, temperatures)
        np.savez_compressed(out / file.name, made_of=made_of, **small)
    write_json(out / "softened_before.json", before)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    keep(given.folder, given.out)

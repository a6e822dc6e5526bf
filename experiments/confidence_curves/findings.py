"""CCC Table 2 with the outputs of a published CheXNet: fourteen findings of chest X-rays.

Each finding is a yes-or-no question of its own: its confidence is the larger of p and 1 - p, and
it is right where p >= 1/2 is what the label says. Where no case reaches 1/2, every answer is "no",
and the confidence 1 - p ranks the right answers above the wrong ones exactly as p ranks positives
above negatives: AUCCC *is* AUROC then. And softening one probability, softmax(log(p, 1 - p) / T),
keeps the order of max(p, 1 - p): AUCCC is the same at every T. A threshold of its own, at which a
finding is called as often as it is present, makes AUCCC something else.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.kept import fingerprint, is_there, kept, read_json
from experiments.markdown import table_head, table_row
from raterwise.confidence import auccc as area_of
from raterwise.functions.ranking import auccc
from raterwise.io.files import write_text_atomically
from raterwise.multilabel.evaluation import evaluate_multilabel

__all__ = ["as_markdown", "auccc_at_own_threshold", "judge_findings", "softened_finding"]

VERSION = 3
TEMPERATURES = (1.0, 10.0)
PAPER = {
    "VGG": (81.50, 81.34),
    "DenseNet": (82.37, 82.07),
    "deep ensemble, T = 1": (82.86, 82.56),
    "deep ensemble, T = 10": (82.86, 82.56),
    "UDist": (None, 82.73),
}
"""AUC and AUCCC of CCC Table 2, in per cent."""


def softened_finding(p: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Return the probability of a finding at a temperature (CCC eq 2 over yes and no).

    >>> softened_finding(np.array([0.9]), 2.0)
    array([0.75])
    """
    tiny = np.finfo(float).tiny
    yes, no = np.maximum(p, tiny) ** (1 / temperature), np.maximum(1 - p, tiny) ** (1 / temperature)
    return np.asarray(yes / (yes + no))


def auccc_at_own_threshold(p: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return AUCCC where a finding is called as often as it is present.

    The confidence is how far the log-odds are from those of the threshold.

    >>> auccc_at_own_threshold(np.array([0.3, 0.2, 0.1, 0.01]), np.array([1, 0, 1, 0]))
    0.75
    """
    inside = np.clip(p, 1e-12, 1 - 1e-12)
    odds = np.log(inside / (1 - inside))
    threshold = np.sort(odds)[len(odds) - int(labels.sum())]
    right = (odds >= threshold) == (labels == 1)
    return area_of(np.abs(odds - threshold), right.astype(np.float64))


def judge_findings(
    npz: str | PathLike[str] | None, out: str | PathLike[str], resamples: int = 1000, seed: int = 0
) -> dict[str, Any] | None:
    """Judge cxr14_chexnet_test.npz; write findings.json and findings.md into `out`.

    Without that file, findings.md is made of the findings.json that `out` has, where it has one.
    """
    folder = Path(out)
    if npz is not None:
        found = _judged_once(npz, folder, resamples, seed)
    elif is_there(folder / "findings.json"):
        found = read_json(folder / "findings.json")
    else:
        return None
    write_text_atomically(folder / "findings.md", as_markdown(found))
    return found


def _judged_once(
    npz: str | PathLike[str], folder: Path, resamples: int, seed: int
) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    with np.load(npz, allow_pickle=False) as stored:
        probs, labels = stored["probs"].astype(np.float64), stored["labels"].astype(np.int64)
        names = [str(name).replace("_", " ") for name in stored["classes"]]
        patients = np.array([str(name).split("_")[0] for name in stored["image"]])
    made_of = {
        "version": VERSION, "data": fingerprint(probs, labels, patients),
        "resamples": resamples, "seed": seed,
    }  # fmt: skip
    return kept(
        folder / "findings.json",
        made_of,
        lambda: _judged(probs, labels, names, patients, resamples, seed),
    )


def _judged(
    probs: NDArray[np.float64],
    labels: NDArray[np.int64],
    names: list[str],
    patients: NDArray[np.str_],
    resamples: int,
    seed: int,
) -> dict[str, Any]:
    results = evaluate_multilabel(
        probs, labels, np.ones_like(labels), names=names, metrics=["auroc", "auccc"],
        groups=patients, resamples=resamples, seed=seed,
    )  # fmt: skip
    mean = {
        metric: {key: float(getattr(results[metric], key)) for key in ("value", "low", "high")}
        for metric in ("auroc", "auccc")
    }
    every = range(len(names))
    by_temperature = {
        f"{t:g}": float(np.mean([auccc(softened_finding(probs[:, k], t), labels[:, k])
                                 for k in every]))
        for t in TEMPERATURES
    }  # fmt: skip
    return {
        "cases": len(probs),
        "patients": len(set(patients.tolist())),
        "mean": mean,
        "auccc_at": by_temperature,
        "findings": [
            {
                "name": names[k],
                "positive": float(labels[:, k].mean()),
                "called": float((probs[:, k] >= 0.5).mean()),
                "auroc": float(results.findings[names[k]]["auroc"]),
                "auccc": float(results.findings[names[k]]["auccc"]),
                "auccc_own": auccc_at_own_threshold(probs[:, k], labels[:, k]),
            }
            for k in every
        ],
    }


def as_markdown(found: dict[str, Any]) -> str:
    """Return the paper's cells beside ours, and every finding."""
    auroc, area = found["mean"]["auroc"], found["mean"]["auccc"]
    lines = table_head(("ChestX-ray14", "AUC", "AUCCC", "AUCCC - AUC"))
    for name, (first, second) in PAPER.items():
        gap = "" if first is None else f"{second - first:+.2f}"
        shown = "" if first is None else f"{first:.2f}"
        lines.append(table_row((f"paper: {name}", shown, f"{second:.2f}", gap)))
    cells = (_percent(auroc), _percent(area), f"{100 * (area['value'] - auroc['value']):+.2f}")
    lines.append(table_row(("here: CheXNet (DenseNet-121), T = 1", *cells)))
    soft = f"{100 * found['auccc_at']['10']:.2f}"
    lines += [table_row(("here: CheXNet, T = 10", "the same", soft, "")), ""]
    head = ("finding", "positive", "p ≥ 1/2", "AUC", "AUCCC", "AUCCC, threshold of its own")
    lines += table_head(head)
    keys = ("auroc", "auccc", "auccc_own")
    columns = {key: np.array([one[key] for one in found["findings"]]) for key in keys}
    for one in found["findings"]:
        shares = f"{100 * one['positive']:.1f} %", f"{100 * one['called']:.1f} %"
        lines.append(table_row((one["name"], *shares, *(f"{100 * one[key]:.2f}" for key in keys))))
    lines.append(
        table_row(("mean", "", "", *(f"{100 * own.mean():.2f}" for own in columns.values())))
    )
    against = (f"{_rank_correlation(columns['auroc'], columns[key]):.2f}" for key in keys[1:])
    lines.append(table_row(("rank correlation with AUC", "", "", "", *against)))
    return "\n".join([*lines, ""])


def _rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    one, other = (own.argsort().argsort().astype(np.float64) for own in (first, second))
    return float(np.corrcoef(one, other)[0, 1])


def _percent(row: dict[str, float]) -> str:
    return f"{100 * row['value']:.2f} [{100 * row['low']:.2f}, {100 * row['high']:.2f}]"

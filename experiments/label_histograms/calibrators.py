"""The calibrators of LH Tables 1, 2 and 4 to 6: four scalings, each with α-calibration.

Fitted to the plain outputs of the validation cases, and applied to every draw of Monte-Carlo
dropout or test-time augmentation, as in the authors' code. One thing is not as there: the α of
Monte-Carlo dropout is fitted to draws of the validation cases, since a line fitted to features
without dropout says anything about features with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from experiments.label_histograms.mixed_outputs import Outputs
from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.calibrators.scaling import MatrixScaling, TemperatureScaling, VectorScaling
from raterwise.labels import Labels

__all__ = ["SCALINGS", "Pair", "calibrated", "drawn", "fit_all", "restored_pair", "within_reach"]

Pair = tuple[Any, dict[str, AlphaCalibration]]
"""A scaling (None for none), and its α-calibrations by method."""
SCALINGS: dict[str, tuple[Any, dict[str, float]]] = {
    "none": (None, {}),
    "ts": (TemperatureScaling, {}),
    "vs": (VectorScaling, {"bias_l2": 0.1}),
    "ms": (MatrixScaling, {"off_diagonal_l2": 10.0, "bias_l2": 1.0}),
}
"""The penalties of vs and ms are those that LH chose on MDS (appendix F.3)."""
ALPHA_L2 = 0.005
"""λ of LH eq 50, as in the paper."""


def fit_all(outputs: Outputs, labels: Labels, fit_samples: int, seed: int) -> dict[str, Any]:
    """Return the scalings and α-calibrations of one network, as plain numbers, by scaling."""
    logits, features = outputs.plain("valid")
    draws, dropped = outputs.dropout("valid", fit_samples, seed)
    found: dict[str, Any] = {}
    for name, (kind, options) in SCALINGS.items():
        scaling = None if kind is None else kind(**options).fit(logits.astype(float), labels)
        alphas = (
            AlphaCalibration(ALPHA_L2, "paper").fit(x, labels, probs=calibrated(scaling, u))
            for x, u in ((features, logits), (dropped, draws))
        )
        found[name] = {
            "scaling": None if scaling is None else scaling.to_dict(),
            **dict(zip(("alpha", "alpha_mcdo"), (a.to_dict() for a in alphas), strict=True)),
        }
    return found


def restored_pair(name: str, pair: dict[str, Any]) -> Pair:
    """Return the scaling and the α-calibrations that `fit_all` wrote down."""
    kind, _ = SCALINGS[name]
    scaling = None if kind is None else kind.from_dict(pair["scaling"])
    plain, dropout = (AlphaCalibration.from_dict(pair[key]) for key in ("alpha", "alpha_mcdo"))
    return scaling, {"raw": plain, "mcdo": dropout, "tta": plain}


def calibrated(scaling: Any, logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the class probabilities of logits (…, K)."""
    if scaling is None:
        return np.asarray(softmax(logits.astype(np.float64), axis=-1))
    flat = scaling.predict_proba(logits.reshape(-1, logits.shape[-1]).astype(np.float64))
    return np.asarray(flat.reshape(logits.shape))


def drawn(
    method: str, outputs: Outputs, samples: int, seed: int, part: str = "test"
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the logits and features of a part, of several draws where there are some."""
    if method == "raw":
        return outputs.plain(part)
    if method == "mcdo":
        return outputs.dropout(part, samples, seed)
    return outputs.augmentation()


def within_reach(features: NDArray[np.float32], seen: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return features (…, D), none larger than in the validation cases (…, D) that α was fitted to.

    A unit that is hardly ever active there may get any weight: one nodule had log α0 = -1050, and
    one augmented image of Mix-CIFAR-10 -787.

    >>> within_reach(np.array([[1, 9], [3, 4]], np.float32), np.array([[2, 4], [0, 5]], np.float32))
    array([[1., 5.],
           [2., 4.]], dtype=float32)
    """
    return np.asarray(np.minimum(features, seen.reshape(-1, seen.shape[-1]).max(axis=0)))

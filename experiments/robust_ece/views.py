"""By how much RECE-M moves when nothing but the random views of the images are drawn again.

    python -m experiments.robust_ece.views

RECE Tables 1 and 2 have the same ECE, SCE and RECE-G of cross-entropy on all images of GBCU (122)
and BUSI (78), and another RECE-M. Here the ten views of BreastMNIST's test images that are kept
(experiments/outputs/robust_ece/sample_sizes) are drawn again, with replacement, twice for each of
some random sets of 78 and 122 images: as trained, and with the logits divided until the networks
are as sure as they are right, which is nearer to the paper's RECE-M of 0.02 to 0.06.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.markdown import table_head, table_row
from raterwise import TemperatureScaling, robust_ece_mixture

__all__ = ["moved"]

KEPT = Path(__file__).parents[1] / "outputs" / "robust_ece" / "sample_sizes"
LOSSES = ("cross-entropy", "focal")
PRINTED = {78: 0.0329 - 0.0239, 122: 0.0641 - 0.0610}
"""RECE-M of Tables 1 and 2: BUSI and GBCU, by their number of test images."""
PAIRS = 200


def moved(
    probs: NDArray[np.float64],
    labels: NDArray[np.int64],
    views: NDArray[np.float64],
    cases: int,
    pairs: int = PAIRS,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Return (pairs, 2): RECE-M of random cases by two draws of their views (V, N, K).

    As the released code has it: bins that hold no confidence are left out.
    """
    random = np.random.default_rng(seed)
    out = np.empty((pairs, 2))
    for pair in range(pairs):
        rows = random.permutation(len(labels))[:cases]
        for k in range(2):
            drawn = views[random.integers(len(views), size=(len(views), cases)), rows]
            out[pair, k] = robust_ece_mixture(
                probs[rows], labels[rows], drawn, observed_bins_only=True
            )
    return out


def main() -> None:
    """Print how far two draws are apart, beside the paper's two tables."""
    head = ("network", "images", "mean RECE-M", "mean distance", "95 % are below", "the paper's",
            "as far apart or further")  # fmt: skip
    print("\n".join(table_head(head)))
    for loss in LOSSES:
        with np.load(KEPT / f"breastmnist-{loss}-0.npz", allow_pickle=False) as stored:
            logits, views = stored["test_logits"], stored["test_view_logits"]
            labels = stored["test_labels"].ravel().astype(np.int64)
        fitted = TemperatureScaling(input="logits").fit(logits, labels).temperature_
        for name, divisor in ((loss, 1.0), (f"{loss}, T = {fitted:.1f}", fitted)):
            for cases, printed in PRINTED.items():
                own = moved(_softmax(logits / divisor), labels, _softmax(views / divisor), cases)
                apart = np.abs(own[:, 0] - own[:, 1])
                numbers = (own.mean(), apart.mean(), np.quantile(apart, 0.95), printed)
                share = f"{np.mean(apart >= printed):.0%}"
                print(table_row((name, str(cases), *(f"{v:.4f}" for v in numbers), share)))


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


if __name__ == "__main__":
    main()

"""Training losses and calibration terms, from logits: all are loss(logits, targets).

Logits are (N, K) or dense (N, K, H, W[, D]); targets are classes (N, …), of which `ignore_index`
does not count, or label counts (N, K, …) where several raters labelled each case. They compute in
float32 at least, also under autocast, and work under `torch.compile`. The first option of each
(γ, σ, the bandwidth, the smoothing) may stand alone; all others are given by name.

    per case, with a reduction   FocalLoss, FLSD, Brier, LabelSmoothing, HistogramCrossEntropy
    one term per batch           MDCA, DCA, RCR, MMCE, KDECalibration
    both together                Regularized(loss, term, beta)
"""

from raterwise.torch.losses.batch import DCA, MDCA, Regularized, dca_term, mdca_term
from raterwise.torch.losses.focal import FLSD, FLSD_53, FocalLoss, flsd_loss, focal_loss
from raterwise.torch.losses.kernel import KDECalibration, kde_calibration_error, kde_term
from raterwise.torch.losses.pairs import MMCE, RCR, mmce_term, rcr_term
from raterwise.torch.losses.proper import (
    Brier,
    HistogramCrossEntropy,
    LabelSmoothing,
    brier_loss,
    histogram_cross_entropy,
    label_smoothing_loss,
)

__all__ = [
    "Brier",
    "DCA",
    "FLSD",
    "FLSD_53",
    "FocalLoss",
    "HistogramCrossEntropy",
    "KDECalibration",
    "LabelSmoothing",
    "MDCA",
    "MMCE",
    "RCR",
    "Regularized",
    "brier_loss",
    "dca_term",
    "flsd_loss",
    "focal_loss",
    "histogram_cross_entropy",
    "kde_calibration_error",
    "kde_term",
    "label_smoothing_loss",
    "mdca_term",
    "mmce_term",
    "rcr_term",
]

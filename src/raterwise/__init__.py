"""How far the probabilities of a medical-imaging model can be trusted.

import raterwise as rw

labels = rw.Labels.from_ratings(ratings, num_classes=5)   # what the raters said
rw.ece(probs, labels)                                     # one metric
results = rw.evaluate(probs, labels, groups=patients)     # all, with intervals
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from raterwise import confidence, curves, planning, segmentation, stability, worklist
from raterwise.alpha_check import AlphaCheck, alpha_can_help
from raterwise.beliefs import DirichletBelief, DirichletMixtureBelief, EnsembleBelief, PointBelief
from raterwise.calibration_tests import CalibrationTest, kernel_calibration_test, spiegelhalter_test
from raterwise.compare import Comparison, Difference, compare
from raterwise.curves.calibration import calibration_curve
from raterwise.curves.clinical import decision_curve, precision_recall_curve, roc_curve
from raterwise.curves.smooth import CalibrationCurve
from raterwise.errors import (
    InvalidInputError,
    InvalidTypeError,
    MergeError,
    MissingExtraError,
    RaterwiseError,
    RaterwiseWarning,
    UndefinedMetricError,
)
from raterwise.evaluate import evaluate
from raterwise.exchangeability import ExchangeabilityTest, RaterDeviation, exchangeability_test
from raterwise.functions.agreement import fleiss_kappa, krippendorff_alpha
from raterwise.functions.calibration import (
    adaptive_ece,
    classwise_ece,
    ece,
    ece_sweep,
    ks_error,
    mce,
    rms_ce,
    sce,
)
from raterwise.functions.disagreement import (
    disagreement_calibration_error,
    disagreement_calibration_loss,
    disagreement_loss,
    statistic_calibration_loss,
    statistic_loss,
)
from raterwise.functions.disagreement_change import disagreement_change
from raterwise.functions.failures import excess_aurc, failure_average_precision, fpr_at_95_tpr
from raterwise.functions.histograms import (
    calibration_error,
    calibration_loss,
    dispersion_loss,
    epistemic_loss,
    expected_squared_loss,
    irreducible_loss,
)
from raterwise.functions.kernel import kde_ece, smooth_ece
from raterwise.functions.multi_rater import multi_rater
from raterwise.functions.peers import (
    average_calibration_error,
    canonical_ece,
    debiased_ece,
    kernel_calibration_error,
    kuiper_error,
    spiegelhalter_z,
)
from raterwise.functions.predictive import f1, net_benefit, npv, ppv
from raterwise.functions.proper import (
    accuracy,
    brier,
    majority_accuracy,
    nll,
    ranked_log_score,
    ranked_probability_score,
    top_label_brier,
)
from raterwise.functions.ranking import auccc, augrc, aurc, ccc_curve
from raterwise.functions.refinement import grouping_loss, refinement_loss
from raterwise.functions.robust import robust_ece, robust_ece_mixture
from raterwise.functions.smooth_calibration import e50, e90, ici
from raterwise.functions.thresholds import auroc, average_precision, sensitivity, specificity
from raterwise.functions.weak_calibration import (
    calibration_intercept,
    calibration_slope,
    observed_expected_ratio,
)
from raterwise.functions.weights import optimal_weights
from raterwise.io.cases import read_cases
from raterwise.labels import Labels
from raterwise.multilabel.evaluation import evaluate_multilabel
from raterwise.predictions import Predictions
from raterwise.prevalence import shift_prevalence
from raterwise.readers.against import against_readers
from raterwise.readers.yardstick import AgainstReaders, Reader, Yardstick
from raterwise.results import Estimate, Results
from raterwise.streaming.evaluation import evaluate_stream

if TYPE_CHECKING:
    from raterwise import datasets, plots, report
    from raterwise.calibrators.alpha import AlphaCalibration
    from raterwise.calibrators.cross_validation import MatrixScalingCV, VectorScalingCV
    from raterwise.calibrators.nonparametric import (
        BetaCalibration,
        HistogramBinning,
        IsotonicCalibration,
    )
    from raterwise.calibrators.scaling import (
        DirichletCalibration,
        MatrixScaling,
        TemperatureScaling,
        VectorScaling,
    )

__version__ = "0.2.0"

__all__ = [
    "AgainstReaders",
    "AlphaCalibration",
    "AlphaCheck",
    "BetaCalibration",
    "CalibrationTest",
    "CalibrationCurve",
    "Comparison",
    "Difference",
    "DirichletBelief",
    "DirichletCalibration",
    "DirichletMixtureBelief",
    "EnsembleBelief",
    "Estimate",
    "ExchangeabilityTest",
    "HistogramBinning",
    "InvalidInputError",
    "InvalidTypeError",
    "IsotonicCalibration",
    "Labels",
    "MatrixScaling",
    "MatrixScalingCV",
    "MergeError",
    "MissingExtraError",
    "PointBelief",
    "Predictions",
    "RaterwiseError",
    "RaterwiseWarning",
    "RaterDeviation",
    "Reader",
    "Results",
    "TemperatureScaling",
    "UndefinedMetricError",
    "VectorScaling",
    "VectorScalingCV",
    "Yardstick",
    "accuracy",
    "adaptive_ece",
    "alpha_can_help",
    "against_readers",
    "auccc",
    "augrc",
    "aurc",
    "auroc",
    "average_calibration_error",
    "average_precision",
    "brier",
    "calibration_curve",
    "calibration_error",
    "calibration_intercept",
    "calibration_loss",
    "calibration_slope",
    "canonical_ece",
    "ccc_curve",
    "classwise_ece",
    "compare",
    "confidence",
    "curves",
    "datasets",
    "debiased_ece",
    "decision_curve",
    "disagreement_calibration_error",
    "disagreement_calibration_loss",
    "disagreement_change",
    "disagreement_loss",
    "dispersion_loss",
    "e50",
    "e90",
    "ece",
    "ece_sweep",
    "epistemic_loss",
    "evaluate",
    "evaluate_multilabel",
    "evaluate_stream",
    "excess_aurc",
    "exchangeability_test",
    "expected_squared_loss",
    "f1",
    "failure_average_precision",
    "fleiss_kappa",
    "fpr_at_95_tpr",
    "grouping_loss",
    "ici",
    "irreducible_loss",
    "kde_ece",
    "kernel_calibration_error",
    "kernel_calibration_test",
    "krippendorff_alpha",
    "ks_error",
    "kuiper_error",
    "majority_accuracy",
    "mce",
    "multi_rater",
    "net_benefit",
    "nll",
    "npv",
    "optimal_weights",
    "observed_expected_ratio",
    "planning",
    "plots",
    "ppv",
    "precision_recall_curve",
    "ranked_log_score",
    "ranked_probability_score",
    "read_cases",
    "refinement_loss",
    "report",
    "rms_ce",
    "robust_ece",
    "robust_ece_mixture",
    "roc_curve",
    "sce",
    "segmentation",
    "sensitivity",
    "shift_prevalence",
    "smooth_ece",
    "specificity",
    "spiegelhalter_test",
    "spiegelhalter_z",
    "stability",
    "statistic_calibration_loss",
    "statistic_loss",
    "top_label_brier",
    "torch",
    "worklist",
]

# Where there is no PyTorch, help() and `from raterwise import *` ask for all that is named here.
if find_spec("torch") is None:
    __all__.remove("torch")

# Calibrators are scikit-learn estimators; it is imported when one of them is asked for.
_LATER = {
    "AlphaCalibration": "alpha",
    "BetaCalibration": "nonparametric",
    "DirichletCalibration": "scaling",
    "HistogramBinning": "nonparametric",
    "IsotonicCalibration": "nonparametric",
    "MatrixScaling": "scaling",
    "MatrixScalingCV": "cross_validation",
    "TemperatureScaling": "scaling",
    "VectorScaling": "scaling",
    "VectorScalingCV": "cross_validation",
}

# Modules that need an extra or read files come when somebody asks for them.
_MODULES_LATER = {"datasets", "plots", "report", "torch"}


def __getattr__(name: str) -> Any:
    if name in _MODULES_LATER:
        return import_module(f"raterwise.{name}")
    if name in _LATER:
        return getattr(import_module(f"raterwise.calibrators.{_LATER[name]}"), name)
    raise AttributeError(f"module 'raterwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

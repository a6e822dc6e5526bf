"""Calibrators against what the released code of their papers found on fixed inputs.

The values are in ``tests/fixtures/calibrators`` (arrays of probabilities: their first 60 rows), or
in the folder of ``RATERWISE_GOLDEN``; the inputs are those of ``tests/fixtures/golden``.

Not matched on purpose, because the objective is another one:

- penalised fits of dirichletcal with ``ref_row=True`` (its matrix scaling always), whose penalty
  is on differences to the last class and so depends on the order of the classes: only the
  objective at its weights is compared, where the penalty is the same;
- Mix-n-Match's temperature with ``loss="mse"``, which minimises the Brier score; ensemble
  temperature scaling and isotonic regression of all classes together, which we do not have;
- lh_calib's ``ps``, temperature scaling with a shift of all logits, which changes nothing;
- NN_calibration's histogram binning in bins without cases, which it sets to 0 and we to the middle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import GoldenSet, golden_set
from raterwise.calibrators._linear import LinearLikelihood, apply_linear
from raterwise.calibrators.nonparametric import HistogramBinning, IsotonicCalibration
from raterwise.calibrators.scaling import (
    DirichletCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
    full_penalty,
)
from raterwise.labels import Labels

Array = npt.NDArray[Any]

FOLDER = Path(
    os.environ.get("RATERWISE_GOLDEN", Path(__file__).resolve().parent / "fixtures" / "calibrators")
)
LABEL_HISTOGRAMS = "m1m0r1/lh_calib"
DIRICHLET = "dirichletcal/dirichlet_python"
MIX_N_MATCH = "zhang64-llnl/Mix-n-Match-Calibration"
NN_CALIBRATION = "markus93/NN_calibration"

# lh_calib weights the cases in float32; optimisers of the others stop within these of the optimum.
LOSS_IN_FLOAT32 = 1e-6
PARAMETERS = 1e-4
PROBABILITIES = 1e-6


@dataclass(frozen=True)
class Fit:
    """What one original found: its outputs by name, for one set and one choice of parameters."""

    repository: str
    set_name: str
    params: dict[str, Any]
    outputs: dict[str, Any]

    @property
    def data(self) -> GoldenSet:
        """The inputs."""
        return golden_set(self.set_name)

    @property
    def histograms(self) -> Labels:
        """All raters."""
        return Labels.from_counts(self.data.counts)

    @property
    def classes(self) -> Array:
        """The first rater."""
        return self.data.classes.astype(int)

    @property
    def name(self) -> str:
        """For the test's id."""
        return f"{self.set_name}-" + ",".join(f"{k}={v}" for k, v in self.params.items())


@cache
def fits() -> tuple[Fit, ...]:
    """Every fit in the folder whose inputs are there."""
    found: dict[str, Fit] = {}
    with np.load(FOLDER / "outputs.npz", allow_pickle=False) as arrays:
        for row in json.loads((FOLDER / "index.json").read_text()):
            params = row["params"]
            key = json.dumps([row["repo"], row["set"], params, row["what"].split("_")[0]])
            fit = found.setdefault(key, Fit(row["repo"], row["set"], params, {}))
            value = row["value"]
            fit.outputs[row["what"]] = arrays[row["key"]] if value is None else value
    return tuple(found.values())


def each(
    repository: str, what: str, where: Callable[[dict[str, Any]], bool] = lambda _: True
) -> Any:
    """Run the test once for each fit of a repository that gave this output."""
    chosen = [
        fit
        for fit in fits()
        if fit.repository == repository and what in fit.outputs and where(fit.params)
    ]
    assert chosen, f"no {what} of {repository}"
    return pytest.mark.parametrize("fit", chosen, ids=[fit.name for fit in chosen])


def assert_begins(ours: Array, theirs: Array, tolerance: float = PROBABILITIES) -> None:
    """Compare with the rows that are stored, which may be the first ones only."""
    np.testing.assert_allclose(ours[: len(theirs)], theirs, rtol=0, atol=tolerance)


def halves(of: Array) -> tuple[Array, Array]:
    """The first half, which was fitted, and the second, which was calibrated."""
    middle = len(of) // 2
    return of[:middle], of[middle:]


# lh_calib: label histograms, LH eq 82 with the penalties of eqs 48-49 --------------------------


@each(LABEL_HISTOGRAMS, "logit_calib_opt_loss", lambda p: p["method"] == "ts")
def test_temperature_of_label_histograms(fit: Fit) -> None:
    """The temperature, its loss and its probabilities are those of the paper's own code."""
    calibrator = TemperatureScaling().fit(fit.data["logits"], fit.histograms)
    expected = fit.outputs
    assert np.log(calibrator.temperature_) == pytest.approx(
        float(expected["logit_calib_opt_log_t"].item()), abs=PARAMETERS
    )
    assert calibrator.loss_ == pytest.approx(expected["logit_calib_opt_loss"], abs=LOSS_IN_FLOAT32)
    assert_begins(calibrator.predict_proba(fit.data["logits"]), expected["logit_calib_probs"])


@each(LABEL_HISTOGRAMS, "logit_calib_opt_loss", lambda p: p["method"] == "vs")
def test_vector_scaling_of_label_histograms(fit: Fit) -> None:
    """Loss, probabilities and what the data determine of (v, b) are those of the paper's code.

    With two classes and logits that sum to 0 only v_0 + v_1 is determined.
    """
    logits = fit.data["logits"]
    calibrator = VectorScaling(bias_l2=fit.params["b_l2"]).fit(logits, fit.histograms)
    expected = fit.outputs
    assert calibrator.loss_ == pytest.approx(expected["logit_calib_opt_loss"], abs=LOSS_IN_FLOAT32)
    assert_begins(calibrator.predict_proba(logits), expected["logit_calib_probs"])
    np.testing.assert_allclose(
        calibrator.intercept_, expected["logit_calib_opt_b"], rtol=0, atol=PARAMETERS
    )
    ours, theirs = calibrator.coef_, expected["logit_calib_opt_w"]
    if fit.data.num_classes == 2:
        ours, theirs = ours.sum(), theirs.sum()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=PARAMETERS)


@each(LABEL_HISTOGRAMS, "logit_calib_opt_loss", lambda p: p["method"] == "ms")
def test_matrix_scaling_of_label_histograms(fit: Fit) -> None:
    """Loss, probabilities, W and b are those of the paper's code (its kernel is Wᵀ)."""
    logits = fit.data["logits"]
    calibrator = MatrixScaling(
        off_diagonal_l2=fit.params["w_off_diag_l2"], bias_l2=fit.params["b_l2"]
    ).fit(logits, fit.histograms)
    expected = fit.outputs
    assert calibrator.loss_ == pytest.approx(expected["logit_calib_opt_loss"], abs=LOSS_IN_FLOAT32)
    assert_begins(calibrator.predict_proba(logits), expected["logit_calib_probs"])
    bias, kernel = expected["logit_calib_opt_bias"], expected["logit_calib_opt_kernel"]
    np.testing.assert_allclose(calibrator.intercept_, bias, rtol=0, atol=PARAMETERS)
    if fit.data.num_classes > 2:
        np.testing.assert_allclose(calibrator.coef_.T, kernel, rtol=0, atol=PARAMETERS)


# dirichletcal: single labels ------------------------------------------------------------------


@each(DIRICHLET, "TS_probs")
def test_temperature_of_dirichletcal(fit: Fit) -> None:
    """1/T and the probabilities agree; the fixed-diagonal Dirichlet map is the same thing."""
    logits, probs = fit.data["logits"], fit.data.probs
    calibrator = TemperatureScaling().fit(logits, fit.classes)
    assert 1 / calibrator.temperature_ == pytest.approx(
        fit.outputs["TS_weight_1_over_T"], abs=PROBABILITIES
    )
    assert_begins(calibrator.predict_proba(logits), fit.outputs["TS_probs"])
    dirichlet = DirichletCalibration("fixed_diagonal", input="probs").fit(probs, fit.classes)
    assert_begins(dirichlet.predict_proba(probs), fit.outputs["TS_probs"])


@each(DIRICHLET, "VS_probs")
def test_vector_scaling_of_dirichletcal(fit: Fit) -> None:
    """Without a penalty the probabilities agree, and the weights relative to the last class."""
    logits = fit.data["logits"]
    calibrator = VectorScaling().fit(logits, fit.classes)
    assert_begins(calibrator.predict_proba(logits), fit.outputs["VS_probs"])
    if fit.data.num_classes > 2:
        ours = np.column_stack((np.diag(calibrator.coef_), calibrator.intercept_))
        theirs = fit.outputs["VS_weights"]
        np.testing.assert_allclose(ours - ours[-1], theirs - theirs[-1], atol=PARAMETERS)


@each(DIRICHLET, "DiagDirichlet_probs", lambda p: p["reg_lambda"] == 0)
def test_diagonal_dirichlet_of_dirichletcal(fit: Fit) -> None:
    """Without a penalty the probabilities of the diagonal map agree."""
    calibrator = DirichletCalibration("diagonal", input="probs").fit(fit.data.probs, fit.classes)
    assert_begins(calibrator.predict_proba(fit.data.probs), fit.outputs["DiagDirichlet_probs"])


def penalties(params: dict[str, Any], classes: int) -> dict[str, float]:
    """Our penalties for dirichletcal's, which has the factors 1/K … with ``reg_norm`` only."""
    normed = params.get("reg_norm", False)
    strength, bias = params["reg_lambda"], params["reg_mu"]
    if bias is None:
        return {"l2": strength * (1 if normed else classes * (classes + 1))}
    return {
        "off_diagonal_l2": strength * (1 if normed else classes * (classes - 1)),
        "bias_l2": bias * (1 if normed else classes),
    }


def same_objective(params: dict[str, Any]) -> bool:
    """Whether the penalty does not depend on the last class, or there is none."""
    return not params["ref_row"] or params["reg_lambda"] == 0


@each(DIRICHLET, "FullDirichlet_objective", same_objective)
def test_full_dirichlet_of_dirichletcal(fit: Fit) -> None:
    """Objective, log loss, probabilities and weights agree, with ODIR, with L2 and without."""
    probs, classes = fit.data.probs, fit.data.num_classes
    calibrator = DirichletCalibration(input="probs", **penalties(fit.params, classes))
    calibrator.fit(probs, fit.classes)
    expected = fit.outputs
    assert calibrator.loss_ == pytest.approx(expected["FullDirichlet_objective"], abs=1e-12)
    calibrated = calibrator.predict_proba(probs)
    assert_begins(calibrated, expected["FullDirichlet_probs"])
    log_loss = -np.log(calibrated[np.arange(len(calibrated)), fit.classes]).mean()
    assert log_loss == pytest.approx(expected["FullDirichlet_logloss"], abs=1e-9)
    ours = np.column_stack((calibrator.coef_, calibrator.intercept_))
    theirs = expected["FullDirichlet_weights"]
    np.testing.assert_allclose(ours - ours[-1], theirs - theirs[-1], rtol=0, atol=PARAMETERS)


@each(DIRICHLET, "FullDirichlet_objective")
def test_objective_at_the_weights_of_dirichletcal(fit: Fit) -> None:
    """At its weights our objective and probabilities are dirichletcal's, whatever the penalty."""
    data, theta = fit.data, fit.outputs["FullDirichlet_weights"]
    classes = data.num_classes
    ours = penalties(fit.params, classes)
    penalty = full_penalty(classes, ours.get("off_diagonal_l2", 0), ours.get("bias_l2", 0))
    penalty += ours.get("l2", 0) / (classes * (classes + 1))
    targets = np.eye(classes)[fit.classes] / len(data.probs)
    objective = LinearLikelihood(np.log(data.probs), targets, penalty)
    loss, likelihood_loss = objective.value(theta)
    assert loss == pytest.approx(fit.outputs["FullDirichlet_objective"], abs=1e-12)
    assert likelihood_loss == pytest.approx(fit.outputs["FullDirichlet_logloss"], abs=1e-12)


@each(DIRICHLET, "MS_ODIR_weights")
def test_matrix_map_of_dirichletcal(fit: Fit) -> None:
    """At its weights our linear map gives dirichletcal's probabilities; its optimum is another."""
    logits = fit.data["logits"]
    z = np.exp(apply_linear(logits, fit.outputs["MS_ODIR_weights"]))
    assert_begins(z / z.sum(axis=1, keepdims=True), fit.outputs["MS_ODIR_probs"], 1e-12)


# others: the first half is fitted, the second calibrated -----------------------------------------


@each(MIX_N_MATCH, "TS_temperature", lambda p: p["loss"] == "ce")
def test_temperature_of_mix_n_match(fit: Fit) -> None:
    """The temperature with the cross-entropy agrees."""
    logits, _ = halves(fit.data["logits"])
    classes, _ = halves(fit.classes)
    calibrator = TemperatureScaling().fit(logits, classes)
    assert calibrator.temperature_ == pytest.approx(fit.outputs["TS_temperature"], abs=PARAMETERS)


@each(MIX_N_MATCH, "TS_probs", lambda p: p["loss"] == "ce")
def test_tempered_probabilities_of_mix_n_match(fit: Fit) -> None:
    """The calibrated probabilities of the second half agree."""
    fitted, others = halves(fit.data["logits"])
    classes, _ = halves(fit.classes)
    calibrator = TemperatureScaling().fit(fitted, classes)
    assert_begins(calibrator.predict_proba(others), fit.outputs["TS_probs"])


@each(MIX_N_MATCH, "IROvA_probs")
def test_isotonic_one_against_rest_of_mix_n_match(fit: Fit) -> None:
    """One isotonic map per class, whose rows we divide by their sum."""
    fitted, others = halves(fit.data.probs)
    classes, _ = halves(fit.classes)
    calibrator = IsotonicCalibration(input="probs").fit(fitted, classes)
    theirs = fit.outputs["IROvA_probs"]
    theirs = theirs / theirs.sum(axis=1, keepdims=True)
    assert_begins(calibrator.predict_proba(others), theirs)


@each(NN_CALIBRATION, "TS_temperature")
def test_temperature_of_nn_calibration(fit: Fit) -> None:
    """Temperature and probabilities agree within its finite differences."""
    fitted, others = halves(fit.data["logits"])
    classes, _ = halves(fit.classes)
    calibrator = TemperatureScaling().fit(fitted, classes)
    assert calibrator.temperature_ == pytest.approx(fit.outputs["TS_temperature"], abs=PARAMETERS)
    assert_begins(calibrator.predict_proba(others), fit.outputs["TS_probs"], 1e-5)


@each(NN_CALIBRATION, "HistBin_class1_conf")
def test_histogram_binning_of_nn_calibration(fit: Fit) -> None:
    """The frequency of class 1 agrees in every bin that holds a case, and so do predictions."""
    fitted, others = (half[:, 1] for half in halves(fit.data.probs))
    classes, _ = halves(fit.classes)
    calibrator = HistogramBinning(fit.params["M"], input="probs")
    calibrator.fit(fitted, (classes == 1).astype(int))
    # (a, b] there and [a, b) here: no probability of these sets lies on an edge.
    held = np.histogram(fitted, fit.params["M"], (0, 1))[0] > 0
    theirs = fit.outputs["HistBin_class1_conf"]
    np.testing.assert_allclose(calibrator.values_[0][held], theirs[held], rtol=0, atol=1e-12)
    predicted = fit.outputs["HistBin_class1_pred"]
    ours = calibrator.predict_proba(others)[: len(predicted), 1]
    known = held[np.minimum((others * fit.params["M"]).astype(int), fit.params["M"] - 1)]
    known = known[: len(predicted)]
    assert known.any()
    np.testing.assert_allclose(ours[known], predicted[known], rtol=0, atol=1e-12)

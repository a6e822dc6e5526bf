"""How well the raters' disagreement is predicted, and what one more label brings."""

from __future__ import annotations

from raterwise.catalog import common
from raterwise.metric import Metric
from raterwise.metrics import proper
from raterwise.recipes import common as recipes

IMPOSSIBLE = "no member of the ensemble gives any probability to what an expert says of a case"

ROWS = (
    Metric(
        "disagreement_loss", "Disagreement loss", "Disagreement",
        "Squared loss of the predicted probability that two raters differ.",
        "lower", "LH eq 40",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.expected_squared_loss,
        least_raters=2,
        shape="loss", bounds=common.UNIT,
    ),
    Metric(
        "disagreement_calibration_loss", "Disagreement calibration loss", "Disagreement",
        "Squared gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.calibration_loss,
        options=common.LH, formula_options=("estimator", "singletons"), least_raters=2, error=True,
        bounds=common.UNIT,
    ),
    Metric(
        "disagreement_calibration_error", "Disagreement calibration error", "Disagreement",
        "Typical gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.calibration_error,
        options=common.LH, formula_options=("estimator", "singletons"), least_raters=2, error=True,
        bounds=common.UNIT, curve="disagreement",
    ),
    Metric(
        "prior_epistemic_loss", "Epistemic loss before an expert label", "Disagreement",
        "Epistemic loss of the belief's mean, against the raters that are left when one is set "
        "aside.",
        "lower", "LH Table 2", plan=recipes.per_case("prior_epistemic_loss", 3),
        formula=proper.mean_score, least_raters=3, needs="belief",
    ),
    Metric(
        "posterior_epistemic_loss", "Epistemic loss after an expert label", "Disagreement",
        "The same after the belief has seen the label of the rater set aside.",
        "lower", "LH Table 2", plan=recipes.per_case("posterior_epistemic_loss", 3),
        formula=proper.mean_score, least_raters=3, needs="belief",
        undefined=IMPOSSIBLE,
    ),
    Metric(
        "posterior_gain", "Gain from an expert label", "Disagreement",
        "How much an expert's label lowers the epistemic loss: before minus after.",
        "higher", "LH Table 2", plan=recipes.per_case("posterior_gain", 3),
        formula=proper.mean_score, least_raters=3, needs="belief",
        undefined=IMPOSSIBLE,
    ),
)  # fmt: skip

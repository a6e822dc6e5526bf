"""Losses from several labels per case: what the model gets wrong, and what the raters do.

Then how well the raters' disagreement is predicted, and what one more label brings.
"""

from __future__ import annotations

import math

from raterwise.catalog import common
from raterwise.catalog.metric import Metric
from raterwise.catalog.recipes import common as recipes
from raterwise.catalog.recipes import steps
from raterwise.metrics import proper

IMPOSSIBLE = "no member of the ensemble gives any probability to what an expert says of a case"

ROWS = (
    Metric(
        "expected_squared_loss", "Expected squared loss", "Label histograms",
        "The squared loss against one rater drawn at random: epistemic plus irreducible.",
        "lower", "LH eq 8",
        plan=recipes.binned("per_class", "case"), formula=proper.expected_squared_loss,
        label_loss=recipes.squares_of_label, tags=common.BY_CLASS,
        shape="loss", step=steps.step_of_classes, bounds=(0.0, 2.0),
    ),
    Metric(
        "epistemic_loss", "Epistemic loss", "Label histograms",
        "How far the probabilities are from how often raters truly choose each class: the part of "
        "the loss that a better model could avoid.",
        "lower", "LH eqs 9-10",
        plan=recipes.binned("per_class", "case", 2), formula=proper.epistemic_loss,
        options={"estimator": "unbiased"},
        tags=common.BY_CLASS, shape="signed_loss", step=steps.step_of_epistemic,
        bounds=(-math.inf, 2.0),
    ),
    Metric(
        "irreducible_loss", "Irreducible loss", "Label histograms",
        "The part of the squared loss that is the raters' own disagreement.",
        "none", "LH eq 6",
        plan=recipes.binned("per_class", "case", 2), formula=proper.irreducible_loss,
        tags=common.BY_CLASS, bounds=common.UNIT,
    ),
    Metric(
        "calibration_loss", "Calibration loss", "Label histograms",
        "Squared gap between predicted and observed frequencies, summed over classes.",
        "lower", "LH eqs 13-14",
        plan=recipes.binned("per_class", "case"), formula=proper.calibration_loss,
        options=common.LH, error=True, bounds=(0.0, 2.0), tags=common.BY_CLASS,
    ),
    Metric(
        "calibration_error", "Calibration error", "Label histograms",
        "Root of the calibration loss: the typical gap, summed over classes.",
        "lower", "LH eqs 1, 11-14",
        plan=recipes.binned("per_class", "case"), formula=proper.calibration_error,
        options=common.LH, error=True,
        bounds=(0.0, math.sqrt(2)), tags=common.BY_CLASS | {"by_level"},
    ),
    Metric(
        "dispersion_loss", "Dispersion loss", "Label histograms",
        "How much the truth varies among cases that get the same probability.",
        "lower", "LH eqs 33-36",
        plan=recipes.binned("per_class", "case", 2), formula=proper.dispersion_loss,
        options=common.LH, tags=common.BY_CLASS | {"variance"},
    ),
    Metric(
        "refinement_loss", "Refinement loss", "Label histograms",
        "The squared loss that would be left if every bin were calibrated.",
        "lower", "LH eq 5",
        plan=recipes.binned("per_class", "case"), formula=proper.refinement_loss,
        options=common.LH, bounds=(0.0, 2.0), in_all=False, tags=common.BY_CLASS,
    ),
    Metric(
        "grouping_loss", "Grouping loss", "Label histograms",
        "How much the raters' true frequencies vary among the cases of a bin.",
        "lower", "LH eq 6, appendix B.4; Kull & Flach 2015",
        plan=recipes.binned("per_class", "case", 2), formula=proper.grouping_loss,
        options={"bins": 15, "estimator": "debiased"},
        in_all=False, tags=common.BY_CLASS | {"variance"},
    ),
    Metric(
        "disagreement_loss", "Disagreement loss", "Disagreement",
        "Squared loss of the predicted probability that two raters differ.",
        "lower", "LH eq 40",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.expected_squared_loss,
        shape="loss", step=steps.step_of_squares, bounds=common.UNIT,
    ),
    Metric(
        "disagreement_calibration_loss", "Disagreement calibration loss", "Disagreement",
        "Squared gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.calibration_loss,
        options=common.LH, error=True, bounds=common.UNIT,
    ),
    Metric(
        "disagreement_calibration_error", "Disagreement calibration error", "Disagreement",
        "Typical gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.calibration_error,
        options=common.LH, error=True, bounds=common.UNIT, curve="disagreement",
    ),
    Metric(
        "prior_epistemic_loss", "Epistemic loss before an expert label", "Disagreement",
        "Epistemic loss of the belief's mean, against the raters that are left when one is set "
        "aside.",
        "lower", "LH Table 2", plan=recipes.per_case("prior_epistemic_loss", 3),
        formula=proper.mean_score, needs="belief",
    ),
    Metric(
        "posterior_epistemic_loss", "Epistemic loss after an expert label", "Disagreement",
        "The same after the belief has seen the label of the rater set aside.",
        "lower", "LH Table 2", plan=recipes.per_case("posterior_epistemic_loss", 3),
        formula=proper.mean_score, needs="belief", undefined=IMPOSSIBLE,
    ),
    Metric(
        "posterior_gain", "Gain from an expert label", "Disagreement",
        "How much an expert's label lowers the epistemic loss: before minus after.",
        "higher", "LH Table 2", plan=recipes.per_case("posterior_gain", 3),
        formula=proper.mean_score, needs="belief", undefined=IMPOSSIBLE,
    ),
)  # fmt: skip

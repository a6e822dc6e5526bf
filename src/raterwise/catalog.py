"""The catalog: one row per metric. Functions, `evaluate`, the laws and the docs all read it.

A row says which summary a metric needs (`plan`), how that becomes a table (`prepare`), and the
formula over the table. The same formula gives the estimate and, over resampled tables, its
interval: by test inversion for non-negative errors, by leaving out one unit at a time for the rest.
"""

from __future__ import annotations

import math

from raterwise import recipes
from raterwise.errors import InvalidInputError
from raterwise.metric import Metric
from raterwise.metrics import agreement, calibration, cell_bounds, proper, ranking

__all__ = ["CATALOG", "Metric", "find"]


def find(name: str) -> Metric:
    """Return the row of a metric by its name."""
    try:
        return CATALOG[name]
    except KeyError:
        known = ", ".join(CATALOG)
        raise InvalidInputError(f"metrics: no metric is called {name!r}; known: {known}") from None


_TOP = {"bins": 15, "question": "top_label", "per": "annotation"}
_ANY = ("top_label", "positive", "per_class", "predicted_class")
_ONE = ("top_label", "positive")
_BY_CLASS = frozenset({"by_class", "plugin_needs_one"})
_UNIT = (0.0, 1.0)
_POSITIVE = (0.0, math.inf)
_LH = {"bins": 15, "estimator": "debiased", "singletons": "zero"}

_ROWS = (
    Metric(
        "accuracy", "Accuracy", "Proper scores",
        "How often the predicted class is what a rater says.",
        "higher", "LH section 7",
        plan=recipes.binned("top_label", "case"), formula=proper.mean_hit, options={"per": "case"},
        label_loss=recipes.hit_of_label, tags=frozenset({"by_level"}),
        shape="proportion", bounds=_UNIT,
    ),
    Metric(
        "brier", "Brier score", "Proper scores",
        "Mean squared distance between the probabilities and what a rater says.",
        "lower", "Brier 1950; LH eqs 3-4, 8",
        plan=recipes.binned("per_class", "case"), formula=proper.brier,
        options={"per": "case", "scale_by_half": "auto"}, formula_options=("scale_by_half",),
        label_loss=recipes.halved_squares_of_label, tags=frozenset({"by_level"}),
        shape="loss", step=recipes.halved_step_of_squares, bounds=_POSITIVE,
    ),
    Metric(
        "nll", "Negative log-likelihood", "Proper scores",
        "Mean of -log of the probability given to what a rater says.",
        "lower", "LH eq 82",
        plan=recipes.per_case("log"), formula=proper.mean_score, options={"per": "case"},
        undefined="it is infinite: a class that a rater chose was given the probability 0",
        label_loss=recipes.log_of_label,
        shape="loss", step=recipes.step_of_log, step_plan=recipes.CONFIDENCE, bounds=_POSITIVE,
    ),
    Metric(
        "ranked_probability_score", "Ranked probability score", "Proper scores",
        "Mean squared distance between cumulative probabilities, for ordered classes.",
        "lower", "Epstein 1969; Murphy 1971",
        plan=recipes.per_case("ranked"), formula=proper.mean_score, options={"per": "case"},
        in_all=False,
        shape="loss", bounds=_POSITIVE,
    ),
    Metric(
        "expected_squared_loss", "Expected squared loss", "Label histograms",
        "The squared loss against one rater drawn at random: epistemic plus irreducible.",
        "lower", "LH eq 8",
        plan=recipes.binned("per_class", "case"), formula=proper.expected_squared_loss,
        label_loss=recipes.squares_of_label, tags=_BY_CLASS,
        shape="loss", step=recipes.step_of_squares, bounds=(0.0, 2.0),
    ),
    Metric(
        "epistemic_loss", "Epistemic loss", "Label histograms",
        "How far the probabilities are from the raters' true frequencies: what a model can win.",
        "lower", "LH eqs 9-10",
        plan=recipes.binned("per_class", "case", 2), formula=proper.epistemic_loss,
        options={"estimator": "unbiased"}, formula_options=("estimator",), least_raters=2,
        tags=_BY_CLASS,
    ),
    Metric(
        "irreducible_loss", "Irreducible loss", "Label histograms",
        "The part of the squared loss that is the raters' own disagreement.",
        "none", "LH eq 6",
        plan=recipes.binned("per_class", "case", 2), formula=proper.irreducible_loss,
        least_raters=2,
        tags=_BY_CLASS,
        bounds=_UNIT,
    ),
    Metric(
        "calibration_loss", "Calibration loss", "Label histograms",
        "Squared gap between predicted and observed frequencies, summed over classes.",
        "lower", "LH eqs 13-14",
        plan=recipes.binned("per_class", "case"), formula=proper.calibration_loss,
        options=_LH, formula_options=("estimator", "singletons"), error=True, bounds=(0.0, 2.0),
        tags=_BY_CLASS,
    ),
    Metric(
        "calibration_error", "Calibration error", "Label histograms",
        "Root of the calibration loss: the typical gap, summed over classes.",
        "lower", "LH eqs 1, 11-14",
        plan=recipes.binned("per_class", "case"), formula=proper.calibration_error,
        options=_LH, formula_options=("estimator", "singletons"), error=True,
        bounds=(0.0, math.sqrt(2)), tags=_BY_CLASS | {"by_level"},
    ),
    Metric(
        "dispersion_loss", "Dispersion loss", "Label histograms",
        "How much the truth varies among cases that get the same probability.",
        "lower", "LH eqs 33-36",
        plan=recipes.binned("per_class", "case", 2), formula=proper.dispersion_loss,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2,
        tags=_BY_CLASS | {"variance"},
    ),
    Metric(
        "disagreement_loss", "Disagreement loss", "Disagreement",
        "Squared loss of the predicted probability that two raters differ.",
        "lower", "LH eq 40",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.expected_squared_loss,
        least_raters=2,
        shape="loss", bounds=_UNIT,
    ),
    Metric(
        "disagreement_calibration_loss", "Disagreement calibration loss", "Disagreement",
        "Squared gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.calibration_loss,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2, error=True,
        bounds=_UNIT,
    ),
    Metric(
        "disagreement_calibration_error", "Disagreement calibration error", "Disagreement",
        "Typical gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.calibration_error,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2, error=True,
        bounds=_UNIT, curve="disagreement",
    ),
    Metric(
        "prior_epistemic_loss", "Epistemic loss before an expert label", "Disagreement",
        "Epistemic loss of the belief's mean, against the raters that are left when one is set "
        "aside.",
        "lower", "LH Table 2", plan=recipes.per_case("prior_epistemic_loss", 3),
        formula=proper.mean_score, least_raters=3, needs_belief=True,
    ),
    Metric(
        "posterior_epistemic_loss", "Epistemic loss after an expert label", "Disagreement",
        "The same after the belief has seen the label of the rater set aside.",
        "lower", "LH Table 2", plan=recipes.per_case("posterior_epistemic_loss", 3),
        formula=proper.mean_score, least_raters=3, needs_belief=True,
    ),
    Metric(
        "posterior_gain", "Gain from an expert label", "Disagreement",
        "How much an expert's label lowers the epistemic loss: before minus after.",
        "higher", "LH Table 2", plan=recipes.per_case("posterior_gain", 3),
        formula=proper.mean_score, least_raters=3, needs_belief=True,
    ),
    Metric(
        "ece", "Expected calibration error", "Calibration",
        "Mean gap between confidence and how often raters agree, over bins of confidence.",
        "lower", "RECE eq 2; MR eq 5",
        plan=recipes.binned("top_label"), formula=calibration.ece, options=_TOP, error=True,
        bounds=_UNIT, questions=_ANY, curve="top_label", tags=frozenset({"by_level"}),
    ),
    Metric(
        "mce", "Maximum calibration error", "Calibration",
        "The largest gap of any bin; very noisy when bins hold few cases.",
        "lower", "Naeini et al. 2015",
        plan=recipes.binned("top_label"), formula=calibration.mce, options=_TOP, error=True,
        bounds=_UNIT, questions=_ANY,
    ),
    Metric(
        "rms_ce", "RMS calibration error", "Calibration",
        "Root mean squared gap between confidence and agreement over bins.",
        "lower", "Kumar et al. 2019",
        plan=recipes.binned("top_label"), formula=calibration.rms_ce, options=_TOP, error=True,
        bounds=_UNIT, questions=_ANY,
    ),
    Metric(
        "adaptive_ece", "Adaptive ECE", "Calibration",
        "ECE over bins that hold equally many cases.",
        "lower", "Nguyen & O'Connor 2015",
        plan=recipes.sorted_scores, options=_TOP, error=True, bounds=_UNIT, questions=_ANY,
        **recipes.binned_cells(
            calibration.ece,
            recipes.by_edges(lambda s, o: calibration.adaptive_edges(s, o["bins"])),
            cell_bounds.adaptive,
        ),
    ),
    Metric(
        "ece_sweep", "ECE-sweep", "Calibration",
        "ECE over as many equal-mass bins as keep the observed frequency increasing.",
        "lower", "Roelofs et al. 2022",
        plan=recipes.sorted_scores, error=True, bounds=_UNIT, questions=_ANY,
        **recipes.binned_cells(
            calibration.ece,
            recipes.by_edges(lambda s, o: calibration.sweep_edges(s)),
            cell_bounds.sweep,
        ),
        options={"question": "top_label", "per": "annotation"},
    ),
    Metric(
        "classwise_ece", "Class-wise ECE", "Calibration",
        "ECE of every class's probability, all cases, averaged over the classes.",
        "lower", "Kull et al. 2019",
        plan=recipes.binned("per_class"), formula=calibration.ece,
        options={"bins": 15, "per": "annotation"}, error=True, bounds=_UNIT,
        curve="per_class", tags=frozenset({"by_class"}),
    ),
    Metric(
        "sce", "Static calibration error", "Calibration",
        "ECE within the cases predicted as each class, averaged over the classes.",
        "lower", "RECE eqs 4-5",
        plan=recipes.binned("predicted_class"), formula=calibration.sce,
        options={"bins": 15, "per": "annotation"}, error=True, bounds=_UNIT,
    ),
    Metric(
        "robust_ece", "Robust ECE (RECE-G)", "Calibration",
        "ECE with each confidence spread by a Gaussian; steadier on small sets.",
        "lower", "RECE eq 6",
        plan=recipes.soft_binned, formula=calibration.robust_ece, error=True, bounds=_UNIT,
        options={**_TOP, "sigma": 0.1, "observed_bins_only": False},
        formula_options=("observed_bins_only",),
        questions=_ANY,
    ),
    Metric(
        "ks_error", "KS calibration error", "Calibration",
        "The largest cumulative gap between confidence and agreement; needs no bins.",
        "lower", "Gupta et al. 2021",
        plan=recipes.sorted_scores, prepare=recipes.by_edges(recipes.in_cells),
        formula=calibration.ks_error, exact=recipes.exact_ks,
        of_cells=recipes.from_cells(recipes.exact_ks, cell_bounds.ks), questions=_ANY,
        options={"question": "top_label", "per": "annotation"}, error=True, bounds=_UNIT,
    ),
    Metric(
        "smooth_ece", "Smooth ECE", "Calibration",
        "Gap between confidence and agreement after smoothing; chooses its own bandwidth.",
        "lower", "Błasiok & Nakkiran 2024",
        plan=recipes.sorted_scores, prepare=recipes.smoothed(recipes.gaussian_smoother),
        formula=calibration.ece, exact=recipes.smooth_value,
        of_cells=recipes.from_cells(recipes.smooth_value, cell_bounds.smooth), questions=_ONE,
        options={"question": "top_label", "per": "annotation"}, error=True, bounds=_UNIT,
    ),
    Metric(
        "kde_ece", "KDE-ECE", "Calibration",
        "Mean gap between confidence and the agreement that a kernel estimates from other cases.",
        "lower", "Popordanoska et al. 2022; MR section 2.2",
        plan=recipes.sorted_scores, prepare=recipes.smoothed(recipes.beta_smoother),
        formula=recipes.kde_norm, formula_options=("p",), exact=recipes.kde_with_bound,
        settle=recipes.with_bandwidth, notice=recipes.about_bandwidth,
        of_cells=cell_bounds.kde_of_cells, questions=_ONE, tags=frozenset({"kernel", "of_cases"}),
        options={
            "question": "top_label", "per": "annotation", "p": 1, "bandwidth": None,
            "leave_out": "case", "method": "auto",
        },
        error=True, bounds=_UNIT, undefined="it needs two cases, to compare one with the other",
    ),
    Metric(
        "auccc", "AUCCC", "Ranking",
        "How well confidence separates right from wrong predictions (0.5 is chance).",
        "higher", "CCC section 2.2",
        undefined="every prediction is right, or every one is wrong",
        curve="thresholds",
        tags=frozenset({"by_level"}), **recipes.of_ranks(ranking.auccc, cell_bounds.auccc),
        shape="separation", bounds=_UNIT,
        meaning_of_event="How well the probability separates the raters' yes from their no.",
    ),
    Metric(
        "aurc", "AURC", "Ranking",
        "Mean error rate among the most confident cases, over all coverages.",
        "lower", "Geifman & El-Yaniv 2017", **recipes.of_ranks(ranking.aurc, cell_bounds.aurc),
        shape="loss", step=lambda table: {"step": 1.0, "squared_step": 2.0}, bounds=_UNIT,
        meaning_of_event="Mean share of no among the highest probabilities, over all coverages.",
    ),
    Metric(
        "augrc", "AUGRC", "Ranking",
        "Mean risk of an undetected error, over all coverages.",
        "lower", "Traub et al. 2024", **recipes.of_ranks(ranking.augrc, cell_bounds.augrc),
        shape="loss", step=lambda table: {"step": 1 / 2, "squared_step": 1 / 3}, bounds=(0.0, 0.5),
        meaning_of_event="Mean share of all cases that are no and among the highest probabilities.",
    ),
    Metric(
        "fleiss_kappa", "Fleiss' kappa", "Rater agreement",
        "Agreement of the raters beyond chance (1 is perfect, 0 is chance).",
        "none", "Fleiss 1971; Fleiss, Levin & Paik 2003",
        plan=recipes.agreement_plan, formula=lambda table: agreement.fleiss_from_sums(table.fleiss),
        least_raters=2, undefined="all labels are of one class",
        tags=frozenset({"of_pairs"}),
        bounds=(-1.0, 1.0),
    ),
    Metric(
        "krippendorff_alpha", "Krippendorff's alpha", "Rater agreement",
        "Agreement of the raters beyond chance; takes any number of labels per case.",
        "none", "Krippendorff 2011",
        plan=recipes.agreement_plan, formula=recipes.krippendorff, options={"scale": "nominal"},
        formula_options=("scale",),
        undefined="no two labels can be paired, or all are of one class",
        tags=frozenset({"of_pairs"}),
        bounds=(-math.inf, 1.0),
    ),
)  # fmt: skip

CATALOG: dict[str, Metric] = {row.name: row for row in _ROWS}

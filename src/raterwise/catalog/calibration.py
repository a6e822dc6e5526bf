"""Calibration errors: over bins, over ranks, smoothed."""

from __future__ import annotations

import math

from raterwise.catalog import common
from raterwise.catalog.metric import Metric
from raterwise.catalog.recipes import common as recipes
from raterwise.catalog.recipes import peers as peer_recipes
from raterwise.metrics import calibration, cell_bounds, proper

ROWS = (
    Metric(
        "ece", "Expected calibration error", "Calibration",
        "Mean gap between confidence and how often raters agree, over bins of confidence.",
        "lower", "RECE eq 2; MR eq 5",
        plan=peer_recipes.normed(recipes.binned("top_label")), formula=calibration.norm_error,
        options={**common.TOP, "norm": 1}, error=True,
        norm=lambda options: float(options["norm"]),
        bounds=common.UNIT, questions=common.ANY, curve="top_label", tags=frozenset({"by_level"}),
        meaning_of_event="Mean gap between the probability of a class and how often raters choose "
        "it, over bins of probability.",
        headline=(None, 3),
    ),
    Metric(
        "mce", "Maximum calibration error", "Calibration",
        "The largest gap of any bin; very noisy when bins hold few cases.",
        "lower", "Naeini et al. 2015",
        plan=recipes.binned("top_label"), formula=calibration.mce, options=common.TOP, error=True,
        norm=lambda options: math.inf,
        bounds=common.UNIT, questions=common.ANY,
    ),
    Metric(
        "rms_ce", "RMS calibration error", "Calibration",
        "Root mean squared gap between confidence and agreement over bins.",
        "lower", "Kumar et al. 2019",
        plan=recipes.binned("top_label"), formula=calibration.rms_ce, options=common.TOP,
        norm=lambda options: 2.0,
        error=True, bounds=common.UNIT, questions=common.ANY,
        meaning_of_event="Root mean squared gap between the probability of a class and how often "
        "raters choose it, over bins.",
    ),
    Metric(
        "adaptive_ece", "Adaptive ECE", "Calibration",
        "ECE over bins that hold equally many cases.",
        "lower", "Nguyen & O'Connor 2015",
        plan=recipes.sorted_scores, options=common.TOP, error=True, bounds=common.UNIT,
        questions=common.ANY,
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
        plan=recipes.sorted_scores, error=True, bounds=common.UNIT, questions=common.ANY,
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
        options={"bins": 15, "per": "annotation"}, error=True, bounds=common.UNIT,
        curve="per_class", tags=frozenset({"by_class"}),
        headline=(3, 4),
    ),
    Metric(
        "sce", "Static calibration error", "Calibration",
        "ECE within the cases predicted as each class, averaged over the classes.",
        "lower", "RECE eqs 4-5",
        plan=recipes.binned("predicted_class"), formula=calibration.sce,
        options={"bins": 15, "per": "annotation"}, error=True, bounds=common.UNIT,
    ),
    Metric(
        "robust_ece", "Robust ECE (RECE-G)", "Calibration",
        "ECE with each confidence spread by a Gaussian; steadier on small sets.",
        "lower", "RECE eq 6",
        plan=recipes.soft_binned, formula=calibration.robust_ece, error=True, bounds=common.UNIT,
        options={**common.TOP, "sigma": 0.1, "observed_bins_only": False}, questions=common.ANY,
        meaning_of_event="ECE with each probability spread by a Gaussian; steadier on small sets.",
    ),
    Metric(
        "robust_ece_mixture", "Robust ECE (RECE-M)", "Calibration",
        "ECE with each case spread by a mixture fitted to its draws from an ensemble.",
        "lower", "RECE eq 7",
        plan=recipes.mixture_binned, formula=calibration.robust_ece, error=True, bounds=common.UNIT,
        options={
            "bins": 15, "per": "annotation", "components": 3, "seed": 0,
            "observed_bins_only": False,
        },
        needs="samples",
    ),
    Metric(
        "ks_error", "KS calibration error", "Calibration",
        "The largest cumulative gap between confidence and agreement; needs no bins.",
        "lower", "Gupta et al. 2021",
        meaning_of_event="The largest cumulative gap between the probability of a class and how "
        "often raters choose it; needs no bins.",
        plan=recipes.sorted_scores, prepare=recipes.by_edges(recipes.in_cells),
        formula=calibration.ks_error, exact=recipes.exact_ks,
        of_cells=recipes.from_cells(recipes.exact_ks, cell_bounds.ks), questions=common.ANY,
        options={"question": "top_label", "per": "annotation"}, error=True, bounds=common.UNIT,
    ),
    Metric(
        "smooth_ece", "Smooth ECE", "Calibration",
        "Gap between confidence and agreement after smoothing; chooses its own bandwidth.",
        "lower", "Błasiok & Nakkiran 2024",
        meaning_of_event="Gap between the probability of a class and how often raters choose it, "
        "after smoothing; chooses its own bandwidth.",
        plan=recipes.sorted_scores, prepare=recipes.smoothed(recipes.gaussian_smoother),
        formula=calibration.ece, exact=recipes.smooth_value,
        of_cells=recipes.from_cells(recipes.smooth_value, cell_bounds.smooth), questions=common.ONE,
        options={"question": "top_label", "per": "annotation"}, error=True, bounds=common.UNIT,
    ),
    Metric(
        "kde_ece", "KDE-ECE", "Calibration",
        "Mean gap between confidence and the agreement that a kernel estimates from other cases.",
        "lower", "Popordanoska et al. 2022; MR section 2.2",
        meaning_of_event="Mean gap between the probability of a class and how often raters choose "
        "it, as a kernel estimates it from other cases.",
        plan=recipes.kernel_scores, prepare=recipes.smoothed(recipes.beta_smoother),
        formula=recipes.kde_norm, exact=recipes.kde_with_bound, growing=recipes.kde_of_parts,
        settle=recipes.with_bandwidth, notice=recipes.about_bandwidth,
        of_cells=cell_bounds.kde_of_cells, questions=(*common.ONE, "per_class", "canonical"),
        tags=frozenset({"kernel", "of_cases"}),
        options={
            "question": "top_label", "per": "annotation", "p": 1, "bandwidth": None,
            "leave_out": "case", "method": "auto", "floor": 0.0, "seed": 0,
        },
        error=True, bounds=common.UNIT,
        undefined="it needs two cases, to compare one with the other",
    ),
    Metric(
        "debiased_ece", "Debiased ECE", "Calibration",
        "ECE minus the contribution of chance to the gaps of its bins.",
        "lower", "Kumar et al. 2019",
        plan=peer_recipes.debiased_binned, formula=calibration.debiased_ece,
        options={"bins": 15, "question": "top_label", "norm": 1, "estimator": "debiased"},
        error=True, bounds=common.UNIT,
        questions=("top_label", "positive", "per_class"), in_all=False,
    ),
    Metric(
        "average_calibration_error", "Average calibration error", "Calibration",
        "Mean gap over the bins with cases, each bin counting the same.",
        "lower", "Neumann et al. 2018",
        plan=recipes.binned("top_label"), formula=calibration.average_calibration_error,
        options=common.TOP, error=True, bounds=common.UNIT, questions=common.ANY, in_all=False,
        tags=frozenset({"other_scale"}),
    ),
    Metric(
        "canonical_ece", "Canonical ECE", "Calibration",
        "Gap between all class probabilities and frequencies, over cells of the whole vector.",
        "lower", "Vaicenavicius et al. 2019",
        plan=peer_recipes.normed(peer_recipes.simplex_binned),
        prepare=peer_recipes.in_simplex_cells,
        formula=calibration.canonical_ece,
        options={"bins": 15, "per": "annotation", "norm": 1}, error=True, bounds=(0.0, 2.0),
        in_all=False,
        tags=frozenset({"other_scale"}),
    ),
    Metric(
        "kuiper_error", "Kuiper's calibration error", "Calibration",
        "The largest gap between confidence and agreement over any range of confidence.",
        "lower", "Arrieta-Ibarra et al. 2022",
        plan=recipes.sorted_scores, prepare=recipes.by_edges(recipes.in_cells),
        formula=calibration.kuiper_error, exact=peer_recipes.exact_kuiper,
        of_cells=recipes.from_cells(peer_recipes.exact_kuiper, cell_bounds.kuiper),
        questions=common.ANY, options={"question": "top_label", "per": "annotation"},
        error=True, bounds=common.UNIT, in_all=False,
    ),
    Metric(
        "kernel_calibration_error", "Squared kernel calibration error", "Calibration",
        "Whether cases of similar confidence are off in the same direction, over all pairs.",
        "lower", "Widmann et al. 2019; Kumar et al. 2018",
        plan=peer_recipes.kernel_cases, prepare=peer_recipes.kernel_tables,
        formula=calibration.kernel_error, exact=peer_recipes.kernel_pairs,
        of_cells=cell_bounds.kernel_of_cells, questions=(*common.ONE, "per_class", "canonical"),
        products=peer_recipes.kernel_products,
        options={"question": "top_label", "bandwidth": 0.4, "estimator": "debiased"},
        error=True, bounds=(0.0, 2.0), most=recipes.most_of_kernels,  # all of them sure and wrong
        in_all=False, tags=frozenset({"of_cases", "other_scale"}),
        undefined="it needs two cases, to compare one with the other", test="signs",
    ),
    Metric(
        "spiegelhalter_z", "Spiegelhalter's z", "Calibration",
        "How many standard errors the squared loss is above its expected value.",
        "none", "Spiegelhalter 1986",
        plan=recipes.per_case("spiegelhalter"), formula=proper.spiegelhalter_z,
        options={"per": "case"},
        undefined="no probability leaves the squared loss any room (all are 0, 1 or equal)",
        in_all=False, test="normal", calibrated=0.0,
    ),
)  # fmt: skip

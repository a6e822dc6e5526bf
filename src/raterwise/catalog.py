"""The catalog: one row per metric. Functions, `evaluate`, the laws and the docs all read it.

A row says which summary a metric needs (`plan`), how that becomes a table (`prepare`), and the
formula over the table. The same formula gives the estimate and, over resampled tables, its
interval: by test inversion for non-negative errors, by bootstrap for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from raterwise import recipes
from raterwise.errors import InvalidInputError
from raterwise.metrics import agreement, calibration, proper, ranking
from raterwise.recipes import Options, Prepare

__all__ = ["CATALOG", "Metric", "find"]


def _as_it_is(summary: Any, options: Options, like: Any = None) -> Any:
    return summary


@dataclass(frozen=True)
class Metric:
    """One metric: its words, its summary, its formula."""

    name: str
    title: str
    group: str
    meaning: str
    direction: str
    """"lower" or "higher" is better; "none" where it describes the data."""
    reference: str
    plan: Callable[[Options], Any]
    formula: Callable[..., NDArray[Any]]
    """formula(table, **options) -> array over the table's leading axes."""
    prepare: Prepare = field(default=_as_it_is)
    value: Callable[[Any, Options], float] | None = None
    """The value of the summary, where the table for the interval is coarser."""
    bounded_value: Callable[[Any, Options], tuple[float, float]] | None = None
    """The same with a bound on its error, where it is an approximation."""
    options: Options = field(default_factory=dict)
    formula_options: tuple[str, ...] = ()
    least_raters: int = 1
    error: bool = False
    """A non-negative calibration error: its interval inverts a test."""
    undefined: str = "it has no value on these data"
    in_all: bool = True
    needs_belief: bool = False
    """Defined for a belief over class probabilities, not for bare probabilities."""

    def estimate(self, summary: Any, options: Options) -> float:
        """Return the value of the metric."""
        return self.estimate_with_bound(summary, options)[0]

    def estimate_with_bound(self, summary: Any, options: Options) -> tuple[float, float | None]:
        """Return the value and, where it is an approximation, a bound on its error."""
        if self.bounded_value is not None:
            return self.bounded_value(summary, options)
        if self.value is not None:
            return float(self.value(summary, options)), None
        return float(self.over(self.prepare(summary, options).table, options)), None

    def over(self, table: Any, options: Options) -> NDArray[Any]:
        """Return the formula over a table or a stack of resampled tables."""
        return self.formula(table, **{name: options[name] for name in self.formula_options})

    @property
    def of_pairs(self) -> bool:
        """Whether it compares raters with each other."""
        return self.least_raters > 1 or self.group == "Rater agreement"

    def raters_needed(self, options: Options) -> int:
        """Return how many labels each case needs; the plugin of a class's probability needs one."""
        plugin = options.get("estimator") == "plugin" and self.group == "Label histograms"
        return 1 if plugin else self.least_raters

    def with_defaults(self, given: Options) -> dict[str, Any]:
        """Return the options of this metric, as given or by default."""
        return {name: given.get(name, default) for name, default in self.options.items()}


def find(name: str) -> Metric:
    """Return the row of a metric by its name."""
    try:
        return CATALOG[name]
    except KeyError:
        known = ", ".join(CATALOG)
        raise InvalidInputError(f"metrics: no metric is called {name!r}; known: {known}") from None


_TOP = {"bins": 15, "question": "top_label", "per": "annotation"}
_LH = {"bins": 15, "estimator": "debiased", "singletons": "zero"}

_ROWS = (
    Metric(
        "accuracy", "Accuracy", "Proper scores",
        "How often the predicted class is what a rater says.",
        "higher", "LH section 7",
        plan=recipes.binned("top_label", "case"), formula=proper.mean_hit, options={"per": "case"},
    ),
    Metric(
        "brier", "Brier score", "Proper scores",
        "Mean squared distance between the probabilities and what a rater says.",
        "lower", "Brier 1950; LH eqs 3-4, 8",
        plan=recipes.binned("per_class", "case"), formula=proper.brier,
        options={"per": "case", "scale_by_half": "auto"}, formula_options=("scale_by_half",),
    ),
    Metric(
        "nll", "Negative log-likelihood", "Proper scores",
        "Mean of -log of the probability given to what a rater says.",
        "lower", "LH eq 82",
        plan=recipes.per_case("log"), formula=proper.mean_score, options={"per": "case"},
        undefined="it is infinite: a class that a rater chose was given the probability 0",
    ),
    Metric(
        "ranked_probability_score", "Ranked probability score", "Proper scores",
        "Mean squared distance between cumulative probabilities, for ordered classes.",
        "lower", "Epstein 1969; Murphy 1971",
        plan=recipes.per_case("ranked"), formula=proper.mean_score, options={"per": "case"},
        in_all=False,
    ),
    Metric(
        "expected_squared_loss", "Expected squared loss", "Label histograms",
        "The squared loss against one rater drawn at random: epistemic plus irreducible.",
        "lower", "LH eq 8",
        plan=recipes.binned("per_class", "case"), formula=proper.expected_squared_loss,
    ),
    Metric(
        "epistemic_loss", "Epistemic loss", "Label histograms",
        "How far the probabilities are from the raters' true frequencies: what a model can win.",
        "lower", "LH eqs 9-10",
        plan=recipes.binned("per_class", "case", 2), formula=proper.epistemic_loss,
        options={"estimator": "unbiased"}, formula_options=("estimator",), least_raters=2,
    ),
    Metric(
        "irreducible_loss", "Irreducible loss", "Label histograms",
        "The part of the squared loss that is the raters' own disagreement.",
        "none", "LH eq 6",
        plan=recipes.binned("per_class", "case", 2), formula=proper.irreducible_loss,
        least_raters=2,
    ),
    Metric(
        "calibration_loss", "Calibration loss", "Label histograms",
        "Squared gap between predicted and observed frequencies, summed over classes.",
        "lower", "LH eqs 13-14",
        plan=recipes.binned("per_class", "case"), formula=proper.calibration_loss,
        options=_LH, formula_options=("estimator", "singletons"), error=True,
    ),
    Metric(
        "calibration_error", "Calibration error", "Label histograms",
        "Root of the calibration loss: the typical gap, summed over classes.",
        "lower", "LH eqs 1, 11-14",
        plan=recipes.binned("per_class", "case"), formula=proper.calibration_error,
        options=_LH, formula_options=("estimator", "singletons"), error=True,
    ),
    Metric(
        "dispersion_loss", "Dispersion loss", "Label histograms",
        "How much the truth varies among cases that get the same probability.",
        "lower", "LH eqs 33-36",
        plan=recipes.binned("per_class", "case", 2), formula=proper.dispersion_loss,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2,
    ),
    Metric(
        "disagreement_loss", "Disagreement loss", "Disagreement",
        "Squared loss of the predicted probability that two raters differ.",
        "lower", "LH eq 40",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.expected_squared_loss,
        least_raters=2,
    ),
    Metric(
        "disagreement_calibration_loss", "Disagreement calibration loss", "Disagreement",
        "Squared gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.calibration_loss,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2, error=True,
    ),
    Metric(
        "disagreement_calibration_error", "Disagreement calibration error", "Disagreement",
        "Typical gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=recipes.binned("disagreement", "case", 2), formula=proper.calibration_error,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2, error=True,
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
    ),
    Metric(
        "mce", "Maximum calibration error", "Calibration",
        "The largest gap of any bin; very noisy when bins hold few cases.",
        "lower", "Naeini et al. 2015",
        plan=recipes.binned("top_label"), formula=calibration.mce, options=_TOP, error=True,
    ),
    Metric(
        "rms_ce", "RMS calibration error", "Calibration",
        "Root mean squared gap between confidence and agreement over bins.",
        "lower", "Kumar et al. 2019",
        plan=recipes.binned("top_label"), formula=calibration.rms_ce, options=_TOP, error=True,
    ),
    Metric(
        "adaptive_ece", "Adaptive ECE", "Calibration",
        "ECE over bins that hold equally many cases.",
        "lower", "Nguyen & O'Connor 2015",
        plan=recipes.sorted_scores, formula=calibration.ece, options=_TOP, error=True,
        prepare=recipes.by_edges(lambda s, o: calibration.adaptive_edges(s, o["bins"])),
    ),
    Metric(
        "ece_sweep", "ECE-sweep", "Calibration",
        "ECE over as many equal-mass bins as keep the observed frequency increasing.",
        "lower", "Roelofs et al. 2022",
        plan=recipes.sorted_scores, formula=calibration.ece, error=True,
        prepare=recipes.by_edges(lambda s, o: calibration.sweep_edges(s)),
        options={"question": "top_label", "per": "annotation"},
    ),
    Metric(
        "classwise_ece", "Class-wise ECE", "Calibration",
        "ECE of every class's probability, all cases, averaged over the classes.",
        "lower", "Kull et al. 2019",
        plan=recipes.binned("per_class"), formula=calibration.ece,
        options={"bins": 15, "per": "annotation"}, error=True,
    ),
    Metric(
        "sce", "Static calibration error", "Calibration",
        "ECE within the cases predicted as each class, averaged over the classes.",
        "lower", "RECE eqs 4-5",
        plan=recipes.binned("predicted_class"), formula=calibration.sce,
        options={"bins": 15, "per": "annotation"}, error=True,
    ),
    Metric(
        "robust_ece", "Robust ECE (RECE-G)", "Calibration",
        "ECE with each confidence spread by a Gaussian; steadier on small sets.",
        "lower", "RECE eq 6",
        plan=recipes.soft_binned, formula=calibration.robust_ece, error=True,
        options={**_TOP, "sigma": 0.1, "observed_bins_only": False},
        formula_options=("observed_bins_only",),
    ),
    Metric(
        "ks_error", "KS calibration error", "Calibration",
        "The largest cumulative gap between confidence and agreement; needs no bins.",
        "lower", "Gupta et al. 2021",
        plan=recipes.sorted_scores, prepare=recipes.by_edges(recipes.in_cells),
        formula=calibration.ks_error, value=recipes.exact_ks,
        options={"question": "top_label", "per": "annotation"}, error=True,
    ),
    Metric(
        "smooth_ece", "Smooth ECE", "Calibration",
        "Gap between confidence and agreement after smoothing; chooses its own bandwidth.",
        "lower", "Błasiok & Nakkiran 2024",
        plan=recipes.sorted_scores, prepare=recipes.smoothed(recipes.gaussian_smoother),
        formula=calibration.ece, value=recipes.smooth_value,
        options={"question": "top_label", "per": "annotation"}, error=True,
    ),
    Metric(
        "kde_ece", "KDE-ECE", "Calibration",
        "Mean gap between confidence and the agreement that a kernel estimates from other cases.",
        "lower", "Popordanoska et al. 2022; MR section 2.2",
        plan=recipes.sorted_scores, prepare=recipes.smoothed(recipes.beta_smoother),
        formula=recipes.kde_norm, formula_options=("p",), bounded_value=recipes.kde_with_bound,
        options={
            "per": "annotation", "p": 1, "bandwidth": None, "leave_out": "case", "method": "auto"
        },
        error=True, undefined="it needs two cases, to compare one with the other",
    ),
    Metric(
        "auccc", "AUCCC", "Ranking",
        "How well confidence separates right from wrong predictions (0.5 is chance).",
        "higher", "CCC section 2.2",
        undefined="every prediction is right, or every one is wrong",
        **recipes.of_ranks(ranking.auccc),
    ),
    Metric(
        "aurc", "AURC", "Ranking",
        "Mean error rate among the most confident cases, over all coverages.",
        "lower", "Geifman & El-Yaniv 2017", **recipes.of_ranks(ranking.aurc),
    ),
    Metric(
        "augrc", "AUGRC", "Ranking",
        "Mean risk of an undetected error, over all coverages.",
        "lower", "Traub et al. 2024", **recipes.of_ranks(ranking.augrc),
    ),
    Metric(
        "fleiss_kappa", "Fleiss' kappa", "Rater agreement",
        "Agreement of the raters beyond chance (1 is perfect, 0 is chance).",
        "none", "Fleiss 1971; Fleiss, Levin & Paik 2003",
        plan=recipes.agreement_plan, formula=lambda table: agreement.fleiss_from_sums(table.fleiss),
        least_raters=2, undefined="all labels are of one class",
    ),
    Metric(
        "krippendorff_alpha", "Krippendorff's alpha", "Rater agreement",
        "Agreement of the raters beyond chance; takes any number of labels per case.",
        "none", "Krippendorff 2011",
        plan=recipes.agreement_plan, formula=recipes.krippendorff, options={"scale": "nominal"},
        formula_options=("scale",),
        undefined="no two labels can be paired, or all are of one class",
    ),
)  # fmt: skip

CATALOG: dict[str, Metric] = {row.name: row for row in _ROWS}

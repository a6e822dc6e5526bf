"""The catalog: one row per metric. Functions, `evaluate`, the laws and the docs all read it.

A row says which summary a metric needs (`plan`), how that becomes a table (`prepare`), and the
formula over the table. The same formula gives the estimate and, over resampled tables, its
interval: by test inversion for non-negative errors, by bootstrap for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.binning import equal_mass_edges
from quorate.errors import InvalidInputError
from quorate.metrics import agreement, calibration, proper, ranking
from quorate.questions import PerCaseScore, Question
from quorate.summaries import (
    AgreementPlan,
    AgreementTable,
    BinPlan,
    BinSums,
    BinTable,
    ScoreMasses,
    SoftBinPlan,
    SortedPlan,
    SortedScores,
)

__all__ = ["CATALOG", "Metric", "find"]

Options = Mapping[str, Any]
Prepare = Callable[..., Any]

INTERVAL_CELLS = 512
"""Into how many equal-mass cells sorted scores are gathered for the resamples of an interval."""


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
    prepare: Prepare = field(default=lambda summary, options, like=None: summary)
    """prepare(summary, options, like=None) -> the table per resampling unit."""
    value: Callable[[Any, Options], float] | None = None
    """The exact value of the summary, where the table for the interval is coarser."""
    options: Options = field(default_factory=dict)
    formula_options: tuple[str, ...] = ()
    least_raters: int = 1
    error: bool = False
    """A non-negative calibration error: its interval inverts a test."""
    undefined: str = "it has no value on these data"
    in_all: bool = True

    def estimate(self, summary: Any, options: Options) -> float:
        """Return the value of the metric."""
        if self.value is not None:
            return float(self.value(summary, options))
        return float(self.over(self.prepare(summary, options).table, options))

    def over(self, table: BinTable, options: Options) -> NDArray[Any]:
        """Return the formula over a table or a stack of resampled tables."""
        return self.formula(table, **{name: options[name] for name in self.formula_options})

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


def _bins(question: str, per: str = "annotation", least: int = 1) -> Callable[[Options], BinPlan]:
    """Return the plan of a binned metric, with its options in place of the defaults."""

    def plan(options: Options) -> BinPlan:
        asked = Question(options.get("question", question), options.get("per", per))
        bins = options.get("bins", 15)
        whole = isinstance(bins, int | np.integer)
        # A plugin estimator has no within-case correction, which is what needs two labels.
        one = question == "per_class" and options.get("estimator") == "plugin"
        return BinPlan(asked, int(bins) if whole else tuple(bins), 1 if one else least)

    return plan


def _scores(options: Options) -> SortedPlan:
    asked = Question(options.get("question", "top_label"), options.get("per", "annotation"))
    return SortedPlan(asked)


def _soft_bins(options: Options) -> SoftBinPlan:
    asked = Question(options["question"], options["per"])
    return SoftBinPlan(asked, int(options["bins"]), float(options["sigma"]))


def _one_bin(score: str) -> Callable[[Options], BinPlan]:
    return lambda options: BinPlan(PerCaseScore(score, options["per"]), 1)


def _by_edges(edges_of: Callable[[ScoreMasses, Options], NDArray[Any]]) -> Prepare:
    """Return how to table sorted scores over bins that follow from the scores themselves.

    For a resample the bins stay those of the sample it comes from, `like`.
    """

    def prepare(summary: SortedScores, options: Options, like: BinSums | None = None) -> BinSums:
        edges = (
            like.channel_edges
            if like is not None
            else [edges_of(summary.channel(c).pooled(), options) for c in range(summary.channels)]
        )
        return BinSums.of_scores(summary, edges)

    return prepare


def _cells(scores: ScoreMasses, options: Options) -> NDArray[Any]:
    return equal_mass_edges(scores.score, scores.mass, min(INTERVAL_CELLS, len(scores.score)))


def _of_ranks(
    formula: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]],
) -> dict[str, Any]:
    """Return the parts of a row whose metric depends on the order of the scores alone."""

    def value(summary: SortedScores, options: Options) -> float:
        scores = summary.channel().pooled()
        return float(formula(scores.mass, scores.hits))

    return {
        "plan": _scores,
        "prepare": _by_edges(_cells),
        "formula": lambda table: formula(table.weight[..., 0, :], table.positive[..., 0, :]),
        "value": value,
        "options": {"question": "top_label", "per": "annotation"},
    }


def _exact_ks(summary: SortedScores, options: Options) -> float:
    """KS over every distinct score, not over cells."""
    gaps = []
    for c in range(summary.channels):
        scores = summary.channel(c).pooled()
        gap = np.cumsum(scores.hits - scores.mass * scores.score)
        gaps.append(np.abs(gap).max() / scores.mass.sum())
    return float(np.mean(gaps))


def _agreement(options: Options) -> AgreementPlan:
    return AgreementPlan()


def _krippendorff(table: AgreementTable, scale: str) -> NDArray[Any]:
    return agreement.krippendorff_from_coincidences(table.coincidences, scale)


_TOP = {"bins": 15, "question": "top_label", "per": "annotation"}
_LH = {"bins": 15, "estimator": "debiased", "singletons": "zero"}

_ROWS = (
    Metric(
        "accuracy", "Accuracy", "Proper scores",
        "How often the predicted class is what a rater says.",
        "higher", "LH section 7",
        plan=_bins("top_label", "case"), formula=proper.mean_hit, options={"per": "case"},
    ),
    Metric(
        "brier", "Brier score", "Proper scores",
        "Mean squared distance between the probabilities and what a rater says.",
        "lower", "Brier 1950; LH eqs 3-4, 8",
        plan=_bins("per_class", "case"), formula=proper.brier,
        options={"per": "case", "scale_by_half": "auto"}, formula_options=("scale_by_half",),
    ),
    Metric(
        "nll", "Negative log-likelihood", "Proper scores",
        "Mean of -log of the probability given to what a rater says.",
        "lower", "LH eq 82",
        plan=_one_bin("log"), formula=proper.mean_score, options={"per": "case"},
        undefined="it is infinite: a class that a rater chose was given the probability 0",
    ),
    Metric(
        "ranked_probability_score", "Ranked probability score", "Proper scores",
        "Mean squared distance between cumulative probabilities, for ordered classes.",
        "lower", "Epstein 1969; Murphy 1971",
        plan=_one_bin("ranked"), formula=proper.mean_score, options={"per": "case"}, in_all=False,
    ),
    Metric(
        "expected_squared_loss", "Expected squared loss", "Label histograms",
        "The squared loss against one rater drawn at random: epistemic plus irreducible.",
        "lower", "LH eq 8",
        plan=_bins("per_class", "case"), formula=proper.expected_squared_loss,
    ),
    Metric(
        "epistemic_loss", "Epistemic loss", "Label histograms",
        "How far the probabilities are from the raters' true frequencies: what a model can win.",
        "lower", "LH eqs 9-10",
        plan=_bins("per_class", "case", 2), formula=proper.epistemic_loss,
        options={"estimator": "unbiased"}, formula_options=("estimator",), least_raters=2,
    ),
    Metric(
        "irreducible_loss", "Irreducible loss", "Label histograms",
        "The part of the squared loss that is the raters' own disagreement.",
        "none", "LH eq 6",
        plan=_bins("per_class", "case", 2), formula=proper.irreducible_loss, least_raters=2,
    ),
    Metric(
        "calibration_loss", "Calibration loss", "Label histograms",
        "Squared gap between predicted and observed frequencies, summed over classes.",
        "lower", "LH eqs 13-14",
        plan=_bins("per_class", "case"), formula=proper.calibration_loss,
        options=_LH, formula_options=("estimator", "singletons"), error=True,
    ),
    Metric(
        "calibration_error", "Calibration error", "Label histograms",
        "Root of the calibration loss: the typical gap, summed over classes.",
        "lower", "LH eqs 1, 11-14",
        plan=_bins("per_class", "case"), formula=proper.calibration_error,
        options=_LH, formula_options=("estimator", "singletons"), error=True,
    ),
    Metric(
        "dispersion_loss", "Dispersion loss", "Label histograms",
        "How much the truth varies among cases that get the same probability.",
        "lower", "LH eqs 33-36",
        plan=_bins("per_class", "case", 2), formula=proper.dispersion_loss,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2,
    ),
    Metric(
        "disagreement_loss", "Disagreement loss", "Disagreement",
        "Squared loss of the predicted probability that two raters differ.",
        "lower", "LH eq 40",
        plan=_bins("disagreement", "case", 2), formula=proper.expected_squared_loss,
        least_raters=2,
    ),
    Metric(
        "disagreement_calibration_loss", "Disagreement calibration loss", "Disagreement",
        "Squared gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=_bins("disagreement", "case", 2), formula=proper.calibration_loss,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2, error=True,
    ),
    Metric(
        "disagreement_calibration_error", "Disagreement calibration error", "Disagreement",
        "Typical gap between predicted and observed disagreement.",
        "lower", "LH eqs 42-45",
        plan=_bins("disagreement", "case", 2), formula=proper.calibration_error,
        options=_LH, formula_options=("estimator", "singletons"), least_raters=2, error=True,
    ),
    Metric(
        "ece", "Expected calibration error", "Calibration",
        "Mean gap between confidence and how often raters agree, over bins of confidence.",
        "lower", "RECE eq 2; MR eq 5",
        plan=_bins("top_label"), formula=calibration.ece, options=_TOP, error=True,
    ),
    Metric(
        "mce", "Maximum calibration error", "Calibration",
        "The largest gap of any bin; very noisy when bins hold few cases.",
        "lower", "Naeini et al. 2015",
        plan=_bins("top_label"), formula=calibration.mce, options=_TOP, error=True,
    ),
    Metric(
        "rms_ce", "RMS calibration error", "Calibration",
        "Root mean squared gap between confidence and agreement over bins.",
        "lower", "Kumar et al. 2019",
        plan=_bins("top_label"), formula=calibration.rms_ce, options=_TOP, error=True,
    ),
    Metric(
        "adaptive_ece", "Adaptive ECE", "Calibration",
        "ECE over bins that hold equally many cases.",
        "lower", "Nguyen & O'Connor 2015",
        plan=_scores, formula=calibration.ece, options=_TOP, error=True,
        prepare=_by_edges(lambda s, o: calibration.adaptive_edges(s, o["bins"])),
    ),
    Metric(
        "ece_sweep", "ECE-sweep", "Calibration",
        "ECE over as many equal-mass bins as keep the observed frequency increasing.",
        "lower", "Roelofs et al. 2022",
        plan=_scores, formula=calibration.ece, error=True,
        prepare=_by_edges(lambda s, o: calibration.sweep_edges(s)),
        options={"question": "top_label", "per": "annotation"},
    ),
    Metric(
        "classwise_ece", "Class-wise ECE", "Calibration",
        "ECE of every class's probability, all cases, averaged over the classes.",
        "lower", "Kull et al. 2019",
        plan=_bins("per_class"), formula=calibration.ece,
        options={"bins": 15, "per": "annotation"}, error=True,
    ),
    Metric(
        "sce", "Static calibration error", "Calibration",
        "ECE within the cases predicted as each class, averaged over the classes.",
        "lower", "RECE eqs 4-5",
        plan=_bins("predicted_class"), formula=calibration.sce,
        options={"bins": 15, "per": "annotation"}, error=True,
    ),
    Metric(
        "robust_ece", "Robust ECE (RECE-G)", "Calibration",
        "ECE with each confidence spread by a Gaussian; steadier on small sets.",
        "lower", "RECE eq 6",
        plan=_soft_bins, formula=calibration.robust_ece, error=True,
        options={**_TOP, "sigma": 0.1, "observed_bins_only": False},
        formula_options=("observed_bins_only",),
    ),
    Metric(
        "ks_error", "KS calibration error", "Calibration",
        "The largest cumulative gap between confidence and agreement; needs no bins.",
        "lower", "Gupta et al. 2021",
        plan=_scores, formula=calibration.ks_error, prepare=_by_edges(_cells), value=_exact_ks,
        options={"question": "top_label", "per": "annotation"}, error=True,
    ),
    Metric(
        "auccc", "AUCCC", "Ranking",
        "How well confidence separates right from wrong predictions (0.5 is chance).",
        "higher", "CCC section 2.2",
        undefined="every prediction is right, or every one is wrong",
        **_of_ranks(ranking.auccc),
    ),
    Metric(
        "aurc", "AURC", "Ranking",
        "Mean error rate among the most confident cases, over all coverages.",
        "lower", "Geifman & El-Yaniv 2017", **_of_ranks(ranking.aurc),
    ),
    Metric(
        "augrc", "AUGRC", "Ranking",
        "Mean risk of an undetected error, over all coverages.",
        "lower", "Traub et al. 2024", **_of_ranks(ranking.augrc),
    ),
    Metric(
        "fleiss_kappa", "Fleiss' kappa", "Rater agreement",
        "Agreement of the raters beyond chance (1 is perfect, 0 is chance).",
        "none", "Fleiss 1971; Fleiss, Levin & Paik 2003",
        plan=_agreement, formula=lambda table: agreement.fleiss_from_sums(table.fleiss),
        least_raters=2, undefined="all labels are of one class",
    ),
    Metric(
        "krippendorff_alpha", "Krippendorff's alpha", "Rater agreement",
        "Agreement of the raters beyond chance; takes any number of labels per case.",
        "none", "Krippendorff 2011",
        plan=_agreement, formula=_krippendorff, options={"scale": "nominal"},
        formula_options=("scale",),
        undefined="no two labels can be paired, or all are of one class",
    ),
)  # fmt: skip

CATALOG: dict[str, Metric] = {row.name: row for row in _ROWS}

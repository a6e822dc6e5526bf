"""Proper losses from label histograms and their decomposition (LH sections 2-3).

All take the per-class table counted per case, with any leading axes for resamples.
"""

from __future__ import annotations

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.rules import check_squared_weights
from raterwise.summaries.bin_table import BinTable
from raterwise.types import Array


def _total(table: BinTable) -> Array:
    """W: the weight of all cases, which every channel sees once."""
    return np.asarray(table.weight[..., 0, :].sum(axis=-1))


def mean_hit(table: BinTable) -> Array:
    """Return the mean of μ over the cases of a one-channel table: Σ w μ / Σ w."""
    return np.asarray(table.positive.sum(axis=(-2, -1)) / table.weight.sum(axis=(-2, -1)))


mean_score = mean_hit
"""A `PerCaseScore` keeps its score as μ, so its mean is the same formula."""


def expected_squared_loss(table: BinTable) -> Array:
    """L̂_sq = Σ_i w_i/W Σ_k [(μ_ik - z_ik)² + μ_ik (1 - μ_ik)] (LH eq 8)."""
    sums = table.squared_gap + table.positive - table.squared_positive
    return np.asarray(sums.sum(axis=(-2, -1)) / _total(table))


def brier(table: BinTable, *, scale_by_half: bool | str = "auto") -> Array:
    """Return the Brier score: L̂_sq, halved for two classes unless said otherwise."""
    if scale_by_half not in (True, False, "auto"):
        raise InvalidInputError(
            f'scale_by_half: must be True, False or "auto"; got {scale_by_half!r}'
        )
    halved = is_halved(scale_by_half, table.sums.shape[-3])
    return expected_squared_loss(table) * (0.5 if halved else 1.0)


def is_halved(scale_by_half: bool | str, classes: int) -> bool:
    """Tell whether the Brier score of so many classes is half of L̂_sq."""
    return classes == 2 if scale_by_half == "auto" else bool(scale_by_half)


def epistemic_loss(table: BinTable, *, estimator: str = "unbiased") -> Array:
    """ẼL = Σ (μ - z)² / N (LH eq 9); unbiased: minus Σ μ(1-μ)/(n-1) / N (LH eq 10)."""
    sums = table.squared_gap - (table.within if estimator == "unbiased" else 0)
    return np.asarray(sums.sum(axis=(-2, -1)) / _total(table))


def epistemic_losses_of(probs: Array, counts: Array) -> Array:
    """Return Σ_k (μ_k - z_k)² - μ_k (1 - μ_k)/(n - 1) of each case (LH eq 10).

    >>> epistemic_losses_of(np.array([[0.5, 0.5]]), np.array([[2, 0]]))
    array([0.5])
    """
    n = counts.sum(axis=1, keepdims=True)
    mu = counts / n
    return np.asarray(((mu - probs) ** 2 - mu * (1 - mu) / (n - 1)).sum(axis=1))


def irreducible_loss(table: BinTable) -> Array:
    """ÎL = L̂_sq - ÊL = mean of Σ_k μ(1-μ) n/(n-1): what no model can remove (LH eq 6)."""
    sums = table.positive - table.squared_positive + table.within
    return np.asarray(sums.sum(axis=(-2, -1)) / _total(table))


def calibration_loss(
    table: BinTable, *, estimator: str = "debiased", singletons: str = "zero"
) -> Array:
    """CL = Σ_k Σ_b |I_kb|/N (c̄_kb - z̄_kb)² (LH eq 13); debiased: LH eq 14.

    The debiased estimator subtracts |I|/N σ̄²/(|I|-1) in each bin. A bin with one case has no σ̄²:
    it contributes 0 (appendix B.3), or its plugin value with `singletons="plugin"`.
    """
    _require_squares(table)
    weight = table.weight
    occupied = np.where(weight > 0, weight, 1)
    plugin = table.deviation**2 / occupied
    if estimator == "plugin":
        return np.asarray(plugin.sum(axis=(-2, -1)) / _total(table))
    require_equal_weights(table)
    # Σ w (μ - c̄)² / (|I| - 1), with equal weights w: LH's |I| σ̄² / (|I| - 1) times w.
    spread = np.maximum(table.squared_positive - table.positive**2 / occupied, 0)
    correction = spread / np.maximum(table.cases - 1, 1)
    several = table.cases > 1
    alone = 0.0 if singletons == "zero" else plugin
    bins = np.where(several, plugin - correction, alone)
    return np.asarray(bins.sum(axis=(-2, -1)) / _total(table))


def require_equal_weights(table: BinTable, what: str = "calibration loss") -> None:
    """Cases of unequal weight have no debiased calibration loss in LH: say so."""
    _require_squares(table)
    cases, weight = table.cases[..., 0, :].sum(axis=-1), table.weight[..., 0, :].sum(axis=-1)
    squared = table.squared_weight[..., 0, :].sum(axis=-1)
    if not np.allclose(cases * squared, weight**2, rtol=1e-9, atol=0):
        raise unequal_weights(what)


def _require_squares(table: BinTable) -> None:
    """Refuse weights whose squares were lost: unequal ones would pass for equal."""
    weight, squared = (x[..., 0, :].sum(axis=-1) for x in (table.weight, table.squared_weight))
    lost = (weight > 0) & ~((squared > 0) & (squared < np.inf))
    if lost.any():
        check_squared_weights("weights", float(squared[lost].flat[0]))


def unequal_weights(what: str) -> InvalidInputError:
    """Return the error to raise where a debiased metric got cases of unequal weight."""
    return InvalidInputError(
        f"weights: the debiased {what} is defined for equal case weights only; "
        'use estimator="plugin" with unequal ones'
    )


def calibration_error(
    table: BinTable, *, estimator: str = "debiased", singletons: str = "zero"
) -> Array:
    """CE = sqrt(max(CL, 0)) (LH eq 1 with p = 2, summed over classes)."""
    loss = calibration_loss(table, estimator=estimator, singletons=singletons)
    return np.asarray(np.sqrt(np.maximum(loss, 0)))


def dispersion_loss(
    table: BinTable, *, estimator: str = "debiased", singletons: str = "zero"
) -> Array:
    """DL = EL - CL: how much the truth varies among cases of one bin (LH eqs 33-36)."""
    epistemic = "unbiased" if estimator == "debiased" else "plugin"
    return epistemic_loss(table, estimator=epistemic) - calibration_loss(
        table, estimator=estimator, singletons=singletons
    )


def refinement_loss(
    table: BinTable, *, estimator: str = "debiased", singletons: str = "zero"
) -> Array:
    """RL = L_sq - CL: the squared loss that would be left if every bin were put right (LH eq 5)."""
    return expected_squared_loss(table) - calibration_loss(
        table, estimator=estimator, singletons=singletons
    )


def grouping_loss(table: BinTable, *, estimator: str = "debiased") -> Array:
    """GL = Σ_k E[Var(Q_k | bin)], the grouping loss of binned predictions (LH eq 6, appendix B.4).

    Plugin: Σ_kb 1/N Σ_i (μ_ik - c̄_kb)². Debiased: the unbiased variance over the cases of a bin,
    less the part that is within cases, μ(1-μ)/(n-1); a bin of one case has none and adds 0.
    """
    _require_squares(table)
    occupied = np.where(table.weight > 0, table.weight, 1)
    spread = np.maximum(table.squared_positive - table.positive**2 / occupied, 0)
    if estimator == "plugin":
        return np.asarray(spread.sum(axis=(-2, -1)) / _total(table))
    require_equal_weights(table, "grouping loss")
    unbiased = spread * table.cases / np.maximum(table.cases - 1, 1)
    bins = np.where(table.cases > 1, unbiased - table.within, 0.0)
    return np.asarray(bins.sum(axis=(-2, -1)) / _total(table))


def spiegelhalter_z(table: BinTable) -> Array:
    """z = Σ (B - E B) / sqrt(Σ Var B), B the squared loss of a case (Spiegelhalter 1986, eq 5).

    `questions.PerCaseScore("spiegelhalter")` keeps B - E B as μ and Var B as z, both halved.
    """
    variance = table.score.sum(axis=(-2, -1))
    excess = table.positive.sum(axis=(-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(variance > 0, excess / np.sqrt(variance), np.nan))


def variance_components(
    loss: Array, counts: Array, groups: Array | None = None
) -> tuple[float, float]:
    """Return A and B of Var = (A + B/n)/N: between cases, and between the raters of a case.

    `loss` (N, K) is that of each case for a rater who says class k (LH appendix B.1). B is the
    pooled unbiased variance within cases. A is what is left of the variance of the case means,
    times the design effect where the cases of one patient hang together.
    """
    n = counts.sum(axis=1).astype(np.float64)
    mean = (counts * loss).sum(axis=1) / n
    squares = (counts * (loss - mean[:, None]) ** 2).sum(axis=1)
    several = n >= 2
    within = float(squares[several].sum() / (n[several] - 1).sum())
    deviations = mean - mean.mean()
    if groups is not None:
        deviations = np.bincount(groups, deviations)
    number = np.count_nonzero(np.bincount(groups)) if groups is not None else len(mean)
    of_mean = float((deviations**2).sum() * number / max(number - 1, 1) / len(mean) ** 2)
    between = of_mean * len(mean) - within * float(np.mean(1 / n))
    return max(between, 0.0), within

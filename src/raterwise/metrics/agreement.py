"""How far the raters agree beyond chance: formulas over sums that add up over cases.

The sums of any split of the cases add to the sums of the whole, and a case of weight 2 is a case
that occurs twice. The formulas take any leading axes, so that a bootstrap can give them a table
per resample; where agreement is undefined they return NaN.
"""

from __future__ import annotations

import numpy as np

from raterwise.rules import choose
from raterwise.types import FloatArray, Integers

SCALES = ("nominal", "ordinal", "interval")
NO_UNITS = np.empty(0, np.int64)


def coincidence_sums(counts: Integers, weights: FloatArray) -> FloatArray:
    """Return the coincidences (K, K) of label histograms (n, K).

    o_ck = Σ_i w_i n_ic (n_ik - [c = k]) / (n_i - 1), the sum over cases of the ordered pairs of
    labels by different raters; cases with fewer than two labels have none
    (Krippendorff 2019, section 12.3).

    >>> coincidence_sums(np.array([[2, 1], [0, 2], [1, 0]]), np.ones(3))
    array([[1., 1.],
           [1., 2.]])
    """
    from raterwise.kernels import _agreement as kernels

    table = np.zeros((1, counts.shape[1], counts.shape[1]))
    kernels.add_coincidences(counts, weights, NO_UNITS, table)
    return np.asarray(table[0])


def krippendorff_from_coincidences(coincidences: FloatArray, scale: str) -> FloatArray:
    """α = 1 - D_o / D_e = 1 - (n-1) Σ_ck o_ck δ²_ck / Σ_ck n_c n_k δ²_ck, for o (..., K, K).

    n_c = Σ_k o_ck and n = Σ_c n_c. δ² is 1 for two different classes (nominal), (k - c)²
    (interval), or the squared number of labels between them (ordinal), which depends on the data
    through n_c: Σ_{g=c..k} n_g - (n_c + n_k)/2, the difference of the classes' mid-ranks.
    """
    choose("scale", scale, SCALES)
    o = np.asarray(coincidences, np.float64)
    marginal = o.sum(axis=-1)
    total = marginal.sum(axis=-1)
    if scale == "nominal":
        distance = 1 - np.eye(o.shape[-1])
    else:
        place = np.arange(o.shape[-1], dtype=np.float64)
        if scale == "ordinal":
            place = np.cumsum(marginal, axis=-1) - marginal / 2
        distance = (place[..., :, None] - place[..., None, :]) ** 2
    observed = (o * distance).sum(axis=(-2, -1))
    by_chance = (marginal[..., :, None] * marginal[..., None, :] * distance).sum(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = 1 - (total - 1) * observed / by_chance
    return np.asarray(np.where((by_chance > 0) & (total > 1), alpha, np.nan))


def fleiss_sums(counts: Integers, weights: FloatArray) -> FloatArray:
    """Return the sums (2 + K,) of label histograms (n, K).

    Σ_i w_i (n_i - 1), Σ_i w_i (n_i - Σ_k n_ik² / n_i), then Σ_i w_i n_ik for each class k; cases
    with fewer than two labels are left out.

    >>> fleiss_sums(np.array([[2, 1], [0, 2], [1, 0]]), np.ones(3))
    array([3. , 1.33333333, 2. , 3. ])
    """
    from raterwise.kernels import _agreement as kernels

    table = np.zeros((1, 2 + counts.shape[1]))
    kernels.add_fleiss_sums(counts, weights, NO_UNITS, table)
    return np.asarray(table[0])


def fleiss_from_sums(sums: FloatArray) -> FloatArray:
    """κ = 1 - Σ_i Σ_k n_ik (n_i - n_ik) / n_i / [N (n̄ - 1) Σ_k p_k (1 - p_k)], for (..., 2 + K).

    p_k is the share of class k among all labels (Fleiss, Levin & Paik 2003, chapter 18). Since
    Σ_k n_ik (n_i - n_ik) / n_i = (n_i - 1)(1 - P_i), this is 1 - (1 - P̄) / (1 - P_e) with the
    agreement P_i of a case weighted by n_i - 1; with equal n_i it is Fleiss (1971).
    """
    sums = np.asarray(sums, np.float64)
    pairs, apart, labels = sums[..., 0], sums[..., 1], sums[..., 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = labels / labels.sum(axis=-1, keepdims=True)
        by_chance = (share * (1 - share)).sum(axis=-1)
        kappa = 1 - apart / (pairs * by_chance)
    return np.asarray(np.where((pairs > 0) & (by_chance > 0), kappa, np.nan))

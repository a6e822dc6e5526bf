"""How far the raters agree with one another."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from raterwise.errors import UndefinedMetricError
from raterwise.labels import Labels
from raterwise.metrics import agreement as formulas
from raterwise.predictions.checks import counted_weights, require_several
from raterwise.rules import choose
from raterwise.types import OnSingle, Scale


def fleiss_kappa(
    labels: Labels, *, weights: ArrayLike | None = None, on_single: OnSingle = "error"
) -> float:
    """Return Fleiss' kappa: agreement on the class beyond chance; 1 is perfect, 0 is chance.

        κ = 1 - Σ_i Σ_k n_ik (n_i - n_ik) / n_i / [N (n̄ - 1) Σ_k p_k (1 - p_k)]

    n_ik raters of n_i give case i the class k, n̄ is the mean of n_i and p_k the share of class k
    among all labels. With the same number of raters for every case this is (P̄ - P_e) / (1 - P_e)
    (Fleiss 1971); with unequal numbers it is the form of Fleiss & Cuzick (1979) and Fleiss, Levin
    & Paik (2003, chapter 18), in which the agreement of a case counts in proportion to n_i - 1.

    Parameters
    ----------
    labels : Labels
        The raters' labels, with at least two per case.
    weights : array-like of shape (N,), default None
        How often each case counts: one of weight 2 counts as two such cases.
    on_single : {"error", "drop"}, default "error"
        Whether cases with fewer than two labels are an error or are left out.

    Returns
    -------
    float
        At most 1; negative if the raters agree less than by chance.

    Raises
    ------
    UndefinedMetricError
        If all labels are the same class.

    See Also
    --------
    krippendorff_alpha : for ordered classes too.
    exchangeability_test : whether the raters are interchangeable.

    References
    ----------
    Fleiss, Levin & Paik, Statistical Methods for Rates and Proportions, 3rd edition, Wiley 2003,
    https://doi.org/10.1002/0471445428.

    Examples
    --------
    >>> labels = Labels.from_ratings([[0, 0, 0], [1, 1, 0], [1, 1, 1]], num_classes=2)
    >>> fleiss_kappa(labels)  # 1 - (2/3) / (3 · 40/81)
    0.55
    """
    require_several(labels)
    case_weights = counted_weights(labels, weights, 2, on_single)
    kappa = float(formulas.fleiss_from_sums(formulas.fleiss_sums(labels.counts, case_weights)))
    return _defined("fleiss_kappa", kappa)


def krippendorff_alpha(
    labels: Labels, scale: Scale = "nominal", *, weights: ArrayLike | None = None
) -> float:
    """Return Krippendorff's alpha: agreement beyond chance, for any number of labels per case.

        α = 1 - D_o / D_e = 1 - (n-1) Σ_ck o_ck δ²_ck / Σ_ck n_c n_k δ²_ck

    o_ck counts the pairs of labels c and k of one case, n_c = Σ_k o_ck. A case with fewer than two
    labels has no pair and is ignored, as the definition says.

    Parameters
    ----------
    labels : Labels
        The raters' labels.
    scale : {"nominal", "ordinal", "interval"}, default "nominal"
        The scale of measurement, which says what a disagreement weighs: "nominal", any two classes
        alike; "interval", (k - c)²; "ordinal", the squared number of labels that lie between,
        (Σ_{g=c..k} n_g - (n_c + n_k)/2)², so that the distance of two classes depends on how often
        the classes between them occur.
    weights : array-like of shape (N,), default None
        How often each case counts. Because of n - 1, multiplying all weights by a number changes
        alpha a little.

    Returns
    -------
    float
        At most 1; negative if the raters agree less than by chance.

    Raises
    ------
    UndefinedMetricError
        If no two labels can be paired, or all paired labels are the same class.

    See Also
    --------
    fleiss_kappa : for classes without an order.

    References
    ----------
    Krippendorff, Computing Krippendorff's Alpha-Reliability, University of Pennsylvania 2011,
    https://repository.upenn.edu/asc_papers/43.

    Examples
    --------
    >>> labels = Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, -1]], num_classes=2)
    >>> krippendorff_alpha(labels)  # 1 - 5 · 2 / (2 · 3 · 3)
    0.444
    """
    choose("scale", scale, formulas.SCALES)
    require_several(labels)
    case_weights = counted_weights(labels, weights, 2, "drop")
    coincidences = formulas.coincidence_sums(labels.counts, case_weights)
    total = float(coincidences.sum())
    if total <= 1:
        raise UndefinedMetricError(
            "krippendorff_alpha: undefined, needs more than one paired label; the weights of the "
            f"labels that can be paired sum to {total:.6g} (a weight is a number of repetitions)"
        )
    alpha = float(formulas.krippendorff_from_coincidences(coincidences, scale))
    return _defined("krippendorff_alpha", alpha)


def _defined(name: str, value: float) -> float:
    if math.isnan(value):
        raise UndefinedMetricError(
            f"{name}: undefined, all labels of cases with two or more are the same class"
        )
    return value

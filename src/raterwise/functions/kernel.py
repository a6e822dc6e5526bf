"""Calibration errors from kernels instead of bins: KDE-ECE and SmoothECE."""

from __future__ import annotations

from typing import Any

import numpy as np

from raterwise.arrays import choose, on_gpu
from raterwise.errors import InvalidInputError
from raterwise.functions.measure import labels_for_device, measure
from raterwise.predictions import Predictions
from raterwise.summaries import KeptSample, SamplePlan
from raterwise.summaries.one_pass import summarise

__all__ = ["kde_ece", "smooth_ece"]

KINDS = ("top_label", "classwise", "canonical")


def kde_ece(
    probs: Any,
    labels: Any,
    kind: str = "top_label",
    p: int = 1,
    bandwidth: float | None = None,
    weights: Any = None,
    *,
    leave_out: str = "case",
    method: str = "auto",
    seed: int = 0,
    on_unrated: str = "error",
) -> float:
    """Return the kernel-density calibration error: mean |ratio - predicted|^p, without the root.

    ratio_j is the observed frequency around case j, weighted by a Beta (one score) or Dirichlet (K
    classes) kernel over the *other* cases (Popordanoska et al. 2022). Several raters count without
    repeating rows (MR-kdeECE), and a case is left out with all its labels.

    Parameters
    ----------
    kind
        "top_label": confidence against being right. "classwise": each class's probability, the
        mean over classes. "canonical": all classes together, the sum over classes.
    bandwidth
        Of the kernel; by default the one of the largest leave-one-out likelihood on a grid.
    leave_out
        "copy" leaves out one label instead of the case, as software that repeats rows does.
    method
        Of "top_label": "exact" over pairs of cases, "cells" over fine cells of the score in time
        that does not grow with the square of the cases, "auto" exact up to 20,000 cases.
        `evaluate` reports the bound on the error of cells.
    seed
        Of the cases that the automatic bandwidth is chosen on, where there are very many.

    Probabilities of exactly 0 and 1 are moved inside by 2.2e-16 where a logarithm sees them.

    Of two cases each is foreseen by the other alone, and both are right:

    >>> round(kde_ece([[0.6, 0.4], [0.1, 0.9]], [0, 1]), 4)
    0.25
    """
    choose("kind", kind, KINDS)
    choose("leave_out", leave_out, ("case", "copy"))
    choose("method", method, ("auto", "exact", "cells"))
    if p not in (1, 2):
        raise InvalidInputError(f"p: must be 1 or 2; got {p!r}")
    if bandwidth is not None and not (np.isfinite(bandwidth) and bandwidth > 0):
        raise InvalidInputError(f"bandwidth: must be positive and finite; got {bandwidth}")
    if kind == "top_label":
        return measure(
            "kde_ece", probs, labels, weights, on_unrated,
            p=p, bandwidth=bandwidth, leave_out=leave_out, method=method,
        )  # fmt: skip
    if method == "cells":
        raise InvalidInputError('method: "cells" is for kind="top_label"')
    if on_gpu(probs) and probs.ndim == 2 and leave_out == "case":
        from raterwise.tensors.pairs import kde_of_rows

        return kde_of_rows(
            probs, labels_for_device(labels, probs.shape[1]), weights,
            kind=kind, p=p, bandwidth=bandwidth, seed=seed, on_unrated=on_unrated,
        )  # fmt: skip
    predictions = Predictions.of(probs, labels, weights=weights, on_unrated=on_unrated)
    plan = SamplePlan()
    rows = summarise(predictions, [plan])[plan].in_order
    return _of_rows(rows, kind, p, bandwidth, leave_out, seed)


def _of_rows(
    rows: KeptSample, kind: str, p: int, bandwidth: float | None, leave_out: Any, seed: int
) -> float:
    from raterwise.metrics import bandwidth as choice
    from raterwise.metrics import kernel

    mass = rows.masses.sum(axis=1)
    probs, masses, mass = rows.probs[mass > 0], rows.masses[mass > 0], mass[mass > 0]
    if kind == "canonical":
        h = (
            choice.select_dirichlet_bandwidth(probs, mass, seed=seed)
            if bandwidth is None
            else bandwidth
        )
        return kernel.canonical_kde(probs, masses, p=p, bandwidth=h, leave_out=leave_out)
    each: Any = bandwidth
    if bandwidth is None:
        each = [choice.select_bandwidth(column, mass) for column in probs.T]
    return kernel.classwise_kde(probs, masses, p=p, bandwidth=each, leave_out=leave_out)


def smooth_ece(
    probs: Any,
    labels: Any,
    question: str = "top_label",
    per: str = "annotation",
    weights: Any = None,
    *,
    on_unrated: str = "error",
) -> float:
    """Return SmoothECE: the gap after smoothing by a reflected Gaussian (Błasiok & Nakkiran 2024).

    Its bandwidth is where bandwidth and error are equal, so nothing has to be chosen.

    >>> round(smooth_ece([[0.5, 0.5]] * 4, [0, 0, 0, 1]), 4)
    0.25
    """
    choose("question", question, ("top_label", "positive"))
    return measure("smooth_ece", probs, labels, weights, on_unrated, question=question, per=per)

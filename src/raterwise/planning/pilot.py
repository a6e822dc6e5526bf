"""What a pilot set says about larger studies: the widths of intervals to expect of them.

The pilot says how much a metric varies between cases and between the raters of a case, and it is a
sample itself: an expected width has an error that counts what another pilot would have said.
Scores that are a mean over labels have an error in closed form, (A + B/n)/N for N cases with n
raters each, of which the interval is made as in `evaluate`; the rest are simulated from what the
pilot teaches about each case (LH's Dirichlet model of its labels).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.evaluation.judged import judge_predictions
from raterwise.evaluation.request import Request, one_metric, options_of
from raterwise.evaluation.warnings import warn_of_arbitration
from raterwise.inference.estimates import shaped_ends
from raterwise.inference.jackknife import Linearised, resampling_of
from raterwise.inference.settings import Progress, Settings, reporting
from raterwise.labels import Labels
from raterwise.metrics.proper import variance_components
from raterwise.planning.designs import Design, StudyPlan
from raterwise.predictions import Predictions
from raterwise.rules import positive_integer
from raterwise.types import FloatArray, OnUnrated, Per, Questions

MOST_PARTS = 100
"""How many parts of a pilot are left out in turn."""
ROUNDING = 1e-12
"""Of a width: an error below is none."""


def plan(
    metric: str,
    probs: ArrayLike,
    labels: Labels,
    cases: Sequence[int] = (100, 200, 500, 1000),
    raters: Sequence[int] = (1, 2, 3, 5),
    seed: int = 0,
    *,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    bins: int | ArrayLike = 15,
    question: Questions | None = None,
    per: Per | None = None,
    options: Mapping[str, Any] | None = None,
    repeats: int = 20,
    resamples: int = 200,
    on_unrated: OnUnrated = "error",
    progress: Progress | None = None,
) -> StudyPlan:
    """Estimate the interval width and bias of each study design from a pilot study.

    Parameters
    ----------
    metric : str
        The name of a metric.
    probs : array-like of shape (N, K) or (N,)
        Class probabilities of the pilot; with shape (N,), the probability of class 1 of two.
    labels : Labels
        The labels of the pilot. Some cases need two labels, to separate raters from cases.
    cases, raters : sequence of int, default (100, 200, 500, 1000) and (1, 2, 3, 5)
        Every combination is a design. A design with fewer raters than the metric needs is left out.
    seed : int, default 0
        Seed of the simulation.
    groups : array-like of shape (N,), default None
        The patient of each case of the pilot.
    weights : array-like of shape (N,), default None
        Weight of each case of the pilot. The study is assumed to be sampled and weighted like the
        pilot.
    level : float, default 0.95
        Confidence level of the intervals.
    bins : int or array-like, default 15
        How many bins of equal width, or their edges from 0 to 1, of a metric with bins.
    question : {"top_label", "positive", "per_class", "predicted_class"}, default None
        What the metric asks of a case, as in `evaluate`.
    per : {"annotation", "case"}, default None
        Whether each label or each case counts once.
    options : mapping, default None
        Options of the metric, as in `evaluate`: {"robust_ece": {"sigma": 0.05}}, or {"sigma":
        0.05}.
    repeats : int, default 20
        Number of simulated studies per design, if there is no formula.
    resamples : int, default 200
        Number of resamples for the interval of each study.
    on_unrated : {"error", "drop"}, default "error"
        Whether unrated cases are an error or are left out.
    progress : callable, default None
        Function called with a description and the fraction done.

    Returns
    -------
    StudyPlan
        The designs.

    Raises
    ------
    InvalidInputError
        If there is no design left, or one rater per case, or one patient, is all the pilot has.

    Warns
    -----
    RaterwiseWarning
        If a third rater seems to have been asked only where two differ.

    See Also
    --------
    plots.PlanDisplay : draws the plan.

    References
    ----------
    Mimori, Sasada, Matsui, Sato (2021), Diagnostic uncertainty calibration, AISTATS: the Dirichlet
    model of the labels that studies are simulated from (eq 79).

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_counts([[2, 0], [1, 1], [0, 2], [1, 1]] * 10)
    >>> found = plan("brier", [0.2, 0.4, 0.9, 0.6] * 10, labels, cases=(100, 400), raters=(1, 2))
    >>> found.best(budget=400).cases
    400
    """
    metric = one_metric(metric)
    request = Request.of(
        [metric], bins=bins, question=question, per=per, options=options_of(metric, options),
        settings=Settings(resamples, level, seed),
    )  # fmt: skip
    pilot = Predictions.of(probs, labels, weights=weights, groups=groups, on_unrated=on_unrated)
    return plan_of(pilot, request, cases, raters, repeats, progress)


def plan_of(
    pilot: Predictions,
    request: Request,
    cases: Sequence[int],
    raters: Sequence[int],
    repeats: int,
    progress: Progress | None = None,
) -> StudyPlan:
    """Return the interval width and bias of each study design for the one metric of a request."""
    (row,) = request.rows
    if row.needs_belief:
        raise InvalidInputError(
            f"metric: must be one of class probabilities; {row.name}: {request.lacking(row)}"
        )
    cases, raters = _listed("cases", cases), _listed("raters", raters)
    sizes = [positive_integer("cases", n, least=2) for n in cases]
    numbers = [positive_integer("raters", n) for n in raters]
    numbers = [n for n in numbers if n >= row.least_raters]
    if not sizes:
        raise InvalidInputError(f"cases: must hold a design with at least 2 cases; got {cases}")
    if not numbers:
        raise InvalidInputError(
            f"raters: must hold a design with at least {row.least_raters} raters, which {row.name} "
            f"needs; got {raters}"
        )
    if len(pilot) < 2:
        raise InvalidInputError(f"probs: the pilot must hold at least 2 cases; got {len(pilot)}")
    if pilot.groups is not None and len(np.unique(pilot.groups)) < 2:
        raise InvalidInputError("groups: the pilot must hold at least 2 patients; got 1")
    if (pilot.labels.num_raters < 2).all():
        raise InvalidInputError(
            "labels: the pilot needs cases with two labels, to tell raters from cases; none has two"
        )
    warn_of_arbitration(pilot, stacklevel=3)  # where plan was called
    pairs = [(n, r) for n in sizes for r in numbers]
    if row.label_loss is not None and "per" not in request.shared and not request.own:
        found, without = _by_formula(row, pilot, pairs, request)
    else:
        found, without = _simulated(row, pilot, pairs, request, repeats, progress), []
    level = request.settings.level
    return StudyPlan(row.name, level, tuple(found), len(pilot), tuple(without))


def _listed(name: str, values: Any) -> tuple[int, ...]:
    try:
        return tuple(values)
    except TypeError:
        raise InvalidTypeError(f"{name}: must be a list of whole numbers; got {values!r}") from None


# --- scores that are a mean over labels --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Losses:
    """The score of each case of a pilot, or of a part of it, for a rater who says class k."""

    loss: FloatArray
    """(N, K)."""
    counts: NDArray[Any]
    weights: FloatArray | None
    groups: NDArray[np.int64] | None

    @staticmethod
    def of(row: Metric, pilot: Predictions) -> _Losses:
        """Return those of a pilot; refuse an infinite one."""
        assert row.label_loss is not None
        losses = row.label_loss(pilot.read(0, len(pilot)))
        if not np.isfinite(losses).all():
            raise InvalidInputError(f"probs: {row.name} cannot be planned with probabilities of 0")
        return _Losses(losses, pilot.labels.counts, pilot.weights, pilot.groups)

    @property
    def share(self) -> FloatArray:
        """The weight of each case, 1 on average."""
        ones = np.ones(len(self.loss))
        return ones if self.weights is None else self.weights / self.weights.mean()

    @property
    def units(self) -> NDArray[np.int64]:
        """The patient of each case, or the case, numbered without gaps."""
        groups = np.arange(len(self.loss)) if self.groups is None else self.groups
        return np.unique(groups, return_inverse=True)[1]

    @property
    def value(self) -> float:
        """The score of all cases."""
        mean = (self.counts * self.loss).sum(axis=1) / self.counts.sum(axis=1)
        return float(np.mean(self.share * mean))

    def components(self) -> tuple[float, float]:
        """Return A and B of the variance (A + B/n)/N.

        The plain mean of w / w̄ (loss - θ) varies as the weighted mean θ of the losses does, to
        first order, as of every ratio of two sums.
        """
        loss = self.loss
        if self.weights is not None:
            loss = np.asarray(self.share[:, None] * (loss - self.value))
        return variance_components(loss, self.counts, self.groups)

    def without_parts(self) -> Iterator[_Losses]:
        """Yield the losses without one part of the units at a time."""
        units = self.units
        number = int(units.max()) + 1
        part = np.random.default_rng(0).permutation(number) % min(number, MOST_PARTS)
        for left_out in range(min(number, MOST_PARTS)):
            kept = part[units] != left_out
            if (self.counts[kept].sum(axis=1) >= 2).any():
                weights, groups = (a if a is None else a[kept] for a in (self.weights, self.groups))
                yield _Losses(self.loss[kept], self.counts[kept], weights, groups)


def _by_formula(
    row: Metric, pilot: Predictions, pairs: Sequence[tuple[int, int]], request: Request
) -> tuple[list[Design], list[tuple[float, ...]]]:
    """Return designs by (A + B/n)/N, with the width that `evaluate` makes of such an error.

    The errors of the widths are the pilot's, by leaving out parts of it. Also the widths of each
    design without each of the parts.
    """
    losses = _Losses.of(row, pilot)
    (measure,) = judge_predictions(pilot, request).measures().values()
    each = [(part.value, *part.components()) for part in (losses, *losses.without_parts())]
    # A study has patients of the same sizes, and so as many more of them as it has cases.
    sizes = np.bincount(losses.units, losses.share)
    _, freedom, worth = resampling_of(sizes)

    def width(known: tuple[float, float, float], cases: int, raters: int) -> float:
        (value, between, within), often = known, cases / len(pilot)
        foreseen = Linearised(
            value,
            error=float(np.sqrt((between + within / raters) / cases)),
            freedom=max((freedom + 1) * often - 1, 1.0),
            worth=max(worth * often, 1.0),
            units=max(round(len(sizes) * often), 1),
        )
        low, high = shaped_ends(foreseen, measure)
        return high - low

    found, without = [], []
    for n, r in pairs:
        whole, *rest = (width(known, n, r) for known in each)
        error = float(np.sqrt((len(rest) - 1) * np.var(rest)))
        error = 0.0 if error < ROUNDING * whole else error
        found.append(Design(n, r, whole, 0.0, "formula", error))
        without.append(tuple(rest))
    return found, without


# --- everything else, by simulation --------------------------------------------------------------


def _simulated(
    row: Metric,
    pilot: Predictions,
    pairs: Sequence[tuple[int, int]],
    request: Request,
    repeats: int,
    progress: Progress | None,
) -> list[Design]:
    settings, report = request.settings, reporting(progress)
    positive_integer("repeats", repeats)
    positive_integer("resamples", settings.resamples, least=2)
    concentrations = _label_model(pilot)
    truth = _truth(row, pilot, concentrations, request)
    found = []
    for i, (cases, raters) in enumerate(pairs):
        widths, values = np.empty(repeats), np.empty(repeats)
        for r in range(repeats):
            random = np.random.default_rng([settings.seed, cases, raters, r])
            study = _study(pilot, concentrations, cases, raters, random)
            result = judge_predictions(study, request).estimates[row.name]
            known = result.value is not None and result.low is not None and result.high is not None
            widths[r] = result.high - result.low if known else np.nan  # type: ignore[operator]
            values[r] = np.nan if result.value is None else result.value
            report("simulating", (i * repeats + r + 1) / (len(pairs) * repeats))
        if np.isnan(widths).all():
            raise InvalidInputError(
                f"cases: {row.name} is undefined, or has no interval, in every simulated study of "
                f"{cases} cases"
            )
        width, mean, size = float(np.nanmean(widths)), float(np.nanmean(values)), cases / len(pilot)
        bias = mean - truth
        # Where the value follows the truth, an error of the pilot moves both and leaves the bias.
        share = min(abs(bias / mean), 1.0) if mean else 1.0
        errors = _standard_error(widths, size), _standard_error(values, share**2 * size)
        found.append(Design(cases, raters, width, bias, "simulation", *errors))
    return found


def _standard_error(values: FloatArray, size: float) -> float:
    """Return the standard error of the mean of simulated values; NaN of one alone.

    That of so many simulations, and that of the pilot they are drawn from: a study of n cases
    varies by s², because its cases are a sample, and so does the pilot's forecast of it by s² n / N
    for N cases of the pilot. `size` is n / N. (A pilot with more raters per case than the design
    knows more than that.)
    """
    known = values[~np.isnan(values)]
    return float(known.std(ddof=1) * np.sqrt(1 / len(known) + size)) if len(known) > 1 else np.nan


def _label_model(pilot: Predictions) -> FloatArray:
    """Return what the pilot teaches about each case's labels: Dirichlet parameters (N, K).

    The model's probabilities, brought to the pilot's scale by a temperature, are the prior mean;
    α-calibration finds how sure of it to be; each case's own labels are then added (LH eq 79).
    """
    from raterwise.calibrators.alpha import AlphaCalibration
    from raterwise.calibrators.scaling import TemperatureScaling

    probs = pilot.read(0, len(pilot)).probs.astype(np.float64)
    scaled = TemperatureScaling(input="probs").fit(probs, pilot.labels).predict_proba(probs)
    alpha = AlphaCalibration().fit(None, pilot.labels, probs=scaled, groups=pilot.groups)
    belief = alpha.predict(None, probs=scaled)
    return np.asarray(belief.concentration[:, None] * scaled + pilot.labels.counts)


def _study(
    pilot: Predictions,
    concentrations: FloatArray,
    cases: int,
    raters: int,
    random: np.random.Generator,
) -> Predictions:
    """Draw cases (whole patients where they are known) from the pilot, and labels for them."""
    rows, patients = _drawn(pilot, cases, random)
    counts = random.multinomial(raters, _dirichlet(concentrations[rows], random))
    weights = None if pilot.weights is None else pilot.weights[rows]
    return Predictions.of(
        pilot.probs[rows], Labels.from_counts(counts), weights=weights, groups=patients
    )


def _drawn(
    pilot: Predictions, cases: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    if pilot.groups is None:
        return random.integers(0, len(pilot), cases), None
    members = [np.flatnonzero(pilot.groups == g) for g in np.unique(pilot.groups)]
    rows: list[NDArray[np.int64]] = []
    while sum(len(part) for part in rows) < cases:
        rows.append(members[random.integers(len(members))])
    patients = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    return np.concatenate(rows)[:cases], patients[:cases]


def _dirichlet(concentrations: FloatArray, random: np.random.Generator) -> FloatArray:
    gammas = random.standard_gamma(concentrations)
    total = gammas.sum(axis=1, keepdims=True)
    even = np.full_like(gammas, 1 / gammas.shape[1])
    return np.where(total > 0, gammas / np.where(total > 0, total, 1), even)


def _truth(row: Metric, pilot: Predictions, concentrations: FloatArray, request: Request) -> float:
    """Return the metric of an endless study with endless raters, under the label model."""
    random = np.random.default_rng([request.settings.seed, 0])
    copies = max(1, 20_000 // len(pilot))
    rows = np.tile(np.arange(len(pilot)), copies)
    exact = np.round(_dirichlet(concentrations[rows], random) * 1_000_000).astype(np.int64)
    weights = None if pilot.weights is None else pilot.weights[rows]
    study = Predictions.of(
        pilot.probs[rows], Labels.from_counts(exact), weights=weights, on_unrated="drop"
    )
    found = judge_predictions(study, request.with_settings(resamples=0))
    value = found.estimates[row.name].value
    return np.nan if value is None else value

"""Kernel-density calibration errors, their bandwidth and SmoothECE, on plain arrays.

Expected values: the released estimator's numbers, densities from SciPy in a double loop, hand
calculation, and numbers printed by relplot.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import beta, norm

import raterwise as rw
from golden import KDE, GoldenValue, find, values
from raterwise.densities import pairs
from raterwise.densities.bandwidth import (
    BANDWIDTHS,
    dirichlet_log_likelihood,
    score_log_likelihood,
    select_bandwidth,
    select_bandwidth_from_cells,
    select_dirichlet_bandwidth,
)
from raterwise.densities.cells import ScoreCells, beta_kde_from_cells, score_cells
from raterwise.densities.pairs import EPSILON, canonical_kde, growing_kde, top_label_kde
from raterwise.densities.smooth_ece import _residuals_on_grid, _smoothed, smooth_ece
from raterwise.errors import UndefinedMetricError
from raterwise.kernels import _threads
from raterwise.kernels._threads import with_threads
from raterwise.summaries.cells import cells_of, fine_cells

Array = Any


def logs(p: Array) -> Array:
    """Logarithms, finite at zero."""
    return np.log(np.clip(p, np.finfo(np.float64).eps, None))


def beta_kernel(z: Array, h: float) -> Array:
    """Density at z_j (row) of the Beta kernel centred at z_i (column)."""
    at = np.clip(z, 2.3e-16, 1 - 2.3e-16)[:, None]
    return beta.pdf(at, z[None] / h + 1, (1 - z[None]) / h + 1)


def naive(z: Array, hits: Array, masses: Array, h: float, p: int) -> float:
    """The definition, case by case."""
    kernels = beta_kernel(z, h)
    total = 0.0
    for j in range(len(z)):
        others = np.arange(len(z)) != j
        ratio = (kernels[j, others] @ hits[others]) / (kernels[j, others] @ masses[others])
        total += masses[j] * abs(ratio - z[j]) ** p
    return float(total / masses.sum())


def sample(cases: int, scale: float, seed: int, raters: Any = 1) -> tuple[Array, Array, Array]:
    """Confidences of softmax outputs with logits of this scale, and raters who agree less."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(cases, 10))
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    z = (probs / probs.sum(axis=1, keepdims=True)).max(axis=1)
    masses = np.broadcast_to(raters, cases).astype(np.int64)
    agreement = np.clip(z - 0.2 * z * (1 - z) - 0.01, 0, 1)
    return z, rng.binomial(masses, agreement).astype(np.float64), masses.astype(np.float64)


# the exact estimator ------------------------------------------------------------------------


# ece-kde at commit d9f60c0: dirichlet_kernel of PROBS and beta_kernel of their largest entries,
# bandwidth 0.05; row = evaluated case, column = centre; the diagonal is left out of every sum.
PROBS = np.array([
    [0.7670198293506321, 0.14177736861205953, 0.09120280203730846],
    [0.0013424124463591563, 0.9974266063009566, 0.0012309812526841526],
    [0.03463855036927783, 0.0014750799949878814, 0.9638863696357343],
])  # fmt: skip
LOG_DIRICHLET = np.array([
    [-np.inf, -32.71589001017419, -37.98722172107055],
    [-96.16978752332926, -np.inf, -125.32330608540951],
    [-52.62961370008959, -123.81694000026641, -np.inf],
])  # fmt: skip
LOG_BETA = np.array([
    [-np.inf, -2.1386795879884692, -0.8612251768964239],
    [-15.495887646458428, -np.inf, 0.9480129387815364],
    [-3.7125229228239682, 2.32282653455922, -np.inf],
])  # fmt: skip


def test_log_beta_kernel_of_the_released_code() -> None:
    """The terms of the sorted scores make the released log-kernel."""
    order = np.argsort(PROBS.max(axis=1))
    terms = pairs.beta_terms(PROBS.max(axis=1)[order], 0.05)
    ours = terms.s[:, None] * terms.c + terms.g + terms.t[:, None]
    np.fill_diagonal(ours, -np.inf)
    np.testing.assert_allclose(ours, LOG_BETA[np.ix_(order, order)], rtol=0, atol=1e-12)


def test_dirichlet_kernel_of_the_released_code() -> None:
    """Sums over the other cases are those of the released log-kernels."""
    cases = np.arange(3)
    sums, shift = pairs.sum_dirichlet_kernels(PROBS, np.ones((3, 1)), PROBS, 0.05, cases, cases)
    expected = logsumexp(LOG_DIRICHLET, axis=1)
    np.testing.assert_allclose(np.log(sums[0]) + shift, expected, rtol=0, atol=1e-12)


@values(
    "ECE_KDE_top_label", "ECE_KDE_marginal", "ECE_KDE_canonical", repository=KDE,
    where=lambda g: g.params["bandwidth"] != "LOO" and g.params["dtype"] == "float64",
)  # fmt: skip
def test_released_values_to_the_last_digits(golden: GoldenValue) -> None:
    """One rater: the three kinds agree with the released code to 1e-13."""
    data, options = golden.data, {k: golden.params[k] for k in ("p", "bandwidth")}
    hits = np.eye(data.num_classes)[data.classes]
    if golden.what == "ECE_KDE_top_label":
        right = (data.probs.argmax(axis=1) == data.classes).astype(np.float64)
        ours = top_label_kde(data.probs.max(axis=1), right, np.ones(len(right)), **options)
    elif golden.what == "ECE_KDE_marginal":
        ours = data.num_classes * rw.kde_ece(data.probs, data.classes, "per_class", **options)
    else:
        ours = canonical_kde(data.probs, hits, floor=1e-10, **options)
    assert ours == golden.approx(1e-13)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("bandwidth", [0.003, 0.05, 0.7])
def test_several_raters_leave_out_the_case(bandwidth: float, p: int) -> None:
    """Unequal masses, fractional hits, ties: the definition in a double loop."""
    rng = np.random.default_rng(5)
    z = rng.choice(np.round(rng.random(60), 3), size=150)
    masses = rng.choice([1.0, 2.0, 3.5], size=150)
    hits = masses * rng.choice([0, 0.25, 0.5, 1], size=150)
    ours = top_label_kde(z, hits, masses, p=p, bandwidth=bandwidth)
    assert ours == pytest.approx(naive(z, hits, masses, bandwidth, p), abs=1e-12)


def test_leaving_out_the_copy_in_cells_and_in_a_stream(tmp_path: Path) -> None:
    """The cells know labels too: the value is that of the scores, within the bound.

    By hand, two labels of 0.5 that differ: what is left out leaves the other, so the error is
    |1 - 0.5| or |0 - 0.5|, one half; leaving out the case would leave nothing.
    """
    random = np.random.default_rng(0)
    p, ratings = random.random(60), random.integers(0, 2, (60, 3))
    counts = rw.Labels.from_ratings(ratings, 2).counts
    counts[::4] = [2, 0]
    held = rw.Labels.from_counts(counts)
    exact = rw.kde_ece(p, held, bandwidth=0.05, leave_out="copy", method="exact")
    cells = rw.kde_ece(p, held, bandwidth=0.05, leave_out="copy", method="cells")
    assert cells == pytest.approx(exact, abs=1e-5)
    assert abs(exact - rw.kde_ece(p, held, bandwidth=0.05)) > 1e-4
    table = {"prob_1": p, "count_0": counts[:, 0], "count_1": counts[:, 1]}
    pl.DataFrame(table).write_parquet(tmp_path / "t.parquet")
    own = {"kde_ece": {"leave_out": "copy", "bandwidth": 0.05}}
    found = rw.evaluate_stream(
        tmp_path / "t.parquet", "kde_ece", options=own, resamples=0, count_prefix="count_"
    )["kde_ece"]
    assert abs(float(found) - exact) <= (found.bound or 0)
    for method in ("exact", "cells"):
        two = rw.Labels.from_counts([[1, 1]])
        told: dict[str, Any] = {"bandwidth": 0.05, "leave_out": "copy", "method": method}
        assert rw.kde_ece([0.5], two, **told) == pytest.approx(0.5)
    with pytest.raises(
        rw.InvalidInputError, match='leave_out: "copy" needs per="annotation"; got per="case"'
    ):
        rw.kde_ece(p, held, leave_out="copy", per="case")


def test_leaving_out_the_copy_is_repeating_the_rows() -> None:
    """`leave_out="copy"` on masses equals one rater on repeated rows, for all three kinds."""
    rng = np.random.default_rng(8)
    probs = rng.dirichlet(np.ones(3), size=80)
    counts = rng.multinomial(3, [0.5, 0.3, 0.2], size=80).astype(np.float64)
    rows = np.repeat(probs, 3, axis=0)
    labels = np.repeat(np.tile(np.arange(3), 80), counts.ravel().astype(int))
    hits = np.eye(3)[labels]
    # Repeated rows are cases of their own, so leaving out the case is leaving out the copy.
    ours = canonical_kde(probs, counts, bandwidth=0.02, leave_out="copy")
    assert ours == pytest.approx(canonical_kde(rows, hits, bandwidth=0.02), abs=1e-12)
    assert ours != pytest.approx(canonical_kde(probs, counts, bandwidth=0.02), abs=1e-5)
    told = {"question": "per_class", "bandwidth": 0.02}
    held = rw.Labels.from_counts(counts.astype(int))
    ours = rw.kde_ece(probs, held, leave_out="copy", **told)
    assert ours == pytest.approx(rw.kde_ece(rows, labels, **told), abs=1e-12)
    assert ours != pytest.approx(rw.kde_ece(probs, held, **told), abs=1e-5)


def test_canonical_by_double_loop() -> None:
    """Several raters, K = 3: Dirichlet densities from SciPy, the case left out."""
    from scipy.stats import dirichlet

    rng = np.random.default_rng(2)
    probs = rng.dirichlet(np.ones(3), size=70)
    hits = rng.multinomial(4, [0.5, 0.3, 0.2], size=70) * rng.choice([1.0, 2.0], size=(70, 1))
    total = 0.0
    for j in range(70):
        kernels = np.array([dirichlet.pdf(probs[j], f / 0.05 + 1) for f in probs])
        kernels[j] = 0
        ratio = kernels @ hits / (kernels @ hits.sum(axis=1))
        total += hits[j].sum() * np.abs(ratio - probs[j]).sum()
    ours = canonical_kde(probs, hits, bandwidth=0.05)
    assert ours == pytest.approx(total / hits.sum(), abs=1e-12)


def test_canonical_of_two_classes_is_twice_the_binary_one() -> None:
    """With K = 2 the Dirichlet kernel is the Beta kernel and both classes err alike."""
    rng = np.random.default_rng(3)
    z = rng.random(500)
    right = (rng.random(500) < z**2).astype(np.float64)
    binary = top_label_kde(z, right, np.ones(500), bandwidth=0.01)
    both = canonical_kde(np.column_stack((z, 1 - z)), np.column_stack((right, 1 - right)),
                         bandwidth=0.01)  # fmt: skip
    assert both == pytest.approx(2 * binary, abs=1e-12)


def test_lonely_cases_are_compared_with_their_nearest() -> None:
    """Two cases whose kernels underflow: each is compared with the other; hand calculation."""
    z, hits = np.array([0.1, 0.9]), np.array([1.0, 0.0])
    # |0 - 0.1| and |1 - 0.9|
    assert top_label_kde(z, hits, np.ones(2), bandwidth=1e-5) == pytest.approx(0.1, abs=1e-15)
    probs, onehot = np.array([[0.9, 0.1], [0.1, 0.9]]), np.eye(2)[[1, 0]]
    free = canonical_kde(probs, onehot, bandwidth=1e-5)
    assert free == pytest.approx(0.2, abs=1e-12)
    # Below the floor the ratio is nearly zero: every case errs by its own probabilities.
    floored = canonical_kde(probs, onehot, bandwidth=1e-5, floor=1e-10)
    assert floored == pytest.approx(1.0, abs=1e-12)


def in_logarithms(z: Array, hits: Array, masses: Array, h: float, p: int) -> float:
    """The definition with each case's kernels over the largest of them: none underflows."""
    total = 0.0
    for j in range(len(z)):
        others = np.arange(len(z)) != j
        at, centre = np.clip(z[j], EPSILON, 1 - EPSILON), z[others]
        logs_of = beta.logpdf(at, centre / h + 1, (1 - centre) / h + 1)
        kernels = np.exp(logs_of - logs_of.max())
        ratio = (kernels @ hits[others]) / (kernels @ masses[others])
        total += masses[j] * abs(ratio - z[j]) ** p
    return float(total / masses.sum())


@pytest.mark.parametrize("digits", [1, 2, 9])
@pytest.mark.parametrize("bandwidth", [1e-5, 1e-3, 0.3])
@pytest.mark.parametrize("p", [1, 2])
def test_growing_parts_share_their_kernels(digits: int, bandwidth: float, p: int) -> None:
    """Each part against the definition: ties, zeros and ones, far neighbours, unequal masses."""
    rng = np.random.default_rng(digits)
    cases, parts = 150, 7
    z = np.round(rng.uniform(-0.05, 1.05, cases).clip(0, 1), digits)
    masses = rng.integers(1, 5, cases) * rng.uniform(0.5, 2, cases)
    hits, ring = masses * rng.integers(0, 3, cases) / 2, rng.integers(1, parts, cases)
    ring[7] = 0  # a part of one case, which has no value
    order = np.lexsort((ring, z))
    columns = (column[order] for column in (z, hits, masses, ring))
    found = growing_kde(*columns, parts, p=p, bandwidth=bandwidth)
    of_parts = [
        in_logarithms(z[ring <= last], hits[ring <= last], masses[ring <= last], bandwidth, p)
        for last in range(1, parts)
    ]
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:], of_parts, rtol=1e-8)


def test_all_scores_equal() -> None:
    """A single score: the ratio is the frequency among the other cases, by hand."""
    z, hits = np.full(4, 0.5), np.array([1.0, 1.0, 1.0, 0.0])
    # hits see 2/3, the miss sees 3/3
    expected = (3 * abs(2 / 3 - 0.5) + 0.5) / 4
    assert top_label_kde(z, hits, np.ones(4), bandwidth=0.01) == pytest.approx(expected, abs=1e-14)
    value, bound = beta_kde_from_cells(score_cells(z, hits, np.ones(4)), bandwidth=0.01)
    assert abs(value - expected) <= bound


@pytest.mark.parametrize("bandwidth", [1e-5, 1e-3, 0.1, 1.0])
def test_probabilities_zero_and_one_are_finite(bandwidth: float) -> None:
    """Saturated scores alone, and among others: a number in [0, 1], never NaN."""
    z = np.array([0.0, 0.0, 0.3, 0.7, 1.0, 1.0, 1.0])
    hits = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    for rows in (slice(None), slice(3, 6), slice(1, 3)):
        value = top_label_kde(z[rows], hits[rows], np.ones(len(z[rows])), bandwidth=bandwidth)
        assert 0 <= value <= 1
    probs = np.column_stack((z, 1 - z))
    assert 0 <= canonical_kde(probs, np.column_stack((hits, 1 - hits)), bandwidth=bandwidth) <= 2


def test_saturated_scores_follow_the_definition() -> None:
    """Scores of exactly 0 and 1 agree with the double loop on clipped logarithms."""
    rng = np.random.default_rng(11)
    z = np.concatenate((np.zeros(5), np.ones(20), 1 - 10.0 ** -rng.uniform(1, 8, size=60)))
    hits = (rng.random(len(z)) < 0.8).astype(np.float64)
    weights = np.ones(len(z))
    ours = top_label_kde(z, hits, weights, bandwidth=0.01)
    normaliser = betaln(z / 0.01 + 1, (1 - z) / 0.01 + 1)
    log_kernel = z / 0.01 * logs(z)[:, None] + (1 - z) / 0.01 * logs(1 - z)[:, None] - normaliser
    np.fill_diagonal(log_kernel, -np.inf)
    kernels = np.exp(log_kernel - log_kernel.max(axis=1, keepdims=True))
    ratio = kernels @ hits / kernels.sum(axis=1)
    assert ours == pytest.approx(np.abs(ratio - z).mean(), abs=1e-10)


def test_one_case_is_undefined() -> None:
    """Nothing to compare with: an error, from all of them."""
    one = np.ones(1)
    with pytest.raises(UndefinedMetricError, match=r"at least two cases.*got 1"):
        top_label_kde(one / 2, one, one, bandwidth=0.1)
    with pytest.raises(UndefinedMetricError, match=r"at least two cases.*got 1"):
        canonical_kde(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]), bandwidth=0.1)
    with pytest.raises(UndefinedMetricError, match=r"at least two cases.*got 1"):
        beta_kde_from_cells(score_cells(one / 2, one, one), bandwidth=0.1)


def test_cases_of_no_mass_do_not_count() -> None:
    """A weight of zero is the absence of the case."""
    z, hits, masses = sample(50, 2.0, 1)
    weightless = np.r_[masses, np.zeros(5)]
    more = top_label_kde(np.r_[z, z[:5]], np.r_[hits, np.zeros(5)], weightless, bandwidth=0.01)
    assert more == pytest.approx(top_label_kde(z, hits, masses, bandwidth=0.01), abs=1e-15)


def test_threads_and_order_do_not_change_a_digit() -> None:
    """One worker or many: the same bits."""
    z, hits, masses = sample(3000, 3.0, 4)
    probs = np.column_stack((z, 1 - z))
    onehot = np.column_stack((hits, 1 - hits))
    found = []
    for threads in (4, 1):
        with with_threads(threads):
            found.append((
                top_label_kde(z, hits, masses, bandwidth=0.01),
                canonical_kde(probs, onehot, bandwidth=0.01),
                beta_kde_from_cells(score_cells(z, hits, masses), bandwidth=0.01),
            ))  # fmt: skip
    assert found[0] == found[1]


def test_one_thread_is_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts none, in the choice of the bandwidth, the value and the interval alike."""
    started: list[Any] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda t: (started.append(t), start(t)))
    monkeypatch.setattr(_threads, "_pool", lambda: started.append("pool") or pytest.fail("a pool"))
    z, hits, _ = sample(3000, 3.0, 4)
    rw.evaluate(z, hits.astype(int), metrics=["kde_ece"], threads=1, resamples=20)
    with with_threads(1):
        rw.kde_ece(z, hits.astype(int), question="canonical")
    assert started == []


# from cells ---------------------------------------------------------------------------------


def test_fine_cells_hold_every_equal_edge() -> None:
    """Bins that divide 5040 are exact re-binnings; 1.0 is alone among float32; sizes as stated."""
    edges = fine_cells()
    assert edges[0] == 0
    assert edges[-1] == 1
    assert (np.diff(edges) > 0).all()
    for bins in (5, 7, 10, 12, 15, 16, 18, 20, 24, 30):
        assert np.isin(np.arange(bins + 1) / bins, edges).all()
    near = np.nextafter(np.float32(1), np.float32(0)).astype(np.float64)
    assert cells_of(np.array([near]))[0] != cells_of(np.array([1.0]))[0]
    low, width = edges[:-1], np.diff(edges)
    tail = (low >= 2.0**-25) & (low < 0.1)
    assert (width[tail] <= low[tail] / 31).all()
    assert (width[tail] <= np.sqrt(low[tail]) / 1900).all()


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("raters", [1, 5, "varying"])
@pytest.mark.parametrize("scale", [1.5, 4.0, 12.0])
@pytest.mark.parametrize("bandwidth", [1e-5, 1e-4, 1e-3, 1e-2, 0.1])
def test_cells_keep_their_bound(scale: float, raters: Any, bandwidth: float, p: int) -> None:
    """The distance from the exact value is within the bound returned, saturated or not."""
    number = np.random.default_rng(0).integers(1, 6, size=5000) if raters == "varying" else raters
    z, hits, masses = sample(5000, scale, seed=3, raters=number)
    if scale == 12.0:
        z = z.astype(np.float32).astype(np.float64)
    exact = top_label_kde(z, hits, masses, p=p, bandwidth=bandwidth)
    value, bound = beta_kde_from_cells(
        score_cells(z, hits / masses, masses), p=p, bandwidth=bandwidth
    )
    assert abs(value - exact) <= bound


@pytest.mark.parametrize("scale", [1.5, 4.0, 8.0])
def test_cells_are_close_at_the_automatic_bandwidth(scale: float) -> None:
    """20,000 cases, one rater: the bound is below 1e-5, and so is the error."""
    z, hits, masses = sample(20_000, scale, seed=6)
    cells = score_cells(z, hits, masses)
    bandwidth = select_bandwidth_from_cells(cells.w, cells.d)
    assert bandwidth == select_bandwidth(z, masses)
    value, bound = beta_kde_from_cells(cells, bandwidth=bandwidth)
    assert bound <= 1e-5
    assert value == pytest.approx(top_label_kde(z, hits, masses, bandwidth=bandwidth), abs=bound)


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_cells_of_few_cases(seed: int, cases: int) -> None:
    """Sparse and clustered scores: within the bound of the exact value."""
    rng = np.random.default_rng(seed)
    z = np.clip(np.round(rng.random(cases), rng.integers(1, 5)) + 1e-5 * rng.random(cases), 0, 1)
    masses = np.ones(cases)
    hits = rng.integers(0, 2, size=cases).astype(np.float64)
    value, bound = beta_kde_from_cells(score_cells(z, hits, masses), bandwidth=0.01)
    assert abs(value - top_label_kde(z, hits, masses, bandwidth=0.01)) <= bound


def test_cells_merge_by_addition() -> None:
    """The sums of two halves add up to the sums of the whole."""
    z, hits, masses = sample(1000, 4.0, seed=2, raters=3)
    whole = score_cells(z, hits / 3, masses)
    halves = [score_cells(z[i], hits[i] / 3, masses[i]) for i in (slice(400), slice(400, None))]
    merged = ScoreCells(*(a + b for a, b in zip(*halves, strict=True)))
    value, _ = beta_kde_from_cells(merged, bandwidth=0.01)
    assert value == pytest.approx(beta_kde_from_cells(whole, bandwidth=0.01)[0], abs=1e-13)


# bandwidth ------------------------------------------------------------------------------------


def test_score_likelihood_by_double_loop() -> None:
    """Mean log of the density estimated from the other scores, masses counted."""
    rng = np.random.default_rng(4)
    z, masses = np.sort(rng.beta(2, 1, size=90)), rng.choice([1.0, 3.0], size=90)
    kernels = beta_kernel(z, 0.02) * (1 - np.eye(90))
    density = kernels @ masses / (masses.sum() - masses)
    expected = masses @ np.log(density) / masses.sum()
    assert score_log_likelihood(z, masses, 0.02) == pytest.approx(expected, abs=1e-12)


def released_choice(log_likelihood: Any) -> float:
    """The released rule: the same likelihood minus log(bandwidth), which is spurious."""
    return float(max(BANDWIDTHS, key=lambda h: log_likelihood(h) - np.log(h)))


@values("bandwidth_LOO_MLE", repository=KDE, where=lambda g: g.params["dtype"] == "float64")
def test_released_bandwidth_has_a_spurious_term(golden: GoldenValue) -> None:
    """Not matched on purpose; with the spurious -log(bandwidth) our likelihood chooses the same."""
    probs = golden.data.probs
    ones = np.ones(len(probs))
    if golden.params["kernel"] == "dirichlet":
        choice = released_choice(lambda h: dirichlet_log_likelihood(probs, ones, h))
        ours = select_dirichlet_bandwidth(probs)
    else:
        z = np.sort(probs.max(axis=1))
        choice = released_choice(lambda h: score_log_likelihood(z, ones, h))
        ours = select_bandwidth(z)
    assert choice == pytest.approx(golden.value, rel=1e-6)
    assert ours > choice


def test_bandwidth_does_not_collapse_on_ties() -> None:
    """Rounded, repeated or partly saturated scores: about the bandwidth of the smooth sample."""
    z = np.random.default_rng(7).beta(3, 2, size=2000)
    smooth = select_bandwidth(z)
    assert 1e-3 < smooth < 1e-1
    assert select_bandwidth(np.repeat(z, 5)) == smooth
    assert select_bandwidth(z, np.full(2000, 5.0)) == smooth
    assert select_bandwidth(np.round(z, 2)) > 1e-4
    assert select_bandwidth(np.r_[z, np.ones(600)]) > 1e-4
    probs = np.random.default_rng(7).dirichlet([3, 2, 2], size=400)
    chosen = select_dirichlet_bandwidth(probs)
    assert select_dirichlet_bandwidth(np.repeat(probs, 3, axis=0)) == chosen > 1e-3


def test_released_bandwidth_on_repeated_rows_collapses() -> None:
    """The released rule takes the smallest bandwidth of its grid on repeated rows; ours not."""
    for golden in find("MR_bandwidth_LOO_MLE", repository=KDE):
        assert golden.value == pytest.approx(1e-5)
        data = golden.data
        repeated = np.repeat(data.probs, data.counts.sum(axis=1).astype(int), axis=0)
        assert select_dirichlet_bandwidth(repeated) > 1e-4


def test_bandwidth_finds_the_better_density() -> None:
    """With the density known, the choice is within a grid step or two of the best one."""
    rng = np.random.default_rng(9)
    z = np.sort(rng.beta(4, 2, size=600))
    grid = (np.arange(300) + 0.5) / 300
    truth = beta(4, 2).pdf(grid)

    def divergence(h: float) -> float:
        density = beta.pdf(grid[:, None], z / h + 1, (1 - z) / h + 1).mean(axis=1)
        return float(np.mean(truth * np.log(truth / density)))

    best = min(divergence(h) for h in BANDWIDTHS[8:16])
    assert divergence(select_bandwidth(z)) < best + 3e-3


def test_one_distinct_prediction_takes_the_smoothest_bandwidth() -> None:
    """Nothing can be foreseen, and nothing depends on the bandwidth."""
    assert select_bandwidth(np.full(5, 0.5)) == 1.0
    assert select_dirichlet_bandwidth(np.full((5, 2), 0.5)) == 1.0


# SmoothECE ------------------------------------------------------------------------------------


def relplot_case() -> tuple[Array, Array]:
    """Scores away from the ends, where relplot halves the mass on its last grid point."""
    i = np.arange(500)
    z = 0.1 + 0.8 * ((i + 0.5) / 500) ** 0.7
    return z, ((i * 7919) % 1000 / 1000 < z**1.3).astype(np.float64)


@pytest.mark.parametrize(
    ("sigma", "expected"),
    # relplot 1.0.3 with relplot.config.smECE_mesh_pts = 40001: relplot.metrics.smECE_sigma(z, y, s)
    [(0.02, 0.07599997640610093), (0.05, 0.07486059110846757), (0.1, 0.07458904147693725)],
)
def test_smooth_ece_at_a_bandwidth_against_relplot(sigma: float, expected: float) -> None:
    """relplot's mesh leaves six decimals."""
    z, y = relplot_case()
    found = _smoothed(_residuals_on_grid(z, y - z), sigma) / 500
    assert found == pytest.approx(expected, abs=1e-6)


def test_smooth_ece_against_relplot() -> None:
    """relplot.metrics.smECE(z, y), same mesh; its bandwidth search stops 1/1024 from the root."""
    z, y = relplot_case()
    assert smooth_ece(z, y - z, np.ones(500)) == pytest.approx(0.07458912442747162, abs=1e-4)


def test_smooth_ece_is_a_fixed_point_of_the_reflected_integral() -> None:
    """At sigma* the integral, by quadrature over mirror images, is sigma*; scores up to 0 and 1."""
    rng = np.random.default_rng(1)
    z = np.concatenate((rng.beta(4, 1, size=200), np.zeros(5), np.ones(20)))
    mu, mass = rng.choice([0, 0.5, 1], size=225), rng.choice([1.0, 2.0], size=225)
    sigma = smooth_ece(z, mass * (mu - z), mass)
    t = (np.arange(4_000) + 0.5) / 4_000
    images = [sign * z + 2 * k for sign in (1, -1) for k in (-1, 0, 1)]
    smoothed = sum(norm.pdf(t[:, None], image, sigma) for image in images) @ (mass * (mu - z))
    assert np.abs(smoothed).mean() / mass.sum() == pytest.approx(sigma, abs=1e-6)


def test_smooth_ece_of_perfect_and_of_constant_predictions() -> None:
    """No residuals: 0. One residual sign: the mean residual, whatever the bandwidth."""
    z = np.linspace(0, 1, 101)
    assert smooth_ece(z, np.zeros(101), np.ones(101)) == 0
    assert smooth_ece(z, np.full(101, 0.2), np.ones(101)) == pytest.approx(0.2, abs=1e-9)


def test_smooth_ece_from_cells() -> None:
    """Means and sums of fine cells instead of the cases: the same to 1e-6."""
    z, hits, masses = sample(20_000, 3.0, seed=1)
    cells = score_cells(z, hits, masses)
    used = cells.w > 0
    means = fine_cells()[:-1][used] + cells.d[used] / cells.w[used]
    residuals = cells.mu[used] - cells.w[used] * means
    exact = smooth_ece(z, hits - z, masses)
    assert smooth_ece(means, residuals, cells.w[used]) == pytest.approx(exact, abs=1e-6)


# the public function ----------------------------------------------------------------------------


def equation(probs: Array, labels: Array, h: float, weights: Array, p: int = 1) -> float:
    """Eq 8 for all classes together, in logarithms, case by case."""
    hits = np.eye(probs.shape[1])[labels] * weights[:, None]
    total = 0.0
    for j in range(len(probs)):
        log_kernel = dirichlet_logs(probs, h, j) + np.log(weights)
        log_kernel[j] = -np.inf
        share = np.exp(log_kernel - logsumexp(log_kernel))
        ratio = share @ (hits / weights[:, None])
        total += weights[j] * (np.abs(ratio - probs[j]) ** p).sum()
    return float(total / weights.sum())


def dirichlet_logs(probs: Array, h: float, j: int) -> Array:
    """Log-density at case j of the Dirichlet kernel of every case."""
    a = probs / h
    norm = gammaln((a + 1).sum(axis=1)) - gammaln(a + 1).sum(axis=1)
    return norm + a @ logs(probs[j])


@pytest.mark.parametrize("h", [1e-4, 0.003, 0.1])
def test_canonical_has_no_floor_unless_told(h: float) -> None:
    """The equation, where densities underflow as well; the scale of the weights does not matter."""
    random = np.random.default_rng(12)
    probs = random.dirichlet(np.full(4, 0.6), size=60)
    labels = random.integers(0, 4, 60)
    weights = random.choice([1.0, 2.0, 0.5], size=60)
    found = rw.kde_ece(probs, labels, "canonical", bandwidth=h, weights=weights)
    assert found == pytest.approx(equation(probs, labels, h, weights), abs=1e-9)
    small = rw.kde_ece(probs, labels, "canonical", bandwidth=h, weights=1e-6 * weights)
    assert small == pytest.approx(found, abs=1e-12)
    floored = rw.kde_ece(probs, labels, "canonical", bandwidth=h, weights=weights, floor=1e-10)
    assert (abs(floored - found) > 0.05) == (h < 0.05)


def test_questions_of_the_kernel_error() -> None:
    """Each question against the estimator of its score; per class is the mean over classes."""
    random = np.random.default_rng(2)
    z = random.random(200)
    y = (random.random(200) < z).astype(int)
    probs, ones = np.stack((1 - z, z), axis=1), np.ones(200)
    of_one = top_label_kde(z, y.astype(float), ones, bandwidth=0.02)
    of_zero = top_label_kde(1 - z, 1.0 - y, ones, bandwidth=0.02)
    right = (probs.argmax(axis=1) == y).astype(float)
    of_top = top_label_kde(probs.max(axis=1), right, ones, bandwidth=0.02)
    found = {q: rw.kde_ece(probs, y, q, bandwidth=0.02) for q in ("top_label", "positive")}
    assert found == {"top_label": pytest.approx(of_top), "positive": pytest.approx(of_one)}
    per_class = rw.kde_ece(probs, y, question="per_class", bandwidth=0.02)
    assert per_class == pytest.approx((of_one + of_zero) / 2)
    assert rw.kde_ece(z, y, question="positive", bandwidth=0.02) == pytest.approx(of_one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"question": "classwise"}, "question: must be one of top_label, positive, per_class, can"),
        (
            {"floor": -1.0, "question": "canonical"},
            "floor: must be finite and not negative; got -1",
        ),
        ({"floor": 1e-10}, 'floor: is for question="canonical"; got question="top_label"'),
        ({"method": "cells", "question": "canonical"}, 'method: "cells" is for one score'),
    ],
)
def test_options_of_the_kernel_error(options: dict[str, Any], message: str) -> None:
    """What it does not know it refuses."""
    with pytest.raises(ValueError, match=message):
        rw.kde_ece([0.2, 0.8], [0, 1], bandwidth=0.1, **options)


def test_the_positive_kernel_error_is_for_two_classes() -> None:
    """As every question about the positive class."""
    with pytest.raises(ValueError, match='question: "positive" is for 2 classes; probs has 3'):
        rw.kde_ece(np.full((4, 3), 1 / 3), [0, 1, 2, 0], question="positive", bandwidth=0.1)


@pytest.mark.parametrize("question", ["top_label", "positive", "per_class", "canonical"])
@pytest.mark.parametrize("h", [1e-5, 0.02, 1.0])
def test_zero_and_one_are_finite_for_every_question(question: Any, h: float) -> None:
    """Predictions of exactly 0 and 1, right and wrong."""
    z = np.array([0, 0, 1, 1, 0.5, 0.25, 1e-300, 1 - 1e-16])
    value = rw.kde_ece(z, [0, 1, 1, 0, 1, 0, 0, 1], question=question, bandwidth=h)
    assert 0 <= value <= 2


# mass points ------------------------------------------------------------------------------------


def saturated_map(seed: int, digits: float) -> tuple[Array, Array, float]:
    """A probability map of which 82 % is exactly 0, rounded to 1/digits, its labels, its error."""
    random = np.random.default_rng(seed)
    z = np.where(random.random(40_000) < 0.82, 0, random.beta(0.8, 0.8, size=40_000))
    z = np.round(z * digits) / digits
    truth = z**1.6
    return z, (random.random(40_000) < truth).astype(int), float(np.abs(truth - z).mean())


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("digits", [255, 2**30])
def test_a_map_of_zeros_does_not_widen_the_kernel(seed: int, digits: float) -> None:
    """The bandwidth is that of the other pixels, and the error near the true one.

    With the zeros in the likelihood the widest bandwidth won, and the error was 2.5 times as large.
    """
    z, y, truth = saturated_map(seed, digits)
    inside = z[(z > 0) & (z < 1)]
    assert select_bandwidth(z) == select_bandwidth(inside) < 0.1
    value = rw.kde_ece(z, y, question="positive", method="cells")
    assert value == pytest.approx(truth, rel=0.35)
    ones = np.r_[1 - z, np.ones(20_000)]
    assert select_bandwidth(ones) == pytest.approx(select_bandwidth(1 - inside))


def test_certain_rows_do_not_choose_the_bandwidth_of_all_classes() -> None:
    """Rows that are certain of a class are mass points of the simplex."""
    random = np.random.default_rng(0)
    probs = random.dirichlet([3, 2, 2], size=300)
    chosen = select_dirichlet_bandwidth(probs)
    certain = np.eye(3)[random.integers(0, 3, 1500)]
    assert select_dirichlet_bandwidth(np.concatenate((certain, probs))) == chosen
    assert select_dirichlet_bandwidth(certain) in BANDWIDTHS


def test_a_bandwidth_at_the_end_of_the_grid_warns() -> None:
    """Scores of one digit have no density: the function says so, and a given bandwidth is quiet."""
    random = np.random.default_rng(3)
    z = np.round(random.random(2000), 1)
    y = (random.random(2000) < z).astype(int)
    chosen = select_bandwidth(z)
    assert chosen.at_end and chosen == 1.0
    for question in ("positive", "per_class"):
        with pytest.warns(UserWarning, match="kde_ece: the bandwidth chosen by likelihood, 1, is"):
            rw.kde_ece(z, y, question=question)
    rw.kde_ece(z, y, question="positive", bandwidth=1.0)
    smooth = select_bandwidth(random.beta(3, 2, size=2000))
    assert not smooth.at_end and smooth.warning is None
    assert not select_bandwidth(np.full(5, 0.5)).at_end  # nothing depends on it


def test_the_smallest_bandwidth_warns_as_well() -> None:
    """Rows that differ in the twelfth digit."""
    rows = 0.5 + 1e-12 * np.random.default_rng(0).normal(size=(40, 1)) * np.array([[1, -1]])
    told = "1e-05, is the smallest that was tried.*; bandwidth=0.01 sets another"
    with pytest.warns(UserWarning, match=told):
        rw.kde_ece(rows, np.arange(40) % 2, question="canonical")

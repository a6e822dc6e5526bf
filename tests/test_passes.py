"""What the wiring of intervals does, seen from outside: each test fails if a part is left out.

The numbers that are expected are worked out here, by equations or by repeating the resampling
case by case.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from scipy.special import expit, ndtr

import raterwise as rw
from raterwise.evaluation.judged import judge_predictions
from raterwise.evaluation.request import Request
from raterwise.inference.draws import multiplicities
from raterwise.inference.settings import Settings
from raterwise.kernels._threads import in_threads, number_of_threads, with_threads
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.streaming.cluster import _named


def ends(found: rw.Results, name: str) -> tuple[float, float]:
    """Return an interval."""
    low, high = found[name].low, found[name].high
    assert low is not None and high is not None
    return low, high


def test_cases_that_resample_to_nothing_have_the_noise_of_a_calibrated_model() -> None:
    """200 cases with p = 0.01 and no positive resample to no noise at all; 0 is not excluded.

    A calibrated model would have a standard error of sqrt(0.01 · 0.99 / 200) = 0.007 there, so a
    true error of 0.01 + 1.96 · 0.007 = 0.024 is not excluded either.
    """
    found = rw.evaluate(np.full(200, 0.01), np.zeros(200, int), "ece", question="positive")
    low, high = ends(found, "ece")
    assert found["ece"].value == pytest.approx(0.01)
    assert low == 0
    assert high == pytest.approx(0.01 + 1.96 * 0.00704, rel=0.03)


@pytest.mark.parametrize("name", ["classwise_ece", "robust_ece"])
def test_every_class_has_the_noise_of_a_calibrated_model(name: str) -> None:
    """The same of both classes, in bins and in soft bins too narrow to be soft.

    The mean of two deviations with a standard error of 0.007 each has one of 0.007 / sqrt(2).
    """
    own = {"sigma": 1e-4, "question": "per_class"} if name == "robust_ece" else {}
    low, high = ends(rw.evaluate(np.full(200, 0.01), [0] * 200, name, options={name: own}), name)
    assert low == 0
    assert high == pytest.approx(0.01 + 1.96 * 0.00704 / np.sqrt(2), rel=0.02)


@pytest.mark.parametrize("share", [0.0, 0.005, 0.01, 0.02, 0.03])
def test_rare_positives_are_covered(share: float) -> None:
    """p = 0.01 for 200 cases of which `share` are positive: the true error |share - 0.01| is in.

    All cases are alike, so their number of positives decides, and the coverage is an exact sum of
    binomial probabilities. For a calibrated model it was 0.866 when no noise could not be scaled.
    """
    covered = 0.0
    for positives in range(20):
        y = (np.arange(200) < positives).astype(int)
        low, high = ends(rw.evaluate(np.full(200, 0.01), y, "ece", question="positive"), "ece")
        if low - 1e-12 <= abs(share - 0.01) <= high + 1e-12:
            covered += float(stats.binom.pmf(positives, 200, share))
    assert covered > 0.95


def test_raters_who_disagree_as_predicted_are_not_taken_for_copies() -> None:
    """Ten raters who say yes to p = 1/2 as independent ones would have the noise of 1,000 labels.

    Of ten labels per case it is sqrt(1/4 / 100 / 10) = 0.016, of one 0.05.
    """
    yes = np.random.default_rng(0).binomial(10, 0.5, 100)
    labels = rw.Labels.from_counts(np.stack((10 - yes, yes), axis=1))
    found = rw.evaluate(np.full(100, 0.5), labels, "ece", question="positive")
    _, high = ends(found, "ece")
    assert found["ece"].value < high < found["ece"].value + 2.5 * 0.016
    alike = rw.Labels.from_counts(np.tile([[10, 0], [0, 10]], (50, 1)))
    _, far = ends(rw.evaluate(np.full(100, 0.5), alike, "ece", question="positive"), "ece")
    assert far > 0.08


@pytest.mark.parametrize("raters", [1, 2])
@pytest.mark.parametrize("name", ["ece", "classwise_ece", "robust_ece"])
def test_weights_make_cases_worth_fewer(name: str, raters: int) -> None:
    """Ten cases with most of the weight are worth about ten: (Σw)²/Σw² = 14.1, not 200.

    A calibrated model has no positive among 14 cases in three of four such samples. A second rater
    who says the same changes nothing.
    """
    p, y = np.full(200, 0.02), np.zeros((200, raters), int)
    labels = y[:, 0] if raters == 1 else rw.Labels.from_ratings(y, num_classes=2)
    weights = np.r_[np.full(10, 100.0), np.ones(190)]
    options = {"question": "positive"} if name == "ece" else {}
    _, plain = ends(rw.evaluate(p, labels, name, **options), name)
    low, heavy = ends(rw.evaluate(p, labels, name, weights=weights, **options), name)
    # The standard error sqrt(0.02 · 0.98 / n) grows from 0.0099 to 0.037.
    assert plain < 0.02 + 2.5 * 0.0099
    assert heavy > 0.02 + 1.5 * 0.037
    assert low == 0


def test_many_cases_are_pooled_at_random() -> None:
    """20,000 cases, the wrong ones first: blocks of neighbours would be 60 times as uncertain."""
    n = 20_000
    y = (np.arange(n) >= n // 5).astype(int)
    low, high = ends(rw.evaluate(np.full(n, 0.9), y, "accuracy", resamples=400), "accuracy")
    error = np.sqrt(0.8 * 0.2 / n)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.15)


def test_resampled_ranks_lie_around_the_value() -> None:
    """Within every cell of the resamples the right cases come first, which cells cannot see.

    Of n = 256 · m cases each run of m has its right half above its wrong half, so AUCCC is
    1/2 + 1/(2 · 256): the resampled values, made of cells, are moved up by what they miss.
    """
    runs, m = 256, 40
    score = 0.5 + 0.49 * (np.arange(runs * m) + 0.5) / (runs * m)
    right = np.tile(np.r_[np.zeros(m // 2, int), np.ones(m // 2, int)], runs)
    probs = np.stack((1 - score, score), axis=1)
    found = rw.evaluate(probs, right, "auccc", resamples=1000)
    assert found["auccc"].value == pytest.approx(0.5 + 0.5 / runs)
    error = np.std(found.replicates["auccc"]) / np.sqrt(1000)
    assert np.mean(found.replicates["auccc"]) == pytest.approx(0.5 + 0.5 / runs, abs=5 * error)
    assert 5 * error < 0.5 / runs


def test_resampled_ranks_are_those_of_the_cases_drawn() -> None:
    """Each resampled AUCCC, AURC and KS error against the function on the cases of that resample.

    With 256 cells for 300 cases hardly any case shares its cell with another.
    """
    random = np.random.default_rng(4)
    probs = random.dirichlet(np.ones(3), 300)
    y = (probs.cumsum(axis=1) > random.random((300, 1))).argmax(axis=1)
    found = rw.evaluate(probs, y, "auccc,aurc,augrc", resamples=30, seed=7)
    times = multiplicities(300, 30, seed=7)
    for name in ("auccc", "aurc", "augrc"):
        drawn = [np.repeat(np.arange(300), t.astype(int)) for t in times]
        expected = [getattr(rw, name)(probs[rows], y[rows]) for rows in drawn]
        np.testing.assert_allclose(found.replicates[name], expected, atol=2e-3)


def test_labels_of_unknown_raters_vary_as_new_ones_would() -> None:
    """100 cases, two labels that differ: two new labels have a mean with variance 1/8.

    The sample variance of a case's two labels is 1/2, that of their mean 1/4; over 100 cases the
    standard error of accuracy is sqrt(1/4 / 100) = 0.05. Drawn from their own histogram they vary
    by half of that.
    """
    labels = rw.Labels.from_counts(np.ones((100, 2), int))
    found = rw.evaluate(np.full(100, 0.9), labels, "accuracy", resamples=2000, unit="raters")
    low, high = ends(found, "accuracy")
    assert high - low == pytest.approx(2 * 1.96 * 0.05, rel=0.08)


def test_leaving_out_patients_gives_the_jackknife() -> None:
    """The interval of a debiased loss by patient is as wide as leaving out patients says."""
    random = np.random.default_rng(2)
    patients = np.arange(160) // 4
    q = np.repeat(random.dirichlet(np.ones(3), 40), 4, axis=0)
    labels = rw.Labels.from_counts(random.multinomial(3, q))
    probs = random.dirichlet(np.ones(3), 160)
    found = rw.evaluate(probs, labels, "dispersion_loss", groups=patients, resamples=1000)
    without = [
        rw.dispersion_loss(probs[patients != g], labels.take(patients != g)) for g in range(40)
    ]
    error = np.sqrt(39 / 40 * np.sum((without - np.mean(without)) ** 2))
    low, high = ends(found, "dispersion_loss")
    assert (high - low) / (2 * 2.02) == pytest.approx(error, rel=0.15)


def test_a_rater_takes_the_cases_that_nobody_else_saw_along() -> None:
    """Five raters with eight cases each, none in common: Student's interval of five means."""
    random = np.random.default_rng(5)
    p, y, rater = random.random(40), random.integers(0, 2, 40), np.arange(40) // 8
    labels = rw.Labels.from_long(np.arange(40), rater, y, num_classes=2)
    found = rw.evaluate(p, labels, "brier", unit="raters", resamples=50)
    means = ((p - y) ** 2).reshape(5, 8).mean(axis=1)
    half = stats.t.ppf(0.975, 4) * means.std(ddof=1) / np.sqrt(5)
    assert ends(found, "brier") == pytest.approx((means.mean() - half, means.mean() + half))


def test_resamples_of_known_raters_vary_as_other_raters_would() -> None:
    """Four raters of every case: the values are as far apart as the error of four means, s / √4.

    Four of them drawn with replacement vary by s √3 / 4, which is 13 % less. What a comparison of
    two models has for its error is made of these values.
    """
    random = np.random.default_rng(6)
    p = random.random(30)
    ratings = (random.random((30, 4)) < p[:, None] + [-0.3, 0, 0.1, 0.3]).astype(int)
    labels = rw.Labels.from_ratings(ratings, num_classes=2)
    found = rw.evaluate(p, labels, "brier", unit="raters", resamples=4000)
    means = ((p[:, None] - ratings) ** 2).mean(axis=0)
    drawn = np.asarray(found.replicates["brier"])
    assert drawn.std() == pytest.approx(means.std(ddof=1) / 2, rel=0.03)


@pytest.mark.parametrize("name", ["ece", "robust_ece", "smooth_ece", "ks_error"])
def test_a_sure_model_without_errors_may_have_missed_some(name: str) -> None:
    """30 of 30 right at 0.999: an accuracy of 0.025^(1/30) = 0.884 is possible, a gap of 0.115."""
    found = rw.evaluate(np.full(30, 0.999), np.ones(30, int), name)
    low, high = ends(found, name)
    assert low == 0
    assert high == pytest.approx(0.999 - 0.025 ** (1 / 30), abs=1e-3)


@pytest.mark.parametrize(("positives", "rejected"), [(57, False), (63, True)])
def test_copies_of_a_case_are_no_evidence(positives: int, rejected: bool) -> None:
    """100 patients of four like cases with p = 1/2 have a standard error of 0.05, not of 0.025.

    So 57 positive ones are 1.4 standard errors off, within chance, and 63 are 2.6, which is not.
    """
    y = np.repeat((np.arange(100) < positives).astype(int), 4)
    patients = np.arange(400) // 4
    found = rw.evaluate(np.full(400, 0.5), y, "ece", question="positive", groups=patients)
    assert (ends(found, "ece")[0] > 0) == rejected


@pytest.mark.parametrize(("positives", "rejected"), [(85, False), (83, True)])
def test_independent_cases_have_binomial_noise(positives: int, rejected: bool) -> None:
    """Of 100 cases with p = 0.9: P(|X - 90| >= 5) = 0.13 and P(|X - 90| >= 7) = 0.03.

    The cases' squared deviations are half as large again as 0.09, because the model is off.
    """
    gap = 90 - positives
    exact = stats.binom.cdf(positives, 100, 0.9) + stats.binom.sf(90 + gap - 1, 100, 0.9)
    assert (exact <= 0.05) == rejected
    y = (np.arange(100) < positives).astype(int)
    found = rw.evaluate(np.full(100, 0.9), y, "ece", question="positive")
    assert (ends(found, "ece")[0] > 0) == rejected


def test_only_the_ratio_of_weights_matters() -> None:
    """A thousandth of all weights gives the same values and intervals.

    But for AURC, a sum over accepted cases one by one, whose weights are counts.
    """
    random = np.random.default_rng(3)
    p, weights = random.beta(2, 2, 80), random.random(80)
    y = (random.random(80) < p**2).astype(int)
    names = "accuracy,brier,ece,classwise_ece,robust_ece,smooth_ece,ks_error,kde_ece,auccc,augrc"
    large, small = (
        rw.evaluate(p, y, names, weights=scale * weights, resamples=100) for scale in (1.0, 1e-3)
    )
    for name in names.split(","):
        assert small[name].value == pytest.approx(large[name].value)
        assert ends(small, name) == pytest.approx(ends(large, name)), name


def test_kappa_of_small_weights() -> None:
    """Fleiss' kappa of two cases worked by hand, whatever the scale of the weights.

    Labels 2 + 0 and 1 + 1: raters differ in half of the pairs and would by chance in 2 · 3/4 · 1/4
    = 3/8 of them, so kappa is 1 - (1/2) / (3/8) = -1/3.
    """
    labels = rw.Labels.from_counts([[2, 0], [1, 1]])
    for scale in (1.0, 1e-3):
        found = rw.evaluate([0.2, 0.4], labels, "fleiss_kappa", weights=[scale] * 2, resamples=0)
        assert found["fleiss_kappa"].value == pytest.approx(-1 / 3)


# threads, processes, files ----------------------------------------------------------------------


def every_interval_holds_its_value(found: rw.Results) -> None:
    """Check that the ends are numbers with the value between them."""
    for name in found:
        estimate = found[name]
        if estimate.value is not None:
            low, high = ends(found, name)
            assert np.isfinite([low, high]).all(), name
            assert low <= estimate.value <= high, name


def test_resamples_without_a_case_that_counts_are_left_out() -> None:
    """Of 20 cases three have two raters: one resample of thirty holds none of them."""
    random = np.random.default_rng(8)
    probs = random.dirichlet([1, 1], 20)
    counts = np.eye(2, dtype=int)[random.integers(0, 2, 20)]
    counts[:3] = [[2, 1], [1, 2], [3, 0]]
    labels = rw.Labels.from_counts(counts)
    with np.errstate(invalid="ignore"):  # the band of its curve has no value there
        found = rw.evaluate(probs, labels, resamples=100, on_single="drop")
    assert found["disagreement_calibration_error"].value is not None
    every_interval_holds_its_value(found)


def test_nothing_right_is_no_point() -> None:
    """Thirty cases, all wrong, whether the model was sure of them or certain."""
    side = np.eye(2)[[0, 1] * 15]
    for probs in (side, 0.8 * side + 0.1):
        found = rw.evaluate(probs, 1 - probs.argmax(axis=1), resamples=100)
        every_interval_holds_its_value(found)
        for name in ("accuracy", "aurc", "augrc", "ece", "classwise_ece", "sce", "robust_ece"):
            low, high = ends(found, name)
            assert high - low > 0.01, name


def test_a_unit_counts_by_its_weight() -> None:
    """Two cases have nearly all the weight: little is known, however many others there are."""
    random = np.random.default_rng(9)
    probs = random.dirichlet([1, 1], 60)
    weights = np.where(np.arange(60) < 2, 1e4, 1.0)
    found = rw.evaluate(probs, probs.argmax(axis=1), "accuracy", weights=weights, resamples=50)
    low, high = ends(found, "accuracy")
    assert (low, high) == (pytest.approx(0.025**0.5, abs=0.01), 1.0)  # as of two cases


def test_raters_who_agree_leave_the_interval_of_the_cases() -> None:
    """All right and no disagreement, over cases and raters: 0.025^(1/40), as of the cases alone."""
    probs = np.random.default_rng(10).dirichlet([1, 1], 40)
    right = np.repeat(probs.argmax(axis=1)[:, None], 3, axis=1)
    labels = rw.Labels.from_ratings(right, num_classes=2)
    found = rw.evaluate(probs, labels, "accuracy,aurc", unit="both", resamples=50)
    assert ends(found, "accuracy") == (pytest.approx(0.025 ** (1 / 40)), 1.0)
    assert ends(found, "aurc")[1] > 0.05


def test_classes_of_a_model_that_is_sure_of_everything_are_covered() -> None:
    """Sure, and wrong in five of a hundred: without the gap of decisions 88% had the truth."""
    truth = float(expit(np.random.default_rng(15).normal(7, 2, 100_000)).mean()) - 0.95
    held = 0
    for r in range(100):
        random = np.random.default_rng([17, r])
        z = expit(random.normal(7, 2, 50))
        side, hit = random.random(50) < 0.5, random.random(50) < 0.95
        positive = np.where(side, z, 1 - z)
        probs = np.stack([1 - positive, positive], axis=1)
        found = rw.evaluate(probs, (side == hit).astype(int), "classwise_ece", resamples=60)
        low, high = ends(found, "classwise_ece")
        held += low <= truth <= high
    assert held >= 95


def test_threads_reach_every_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """`threads=1` holds in the kernel errors and the test of the raters too, not only in sums."""
    from raterwise.kernels import _threads

    asked: list[int] = []

    def counted(work: Any, items: Any, threads: Any = None) -> Any:
        asked.append(threads or number_of_threads())
        return [work(item) for item in items]

    for name, module in list(sys.modules.items()):
        if name.startswith("raterwise") and hasattr(module, "in_threads"):
            monkeypatch.setattr(module, "in_threads", counted)
    monkeypatch.setattr(_threads, "_processors", lambda: 7)
    random = np.random.default_rng(0)
    ratings = random.integers(0, 2, (60, 3))
    labels = rw.Labels.from_ratings(ratings, num_classes=2)
    asked.clear()
    rw.evaluate(random.beta(1, 1, 60), labels, threads=1, resamples=20)
    assert asked and set(asked) == {1}
    asked.clear()
    rw.evaluate(random.beta(1, 1, 60), labels, resamples=20)
    assert 7 in asked


def test_a_worker_of_a_cluster_uses_one_thread() -> None:
    """What runs on a worker is told that the worker's thread is all there is."""
    assert _named(lambda part: number_of_threads(), None) == 1


def test_helpers_know_how_many_threads_are_allowed() -> None:
    """Work within work keeps to the setting, in whichever thread it is done."""

    def nested(i: int) -> int:
        time.sleep(0.01)
        return number_of_threads()

    with with_threads(3):
        assert in_threads(nested, range(6)) == [3] * 6


FORKED = """
import os, signal, threading, time
from raterwise.kernels._threads import in_threads

def slow(i):
    time.sleep(0.2)
    return threading.get_ident()

in_threads(slow, range(4), 2)
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(len(set(in_threads(slow, range(4), 2))))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """A child has the memory of the pool but not its threads: it works with two of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["2"], done.stderr


def test_a_checkpoint_knows_the_files_it_is_of(tmp_path: Path) -> None:
    """A file that was written anew since is another run, though its name and size are the same."""
    path = tmp_path / "t.parquet"
    p = np.linspace(0.01, 0.99, 100)

    def write(labels: Any) -> None:
        pq.write_table(pa.table({"prob_1": p, "y": labels}), path, row_group_size=50)

    write(np.zeros(100, np.int64))
    told = {"label_column": "y", "checkpoint": tmp_path / "kept", "resamples": 0}
    rw.evaluate_stream(path, "brier", **told)
    write(np.ones(100, np.int64))
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 10**9))
    with pytest.raises(rw.InvalidInputError, match="parts of another run"):
        rw.evaluate_stream(path, "brier", **told)


def test_a_log_loss_without_errors_has_room_for_one() -> None:
    """Thirty cases, all right at 99 %: one error would cost -log 0.01 = 4.6, and was not excluded.

    With no error seen, a share of up to 1 - 0.025^(1/30) = 12 % of the cases could be wrong; the
    upper end must leave room for a good part of 0.12 · 4.6 = 0.54, and the lower end not pass the
    value, -log 0.99 = 0.01.
    """
    low, high = ends(rw.evaluate(np.full(30, 0.99), np.ones(30, int), "nll"), "nll")
    assert 0 <= low <= 0.0101
    assert 0.3 < high < 1.5


def test_agreement_is_that_on_what_is_asked() -> None:
    """Ordered classes: raters who confuse neighbours agree more on the top label, by counting."""
    random = np.random.default_rng(3)
    cuts, centre = np.array([0.0, 0.6, 1.2, 1.8]), random.normal(-0.8, 1.2, 4000)
    below = ndtr((cuts - centre[:, None]) / np.hypot(0.7, 0.7))
    probs = np.diff(below, axis=1, prepend=0, append=1)
    latent = centre[:, None] + random.normal(0, 0.7, (4000, 1)) + random.normal(0, 0.7, (4000, 3))
    said = (latent[:, :, None] > cuts).sum(axis=2)
    top, z = probs.argmax(axis=1), probs.max(axis=1)
    hits = said == top[:, None]
    differ = np.mean([(hits[:, a] != hits[:, b]).mean() for a, b in ((0, 1), (0, 2), (1, 2))])
    labels = Labels.from_ratings(said, num_classes=5)
    for groups in (None, np.arange(4000) // 2):
        judged = judge_predictions(
            Predictions.of(probs, labels, groups=groups),
            Request.of("ece", settings=Settings(20)),
            verdict=True,
        )
        assert judged.pass_ is not None
        of_top = judged.pass_.agreement_on()
        assert of_top == pytest.approx(1 - differ / (2 * z * (1 - z)).mean(), abs=1e-9)
    assert judged.pass_.agreement + 0.05 < of_top
    assert judged.pass_.agreement + 0.02 < judged.pass_.agreement_on(5) < 0.25


def test_agreement_is_at_least_that_on_the_classes() -> None:
    """Raters who differ on whether it is class 0 as chance does, and agree on which other it is.

    By hand: probabilities 1/2, 1/4, 1/4 let two raters differ in 1 - 1/4 - 1/8 = 5/8, and they
    differ in 1/2, so that they agree by 1 - (1/2) / (5/8) = 1/5; on class 0 by 1 - (1/2) / (1/2).
    """
    said = np.array([(0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (1, 1), (2, 2)] * 50)
    labels = Labels.from_ratings(said, num_classes=3)
    judged = judge_predictions(
        Predictions.of(np.tile([0.5, 0.25, 0.25], (400, 1)), labels),
        Request.of("ece", settings=Settings(20)),
        verdict=True,
    )
    assert judged.pass_ is not None
    assert judged.pass_.agreement_on() == pytest.approx(0.2, abs=1e-12)

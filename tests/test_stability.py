"""Total variation and subsample curves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from raterwise.stability import subsample_curve, total_variation
from raterwise.stability.parts import Partition
from raterwise.stability.variation import variation_of


def simulated(cases: int, raters: int, seed: int = 0) -> tuple[np.ndarray, rw.Labels]:
    """An over-confident binary model, with several raters a case."""
    random = np.random.default_rng(seed)
    truth = random.beta(0.7, 0.7, cases)
    logit = 2.0 * np.log(truth / (1 - truth))
    positive = 1 / (1 + np.exp(-logit))
    counts = random.binomial(raters, truth)
    probs = np.stack((1 - positive, positive), axis=1)
    return probs, rw.Labels.from_counts(np.stack((raters - counts, counts), axis=1))


def test_a_metric_that_never_changes_has_no_variation() -> None:
    """The accuracy of a model that is always right is 1 on every subset: TV = 0."""
    tv = total_variation("accuracy", [[0.9, 0.1]] * 40, [0] * 40, repeats=3)
    assert tv == (0.0, 0.0)


def test_total_variation_is_the_mean_absolute_step() -> None:
    """TV is 1/n Σ |differences| over nested parts (MR eq 6), here with a metric counted by hand.

    The metric is the number of cases, so with N = 100 and steps of a quarter of the set from a
    half on, the parts have 50, 75 and 100 cases and both steps are 25.
    """
    tv = total_variation(
        lambda probs, labels: len(probs), [[0.5, 0.5]] * 100, [0] * 100, start=0.5, step=0.25
    )
    assert tv == (25.0, 0.0)


def test_the_spread_is_that_of_the_repeats() -> None:
    """Steps of 1 and 3 in two repeats, 3 and 5 in another: 2 and 4 on average, 3 ± 1."""
    assert variation_of(np.array([[0.0, 1.0, 4.0], [9.0, 6.0, 1.0]])) == (3.0, 1.0)


@pytest.mark.parametrize(
    ("start", "step", "ends"),
    [
        (0.2, 0.2, [20, 40, 60, 80, 100]),
        (0.5, 0.3, [50, 80, 100]),  # the last step is two thirds of one
        (0.5, 0.35, [50, 100]),  # and here 1.43 of them
    ],
)
def test_the_last_step_is_half_a_step_to_one_and_a_half(
    start: float, step: float, ends: list[int]
) -> None:
    """Parts grow by steps, and the last one is the whole set."""
    assert Partition(start, step).ends(100) == ends


def test_a_metric_of_pairs_wants_pairs() -> None:
    """Cases with a single rater are not left out in silence: one error names them."""
    probs = [[0.7, 0.3]] * 10
    labels = rw.Labels.from_counts([[1, 1]] * 9 + [[1, 0]])
    for measure in (total_variation, subsample_curve):
        with pytest.raises(
            rw.InvalidInputError, match=r"at least 2 labels per case; 1 of 10 .*; leave them"
        ):
            measure("epistemic_loss", probs, labels, repeats=2)


def test_several_raters_make_ece_steadier() -> None:
    """MR's claim (Table 1): the multi-rater ECE varies less than that of one rater."""
    probs, labels = simulated(400, 5)
    random = np.random.default_rng(1)
    one = np.array([random.choice(2, p=f) for f in labels.frequencies])
    several = total_variation("ece", probs, labels, repeats=30)
    single = total_variation("ece", probs, one, repeats=30)
    assert several.mean < 0.8 * single.mean


def test_a_name_and_its_function_agree() -> None:
    """ "ece" and rw.ece see the same subsets and give the same variation."""
    probs, labels = simulated(150, 3)
    assert total_variation("ece", probs, labels, repeats=4) == pytest.approx(
        total_variation(rw.ece, probs, labels, repeats=4), abs=1e-12
    )


@pytest.mark.parametrize("name", ["ece", "kde_ece"])
def test_a_name_and_its_function_have_one_curve(name: str) -> None:
    """Also where an option follows from the data: each subset has a bandwidth of its own."""
    probs, labels = simulated(120, 2)
    curves = [
        subsample_curve(metric, probs, labels, fractions=(0.2, 1), repeats=3, seed=1)
        for metric in (name, getattr(rw, name))
    ]
    np.testing.assert_allclose(curves[0].values, curves[1].values, rtol=1e-9)


def test_patients_are_drawn_whole() -> None:
    """With groups a subset holds all cases of each drawn patient."""
    groups = np.repeat(np.arange(20), 5)
    seen = []

    def count(probs: np.ndarray, labels: np.ndarray) -> float:
        seen.append(np.unique(labels, return_counts=True)[1])
        return 0.0

    probs = np.full((100, 20), 0.05)
    total_variation(count, probs, groups, groups=groups, repeats=2)
    assert all((counts % 5 == 0).all() for counts in seen)


def test_subsample_curve_ends_at_the_full_value() -> None:
    """The whole set is the whole set, in whatever order: no spread at fraction 1."""
    probs, labels = simulated(300, 2)
    curve = subsample_curve("brier", probs, labels, fractions=(0.1, 1), repeats=5)
    assert curve.sizes == (30, 300)
    assert curve.std[1] == pytest.approx(0, abs=1e-12)
    assert curve.mean[1] == pytest.approx(rw.brier(probs, labels), abs=1e-12)
    assert curve.full == pytest.approx(rw.brier(probs, labels), abs=1e-12)
    assert curve.difference[1].max() == pytest.approx(0, abs=1e-12)


def test_small_subsets_overstate_ece() -> None:
    """RECE Fig 1: the plain ECE grows as the sample shrinks, much more than RECE-G."""
    probs, labels = simulated(2000, 1)
    fractions = (0.02, 1)
    plain = subsample_curve("ece", probs, labels, fractions=fractions, repeats=20)
    robust = subsample_curve("robust_ece", probs, labels, fractions=fractions, repeats=20)
    assert plain.mean[0] - plain.full > 0.03
    assert robust.difference[0].mean() < plain.difference[0].mean()


def test_undefined_subsets_are_left_out() -> None:
    """AUCCC of a subset without a wrong case is NaN there, and the mean goes on without it."""
    probs = np.full((40, 2), (0.9, 0.1)) + np.linspace(0, 0.05, 40)[:, None] * [1, -1]
    y = np.zeros(40, int)
    y[0] = 1
    curve = subsample_curve("auccc", probs, y, fractions=(0.1, 1), repeats=20)
    assert np.isnan(curve.values[0]).any()
    assert np.isfinite(curve.mean[1])


def test_subsets_in_which_nothing_is_defined_have_no_mean() -> None:
    """One case has no AUROC: its mean and spread are NaN, without a warning of NumPy."""
    curve = subsample_curve("auroc", [0.2, 0.8] * 20, [0, 1] * 20, fractions=(0.025, 1), repeats=3)
    assert curve.sizes[0] == 1
    assert np.isnan([curve.mean[0], curve.std[0]]).all()
    assert (curve.mean[1], curve.std[1]) == (1.0, 0.0)
    assert curve == curve
    assert curve != replace(curve)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": 1.5}, "start: must lie between 0 and 1, both excluded; got 1.5"),
        ({"step": 0.0}, r"step: must be in \(0, 0.8\]; got 0.0"),
        ({"repeats": 0}, "repeats: must be at least 1; got 0"),
        ({"seed": -1}, "seed: must be at least 0; got -1"),
        ({"metric": "nope"}, "metric: no metric is called 'nope'"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    """Every bad argument is named with its rule and its value."""
    call = {"metric": "ece", **arguments}
    with pytest.raises(ValueError, match=message):
        total_variation(probs=[[0.5, 0.5]] * 4, labels=[0, 1, 0, 1], **call)
    with pytest.raises(ValueError, match="fractions"):
        subsample_curve("ece", [[0.5, 0.5]], [0], fractions=(0.0,))
    with pytest.raises(TypeError, match="seed: must be a whole number; got None"):
        subsample_curve("ece", [[0.5, 0.5]], [0], seed=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="metric: must be a name or a function; got 3"):
        subsample_curve(3, [[0.5, 0.5]], [0])  # type: ignore[arg-type]


def test_weights_count_in_every_subset() -> None:
    """Each subset by hand: the weighted share of right labels; drawn as without weights."""
    probs, labels = simulated(60, 3)
    weights = np.random.default_rng(1).integers(1, 6, 60).astype(float)
    curve = subsample_curve("accuracy", probs, labels, (0.5, 1), 4, 3, weights=weights)
    right = labels.frequencies[np.arange(60), probs.argmax(axis=1)]
    for i, size in enumerate((30, 60)):
        for r in range(4):
            rows = np.random.default_rng([3, i, r]).permutation(60)[:size]
            expected = np.average(right[rows], weights=weights[rows])
            assert curve.values[i, r] == pytest.approx(expected)
    assert curve.full == pytest.approx(np.average(right, weights=weights))
    same = subsample_curve(rw.accuracy, probs, labels, (0.5, 1), 4, 3, weights=weights)
    assert same.values == pytest.approx(curve.values)
    assert total_variation("accuracy", probs, labels, repeats=3, weights=weights) == pytest.approx(
        total_variation(rw.accuracy, probs, labels, repeats=3, weights=weights)
    )
    with pytest.raises(rw.InvalidInputError, match=r"must take weights=; this one takes p, y"):
        subsample_curve(lambda p, y: 0.0, probs, labels, weights=weights)


def test_the_bins_reach_the_curve_of_subsets():
    """In one bin 0.2 and 0.8 say one yes of two, which is right; apart, each is off by 0.8."""
    asked = {"fractions": (1,), "repeats": 1, "question": "positive"}
    for bins, error in ((1, 0.0), (2, 0.8)):
        curve = subsample_curve("ece", [0.2, 0.8], [1, 0], bins=bins, **asked)
        assert curve.full == pytest.approx(error)


@pytest.mark.parametrize("metric", ["nll", rw.nll])
def test_what_is_infinite_does_not_move(metric: Any) -> None:
    """-log 0 is infinite on every part: an error in words, without warnings of NumPy."""
    with pytest.raises(rw.UndefinedMetricError, match="undefined"):
        total_variation(metric, [[1.0, 0.0]] * 20, [1] * 20, repeats=3)

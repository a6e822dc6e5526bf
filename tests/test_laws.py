"""Laws that every metric of the catalog obeys; a new row is enrolled by being there.

A law is a test over all rows. `EXEMPT` says which rows a law does not hold for, and why; `NAIVE`
holds the slow version of each row, and a row without one fails the suite.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import quorate as qr
from quorate.catalog import CATALOG
from quorate.evaluate import predictions_of
from quorate.functions.measure import measure
from strategies import (
    CONCENTRATION,
    Array,
    Counts,
    Problem,
    dirichlet,
    ordinary,
    permutations,
    problems,
    problems_for,
    whole_weights,
)

EXEMPT: dict[str, dict[str, str]] = {
    "scaled weights": {
        "aurc": "its weights count cases: a coverage of one case is a step of the curve",
        "krippendorff_alpha": "its weights count labels: chance draws two without replacement",
    },
    "relabelled classes": {
        "ranked_probability_score": "its classes are ordered; reversing them is its law",
    },
}

FEW = settings(max_examples=15)


def each_metric(law: str = "") -> pytest.MarkDecorator:
    """Run a law on every row of the catalog that is not exempt from it."""
    names = [name for name in CATALOG if name not in EXEMPT.get(law, {})]
    return pytest.mark.parametrize("name", names)


def value(name: str, problem: Problem, weights: Any = None, **options: Any) -> float | None:
    """Return the metric; None where it is undefined."""
    return value_of(name, problem.probs, problem.labels, weights, **options)


def value_of(
    name: str, probs: Any, labels: Any, weights: Any = None, **options: Any
) -> float | None:
    """Return the metric of probabilities and labels of any kind; None where it is undefined."""
    if CATALOG[name].needs_belief:
        return value_of_belief(name, probs, labels, weights)
    try:
        return measure(name, probs, labels, weights, **options)
    except qr.UndefinedMetricError:
        return None


def value_of_belief(name: str, probs: Any, labels: Any, weights: Any = None) -> float | None:
    """Return the metric of a Dirichlet belief around the probabilities."""
    found = qr.evaluate(dirichlet(probs), labels, name, resamples=0, weights=weights)[name]
    if found.undefined and found.undefined.startswith("labels: "):
        raise qr.InvalidInputError(found.undefined)
    return found.value


def same(expected: float | None, rel: float = 1e-12, absolute: float = 1e-13) -> Any:
    """Equal to the last bits; undefined where the other is."""
    return None if expected is None else pytest.approx(expected, rel=rel, abs=absolute)


def for_unequal_weights(name: str) -> dict[str, Any]:
    """Return the options under which a metric takes unequal weights: LH eq 14 has none."""
    return {"estimator": "plugin"} if is_debiased(name) else {}


def for_repetition(name: str) -> dict[str, Any]:
    """Return the options under which a copy of a case is no different from its weight.

    A kernel estimate of one case comes from the others. By default those are the other cases, and
    then two equal cases know of each other what one case of weight 2 does not know of itself.
    """
    return {"leave_out": "copy"} if "leave_out" in CATALOG[name].options else {}


def is_debiased(name: str) -> bool:
    """Tell whether the metric subtracts a bias that LH defines for equal weights only."""
    return CATALOG[name].options.get("estimator") == "debiased"


def test_exemptions_name_metrics_and_say_why() -> None:
    """An exemption is of a metric that exists, from a law that is here, for a reason."""
    for law, names in EXEMPT.items():
        assert law in LAWS_WITH_EXEMPTIONS
        assert set(names) <= set(CATALOG)
        assert all(len(reason) > 20 for reason in names.values())


LAWS_WITH_EXEMPTIONS = ("scaled weights", "relabelled classes")


# the cases -----------------------------------------------------------------------------------


@each_metric()
@FEW
@given(data=st.data())
def test_the_order_of_the_cases_does_not_matter(name: str, data: st.DataObject) -> None:
    """Any order of the cases gives the same value."""
    problem = data.draw(problems_for(name))
    order = data.draw(permutations(problem))
    assert value(name, problem.take(order)) == same(value(name, problem))


@each_metric()
@FEW
@given(data=st.data())
def test_a_whole_weight_is_a_repetition(name: str, data: st.DataObject) -> None:
    """A case of weight 3 counts as three such cases, and one of weight 0 as none."""
    problem = data.draw(problems_for(name))
    weights = data.draw(whole_weights(problem))
    options = for_unequal_weights(name) | for_repetition(name)
    repeated = problem.take(np.repeat(np.arange(len(problem)), weights))
    assert value(name, problem, weights, **options) == same(value(name, repeated, **options))


@each_metric()
@FEW
@given(data=st.data())
def test_a_case_of_weight_zero_is_left_out(name: str, data: st.DataObject) -> None:
    """With weights 0 and 1 only the cases of weight 1 count; debiased metrics take them too."""
    problem = data.draw(problems_for(name))
    kept = data.draw(whole_weights(problem)) > 0
    weights = kept.astype(float)
    assert value(name, problem, weights) == same(value(name, problem.take(kept)))


@each_metric("scaled weights")
@FEW
@given(data=st.data(), scale=st.sampled_from([0.125, 3.0, 1e6]), seed=st.integers(0, 99))
def test_the_scale_of_the_weights_does_not_matter(
    name: str, data: st.DataObject, scale: float, seed: int
) -> None:
    """Weights are relative: all of them times a constant changes nothing."""
    problem = data.draw(problems_for(name))
    weights = np.random.default_rng(seed).uniform(0.5, 2, len(problem))
    options = for_unequal_weights(name)
    expected = value(name, problem, weights, **options)
    assert value(name, problem, scale * weights, **options) == same(expected)
    equal = np.full(len(problem), scale)
    assert value(name, problem, equal) == same(value(name, problem))


def test_the_weights_of_aurc_are_counts() -> None:
    """Two cases, the surer one right: errors 0/1, 1/2; twice each: 0, 0, 1/3, 2/4."""
    probs, labels = np.array([[0.9, 0.1], [0.8, 0.2]]), [0, 1]
    assert measure("aurc", probs, labels, None) == same((0 + 1 / 2) / 2)
    assert measure("aurc", probs, labels, [2, 2]) == same((0 + 0 + 1 / 3 + 2 / 4) / 4)


@pytest.mark.parametrize("name", [name for name in CATALOG if is_debiased(name)])
def test_debiased_metrics_refuse_unequal_weights(name: str) -> None:
    """LH does not define them: a clear error, not a number."""
    problem = ordinary(20)
    weights = np.linspace(1, 2, 20)
    with pytest.raises(qr.InvalidInputError, match="weights: the debiased .* equal case weights"):
        measure(name, problem.probs, problem.labels, weights)


# split and merge -----------------------------------------------------------------------------


def summary_of(name: str, problem: Problem, bounds: list[int]) -> Any:
    """Summarise the parts of a problem between the bounds one by one, and add them up."""
    row = CATALOG[name]
    plan = row.plan(row.with_defaults({}))
    predictions = predictions_of(dirichlet(problem.probs), problem.labels)
    total = plan.empty(predictions.num_classes)
    for start, stop in zip([0, *bounds], [*bounds, len(problem)], strict=True):
        part = plan.empty(predictions.num_classes)
        if start < stop:
            part.absorb(predictions.read(start, stop))
        total = total + part
    return total


def merged_value(name: str, problem: Problem, bounds: list[int]) -> float | None:
    """Return the metric of the parts, added up; None where it is undefined."""
    row = CATALOG[name]
    try:
        found = row.estimate(summary_of(name, problem, bounds), row.with_defaults({}))
    except qr.UndefinedMetricError:
        return None
    return None if math.isnan(found) else found


@each_metric()
@FEW
@given(data=st.data())
def test_the_parts_add_up_to_the_whole(name: str, data: st.DataObject) -> None:
    """Any split, empty parts among them: the sum of the parts gives the value of the whole."""
    problem = data.draw(problems_for(name))
    cut = st.integers(0, len(problem))
    bounds = sorted(data.draw(st.lists(cut, max_size=4)))
    merged = merged_value(name, problem, bounds)
    assert merged == same(merged_value(name, problem, []), rel=1e-13, absolute=1e-14)


@each_metric()
def test_many_parts_add_up_to_the_whole(name: str) -> None:
    """The same with a hundred parts of an ordinary set."""
    problem = ordinary(300, seed=3)
    bounds = sorted(np.random.default_rng(0).integers(0, 300, 99).tolist())
    found = qr.evaluate(dirichlet(problem.probs), problem.labels, name, resamples=0)
    assert merged_value(name, problem, bounds) == same(found[name].value)


@each_metric()
def test_adding_nothing_changes_nothing(name: str) -> None:
    """The summary of no cases is neutral, on the left and on the right."""
    row, problem = CATALOG[name], ordinary(50)
    options = row.with_defaults({})
    nothing = row.plan(options).empty(5)
    whole = summary_of(name, problem, [])
    expected = row.estimate(whole, options)
    assert row.estimate(whole + nothing, options) == expected
    assert row.estimate(nothing + whole, options) == expected
    assert row.estimate(nothing + whole + nothing + nothing, options) == expected


@each_metric()
def test_unlike_summaries_do_not_add_up(name: str) -> None:
    """A summary refuses one made for another question, other bins or another kind."""
    row = CATALOG[name]
    plan = row.plan(row.with_defaults({}))
    mine = plan.empty(5)
    others = {other.plan(other.with_defaults({})) for other in CATALOG.values()}
    others |= {other.plan({**other.with_defaults({}), "bins": 7}) for other in CATALOG.values()}
    refused = 0
    for other_plan in others - {plan}:
        other = other_plan.empty(5)
        kind, message = (
            (qr.MergeError, "cannot add")
            if type(other) is type(mine)
            else (TypeError, "unsupported operand")
        )
        with pytest.raises(kind, match=message):
            mine + other
        refused += 1
    assert refused >= 3
    with pytest.raises(TypeError, match="unsupported operand"):
        mine + 1


# the classes ---------------------------------------------------------------------------------


@each_metric("relabelled classes")
@pytest.mark.parametrize("num_classes", [2, 5])
def test_the_names_of_the_classes_do_not_matter(name: str, num_classes: int) -> None:
    """Permuting the columns and the labels alike changes nothing (no ties for the top label)."""
    problem = ordinary(200, num_classes)
    expected = value(name, problem)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(num_classes)
        renamed = Problem(problem.probs[:, order], problem.counts[:, order])
        assert value(name, renamed) == same(expected)


def test_reversed_classes_have_the_same_ranked_probability_score() -> None:
    """F(k) - F̂(k) becomes its own negative; any other order of the classes is another scale."""
    problem = ordinary(200)
    expected = value("ranked_probability_score", problem)
    reversed_ = Problem(problem.probs[:, ::-1], problem.counts[:, ::-1])
    assert value("ranked_probability_score", reversed_) == same(expected)
    swapped = Problem(problem.probs[:, [1, 0, 2, 3, 4]], problem.counts[:, [1, 0, 2, 3, 4]])
    assert value("ranked_probability_score", swapped) != same(expected, rel=1e-3)


@each_metric()
@FEW
@given(data=st.data())
def test_one_column_is_the_probability_of_class_one(name: str, data: st.DataObject) -> None:
    """(N,) and (N, 2) are the same for two classes."""
    problem = data.draw(problems_for(name, num_classes=2))
    positive = problem.probs[:, 1]
    both = np.stack((1 - positive, positive), axis=1)
    assert value_of(name, positive, problem.labels) == value_of(name, both, problem.labels)


# the arrays ----------------------------------------------------------------------------------


@each_metric()
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_torch_is_numpy(name: str, dtype: torch.dtype) -> None:
    """A tensor gives the digits of the array with the same numbers."""
    problem = ordinary(100)
    tensor = torch.tensor(problem.probs, dtype=dtype, requires_grad=True)
    counts = torch.tensor(problem.counts)
    array = tensor.detach().numpy()
    expected = value_of(name, array, problem.labels)
    assert value_of(name, tensor, qr.Labels.from_counts(counts)) == expected
    assert expected is not None


@each_metric()
def test_bfloat16_is_accepted(name: str) -> None:
    """NumPy has no bfloat16; rows then sum to 1 within its three digits, as for float16."""
    problem = ordinary(100)
    tensor = torch.tensor(problem.probs).bfloat16()
    wide = tensor.double()
    exact = (wide / wide.sum(dim=1, keepdim=True)).numpy()
    expected = value_of(name, exact, problem.labels)
    assert value_of(name, tensor, problem.labels) == same(expected, rel=0.05, absolute=0.02)


@each_metric()
def test_float32_is_close_to_float64(name: str) -> None:
    """Seven digits in, about six out: sums are float64 whatever the input."""
    problem = ordinary(300)
    expected = value(name, problem)
    single = value_of(name, problem.probs.astype(np.float32), problem.labels)
    assert single == same(expected, rel=1e-5, absolute=1e-6)


def test_threads_do_not_change_a_digit() -> None:
    """Three chunks of 22 classes: one thread and three give the same values and intervals."""
    problem = ordinary(13_000, num_classes=22)
    patients = np.arange(13_000) // 130

    def results(threads: int) -> qr.Results:
        return qr.evaluate(
            dirichlet(problem.probs),
            problem.labels,
            metrics=list(CATALOG),
            groups=patients,
            resamples=20,
            threads=threads,
        )

    one, three = results(1), results(3)
    assert qr.Predictions.of(problem.probs, problem.labels).chunk_rows < 13_000 / 2
    assert all(estimate.low is not None for estimate in one.values())
    assert dict(one) == dict(three)


# the raters ----------------------------------------------------------------------------------


@each_metric()
@FEW
@given(problem=problems())
def test_one_rater_each_is_a_plain_label(name: str, problem: Problem) -> None:
    """Histograms of one label, a rating matrix of one column and (N,) classes are the same."""
    y, num_classes = problem.first_rater, problem.probs.shape[1]
    forms = [
        qr.Labels.from_counts(np.eye(num_classes, dtype=int)[y]),
        qr.Labels.from_ratings(y[:, None], num_classes=num_classes),
        qr.Labels.from_long(range(len(y)), ["A"] * len(y), y, num_classes=num_classes),
    ]
    if (least := CATALOG[name].least_raters) > 1:
        for labels in (y, *forms):
            with pytest.raises(qr.InvalidInputError, match=f"labels: needs at least {least} lab"):
                value_of(name, problem.probs, labels)
        return
    expected = value_of(name, problem.probs, y)
    for labels in forms:
        assert value_of(name, problem.probs, labels) == same(expected)


PER_ANNOTATION = [name for name, row in CATALOG.items() if "per" in row.options]


@pytest.mark.parametrize("name", PER_ANNOTATION)
@FEW
@given(problem=problems(min_raters=1))
def test_per_annotation_is_every_case_once_per_rater(name: str, problem: Problem) -> None:
    """MR eq 4: several raters are the case repeated, each time with another rater's label."""
    rows, onehot = oracle.repeat_per_annotation(problem.probs, problem.counts)
    options = for_repetition(name)
    expected = value_of(name, rows, onehot.argmax(axis=1), **options)
    assert value(name, problem, per="annotation", **options) == same(expected)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_the_wrapper_repeats_the_cases_for_anybody(norm: str) -> None:
    """MR's wrapper round torchmetrics' calibration error: our own, which repeats nothing."""
    from torchmetrics.functional.classification import multiclass_calibration_error

    problem, mine = ordinary(200), {"l1": "ece", "l2": "rms_ce", "max": "mce"}[norm]

    def theirs(probs: torch.Tensor, y: torch.Tensor, **options: Any) -> float:
        return float(multiclass_calibration_error(probs, y, num_classes=5, **options))

    wrapped = qr.multi_rater(theirs)
    # Their accumulators are float32.
    assert wrapped(torch.tensor(problem.probs), problem.labels, n_bins=15, norm=norm) == same(
        value(mine, problem), rel=1e-4
    )


# every metric against its naive loop ---------------------------------------------------------


def mean(values: Any) -> float:
    """Return the mean, summed exactly."""
    return math.fsum(values) / len(values)


def half_for_two(loss: float, num_classes: int) -> float:
    """scikit-learn's Brier score is halved for two classes."""
    return loss / 2 if num_classes == 2 else loss


def naive_nll(probs: Array, counts: Counts) -> float:
    """Return the mean over cases of the mean over raters of -log p."""
    with np.errstate(divide="ignore"):
        log = np.log(probs)
    return mean([mean([-log[i, k] for k in oracle.label_list(y)]) for i, y in enumerate(counts)])


def naive_ranked_score(probs: Array, counts: Counts) -> float:
    """Return the mean over cases and raters of Σ_k (P(class <= k) - 1[label <= k])²."""

    def of(p: Array, label: int) -> float:
        cumulative = [math.fsum(p[: k + 1]) for k in range(len(p) - 1)]
        return math.fsum((f - (label <= k)) ** 2 for k, f in enumerate(cumulative))

    return mean(
        [mean([of(p, k) for k in oracle.label_list(y)]) for p, y in zip(probs, counts, strict=True)]
    )


def naive_calibration_error(probs: Array, counts: Counts) -> float:
    """Return the root of LH eq 14, floored at 0."""
    return math.sqrt(max(oracle.calibration_loss(probs, counts), 0))


def predicted_disagreement(probs: Array) -> Array:
    """Return the probability that two labels drawn from p differ."""
    return np.array([1 - math.fsum(x * x for x in p) for p in probs]).clip(0, 1)


def naive_disagreement_loss(probs: Array, counts: Counts) -> float:
    """LH eq 40, enumerating the pairs of raters."""
    return oracle.statistic_loss(oracle.disagree, predicted_disagreement(probs), counts, 2)


def naive_disagreement_calibration(probs: Array, counts: Counts) -> float:
    """LH eqs 42-45, enumerating the pairs of raters."""
    predicted = predicted_disagreement(probs)
    return oracle.statistic_calibration_loss(oracle.disagree, predicted, counts, 2)


def naive_sweep(probs: Array, counts: Counts) -> float:
    """Roelofs et al. 2022, algorithm 1: add equal-mass bins while the frequencies increase."""
    scores, outcome = oracle.top_label(probs, counts)
    best = [list(range(len(scores)))]
    for bins in range(2, len(set(scores)) + 1):
        groups = oracle.equal_mass_members(scores, bins)
        frequency = [mean([outcome[i] for i in group]) for group in groups]
        if (np.diff(frequency) < -1e-9).any():
            break
        best = groups
    return oracle.ece_of(scores, outcome, best)


def naive_aurc(probs: Array, counts: Counts) -> float:
    """Return the mean selective risk; tied cases come in random order, in expectation."""
    scores, outcome = oracle.top_label(probs, counts)
    risks, accepted, lost = [], 0, 0.0
    for score in sorted(set(scores), reverse=True):
        tied = [1 - o for s, o in zip(scores, outcome, strict=True) if s == score]
        for j in range(1, len(tied) + 1):
            risks.append((lost + j * mean(tied)) / (accepted + j))
        accepted, lost = accepted + len(tied), lost + math.fsum(tied)
    return mean(risks)


def naive_augrc(probs: Array, counts: Counts) -> float:
    """Return the area under the generalised risk, pair by pair."""
    scores, outcome = oracle.top_label(probs, counts)
    return oracle.augrc_by_pairs(scores, 1 - outcome)


def naive_auccc(probs: Array, counts: Counts) -> float | None:
    """Return the probability that a right case is surer than a wrong one; None without both."""
    scores, outcome = oracle.top_label(probs, counts)
    return oracle.auccc(scores, outcome) if 0 < outcome.sum() < len(outcome) else None


def naive_smooth(probs: Array, counts: Counts) -> float:
    """Return the σ at which ∫ |Σ_i (μ_i - z_i) K_σ(t, z_i)| dt / N is σ, K reflected at 0 and 1."""
    scores, outcome = oracle.top_label(probs, counts)
    t = (np.arange(1000) + 0.5)[:, None, None] / 1000
    images = np.stack([sign * scores + 2 * m for sign in (-1, 1) for m in range(-3, 4)])

    def smoothed(sigma: float) -> float:
        bells = np.exp(-(((t - images) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        return float(np.abs(((outcome - scores) * bells).sum(axis=(1, 2))).mean() / len(scores))

    low, high = 2e-3, 1.0
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed(middle) > middle else (low, middle)
    return smoothed(low) if low == 2e-3 else low


def naive_kde(probs: Array, counts: Counts) -> float | None:
    """Popordanoska et al. 2022, every other case in turn; None for a single case."""
    if len(probs) < 2:
        return None
    scores, outcome = oracle.top_label(probs, counts)
    inside = scores.clip(np.finfo(float).eps, 1 - np.finfo(float).eps)
    points, raters = np.stack((inside, 1 - inside), axis=1), counts.sum(axis=1)
    gaps = oracle.kde_gaps(points, outcome[:, None], 0.05, 1, copies=raters.tolist())
    return math.fsum(raters * gaps[:, 0]) / int(raters.sum())


def naive_fleiss(probs: Array, counts: Counts) -> float | None:
    """Return κ from the pairs of raters of each case, a case weighted by n - 1."""
    labels = [oracle.label_list(y) for y in counts]
    share = counts.sum(axis=0) / counts.sum()
    chance = math.fsum(share**2)
    if max(share) == 1:
        return None
    alike = [mean([a == b for a, b in itertools.combinations(of, 2)]) for of in labels]
    weights = [len(of) - 1 for of in labels]
    observed = math.fsum(np.multiply(weights, alike)) / sum(weights)
    return (observed - chance) / (1 - chance)


def naive_alpha(probs: Array, counts: Counts) -> float | None:
    """Return 1 - D_o / D_e from pairs within a case and pairs among all labels."""
    labels = [oracle.label_list(y) for y in counts]
    everything = [label for of in labels for label in of]
    expected = mean([a != b for a, b in itertools.permutations(everything, 2)])
    if expected == 0:
        return None
    pairs = [sum(a != b for a, b in itertools.permutations(of, 2)) / (len(of) - 1) for of in labels]
    return 1 - math.fsum(pairs) / len(everything) / expected


def naive_expert(probs: Array, counts: Counts, label_seen: bool) -> float:
    """LH Table 2: set each rater aside in turn; judge the mean, or the mean given their label."""
    losses = []
    for p, y in zip(probs, counts, strict=True):
        each = []
        for k in oracle.label_list(y):
            said = np.eye(len(p))[k]
            z = (CONCENTRATION * p + said) / (CONCENTRATION + 1) if label_seen else p
            judges = y - said.astype(int)
            each.append(oracle.epistemic_loss(z[None], judges[None]))
        losses.append(mean(each))
    return mean(losses)


Naive = Callable[[Array, Counts], float | None]


def per_annotation(naive: Naive) -> Naive:
    """Return the multi-rater version of a naive loop: MR eq 4."""
    return lambda probs, counts: naive(*oracle.repeat_per_annotation(probs, counts))


NAIVE: dict[str, Naive] = {
    "accuracy": lambda probs, counts: mean(oracle.top_label(probs, counts)[1]),
    "brier": lambda probs, counts: half_for_two(
        oracle.expected_squared_loss(probs, counts), probs.shape[1]
    ),
    "nll": naive_nll,
    "ranked_probability_score": naive_ranked_score,
    "expected_squared_loss": oracle.expected_squared_loss,
    "epistemic_loss": oracle.epistemic_loss,
    "irreducible_loss": lambda probs, counts: (
        oracle.expected_squared_loss(probs, counts) - oracle.epistemic_loss(probs, counts)
    ),
    "calibration_loss": oracle.calibration_loss,
    "calibration_error": naive_calibration_error,
    "dispersion_loss": oracle.dispersion_loss,
    "disagreement_loss": naive_disagreement_loss,
    "disagreement_calibration_loss": naive_disagreement_calibration,
    "disagreement_calibration_error": lambda probs, counts: math.sqrt(
        max(naive_disagreement_calibration(probs, counts), 0)
    ),
    "prior_epistemic_loss": lambda probs, counts: naive_expert(probs, counts, False),
    "posterior_epistemic_loss": lambda probs, counts: naive_expert(probs, counts, True),
    "posterior_gain": lambda probs, counts: (
        naive_expert(probs, counts, False) - naive_expert(probs, counts, True)
    ),
    "ece": oracle.multi_rater_ece,
    "mce": per_annotation(oracle.mce),
    "rms_ce": per_annotation(oracle.rms_ce),
    "adaptive_ece": per_annotation(oracle.adaptive_ece),
    "ece_sweep": per_annotation(naive_sweep),
    "classwise_ece": per_annotation(oracle.classwise_ece),
    "sce": per_annotation(oracle.sce),
    "robust_ece": per_annotation(oracle.robust_ece),
    "ks_error": per_annotation(
        lambda probs, counts: oracle.ks_error(*oracle.top_label(probs, counts))
    ),
    "smooth_ece": per_annotation(naive_smooth),
    "kde_ece": naive_kde,
    "auccc": per_annotation(naive_auccc),
    "aurc": per_annotation(naive_aurc),
    "augrc": per_annotation(naive_augrc),
    "fleiss_kappa": naive_fleiss,
    "krippendorff_alpha": naive_alpha,
}

NAIVE_OPTIONS: dict[str, dict[str, Any]] = {"kde_ece": {"bandwidth": 0.05}}
"""What a naive loop takes as given."""

DIGITS = {
    "calibration_error": 1e-7,  # a root: 1e-16 more or less under it is 1e-8
    "disagreement_calibration_error": 1e-7,
    "smooth_ece": 2e-3,  # the loop's grid
}
"""How far a value may be from its loop where that is more than 1e-12."""


def test_every_metric_has_a_naive_loop() -> None:
    """A metric that nobody wrote down slowly is not in the catalog, and the other way round."""
    assert set(NAIVE) == set(CATALOG)


@pytest.mark.parametrize("name", NAIVE)
@pytest.mark.parametrize("num_classes", [2, 3, 22])
@settings(max_examples=25)
@given(data=st.data())
def test_the_value_is_that_of_the_naive_loop(
    name: str, num_classes: int, data: st.DataObject
) -> None:
    """Two classes and 22, unequal numbers of raters, zeros, ones, edges, ties, lone cases."""
    most = 12 if num_classes < 22 else 6
    problem = data.draw(problems_for(name, num_classes=num_classes, max_cases=most))
    expected = NAIVE[name](problem.probs, problem.counts)
    mine = value(name, problem, **NAIVE_OPTIONS.get(name, {}))
    assert mine == same(expected, rel=1e-10, absolute=DIGITS.get(name, 1e-12))


@pytest.mark.parametrize("name", NAIVE)
def test_an_ordinary_set_has_the_value_of_the_naive_loop(name: str) -> None:
    """Sixty cases of five classes, two to six raters each."""
    problem = ordinary(60)
    expected = NAIVE[name](problem.probs, problem.counts)
    assert expected is not None
    mine = value(name, problem, **NAIVE_OPTIONS.get(name, {}))
    assert mine == same(expected, rel=1e-11, absolute=DIGITS.get(name, 1e-12))

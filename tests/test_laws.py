"""Laws that every metric of the catalog obeys; a new row is enrolled by being there.

A law is a test over all rows; `EXEMPT` says which rows a law does not hold for, and why.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.evaluate import predictions_of
from raterwise.functions.measure import measure
from raterwise.summaries.outside import with_outside_cases
from strategies import (
    OUTSIDE,
    Problem,
    belief_for,
    mixture,
    ordinary,
    outside_for,
    permutations,
    problems,
    problems_for,
    same,
    value,
    value_of,
    whole_weights,
)

EXEMPT: dict[str, dict[str, str]] = {
    "scaled weights": {
        "aurc": "its weights count cases: a coverage of one case is a step of the curve",
        "krippendorff_alpha": "its weights count labels: chance draws two without replacement",
        "excess_aurc": "as aurc: a coverage of one case is a step of the curve",
        "spiegelhalter_z": "its weights count cases: a test's statistic grows with them",
        "ici": "its span is a whole number of labels, as that of R's loess",
        "e50": "its span is a whole number of labels, as that of R's loess",
        "e90": "its span is a whole number of labels, as that of R's loess",
    },
    "relabelled classes": {
        "ranked_probability_score": "its classes are ordered; reversing them is its law",
        **dict.fromkeys(
            ["average_precision", "sensitivity", "specificity", "ppv", "npv", "f1", "net_benefit"],
            "of two classes, class 1 is looked for; its own law is in test_clinical.py",
        ),
        "ranked_log_score": "its classes are ordered; reversing them is its law",
        "majority_accuracy": "a tie between the raters goes to the lowest class, as in the papers",
        "observed_expected_ratio": "of two classes it is about the second; see its own test",
        "calibration_intercept": "of two classes it is about the second; see its own test",
    },
}

FEW = settings(max_examples=15)


def each_metric(law: str = "") -> pytest.MarkDecorator:
    """Run a law on every row of the catalog that is not exempt from it."""
    names = [name for name in CATALOG if name not in EXEMPT.get(law, {})]
    return pytest.mark.parametrize("name", names)


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


# the cases ------------------------------------------------------------------------------------


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
    with pytest.raises(rw.InvalidInputError, match=r"weights: the debiased .* equal case weights"):
        measure(name, problem.probs, problem.labels, weights)


# split and merge ------------------------------------------------------------------------------


def summary_of(name: str, problem: Problem, bounds: list[int]) -> Any:
    """Summarise the parts of a problem between the bounds one by one, and add them up."""
    row = CATALOG[name]
    plan = row.plan(row.with_defaults({}))
    predictions = predictions_of(belief_for(name, problem.probs), problem.labels)
    total = plan.empty(predictions.num_classes)
    for start, stop in zip([0, *bounds], [*bounds, len(problem)], strict=True):
        part = plan.empty(predictions.num_classes)
        if start < stop:
            part.absorb(predictions.read(start, stop))
        total = total + part
    return with_outside_cases({plan: total}, outside_for(name))[plan]


def merged_value(name: str, problem: Problem, bounds: list[int]) -> float | None:
    """Return the metric of the parts, added up; None where it is undefined."""
    row = CATALOG[name]
    try:
        found = row.estimate(summary_of(name, problem, bounds), row.with_defaults({}))
    except rw.UndefinedMetricError:
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
    belief, outside = belief_for(name, problem.probs), outside_for(name)
    found = rw.evaluate(belief, problem.labels, name, resamples=0, outside=outside)
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
            (rw.MergeError, "cannot add")
            if type(other) is type(mine)
            else (TypeError, "unsupported operand")
        )
        with pytest.raises(kind, match=message):
            mine + other
        refused += 1
    assert refused >= 3
    with pytest.raises(TypeError, match="unsupported operand"):
        mine + 1


# the classes ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", ["ranked_probability_score", "ranked_log_score"])
def test_reversed_classes_have_the_same_ranked_score(name: str) -> None:
    """F(k) - F̂(k) becomes its own negative; any other order of the classes is another scale."""
    problem = ordinary(200)
    expected = value(name, problem)
    reversed_ = Problem(problem.probs[:, ::-1], problem.counts[:, ::-1])
    assert value(name, reversed_) == same(expected)
    swapped = Problem(problem.probs[:, [1, 0, 2, 3, 4]], problem.counts[:, [1, 0, 2, 3, 4]])
    assert value(name, swapped) != same(expected, rel=1e-3)


@each_metric()
@FEW
@given(data=st.data())
def test_one_column_is_the_probability_of_class_one(name: str, data: st.DataObject) -> None:
    """(N,) and (N, 2) are the same for two classes."""
    problem = data.draw(problems_for(name, num_classes=2))
    positive = problem.probs[:, 1]
    both = np.stack((1 - positive, positive), axis=1)
    assert value_of(name, positive, problem.labels) == value_of(name, both, problem.labels)


# the arrays -----------------------------------------------------------------------------------


@each_metric()
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_torch_is_numpy(name: str, dtype: torch.dtype) -> None:
    """A tensor gives the digits of the array with the same numbers."""
    problem = ordinary(100)
    tensor = torch.tensor(problem.probs, dtype=dtype, requires_grad=True)
    counts = torch.tensor(problem.counts)
    array = tensor.detach().numpy()
    expected = value_of(name, array, problem.labels)
    assert value_of(name, tensor, rw.Labels.from_counts(counts)) == expected
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

    def results(threads: int) -> rw.Results:
        return rw.evaluate(
            mixture(problem.probs),
            problem.labels,
            metrics=list(CATALOG),
            threshold=0.05,  # of 22 classes hardly one has a probability of a half
            outside=OUTSIDE,
            groups=patients,
            resamples=20,
            threads=threads,
        )

    one, three = results(1), results(3)
    assert rw.Predictions.of(problem.probs, problem.labels).chunk_rows < 13_000 / 2
    assert all(estimate.low is not None for estimate in one.values())
    assert dict(one) == dict(three)


# the raters -----------------------------------------------------------------------------------


@each_metric()
@FEW
@given(problem=problems())
def test_one_rater_each_is_a_plain_label(name: str, problem: Problem) -> None:
    """Histograms of one label, a rating matrix of one column and (N,) classes are the same."""
    y, num_classes = problem.first_rater, problem.probs.shape[1]
    forms = [
        rw.Labels.from_counts(np.eye(num_classes, dtype=int)[y]),
        rw.Labels.from_ratings(y[:, None], num_classes=num_classes),
        rw.Labels.from_long(range(len(y)), ["A"] * len(y), y, num_classes=num_classes),
    ]
    if (least := CATALOG[name].least_raters) > 1:
        for labels in (y, *forms):
            with pytest.raises(rw.InvalidInputError, match=f"labels: needs at least {least} lab"):
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

    wrapped = rw.multi_rater(theirs)
    # Their accumulators are float32.
    assert wrapped(torch.tensor(problem.probs), problem.labels, n_bins=15, norm=norm) == same(
        value(mine, problem), rel=1e-4
    )

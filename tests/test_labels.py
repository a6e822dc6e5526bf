"""What the raters said: the four ways to say it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split
from sklearn.utils import indexable

import raterwise as rw
from strategies import Problem, problems

RATINGS = np.array([[0, 1, 1], [2, -1, 2], [-1, -1, 0]])
COUNTS = np.array([[1, 2, 0], [0, 0, 2], [1, 0, 0]])


def long_table(ratings: Any) -> tuple[list[str], list[str], list[int]]:
    """Return items, raters and classes, one row per rating."""
    rows = [
        (f"case {i}", f"Dr {'ABC'[j]}", int(c))
        for i, row in enumerate(ratings)
        for j, c in enumerate(row)
        if c >= 0
    ]
    items, raters, classes = zip(*rows, strict=True)
    return list(items), list(raters), list(classes)


def test_the_same_ratings_said_in_three_ways() -> None:
    """Matrix, histograms and long table: the same counts, numbers of raters and frequencies."""
    forms = [
        rw.Labels.from_ratings(RATINGS, num_classes=3),
        rw.Labels.from_counts(COUNTS),
        rw.Labels.from_long(*long_table(RATINGS), num_classes=3),
    ]
    for labels in forms:
        assert labels.counts.tolist() == COUNTS.tolist()
        assert labels.num_raters.tolist() == [3, 2, 1]
        np.testing.assert_allclose(labels.frequencies, COUNTS / [[3], [2], [1]])
        assert labels.majority().tolist() == [1, 2, 0]
        assert len(labels) == 3
        assert repr(labels) == "Labels(3 cases, 3 classes, 1 to 3 raters per case)"


def test_one_label_per_case() -> None:
    """Classes are kept as they come; the histogram is made when asked for."""
    labels = rw.Labels.from_classes([2, 0, 2], num_classes=3)
    assert labels.counts.tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert labels.num_raters.tolist() == [1, 1, 1]
    assert labels.majority().tolist() == [2, 0, 2]
    assert labels.frequencies.tolist() == labels.counts.tolist()


def test_ties_of_the_majority_go_to_the_lowest_class() -> None:
    """Two votes each for classes 1 and 2."""
    assert rw.Labels.from_counts([[1, 2, 2]]).majority().tolist() == [1]


@pytest.mark.parametrize("missing", [-1, 99, np.nan])
def test_missing_ratings(missing: float) -> None:
    """Whatever stands for an absent rating, NaN as pandas writes it among them."""
    matrix = np.where(RATINGS < 0, missing, RATINGS.astype(float))
    labels = rw.Labels.from_ratings(matrix, num_classes=3, missing=missing)
    assert labels.counts.tolist() == COUNTS.tolist()


def test_torch_tensors_are_taken() -> None:
    """Ratings, counts and classes may be tensors."""
    by_matrix = rw.Labels.from_ratings(torch.tensor(RATINGS), num_classes=3)
    assert by_matrix.counts.tolist() == COUNTS.tolist()
    assert rw.Labels.from_counts(torch.tensor(COUNTS)).counts.tolist() == COUNTS.tolist()
    assert rw.Labels.from_classes(torch.tensor([1, 0]), num_classes=2).majority().tolist() == [1, 0]


def test_long_tables_keep_the_order_in_which_cases_appear() -> None:
    """Unless an order is given, which may also name cases that nobody rated."""
    items, raters, classes = ["b", "a", "b"], [7, 7, 8], [0, 1, 1]
    labels = rw.Labels.from_long(items, raters, classes, num_classes=2)
    assert labels.case_ids == ("b", "a")
    assert labels.counts.tolist() == [[1, 1], [0, 1]]
    ordered = rw.Labels.from_long(items, raters, classes, num_classes=2, order=["a", "c", "b"])
    assert ordered.case_ids == ("a", "c", "b")
    assert ordered.counts.tolist() == [[0, 1], [0, 0], [1, 1]]
    assert np.isnan(ordered.frequencies[1]).all()


def test_who_said_what_is_kept() -> None:
    """A matrix and a long table know their raters; histograms do not."""
    for labels in (
        rw.Labels.from_ratings(RATINGS, num_classes=3),
        rw.Labels.from_long(*long_table(RATINGS), num_classes=3),
    ):
        assert labels.ratings is not None
        said = set(
            zip(
                labels.ratings.case.tolist(),
                labels.ratings.rater.tolist(),
                labels.ratings.label.tolist(),
                strict=True,
            )
        )
        assert said == {(0, 0, 0), (0, 1, 1), (0, 2, 1), (1, 0, 2), (1, 2, 2), (2, 2, 0)}
    assert rw.Labels.from_counts(COUNTS).ratings is None


@given(problem=problems(min_raters=0), data=st.data())
def test_taking_cases_takes_their_ratings(problem: Problem, data: st.DataObject) -> None:
    """Any choice of cases, some twice: counts and single ratings are those of the choice."""
    case, label = np.nonzero(problem.counts)
    times = problem.counts[case, label]
    items, classes = np.repeat(case, times), np.repeat(label, times)
    labels = rw.Labels.from_long(
        items,
        np.arange(len(items)) % 3,
        classes,
        num_classes=problem.counts.shape[1],
        order=range(len(problem)),
        duplicates="keep",
    )
    assert labels.counts.tolist() == problem.counts.tolist()
    rows = data.draw(st.lists(st.integers(0, len(problem) - 1), min_size=1, max_size=20))
    taken = labels.take(rows)
    assert taken.counts.tolist() == problem.counts[rows].tolist()
    assert taken.case_ids == tuple(rows)
    assert taken.ratings is not None
    again = np.zeros_like(taken.counts)
    np.add.at(again, (taken.ratings.case, taken.ratings.label), 1)
    assert again.tolist() == taken.counts.tolist()


def test_taking_cases_by_a_mask() -> None:
    """True keeps a case, for every kind of labels."""
    mask = np.array([True, False, True])
    for labels in (
        rw.Labels.from_counts(COUNTS),
        rw.Labels.from_ratings(RATINGS, num_classes=3),
        rw.Labels.from_classes([0, 2, 1], num_classes=3),
    ):
        assert labels.take(mask).counts.tolist() == labels.counts[[0, 2]].tolist()
        assert len(labels.take(mask)) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rw.Labels.from_classes([0, 3], num_classes=3), "labels: .* 0 … 2; entry 1 is 3"),
        (lambda: rw.Labels.from_classes([[0]], num_classes=3), "labels: must be 1-dimensional"),
        (lambda: rw.Labels.from_classes([0.5], num_classes=3), "labels: must be whole numbers"),
        (lambda: rw.Labels.from_classes([0], num_classes=1), "num_classes: must be at least 2"),
        (lambda: rw.Labels.from_ratings([0, 1], num_classes=2), r"ratings: must be \(cases, rat"),
        (lambda: rw.Labels.from_ratings([[0, 5]], num_classes=2), "ratings: .*entry 1 is 5"),
        (lambda: rw.Labels.from_ratings([[0, -2]], num_classes=2), "ratings: .*is -2"),
        (lambda: rw.Labels.from_ratings([[0, np.inf]], num_classes=2), "ratings: .* infinite"),
        (lambda: rw.Labels.from_ratings([[None, np.nan]]), "num_classes: must be given; the rat"),
        (lambda: rw.Labels.from_counts([1, 2]), "counts: must be 2-dimensional"),
        (lambda: rw.Labels.from_counts([[1], [2]]), "classes.*: must be at least 2; got 1"),
        (lambda: rw.Labels.from_counts([[1, 0], [2, -1]]), "negative; case 1, class 1 has -1"),
        (lambda: rw.Labels.from_counts([[0.5, 0.5]]), "counts: must be whole numbers; got 0.5"),
        (
            lambda: rw.Labels.from_long(["a"], ["x", "y"], [0], num_classes=2),
            "items, raters and classes: must have the same length; got 1, 2 and 1",
        ),
        (
            lambda: rw.Labels.from_long(["a", "b"], [1, 1], [0, 1], num_classes=2, order=["a"]),
            "items: 'b' is not in order",
        ),
        (
            lambda: rw.Labels.from_long(["a"], ["x"], [7], num_classes=2),
            "ratings: must be classes 0 … 1; entry 0 is 7",
        ),
        (
            lambda: rw.Labels.from_counts([[1, 0]], class_names=["benign"]),
            "class_names: must name each of the 2 classes; got 1 names",
        ),
    ],
)
def test_labels_that_are_refused(make: Any, message: str) -> None:
    """The message names the argument, the rule and the value."""
    with pytest.raises(rw.InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rw.Labels.from_classes(["a"], num_classes=2), "labels: must be an array of numb"),
        (lambda: rw.Labels.from_counts([[None, 1]]), "counts: must be an array of numbers"),
        (lambda: rw.Labels.from_classes([0], num_classes=2.0), "num_classes: must be a whole"),
        (lambda: rw.Labels.from_classes([0], num_classes=True), "num_classes: must be a whole"),
        (lambda: rw.Labels.from_ratings([[0, 1], [1]], num_classes=2), "ratings: must be an array"),
    ],
)
def test_labels_of_the_wrong_kind(make: Any, message: str) -> None:
    """Text, objects and ragged rows are a TypeError."""
    with pytest.raises(rw.InvalidTypeError, match=message):
        make()


def test_class_names_travel() -> None:
    """From the labels into the results, unless the call says otherwise."""
    labels = rw.Labels.from_counts([[2, 1], [0, 3]], class_names=["benign", "malignant"])
    assert labels.take([1]).class_names == ("benign", "malignant")
    probs = [[0.8, 0.2], [0.3, 0.7]]
    found = rw.evaluate(probs, labels, metrics="brier", resamples=0)
    assert found.data["class_names"] == ["benign", "malignant"]
    found = rw.evaluate(probs, labels, metrics="brier", resamples=0, class_names=["no", "yes"])
    assert found.data["class_names"] == ["no", "yes"]


# too few raters -------------------------------------------------------------------------------

PROBS = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.2, 0.2]])


def test_cases_with_a_single_rater_are_named() -> None:
    """By row, or by id where there are ids; the first five of them."""
    labels = rw.Labels.from_ratings(RATINGS, num_classes=3)
    with pytest.raises(rw.InvalidInputError, match=r"1 of 3 cases has fewer \(case 2\); on_sing"):
        rw.epistemic_loss(PROBS, labels)
    named = rw.Labels.from_long(*long_table(RATINGS), num_classes=3)
    with pytest.raises(rw.InvalidInputError, match=r"\(case 'case 2'\)"):
        rw.irreducible_loss(named)
    single = np.eye(3, dtype=int)[np.zeros(9, int)]
    with pytest.raises(rw.InvalidInputError, match=r"per case; no case has that many$"):
        rw.Labels.from_counts(single).require_raters(2)  # leaving them out leaves nothing
    many = rw.Labels.from_counts(np.r_[single, [[2, 0, 0]]])
    with pytest.raises(
        rw.InvalidInputError, match=r"9 of 10 cases have .*\(cases 0, 1, 2, 3, 4 …\)"
    ):
        many.require_raters(2)


def test_cases_with_a_single_rater_are_left_out_on_request() -> None:
    """The value is that of the others, and the results count who is missing."""
    labels = rw.Labels.from_ratings(RATINGS, num_classes=3)
    first_two = labels.take([0, 1])
    expected = rw.epistemic_loss(PROBS[:2], first_two)
    assert rw.epistemic_loss(PROBS, labels, on_single="drop") == pytest.approx(expected)
    expected = rw.irreducible_loss(first_two)
    assert rw.irreducible_loss(labels, on_single="drop") == pytest.approx(expected)
    expected = rw.dispersion_loss(PROBS[:2], first_two)
    assert rw.dispersion_loss(PROBS, labels, on_single="drop") == pytest.approx(expected)
    expected = rw.disagreement_loss([0.5, 0.6], first_two)
    mine = rw.disagreement_loss([0.5, 0.6, 0.9], labels, on_single="drop")
    assert mine == pytest.approx(expected)
    found = rw.evaluate(PROBS, labels, resamples=0, on_single="drop")
    assert found["epistemic_loss"].dropped == 1
    assert found["epistemic_loss"].value == pytest.approx(rw.epistemic_loss(PROBS[:2], first_two))
    assert found["ece"].dropped == 0


SOME = rw.Labels.from_counts([[2, 1], [1, 0], [0, 3]])
SOME_PROBS = [[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Case 0: (2/3 - 1/2)² + (1/3 - 1/2)² = 1/18; case 1: 0.02; case 2: 0.08.
        ({"estimator": "plugin"}, (1 / 18 + 0.02 + 0.08) / 3),
        ({"estimator": "plugin", "on_single": "drop"}, (1 / 18 + 0.08) / 2),
        # Less 2 · (2/3)(1/3)/(3 - 1) = 2/9 of case 0 and nothing of case 2.
        ({"estimator": "unbiased", "on_single": "drop"}, (1 / 18 + 0.08 - 2 / 9) / 2),
    ],
)
def test_plugin_and_unbiased_are_of_the_same_cases(options: Any, expected: float) -> None:
    """Asked to drop cases with one label, the plug-in drops them as well (LH eqs 9-10)."""
    assert rw.epistemic_loss(SOME_PROBS, SOME, **options) == pytest.approx(expected)


def test_plugin_dispersion_of_the_cases_with_two_labels() -> None:
    """One bin of all: EL less the squared gap of the means, over the two cases that stay."""
    value = rw.dispersion_loss(SOME_PROBS, SOME, bins=1, estimator="plugin", on_single="drop")
    gap = (2 / 3 + 0) / 2 - (0.5 + 0.2) / 2  # of class 0, and the opposite of class 1
    assert value == pytest.approx((1 / 18 + 0.08) / 2 - 2 * gap**2)


def test_nobody_has_two_raters() -> None:
    """Leaving out every case leaves nothing: an error with "drop", too."""
    y = [0, 2, 1]
    with pytest.raises(rw.InvalidInputError, match="at least 2 labels per case; no case has"):
        rw.epistemic_loss(PROBS, y, on_single="drop")
    with pytest.raises(rw.InvalidInputError, match="on_single: must be one of error, drop"):
        rw.epistemic_loss(PROBS, y, on_single="keep")
    with pytest.raises(rw.InvalidTypeError, match="labels: must be a Labels with 2 labels"):
        rw.disagreement_loss([0.5, 0.5, 0.5], y)  # type: ignore[arg-type]


def test_unrated_cases() -> None:
    """An error that names them; or left out on request, and counted."""
    labels = rw.Labels.from_counts([[2, 1, 0], [0, 0, 0], [0, 1, 1]])
    with pytest.raises(rw.InvalidInputError, match=r"every case needs a rating; 1 of 3 .*case 1"):
        rw.ece(PROBS, labels)
    with pytest.raises(rw.InvalidInputError, match=r"every case needs a rating; 1 of 3 .*case 1"):
        rw.evaluate(PROBS, labels)
    expected = rw.ece(PROBS[[0, 2]], labels.take([0, 2]))
    assert rw.ece(PROBS, labels, on_unrated="drop") == expected
    found = rw.evaluate(PROBS, labels, resamples=0, on_unrated="drop")
    assert found["ece"].value == expected
    assert found.data["dropped"] == {"unrated": 1}
    assert found.data["cases"] == 2
    nobody = rw.Labels.from_counts(np.zeros((3, 3), int))
    with pytest.raises(rw.InvalidInputError, match="every case needs a rating; none has one"):
        rw.ece(PROBS, nobody, on_unrated="drop")


def test_unrated_cases_take_weights_and_patients_along() -> None:
    """What is left out takes its weight and its patient with it."""
    labels = rw.Labels.from_counts([[2, 1, 0], [0, 0, 0], [0, 1, 1]])
    found = rw.evaluate(
        PROBS,
        labels,
        metrics="brier",
        weights=[1, 100, 3],
        groups=["p", "q", "r"],
        resamples=10,
        on_unrated="drop",
    )
    expected = rw.brier(PROBS[[0, 2]], labels.take([0, 2]), weights=[1, 3])
    assert found["brier"].value == pytest.approx(expected)
    assert found.data["patients"] == 2


UNRATED_FIRST = rw.Labels.from_counts([[0, 0], [1, 1], [1, 0], [2, 0]])
"""Case 0 is unrated, and case 2 has a single label."""
FOUR = np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3]])
NEEDS_TWO: dict[str, Any] = {
    "function": lambda **left_out: rw.epistemic_loss(FOUR, UNRATED_FIRST, **left_out),
    "alpha": lambda **left_out: rw.alpha_can_help(FOUR, UNRATED_FIRST, **left_out),
    "curve": lambda **left_out: rw.curves.reliability_curve(
        FOUR, UNRATED_FIRST, "disagreement", **left_out
    ),
    "stability": lambda **left_out: rw.stability.total_variation(
        "epistemic_loss", FOUR, UNRATED_FIRST, **left_out
    ),
    "results": lambda **left_out: float(
        rw.evaluate(FOUR, UNRATED_FIRST, "epistemic_loss", resamples=0, **left_out)[
            "epistemic_loss"
        ]
    ),
}


@pytest.mark.parametrize("analysis", NEEDS_TWO)
@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 1.0, 1.0]])
def test_cases_keep_their_numbers_when_others_are_left_out(analysis: str, weights: Any) -> None:
    """The message names the row of the caller's table, not that of what is left of it."""
    with pytest.raises(rw.RaterwiseError, match=r"\(case 2\)"):
        NEEDS_TWO[analysis](on_unrated="drop", weights=weights)


def test_an_unrated_case_keeps_its_number_behind_one_of_weight_0() -> None:
    """Case 2 of three is unrated, and case 0 does not count."""
    labels = rw.Labels.from_counts([[1, 1], [1, 1], [0, 0]])
    with pytest.raises(rw.InvalidInputError, match=r"1 of 2 has none \(case 2\)"):
        rw.brier(FOUR[:3], labels, weights=[0, 1, 1])


def test_a_case_with_one_label_keeps_its_number_behind_one_of_weight_0() -> None:
    """Case 2 of three has a single label, and case 0 does not count."""
    labels = rw.Labels.from_counts([[1, 1], [1, 1], [1, 0]])
    with pytest.raises(rw.InvalidInputError, match=r"1 of 2 cases has fewer \(case 2\)"):
        rw.fleiss_kappa(labels, weights=[0, 1, 1])


def test_a_case_of_weight_0_needs_no_second_label() -> None:
    """It is not there: the others give (0.5² + 0.2²) / 2, and κ = (1/2 - 5/8) / (3/8)."""
    labels = rw.Labels.from_counts([[1, 1], [1, 0], [2, 0]])
    predicted, weights = [0.5, 0.9, 0.2], [1, 0, 1]
    assert rw.disagreement_loss(predicted, labels, weights=weights) == pytest.approx(0.145)
    differ = rw.statistic_loss(lambda two: two[0] != two[1], predicted, labels, 2, weights=weights)
    assert differ == pytest.approx(0.145)
    assert rw.fleiss_kappa(labels, weights=weights) == pytest.approx(-1 / 3)
    for measure in (
        lambda alone: rw.disagreement_loss(predicted, labels, weights=alone, on_single="drop"),
        lambda alone: rw.fleiss_kappa(labels, weights=alone, on_single="drop"),
        lambda alone: rw.krippendorff_alpha(labels, weights=alone),
    ):
        with pytest.raises(rw.InvalidInputError, match="at least 2 labels per case; no case has"):
            measure([0, 1, 0])


def test_unrated_cases_are_left_out_of_optimal_weights_and_of_any_error() -> None:
    """As if they were not there: the weights of three cases, of equal cases ∝ n, by hand."""
    labels = rw.Labels.from_counts([[1, 1], [0, 0], [2, 2], [2, 2]])
    p = [0.2, 0.9, 0.2, 0.2]
    asked = rw.optimal_weights(p, labels, on_unrated="drop")
    assert asked == pytest.approx([0.6, 0, 1.2, 1.2])
    loss = rw.brier(p, labels, weights="optimal", on_unrated="drop")
    assert loss == pytest.approx((0.2**2 + 0.8**2) / 2)  # half of all labels are positive
    assert rw.expected_squared_loss(
        p, labels, weights="optimal", on_unrated="drop"
    ) == pytest.approx(2 * loss)
    right = rw.multi_rater(lambda probs, y: float((y == 1).mean()))
    assert right(p, labels, on_unrated="drop") == 0.5


# As an array with a row per case ----------------------------------------------------------------


def test_labels_are_indexed_like_an_array() -> None:
    """Slices, rows, masks and rows from the end, with ratings and ids; twice is twice."""
    labels = rw.Labels.from_long(*long_table(RATINGS), num_classes=3)
    assert labels.shape == (3, 3) and len(labels) == 3
    for rows in (slice(1, None), [1, 2], np.array([False, True, True]), (-2, -1), range(1, 3)):
        chosen = labels[rows if not isinstance(rows, tuple) else list(rows)]
        assert chosen.counts.tolist() == COUNTS[1:].tolist()
        assert chosen.case_ids == ("case 1", "case 2")
        assert chosen.ratings is not None
        assert chosen.ratings.case.tolist() == [0, 0, 1]
    assert labels[[2, 2]].counts.tolist() == COUNTS[[2, 2]].tolist()
    assert len(labels[[]]) == 0
    assert rw.Labels.from_classes([2, 0, 1], num_classes=3)[-1:].classes.tolist() == [1]


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        (1, rw.InvalidTypeError, r"rows: must be a slice.*labels\[i:i\+1\] is one case.*got 1"),
        ((1, 2), rw.InvalidTypeError, "rows: must be a slice"),
        ([3], rw.InvalidInputError, "rows: must be rows of 3 cases, or a mask; index 3"),
        ([True], rw.InvalidInputError, "rows: must be rows of 3 cases, or a mask; boolean"),
    ],
)
def test_rows_that_are_not_there(rows: Any, kind: type[Exception], message: str) -> None:
    """One number is a case or its histogram: refused rather than guessed; so are absent rows."""
    with pytest.raises(kind, match=message):
        rw.Labels.from_counts(COUNTS)[rows]
    with pytest.raises(TypeError, match="not iterable"):
        list(rw.Labels.from_counts(COUNTS))  # type: ignore[call-overload]


def test_labels_go_through_scikit_learn() -> None:
    """`indexable` takes them, `train_test_split` splits them beside the probabilities."""
    random = np.random.default_rng(0)
    probs, ratings = random.dirichlet(np.ones(3), 40), random.integers(-1, 3, (40, 4))
    ratings[:, 0] = np.arange(40) % 3
    labels = rw.Labels.from_ratings(ratings, num_classes=3)
    assert indexable(probs, labels)[1] is labels
    left, right, rows, others, first, second = train_test_split(
        probs, np.arange(40), labels, test_size=0.25, random_state=0, stratify=labels.majority()
    )
    assert isinstance(first, rw.Labels) and (len(first), len(second)) == (30, 10)
    for part, chosen, given_probs in ((first, rows, left), (second, others, right)):
        assert part.counts.tolist() == labels.counts[chosen].tolist()
        expected = rw.ece(probs[chosen], rw.Labels.from_ratings(ratings[chosen], num_classes=3))
        assert rw.ece(given_probs, part) == expected
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        train_test_split(probs[:-1], labels)


@pytest.mark.parametrize("kind", ["float16", "float32", "uint8", "uint64"])
def test_counts_of_any_type_are_the_same_counts(kind: str) -> None:
    """Whole numbers of every width, those of float16 too, whose largest is far below 2**63."""
    counts = np.array([[3, 0], [1, 2]])
    assert rw.Labels.from_counts(counts.astype(kind)).counts.tolist() == counts.tolist()

"""Rater agreement: kappa and alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, InvalidTypeError, UndefinedMetricError
from raterwise.functions.agreement import fleiss_kappa, krippendorff_alpha
from raterwise.functions.histograms import irreducible_loss
from raterwise.labels import Labels
from raterwise.metrics import agreement

Array = NDArray[Any]

# Ten cases, fourteen raters, five classes: the worked example of Fleiss' kappa in Wikipedia, 0.210.
FOURTEEN_RATERS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
# Ten cases, five raters, three classes (Fleiss, Levin & Paik 2003, chapter 18): kappa = 0.418.
FIVE_RATERS = [
    *([1, 4, 0], [2, 0, 3], [0, 0, 5], [4, 0, 1], [3, 0, 2]),
    *([1, 4, 0], [5, 0, 0], [0, 4, 1], [1, 0, 4], [3, 0, 2]),
]
# Twenty-five cases with 2 to 5 raters, (raters, positive) (the same chapter): kappa = 0.54.
TWO_TO_FIVE_RATERS = [
    *((2, 2), (2, 0), (3, 2), (4, 3), (3, 3), (4, 1), (3, 0), (5, 0), (2, 0), (4, 4), (5, 5)),
    *((3, 3), (4, 4), (4, 3), (2, 0), (2, 2), (3, 1), (2, 1), (4, 1), (5, 4), (3, 2), (4, 0)),
    *((3, 0), (3, 3), (2, 2)),
]
# Four observers, twelve units, five classes, missing values (Krippendorff 2011, section C-D).
X = 0
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
    [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
]
UNEQUAL = [[3, 1, 0], [0, 2, 0], [1, 1, 1], [0, 0, 5], [2, 3, 0], [1, 0, 0], [0, 4, 2], [2, 0, 1]]


def four_observers() -> Labels:
    """Krippendorff's example, classes counted from 0."""
    return Labels.from_ratings(np.transpose(FOUR_OBSERVERS) - 1, num_classes=5)


def histograms(least: int = 0) -> st.SearchStrategy[Array]:
    """Label histograms of up to eight cases and two to four classes."""
    shape = st.tuples(st.integers(1, 8), st.integers(2, 4))
    counts = hnp.arrays(np.int64, shape, elements=st.integers(0, 4))
    return counts.map(lambda c: c + least * np.eye(1, c.shape[1], dtype=np.int64))


# Fleiss' kappa ---------------------------------------------------------------------------


def test_kappa_of_fourteen_raters() -> None:
    """The published 0.210, and the digits of statsmodels 0.15.0 `fleiss_kappa`."""
    kappa = fleiss_kappa(Labels.from_counts(FOURTEEN_RATERS))
    assert round(kappa, 3) == 0.210
    assert kappa == pytest.approx(0.20993070442195522, rel=1e-12)


def test_kappa_of_five_raters() -> None:
    """The textbook's 0.418, and the digits of statsmodels 0.15.0 `fleiss_kappa`."""
    kappa = fleiss_kappa(Labels.from_counts(FIVE_RATERS))
    assert round(kappa, 3) == 0.418
    assert kappa == pytest.approx(0.41789215686274506, rel=1e-12)


def test_kappa_of_unequal_numbers_of_raters() -> None:
    """The textbook's 0.54 (Stata prints 0.5415) for 2 to 5 raters a case, by its own formula."""
    n, x = np.transpose(TWO_TO_FIVE_RATERS)
    kappa = fleiss_kappa(Labels.from_counts(np.stack((n - x, x), axis=1)))
    p = 46 / 81
    assert kappa == pytest.approx(1 - (x * (n - x) / n).sum() / (25 * 2.24 * p * (1 - p)))
    assert round(kappa, 4) == 0.5415


def test_kappa_weighs_the_agreement_of_a_case_by_raters_less_one() -> None:
    """With three classes and unequal numbers: P_i of each case weighted by n_i - 1, by hand."""
    counts = np.array([[2, 0, 0], [1, 1, 1], [0, 2, 2]])
    agreeing = (1 * 1 + 2 * 0 + 3 * (1 / 3)) / (1 + 2 + 3)
    by_chance = (3 / 9) ** 2 + (3 / 9) ** 2 + (3 / 9) ** 2
    kappa = fleiss_kappa(Labels.from_counts(counts))
    assert kappa == pytest.approx((agreeing - by_chance) / (1 - by_chance))


def test_kappa_is_one_in_perfect_agreement_and_minus_one_in_perfect_disagreement() -> None:
    """Two raters who always agree, on two classes; two who never do: P̄ = 0, P_e = 1/2."""
    assert fleiss_kappa(Labels.from_counts([[2, 0], [0, 2]])) == 1
    assert fleiss_kappa(Labels.from_counts([[1, 1], [1, 1]])) == -1


def test_kappa_is_undefined_when_everybody_gives_one_class() -> None:
    """Chance alone would agree always: 0/0 is an error, not a number."""
    with pytest.raises(UndefinedMetricError, match="fleiss_kappa: undefined, all labels"):
        fleiss_kappa(Labels.from_counts([[3, 0], [2, 0]]))


def test_kappa_and_cases_with_a_single_label() -> None:
    """They are an error by default; dropped, they count neither in P nor in p."""
    labels = Labels.from_counts([*FIVE_RATERS, [0, 1, 0]])
    with pytest.raises(InvalidInputError, match=r"1 of 11 cases has fewer \(case 10\)"):
        fleiss_kappa(labels)
    assert fleiss_kappa(labels, on_single="drop") == pytest.approx(0.41789215686274506)
    with pytest.raises(InvalidInputError, match="no case has that many"):
        fleiss_kappa(Labels.from_classes([0, 1], num_classes=2), on_single="drop")


def test_kappa_does_not_depend_on_the_scale_of_the_weights() -> None:
    """Weights that sum to one give what equal weights give."""
    labels = Labels.from_counts(FIVE_RATERS)
    assert fleiss_kappa(labels, weights=np.full(10, 0.1)) == pytest.approx(fleiss_kappa(labels))


# Krippendorff's alpha -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "published", "digits"),
    [
        ("nominal", 0.743, 0.743421052631579),
        ("ordinal", 0.815, 0.8153875037548814),
        ("interval", 0.849, 0.8491071428571428),
    ],
)
def test_alpha_of_four_observers(scale: str, published: float, digits: float) -> None:
    """Krippendorff's published values, and the digits of the package krippendorff 0.9.0."""
    alpha = krippendorff_alpha(four_observers(), scale)
    assert round(alpha, 3) == published
    assert alpha == pytest.approx(digits, rel=1e-12)


@pytest.mark.parametrize(
    ("scale", "digits"),
    [
        ("nominal", 0.3119691119691119),
        ("ordinal", 0.3723932994250332),
        ("interval", 0.3690526315789474),
    ],
)
def test_alpha_of_unequal_numbers_of_raters(scale: str, digits: float) -> None:
    """Digits of krippendorff 0.9.0 (`value_counts=`); one of the cases has a single label."""
    assert krippendorff_alpha(Labels.from_counts(UNEQUAL), scale) == pytest.approx(digits)


def test_coincidences_of_four_observers() -> None:
    """The coincidence matrix printed in Krippendorff (2011): forty pairable values."""
    labels = four_observers()
    coincidences = agreement.coincidence_sums(labels.counts, np.ones(len(labels)))
    expected: Array = np.array(
        [
            [7, 4 / 3, 1 / 3, 1 / 3, 0],
            [4 / 3, 10, 4 / 3, 1 / 3, 0],
            [1 / 3, 4 / 3, 8, 1 / 3, 0],
            [1 / 3, 1 / 3, 1 / 3, 4, 0],
            [0, 0, 0, 0, 3],
        ]
    )
    np.testing.assert_allclose(coincidences, expected, atol=1e-15)
    assert coincidences.sum() == pytest.approx(40)


def test_ordinal_distance_depends_on_how_often_classes_occur() -> None:
    """Labels 0|2, 0|0, 2|2 and 1|1 m times, by hand: δ²_02 = (3 + 2m)², δ²_01 = (1.5 + m)²."""
    for m in (0, 1, 5):
        counts = [[1, 0, 1], [2, 0, 0], [0, 0, 2], *[[0, 2, 0]] * m]
        n, near, far = 6 + 2 * m, (1.5 + m) ** 2, (3 + 2 * m) ** 2
        by_chance = 2 * (3 * 3 * far + 2 * 3 * 2 * m * near)
        alpha = krippendorff_alpha(Labels.from_counts(counts), "ordinal")
        assert alpha == pytest.approx(1 - (n - 1) * 2 * far / by_chance)


@pytest.mark.parametrize("scale", agreement.SCALES)
def test_a_class_that_nobody_uses_changes_nothing(scale: str) -> None:
    """A sixth class after the last leaves alpha as it is."""
    counts = four_observers().counts
    wider = Labels.from_counts(np.pad(counts, ((0, 0), (0, 1))))
    assert krippendorff_alpha(wider, scale) == pytest.approx(
        krippendorff_alpha(four_observers(), scale)
    )


@given(hnp.arrays(np.int64, (6, 3), elements=st.integers(0, 2)))
def test_nominal_alpha_is_kappa_corrected_for_sample_size(ratings: Array) -> None:
    """With equal numbers of raters 1 - α = (1 - κ)(n-1)/n, n the number of labels."""
    assume(len(np.unique(ratings)) > 1)
    labels = Labels.from_ratings(ratings, num_classes=3)
    expected = 1 - (1 - fleiss_kappa(labels)) * (18 - 1) / 18
    assert krippendorff_alpha(labels) == pytest.approx(expected, abs=1e-12)


def test_ordinal_and_nominal_agree_on_two_classes() -> None:
    """With two classes there is one distance, and it cancels: all scales give the same."""
    labels = Labels.from_counts([[2, 1], [0, 3], [4, 0], [1, 1]])
    values = [krippendorff_alpha(labels, scale) for scale in agreement.SCALES]
    assert values == pytest.approx([values[0]] * 3)


def test_alpha_is_undefined_without_variation() -> None:
    """One class among the pairable labels: 0/0, also where a lone label is of another class."""
    with pytest.raises(UndefinedMetricError, match="krippendorff_alpha: undefined, all labels"):
        krippendorff_alpha(Labels.from_counts([[2, 0], [3, 0], [0, 1]]))


def test_alpha_needs_pairs_and_weights_that_are_repetitions() -> None:
    """No case with two labels is an error; weights that sum to one leave no degree of freedom."""
    with pytest.raises(InvalidInputError, match="no case has that many"):
        krippendorff_alpha(Labels.from_classes([0, 1], num_classes=2))
    with pytest.raises(UndefinedMetricError, match="sum to 1 "):
        krippendorff_alpha(Labels.from_counts([[2, 0], [0, 2]]), weights=[0.25, 0.25])
    with pytest.raises(InvalidInputError, match="scale: must be one of nominal, ordinal, interval"):
        krippendorff_alpha(four_observers(), "ratio")


# Laws of both -------------------------------------------------------------------------------


MEASURES = [
    pytest.param(agreement.fleiss_sums, agreement.fleiss_from_sums, id="fleiss"),
    *[
        pytest.param(
            agreement.coincidence_sums,
            lambda o, scale=scale: agreement.krippendorff_from_coincidences(o, scale),
            id=scale,
        )
        for scale in agreement.SCALES
    ],
]


@pytest.mark.parametrize(("sums", "formula"), MEASURES)
@given(counts=histograms(), data=st.data())
def test_weight_is_repetition(sums: Any, formula: Any, counts: Array, data: Any) -> None:
    """A case of weight w is w cases; weight 0 is no case."""
    times = data.draw(hnp.arrays(np.int64, len(counts), elements=st.integers(0, 3)))
    weighted = formula(sums(counts, times.astype(np.float64)))
    repeated = np.repeat(counts, times, axis=0)
    np.testing.assert_allclose(
        weighted, formula(sums(repeated, np.ones(len(repeated)))), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(("sums", "formula"), MEASURES)
@given(counts=histograms(), data=st.data())
def test_sums_add_over_cases(sums: Any, formula: Any, counts: Array, data: Any) -> None:
    """Sums of parts add to the sums of the whole; the formulas take a stack of them."""
    units = data.draw(hnp.arrays(np.int64, len(counts), elements=st.integers(0, 2)))
    weights = np.linspace(0.5, 2, len(counts))
    tables = np.stack([sums(counts[units == u], weights[units == u]) for u in range(4)])
    whole = sums(counts, weights)
    np.testing.assert_allclose(tables.sum(axis=0), whole, rtol=1e-12, atol=1e-12)
    singly = [formula(table) for table in tables]
    np.testing.assert_allclose(formula(tables), singly, rtol=1e-9, atol=1e-12)
    assert np.isnan(formula(tables)[3])  # nobody is in the last unit
    assert formula(tables[None, :, None]).shape == (1, 4, 1)


@pytest.mark.parametrize(("sums", "formula"), MEASURES[:2])
@given(counts=histograms(least=2), data=st.data())
def test_nominal_measures_ignore_the_names_of_classes(
    sums: Any, formula: Any, counts: Array, data: Any
) -> None:
    """Renaming the classes changes neither kappa nor nominal alpha."""
    order = data.draw(st.permutations(range(counts.shape[1])))
    ones = np.ones(len(counts))
    np.testing.assert_allclose(
        formula(sums(counts, ones)), formula(sums(counts[:, order], ones)), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("scale", agreement.SCALES)
def test_reversing_the_scale_changes_nothing(scale: str) -> None:
    """Counting the classes from the other end keeps alpha on every scale."""
    backwards = Labels.from_counts(np.array(UNEQUAL)[:, ::-1])
    forwards = Labels.from_counts(UNEQUAL)
    assert krippendorff_alpha(backwards, scale) == pytest.approx(
        krippendorff_alpha(forwards, scale)
    )


def test_small_integer_types_do_not_overflow() -> None:
    """A histogram of int8 counts, whose products leave int8, gives what int64 gives."""
    counts = np.array([[100, 20], [3, 90], [50, 50]])
    for measure in (fleiss_kappa, krippendorff_alpha):
        wide, narrow = (measure(Labels.from_counts(counts.astype(t))) for t in (int, np.int8))
        assert narrow == wide


@pytest.mark.parametrize("measure", [fleiss_kappa, krippendorff_alpha, irreducible_loss])
def test_labels_must_be_labels(measure: Any) -> None:
    """A plain array could be classes, ratings or histograms: not guessed."""
    with pytest.raises(InvalidTypeError, match=r"labels: must be Labels .* got ndarray"):
        measure(np.array([[2, 0], [0, 2]]))


@pytest.mark.parametrize("measure", [fleiss_kappa, krippendorff_alpha])
def test_weights_are_checked(measure: Any) -> None:
    """One finite weight per case."""
    labels = Labels.from_counts([[2, 0], [0, 2]])
    with pytest.raises(InvalidInputError, match="weights: must have one value per case"):
        measure(labels, weights=[1.0])
    with pytest.raises(InvalidInputError, match="case 1 has -1"):
        measure(labels, weights=[1.0, -1.0])

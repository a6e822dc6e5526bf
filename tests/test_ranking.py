"""Ranks from probabilities and labels: the numbers of `evaluate`, and cases from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import raterwise as rw

Array = NDArray[Any]

AREAS = ("auccc", "aurc", "augrc")
SAME: dict[str, Any] = {"rel": 1e-12, "abs": 0}


def problem(raters: int, classes: int = 3, cases: int = 200) -> tuple[Array, Array]:
    """Return probabilities and a matrix of ratings of which some are missing, none of them all."""
    random = np.random.default_rng(raters * 10 + classes)
    probs = random.dirichlet(np.full(classes, 0.7), cases).round(2)
    probs[:, -1] = 1 - probs[:, :-1].sum(axis=1)
    drawn = random.random((cases, raters, 1)) > (0.8 * probs + 0.2 / classes).cumsum(1)[:, None]
    ratings = drawn.sum(axis=2).clip(max=classes - 1)
    missing = random.random(ratings.shape) < 0.3
    missing[:, 0] = False
    return np.abs(probs), np.where(missing, -1, ratings)


def extended(probs: Array, ratings: Array) -> tuple[Array, Array]:
    """Return confidence and hit of every single rating: the extended test set of MR eq 4."""
    case, rater = np.nonzero(ratings >= 0)
    return probs.max(axis=1)[case], probs.argmax(axis=1)[case] == ratings[case, rater]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", AREAS)
def test_the_same_name_gives_the_same_number(name: str, classes: int, weighted: bool) -> None:
    """Four raters, missing ratings, weights: function, `evaluate` and every rating repeated."""
    probs, ratings = problem(4, classes)
    labels = rw.Labels.from_ratings(ratings, num_classes=classes)
    weights = np.random.default_rng(0).integers(0, 4, len(probs)) if weighted else None
    mine = getattr(rw, name)(probs, labels, weights=weights)
    results = rw.evaluate(probs, labels, name, weights=weights, resamples=0)
    assert mine == pytest.approx(results[name].value, **SAME)
    rows = np.arange(len(probs)) if weights is None else np.repeat(np.arange(len(probs)), weights)
    confidence, hits = extended(probs[rows], ratings[rows])
    plain = getattr(rw.confidence, name)(confidence, hits)
    assert mine == pytest.approx(plain, rel=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_rater_against_scikit_learn(classes: int) -> None:
    """AUCCC is the ROC area of the largest probability for being right."""
    probs, ratings = problem(1, classes)
    y = ratings[:, 0]
    expected = roc_auc_score(probs.argmax(axis=1) == y, probs.max(axis=1))
    assert rw.auccc(probs, y) == pytest.approx(expected, **SAME)
    assert rw.ccc_curve(probs, y).area == pytest.approx(expected, **SAME)


def test_several_raters_against_scikit_learn() -> None:
    """Every rating is a row of its own; per case, a case has the weight 1 in all."""
    probs, ratings = problem(4)
    labels = rw.Labels.from_ratings(ratings, num_classes=3)
    confidence, hits = extended(probs, ratings)
    assert rw.auccc(probs, labels) == pytest.approx(roc_auc_score(hits, confidence), **SAME)
    each = np.repeat(1 / labels.num_raters, labels.num_raters)
    expected = roc_auc_score(hits, confidence, sample_weight=each)
    assert rw.auccc(probs, labels, per="case") == pytest.approx(expected, rel=1e-10)
    results = rw.evaluate(probs, labels, "auccc", per="case", resamples=0)
    assert results["auccc"].value == pytest.approx(expected, rel=1e-10)


def test_a_score_of_two_classes_is_not_a_confidence() -> None:
    """(N,) are probabilities of class 1: their ROC area is another question."""
    probs, ratings = problem(1, 2)
    y = ratings[:, 0]
    expected = roc_auc_score(probs.argmax(axis=1) == y, probs.max(axis=1))
    assert rw.auccc(probs[:, 1], y) == pytest.approx(expected, **SAME)
    area = roc_auc_score(y, probs[:, 1])
    assert abs(area - expected) > 0.05
    assert rw.auccc(probs[:, 1], y, question="positive") == pytest.approx(area, **SAME)
    results = rw.evaluate(probs, y, "auccc", question="positive", resamples=0)
    assert results["auccc"].value == pytest.approx(area, **SAME)


@pytest.mark.parametrize("name", AREAS)
def test_a_confidence_of_ones_own(name: str) -> None:
    """Negative entropy ranks the cases; what is right still follows from the probabilities."""
    probs, ratings = problem(3)
    probs = (probs + 0.01) / (probs + 0.01).sum(axis=1, keepdims=True)
    labels = rw.Labels.from_ratings(ratings, num_classes=3)
    confidence = (probs * np.log(probs)).sum(axis=1)
    case, rater = np.nonzero(ratings >= 0)
    hits = probs.argmax(axis=1)[case] == ratings[case, rater]
    mine = getattr(rw, name)(probs, labels, confidence=confidence)
    assert mine == pytest.approx(getattr(rw.confidence, name)(confidence[case], hits), rel=1e-10)
    same = getattr(rw, name)(probs, labels, confidence=probs.max(axis=1))
    assert same == pytest.approx(getattr(rw, name)(probs, labels), rel=1e-12)


# By hand ----------------------------------------------------------------------------------------

PROBS = [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]
Y = [0, 1, 0]  # right at 0.9 and 0.8, wrong at 0.6


def test_outside_cases_by_hand() -> None:
    """Right at 0.9 and 0.8; wrong at 0.6, and outside at 0.85 and 0.8: 4 pairs and a tie of 6."""
    assert rw.auccc(PROBS, Y) == 1
    assert rw.auccc(PROBS, Y, outside=[0.85, 0.8]) == pytest.approx(4.5 / 6)
    curve = rw.ccc_curve(PROBS, Y, outside=[0.85, 0.8])
    assert curve.thresholds.tolist() == [np.inf, 0.9, 0.85, 0.8, 0.6]
    assert curve.correct_accepts.tolist() == [0, 1, 1, 2, 2]
    assert curve.incorrect_accepts.tolist() == [0, 0, 1, 2, 3]
    assert curve.area == pytest.approx(4.5 / 6)
    # Error rates among the most confident: 0, 1/2, then the tie in either order, 2/4 and 3/5.
    expected = (0 + 1 / 2 + (1 / 3 + 2 / 3) / 2 + 2 / 4 + 3 / 5) / 5
    assert rw.aurc(PROBS, Y, outside=[0.85, 0.8]) == pytest.approx(expected)
    # a (1 - a) (1 - AUCCC) + (1 - a)² / 2 with a = 2/5
    assert rw.augrc(PROBS, Y, outside=[0.85, 0.8]) == pytest.approx(0.24 * 0.25 + 0.18)


def test_outside_cases_by_their_probabilities() -> None:
    """(M, K) stands for the row maxima; without a wrong case inside, those outside are enough."""
    outside = [[0.15, 0.85], [0.8, 0.2]]
    assert rw.auccc(PROBS, Y, outside=outside) == pytest.approx(4.5 / 6)
    with pytest.raises(rw.UndefinedMetricError, match="auccc: undefined"):
        rw.auccc(PROBS[:2], Y[:2])
    assert rw.auccc(PROBS[:2], Y[:2], outside=[0.5]) == 1
    with pytest.raises(rw.UndefinedMetricError, match="auccc: undefined"):
        rw.auccc(PROBS[2:], Y[2:], outside=[0.5])


def test_outside_cases_beside_several_raters() -> None:
    """A case outside is one wrong annotation: 3 of 4 right at 0.9, 2 of 2 at 0.8, outside 0.85."""
    labels = rw.Labels.from_counts([[3, 1], [0, 2]])
    mine = rw.auccc(PROBS[:2], labels, outside=[0.85])
    # right: 3 at 0.9, 2 at 0.8; wrong: 1 at 0.9, 1 at 0.85
    assert mine == pytest.approx((3 * (0.5 + 1) + 2 * 0) / (5 * 2))
    per_case = rw.auccc(PROBS[:2], labels, outside=[0.85], per="case")
    # right: 0.75 at 0.9, 1 at 0.8; wrong: 0.25 at 0.9, 1 at 0.85
    assert per_case == pytest.approx((0.75 * (0.125 + 1)) / (1.75 * 1.25))


def test_cases_that_do_not_count_take_their_confidence_with_them() -> None:
    """A case of weight 0 and one that nobody rated: the others keep their own confidences."""
    probs = [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.5, 0.5]]
    labels = rw.Labels.from_counts([[0, 0], [0, 1], [1, 0], [1, 0]])
    own = [9.0, 2.0, 3.0, 1.0]
    found = rw.auccc(probs, labels, confidence=own, weights=[1, 1, 1, 0], on_unrated="drop")
    assert found == 0  # right at 2, wrong at 3
    found = rw.auccc(probs, labels, confidence=own, on_unrated="drop")
    assert found == 0  # right at 2 and 1, wrong at 3


@pytest.mark.parametrize("name", [*AREAS, "ccc_curve"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": [0.1, 0.2]}, "confidence: must match probs; got 2 for 3 cases"),
        ({"confidence": [0.1, 0.2, np.nan]}, "confidence: must not contain NaN; 1 values"),
        ({"outside": []}, "outside: must hold at least one case"),
        ({"outside": [[0.1, 0.2, 0.7]]}, r"outside: must be \(M,\), or \(M, 2\) as probs"),
        ({"outside": [[0.5, 0.7]]}, "outside: rows must sum to 1"),
        (
            {"confidence": [1, 2, 3], "outside": [[0.5, 0.5]]},
            r"outside: must be \(M,\) confidences of the same kind",
        ),
        ({"outside": [0.5], "question": "positive"}, 'outside: needs question="top_label"'),
        ({"confidence": Y, "question": "positive"}, 'confidence: needs question="top_label"'),
        ({"question": "per_class"}, "question: must be one of top_label, positive"),
        ({"per": "rater"}, "per: must be one of annotation, case"),
        ({"weights": [1, 1]}, "weights: must have one value per case"),
    ],
)
def test_what_cannot_be_ranked(name: str, options: dict[str, Any], message: str) -> None:
    """The message names the argument, the rule and the value."""
    function: Callable[..., Any] = getattr(rw, name)
    with pytest.raises(rw.InvalidInputError, match=message):
        function(PROBS, Y, **options)


def test_confidences_and_hits_are_not_probabilities_and_labels() -> None:
    """What `auccc(confidence, correct)` meant before is an error, or another number, loudly."""
    with pytest.raises(TypeError):
        rw.auccc([0.9, 0.8], [1, 0], [0.5])
    assert "io_auroc" not in dir(rw) and not hasattr(rw, "io_auroc")


def test_outside_of_confidences_by_hand() -> None:
    """The public module takes outside cases in every function; those inside may have weights."""
    confidence, correct = [0.9, 0.8, 0.6], [1, 1, 0]
    assert rw.confidence.auccc(confidence, correct, [0.85, 0.8]) == pytest.approx(4.5 / 6)
    expected = (0 + 1 / 2 + (1 / 3 + 2 / 3) / 2 + 2 / 4 + 3 / 5) / 5
    assert rw.confidence.aurc(confidence, correct, [0.85, 0.8]) == pytest.approx(expected)
    assert rw.confidence.augrc(confidence, correct, [0.85, 0.8]) == pytest.approx(0.24)
    twice = rw.confidence.auccc(confidence, correct, [0.85, 0.8], weights=[2, 1, 1])
    assert twice == pytest.approx((2 * 3 + 1 * (1 + 0.5)) / 9)


def test_no_interval_of_resamples_ends_beyond_what_a_share_can_be() -> None:
    """Small sets with raters who differ: false accepts are a share, within 0 and 1."""
    random = np.random.default_rng(11)
    for _ in range(8):
        probs = random.dirichlet(np.full(3, 0.5), 25)
        labels = rw.Labels.from_counts(random.multinomial(3, probs))
        found = rw.evaluate(probs, labels, metrics="fpr_at_95_tpr", resamples=200)["fpr_at_95_tpr"]
        if found.low is not None and found.high is not None:
            assert found.value is not None
            assert 0 <= found.low <= found.value <= found.high <= 1

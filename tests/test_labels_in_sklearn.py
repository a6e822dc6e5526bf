"""Labels go through scikit-learn's splitting, cross-validation and scores as an array would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_score,
    cross_validate,
    train_test_split,
)

import raterwise as rw

RANDOM = np.random.default_rng(0)
PROBS = RANDOM.dirichlet([1, 1, 1], 90)
RATINGS = np.stack([RANDOM.choice(3, 4, p=p) for p in PROBS])
FORMS = {
    "counts": rw.Labels.from_counts(np.stack([(k == RATINGS).sum(axis=1) for k in range(3)], 1)),
    "ratings": rw.Labels.from_ratings(RATINGS, num_classes=3),
    "classes": rw.Labels.from_classes(RATINGS[:, 0], num_classes=3),
}
CALIBRATORS = [
    rw.TemperatureScaling(input="probs"),
    rw.VectorScaling(input="probs"),
    rw.IsotonicCalibration(input="probs"),
    rw.HistogramBinning(input="probs"),
]
forms = pytest.mark.parametrize("labels", FORMS.values(), ids=FORMS)


def agreement(probs: Any, labels: rw.Labels) -> float:
    """Return the share of all ratings that are the predicted class, by hand."""
    predicted = probs.argmax(axis=1)
    hits = labels.counts[np.arange(len(probs)), predicted]
    return float(hits.sum() / labels.counts.sum())


@forms
def test_train_test_split_keeps_rows_together(labels: rw.Labels) -> None:
    """The labels of each part are those of its probabilities, and are Labels."""
    row = np.arange(90)
    parts = train_test_split(PROBS, labels, row, test_size=0.3, random_state=1)
    for probs, said, rows in (parts[::2], parts[1::2]):
        assert isinstance(said, rw.Labels) and len(said) == len(rows)
        np.testing.assert_array_equal(said.counts, labels.counts[rows])
        np.testing.assert_array_equal(probs, PROBS[rows])


@forms
def test_labels_are_an_array_of_their_counts(labels: rw.Labels) -> None:
    """`np.asarray` gives the histograms, whole numbers; a copy can be changed."""
    array = np.asarray(labels)
    np.testing.assert_array_equal(array, labels.counts)
    assert array.dtype.kind == "i" and array.shape == labels.shape
    assert np.asarray(labels, dtype=float).dtype == float
    changed = np.array(labels)
    changed[:] = 0
    assert labels.counts.sum() > 0


@forms
@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda c: type(c).__name__)
def test_cross_val_score_is_a_loop_over_folds(calibrator: Any, labels: rw.Labels) -> None:
    """By default, with folds and with patients: fit on the rest, score on the fold, by hand."""
    from sklearn.base import clone

    patients = np.arange(90) // 3
    for cv, given in ((None, {}), (KFold(4), {}), (GroupKFold(3), {"groups": patients})):
        found = cross_val_score(calibrator, PROBS, labels, cv=cv, error_score="raise", **given)
        folds = (KFold(5) if cv is None else cv).split(PROBS, groups=given.get("groups"))
        expected = [
            agreement(clone(calibrator).fit(PROBS[a], labels[a]).predict_proba(PROBS[b]), labels[b])
            for a, b in folds
        ]
        assert found == pytest.approx(expected)


@forms
def test_the_score_of_a_calibrator(labels: rw.Labels) -> None:
    """How often a rater says the predicted class, every rating once."""
    fitted = rw.TemperatureScaling(input="probs").fit(PROBS, labels)
    assert fitted.score(PROBS, labels) == pytest.approx(agreement(PROBS, labels))


def test_grid_search_and_own_scores() -> None:
    """A search over penalties, and our own metric as the scorer: minus the log loss."""
    labels = FORMS["counts"]

    def scorer(estimator: Any, probs: Any, said: rw.Labels) -> float:
        return -rw.nll(estimator.predict_proba(probs), said)

    found = GridSearchCV(
        rw.MatrixScaling(input="probs"), {"off_diagonal_l2": [0.01, 1.0]}, scoring=scorer, cv=3
    ).fit(PROBS, labels)
    parts = cross_validate(found.best_estimator_, PROBS, labels, scoring=scorer, cv=3)
    assert found.best_score_ == pytest.approx(parts["test_score"].mean())


def test_scores_for_single_labels_refuse_several_raters() -> None:
    """scikit-learn's own log loss knows one label per case: an error, no number."""
    calibrator, labels = rw.TemperatureScaling(input="probs"), FORMS["counts"]
    with pytest.raises(ValueError, match=r"(?i)multi.?output|not supported"):
        cross_val_score(
            calibrator, PROBS, labels, scoring="neg_log_loss", error_score="raise", cv=3
        )

"""What KDE-ECE can be asked: of one score, of every class, of all classes together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import raterwise as rw
from raterwise.segmentation import Case

WIDTH = 0.08


def rated(number: int = 60, seed: int = 0) -> tuple[Any, Any]:
    """Return probabilities of three classes, and counts of one to four labels."""
    random = np.random.default_rng(seed)
    probs = random.dirichlet(np.ones(3), number)
    raters = random.integers(1, 5, number)
    return probs, np.array([random.multinomial(n, p**0.7 / (p**0.7).sum()) for n, p in
                            zip(raters, probs, strict=True)])  # fmt: skip


def by_hand(probs: Any, counts: Any, per: str, p: int, *, canonical: bool) -> float:
    """Return the definition in a double loop, with densities of SciPy."""
    hits = counts / (counts.sum(axis=1, keepdims=True) if per == "case" else 1)
    mass = hits.sum(axis=1)
    total = 0.0
    for j in range(len(probs)):
        if canonical:
            kernel = np.array([stats.dirichlet.pdf(probs[j], f / WIDTH + 1) for f in probs])
            kernel[j] = 0
            gaps = kernel @ hits / (kernel @ mass) - probs[j]
            total += mass[j] * (np.abs(gaps) ** p).sum()
            continue
        for k in range(3):
            a, b = probs[:, k] / WIDTH + 1, (1 - probs[:, k]) / WIDTH + 1
            kernel = stats.beta.pdf(probs[j, k], a, b)
            kernel[j] = 0
            total += mass[j] * abs(kernel @ hits[:, k] / (kernel @ mass) - probs[j, k]) ** p / 3
    return float(total / mass.sum())


@pytest.mark.parametrize("per", ["annotation", "case"])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("question", ["per_class", "canonical"])
def test_the_definition_by_function_and_by_evaluate(question: Any, p: int, per: Any) -> None:
    """Unequal numbers of raters, counted by label or by case: loops, function, evaluate."""
    probs, counts = rated()
    labels = rw.Labels.from_counts(counts)
    expected = by_hand(probs, counts, per, p, canonical=question == "canonical")
    ours = rw.kde_ece(probs, labels, question, p, WIDTH, per=per)
    assert ours == pytest.approx(expected, rel=1e-10)
    own = {"question": question, "p": p, "bandwidth": WIDTH, "per": per}
    found = rw.evaluate(probs, labels, "kde_ece", resamples=20, options={"kde_ece": own})
    assert found["kde_ece"].value == ours
    other = "case" if per == "annotation" else "annotation"
    assert rw.kde_ece(probs, labels, question, p, WIDTH, per=other) != pytest.approx(ours, rel=1e-6)


def test_every_class_has_an_interval_and_chooses_its_bandwidth() -> None:
    """The value with each class's own bandwidth; 0 is inside for a calibrated model only."""
    random = np.random.default_rng(2)
    probs = random.dirichlet(np.ones(3), 400)
    labels = (random.random((400, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    asked: dict[str, Any] = {"resamples": 200, "question": "per_class"}
    good = rw.evaluate(probs, labels, "kde_ece", **asked)["kde_ece"]
    assert good.low == 0 and good.value < good.high < 0.1
    sharp = probs**3 / (probs**3).sum(axis=1, keepdims=True)
    bad = rw.evaluate(sharp, labels, "kde_ece", **asked)["kde_ece"]
    assert 0 < bad.low < bad.value < bad.high
    # Each class alone is a task of two classes with the same score, kernel and bandwidth.
    alone = [
        rw.kde_ece(sharp[:, k], (labels == k).astype(int), question="positive") for k in range(3)
    ]
    assert bad.value == pytest.approx(np.mean(alone), rel=1e-9)


def test_a_stream_has_every_class_within_its_bound(tmp_path: Path) -> None:
    """Cells stand for the scores; the error is no larger than they say."""
    probs, counts = rated(300, seed=3)
    columns = {f"prob_{k}": probs[:, k] for k in range(3)}
    columns |= {f"count_{k}": counts[:, k] for k in range(3)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=90)
    own = {"kde_ece": {"question": "per_class", "bandwidth": WIDTH}}
    found = rw.evaluate_stream(
        tmp_path / "t.parquet", "kde_ece", 50, options=own, count_prefix="count_"
    )["kde_ece"]
    exact = rw.kde_ece(probs, rw.Labels.from_counts(counts), "per_class", bandwidth=WIDTH)
    assert abs(found.value - exact) <= found.bound < 1e-3
    assert 0 < found.low < found.debiased < found.value <= found.high


def test_all_classes_together_need_the_cases_and_have_no_interval(tmp_path: Path) -> None:
    """The results say so; where cases are not in memory, or only in part, it is refused."""
    probs, counts = rated()
    labels = rw.Labels.from_counts(counts)
    own: dict[str, Any] = {"options": {"kde_ece": {"question": "canonical"}}, "resamples": 20}
    found = rw.evaluate(probs, labels, "kde_ece,brier", **own, subgroups=np.arange(60) % 2)
    assert found["kde_ece"].low is None and found["brier"].low is not None
    assert any("KDE-ECE" in w and "it has no interval" in w for w in found.warnings)
    with pytest.warns(UserWarning, match="not compared, since they have no resampled values: kde"):
        differences = rw.compare({"a": probs, "b": probs[:, ::-1]}, labels, "kde_ece,brier", **own)
    assert [d.metric for d in differences.differences] == ["brier"]
    image = Case(np.full((4, 4), 0.3), np.zeros((2, 4, 4), int))
    with pytest.raises(rw.InvalidInputError, match="needs them all in memory"):
        rw.segmentation.evaluate([image], "kde_ece", **own)
    with pytest.raises(rw.InvalidInputError, match="is of all cases, not of parts"):
        rw.stability.total_variation(
            "kde_ece", probs, labels, repeats=2, options={"question": "canonical"}
        )
    with pytest.raises(rw.InvalidInputError, match='method: "cells" is for one score'):
        rw.kde_ece(probs, labels, "canonical", method="cells")
    with pytest.raises(rw.InvalidInputError, match='floor: is for question="canonical"'):
        rw.kde_ece(probs, labels, "per_class", floor=1e-10)


def test_metrics_without_the_question_say_that_they_keep_theirs() -> None:
    """No silent difference: only metrics that have questions, and were told none of their own."""
    probs, counts = rated()
    labels = rw.Labels.from_counts(counts)
    asked: dict[str, Any] = {"resamples": 0, "question": "per_class", "on_single": "drop"}
    found = rw.evaluate(probs, labels, **asked)
    told = [w for w in found.warnings if "no question" in w]
    assert told == [
        "Smooth ECE, AUCCC, AURC, AUGRC: have no question 'per_class', and answer 'top_label'"
    ]
    plain = rw.evaluate(probs, labels, "auccc", resamples=0)["auccc"].value
    assert found["auccc"].value == plain
    own = {"auccc": {"question": "top_label"}}
    quiet = rw.evaluate(probs, labels, "ece,brier,auccc", options=own, **asked)
    assert not any("no question" in w for w in quiet.warnings)
    one = rw.evaluate(probs, labels, "ece,aurc", **asked)
    assert "AURC: has no question 'per_class', and answers 'top_label'" in one.warnings

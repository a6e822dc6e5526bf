"""Large summaries are made in turn: the same results, in less memory."""

from __future__ import annotations

import numpy as np
import pytest

import raterwise as rw
from raterwise.evaluation.judged import judge_predictions
from raterwise.evaluation.request import Request
from raterwise.inference.settings import Settings
from raterwise.predictions import Predictions
from raterwise.questions import Question
from raterwise.summaries import DeviationSums, SortedPlan, one_pass, summarise
from raterwise.summaries.bin_sums import BinPlan, BinSums
from raterwise.summaries.one_pass import InTurn


def three_classes(cases: int, patients: int) -> tuple[np.ndarray, rw.Labels, np.ndarray]:
    """Return probabilities, two or three labels per case and patients."""
    random = np.random.default_rng(0)
    probs = random.dirichlet([1, 1, 1], cases).round(2)
    probs[:, 2] = 1 - probs[:, 0] - probs[:, 1]
    ratings = random.integers(0, 3, (cases, 3))
    ratings[::7, 2] = -1
    labels = rw.Labels.from_ratings(ratings, num_classes=3)
    return np.clip(probs, 0, 1), labels, random.integers(0, patients, cases)


@pytest.mark.parametrize("limit", [0, 1 << 12])
def test_results_are_the_same_in_turn_and_at_once(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every value, interval, curve and resampled value, whatever is made when."""
    probs, labels, groups = three_classes(300, 60)
    given = {"groups": groups, "resamples": 50, "class_names": ["none", "cyst", "mass"]}
    at_once = rw.evaluate(probs, labels, **given)
    assert at_once.curves["per_class"][2]["name"] == "mass"
    monkeypatch.setattr(one_pass, "LARGE", limit)
    monkeypatch.setattr(one_pass, "TINY", limit // 4)
    turned = rw.evaluate(probs, labels, **given)
    assert list(turned) == list(at_once)
    for name in at_once:
        assert turned[name] == at_once[name], name
    assert {k: turned.curves[k] for k in sorted(turned.curves)} == dict(
        sorted(at_once.curves.items())
    )
    assert set(turned.replicates) == set(at_once.replicates)
    for name, values in at_once.replicates.items():
        np.testing.assert_array_equal(turned.replicates[name], values)
    assert turned.warnings == at_once.warnings


def test_a_large_summary_is_let_go_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for twice it is made once; let go, it is made once more, with the same sums."""
    monkeypatch.setattr(one_pass, "LARGE", 1)
    probs, labels, groups = three_classes(100, 20)
    made: list[int] = []
    counted = one_pass.summarise

    def counting(predictions, plans, **given):  # type: ignore[no-untyped-def]
        made.append(len(plans))
        return counted(predictions, plans, **given)

    monkeypatch.setattr(one_pass, "summarise", counting)
    plans = [BinPlan(Question("per_class", "case"), 5), BinPlan(Question("top_label", "case"), 5)]
    held = InTurn(Predictions.of(probs, labels), plans, groups, 20)
    first = held[plans[0]]
    assert held[plans[0]] is first and made == [1]
    held.let_go(plans[0])
    np.testing.assert_array_equal(held[plans[0]].sums, first.sums)
    assert made == [1, 1] and len(held) == 2


def test_tables_of_the_same_sums_are_one() -> None:
    """Where every case has two labels, leaving out those with one leaves out nobody."""
    probs, labels, groups = three_classes(50, 10)
    plans = [BinPlan(Question("per_class", "case"), 5, least) for least in (1, 2)]
    both = summarise(Predictions.of(probs, labels), plans, units=groups, num_units=10, threads=3)
    assert both[plans[0]].sums is both[plans[1]].sums
    assert both[plans[1]].plan == plans[1]
    single = rw.Labels.from_ratings(np.where(np.arange(100).reshape(50, 2) % 4 == 1, -1, 0), 3)
    apart = summarise(Predictions.of(probs, single), plans, units=groups, num_units=10)
    assert apart[plans[0]].table.cases.sum() == 150 and apart[plans[1]].table.cases.sum() == 75


def test_scores_of_a_unit_in_a_cell_are_one_entry() -> None:
    """Two scores of one patient in the same cell add up, so that neither is lost."""
    probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    predictions = Predictions.of(probs, [0, 1, 0, 0])
    plan = SortedPlan(Question("per_class", "case"))
    units = np.array([0, 0, 1, 1])
    scores = summarise(predictions, [plan], units=units, num_units=2)[plan]
    table = BinSums.of_scores(scores, [np.array([0, 0.5, 1.0])] * 2)
    entries = table.by_cell
    assert entries.unit.tolist() == [0, 1, 0, 1] and entries.cell.tolist() == [1, 1, 2, 2]
    assert entries.values[:, 0].tolist() == [2, 2, 2, 2]
    assert entries.values[:, 3] == pytest.approx([1.7, 1.3, 0.3, 0.7])
    assert entries.values[:, 4].tolist() == [1, 2, 1, 0]
    covariance = entries.null_covariance(2, 2)
    # Cells of the two classes: -Σ over patients of the sums' product over the cases of each.
    assert covariance[1, 2] == pytest.approx(-(1.7 * 0.3 + 1.3 * 0.7) / 2)
    own = 1.7 * (2 - 1.7) / 2 + 1.3 * (2 - 1.3) / 2
    assert covariance[1, 1] == pytest.approx(own)


def test_how_far_raters_agree_asks_for_no_large_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows from the sums of the verdict; bins that nobody asked for yet are not made."""
    monkeypatch.setattr(one_pass, "LARGE", 1)
    probs, labels, groups = three_classes(100, 20)
    predictions = Predictions.of(probs, labels, groups=groups)
    request = Request.of(["ece", "classwise_ece"], settings=Settings(20))
    pass_ = judge_predictions(predictions, request, verdict=True).pass_
    assert pass_ is not None
    held = pass_.digest.summaries
    assert isinstance(held, InTurn)
    bins = [plan for plan in held if isinstance(plan, BinPlan)]
    assert bins
    held._made.clear()
    pass_.agreement_on()
    assert any(isinstance(made, DeviationSums) for made in held._made.values())
    assert not any(plan in held._made for plan in bins if held._turn(plan)[0] == 0)

"""Multi-label tasks: every finding by itself, and the mean over the findings."""

from pathlib import Path

import numpy as np
import pytest

import raterwise as rw


def chest(cases: int = 300, findings: int = 3, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Calibrated probabilities of findings, each rated by two or three readers."""
    random = np.random.default_rng(seed)
    probs = random.beta(1, 3, (cases, findings))
    raters = random.integers(2, 4, (cases, findings))
    return probs, random.binomial(raters, probs), raters


def test_each_finding_is_a_binary_task() -> None:
    """A finding's numbers are those of the binary task; errors ask about the positive class."""
    probs, positives, raters = chest()
    results = rw.evaluate_multilabel(probs, positives, raters, names=["a", "b", "c"], resamples=0)
    counts = np.stack((raters[:, 1] - positives[:, 1], positives[:, 1]), axis=1)
    labels = rw.Labels.from_counts(counts)
    assert list(results.findings) == ["a", "b", "c"]
    expected = rw.ece(probs[:, 1], labels, question="positive")
    assert results.findings["b"]["ece"].value == pytest.approx(expected, abs=1e-12)
    assert results.findings["b"]["brier"].value == pytest.approx(
        rw.brier(probs[:, 1], labels), abs=1e-12
    )


def test_macro_is_the_mean() -> None:
    """Macro values are plain means over the findings."""
    probs, positives, raters = chest()
    results = rw.evaluate_multilabel(probs, positives, raters, resamples=0)
    for name, macro in results.items():
        values = [finding[name].value for finding in results.findings.values()]
        assert macro.value == pytest.approx(np.mean(values), abs=1e-12), name


def test_one_finding_copied_has_the_interval_of_the_one() -> None:
    """Findings are resampled together: the mean of copies is as uncertain as one of them."""
    probs, positives, raters = (np.repeat(a[:, :1], 4, axis=1) for a in chest())
    results = rw.evaluate_multilabel(
        probs, positives, raters, metrics="brier,ece,auccc", resamples=200
    )
    for name in ("brier", "auccc", "ece"):
        one, macro = results.findings["finding 0"][name], results[name]
        # An area of one finding has Newcombe's interval, a mean of areas that of a proportion.
        tolerance = 5e-3 if name == "auccc" else 1e-9
        assert macro.low == pytest.approx(one.low, abs=tolerance), name
        assert macro.high == pytest.approx(one.high, abs=tolerance), name


def test_independent_findings_make_the_mean_surer() -> None:
    """The standard error of a mean of 9 independent findings is a third of that of one."""
    probs, positives, raters = chest(findings=9)
    results = rw.evaluate_multilabel(probs, positives, raters, metrics="brier", resamples=400)
    widths = [r["brier"].high - r["brier"].low for r in results.findings.values()]
    macro = results["brier"]
    assert (macro.high - macro.low) / np.mean(widths) == pytest.approx(1 / 3, abs=0.07)


def test_unrated_findings() -> None:
    """A finding that nobody rated in a case is an error, or left out there and counted."""
    probs, positives, raters = chest()
    positives[5, 2] = raters[5, 2] = 0
    with pytest.raises(ValueError, match="every case needs a rating of effusion; 1 has none"):
        rw.evaluate_multilabel(probs, positives, raters, names=["a", "b", "effusion"])
    results = rw.evaluate_multilabel(
        probs, positives, raters, on_unrated="drop", metrics="brier", resamples=50
    )
    assert results.findings["finding 2"].data["dropped"] == {"unrated": 1}
    assert results.findings["finding 2"].data["cases"] == 299
    assert results.findings["finding 0"].data["dropped"] == {}


def test_a_metric_undefined_for_one_finding() -> None:
    """The macro mean runs over the findings where the metric is defined, and counts the others."""
    probs, positives, raters = chest()
    probs[:, 0], positives[:, 0] = 0.1, 0
    results = rw.evaluate_multilabel(probs, positives, raters, metrics="auccc", resamples=50)
    assert results.findings["finding 0"]["auccc"].value is None
    others = [results.findings[f"finding {i}"]["auccc"].value for i in (1, 2)]
    assert results["auccc"].value == pytest.approx(np.mean(others))
    assert results["auccc"].dropped == 1


def test_results_pass_through_a_file(tmp_path: Path) -> None:
    """One schema: the means at the top, the findings below, with what a comparison needs."""
    probs, positives, raters = chest(60, 2)
    results = rw.evaluate_multilabel(
        probs, positives, raters, metrics="brier,ece", names=["a", "b"], resamples=20
    )
    results.to_json(tmp_path / "r.json")
    back = rw.Results.from_json(tmp_path / "r.json")
    assert back.to_dict() == results.to_dict()
    assert list(back.findings) == ["a", "b"]
    assert back.data["findings"] == ["a", "b"] and back.data["cases"] == 60


def test_two_models_are_compared_on_the_mean_and_on_each_finding() -> None:
    """The resampled means are pairs: their difference is that of the findings' differences."""
    probs, positives, raters = chest()
    worse = np.clip(probs + 0.2, 0, 1)
    a, b = (
        rw.evaluate_multilabel(p, positives, raters, metrics="brier", resamples=200)
        for p in (probs, worse)
    )
    whole = rw.compare({"a": a, "b": b}).difference("brier", "a", "b")
    each = [
        rw.compare({"a": a.findings[name], "b": b.findings[name]}).difference("brier", "a", "b")
        for name in a.findings
    ]
    assert whole.difference == pytest.approx(np.mean([d.difference for d in each]))
    assert whole.high < 0
    other = rw.evaluate_multilabel(
        probs, positives[::-1], raters[::-1], metrics="brier", resamples=200
    )
    with pytest.raises(rw.InvalidInputError, match="other labels"):
        rw.compare({"a": a, "b": other})


def test_sub_groups_of_findings() -> None:
    """Each level of each finding is that of its cases alone, and the mean is their mean."""
    probs, positives, raters = chest()
    side = np.where(np.arange(300) < 120, "left", "right")
    results = rw.evaluate_multilabel(
        probs, positives, raters, metrics="brier", resamples=50, subgroups={"side": side}
    )
    alone = rw.evaluate_multilabel(
        probs[:120], positives[:120], raters[:120], metrics="brier", resamples=0
    )
    left = results.subgroup("side", "left")
    assert left.cases == 120
    assert left.estimates["brier"].value == pytest.approx(alone["brier"].value)
    for name, finding in results.findings.items():
        found = finding.subgroup("side", "left").estimates["brier"].value
        assert found == pytest.approx(alone.findings[name]["brier"].value)
    assert "brier" in left.differences


def test_options_reach_the_findings() -> None:
    """A question and an option of one metric, as in the functions."""
    probs, positives, raters = chest(findings=1)
    labels = rw.Labels.from_counts(np.stack((raters - positives, positives), axis=2)[:, 0])
    found = rw.evaluate_multilabel(
        probs, positives, raters, metrics="ece,robust_ece", resamples=0, question="top_label",
        per="case", options={"robust_ece": {"sigma": 0.03}},
    )  # fmt: skip
    one = probs[:, 0]
    assert found["ece"].value == pytest.approx(rw.ece(one, labels, per="case"))
    expected = rw.robust_ece(one, labels, sigma=0.03, per="case")
    assert found["robust_ece"].value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"raters": np.ones((4, 3), int)}, r"raters: must have the shape of probs, \(4, 2\)"),
        ({"positives": np.full((4, 2), 3)}, "positives: must be between 0 and raters; case 0"),
        ({"names": ["a"]}, "names: must be 2 different names"),
        ({"names": ["a", "a"]}, "names: must be 2 different names"),
        ({"probs": np.full((4, 2), 1.5)}, r"probs: must lie in \[0, 1\]; row 0"),
        ({"probs": np.empty((0, 2))}, "probs: must hold cases and findings"),
        ({"raters": None}, r"or ratings: must be given; got positives alone \(raters=1: one"),
        ({"raters": np.ones(4, int)}, "raters: must be 0-dimensional or 2-dimensional"),
        ({"positives": None, "raters": None}, "or ratings: must be given; got neither"),
        (
            {"positives": None, "raters": None, "ratings": np.ones((4, 3, 2), int)},
            r"ratings: must be \(cases, findings, raters\).*\(4, 2\); got shape \(4, 3, 2\)",
        ),
    ],
)
def test_bad_input(change: dict[str, object], message: str) -> None:
    """Every bad input is named with its rule and its value."""
    given: dict[str, object] = {
        "probs": np.full((4, 2), 0.5),
        "positives": np.ones((4, 2), int),
        "raters": np.ones((4, 2), int),
    }
    with pytest.raises(ValueError, match=message):
        rw.evaluate_multilabel(**{**given, **change})


def test_a_mean_over_findings_is_explained_as_each_of_them() -> None:
    """Errors ask about the finding's probability: nobody is told of the confidence."""
    found = rw.evaluate_multilabel(
        [[0.9, 0.2], [0.4, 0.1], [0.7, 0.6]], [[1, 0], [0, 0], [1, 1]], np.ones((3, 2), int),
        metrics="ece,smooth_ece,brier", resamples=0,
    )  # fmt: skip
    for name, mean in found.items():
        assert "confidence" not in mean.meaning
        assert {each[name].meaning for each in found.findings.values()} == {mean.meaning}


@pytest.mark.parametrize("metric", ["nll", "ranked_log_score"])
def test_a_mean_over_findings_of_which_one_is_infinite(metric: str) -> None:
    """-log 0 = infinity for one finding, so the mean is; that of the other would flatter."""
    probs, positives, raters = np.array([[0.2, 0.0], [0.6, 0.5]]), np.array([[0, 1], [1, 1]]), 1
    results = rw.evaluate_multilabel(
        probs, positives, np.full_like(positives, raters), metrics=[metric, "brier"], resamples=20
    )
    assert results[metric].value is None and results[metric].low is None
    assert "infinite" in (results[metric].undefined or "")
    assert "(in 1 of 2 findings)" in (results[metric].undefined or "")
    assert results.findings["finding 0"][metric].value == pytest.approx(
        -(np.log(0.8) + np.log(0.6)) / 2
    )
    assert results["brier"].value is not None


def test_one_positive_case_does_not_make_a_mean_sure() -> None:
    """Findings that are found without an error, two of them with one positive case each.

    Without that case such a finding has no AUROC, so that no case can be left out; resamples know
    nothing but 1. The interval of the mean is made of those of the findings (Zou 2007). Of an
    average precision over one positive nothing is known: its ends are 0 and 1, and half of it may
    be due to the positive itself, in each of the two.
    """
    said = np.zeros((30, 3), int)
    said[0, 0] = said[1, 1] = 1
    said[5:15, 2] = 1
    probs = np.linspace(0.05, 0.4, 90).reshape(30, 3) + said / 2
    both = "auroc,average_precision"
    found = rw.evaluate_multilabel(probs, said, np.ones_like(said), metrics=both)
    each = list(found.findings.values())
    off = np.linalg.norm([1 - own["auroc"].low for own in each]) / 3
    assert (found["auroc"].value, found["auroc"].high) == (1, 1)
    assert found["auroc"].low == pytest.approx(1 - off) and off > 0.25
    assert [own["average_precision"].low is None for own in each] == [True, True, False]
    known = each[2]["average_precision"].low
    off = (0.5 + 0.5 + np.sqrt(1 + 1 + (1 - known) ** 2)) / 3
    assert found["average_precision"].low == pytest.approx(1 - off)


def test_a_rare_finding_counts_in_the_mean_of_all() -> None:
    """Findings of 40, 30 and 4 in a hundred, 60 cases, calibrated, cases above 0.3 are positive.

    With the error of the mean alone F1 was covered in 78% and the predictive value in 87%, and a
    finding with a single positive left the mean sensitivity without an interval. The truth is by
    quadrature, of the findings that have a value.
    """
    names, random, threshold = ["f1", "ppv", "sensitivity"], np.random.default_rng(85_004), 0.3
    middle, spread = np.array([-0.6, -1.2, -4.0]), 1.5
    nodes = np.linspace(-6, 6, 4001)
    p = 1 / (1 + np.exp(-(middle + spread * nodes[:, None])))
    mass = np.exp(-(nodes**2) / 2)[:, None] / np.exp(-(nodes**2) / 2).sum()
    hits, called, common = (
        (mass * each).sum(axis=0) for each in (p * (p >= threshold), 1.0 * (p >= threshold), p)
    )
    truth = [2 * hits / (called + common), hits / called, hits / common]
    held = []
    for _ in range(80):
        probs = 1 / (1 + np.exp(-(middle + spread * random.normal(size=(60, 3)))))
        said = (random.random((60, 3)) < probs).astype(int)
        results = rw.evaluate_multilabel(
            probs, said, raters=1, metrics=names, resamples=2, threshold=threshold
        )
        above, there = (probs >= threshold).any(axis=0), said.any(axis=0)
        having = zip(names, truth, (above | there, above, there), strict=True)
        held.append([results[n].low <= t[some].mean() <= results[n].high for n, t, some in having])
    assert np.mean(held, axis=0).min() >= 0.93


def test_few_negatives_of_a_finding_count_as_few_positives_do() -> None:
    """The area is the same when what is positive and what is negative change places."""
    random = np.random.default_rng(85_006)
    logit = random.normal(size=(400, 3)) + np.array([0.5, 0.0, 5.0])
    said = (random.random((400, 3)) < 1 / (1 + np.exp(-logit))).astype(int)
    probs = 1 / (1 + np.exp(-logit - random.normal(size=(400, 3))))
    assert 1 < 400 - said[:, 2].sum() < 12 and said.sum(axis=0).min() > 100
    once, turned = (
        rw.evaluate_multilabel(p, y, raters=1, metrics="auroc", resamples=2)["auroc"]
        for p, y in ((probs, said), (1 - probs, 1 - said))
    )
    assert turned.value == pytest.approx(once.value)
    assert (turned.low, turned.high) == pytest.approx((once.low, once.high), abs=1e-3)


def test_a_finding_with_one_positive_may_have_any_sensitivity() -> None:
    """It has no interval by itself, and counts as 0 to 1 in that of the mean (Zou 2007)."""
    said = np.zeros((30, 2), int)
    said[0, 0], said[5:15, 1] = 1, 1
    probs = np.where(said == 1, 0.7, 0.2)
    probs[5, 1] = 0.4
    found = rw.evaluate_multilabel(probs, said, np.ones_like(said), metrics="sensitivity")
    one, ten = (own["sensitivity"] for own in found.findings.values())
    assert (one.value, one.low, ten.value) == (1, None, 0.9)
    assert ten.low is not None
    assert found["sensitivity"].value == 0.95
    assert found["sensitivity"].low == pytest.approx(0.95 - np.hypot(1, 0.9 - ten.low) / 2)


def test_one_answer_of_each_case_needs_no_table_of_raters() -> None:
    """`raters=1` is one rater of everything; Brier's by hand, (0.01 + 0.04 + 0.09 + 0.16) / 4."""
    probs, said = [[0.1, 0.8], [0.7, 0.4]], [[0, 1], [1, 0]]
    found = rw.evaluate_multilabel(probs, said, raters=1, metrics="brier", resamples=0)
    assert found["brier"].value == pytest.approx(0.075)


def test_the_mean_precision_of_rare_findings_is_covered() -> None:
    """14 findings that one in ten has, 60 cases, calibrated: average precision is too high.

    With the error of the mean alone the interval held the truth in 82%, always above it.
    """
    random, name = np.random.default_rng(85_003), "average_precision"

    def drawn(cases: int) -> tuple[np.ndarray, np.ndarray]:
        probs = 1 / (1 + np.exp(2.9 - 1.5 * random.normal(size=(cases, 14))))
        return probs, (random.random((cases, 14)) < probs).astype(int)

    probs, said = drawn(100_000)
    found = said[np.argsort(-probs[:, 0]), 0]
    truth = (np.cumsum(found) / np.arange(1, len(found) + 1))[found == 1].mean()
    held = []
    for _ in range(60):
        probs, said = drawn(60)
        some = said.any(axis=0)
        results = rw.evaluate_multilabel(
            probs[:, some], said[:, some], raters=1, metrics=[name], resamples=2
        )
        held.append(results[name].low <= truth <= results[name].high)
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("place", [0, -1])
def test_a_case_that_nobody_rated_for_a_finding_may_be_the_last(place: int) -> None:
    """Wherever it stands among the cases, the finding has the interval of those that were rated."""
    random = np.random.default_rng(0)
    p, said = random.random((40, 2)), random.integers(0, 3, (40, 2))
    raters = np.full((40, 2), 2)
    raters[place, 1] = said[place, 1] = 0
    found = rw.evaluate_multilabel(
        p, said, raters, ["a", "b"], "auccc,auroc,brier", resamples=20, on_unrated="drop"
    ).findings["b"]
    rated = raters[:, 1] > 0
    labels = rw.Labels.from_counts(np.stack([2 - said[rated, 1], said[rated, 1]], axis=1))
    alone = rw.evaluate(p[rated, 1], labels, "auroc,brier", resamples=20)
    assert found["auccc"].low is not None
    for name in ("auroc", "brier"):
        assert found[name].value == pytest.approx(alone[name].value, abs=1e-12)
        assert found[name].low == pytest.approx(alone[name].low, abs=1e-9)


def test_a_finding_that_one_case_alone_was_rated_for() -> None:
    """It has values and no intervals; by hand, (0.2² + 0.8²)/2 = 0.34."""
    found = rw.evaluate_multilabel(
        [[0.2], [0.7]], [[1], [0]], [[2], [0]], ["a"], on_unrated="drop", on_single="drop"
    ).findings["a"]
    assert found["brier"].value == pytest.approx(0.34)
    assert found["brier"].low is None

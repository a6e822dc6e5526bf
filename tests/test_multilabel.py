"""Multi-label tasks: every finding by itself, and the mean over the findings."""

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
    assert list(results) == ["a", "b", "c"]
    expected = rw.ece(probs[:, 1], labels, question="positive")
    assert results["b"]["ece"].value == pytest.approx(expected, abs=1e-12)
    assert results["b"]["brier"].value == pytest.approx(rw.brier(probs[:, 1], labels), abs=1e-12)


def test_macro_is_the_mean() -> None:
    """Macro values are plain means over the findings."""
    probs, positives, raters = chest()
    results = rw.evaluate_multilabel(probs, positives, raters, resamples=0)
    for name, macro in results.macro.items():
        values = [finding[name].value for finding in results.values()]
        assert macro.value == pytest.approx(np.mean(values), abs=1e-12), name


def test_one_finding_copied_has_the_interval_of_the_one() -> None:
    """Findings are resampled together: the mean of copies is as uncertain as one of them."""
    probs, positives, raters = (np.repeat(a[:, :1], 4, axis=1) for a in chest())
    results = rw.evaluate_multilabel(
        probs, positives, raters, metrics="brier,ece,auccc", resamples=200
    )
    for name in ("brier", "auccc", "ece"):
        one, macro = results["finding 0"][name], results.macro[name]
        assert macro.low == pytest.approx(one.low, abs=1e-9), name
        assert macro.high == pytest.approx(one.high, abs=1e-9), name


def test_independent_findings_make_the_mean_surer() -> None:
    """The standard error of a mean of 9 independent findings is a third of that of one."""
    probs, positives, raters = chest(findings=9)
    results = rw.evaluate_multilabel(probs, positives, raters, metrics="brier", resamples=400)
    widths = [r["brier"].high - r["brier"].low for r in results.values()]
    macro = results.macro["brier"]
    assert (macro.high - macro.low) / np.mean(widths) == pytest.approx(1 / 3, abs=0.07)


def test_unrated_findings() -> None:
    """A finding that nobody rated in a case is an error, or left out there and counted."""
    probs, positives, raters = chest()
    positives[5, 2] = raters[5, 2] = 0
    with pytest.raises(ValueError, match="every case needs a rating of effusion; 1 have none"):
        rw.evaluate_multilabel(probs, positives, raters, names=["a", "b", "effusion"])
    results = rw.evaluate_multilabel(
        probs, positives, raters, on_unrated="drop", metrics="brier", resamples=50
    )
    assert results["finding 2"].data["dropped"] == {"unrated": 1}
    assert results["finding 2"].data["cases"] == 299
    assert results["finding 0"].data["dropped"] == {}


def test_a_metric_undefined_for_one_finding() -> None:
    """The macro mean runs over the findings where the metric is defined, and counts the others."""
    probs, positives, raters = chest()
    probs[:, 0], positives[:, 0] = 0.1, 0
    results = rw.evaluate_multilabel(probs, positives, raters, metrics="auccc", resamples=50)
    assert results["finding 0"]["auccc"].value is None
    others = [results[f"finding {i}"]["auccc"].value for i in (1, 2)]
    assert results.macro["auccc"].value == pytest.approx(np.mean(others))
    assert results.macro["auccc"].dropped == 1


def test_results_become_plain_values() -> None:
    """to_dict holds findings and macro, each with the schema of Results."""
    probs, positives, raters = chest(50, 2)
    content = rw.evaluate_multilabel(
        probs, positives, raters, metrics="brier", resamples=0
    ).to_dict()
    assert set(content["findings"]) == {"finding 0", "finding 1"}
    assert content["macro"]["schema_version"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"raters": np.ones((4, 3), int)}, r"raters: must have the shape of probs, \(4, 2\)"),
        ({"positives": np.full((4, 2), 3)}, "positives: must be between 0 and raters; case 0"),
        ({"names": ["a"]}, "names: must be 2 different names"),
        ({"names": ["a", "a"]}, "names: must be 2 different names"),
        ({"probs": np.full((4, 2), 1.5)}, r"probs: must lie in \[0, 1\]; row 0"),
        ({"probs": np.empty((0, 2))}, "probs: must hold cases and findings"),
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

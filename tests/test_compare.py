"""Paired comparison of models on the same cases."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.cli import app
from raterwise.errors import InvalidInputError
from raterwise.inference.differences import p_value
from raterwise.inference.draws import multiplicities
from raterwise.inference.paired import differences
from raterwise.labels import Labels
from raterwise.results import Estimate, Results
from strategies import OUTSIDE, mixture


def three_models(cases: int = 600, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The truth, an over-confident copy of it, and the truth with noise; labels drawn from it."""
    random = np.random.default_rng(seed)
    truth = random.beta(1, 1, cases)
    y = (random.random(cases) < truth).astype(int)
    logit = np.log(truth / (1 - truth))
    noisy = 1 / (1 + np.exp(-(logit + random.normal(0, 1, cases))))
    sharp = 1 / (1 + np.exp(-3 * logit))
    return {"true": truth, "sharp": sharp, "noisy": noisy}, y


@pytest.mark.parametrize(
    ("ends", "resamples", "p"),
    [
        ((0.2, 0.1, 0.5), None, 2 * stats.norm.sf(2 * 1.959964)),  # twice as far as the lower end
        ((-0.2, -0.5, -0.1), None, 2 * stats.norm.sf(2 * 1.959964)),
        ((0.2, 0.1, 0.5), 99, 2 / 100),  # no less than 99 resamples can show
        ((0.1, -0.1, 0.5), 99, 2 * stats.norm.sf(1.959964 / 2)),
        ((0.2, 0.2, 0.5), 99, 2 / 100),
        ((0.0, 0.0, 0.0), 99, 1.0),
    ],
)
def test_p_is_that_of_the_end_towards_zero(
    ends: tuple[float, float, float], resamples: int | None, p: float
) -> None:
    """2 (1 - Φ(1.96 |gap| / h)), h the length of the interval towards 0."""
    assert p_value(*ends, level=0.95, resamples=resamples) == pytest.approx(p, rel=1e-5)


def test_differences_are_those_of_the_values() -> None:
    """first minus second, of the values that `evaluate` reports."""
    models, y = three_models()
    found = rw.compare(models, y, "brier,ece,auccc", resamples=120)
    for metric in ("brier", "ece", "auccc"):
        a, b = (found.models[name][metric].value for name in ("true", "noisy"))
        assert found.difference(metric, "true", "noisy").difference == pytest.approx(a - b)


def test_resamples_that_no_adjusted_p_can_be_clear_with_are_told() -> None:
    """By hand: 3 pairs have at least 3 · 2 / (B + 1), 6 / 101 = 0.059 of 100 and 0.05 of 119."""
    models, y = three_models()
    told = (
        "100 are too few for 3 pairs of models: the adjusted p .* below 0.059, .* 119 are enough "
        "to reach 0.05$"
    )
    with pytest.warns(UserWarning, match=told):
        found = rw.compare(models, y, "ece", resamples=100)
    apart = found.difference("ece", "true", "sharp")
    assert apart.high < 0 and apart.adjusted_p_value == pytest.approx(6 / 101)
    found = rw.compare(models, y, "ece", resamples=119)  # without a warning
    assert found.difference("ece", "true", "sharp").adjusted_p_value == pytest.approx(0.05)
    rw.compare(models, y, "brier", resamples=20)  # of no error: p is not made of resamples alone
    alike = {"one": models["true"], "other": models["true"]}
    rw.compare(alike, y, "ece", resamples=20)  # no interval excludes 0


@pytest.mark.parametrize("unit", ["raters", "both"])
def test_metrics_without_a_value_without_a_rater_are_named(unit: Any) -> None:
    """The epistemic loss needs two raters, and has none of one: the other metric is compared."""
    random = np.random.default_rng(3)
    truth = random.random(60)
    labels = Labels.from_ratings((random.random((60, 2)) < truth[:, None]).astype(int))
    models = {"one": truth, "other": truth**2}
    with pytest.warns(UserWarning, match="compared where a model has no interval: epistemic_loss$"):
        found = rw.compare(models, labels, "epistemic_loss,brier", resamples=40, unit=unit)
    assert [d.metric for d in found.differences] == ["brier"]


def test_pairing_makes_the_interval_shorter() -> None:
    """The standard error of a paired mean difference is that of the case-wise differences."""
    models, y = three_models()
    found = rw.compare(models, y, "brier", resamples=1000)
    each = (models["true"] - y) ** 2 - (models["noisy"] - y) ** 2
    error = each.std() / np.sqrt(len(each))
    paired = found.difference("brier", "true", "noisy")
    assert (paired.high - paired.low) / (2 * 1.96) == pytest.approx(error, rel=0.1)
    assert paired.low == pytest.approx(each.mean() - 1.96 * error, abs=0.2 * error)


def test_a_model_and_itself_do_not_differ() -> None:
    """Two equal models differ by nothing: the interval is [0, 0] and p is 1."""
    models, y = three_models(200)
    found = rw.compare({"a": models["true"], "b": models["true"]}, y, "nll", resamples=50)
    same = found.difference("nll", "a", "b")
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    assert found.ranking["nll"] == {"a": 0.5, "b": 0.5}


def test_the_better_model_wins() -> None:
    """The true probabilities beat a noisy copy in nearly every resample, and p says so."""
    models, y = three_models(2000)
    found = rw.compare(models, y, "brier,nll", resamples=200)
    for metric in ("brier", "nll"):
        best = found.difference(metric, "true", "sharp")
        assert best.high < 0
        assert best.adjusted_p_value < 0.05
        assert found.ranking[metric]["true"] > 0.9


def test_holm_by_hand() -> None:
    """Holm's adjustment of .01, .04, .03: 3·.01, then 2·.03, then the same again."""
    from raterwise.inference.differences import holm

    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_p_values_are_uniform_under_the_null() -> None:
    """Models that differ by symmetric noise alone are called different about 5 % of the time."""
    rejected = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        truth = random.beta(2, 2, 150)
        y = (random.random(150) < truth).astype(int)
        models = {
            name: np.clip(truth + random.normal(0, 0.15, 150), 0.01, 0.99) for name in ("a", "b")
        }
        found = rw.compare(models, y, "brier", resamples=199, seed=seed)
        rejected += found.difference("brier", "a", "b").p_value <= 0.05
    assert 0 <= rejected <= 13  # 5 ± 3.5 standard deviations of 2.2


def test_beliefs_are_compared_by_what_they_believe() -> None:
    """A point and a Dirichlet of the same mean differ in predicted disagreement alone."""
    random = np.random.default_rng(0)
    f = random.dirichlet([2, 2], 400)
    q = np.array([random.dirichlet(2 * p) for p in f])
    labels = rw.Labels.from_counts([random.multinomial(4, p) for p in q])
    models = {"point": rw.PointBelief(f), "dirichlet": rw.DirichletBelief(f, np.full(400, 2.0))}
    found = rw.compare(models, labels, "brier,disagreement_loss,posterior_gain", resamples=200)
    assert found.difference("brier", "point", "dirichlet").difference == pytest.approx(0, abs=1e-12)
    assert found.difference("disagreement_loss", "point", "dirichlet").low > 0
    assert found.models["point"]["posterior_gain"].value == pytest.approx(0, abs=1e-12)
    assert found.models["dirichlet"]["posterior_gain"].low > 0


def test_to_dict_is_plain() -> None:
    """A comparison becomes plain values, with what its models share under the keys of results."""
    models, y = three_models(100)
    content = rw.compare(models, y, "brier", resamples=20, seed=3).to_dict()
    assert set(content) == {
        *("schema_version", "models", "differences", "ranking"),
        *("data", "options", "warnings", "versions", "provenance"),
    }
    assert len(content["differences"]) == 3
    assert content["data"]["cases"] == 100 and content["options"]["seed"] == 3
    assert content["versions"]["numpy"] == np.__version__
    assert content["provenance"]["call"] == "raterwise.compare"


def test_comparisons_of_before_are_read(tmp_path: Path) -> None:
    """A file without the keys of all models together, as it was written until they came."""
    models, y = three_models(60)
    found = rw.compare(models, y, "brier", resamples=20)
    old = {"schema_version", "models", "differences", "ranking"}
    content = {key: value for key, value in found.to_dict().items() if key in old}
    (tmp_path / "old.json").write_text(json.dumps(content), encoding="utf-8")
    read = rw.Comparison.from_json(tmp_path / "old.json")
    assert read.differences == found.differences and read.provenance == {}


def test_bad_input() -> None:
    """One model, one resample or an unknown pair is an error."""
    models, y = three_models(100)
    with pytest.raises(ValueError, match="models: must be at least two; got 1"):
        rw.compare({"a": models["true"]}, y)
    with pytest.raises(ValueError, match="resamples: must be at least 2 to compare; got 0"):
        rw.compare(models, y, resamples=0)
    undefined = rw.compare(models, y, "epistemic_loss", resamples=20)  # which needs two raters
    assert undefined.differences == ()
    found = rw.compare(models, y, "brier", resamples=20)
    with pytest.raises(ValueError, match="no difference of 'brier' between 'noisy' and 'true'"):
        found.difference("brier", "noisy", "true")


def test_the_p_value_and_the_interval_agree() -> None:
    """An interval of level 1 - p just reaches 0: where p < 0.05 the 95 % interval excludes 0."""
    models, y = three_models(300, seed=3)
    for level in (0.5, 0.8, 0.95):
        found = rw.compare(models, y, "brier,ece,calibration_error", resamples=999, level=level)
        for each in found.differences:
            excludes = each.low > 0 or each.high < 0
            if abs(each.p_value - (1 - level)) > 0.05:  # beyond the Student expansion and ties
                assert excludes == (each.p_value < 1 - level), each


# From results ------------------------------------------------------------------------------------

FROM_ALL_CASES = {
    *("adaptive_ece", "ece_sweep", "dispersion_loss", "refinement_loss", "grouping_loss"),
}
"""Their bins, or the spread of their resamples, depend on every case a little."""


def rated_cases(cases: int = 260, seed: int = 4) -> tuple[dict[str, np.ndarray], rw.Labels]:
    """Two models of three classes, and the labels of two to four raters per case."""
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.ones(3), cases)
    counts = np.stack([random.multinomial(random.integers(2, 5), row) for row in truth])
    sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    noisy = truth * random.gamma(5, size=truth.shape)
    return {"sharp": sharp, "noisy": noisy / noisy.sum(1, keepdims=True)}, Labels.from_counts(
        counts
    )


def in_files(models: dict[str, Results], folder: Path) -> dict[str, Results]:
    """Return results as their files have them."""
    for name, results in models.items():
        results.to_json(folder / f"{name}.json")
    return {name: Results.from_json(folder / f"{name}.json") for name in models}


@pytest.fixture(name="all_metrics", scope="module")
def every_metric_both_ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, rw.Comparison]:
    """Every row of the catalog, compared on arrays and from files."""
    models, labels = rated_cases()
    beliefs = {name: mixture(p) for name, p in models.items()}
    given = {"groups": np.arange(260) // 2, "on_single": "drop", "resamples": 60, "seed": 3}
    outside = {"sharp": OUTSIDE, "noisy": OUTSIDE[::-1] ** 2}
    results = {
        name: rw.evaluate(b, labels, list(CATALOG), outside=outside[name], **given)
        for name, b in beliefs.items()
    }
    files = in_files(results, tmp_path_factory.mktemp("results"))
    return {
        "arrays": rw.compare(beliefs, labels, list(CATALOG), outside=outside, **given),
        "files": rw.compare(files),
    }


@pytest.mark.parametrize("metric", list(CATALOG))
def test_files_and_arrays_agree(all_metrics: dict[str, rw.Comparison], metric: str) -> None:
    """Every metric has the same difference, interval, p-value and ranking both ways."""
    arrays, files = all_metrics["arrays"], all_metrics["files"]
    assert files.models["sharp"][metric] == arrays.models["sharp"][metric]
    assert arrays.models["sharp"][metric].value is not None
    found = files.difference(metric, "sharp", "noisy")
    assert found == arrays.difference(metric, "sharp", "noisy")
    values = (arrays.models[name][metric].value for name in ("sharp", "noisy"))
    assert found.difference == pytest.approx(np.subtract(*values), abs=1e-12)
    assert files.ranking.get(metric) == arrays.ranking.get(metric)


@pytest.mark.parametrize("patients", [None, np.arange(260) // 4])
def test_resamples_draw_the_same_cases_for_every_model(patients: np.ndarray | None) -> None:
    """Where the one case in which two models differ is not drawn, a metric is the same for both.

    But for metrics of which something is made from all cases at once: bins of equal mass, a
    bandwidth, cells in place of scores. These move alike in nearly all resamples.
    """
    models, labels = rated_cases()
    other = models["sharp"].copy()
    other[17] = other[17][::-1]
    units = 260 if patients is None else 65
    times = multiplicities(units, 80, seed=5)[:, 17 if patients is None else 17 // 4]
    rows = [row for row in CATALOG.values() if not row.needs_belief]
    one, two = (
        rw.evaluate(
            probs, labels, [row.name for row in rows], groups=patients, resamples=80, seed=5
        ).replicates
        for probs in (models["sharp"], other)
    )
    assert len(one) == len(rows) == len(two)
    exact = 0
    for row in rows:
        a, b = one[row.name], two[row.name]
        assert np.corrcoef(a, b)[0, 1] > 0.9, row.name
        if row.exact is None and row.name not in FROM_ALL_CASES:
            assert np.allclose(a[times == 0], b[times == 0], rtol=1e-8, atol=1e-12), row.name
            exact += 1
    assert exact >= 15
    assert not np.isclose(one["brier"], two["brier"])[times > 0].any()


def test_resampled_raters_are_pairs_too() -> None:
    """With raters resampled, what describes the raters alone is the same for both models."""
    random = np.random.default_rng(1)
    ratings = random.integers(0, 2, (80, 5))
    labels = Labels.from_ratings(ratings, num_classes=2)
    models = {name: random.beta(1, 1, 80) for name in ("a", "b")}
    results = {
        name: rw.evaluate(p, labels, "fleiss_kappa,brier", resamples=40, unit="raters")
        for name, p in models.items()
    }
    found = rw.compare(results)
    same = found.difference("fleiss_kappa", "a", "b")
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    others = Labels.from_ratings(ratings[:, ::-1], num_classes=2)
    other = rw.evaluate(models["b"], others, "brier", resamples=40, unit="raters")
    with pytest.raises(ValueError, match="'a' and 'b' have other raters"):
        rw.compare({"a": results["a"], "b": other})


def test_what_makes_results_unlike() -> None:
    """Other cases, labels, weights, patients or options are refused, each by its name."""
    models, labels = rated_cases(60)
    given = {"metrics": "brier", "resamples": 20}
    one = rw.evaluate(models["sharp"], labels, class_names=list("abc"), **given)
    p = models["noisy"]
    turned = Labels.from_counts(labels.counts[::-1])
    named = replace(labels, case_ids=tuple(range(60)))
    backwards = replace(turned, case_ids=tuple(range(60))[::-1])
    unlike = {
        "other numbers of cases: 60 and 59": rw.evaluate(p[1:], labels.take(range(1, 60)), **given),
        "have other labels": rw.evaluate(p, turned, **given),
        "other weights of the cases": rw.evaluate(p, labels, weights=np.full(60, 2.0), **given),
        "have other patients": rw.evaluate(p, labels, groups=np.arange(60) // 2, **given),
        "must share seed; 'a' has 0, 'b' has 7": rw.evaluate(p, labels, seed=7, **given),
        "must share resamples; 'a' has 20, 'b' has 30": rw.evaluate(
            p, labels, "brier", resamples=30
        ),
        "must share level; 'a' has 0.95, 'b' has 0.9": rw.evaluate(p, labels, level=0.9, **given),
        "must share bins; 'a' has 15, 'b' has 10": rw.evaluate(p, labels, bins=10, **given),
        "'a' has a, b, c, 'b' has a, c, b": rw.evaluate(
            p, labels, class_names=list("acb"), **given
        ),
        "'b' holds no resampled values": rw.evaluate(p, labels, "brier", resamples=0),
    }
    for message, other in unlike.items():
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            rw.compare({"a": one, "b": other})
    with pytest.raises(InvalidInputError, match="the same cases in another order"):
        rw.compare(
            {
                "a": rw.evaluate(p, named, **given),
                "b": rw.evaluate(p[::-1], backwards, **given),
            }
        )
    assert rw.compare({"a": one, "b": rw.evaluate(p, named, **given)}).differences


def test_what_results_know_is_not_asked_again(tmp_path: Path) -> None:
    """Arguments that would be left unread are errors; a choice of metrics is none."""
    models, labels = rated_cases(60)
    results = {
        name: rw.evaluate(p, labels, "brier,ece,nll", resamples=20) for name, p in models.items()
    }
    assert [d.metric for d in rw.compare(results, metrics="ece").differences] == ["ece"]
    assert len(rw.compare(results, resamples=20).differences) == 3
    for message, arguments in {
        "labels: is for predictions; results": {"labels": labels},
        "groups: is for predictions; results": {"groups": np.arange(60)},
        "level: the results were made with 0.95, which cannot be changed; got 0.5": {"level": 0.5},
        "bins: the results were made with 15, which cannot be changed; got [0.0, 1.0]": {
            "bins": np.array([0.0, 1.0])
        },
        "metrics: 'sharp' has no auccc; it has brier, ece, nll": {"metrics": "auccc"},
    }.items():
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            rw.compare(results, **arguments)
    with pytest.raises(InvalidInputError, match="'sharp' is the first, 'noisy' the second"):
        rw.compare({"sharp": results["sharp"], "noisy": models["noisy"]}, labels)
    with pytest.raises(InvalidInputError, match="labels: must be given with predictions"):
        rw.compare(models)
    fewer = rw.evaluate(models["noisy"], labels, "ece", resamples=20)
    with pytest.warns(UserWarning, match="not all models have them: brier, nll"):
        found = rw.compare({"sharp": results["sharp"], "noisy": fewer})
    assert [d.metric for d in found.differences] == ["ece"]
    results["noisy"].to_json(tmp_path / "small.json", replicates=False)
    small = Results.from_json(tmp_path / "small.json")
    assert not small.replicates and small["ece"] == results["noisy"]["ece"]
    with pytest.raises(InvalidInputError, match="'noisy' holds no resampled values"):
        rw.compare({"sharp": results["sharp"], "noisy": small})


def test_resampled_values_survive_a_file(tmp_path: Path) -> None:
    """Nine digits, one line a metric, and a resample without a value stays without."""
    drawn = {"ece": np.array([0.123456789, np.nan, 1e-7]), "b<": np.array([1.0, 2.0, 3.0])}
    Results({}, replicates=drawn).to_json(tmp_path / "r.json")
    again = Results.from_json(tmp_path / "r.json")
    for name, values in drawn.items():
        np.testing.assert_array_equal(again.replicates[name], values)
    lines = (tmp_path / "r.json").read_text(encoding="utf-8").splitlines()
    assert '    "ece": [0.123456789, null, 1e-07],' in lines
    whole = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert whole["replicates"]["b<"] == [1.0, 2.0, 3.0]


def test_a_comparison_survives_a_file(tmp_path: Path) -> None:
    """What `to_json` writes, `from_json` reads; other files are refused."""
    models, labels = rated_cases(60)
    found = rw.compare(models, labels, "brier,ece", resamples=20)
    found.to_json(tmp_path / "c.json")
    again = rw.Comparison.from_json(tmp_path / "c.json")
    assert again.to_dict() == found.to_dict()
    assert again.differences == found.differences
    found.models["sharp"].to_json(tmp_path / "r.json")
    with pytest.raises(InvalidInputError, match=r"r\.json: is not a raterwise comparison"):
        rw.Comparison.from_json(tmp_path / "r.json")
    with pytest.raises(
        InvalidInputError, match=r"c\.json: holds what raterwise compare writes, not results"
    ):
        Results.from_json(tmp_path / "c.json")


# Differences of errors that noise pushes up ------------------------------------------------------


def test_differences_of_calibration_errors_contain_the_truth() -> None:
    """A calibrated model has an error of 0, an overconfident one that of its mean gap.

    Ten classes, 300 cases: noise lifts the ECE of the calibrated model by some 0.1 and that of the
    other by next to nothing, so that the resampled differences miss the truth nearly always.
    """

    def gaps(logits: np.ndarray) -> np.ndarray:
        top = logits.argmax(axis=1)[:, None]
        of_top = [np.take_along_axis(softmax(s * logits, axis=1), top, 1) for s in (1, 1.75)]
        return np.asarray(of_top[1] - of_top[0])

    true = -float(gaps(2 * np.random.default_rng(9).normal(size=(200_000, 10))).mean())
    metrics = ("ece", "kde_ece")
    hits, missed = dict.fromkeys(metrics, 0), dict.fromkeys(metrics, 0)
    for seed in range(20):
        random = np.random.default_rng([7, seed])
        logits = 2 * random.normal(size=(300, 10))
        y = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
        probs = {"calibrated": softmax(logits, axis=1), "sharp": softmax(1.75 * logits, axis=1)}
        found = rw.compare(probs, y, metrics, resamples=100, seed=seed)
        for metric in metrics:
            d = found.difference(metric, "calibrated", "sharp")
            hits[metric] += d.low <= true <= d.high
            drawn = [found.models[name].replicates[metric] for name in probs]
            low, high = np.quantile(drawn[0] - drawn[1], [0.025, 0.975])
            missed[metric] += not low <= true <= high
            assert d.debiased is not None and d.low <= d.debiased <= d.high
    for metric in metrics:
        assert hits[metric] >= 16  # of 20 at 95 %: fewer once in 400 runs
        assert missed[metric] >= 10


@pytest.mark.parametrize("metric", [row.name for row in CATALOG.values() if row.error])
def test_an_error_and_itself_do_not_differ(metric: str) -> None:
    """Two equal models have equal errors, whatever the intervals of each look like."""
    models, labels = rated_cases(80)
    belief = mixture(models["sharp"])
    found = rw.compare({"a": belief, "b": belief}, labels, metric, resamples=30)
    same = found.difference(metric, "a", "b")
    assert (same.difference, same.debiased, same.low, same.high, same.p_value) == (0, 0, 0, 0, 1)


def test_the_interval_of_a_difference_by_hand() -> None:
    """Of (0.1, 0.07, 0.16) and (0.05, 0.01, 0.08), unpaired: 0.05 - √.0018 and 0.05 + √.0052.

    A second model that may be perfect, of low 0: its 0.05 and the 0.06 above are added.
    """
    order = np.arange(1000)  # two sets of draws that are uncorrelated
    draws = np.where(order % 2, 1.0, -1.0), np.where(order // 2 % 2, 1.0, -1.0)

    def model(value: float, low: float, high: float, noise: np.ndarray) -> Results:
        found = Estimate("ece", value, low, high, debiased=value, direction="lower")
        options = {"level": 0.95, "resamples": 1000}
        cases = {"fingerprint": {"units": 100}}
        return Results({"ece": found}, cases, options, replicates={"ece": noise})

    first, clear = model(0.1, 0.07, 0.16, draws[0]), model(0.05, 0.01, 0.08, draws[1])
    (found,) = differences({"a": first, "b": clear})
    assert found.low == pytest.approx(0.05 - np.sqrt(0.03**2 + 0.03**2))
    assert found.high == pytest.approx(0.05 + np.sqrt(0.06**2 + 0.04**2))
    (found,) = differences({"a": first, "b": model(0.05, 0.0, 0.08, draws[1])})
    assert found.high == pytest.approx(0.05 + 0.06 + 0.05)
    (paired,) = differences({"a": first, "b": model(0.05, 0.01, 0.08, draws[0] / 3)})
    # Var(x - x/3) / (Var x + Var x/3) = (4/9) / (10/9)
    assert paired.low == pytest.approx(0.05 - np.sqrt(0.4) * np.sqrt(0.03**2 + 0.03**2))


# Command line ------------------------------------------------------------------------------------


def run(*words: str) -> Result:
    """Run the command line within this process."""
    return CliRunner().invoke(app, list(words))


@pytest.fixture(name="made", scope="module")
def folder_of_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models of the same cases as tables and as results; one of them backwards too."""
    folder = tmp_path_factory.mktemp("models")
    models, labels = rated_cases(120)
    rows = [f"n{i},{a},{b},{c}" for i, (a, b, c) in enumerate(labels.counts)]
    text = "\n".join(["case,count_x,count_y,count_z", *rows]) + "\n"
    (folder / "ratings.csv").write_text(text, encoding="utf-8")
    (folder / "other.json").write_text('{"schema_version": 1}', encoding="utf-8")
    for name, probs in {**models, "backwards": models["noisy"]}.items():
        lines = [f"n{i},p{i // 2},{a!r},{b!r},{c!r}" for i, (a, b, c) in enumerate(probs.tolist())]
        lines = lines[::-1] if name == "backwards" else lines
        text = "\n".join(["case,patient,prob_x,prob_y,prob_z", *lines]) + "\n"
        table = folder / f"{name}.csv"
        table.write_text(text, encoding="utf-8")
        ratings = ("--ratings", str(folder / "ratings.csv"), "--group-column", "patient")
        results = ("--out", str(folder / f"{name}.json"))
        done = run("evaluate", str(table), *results, *OPTIONS, *ratings, "-q")
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(name="folder")
def within_the_folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, as the one to work in."""
    monkeypatch.chdir(made)
    return made


OPTIONS = ("--metrics", "brier,ece,calibration_loss,dispersion_loss,auccc", "--resamples", "40")
OF_TABLES = ("--ratings", "ratings.csv", "--group-column", "patient")


def test_compare_from_result_files(folder: Path) -> None:
    """The same differences as from the tables, in every format, and a page with every chart."""
    done = run("compare", "sharp.csv", "noisy.csv", *OPTIONS, *OF_TABLES, "--out", "tables.json")
    assert done.exit_code == 0, done.output
    again = run(
        *("compare", "sharp.json", "noisy.json", "--out", "files.json", "--out", "files.html"),
        *("--csv", "d.csv", "--latex", "d.tex", "--markdown", "d.md"),
    )
    assert again.exit_code == 0, again.output
    *shown, written = again.output.splitlines()
    assert shown == done.output.splitlines()[:-1]
    assert written == "Written: files.json, files.html, d.csv, d.tex, d.md"
    tables, files = (rw.Comparison.from_json(folder / f"{n}.json") for n in ("tables", "files"))
    assert files.differences == tables.differences
    assert files.ranking == tables.ranking
    page = (folder / "files.html").read_text(encoding="utf-8")
    for chart in ("reliability-chart", "ccc-chart", "risk-chart", "map-chart"):
        assert f'id="{chart}"' in page
    assert len((folder / "d.csv").read_text(encoding="utf-8").splitlines()) == 1 + 5
    assert (folder / "d.tex").read_text(encoding="utf-8").startswith("\\begin{tabular}{lcc}")
    assert (folder / "d.md").read_text(encoding="utf-8").startswith("| Metric | sharp | noisy |")
    few = run("compare", "sharp.json", "noisy.json", "--metrics", "ece", "--out", "few.json", "-q")
    assert few.exit_code == 0, few.output
    found = rw.Comparison.from_json(folder / "few.json")
    assert found.differences == tuple(d for d in tables.differences if d.metric == "ece")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sharp.json noisy.csv", "must be all results or all tables; sharp.json is of results"),
        ("sharp.json backwards.json", "the same cases in another order"),
        ("sharp.json noisy.json --ratings ratings.csv", "--ratings: is for tables"),
        ("sharp.json noisy.json --group-column patient", "--group-column: is for tables"),
        ("sharp.json noisy.json --on-single drop", "--on-single: is for tables"),
        ("sharp.json noisy.json --level 0.5", "level: the results were made with 0.95"),
        ("sharp.json noisy.json --metrics nll", "metrics: 'sharp' has no nll"),
        ("sharp.json other.json", "other.json: is not a raterwise result file"),
        ("sharp.json absent.json", "absent.json"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_compare_refuses_of_results(words: str, message: str) -> None:
    """One line that says what is wrong, no traceback, and exit code 2."""
    done = run("compare", *words.split())
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_warnings_say_which_model_they_are_about(tmp_path: Path) -> None:
    """What holds for the cases is said once; what holds for one model is said with its name."""
    random = np.random.default_rng(0)
    p = random.random(60)
    y = (random.random(60) < p).astype(int)
    for name, probs in {"fine": p, "flat": np.full(60, 0.7)}.items():
        rw.evaluate(probs, y, "brier", resamples=50).to_json(tmp_path / f"{name}.json")
    done = run("compare", str(tmp_path / "fine.json"), str(tmp_path / "flat.json"))
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert said.count("warning: one rater per case") == said.count("one rater per case") == 1
    assert "warning: flat: every confidence is 0.7000: they" in said
    assert "fine: " not in said
    models = {n: rw.Results.from_json(tmp_path / f"{n}.json") for n in ("fine", "flat")}
    rw.compare(models).to_html(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<strong>flat: </strong>Every confidence is 0.7000" in page
    assert page.count("<li>One rater per case") == 1


def test_models_that_are_equal_have_no_best(tmp_path: Path) -> None:
    """Their classes are the same, so that their accuracies are in every resample; not Brier."""
    sure = np.tile([0.9, 0.2, 0.7, 0.1], 15)
    for name, probs in {"sure": sure, "blunt": 0.5 + (sure - 0.5) / 2}.items():
        found = rw.evaluate(probs, np.tile([1, 0, 1, 1], 15), "accuracy,brier", resamples=50)
        found.to_json(tmp_path / f"{name}.json")
    done = run("compare", str(tmp_path / "sure.json"), str(tmp_path / "blunt.json"))
    assert done.exit_code == 0, done.output
    rows = [line for line in done.output.splitlines() if "sure - blunt" in line]
    assert rows[0].startswith("Accuracy") and rows[0].split()[-1] == "equal"
    assert rows[1].startswith("Brier") and rows[1].split()[-1].endswith("%)")


def few_positives(positives: int, cases: int = 100) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return one model that finds every positive and one that finds none, and the labels."""
    random = np.random.default_rng(2)
    labels = (np.arange(cases) < positives).astype(int)
    low = random.uniform(0, 0.4, (2, cases))
    return {"all": np.where(labels == 1, 0.9, low[0]), "none": np.minimum(low[1], 0.3)}, labels


@pytest.mark.parametrize("positives", [3, 10])
def test_few_events_that_never_vary_are_no_proof(positives: int) -> None:
    """All found and none found: Newcombe's interval of Clopper and Pearson's, from SciPy."""
    models, labels = few_positives(positives)
    (found,) = rw.compare(models, labels, "sensitivity", resamples=100).differences
    ends = stats.binomtest(positives, positives).proportion_ci(0.95, "exact")
    expected = 1 - np.sqrt(2) * (1 - ends.low)
    assert found.difference == 1 and found.low == pytest.approx(expected, abs=1e-9)
    assert (found.p_value <= 0.05) == (expected > 0) == (positives == 10)


def test_one_positive_says_nothing_of_a_difference() -> None:
    """No interval of either model, so no difference: it was 1 [1, 1] with p = 0."""
    models, labels = few_positives(1)
    told = "not compared where a model has no interval: average_precision, sensitivity"
    with pytest.warns(UserWarning, match=told):
        found = rw.compare(models, labels, "sensitivity,average_precision,auroc", resamples=100)
    (area,) = found.differences
    assert area.metric == "auroc" and area.low < 0 < area.high and area.p_value > 0.05


def test_columns_that_were_not_read_are_told_of_every_file(tmp_path: Path) -> None:
    """What both files have once, under the first one's name; what only the second has, too."""
    lines = [f"n{i},{p},{1 - p},{i % 2},1" for i, p in enumerate((0.25, 0.5, 0.75) * 4)]
    for name, last in (("a", "weight"), ("b", "weight"), ("c", "prob-other")):
        head = f"case,prob_x,prob_y,y,{last}"
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    files = [str(tmp_path / f"{name}.csv") for name in "abc"]
    told = ["--label-column", "y", "--metrics", "brier", "--resamples", "20", "--out"]
    done = CliRunner().invoke(app, ["compare", *files, *told, str(tmp_path / "c.json")])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "a.csv: 'weight' looks like a weight" in said and "b.csv: 'weight'" not in said
    assert said.count("c.csv: 'prob-other' looks like a class and was not used") == 1
    assert "'prob-other'" in (tmp_path / "c.json").read_text(encoding="utf-8")


def test_models_that_decide_alike_are_not_said_to_be_equal(tmp_path: Path) -> None:
    """The same errors in the same cases: [0, 0] is of these cases, and the page says so."""
    random = np.random.default_rng(5)
    one, labels = random.random(60), random.integers(0, 2, 60)
    other = np.where(one > 0.5, 0.5 + (one - 0.5) / 2, one / 2)  # on the same side of 1/2
    found = rw.compare({"one": one, "other": other}, labels, "accuracy,brier", resamples=50)
    same = found.difference("accuracy", "one", "other")
    assert (same.low, same.high, same.p_value) == (0, 0, 1)
    found.to_html(tmp_path / "alike.html")
    words = "Accuracy: [0, 0] means that models are alike on all these cases"
    assert words in (tmp_path / "alike.html").read_text(encoding="utf-8")
    rw.compare({"one": one, "other": one / 2}, labels, "brier").to_html(tmp_path / "apart.html")
    assert "[0, 0]" not in (tmp_path / "apart.html").read_text(encoding="utf-8")


def test_intercepts_of_few_positives_know_of_few_degrees_of_freedom() -> None:
    """Four of sixty positive: the bootstrap's error with 3 / s² degrees of freedom, by hand."""
    random = np.random.default_rng(8)
    x, labels = random.normal(-3, 1, 60), (np.arange(60) % 15 == 0).astype(int)
    models = {name: 1 / (1 + np.exp(-x - random.normal(0, 0.7, 60))) for name in "ab"}
    found = rw.compare(models, labels, "calibration_intercept", resamples=100)
    (made,) = found.differences
    drawn = [found.models[name].replicates["calibration_intercept"] for name in "ab"]
    inflation = found.models["a"].data["resampling"]["inflation"]
    widest = inflation * max(np.nanstd(values) for values in drawn)
    error = inflation * np.nanstd(drawn[0] - drawn[1])
    reach = stats.t.ppf(0.975, 3 / widest**2) * error
    assert 3 / widest**2 < 20
    assert made.low == pytest.approx(made.difference - reach, rel=1e-6)
    assert made.high == pytest.approx(made.difference + reach, rel=1e-6)

"""Sub-groups: metrics within the levels of a variable, and each level against the other cases."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app
from raterwise.errors import InvalidInputError
from raterwise.inference.differences import difference_interval
from raterwise.report import report_html
from raterwise.results import LevelDifference, Results, Subgroup
from raterwise.subgroups.levels import _adjusted, _believable
from raterwise.subgroups.variables import MISSING, variables_of
from strategies import ordinary

HOSTILE = "<script>alert(4)</script>"

# Levels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "levels", "codes"),
    [
        (["B", "A", "B"], ("A", "B"), [1, 0, 1]),
        ([10, 9, 10], ("9", "10"), [1, 0, 1]),
        ([2.0, np.nan, 1.0], ("1", "2", MISSING), [1, 2, 0]),
        ([None, "x", " "], ("x", MISSING), [1, 0, 1]),
        (np.array([True, False, True]), ("False", "True"), [1, 0, 1]),
        (["> 20", "6-10", "< 6"], ("< 6", "6-10", "> 20"), [2, 1, 0]),
        (["b", 1, "a1"], ("b", "1", "a1"), [0, 1, 2]),
    ],
)
def test_levels(values: Any, levels: tuple[str, ...], codes: list[int]) -> None:
    """Words and numbers have an order; what is not known is a level of its own, the last."""
    (variable,) = variables_of({"x": values}, cases=3)
    assert variable.levels == levels
    assert variable.codes.tolist() == codes


class Undecided:
    """What pandas' NA is: neither equal to itself nor not."""

    def __ne__(self, other: object) -> bool:
        """Refuse to say."""
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = None  # type: ignore[assignment]


class Column(list[Any]):
    """What a categorical column of a data frame has: a name, and its categories in order."""

    def __init__(self, values: list[Any], name: str, categories: list[str] | None) -> None:
        super().__init__(values)
        self.name = name
        self.dtype = type("Type", (), {"categories": categories})()


class Frame:
    """What a data frame has: the names of its columns, and each by its name."""

    def __init__(self, **columns: Column) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]


def test_columns_of_a_table() -> None:
    """A data frame, a structured array, or a column; categories keep their order."""
    size = Column(["small", "large", Undecided()], "size", ["small", "middle", "large"])
    (one,) = variables_of(size, cases=3)
    assert (one.name, one.levels) == ("size", ("small", "large", MISSING))
    two = variables_of(Frame(size=size, sex=Column(["f", "m", "f"], "sex", None)), cases=3)
    assert [v.name for v in two] == ["size", "sex"]
    table = np.array([("A", 1), ("B", 2)], dtype=[("scanner", "U1"), ("site", int)])
    assert [v.levels for v in variables_of(table, cases=2)] == [("A", "B"), ("1", "2")]
    (bare,) = variables_of(np.array(["y", "x"]), cases=2)
    assert (bare.name, bare.levels) == ("subgroup", ("x", "y"))


@pytest.mark.parametrize(
    ("subgroups", "message"),
    [
        ({}, "subgroups: must name at least one variable; got none"),
        ({"sex": ["f"]}, r"'sex' must have one value for each of 60 cases; got shape \(1,\)"),
        ({"sex": np.zeros((60, 2))}, r"one value for each of 60 cases; got shape \(60, 2\)"),
        ({"age": np.arange(60) / 7}, "'age' has 60 levels, more than 20; put the numbers into bin"),
        ({"id": [f"p{i}" for i in range(60)]}, "'id' has 60 levels, more than 20; merge the rare"),
    ],
)
def test_what_cannot_be_used(subgroups: Any, message: str) -> None:
    """The message names the variable, the rule and the number."""
    problem = ordinary(60)
    with pytest.raises(InvalidInputError, match=message):
        rw.evaluate(problem.probs, problem.labels, "ece", subgroups=subgroups)


def test_which_metrics() -> None:
    """A short list of those asked for, or those named, which must be among the asked."""
    problem, sex = ordinary(60), {"sex": ["f", "m"] * 30}
    given: dict[str, Any] = {"resamples": 0, "subgroups": sex}

    def made(metrics: Any, chosen: Any = None) -> list[str]:
        found = rw.evaluate(
            problem.probs, problem.labels, metrics, subgroup_metrics=chosen, **given
        )
        assert found.options["subgroup_metrics"] == list(found.subgroups[0].estimates)
        return list(found.subgroups[0].estimates)

    assert set(made("all")) == {"accuracy", "brier", "calibration_error", "ece", "auccc"}
    assert made("mce,ece") == ["ece"]
    assert made("mce,nll") == ["mce", "nll"]
    assert made("mce,ece,nll", "nll, mce") == ["nll", "mce"]
    with pytest.raises(InvalidInputError, match=r"among the metrics evaluated \(ece\); got 'mce'"):
        made("ece", ["mce"])
    with pytest.raises(InvalidInputError, match="subgroup_metrics: needs subgroups"):
        rw.evaluate(problem.probs, problem.labels, "ece", subgroup_metrics="ece")


# Estimates and differences -----------------------------------------------------------------------


def patients_in_both(cases: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Return patients who have cases of every level, in an order that differs by level."""
    random = np.random.default_rng(3)
    return random.integers(0, 40, cases), np.array(["A", "B", "C"])[random.integers(0, 3, cases)]


@pytest.mark.parametrize("with_patients", [False, True])
def test_a_level_is_evaluated_as_if_it_were_alone(with_patients: bool) -> None:
    """The estimates within a level are, to the last digit, those of evaluate on its cases."""
    problem = ordinary(150)
    patients, level = patients_in_both()
    groups = patients if with_patients else None
    metrics = ["accuracy", "brier", "ece", "auccc", "calibration_error"]
    whole = rw.evaluate(
        problem.probs, problem.labels, metrics, groups, resamples=50, subgroups={"scanner": level}
    )
    for name in "ABC":
        rows = level == name
        part = None if groups is None else patients[rows]
        alone = rw.evaluate(
            problem.probs[rows], problem.labels.take(rows), metrics, part, resamples=50
        )
        found = whole.subgroup("scanner", name)
        assert found.cases == rows.sum()
        assert found.patients == (len(np.unique(patients[rows])) if with_patients else None)
        assert found.estimates == dict(alone)


def test_accuracy_differences_by_hand() -> None:
    """3 of 4, 1 of 4 and 2 of 4 right: level minus the eight others is 3/8, -3/8 and 0."""
    right = np.array([1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0], bool)
    probs = np.where(right[:, None], [0.8, 0.2], [0.2, 0.8])
    level = np.repeat(["A", "B", "C"], 4)
    found = rw.evaluate(probs, np.zeros(12, int), "accuracy", resamples=0, subgroups=level)
    assert [s.estimates["accuracy"].value for s in found.subgroups] == [0.75, 0.25, 0.5]
    gaps = [s.differences["accuracy"].difference for s in found.subgroups]
    assert gaps == pytest.approx([3 / 8, -3 / 8, 0])
    assert all(s.differences["accuracy"].p_value is None for s in found.subgroups)


def test_the_interval_of_a_difference_is_newcombes() -> None:
    """56 of 70 against 48 of 80: 0.0524 to 0.3339 (Newcombe 1998, Table II, method 10)."""

    def wilson(hits: int, of: int) -> tuple[float, float, float]:
        ends = binomtest(hits, of).proportion_ci(method="wilson")
        return hits / of, ends.low, ends.high

    low, high = difference_interval(wilson(56, 70), wilson(48, 80))
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)
    # What moves up and down together cancels: with r = 1 the ends differ by the ends' difference.
    assert difference_interval((5, 4, 7), (2, 1.5, 2.5), 1.0) == pytest.approx((2.5, 4.5))


def test_p_values_are_adjusted_over_the_levels() -> None:
    """By permutation, never below the p of a level alone; of two, one is the other's mirror."""
    problem = ordinary(240)
    right = problem.probs.argmax(axis=1) == problem.labels.majority()
    three = np.where(
        right & (np.arange(240) % 3 > 0), "A", np.array(["B", "C"])[np.arange(240) % 2]
    )
    found = rw.evaluate(problem.probs, problem.labels, "accuracy", resamples=100, subgroups=three)
    made = [s.differences["accuracy"] for s in found.subgroups]
    assert found.data["comparisons"] == 3
    first = min(made, key=lambda d: d.p_value)
    assert first.adjusted_p_value == pytest.approx(first.p_value)  # A is of right cases alone
    for d in made:
        assert d.p_value <= d.adjusted_p_value <= 1
        assert (d.p_value < 0.05) == (not d.low <= 0 <= d.high)
    two = np.where(three == "A", "A", "B")
    pair = rw.evaluate(problem.probs, problem.labels, "accuracy", resamples=100, subgroups=two)
    a, b = (s.differences["accuracy"] for s in pair.subgroups)
    assert a.p_value == b.p_value and a.adjusted_p_value == b.adjusted_p_value
    assert (a.difference, a.low, a.high) == pytest.approx((-b.difference, -b.high, -b.low))


def test_comparisons_are_those_that_were_tested() -> None:
    """A level of one patient is compared without a test: of three levels two count."""
    problem = ordinary(120)
    patients = np.arange(120) // 2
    level = np.where(patients == 0, "rare", np.array(["A", "B"])[patients % 2])
    found = rw.evaluate(
        problem.probs, problem.labels, "accuracy", patients, resamples=50, subgroups=level
    )
    assert found.subgroups[-1].differences["accuracy"].adjusted_p_value is None
    assert found.data["comparisons"] == 2
    assert "Of 2 comparisons between levels" in found.to_text()


def test_a_metric_that_a_level_lacks_is_adjusted_with_the_others() -> None:
    """The AUROC has no value in a level without positives; max-T over both metrics by a loop."""
    random = np.random.default_rng(7)
    p = random.random(90)
    y = (random.random(90) < p).astype(int)
    level = np.array(["A"] * 60 + ["B"] * 26 + ["C"] * 4)
    y[-4:] = 0
    y[60:86] = (p[60:86] + random.normal(0, 0.9, 26) > 0.5).astype(int)

    def separation(rows: Any) -> float:
        ones, zeros = p[rows & (y == 1)], p[rows & (y == 0)]
        if not (len(ones) and len(zeros)):
            return float("nan")
        return float(np.mean(ones[:, None] > zeros))

    def right(rows: Any) -> float:
        return float(np.mean((p > 0.5)[rows] == y[rows]))

    gaps = np.empty((2000, 3, 2))
    for i in range(len(gaps)):
        codes = level if i == 0 else random.permutation(level)
        for j, name in enumerate("ABC"):
            inside = codes == name
            gaps[i, j] = [f(inside) - f(~inside) for f in (right, separation)]
    t = np.nan_to_num(np.abs(gaps - np.nanmean(gaps, axis=0)) / np.nanstd(gaps, axis=0))
    found = rw.evaluate(p, y, ["accuracy", "auroc"], resamples=100, subgroups=level,
                        subgroup_metrics="accuracy,auroc")  # fmt: skip
    assert "auroc" not in found.subgroups[2].differences
    worst, metric = np.unravel_index(t[0].argmax(), t[0].shape)
    assert metric == 1  # the largest of all, which is judged against all
    d = found.subgroups[worst].differences["auroc"]
    expected = np.mean(t.max(axis=(1, 2)) >= t[0].max() - 1e-9)
    assert d.adjusted_p_value == pytest.approx(expected, abs=0.03)
    assert d.p_value is not None and expected > 2 * d.p_value + 0.04  # Holm's


def test_a_level_of_one_patient_is_not_compared_by_what_chance_adds() -> None:
    """One patient has no interval: said, not tested, and no ECE less chance to set against others.

    All are calibrated: the ECE of one case is |y - p|, which is chance alone.
    """
    random = np.random.default_rng(16)
    p = random.random(120)
    y = (random.random(120) < p).astype(int)
    level = np.array(["A"] * 80 + ["B"] * 37 + ["C"] * 3)
    patients = np.append(np.arange(117), [117] * 3)
    found = rw.evaluate(
        p, y, ["brier", "ece"], groups=patients, resamples=100, subgroups={"site": level}
    )
    last = found.subgroups[2]
    assert last.estimates["ece"].value is not None and last.estimates["ece"].low is None
    assert "ece" not in last.differences
    d = last.differences["brier"]
    loss = (y - p) ** 2
    assert d.difference == pytest.approx(loss[-3:].mean() - loss[:-3].mean())
    assert (d.low, d.p_value, d.adjusted_p_value) == (None, None, None)
    said = "site = C: only 3 cases of 1 patient; no interval, and no test against the rest"
    assert said in found.warnings
    plain = rw.evaluate(p, y, "ece", resamples=0, subgroups={"site": level}).subgroups[2]
    assert "ece" in plain.differences  # neither side has chance taken out


def test_levels_are_traded_between_patients() -> None:
    """Eight patients whose cases are right or wrong alike: 3 of 4 against 2 of 4 is nothing.

    Of the 70 ways to choose four of eight patients, five of them right, every one is as extreme or
    more; by case the difference of 75 % and 50 % of a hundred would be beyond doubt.
    """
    patients = np.repeat(np.arange(8), 25)
    right = np.isin(patients, [0, 1, 2, 4, 5])
    probs = np.where(right[:, None], [0.8, 0.2], [0.3, 0.7])
    side = np.where(patients < 4, "left", "right")

    def adjusted(groups: Any) -> float:
        found = rw.evaluate(
            probs, np.zeros(200, int), "accuracy", groups=groups, resamples=100, subgroups=side
        )
        p = found.subgroups[0].differences["accuracy"].adjusted_p_value
        assert p is not None
        return p

    assert adjusted(patients) > 0.3
    assert adjusted(None) < 0.05


def test_a_level_that_does_not_vary_proves_little() -> None:
    """Five of five right against 80 of 100 is luck (0.8⁵ = 0.33); none of forty is not."""
    right = np.arange(100) % 5 > 0

    def difference(level: list[bool]) -> Any:
        all_right = np.r_[level, right]
        probs = np.where(all_right[:, None], [0.9, 0.1], [0.1, 0.9])
        names = ["small"] * len(level) + ["large"] * 100
        labels = np.zeros(len(probs), int)
        found = rw.evaluate(probs, labels, "accuracy", resamples=200, subgroups=names)
        return found.subgroup("subgroup", "small").differences["accuracy"]

    lucky = difference([True] * 5)
    assert lucky.difference == pytest.approx(0.2) and lucky.low < 0 and lucky.p_value > 0.1
    # The noise of 5 of the others beside that of 100: 1.96 sqrt(0.16 / 5 + 0.16 / 100) = 0.36.
    assert (lucky.high - lucky.low) / 2 == pytest.approx(0.36, rel=0.15)
    assert difference([False] * 40).p_value < 0.01


def cases(random: Any, number: int, sharpness: float) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and label histograms of three raters; sharpness 1 is calibrated."""
    truth = random.dirichlet(np.ones(3), number)
    probs = truth**sharpness / (truth**sharpness).sum(axis=1, keepdims=True)
    return probs, random.multinomial(3, truth)


def of_two_levels(seed: int, small: float, metrics: str) -> Subgroup:
    """Return the smaller of two levels, 60 and 240 cases; the larger is calibrated."""
    random = np.random.default_rng(seed)
    parts = [cases(random, 60, small), cases(random, 240, 1.0)]
    probs, counts = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    labels = rw.Labels.from_counts(counts)
    level = ["small"] * 60 + ["large"] * 240
    found = rw.evaluate(probs, labels, metrics, resamples=100, subgroups=level)
    return found.subgroup("subgroup", "small")


def test_a_miscalibrated_level_is_found_and_a_small_one_is_not_blamed() -> None:
    """Sharpened cubes of the truth are over-confident; few cases alone are no difference."""
    bad = [of_two_levels(seed, 3.0, "ece").differences["ece"] for seed in range(12)]
    assert sum(d.adjusted_p_value < 0.05 for d in bad) >= 10
    assert all(d.difference > 0.1 for d in bad)
    fine = [of_two_levels(seed, 1.0, "ece") for seed in range(12)]
    assert sum(s.differences["ece"].adjusted_p_value < 0.05 for s in fine) <= 1
    # The plain value does blame the small level: chance alone makes it what it is.
    plain = np.mean([s.estimates["ece"].value for s in fine])
    assert plain > 0.05
    assert abs(np.mean([s.differences["ece"].difference for s in fine])) < plain / 3


@pytest.fixture
def few_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all the time goes to permutations of levels, which intervals do not rest on."""
    monkeypatch.setattr("raterwise.subgroups.levels.PERMUTATIONS", 9)


@pytest.mark.usefixtures("few_permutations")
def test_coverage_of_the_difference() -> None:
    """The true difference of two accuracies, 0, is within the 95 % interval about 95 times."""
    made = [of_two_levels(seed, 2.0, "accuracy").differences["accuracy"] for seed in range(120)]
    covered = np.mean([d.low <= 0 <= d.high for d in made])
    assert 0.89 <= covered <= 0.99  # three standard errors


@pytest.mark.usefixtures("few_permutations")
def test_patients_on_both_sides_are_resampled_together() -> None:
    """A patient who is easy on the left is easy on the right: the difference is less noisy."""
    gaps, widths, apart = [], [], []
    for seed in range(60):
        random = np.random.default_rng(seed)
        patients = np.repeat(np.arange(60), 4)
        right = random.random(240) < np.repeat(random.random(60) < 0.6, 4) * 0.9 + 0.05
        probs = np.where(right[:, None], [0.9, 0.1], [0.1, 0.9])
        side = np.tile(["left", "right"], 120)
        given = (probs, np.zeros(240, int), "accuracy", patients)
        found = rw.evaluate(*given, resamples=100, subgroups=side)
        d = found.subgroups[0].differences["accuracy"]
        gaps.append(d.difference)
        widths.append(d.high - d.low)
        ends = [
            (e.value, e.low, e.high) for e in (s.estimates["accuracy"] for s in found.subgroups)
        ]
        low, high = difference_interval(*ends)
        apart.append(high - low)
    needed = 2 * 1.96 * np.std(gaps)
    assert np.mean(widths) == pytest.approx(needed, rel=0.25)
    assert np.mean(apart) > 1.8 * needed
    assert np.mean([abs(gap) <= width / 2 for gap, width in zip(gaps, widths, strict=True)]) > 0.87


def test_cases_left_out_take_their_level_along() -> None:
    """Weight 0 and nobody's rating: the rest is evaluated as if those had never been there."""
    problem = ordinary(90)
    counts = problem.counts.copy()
    counts[::9] = 0
    weights = np.where(np.arange(90) % 7 == 0, 0.0, 1.0)
    patients, level = np.arange(90) // 3, np.array(["A", "B"])[np.arange(90) % 2]
    found = rw.evaluate(
        problem.probs, rw.Labels.from_counts(counts), "brier", patients, resamples=50,
        weights=weights, on_unrated="drop", subgroups=level,
    )  # fmt: skip
    rows = (counts.sum(axis=1) > 0) & (weights > 0)
    same = rw.evaluate(
        problem.probs[rows], rw.Labels.from_counts(counts[rows]), "brier", patients[rows],
        resamples=50, weights=weights[rows], subgroups=level[rows],
    )  # fmt: skip
    assert found.subgroups == same.subgroups
    # Patients who are gone are not resampled either.
    assert (found["brier"].low, found["brier"].high) == (same["brier"].low, same["brier"].high)


def test_raters_are_resampled_together() -> None:
    """Known raters are the same persons on both sides; without resamples there is no interval."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, 80)
    ratings = np.where(random.random((80, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    labels = rw.Labels.from_ratings(ratings, num_classes=2)
    probs = np.where(truth[:, None] == [0, 1], 0.8, 0.2)
    side = ["left", "right"] * 40
    found = rw.evaluate(probs, labels, "brier", resamples=40, unit="raters", subgroups=side)
    d = found.subgroups[0].differences["brier"]
    assert d.low < d.difference < d.high and 0 < d.p_value <= 1
    bare = rw.evaluate(probs, labels, "brier", resamples=0, subgroups=side).subgroups[0]
    assert bare.differences["brier"].difference == pytest.approx(d.difference)
    assert bare.differences["brier"].low is None


def test_levels_that_are_too_small_or_alone() -> None:
    """A level of one case has values and no interval; a single level has nothing to differ from."""
    problem = ordinary(60)
    patients = np.arange(60) // 2
    scanner = ["B"] * 6 + ["C"] + ["A"] * 53
    found = rw.evaluate(
        problem.probs, problem.labels, "accuracy,auccc,kde_ece", patients, resamples=20,
        subgroups={"scanner": scanner, "site": ["here"] * 60},
        subgroup_metrics="accuracy,auccc,kde_ece",
    )  # fmt: skip
    assert "scanner = B: only 6 cases of 3 patients" in found.warnings
    assert (
        "scanner = C: only 1 case of 1 patient; no interval, and no test against the rest"
        in found.warnings
    )
    assert "site: every case is 'here', so there is nothing to compare" in found.warnings
    assert not [w for w in found.warnings if "scanner = A" in w]
    alone = found.subgroup("scanner", "C")
    assert alone.estimates["accuracy"].value in (0, 1 / 3, 2 / 3, 1)
    assert alone.estimates["accuracy"].low is None
    assert alone.estimates["kde_ece"].undefined
    assert "kde_ece" not in alone.differences
    assert found.subgroup("site", "here").differences == {}
    assert found.subgroup("site", "here").estimates["accuracy"] == found["accuracy"]


# Results -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="results")
def results_with_a_bad_scanner() -> Results:
    """Three scanners, the last of which makes the model over-confident; two sexes, alike."""
    random = np.random.default_rng(0)
    parts = [cases(random, n, s) for n, s in ((90, 1.0), (110, 1.0), (80, 4.0))]
    probs, counts = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    scanner = ["A"] * 90 + ["B"] * 110 + [HOSTILE] * 80
    return rw.evaluate(
        probs, rw.Labels.from_counts(counts), "accuracy,ece,brier", resamples=200,
        subgroups={"scanner": scanner, "sex": ["f", "m"] * 140},
    )  # fmt: skip


def test_results_on_paper(results: Results, tmp_path: Path) -> None:
    """JSON keeps every level; a file without any is read as before; in print, a line each."""
    results.to_json(tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert content["schema_version"] == 1 and len(content["subgroups"]) == 5
    again = Results.from_json(tmp_path / "r.json")
    assert again.subgroups == results.subgroups
    bare = replace(results, subgroups=())
    assert "subgroups" not in bare.to_dict()
    bare.to_json(tmp_path / "bare.json")
    assert Results.from_json(tmp_path / "bare.json").subgroups == ()
    assert "  by sex: f (140), m (140)" in repr(results).splitlines()
    with pytest.raises(InvalidInputError, match="no sub-group is sex = x; there are: scanner = A"):
        results.subgroup("sex", "x")


def test_the_report_says_who_differs(results: Results) -> None:
    """The bad scanner is named, as text; where nothing differs, that is said with its limits."""
    page = report_html(results)
    assert "Is it the same in every sub-group?" in page
    assert f"scanner: {HOSTILE}".replace("<", "&lt;").replace(">", "&gt;") in page
    assert HOSTILE not in page
    found = results.subgroup("scanner", HOSTILE)
    assert found.differences["ece"].adjusted_p_value < 0.05
    assert "Expected calibration error" in page and "(worse)" in page
    same = replace(results, subgroups=tuple(s for s in results.subgroups if s.variable == "sex"))
    assert "no level differs clearly from the other cases" in report_html(same)
    one = replace(results, subgroups=(replace(found, differences={}),))
    assert "no level could be compared with the others" in report_html(one)
    assert "everybody" not in report_html(replace(results, subgroups=()))


# The command line --------------------------------------------------------------------------------


@pytest.fixture(name="table")
def table_of_predictions(tmp_path: Path) -> Path:
    """120 cases in a CSV file: a good and a bad scanner, and one case of which it is unknown."""
    random = np.random.default_rng(1)
    with open(tmp_path / "cases.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("case", "scanner", "age", "prob_no", "prob_yes", "truth"))
        for i in range(120):
            scanner = "" if i == 119 else "good" if i % 2 else "bad"
            right = random.random() < (0.9 if scanner == "good" else 0.5)
            row = (f"c{i}", scanner, 20 + i / 2, 0.1, 0.9, "yes" if right else "no")
            writer.writerow(row)
    return tmp_path / "cases.csv"


def run(*arguments: str) -> Any:
    """Run a command."""
    return CliRunner().invoke(app, ["evaluate", *arguments])


def test_subgroups_on_the_command_line(table: Path, tmp_path: Path) -> None:
    """The column of the table makes the levels; the terminal and the file have the differences."""
    out = str(tmp_path / "r.json")
    given = (str(table), "--label-column", "truth", "--metrics", "accuracy,ece,brier")
    shown = run(*given, "--subgroup-column", "scanner", "--resamples", "100", "--out", out,
                "--subgroup-metrics", "ece,accuracy")  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert "By scanner" in shown.output and "p is adjusted for all" in shown.output
    assert "warning: scanner = (missing): only 1 case" in shown.output
    found = Results.from_json(out)
    assert [(s.level, s.cases) for s in found.subgroups] == [
        ("bad", 60), ("good", 59), (MISSING, 1),
    ]  # fmt: skip
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    right = np.mean([row["truth"] == "yes" for row in rows if row["scanner"] == "bad"])
    assert found.subgroup("scanner", "bad").estimates["accuracy"].value == pytest.approx(right)
    assert list(found.subgroups[0].estimates) == ["ece", "accuracy"]


def test_cases_without_ratings_leave_their_level(table: Path, tmp_path: Path) -> None:
    """Levels follow their cases through the join."""
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    ratings = "case,reader,label\n" + "".join(
        f"{row['case']},r,{row['truth']}\n" for i, row in enumerate(rows) if i >= 20
    )
    (tmp_path / "ratings.csv").write_text(ratings, encoding="utf-8")
    out = tmp_path / "r.json"
    given = (
        "--ratings",
        str(tmp_path / "ratings.csv"),
        "--allow-unmatched",
        "--metrics",
        "accuracy",
    )
    shown = run(str(table), *given, "--subgroup-column", "scanner", "--resamples", "0", "--out",
                str(out), "-q")  # fmt: skip
    assert shown.exit_code == 0, shown.output
    bad = Results.from_json(out).subgroup("scanner", "bad")
    right = [row["truth"] == "yes" for row in rows[20:] if row["scanner"] == "bad"]
    assert (bad.cases, bad.estimates["accuracy"].value) == (50, pytest.approx(np.mean(right)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--subgroup-column sex", "--subgroup-column: must name a column of cases.csv; there is"),
        ("--subgroup-column age", "--subgroup-column: 'age' has 120 levels, more than 20; put"),
        ("--subgroup-metrics ece", "--subgroup-metrics: needs subgroups"),
    ],
)
def test_what_the_command_line_refuses(table: Path, options: str, message: str) -> None:
    """One line, exit code 2."""
    shown = run(str(table), "--label-column", "truth", "--metrics", "ece", *options.split())
    assert shown.exit_code == 2
    assert message in shown.output.replace("\n", " ")


def test_arrays_have_no_columns(tmp_path: Path) -> None:
    """An NPZ file cannot be told by a column's name."""
    np.savez(tmp_path / "a.npz", probs=np.full((4, 2), 0.5), labels=np.zeros(4, int))
    shown = run(str(tmp_path / "a.npz"), "--subgroup-column", "scanner")
    assert shown.exit_code == 2
    assert "a.npz holds arrays without columns" in shown.output.replace("\n", " ")


def test_long_names_of_levels_have_two_lines_in_the_chart() -> None:
    """Not cut after sixteen letters; short ones keep the room that they had."""
    from raterwise.report.subgroups import LONG, SHORT, forest

    scanners = ["Siemens SOMATOM Definition", "GE"] * 10
    for names, pixels in ((scanners, LONG[0]), (["A", "B"] * 10, SHORT[0])):
        found = rw.evaluate(
            [0.9, 0.2, 0.7, 0.4] * 5, [1, 0, 1, 1] * 5, "brier", resamples=0,
            subgroups={"scanner": names},
        )  # fmt: skip
        drawn = json.dumps(forest(found, {"brier": found["brier"]}))
        assert f'"labelLimit": {pixels - 6}' in drawn
        assert ('["Siemens SOMATOM", "Definition"]' in drawn) == (names is scanners)


def test_a_level_without_noise_is_given_that_of_so_many_units() -> None:
    """Four units that never vary have sqrt(100 / 4) = 5 times the noise of 100 others."""
    still, other = (1.0, 1.0, 1.0), (0.8, 0.7, 0.85)
    noisy = pytest.approx((1, 1 - 5 * 0.1, 1 + 5 * 0.05))
    assert _believable(still, other, 4, 100) == (noisy, other)
    assert _believable(other, still, 100, 4) == (other, noisy)
    assert _believable(still, still, 4, 100) is None


def test_cases_of_one_patient_trade_levels_with_each_other_alone() -> None:
    """Twenty patients of one case per site, whose loss is larger at the second: all of one sign.

    Exchanged within patients no gap is as large, so that p is that of the difference by itself.
    Exchanged between patients, who differ far more, four in five would be.
    """
    p, site = np.linspace(0.15, 0.9, 20), np.repeat(["first", "second"], 20)
    found = rw.evaluate(
        np.r_[p, p - 0.02], np.ones(40, int), "brier", groups=np.tile(np.arange(20), 2),
        subgroups={"site": site}, resamples=200,
    )  # fmt: skip
    gap = found.subgroup("site", "first").differences["brier"]
    assert gap.p_value < 0.3 and gap.adjusted_p_value == gap.p_value


@pytest.mark.parametrize(
    ("each", "adjusted"), [([0.03, 0.03], [0.03, 0.03]), ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06])]
)
def test_two_levels_are_one_test(each: list[float], adjusted: list[float]) -> None:
    """Each of two is the rest of the other; of three Holm's p is that of his paper."""
    made = [{"ece": LevelDifference("ece", 0.1, 0.0, 0.2, p)} for p in each]
    assert [level["ece"].adjusted_p_value for level in _adjusted(made)] == pytest.approx(adjusted)

"""What is asked reaches what answers: seeds, patients, weights, threads, seen from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.evaluation.judged import SIMULATIONS
from raterwise.inference.draws import multiplicities, resampling_units
from raterwise.kernels._threads import number_of_threads
from raterwise.segmentation import Case
from raterwise.streaming.digests import blocks_of_groups
from raterwise.streaming.evaluation import evaluate_digest, request_of_header
from raterwise.streaming.saved import load_saved
from verdicts import judge


def cases() -> dict[str, Any]:
    """Return 90 cases of 30 patients, with one to four raters who are known by name."""
    random = np.random.default_rng(0)
    p = np.round(random.beta(1, 1, 90), 3)
    case = np.repeat(np.arange(90), random.integers(1, 5, 90))
    rater = np.concatenate([np.arange(n) for n in np.unique(case, return_counts=True)[1]])
    said = random.binomial(1, p[case])
    return {
        "p": p,
        "labels": rw.Labels.from_long(case, rater, said, num_classes=2),
        "patient": np.arange(90) // 3,
    }


# the verdict and the test of the raters ----------------------------------------------------------


@pytest.mark.parametrize(("seed", "per"), [(0, "annotation"), (1, "annotation"), (0, "case")])
def test_the_verdict_has_the_seed_the_counting_and_the_patients(seed: int, per: Any) -> None:
    """The verdict in results is that of the procedure, asked in the same way."""
    held = cases()
    found = rw.evaluate(
        held["p"], held["labels"], "ece", held["patient"], resamples=20, seed=seed, per=per
    )
    asked = {"seed": seed, "per": per, "groups": held["patient"], "simulations": SIMULATIONS}
    expected = judge(held["p"], held["labels"], **asked).to_dict()
    assert {**found.data["verdict"], **expected} == found.data["verdict"]
    for change in ({"seed": seed + 1}, {"groups": None}):
        assert (
            judge(held["p"], held["labels"], **{**asked, **change}).p_value != expected["p_value"]
        )
    if per == "case":
        other = judge(held["p"], held["labels"], **{**asked, "per": "annotation"})
        assert found.data["verdict"]["observed"] != other.observed


def test_the_test_of_the_raters_has_the_patients_and_the_seed() -> None:
    """Whole patients trade places in `evaluate` as in the test itself, with the same seed."""
    held = cases()
    labels, patients = held["labels"], held["patient"]
    p_values = {}
    for seed in (0, 1):
        found = rw.evaluate(
            held["p"], labels, "fleiss_kappa", patients, resamples=0, seed=seed, on_single="drop"
        )
        p_values[seed] = found.data["exchangeability"]["p_value"]
        assert p_values[seed] == rw.exchangeability_test(labels, patients, seed=seed).p_value
    assert p_values[0] != p_values[1]
    assert p_values[0] != rw.exchangeability_test(labels).p_value


# facts -------------------------------------------------------------------------------------------


def test_weights_reach_the_noise_of_a_calibrated_model() -> None:
    """Ten cases with nearly all the weight are worth 14: the error is sqrt(200 / 14) = 3.8 times.

    No positive was seen, so nothing varies: the width is that of the noise supposed.
    """
    weights = np.r_[np.full(10, 100.0), np.ones(190)]

    def reach(weights: Any) -> float:
        found = rw.evaluate_multilabel(
            np.full((200, 2), 0.02), np.zeros((200, 2), int), np.ones((200, 2), int),
            metrics="ece", weights=weights, resamples=400,
        )["ece"]  # fmt: skip
        assert found.high is not None and found.value is not None
        return found.high - found.value

    assert reach(weights) > 3 * reach(None) > 0


def test_a_stream_knows_the_place_of_every_case(tmp_path: Path) -> None:
    """The fingerprint is that of the same cases in memory; another order is another fingerprint."""
    held, path = cases(), tmp_path / "cases.parquet"
    counts, patients = held["labels"].counts, held["patient"].astype(str)

    def streamed(order: Any, rows: int) -> dict[str, Any]:
        columns = {"prob_1": held["p"][order], "patient": patients[order]}
        columns |= {f"count_{k}": counts[order, k] for k in range(2)}
        pq.write_table(pa.table(columns), path, row_group_size=rows)
        found = rw.evaluate_stream(
            path, "brier", resamples=0, count_prefix="count_", group_column="patient"
        )
        print_of: dict[str, Any] = found.data["fingerprint"]
        return {part: print_of[part] for part in ("cases", "labels", "patients")}

    labels = rw.Labels.from_counts(counts)
    plain = rw.evaluate(held["p"], labels, "brier", patients, resamples=0).data["fingerprint"]
    whole = np.arange(90)
    for rows in (90, 40, 7):
        assert streamed(whole, rows) == {
            part: plain[part] for part in ("cases", "labels", "patients")
        }
    assert streamed(np.roll(whole, 30), 30)["labels"] != plain["labels"]


def test_streams_in_other_row_groups_are_paired(tmp_path: Path) -> None:
    """Two models of the same cases, written in parts of 90 and of 7: the same units are drawn."""
    held = cases()
    found = {}
    for name, rows in (("sure", 90), ("unsure", 7)):
        p = held["p"] if name == "sure" else 0.5 + (held["p"] - 0.5) / 2
        columns = {"prob_1": p, "patient": held["patient"].astype(str)}
        columns |= {f"count_{k}": held["labels"].counts[:, k] for k in range(2)}
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=rows)
        found[name] = rw.evaluate_stream(
            path, "brier", 20, count_prefix="count_", group_column="patient"
        )
    (difference,) = rw.compare(found).differences
    values = [found[name]["brier"].value for name in ("sure", "unsure")]
    assert abs(difference.difference) == pytest.approx(abs(values[0] - values[1]))


def test_weights_count_in_what_resampling_is_worth(tmp_path: Path) -> None:
    """(Σw)² / Σw² units of equal weight, in memory as in a stream; not their number."""
    p, y = np.linspace(0.1, 0.9, 40), np.arange(40) % 2
    weights = np.r_[np.full(4, 9.0), np.ones(36)]
    worth = weights.sum() ** 2 / (weights**2).sum()
    found = rw.evaluate(p, y, "brier", weights=weights, resamples=20)
    assert found.data["resampling"]["worth"] == pytest.approx(worth)
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"prob_1": p, "y": y, "w": weights}), path, row_group_size=11)
    streamed = rw.evaluate_stream(path, "brier", 20, label_column="y", weight_column="w")
    assert streamed.data["resampling"]["worth"] == pytest.approx(worth)


# the units of resampling -------------------------------------------------------------------------

SIZES = np.r_[90, np.full(15, 30)]
"""Cases of each patient."""


def width_told(found: rw.Results, name: str) -> float:
    """Return 2 t s of the error that the resamples have, as wide as the sizes of patients ask."""
    told = found.data["resampling"]
    reach = float(stats.t.ppf(0.975, told["freedom"])) * told["inflation"]
    return 2 * reach * float(np.std(found.replicates[name]))


@pytest.mark.parametrize("name", ["ece", "kde_ece", "irreducible_loss"])
def test_the_sizes_of_patients_reach_the_interval(name: str) -> None:
    """Inverted tests and errors of leaving out patients are as wide as unequal patients ask.

    The model is too sure everywhere, so that the error is linear in what the raters said.
    """
    random = np.random.default_rng(0)
    patients = np.repeat(np.arange(len(SIZES)), SIZES)
    rate = random.beta(4, 4, len(SIZES))[patients]
    positive = random.binomial(2, rate)
    found = rw.evaluate(
        np.full(len(rate), 0.95), rw.Labels.from_counts(np.stack((2 - positive, positive), axis=1)),
        name, patients, options={"kde_ece": {"bandwidth": 0.1}} if name == "kde_ece" else None,
        question=None if name == "irreducible_loss" else "positive",
    )  # fmt: skip
    low, high = found[name].low, found[name].high
    assert low is not None and high is not None
    expected = width_told(found, name)
    assert high - low == pytest.approx(expected, rel=0.1)
    equal = 2 * stats.t.ppf(0.975, 15) * np.sqrt(16 / 15) * np.std(found.replicates[name])
    assert expected > 1.15 * equal


def test_the_sizes_of_patients_reach_the_interval_over_images() -> None:
    """Patients with 1 to 12 images of equal size: as wide as the resamples and the sizes say."""
    random = np.random.default_rng(0)
    sizes = np.r_[12, np.full(15, 3)]
    patients = np.repeat(np.arange(len(sizes)), sizes)
    rate = random.uniform(0.1, 0.9, len(sizes))[patients]
    masks = (random.random((len(rate), 1, 40)) < rate[:, None, None]).astype(int)
    images = [
        Case(np.full(40, 0.5), mask, patient=who) for mask, who in zip(masks, patients, strict=True)
    ]
    found = rw.segmentation.evaluate(images, "ece", question="positive", seed=3)
    low, high = found["ece"].low, found["ece"].high
    assert low is not None and high is not None
    assert high - low == pytest.approx(width_told(found, "ece"), rel=0.1)
    other = rw.segmentation.evaluate(images, "ece", question="positive", resamples=20).replicates
    again = rw.segmentation.evaluate(images, "ece", question="positive", resamples=20, seed=3)
    assert not np.array_equal(other["ece"], again.replicates["ece"])


ERRORS = [
    row.name
    for row in CATALOG.values()
    if row.error and "loss" not in row.name and not row.needs_belief
]


def test_no_interval_reaches_beyond_what_an_error_can_be() -> None:
    """Twelve patients, one of whom has nearly half the cases: gaps of probabilities are 0 … 1."""
    patients = np.repeat(np.arange(12), np.r_[200, np.full(11, 25)])
    positive = 2 * (patients % 2)
    labels = rw.Labels.from_counts(np.stack((2 - positive, positive), axis=1))
    found = rw.evaluate(
        np.full(len(patients), 0.9), labels, ERRORS, patients, resamples=200, question="positive"
    )
    for name, e in found.items():
        most = {"calibration_error": np.sqrt(2), "canonical_ece": 2.0}.get(name, 1.0)
        assert e.low is not None and e.high is not None
        assert 0 <= e.low <= e.value <= e.high <= most, name
    images = [Case([1.0], [[i % 2]], patient=i) for i in range(4)]
    over_images = rw.segmentation.evaluate(images, "ece", question="positive", resamples=50)["ece"]
    assert (over_images.low, over_images.value, over_images.high) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize(("half", "classes", "most"), [
    ("auto", 2, 1), (True, 2, 1), (False, 2, 2), ("auto", 3, 2), (True, 3, 1), (False, 3, 2),
])  # fmt: skip
def test_the_interval_of_a_brier_score_ends_where_the_score_does(
    tmp_path: Path, half: Any, classes: int, most: float
) -> None:
    """Two sure and wrong classes are 2 apart, 1 where that is halved, in every source."""
    wrong = np.r_[np.zeros(4), 0.7, 0.8]
    probs = np.stack((1 - wrong, wrong, *[np.zeros(6)] * (classes - 2)), axis=1)
    asked: dict[str, Any] = {"options": {"brier": {"scale_by_half": half}}, "resamples": 50}
    found = {"memory": rw.evaluate(probs, np.ones(6, int), "brier", **asked)}
    table = {f"prob_{k}": probs[:, k] for k in range(classes)} | {"y": np.ones(6, int)}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    path = tmp_path / "t.parquet"
    found["stream"] = rw.evaluate_stream(path, "brier", label_column="y", **asked)
    for way in ("per_case", "pooled"):
        images = [Case(one[:, None], [[1]]) for one in probs]
        found[way] = rw.segmentation.evaluate(images, "brier", way, **asked)
    for source, results in found.items():
        assert results["brier"].high == most, source
        assert results["brier"].low < results["brier"].value < most, source


def test_the_interval_of_half_a_brier_score_is_half_the_interval() -> None:
    """What one more error adds is scaled as the score is: all cases alike, or few that differ."""
    for wrong in (np.full(8, 0.9), np.r_[np.full(7, 0.99), 0.3]):
        for classes in (2, 3):
            probs = np.stack((1 - wrong, wrong, *[np.zeros(8)] * (classes - 2)), axis=1)
            whole, half = (
                rw.evaluate(
                    probs, np.ones(8, int), "brier", options={"brier": {"scale_by_half": told}}
                )["brier"]
                for told in (False, True)
            )
            ends = half.low, half.value, half.high
            assert (whole.low, whole.value, whole.high) == pytest.approx(2 * np.array(ends))


# streams -----------------------------------------------------------------------------------------


def written(folder: Path, held: dict[str, Any], counts: Any) -> Path:
    """Write the cases to a Parquet file of five row groups."""
    columns = {"prob_1": held["p"], "patient": held["patient"].astype(str)}
    columns |= {f"count_{k}": counts[:, k] for k in range(2)}
    pq.write_table(pa.table(columns), folder / "cases.parquet", row_group_size=20)
    return folder / "cases.parquet"


COLUMNS: dict[str, Any] = {"count_prefix": "count_", "group_column": "patient"}


def test_the_seed_of_a_stream_makes_its_blocks_and_its_resamples(tmp_path: Path) -> None:
    """A stream is evaluated as its blocks would be in memory, with the seed asked for."""
    held = cases()
    path = written(tmp_path, held, held["labels"].counts)
    found = rw.evaluate_stream(path, "brier", 30, seed=3, **COLUMNS)
    blocks = blocks_of_groups(held["patient"].astype(str), seed=3)
    assert blocks.tolist() != blocks_of_groups(held["patient"].astype(str), seed=0).tolist()
    order = np.argsort(blocks, kind="stable")
    labels = rw.Labels.from_counts(held["labels"].counts[order])
    plain = rw.evaluate(held["p"][order], labels, "brier", blocks[order], resamples=30, seed=3)
    np.testing.assert_allclose(found.replicates["brier"], plain.replicates["brier"], rtol=1e-9)


def test_a_stream_leaves_out_cases_that_nobody_rated(tmp_path: Path) -> None:
    """Dropped cases are counted, and the values are those of the others."""
    held, counts = cases(), cases()["labels"].counts.copy()
    counts[[4, 50]] = 0
    path = written(tmp_path, held, counts)
    with pytest.raises(rw.InvalidInputError, match="on_unrated"):
        rw.evaluate_stream(path, "brier", 0, **COLUMNS)
    found = rw.evaluate_stream(path, "brier", 0, on_unrated="drop", **COLUMNS)
    rated = counts.sum(axis=1) > 0
    labels = rw.Labels.from_counts(counts[rated])
    assert found["brier"].value == pytest.approx(rw.brier(held["p"][rated], labels))
    assert sum(found.data["dropped"].values()) == 2


def test_a_saved_summary_remembers_how_it_was_made(tmp_path: Path) -> None:
    """The results of a summary are those of the stream: seed, options and single labels too."""
    held = cases()
    path, saved = written(tmp_path, held, held["labels"].counts), tmp_path / "s.npz"
    asked: dict[str, Any] = {
        "seed": 3, "bins": 7, "per": "case", "question": "positive", "on_single": "drop",
        "options": {"robust_ece": {"sigma": 0.05}},
    }  # fmt: skip
    metrics = "ece,robust_ece,epistemic_loss"
    found = rw.evaluate_stream(path, metrics, 30, save_summary=saved, **asked, **COLUMNS)
    kept = load_saved(saved)
    again = evaluate_digest(kept.digest, request_of_header(kept.options, resamples=30))
    assert again.to_dict()["metrics"] == found.to_dict()["metrics"]
    unlike = {key for key, value in found.options.items() if again.options[key] != value}
    assert not unlike
    assert found["epistemic_loss"].dropped == int((held["labels"].num_raters < 2).sum()) > 0


# threads, levels ---------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["memory", "stream", "findings", "images"])
def test_threads_reach_every_source(source: str, tmp_path: Path) -> None:
    """While any front end is at work, so many threads are allowed; afterwards as before."""
    held, seen, before = cases(), [], number_of_threads()

    def progress(what: str, done: float) -> None:
        seen.append(number_of_threads())

    brier_of(source, held, tmp_path, threads=3, resamples=0, progress=progress)
    if source == "findings":
        seen.pop()  # "done" is told when all is over
    assert set(seen) == {3} and number_of_threads() == before


def brier_of(source: str, held: dict[str, Any], folder: Path, **asked: Any) -> Any:
    """Return the Brier score of the cases, or of two images of their probabilities."""
    if source == "memory":
        return rw.evaluate(held["p"], held["labels"], "brier", **asked)["brier"]
    if source == "stream":
        path = written(folder, held, held["labels"].counts)
        return rw.evaluate_stream(path, "brier", **asked, **COLUMNS)["brier"]
    if source == "findings":
        n, said = held["labels"].num_raters[:, None], held["labels"].counts[:, 1:]
        found = rw.evaluate_multilabel(held["p"][:, None], said, n, metrics="brier", **asked)
        return found["brier"]
    images = [Case(p, [held["p"] > 0.4]) for p in (held["p"], held["p"][::-1])]
    return rw.segmentation.evaluate(images, "brier", **asked)["brier"]


@pytest.mark.parametrize("source", ["memory", "stream", "findings", "images"])
def test_the_level_reaches_every_source(source: str, tmp_path: Path) -> None:
    """An interval of half the confidence lies within one of 95%, wherever cases come from."""
    half, usual = (brier_of(source, cases(), tmp_path, level=level) for level in (0.5, 0.95))
    assert usual.low < half.low < half.value < half.high < usual.high


@pytest.mark.parametrize("metric", ["ece", "kernel_calibration_error"])
def test_p_values_and_intervals_agree_at_the_level_asked_for(metric: str) -> None:
    """The p-value does not depend on the level; the interval excludes 0 where it is 1 - level."""
    random = np.random.default_rng(0)
    p = random.beta(1, 1, 200)
    said = (random.random(200) < np.clip(p + 0.04, 0, 1)).astype(int)
    options = {"ece": {"question": "positive"}} if metric == "ece" else None
    usual, lower = (
        rw.evaluate(p, said, metric, resamples=400, level=level, options=options)[metric]
        for level in (0.95, 0.8)
    )
    assert 0.05 < usual.p_value == lower.p_value < 0.2
    assert usual.low == 0 < lower.low


def test_percentiles_of_few_patients_are_those_of_students_interval() -> None:
    """Of G patients the tails are Φ(±√(G/(G-1)) t) of the resampled values (Hesterberg 2015)."""
    held, patients = cases(), np.arange(90) % 5
    asked: dict[str, Any] = {"groups": patients, "interval": "percentile"}
    found = rw.evaluate(held["p"], held["labels"], "brier", **asked)
    reach = np.sqrt(5 / 4) * stats.t.ppf(0.975, 4)
    ends = np.quantile(found.replicates["brier"], stats.norm.cdf([-reach, reach]))
    assert (found["brier"].low, found["brier"].high) == pytest.approx(tuple(ends), rel=1e-7)


# sub-groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize("findings", [False, True])
def test_levels_trade_places_within_a_patient_who_has_several(findings: bool) -> None:
    """Patients who are right or wrong throughout, with most of the one level or of the other.

    Within a patient no case differs, so that whatever is traded the difference stays: p is 1.
    Between patients it would be beyond doubt.
    """
    patients = np.repeat(np.arange(8), 20)
    wrong = (patients >= 4).astype(int)
    mostly = np.arange(160) % 10 > 0
    side = np.where(mostly == (patients < 4), "left", "right")
    asked: dict[str, Any] = {"groups": patients, "resamples": 50, "subgroups": {"side": side}}
    if findings:
        said = np.stack((wrong, wrong), axis=1)
        results = rw.evaluate_multilabel(
            np.full((160, 2), 0.2), said, np.ones_like(said), metrics="accuracy", **asked
        )
        found = next(iter(results.findings.values()))
    else:
        found = rw.evaluate(np.full(160, 0.2), wrong, "accuracy", **asked)
    difference = found.subgroups[0].differences["accuracy"]
    assert difference.difference == pytest.approx(0.8)
    assert difference.adjusted_p_value == 1.0


def test_the_seed_pools_the_patients_that_levels_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patients with cases of both levels are pooled, where they are many, by the seed asked for."""
    held, seeds = cases(), set()

    def noted(predictions: Any, seed: int) -> Any:
        seeds.add(seed)
        return resampling_units(predictions, seed)

    monkeypatch.setattr("raterwise.subgroups.sources.resampling_units", noted)
    asked: dict[str, Any] = {"resamples": 20, "subgroups": {"site": np.tile(["a", "b", "a"], 30)}}
    rw.evaluate(held["p"], held["labels"], "brier", held["patient"], seed=5, **asked)
    assert seeds == {5}


def test_the_seed_reaches_the_levels_that_are_traded() -> None:
    """The interval of an accuracy is not random, the permutations are."""
    random = np.random.default_rng(0)
    p, y, side = random.random(60), random.integers(0, 2, 60), np.arange(60) % 3
    made = [
        rw.evaluate(p, y, "accuracy", resamples=20, seed=seed, subgroups=side)
        .subgroups[0].differences["accuracy"]
        for seed in range(4)
    ]  # fmt: skip
    assert len({d.p_value for d in made}) == 1
    assert len({d.adjusted_p_value for d in made}) > 1


# seeds and labels --------------------------------------------------------------------------------


def test_the_seed_draws_the_signs_of_the_kernel_test() -> None:
    """Other signs of what cases are off by, another p-value; the same ones, the same."""
    random, name = np.random.default_rng(0), "kernel_calibration_error"
    p = np.round(random.random(60), 2)
    said = (random.random(60) < p).astype(int)
    p_values = [
        rw.evaluate(p, said, name, resamples=200, seed=seed)[name].p_value for seed in (0, 0, 1, 2)
    ]
    assert p_values[0] == p_values[1] and len(set(p_values)) > 1


def test_the_seed_reaches_the_raters_and_the_blocks() -> None:
    """Other raters are drawn, and many cases are pooled into other blocks, with another seed."""
    held = cases()
    drawn = [
        rw.evaluate(held["p"], held["labels"], "brier", resamples=5, unit="raters", seed=seed)
        for seed in (0, 0, 1)
    ]
    first, same, other = (found.replicates["brier"] for found in drawn)
    assert np.array_equal(first, same) and not np.array_equal(first, other)
    random = np.random.default_rng(0)
    p, y = random.random(5000), random.integers(0, 2, 5000)

    def low(number: int, seed: int) -> float | None:
        """Return an end that is not random but for the blocks."""
        found = rw.evaluate(p[:number], y[:number], "brier", resamples=2, seed=seed)
        return found["brier"].low

    assert low(4000, 0) == low(4000, 1)
    assert low(5000, 0) != low(5000, 1)


def test_dropping_single_labels_leaves_the_plug_in_the_same_cases() -> None:
    """The plug-in epistemic loss is of the cases with two labels, as the unbiased one is."""
    held = cases()
    several = np.flatnonzero(held["labels"].num_raters > 1)
    asked = {"epistemic_loss": {"estimator": "plugin"}}
    found = rw.evaluate(
        held["p"], held["labels"], "epistemic_loss", resamples=0, options=asked, on_single="drop"
    )
    labels = held["labels"][several]
    expected = rw.epistemic_loss(held["p"][several], labels, estimator="plugin")
    assert found["epistemic_loss"].value == pytest.approx(expected)
    assert found["epistemic_loss"].dropped == 90 - len(several) > 0


# findings ----------------------------------------------------------------------------------------


def two_findings() -> tuple[np.ndarray, ...]:
    """Return probabilities, positives and raters of 60 cases; 15 have no rating of the second."""
    random = np.random.default_rng(0)
    raters = np.ones((60, 2), int)
    raters[random.permutation(60)[:15], 1] = 0
    return random.random((60, 2)), random.integers(0, 2, (60, 2)) * raters, raters


def test_weights_reach_the_findings() -> None:
    """Each finding has the weighted Brier score of the cases that somebody rated."""
    probs, positives, raters = two_findings()
    weights = np.arange(1.0, 61)
    found = rw.evaluate_multilabel(
        probs, positives, raters, ["a", "b"], "brier", weights=weights, on_unrated="drop",
        resamples=0,
    )  # fmt: skip
    for i, title in enumerate("ab"):
        rated = raters[:, i] > 0
        gap = (probs[rated, i] - positives[rated, i]) ** 2
        expected = np.average(gap, weights=weights[rated])
        assert found.findings[title]["brier"].value == pytest.approx(expected)


def test_a_case_without_a_rating_keeps_the_others_in_their_units() -> None:
    """All findings draw the same cases, whichever of them were rated."""
    probs, positives, raters = two_findings()
    found = rw.evaluate_multilabel(
        probs, positives, raters, ["a", "b"], "accuracy", on_unrated="drop", resamples=20, seed=4
    )
    times = multiplicities(60, 20, 4)
    for i, title in enumerate("ab"):
        hit = ((probs[:, i] > 0.5) == positives[:, i]) * raters[:, i]
        expected = times @ hit / (times @ raters[:, i])
        np.testing.assert_allclose(found.findings[title].replicates["accuracy"], expected)


def test_findings_with_other_labels_are_not_compared() -> None:
    """The labels of every finding tell whether two results are of the same cases."""
    probs, positives, raters = two_findings()
    raters[:] = 1
    other = positives.copy()
    other[7, 1] = 1 - other[7, 1]
    one, two = (
        rw.evaluate_multilabel(probs, said, raters, metrics="brier", resamples=20)
        for said in (positives, other)
    )
    with pytest.raises(rw.InvalidInputError, match="other labels"):
        rw.compare({"one": one, "two": two})


# comparisons and stability -----------------------------------------------------------------------


def test_weights_and_unrated_cases_reach_a_comparison() -> None:
    """Each model has the weighted score of the cases that somebody rated."""
    probs, positives, raters = two_findings()
    counts = np.stack((raters[:, 1] - positives[:, 1], positives[:, 1]), axis=1)
    weights, rated = np.arange(1.0, 61), raters[:, 1] > 0
    models = {"a": probs[:, 0], "b": probs[:, 1]}
    labels = rw.Labels.from_counts(counts)
    with pytest.raises(rw.InvalidInputError, match="on_unrated"):
        rw.compare(models, labels, "brier", resamples=5)
    found = rw.compare(
        models, labels, "brier", resamples=5, weights=weights, on_unrated="drop"
    ).models
    for name, p in models.items():
        gap = (p[rated] - positives[rated, 1]) ** 2
        expected = np.average(gap, weights=weights[rated])
        assert found[name]["brier"].value == pytest.approx(expected)


def test_counting_and_seed_reach_the_total_variation() -> None:
    """A metric by its name varies as the function with the same options does."""
    held = cases()

    def variation(metric: Any, **asked: Any) -> float:
        found = rw.stability.total_variation(metric, held["p"], held["labels"], repeats=3, **asked)
        return found.mean

    by_case = variation("ece", per="case", seed=2)
    assert by_case == pytest.approx(variation(lambda p, y: rw.ece(p, y, per="case"), seed=2))
    assert by_case != pytest.approx(variation("ece", seed=2))
    assert by_case != pytest.approx(variation("ece", per="case"))


def test_a_stream_is_not_paired_with_a_table_in_memory(tmp_path: Path) -> None:
    """Blocks of a stream are drawn in another order: even one model would differ from itself."""
    held = cases()
    path = written(tmp_path, held, held["labels"].counts)
    labels = rw.Labels.from_counts(held["labels"].counts)
    streamed = rw.evaluate_stream(path, "brier", 20, count_prefix="count_")
    plain = rw.evaluate(held["p"], labels, "brier", class_names=["0", "1"], resamples=20)
    assert streamed.data["fingerprint"]["units"] == plain.data["fingerprint"]["units"] == 90
    with pytest.raises(rw.InvalidInputError, match="have other units of resampling"):
        rw.compare({"a": streamed, "b": plain})
    again = rw.evaluate_stream(path, "brier", 20, count_prefix="count_")
    difference = rw.compare({"a": streamed, "b": again}).differences[0]
    assert (difference.low, difference.high) == (0.0, 0.0)


def test_one_thread_reads_a_stream_and_images_without_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With threads=1 nothing is read ahead: no thread is started at all."""
    import threading

    started: list[str] = []
    begin = threading.Thread.start

    def start(self: threading.Thread) -> None:
        started.append(self.name)
        begin(self)

    random = np.random.default_rng(0)
    table = pa.table({"prob_1": random.random(400), "y": random.integers(0, 2, 400)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    image, masks = random.random((6, 6)), random.integers(0, 2, (2, 6, 6))
    opened = [lambda: Case(image, masks)] * 3
    monkeypatch.setattr(threading.Thread, "start", start)
    rw.evaluate_stream(tmp_path / "t.parquet", "brier", resamples=20, threads=1, label_column="y")
    rw.segmentation.evaluate(opened, "brier", resamples=0, threads=1)
    assert started == []
    rw.evaluate_stream(tmp_path / "t.parquet", "brier", resamples=20, threads=2, label_column="y")
    assert any(name.startswith("raterwise-ahead") for name in started)


# the noise of calibration errors -----------------------------------------------------------------


def test_patients_are_as_large_as_their_weights_in_every_expansion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three cases each, but one patient weighs most: few are worth, also for the kernel's bins."""
    from raterwise.inference import inversion

    held, sizes = cases(), []
    expand = inversion.noise_expansion

    def noted(of: Any, level: float) -> float:
        sizes.append(np.asarray(of))
        return expand(of, level)

    monkeypatch.setattr(inversion, "noise_expansion", noted)
    weights = np.where(held["patient"] == 0, 40.0, 1.0)
    asked: dict[str, Any] = {"groups": held["patient"], "resamples": 20, "per": "case"}
    rw.evaluate(held["p"], held["labels"], "kde_ece", weights=weights, **asked)
    assert len(sizes) == 2  # of the deviations, and of the bins that keep signs apart
    for found in sizes:
        assert found == pytest.approx(np.bincount(held["patient"], weights))


def test_the_seed_reaches_the_calibrated_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels drawn from the model's own probabilities are others with another seed alone."""
    from raterwise.inference import noise

    held, drawn = cases(), []
    draw = noise.calibrated_draws

    def noted(*given: Any, **asked: Any) -> Any:
        found = draw(*given, **asked)
        drawn.append(found)
        return found

    monkeypatch.setattr(noise, "calibrated_draws", noted)
    for seed in (0, 0, 1):
        rw.evaluate(held["p"], held["labels"], "ece", resamples=20, seed=seed)
    first, same, other = drawn[:: len(drawn) // 3]
    assert np.array_equal(first, same) and not np.array_equal(first, other)
    assert len(first) == 20


def test_the_channels_and_the_seed_reach_the_noise_of_patients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of K classes K - 1 can differ, a top label is one; the seed alone draws others."""
    from raterwise.inference import noise

    random = np.random.default_rng(0)
    probs, patients = random.dirichlet([1, 1, 1, 1], 80), np.arange(80) // 8
    said, told, drawn = random.integers(0, 4, 80), [], []
    widen = noise.of_patients

    def noted(draws: Any, effect: float, sizes: Any, channels: int, **asked: Any) -> Any:
        told.append(channels)
        found = widen(np.ones((5, 1)), 10.0, sizes, channels, **asked)
        drawn.append(found.ravel().tolist())
        return draws

    monkeypatch.setattr(noise, "of_patients", noted)
    for name, channels in (("ece", 1), ("classwise_ece", 3)):
        told.clear()
        drawn.clear()
        for seed in (0, 0, 1):
            rw.evaluate(probs, said, name, patients, resamples=20, seed=seed)
        assert told and set(told) == {channels}
        first, same, other = drawn[:: len(drawn) // 3]
        assert first == same != other

"""The experiment with small test sets: samples, a known truth, the paper's table, at toy size."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import raterwise as rw
from experiments.commands import app
from experiments.kept import read_json
from experiments.robust_ece.sizes import Model, Sampling, judge, models_in, sampled, values_of
from experiments.robust_ece.sizes_paper import FRACTIONS, TABLE, TEST_IMAGES, closest, mean_of
from experiments.robust_ece.sizes_tables import METRICS, deviation, ranked
from experiments.robust_ece.spreads import Network, mixture_rows
from experiments.robust_ece.truth import (
    KERNELS,
    PAIRS,
    WORLDS,
    Study,
    _adaptive,
    _by_class,
    _hard,
    errors_of,
    shares_of,
    study,
)
from experiments.robust_ece.views import moved
from raterwise.errors import InvalidInputError

KEPT = Path(__file__).parents[1] / "experiments" / "outputs" / "robust_ece" / "sample_sizes"
TOY = Study(pool=400, sizes=(10, 100), repeats=6, kernel_density_repeats=2)


def network(cases: int = 60, classes: int = 3, seed: int = 0, views: bool = True) -> Network:
    """Return random probabilities, labels drawn from them, and views that scatter around them."""
    random = np.random.default_rng(seed)
    logits = 2 * random.normal(size=(cases, classes))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < random.random((cases, 1))).sum(axis=1)
    scattered = np.exp(logits + random.normal(size=(10, cases, classes)))
    seen = scattered / scattered.sum(axis=2, keepdims=True)
    return Network(probs, seen if views else None, labels)


# The paper's table --------------------------------------------------------------------------------


def test_the_papers_table_is_whole() -> None:
    """Six metrics of eight data sets (RECE-M on CIFAR-100 is cut off), a value and five samples."""
    assert len(TABLE) == 8 and sum(map(len, TABLE.values())) == 8 * 6 - 1
    for rows in TABLE.values():
        assert all(len(text.split()) == 1 + 2 * len(FRACTIONS) for text in rows.values())
    # Table 2 has these accuracies: whole numbers of test images.
    for data, accuracies in {
        "GBCU": (0.9016, 0.8934, 0.8852),
        "BUSI": (0.9487, 0.9615, 0.9231),
        "POCUS": (0.8845, 0.8866, 0.8761, 0.9349),
    }.items():
        hits = np.array(accuracies) * TEST_IMAGES[data]
        np.testing.assert_allclose(hits, np.round(hits), atol=0.03)


def test_who_is_closest_by_hand() -> None:
    """GBCU at 5 %: RECE-G is .0013 off and nearest; relatively too, by 2 % of .0607."""
    apart = {m: abs(mean_of("GBCU", m)[1][1] - mean_of("GBCU", m)[0]) for m in METRICS}
    assert min(apart, key=lambda m: apart[m]) == "robust_ece"
    assert apart["robust_ece"] == pytest.approx(0.0013)
    absolute, relative = closest(relative=False), closest(relative=True)
    assert max(absolute, key=lambda m: absolute[m]) == "robust_ece"
    assert max(relative, key=lambda m: relative[m]) == "kde_ece"


# Samples ------------------------------------------------------------------------------------------


def test_the_six_metrics_are_the_librarys() -> None:
    """RECE-M from rows that are made once is that of the library, which fits it anew."""
    one = network()
    rows = np.arange(5, 45)
    values = values_of(one, rows, mixture_rows(one, 0))
    given = one.probs[rows], one.labels[rows]
    assert one.views is not None
    assert values["robust_ece_mixture"] == pytest.approx(
        rw.robust_ece_mixture(*given, samples=one.views[:, rows], seed=0), rel=1e-9
    )
    assert values["ece"] == rw.ece(*given)
    assert values["kde_ece"] == rw.kde_ece(*given, question="canonical")
    assert set(values) == set(METRICS)
    assert np.isnan(values_of(one, rows[:1])["kde_ece"])


def test_one_case_tells_ece_and_rece_g_alike() -> None:
    """Of one case both are |right - confidence|: the shares of the bins sum to 1 (eq 6)."""
    one = network()
    for row in range(10):
        values = values_of(one, np.array([row]))
        gap = abs((one.probs[row].argmax() == one.labels[row]) - one.probs[row].max())
        assert values["ece"] == pytest.approx(gap) == pytest.approx(values["robust_ece"])


def test_networks_of_the_same_data_share_their_samples() -> None:
    """Two networks with the same outputs have the same values, sample by sample."""
    sampling = Sampling(repeats=3, fractions=(0.1, 0.5))
    first, second = (sampled(Model("d", name, network()), sampling) for name in "ab")
    assert first["values"] == second["values"] and first["sizes"] == [6, 30]
    assert ranked([first, second], "ece", 1) == (3, 3)  # equal on all cases and in each sample
    mean, spread, apart = deviation(first, "ece", 1) or (0, 0, 0)
    values = np.array(first["values"]["ece"][1])
    assert (mean, spread) == pytest.approx((values.mean(), values.std(ddof=1)))
    assert apart == pytest.approx(abs(values.mean() - first["full"]["ece"]))


# A known truth ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "outside"),
    [
        ("Gaussian", stats.norm()),
        ("uniform", stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))),
        ("triangular", stats.triang(0.5, -np.sqrt(6), 2 * np.sqrt(6))),
        ("Laplace", stats.laplace(scale=1 / np.sqrt(2))),
    ],
)
def test_kernels_are_scipys(name: str, outside: Any) -> None:
    """Distribution functions with mean 0 and standard deviation 1."""
    x = np.linspace(-4, 4, 41)
    np.testing.assert_allclose(KERNELS[name](x), outside.cdf(x), atol=1e-12)
    assert (outside.mean(), outside.std()) == pytest.approx((0, 1))


def test_errors_of_the_simulation_are_the_librarys() -> None:
    """ECE, SCE, AECE and RECE-G of a sample, by the tables of the simulation and by raterwise."""
    one = network(200, 10, views=False)
    confidence, predicted = one.probs.max(axis=1), one.probs.argmax(axis=1)
    gaps = ((predicted == one.labels) - confidence)[None]
    rows = np.arange(200)[None]
    given = one.probs, one.labels
    assert errors_of(_hard(confidence), gaps, rows)[0] == pytest.approx(rw.ece(*given))
    by_class = errors_of(_by_class(confidence, predicted), gaps, rows)[0]
    assert by_class == pytest.approx(10 * rw.sce(*given))
    soft = errors_of(shares_of(confidence, 0.1), gaps, rows)[0]
    assert soft == pytest.approx(rw.robust_ece(*given))
    assert _adaptive(confidence, gaps, rows)[0] == pytest.approx(rw.adaptive_ece(*given), rel=0.1)


def test_the_study_knows_its_truth() -> None:
    """A calibrated world has the error 0; of each pair the second model is the worse one."""
    found = study(TOY)
    assert found["worlds"]["calibrated"]["truth"] == 0
    assert set(found["worlds"]) == set(WORLDS) and set(found["pairs"]) == set(PAIRS)
    assert all(first < second for first, second in (p["truths"] for p in found["pairs"].values()))
    errors = found["worlds"]["calibrated"]["metrics"]["ece"]["mean"]
    assert errors[0] > errors[1] > 0  # noise makes every such error positive
    # Drawn from 0.8 + (c - 0.8)/2, the error is half the mean distance from 0.8.
    world = found["worlds"]["too sure and too unsure"]
    random = np.random.default_rng(TOY.seed)
    pool = np.clip(1 / (1 + np.exp(-np.abs(random.normal(2.0, 2.0, TOY.pool)))), 0.5, 1 - 1e-6)
    assert world["truth"] == pytest.approx(np.abs(pool - 0.8).mean() / 2)


# From a command -----------------------------------------------------------------------------------


def write_outputs(folder: Path) -> Path:
    """Write outputs as they are published: five networks on CIFAR-10, PathMNIST, CheXNet."""
    folder.mkdir()
    keys = ("logits_resnet50_psr", "probs_wrn16_4_netcal", "probs_vgg16_keras")
    keys += ("probs_lenet5_netcal", "probs_cleanlab_cv")
    made = [network(50, 4, seed, views=False) for seed in range(5)]
    outputs = {key: one.probs.astype(np.float32) for key, one in zip(keys, made, strict=True)}
    np.savez(folder / "cifar10_test_outputs.npz", labels=made[0].labels, **outputs)
    np.save(folder / "pathmnist_resnet50_scores.npy", np.log(made[1].probs))
    np.save(folder / "pathmnist_resnet50_targets.npy", made[1].labels)
    films = [f"{i // 2:08d}_{i % 2:03d}.png" for i in range(40)]
    np.savez(
        folder / "cxr14_chexnet_test.npz",
        probs=np.full((40, 2), 0.25, np.float32),
        labels=np.tile([0, 1], (40, 1)),
        image=films,
        classes=["Mass", "Effusion"],
    )
    return folder


def test_published_outputs_are_read(tmp_path: Path) -> None:
    """Logits become probabilities; of each patient the first film counts."""
    models = models_in(write_outputs(tmp_path / "data"))
    assert [model.data for model in models[4:]] == [
        "CIFAR-10",
        "PathMNIST",
        "ChestX-ray14, effusion",
    ]
    for model in models:
        np.testing.assert_allclose(model.network.probs.sum(axis=1), 1, atol=1e-12)
    assert len(models[-1].network.labels) == 20 and models[-1].network.labels.all()
    np.testing.assert_allclose(models[5].network.probs, network(50, 4, 1).probs, atol=1e-12)
    with pytest.raises(ValueError, match=r"must hold cifar10_test_outputs.npz, pathmnist"):
        models_in(tmp_path)


def test_a_run_and_its_tables_from_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained and sampled once; --judge-only makes the same tables without the data."""
    pytest.importorskip("torch")
    from experiments.robust_ece import sizes, sizes_networks
    from experiments.robust_ece.runs import Settings

    data, out = write_outputs(tmp_path / "data"), tmp_path / "out"
    random = np.random.default_rng(0)
    parts = {
        f"{part}_images": random.integers(0, 255, (cases, 28, 28)).astype(np.uint8)
        for part, cases in (("train", 24), ("val", 8), ("test", 30))
    }
    parts |= {
        f"{part}_labels": np.resize([[0], [1]], (len(parts[f"{part}_images"]), 1))
        for part in ("train", "val", "test")
    }
    np.savez(data / "breastmnist.npz", **parts)
    tiny = Settings(seeds=1, width=2, epochs={"breastmnist": 1}, betas=(1.0,), samples=3)
    monkeypatch.setattr(sizes_networks.train_networks, "__defaults__", (tiny,))
    monkeypatch.setattr(sizes, "Study", lambda: TOY)
    command = ["sample_sizes", "--out", str(out), "--repeats", "2"]
    run = CliRunner().invoke(app, [*command, "--data", str(data)])
    assert run.exit_code == 0, run.output
    text = (out / "tables.md").read_text(encoding="utf-8")
    assert "#### BreastMNIST, focal, seed 0: 30 cases" in text and "| RECE-M |" in text
    assert "| ECE, paper | 0.0295 | 0.056 ± 0.016 |" in text
    files = {file: file.stat().st_mtime_ns for file in out.glob("sizes-*.json")}
    assert len(files) == 2 + 7
    again = CliRunner().invoke(app, [*command, "--judge-only", "--quiet"])
    assert again.exit_code == 0, again.output
    assert (out / "tables.md").read_text(encoding="utf-8") == text
    assert {file: file.stat().st_mtime_ns for file in out.glob("sizes-*.json")} == files


def test_the_released_sce_of_one_case_is_its_error() -> None:
    """Two classes, one case: eq 4 is half of ECE, the released SCE is ECE; three: two thirds."""
    for classes, share in ((2, 1.0), (3, 2 / 3)):
        probs = np.full((1, classes), 0.3 / (classes - 1))
        probs[0, 0] = 0.7
        model = Model("x", "y", Network(probs, None, np.array([0])))
        found = sampled(model, Sampling(repeats=2, fractions=(1.0,)))
        assert found["full"]["ece"] == pytest.approx(0.3)
        assert found["full"]["sce"] == pytest.approx(0.3 / classes)
        assert found["released_sce_full"] == pytest.approx(0.3 * share)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is kept, judged in a copy."""
    place = tmp_path_factory.mktemp("judged")
    for file in KEPT.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    judge(place)
    return place


def test_the_kept_outputs_make_the_tables_of_the_page(judged: Path) -> None:
    """docs/reproduction/robust_ece.md has the tables that follow from what is kept."""
    truth = read_json(KEPT / "truth.json")
    assert truth["repeats"] == Study().repeats
    for pair in truth["pairs"].values():  # all six metrics at every size
        assert {m: len(shares) for m, shares in pair["right"].items()} == dict.fromkeys(METRICS, 7)
    page = (KEPT.parents[3] / "docs" / "reproduction" / "robust_ece.md").read_text(encoding="utf-8")
    lines = (judged / "tables.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|") and "---" not in line]
    missing = [row for row in rows if row not in page]
    assert len(rows) > 100 and not missing, missing[:3]


def closest_here(part: dict[str, Any], size: int, released: bool, relative: bool) -> list[str]:
    """Return the metrics whose mean is closest to their own value on all cases; ties all."""
    whole = {name: value for name, value in part["full"].items() if value is not None}
    drawn = {name: part["values"][name][size] for name in whole}
    if released:
        whole["sce"], drawn["sce"] = part["released_sce_full"], part["released_sce"][size]
    away = {
        name: abs(np.nanmean(np.array(drawn[name], float)) - value) / (value if relative else 1)
        for name, value in whole.items()
        if any(each is not None for each in drawn[name])
    }
    return [name for name, distance in away.items() if distance <= min(away.values()) + 1e-12]


def test_who_is_closest_in_our_cells(judged: Path) -> None:
    """The counts of the page: 17 networks at 5 sizes, ties count for each."""

    def counted(**how: bool) -> Counter[str]:
        cells = ((part, size) for part in parts for size in range(len(part["sizes"])))
        return Counter(name for cell in cells for name in closest_here(*cell, **how))

    parts = read_json(judged / "summary.json")["samples"]
    assert [len(part["sizes"]) for part in parts] == [5] * 17
    found = counted(released=True, relative=False)
    shown = {"robust_ece": 26, "adaptive_ece": 18, "robust_ece_mixture": 15, "sce": 13}
    assert {name: found[name] for name in shown} == shown
    assert max(found, key=lambda name: found[name]) == "robust_ece"
    found = counted(released=False, relative=False)
    assert (found["sce"], found["robust_ece"]) == (35, 21)
    found = counted(released=True, relative=True)
    assert (found["robust_ece"], found["kde_ece"], found["adaptive_ece"]) == (23, 22, 21)


# The views of RECE-M ------------------------------------------------------------------------------


def test_only_the_views_move_recem() -> None:
    """Where all views of an image are alike, drawing them again changes nothing; else it does."""
    seen = network(cases=40)
    assert seen.views is not None
    alike = np.repeat(seen.views[:1], 10, axis=0)
    own = moved(seen.probs, seen.labels, alike, 30, pairs=3)
    np.testing.assert_array_equal(own[:, 0], own[:, 1])
    other = moved(seen.probs, seen.labels, seen.views, 30, pairs=3)
    assert np.all(other[:, 0] != other[:, 1])
    whole = moved(seen.probs, seen.labels, alike, 40, pairs=1)  # all cases, in another order
    expected = rw.robust_ece_mixture(seen.probs, seen.labels, alike, observed_bins_only=True)
    assert whole[0, 0] == pytest.approx(expected, abs=1e-12)


# What the paper says besides its tables -----------------------------------------------------------


def test_noise_of_accuracies_not_of_densities_makes_the_bias_of_ece() -> None:
    """RECE's abstract has "large variance in the density estimation" as the reason.

    A calibrated model, 100 cases, confidences uniform in (1/2, 1]: with the true weights of the
    bins in the place of the estimated ones the bias stays; with the true accuracies it goes.
    """
    random = np.random.default_rng(0)
    edges = np.linspace(0, 1, 16)
    true_weights = np.diff(np.clip(2 * edges - 1, 0, 1))
    found: dict[str, list[float]] = {"as it is": [], "known weights": [], "known accuracies": []}
    for _ in range(2000):
        z = random.uniform(0.5, 1, 100)
        place = np.minimum((z * 15).astype(int), 14)
        sizes = np.bincount(place, minlength=15)
        gaps = np.bincount(place, (random.random(100) < z) - z, 15) / np.maximum(sizes, 1)
        found["as it is"].append(float(np.abs(gaps) @ sizes) / 100)
        found["known weights"].append(float(np.abs(gaps) @ true_weights))
        found["known accuracies"].append(float(np.abs(np.bincount(place, z - z)).sum()) / 100)
    bias = {name: np.mean(own) for name, own in found.items()}
    assert bias["known accuracies"] == 0
    assert bias["known weights"] == pytest.approx(bias["as it is"], rel=0.05)
    assert 0.07 < bias["as it is"] < 0.11


def test_rece_is_not_the_error_of_infinitely_many_confidences() -> None:
    """Section 3.1 calls eq 6 equivalent to sampling confidences from N(c, σ) and taking ECE.

    Of one case, right at 0.9, eq 6 is 0.1. Samples of N(0.9, 0.1) within [0, 1] have the mean
    0.9 - 0.1 φ(1) / Φ(1), and are all right: their ECE is 1 less that, 0.129.
    """
    eq6 = rw.robust_ece([[0.1, 0.9]], [1], sigma=0.1)
    mean = 0.9 - 0.1 * stats.norm.pdf(1) / stats.norm.cdf(1)
    drawn = stats.truncnorm(-9, 1, loc=0.9, scale=0.1).rvs(200_000, random_state=0)
    drawn = drawn[drawn > 0.5]  # all but one in 30,000, where the answer would be another
    sampled_error = rw.ece(np.stack((1 - drawn, drawn), axis=1), np.ones(len(drawn), np.int64))
    assert eq6 == pytest.approx(0.1, abs=1e-12)
    assert sampled_error == pytest.approx(1 - mean, abs=1e-3)
    assert 1 - mean == pytest.approx(0.1288, abs=1e-4)
    # Equivalent it would be with the mean of the samples of a bin in the place of c.
    spread, edges = stats.truncnorm(-9, 1, loc=0.9, scale=0.1), np.arange(16) / 15
    shares = np.diff(spread.cdf(edges))
    density = stats.norm.pdf((edges - 0.9) / 0.1)
    sums = 0.9 * shares - 0.1 * np.diff(density) / stats.norm.cdf(1)
    assert np.abs(shares - sums).sum() == pytest.approx(1 - mean, abs=1e-9)


def test_nothing_to_judge_is_said_before_the_simulation(tmp_path: Path) -> None:
    """The simulation takes minutes: an empty folder is refused first, and left empty."""
    with pytest.raises(InvalidInputError, match="must hold what was judged before"):
        judge(tmp_path, simulation=TOY)
    assert list(tmp_path.iterdir()) == []

"""The experiment with training losses, on made-up images in the layout of MedMNIST."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr, ndtri, softmax
from typer.testing import CliRunner

import raterwise as rw
from experiments.commands import app
from experiments.kept import read_json
from experiments.robust_ece import losses_paper, tops
from experiments.robust_ece.data import problem_in
from experiments.robust_ece.judging import judge, judged, network_of
from experiments.robust_ece.runs import (
    DATA,
    LOSS_NAMES,
    MORE_DATA,
    WEIGHTED,
    WIDTHS,
    Run,
    Settings,
    load_runs,
    pack,
    runs_of,
)
from experiments.robust_ece.spreads import (
    Network,
    Spread,
    differences_of,
    level_of,
    spreads_of,
    with_training,
)
from experiments.robust_ece.tables import METRICS, as_markdown, read_judged
from raterwise.datasets import read_medmnist
from raterwise.inference.settings import Settings as Judging
from raterwise.results import Estimate

torch = pytest.importorskip("torch")

from experiments.networks import ResNet8  # noqa: E402
from experiments.robust_ece import training_losses  # noqa: E402
from experiments.robust_ece.training_losses import (  # noqa: E402
    LOSSES,
    augmented_views,
    loss_of,
    train_all,
)

ROOT = Path(__file__).parents[1]
TINY = Settings(
    seeds=2, epochs=dict.fromkeys(DATA, 1), batch_size=20, width=2, samples=3, betas=(1.0, 5.0)
)
QUICK = Judging(resamples=50)


def medmnist(seed: int = 0, **sizes: int) -> dict[str, np.ndarray]:
    """Arrays as an official file has them: the brighter images are of class 1."""
    random = np.random.default_rng(seed)
    arrays = {}
    for part, cases in (sizes or {"train": 40, "val": 12, "test": 20}).items():
        labels = np.resize(np.array([[0], [1], [1]], np.uint8), (cases, 1))
        noise = random.integers(0, 156, (cases, 28, 28))
        arrays[f"{part}_images"] = (noise + 99 * labels[:, :, None]).astype(np.uint8)
        arrays[f"{part}_labels"] = labels
    return arrays


@pytest.fixture(name="data")
def folder_of_data(tmp_path: Path) -> Path:
    """A folder with one of the two data sets."""
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "breastmnist.npz", **medmnist())
    return folder


# The data -----------------------------------------------------------------------------------------


def test_the_official_layout_is_read(data: Path) -> None:
    """Images as they are, a single column of labels as classes, val as validation."""
    found = read_medmnist(data / "breastmnist.npz")
    assert found.train.images.shape == (40, 28, 28) and found.train.images.dtype == np.uint8
    assert found.validation.labels.tolist() == [0, 1, 1] * 4
    assert len(found.test.labels) == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"val_labels": None}, r"val_labels missing \(found: .*val_images"),
        ({"test_labels": np.zeros((3, 1), int)}, r"a row per image; got 3 for 20 images"),
        ({"train_labels": np.full((40, 1), -1)}, r"train_labels must not be negative; got -1"),
        ({"test_images": np.zeros((20, 28, 28))}, r"must be bytes .*; got float64 \(20, 28, 28\)"),
        ({"val_labels": np.full((12, 1), 0.5)}, r"val_labels: must be whole numbers; got 0.5"),
    ],
)
def test_what_is_not_that_layout_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """The array, the rule and the value."""
    arrays = {key: value for key, value in {**medmnist(), **change}.items() if value is not None}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_medmnist(tmp_path / "x.npz")


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    """No file, a text and a plain array are not an NPZ file."""
    with pytest.raises(ValueError, match=r"nothing.npz: no such file"):
        read_medmnist(tmp_path / "nothing.npz")
    (tmp_path / "text.npz").write_text("no", encoding="utf-8")
    np.save(tmp_path / "plain.npy", np.zeros(3))
    for name in ("text.npz", "plain.npy"):
        with pytest.raises(ValueError, match=rf"{name}: cannot be read as NPZ"):
            read_medmnist(tmp_path / name)


def test_folds_keep_together_what_belongs_together(tmp_path: Path) -> None:
    """Every image is judged once; no recording both trains and judges; duplicates are found."""
    random = np.random.default_rng(0)
    source = np.repeat(np.arange(20), 3)
    images = random.integers(0, 255, (60, 32, 32)).astype(np.uint8)
    np.savez(tmp_path / "pocus.npz", images=images, labels=source % 4, source=source)
    found = problem_in(tmp_path, "pocus")
    assert found is not None and problem_in(tmp_path, "busi") is None
    judged_once = np.concatenate([fold.test for fold in found.folds])
    assert sorted(judged_once) == list(range(60))
    for fold in found.folds:
        assert not set(source[fold.train]) & set(source[fold.test])
        assert not set(source[fold.validation]) & set(source[fold.test])
        assert len(fold.train) + len(fold.validation) + len(fold.test) == 60
    images[7] = images[3] + (images[3] < 255)  # the same picture, a little brighter
    np.savez(tmp_path / "busi.npz", images=images, labels=source % 3)
    busi = problem_in(tmp_path, "busi")
    assert busi is not None and busi.groups is not None
    assert busi.groups[7] == busi.groups[3] and len(np.unique(busi.groups)) == 59


def test_lesions_of_the_test_images_train_nothing(tmp_path: Path) -> None:
    """A lesion that was photographed twice is judged, not learned."""
    split = np.array(["train", "train", "val", "test", "test"])
    np.savez(
        tmp_path / "dermamnist.npz",
        images=np.zeros((5, 28, 28, 3), np.uint8),
        labels=np.array([0, 1, 2, 3, 4], np.uint8),
        split=split,
        lesion_id=np.array(["a", "b", "c", "b", "d"]),
    )
    found = problem_in(tmp_path, "dermamnist")
    assert found is not None
    assert [rows.tolist() for rows in found.folds[0]] == [[0], [2], [3, 4]]


def test_every_kind_of_data_has_its_losses() -> None:
    """Seven losses of which three have two weights, and RCR with two more σ on the newer data."""
    settings = replace(TINY, seeds=1)
    assert len(runs_of(settings, ["breastmnist"])) == 10
    assert len(runs_of(settings, ["retinamnist"])) == 12
    assert len(runs_of(settings, ["pocus"])) == 5 * 12


def test_networks_of_all_folds_are_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained fold by fold, packed into one file, read back as one run with its recordings."""
    run = Run("pocus", "focal", 1.0, 0)
    five = [replace(run, fold=fold) for fold in range(5)]
    monkeypatch.setattr(training_losses, "runs_of", lambda settings, data: five)
    random = np.random.default_rng(0)
    source = np.repeat(np.arange(10), 2)
    images = random.integers(0, 255, (20, 32, 32)).astype(np.uint8)
    np.savez(tmp_path / "pocus.npz", images=images, labels=source % 2, source=source)
    tiny = replace(TINY, seeds=1, epochs={"pocus": 1}, width=1, samples=2, betas=(1.0,))
    files = train_all(tmp_path, tmp_path / "nets", tiny, data=["pocus"])
    assert len(files) == 5
    (tmp_path / "packed").mkdir()
    pack(tmp_path / "nets", tmp_path / "packed", "pocus")
    one_by_one, packed = (dict(load_runs(tmp_path / n)) for n in ("nets", "packed"))
    assert set(one_by_one) == set(packed) == {run}
    order = one_by_one[run]["test_index"]
    assert sorted(order) == list(range(20))
    np.testing.assert_array_equal(packed[run]["test_groups"], source[order])
    np.testing.assert_allclose(
        packed[run]["test_logits"], one_by_one[run]["test_logits"], rtol=1e-3, atol=1e-3
    )
    assert packed[run]["best_logits"].shape == (20, 2)
    files[0].unlink()  # without one of its folds a run is not judged
    assert not dict(load_runs(tmp_path / "nets"))


# Losses, network, views ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        ("cross-entropy", log(2)),
        ("focal", log(2) / 2),
        ("flsd", log(2) / 8),  # γ = 3 from 0.5 on
        ("focal+mdca", log(2) / 2 + 5 * 0.25),  # |0.5 - 3/4| for either class
        ("dca", log(2) + 5 * 0.25),  # the first class is predicted, of which one in four is
        ("focal+rcr", log(2) / 2 + 5 * 0.25),  # equal probabilities: smoothing changes nothing
        ("focal+rcr-paper", log(2) / 2 + 5 * (1 - 1 / 4) / 2),  # (1 - 1/N)/K, whatever is said
    ],
)
def test_losses_by_hand(loss: str, value: float) -> None:
    """Four cases of even odds, three of them of the second class; β = 5."""
    found = loss_of(Run("breastmnist", loss, 5.0, 0))(torch.zeros(4, 2), torch.tensor([0, 1, 1, 1]))
    assert found.item() == pytest.approx(value)


def test_every_loss_has_a_name() -> None:
    """What is trained and what is judged go by the same names, in the order of the table."""
    assert tuple(LOSSES) == (*LOSS_NAMES, *WIDTHS) and set(WEIGHTED) < set(LOSS_NAMES)


def test_the_network_is_small() -> None:
    """0.3 million weights, logits of each class."""
    network = ResNet8(3)
    assert sum(p.numel() for p in network.parameters()) == pytest.approx(3e5, rel=0.05)
    assert network(torch.zeros(2, 1, 28, 28)).shape == (2, 3)


def test_views_turn_and_flip_as_often_as_they_should() -> None:
    """A quarter is flipped, a round disc stays, a spot turns by ten degrees at most."""
    half = torch.zeros(400, 1, 28, 28)
    half[..., :14] = 1
    views = torch.stack(list(augmented_views(half, 5)))
    flipped = (views[..., :14].mean(dim=(2, 3, 4)) < 0.5).float().mean()
    assert flipped.item() == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 2000) ** 0.5)
    assert torch.equal(views, torch.stack(list(augmented_views(half, 5))))
    row, column = torch.meshgrid(*[torch.arange(28) - 13.5] * 2, indexing="ij")
    disc = torch.exp(-(row**2 + column**2) / 50)[None, None]
    assert (torch.cat(list(augmented_views(disc, 20))) - disc).abs().max() < 0.02
    spot = torch.exp(-(row**2 + (column - 8) ** 2) / 4)[None, None]
    seen = torch.cat(list(augmented_views(spot, 50)))[:, 0]
    mass = seen.sum(dim=(1, 2))
    y, x = (seen * row).sum(dim=(1, 2)) / mass, (seen * column).sum(dim=(1, 2)) / mass
    degrees = torch.rad2deg(torch.atan2(y, x.abs()))
    assert 7 < degrees.abs().max() < 10.5 and degrees.min() < 0 < degrees.max()


# Training -----------------------------------------------------------------------------------------


def test_shards_cover_every_network_once() -> None:
    """Each is in one shard, whatever their number; names tell them apart; seeds come in turn."""
    runs = runs_of(Settings())
    # Ten seeds of three losses and of three with three weights; four of the printed RCR.
    assert len(runs) == 2 * (10 * (3 + 3 * 3) + 4) == len({run.name for run in runs})
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    for parts in (1, 7, 12):
        sharded = [run for part in range(parts) for run in runs[part::parts]]
        assert sorted(sharded, key=runs.index) == runs


def test_shards_train_what_one_process_would(data: Path, tmp_path: Path) -> None:
    """Two processes' files hold the digits of one's; what a shard is not."""
    settings = replace(TINY, seeds=1)
    whole = train_all(data, tmp_path / "whole", settings)
    parts = [train_all(data, tmp_path / "parts", settings, shard=(i, 2)) for i in (0, 1)]
    assert sorted(f.name for part in parts for f in part) == sorted(f.name for f in whole)
    both = zip(load_runs(tmp_path / "whole"), load_runs(tmp_path / "parts"), strict=True)
    for (run, mine), (other, theirs) in both:
        assert run == other
        np.testing.assert_array_equal(mine["test_view_logits"], theirs["test_view_logits"])
    with pytest.raises(ValueError, match=r"shard: must be \(i, n\) with 0 <= i < n; got \(2, 2\)"):
        train_all(data, tmp_path / "parts", TINY, shard=(2, 2))


def test_training_is_taken_up_where_it_stopped(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there is not trained again; a damaged file, another recipe and other images are."""
    settings, done = replace(TINY, seeds=1, betas=(1.0,)), []

    def counted(run: Run, settings: Settings, *_: Any) -> dict[str, np.ndarray]:
        done.append(run.loss)
        if len(done) == 3:
            raise KeyboardInterrupt
        return {"test_logits": np.zeros((20, 2))}

    monkeypatch.setattr(training_losses, "_trained", counted)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        train_all(data, out, settings)
    assert [f.name for f in sorted(out.iterdir())] == [
        "breastmnist-cross-entropy-0.npz",
        "breastmnist-focal-0.npz",
    ]
    files = train_all(data, out, settings)
    assert done == [*LOSS_NAMES[:3], *LOSS_NAMES[2:]]
    files[1].write_bytes(files[1].read_bytes()[:100])
    train_all(data, out, replace(settings, seeds=1))
    assert done[8:] == ["focal"]
    train_all(data, out, replace(settings, weight_decay=0.1))
    assert done[9:] == list(LOSS_NAMES)
    np.savez(data / "breastmnist.npz", **medmnist(seed=1))
    train_all(data, out, replace(settings, weight_decay=0.1))
    assert len(done) == 9 + 2 * 7


def test_the_printed_rcr_trains_as_focal_alone(data: Path, tmp_path: Path) -> None:
    """Without a gradient it changes nothing but the last digits; the smooth form changes more."""
    settings = replace(TINY, seeds=1, epochs={"breastmnist": 3}, width=4, betas=(5.0,))
    train_all(data, tmp_path / "out", settings)
    found = {run.loss: arrays["test_logits"] for run, arrays in load_runs(tmp_path / "out")}
    assert np.abs(found["focal+rcr-paper"] - found["focal"]).max() < 1e-3
    assert np.abs(found["focal+rcr"] - found["focal"]).max() > 1e-2


@pytest.mark.parametrize(
    ("module", "absent"),
    [("training_losses", "numba sklearn torchmetrics rich"), ("judging", "torch")],
)
def test_each_half_runs_where_the_other_cannot(module: str, absent: str) -> None:
    """Training needs no compiler and no scikit-learn; judging needs no PyTorch."""
    code = f"import sys, experiments.robust_ece.{module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not set(absent.split()) & set(done.stdout.split())


def test_folders_without_the_data_are_named(tmp_path: Path) -> None:
    """No file, or images in colour."""
    with pytest.raises(ValueError, match=r"must hold breastmnist.npz or pneumoniamnist.npz"):
        train_all(tmp_path, tmp_path / "out", TINY)
    arrays = medmnist()
    colour = {k: np.stack([v] * 3, -1) for k, v in arrays.items() if k.endswith("images")}
    np.savez(tmp_path / "pneumoniamnist.npz", **{**arrays, **colour})
    with pytest.raises(ValueError, match=r"pneumoniamnist.npz: must hold grey images with one"):
        train_all(tmp_path, tmp_path / "out", TINY)


# Intervals ----------------------------------------------------------------------------------------


def networks(seeds: int, cases: int, random: np.random.Generator) -> list[Network]:
    """Networks that are right at random: cases differ in how hard, networks in how good."""
    labels = random.integers(0, 2, cases)
    hard, good = random.normal(0, 1, cases), random.normal(0.8, 0.4, (seeds, 1))
    right = random.normal(size=(seeds, cases)) < good + hard
    out = []
    for hits in right:
        said = np.where(hits, labels, 1 - labels)
        probs = np.where(said[:, None] == [0, 1], 0.8, 0.2) + 0.0
        views = np.clip(probs + random.normal(0, 0.05, (4, cases, 1)) * [1, -1], 0, 1)
        out.append(Network(probs, views, labels))
    return out


def test_metrics_are_those_of_the_library() -> None:
    """Each network's values are what the public functions say."""
    three = networks(3, 60, np.random.default_rng(0))
    found = spreads_of(three, QUICK)
    for name in ("accuracy", "ece", "sce", "robust_ece", "brier"):
        values = [getattr(rw, name)(n.probs, n.labels) for n in three]
        np.testing.assert_allclose(found[name].each, values, atol=1e-12)
    mixture = [rw.robust_ece_mixture(n.probs, n.labels, n.views) for n in three]
    np.testing.assert_allclose(found["robust_ece_mixture"].each, mixture, atol=1e-12)
    for spread in found.values():
        assert spread.mean.low <= spread.each.mean() <= spread.mean.high
        # Resampled around the value, by what a mean of 60 cases can vary.
        assert spread.replicates.mean() == pytest.approx(spread.each.mean(), abs=0.05)


def test_the_interval_of_one_network_is_binomial() -> None:
    """One seed leaves the test cases: 0.8 ± 1.96 sqrt(0.8 · 0.2 / 400)."""
    labels = np.resize([0, 1], 400)
    said = np.where(np.arange(400) < 80, 1 - labels, labels)
    probs = np.where(said[:, None] == [0, 1], 0.8, 0.2) + 0.0
    one = Network(probs, np.stack([probs] * 3), labels)
    found = level_of(spreads_of([one], Judging(resamples=2000))["accuracy"], 0.95)
    assert found["value"] == pytest.approx(0.8) and found["sd_seeds"] == 0
    ends = [found["low"], found["high"]]
    assert ends == pytest.approx([0.8 - 0.0392, 0.8 + 0.0392], abs=0.004)
    # It says 0.8 and is right 0.8 of the time: perfect calibration is not rejected.
    assert level_of(spreads_of([one], QUICK)["ece"], 0.95)["low"] == 0


def test_both_sources_of_chance_add_in_quadrature() -> None:
    """Cases ± 3, seeds ± 4: ± 5. Three seeds: t = 4.3027 at 95 %, sd 1 / sqrt(3)."""
    half = 4.302652729911275 / np.sqrt(3)
    value, low, high = with_training(np.array([9.0, 10.0, 11.0]), 10.0, 10.0, 0.95)
    assert (value, low, high) == pytest.approx((10, 10 - half, 10 + half))
    each = np.array([9.0, 10.0, 11.0]) * 4 / half
    middle = each.mean()
    _, low, high = with_training(each, middle - 3, middle, 0.95)
    assert (low, high) == pytest.approx((middle - 5, middle + 4))


def test_ends_stay_where_a_metric_can_be() -> None:
    """An error is not below 0, an accuracy not above 1; a Brier score of three classes may be 2."""
    each = np.array([0.1, 0.9])  # 0.5 ± 12.7 · 0.4
    ends = {}
    for metric in ("accuracy", "ece", "robust_ece_mixture", "brier"):
        found = level_of(Spread(each, Estimate(metric, 0.5, 0.4, 0.6), each), 0.95)
        ends[metric] = (found["low"], found["high"])
        assert (found["low_cases"], found["high_cases"]) == (0.4, 0.6)
        assert found["sd_seeds"] == pytest.approx(0.4 * np.sqrt(2))
    assert ends.pop("brier") == (0, 2)
    assert set(ends.values()) == {(0, 1)}


def test_replicates_are_the_mean_over_networks() -> None:
    """Of a network and its opposite, right where the other errs: accuracy is ½ in every draw."""
    labels = np.resize([0, 1], 40)
    said = np.where(np.arange(40) % 4 < 1, 1 - labels, labels)
    pair = [np.where(own[:, None] == [0, 1], 0.8, 0.2) + 0.0 for own in (said, 1 - said)]
    found = spreads_of([Network(probs, None, labels) for probs in pair], QUICK)["accuracy"]
    assert list(found.each) == [0.75, 0.25]
    np.testing.assert_allclose(found.replicates, 0.5)


def test_differences_are_paired_by_seed_and_case() -> None:
    """What both losses share cancels: seeds that differ by 10 say nothing of a gap of 1."""
    random = np.random.default_rng(0)
    shared, own = random.normal(0, 5, 2000), random.normal(0, 0.1, 2000)
    pair = [
        {"brier": Spread(np.array([v - 10, v, v + 10]), Estimate("brier", v, 0, 99), v + drawn)}
        for v, drawn in ((21.0, shared + own), (20.0, shared))
    ]
    settings = Judging(resamples=2000)
    found = differences_of(*pair, cases=10**6, settings=settings)["brier"]
    assert found["difference"] == 1
    assert [found["low"], found["high"]] == pytest.approx([1 - 0.196, 1 + 0.196], abs=0.02)
    same = differences_of(pair[0], pair[0], cases=10**6, settings=settings)["brier"]
    assert same == {"difference": 0, "low": 0, "high": 0}
    # Five cases: Student's t of four degrees of freedom, 2.776, and a variance of 5/4.
    few = differences_of(*pair, cases=5, settings=settings)["brier"]
    assert few["high"] - 1 == pytest.approx((found["high"] - 1) * 2.776 / 1.96 * 1.25**0.5, rel=0.1)


def test_the_interval_covers_new_cases_and_new_seeds() -> None:
    """Of 60 studies of 4 networks and 80 cases, the truth Φ(0.8 / sqrt(2.16)) is in 95 %."""
    truth = ndtr(0.8 / np.sqrt(1 + 1 + 0.4**2))
    random, settings = np.random.default_rng(3), Judging(resamples=100)
    inside = cases_alone = 0
    for _ in range(60):
        spread = spreads_of(networks(4, 80, random), settings)["accuracy"]
        found = level_of(spread, 0.95)
        inside += found["low"] <= truth <= found["high"]
        cases_alone += found["low_cases"] <= truth <= found["high_cases"]
    assert inside >= 53  # P(fewer of 60 at 95 %) < 0.02
    assert cases_alone < inside


def sure_networks(
    strength: float, cases: tuple[np.ndarray, np.ndarray], random: np.random.Generator
) -> list[Network]:
    """Eight networks that multiply the true log-odds by about `strength`: 1 is calibrated."""
    odds, labels = cases
    out = []
    for factor in strength + random.normal(0, 0.15, 8):
        p = expit(factor * (odds + random.normal(0, 0.3, (4, len(odds)))))
        q = expit(factor * odds)
        out.append(Network(np.stack([1 - q, q], 1), np.stack([1 - p, p], 2), labels))
    return out


def true_errors(strength: float) -> dict[str, float]:
    """ECE and SCE with known probabilities: log-odds on a fine grid, factors at their quantiles."""
    odds = 2 * ndtri((np.arange(40_000) + 0.5) / 40_000)
    errors = []
    for factor in strength + 0.15 * ndtri((np.arange(20) + 0.5) / 20):
        said = expit(factor * np.abs(odds))
        gap = expit(np.abs(odds)) - said
        place = np.minimum((15 * said).astype(int), 14)
        errors.append(np.abs(np.bincount(place, gap)).sum() / len(odds))
    # Both classes err alike: half of the cases are predicted as each, and the mean is over two.
    return {"ece": float(np.mean(errors)), "sce": float(np.mean(errors)) / 2}


def test_differences_of_errors_are_not_pulled_to_zero_by_noise() -> None:
    """Noise hides how good the calibrated networks are; the interval must still reach the truth."""
    truth = {name: true_errors(2.0)[name] - true_errors(1.0)[name] for name in ("ece", "sce")}
    random, settings = np.random.default_rng(5), Judging(resamples=100)
    inside = dict.fromkeys(truth, 0)
    for _ in range(12):
        odds = random.normal(0, 2, 156)
        cases = odds, (random.random(156) < expit(odds)).astype(np.int64)
        pair = [spreads_of(sure_networks(s, cases, random), settings) for s in (2.0, 1.0)]
        found = differences_of(*pair, cases=156, settings=settings)
        for name, value in truth.items():
            inside[name] += found[name]["low"] <= value <= found[name]["high"]
    assert min(inside.values()) >= 10  # P(fewer of 12 at 95 %) < 0.02


# Judging ------------------------------------------------------------------------------------------


def made_up_runs(seeds: int = 2, cases: int = 40) -> dict[Run, dict[str, np.ndarray]]:
    """Kept arrays as training leaves them.

    One validation label in five is against the logits, whose gap should then be log(4) = 1.39.
    """
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, cases)
    against = np.where(np.arange(cases) % 5 == 0, 1 - labels, labels)
    out = {}
    for run in runs_of(replace(TINY, seeds=seeds), ["breastmnist"]):
        sharp = 1.0 if run.beta == 1.0 else 1.4 if run.loss == "dca" else 0.5
        towards = np.where(labels[:, None] == [0, 1], sharp, 0.0)
        logits = towards + random.normal(0, 0.3, (4, cases, 2))
        out[run] = {
            "test_logits": logits[0],
            "test_view_logits": logits[1:],
            "test_labels": labels,
            "validation_logits": towards,
            "validation_labels": against,
            "test_fold": np.zeros(cases, int),
            "validation_fold": np.zeros(cases, int),
            "train_accuracy": np.asarray(1.0),
            "seconds": np.asarray(2.0),
        }
    return out


def test_every_weight_has_a_row_and_its_validation_images() -> None:
    """Every loss stands with β = 1, those with a term to weigh once more with β = 5."""
    runs = made_up_runs()
    found = judged(runs, QUICK)
    names = list(found["metrics"])
    assert names == [
        *LOSS_NAMES,
        *("focal+mdca, β = 5", "dca, β = 5", "focal+rcr, β = 5"),
        "cross-entropy, then temperature",
    ]
    brier = [
        rw.brier(softmax(own["test_logits"], axis=1), own["test_labels"])
        for own in (runs[Run("breastmnist", "dca", 5.0, seed)] for seed in (0, 1))
    ]
    assert found["metrics"]["dca, β = 5"]["brier"]["value"] == pytest.approx(np.mean(brier))
    assert found["metrics"]["dca, β = 5"]["brier"]["each"] == pytest.approx(brier, abs=1e-6)
    # The logits say 1 for the label and 0 for the other, and are right four times in five.
    expected = 0.8 * np.log1p(np.exp(-1)) + 0.2 * np.log1p(np.exp(1))
    assert found["validation_nll"]["focal"] == {"1": pytest.approx(expected)}
    assert found["validation"]["flsd"]["accuracy"] == pytest.approx(0.8)
    assert found["validation"]["flsd"]["confidence"] == pytest.approx(1 / (1 + np.exp(-1)))
    # Of the least weight: with β = 5 the logits of DCA say 1.4.
    assert found["validation"]["dca"]["confidence"] == pytest.approx(1 / (1 + np.exp(-1)))
    assert [own[0] for own in found["temperatures"]] == pytest.approx([1 / log(4)] * 2, rel=1e-6)
    assert list(found["validation_nll"]["dca"]) == ["1", "5"]
    # The table of the validation images: by weight, how often right, how sure.
    found["validation_nll"]["dca"] = {"10": 0.3, "5": 0.2, "1": 0.1}
    found["validation"]["dca"], found["cases"]["validation"] = (
        {"accuracy": 0.8, "confidence": 0.7},
        12,
    )
    text = as_markdown([found])
    assert "The 12 validation images" in text
    assert "| loss | β = 1 | β = 5 | β = 10 | accuracy | confidence |" in text
    assert "| dca | 0.100 | 0.200 | 0.300 | 0.800 | 0.700 |" in text
    assert (found["seeds"], found["cases"]["test"]) == (2, 40)
    assert found["seconds"] == 2.0 * 20
    assert found["train_accuracy"]["dca"] == {"1": 1.0, "5": 1.0}
    ece = [
        rw.ece(softmax(runs[Run("breastmnist", "flsd", 1.0, s)]["test_logits"], axis=1),
               runs[Run("breastmnist", "flsd", 1.0, s)]["test_labels"])
        for s in (0, 1)
    ]  # fmt: skip
    assert found["metrics"]["flsd"]["ece"]["value"] == pytest.approx(np.mean(ece))


def test_a_temperature_leaves_the_ranking_alone() -> None:
    """The same accuracy as cross-entropy, seed by seed, and other probabilities."""
    found = judged(made_up_runs(), QUICK)
    gap = {
        row["metric"]: row
        for row in found["differences"]
        if (row["loss"], row["reference"]) == ("cross-entropy, then temperature", "cross-entropy")
    }
    assert gap["accuracy"]["difference"] == gap["accuracy"]["high"] == 0
    assert gap["brier"]["difference"] != 0


def test_each_fold_has_its_own_temperature() -> None:
    """Fitted to its validation images alone, applied to its test images and their views."""
    runs, second = made_up_runs(seeds=1), np.arange(40) >= 20
    for arrays in runs.values():
        arrays["test_fold"] = arrays["validation_fold"] = second.astype(int)
        arrays["validation_logits"] = arrays["validation_logits"] * np.where(second, 2, 1)[:, None]
    found = judged(runs, QUICK)
    assert found["temperatures"] == [pytest.approx([1 / log(4), 2 / log(4)], rel=1e-6)]
    own = runs[Run("breastmnist", "cross-entropy", 1.0, 0)]
    by = np.where(second, 2, 1)[:, None] / log(4)
    probs, views = (softmax(own[key] / by, axis=-1) for key in ("test_logits", "test_view_logits"))
    labels = own["test_labels"]
    name = "cross-entropy, then temperature"
    metrics = found["metrics"][name]
    assert metrics["brier"]["value"] == pytest.approx(rw.brier(probs, labels))
    mixture = rw.robust_ece_mixture(probs, labels, views)
    assert metrics["robust_ece_mixture"]["value"] == pytest.approx(mixture)
    said = network_of(own, np.array([1, 2]) / log(4))
    assert said.views is not None
    np.testing.assert_allclose(said.views, views)
    assert found["confidence"][name] == pytest.approx(probs.max(axis=1).mean())


def test_images_that_belong_together_are_drawn_together() -> None:
    """Every image twice, as one of a pair: the values and the intervals of half as many images."""
    runs = made_up_runs()
    doubled = {}
    for run, arrays in runs.items():
        own = {**arrays, "test_groups": np.repeat(np.arange(40), 2)}
        for key in ("test_logits", "test_labels", "test_fold"):
            own[key] = np.repeat(arrays[key], 2, axis=0)
        own["test_view_logits"] = np.repeat(arrays["test_view_logits"], 2, axis=1)
        doubled[run] = own
    once, twice = judged(runs, QUICK), judged(doubled, QUICK)
    assert (once["cases"]["test"], twice["cases"]["test"]) == (40, 80)
    for name, own in once["metrics"].items():
        assert twice["metrics"][name].keys() == own.keys()
        for metric in ("accuracy", "brier"):
            after = twice["metrics"][name][metric]
            assert after.pop("each") == pytest.approx(own[metric].pop("each"))
            assert after == pytest.approx(own[metric])
    for before, after in zip(once["differences"], twice["differences"], strict=True):
        if before["metric"] in ("accuracy", "brier"):
            ends = [[row[key] for key in ("difference", "low", "high")] for row in (before, after)]
            assert ends[1] == pytest.approx(ends[0])


def test_differences_are_bold_where_they_are_printed_as_such() -> None:
    """An end that rounds to 0 is not called different, and there is no -0."""
    found = judged(made_up_runs(), QUICK)
    rows = found["differences"]
    for row, (value, low, high) in zip(
        rows, [(0.002, 0.0006, 0.004), (0.002, 0.0004, 0.004), (-0.0001, -0.002, 0.1)], strict=False
    ):
        row.update(difference=value, low=low, high=high)
    line = "**+0.002 [+0.001, +0.004]** | +0.002 [+0.000, +0.004] | +0.000 [-0.002, +0.100] |"
    assert f"| {rows[0]['loss']} | {line}" in as_markdown([found])


def test_seeds_that_some_loss_lacks_are_left_out() -> None:
    """A cut run is judged by the seeds that all have; a loss that nobody trained is named."""
    runs = made_up_runs()
    del runs[Run("breastmnist", "flsd", 1.0, 1)]
    runs[Run("breastmnist", "focal", 1.0, 1)]["train_accuracy"] = np.asarray(0.0)
    found = judged(runs, QUICK)
    assert (found["seeds"], found["train_accuracy"]["focal"]) == (1, {"1": 1.0})
    assert found["seconds"] == 2.0 * 10
    del runs[Run("breastmnist", "flsd", 1.0, 0)]
    with pytest.raises(ValueError, match=r"at least one common seed; flsd missing"):
        judged(runs, QUICK)


def test_a_loss_with_fewer_seeds_is_compared_by_these() -> None:
    """The printed RCR has four of six; the others keep six, and say how many it has."""
    runs = made_up_runs(seeds=6)
    found = judged(runs, QUICK)
    assert (found["seeds"], found["fewer_seeds"]) == (6, {"focal+rcr-paper": 4})

    def brier(loss: str, seeds: range) -> float:
        own = [runs[Run("breastmnist", loss, 1.0, seed)] for seed in seeds]
        return float(
            np.mean([rw.brier(softmax(a["test_logits"], 1), a["test_labels"]) for a in own])
        )

    values = {name: own["brier"]["value"] for name, own in found["metrics"].items()}
    assert values["focal"] == pytest.approx(brier("focal", range(6)))
    assert values["focal+rcr-paper"] == pytest.approx(brier("focal+rcr-paper", range(4)))
    asked = {"loss": "focal+rcr-paper", "reference": "focal", "metric": "brier"}
    (gap,) = (row for row in found["differences"] if asked.items() <= row.items())
    expected = brier("focal+rcr-paper", range(4)) - brier("focal", range(4))
    assert gap["difference"] == pytest.approx(expected)
    assert "training runs of each loss: 6, focal+rcr-paper 4." in as_markdown([found])


def test_other_widths_are_rows_of_their_own() -> None:
    """RCR with σ = 0.05 is judged by its own networks, under the weight they were trained with."""
    runs = made_up_runs()
    for seed in (0, 1):
        for loss in WIDTHS:
            like = runs[Run("breastmnist", "focal", 1.0, seed)]
            logits = like["test_logits"] * (3 if loss.endswith("0.05") else -1)
            runs[Run("breastmnist", loss, 5.0, seed)] = {**like, "test_logits": logits}
    found = judged(runs, QUICK)["metrics"]
    for seed in (0, 1):
        own = runs[Run("breastmnist", "focal+rcr-0.05", 5.0, seed)]
        brier = rw.brier(softmax(own["test_logits"], axis=1), own["test_labels"])
        assert found["focal+rcr, β = 5, σ = 0.05"]["brier"]["each"][seed] == pytest.approx(
            brier, abs=1e-6
        )
    right = [found[f"focal{own}"]["accuracy"]["value"] for own in ("", "+rcr, β = 5, σ = 0.2")]
    assert sum(right) == pytest.approx(1)


def test_foreign_files_are_named(tmp_path: Path) -> None:
    """An NPZ file of another kind, or none at all, is no network."""
    with pytest.raises(ValueError, match=r"must hold the NPZ files of trained networks"):
        judge(tmp_path)
    np.savez(tmp_path / "breastmnist.npz", **medmnist())
    with pytest.raises(ValueError, match=r"breastmnist.npz: must be a network that .*KeyError"):
        judge(tmp_path)
    with pytest.raises(ValueError, match=r"resamples: must be at least 2; got 0"):
        judge(tmp_path, resamples=0)


def test_the_command_trains_and_writes_tables(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both steps; the second time the networks are only judged, and give the same page."""
    out, asked = tmp_path / "out", []
    real = train_all

    def quick(folder: Path, to: Path, settings: Settings, **rest: Any) -> list[Path]:
        asked.append((settings, rest["device"]))
        return real(folder, to, replace(TINY, seeds=settings.seeds), **rest)

    monkeypatch.setattr(training_losses, "train_all", quick)
    command = ["robust_ece", "--data", str(data), "--out", str(out)]
    options = ["--seeds", "2", "--resamples", "20"]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 0, result.output
    assert asked == [(Settings(seeds=2), "cpu")]
    text = (out / "tables.md").read_text(encoding="utf-8")
    assert text.strip() in result.stdout
    assert "### BreastMNIST" in text and "20 test images, training runs of each loss: 2." in text
    assert text.count("| focal+rcr-paper | ") == 4
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    # Of the epochs that were best on the test images there are three rows, without RECE-M.
    assert len(summary[0]["differences"]) == 2 * (6 * (len(summary[0]["metrics"]) - 1) - 3)
    again = CliRunner().invoke(app, [*command, "--judge-only", "--resamples", "20", "--quiet"])
    assert again.exit_code == 0 and again.stdout == "" and len(asked) == 1
    assert (out / "tables.md").read_text(encoding="utf-8") == text


def test_bad_input_is_one_line(data: Path, tmp_path: Path) -> None:
    """No data, a device that is not there, a weight that is no number: one line, exit code 2."""
    for options in (
        [],
        ["--data", str(tmp_path)],
        ["--data", str(data), "--device", "abacus"],
        ["--data", str(data), "--betas", "1,five"],
    ):
        command = ["robust_ece", *options, "--out", str(tmp_path / "o")]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.output


# What is kept ------------------------------------------------------------------------------------

KEPT = ROOT / "experiments" / "outputs" / "robust_ece"


def test_kept_values_make_the_tables_of_the_docs(tmp_path: Path) -> None:
    """Without data and networks; every row of RECE Table 2 and of ours stands on the page."""
    for file in KEPT.glob("*.json.xz"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    command = ["robust_ece", "--out", str(tmp_path), "--judge-only", "--quiet"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    made = (tmp_path / "tables.md").read_text(encoding="utf-8").splitlines()
    page = (ROOT / "docs" / "reproduction" / "robust_ece.md").read_text(encoding="utf-8")
    ours = page.partition("\n## Tables\n")[2].partition("\n## Table 1 and Figs")[0].splitlines()
    rows = [line for line in ours if line.startswith("|")]
    assert len(rows) > 200 and [row for row in rows if row not in made] == []
    beside = "\n".join(made).partition("### BUSI")[0].splitlines()
    assert len(beside) > 50 and [line for line in beside if line and line not in page] == []


def by_hand(top: tops.Tops) -> dict[str, float]:
    """Accuracy, ECE, RECE's SCE and RECE-G from their equations, with 15 bins and σ = 0.1."""
    z, right = top.confidence, top.right.astype(float)
    edges = np.arange(16) / 15
    inside = np.minimum((z * 15).astype(int), 14)
    gaps = [abs((right - z)[inside == i].sum()) for i in range(15)]
    by_class = [
        abs((right - z)[(inside == i) & (top.predicted == k)].sum())
        for i in range(15)
        for k in range(10)
    ]
    reached = ndtr((edges - z[:, None]) / 0.1)
    share = np.diff(reached, axis=1) / (reached[:, -1:] - reached[:, :1])
    return {
        "accuracy": float(right.mean()),
        "ece": sum(gaps) / len(z),
        "sce": sum(by_class) / len(z) / 10,
        "robust_ece": float(np.abs(((right - z)[:, None] * share).mean(axis=0)).sum()),
    }


@pytest.mark.parametrize("data", [name for name in MORE_DATA if name.startswith("cifar10")])
def test_values_of_each_network_follow_from_its_kept_outputs(data: str) -> None:
    """Those of focal with and without RCR, to what seven bits of a confidence allow."""
    networks = tops.load(KEPT / f"tops-{data}.npz.xz")
    assert len(networks) == 30
    metrics = read_json(KEPT / f"{data}.json")["metrics"]
    rows = {"focal": "focal", "focal+rcr-1": "focal+rcr", "focal+rcr-5": "focal+rcr, β = 5"}
    for loss, row in rows.items():
        for seed in range(10):
            found = by_hand(networks[f"{data}-{loss}-{seed}"])
            assert found["accuracy"] == pytest.approx(metrics[row]["accuracy"]["each"][seed])
            for metric in ("ece", "sce", "robust_ece"):
                assert found[metric] == pytest.approx(metrics[row][metric]["each"][seed], abs=2e-3)


def test_top_labels_are_kept_as_they_were_said(tmp_path: Path) -> None:
    """Two test images: class 2 at 0.75, which is right, and class 0 at 0.5, which is not."""
    run = Run("cifar10-1000", "focal+rcr", 5.0, 3)
    arrays = {
        "test_logits": np.log([[0.125, 0.125, 0.75], [0.5, 0.25, 0.25]]),
        "test_labels": np.array([2, 1]),
        "validation_labels": np.array([0]),
        "made_of": np.array(json.dumps(asdict(run))),
        "seconds": np.asarray(1.0),
    }
    np.savez(tmp_path / f"{run.name}.npz", **arrays)
    (file,) = tops.keep(tmp_path, tmp_path)
    top = tops.load(file)["cifar10-1000-focal+rcr-5-3"]
    assert top.predicted.tolist() == [2, 0] and top.right.tolist() == [True, False]
    assert top.confidence == pytest.approx([0.75, 0.5], abs=1 / 254)


def over_runs(found: dict[str, Any]) -> Iterator[tuple[float, float, float]]:
    """Yield RECE-G of one row minus that of another, paired by run, with Student's t over runs."""
    each = [np.array(own["robust_ece"]["each"]) for own in found["metrics"].values()]
    for first, second in itertools.combinations(each, 2):
        runs = min(len(first), len(second))
        gap = first[:runs] - second[:runs]
        _, low, high = with_training(gap, gap.mean(), gap.mean(), 0.95)
        yield gap.mean(), low, high


NAMES_OF_DATA = {
    **{"BUSI": "busi", "POCUS": "pocus", "Covid-CT": "covid_ct"},
    **{"RetinaMNIST": "retinamnist", "DermaMNIST": "dermamnist"},
}


def intervals_of(name: str) -> set[tuple[int, ...]]:
    """Return every difference of two losses on one data set with its interval, in thousandths."""
    found = read_json(KEPT / f"{name}.json")
    paired = ((d["difference"], d["low"], d["high"]) for d in found["differences"])
    return {
        tuple(round(1000 * value) for value in interval)
        for middle, low, high in itertools.chain(paired, over_runs(found))
        for interval in ((middle, low, high), (-middle, -high, -low))
    }


def test_intervals_of_the_claims_follow_from_what_is_kept() -> None:
    """Each is that of a pair of losses, or over runs alone; one beside a data set's name is its."""
    page = (ROOT / "docs" / "reproduction" / "robust_ece.md").read_text(encoding="utf-8")
    claims = page.partition("\n## Results\n")[2].partition("\n### Older runs\n")[0]
    number = r"[+−]?\d\.\d{3}"
    interval = rf"({number}) \[({number}), ({number})\]"
    made = {name: intervals_of(name) for name in MORE_DATA}

    def thousandths(said: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(round(1000 * float(value.replace("−", "-"))) for value in said)

    said = re.findall(interval, claims)
    assert len(said) > 60
    assert {thousandths(each) for each in said} - set.union(*made.values()) == set()
    beside = 0
    for title, name in NAMES_OF_DATA.items():
        rows = "\n".join(line for line in claims.splitlines() if line.startswith(f"| {title}"))
        own = [*re.findall(interval, rows), *re.findall(f"{title} {interval}", claims)]
        assert {thousandths(each) for each in own} - made[name] == set()
        beside += len(own)
    assert beside > 40


def test_what_choosing_on_the_test_images_would_do_for_rcr() -> None:
    """The best smooth row of RCR, and the other losses as printed, in the values that are kept."""
    ahead: dict[str, list[str]] = {"the others": [], "flsd": []}
    for found in read_judged(KEPT):
        error = {loss: own["robust_ece"]["value"] for loss, own in found["metrics"].items()}
        own = [e for loss, e in error.items() if "rcr" in loss and "rcr-paper" not in loss]
        others = min(error[loss] for loss in ("cross-entropy", "focal", "focal+mdca", "dca"))
        for name, bar in (("the others", others), ("flsd", error["flsd"])):
            if min(own) < bar:
                ahead[name].append(found["data"])
    assert len(ahead["the others"]) == 8 and ahead["flsd"] == ["covid_ct", "retinamnist"]


def test_the_paper_s_table_has_its_own_rules() -> None:
    """Accuracies are shares of the test images; RCR leads where the paper prints it in bold."""
    for data, images in (("GBC-USG", 122), ("BUSI", 78), ("POCUS", 476)):
        for row in losses_paper.TABLE_2[data]:
            right = float(row.split()[0]) * images
            assert abs(right - round(right)) < images * 5.1e-5
    best = {metric: len(losses_paper.best_in("focal+rcr", metric)) for metric in METRICS}
    assert best["robust_ece"] == best["robust_ece_mixture"] == 4
    assert (best["ece"], best["sce"], best["brier"], best["accuracy"]) == (3, 0, 0, 0)


def test_small_batches_trouble_both_terms_alike() -> None:
    """Claim 9: MDCA and smooth RCR of a calibrated network, which should be 0, by batch size.

    MDCA is a mean of |p - label| sums: σ √(2/π) with σ² = p (1 - p) / N_b on average. RCR smooths
    the confidences and counts the same labels.
    """
    torch = pytest.importorskip("torch")
    from raterwise.torch.losses import MDCA, RCR

    random = np.random.default_rng(0)
    found = {}
    for size in (8, 32, 128):
        terms, spreads = [], []
        for _ in range(400):
            logits = 2 * random.standard_normal((size, 10))
            probs = softmax(logits, axis=1)
            classes = (probs.cumsum(axis=1) > random.random((size, 1))).argmax(axis=1)
            given = torch.tensor(logits), torch.tensor(classes)
            terms.append([float(term(*given)) for term in (MDCA(), RCR(sigma=0.1))])
            spreads.append(np.sqrt((probs * (1 - probs)).mean(axis=0) / size).mean())
        found[size] = np.mean(terms, axis=0)
        if size == 128:
            assert found[size][0] == pytest.approx(np.mean(spreads) * np.sqrt(2 / np.pi), rel=0.03)
    assert found[8] == pytest.approx([0.070, 0.070], abs=0.002)
    assert found[32] == pytest.approx([0.035, 0.035], abs=0.001)
    assert found[128] == pytest.approx([0.018, 0.019], abs=0.001)

"""The segmentation experiment on made-up images in the layout of its files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import raterwise as rw
from experiments.commands import app
from experiments.multi_rater.data import (
    STUDIES,
    Training,
    Unit,
    kept_predictions,
    one_rater,
    read_study,
    splits_of,
    units_of,
)
from experiments.multi_rater.judging import (
    Judging,
    judge,
    judged_network,
    mean_over_patients,
    summary_of,
)
from experiments.multi_rater.tables import as_markdown, beside_the_paper
from raterwise.datasets import OutlinedImages, read_bubil_cells, read_lidc_nodules
from raterwise.densities.bandwidth import select_bandwidth
from raterwise.segmentation import Case, total_variation

ROOT = Path(__file__).parents[1]
SIDE = 16


def squares(cases: int, raters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bright squares on noise, and masks whose raters shift the square by a pixel."""
    random = np.random.default_rng(seed)
    images = random.integers(0, 80, (cases, SIDE, SIDE)).astype(np.uint8)
    masks = np.zeros((cases, raters, SIDE, SIDE), np.uint8)
    for case in range(cases):
        top, left = random.integers(3, 7, 2)
        images[case, top : top + 6, left : left + 6] += 150
        for rater in range(raters):
            y, x = np.array([top, left]) + random.integers(-1, 2, 2)
            masks[case, rater, y : y + 6, x : x + 6] = 1
    return images, masks


def write_data(folder: Path) -> Path:
    """Write 48 nodules of 24 patients with one to four masks each, and 10 cells with three."""
    folder.mkdir()
    images, masks = squares(48, 4, seed=0)
    raters = np.arange(48) % 4 + 1
    masks[np.arange(4)[None] >= raters[:, None]] = 0
    np.savez(
        folder / "lidc_nodules.npz",
        images=images,
        masks=np.packbits(masks.reshape(48, -1), axis=1),
        n_raters=raters.astype(np.uint8),
        patient=np.array([f"LIDC-IDRI-{i // 2:04d}" for i in range(48)]),
        nodule=np.arange(48) % 2,
    )
    cells, outlines = squares(10, 3, seed=1)
    names = np.array([f"B{i:02d}" for i in range(10)])
    kinds = np.array([1] * 5 + [3] * 5)
    np.savez(folder / "bubil_cells.npz", images=cells, masks=outlines, name=names, dataset=kinds)
    return folder


@pytest.fixture(name="data", scope="module")
def folder_of_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up data of both studies."""
    return write_data(tmp_path_factory.mktemp("made") / "data")


def spread(images: OutlinedImages, random: np.random.Generator) -> dict[int, np.ndarray]:
    """Foreground probabilities between 0.05 and 0.95 that know nothing of the images."""
    size = images.images.shape
    return dict(enumerate(random.uniform(0.05, 0.95, size).astype(np.float32)))


def outlined(masks: np.ndarray) -> OutlinedImages:
    """Images with these masks (N, R, H, W), each of a patient of its own."""
    cases, raters, *size = masks.shape
    names = tuple(f"i{i}" for i in range(cases))
    return OutlinedImages(
        "made up",
        np.zeros((cases, *size), np.uint8),
        masks,
        np.full(cases, raters),
        np.array(names),
        np.zeros(cases, np.int64),
        names,
    )


# The data ----------------------------------------------------------------------------------------


def test_masks_are_read_from_their_bits(data: Path) -> None:
    """Packed and plain masks come back as they were written, with the raters who count."""
    lidc = read_lidc_nodules(data / "lidc_nodules.npz")
    assert lidc.masks.shape == (48, 4, SIDE, SIDE)
    assert [len(lidc.masks_of(i)) for i in range(4)] == [1, 2, 3, 4]
    assert lidc.masks_of(7).sum(axis=(1, 2)).tolist() == [36] * 4
    assert lidc.names[3] == "LIDC-IDRI-0001-n1"
    cells = read_bubil_cells(data / "bubil_cells.npz")
    assert len(cells) == 10 and cells.num_raters.tolist() == [3] * 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_raters": np.full(48, 5)}, r"raters of an image must be 1 … 4; image 0 has 5"),
        ({"images": np.zeros((48, SIDE, SIDE))}, r"images must be uint8; got float64"),
        ({"masks": np.zeros((48, 3), np.uint8)}, r"masks \(N, R H W / 8\) packed bits"),
        ({"patient": np.array(["p"] * 3)}, r"arrays must be of the same images; got \[3, 48\]"),
        ({"nodule": None}, r"must have the arrays nodule"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    data: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """Errors name the file, the array, the rule and the value."""
    with np.load(data / "lidc_nodules.npz") as file:
        arrays = {**{name: file[name] for name in file.files}, **change}
    if arrays["nodule"] is not None and len(arrays["patient"]) == 3:
        arrays["nodule"] = np.zeros(3, int)
    arrays = {name: array for name, array in arrays.items() if array is not None}
    np.savez(tmp_path / "other.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_lidc_nodules(tmp_path / "other.npz")


def test_no_patient_is_on_two_sides_of_a_split(data: Path) -> None:
    """Patients stay together in every split and seed, and parts have their shares."""
    images = read_study(data, "lidc")
    for seed in range(5):
        (split,) = splits_of(images, STUDIES["lidc"], seed)
        sides = [set(images.patients[rows]) for rows in (split.train, split.validation, split.test)]
        assert sum(map(len, sides)) == len(set.union(*sides)) == 24
        # 20 parts of 24 patients: the first four have two.
        assert len(sides[2]) in range(5, 10) and len(sides[1]) in range(3, 7)


def test_every_cell_is_a_test_image_once(data: Path) -> None:
    """Five folds, each with its share of either kind, that train and validate on the others."""
    images = read_study(data, "bubil")
    splits = splits_of(images, STUDIES["bubil"])
    assert sorted(row for split in splits for row in split.test.tolist()) == list(range(10))
    for split in splits:
        assert sorted(images.strata[split.test]) == [1, 3]
        rows = np.concatenate((split.train, split.validation, split.test))
        assert sorted(rows.tolist()) == list(range(10)) and len(split.validation) == 2


def test_one_rater_is_drawn_among_those_there_are() -> None:
    """Never a rater who is not there, and each of three a third of the time."""
    images = outlined(np.zeros((3000, 3, 1, 1), np.uint8))
    images = replace(images, num_raters=np.arange(3000) % 3 + 1)
    drawn = one_rater(images, seed=1)
    assert (drawn < images.num_raters).all()
    shares = np.bincount(drawn[2::3]) / 1000
    assert shares == pytest.approx([1 / 3] * 3, abs=4 * 0.015)
    assert (one_rater(images, 1, 5) != drawn).any()


# Training ----------------------------------------------------------------------------------------

QUICK = Training(networks=1, channels=8, epochs=1)
UNIT = Unit("bubil", 0, 0)


@pytest.fixture(name="torch_parts")
def networks() -> Any:
    """The module that needs PyTorch."""
    pytest.importorskip("torch")
    from experiments.multi_rater import segmentation

    return segmentation


def test_a_network_sees_one_rater_of_the_training_images(
    data: Path, tmp_path: Path, torch_parts: Any
) -> None:
    """The masks of all other raters, and of all test images, could be anything."""
    images = read_study(data, "bubil")
    raters = one_rater(images, QUICK.seed)
    test = splits_of(images, STUDIES["bubil"])[0].test
    other = 1 - images.masks
    keep = np.setdiff1d(np.arange(10), test)
    other[keep, raters[keep]] = images.masks[keep, raters[keep]]
    found = [
        torch_parts.predictions_of(part, UNIT, tmp_path / str(i), QUICK)
        for i, part in enumerate((images, replace(images, masks=other)))
        if (tmp_path / str(i)).mkdir() is None
    ]
    np.testing.assert_array_equal(found[0]["probabilities"], found[1]["probabilities"])
    assert found[0]["rows"].tolist() == test.tolist()
    assert found[0]["probabilities"].shape == (2, SIDE, SIDE)
    seen = replace(images, masks=1 - images.masks)
    (tmp_path / "seen").mkdir()
    changed = torch_parts.predictions_of(seen, UNIT, tmp_path / "seen", QUICK)
    assert (changed["probabilities"] != found[0]["probabilities"]).any()


def test_a_network_learns_the_squares(data: Path, tmp_path: Path, torch_parts: Any) -> None:
    """After some epochs the probability is high within the square of unseen images and low without.

    Raters shift by a pixel at most, so that the middle of every mask is certainly foreground.
    """
    settings = replace(QUICK, epochs=30, learning_rate=1e-2)
    images = read_study(data, "bubil")
    found = torch_parts.predictions_of(images, UNIT, tmp_path, settings)
    for row, probs in zip(found["rows"], found["probabilities"].astype(float), strict=True):
        inside, outside = images.masks[row].all(axis=0), ~images.masks[row].any(axis=0)
        assert probs[inside].mean() > 0.6 > 0.4 > probs[outside].mean()


def test_an_untrained_network_says_the_share_of_the_foreground(torch_parts: Any) -> None:
    """Its mean log-odds of the foreground are those of the share, up to what its weights add."""
    from experiments.networks import UNet

    torch = torch_parts.torch
    torch.manual_seed(0)
    network = UNet(channels=8, foreground=0.01)
    bias = network.head.bias.detach()
    assert float((bias[1] - bias[0]).sigmoid()) == pytest.approx(0.01)
    with torch.no_grad():
        found = network(torch.randn(4, 1, SIDE, SIDE)).softmax(dim=1)[:, 1].mean()
    assert 0.002 < float(found) < 0.05


def test_images_and_masks_are_turned_together(torch_parts: Any) -> None:
    """A mask that equals its image still does, and all eight ways occur."""
    torch = torch_parts.torch
    corner = torch.zeros(64, 1, 4, 4)
    corner[:, :, 0, 1] = 1
    torch.manual_seed(0)
    images, masks = torch_parts.turned(corner, corner[:, 0].long())
    assert torch.equal(images[:, 0].long(), masks)
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) == 8


def test_training_goes_on_where_it_stopped(
    data: Path, tmp_path: Path, torch_parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished networks are not trained again; other settings, and lost files, are."""
    out = tmp_path / "out"
    torch_parts.train_networks(data, out, QUICK, ["bubil"])
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert sorted(before) == [f"bubil-split{i}-network0.npz" for i in range(5)]
    trained = []

    def counting(*args: Any, **kwargs: Any) -> Any:
        trained.append(kwargs["checkpoint"].stem)
        return real(*args, **kwargs)

    real = torch_parts.train
    monkeypatch.setattr(torch_parts, "train", counting)
    torch_parts.train_networks(data, out, QUICK, ["bubil"])
    assert trained == []
    (out / "bubil-split3-network0.npz").write_bytes(b"half a fi")
    torch_parts.train_networks(data, out, QUICK, ["bubil"])
    assert trained == ["bubil-split3-network0"]
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    torch_parts.train_networks(data, out, replace(QUICK, seed=1), ["bubil"])
    assert len(trained) == 6


def test_a_device_that_is_not_there(data: Path, tmp_path: Path, torch_parts: Any) -> None:
    """It is named, before anything is trained."""
    with pytest.raises(ValueError, match=r"device: must be one that PyTorch .*; got 'moon'"):
        torch_parts.train_networks(data, tmp_path, QUICK, ["bubil"], device="moon")


# Total variation ---------------------------------------------------------------------------------


def naive_variation(p: np.ndarray, y: np.ndarray, repeats: int, seed: int) -> float:
    """MR eq 6 with absolute values, pixel by pixel: `y` (R, n), ECE of the foreground, 15 bins."""
    cases, total = len(p), []
    for r in range(repeats):
        drawn = np.random.default_rng([seed, r]).integers(0, cases, cases)
        errors = []
        for percent in range(20, 101, 5):
            rows = drawn[: round(percent / 100 * cases)]
            error = 0.0
            for b in range(15):
                inside = rows[np.minimum((p[rows] * 15).astype(int), 14) == b]
                if len(inside):
                    error += len(inside) * abs(p[inside].mean() - y[:, inside].mean())
            errors.append(error / len(rows))
        total.append(np.abs(np.diff(errors)).mean())
    return float(np.mean(total))


def test_total_variation_of_an_image_is_that_of_the_equation() -> None:
    """The sum over nested subsets, worked out in a plain loop, for one rater and for three."""
    random = np.random.default_rng(3)
    image = random.uniform(0, 1, (9, 11))
    masks = (random.uniform(size=(3, 9, 11)) < image).astype(np.uint8)
    for judges in (masks[:1], masks):
        found = total_variation([Case(image, judges)], "ece", question="positive", repeats=3)
        expected = naive_variation(image.ravel(), judges.reshape(len(judges), -1), 3, 0)
        assert found.mean == pytest.approx(expected, abs=1e-12)


def test_raters_who_contradict_each_other_leave_no_variation() -> None:
    """p = 1/2, one rater says what the other denies: MR-ECE is 0 on every subset, SR-ECE is not."""
    image, first = np.full((12, 12), 0.5), np.indices((12, 12)).sum(axis=0) % 2
    for metric in ("ece", "robust_ece", "kde_ece"):
        both = total_variation(
            [Case(image, [first, 1 - first])], metric, question="positive", repeats=2
        )
        alone = total_variation([Case(image, [first])], metric, question="positive", repeats=2)
        assert both.mean == pytest.approx(0, abs=1e-12) and alone.mean > 1e-3


def test_total_variation_of_kernels_and_soft_bins_is_that_of_the_pixels() -> None:
    """As `stability` finds it from the pixels as cases, at the bandwidth of the whole image."""
    random = np.random.default_rng(4)
    image = random.uniform(0, 1, (8, 8))
    masks = (random.uniform(size=(2, 8, 8)) < image).astype(np.int64)
    probs = np.stack((1 - image.ravel(), image.ravel()), axis=1)
    labels = rw.Labels.from_ratings(masks.reshape(2, -1).T, num_classes=2)
    width = select_bandwidth(probs.max(axis=1), np.full(64, 2.0))
    for metric, function in (
        ("kde_ece", partial(rw.kde_ece, bandwidth=width)),
        ("robust_ece", rw.robust_ece),
    ):
        expected = rw.stability.total_variation(function, probs, labels, repeats=3).mean
        found = total_variation([Case(image, masks)], metric, repeats=3)
        assert found.mean == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match=r"metric: no metric is called 'ece,brier'"):
        total_variation([Case(image, masks)], "ece,brier")


# Judging -----------------------------------------------------------------------------------------

JUDGING = Judging(resamples=100, repeats=4)


def test_copies_of_a_rater_change_nothing() -> None:
    """Four raters with one mask: SR and MR are the same to the last digits, and so is their TV."""
    random = np.random.default_rng(5)
    masks = np.repeat(random.integers(0, 2, (4, 1, 16, 16), dtype=np.uint8), 4, axis=1)
    images = outlined(masks)
    found = judged_network(images, spread(images, random), 0, JUDGING)
    summary = summary_of("made", [found], JUDGING)
    for part in ("values", "variation"):
        for metrics in summary[part].values():
            for both in metrics.values():
                assert both["difference"]["mean"] == pytest.approx(0, abs=1e-12)
                assert both["ratio"]["mean"] == pytest.approx(1)


def test_independent_raters_halve_the_variation() -> None:
    """Perfect probabilities, four independent raters: the noise of a bin, and TV, is 1/√4."""
    random = np.random.default_rng(6)
    images = outlined(np.zeros((12, 4, 32, 32), np.uint8))
    probs = spread(images, random)
    truth = np.stack([probs[i] for i in range(12)])[:, None]
    images = replace(images, masks=(random.uniform(size=images.masks.shape) < truth).astype("u1"))
    settings = replace(JUDGING, repeats=10)
    found = judged_network(images, probs, 1, settings, ("ece", "robust_ece"))
    assert "kde_ece" not in found["values"]["image"]
    first = judged_network(images, probs, 0, replace(JUDGING, repeats=1))
    both = summary_of("made", [first, found], settings)["variation"]["image"]["ece"]
    assert both["ratio"]["mean"] == pytest.approx(2, rel=0.12)
    assert both["ratio"]["low"] < 2.1 and both["difference"]["low"] > 0
    assert both["lower_share"] == 1


def test_dice_is_worked_out_by_hand() -> None:
    """Two pixels said, one of them and another marked: 2·1/(2+2); all marked: 2·2/(2+4)."""
    masks = np.array([[[[1, 0], [1, 0]], [[1, 1], [1, 1]]]], np.uint8)
    probs = {0: np.array([[0.9, 0.8], [0.1, 0.2]], np.float32)}
    found = judged_network(outlined(masks), probs, 1, JUDGING, ("ece",))
    assert found["dice"] == [pytest.approx((1 / 2 + 2 / 3) / 2)]


def test_means_are_resampled_by_patient() -> None:
    """Two patients: resamples hold one or both of them, never half of one; ratios are of means."""
    values, patients = np.array([1.0, 3.0, 5.0]), np.array(["a", "a", "b"])
    found = mean_over_patients(values, patients, Judging(resamples=200, level=0.5))
    assert found["mean"] == 3 and found["std"] == 2 and found["images"] == 3
    assert (found["low"], found["high"]) == (2.0, 5.0)
    ratio = mean_over_patients(values, patients, Judging(resamples=0), over=np.array([2.0, 2, 5]))
    assert ratio["mean"] == 1 and ratio["low"] is None
    nothing = mean_over_patients(values, patients, Judging(), over=np.zeros(3))
    assert nothing["mean"] is None and nothing["low"] is None


def test_tables_say_which_is_steadier() -> None:
    """A row per region and metric with both columns, and one per number of raters."""
    random = np.random.default_rng(7)
    images = outlined(random.integers(0, 2, (6, 3, 8, 8), dtype=np.uint8))
    images = replace(images, num_raters=np.array([2, 2, 2, 3, 3, 3]))
    found = judged_network(images, spread(images, random), 0, JUDGING)
    text = as_markdown([summary_of("made", [found], JUDGING)])
    number = r"[+-]?\d+\.\d+"
    spanned = rf"{number} ± {number} \[{number}, {number}\]"
    assert len(re.findall(rf"\| (?:whole image|band) \| \w+-?\w* \| {spanned} \|", text)) == 12
    assert re.search(rf"\| 3 \| 3 \| RECE-G \| {spanned} \| {spanned} \|", text)
    assert "6 test images of 6 patients" in text and "2.50 on average" in text


# The whole ---------------------------------------------------------------------------------------


def write_predictions(data: Path, out: Path, studies: list[str]) -> None:
    """Put predictions where networks would have written theirs."""
    out.mkdir()
    for unit in units_of(studies, Training(networks=1)):
        images = read_study(data, unit.study)
        rows = splits_of(images, STUDIES[unit.study])[unit.split].test
        blurred = images.masks[rows].mean(axis=1).astype(np.float16)
        kept_predictions(
            images,
            unit,
            out,
            Training(networks=1),
            lambda rows=rows, blurred=blurred: {"probabilities": blurred, "rows": rows},
        )


def test_judging_goes_on_where_it_stopped(data: Path, tmp_path: Path) -> None:
    """Values of images are kept; other resamples use them, and networks that are there suffice."""
    out = tmp_path / "out"
    write_predictions(data, out, ["bubil"])
    (found,) = judge(data, out, Training(networks=1), JUDGING, ["bubil"])
    assert found["images"] == 10 and found["networks"] == 1
    file = out / "judged-bubil-network0-ece.json"
    stored = json.loads(file.read_text())
    stored["dice"] = [0.25] * 10
    file.write_text(json.dumps(stored))
    (again,) = judge(data, out, Training(networks=1), replace(JUDGING, resamples=7), ["bubil"])
    assert again["dice"]["mean"] == 0.25
    # Without data, what was judged makes the same tables.
    assert judge(None, out, Training(), replace(JUDGING, resamples=7), ["bubil"]) == [again]
    with pytest.raises(ValueError, match=r"must hold judged-lidc-network0-ece.json"):
        judge(None, out, Training(), JUDGING, ["lidc"])
    (new,) = judge(data, out, Training(networks=1), replace(JUDGING, band=2.0), ["bubil"])
    assert new["dice"] == found["dice"]
    (fewer,) = judge(data, out, Training(networks=2), JUDGING, ["bubil"])
    assert fewer["networks"] == 1 and fewer["values"] == found["values"]
    (out / "bubil-split3-network0.npz").unlink()
    with pytest.raises(ValueError, match=r"bubil-split3-network0.npz: must hold the predictions"):
        judge(data, out, Training(networks=1), JUDGING, ["bubil"])


def test_command_line_trains_and_judges(data: Path, tmp_path: Path, torch_parts: Any) -> None:
    """One command from the data to the tables; predictions alone are enough the second time."""
    out = tmp_path / "out"
    command = ["multi_rater", "--data", str(data), "--out", str(out)]
    quick = ["--networks", "1", "--epochs", "1", "--studies", "bubil", "--resamples", "20"]
    result = CliRunner().invoke(app, [*command, *quick])
    assert result.exit_code == 0, result.output
    assert "### BU-BIL cells" in result.stdout and "Total variation" in result.stdout
    before = (out / "summary.json").read_bytes()
    again = CliRunner().invoke(app, [*command, *quick, "--judge-only", "--quiet"])
    assert again.exit_code == 0 and again.stdout == ""
    assert (out / "summary.json").read_bytes() == before


def test_parts_together_are_the_whole(data: Path, tmp_path: Path, torch_parts: Any) -> None:
    """Two processes train three and two of the five folds, and one judges what both wrote."""
    out = tmp_path / "out"
    command = ["multi_rater", "--data", str(data), "--out", str(out), "--studies", "bubil"]
    quick = [*command, "--networks", "1", "--epochs", "1", "--resamples", "20"]
    for part, there in (("1/2", [0, 2, 4]), ("2/2", [0, 1, 2, 3, 4])):
        result = CliRunner().invoke(app, [*quick, "--part", part])
        assert result.exit_code == 0 and f"Part {part} is trained" in result.stdout, result.output
        files = sorted(file.name for file in out.iterdir())
        assert files == [f"bubil-split{i}-network0.npz" for i in there]
    result = CliRunner().invoke(app, [*quick, "--judge-only"])
    assert result.exit_code == 0 and "### BU-BIL cells" in result.stdout


def test_command_line_says_what_is_wrong(data: Path, tmp_path: Path) -> None:
    """A missing file, an unknown study or predictions that are not there: one line, code 2."""
    for options, message in (
        (["--data", str(tmp_path)], "must hold lidc_nodules.npz"),
        (
            ["--data", str(data), "--studies", "lungs"],
            "studies: must be of lidc, bubil, qubiq; got",
        ),
        (["--data", str(data)], "must hold the predictions of a network"),
    ):
        command = ["multi_rater", "--judge-only", "--out", str(tmp_path / "o")]
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())


def test_kept_values_make_the_tables_of_the_docs(tmp_path: Path) -> None:
    """Every row of MR Table 2 on the page follows from the values of images that are kept."""
    for file in (ROOT / "experiments" / "outputs" / "multi_rater").glob("judged-*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    shown = CliRunner().invoke(app, ["multi_rater", "--out", str(tmp_path), "--judge-only"])
    assert shown.exit_code == 0, shown.output
    page = (ROOT / "docs" / "reproduction" / "multi_rater.md").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert [part["study"] for part in found] == ["lidc", "bubil", "qubiq"]
    lines = [*as_markdown(found).splitlines(), *beside_the_paper(found).splitlines()]
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) > 40 and all(row in page for row in rows)

"""Uncertainty distillation on made-up images: the readers, the training, the judging."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special
from typer.testing import CliRunner

import raterwise as rw
from experiments.commands import app
from experiments.confidence_curves import condensed, ideal, judging, paper
from experiments.confidence_curves.findings import judge_findings
from experiments.confidence_curves.judging import Cascade, judge, judged, load_cascades
from experiments.confidence_curves.tables import METHODS, as_markdown
from raterwise.datasets import read_cifar10, read_idx, read_mnist
from raterwise.errors import InvalidInputError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from experiments.confidence_curves import distillation  # noqa: E402
from experiments.confidence_curves.data import coloured, load_problem, shaped  # noqa: E402
from experiments.confidence_curves.distillation import (  # noqa: E402
    DISTILLED,
    NETWORKS,
    Settings,
    crop_and_flip,
    parts_of,
    predictions_file,
    train_all,
    train_part,
)
from experiments.networks import DenseNet  # noqa: E402

torch.set_num_threads(1)

ROOT = Path(__file__).parents[1]
TINY = Settings(
    network="resnet9", members=2, width=2, epochs=1, distillation_epochs=1, batch_size=16,
    held_out=20, test_temperatures=(1.0, 3.0),
)  # fmt: skip


# The files ---------------------------------------------------------------------------------------


def idx(array: np.ndarray) -> bytes:
    """An idx file by hand: 00 00 08, the axes, their lengths as four bytes, the values."""
    lengths = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + lengths + array.astype(np.uint8).tobytes()


def write_mnist(folder: Path, part: str, images: np.ndarray, classes: np.ndarray) -> None:
    """Write two idx files, the images compressed."""
    (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(classes))


def records(images: np.ndarray, classes: np.ndarray) -> bytes:
    """The binary version of CIFAR-10: the class, then the red, the green and the blue plane."""
    parts = []
    for image, label in zip(images, classes, strict=True):
        parts.append(bytes([label]) + b"".join(image[:, :, c].tobytes() for c in range(3)))
    return b"".join(parts)


@pytest.fixture(name="data", scope="module")
def folder_of_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images in each batch of CIFAR-10, 60 digits, and 16 chests; class = brightness."""
    folder = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(0)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        classes = np.arange(12) % 10
        noise = random.integers(0, 25, (12, 32, 32, 3))
        images = (noise + 25 * classes[:, None, None, None]).astype(np.uint8)
        (folder / f"{name}.bin").write_bytes(records(images, classes))
    for part, cases in (("train", 60), ("t10k", 24)):
        classes = np.arange(cases) % 10
        images = random.integers(0, 25, (cases, 28, 28)) + 25 * classes[:, None, None]
        write_mnist(folder, part, images, classes)
    chests = {f"{part}_images": random.integers(0, 255, (n, 28, 28), dtype=np.uint8)
              for part, n in (("train", 8), ("val", 4), ("test", 4))}  # fmt: skip
    labels = {f"{part}_labels": np.zeros((n, 1), np.uint8)
              for part, n in (("train", 8), ("val", 4), ("test", 4))}  # fmt: skip
    np.savez(folder / "pneumoniamnist.npz", **chests, **labels)
    return folder


def test_idx_files_are_read_plain_and_compressed(tmp_path: Path) -> None:
    """Two by three bytes, written by hand; three axes, compressed."""
    plain = tmp_path / "plain"
    plain.write_bytes(bytes.fromhex("00000802 00000002 00000003 0a0b0c0d0eff"))
    assert read_idx(plain).tolist() == [[10, 11, 12], [13, 14, 255]]
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(idx(np.arange(24).reshape(2, 3, 4))))
    assert np.array_equal(read_idx(packed), np.arange(24).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("other", b"PK\x03\x04", "must begin with the bytes 00 00 08.*; got 50 4b 03"),
        ("ints", bytes([0, 0, 12, 1, 0, 0, 0, 1]), "must begin with .*; got 00 00 0c"),
        ("empty", b"", "must begin with"),
        ("header", bytes([0, 0, 8, 3, 0, 0]), "ends within its header of 16 bytes"),
        ("short", idx(np.zeros((4, 4)))[:-1], r"an array of \(4, 4\) must have 16 bytes; got 15"),
        ("long", idx(np.zeros((4, 4))) + b"x", r"must have 16 bytes; got 17"),
        ("cut.gz", gzip.compress(bytes(100), mtime=0)[:-9], "must be a whole gzip file"),
        ("not.gz", b"hello", "must be a whole gzip file"),
    ],
)
def test_damaged_idx_files_are_named(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """The file, the rule and what was found instead."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=f"{name}.*{message}"):
        read_idx(tmp_path / name)


def test_mnist_is_read_and_its_files_must_fit(tmp_path: Path) -> None:
    """Images and classes in their order; another number of classes, or no file, is an error."""
    images, classes = np.arange(2 * 28 * 28).reshape(2, 28, 28) % 256, np.array([7, 2])
    write_mnist(tmp_path, "t10k", images, classes)
    found = read_mnist(tmp_path, "test")
    assert np.array_equal(found.images, images) and found.classes.tolist() == [7, 2]
    with pytest.raises(InvalidInputError, match=r"must hold train-images-idx3-ubyte \(or the same"):
        read_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(np.array([1, 2, 3])))
    with pytest.raises(InvalidInputError, match=r"got \(2, 28, 28\) and \(3,\)"):
        read_mnist(tmp_path, "test")
    with pytest.raises(InvalidInputError, match="part: must be"):
        read_mnist(tmp_path, "validation")


def test_cifar10_is_read_from_the_binary_version_and_from_strips(tmp_path: Path) -> None:
    """One image with a known pixel, as a record; the same as a row of a PNG file."""
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    images[1, 2, 5] = (10, 20, 30)
    classes = np.array([9, 0, 4])
    content = records(images, classes)
    # Record 1 begins at 3073; its red plane after one byte; row 2, column 5; green 1024 later.
    place = 3073 + 1 + 2 * 32 + 5
    assert (content[place], content[place + 1024], content[place + 2048]) == (10, 20, 30)
    binary, strips = tmp_path / "binary", tmp_path / "strips"
    for folder in (binary, strips):
        folder.mkdir()
    (binary / "test_batch.bin.gz").write_bytes(gzip.compress(content))
    pillow.fromarray(images.reshape(3, 1024, 3)).save(strips / "test_batch.png")
    (strips / "test_lables.json").write_text("[9, 0, 4]", encoding="utf-8")
    for folder in (binary, strips):
        found = read_cifar10(folder, "test")
        assert np.array_equal(found.images, images)
        assert np.array_equal(found.classes, classes)
    (strips / "test_lables.json").write_text("[9, 0]", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"a class for each of 3 images; got 2"):
        read_cifar10(strips, "test")
    pillow.fromarray(images.reshape(6, 512, 3)).save(strips / "test_batch.png")
    with pytest.raises(InvalidInputError, match=r"must be 1024 pixels wide.*; got 512"):
        read_cifar10(strips, "test")


def test_damaged_batches_of_cifar10_are_named(tmp_path: Path) -> None:
    """A file cut short, an empty one, a class above 9, a batch that is missing."""
    for content, message in (
        (bytes(3072), "whole records of 3073 bytes; got 3072"),
        (b"", "whole records of 3073 bytes; got 0"),
        (bytes([10]) + bytes(3072), "test_batch.bin: must be classes 0 … 9; got 10"),
    ):
        (tmp_path / "test_batch.bin").write_bytes(content)
        with pytest.raises(InvalidInputError, match=message):
            read_cifar10(tmp_path, "test")
    with pytest.raises(InvalidInputError, match=r"must hold data_batch_1.bin or data_batch_1.png"):
        read_cifar10(tmp_path)


# The problems ------------------------------------------------------------------------------------


def test_images_are_brought_to_one_shape() -> None:
    """Luminance by hand, grey three times, and a constant image of another size."""
    colour = np.zeros((1, 2, 2, 3), np.uint8)
    colour[0, 0, 0] = (100, 50, 200)  # 0.299*100 + 0.587*50 + 0.114*200 = 82.05
    assert shaped(colour, 2, 1).tolist() == [[[[82, 0], [0, 0]]]]
    grey = np.array([[[1, 2], [3, 4]]], np.uint8)
    assert shaped(grey, 2, 3).tolist() == [[[[1, 2], [3, 4]]] * 3]
    larger = shaped(np.full((2, 28, 28), 77, np.uint8), 32, 3)
    assert larger.shape == (2, 3, 32, 32) and (larger == 77).all()
    same = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
    assert np.array_equal(shaped(same, 2, 3)[0].permute(1, 2, 0), same[0])


def test_two_classes_are_from_elsewhere(data: Path) -> None:
    """cifar8: cats (3) and trucks (9) are outside, the others numbered 0 … 7 in their order."""
    problem = load_problem("cifar8", data, held_out=20)
    whole = read_cifar10(data, "test")
    assert problem.outside["cats and trucks"].shape == (2, 3, 32, 32)
    assert problem.test.rows.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 10, 11]
    assert problem.test.classes.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]
    assert np.array_equal(problem.test.images[3].permute(1, 2, 0), whole.images[4])
    assert problem.classes == 8 and set(problem.train.classes) == set(range(8))


def test_held_out_images_are_not_trained_on(data: Path) -> None:
    """Every training image is in one of the two parts; the seed decides which."""
    one, other = (load_problem("mnist", data, seed=seed, held_out=20) for seed in (0, 1))
    assert sorted([*one.train.rows, *one.held_out.rows]) == list(range(60))
    assert len(one.held_out.rows) == 20
    assert set(one.held_out.rows) != set(other.held_out.rows)
    assert one.fingerprint() != other.fingerprint()
    values = one.normalised(one.train.images).double()
    assert float(values.mean()) == pytest.approx(0, abs=1e-6)
    assert float(values.std(correction=0)) == pytest.approx(1, abs=1e-6)
    with pytest.raises(InvalidInputError, match="held_out: must be fewer than 60; got 60"):
        load_problem("mnist", data, held_out=60)


def test_other_data_sets_are_used_where_they_are_there(data: Path, tmp_path: Path) -> None:
    """Chests and grey images but no clothes; a damaged file is an error, not an absence."""
    assert set(load_problem("mnist", data, held_out=20).outside) == {
        "chest X-rays", "CIFAR-10 in grey"
    }  # fmt: skip
    assert set(load_problem("cifar10", data, held_out=20).outside) == {
        "digits", "digits in colour", "chest X-rays"
    }  # fmt: skip
    for file in data.glob("*idx*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert load_problem("mnist", tmp_path, held_out=20).outside == {}
    (tmp_path / "fashion-images-idx3-ubyte").write_bytes(b"junk")
    with pytest.raises(InvalidInputError, match="fashion-images-idx3-ubyte: must begin with"):
        load_problem("mnist", tmp_path, held_out=20)
    with pytest.raises(InvalidInputError, match="must hold data_batch_1"):
        load_problem("cifar10", tmp_path, held_out=20)


def test_crops_are_shifted_and_flipped_whole() -> None:
    """Each image is one of 9 x 9 crops of its mirrored-edge self, or that turned round."""
    image = torch.arange(2 * 16 * 16, dtype=torch.float32).reshape(2, 16, 16)
    padded = np.pad(image.numpy(), ((0, 0), (4, 4), (4, 4)), mode="reflect")
    crops = {}
    for down in range(9):
        for along in range(9):
            crop = padded[:, down : down + 16, along : along + 16]
            crops[crop.tobytes()] = (down, along, False)
            crops[np.ascontiguousarray(crop[:, :, ::-1]).tobytes()] = (down, along, True)
    torch.manual_seed(0)
    given = crop_and_flip(image.repeat(2000, 1, 1, 1)).contiguous().numpy()
    seen = [crops[one.tobytes()] for one in given]  # a KeyError is an image that cannot be
    assert len(set(seen)) == 162  # all of them come, each with probability 1/162
    assert np.mean([flipped for _, _, flipped in seen]) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_networks_take_any_channels(network: str) -> None:
    """(N, C, 28, 28) or 32: (N, outputs), in float32, within autocast too."""
    settings = replace(TINY, network=network, layers=2)
    for channels, side in ((1, 28), (13, 32)):
        made = distillation._network(settings, channels, 5).eval()
        scores = made(torch.zeros(3, channels, side, side))
        assert scores.shape == (3, 5) and scores.dtype == torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = made(torch.zeros(3, channels, side, side))
        assert rounded.dtype == torch.float32
        assert (rounded - rounded.bfloat16().float()).abs().max() == 0  # it did use it


def test_a_dense_layer_keeps_what_it_is_given() -> None:
    """Huang et al. 2017: 24 channels, 12 more a layer, halved between blocks; counted by hand."""
    weights = sum(p.numel() for p in DenseNet(3, 10, layers=2).parameters())
    # Stem 3·24·9. Blocks begin with 24, 24, 24 channels: layers see 24 and 36 of them.
    block = 12 * 9 * (24 + 36) + 2 * (24 + 36)
    between = 2 * 48 + 48 * 24
    assert weights == 3 * 24 * 9 + 3 * block + 2 * between + 2 * 48 + 48 * 10 + 10


def test_digits_in_colour_are_ink_on_a_ground() -> None:
    """0 is the ground's colour everywhere, 255 the ink's, and half of it half-way."""
    digits = np.zeros((50, 2, 2), np.uint8)
    digits[:, 0, 0], digits[:, 0, 1] = 255, 51
    found = coloured(digits).astype(float)
    assert np.array_equal(found[:, 1, 0], found[:, 1, 1])
    ground, ink = found[:, 1, 0], found[:, 0, 0]
    assert np.abs(found[:, 0, 1] - (0.8 * ground + 0.2 * ink)).max() <= 0.5
    assert len(np.unique(ink, axis=0)) > 45 and np.abs(ink - ground).mean() > 50


def test_chest_x_rays_are_a_problem_of_two_classes(data: Path) -> None:
    """The official parts; what is in colour comes in grey, and so many of each kind."""
    problem = load_problem("pneumonia", data, held_out=2, outside_cases=5)
    assert problem.classes == 2 and len(problem.test.classes) == 4
    assert problem.train.images.shape == (6, 1, 28, 28)
    assert {kind: images.shape for kind, images in problem.outside.items()} == {
        "digits": (5, 1, 28, 28), "CIFAR-10 in grey": (5, 1, 28, 28)
    }  # fmt: skip
    assert not TINY.of("pneumonia").augment and TINY.of("pneumonia").held_out == 2


# Training ----------------------------------------------------------------------------------------


@pytest.fixture(name="trained", scope="module")
def folder_of_predictions(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of tiny cascades on digits."""
    out = tmp_path_factory.mktemp("out")
    train_all(data, out, problems=("mnist",), seeds=(0, 1), settings=TINY)
    return out


def test_predictions_hold_all_that_judging_needs(trained: Path) -> None:
    """Members' logits and confidences at each temperature, for every part; no checkpoints left."""
    with np.load(predictions_file(trained, "mnist", "resnet9", 0), allow_pickle=False) as file:
        shapes = {name: file[name].shape for name in file.files}
        assert json.loads(str(file["made_of"]))["members"] == 2
    parts = {
        "test": 24,
        "train": 40,
        "held_out": 20,
        "out.chest X-rays": 16,
        "out.CIFAR-10 in grey": 12,
    }
    for part, cases in parts.items():
        assert shapes[f"logits.{part}"] == (2, cases, 10)
        for kind in DISTILLED:
            assert shapes[f"{kind}.{part}"] == (2, cases)
    assert not list(trained.glob("checkpoints*"))


def test_each_temperature_gives_a_confidence(trained: Path) -> None:
    """Two temperatures, two confidences, both between 0 and 1."""
    with np.load(predictions_file(trained, "mnist", "resnet9", 1)) as file:
        found = file["udist.test"]
    assert ((found > 0) & (found < 1)).all()
    assert not np.array_equal(found[0], found[1])


def test_what_is_done_is_not_done_again(
    data: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same settings find the files; other settings would train."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(distillation, "cascade", refuse)
    options: dict[str, Any] = {"problems": ("mnist",), "seeds": (0, 1)}
    files = train_all(data, trained, settings=TINY, **options)
    assert files == [predictions_file(trained, "mnist", "resnet9", seed) for seed in (0, 1)]
    assert train_all(data, trained, settings=TINY, **options, shard=(1, 2)) == files[1:]
    with pytest.raises(AssertionError, match="trained again"):
        train_all(data, trained, settings=replace(TINY, learning_rate=0.1), **options)
    with pytest.raises(InvalidInputError, match="problems: must be"):
        train_all(data, trained, problems=("imagenet",))


def test_a_killed_cascade_gives_the_digits_of_one_that_was_not(
    data: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when the distillation begins; the members are not trained again."""
    whole_train, whole_distilled = distillation.train, distillation._distilled
    trained_members = []

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    def counted(*arguments: Any, **options: Any) -> Any:
        before = Path(options["checkpoint"]).exists()
        trained_members.append(not before)
        return whole_train(*arguments, **options)

    monkeypatch.setattr(distillation, "train", counted)
    monkeypatch.setattr(distillation, "_distilled", killed)
    options: dict[str, Any] = {"problems": ("mnist",), "seeds": (0,), "settings": TINY}
    with pytest.raises(KeyboardInterrupt):
        train_all(data, tmp_path, **options)
    assert not predictions_file(tmp_path, "mnist", "resnet9", 0).exists()
    monkeypatch.setattr(distillation, "_distilled", whole_distilled)
    (file,) = train_all(data, tmp_path, **options)
    assert trained_members == [True, True, False, False]
    with (
        np.load(file) as resumed,
        np.load(predictions_file(trained, "mnist", "resnet9", 0)) as whole,
    ):
        assert set(resumed.files) == set(whole.files)
        for name in whole.files:
            assert np.array_equal(resumed[name], whole[name]), name


def test_parts_trained_alone_give_the_digits_of_the_whole(
    data: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each network in a call of its own, then the cascade, which trains nothing again."""
    for part in parts_of(TINY):
        train_part(data, tmp_path, "mnist", 0, part, TINY)
    monkeypatch.setattr("experiments.training._epoch", None)
    (file,) = train_all(data, tmp_path, problems=("mnist",), seeds=(0,), settings=TINY)
    before = predictions_file(trained, "mnist", "resnet9", 0)
    with np.load(file) as found, np.load(before) as whole:
        assert all(np.array_equal(found[name], whole[name]) for name in whole.files)
    with pytest.raises(InvalidInputError, match="part: must be"):
        train_part(data, tmp_path, "mnist", 0, "member-2", TINY)


def test_training_needs_pytorch_numpy_and_scipy_alone() -> None:
    """The module that trains loads nothing else of what raterwise can use."""
    code = (
        "import sys, experiments.confidence_curves.distillation; print(sorted({'numba', 'sklearn',"
        " 'pyarrow', 'rich', 'typer', 'torchmetrics', 'matplotlib'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=ROOT,
    )
    assert found.stdout.strip() == "[]"


# Judging -----------------------------------------------------------------------------------------


def by_hand(seed: int = 0, **changes: Any) -> Cascade:
    """Four cases whose classes are all predicted as 0; the second is of class 1, so wrong."""

    def logits(*top: float) -> np.ndarray:
        p = np.array(top)
        return np.log(np.stack([p, 1 - p], axis=1))[None].repeat(2, axis=0)

    arrays = {
        "classes": np.array([0, 1, 0, 0]),
        "rows": np.arange(4),
        "held_out_classes": np.array([0, 1, 0, 0]),
        "logits.test": logits(0.9, 0.8, 0.7, 0.6),
        "logits.held_out": logits(0.9, 0.8, 0.7, 0.6),
        "logits.out.moons": logits(0.65, 0.95),
        "udist.test": np.array([[0.2, 0.9, 0.2, 0.2], [0.9, 0.1, 0.5, 0.5]]),
        "udist.held_out": np.array([[0.9, 0.1, 0.5, 0.5], [0.9, 0.1, 0.05, 0.05]]),
        "udist.out.moons": np.array([[0.5, 0.5], [0.5, 0.0]]),
        "udist_held_out.test": np.array([[0.0] * 4, [0.5] * 4]),
        "udist_held_out.out.moons": np.array([[0.0] * 2, [0.5] * 2]),
        **changes,
    }
    made_of = {
        "problem": "cifar10", "seed": seed, "members": 2, "held_out": 4,
        "test_temperatures": [1.0, 3.0],
    }  # fmt: skip
    return Cascade(arrays, made_of)


def test_judging_by_hand() -> None:
    """Every metric of four cases and two from elsewhere, worked on paper."""
    counts = np.array([[4, 0], [1, 3], [3, 1], [2, 2]])
    found = judged([by_hand()], counts=counts, resamples=20)
    values = {m: {k: v["value"] for k, v in own.items()} for m, own in found["values"].items()}
    # Right at 0.9, 0.7, 0.6 and wrong at 0.8: one pair of three is in order.
    for method in ("max softmax", "ensemble", "softened"):
        assert values[method]["auccc"] == pytest.approx(1 / 3, abs=1e-12)
    ensemble = values["ensemble"]
    assert ensemble["accuracy"] == 0.75
    # The error rates among the 1, 2, 3, 4 most confident: 0, 1/2, 1/3, 1/4.
    assert ensemble["aurc"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 4, abs=1e-12)
    # Wrong at 0.8, 0.65, 0.95: 0.9 is above two of them, 0.7 above one, 0.6 above none.
    assert ensemble["auccc, moons"] == pytest.approx(3 / 9, abs=1e-12)
    assert ensemble["io_auroc, moons"] == pytest.approx(3 / 8, abs=1e-12)
    # Shares of raters 1, 1/4, 3/4, 1/2: (1·1.5 + 0.25·1.125 + 0.75·0.625 + 0.5·0.25)/(2.5·1.5).
    assert ensemble["auccc by raters"] == pytest.approx(2.375 / 3.75, abs=1e-12)
    assert values["udist"]["auccc"] == 1.0
    # Wrong at 0.1, 0.5, 0.0: 0.9 is above three, each 0.5 above two and level with one.
    assert values["udist"]["auccc, moons"] == pytest.approx((3 + 2 * 2.5) / 9, abs=1e-12)
    assert values["udist, held out"]["auccc"] == 0.5  # all tied
    assert found["by_temperature"]["udist"]["test"] == [0.0, 1.0]
    gap = {(d["first"], d["second"]): d for d in found["differences"] if d["metric"] == "auccc"}
    assert gap["udist", "softened"]["value"] == pytest.approx(2 / 3, abs=1e-12)


def test_temperatures_are_chosen_on_the_held_out_images() -> None:
    """UDist is right there at T = 1 and wrong at 3, whatever it is on the test images."""
    assert by_hand().chosen_temperatures()["udist"] == 1.0
    found = judged([by_hand()], resamples=20)
    # At T = 1 the wrong case, 0.9, is above all three right ones.
    assert found["values"]["udist, chosen"]["auccc"]["value"] == 0.0
    assert found["temperatures"] == [{"softened": 1.0, "udist": 1.0}]
    certain = by_hand(held_out_classes=np.zeros(4, int))
    assert certain.chosen_temperatures() == {"softened": 3.0, "udist": 3.0}


def test_resamples_are_cases_repeated() -> None:
    """Weights that count draws give what the public functions give of the drawn cases."""
    random = np.random.default_rng(0)
    confidence = random.integers(0, 20, 60) / 20  # with ties
    correct = (random.random(60) < 0.7).astype(float)
    times = judging._drawn(60, 30, seed=3)
    rows = [np.repeat(np.arange(60), row.astype(int)) for row in times]
    assert all(len(row) == 60 for row in rows)
    formulas = (judging.ranking.auccc, judging.ranking.aurc)
    for scores in (confidence, confidence + 1e-3 * random.random(60)):  # without ties
        found = judging._measured(scores, [(correct, f) for f in formulas], times)
        for part, public in zip(found, (rw.confidence.auccc, rw.confidence.aurc), strict=True):
            expected = [public(scores[row], correct[row]) for row in rows]
            assert part == pytest.approx(expected, abs=1e-12)


def test_intervals_are_of_the_mean_over_cascades() -> None:
    """Percentiles of the resampled mean; what each cascade has stands beside."""
    first, second = np.linspace(0, 1, 101), np.linspace(0, 1, 101) + 0.2
    both = np.array([[0] * 101, [1] * 101])
    found = judging._estimate(np.array([[0.5, *first], [0.7, *second]]), 0.9, both)
    # The mean of the resamples runs from 0.1 to 1.1; its 5th and 95th percentiles:
    assert (found["value"], found["low"], found["high"]) == pytest.approx((0.6, 0.15, 1.05))
    assert found["each"] == [0.5, 0.7]
    beyond = judging._estimate(np.array([[1.0, 0.2, 0.3]]), 0.9, np.zeros((1, 2), int))
    assert beyond["high"] == 1.0  # the interval holds the value
    # Images that change nothing: what is left is which of the two cascades was drawn.
    fixed = np.repeat([[0.5], [0.7]], 101, axis=1)
    drawn = np.random.default_rng(0).integers(2, size=(2, 100))
    found = judging._estimate(fixed, 0.9, drawn)
    assert (found["low"], found["high"]) == pytest.approx((0.5, 0.7))


def test_files_of_other_images_are_refused() -> None:
    """Cascades of one problem must have the same test images."""
    other = by_hand(seed=1, classes=np.array([0, 0, 0, 1]))
    with pytest.raises(InvalidInputError, match="of the same images; seeds 0 and 1 differ"):
        judged([by_hand(), other], resamples=20)


def test_judging_a_folder(trained: Path, tmp_path: Path) -> None:
    """Tables of what was trained, agreeing with the public functions; an empty folder is named."""
    found = judge(trained, resamples=20)
    assert [part["problem"] for part in found] == ["mnist"]
    assert judge(trained, resamples=20) == found
    expected = []
    for file in sorted(trained.glob("*-seed*.npz")):
        with np.load(file) as arrays:
            p = torch.from_numpy(arrays["logits.test"]).double().softmax(dim=2).mean(dim=0)
            q = torch.from_numpy(arrays["logits.out.chest X-rays"]).double().softmax(dim=2)
            classes = arrays["classes"]
        top, predicted = (part.numpy() for part in p.max(dim=1))
        out = q.mean(dim=0).amax(dim=1).numpy()
        expected.append(rw.confidence.auccc(top, predicted == classes, outside=out))
    value = found[0]["values"]["ensemble"]["auccc, chest X-rays"]
    assert value["each"] == pytest.approx(expected, abs=1e-12)
    text = (trained / "tables.md").read_text(encoding="utf-8")
    assert text == f"{paper.as_markdown(found)}\n{as_markdown(found)}"
    shown = [METHODS[name] for name in METHODS if "T = 10" not in name]  # TINY has no such T
    assert all(f"| {name} |" in text for name in shown)
    assert "images it was trained on" in text
    with pytest.raises(InvalidInputError, match="must hold predictions to judge; it has none"):
        judge(tmp_path)


def test_ranks_are_judged_as_the_confidences_are(trained: Path, tmp_path: Path) -> None:
    """What is kept of a cascade makes the same tables, to the last digit, in fewer bytes."""
    condensed.keep(trained, tmp_path)
    assert [c.arrays.keys() for c in load_cascades(tmp_path)] == [
        c.arrays.keys() for c in load_cascades(trained)
    ]
    names = [file.name for file in trained.glob("*-seed*.npz")]
    sizes = [sum((f / name).stat().st_size for name in names) for f in (tmp_path, trained)]
    assert sizes[0] < sizes[1]
    judge(trained, resamples=20)
    judge(tmp_path, resamples=20)
    assert (tmp_path / "tables.md").read_text() == (trained / "tables.md").read_text()


def test_a_cascade_that_was_not_finished_counts_where_it_can() -> None:
    """UDist is that of the one cascade that has it; the ensemble is the mean of both."""
    whole, early = by_hand(), by_hand(seed=1)
    early = Cascade({k: v for k, v in early.arrays.items() if k != "udist"}, early.made_of)
    found = judged([whole, early], resamples=20)
    assert len(found["values"]["udist"]["auccc"]["each"]) == 1
    assert (
        found["values"]["udist"]["auccc"]
        == judged([whole], resamples=20)["values"]["udist"]["auccc"]
    )
    assert len(found["values"]["ensemble"]["auccc"]["each"]) == 2
    gap = {(d["first"], d["second"]): d for d in found["differences"] if d["metric"] == "auccc"}
    assert gap["udist", "softened"]["value"] == pytest.approx(2 / 3, abs=1e-12)
    assert found["by_temperature"]["udist"]["test"] == [0.0, 1.0]
    assert "UDist, T = 3" in as_markdown([found])


def test_auccc_of_a_finding_that_nobody_calls_is_its_auroc(tmp_path: Path) -> None:
    """Below 1/2 every answer is no; and one temperature ranks as another (CCC Table 2)."""
    random = np.random.default_rng(0)
    probs = random.uniform(0, 0.5, (200, 2))
    probs[:, 1] *= 2  # of this finding, half of the cases are called
    labels = (random.random((200, 2)) < 0.2).astype(np.uint8)
    np.savez(
        tmp_path / "cxr14_chexnet_test.npz", probs=probs, labels=labels,
        classes=["Mass", "Pleural_Thickening"], image=[f"{i // 2:04d}_000.png" for i in range(200)],
    )  # fmt: skip
    found = judge_findings(tmp_path / "cxr14_chexnet_test.npz", tmp_path, resamples=20)
    assert found is not None
    first, second = found["findings"]
    assert first["auccc"] == pytest.approx(first["auroc"], abs=1e-12)
    assert abs(second["auccc"] - second["auroc"]) > 0.01
    assert found["auccc_at"]["1"] == pytest.approx(found["auccc_at"]["10"], abs=1e-12)
    assert found["mean"]["auccc"]["value"] == pytest.approx(found["auccc_at"]["1"], abs=1e-12)
    assert found["patients"] == 100
    assert second["called"] == np.count_nonzero(probs[:, 1] >= 0.5) / 200
    # Where the finding is called as often as it is present, AUCCC is another area than AUROC.
    assert abs(first["auccc_own"] - first["auroc"]) > 0.01
    assert "| paper: DenseNet | 82.37 | 82.07 | -0.30 |" in (tmp_path / "findings.md").read_text()


def test_members_can_be_softened_before_they_are_averaged() -> None:
    """Two members, four images, worked by hand: T = 2 takes the square root of a member's odds.

    Odds of 81 : 1 and 1 : 1 are sure to 0.744 on average at T = 1 and to 0.7 at T = 2; odds of
    4 : 1 twice to 0.8 and to 2/3. So the wrong image of the second kind is the surest at T = 1,
    and less sure than the right one of the first kind at T = 2.
    """
    odds = np.array([[81, 4, 1.1, 81], [1, 4, 1.1, 1]])
    logits = np.stack((np.log(odds), np.zeros_like(odds)), axis=2)
    arrays = {"logits.test": logits, "classes": np.array([0, 1, 1, 0])}
    assert condensed.softened_before(arrays, [1.0, 2.0]) == {"1": 0.5, "2": 1.0}


def test_kept_findings_make_the_table_of_the_docs(tmp_path: Path) -> None:
    """Every row of CCC Table 2 on the page follows from the file beside the experiments alone."""
    file = ROOT / "experiments" / "outputs" / "confidence_curves" / "findings.json"
    page = (ROOT / "docs" / "reproduction" / "confidence_curves.md").read_text(encoding="utf-8")
    assert judge_findings(None, tmp_path) is None
    (tmp_path / file.name).write_bytes(file.read_bytes())
    judge_findings(None, tmp_path)
    lines = (tmp_path / "findings.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 20 and all(line in page for line in lines)


def test_findings_judged_anew_make_the_table_of_the_docs(tmp_path: Path) -> None:
    """The library's intervals may change after outputs were kept: with the data this is seen."""
    folder = os.environ.get("RATERWISE_SHARED_DATA")
    if folder is None or not (Path(folder) / "cxr14_chexnet_test.npz").is_file():
        pytest.skip("RATERWISE_SHARED_DATA does not name a folder with cxr14_chexnet_test.npz")
    judge_findings(Path(folder) / "cxr14_chexnet_test.npz", tmp_path)
    page = (ROOT / "docs" / "reproduction" / "confidence_curves.md").read_text(encoding="utf-8")
    lines = (tmp_path / "findings.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 20 and all(line in page for line in lines)


KEPT = ROOT / "experiments" / "outputs" / "confidence_curves"
LONGER = ROOT / "experiments" / "outputs" / "confidence_curves_100_epochs"


def test_kept_outputs_make_the_tables_of_the_docs() -> None:
    """Every row of CCC Tables 1 and 3 on the page follows from what was judged, and is kept."""
    page = (ROOT / "docs" / "reproduction" / "confidence_curves.md").read_text(encoding="utf-8")
    found = paper.read_judged(KEPT)
    assert [part["problem"] for part in found] == ["cifar10", "cifar10", "cifar8", "pneumonia"]
    lines = [*paper.as_markdown(found).splitlines(), *as_markdown(found).splitlines()]
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) > 100 and all(row in page for row in rows)
    before = json.loads((KEPT / "softened_before.json").read_text(encoding="utf-8"))
    for group in ("densenet", "densenet-23-epochs", "vgg", "vgg-40-epochs"):
        own = [before[f"cifar10-{group}-seed{seed}"] for seed in range(3)]
        means = [100 * np.mean([one[t] for one in own]) for t in ("1", "2", "3")]
        assert ", ".join(f"{mean:.2f}" for mean in means) in page


def test_the_longer_cascade_makes_its_tables_and_sentences() -> None:
    """Rows and numbers of the cascade of 100 epochs follow from what is kept of it."""
    page = (ROOT / "docs" / "reproduction" / "confidence_curves.md").read_text(encoding="utf-8")
    text = page.split("## One cascade of 100 epochs")[1].split("\n## ")[0]
    (found,) = paper.read_judged(LONGER)
    assert found["settings"]["epochs"] == 100 and len(found["seeds"]) == 1
    rows = [row for row in paper.as_markdown([found]).splitlines() if row.startswith("|")]
    assert len(rows) > 25 and all(row in text for row in rows)
    (before,) = json.loads((LONGER / "softened_before.json").read_text(encoding="utf-8")).values()
    assert ", ".join(f"{100 * before[t]:.2f}" for t in ("1", "2", "3")) in page
    gains = [100 * (before[t] - before["1"]) for t in ("2", "3")]
    assert f"gains {gains[0]:.2f} at T = 2 and {gains[1]:.2f} at T = 3" in text


def test_kept_ranks_make_what_was_judged(tmp_path: Path) -> None:
    """The command judges the kept chest X-rays again, at toy size: values do not hang on draws."""
    for file in KEPT.glob("pneumonia-densenet-seed*.npz"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    command = ["confidence_curves", "--out", str(tmp_path), "--judge-only", "--resamples", "20"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    again, kept = (
        json.loads((folder / "pneumonia-densenet.json").read_text(encoding="utf-8"))
        for folder in (tmp_path, KEPT)
    )
    assert again["over_confidence"] == kept["over_confidence"]
    for method, values in kept["values"].items():
        for metric, row in values.items():
            assert again["values"][method][metric]["value"] == pytest.approx(row["value"])
    # Two classes: softening keeps the order, so that no temperature changes anything.
    areas = kept["by_temperature"]["softened"]["test"]
    assert areas == pytest.approx([areas[0]] * 6, abs=1e-12)


def test_every_kept_cascade_was_judged() -> None:
    """The files of ranks are those that the judged numbers were made of."""
    for folder in (KEPT, LONGER):
        cascades = load_cascades(folder)
        for part in paper.read_judged(folder):
            own = [c for c in cascades if c.group == (part["problem"], part["network"])]
            made_of = [judging.fingerprint(*c.arrays.values()) for c in own]
            assert made_of == part["made_of"]["predictions"]


# The command line --------------------------------------------------------------------------------


def test_command_line_trains_and_judges(data: Path, tmp_path: Path) -> None:
    """One command makes predictions and tables; a second judges what is there."""
    command = [
        *("confidence_curves", "--data", str(data), "--out", str(tmp_path / "out")),
        *("--problems", "cifar8", "--seeds", "1", "--members", "1", "--epochs", "1"),
        *("--held-out", "20", "--resamples", "20", "--network", "vgg"),
    ]
    np.save(data / "cifar10h_counts.npy", np.ones((12, 10), int))
    settings = Settings(width=2, distillation_epochs=1, batch_size=16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            distillation, "Settings", lambda **given: replace(settings, **given)
        )  # a network that a test can wait for
        shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "### CIFAR-10 without cats and trucks" in shown.stdout
    assert predictions_file(tmp_path / "out", "cifar8", "vgg", 0).is_file()
    again = CliRunner().invoke(app, [*command, "--judge-only"])
    assert again.exit_code == 0 and "UDist" in again.stdout


def test_table_2_needs_no_networks_of_ours(tmp_path: Path) -> None:
    """A folder without cascades: CheXNet's outputs alone make findings.md, which is printed."""
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    np.savez(
        data / "cxr14_chexnet_test.npz",
        probs=np.array([[0.1, 0.4], [0.2, 0.3], [0.3, 0.2], [0.4, 0.1]]),
        labels=np.array([[0, 0], [1, 1], [0, 1], [1, 0]]),
        classes=["Mass", "Edema"],
        image=[f"{i}_0.png" for i in "1234"],
    )
    command = ["confidence_curves", "--data", str(data), "--out", str(out), "--judge-only"]
    shown = CliRunner().invoke(app, [*command, "--resamples", "20"])
    assert shown.exit_code == 0, shown.output
    # Nobody is called, so AUCCC is AUROC: 0.2 is above 0.1, and 0.4 above both.
    assert "| Mass | 50.0 % | 0.0 % | 75.00 | 75.00 |" in shown.stdout
    assert not (out / "tables.md").exists()


def test_command_line_says_what_is_wrong(data: Path, tmp_path: Path) -> None:
    """Errors are one message and exit code 2."""
    for options, message in (
        (["--problems", "faces"], "problems: must be"),
        (["--judge-only"], "must hold predictions to judge"),
        ([], "held_out: must be fewer than 60; got 5000"),
    ):
        command = ["confidence_curves", "--data", str(data), "--out", str(tmp_path)]
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())


# What a perfect confidence network could gain -----------------------------------------------------


def test_the_loss_of_eq_3_is_least_where_p_t_is_expected() -> None:
    """Three classes, r and P̃ by hand: scipy's best confidence is Σ r P̃ = 0.31."""
    knows, soft = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])

    def loss(said: float) -> float:
        return -float(knows @ (soft * np.log(said) + (1 - soft) * np.log1p(-said)))

    best = optimize.minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), method="bounded").x
    assert knows @ soft == pytest.approx(0.31)
    assert best == pytest.approx(0.31, abs=1e-4)


def test_views_give_true_probabilities() -> None:
    """Of a thousand cases that a view gives 0.9, nine hundred are right; two views add up."""
    random = np.random.default_rng(0)
    labels = random.integers(10, size=200_000)
    right = np.eye(10)[labels]
    for noises in ((0.31,), (0.31, 1.0)):
        logs = sum(ideal.seen(right, noise, random) for noise in noises)
        probs = special.softmax(logs, axis=1)
        assert rw.ece(probs, labels) < 0.002


def test_what_udist_and_softening_need() -> None:
    """To know more than the ensemble, and an ensemble that is far too sure; the page has a row."""
    nothing, little = (ideal.judged(1, own, 0, 50_000) for own in (np.inf, 2.0))
    assert abs(nothing[4]) < 0.15 and nothing[5] == 0
    assert little[4] > 0.3 and 0 < little[5] < 0.7
    assert nothing[3] < -0.8 and ideal.judged(4, np.inf, 0, 50_000)[3] > 0.1
    page = (ROOT / "docs" / "reproduction" / "confidence_curves.md").read_text(encoding="utf-8")
    assert ideal.row(2, 1.5) in page

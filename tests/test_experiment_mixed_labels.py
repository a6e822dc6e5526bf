"""Mix-MNIST and Mix-CIFAR-10 on a tiny made-up copy of the authors' files."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.commands import app
from experiments.kept import read_json
from experiments.label_histograms import mixed_differences
from experiments.label_histograms.figure_data import mixed_changes, mixed_reliability
from experiments.label_histograms.intervals import change
from experiments.label_histograms.mixed_data import (
    TestLabels,
    mixed_images,
    original_images,
    read_mixed_table,
    test_labels,
    true_probabilities,
)
from experiments.label_histograms.mixed_differences import COLUMNS
from experiments.label_histograms.mixed_judging import METHODS, SCALINGS, Judging, judge
from experiments.label_histograms.mixed_outputs import Outputs, load_outputs, restored, rounded
from experiments.label_histograms.mixed_paper import PREDICTION, paper_value
from experiments.label_histograms.mixed_scores import (
    case_losses,
    redrawn,
    scored,
    true_calibration_error,
)
from experiments.label_histograms.mixed_tables import as_markdown
from raterwise import DirichletBelief, EnsembleBelief, PointBelief, epistemic_loss
from raterwise.errors import InvalidInputError
from raterwise.functions.disagreement import disagreement_loss
from raterwise.labels import Labels

HEAD = "id\thist\tnrater\t_mixed\t_org_y\t_org_id\t_ratio\tpartition"
SIZES = {"train": 40, "valid": 60, "test": 50}


def histogram(*classes: int) -> str:
    """Write labels as the authors write their histograms."""
    return ",".join(str(n) for n in np.bincount(classes, minlength=10))


def idx(values: np.ndarray) -> bytes:
    """Write an array as an idx file."""
    shape = b"".join(int(n).to_bytes(4, "big") for n in values.shape)
    return bytes([0, 0, 8, values.ndim]) + shape + values.astype(np.uint8).tobytes()


def striped(images: int, side: int) -> np.ndarray:
    """Make images of which number i shows class i modulo 10: a bright stripe at its height."""
    values = np.random.default_rng(1).integers(50, size=(images, side, side))
    for i in range(images):
        start = i % 10 * side // 10
        values[i, start : start + side // 10] = 255
    return values


def write_tables(folder: Path, name: str, images: int) -> None:
    """Write t1_v1, t1_v2, t1_v5 and the split of the test labels, half of the cases mixed."""
    random = np.random.default_rng(0)
    place = folder / name
    place.mkdir(parents=True)
    lines: dict[str, list[str]] = {key: [HEAD] for key in ("v1", "v2", "v5", "sam", "rem")}
    case = 0
    for partition, size in SIZES.items():
        for i in range(size):
            pair, mixed = (case % 10, (3 * case + 1) % 10), i % 2 == 1
            ratio = random.random() if mixed else 1.0
            given = np.where(random.random(10) < ratio, *pair)
            rows = np.array(pair) + 10 * random.integers(images // 10, size=2)
            org = f"{pair[0]},{pair[1]}\t{rows[0]},{rows[1]}" if mixed else f"{pair[0]}\t{rows[0]}"

            def line(labels: np.ndarray, case=case, mixed=mixed, org=org, ratio=ratio, p=partition):
                hist = histogram(*labels)
                return f"{case}\t{hist}\t{len(labels)}\t{int(mixed)}\t{org}\t{ratio}\t{p}"

            number = {"train": (1, 1, 1), "valid": (1, 2, 5), "test": (10, 10, 10)}[partition]
            for key, n in zip(("v1", "v2", "v5"), number, strict=True):
                lines[key].append(line(given[:n]))
            if partition == "test":
                lines["sam"].append(line(given[:1]))
                lines["rem"].append(line(given[1:]))
            case += 1
    names = {key: f"{name}.t1_{key}.txt.gz" for key in ("v1", "v2", "v5")}
    names |= {key: f"{name}.test_split.n1_s1.{key}.txt.gz" for key in ("sam", "rem")}
    for key, file in names.items():
        (place / file).write_bytes(gzip.compress(("\n".join(lines[key]) + "\n").encode()))


@pytest.fixture(name="data", scope="module")
def folder_of_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write MNIST and CIFAR-10 of a few random images, and the tables of both."""
    folder = tmp_path_factory.mktemp("data")
    images, classes = striped(42, 28), np.arange(42) % 10
    for part, rows in (("train", slice(30)), ("t10k", slice(30, None))):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(images[rows]))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(classes[rows]))
    colours = np.repeat(striped(24, 32).reshape(24, -1), 3, axis=0).reshape(24, -1)
    records = np.column_stack((np.arange(24) % 10, colours)).astype(np.uint8)
    for i, batch in enumerate([f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]):
        (folder / f"{batch}.bin").write_bytes(records[4 * i : 4 * i + 4].tobytes())
    write_tables(folder, "mixed_mnist", 42)
    write_tables(folder, "mixed_cifar10", 24)
    return folder


# The authors' files ------------------------------------------------------------------------------


def write_lines(path: Path, *lines: str) -> Path:
    """Write a table with its head."""
    path.write_bytes(gzip.compress("\n".join((HEAD, *lines)).encode()))
    return path


def test_a_table_of_the_authors_is_read(tmp_path: Path) -> None:
    """Mixed and unmixed rows as the authors write them; class 4 has the ratio, 7 the rest."""
    table = read_mixed_table(
        write_lines(
            tmp_path / "t.txt.gz",
            f"0\t{histogram(3)}\t1\t0\t3\t12\t1.0\ttrain",
            f"1\t{histogram(4, 4, 7)}\t3\t1\t4,7\t57335,59186\t0.75\ttest",
        )
    )
    assert table.sources.tolist() == [[12, 12], [57335, 59186]]
    assert table.classes.tolist() == [[3, 3], [4, 7]]
    assert table.part("test").counts.tolist() == [[0, 0, 0, 0, 2, 0, 0, 1, 0, 0]]
    truth = true_probabilities(table.classes, table.ratio)
    assert truth[0, 3] == 1
    assert truth[1, [4, 7]].tolist() == [0.75, 0.25]
    assert truth.sum() == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"0\t{histogram(3)}\t1\t0\t3\t12\t1.5\ttrain", r"_ratio must be 0 … 1; got 1\.5"),
        ("0\t1,0\t1\t0\t3\t12\t1.0\ttrain", r"must have 10 classes; got histograms of 2"),
        (f"0\t{histogram(3)}\t1\t0\tcat\t12\t1.0\ttrain", r"must hold numbers"),
    ],
)
def test_tables_that_cannot_be_right(tmp_path: Path, line: str, message: str) -> None:
    """A ratio beyond 1, other classes, words in the place of numbers: the error says which."""
    with pytest.raises(InvalidInputError, match=message):
        read_mixed_table(write_lines(tmp_path / "t.txt.gz", line))


def test_other_files_and_partitions(tmp_path: Path) -> None:
    """A table without the columns, and a partition that is not there, are errors."""
    file = tmp_path / "other.txt"
    file.write_text("a\tb\n1\t2\n")
    with pytest.raises(InvalidInputError, match=r"must have the columns id, hist, .*; got a, b"):
        read_mixed_table(file)
    good = write_lines(tmp_path / "t.txt.gz", f"0\t{histogram(3)}\t1\t0\t3\t12\t1.0\ttrain")
    with pytest.raises(InvalidInputError, match="got 'test'"):
        read_mixed_table(good).part("test")


def test_labels_of_the_split_must_be_those_of_the_test_set(data: Path, tmp_path: Path) -> None:
    """The expert's label and the nine add to the ten; a split of other labels is refused."""
    found = test_labels(data, "mixed_mnist")
    assert found.counts.sum(axis=1).tolist() == [10] * 50
    assert (found.counts[np.arange(50), found.expert] >= 1).all()
    place = tmp_path / "mixed_mnist"
    place.mkdir()
    for file in (data / "mixed_mnist").iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    other = place / "mixed_mnist.test_split.n1_s1.rem.txt.gz"
    other.write_bytes((place / "mixed_mnist.test_split.n1_s1.sam.txt.gz").read_bytes())
    with pytest.raises(InvalidInputError, match="sam and rem must add"):
        test_labels(tmp_path, "mixed_mnist")


def test_images_are_mixed_in_their_ratio(data: Path, tmp_path: Path) -> None:
    """A quarter of one and three quarters of the other; an unmixed image is itself to the bit."""
    images = original_images(data, "mixed_cifar10")
    assert images.shape == (24, 3, 32, 32)
    table = read_mixed_table(
        write_lines(
            tmp_path / "t.txt.gz",
            f"0\t{histogram(1)}\t1\t1\t1,2\t3,5\t0.25\ttrain",
            f"1\t{histogram(1)}\t1\t0\t1\t7\t1.0\ttrain",
        )
    )
    mixed = mixed_images(images, table)
    np.testing.assert_allclose(mixed[0], 0.25 * images[3] + 0.75 * images[5], rtol=1e-6)
    np.testing.assert_array_equal(mixed[1], images[7])
    with pytest.raises(InvalidInputError, match="8 or more; got 7"):
        mixed_images(images[:7], table)


# True and estimated losses -----------------------------------------------------------------------


def test_true_losses_by_hand() -> None:
    """EL, prior and posterior of two cases, worked out by hand."""
    labels = TestLabels(
        counts=np.array([[7, 3] + [0] * 8, [10] + [0] * 9]),
        expert=np.array([1, 0]),
        classes=np.array([[0, 1], [0, 0]]),
        ratio=np.array([0.75, 1.0]),
    )
    probs = np.zeros((2, 10))
    probs[:, :2] = [[0.5, 0.5], [0.9, 0.1]]
    losses = case_losses(DirichletBelief(probs, [1.0, 9.0]), labels)
    # ‖(0.5, 0.5) - (0.75, 0.25)‖² and ‖(0.9, 0.1) - (1, 0)‖².
    np.testing.assert_allclose(losses["epistemic_loss_true"], [0.125, 0.02], rtol=1e-12)
    # Seven of ten: 2 (0.2² - 0.7 · 0.3 / 9); all of ten: no spread to subtract.
    expected = [2 * (0.04 - 0.21 / 9), 0.02]
    np.testing.assert_allclose(losses["epistemic_loss"], expected, rtol=1e-12)
    # α0 = 1 and a label of class 1: (0.25, 0.75); α0 = 9 and one of class 0: (0.91, 0.09).
    np.testing.assert_allclose(losses["posterior_true"], [0.5, 2 * 0.09**2], rtol=1e-12)
    # Of the nine others, seven of nine say 0.
    spread = (7 / 9) * (2 / 9) / 8
    first = 2 * ((7 / 9 - 0.25) ** 2 - spread), 2 * ((7 / 9 - 0.5) ** 2 - spread)
    np.testing.assert_allclose(losses["posterior"][0], first[0], rtol=1e-12)
    np.testing.assert_allclose(losses["prior"][0], first[1], rtol=1e-12)


def test_true_calibration_error_by_hand() -> None:
    """Two bins of one class: (0.2² - 0.02/2) 2/4 + 0.3² 2/4, and a lone case counts nothing."""
    scores = np.array([[0.51], [0.51], [0.9], [0.9], [0.05]])
    truth = np.array([[0.61], [0.81], [0.6], [0.6], [0.9]])
    # The bin of 0.51 has ζ = 0.61, 0.81: mean 0.71, variance 0.02.
    expected = np.sqrt(2 / 5 * (0.2**2 - 0.02 / 2) + 2 / 5 * 0.3**2)
    assert true_calibration_error(scores, truth, bins=15) == pytest.approx(expected, rel=1e-12)


def test_estimates_are_unbiased_for_the_truth() -> None:
    """Over 300 draws of ten labels, the estimated EL is the true one within four errors."""
    random = np.random.default_rng(3)
    ratio = random.random(40)
    classes = random.integers(10, size=(40, 2))
    truth = true_probabilities(classes, ratio)
    belief = PointBelief(random.dirichlet(np.ones(10), 40))
    found = []
    for _ in range(300):
        counts = random.multinomial(10, truth)
        expert = counts.argmax(axis=1)
        losses = case_losses(belief, TestLabels(counts, expert, classes, ratio))
        found.append(losses["epistemic_loss"].mean() - losses["epistemic_loss_true"].mean())
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(len(found))
    assert np.std(found) > 0


def test_new_labels_show_a_bias_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unbiased estimates are within four errors of 0; the plug-in CL is far above the truth."""
    from experiments.label_histograms import mixed_scores

    random = np.random.default_rng(5)
    classes, ratio = random.integers(10, size=(200, 2)), random.random(200)
    counts = random.multinomial(10, true_probabilities(classes, ratio))
    labels = TestLabels(counts, counts.argmax(axis=1), classes, ratio)
    belief = PointBelief(random.dirichlet(np.ones(10), 200))
    found = redrawn(belief, labels, draws=200, seed=0)
    assert all(abs(mean) < 4 * error for mean, error in found.values())
    plugin = partial(mixed_scores.calibration_loss, estimator="plugin")
    monkeypatch.setattr(mixed_scores, "calibration_loss", plugin)
    mean, error = redrawn(belief, labels, draws=200, seed=0)["calibration_loss"]
    assert mean > 20 * error


def test_case_losses_are_those_of_the_library() -> None:
    """Their means are `epistemic_loss` and `disagreement_loss`; the sum weighs as it should."""
    random = np.random.default_rng(4)
    classes, ratio = random.integers(10, size=(30, 2)), random.random(30)
    counts = random.multinomial(10, true_probabilities(classes, ratio))
    labels = TestLabels(counts, counts.argmax(axis=1), classes, ratio)
    samples = random.dirichlet(np.ones(10), (3, 30))
    belief = EnsembleBelief(samples)
    values, whole = scored(belief, labels), Labels.from_counts(counts)
    assert values["epistemic_loss"] == pytest.approx(epistemic_loss(belief.mean, whole), rel=1e-12)
    expected = disagreement_loss(belief.disagreement(), whole)
    assert values["disagreement_loss"] == pytest.approx(expected, rel=1e-12)
    rows = np.arange(30)
    weights = 9 + samples[:, rows, labels.expert]  # nine classes that the expert did not name
    after = np.einsum("sn,snk->nk", weights / weights.sum(axis=0), samples)
    true = ((after - labels.truth) ** 2).sum(axis=1).mean()
    assert values["posterior_sum_true"] == pytest.approx(true, rel=1e-12)


# What is kept ------------------------------------------------------------------------------------


def test_rounding_keeps_values_to_a_percent_of_the_root() -> None:
    """64 levels even in the root: off by at most half a level there; 0 and the largest exactly."""
    values = np.random.default_rng(0).gamma(0.5, size=(500, 4)).astype(np.float32)
    values[0] = 0
    kept = rounded(values, "x")
    back = restored(kept["x"], kept["x_top"])
    top = values.max(axis=0)
    assert (np.abs(np.sqrt(back / top) - np.sqrt(values / top)) <= 0.5 / 63 + 1e-6).all()
    assert (back[0] == 0).all()
    np.testing.assert_allclose(back.max(axis=0), top, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="x: must be finite and not negative"):
        rounded(-values, "x")


def test_vgg16_without_batch_norm_keeps_its_signal() -> None:
    """As the released code has it: no normalisation, and outputs that still differ by image."""
    torch = pytest.importorskip("torch")
    from experiments.label_histograms.mixed_networks import network_of

    torch.manual_seed(0)
    network = network_of("mixed_cifar10", width=0.25, batch_norm=False).eval()
    kinds = {type(module).__name__ for module in network.modules()}
    assert "BatchNorm2d" not in kinds
    plain = network_of("mixed_cifar10", width=0.25)
    assert "BatchNorm2d" in {type(module).__name__ for module in plain.modules()}
    images = torch.randint(0, 255, (8, 3, 32, 32)).float()
    with torch.no_grad():
        assert network(images).std(dim=0).min() > 1e-9
    # As Keras begins: biases 0, weights uniform up to √(6 / (inputs + outputs)) of 3 × 3 pixels.
    second = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d)][1]
    assert not second.bias.any()
    assert float(second.weight.detach().abs().max()) == pytest.approx((6 / 288) ** 0.5, rel=0.01)


def test_rows_in_which_alpha_does_not_help_are_not_counted() -> None:
    """Two networks: L_φD falls in one and CE_φD in none."""

    def network(seed: int, before: float, after: float) -> dict[str, Any]:
        key = {"method": "raw", "scaling": "none", "labels": 2, "differences": {}}
        names = ("disagreement_loss", "disagreement_calibration_error")
        pairs = ((False, (before, 0.2)), (True, (after, 0.3)))
        rows = [{**key, "alpha": a, "values": dict(zip(names, v, strict=True))} for a, v in pairs]
        redrawn = dict.fromkeys(("epistemic_loss", "calibration_loss"), (0.0, 0.0))
        fitted = {str(n): {"temperature": float(n)} for n in (2, 5)}
        about = {"data": "mixed_mnist", "seed": seed, "fitted": fitted, "redrawn": redrawn}
        return {**about, "rows": rows}

    text = as_markdown([network(0, 0.2, 0.1), network(1, 0.2, 0.3)])
    assert "| Raw | 1 of 2 | 0 of 2 |" in text
    assert "T: 2.000, 2.000." in text and "T: 5.000, 5.000." in text


def test_the_head_is_remade_as_the_network_has_it() -> None:
    """Logits from kept channels are PyTorch's of the same channels; dropout keeps their mean."""
    torch = pytest.importorskip("torch")
    from experiments.label_histograms.mixed_networks import network_of

    torch.manual_seed(0)
    network = network_of("mixed_mnist", width=0.1).eval()
    with torch.no_grad():
        pooled = network.pooled(torch.rand(20, 1, 28, 28) * 255).numpy()
    arrays = rounded(pooled, "pooled_test")
    for name in ("hidden", "last"):
        for kind, value in getattr(network, name).named_parameters():
            arrays[f"{name}_{kind}"] = value.detach().numpy()
    outputs = Outputs({"data": "mixed_mnist", "seed": 0}, arrays)
    given = torch.from_numpy(restored(arrays["pooled_test"], arrays["pooled_test_top"]))
    with torch.no_grad():
        hidden = torch.relu(network.hidden(given))
        expected = network.last(hidden).numpy()
    logits, features = outputs.plain("test")
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    np.testing.assert_allclose(features, hidden.numpy(), atol=1e-5)
    draws, kept = outputs.dropout("test", 400, seed=0)
    assert 0.4 < (kept[:, features > 0] == 0).mean() < 0.75  # half, and those cut off below
    again, _ = outputs.dropout("test", 2, seed=0)
    np.testing.assert_array_equal(again, draws[:2])
    assert np.abs(draws.std(axis=0)).min() > 0


def test_augmentation_moves_images_and_nothing_else() -> None:
    """Without turn, shift and zoom an image is itself or its mirror image; a flat one stays."""
    torch = pytest.importorskip("torch")
    from experiments.label_histograms.mixed_networks import augmented

    images = torch.rand(16, 3, 8, 8)
    torch.manual_seed(1)
    still = augmented(images, turn=0, shift=0, zoom=0)
    same = [torch.allclose(a, b, atol=1e-5) for a, b in zip(still, images, strict=True)]
    mirror = [torch.allclose(a, b.flip(-1), atol=1e-5) for a, b in zip(still, images, strict=True)]
    assert all(a or b for a, b in zip(same, mirror, strict=True))
    assert any(same)
    assert any(mirror)
    flat = torch.full((4, 3, 32, 32), 7.0)
    torch.testing.assert_close(augmented(flat), flat)
    assert not torch.allclose(augmented(images), images)


# The whole ---------------------------------------------------------------------------------------


@pytest.fixture(name="out", scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train and judge two networks of Mix-MNIST and one of Mix-CIFAR-10, of a few channels."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("mixed")
    command = ["mixed_labels", "--data", str(data), "--out", str(folder / "out"), "--quiet"]
    command += ["--width", "0.1", "--mnist-epochs", "30", "--cifar10-epochs", "20"]
    command += ["--mnist-seeds", "2", "--cifar10-seeds", "1", "--keep", str(folder / "kept")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return folder


def test_every_row_of_the_tables_is_there(out: Path) -> None:
    """Three methods (two of Mix-MNIST) x four scalings x with and without α x 2 and 5 labels."""
    found = json.loads((out / "out" / "summary.json").read_text(encoding="utf-8"))
    sizes = [(part["data"], part["seed"], len(part["rows"])) for part in found]
    assert sizes == [
        *(("mixed_mnist", 0, 32), ("mixed_mnist", 1, 32)),
        ("mixed_cifar10", 0, len(METHODS) * len(SCALINGS) * 2 * 2),
    ]
    for part in found:
        rows = {(r["method"], r["scaling"], r["alpha"], r["labels"]): r for r in part["rows"]}
        for (method, scaling, alpha, number), row in rows.items():
            plain = rows[method, scaling, False, number]["values"]
            if alpha:  # α leaves the class probabilities as they are
                assert row["values"]["accuracy"] == plain["accuracy"]
                assert row["values"]["true_accuracy"] == plain["true_accuracy"]
                assert row["values"]["disagreement"] < plain["disagreement"]
                gap = row["values"]["disagreement_loss"] - plain["disagreement_loss"]
                assert row["differences"]["alpha"][0] == pytest.approx(gap, abs=1e-12)
            sums = method != "raw" and not alpha
            assert ("posterior_sum" in row["values"]) == sums
            assert row["values"]["posterior"] != row["values"]["prior"] or method == "raw"
    text = (out / "out" / "tables.md").read_text(encoding="utf-8")
    assert "### Mix-MNIST(2)" in text
    assert "### Mix-CIFAR-10(5)" in text
    assert "| TTA+ts+α |" in text
    assert "(.0388)" in text


def test_kept_outputs_give_the_same_tables(out: Path, tmp_path: Path) -> None:
    """From what is kept, without data and draws, the tables are the same to the last digit."""
    kept = tmp_path / "kept"
    kept.mkdir()
    for file in (out / "kept").iterdir():
        (kept / file.name).write_bytes(file.read_bytes())
    for file in kept.glob("mixed_mnist-*-raw.json.xz"):
        file.unlink()  # remade, not read
    pytest.importorskip("matplotlib")
    command = ["mixed_labels", "--out", str(kept), "--judge-only", "--figures", "--quiet"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    drawn = {"figure_1_mixed.svg", "figure_2.svg", "figure_3.svg", "figure_4_mixed.png"}
    assert drawn <= {file.name for file in kept.iterdir()}
    for name in ("tables.md", "summary.json"):
        assert (kept / name).read_bytes() == (out / "out" / name).read_bytes()
    with np.load(kept / "mixed_cifar10-0.npz", allow_pickle=False) as stored:
        # No channels, no draws, and so no head either.
        assert set(stored.files) == {"logits_test", "made_of"}
    assert not [file for file in (out / "kept").iterdir() if "summary" in file.name]


@pytest.mark.parametrize(("channels", "kept"), [(64, {"valid", "test"}), (65, {"test"})])
def test_validation_outputs_of_wide_networks_are_not_kept(channels: int, kept: set[str]) -> None:
    """Of a wide Mix-MNIST network the calibrators are enough; of a narrow one both are small."""
    names = ("pooled_valid", "pooled_test", "hidden_tta")
    arrays = {name: np.zeros((2, channels), np.uint8) for name in names}
    arrays |= {f"{name}_top": np.ones(channels, np.float32) for name in names}
    slim = Outputs({"data": "mixed_mnist", "seed": 0}, arrays).slim()
    assert set(slim) == {f"pooled_{part}{end}" for part in kept for end in ("", "_top")}


def test_the_diagram_of_disagreement_has_the_mean_of_the_tables(out: Path) -> None:
    """Fig 1: over its bins, predicted disagreement is on average what the table says."""
    found = json.loads((out / "out" / "summary.json").read_text(encoding="utf-8"))
    bins = mixed_reliability(out / "out")["mcdo", "ts", True]
    shown = (bins["cases"] * bins["predicted"]).sum() / bins["cases"].sum()
    means = [
        row["values"]["disagreement"]
        for part in found
        for row in part["rows"]
        if part["data"] == "mixed_mnist" and row["labels"] == 2
        and (row["method"], row["scaling"], row["alpha"]) == ("mcdo", "ts", True)
    ]  # fmt: skip
    assert len(means) == 2 and shown == pytest.approx(np.mean(means), abs=1e-5)
    before, after = mixed_changes(out / "out", "mixed_cifar10")[0].confidence
    assert before.shape == after.shape == (50,)


def test_another_seed_of_dropout_gives_other_numbers(out: Path, data: Path, tmp_path: Path) -> None:
    """The seed reaches the draws of dropout, and only those."""
    for file in (out / "out").glob("mixed_mnist-0.npz"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    values = [
        [row["values"]["posterior"] for row in part[0]["rows"] if row["method"] == method]
        for seed in (0, 1)
        for part in [judge(data, tmp_path, ["mixed_mnist"], Judging(samples=3, seed=seed))]
        for method in ("raw", "mcdo")
    ]
    assert values[0] == values[2]
    assert values[1] != values[3]


def test_what_is_not_there_is_said(out: Path, tmp_path: Path) -> None:
    """No networks, no labels, no data to train on, another data set: each is an error."""
    with pytest.raises(InvalidInputError, match="must hold networks of mixed_mnist"):
        judge(None, tmp_path, ["mixed_mnist"], Judging())
    (tmp_path / "mixed_mnist-0.npz").write_bytes((out / "out" / "mixed_mnist-0.npz").read_bytes())
    with pytest.raises(InvalidInputError, match=r"labels-mixed_mnist\.npz is not kept"):
        judge(None, tmp_path, ["mixed_mnist"], Judging())
    runner = CliRunner()
    missing = runner.invoke(app, ["mixed_labels", "--out", str(tmp_path / "new")])
    assert missing.exit_code == 2
    assert "--data: must be given" in missing.output
    other = runner.invoke(app, ["mixed_labels", "--out", str(tmp_path), "--problems", "mixed_svhn"])
    assert other.exit_code == 2
    assert "mixed_svhn" in other.output
    (tmp_path / "mixed_mnist-1.npz").write_bytes(b"nothing")
    with pytest.raises(InvalidInputError, match=r"mixed_mnist-1\.npz: must be a network"):
        judge(None, tmp_path, ["mixed_mnist"], Judging())


def test_part_and_device_reach_the_training(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of eight parts is number 1 from 0 on; the epochs arrive, nothing is judged."""
    pytest.importorskip("torch")
    from experiments.label_histograms import mixed_training

    asked = []
    monkeypatch.setattr(mixed_training, "train_all", lambda *a, **given: asked.append((a, given)))
    command = ["mixed_labels", "--data", str(data), "--out", str(tmp_path / "out"), "--part", "2/8"]
    options = ["--device", "cuda", "--cifar10-epochs", "120", "--batch-norm"]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 0 and "Part 2/8 is trained" in result.stdout, result.output
    ((_, _, names, settings), given) = asked[0]
    assert (given["shard"], given["device"]) == ((1, 8), "cuda")
    assert settings.batch_norm and not mixed_training.Settings().batch_norm
    assert settings.cifar10_epochs == 120 and len(settings.runs(names)) == 8
    rates = [settings.recipe("mixed_cifar10", 0).rate(epoch, 120) for epoch in (0, 47, 48, 72)]
    assert rates == pytest.approx([1 / 6, 1, 0.1, 0.01])


@pytest.mark.parametrize("batch_norm", [True, False])
def test_batch_norm_reaches_the_network_and_its_file(
    batch_norm: bool, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is trained has it or not, and a file without it says so."""
    pytest.importorskip("torch")
    from experiments.label_histograms import mixed_training

    built = []

    def untrained(build: Callable[[], Any], *_: Any, **__: Any) -> Any:
        built.append(build())
        return built[-1]

    monkeypatch.setattr(mixed_training, "train", untrained)
    monkeypatch.setattr(mixed_training, "said", lambda *_, **__: {"x": np.zeros(1)})
    settings = mixed_training.Settings(cifar10_seeds=1, width=0.1, batch_norm=batch_norm)
    mixed_training.train_all(data, tmp_path, ["mixed_cifar10"], settings)
    kinds = {type(module).__name__ for module in built[0].modules()}
    assert ("BatchNorm2d" in kinds) == batch_norm
    with np.load(tmp_path / "mixed_cifar10-0.npz", allow_pickle=False) as kept:
        assert json.loads(str(kept["made_of"])).get("batch_norm", True) == batch_norm


def test_numbers_of_the_paper() -> None:
    """Cells read off the printed tables, one of each; TTA has none for Mix-MNIST."""
    raw, tta, mcdo = ("raw", "none", False), ("tta", "ts", True), ("mcdo", "ts", True)
    assert paper_value("mixed_mnist", 5, mcdo, "true_calibration_error") == ".0631"
    assert paper_value("mixed_cifar10", 2, tta, "true_disagreement_calibration_error") == ".0467"
    assert paper_value("mixed_cifar10", 5, ("tta", "none", False), "posterior_sum_true") == ".2184"
    assert paper_value("mixed_cifar10", 5, ("tta", "none", False), "posterior_true") == ""
    assert paper_value("mixed_cifar10", 5, ("raw", "ts", True), "posterior_true") == ".0676"
    assert paper_value("mixed_cifar10", 2, raw, "squared_loss") == ".3518"
    assert paper_value("mixed_mnist", 2, tta, "true_accuracy") == ""
    assert paper_value("mixed_mnist", 2, raw, "posterior_true") == ""
    assert paper_value("mixed_mnist", 2, ("raw", "vs", False), "true_accuracy") == ""


@pytest.mark.parametrize("name", ["mixed_mnist", "mixed_cifar10"])
def test_the_paper_judges_by_the_true_probabilities(name: str) -> None:
    """Its L_sq - EL is 1 - Σ ζ² of the truth in every row, and not what the ten labels give."""
    with np.load(KEPT / f"labels-{name}.npz", allow_pickle=False) as stored:
        counts = stored["test"].astype(np.int64)
        truth = true_probabilities(stored["classes"].astype(np.int64), stored["ratio"])
    exact = 1 - (truth**2).sum(axis=1).mean()
    labels = 1 - (counts * (counts - 1)).sum(axis=1).mean() / 90
    for key in [(name, 2), (name, 5)]:
        for line in PREDICTION[key]:
            _, squared, epistemic, _ = map(float, line.split())
            assert abs(squared - epistemic - exact) < 1e-4  # two roundings to four digits
            assert abs(squared - epistemic - labels) > 2e-4


def test_intervals_hold_both_kinds_of_chance() -> None:
    """Two networks at 1 and 3, errors of 3 and 4 over cases: the variance is 12.5 + 2/2."""
    half = 1.959964 * np.sqrt((9 + 16) / 2 + 1)
    assert change([(1.0, 3.0), (3.0, 4.0)]) == f"+2.0000 [{2 - half:+.4f}, {2 + half:+.4f}]"
    assert change([]) == ""
    assert change([(0.0, 0.0)]) == "0"


# The networks behind the page --------------------------------------------------------------------

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "experiments" / "outputs" / "label_histograms"


def copied(to: Path) -> Path:
    """Copy the kept outputs: a run writes beside them."""
    for file in KEPT.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def test_the_page_has_the_tables_of_the_kept_outputs(tmp_path: Path) -> None:
    """Every line of the tables made from the repository stands in the documentation."""
    judge(None, copied(tmp_path), ["mixed_mnist", "mixed_cifar10"], Judging())
    page = (ROOT / "docs" / "reproduction" / "label_histograms.md").read_text(encoding="utf-8")
    made = (tmp_path / "tables.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in made if line and line not in page] == []
    everything = [file for file in KEPT.parent.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in everything) <= 15_000_000


def test_the_page_has_the_tables_with_batch_norm(tmp_path: Path) -> None:
    """Those of the other three networks, under headings of their own."""
    for file in (KEPT.parent / "mixed_with_batch_norm").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    judge(None, tmp_path, ["mixed_cifar10"], Judging())
    page = (ROOT / "docs" / "reproduction" / "label_histograms.md").read_text(encoding="utf-8")
    page = page.partition("### With batch norm: estimates")[2]
    made = (tmp_path / "tables.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in made if line and not line.startswith("###")]
    assert len(rows) > 200 and [line for line in rows if line not in page] == []


def test_kept_networks_have_the_paper_s_recipe() -> None:
    """250 epochs without batch norm; three networks with it are kept beside them."""
    for folder, epochs, normed in (
        (KEPT, 250, False),
        (KEPT.parent / "mixed_with_batch_norm", 100, True),
    ):
        networks = load_outputs(folder, "mixed_cifar10")
        assert [network.seed for network in networks] == [0, 1, 2]
        for network in networks:
            assert network.made_of["recipe"]["epochs"] == epochs
            assert network.made_of.get("batch_norm", True) is normed


def test_what_is_left_between_the_paper_and_our_networks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers of the page, printed by the command it names; nothing is written beside them."""
    before = {file.name for file in KEPT.iterdir()}
    monkeypatch.setattr("sys.argv", ["mixed_differences", str(KEPT)])
    mixed_differences.main()
    text = capsys.readouterr().out
    assert "within 2.5 SD | within 4.97 SD" in text
    assert "| all | 168 | 157 | 167 | 1.9% |" in text
    assert "| CE | 24 | 23 | 24 | 12.2% |" in text
    errors = [line.split(" | ")[2:7] for line in text.splitlines() if line.startswith("| seed")]
    _, scaled, least, fewest, most = np.array(errors, float).T
    assert scaled.tolist() == [0.0779, 0.0895, 0.0907] and least.min() == 0.0741
    assert (fewest.min(), most.max()) == (0.0725, 0.0954)
    page = (ROOT / "docs" / "reproduction" / "label_histograms.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| Mix-[\w-]+, ", line)]
    rows += [line for line in text.splitlines() if "+ts | 1." in line]
    assert len(rows) == 12 and all(row in page for row in rows)
    assert {file.name for file in KEPT.iterdir()} == before


def test_intervals_over_cases_by_hand() -> None:
    """Of EL, a mean over cases: its standard error is known, and that between networks is added."""
    counts = mixed_differences.kept_labels(None, KEPT, "mixed_mnist").test.counts
    n = counts.sum(axis=1, keepdims=True)
    mu = counts / n
    each = []
    for outputs in load_outputs(KEPT, "mixed_mnist"):
        probs = np.exp(outputs.arrays["logits_test"].astype(float))
        probs /= probs.sum(axis=1, keepdims=True)
        each.append(((mu - probs) ** 2 - mu * (1 - mu) / (n - 1)).sum(axis=1))
    losses = np.array(each)
    of_cases = losses.var(axis=1, ddof=1).mean() / losses.shape[1]
    of_networks = losses.mean(axis=1).var(ddof=1) / len(losses)
    halves = {
        line.split(" | ")[0]: line.split(" | ") for line in mixed_differences.over_cases(KEPT)
    }
    half = float(halves["| Mix-MNIST, Raw"][3])
    assert half == pytest.approx(1.96 * np.sqrt(of_cases + of_networks), rel=0.15)
    # α leaves class probabilities alone, with and without draws, and so their losses.
    for method in ("Raw", "Raw+ts", "MCDO", "MCDO+ts"):
        plain, calibrated = (halves[f"| Mix-MNIST, {method}{alpha}"] for alpha in ("", "+α"))
        assert plain[1:5] == calibrated[1:5] and plain[5:] != calibrated[5:]


def test_cells_and_errors_by_hand() -> None:
    """Accuracies .79 and .80 beside .7965; logits that are certain of a class of probability ½."""
    key = {"labels": 2, "method": "raw", "scaling": "none", "alpha": False}
    both = [
        {"data": "mixed_cifar10", "rows": [{**key, "values": dict.fromkeys(COLUMNS, value)}]}
        for value in (0.79, 0.80)
    ]
    first = next(iter(mixed_differences.cells(both)))
    assert (first.metric, first.printed) == ("true_accuracy", 0.7965)
    assert first.apart == pytest.approx(0.0015 / (0.01 / np.sqrt(2)))
    logits, truth = np.tile([2 * np.log(3), 0.0], (50, 1)), np.tile([0.5, 0.5], (50, 1))
    found = mixed_differences.errors_of(logits, truth, 2.0)
    # At T = 2 it says 3/4, and T = 2 is the largest that is tried: both classes are off by ¼.
    assert found["Raw+ts"] == found["least"] == pytest.approx(np.sqrt(2) / 4)
    assert found["Raw"] == pytest.approx(np.sqrt(2) * 0.4)


def test_kept_rows_follow_from_the_kept_outputs(tmp_path: Path) -> None:
    """The plain rows of a network, judged again with its kept calibrators, are those kept."""
    copied(tmp_path)
    stored = read_json(tmp_path / "mixed_mnist-0-raw.json")["rows"]
    for file in (*tmp_path.glob("mixed_mnist-0-raw*"), *tmp_path.glob("mixed_mnist-[1-9]*")):
        file.unlink()
    (again,) = judge(None, tmp_path, ["mixed_mnist"], Judging())
    assert len(stored) == 16
    for before, after in zip(stored, again["rows"], strict=False):
        # Another processor adds float32 in another order, which may move a case to another bin.
        assert after["values"] == pytest.approx(before["values"], abs=5e-4)


def test_accuracy_knows_both_the_labels_and_the_truth() -> None:
    """One case: 4 of 10 labels name the class of probability 0.6, which the belief names too."""
    counts = np.array([[4, 6, *[0] * 8]])
    labels = TestLabels(counts, np.array([0]), np.array([[0, 1]]), np.array([0.6]))
    values = scored(PointBelief(np.array([[0.7, 0.3, *[0.0] * 8]])), labels)
    assert (values["accuracy"], values["true_accuracy"]) == (0, 1)

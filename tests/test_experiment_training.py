"""The experiments' training: seeded, resumable, and the best epoch kept."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from experiments.kept import (  # noqa: E402
    fingerprint,
    json_files,
    kept,
    pack_json,
    read_json,
)
from experiments.training import Recipe, predict, train  # noqa: E402


def line(cases: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    """Two classes that a line divides."""
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(cases, 2))).float()
    return points, (points[:, 0] > 0).long()


def linear() -> nn.Module:
    """The smallest network."""
    return nn.Linear(2, 2)


def test_a_network_learns_and_the_seed_decides_its_digits() -> None:
    """A line is learnt; the same seed gives the same weights, another seed others."""
    loss, recipe = nn.CrossEntropyLoss(), Recipe(epochs=40, batch_size=16, learning_rate=0.05)
    first = train(linear, loss, line(), recipe)
    assert (predict(first, line()[0]).argmax(axis=1) == line()[1].numpy()).mean() > 0.95
    again = train(linear, loss, line(), recipe)
    assert torch.equal(first.weight, again.weight)
    other = train(linear, loss, line(), Recipe(40, 16, 0.05, seed=1))
    assert not torch.equal(first.weight, other.weight)


def test_a_killed_training_gives_the_digits_of_one_that_was_not(tmp_path: Path) -> None:
    """The loss raises in the third epoch; the second call goes on from the second."""
    recipe, file = Recipe(epochs=4, batch_size=16), tmp_path / "run.pt"
    whole = train(linear, nn.CrossEntropyLoss(), line(), recipe)
    calls = 0

    def dying(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise KeyboardInterrupt
        return nn.functional.cross_entropy(logits, targets)

    with pytest.raises(KeyboardInterrupt):
        train(linear, dying, line(), recipe, checkpoint=file)
    calls = 10  # never again
    resumed = train(linear, dying, line(), recipe, checkpoint=file)
    assert calls == 10 + 2 * 4  # two epochs of four batches were left
    assert torch.equal(whole.weight, resumed.weight)


def test_the_best_epoch_is_kept_where_there_is_validation() -> None:
    """With targets turned round the validation loss only rises: the first epoch is the best."""
    points, classes = line()
    loss, recipe = nn.CrossEntropyLoss(), Recipe(epochs=10, batch_size=16, learning_rate=0.05)
    kept_one = train(linear, loss, (points, classes), recipe, validation=(points, 1 - classes))
    worse = loss(torch.from_numpy(predict(kept_one, points)), 1 - classes)
    last = train(linear, loss, (points, classes), recipe)
    assert worse < loss(torch.from_numpy(predict(last, points)), 1 - classes)


# Recipes -----------------------------------------------------------------------------------------


def one_weight() -> nn.Module:
    """A network whose output is its single weight, which begins at 0."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def weights_of(recipe: Recipe) -> list[float]:
    """The weight after each epoch of one batch, where the gradient is always -1."""
    ones = torch.ones(2, 1)
    found = []

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        found.append(logits[0, 0].item())
        return (targets - logits).mean()

    network = train(one_weight, loss, (ones, ones), recipe)
    return [*found[1:], network.weight.item()]


def test_the_rate_follows_its_schedule() -> None:
    """Without momentum a step is the rate itself: steps, half a cosine and warm-up by hand."""
    plain = {"epochs": 4, "learning_rate": 1.0, "optimizer": "sgd", "momentum": 0.0}
    for changes, rates in (
        ({"schedule": "constant"}, [1, 1, 1, 1]),
        ({}, [1, 1, 0.1, 0.01]),  # after 1/2 and 3/4 of the epochs
        ({"milestones": (0.25,), "decay": 0.5}, [1, 0.5, 0.5, 0.5]),
        # (1 + cos(k π/4))/2 for k = 0 … 3
        ({"schedule": "cosine"}, [1, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4]),
        ({"schedule": "constant", "warm_up": 3}, [0.25, 0.5, 0.75, 1]),
        ({"schedule": "cosine", "warm_up": 2}, [1 / 3, 2 / 3, 1, 0.5]),
    ):
        steps = np.diff([0.0, *weights_of(Recipe(**plain, **changes))])
        assert steps == pytest.approx(rates, abs=1e-6), changes


def test_optimizers_step_as_published() -> None:
    """The first two steps at a gradient of -1, worked by hand; weight decay shrinks the weight."""
    flat = {"epochs": 2, "learning_rate": 0.1, "schedule": "constant"}
    # NAdam (Dozat 2016): momentum μ_t = 0.9 (1 - 0.96^(t/250) / 2), moments 1 - 0.9^t and 1.
    mu = [0.9 * (1 - 0.5 * 0.96 ** (0.004 * t)) for t in (1, 2, 3)]
    first = (1 - mu[0]) / (1 - mu[0]) + mu[1] * 0.1 / (1 - mu[0] * mu[1])
    second = (1 - mu[1]) / (1 - mu[0] * mu[1]) + mu[2] * 0.19 / (1 - mu[0] * mu[1] * mu[2])
    for name, expected in (
        ("sgd", [0.1, 0.1 + 0.1 * 1.9]),  # momentum 0.9
        ("adam", [0.1, 0.2]),  # m/√v = 1 after the corrections, always
        ("nadam", [0.1 * first, 0.1 * (first + second)]),
    ):
        found = weights_of(Recipe(**flat, optimizer=name))
        assert found == pytest.approx(expected, rel=1e-5), name
    # Decay 0.5 at the second step: of Adam and NAdam the weight loses 0.1 · 0.5 of itself, in SGD
    # the gradient -1 becomes -1 + 0.5 w.
    for name, changes, expected in (
        ("adam", {}, 0.1 * 0.95 + 0.1),
        ("nadam", {}, 0.1 * first * 0.95 + 0.1 * second),
        ("sgd", {"momentum": 0.0}, 0.1 + 0.1 * (1 - 0.5 * 0.1)),
    ):
        found = weights_of(Recipe(**flat, optimizer=name, weight_decay=0.5, **changes))
        assert found[1] == pytest.approx(expected, rel=1e-5), name


def test_patience_stops_and_the_best_epoch_is_kept(tmp_path: Path) -> None:
    """The validation loss (w - 2)² rises after w = 2: two more epochs, then back."""
    ones = torch.ones(2, 1)
    seen = []

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled():
            return -logits.mean()
        seen.append(logits[0, 0].item())
        return ((logits - targets) ** 2).mean()

    recipe = Recipe(
        epochs=9, learning_rate=1.0, optimizer="sgd", momentum=0.0, schedule="constant", patience=2
    )
    for _ in range(2):  # the second time from the checkpoint: nothing is left to do
        network = train(
            one_weight, loss, (ones, ones), recipe, validation=(ones, 2 * ones),
            checkpoint=tmp_path / "run.pt",
        )  # fmt: skip
        assert seen == [1, 2, 3, 4] and network.weight.item() == 2


def test_recipes_that_cannot_be_are_named() -> None:
    """Each with its argument, the rule and what was given."""
    for changes, message in (
        ({"optimizer": "lion"}, "optimizer: must be one of adam, nadam, sgd; got 'lion'"),
        ({"schedule": "wave"}, "schedule: must be one of steps, cosine, constant; got 'wave'"),
        ({"warm_up": 4}, "warm_up: must be 0 … 3, fewer than the epochs; got 4"),
        ({"patience": 0}, "patience: must be at least 1; got 0"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            Recipe(epochs=4, **changes)
    with pytest.raises(ValueError, match="patience: needs validation cases"):
        train(linear, nn.CrossEntropyLoss(), line(), Recipe(4, patience=1))


# Files that are kept -----------------------------------------------------------------------------


def test_what_was_made_of_the_same_things_is_not_made_again(tmp_path: Path) -> None:
    """Another setting, or a damaged file, makes it anew."""
    made: list[int] = []

    def make() -> dict[str, int]:
        made.append(1)
        return {"answer": len(made)}

    file = tmp_path / "part.json"
    assert kept(file, {"seed": 0}, make)["answer"] == 1
    assert kept(file, {"seed": 0}, make)["answer"] == 1
    assert kept(file, {"seed": 1}, make)["answer"] == 2
    file.write_text("{", encoding="utf-8")
    assert kept(file, {"seed": 1}, make)["answer"] == 3


def test_packed_files_stand_for_those_that_are_not_there(tmp_path: Path) -> None:
    """A packed file is read and not made again; one beside it that is newer comes first."""
    file = tmp_path / "part.json"
    first = kept(file, {"seed": 0}, lambda: {"answer": "ä" * 1000})
    pack_json(file, tmp_path)
    file.unlink()
    (packed,) = tmp_path.iterdir()
    assert packed.name == "part.json.xz" and packed.stat().st_size < 300
    assert list(json_files(tmp_path, "*.json")) == [file]
    assert read_json(file) == kept(file, {"seed": 0}, dict) == first
    assert kept(file, {"seed": 1}, lambda: {"answer": 2})["answer"] == 2
    assert read_json(file)["answer"] == 2 and list(json_files(tmp_path, "*.json")) == [file]
    file.unlink()
    packed.write_bytes(packed.read_bytes()[:-9])
    assert kept(file, {"seed": 0}, lambda: {"answer": 3})["answer"] == 3


def test_fingerprints_tell_values_types_and_shapes_apart() -> None:
    """Equal bytes of another shape or type are other data."""
    array = np.arange(6, dtype=np.int64)
    others = [array + 1, array.reshape(2, 3), array.view(np.uint64), array.astype(np.int32)]
    assert fingerprint(array) == fingerprint(array.copy())
    assert len({fingerprint(array), *map(fingerprint, others)}) == 5

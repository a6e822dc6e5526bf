"""The experiments' training: seeded, resumable, and the best epoch kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from raterwise.experiments.kept import fingerprint, kept  # noqa: E402
from raterwise.experiments.training import Recipe, predict, train  # noqa: E402


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


def test_fingerprints_tell_values_types_and_shapes_apart() -> None:
    """Equal bytes of another shape or type are other data."""
    array = np.arange(6, dtype=np.int64)
    others = [array + 1, array.reshape(2, 3), array.view(np.uint64), array.astype(np.int32)]
    assert fingerprint(array) == fingerprint(array.copy())
    assert len({fingerprint(array), *map(fingerprint, others)}) == 5

"""Uncertainty distillation on real images, as in CCC section 4: the training.

M networks (DenseNets, VGGs or small residual ones) learn the classes; a network of the same kind
learns how sure they are (UDist). What all of them say about the images to judge by, in and out of
distribution, is written into one file per problem, kind of network and seed; `judging` makes the
tables. A run that finds a file made of the same things goes on to the next. The parts of a cascade
can be trained by processes of their own first (`train_part`).

This half needs PyTorch, NumPy and SciPy alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from experiments.confidence_curves.data import PROBLEMS, Problem, load_problem
from experiments.kept import kept_arrays
from experiments.networks import VGG, DenseNet, ResNet9
from experiments.replayed import Replayed, replayed_answers
from experiments.training import Recipe, predict, share, train
from raterwise.rules import choose
from raterwise.torch._inference import seeded
from raterwise.torch.distillation import UncertaintyDistillation

__all__ = [
    "DISTILLED",
    "NETWORKS",
    "Settings",
    "cascade",
    "crop_and_flip",
    "parts_of",
    "predictions_file",
    "train_all",
    "train_part",
]

Arrays = dict[str, NDArray[Any]]
Report = Callable[[str, float], None]

VERSION = 2
MARGIN = 4
"""Pixels by which a crop may be shifted."""
NETWORKS = ("densenet", "vgg", "resnet9")
DISTILLED = ("udist", "udist_held_out", "udist_single")
"""On the training images; on images that the members never saw; from one member alone."""


@dataclass(frozen=True)
class Settings:
    """What the predictions depend on, besides the data and the seed.

    What is here by default is CCC section 4.1, but for the epochs (300 there), the DenseNet (16
    layers a block at full resolution there) and the images that are held out (none there).
    """

    network: str = "densenet"
    """One of `NETWORKS`."""
    members: int = 4
    width: int = 32
    """Of the VGG and the residual network."""
    layers: int = 12
    """A block, of the DenseNet."""
    halved: bool = True
    """Whether the first convolution of the DenseNet halves the resolution."""
    epochs: int = 100
    """Of each member."""
    distilled: tuple[str, ...] = DISTILLED
    distillation_epochs: int = 20
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    train_temperature: float = 8.0
    test_temperatures: tuple[float, ...] = (1.0, 2.0, 3.0, 5.0, 8.0, 10.0)
    held_out: int = 5000
    train_shown: int = 5000
    """Of so many training images it is kept what the networks say: for over-confidence."""
    outside_cases: int | None = 2500
    """Of each kind of images from elsewhere."""
    augment: bool = True
    limit: int | None = None
    """Use no more than so many cases of each part: for a trial."""

    def of(self, problem: str) -> Settings:
        """Return the settings of one problem: digits need less of everything, and no flips.

        Chest X-rays, of which there are a tenth as many, are not mirrored either.
        """
        if problem == "pneumonia":
            return replace(self, augment=False, held_out=max(self.held_out // 10, 1))
        if problem != "mnist":
            return self
        return replace(
            self, width=max(self.width // 2, 1), epochs=max(self.epochs // 3, 1), augment=False
        )


def crop_and_flip(images: Tensor) -> Tensor:
    """Return each image shifted by up to four pixels, edges mirrored, and half of them flipped."""
    cases, _, height, width = images.shape
    at = images.device
    padded = functional.pad(images, (MARGIN,) * 4, mode="reflect")
    shift = torch.randint(2 * MARGIN + 1, (2, cases, 1), device=at)
    flip = torch.rand(cases, 1, device=at) < 0.5
    down, along = torch.arange(height, device=at), torch.arange(width, device=at)
    rows = shift[0] + down
    columns = shift[1] + torch.where(flip, along.flip(0), along)
    case = torch.arange(cases, device=at)
    # One gather; what comes out, (N, H, W, C) in memory, is the order that convolutions like.
    chosen = padded[case[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return chosen.permute(0, 3, 1, 2)


# the cascade -------------------------------------------------------------------------------------


def cascade(
    problem: Problem,
    settings: Settings,
    seed: int,
    *,
    device: str | torch.device = "cpu",
    checkpoints: Path | None = None,
    report: Report | None = None,
) -> Arrays:
    """Train members and confidence networks; return what they say.

    `logits.PART` (M, N, K) are the members'. `udist.PART` (temperatures, N) is the confidence of
    a network distilled on the training images, `udist_held_out.PART` that of one distilled on
    images that the members never saw (CCC section 5 leaves that to the future), and
    `udist_single.PART` that of one distilled from the first member alone ("two DenseNets are
    adopted respectively for classification model and confidence model", CCC section 4.1). PART is
    test, train (the first of the training images), held_out, or out.NAME for images from elsewhere.
    """
    say = report or (lambda _, __: None)
    parts = {
        "test": problem.test.images,
        "train": problem.train.images[: settings.train_shown],
        "held_out": problem.held_out.images,
    }
    parts |= {f"out.{name}": images for name, images in problem.outside.items()}
    given = {name: problem.normalised(images, device) for name, images in parts.items()}
    members, steps = [], settings.members + len(settings.distilled)
    for i in range(settings.members):
        say(f"{problem.name}, seed {seed}: member {i + 1}", i / steps)
        members.append(_member(problem, settings, (seed, i), device, checkpoints))
    found: Arrays = {
        "classes": problem.test.classes,
        "rows": problem.test.rows,
        "held_out_classes": problem.held_out.classes,
        "train_classes": problem.train.classes[: settings.train_shown],
    }
    for name, images in given.items():
        found[f"logits.{name}"] = np.stack([predict(member, images) for member in members])
    for i, kind in enumerate(settings.distilled):
        say(f"{problem.name}, seed {seed}: {kind}", (settings.members + i) / steps)
        udist = _distilled(kind, problem, members, settings, seed, device, checkpoints)
        found |= _confidences(kind, udist, settings, given, found)
    return found


def _member(
    problem: Problem,
    settings: Settings,
    key: tuple[int, int],
    device: str | torch.device,
    checkpoints: Path | None,
) -> nn.Module:
    recipe = Recipe(
        settings.epochs,
        settings.batch_size,
        settings.learning_rate,
        settings.weight_decay,
        seed=int(np.random.SeedSequence(key).generate_state(1)[0]),
    )
    images = problem.normalised(problem.train.images, device)
    return train(
        lambda: _network(settings, images.shape[1], problem.classes),
        nn.CrossEntropyLoss(),
        (images, torch.from_numpy(problem.train.classes)),
        recipe,
        augment=(lambda x, y: (crop_and_flip(x), y)) if settings.augment else None,
        checkpoint=None if checkpoints is None else checkpoints / f"member-{key[1]}.pt",
        device=device,
    )


def _network(settings: Settings, channels: int, outputs: int) -> nn.Module:
    network: nn.Module
    if settings.network == "densenet":
        network = DenseNet(channels, outputs, settings.layers, halved=settings.halved)
    elif settings.network == "vgg":
        network = VGG(channels, outputs, settings.width)
    else:
        network = ResNet9(channels, outputs, settings.width)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def _distilled(
    kind: str,
    problem: Problem,
    members: Sequence[nn.Module],
    settings: Settings,
    seed: int,
    device: str | torch.device,
    checkpoints: Path | None,
) -> UncertaintyDistillation:
    """Return the confidence network, trained, with its members."""
    at = torch.device(device)
    unseen = kind == "udist_held_out"
    source = problem.held_out if unseen else problem.train
    # A tenth of the images, and three times as often: the steps are a third of the other's.
    epochs = settings.distillation_epochs * (3 if unseen else 1)
    channels = source.images.shape[1] + problem.classes
    with seeded(seed, 2, DISTILLED.index(kind), device=at):
        network = Replayed(_network(settings, channels, 1).to(at))
    asked = list(members[:1] if kind == "udist_single" else members)
    udist = UncertaintyDistillation(
        [_Quick(member) for member in asked],
        network,
        train_temperature=settings.train_temperature,
        seed=seed,
    )
    udist.fit(
        (problem.normalised(source.images, at), torch.from_numpy(source.classes).to(at)),
        epochs=epochs,
        batch_size=settings.batch_size,
        augment=crop_and_flip if settings.augment else None,
        checkpoint=None if checkpoints is None else checkpoints / f"{kind}.pt",
        progress=False,
    )
    udist.members = asked
    return udist


class _Quick(nn.Module):
    """A member that says in bfloat16, as it was trained, what it thinks of the crops of a step.

    That is most of the work of the distillation. Autocast is entered for one answer at a time: it
    keeps the weights that it has rounded until it is left, and the other network's change.
    """

    def __init__(self, member: nn.Module) -> None:
        super().__init__()
        self.member = member
        self._answer = replayed_answers(self._said)

    def forward(self, images: Tensor) -> Tensor:
        return self._answer(images)

    def _said(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, dtype=torch.bfloat16, enabled=images.is_cuda):
            logits: Tensor = self.member(images)
        return logits.float()


def _confidences(
    kind: str,
    udist: UncertaintyDistillation,
    settings: Settings,
    given: dict[str, Tensor],
    members: Arrays,
) -> Arrays:
    """Return what a confidence network says at every temperature, and its losses.

    `members` has the logits of the members, who are not asked again.
    """
    found: Arrays = {f"{kind}.loss": np.array([epoch.train_loss for epoch in udist.history])}
    for name, images in given.items():
        logits = torch.from_numpy(members[f"logits.{name}"][: len(udist.members)])
        probs = logits.double().softmax(dim=2).mean(dim=0)
        rows = []
        for udist.test_temperature in settings.test_temperatures:
            confidence = udist.predict_confidence(
                images, probabilities=probs, batch_size=1024, progress=False
            )
            rows.append(confidence)
        found[f"{kind}.{name}"] = np.stack(rows).astype(np.float32)
    return found


# everything --------------------------------------------------------------------------------------


def predictions_file(folder: str | PathLike[str], problem: str, network: str, seed: int) -> Path:
    """Return the file of one problem, kind of network and seed."""
    return Path(folder) / f"{problem}-{network}-seed{seed}.npz"


def _checkpoints(folder: str | PathLike[str], problem: str, network: str, seed: int) -> Path:
    return Path(folder) / f"checkpoints-{problem}-{network}-seed{seed}"


def parts_of(settings: Settings) -> list[str]:
    """Return the names of a cascade's networks; those that are distilled need all members.

    >>> parts_of(Settings(members=2, distilled=("udist",)))
    ['member-0', 'member-1', 'udist']
    """
    return [*(f"member-{i}" for i in range(settings.members)), *settings.distilled]


def train_part(
    data: str | PathLike[str],
    out: str | PathLike[str],
    problem: str,
    seed: int,
    part: str,
    settings: Settings,
    *,
    device: str | torch.device = "cpu",
) -> None:
    """Train one network of a cascade into its checkpoint, which `train_all` takes up.

    So that several processes can work on one cascade: the members first, then what is distilled.
    """
    chosen = settings.of(problem)
    choose("part", part, tuple(parts_of(chosen)))
    work = _checkpoints(out, problem, chosen.network, seed)
    work.mkdir(parents=True, exist_ok=True)
    loaded = _loaded(problem, data, chosen, seed)
    if part.startswith("member-"):
        _member(loaded, chosen, (seed, int(part.removeprefix("member-"))), device, work)
        return
    members = [_member(loaded, chosen, (seed, i), device, work) for i in range(chosen.members)]
    _distilled(part, loaded, members, chosen, seed, device, work)


def _loaded(name: str, data: str | PathLike[str], settings: Settings, seed: int) -> Problem:
    return load_problem(
        name,
        data,
        seed=seed,
        held_out=settings.held_out,
        outside_cases=settings.outside_cases,
        limit=settings.limit,
    )


def train_all(
    data: str | PathLike[str],
    out: str | PathLike[str],
    *,
    problems: Sequence[str] = PROBLEMS,
    seeds: Sequence[int] = (0, 1, 2),
    settings: Settings | None = None,
    device: str | torch.device = "cpu",
    checkpoints: bool = True,
    shard: tuple[int, int] = (0, 1),
    report: Report | None = None,
) -> list[Path]:
    """Train the cascades that `out` has no predictions of; return the files of this shard.

    With `checkpoints`, training that was killed goes on with the epoch after the last whole one.
    `shard` = (i, n) takes every n-th cascade from the i-th on.
    """
    for name in problems:
        choose("problems", name, PROBLEMS)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    # One of each problem first: what is there early is of use.
    for seed, name in share(product(seeds, problems), shard):
        chosen = (settings or Settings()).of(name)
        problem = _loaded(name, data, chosen, seed)
        made_of = {
            "version": VERSION, "problem": name, "seed": seed,
            "data": problem.fingerprint(), **asdict(chosen),
        }  # fmt: skip
        files.append(predictions_file(folder, name, chosen.network, seed))
        work = _checkpoints(folder, name, chosen.network, seed) if checkpoints else None
        _kept(files[-1], made_of, problem, chosen, seed, device, work, report)
    return files


def _kept(
    file: Path,
    made_of: dict[str, Any],
    problem: Problem,
    settings: Settings,
    seed: int,
    device: str | torch.device,
    work: Path | None,
    report: Report | None,
) -> None:
    def make() -> Arrays:
        if work is not None:
            work.mkdir(exist_ok=True)
        return cascade(problem, settings, seed, device=device, checkpoints=work, report=report)

    kept_arrays(file, made_of, make)
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)

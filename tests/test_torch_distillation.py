"""Uncertainty distillation: the equations by hand, what it learns, and kills at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raterwise as rw

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from raterwise.errors import InvalidInputError, InvalidTypeError  # noqa: E402
from raterwise.torch import _checkpoints, _training  # noqa: E402
from raterwise.torch.distillation import (  # noqa: E402
    UncertaintyDistillation,
    confidence_loss,
    soften,
    with_planes,
)

torch.set_num_threads(1)


class Fixed(nn.Module):
    """A member that gives the same values for every case."""

    def __init__(self, *values: float) -> None:
        super().__init__()
        self.values = torch.tensor([values])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the values once per image."""
        return self.values.expand(len(images), -1)


def network(inputs: int = 7, outputs: int = 1, seed: int = 0) -> nn.Sequential:
    """A confidence network with dropout and batch normalisation, which have random state."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, outputs)
    )


def data(cases: int = 96, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of four numbers and classes."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(cases, 4, generator=generator)
    return images, torch.randint(3, (cases,), generator=generator)


def distillation(seed: int = 0, **options: Any) -> UncertaintyDistillation:
    """Two members of three classes and a fresh network."""
    members = []
    for member in range(2):
        torch.manual_seed(100 + member)
        members.append(nn.Linear(4, 3))
    return UncertaintyDistillation(members, network(), seed=seed, **options)


def weights(udist: UncertaintyDistillation) -> torch.Tensor:
    """Every number in the confidence network."""
    return torch.cat([v.double().flatten() for v in udist.network.state_dict().values()])


# the equations -------------------------------------------------------------------------------


def test_members_are_averaged_and_then_softened() -> None:
    """CCC eq 2 by hand: P̄ of (0.8, 0.2) and (0.1, 0.9); P̃_k ∝ P̄_k^(1/T)."""
    members = [Fixed(0.8, 0.2).requires_grad_(False), Fixed(0.1, 0.9)]
    udist = UncertaintyDistillation(members, nn.Linear(3, 1), output="probabilities")
    mean = np.array([0.45, 0.55])
    for temperature in (1.0, 3.0, 8.0):
        powers = mean ** (1 / temperature)
        got = udist.ensemble_probabilities(torch.zeros(1, 1), temperature)[0]
        np.testing.assert_allclose(got, powers / powers.sum(), atol=1e-6)
    logits = [Fixed(*np.log([0.8, 0.2])), Fixed(*np.log([0.1, 0.9]))]
    same = UncertaintyDistillation(logits, nn.Linear(3, 1))
    np.testing.assert_allclose(same.ensemble_probabilities(torch.zeros(1, 1))[0], mean, atol=1e-6)


def test_findings_are_softened_one_by_one() -> None:
    """Multi-label: each finding is a problem of two classes, present and absent."""
    members = [Fixed(0.9, 0.2), Fixed(0.7, 0.2)]
    udist = UncertaintyDistillation(
        members, nn.Linear(3, 2), task="multilabel", output="probabilities"
    )
    got = udist.ensemble_probabilities(torch.zeros(1, 1), 2.0)[0]
    expected = [0.8**0.5 / (0.8**0.5 + 0.2**0.5), 0.2**0.5 / (0.8**0.5 + 0.2**0.5)]
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_confident_members_do_not_underflow() -> None:
    """A probability of e^-200 keeps its logarithm, which T = 8 brings back to e^-25."""
    udist = UncertaintyDistillation([Fixed(0.0, 200.0)], nn.Linear(3, 1))
    softened = udist.ensemble_probabilities(torch.zeros(1, 1), 8.0)
    assert softened[0, 0].item() == pytest.approx(np.exp(-25), rel=1e-4)


def test_the_target_is_the_probability_of_what_is_there() -> None:
    """P_t for classes, for raters who disagree, and for findings."""
    udist = distillation()
    softened = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    classes = udist.soft_target(softened, torch.tensor([1, 2]))
    np.testing.assert_allclose(classes, [0.3, 0.7])
    counts = udist.soft_target(softened, torch.tensor([[1, 1, 0], [0, 0, 3]]))
    np.testing.assert_allclose(counts, [0.4, 0.7], atol=1e-7)
    findings = distillation(task="multilabel")
    seen = findings.soft_target(torch.tensor([[0.9, 0.2]]), torch.tensor([[1, 0]]))
    np.testing.assert_allclose(seen, [[0.9, 0.8]], atol=1e-7)


def test_the_loss_is_smallest_where_confidence_is_the_target() -> None:
    """CCC eq 3 with its minus: at s = P_t the slope is 0 and the value the entropy."""
    target = torch.tensor([0.3], dtype=torch.float64)
    score = torch.logit(target).requires_grad_()
    loss = confidence_loss(score, target)
    loss.backward()
    assert score.grad is not None and abs(score.grad.item()) < 1e-6
    entropy = -(0.3 * np.log(0.3) + 0.7 * np.log(0.7))
    assert loss.item() == pytest.approx(entropy, abs=1e-6)
    assert confidence_loss(score + 1, target) > loss
    assert confidence_loss(score - 1, target) > loss


def test_probabilities_are_constant_planes() -> None:
    """Each is one more channel, the same everywhere; images of any number of axes."""
    images = torch.randn(2, 3, 4, 5, 6)
    probs = torch.tensor([[0.1, 0.9], [0.4, 0.6]])
    joined = with_planes(images, probs)
    assert torch.equal(joined[:, :3], images)
    assert torch.equal(joined[1, 4], torch.full((4, 5, 6), 0.6))
    assert with_planes(torch.zeros(2, 3), probs).shape == (2, 5)


def test_soften_keeps_the_order() -> None:
    """A temperature makes probabilities flatter, never another class the largest."""
    log_probs = torch.randn(20, 5).log_softmax(1)
    flat = soften(log_probs, 8.0)
    assert torch.equal(flat.argmax(1), log_probs.argmax(1))
    assert (flat.amax(1) < log_probs.exp().amax(1)).all()


# what it learns ------------------------------------------------------------------------------


def test_it_learns_where_the_ensemble_is_wrong() -> None:
    """The ensemble always says class 0 with 0.9; the truth depends on the image, and can be learnt.

    Max-softmax cannot tell the cases apart (AUCCC 1/2); the distilled confidence can.
    """
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(600, 2, generator=generator)
    classes = (images[:, 0] > 0).long()
    torch.manual_seed(0)
    head = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    udist = UncertaintyDistillation([Fixed(0.9, 0.1)], head, output="probabilities",
                                    train_temperature=1, test_temperature=1)  # fmt: skip
    udist.fit((images[:400], classes[:400]), epochs=15, batch_size=32, learning_rate=1e-2)
    test, truth = images[400:], classes[400:].numpy()
    right = udist.predict_proba(test).argmax(axis=1) == truth
    assert rw.confidence.auccc(udist.predict_proba(test).max(axis=1), right) == 0.5
    confidence = udist.predict_confidence(test)
    assert rw.confidence.auccc(confidence, right) > 0.98
    # At its best s is P_t: 0.9 where class 0 is true, 0.1 where it is not; between them at 0.
    assert np.median(confidence[right]) == pytest.approx(0.9, abs=0.08)
    assert np.median(confidence[~right]) == pytest.approx(0.1, abs=0.08)


def test_training_images_are_augmented_and_others_are_not() -> None:
    """Members see what `augment` made, batch by batch; validation and prediction see the images."""
    images, classes = data(40)
    seen: list[tuple[int, float]] = []

    def far_away(batch: torch.Tensor) -> torch.Tensor:
        return batch + 1000

    class Watching(nn.Linear):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            seen.append((len(batch), float(batch.mean())))
            return super().forward(batch)

    udist = UncertaintyDistillation([Watching(4, 3)], network())
    udist.fit((images, classes), (images, classes), epochs=1, batch_size=16, augment=far_away,
              progress=False)  # fmt: skip
    assert [size for size, _ in seen] == [16, 16, 8] * 2
    assert all(mean > 900 for _, mean in seen[:3])
    assert all(mean < 100 for _, mean in seen[3:])
    udist.predict_confidence(images, progress=False)
    assert seen[-1][1] < 100


def test_a_batch_is_taken_out_of_tensors_at_once() -> None:
    """Every case comes once per epoch, with its own label, in another order each epoch."""
    pairs = (torch.arange(10.0), torch.arange(10))
    orders = []
    for epoch in range(2):
        torch.manual_seed(epoch)
        loader = _training.loader_of(pairs, 4, shuffle=True)
        batches = [_training.pair_of(batch) for batch in loader]
        assert [len(labels) for _, labels in batches] == [4, 4, 2]
        assert all(torch.equal(given.long(), labels) for given, labels in batches)
        orders.append(torch.cat([labels for _, labels in batches]).tolist())
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(10))
    assert orders[0] != orders[1]


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_known_probabilities_stand_in_for_the_members(task: str) -> None:
    """The same confidence, without a member being asked; another number of rows is an error."""
    outputs = 1 if task == "multiclass" else 3
    members = [nn.Linear(4, 3), nn.Linear(4, 3)]
    udist = UncertaintyDistillation(members, network(outputs=outputs), task=task)
    images, _ = data(20)
    options: dict[str, Any] = {"batch_size": 8, "progress": False}
    expected = udist.predict_confidence(images, **options)
    probs = udist.predict_proba(images, **options)
    udist.members = [Fixed(float("nan"), 0.0, 0.0)]
    got = udist.predict_confidence(images, probabilities=probs, **options)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    for rows in (19, 8, 21):
        given = np.resize(probs, (rows, 3))
        with pytest.raises(InvalidInputError, match=rf"probabilities: must have a row .*{rows}"):
            udist.predict_confidence(images, probabilities=given, **options)


def test_images_of_whole_numbers_are_refused() -> None:
    """Joined with bytes, every probability below 1 would become 0."""
    with pytest.raises(InvalidInputError, match=r"must be floating point .*; got torch.uint8"):
        with_planes(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.ones(2, 5))


def test_findings_have_a_confidence_each() -> None:
    """Multi-label, images with space: the loss is the mean over findings and falls."""
    torch.manual_seed(0)
    images = torch.randn(64, 1, 4, 4)
    labels = (torch.stack((images.mean((1, 2, 3)), -images.mean((1, 2, 3))), 1) > 0).long()
    head = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    members = [Fixed(2.0, -2.0), Fixed(1.0, 1.0)]
    udist = UncertaintyDistillation(members, head, task="multilabel")
    udist.fit((images, labels), epochs=5, batch_size=16, learning_rate=1e-2)
    assert udist.history[-1].train_loss < udist.history[0].train_loss
    assert udist.predict_confidence(images).shape == (64, 2)


def test_members_are_left_alone() -> None:
    """Their weights and modes do not change, though they are in training mode."""
    udist = distillation()
    udist.members[0].train()
    before = [p.clone() for m in udist.members for p in m.parameters()]
    udist.fit(data(), epochs=1)
    after = [p for m in udist.members for p in m.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert udist.members[0].training
    assert all(p.grad is None for p in after)


def test_train_and_test_temperatures_are_apart() -> None:
    """The network is fed planes of the one when it trains and of the other when it predicts."""
    seen: list[torch.Tensor] = []
    udist = UncertaintyDistillation(
        [Fixed(np.log(0.9), np.log(0.1))], nn.Linear(3, 1), train_temperature=1, test_temperature=2
    )
    udist.network.register_forward_pre_hook(lambda _, given: seen.append(given[0][0, 1].clone()))
    udist.fit((torch.zeros(4, 1), torch.zeros(4, dtype=torch.long)), epochs=1)
    udist.predict_confidence(torch.zeros(1, 1))
    np.testing.assert_allclose([s.item() for s in seen], [0.9, 0.75], atol=1e-6)


# checkpoints ---------------------------------------------------------------------------------


def test_a_run_that_was_killed_goes_on_to_the_same_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills while the file is written, before it is renamed, and after: each resumes exactly."""
    whole = distillation().fit(data(), data(32, 1), epochs=4, batch_size=32)
    path = tmp_path / "run.pt"

    class Killed(BaseException):
        pass

    def killing(function: Any, when: int) -> Any:
        calls = {"number": 0}

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            calls["number"] += 1
            if calls["number"] == when:
                if function is torch.save:
                    args[1].write(b"half a file")
                raise Killed
            return function(*args, **kwargs)

        return wrapped

    for module, name, when in ((torch, "save", 1), (os, "replace", 2), (torch, "save", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, killing(getattr(module, name), when))
            with pytest.raises(Killed):
                distillation().fit(data(), data(32, 1), epochs=4, batch_size=32, checkpoint=path)
    resumed = distillation()
    resumed.fit(data(), data(32, 1), epochs=4, batch_size=32, checkpoint=path)
    assert torch.equal(weights(resumed), weights(whole))
    assert resumed.history == whole.history
    assert [p.name for p in tmp_path.iterdir()] == ["run.pt"]


SCRIPT = """
import sys; sys.path.insert(0, {tests!r})
import test_torch_distillation as t
run = t.distillation()
run.fit(t.data(), epochs=100000, batch_size=8, checkpoint={path!r}, progress=False)
"""


def test_sigkill_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """A process killed by the system while it trains leaves a file that can be taken up."""
    path = tmp_path / "run.pt"
    code = SCRIPT.format(tests=str(Path(__file__).parent), path=str(path))
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    content = _checkpoints.load_checkpoint(path)
    assert content is not None
    done = len(content["history"])
    assert done >= 1
    # The epochs so far are those of a run that nobody killed.
    other = distillation()

    def stop(*_: Any) -> None:
        if len(other.history) == done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        other.fit(data(), epochs=100_000, batch_size=8, progress=stop)
    assert content["history"] == [tuple(epoch) for epoch in other.history]


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    """The checkpoint of the last epoch gives the network, without another epoch."""
    path = tmp_path / "run.pt"
    first = distillation().fit(data(), epochs=2, checkpoint=path)
    stamp = path.stat().st_mtime_ns
    again = distillation().fit(data(), epochs=2, checkpoint=path)
    assert torch.equal(weights(first), weights(again))
    assert path.stat().st_mtime_ns == stamp
    anew = distillation(seed=5).fit(data(), epochs=2, checkpoint=path, resume=False)
    assert not torch.equal(weights(first), weights(anew))


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"train_temperature": 4.0}, {}, "train_temperature = 8.0, and now it is 4.0"),
        ({"seed": 1}, {}, "seed = 0, and now it is 1"),
        ({}, {"epochs": 5}, "epochs = 2, and now it is 5"),
        ({}, {"learning_rate": 1.0}, "learning_rate = 0.001, and now it is 1.0"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(
    tmp_path: Path, options: dict[str, Any], fit: dict[str, Any], message: str
) -> None:
    """Resuming with other settings would be neither run."""
    path = tmp_path / "run.pt"
    distillation().fit(data(), epochs=2, checkpoint=path)
    with pytest.raises(InvalidInputError, match=f"checkpoint: run.pt was made with {message}"):
        distillation(**options).fit(data(), **{"epochs": 2, "checkpoint": path, **fit})


def test_a_checkpoint_of_other_members_is_refused(tmp_path: Path) -> None:
    """The members are not in the file, but their digest is."""
    path = tmp_path / "run.pt"
    distillation().fit(data(), epochs=1, checkpoint=path)
    other = distillation()
    nn.init.ones_(other.members[1].weight)
    with pytest.raises(InvalidInputError, match="was made with members ="):
        other.fit(data(), epochs=1, checkpoint=path)


@pytest.mark.parametrize("own_generator", [False, True])
def test_a_loader_of_the_users_resumes_too(tmp_path: Path, own_generator: bool) -> None:
    """Shuffling by the global generator or by one of the loader's own."""

    def loader() -> DataLoader[Any]:
        generator = torch.Generator().manual_seed(9) if own_generator else None
        return DataLoader(TensorDataset(*data()), 16, shuffle=True, generator=generator)

    whole = distillation().fit(loader(), epochs=3)
    path = tmp_path / "run.pt"

    def stop(_: str, fraction: float) -> None:
        if fraction > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distillation().fit(loader(), epochs=3, checkpoint=path, progress=stop)
    resumed = distillation().fit(loader(), epochs=3, checkpoint=path)
    assert torch.equal(weights(resumed), weights(whole))


def test_the_seed_decides_and_global_generators_are_left_alone() -> None:
    """Two runs of one seed are equal, of two seeds are not; nobody else's numbers change."""
    state = torch.get_rng_state()
    runs = [distillation(seed) for seed in (0, 0, 1)]
    state = torch.get_rng_state()
    a, b, c = (weights(run.fit(data(), epochs=1)) for run in runs)
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(torch.get_rng_state(), state)


# early stopping ------------------------------------------------------------------------------


def test_early_stopping_goes_back_to_the_best(tmp_path: Path) -> None:
    """A learning rate that explodes: training stops, and the network is that of the best epoch."""
    udist = distillation()
    path = tmp_path / "run.pt"
    udist.fit(data(), data(64, 1), epochs=30, learning_rate=0.5, patience=2, checkpoint=path)
    losses = [epoch.validation_loss for epoch in udist.history]
    best = int(np.argmin(np.array(losses, float)))
    assert len(losses) == best + 3 < 30
    images, labels = data(64, 1)
    softened = udist.ensemble_probabilities(images, 8.0)
    with torch.no_grad():
        scores = udist.network(with_planes(images, softened))[:, 0]
    value = confidence_loss(scores, udist.soft_target(softened, labels)).item()
    assert value == pytest.approx(losses[best], abs=1e-6)
    again = distillation()
    again.fit(data(), data(64, 1), epochs=30, learning_rate=0.5, patience=2, checkpoint=path)
    assert torch.equal(weights(again), weights(udist))


def test_the_learning_rate_falls_at_half_and_three_quarters() -> None:
    """CCC section 4.1: divided by ten at 1/2 and 3/4 of the epochs."""
    rates: list[float] = []

    class Watched(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            rates.append(self.param_groups[0]["lr"])
            return super().step(closure)

    distillation().fit(data(8), epochs=8, optimizer=lambda parameters: Watched(parameters, lr=1.0))
    np.testing.assert_allclose(rates, [1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01])


# progress and errors -------------------------------------------------------------------------


def test_progress_tells_epoch_and_loss() -> None:
    """A function hears of every batch, from 0 to 1."""
    heard: list[tuple[str, float]] = []
    distillation().fit(
        data(64), epochs=2, batch_size=32, progress=lambda text, done: heard.append((text, done))
    )
    assert [done for _, done in heard] == [0.25, 0.5, 0.75, 1.0]
    assert heard[0][0].startswith("Epoch 1 of 2, loss ")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UncertaintyDistillation([], network()), "members: must hold at least one"),
        (lambda: distillation(task="other"), "task: must be one of multiclass, multilabel"),
        (
            lambda: distillation(test_temperature=0),
            "test_temperature: must be positive",
        ),
        (lambda: distillation().fit(data(), epochs=0), "epochs: must be at least 1; got 0"),
        (lambda: distillation().fit(data(), patience=1), "patience: needs validation data"),
        (
            lambda: distillation().fit((data()[0], torch.zeros(96)), epochs=1),
            r"labels: must be \(N,\) integer classes or \(96, 3\) label counts; got torch.float32",
        ),
        (
            lambda: distillation(task="multilabel").fit(data(), epochs=1),
            r"network: must give \(96, 3\) scores for this batch; got \(96, 1\)",
        ),
        (
            lambda: UncertaintyDistillation([nn.Conv2d(1, 3, 1)], network()).predict_proba(
                torch.zeros(2, 1, 4, 4)
            ),
            r"members: must give \(N, classes\)",
        ),
        (lambda: distillation().predict_confidence([]), "inputs: must hold at least one case"),
        (lambda: distillation().fit(DataLoader([]), epochs=1), "data: must hold at least one case"),
    ],
)
def test_wrong_arguments(make: Any, message: str) -> None:
    """The message names the argument, the rule and the value."""
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_data_without_labels() -> None:
    """A batch must have images and labels."""
    with pytest.raises(InvalidTypeError, match=r"a batch must be \(images, labels\); got Tensor"):
        distillation().fit(DataLoader(torch.zeros(4, 4)), epochs=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: distillation(seed=-1), "seed: must be at least 0; got -1"),
        (lambda: distillation().fit(data(), batch_size=0), "batch_size: must be at least 1; got 0"),
        (lambda: distillation().fit(data(), data(), patience=0), "patience: must be at least 1"),
        (
            lambda: distillation().fit((data()[0], data()[1][:90]), epochs=1),
            r"data: must be \(images, labels\) of as many cases; got \[96, 90\]",
        ),
        (
            lambda: distillation().fit((data()[0], data()[1] + 1), epochs=1),
            "labels: must be classes 0 … 2; entry .* is 3",
        ),
        (
            lambda: distillation().fit((data()[0], torch.zeros(96, 3)), epochs=1),
            "labels: every case needs a rating; 96 of 96 in a batch have none",
        ),
        (
            lambda: distillation().soft_target(
                torch.full((1, 3), 1 / 3), torch.tensor([[2, -1, 0]])
            ),
            "labels: label counts must not be negative; case 0, class",
        ),
        (
            lambda: distillation(task="multilabel").soft_target(
                torch.full((1, 2), 0.5), torch.tensor([[2, 0]])
            ),
            "labels: findings must be 0, 1 or a fraction of the raters; got 2",
        ),
        (
            lambda: distillation().predict_confidence(
                DataLoader(TensorDataset(*data()), shuffle=True)
            ),
            "inputs: must come in a fixed order",
        ),
    ],
)
def test_what_would_train_or_predict_nonsense(make: Any, message: str) -> None:
    """Labels that no network could learn from, and orders that nobody knows, are refused."""
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_one_model_is_no_ensemble() -> None:
    """A Sequential could be read as a list of its layers."""
    with pytest.raises(InvalidTypeError, match="members: must be a list of models; got Sequential"):
        UncertaintyDistillation(network(), network())  # type: ignore[arg-type]


def test_files_that_are_no_checkpoint(tmp_path: Path) -> None:
    """A damaged file, and a file of something else, are named; resume=False writes over them."""
    path = tmp_path / "state.pt"
    path.write_bytes(b"no checkpoint")
    with pytest.raises(InvalidInputError, match=r"checkpoint: state\.pt must be a file of weights"):
        distillation().fit(data(), epochs=1, checkpoint=path)
    torch.save({"weights": torch.zeros(2)}, path)
    with pytest.raises(InvalidInputError, match=r"checkpoint: state\.pt is not from this training"):
        distillation().fit(data(), epochs=1, checkpoint=path)
    distillation().fit(data(), epochs=1, checkpoint=path, resume=False)
    assert len(distillation().fit(data(), epochs=1, checkpoint=path).history) == 1


def test_a_checkpoint_of_another_network(tmp_path: Path) -> None:
    """The message names the file and says what to do."""
    path = tmp_path / "state.pt"
    distillation().fit(data(), epochs=1, checkpoint=path)
    other = UncertaintyDistillation(distillation().members, nn.Linear(7, 1))
    with pytest.raises(InvalidInputError, match=r"checkpoint: state\.pt was made with another net"):
        other.fit(data(), epochs=1, checkpoint=path)


def test_checkpoints_follow_no_link(tmp_path: Path) -> None:
    """A link in the place of the checkpoint, or of a temporary name, leads nowhere."""
    mine = tmp_path / "mine.txt"
    mine.write_text("mine", encoding="utf-8")
    path = tmp_path / "run.pt"
    for name in ("run.pt", ".run.pt.part"):  # the second is what the temporary name once was
        (tmp_path / name).symlink_to(mine)
    content = {"settings": {}, "network": {}, "optimizer": {}, "best": {}, "history": []}
    _checkpoints.save_checkpoint(path, content)
    assert mine.read_text(encoding="utf-8") == "mine"
    assert not path.is_symlink()
    assert _checkpoints.load_checkpoint(path) == content


def test_what_a_kill_left_behind_is_removed(tmp_path: Path) -> None:
    """Temporary files of yesterday go when a checkpoint is written; those of now stay."""
    old, new = tmp_path / ".run.pt.0badcafe.part", tmp_path / ".run.pt.1badcafe.part"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (0, 0))
    _checkpoints.save_checkpoint(tmp_path / "run.pt", {"settings": {}})
    assert not old.exists()
    assert new.exists()

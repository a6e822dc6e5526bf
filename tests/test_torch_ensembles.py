"""Ensembles: which layers are switched on, what the seeds decide, what is restored."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import raterwise as rw  # noqa: E402
from raterwise.beliefs import EnsembleBelief  # noqa: E402
from raterwise.errors import InvalidInputError, InvalidTypeError  # noqa: E402
from raterwise.torch import ensembles  # noqa: E402

torch.set_num_threads(1)


class Scale(nn.Module):
    """Logits (x, 0) of images, so that the probability of class 0 is a known sigmoid."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the logits of the mean of each image."""
        x = images.flatten(1).mean(dim=1)
        return torch.stack((x, torch.zeros_like(x)), dim=1)


def network() -> nn.Sequential:
    """Dropout beside batch normalisation, whose statistics must not move."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)
    )


def images(cases: int = 10) -> torch.Tensor:
    """Inputs of `network`."""
    return torch.randn(cases, 4, generator=torch.Generator().manual_seed(1))


def sigmoid(x: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


# dropout -------------------------------------------------------------------------------------


def test_dropout_alone_is_switched_on() -> None:
    """In the passes dropout layers train and nothing else; afterwards every mode is as it was."""
    model = network()
    model[4].train()
    model[0].eval()
    before = {name: module.training for name, module in model.named_modules()}
    seen: list[dict[str, bool]] = []
    model.register_forward_pre_hook(
        lambda module, _: seen.append({name: m.training for name, m in module.named_modules()})
    )
    statistics = model[1].running_mean.clone()
    ensembles.mc_dropout(model, images(), samples=2)
    assert len(seen) == 2
    assert all([name for name, mode in each.items() if mode] == ["3"] for each in seen)
    assert {name: module.training for name, module in model.named_modules()} == before
    assert torch.equal(model[1].running_mean, statistics)


def test_modes_are_restored_after_an_error() -> None:
    """A model that fails in the middle is left as it came."""
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(7))
    model.train()
    with pytest.raises((RuntimeError, ValueError)):
        ensembles.mc_dropout(model, images())
    assert all(module.training for module in model.modules())


def test_the_spread_is_that_of_dropout() -> None:
    """Logit x is kept (as 2x) or dropped with probability one half: two values, half and half."""
    model = nn.Sequential(nn.Dropout(0.5), Scale())
    belief = ensembles.mc_dropout(model, torch.ones(1, 1), samples=400)
    first = belief.samples[:, 0, 0]
    values, counts = np.unique(first.round(6), return_counts=True)
    np.testing.assert_allclose(values, sigmoid([0, 2]), atol=1e-6)
    assert abs(counts[0] - 200) < 4 * np.sqrt(100)


def test_the_seed_decides() -> None:
    """The same seed gives the same digits, another one others; global generators are left alone."""
    model = network()
    state = torch.get_rng_state()
    a, b, c = (ensembles.mc_dropout(model, images(), 3, seed).samples for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    assert not np.array_equal(a[0], a[1])
    assert torch.equal(torch.get_rng_state(), state)


def test_a_loader_is_the_tensor_in_batches() -> None:
    """A DataLoader with labels gives the predictions of the tensor in batches of its size."""
    model, x = network(), images(10)
    loader = DataLoader(TensorDataset(x, torch.zeros(10)), batch_size=4)
    ours = ensembles.mc_dropout(model, loader, samples=3).samples
    expected = ensembles.mc_dropout(model, x, samples=3, batch_size=4).samples
    np.testing.assert_array_equal(ours, expected)


def test_dense_outputs_have_a_case_per_pixel() -> None:
    """(N, K, H, W) becomes (S, N·H·W, K), pixels in order."""
    model = nn.Sequential(nn.Dropout2d(0.0), nn.Conv2d(1, 3, 1))
    x = torch.randn(2, 1, 4, 5)
    belief = ensembles.mc_dropout(model, x, samples=2)
    assert belief.samples.shape == (2, 40, 3)
    expected = model(x).softmax(dim=1).movedim(1, -1).reshape(-1, 3)
    np.testing.assert_allclose(belief.samples[0], expected.detach(), atol=1e-6)


def test_probabilities_are_taken_as_they_are() -> None:
    """A model that ends in a softmax says so; nothing is guessed."""
    model = nn.Sequential(nn.Dropout(0.0), Scale(), nn.Softmax(dim=1))
    belief = ensembles.mc_dropout(model, torch.ones(1, 1), samples=1, output="probabilities")
    assert belief.mean[0, 0] == pytest.approx(sigmoid(1), abs=1e-6)


def test_a_second_softmax_is_told() -> None:
    """softmax(σ(1), σ(-1)) is σ(σ(1) - σ(-1)): nearer to a half than what the model says."""
    model = nn.Sequential(nn.Dropout(0.0), Scale(), nn.Softmax(dim=1))
    with pytest.warns(rw.RaterwiseWarning, match="look like probabilities") as seen:
        belief = ensembles.mc_dropout(model, torch.ones(3, 1), samples=2, batch_size=2)
    assert len(seen) == 1 and seen[0].filename == __file__
    assert belief.mean[0, 0] == pytest.approx(sigmoid(sigmoid(1) - sigmoid(-1)), abs=1e-6)


@pytest.mark.parametrize(
    ("output", "outputs", "said"),
    [
        ("logits", "probs", r"got \(3, 1\) \(a logit z is \(0, z\) of two classes"),
        ("logits", "logits", "model: must give an output for each of at least 2 classes"),
        ("probabilities", "probs", r"a probability p is \(1 - p, p\) of two classes"),
    ],
)
def test_a_single_output_is_told_how_to_be_two(output: Any, outputs: Any, said: str) -> None:
    """At the first batch: a softmax of one logit would be sure of it whatever it is."""
    calls: list[int] = []
    model = nn.Sequential(nn.Linear(4, 1), nn.Dropout(0.5), nn.Sigmoid())
    model.register_forward_hook(lambda *_: calls.append(1))
    with pytest.raises(InvalidInputError, match=said):
        ensembles.mc_dropout(model, torch.zeros(3, 4), samples=9, output=output, outputs=outputs)
    assert len(calls) == 1


def test_other_random_layers_can_be_named() -> None:
    """Without dropout there is nothing to sample, unless a layer is said to be random."""

    class Noise(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.randn_like(x) if self.training else x

    model = nn.Sequential(Noise(), Scale())
    with pytest.raises(InvalidInputError, match=r"model: must have a dropout layer.*has none"):
        ensembles.mc_dropout(model, torch.ones(3, 1))
    belief = ensembles.mc_dropout(model, torch.ones(3, 1), samples=2, dropout_types=(Noise,))
    assert not np.array_equal(belief.samples[0], belief.samples[1])


# augmentation --------------------------------------------------------------------------------


def test_each_image_and_draw_has_its_own_numbers() -> None:
    """The draws of an image depend on the seed and its position, not on the batches."""

    def shift(image: torch.Tensor) -> torch.Tensor:
        return image + torch.randn(())

    x = torch.zeros(6, 1, 2, 2)
    whole = ensembles.test_time_augmentation(Scale(), x, shift, 5, seed=3).samples
    parts = ensembles.test_time_augmentation(Scale(), x, shift, 5, seed=3, batch_size=2).samples
    np.testing.assert_allclose(whole, parts, atol=1e-7)
    assert len(np.unique(whole[:, :, 0].round(6))) == 30
    other = ensembles.test_time_augmentation(Scale(), x, shift, 5, seed=4).samples
    assert not np.array_equal(whole, other)


def test_every_source_of_random_numbers_is_seeded_and_restored() -> None:
    """Transforms that draw from NumPy, Python, a given generator or a state of their own."""

    class Stateful:
        def set_random_state(self, seed: int) -> None:
            self.rng = np.random.default_rng(seed)

        def __call__(self, image: torch.Tensor) -> torch.Tensor:
            return image + self.rng.normal()

    chain = [
        lambda image: image + np.random.normal(),  # noqa: NPY002
        lambda image: image + random.gauss(0, 1),
        lambda image, generator: image + torch.randn((), generator=generator),
        Stateful(),
    ]
    x = torch.zeros(2, 1, 2, 2)
    numpy_state, python_state = np.random.get_state()[1], random.getstate()  # noqa: NPY002
    for transform in [*chain, chain]:
        a = ensembles.test_time_augmentation(Scale(), x, transform, 3).samples
        b = ensembles.test_time_augmentation(Scale(), x, transform, 3).samples
        np.testing.assert_array_equal(a, b)
        assert len(np.unique(a)) > 6
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert random.getstate() == python_state


def test_augmentation_of_pixels_is_refused() -> None:
    """A dense prediction would have to be transformed back: say so."""
    with pytest.raises(InvalidInputError, match="one prediction per image"):
        ensembles.test_time_augmentation(nn.Conv2d(1, 2, 1), torch.zeros(1, 1, 4, 4), abs)
    with pytest.raises(InvalidTypeError, match="transforms: must be functions of an image"):
        ensembles.test_time_augmentation(Scale(), torch.zeros(1, 1), ())


# several networks ----------------------------------------------------------------------------


def test_models_and_checkpoints(tmp_path: Path) -> None:
    """Members from memory and from files are the same ensemble, by hand the same mean."""
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(nn.Linear(4, 3))
    paths = [tmp_path / f"{i}.pt" for i in range(3)]
    for model, path in zip(models, paths, strict=True):
        torch.save({"state_dict": model.state_dict()}, path)
    x = images()
    belief = ensembles.deep_ensemble(models, x)
    loaded = ensembles.deep_ensemble(
        [models[0], *paths[1:]], x, lambda: nn.Linear(4, 3), state_key="state_dict"
    )
    np.testing.assert_array_equal(belief.samples, loaded.samples)
    expected = torch.stack([model(x).softmax(1) for model in models]).mean(0)
    np.testing.assert_allclose(belief.mean, expected.detach(), atol=1e-6)


def test_a_checkpoint_cannot_run_code(tmp_path: Path) -> None:
    """A file that holds anything but weights is refused by PyTorch."""

    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    torch.save(Trap(), tmp_path / "trap.pt")
    with pytest.raises(Exception, match=r"[Ww]eights.only"):
        ensembles.deep_ensemble([tmp_path / "trap.pt"], images(), lambda: nn.Linear(4, 3))
    assert not (tmp_path / "sprung").exists()


def test_wrong_members_and_inputs(tmp_path: Path) -> None:
    """Nothing to run, no factory, a shuffling loader, an iterator, unlike members."""
    x, model = images(), nn.Linear(4, 3)
    with pytest.raises(InvalidInputError, match="members: must hold at least one"):
        ensembles.deep_ensemble([], x)
    with pytest.raises(InvalidTypeError, match=r"factory: must make the model .* in a.pt; got"):
        ensembles.deep_ensemble([tmp_path / "a.pt"], x)
    shuffling = DataLoader(TensorDataset(x), shuffle=True)
    with pytest.raises(InvalidInputError, match=r"fixed order.*shuffles"):
        ensembles.deep_ensemble([model, model], shuffling)
    with pytest.raises(InvalidTypeError, match="once per member; got an iterator"):
        ensembles.deep_ensemble([model, model], iter([x]))
    with pytest.raises(InvalidInputError, match="members: must predict the same"):
        ensembles.deep_ensemble([model, nn.Linear(4, 2)], x)
    with pytest.raises(InvalidTypeError, match=r"a batch must be a tensor.*got str"):
        ensembles.deep_ensemble([model], ["a"])
    with pytest.raises(InvalidInputError, match="inputs: must hold at least one case"):
        ensembles.deep_ensemble([model], [])
    with pytest.raises(InvalidInputError, match="samples: must be at least 1; got 0"):
        ensembles.mc_dropout(network(), x, samples=0)
    with pytest.raises(InvalidInputError, match="output: must be one of logits, probabilities"):
        ensembles.mc_dropout(network(), x, output="scores")
    with pytest.raises(InvalidInputError, match=r"model: must give \(N, K\)"):
        ensembles.deep_ensemble([nn.Flatten(0)], x)


# memory and progress -------------------------------------------------------------------------


def test_inputs_are_read_once_and_let_go() -> None:
    """A stream of batches is read once for all samples, one batch in memory at a time."""
    alive: list[Any] = []

    def stream() -> Iterator[torch.Tensor]:
        import weakref

        for _ in range(4):
            batch = torch.zeros(8, 4)
            alive.append(weakref.ref(batch))
            assert sum(ref() is not None for ref in alive) <= 2
            yield batch
            del batch

    belief = ensembles.mc_dropout(network(), stream(), samples=5)
    assert belief.samples.shape == (5, 32, 3)
    assert len(alive) == 4


def test_mappings_are_batches_too() -> None:
    """A batch with "image", as MONAI's loaders give."""
    belief = ensembles.deep_ensemble([Scale()], [{"image": torch.ones(2, 1), "label": None}])
    np.testing.assert_allclose(belief.mean[:, 0], sigmoid(1), atol=1e-6)


def test_progress_is_reported_in_order() -> None:
    """A function hears increasing fractions that end at 1."""
    heard: list[float] = []
    ensembles.mc_dropout(
        network(), images(), 4, batch_size=5, progress=lambda _, fraction: heard.append(fraction)
    )
    assert heard == sorted(heard)
    assert heard[0] == pytest.approx(0.125)
    assert heard[-1] == 1
    heard.clear()
    ensembles.deep_ensemble(
        [nn.Linear(4, 3)] * 2, images(), batch_size=5, progress=lambda _, f: heard.append(f)
    )
    assert heard == [0.25, 0.5, 0.75, 1.0]


def test_the_bar_appears_after_two_seconds_in_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A short run, and a log file, see nothing; a terminal sees a bar."""
    from raterwise import progress_bar

    ensembles.mc_dropout(network(), images(), 2)
    monkeypatch.setattr(progress_bar, "PATIENCE", -1.0)
    ensembles.mc_dropout(network(), images(), 2)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    ensembles.mc_dropout(network(), images(), 2)
    assert "MC dropout" in capfd.readouterr().err


# layers that hide their dropout, and inputs that nobody could use ---------------------------------


class Reads(nn.Module):
    """A sequence layer and a linear head."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(8, 3)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return the logits of sequences (N, L, 8)."""
        if isinstance(self.layer, nn.MultiheadAttention):
            return self.head(self.layer(words, words, words)[0].mean(dim=1))
        given = self.layer(words)
        return self.head((given[0] if isinstance(given, tuple) else given).mean(dim=1))


def transformer(dropout: float) -> nn.Module:
    """Two encoder layers, which in eval mode PyTorch runs without calling their dropout."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


@pytest.mark.parametrize(
    "layer",
    [
        transformer(0.5),
        nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True),
        nn.LSTM(8, 8, num_layers=2, dropout=0.5, batch_first=True),
    ],
    ids=["transformer", "attention", "LSTM"],
)
def test_dropout_inside_sequence_layers(layer: nn.Module) -> None:
    """The samples differ, the seed decides them, and everything is as before afterwards."""
    model, words = Reads(layer).eval(), torch.randn(6, 5, 8)
    fast = torch.backends.mha.get_fastpath_enabled()
    first = ensembles.mc_dropout(model, words, samples=8, seed=3).samples
    again = ensembles.mc_dropout(model, words, samples=8, seed=3).samples
    assert first.std(axis=0).max() > 1e-4
    np.testing.assert_array_equal(first, again)
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert not any(module.training for module in model.modules())


def test_layers_whose_dropout_is_zero_are_no_dropout() -> None:
    """Attention without dropout has nothing to switch on."""
    model = Reads(nn.MultiheadAttention(8, 2, batch_first=True))
    with pytest.raises(InvalidInputError, match="model: must have a dropout layer"):
        ensembles.mc_dropout(model, torch.randn(6, 5, 8))


def test_a_loader_that_shuffles_is_refused_everywhere() -> None:
    """Nobody would know which case a prediction belongs to."""
    loader = DataLoader(TensorDataset(images()), batch_size=4, shuffle=True)
    with pytest.raises(InvalidInputError, match="inputs: must come in a fixed order"):
        ensembles.mc_dropout(network(), loader)
    with pytest.raises(InvalidInputError, match="inputs: must come in a fixed order"):
        ensembles.test_time_augmentation(network(), loader, lambda image: image)


def test_wrong_seeds_and_batches() -> None:
    """The message names the argument, the rule and the value."""
    with pytest.raises(InvalidInputError, match="seed: must be at least 0; got -1"):
        ensembles.mc_dropout(network(), images(), seed=-1)
    with pytest.raises(InvalidInputError, match="seed: must be at least 0; got -1"):
        ensembles.test_time_augmentation(network(), images(), lambda image: image, seed=-1)
    with pytest.raises(InvalidInputError, match="batch_size: must be at least 1; got 0"):
        ensembles.deep_ensemble([network()], images(), batch_size=0)


def test_files_that_are_not_the_weights(tmp_path: Path) -> None:
    """A damaged file, a whole model, another network and a missing entry are said of the file."""
    damaged, whole, state = (tmp_path / name for name in ("bad.pt", "whole.pt", "state.pt"))
    damaged.write_bytes(b"no weights at all")
    torch.save(network(), whole)
    torch.save({"model": network().state_dict()}, state)

    def load(path: Path, **options: Any) -> None:
        ensembles.deep_ensemble([path], images(), network, **options)

    with pytest.raises(InvalidInputError, match=r"members: bad\.pt must be a file of weights"):
        load(damaged)
    with pytest.raises(InvalidInputError, match=r"members: whole\.pt must be a file of weights"):
        load(whole)
    with pytest.raises(InvalidInputError, match=r"members: state\.pt does not hold the weights of"):
        load(state)
    with pytest.raises(InvalidInputError, match=r"state_key: .* has 'model'; got 'weights'"):
        load(state, state_key="weights")
    load(state, state_key="model")


def test_one_model_is_no_list_of_members() -> None:
    """A Sequential could be read as a list of its layers; a ModuleList is a list."""
    with pytest.raises(InvalidTypeError, match="members: must be a list of models; got Sequential"):
        ensembles.deep_ensemble(network(), images())  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="member 1 is int"):
        ensembles.deep_ensemble([network(), 3], images())  # type: ignore[list-item]
    members = nn.ModuleList([network(), network()])
    assert ensembles.deep_ensemble(members, images()).samples.shape == (2, 10, 3)  # type: ignore[arg-type]


# logits and features of every draw ----------------------------------------------------------------


def two_layers() -> nn.Sequential:
    """Return a network with a named hidden layer and dropout after it."""
    torch.manual_seed(3)
    hidden = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
    layers = [("hidden", hidden), ("dropout", nn.Dropout(0.5)), ("classes", nn.Linear(6, 3))]
    return nn.Sequential(OrderedDict(layers))


def test_logits_and_features_belong_to_the_probabilities() -> None:
    """Softmax of the logits is the belief, and the last layer of the features is the logits."""
    model, x = two_layers(), torch.randn(7, 4)
    names = ("features", "probs", "logits")
    features, belief, logits = ensembles.mc_dropout(
        model, x, samples=5, outputs=names, layer="dropout", batch_size=3
    )
    assert features.shape == (5, 7, 6) and logits.shape == (5, 7, 3)
    weight, bias = (p.detach().numpy() for p in model.classes.parameters())
    np.testing.assert_allclose(features @ weight.T + bias, logits, atol=1e-5)
    np.testing.assert_allclose(softmax(logits, axis=2), belief.samples, atol=1e-6)
    alone = ensembles.mc_dropout(model, x, samples=5, batch_size=3)
    np.testing.assert_array_equal(alone.samples, belief.samples)
    assert isinstance(alone, EnsembleBelief)
    again = ensembles.mc_dropout(
        model, x, samples=5, outputs="features", layer=model.dropout, batch_size=3
    )
    np.testing.assert_array_equal(again, features)


def test_outputs_have_names() -> None:
    """By attribute and by key, besides their order; what was not asked for is not there."""
    drawn = ensembles.mc_dropout(two_layers(), torch.randn(2, 4), 3, outputs=("logits", "probs"))
    assert drawn.logits is drawn["logits"] is drawn[0]
    assert drawn.probs is drawn[1]
    with pytest.raises(KeyError, match="'features' was not asked for; outputs= had logits, probs"):
        drawn["features"]


def test_augmented_images_have_features_of_their_own() -> None:
    """Of an image turned upside down, the layer's output for that image."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
    x = torch.randn(6, 1, 2, 2)
    features = ensembles.test_time_augmentation(
        model, x, lambda image: image.flip(-2), samples=2, outputs="features", layer="2"
    )
    expected = model[:3](x.flip(-2)).detach().numpy()
    np.testing.assert_allclose(features, np.stack([expected, expected]), atol=1e-6)


def test_networks_have_the_layer_by_its_name() -> None:
    """Each network its own; the module of one of them is not one of the others'."""
    models, x = [two_layers(), two_layers()], torch.randn(5, 4)
    with torch.no_grad():
        models[1].hidden[0].bias += 1
    logits, features = ensembles.deep_ensemble(
        models, x, outputs=("logits", "features"), layer="hidden", batch_size=2
    )
    for s, model in enumerate(models):
        np.testing.assert_allclose(features[s], model.hidden(x).detach(), atol=1e-6)
        np.testing.assert_allclose(logits[s], model.eval()(x).detach(), atol=1e-6)
    with pytest.raises(InvalidInputError, match="layer: must be a module of the model; this Seq"):
        ensembles.deep_ensemble(models, x, outputs="features", layer=models[0].hidden)


def test_every_pixel_has_features() -> None:
    """A dense layer of the size of the output has a row per pixel; another size is refused."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Dropout(0.3), nn.Conv2d(4, 2, 1))
    x = torch.randn(2, 1, 3, 5)
    logits, features = ensembles.mc_dropout(
        model, x, samples=3, outputs=("logits", "features"), layer="1"
    )
    assert logits.shape == (3, 30, 2) and features.shape == (3, 30, 4)
    weight = model[2].weight.detach().numpy()[:, :, 0, 0]
    np.testing.assert_allclose(
        features @ weight.T + model[2].bias.detach().numpy(), logits, atol=1e-5
    )
    small = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Dropout(0.3), nn.ConvTranspose2d(4, 2, 3))
    with pytest.raises(InvalidInputError, match="layer: must give features for every pixel"):
        ensembles.mc_dropout(small, x, samples=2, outputs="features", layer="0")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"outputs": "embedding"}, "outputs: must be .* got 'embedding'"),
        ({"outputs": ()}, "outputs: must be"),
        ({"outputs": ("probs", "probs")}, "once each"),
        ({"outputs": "features"}, 'layer: goes with outputs "features".* got None with features'),
        ({"layer": "hidden"}, "got 'hidden' with probs"),
        ({"outputs": "features", "layer": "head"}, "must be one of hidden, hidden.0.*'head'"),
        ({"outputs": "features", "layer": 3}, "must be a module or the name of one; got int"),
        ({"outputs": "logits", "output": "probabilities"}, '"logits" are for a model that'),
    ],
)
def test_what_outputs_cannot_be(given: dict[str, Any], message: str) -> None:
    """An error names the argument and the rule."""
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        ensembles.mc_dropout(two_layers(), torch.randn(2, 4), 2, **given)


def test_a_layer_that_runs_twice_is_refused_and_let_go() -> None:
    """Which of its outputs would be meant? No hook stays behind."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.dropout = nn.Linear(4, 4), nn.Dropout(0.5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.dropout(self.layer(self.layer(x)))

    model = Twice()
    with pytest.raises(InvalidInputError, match="must run once whenever the model does; it ran 2"):
        ensembles.mc_dropout(model, torch.randn(2, 4), 2, outputs="features", layer="layer")
    assert not model.layer._forward_hooks


def test_draws_go_through_calibrators_to_a_mixture() -> None:
    """Temperature of every draw, α from the features of every draw (LH appendix E.4)."""
    model, x = two_layers(), torch.randn(60, 4)
    drawn = ensembles.mc_dropout(
        model, x, 4, outputs=("probs", "logits", "features"), layer="hidden"
    )
    with torch.inference_mode():
        logits = model.eval()(x).double().numpy()
    said = np.random.default_rng(0).multinomial(4, softmax(2 * logits, axis=1))
    labels = rw.Labels.from_counts(said)
    belief = rw.TemperatureScaling("logits").fit(logits, labels).predict_proba(drawn.logits)
    assert isinstance(belief, EnsembleBelief) and belief.samples.shape == (4, 60, 3)
    alpha = rw.AlphaCalibration(l2=0.1).fit(drawn.features, labels, probs=belief)
    found = alpha.predict(drawn.features, probs=belief)
    assert isinstance(found, rw.DirichletMixtureBelief)
    assert found.concentration.shape == (4, 60)
    np.testing.assert_allclose(found.mean, belief.mean)


def test_a_factory_draws_no_random_numbers(tmp_path: Path) -> None:
    """First weights, which the file's are written over, leave the generator as it was."""
    torch.save(nn.Linear(4, 3).state_dict(), tmp_path / "a.pt")
    before = torch.get_rng_state()
    ensembles.deep_ensemble(
        [tmp_path / "a.pt"], torch.zeros(2, 4), lambda: nn.Linear(4, 3), progress=False
    )
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("progress", [True, False])
def test_the_first_call_of_a_process_leaves_random_numbers_alone(progress: bool) -> None:
    """Importing rich draws one of Python's; without a bar it is not imported."""
    code = f"""
import random, sys, torch
from torch import nn
from raterwise.torch import ensembles
state = random.getstate()
model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))
ensembles.mc_dropout(model, torch.zeros(2, 4), samples=1, progress={progress})
assert random.getstate() == state
assert ("rich.style" in sys.modules) is {progress}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

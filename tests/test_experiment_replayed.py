"""Steps that are recorded once and replayed on a GPU are those of the network itself."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from experiments.networks import DenseNet  # noqa: E402
from experiments.replayed import Replayed, Step, replayed_answers  # noqa: E402
from experiments.training import Recipe  # noqa: E402

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def trained(network, asked, device):
    """Return the losses of seven steps, the last of which has another number of images."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(7, 16, 3, 32, 32, generator=generator).to(device)
    classes = torch.randint(4, (16,), generator=generator).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    asked.train()
    losses = []
    for number, batch in enumerate(images):
        size = 16 if number < 6 else 10
        loss = nn.functional.cross_entropy(asked(batch[:size]), classes[:size])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
def test_replayed_steps_are_the_networks_own(device):
    """The same losses, step by step, the same weights at the end, and none of its own."""
    torch.manual_seed(1)
    plain = DenseNet(3, 4, layers=2, growth=4).to(device)
    again = DenseNet(3, 4, layers=2, growth=4).to(device)
    again.load_state_dict(plain.state_dict())
    wrapped = Replayed(again)
    wanted, found = trained(plain, plain, device), trained(again, wrapped, device)
    assert found == pytest.approx(wanted, rel=1e-5)
    assert wanted[0] != pytest.approx(wanted[5], rel=1e-3)
    assert list(wrapped.state_dict()) == [f"network.{name}" for name in again.state_dict()]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_recorded_steps_are_those_of_a_plain_loop(device, kind):
    """Losses, weights and running means, with batches of two sizes and a rate that changes."""
    torch.manual_seed(1)
    plain = DenseNet(3, 4, layers=2, growth=4).to(device)
    again = DenseNet(3, 4, layers=2, growth=4).to(device)
    again.load_state_dict(plain.state_dict())
    images = torch.randn(24, 16, 3, 32, 32, device=device)
    classes = torch.randint(4, (16,), device=device)
    recipe = Recipe(1, learning_rate=0.01, optimizer=kind)
    first, second = (recipe.optimizer_of(n.parameters()) for n in (plain, again))
    step = Step(again.train(), nn.functional.cross_entropy, second)
    plain.train()
    for number, batch in enumerate(images):
        size = 16 if number % 3 else 10
        for optimizer in (first, second):
            optimizer.param_groups[0]["lr"] = 0.01 if number < 12 else 0.001
        wanted = nn.functional.cross_entropy(plain(batch[:size]), classes[:size])
        first.zero_grad()
        wanted.backward()
        first.step()
        found = step(batch[:size], classes[:size])
        assert found.item() == pytest.approx(wanted.item(), rel=1e-4)
    for one, other in zip(plain.state_dict().values(), again.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
def test_replayed_answers_are_of_the_images_given(device):
    """Of each batch in turn, of whatever size, and without gradients."""
    layer = nn.Linear(3, 2).to(device)
    answer = replayed_answers(layer)
    for size in (4, 4, 3, 4):
        images = torch.randn(size, 3, device=device)
        said = answer(images)
        assert not said.requires_grad
        torch.testing.assert_close(said, layer(images).detach())

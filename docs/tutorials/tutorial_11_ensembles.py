"""
From an ensemble to the posterior
=================================

A single probability per class says how often an answer is right. It does not say how certain that
probability is, or how much one more reading would change it. An ensemble does.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import raterwise as rw
from raterwise.torch import ensembles, losses

# %%
# Each image shows a small or large spot on noise and is read by five readers. Half of the images
# are so noisy that their reading is unpredictable.

rng = np.random.default_rng(0)


def study(cases: int) -> tuple[torch.Tensor, rw.Labels]:
    """Draw images of 12 × 12 pixels, and what five readers say of them."""
    size = rng.uniform(1.0, 3.5, cases)
    clear = rng.random(cases) < 0.5
    large = 1 / (1 + np.exp(-4 * (size - 2.25)))
    agreed = np.where(clear, 20.0, 0.5)
    large = rng.beta(agreed * large, agreed * (1 - large))
    y, x = np.mgrid[:12, :12] - 5.5
    spots = np.exp(-(x**2 + y**2) / (2 * size[:, None, None] ** 2))
    noise = np.where(clear, 0.1, 0.6)[:, None, None]
    images = spots + noise * rng.normal(0, 1, spots.shape)
    counts = rng.multinomial(5, np.stack((1 - large, large), axis=1))
    return torch.tensor(images[:, None], dtype=torch.float32), rw.Labels.from_counts(counts)


train, validation, test = study(300), study(250), study(250)

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 8, 5, stride=2),
    nn.Sequential(nn.ReLU(), nn.Flatten()),
    nn.Sequential(nn.Linear(128, 16), nn.ReLU()),
    nn.Dropout(0.5),
    nn.Linear(16, 2),
)
loss = losses.HistogramCrossEntropy()
optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(120):
    optimiser.zero_grad()
    loss(network(train[0]), torch.tensor(train[1].counts)).backward()
    optimiser.step()

# %%
# **Draws.** Make ten passes with dropout switched on. ``test_time_augmentation`` and
# ``deep_ensemble`` return the same kind of result. ``outputs`` selects what to keep of every pass:
# probabilities as a belief, logits, and the features of a layer.

keep = {"samples": 10, "outputs": ("probs", "logits", "features"), "layer": "2", "progress": False}
known = ensembles.mc_dropout(network, validation[0], **keep)
new = ensembles.mc_dropout(network, test[0], **keep)
print(new.probs.samples.shape, "probabilities,", new.features.shape, "features")

# %%
# **Temperature.** Fit it to the logits of the network without dropout, and apply it to every draw:

with torch.inference_mode():
    logits = network.eval()(validation[0]).numpy()
temperature = rw.TemperatureScaling(input="logits").fit(logits, validation[1])
before, after = temperature.predict_proba(known.logits), temperature.predict_proba(new.logits)

# %%
# **α.** The spread of dropout draws need not match the spread of readers. α-calibration learns from
# the readers of the validation set how certain each draw is.

alpha = rw.AlphaCalibration(seed=0).fit(known.features, validation[1], probs=before)
belief = alpha.predict(new.features, probs=after)

# %%
# Two losses show what changed: that of the predicted probability that two readers differ, and that
# of the probabilities after one reader's label, against the other readers. Smaller is better for
# both.

steps = {"draws": new.probs, "temperature": after, "temperature + α": belief}
found = rw.compare(
    steps, test[1], ["disagreement_loss", "posterior_epistemic_loss"], resamples=100, seed=0
)
for name, results in found.models.items():
    print(f"{name:16s}", *(f"{e.name} {e.value:.4f}  " for e in results.values()))
for d in found.differences:
    if d.second == "temperature + α":
        print(
            f"{d.metric}: {d.first} - {d.second} {d.difference:+.4f} [{d.low:+.4f}, {d.high:+.4f}]"
        )

# %%
# **Posterior.** A reader says "large". How far does the probability move? The dropout draws hardly
# respond. The calibrated belief does, for the cases where it should:

said = rw.Labels.from_classes(np.ones(len(test[1]), int), num_classes=2)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for ax, name in zip(axes, ("temperature", "temperature + α"), strict=True):
    now = steps[name]
    ax.plot([0, 1], [0, 1], "k:", linewidth=1)
    ax.plot(now.mean[:, 1], now.posterior(said).mean[:, 1], ".", alpha=0.5)
    ax.set(title=name, xlabel="P(large) before")
axes[0].set(ylabel="P(large) after one reader said so")

# %%
# **Second opinions.** These are the five cases for which one more reading is worth most:

ranked = rw.worklist.worklist(belief, top=5)
for row, gain, before_it, if_large in zip(
    ranked.rows, ranked.expected_gain, ranked.probs, ranked.posterior[:, 1], strict=True
):
    print(
        f"image {row:3d}: expected gain {gain:.3f}; P(large) {before_it[1]:.2f}, "
        f"and {if_large[1]:.2f} if a reader says large"
    )

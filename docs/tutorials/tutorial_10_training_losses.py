"""
Training losses
===============

Training can improve calibration. Here a small network is trained with five losses on labels from
three readers who disagree, and then evaluated on new cases.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import raterwise as rw
from raterwise.torch import losses, metrics

# %%
# The data are simulated: six measurements of a lesion, three classes, and three readers who choose
# classes with the true probabilities. Because the truth is known, we can see which loss finds it.

rng = np.random.default_rng(0)
weights = rng.normal(0, 1.2, (6, 3))


def lesions(cases: int) -> tuple[torch.Tensor, rw.Labels]:
    """Draw measurements, and what three readers say of them."""
    x = rng.normal(0, 1, (cases, 6))
    truth = np.exp(x @ weights)
    truth /= truth.sum(axis=1, keepdims=True)
    counts = rng.multinomial(3, truth)
    return torch.tensor(x, dtype=torch.float32), rw.Labels.from_counts(counts)


train, test = lesions(120), lesions(2000)

# %%
# Every loss takes logits and either classes or the counts of the readers' labels. Most code uses
# cross-entropy against a majority vote. `HistogramCrossEntropy` uses every reader's label, and
# `Regularized` adds a calibration term, here MDCA or RCR.

vote = torch.tensor(train[1].majority())
counts = torch.tensor(train[1].counts)
candidates = {
    "cross-entropy, vote": (nn.CrossEntropyLoss(), vote),
    "focal, vote": (losses.FocalLoss(gamma=3), vote),
    "cross-entropy, readers": (losses.HistogramCrossEntropy(), counts),
    "… and MDCA": (losses.Regularized(losses.HistogramCrossEntropy(), losses.MDCA(), 1.0), counts),
    "… and RCR": (losses.Regularized(losses.HistogramCrossEntropy(), losses.RCR(), 1.0), counts),
}


def trained(loss: nn.Module, targets: torch.Tensor) -> nn.Module:
    """Train a small network for 150 steps."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(150):
        optimiser.zero_grad()
        loss(network(train[0]), targets).backward()
        optimiser.step()
    return network.eval()


predicted = {}
for name, (loss, targets) in candidates.items():
    predicted[name] = trained(loss, targets)(test[0]).softmax(dim=1).detach()

# %%
# Evaluate them on new cases, with the labels of all three readers:

print(f"{'':24s} accuracy     NLL     ECE  epistemic loss")
for name, probs in predicted.items():
    values = (
        rw.accuracy(probs, test[1]),
        rw.nll(probs, test[1]),
        rw.ece(probs, test[1]),
        rw.epistemic_loss(probs, test[1]),
    )
    print(f"{name:24s} {values[0]:8.3f} {values[1]:7.3f} {values[2]:7.3f} {values[3]:15.4f}")

# %%
# The vote teaches the network to be as certain as a vote; the readers' own labels do not. This is
# most of the gain, and it is free. With so few cases a calibration term helps further; on medical
# images it does not always (:doc:`/reproduction/robust_ece`).

names = ("cross-entropy, vote", "cross-entropy, readers")
fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.plot([0, 1], [0, 1], "k:", linewidth=1)
for name in names:
    curve = rw.curves.reliability_curve(predicted[name].numpy(), test[1])
    ax.plot(curve.predicted, curve.observed, "o-", label=name)
ax.set(xlabel="confidence", ylabel="readers who agree")
ax.legend()

# %%
# In a training loop, use the torchmetrics versions. They keep a table of sums instead of every
# prediction, accept counts as well as classes, and give the same number as the library functions:

ece = metrics.ECE(num_classes=3)
probs = predicted["cross-entropy, readers"]
for start in range(0, len(probs), 256):
    batch = slice(start, start + 256)
    ece.update(probs[batch], torch.tensor(test[1].counts[batch]))
print(f"in batches {ece.compute().item():.6f}, at once {rw.ece(probs, test[1]):.6f}")

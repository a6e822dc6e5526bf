"""
Out of distribution
===================

In the clinic, a model meets cases it was not made for: another organ, a phantom, a failed scan. It
cannot be right about those. Does its confidence show it?
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

# %%
# The data are simulated: 600 cases of three classes, on which the model is calibrated, and 200
# out-of-distribution cases. There are two measures of confidence. The largest probability stays
# high on strange cases. The second, such as nearness to the training images, is low on them but
# says less about ordinary errors.

rng = np.random.default_rng(2)
probs = rng.dirichlet([0.6, 0.6, 0.6], size=600)
labels = rw.Labels.from_counts(rng.multinomial(3, probs))
strange = rng.dirichlet([0.6, 0.6, 0.6], size=200)

largest = probs.max(axis=1)
nearness = largest + rng.normal(1.0, 0.2, 600)
strange_nearness = strange.max(axis=1) + rng.normal(0.3, 0.2, 200)

# %%
# On the ordinary cases alone, AUCCC measures whether right answers have higher confidence than
# wrong ones:

for name, confidence in {"largest probability": None, "nearness": nearness}.items():
    print(f"{name:20s} AUCCC {rw.auccc(probs, labels, confidence=confidence):.3f}")

# %%
# ``outside=`` adds the out-of-distribution cases, which count as wrong whatever was predicted.
# ``io_auroc`` says how well confidence separates them from the others. Both samples are resampled
# for the intervals. Pass the probabilities of these cases, or with ``confidence=`` their
# confidences:

metrics = ["auccc", "aurc", "io_auroc"]
settings = {"resamples": 200, "seed": 0}
by_probability = rw.evaluate(probs, labels, metrics, outside=strange, **settings)
by_nearness = rw.evaluate(
    probs, labels, metrics, confidence=nearness, outside=strange_nearness, **settings
)
for name, results in {"largest probability": by_probability, "nearness": by_nearness}.items():
    print(
        f"{name:20s}",
        *(f"{e.name} {e.value:.3f} [{e.low:.3f}, {e.high:.3f}]  " for e in results.values()),
    )

# %%
# The ranking is reversed: the confidence that is better on ordinary cases is worse if strange cases
# are included. Which one matters depends on how many strange cases there are, and that is a choice
# of the test set. Always report how many you added.
#
# The curves show, for every threshold, the share of right answers that is kept (vertical axis)
# against the share of wrong or strange ones that is kept (horizontal axis).

shown = {
    "largest probability": rw.ccc_curve(probs, labels, outside=strange),
    "nearness": rw.ccc_curve(probs, labels, confidence=nearness, outside=strange_nearness),
}
fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.plot([0, 1], [0, 1], "k:", linewidth=1)
for name, curve in shown.items():
    ax.plot(1 - curve.correct_reject_rate, curve.correct_accept_rate, label=name)
ax.set(xlabel="share of wrong or strange answers kept", ylabel="share of right answers kept")
ax.legend()

# %%
# Calibration says nothing about this. Both confidences come with the same probabilities, which are
# calibrated:

ece = rw.evaluate(probs, labels, ["ece"], resamples=200, seed=0)["ece"]
print(f"ECE {ece.value:.3f} [{ece.low:.3f}, {ece.high:.3f}]")

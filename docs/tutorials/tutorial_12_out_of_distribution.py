"""
Out of distribution
===================

In the clinic a model meets what it was not made for: another organ, a phantom, a broken scan. It
cannot be right about those. Does its confidence say so?
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

# %%
# Simulated: 600 cases of three classes, of which the model is right about as often as it says, and
# 200 from elsewhere. Two confidences: the largest probability, which stays high on strange cases,
# and a second one, such as nearness to the training images, which is low on them but knows less
# about ordinary errors.

rng = np.random.default_rng(2)
probs = rng.dirichlet([0.6, 0.6, 0.6], size=600)
labels = rw.Labels.from_counts(rng.multinomial(3, probs))
strange = rng.dirichlet([0.6, 0.6, 0.6], size=200)

largest = probs.max(axis=1)
nearness = largest + rng.normal(1.0, 0.2, 600)
strange_nearness = strange.max(axis=1) + rng.normal(0.3, 0.2, 200)

# %%
# Among the ordinary cases alone, AUCCC asks whether right answers have more confidence than wrong
# ones:

for name, confidence in {"largest probability": None, "nearness": nearness}.items():
    print(f"{name:20s} AUCCC {rw.auccc(probs, labels, confidence=confidence):.3f}")

# %%
# ``outside=`` adds the cases from elsewhere, which count as wrong whatever was predicted, and
# ``io_auroc`` says how well confidence tells them from the others. Both samples are resampled for
# the intervals. For the largest probability they are probabilities of those cases; for a confidence
# of one's own, its values:

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
# The order turns round: the confidence that is better among ordinary cases is the worse one where
# strange cases are to be expected. Which counts depends on how many of them there will be, and the
# test set decides that: say how many you put in.
#
# The curves: of every threshold, the share of the right answers that is kept (upwards) and of the
# wrong ones that is kept (to the right).

shown = {
    "largest probability": rw.ccc_curve(probs, labels, outside=strange),
    "nearness": rw.ccc_curve(probs, labels, confidence=nearness, outside=strange_nearness),
}
fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.plot([0, 1], [0, 1], "k:", linewidth=1)
for name, curve in shown.items():
    ax.plot(curve.incorrect_accepts, curve.correct_accepts, label=name)
ax.set(xlabel="wrong or strange, kept", ylabel="right, kept")
ax.legend()

# %%
# Calibration says nothing about this: both confidences go with the same probabilities, and those
# are calibrated.

ece = rw.evaluate(probs, labels, ["ece"], resamples=200, seed=0)["ece"]
print(f"ECE {ece.value:.3f} [{ece.low:.3f}, {ece.high:.3f}]")

"""
Small test sets
===============

With 100 cases, a calibration error is mostly noise. This tutorial shows how much, and what to
report instead of the bare number.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

# %%
# Take a perfectly calibrated model, with labels drawn from its own probabilities. Its true ECE is
# 0. What does the estimate say?

rng = np.random.default_rng(0)


def calibrated(cases: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw probabilities of a finding, and labels that follow them."""
    p = rng.beta(0.7, 0.7, size=cases)
    return p, (rng.random(cases) < p).astype(int)


fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
for cases in (50, 200, 1000, 10_000):
    values = [rw.ece(*calibrated(cases), question="positive") for _ in range(30)]
    print(f"{cases:6d} cases: ECE {np.mean(values):.3f} on average; the truth is 0")
    ax.plot([cases] * len(values), values, "o", alpha=0.4)
ax.set(xscale="log", ylim=(0, None), xlabel="cases", ylabel="ECE of a calibrated model")

# %%
# The interval accounts for this. It contains the true errors that are compatible with the observed
# one, so it starts at 0 if a calibrated model could have shown the same error:

p, y = calibrated(100)
ece = rw.evaluate(p, y, metrics=["ece"], question="positive", resamples=500, seed=0)["ece"]
print(f"ECE {ece.value:.3f}, 95% interval {ece.low:.3f} to {ece.high:.3f}")
print(f"corrected for chance: {ece.debiased:.3f}")

# %%
# How much would the value vary with fewer cases? Draw random subsets of the LIDC nodules and
# compute the metric on each:

demo = rw.datasets.load_lidc_malignancy()
for metric in ("ece", "robust_ece"):
    curve = rw.stability.subsample_curve(
        metric, demo.probs, demo.labels, fractions=(0.05, 0.25, 1.0), repeats=20, seed=0
    )
    shown = [f"{m:.3f} ± {s:.3f}" for m, s in zip(curve.mean, curve.std, strict=True)]
    print(f"{metric:11s}", "   ".join(shown))

# %%
# Robust ECE spreads each confidence over neighbouring bins, so a case that crosses the edge of a
# bin changes the value only a little. The price is that it cannot see changes within its σ.

"""
Compare models
==============

Which of several models is better, and is the difference more than chance? The same cases judge all
of them, so the comparison is paired: what makes a nodule hard is hard for every model.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

demo = rw.datasets.load_lidc_malignancy()
fit = demo.folds < 3
test = ~fit
labels, patients = demo.labels[test], demo.patients[test]

# %%
# Three candidates: the model as it is, the model with a temperature that was fitted to other
# patients, and one that says the prevalence of every class to everybody.

scaling = rw.TemperatureScaling(input="probs").fit(demo.probs[fit], demo.labels[fit])
prevalence = demo.labels[fit].counts.sum(axis=0) / demo.labels[fit].counts.sum()
models = {
    "as it is": demo.probs[test],
    "scaled": scaling.predict_proba(demo.probs[test]),
    "prevalence": np.tile(prevalence, (test.sum(), 1)),
}
comparison = rw.compare(
    models, labels, metrics=["brier", "ece", "accuracy"], groups=patients, resamples=300, seed=0
)
print(comparison.to_markdown())

# %%
# The prevalence is as well calibrated as the scaled model, and useless. That is why a calibration
# error never stands alone: the Brier score and the accuracy know better.
#
# Every pair, with the interval of the difference and a p-value adjusted for the number of pairs:

for d in comparison.differences:
    print(
        f"{d.metric:9s} {d.first} - {d.second}: {d.difference:+.4f} "
        f"[{d.low:+.4f}, {d.high:+.4f}]  adjusted p = {d.adjusted_p_value:.3g}"
    )

# %%
# How steady is the order? The share of resamples in which each model is the best:

for metric, shares in comparison.ranking.items():
    print(f"{metric:9s}", {name: round(share, 2) for name, share in shares.items()})

# %%
# Intervals of two models that overlap say little, because both move together from one resample to
# the next. The interval of their difference is much shorter than either:

pair = comparison.difference("brier", "as it is", "scaled")
rows = [(name, comparison.models[name]["brier"]) for name in ("as it is", "scaled")]
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
for row, (_, estimate) in enumerate(rows):
    left.plot([estimate.low, estimate.high], [row, row], "C0", linewidth=3)
    left.plot(estimate.value, row, "o", color="C0")
left.set(yticks=[0, 1], yticklabels=[name for name, _ in rows], ylim=(-0.7, 1.7))
left.set(title="Brier score, each")
right.plot([pair.low, pair.high], [0, 0], "C1", linewidth=3)
right.plot(pair.difference, 0, "o", color="C1")
right.axvline(0, color="0.5", linestyle=":")
right.set(yticks=[], ylim=(-0.7, 0.7), title="the difference")

"""
Compare models
==============

Which of several models is better, and is the difference more than chance? All models are evaluated
on the same cases, so the comparison is paired: a difficult nodule is difficult for every model.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

demo = rw.datasets.load_lidc_malignancy()
fit = demo.folds < 3
test = ~fit
labels, patients = demo.labels[test], demo.patients[test]

# %%
# There are three candidates: the model as it is, the model with a temperature fitted to other
# patients, and one that predicts the class frequencies for every case.

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
# The class frequencies are well calibrated but useless as a prediction. Never report a calibration
# error alone: the Brier score and the accuracy show the difference.
#
# Each pair has the interval of the difference and a p-value adjusted for the number of pairs:

for d in comparison.differences:
    print(
        f"{d.metric:9s} {d.first} - {d.second}: {d.difference:+.4f} "
        f"[{d.low:+.4f}, {d.high:+.4f}]  adjusted p = {d.adjusted_p_value:.3g}"
    )

# %%
# How stable is the ranking? The share of resamples in which each model comes first:

for metric, shares in comparison.ranking.items():
    print(f"{metric:9s}", {name: round(share, 2) for name, share in shares.items()})

# %%
# Overlapping intervals of two models say little, because both values move together from one
# resample to the next. The interval of the difference is much shorter than either. (Both panels
# below have the same scale.)

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
middle = np.mean([estimate.value for _, estimate in rows])
left.set(xlim=(middle - 0.045, middle + 0.045))  # both panels have one scale
right.set(xlim=(pair.difference - 0.045, pair.difference + 0.045))

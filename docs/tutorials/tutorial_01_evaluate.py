"""
Evaluate a model
================

The data are 1,880 lung nodules of 796 patients from LIDC-IDRI. Radiologists rated the malignancy
of each nodule in five classes. How far can you trust the model's probabilities?
"""

import raterwise as rw

demo = rw.datasets.load_lidc_malignancy()
print(demo.probs.shape, "probabilities;", len(demo.ratings_class), "ratings")

# %%
# Labels keep what every rater said, rather than a majority vote. For the first nodule, one reader
# chose class 3 and two chose class 4:

print(demo.labels.counts[0])

# %%
# One call computes the metrics with their intervals. ``groups=`` gives the patient of each nodule.
# Nodules of one patient are not independent, so whole patients are resampled. For metrics that
# compare two raters of a nodule, ``on_single="drop"`` leaves out nodules with a single rater, and
# the results report how many.

results = rw.evaluate(
    demo.probs,
    demo.labels,
    metrics=["accuracy", "brier", "ece", "epistemic_loss", "irreducible_loss", "auccc"],
    groups=demo.patients,
    class_names=demo.class_names,
    on_single="drop",
    resamples=200,
    seed=0,
)
print(results)

# %%
# To get one metric with its interval:

ece = results["ece"]
print(f"ECE {ece.value:.3f}, 95% interval {ece.low:.3f} to {ece.high:.3f}")

# %%
# The verdict says whether a calibrated model could have shown deviations this large by chance, and
# how the model is off:

print(results.data["verdict"]["sentence"])

# %%
# Read the warnings before you rely on the figures:

for warning in results.warnings:
    print("-", warning)

# %%
# A reliability diagram shows where the gaps are. Points below the line are over-confident.

curve = rw.curves.reliability_curve(demo.probs, demo.labels)
rw.plots.ReliabilityDisplay(curve).plot()

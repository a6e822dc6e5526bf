"""
Evaluate a model
================

Five classes of malignancy, 1,880 lung nodules of 796 patients, and what the radiologists of
LIDC-IDRI said of each. How far can the model's probabilities be trusted?
"""

import raterwise as rw

demo = rw.datasets.load_lidc_malignancy()
print(demo.probs.shape, "probabilities;", len(demo.ratings_class), "ratings")

# %%
# Labels are what the raters said, not what a vote made of it. Of the first nodule one reader said
# class 3 and two said class 4:

print(demo.labels.counts[0])

# %%
# One call computes the metrics with their intervals. ``groups=`` names the patient of each nodule:
# nodules of one patient are not independent, so whole patients are resampled. Where a metric
# compares two raters of a nodule, ``on_single="drop"`` leaves out the nodules that have only one,
# and the results count them.

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
# A single figure, with its interval:

ece = results["ece"]
print(f"ECE {ece.value:.3f}, 95% interval {ece.low:.3f} to {ece.high:.3f}")

# %%
# The verdict asks whether a calibrated model would have shown so large a deviation by chance, and
# says how the model is off:

print(results.data["verdict"]["sentence"])

# %%
# What to know before relying on the figures:

for warning in results.warnings:
    print("-", warning)

# %%
# A reliability diagram shows where the gaps are. Points below the line are answers that were too
# sure.

curve = rw.curves.reliability_curve(demo.probs, demo.labels)
rw.plots.ReliabilityDisplay(curve).plot()

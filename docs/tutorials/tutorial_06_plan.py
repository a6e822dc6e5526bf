"""
Plan a study
============

How many cases, and how many readers each? A pilot set with two readers on some cases says how wide
the interval of every design would be, before anybody reads the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

# %%
# The pilot: 150 nodules of LIDC-IDRI, as many patients as they come from.

demo = rw.datasets.load_lidc_malignancy()
rng = np.random.default_rng(0)
pilot = np.sort(rng.choice(len(demo.probs), size=150, replace=False))
probs, labels, patients = demo.probs[pilot], demo.labels[pilot], demo.patients[pilot]
print(len(pilot), "nodules,", len(set(patients)), "patients,", labels.num_raters.sum(), "readings")

# %%
# For a mean of losses, such as the Brier score, the width follows from two variances, that between
# nodules and that between the readers of one nodule, and there is a formula:

plan = rw.planning.plan(
    "brier", probs, labels, cases=(100, 200, 400, 800), raters=(1, 2, 4), groups=patients
)
for design in plan.designs:
    print(
        f"{design.cases:4d} cases, {design.raters} per case ({design.readings:4d} readings): "
        f"interval {design.width:.3f} wide"
    )

# %%
# A second reader helps less than a second nodule. With 800 readings to spend, at one each:

print(plan.best(budget=800))

# %%
# … but a nodule costs more than a reading: somebody must find it, scan it and follow it up. If a
# case costs ten readings, more readers per case are the better buy:

print(plan.best(budget=4000, case_cost=10.0))

# %%
# For a calibration error there is no such formula. Studies are drawn from a model of the pilot and
# each is evaluated, which takes longer; ``repeats`` and ``resamples`` are small here for the sake
# of the example.

ece = rw.planning.plan(
    "ece", probs, labels, cases=(100, 400), raters=(1, 3), repeats=8, resamples=60, seed=0
)
for design in ece.designs:
    print(
        f"{design.cases:4d} cases, {design.raters} per case: {design.width:.3f} wide "
        f"(± {design.width_error:.3f}), too large by {design.bias:+.3f}"
    )

# %%
# The last column is why small studies find every model miscalibrated: chance pushes the error up.
# The picture for the protocol, with the price of each design:

fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
rw.plots.PlanDisplay(plan).plot(ax, budget=800)

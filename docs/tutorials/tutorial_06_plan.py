"""
Plan a study
============

How many cases do you need, and how many readers for each? A pilot study with two readers on some
cases is enough to estimate the interval width of each design in advance.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

# %%
# The pilot consists of 150 random nodules of LIDC-IDRI.

demo = rw.datasets.load_lidc_malignancy()
rng = np.random.default_rng(0)
pilot = np.sort(rng.choice(len(demo.probs), size=150, replace=False))
probs, labels, patients = demo.probs[pilot], demo.labels[pilot], demo.patients[pilot]
print(len(pilot), "nodules,", len(set(patients)), "patients,", labels.num_raters.sum(), "readings")

# %%
# For a mean of losses, such as the Brier score, there is a formula. The width follows from two
# variances: between nodules, and between the readers of one nodule.

plan = rw.planning.plan(
    "brier", probs, labels, cases=(100, 200, 400, 800), raters=(1, 2, 4), groups=patients
)
for design in plan.designs:
    print(
        f"{design.cases:4d} cases, {design.raters} per case ({design.readings:4d} readings): "
        f"interval {design.width:.3f} wide"
    )

# %%
# A second reader per nodule helps less than another nodule. With a budget of 800, at a cost of 1
# per reading:

best = plan.best(budget=800)
print(f"{best.cases} cases, {best.raters} per case: interval {best.width:.3f} wide")

# %%
# But a new case costs more than a reading: someone must recruit, scan and follow up the patient. If
# a case costs as much as ten readings, more readers per case are the better choice:

best = plan.best(budget=4000, case_cost=10.0)
print(f"{best.cases} cases, {best.raters} per case: interval {best.width:.3f} wide")

# %%
# There is no such formula for a calibration error. Instead, studies are simulated from a model of
# the pilot, and each is evaluated. This takes longer, so ``repeats`` and ``resamples`` are small
# here.

ece = rw.planning.plan(
    "ece", probs, labels, cases=(100, 400), raters=(1, 3), repeats=8, resamples=60, seed=0
)
for design in ece.designs:
    print(
        f"{design.cases:4d} cases, {design.raters} per case: {design.width:.3f} wide "
        f"(± {design.width_error:.3f}), too large by {design.bias:+.3f}"
    )

# %%
# The last column is the upward bias due to chance, which is why small studies find every model
# miscalibrated. A figure for the protocol, with the cost of each design:

fig, ax = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
rw.plots.PlanDisplay(plan).plot(ax, budget=800)

"""
Sub-groups
==========

A model that is calibrated on average can be over-confident on one scanner and timid on another.
Which differences are real, and which are what looking at many small groups gives by chance?
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

# %%
# The nodules of LIDC-IDRI, told apart by two things: their size, which is in the data, and a
# scanner for each patient, which is made up here. It means nothing, so nothing should be found.

demo = rw.datasets.load_lidc_malignancy()
diameter = demo.features[:, 0]
size = np.where(diameter < np.quantile(diameter, 0.5), "smaller half", "larger half")
rng = np.random.default_rng(0)
names, patient = np.unique(demo.patients, return_inverse=True)
scanner = rng.choice(["A", "B", "C"], size=len(names))[patient]

results = rw.evaluate(
    demo.probs,
    demo.labels,
    metrics=["ece", "brier"],
    groups=demo.patients,
    subgroups={"size": size, "scanner": scanner},
    resamples=200,
    seed=0,
)

# %%
# Each level has the metrics with intervals, and how it differs from all other cases. Calibration
# errors are larger in smaller groups whatever the model, so what is compared is the error less what
# chance explains. ``adjusted_p_value`` has been adjusted for all the levels and metrics looked at.

for found in results.subgroups:
    print(f"{found.variable} = {found.level} ({found.cases} cases of {found.patients} patients)")
    for name, difference in found.differences.items():
        value = found[name]
        print(
            f"    {name:6s} {value.value:.3f} [{value.low:.3f}, {value.high:.3f}]   "
            f"from the rest {difference.difference:+.3f} "
            f"[{difference.low:+.3f}, {difference.high:+.3f}]   "
            f"adjusted p = {difference.adjusted_p_value:.3f}"
        )

# %%
# The sizes differ, the scanners do not. A picture says it at one glance:

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
rw.plots.SubgroupDisplay.from_results(results, metric="brier", ax=ax)

# %%
# What sub-groups cannot tell: *why* a group is worse (larger nodules are harder to agree on), and
# anything about a group that is not in the test set. Levels below 20 cases or 10
# patients are warned of.

"""
Sub-groups
==========

A model that is calibrated on average can be over-confident on one scanner and under-confident on
another. Which differences are real, and which are due to looking at many small groups?
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

# %%
# Divide the nodules of LIDC-IDRI in two ways: by size, which is in the data, and by a scanner that
# is assigned to each patient at random. The scanner means nothing, so no difference should be
# found.

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
# Each level has its metrics with intervals, and its difference from all other cases. Calibration
# errors are larger in small groups for any model, so the comparison uses the errors corrected for
# chance. ``adjusted_p_value`` is adjusted for all levels and metrics of a variable.

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
# The sizes differ in the Brier score; the scanners do not differ. The same in a picture:

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
rw.plots.SubgroupDisplay.from_results(results, metric="brier", ax=ax)

# %%
# Sub-groups cannot tell you *why* a group is worse (readers may agree less on its nodules), or
# anything about a group that is not in the test set. A warning names levels with fewer than 20
# cases or 10 patients.

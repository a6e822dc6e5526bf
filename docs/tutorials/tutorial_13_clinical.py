"""
One finding, for a clinical journal
===================================

Readers of clinical journals ask three things about a probability. Is it right on average? Is it too
extreme? Is acting on it worthwhile? Here the finding is a suspicious nodule.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

# %%
# Reduce the five classes of LIDC-IDRI to two, with grades 3 and 4 as suspicious. Every reader still
# counts.

demo = rw.datasets.load_lidc_malignancy()
p = demo.probs[:, 3:].sum(axis=1)
counts = np.stack([demo.labels.counts[:, :3].sum(axis=1), demo.labels.counts[:, 3:].sum(axis=1)])
labels = rw.Labels.from_counts(counts.T)
print(f"{labels.counts[:, 1].sum() / labels.counts.sum():.0%} of the readings say suspicious")

# %%
# The intercept is what must be added to the log odds to make the mean right: below 0, the
# probabilities are too high. The slope is below 1 if they are too extreme. The ICI is the mean
# distance between a smooth calibration curve and the diagonal.

names = ["auroc", "observed_expected_ratio", "calibration_intercept", "calibration_slope", "ici"]
results = rw.evaluate(p, labels, names, groups=demo.patients, resamples=200, seed=0)
for e in results.values():
    print(f"{e.name:24s} {e.value:6.3f} [{e.low:.3f}, {e.high:.3f}]")

# %%
# Draw the curve behind the ICI and the decision curve. The decision curve shows the net benefit of
# acting on nodules above a threshold, compared with acting on every nodule or on none. A threshold
# of 20% means that finding one true positive is worth four false alarms.

curve = rw.calibration_curve(p, labels)
decisions = rw.decision_curve(p, labels)
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
left.plot([0, 1], [0, 1], "k:", linewidth=1)
left.plot(curve.predicted, curve.observed)
left.set(xlabel="predicted", ylabel="readings that say suspicious")
right.plot(decisions.thresholds, decisions.net_benefit, label="the model")
right.plot(decisions.thresholds, decisions.treat_all, "--", label="every nodule")
right.axhline(0, color="0.5", linestyle=":", label="none")
right.set(xlabel="threshold", ylabel="net benefit", xlim=(0, 0.8), ylim=(-0.05, 0.3))
right.legend()

# %%
# At one threshold, chosen in advance:

names = ["sensitivity", "specificity", "net_benefit"]
settings = {"groups": demo.patients, "resamples": 200, "seed": 0}
at = rw.evaluate(p, labels, names, threshold=0.2, **settings)
for e in at.values():
    print(f"{e.name:24s} {e.value:6.3f} [{e.low:.3f}, {e.high:.3f}]")

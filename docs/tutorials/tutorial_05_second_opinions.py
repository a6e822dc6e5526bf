"""
Second opinions
===============

Which cases should another expert read? α-calibration learns how certain the probabilities of each
case are, and so how much one more label would change them.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

demo = rw.datasets.load_lidc_malignancy()
fit = demo.folds < 3
test = ~fit

# %%
# The calibrator gives each case a *belief*: a Dirichlet distribution over class probabilities. Its
# mean is the model's probabilities, and its concentration is α0. If α0 is large, the raters of this
# case are expected to choose classes with these very probabilities. If α0 is small, raters are
# expected to agree with each other, but the model does not know on which class. Calibrate the
# probabilities first, because α0 cannot repair them.

scaling = rw.TemperatureScaling(input="probs").fit(demo.probs[fit], demo.labels[fit])
before, probs = scaling.predict_proba(demo.probs[fit]), scaling.predict_proba(demo.probs[test])

alpha = rw.AlphaCalibration()
alpha.fit(demo.features[fit], demo.labels[fit], probs=before, groups=demo.patients[fit])
belief = alpha.predict(demo.features[test], probs=probs)
print("α0: ", np.round(np.percentile(belief.concentration, [5, 50, 95]), 1), "(5%, median, 95%)")

# %%
# Will two raters disagree? Calibrated probabilities alone overstate this, because they mistake the
# model's ignorance for disagreement. Compare the predictions with the observed frequency:

pairs = demo.labels[test].num_raters >= 2
labels = demo.labels[test][pairs]
predicted = {
    "probabilities alone": rw.PointBelief(probs).disagreement()[pairs],
    "with the belief": belief.disagreement()[pairs],
}
for name, disagreement in predicted.items():
    loss = rw.disagreement_calibration_loss(disagreement, labels)
    print(f"{name:20s} mean {disagreement.mean():.3f}   calibration loss {loss:.4f}")
print(f"{'observed':20s} mean {rw.irreducible_loss(labels):.3f}")

fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
for name, disagreement in predicted.items():
    ax.hist(disagreement, bins=30, alpha=0.5, label=name)
ax.axvline(rw.irreducible_loss(labels), color="black", label="observed, on average")
ax.set(xlabel="predicted probability that two raters differ", ylabel="cases")
ax.legend()

# %%
# An expert's label updates the belief by Bayes' rule, in closed form. Suppose an expert chooses the
# highest class for the first case:

counts = np.zeros((len(belief.mean), 5), dtype=int)
counts[:, 4] = 1
moved = belief.posterior(rw.Labels.from_counts(counts))
print("before", np.round(belief.mean[0], 2))
print("after ", np.round(moved.mean[0], 2))

# %%
# The expected gain from one more label differs from case to case. A work list starts with the
# largest:

gain = belief.expected_gain()
first = np.argsort(-gain)[:5]
for case, value in zip(demo.case_ids[test][first], gain[first], strict=True):
    print(f"{case}  {value:.3f}")

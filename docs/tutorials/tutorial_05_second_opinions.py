"""
Second opinions
===============

Which cases should another expert read? α-calibration learns how sure to be of each case's
probabilities, and with that how much one more label would change.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

demo = rw.datasets.load_lidc_malignancy()
fit = demo.folds < 3
test = ~fit

# %%
# The calibrator gives a *belief* for each case: a Dirichlet distribution over class probabilities,
# with the model's probabilities as its mean and the concentration α0 as its sharpness. Large α0:
# the probabilities hold for this very case. Small α0: the case has a clear answer and the model
# does not know which. The probabilities are calibrated first: α0 cannot repair them.

scaling = rw.TemperatureScaling(input="probs").fit(demo.probs[fit], demo.labels[fit])
before, probs = scaling.predict_proba(demo.probs[fit]), scaling.predict_proba(demo.probs[test])

alpha = rw.AlphaCalibration()
alpha.fit(demo.features[fit], demo.labels[fit], probs=before, groups=demo.patients[fit])
belief = alpha.predict(demo.features[test], probs=probs)
print("α0: ", np.round(np.percentile(belief.concentration, [5, 50, 95]), 1), "(5%, median, 95%)")

# %%
# Will two raters disagree? Calibrated probabilities alone overstate it, because they hold what the
# model does not know for disagreement. Predicted, and observed:

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
# After an expert's label the belief moves: Bayes' rule, in closed form. Suppose that of the first
# case an expert says the highest class:

counts = np.zeros((len(belief.mean), 5), dtype=int)
counts[:, 4] = 1
moved = belief.posterior(rw.Labels.from_counts(counts))
print("before", np.round(belief.mean[0], 2))
print("after ", np.round(moved.mean[0], 2))

# %%
# What one more label is expected to be worth, case by case; a work list begins with the largest:

gain = belief.expected_gain()
first = np.argsort(-gain)[:5]
for case, value in zip(demo.case_ids[test][first], gain[first], strict=True):
    print(f"{case}  {value:.3f}")

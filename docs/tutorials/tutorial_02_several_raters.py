"""
Several raters or one
=====================

Most test sets have one label per case, often a majority vote. This tutorial shows what that loses.
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

demo = rw.datasets.load_lidc_malignancy()
enough = demo.labels.num_raters >= 2
probs, labels, patients = demo.probs[enough], demo.labels[enough], demo.patients[enough]
print(len(probs), "nodules with two readers or more")

# %%
# A majority vote discards the minority's opinion. The model is then judged against an answer that
# is more certain than the readers were:

print(f"ECE against the vote          {rw.ece(probs, labels.majority()):.3f}")
print(f"ECE against every reader      {rw.ece(probs, labels):.3f}")

# %%
# How far are the probabilities from the frequencies that a very large panel would give? Comparing
# them directly with two or three readers counts the readers' sampling noise against the model. The
# unbiased estimate removes it:

print(f"plug-in   {rw.epistemic_loss(probs, labels, estimator='plugin'):.3f}")
print(f"unbiased  {rw.epistemic_loss(probs, labels):.3f}")

# %%
# To check this, simulate data with a known truth. Here the model is perfect: raters choose each
# class with exactly the predicted probability. The true epistemic loss is 0, and only the unbiased
# estimate is close to it:

rng = np.random.default_rng(0)
truth = rng.dirichlet([1, 1, 1], size=2000)
three = rw.Labels.from_counts(rng.multinomial(3, truth))
print(f"plug-in   {rw.epistemic_loss(truth, three, estimator='plugin'):+.3f}")
print(f"unbiased  {rw.epistemic_loss(truth, three):+.3f}")

# %%
# The bias of the plug-in estimate shrinks with more raters. The unbiased estimate has no bias with
# any number of raters:

raters = [2, 3, 5, 10, 20]
drawn = [rw.Labels.from_counts(rng.multinomial(n, truth)) for n in raters]
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
for estimator in ("plugin", "unbiased"):
    values = [rw.epistemic_loss(truth, one, estimator=estimator) for one in drawn]
    ax.plot(raters, values, "o-", label=estimator)
ax.set(xlabel="raters per case", ylabel="epistemic loss (truth: 0)")
ax.legend()

# %%
# How well do the readers agree?

print(f"Fleiss' kappa {rw.fleiss_kappa(labels):.2f}")

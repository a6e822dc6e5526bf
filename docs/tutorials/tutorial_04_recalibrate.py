"""
Recalibrate
===========

Calibrators are scikit-learn estimators that use every rater's label. Fit them on some patients and
evaluate them on others.
"""

import matplotlib.pyplot as plt

import raterwise as rw

demo = rw.datasets.load_lidc_malignancy()
fit = demo.folds < 3  # folds keep patients together
test = ~fit
print(fit.sum(), "nodules to fit,", test.sum(), "to evaluate")

# %%
# Temperature scaling fits one temperature for all cases. ``input="probs"`` says that these are
# probabilities, because raterwise never guesses whether numbers are logits.

scaling = rw.TemperatureScaling(input="probs").fit(demo.probs[fit], demo.labels[fit])
after = scaling.predict_proba(demo.probs[test])

for name, p in {"before": demo.probs[test], "after": after}.items():
    ece, nll = rw.ece(p, demo.labels[test]), rw.nll(p, demo.labels[test])
    print(f"{name:7s} ECE {ece:.3f}  NLL {nll:.3f}")

# %%
# The reliability curve moves towards the line:

fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, (name, p) in zip(axes, {"before": demo.probs[test], "after": after}.items(), strict=True):
    curve = rw.curves.reliability_curve(p, demo.labels[test])
    ax.plot([0, 1], [0, 1], "k:", linewidth=1)
    ax.plot(curve.predicted, curve.observed, "o-")
    ax.set(title=name, xlabel="confidence", ylabel="raters who agree")

# %%
# Is the difference more than chance? Compare the two models on the same patients:

comparison = rw.compare(
    {"before": demo.probs[test], "after": after},
    demo.labels[test],
    metrics=["nll", "brier"],
    groups=demo.patients[test],
    resamples=200,
    seed=0,
)
for d in comparison.differences:
    interval = f"[{d.low:.3f}, {d.high:.3f}]"
    print(f"{d.metric}: before - after = {d.difference:.3f} {interval}, p = {d.p_value:.2g}")

# %%
# Recalibration cannot make the model *know* more, because it moves all cases of the same confidence
# together. Only a better model could reduce the dispersion loss.

two = test & (demo.labels.num_raters >= 2)
p = scaling.predict_proba(demo.probs[two])
print(f"epistemic loss   {rw.epistemic_loss(p, demo.labels[two]):.3f}")
print(f"  of which dispersion {rw.dispersion_loss(p, demo.labels[two]):.3f}")

"""
Segmentation
============

Four raters outline the same lesion, each a little differently. Are the probabilities of a
segmentation model calibrated against their outlines?
"""

import matplotlib.pyplot as plt
import numpy as np

import raterwise as rw

rng = np.random.default_rng(0)
y, x = np.mgrid[:64, :64]


def image(patient: str) -> rw.segmentation.Case:
    """Draw a lesion, four outlines of it, and a model that is too sure of its border."""
    row, column, radius = rng.uniform(24, 40), rng.uniform(24, 40), rng.uniform(8, 16)
    distance = np.hypot(y - row, x - column)
    masks = np.stack([distance < radius + rng.normal(0, 1.5) for _ in range(4)]).astype(int)
    inside = 1 / (1 + np.exp((distance - radius) * 2.0))
    return rw.segmentation.Case(np.stack([1 - inside, inside]), masks, patient=patient)


cases = [image(f"patient {n}") for n in range(12)]
print(cases[0].probabilities.shape, "probabilities and", cases[0].masks.shape, "masks of one image")

# %%
# These images are small and simulated; volumes and manifests of files work in the same way.

results = rw.segmentation.evaluate(cases, metrics=["ece", "brier"], resamples=100, seed=0)
print(results)

# %%
# Where will raters differ? Compare the model's prediction with what the raters did:

predicted = rw.segmentation.disagreement_map(cases[0].probabilities)
share = cases[0].masks.mean(axis=0)
observed = 2 * share * (1 - share) * 4 / 3  # of pairs of four raters
print(f"predicted {predicted.mean():.4f}, observed {observed.mean():.4f}")

fig, axes = plt.subplots(1, 2, figsize=(7, 3.5), layout="constrained")
for ax, (name, picture) in zip(
    axes, {"predicted": predicted, "observed": observed}.items(), strict=True
):
    ax.imshow(picture, cmap="magma", vmin=0, vmax=0.7)
    ax.set(title=f"disagreement, {name}", xticks=[], yticks=[])

# %%
# Most voxels are undisputed background, which makes any calibration error look small. Restrict the
# region to voxels within 3 mm of a rater's outline, here with voxels of 1 mm. (``boundary_mm=3`` in
# ``evaluate`` reports this band in addition to the whole image.)

near = [
    rw.segmentation.Case(
        case.probabilities,
        case.masks,
        region=rw.segmentation.boundary_band(case.masks, 3.0, (1.0, 1.0)),
        patient=case.patient,
    )
    for case in cases
]
print(rw.segmentation.evaluate(near, metrics=["ece", "brier"], resamples=100, seed=0))

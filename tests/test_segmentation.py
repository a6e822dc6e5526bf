"""Images against the same voxels as plain cases, against loops, and against numbers by hand."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import gamma, norm, t

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.catalog.recipes.steps import CONFIDENCE
from raterwise.evaluation.request import Request
from raterwise.segmentation import Case, boundary_band, disagreement_map
from raterwise.segmentation import request as requests
from raterwise.segmentation.binary import binary_digest, has_binary_digest
from raterwise.segmentation.cases import Selection, Voxels
from raterwise.summaries.digest import digest_of, merged_in_order
from raterwise.summaries.facts import Confidences
from raterwise.summaries.fingerprint import Fingerprint

Array = NDArray[Any]
METRICS = [row.name for row in CATALOG.values() if not row.needs_belief]


def images(
    classes: int, raters: int, shape: tuple[int, ...] = (7, 6, 5), seed: int = 0
) -> tuple[Array, Array]:
    """Return probabilities (*shape, K) and the masks of raters who draw from them."""
    random = np.random.default_rng([classes, raters, seed])
    probs = random.dirichlet(np.full(classes, 0.5), shape)
    draws = random.random((raters, *shape, 1))
    return probs, (probs.cumsum(axis=-1) > draws).argmax(axis=-1)


def as_cases(probs: Array, masks: Array, missing: int = -1) -> tuple[Array, rw.Labels]:
    """Return the voxels as plain cases: an independent way to the same numbers."""
    classes = probs.shape[-1]
    ratings = masks.reshape(len(masks), -1).T
    labels = rw.Labels.from_ratings(ratings, num_classes=classes, missing=missing)
    return probs.reshape(-1, classes), labels


def channels(probs: Array) -> Array:
    """Return probabilities as (K, *spatial)."""
    return np.moveaxis(probs, -1, 0)


def value_of(name: str, probs: Array, labels: rw.Labels) -> float:
    """Return a metric of plain cases, NaN where it is undefined."""
    found = rw.evaluate(
        probs, labels, metrics=name, resamples=0, on_single="drop", on_unrated="drop"
    )
    value = found[name].value
    return float("nan") if value is None else value


# numbers by hand --------------------------------------------------------------------------


def test_two_voxels_by_hand() -> None:
    """Two raters, two voxels: gaps of 0.2 and 0.3 in different bins make an ECE of 0.25."""
    image, masks = np.array([0.2, 0.8]), np.array([[0, 1], [0, 0]])
    found = rw.segmentation.evaluate(
        [Case(image, masks)], "ece,brier,accuracy", question="positive", resamples=0
    )
    assert found["ece"].value == pytest.approx((0.2 + 0.3) / 2)
    # Against a rater: (0.04 + (0.04 + 0.64) / 2) / 2, halved and doubled for the two classes.
    assert found["brier"].value == pytest.approx((0.04 + 0.34) / 2)
    assert found["accuracy"].value == pytest.approx((1 + 0.5) / 2)


def test_mean_and_deviation_over_images() -> None:
    """Images with errors 0.1 and 0.3 have the mean 0.2 and the standard deviation 0.1 √2."""
    masks = np.ones((1, 4), int)
    cases = [Case(np.full(4, 0.9), masks), Case(np.full(4, 0.7), masks)]
    found = rw.segmentation.evaluate(cases, "ece", resamples=0)
    assert found["ece"].value == pytest.approx(0.2)
    assert found["ece"].std == pytest.approx(0.1 * np.sqrt(2))
    assert found.per_case["ece"] == pytest.approx([0.1, 0.3])
    assert found.data["cases"] == 2 and found.data["voxels"] == 8


def test_patients_are_resampled_whole() -> None:
    """Two patients of two images: a resample has the mean 0.1, 0.2 or 0.3, and nothing between."""
    masks = np.ones((1, 4), int)
    levels = [(0.9, "a"), (0.9, "a"), (0.7, "b"), (0.7, "b")]
    cases = [Case(np.full(4, p), masks, patient=who) for p, who in levels]
    found = rw.segmentation.evaluate(cases, "ece", interval="percentile", resamples=500)["ece"]
    assert (found.low, found.high) == pytest.approx((0.1, 0.3))


def test_voxels_are_counted_once_per_rater() -> None:
    """MR eq 5: the same number as repeating every voxel once per rater, by a loop over bins."""
    probs, masks = images(2, 5)
    positive, votes = probs[..., 1].ravel(), masks.reshape(5, -1)
    repeated, labels = np.tile(positive, 5), votes.ravel()
    expected = 0.0
    for b in range(15):
        inside = (repeated >= b / 15) & ((repeated < (b + 1) / 15) | (b == 14))
        expected += abs((labels[inside] - repeated[inside]).sum()) / len(repeated)
    case = Case(probs[..., 1], masks)
    found = rw.segmentation.evaluate([case], "ece", question="positive", resamples=0)
    assert found["ece"].value == pytest.approx(expected, abs=1e-12)


# against plain cases ----------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["one channel", "two classes", "three classes", "ignored"])
def test_every_metric_is_that_of_the_voxels(layout: str) -> None:
    """Each image has the value that its voxels have as plain cases, for every metric."""
    classes = 3 if layout in ("three classes", "ignored") else 2
    ignored = 7 if layout == "ignored" else None
    cases, flat = [], []
    for seed, raters in enumerate((2, 4)):
        probs, masks = images(classes, raters, seed=seed)
        if ignored is not None:
            masks[np.random.default_rng(seed).random(masks.shape) < 0.2] = ignored
        image = probs[..., 1] if layout == "one channel" else channels(probs)
        if layout == "three classes":  # as NIfTI files lie in memory
            image = np.asfortranarray(probs).transpose(3, 0, 1, 2)
        cases.append(Case(image, masks))
        flat.append(as_cases(probs, masks, -1 if ignored is None else ignored))
    found = rw.segmentation.evaluate(
        cases, METRICS, resamples=0, ignore_label=ignored, on_single="drop"
    )
    for name in METRICS:
        expected = [value_of(name, probs, labels) for probs, labels in flat]
        bound = (found[name].bound or 0) * 2 + 1e-12
        np.testing.assert_allclose(found.per_case[name], expected, rtol=0, atol=bound)


@pytest.mark.parametrize("classes", [2, 3])
def test_pooled_is_all_voxels_together(classes: int) -> None:
    """Pooled images are the cases of all voxels, with intervals over the same patients."""
    parts = [images(classes, 3, seed=seed) for seed in range(6)]
    patients = [0, 0, 1, 2, 2, 3]
    cases = [
        Case(channels(probs), masks, patient=who)
        for (probs, masks), who in zip(parts, patients, strict=True)
    ]
    found = rw.segmentation.evaluate(cases, METRICS, "pooled", resamples=50)
    probs = np.concatenate([as_cases(*part)[0] for part in parts])
    counts = np.concatenate([as_cases(*part)[1].counts for part in parts])
    groups = np.repeat(patients, 7 * 6 * 5)
    plain = rw.evaluate(probs, rw.Labels.from_counts(counts), METRICS, groups=groups, resamples=50)
    for name in METRICS:
        mine, exact = found[name], plain[name]
        assert mine.value == pytest.approx(exact.value, abs=(mine.bound or 0) + 1e-12)
        if CATALOG[name].of_cells is None:  # whose resamples are made of coarser cells
            ends = (exact.low, exact.high)
            # What one more error would cost is read off cells, too; and the test at zero draws the
            # labels of all classes case by case where there are single cases.
            drawn = CATALOG[name].error and "by_class" in CATALOG[name].tags
            near = 1e-3 if drawn or CATALOG[name].step_plan is not None else 1e-9
            row = CATALOG[name]
            if (
                "loss" in row.shape and row.step
            ):  # the voxels of an image are no copies of each other
                assert mine.value < mine.high < exact.high + near
                ends = (exact.low, mine.high)
            assert (mine.low, mine.high) == pytest.approx(ends, abs=near)
    assert found.data["patients"] == 4


@pytest.mark.parametrize("raters", [1, 2, 3])
def test_two_ways_to_the_same_sums(raters: int) -> None:
    """The loops over two classes give the sums that label histograms give.

    What a rater said outside the region is not looked at.
    """
    probs, masks = images(2, raters, (40, 30, 10))
    image = probs[..., 1].astype(np.float32)
    image[:5] = 0.0
    image[5:8] = 1.0
    image[8:10] = 0.5
    region = np.random.default_rng(0).random(image.shape) < 0.7
    masks[0][~region] = 9
    every = [*Request.of(METRICS).plans(bounded=True, steps=False), CONFIDENCE]
    plans = [plan for plan in every if plan.takes_votes()]
    assert len(plans) >= 12 and "ranked" in {p.question.name for p in set(every) - set(plans)}
    voxels = Voxels.of(Case(image, masks, region=region), None, Selection())
    assert has_binary_digest(voxels, plans)
    direct = binary_digest(voxels, plans)
    general = merged_in_order(digest_of(part, plans) for part in voxels.parts())
    # Of voxels, neither ties nor single labels are told.
    plain = replace(general.facts, confidences=Confidences(), fingerprint=Fingerprint())
    assert direct.facts == plain
    for plan in plans:
        for name in ("sums", "fine", "lowest", "highest", "per_unit"):
            if hasattr(direct.summaries[plan], name):
                mine, other = (getattr(d.summaries[plan], name) for d in (direct, general))
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)


def test_cells_of_a_large_image_keep_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an image is too large to sort, cells are within their bound of the sorted scores."""
    probs, masks = images(2, 3, (40, 25, 10))
    case = Case(probs[..., 1], masks)
    names = "adaptive_ece,ece_sweep,ks_error,smooth_ece,auccc,aurc,augrc,kde_ece"
    flat, labels = as_cases(probs, masks)
    monkeypatch.setattr(requests, "EXACT_VOXELS", 0)
    found = rw.segmentation.evaluate([case], names, resamples=0)
    for name in names.split(","):
        if name == "kde_ece":
            exact = rw.kde_ece(flat, labels, method="exact")
        else:
            exact = value_of(name, flat, labels)
        assert found[name].bound is not None
        assert abs(found[name].value - exact) <= found[name].bound + 1e-12
    assert found["kde_ece"].bound < 1e-3 and found["auccc"].bound < 1e-3
    twice = rw.segmentation.evaluate([case, case], names, resamples=0)
    bounds = {name: found[name].bound for name in found}
    assert {name: twice[name].bound for name in twice} == pytest.approx(bounds)


def test_slabs_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that is looked at in slabs, some of them outside the region, has the same values."""
    probs, masks = images(3, 3)
    masks[0, 1] = 9
    region = np.random.default_rng(0).random(probs.shape[:-1]) < 0.5
    region[2:4] = False
    case = Case(channels(probs), masks, region=region)
    whole = rw.segmentation.evaluate([case], METRICS, resamples=0, ignore_label=9)
    monkeypatch.setattr("raterwise.segmentation.cases.SLAB_VOXELS", 17)
    slabs = rw.segmentation.evaluate([case], METRICS, resamples=0, ignore_label=9)
    for name in METRICS:
        assert slabs[name].value == pytest.approx(whole[name].value, abs=1e-12)
    assert slabs.data == whole.data


def test_all_of_two_classes_has_the_clinical_metrics() -> None:
    """One rater: scikit-learn's AUROC of each image, and of all voxels; three classes have none."""
    from sklearn.metrics import roc_auc_score

    parts = [images(2, 1, seed=seed) for seed in range(3)]
    cases = [Case(probs[..., 1], masks) for probs, masks in parts]
    each = [roc_auc_score(masks[0].ravel(), probs[..., 1].ravel()) for probs, masks in parts]
    found = rw.segmentation.evaluate(cases, "all", resamples=0)
    assert found["auroc"].value == pytest.approx(np.mean(each), abs=1e-12)
    assert {"ici", "calibration_slope", "observed_expected_ratio"} <= set(found)
    said = np.concatenate([masks[0].ravel() for _, masks in parts])
    scores = np.concatenate([probs[..., 1].ravel() for probs, _ in parts])
    pooled = rw.segmentation.evaluate(cases, "all", "pooled", resamples=0)["auroc"]
    assert pooled.value == pytest.approx(
        roc_auc_score(said, scores), abs=(pooled.bound or 0) + 1e-12
    )
    assert "auroc" not in rw.segmentation.evaluate(iter(cases), "all", resamples=0)
    assert "auroc" in rw.segmentation.evaluate(iter(cases), "all", num_classes=2, resamples=0)
    three, masks = images(3, 2)
    assert "auroc" not in rw.segmentation.evaluate([Case(channels(three), masks)], resamples=0)


def test_classes_add_up() -> None:
    """The calibration loss of the classes adds up to that of all, and each has its own."""
    probs, masks = images(3, 3)
    found = rw.segmentation.evaluate([Case(channels(probs), masks)], "all", resamples=0)
    flat, labels = as_cases(probs, masks)
    assert sum(found.per_class["calibration_loss"]) == pytest.approx(
        rw.calibration_loss(flat, labels)
    )
    for k in range(3):
        binary = rw.Labels.from_counts(
            np.stack((labels.counts.sum(axis=1) - labels.counts[:, k], labels.counts[:, k]), 1)
        )
        alone = rw.ece(flat[:, k], binary, question="positive")
        assert found.per_class["classwise_ece"][k] == pytest.approx(alone)


def test_a_belief_is_judged_by_its_disagreement() -> None:
    """A concentration per voxel changes what disagreement is predicted, as a Dirichlet belief."""
    probs, masks = images(3, 3)
    alpha = np.random.default_rng(0).uniform(0.5, 8, probs.shape[:-1])
    case = Case(channels(probs), masks, concentration=alpha)
    found = rw.segmentation.evaluate([case], "disagreement_loss", resamples=0)
    flat, labels = as_cases(probs, masks)
    belief = rw.DirichletBelief(flat, alpha.ravel())
    expected = rw.disagreement_loss(belief.disagreement(), labels)
    assert found["disagreement_loss"].value == pytest.approx(expected)


# which voxels ------------------------------------------------------------------------------


def test_a_region_leaves_the_other_voxels_out() -> None:
    """A region mask is a choice of cases; bad values outside it are nobody's business."""
    probs, masks = images(3, 2)
    region = np.zeros(probs.shape[:-1], bool)
    region[2:5, :4] = True
    flat, labels = as_cases(probs, masks)
    image = channels(probs).copy()
    image[:, ~region] = np.nan
    found = rw.segmentation.evaluate([Case(image, masks, region=region)], "ece", resamples=0)
    kept = np.flatnonzero(region.ravel())
    assert found["ece"].value == pytest.approx(rw.ece(flat[kept], labels.take(kept)))
    assert found.data["voxels"] == 12 * 5


def test_the_band_is_what_a_loop_over_distances_finds() -> None:
    """Voxels within the distance of any rater's boundary, by all pairs of voxels."""
    random = np.random.default_rng(3)
    masks = (random.random((2, 6, 7, 5)) < 0.06).astype(int)
    spacing, distance = (1.0, 0.5, 2.0), 1.6
    boundary = []
    for mask in masks:
        for at in np.ndindex(mask.shape):
            for axis in range(3):
                for step in (-1, 1):
                    near = list(at)
                    near[axis] += step
                    inside = 0 <= near[axis] < mask.shape[axis]
                    if inside and mask[tuple(near)] != mask[at]:
                        boundary.append(at)
    points = np.array(boundary) * spacing
    expected = np.zeros(masks.shape[1:], bool)
    for at in np.ndindex(expected.shape):
        expected[at] = np.linalg.norm(points - np.multiply(at, spacing), axis=1).min() <= distance
    found = boundary_band(list(masks), distance, spacing)
    assert 0 < expected.sum() < expected.size
    np.testing.assert_array_equal(found, expected)


def test_boundary_and_foreground_are_regions() -> None:
    """Looking near boundaries, or at foreground, is the same as giving that region."""
    random = np.random.default_rng(0)
    image = random.random((12, 12))
    masks = np.zeros((2, 12, 12), int)
    masks[0, 3:6, 3:6] = masks[1, 4:7, 4:7] = 1
    spacing = (1.0, 2.0)

    def ece(**options: Any) -> float | None:
        region = options.pop("region", None)
        case = Case(image, masks, region=region, spacing=spacing)
        return rw.segmentation.evaluate([case], "ece", resamples=0, **options)["ece"].value

    band = boundary_band(list(masks), 2.0, spacing)
    marked = (image > 0.5) | masks.any(axis=0)
    assert ece(boundary_mm=2.0) == ece(region=band)
    assert ece(foreground_only=True) == ece(region=marked)
    assert ece(foreground_only=True, boundary_mm=2.0) == ece(region=marked & band)


def test_voxels_that_nobody_rated_are_counted() -> None:
    """A voxel whose every label is ignored is left out and counted."""
    masks = np.array([[0, 1, 9, 1], [0, 9, 9, 1]])
    case = Case(np.array([0.1, 0.9, 0.5, 0.8]), masks)
    found = rw.segmentation.evaluate([case], "accuracy", ignore_label=9, resamples=0)
    assert found["accuracy"].value == 1.0
    assert found.data["dropped"] == {"voxels that nobody rated": 1}
    assert found.data["ratings"] == 5


# what an image may look like -----------------------------------------------------------------


def test_one_hot_masks_are_label_maps() -> None:
    """One-hot masks (R, K, *spatial) say what label maps say, whether told or found out."""
    probs, masks = images(3, 2)
    one_hot = np.stack([masks == k for k in range(3)], axis=1)
    image = channels(probs)
    plain = rw.segmentation.evaluate([Case(image, masks)], "ece,brier", resamples=0)
    for layout in ("auto", "one_hot"):
        case = Case(image, one_hot, layout=layout)
        found = rw.segmentation.evaluate([case], "ece,brier", resamples=0)
        assert [e.value for e in found.values()] == [e.value for e in plain.values()]


def test_a_short_first_axis_is_no_class() -> None:
    """One channel of two slices stays one channel: its slices do not sum to 1."""
    probs, masks = images(2, 3, (2, 6, 5))
    found = rw.segmentation.evaluate([Case(probs[..., 1], masks)], "ece", resamples=0)
    assert found["ece"].value == pytest.approx(rw.ece(*as_cases(probs, masks)))


def test_images_are_read_once_and_let_go() -> None:
    """Cases may come from a generator; no image but the present one is kept."""
    alive: list[weakref.ref[Array]] = []

    def cases() -> Iterator[Case]:
        for seed in range(4):
            assert sum(ref() is not None for ref in alive) <= 1
            probs, masks = images(2, 2, seed=seed)
            image = np.ascontiguousarray(probs[..., 1])
            alive.append(weakref.ref(image))
            yield Case(image, masks)
            del image

    for reduction in ("per_case", "pooled"):
        found = rw.segmentation.evaluate(cases(), "ece,auccc", reduction, resamples=0)
        assert found.data["cases"] == 4


def test_total_variation_is_that_of_the_voxels() -> None:
    """Each image is a test set: its total variation is that of its voxels as plain cases."""
    parts = [images(2, 3, (8, 8), seed=seed) for seed in range(2)]
    cases = [Case(channels(probs), masks) for probs, masks in parts]
    for metric in ("ece", "auccc"):
        each = [
            rw.stability.total_variation(metric, *as_cases(*part), repeats=4, seed=3).mean
            for part in parts
        ]
        found = rw.segmentation.total_variation(cases, metric, repeats=4, seed=3)
        assert found.per_case == pytest.approx(each)
        assert found.mean == pytest.approx(np.mean(each))
        assert found.std == pytest.approx(abs(each[0] - each[1]) / np.sqrt(2))  # of two, n - 1


def test_maps_of_disagreement() -> None:
    """A map is the disagreement of a belief about every voxel (LH eqs 17, 19, 71)."""
    probs, _ = images(3, 1)
    flat = probs.reshape(-1, 3)
    point = rw.PointBelief(flat).disagreement().reshape(probs.shape[:-1])
    np.testing.assert_allclose(disagreement_map(channels(probs)), point, atol=1e-6)
    alpha = np.random.default_rng(0).uniform(0.5, 5, probs.shape[:-1])
    dirichlet = rw.DirichletBelief(flat, alpha.ravel()).disagreement().reshape(alpha.shape)
    np.testing.assert_allclose(disagreement_map(channels(probs), alpha), dirichlet, atol=1e-6)
    other, _ = images(3, 1, seed=1)
    members = rw.EnsembleBelief(np.stack((flat, other.reshape(-1, 3))))
    both = disagreement_map([channels(probs), channels(other)])
    np.testing.assert_allclose(both.ravel(), members.disagreement(), atol=1e-6)


def test_results_are_written_with_every_image(tmp_path: Any) -> None:
    """The JSON has the mean, the deviation, and the value of each image by its name."""
    probs, masks = images(2, 2)
    cases = [Case(probs[..., 1], masks, name=f"c{i}") for i in range(2)]
    rw.segmentation.evaluate(cases, "ece", resamples=0).to_json(tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["per_case"]["cases"] == ["c0", "c1"]
    value = content["metrics"]["ece"]["value"]
    assert content["per_case"]["values"]["ece"] == pytest.approx([value, value])
    assert content["metrics"]["ece"]["std"] == pytest.approx(0)


@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
def test_results_are_read_back_and_reported(tmp_path: Any, reduction: str) -> None:
    """Results of images pass through JSON with nothing lost, and a report speaks of images."""
    cases = []
    for i in range(4):
        probs, masks = images(2, 1 if i == 3 else 3, seed=i)
        cases.append(Case(probs[..., 1], masks, name=f"<b>{i}"))
    found = rw.segmentation.evaluate(
        cases, "all", reduction, resamples=20, class_names=["-", "+"], on_single="drop"
    )
    found.to_json(tmp_path / "r.json")
    back = rw.Results.from_json(tmp_path / "r.json")
    assert back.to_dict() == found.to_dict()
    assert back.case_names == found.case_names and back["ece"] == found["ece"]
    for name, each in found.per_case.items():
        np.testing.assert_array_equal(back.per_case[name], each)
    assert back.per_class["classwise_ece"] == found.per_class["classwise_ece"]
    back.to_html(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "4 images, 840 voxels, 2.5 raters per voxel" in page
    assert "Does it know when raters will differ?" in page and "of the voxels" in page
    assert ("over 4 images" in page) == (reduction == "per_case")


def test_curves_are_those_of_all_voxels() -> None:
    """A reliability curve counts every voxel once, whichever way images become one number."""
    parts = [images(3, 2, seed=seed) for seed in range(3)]
    probs = np.concatenate([as_cases(*part)[0] for part in parts])
    counts = np.concatenate([as_cases(*part)[1].counts for part in parts])
    plain = rw.evaluate(probs, rw.Labels.from_counts(counts), "all", resamples=0).curves
    cases = [Case(channels(image), masks) for image, masks in parts]
    for reduction in ("per_case", "pooled"):
        curves = rw.segmentation.evaluate(cases, "all", reduction, resamples=0).curves
        pairs = [(curves[name], plain[name]) for name in ("top_label", "disagreement")]
        pairs += zip(curves["per_class"], plain["per_class"], strict=True)
        for mine, other in pairs:
            assert mine["cases"] == other["cases"] and mine["name"] == other["name"]
            for column in ("predicted", "observed"):
                theirs = [v for v in other[column] if v is not None]
                assert [v for v in mine[column] if v is not None] == pytest.approx(theirs)
    positive = rw.segmentation.evaluate(
        [Case(channels(image)[:2] / channels(image)[:2].sum(axis=0), masks % 2)
         for image, masks in parts], "ece,auccc", "pooled", question="positive", resamples=0
    )  # fmt: skip
    assert positive.curves["top_label"]["name"] == "positive"
    assert "thresholds" not in positive.curves  # which are about right and wrong predictions


# what is refused ---------------------------------------------------------------------------


def test_one_rater_leaves_disagreement_undefined() -> None:
    """Metrics of pairs of raters say why they have no value; the others go on."""
    probs, masks = images(2, 1)
    found = rw.segmentation.evaluate(
        [Case(probs[..., 1], masks)], "ece,disagreement_loss", resamples=0
    )
    assert found["ece"].value is not None
    assert "at least 2 labels" in str(found["disagreement_loss"].undefined)
    several = Case(probs[..., 1], images(2, 3)[1])
    found = rw.segmentation.evaluate(
        [Case(probs[..., 1], masks), several], "ece,disagreement_loss", resamples=0
    )
    assert found["disagreement_loss"].defined == 1 and found["ece"].defined == 2
    assert [w for w in found.warnings if "1 of 2 images: Disagreement loss" in w]


@pytest.mark.parametrize(
    ("case", "options", "message"),
    [
        ((np.ones((3, 4)), np.zeros((2, 5, 4), int)), {}, r"case 0: probabilities and masks"),
        ((np.full((4, 4), 0.5), np.full((2, 4, 4), 2)), {}, r"rater 0, voxel \(0, 0\).*got 2"),
        ((np.full((2, 4), 2.0), np.zeros((1, 2, 4), int)), {}, r"voxel \(0, 0\) holds 2"),
        ((np.full((2, 4), np.nan), np.zeros((1, 2, 4), int)), {}, r"case 0: .* 8 values are NaN"),
        ((np.full((3, 4, 4), 0.4), np.zeros((1, 4, 4), int)), {}, r"case 0: .*sum to 1"),
        ((np.full(4, 0.5), []), {}, "at least one rater"),
        ((np.full(4, 0.5), np.zeros((1, 4), int)), {"boundary_mm": 1.0}, "spacing: must be given"),
        ((np.full(4, 0.5), np.zeros((1, 4), int)), {"boundary_mm": -1.0}, "boundary_mm: must be"),
        ((np.full(4, 0.5), np.zeros((1, 4), int)), {"num_classes": 3}, "num_classes: must be"),
        ((np.full(4, 0.5), np.zeros((1, 4), int)), {"reduction": "mean"}, "reduction: must be"),
        (
            (np.full(4, 0.5), np.zeros((1, 4), int)),
            {"question": "per_pixel"},
            "question: none of",
        ),
        ((np.full(4, 0.1), np.zeros((1, 4), int), np.zeros(4)), {}, "none is left"),
        ((np.full(4, 0.1), np.zeros((1, 4), int), np.zeros(5)), {}, "region: must have the shape"),
    ],
)
def test_bad_images_are_refused(case: tuple[Any, ...], options: Any, message: str) -> None:
    """What cannot be used is an error that names the case, the rule and the value."""
    with pytest.raises(rw.InvalidInputError, match=message):
        rw.segmentation.evaluate([Case(*case)], "ece", resamples=0, **options)


def test_images_must_have_the_same_classes() -> None:
    """An image with other classes than those before it is an error that names it."""
    cases = []
    for classes in (2, 3):
        probs, masks = images(classes, 2)
        cases.append(Case(channels(probs), masks, name=f"image{classes}"))
    with pytest.raises(rw.InvalidInputError, match=r"image3: has 3 classes; .*have 2"):
        rw.segmentation.evaluate(cases, "ece", resamples=0)
    with pytest.raises(rw.InvalidInputError, match="at least one image"):
        rw.segmentation.evaluate([], "ece")
    with pytest.raises(rw.InvalidInputError, match="must be of Case"):
        rw.segmentation.evaluate([np.zeros(3)], "ece")  # type: ignore[list-item]
    with pytest.raises(rw.InvalidInputError, match=r"case 0: must be a Case; got a ndarray"):
        rw.segmentation.evaluate([lambda: np.zeros(3)], "ece")  # type: ignore[list-item,return-value]
    with pytest.raises(rw.InvalidInputError, match="checkpoint: must go with a list of files"):
        rw.segmentation.evaluate(cases[:1], "ece", checkpoint="kept")


# unrated voxels, layouts and maps at their edges ----------------------------------------------


def test_slabs_that_nobody_rated_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of unrated voxels does not depend on how the image is cut; all is an error."""
    probs, masks = images(2, 3)
    masks = masks.copy()
    masks[:, :3] = 9
    case = Case(np.ascontiguousarray(probs[..., 1]), masks)
    monkeypatch.setattr("raterwise.segmentation.cases.SLAB_VOXELS", 7)
    found = rw.segmentation.evaluate([case], "ece", ignore_label=9, resamples=0)
    assert found.data["dropped"] == {"voxels that nobody rated": int((masks[0] == 9).sum())}
    assert found.data["voxels"] == int((masks[0] != 9).sum())
    nobody = Case(case.probabilities, np.full_like(masks, 9))
    with pytest.raises(rw.InvalidInputError, match=r"case 0: masks: a voxel .* must be rated"):
        rw.segmentation.evaluate([nobody], "ece", ignore_label=9, resamples=0)


def test_one_hot_masks_with_gaps_are_not_guessed() -> None:
    """Voxels of no class, or two, must not turn the classes into slices of one channel."""
    probs, masks = images(2, 2)
    one_hot = np.stack([masks == k for k in range(2)], axis=1)
    image = channels(probs)
    for marks in (0, 1):
        gap = one_hot.copy()
        gap[0, :, 0, 0] = marks
        with pytest.raises(rw.InvalidInputError, match="case 0: layout: must be given; the masks"):
            rw.segmentation.evaluate([Case(image, gap)], "ece", resamples=0)
    gap[0, :, 0, 0] = 0
    told = rw.segmentation.evaluate([Case(image, gap, layout="one_hot")], "ece", resamples=0)
    labels = masks.copy()
    labels[0, 0, 0] = 9
    plain = rw.segmentation.evaluate([Case(image, labels)], "ece", ignore_label=9, resamples=0)
    assert told["ece"].value == plain["ece"].value
    assert told.data["ratings"] == plain.data["ratings"] == masks.size - gap[0, 0, 0, 0].size


@pytest.mark.parametrize("selection", [{}, {"boundary_mm": 1.0}, {"foreground_only": True}])
def test_an_ignored_class_is_ignored_in_every_layout(selection: Any) -> None:
    """One-hot masks leave out a class as label maps do, also where boundaries are sought."""
    probs, masks = images(3, 2)
    image, spacing = channels(probs), (1.0,) * (masks.ndim - 1)
    one_hot = np.stack([masks == k for k in range(3)], axis=1)
    plain, told = (
        rw.segmentation.evaluate(
            [Case(image, each, spacing=spacing)], "ece", ignore_label=2, resamples=0, **selection
        )
        for each in (masks, one_hot)
    )
    assert told["ece"].value == plain["ece"].value
    assert told.data == plain.data


def test_an_image_without_a_boundary_says_so() -> None:
    """Where no rater drew anything there is no band, and no region is to blame."""
    case = Case(np.full((4, 4), 0.3), np.zeros((2, 4, 4), int), spacing=(1, 1))
    with pytest.raises(rw.InvalidInputError, match="case 0: boundary_mm: a rater must draw"):
        rw.segmentation.evaluate([case], "ece", boundary_mm=1.0, resamples=0)


def test_maps_want_probabilities() -> None:
    """Classes that do not sum to 1, or are negative, have no disagreement."""
    for bad in ([0.2, 0.2], [-0.1, 1.1], [np.nan, 0.5]):
        with pytest.raises(rw.InvalidInputError, match="sum to 1"):
            disagreement_map(np.array(bad)[:, None])
    looked_at = np.array([True, False])
    found = disagreement_map(np.array([[0.5, np.nan], [0.5, 7.0]]), region=looked_at)
    assert found.tolist() == [0.5, 0.0]


def test_curves_of_images_have_the_names_of_the_classes() -> None:
    """Names that were given are those of the reliability curves, however images are reduced."""
    random = np.random.default_rng(0)
    cases = [Case(random.random((8, 8)), [random.random((8, 8)) < 0.5]) for _ in range(3)]
    for reduction in ("per_case", "pooled"):
        found = rw.segmentation.evaluate(
            cases, "classwise_ece", reduction, resamples=0, class_names=["tissue", "lesion"]
        )
        assert [curve["name"] for curve in found.curves["per_class"]] == ["tissue", "lesion"]


def test_a_mean_over_images_of_which_one_is_infinite() -> None:
    """-log 0 = infinity in the second image, so the mean is; the first has log 2."""
    half, wrong = np.full((2, 1, 2), 0.5), np.array([[[1.0, 0.5]], [[0.0, 0.5]]])
    cases = [Case(probs, np.ones((2, 1, 2), dtype=int)) for probs in (half, wrong, half)]
    results = rw.segmentation.evaluate(cases, ["nll", "brier"], resamples=20)
    assert results["nll"].value is None and results["nll"].low is None
    assert (results["nll"].undefined or "").endswith("(in 1 of 3 images)")
    assert results["nll"].defined == 2 and results["brier"].value is not None
    finite = rw.segmentation.evaluate([cases[0], cases[2]], ["nll"], resamples=0)
    assert finite["nll"].value == pytest.approx(np.log(2))
    sure = Case(np.array([[[1.0, 1.0]], [[0.0, 0.0]]]), np.ones((2, 1, 2), dtype=int))
    with pytest.raises(rw.UndefinedMetricError, match=r"nll: .* \(in 1 of 3 images\)"):
        rw.segmentation.total_variation([cases[0], sure, cases[2]], "nll", repeats=2)


# Images of one voxel are cases -----------------------------------------------------------------


def one_voxel_images(p: Any, y: Any, reduction: Any, metrics: str) -> rw.Results:
    """Evaluate cases as images of one voxel each, with one rater."""
    cases = [Case([[a]], [[[b]]]) for a, b in zip(p, y, strict=True)]
    return rw.segmentation.evaluate(cases, metrics, reduction, num_classes=2)


@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_images_of_one_voxel_have_the_intervals_of_cases(reduction: Any, wrong: int) -> None:
    """A sure model with few errors, of which images say what the same cases say in memory."""
    p = 1 - np.geomspace(1e-4, 0.3, 12)
    y = np.r_[np.zeros(wrong, int), np.ones(12 - wrong, int)][::-1]
    metrics = "accuracy,brier,nll"
    found, cases = one_voxel_images(p, y, reduction, metrics), rw.evaluate(p, y, metrics)
    for name, e in cases.items():
        mine = found[name]
        assert (mine.value, mine.low, mine.high) == pytest.approx((e.value, e.low, e.high))


@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
def test_the_error_that_no_voxel_showed_has_the_spread_of_their_mean(reduction: Any) -> None:
    """12 images of 400 voxels, p = 0.9 and right everywhere: the Brier score is 0.01.

    By p it would be 0.09 with the variance 0.9 · 0.1 · 0.8² = 0.0576, that is 0.64 for an error. In
    the mean of 12 · 400 voxels that is as if 0.01² / (0.0576 / 4800) = 8.33 events had been seen,
    of which one more counts for 2 / 8.33 in one of the images.
    """
    cases = [Case(np.full((20, 20), 0.9), [np.ones((20, 20), int)]) for _ in range(12)]
    found = rw.segmentation.evaluate(cases, "brier", reduction, num_classes=2)["brier"]
    one = 2 / (0.01**2 / (0.0576 / 4800)) * 0.64 / 12
    mean = 0.01 + one
    assert found.value == pytest.approx(0.01)
    assert found.high == pytest.approx(gamma.ppf(0.975, (mean / one) ** 2, scale=one**2 / mean))


@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
def test_errors_of_voxels_are_not_taken_for_one_of_their_image(reduction: Any) -> None:
    """Six calibrated images of 1,600 voxels: the Brier score is not far from Student's interval.

    The upper end allowed for an image in which everything is wrong, though each has seen a hundred
    errors: it was five times as far off.
    """
    random = np.random.default_rng(92_001)
    probs = 1 / (1 + np.exp(4 - 4 * random.normal(size=(6, 40, 40))))
    masks = (random.random(probs.shape) < probs).astype(int)
    cases = [Case(p, [mask]) for p, mask in zip(probs, masks, strict=True)]
    found = rw.segmentation.evaluate(cases, "brier", reduction)["brier"]
    each = ((probs - masks) ** 2).mean(axis=(1, 2))
    half = t.ppf(0.975, 5) * each.std(ddof=1) / np.sqrt(6)
    assert found.value == pytest.approx(each.mean())
    assert each.mean() + 0.8 * half < found.high < each.mean() + 2 * half


@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
def test_images_without_an_error_allow_for_one(reduction: Any) -> None:
    """The accuracy of 12 images of 12 has Clopper and Pearson's lower end, 0.025^(1/12).

    The log loss of 12 equal cases, p = 0.99, allows for one of -log 0.01 that was not seen. They do
    not vary, so that θ' = -log 0.99 - log 0.01 / 12, V' = (log 0.01 / 12)², and the end is the
    97.5% quantile of the gamma distribution with that mean and variance.
    """
    found = one_voxel_images([0.99] * 12, [1] * 12, reduction, "accuracy,nll")
    assert (found["accuracy"].low, found["accuracy"].high) == pytest.approx((0.025 ** (1 / 12), 1))
    one = -np.log(0.01) / 12
    mean = one - np.log(0.99)
    end = gamma.ppf(0.975, mean**2 / one**2, scale=one**2 / mean)
    assert found["nll"].high == pytest.approx(end, rel=1e-6)


def test_one_error_is_one_voxel_of_an_image() -> None:
    """In images of 4 voxels it adds a quarter to one log loss: -log 0.01 / 48 to the mean of 12."""
    cases = [Case(np.full((2, 2), 0.99), np.ones((1, 2, 2), int)) for _ in range(12)]
    for reduction in ("per_case", "pooled"):
        found = rw.segmentation.evaluate(cases, "nll", reduction, num_classes=2)["nll"]
        one, mean = -np.log(0.01) / 48, -np.log(0.99) - np.log(0.01) / 48
        end = gamma.ppf(0.975, mean**2 / one**2, scale=one**2 / mean)
        assert found.high == pytest.approx(end, rel=1e-6)


@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
def test_large_images_beside_small_ones(reduction: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What large ones do not keep is no hindrance, raters resampled too: the loss has its mean."""
    monkeypatch.setattr(requests, "STEP_VOXELS", 3)
    shapes = [(1, 1), (2, 2), (1, 3), (4, 4)]
    cases = [Case(np.full(shape, 0.9), np.ones((3, *shape), int)) for shape in shapes]
    found = rw.segmentation.evaluate(
        cases, "nll", reduction, num_classes=2, unit="both", raters=["a", "b", "c"], resamples=50
    )["nll"]
    assert found.value == pytest.approx(-np.log(0.9))
    assert found.high is not None and found.high > found.value


def test_z_of_images_of_one_voxel_has_the_variance_of_cases() -> None:
    """z = Σ (y - p)(1 - 2p) / sqrt(Σ (1 - 2p)² p (1 - p)) is normal (Spiegelhalter 1986, eq 5)."""
    p = np.array([0.9, 0.8, 0.3, 0.2, 0.7, 0.6, 0.1, 0.35, 0.85, 0.95, 0.25, 0.15])
    y = (p > 0.5).astype(int)
    z = ((y - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    found = one_voxel_images(p, y, "pooled", "spiegelhalter_z")["spiegelhalter_z"]
    assert found.value == pytest.approx(z) and found.p_value == pytest.approx(2 * norm.sf(abs(z)))


def test_few_voxels_are_said_to_be_few() -> None:
    """In all images where they are pooled, in each where it has a value of its own."""
    p, y = np.linspace(0.1, 0.9, 12), np.arange(12) % 2
    pooled = one_voxel_images(p, y, "pooled", "ece").warnings
    assert pooled[0] == rw.evaluate(p, y, "ece").warnings[0]
    assert pooled[0].startswith("only 12 cases for 15 bins, 0.8 per bin: ")
    each = one_voxel_images(p, y, "per_case", "ece").warnings
    assert each[0].startswith("only 1 voxel per image for 15 bins, 0.1 per bin: ")
    cases = [Case(np.full((5, n), 0.4), np.ones((1, 5, n), int)) for n in (1, 4)]
    said = rw.segmentation.evaluate(cases, "ece", num_classes=2).warnings
    assert said[0].startswith("only 12.5 voxels per image for 15 bins, 0.8 per bin: ")
    said = rw.segmentation.evaluate(cases, "ece", "pooled", num_classes=2).warnings
    assert said[0].startswith("only 25 voxels for 15 bins, 1.7 per bin: ")


@pytest.mark.parametrize(
    ("changed", "argument", "message"),
    [
        ({"masks": None}, "masks", "case 0: masks: must be one for each rater; got None"),
        ({"masks": np.full((2, 2, 2), 7)}, "masks", "labels must be classes 0 … 1; got 7"),
        ({"probabilities": np.full((2, 2, 2), 0.7)}, "probabilities", "rows must sum to 1"),
        ({"probabilities": np.full((2, 3, 2), 0.5)}, "probabilities", "got shapes"),
        ({"region": np.zeros((2, 2), bool)}, "region", "must hold at least one voxel"),
    ],
)
def test_errors_of_images_name_the_argument(
    changed: dict[str, Any], argument: str, message: str
) -> None:
    """The message begins with the case; `error.argument` is the part of it."""
    given = {"probabilities": np.full((2, 2, 2), 0.5), "masks": np.zeros((2, 2, 2), int)}
    with pytest.raises(rw.InvalidInputError, match=message) as caught:
        rw.segmentation.evaluate([rw.segmentation.Case(**{**given, **changed})], "ece", resamples=0)
    assert caught.value.argument == argument


def test_metrics_of_images_are_names() -> None:
    """In the words of `evaluate`, and a generator is read once."""
    case = rw.segmentation.Case(np.full((2, 2, 2), 0.5), np.zeros((2, 2, 2), int))
    with pytest.raises(rw.InvalidTypeError, match="metrics: must be names of metrics; got None"):
        rw.segmentation.evaluate([case], None)
    names = (name for name in ("ece", "brier"))
    assert list(rw.segmentation.evaluate([case], names, resamples=0)) == ["ece", "brier"]

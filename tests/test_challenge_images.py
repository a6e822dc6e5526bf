"""Images as challenges publish them: 8 bits, odd headers, unknown patients, bad voxels."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app
from raterwise.io.manifests import CaseFiles
from raterwise.io.volumes import read_images
from raterwise.segmentation import Case, bands, boundary_band, disagreement_map

Array = NDArray[Any]
AFFINE = np.diag([1.0, 2.0, 3.0, 1.0])
SHAPE = (6, 5, 4)


def four_classes() -> tuple[Array, Array]:
    """Return probabilities (4, *SHAPE) and the label map of a rater."""
    random = np.random.default_rng(0)
    probs = np.moveaxis(random.dirichlet(np.ones(4), SHAPE), -1, 0).astype(np.float32)
    return probs, random.integers(0, 4, SHAPE)


# probabilities of few bits ------------------------------------------------------------------------


def test_classes_of_eight_bits_need_not_sum_to_one(tmp_path: Path) -> None:
    """Four classes in steps of 1/255 miss 1 by up to two steps: as NPY, and NIfTI with a slope.

    The slope may be negative.
    """
    probs, mask = four_classes()
    probs[:, 0, 0, 0] = 0.5, 0.5, 0, 0  # 127.5 and 127.5, which both become 128
    stored = np.rint(probs * 255).astype(np.uint8)
    assert stored.sum(axis=0).max() > 255 * 1.003
    np.save(tmp_path / "p.npy", stored)
    np.save(tmp_path / "m.npy", mask.astype(np.uint8))
    for name, values, scale in (("p", stored, (1 / 255, 0)), ("n", 255 - stored, (-1 / 255, 1))):
        image = nibabel.Nifti1Image(np.moveaxis(values, 0, -1), AFFINE)
        image.header.set_slope_inter(*scale)
        nibabel.save(image, tmp_path / f"{name}.nii.gz")
    nibabel.save(nibabel.Nifti1Image(mask.astype(np.uint8), AFFINE), tmp_path / "m.nii.gz")
    flat = stored.reshape(4, -1).T / 255
    wanted = np.mean(
        [((p - np.eye(4)[k]) ** 2).sum() for p, k in zip(flat, mask.flat, strict=True)]
    )
    for name, end in (("p", ".npy"), ("p", ".nii.gz"), ("n", ".nii.gz")):
        files = CaseFiles("c1", tmp_path / f"{name}{end}", (tmp_path / f"m{end}",))
        found = rw.segmentation.evaluate([files], "brier", resamples=0)
        assert found["brier"].value == pytest.approx(wanted, abs=1e-6)
    case = Case(stored / 255, [mask], step=1 / 255)
    assert rw.segmentation.evaluate([case], "brier", resamples=0)["brier"].value == pytest.approx(
        wanted, abs=1e-12
    )


def test_eight_classes_of_eight_bits_are_one_hot(tmp_path: Path) -> None:
    """Six classes of 31.5 and two of 33 become 258 of 255: 0.012 too much, as four steps may be."""
    stored = np.array([32] * 6 + [33] * 2, np.uint8).reshape(8, 1, 1).repeat(4, 1).repeat(5, 2)
    mask = np.eye(8, dtype=np.uint8)[np.arange(20) % 8].T.reshape(8, 4, 5)
    np.save(tmp_path / "p.npy", stored)
    np.save(tmp_path / "m.npy", mask)
    images = read_images(CaseFiles("c1", tmp_path / "p.npy", (tmp_path / "m.npy",)))
    assert images.one_hot and images.step == 1 / 255


def test_a_step_excuses_rounding_and_nothing_more() -> None:
    """K/2 steps and no further; without a step the sum is 1 within 1e-4; a step is below 1."""
    probs, mask = four_classes()
    wrong = probs.astype(float)
    wrong[0, 1, 2, 3] += 2.5 / 255
    for step, told in ((0.0, "1e-4"), (1 / 255, "8e-3")):
        with pytest.raises(rw.InvalidInputError, match=rf"within {told}.*voxel \(1, 2, 3\) sums"):
            rw.segmentation.evaluate([Case(wrong, [mask], step=step)], "brier", resamples=0)
    with pytest.raises(rw.InvalidInputError, match="step: must be at least 0 and below 1; got 255"):
        rw.segmentation.evaluate([Case(probs, [mask], step=255)], "brier", resamples=0)


def test_maps_of_eight_bits(tmp_path: Path) -> None:
    """1 - Σ p² of 128/255 twice; `raterwise segment --maps` writes it."""
    stored = np.full((2, 3, 3, 3), 128, np.uint8)
    expected = 1 - 2 * (128 / 255) ** 2
    for given in (stored / 255, [stored / 255] * 2):  # an ensemble of one member twice
        assert disagreement_map(given, step=1 / 255) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(rw.InvalidInputError, match="sum to 1"):
        disagreement_map(stored / 255)
    np.save(tmp_path / "p.npy", stored)
    np.save(tmp_path / "m.npy", np.arange(27).reshape(3, 3, 3) % 2)
    (tmp_path / "cases.csv").write_text("case,probabilities,raters\nc1,p.npy,m.npy\n")
    words = ["segment", tmp_path / "cases.csv", "--metrics", "ece", "--maps", tmp_path / "maps"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    written = nibabel.load(tmp_path / "maps" / "c1_disagreement.nii.gz").get_fdata()
    assert written == pytest.approx(expected, abs=1e-6)


# what a bad voxel is called -----------------------------------------------------------------------


@pytest.mark.parametrize(("value", "rule"), [(np.nan, "NaN"), (0.9, "sum"), (-0.5, r"\[0, 1\]")])
def test_a_bad_voxel_of_several_classes_is_named(value: float, rule: str) -> None:
    """By its index in the image, beyond a region and voxels that nobody rated, in any slab."""
    probs, mask = four_classes()
    region, masks = np.ones(SHAPE, bool), [mask.copy(), mask.copy()]
    region[:2], probs[:, 0, 0, 0] = False, np.nan  # not looked at
    for one in masks:
        one[2, :3] = 9
    probs[:, 4, 1, 3] = value if value != -0.5 else (1.5, -0.5, 0, 0)
    for layout in (np.ascontiguousarray, np.asfortranarray):
        case = Case(layout(probs), [layout(one) for one in masks], region=layout(region), name="c7")
        with pytest.raises(rw.InvalidInputError, match=rf"case c7.*{rule}.*voxel \(4, 1, 3\)"):
            rw.segmentation.evaluate([case], "ece,brier", resamples=0, ignore_label=9)


def test_a_bad_voxel_of_a_later_slab_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Voxel (5, 4, 3) is the last of 120, in the last of twelve slabs."""
    from raterwise.segmentation import cases

    monkeypatch.setattr(cases, "SLAB_VOXELS", 10)
    probs, mask = four_classes()
    probs[0, 5, 4, 3] += 0.5
    with pytest.raises(rw.InvalidInputError, match=r"voxel \(5, 4, 3\) "):
        rw.segmentation.evaluate([Case(probs, [mask])], "brier", resamples=0)


# headers ------------------------------------------------------------------------------------------


def test_a_fourth_axis_of_one_is_no_axis(tmp_path: Path) -> None:
    """Masks and regions of (x, y, z, 1), as some tools write them, are those of (x, y, z)."""
    probs, mask = four_classes()
    paths = {}
    for name, array in (
        ("p", np.moveaxis(probs, 0, -1)),
        ("m", mask[..., None].astype(np.uint8)),
        ("r", (mask[..., None] < 3).astype(np.uint8)),
    ):
        paths[name] = tmp_path / f"{name}.nii.gz"
        nibabel.save(nibabel.Nifti1Image(array, AFFINE), paths[name])
    images = read_images(CaseFiles("c1", paths["p"], (paths["m"],), paths["r"]))
    np.testing.assert_array_equal(images.masks[0], mask)
    assert images.region is not None
    np.testing.assert_array_equal(images.region, mask < 3)


def test_a_file_without_a_geometry_is_named(tmp_path: Path) -> None:
    """Beside files that have one, its orientation is not made up; without any, sizes remain."""
    probs, mask = four_classes()
    for name, array, affine in (
        ("p", np.moveaxis(probs, 0, -1), AFFINE),
        ("q", np.moveaxis(probs, 0, -1), None),
        ("m", mask.astype(np.uint8), None),
    ):
        image = nibabel.Nifti1Image(array, affine)
        image.header.set_zooms((1.0, 2.0, 3.0, 1.0)[: array.ndim])
        nibabel.save(image, tmp_path / f"{name}.nii.gz")
    told = CaseFiles("c1", tmp_path / "p.nii.gz", (tmp_path / "m.nii.gz",))
    with pytest.raises(rw.InvalidInputError, match=r"m.nii.gz and .*p.nii.gz: must both say where"):
        read_images(told)
    silent = CaseFiles("c1", tmp_path / "q.nii.gz", (tmp_path / "m.nii.gz",))
    assert read_images(silent).spacing == (1.0, 2.0, 3.0)


# patients -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("patients", [("ann", None), (None, "ann"), ("ann", float("nan"))])
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
def test_every_image_names_a_patient_or_none_does(
    patients: tuple[Any, Any], once: bool, reduction: Any
) -> None:
    """An image of an unknown patient is of nobody's group: it is refused by its name."""
    probs, mask = four_classes()
    cases = [Case(probs, [mask], patient=who, name=f"of {who}") for who in patients]
    unknown = "of nan" if "nan" in str(patients) else "of None"
    with pytest.raises(rw.InvalidInputError, match=f"patient: must be given .*case {unknown} has"):
        rw.segmentation.evaluate(iter(cases) if once else cases, "ece", reduction)


def test_a_list_without_some_patients_is_refused_before_any_image_is_measured() -> None:
    """The first image could not be used at all; what is said is about the patients."""
    probs, mask = four_classes()
    cases = [Case(probs * 2, [mask], patient="ann"), Case(probs, [mask])]
    with pytest.raises(rw.InvalidInputError, match=r"patient: must be given .*case 1 has none"):
        rw.segmentation.evaluate(cases, "ece")


def test_patients_are_told_apart_by_what_they_are_called() -> None:
    """7 and "7" are one patient, as in tables: counted once and resampled together."""
    probs, mask = four_classes()
    cases = [Case(probs, [mask], patient=who) for who in (7, "7", 0, 1)]
    found = rw.segmentation.evaluate(cases, "ece", resamples=20)
    assert found.data["patients"] == found.data["resampling"]["units"] == 3


def test_unknown_patients_of_all_images_are_no_patients() -> None:
    """NaN for every image, as a table without the column has it, is the same as no patient."""
    probs, mask = four_classes()
    one = [Case(probs, [mask], patient=float("nan")) for _ in range(3)]
    found = rw.segmentation.evaluate(one, "ece", resamples=20)
    assert found.data.get("patients") is None and found.data["resampling"]["units"] == 3


def test_where_no_image_can_be_used_the_first_reason_is_given() -> None:
    """skip_bad leaves nothing: the error says how many there were and why."""
    probs, mask = four_classes()
    bad = [Case(probs * 2, [mask], name="c1"), Case(probs * 3, [mask], name="c2")]
    with pytest.raises(rw.InvalidInputError, match=r"none of 2 is \(left out: case c1: "):
        rw.segmentation.evaluate(bad, "ece", skip_bad=True)


# bands --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slab", [1, 7, 60, 1 << 20])
def test_bands_are_the_same_in_slabs(monkeypatch: pytest.MonkeyPatch, slab: int) -> None:
    """Against SciPy's distances of the whole image, for distances within and beyond a slab."""
    monkeypatch.setattr(bands, "SLAB_VOXELS", slab)
    random = np.random.default_rng(1)
    for shape, distance in (((40,), 3.0), ((23, 9), 1.4), ((17, 6, 5), 2.1), ((9, 4, 3), 100.0)):
        mask = (random.random(shape) < 0.05).astype(np.uint8)
        spacing = (0.7, 1.0, 2.5)[: len(shape)]
        edge = bands.boundary_voxels(mask)
        expected = distance_transform_edt(~edge, sampling=spacing) <= distance + 1e-9
        np.testing.assert_array_equal(boundary_band([mask], distance, spacing), expected)


def test_bands_take_little_memory() -> None:
    """Distances of a whole image took 52 bytes a voxel; now they are those of a slab."""
    mask = (np.random.default_rng(0).random((160, 160, 160)) < 0.3).astype(np.uint8)
    tracemalloc.start()
    boundary_band([mask], 2.0, (1.0, 1.0, 1.0))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 30 * mask.size

"""The order of the axes: known, told or refused, never guessed from a shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app
from raterwise.io.manifests import CaseFiles, read_manifest
from raterwise.io.volumes import read_images

Array = NDArray[Any]
CUBE, BOX = (4, 4, 4), (4, 8, 2)


def image_of(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return probabilities and a mask (x, y, z) whose calibration error is 0.

    3/4 in the near half of x, where 3 of 4 voxels along y are drawn; 1/4 in the far half, where 1
    of 4 is. Read with x and z exchanged, both halves have a frequency of 1/2: the error is 1/4.
    """
    x, y, _ = np.indices(shape)
    near = x < shape[0] // 2
    probs = np.where(near, 0.75, 0.25).astype(np.float32)
    return probs, np.where(near, y % 4 < 3, y % 4 == 3).astype(np.uint8)


def study(folder: Path, shape: tuple[int, ...], key: str | None) -> Path:
    """Write a NIfTI mask and its probabilities as an array (C, z, y, x); return the manifest."""
    probs, mask = image_of(shape)
    nibabel.save(nibabel.Nifti1Image(mask, np.diag([1.0, 2.0, 3.0, 1.0])), folder / "c1.nii.gz")
    array = np.stack((1 - probs, probs)).transpose(0, 3, 2, 1)
    name = "c1.npy" if key is None else "c1.npz"
    if key is None:
        np.save(folder / name, array)
    else:
        np.savez_compressed(folder / name, **{key: array})
    manifest = folder / "manifest.csv"
    manifest.write_text(f"case,probabilities,raters\nc1,{name},c1.nii.gz\n")
    return manifest


def ece_of(manifest: Path, *options: str) -> float:
    """Return what `raterwise segment` says of the foreground."""
    out = manifest.with_name("out.json")
    words = ["segment", str(manifest), "--metrics", "ece", "--question", "positive"]
    done = CliRunner().invoke(app, [*words, "--resamples", "0", "-q", "--out", str(out), *options])
    assert done.exit_code == 0, done.output
    return float(rw.Results.from_json(out)["ece"])


@pytest.mark.parametrize("shape", [CUBE, BOX])
@pytest.mark.parametrize("key", ["probabilities", "softmax"])
def test_the_arrays_of_nnunet_are_known(tmp_path: Path, shape: tuple[int, ...], key: str) -> None:
    """A cube and a box of (C, z, y, x) beside (x, y, z): the error is 0, without options."""
    assert ece_of(study(tmp_path, shape, key)) == pytest.approx(0, abs=1e-7)


def test_what_is_told_is_believed_first(tmp_path: Path) -> None:
    """Told the wrong order, a cube has the error of exchanged axes, and a box has no shape."""
    assert ece_of(study(tmp_path, CUBE, "probabilities"), "--axes", "xyz") == pytest.approx(0.25)
    [files] = read_manifest(study(tmp_path, BOX, "probabilities"), axes="xyz")
    with pytest.raises(rw.InvalidInputError, match=r"same image shape; got \(2, 2, 8, 4\) and"):
        read_images(files)


@pytest.mark.parametrize("shape", [CUBE, BOX])
@pytest.mark.parametrize("key", [None, "arr_0"])
def test_other_arrays_need_their_axes(
    tmp_path: Path, shape: tuple[int, ...], key: str | None
) -> None:
    """An array beside a NIfTI file is refused with the option, and read with it."""
    manifest = study(tmp_path, shape, key)
    done = CliRunner().invoke(app, ["segment", str(manifest), "--metrics", "ece"])
    assert done.exit_code == 2
    assert "--axes zyx says that the axes of arrays are z, y, x" in " ".join(done.output.split())
    assert ece_of(manifest, "--axes", "ZYX") == pytest.approx(0, abs=1e-7)
    rows = manifest.read_text().splitlines()
    manifest.write_text(f"{rows[0]},axes\n{rows[1]},zyx\n")
    assert ece_of(manifest) == pytest.approx(0, abs=1e-7)


def test_arrays_of_one_order_need_no_axes(tmp_path: Path) -> None:
    """Where no file has a geometry, arrays are taken as they are stored; or in the order told."""
    probs, mask = image_of(BOX)
    np.save(tmp_path / "p.npy", probs)
    np.save(tmp_path / "m.npy", mask)
    stored = CaseFiles("c", tmp_path / "p.npy", (tmp_path / "m.npy",))
    assert read_images(stored).probabilities.shape == BOX
    told = CaseFiles("c", stored.probabilities, stored.raters, axes="zyx")
    assert read_images(told).probabilities.shape == BOX[::-1]
    assert read_images(told).masks[0].shape == BOX[::-1]


def test_flat_images_and_regions_have_axes_too(tmp_path: Path) -> None:
    """A PNG (rows are y) beside a flat NIfTI file (the first axis is x) needs --axes yx."""
    random = np.random.default_rng(0)
    probs = random.random((5, 5)).astype(np.float32)
    region = (random.random((5, 5)) < 0.5).astype(np.uint8)
    nibabel.save(nibabel.Nifti1Image(probs, np.eye(4)), tmp_path / "p.nii")
    nibabel.save(nibabel.Nifti1Image(region, np.eye(4)), tmp_path / "m.nii")
    Image.fromarray(region.T * 255).save(tmp_path / "region.png")
    files = tmp_path / "p.nii", (tmp_path / "m.nii",), tmp_path / "region.png"
    with pytest.raises(rw.InvalidInputError, match=r"region\.png and .*p\.nii: one is an array"):
        read_images(CaseFiles("c", *files))
    found = read_images(CaseFiles("c", *files, axes="yx"))
    np.testing.assert_array_equal(found.region, region != 0)


@pytest.mark.parametrize("axes", ["zy", "zyxc", "zyy", "", "tzyx"])
def test_axes_are_letters(tmp_path: Path, axes: str) -> None:
    """Words that name no order are refused before a file is read."""
    with pytest.raises(rw.InvalidInputError, match=r"^axes: must name the axes of an image from"):
        read_manifest(tmp_path / "there is none.csv", axes=axes)


def test_an_image_must_have_the_axes_told(tmp_path: Path) -> None:
    """Three letters and a flat image do not fit."""
    np.save(tmp_path / "p.npy", np.zeros((4, 5), np.float32))
    files = CaseFiles("c", tmp_path / "p.npy", (tmp_path / "p.npy",), axes="zyx")
    with pytest.raises(rw.InvalidInputError, match=r"must have the axes z, y, x, .*shape \(4, 5\)"):
        read_images(files)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_manifest_of_another_office(tmp_path: Path, mark: str) -> None:
    """Semicolons, tabs and UTF-16 are recognised; a misspelt column gets a suggestion."""
    text = mark.join(("case", "probabilities", "raters")) + "\n"
    file = tmp_path / "m.csv"
    file.write_text(text + mark.join(("c", "p.npy", "m.npy")) + "\n\n", encoding="utf-16")
    assert [f.raters for f in read_manifest(file)] == [(tmp_path / "m.npy",)]
    file.write_text("case,probabilities,rater\nc,p.npy,m.npy\n")
    with pytest.raises(rw.InvalidInputError, match=r"there is no raters \(did you mean 'rater'"):
        read_manifest(file)
    file.write_text("case,probabilities,raters\nc,prob\\p.npy,m.npy\n")
    with pytest.raises(rw.InvalidInputError, match=r"no such file; write / for \\, which Windows"):
        read_images(read_manifest(file)[0])


@pytest.mark.parametrize("name", ["scan.nii.gz", "manifest.xlsx"])
def test_a_manifest_is_no_image_and_no_sheet(tmp_path: Path, name: str) -> None:
    """An image in the place of the manifest is told apart before its bytes are read as text."""
    (tmp_path / name).write_bytes(b"\x80\x81")
    with pytest.raises(rw.InvalidInputError, match="must be a CSV file that lists the images"):
        read_manifest(tmp_path / name)


def test_the_size_of_voxels_is_told(tmp_path: Path) -> None:
    """Right in four columns of eight: all within 2 mm of the boundary at 1.5 mm, 4 of 6 at 1 mm."""
    mask = np.repeat([[0, 1]], 4, axis=1).astype(np.uint8).repeat(3, axis=0)
    inner = (np.arange(8) > 1) & (np.arange(8) < 6)
    right = np.where(mask == 1, 0.8, 0.2)
    probs = np.where(inner, right, 1 - right).astype(np.float32)
    np.save(tmp_path / "p.npy", np.stack((1 - probs, probs)))
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", mask)
    (tmp_path / "m.csv").write_text("case,probabilities,raters\nc1,p.npy,a.npy;b.npy\n")
    found = {}
    for spacing in ("1,1.5", "1,1"):
        out = tmp_path / "out.json"
        words = ["segment", str(tmp_path / "m.csv"), "--metrics", "accuracy", "--resamples", "0"]
        words += ["--boundary-mm", "2", "--spacing", spacing, "-q"]
        done = CliRunner().invoke(app, [*words, "--out", str(out)])
        assert done.exit_code == 0, done.output
        found[spacing] = float(rw.Results.from_json(out)["accuracy"])
    assert found == pytest.approx({"1,1.5": 1.0, "1,1": 4 / 6})


def test_the_names_of_raters_reach_the_images(tmp_path: Path) -> None:
    """Raters are drawn where the masks have names; one name is one person, who cannot be drawn."""
    probs, mask = image_of(BOX)
    np.save(tmp_path / "p.npy", np.stack((1 - probs, probs)))
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", mask)
    cases = "".join(f"c{i},p.npy,a.npy;b.npy\n" for i in range(2))
    (tmp_path / "m.csv").write_text(f"case,probabilities,raters\n{cases}")
    words = ["segment", str(tmp_path / "m.csv"), "--metrics", "ece", "--unit", "raters"]
    for names, code in (("ann,ben", 0), ("ann", 2)):
        done = CliRunner().invoke(app, [*words, "--raters", names, "--resamples", "20", "-q"])
        assert done.exit_code == code, done.output

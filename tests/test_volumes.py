"""Images in files of every kind, files that do not belong together, and `raterwise segment`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
import zarr
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app
from raterwise.io.manifests import CaseFiles, read_manifest
from raterwise.io.volumes import read_images, read_volume, write_nifti
from raterwise.segmentation import Case

Array = NDArray[Any]
AFFINE = np.diag([1.0, 2.0, 3.0, 1.0])
runner = CliRunner()


def save_nifti(path: Path, array: Array, affine: Array = AFFINE) -> Path:
    """Write an array as NIfTI."""
    nibabel.save(nibabel.Nifti1Image(array, affine), path)
    return path


def image_and_masks(seed: int, raters: int = 2) -> tuple[Array, Array]:
    """Return the probability of the foreground, and the masks of raters who draw from it."""
    random = np.random.default_rng(seed)
    image = random.beta(0.4, 0.6, (6, 5, 4)).astype(np.float32)
    return image, (random.random((raters, *image.shape)) < image).astype(np.uint8)


def study(folder: Path, cases: int = 4) -> tuple[Path, list[Case]]:
    """Write a small study as NIfTI with a manifest; return it and the same cases in memory."""
    rows, held = ["case,probabilities,raters,patient"], []
    for i in range(cases):
        image, masks = image_and_masks(i, raters=2 + i % 2)
        save_nifti(folder / f"p{i}.nii.gz", image)
        for r, mask in enumerate(masks):
            save_nifti(folder / f"m{i}_{r}.nii.gz", mask)
        rows.append(f"c{i},p{i}.nii.gz,m{i}_*.nii.gz,patient{i // 2}")
        held.append(Case(image, masks, spacing=(1, 2, 3), patient=f"patient{i // 2}", name=f"c{i}"))
    manifest = folder / "manifest.csv"
    manifest.write_text("\n".join(rows) + "\n")
    return manifest, held


def segment(*arguments: Any) -> Any:
    """Run `raterwise segment`."""
    return runner.invoke(app, ["segment", *map(str, arguments)])


# formats -------------------------------------------------------------------------------------


def test_every_format_gives_its_array_back(tmp_path: Path) -> None:
    """NIfTI, NPY, NPZ, Zarr, TIFF stacks and PNG slices hold what was written."""
    image, masks = image_and_masks(0)
    save_nifti(tmp_path / "a.nii.gz", image)
    np.save(tmp_path / "a.npy", image)
    np.savez(tmp_path / "a.npz", image)
    zarr.save(str(tmp_path / "a.zarr"), image)
    tifffile.imwrite(tmp_path / "a.tif", image, photometric="minisblack")
    for name in ("a.nii.gz", "a.npy", "a.npz", "a.zarr", "a.tif"):
        np.testing.assert_array_equal(read_volume(tmp_path / name).array, image)
    assert read_volume(tmp_path / "a.nii.gz").spacing == (1.0, 2.0, 3.0)
    (tmp_path / "slices").mkdir()
    for z, part in enumerate(masks[0]):
        Image.fromarray(part).save(tmp_path / "slices" / f"{z:03d}.png")
    np.testing.assert_array_equal(read_volume(tmp_path / "slices").array, masks[0])


def test_classes_are_the_last_axis_of_nifti_and_the_first_of_others(tmp_path: Path) -> None:
    """(x, y, z, K) in NIfTI and (K, x, y, z) in NPY are the same probabilities."""
    probs = np.random.default_rng(0).dirichlet(np.ones(3), (4, 5, 6)).astype(np.float32)
    mask = save_nifti(tmp_path / "m.nii", np.zeros((4, 5, 6), np.uint8))
    nifti = save_nifti(tmp_path / "p.nii", probs)
    np.save(tmp_path / "p.npy", np.moveaxis(probs, -1, 0))
    for path in (nifti, tmp_path / "p.npy"):
        found = read_images(CaseFiles("c", path, (mask,), axes="xyz"))
        np.testing.assert_array_equal(found.probabilities, np.moveaxis(probs, -1, 0))


def test_one_hot_masks_are_told_from_label_maps(tmp_path: Path) -> None:
    """Masks with the classes of the probabilities are one-hot; one channel of four axes is not."""
    random = np.random.default_rng(0)
    probs = random.dirichlet(np.ones(3), (4, 5, 6)).astype(np.float32)
    label = random.integers(0, 3, (4, 5, 6))
    one_hot = np.eye(3, dtype=np.uint8)[label]
    image = save_nifti(tmp_path / "p.nii", probs)
    np.save(tmp_path / "p.npy", np.moveaxis(probs, -1, 0))
    for path, mask in (
        (image, save_nifti(tmp_path / "m.nii", one_hot)),
        (tmp_path / "p.npy", tmp_path / "m.npy"),
    ):
        if mask.suffix == ".npy":
            np.save(mask, np.moveaxis(one_hot, -1, 0))
        files = CaseFiles("c", path, (mask,))
        found = read_images(files)
        assert found.one_hot and found.probabilities.shape == (3, 4, 5, 6)
        mine = rw.segmentation.evaluate([files], "accuracy", resamples=0)["accuracy"].value
        assert mine == pytest.approx((probs.argmax(axis=-1) == label).mean())
    channel = save_nifti(tmp_path / "c.nii", probs[..., ::-1] * np.float32(0.9))
    single = read_images(CaseFiles("c", channel, (save_nifti(tmp_path / "s.nii", one_hot),)))
    assert not single.one_hot and single.probabilities.shape == (4, 5, 6, 3)


def test_grey_values_are_fractions_and_white_is_one(tmp_path: Path) -> None:
    """An 8-bit image holds p as p · 255; a mask of 0 and 255 is 0 and 1."""
    Image.fromarray(np.array([[0, 51], [255, 102]], np.uint8)).save(tmp_path / "p.png")
    Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).save(tmp_path / "m.png")
    found = read_images(CaseFiles("c", tmp_path / "p.png", (tmp_path / "m.png",)))
    assert found.probabilities.tolist() == pytest.approx(np.array([[0, 0.2], [1, 0.4]]))
    assert found.masks[0].tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("name", ["a.nii.gz", "a.nii", "a.npy", "a.npz", "a.png", "a.tif"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    """A file that is cut off, or something else altogether, is an error with its name."""
    (tmp_path / name).write_bytes(b"\x1f\x8b\x08\x00 this is no image")
    with pytest.raises(rw.InvalidInputError, match=rf"{name}.*damaged"):
        read_volume(tmp_path / name)
    with pytest.raises(rw.InvalidInputError, match="no such file"):
        read_volume(tmp_path / f"missing_{name}")


def test_a_cut_off_nifti_is_named(tmp_path: Path) -> None:
    """Half of a compressed image is damaged, even though its header can be read."""
    whole = save_nifti(tmp_path / "whole.nii.gz", np.random.default_rng(0).random((20, 20, 20)))
    (tmp_path / "half.nii.gz").write_bytes(whole.read_bytes()[:20000])
    with pytest.raises(rw.InvalidInputError, match=r"half\.nii\.gz.*damaged"):
        read_volume(tmp_path / "half.nii.gz")


def test_pickles_and_several_arrays_are_refused(tmp_path: Path) -> None:
    """An NPZ file must hold one array, and none that would run code."""
    np.savez(tmp_path / "two.npz", a=np.zeros(2), b=np.zeros(2))
    with pytest.raises(rw.InvalidInputError, match=r"two\.npz: must hold one array.*a, b"):
        read_volume(tmp_path / "two.npz")
    np.save(tmp_path / "o.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(rw.InvalidInputError, match=r"o\.npy"):
        read_volume(tmp_path / "o.npy")
    (tmp_path / "notes.txt").write_text("no image")
    with pytest.raises(rw.InvalidInputError, match=r"notes\.txt: the name must end in"):
        read_volume(tmp_path / "notes.txt")


# files that belong together --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "affine", "message"),
    [
        ((6, 5, 3), AFFINE, r"p\.nii.*m\.nii.*same image shape.*\(6, 5, 4\) and \(6, 5, 3\)"),
        ((6, 5, 4), np.diag([1, 2, 4, 1]), r"p\.nii.*m\.nii.*same affine.*differ by up to 1"),
        ((6, 5, 4), np.diag([-1, 2, 3, 1]), r"p\.nii.*m\.nii.*orientation; got RAS and LAS"),
    ],
)
def test_files_that_do_not_fit_name_each_other(
    tmp_path: Path, shape: tuple[int, ...], affine: Array, message: str
) -> None:
    """Another shape, grid or orientation is an error with the case and both files."""
    image = save_nifti(tmp_path / "p.nii", np.full((6, 5, 4), 0.5, np.float32))
    mask = save_nifti(tmp_path / "m.nii", np.zeros(shape, np.uint8), affine.astype(float))
    with pytest.raises(rw.InvalidInputError, match=rf"case c7: .*{message}"):
        read_images(CaseFiles("c7", image, (mask,)))


def test_raters_must_have_the_same_shape(tmp_path: Path) -> None:
    """Two raters' masks of different shapes name each other."""
    image = save_nifti(tmp_path / "p.nii", np.full((6, 5, 4), 0.5, np.float32))
    first = save_nifti(tmp_path / "r1.nii", np.zeros((6, 5, 4), np.uint8))
    second = save_nifti(tmp_path / "r2.nii", np.zeros((6, 4, 4), np.uint8))
    with pytest.raises(rw.InvalidInputError, match=r"r1\.nii and .*r2\.nii: must have the same"):
        read_images(CaseFiles("c", image, (first, second)))


def test_integers_are_no_probabilities(tmp_path: Path) -> None:
    """Whole numbers in a NIfTI file are not guessed to be probabilities."""
    image = save_nifti(tmp_path / "p.nii", np.ones((3, 3, 3), np.int16))
    mask = save_nifti(tmp_path / "m.nii", np.ones((3, 3, 3), np.int16))
    with pytest.raises(rw.InvalidInputError, match=r"p\.nii: probabilities must be floating"):
        read_images(CaseFiles("c", image, (mask,)))


@pytest.mark.parametrize(("value", "said"), [(1.3, "1.3"), (np.nan, "nan"), (np.inf, "inf")])
def test_labels_that_are_no_whole_numbers_are_named(
    tmp_path: Path, value: float, said: str
) -> None:
    """The voxel and what it holds, of a mask that was interpolated or has gaps."""
    image = save_nifti(tmp_path / "p.nii", np.full((3, 3, 3), 0.5, np.float32))
    labels = np.ones((3, 3, 3), np.float32)
    labels[0, 2, 1] = value
    mask = save_nifti(tmp_path / "m.nii", labels)
    with pytest.raises(rw.InvalidInputError, match=rf"numbers; voxel \(0, 2, 1\) is {said}$"):
        read_images(CaseFiles("c", image, (mask,)))


# manifests ---------------------------------------------------------------------------------------


def test_a_manifest_lists_files_and_patterns(tmp_path: Path) -> None:
    """Paths are relative to the manifest; patterns are sorted; empty cells are nothing."""
    for name in ("b.npy", "a.npy"):
        np.save(tmp_path / name, np.zeros(2))
    file = tmp_path / "m.csv"
    header = "case,probabilities,raters,mask,patient,spacing"
    file.write_text(f"{header}\nx,p.npy,?.npy;c.npy,,p1,0.5;0.5;3\n")
    (found,) = read_manifest(file)
    assert [path.name for path in found.raters] == ["a.npy", "b.npy", "c.npy"]
    assert found.mask is None and found.patient == "p1" and found.spacing == (0.5, 0.5, 3.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case,probabilities\na,b\n", "there is no raters"),
        ("case,probabilities,rater_1,rater_2\na,b,c,d\n", 'all raters, joined by ";"'),
        ("case,probabilities,raters,prob\na,b,c,d\n", "columns must be .*got prob"),
        ("case,probabilities,raters,patiant\na,b,c,d\n", "did you mean 'patient'"),
        ("case,probabilities,raters,site,year\na,b,c,d,e\n", 'got site, year .*values="site"'),
        ("case,probabilities,raters\na,b,c\na,b,c\n", "cases must differ; 'a'"),
        ("case,probabilities,raters\na,,c\n", "row 1 has no probabilities"),
        ("case,probabilities,raters,spacing\na,b,c,1x2\n", "spacing of data row 1 must be numbers"),
        ("case,probabilities,raters\na,b,c,d\n", "row 1 has too many"),
        (
            "case,probabilities,raters\na,b,c;c\n",
            "raters of data row 1 must differ; c is there twice",
        ),
        ("case,probabilities,raters,case\na,b,c,d\n", "columns must differ"),
        ("", "must have rows"),
    ],
)
def test_bad_manifests_say_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    """Missing columns, unknown columns, repeated cases and empty cells are errors."""
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(rw.InvalidInputError, match=message):
        read_manifest(tmp_path / "m.csv")


# the command -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["per_case", "pooled"])
def test_the_command_says_what_python_says(tmp_path: Path, reduction: str) -> None:
    """`raterwise segment` on files gives the numbers of `segmentation.evaluate` on arrays."""
    manifest, cases = study(tmp_path)
    out = tmp_path / "r.json"
    done = segment(
        manifest, "--metrics", "ece,brier,kde_ece", "--reduction", reduction, "--boundary-mm", 2,
        "--question", "positive", "--resamples", 50, "--out", out, "--csv", tmp_path / "r.csv",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    expected = rw.segmentation.evaluate(
        cases, "ece,brier,kde_ece", reduction, boundary_mm=2, question="positive", resamples=50
    )
    found = json.loads(out.read_text())
    for name, estimate in expected.items():
        mine = found["metrics"][name]
        assert mine["value"] == pytest.approx(estimate.value, abs=1e-12)
        assert (mine["low"], mine["high"]) == pytest.approx((estimate.low, estimate.high))
    assert found["data"]["patients"] == 2 and found["data"]["cases"] == 4
    with open(tmp_path / "r.csv", newline="", encoding="utf-8") as stream:
        rows = {row["name"]: row for row in csv.DictReader(stream)}
    assert float(rows["kde_ece"]["bound"]) == expected["kde_ece"].bound
    if reduction == "per_case":
        assert float(rows["ece"]["std"]) == pytest.approx(expected["ece"].std)
        assert rows["ece"]["defined"] == "4"
    report = runner.invoke(app, ["report", str(out), "-o", str(tmp_path / "r.html")])
    assert report.exit_code == 0, report.output
    assert "4 images of 2 patients" in (tmp_path / "r.html").read_text()
    assert "± std" in done.output or reduction == "pooled"
    assert f"4 images of 2 patients, {found['data']['voxels']} voxels" in done.output


def test_bad_images_are_skipped_only_on_request(tmp_path: Path) -> None:
    """A damaged file stops the run with its case, or with --skip-bad is counted and named."""
    manifest, _ = study(tmp_path)
    (tmp_path / "p1.nii.gz").write_bytes(b"damaged")
    (tmp_path / "m2_0.nii.gz").unlink()
    (tmp_path / "m2_1.nii.gz").unlink()
    stopped = segment(manifest, "--metrics", "ece")
    assert stopped.exit_code == 2
    assert "case c1" in stopped.stderr and "p1.nii.gz" in stopped.stderr
    out = tmp_path / "r.json"
    done = segment(manifest, "--metrics", "ece", "--resamples", 0, "--skip-bad", "--out", out)
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    assert found["data"]["cases"] == 2 and found["data"]["dropped"] == {"bad images": 2}
    assert [w for w in found["warnings"] if "case c1" in w and "p1.nii.gz" in w]
    assert [w for w in found["warnings"] if "case c2" in w and "m2_*" in w]
    assert "left out: 2 bad images" in done.output


def test_bad_values_name_the_case_once_and_its_files(tmp_path: Path) -> None:
    """A label that is no class is an error with the case, the rater, the voxel and the files."""
    manifest, _ = study(tmp_path, cases=2)
    mask = image_and_masks(1)[1][0]
    mask[2, 3, 1] = 7
    save_nifti(tmp_path / "m1_0.nii.gz", mask)
    done = segment(manifest, "--metrics", "ece")
    assert done.exit_code == 2 and done.stderr.count("case c1") == 1
    assert "rater 0, voxel (2, 3, 1): labels must be classes 0 … 1; got 7" in done.stderr
    assert "(in p1.nii.gz, m1_0.nii.gz, m1_1.nii.gz, m1_2.nii.gz)" in done.stderr
    assert "(if it marks voxels that do not count: --ignore-label 7)" in done.stderr
    assert segment(manifest, "--metrics", "ece", "--ignore-label", "7").exit_code == 0
    save_nifti(tmp_path / "m1_0.nii.gz", (mask > 0).astype(np.uint8) * 255)
    done = segment(manifest, "--metrics", "ece")
    assert "got 255 (where 0 and 255 are no and yes: store them as 0 and 1)" in done.stderr


def test_what_is_wrong_with_an_option_is_not_left_out(tmp_path: Path) -> None:
    """The wrong number of classes would leave out every image: --skip-bad is no way out of it."""
    manifest, _ = study(tmp_path)
    done = segment(manifest, "--metrics", "ece", "--num-classes", "3")
    assert done.exit_code == 2 and "num_classes: must be that of probabilities" in done.stderr
    assert "--skip-bad" not in done.stderr


def test_a_further_column_of_the_manifest_may_say_the_sub_group(tmp_path: Path) -> None:
    """It is refused without the option that the message names, and used with it."""
    manifest, _ = study(tmp_path)
    rows = manifest.read_text(encoding="utf-8").splitlines()
    cells = ("site", "A", "B", "A", "B")
    rows = [f"{row},{cell}" for row, cell in zip(rows, cells, strict=True)]
    manifest.write_text("\n".join(rows) + "\n")
    assert "sub-group: --subgroup-column site)" in segment(manifest, "--metrics", "ece").stderr
    page = tmp_path / "r.html"
    asked = ("--metrics", "ece", "--resamples", "20", "--html", page)
    done = segment(manifest, *asked, "--subgroup-column", "site")
    assert done.exit_code == 0 and "By site" in done.output
    assert "site = A: only 2 images of 2 patients" in " ".join(done.output.split())
    assert '<th scope="col">Images</th>' in page.read_text(encoding="utf-8")
    (one,) = {dict(image.values)["site"] for image in read_manifest(manifest, values="site")[::2]}
    assert one == "A"


def test_maps_lie_where_the_image_lies(tmp_path: Path) -> None:
    """A map of disagreement is 1 - Σ p² with the affine of the probabilities."""
    manifest, cases = study(tmp_path, cases=2)
    done = segment(manifest, "--metrics", "ece", "-q", "--maps", tmp_path / "maps")
    assert done.exit_code == 0, done.output
    for i, case in enumerate(cases):
        written = nibabel.load(tmp_path / "maps" / f"c{i}_disagreement.nii.gz")
        p = case.probabilities.astype(float)
        np.testing.assert_allclose(written.get_fdata(), 2 * p * (1 - p), atol=1e-6)
        np.testing.assert_array_equal(written.affine, AFFINE)


def test_maps_of_two_cases_must_not_be_one_file(tmp_path: Path) -> None:
    """Cases whose names differ only in what a file's name cannot have are refused, with maps."""
    manifest, _ = study(tmp_path, cases=2)
    text = manifest.read_text().replace("c0,", "a/b,").replace("c1,", "a b,")
    manifest.write_text(text)
    assert segment(manifest, "--metrics", "ece", "-q", "--resamples", 0).exit_code == 0
    done = segment(manifest, "--metrics", "ece", "--maps", tmp_path / "maps")
    assert done.exit_code == 2 and "'a/b' and 'a b' would have one file" in done.stderr


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished images are not read again; a folder of other options or files is refused."""
    manifest, _ = study(tmp_path)
    kept = tmp_path / "kept"
    options = ("--metrics", "ece,auccc", "--resamples", 20, "--checkpoint", kept)
    first = segment(manifest, *options, "--out", tmp_path / "1.json")
    assert first.exit_code == 0, first.output
    (kept / "part_000002.npz").unlink()
    read: list[str] = []

    def reading(files: CaseFiles) -> Any:
        read.append(files.case)
        return read_images(files)

    monkeypatch.setattr("raterwise.segmentation.running.read_images", reading)
    again = segment(manifest, *options, "--out", tmp_path / "2.json")
    assert again.exit_code == 0, again.output
    assert read == ["c2"]
    written = [json.loads((tmp_path / f"{n}.json").read_text()) for n in (1, 2)]
    assert all(one.pop("provenance") for one in written) and written[0] == written[1]
    other = segment(manifest, "--metrics", "mce", "--checkpoint", kept)
    assert other.exit_code == 2 and "another run" in other.stderr
    save_nifti(tmp_path / "p0.nii.gz", image_and_masks(9)[0])
    changed = segment(manifest, *options)
    assert changed.exit_code == 2 and "another run" in changed.stderr


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A NIfTI file needs its ending and a folder; nothing is left of one that failed."""
    with pytest.raises(rw.InvalidInputError, match=r"must end in \.nii"):
        write_nifti(tmp_path / "map.png", np.zeros((2, 2, 2), np.float32), AFFINE)
    with pytest.raises(Exception, match="not supported"):
        write_nifti(tmp_path / "map.nii", np.zeros((2, 2, 2), "U3"), AFFINE)
    assert list(tmp_path.iterdir()) == []


# what files are like in hospitals --------------------------------------------------------------


def test_slices_are_stacked_by_their_numbers(tmp_path: Path) -> None:
    """slice_10 comes after slice_9; what a file manager hides there is no slice."""
    for z in range(12):
        Image.fromarray(np.full((2, 3), z, np.uint8)).save(tmp_path / f"slice_{z}.png")
    (tmp_path / "._slice_1.png").write_bytes(b"of the file manager")
    assert read_volume(tmp_path).array[:, 0, 0].tolist() == list(range(12))


@pytest.mark.parametrize("name", ["p.nii", "p.nii.gz"])
@pytest.mark.parametrize("kind", [np.uint8, np.int16])
def test_probabilities_in_scaled_integers(tmp_path: Path, name: str, kind: type) -> None:
    """A slope rounded to float32 puts 1 a last digit above 1, which is no logit."""
    image = np.linspace(0, 1, 60).reshape(5, 4, 3)
    scaled = nibabel.Nifti1Image(image, AFFINE)
    scaled.set_data_dtype(kind)
    nibabel.save(scaled, tmp_path / name)
    mask = nibabel.Nifti1Image((image > 0.5).astype(np.float32), AFFINE)
    mask.set_data_dtype(kind)
    nibabel.save(mask, tmp_path / "m.nii.gz")
    files = CaseFiles("c", tmp_path / name, (tmp_path / "m.nii.gz",))
    found = rw.segmentation.evaluate([files], "brier,accuracy", resamples=0)
    assert found["accuracy"].value == 1.0
    step = 1 / np.iinfo(kind).max
    assert found["brier"].value == pytest.approx(np.mean((image - (image > 0.5)) ** 2), abs=step)


def test_a_flipped_bit_in_a_compressed_image_is_found(tmp_path: Path) -> None:
    """The checksum at the end of .nii.gz is read: wrong numbers would look like numbers."""
    image = np.random.default_rng(0).random((12, 12, 12)).astype(np.float32)
    path = save_nifti(tmp_path / "p.nii.gz", image)
    np.testing.assert_array_equal(read_volume(path).array, image)
    whole = path.read_bytes()
    for at in range(1000, len(whole) - 8, 500):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(rw.InvalidInputError, match=r"p\.nii\.gz: cannot be read"):
            read_volume(path)


def test_nifti_two_is_read_compressed_or_not(tmp_path: Path) -> None:
    """The second version of the format has another header."""
    image = np.random.default_rng(0).random((3, 4, 5)).astype(np.float32)
    for name in ("p.nii", "p.nii.gz"):
        nibabel.save(nibabel.Nifti2Image(image, AFFINE), tmp_path / name)
        found = read_volume(tmp_path / name)
        np.testing.assert_array_equal(found.array, image)
        assert found.spacing == (1, 2, 3)


@pytest.mark.parametrize("version", [2, 3])
def test_a_damaged_chunk_of_zarr_is_named(tmp_path: Path, version: int) -> None:
    """Codecs have errors of their own; the store is named all the same."""
    store = tmp_path / "p.zarr"
    array = zarr.create_array(store, shape=(8, 8), chunks=(4, 4), dtype="f4", zarr_format=version)
    array[...] = np.random.default_rng(0).random((8, 8))
    assert read_volume(store).array.shape == (8, 8)
    names = (".zarray", ".zattrs", "zarr.json")
    chunk = next(f for f in store.rglob("*") if f.is_file() and f.name not in names)
    chunk.write_bytes(b"no chunk of anything")
    with pytest.raises(rw.InvalidInputError, match=r"p\.zarr: cannot be read"):
        read_volume(store)


def test_bilevel_masks_are_zeros_and_ones(tmp_path: Path) -> None:
    """Pillow keeps white of one-bit images as 255, even in an array of truth values."""
    mask = np.array([[True, False, True], [False, False, True]])
    Image.fromarray(mask).save(tmp_path / "m.png")
    Image.fromarray(np.full((2, 3), 65535, np.uint16)).save(tmp_path / "p.png")
    files = CaseFiles("c", tmp_path / "p.png", (tmp_path / "m.png",))
    found = rw.segmentation.evaluate([files], "accuracy", resamples=0)
    assert found["accuracy"].value == 0.5


def test_microns_are_not_millimetres(tmp_path: Path) -> None:
    """The unit of a NIfTI header counts, and maps are written in millimetres."""
    image = nibabel.Nifti1Image(np.zeros((3, 3, 3), np.float32), AFFINE)
    image.header.set_xyzt_units("micron")
    nibabel.save(image, tmp_path / "p.nii.gz")
    found = read_volume(tmp_path / "p.nii.gz")
    assert found.spacing == pytest.approx((0.001, 0.002, 0.003))
    written = nibabel.load(write_nifti(tmp_path / "map.nii.gz", found.array, found.affine))
    assert written.header.get_xyzt_units()[0] == "mm"
    np.testing.assert_allclose(np.diag(written.affine)[:3], (0.001, 0.002, 0.003))


def test_one_channel_may_have_an_axis(tmp_path: Path) -> None:
    """A foreground channel of shape (1, *spatial), last in NIfTI, is the channel; so is its map."""
    image, masks = image_and_masks(0)
    save_nifti(tmp_path / "m0.nii.gz", masks[0])
    save_nifti(tmp_path / "p.nii.gz", image[..., None])
    np.save(tmp_path / "p.npy", image[None])
    plain = rw.segmentation.evaluate([Case(image, masks[:1])], "ece", resamples=0)
    for name in ("p.nii.gz", "p.npy"):
        manifest = tmp_path / "one.csv"
        manifest.write_text(f"case,probabilities,raters\nc,{name},m0.nii.gz\n")
        found = rw.segmentation.evaluate(read_manifest(manifest, axes="xyz"), "ece", resamples=0)
        assert found["ece"].value == plain["ece"].value
        words = ("--metrics", "ece", "-q", "--axes", "xyz", "--maps", tmp_path / name[-3:])
        done = segment(manifest, *words)
        assert done.exit_code == 0, done.output
        written = nibabel.load(tmp_path / name[-3:] / "c_disagreement.nii.gz").get_fdata()
        np.testing.assert_allclose(written, 2 * image * (1 - image.astype(float)), atol=1e-6)


def test_voxels_that_one_hot_files_do_not_mark_were_not_rated(tmp_path: Path) -> None:
    """They do not turn classes into slices; a voxel of two classes is an error."""
    probs = np.random.default_rng(0).dirichlet(np.ones(3), (4, 5))
    label = np.random.default_rng(1).integers(0, 3, (4, 5))
    one_hot = np.eye(3, dtype=np.uint8)[label]
    one_hot[0, 0] = 0
    np.save(tmp_path / "p.npy", np.moveaxis(probs, -1, 0))
    np.save(tmp_path / "m.npy", np.moveaxis(one_hot, -1, 0))
    files = CaseFiles("c", tmp_path / "p.npy", (tmp_path / "m.npy",))
    found = rw.segmentation.evaluate([files], "accuracy", resamples=0)
    right = (probs.argmax(axis=-1) == label).ravel()[1:]
    assert found["accuracy"].value == pytest.approx(right.mean())
    assert found.data["dropped"] == {"voxels that nobody rated": 1}
    one_hot[0, 0] = 1, 1, 0
    np.save(tmp_path / "m.npy", np.moveaxis(one_hot, -1, 0))
    with pytest.raises(rw.InvalidInputError, match=r"one-hot masks must mark one class; got"):
        rw.segmentation.evaluate([files], "accuracy", resamples=0)


def test_maps_are_of_the_region(tmp_path: Path) -> None:
    """Networks leave NaN outside the organ; the map is 0 there and 1 - Σ p² inside."""
    probs = np.random.default_rng(0).dirichlet(np.ones(3), (4, 5, 6)).astype(np.float32)
    inside = np.ones((4, 5, 6), np.uint8)
    inside[0] = 0
    save_nifti(tmp_path / "p.nii.gz", np.where(inside[..., None], probs, np.nan))
    save_nifti(tmp_path / "r.nii.gz", inside)
    save_nifti(tmp_path / "m.nii.gz", probs.argmax(axis=-1).astype(np.uint8))
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("case,probabilities,raters,mask\nc,p.nii.gz,m.nii.gz,r.nii.gz\n")
    done = segment(manifest, "--metrics", "ece", "-q", "--maps", tmp_path)
    assert done.exit_code == 0, done.output
    expected = np.where(inside, 1 - (probs.astype(float) ** 2).sum(axis=-1), 0)
    written = nibabel.load(tmp_path / "c_disagreement.nii.gz").get_fdata()
    np.testing.assert_allclose(written, expected, atol=1e-6)


def test_manifests_from_a_windows_office(tmp_path: Path) -> None:
    """A byte-order mark, CRLF, and a folder whose own name looks like a pattern."""
    folder = tmp_path / "scans [2023]"
    folder.mkdir()
    for name in ("m_1.npy", "m_2.npy"):
        np.save(folder / name, np.zeros(3, np.uint8))
    manifest = folder / "manifest.csv"
    text = "\ufeffcase,probabilities,raters\r\nc,p.npy,m_*.npy\r\n"
    manifest.write_bytes(text.encode("utf-8"))
    (case,) = read_manifest(manifest)
    assert case.probabilities == folder / "p.npy"
    assert case.raters == (folder / "m_1.npy", folder / "m_2.npy")


def test_a_changed_slice_is_a_changed_image(tmp_path: Path) -> None:
    """A checkpoint tells that a file inside of a folder is another than before."""
    image, masks = image_and_masks(0)
    np.save(tmp_path / "p.npy", image)
    (tmp_path / "m").mkdir()
    for z, plane in enumerate(masks[0]):
        Image.fromarray(plane).save(tmp_path / "m" / f"{z}.png")
    files = [CaseFiles("c", tmp_path / "p.npy", (tmp_path / "m",))]
    kept = tmp_path / "kept"
    options: Any = {"metrics": "ece", "resamples": 0, "checkpoint": kept}
    first = rw.segmentation.evaluate(files, **options)
    assert rw.segmentation.evaluate(files, **options)["ece"].value == first["ece"].value
    Image.fromarray(1 - masks[0][2]).save(tmp_path / "m" / "2.png")
    with pytest.raises(rw.InvalidInputError, match="another run"):
        rw.segmentation.evaluate(files, **options)


# Damage ------------------------------------------------------------------------------------------


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """Return bytes of which one is another, some are missing at the end, or some were zeroed."""
    place = int(random.integers(len(content)))
    kind = random.integers(3)
    if kind == 0:
        changed = content[place] ^ (1 << int(random.integers(8)))
        return content[:place] + bytes([changed]) + content[place + 1 :]
    if kind == 1:
        return content[:place]
    return content[:place] + bytes(min(16, len(content) - place)) + content[place + 16 :]


@pytest.mark.parametrize("name", ["m.png", "m.npz", "m.nii.gz"])
def test_a_damaged_mask_is_refused_or_the_same(tmp_path: Path, name: str) -> None:
    """Files with checksums: 150 damaged masks, of which none is read with other pixels."""
    mask = (np.indices((24, 20)).sum(axis=0) % 7 < 3).astype(np.uint8) * 255
    path = tmp_path / name
    if name.endswith(".npz"):
        np.savez_compressed(path, mask)
    elif name.endswith(".png"):
        Image.fromarray(mask).save(path)
    else:
        save_nifti(path, mask)
    whole, random = path.read_bytes(), np.random.default_rng(3)
    refused = 0
    for _ in range(150):
        path.write_bytes(damaged(whole, random))
        try:
            assert np.array_equal(read_volume(path).array, mask)
        except rw.InvalidInputError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_tiff_that_is_cut_off_is_refused(tmp_path: Path, compression: str | None) -> None:
    """Wherever it is cut, and where a strip of it is empty: no zeros stand for what is gone."""
    mask = np.arange(600, dtype=np.uint8).reshape(30, 20)
    path = tmp_path / "m.tif"
    tifffile.imwrite(path, mask, compression=compression, rowsperstrip=10)
    whole = path.read_bytes()
    assert np.array_equal(read_volume(path).array, mask)
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(rw.InvalidInputError, match=r"m\.tif: cannot be read, it may be"):
            read_volume(path)


def test_grey_palettes_and_unsigned_arrays_are_grey(tmp_path: Path) -> None:
    """A palette of greys is read through it, one of colours refused; bytes in NPY are k/255."""
    grey = np.array([[0, 51], [255, 102]], np.uint8)
    image = Image.fromarray(np.array([[0, 1], [3, 2]], np.uint8)).convert("P")
    image.putpalette([value for g in (0, 51, 102, 255) for value in (g, g, g)])
    image.save(tmp_path / "p.png")
    np.save(tmp_path / "p.npy", grey)
    np.save(tmp_path / "m.npy", np.array([[0, 255], [255, 0]], np.uint8))
    assert read_volume(tmp_path / "p.png").array.tolist() == grey.tolist()
    for name in ("p.png", "p.npy"):
        files = CaseFiles("c", tmp_path / name, (tmp_path / "m.npy",))
        found = read_images(files)
        assert found.probabilities == pytest.approx(grey / 255)
        assert found.masks[0].tolist() == [[0, 1], [1, 0]]
    image.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.save(tmp_path / "p.png")
    with pytest.raises(rw.InvalidInputError, match="one channel of grey values; its mode is 'P'"):
        read_volume(tmp_path / "p.png")

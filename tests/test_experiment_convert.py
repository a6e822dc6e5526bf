"""The small files of the experiments, made from tiny copies of the official layouts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.convert import MAKERS, converted
from experiments.multi_rater.data import read_qubiq_slices
from experiments.robust_ece.data import problem_in
from raterwise.errors import InvalidInputError

Image = pytest.importorskip("PIL.Image")
ROOT = Path(__file__).parents[1]


def picture(path: Path, grey: int, size: tuple[int, int] = (160, 140)) -> None:
    """Write a picture of one grey but for a white corner, in the kind that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full(size[::-1], grey, np.uint8)
    pixels[: size[1] // 2, : size[0] // 2] = 255
    pixels[::7] = np.random.default_rng(grey).integers(0, 255, pixels[::7].shape)
    Image.fromarray(pixels).save(path)


def test_busi_is_read_by_the_experiment(tmp_path: Path) -> None:
    """Official folders become the file whose images are cross-validated, class by class."""
    for k, kind in enumerate(("normal", "benign", "malignant")):
        for i in range(5):
            picture(tmp_path / "B" / kind / f"{kind} ({i + 1}).png", 60 * k + 10 * i)
            picture(tmp_path / "B" / kind / f"{kind} ({i + 1})_mask.png", 0)
    converted("busi", tmp_path / "B", tmp_path / "busi.npz")
    problem = problem_in(tmp_path, "busi")
    assert problem is not None and problem.images.shape == (15, 128, 128)
    assert problem.labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert sorted(np.concatenate([fold.test for fold in problem.folds])) == list(range(15))


def test_covid_ct_keeps_the_images_of_a_paper_together(tmp_path: Path) -> None:
    """The paper in a name is the group of an image; images without one stand alone."""
    names = {
        "COVID": ["2020.02.10-p6-52%0.png", "2020.02.10-p7-53%0.png", "a.png"],
        "NonCOVID": ["1.jpg", "2.jpg", "3.jpg"],
    }
    for kind, own in names.items():
        for i, name in enumerate(own):
            picture(tmp_path / "C" / "Images-processed" / f"CT_{kind}" / name, 40 * i)
        for part, listed in zip(("train", "val", "test"), own, strict=True):
            path = tmp_path / "C" / "Data-split" / kind / f"{part}CT_{kind}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{listed}\n", encoding="utf-8")
    converted("covid_ct", tmp_path / "C", tmp_path / "covid_ct.npz")
    problem = problem_in(tmp_path, "covid_ct")
    assert problem is not None and problem.groups is not None
    assert problem.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert len(set(problem.groups.tolist())) == 5 and problem.groups[3] == problem.groups[4]


def test_pocus_knows_the_recording_of_a_frame(tmp_path: Path) -> None:
    """Frames of one video are one group, whatever class folder they lie in; others are left out."""
    names = ["covid/Cov-A.gif_frame0.jpg", "covid/Cov-A.gif_frame15.jpg", "regular/Reg_x.jpg"]
    names += ["pneumonia/pneu-b.mp4_frame3.PNG", "other/logo.png", "viral/Vir_c_frame1.png"]
    for i, name in enumerate(names):
        picture(tmp_path / "P" / name, 30 * i)
    converted("pocus", tmp_path / "P", tmp_path / "pocus.npz")
    with np.load(tmp_path / "pocus.npz") as stored:
        assert sorted(stored["labels"].tolist()) == [0, 0, 1, 2, 3]
        recordings = [stored["source_file"][i] for i in stored["source"]]
    assert recordings.count("Cov-A.gif") == 2 and len(set(recordings)) == 4
    assert problem_in(tmp_path, "pocus") is not None


def test_qubiq_slices_have_the_masks_of_every_rater(tmp_path: Path) -> None:
    """NIfTI files of one slice each; the mask of a quarter stays a quarter."""
    nibabel = pytest.importorskip("nibabel")
    for case in ("Training/case01", "Validation/case02"):
        folder = tmp_path / "brain-growth" / case
        folder.mkdir(parents=True)
        image = np.arange(256 * 256, dtype=np.float32).reshape(256, 256, 1)
        nibabel.save(nibabel.Nifti1Image(image, np.eye(4)), folder / "image.nii.gz")
        for rater in (1, 2):
            mask = np.zeros((256, 256, 1), np.uint8)
            mask[: 128 * rater, :128] = 1
            file = folder / f"task01_seg0{rater}.nii.gz"
            nibabel.save(nibabel.Nifti1Image(mask, np.eye(4)), file)
    file = converted("qubiq", tmp_path / "brain-growth", tmp_path / "qubiq_brain_growth.npz")
    slices = read_qubiq_slices(file)
    assert slices.names == ("case01", "case02") and slices.images.shape == (2, 128, 128)
    assert slices.images.min() <= 1 and slices.images.max() >= 254
    assert slices.masks.mean(axis=(2, 3)).tolist() == [[0.25, 0.5]] * 2


def test_official_medmnist_in_colour_is_read(tmp_path: Path) -> None:
    """RetinaMNIST as it is published, and a file that is neither that nor a copy in one piece."""
    parts = {f"{p}_images": np.zeros((4, 28, 28, 3), np.uint8) for p in ("train", "val", "test")}
    parts |= {f"{p}_labels": np.arange(4)[:, None] for p in ("train", "val", "test")}
    np.savez(tmp_path / "retinamnist.npz", **parts)
    problem = problem_in(tmp_path, "retinamnist")
    assert problem is not None and problem.images.shape == (12, 28, 28, 3)
    assert [part.tolist() for part in problem.folds[0]] == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]
    ]  # fmt: skip
    np.savez(tmp_path / "dermamnist.npz", images=np.zeros((4, 28, 28, 3), np.uint8))
    with pytest.raises(InvalidInputError, match=r"dermamnist.npz: .*; labels, split missing"):
        problem_in(tmp_path, "dermamnist")


def test_what_cannot_be_converted_is_one_line(tmp_path: Path) -> None:
    """An unknown name, a wrong folder, another ending, a file that is no picture."""
    with pytest.raises(InvalidInputError, match=r"NAME: must be one of busi, .*; got 'lung'"):
        converted("lung", tmp_path, tmp_path / "a.npz")
    with pytest.raises(InvalidInputError, match=r"OUT: must end in .npz"):
        converted("busi", tmp_path, tmp_path / "a.npy")
    for name in MAKERS:
        with pytest.raises(InvalidInputError, match="nothing"):
            converted(name, tmp_path / "nothing", tmp_path / "a.npz")
    (tmp_path / "Cov-1_frame0.png").write_text("no picture", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"Cov-1_frame0.png: must be a picture"):
        converted("pocus", tmp_path, tmp_path / "a.npz")
    command = [sys.executable, "-m", "experiments.convert", "busi", str(tmp_path), "a.npz"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 2 and run.stderr.count("\n") == 1

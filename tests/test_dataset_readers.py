"""Readers of public data sets, each on a tiny made-up copy of the official layout."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

import raterwise as rw
from raterwise.datasets import Dataset, read
from raterwise.datasets.catalog import SOURCES
from raterwise.errors import InvalidInputError

ROOT = Path(__file__).parents[1]
VOTES = "Number of Annotators who Selected SSA (Out of 7)"
MHIST = f"Image Name,Majority Vote Label,{VOTES},Partition"
EXPERTS = ";".join(f"Expert_{i}" for i in range(1, 6))
CHAKSU = "Images,Expert.1,Expert.2,Expert.3,Expert.4,Expert.5,Majority Decision"
STUDY = "CheXpert-v1.0/test/patient64741/study1"
FILMS = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender"


def put(folder: Path, files: dict[str, Any]) -> Path:
    """Write files below a folder: text, bytes, or nothing for those that are only named."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content or b"")
    return folder


@pytest.fixture
def published() -> Path:
    """Return the folder with the published files, where there is one."""
    folder = os.environ.get("RATERWISE_SHARED_DATA")
    if not folder:
        pytest.skip("RATERWISE_SHARED_DATA does not name a folder with the published files")
    return Path(folder)


# The layouts --------------------------------------------------------------------------------------


def mhist(place: Path) -> Path:
    """Two polyps, one image missing nowhere."""
    rows = "MHIST_aaa.png,SSA,6,train\nMHIST_aab.png,HP,2,test\n"
    return put(
        place,
        {
            "annotations.csv": f"{MHIST}\n{rows}",
            "images/MHIST_aaa.png": None,
            "images/MHIST_aab.png": None,
        },
    )


def csaw_m(place: Path) -> Path:
    """One test and one training mammogram."""
    return put(
        place,
        {
            "labels/CSAW-M_test.csv": f"Filename;Label;{EXPERTS}\na.png;4;4;4;8;1;\n",
            "labels/CSAW-M_train.csv": "Filename;Label;If_cancer\nb.png;7;0\n",
        },
    )


def chestxray14(place: Path) -> Path:
    """Two films of two patients, with the official lists."""
    rows = "00000001_000.png,Mass|Hernia,0,1,58,M\n00000002_000.png,No Finding,0,2,60,F\n"
    return put(
        place,
        {
            "Data_Entry_2017.csv": f"{FILMS}\n{rows}",
            "train_val_list.txt": "00000001_000.png\n",
            "test_list.txt": "00000002_000.png\n",
        },
    )


def chexpert(place: Path) -> Path:
    """One study, two readers whose columns are not in the same order."""
    return put(
        place,
        {
            "groundtruth.csv": f"Study,Lung Opacity,Lung Lesion\n{STUDY},1,0\n",
            "radiologists/benchmark_radiologists/bc4.csv": (
                f"Study,Lung Lesion,Lung Opacity\n{STUDY},1,0\n"
            ),
            "radiologists/groundtruth/bc1_gt.csv": f"Study,Lung Opacity,Lung Lesion\n{STUDY},1,0\n",
        },
    )


def busi(place: Path) -> Path:
    """Three images; the benign one has two lesions."""
    names = ["normal/normal (1)", "benign/benign (10)", "benign/benign (2)"]
    names += ["malignant/malignant (1)"]
    files = {f"{name}{end}.png": None for name in names for end in ("", "_mask")}
    return put(place, {**files, "benign/benign (2)_mask_1.png": None})


def oct2017(place: Path) -> Path:
    """One image per class among the test images, and one to train on."""
    kinds = ("CNV", "DME", "DRUSEN", "NORMAL")
    files = {f"OCT2017/test/{kind}/{kind}-7-1.jpeg": None for kind in kinds}
    for kind in kinds:
        (place / "OCT2017" / "train" / kind).mkdir(parents=True)
    return put(place, {**files, "OCT2017/train/CNV/CNV-9-2.jpeg": None})


def covid_ct(place: Path) -> Path:
    """One image of each kind to train on, one to test with."""
    covid = ("2020.02.10.20021584-p6-52%0.png", "plain.png")
    files: dict[str, Any] = {f"Images-processed/CT_COVID/{name}": None for name in covid}
    files |= {f"Images-processed/CT_NonCOVID/{name}": None for name in ("1.jpg", "2.jpg")}
    for kind, names in (("COVID", covid), ("NonCOVID", ("1.jpg", "2.jpg"))):
        for part, text in (("train", names[0]), ("val", ""), ("test", names[1])):
            files[f"Data-split/{kind}/{part}CT_{kind}.txt"] = f"{text}\n"
    return put(place, files)


def pocus(place: Path) -> Path:
    """A recording of each class; the table knows two of them."""
    head = "Filename,Label,License,Patient ID / Name"
    return put(
        place,
        {
            "pocus_videos/convex/Cov-Atlas-Day+1.gif": None,
            "pocus_videos/convex/pneu-gred-7.mp4": None,
            "pocus_videos/linear/Reg_x.AVI": None,
            "pocus_images/convex/Vir_y.png": None,
            "dataset_metadata.csv": (
                f"{head}\nCov-Atlas-Day+1,COVID-19,CC BY-NC 4.0,35\nReg_x,regular,None,\n"
                'pneu-gred-7,"Bacterial, and\nmore",None,n/A\n'
            ),
        },
    )


def chaksu(place: Path, verdict: str = "GLAUCOMA  SUSUPECT") -> Path:
    """One photograph with decisions and five outlines, one folder in small letters."""
    decisions = "6.0_Glaucoma_Decision/Glaucoma_Decision_Comparison_Bosch_majority.csv"
    row = f"Image101.jpg-Image101-1.jpg,NORMAL,NORMAL,{verdict},NORMAL,NORMAL,NORMAL"
    outlines = "3.0_Doctors_Annotations_Binary_OD_OC/Expert"
    files: dict[str, Any] = {
        f"Train/{outlines} {i}/Bosch/{'disc' if i == 2 else 'Disc'}/Image101.tif": None
        for i in range(1, 6)
    }
    files["Train/1.0_Original_Fundus_Images/Bosch/Image101.JPG"] = None
    files[f"Train/{decisions}"] = f"\ufeff{CHAKSU}\n{row}\n"
    return put(place, files)


def qubiq(place: Path) -> Path:
    """Two cases with two raters, and a second task that is not asked for."""
    names = ("image", "task01_seg01", "task01_seg02", "task02_seg01")
    cases = ("Training/case01", "Validation/case02")
    return put(place, {f"{case}/{name}.nii.gz": None for case in cases for name in names})


def curvas(place: Path) -> Path:
    """Two patients, three raters each."""
    names = ("image", *(f"annotation_{i}" for i in (1, 2, 3)))
    cases = ("training_set/UKCHLL001", "testing_set/UKCHLL002")
    return put(place, {f"{case}/{name}.nii.gz": None for case in cases for name in names})


def gbcu(place: Path) -> Path:
    """An image to train on and one to test with."""
    return put(place, {"train.txt": "im00001.jpg,2\n", "test.txt": "im00002.jpg, 0\n"})


# What is read of them -----------------------------------------------------------------------------


def test_mhist(tmp_path: Path) -> None:
    """Votes out of seven, the partition, and the images where they are."""
    data = read("mhist", mhist(tmp_path))
    assert data.labels is not None and data.paths is not None
    assert data.labels.counts.tolist() == [[1, 6], [5, 2]]
    assert data.part("test").names == ("MHIST_aab.png",)
    assert data.paths[0] == tmp_path / "images" / "MHIST_aaa.png"


def test_csaw_m(tmp_path: Path) -> None:
    """Five experts with one missing; a training image has its label alone."""
    test, train = (read("csaw_m", csaw_m(tmp_path), part=part) for part in ("test", "train"))
    assert test.labels is not None and train.labels is not None
    assert test.labels.counts.tolist() == [[1, 0, 0, 2, 0, 0, 0, 1]]
    assert train.labels.counts.argmax(axis=1).tolist() == [6] and train.paths is None


def test_chestxray14(tmp_path: Path) -> None:
    """Findings divided by bars, patients and the split."""
    data = read("chestxray14", chestxray14(tmp_path))
    assert data.positives[:, list(data.findings).index("Mass")].tolist() == [1, 0]
    assert data.positives.sum() == 2 and data.asked.tolist() == [[1] * 14] * 2
    assert data.parts is not None and data.parts.tolist() == ["train", "test"]


def test_chexpert(tmp_path: Path) -> None:
    """Columns are taken by name: bc4 saw a lesion, bc1 an opacity."""
    data = read("chexpert_test", chexpert(tmp_path))
    assert {k: v.counts.tolist() for k, v in data.findings.items()} == {
        "Lung Opacity": [[1, 1]],
        "Lung Lesion": [[1, 1]],
    }
    lesion = data.findings["Lung Lesion"].ratings
    assert lesion is not None and lesion.rater_ids == ("bc4", "bc1")
    assert lesion.label.tolist() == [1, 0]
    assert data.patients is not None and data.patients.tolist() == ["patient64741"]


def test_busi(tmp_path: Path) -> None:
    """2 comes before 10; masks belong to their image."""
    data = read("busi", busi(tmp_path))
    assert data.names[1:3] == ("benign (2).png", "benign (10).png")
    assert data.masks is not None and [len(own) for own in data.masks] == [1, 2, 1, 1]
    assert data.labels is not None and data.labels.majority().tolist() == [0, 1, 1, 2]


def test_oct2017(tmp_path: Path) -> None:
    """The same number in two classes is the same person, whose eyes are on both sides."""
    data = read("oct2017", oct2017(tmp_path))
    assert data.patients is not None
    assert data.patients.tolist() == ["9", "7", "7", "7", "7"]
    assert data.part("train").names == ("CNV-9-2.jpeg",)


def test_covid_ct(tmp_path: Path) -> None:
    """The lists give the split, the name of an image its paper."""
    data = read("covid_ct", covid_ct(tmp_path))
    assert data.part("test").names == ("2.jpg", "plain.png")
    assert data.columns["paper"].tolist() == ["", "", "2020.02.10.20021584", ""]


def test_pocus(tmp_path: Path) -> None:
    """Classes from the beginning of a name, patients from the table or the recording."""
    data = read("pocus", pocus(tmp_path))
    assert data.labels is not None and data.labels.majority().tolist() == [0, 1, 2, 3]
    assert data.patients is not None
    assert data.patients.tolist() == ["35", "pneu-gred-7", "Reg_x", "Vir_y"]
    assert data.columns["probe"].tolist() == ["convex", "convex", "linear", "convex"]


def test_chaksu(tmp_path: Path) -> None:
    """A misspelt verdict counts as what it is, a folder in small letters is found."""
    data = read("chaksu", chaksu(tmp_path))
    assert data.labels is not None and data.labels.counts.tolist() == [[4, 1]]
    assert data.masks is not None and len(data.masks[0]) == 5
    assert data.masks[0][1].parent.name.lower() == "disc"


def test_qubiq_and_curvas(tmp_path: Path) -> None:
    """One file per rater, in the order of the raters."""
    growth = read("qubiq", qubiq(tmp_path / "q"))
    assert growth.raters == ("seg01", "seg02") and growth.masks is not None
    assert [p.name for p in growth.masks[1]] == ["task01_seg01.nii.gz", "task01_seg02.nii.gz"]
    assert read("qubiq", tmp_path / "q", task=2).raters == ("seg01",)
    organs = read("curvas", curvas(tmp_path / "c"))
    assert organs.part("testing").names == ("UKCHLL002",) and len(organs.raters) == 3


def test_gradings(tmp_path: Path) -> None:
    """Kaggle's eyes, ISIC's lesions, GBCU's lines."""
    put(tmp_path, {"trainLabels.csv": "image,level\n10_left,4\n", "train/10_left.jpeg": None})
    put(tmp_path, {"retinopathy_solution.csv": "image,level,Usage\n1_right,0,Private\n"})
    eyes = read("kaggle_dr", tmp_path)
    assert eyes.paths == (tmp_path / "train" / "10_left.jpeg",)
    assert read("kaggle_dr", tmp_path, part="test").columns["eye"].tolist() == ["right"]
    table = "image_name,patient_id,lesion_id,sex,target\nISIC_1,IP_1,IL_7,male,1\n"
    skin = read(
        "siim_isic", put(tmp_path / "skin", {"ISIC_2020_Training_GroundTruth_v2.csv": table})
    )
    assert skin.labels is not None and skin.labels.majority().tolist() == [1]
    assert skin.columns["lesion"].tolist() == ["IL_7"]
    gall = read("gbcu", gbcu(tmp_path))
    assert gall.labels is not None and gall.labels.majority().tolist() == [2, 0]


def test_cifar100_and_svhn(tmp_path: Path) -> None:
    """The fine class is the second byte; SVHN's 10 is the digit 0; pixels are where they were."""
    record = bytes([4, 72]) + bytes(range(256)) * 12
    names = "\n".join(f"c{i}" for i in range(100))
    put(tmp_path, {"train.bin": record, "fine_label_names.txt": names})
    data = read("cifar100", tmp_path)
    assert data.labels is not None and data.images is not None
    assert data.labels.majority().tolist() == [72] and data.labels.class_names is not None
    assert data.images[0, 0, :3, 0].tolist() == [0, 1, 2]
    assert data.images[0, 1, 0].tolist() == [32, 32, 32]  # red, green, blue begin anew at 1024
    pixels = np.zeros((32, 32, 3, 2), np.uint8)
    pixels[5, 7, 2, 1] = 9
    savemat(tmp_path / "test_32x32.mat", {"X": pixels, "y": np.array([[10], [3]])})
    digits = read("svhn", tmp_path)
    assert digits.labels is not None and digits.images is not None
    assert digits.labels.majority().tolist() == [0, 3] and digits.images[1, 5, 7, 2] == 9


def test_the_older_readers_give_the_same_thing(tmp_path: Path) -> None:
    """MNIST, CIFAR-10, CIFAR-10N, MedMNIST by name: the labels of their own functions."""
    one = bytes([0, 0, 0, 1])
    images = bytes([0, 0, 8, 3]) + one * 3 + bytes([255])
    labels = bytes([0, 0, 8, 1]) + one + bytes([7])
    put(tmp_path, {"t10k-images-idx3-ubyte": images, "t10k-labels-idx1-ubyte": labels})
    digit = read("mnist", tmp_path, part="test")
    assert digit.labels is not None and digit.labels.majority().tolist() == [7]
    put(tmp_path, {"test_batch.bin": bytes([3]) + bytes(3072)})
    cat = read("cifar10", tmp_path, part="test").labels
    assert cat is not None and cat.class_names is not None and cat.class_names[3] == "cat"
    people = {"raters": [[3, 3, 5]], "clean": [3], "aggre": [3], "worse": [5]}
    np.savez(tmp_path / "n.npz", **{name: np.array(value) for name, value in people.items()})
    human = read("cifar10n", tmp_path / "n.npz")
    assert human.labels is not None and human.labels.counts[0, [3, 5]].tolist() == [2, 1]
    assert human.columns["worst"].tolist() == [5]
    parts = {f"{p}_images": np.zeros((2, 28, 28), np.uint8) for p in ("train", "val", "test")}
    parts |= {f"{p}_labels": np.array([[0, 1], [1, 1]]) for p in ("train", "val", "test")}
    np.savez(tmp_path / "chestmnist.npz", **parts)
    chest = read("medmnist", tmp_path / "chestmnist.npz", part="test")
    assert chest.positives.tolist() == [[0, 1], [1, 1]]
    assert len(read("medmnist", tmp_path / "chestmnist.npz")) == 6


def test_mixed_and_single_judgements(tmp_path: Path) -> None:
    """An unmixed image counts twice; attention checks are no judgements."""
    head = "id\thist\tnrater\t_mixed\t_org_y\t_org_id\t_ratio\tpartition"
    zeros = ",".join("0" * 9)
    text = f"{head}\n7\t9,{zeros}\t9\t0\t0\t15\t1.0\ttrain\n"
    mixed = read("mixed", put(tmp_path, {"mixed.txt": text}) / "mixed.txt")
    assert mixed.columns["sources"].tolist() == [[15, 15]] and mixed.names == ("7",)
    head = "annotator_id,is_attn_check,chosen_label,cifar10_test_test_idx"
    rows = "4,0,3,9\n5,0,3,9\n4,0,1,2\n4,1,8,-99999\n"
    judged = read("cifar10h_raters", put(tmp_path, {"raw.csv": f"{head}\n{rows}"}) / "raw.csv")
    assert judged.names == ("2", "9") and judged.labels is not None
    assert judged.labels.num_raters.tolist() == [1, 2]


# What is refused ----------------------------------------------------------------------------------

BROKEN: list[tuple[str, Callable[[Path], Path], str, str, str, str]] = [
    ("mhist", mhist, "annotations.csv", "SSA,6", "SSA,8", r"whole number 0 … 7; row 0 has '8'"),
    ("mhist", mhist, "annotations.csv", "SSA,6", "SSA,2", r"row 0 has SSA with 2 of 7 for SSA"),
    ("mhist", mhist, "annotations.csv", "Partition", "Part", r"columns Partition; got Image Name"),
    ("mhist", mhist, "annotations.csv", ",test", "", r"row 1 ends before the column Partition"),
    (
        "mhist",
        mhist,
        "annotations.csv",
        "MHIST_aaa",
        "../a",
        r"must lie in .*images; got '../a",
    ),
    ("mhist", mhist, "annotations.csv", "MHIST_aaa", "b", r"images: must hold b.png, which"),
    ("csaw_m", csaw_m, "labels/CSAW-M_test.csv", ";8;", ";9;", r"Expert_3 must be a whole number"),
    ("chestxray14", chestxray14, "Data_Entry_2017.csv", "Mass", "Moss", r"row 0 has 'Moss'"),
    ("chestxray14", chestxray14, "test_list.txt", "00000002", "3", r"00000002_000.png is not"),
    ("chexpert_test", chexpert, "groundtruth.csv", "patient", "p", r"studies must be those of"),
    (
        *("chexpert_test", chexpert, "radiologists/groundtruth/bc1_gt.csv", ",1,0", ",1,2"),
        r"bc1_gt.csv: Lung Lesion must be a whole number 0 … 1; row 0 has '2'",
    ),
    ("covid_ct", covid_ct, "Data-split/COVID/testCT_COVID.txt", "plain", "no", r"must hold no.png"),
    ("gbcu", gbcu, "train.txt", ",2", ",3", r"look like im00001.jpg,2; row 0 has 'im00001.jpg,3'"),
    ("gbcu", gbcu, "test.txt", "im00002", "im00001", r"rows 0 and 1 have 'im00001.jpg'"),
    ("mhist", mhist, "annotations.csv", "aab", "aaa", r"Image Name must be different in each row"),
    ("mhist", mhist, "annotations.csv", "MHIST_aab", '"b', r"separated by ','; line 3: unexpected"),
    ("csaw_m", csaw_m, "labels/CSAW-M_test.csv", ";4;4;4", ';"4"4;4', r"separated by ';'; line 2"),
    ("chexpert_test", chexpert, "groundtruth.csv", "\n", f"\n{STUDY},0,0\n", r"Study must be diff"),
]


@pytest.mark.parametrize(("name", "make", "file", "old", "new", "message"), BROKEN)
def test_what_breaks_a_rule_is_named(
    tmp_path: Path,
    name: str,
    make: Callable[[Path], Path],
    file: str,
    old: str,
    new: str,
    message: str,
) -> None:
    """The file, the rule, the row and the value."""
    place = make(tmp_path)
    text = (place / file).read_text(encoding="utf-8")
    assert old in text
    (place / file).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        read(name, place)


def test_what_is_missing_from_a_folder_is_named(tmp_path: Path) -> None:
    """A mask without an image, a case without a rater, a verdict nobody knows, a strange name."""
    (busi(tmp_path / "b") / "benign" / "benign (2).png").unlink()
    with pytest.raises(InvalidInputError, match=r"a mask must have an image; benign \(2\) has no"):
        read("busi", tmp_path / "b")
    (qubiq(tmp_path / "q") / "Validation" / "case02" / "task01_seg02.nii.gz").unlink()
    with pytest.raises(InvalidInputError, match=r"case02: must have the masks of seg01, seg02"):
        read("qubiq", tmp_path / "q")
    with pytest.raises(InvalidInputError, match=r"cases must have masks like task03_seg01.nii"):
        read("qubiq", tmp_path / "q", task=3)
    (curvas(tmp_path / "u") / "training_set" / "UKCHLL001" / "annotation_2.nii.gz").unlink()
    with pytest.raises(InvalidInputError, match=r"UKCHLL001: .*as other cases have; got ann.*_1, "):
        read("curvas", tmp_path / "u")
    with pytest.raises(InvalidInputError, match=r"must be NORMAL or .*; row 0 has 'MAYBE'"):
        read("chaksu", chaksu(tmp_path / "c", "maybe"))
    put(oct2017(tmp_path / "o"), {"OCT2017/test/CNV/DME-1-1.jpeg": None})
    with pytest.raises(InvalidInputError, match=r"look like CNV-1016042-1.jpeg; got DME-1-1.jpeg"):
        read("oct2017", tmp_path / "o")
    put(pocus(tmp_path / "p"), {"pocus_videos/linear/unknown.mp4": None})
    with pytest.raises(InvalidInputError, match=r"begin with Cov, .*; got unknown.mp4"):
        read("pocus", tmp_path / "p")


LAYOUTS: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "mhist": (mhist, ("images/MHIST_aaa.png",)),
    "csaw_m": (csaw_m, ()),
    "chestxray14": (chestxray14, ()),
    "chexpert_test": (chexpert, ("radiologists/groundtruth/bc1_gt.csv",)),
    "busi": (busi, ("benign/benign (2).png", "benign/benign (2)_mask_1.png")),
    "oct2017": (oct2017, ("OCT2017/test/CNV/CNV-7-1.jpeg",)),
    "covid_ct": (covid_ct, ("Images-processed/CT_NonCOVID/1.jpg",)),
    "pocus": (pocus, ("pocus_videos/convex/pneu-gred-7.mp4",)),
    "chaksu": (chaksu, ("Train/1.0_Original_Fundus_Images/Bosch/Image101.JPG",)),
    "qubiq": (qubiq, ("Training/case01/image.nii.gz", "Training/case01/task01_seg02.nii.gz")),
    "curvas": (curvas, ("testing_set/UKCHLL002/annotation_1.nii.gz",)),
    "gbcu": (gbcu, ()),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_systems_leave_behind_changes_nothing(tmp_path: Path, name: str) -> None:
    """Hidden files in every folder are no cases; an ending in capitals is the same ending."""
    make, capitals = LAYOUTS[name]
    place = make(tmp_path)
    before = read(name, place)
    for folder in [place, *(path for path in place.rglob("*") if path.is_dir())]:
        for file in sorted(folder.iterdir()):
            if file.is_file():
                (folder / f"._{file.name}").write_bytes(b"\0\5\x16\7")
        (folder / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
        (folder / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0")
        (folder / "__MACOSX").mkdir()
    for file in capitals:
        path, ending = place / file, "".join((place / file).suffixes[-2:])
        other = ending.upper() if ending.islower() else ending.lower()
        path.rename(path.with_name(path.name.removesuffix(ending) + other))
    after = read(name, place)
    assert [each.lower() for each in after.names] == [each.lower() for each in before.names]
    for what in ("patients", "parts"):
        assert (getattr(after, what) is None) == (getattr(before, what) is None)
    if before.labels is not None and after.labels is not None:
        assert after.labels.counts.tolist() == before.labels.counts.tolist()
    if before.masks is not None and after.masks is not None:
        assert [len(own) for own in after.masks] == [len(own) for own in before.masks]
    assert after.paths is None or all(path.is_file() for path in after.paths)


@pytest.mark.parametrize("ending", [".gz", ".GZ"])
def test_packed_tables_are_the_same_tables(tmp_path: Path, ending: str) -> None:
    """A table, the lists of a split and what says whose a recording is, each packed with gzip."""
    for make, name in ((mhist, "mhist"), (chestxray14, "chestxray14"), (pocus, "pocus")):
        folder = make(tmp_path / name)
        plain = read(name, folder)
        tables = [file for file in folder.rglob("*") if file.suffix in (".csv", ".txt")]
        assert tables
        for file in tables:
            file.with_name(file.name + ending).write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
        packed = read(name, folder)
        assert packed.names == plain.names
        for kind in ("parts", "patients"):
            ours, theirs = getattr(packed, kind), getattr(plain, kind)
            assert (ours is None) == (theirs is None)
            assert ours is None or ours.tolist() == theirs.tolist()


def test_idx_files_whose_ending_is_divided_by_a_dot(tmp_path: Path) -> None:
    """MNIST as some programs unpack it: train-images.idx3-ubyte."""
    one = bytes([0, 0, 0, 1])
    images = bytes([0, 0, 8, 3]) + one * 3 + bytes([255])
    labels = bytes([0, 0, 8, 1]) + one + bytes([7])
    put(tmp_path, {"train-images.idx3-ubyte": images, "train-labels.idx1-ubyte": labels})
    digit = read("mnist", tmp_path)
    assert digit.labels is not None and digit.labels.majority().tolist() == [7]


@pytest.mark.parametrize(
    ("name", "table", "text", "rule"),
    [
        ("siim_isic", "train.csv", "image_name,patient_id,target\na,IP_1,0\nb, ,1\n", "patient_id"),
        ("chestxray14", "Data_Entry_2017.csv", f"{FILMS}\na.png,Mass,0,,1,M\n", "Patient ID"),
    ],
)
def test_cases_without_a_patient_are_no_patient(
    tmp_path: Path, name: str, table: str, text: str, rule: str
) -> None:
    """Blanks would make one patient of many, and its intervals too wide or too narrow."""
    put(tmp_path, {table: text})
    with pytest.raises(InvalidInputError, match=rf"{table}: {rule} must not be empty; row [01] is"):
        read(name, tmp_path)


@pytest.mark.parametrize(
    "name", ["busi", "oct2017", "covid_ct", "pocus", "chaksu", "qubiq", "curvas"]
)
def test_folders_in_other_capitals_lose_no_case(tmp_path: Path, name: str) -> None:
    """A part that was unpacked as "training" was left out without a word."""
    place = LAYOUTS[name][0](tmp_path)
    before = read(name, place)
    lists = {"Data-split", "COVID", "NonCOVID"}  # of text files, which must be there
    folders = [path for path in place.rglob("*") if path.is_dir() and path.name not in lists]
    for folder in sorted(folders, key=lambda path: -len(path.parts)):
        if not folder.name.startswith(("case", "UKCHLL")):  # the names of cases
            folder.rename(folder.with_name(folder.name.swapcase()))
    after = read(name, place)
    assert after.names == before.names
    assert after.labels is None or after.labels.counts.tolist() == before.labels.counts.tolist()  # type: ignore[union-attr]
    assert after.parts is None or after.parts.tolist() == before.parts.tolist()  # type: ignore[union-attr]
    assert [len(own) for own in after.masks or ()] == [len(own) for own in before.masks or ()]


def test_what_is_no_text_is_named(tmp_path: Path) -> None:
    """Lists and tables in another encoding, and files that are not there at all."""
    place = covid_ct(tmp_path / "c")
    (place / "Data-split" / "COVID" / "testCT_COVID.txt").write_bytes(b"caf\xe9.png\n")
    with pytest.raises(InvalidInputError, match=r"testCT_COVID.txt: must be text in UTF-8"):
        read("covid_ct", place)
    (mhist(tmp_path / "m") / "annotations.csv").write_bytes(b"Image Name\n\xff\n")
    with pytest.raises(InvalidInputError, match=r"annotations.csv: must be text in UTF-8"):
        read("mhist", tmp_path / "m")
    for reader in (rw.datasets.read_idx, rw.datasets.read_lidc_ratings):
        with pytest.raises(InvalidInputError, match=r"nothing: no such file"):
            reader(tmp_path / "nothing")


def test_what_is_no_such_file_is_named(tmp_path: Path) -> None:
    """An empty place and a text in place of a MATLAB file are told apart, for every data set."""
    for name in SOURCES:
        with pytest.raises(InvalidInputError, match="nothing"):
            read(name, tmp_path / "nothing")
    put(tmp_path, {"test_32x32.mat": "no MATLAB"})
    with pytest.raises(InvalidInputError, match=r"test_32x32.mat: must be a MATLAB file"):
        read("svhn", tmp_path)
    with pytest.raises(InvalidInputError, match=r"name: must be one of mnist, .*; got 'imagenet'"):
        read("imagenet", tmp_path)


@pytest.mark.parametrize("name", SOURCES)
def test_the_wrong_place_is_named(tmp_path: Path, name: str) -> None:
    """An empty folder and a table of something else: the error says which, in one line."""
    (tmp_path / "empty").mkdir()
    put(tmp_path, {"other.csv": "a,b\n1,2\n"})
    for place in ("empty", "other.csv"):
        with pytest.raises(InvalidInputError, match=place) as found:
            read(name, tmp_path / place)
        said = str(found.value)
        assert "\n" not in said and "pickle" not in said
        # What is there is not said to be missing.
        assert not said.endswith(f"{place}: no such file")
        assert not said.endswith(f"{place}: no such folder")


def test_what_is_no_array_is_named(tmp_path: Path) -> None:
    """A text, a plain array in place of an archive, and what would run code are refused."""
    put(tmp_path, {"text.npy": "no array"})
    with pytest.raises(InvalidInputError, match=r"text.npy: must be an NPY file"):
        read("cifar10h", tmp_path / "text.npy")
    np.save(tmp_path / "plain.npy", np.zeros(3))
    with pytest.raises(InvalidInputError, match=r"plain.npy: cannot be read as NPZ"):
        read("cifar10n", tmp_path / "plain.npy")
    np.savez(tmp_path / "code.npz", images=np.array([{}], object))
    for name in ("medmnist", "lidc_nodules", "bubil_cells", "cifar10n"):
        with pytest.raises(InvalidInputError, match=r"code.npz: must hold plain arrays"):
            read(name, tmp_path / "code.npz")


def test_matlab_objects_are_not_made(tmp_path: Path) -> None:
    """Where X is a cell or a structure and no array of bytes, it is refused."""
    savemat(tmp_path / "test_32x32.mat", {"X": {"a": 1}, "y": np.array([[1]])})
    with pytest.raises(InvalidInputError, match=r"X must be bytes \(32, 32, 3, N\); got"):
        read("svhn", tmp_path)


def test_a_dataset_checks_its_rows() -> None:
    """Every part has a row per case; a part of the split that is not there is named."""
    with pytest.raises(InvalidInputError, match=r"patients: must have a row for each of 2 cases"):
        Dataset("x", ("a", "b"), patients=np.array(["p"]))
    with pytest.raises(InvalidInputError, match=r"part: must be one of none: there is no split"):
        Dataset("x", ("a", "b")).part("test")
    with pytest.raises(InvalidInputError, match=r"rows: must be a slice"):
        Dataset("x", ("a", "b"))[0]


def test_rows_of_a_dataset_stay_together(tmp_path: Path) -> None:
    """Some of the cases have their own labels, paths and columns."""
    data = read("pocus", pocus(tmp_path))[[3, 0]]
    assert data.names == ("Vir_y.png", "Cov-Atlas-Day+1.gif")
    assert data.labels is not None and data.labels.majority().tolist() == [3, 0]
    assert data.paths is not None and [path.name for path in data.paths] == list(data.names)
    assert data.columns["licence"].tolist() == ["", "CC BY-NC 4.0"]


def test_findings_go_into_evaluate_multilabel(tmp_path: Path) -> None:
    """Positives and those asked are what evaluate_multilabel takes."""
    head = "Patient ID,Image ID,Reader ID,Fracture,Pneumothorax,Airspace opacity,Nodule/mass,Set ID"
    rows = "".join(
        f"{film},{film}.png,{reader},NO,{'YES' if film % 2 else 'NO'},YES,NO,test\n"
        for film in range(6)
        for reader in range(3)
    )
    put(tmp_path, {"four.csv": f"{head}\n{rows}"})
    films = read("chestxray14_readers", tmp_path / "four.csv")
    probs = np.full((6, 4), 0.5)
    results = rw.evaluate_multilabel(
        probs, films.positives, films.asked, metrics="brier", groups=films.patients, resamples=0
    )
    assert results["brier"].value == pytest.approx(0.25)  # (1/2)², whoever is right


# The documentation, and the real files ------------------------------------------------------------


def test_the_page_has_the_table_of_the_catalog() -> None:
    """docs/datasets.md is what tools/make_dataset_docs.py would write."""
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "make_dataset_docs.py", "--check"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert run.returncode == 0, "run python tools/make_dataset_docs.py"


def test_every_reader_is_public() -> None:
    """The function that a row names is in raterwise.datasets."""
    assert all(source.function in rw.datasets.__all__ for source in SOURCES.values())


def test_published_readers_of_films(published: Path) -> None:
    """810 films by five readers, 4,376 by about three, as Nabulsi and Majkowska report them."""
    folder = published / "cxr14_readers"
    many = read("chestxray14_readers", folder / "all_findings_individual_readers.csv")
    few = read("chestxray14_readers", folder / "four_findings_individual_readers.csv")
    assert len(many) == 810 and len(many.findings) == 15
    assert len(few) == 4376 and len(few.findings) == 4
    assert many.asked.mean() == pytest.approx(5, abs=0.05)
    # 13,081 rows; 165 and 261 of them hedge about a pneumothorax and about a nodule.
    assert few.asked.sum(axis=0).tolist() == [13081, 13081 - 165, 13081, 13081 - 261]
    assert few.positives.sum(axis=0).tolist() == [351, 708, 5815, 1559]
    sure = read(
        "chestxray14_readers", folder / "four_findings_individual_readers.csv", hedge="present"
    )
    assert sure.positives.sum(axis=0).tolist() == [351, 708 + 165, 5815, 1559 + 261]


def test_published_mixed(published: Path) -> None:
    """Ten test labels per case, and one of each two in the ratio that is stated."""
    data = read("mixed", published / "mixed_mnist" / "mixed_mnist.t1_v2.txt.gz").part("test")
    assert data.labels is not None and set(data.labels.num_raters.tolist()) == {10}
    first, second = data.columns["classes"].T
    mixed = first != second
    share = data.labels.counts[np.arange(len(data)), first][mixed].mean() / 10
    assert share == pytest.approx(data.columns["ratio"][mixed].mean(), abs=0.01)

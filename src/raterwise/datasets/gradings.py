"""Images beside a table of grades: Kaggle's diabetic retinopathy, SIIM-ISIC melanoma, GBCU.

Diabetic retinopathy: EyePACS and Kaggle 2015. SIIM-ISIC: Rotemberg et al. 2021,
https://doi.org/10.1038/s41597-021-00815-z. GBCU: Basu et al., CVPR 2022,
https://doi.org/10.1109/CVPR52688.2022.02022. One label per image; none comes with raterwise.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np

from raterwise.datasets.dataset import Dataset
from raterwise.datasets.sheets import (
    column,
    distinct,
    has_file,
    image_paths,
    keys,
    lines_of,
    patients,
    read_rows,
    texts,
    whole,
)
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.rules import choose

DR_GRADES = ("none", "mild", "moderate", "severe", "proliferative")
DR_TABLES = {
    "train": ("trainLabels.csv",),
    "test": ("retinopathy_solution.csv", "testLabels15.csv"),
}
ISIC_TABLES = (
    "ISIC_2020_Training_GroundTruth_v2.csv",
    "ISIC_2020_Training_GroundTruth.csv",
    "train.csv",
)
ISIC_IMAGES = ("jpeg/train", "ISIC_2020_Training_JPEG/train", "train")
GBCU_CLASSES = ("normal", "benign", "malignant")


def read_kaggle_dr(
    folder: str | PathLike[str], part: Literal["train", "test"] = "train"
) -> Dataset:
    """Return Kaggle's photographs of the retina with five grades of diabetic retinopathy.

    Parameters
    ----------
    folder : str or path
        Holds trainLabels.csv (image, level), or for the test images retinopathy_solution.csv
        (image, level, Usage), which Kaggle published afterwards; and, where you have them, the
        photographs in train or test, such as 10_left.jpeg.
    part : {"train", "test"}, default "train"
        The photographs to read.

    Returns
    -------
    Dataset
        Labels: one clinician's grade per eye, 0 … 4. Patients: the two eyes of one belong together.
        Columns: `eye` (left, right).

    See Also
    --------
    datasets.read_medmnist : RetinaMNIST has the same grades.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "trainLabels.csv").write_text("image,level\\n10_left,0\\n10_right,2\\n")
    >>> eyes = read_kaggle_dr(folder)
    >>> eyes.labels.majority(), eyes.patients.tolist(), eyes.columns["eye"].tolist()
    (array([0, 2]), ['10', '10'], ['left', 'right'])
    """
    tables = DR_TABLES[choose("part", part, tuple(DR_TABLES))]
    file = _first(Path(folder), tables)
    rows = read_rows(file, ("image", "level"))
    names = keys(file, rows, "image")
    eyes = [re.fullmatch(r"([0-9]+)_(left|right)", name) for name in names]
    for name, eye in zip(names, eyes, strict=True):
        if not eye:
            raise InvalidInputError(f"{file}: image must look like 10_left; got {name!r}")
    found = [eye for eye in eyes if eye]
    grades = whole(file, rows, "level", 0, len(DR_GRADES) - 1)
    return Dataset(
        "Kaggle diabetic retinopathy",
        tuple(names),
        Labels.from_classes(grades, len(DR_GRADES), class_names=DR_GRADES),
        patients=texts(eye[1] for eye in found),
        parts=np.full(len(names), part),
        paths=image_paths(Path(folder) / part, [f"{name}.jpeg" for name in names], table=file),
        columns={"eye": texts(eye[2] for eye in found)},
    )


def read_siim_isic(folder: str | PathLike[str]) -> Dataset:
    """Return the training images of the SIIM-ISIC melanoma challenge: skin lesions, 33,126 of them.

    Parameters
    ----------
    folder : str or path
        Holds ISIC_2020_Training_GroundTruth_v2.csv, ISIC_2020_Training_GroundTruth.csv or Kaggle's
        train.csv (image_name, patient_id, target, …), and, where you have them, the images in
        jpeg/train, ISIC_2020_Training_JPEG/train or train, such as ISIC_2637011.jpg.

    Returns
    -------
    Dataset
        Labels: benign or malignant, one per image, by histology where there was one. Patients.
        Columns: `lesion`, of the second version of the table.

    See Also
    --------
    datasets.read_medmnist : DermaMNIST has skin lesions, too.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> text = "image_name,patient_id,target\\nISIC_2637011,IP_7279968,0\\n"
    >>> _ = (folder / "train.csv").write_text(text)
    >>> read_siim_isic(folder).patients.tolist()
    ['IP_7279968']
    """
    place = Path(folder)
    file = _first(place, ISIC_TABLES)
    rows = read_rows(file, ("image_name", "patient_id", "target"))
    names = keys(file, rows, "image_name")
    images = next((place / name for name in ISIC_IMAGES if (place / name).is_dir()), place / "none")
    lesions = {"lesion": texts(column(rows, "lesion_id"))} if "lesion_id" in rows[0] else {}
    return Dataset(
        "SIIM-ISIC",
        tuple(names),
        Labels.from_classes(
            whole(file, rows, "target", 0, 1), 2, class_names=("benign", "malignant")
        ),
        patients=patients(file, rows, "patient_id"),
        paths=image_paths(images, [f"{name}.jpg" for name in names], table=file),
        columns=lesions,
    )


def read_gbcu(folder: str | PathLike[str]) -> Dataset:
    """Return GBCU: 1,255 gallbladder ultrasound images, normal, benign or malignant.

    Parameters
    ----------
    folder : str or path
        Holds train.txt and test.txt with lines such as im00001.jpg,2 (0 normal, 1 benign, 2
        malignant), and, where you have them, the images in imgs.

    Returns
    -------
    Dataset
        Labels: one per image, from biopsy. Parts: the official split, by patient; which images are
        of one patient is not published, so intervals are too narrow.

    See Also
    --------
    datasets.read_busi : breast ultrasound.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "train.txt").write_text("im00001.jpg,2\\n")
    >>> _ = (folder / "test.txt").write_text("im00002.jpg,0\\n")
    >>> read_gbcu(folder).part("test").labels.majority()
    array([0])
    """
    place = Path(folder)
    names, classes, parts = [], [], []
    for part in ("train", "test"):
        for row, line in enumerate(lines_of(place / f"{part}.txt")):
            found = re.fullmatch(r"([^,]+),\s*([0-2])", line)
            if not found:
                raise InvalidInputError(
                    f"{place / part}.txt: lines must look like im00001.jpg,2; "
                    f"row {row} has {line!r}"
                )
            names.append(found[1].strip())
            classes.append(int(found[2]))
            parts.append(part)
    distinct(f"{place}: train.txt and test.txt", "images", names)
    return Dataset(
        "GBCU",
        tuple(names),
        Labels.from_classes(np.array(classes), len(GBCU_CLASSES), class_names=GBCU_CLASSES),
        parts=texts(parts),
        paths=image_paths(place / "imgs", names, table=place / "train.txt"),
    )


def _first(place: Path, names: tuple[str, ...]) -> Path:
    """Return the first of several files that is there."""
    for name in names:
        if has_file(place, name):
            return place / name
    raise InvalidInputError(f"{place}: must hold {' or '.join(names)}; it does not")

"""Folders with one mask per rater: QUBIQ, CURVAS, Chákṣu. Files are named, not opened.

QUBIQ: Li et al. 2024, https://arxiv.org/abs/2405.18435. CURVAS: Riera-Marín et al. 2024,
https://doi.org/10.5281/zenodo.11147560. Chákṣu: Kumar et al. 2023,
https://doi.org/10.1038/s41597-023-01943-4. None of them comes with raterwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from raterwise.datasets.dataset import Dataset
from raterwise.datasets.sheets import (
    below,
    column,
    files_in,
    folder_in,
    hidden,
    read_rows,
    required,
    texts,
)
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels

NIFTI = (".nii.gz", ".nii")
CURVAS_SETS = {f"{part}_set": part for part in ("training", "validation", "testing")}
CAMERAS = ("Bosch", "Forus", "Remidio")
EXPERTS = tuple(f"Expert {i}" for i in range(1, 6))
CHAKSU_CLASSES = ("normal", "glaucoma suspect")
VERDICTS = {"NORMAL": 0, "GLAUCOMA SUSPECT": 1, "GLAUCOMA SUSUPECT": 1}
"""Two of the experts misspell the second throughout."""


def read_qubiq(folder: str | PathLike[str], task: int = 1) -> Dataset:
    """Return the cases of one QUBIQ structure with the masks of its raters.

    Parameters
    ----------
    folder : str or path
        Of one structure, such as brain-growth: case01, case02 … below it, or below Training and
        Validation, each with image.nii.gz and task01_seg01.nii.gz, task01_seg02.nii.gz ….
    task : int, default 1
        Which of the structure's tasks, from 1.

    Returns
    -------
    Dataset
        Paths and masks; all cases must have the same raters. Parts: training and validation, where
        the folder has them. Each case is a patient. `raterwise segment` and `segmentation.Case`
        take such files.

    See Also
    --------
    segmentation.evaluate : evaluates probabilities against all masks.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> (folder / "Training" / "case01").mkdir(parents=True)
    >>> for name in ("image", "task01_seg01", "task01_seg02"):
    ...     _ = (folder / "Training" / "case01" / f"{name}.nii.gz").write_bytes(b"")
    >>> cases = read_qubiq(folder)
    >>> cases.names, cases.raters, cases.masks[0][1].name
    (('case01',), ('seg01', 'seg02'), 'task01_seg02.nii.gz')
    """
    parts = {"Training": "training", "Validation": "validation"}
    return _outlined(
        "QUBIQ", folder, parts, rf"task0*{task}_(seg[0-9]+)", f"task{task:02d}_seg01.nii.gz"
    )


def read_curvas(folder: str | PathLike[str]) -> Dataset:
    """Return the CT scans of CURVAS with organs outlined by three radiologists.

    Parameters
    ----------
    folder : str or path
        Holds a folder per patient, such as UKCHLL001, with image.nii.gz and annotation_1.nii.gz,
        annotation_2.nii.gz, annotation_3.nii.gz; or training_set, validation_set and testing_set
        of such folders.

    Returns
    -------
    Dataset
        Paths and masks (0 background, 1 pancreas, 2 kidney, 3 liver), patients, and parts where the
        folder has them.

    See Also
    --------
    segmentation.evaluate : evaluates probabilities against all masks.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> (folder / "UKCHLL001").mkdir()
    >>> for name in ("image", "annotation_1", "annotation_2", "annotation_3"):
    ...     _ = (folder / "UKCHLL001" / f"{name}.nii.gz").write_bytes(b"")
    >>> cases = read_curvas(folder)
    >>> cases.patients.tolist(), cases.raters
    (['UKCHLL001'], ('annotation_1', 'annotation_2', 'annotation_3'))
    """
    return _outlined("CURVAS", folder, CURVAS_SETS, r"(annotation_[0-9]+)", "annotation_1.nii.gz")


def _outlined(
    name: str, folder: str | PathLike[str], parts: Mapping[str, str], mask: str, such: str
) -> Dataset:
    """Return cases whose raters are the same people throughout, by the names of their masks.

    `parts` are the folders of the split, where they are there, and what it calls them; `such` is
    the name of a mask as people would say it.
    """
    place = required(folder, "folder")
    there = [part for part in parts if below(place, part).is_dir()]
    cases = [
        (case, parts.get(part)) for part in there or ["."] for case in _cases(below(place, part))
    ]
    if not cases:
        raise InvalidInputError(f"{place}: must hold a folder per case; it holds none")
    images, masks = [], []
    for case, _ in cases:
        called = {re.sub(r"\.nii(\.gz)?$", "", f.name.lower()): f for f in files_in(case, NIFTI)}
        if "image" not in called:
            raise InvalidInputError(f"{case}: must hold image.nii.gz; it does not")
        images.append(called["image"])
        found = ((re.fullmatch(mask, stem), file) for stem, file in called.items())
        masks.append({match[1]: file for match, file in found if match})
    raters = tuple(sorted({rater for own in masks for rater in own}))
    if not raters:
        raise InvalidInputError(f"{place}: cases must have masks like {such}; none has")
    for (case, _), own in zip(cases, masks, strict=True):
        if tuple(sorted(own)) != raters:
            raise InvalidInputError(
                f"{case}: must have the masks of {', '.join(raters)}, as other cases have; "
                f"got {', '.join(sorted(own)) or 'none'}"
            )
    names = [case.name for case, _ in cases]
    return Dataset(
        name,
        tuple(names),
        patients=texts(names),
        parts=texts(part for _, part in cases) if there else None,
        paths=tuple(images),
        masks=tuple(tuple(own[rater] for rater in raters) for own in masks),
        raters=raters,
    )


def _cases(place: Path) -> list[Path]:
    inside = (path for path in required(place, "folder").iterdir() if path.is_dir())
    return sorted(path for path in inside if not hidden(path))


def read_chaksu(folder: str | PathLike[str], structure: str = "Disc") -> Dataset:
    """Return Chákṣu: 1,345 photographs of the retina, graded and outlined by five experts.

    Parameters
    ----------
    folder : str or path
        Holds Train and Test as published, each with 1.0_Original_Fundus_Images/CAMERA,
        3.0_Doctors_Annotations_Binary_OD_OC/Expert 1 … Expert 5/CAMERA/Disc and Cup, and
        6.0_Glaucoma_Decision/Glaucoma_Decision_Comparison_CAMERA_majority.csv (Images, Expert.1 …
        Expert.5), for the cameras Bosch, Forus and Remidio. What is not there is left out.
    structure : {"Disc", "Cup"}, default "Disc"
        The outlines to read.

    Returns
    -------
    Dataset
        Labels: normal or glaucoma suspect, by five experts who are the same throughout. Paths,
        parts (train, test), column `camera`; masks where every expert's outline is there. Patients
        are not published.

    See Also
    --------
    datasets.read_mhist : seven votes per image.

    Examples
    --------
    >>> train = getfixture("tmp_path") / "Train"
    >>> (train / "1.0_Original_Fundus_Images" / "Bosch").mkdir(parents=True)
    >>> _ = (train / "1.0_Original_Fundus_Images" / "Bosch" / "Image101.JPG").write_bytes(b"")
    >>> (train / "6.0_Glaucoma_Decision").mkdir()
    >>> file = train / "6.0_Glaucoma_Decision" / "Glaucoma_Decision_Comparison_Bosch_majority.csv"
    >>> head = "Images,Expert.1,Expert.2,Expert.3,Expert.4,Expert.5,Majority Decision"
    >>> row = "Image101.jpg-Image101-1.jpg,NORMAL,NORMAL,GLAUCOMA  SUSUPECT,NORMAL,NORMAL,NORMAL"
    >>> _ = file.write_text(f"{head}\\n{row}\\n")
    >>> read_chaksu(getfixture("tmp_path")).labels.counts
    array([[4, 1]])
    """
    if structure not in ("Disc", "Cup"):
        raise InvalidInputError(f"structure: must be Disc or Cup; got {structure!r}")
    place = required(folder, "folder")
    names, ratings, parts, cameras, paths, masks = [], [], [], [], [], []
    for part in ("Train", "Test"):
        for camera in CAMERAS:
            images = below(place, part, "1.0_Original_Fundus_Images", camera)
            if not images.is_dir():
                continue
            verdicts = _verdicts(below(place, part, "6.0_Glaucoma_Decision"), camera)
            outlines = below(place, part, "3.0_Doctors_Annotations_Binary_OD_OC")
            drawn = _drawn(outlines, camera, structure)
            for file in files_in(images):
                key = file.stem.lower()
                if key not in verdicts:
                    raise InvalidInputError(
                        f"{images}: every photograph must have a decision; {file.name} has none"
                    )
                names.append(f"{part}/{camera}/{file.stem}")
                ratings.append(verdicts[key])
                parts.append(part.lower())
                cameras.append(camera)
                paths.append(file)
                masks.append(tuple(own[key] for own in drawn if key in own))
    if not names:
        raise InvalidInputError(f"{place}: must hold Train/1.0_Original_Fundus_Images; it does not")
    complete = all(len(own) == len(EXPERTS) for own in masks)
    return Dataset(
        "Chákṣu",
        tuple(names),
        Labels.from_ratings(np.array(ratings), 2, class_names=CHAKSU_CLASSES),
        parts=texts(parts),
        paths=tuple(paths),
        masks=tuple(masks) if complete else None,
        raters=EXPERTS,
        columns={"camera": texts(cameras)},
    )


def _verdicts(place: Path, camera: str) -> dict[str, list[int]]:
    """Return each photograph's five decisions, by its name in small letters without an ending."""
    file = place / f"Glaucoma_Decision_Comparison_{camera}_majority.csv"
    columns = [f"Expert.{i}" for i in range(1, 6)]
    rows = read_rows(file, ("Images", *columns))
    found = {}
    for number, (row, name) in enumerate(zip(rows, column(rows, "Images"), strict=True)):
        said = [" ".join(row[expert].upper().split()) for expert in columns]
        if strange := [word for word in said if word not in VERDICTS]:
            raise InvalidInputError(
                f"{file}: decisions must be NORMAL or GLAUCOMA SUSPECT; "
                f"row {number} has {strange[0]!r}"
            )
        # "Image101.jpg-Image101-1.jpg": the photograph, then the copy that was shown.
        found[Path(name.lower().split("-")[0]).stem] = [VERDICTS[word] for word in said]
    return found


def _drawn(place: Path, camera: str, structure: str) -> Iterable[dict[str, Path]]:
    """Return each expert's masks by photograph."""
    found = []
    for expert in EXPERTS:
        own: dict[str, Path] = {}
        if (inner := below(place, expert, camera)).is_dir():
            inner = folder_in(inner, structure)
            own = {file.stem.lower(): file for file in files_in(inner)}
        found.append(own)
    return found

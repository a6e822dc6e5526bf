"""Chest films: ChestX-ray14, its two sets of individual readers, and the test labels of CheXpert.

ChestX-ray14: Wang et al., CVPR 2017, https://doi.org/10.1109/CVPR.2017.369 (labels mined from
reports). Readers: Nabulsi et al., Scientific Reports 2021 (all 14 findings), and Majkowska et al.,
Radiology 2020 (four findings), https://doi.org/10.1148/radiol.2019191293. CheXpert: Irvin et al.,
AAAI 2019, https://doi.org/10.1609/aaai.v33i01.3301590. None of them comes with raterwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np

from raterwise.datasets.dataset import Dataset
from raterwise.datasets.sheets import (
    coded,
    column,
    files_in,
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

FINDINGS = (
    *("Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia"),
    *("Pneumothorax", "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening"),
    "Hernia",
)
TABLES = ("Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv")
LISTS = {"train": "train_val_list.txt", "test": "test_list.txt"}
ABSENT_PRESENT = ("absent", "present")
ANSWERS = {"NO": 0, "YES": 1}
HEDGED = {"missing": -1, "absent": 0, "present": 1}
ALL_FOURTEEN = (*(name.replace("_", " ") for name in FINDINGS), "Other")
FOUR = ("Fracture", "Pneumothorax", "Airspace opacity", "Nodule/mass")


def read_chestxray14(folder: str | PathLike[str]) -> Dataset:
    """Return ChestX-ray14: 112,120 films with 14 findings, mined from the reports.

    Parameters
    ----------
    folder : str or path
        Holds Data_Entry_2017_v2020.csv or Data_Entry_2017.csv (Image Index, Finding Labels with
        bars between them, Patient ID, …); if you have them, train_val_list.txt and test_list.txt,
        and the films of the twelve archives in images.

    Returns
    -------
    Dataset
        Findings: one label each, of a program that read the report; nobody rated the film for it.
        Patients, and the official split where the lists are there.

    See Also
    --------
    datasets.read_chestxray14_readers : radiologists who looked at some of the films.
    evaluate_multilabel : takes `positives` and `asked`.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> text = "Image Index,Finding Labels,Patient ID\\n00000001_000.png,Mass|Hernia,1\\n"
    >>> _ = (folder / "Data_Entry_2017.csv").write_text(text)
    >>> films = read_chestxray14(folder)
    >>> films.positives.sum(), films.patients.tolist()
    (np.int64(2), ['1'])
    """
    place = Path(folder)
    file = next((place / name for name in TABLES if has_file(place, name)), place / TABLES[-1])
    rows = read_rows(file, ("Image Index", "Finding Labels", "Patient ID"))
    names = keys(file, rows, "Image Index")
    seen = np.zeros((len(rows), len(FINDINGS)), np.int64)
    where = {name: i for i, name in enumerate(FINDINGS)}
    for row, said in enumerate(column(rows, "Finding Labels")):
        for name in said.split("|"):
            if name != "No Finding":
                seen[row, coded(file, "Finding Labels", [name], where)[0]] = 1
    return Dataset(
        "ChestX-ray14",
        tuple(names),
        findings={
            name: Labels.from_classes(seen[:, i], 2, class_names=ABSENT_PRESENT)
            for i, name in enumerate(FINDINGS)
        },
        patients=patients(file, rows, "Patient ID"),
        parts=_split_by_lists(place, names),
        paths=image_paths(place / "images", names, table=file),
    )


def _split_by_lists(place: Path, names: Sequence[str]) -> np.ndarray | None:
    """Return the part of each film; None where the lists are not there."""
    if not all(has_file(place, name) for name in LISTS.values()):
        return None
    files = {part: place / name for part, name in LISTS.items()}
    part_of = {name: part for part, file in files.items() for name in lines_of(file)}
    if missing := [name for name in names if name not in part_of]:
        raise InvalidInputError(
            f"{place}: every film must be in {' or '.join(LISTS.values())}; {missing[0]} is not"
        )
    return texts(part_of[name] for name in names)


def read_chestxray14_readers(
    csv_file: str | PathLike[str], hedge: Literal["missing", "present", "absent"] = "missing"
) -> Dataset:
    """Return what individual radiologists saw on films of ChestX-ray14.

    Parameters
    ----------
    csv_file : str or path
        test_individual_readers.csv of all_findings_expert_labels (810 films, five readers each, 14
        findings and "Other") or individual_readers.csv of four_findings_expert_labels (4,376 films,
        about three readers each: fracture, pneumothorax, airspace opacity, nodule or mass), with a
        row per film and reader: Image ID, Patient ID, Reader ID, and YES, NO or HEDGE for each
        finding.
    hedge : {"missing", "present", "absent"}, default "missing"
        What HEDGE, "uncertain if present", counts as. By default nothing: `asked` is then smaller.

    Returns
    -------
    Dataset
        Findings with the ratings of each reader; patients; parts of the second file (its Set ID).

    See Also
    --------
    datasets.read_chestxray14 : the labels of all films.
    evaluate_multilabel : takes `positives` and `asked`.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "four_findings_individual_readers.csv"
    >>> head = "Patient ID,Image ID,Reader ID,Fracture,Pneumothorax,Airspace opacity,Nodule/mass"
    >>> _ = file.write_text(f"{head}\\n13,a.png,7,NO,YES,YES,NO\\n13,a.png,8,NO,NO,YES,NO\\n")
    >>> films = read_chestxray14_readers(file)
    >>> films.positives.tolist(), films.asked.tolist()
    ([[0, 1, 2, 0]], [[2, 2, 2, 2]])
    """
    file = Path(csv_file)
    answers = ANSWERS | {"HEDGE": HEDGED[choose("hedge", hedge, tuple(HEDGED))]}
    rows = read_rows(file, ("Image ID", "Patient ID", "Reader ID"))
    sets = [names for names in (ALL_FOURTEEN, FOUR) if all(name in rows[0] for name in names)]
    if not sets:
        raise InvalidInputError(
            f"{file}: must have the columns {', '.join(FOUR)}, or those of all 14 findings; "
            f"got {', '.join(rows[0])}"
        )
    films, readers = column(rows, "Image ID"), column(rows, "Reader ID")
    order = list(dict.fromkeys(films))
    first = dict(zip(reversed(films), reversed(rows), strict=True))
    findings = {
        name: Labels.from_long(
            films,
            readers,
            coded(file, name, column(rows, name), answers),
            2,
            class_names=ABSENT_PRESENT,
            order=order,
            missing=-1,
            duplicates="keep",  # as published
        )
        for name in sets[0]
    }
    return Dataset(
        "ChestX-ray14 readers",
        tuple(order),
        findings=findings,
        patients=texts(first[film]["Patient ID"].strip() for film in order),
        parts=texts(first[film]["Set ID"].strip() for film in order)
        if "Set ID" in rows[0]
        else None,
    )


def read_chexpert_test(folder: str | PathLike[str]) -> Dataset:
    """Return the 500 test studies of CheXpert with each of eight radiologists' labels.

    Parameters
    ----------
    folder : str or path
        The repository rajpurkarlab/cheXpert-test-set-labels: groundtruth.csv and the files of the
        readers in radiologists/benchmark_radiologists (bc4, bc6, bc8) and radiologists/groundtruth
        (bc1_gt, bc2_gt, bc3_gt, bc5_gt, bc7_gt), each with Study and 14 columns of 0 and 1. Their
        columns are not in the same order; they are taken by name.

    Returns
    -------
    Dataset
        Findings with the ratings of each reader; patients. Columns: `majority` (N, 14), the
        published majority of the five `groundtruth` readers, and of each finding.

    See Also
    --------
    datasets.read_chestxray14_readers : readers of another set of films.
    evaluate_multilabel : takes `positives` and `asked`.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> readers = folder / "radiologists" / "benchmark_radiologists"
    >>> readers.mkdir(parents=True)
    >>> for name, seen in (
    ...     ("groundtruth.csv", 1),
    ...     ("radiologists/benchmark_radiologists/x.csv", 0),
    ... ):
    ...     text = f"Study,Edema\\nCheXpert-v1.0/test/patient64741/study1,{seen}\\n"
    ...     _ = (folder / name).write_text(text)
    >>> studies = read_chexpert_test(folder)
    >>> studies.findings["Edema"].counts.tolist(), studies.columns["majority"].tolist()
    ([[1, 0]], [[1]])
    """
    place = Path(folder)
    truth_file = place / "groundtruth.csv"
    truth = read_rows(truth_file, ("Study",))
    findings = [name for name in truth[0] if name not in ("Study", "")]
    studies = keys(truth_file, truth, "Study")
    rater_files = [
        file
        for kind in ("benchmark_radiologists", "groundtruth")
        if (place / "radiologists" / kind).is_dir()
        for file in files_in(place / "radiologists" / kind, (".csv",))
    ]
    if not rater_files:
        raise InvalidInputError(f"{place}: must hold radiologists/benchmark_radiologists/*.csv")
    said = {name: ([], [], []) for name in findings}  # type: dict[str, tuple[list[str], list[str], list[int]]]
    for file in rater_files:
        rows = read_rows(file, ("Study", *findings))
        seen = column(rows, "Study")
        if unknown := sorted(set(seen) - set(studies)):
            raise InvalidInputError(
                f"{file}: studies must be those of groundtruth.csv; {unknown[0]}"
            )
        for name in findings:
            cases, readers, answers = said[name]
            cases += seen
            readers += [file.stem.removesuffix("_gt")] * len(rows)
            answers += whole(file, rows, name, 0, 1).tolist()
    majority = [whole(truth_file, truth, name, 0, 1) for name in findings]
    return Dataset(
        "CheXpert test",
        tuple(studies),
        findings={
            name: Labels.from_long(*said[name], 2, class_names=ABSENT_PRESENT, order=studies)
            for name in findings
        },
        patients=texts(_patient(truth_file, study) for study in studies),
        columns={"majority": np.stack(majority, axis=1)},
    )


def _patient(file: Path, study: str) -> str:
    found = re.search(r"(?:^|/)(patient[0-9]+)/", study)
    if not found:
        raise InvalidInputError(
            f"{file}: Study must look like CheXpert-v1.0/test/patient64741/study1; got {study!r}"
        )
    return found[1]

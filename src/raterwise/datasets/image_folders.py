"""Images in folders by class: BUSI, POCUS, Covid-CT, OCT2017. One label per image.

BUSI: Al-Dhabyani et al. 2020, https://doi.org/10.1016/j.dib.2019.104863. POCUS: Born et al. 2021,
https://doi.org/10.3390/app11020672. Covid-CT: Zhao et al. 2020, https://arxiv.org/abs/2003.13865.
OCT2017: Kermany et al. 2018, https://doi.org/10.1016/j.cell.2018.02.010. None comes with raterwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from raterwise.datasets.dataset import Dataset
from raterwise.datasets.sheets import (
    IMAGES,
    below,
    column,
    files_in,
    folder_in,
    has_file,
    image_paths,
    lines_of,
    read_rows,
    required,
    texts,
)
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels

BUSI_CLASSES = ("normal", "benign", "malignant")
COVID_CLASSES = ("NonCOVID", "COVID")
COVID_LISTS = {"train": "train", "validation": "val", "test": "test"}
OCT_CLASSES = ("CNV", "DME", "DRUSEN", "NORMAL")
OCT_PARTS = {"train": "train", "val": "validation", "test": "test"}
POCUS_CLASSES = {
    "cov": "covid",
    "pneu": "bacterial pneumonia",
    "reg": "regular",
    "vir": "viral pneumonia",
}
NOBODY = ("n/a", "na", "nd", "nan", "none", "unknown", "?", "-")
RECORDINGS = (*IMAGES, ".mp4", ".avi", ".mov", ".mpeg", ".mpg")


def _one_label(
    name: str,
    place: Path,
    paths: Sequence[Path],
    classes: Sequence[int],
    class_names: Sequence[str],
    **rest: Any,
) -> Dataset:
    """Return images with one class each; a case is called as its file is."""
    if not paths:
        raise InvalidInputError(f"{place}: must hold images of {name}; it holds none")
    labels = Labels.from_classes(
        np.asarray(classes, np.int64), len(class_names), class_names=class_names
    )
    return Dataset(name, tuple(path.name for path in paths), labels, paths=tuple(paths), **rest)


def read_busi(folder: str | PathLike[str]) -> Dataset:
    """Return BUSI: 780 breast ultrasound images, normal, benign or malignant, with outlines.

    Parameters
    ----------
    folder : str or path
        Dataset_BUSI_with_GT, or what holds it: normal, benign and malignant with files such as
        "benign (1).png" and the outlines "benign (1)_mask.png", "benign (1)_mask_1.png".

    Returns
    -------
    Dataset
        Labels: one per image. Masks: of each image its lesions, all drawn by the same person; an
        image may have several. No patients are published, and there are near-duplicates: keep
        images that look alike on one side of a split.

    See Also
    --------
    datasets.read_medmnist : BreastMNIST is made of these images.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> for kind in ("normal", "benign", "malignant"):
    ...     (folder / kind).mkdir()
    ...     for end in ("", "_mask"):
    ...         _ = (folder / kind / f"{kind} (1){end}.png").write_bytes(b"")
    >>> busi = read_busi(folder)
    >>> busi.names, [path.name for path in busi.masks[1]]
    (('normal (1).png', 'benign (1).png', 'malignant (1).png'), ['benign (1)_mask.png'])
    """
    place = folder_in(folder, "Dataset_BUSI_with_GT", ".")
    paths, classes, masks = [], [], []
    for k, kind in enumerate(BUSI_CLASSES):
        files = files_in(below(place, kind), (".png",))
        drawn: dict[str, list[Path]] = {}
        for file in files:
            if found := re.fullmatch(r"(.+)_mask(?:_[0-9]+)?", file.stem):
                drawn.setdefault(found[1], []).append(file)
        images = [file for file in files if not re.search(r"_mask(_[0-9]+)?$", file.stem)]
        if strange := sorted(set(drawn) - {file.stem for file in images}):
            raise InvalidInputError(
                f"{place / kind}: a mask must have an image; {strange[0]} has none"
            )
        if bare := [file.name for file in images if file.stem not in drawn]:
            raise InvalidInputError(
                f"{place / kind}: an image must have a mask; {bare[0]} has none"
            )
        paths += images
        classes += [k] * len(images)
        masks += [tuple(drawn[file.stem]) for file in images]
    return _one_label("BUSI", place, paths, classes, BUSI_CLASSES, masks=tuple(masks))


def read_oct2017(folder: str | PathLike[str]) -> Dataset:
    """Return OCT2017: retinal OCT images with neovascularisation, oedema, drusen or none of them.

    Parameters
    ----------
    folder : str or path
        OCT2017 (later CellData/OCT), or what holds it: train, val and test, each with CNV, DME,
        DRUSEN and NORMAL and files such as CNV-1016042-1.jpeg (class, patient, number). Parts that
        are not there are left out.

    Returns
    -------
    Dataset
        Labels: one per image, agreed by several graders who are not published. Patients: the number
        in the name, whatever the class, so that nobody's two eyes are taken for two people. Parts:
        the official split, of which some versions have people on both sides; check your copy.

    See Also
    --------
    datasets.read_medmnist : OCTMNIST is made of these images.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> for kind in ("CNV", "DME", "DRUSEN", "NORMAL"):
    ...     (folder / "test" / kind).mkdir(parents=True)
    ...     _ = (folder / "test" / kind / f"{kind}-1016042-1.jpeg").write_bytes(b"")
    >>> scans = read_oct2017(folder)
    >>> scans.patients.tolist()[:2], scans.parts.tolist()[:2]
    (['1016042', '1016042'], ['test', 'test'])
    """
    place = folder_in(folder, "OCT2017", "OCT2017 ", "CellData/OCT", "OCT", ".")
    paths, classes, parts, patients = [], [], [], []
    for part, called in OCT_PARTS.items():
        if not below(place, part).is_dir():
            continue
        for k, kind in enumerate(OCT_CLASSES):
            for file in files_in(below(place, part, kind), (".jpeg", ".jpg", ".png")):
                found = re.fullmatch(r"([A-Z]+)-([0-9]+)-([0-9]+)", file.stem)
                if not found or found[1] != kind:
                    raise InvalidInputError(
                        f"{file.parent}: files must look like {kind}-1016042-1.jpeg; "
                        f"got {file.name}"
                    )
                # Of the person, whatever is on the image: the two eyes may be of two classes.
                patients.append(found[2])
                paths.append(file)
                classes.append(k)
                parts.append(called)
    return _one_label(
        "OCT2017", place, paths, classes, OCT_CLASSES, parts=texts(parts), patients=texts(patients)
    )


def read_covid_ct(folder: str | PathLike[str]) -> Dataset:
    """Return Covid-CT: 746 lung CT slices from papers, with and without COVID-19.

    Parameters
    ----------
    folder : str or path
        The authors' repository: Images-processed with CT_COVID and CT_NonCOVID, and Data-split with
        COVID/trainCT_COVID.txt, valCT_COVID.txt, testCT_COVID.txt and NonCOVID/trainCT_NonCOVID.txt
        … of one file name per line.

    Returns
    -------
    Dataset
        Labels: one per image. Parts: the official split. Columns: `paper`, which a COVID image is
        taken from, "" where its name does not say. Patients stand in COVID-CT-MetaInfo.xlsx, which
        is not read here; without them group by paper.

    See Also
    --------
    datasets.read_pocus : lung ultrasound.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> for kind, name in (("COVID", "2020.02.10.20021584-p6-52%0.png"), ("NonCOVID", "1.jpg")):
    ...     (folder / "Images-processed" / f"CT_{kind}").mkdir(parents=True)
    ...     _ = (folder / "Images-processed" / f"CT_{kind}" / name).write_bytes(b"")
    ...     (folder / "Data-split" / kind).mkdir(parents=True)
    ...     for part in ("train", "val", "test"):
    ...         text = name if part == "train" else ""
    ...         _ = (folder / "Data-split" / kind / f"{part}CT_{kind}.txt").write_text(text + "\\n")
    >>> scans = read_covid_ct(folder)
    >>> scans.labels.majority(), scans.columns["paper"].tolist()
    (array([0, 1]), ['', '2020.02.10.20021584'])
    """
    pictures = folder_in(folder, "Images-processed", ".")
    paths: list[Path] = []
    classes, parts = [], []
    for k, kind in enumerate(COVID_CLASSES):
        for part, begin in COVID_LISTS.items():
            file = Path(folder) / "Data-split" / kind / f"{begin}CT_{kind}.txt"
            names = lines_of(file, empty=True)
            found = image_paths(
                required(below(pictures, f"CT_{kind}"), "folder"), names, table=file
            )
            paths += found or ()
            classes += [k] * len(names)
            parts += [part] * len(names)
    papers = [re.match(r"(.+)-p[0-9]+-", path.name) for path in paths]
    return _one_label(
        "Covid-CT",
        pictures,
        paths,
        classes,
        COVID_CLASSES,
        parts=texts(parts),
        columns={"paper": texts(paper[1] if paper else "" for paper in papers)},
    )


def read_pocus(folder: str | PathLike[str]) -> Dataset:
    """Return POCUS: lung ultrasound recordings and images, one case per recording.

    Parameters
    ----------
    folder : str or path
        The folder data of the authors' repository (jannisborn/covid19_ultrasound): pocus_videos
        and pocus_images, each with convex and linear, whose files begin with Cov, Pneu, Reg or
        Vir; and, where you have it, dataset_metadata.csv (Filename, Patient ID / Name, License).

    Returns
    -------
    Dataset
        Labels: one per recording. Paths lead to videos and pictures; frames of one recording belong
        together. Patients: from the table, and the recording itself where it names nobody. Columns:
        `probe` (convex, linear), `licence` as the table has it.

    See Also
    --------
    datasets.read_covid_ct : CT slices.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> (folder / "pocus_videos" / "convex").mkdir(parents=True)
    >>> for name in ("Cov-Atlas-Day+1.gif", "Reg_Avi_lung-sliding.MP4"):
    ...     _ = (folder / "pocus_videos" / "convex" / name).write_bytes(b"")
    >>> head = "Filename,Patient ID / Name,License"
    >>> _ = (folder / "dataset_metadata.csv").write_text(f"{head}\\nCov-Atlas-Day+1,35,CC BY-NC\\n")
    >>> scans = read_pocus(folder)
    >>> scans.labels.majority(), scans.patients.tolist()
    (array([0, 2]), ['35', 'Reg_Avi_lung-sliding'])
    """
    place = required(folder, "folder")
    known = _pocus_table(place / "dataset_metadata.csv")
    codes = {begin: k for k, begin in enumerate(POCUS_CLASSES)}
    paths, classes, probes = [], [], []
    for kind in ("pocus_videos", "pocus_images"):
        for probe in ("convex", "linear"):
            inner = below(place, kind, probe)
            for file in files_in(inner, RECORDINGS) if inner.is_dir() else ():
                begin = re.match(r"(cov|pneu|reg|vir)", file.name.lower())
                if not begin:
                    raise InvalidInputError(
                        f"{file.parent}: files must begin with Cov, Pneu, Reg or Vir; "
                        f"got {file.name}"
                    )
                paths.append(file)
                classes.append(codes[begin[1]])
                probes.append(probe)
    rows = [known.get(path.stem, known.get(path.name, {})) for path in paths]
    return _one_label(
        "POCUS",
        place,
        paths,
        classes,
        tuple(POCUS_CLASSES.values()),
        patients=texts(_person(row) or path.stem for row, path in zip(rows, paths, strict=True)),
        columns={
            "probe": texts(probes),
            "licence": texts(row.get("License", "").strip() for row in rows),
        },
    )


def _pocus_table(file: Path) -> Mapping[str, dict[str, str]]:
    """Return the rows of the table by file name; none where it is not there."""
    if not has_file(file.parent, file.name):
        return {}
    rows = read_rows(file, ("Filename", "Patient ID / Name", "License"))
    return dict(zip(column(rows, "Filename"), rows, strict=True))


def _person(row: Mapping[str, str]) -> str:
    """Return whose recording it is, or nothing where the table says that it is not known."""
    named = row.get("Patient ID / Name", "").strip()
    return "" if named.lower() in NOBODY else named

"""Tables of votes: MHIST, CSAW-M, the single judgements of CIFAR-10H, Mix-MNIST and Mix-CIFAR-10.

MHIST: Wei et al. 2021, https://arxiv.org/abs/2101.12355. CSAW-M: Sorkhei et al. 2021,
https://arxiv.org/abs/2112.01330. CIFAR-10H: Peterson et al. 2019,
https://doi.org/10.1109/ICCV.2019.00971. Mix-*: Mimori et al. 2021, label histograms of the LH
paper, https://github.com/m1m0r1/lh_calib. None of them comes with raterwise.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np

from raterwise.datasets.cifar import CIFAR10_CLASSES
from raterwise.datasets.dataset import Dataset
from raterwise.datasets.sheets import coded, column, image_paths, keys, read_rows, texts, whole
from raterwise.errors import InvalidInputError
from raterwise.labels import Labels
from raterwise.rules import choose

MHIST_CLASSES = ("hyperplastic polyp", "sessile serrated adenoma")
MHIST_VOTES, MHIST_READERS = "Number of Annotators who Selected SSA (Out of 7)", 7
CSAW_LEVELS, CSAW_EXPERTS = 8, 5
MIXED_CLASSES = 10
MIXED_COLUMNS = ("id", "hist", "_org_y", "_org_id", "_ratio", "partition")
JUDGEMENT = ("annotator_id", "is_attn_check", "chosen_label", "cifar10_test_test_idx")


def read_mhist(folder: str | PathLike[str]) -> Dataset:
    """Return MHIST: 3,152 images of colorectal polyps with the votes of seven pathologists.

    Parameters
    ----------
    folder : str or path
        Holds annotations.csv (Image Name, Majority Vote Label, Number of Annotators who Selected
        SSA (Out of 7), Partition) and, where you have them, the images in images.

    Returns
    -------
    Dataset
        Labels: seven votes, hyperplastic polyp or sessile serrated adenoma. Parts: train, test.
        Who voted how, and whose polyps they are, is not published.

    See Also
    --------
    datasets.read_csaw_m : five experts' levels of mammograms.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> head = f"Image Name,Majority Vote Label,{MHIST_VOTES},Partition"
    >>> _ = (folder / "annotations.csv").write_text(f"{head}\\nMHIST_aaa.png,SSA,6,train\\n")
    >>> read_mhist(folder).labels.counts
    array([[1, 6]])
    """
    file = Path(folder) / "annotations.csv"
    rows = read_rows(file, ("Image Name", "Majority Vote Label", MHIST_VOTES, "Partition"))
    votes = whole(file, rows, MHIST_VOTES, 0, MHIST_READERS)
    named = coded(
        file, "Majority Vote Label", column(rows, "Majority Vote Label"), {"HP": 0, "SSA": 1}
    )
    if (wrong := (votes > MHIST_READERS // 2) != named).any():
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(
            f"{file}: the majority must follow from the votes; row {row} has "
            f"{rows[row]['Majority Vote Label']} with {votes[row]} of {MHIST_READERS} for SSA"
        )
    names = keys(file, rows, "Image Name")
    return Dataset(
        "MHIST",
        tuple(names),
        Labels.from_counts(
            np.stack([MHIST_READERS - votes, votes], axis=1), class_names=MHIST_CLASSES
        ),
        parts=texts(column(rows, "Partition")),
        paths=image_paths(Path(folder) / "images", names, table=file),
    )


def read_csaw_m(folder: str | PathLike[str], part: Literal["train", "test"] = "test") -> Dataset:
    """Return CSAW-M: how much of a cancer each of 10,020 mammograms might hide, in eight levels.

    Parameters
    ----------
    folder : str or path
        Holds labels/CSAW-M_train.csv and labels/CSAW-M_test.csv, separated by semicolons (Filename,
        Label, and of the test images Expert_1 … Expert_5), and, where you have them, the images in
        images/preprocessed/train and test.
    part : {"train", "test"}, default "test"
        Which images: each test image was ranked by five experts, a training image has one label.

    Returns
    -------
    Dataset
        Labels: the levels 1 … 8 as classes 0 … 7. Columns: `label`, the published level (of a test
        image the median of the experts), as a class too.

    See Also
    --------
    datasets.read_mhist : seven votes per image.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> (folder / "labels").mkdir()
    >>> head = "Filename;Label;Expert_1;Expert_2;Expert_3;Expert_4;Expert_5"
    >>> _ = (folder / "labels" / "CSAW-M_test.csv").write_text(f"{head}\\na.png;4;4;4;5;3;4\\n")
    >>> read_csaw_m(folder).labels.counts
    array([[0, 0, 1, 3, 1, 0, 0, 0]])
    """
    choose("part", part, ("train", "test"))
    file = Path(folder) / "labels" / f"CSAW-M_{part}.csv"
    experts = [f"Expert_{i + 1}" for i in range(CSAW_EXPERTS)]
    asked = experts if part == "test" else []
    rows = read_rows(file, ("Filename", "Label", *asked), delimiter=";")
    label = whole(file, rows, "Label", 1, CSAW_LEVELS) - 1
    given = [whole(file, rows, name, 1, CSAW_LEVELS, missing="") for name in asked] or [label + 1]
    ratings = np.stack(given, axis=1)
    names = keys(file, rows, "Filename")
    return Dataset(
        "CSAW-M",
        tuple(names),
        Labels.from_ratings(
            np.where(ratings < 1, -1, ratings - 1),
            CSAW_LEVELS,
            class_names=[f"level {i + 1}" for i in range(CSAW_LEVELS)],
        ),
        parts=texts([part] * len(rows)),
        paths=image_paths(Path(folder) / "images" / "preprocessed" / part, names, table=file),
        raters=tuple(asked),
        columns={"label": label},
    )


def read_cifar10h_raters(raw_csv: str | PathLike[str]) -> Dataset:
    """Return CIFAR-10H with every single judgement and its rater.

    Parameters
    ----------
    raw_csv : str or path
        The authors' cifar10h-raw.csv (annotator_id, is_attn_check, chosen_label,
        cifar10_test_test_idx, …), plain or gzip. Attention checks are left out.

    Returns
    -------
    Dataset
        Labels with their ratings; names are the rows of the CIFAR-10 test images, in that order.

    See Also
    --------
    datasets.read_cifar10h : the label histograms alone.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "cifar10h-raw.csv"
    >>> _ = file.write_text(",".join(JUDGEMENT) + "\\n7,0,3,0\\n9,0,5,0\\n7,1,2,-99999\\n")
    >>> labels = read_cifar10h_raters(file).labels
    >>> labels.counts[0, [3, 5]].tolist(), len(labels.ratings.rater_ids)
    ([1, 1], 2)
    """
    file = Path(raw_csv)
    rows = read_rows(file, JUDGEMENT)
    real = [row for row in rows if row["is_attn_check"].strip() in ("0", "0.0")]
    if not real:
        raise InvalidInputError(f"{file}: must have judgements with is_attn_check 0; it has none")
    image = whole(file, real, "cifar10_test_test_idx", 0, 9999)
    chosen = whole(file, real, "chosen_label", 0, 9)
    order = np.unique(image)
    labels = Labels.from_long(
        image.tolist(),
        column(real, "annotator_id"),
        chosen,
        10,
        class_names=CIFAR10_CLASSES,
        order=order.tolist(),
        duplicates="keep",  # as published: whoever judged an image twice counts twice
    )
    return Dataset("CIFAR-10H", tuple(map(str, order.tolist())), labels, columns={"row": order})


def read_mixed(path: str | PathLike[str]) -> Dataset:
    """Return a table of Mix-MNIST or Mix-CIFAR-10, with known true class probabilities.

    Parameters
    ----------
    path : str or path
        Such as mixed_mnist.t1_v2.txt.gz: columns separated by tabs (id, hist, nrater, _mixed,
        _org_y, _org_id, _ratio, partition), plain or gzip.

    Returns
    -------
    Dataset
        Labels: the histograms that the authors drew. Parts: train, valid, test. Columns: `sources`
        (N, 2), the rows of the two mixed images among the original training and test images;
        `classes` (N, 2), theirs; `ratio`, the share of the first and the probability of its class.

    See Also
    --------
    datasets.read_mnist, datasets.read_cifar10 : the images that are mixed.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "mixed.txt"
    >>> row = "0\\t0,0,0,7,0,0,2,0,0,0\\t6,3\\t61,66\\t0.2\\ttest"
    >>> _ = file.write_text("\\t".join(MIXED_COLUMNS) + "\\n" + row + "\\n")
    >>> cases = read_mixed(file)
    >>> cases.columns["classes"].tolist(), cases.columns["ratio"].tolist()
    ([[6, 3]], [0.2])
    """
    file = Path(path)
    rows = read_rows(file, MIXED_COLUMNS, delimiter="\t")
    try:
        counts = np.array([[int(n) for n in row["hist"].split(",")] for row in rows], np.int64)
        pairs = {name: np.array([_pair(row[name]) for row in rows]) for name in MIXED_COLUMNS[2:4]}
        ratio = np.array([float(row["_ratio"]) for row in rows])
    except ValueError as error:
        raise InvalidInputError(f"{file}: must hold numbers where they belong; {error}") from error
    classes = pairs["_org_y"]
    if counts.shape[1] != MIXED_CLASSES or classes.min() < 0 or classes.max() >= MIXED_CLASSES:
        raise InvalidInputError(
            f"{file}: must have {MIXED_CLASSES} classes; got histograms of {counts.shape[1]} and "
            f"classes up to {classes.max()}"
        )
    if not ((ratio >= 0) & (ratio <= 1)).all():
        raise InvalidInputError(f"{file}: _ratio must be 0 … 1; got {ratio.min()} … {ratio.max()}")
    return Dataset(
        "Mix",
        tuple(column(rows, "id")),
        Labels.from_counts(counts),
        parts=texts(column(rows, "partition")),
        columns={"sources": pairs["_org_id"], "classes": classes, "ratio": ratio},
    )


def _pair(text: str) -> tuple[int, int]:
    """Return two numbers; one that stands alone counts twice."""
    first, *second = (int(part) for part in text.split(","))
    return first, second[0] if second else first

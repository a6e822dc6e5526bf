"""Predictions and ratings read from real files, joined, and refused with a reason.

The example is four nodules with three readers each, small enough to check by eye.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from raterwise.errors import InvalidInputError
from raterwise.io.files import write_text_atomically
from raterwise.io.layouts import TableColumns
from raterwise.io.ratings import RatingTable, read_ratings
from raterwise.io.tables import PredictionTable, join, read_predictions

CLASSES = ("benign", "malignant")
PROBS = [[0.95, 0.05], [0.85, 0.15], [0.25, 0.75], [0.35, 0.65]]
COUNTS = [[3, 0], [1, 2], [1, 2], [2, 1]]

PREDICTIONS: dict[str, list[Any]] = {
    "case": ["n1", "n2", "n3", "n4"],
    "patient": ["p1", "p1", "p2", "p3"],
    "prob_benign": [row[0] for row in PROBS],
    "prob_malignant": [row[1] for row in PROBS],
    "truth": ["benign", "malignant", "malignant", "benign"],
    "importance": [1.0, 1.0, 2.0, 0.5],
}
WIDE = {
    "case": ["n1", "n2", "n3", "n4"],
    "reader_a": ["benign", "benign", "malignant", "benign"],
    "reader_b": ["benign", "malignant", "benign", "benign"],
    "reader_c": ["benign", "malignant", "malignant", "malignant"],
}
LONG = {
    "case": [case for case in WIDE["case"] for _ in "abc"],
    "reader": ["a", "b", "c"] * 4,
    "label": [WIDE[f"reader_{r}"][i] for i in range(4) for r in "abc"],
}
COUNTED = {
    "case": WIDE["case"],
    "count_malignant": [row[1] for row in COUNTS],  # not in the order of the classes
    "count_benign": [row[0] for row in COUNTS],
}

Columns = dict[str, list[Any]]


def as_csv(columns: Columns, delimiter: str = ",", end: str = "\n") -> str:
    """Write columns as the text of a CSV file; None is an empty cell."""
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(
        delimiter.join("" if value is None else str(value) for value in row) + end for row in rows
    )


def save_csv(path: Path, columns: Columns) -> None:
    """Save as plain CSV."""
    path.write_text(as_csv(columns), encoding="utf-8")


def save_gzip(path: Path, columns: Columns) -> None:
    """Save as compressed CSV."""
    path.write_bytes(gzip.compress(as_csv(columns).encode()))


def save_tabs(path: Path, columns: Columns) -> None:
    """Save with tabs between the values."""
    path.write_text(as_csv(columns, "\t"), encoding="utf-8")


def save_windows(path: Path, columns: Columns) -> None:
    """Save as a spreadsheet program on Windows does: a byte order mark, and two-byte line ends."""
    path.write_bytes(b"\xef\xbb\xbf" + as_csv(columns, end="\r\n").encode())


def save_parquet(path: Path, columns: Columns) -> None:
    """Save as Parquet."""
    pa.parquet.write_table(pa.table(columns), path)


def save_feather(path: Path, columns: Columns) -> None:
    """Save as an Arrow file, compressed, as Feather does."""
    pa.feather.write_feather(pa.table(columns), str(path))


def save_arrow_stream(path: Path, columns: Columns) -> None:
    """Save as an Arrow stream."""
    table = pa.table(columns)
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


SAVERS: dict[str, tuple[str, Callable[[Path, Columns], None]]] = {
    "csv": ("t.csv", save_csv),
    "gzip": ("t.csv.gz", save_gzip),
    "tabs": ("t.tsv", save_tabs),
    "windows": ("t.CSV", save_windows),
    "parquet": ("t.parquet", save_parquet),
    "feather": ("t.feather", save_feather),
    "stream": ("t.arrow", save_arrow_stream),
}


@pytest.fixture(params=SAVERS, name="save")
def every_format(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Columns], Path]:
    """Give a function that saves columns in one of the formats."""
    name, saver = SAVERS[request.param]

    def save(columns: Columns) -> Path:
        saver(tmp_path / name, columns)
        return tmp_path / name

    return save


def csv_file(folder: Path, text: str, name: str = "t.csv") -> Path:
    """Write a CSV file exactly as given."""
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


# Reading what is right ---------------------------------------------------------------------------


def test_every_format_gives_the_same_predictions(save: Callable[[Columns], Path]) -> None:
    """Probabilities, classes, ids, patients, weights and labels come out as they went in."""
    told = TableColumns(label_column="truth", group_column="patient", weight_column="importance")
    table = read_predictions(save(PREDICTIONS), told)
    assert table.class_names == CLASSES
    assert table.ids is not None and table.ids.tolist() == PREDICTIONS["case"]
    assert table.groups is not None and table.groups.tolist() == PREDICTIONS["patient"]
    assert table.weights is not None and table.weights.tolist() == [1.0, 1.0, 2.0, 0.5]
    assert table.labels is not None and table.labels.majority().tolist() == [0, 1, 1, 0]
    np.testing.assert_array_equal(table.probs, PROBS)


@pytest.mark.parametrize("columns", [WIDE, LONG, COUNTED], ids=["wide", "long", "counts"])
def test_every_layout_gives_the_same_histograms(
    save: Callable[[Columns], Path], columns: Columns
) -> None:
    """With the usual names of the columns, the layout is seen and the histograms are the same."""
    table = read_ratings(save(columns), CLASSES)
    assert table.ids.tolist() == ["n1", "n2", "n3", "n4"]
    assert table.labels.counts.tolist() == COUNTS
    assert table.labels.case_ids == ("n1", "n2", "n3", "n4")


def test_the_identity_of_the_raters_is_kept(tmp_path: Path) -> None:
    """Wide and long tables keep who said what; counts cannot."""
    save_csv(tmp_path / "wide.csv", WIDE)
    save_csv(tmp_path / "long.csv", LONG)
    wide = read_ratings(tmp_path / "wide.csv", CLASSES).labels.ratings
    long = read_ratings(tmp_path / "long.csv", CLASSES).labels.ratings
    assert wide is not None and wide.rater_ids == ("reader_a", "reader_b", "reader_c")
    assert long is not None and long.rater_ids == ("a", "b", "c")
    assert wide.label.tolist() == long.label.tolist()


def test_arrays_in_an_npz_file(tmp_path: Path) -> None:
    """The named arrays are found, and -1 is no rating."""
    path = tmp_path / "all.npz"
    ratings = [[0, 0, 0], [0, 1, 1], [1, 0, -1], [0, -1, -1]]
    arrays: dict[str, Any] = {"ids": [7, 8, 9, 10], "groups": ["p", "p", "q", "r"]}
    np.savez(path, probs=PROBS, ratings=ratings, class_names=CLASSES, other=[1], **arrays)
    table = read_predictions(path)
    assert table.class_names == CLASSES
    assert table.ids is not None and table.ids.tolist() == [7, 8, 9, 10]
    assert table.groups is not None and table.groups.tolist() == ["p", "p", "q", "r"]
    assert table.labels is not None
    assert table.labels.counts.tolist() == [[3, 0], [1, 2], [1, 1], [1, 0]]
    assert table.labels.case_ids == (7, 8, 9, 10)


def test_a_column_too_many_in_an_npz_file(tmp_path: Path) -> None:
    """It is named, and as NPZ files have no columns to choose, no option that chooses them is."""
    np.savez(tmp_path / "p.npz", probs=[[7, 0.25, 0.75], [8, 0.5, 0.5]], labels=[0, 1])
    with pytest.raises(InvalidInputError, match=r"column 'probs\[0\]' is .*: leave it out$"):
        read_predictions(tmp_path / "p.npz")


@pytest.mark.parametrize(
    ("key", "values", "counts"),
    [
        ("labels", ["malignant", "benign"], [[0, 1], [1, 0]]),
        ("labels", [1.0, 0.0], [[0, 1], [1, 0]]),
        ("labels", [1.0, np.nan], [[0, 1], [0, 0]]),
        ("labels", [b"malignant", b"benign"], [[0, 1], [1, 0]]),
        ("ratings", [["malignant", ""], ["benign", "malignant"]], [[0, 1], [1, 1]]),
        ("counts", [[0, 4], [2.0, 1.0]], [[0, 4], [2, 1]]),
    ],
)
def test_labels_of_any_kind_in_an_npz_file(
    tmp_path: Path, key: str, values: Any, counts: list[list[int]]
) -> None:
    """Single labels, matrices and histograms; names, bytes, whole floats; NaN and "" for none."""
    path = tmp_path / "r.npz"
    np.savez(path, ids=["a", "b"], **{key: np.array(values)})
    assert read_ratings(path, CLASSES).labels.counts.tolist() == counts


def test_a_single_probability_is_that_of_the_second_class(tmp_path: Path) -> None:
    """One column is (N,), its classes are 0 and 1, and other names can be given."""
    path = csv_file(tmp_path, "case,risk,biopsy\na,0.25,pos\nb,1,neg\n")
    told = TableColumns(prob_columns=["risk"], class_names=["neg", "pos"], label_column="biopsy")
    table = read_predictions(path, told)
    assert table.probs.tolist() == [0.25, 1.0]
    assert table.labels is not None and table.labels.majority().tolist() == [1, 0]
    assert read_predictions(path, TableColumns(prob_columns=["risk"])).class_names == ("0", "1")


def test_probability_columns_by_name_and_other_class_names(tmp_path: Path) -> None:
    """Columns chosen by name come in the order chosen; their names are the classes."""
    path = csv_file(tmp_path, "case,low,high\na,0.25,0.75\n")
    table = read_predictions(path, TableColumns(prob_columns=["high", "low"]))
    assert table.class_names == ("high", "low")
    assert table.probs.tolist() == [[0.75, 0.25]]
    told = TableColumns(prob_columns=["high", "low"], class_names=["x", "y"])
    renamed = read_predictions(path, told)
    assert renamed.class_names == ("x", "y")


@pytest.mark.parametrize(
    ("ratings", "class_names", "codes"),
    [
        (["benign", "malignant"], ("benign", "malignant"), [0, 1]),
        (["1", "0"], ("benign", "malignant"), [1, 0]),
        (["1.0", "0.0"], ("benign", "malignant"), [1, 0]),
        (["1", "3"], ("1", "2", "3"), [0, 2]),  # numbers that are names, as on a scale of 1 to 5
        (["1.0", "3.0"], ("1", "2", "3"), [0, 2]),
        (["0", "2"], ("0", "1", "2"), [0, 2]),
        (["2", "10"], ("10", "2"), [1, 0]),
        ([" malignant", "benign "], ("benign", "malignant"), [1, 0]),
    ],
)
def test_ratings_are_names_or_codes(
    tmp_path: Path, ratings: list[str], class_names: tuple[str, ...], codes: list[int]
) -> None:
    """Whole numbers are codes from 0, unless the classes themselves have numbers for names."""
    columns = {"case": ["a", "b"], "reader_1": ratings}
    save_csv(tmp_path / "t.csv", columns)
    table = read_ratings(tmp_path / "t.csv", class_names)
    assert table.labels.majority().tolist() == codes


def test_numbers_truth_values_and_categories_in_parquet(tmp_path: Path) -> None:
    """Integers with gaps, floats, booleans and pandas' categories are all understood."""
    table = pa.table(
        {
            "case": pa.array([1, 2, 3]),
            "rater_a": pa.array([0, None, 1]),
            "rater_b": pa.array([0.0, 1.0, float("nan")]),
            "rater_c": pa.array([True, False, None]),
            "rater_d": pa.array(["benign", "malignant", None]).dictionary_encode(),
        }
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    labels = read_ratings(tmp_path / "t.parquet", CLASSES).labels
    assert labels.counts.tolist() == [[3, 1], [1, 2], [0, 1]]


def test_missing_ratings(tmp_path: Path) -> None:
    """Empty cells are no rating, nor is what `missing` lists; a case may be left with none."""
    columns: Columns = {
        "case": ["a", "b", "c"],
        "rater_1": ["benign", None, "NA"],
        "rater_2": ["-1", "malignant", None],
    }
    save_csv(tmp_path / "t.csv", columns)
    labels = read_ratings(tmp_path / "t.csv", CLASSES, TableColumns(missing=["NA", "-1"])).labels
    assert labels.counts.tolist() == [[1, 0], [0, 1], [0, 0]]
    long = csv_file(tmp_path, "case,rater,label\na,1,benign\nb,1,\n", "long.csv")
    assert read_ratings(long, CLASSES).labels.counts.tolist() == [[1, 0], [0, 0]]


def test_ids_keep_their_zeros_and_their_digits(tmp_path: Path) -> None:
    """The ids 007 and 7 differ, and numbers beyond 2**53 keep every digit."""
    ids = ["007", "7", "9007199254740993", "9007199254740992", "1.20", "1.2"]
    columns: Columns = {"case": ids, "prob_x": [0.5] * 6, "prob_y": [0.5] * 6}
    save_csv(tmp_path / "t.csv", columns)
    table = read_predictions(tmp_path / "t.csv")
    assert table.ids is not None and table.ids.tolist() == ids


def test_float32_probabilities_stay_float32(tmp_path: Path) -> None:
    """What was stored in single precision is not doubled."""
    halves = pa.array([0.5, 0.5], pa.float32())
    table = pa.table({"case": ["a", "b"], "prob_x": halves, "prob_y": halves})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert read_predictions(tmp_path / "t.parquet").probs.dtype == np.float32


def test_quoted_text_with_commas_and_line_ends(tmp_path: Path) -> None:
    """A remark may hold what separates values and rows elsewhere."""
    text = 'case,remark,prob_a,prob_b\n"n,1","two\nlines, really",0.5, 0.5\n'
    table = read_predictions(csv_file(tmp_path, text))
    assert table.ids is not None and table.ids.tolist() == ["n,1"]
    assert table.probs.tolist() == [[0.5, 0.5]]


def test_semicolons_when_told(tmp_path: Path) -> None:
    """A table separated by semicolons is read with `delimiter`."""
    path = csv_file(tmp_path, "case;prob_a;prob_b\nx;0.5;0.5\n")
    assert read_predictions(path, TableColumns(delimiter=";")).probs.tolist() == [[0.5, 0.5]]


def test_count_columns_by_name_or_in_order(tmp_path: Path) -> None:
    """Columns named after the classes are matched by name; others come in the order given."""
    path = csv_file(tmp_path, "case,malignant,benign,n1,n2\nx,2,1,5,6\n")
    named = TableColumns(count_columns=["malignant", "benign"])
    assert read_ratings(path, CLASSES, named).labels.counts.tolist() == [[1, 2]]
    ordered = TableColumns(count_columns=["n1", "n2"])
    assert read_ratings(path, CLASSES, ordered).labels.counts.tolist() == [[5, 6]]
    prefixed = TableColumns(count_prefix="n")
    assert read_ratings(path, ("1", "2"), prefixed).labels.counts.tolist() == [[5, 6]]


# Joining -----------------------------------------------------------------------------------------


def tables(
    prediction_ids: list[Any], rating_ids: list[Any], folder: Path
) -> tuple[PredictionTable, RatingTable]:
    """Make two tables with these ids; case i of the ratings has i labels of each class."""
    probs = np.linspace(0, 1, len(prediction_ids))
    np.savez(folder / "p.npz", probs=probs, ids=prediction_ids, groups=prediction_ids)
    counts = [[i, i] for i in range(len(rating_ids))]
    np.savez(folder / "r.npz", counts=counts, ids=rating_ids)
    predictions = read_predictions(folder / "p.npz")
    return predictions, read_ratings(folder / "r.npz", predictions.class_names)


def test_join_takes_the_order_of_the_predictions(tmp_path: Path) -> None:
    """Ratings in any order find their predictions."""
    joined = join(*tables(["a", "b", "c"], ["c", "a", "b"], tmp_path))
    assert joined.labels.counts.tolist() == [[1, 1], [2, 2], [0, 0]]
    assert joined.labels.case_ids == ("a", "b", "c")
    assert joined.report.cases == 3 and joined.report.dropped == {}


@pytest.mark.parametrize(
    ("left", "right"),
    [([7, 8], ["8", "7"]), (["7", "8"], [8, 7]), ([2**62 + 1, 8], ["8", str(2**62 + 1)])],
)
def test_numbers_and_text_are_joined_as_text(tmp_path: Path, left: Any, right: Any) -> None:
    """The number 7 of one file is the text 7 of the other."""
    joined = join(*tables(left, right, tmp_path))
    assert joined.labels.counts.tolist() == [[1, 1], [0, 0]]


def test_join_names_what_does_not_match(tmp_path: Path) -> None:
    """Unmatched ids are an error that counts them and names the first few, on either side."""
    predictions, ratings = tables(list(range(10)), [*range(3, 10), 77], tmp_path)
    message = (
        "ids: 3 of 10 cases of p.npz are not in r.npz (0, 1, 2); "
        "1 of 8 cases of r.npz are not in p.npz (77); allow_unmatched leaves them out"
    )
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        join(predictions, ratings)
    joined = join(predictions, ratings, allow_unmatched=True)
    assert joined.report.dropped == {"without_ratings": 3, "without_predictions": 1}
    assert joined.groups is not None and joined.groups.tolist() == list(range(3, 10))
    assert joined.labels.counts[:, 0].tolist() == list(range(7))


def test_join_refuses_two_tables_of_nothing_in_common(tmp_path: Path) -> None:
    """Ids 7 and 007 are different, and an empty join is an error even when gaps are allowed."""
    predictions, ratings = tables(["7", "8"], ["007", "008"], tmp_path)
    with pytest.raises(InvalidInputError, match="not one case is in both"):
        join(predictions, ratings, allow_unmatched=True)


def test_join_needs_ratings_and_ids(tmp_path: Path) -> None:
    """Predictions without labels need a file of ratings, and ids to join it by."""
    np.savez(tmp_path / "p.npz", probs=PROBS)
    np.savez(tmp_path / "r.npz", counts=COUNTS, ids=[1, 2, 3, 4])
    predictions = read_predictions(tmp_path / "p.npz")
    with pytest.raises(InvalidInputError, match=r"p\.npz holds no labels; give a file of ratings"):
        join(predictions)
    with pytest.raises(InvalidInputError, match=r"p\.npz: must hold ids, by which r\.npz"):
        join(predictions, read_ratings(tmp_path / "r.npz", ("0", "1")))


# Refusing what is wrong --------------------------------------------------------------------------

TWO = "case,prob_a,prob_b\n"

BAD_PREDICTIONS = {
    "no id column": ("id,prob_a,prob_b\n1,0.5,0.5\n", {}, r"id_column: .* no 'case' .*'id', 'pr"),
    "a wrong id column": (TWO + "1,0.5,0.5\n", {"id_column": "x"}, "id_column: .* there is no 'x'"),
    "no probabilities": ("case,p_a\n1,1\n", {}, r"prob_prefix: .* begins with 'prob_' \(columns: "),
    "a wrong column": (TWO, {"prob_columns": ["a"]}, "prob_columns: .* there is no 'a'"),
    "a wrong group": (TWO + "1,1,0\n", {"group_column": "pat"}, "group_column: .* no 'pat'"),
    "no rows": (TWO, {}, r"t\.csv: must hold at least one case; it has no rows"),
    "nothing at all": ("", {}, r"t\.csv: must begin with a line of column names; it is empty"),
    "the same id twice": (
        TWO + "x,0.5,0.5\ny,1,0\nx,0.5,0.5\n",
        {},
        r"column 'case': every case must have one row; these have more: 'x' \(keep one",
    ),
    "an empty id": (
        TWO + "x,0.5,0.5\n,0.5,0.5\n",
        {},
        "column 'case': must not be empty; data row 2",
    ),
    "an empty probability": (
        TWO + "x,0.5,0.5\ny,,1\n",
        {},
        "'prob_a': must not be empty; data row 2 is empty .if",
    ),
    "text": (
        TWO + "x,0.5,0.5\ny,high,1\n",
        {},
        "'prob_a': must hold numbers; data row 2 is 'high'$",
    ),
    "a decimal comma": (
        TWO + 'x,0.5,0.5\ny,"0,25","0,75"\n',
        {},
        r"'prob_a': must hold numbers; data row 2 is '0,25' \(a decimal comma; write a decim",
    ),
    "decimal commas unquoted": (TWO + "x,0,25,0,75\n", {}, "Row #2: Expected 3 columns, got 5"),
    "NaN": (TWO + "x,nan,1\n", {}, "'prob_a': must hold finite numbers; data row 1 is nan"),
    "infinity": (TWO + "x,1,inf\n", {}, "'prob_b': must hold finite numbers; data row 1 is inf"),
    "logits": (
        TWO + "x,0.5,0.5\ny,-2.5,3\n",
        {},
        r"'prob_a' is -2\.5 in data row 2 \(case 'y'\) \(log",
    ),
    "numbers of patients among the probabilities": (
        "case,patient,p_a,p_b\nx,11,0.5,0.5\ny,12,0.75,0.25\n",
        {"prob_prefix": "p"},
        r"column 'patient' is no probability: prob_columns=\"p_a,p_b\" leaves it out",
    ),
    "numbers of patients that are 0 and 1": (
        "case,patient,p_a,p_b\nx,0,0.5,0.5\ny,1,0.75,0.25\n",
        {"prob_prefix": "p"},
        "column 'patient' is no probability",
    ),
    "a wrong sum": (
        TWO + "x,0.5,0.5\ny,0.5,0.25\n",
        {},
        r"must sum to 1 within 1e-4; those of data row 2 \(case 'y'\) sum to 0\.75",
    ),
    "too short a row": (TWO + "x,0.5,0.5\ny,0.5\n", {}, "Row #3: Expected 3 columns, got 2: y,0.5"),
    "semicolons, told otherwise": (
        TWO.replace(",", ";"),
        {"delimiter": ","},
        r"only one column was found, 'case;prob_a;prob_b'; .* say delimiter=\";\" \(or leave it",
    ),
    "tabs, told otherwise": (
        TWO.replace(",", "\t"),
        {"delimiter": ","},
        r"looks separated by '\\t', .* say delimiter=\"tab\"",
    ),
    "a long delimiter": (TWO, {"delimiter": ";;"}, "delimiter: must be one character, or tab"),
    "columns of one name": ("case,prob_a,prob_a\n", {}, "column names must differ; 'prob_a' stand"),
    "no class name": (
        "case,prob_a,prob_\nx,0.5,0.5\n",
        {},
        "class_names: must be 2 different name",
    ),
    "too many class names": (
        TWO,
        {"class_names": ["a", "b", "c"]},
        r"class_names: must be 2 different names, one per class; got 'a', 'b', 'c'",
    ),
    "an unknown label": (
        "case,prob_a,prob_b,y\nx,0.5,0.5,a\nz,0.5,0.5,A\n",
        {"label_column": "y"},
        r"column 'y': .* row 2 is 'A', and the classes are 'a', 'b' \(ignore_case=True takes",
    ),
    "a code out of range": (
        "case,prob_a,prob_b,y\nx,0.5,0.5,1\nz,0.5,0.5,2\n",
        {"label_column": "y"},
        "row 2 is '2', and the classes are 'a', 'b', or the codes 0 … 1",
    ),
    "names of classes in another order": (
        "case,prob_benign,prob_malignant,y\nx,0.25,0.75,benign\n",
        {"label_column": "y", "class_names": ["malignant", "benign"]},
        r"class_names: must be in the order of the columns, .*; 'prob_benign' would be called "
        r"'malignant' \(class_names=\"benign,malignant\" is their order\)",
    ),
    "one column for two things": (
        TWO + "x,0.5,0.5\n",
        {"weight_column": "prob_a"},
        "prob_columns: must not be used for anything else; 'prob_a' would be",
    ),
}


@pytest.mark.parametrize(
    ("text", "options", "message"), BAD_PREDICTIONS.values(), ids=BAD_PREDICTIONS
)
def test_bad_predictions_are_refused(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    """Each mistake in a table of predictions is named, with its column, row and value."""
    with pytest.raises(InvalidInputError, match=message):
        read_predictions(csv_file(tmp_path, text), TableColumns(**options))


BAD_RATINGS = {
    "no known layout": ("case,x\na,1\n", TableColumns(), "ratings_layout: .* fit none .*'x'"),
    "two layouts": (
        "case,rater_1,count_benign,count_malignant\na,0,1,0\n",
        TableColumns(),
        "ratings_layout: .* fit wide and counts",
    ),
    "options of two layouts": (
        "case,x\na,1\n",
        TableColumns(rater_columns=["x"], count_prefix="x"),
        r"rater_columns and count_prefix: belong to different layouts .*\(wide, counts\)",
    ),
    "a layout and another's option": (
        "case,x\na,1\n",
        TableColumns(ratings_layout="long", rater_columns=["x"]),
        "rater_columns: does not go with the layout 'long'",
    ),
    "an unknown layout": (
        "case\n",
        TableColumns(ratings_layout="tall"),
        "ratings_layout: must be one of wide, long, counts; got 'tall'",
    ),
    "no rating column": (
        "case,reader,malignancy\na,1,0\n",
        TableColumns(ratings_layout="long"),
        r"rating_column: .* none of the usual \(label or rating; columns: .*'malignancy'",
    ),
    "two rater columns": (
        "case,reader,rater,label\na,1,1,0\n",
        TableColumns(),
        "rater_column: must name a column of t.csv; both reader and rater are there",
    ),
    "two rater prefixes": (
        "case,reader_1,rater_1\na,1,1\n",
        TableColumns(),
        "rater_prefix: must name one in t.csv; tried 'reader_', 'rater_'",
    ),
    "a prefix of nothing": (
        "case,x\na,1\n",
        TableColumns(rater_prefix="dr_"),
        "rater_prefix: must be the beginning of a column's name in t.csv; tried 'dr_'",
    ),
    "the id as a rater": (
        "case,x\na,1\n",
        TableColumns(rater_columns=["case", "x"]),
        "rater_columns: must not hold the id column 'case'",
    ),
    "rated twice": (
        "case,reader,label\na,1,0\na,2,0\na,1,1\n",
        TableColumns(),
        "a rater must rate a case once; '1' has more than one row for case 'a'",
    ),
    "an unknown class": (
        "case,reader,label\na,1,benign\na,2,Malign\n",
        TableColumns(),
        "column 'label': must hold classes; data row 2 is 'Malign', and the classes are 'benign'",
    ),
    "a total below names": (
        "case,rater_1\na,benign\nb,malignant\nTotal,2\n",
        TableColumns(),
        r"row 3 is '2', .*'malignant' \(if the last row is no case but a total, delete it\)",
    ),
    "a total below codes": (
        "case,rater_1\na,0\nb,1\nTotal,81\n",
        TableColumns(),
        r"row 3 is '81', .* codes 0 … 1 \(if the last row is no case but a total, delete it\)",
    ),
    "a wrong class above the last row": (
        "case,rater_1\na,0\nb,81\nc,1\n",
        TableColumns(),
        r"row 2 is '81', .* or the codes 0 … 1$",
    ),
    "names and codes mixed": (
        "case,reader,label\na,1,benign\na,2,1\n",
        TableColumns(),
        "row 2 is '1', and the classes are 'benign', 'malignant' .names and codes are mixed",
    ),
    "a mark for missing": (
        "case,reader,label\na,1,benign\na,2,NA\n",
        TableColumns(),
        r"row 2 is 'NA', .* \(if that is no rating: missing=\"NA\"\)",
    ),
    "a half": ("case,rater_1\na,0.5\n", TableColumns(), "row 1 is '0.5', and the classes are"),
    "a class without counts": (
        "case,count_benign\na,1\n",
        TableColumns(),
        "count_prefix: must give one column of t.csv for each of .*; got 'count_benign'",
    ),
    "half a count": (
        "case,count_benign,count_malignant\na,1,1.5\n",
        TableColumns(),
        "'count_malignant': must hold whole numbers from 0; data row 1 is 1.5",
    ),
    "a negative count": (
        "case,count_benign,count_malignant\na,1,0\nb,-1,1\n",
        TableColumns(),
        "'count_benign': must hold whole numbers from 0; data row 2 is -1",
    ),
    "no count": (
        "case,count_benign,count_malignant\na,1,\n",
        TableColumns(),
        "'count_malignant': must not be empty; data row 1 is",
    ),
    "the same id twice": (
        "case,rater_1\na,0\na,1\n",
        TableColumns(),
        r"column 'case': every case must have one row; these have more: 'a' \(keep one",
    ),
}


@pytest.mark.parametrize(("text", "columns", "message"), BAD_RATINGS.values(), ids=BAD_RATINGS)
def test_bad_ratings_are_refused(
    tmp_path: Path, text: str, columns: TableColumns, message: str
) -> None:
    """Each mistake in a table of ratings, or in what is said about it, is named."""
    with pytest.raises(InvalidInputError, match=message):
        read_ratings(csv_file(tmp_path, text), CLASSES, columns)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xls", b"", r"t\.xls: the name must end in \.csv, "),
        ("t.xlsx", b"no", r"t\.xlsx: cannot be read as Excel; "),
        ("table", b"", "table: the name must end in"),
        ("t.gz", b"", r"t\.gz: the name must end in"),
        ("t.parquet", b"no", r"t\.parquet: cannot be read as Parquet"),
        ("t.arrow", b"no", r"t\.arrow: cannot be read as Arrow"),
        ("t.npz", b"no", r"t\.npz: cannot be read as NPZ; it is not one, or damaged"),
        ("t.npz", b"PK\x03\x04 and no more", r"t\.npz: cannot be read as NPZ"),
        ("t.csv.gz", b"no", r"t\.csv\.gz: cannot be read as CSV"),
        ("t.csv", "case,größe\n".encode("latin-1"), r"must be UTF-8 text; byte 0xf6 is not"),
        ("t.csv", "case,prob_a\né,1\n".encode("latin-1"), r"must be UTF-8 text; byte 0xe9 is not"),
        ("t.csv", "case,prob_a\n".encode("utf-16-le"), r"encoding=\"utf-16-le\""),
    ],
)
def test_files_that_are_not_what_they_say(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """Unknown endings, damaged files and other encodings are refused by name."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        read_predictions(tmp_path / name)


def test_a_late_byte_of_another_encoding(tmp_path: Path) -> None:
    """Text that stops being UTF-8 far below the column names is refused as well."""
    rows = "".join(f"{i},1,0\n" for i in range(5000)) + "é,1,0\n"
    (tmp_path / "t.csv").write_bytes((TWO + rows).encode("latin-1"))
    with pytest.raises(InvalidInputError, match=r"must be UTF-8 text; byte 0xe9 is not .*cp1252"):
        read_predictions(tmp_path / "t.csv")


def test_a_damaged_npz_file(tmp_path: Path) -> None:
    """A file whose check sum is wrong is refused, whatever numbers it would give."""
    path = tmp_path / "t.npz"
    np.savez(path, probs=PROBS)
    content = bytearray(path.read_bytes())
    place = content.index(np.array(PROBS[0]).tobytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InvalidInputError, match=r"t\.npz: cannot be read as NPZ; Bad CRC-32"):
        read_predictions(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """A missing file, and a folder in its place, are said to be that."""
    with pytest.raises(InvalidInputError, match=r"nowhere\.csv: there is no such file"):
        read_predictions(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match=r"folder\.csv: must be a file; it is a folder"):
        read_predictions(tmp_path / "folder.csv")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "must hold an array 'probs'; it holds "),
        ({"probs": np.zeros((2, 2, 2))}, r"'probs': must be 1-dimensional or 2-dimensional; got"),
        ({"probs": np.zeros((0, 2))}, r"'probs': must hold numbers for at least one case; got"),
        ({"probs": np.array(["a"])}, r"'probs': must hold numbers .* got dtype <U1"),
        ({"probs": PROBS, "ids": [1, 2]}, r"'ids': must have one entry per case; got 2 for 4"),
        (
            {"probs": PROBS, "ids": [1, 1, 2, 3]},
            r"'ids': every case must have one row; these have more: 1 \(keep one",
        ),
        ({"probs": PROBS, "ids": [0.5, 1, 2, 3]}, r"'ids': must hold text or whole numbers"),
        ({"probs": PROBS, "labels": [0, 1], "ratings": [[0]]}, "must hold one of labels, ratings"),
        ({"probs": PROBS, "labels": [0, 1]}, r"must have labels for each case; got 2 for 4"),
        ({"probs": PROBS, "labels": [[0], [1], [0], [1]]}, r"'labels': must be 1-dimensional"),
        ({"probs": PROBS, "counts": [[1, 0, 0]] * 4}, r"'counts': must have a column for each of"),
        (
            {"probs": PROBS, "labels": [0, 1, 2, 0]},
            r"'labels': must hold classes; data row 3 is '2'",
        ),
        ({"probs": PROBS, "class_names": ["a"]}, "class_names: must be 2 different names"),
        ({"probs": [[0.5, 0.5], [0.5, 0.7]]}, r"those of data row 2 sum to 1\.2"),
        ({"probs": PROBS, "weights": [1, np.nan, 1, 1]}, r"'weights': must hold finite numbers"),
        ({"probs": PROBS, "groups": np.zeros(4, "M8[s]")}, r"'groups': must hold numbers or text"),
    ],
)
def test_bad_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    """Each mistake in an NPZ file is named, with its array and row."""
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(InvalidInputError, match=message):
        read_predictions(tmp_path / "t.npz")


def test_pickled_objects_are_not_opened(tmp_path: Path) -> None:
    """An array of Python objects could run code; it is refused, with what to do instead."""
    names = np.array(["p1", "p2", None, "p3"], dtype=object)
    np.savez(tmp_path / "t.npz", probs=PROBS, groups=names)
    with pytest.raises(InvalidInputError, match=r"is not opened.*np\.array\(values, dtype=str\)"):
        read_predictions(tmp_path / "t.npz")


def test_columns_of_an_npz_file_are_refused(tmp_path: Path) -> None:
    """Options that name columns say nothing about arrays, and are not ignored in silence."""
    np.savez(tmp_path / "t.npz", probs=PROBS, labels=[0, 1, 1, 0], ids=[1, 2, 3, 4])
    with pytest.raises(InvalidInputError, match="an NPZ file has no columns"):
        read_predictions(tmp_path / "t.npz", TableColumns(group_column="patient"))
    told = TableColumns(rater_prefix="r")
    with pytest.raises(InvalidInputError, match="an NPZ file has no columns"):
        read_ratings(tmp_path / "t.npz", CLASSES, told)


def test_whole_numbers_as_ids_are_named_plainly(tmp_path: Path) -> None:
    """A message says case 7, in the predictions and in the ratings."""
    wrong = pa.table({"case": [6, 7], "prob_a": [0.5, 0.5], "prob_b": [0.5, 0.75]})
    pa.parquet.write_table(wrong, tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"row 2 \(case 7\) sum to 1\.25"):
        read_predictions(tmp_path / "t.parquet")
    twice = pa.table({"case": [7, 7], "rater": [3, 3], "label": [0, 1]})
    pa.parquet.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match="once; 3 has more than one row for case 7"):
        read_ratings(tmp_path / "t.parquet", CLASSES)


@pytest.mark.parametrize(
    "header", ["case,reader,label", "case,rater_1", "case,count_benign,count_malignant"]
)
def test_ratings_without_rows_join_to_nothing(tmp_path: Path, header: str) -> None:
    """A table of ratings that has only its first line is read, and matches no case."""
    predictions = read_predictions(csv_file(tmp_path, "case,prob_0,prob_1\n1,0.5,0.5\n", "p.csv"))
    ratings = read_ratings(csv_file(tmp_path, f"{header}\n"), CLASSES)
    with pytest.raises(InvalidInputError, match=r"1 of 1 cases of p\.csv are not in t\.csv"):
        join(predictions, ratings, allow_unmatched=True)


def test_values_of_the_wrong_kind_in_parquet(tmp_path: Path) -> None:
    """Truth values are no probabilities, and times are no ids."""
    truth = pa.table({"case": [1], "prob_a": [True], "prob_b": [False]})
    pa.parquet.write_table(truth, tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match="'prob_a': must hold numbers; it holds bool"):
        read_predictions(tmp_path / "t.parquet")
    floats = pa.table({"case": [1.5], "prob_a": [1], "prob_b": [0]})
    pa.parquet.write_table(floats, tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match="must hold text or whole numbers; it holds double"):
        read_predictions(tmp_path / "t.parquet")


# Writing -----------------------------------------------------------------------------------------


def test_writing_replaces_the_whole_file(tmp_path: Path) -> None:
    """A second write replaces the first, keeps its permissions, and leaves nothing else behind."""
    path = tmp_path / "r.json"
    write_text_atomically(path, "first, and much longer\n")
    path.chmod(0o640)
    write_text_atomically(path, "α\r\n")
    assert path.read_bytes() == "α\r\n".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the disk gives up in between, the old file is whole and no part of the new is left."""
    path = tmp_path / "r.json"
    write_text_atomically(path, "old")

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("raterwise.io.files.os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file behind a link is replaced, not the link."""
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write_text_atomically(tmp_path / "link.json", "new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    """A missing folder, and a folder in place of the file, are said to be that."""
    with pytest.raises(InvalidInputError, match=r"the folder .*nowhere must exist; it does not"):
        write_text_atomically(tmp_path / "nowhere" / "r.json", "x")
    with pytest.raises(InvalidInputError, match="must be a file to write to; it is a folder"):
        write_text_atomically(tmp_path, "x")

"""Data frames of any library in: probabilities, labels, ratings, patients, weights, sub-groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import raterwise as rw
from raterwise.labels.duplicates import Duplicates

PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])
NAMES = ("none", "mild", "severe")
CODES = [0, 1, 2, 1]
WORDS = [NAMES[k] for k in CODES]
PATIENTS = ["p1", "p1", "p2", "p3"]
WEIGHTS = [1.0, 2.0, 0.5, 1.0]

Make = Callable[[dict[str, Any]], Any]
FRAMES: dict[str, Make] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def column(frame: Any, name: str) -> Any:
    """Return one column as the frame's own series."""
    return frame.column(name) if isinstance(frame, pa.Table) else frame[name]


def probabilities(make: Make) -> Any:
    """Return a frame of the probabilities, a column per class."""
    return make({f"prob_{name}": PROBS[:, k] for k, name in enumerate(NAMES)})


@pytest.fixture(params=FRAMES.values(), ids=FRAMES)
def make(request: pytest.FixtureRequest) -> Make:
    """One library of data frames after the other."""
    made: Make = request.param
    return made


def test_a_frame_is_the_array_it_holds(make: Make) -> None:
    """Probabilities, words, patients and weights as columns give the numbers of plain arrays."""
    plain = rw.evaluate(
        PROBS, CODES, "brier,ece", groups=PATIENTS, weights=WEIGHTS, resamples=20, threads=1
    )
    table = make({"y": WORDS, "patient": PATIENTS, "w": WEIGHTS})
    found = rw.evaluate(
        probabilities(make),
        column(table, "y"),
        "brier,ece",
        groups=column(table, "patient"),
        weights=column(table, "w"),
        resamples=20,
        threads=1,
    )
    for name in ("brier", "ece"):
        assert (found[name].value, found[name].low) == (plain[name].value, plain[name].low)
    assert found.data["class_names"] == list(NAMES)
    assert found.data["patients"] == 3
    assert rw.brier(probabilities(make), column(make({"y": CODES}), "y")) == rw.brier(PROBS, CODES)


def test_a_column_of_lists_is_the_rows_it_holds() -> None:
    """One list of probabilities per case, as Parquet files of networks often have them.

    The Brier score is (0.1² + 0.4²)/2 = 0.085.
    """
    rows = [[0.1, 0.9], [0.6, 0.4]]
    for series in (
        pd.Series(rows),
        pd.Series(list(np.array(rows))),
        pl.Series(rows),
        pl.Series(rows, dtype=pl.Array(pl.Float64, 2)),
        pa.array(rows),
        pa.chunked_array([rows[:1], rows[1:]]),
        pl.DataFrame({"probs": rows}),
    ):
        assert rw.brier(series, [1, 0]) == pytest.approx(0.085)
    counts = pl.Series([[2, 1], [0, 3]])
    assert rw.Labels.from_counts(counts).counts.tolist() == [[2, 1], [0, 3]]


def test_compare_and_subgroups_take_frames(make: Make) -> None:
    """Two frames of probabilities on the same cases; a frame of variables."""
    flat = make({name: np.full(4, 1 / 3) for name in NAMES})
    models = {"model": probabilities(make), "flat": flat}
    found = rw.compare(models, WORDS, "brier", class_names=NAMES, resamples=10)
    assert found.models["model"]["brier"].value == rw.brier(PROBS, CODES)
    scanners = make({"scanner": ["A", "B", "A", None]})
    results = rw.evaluate(PROBS, CODES, "brier", resamples=10, subgroups=scanners)
    assert [s.level for s in results.subgroups] == ["A", "B", "(missing)"]


def test_one_column_is_the_probability_of_the_second_class(make: Make) -> None:
    """A series, or a frame of one column, of two classes."""
    scores = make({"risk": [0.9, 0.2, 0.4]})
    assert rw.brier(scores, [1, 0, 0]) == rw.brier(column(scores, "risk"), [1, 0, 0])
    assert rw.brier(scores, [1, 0, 0]) == pytest.approx((0.01 + 0.04 + 0.16) / 3)


WIDE = {
    "case": ["a", "b", "c"],
    "ann": [0, 1, None],
    "bob": [1, 1, None],
    "cy": [1, None, 2],
}
COUNTS = [[1, 2, 0], [0, 2, 0], [0, 0, 1]]


def test_a_column_per_rater(make: Make) -> None:
    """Empty cells are no rating; raters and cases keep their names."""
    labels = rw.Labels.from_frame(make(WIDE), raters=["ann", "bob", "cy"], case="case")
    assert labels.counts.tolist() == COUNTS
    assert labels.case_ids == ("a", "b", "c")
    assert labels.ratings is not None and labels.ratings.rater_ids == ("ann", "bob", "cy")
    words = make({k: [None if v is None else NAMES[v] for v in WIDE[k]] for k in ("ann", "bob")})
    named = rw.Labels.from_frame(words, raters=["ann", "bob"], class_names=NAMES)
    assert named.counts.tolist() == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]
    assert named.class_names == NAMES


def test_a_row_per_rating(make: Make) -> None:
    """The same, long; a case whose only rating is empty stays, unrated."""
    long = make(
        {
            "case": ["a", "a", "b", "a", "c", "d"],
            "who": ["ann", "bob", "bob", "cy", "cy", "ann"],
            "label": ["none", "mild", "mild", "mild", "severe", None],
        }
    )
    labels = rw.Labels.from_frame(long, case="case", rater="who", label="label", class_names=NAMES)
    assert labels.counts.tolist() == [[1, 2, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert labels.case_ids == ("a", "b", "c", "d")
    direct = rw.Labels.from_long(
        column(long, "case"), column(long, "who"), column(long, "label"), class_names=NAMES
    )
    assert direct.counts.tolist() == labels.counts.tolist()


NULLABLE: dict[str, Any] = {
    "float with NaN": pd.Series([0, np.nan, 2]),
    "Int64": pd.Series([0, None, 2], dtype="Int64"),
    "Float64": pd.Series([0, None, 2], dtype="Float64"),
    "object of NA": pd.Series([0, pd.NA, 2], dtype=object),
    "object of None": pd.Series([0, None, 2], dtype=object),
    "arrow-backed": pd.Series([0, None, 2], dtype=pd.ArrowDtype(pa.int64())),
    "polars": pl.Series("y", [0, None, 2]),
    "pyarrow column": pa.chunked_array([[0, None], [2]]),
    "pyarrow array": pa.array([0, None, 2]),
    "strings": pd.Series(["0", pd.NA, "2"], dtype="string"),
    "words of a file": pd.Series(["none", "", "severe"]),
    "categories": pd.Series(pd.Categorical(["none", None, "severe"], categories=list(NAMES))),
    "enum": pl.Series(["none", None, "severe"], dtype=pl.Enum(list(NAMES))),
    "a list with None": [0, None, 2],
}


@pytest.mark.parametrize("values", NULLABLE.values(), ids=NULLABLE)
def test_what_is_missing_is_no_rating(values: Any) -> None:
    """NaN, None, NA and nullable types: three spellings of the same gap, in every library."""
    labels = rw.Labels.from_classes(values, 3, NAMES)
    assert labels.counts.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(rw.InvalidInputError, match="every case needs a rating; 1 of 3"):
        rw.brier(PROBS[:3], labels)
    assert rw.brier(PROBS[:3], labels, on_unrated="drop") == rw.brier(PROBS[[0, 2]], [0, 2])


def test_a_rater_rates_a_case_once() -> None:
    """A repeated rating is refused, or one counts, or each does, and the results say so."""
    long = pd.DataFrame({"c": list("aaaab"), "r": list("xxxyx"), "y": [0, 1, 0, 1, 1]})
    columns = {"case": "c", "rater": "r", "label": "y"}
    with pytest.raises(rw.InvalidInputError, match="'x' has more than one row for case 'a'") as no:
        rw.Labels.from_frame(long, **columns, duplicates="error")
    assert 'duplicates="last" takes the last one' in str(no.value)
    want: dict[Duplicates | None, list[list[int]]] = {
        None: [[2, 2], [0, 1]],
        "keep": [[2, 2], [0, 1]],
        "last": [[1, 1], [0, 1]],
        "average": [[1, 1], [0, 1]],
    }
    for duplicates, counts in want.items():
        labels = rw.Labels.from_frame(long, **columns, duplicates=duplicates)
        assert labels.counts.tolist() == counts
        found = rw.evaluate([0.25, 0.75], labels, "brier", resamples=0)
        assert any(": 2 ratings are repeats" in w for w in found.warnings) == (duplicates != "keep")
    reversed_last = rw.Labels.from_long("aaa", "xxx", [1, 1, 0], duplicates="last")
    assert reversed_last.counts.tolist() == [[1, 0]]
    by_vote = rw.Labels.from_long("aaa", "xxx", [1, 1, 0], duplicates="average")
    assert by_vote.counts.tolist() == [[0, 1]]
    each_alone = rw.Labels.from_long("aaabb", "xxxxx", [0, 0, 1, 0, 0], duplicates="average")
    assert each_alone.counts.tolist() == [[1, 0], [1, 0]]


def test_the_order_of_the_classes_is_told_not_guessed() -> None:
    """Categories and an enum have an order; words and polars' categories have none."""
    stages = pd.Categorical(["severe", "none"], categories=list(NAMES))
    for values in (stages, pd.Series(stages), pl.Series(["severe", "none"], dtype=pl.Enum(NAMES))):
        labels = rw.Labels.from_classes(values)
        assert labels.majority().tolist() == [2, 0]
        assert labels.class_names == NAMES
    other = rw.Labels.from_classes(pd.Series(stages), class_names=["severe", "mild", "none"])
    assert other.majority().tolist() == [0, 2]
    for values in (["severe", "none"], pl.Series(["severe", "none"], dtype=pl.Categorical)):
        with pytest.raises(rw.InvalidTypeError, match=r"class_names.*order.*'severe'"):
            rw.Labels.from_classes(values)
    two = pd.DataFrame({"a": pd.Categorical(["x"]), "b": pd.Categorical(["y"])})
    with pytest.raises(rw.InvalidInputError, match="same categories in each column"):
        rw.Labels.from_ratings(two)


def test_the_number_of_classes_is_inferred_where_it_can_be() -> None:
    """From names, categories, or the largest class; probabilities of more classes widen it."""
    labels = rw.Labels.from_ratings([[0, 1], [1, -1]])
    assert (labels.num_classes, labels.inferred) == (2, True)
    assert rw.Labels.from_classes([0, 3]).num_classes == 4
    assert rw.Labels.from_classes([0, 1], class_names=NAMES).num_classes == 3
    assert rw.Labels.from_long("ab", "xy", [0, 0]).num_classes == 2
    told = rw.Labels.from_ratings([[0, 1], [1, -1]], num_classes=3)
    assert rw.brier(PROBS[:2], labels) == rw.brier(PROBS[:2], told)
    with pytest.raises(rw.InvalidInputError, match="got 2 classes in labels and 3 in probs"):
        rw.brier(PROBS[:2], rw.Labels.from_ratings([[0, 1], [1, -1]], num_classes=2))


def test_masked_arrays_are_missing_or_refused() -> None:
    """What a mask hides is no rating; a hidden probability, class or weight is an error.

    The Brier score of the two cases that are seen: ((0.1)² + (0.4)²)/2 = 0.085.
    """
    hidden = np.array([[False, True], [False, False], [True, True]])
    for values in (
        np.array([[0, 9], [1, 1], [9, 9]]),
        np.array([["a", "?"], ["b", "b"], ["?", "?"]]),
    ):
        names = None if values.dtype.kind == "i" else ["a", "b"]
        ratings = np.ma.MaskedArray(values, hidden)
        labels = rw.Labels.from_ratings(ratings, 2, class_names=names)
        assert labels.counts.tolist() == [[1, 0], [0, 2], [0, 0]]
        score = rw.brier([0.1, 0.6, 0.5], labels, on_unrated="drop")
        assert score == pytest.approx(0.085)
    scores = np.ma.MaskedArray([0.1, 0.6, 0.99], [False, False, True])
    for call in (
        lambda: rw.brier(scores, [0, 1, 0]),
        lambda: rw.brier([0.1, 0.6, 0.9], np.ma.MaskedArray([0, 1, 0], [0, 0, 1])),
        lambda: rw.brier([0.1, 0.6, 0.9], [0, 1, 0], weights=scores),
    ):
        with pytest.raises(rw.InvalidTypeError, match="masked array with hidden values; 1 of 3"):
            call()


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a column of words among the probabilities": (
        lambda: rw.brier(pd.DataFrame({"id": ["a"], "p": [0.5]}), [0]),
        "probs: must be an array of numbers; column 'id' holds String",
    ),
    "an empty probability": (
        lambda: rw.brier(pl.DataFrame({"a": [0.5, None], "b": [0.5, 0.5]}), [0, 1]),
        "probs: must not contain NaN; 1 values are NaN, the first in row 1",
    ),
    "lists of several lengths": (
        lambda: rw.brier([[0.5, 0.5], [1.0]], [0, 1]),
        "probs: must be an array .* rows of one length; row 0 has 2 values, row 1 has 1",
    ),
    "a column of lists of several lengths": (
        lambda: rw.brier(pd.Series([[0.5, 0.5], [1.0]]), [0, 1]),
        "probs: must be an array .* rows of one length; row 0 has 2 values, row 1 has 1",
    ),
    "an empty list": (
        lambda: rw.brier(pl.Series([[0.5, 0.5], None]), [0, 1]),
        "probs: must be an array .* rows of one length; row 0 has 2 values, row 1 has 0",
    ),
    "lists beside numbers": (
        lambda: rw.brier(pd.DataFrame({"p": [[0.5, 0.5]], "id": [7]}), [0]),
        "probs: must have one number per column and row.* column 'p' holds lists of 2",
    ),
    "a lazy frame": (
        lambda: rw.brier(pl.DataFrame({"a": [0.5]}).lazy(), [0]),
        "probs: must be in memory; got a lazy frame: collect it first",
    ),
    "an unknown class": (
        lambda: rw.Labels.from_classes(["Severe"], class_names=NAMES),
        r"labels: must hold classes; entry 0 is 'Severe' \(did you mean 'severe'\?\)",
    ),
    "a column that is not there": (
        lambda: rw.Labels.from_frame(pd.DataFrame({"reader_1": [0]}), raters=["reader1"]),
        r"raters: must name columns of the frame; there is no 'reader1' \(did you mean 'reader_1'",
    ),
    "neither wide nor long": (
        lambda: rw.Labels.from_frame(pd.DataFrame({"a": [0]}), case="a"),
        "raters: must name the columns of the raters; or case, rater and label",
    ),
    "no frame": (
        lambda: rw.Labels.from_frame([[0, 1]], raters=["a"]),
        "df: must be a data frame .*; got list",
    ),
    "two columns for one label": (
        lambda: rw.brier(PROBS[:1], pd.DataFrame({"a": [0], "b": [1]})),
        "labels: must be one column, .* got 2 columns. Labels.from_frame",
    ),
    "columns in another order": (
        lambda: rw.brier(
            pd.DataFrame({"prob_b": [0.4], "prob_a": [0.6]}),
            rw.Labels.from_classes([0], class_names=["a", "b"]),
        ),
        "class_names: must be in the order of the columns of probs; these are b, a",
    ),
    "rows in another order": (
        lambda: rw.brier(pd.Series([0.2, 0.7], index=[1, 2]), pd.Series([1, 0], index=[2, 1])),
        r"labels: must have its rows in the order of probs; .*labels.loc\[probs.index\]",
    ),
    "a patient without a name": (
        lambda: rw.evaluate([0.2, 0.7], [0, 1], groups=pd.Series(["a", pd.NA], dtype="string")),
        "groups: must name the patient of each case; 1 of 2",
    ),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_frames_that_are_refused(call: Callable[[], Any], message: str) -> None:
    """The message names the argument, the column, and the way out."""
    with pytest.raises(rw.RaterwiseError, match=message):
        call()


def test_a_calibrator_is_fitted_to_frames(make: Make) -> None:
    """Logits and labels as columns give the temperature of plain arrays."""
    logits = np.log(np.tile(PROBS, (5, 1)))
    y = CODES * 5
    frame = make({name: logits[:, k] for k, name in enumerate(NAMES)})
    plain = rw.TemperatureScaling(input="logits").fit(logits, y)
    found = rw.TemperatureScaling(input="logits").fit(frame, column(make({"y": y}), "y"))
    assert found.temperature_ == plain.temperature_


def test_rows_of_other_cases_are_refused() -> None:
    """Labels by case id, or an index of other rows, are not matched by their place."""
    probs = pd.DataFrame({"a": [0.75, 0.5], "b": [0.25, 0.5]}, index=["n1", "n2"])
    long = pd.DataFrame({"c": ["n2", "n1"], "r": ["A", "A"], "y": [1, 0]})
    labels = rw.Labels.from_frame(long, case="c", rater="r", label="y")
    with pytest.raises(rw.InvalidInputError, match="same rows in another order: order=probs"):
        rw.brier(probs, labels)
    ordered = rw.Labels.from_long(long["c"], long["r"], long["y"], 2, order=probs.index)
    # (0 - 1/4)² and (1 - 1/2)²
    assert rw.brier(probs, ordered) == pytest.approx((1 / 16 + 1 / 4) / 2, rel=1e-12)
    with pytest.raises(rw.InvalidInputError, match="has others, such as 'n3'"):
        rw.brier(probs, pd.Series([0, 1], index=["n2", "n3"]))
    assert rw.brier(probs, pd.Series([0, 1])) == pytest.approx((1 / 16 + 1 / 4) / 2, rel=1e-12)


def test_codes_beside_names_in_another_order() -> None:
    """A frame of malignant and benign with the labels 0 and 1: results say what 0 is."""
    probs = pd.DataFrame({"prob_malignant": [0.25, 0.5], "prob_benign": [0.75, 0.5]})

    def told(probs: object, labels: object, **options: Any) -> bool:
        found = rw.evaluate(probs, labels, "brier", resamples=0, **options)
        return any("0 was read as" in warning for warning in found.warnings)

    assert told(probs, [0, 1])
    assert told(probs, rw.Labels.from_classes([0, 1]))
    assert told(probs["prob_benign"], [0, 1])
    assert not told(probs[["prob_benign", "prob_malignant"]], [0, 1])
    assert not told(probs, ["benign", "malignant"])
    assert not told(probs, [0, 1], class_names=["malignant", "benign"])
    assert not told(probs["prob_malignant"], [0, 1])


def test_one_hot_rows_are_no_ratings() -> None:
    """Refused where chance cannot have made them, told where it may have."""
    y = np.arange(30) % 3
    probs, rows = np.full((30, 3), 1 / 3), np.eye(3, dtype=int)
    with pytest.raises(rw.InvalidInputError, match=r"one-hot.*Labels\.from_counts.*from_ratings"):
        rw.brier(probs, rw.Labels.from_ratings(rows[y], num_classes=3))
    assert rw.brier(probs, rw.Labels.from_counts(rows[y])) == pytest.approx(2 / 3)

    def told(ratings: Any, classes: int) -> bool:
        labels = rw.Labels.from_ratings(ratings, num_classes=classes)
        uniform = np.full((len(ratings), classes), 1 / classes)
        warnings = rw.evaluate(uniform, labels, "brier", resamples=0).warnings
        return any("may be one-hot" in warning for warning in warnings)

    assert told(rows[y[:6]], 3)  # six cases may be chance
    assert told(np.tile([0, 0, 1], (30, 1)), 3)  # one reader alone may say 1 of everything
    assert told(np.eye(2, dtype=int)[y % 2], 2)  # two readers may always disagree
    assert not told(np.eye(2, dtype=int)[[0, 1]], 2)
    assert not told([*rows[y], [2, 1, 0]], 3)
    assert not told([*rows[y], [1, 1, 0]], 3)
    assert not told(np.eye(4, dtype=int)[np.arange(30) % 4], 3)  # four raters of three classes
    with pytest.raises(rw.InvalidInputError, match=r"columns are raters .*Labels\.from_ratings"):
        rw.evaluate(probs[:2], rw.Labels.from_counts([[1, 0, 2], [0, 0, 0]]), resamples=0)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        (np.array([[0.5, 0.5], [0.25, 0.75]], object), r"probs\.astype\(float\) makes numbers"),
        (pd.array([0.5, None], "Float64"), "1 values are (missing|NaN)"),
        (np.array([0.5, None], object), "1 values are missing .* leave these cases out"),
        (np.array([[75.0, 25.0], [50.0, 50.0]]), "probs / 100 makes probabilities of percentages"),
        (np.array([75.0, 25.0]), "probs / 100 makes probabilities of percentages"),
        (np.array([[3.5, -2.0], [0.5, 0.5]]), "logits need a softmax"),
        (np.array([2.5, 0.5]), "logits need a softmax"),
    ],
)
def test_messages_about_probabilities_say_what_to_write(probs: Any, message: str) -> None:
    """Objects, NA, percentages and logits are told apart."""
    with pytest.raises(rw.RaterwiseError, match=message):
        rw.evaluate(probs, [0, 1], "brier", resamples=0)


def test_99_among_ratings() -> None:
    """What is no class and often no rating: the message says how to say so."""
    with pytest.raises(rw.InvalidInputError, match=r"is 99 \(if that is no rating: missing=99\)"):
        rw.Labels.from_ratings([[0, 99], [1, 1]], num_classes=2)
    labels = rw.Labels.from_ratings([[0, 99], [1, 1]], num_classes=2, missing=99)
    assert labels.counts.tolist() == [[1, 0], [0, 2]]


def test_fewer_categories_than_classes_are_told_of_the_labels() -> None:
    """Nobody chose the third class: the labels lack it, and no class_names were given."""
    probs = [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]
    with pytest.raises(
        rw.InvalidInputError, match="labels: must have a category for each of the 3"
    ):
        rw.ece(probs, pd.Series(["a", "b"], dtype="category"))


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"id": [1, 2, 3], "a": [0.1, 0.5, 0.4], "b": [0.9, 0.5, 0.6]}, "column 'id' is no"),
        ({"a": [0.1, 0.5, 0.4], "b": [0.9, 0.5, 0.6], "label": [0, 1, 0]}, "column 'label' is no"),
        ({"id": [1, 2, 3], "age": [50, 60, 70], "a": [0.1, 0.5, 0.4]}, "columns 'id', 'age' are"),
        ({"mm": [1.5, 2.5, 3.5], "a": [0.1, 0.5, 0.4], "b": [0.9, 0.5, 0.6]}, "column 'mm' is no"),
        ({"a": [2.5, 0.3, 1.0], "b": [0.5, 0.4, 0.0]}, "softmax first"),
        ({"a": [1, 2, 0], "b": [60, 58, 50], "c": [39, 40, 50]}, "/ 100 makes probabilities"),
        ({"a": [0] * 3, "b": [1] * 3, **dict.fromkeys("cdefgh", [16] * 3)}, "/ 100 makes prob"),
        ({"a": [0.5, 0.3, 0.4], "b": [1, 1, 1]}, "rows must sum to 1"),
        ({"a": [3, 9, 4], "b": [7, 8, 6]}, "softmax first"),
        ({"a": [0.5, 0.3, 0.4], "again": [0.5, 0.3, 0.4], "b": [0.5, 0.7, 0.6]}, "column 'a' is"),
    ],
)
def test_a_column_that_is_no_probability_is_named(
    columns: dict[str, list[float]], named: str
) -> None:
    """Numbers of cases beside the probabilities; logits and percentages stay what they are."""
    with pytest.raises(rw.InvalidInputError, match=named):
        rw.accuracy(pd.DataFrame(columns), [0, 1, 1])

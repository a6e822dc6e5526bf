"""Findings that may occur together, from files: every layout, every format, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import raterwise as rw
from raterwise.io.findings import Findings, join_findings, read_finding_ratings
from raterwise.io.layouts import TableColumns
from raterwise.io.tables import read_predictions

# Three cases; edema was rated by readers 1 and 2, and by one of them in n3; mass by reader 1 alone.
POSITIVES = [[2, 1], [1, 0], [0, 0]]
RATERS = [[2, 1], [2, 1], [1, 1]]
PROBS = "case,prob_edema,prob_mass\nn1,0.9,0.8\nn2,0.5,0.6\nn3,0,1\n"
COUNTS = (
    "case,positives_edema,raters_edema,raters_mass,positives_mass\n"
    "n1,2,2,1,1\nn2,1,2,1,0\nn3,0,1,1,0\n"
)
WIDE = "case,reader_1_edema,reader_2_edema,reader_1_mass\nn1,1,1,1\nn2,yes,No,FALSE\nn3,,0.0, no \n"
MIXED = (
    "case,reader_1_edema,reader_2_edema,positives_mass,raters_mass\n"
    "n1,1,1,1,1\nn2,true,false,0,1\nn3,0,,0,1\n"
)  # fmt: skip
LONG = (
    "case,reader,finding,label\n"
    "n1,A,edema,1\nn1,B,edema,YES\nn1,A,mass,true\nn2,A,edema,1\nn2,B,edema,0\nn2,A,mass,no\n"
    "n3,A,edema,\nn3,B,edema,False\nn3,A,mass,0\n"
)
READINGS = "case,reader,edema,mass\nn1,A,1,yes\nn1,B,1,\nn2,A,YES,no\nn2,B,no,\nn3,B,0,\nn3,A,,0\n"


def saved(folder: Path, text: str, name: str = "r.csv") -> Path:
    """Write a CSV file."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def joined(folder: Path, ratings: str, probs: str = PROBS, **options: Any) -> Findings:
    """Read both tables and join them."""
    table = read_predictions(saved(folder, probs, "p.csv"), exclusive=False)
    finding = options.pop("finding_column", None)
    told = TableColumns(**options)
    answers = read_finding_ratings(
        saved(folder, ratings), table.class_names, told, finding_column=finding
    )
    return join_findings(table, answers, allow_unmatched=told.allow_unmatched)


@pytest.mark.parametrize(
    "text",
    [COUNTS, WIDE, MIXED, LONG, READINGS],
    ids=["counts", "wide", "mix", "long", "readings"],
)
def test_every_layout_gives_the_same_counts(tmp_path: Path, text: str) -> None:
    """Counts, a column per rater, both, a row per answer and a row per reading say the same."""
    found = joined(tmp_path, text)
    assert found.names == ("edema", "mass")
    assert found.probs.tolist() == [[0.9, 0.8], [0.5, 0.6], [0.0, 1.0]]
    assert found.positives.tolist() == POSITIVES
    assert found.raters.tolist() == RATERS
    assert found.unread == () and found.report.dropped == {}


def test_a_form_that_a_reader_filled_in(tmp_path: Path) -> None:
    """Other names of columns, a patient, a date, a finding that the model has not, who said what.

    The layout of the radiologists' labels of ChestX-ray14: an image and a reader in each row.
    """
    text = READINGS.replace("case,reader,edema", "Image ID,Reader ID,edema")
    lines = text.splitlines()
    text = "\n".join([f"{lines[0]},Other,Date", *(f"{line},NO,2024-01-02" for line in lines[1:])])
    told = TableColumns("Image ID", rater_column="Reader ID")
    table = read_finding_ratings(saved(tmp_path, text), ["edema", "mass"], told)
    assert (table.positives.tolist(), table.raters.tolist()) == (POSITIVES, RATERS)
    assert table.answers is not None
    assert table.answers.tolist() == [[[1, 1], [1, -1]], [[1, 0], [0, -1]], [[-1, 0], [0, -1]]]
    assert table.notes == (
        "r.csv: 'Other' could be of a finding that has no probability; not used",
    )
    with pytest.raises(
        rw.InvalidInputError, match='beside a rater_column, such as rater_column="R'
    ):
        read_finding_ratings(
            saved(tmp_path, text), ["edema", "mass"], TableColumns(id_column="Image ID")
        )
    with pytest.raises(rw.InvalidInputError, match="'Mass' has none \\(did you mean 'mass'"):
        read_finding_ratings(saved(tmp_path, READINGS), ["edema", "Mass"])
    weighed = "case,reader,mass,label_mass\nn1,A,3.5,1\nn2,B,4,0\n"  # no answer: grams
    assert read_finding_ratings(saved(tmp_path, weighed), ["mass"]).positives.tolist() == [[1], [0]]
    twice = READINGS + "n3,A,1,0\n"
    with pytest.raises(rw.InvalidInputError, match="'A' has more than one row for 'edema' of case"):
        read_finding_ratings(saved(tmp_path, twice), ["edema", "mass"])
    last = read_finding_ratings(
        saved(tmp_path, twice), ["edema", "mass"], TableColumns(duplicates="last")
    )
    assert last.positives.tolist()[2] == [1, 0]


def test_the_same_file_needs_no_ids(tmp_path: Path) -> None:
    """Labels beside the probabilities are in their order; one label per finding is one rater."""
    text = "prob_edema,label_edema,label_mass,prob_mass\n0.9,yes,0,0.1\n0.2,no,1,0.7\n"
    path = saved(tmp_path, text)
    table = read_predictions(path, exclusive=False)
    answers = read_finding_ratings(path, table.class_names)
    found = join_findings(table, answers, same_file=True)
    assert found.ids is None and found.names == ("edema", "mass")
    assert found.positives.tolist() == [[1, 0], [0, 1]]
    assert found.raters.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match=r"r\.csv: must hold ids, by which it is joined to r\.csv"):
        join_findings(table, answers)


def test_ratings_are_joined_by_id(tmp_path: Path) -> None:
    """Rows in another order find their case; a case of one file alone is an error, or counted."""
    lines = COUNTS.splitlines()
    found = joined(tmp_path, "\n".join([lines[0], *lines[:0:-1]]))
    assert found.positives.tolist() == POSITIVES
    with pytest.raises(ValueError, match=r"1 of 3 cases of p\.csv are not in r\.csv"):
        joined(tmp_path, "\n".join(lines[:-1]))
    found = joined(tmp_path, "\n".join(lines[:-1]), allow_unmatched=True)
    assert found.report.dropped == {"without_ratings": 1}
    assert found.positives.tolist() == POSITIVES[:2] and found.ids.tolist() == ["n1", "n2"]


def test_names_that_end_in_other_names(tmp_path: Path) -> None:
    """A column belongs to the longest finding that it ends in."""
    probs = "case,prob_mass,prob_nodule_mass\nn1,0.1,0.2\n"
    wide = "case,reader_1_mass,reader_1_nodule_mass,reader_2_nodule_mass\nn1,0,1,1\n"
    found = joined(tmp_path, wide, probs)
    assert found.positives.tolist() == [[0, 2]] and found.raters.tolist() == [[1, 2]]


def test_another_prefix_and_other_columns(tmp_path: Path) -> None:
    """--rater-prefix, and the names of the columns of a long table."""
    wide = WIDE.replace("reader_", "dr_")
    found = joined(tmp_path, wide, rater_prefix="dr_")
    assert found.positives.tolist() == POSITIVES and found.raters.tolist() == RATERS
    text = LONG.replace("case,reader,finding,label", "case,who,what,said")
    columns = {"rater_column": "who", "rating_column": "said", "finding_column": "what"}
    found = joined(tmp_path, text, **columns)
    assert found.positives.tolist() == POSITIVES and found.raters.tolist() == RATERS


def test_a_layout_chooses_between_counts_and_answers(tmp_path: Path) -> None:
    """A file with both is an error that says how to choose; either can be taken."""
    text = "case,reader_1_edema,positives_edema,raters_edema\nn1,0,1,1\nn2,0,1,1\nn3,0,1,1\n"
    probs = "case,prob_edema\nn1,0.5\nn2,0.5\nn3,0.5\n"
    with pytest.raises(ValueError, match="'edema' must have counts or answers of raters"):
        joined(tmp_path, text, probs)
    taken = {
        layout: joined(tmp_path, text, probs, ratings_layout=layout).positives.sum()
        for layout in ("wide", "counts")
    }
    assert taken == {"wide": 0, "counts": 3}


def test_missing_marks_numbers_and_truth_values(tmp_path: Path) -> None:
    """--missing lists what is no rating; Parquet holds truth values, and numbers with gaps."""
    found = joined(tmp_path, WIDE.replace("n3,,", "n3,NA,"), missing=["NA"])
    assert found.raters.tolist() == RATERS
    columns = {
        "case": ["n1", "n2", "n3"],
        "reader_1_edema": [True, True, None],
        "reader_2_edema": [1.0, 0.0, 0.0],
        "label_mass": [1.0, 0.0, float("nan")],
    }
    pa.parquet.write_table(pa.table(columns), tmp_path / "r.parquet")
    found = read_finding_ratings(tmp_path / "r.parquet", ["edema", "mass"])
    assert found.positives.tolist() == POSITIVES
    assert found.raters.tolist() == [[2, 1], [2, 1], [1, 0]]


def with_column(text: str, name: str) -> str:
    """Return a table with a further column of ones."""
    head, *rows = text.splitlines()
    return "\n".join([f"{head},{name}", *(f"{row},1" for row in rows)])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (LONG + "n1,A,other,1\n", "other"),
        (with_column(WIDE, "reader_2_other"), "reader_2_other"),
        (with_column(COUNTS, "raters_other"), "raters_other"),
        (with_column(COUNTS, "label_other"), "label_other"),
    ],
)
def test_what_is_rated_without_a_probability(tmp_path: Path, text: str, name: str) -> None:
    """Findings of no model are an error that names them, or are left out and told."""
    with pytest.raises(ValueError, match=f"must have a probability; '{name}' has none"):
        joined(tmp_path, text)
    found = joined(tmp_path, text, allow_unmatched=True)
    assert found.unread == (name,) and found.positives.tolist() == POSITIVES


def test_arrays_in_an_npz_file(tmp_path: Path) -> None:
    """Positives and raters by position, or by the names of the findings; ids join two files."""
    arrays = {"probs": [[0.9, 0.8], [0.5, 0.6], [0, 1]], "ids": ["n1", "n2", "n3"]}
    names = {"names": np.array(["edema", "mass"])}
    np.savez(tmp_path / "p.npz", positives=POSITIVES, raters=RATERS, **arrays, **names)
    table = read_predictions(tmp_path / "p.npz", exclusive=False)
    assert table.class_names == ("edema", "mass")
    answers = read_finding_ratings(tmp_path / "p.npz", table.class_names)
    found = join_findings(table, answers, same_file=True)
    assert found.positives.tolist() == POSITIVES and found.raters.tolist() == RATERS
    turned = {"positives": np.array(POSITIVES)[::-1, ::-1], "raters": np.array(RATERS)[::-1, ::-1]}
    other = {"names": np.array(["mass", "edema"]), "ids": ["n3", "n2", "n1"]}
    np.savez(tmp_path / "r.npz", **turned, **other)
    answers = read_finding_ratings(tmp_path / "r.npz", table.class_names)
    found = join_findings(table, answers)
    assert found.positives.tolist() == POSITIVES and found.raters.tolist() == RATERS


ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "no raters": ({"positives": [[1]]}, "must hold an array 'raters'"),
    "another shape": ({"positives": [[1, 1]], "raters": [[1]]}, r"must have the shape \(1, 1\)"),
    "too many": ({"positives": [[2]], "raters": [[1]]}, "row 1, 'edema' has 2 of 1"),
    "halves": ({"positives": [[0.5]], "raters": [[1]]}, "must hold whole numbers"),
    "another finding": (
        {"positives": [[1]], "raters": [[1]], "names": np.array(["mass"])},
        "there is no 'edema'",
    ),
}


@pytest.mark.parametrize(("arrays", "message"), ARRAYS.values(), ids=ARRAYS)
def test_bad_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    """The array, the rule and the value are named."""
    np.savez(tmp_path / "r.npz", **arrays)
    with pytest.raises(rw.InvalidInputError, match=message):
        read_finding_ratings(tmp_path / "r.npz", ["edema"])


BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "a finding without columns": (
        "case,reader_1_edema\nn1,1\nn2,1\nn3,1\n", {},
        "every finding needs labels; 'mass' has none .looked for positives_FINDING and",
    ),
    "a finding without rows": (
        LONG.replace("mass", "edema2"), {}, "'mass' has none .looked for its name in 'finding'",
    ),
    "half of the counts": (
        COUNTS.replace("raters_mass", "raters_mas"), {},
        "must hold both 'positives_mass' and 'raters_mass'; there is no 'raters_mass'",
    ),
    "more than looked": (
        COUNTS.replace("n2,1,2", "n2,3,2"), {},
        r"'positives_edema' must be at most 'raters_edema'; data row 2 \(case 'n2'\) has 3 of 2",
    ),
    "half a rater": (COUNTS.replace("n2,1,2", "n2,1,2.5"), {}, "'raters_edema': must hold whole"),
    "an unknown answer": (
        WIDE.replace("yes", "maybe"), {},
        "column 'reader_1_edema': must hold 1 or 0, yes or no, true or false; data row 2 is 'm",
    ),
    "a mark for none": (
        WIDE.replace("yes", "NA"), {}, r'row 2 is \'NA\' \(if that is no rating: missing="NA"\)',
    ),
    "a code": (LONG.replace("n2,B,edema,0", "n2,B,edema,2"), {}, "'label': .* row 5 is '2'"),
    "twice": (
        LONG + "n3,A,mass,1\n", {},
        "'A' has more than one row for 'mass' of case 'n3'",
    ),
    "columns of raters": (
        WIDE, {"rater_columns": ["a"]}, "rater_columns: findings have col",
    ),
    "columns of counts": (
        WIDE, {"count_prefix": "n_"}, "count_prefix: findings have columns",
    ),
    "a column of findings": (
        WIDE, {"ratings_layout": "wide", "finding_column": "x"},
        "finding_column: does not go with the layout 'wide'",
    ),
    "no such column": (LONG, {"finding_column": "x"}, "finding_column: must name a column of"),
    "a case twice": (COUNTS + "n1,1,1,1,1\n", {}, "every case must have one row"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "options", "message"), BAD.values(), ids=BAD)
def test_bad_ratings_are_refused(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    """The file, the column, the rule and the value are named."""
    with pytest.raises(rw.InvalidInputError, match=message):
        joined(tmp_path, text, **options)


def test_bad_probabilities_are_refused(tmp_path: Path) -> None:
    """Each lies in [0, 1]; and an error about their sum says what findings need."""
    path = saved(tmp_path, PROBS.replace("0.9", "1.9"), "p.csv")
    with pytest.raises(
        ValueError, match=r"must lie in \[0, 1\]; 'prob_edema' is 1.9 in data row 1"
    ):
        read_predictions(path, exclusive=False)
    path = saved(tmp_path, PROBS, "p.csv")
    with pytest.raises(ValueError, match=r"sum to 1\.7 .*raterwise evaluate --multilabel takes"):
        read_predictions(path)


def test_findings_that_nobody_rated(tmp_path: Path) -> None:
    """A case without a rating is an error, or dropped; a finding without any is always an error."""
    text = COUNTS.replace("n3,0,1,1,0", "n3,0,1,0,0")
    found = joined(tmp_path, text)
    with pytest.raises(ValueError, match=r"rating of 'mass'; 1 of 3 has none \(first: case 'n3'"):
        found.require_ratings("r.csv", "error")
    found.require_ratings("r.csv", "drop")
    nobody = found._replace(raters=np.array([[1, 0]] * 3))
    with pytest.raises(ValueError, match=r"r\.csv: nobody rated 'mass' in any case"):
        nobody.require_ratings("r.csv", "drop")

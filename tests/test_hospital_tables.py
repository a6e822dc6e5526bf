"""Tables as hospitals export them, tried by hand: each is right, or the message says what to type.

As in `test_messy_files`, whose four nodules these tables hold.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app
from raterwise.io.texts import cleaned
from raterwise.worklist import Worklist, worklist

P = "case,prob_benign,prob_malignant\nn1,0.75,0.25\nn2,0.5,0.5\nn3,0.125,0.875\nn4,1,0\n"
LONG = (
    "case,reader,label\nn1,A,benign\nn1,B,malignant\nn2,A,malignant\nn2,B,malignant\n"
    "n3,A,malignant\nn4,A,benign\nn4,B,benign\n"
)
WIDE = "case,reader_1,reader_2\nn1,0,1\nn2,1,1\nn3,1,\nn4,0,0\n"
ONE = "case,prob_malignant,y\nn1,0.25,0\nn2,0.5,1\nn3,0.875,1\nn4,0,0\n"
# By hand, as in test_messy_files: each case once, its ratings in equal parts; and one label each.
BRIER = ((1 / 16 + 9 / 16) / 2 + 1 / 4 + 1 / 64) / 4
BRIER_ONE = (1 / 16 + 1 / 4 + 1 / 64) / 4
BOTH, ALONE = "p.csv --ratings r.csv --per case", "p.csv --label-column y"


def german(text: str) -> str:
    """Return a table as a German spreadsheet writes it."""
    return text.replace(",", ";").replace(".", ",")


def ids(text: str, form: str) -> str:
    """Return a table whose cases n1, n2, … are written otherwise."""
    return re.sub(r"\bn(\d)", lambda found: form.format(int(found[1])), text)


def run(folder: Path, command: str) -> tuple[int, str]:
    """Run a command in a folder; return its exit code and what it says."""
    found = CliRunner().invoke(app, shlex.split(command))
    return found.exit_code, " ".join(found.output.split())


def evaluated(folder: Path, options: str) -> tuple[int, str]:
    """Evaluate the tables of a folder."""
    return run(folder, f"evaluate {options} --metrics brier --resamples 0 --out results.json")


RIGHT: dict[str, tuple[str | bytes, str | bytes, str]] = {
    "titles above the names": ("Export 2024\nSt. Anna\n\n" + P, LONG, BOTH),
    "titles with all delimiters": ("Export vom 01.02.2024;;\n;;\n" + german(P), LONG, BOTH),
    "titles above the ratings": (P, "Reader study,,\n" + LONG, BOTH),
    "empty rows among others": (P.replace("n3", ",,\nn3"), LONG, BOTH),
    "UTF-32": (P.encode("utf-32"), LONG, BOTH),
    "percent with a hard blank": (
        P.replace("0.75,0.25", "75\u00a0%,25\u00a0%").replace("0.5,0.5", "50 %,50 %")
        .replace("0.125,0.875", "12.5%,87.5%").replace("1,0\n", "100%,0%\n"),
        LONG, f"{BOTH} --percent",
    ),
    "letters in two normal forms": (ids(P, "Mu\u0308ller{}"), ids(LONG, "M\u00fcller{}"), BOTH),
    "marks without a width": (P, ids(LONG, "\u200bn{}"), BOTH),
    "one file of Windows, one of UTF-8": (
        ids(P, "nä{}").encode("cp1252"), ids(LONG, "nä{}"), f"{BOTH} --encoding cp1252"
    ),
    "counts of classes in capitals": (
        P, "case,count_Benign,count_Malignant\nn1,1,1\nn2,0,2\nn3,0,1\nn4,2,0\n", BOTH
    ),
    "blanks in a list": (P, LONG, f"{BOTH} --class-names 'benign, malignant'"),
    "yes and no beside a risk": (
        "case,risk\nn1,0.25\nn2,0.5\nn3,0.875\nn4,0\n",
        LONG.replace("benign", "no").replace("malignant", "Yes"), f"{BOTH} --prob-columns risk",
    ),
    "German answers": (
        "case,prob_malignant\nn1,0.25\nn2,0.5\nn3,0.875\nn4,0\n",
        LONG.replace("benign", "Nein").replace("malignant", "Ja"), BOTH,
    ),
}  # fmt: skip


@pytest.mark.parametrize("tables", RIGHT.values(), ids=RIGHT)
def test_read_rightly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: tuple[str | bytes, str | bytes, str]
) -> None:
    """What an export has around the table changes no number."""
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("p.csv", "r.csv"), tables, strict=False):
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    code, said = evaluated(tmp_path, tables[2])
    assert code == 0, said
    assert rw.Results.from_json("results.json")["brier"].value == pytest.approx(BRIER, rel=1e-12)


MESSAGES: dict[str, tuple[str, str, str, str, str]] = {
    "fractions as percentages": (
        ONE, "", f"{ALONE} --percent", "largest probability of p.csv is 0.875", ALONE
    ),
    "the first class alone": (
        ONE.replace("prob_malignant", "prob_0"), "", ALONE, "--class-names 0,1 for that of 1",
        f"{ALONE} --class-names 0,1",
    ),
    "a majority among the readers": (
        P, WIDE.replace("\n", ",1\n").replace("reader_2,1", "reader_2,reader_majority"), BOTH,
        "'reader_majority' may not be one .--rater-columns reader_1,reader_2",
        f"{BOTH} --rater-columns reader_1,reader_2",
    ),
    "how sure each reader was": (
        P, "case,reader_1,reader_1_sure,reader_2\nn1,0,1,1\nn2,1,1,1\nn3,1,0,\nn4,0,1,0\n", BOTH,
        "'reader_1_sure' may not be one .--rater-columns reader_1,reader_2",
        f"{BOTH} --rater-columns reader_1,reader_2",
    ),
    "a reader named twice": (
        P, WIDE, f"{BOTH} --rater-columns reader_1,reader_1", "'reader_1' is there twice", BOTH
    ),
    "the other class in words": (
        "case,prob_malignant\nn1,0.25\nn2,0.5\nn3,0.875\nn4,0\n", LONG, BOTH,
        "--class-names benign,malignant names", f"{BOTH} --class-names benign,malignant",
    ),
    "answers in several spellings": (
        P, LONG.replace("A,malignant", "A,1").replace("B,malignant", "B,positive")
        .replace("benign", "no"), BOTH, "--class-names no,yes takes",
        f"{BOTH} --class-names no,yes",
    ),
    "words for no rating": (
        P, LONG + "n3,B,not assessable\n", BOTH, '--missing "not assessable"',
        f"{BOTH} --missing 'not assessable'",
    ),
    "ids in capitals with an ending": (
        ids(P, "IMG_00{}.PNG"), ids(LONG, "img-{}"), BOTH, "upper and lower case .*--loose-ids",
        f"{BOTH} --loose-ids",
    ),
    "columns called after readers": (
        P, WIDE.replace("reader_1,reader_2", "Dr Smith,Dr Lee"), BOTH,
        '--rater-columns "Dr Smith,Dr Lee"', f"{BOTH} --rater-columns 'Dr Smith,Dr Lee'",
    ),
    "counts called n_": (
        P, "case,n_benign,n_malignant\nn1,1,1\nn2,0,2\nn3,0,1\nn4,2,0\n", BOTH,
        "--count-columns n_benign,n_malignant", f"{BOTH} --count-columns n_benign,n_malignant",
    ),
    "names again": (P + P, LONG, BOTH, "row 5 repeats the names of the columns; delete", ""),
    "a line below": (P + "Exported by PACS\n", LONG, BOTH, "if this one is no case, delete", ""),
    "a total": (P + "Total,2.4,1.6\n", LONG, BOTH, "if the last row is no case, delete it", ""),
    "a bound": (P.replace("1,0\n", ">0.99,0\n"), LONG, BOTH, "a bound; write a number", ""),
    "some with a percent sign": (
        P.replace("0.75,0.25", "75%,25%"), LONG, f"{BOTH} --percent", "row 2, '0.5', has none", ""
    ),
    "a thousand or a fraction in German": (
        "case;prob_m;w;y\nn1;0,25;1.234;0\nn2;0,5;12;1\n", "", f"{ALONE} --weight-column w",
        "1.234 may be a thousand or a fraction", "",
    ),
    "thousands": (
        'case,prob_m,w,y\nn1,0.25,"1,234.5",0\n', "", f"{ALONE} --weight-column w",
        "without a sign between the thousands", "",
    ),
    "a negative weight": (
        "case,prob_m,w,y\nn1,0.25,-1,0\nn2,0.5,1,1\n", "", f"{ALONE} --weight-column w",
        "'w': weights must not be negative; data row 1 is -1", "",
    ),
    "ids that a spreadsheet shortened": (
        ids(P, "1.2345{}E+11"), LONG, BOTH, "a spreadsheet shortened the numbers", ""
    ),
    "patients beside the ratings": (
        P, LONG.replace("reader,", "reader,pat,").replace("A,", "A,1,").replace("B,", "B,1,"),
        f"{BOTH} --group-column pat", "'pat' is in r.csv alone: copy it into p.csv", BOTH,
    ),
    "99 for no rating": (
        P, WIDE.replace("n3,1,", "n3,1,99"), BOTH, "--missing 99", f"{BOTH} --missing 99"
    ),
    "a row per class": (
        "case,class,probability\nn1,benign,0.75\n", LONG, BOTH, "one column per class are", ""
    ),
    "a row per rater": (
        P, "reader,n1,n2\nA,benign,malignant\n", BOTH, "turn the table, a row per case", ""
    ),
    "a web page": ("<html><table></table></html>", LONG, BOTH, "is not CSV but a web page", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", MESSAGES.values(), ids=MESSAGES)
def test_messages_say_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, str, str, str]
) -> None:
    """No number of a doubtful table; what the message offers gives the right one."""
    predictions, ratings, options, message, fix = case
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text(predictions, encoding="utf-8")
    Path("r.csv").write_text(ratings, encoding="utf-8")
    code, said = evaluated(tmp_path, options)
    assert code == 2 and re.search(message, said), said
    assert not Path("results.json").exists()
    if fix:
        code, said = evaluated(tmp_path, fix)
        assert code == 0, said
        want = BRIER_ONE if "--label-column" in fix else BRIER
        assert rw.Results.from_json("results.json")["brier"].value == pytest.approx(want, rel=1e-12)


def test_loose_ids_must_tell_cases_apart(tmp_path: Path) -> None:
    """Two ids of one file that would become one are refused, not merged."""
    (tmp_path / "p.csv").write_text("case,prob_1\nn1,0.5\nN1.png,0.5\n")
    (tmp_path / "r.csv").write_text("case,reader_1\nn1,0\nN1.png,1\n")
    with pytest.raises(rw.InvalidInputError, match=r"'n1' and 'N1\.png' would be the same"):
        rw.read_cases(tmp_path / "p.csv", tmp_path / "r.csv", loose_ids=True)


def test_names_that_may_be_one_are_told(tmp_path: Path) -> None:
    """Raters and patients that differ in capitals alone count as two, and a note says so."""
    (tmp_path / "p.csv").write_text("case,pat,prob_1\nn1,7,0.5\nn2,7.0,0.5\n")
    (tmp_path / "r.csv").write_text("case,reader,label\nn1,A,0\nn2,a,1\n")
    found = rw.read_cases(tmp_path / "p.csv", tmp_path / "r.csv", group_column="pat")
    assert any("'A' and 'a' count as two raters" in note for note in found.notes)
    assert any("'7' and '7.0' count as two patients" in note for note in found.notes)


def test_agreement_takes_no_missing_rating_for_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N/A, and the same class in other letters, are refused with the option that takes them."""
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("case,reader_1,reader_2\na,x,x\nb,y,N/A\nc,y,x\nd,X,x\n")
    words = "agreement r.csv --resamples 0 --out o.json"
    code, said = run(tmp_path, words)
    assert code == 2 and "--missing N/A" in said
    code, said = run(tmp_path, f"{words} --missing N/A")
    assert code == 2 and "--ignore-case" in said
    assert run(tmp_path, f"{words} --missing N/A --ignore-case")[0] == 0
    assert json.loads(Path("o.json").read_text(encoding="utf-8"))["class_names"] == ["x", "y"]


def test_sheets_with_titles_and_days(tmp_path: Path) -> None:
    """The first sheet is empty, the second has a title, and its ids are days."""
    days = pd.to_datetime(["2024-01-01", "2024-01-02"])
    rows = pd.DataFrame({"case": days, "prob_a": [0.5, 1.0], "prob_b": [0.5, 0.0]})
    with pd.ExcelWriter(tmp_path / "p.xlsx") as book:
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
        rows.to_excel(book, sheet_name="cases", index=False, startrow=2)
        book.sheets["cases"].cell(1, 1, "Export")
    (tmp_path / "r.csv").write_text("case,reader_1\n2024-01-02,a\n2024-01-01,b\n")
    found = rw.read_cases(tmp_path / "p.xlsx", tmp_path / "r.csv")
    assert found.labels.majority().tolist() == [1, 0]
    assert any("only the sheet 'cases' was read" in note for note in found.notes)
    assert any("above the column names was not read: 'Export'" in note for note in found.notes)


def test_arrays_of_other_machines(tmp_path: Path) -> None:
    """Big-endian numbers, one column (N, 1) and percentages in NPZ are read as in tables."""
    file = tmp_path / "p.npz"
    risk = np.array([[25.0], [50.0], [87.5], [0.0]])
    np.savez(file, probs=risk.astype(">f8"), labels=np.array([0, 1, 1, 0], ">i4"))
    found = rw.evaluate(rw.read_cases(file, percent=True), metrics="brier", resamples=0)
    assert found["brier"].value == pytest.approx(BRIER_ONE, rel=1e-12)


def test_names_do_not_steer_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape sequences in a file do not reach the screen."""
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text(ONE.replace("prob_malignant", "prob_\x1b]0;x\x07m"), encoding="utf-8")
    code, said = evaluated(tmp_path, ALONE)
    assert code == 0 and "\x1b" not in said and "\x07" not in said


def test_formulas_as_ids_go_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No written table starts a formula in a spreadsheet, and what was written matches again."""
    monkeypatch.chdir(tmp_path)
    named = {f"n{i}": name for i, name in enumerate(("=cmd|'/C calc'!A0", "+1", "@x", "-b"), 1)}
    for file, text in (("p.csv", P), ("r.csv", LONG)):
        Path(file).write_text(re.sub(r"n\d", lambda n: named[n[0]], text), encoding="utf-8")
    fit = "calibrate --fit p.csv --fit-ratings r.csv --apply p.csv --allow-overlap --out made"
    assert run(tmp_path, fit)[0] == 0
    lines = Path("made/calibrated.csv").read_text(encoding="utf-8").splitlines()
    assert [line.partition(",")[0] for line in lines[1:]] == [f"'{n}" for n in named.values()]
    found = rw.read_cases("made/calibrated.csv", "r.csv")
    assert found.labels.case_ids == tuple(named.values())
    belief = rw.DirichletBelief([[0.5, 0.5], [0.75, 0.25]], [1.0, 1.0])
    listed = worklist(belief, ["=1+1", "b"]).to_csv("list.csv")
    assert "'=1+1" in listed.read_text(encoding="utf-8")
    assert set(Worklist.from_csv(listed).case_ids) == {"=1+1", "b"}


REVERSED = "case,prob_malignant,prob_benign\nn1,0.25,0.75\nn2,0.5,0.5\nn3,0.875,0.125\nn4,0,1\n"
ALONE_BENIGN = "case,prob_benign\nn1,0.75\nn2,0.5\nn3,0.125\nn4,1\n"


@pytest.mark.parametrize(
    ("table", "options", "note"),
    [
        (REVERSED, "", "0 was read as 'malignant', 1 as 'benign'"),
        (REVERSED, "--prob-columns prob_benign,prob_malignant", ""),
        (REVERSED, "--class-names malignant,benign", ""),
        (ALONE_BENIGN, "", "0 was read as 'not benign', 1 as 'benign'"),
        (P, "", ""),
        ("case,prob_malignant\nn1,0.25\nn2,0.5\nn3,0.875\nn4,0\n", "", ""),
    ],
)
def test_codes_in_an_order_that_may_surprise_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, options: str, note: str
) -> None:
    """Beside names, codes count the columns: where people count otherwise, results say so."""
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text(table, encoding="utf-8")
    Path("r.csv").write_text(WIDE, encoding="utf-8")
    code, said = evaluated(tmp_path, f"{BOTH} {options}")
    assert code == 0, said
    found = [w for w in rw.Results.from_json("results.json").warnings if "labels are codes" in w]
    assert bool(found) == bool(note) and all(note in each for each in found)
    pq.write_table(pa.table(pd.read_csv("p.csv").assign(y=[0, 1, 1, 0])), "p.parquet")
    code, said = evaluated(tmp_path, f"p.parquet --stream --label-column y {options}")
    assert code == 0 and note in said.replace("warning: ", ""), said
    assert ("labels are codes" in said) == bool(note)


def test_fractions_are_no_percentages_in_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in memory: refused where no part holds a percentage above 1, and only there."""
    monkeypatch.chdir(tmp_path)
    risk = np.array([0.25, 0.5, 0.875, 0.0])

    def stream(values: np.ndarray) -> tuple[int, str]:
        table = pa.table({"prob_malignant": values, "y": [0, 1, 1, 0]})
        pq.write_table(table, "p.parquet", row_group_size=2)
        return evaluated(tmp_path, "p.parquet --stream --label-column y --percent")

    code, said = stream(risk)
    assert code == 2 and "--percent: the largest probability of p.parquet" in said
    assert "is 0.875" in said
    assert stream(100 * risk)[0] == 0
    assert rw.Results.from_json("results.json")["brier"].value == pytest.approx(
        BRIER_ONE, rel=1e-12
    )
    assert stream(np.array([0.25, 0.5, 87.5, 0.0]))[0] == 0  # the first part has rare ones alone


def test_one_hot_columns_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of classes that are named as raters: refused in memory and in a stream."""
    monkeypatch.chdir(tmp_path)
    names, rows = ("a", "b", "c"), np.eye(3, dtype=int)[np.arange(30) % 3]
    table = {f"prob_{name}": np.full(30, 1 / 3) for name in names}
    table |= {name: rows[:, k] for k, name in enumerate(names)}
    pq.write_table(pa.table(table), "p.parquet")
    pd.DataFrame(table).to_csv("p.csv", index=False)
    for file in ("p.csv", "p.parquet", "p.parquet --stream"):
        code, said = evaluated(tmp_path, f"{file} --rater-columns a,b,c")
        assert code == 2 and "one-hot" in said and "--count-columns" in said, said
        assert evaluated(tmp_path, f"{file} --count-columns a,b,c")[0] == 0
        assert rw.Results.from_json("results.json")["brier"].value == pytest.approx(2 / 3)
    two = pa.table({"prob_a": np.full(30, 0.5), "prob_b": np.full(30, 0.5)})
    for k, name in enumerate("xy"):
        two = two.append_column(name, [np.arange(30) % 2 == k])
    pq.write_table(two, "two.parquet", row_group_size=10)
    for file in ("two.parquet", "two.parquet --stream"):
        code, said = evaluated(tmp_path, f"{file} --rater-columns x,y")
        assert code == 0 and "may be one-hot" in said, said


def test_arrays_that_nobody_knows_are_named(tmp_path: Path) -> None:
    """An NPZ file with weight and patient for weights and groups: results say what was unread."""
    file = tmp_path / "p.npz"
    np.savez(file, probs=[0.25, 0.5], labels=[0, 1], weight=[1, 2], patient=[1, 1], confidence=[1])
    (note,) = rw.evaluate(rw.read_cases(file), metrics="brier", resamples=0).warnings[-1:]
    assert (
        "not used: 'weight' (did you mean 'weights'?), 'patient' (did you mean 'groups'?)" in note
    )
    assert "confidence" not in note
    np.savez(file, probs=[0.25, 0.5], labels=[0, 1], sure=[1.0, 2.0])
    command = f"evaluate {file} --metrics aurc --resamples 0"
    assert "'sure'" in run(tmp_path, command)[1]
    assert "not used" not in run(tmp_path, f"{command} --confidence-column sure")[1]
    np.savez(file, probabilities=[0.25, 0.5], labels=[0, 1])
    with pytest.raises(rw.InvalidInputError, match=r"'probabilities' \(did you mean 'probs'\?\)"):
        rw.read_cases(file)


def test_classes_in_another_order_can_be_read_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members and models whose columns stand otherwise: the message says what reads them all."""
    monkeypatch.chdir(tmp_path)
    for file, text in (("p.csv", P), ("q.csv", REVERSED), ("r.csv", LONG)):
        Path(file).write_text(text, encoding="utf-8")
    columns = "--prob-columns prob_benign,prob_malignant"
    for command in (
        "evaluate --member p.csv --member q.csv --ratings r.csv --metrics brier",
        "compare p.csv q.csv --ratings r.csv --metrics brier",
    ):
        code, said = run(tmp_path, f"{command} --resamples 20")
        assert code == 2 and f"{columns} reads both" in said, said
        code, said = run(tmp_path, f"{command} --resamples 20 {columns}")
        assert code == 0, said


def test_agreement_takes_99_for_no_rating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far beyond all others it is doubtful: refused with the option that leaves it out."""
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("case,reader_1,reader_2\na,0,0\nb,1,99\nc,1,0\nd,1,1\n")
    words = "agreement r.csv --resamples 0 --out o.json"
    code, said = run(tmp_path, words)
    assert code == 2 and "--missing 99" in said, said
    assert run(tmp_path, f"{words} --missing 99")[0] == 0
    assert json.loads(Path("o.json").read_text(encoding="utf-8"))["class_names"] == ["0", "1"]


def test_a_checkpoint_is_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with the folder is said of --checkpoint."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"prob_1": [0.25, 0.5], "y": [0, 1]}), "p.parquet")
    Path("parts").mkdir()
    Path("parts/other.txt").write_text("x")
    code, said = evaluated(tmp_path, "p.parquet --label-column y --checkpoint parts")
    assert code == 2 and "--checkpoint: parts must be empty" in said, said


def test_an_id_out_of_a_file_moves_no_cursor(tmp_path: Path) -> None:
    """Control characters are no part of an id: it is found in the other file, and shown plainly."""
    (tmp_path / "p.csv").write_text(P.replace("n1", "n\x1b1").replace("n2", "n2\x07"))
    (tmp_path / "r.csv").write_text(LONG)
    cases = rw.read_cases(tmp_path / "p.csv", ratings=tmp_path / "r.csv")
    assert cases.labels.case_ids == ("n1", "n2", "n3", "n4")


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_a_letter_and_its_mark_become_one(kind: pa.DataType) -> None:
    """Whatever Arrow's own way of composing letters does, which differs between its versions."""
    column = pa.chunked_array([["Mu\u0308ller", None], ["M\u00fcller ", "a", "\ufb01"]]).cast(kind)
    wanted = ["M\u00fcller", None, "M\u00fcller", "a", "\ufb01"]
    assert cleaned(column).to_pylist() == wanted
    assert cleaned(column.combine_chunks()).to_pylist() == wanted

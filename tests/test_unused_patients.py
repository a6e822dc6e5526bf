"""A column of patients that was not used is noticed, in every command that makes intervals."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from raterwise.cli import app
from raterwise.io.sources import open_table
from raterwise.io.unused_columns import unused_patients

SAID = "has a column 'Patient_ID' with 20 values for 60 cases that was not used"


@pytest.fixture(name="folder")
def folder_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty cases of twenty patients, two raters each, in an empty working folder."""
    random = np.random.default_rng(0)
    p = random.random(60)
    rows = [
        f"n{i},pt{i // 3},{1 - q:.3f},{q:.3f},{int(u < q)},{int(v < q)}"
        for i, (q, u, v) in enumerate(zip(p, *random.random((2, 60)), strict=True))
    ]
    text = "\n".join(("case,Patient_ID,prob_0,prob_1,reader_1,reader_2", *rows))
    (tmp_path / "cases.csv").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> str:
    """Run the command line within this process and return what it shows on one line."""
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


COMMANDS = {
    "evaluate": "evaluate cases.csv --metrics ece --resamples 20",
    "plan": "plan brier cases.csv --cases 50 --raters 2",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_it_is_told_on_the_terminal_and_in_the_file(folder: Path, command: str) -> None:
    """The name of the column, its patients and its cases; with --group-column nothing is said."""
    asked = f"{command} --rater-prefix reader_ --out out.json"
    assert SAID in run(asked)
    warnings = json.loads(Path("out.json").read_text(encoding="utf-8"))["warnings"]
    assert [SAID in warning for warning in warnings].count(True) == 1
    assert "was not used" not in run(f"{asked} --group-column Patient_ID")


def test_two_models_and_findings_hear_of_it(folder: Path) -> None:
    """`compare` tells it once, and has it of both models and of all together in its file."""
    text = Path("cases.csv").read_text(encoding="utf-8")
    Path("other.csv").write_text(text, encoding="utf-8")
    options = "--rater-prefix reader_ --metrics brier --resamples 20 --out both.json"
    assert run(f"compare cases.csv other.csv {options}").count("was not used") == 1
    assert Path("both.json").read_text(encoding="utf-8").count("was not used") == 3
    findings = (
        text.replace("prob_0", "unused")
        .replace("reader_1", "label_1")
        .replace("reader_2", "of_no_use")
    )
    Path("findings.csv").write_text(findings, encoding="utf-8")
    asked = "evaluate findings.csv --multilabel --metrics ece --resamples 20"
    assert "has a column 'Patient_ID'" in run(asked)


def test_streams_are_told_by_the_name_alone(folder: Path) -> None:
    """Nothing of a stream is read for it."""
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.csv.read_csv("cases.csv"), "cases.parquet")
    asked = "evaluate cases.parquet --stream --rater-prefix reader_ --metrics ece --resamples 20"
    assert "cases.parquet has a column 'Patient_ID' that was not used" in run(asked)
    assert "was not used" not in run(f"{asked} --group-column Patient_ID")


NAMES = {
    "patient": True, "PatientID": True, "patient_id": True, "subject": True, "Subject No": True,
    "case_group": True, "pid": True, "MRN": True, "participant_id": True, "group": False,
    "p": False, "patience": False, "prob_patient": False, "age": False, "case": False,
}  # fmt: skip


@pytest.mark.parametrize(("name", "noticed"), NAMES.items(), ids=NAMES)
def test_what_columns_of_patients_are_called(tmp_path: Path, name: str, noticed: bool) -> None:
    """Common names with any case, blanks and underscores; no treatment groups, no probabilities."""
    path = tmp_path / "cases.csv"
    path.write_text(f"x,{name}\n1,a\n2,a\n3,b\n", encoding="utf-8")
    assert bool(unused_patients(open_table(path), ["x"])) == noticed
    assert not unused_patients(open_table(path), ["x", name])


@pytest.mark.parametrize("values", [("a", "b", "c"), ("a", "a", "a"), ("", "a", "b")])
def test_columns_that_group_nothing_are_not_mentioned(
    tmp_path: Path, values: tuple[str, ...]
) -> None:
    """A value of its own for each case, or one for all; an empty cell is nobody's."""
    path = tmp_path / "cases.csv"
    lines = "\n".join(f"{i},{value}" for i, value in enumerate(values))
    path.write_text(f"x,patient\n{lines}\n", encoding="utf-8")
    assert not unused_patients(open_table(path), [])


def test_a_page_leaves_the_name_of_the_file_as_it_is(folder: Path) -> None:
    """No option in front of the sentence, and no capital in the name of a file."""
    run("evaluate cases.csv --metrics ece --resamples 20 --rater-prefix reader_ --html r.html")
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "<li>cases.csv has a column &#x27;Patient_ID&#x27; with 20 values" in page

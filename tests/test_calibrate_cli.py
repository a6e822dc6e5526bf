"""`raterwise calibrate` as people use it: two tables in, a folder of files out.

Four nodules with logits 2 : 0, of which three of the four labels agree with the larger: the best
temperature makes that probability 3/4, so T = 2 / log 3 (worked by hand).
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.calibrators.saved import load
from raterwise.cli import app

ROOT = Path(__file__).parents[1]
SURE = float(1 / (1 + np.exp(-2.0)))  # the softmax of (2, 0)
TEMPERATURE = 2 / np.log(3)

FIT = f"""\
case,patient,prob_benign,prob_malignant,logit_benign,logit_malignant,truth
f1,p1,{SURE!r},{1 - SURE!r},2,0,benign
f2,p1,{SURE!r},{1 - SURE!r},2,0,malignant
f3,p2,{1 - SURE!r},{SURE!r},0,2,malignant
f4,p3,{1 - SURE!r},{SURE!r},0,2,malignant
"""
APPLY = f"""\
case,patient,prob_benign,prob_malignant,logit_benign,logit_malignant,truth
a1,p4,{SURE!r},{1 - SURE!r},2,0,benign
a2,p5,{1 - SURE!r},{SURE!r},0,2,benign
a3,p6,0.5,0.5,0,0,malignant
"""


@pytest.fixture(name="folder")
def folder_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the two tables into an empty working folder."""
    (tmp_path / "fit.csv").write_text(FIT, encoding="utf-8")
    (tmp_path / "apply.csv").write_text(APPLY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> Result:
    """Run the command line within this process."""
    return CliRunner().invoke(app, shlex.split(command))


def done(options: str) -> dict[str, Any]:
    """Calibrate quietly into the folder `out` and return before_after.json."""
    result = run(f"calibrate --resamples 20 --quiet --out out {options}")
    assert result.exit_code == 0, result.output
    assert result.output == ""
    content: dict[str, Any] = json.loads(Path("out/before_after.json").read_text(encoding="utf-8"))
    return content


def rows_of(path: str, delimiter: str = ",") -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def column(path: str, name: str) -> list[float]:
    """Return one column of numbers of a CSV file."""
    return [float(row[name]) for row in rows_of(path)]


BOTH = "--fit fit.csv --apply apply.csv"
LABELLED = f"{BOTH} --label-column truth"


def study(cases: int, seed: int, prefix: str) -> str:
    """Three classes; five raters whose opinions scatter round the model's with α0 = e^size."""
    random = np.random.default_rng(seed)
    size = random.normal(0.5, 1, cases)
    mean = random.dirichlet([1, 1, 1], cases)
    truth = np.array(
        [random.dirichlet(np.exp(s) * m + 1e-9) for s, m in zip(size, mean, strict=True)]
    )
    counts = random.multinomial(5, truth)
    names = "case,patient,prob_a,prob_b,prob_c,feat_size,count_a,count_b,count_c"
    lines = [
        f"{prefix}{i},{prefix}p{i // 2},{m[0]!r},{m[1]!r},{m[2]!r},{s!r},{y[0]},{y[1]},{y[2]}"
        for i, (m, s, y) in enumerate(zip(mean.tolist(), size.tolist(), counts, strict=True))
    ]
    return "\n".join((names, *lines)) + "\n"


@pytest.fixture(name="studies")
def two_studies(folder: Path) -> str:
    """Write two made-up studies with five raters; return the options that read them."""
    (folder / "val.csv").write_text(study(400, 0, "v"), encoding="utf-8")
    (folder / "test.csv").write_text(study(300, 1, "t"), encoding="utf-8")
    return "--fit val.csv --apply test.csv --count-prefix count_ --group-column patient"


# Numbers -----------------------------------------------------------------------------------------


def test_the_temperature_worked_by_hand(folder: Path) -> None:
    """T = 2 / log 3, and a logit gap of 2 becomes 3/4; the saved calibrator says the same."""
    found = done(f"{LABELLED} --group-column patient")
    assert column("out/calibrated.csv", "prob_benign") == pytest.approx([0.75, 0.25, 0.5])
    assert [row["patient"] for row in rows_of("out/calibrated.csv")] == ["p4", "p5", "p6"]
    assert load("out/calibrator.json").temperature_ == pytest.approx(TEMPERATURE)
    assert found["method"] == "temperature" and not found["alpha"]
    assert found["fit"] == {"file": "fit.csv", "cases": 4, "ratings": 4, "without_labels": {}}
    assert found["overlap"] == {"cases": [], "patients": []}
    files = ["before_after.json", "calibrated.csv", "calibrator.json"]
    assert sorted(path.name for path in Path("out").iterdir()) == files


def test_the_difference_is_after_minus_before(folder: Path) -> None:
    """The Brier score of three cases, before and after, by hand; its interval holds it."""
    found = done(f"{LABELLED} --metrics brier,accuracy")
    before = ((1 - SURE) ** 2 + SURE**2 + 0.25) / 3
    after = (0.25**2 + 0.75**2 + 0.25) / 3
    brier, accuracy = found["differences"]
    assert found["before"]["metrics"]["brier"]["value"] == pytest.approx(before)
    assert found["after"]["metrics"]["brier"]["value"] == pytest.approx(after)
    assert (brier["first"], brier["second"]) == ("after", "before")
    assert brier["difference"] == pytest.approx(after - before)
    assert brier["low"] <= brier["difference"] <= brier["high"]
    assert accuracy["difference"] == 0


def test_logits_are_logits_of_the_same_probabilities(folder: Path) -> None:
    """--input logits reads the other columns and comes to the same."""
    found = done(f"{LABELLED} --input logits")
    assert column("out/calibrated.csv", "prob_benign") == pytest.approx([0.75, 0.25, 0.5])
    assert load("out/calibrator.json").input == "logits"
    before = found["before"]["metrics"]["nll"]["value"]
    assert before == pytest.approx(-(np.log(SURE) + np.log(1 - SURE) + np.log(0.5)) / 3)


def test_one_column_of_two_classes(folder: Path) -> None:
    """A single probability is that of the second class; both are written."""
    options = "--prob-columns prob_malignant --class-names benign,malignant"
    done(f"{LABELLED} {options}")
    assert column("out/calibrated.csv", "prob_malignant") == pytest.approx([0.25, 0.75, 0.5])
    assert column("out/calibrated.csv", "prob_benign") == pytest.approx([0.75, 0.25, 0.5])


@pytest.mark.parametrize(
    "method", ["temperature", "vector", "matrix", "dirichlet", "isotonic", "beta", "histogram"]
)
def test_every_method_can_be_loaded_again(studies: str, method: str) -> None:
    """What the saved calibrator says of the table is what was written, to the last digit."""
    done(f"{studies} --method {method} --metrics brier")
    probs = np.array(
        [[float(row[f"prob_{k}"]) for k in "abc"] for row in rows_of("out/calibrated.csv")]
    )
    given = np.array([[float(row[f"prob_{k}"]) for k in "abc"] for row in rows_of("test.csv")])
    assert (load("out/calibrator.json").predict_proba(given) == probs).all()
    assert probs.sum(axis=1) == pytest.approx(np.ones(300))


@pytest.mark.parametrize("features", ["", "--features-prefix feat_"])
def test_alpha_finds_the_concentration(studies: str, features: str) -> None:
    """The truth is log α0 = size: with that feature it is found, without it the level is."""
    found = done(f"{studies} --method none --alpha {features}")
    size, alpha0 = column("test.csv", "feat_size"), column("out/calibrated.csv", "alpha0")
    if features:
        slope, level = np.polyfit(size, np.log(alpha0), 1)
        # Nothing is held back: the standard error of the slope is 0.13, and 3 of them are allowed.
        assert slope == pytest.approx(1, abs=0.4) and level == pytest.approx(0, abs=0.25)
    else:
        assert np.median(np.log(alpha0)) == pytest.approx(0.5, abs=0.4)
    probs = np.array([column("out/calibrated.csv", f"prob_{k}") for k in "abc"])
    told = np.array(alpha0) / (np.array(alpha0) + 1) * (1 - (probs**2).sum(axis=0))  # LH eq 19
    assert column("out/calibrated.csv", "disagreement") == pytest.approx(told)
    for k, row in zip("abc", probs, strict=True):
        assert row.tolist() == column("test.csv", f"prob_{k}")
    by_name = {row["metric"]: row for row in found["differences"]}
    assert by_name["brier"]["difference"] == pytest.approx(0, abs=1e-12)
    for metric in ("disagreement_loss", "posterior_epistemic_loss"):
        assert by_name[metric]["high"] < 0
    assert not Path("out/calibrator.json").exists()
    assert found["fitted"].startswith("α0 ")


def test_penalties_by_cross_validation(studies: str) -> None:
    """--cross-validate chooses among the penalties of LH F.3 and says which."""
    found = done(f"{studies} --method matrix --cross-validate --metrics brier")
    chosen = load("out/calibrator.json")
    assert type(chosen).__name__ == "MatrixScalingCV"
    penalties = f"bias_l2 {chosen.bias_l2_:.4g}, off_diagonal_l2 {chosen.off_diagonal_l2_:.4g}"
    assert f"MatrixScalingCV ({penalties})" in found["fitted"]


def test_the_penalty_of_alpha(studies: str) -> None:
    """λ is chosen with patients kept together, or that of LH eq 50 as given; the file has it."""
    options = f"{studies} --method none --alpha --features-prefix feat_ --metrics brier --seed 3"
    found, chosen = done(options), load("out/alpha.json")
    assert (chosen.l2, chosen.penalty, chosen.seed) == ("cv", "coefficients", 3)
    assert f"l2 {chosen.l2_:.3g}" in found["fitted"]
    table = rows_of("val.csv")
    probs = np.array([[float(row[f"prob_{k}"]) for k in "abc"] for row in table])
    counts = np.array([[int(row[f"count_{k}"]) for k in "abc"] for row in table])
    size = np.array([[float(row["feat_size"])] for row in table])
    labels, patients = rw.Labels.from_counts(counts), [row["patient"] for row in table]
    same = rw.AlphaCalibration(seed=3).fit(size, labels, probs=probs, groups=patients)
    assert chosen.cv_loss_.tolist() == same.cv_loss_.tolist()
    done(f"{options} --alpha-l2 0.005")
    paper = load("out/alpha.json")
    assert (paper.l2_, paper.penalty, paper.beats_constant_) == (0.005, "paper", None)


def test_features_that_say_nothing_are_told(studies: str) -> None:
    """The warning that every case gets the same α0 is in the record."""
    for name in ("val.csv", "test.csv"):
        rows = rows_of(name)
        for i, row in enumerate(rows):
            row["feat_size"] = str(i * 7919 % 101)
        with open(name, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    found = done(f"{studies} --method none --alpha --features-prefix feat_ --metrics brier")
    assert any("the features do not help" in warning for warning in found["warnings"])
    assert len(set(column("out/calibrated.csv", "alpha0"))) == 1


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_tables_come_back_in_their_format(folder: Path, suffix: str) -> None:
    """Parquet in, Parquet out, and `raterwise evaluate` takes it; numbers for ids stay numbers."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    write = {".parquet": pyarrow.parquet.write_table, ".arrow": pyarrow.feather.write_feather}
    for name in ("fit", "apply"):
        rows = rows_of(f"{name}.csv")
        columns = {
            key: [float(r[key]) if key.startswith("prob_") else r[key] for r in rows]
            for key in rows[0]
        }
        columns["case"] = [10 * len(rows) + i for i in range(len(rows))]
        write[suffix](pa.table(columns), name + suffix)
    done(f"--fit fit{suffix} --apply apply{suffix} --label-column truth")
    if suffix == ".parquet":
        table = pyarrow.parquet.read_table("out/calibrated.parquet")
    else:
        table = pyarrow.feather.read_table("out/calibrated.arrow")
    assert table.column_names == ["case", "prob_benign", "prob_malignant"]
    assert table.column("case").to_pylist() == [30, 31, 32]
    assert table.column("prob_benign").to_pylist() == pytest.approx([0.75, 0.25, 0.5])


def test_npz_in_npz_out(folder: Path) -> None:
    """Arrays keep their names, logits and features are arrays too, and no pickle is written."""
    for name, logits, labels in (
        ("fit", [[2, 0], [2, 0], [0, 2], [0, 2]], [0, 1, 1, 1]),
        ("apply", [[2, 0], [0, 2], [0, 0]], [0, 0, 1]),
    ):
        ids = np.array([f"{name}{i}" for i in range(len(labels))])
        np.savez(f"{name}.npz", logits=np.array(logits, float), labels=labels, ids=ids)
    done("--fit fit.npz --apply apply.npz --input logits")
    with np.load("out/calibrated.npz", allow_pickle=False) as content:
        assert set(content.files) == {"probs", "ids", "class_names"}
        assert content["probs"][:, 0] == pytest.approx([0.75, 0.25, 0.5])
        assert content["ids"].tolist() == ["apply0", "apply1", "apply2"]


def test_the_separator_is_kept(folder: Path) -> None:
    """Semicolons in, semicolons out."""
    for name in ("fit", "apply"):
        text = (folder / f"{name}.csv").read_text(encoding="utf-8")
        (folder / f"{name}.csv").write_text(text.replace(",", ";"), encoding="utf-8")
    done(f'{LABELLED} --delimiter ";"')
    rows = rows_of("out/calibrated.csv", ";")
    assert [float(row["prob_benign"]) for row in rows] == pytest.approx([0.75, 0.25, 0.5])


def test_without_ratings_nothing_is_compared(folder: Path) -> None:
    """New cases that nobody has rated are calibrated all the same."""
    (folder / "ratings.csv").write_text(
        "case,reader,label\nf1,x,0\nf2,x,1\nf3,x,1\nf4,x,1\n", encoding="utf-8"
    )
    result = run(f"calibrate {BOTH} --fit-ratings ratings.csv --out out")
    assert result.exit_code == 0, result.output
    assert "Nothing to compare" in result.stdout
    assert column("out/calibrated.csv", "prob_benign") == pytest.approx([0.75, 0.25, 0.5])
    found = json.loads(Path("out/before_after.json").read_text(encoding="utf-8"))
    assert found["before"] is None and found["apply"]["ratings"] is None


def test_one_file_of_ratings_for_both(folder: Path) -> None:
    """Cases of the other file are left out on request; an unrated case is still calibrated."""
    ratings = "case,reader,label\nf1,x,0\nf2,x,1\nf3,x,1\nf4,x,1\na1,x,0\na2,x,0\n"
    (folder / "ratings.csv").write_text(ratings, encoding="utf-8")
    options = f"{BOTH} --fit-ratings ratings.csv --apply-ratings ratings.csv --metrics brier"
    refused = run(f"calibrate {options} --out out")
    assert refused.exit_code == 2 and "--allow-unmatched leaves them out" in refused.stderr
    found = done(f"{options} --allow-unmatched")
    assert found["apply"]["without_labels"] == {"without_ratings": 1, "without_predictions": 4}
    assert len(rows_of("out/calibrated.csv")) == 3
    assert found["after"]["data"]["cases"] == 2


# Leaks and other errors --------------------------------------------------------------------------


def test_cases_or_patients_in_both_files_are_refused(folder: Path) -> None:
    """A shared case or patient is named; --allow-overlap continues, warns and records it."""
    text = APPLY.replace("a2,p5", "f2,p5")
    (folder / "apply.csv").write_text(text, encoding="utf-8")
    shared_case = run(f"calibrate {LABELLED} --out out")
    assert shared_case.exit_code == 2 and not (folder / "out").exists()
    assert "they share 1 case ('f2') (--allow-overlap continues" in shared_case.stderr
    (folder / "apply.csv").write_text(APPLY.replace("p5", "p1"), encoding="utf-8")
    shared_patient = run(f"calibrate {LABELLED} --group-column patient --out out")
    assert shared_patient.exit_code == 2
    assert "they share 1 patient ('p1')" in shared_patient.stderr
    allowed = run(f"calibrate {LABELLED} --group-column patient --allow-overlap --out out")
    assert allowed.exit_code == 0
    told = "in both files: 1 patient ('p1'); the difference looks better than it is"
    assert f"warning: {told}" in allowed.stdout
    found = json.loads(Path("out/before_after.json").read_text(encoding="utf-8"))
    assert found["overlap"] == {"cases": [], "patients": ["p1"]}


def test_the_same_file_without_names_is_refused(folder: Path) -> None:
    """Where cases have no ids the file itself gives it away; two files raise a doubt."""
    for name in ("fit", "apply"):
        text = (folder / f"{name}.csv").read_text(encoding="utf-8")
        (folder / f"{name}.csv").write_text(text.replace("case,", "nr,"), encoding="utf-8")
    same = run("calibrate --fit fit.csv --apply fit.csv --label-column truth --out out")
    assert same.exit_code == 2 and "they share every case (it is the same file)" in same.stderr
    two = run(f"calibrate {LABELLED} --out out --resamples 20")
    assert "warning: neither cases nor patients have names" in two.stdout


ERRORS = {
    "no labels": (BOTH, "fit.csv holds no labels; give a file of ratings"),
    "nothing to do": (f"{LABELLED} --method none", "--method: none needs --alpha"),
    "no such column": (f"{BOTH} --label-column y", "--label-column: must name a column"),
    "no cross-validation": (f"{LABELLED} --cross-validate", "must be used with vector, matrix"),
    "no features": (
        f"{LABELLED} --alpha --features-prefix x_",
        "--features-prefix: must be the beginning of a column's name in fit.csv",
    ),
    "no logits": (
        f"{LABELLED} --input logits --logit-prefix z_",
        "--logit-prefix: must be the beginning of a column's name in fit.csv",
    ),
    "single labels": (f"{LABELLED} --alpha", "needs at least 2 labels per case"),
    "other classes": (
        "--fit fit.csv --apply renamed.csv --label-column truth",
        "must have the same classes in the same order",
    ),
    "one class": (f"{BOTH} --label-column always", "must be of at least 2 classes"),
    "a file for a folder": (f"{LABELLED} --out fit.csv", "must be a folder to write into"),
    "no intervals": (f"{LABELLED} --resamples 0", "resamples: must be at least 2 to compare"),
}


@pytest.mark.parametrize(("options", "message"), ERRORS.values(), ids=ERRORS)
def test_bad_input_is_one_line_and_exit_code_2(folder: Path, options: str, message: str) -> None:
    """The message is one line on stderr, and nothing is written."""
    renamed = APPLY.replace("prob_benign", "prob_normal").replace("benign", "normal")
    (folder / "renamed.csv").write_text(renamed, encoding="utf-8")
    always = "\n".join(
        line + ("," + ("always" if i == 0 else "benign")) for i, line in enumerate(FIT.splitlines())
    )
    if "always" in options:
        (folder / "fit.csv").write_text(always, encoding="utf-8")
        (folder / "apply.csv").write_text(always.replace("\nf", "\na"), encoding="utf-8")
    before = sorted(folder.iterdir())
    out = "" if "--out" in options else "--out out"
    result = run(f"calibrate {options} {out}")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("raterwise: ") and result.stderr.count("\n") == 1
    assert message in result.stderr
    assert sorted(folder.iterdir()) == before


def test_control_c_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted while comparing: 130, and no folder."""

    def interrupted(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("raterwise.cli.calibrate.compare", interrupted)
    result = run(f"calibrate {LABELLED} --out out")
    assert result.exit_code == 130
    assert not (folder / "out").exists()


# What is shown -----------------------------------------------------------------------------------


def test_the_table_of_differences(studies: str) -> None:
    """Before, after, difference, interval and p stand side by side; what is written is named."""
    result = run(f"calibrate {studies} --alpha --out out --resamples 50 --level 0.9")
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "Fitted on val.csv: 400 cases, 3 classes, 2,000 ratings" in text
    assert re.search(r"metric +before +after +difference +90% interval +p +better", text)
    assert re.search(r"Accuracy +0\.\d{4} +0\.\d{4} +0\.0000 +\[0\.0000, 0\.0000\] +1\.000", text)
    assert re.search(r"Disagreement loss +0\.\d+ +0\.\d+ +-0\.\d+ +\[-0\.\d+, -0\.\d+\]", text)
    assert "alpha.json" in text.splitlines()[-1]


def test_doubts_of_the_fit_are_shown(folder: Path) -> None:
    """Labels that the logits foretell without fail have no best temperature; a line says so."""
    text = FIT.replace("0,malignant", "0,benign").replace("f2,p1", "f2,p9")
    (folder / "fit.csv").write_text(text, encoding="utf-8")
    result = run(f"calibrate {LABELLED} --out out --resamples 20")
    assert result.exit_code == 0, result.output
    assert "warning: TemperatureScaling: " in result.stdout


@pytest.mark.parametrize("command", ["calibrate", "worklist", "plan"])
def test_every_option_is_documented(command: str) -> None:
    """docs/calibration.md names every option that docs/command_line.md does not."""
    pattern = r"(?<![\w-])--[a-z][a-z0-9-]*"
    pages = "".join(
        (ROOT / "docs" / page).read_text(encoding="utf-8")
        for page in ("calibration.md", "command_line.md")
    )
    shown = run(f"{command} --help")
    assert shown.exit_code == 0
    offered = set(re.findall(pattern, shown.stdout)) - {"--help"}
    assert offered and offered <= set(re.findall(pattern, pages))


def test_help_teaches() -> None:
    """Each help ends in examples that begin with the command."""
    for command in ("calibrate", "worklist", "plan"):
        assert f"raterwise {command} " in run(f"{command} --help").stdout.split("Examples")[1]

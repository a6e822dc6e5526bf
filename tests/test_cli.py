"""The command line as people use it: files in, numbers, messages and exit codes out.

Four nodules, three readers each. The confidences 0.95, 0.85, 0.75 and 0.65 lie in four different
bins of fifteen, so the ECE is the mean of |confidence - agreement|, worked by hand below.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import raterwise
from raterwise.cli import app
from raterwise.cli.show import comparison_table, new_console, print_results, print_table
from raterwise.cli.stability_curves import one_rater_each
from raterwise.datasets import load_lidc_malignancy
from raterwise.labels import Labels
from raterwise.progress_bar import ProgressBar
from raterwise.results import Estimate, Results

ROOT = Path(__file__).parents[1]

PREDICTIONS = """\
case,patient,prob_benign,prob_malignant,truth,importance
n1,p1,0.95,0.05,benign,1
n2,p1,0.85,0.15,malignant,1
n3,p2,0.25,0.75,malignant,2
n4,p3,0.35,0.65,benign,0.5
"""
WIDE = """\
case,smith,jones,lee
n4,benign,benign,malignant
n3,malignant,benign,malignant
n2,benign,malignant,malignant
n1,benign,benign,benign
"""
LONG = """\
case,reader,label
n1,smith,0
n1,jones,0
n1,lee,0
n2,smith,0
n2,jones,1
n2,lee,1
n3,smith,1
n3,jones,0
n3,lee,1
n4,smith,0
n4,jones,0
n4,lee,1
"""
COUNTS = "case,count_benign,count_malignant\nn1,3,0\nn2,1,2\nn3,1,2\nn4,2,1\n"

# |0.95 - 1|, |0.85 - 0|, |0.75 - 1|, |0.65 - 0|: the truth agrees with n1 and n3.
ECE_SINGLE = (0.05 + 0.85 + 0.25 + 0.65) / 4
# |0.95 - 3/3|, |0.85 - 1/3|, |0.75 - 2/3|, |0.65 - 1/3|
ECE_READERS = (0.05 + (0.85 - 1 / 3) + (0.75 - 2 / 3) + (0.65 - 1 / 3)) / 4


@pytest.fixture(name="folder")
def folder_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the four tables into an empty working folder."""
    tables = {"predictions": PREDICTIONS, "wide": WIDE, "long": LONG, "counts": COUNTS}
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str | Sequence[str]) -> Result:
    """Run the command line within this process."""
    words = shlex.split(command) if isinstance(command, str) else command
    return CliRunner().invoke(app, words)


def evaluated(command: str) -> dict[str, Any]:
    """Run `raterwise evaluate` and return the JSON that it writes."""
    result = run(f"evaluate {command} --quiet --resamples 20 --out results.json")
    assert result.exit_code == 0, result.output
    assert result.output == ""
    content: dict[str, Any] = json.loads(Path("results.json").read_text(encoding="utf-8"))
    return content


# Numbers -----------------------------------------------------------------------------------------


def test_one_label_per_case(folder: Path) -> None:
    """ECE, accuracy and Brier score of a labelled table are those worked by hand."""
    found = evaluated("predictions.csv --label-column truth --metrics ece,accuracy,brier")
    metrics = found["metrics"]
    assert metrics["ece"]["value"] == pytest.approx(ECE_SINGLE)
    assert metrics["accuracy"]["value"] == 0.5
    # Two classes: the squared distance to the truth, halved (0.05², 0.85², 0.25², 0.65²).
    assert metrics["brier"]["value"] == pytest.approx((0.0025 + 0.7225 + 0.0625 + 0.4225) / 4)
    assert list(metrics) == ["ece", "accuracy", "brier"]
    assert found["data"]["cases"] == 4
    assert found["data"]["class_names"] == ["benign", "malignant"]


@pytest.mark.parametrize(
    "ratings",
    [
        "--ratings wide.csv --rater-columns smith,jones,lee",
        "--ratings long.csv",
        "--ratings long.csv --ratings-layout long --rater-column reader --rating-column label",
        "--ratings counts.csv",
        "--ratings counts.csv --count-columns count_malignant,count_benign",
    ],
)
def test_every_layout_of_the_ratings(folder: Path, ratings: str) -> None:
    """The same three readers in any layout and order give the ECE worked by hand."""
    found = evaluated(f"predictions.csv {ratings} --metrics ece")
    assert found["metrics"]["ece"]["value"] == pytest.approx(ECE_READERS)
    assert found["data"]["ratings"] == 12


def test_ratings_in_the_same_file(folder: Path) -> None:
    """Readers' columns beside the probabilities need no second file."""
    left = [line.split(",") for line in PREDICTIONS.splitlines()]
    right = [WIDE.splitlines()[0], *reversed(WIDE.splitlines()[1:])]
    rows = [",".join([*a, *b.split(",")[1:]]) for a, b in zip(left, right, strict=True)]
    (folder / "all.csv").write_text("\n".join(rows), encoding="utf-8")
    found = evaluated("all.csv --rater-columns smith,jones,lee --metrics ece")
    assert found["metrics"]["ece"]["value"] == pytest.approx(ECE_READERS)


def test_an_npz_file_needs_no_options(folder: Path) -> None:
    """The arrays' names say what they are."""
    probs = [[0.95, 0.05], [0.85, 0.15], [0.25, 0.75], [0.35, 0.65]]
    np.savez(folder / "all.npz", probs=probs, counts=[[3, 0], [1, 2], [1, 2], [2, 1]])
    found = evaluated("all.npz --metrics ece")
    assert found["metrics"]["ece"]["value"] == pytest.approx(ECE_READERS)


def test_case_weights(folder: Path) -> None:
    """A case of weight 2 counts twice, one of weight 1/2 half."""
    options = "--label-column truth --weight-column importance --metrics ece"
    found = evaluated(f"predictions.csv {options}")
    by_hand = (0.05 + 0.85 + 2 * 0.25 + 0.5 * 0.65) / 4.5
    assert found["metrics"]["ece"]["value"] == pytest.approx(by_hand)


def test_patients_are_counted_and_options_are_recorded(folder: Path) -> None:
    """The JSON says how many patients there are, and what it was made with."""
    options = "--label-column truth --group-column patient --metrics ece --bins 5 --level 0.9"
    found = evaluated(f"predictions.csv {options} --seed 3")
    assert found["data"]["patients"] == 3
    chosen = {"bins": 5, "level": 0.9, "seed": 3, "resamples": 20}
    assert chosen.items() <= found["options"].items()
    # Fifths: 0.95 and 0.85 share a bin (mean 0.9, half right), so do 0.75 and 0.65 (0.7, half).
    assert found["metrics"]["ece"]["value"] == pytest.approx((0.4 + 0.2) / 2)


def test_the_same_seed_gives_the_same_file(folder: Path) -> None:
    """Digits depend on the seed and on nothing else."""
    command = "predictions.csv --ratings long.csv --metrics brier,ece"
    first, second = evaluated(command), evaluated(command)
    assert first == second
    assert evaluated(f"{command} --seed 1")["replicates"] != first["replicates"]


def test_semicolons_one_probability_and_marks_for_missing(folder: Path) -> None:
    """The awkward file: semicolons, one column for two classes, NA and -1 for no rating."""
    text = "nodule;risk;a;b\n1;0.05;neg;NA\n2;0.15;-1;pos\n3;0.75;pos;NA\n4;0.65;NA;neg\n"
    (folder / "odd.csv").write_text(text, encoding="utf-8")
    found = evaluated(
        'odd.csv --delimiter ";" --id-column nodule --prob-columns risk --class-names neg,pos '
        "--rater-columns a,b --missing NA,-1 --metrics ece"
    )
    assert found["metrics"]["ece"]["value"] == pytest.approx(ECE_SINGLE)


# What does not match, and who was not rated ------------------------------------------------------


def test_unmatched_cases_are_an_error_or_are_counted(folder: Path) -> None:
    """A case of one file only is named; on request it is left out and counted."""
    extra = LONG.replace("n4,", "x4,")
    (folder / "long.csv").write_text(extra, encoding="utf-8")
    command = "predictions.csv --ratings long.csv --metrics accuracy"
    refused = run(f"evaluate {command}")
    assert refused.exit_code == 2
    assert "1 of 4 cases of predictions.csv are not in long.csv ('n4')" in refused.stderr
    assert "--allow-unmatched leaves them out" in refused.stderr
    found = evaluated(f"{command} --allow-unmatched")
    assert found["data"]["dropped"] == {"without_ratings": 1, "without_predictions": 1}
    assert found["data"]["cases"] == 3


def test_unrated_cases_are_an_error_or_are_counted(folder: Path) -> None:
    """A case whose cells are empty is named; on request it is left out and counted."""
    wide = WIDE.replace("n4,benign,benign,malignant", "n4,,,")
    (folder / "wide.csv").write_text(wide, encoding="utf-8")
    command = "predictions.csv --ratings wide.csv --rater-columns smith,jones,lee --metrics ece"
    refused = run(f"evaluate {command}")
    assert refused.exit_code == 2
    assert "1 of 4 has none (case 'n4'); --on-unrated drop leaves them out" in refused.stderr
    found = evaluated(f"{command} --on-unrated drop")
    assert found["data"]["dropped"] == {"unrated": 1}
    by_hand = (0.05 + (0.85 - 1 / 3) + (0.75 - 2 / 3)) / 3
    assert found["metrics"]["ece"]["value"] == pytest.approx(by_hand)


def test_cases_with_a_single_rater(folder: Path) -> None:
    """A metric of pairs of raters is undefined, or goes without the case, and the table says so."""
    command = "evaluate predictions.csv --ratings long.csv --metrics ece,epistemic_loss"
    text = "".join(
        line for line in LONG.splitlines(keepends=True) if line[:4] not in ("n4,j", "n4,l")
    )
    (folder / "long.csv").write_text(text, encoding="utf-8")
    shown = run(f"{command} --resamples 20")
    assert shown.exit_code == 0
    assert re.search(r"Epistemic loss +undefined", shown.stdout)
    assert "1 of 4 cases has fewer (case 'n4'); --on-single drop leaves them out" in shown.stdout
    dropped = run(f"{command} --resamples 20 --on-single drop")
    assert "left out: 1 case with too few raters for Epistemic loss" in dropped.stdout


# What is shown -----------------------------------------------------------------------------------


def test_the_table_is_readable(folder: Path) -> None:
    """A table shows headings, values, intervals, directions and meanings, and warnings after it."""
    result = run("evaluate predictions.csv --ratings long.csv --metrics ece,brier,mce --level 0.9")
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[0] == "4 cases, 2 classes, 12 ratings (3 per case)"
    assert lines[1].startswith("Too little data to say.")
    header = next(line for line in lines if line.startswith("metric"))
    assert re.match(r"metric +value +90% interval +corrected +better +what it means", header)
    headings = [line for line in lines if line in ("Calibration", "Proper scores")]
    assert headings == ["Calibration", "Proper scores"]  # each once, though brier is between
    ece = next(line for line in lines if "Expected calibration error" in line)
    assert re.search(r"0\.2417 +\[0\.\d{4}, \d\.\d{4}\] +\d\.\d{4} +lower +Mean gap", ece)
    assert any(line.startswith("warning: only 4 cases") for line in lines)


def test_a_narrow_terminal_gets_the_meanings_below(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 80 columns no line is longer, no number is cut, and the meanings follow the table."""
    monkeypatch.setenv("COLUMNS", "80")
    result = run("evaluate predictions.csv --ratings long.csv --metrics ece --resamples 20")
    assert "what it means" not in result.stdout
    assert re.search(r"Expected calibration error +0\.2417 +\[", result.stdout)
    assert "Expected calibration error: Mean gap" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    everything = run("evaluate predictions.csv --ratings long.csv --resamples 20").stdout
    assert "Mean gap" not in everything and "The report (--html) says what" in everything
    monkeypatch.setenv("COLUMNS", "60")
    narrow = run("evaluate predictions.csv --ratings long.csv --metrics ece --resamples 20").stdout
    assert "\n  calibration" in narrow, "a name that is broken stays below its heading"


def test_names_with_brackets_are_shown_as_they_are() -> None:
    """Square brackets, which the terminal library reads as markup, reach the reader."""
    estimate = Estimate("x", 1e-6, title="[bold]x[/bold]", group="[red]", meaning="[/]")
    data = {"cases": 1, "classes": 2, "ratings": 1, "raters": {"min": 1, "max": 1}}
    console, file = new_console(), io.StringIO()
    console.file = file
    results = Results({"x": estimate}, data)
    print_results(results, console)
    print_table(comparison_table({"[blue]": results}, ["x"]), console)
    shown = file.getvalue()
    assert "[bold]x[/bold]" in shown and "[red]" in shown and "[/]" in shown
    assert "[blue]" in shown, "in a heading, too"
    assert "< 0.0001" in shown


def test_metrics_as_csv(folder: Path) -> None:
    """The CSV file has one line per metric, with every digit."""
    command = "evaluate predictions.csv --label-column truth --metrics ece,epistemic_loss -q"
    assert run(f"{command} --resamples 0 --csv metrics.csv").exit_code == 0
    with open("metrics.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == ["ece", "epistemic_loss"]
    assert float(rows[0]["value"]) == pytest.approx(ECE_SINGLE, rel=1e-14)
    assert rows[0]["low"] == "" and rows[0]["direction"] == "lower"
    assert rows[1]["value"] == "" and "at least 2 labels per case" in rows[1]["undefined"]


def test_version_and_help() -> None:
    """--version prints it; --help teaches with examples; nothing at all shows the help."""
    assert run("--version").stdout == f"raterwise {raterwise.__version__}\n"
    shown = run("evaluate --help")
    assert shown.exit_code == 0
    assert "raterwise evaluate predictions.csv --ratings ratings.csv" in shown.stdout
    assert "evaluate" in run("").output


@pytest.mark.parametrize(
    "command", [c.name or c.callback.__name__ for c in app.registered_commands]
)
def test_help_shows_what_a_person_types(command: str) -> None:
    """FILE, N and TEXT; nothing after a switch, and no type of Python's."""
    shown = run(f"{command} --help").stdout
    assert "<bool>" not in shown and "list[" not in shown and "<str>" not in shown
    assert re.search(r"--(html|out)\b.*FILE", shown)


def test_every_option_is_documented() -> None:
    """docs/command_line.md speaks of every option, and of no other."""
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    # The experiments are another program's, tests/test_experiment_command.py.
    page = re.sub(r"(?s)## The papers' experiments\n.*?(?=\n## )", "", page)
    offered = {"--version"}
    for command in ("evaluate", "demo", "stability", "report", "compare", "agreement"):
        offered |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", run(f"{command} --help").stdout))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page)) == offered


# Errors ------------------------------------------------------------------------------------------

ERRORS = {
    "no such file": ("nowhere.csv", "nowhere.csv: there is no such file"),
    "no such ratings": ("predictions.csv --ratings no.csv", "no.csv: there is no such file"),
    "no labels": ("predictions.csv", "predictions.csv holds no labels; give a file of ratings"),
    "a wrong column": ("predictions.csv --label-column y", "--label-column: must name a column"),
    "no such metric": ("predictions.csv --label-column truth --metrics ece,exe", "'exe'"),
    "bins": ("predictions.csv --label-column truth --bins 0", "bins: must be"),
    "level": (
        "predictions.csv --label-column truth --level 95",
        "--level: must lie between 0 and 1",
    ),
    "resamples": ("predictions.csv --label-column truth --resamples -1", "resamples: must be"),
    "no folder": ("predictions.csv --label-column truth --out no/r.json", "the folder no must ex"),
    "a folder": ("predictions.csv --label-column truth --csv .", "must be a file to write to"),
    "both kinds of label": (
        "predictions.csv --label-column truth --ratings long.csv",
        "--label-column: cannot be combined with ratings",
    ),
    "the wrong separator": (
        "semicolons.csv --label-column y --delimiter ,",
        'say --delimiter ";"',
    ),
    "a layout in doubt": ("predictions.csv --ratings wide.csv", "--ratings-layout: must be given"),
}


@pytest.mark.parametrize(("command", "message"), ERRORS.values(), ids=ERRORS)
def test_bad_input_is_one_line_and_exit_code_2(folder: Path, command: str, message: str) -> None:
    """The message is one line on stderr, in the words of the command line; nothing is written."""
    (folder / "semicolons.csv").write_text("case;prob_a;prob_b;y\n1;0.5;0.5;a\n", encoding="utf-8")
    before = sorted(folder.iterdir())
    result = run(f"evaluate {command}")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("raterwise: ") and result.stderr.count("\n") == 1
    assert message in result.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("command", ["evaluate", "evaluate p.csv --unit nothing", "evalute"])
def test_wrong_usage_is_exit_code_2(command: str) -> None:
    """A missing argument, an unknown choice and an unknown command are told from bad data."""
    result = run(command)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


def test_a_file_system_error_is_exit_code_2(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is one line as well."""

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("raterwise.io.files.os.fsync", fail)
    command = (
        "evaluate predictions.csv --label-column truth --metrics ece --resamples 0 --out r.json"
    )
    result = run(command)
    assert result.exit_code == 2
    assert result.stderr == "raterwise: r.json: no space left on device\n"


def test_control_c_is_exit_code_130(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted evaluation says so, leaves 130 and no traceback."""

    def interrupted(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("raterwise.cli.evaluate.compute", interrupted)
    result = run("evaluate predictions.csv --label-column truth --out r.json")
    assert result.exit_code == 130
    assert result.stderr == "raterwise: interrupted\n"
    assert not (folder / "r.json").exists()


def test_as_a_program_of_its_own(folder: Path) -> None:
    """The installed entry point returns its exit codes and keeps stdout and stderr apart."""
    # What an early Typer calls in a later Click is out of date, and not ours to say.
    warned = ["-W", "error", "-W", "ignore::DeprecationWarning"]
    program = [sys.executable, *warned, "-m", "raterwise"]

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*program, "evaluate", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    good = call("predictions.csv", "--ratings", "long.csv", "--metrics", "ece")
    assert (good.returncode, good.stderr) == (0, "")  # both are shown where one is wrong
    assert "0.2417" in good.stdout
    bad = call("predictions.csv", "--ratings", "nowhere.csv")
    told = "raterwise: nowhere.csv: there is no such file\n"
    assert (bad.returncode, bad.stdout, bad.stderr) == (2, "", told)


# The bar, and the demonstration ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_no_bar_is_drawn_into_a_file(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Colours that are asked for make no terminal of it, however long the work takes."""
    monkeypatch.setenv(name, "1")
    with ProgressBar(patience=0) as report:
        report("reading", 0.5)
        time.sleep(0.05)
        report("reading", 0.6)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("terminal", "shown", "patience", "seen"),
    [
        (True, True, 0, True),
        (True, True, 60, False),
        (True, False, 0, False),
        (False, True, 0, False),
    ],
)
def test_the_bar_appears_only_to_those_who_wait(
    terminal: bool, shown: bool, patience: float, seen: bool
) -> None:
    """It appears on a terminal, after a while, unless all is to be quiet."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=80)
    with ProgressBar(console, shown=shown, patience=patience) as report:
        report("reading the cases", 0.25)
        until = time.monotonic() + 5
        while seen and "reading the cases" not in text.getvalue() and time.monotonic() < until:
            time.sleep(0.02)
    assert ("reading the cases" in text.getvalue()) == seen
    assert ("25%" in text.getvalue()) == seen


def test_one_rater_is_drawn_fairly() -> None:
    """Of 4,000 cases with labels 1 : 3, three quarters give the second class; the seed decides."""
    labels = Labels.from_ratings([[0, 1, 1, 1], [1, 0, -1, -1]] * 4000, num_classes=2)
    drawn = one_rater_each(labels, seed=0).majority()
    # Binomial standard deviations: sqrt(0.75 * 0.25 / 4000) and sqrt(0.5 * 0.5 / 4000).
    assert abs(drawn[::2].mean() - 0.75) < 4 * 0.00685
    assert abs(drawn[1::2].mean() - 0.5) < 4 * 0.00791
    assert (one_rater_each(labels, seed=0).majority() == drawn).all()
    assert (one_rater_each(labels, seed=1).majority() != drawn).any()


def test_the_demonstration_writes_json_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--out FILE.json`, as of every command: the results of 1,880 nodules, no folder of tables."""
    monkeypatch.chdir(tmp_path)
    done = run(["demo", "--out", "d.json", "--html", "d.html", "--resamples", "2"])
    assert done.exit_code == 0, done.output
    assert sorted(file.name for file in tmp_path.iterdir()) == ["d.html", "d.json"]
    found = json.loads(Path("d.json").read_text(encoding="utf-8"))
    assert found["data"]["cases"] == 1880 and "value" in found["metrics"]["ece"]
    assert "Written: d.json" in done.stdout


def test_the_demonstration_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo shows both columns, and the command that it prints gives its very numbers."""
    monkeypatch.chdir(tmp_path)
    shown = run(["demo", "--out", "a folder", "--resamples", "40", "--seed", "5"])
    assert shown.exit_code == 0, shown.output
    assert re.search(r"metric +every rater +one rater, at random", shown.stdout)
    assert re.search(r"Epistemic loss +-?0\.\d+ \[.*\] +undefined", shown.stdout)
    data = load_lidc_malignancy()
    counts, top = data.labels.counts, data.probs.argmax(axis=1)
    raters = counts.sum(axis=1)
    sure = (data.probs.max(axis=1) * raters).sum() / raters.sum()
    right = counts[np.arange(len(top)), top].sum() / raters.sum()
    headline = f"Over-confident. It is {sure:.0%} sure on average and right {right:.0%} of the time"
    assert headline in " ".join(shown.stdout.split())
    assert "CC BY 3.0" in shown.stdout
    first = json.loads(Path("a folder/results.json").read_text(encoding="utf-8"))
    command = next(
        line for line in shown.stdout.splitlines() if line.startswith("raterwise evaluate")
    )
    again = run([*shlex.split(command)[1:], "--quiet"])
    assert again.exit_code == 0, again.output
    second = json.loads(Path("a folder/results.json").read_text(encoding="utf-8"))
    made = second.pop("provenance")
    assert made["call"] == command + " --quiet"
    assert [Path(file["name"]).name for file in made["inputs"]] == [
        "predictions.csv",
        "ratings.csv",
    ]
    assert first.pop("provenance")["seed"] == made["seed"] == 5
    assert second == first
    assert first["data"]["cases"] == 1880 and first["data"]["ratings"] == 4208

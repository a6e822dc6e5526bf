"""What is typed wrong is said in one line before any data are read; --help shows what to type."""

from __future__ import annotations

import importlib
import re
from itertools import pairwise
from pathlib import Path

import pytest
from rich.text import Text
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app

COMMANDS = (
    *("evaluate", "compare", "report", "calibrate", "worklist", "stability", "plan", "segment"),
    *("agreement", "merge", "demo"),
)


def run(command: str) -> tuple[int, str]:
    """Run a command; return its exit code and what it says."""
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_what_a_person_types(command: str) -> None:
    """No <bool>, <str> or list[Path]; two examples or more; options in groups."""
    code, said = run(f"{command} --help")
    assert code == 0
    assert not re.search(r"<\w+>|list\[|<.*\|.*>|range>| choice  ", said), said
    assert ("--unit" in said) == ("cases|raters|both" in said)
    examples = said.partition("Examples")[2]
    assert len(re.findall(r"^ *raterwise", examples, re.MULTILINE)) >= 2
    assert said.count("╭─") >= {"demo": 1, "report": 2}.get(command, 3)


@pytest.mark.parametrize(
    ("command", "word"), [("calibrate", "FOLDER"), ("demo", "FOLDER"), ("evaluate", "FILE")]
)
def test_help_says_where_a_folder_is_wanted(command: str, word: str) -> None:
    """What --out takes: a folder for several files, a file for one."""
    said = run(f"{command} --help")[1].partition("Examples")[0]
    assert re.search(rf"--out +{word}\b", said), said


@pytest.mark.parametrize(("command", "word"), [("plan", "N,N,N"), ("segment", "A,B,C")])
def test_raters_are_numbers_or_names(command: str, word: str) -> None:
    """A plan tries several numbers of raters; images name who drew their masks."""
    assert re.search(rf"--raters +{word} ", run(f"{command} --help")[1])


def test_agreement_speaks_of_no_predictions() -> None:
    """It reads ratings alone: every column that it takes stands in their panel."""
    said = run("agreement --help")[1]
    assert "Predictions" not in said
    panel = said.partition("Ratings: which columns are what")[2].partition("╰")[0]
    for option in ("id-column", "class-names", "group-column", "delimiter", "rater-columns"):
        assert f"--{option}" in panel, option


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("evalute p.csv", "no such command 'evalute'. Did you mean 'evaluate'?"),
        ("evaluate p.csv --ratigns r.csv", "--ratigns: there is no such option (did you mean"),
        (
            "evaluate p.csv --unit case",
            "--unit: must be one of cases, raters, both; got 'case' (did",
        ),
        ("evaluate p.csv --question top-label", "(did you mean 'top_label'?)"),
        ("evaluate p.csv --seed x", "--seed: must be a whole number"),
        ("evaluate p.csv --level x", "--level: must be a number"),
        ("worklist p.csv --by disagrement", "(did you mean 'disagreement'?)"),
        ("calibrate --fit p.csv --method temprature", "(did you mean 'temperature'?)"),
        ("segment", "missing argument 'manifest'"),
        ("evaluate p.csv --ratings", "--ratings: must be followed by a value"),
        ("evaluate p.csv --quiet=1", "--quiet: takes no value"),
        ("evaluate --version", "--version: there is no such option here; raterwise --version"),
        ("--verbose", "--verbose: there is no such option (did you mean '--version'?)"),
        ("help", "help: there is no such command; raterwise --help says it"),
        (
            "compare a.csv --subgroup-column x",
            "here; raterwise evaluate and segment have it",
        ),
        (
            "agreement r.csv --budget 9",
            "no such option here; raterwise plan has it",
        ),
        ("segment m.csv --ratings r.csv", "the manifest's column raters names the masks"),
        ("segment m.csv --group-column patient", "manifest's column patient names the patients"),
        ("evaluate p.csv --metrics ece, brier", "brier: not expected here; an option takes one"),
        ("evaluate p.csv --ratings a.csv b.csv c.csv", "b.csv c.csv: not expected here"),
    ],
)
def test_wrong_usage_is_one_line_with_what_was_meant(command: str, said: str) -> None:
    """The option, the rule, the value and a suggestion; below it where to look."""
    code, found = run(command)
    first, second = found.strip().splitlines()
    assert code == 2 and first.startswith("raterwise: ") and said in first, found
    assert re.fullmatch(r"Usage: .* --help", second)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("evaluate F.csv --metrics brir", "(did you mean 'brier'?)"),
        ("evaluate F.csv --bins 0", "--bins: must be at least 1; got 0"),
        ("evaluate F.csv --level 2", "--level: must lie between 0 and 1, both excluded; got 2.0"),
        ("evaluate F.csv --option robust_ece.sigm=1", "no option 'sigm' (did you mean 'sigma'?)"),
        ("evaluate F.csv --option robust_ec.sigma=1", "(did you mean 'robust_ece'?)"),
        ("evaluate F.csv --subgroup-metrics brir", "--subgroup-metrics: no metric is called"),
        ("evaluate F.csv --target-prevalence x", "--target-prevalence: must be numbers"),
        ("evaluate F.parquet --stream --metrics brir", "(did you mean 'brier'?)"),
        ("evaluate F.csv --multilabel --resamples -1", "--resamples: must be at least 0; got -1"),
        ("compare F.csv G.csv --metrics brir", "(did you mean 'brier'?)"),
        ("stability F.csv --metrics brir", "(did you mean 'brier'?)"),
        ("stability F.csv --fractions 2", "--fractions: must be in (0, 1]; got 2"),
        ("plan brir F.csv", "(did you mean 'brier'?)"),
        ("plan ece F.csv --level 5", "--level: must lie between 0 and 1"),
        ("calibrate --fit F.csv --apply G.csv --out x --metrics brir", "(did you mean 'brier'?)"),
        ("agreement F.csv --level 3", "--level: must lie between 0 and 1"),
        ("merge F.npz --level 3", "--level: must lie between 0 and 1"),
        ("segment F.csv --metrics brir", "(did you mean 'brier'?)"),
        ("segment F.csv --axes zy", "--axes: must name the axes"),
    ],
)
def test_options_are_checked_before_data_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    """The files are not even there, and it is the option that is named."""
    monkeypatch.chdir(tmp_path)
    code, found = run(command)
    assert code == 2 and said in found and "no such file" not in found, found


def test_what_all_metrics_may_take_is_not_refused(tmp_path: Path) -> None:
    """An option of two classes is taken with "all", of which the number is not known before."""
    path = tmp_path / "p.csv"
    path.write_text("prob_1,y\n" + "0.75,1\n0.25,0\n0.5,1\n0.5,0\n" * 5)
    words = "--label-column y --resamples 0 -q --option auroc.positive=1"
    code, said = run(f"evaluate {path} {words}")
    assert code == 0, said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "evaluate p.csv --metrics ece --metrics=brier",
            "--metrics: takes one value; got 'ece' and 'brier'; several are one list: ece,brier",
        ),
        (
            "evaluate p.csv --ratings a.csv --ratings b.csv",
            "--ratings: takes one value; got 'a.csv' and 'b.csv'; put the ratings of all raters",
        ),
        ("report r.json -o a.html --out b.html", "--out: takes one value; got 'a.html' and"),
    ],
)
def test_a_second_value_does_not_replace_the_first_unseen(command: str, said: str) -> None:
    """Of two files of ratings only the last would have been read, without a word."""
    code, found = run(command)
    assert code == 2 and said in found, found


def test_options_that_may_be_repeated_still_may() -> None:
    """What is refused is the missing file, not the second sub-group; flags may come twice."""
    twice = "evaluate p.csv --subgroup-column a --subgroup-column b -q -q --normalize --normalize"
    assert "p.csv: there is no such file" in run(twice)[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_can_be_copied_from_a_narrow_terminal(command: str) -> None:
    """A terminal breaks long lines itself; one that is broken in the text is two commands."""
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "60"})
    module = importlib.import_module(f"raterwise.cli.{command}")
    shown = [line.strip() for line in done.output.partition("Examples")[2].splitlines()]
    examples = Text.from_markup(module.EXAMPLES).plain.partition("Examples")[2]
    assert [line for line in shown if line] == [
        line.strip() for line in examples.splitlines() if line.strip()
    ]
    for line, after in pairwise(shown):
        assert not after.startswith("--") or line.endswith("\\"), line


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("raterwise eva", "evaluate"),
        ("raterwise evaluate p.csv --rater-c", "--rater-columns\n--rater-column"),
        ("raterwise evaluate p.csv --unit ", "cases\nraters\nboth"),
        ("raterwise evaluate p.csv --seed 1 --seed 2 --unit r", "raters"),
    ],
)
def test_a_shell_completes_commands_options_and_choices(typed: str, offered: str) -> None:
    """What the Tab key asks for, also where the line is wrong so far."""
    asked = {
        "_RATERWISE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    done = CliRunner().invoke(app, [], env=asked, prog_name="raterwise")
    assert done.output.strip() == offered


def test_the_version_has_a_short_option() -> None:
    """-V as of most programs."""
    assert run("-V") == run("--version") == (0, f"raterwise {rw.__version__}\n")

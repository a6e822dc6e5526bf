"""`python -m experiments`: its help, its errors, and that the pages name every option."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.commands import app

ROOT = Path(__file__).parents[1]
PAGES = {
    "label_histograms": "calibration.md",
    "mixed_labels": "reproduction/label_histograms.md",
    "several_labels": "reproduction/label_histograms.md",
    "robust_ece": "reproduction/robust_ece.md",
    "sample_sizes": "reproduction/robust_ece.md",
    "multi_rater": "segmentation_networks.md",
    "rater_stability": "reproduction/multi_rater.md",
    "confidence_curves": "reproduction/confidence_curves.md",
}
OPTION = r"(?<![\w-])--[a-z][a-z0-9-]*"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a person does, from the folder of the repository."""
    return subprocess.run(
        [sys.executable, "-m", "experiments", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip


def test_help_lists_and_teaches() -> None:
    """Every paper's experiment with a line on it, and commands to copy."""
    shown = run("--help")
    assert shown.returncode == 0, shown.stderr
    named = re.findall(r"^\W*(\w+) +\S.*Table", shown.stdout, re.MULTILINE)
    assert named == list(PAGES) == [command.name for command in app.registered_commands]
    assert "python -m experiments label_histograms --out out" in shown.stdout


def test_errors_are_one_line_under_its_own_name(tmp_path: Path) -> None:
    """Not raterwise's: what must be put right is an argument of this program."""
    shown = run("robust_ece", "--data", str(tmp_path), "--out", str(tmp_path / "o"))
    assert shown.returncode == 2 and shown.stderr.count("\n") == 1
    assert shown.stderr.startswith("experiments: ") and "must hold breastmnist.npz" in shown.stderr


def test_parts_are_counted_from_one(tmp_path: Path) -> None:
    """What is no part, or is to be judged alone, is named; nothing is trained."""
    for options, message in (
        (["--part", "0/2"], "--part: must be I/N, such as 1/4 … 4/4; got '0/2'"),
        (["--part", "3/2"], "got '3/2'"),
        (["--part", "half"], "got 'half'"),
        (["--part", "1/2", "--judge-only"], "--part: is for training"),
    ):
        command = ["multi_rater", "--data", str(tmp_path), "--out", str(tmp_path / "o")]
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 2 and message in result.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("name", "module", "function"),
    [
        ("robust_ece", "training_losses", "train_all"),
        ("multi_rater", "segmentation", "train_networks"),
        ("confidence_curves", "distillation", "train_all"),
    ],
)
def test_part_and_device_reach_the_training(
    name: str, module: str, function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third of four parts is number 2 counted from 0; nothing is judged yet."""
    pytest.importorskip("torch")
    asked = []
    place = import_module(f"experiments.{name}.{module}")
    monkeypatch.setattr(place, function, lambda *_, **given: asked.append(given))
    command = [name, "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*command, "--part", "3/4", "--device", "cuda"])
    assert result.exit_code == 0 and "Part 3/4 is trained" in result.stdout, result.output
    assert [(given["shard"], given["device"]) for given in asked] == [((2, 4), "cuda")]


@pytest.mark.parametrize("name", PAGES)
def test_every_option_is_documented(name: str) -> None:
    """The page of an experiment names its command and every option."""
    shown = CliRunner().invoke(app, [name, "--help"])
    offered = set(re.findall(OPTION, shown.stdout)) - {"--help"}
    page = (ROOT / "docs" / PAGES[name]).read_text(encoding="utf-8")
    assert offered and offered <= set(re.findall(OPTION, page))
    assert f"python -m experiments {name} " in page


@pytest.mark.parametrize("name", PAGES)
def test_the_overview_names_each_experiment_and_no_option_that_it_lacks(name: str) -> None:
    """docs/command_line.md has a row for each."""
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{name}` \| .*$", page, re.MULTILINE)
    shown = CliRunner().invoke(app, [name, "--help"])
    assert set(re.findall(OPTION, row)) <= set(re.findall(OPTION, shown.stdout))

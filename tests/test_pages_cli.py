"""`--html` of every command: one file, what it must say, what it must not load."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from raterwise.cli import app


@pytest.fixture(scope="module", name="tables")
def two_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies of 80 cases with hostile names, three readers who are called 10, 9 and 2."""
    folder = tmp_path_factory.mktemp("tables")
    random = np.random.default_rng(0)
    for name in ("fit", "new"):
        p = random.beta(1, 2, 80)
        votes = (random.random((80, 3)) < p[:, None]).astype(int)
        head = "case,patient,prob_benign,prob_malignant,reader_10,reader_9,reader_2,alpha0"
        lines = [
            f"<b>{name}{i},p{name}{i // 2},{1 - x!r},{x!r},{','.join(map(str, v))},4.0"
            for i, (x, v) in enumerate(zip(p.tolist(), votes.tolist(), strict=True))
        ]
        (folder / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return folder


def run(command: str) -> Result:
    """Run the command line within this process."""
    return CliRunner().invoke(app, shlex.split(command))


def page_of(tables: Path, command: str) -> str:
    """Return the page that a command writes, less its scripts."""
    html = tables / "page.html"
    done = run(f"{command} --html '{html}' --quiet".replace("DIR", str(tables)))
    assert done.exit_code == 0, done.output
    text = html.read_text(encoding="utf-8")
    assert len(text.encode()) < 1_200_000
    html.unlink()
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)
    return text


COMMANDS = {
    "stability 'DIR/new.csv' --group-column patient --metrics ece --repeats 2 --fractions 0.5,1": (
        "How steady are these figures?", "One rater per case", "Total variation", "patients",
    ),
    "plan brier 'DIR/new.csv' --cases 50,100 --raters 1,2 --budget 120": (
        "How many cases and raters", "Every design", "the best within the budget",
    ),
    "agreement 'DIR/new.csv'": (
        "How far do the raters agree?", "Krippendorff", "What does each rater say?",
    ),
    "worklist 'DIR/new.csv' --top 7": (
        "Which cases need a second opinion?", "7 cases, ranked by", "&lt;b&gt;new",
    ),
    "calibrate --fit 'DIR/fit.csv' --apply 'DIR/new.csv' --out 'DIR/o' --resamples 20 "
    "--on-single drop": ("Key figures", "What did recalibration change?", "may be chance"),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split()[0])
def test_every_command_writes_a_page(tables: Path, command: str) -> None:
    """It says what was found and where it comes from: the command, the files, their hashes."""
    text = page_of(tables, command)
    for wanted in COMMANDS[command]:
        assert wanted in text
    assert "<b>new" not in text and "SHA-256" in text and "Based on" in text
    assert f"raterwise {command.split()[0]}" in text


@pytest.mark.parametrize(
    "command",
    [
        "stability 'DIR/new.csv' --metrics ece --repeats 2 --fractions 0.5,1",
        "plan brier 'DIR/new.csv' --cases 50 --raters 1",
        "agreement 'DIR/new.csv'",
        "compare 'DIR/new.csv' 'DIR/fit.csv' --names a,b --metrics brier --resamples 20",
    ],
)
def test_a_report_of_what_another_command_wrote_is_told_so(tables: Path, command: str) -> None:
    """Which command it was, not what is missing in the file."""
    if command.startswith("compare"):
        text = (tables / "new.csv").read_text(encoding="utf-8")
        (tables / "same.csv").write_text(text, encoding="utf-8")
        command = command.replace("fit.csv", "same.csv")
    out = tables / "other.json"
    done = run(f"{command} --out '{out}' --quiet".replace("DIR", str(tables)))
    assert done.exit_code == 0, done.output
    refused = run(f"report '{out}' -o '{tables / 'other.html'}'")
    assert refused.exit_code == 2
    assert f"holds what raterwise {command.split()[0]} writes, not results" in refused.output


def test_a_report_of_other_files_says_what_to_do(tables: Path) -> None:
    """What calibrate wrote beside results, and a summary in their place."""
    both = "--fit 'DIR/fit.csv' --apply 'DIR/new.csv' --out 'DIR/made' --resamples 20 -q"
    done = run(f"calibrate {both}".replace("DIR", str(tables)))
    assert done.exit_code == 0, done.output
    made, page = tables / "made" / "before_after.json", tables / "x.html"
    results = tables / "results.json"
    done = run(f"evaluate '{tables / 'new.csv'}' --metrics ece --resamples 20 --out '{results}' -q")
    assert done.exit_code == 0, done.output
    refused = run(f"report '{results}' -o '{page}' --after '{made}'")
    assert refused.exit_code == 2
    assert "takes before_after.json instead of results" in " ".join(refused.output.split())
    for command, stage in ((f"report '{made}'", "after"),
                           (f"report '{results}' --after '{results}'", "before")):  # fmt: skip
        assert run(f"{command} -o '{page}'").exit_code == 0
        classes = "<bdi>benign</bdi>, <bdi>malignant</bdi>"
        told = f"<p>Figures {stage} recalibration. Classes: {classes}</p>"
        assert told in page.read_text(encoding="utf-8")
    np.savez(tables / "site.npz", unit_cases=np.ones(3))
    for command in (f"report '{tables / 'site.npz'}'", f"evaluate '{tables / 'site.npz'}'"):
        refused = run(command)
        assert refused.exit_code == 2
        assert "raterwise merge makes results of" in " ".join(refused.output.split())


def test_raters_stand_in_the_order_of_their_names(tables: Path) -> None:
    """2, 9, 10: as numbers, whatever the order of their columns."""
    text = page_of(tables, "agreement 'DIR/new.csv'")
    found = re.findall(r'<th scope="row">(?:reader_)?(10|9|2)</th>', text)
    assert found == ["2", "9", "10"]
    assert "Raters in the order of their names" in text


def test_a_worklist_says_what_is_known_of_the_ratings(tables: Path) -> None:
    """The page has the notes that the terminal and the JSON have."""
    cases = [f"<b>new{i}" for i in range(80)]
    rows = [f"{case},ann,benign\n" for case in (*cases, cases[0])]
    (tables / "first.csv").write_text("".join(["case,reader,label\n", *rows]), encoding="utf-8")
    asked = "worklist 'DIR/new.csv' --ratings 'DIR/first.csv' --duplicates last"
    assert "first.csv: 1 rating is a repeat by the same rater" in page_of(tables, asked)


def test_a_page_of_nothing_to_compare_is_refused(tables: Path) -> None:
    """Calibrating cases that nobody rated leaves nothing to report."""
    bare = tables / "bare.csv"
    bare.write_text("case,prob_benign,prob_malignant\nx1,0.4,0.6\nx2,0.7,0.3\n", encoding="utf-8")
    done = run(
        f"calibrate --fit '{tables}/fit.csv' --apply '{bare}' --out '{tables}/n' --html a.html"
    )
    assert done.exit_code == 2 and "--html: compares before and after" in done.output
    assert not (tables / "n" / "before_after.json").exists()


@pytest.mark.parametrize("command", ["stability", "plan ece", "worklist", "agreement"])
def test_a_page_has_the_ending_of_one(tables: Path, command: str) -> None:
    """Refused before the work, as in evaluate."""
    done = run(f"{command} '{tables}/new.csv' --html page.txt")
    assert done.exit_code == 2 and "--html: must end in .html" in done.output


def test_what_calibrate_writes_has_the_keys_of_results(tables: Path) -> None:
    """Facts, options, versions and provenance stand at the top; reports have its warnings, too."""
    done = run(
        f"calibrate --fit '{tables}/fit.csv' --apply '{tables}/new.csv' --out '{tables}/k' "
        "--resamples 20 --on-single drop --quiet"
    )
    assert done.exit_code == 0, done.output
    path = tables / "k" / "before_after.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert {"schema_version", "data", "options", "versions", "provenance", "warnings"} <= set(
        content
    )
    assert content["data"]["cases"] == 80 and content["options"]["resamples"] == 20
    assert [file["name"] for file in content["provenance"]["inputs"]] == [
        str(tables / "fit.csv"), str(tables / "new.csv"),
    ]  # fmt: skip
    html = tables / "k.html"
    assert run(f"report '{path}' -o '{html}'").exit_code == 0
    assert "What did recalibration change?" in html.read_text(encoding="utf-8")
    for key in ("data", "options", "versions", "provenance"):
        del content[key]  # as it was written until they came
    path.write_text(json.dumps(content), encoding="utf-8")
    assert run(f"report '{path}' -o '{html}'").exit_code == 0

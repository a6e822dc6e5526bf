"""`raterwise stability`: what it measures, what it writes, and that the report reads it again."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.cli import app
from raterwise.cli.stability import _compared, read_stability
from raterwise.cli.stability_curves import measure, one_rater_each
from raterwise.evaluate import predictions_of
from raterwise.stability import TotalVariation, subsample_curve, total_variation

ROOT = Path(__file__).parents[1]


def run(command: str) -> Result:
    """Run the command line within this process."""
    return CliRunner().invoke(app, command.split(), env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.fixture(name="folder")
def folder_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty cases of twenty patients; two raters say class a of each, and some have a third."""
    rows = [f"n{i},p{i // 2},{0.6 + i / 100:.2f},{0.4 - i / 100:.2f}" for i in range(40)]
    text = "\n".join(["case,patient,prob_a,prob_b", *rows])
    (tmp_path / "p.csv").write_text(text + "\n", encoding="utf-8")
    rows = [f"n{i},2,{i % 2}" for i in range(40)]
    text = "\n".join(["case,count_a,count_b", *rows])
    (tmp_path / "r.csv").write_text(text + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_everything_is_written(folder: Path) -> None:
    """JSON with a schema version, every subset and the total variation; a figure; a table.

    Class a is predicted throughout; of a patient's two cases, all raters agree with it in one and
    two of three in the other, so that the accuracy is (1 + 2/3) / 2 of any subset of patients.
    """
    done = run(
        "stability p.csv --ratings r.csv --group-column patient --metrics accuracy,ece "
        "--fractions 0.5,1 --repeats 4 --out s.json --figure s.svg"
    )
    assert done.exit_code == 0, done.output
    content = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    assert content["schema_version"] == 1
    assert set(content) >= {"metrics", "data", "options", "versions", "warnings"}
    assert content["data"]["cases"] == 40 and content["data"]["patients"] == 20
    every, one = content["metrics"]["accuracy"]
    assert (every["raters"], one["raters"]) == ("every rater", "one rater")
    assert every["unit"] == "patients" and every["sizes"] == [10, 20]
    assert every["full"] == pytest.approx(5 / 6)
    assert np.array(every["values"]) == pytest.approx(np.full((2, 4), 5 / 6))
    assert every["total_variation"]["mean"] == pytest.approx(0, abs=1e-12)
    assert np.shape(one["values"]) == (2, 4) and one["total_variation"]["mean"] > 0
    drawn = (folder / "s.svg").read_text(encoding="utf-8")
    assert "<text" in drawn and "Patients in the subset" in drawn
    assert "Accuracy: with every rater's labels 100% steadier" in done.stdout
    assert re.search(r"^10 +0\.8333 ± 0\.0000", done.stdout, re.MULTILINE)


def test_only_what_the_repeats_can_tell_is_said() -> None:
    """Two means of 25 repeats with deviations of 0.3 and 0.4: the standard error is 0.5 / 5."""

    def told(mean: float) -> str:
        curve = SimpleNamespace(values=np.zeros((2, 25)))
        moves = {"every rater": (mean, 0.3), "one rater": (1.0, 0.4)}
        found: list[Any] = [
            SimpleNamespace(metric="ece", raters=name, variation=TotalVariation(*of), curve=curve)
            for name, of in moves.items()
        ]
        (line,) = _compared(found)
        return line

    steadier = "with every rater's labels 21% steadier than with one rater's."
    assert told(0.79) == f"Expected calibration error: {steadier}"
    assert "22% less steady" in told(1.22)
    for near in (0.81, 1.0, 1.19):
        assert "25 repeats cannot tell whether it is steadier" in told(near)


def test_the_file_says_what_was_asked(folder: Path) -> None:
    """Bins, the question and options of a metric are in the JSON, as in that of `evaluate`."""
    told = "--metrics ece --bins 5 --question per_class --per case --option ece.norm=2"
    done = run(f"stability p.csv --ratings r.csv {told} --repeats 2 --out s.json -q")
    assert done.exit_code == 0, done.output
    found = json.loads((folder / "s.json").read_text(encoding="utf-8"))["options"]
    asked = {"bins": 5, "question": "per_class", "per": "case", "options": {"ece": {"norm": 2}}}
    assert {**asked, "metrics": "ece", "repeats": 2, "seed": 0}.items() <= found.items()


def test_a_column_of_patients_that_is_not_used_is_named(folder: Path) -> None:
    """As by all other commands: in the terminal, the file and the page; not where it is used."""
    command = "stability p.csv --ratings r.csv --metrics accuracy --fractions 1 --repeats 2 "
    done = run(f"{command} --out s.json --html s.html")
    assert done.exit_code == 0, done.output
    named = "p.csv has a column 'patient' with 20 values for 40 cases that was not used"
    assert named in " ".join(done.output.split())
    assert json.loads((folder / "s.json").read_text(encoding="utf-8"))["warnings"][0].startswith(
        named
    )
    page = html.unescape((folder / "s.html").read_text(encoding="utf-8"))
    assert f"{named}; --group-column would read it" in page
    assert "was not used" not in run(f"{command} --group-column patient").output


def test_a_metric_of_pairs_has_no_single_rater(folder: Path) -> None:
    """What one rater cannot give is left out and told; labels of one rater have one series."""
    options = "--fractions 1 --repeats 2 --out s.json"
    words = "stability p.csv --ratings r.csv --metrics epistemic_loss --group-column patient"
    done = run(f"{words} {options}")
    assert done.exit_code == 0, done.output
    assert "left out: Epistemic loss with one rater: it needs 2" in done.stdout
    content = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    assert [row["raters"] for row in content["metrics"]["epistemic_loss"]] == ["every rater"]
    assert content["warnings"] == ["Epistemic loss with one rater: it needs 2"]
    text = (folder / "p.csv").read_text(encoding="utf-8").replace("patient", "truth")
    (folder / "one.csv").write_text(re.sub(r",p\d+,", ",a,", text), encoding="utf-8")
    done = run(f"stability one.csv --label-column truth --metrics ece {options} -q")
    assert done.exit_code == 0 and done.stdout == ""
    content = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    assert len(content["metrics"]["ece"]) == 1


def test_cases_with_too_few_raters(folder: Path) -> None:
    """One rater for a case is an error that names the option; with it the case is left out."""
    text = (folder / "r.csv").read_text(encoding="utf-8").replace("n0,2,0", "n0,1,0")
    (folder / "r.csv").write_text(text, encoding="utf-8")
    words = "stability p.csv --ratings r.csv --metrics epistemic_loss --fractions 1 --repeats 2"
    done = run(words)
    assert done.exit_code == 2 and "--on-single drop leaves them out" in done.output
    done = run(f"{words} --on-single drop")
    assert done.exit_code == 0, done.output
    assert "left out: 1 cases with too few raters for Epistemic loss" in done.stdout


def test_what_it_reads_is_what_it_wrote(folder: Path) -> None:
    """Curves and variations come back as they were; another file is refused by its name."""
    assert run("stability p.csv --ratings r.csv --repeats 2 --out s.json").exit_code == 0
    found = read_stability(folder / "s.json")
    assert [(one.metric, one.raters) for one in found] == [
        ("ece", "every rater"), ("ece", "one rater"),
        ("robust_ece", "every rater"), ("robust_ece", "one rater"),
    ]  # fmt: skip
    labels = rw.Labels.from_counts([[2, i % 2] for i in range(40)])
    probs = np.array([[0.6 + i / 100, 0.4 - i / 100] for i in range(40)])
    again, _ = measure(predictions_of(probs, labels), ["ece"], repeats=2)
    assert found[0].curve.values == pytest.approx(again[0].curve.values)
    assert found[0].variation == pytest.approx(again[0].variation)
    for text in ("[]", "{}", '{"schema_version": 9, "metrics": {}}', "no"):
        (folder / "x.json").write_text(text, encoding="utf-8")
        with pytest.raises(rw.InvalidInputError, match=r"x\.json: "):
            read_stability(folder / "x.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--fractions 0.1,half", "--fractions: must be numbers with commas"),
        ("--fractions 0,1", "fractions: must be in (0, 1]"),
        ("--repeats 0", "repeats: must be"),
        ("--metrics exe", "'exe'"),
        ("--figure s.doc", "--figure: must end in .pdf, .png, .svg; got s.doc"),
        ("--weight-column nothing", "nothing"),
        ("--out no/s.json", "the folder no must exist"),
    ],
)
def test_what_it_refuses(folder: Path, options: str, message: str) -> None:
    """One line on stderr, exit code 2, nothing written."""
    before = sorted(folder.iterdir())
    done = run(f"stability p.csv --ratings r.csv {options}")
    assert done.exit_code == 2
    assert message in done.output
    assert sorted(folder.iterdir()) == before


def test_one_rater_of_each_case_is_one_of_its_own() -> None:
    """From histograms, too: always a label that the case has, each in its proportion."""
    counts = np.tile([[3, 1, 0], [0, 0, 2]], (2000, 1))
    drawn = one_rater_each(rw.Labels.from_counts(counts), seed=0)
    chosen: Any = drawn.majority()
    assert (chosen[1::2] == 2).all()
    assert set(chosen[::2].tolist()) == {0, 1}
    assert np.mean(chosen[::2] == 0) == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / 2000))
    assert (one_rater_each(rw.Labels.from_counts(counts), seed=0).majority() == chosen).all()
    with pytest.raises(rw.InvalidInputError, match="every case needs a rating; nobody rated 1"):
        one_rater_each(rw.Labels.from_counts([[1, 0], [0, 0]]), seed=0)


def test_help_teaches() -> None:
    """The help ends in examples that begin with the command."""
    assert "raterwise stability " in run("stability --help").stdout.split("Examples")[1]


def test_a_column_of_weights_counts(folder: Path) -> None:
    """Cases with a dissenting rater weigh 3: the accuracy is (1 · 1 + 3 · 2/3) / 4 of the whole."""
    rows = (folder / "p.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{row},{'w' if i == 0 else 3 if i % 2 == 0 else 1}" for i, row in enumerate(rows)]
    (folder / "p.csv").write_text("\n".join(rows), encoding="utf-8")
    done = run(
        "stability p.csv --ratings r.csv --weight-column w --metrics accuracy --per case "
        "--fractions 0.5,1 --repeats 3 --out s.json"
    )
    assert done.exit_code == 0, done.output
    content = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    assert content["metrics"]["accuracy"][0]["full"] == pytest.approx(3 / 4)


def test_weights_count_in_findings(folder: Path) -> None:
    """The third case weighs 2 of 4 and alone is not 0: (1 · 0 + 1 · 0 + 2 · 0.5²) / 4."""
    rows = ["id,w,prob_mass,label_mass,prob_edema,label_edema", "a,1,1,1,0,0", "b,1,0,0,1,1"]
    rows.append("c,2,0.5,1,0.5,0")
    (folder / "f.csv").write_text("\n".join(rows), encoding="utf-8")
    done = run(
        "stability f.csv --multilabel --weight-column w "
        "--metrics brier --fractions 0.67,1 --repeats 2 --out f.json"
    )
    assert done.exit_code == 0, done.output
    content = json.loads((folder / "f.json").read_text(encoding="utf-8"))
    for name in ("mass", "edema"):
        full = content["findings"][name]["brier"][0]["full"]
        assert full == pytest.approx(2 * 0.5**2 / 4)


def test_what_is_infinite_is_left_out(folder: Path) -> None:
    """-log 0 has no variation: a line says so, no number is inf or nan, and the others go on."""
    table = "case,prob_0,prob_1,reader_1,reader_2\n" + "1,1,0,1,1\n2,0.5,0.5,0,1\n3,0.2,0.8,1,1\n"
    (folder / "sure.csv").write_text(table, encoding="utf-8")
    done = run("stability sure.csv --metrics nll,brier --repeats 2")
    said = " ".join(done.output.split())
    assert done.exit_code == 0, done.output
    assert "left out: Negative log-likelihood, every rater: it is infinite" in said
    assert not re.search(r"\b(inf|nan)\b", said)
    alone = run("stability sure.csv --metrics nll --repeats 2")
    assert alone.exit_code == 2 and "it is infinite" in alone.output


def test_what_is_infinite_in_one_finding_has_no_mean(folder: Path) -> None:
    """The mean of the other finding would flatter; the line names the one finding."""
    table = "case,prob_a,prob_b,label_a,label_b\n1,0,0.5,1,1\n2,0.5,0.5,0,1\n3,0.2,0.8,1,0\n"
    (folder / "sure.csv").write_text(table, encoding="utf-8")
    done = run("stability sure.csv --multilabel --metrics nll,brier --repeats 2")
    assert done.exit_code == 0, done.output
    assert "Brier score" in done.output.split("By finding")[0]
    assert "it is infinite: a class that a rater chose was given the probability 0: a" in (
        " ".join(done.output.split())
    )
    judged = run("evaluate sure.csv --multilabel --metrics nll,brier --resamples 0")
    assert "undefined: Negative log-likelihood in a: it is infinite" in (
        " ".join(judged.output.split())
    )


def test_curves_are_those_of_the_library(folder: Path) -> None:
    """The seed reaches the subsets, the parts and the one rater, and weights all of them.

    Four patients have cases with a single label: the epistemic loss is of those that are left.
    """
    i = np.arange(40)
    counts = np.column_stack((np.where(i // 2 % 5 == 0, 1, 2), np.where(i // 2 % 5 == 0, 0, i % 2)))
    lines = [f"n{k},{a},{b}" for k, (a, b) in enumerate(counts)]
    (folder / "few.csv").write_text("\n".join(["case,count_a,count_b", *lines]), encoding="utf-8")
    first = np.array([round(0.6 + k / 100, 2) for k in range(40)])
    probs, weights = np.column_stack((first, [round(0.4 - k / 100, 2) for k in i])), 1.0 + i % 3
    rows = [f"n{k},p{k // 2},{probs[k, 0]},{probs[k, 1]},{weights[k]}" for k in i]
    head = "case,patient,prob_a,prob_b,w"
    (folder / "w.csv").write_text("\n".join([head, *rows]), encoding="utf-8")
    labels, groups = rw.Labels.from_counts(counts), i // 2
    names = ("brier", "epistemic_loss")
    told = "--ratings few.csv --group-column patient --weight-column w --on-single drop"
    asked = f"--metrics {','.join(names)} --fractions 0.5,1 --repeats 3 --seed 5 --out s.json -q"
    done = run(f"stability w.csv {told} {asked}")
    assert done.exit_code == 0, done.output
    found = json.loads((folder / "s.json").read_text(encoding="utf-8"))["metrics"]
    several = np.flatnonzero(counts.sum(axis=1) > 1)
    one = one_rater_each(labels, 5)
    cases = {("brier", 0): (labels, i), ("brier", 1): (one, i), (names[1], 0): (labels, several)}
    for (name, which), (known, use) in cases.items():
        given: dict[str, Any] = {
            "groups": groups[use],
            "weights": weights[use],
            "seed": 5,
            "repeats": 3,
        }
        curve = subsample_curve(name, probs[use], known.take(use), (0.5, 1), **given)
        steady = total_variation(name, probs[use], known.take(use), **given)
        shown = found[name][which]
        assert shown["sizes"] == list(curve.sizes)
        assert np.array(shown["values"]) == pytest.approx(curve.values)
        assert shown["total_variation"]["mean"] == pytest.approx(steady.mean)


def test_curves_of_findings_are_of_weighted_cases(folder: Path) -> None:
    """By hand: the Brier score of all cases is 0.01 where the weight is 3, 0.81 where it is 1."""
    rows = [f"n{k},p{k // 2},{0.1 if k % 2 else 0.9},0,1,{3 if k % 2 else 1}" for k in range(40)]
    head = "case,patient,prob_mass,positives_mass,raters_mass,w"
    (folder / "f.csv").write_text("\n".join([head, *rows]), encoding="utf-8")
    told = "--group-column patient --weight-column w --metrics brier --fractions 0.5,1 --repeats 2"
    done = run(f"stability f.csv --multilabel {told} --out s.json -q")
    assert done.exit_code == 0, done.output
    found = json.loads((folder / "s.json").read_text(encoding="utf-8"))["findings"]["mass"]
    assert found["brier"][0]["sizes"] == [10, 20]
    assert found["brier"][0]["full"] == pytest.approx((3 * 0.01 + 0.81) / 4)


def test_progress_is_that_of_all_metrics_and_raters() -> None:
    """It grows from metric to metric, over the curve and the variation of each, and ends at 1."""
    told: list[tuple[str, float]] = []
    cases = predictions_of(np.tile([0.7, 0.3], (20, 1)), rw.Labels.from_counts([[2, 1]] * 20))
    measure(cases, ["brier", "ece"], repeats=2, progress=lambda *report: told.append(report))
    done = [share for _, share in told]
    assert done == sorted(done) and done[-1] == 1
    assert len({round(share, 9) for share in done}) == 4 * (6 * 2 + 2)  # subsets, and repeats
    assert done[-2] == pytest.approx(1 - 0.7 / 2 / 4)  # one of two repeats, of a quarter of all


def test_a_group_stands_for_its_metrics(folder: Path) -> None:
    """The ECE and every metric that `evaluate` has for "clinical", once each."""
    command = "stability p.csv --ratings r.csv --id-column case --repeats 2 --fractions 1"
    result = run(f"{command} --metrics ece,clinical,auroc --out s.json --quiet")
    assert result.exit_code == 0, result.output
    group = rw.evaluate([[0.6, 0.4], [0.3, 0.7]], [0, 1], "ece,clinical,auroc", resamples=0)
    written = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    assert len(group) > 3
    assert list(written["metrics"]) == list(group)

"""`--multilabel` on the command line and in reports, against values of each finding by itself."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.cli import app
from raterwise.cli.show import print_results
from raterwise.cli.stability import read_stability
from raterwise.multilabel.evaluation import _verdict_on_each
from raterwise.report import comparison_html, report_html

FINDINGS = ("edema", "mass", "pleural effusion")
CASES = 120
METRICS = "ece,brier,accuracy,auccc"


def run(command: str | Sequence[str], width: int = 200) -> Result:
    """Run the command line within this process."""
    words = shlex.split(command) if isinstance(command, str) else list(command)
    return CliRunner().invoke(app, words, env={"COLUMNS": str(width), "TERM": "dumb"})


def done(command: str, width: int = 200) -> str:
    """Run a command that must succeed, and return what it printed."""
    result = run(command, width)
    assert result.exit_code == 0, result.output
    return result.stdout


class Chest:
    """Probabilities of three findings, the first far too low; two to four raters each."""

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.truth = random.beta(1, 2, (CASES, 3))
        self.probs = np.round(self.truth ** np.array([4, 1.3, 1.1]), 4)
        self.raters = random.integers(2, 5, (CASES, 3))
        self.positives = random.binomial(self.raters, self.truth)
        self.patients = [f"p{i // 2}" for i in range(CASES)]
        self.sites = [("a", "b", "b")[i % 3] for i in range(CASES)]

    def labels(self, i: int) -> rw.Labels:
        """Return the labels of one finding."""
        counts = np.stack((self.raters[:, i] - self.positives[:, i], self.positives[:, i]), axis=1)
        return rw.Labels.from_counts(counts)


CHEST = Chest()


def write(path: Path, header: Sequence[str], rows: Any) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


@pytest.fixture(name="folder")
def folder_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Predictions p.csv (other.csv of another model) and counts r.csv, in another order."""
    header = ["case", "patient", "site", *(f"prob_{name}" for name in FINDINGS)]
    for name, probs in (("p", CHEST.probs), ("other", np.round(CHEST.truth, 4))):
        rows = (
            [f"n{i}", CHEST.patients[i], CHEST.sites[i], *probs[i].tolist()] for i in range(CASES)
        )
        write(tmp_path / f"{name}.csv", header, rows)
    header = ["case", *(f"{kind}_{name}" for name in FINDINGS for kind in ("positives", "raters"))]
    both = np.stack((CHEST.positives, CHEST.raters), axis=2).reshape(CASES, 6)
    order = np.random.default_rng(1).permutation(CASES)
    write(tmp_path / "r.csv", header, ([f"n{i}", *both[i].tolist()] for i in order))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(name: str) -> dict[str, Any]:
    """Read a JSON file."""
    return dict(json.loads(Path(name).read_text(encoding="utf-8")))


def rows_of(name: str) -> list[dict[str, str]]:
    """Read a CSV file."""
    return list(csv.DictReader(io.StringIO(Path(name).read_text(encoding="utf-8"))))


def expected(metric: str, i: int) -> float:
    """Return a metric of one finding: its function's, of errors about the positive class.

    AUCCC by its definition: how often a right rating has the higher confidence than a wrong one.
    """
    probs, labels = CHEST.probs[:, i], CHEST.labels(i)
    if metric != "auccc":
        asked = {"question": "positive"} if metric == "ece" else {}
        return float(getattr(rw, metric)(probs, labels, **asked))
    confidence, predicted = np.maximum(probs, 1 - probs), (probs > 0.5).astype(int)
    right = labels.counts[np.arange(CASES), predicted]
    wrong = CHEST.raters[:, i] - right
    above = np.sign(confidence[:, None] - confidence) / 2 + 0.5
    return float(right @ above @ wrong / (right.sum() * wrong.sum()))


def test_means_and_findings(folder: Path) -> None:
    """JSON, CSV and the table hold each finding's own value, and the mean over the findings."""
    told = done(
        f"evaluate p.csv --multilabel --ratings r.csv --group-column patient --metrics {METRICS} "
        "--resamples 50 --out r.json --csv m.csv"
    )
    found = content("r.json")
    assert list(found["findings"]) == list(FINDINGS)
    assert found["data"]["cases"] == CASES and found["data"]["patients"] == CASES // 2
    lines = rows_of("m.csv")
    assert [line["finding"] for line in lines] == [t for t in ("", *FINDINGS) for _ in range(4)]
    by_place = {(line["finding"], line["name"]): float(line["value"]) for line in lines}
    assert told.startswith("120 cases of 60 patients, 3 findings, ")
    assert "(2 to 4 per case and finding)" in told
    for metric in METRICS.split(","):
        values = [expected(metric, i) for i in range(3)]
        assert found["metrics"][metric]["value"] == pytest.approx(np.mean(values), abs=1e-12)
        assert by_place["", metric] == pytest.approx(np.mean(values), abs=1e-12)
        for name, value in zip(FINDINGS, values, strict=True):
            assert found["findings"][name]["metrics"][metric]["value"] == pytest.approx(value)
            assert by_place[name, metric] == pytest.approx(value, abs=1e-12)
            line = next(row for row in told.splitlines() if row.startswith(name))
            assert f"{value:.3f} [" in line, metric


def test_readers_are_compared_and_the_headline_is_that_of_the_report(folder: Path) -> None:
    """A row per rating says who said it: a reader who sees twice as much is warned of.

    The terminal opens with the words of the report, of a single finding with its name.
    """
    random = np.random.default_rng(3)
    said = random.random((CASES, 3)) < CHEST.truth[:, :1] * np.array([1, 1, 0.3])
    rows = [
        (f"n{i}", f"r{j}", "edema", "YES" if said[i, j] else "NO")
        for i in range(CASES) for j in range(3)
    ]  # fmt: skip
    write(folder / "long.csv", ["case", "reader", "finding", "label"], rows)
    options = "--ratings long.csv --multilabel --prob-columns prob_edema --resamples 100"
    told = done(f"evaluate p.csv {options} --metrics ece,brier,fleiss_kappa --out o.json")
    assert "the raters are not interchangeable" in told
    results = rw.Results.from_json(folder / "o.json")
    (name, found), = results.findings.items()  # fmt: skip
    assert found.data["exchangeability"]["p_value"] < 0.01
    assert f"Says “{name}” too rarely. It predicts" in told.replace("\n", " ")
    assert f"Says “{name}” too rarely" in report_html(results)
    assert "1 of 1" not in told + report_html(results)


def test_a_finding_that_is_open_is_no_all_clear() -> None:
    """No finding is called, one is open: the terminal says so as the report does."""
    results = rw.evaluate_multilabel(
        CHEST.probs[:, 1:], CHEST.positives[:, 1:], CHEST.raters[:, 1:], names=FINDINGS[1:],
        metrics="ece", resamples=100,
    )  # fmt: skip
    verdict = {**results.findings["mass"].data["verdict"], "miscalibrated": False}
    doubtful = {"mass": {**verdict, "p_value": 0.06, "possibly": True}}
    doubtful[FINDINGS[2]] = {**verdict, "p_value": 0.6, "possibly": False}
    findings = {
        title: replace(found, data={**found.data, "verdict": doubtful[title]})
        for title, found in results.findings.items()
    }
    told = _verdict_on_each(findings)
    assert told["possibly"] == ["mass"]
    assert told["sentence"].endswith("; possibly mass (each judged on its own)")
    shown = io.StringIO()
    data = {**results.data, "verdict": told}
    print_results(replace(results, findings=findings, data=data), Console(file=shown, width=200))
    assert "No clear answer for" in shown.getvalue()
    assert "mass: possibly miscalibrated." in shown.getvalue()


def test_a_narrow_terminal_has_the_values_alone(folder: Path) -> None:
    """A line per finding fits: the intervals are left to wider terminals and to files."""
    told = done(
        "evaluate p.csv --multilabel --ratings r.csv --metrics ece,brier --resamples 20", 80
    )
    line = next(row for row in told.splitlines() if row.startswith("pleural effusion"))
    assert re.fullmatch(r"pleural effusion +120 +0\.\d{3} +0\.\d{3} *", line)


def test_options_reach_every_finding(folder: Path) -> None:
    """Weights, bins, a question, options and the seed are those of the library's function."""
    rows = rows_of("p.csv")
    weights = 1 + np.arange(CASES) % 3
    with_weight = ([*row.values(), w] for row, w in zip(rows, weights.tolist(), strict=True))
    write(folder / "w.csv", [*rows[0], "weight"], with_weight)
    done(
        "evaluate w.csv --multilabel --ratings r.csv --metrics ece,robust_ece --bins 7 --per case "
        "--question top_label --option robust_ece.sigma=0.05 --weight-column weight --resamples 30 "
        "--seed 3 --level 0.9 --group-column patient --out w.json -q"
    )
    found, again = content("w.json"), rw.evaluate_multilabel(
        CHEST.probs, CHEST.positives, CHEST.raters, FINDINGS, "ece,robust_ece", CHEST.patients, 30,
        0.9, 3, bins=7, question="top_label", per="case", weights=weights,
        options={"robust_ece": {"sigma": 0.05}},
    )  # fmt: skip
    for name, e in again.items():
        assert found["metrics"][name] == pytest.approx(
            {**found["metrics"][name], "value": e.value, "low": e.low, "high": e.high}
        )
    mass = rw.ece(CHEST.probs[:, 1], CHEST.labels(1), bins=7, per="case", weights=weights)
    assert found["findings"]["mass"]["metrics"]["ece"]["value"] == pytest.approx(mass)


def test_every_way_to_hold_the_answers(folder: Path) -> None:
    """Columns of raters, rows of answers and arrays give what counts give, to the digit."""
    said = [
        [[int(k < CHEST.positives[n, i]) for k in range(CHEST.raters[n, i])] for i in range(3)]
        for n in range(CASES)
    ]
    header = ["case", *(f"reader_{k}_{name}" for name in FINDINGS for k in range(4))]
    wide = [
        [f"n{n}", *(answer for i in range(3) for answer in (said[n][i] + [""] * 4)[:4])]
        for n in range(CASES)
    ]
    write(folder / "wide.csv", header, wide)
    words = ("no", "YES")
    long = [
        (f"n{n}", f"r{k}", FINDINGS[i], words[answer])
        for n in range(CASES)
        for i in range(3)
        for k, answer in enumerate(said[n][i])
    ]
    write(folder / "long.csv", ["case", "rater", "what", "rating"], long)
    arrays = {"probs": CHEST.probs, "positives": CHEST.positives, "raters": CHEST.raters}
    np.savez(folder / "all.npz", **arrays, names=np.array(FINDINGS))
    common = "--multilabel --metrics ece,epistemic_loss --resamples 20 -q --out"
    done(f"evaluate p.csv --ratings r.csv {common} counts.json")
    done(f"evaluate p.csv --ratings wide.csv {common} wide.json")
    done(f"evaluate p.csv --ratings long.csv --finding-column what {common} long.json")
    done(f"evaluate all.npz {common} npz.json")
    first = content("counts.json")
    for name in ("wide", "long", "npz"):
        assert content(f"{name}.json")["metrics"] == first["metrics"], name
        assert content(f"{name}.json")["findings"].keys() == first["findings"].keys()


def test_sub_groups_of_findings(folder: Path) -> None:
    """Levels have means over the findings, of their own cases."""
    told = done(
        "evaluate p.csv --multilabel --ratings r.csv --metrics brier --resamples 20 "
        "--subgroup-column site --out s.json"
    )
    rows = np.array(CHEST.sites) == "a"
    values = [rw.brier(CHEST.probs[rows, i], CHEST.labels(i).take(rows)) for i in range(3)]
    level = next(s for s in content("s.json")["subgroups"] if s["level"] == "a")
    assert level["cases"] == 40
    assert level["estimates"]["brier"]["value"] == pytest.approx(np.mean(values))
    assert "By site" in told


def test_what_is_left_out_is_told(folder: Path) -> None:
    """Unrated cases of a finding, findings without a probability, metrics undefined in some."""
    text = (folder / "r.csv").read_text(encoding="utf-8").splitlines()
    first = text[1].split(",")
    first[3:5] = ["0", "0"]  # nobody rated the mass of this case
    cut = [",".join([*text[0].split(","), "label_hernia"]), ",".join([*first, "1"])]
    cut += [f"{line},1" for line in text[2:]]
    (folder / "cut.csv").write_text("\n".join(cut), encoding="utf-8")
    words = "evaluate p.csv --multilabel --ratings cut.csv --metrics brier --resamples 0"
    result = run(f"{words} --allow-unmatched")
    assert result.exit_code == 2
    assert f"rating of 'mass'; 1 of 120 has none (first: case '{first[0]}')" in result.output
    assert "--on-unrated drop leaves them out" in result.output
    told = done(f"{words} --allow-unmatched --on-unrated drop")
    assert "left out: 1 case (unrated) of mass" in told
    assert "warning: not read, for lack of a probability: label_hernia" in told
    certain = np.where(np.arange(CASES) < 60, 1, 0)
    results = rw.evaluate_multilabel(
        np.stack((CHEST.probs[:, 0], certain), 1), np.stack((CHEST.positives[:, 0], certain), 1),
        np.stack((CHEST.raters[:, 0], np.ones(CASES, int)), 1), ["edema", "sure"],
        "auccc,epistemic_loss", resamples=0,
    )  # fmt: skip
    console = Console(width=200, record=True, file=io.StringIO())
    print_results(results, console)
    shown, page = console.export_text(), report_html(results)
    for title in ("AUCCC", "Epistemic loss"):
        assert f"undefined: {title} in sure (left out of the mean): " in shown
        assert f"Undefined: {title} in sure: " in page


def test_every_finding_has_the_key_figures(folder: Path) -> None:
    """The AUROC of each, by hand over pairs of labels; of models, not what raters alone say."""
    words = "p.csv --multilabel --ratings r.csv --resamples 20 --metrics"
    told = done(f"evaluate {words} accuracy,auroc,brier,fleiss_kappa --out k.json")
    table = told[told.index("By finding") :].splitlines()
    assert table[1].split() == ["finding", "cases", "auroc", "brier", "fleiss_kappa", "accuracy"]
    yes, looked, z = CHEST.positives[:, 0], CHEST.raters[:, 0], CHEST.probs[:, 0]
    pairs = yes[:, None] * (looked - yes)[None, :]
    higher = (z[:, None] > z[None, :]) + 0.5 * (z[:, None] == z[None, :])
    area = (pairs * higher).sum() / pairs.sum()
    first = next(line for line in table if line.startswith("edema"))
    assert first.split()[2] == f"{area:.3f}"
    page = report_html(rw.Results.from_json(folder / "k.json"))
    section = page[page.index('id="findings"') :]
    assert section.index(">AUROC<") < section.index(">Accuracy<")
    (folder / "q.csv").write_text((folder / "p.csv").read_text(encoding="utf-8"), encoding="utf-8")
    differ = done(f"compare p.csv q.csv {words[6:]} auroc,brier,fleiss_kappa")
    heading = differ[differ.index("Differences by finding") :].splitlines()[1]
    assert heading.split() == ["finding", "auroc", "brier"]


def test_the_provenance_names_the_cases_without_a_partner(folder: Path) -> None:
    """Two rated cases are not among the predictions: counted and named, as of other tables."""
    lines = (folder / "p.csv").read_text(encoding="utf-8").splitlines()
    (folder / "fewer.csv").write_text("\n".join(lines[:-2]), encoding="utf-8")
    done("evaluate fewer.csv --multilabel --ratings r.csv --allow-unmatched --metrics brier "
         "--resamples 0 --out fewer.json")  # fmt: skip
    gone = [line.split(",")[0] for line in lines[-2:]]
    left = content("fewer.json")["provenance"]["left_out"]
    assert left == {"without_predictions": {"cases": 2, "names": gone}}


def test_a_messy_table(folder: Path) -> None:
    """Semicolons, other ids, marks for none, a case too many, one rater: all as the options say.

    Of 119 cases, reader 2 saw the finding in every second one and has no answer on the first ten.
    """
    names = [f"{i:03}" for i in range(120)]
    rows = [f"{name};{0.2 + 0.005 * i:.3f}" for i, name in enumerate(names)]
    text = "\n".join(["image;prob_mass", *rows])
    (folder / "m.csv").write_text(f"\ufeff{text}\n", encoding="utf-8")
    said = ["n/a" if i < 10 else ("True", "FALSE")[i % 2] for i in range(119)]
    rows = [f"{names[i]};Yes;{said[i]}" for i in range(119)]
    text = "\n".join(["scan;rater_A_mass;rater_B_mass", *rows])
    (folder / "a.csv").write_text(text, encoding="utf-8")
    words = (
        "evaluate m.csv --multilabel --ratings a.csv --delimiter ; --id-column image "
        "--ratings-id-column scan --missing n/a --allow-unmatched --on-single drop --resamples 0 "
        "--metrics brier,epistemic_loss,accuracy --out m.json"
    )
    told = run(words.split())
    assert told.exit_code == 0, told.output
    found = content("m.json")["findings"]["mass"]
    probs = 0.2 + 0.005 * np.arange(119)
    yes = np.array([1 if i < 10 else 2 - i % 2 for i in range(119)])
    raters = np.where(np.arange(119) < 10, 1, 2)
    share = yes / raters
    squares = share * (1 - probs) ** 2 + (1 - share) * probs**2
    assert found["metrics"]["brier"]["value"] == pytest.approx(squares.mean())
    assert found["metrics"]["epistemic_loss"]["dropped"] == 10
    assert content("m.json")["data"]["dropped"] == {"without_ratings": 1}
    assert "left out: 1 case (without ratings)" in told.stdout
    assert "left out: 10 cases with too few raters for some metrics of mass" in told.stdout


@pytest.mark.parametrize("form", ["readings", "answers"])
def test_rows_of_raters_are_read_as_told(folder: Path, form: str) -> None:
    """Ids written otherwise, marks for none, a reading that was corrected, a finding too many.

    At last A sees the mass in the first case, where B does not answer; both see none in the second
    and disagree about the third: (0.1² + 0.2² + (0.4² + 0.6²)/2) / 3.
    """
    probs = "image,prob_mass\nIMG_001.PNG,0.9\nIMG_002.PNG,0.2\nIMG_003.PNG,0.6\n"
    (folder / "f.csv").write_text(probs, encoding="utf-8")
    said = ("1,A,no", "1,A,yes", "1,B,n/a", "2,A,no", "2,B,no", "3,A,yes", "3,B,no")
    each = [f"img-{row}".split(",") for row in said]
    if form == "readings":
        write(folder / "rows.csv", ["scan", "reader", "mass", "hernia"], [[*r, "no"] for r in each])
    else:
        rows = [[case, who, "mass", answer] for case, who, answer in each]
        write(folder / "rows.csv", ["scan", "reader", "finding", "label"], rows)
    told = done(
        "evaluate f.csv --multilabel --ratings rows.csv --id-column image --ratings-id-column scan "
        "--loose-ids --missing n/a --duplicates last --metrics brier --resamples 0 --out f.json"
    )
    found = content("f.json")
    assert found["metrics"]["brier"]["value"] == pytest.approx((0.01 + 0.04 + 0.26) / 3)
    assert found["data"]["ratings"] == 5
    notes = [note for note in found["warnings"] if note.startswith("rows.csv: ")]
    assert "1 rating is a repeat by the same rater of the same case" in notes[-1]
    unused = "rows.csv: 'hernia' could be of a finding that has no probability; not used"
    assert notes[:-1] == ([unused] if form == "readings" else [])
    assert all(f"warning: {note}" in told.replace("\n", " ") for note in notes)


def test_the_metrics_of_levels_can_be_chosen(folder: Path) -> None:
    """--subgroup-metrics decides what levels are compared in."""
    done(
        "evaluate p.csv --multilabel --ratings r.csv --metrics brier,ece --resamples 10 -q "
        "--subgroup-column site --subgroup-metrics ece --out s.json"
    )
    assert all(list(level["estimates"]) == ["ece"] for level in content("s.json")["subgroups"])


ERRORS = {
    "a hint": ("evaluate p.csv --ratings r.csv", "raterwise evaluate --multilabel takes them"),
    "one label": (
        "evaluate p.csv --multilabel --label-column site",
        "--label-column: each finding",
    ),
    "raters": (
        "evaluate p.csv --multilabel --ratings r.csv --unit raters",
        "needs to know who said what",
    ),
    "both": (
        "evaluate p.csv --multilabel --ratings r.csv --unit both",
        "--unit: 'both' needs to know",
    ),
    "a stream": ("evaluate p.csv --multilabel --stream", "--multilabel: findings are read into"),
    "no labels": ("evaluate p.csv --multilabel", "every finding needs labels; 'edema', 'mass', "),
    "no such column": (
        "evaluate p.csv --multilabel --ratings r.csv --finding-column x",
        "--finding-column: must name a column of r.csv; there is no 'x'",
    ),
    "a column alone": (
        "evaluate p.csv --ratings r.csv --finding-column x",
        "--finding-column: needs --multilabel; got 'x'",
    ),
    "stability": (
        "stability p.csv --ratings r.csv --finding-column x",
        "--finding-column: needs --multilabel; got 'x'",
    ),
    "too few raters": (
        "stability p.csv --multilabel --ratings one.csv --metrics epistemic_loss --repeats 2",
        "edema: labels: ",
    ),
    "a finding of tables": (
        "compare p.csv other.csv --finding mass",
        "--finding: is for results, not tables; got 'mass'",
    ),
}


@pytest.mark.parametrize(("command", "message"), ERRORS.values(), ids=ERRORS)
def test_what_is_refused(folder: Path, command: str, message: str) -> None:
    """One line on stderr that names the option, the rule and the value."""
    header = ["case", *(f"label_{name}" for name in FINDINGS)]
    write(folder / "one.csv", header, ([f"n{i}", 0, 1, i % 2] for i in range(CASES)))
    result = run(command)
    assert result.exit_code == 2 and result.stdout == ""
    assert message in result.stderr and len(result.stderr.splitlines()) == 1


# Comparisons -------------------------------------------------------------------------------------


def evaluated(name: str, metrics: str = "brier,ece", resamples: int = 200) -> rw.Results:
    """Evaluate one model's table into a file, and return the results."""
    done(
        f"evaluate {name}.csv --multilabel --ratings r.csv --group-column patient --metrics "
        f"{metrics} --resamples {resamples} --out {name}.json -q"
    )
    return rw.Results.from_json(f"{name}.json")


def test_compare_means_and_findings(folder: Path) -> None:
    """Differences of the means and of each finding are those of `compare` on their results."""
    models = {name: evaluated(name) for name in ("p", "other")}
    told = done("compare p.json other.json --csv d.csv --out d.html --out d.json")
    lines = rows_of("d.csv")
    found = {(line["finding"], line["metric"]): line for line in lines}
    for name in FINDINGS:
        one = rw.compare({model: r.findings[name] for model, r in models.items()})
        d = one.difference("brier", "p", "other")
        assert float(found[name, "brier"]["difference"]) == pytest.approx(d.difference)
        assert float(found[name, "brier"]["p_value"]) == pytest.approx(d.p_value)
        line = next(row for row in told.splitlines() if row.startswith(name))
        shown = [f"{round(value, 3) + 0.0:.3f}" for value in (d.difference, d.low, d.high)]
        assert "{} [{}, {}]".format(*shown) in line
        error = one.difference("ece", "p", "other").debiased
        assert error is not None and f"{round(error, 3) + 0.0:.3f} [" in line
        written = content("d.json")["findings"][name]["differences"][0]
        assert (written["metric"], written["difference"]) == ("brier", d.difference)
    assert rw.Comparison.from_json("d.json").differences[0].metric == "brier"
    gaps = [float(found[name, "brier"]["difference"]) for name in FINDINGS]
    assert float(found["", "brier"]["difference"]) == pytest.approx(np.mean(gaps))
    page = (folder / "d.html").read_text(encoding="utf-8")
    assert "Do they differ in each finding?" in page and "No verdict on calibration" not in page
    # Of two models no column says again which they are: it would push others off the paper.
    section = page[page.index('id="findings"') :]
    assert "p minus other, calibration errors corrected" in section
    assert ">Models</th>" not in section[: section.index("</table>")]


def test_differences_by_finding_are_of_metrics_that_differ(folder: Path) -> None:
    """A model that is certain somewhere has no slope; nobody saw the first finding: no AUROC there.

    The page and the terminal choose the same columns, and none that holds nothing.
    """
    never = CHEST.positives.copy()
    never[:, 0] = 0
    certain = np.where(CHEST.probs > 0.5, 1.0, CHEST.probs)
    words = {"metrics": ["brier", "auroc", "calibration_slope"], "resamples": 20}
    a, b = (
        rw.evaluate_multilabel(z, never, CHEST.raters, names=FINDINGS, **words)
        for z in (CHEST.probs, certain)
    )
    assert b["calibration_slope"].value is None and a.findings["edema"]["auroc"].value is None
    a.to_json(folder / "a.json")
    b.to_json(folder / "b.json")
    told = done("compare a.json b.json --html d.html")
    heading = told[told.index("Differences by finding") :].splitlines()[1]
    assert heading.split() == ["finding", "auroc", "brier"]
    page = (folder / "d.html").read_text(encoding="utf-8")
    table = page[page.index('id="findings"') :].split("</table>")[0]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", table.split("</thead>")[0]) == [
        *("Finding", "AUROC", "Brier score"),
    ]


def test_compare_one_finding(folder: Path) -> None:
    """--finding compares that one alone, in files too; another name is refused with those known."""
    models = {name: evaluated(name) for name in ("p", "other")}
    done("compare p.json other.json --finding mass --csv d.csv -q")
    lines = rows_of("d.csv")
    one = rw.compare({model: r.findings["mass"] for model, r in models.items()})
    assert "finding" not in lines[0]
    assert [float(line["difference"]) for line in lines] == [d.difference for d in one.differences]
    result = run("compare p.json other.json --finding hernia")
    assert result.exit_code == 2
    assert "p has no 'hernia' (it has edema, mass, pleural effusion)" in result.stderr


def test_a_mark_means_more_than_chance_over_all_findings(folder: Path) -> None:
    """Holm's method over the findings: a difference that is clear alone may not be among three.

    The p-value of an error is at least 2 / 61 = 0.033 with 60 resamples, three times which is no
    longer clear.
    """
    for name in ("p", "other"):
        evaluated(name, "ece", 60)
    told = done("compare p.json other.json")
    assert "]*" not in told
    assert "60 resamples are too few for a * at an error; 119 are enough" in told
    for name in ("p", "other"):
        evaluated(name, "brier", 300)
    told = done("compare p.json other.json").split("Differences by finding")[1]
    models = [rw.Results.from_json(f"{name}.json") for name in ("p", "other")]
    each = [
        rw.compare({"p": models[0].findings[name], "other": models[1].findings[name]})
        for name in FINDINGS
    ]
    p = np.array([c.differences[0].p_value for c in each])
    order = np.argsort(p)
    adjusted = np.maximum.accumulate(p[order] * [3, 2, 1])
    for i, q in zip(order, adjusted, strict=True):
        line = next(row for row in told.splitlines() if row.startswith(FINDINGS[i]))
        assert ("]*" in line) == (q <= 0.05)
    assert (adjusted <= 0.05).any(), "the test shows something"


def test_models_with_other_findings_are_refused(folder: Path) -> None:
    """Findings under other names are not compared by their places."""
    evaluated("p", "brier")
    text = (folder / "p.json").read_text(encoding="utf-8").replace('"mass"', '"hernia"')
    (folder / "q.json").write_text(text, encoding="utf-8")
    result = run("compare p.json q.json")
    assert result.exit_code == 2 and "models: must have the same findings" in result.stderr


# Stability ---------------------------------------------------------------------------------------


def test_stability_of_findings(folder: Path) -> None:
    """Curves and variations are those of the library on each finding, and of their mean."""
    told = done(
        "stability p.csv --multilabel --ratings r.csv --group-column patient --metrics ece,auccc "
        "--fractions 0.3,1 --repeats 4 --seed 5 --out s.json --figure s.svg"
    )
    found = content("s.json")
    for metric, asked in (("ece", {"question": "positive"}), ("auccc", {})):
        curves, variations = [], []
        for i, name in enumerate(FINDINGS):
            how: dict[str, Any] = {"repeats": 4, "seed": 5, "groups": CHEST.patients, **asked}
            given = metric, CHEST.probs[:, i], CHEST.labels(i)
            curves.append(rw.stability.subsample_curve(*given, (0.3, 1), **how))
            variations.append(rw.stability.total_variation(*given, **how))
            every = found["findings"][name][metric][0]
            assert every["raters"] == "every rater" and every["unit"] == "patients"
            assert np.array(every["values"]) == pytest.approx(curves[-1].values)
            assert every["total_variation"]["mean"] == pytest.approx(variations[-1].mean)
            assert every["full"] == pytest.approx(expected(metric, i))
            line = next(row for row in told.splitlines() if row.startswith(name))
            assert f"{variations[-1].mean:.4f} ± {variations[-1].std:.4f}" in line
        mean = found["metrics"][metric][0]
        assert np.array(mean["values"]) == pytest.approx(np.mean([c.values for c in curves], 0))
        assert mean["full"] == pytest.approx(np.mean([c.full for c in curves]))

        def macro(place: Any, _: Any, metric: str = metric, asked: Any = asked) -> float:
            """Return the mean over the findings of cases that are given by their places."""
            rows = np.rint(np.asarray(place) * CASES).astype(int)
            function = getattr(rw, metric)
            return float(
                np.mean([
                    function(CHEST.probs[rows, i], labels[rows], **asked)
                    for i, labels in enumerate(CHEST.labels(i) for i in range(len(FINDINGS)))
                ])
            )  # fmt: skip

        whole = rw.stability.total_variation(
            macro,
            np.arange(CASES) / CASES,
            CHEST.labels(0),
            repeats=4,
            seed=5,
            groups=CHEST.patients,
        )
        told_of = mean["total_variation"]
        assert (told_of["mean"], told_of["std"]) == pytest.approx((whole.mean, whole.std))
        assert whole.mean < np.mean([v.mean for v in variations])
    assert [one.metric for one in read_stability(folder / "s.json")] == ["ece"] * 2 + ["auccc"] * 2
    assert "<text" in (folder / "s.svg").read_text(encoding="utf-8")


def test_findings_rated_on_other_cases_have_no_mean(folder: Path) -> None:
    """Draws differ where the cases do: each finding is shown, and why there is no mean."""
    lines = (folder / "r.csv").read_text(encoding="utf-8").splitlines()
    lines[1] = ",".join([*lines[1].split(",")[:5], "0", "0"])
    (folder / "cut.csv").write_text("\n".join(lines), encoding="utf-8")
    words = "stability p.csv --multilabel --ratings cut.csv --on-unrated drop --metrics brier"
    told = done(f"{words} --fractions 1 --repeats 2 --out s.json")
    assert "the mean of Brier score: not the same cases were rated for each finding" in told
    found = content("s.json")
    assert found["metrics"] == {} and list(found["findings"]) == list(FINDINGS)
    assert found["findings"]["pleural effusion"]["brier"][0]["sizes"] == [CASES - 1]
    assert "mean over the findings" not in told
    result = run(f"{words} --fractions 1 --repeats 2 --figure s.svg")
    assert result.exit_code == 2 and "--figure: draws the means" in result.stderr


# Reports -----------------------------------------------------------------------------------------

HOSTILE = '<script>alert("1")</script> & mass'


def hostile(probs: Any) -> rw.Results:
    """Return results with a finding whose name is markup."""
    names = [HOSTILE, "edema", "effusion"]
    return rw.evaluate_multilabel(
        probs, CHEST.positives, CHEST.raters, names, METRICS, CHEST.patients, 60
    )


def test_a_report_of_findings() -> None:
    """A verdict, a table with each finding's values, a diagram to choose; no name is markup."""
    results = hostile(CHEST.probs)
    page = report_html(results)
    assert "<script>alert" not in page and "&lt;script&gt;alert(&quot;1&quot;)" in page
    judged = [found.data["verdict"]["miscalibrated"] for found in results.findings.values()]
    assert judged[0] and f"{sum(judged)} of 3 findings" in page
    assert 'id="findings"' in page and "Key figures, means over the findings" in page
    table = page[page.index('id="findings"') :].split("</section>")[0]
    for i, name in enumerate(("&lt;script", "edema", "effusion")):
        row = table[table.index(f'<th scope="row">{name}') :].split("</tr>")[0]
        for metric in METRICS.split(","):
            assert f"<strong>{expected(metric, i):.3f}</strong>" in row, (name, metric)
        e = list(results.findings.values())[i]["brier"]
        assert f"[{e.low:.3f}, {e.high:.3f}]" in row
    assert '<option value="edema">edema</option>' in page
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    drawn = json.dumps(data["charts"]["reliability-chart"])
    assert all(json.dumps(name)[1:-1] in drawn for name in results.findings)


def test_the_verdict_follows_the_findings() -> None:
    """Probabilities far too high are called so, each by its name; right ones are not."""
    far = np.clip(CHEST.truth + np.array([0.5, 0, 0]), 0, 1)
    page = report_html(hostile(far))
    assert "1 of 3 findings is miscalibrated" in page and 'class="panel bad"' in page
    first = re.search(r"<li><strong>&lt;script&gt;alert.*?: (.*?)\. </strong>", page)
    assert first is not None and first[1] == "said too often", "the name stands before it"
    for name in ("edema", "effusion"):
        assert re.search(rf"<li><strong>{name}: (too little data|no miscalibration)", page)


def test_a_comparison_of_hostile_names() -> None:
    """The page of a comparison has the findings' differences, and no name is markup."""
    models = {"a": hostile(CHEST.probs), "b": hostile(CHEST.truth)}
    found = rw.compare(models)
    each = {
        name: rw.compare({m: r.findings[name] for m, r in models.items()})
        for name in models["a"].findings
    }
    page = comparison_html(found, findings=each)
    assert "<script>alert" not in page and "&lt;script&gt;alert(&quot;1&quot;)" in page
    d = each["edema"].difference("brier", "a", "b")
    row = page[page.index('<th scope="row">edema') :].split("</tr>")[0]
    assert f"{abs(d.difference):.3f}" in row


def test_the_report_on_the_command_line(folder: Path) -> None:
    """Results, stability and a second file make one page, with the facts of findings."""
    evaluated("p", METRICS, 50)
    evaluated("other", METRICS, 50)
    done("stability p.csv --multilabel --ratings r.csv --repeats 2 --metrics ece --out s.json -q")
    done("report p.json -o r.html --stability s.json --after other.json")
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "120 cases of 60 patients, 3 findings" in page
    named = ", ".join(f"<bdi>{name}</bdi>" for name in ("edema", "mass", "pleural effusion"))
    assert f"Findings: {named}" in page
    assert 'id="stability"' in page and "2 classes" not in page
    assert "Values are means over the findings." in page
    assert 'id="recalibration"' in page and "No verdict on calibration" not in page


def test_the_ids_of_a_second_file_are_not_looked_for_in_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With probabilities and answers in one file, --ratings-id-column names nothing in it."""
    monkeypatch.chdir(tmp_path)
    rows = "case,prob_mass,label_mass\nx,0.25,0\ny,0.5,1\n"
    (tmp_path / "one.csv").write_text(rows)
    done(
        "evaluate one.csv --multilabel --id-column case --ratings-id-column scan "
        "--metrics brier --resamples 0 -q --out r.json"
    )
    found = json.loads((tmp_path / "r.json").read_text())["metrics"]["brier"]["value"]
    assert found == pytest.approx((0.25**2 + 0.5**2) / 2)

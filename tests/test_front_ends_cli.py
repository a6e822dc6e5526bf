"""What every command takes: units, questions, options and findings, from files as from memory."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.cli import app
from raterwise.labels import Labels

CASES = 80


def run(command: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(app, command.split())


def write(path: Path, header: list[str], rows: Any) -> None:
    """Write a table."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def told(seed: int = 0) -> tuple[Any, Any]:
    """Return probabilities of a positive class, and what three readers said."""
    random = np.random.default_rng(seed)
    probs = np.round(random.beta(1, 1, CASES), 4)
    return probs, (random.random((CASES, 3)) < probs[:, None] ** 1.5).astype(int)


def findings(seed: int = 1) -> tuple[Any, Any]:
    """Return probabilities of two findings, and what three readers said of each."""
    random = np.random.default_rng(seed)
    probs = np.round(random.beta(1, 1, (CASES, 2)), 4)
    return probs, (random.random((CASES, 2, 3)) < probs[..., None]).astype(int)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, the current one, with tables of one finding and of two."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("fit", 0), ("apply", 1)):
        probs, said = told(seed)
        rows = (
            [f"{name}{i}", p, *map(int, r)]
            for i, (p, r) in enumerate(zip(probs, said, strict=True))
        )
        write(
            tmp_path / f"{name}.csv", ["case", "prob_1", "reader_a", "reader_b", "reader_c"], rows
        )
    probs, said = findings()
    columns = [f"reader_{r}_{f}" for f in ("mass", "edema") for r in range(3)]
    write(tmp_path / "said.csv", ["case", *columns],
          ([f"c{i}", *map(int, row)] for i, row in enumerate(said.reshape(CASES, -1))))  # fmt: skip
    names = ["case", "prob_mass", "prob_edema"]
    write(tmp_path / "one.csv", names, ([f"c{i}", *row] for i, row in enumerate(probs)))
    turned = [[f"c{i}", *(1 - row).round(4)] for i, row in enumerate(probs)][::-1]
    write(tmp_path / "two.csv", names, turned)
    return tmp_path


def test_calibrate_asks_what_compare_asks(folder: Path) -> None:
    """--question, --per, --option and --unit reach the comparison of before and after."""
    command = "calibrate --fit fit.csv --apply apply.csv --prob-columns prob_1 --out out -q "
    command += "--rater-prefix reader_ "
    command += "--metrics ece,robust_ece --question positive --per case --resamples 30 "
    done = run(command + "--option robust_ece.sigma=0.05 --unit both")
    assert done.exit_code == 0, done.output
    found = json.loads((folder / "out/before_after.json").read_text())["before"]["metrics"]
    probs, said = told(1)
    expected = rw.evaluate(
        probs, Labels.from_ratings(said, num_classes=2), "ece,robust_ece", resamples=30,
        question="positive", per="case", options={"robust_ece": {"sigma": 0.05}}, unit="both",
    )  # fmt: skip
    plain = rw.evaluate(probs, Labels.from_ratings(said, num_classes=2), "ece", resamples=30)
    assert plain["ece"].value != pytest.approx(expected["ece"].value)
    for name, e in expected.items():
        ends = [found[name][key] for key in ("value", "low", "high")]
        assert ends == pytest.approx([e.value, e.low, e.high], rel=1e-9)


def test_compare_takes_tables_of_findings(folder: Path) -> None:
    """Two models' findings, in other orders: the differences of the results in memory."""
    command = "compare one.csv two.csv --ratings said.csv --multilabel --metrics brier,ece "
    done = run(command + "--resamples 40 --unit both --out c.json --csv c.csv")
    assert done.exit_code == 0, done.output
    assert "Differences by finding" in done.output
    probs, said = findings()
    asked: dict[str, Any] = {"metrics": "brier,ece", "resamples": 40, "unit": "both"}
    models = {
        name: rw.evaluate_multilabel(p, ratings=said, names=("mass", "edema"), **asked)
        for name, p in (("one", probs), ("two", (1 - probs).round(4)))
    }
    expected = rw.compare(models)
    saved = json.loads((folder / "c.json").read_text())
    for mine, d in zip(saved["differences"], expected.differences, strict=True):
        assert mine["metric"] == d.metric
        assert [mine["low"], mine["high"]] == pytest.approx([d.low, d.high], rel=1e-6)
    assert list(saved["findings"]) == ["mass", "edema"]
    write(folder / "less.csv", ["case", "prob_mass"], [["c0", 0.5]])
    assert (
        "must have the findings of one.csv"
        in run("compare one.csv less.csv --ratings said.csv --multilabel --allow-unmatched").stderr
    )
    write(folder / "few.csv", ["case", "prob_mass", "prob_edema"], [["c3", 0.5, 0.5]])
    short = run("compare one.csv few.csv --ratings said.csv --multilabel --allow-unmatched")
    assert short.exit_code == 2 and "lacks case 'c0'" in short.stderr
    assert "--multilabel: is for tables" in run("compare a.json b.json --multilabel").stderr


def test_plan_takes_findings(folder: Path) -> None:
    """Every finding is planned as alone; of each design the widest interval is shown."""
    command = "plan brier one.csv --ratings said.csv --multilabel --cases 60,100 --raters 1,2"
    done = run(command + " --out p.json --budget 120")
    assert done.exit_code == 0, done.output
    assert "Width by finding" in done.output and "narrowest within the budget" in done.output
    assert "This pilot cannot tell" in done.output  # which of the two is better: it is no best one
    saved = json.loads((folder / "p.json").read_text())
    probs, said = findings()
    widths = []
    for i, name in enumerate(("mass", "edema")):
        counts = np.stack(((said[:, i] == 0).sum(axis=1), (said[:, i] == 1).sum(axis=1)), axis=1)
        labels = Labels.from_counts(counts)
        alone = rw.planning.plan("brier", probs[:, i], labels, cases=(60, 100), raters=(1, 2))
        widths.append([design.width for design in alone.designs])
        assert [d["width"] for d in saved["findings"][name]] == pytest.approx(widths[-1])
    assert [d["width"] for d in saved["designs"]] == pytest.approx(np.max(widths, axis=0))


def test_plan_of_findings_counts_weights(folder: Path) -> None:
    """A column of weights changes the widths of each finding to those of its own plan with them."""
    probs, said = findings()
    weights = np.where(np.arange(CASES) % 2, 5, 1)
    rows = ([f"c{i}", w, *row] for i, (w, row) in enumerate(zip(weights, probs, strict=True)))
    write(folder / "w.csv", ["case", "w", "prob_mass", "prob_edema"], rows)
    command = "plan brier w.csv --ratings said.csv --multilabel --cases 50 --raters 2 --out p.json"
    done = run(command + " --weight-column w")
    assert done.exit_code == 0, done.output
    saved = json.loads((folder / "p.json").read_text())["findings"]
    for i, name in enumerate(("mass", "edema")):
        counts = np.stack(((said[:, i] == 0).sum(axis=1), (said[:, i] == 1).sum(axis=1)), axis=1)
        labels = Labels.from_counts(counts)
        asked: dict[str, Any] = {"cases": (50,), "raters": (2,)}
        alike = rw.planning.plan("brier", probs[:, i], labels, **asked)
        own = rw.planning.plan("brier", probs[:, i], labels, weights=weights, **asked)
        assert saved[name][0]["width"] == pytest.approx(own.designs[0].width)
        assert own.designs[0].width != pytest.approx(alike.designs[0].width, rel=0.01)


def test_one_patient_is_one_patient(folder: Path) -> None:
    """Not 1 patients."""
    rows = [["c1", "p1", 0.8, 1], ["c2", "p1", 0.3, 0]]
    write(folder / "p.csv", ["case", "patient", "prob_1", "truth"], rows)
    command = "evaluate p.csv --prob-columns prob_1 --label-column truth --group-column patient "
    done = run(command + "--metrics brier --resamples 0")
    assert "2 cases of 1 patient, 2 classes" in done.output


def test_a_question_that_is_none_names_those_of_the_metric() -> None:
    """The error of a function has no question that the function does not ask."""
    asked = "top_label, positive, per_class, predicted_class; got None"
    with pytest.raises(rw.InvalidInputError, match=f"question: must be one of {asked}"):
        rw.ece([0.2, 0.8], [0, 1], question=None)  # type: ignore[arg-type]


COLUMNS = [
    "case",
    "site",
    "sure",
    "prob_0",
    "prob_1",
    "logit_0",
    "logit_1",
    "feat_x",
    "reader_a",
    "reader_b",
]
MADE = {
    "confidence": "evaluate p.csv --metrics auccc --confidence-column sure --outside o.csv",
    "outside": "evaluate p.csv --metrics auccc --outside o.csv",
    "outside columns": (
        "evaluate p.csv --metrics auccc --outside o.csv --prob-columns prob_0,prob_1"
    ),
    "levels": "evaluate p.csv --metrics brier --subgroup-column site",
    "draws": "evaluate --member p.csv --member o.csv --metrics brier",
    "findings": "evaluate f.csv --metrics brier --multilabel --subgroup-column site",
    "models": "compare p.csv o.csv --ratings r.csv --metrics auccc --confidence-column sure",
    "raters": "agreement r.csv --group-column site",
}
FITTED = {
    "logits": "--fit p.csv --apply o.csv --allow-overlap --input logits",
    "features": "--fit p.csv --apply o.csv --allow-overlap --alpha --features-prefix feat_",
    "features of draws": (
        "--fit-member p.csv --fit-member o.csv --apply-member o.csv --apply-member p.csv "
        "--allow-overlap --alpha --method none --features-prefix feat_"
    ),
}


def tables_of_cases() -> dict[str, str]:
    """Return tables that name cases and a site with letters beyond ASCII."""
    random = np.random.default_rng(3)
    tables = {}
    for name in ("p", "o"):
        z = random.normal(size=CASES).round(3)
        p = (1 / (1 + np.exp(-z))).round(4)
        said = np.where(random.random((2, CASES)) < p, 1, 0)
        sites, sure = np.where(np.arange(CASES) % 3, "Köln", "Bonn"), random.random(CASES).round(4)
        columns = (sites, sure, (1 - p).round(4), p, 0 * z, z, (z**2).round(4), *said)
        rows = [
            f"fäll{i},{','.join(map(str, row))}" for i, row in enumerate(zip(*columns, strict=True))
        ]
        tables[name] = "\n".join([",".join(COLUMNS), *rows])
    tables["f"] = tables["p"].replace("prob_1", "prob_mass")
    tables["f"] = tables["f"].replace("prob_0", "other").replace("r_a,", "r_a_mass,")
    tables["f"] = tables["f"].replace("reader_b", "reader_b_mass")
    said = random.integers(0, 2, (CASES, 3))
    rows = [f"fäll{i},Köln{i % 9},{a},{b},{c}" for i, (a, b, c) in enumerate(said)]
    tables["r"] = "\n".join(["case,site,reader_a,reader_b,reader_c", *rows])
    return tables


@pytest.mark.parametrize("command", [*MADE, *FITTED])
def test_every_reader_is_told_the_delimiter_and_the_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Bytes of Windows and a delimiter that nobody would guess change no number."""
    made = []
    for how in ("", " --delimiter ~ --encoding cp1252"):
        folder = tmp_path / (how and "told")
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        for name, text in tables_of_cases().items():
            own = text.replace(",", "~").encode("cp1252") if how else text.encode()
            (folder / f"{name}.csv").write_bytes(own)
        if command in MADE:
            result = run(f"{MADE[command]} --resamples 20 --out out.json{how}")
            out = folder / "out.json"
        else:
            result = run(f"calibrate {FITTED[command]} --out fitted{how}")
            kind = "calibrator.json" if command == "logits" else "alpha.json"
            out = folder / "fitted" / kind
        assert result.exit_code == 0, result.output
        found = json.loads(out.read_text(encoding="utf-8"))
        told = ("provenance", "created", "inputs", "command", "files")
        made.append({key: value for key, value in found.items() if key not in told})
    assert made[0] == made[1]


def test_a_draw_need_not_repeat_patients_and_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first table has them. By hand, of the mean draws: (0.26 + 2 · 0.09 + 0.09) / 4."""
    monkeypatch.chdir(tmp_path)
    table = "case,patient,weight,prob_1,reader_a,reader_b\n"
    table += "n1,x,1,0.5,1,0\nn2,x,2,0.4,0,0\nn3,y,1,0.8,1,1\n"
    Path("p.csv").write_text(table, encoding="utf-8")
    Path("q.csv").write_text("case,prob_1\nn3,0.6\nn1,0.7\nn2,0.2\n", encoding="utf-8")
    done = run(
        "evaluate --member p.csv --member q.csv --group-column patient --weight-column weight "
        "--metrics brier --resamples 0 --out o.json"
    )
    assert done.exit_code == 0, done.output
    found = json.loads(Path("o.json").read_text(encoding="utf-8"))
    assert found["metrics"]["brier"]["value"] == pytest.approx(0.1325)
    assert found["data"]["patients"] == 2
    alone = rw.read_cases("p.csv", group_column="patient", weight_column="weight")
    assert alone.notes == ()  # what is read beside the ratings is not said to be unused


def test_logits_are_joined_and_marked_as_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids written otherwise, marks for none, labels in capitals: as of probabilities."""
    monkeypatch.chdir(tmp_path)
    logits = "image,logit_no,logit_yes,said\n1.png,0,1,YES\n2.png,0,-1,no\n3.png,0,2,n/a\n"
    Path("g.csv").write_text(logits + "4.png,0,-2,Yes\n", encoding="utf-8")
    said = "scan,reader,label\n01,A,yes\n01,B,no\n02,A,n/a\n02,B,no\n03,A,yes\n04,A,NO\n"
    Path("r.csv").write_text(said, encoding="utf-8")
    words = "calibrate --fit g.csv --apply g.csv --allow-overlap --input logits --id-column image "
    words += "--missing n/a --ignore-case --on-unrated drop "
    done = run(words + "--fit-ratings r.csv --ratings-id-column scan --loose-ids --out one")
    assert "Fitted on g.csv: 4 cases, 2 classes, 5 ratings" in done.output
    done = run(words + "--label-column said --out two")
    assert "Fitted on g.csv: 4 cases, 2 classes, 3 ratings" in done.output


def test_a_stream_is_told_what_means_no_rating(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the last case "n/a" is said: the Brier score is (0.04 + 0.09 + 0.25) / 3."""
    monkeypatch.chdir(tmp_path)
    columns = {"prob_no": [0.2, 0.7, 0.5, 0.9], "prob_yes": [0.8, 0.3, 0.5, 0.1]}
    said = {**columns, "said": ["yes", "no", "no", "n/a"]}
    pq.write_table(pa.table(said), "s.parquet")
    words = "evaluate s.parquet --stream --label-column said --metrics brier --resamples 0 -q "
    done = run(words + "--missing n/a --on-unrated drop --out o.json")
    assert done.exit_code == 0, done.output
    found = json.loads(Path("o.json").read_text(encoding="utf-8"))
    assert found["metrics"]["brier"]["value"] == pytest.approx(0.38 / 3)
    assert found["data"]["dropped"] == {"unrated": 1}

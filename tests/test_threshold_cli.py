"""--threshold says in every command what threshold= says in Python."""

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

random = np.random.default_rng(5)
PROBS = np.round(random.beta(1, 1, (64, 2)), 4)
SAID = (random.random((64, 2, 3)) < PROBS[..., None] ** 1.5).astype(np.int64)
FINDINGS = ("mass", "edema")


def sensitivity(column: int, threshold: float) -> float:
    """Return what the library says of one of the two columns."""
    labels = Labels.from_ratings(SAID[:, column], num_classes=2)
    return float(rw.sensitivity(PROBS[:, column], labels, threshold=threshold))


def run(command: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(app, command.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, the current one, with the cases as a table, findings, a stream, an image."""
    monkeypatch.chdir(tmp_path)
    raters = [f"reader_{r}" for r in "abc"]
    for name, case, probs in (("one", "a", PROBS), ("two", "a", 1 - PROBS), ("fit", "b", PROBS)):
        rows = [[f"{case}{i}", probs[i, 0], *SAID[i, 0]] for i in range(64)]
        write(f"{name}.csv", ["case", "prob_1", *raters], rows)
    said = {name: SAID[:, 0, r] for r, name in enumerate(raters)}
    pq.write_table(pa.table({"prob_1": PROBS[:, 0], **said}), "one.parquet")
    columns = [f"{r}_{f}" for f in FINDINGS for r in raters]
    for name, probs in (("chest", PROBS), ("chest_two", 1 - PROBS)):
        rows = [[*probs[i], *SAID[i].ravel()] for i in range(64)]
        write(f"{name}.csv", [*(f"prob_{f}" for f in FINDINGS), *columns], rows)
    np.save("image.npy", PROBS[:, 0].reshape(8, 8))
    for r in range(3):
        np.save(f"mask_{r}.npy", SAID[:, 0, r].reshape(8, 8).astype(np.uint8))
    Path("m.csv").write_text("case,probabilities,raters\nc1,image.npy,mask_*.npy\n")
    return tmp_path


def write(name: str, header: list[str], rows: Any) -> None:
    """Write a table."""
    with open(name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


CLASSES = "--prob-columns prob_1 --rater-prefix reader_"
METRIC = "--metrics sensitivity"
COMMANDS = {
    "evaluate": f"evaluate one.csv {CLASSES} {METRIC} --resamples 0",
    "stream": f"evaluate one.parquet --stream {CLASSES} {METRIC} --resamples 0",
    "findings": f"evaluate chest.csv --multilabel {METRIC} --resamples 0",
    "compare": f"compare one.csv two.csv {CLASSES} {METRIC} --resamples 20",
    "compare findings": f"compare chest.csv chest_two.csv --multilabel {METRIC} --resamples 20",
    "segment": f"segment m.csv {METRIC} --resamples 0",
    "stability": f"stability one.csv {CLASSES} {METRIC} --repeats 2 --fractions 0.5,1",
    "stability of findings": f"stability chest.csv --multilabel {METRIC} --repeats 2 "
    "--fractions 0.5,1",
    "calibrate": f"calibrate --fit fit.csv --apply one.csv {CLASSES} {METRIC} --resamples 20",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_threshold_gives_the_sensitivity_at_it(folder: Path, name: str) -> None:
    """The number that the function gives at 0.3, which is not that at 0.5."""
    out = "folder" if name == "calibrate" else "out.json"
    done = run(f"{COMMANDS[name]} --threshold 0.3 -q --out {out}")
    assert done.exit_code == 0, done.output
    saved = json.loads(Path("folder/before_after.json" if name == "calibrate" else out).read_text())
    match name.split()[0]:
        case "compare":
            found = next(iter(saved["models"].values()))["metrics"]["sensitivity"]["value"]
        case "calibrate":
            found = saved["before"]["metrics"]["sensitivity"]["value"]
        case "stability":
            found = saved["metrics"]["sensitivity"][0]["full"]
        case _:
            found = saved["metrics"]["sensitivity"]["value"]
    columns = (0, 1) if "findings" in name else (0,)
    expected = [np.mean([sensitivity(c, threshold) for c in columns]) for threshold in (0.3, 0.5)]
    assert found == pytest.approx(expected[0], rel=1e-12)
    assert abs(expected[0] - expected[1]) > 0.05


@pytest.mark.parametrize(
    "told", ["--threshold 0.3", "--option clinical.threshold=0.3",
             "--threshold 0.7 --option sensitivity.threshold=0.3"]
)  # fmt: skip
def test_a_plan_is_of_the_sensitivity_at_it(folder: Path, told: str) -> None:
    """The designs that the function plans at 0.3, however it is told; a metric's own goes first."""
    asked = "--cases 40,80 --raters 1,2 --repeats 3 --resamples 20"
    done = run(f"plan sensitivity one.csv {CLASSES} {asked} -q --out p.json {told}")
    assert done.exit_code == 0, done.output
    widths = [
        [design.width for design in rw.planning.plan(
            "sensitivity", PROBS[:, 0], Labels.from_ratings(SAID[:, 0], num_classes=2),
            cases=(40, 80), raters=(1, 2), repeats=3, resamples=20, options=options,
        ).designs]
        for options in ({"threshold": 0.3}, None)
    ]  # fmt: skip
    found = [design["width"] for design in json.loads(Path("p.json").read_text())["designs"]]
    assert found == pytest.approx(widths[0]) and found != pytest.approx(widths[1])


@pytest.mark.parametrize("name", [*COMMANDS, "plan"])
def test_a_threshold_that_no_metric_takes_is_refused(folder: Path, name: str) -> None:
    """Before any file is read, with the metrics that take one."""
    plan = f"plan brier one.csv {CLASSES}"
    command = COMMANDS.get(name, plan).replace(METRIC, "--metrics brier")
    out = " --out folder" if name == "calibrate" else ""
    done = run(f"{command} --threshold 0.3{out}")
    assert done.exit_code == 2
    assert "--threshold: none of these metrics can use 0.3" in done.stderr
    assert "sensitivity" in done.stderr


def test_results_know_their_threshold(folder: Path) -> None:
    """Another one than the results were made with is refused, not left unread."""
    for name in ("one", "two"):
        made = f"evaluate {name}.csv {CLASSES} {METRIC} --resamples 20 --threshold 0.3 -q"
        assert run(f"{made} --out {name}.json").exit_code == 0
    command = f"compare one.json two.json {METRIC} -q --resamples 20 --threshold"
    assert run(f"{command} 0.3").exit_code == 0
    refused = run(f"{command} 0.4")
    assert refused.exit_code == 2
    assert "--threshold: the results were made with 0.3, which cannot be changed" in refused.stderr

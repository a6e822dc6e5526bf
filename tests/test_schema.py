"""The published JSON schema holds of every file that the front ends write, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app
from raterwise.inference.paired import Difference
from raterwise.results import SCHEMA_VERSION, Estimate, LevelDifference, Subgroup

SCHEMA = json.loads(
    (Path(rw.__file__).parent / "raterwise.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.dirichlet(np.ones(3), 60)
LABELS = rw.Labels.from_counts(np.stack([RANDOM.multinomial(3, row) for row in TRUTH]))
PROBS = TRUTH**2 / (TRUTH**2).sum(axis=1, keepdims=True)
PATIENTS = [f"p{i // 2}" for i in range(60)]


def in_memory(folder: Path, metrics: str = "all") -> dict[str, Any]:
    """Patients, sub-groups and all metrics, one of which is undefined."""
    results = rw.evaluate(
        PROBS, LABELS, metrics, groups=PATIENTS, resamples=20,
        class_names=("a", "b", "c"), subgroups={"scanner": ["A", "B"] * 30},
    )  # fmt: skip
    results.to_json(folder / "results.json")
    return read(folder / "results.json")


def one_rater(folder: Path) -> dict[str, Any]:
    """Metrics of pairs of raters are undefined; no intervals."""
    results = rw.evaluate(PROBS, LABELS.majority(), "ece,epistemic_loss,nll", resamples=0)
    assert results["epistemic_loss"].value is None
    results.to_json(folder / "results.json")
    return read(folder / "results.json")


def stream(folder: Path) -> dict[str, Any]:
    """The command line on a table in parts."""
    table = folder / "cases.parquet"
    columns = {f"prob_{k}": PROBS[:, k] for k in range(3)}
    columns |= {f"count_{k}": LABELS.counts[:, k] for k in range(3)}
    pq.write_table(pa.table({"case": [f"c{i}" for i in range(60)], **columns}), table)
    options = ("--stream", "--count-columns", "count_0,count_1,count_2", "--resamples", "20")
    return command(folder, "evaluate", str(table), *options)


def images(folder: Path) -> dict[str, Any]:
    """Three small images, four raters, values per image."""
    cases = []
    for _ in range(3):
        p = RANDOM.random((8, 8))
        masks = (RANDOM.random((4, 8, 8)) < p).astype(int)
        cases.append(rw.segmentation.Case(np.stack([1 - p, p]), masks))
    rw.segmentation.evaluate(cases, "classwise_ece,brier", resamples=20).to_json(folder / "r.json")
    return read(folder / "r.json")


def findings(folder: Path) -> dict[str, Any]:
    """Two findings that may occur together."""
    probs = RANDOM.random((40, 2))
    positives = RANDOM.binomial(2, probs)
    lines = ["case,prob_edema,prob_mass,positives_edema,raters_edema,positives_mass,raters_mass"]
    lines += [f"{i},{p[0]},{p[1]},{n[0]},2,{n[1]},2" for i, (p, n) in
              enumerate(zip(probs, positives, strict=True))]  # fmt: skip
    (folder / "chest.csv").write_text("\n".join(lines) + "\n")
    options = ("--multilabel", "--metrics", "ece,brier,auroc", "--resamples", "20")
    return command(folder, "evaluate", str(folder / "chest.csv"), *options)


def comparison(folder: Path) -> dict[str, Any]:
    """Two models, with a calibration error among the metrics."""
    found = rw.compare({"sharp": PROBS, "true": TRUTH}, LABELS, "ece,brier", resamples=40)
    found.to_json(folder / "comparison.json", replicates=True)
    return read(folder / "comparison.json")


def recalibration(folder: Path) -> dict[str, Any]:
    """before_after.json of the command line."""
    head = "case,prob_a,prob_b,prob_c,truth"
    for name, rows in {"fit": range(40), "apply": range(40, 60)}.items():
        lines = [f"{i},{PROBS[i, 0]},{PROBS[i, 1]},{PROBS[i, 2]},{LABELS.majority()[i]}"
                 for i in rows]  # fmt: skip
        (folder / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n")
    asked = ["calibrate", "--fit", "fit.csv", "--apply", "apply.csv", "--label-column", "truth"]
    files = [str(folder / a) if a.endswith(".csv") else a for a in asked]
    out = folder / "calibrated"
    done = CliRunner().invoke(app, [*files, "--resamples", "20", "--quiet", "--out", str(out)])
    assert done.exit_code == 0, done.output
    return read(out / "before_after.json")


def command(folder: Path, *words: str) -> dict[str, Any]:
    """Run a command quietly and return what --out wrote."""
    out = folder / "out.json"
    done = CliRunner().invoke(app, [*words, "--quiet", "--out", str(out)])
    assert done.exit_code == 0, done.output
    return read(out)


def read(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


FRONT_ENDS = (in_memory, one_rater, stream, images, findings, comparison, recalibration)


def test_the_schema_is_one() -> None:
    """It is a valid schema of the version that is written."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["results"]["properties"]["schema_version"] == {"const": SCHEMA_VERSION}


@pytest.mark.parametrize("make", FRONT_ENDS, ids=lambda make: make.__name__)
def test_what_is_written_fits(make: Callable[[Path], dict[str, Any]], tmp_path: Path) -> None:
    """The files of memory, streams, images, findings, comparisons and recalibrations."""
    found = [
        f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(make(tmp_path))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (Estimate, "estimate"),
        (Subgroup, "subgroup"),
        (LevelDifference, "level_difference"),
        (Difference, "difference"),
    ],
)
def test_the_schema_names_every_field(made: type[Any], name: str) -> None:
    """No field is written that the schema does not describe, and none is described in vain."""
    assert {field.name for field in fields(made)} == SCHEMA["$defs"][name]["properties"].keys()


def test_the_schema_describes_every_part(tmp_path: Path) -> None:
    """The parts of the results at the top are those of the schema."""
    written = in_memory(tmp_path).keys() | images(tmp_path).keys() | findings(tmp_path).keys()
    assert written == SCHEMA["$defs"]["results"]["properties"].keys()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 2),
        (("metrics", "ece", "value"), "0.1"),
        (("metrics", "ece", "direction"), "sideways"),
        (("data", "cases"), -1),
        (("options", "unit"), "patients"),
        (("provenance", "date"), "yesterday"),
        (("subgroups", 0, "differences", "ece", "p_value"), 1.5),
        (("warnings",), "one sentence"),
    ],
)
def test_what_is_damaged_does_not_fit(path: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    """A version, a type, a word or a count that cannot be is found."""
    content = in_memory(tmp_path, "ece,brier")
    assert VALIDATOR.is_valid(content)
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not VALIDATOR.is_valid(content)

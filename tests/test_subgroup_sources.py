"""Sub-groups of streams, merged summaries and images: those of the same cases in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app
from raterwise.segmentation import Case
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import Facts

METRICS = "brier,ece,accuracy"
runner = CliRunner()


def cases(patients: int = 150, per_patient: int = 4, mixed: bool = False) -> dict[str, Any]:
    """Return patients of two scanners and a few of neither; the model is off on scanner B."""
    random = np.random.default_rng(0)
    patient = np.repeat(np.arange(patients), per_patient)
    scanner = np.array(["A", "B", None], object)[random.choice(3, patients, p=[0.5, 0.4, 0.1])]
    scanner = scanner[random.integers(0, patients, len(patient))] if mixed else scanner[patient]
    logit = 1.5 * random.normal(size=len(patient))
    y = (random.random(len(patient)) < 1 / (1 + np.exp(-logit))).astype(int)
    p = 1 / (1 + np.exp(-logit - 1.5 * (scanner == "B")))
    return {"p": p, "y": y, "patient": patient, "scanner": scanner}


def in_memory(held: dict[str, Any], **options: Any) -> rw.Results:
    """Evaluate the cases as arrays."""
    return rw.evaluate(
        held["p"], held["y"], METRICS, held["patient"], resamples=200, class_names=["0", "1"],
        subgroups={"scanner": held["scanner"]}, **options,
    )  # fmt: skip


def written(held: dict[str, Any], path: Path) -> Path:
    """Write the cases as Parquet of several row groups."""
    table = {"prob_1": held["p"], "y": held["y"], "patient": held["patient"].astype(str)}
    pq.write_table(
        pa.table({**table, "scanner": pa.array(held["scanner"].tolist())}), path, row_group_size=170
    )
    return path


def streamed(path: Path, **options: Any) -> rw.Results:
    """Evaluate them as a stream."""
    return rw.evaluate_stream(
        path, METRICS, 200, label_column="y", group_column="patient", subgroups="scanner", **options
    )


def compare(found: rw.Results, expected: rw.Results, within: float) -> None:
    """Assert that two results have the same sub-groups, but for how patients are drawn."""
    assert [s.level for s in found.subgroups] == [s.level for s in expected.subgroups]
    for one, other in zip(found.subgroups, expected.subgroups, strict=True):
        assert (one.variable, one.cases, one.patients) == (
            other.variable,
            other.cases,
            other.patients,
        )
        for name, estimate in other.estimates.items():
            mine = one.estimates[name]
            assert mine.value == pytest.approx(estimate.value, abs=1e-12)
            assert (mine.low, mine.high) == pytest.approx((estimate.low, estimate.high), abs=0.03)
        for name, d in other.differences.items():
            mine_too = one.differences[name]
            assert mine_too.difference == pytest.approx(d.difference, abs=0.01)
            assert mine_too.adjusted_p_value == pytest.approx(d.adjusted_p_value, abs=within)
    assert found.data["comparisons"] == expected.data["comparisons"]
    assert found.options["subgroup_metrics"] == expected.options["subgroup_metrics"]


@pytest.mark.parametrize("mixed", [False, True])
def test_a_stream_has_the_sub_groups_of_memory(mixed: bool, tmp_path: Path) -> None:
    """Levels are found part by part; patients who have several levels trade within themselves.

    In memory their cases do, in a stream all that they have of a level at once: other permutations,
    and so other adjusted p-values.
    """
    held = cases(mixed=mixed)
    found = streamed(written(held, tmp_path / "c.parquet"))
    compare(found, in_memory(held), 1.0 if mixed else 0.1)
    assert [s.level for s in found.subgroups] == ["A", "B", "(missing)"]
    off = found.subgroup("scanner", "B")
    assert off.differences["ece"].difference > 0.05
    assert off.differences["ece"].adjusted_p_value < 0.05


def test_a_stream_draws_the_raters_of_each_level(tmp_path: Path) -> None:
    """Three readers of whom one leans at scanner B: its levels have the intervals of memory."""
    held = cases(60)
    random = np.random.default_rng(5)
    shift = np.array([0, 0.3, -0.3]) * np.where(held["scanner"] == "B", 1.0, 0.2)[:, None]
    said = (random.random(shift.shape) < np.clip(held["p"][:, None] + shift, 0, 1)).astype(int)
    table = pa.table({f"reader_{j}": said[:, j] for j in range(3)})
    table = table.append_column("prob_1", pa.array(held["p"]))
    table = table.append_column("scanner", pa.array(held["scanner"].tolist()))
    pq.write_table(table, tmp_path / "r.parquet", row_group_size=70)
    asked: dict[str, Any] = {"metrics": "brier,ece", "unit": "raters", "resamples": 50}
    found = rw.evaluate_stream(
        tmp_path / "r.parquet", rater_columns=[f"reader_{j}" for j in range(3)],
        subgroups="scanner", **asked,
    )  # fmt: skip
    labels = rw.Labels.from_ratings(said, num_classes=2)
    expected = rw.evaluate(held["p"], labels, subgroups={"scanner": held["scanner"]}, **asked)
    widths = {}
    for one, other in zip(found.subgroups, expected.subgroups, strict=True):
        for name, e in other.estimates.items():
            mine = one.estimates[name]
            ends = mine.value, mine.low, mine.high
            assert ends == pytest.approx((e.value, e.low, e.high), abs=1e-9), (one.level, name)
        brier = one.estimates["brier"]
        assert brier.low is not None and brier.high is not None
        widths[one.level] = brier.high - brier.low
    assert widths["B"] > 1.5 * widths["A"]


def test_levels_are_checkpointed_and_merged(tmp_path: Path) -> None:
    """A run that goes on, and two places that save summaries, give the sub-groups of one run."""
    held = cases()
    whole = streamed(written(held, tmp_path / "c.parquet"), checkpoint=tmp_path / "kept")
    again = streamed(tmp_path / "c.parquet", checkpoint=tmp_path / "kept")
    assert again.to_dict()["subgroups"] == whole.to_dict()["subgroups"]
    for i, rows in enumerate((held["patient"] < 40, held["patient"] >= 40)):
        half = written({k: v[rows] for k, v in held.items()}, tmp_path / f"half{i}.parquet")
        asked = ["evaluate", half, "--label-column", "y", "--group-column", "patient", "-q"]
        asked += ["--metrics", METRICS, "--subgroup-column", "scanner", "--resamples", 200]
        done = runner.invoke(app, [*map(str, asked), "--save-summary", str(tmp_path / f"{i}.npz")])
        assert done.exit_code == 0, done.output
    out = tmp_path / "merged.json"
    merge = ["merge", str(tmp_path / "?.npz"), "--out", str(out), "--resamples", "200", "-q"]
    done = runner.invoke(app, merge)
    assert done.exit_code == 0, done.output
    merged = rw.Results.from_json(out)
    for one, other in zip(merged.subgroups, whole.subgroups, strict=True):
        assert (one.level, one.cases, one.patients) == (other.level, other.cases, other.patients)
        for name, estimate in other.estimates.items():
            assert one.estimates[name].low == pytest.approx(estimate.low, abs=1e-9)


def images(held: dict[str, Any]) -> tuple[list[Case], list[Any]]:
    """Return one image of 2 × 2 pixels per patient, and the scanner of each."""
    found, scanners = [], []
    for patient in np.unique(held["patient"]):
        own = held["patient"] == patient
        p, y = held["p"][own].reshape(2, 2), held["y"][own].reshape(1, 2, 2)
        found.append(Case(p, y, patient=str(patient)))
        scanners.append(held["scanner"][own][0])
    return found, scanners


def test_pooled_images_have_the_sub_groups_of_their_pixels() -> None:
    """Every pixel counts: the levels are those of the table of pixels with patients."""
    held = cases(patients=60)
    taken, scanners = images(held)
    found = rw.segmentation.evaluate(
        iter(taken), METRICS, "pooled", subgroups={"scanner": scanners}, resamples=200
    )
    expected = in_memory(held)
    for one, other in zip(found.subgroups, expected.subgroups, strict=True):
        assert (one.level, one.cases, one.patients) == (other.level, other.patients, other.patients)
        for name, estimate in other.estimates.items():
            assert one.estimates[name].value == pytest.approx(estimate.value, abs=1e-12)
        for name, d in other.differences.items():
            assert one.differences[name].difference == pytest.approx(d.difference, abs=0.01)
            adjusted = one.differences[name].adjusted_p_value
            assert adjusted == pytest.approx(d.adjusted_p_value, abs=0.1)


def test_images_with_values_of_their_own() -> None:
    """A level's mean is the mean over its images; its interval that of these images alone."""
    taken, scanners = images(cases(patients=60))
    asked: dict[str, Any] = {"metrics": METRICS, "resamples": 200}
    found = rw.segmentation.evaluate(taken, subgroups={"scanner": scanners}, **asked)
    of_b = [image for image, name in zip(taken, scanners, strict=True) if name == "B"]
    rest = [image for image, name in zip(taken, scanners, strict=True) if name != "B"]
    alone, others = (rw.segmentation.evaluate(part, **asked) for part in (of_b, rest))
    level = found.subgroup("scanner", "B")
    assert (level.cases, level.patients) == (len(of_b), len(of_b))
    for name in METRICS.split(","):
        mine, own = level.estimates[name], alone[name]
        assert (mine.value, mine.low, mine.high) == (own.value, own.low, own.high)
        gap = own.value - others[name].value
        assert level.differences[name].difference == pytest.approx(gap)
        assert level.differences[name].adjusted_p_value is not None
    assert any("scanner = (missing): only" in note for note in found.warnings)


def test_levels_of_a_manifest(tmp_path: Path) -> None:
    """`raterwise segment --subgroup-column`: a column of the manifest tells images apart."""
    taken, scanners = images(cases(patients=24))
    rows = ["case,probabilities,raters,scanner"]
    for i, (image, scanner) in enumerate(zip(taken, scanners, strict=True)):
        np.save(tmp_path / f"p{i}.npy", image.probabilities)
        np.save(tmp_path / f"m{i}.npy", np.asarray(image.masks)[0])
        rows.append(f"c{i},p{i}.npy,m{i}.npy,{scanner or ''}")
    (tmp_path / "manifest.csv").write_text("\n".join(rows))
    asked = ["segment", str(tmp_path / "manifest.csv"), "--metrics", "brier", "--resamples", "50"]
    out = tmp_path / "r.json"
    done = runner.invoke(app, [*asked, "--subgroup-column", "scanner", "--out", str(out)])
    assert done.exit_code == 0, done.output
    expected = rw.segmentation.evaluate(
        taken, "brier", resamples=50, subgroups={"scanner": scanners}
    )
    found = rw.Results.from_json(out)
    for one, other in zip(found.subgroups, expected.subgroups, strict=True):
        assert (one.level, one.cases) == (other.level, other.cases)
        assert one.estimates["brier"].value == pytest.approx(other.estimates["brier"].value)
    done = runner.invoke(app, [*asked, "--subgroup-column", "site"])
    assert done.exit_code == 2 and "there is no 'site'" in done.output


def test_what_cannot_be(tmp_path: Path) -> None:
    """Numbers of values, columns and levels that do not fit are named."""
    held = cases(patients=12)
    path = written(held, tmp_path / "c.parquet")
    with pytest.raises(rw.InvalidInputError, match="there is no 'site'"):
        rw.evaluate_stream(path, "ece", label_column="y", subgroups="site")
    with pytest.raises(rw.InvalidInputError, match="subgroup_metrics: needs subgroups"):
        rw.evaluate_stream(path, "ece", label_column="y", subgroup_metrics="ece")
    many = written({**held, "patient": np.arange(len(held["p"]))}, tmp_path / "m.parquet")
    with pytest.raises(rw.InvalidInputError, match="'patient' has 48 levels, more than 20"):
        rw.evaluate_stream(many, "ece", label_column="y", subgroups="patient")
    taken, scanners = images(held)
    with pytest.raises(rw.InvalidInputError, match="one value for each of 12 images; got 11"):
        rw.segmentation.evaluate(iter(taken), "brier", subgroups={"scanner": scanners[1:]})
    with pytest.raises(rw.InvalidInputError, match="one value for each of 12 cases"):
        rw.segmentation.evaluate(taken, "brier", subgroups={"scanner": scanners[1:]})
    with pytest.raises(rw.MergeError, match="told apart by nothing to cases told apart by scanner"):
        Digest({}, Facts(2), np.ones(1, int), levels={"scanner": {}}) + Digest(
            {}, Facts(2), np.ones(1, int)
        )

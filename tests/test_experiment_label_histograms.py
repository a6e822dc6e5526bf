"""The expert-label experiment on made-up data in the layout of CIFAR-10H."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.commands import app
from experiments.label_histograms import expert_labels
from experiments.label_histograms.expert_labels import (
    VARIANTS,
    Model,
    Settings,
    cifar10h_models,
    drawn_labels,
    halves,
    judged,
    run,
)
from experiments.label_histograms.tables import as_markdown
from raterwise.labels import Labels

QUICK = Settings(resamples=20)


def made_up(cases: int, seed: int, concentration: float = 1.0) -> tuple[np.ndarray, Labels]:
    """An exact mean, opinions that scatter round it with one α0, and 20 raters a case."""
    random = np.random.default_rng(seed)
    mean = random.dirichlet(np.full(10, 0.5), cases)
    gammas = random.standard_gamma(concentration * mean + 1e-12)
    truth = gammas / gammas.sum(axis=1, keepdims=True)
    return mean, Labels.from_counts(random.multinomial(20, truth))


@pytest.fixture(name="data")
def folder_of_data(tmp_path: Path) -> Path:
    """Write histograms and two models: the mean itself, and over-confident logits of it."""
    folder = tmp_path / "data"
    folder.mkdir()
    mean, labels = made_up(600, 0)
    np.save(folder / "cifar10h_counts.npy", labels.counts)
    np.savez(
        folder / "cifar10_test_outputs.npz",
        labels=labels.majority(),
        probs_exact=mean.astype(np.float32),
        logits_sharp=2 * np.log(mean + 1e-9).astype(np.float32),
    )
    return folder


# The parts ---------------------------------------------------------------------------------------


def test_models_are_read_by_their_names(data: Path) -> None:
    """probs_NAME and logits_NAME are models; labels are not."""
    models = list(cifar10h_models(data))
    assert [(m.name, m.input) for m in models] == [("sharp", "logits"), ("exact", "probs")]


def test_files_that_are_not_there_or_do_not_fit(data: Path, tmp_path: Path) -> None:
    """A folder without the files, or outputs of other images, are named."""
    with pytest.raises(ValueError, match=r"must hold cifar10h_counts.npy and cifar10_test_out"):
        list(cifar10h_models(tmp_path))
    np.savez(data / "cifar10_test_outputs.npz", probs_short=np.full((3, 10), 0.1))
    with pytest.raises(ValueError, match=r"probs_short must have the shape .*\(600, 10\); got"):
        list(cifar10h_models(data))


def test_labels_are_drawn_without_replacement() -> None:
    """Never more than there are, two where there are two, and each label equally often."""
    counts = np.array([[3, 1, 0], [0, 0, 1], [0, 2, 0]] * 3000)
    drawn = drawn_labels(Labels.from_counts(counts), 2, seed=0).counts
    assert (drawn <= counts).all()
    assert drawn.sum(axis=1).tolist() == [2, 1, 2] * 3000
    assert (drawn[2::3] == [0, 2, 0]).all()
    # Two of four labels: the single one is among them half of the time, ± √(0.25/3000).
    assert drawn[::3, 1].mean() == pytest.approx(0.5, abs=4 * 0.0091)


def test_patients_are_not_split() -> None:
    """No patient is in both halves, every case is in one, and the halves hold half of them."""
    patients = np.repeat(np.arange(50), np.random.default_rng(0).integers(1, 6, 50))
    labels = Labels.from_classes(np.zeros(len(patients), int), num_classes=2)
    model = Model("d", "m", "probs", np.full((len(patients), 2), 0.5), labels, patients)
    first, second = halves(model, seed=1)
    assert not set(patients[first]) & set(patients[second])
    assert sorted([*first, *second]) == list(range(len(patients)))
    assert len(set(patients[first])) == 25


@pytest.mark.filterwarnings("ignore:resamples")
def test_alpha_helps_where_the_truth_is_known() -> None:
    """An exact mean with α0 = 1: DPE of the point is twice too large, α puts it right (LH 5.2)."""
    mean, labels = made_up(1000, 3)
    found = judged(Model("made up", "exact", "probs", mean, labels), Settings(resamples=100))
    share = found["disagreement"]
    assert share["raw"] == pytest.approx(2 * share["observed"], rel=0.1)
    assert share["alpha"] == pytest.approx(share["observed"], rel=0.1)
    metrics = found["metrics"]
    # The expected epistemic loss halves with one label: (1 - Σ f²)/(α0 + 1)·α0/(α0 + 1).
    prior = metrics["alpha"]["prior_epistemic_loss"]["value"]
    assert metrics["alpha"]["posterior_epistemic_loss"]["value"] == pytest.approx(
        prior / 2, rel=0.1
    )
    assert metrics["raw"]["posterior_epistemic_loss"]["value"] == pytest.approx(prior)
    changes = {(d["metric"], d["first"], d["second"]): d for d in found["differences"]}
    for metric in ("disagreement_loss", "disagreement_calibration_error"):
        assert changes[metric, "raw", "alpha"]["low"] > 0


# The run -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:resamples")
def test_a_run_is_taken_up_where_it_stopped(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done is not done again; a damaged file, or another seed, is."""
    out, done = tmp_path / "out", []
    real = expert_labels.judged

    def counted(model: Model, settings: Settings, progress: Any = None) -> dict[str, Any]:
        done.append(model.name)
        if len(done) == 2:
            raise KeyboardInterrupt
        return real(model, settings, progress)

    monkeypatch.setattr(expert_labels, "judged", counted)
    monkeypatch.setattr(expert_labels, "lidc_model", lambda: list(cifar10h_models(data))[1])
    with pytest.raises(KeyboardInterrupt):
        run(out, data, QUICK)
    assert [path.name for path in out.iterdir()] == ["cifar-10h-sharp.json"]
    first = run(out, data, QUICK)
    assert done == ["sharp", "exact", "exact"]
    assert run(out, data, QUICK) == first and len(done) == 3
    (out / "cifar-10h-exact.json").write_text("{", encoding="utf-8")
    assert run(out, data, QUICK) == first and done[3:] == ["exact"]
    run(out, data, Settings(resamples=20, seed=1))
    assert done[4:] == ["sharp", "exact"]


@pytest.mark.filterwarnings("ignore:resamples")
def test_the_command_writes_tables(data: Path, tmp_path: Path) -> None:
    """One row per model and variant, the differences below, LIDC by patient; all as files too."""
    command = ["label_histograms", "--data", str(data), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*command, "--resamples", "20"])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
    assert text.strip() in result.stdout
    assert "### CIFAR-10H" in text and "### LIDC-IDRI malignancy" in text
    assert text.count("| + temperature + α |") == 3
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert [part["model"] for part in summary] == ["sharp", "exact", "demo"]
    assert summary[0]["cases"] == {"fit": 300, "test": 300}
    assert summary[2]["patients"] == 398 and list(summary[2]["metrics"]) == list(VARIANTS)


def test_the_page_has_the_rows_of_the_demonstration(tmp_path: Path) -> None:
    """docs/calibration.md: what LIDC's rows have without any data, values and intervals alike."""
    run(tmp_path)
    page = Path(__file__).parents[1] / "docs" / "calibration.md"
    section = page.read_text(encoding="utf-8").partition("### LIDC-IDRI malignancy")[2]
    shown, made = (
        [line for line in text.splitlines() if line.startswith("|")]
        for text in (section, (tmp_path / "tables.md").read_text(encoding="utf-8"))
    )
    assert len(shown) == len(made) == 12
    number = re.compile(r"[-+]?[0-9]+\.[0-9]+")
    for ours, theirs in zip(made, shown, strict=True):
        assert number.sub("", ours) == number.sub("", theirs)
        found, wanted = ([float(n) for n in number.findall(line)] for line in (ours, theirs))
        assert found == pytest.approx(wanted, abs=2e-3), theirs


def test_a_wrong_folder_is_one_line(tmp_path: Path) -> None:
    """Bad input is exit code 2 here as everywhere."""
    command = ["label_histograms", "--data", str(tmp_path), "--out", str(tmp_path / "o")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_differences_are_shown_after_minus_before() -> None:
    """The file holds raw minus α; the table turns the number and its interval round."""
    value = {"value": 0.2, "low": 0.1, "high": None}
    part = {
        "data": "D",
        "model": "m",
        "cases": {"fit": 1, "test": 2},
        "patients": None,
        "judged": {"disagreement_loss": 2, "posterior_epistemic_loss": 1},
        "disagreement": {"observed": 0.5, **dict.fromkeys(VARIANTS, 0.25)},
        "metrics": {name: dict.fromkeys(expert_labels.METRICS, value) for name in VARIANTS},
        "differences": [
            {
                **{"metric": "disagreement_loss", "first": "raw", "second": "alpha"},
                **{"difference": 0.03, "low": 0.01, "high": 0.04, "p_value": 0.002},
            }
        ],
    }
    text = as_markdown([part])
    assert "| m | raw | -0.0300 [-0.0400, -0.0100] (p = 0.002) | undefined | undefined |" in text
    assert "| m | raw | 0.250 | 0.2000 | 0.2000 | 0.2000 | 0.2000 |" in text

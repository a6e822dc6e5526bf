"""Draws of an ensemble and cases from elsewhere in `raterwise compare` and `stability`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app

CASES, ELSEWHERE = 60, 25


def table(path: Path, probs: Any, **columns: Any) -> Path:
    """Write probabilities of two classes, and further columns, with ids."""
    names = ["case", "prob_no", "prob_yes", *columns]
    rows = zip(range(len(probs)), 1 - probs, probs, *columns.values(), strict=True)
    lines = [",".join(names), *(",".join(f"{v:.17g}" for v in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def study(tmp_path: Path) -> dict[str, Any]:
    """Return a network, an ensemble of four draws, and cases from elsewhere, also as files."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, CASES)
    one = np.clip(0.25 + 0.5 * truth + random.normal(0, 0.2, CASES), 0.01, 0.99)
    draws = np.clip(0.3 + 0.4 * truth + random.normal(0, 0.2, (4, CASES)), 0.01, 0.99)
    other = random.uniform(0.2, 0.8, (2, ELSEWHERE))
    samples = np.stack((1 - draws, draws), axis=2)
    np.savez(tmp_path / "draws.npz", samples=samples)
    table(tmp_path / "one.csv", one, truth=truth, sure=np.abs(one - 0.4))
    table(tmp_path / "ens.csv", draws.mean(axis=0), truth=truth, sure=np.abs(one - 0.3))
    for i in range(4):
        table(tmp_path / f"m{i}.csv", draws[i][::-1])
        lines = (tmp_path / f"m{i}.csv").read_text().splitlines()
        ids = [f"{CASES - 1 - n},{line.partition(',')[2]}" for n, line in enumerate(lines[1:])]
        (tmp_path / f"m{i}.csv").write_text("\n".join([lines[0], *ids]) + "\n")
    for name, values in zip(("one", "ens"), other, strict=True):
        table(tmp_path / f"out_{name}.csv", values)
    both = [np.stack((1 - values, values), axis=1) for values in other]
    return {
        "folder": tmp_path, "truth": truth, "one": np.stack((1 - one, one), axis=1),
        "ens": rw.EnsembleBelief(samples), "outside": {"one": both[0], "ens": both[1]},
    }  # fmt: skip


def run(*arguments: Any) -> dict[str, Any]:
    """Run a command that writes its last argument, and return what it wrote."""
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    content: dict[str, Any] = json.loads(Path(str(arguments[-1])).read_text())
    return content


def test_compare_takes_draws_and_cases_from_elsewhere(study: dict[str, Any]) -> None:
    """The same differences as in Python, from one NPZ file or a table for each draw."""
    folder = study["folder"]
    names = "brier,auccc,io_auroc"
    expected = rw.compare(
        {"one": study["one"], "ens": study["ens"]}, study["truth"], names, resamples=40,
        outside=study["outside"],
    )  # fmt: skip
    files = [folder / "one.csv", folder / "ens.csv", "--label-column", "truth", "--metrics", names]
    files += ["--resamples", 40, "--quiet", "--prob-columns", "prob_no,prob_yes"]
    for name in ("one", "ens"):
        files += ["--outside", f"{name}={folder / f'out_{name}.csv'}"]
    members = [part for i in range(4) for part in ("--member", f"ens={folder / f'm{i}.csv'}")]
    for how in (["--samples", f"ens={folder / 'draws.npz'}"], members):
        found = run("compare", *files, *how, "--out", folder / "c.json")
        for mine, other in zip(found["differences"], expected.differences, strict=True):
            assert mine["metric"] == other.metric
            assert mine["difference"] == pytest.approx(other.difference, abs=1e-12)
            assert mine["low"] == pytest.approx(other.low, abs=1e-9)


def test_compare_ranks_by_a_column(study: dict[str, Any]) -> None:
    """The column of the same name in every file."""
    folder, scores = study["folder"], {"one": 0.4, "ens": 0.3}
    ranked = {name: np.abs(study["one"][:, 1] - middle) for name, middle in scores.items()}
    expected = rw.compare(
        {"one": study["one"], "ens": study["ens"].mean}, study["truth"], "auccc", resamples=30,
        confidence=ranked,
    )  # fmt: skip
    found = run(
        "compare", folder / "one.csv", folder / "ens.csv", "--label-column", "truth", "--metrics",
        "auccc", "--resamples", 30, "--quiet", "--confidence-column", "sure", "--prob-columns",
        "prob_no,prob_yes", "--out", folder / "c.json",
    )  # fmt: skip
    assert found["differences"][0]["difference"] == pytest.approx(
        expected.differences[0].difference, abs=1e-12
    )


def test_compare_counts_weights_and_knows_the_names_of_classes(tmp_path: Path) -> None:
    """As by hand: the Brier scores of 0.8 and 0.4 differ by 0.36 - 0.04, those of 0.5 by nothing.

    The first case counts three times, so that the mean is 3 · 0.32 / 4; its class is "yes".
    """
    for name, probs in {"sharp": [0.8, 0.5], "blunt": [0.4, 0.5]}.items():
        table(tmp_path / f"{name}.csv", np.array(probs), truth=[1, 0], w=[3, 1])
    found = run(
        "compare", tmp_path / "blunt.csv", tmp_path / "sharp.csv", "--label-column", "truth",
        "--weight-column", "w", "--metrics", "brier", "--resamples", 20, "--quiet",
        "--class-names", "no,yes", "--out", tmp_path / "c.json",
    )  # fmt: skip
    assert found["differences"][0]["difference"] == pytest.approx(0.24)
    assert found["models"]["sharp"]["data"]["class_names"] == ["no", "yes"]


def test_stability_takes_draws_and_cases_from_elsewhere(study: dict[str, Any]) -> None:
    """RECE-M of the draws, and AUCCC with cases from elsewhere beside every part."""
    folder = study["folder"]
    common = ["--label-column", "truth", "--repeats", 4, "--quiet", "--fractions", "0.5,1"]
    common += ["--prob-columns", "prob_no,prob_yes"]
    found = run(
        "stability", folder / "ens.csv", "--samples", folder / "draws.npz", "--metrics",
        "robust_ece_mixture,brier", *common, "--out", folder / "s.json",
    )  # fmt: skip
    for name in ("robust_ece_mixture", "brier"):
        curve = rw.stability.subsample_curve(
            name, study["ens"], study["truth"], fractions=(0.5, 1), repeats=4
        )
        mine = np.array(found["metrics"][name][0]["values"], float)
        assert mine == pytest.approx(curve.values, abs=1e-12), name
    found = run(
        "stability", folder / "one.csv", "--outside", folder / "out_one.csv", "--metrics", "auccc",
        *common, "--out", folder / "s.json",
    )  # fmt: skip
    whole = rw.evaluate(
        study["one"], study["truth"], "auccc", outside=study["outside"]["one"], resamples=0
    )
    assert found["metrics"]["auccc"][0]["full"] == pytest.approx(whole["auccc"].value)
    again = rw.stability.total_variation(
        "auccc", study["one"], study["truth"], repeats=4, outside=study["outside"]["one"]
    )
    assert found["metrics"]["auccc"][0]["total_variation"]["mean"] == pytest.approx(again.mean)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (["--samples", "draws.npz"], "--samples: must be NAME=FILE"),
        (["--samples", "two=draws.npz"], "--samples: there is no model 'two'"),
        (["--outside", "one=a.csv", "--outside", "one=b.csv"], "must be one file of one"),
    ],
)
def test_compare_says_what_is_wrong_with_draws(
    told: list[str], message: str, study: dict[str, Any]
) -> None:
    """The option, the rule and the value; exit code 2."""
    files = [str(study["folder"] / name) for name in ("one.csv", "ens.csv")]
    done = CliRunner().invoke(app, ["compare", *files, "--label-column", "truth", *told])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())

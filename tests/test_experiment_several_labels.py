"""The stand-ins of LH Table 6, on tiny made-up copies of the files and of the networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.commands import app
from experiments.kept import kept_arrays, read_json
from experiments.label_histograms import penalty
from experiments.label_histograms.figure_data import (
    debiasing,
    several_changes,
    several_reliability,
)
from experiments.label_histograms.figures import draw_several, parts_of_loss
from experiments.label_histograms.mixed_outputs import rounded
from experiments.label_histograms.several_data import (
    STUDIES,
    cifar_labels,
    counted,
    nodule_labels,
    one_label,
)
from experiments.label_histograms.several_judging import Judging, judge, keep_small, read_labels
from experiments.label_histograms.several_paper import TABLE_6, paper_value
from experiments.label_histograms.several_rows import Key
from experiments.label_histograms.several_scores import (
    GROUPS,
    JudgedCases,
    Said,
    disagreement_bins,
    error_of,
    estimates,
    said_of,
    together,
)
from experiments.label_histograms.several_tables import TITLES, by_study, gathered
from experiments.nodules import FOLDS
from raterwise import DirichletBelief, EnsembleBelief, PointBelief
from raterwise.errors import InvalidInputError
from raterwise.functions.disagreement import disagreement_calibration_error, disagreement_loss
from raterwise.functions.histograms import (
    calibration_error,
    epistemic_loss,
    expected_squared_loss,
)
from raterwise.labels import Labels

KEPT = Path(__file__).parents[1] / "experiments" / "outputs" / "label_histograms"
QUICK = Judging(samples=3, fit_samples=2)
NAMES = ("malignancy", *(f"other{i}" for i in range(7)), "texture")


@pytest.fixture(name="data", scope="module")
def folder_of_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CIFAR-10 of 800 training and 100 test images with labels of people, and 200 nodules."""
    folder = tmp_path_factory.mktemp("several")
    random = np.random.default_rng(0)
    classes = random.integers(10, size=900)
    images = random.integers(60, size=(900, 3, 32, 32))
    images[np.arange(900), :, 3 * classes] = 255
    records = np.column_stack((classes, images.reshape(900, -1))).astype(np.uint8)
    for i in range(5):
        (folder / f"data_batch_{i + 1}.bin").write_bytes(records[160 * i : 160 * i + 160].tobytes())
    (folder / "test_batch.bin").write_bytes(records[800:].tobytes())
    learnt = classes[:800, None]
    ratings = np.where(random.random((800, 3)) < 0.8, learnt, random.integers(10, size=(800, 3)))
    single = dict.fromkeys(("clean", "aggre", "worse"), classes[:800])
    np.savez(folder / "cifar10n.npz", raters=ratings, **single)
    truth = 0.8 * np.eye(10)[classes[800:]] + 0.02
    np.save(folder / "cifar10h_counts.npy", random.multinomial(20, truth).astype(float))
    grades = np.clip(random.integers(1, 6, size=(200, 1)) + random.integers(-1, 2, (200, 4)), 1, 5)
    given = np.arange(4) < random.integers(1, 5, size=200)[:, None]
    every = np.repeat(np.where(given, grades, 0)[:, :, None], 9, axis=2).astype(np.uint8)
    np.savez(
        folder / "lidc_nodules.npz",
        images=random.integers(255, size=(200, 32, 32)).astype(np.uint8),
        ratings=every,
        rating_names=np.array(NAMES),
        patient=np.array([f"p{i // 2}" for i in range(200)]),
    )
    return folder


def write_network(
    folder: Path, name: str, seed: int, parts: dict[str, np.ndarray], **more: Any
) -> None:
    """Write what a network would keep, whose channels show the histograms of the cases."""
    random = np.random.default_rng(seed)
    classes = next(iter(parts.values())).shape[1]
    arrays: dict[str, Any] = {
        "hidden_weight": np.eye(classes, dtype=np.float16),
        "hidden_bias": np.zeros(classes, np.float16),
        "last_weight": (4 * np.eye(classes)).astype(np.float16),
        "last_bias": np.zeros(classes, np.float16),
    }
    for part, counts in parts.items():
        shown = counts / counts.sum(axis=1, keepdims=True) + random.random(counts.shape) / 2
        arrays |= rounded(shown.astype(np.float32), f"pooled_{part}")
        if part == "test":
            draws = np.stack([shown + random.random(shown.shape) / 10 for _ in range(3)])
            arrays |= rounded(draws.astype(np.float32), "hidden_tta")
    made_of = {"data": name, "seed": seed, "recipe": {"epochs": 1}}
    kept_arrays(folder / f"{name}-{seed}.npz", made_of, lambda: arrays | more)


@pytest.fixture(name="out", scope="module")
def folder_of_networks(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two made-up networks of each study, judged."""
    out = tmp_path_factory.mktemp("networks")
    people, test = cifar_labels(data), np.load(data / "cifar10h_counts.npy")
    nodules, _ = nodule_labels(data)
    for seed in (0, 1):
        for study in STUDIES[:2]:
            parts = {"valid": people.counts("valid"), "test": test, "same": people.counts("same")}
            write_network(out, study, seed, parts)
        for study in STUDIES[2:]:
            for fold in range(FOLDS):
                rows = nodules.rows(fold)
                parts = {part: nodules.counts[rows[part]] for part in ("valid", "test")}
                write_network(out, f"{study}_fold{fold}", seed, parts, rows=rows["test"])
    judge(data, out, STUDIES, QUICK)
    return out


# Who says what -----------------------------------------------------------------------------------


def test_parts_do_not_overlap(data: Path) -> None:
    """6/8, 1/8 and 1/8 of the images; patients whole, every nodule tested once and never learnt."""
    people = cifar_labels(data)
    assert [people.part(name) for name in ("train", "valid", "same")] == [
        slice(0, 600), slice(600, 700), slice(700, 800)
    ]  # fmt: skip
    assert (people.counts("valid").sum(axis=1) == 3).all()
    nodules, _ = nodule_labels(data)
    tested = np.concatenate([nodules.rows(fold)["test"] for fold in range(FOLDS)])
    assert sorted(tested) == list(range(200))
    for fold in range(FOLDS):
        own = {part: set(nodules.patients[rows]) for part, rows in nodules.rows(fold).items()}
        assert not own["train"] & own["valid"] | own["train"] & own["test"]
        assert not own["valid"] & own["test"]


def test_one_label_is_one_that_was_given() -> None:
    """A single label of each case, never a missing one; histograms by hand."""
    ratings = np.array([[2, 0, -1], [1, -1, -1], [0, 0, 0]])
    assert counted(ratings, 3).tolist() == [[1, 0, 1], [0, 1, 0], [3, 0, 0]]
    drawn = one_label(ratings, 3)
    assert drawn.sum(axis=1).tolist() == [1, 1, 1]
    assert (counted(ratings, 3)[drawn == 1] > 0).all()


# Scores ------------------------------------------------------------------------------------------


def made_up(cases: int, classes: int = 4) -> tuple[DirichletBelief, JudgedCases]:
    """Cases with one to five labels, and a belief about them."""
    random = np.random.default_rng(1)
    truth = random.dirichlet(np.ones(classes), cases)
    counts = random.multinomial(random.integers(1, 6, cases), truth)
    probs = 0.6 * truth + 0.4 * random.dirichlet(np.ones(classes), cases)
    return DirichletBelief(probs, random.gamma(3, size=cases)), JudgedCases.of(counts)


def test_estimates_are_those_of_the_library() -> None:
    """L_sq, EL, CE, L_φD and CE_φD with unequal numbers of raters, where these are enough."""
    belief, cases = made_up(2000)
    found = {k: v[0] for k, v in estimates(said_of(belief, cases), cases).items()}
    two = cases.counts.sum(axis=1) >= 2
    every, pairs = Labels.from_counts(cases.counts), Labels.from_counts(cases.counts[two])
    mean, predicted = belief.mean, belief.disagreement()[two]
    expected = {
        "squared_loss": expected_squared_loss(mean, every),
        "epistemic_loss": epistemic_loss(mean[two], pairs),
        "calibration_error": calibration_error(mean, every, bins=15),
        "disagreement_loss": disagreement_loss(predicted, pairs),
        "disagreement_calibration_error": disagreement_calibration_error(predicted, pairs, bins=15),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-10), name


def test_the_expert_by_hand() -> None:
    """Of (2, 2) and the expert's 0: (0.75, 0.25) with α0 = 1, judged by the three others."""
    cases = JudgedCases(np.array([[2, 2], [1, 1], [2, 2]]), np.zeros(3, int), np.arange(3))
    said = said_of(DirichletBelief([[0.5, 0.5]] * 3, np.ones(3)), cases)
    assert said.posterior.tolist() == [[0.75, 0.25]] * 3
    found = estimates(said, cases)
    spread = (1 / 3) * (2 / 3) / 2  # one of three says 0; the case with two labels is left out
    assert found["posterior"][0] == pytest.approx(2 * ((1 / 3 - 0.75) ** 2 - spread), rel=1e-12)
    assert found["prior"][0] == pytest.approx(2 * ((1 / 3 - 0.5) ** 2 - spread), rel=1e-12)
    assert found["accuracy"][0] == 0.5  # a tie is half right


def test_errors_are_those_of_means() -> None:
    """The jackknife over groups has the standard error of a mean over cases, within a quarter."""
    belief, cases = made_up(5000)
    said = said_of(belief, cases)
    loss = ((cases.counts / cases.counts.sum(axis=1, keepdims=True) - said.mean) ** 2).sum(axis=1)
    mu = cases.counts / cases.counts.sum(axis=1, keepdims=True)
    by_case = loss + (mu * (1 - mu)).sum(axis=1)
    error = error_of(estimates(said, cases)["squared_loss"])
    assert error == pytest.approx(by_case.std(ddof=1) / np.sqrt(5000), rel=0.25)


def test_patients_stay_whole() -> None:
    """Cases of one patient are in one group; the expert's label is one that was given."""
    counts = np.random.default_rng(2).multinomial(3, np.ones(4) / 4, size=300)
    patients = np.repeat(np.arange(100), 3)
    cases = JudgedCases.of(counts, patients)
    assert all(len(set(cases.groups[patients == p])) == 1 for p in range(100))
    assert len(set(cases.groups)) == GROUPS
    assert (counts[np.arange(300), cases.expert] > 0).all()


def test_bins_and_folds_together() -> None:
    """Means by bin by hand; what two networks say of their rows comes in the order of the cases."""
    cases = JudgedCases(np.array([[2, 0], [1, 1]]), np.array([0, 0]), np.array([0, 1]))
    said = said_of(PointBelief([[0.75, 0.25], [0.75, 0.25]]), cases)
    bins = disagreement_bins(said, cases)
    place = int(0.375 * 15)
    assert bins["cases"][place] == 2 == sum(bins["cases"])
    assert bins["predicted"][place] == 0.375 and bins["observed"][place] == 0.5
    parts = [Said(np.array([[v, v]]), np.array([v]), np.array([[v, v]]), None) for v in (1.0, 2.0)]
    joined = together([(np.array([1]), parts[0]), (np.array([0]), parts[1])])
    assert joined.disagreement.tolist() == [2.0, 1.0] and joined.posterior_sum is None
    ensemble = said_of(EnsembleBelief([[[0.5, 0.5]], [[0.9, 0.1]]]), cases.rows(np.array([0])))
    # Product: 0.5 and 0.9; released sum: 1 + 0.5 and 1 + 0.9.
    assert ensemble.posterior[0, 0] == pytest.approx((0.25 + 0.81) / 1.4)
    assert ensemble.posterior_sum is not None
    assert ensemble.posterior_sum[0, 0] == pytest.approx((1.5 * 0.5 + 1.9 * 0.9) / 3.4)


# Judging -----------------------------------------------------------------------------------------


def test_every_row_is_judged(out: Path) -> None:
    """Three methods, four scalings, with and without α; α changes disagreement alone."""
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert [(n["study"], n["seed"]) for n in found] == [(s, i) for s in STUDIES for i in (0, 1)]
    rows = {Key.of(row): row for row in found[0]["rows"]}
    assert sum(key.part == "test" and key.fitted == "valid" for key in rows) == 24
    assert sum(key.part == "same" for key in rows) == 16
    assert sum(key.fitted == "other" for key in rows) == 4
    assert sum(row["fitted"] == "chosen" for row in found[-1]["rows"]) == 4
    for key, row in rows.items():
        if key.alpha:
            before = rows[key._replace(alpha=False)]["values"]
            assert row["values"]["epistemic_loss"] == before["epistemic_loss"]
            change = row["differences"]["alpha disagreement_loss"][0]
            after = row["values"]["disagreement_loss"][0]
            assert after - before["disagreement_loss"][0] == pytest.approx(change, abs=3e-6)
    tables = (out / "tables.md").read_text(encoding="utf-8")
    assert "(.0435)" in tables and "LIDC malignancy, all radiologists, against one" in tables


def test_rows_are_remade_from_what_is_kept(data: Path, out: Path, tmp_path: Path) -> None:
    """From the small files alone: the same tables without data, and Raw anew with it."""
    kept = tmp_path / "kept"
    keep_small(out, kept)
    assert not list(kept.glob("cifar10n*"))
    assert {file.name for file in kept.glob("plain-cifar10n*")} == {
        "plain-cifar10n_1-0.npz", "plain-cifar10n_3-0.npz"
    }  # fmt: skip
    assert judge(None, kept, STUDIES, QUICK) == judge(data, out, STUDIES, QUICK)
    assert (kept / "tables.md").read_text() == (out / "tables.md").read_text()
    file = kept / "rows-lidc_1-0.json"
    stored = read_json(file)
    right = stored["rows"][0]["values"]["epistemic_loss"]
    stored["rows"][0]["values"]["epistemic_loss"] = [9, 9]
    file.write_text(json.dumps(stored), encoding="utf-8")
    again = judge(data, kept, ["lidc_1"], QUICK)
    assert again[0]["rows"][0]["values"]["epistemic_loss"] == pytest.approx(right)


def test_what_cannot_be_judged(data: Path, out: Path, tmp_path: Path) -> None:
    """No networks, networks without labels, other studies, nothing to learn from: each is said."""
    with pytest.raises(InvalidInputError, match="must hold networks of several_labels"):
        judge(data, tmp_path, STUDIES, QUICK)
    (tmp_path / "cifar10n_1-0.npz").write_bytes((out / "cifar10n_1-0.npz").read_bytes())
    with pytest.raises(InvalidInputError, match="data: must be given"):
        judge(None, tmp_path, STUDIES, QUICK)
    runner = CliRunner()
    wrong = runner.invoke(app, ["several_labels", "--out", str(tmp_path), "--studies", "mds"])
    assert wrong.exit_code == 2 and "--studies" in wrong.stderr
    missing = runner.invoke(app, ["several_labels", "--out", str(tmp_path)])
    assert missing.exit_code == 2 and "--data: must be given" in missing.stderr
    assert read_labels(data, "lidc").same is None


def test_the_paper_is_read_as_printed() -> None:
    """L_sq - EL is the same loss for every predictor: .2079 to .2080 in all 48 rows."""
    for rows in TABLE_6.values():
        assert len(rows) == 24
        for row in rows:
            cells = row.split()
            assert len(cells) == 6
            assert 0.2078 < float(cells[1]) - float(cells[2]) < 0.2082
    assert paper_value("1", ("raw", "none", True), "disagreement_calibration_error") == ".0406"
    assert paper_value("all", ("raw", "none", True), "posterior") == ""
    # Upside down .0650 reads .0590, and .0678 reads .0628: what could be either is left out.
    assert paper_value("all", ("tta", "none", True), "calibration_error") == ""
    assert sum(row.split().count("?") for rows in TABLE_6.values() for row in rows) == 10


def test_the_page_has_the_tables_of_what_is_kept(tmp_path: Path) -> None:
    """The rows in experiments/outputs make every table of the page, to the last digit."""
    for file in KEPT.glob("rows-*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    command = ["several_labels", "--out", str(tmp_path), "--judge-only", "--quiet"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    page = (KEPT.parents[2] / "docs" / "reproduction" / "label_histograms.md").read_text("utf-8")
    tables = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert tables.strip() in page
    found = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert len(found) == 12


# Figures -----------------------------------------------------------------------------------------


def test_figures_of_people(out: Path) -> None:
    """The diagrams of all networks together, and one file for each figure."""
    pytest.importorskip("matplotlib")
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    curves = several_reliability(gathered(found[:2]))
    assert len(curves) == 12
    assert curves["raw", "none", False]["cases"].sum() == 200  # two networks, a hundred cases
    change = several_changes(out, found[0])
    logits = np.load(out / "plain-cifar10n_1-0.npz")["logits"].astype(float)
    expected = np.exp(logits).max(axis=1) / np.exp(logits).sum(axis=1)
    np.testing.assert_allclose(change.confidence[0], expected, rtol=1e-10)
    maps = parts_of_loss(by_study(found))
    # LH Table 6, Raw: CE .0600 and EL .0435, so that CL is .0036 and DL .0399.
    assert maps["paper: MDS-1"]["raw", "none"] == pytest.approx((0.0036, 0.0399), abs=1e-12)
    assert len(maps["paper: MDS-full"]) == 11  # one CE of Table 6 cannot be read
    study = found[0]["study"]
    own = [
        row["values"]["epistemic_loss"][0]
        for network in by_study(found)[study]
        for row in network["rows"]
        if Key.of(row) == Key("valid", "test", "raw", "none", False)
    ]
    assert sum(maps[TITLES[study]]["raw", "none"]) == pytest.approx(np.mean(own), abs=1e-9)
    files = draw_several(out, found)
    assert [file.name for file in files] == ["figure_1.svg", "figure_4.png", "figure_5.svg"]
    assert "Pairs of raters who differ" in files[0].read_text(encoding="utf-8")


def test_debiasing_against_the_closed_form() -> None:
    """Plug-in EL is off by E[2 ζ (1 - ζ)]/n = 1/(3 n); the other is 0 within four errors."""
    found = debiasing()
    for raters in (2, 5):
        plugin, unbiased = (found[name][raters] for name in ("EL, plug-in", "EL, unbiased"))
        assert plugin[-1].mean() == pytest.approx(1 / (3 * raters), rel=0.03)
        errors = unbiased.std(axis=1, ddof=1) / np.sqrt(unbiased.shape[1])
        assert (np.abs(unbiased.mean(axis=1)) < 4 * errors).all()
        assert found["CL, plug-in"][raters][0].mean() > 2 * abs(
            found["CL, debiased"][raters][0].mean()
        )


# The penalty of α ---------------------------------------------------------------------------------


def test_changes_are_those_of_labels_that_were_drawn() -> None:
    """LH eqs 57 and 66 in closed form against made-up cases, their labels and posteriors."""
    random = np.random.default_rng(0)
    best, probs = 3.0, random.dirichlet([1, 2, 3], 400_000)
    strength = np.exp(random.normal(size=len(probs)))
    gammas = random.standard_gamma(best * probs)
    truth = gammas / gammas.sum(axis=1, keepdims=True)
    pairs = Labels.from_counts(random.multinomial(2, truth))
    belief = DirichletBelief(probs, strength)
    before, after = (
        disagreement_loss(b.disagreement(), pairs) for b in (PointBelief(probs), belief)
    )
    expert = Labels.from_counts(random.multinomial(1, truth))
    posterior = ((belief.posterior(expert).mean - truth) ** 2).sum(axis=1).mean()
    prior = ((probs - truth) ** 2).sum(axis=1).mean()
    drawn = (after - before, posterior - prior)
    assert penalty.changes(probs, best, strength) == pytest.approx(drawn, abs=2e-3)
    # Theorem 1: no other α0 does better for either than the best one.
    least = penalty.changes(probs, best, np.full(len(probs), best))
    for other in (0.5, 2.0):
        worse = penalty.changes(probs, best, np.full(len(probs), best * other))
        assert all(a > b for a, b in zip(worse, least, strict=True))


def test_when_the_papers_penalty_suits() -> None:
    """Many cases help where the best α0 is 4.8, and not where it is 26: that takes a smaller λ."""
    probs = penalty.told()
    assert penalty.fitted_changes(probs, 4.8, 14_144, 0.005, 0)[0] < 0
    assert penalty.fitted_changes(probs, 26.0, 14_144, 0.005, 0)[0] > 0
    assert penalty.fitted_changes(probs, 26.0, 14_144, 0.0005, 0)[0] < 0
    assert penalty.fitted_changes(probs, 26.0, 520, 0.0005, 0)[0] > 0
    page = Path(__file__).parents[1] / "docs" / "reproduction" / "label_histograms.md"
    assert penalty.row(probs, 26.0, 520, 0.005) in page.read_text(encoding="utf-8")


# Training ----------------------------------------------------------------------------------------


def test_networks_learn_what_they_should(data: Path, tmp_path: Path) -> None:
    """One label or all of the histograms, fold by fold; the files have what the judging needs."""
    torch = pytest.importorskip("torch")
    from experiments.label_histograms.several_training import (
        Settings,
        learnings,
        runs,
        train_all,
    )

    torch.set_num_threads(1)
    read = nodule_labels(data)
    one, every = (learnings(study, 2, read) for study in ("lidc_1", "lidc_all"))
    assert (one.counts["train"].sum(dim=1) == 1).all()
    np.testing.assert_array_equal(every.counts["train"], read[0].counts[read[0].rows(2)["train"]])
    tiny = Settings(seeds=1, lidc_epochs=1, width=0.02, samples=1)
    assert len(runs(list(STUDIES), tiny)) == 2 + 2 * FOLDS
    train_all(data, tmp_path, ["lidc_1"], tiny, shard=(3, FOLDS))
    (file,) = tmp_path.glob("*.npz")
    assert file.name == "lidc_1_fold3-0.npz"
    with np.load(file) as arrays:
        np.testing.assert_array_equal(arrays["rows"], read[0].rows(3)["test"])
        assert arrays["hidden_tta"].shape == (1, len(arrays["rows"]), 128)
        assert len(arrays["pooled_valid"]) == len(read[0].rows(3)["valid"])

"""RECE-M of an ensemble in the catalog, and its draws in files (RECE eq 7, LH appendix E.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from click.testing import Result
from scipy.special import softmax
from sklearn.mixture import GaussianMixture
from typer.testing import CliRunner

import oracle
import raterwise as rw
from raterwise.cli import app
from raterwise.errors import InvalidInputError
from raterwise.results import Results

NAME = "robust_ece_mixture"
RANDOM = np.random.default_rng(8)
CASES, CLASSES, DRAWS = 120, 3, 8
LOGITS = RANDOM.normal(0, 1.2, (CASES, CLASSES))
DRAWN = LOGITS + RANDOM.normal(0, 0.6, (DRAWS, CASES, CLASSES))
SAMPLES = softmax(DRAWN, axis=2)
COUNTS = np.array([RANDOM.multinomial(4, p) for p in softmax(LOGITS, axis=1)])
LABELS = rw.Labels.from_counts(COUNTS)
BELIEF = rw.EnsembleBelief(SAMPLES)


# RECE-M ---------------------------------------------------------------------------------------


def test_the_value_is_that_of_the_function_with_mixtures_of_scikit_learn() -> None:
    """Clusters that are far apart have one best fit; a slow loop over eq 7 has the same value."""
    centres = np.repeat([0.55, 0.7, 0.9], (4, 8, 8))
    top = RANDOM.permuted(centres[:, None] + RANDOM.normal(0, 0.004, (20, 30)), axis=0)
    samples = np.stack((top, 1 - top), axis=2)
    counts = np.array([RANDOM.multinomial(3, [0.6, 0.4]) for _ in range(30)])
    belief, labels = rw.EnsembleBelief(samples), rw.Labels.from_counts(counts)
    parts = []
    for case in top.T:
        fit = GaussianMixture(3, random_state=0, n_init=5, tol=1e-6).fit(case[:, None])
        parts.append((fit.weights_, fit.means_[:, 0], np.sqrt(fit.covariances_[:, 0, 0])))
    fitted = tuple(np.array([part[i] for part in parts]) for i in range(3))
    rows, onehot = oracle.repeat_per_annotation(belief.mean, counts)
    copies = np.repeat(np.arange(30), 3)
    expected = oracle.robust_ece_mixture(rows, onehot, tuple(part[copies] for part in fitted))
    found = rw.evaluate(belief, labels, NAME, resamples=0)[NAME].value
    assert found == pytest.approx(expected, abs=1e-5)
    assert found == rw.robust_ece_mixture(belief.mean, labels, samples)


@pytest.mark.parametrize("options", [{}, {"bins": 7}, {"components": 2, "seed": 4},
                                     {"per": "case"}, {"observed_bins_only": True}])  # fmt: skip
def test_options_reach_it(options: dict[str, Any]) -> None:
    """As those of the function, with weights and cases that nobody rated."""
    counts = COUNTS.copy()
    counts[5] = 0
    weights = np.linspace(0.5, 2, CASES)
    found = rw.evaluate(
        BELIEF, rw.Labels.from_counts(counts), NAME, resamples=20, options={NAME: options},
        weights=weights, on_unrated="drop", groups=np.arange(CASES) // 2,
    )[NAME]  # fmt: skip
    kept = np.arange(CASES) != 5
    expected = rw.robust_ece_mixture(
        BELIEF.mean[kept], rw.Labels.from_counts(counts[kept]), SAMPLES[:, kept],
        weights=weights[kept], **options,
    )  # fmt: skip
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.low is not None and found.low <= found.value < found.high


def test_equal_spreads_are_those_of_a_gaussian() -> None:
    """One component of the standard deviation 0.1 for every case is RECE-G, interval and all."""
    top = np.linspace(0.6, 0.8, 200)
    spread = np.sqrt(0.1**2 - 1e-6)
    draws = np.stack((top - spread, top + spread))
    belief = rw.EnsembleBelief(np.stack((draws, 1 - draws), axis=2))
    y = (np.random.default_rng(0).random(200) > 0.8).astype(int)
    options = {NAME: {"components": 1}, "robust_ece": {"sigma": 0.1}}
    found = rw.evaluate(belief, y, [NAME, "robust_ece"], resamples=400, options=options)
    one, other = found[NAME], found["robust_ece"]
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=0.01)


def test_what_it_needs() -> None:
    """Draws, as many as components, of equal weight; otherwise it says so and others go on."""
    metrics = [NAME, "ece"]
    two = rw.evaluate(rw.EnsembleBelief(SAMPLES[:2]), LABELS, metrics, resamples=0)
    assert two[NAME].undefined == "it needs at least 3 draws for 3 components; got 2"
    assert two["ece"].value is not None
    enough = rw.evaluate(
        rw.EnsembleBelief(SAMPLES[:2]), LABELS, NAME, resamples=0, options={NAME: {"components": 2}}
    )
    assert enough[NAME].value is not None
    weighted = rw.EnsembleBelief(SAMPLES[:3], [0.5, 0.3, 0.2])
    for belief in (weighted, rw.PointBelief(SAMPLES[0]), rw.DirichletBelief(SAMPLES[0], 3.0)):
        found = rw.evaluate(belief, LABELS, metrics, resamples=0)
        assert str(found[NAME].undefined).startswith("it needs ")
    assert NAME in rw.evaluate(BELIEF, LABELS, resamples=0)
    assert NAME not in rw.evaluate(weighted, LABELS, resamples=0)


def test_parts_of_the_cases_keep_their_mixtures() -> None:
    """Levels and subsets have the value of the function on their own cases and draws."""
    sex = np.arange(CASES) % 2
    found = rw.evaluate(
        BELIEF, LABELS, NAME, subgroups={"sex": sex}, subgroup_metrics=NAME, resamples=20
    )
    for level in found.subgroups:
        own = sex == int(level.level)
        expected = rw.robust_ece_mixture(BELIEF.mean[own], LABELS.take(own), SAMPLES[:, own])
        assert level.estimates[NAME].value == pytest.approx(expected, rel=1e-12)
    curve = rw.stability.subsample_curve(
        NAME, BELIEF, LABELS, fractions=(0.5, 1), repeats=2, options={"components": 2}
    )
    chosen = np.random.default_rng([0, 0, 1]).permutation(CASES)[:60]
    expected = rw.robust_ece_mixture(
        BELIEF.mean[chosen], LABELS.take(chosen), SAMPLES[:, chosen], components=2
    )
    assert curve.values[0, 1] == pytest.approx(expected, rel=1e-12)
    varied = rw.stability.total_variation(NAME, BELIEF, LABELS, repeats=3)
    assert 0 < varied.mean < 0.1
    with pytest.raises(InvalidInputError, match=f"metric: {NAME}: it needs the draws"):
        rw.stability.total_variation(NAME, BELIEF.mean, LABELS)


# files ----------------------------------------------------------------------------------------


def run(*words: Any) -> Result:
    """Run a command, which must succeed."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def write_members(folder: Path, draws: Any, prefix: str = "prob_", **more: Any) -> list[Path]:
    """Write a table per draw, each in an order of its own; the first has the counts."""
    files = []
    for s, values in enumerate(draws):
        columns = {"case": np.array([f"c{i}" for i in range(len(values))])}
        columns |= {f"{prefix}{k}": values[:, k] for k in range(values.shape[1])}
        columns |= {name: column[s] for name, column in more.items()}
        if s == 0:
            columns |= {f"count_{k}": COUNTS[: len(values), k] for k in range(CLASSES)}
        order = np.random.default_rng(s).permutation(len(values))
        table = pa.table({name: column[order] for name, column in columns.items()})
        files.append(folder / f"member_{s}.csv")
        csv.write_csv(table, files[-1])
    return files


def members(option: str, files: list[Path]) -> list[Any]:
    """Return the options that name the members."""
    return [word for file in files for word in (option, file)]


def write_samples(path: Path, **arrays: Any) -> Path:
    """Write all draws into one NPZ file."""
    np.savez(path, counts=COUNTS, ids=np.arange(CASES).astype(str), **arrays)
    return path


def test_members_and_samples_are_the_belief(tmp_path: Path) -> None:
    """Both files have the numbers of Python, in any order of the rows."""
    metrics = f"{NAME},ece,posterior_epistemic_loss"
    npz = write_samples(tmp_path / "draws.npz", samples=SAMPLES)
    tables = write_members(tmp_path, SAMPLES)
    asked = ["--metrics", metrics, "--resamples", 30, "-q"]
    run("evaluate", "--samples", npz, *asked, "--out", tmp_path / "a.json")
    named = ["--count-prefix", "count_", *members("--member", tables)]
    run("evaluate", *named, *asked, "--out", tmp_path / "b.json")
    expected = rw.evaluate(BELIEF, LABELS, metrics, resamples=30)
    order = np.random.default_rng(0).permutation(CASES)
    shuffled = rw.evaluate(BELIEF.take(order), LABELS.take(order), metrics, resamples=30)
    for file, like in (("a.json", expected), ("b.json", shuffled)):
        found = Results.from_json(tmp_path / file)
        for name, e in found.items():
            assert e.value == pytest.approx(like[name].value, rel=1e-9)
            assert (e.low, e.high) == pytest.approx((like[name].low, like[name].high), rel=1e-6)


def test_a_table_beside_the_draws_says_which_cases(tmp_path: Path) -> None:
    """It has ids and labels; that its probabilities are not looked at is said."""
    write_members(tmp_path, SAMPLES[:1])
    npz = tmp_path / "draws.npz"
    backwards = np.arange(CASES)[::-1]
    ids = np.array([f"c{i}" for i in backwards])
    np.savez(npz, samples=SAMPLES[:, backwards], ids=ids)
    table = tmp_path / "member_0.csv"
    run("evaluate", table, "--count-prefix", "count_", "--samples", npz, "--metrics", NAME,
        "--resamples", 0, "-q", "--out", tmp_path / "out.json")  # fmt: skip
    found = Results.from_json(tmp_path / "out.json")
    expected = rw.robust_ece_mixture(BELIEF.mean, LABELS, SAMPLES)
    assert found[NAME].value == pytest.approx(expected, rel=1e-9)
    assert any("not those of member_0.csv" in text for text in found.warnings)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--member a.csv", "--member: must be given for each of several draws; got one"),
        ("--member a.csv --member b.csv --samples s.npz", "must be one of them; got both"),
        ("--samples a.csv", "--samples: must be an NPZ file; got a.csv"),
        ("", "missing; give a file, or draws with"),
        ("--samples s.npz --stream", "samples: cannot be used with a stream"),
        ("--samples s.npz --multilabel", "samples: cannot be used with findings"),
    ],
)
def test_what_members_must_be(words: str, message: str) -> None:
    """An error with exit code 2 says which option and what rule."""
    done = CliRunner().invoke(app, ["evaluate", *words.split()])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_members_must_be_of_the_same_cases(tmp_path: Path) -> None:
    """A case that a member lacks, or another number of them without ids, is an error."""
    files = write_members(tmp_path, SAMPLES[:3])
    lines = files[2].read_text().splitlines()
    files[2].write_text("\n".join(lines[:-1]) + "\n")
    words = ["evaluate", "--count-prefix", "count_", *members("--member", files)]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 2
    assert "1 of 120 cases of member_0.csv are not in member_2.csv" in " ".join(done.output.split())
    np.savez(tmp_path / "draws.npz", samples=SAMPLES[:, :7])
    words = ["evaluate", files[0], "--count-prefix", "count_", "--samples", tmp_path / "draws.npz"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 2
    assert "must be of the 120 cases of member_0.csv" in " ".join(done.output.split())


FEATURES = np.stack([DRAWN.std(axis=2), DRAWN.max(axis=2)], axis=2)


@pytest.mark.parametrize("form", ["npz", "tables"])
def test_ensembles_are_calibrated_and_ranked(tmp_path: Path, form: str) -> None:
    """Temperature and α of every draw as in Python: S·N cases of weight 1/S; then the worklist."""
    half, rest = slice(0, 60), slice(60, CASES)
    words: list[Any] = ["--input", "logits", "--alpha", "--features-prefix", "feat_"]
    words += ["--alpha-l2", 0.005, "--resamples", 20, "-q", "--out", tmp_path / "out"]
    for option, rows in (("fit", half), ("apply", rest)):
        folder = tmp_path / option
        folder.mkdir()
        if form == "npz":
            np.savez(folder / "x.npz", logits=DRAWN[:, rows], features=FEATURES[:, rows],
                     counts=COUNTS[rows], ids=np.arange(CASES)[rows].astype(str))  # fmt: skip
            words += [f"--{option}-samples", folder / "x.npz"]
        else:
            for s in range(DRAWS):
                columns = {"case": np.arange(CASES)[rows]}
                columns |= {f"logit_{k}": DRAWN[s, rows, k] for k in range(CLASSES)}
                columns |= {f"feat_{d}": FEATURES[s, rows, d] for d in range(2)}
                columns |= {f"count_{k}": COUNTS[rows, k] for k in range(CLASSES)}
                csv.write_csv(pa.table(columns), folder / f"{s}.csv")
                words += [f"--{option}-member", folder / f"{s}.csv"]
    words += [] if form == "npz" else ["--count-prefix", "count_"]
    run("calibrate", *words)
    copies = np.tile(np.arange(60), DRAWS)
    temperature = rw.TemperatureScaling(input="logits").fit(
        DRAWN[:, half].reshape(-1, CLASSES), LABELS.take(copies), np.full(60 * DRAWS, 1 / DRAWS)
    )
    before, after = (temperature.predict_proba(DRAWN[:, rows]) for rows in (half, rest))
    alpha = rw.AlphaCalibration(l2=0.005, penalty="paper", seed=0)
    alpha.fit(FEATURES[:, half], LABELS.take(np.arange(60)), probs=before)
    belief = alpha.predict(FEATURES[:, rest], probs=after)
    with np.load(tmp_path / "out" / "samples.npz", allow_pickle=False) as kept:
        np.testing.assert_allclose(kept["samples"], after.samples, atol=1e-9)
        np.testing.assert_allclose(kept["concentration"], belief.concentration, rtol=1e-6)
    out = tmp_path / "list.csv"
    run("worklist", "--samples", tmp_path / "out" / "samples.npz", "--out", out, "-q")
    table = csv.read_csv(out).to_pydict()
    expected = np.argsort(-belief.expected_gain(), kind="stable") + 60
    assert [int(name) for name in table["case"][:10]] == expected[:10].tolist()


def test_a_worklist_of_bare_draws(tmp_path: Path) -> None:
    """Draws that differ say themselves what a label would teach; ratings are taken in."""
    files = write_members(tmp_path, SAMPLES)
    out = tmp_path / "list.csv"
    first = csv.read_csv(files[0]).to_pydict()["case"]
    rows = np.array([int(name[1:]) for name in first])
    bare = [tmp_path / f"bare_{file.name}" for file in files]
    for file, copy in zip(files, bare, strict=True):
        whole = csv.read_csv(file)
        kept = [name for name in whole.column_names if not name.startswith("count_")]
        csv.write_csv(whole.select(kept), copy)
    run("worklist", *members("--member", bare), "--out", out, "-q")
    expected = rows[np.argsort(-BELIEF.take(rows).expected_gain(), kind="stable")]
    found = csv.read_csv(out).to_pydict()["case"]
    assert found == [f"c{i}" for i in expected]
    run("worklist", *members("--member", files), "--count-prefix", "count_", "--out", out, "-q")
    after = BELIEF.take(rows).posterior(LABELS.take(rows))
    expected = rows[np.argsort(-after.expected_gain(), kind="stable")]
    assert csv.read_csv(out).to_pydict()["case"] == [f"c{i}" for i in expected]

"""Raters as a sample of a population, in every front end: the same panels, the same digits."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app
from raterwise.inference.raters import MAX_LEFT_OUT, Panels, RaterDraws
from raterwise.inference.settings import Settings
from raterwise.io.manifests import read_manifest
from raterwise.labels import Labels
from raterwise.segmentation import Case

METRICS = "ece,classwise_ece,brier,nll,fleiss_kappa,epistemic_loss,auccc,kde_ece"
FROM_CELLS = {"auccc": 0.02, "kde_ece": 0.02}
"""How far the ends of an interval from fine cells may be off, as parts of its width."""
READERS = ("r0", "r1", "r2", "r3")


def ratings(number: int = 240, readers: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """Return probabilities of three classes, and what readers said, who skip a case at times."""
    random = np.random.default_rng(seed)
    probs = random.dirichlet([1, 1, 1], number)
    truth = (random.random((number, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    agree = random.random((number, readers)) < np.linspace(0.95, 0.6, readers)
    said = np.where(agree, truth[:, None], random.integers(0, 3, (number, readers)))
    said[random.random((number, readers)) < 0.1] = -1
    said[:, 0] = np.where((said < 0).all(axis=1), truth, said[:, 0])
    return probs, said


def write_stream(folder: Path, probs: Any, said: Any) -> Path:
    """Write the cases in parts, a column per reader."""
    columns: dict[str, Any] = {f"prob_{k}": probs[:, k] for k in range(3)}
    columns |= {name: pa.array(said[:, j], mask=said[:, j] < 0) for j, name in enumerate(READERS)}
    columns["patient"] = np.arange(len(probs)) // 3
    pq.write_table(pa.table(columns), folder / "t.parquet", row_group_size=70)
    return folder / "t.parquet"


# panels ------------------------------------------------------------------------------------------


def test_panels_draw_as_many_persons_and_leave_out_each() -> None:
    """Of three persons there are ten panels of three; each is left out once."""
    panels = Panels.of(3, Settings(resamples=2000, seed=4))
    assert all(sum(panel) == 3 for panel in panels.drawn)
    possible = {p for p in product(range(4), repeat=3) if sum(p) == 3}
    assert set(panels.drawn) == possible and len(possible) == 10
    assert panels.left_out == ((0, 1, 1), (1, 0, 1), (1, 1, 0))
    assert len(panels.different) == 13
    assert np.mean(panels.drawn, axis=0) == pytest.approx(1, abs=0.06)
    many = Panels.of(MAX_LEFT_OUT + 50, Settings(resamples=2))
    assert len(many.left_out) == MAX_LEFT_OUT
    assert (np.sum(many.left_out, axis=0) == MAX_LEFT_OUT - 1).all()


@pytest.mark.parametrize("name", ["around", "_linear"])
def test_draws_round_the_jackknife_have_its_error_and_the_seed(name: str) -> None:
    """Without each of four raters: (R - 1) / R Σ (θ₍₋r₎ - mean)² is the variance, 3/4 · 0.0004.

    Student's t of three degrees is wider than that: its quartile is 0.765 standard errors.
    """
    without, error = np.array([0.79, 0.79, 0.81, 0.81]), np.sqrt(3 / 4 * 0.0004)
    draws = [RaterDraws([{}] * 4000, [{}] * 4, 1.0, seed) for seed in (0, 0, 1)]
    each = [
        one.around(0.8, without) - 0.8 if name == "around" else one._linear(without)
        for one in draws
    ]
    quartile = {"around": 0.7649, "_linear": 0.6745}[name] * error
    for found in each:
        assert np.quantile(found, [0.25, 0.75]) == pytest.approx([-quartile, quartile], rel=0.08)
    assert (each[0] == each[1]).all() and (each[0] != each[2]).any()


@pytest.mark.parametrize("unit", ["raters", "both"])
def test_a_stream_resamples_the_raters_that_memory_does(tmp_path: Path, unit: Any) -> None:
    """Same panels, same values; a run that goes on from its checkpoint has the same digits."""
    probs, said = ratings()
    path = write_stream(tmp_path, probs, said)
    asked: dict[str, Any] = {"resamples": 60, "unit": unit, "on_single": "drop"}
    labels = Labels.from_ratings(said, num_classes=3)
    patients = np.arange(len(probs)) // 3
    held = rw.evaluate(probs, labels, METRICS, groups=patients, class_names=list("012"), **asked)
    columns: dict[str, Any] = {"rater_columns": READERS, "group_column": "patient"}
    asked["checkpoint"] = tmp_path / "kept"
    streamed = rw.evaluate_stream(path, METRICS, **asked, **columns)
    again = rw.evaluate_stream(path, METRICS, **asked, **columns)
    assert streamed.data["fingerprint"]["raters"] == held.data["fingerprint"]["raters"]
    assert streamed.data["resampled_raters"] == held.data["resampled_raters"] == 4
    for name, e in held.items():
        found = streamed[name]
        assert (found.low, found.high) == (again[name].low, again[name].high)
        if name not in FROM_CELLS and unit == "raters":  # patients are pooled into other blocks
            assert (found.low, found.high) == pytest.approx((e.low, e.high), rel=1e-9), name
            same = pytest.approx(held.replicates[name], rel=1e-9, abs=1e-9)
            assert streamed.replicates[name] == same, name
        else:
            off = (FROM_CELLS[name] if unit == "raters" else 0.25) * (e.high - e.low)
            assert found.low == pytest.approx(e.low, abs=off), name
            assert found.high == pytest.approx(e.high, abs=off), name
    if unit == "raters":
        found = rw.compare({"held": held, "streamed": streamed}, metrics="brier").differences
        assert abs(found[0].difference) < 1e-12


@pytest.mark.parametrize("unit", ["raters", "both"])
def test_who_rated_nothing_that_counts_is_nobody_in_a_stream_as_in_memory(
    tmp_path: Path, unit: Any
) -> None:
    """An empty column, and one whose only rating is of a case of weight 0: two raters are drawn."""
    probs, said = ratings(150)
    weights = np.r_[np.ones(149), 0]
    said[:, 1] = -1
    said[:-1, 2] = -1
    said[-1] = (-1, -1, 2, -1)
    path = write_stream(tmp_path, probs, said)
    table = pq.read_table(path).append_column("w", pa.array(weights))
    pq.write_table(table, path, row_group_size=50)
    asked: dict[str, Any] = {"resamples": 60, "unit": unit}
    labels = Labels.from_ratings(said, num_classes=3)
    patients = np.arange(150) // 3
    held = rw.evaluate(
        probs, labels, "brier,ece", groups=patients, weights=weights, on_unrated="drop", **asked
    )
    streamed = rw.evaluate_stream(
        path, "brier,ece", rater_columns=READERS, group_column="patient", weight_column="w",
        on_unrated="drop", **asked,
    )  # fmt: skip
    assert held.data["resampled_raters"] == streamed.data["resampled_raters"] == 2
    if unit == "raters":  # patients are pooled into other blocks
        for name, e in held.items():
            same = pytest.approx((e.low, e.high), rel=1e-9)
            assert (streamed[name].low, streamed[name].high) == same, name
    said[:, 3] = -1
    alone = write_stream(tmp_path, probs[:-1], said[:-1])
    with pytest.raises(rw.InvalidInputError, match="needs several raters; one person rated"):
        rw.evaluate_stream(alone, "brier", rater_columns=READERS, on_unrated="drop", **asked)


def test_who_drew_no_mask_is_nobody() -> None:
    """Three names for images of which each names two: the intervals of these two alone."""
    named = [Case(p, m[:2], raters=("a", "b")) for p, m in images()]
    two, three = (
        rw.segmentation.evaluate(named, "brier", unit="raters", resamples=40, raters=roster)
        for roster in (("a", "b"), ("a", "z", "b"))
    )
    assert two.data["resampled_raters"] == three.data["resampled_raters"] == 2
    ends = [(one["brier"].low, one["brier"].high) for one in (two, three)]
    assert ends[0] == ends[1]
    with pytest.raises(rw.InvalidInputError, match="must be among a, z; got b"):
        rw.segmentation.evaluate(named, "brier", raters=("a", "z"), resamples=0)


def test_a_summary_to_merge_tells_no_raters_apart(tmp_path: Path) -> None:
    """A saved summary is made for cases; the message says which unit it takes, and why."""
    path = write_stream(tmp_path, *ratings(60))
    with pytest.raises(rw.InvalidInputError, match=r'unit: must be "cases" .*different persons'):
        rw.evaluate_stream(
            path, "brier", unit="raters", rater_columns=READERS, save_summary=tmp_path / "s.npz"
        )


# images ------------------------------------------------------------------------------------------


def images(seed: int = 0) -> list[tuple[Any, Any]]:
    """Return images of two classes with the masks of three raters."""
    random = np.random.default_rng(seed)
    found = []
    for size in (12, 15, 10, 14):
        field = random.normal(size=(size, size))
        shifts = np.array([-0.4, 0.0, 0.5])[:, None, None]
        masks = field + shifts + random.normal(0, 0.5, (3, size, size)) > 0
        found.append((1 / (1 + np.exp(-2 * field)), masks.astype(np.int64)))
    return found


def test_pooled_images_resample_raters_as_their_voxels_do() -> None:
    """All voxels as cases of a table, each rater a column: the same intervals."""
    held = images()
    names = "ece,brier,fleiss_kappa,classwise_ece"
    asked: dict[str, Any] = {"resamples": 60, "unit": "raters"}
    pooled = rw.segmentation.evaluate(
        [Case(p, m) for p, m in held], names, "pooled", raters=("a", "b", "c"), **asked
    )
    probs = np.concatenate([p.ravel() for p, _ in held])
    said = np.concatenate([m.reshape(3, -1).T for _, m in held])
    voxels = rw.evaluate(probs, Labels.from_ratings(said, num_classes=2), names, **asked)
    for name, e in voxels.items():
        assert (pooled[name].low, pooled[name].high) == pytest.approx((e.low, e.high)), name


def test_the_mean_over_images_without_each_rater_is_its_interval() -> None:
    """Student's interval of the jackknife over three raters, of means that are made one by one."""
    from scipy import stats

    held = images(1)
    made = {}
    for chosen in ((0, 1, 2), (1, 2), (0, 2), (0, 1)):
        kept = [Case(p, m[list(chosen)]) for p, m in held]
        made[chosen] = rw.segmentation.evaluate(kept, "brier", resamples=0)["brier"].value
    without = np.array([made[chosen] for chosen in ((1, 2), (0, 2), (0, 1))])
    error = np.sqrt(2 / 3 * ((without - without.mean()) ** 2).sum())
    asked: dict[str, Any] = {"resamples": 40, "unit": "raters"}
    cases = [Case(p, m, raters=("a", "b", "c")) for p, m in held]
    found = rw.segmentation.evaluate(cases, "brier", **asked)["brier"]
    reach = stats.t.ppf(0.975, 2) * error
    assert (found.low, found.high) == pytest.approx((found.value - reach, found.value + reach))
    turned = [Case(p, m[::-1], raters=("c", "b", "a")) for p, m in held]
    named = rw.segmentation.evaluate(turned, "brier", raters=("a", "b", "c"), **asked)["brier"]
    assert (named.low, named.high) == pytest.approx((found.low, found.high))


def test_who_did_not_draw_every_image_is_left_out_where_he_did() -> None:
    """An image that only one of two raters drew is gone without him; both units have a share."""
    (p0, m0), (p1, m1), (p2, m2), _ = images(2)
    cases = [Case(p0, m0[:2], raters=("a", "b")), Case(p1, m1[:2], raters=("a", "b")),
             Case(p2, m2[:1], raters=("a",))]  # fmt: skip
    found = rw.segmentation.evaluate(cases, "brier", resamples=40, unit="both")
    alone = [Case(p0, m0[1:2]), Case(p1, m1[1:2])], [Case(p, m[:1]) for p, m in images(2)[:3]]
    without = [rw.segmentation.evaluate(one, "brier", resamples=0)["brier"].value for one in alone]
    error = np.sqrt(1 / 2 * ((np.array(without) - np.mean(without)) ** 2).sum())
    by_case = rw.segmentation.evaluate(cases, "brier", resamples=40)
    case_error = np.std(by_case.per_case["brier"], ddof=1) / np.sqrt(3)
    share = error**2 / (error**2 + case_error**2)
    assert found["brier"].rater_share == pytest.approx(share)


def test_agreement_on_images_varies_as_it_does_without_each_rater() -> None:
    """Resampled agreement has the jackknife's error: who is drawn twice agrees with himself."""
    held, names = images(), ("a", "b", "c")
    cases = [Case(p, m, raters=names) for p, m in held]
    found = rw.segmentation.evaluate(cases, "fleiss_kappa", unit="raters", resamples=2000)
    without = []
    for r in range(3):
        rest = [Case(p, np.delete(m, r, axis=0)) for p, m in held]
        alone = rw.segmentation.evaluate(rest, "fleiss_kappa", resamples=0)
        without.append(alone["fleiss_kappa"].value)
    error = np.sqrt(2 / 3 * ((np.array(without) - np.mean(without)) ** 2).sum())
    assert found.replicates["fleiss_kappa"].std() == pytest.approx(error, rel=0.08)


def test_resampled_agreement_is_normal_so_that_models_are_pairs() -> None:
    """What results keep of agreement has the jackknife's error, not the tails of Student's t."""
    probs, said = ratings()
    labels = Labels.from_ratings(said, num_classes=3)
    found = rw.evaluate(
        probs, labels, "fleiss_kappa", unit="raters", resamples=2000, on_single="drop"
    )
    rest = [np.delete(said, r, axis=1) for r in range(4)]
    rated = [one[(one >= 0).any(axis=1)] for one in rest]
    without = np.array(
        [rw.fleiss_kappa(Labels.from_ratings(one, 3), on_single="drop") for one in rated]
    )
    error = np.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())
    assert found.replicates["fleiss_kappa"].std() == pytest.approx(error, rel=0.08)


def test_images_that_do_not_name_raters_are_refused(tmp_path: Path) -> None:
    """Masks in an order are not known persons; a manifest may name them."""
    cases = [Case(p, m) for p, m in images()]
    with pytest.raises(rw.InvalidInputError, match=r"unit: .* who drew which mask.*raters="):
        rw.segmentation.evaluate(cases, "brier", unit="raters")
    with pytest.raises(rw.InvalidInputError, match="raters: must name each of the 3 masks once"):
        rw.segmentation.evaluate(cases, "brier", unit="raters", raters=("a", "b"))
    with pytest.raises(rw.InvalidInputError, match="raters: must differ; got a, a, b"):
        rw.segmentation.evaluate(cases, "brier", unit="raters", raters=("a", "a", "b"))
    named = [Case(p, m, raters=("a", "b", "x")) for p, m in images()]
    with pytest.raises(rw.InvalidInputError, match="raters: must be among a, b, c; got x"):
        rw.segmentation.evaluate(named, "brier", unit="raters", raters=("a", "b", "c"))
    rows = []
    for i, (p, m) in enumerate(images()):
        np.save(tmp_path / f"p{i}.npy", p)
        for r in range(3):
            np.save(tmp_path / f"m{i}_{r}.npy", m[r])
        rows.append([f"c{i}", f"p{i}.npy", f"m{i}_*.npy", "a;b;c"])
    manifest = tmp_path / "manifest.csv"
    with open(manifest, "w", newline="") as file:
        csv.writer(file).writerows([["case", "probabilities", "raters", "rater_names"], *rows])
    assert read_manifest(manifest)[0].rater_names == ("a", "b", "c")
    done = CliRunner().invoke(
        app,
        ["segment", str(manifest), "--metrics", "brier", "--unit", "raters", "--resamples", "40",
         "--checkpoint", str(tmp_path / "kept"), "-q", "--out", str(tmp_path / "r.json")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    saved = rw.Results.from_json(tmp_path / "r.json")["brier"]
    asked: dict[str, Any] = {"resamples": 40, "unit": "raters"}
    memory = rw.segmentation.evaluate(cases, "brier", raters=("a", "b", "c"), **asked)["brier"]
    assert (saved.low, saved.high) == pytest.approx((memory.low, memory.high))
    # Of files in another order, each mask is still of the one whom the manifest names.
    np.save(tmp_path / "m1_0.npy", images()[1][1][2])
    np.save(tmp_path / "m1_2.npy", images()[1][1][0])
    rows[1][-1] = "c;b;a"
    with open(manifest, "w", newline="") as file:
        csv.writer(file).writerows([["case", "probabilities", "raters", "rater_names"], *rows])
    again = rw.segmentation.evaluate(read_manifest(manifest), "brier", **asked)["brier"]
    assert (again.low, again.high) == pytest.approx((memory.low, memory.high))
    manifest.write_text(manifest.read_text().replace("a;b;c", "a;b", 1))
    with pytest.raises(
        rw.InvalidInputError, match="rater_names of data row 1 must name each of its 3"
    ):
        read_manifest(manifest)


# findings ----------------------------------------------------------------------------------------


def answers(number: int = 90, readers: int = 3) -> tuple[Any, Any]:
    """Return probabilities of two findings, and what each reader said of them."""
    random = np.random.default_rng(3)
    probs = random.beta(1, 1, (number, 2))
    said = (random.random((number, 2, readers)) < probs[..., None]).astype(np.int64)
    said[random.random(said.shape) < 0.1] = -1
    said[:, :, 0] = np.where((said < 0).all(axis=2), 0, said[:, :, 0])
    return probs, said


def test_each_finding_resamples_its_raters_and_the_mean_all_of_them() -> None:
    """A finding alone is a table of its own; the mean follows from the means without each rater."""
    from scipy import stats

    probs, said = answers()
    asked: dict[str, Any] = {"metrics": "accuracy", "resamples": 40, "unit": "raters"}
    found = rw.evaluate_multilabel(probs, ratings=said, interval="auto", **asked)
    for i, one in enumerate(found.findings.values()):
        alone = rw.evaluate(probs[:, i], Labels.from_ratings(said[:, i], num_classes=2), **asked)
        ends = one["accuracy"].low, one["accuracy"].high
        assert ends == (alone["accuracy"].low, alone["accuracy"].high)
    without = []
    for r in range(3):
        rest = np.delete(said, r, axis=2)
        seen = [rest[(rest[:, i] >= 0).any(axis=1), i] for i in range(2)]
        shares = []
        for i, one in enumerate(seen):
            right = (one == (probs[(rest[:, i] >= 0).any(axis=1), i] >= 0.5)[:, None]) & (one >= 0)
            shares.append((right.sum(axis=1) / (one >= 0).sum(axis=1)).mean())
        without.append(np.mean(shares))
    error = np.sqrt(2 / 3 * ((np.array(without) - np.mean(without)) ** 2).sum())
    mean = found["accuracy"]
    assert mean.high - mean.value == pytest.approx(stats.t.ppf(0.975, 2) * error)


def test_counts_of_findings_do_not_say_who_said_what() -> None:
    """They are refused where raters are drawn; ratings and counts together are, too."""
    probs, said = answers(20)
    counts = (said == 1).sum(axis=2), (said >= 0).sum(axis=2)
    with pytest.raises(rw.InvalidInputError, match="unit: 'both' needs to know who said what"):
        rw.evaluate_multilabel(probs, *counts, metrics="brier", unit="both")
    with pytest.raises(rw.InvalidInputError, match="ratings: take the place of positives"):
        rw.evaluate_multilabel(probs, *counts, metrics="brier", ratings=said)
    with pytest.raises(rw.InvalidInputError, match="positives and raters, or ratings: must be"):
        rw.evaluate_multilabel(probs, metrics="brier")
    with pytest.raises(rw.InvalidInputError, match="ratings: must be 1, 0, or -1 for none; got 2"):
        rw.evaluate_multilabel(probs, metrics="brier", ratings=said + 1)
    asked: dict[str, Any] = {"metrics": "brier", "resamples": 20}
    gaps = np.where(said < 0, np.nan, said)
    one = rw.evaluate_multilabel(probs, *counts, **asked)["brier"]
    other = rw.evaluate_multilabel(probs, ratings=gaps, **asked)["brier"]
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_findings_in_files_know_their_readers(tmp_path: Path, layout: str) -> None:
    """A column per reader and finding, or a row per rating: as the arrays in memory."""
    probs, said = answers(60)
    with open(tmp_path / "p.csv", "w", newline="") as file:
        rows = [[f"c{i}", *map(repr, row.tolist())] for i, row in enumerate(probs)]
        csv.writer(file).writerows([["case", "prob_mass", "prob_edema"], *rows])
    places = list(product(("mass", "edema"), range(3)))
    with open(tmp_path / "r.csv", "w", newline="") as file:
        write = csv.writer(file)
        if layout == "wide":
            write.writerow(["case", *(f"reader_{r}_{name}" for name, r in places)])
            for i, row in enumerate(said.reshape(60, -1)):
                write.writerow([f"c{i}", *("" if v < 0 else v for v in row.tolist())])
        else:
            write.writerow(["case", "reader", "finding", "label"])
            for i, (f, r) in product(range(60), product(range(2), range(3))):
                if said[i, f, r] >= 0:
                    write.writerow([f"c{i}", f"dr {r}", ("mass", "edema")[f], said[i, f, r]])
    command = f"evaluate {tmp_path}/p.csv --ratings {tmp_path}/r.csv --multilabel --metrics brier"
    command += f" --unit both --resamples 30 -q --out {tmp_path}/r.json"
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    saved = rw.Results.from_json(tmp_path / "r.json")["brier"]
    held = rw.evaluate_multilabel(probs, ratings=said, metrics="brier", unit="both", resamples=30)
    ends = held["brier"].low, held["brier"].high
    assert (saved.low, saved.high) == pytest.approx(ends, rel=1e-6)


# comparisons -------------------------------------------------------------------------------------


def test_compare_takes_the_unit_from_predictions_and_from_results() -> None:
    """Both ways give the same differences; another unit than that of results is refused."""
    probs, said = ratings(80)
    labels = Labels.from_ratings(said, num_classes=3)
    models = {"a": probs, "b": probs[:, [1, 0, 2]]}
    asked: dict[str, Any] = {"metrics": "brier,ece", "resamples": 30, "unit": "both"}
    found = rw.compare(models, labels, **asked)
    results = {name: rw.evaluate(p, labels, **asked) for name, p in models.items()}
    assert rw.compare(results, unit="both").differences == found.differences
    with pytest.raises(rw.InvalidInputError, match="unit: the results were made with 'both'"):
        rw.compare(results, unit="raters")


def test_differences_over_new_panels_are_covered() -> None:
    """Three raters with ways of their own, drawn anew: 95% of the intervals hold the truth.

    Of the epistemic loss, which compares raters with each other, and of the Brier score. The cases
    stay as they are; without Student's t of two degrees of freedom a third would miss.
    """
    random = np.random.default_rng(8)
    cases, panels = 60, 150
    z = random.normal(size=cases)
    models = {"a": 1 / (1 + np.exp(-z)), "b": 1 / (1 + np.exp(-0.4 * z - 0.3))}

    def panel(raters: int, source: np.random.Generator) -> Any:
        """Return what raters say whose thresholds and slopes differ."""
        way = z[:, None] * source.lognormal(0, 0.3, raters) + source.normal(0, 0.8, raters)
        return (source.random((cases, raters)) < 1 / (1 + np.exp(-way))).astype(np.int64)

    metrics = "brier,epistemic_loss"
    many = Labels.from_ratings(panel(4000, random), num_classes=2)
    truth = {
        m: rw.evaluate(models["a"], many, m, resamples=0)[m].value
        - rw.evaluate(models["b"], many, m, resamples=0)[m].value
        for m in metrics.split(",")
    }
    held = dict.fromkeys(truth, 0)
    for i in range(panels):
        labels = Labels.from_ratings(panel(3, np.random.default_rng([9, i])), num_classes=2)
        found = rw.compare(models, labels, metrics, resamples=60, unit="raters")
        for d in found.differences:
            held[d.metric] += d.low <= truth[d.metric] <= d.high
    for metric, count in held.items():
        assert count >= 0.89 * panels, (metric, count)


def test_raters_who_lean_one_way_prove_no_error() -> None:
    """Three readers who lean: their panel is off, the model is not, and the interval knows it.

    The probabilities are those over all readers. A test at zero that takes the three for all would
    exclude 0 in half of the test sets; of a model that is off by much, and readers who
    agree, it still does.
    """
    nodes, share = np.polynomial.hermite_e.hermegauss(21)
    excluded = {"classwise_ece": 0, "calibration_error": 0}
    for seed in range(12):
        random = np.random.default_rng([21, seed])
        z = random.normal(-0.5, 1.5, 800)
        probs = 1 / (1 + np.exp(-z[:, None] - 0.8 * nodes)) @ share / share.sum()
        lean = random.normal(0, 0.8, 3)
        said = (random.random((800, 3)) < 1 / (1 + np.exp(-z[:, None] - lean))).astype(np.int64)
        labels = Labels.from_ratings(said, num_classes=2)
        found = rw.evaluate(probs, labels, [*excluded], unit="both", resamples=100, seed=seed)
        for name in excluded:
            excluded[name] += found[name].low > 0
    assert max(excluded.values()) <= 2, excluded
    said = (random.random((800, 3)) < 1 / (1 + np.exp(-z[:, None] - lean / 10))).astype(np.int64)
    labels = Labels.from_ratings(said, num_classes=2)
    off = rw.evaluate(0.98 - 0.3 * probs, labels, "classwise_ece", unit="both", resamples=100)
    assert off["classwise_ece"].low > 0.1


def test_values_round_the_estimate_are_as_far_apart_as_the_jackknife_says() -> None:
    """Without each of four raters 0.4, 0.5, 0.6, 0.7: an error of sqrt(3/4 · 0.05), 3 degrees."""
    draws = RaterDraws([{}] * 20_000, [{}] * 4, 1.0, seed=0)
    found = draws.around(0.5, np.array([0.4, 0.5, 0.6, 0.7]))
    quarter = 0.7648923 * np.sqrt(0.75 * 0.05)  # Student's third quartile, 3 degrees of freedom
    assert np.quantile(found, [0.25, 0.75]) == pytest.approx(
        [0.5 - quarter, 0.5 + quarter], abs=6e-3
    )
    # Student's 0.975 quantile of 3 degrees over the normal one: 3.182446 / 1.959964
    assert draws.expansion(0.95) == pytest.approx(3.182446 / 1.959964, rel=1e-5)


# who the raters were -----------------------------------------------------------------------------


def test_the_provenance_of_every_source_names_the_raters(tmp_path: Path) -> None:
    """Memory, a stream, images and findings say who rated, as the caller told them."""
    probs, said = ratings(60)
    asked: dict[str, Any] = {"resamples": 0}
    case, reader = np.nonzero(said >= 0)
    labels = Labels.from_long(case, np.array(READERS)[reader], said[case, reader], num_classes=3)
    found = {"memory": rw.evaluate(probs, labels, "brier", **asked).provenance}
    path = write_stream(tmp_path, probs, said)
    kept: dict[str, Any] = {"rater_columns": READERS, "checkpoint": tmp_path / "kept"}
    for name in ("stream", "stream again"):  # which reads what the first run kept
        found[name] = rw.evaluate_stream(path, "brier", **asked, **kept).provenance
    for name, reduction in (("images", "per_case"), ("pooled", "pooled")):
        images_ = [Case(p, [*m, m[0]]) for p, m in images()]
        found[name] = rw.segmentation.evaluate(
            images_, "brier", reduction, raters=READERS, **asked
        ).provenance
    for name, provenance in found.items():
        assert sorted(provenance["raters"]) == list(READERS), name


def test_images_name_their_raters_where_nobody_else_does() -> None:
    """Raters whom the images name are told, each once; one image without names, and none are."""
    (p, m), (q, n), *_ = images()
    named = [Case(p, m, raters=("ann", "ben", "cat")), Case(q, n[:2], raters=("ben", "dan"))]
    told = rw.segmentation.evaluate(named, "brier", resamples=0).provenance["raters"]
    assert told == ["ann", "ben", "cat", "dan"]
    some = [named[0], Case(q, n)]
    found = rw.segmentation.evaluate(some, "brier", resamples=0).provenance["raters"]
    assert found == "anonymous"


def test_a_saved_summary_names_no_rater(tmp_path: Path) -> None:
    """What is sent to others has no names, and merged results say so."""
    path, kept = write_stream(tmp_path, *ratings(60)), tmp_path / "s.npz"
    here = rw.evaluate_stream(
        path, "brier", resamples=0, rater_columns=READERS, save_summary=kept
    ).provenance["raters"]
    assert here == list(READERS)
    done = CliRunner().invoke(app, ["merge", str(kept), "--out", str(tmp_path / "m.json"), "-q"])
    assert done.exit_code == 0, done.output
    assert rw.Results.from_json(tmp_path / "m.json").provenance["raters"] == "anonymous"
    assert b"r3" not in np.load(kept)["header"].tobytes()


def test_the_command_line_names_the_raters_of_images_and_findings(tmp_path: Path) -> None:
    """Masks have the names of --raters, in any unit; answers those of their columns or rows."""
    np.save(tmp_path / "p.npy", np.array([[0.2, 0.8], [0.6, 0.9]]))
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.array([[0, 1], [1, 1]]))
    (tmp_path / "m.csv").write_text("case,probabilities,raters\nc1,p.npy,a.npy;b.npy\n")
    (tmp_path / "p.csv").write_text("case,prob_mass\nx,0.2\ny,0.7\n")
    (tmp_path / "wide.csv").write_text("case,reader_ann_mass,reader_ben_mass\nx,0,1\ny,1,1\n")
    (tmp_path / "long.csv").write_text(
        "case,rater,finding,rating\nx,ann,mass,0\nx,ben,mass,1\ny,ann,mass,1\n"
    )
    (tmp_path / "label.csv").write_text("case,label_mass\nx,0\ny,1\n")
    segment = f"segment {tmp_path}/m.csv --raters"
    finding = f"evaluate {tmp_path}/p.csv --multilabel --ratings {tmp_path}"
    expected = {
        f"{segment} ann,ben": ["ann", "ben"],
        f"{finding}/wide.csv": ["reader_ann", "reader_ben"],
        f"{finding}/long.csv": ["ann", "ben"],
        f"{finding}/label.csv": "anonymous",
    }
    for words, names in expected.items():
        out = tmp_path / "out.json"
        told = [*words.split(), *f"--metrics brier --resamples 0 -q --out {out}".split()]
        done = CliRunner().invoke(app, told)
        assert done.exit_code == 0, done.output
        assert rw.Results.from_json(out).provenance["raters"] == names, words
        out.unlink()
    done = CliRunner().invoke(app, [*f"{segment} ann -q --metrics brier".split()])
    assert done.exit_code == 2
    assert "must name each of the 2 masks once; got ann" in " ".join(done.output.split())

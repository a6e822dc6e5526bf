"""Parts instead of the whole: the same numbers, stated bounds, and memory that does not grow."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from numpy.typing import NDArray
from typer.testing import CliRunner

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.cli.app import app
from raterwise.evaluation.request import Request
from raterwise.inference.measures import Measure
from raterwise.inference.passes import Pass
from raterwise.inference.settings import Settings
from raterwise.kernels._threads import with_threads
from raterwise.predictions import Predictions
from raterwise.questions import Question, ScoredCases
from raterwise.streaming.digests import STREAM_UNITS, blocks_of_cases, blocks_of_groups
from raterwise.streaming.evaluation import evaluate_digest
from raterwise.streaming.in_process import done_ahead
from raterwise.streaming.parts import StreamColumns, parts_of
from raterwise.streaming.saved import Checkpoint, load_saved, save_digest
from raterwise.summaries import SortedPlan, SortedScores
from raterwise.summaries.cells import CellPlan, CellSums, coarse_cells, fine_cells
from raterwise.summaries.digest import Digest, additions, digest_of, merged_in_order

Array = NDArray[Any]
runner = CliRunner()
ROWS = [row for row in CATALOG.values() if not row.needs_belief]
NAMES = [row.name for row in ROWS]
PLANS = Request.of(NAMES).plans(bounded=True)


def in_cells(cases: ScoredCases) -> CellSums:
    """The cells of cases that are scored already."""
    cells = CellPlan(Question()).empty(2)
    cells.take_in(cases)
    return cells


def request(**settings: Any) -> Request:
    """Return a request of every metric of probabilities."""
    return Request.of(NAMES, settings=Settings(**settings))


def scored(kind: str, cases: int = 400, seed: int = 0) -> ScoredCases:
    """Return scored cases: spread, saturated as float32 confidences are, tied, or crowded."""
    random = np.random.default_rng([seed, cases])
    z = random.beta(2, 1, cases)
    if kind == "saturated":
        z = (1 - random.exponential(1e-4, cases).clip(0, 0.5)).astype(np.float32)
        z[random.random(cases) < 0.3] = 1.0
    elif kind == "tied":
        z = random.integers(0, 11, cases) / 10
    elif kind == "crowded":  # everything within a few cells
        z = 0.7 + random.random(cases) * 1e-3
    raters = random.integers(1, 6, cases)
    z = np.asarray(z, np.float64)
    mu = random.binomial(raters, 0.9 * z) / raters
    return ScoredCases(z[:, None], mu[:, None], raters.astype(float))


def table(cases: int, seed: int = 0) -> pa.Table:
    """Return a table of three classes, three raters and fifty patients."""
    random = np.random.default_rng(seed)
    probs = random.dirichlet([0.5, 0.5, 0.5], cases)
    draws = random.random((3, cases, 1))
    labels = (probs.cumsum(axis=1) > draws).argmax(axis=2)
    columns = {f"prob_{name}": probs[:, k] for k, name in enumerate("abc")}
    columns |= {f"r{r}": label for r, label in enumerate(labels)}
    columns["patient"] = random.integers(0, 50, cases)
    return pa.table(columns)


def part(frame: pa.Table) -> Predictions:
    """Return the predictions of a table, an independent way to them."""
    probs = np.stack([frame[f"prob_{name}"].to_numpy() for name in "abc"], axis=1)
    ratings = np.stack([frame[f"r{r}"].to_numpy() for r in range(3)], axis=1)
    return Predictions.of(probs, rw.Labels.from_ratings(ratings, num_classes=3))


def evaluate(*arguments: Any) -> Any:
    """Run `raterwise evaluate`."""
    return runner.invoke(app, ["evaluate", *map(str, arguments)])


def test_streamed_curves_are_those_of_the_cases(tmp_path: Path) -> None:
    """Curves for the report come with a stream: bins exactly, thresholds within a fine cell."""
    frame = table(3000)
    pq.write_table(frame, tmp_path / "t.parquet", row_group_size=500)
    streamed = rw.evaluate_stream(tmp_path / "t.parquet", rater_prefix="r", resamples=20)
    whole = part(frame)
    plain = rw.evaluate(whole.probs, whole.labels, class_names=list("abc"), resamples=20)
    assert set(streamed.curves) == set(plain.curves)
    for mine, other in (
        (streamed.curves["top_label"], plain.curves["top_label"]),
        (streamed.curves["per_class"][2], plain.curves["per_class"][2]),
        (streamed.curves["disagreement"], plain.curves["disagreement"]),
    ):
        assert mine["name"] == other["name"] and mine["cases"] == other["cases"]
        seen = [i for i, n in enumerate(other["cases"]) if n]
        for column in ("predicted", "observed"):
            expected = [other[column][i] for i in seen]
            assert [mine[column][i] for i in seen] == pytest.approx(expected)
    curve, confidence = streamed.curves["thresholds"], whole.probs.max(axis=1)
    assert curve["accepted_cases"][-1] == 3000
    for at, accepted in zip(curve["thresholds"][1:], curve["accepted_cases"][1:], strict=True):
        # A threshold is the mean score of a cell, which is narrower than 1 / 5040.
        low, high = ((confidence >= at + d).sum() for d in (1 / 5040, -1 / 5040))
        assert low <= accepted <= high


def test_a_streamed_kernel_error_keeps_its_deviations() -> None:
    """Smoothing loses none of Σ w(μ - z), by hand, where cells stand for scores as well."""
    random = np.random.default_rng(0)
    p = random.uniform(0.6, 0.99, 400)
    right = random.random(400) < p - 0.2
    predictions = Predictions.of(np.stack((1 - p, p), axis=1), right.astype(int))
    wanted = Request.of("kde_ece")
    asked = wanted.asked
    pass_ = Pass(digest_of(predictions, wanted.plans(bounded=True)), asked, Settings(resamples=0))
    table = Measure(*asked["kde_ece"], pass_).table
    assert table.deviation.sum() == pytest.approx((right - p).sum(), abs=1e-9)


# fine cells ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spread", "saturated", "tied", "crowded"])
@pytest.mark.parametrize("name", [row.name for row in ROWS if row.of_cells is not None])
def test_the_bound_holds(name: str, kind: str) -> None:
    """A metric of cells is within its bound of the metric of the sorted scores themselves."""
    row = CATALOG[name]
    own = row.with_defaults({"method": "exact", "estimator": "plugin"})  # weights are unequal
    for seed in range(3):
        cases = scored(kind, seed=seed)
        exact = SortedScores(SortedPlan(Question()), 1, 1, (cases,))
        cells = in_cells(cases)
        if "clip" in row.options and kind in ("saturated", "tied"):  # log odds of 0 and 1
            for summary in (cells, exact):
                with pytest.raises(rw.UndefinedMetricError, match="exactly 0 or 1"):
                    summary.value(row, own)
            continue
        value, bound = cells.value(row, own)
        bound = bound or 0.0  # None: sums, which cells do not change
        assert abs(value - row.estimate(exact, own)) <= bound + 1e-12
        if kind == "tied" and name != "kde_ece":
            assert bound <= 1e-12  # a cell of equal scores hides nothing


def test_cells_count_what_is_in_them() -> None:
    """Every sum of a fine cell is that of the cases between its edges, by a loop."""
    cases = scored("saturated", 200)
    cells = in_cells(cases)
    edges, z, w = fine_cells(), cases.z[:, 0], cases.weights
    for c in np.flatnonzero(cells.fine[0, :, 0]):
        last = c == len(edges) - 2
        inside = (z >= edges[c]) & ((z < edges[c + 1]) | last)
        d, mu = z[inside] - edges[c], cases.mu[inside, 0]
        each = (1, w[inside], w[inside] ** 2, w[inside] * mu, w[inside] * mu**2,
                w[inside] ** 2 * mu, w[inside] * d, w[inside] * d**2, w[inside] * mu * d,
                w[inside] * mu * d**2)  # fmt: skip
        sums = [np.sum(np.broadcast_to(term, inside.sum())) for term in each]
        assert cells.fine[0, c] == pytest.approx(sums)
        assert (cells.lowest[0, c], cells.highest[0, c]) == (d.min(), d.max())
    assert cells.fine[0, :, 0].sum() == 200
    coarse = np.histogram(z, coarse_cells(), weights=w)[0]
    assert cells.per_unit[0, 0, :, 1] == pytest.approx(coarse)


@pytest.mark.parametrize("pieces", [2, 7])
def test_split_and_merge_is_the_whole(pieces: int) -> None:
    """Cells of the parts add up to the cells of all, to the last bits of float64."""
    cases = scored("spread", 300)
    whole = in_cells(cases)
    bounds = np.linspace(0, 300, pieces + 1).astype(int)
    parts = [
        in_cells(ScoredCases(cases.z[a:b], cases.mu[a:b], cases.weights[a:b]))
        for a, b in itertools.pairwise(bounds)
    ]
    merged = parts[0]
    for other in parts[1:]:
        merged = merged + other
    np.testing.assert_allclose(merged.fine, whole.fine, rtol=1e-13)
    np.testing.assert_array_equal(merged.lowest, whole.lowest)
    with pytest.raises(rw.MergeError, match="different questions"):
        _ = merged + CellPlan(Question("positive")).empty(2)


# digests ------------------------------------------------------------------------------------


def test_a_stream_has_the_values_of_the_whole() -> None:
    """Every metric of parts is that of all cases in memory, within its bound."""
    frame = table(900)
    parts = [part(frame.slice(a, 300)) for a in range(0, 900, 300)]
    merged = merged_in_order(digest_of(p, PLANS) for p in parts)
    found = evaluate_digest(merged, request(resamples=0))
    whole = part(frame)
    plain = rw.evaluate(whole.probs, whole.labels, [row.name for row in ROWS], resamples=0)
    for name, estimate in found.items():
        bound = (estimate.bound or 0) + 1e-12
        assert estimate.value == pytest.approx(plain[name].value, abs=bound)
    assert found.data["cases"] == 900
    assert found.data["ratings"] == 2700


def test_intervals_of_a_stream_are_those_of_blocks() -> None:
    """With as many patients as blocks hold one each, intervals are those of the patients."""
    frame = table(600)
    groups = blocks_of_groups(frame["patient"].to_pylist(), seed=0)
    merged = digest_of(part(frame), PLANS, units=groups, number=STREAM_UNITS, unit="patients")
    found = evaluate_digest(merged, request(resamples=60))
    whole = part(frame)
    # The same blocks, in the same order, as groups of a plain evaluation.
    order = np.argsort(groups, kind="stable")
    labels = whole.labels.take(order)
    plain = rw.evaluate(
        whole.probs[order], labels, "ece,brier,epistemic_loss", groups=groups[order], resamples=60
    )
    for name, estimate in plain.items():
        ends = (estimate.low, estimate.high)
        assert (found[name].low, found[name].high) == pytest.approx(ends, abs=1e-9)


def test_the_order_of_addition_is_fixed() -> None:
    """Which digests are added to which hangs on their number alone, here and on a cluster."""

    class Text(str):
        def __add__(self, other: str) -> Text:
            return Text(f"({self}{other})")

    for number in (1, 2, 31, 32, 33, 64, 65, 100):
        leaves: dict[int, Any] = {i: Text(f"{i}.") for i in range(number)}
        expected = dict(leaves)
        for left, right in additions(number):
            expected[left] = expected[left] + expected[right]
        assert merged_in_order(leaves.values()) == expected[0]
    with pytest.raises(rw.InvalidInputError, match="at least one"):
        merged_in_order([])


def test_a_saved_digest_comes_back(tmp_path: Path) -> None:
    """Every sum, plan and fact is the same after a file; unlike digests are refused."""
    frame = table(200)
    blocks = blocks_of_cases(0, 200, seed=3)
    whole = digest_of(part(frame), PLANS, units=blocks, number=STREAM_UNITS)
    save_digest(tmp_path / "a.npz", whole, {"seed": 3})
    saved = load_saved(tmp_path / "a.npz")
    back = saved.digest
    assert saved.options == {"seed": 3}
    assert set(back.summaries) == set(whole.summaries)
    assert back.facts == whole.facts
    for plan, summary in whole.summaries.items():
        for name in ("sums", "fine", "lowest", "highest", "per_unit"):
            if hasattr(summary, name):
                np.testing.assert_array_equal(
                    getattr(back.summaries[plan], name), getattr(summary, name)
                )
    assert (back + whole).facts.cases == 400
    other = digest_of(part(frame), PLANS)
    with pytest.raises(rw.MergeError, match="blocks of cases"):
        _ = back + other
    with pytest.raises(rw.MergeError, match="different metrics or options"):
        _ = other + digest_of(part(frame), PLANS[:3])
    binary = Predictions.of(np.full(5, 0.5), np.zeros(5, int))
    with pytest.raises(rw.MergeError, match="2 classes"):
        _ = other.facts + digest_of(binary, PLANS).facts


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 cut off"])
def test_damaged_summaries_are_named(tmp_path: Path, content: bytes) -> None:
    """A file that is no summary, or half of one, is an error with its name."""
    (tmp_path / "s.npz").write_bytes(content)
    with pytest.raises(rw.InvalidInputError, match=r"s\.npz: is not a summary"):
        load_saved(tmp_path / "s.npz")
    np.savez(tmp_path / "other.npz", probs=np.zeros(3))
    with pytest.raises(rw.InvalidInputError, match=r"other\.npz: is not a summary"):
        load_saved(tmp_path / "other.npz")
    with pytest.raises(rw.InvalidInputError, match="no such file"):
        load_saved(tmp_path / "missing.npz")


def test_a_flipped_byte_in_a_summary_is_found(tmp_path: Path) -> None:
    """Whatever zlib or NumPy raise on damaged content, the message names the file."""
    path = save_digest(tmp_path / "s.npz", digest_of(part(table(50)), PLANS))
    whole = path.read_bytes()
    messages = []
    for at in range(0, len(whole), max(1, len(whole) // 150)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            load_saved(path)
        except rw.InvalidInputError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all("s.npz" in message for message in messages)


def test_blocks_do_not_depend_on_the_parts() -> None:
    """The block of a case or patient is the same however the stream is cut."""
    whole = blocks_of_cases(0, 3000, seed=5)
    pieces = [blocks_of_cases(a, 700, seed=5) for a in range(0, 2800, 700)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole[:2800])
    counts = np.bincount(whole, minlength=STREAM_UNITS)
    assert set(counts) <= {3000 // STREAM_UNITS, 3000 // STREAM_UNITS + 1}
    names = [f"p{i}" for i in range(100)]
    together = blocks_of_groups(names, seed=1)
    assert together.tolist() == [blocks_of_groups([n], seed=1)[0] for n in names]
    assert len(set(together.tolist())) > 80


# reading ahead ------------------------------------------------------------------------------


def test_reading_ahead_keeps_order_and_passes_errors_on() -> None:
    """Items come in order; an error comes where its item would have; the thread ends."""

    def source() -> Any:
        yield from range(5)
        raise ValueError("the sixth")

    def slow_at_first(i: int) -> int:
        time.sleep(0.02 * (i == 0))
        if i == 4:
            raise ValueError("the fifth")
        return i

    for workers in (0, 1, 3):
        ahead = done_ahead(slow_at_first, range(6), workers)
        assert [next(ahead) for _ in range(4)] == [0, 1, 2, 3]
        with pytest.raises(ValueError, match="the fifth"):
            next(ahead)
    with pytest.raises(ValueError, match="the sixth"):
        list(done_ahead(str, source(), 2))
    begun: list[int] = []
    stopped = done_ahead(begun.append, iter(range(1000)), 2)
    assert next(stopped) is None
    stopped.close()
    assert len(begun) < 10
    names = [thread.name for thread in threading.enumerate()]
    assert not any("raterwise-ahead" in name for name in names)


# the command --------------------------------------------------------------------------------


def test_evaluate_streams_parquet(tmp_path: Path) -> None:
    """`raterwise evaluate --stream` gives the values of the same file in memory."""
    pq.write_table(table(1000), tmp_path / "t.parquet", row_group_size=170)
    shared = (tmp_path / "t.parquet", "--rater-columns", "r0,r1,r2", "--resamples", 0)
    names = ("--metrics", ",".join(row.name for row in ROWS))
    streamed = evaluate(*shared, *names, "--stream", "--out", tmp_path / "s.json")
    assert streamed.exit_code == 0, streamed.output
    found = json.loads((tmp_path / "s.json").read_text())["metrics"]
    whole = part(table(1000))
    plain = rw.evaluate(whole.probs, whole.labels, [row.name for row in ROWS], resamples=0)
    for name, estimate in plain.items():
        bound = (found[name]["bound"] or 0) + 1e-12
        assert found[name]["value"] == pytest.approx(estimate.value, abs=bound)


def test_parts_are_summarised_apart_and_merged(tmp_path: Path) -> None:
    """Two files summarised apart merge to the results of both streamed together."""
    frame = table(900)
    options = ("--rater-columns", "r0,r1,r2", "--group-column", "patient", "--resamples", 50, "-q")
    for k, rows in enumerate((frame.slice(0, 400), frame.slice(400))):
        pq.write_table(rows, tmp_path / f"t{k}.parquet", row_group_size=200)
        saved = ("--save-summary", tmp_path / f"s{k}.npz")
        assert evaluate(tmp_path / f"t{k}.parquet", *options, *saved).exit_code == 0
    both = evaluate(tmp_path / "t?.parquet", *options, "--stream", "--out", tmp_path / "b.json")
    assert both.exit_code == 0, both.output
    merge = ["merge", str(tmp_path / "s*.npz"), "--resamples", "50", "-q"]
    done = runner.invoke(app, [*merge, "--out", str(tmp_path / "m.json")])
    assert done.exit_code == 0, done.output
    merged, streamed = (json.loads((tmp_path / f"{f}.json").read_text()) for f in "mb")
    for name, estimate in streamed["metrics"].items():
        for field in ("value", "low", "high"):
            expected = pytest.approx(estimate[field], rel=1e-9, abs=1e-12)
            assert merged["metrics"][name][field] == expected
    # A summary from elsewhere names no patient: they add up, and raters are not compared by them.
    apart = {
        "patients",
        "fingerprint",
        "exchangeability",
        "raters_not_compared",
        "verdict",
        "readers",
    }
    assert {k: v for k, v in merged["data"].items() if k not in apart} == {
        k: v for k, v in streamed["data"].items() if k not in apart
    }
    assert (merged["data"]["patients"], streamed["data"]["patients"]) == (100, 50)
    told = "the 2 summaries do not name their 100 patients"
    assert any(told in warning for warning in merged["warnings"])
    assert not any("summaries" in warning for warning in streamed["warnings"])
    with pytest.raises(rw.InvalidInputError, match=r"other numbers of summaries.*: 2 and 1"):
        rw.compare({f: rw.Results.from_json(tmp_path / f"{f}.json") for f in "mb"})
    other = ("--save-summary", tmp_path / "s_other.npz", "--bins", 10)
    assert evaluate(tmp_path / "t0.parquet", *options, *other).exit_code == 0
    refused = runner.invoke(app, ["merge", *(str(tmp_path / f"s{k}.npz") for k in ("0", "_other"))])
    assert refused.exit_code == 2
    assert "different bins: 15 and 10" in refused.stderr
    twice = runner.invoke(app, ["merge", str(tmp_path / "s0.npz"), str(tmp_path / "s?.npz")])
    assert twice.exit_code == 2 and "got s0.npz twice" in twice.stderr


def test_a_first_version_summary_merges_with_one_of_today(tmp_path: Path) -> None:
    """A file from before there were options of metrics was made with none: it can be added."""
    frame = table(300)
    options = ("--rater-columns", "r0,r1,r2", "--resamples", 0, "--metrics", "ece", "-q")
    for k, rows in enumerate((frame.slice(0, 100), frame.slice(100))):
        pq.write_table(rows, tmp_path / f"t{k}.parquet")
        saved = ("--save-summary", tmp_path / f"s{k}.npz")
        assert evaluate(tmp_path / f"t{k}.parquet", *options, *saved).exit_code == 0
    with np.load(tmp_path / "s0.npz") as content:
        arrays = dict(content)
    header = json.loads(bytes(arrays["header"]))
    header["version"] = 1
    del header["options"]["options"]
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(tmp_path / "s0.npz", **arrays)
    for order in ("01", "10"):
        merge = ["merge", *(str(tmp_path / f"s{k}.npz") for k in order), "--resamples", "0", "-q"]
        done = runner.invoke(app, [*merge, "--out", str(tmp_path / "m.json")])
        assert done.exit_code == 0, done.output
        found = json.loads((tmp_path / "m.json").read_text())["metrics"]["ece"]["value"]
        whole = part(frame)
        assert found == pytest.approx(rw.ece(whole.probs, whole.labels), abs=1e-12)


def test_a_summary_without_blocks_has_no_intervals(tmp_path: Path) -> None:
    """Where intervals are asked of a summary that was saved without resampling, it is said."""
    pq.write_table(table(200), tmp_path / "t.parquet")
    options = ("--rater-columns", "r0,r1,r2", "--metrics", "ece", "--resamples", 0, "-q")
    saved = evaluate(tmp_path / "t.parquet", *options, "--save-summary", tmp_path / "s.npz")
    assert saved.exit_code == 0, saved.output
    command = ["merge", str(tmp_path / "s.npz"), "-q", "--out", str(tmp_path / "m.json")]
    assert runner.invoke(app, command).exit_code == 0
    found = json.loads((tmp_path / "m.json").read_text())
    assert found["metrics"]["ece"]["low"] is None
    assert any("no intervals" in warning for warning in found["warnings"])


def test_evaluate_streams_zarr(tmp_path: Path) -> None:
    """A Zarr group with an array per column streams as a table does."""
    frame = table(500)
    group = zarr.open_group(str(tmp_path / "t.zarr"), mode="w")
    for name in frame.column_names:
        group.create_array(name, data=frame[name].to_numpy(), chunks=(64,))
    out = tmp_path / "z.json"
    done = evaluate(
        tmp_path / "t.zarr", "--stream", "--rater-columns", "r0,r1,r2", "--metrics", "ece,brier",
        "--resamples", 0, "--out", out,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    whole = part(frame)
    found = json.loads(out.read_text())["metrics"]
    assert found["ece"]["value"] == pytest.approx(rw.ece(whole.probs, whole.labels))
    assert found["brier"]["value"] == pytest.approx(rw.brier(whole.probs, whole.labels))


def test_a_damaged_zarr_store_is_named(tmp_path: Path) -> None:
    """A damaged chunk, an array that is no column and an empty folder are errors in one line."""
    frame, store = table(200), tmp_path / "t.zarr"
    group = zarr.open_group(str(store), mode="w")
    for name in frame.column_names:
        group.create_array(name, data=frame[name].to_numpy(), chunks=(64,))
    options = ("--stream", "--rater-columns", "r0,r1,r2", "--metrics", "ece", "-q")
    assert evaluate(store, *options).exit_code == 0
    chunk = next(f for f in (store / "r1").rglob("*") if f.is_file() and f.suffix != ".json")
    chunk.write_bytes(b"no chunk of anything")
    done = evaluate(store, *options)
    assert done.exit_code == 2 and "t.zarr, rows from 0: 'r1' cannot be read" in done.stderr
    group.create_array("features", data=np.zeros((200, 4)))
    done = evaluate(store, *options)
    assert done.exit_code == 2 and "'features' is (200, 4)" in done.stderr
    (tmp_path / "empty.zarr").mkdir()
    done = evaluate(tmp_path / "empty.zarr", *options)
    assert done.exit_code == 2 and "empty.zarr: cannot be read as Zarr" in done.stderr


def test_a_name_that_is_there_is_no_pattern(tmp_path: Path) -> None:
    """t[1].parquet is itself, not t1.parquet; a file that is named twice is not counted twice."""
    pq.write_table(table(50), tmp_path / "t[1].parquet")
    pq.write_table(table(70), tmp_path / "t1.parquet")
    name = tmp_path / "t[1].parquet"
    found = rw.evaluate_stream(name, "ece", resamples=0, rater_columns=("r0",))
    assert found.data["cases"] == 50
    with pytest.raises(rw.InvalidInputError, match=r"got t\[1\]\.parquet twice"):
        rw.evaluate_stream([name, name], "ece", resamples=0, rater_columns=("r0",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "a stream needs the labels in the same file"),
        (("--label-column", "nobody"), "there is no 'nobody'"),
        (("--rater-columns", "r0", "--ratings", "x.csv"), "a stream needs its labels in the file"),
        (("--rater-columns", "r0", "--unit", "raters"), "needs several raters; one person rated"),
        (("--label-column", "r0", "--unit", "both"), "needs to know who said what"),
        (("--label-column", "r0", "--prob-prefix", "q_"), "none begins with 'q_'"),
    ],
)
def test_what_cannot_be_streamed_is_refused(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    """Missing labels, files to be joined and raters who are not known are errors in one line."""
    pq.write_table(table(20), tmp_path / "t.parquet")
    done = evaluate(tmp_path / "t.parquet", "--stream", *options)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_pattern_and_a_table_of_text_say_how_they_are_read(tmp_path: Path) -> None:
    """Several Parquet files need a stream, and a stream needs Parquet, from Python as well."""
    for i in range(2):
        pq.write_table(table(20), tmp_path / f"t{i}.parquet")
    done = evaluate(tmp_path / "t*.parquet", "--rater-columns", "r0")
    assert done.exit_code == 2
    assert "t*.parquet: must be one file; it is a pattern, which 2 match" in done.stderr
    assert "--stream" in done.stderr
    (tmp_path / "t.csv").write_text("case,prob_a,prob_b,r0\n1,0.2,0.8,1\n", encoding="utf-8")
    said = (
        r"t\.csv: a stream is read from Parquet or Zarr\. Of several files, convert each to Parquet"
    )
    with pytest.raises(rw.InvalidInputError, match=said):
        rw.evaluate_stream(tmp_path / "t.csv", "ece", label_column="r0")
    done = evaluate(tmp_path / "t.csv", "--stream", "--label-column", "r0")
    assert done.exit_code == 2 and "a stream is read from Parquet or Zarr" in done.stderr


def test_many_csv_files_say_how_they_are_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder, a pattern of CSV: the way out is named; the lines of the page keep every digit."""
    (tmp_path / "shards").mkdir()
    random = np.random.default_rng(3)
    rows = [f"{i // 2:03},{p:.6f},{1 - p:.6f},{'ab'[i % 3 == 0]},{'ab'[i % 2] if i % 5 else ''}"
            for i, p in enumerate(random.random(90))]  # fmt: skip
    head = "patient,prob_a,prob_b,reader_x,reader_y"
    for i in range(3):
        text = "\n".join([head, *rows[30 * i : 30 * i + 30]])
        (tmp_path / "shards" / f"{i}.csv").write_text(text + "\n", encoding="utf-8")
    (tmp_path / "whole.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    pattern = re.escape(str(tmp_path / "shards" / "*.parquet"))
    with pytest.raises(rw.InvalidInputError, match=f"is a folder, so give a pattern .*{pattern}"):
        rw.evaluate_stream(tmp_path / "shards")
    done = evaluate(tmp_path / "shards" / "*.csv")
    assert done.exit_code == 2
    assert "it is a pattern, which 3 match" in done.stderr
    assert "convert each to Parquet (docs/cluster.md has the lines for CSV" in done.stderr
    page = (Path(__file__).parents[1] / "docs" / "cluster.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?open_csv.*?)```", page, flags=re.DOTALL)[1], {})
    asked = {"metrics": "brier,ece", "resamples": 0}
    held = rw.evaluate(rw.read_cases(tmp_path / "whole.csv", group_column="patient"), **asked)
    found = rw.evaluate_stream("shards/*.parquet", group_column="patient", **asked)
    assert found.data["cases"] == held.data["cases"] == 90
    assert found.data["patients"] == held.data["patients"] == 45
    assert found.data["raters"] == held.data["raters"]
    for name in ("brier", "ece"):
        assert found[name].value == pytest.approx(held[name].value, rel=1e-14), name


@pytest.mark.parametrize(
    ("argument", "meant"),
    [("label_colum", "label_column"), ("resample", "resamples"), ("rater_columnn", "rater_column")],
)
def test_an_unknown_argument_is_named(tmp_path: Path, argument: str, meant: str) -> None:
    """A slip of the pen gets the name that is nearest, of a column or of another argument."""
    pq.write_table(table(20), tmp_path / "t.parquet")
    match = rf"^{argument}: is no argument of evaluate_stream \(did you mean '{meant}"
    with pytest.raises(TypeError, match=match):
        rw.evaluate_stream(tmp_path / "t.parquet", "ece", **{argument: "r0"})
    with pytest.raises(TypeError, match=r"^source: is no argument of evaluate_stream"):
        rw.evaluate_stream(tmp_path / "t.parquet", "ece", source="r0")


def test_a_bad_part_is_named(tmp_path: Path) -> None:
    """A probability outside [0, 1] names the file and its row group; so does a damaged file."""
    frame = table(60)
    bad = frame.set_column(0, "prob_a", pa.array([1.5] * 60))
    pq.write_table(pa.concat_tables([frame, bad]), tmp_path / "t.parquet", row_group_size=60)
    done = evaluate(tmp_path / "t.parquet", "--stream", "--label-column", "r0")
    assert done.exit_code == 2 and "t.parquet, row group 1" in done.stderr
    (tmp_path / "d.parquet").write_bytes(b"PAR1 damaged")
    done = evaluate(tmp_path / "d.parquet", "--stream", "--label-column", "r0")
    assert done.exit_code == 2 and "d.parquet: cannot be read as Parquet" in done.stderr


NO_PROBABILITIES = {
    "a sum of 1.5": ([0.5, 0.5, 0.5], "those of data row 8 sum to 1.5"),
    "below 0": ([-0.25, 0.75, 0.5], "'prob_a' is -0.25 in data row 8"),
    "NaN": ([0.5, float("nan"), 0.5], "'prob_b' is nan in data row 8"),
    "an empty cell": ([0.5, 0.5, None], "'prob_c' is nan in data row 8"),
    "infinite": ([float("inf"), 0.0, 0.0], "'prob_a' is inf in data row 8"),
}


def with_no_probabilities(row: list[float | None], tmp_path: Path) -> tuple[pa.Table, Path]:
    """Return the table of two parts, row 8 of the second of which holds these; and its file."""
    frame = table(60).append_column("w", pa.array([1.0] * 60))
    for k, name in enumerate(["prob_a", "prob_b", "prob_c"]):
        values = frame[name].to_pylist()
        values[37] = row[k]
        frame = frame.set_column(k, name, pa.array(values, pa.float64()))
    return frame, tmp_path / "t.parquet"


@pytest.mark.parametrize(("row", "_"), NO_PROBABILITIES.values(), ids=NO_PROBABILITIES)
@pytest.mark.parametrize("column", ["w", "r0"])
def test_what_does_not_count_may_hold_anything(
    row: list[float | None], _: str, column: str, tmp_path: Path
) -> None:
    """A case of weight 0, or without a rating where such are dropped, is as if it were not there.

    The value is that of the other 59 cases in memory, and of all 60 with that case left out.
    """
    frame, file = with_no_probabilities(row, tmp_path)
    values = frame[column].to_pylist()
    values[37] = 0.0 if column == "w" else None
    frame = frame.set_column(frame.column_names.index(column), column, pa.array(values))
    pq.write_table(frame, file, row_group_size=30)
    told = {"label_column": "r0", "weight_column": "w", "on_unrated": "drop"}
    streamed = rw.evaluate_stream(file, ["brier", "ece", "auccc"], resamples=20, **told)
    probs = np.stack([frame[f"prob_{c}"].to_numpy() for c in "abc"], axis=1)
    given = [[-1 if label is None else label] for label in frame["r0"].to_pylist()]
    labels, weights = rw.Labels.from_ratings(given, num_classes=3), frame["w"].to_numpy()
    whole = rw.evaluate(
        probs, labels, ["brier", "ece", "auccc"], weights=weights, on_unrated="drop", resamples=0
    )
    others = np.arange(60) != 37
    assert streamed["brier"].value == pytest.approx(rw.brier(probs[others], labels[others]))
    for name in ("brier", "ece"):
        assert streamed[name].value == pytest.approx(whole[name].value, rel=1e-12)
    assert streamed.data["cases"] == whole.data["cases"] == 59


@pytest.mark.parametrize(("row", "said"), NO_PROBABILITIES.values(), ids=NO_PROBABILITIES)
def test_no_probabilities_are_named_by_column_and_row(
    row: list[float | None], said: str, tmp_path: Path
) -> None:
    """A bad case that counts is refused with its part, column and row as the file has them.

    A case of weight 0 before it, just as bad, is not blamed, and does not move the row's number.
    """
    frame, file = with_no_probabilities(row, tmp_path)
    at = frame.column_names.index
    frame = frame.set_column(at("w"), "w", pa.array([0.0 if i == 32 else 1.0 for i in range(60)]))
    first = [2.0 if i == 32 else p for i, p in enumerate(frame["prob_a"].to_pylist())]
    frame = frame.set_column(at("prob_a"), "prob_a", pa.array(first, pa.float64()))
    pq.write_table(frame, file, row_group_size=30)
    with pytest.raises(rw.InvalidInputError) as error:
        rw.evaluate_stream(file, "brier", label_column="r0", weight_column="w", resamples=0)
    assert "t.parquet, row group 1" in str(error.value) and said in str(error.value)


@pytest.mark.parametrize("bad", [float("nan"), None, 3.0, -1.0])
def test_a_confidence_that_does_not_count_may_be_anything(bad: Any, tmp_path: Path) -> None:
    """As in memory where the weight is 0; where it is not, the column and the row are named."""
    frame, file = with_no_probabilities([0.5, 0.25, 0.25], tmp_path)
    own = np.linspace(0.3, 0.9, 60)
    held = pa.array([bad if i == 37 else float(c) for i, c in enumerate(own)], pa.float64())
    told: dict[str, Any] = {"label_column": "r0", "weight_column": "w", "resamples": 0}
    for weight in (0.0, 1.0):
        weights = [weight if i == 37 else 1.0 for i in range(60)]
        whole = frame.set_column(frame.column_names.index("w"), "w", pa.array(weights))
        pq.write_table(whole.append_column("conf", held), file, row_group_size=30)
        if weight:
            with pytest.raises(rw.InvalidInputError, match=r"group 1, column 'conf': .*row 8 has"):
                rw.evaluate_stream(file, "auccc", confidence_column="conf", **told)
            continue
        found = rw.evaluate_stream(file, "auccc", confidence_column="conf", **told)["auccc"]
        probs = np.stack([frame[f"prob_{c}"].to_numpy() for c in "abc"], axis=1)
        rows = np.arange(60) != 37
        expected = rw.auccc(probs[rows], frame["r0"].to_numpy()[rows], confidence=own[rows])
        assert found.value == pytest.approx(expected, abs=(found.bound or 0) + 1e-9)


def test_percentages_of_a_stream_may_have_a_gap_that_does_not_count(tmp_path: Path) -> None:
    """NaN of weight 0 does not hide that the others are percentages."""
    p, y = np.linspace(1, 99, 40), np.arange(40) % 2
    expected = rw.brier(p[1:] / 100, y[1:])
    p[0] = np.nan
    pq.write_table(pa.table({"prob_1": p, "y": y, "w": np.r_[0.0, np.ones(39)]}), tmp_path / "t.pq")
    told: dict[str, Any] = {"label_column": "y", "weight_column": "w", "percent": True}
    found = rw.evaluate_stream(tmp_path / "t.pq", "brier", 0, **told)
    assert found["brier"].value == pytest.approx(expected)


def test_another_mistake_is_not_put_on_a_case_that_does_not_count(tmp_path: Path) -> None:
    """Where a label is no class, that is what is said, whatever a case of weight 0 holds."""
    frame, file = with_no_probabilities([2.0, 0.0, 0.0], tmp_path)
    at = frame.column_names.index
    frame = frame.set_column(at("w"), "w", pa.array([0.0 if i == 37 else 1.0 for i in range(60)]))
    frame = frame.set_column(at("r0"), "r0", pa.array([3, *frame["r0"].to_pylist()[1:]]))
    pq.write_table(frame, file)
    with pytest.raises(rw.InvalidInputError, match="'r0': must hold classes; data row 1 is '3'"):
        rw.evaluate_stream(file, "brier", label_column="r0", weight_column="w", resamples=0)


def test_a_stream_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished parts are not read again, and the digits are those of an undisturbed run."""
    from raterwise.streaming import digests as streams

    pq.write_table(table(600), tmp_path / "t.parquet", row_group_size=100)
    parts, columns = parts_of([tmp_path / "t.parquet"])
    chosen = StreamColumns.of(columns, rater_columns=("r0", "r1", "r2"))
    job = streams.PartJob(chosen, tuple(PLANS[:4]), 0, False)
    undisturbed = streams.digest_of_parts(job, parts)
    read: list[int] = []
    original = streams.read_part

    def until_the_power_fails(piece: streams.Part, *rest: Any) -> Any:
        if len(read) == 3:
            raise KeyboardInterrupt
        read.append(piece.group)
        return original(piece, *rest)

    monkeypatch.setattr(streams, "read_part", until_the_power_fails)
    with pytest.raises(KeyboardInterrupt), with_threads(1):
        streams.digest_of_parts(job, parts, checkpoint=tmp_path / "kept")
    read.clear()

    def reading(piece: streams.Part, *rest: Any) -> Any:
        read.append(piece.group)
        return original(piece, *rest)

    monkeypatch.setattr(streams, "read_part", reading)
    resumed = streams.digest_of_parts(job, parts, checkpoint=tmp_path / "kept")
    assert sorted(read) == [3, 4, 5]
    assert_same_digits(resumed, undisturbed)
    with pytest.raises(rw.InvalidInputError, match="another run"):
        Checkpoint.open(tmp_path / "kept", {"job": "another"})


def assert_same_digits(one: Digest, other: Digest) -> None:
    """Every sum is equal to the last bit."""
    assert one.facts == other.facts
    assert set(one.summaries) == set(other.summaries)
    for plan, summary in one.summaries.items():
        name = "fine" if isinstance(summary, CellSums) else "sums"
        np.testing.assert_array_equal(getattr(summary, name), getattr(other.summaries[plan], name))


LIMITED = """
import resource, sys
import numpy
from pathlib import Path
from raterwise.kernels._threads import with_threads
from raterwise.evaluation.request import Request
from raterwise.streaming.digests import PartJob, digest_of_parts
from raterwise.streaming.parts import StreamColumns, parts_of

def used():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))

def run(path):
    parts, columns = parts_of([path])
    chosen = StreamColumns.of(columns, rater_columns=("r0", "r1", "r2"))
    plans = Request.of("ece,kde_ece").plans(bounded=True)
    job = PartJob(chosen, tuple(plans), 0, True)
    with with_threads(1):
        return digest_of_parts(job, parts).facts.cases

run(sys.argv[1])
limit = used() + 56 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
print(run(sys.argv[2]))
try:
    numpy.ones((7, 1_200_000))
except MemoryError:
    print("the whole does not fit")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on data is Linux's")
def test_memory_does_not_grow_with_the_cases(tmp_path: Path) -> None:
    """1.2 million cases stream where their seven columns, 67 MB, do not fit."""
    frame = table(20_000)
    pq.write_table(frame, tmp_path / "small.parquet", row_group_size=20_000)
    with pq.ParquetWriter(tmp_path / "large.parquet", frame.schema) as writer:
        for _ in range(60):
            writer.write_table(frame, row_group_size=20_000)
    paths = [str(tmp_path / f"{name}.parquet") for name in ("small", "large")]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *paths], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["1200000", "the whole does not fit"], done.stderr


def test_arrays_in_the_place_of_files_are_named() -> None:
    """A stream reads files; what is in memory is for `evaluate`."""
    with pytest.raises(TypeError, match=r"paths: must be the name of a file; got tuple \(evaluate"):
        rw.evaluate_stream([([[0.5, 0.5]], [0])])


def test_a_word_alone_is_a_list_of_one_column_or_mark(tmp_path: Path) -> None:
    """`missing="NA"` is NA, not N and A, in a stream as in `read_cases`."""
    table = pa.table({"case": [1, 2, 3], "p": [0.3, 0.6, 0.2], "reader": ["0", "NA", "1"]})
    pq.write_table(table, tmp_path / "t.parquet")
    names: dict[str, Any] = {"prob_columns": "p", "rater_columns": "reader", "missing": "NA"}
    found = rw.evaluate_stream(
        tmp_path / "t.parquet", "brier", on_unrated="drop", resamples=0, **names
    )
    assert found["brier"].value == pytest.approx((0.3**2 + 0.8**2) / 2)
    cases = rw.read_cases(tmp_path / "t.parquet", on_unrated="drop", **names)
    assert cases.labels.counts.tolist() == [[1, 0], [0, 1]]

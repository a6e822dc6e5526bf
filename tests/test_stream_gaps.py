"""Parts of a stream in which nothing counts: what they leave to the other parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import raterwise as rw

CASES, STEP = 90, 30


def gap(folder: Path, weights: bool = False) -> tuple[Path, NDArray[np.bool_], pa.Table]:
    """Write three row groups, of which nobody rated the second; return the rows that count."""
    random = np.random.default_rng(0)
    p = random.random(CASES)
    counts = np.arange(CASES) // STEP != 1
    columns: dict[str, Any] = {"prob_1": p, "who": [f"p{i % 20}" for i in range(CASES)]}
    for name in ("r1", "r2"):
        said = (random.random(CASES) < p).astype(int)
        columns[name] = pa.array(said, mask=~counts & (not weights))
    columns["site"] = np.where(counts, "a", "b").tolist()
    columns["weight"] = counts.astype(float)
    path = folder / "cases.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=STEP)
    return path, counts, pa.table(columns)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"resamples": 0},
        {"group_column": "who"},
        {"unit": "raters"},
        {"unit": "both", "group_column": "who"},
        {"subgroups": "site"},
        {"target_prevalence": 0.2},
    ],
)
def test_a_row_group_that_nobody_rated_is_left_out(tmp_path: Path, options: Any) -> None:
    """The digits of the rated rows alone, by NumPy; the others are counted."""
    path, counts, table = gap(tmp_path)
    found = rw.evaluate_stream(
        path, "brier", rater_columns=["r1", "r2"], on_unrated="drop", **{"resamples": 20, **options}
    )
    assert found.data["cases"] == counts.sum() and found.data["dropped"] == {"unrated": STEP}
    if "target_prevalence" not in options:
        p = table["prob_1"].to_numpy()[counts]
        y = np.stack([table[name].to_numpy(zero_copy_only=False)[counts] for name in ("r1", "r2")])
        assert found["brier"].value == pytest.approx(((y - p) ** 2).mean(), abs=1e-12)


@pytest.mark.parametrize("unit", ["cases", "raters", "both"])
@pytest.mark.parametrize("first", [False, True])
def test_who_is_resampled_is_the_same_without_the_gap(
    tmp_path: Path, unit: Any, first: bool
) -> None:
    """Patients and raters are those of a file that never had these rows, wherever they stand."""
    path, counts, table = gap(tmp_path)
    if first:
        order = np.argsort(counts, kind="stable")
        table, counts = table.take(pa.array(order)), counts[order]
        pq.write_table(table, path, row_group_size=STEP)
    pq.write_table(table.filter(pa.array(counts)), tmp_path / "rated.parquet", row_group_size=STEP)
    found, plain = (
        rw.evaluate_stream(
            file, "brier,ece,krippendorff_alpha", rater_columns=["r1", "r2"], group_column="who",
            on_unrated="drop", unit=unit, resamples=20,
        )
        for file in (path, tmp_path / "rated.parquet")
    )  # fmt: skip
    for name in ("brier", "ece", "krippendorff_alpha"):
        assert found[name] == plain[name]
    about = [{**results.data, "dropped": {}, "fingerprint": {}} for results in (found, plain)]
    assert about[0] == about[1] and about[0]["patients"] == 20
    assert [rater["rater_id"] for rater in about[0]["exchangeability"]["raters"]] == ["r1", "r2"]


def test_a_row_group_without_weight_is_left_out(tmp_path: Path) -> None:
    """Cases of weight 0 are not there, in one row group as in several."""
    path, counts, table = gap(tmp_path, weights=True)
    pq.write_table(table, tmp_path / "one.parquet")
    found = [
        rw.evaluate_stream(
            file, "brier,ece", rater_columns=["r1", "r2"], weight_column="weight", resamples=0
        )
        for file in (path, tmp_path / "one.parquet")
    ]
    for each in found:
        assert each.data["cases"] == counts.sum() and each.data["dropped"] == {"weight 0": STEP}
    for name in ("brier", "ece"):
        assert found[0][name].value == pytest.approx(found[1][name].value, abs=1e-12)


def test_a_level_that_a_row_group_lacks_may_have_weights(tmp_path: Path) -> None:
    """The Brier score of each site, all of whose cases are in other row groups, by NumPy."""
    _, counts, table = gap(tmp_path, weights=True)
    weights = np.linspace(0.5, 2, CASES)
    table = table.set_column(table.column_names.index("weight"), "weight", pa.array(weights))
    pq.write_table(table, tmp_path / "sites.parquet", row_group_size=STEP)
    found = rw.evaluate_stream(
        tmp_path / "sites.parquet", "brier", rater_columns=["r1", "r2"], weight_column="weight",
        subgroups="site", resamples=0,
    )  # fmt: skip
    p, *said = (table[name].to_numpy() for name in ("prob_1", "r1", "r2"))
    loss = np.mean([(y - p) ** 2 for y in said], axis=0)
    for level, rows in (("a", counts), ("b", ~counts)):
        value = found.subgroup("site", level)["brier"].value
        assert value == pytest.approx(np.average(loss[rows], weights=weights[rows]), abs=1e-12)


def test_rows_that_nobody_rated_are_counted_from_one(tmp_path: Path) -> None:
    """As all rows of a file; the hint about columns of raters is for arrays."""
    path, _, _ = gap(tmp_path)
    message = r"row group 1: labels: every case needs a rating; 30 of 30 have none "
    message += r"\(rows 1, 2, 3, 4, 5 …\); "
    with pytest.raises(rw.InvalidInputError, match=message + r'on_unrated="drop" leaves them out$'):
        rw.evaluate_stream(path, "brier", rater_columns=["r1", "r2"])


def test_a_stream_in_which_nothing_counts_says_so(tmp_path: Path) -> None:
    """No case that is rated, or none that has weight, in the whole of it."""
    _, counts, table = gap(tmp_path)
    pq.write_table(table.filter(pa.array(~counts)), tmp_path / "none.parquet", row_group_size=10)
    asked: dict[str, Any] = {"rater_columns": ["r1", "r2"], "resamples": 0}
    with pytest.raises(rw.InvalidInputError, match="labels: every case needs a rating; none has"):
        rw.evaluate_stream(tmp_path / "none.parquet", "ece", on_unrated="drop", **asked)
    with pytest.raises(rw.InvalidInputError, match="weights: at least one must be positive"):
        rw.evaluate_stream(tmp_path / "none.parquet", "ece", weight_column="weight", **asked)


def test_unknown_patients_of_every_type_are_refused() -> None:
    """None, NaN, NA and NaT, also of days in nanoseconds, which Python has as whole numbers."""
    days = np.array(["2024-01-01", "NaT"], "datetime64[ns]")
    for groups in (["a", None], ["a", float("nan")], [1.0, np.nan], days):
        with pytest.raises(rw.InvalidInputError, match=r"groups: .* 1 of 2 are NaN or None"):
            rw.evaluate([0.2, 0.8], [0, 1], "ece", groups=groups)


@pytest.mark.parametrize("unit", ["raters", "both"])
def test_a_rater_who_rated_nothing_is_nobody(tmp_path: Path, unit: Any) -> None:
    """A column without a rating moves no end of an interval, in memory or in a stream."""
    random = np.random.default_rng(3)
    x = random.normal(0, 2, 40)
    said = (random.random((40, 3)) < (1 / (1 + np.exp(-x)))[:, None]).astype(float)
    probs, nobody = 1 / (1 + np.exp(-1.6 * x)), np.full(40, np.nan)
    columns = {"prob": probs, "a": said[:, 0], "nobody": nobody, "b": said[:, 1], "c": said[:, 2]}
    pq.write_table(pa.table(columns), tmp_path / "rated.parquet")
    chosen: dict[str, Any] = {"metrics": "ece,brier", "unit": unit, "resamples": 50}
    everybody = ["a", "nobody", "b", "c"]
    table = np.column_stack([columns[name] for name in everybody])
    here = [rw.evaluate(probs, rw.Labels.from_ratings(some), **chosen) for some in (table, said)]
    parts: dict[str, Any] = {"prob_columns": ["prob"], **chosen}
    there = [
        rw.evaluate_stream(tmp_path / "rated.parquet", rater_columns=who, **parts)
        for who in (everybody, ["a", "b", "c"])
    ]
    for name in ("ece", "brier"):
        assert here[0][name] == here[1][name]
        assert there[0][name] == there[1][name]

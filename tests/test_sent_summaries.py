"""What other sites send: a summary is checked before it is added to one's own."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.cli import app
from raterwise.errors import InvalidInputError
from raterwise.io.files import JOB_FILE
from raterwise.streaming.checked import hash_of
from raterwise.streaming.evaluation import evaluate_stream
from raterwise.streaming.saved import Checkpoint

Arrays = dict[str, NDArray[Any]]


@pytest.fixture(name="sites", scope="module")
def two_sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the summaries a.npz and b.npz of two hospitals, 40 cases each."""
    folder = tmp_path_factory.mktemp("sites")
    random = np.random.default_rng(5)
    for name in "ab":
        probs = random.random(40)
        said = {f"r{k}": (random.random(40) < probs).astype(int) for k in range(2)}
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table({"prob_1": probs, **said}), path)
        evaluate_stream(
            path,
            "all",
            resamples=0,
            rater_columns=["r0", "r1"],
            save_summary=folder / f"{name}.npz",
        )
    return folder


def merge(*files: Path, out: Path | None = None) -> Result:
    """Run `raterwise merge`."""
    more = [] if out is None else ["--save-summary", str(out)]
    words = ["merge", *map(str, files), "--resamples", "0", "-q", *more]
    return CliRunner().invoke(app, words)


def changed(path: Path, to: Path, change: Callable[[Arrays, dict[str, Any]], None]) -> Path:
    """Write a summary anew with a change in it, under a seal that fits."""
    with np.load(path) as content:
        arrays: Arrays = dict(content)
    header = json.loads(bytes(arrays.pop("header")))
    arrays.pop("seal")
    change(arrays, header)
    header["content"] = hash_of(arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    arrays["seal"] = np.frombuffer(hashlib.sha256(arrays["header"]).digest(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    to.write_bytes(buffer.getvalue())
    return to


def of_sums(arrays: Arrays) -> str:
    """Return the name of a table of bins."""
    return next(key for key, array in arrays.items() if key.endswith("_sums") and array.ndim == 4)


def negative(arrays: Arrays, header: dict[str, Any]) -> None:
    """Make a count negative."""
    arrays[of_sums(arrays)] = -arrays[of_sums(arrays)]


def not_a_number(arrays: Arrays, header: dict[str, Any]) -> None:
    """Put a NaN into a table."""
    arrays[of_sums(arrays)][0, 0, 0, 3] = np.nan


def shorter(arrays: Arrays, header: dict[str, Any]) -> None:
    """Take a bin away."""
    arrays[of_sums(arrays)] = arrays[of_sums(arrays)][:, :, 1:]


def single_digits(arrays: Arrays, header: dict[str, Any]) -> None:
    """Keep a table in fewer digits."""
    arrays[of_sums(arrays)] = arrays[of_sums(arrays)].astype(np.float32)


def twice_the_cases(arrays: Arrays, header: dict[str, Any]) -> None:
    """Count every case of the tables twice, and of the facts once."""
    arrays[of_sums(arrays)] = arrays[of_sums(arrays)] * 2


def other_units(arrays: Arrays, header: dict[str, Any]) -> None:
    """Put more cases into the units than there are."""
    arrays["unit_cases"] = arrays["unit_cases"] + 1


def no_facts(arrays: Arrays, header: dict[str, Any]) -> None:
    """Contradict the number of ratings."""
    header["facts"]["ratings"] = 7


def weights_of_one_class(arrays: Arrays, header: dict[str, Any]) -> None:
    """Give the weights of one class of several."""
    header["facts"]["label_weights"] = {"cases": [9], "lightest": [1.0], "heaviest": [2.0]}


def endless_bins(arrays: Arrays, header: dict[str, Any]) -> None:
    """Promise more bins than memory holds."""
    header["plans"][0]["bins"] = 10**12


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (negative, "counts and weights must be finite and not negative"),
        (not_a_number, "must hold finite numbers"),
        (shorter, "must have the shape"),
        (single_digits, "must be of type float64; got float32"),
        (twice_the_cases, "must have the 40 cases of its facts in its table"),
        (other_units, "as many cases in its units as in its facts; got 41 and 40"),
        (no_facts, "its facts contradict each other"),
        (weights_of_one_class, "its facts contradict each other"),
        (endless_bins, "is a damaged summary"),
    ],
)
def test_what_cannot_be_is_refused(
    sites: Path, tmp_path: Path, change: Callable[[Arrays, dict[str, Any]], None], why: str
) -> None:
    """Under a seal that fits, as harm would be made: exit 2, the file and the rule."""
    bad = changed(sites / "b.npz", tmp_path / "bad.npz", change)
    done = merge(sites / "a.npz", bad)
    assert done.exit_code == 2, done.output
    assert "bad.npz" in done.output
    assert why in " ".join(done.output.split())


def test_results_are_not_summaries(sites: Path, tmp_path: Path) -> None:
    """Who merges what --out wrote is told what to merge."""
    rw.evaluate([0.2, 0.7], [0, 1], "brier", resamples=0).to_json(tmp_path / "r.json")
    done = merge(sites / "a.npz", tmp_path / "r.json")
    assert done.exit_code == 2
    assert "r.json: results cannot be merged; evaluate the cases with --save-summary" in done.output


def test_a_summary_that_was_changed_is_refused(sites: Path, tmp_path: Path) -> None:
    """A digit changed in a table, the archive's own checksum made to fit: the hash inside tells."""
    with np.load(sites / "b.npz") as content:
        arrays: Arrays = dict(content)
    arrays[of_sums(arrays)][0, 0, 0, 4] += 1e-9
    np.savez(tmp_path / "c.npz", **arrays)
    done = merge(sites / "a.npz", tmp_path / "c.npz")
    assert done.exit_code == 2
    assert "c.npz: was changed after it was written; its hash differs" in done.output


def test_the_same_cases_count_once(sites: Path, tmp_path: Path) -> None:
    """A copy under another name, and one within a sum, are refused; two sites are not."""
    copy = Path(shutil.copy(sites / "a.npz", tmp_path / "c.npz"))
    done = merge(sites / "a.npz", copy)
    assert done.exit_code == 2
    assert "a.npz and c.npz: hold the same cases; they must be counted once" in done.output
    done = merge(sites / "a.npz", sites / "b.npz", out=tmp_path / "both.npz")
    assert done.exit_code == 0, done.output
    done = merge(tmp_path / "both.npz", sites / "b.npz")
    assert done.exit_code == 2
    assert "both.npz and b.npz: hold the same cases" in done.output


def test_parts_of_a_checkpoint_know_what_they_are(sites: Path, tmp_path: Path) -> None:
    """A part in the place of another, and one of another run, are refused; the right ones go on."""
    asked: dict[str, Any] = {"resamples": 0, "rater_columns": ["r0", "r1"]}
    for name, other in (("a", "b"), ("b", "a")):
        files = [sites / f"{name}.parquet", sites / f"{other}.parquet"]
        first = evaluate_stream(files, "brier", checkpoint=tmp_path / name, **asked)
        again = evaluate_stream(files, "brier", checkpoint=tmp_path / name, **asked)
        assert first["brier"] == again["brier"]
    parts = [tmp_path / "a" / f"part_{i:06d}.npz" for i in range(2)]
    shutil.copy(parts[1], parts[0])
    files = [sites / "a.parquet", sites / "b.parquet"]
    with pytest.raises(InvalidInputError, match="is not of this part of this run"):
        evaluate_stream(files, "brier", checkpoint=tmp_path / "a", **asked)
    shutil.copy(tmp_path / "b" / "part_000000.npz", parts[0])
    with pytest.raises(InvalidInputError, match="is not of this part of this run"):
        evaluate_stream(files, "brier", checkpoint=tmp_path / "a", **asked)


def test_a_kill_before_the_job_is_named_is_no_harm(tmp_path: Path) -> None:
    """What a kill between writing and renaming job.json leaves is cleared, other files stay."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / f".{JOB_FILE}.0badcafe.part").write_text("{", encoding="utf-8")
    Checkpoint.open(kept, {"job": 1})
    assert [file.name for file in kept.iterdir()] == [JOB_FILE]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine", encoding="utf-8")
    for place in (tmp_path / "a_file", tmp_path / "a_file" / "within"):
        (tmp_path / "a_file").touch()
        with pytest.raises(InvalidInputError, match=r"checkpoint: must be a folder, .* is a file"):
            Checkpoint.open(place, {})
    with pytest.raises(InvalidInputError, match="must be empty or of an earlier run"):
        Checkpoint.open(tmp_path / "other", {"job": 1})


READS = {
    "ours": [[0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 0, 1]] * 6,
    "theirs": [[1, 0], [1, 1], [0, 0], [0, 1], [1, 1]] * 5,
}
"""What the readers of two hospitals said; the model says 0, 1, 0, 1, …"""


def read_by(place: str, folder: Path) -> Path:
    """Save the summary of a hospital's readers, who have names there."""
    reads = np.array(READS[place])
    said = {
        f"dr_{name}": reads[:, k] for k, name in enumerate(("Ng", "Roe", "Poe")[: len(reads[0])])
    }
    probs = np.resize([0.2, 0.9, 0.1, 0.7], len(reads))
    pq.write_table(pa.table({"prob_1": probs, **said}), folder / f"{place}.parquet")
    evaluate_stream(
        folder / f"{place}.parquet", "all", resamples=50, rater_columns=list(said),
        save_summary=folder / f"{place}.npz",
    )  # fmt: skip
    return folder / f"{place}.npz"


def agreement_by_loops(place: str) -> list[tuple[int, float, float]]:
    """Return readings, and how often each reader and the model say what another reader says."""
    found = []
    for r in range(len(READS[place][0])):
        mine, model = [], []
        for i, row in enumerate(READS[place]):
            others = [row[k] for k in range(len(row)) if k != r]
            mine += [float(row[r] == other) for other in others]
            model += [float(i % 2 == other) for other in others]
        found.append((len(READS[place]), float(np.mean(mine)), float(np.mean(model))))
    return found


def test_merged_readers_are_a_yardstick_by_their_numbers(tmp_path: Path) -> None:
    """Readers of two hospitals are different persons: means over all of them, by loops."""
    files = [read_by(place, tmp_path) for place in READS]
    words = ["merge", *map(str, files), "--resamples", "20", "-q"]
    out = tmp_path / "all.json"
    done = CliRunner().invoke(app, [*words, "--out", str(out), "--save-summary", f"{out}.npz"])
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())["data"]["readers"]
    names = ["ours: 1", "ours: 2", "ours: 3", "theirs: 1", "theirs: 2"]
    assert [one["rater"] for one in found["readers"]] == names
    each = [one for place in READS for one in agreement_by_loops(place)]
    sizes, readers, models = zip(*each, strict=True)
    assert [r["reader"]["accuracy"] for r in found["readers"]] == pytest.approx(readers)
    accuracy = found["metrics"]["accuracy"]
    assert accuracy["reader"][0] == pytest.approx(np.average(readers, weights=sizes))
    assert accuracy["model"][0] == pytest.approx(np.average(models, weights=sizes))
    again = CliRunner().invoke(
        app, ["merge", f"{out}.npz", "-q", "--resamples", "20", "--out", f"{out}"]
    )
    assert again.exit_code == 0, again.output
    assert json.loads(out.read_text())["data"]["readers"]["metrics"] == found["metrics"]


def test_a_summary_without_its_readers_says_so(tmp_path: Path) -> None:
    """As one of an earlier version: the others' are the yardstick, and a note tells."""

    def without(arrays: Arrays, header: dict[str, Any]) -> None:
        for i in range(len(header["readers"])):
            arrays.pop(f"reader_{i}")
        header["readers"] = []

    whole = read_by("ours", tmp_path)
    files = changed(whole, whole, without), read_by("theirs", tmp_path)
    done = CliRunner().invoke(
        app,
        ["merge", *map(str, files), "--resamples", "20", "-q", "--out", str(tmp_path / "m.json")],
    )
    assert done.exit_code == 0, done.output
    merged = json.loads((tmp_path / "m.json").read_text())
    assert [one["rater"] for one in merged["data"]["readers"]["readers"]] == [
        "theirs: 1",
        "theirs: 2",
    ]
    told = [w for w in merged["warnings"] if "nothing of its readers" in w]
    assert len(told) == 1 and told[0].startswith("ours.npz: ")


def test_notes_on_labels_come_with_a_summary(tmp_path: Path) -> None:
    """Codes beside named classes: what the results of a place say, those of all say too."""
    table = pa.table({
        "prob_malignant": [0.9, 0.2, 0.6] * 10, "prob_benign": [0.1, 0.8, 0.4] * 10,
        "truth": [0, 1, 0] * 10,
    })  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet")
    saved = tmp_path / "site.npz"
    told = {"label_column": "truth", "save_summary": saved}
    (note,) = (
        w
        for w in evaluate_stream(tmp_path / "t.parquet", "ece", 20, **told).warnings
        if "code" in w
    )
    for file, mark in ((saved, "site.npz: "), (tmp_path / "all.npz", "all.npz: site.npz: ")):
        out = ["--out", str(tmp_path / "m.json")]
        more = ["--save-summary", str(tmp_path / "all.npz")] if file == saved else []
        words = ["merge", str(file), "--resamples", "20", "-q", *out, *more]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert mark + note in json.loads((tmp_path / "m.json").read_text())["warnings"]

"""Readers as a yardstick: each rater and the model against the others of the same cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import expit
from scipy.stats import t
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app

# Four cases, three readers (-1: not read); the model says 0, 1, 0, 1.
READS = np.array([[0, 0, 1], [1, 1, -1], [0, 1, 1], [1, 1, 1]])
SAID = np.array([0.2, 0.9, 0.1, 0.6])


def by_loops(reads: Any, predicted: Any) -> tuple[float, float, list[tuple[float, float]]]:
    """Return how often a reader and the model say what another reader says, by loops."""
    each = []
    sizes = []
    for r in range(reads.shape[1]):
        mine, model = [], []
        for i, row in enumerate(reads):
            others = [x for s, x in enumerate(row) if s != r and x >= 0]
            if row[r] >= 0 and others:
                mine.append(np.mean([x == row[r] for x in others]))
                model.append(np.mean([x == predicted[i] for x in others]))
        each.append((float(np.mean(mine)), float(np.mean(model))))
        sizes.append(len(mine))
    reader, model = np.average(each, axis=0, weights=sizes)
    return float(reader), float(model), each


def test_three_readers_by_loops() -> None:
    """The mean over readers is weighted by their readings; the model has the same cases."""
    reads, said = np.tile(READS, (6, 1)), np.tile(SAID, 6)
    found = rw.against_readers(said, rw.Labels.from_ratings(reads, num_classes=2), "accuracy")
    reader, model, each = by_loops(reads, said >= 0.5)
    yardstick = found.metrics["accuracy"]
    assert yardstick.reader[0] == pytest.approx(reader)
    assert yardstick.model[0] == pytest.approx(model)
    assert yardstick.difference[0] == pytest.approx(model - reader)
    for one, (mine, theirs) in zip(found.readers, each, strict=True):
        assert one.reader["accuracy"] == pytest.approx(mine)
        assert one.model["accuracy"] == pytest.approx(theirs)
    assert [one.cases for one in found.readers] == [24, 24, 18]


def test_a_whole_weight_is_a_repetition_beside_readers() -> None:
    """Cases of weights 0 to 3 are judged as if they were there as often, by loops."""
    reads, said, often = np.tile(READS, (6, 1)), np.tile(SAID, 6), np.arange(24) % 5 % 4
    labels = rw.Labels.from_ratings(reads, num_classes=2)
    found = rw.against_readers(said, labels, "accuracy", weights=often)
    _, _, each = by_loops(np.repeat(reads, often, axis=0), np.repeat(said, often) >= 0.5)
    for one, (mine, theirs) in zip(found.readers, each, strict=True):
        assert one.reader["accuracy"] == pytest.approx(mine)
        assert one.model["accuracy"] == pytest.approx(theirs)


def test_a_copy_of_a_reader_differs_by_nothing_from_that_reader() -> None:
    """Two readers; the model says what the first says: it is the first against the second."""
    random = np.random.default_rng(0)
    reads = (random.random((50, 2)) < 0.4).astype(int)
    labels = rw.Labels.from_ratings(reads, num_classes=2)
    first = rw.against_readers(reads[:, 0].astype(float), labels, ["accuracy", "sensitivity"])
    one = first.readers[0]
    assert one.reader == one.model


def test_the_interval_of_the_difference_is_that_of_paired_cases() -> None:
    """Two readers, no patients: the Brier scores are means over cases, so Student's interval."""
    random = np.random.default_rng(1)
    reads = (random.random((60, 2)) < 0.4).astype(int)
    p = random.random(60)
    found = rw.against_readers(p, rw.Labels.from_ratings(reads, num_classes=2), "brier")
    gap = ((p - reads[:, 0]) ** 2 + (p - reads[:, 1]) ** 2) / 2 - (reads[:, 0] != reads[:, 1])
    reach = t.ppf(0.975, 59) * gap.std(ddof=1) / np.sqrt(60)
    assert found.metrics["brier"].difference == pytest.approx(
        (gap.mean(), gap.mean() - reach, gap.mean() + reach), abs=1e-10
    )


def test_the_interval_of_two_shares_is_near_the_same() -> None:
    """Of proportions it is Newcombe's, lopsided: near Student's of the paired differences."""
    random = np.random.default_rng(1)
    reads = (random.random((200, 2)) < 0.4).astype(int)
    probs = random.random(200)
    found = rw.against_readers(probs, rw.Labels.from_ratings(reads, num_classes=2), "accuracy")
    said = probs > 0.5
    same = reads[:, 0] == reads[:, 1]
    gap = ((said == reads[:, 0]) * 1.0 + (said == reads[:, 1])) / 2 - same
    reach = t.ppf(0.975, 199) * gap.std(ddof=1) / np.sqrt(200)
    assert found.metrics["accuracy"].difference == pytest.approx(
        (gap.mean(), gap.mean() - reach, gap.mean() + reach), abs=0.1 * reach
    )


def test_patients_are_left_out_whole() -> None:
    """Every case four times: with patients the interval is that of the cases once."""
    reads, said = np.tile(READS, (6, 1)), np.tile(SAID, 6)
    four, patient = np.repeat(np.arange(24), 4), np.repeat(np.arange(24), 4)
    once = rw.against_readers(said, rw.Labels.from_ratings(reads, num_classes=2), "accuracy")
    whole = rw.against_readers(
        said[four], rw.Labels.from_ratings(reads[four], num_classes=2), "accuracy", patient
    )
    assert whole.metrics["accuracy"].difference == pytest.approx(
        once.metrics["accuracy"].difference
    )


def test_a_further_reader_is_covered() -> None:
    """A model that draws its label as a reader does: the interval holds 0 in 90 % of 150 sets."""
    inside = 0
    for seed in range(150):
        random = np.random.default_rng(seed)
        q = expit(random.normal(0, 2, 80))
        reads = (random.random((80, 4)) < q[:, None]).astype(int)
        labels = rw.Labels.from_ratings(reads[:, :3], num_classes=2)
        found = rw.against_readers(reads[:, 3].astype(float), labels, "accuracy")
        _, low, high = found.metrics["accuracy"].difference
        inside += low <= 0 <= high
    assert 0.90 <= inside / 150 <= 0.99


def test_weights_of_cases_are_repetitions_of_them() -> None:
    """A reader of heavy cases counts as often as those cases do; weight 0 is not there."""
    random = np.random.default_rng(8)
    p, weights = random.random(90), random.integers(0, 4, 90)
    reads = (random.random((90, 3)) < p[:, None]).astype(int)
    reads[:45, 0] = reads[random.random(90) < 0.3, 1] = -1
    weights[45:] *= 3
    often = np.repeat(np.arange(90), weights)
    weighted = rw.against_readers(p, rw.Labels.from_ratings(reads, 2), weights=weights)
    repeated = rw.against_readers(p[often], rw.Labels.from_ratings(reads[often], 2))
    for name, found in weighted.metrics.items():
        for who in ("reader", "model", "difference"):
            expected = getattr(repeated.metrics[name], who)[0]
            assert getattr(found, who)[0] == pytest.approx(expected, abs=1e-12)


def test_the_sentence_follows_from_the_numbers() -> None:
    """Less, as often, more; and what else differs is said beside it."""
    random = np.random.default_rng(2)
    truth = random.random(300) < 0.4
    reads = np.where(random.random((300, 3)) < 0.2, ~truth[:, None], truth[:, None]).astype(int)
    labels = rw.Labels.from_ratings(reads, num_classes=2)
    better = rw.against_readers(truth.astype(float), labels).sentence()
    assert "differs from a reader less than readers differ from each other" in better
    worse = rw.against_readers(random.random(300), labels).sentence()
    assert "differs from a reader more than readers differ from each other" in worse
    careful = np.where(random.random(300) < 0.45, 0.0, truth.astype(float))
    words = rw.against_readers(careful, labels).sentence()
    assert " Its sensitivity is" in words and "points lower" in words


def test_results_judge_readers_at_their_own_level() -> None:
    """An interval of half the confidence lies within that of 95%, for readers and the model."""
    labels = rw.Labels.from_ratings(np.tile(READS, (10, 1)), num_classes=2)
    found = {
        level: rw.evaluate(np.tile(SAID, 10), labels, "fleiss_kappa", resamples=20, level=level,
                           on_single="drop").data["readers"]
        for level in (0.5, 0.95)
    }  # fmt: skip
    for who in ("reader", "model"):
        half, usual = (found[level]["metrics"]["accuracy"][who] for level in (0.5, 0.95))
        assert usual[1] < half[1] < half[0] < half[2] < usual[2]


def test_counts_do_not_say_who_said_what() -> None:
    """The error names the argument and what would do."""
    with pytest.raises(rw.InvalidInputError, match="labels: must say who said what"):
        rw.against_readers([0.2, 0.8], rw.Labels.from_counts([[1, 1], [0, 2]]))
    few = rw.Labels.from_ratings([[0, 1], [1, 1]], num_classes=2)
    with pytest.raises(rw.InvalidInputError, match="no rater shares 10 cases"):
        rw.against_readers([0.2, 0.8], few)


def test_results_and_the_report_have_it() -> None:
    """Where raters are known and their agreement is asked for; in the JSON, too."""
    reads, said = np.tile(READS, (8, 1)), np.tile(SAID, 8)
    labels = rw.Labels.from_ratings(reads, num_classes=2)
    results = rw.evaluate(said, labels, "accuracy,fleiss_kappa", resamples=50)
    told = results.data["readers"]
    direct = rw.against_readers(said, labels)
    assert told["metrics"]["accuracy"]["difference"] == pytest.approx(
        direct.metrics["accuracy"].difference
    )
    again = rw.AgainstReaders.from_dict(results.to_dict()["data"]["readers"])
    assert again.sentence() == direct.sentence()
    html = rw.report.report_html(results)
    assert "Does it agree with readers as well as they agree with each other?" in html
    assert "readers" not in rw.evaluate(said, labels, "accuracy", resamples=50).data
    unknown = rw.Labels.from_counts(labels.counts)
    assert "readers" not in rw.evaluate(said, unknown, "fleiss_kappa", resamples=50).data


def table_of_reads(folder: Any, number: int = 240) -> tuple[Any, Any]:
    """Write a table in two files of patients with three readers; return what was said."""
    random = np.random.default_rng(6)
    probs = expit(random.normal(0, 1.5, number))
    reads = (random.random((number, 3)) < probs[:, None]).astype(int)
    reads[random.random((number, 3)) < 0.2] = -1
    reads[:, 0] = np.where((reads < 0).all(axis=1), 0, reads[:, 0])
    columns = {"patient": [f"p{i // 2}" for i in range(number)], "prob_no": 1 - probs}
    columns["prob_yes"] = probs
    for r in range(3):
        columns[f"reader_{r}"] = [None if x < 0 else int(x) for x in reads[:, r]]
    table = pa.table(columns)
    pq.write_table(table.slice(0, 100), folder / "a.parquet", row_group_size=40)
    pq.write_table(table.slice(100), folder / "b.parquet")
    return probs, reads


@pytest.mark.parametrize("unit", ["cases", "raters", "both"])
def test_a_stream_has_the_readers_of_memory(tmp_path: Path, unit: Any) -> None:
    """Sums of every reader and of the model there add up over parts, also from a checkpoint."""
    probs, reads = table_of_reads(tmp_path)
    patients = np.arange(len(probs)) // 2
    here = rw.against_readers(probs, rw.Labels.from_ratings(reads, num_classes=2), groups=patients)
    for _ in range(2):  # the second time from the checkpoint
        found = rw.evaluate_stream(
            str(tmp_path / "*.parquet"), rater_prefix="reader_", group_column="patient",
            resamples=30, unit=unit, checkpoint=tmp_path / "parts",
        )  # fmt: skip
        told = rw.AgainstReaders.from_dict(found.data["readers"])
        assert set(told.metrics) == set(here.metrics) == {"accuracy", "sensitivity", "specificity"}
        for name, mine in here.metrics.items():
            for key in ("reader", "model", "difference"):
                value, *ends = getattr(told.metrics[name], key)
                assert value == pytest.approx(getattr(mine, key)[0], abs=1e-12)
                # Patients are pooled into 512 blocks, some of which hold two of the 120.
                assert ends == pytest.approx(getattr(mine, key)[1:], abs=0.02)
        for one, other in zip(told.readers, here.readers, strict=True):
            assert (one.rater, one.cases) == (f"reader_{other.rater}", other.cases)
            assert one.reader == pytest.approx(other.reader)
            assert one.model == pytest.approx(other.model)


def test_readers_of_other_places_are_not_added_up(tmp_path: Path) -> None:
    """The first reader of one hospital is not the first reader of another."""
    table_of_reads(tmp_path)
    how: dict[str, Any] = {"rater_prefix": "reader_", "resamples": 20}
    alone = []
    for name in ("a", "b"):
        path = str(tmp_path / f"{name}.parquet")
        found = rw.evaluate_stream(path, **how, save_summary=tmp_path / f"{name}.npz")
        alone += [one["reader"]["accuracy"] for one in found.data["readers"]["readers"]]
    arguments = ["merge", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--resamples", "20"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "both.json")])
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "both.json").read_text())["data"]["readers"]["readers"]
    assert [one["rater"] for one in told] == [f"{p}: {k}" for p in "ab" for k in (1, 2, 3)]
    assert [one["reader"]["accuracy"] for one in told] == pytest.approx(alone)


def test_every_finding_has_its_readers() -> None:
    """As `evaluate` on the finding alone."""
    probs, random = np.tile(SAID, 10), np.random.default_rng(2)
    ratings = (random.random((40, 2, 3)) < probs[:, None, None]).astype(int)
    found = rw.evaluate_multilabel(
        np.stack((probs, probs), axis=1), ratings=ratings, names=["mass", "edema"],
        metrics="accuracy,fleiss_kappa", resamples=20,
    )  # fmt: skip
    for i, name in enumerate(("mass", "edema")):
        labels = rw.Labels.from_ratings(ratings[:, i], num_classes=2)
        told = found.findings[name].data["readers"]
        direct = rw.against_readers(probs, labels).metrics["accuracy"]
        assert told["metrics"]["accuracy"]["difference"] == pytest.approx(direct.difference)

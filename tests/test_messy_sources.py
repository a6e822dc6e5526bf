"""Findings, streams and ratings alone read messy tables by the rules of `raterwise evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app

# Two cases; each reader says of each finding whether it is there, one of them twice.
PROBS = "case,prob_mass,prob_ödem\nn1,0.75,0.5\nn2,0.25,0.5\n"
SAID = (
    "case,reader,finding,label\nn1,A,mass,yes\nn1,A,ödem,no\nn2,A,mass,no\nn2,A,ödem,yes\n"
    "n2,A,mass,yes\nn2,A,mass,yes\n"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of one's own."""
    monkeypatch.chdir(tmp_path)


def run(command: str) -> tuple[int, str]:
    """Run a command; return its exit code and what it says."""
    done = CliRunner().invoke(app, command.split())
    return done.exit_code, " ".join(done.output.split())


def brier() -> float:
    """Return the Brier score that was written."""
    return float(rw.Results.from_json("o.json")["brier"])


@pytest.mark.parametrize(
    ("way", "value"),
    [
        # Of mass n1 is (3/4 - 1)² = 1/16; n2 is 9/16 where yes counts; of the other both are 1/4.
        ("last", ((1 / 16 + 9 / 16) / 2 + 1 / 4) / 2),
        ("average", ((1 / 16 + 9 / 16) / 2 + 1 / 4) / 2),
        ("keep", ((1 / 16 + (2 * 9 / 16 + 1 / 16) / 3) / 2 + 1 / 4) / 2),
    ],
)
def test_findings_take_encodings_and_duplicates(way: str, value: float) -> None:
    """A reader who answers three times in a file of Windows is refused, and taken as told."""
    for name, text in (("p.csv", PROBS), ("r.csv", SAID)):
        Path(name).write_bytes(text.encode("cp1252"))
    words = "evaluate p.csv --ratings r.csv --multilabel --metrics brier --resamples 0 --out o.json"
    code, said = run(words)
    assert code == 2 and "--encoding cp1252" in said
    code, said = run(f"{words} --encoding cp1252")
    assert code == 2
    assert "'A' has more than one row for 'mass' of case 'n2' (--duplicates last takes" in said
    code, said = run(f"{words} --encoding cp1252 --duplicates {way}")
    assert code == 0, said
    assert brier() == pytest.approx(value, rel=1e-12)
    notes = rw.Results.from_json("o.json").warnings
    assert any("2 ratings are repeats by the same rater" in note for note in notes) is (
        way != "keep"
    )


def test_findings_in_percent() -> None:
    """75 is 0.75 with --percent; to divide findings by their sum makes no sense."""
    Path("p.csv").write_text(PROBS.replace("0.75", "75").replace("0.25", "25").replace("0.5", "50"))
    Path("r.csv").write_text("".join(SAID.splitlines(keepends=True)[:5]))
    words = "evaluate p.csv --ratings r.csv --multilabel --metrics brier --resamples 0 --out o.json"
    assert run(f"{words} --percent")[0] == 0
    assert brier() == pytest.approx(((1 / 16 + 1 / 16) / 2 + 1 / 4) / 2, rel=1e-12)
    code, said = run(f"{words} --percent --normalize")
    assert code == 2 and "--normalize: findings may occur together" in said


def stream(columns: dict[str, list[object]], options: str) -> tuple[int, str]:
    """Write a Parquet file and evaluate it as a stream."""
    pq.write_table(pa.table(columns), "p.parquet")
    return run(f"evaluate p.parquet --stream --metrics brier --resamples 0 --out o.json {options}")


def test_streams_read_what_tables_read() -> None:
    """Percentages, rounding, capitals and yes or no; readers are found by their names."""
    one = {"prob_malignant": [75.0, 25.0], "reader_1": ["YES", "no"], "Reader 2": ["no", "no"]}
    code, said = stream(one, "")
    assert code == 2 and "--percent takes percentages" in said
    code, said = stream(one, "--percent")
    assert code == 0, said
    # Of n1 (1/16 + 9/16) / 2, of n2 1/16.
    assert brier() == pytest.approx((5 / 16 + 1 / 16) / 2, rel=1e-12)
    three = {f"prob_{name}": [0.33, 0.0] for name in "ab"} | {"prob_c": [0.33, 1.0]}
    code, said = stream({**three, "y": ["A", "C"]}, "--label-column y")
    assert code == 2 and "--ignore-case takes upper and lower case for the same" in said
    code, said = stream({**three, "y": ["A", "C"]}, "--label-column y --ignore-case")
    assert code == 2 and "--normalize divides each row by its sum" in said
    code, said = stream({**three, "y": ["A", "C"]}, "--label-column y --normalize --ignore-case")
    assert code == 0, said
    assert brier() == pytest.approx((4 / 9 + 1 / 9 + 1 / 9) / 2, rel=1e-12)  # three classes: a sum


def test_streams_suggest_and_refuse() -> None:
    """A misspelt column has a suggestion; what a stream cannot do is no silent nothing."""
    columns = {"prob_a": [0.5, 0.5], "prob_b": [0.5, 0.5], "truth": [0, 1], "scanner": ["A", "B"]}
    code, said = stream(columns, "--label-column truht")
    assert code == 2 and "--label-column: must name a column of p.parquet; there is no" in said
    assert "did you mean 'truth'?" in said
    code, said = stream(columns, "--label-column truth --subgroup-column scaner")
    assert code == 2 and "--subgroup-column:" in said and "did you mean 'scanner'?" in said
    code, said = stream(columns, "--label-column truth --duplicates last")
    assert code == 2 and "--duplicates: is not for a stream, which has one row per case" in said


def test_no_column_is_lost_in_silence() -> None:
    """Readers, weights and classes that a stream, or findings, leave unread are named."""
    columns = {"prob_1": [0.5, 0.5], "truth": [0, 1], "reader_1": [0, 1], "weight": [1, 2]}
    code, said = stream(columns, "--label-column truth")
    assert code == 0
    for name in ("reader_1", "weight"):
        assert any(repr(name) in note for note in rw.Results.from_json("o.json").warnings), said
    Path("p.csv").write_text("prob_mass,label_mass,weight\n0.5,1,1\n0.5,0,1\n")
    words = "evaluate p.csv --multilabel --metrics brier --resamples 0 --out o.json"
    assert run(words)[0] == 0
    notes = rw.Results.from_json("o.json").warnings
    assert any("'weight' looks like a weight and was not used" in note for note in notes)
    assert not any("label_mass" in note for note in notes)


def test_ratings_alone_take_encodings_and_duplicates() -> None:
    """Of two cases with two readers, one says both classes of one: the last one counts."""
    text = "case,reader,label\na,Ä,x\na,B,X\nb,Ä,y\nb,B,y\nb,B,x\n"
    Path("r.csv").write_bytes(text.encode("cp1252"))
    words = "agreement r.csv --resamples 0 --out o.json"
    assert "--encoding cp1252" in run(words)[1]
    code, said = run(f"{words} --encoding cp1252 --ignore-case")
    assert code == 2 and "(--duplicates last takes the last one" in said
    code, said = run(f"{words} --encoding cp1252 --ignore-case --duplicates last")
    assert code == 0 and "warning: r.csv: 1 rating is a repeat by the same rater" in said
    found = json.loads(Path("o.json").read_text(encoding="utf-8"))
    assert found["class_names"] == ["x", "y"] and len(found["warnings"]) == 1
    # Pairs agree in a (x, x) and not in b (y, x): observed 1/2; by chance (3/4)² + (1/4)² = 5/8.
    kappa = (1 / 2 - 5 / 8) / (1 - 5 / 8)
    assert found["metrics"]["fleiss_kappa"]["value"] == pytest.approx(kappa, rel=1e-12)


def test_what_there_is_to_know_of_ratings_reaches_what_commands_write() -> None:
    """Two readers of four cases, one of whom rates the first case twice: once more than once."""
    Path("p.csv").write_text("case,prob_x,prob_y\na,0.8,0.2\nb,0.6,0.4\nc,0.3,0.7\nd,0.1,0.9\n")
    twice = "case,reader,label\na,A,x\na,A,y\n" + "".join(
        f"{case},{reader},{'x' if case in 'ab' else 'y'}\n" for case in "bcd" for reader in "AB"
    )
    Path("r.csv").write_text(f"{twice}a,B,x\n")
    for words in (
        "plan brier p.csv --cases 10 --raters 1",
        "stability p.csv --metrics brier --fractions 1 --repeats 1",
    ):
        code, said = run(f"{words} --ratings r.csv --duplicates last --out o.json")
        assert code == 0 and "warning: r.csv: 1 rating is a repeat" in said, said
        warnings = json.loads(Path("o.json").read_text(encoding="utf-8"))["warnings"]
        assert sum("1 rating is a repeat" in warning for warning in warnings) == 1
    code, said = run("worklist p.csv --by disagreement --ratings r.csv --duplicates last")
    assert code == 0 and "warning: r.csv: 1 rating is a repeat" in said, said

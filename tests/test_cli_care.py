"""The command line and a careless user: nothing is overwritten, cut off, kept quiet or overstated.

Forty cases of two classes, three readers each.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.cli import app
from raterwise.cli.show import print_results
from raterwise.errors import InvalidInputError
from raterwise.io.files import check_can_write, refuse_overwriting, replaced
from raterwise.report.verdicts import verdict
from raterwise.results import Results

RATED = "p.csv --ratings r.csv"


@pytest.fixture(name="folder")
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models, their ratings, results of the first, and the folder to work in."""
    random = np.random.default_rng(3)
    truth = random.uniform(0.05, 0.95, 40)
    for name, risk in (("p", truth), ("q", truth**1.5)):
        lines = [f"n{i},{i % 2},{1 - p!r},{p!r}" for i, p in enumerate(risk.tolist())]
        text = "\n".join(["case,truth,prob_a,prob_b", *lines]) + "\n"
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    said = random.random((40, 3)) < truth[:, None]
    rows = [f"n{i},r{k},{int(said[i, k])}" for i in range(40) for k in range(3)]
    text = "\n".join(["case,reader,label", *rows]) + "\n"
    (tmp_path / "r.csv").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = run(f"evaluate {RATED} --metrics brier,ece --resamples 20 --out p.json -q")
    assert done.exit_code == 0, done.output
    assert done.output == ""
    return tmp_path


def run(words: str) -> Result:
    """Run a command as a shell would give it."""
    return CliRunner().invoke(app, shlex.split(words))


@pytest.mark.parametrize(
    "words",
    [
        f"evaluate {RATED} --csv p.csv",
        f"evaluate {RATED} --csv r.csv",
        f"evaluate {RATED} --out ./p.json --csv p.json",
        f"stability {RATED} --figure p.csv --repeats 2",
        f"plan brier {RATED} --csv r.csv",
        "compare p.csv q.csv --ratings r.csv --csv q.csv",
        "worklist p.csv --by disagreement --out p.csv",
        "report p.json --out p.json",
        "segment p.csv --csv p.csv",
        "merge s.npz --save-summary s.npz",
        "calibrate --fit q.csv --apply calibrated.csv --out . --label-column truth",
    ],
)
def test_no_input_is_written_over(folder: Path, words: str) -> None:
    """An output that is an input, or another output, is refused before anything is read."""
    (folder / "calibrated.csv").write_bytes((folder / "p.csv").read_bytes())
    (folder / "s.npz").write_bytes(b"a summary")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = run(words)
    assert done.exit_code == 2, done.output
    assert re.search(r"must not be written over|must be written once|must end in \.", done.output)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two images, two raters each, by a pattern; a name as maps have; streams; all with twins."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "masks").mkdir()
    rows = ["case,probabilities,raters"]
    for case in ("c1", "c2"):
        np.save(tmp_path / f"{case}.npy", np.full((4, 4), 0.75))
        for rater in "ab":
            np.save(tmp_path / "masks" / f"{case}_{rater}.npy", np.eye(4, dtype=np.uint8))
        rows.append(f"{case},{case}.npy,masks/{case}_*.npy")
    (tmp_path / "m.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    table = pa.table({"prob_1": [0.9, 0.2, 0.6], "y": [1, 0, 1]})
    for name in ("one", "two"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "two.parquet")
    (tmp_path / "twin.npy").hardlink_to(tmp_path / "masks" / "c2_b.npy")
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


STREAM = "evaluate '*e.parquet' --stream --label-column y --resamples 0"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("segment m.csv --csv c1.npy", "it is read as well"),
        ("segment m.csv --out masks/c2_a.npy", "it is read as well"),
        ("segment m.csv --csv masks/c2_a.npy", "it is read as well"),
        ("segment m.csv --csv twin.npy", "it is read as well"),
        ("segment m.csv --csv masks/c1_new.npy", "the next run would read it"),
        ("segment m.csv --csv run/part_000001.npz --checkpoint run", "the next run would read it"),
        (f"{STREAM} --csv one.parquet", "it is read as well"),
        (f"{STREAM} --csv ./three.parquet --save-summary s.npz", "it is read as well"),
        ("evaluate two.parquet --stream --label-column y --csv link.parquet", "it is read as well"),
        (f"{STREAM} --save-summary one.parquet", "it is read as well"),
        (f"{STREAM} --save-summary more.parquet", "the next run would read it"),
        ("merge 's*.npz' --save-summary s9.npz", "the next run would read it"),
    ],
)
def test_no_file_of_a_pattern_or_manifest_is_written_over(
    images: Path, words: str, why: str
) -> None:
    """Whatever names a file that is read, and whatever links to it: it stays as it is."""
    if "three" in words:
        (images / "three.parquet").write_bytes((images / "one.parquet").read_bytes())
    before = {file: file.read_bytes() for file in images.rglob("*") if file.is_file()}
    done = run(words)
    assert done.exit_code == 2, done.output
    assert re.search(why, " ".join(done.output.split())), done.output
    assert {file: file.read_bytes() for file in images.rglob("*") if file.is_file()} == before


def test_maps_are_not_written_over_probabilities(images: Path) -> None:
    """A map whose name a file of probabilities has already is refused."""
    nibabel = pytest.importorskip("nibabel")
    name = "c1_disagreement.nii.gz"
    nibabel.save(nibabel.Nifti1Image(np.full((4, 4, 1), 0.75, np.float32), np.eye(4)), name)
    np.save(images / "m1.npy", np.zeros((4, 4, 1), np.uint8))
    text = f"case,probabilities,raters\nc1,{name},m1.npy\n"
    (images / "m.csv").write_text(text, encoding="utf-8")
    before = (images / name).read_bytes()
    done = run("segment m.csv --maps . --metrics ece --resamples 0")
    assert done.exit_code == 2
    assert f"{name}: must not be written over; it is read as well" in done.output
    assert (images / name).read_bytes() == before
    assert run("segment m.csv --maps maps --metrics ece --resamples 0 --axes xyz").exit_code == 0


def test_a_file_in_a_folder_that_is_read_is_not_written(tmp_path: Path) -> None:
    """A Zarr store and a folder of slices are read whole: nothing is put into them."""
    (tmp_path / "s.zarr").mkdir()
    with pytest.raises(rw.InvalidInputError, match=r"lies in s\.zarr, which is read as well"):
        refuse_overwriting([tmp_path / "s.zarr" / "out.json"], [tmp_path / "s.zarr"])
    refuse_overwriting([tmp_path / "s.json"], [tmp_path / "s.zarr", None])


def test_the_demonstration_asks_before_it_replaces(tmp_path: Path) -> None:
    """A folder with a file of one of its names stays as it is; --force replaces."""
    (tmp_path / "ratings.csv").write_text("mine", encoding="utf-8")
    done = run(f"demo --out '{tmp_path}' --resamples 2")
    assert done.exit_code == 2
    assert "has ratings.csv already; give another folder, or --force to replace" in " ".join(
        done.output.split()
    )
    assert [file.name for file in tmp_path.iterdir()] == ["ratings.csv"]


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (f"evaluate {RATED} --metrics ece --resamples 9 --out a.json --csv a.csv", "a.json, a.csv"),
        (f"plan brier {RATED} --cases 20 --raters 1,2 --out a.json --csv a.csv", "a.json, a.csv"),
        (f"stability {RATED} --metrics ece --fractions 0.5,1 --repeats 2 --out a.json", "a.json"),
        (
            "compare p.csv q.csv --ratings r.csv --metrics ece --resamples 9 --csv d.csv "
            "--markdown d.md --latex d.tex --out d.json",
            "d.json, d.csv, d.tex, d.md",
        ),
        ("worklist p.csv --by disagreement --top 2 --out w.csv", "w.csv (2 cases)"),
        ("report p.json -o a.html", "a.html"),
    ],
)
def test_what_is_written_is_told(folder: Path, words: str, written: str) -> None:
    """The last line names every file, each is there, and --quiet is quiet."""
    done = run(words)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == f"Written: {written}"
    for name in re.findall(r"\w\.\w+", written):
        assert (folder / name).stat().st_size
    if "report" not in words:
        assert run(f"{words} -q").output == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("evaluate .", r"^raterwise: \.: must be a file; it is a folder"),
        ("evaluate none", r"^raterwise: none: there is no such file"),
        (
            f"evaluate {RATED} --csv a.xlsx",
            r"^raterwise: --csv: is a CSV file and should end in \.csv; got a\.xlsx",
        ),
        (f"evaluate {RATED} --csv a.csv.gz", r"^raterwise: --csv: is a CSV file .* got a\.csv\.gz"),
        (f"evaluate {RATED} --out a.json.gz", r"^raterwise: --out: is a JSON file and should end"),
        ("compare p.csv q.csv --latex a.docx", r"^raterwise: --latex: is a LaTeX file and should"),
        ("report p.json --text a.docx", r"^raterwise: --text: is a Markdown file and should end"),
        ("worklist p.csv --out a.xlsx", r"^raterwise: --out: is a CSV file and should end in"),
        (f"evaluate {RATED} --bins 0", r"^raterwise: --bins: must be at least 1; got 0"),
        (f"evaluate {RATED} --level 95", r"^raterwise: --level: .*, both excluded; got 95"),
        (f"evaluate {RATED} --metrics foo", r"^raterwise: --metrics: no metric is called 'foo'"),
        ("evaluate p.csv", r"^raterwise: --ratings: p\.csv holds no labels"),
        (
            f"evaluate {RATED} --out a.html",
            r"--out: is a JSON file .* got a\.html; --html writes",
        ),
        (
            "evaluate p.csv --label-column truth --save-summary s.npz",
            "is read from Parquet or Zarr",
        ),
        ("report p.json -o page", r"^raterwise: --out: must end in \.html, .* got page"),
        (
            "report p.json --single odd.json",
            r"^raterwise: --single: .* odd\.json has 2 cases for 40",
        ),
        ("report none.json", r"^raterwise: none\.json: there is no such file"),
        ("report other.json", r"other\.json: is not a raterwise result file \(no 'schema_version'"),
        (
            "evaluate odd.csv --label-column truth",
            r"row 2 is 'zebra', and the classes are 'a', 'b'",
        ),
        (
            "evaluate a.npz --label-column truth",
            r"a\.npz: an NPZ file has no columns.*'class_names'",
        ),
        (
            "evaluate a.npz",
            r"a\.npz: must hold an array 'probs'; it holds none that raterwise knows",
        ),
        ("demo --out p.csv", r"^raterwise: p\.csv: must be a folder to write into; it is a file"),
        ("demo --out p.html", r"p\.html: must be a folder to write into; its name is that of a f"),
        (
            "calibrate --fit p.csv --fit-ratings r.csv --apply p.csv --out c.json",
            r"c\.json: must be a folder to write into; its name is that of a file",
        ),
        ("worklist p.csv --metrics ece", r"--metrics: .*; a worklist ranks cases and computes no"),
        ("merge s.npz --seed 1", r"--seed: there is no such option here; the saved summaries keep"),
        (f"compare {RATED} --cluster h:1", r"--cluster: .* here; raterwise compare reads its tab"),
        (f"plan ece {RATED} --reading-cost -1", r"--reading-cost"),
        (f"plan ece {RATED} --case-cost -1", r"--case-cost"),
    ],
)
def test_messages_name_what_is_wrong(folder: Path, words: str, message: str) -> None:
    """One line with the option or the file, the rule and the value; exit code 2; no new file."""
    odd = "case,truth,prob_a,prob_b\nn1,1,0.5,0.5\nn2,zebra,0.5,0.5\n"
    (folder / "odd.csv").write_text(odd, encoding="utf-8")
    (folder / "other.json").write_text("{}", encoding="utf-8")
    np.savez(folder / "a.npz", other=np.zeros(2))
    results = rw.evaluate([[0.5, 0.5]] * 2, [0, 1], "brier", resamples=0)
    results.to_json(folder / "odd.json")
    before = sorted(folder.iterdir())
    done = run(words)
    assert done.exit_code == 2
    assert re.search(message, done.output.replace("\n", " ")), done.output
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("width", [30, 60, 80])
def test_a_narrow_terminal_cuts_no_number(folder: Path, width: int) -> None:
    """Names are broken into lines; every value and every end of an interval is whole."""
    results = Results.from_json(folder / "p.json")
    shown = io.StringIO()
    print_results(results, Console(file=shown, width=width))
    assert "…" not in shown.getvalue()
    for e in results.values():
        for value in (e.value, e.low, e.high):
            assert f"{value:.4f}" in shown.getvalue()


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before the work, by the name of the file and the folder."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(InvalidInputError, match=r"a\.json: the folder .* must let you write"):
        check_can_write(tmp_path / "a.json")


def test_a_folder_that_takes_no_files_is_named(tmp_path: Path) -> None:
    """As /proc does, which lets everybody write and has no file by that name when they do."""
    told = r"x\.json: must be in a folder that takes new files; .*gone does not. Choose another"
    with (
        pytest.raises(InvalidInputError, match=told),
        replaced(tmp_path / "gone" / "x.json") as partial,
    ):
        partial.write_text("{}", encoding="utf-8")


def test_a_report_that_takes_long_shows_a_bar(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing takes seconds: the bar is told what is being drawn."""
    told: list[str] = []

    class Bar:
        def __enter__(self) -> Any:
            return lambda what, done: told.append(what)

        def __exit__(self, *error: object) -> None:
            told.append("over")

    monkeypatch.setattr("raterwise.cli.report.ProgressBar", Bar)
    assert run("report p.json -o a.html").exit_code == 0
    assert told == ["drawing a.html", "over"]


@pytest.mark.parametrize(
    ("probs", "labels", "headline"),
    [
        ([[0.75, 0.25]], [1], "Too little data to say"),
        ([[0.95, 0.05]] * 10, [0] * 10, "Too little data to say"),
        ([[0.95, 0.05]] * 10, [1] * 10, "Says “class 1” too rarely"),
        ([[0.6, 0.4]] * 200, [0] * 200, "Says “class 1” too often"),
    ],
)
def test_a_verdict_needs_more_than_chance(
    probs: list[list[float]], labels: list[int], headline: str
) -> None:
    """Where every prediction is right, or none, resampling knows no doubt; the binomial does.

    Ten of ten right at 95 % happens to a calibrated model 60 % of the time (0.95**10), none of ten
    one time in 10**13; 200 of 200 at 60 % one time in 10**44.
    """
    assert verdict(rw.evaluate(probs, labels, "ece", resamples=50)).headline == headline


def test_one_case_is_one_case(folder: Path) -> None:
    """Not 1 cases, in the terminal or in the report."""
    line = (folder / "p.csv").read_text(encoding="utf-8").splitlines()[:2]
    (folder / "one.csv").write_text("\n".join(line) + "\n", encoding="utf-8")
    done = run("evaluate one.csv --label-column truth --metrics ece --resamples 9 --out one.json")
    assert "1 case, 2 classes, 1 rating (1 per case)" in done.output
    assert run("report one.json -o one.html").exit_code == 0
    page = (folder / "one.html").read_text(encoding="utf-8")
    assert "Based on 1 case, 1 rater per case." in page
    assert not re.search(r"\b1 (cases|ratings)\b", done.output + page)


# Pipes and disks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_whoever_reads_on_may_stop(folder: Path, reader: str) -> None:
    """`raterwise … | head -1` ends with 0 or 141, and says nothing on stderr."""
    words = f"'{sys.executable}' -m raterwise evaluate {RATED} --resamples 0 --metrics ece,brier"
    command = f"{words} 2> err.txt | {reader}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.returncode in (0, 141)
    assert (folder / "err.txt").read_text(encoding="utf-8") == ""


def test_a_full_disk_is_named_with_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space left: which file, exit 2, the old file as it was, nothing half-written beside it."""

    def no_space(stream: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    monkeypatch.setattr(os, "fsync", no_space)
    done = run(f"evaluate {RATED} --metrics brier --resamples 0 --out p.json -q")
    assert done.exit_code == 2
    assert done.output == "raterwise: p.json: no space left on device\n"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before

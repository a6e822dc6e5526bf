"""The ways out of results: frames, CSV, Markdown, LaTeX, HTML, words for a paper, provenance."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import stdtrit
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app
from raterwise.provenance import file_record, files_of
from raterwise.report.words import p_value
from raterwise.results.exports import csv_text

LEVELS = ["=1+1", "B", "B", "B"] * 10


@pytest.fixture(scope="module")
def labels() -> rw.Labels:
    """Three readers with names, forty cases, of which one has a single reader."""
    rng = np.random.default_rng(1)
    ratings = rng.integers(0, 2, (40, 3))
    ratings[7, 1:] = -1
    frame = pd.DataFrame(ratings, columns=["smith", "lee", "<b>evil</b>"])
    return rw.Labels.from_frame(frame, raters=list(frame.columns))


@pytest.fixture(scope="module")
def results(labels: rw.Labels) -> rw.Results:
    """Results with intervals, an undefined metric and sub-groups of nasty names."""
    probs = np.random.default_rng(2).uniform(size=40)
    return rw.evaluate(
        probs,
        labels,
        "accuracy,brier,ece,epistemic_loss,fleiss_kappa",
        groups=np.arange(40) // 2,
        resamples=50,
        seed=3,
        subgroups={"+scanner": LEVELS},
        subgroup_metrics="accuracy,brier",
    )


@pytest.mark.parametrize(
    ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_frames_hold_every_digit(results: rw.Results, backend: Any, kind: type) -> None:
    """One row per metric, values as they are, nothing where there is nothing."""
    frame = results.to_frame(backend=backend)
    assert isinstance(frame, kind)
    columns = frame.to_pydict() if backend == "pyarrow" else frame.to_dict()
    values = columns["value"].values() if backend == "pandas" else list(columns["value"])
    expected = [e.value for e in results.values()]
    assert [None if pd.isna(v) else v for v in values] == expected


def test_subgroups_as_a_frame(results: rw.Results) -> None:
    """A row for each level and metric, with the difference from all other cases."""
    frame = results.to_frame("subgroups", backend="pandas")
    assert len(frame) == 4
    row = frame[(frame.level == "B") & (frame.name == "brier")].iloc[0]
    group = results.subgroup("+scanner", "B")
    assert (row.value, row.difference) == (
        group["brier"].value,
        group.differences["brier"].difference,
    )
    with pytest.raises(KeyError, match=r"no metric 'brir' in this level \(did you mean 'brier'"):
        group["brir"]
    with pytest.raises(rw.InvalidInputError, match="needs results with sub-groups"):
        rw.evaluate([0.5, 0.2], [1, 0], "brier", resamples=0).to_frame("subgroups")


def test_no_cell_of_a_csv_is_a_formula(results: rw.Results, tmp_path: Path) -> None:
    """Text that begins with = + - @ gets an apostrophe; numbers below 0 stay numbers."""
    text = results.to_csv(tmp_path / "r.csv", "subgroups")
    assert (tmp_path / "r.csv").read_text(encoding="utf-8") == text
    rows = list(csv.reader(io.StringIO(text)))[1:]
    for row in rows:
        for cell in row:
            assert not re.match(r"[=+@\t\r]|-(?![0-9])", cell), cell
    assert {row[0] for row in rows} == {"'+scanner"} and {row[1] for row in rows} == {"'=1+1", "B"}
    assert csv_text({"@x": ["-a", -0.5, "\tb"]}) == "'@x\n'-a\n-0.5\n'\tb\n"


def test_a_table_for_a_paper(results: rw.Results) -> None:
    """Markdown and LaTeX show the value and the interval; an undefined metric says so."""
    e = results["brier"]
    assert e.value is not None and e.low is not None and e.high is not None
    line = f"| Brier score | {e.value:.3f} | {e.low:.3f} to {e.high:.3f} |"
    assert line in results.to_markdown().splitlines()
    assert "| Epistemic loss | undefined |  |" in results.to_markdown().splitlines()
    assert f"Brier score & {e.value:.3f} & {e.low:.3f} to {e.high:.3f} \\\\" in results.to_latex()
    assert "| +scanner | =1+1 | Accuracy |" in results.to_markdown(part="subgroups")


class Tags(HTMLParser):
    """Counts the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.seen.append(tag)


def test_notebooks_show_intervals(results: rw.Results) -> None:
    """A row per metric, a picture per value; names from outside are text, not markup."""
    evil = replace(results, warnings=("<script>alert(1)</script>",))
    shown = evil._repr_html_()
    tags = Tags()
    tags.feed(shown)
    assert tags.seen.count("tr") == 1 + len(results)
    assert tags.seen.count("circle") == sum(e.value is not None for e in results.values())
    assert "script" not in tags.seen and "&lt;script&gt;" in shown


def test_words_for_a_paper_tell_which_findings_are_off() -> None:
    """Fourteen findings, one of them said far too often: it is named, with how it is off."""
    random = np.random.default_rng(2)
    truth = random.uniform(0.05, 0.5, (200, 14))
    said = random.binomial(3, truth)
    far = truth + np.where(np.arange(14) == 4, 0.45, 0)
    names = [f"f{k}" for k in range(14)]
    text = rw.evaluate_multilabel(far, said, 3, names=names, metrics="ece", resamples=50).to_text()
    assert "with 14 findings." in text
    assert re.search(r"Verdict on calibration: \d of 14 findings (is|are) miscalibrated\.", text)
    assert "f4: said too often. It predicts" in text
    assert "each case had 3 ratings of each finding, 8,400 in all" in text
    assert "Each value is the mean over the findings." in text
    assert "no verdict" not in text


def test_what_consoles_and_notebooks_show_of_a_model_that_is_off() -> None:
    """The verdict first; a reason once, not once per metric; a difference and its p-value agree."""
    p, y = np.tile([0.95, 0.9, 0.1, 0.05], 50), np.tile([1, 0, 1, 0], 50)
    results = rw.evaluate(p, y, "ece,epistemic_loss,dispersion_loss", resamples=50)
    assert results._repr_html_().startswith("<div><p><strong>Over-confident")
    assert repr(results).count("undefined: labels: needs at least 2 labels per case") == 1
    assert repr(results["ece"]).startswith("Estimate('ece', value=0.47")  # (0.05 + 0.9) / 2
    assert "meaning" not in repr(results["ece"])
    found = rw.compare({"sharp": p, "blunt": (p + 0.5) / 2}, y, "ece", resamples=50)
    (d,) = found.differences
    assert repr(found).splitlines() == [
        "Comparison(sharp, blunt)",
        f"  ece: sharp - blunt   {d.debiased:+.4f}  [{d.low:.4f}, {d.high:.4f}]"
        f"  p = {d.adjusted_p_value:.2g}",
    ]
    assert f"<td>{d.debiased:.3f}</td>" in found._repr_html_()
    cases = rw.Predictions.of(p, y, groups=np.repeat(np.arange(100), 2))
    assert repr(cases) == "Predictions(200 cases of 100 patients, 2 classes)"


def test_differences_show_p_for_all_pairs() -> None:
    """Of three models three pairs: p in the notebook is the adjusted one, as on the page."""
    random = np.random.default_rng(2)
    p = random.random(80)
    said = (random.random(80) < p).astype(int)
    models = {"a": p, "b": np.clip(p + 0.1, 0, 1), "c": random.random(80)}
    found = rw.compare(models, said, "brier", resamples=100)
    shown = found._repr_html_()
    changed = [d for d in found.differences if p_value(d.adjusted_p_value) != p_value(d.p_value)]
    assert changed
    for d in changed:
        assert f">{p_value(d.adjusted_p_value)}</th>" in shown


def test_an_interval_is_drawn_where_it_is(results: rw.Results) -> None:
    """The dot and the line of 0.25 [0, 0.5] on an axis from 0 to 0.5 of 130 pixels plus 5."""
    e = rw.Estimate("x", 0.25, 0.0, 0.5, title="X", group="g")
    shown = rw.Results({"x": e}, data=results.data)._repr_html_()
    assert 'cx="70.0"' in shown
    assert '<line x1="5.0" x2="135.0" y1="7.0" y2="7.0" stroke=' in shown


def test_estimates_are_numbers_and_names_are_suggested(results: rw.Results) -> None:
    """`float` gives the value, or says why there is none; a KeyError names what is close."""
    assert float(results["brier"]) == results["brier"].value
    with pytest.raises(rw.UndefinedMetricError, match="epistemic_loss: undefined, labels: needs"):
        float(results["epistemic_loss"])
    with pytest.raises(KeyError, match=r"no metric 'breir' .*\(did you mean 'brier'\?\)"):
        results["breir"]
    assert "breir" not in results and results.get("breir") is None
    with pytest.raises(rw.InvalidInputError, match=r"eec.*\(did you mean 'ece'\?\)"):
        rw.evaluate([0.5], [0], "eec")
    with pytest.raises(rw.InvalidInputError, match=r"no option 'sgima' \(did you mean 'sigma'"):
        rw.evaluate([0.5], [0], "robust_ece", options={"robust_ece": {"sgima": 1}})
    with pytest.raises(rw.InvalidInputError, match=r"got 'case' \(did you mean 'cases'\?\)"):
        rw.evaluate([0.5, 0.2], [0, 1], "brier", unit="case")  # type: ignore[arg-type]


def test_comparisons_go_out_the_same_ways(tmp_path: Path) -> None:
    """A frame of differences, a table with pictures, text that may be written."""
    models = {"=sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    found = rw.compare(models, [1, 0] * 20, "brier", resamples=50)
    assert found.to_frame(backend="polars")["difference"].to_list() == [
        found.differences[0].difference
    ]
    assert "brier,'=sharp,blunt,-0.135" in found.to_csv()
    assert found.to_markdown(tmp_path / "m.md") == (tmp_path / "m.md").read_text(encoding="utf-8")
    assert "=sharp − blunt" in found._repr_html_() and "<svg" in found._repr_html_()


def test_words_for_a_paper(results: rw.Results) -> None:
    """Methods and results say what was computed, and what the data cannot answer."""
    text = results.to_text()
    b = results["brier"]
    for said in (
        "each case had 1 to 3 ratings (mean 3.0), 118 in all",
        "We evaluated 40 cases of 20 patients",
        "95% confidence intervals were made by test inversion for calibration errors",
        "from the jackknife standard error, leaving out one patient at a time, with 50 resamples",
        "with 50 resamples of patients (seed 3)",
        f"raterwise {rw.__version__} on Python",
        f"Brier score was {b.value:.3f} (95% CI {b.low:.3f} to {b.high:.3f}).",
        "Not defined on these data: epistemic loss",
        "| – | 29 | Dependence of cases of one patient | Methods, uncertainty |",
        "TRIPOD+AI 10; CLAIM 21: How the sample size was chosen",
        "| 20a, 21 | 35 | Numbers analysed and left out | Methods, cases |",
        "TRIPOD+AI 8b; CLAIM 16: Qualification and experience of the raters.",
        "\n- CLAIM 31, 39: Which cases fail",
        "T. Mimori, K. Sasada",
        "smith, lee, &lt;b>evil&lt;/b>",
    ):
        assert said in text, said
    alone = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0).to_text()
    for said in (
        "one label per case. With a single rating, disagreement between raters cannot be told",
        "No confidence intervals were computed.",
        "Not answered: patients were not named, and cases taken as independent",
        "Cannot be answered with one rating per case",
        "Who the raters were: these data do not name them.",
        "Verdict on calibration: ",
    ):
        assert said in alone, said


def test_words_for_a_paper_tell_of_the_raters() -> None:
    """Whether they are interchangeable, with its p-value, and the model beside a reader."""
    random = np.random.default_rng(0)
    p = random.uniform(0.05, 0.95, 60)
    said = (random.random((60, 3)) < p[:, None]).astype(int)
    said[:, 2] = 1  # who says yes to everything
    results = rw.evaluate(p, rw.Labels.from_ratings(said, num_classes=2), resamples=50)
    text = results.to_text()
    found = results.data["exchangeability"]["p_value"]
    assert found < 0.001 or f"(p = {found:.2g})" in text
    assert "By a permutation test over 60 cases, the raters were not interchangeable (p" in text
    assert "The data do not name the raters." in text
    told = text.partition("Two readers of a case agree ")[2]
    assert re.match(r"[\d.]+% \(95% CI [\d.]+ to [\d.]+\) of the time", told)


def test_words_for_a_paper_say_which_voxels_and_what_is_a_mean() -> None:
    """Of images, each value is a mean and its interval Student's; only some voxels were looked at.

    The interval of the mean over images by hand: Student's with the images' own scatter.
    """
    random = np.random.default_rng(5)
    cases = []
    for _ in range(12):
        masks = np.repeat([[[0, 0, 0, 1, 1, 1]]], 6, axis=1).repeat(2, axis=0)
        probs = np.where(masks[0] == 1, 0.8, 0.2) + random.uniform(-0.2, 0.2, (6, 6))
        cases.append(rw.segmentation.Case(probs, masks, spacing=(1, 1)))
    found = rw.segmentation.evaluate(cases, "ece", boundary_mm=1, resamples=50)
    each = found.per_case["ece"]
    half = stdtrit(11, 0.975) * each.std(ddof=1) / np.sqrt(12)
    assert found["ece"].low == pytest.approx(each.mean() - half)
    text = found.to_text()
    assert (
        f"12 images with 2 classes. Of their voxels we evaluated the {12 * 6 * 4} voxels within "
        "1 mm of a boundary that a rater drew. No case was left out."
    ) in text
    assert "Each value is the mean over the images." in text
    assert (
        "95% confidence intervals were made from the jackknife standard error, leaving out one "
        "image at a time, with 50 resamples of images"
    ) in text
    whole = rw.segmentation.evaluate(cases, "ece", reduction="pooled", resamples=50).to_text()
    assert "They have 432 voxels." in whole and "mean over the images" not in whole
    assert "made by test inversion for calibration errors" in whole


def test_words_for_a_paper_tell_what_measures_go_without() -> None:
    """Two of six cases have one rater: a measure of pairs has four, and the text says so."""
    said = [[0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 1], [0, -1, -1], [-1, 1, -1]]
    results = rw.evaluate(
        [0.2, 0.7, 0.4, 0.6, 0.1, 0.9],
        rw.Labels.from_ratings(said, num_classes=2),
        "brier,epistemic_loss,disagreement_loss",
        on_single="drop",
        resamples=0,
    )
    text = results.to_text()
    assert (
        "We evaluated 6 cases with 2 classes. 2 cases had too few raters for epistemic loss "
        "and disagreement loss, and were left out of them."
    ) in text
    assert "No case was left out" not in text
    assert "We computed Brier score, epistemic loss and disagreement loss." in text
    # Of findings it is the one that lacks the most.
    raters = np.array([[2, 2], [2, 1], [1, 1], [2, 1], [2, 2]])
    found = rw.evaluate_multilabel(
        np.full((5, 2), 0.3), np.minimum(raters, 1), raters, metrics="brier,epistemic_loss",
        on_single="drop", resamples=0,
    )  # fmt: skip
    assert (
        "Up to 3 cases had too few raters for epistemic loss, and were left out of it."
        in found.to_text()
    )


def test_results_say_where_they_come_from(results: rw.Results, tmp_path: Path) -> None:
    """Date, call, seed, raters, cases left out; the same after a round trip through JSON."""
    made = results.provenance
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["date"])
    assert made["call"] == "raterwise.evaluate" and made["seed"] == 3
    assert made["raters"] == ["smith", "lee", "<b>evil</b>"]
    results.to_json(tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert content["provenance"]["options"] == content["options"]
    assert content["provenance"]["versions"] == content["versions"]
    again = rw.Results.from_json(tmp_path / "r.json")
    assert again.to_dict()["provenance"] == content["provenance"]
    labels = rw.Labels.from_long(["a", "b", "c"], "xxx", [0, None, 1], order=["a", "b", "c"])
    found = rw.evaluate([0.2, 0.5, 0.7], labels, "brier", resamples=0, on_unrated="drop")
    assert found.provenance["left_out"] == {"unrated": {"cases": 1, "names": ["b"]}}
    weighed = rw.evaluate([0.2, 0.5, 0.7], [0, 1, 1], "brier", resamples=0, weights=[1, 1, 0])
    assert weighed.provenance["left_out"] == {"weight 0": {"cases": 1, "names": [2]}}


def test_files_are_named_by_their_hash(tmp_path: Path) -> None:
    """SHA-256 as hashlib has it; of a folder that of its names and contents; many files as one."""
    (tmp_path / "d").mkdir()
    for i in range(130):
        (tmp_path / "d" / f"{i:03}.bin").write_bytes(bytes([i]) * 3)
    one = file_record(tmp_path / "d" / "007.bin")
    assert (one["bytes"], one["sha256"]) == (3, hashlib.sha256(b"\7\7\7").hexdigest())
    whole = file_record(tmp_path / "d")
    assert (whole["files"], whole["bytes"]) == (130, 390)
    (tmp_path / "d" / "007.bin").write_bytes(b"abc")
    assert file_record(tmp_path / "d")["sha256"] != whole["sha256"]
    listed = files_of([*sorted((tmp_path / "d").iterdir()), None, tmp_path / "no"])
    assert len(listed) == 101 and listed[-1]["name"] == "30 more files"


PREDICTIONS = "case,prob_a,prob_b,y\n" + "".join(
    f"c{i},{p},{1 - p},{int(p < 0.5)}\n" for i, p in enumerate([0.125, 0.25, 0.75, 0.875] * 5)
)


def run(*arguments: str) -> str:
    """Run the program, which must succeed, and return what it says."""
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == 0, found.output
    return found.output


def test_a_report_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`evaluate --html` writes the page with its provenance, which paper shows too."""
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text(PREDICTIONS, encoding="utf-8")
    options = (
        "evaluate",
        "p.csv",
        "--label-column",
        "y",
        "--metrics",
        "brier",
        "--resamples",
        "20",
    )
    run(*options, "--html", "report.html", "--out", "r.json", "-q")
    page = Path("report.html").read_text(encoding="utf-8")
    digest = hashlib.sha256(PREDICTIONS.encode()).hexdigest()
    section = page[page.index('id="provenance"') :]
    command = re.sub(r"</?span[^>]*>", "", section)
    assert digest in section and "raterwise evaluate p.csv --label-column y" in command
    # Closed details are not printed: the section must not be inside one.
    assert "<details" not in section and 'class="scroll"' not in section
    files = json.loads(Path("r.json").read_text(encoding="utf-8"))["provenance"]["inputs"]
    assert files == [{"name": "p.csv", "bytes": len(PREDICTIONS), "sha256": digest}]
    wrong = CliRunner().invoke(app, [*options, "--html", "report.pdf"])
    assert wrong.exit_code == 2 and "--html: must end in .html" in wrong.output


def test_the_report_takes_what_calibrate_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`raterwise report before_after.json` shows before, after and the difference."""
    monkeypatch.chdir(tmp_path)
    Path("fit.csv").write_text(PREDICTIONS, encoding="utf-8")
    Path("new.csv").write_text(PREDICTIONS.replace("\nc", "\nd"), encoding="utf-8")
    options = ("--label-column", "y", "--resamples", "20", "--metrics", "brier,ece", "-q")
    run("calibrate", "--fit", "fit.csv", "--apply", "new.csv", "--out", "o", *options)
    run("report", "o/before_after.json", "-o", "report.html", "--text", "methods.md")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "before" in page and "after" in page and 'id="recalibration"' in page
    assert Path("methods.md").read_text(encoding="utf-8").startswith("## Methods")
    run("evaluate", "new.csv", "--out", "r.json", *options)
    both = CliRunner().invoke(app, ["report", "o/before_after.json", "--after", "r.json"])
    assert both.exit_code == 2 and "holds both sides of a recalibration" in both.output


def test_p_values_of_a_paper_have_three_decimals() -> None:
    """As on the page: 0.0022 and 0.01 are 0.002 and 0.010, and one that is 1 is 1.00."""
    found = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "ece", resamples=20)
    told = {0.0022: "p = 0.002", 0.01: "p = 0.010", 0.28: "p = 0.28", 1.0: "p = 1.00"}
    for p, said in {**told, 0.0002: "p < 0.001"}.items():
        e = rw.Estimate("ece", 0.1, 0.05, 0.2, title="ECE", p_value=p)
        text = replace(found, estimates={"ece": e}).to_text()
        assert f"ECE was 0.100 (95% CI 0.050 to 0.200), {said}." in text

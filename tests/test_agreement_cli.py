"""`raterwise agreement`: ratings alone, in every layout, with all that a table can get wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli import app
from raterwise.rater_agreement import rater_agreement

LONG = """case,patient,reader,label
a,p1,ann,benign
a,p1,bob,malignant
b,p1,ann,malignant
b,p1,bob,malignant
b,p1,cem,malignant
c,p2,ann,benign
c,p2,bob,benign
d,p3,cem,
e,p3,cem,benign
e,p3,bob,benign
f,p4,ann,malignant
f,p4,cem,benign
"""


def run(path: Path, *arguments: str) -> Any:
    """Run the command on a file."""
    return CliRunner().invoke(app, ["agreement", str(path), "--resamples", "50", *arguments])


def test_a_row_per_rating(tmp_path: Path) -> None:
    """Values are those of the functions; the JSON has the intervals, the test and the raters."""
    (tmp_path / "r.csv").write_text(LONG)
    done = run(tmp_path / "r.csv", "--group-column", "patient", "--out", str(tmp_path / "r.json"))
    assert done.exit_code == 0, done.output
    assert "6 cases of 4 patients, 3 raters, 11 ratings, 2 classes" in done.output
    assert "Left out: 1 case with fewer than two ratings." in done.output
    found = json.loads((tmp_path / "r.json").read_text())
    counts = [[1, 1], [0, 3], [2, 0], [2, 0], [1, 1]]
    labels = rw.Labels.from_counts(counts)
    kappa = found["metrics"]["fleiss_kappa"]
    assert kappa["value"] == pytest.approx(rw.fleiss_kappa(labels))
    assert kappa["low"] < kappa["value"] < kappa["high"]
    alpha = found["metrics"]["krippendorff_alpha_nominal"]["value"]
    assert alpha == pytest.approx(rw.krippendorff_alpha(labels))
    assert found["class_names"] == ["benign", "malignant"]
    assert found["data"]["single"] == 1 and found["exchangeability"]["cases"] == 5
    assert "krippendorff_alpha_ordinal" not in found["metrics"]
    assert "no known order" not in done.output, "of two classes every alpha is the same"
    (tmp_path / "r.csv").write_text(LONG + "f,p4,bob,unclear\n")
    assert "The classes have no known order" in run(tmp_path / "r.csv").output


def test_a_rater_who_shares_no_case(tmp_path: Path) -> None:
    """Whoever is alone with their cases cannot differ from anybody, and breaks nothing."""
    text = "case,reader,label\na,x,1\na,y,0\nb,x,0\nb,y,0\nc,z,1\n"
    (tmp_path / "r.csv").write_text(text)
    done = run(tmp_path / "r.csv", "--out", str(tmp_path / "r.json"))
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "r.json").read_text())
    alone = next(one for one in found["raters"] if one["rater"] == "z")
    assert alone["excess"] == {} and alone["agreement"] is None
    assert alone["adjusted_p_value"] is None and alone["shares"] == {"0": 0.0, "1": 1.0}


def test_tendencies_by_hand(tmp_path: Path) -> None:
    """Bob: a with ann no, b with both yes, c yes, e yes: 3 of 4; half of his are malignant."""
    (tmp_path / "r.csv").write_text(LONG)
    run(tmp_path / "r.csv", "--out", str(tmp_path / "r.json"))
    raters = {r["rater"]: r for r in json.loads((tmp_path / "r.json").read_text())["raters"]}
    assert raters["bob"]["agreement"] == pytest.approx(3 / 4)
    assert raters["bob"]["shares"] == {"benign": 0.5, "malignant": 0.5}
    assert raters["cem"]["ratings"] == 3 and raters["cem"]["shared"] == 3


def test_whole_numbers_are_steps_of_a_scale(tmp_path: Path) -> None:
    """1, 2 and 4: the step between counts, so the interval α is that of 1, 2, 3, 4."""
    reads = np.array([[1, 2], [4, 4], [2, 2], [1, 1], [4, 2]])
    lines = ["nodule,reader_1,reader_2", *(f"n{i},{a},{b}" for i, (a, b) in enumerate(reads))]
    (tmp_path / "w.csv").write_text("\n".join(lines))
    done = run(tmp_path / "w.csv", "--id-column", "nodule", "--out", str(tmp_path / "w.json"))
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "w.json").read_text())["metrics"]
    labels = rw.Labels.from_ratings(reads - 1, num_classes=4)
    for scale in ("nominal", "ordinal", "interval"):
        expected = rw.krippendorff_alpha(labels, scale=scale)  # type: ignore[arg-type]
        assert found[f"krippendorff_alpha_{scale}"]["value"] == pytest.approx(expected), scale


def test_named_classes_have_the_order_that_is_given(tmp_path: Path) -> None:
    """--class-names makes names ordinal, and knows a class that nobody used."""
    rows = "a,mild,severe\nb,none,none\nc,mild,mild\nd,none,mild\n"
    (tmp_path / "w.csv").write_text("case,reader_1,reader_2\n" + rows)
    done = run(
        tmp_path / "w.csv", "--class-names", "none,mild,severe,worst",
        "--out", str(tmp_path / "w.json"),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "w.json").read_text())
    labels = rw.Labels.from_ratings([[1, 2], [0, 0], [1, 1], [0, 1]], num_classes=4)
    value = found["metrics"]["krippendorff_alpha_ordinal"]["value"]
    assert value == pytest.approx(rw.krippendorff_alpha(labels, scale="ordinal"))
    assert "krippendorff_alpha_interval" not in found["metrics"]


def test_counts_know_no_raters(tmp_path: Path) -> None:
    """Agreement yes, tendencies no, and the command says why."""
    (tmp_path / "c.csv").write_text("case,count_no,count_yes\na,2,1\nb,0,3\nc,3,0\n")
    done = run(tmp_path / "c.csv")
    assert done.exit_code == 0, done.output
    assert "does not name the raters" in done.output


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("case,reader,label\na,x,yes\na,y,yes\n", [], "agreement needs two classes"),
        ("case,reader,label\na,x,yes\nb,y,no\n", [], "two ratings or more; there are none"),
        (LONG, ["--group-column", "who"], "--group-column: must name a column"),
        (LONG.replace("b,p1,cem", "b,p9,cem"), ["--group-column", "patient"], "of one patient"),
        ("case,reader,label\na,x,yes\na,x,no\n", [], "a rater must rate a case once"),
        ("id,reader,label\na,x,yes\na,y,no\n", [], "--id-column: must say which column"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    tmp_path: Path, text: str, arguments: list[str], message: str
) -> None:
    """Exit code 2, with the option to use."""
    (tmp_path / "r.csv").write_text(text)
    done = run(tmp_path / "r.csv", *arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_intervals_resample_patients_and_raters() -> None:
    """Cases that are copies tell nothing with patients; raters add to the width."""
    random = np.random.default_rng(0)
    truth = random.random(40) < 0.5
    reads = np.where(
        random.random((40, 4)) < [0.05, 0.1, 0.3, 0.4], ~truth[:, None], truth[:, None]
    )
    labels = rw.Labels.from_ratings(reads.astype(int), num_classes=2)
    four = np.repeat(np.arange(40), 4)

    def width(found: Any) -> float:
        kappa = found.estimates["fleiss_kappa"]
        return float(kappa.high - kappa.low)

    once = width(rater_agreement(labels, resamples=50))
    copies = width(rater_agreement(labels.take(four), resamples=50))
    patients = width(rater_agreement(labels.take(four), four.tolist(), resamples=50))
    both = width(rater_agreement(labels, resamples=50, unit="both"))
    assert copies < 0.6 * once
    assert patients == pytest.approx(once, rel=0.05)
    assert both > 1.2 * once


def test_answers_about_several_findings_are_not_further_raters(tmp_path: Path) -> None:
    """Two readers of two findings are refused; the columns of one finding are two readers."""
    lines = ["case,reader_1_mass,reader_2_mass,reader_1_edema,reader_2_edema"]
    lines += [f"c{i},{i % 2},{i % 3 % 2},0,{i % 2}" for i in range(12)]
    (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
    arguments = ["agreement", str(tmp_path / "f.csv"), "--resamples", "20"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "looks like 2 raters of 2 findings" in " ".join(done.output.split())
    done = CliRunner().invoke(app, [*arguments, "--rater-columns", "reader_1_mass,reader_2_mass"])
    assert done.exit_code == 0, done.output
    assert "12 cases, 2 raters, 24 ratings" in done.output


def test_a_rating_that_was_corrected(tmp_path: Path) -> None:
    """Of two ratings of a case by one rater the last counts, if told so: then both always agree."""
    text = "case,reader,label\na,ann,0\na,ann,1\na,bob,1\nb,ann,0\nb,bob,0\nc,ann,1\nc,bob,1\n"
    (tmp_path / "r.csv").write_text(text)
    out = tmp_path / "r.json"
    assert run(tmp_path / "r.csv").exit_code == 2
    done = run(tmp_path / "r.csv", "--duplicates", "last", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "3 cases, 2 raters, 6 ratings, 2 classes" in done.output
    assert json.loads(out.read_text())["metrics"]["fleiss_kappa"]["value"] == 1


def test_the_page_says_what_the_terminal_says(tmp_path: Path) -> None:
    """What was left out or repeated, and of two classes the same one; why raters have no test."""
    rows = [f"{i},{r},{'yes' if r == 'ann' or i % 3 else 'no'}" for i in range(60)
            for r in ("ann", "bob", "eve")]  # fmt: skip
    text = "\n".join(["case,reader,label", *rows, "0,ann,yes", "z,bob,no"]) + "\n"
    (tmp_path / "r.csv").write_text(text)
    page = tmp_path / "page.html"
    asked = ("--duplicates", "last")
    done = run(tmp_path / "r.csv", *asked, "--html", str(page))
    assert done.exit_code == 0, done.output
    told, html = " ".join(done.output.split()), page.read_text(encoding="utf-8")
    for line in ("Left out: 1 case with fewer than two ratings", "1 rating is a repeat"):
        assert line in told and line in html
    assert "yes +33.3 points" in told and "yes: +33.3\u00a0points" in html
    assert "no: −33.3\u00a0points" not in html
    (tmp_path / "c.csv").write_text("case,count_no,count_yes\na,2,1\nb,1,2\nc,3,0\n")
    done = run(tmp_path / "c.csv", "--html", str(page))
    assert done.exit_code == 0, done.output
    unnamed = "The file does not name the raters, so they cannot be compared."
    assert unnamed in done.output and unnamed in page.read_text(encoding="utf-8")


def test_a_third_reader_who_decides_is_said(tmp_path: Path) -> None:
    """The terminal, the file and the page say that figures on disagreement are wrong."""
    rows = ["case,a,b,c"] + [f"{i},{i % 2},{i % 2}," for i in range(40)]
    rows += [f"{i},{i % 2},{1 - i % 2},1" for i in range(40, 60)]
    (tmp_path / "r.csv").write_text("\n".join(rows))
    page, file = tmp_path / "r.html", tmp_path / "r.json"
    done = run(
        tmp_path / "r.csv", "--rater-columns", "a,b,c", "--html", str(page), "--out", str(file)
    )
    said = "labels differ in 20 of the 20 cases with three labels and in 0 of the 40 with two"
    assert said in " ".join(done.output.split())
    assert said.removeprefix("l") in page.read_text()
    assert any(one.startswith(said) for one in json.loads(file.read_text())["warnings"])
    assert "asked only where the others differ" in page.read_text()

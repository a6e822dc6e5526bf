"""The second-opinion worklist, in Python and on the command line, against values by hand.

Three nodules, Dirichlet beliefs. Gains are (1 - Σ f²)/(α0 + 1)², disagreements
α0/(α0 + 1)·(1 - Σ f²) (LH eq 19), and an answer k makes f into (α0 f + e_k)/(α0 + 1).
"""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import raterwise as rw
from raterwise.cli import app
from raterwise.worklist import worklist

PROBS = [[0.5, 0.5], [0.9, 0.1], [0.6, 0.4]]
ALPHA0 = [19.0, 1.0, 3.0]
GAINS = [0.5 / 400, 0.18 / 4, 0.48 / 16]  # 0.00125, 0.045, 0.03
DISAGREEMENTS = [0.5 * 19 / 20, 0.18 / 2, 0.48 * 3 / 4]  # 0.475, 0.09, 0.36

TABLE = """\
case,prob_benign,prob_malignant,alpha0,feat_size
n1,0.5,0.5,19,2
n2,0.9,0.1,1,0
n3,0.6,0.4,3,1
"""


@pytest.fixture(name="folder")
def folder_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the table into an empty working folder."""
    (tmp_path / "cases.csv").write_text(TABLE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> Result:
    """Run the command line within this process."""
    return CliRunner().invoke(app, shlex.split(command))


def listed(options: str) -> list[dict[str, str]]:
    """Run `raterwise worklist` quietly and return the rows of its file."""
    result = run(f"worklist {options} --quiet --out list.csv")
    assert result.exit_code == 0, result.output
    assert result.output == ""
    with open("list.csv", newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def saved_alpha(path: Path, slope: float, level: float, features: int = 1) -> None:
    """Write an α-calibration with log α0 = level + slope · x, as `raterwise calibrate` would."""
    state = {
        "format": "raterwise.AlphaCalibration",
        "version": 1,
        "params": {"l2": 0.005, "weighting": "paper", "warm_start": False, "max_iter": 1000},
        "num_classes": 2,
        "default_features": False,
        "coef": [slope] * features,
        "center": [0.0] * features,
        "log_concentration_at_center": level,
        "loss": 1.0,
        "gradient_norm": 0.0,
        "n_iter": 1,
    }
    content = {"schema_version": 1, "kind": "AlphaCalibration", "raterwise_version": "0.1.0"}
    path.write_text(json.dumps({**content, "state": state}), encoding="utf-8")


def saved_temperature(path: Path, temperature: float, names: list[str] | None) -> None:
    """Write temperature scaling of probabilities, as `raterwise calibrate` would."""
    fitted = {"temperature_": temperature, "loss_": 1.0, "gradient_norm_": 0.0, "n_iter_": 1}
    state = {"params": {"input": "probs"}, "num_classes": 2, "class_names": names, "fitted": fitted}
    content = {"schema_version": 1, "kind": "TemperatureScaling", "state": state}
    path.write_text(json.dumps(content), encoding="utf-8")


# The function ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "order"), [("gain", [1, 2, 0]), ("disagreement", [0, 2, 1])])
def test_order_and_values_by_hand(by: str, order: list[int]) -> None:
    """The two rankings differ: what divides readers for certain gains little from one more."""
    found = worklist(rw.DirichletBelief(PROBS, ALPHA0), ["n1", "n2", "n3"], by)
    assert found.rows.tolist() == order
    assert found.case_ids == tuple(f"n{i + 1}" for i in order)
    assert found.expected_gain == pytest.approx([GAINS[i] for i in order])
    assert found.disagreement == pytest.approx([DISAGREEMENTS[i] for i in order])


def test_what_each_answer_would_change() -> None:
    """(α0 f + e_k)/(α0 + 1) for each case and answer, and the class that it puts first."""
    found = worklist(rw.DirichletBelief(PROBS, ALPHA0), top=2)
    assert found.case_ids == (1, 2)
    assert found.posterior[0] == pytest.approx(np.array([[0.95, 0.05], [0.45, 0.55]]))
    assert found.posterior[1] == pytest.approx(np.array([[0.7, 0.3], [0.45, 0.55]]))
    assert found.top_class.tolist() == [0, 0]
    assert found.top_class_after.tolist() == [[0, 1], [0, 1]]


def test_the_gain_is_what_answers_move_on_average() -> None:
    """Σ_k f_k ‖posterior_k - f‖² is the expected gain: the list agrees with itself, any belief."""
    random = np.random.default_rng(0)
    samples = random.dirichlet([1, 1, 1], (4, 20))
    beliefs = (
        rw.EnsembleBelief(samples),
        rw.DirichletBelief(samples[0], random.gamma(2, 2, 20)),
        rw.DirichletMixtureBelief(samples, random.gamma(2, 2, (4, 20))),
    )
    for belief in beliefs:
        found = worklist(belief)
        moved = ((found.posterior - found.probs[:, None]) ** 2).sum(axis=2)
        assert found.expected_gain == pytest.approx((found.probs * moved).sum(axis=1))
        assert (np.diff(found.expected_gain) <= 0).all()
        # The answers' posteriors average to what is believed now.
        mean = np.einsum("ik,ikj->ij", found.probs, found.posterior)
        assert mean == pytest.approx(found.probs)


def test_equal_cases_keep_their_order() -> None:
    """A point learns nothing: all gains are 0, the likelier disagreement first, then as given."""
    found = worklist(rw.PointBelief([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]))
    assert found.rows.tolist() == [1, 2, 0]
    assert (found.expected_gain == 0).all()


def test_an_answer_that_is_ruled_out() -> None:
    """A class to which every member gives 0 has no posterior: NaN, and no cell in the file."""
    belief = rw.EnsembleBelief([[[1.0, 0.0]], [[1.0, 0.0]]])
    found = worklist(belief, class_names=["a", "b"])
    assert found.top_class_after.tolist() == [[0, -1]]
    assert np.isnan(found.posterior[0, 1]).all()
    assert found.records()[0]["if_b_top_class"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "size"}, "by: must be one of gain, disagreement; got 'size'"),
        ({"top": 0}, "top: must be at least 1; got 0"),
        ({"case_ids": ["n1"]}, "case_ids: must match the belief; got 1 for 3"),
        ({"class_names": ["a", "b", "c"]}, "class_names: must match the belief; got 3 for 2"),
    ],
)
def test_bad_input(options: dict[str, object], message: str) -> None:
    """The argument, the rule and the value."""
    with pytest.raises(ValueError, match=message):
        worklist(rw.DirichletBelief(PROBS, ALPHA0), **options)


# The command -------------------------------------------------------------------------------------


def test_the_column_alpha0_is_found(folder: Path) -> None:
    """The file of `raterwise calibrate --alpha` needs no options; numbers by hand."""
    rows = listed("cases.csv")
    assert [row["case"] for row in rows] == ["n2", "n3", "n1"]
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    assert [float(row["expected_gain"]) for row in rows] == pytest.approx(
        [GAINS[1], GAINS[2], GAINS[0]]
    )
    first = rows[0]
    assert first["top_class"] == "benign" and float(first["top_probability"]) == 0.9
    assert first["if_malignant_top_class"] == "malignant"
    assert float(first["if_malignant_prob_malignant"]) == pytest.approx(0.55)
    assert float(first["if_benign_prob_benign"]) == pytest.approx(0.95)


def test_the_column_alpha0_is_read_in_the_encoding_told(tmp_path: Path) -> None:
    """A file that Windows wrote in Western Europe has an α0, too: of α0 = 1 the gain is largest."""
    path = tmp_path / "cases.csv"
    text = "case,prob_0,prob_1,alpha0\nMüller,0.5,0.5,1\nWeiß,0.5,0.5,9\n"
    path.write_bytes(text.encode("cp1252"))
    result = run(f"worklist {path} --encoding cp1252 --out {tmp_path / 'list.csv'}")
    assert result.exit_code == 0, result.stderr
    lines = (tmp_path / "list.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("1,Müller,")


def test_ratings_so_far_are_taken_in(folder: Path) -> None:
    """n2 was called malignant twice: its α0 is 3 and its mean (0.9, 2.1)/3; n1, n3 stay."""
    text = "case,reader,label\nn2,x,malignant\nn2,y,malignant\n"
    (folder / "ratings.csv").write_text(text, encoding="utf-8")
    rows = {row["case"]: row for row in listed("cases.csv --ratings ratings.csv")}
    assert float(rows["n2"]["prob_malignant"]) == pytest.approx(0.7)
    assert float(rows["n2"]["expected_gain"]) == pytest.approx((1 - 0.49 - 0.09) / 16)
    assert float(rows["n3"]["expected_gain"]) == pytest.approx(GAINS[2])
    (folder / "ratings.csv").write_text(text.replace("n2,y", "n9,y"), encoding="utf-8")
    refused = run("worklist cases.csv --ratings ratings.csv")
    assert refused.exit_code == 2 and "'n9'" in refused.stderr


def test_saved_calibrators(folder: Path) -> None:
    """T = 1/2 squares the odds, log α0 = size: both are read and applied in that order."""
    saved_alpha(folder / "alpha.json", slope=1.0, level=0.0)
    saved_temperature(folder / "calibrator.json", 0.5, None)
    models = "--calibrator calibrator.json --alpha-model alpha.json --features-prefix feat_"
    rows = {row["case"]: row for row in listed(f"cases.csv {models}")}
    squared = 0.36 / (0.36 + 0.16)
    assert float(rows["n3"]["prob_benign"]) == pytest.approx(squared)
    gain = (1 - squared**2 - (1 - squared) ** 2) / (np.e + 1) ** 2
    assert float(rows["n3"]["expected_gain"]) == pytest.approx(gain)


def test_npz_with_alpha0(folder: Path) -> None:
    """An NPZ file needs no options either; cases without ids are numbered."""
    np.savez("cases.npz", probs=PROBS, alpha0=ALPHA0)
    assert [row["case"] for row in listed("cases.npz")] == ["1", "2", "0"]


def test_the_terminal_table(folder: Path) -> None:
    """It shows the first cases with what each answer would make of them."""
    shown = run("worklist cases.csv --top 2")
    lines = shown.stdout.splitlines()
    assert lines[0] == "2 of 3 cases, by expected gain of one more label"
    assert lines[1].split() == [
        *("case", "disagree", "gain", "now"),
        *("if", "benign", "if", "malignant"),
    ]
    assert lines[2].split() == [
        *("n2", "0.090", "0.0450", "benign", "0.90"),
        *("benign", "0.95", "malignant", "0.55"),
    ]
    assert "n1" not in shown.stdout


def test_many_classes_show_the_likeliest_answers(folder: Path) -> None:
    """Of eight classes a row shows five answers, the likeliest first; the file has all."""
    names = ",".join(f"prob_{k}" for k in range(8))
    row = "0.01,0.02,0.03,0.04,0.1,0.2,0.25,0.35"
    (folder / "many.csv").write_text(f"case,{names},alpha0\nn1,{row},1\n", encoding="utf-8")
    shown = run("worklist many.csv").stdout.splitlines()[2]
    # (1·f + e_k)/2: after 7 it is 0.675; after 6, 0.625; after 3 another class is not shown
    assert "7: 7 0.68" in shown.replace("0.67 ", "0.68 ") and "6: 6 0.62" in shown
    assert "3: 3" in shown and "2: 2" not in shown
    assert float(listed("many.csv")[0]["if_0_prob_0"]) == pytest.approx(0.505)


def test_without_alpha_only_disagreement_can_rank(folder: Path) -> None:
    """A bare prediction has no gain; disagreement 1 - Σ f² it has."""
    text = "\n".join(line.rsplit(",", 2)[0] for line in TABLE.splitlines())
    (folder / "bare.csv").write_text(text, encoding="utf-8")
    refused = run("worklist bare.csv")
    assert refused.exit_code == 2
    assert "bare.csv has no column 'alpha0'. Give --alpha-model or --alpha-col" in refused.stderr
    shown = run("worklist bare.csv --by disagreement --html bare.html")
    assert "Without α0, it is unknown how much an answer would change." in shown.stdout
    assert shown.stdout.splitlines()[1].split() == ["case", "disagree", "now"]
    page = (folder / "bare.html").read_text(encoding="utf-8")
    assert "that two raters are most likely to differ about come first" in page
    assert "gain 0" not in page and "If the expert says" not in page
    rows = listed("bare.csv --by disagreement")
    assert [float(row["disagreement"]) for row in rows] == pytest.approx([0.5, 0.48, 0.18])


def test_a_list_as_json_has_the_lines_of_the_csv(folder: Path) -> None:
    """Of a name that ends in .json it is JSON, with what was asked and what it rests on."""
    rows = listed("cases.csv --top 2")
    done = run("worklist cases.csv --top 2 --quiet --out list.json")
    assert done.exit_code == 0, done.output
    found = json.loads((folder / "list.json").read_text(encoding="utf-8"))
    assert [{k: str(v) for k, v in row.items()} for row in found["cases"]] == rows
    assert found["schema_version"] == 1 and found["options"] == {"by": "gain", "top": 2}
    names = ["benign", "malignant"]
    assert found["data"] == {
        "cases": 3, "classes": 2, "class_names": names, "ratings": 0, "dropped": {}
    }  # fmt: skip
    assert found["provenance"]["call"].endswith("--out list.json") and found["versions"]


def test_a_list_as_json_says_what_was_left_out_and_to_be_known(folder: Path) -> None:
    """Ratings of a case without a prediction are counted, and a column that nobody read is named.

    Features are read, whatever they are called.
    """
    text = TABLE.replace("feat_size", "reader_size").replace("\n", ",1\n")
    (folder / "more.csv").write_text(text.replace("size,1", "size,weight"), encoding="utf-8")
    ratings = "case,reader,label\nn1,ann,malignant\nn9,ann,benign\n"
    (folder / "r.csv").write_text(ratings, encoding="utf-8")
    asked = "worklist more.csv --ratings r.csv --allow-unmatched --quiet --out list.json"
    saved_alpha(folder / "alpha.json", 1.0, 0.0)
    for way in ("", " --alpha-model alpha.json --features-prefix reader_"):
        done = run(asked + way)
        assert done.exit_code == 0, done.output
        found = json.loads((folder / "list.json").read_text(encoding="utf-8"))
        assert found["data"]["dropped"] == {"without_predictions": 1, "without_ratings": 2}
        told = " ".join(found["warnings"])
        assert "'weight' looks like a weight and was not used" in told
        assert ("'reader_size' looks like a rater and was not used" in told) == (way == "")


ERRORS = {
    "no file": ("nowhere.csv", "nowhere.csv: there is no such file"),
    "no column": ("cases.csv --alpha-column a", "--alpha-column: must name a column of cases.csv"),
    "both": ("cases.csv --alpha-model alpha.json --alpha-column alpha0", "must be one of them"),
    "wrong kind": ("cases.csv --calibrator alpha.json", "alpha.json holds AlphaCalibration"),
    "no calibrator": ("cases.csv --alpha-model cases.csv", "cases.csv: is not a saved calibrator"),
    "other features": (
        "cases.csv --alpha-model two.json --features-prefix feat_",
        "features: must have the 2 columns of the fit; got 1",
    ),
    "other classes": (
        "cases.csv --calibrator other.json",
        "other.json has 'malignant', 'benign' and cases.csv 'benign', 'malignant'",
    ),
    "weights": ("cases.csv --weight-column alpha0", "--weight-column: raterwise worklist does not"),
    "top": ("cases.csv --top 0", "top: must be at least 1"),
}


@pytest.mark.parametrize(("command", "message"), ERRORS.values(), ids=ERRORS)
def test_bad_input_is_one_line_and_exit_code_2(folder: Path, command: str, message: str) -> None:
    """The message is one line on stderr, and nothing is written."""
    saved_alpha(folder / "alpha.json", 1.0, 0.0)
    saved_alpha(folder / "two.json", 1.0, 0.0, features=2)
    saved_temperature(folder / "other.json", 1.0, ["malignant", "benign"])
    before = sorted(folder.iterdir())
    result = run(f"worklist {command} --out list.csv")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("raterwise: ") and result.stderr.count("\n") == 1
    assert message in result.stderr
    assert sorted(folder.iterdir()) == before

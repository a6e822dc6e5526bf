"""Tables as people have them: each variant is read rightly, or refused with the way out.

Every variant holds the same four nodules and the ratings of the same readers; the Brier score of
the clean files is worked out by hand, and a variant that is read must give it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import raterwise as rw
from raterwise.cli.app import app

PREDICTIONS = "case,prob_benign,prob_malignant\nn1,0.75,0.25\nn2,0.5,0.5\nn3,0.125,0.875\nn4,1,0\n"
LONG = (
    "case,reader,label\nn1,A,benign\nn1,B,malignant\nn2,A,malignant\nn2,B,malignant\n"
    "n3,A,malignant\nn4,A,benign\nn4,B,benign\n"
)
WIDE = (
    "case,reader_1,reader_2\nn1,benign,malignant\nn2,malignant,malignant\nn3,malignant,\n"
    "n4,benign,benign\n"
)
COUNTS = "case,count_benign,count_malignant\nn1,1,1\nn2,0,2\nn3,0,1\nn4,2,0\n"
# Per rating, (p - y)² of the malignant class: n1 1/16 and 9/16, n2 1/4 twice, n3 1/64, n4 0 twice;
# each case counts once, its ratings in equal parts.
BRIER = ((1 / 16 + 9 / 16) / 2 + 1 / 4 + 1 / 64 + 0) / 4
ROUNDED = "case,prob_a,prob_b,prob_c,y\nn1,0.33,0.33,0.33,0\nn2,0.17,0.17,0.67,2\n"
ROUNDED += "n3,0.0001,0.0,0.9998,2\n"

Content = str | bytes | pd.DataFrame


@dataclass(frozen=True)
class Messy:
    """Files, options, and what comes of them: a number, or a message; perhaps a note."""

    files: Mapping[str, Content]
    options: str = "p.csv --ratings r.csv"
    value: float | None = BRIER
    message: str = ""
    note: str = ""
    fix: str = field(default="")
    """Options that the message offers: with them the number comes."""


def both(predictions: Content = PREDICTIONS, ratings: Content = LONG) -> dict[str, Content]:
    """Return two CSV files."""
    return {"p.csv": predictions, "r.csv": ratings}


def comma(text: str) -> str:
    """Return a table as a German spreadsheet writes it."""
    return text.replace(",", ";").replace(".", ",")


def numbered(text: str, form: str) -> str:
    """Return a table whose cases n1, n2, … are written otherwise."""
    return re.sub(r"\bn(\d)", lambda found: form.format(int(found[1])), text)


ONE = "case,prob_malignant,y\nn1,0.25,0\nn2,0.5,1\nn3,0.875,1\nn4,0,0\n"
BRIER_ONE = (1 / 16 + 1 / 4 + 1 / 64) / 4

MESSY: dict[str, Messy] = {
    "clean, long": Messy(both()),
    "clean, wide": Messy(both(ratings=WIDE)),
    "clean, counts": Messy(both(ratings=COUNTS)),
    "semicolons and decimal commas": Messy(both(comma(PREDICTIONS), comma(LONG))),
    "two files with different delimiters": Messy(both(comma(PREDICTIONS), LONG)),
    "tabs in a .csv": Messy(both(PREDICTIONS.replace(",", "\t"), LONG.replace(",", "|"))),
    "a .tsv of commas": Messy(
        {"p.tsv": PREDICTIONS, "r.csv": LONG}, "p.tsv --ratings r.csv"
    ),
    "Excel's sep= line": Messy(both("sep=;\n" + comma(PREDICTIONS), LONG)),
    "UTF-8 with a byte order mark": Messy(both(PREDICTIONS.encode("utf-8-sig"))),
    "UTF-16 of a spreadsheet": Messy(both(PREDICTIONS.replace(",", "\t").encode("utf-16"))),
    "Windows line ends": Messy(both(PREDICTIONS.replace("\n", "\r\n"))),
    "blanks after the commas": Messy(
        both(PREDICTIONS.replace(",", ", "), LONG.replace(",", " , "))
    ),
    "Excel files": Messy(
        {
            "p.xlsx": pd.DataFrame(
                {"case": ["n1", "n2", "n3", "n4"], "prob_benign": [0.75, 0.5, 0.125, 1],
                 "prob_malignant": [0.25, 0.5, 0.875, 0]}
            ),
            "r.xlsx": pd.DataFrame(
                {"case": ["n1", "n2", "n3", "n4"],
                 "reader_1": ["benign", "malignant", "malignant", "benign"],
                 "reader_2": ["malignant", "malignant", None, "benign"]}
            ),
        },
        "p.xlsx --ratings r.xlsx",
    ),
    "pandas' unnamed index as the id": Messy(
        both(PREDICTIONS.replace("case", ""), LONG.replace("case,reader", ",reader"))
    ),
    "pandas' index, read and written again": Messy(
        both(PREDICTIONS.replace("case", "Unnamed: 0"), LONG)
    ),
    "columns nobody asked for": Messy(
        both(PREDICTIONS.replace("\n", ",x\n").replace("malignant,x", "malignant,weight", 1)),
        note="'weight' looks like a weight and was not used; weight_column",
    ),
    "a patient nobody asked for": Messy(
        both("case,patient_id,age,prob_benign,prob_malignant\nn1,p1,60,0.75,0.25\n"
             "n2,p1,60,0.5,0.5\nn3,p2,70,0.125,0.875\nn4,p2,70,1,0\n"),
        note="p.csv has a column 'patient_id' with 2 values for 4 cases",
    ),
    "readers in four spellings": Messy(
        both(ratings=WIDE.replace("reader_1,reader_2", "reader_1,Reader 2,reader3,Reader_4")
             .replace("n1,benign,malignant", "n1,benign,malignant,,")
             .replace("n2,malignant,malignant", "n2,,,malignant,malignant")
             .replace("n3,malignant,", "n3,,malignant,,")
             .replace("n4,benign,benign", "n4,,benign,benign,"))
    ),
    "ratings beside the probabilities": Messy(
        {"p.csv": "prob_benign,prob_malignant,reader_1,reader_2\n0.75,0.25,benign,malignant\n"
                  "0.5,0.5,malignant,malignant\n0.125,0.875,malignant,\n1,0,benign,benign\n"},
        "p.csv",
    ),
    "counts beside the probabilities": Messy(
        {"p.csv": "case,prob_benign,prob_malignant,count_malignant,count_benign\n"
                  "n1,0.75,0.25,1,1\nn2,0.5,0.5,2,0\nn3,0.125,0.875,1,0\nn4,1,0,0,2\n"},
        "p.csv",
    ),
    "one probability that names its class": Messy({"p.csv": ONE}, "p.csv --label-column y",
                                                  BRIER_ONE),
    "one probability, labels in words": Messy(
        {"p.csv": ONE.replace(",0\n", ",benign\n").replace(",1\n", ",malignant\n")},
        "p.csv --label-column y",
        BRIER_ONE,
        r"row 1 is 'benign', and the classes are 'not malignant', 'malignant'",
        fix="--class-names benign,malignant",
    ),
    "Windows-1252": Messy(
        both(*(text.replace("n1", "nä1").encode("cp1252") for text in (PREDICTIONS, LONG))),
        message="must be UTF-8 text; byte 0xe4 is not .*--encoding cp1252",
        fix="--encoding cp1252",
    ),
    "one file with a mark of UTF-8, the other Windows-1252": Messy(
        both(PREDICTIONS.replace("n1", "nä1").encode("utf-8-sig"),
             LONG.replace("n1", "nä1").encode("cp1252")),
        message="r.csv: must be UTF-8 text; byte 0xe4 is not .*--encoding cp1252",
        fix="--encoding cp1252",
    ),
    "NA for no rating": Messy(
        both(ratings=WIDE.replace("malignant,\n", "malignant,NA\n")),
        message=r"row 3 is 'NA'.* \(if that is no rating: --missing NA\)",
        fix="--missing NA",
    ),
    "a dash for no rating": Messy(
        both(ratings=WIDE.replace("malignant,\n", "malignant,-\n")),
        message=r"row 3 is '-'.* \(if that is no rating: --missing -\)",
        fix="--missing=-",
    ),
    "other cases of letters": Messy(
        both(ratings=LONG.replace("B,malignant", "B,MALIGNANT").replace("A,benign", "A,Benign")),
        message=r"row 1 is 'Benign'.* \(--ignore-case takes",
        fix="--ignore-case",
    ),
    "yes and no": Messy(
        both(ratings=LONG.replace("benign", "No").replace("malignant", "Yes")),
        message=r'row 1 is \'No\'.*\(--class-names No,Yes names',
        fix="--class-names No,Yes",
    ),
    "yes, no and perhaps": Messy(
        both(ratings=LONG.replace("benign", "NO").replace("malignant", "YES") + "n3,B,HEDGE\n"),
        message=r"--class-names NO,YES names .*, --missing HEDGE leaves out the others",
        fix="--class-names NO,YES --missing HEDGE",
    ),
    "ids under another name": Messy(
        both(PREDICTIONS.replace("case", "image_id"), LONG.replace("case", "image_id")),
        message=r"there is no 'case' .*; perhaps --id-column image_id",
        fix="--id-column image_id",
    ),
    "ids under another name in the ratings": Messy(
        both(PREDICTIONS.replace("case", "image"), LONG.replace("case", "Image")),
        options="p.csv --ratings r.csv --id-column image",
        message=r"--ratings-id-column: must name a column .* no 'image' \(did you mean 'Image'",
        fix="--ratings-id-column Image",
    ),
    "words, and classes without names": Messy(
        both(
            "case,risk\nn1,0.25\nn2,0.5\nn3,0.875\nn4,0\n",
            LONG.replace("benign", "gut").replace("malignant", "schlecht") + "n3,B,offen\n",
        ),
        options="p.csv --ratings r.csv --prob-columns risk",
        message=r"and the classes are '0', '1' \(--class-names gives the classes the names",
        fix="--class-names gut,schlecht --missing offen",
    ),
    "TRUE and FALSE": Messy(
        both(ratings=LONG.replace("benign", "FALSE").replace("malignant", "TRUE")),
        message=r"--class-names FALSE,TRUE",
        fix="--class-names FALSE,TRUE",
    ),
    "percentages": Messy(
        both("case,prob_benign,prob_malignant\nn1,75,25\nn2,50,50\nn3,12.5,87.5\nn4,100,0\n"),
        message=r"'prob_benign' is 75 in data row 1 \(case 'n1'\) \(--percent takes percentages\)",
        fix="--percent",
    ),
    "percent signs": Messy(
        both("case,prob_benign,prob_malignant\nn1,75%,25 %\nn2,50%,50%\nn3,12.5%,87.5%\n"
             "n4,100%,0%\n"),
        message=r"row 1 is '75%' \(--percent takes percentages\)",
        fix="--percent",
    ),
    "rounded to two, three and four decimals": Messy(
        {"p.csv": ROUNDED},
        "p.csv --label-column y",
        # Of three classes the Brier score is the sum over them: (2/3, 1/3, 1/3) gives 2/3.
        (2 / 3 + 2 * (17 / 101) ** 2 + (34 / 101) ** 2 + 2 * 1e-8 / 0.9999**2) / 3,
        r"sum to 0\.99 \(they look rounded: --normalize divides",
        fix="--normalize",
    ),
    "a rater twice": Messy(
        both(ratings=LONG + "n4,B,malignant\nn4,B,benign\n"),
        message="'B' has more than one row for case 'n4' .*--duplicates last",
        fix="--duplicates last",
    ),
    "a rater twice, the most frequent": Messy(
        both(ratings=LONG + "n4,B,malignant\nn4,B,benign\n"),
        "p.csv --ratings r.csv --duplicates average",
        note="2 ratings are repeats by the same rater of the same case; the most frequent one",
    ),
    "a misspelt column": Messy(
        both(PREDICTIONS.replace("case", "pat")),
        "p.csv --ratings r.csv --group-column pta",
        message=r"--id-column: must say which column",
        fix="--id-column pat --ratings-id-column case --group-column pat",
    ),
    "a misspelt option's value": Messy(
        both(), "p.csv --ratings r.csv --group-column cases",
        message=r"there is no 'cases' \(did you mean 'case'\?\)",
        fix="--group-column case",
    ),
    "a class in capitals": Messy(both(PREDICTIONS.replace("prob_malignant", "Prob_malignant"))),
    "a class without the underscore": Messy(
        both(PREDICTIONS.replace("prob_malignant", "p-malignant")),
        message=r"only 'prob_benign' begins with .* 'p-malignant' may be the probability of anoth",
        fix="--prob-columns prob_benign,p-malignant --class-names benign,malignant",
    ),
    "probabilities under another name": Messy(
        both(PREDICTIONS.replace("prob_", "p_")),
        message=r'--prob-columns p_benign,p_malignant',
        fix="--prob-prefix p_",
    ),
    "a thousand or a fraction": Messy(
        both("case;prob_benign;prob_malignant;w\nn1;0,75;0,25;1,234\nn2;0,5;0,5;1,234\n"
             "n3;0,125;0,875;1,234\nn4;1;0;1,234\n"),
        "p.csv --ratings r.csv --weight-column w",
        message=r"'w': must hold numbers; data row 1 is '1,234' \(a decimal comma; write a decimal",
    ),
    "commas and points mixed": Messy(
        both(comma(PREDICTIONS).replace("0,75", "0.75")),
        message=r"row 2 is '0,5' \(a decimal comma; write a decimal point\)",
    ),
    "ids that do not match": Messy(
        both(PREDICTIONS.replace("\nn1", "\nm1"), LONG),
        message=r"1 of 4 cases of p.csv are not in r.csv \('m1'\).*--allow-unmatched",
        value=(1 / 4 + 1 / 64) / 3,
        fix="--allow-unmatched",
    ),
    "ids as 1 and 1.0": Messy(both(numbered(PREDICTIONS, "{}"), numbered(LONG, "{}.0"))),
    "ids as 1 and 001": Messy(
        both(numbered(PREDICTIONS, "{}"), numbered(LONG, "{:03d}")),
        message=r"'1' and '001' would match but for leading zeros: --loose-ids takes",
        fix="--loose-ids",
    ),
    "ids in capitals": Messy(
        both(PREDICTIONS, numbered(LONG, "N{}")),
        message=r"'n1' and 'N1' would match but for upper and lower case",
        fix="--loose-ids",
    ),
    "ids that are days, the day first": Messy(
        both(numbered(PREDICTIONS, "2024-0{}-01"), numbered(LONG, "01.0{}.2024")),
        message=r"'2024-01-01' and '01.01.2024' look like one day, written in two ways: write the",
    ),
    "ids that are days, the month first": Messy(
        both(numbered(PREDICTIONS, "2024021{}"), numbered(LONG, "2/1{}/2024")),
        message=r"'20240211' and '2/11/2024' look like one day",
    ),
    "ids with the ending of a file": Messy(
        both(numbered(PREDICTIONS, "n{}.png"), LONG),
        message=r"'n1.png' and 'n1' would match but for the ending of a file",
        fix="--loose-ids",
    ),
    "blanks at the ends of cells": Messy(
        both(PREDICTIONS.replace(",", " ,"), WIDE.replace("benign", "benign "))
    ),
    "a case twice": Messy(
        both(PREDICTIONS + "n2,0.25,0.75\n"),
        message=r"every case must have one row; these have more: 'n2' \(keep one row of each",
    ),
    "a row per rating, its columns called otherwise": Messy(
        both(ratings=LONG.replace("case,reader,label", "case,rater_slot,malignancy")),
        message=r"if a row is one rating, name its columns: --rater-column and --rating-column\)",
        fix="--rater-column rater_slot --rating-column malignancy",
    ),
    "no rating in nine spellings": Messy(
        both(ratings="case," + ",".join(f"reader_{i}" for i in range(1, 12)) + "\n"
             "n1,benign,malignant,NA,,,,,,,,\nn2,malignant,malignant,,N/A,n/a,NaN,nan,,,,\n"
             "n3,malignant,,,,,,,null,None,-,.\nn4,benign,benign,,,,,,,,,\n"),
        message=r"\(if those are no rating: --missing NA,N/A,n/a,NaN,nan,null,None,-,\.\)",
        fix="--missing NA,N/A,n/a,NaN,nan,null,None,-,.",
    ),
    "ratings of unknown cases": Messy(
        both(ratings=LONG + "n9,A,benign\n"),
        message=r"1 of 5 cases of r.csv are not in p.csv \('n9'\); --allow-unmatched leaves",
        fix="--allow-unmatched",
    ),
    "cases without ratings": Messy(
        both(PREDICTIONS + "n5,0.5,0.5\n"),
        message=r"1 of 5 cases of p.csv are not in r.csv \('n5'\); --allow-unmatched leaves",
        fix="--allow-unmatched",
    ),
    "a case whose rating is empty": Messy(
        both(PREDICTIONS + "n5,0.5,0.5\n", LONG + "n5,A,\n"),
        message=r"1 of 5 has none \(case 'n5'\); --on-unrated drop leaves them out",
        fix="--on-unrated drop",
    ),
    "weights of the cases": Messy(
        both("case,prob_benign,prob_malignant,weight\nn1,0.75,0.25,1\nn2,0.5,0.5,3\n"
             "n3,0.125,0.875,1\nn4,1,0,1\n"),
        "p.csv --ratings r.csv --weight-column weight",
        ((1 / 16 + 9 / 16) / 2 + 3 * 1 / 4 + 1 / 64 + 0) / 6,
    ),
    "commas within quotes": Messy(both(*(t.replace("n1", '"n, 1"') for t in (PREDICTIONS, LONG)))),
    "empty lines at the end": Messy(both(PREDICTIONS + "\n\n", LONG + "   \n\n")),
    "empty cells at the end": Messy(both(PREDICTIONS + ",,\n,,\n")),
    "lines before the column names": Messy(
        both("# model 3, exported on Monday\n" + PREDICTIONS),
        message=r"'# model 3, exported on Monday' \(2\), and those after it have 3 \(delete what",
    ),
    "column names in capitals": Messy(
        both(PREDICTIONS.replace("case", "CASE"), LONG.replace("case,reader,label",
                                                               "Case,Reader,Label"))
    ),
    "UTF-16 without its mark": Messy(
        both(*(text.encode("utf-16-le") for text in (PREDICTIONS, LONG))),
        message=r"looks like UTF-16 without a mark at its beginning: say --encoding utf-16-le",
        fix="--encoding utf-16-le",
    ),
    "the file of one reader": Messy(
        both(ratings="case,rating\nn1,benign\nn2,malignant\nn3,malignant\nn4,benign\n"),
        value=(1 / 16 + 1 / 4 + 1 / 64 + 0) / 4,
        message=r"perhaps --rater-columns rating, if they are of one rater",
        fix="--rater-columns rating",
    ),
    "annotators": Messy(
        both(ratings=WIDE.replace("reader_1,reader_2", "annotator_1,annotator_2")),
        message=r"perhaps --rater-columns annotator_1,annotator_2",
        fix="--rater-columns annotator_1,annotator_2",
    ),
    "raters whose names hold a comma": Messy(
        both(ratings=WIDE.replace("reader_1,reader_2", '"Roe,A",Bo')),
        message=r"""--rater-columns, where .* in quotes: '"Roe,A",Bo'""",
        fix='--rater-columns "Roe,A",Bo',  # as the shell passes it on
    ),
    "a long table under other names": Messy(
        both(ratings=LONG.replace("reader,label", "Befunder,Diagnose")),
        message=r"or --rater-column Befunder and --rating-column Diagnose",
        fix="--rater-column Befunder --rating-column Diagnose",
    ),
    "a rating under another name": Messy(
        both(ratings=LONG.replace("label", "diagnosis")),
        message=r"perhaps --rater-column reader and --rating-column diagnosis",
        fix="--rater-column reader --rating-column diagnosis",
    ),
    "a probability of 1.0000001": Messy(both(PREDICTIONS.replace("n4,1,0", "n4,1.0000001,0"))),
    "a probability of -0.0001": Messy(
        both(PREDICTIONS.replace("n4,1,0", "n4,1,-0.0001")),
        message=r"is -0\.0001 in data row 4 .*\(if rounding did that, write 0 for what is below",
    ),
    "a probability of 1.00001": Messy(
        both(PREDICTIONS.replace("n4,1,0", "n4,1.00001,0")),
        message=r"is 1\.00001 in data row 4 .*--normalize divides each row by its sum",
        fix="--normalize",
    ),
    "one probability, yes and no": Messy(
        {"p.csv": ONE.replace(",0\n", ",NO\n").replace(",1\n", ",Yes\n")},
        "p.csv --label-column y",
        BRIER_ONE,
    ),
    "one probability, true and false": Messy(
        both("case,prob_malignant\nn1,0.25\nn2,0.5\nn3,0.875\nn4,0\n",
             LONG.replace("benign", "FALSE").replace("malignant", "TRUE")),
    ),
    "one probability, yes, no and perhaps": Messy(
        {"p.csv": (ONE + "n5,0.5,perhaps\n").replace(",0\n", ",n\n").replace(",1\n", ",y\n")},
        "p.csv --label-column y",
        BRIER_ONE,
        message=r"row 5 is 'perhaps'.* \(if that is no rating: --missing perhaps\)",
        fix="--missing perhaps --on-unrated drop",
    ),
    "no labels anywhere": Messy(
        {"p.csv": PREDICTIONS}, "p.csv", message="holds no labels; give a file of ratings, or say"
    ),
}  # fmt: skip


def write(folder: Path, files: Mapping[str, Content]) -> None:
    """Put files into a folder."""
    for name, content in files.items():
        if isinstance(content, pd.DataFrame):
            content.to_excel(folder / name, index=False)
        elif isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            (folder / name).write_bytes(content.encode("utf-8"))


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, str]]:
    """Return a function that runs `raterwise evaluate` in a folder: exit code and output."""
    monkeypatch.chdir(tmp_path)

    def run(options: str) -> tuple[int, str]:
        command = f"evaluate {options} --metrics brier --per case --resamples 0 --out results.json"
        if "--label-column" in options:
            command = command.replace(" --per case", "")
        found = CliRunner().invoke(app, command.split())
        return found.exit_code, " ".join(found.output.split())

    return run


@pytest.mark.parametrize("messy", MESSY.values(), ids=MESSY)
def test_messy_files(
    tmp_path: Path, evaluated: Callable[[str], tuple[int, str]], messy: Messy
) -> None:
    """Right at once, or a message whose option makes it right."""
    write(tmp_path, messy.files)
    code, said = evaluated(messy.options)
    if messy.message:
        assert code == 2 and re.search(messy.message, said), said
        assert not Path("results.json").exists()
        if not messy.fix:
            return
        first = (
            re.sub(r" --group-column \w+", "", messy.options)
            if "column" in messy.fix
            else messy.options
        )
        code, said = evaluated(f"{first} {messy.fix}")
    assert code == 0, said
    results = rw.Results.from_json("results.json")
    assert results["brier"].value == pytest.approx(messy.value, rel=1e-12)
    if messy.note:
        assert any(messy.note in note for note in results.warnings), results.warnings


def test_python_reads_what_the_command_line_reads(tmp_path: Path) -> None:
    """`read_cases` gives the same cases, notes and reasons for what was left out."""
    write(tmp_path, both(comma(PREDICTIONS).replace("\nn1", "\nm1"), LONG))
    cases = rw.read_cases(tmp_path / "p.csv", ratings=tmp_path / "r.csv", allow_unmatched=True)
    assert cases.left_out == {"without_ratings": ("m1",), "without_predictions": ("n1",)}
    results = rw.evaluate(cases, metrics="brier", resamples=0)
    assert results.data["dropped"] == {"without_ratings": 1, "without_predictions": 1}
    assert results.provenance["raters"] == ["A", "B"]
    assert [Path(file["name"]).name for file in results.provenance["inputs"]] == ["p.csv", "r.csv"]
    with pytest.raises(rw.InvalidInputError, match="groups: must be left out; the predictions"):
        rw.evaluate(cases, groups=[1, 2, 3])
    with pytest.raises(rw.InvalidInputError, match="hold it; metrics='brier' names metrics"):
        rw.evaluate(cases, "brier")
    with pytest.raises(rw.InvalidInputError, match="labels: must be given with probabilities"):
        rw.evaluate([0.5, 0.2])


def test_no_column_is_lost_in_silence(tmp_path: Path) -> None:
    """Whatever looks like a rater, a class, a patient or a weight and is not used is named."""
    header = "case,prob_a,prob_b,p_c,reader_1,annotator 2,patient,weight,age\n"
    write(
        tmp_path,
        {
            "p.csv": header + "n1,0.5,0.5,0,a,b,p1,1,60\nn2,0.25,0.75,0,b,b,p2,1,70\n"
            "n3,0.5,0.5,0,a,b,p2,1,50\n"
        },
    )
    notes = rw.read_cases(tmp_path / "p.csv").notes
    for column in ("p_c", "annotator 2", "patient", "weight"):
        assert any(repr(column) in note for note in notes), (column, notes)
    assert not any("'age'" in note or "'reader_1'" in note for note in notes)


def test_other_sheets_are_named(tmp_path: Path) -> None:
    """Of a workbook with several sheets the first is read, and a note says so."""
    frame = pd.DataFrame({"case": [1, 2], "prob_a": [0.5, 1.0], "prob_b": [0.5, 0.0], "y": [0, 1]})
    with pd.ExcelWriter(tmp_path / "p.xlsx") as book:
        frame.to_excel(book, sheet_name="cases", index=False)
        frame.to_excel(book, sheet_name="notes", index=False)
    cases = rw.read_cases(tmp_path / "p.xlsx", label_column="y")
    assert cases.labels.majority().tolist() == [0, 1]
    assert any("only the first sheet, 'cases', was read" in note for note in cases.notes)


def test_a_sheet_that_was_not_read_is_named_where_labels_are_missing(tmp_path: Path) -> None:
    """The ratings are in the second sheet: the error says so, and takes no probability for one."""
    book = tmp_path / "study.xlsx"
    with pd.ExcelWriter(book) as sheets:
        probs = pd.DataFrame({"case": [1, 2], "prob_a": [0.5, 1.0], "prob_b": [0.5, 0.0]})
        probs.to_excel(sheets, sheet_name="model", index=False)
        pd.DataFrame({"case": [1, 2], "reader_1": [0, 1]}).to_excel(sheets, sheet_name="panel")
    unread = "only the first sheet, 'model', was read; there are also 'panel'"
    with pytest.raises(rw.InvalidInputError, match=f"holds no labels.*{unread}"):
        rw.read_cases(book)
    with pytest.raises(rw.InvalidInputError, match=f"ratings_layout: .*{unread}") as error:
        rw.read_cases(book, ratings=book)
    assert "perhaps" not in str(error.value)


def test_ratings_from_one_beside_classes_from_zero(tmp_path: Path) -> None:
    """Ratings 1 to 3 of classes called 0 to 2: the error says how to name the classes."""
    predictions, ratings = tmp_path / "p.csv", tmp_path / "r.csv"
    predictions.write_text("case,prob_0,prob_1,prob_2\na,0.5,0.3,0.2\nb,0.2,0.3,0.5\n")
    ratings.write_text("case,reader,rating\na,x,1\na,y,2\nb,x,3\nb,y,3\n")
    with pytest.raises(rw.InvalidInputError, match=r'count from 1: class_names="1,2,3"'):
        rw.read_cases(predictions, ratings=ratings)
    cases = rw.read_cases(predictions, ratings=ratings, class_names=["1", "2", "3"])
    assert cases.labels.counts.tolist() == [[1, 1, 0], [0, 0, 2]]
    # A column with gaps, as pandas writes it: the same numbers.
    ratings.write_text("case,reader,rating\na,x,1.0\na,y,2.0\nb,x,3.0\nb,y,\n")
    with pytest.raises(rw.InvalidInputError, match=r'count from 1: class_names="1,2,3"'):
        rw.read_cases(predictions, ratings=ratings)
    ratings.write_text("case,reader,rating\na,x,0\na,y,2\nb,x,3\nb,y,1\n")  # four steps, 3 classes
    with pytest.raises(rw.InvalidInputError, match=r"'0', '1', '2'$"):
        rw.read_cases(predictions, ratings=ratings)


def test_ids_of_other_files_name_both_options(tmp_path: Path) -> None:
    """In the terminal both columns of ids are options, not arguments of Python."""
    predictions, ratings = tmp_path / "p.csv", tmp_path / "r.csv"
    predictions.write_text(PREDICTIONS)
    ratings.write_text("case,reader,label\nq,A,benign\n")
    found = CliRunner().invoke(app, ["evaluate", str(predictions), "--ratings", str(ratings)])
    assert found.exit_code == 2
    assert "--id-column and --ratings-id-column name other columns" in " ".join(
        found.output.split()
    )

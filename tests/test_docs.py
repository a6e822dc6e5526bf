"""The pages that are made from the code say what the code says."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from raterwise.catalog import CATALOG
from raterwise.cli import app

ROOT = Path(__file__).resolve().parents[1]
MADE = ("metrics", "api", "gallery_of_tutorials", "_build", "_static")
LINKING = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "docs").rglob("*.md")
    if not set(MADE) & set(path.relative_to(ROOT).parts)
)


def test_the_page_of_metrics_is_up_to_date() -> None:
    """docs/metrics.md is what the catalog makes of it."""
    command = [sys.executable, "tools/make_metric_docs.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_ensembles_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The code of docs/ensembles.md, from images to the posterior, holds what the page says."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    page = (ROOT / "docs" / "ensembles.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    held: dict[str, Any] = {"__name__": "ensembles_page"}
    for block in blocks:
        exec(compile(block, "docs/ensembles.md", "exec"), held)
    assert "robust_ece_mixture" in held["found"].models["draws"]
    assert len(held["ranked"]) == 5
    assert "temperature + alpha" in capsys.readouterr().out


PAGE = '<html><body><h1 id="top">x</h1><script src="s.js"></script>{}</body></html>'


@pytest.mark.parametrize(
    ("planted", "complaint"),
    [
        ("", None),
        ('<a href="https://example.org/page">a link that a person may click</a>', None),
        ('<a href="#top">here</a> <a href="other.html#top">there</a>', None),
        ('<script src="https://cdn.example.org/x.js"></script>', "loads https://cdn.example.org"),
        ('<img src="//example.org/x.png">', "loads //example.org/x.png"),
        ('<link rel="stylesheet" href="http://example.org/x.css">', "loads http://example.org"),
        (
            "<style>a { src: url('https://example.org/f.woff') }</style>",
            "loads https://example.org",
        ),
        ('<a href="missing.html">x</a>', "links to missing.html, which is not there"),
        ('<a href="other.html#nowhere">x</a>', "there is no such place"),
    ],
)
def test_the_check_of_the_site(tmp_path: Path, planted: str, complaint: str | None) -> None:
    """A page that loads from elsewhere or links nowhere is found; an honest one is not."""
    (tmp_path / "s.js").write_text("")
    (tmp_path / "index.html").write_text(PAGE.format(planted))
    (tmp_path / "other.html").write_text(PAGE.format(""))
    command = [sys.executable, "tools/check_site.py", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == (complaint is not None), done.stdout
    assert complaint is None or complaint in done.stdout


def test_every_image_is_shown() -> None:
    """A picture in docs/images that no page shows would be one that nobody can check."""
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in ["README.md", *LINKING]]
    shown = {name for text in texts for name in re.findall(r"images/([\w.]+)", text)}
    assert {path.name for path in (ROOT / "docs" / "images").iterdir()} <= shown


@pytest.mark.parametrize("page", ["README.md", *LINKING])
def test_links_between_files_lead_somewhere(page: str) -> None:
    """What README and the pages link to within the repository is there."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    kept = [link for link in links if not set(MADE) & set(Path(link).parts)]
    assert [link for link in kept if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_headlines_of_reports_are_those_of_the_pages() -> None:
    """What the page of the verdict and the first five minutes call a headline is one."""
    files = (ROOT / "src/raterwise").glob("*/*.py")
    code = "\n".join(path.read_text(encoding="utf-8") for path in files).lower()
    page = (ROOT / "docs/verdict.md").read_text(encoding="utf-8").partition("## ")[0]
    heads = [h for h in re.findall(r"^\| (.*?) \|", page, flags=re.M) if h[0] not in "-h"]
    named = [name.strip() for head in heads for name in head.split(",") if "“" not in name]
    assert len(named) > 5 and [n for n in named if n.lower().strip("… ") not in code] == []
    first = (ROOT / "docs/start/five_minutes.md").read_text(encoding="utf-8")
    (decisions,) = re.findall(r"\| what the report says \|.*?\n\n", first, flags=re.S)
    cells = re.findall(r"^\| (.*?) \|", decisions, flags=re.M)[2:5]
    told = [name.strip() for cell in cells for name in cell.split(",") if "“" not in name]
    assert len(told) == 5 and set(told) <= set(named)


@pytest.mark.parametrize("name", CATALOG)
def test_every_metric_says_what_it_cannot_tell(name: str) -> None:
    """In metric_words.toml, which speaks of no metric that is not there."""
    words = tomllib.loads((ROOT / "tools/metric_words.toml").read_text(encoding="utf-8"))
    assert words.keys() - CATALOG.keys() == set()
    assert words[name]["pitfall"]


def test_the_commands_of_the_five_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page runs as it is printed, and prints what is shown below it."""
    page = (ROOT / "docs/start/five_minutes.md").read_text(encoding="utf-8")
    parts = re.findall(r"^\$ raterwise ((?:.*\\\n)*.*\n)((?:[^$`].*\n)*)", page, flags=re.MULTILINE)
    assert len(parts) == 1
    monkeypatch.chdir(tmp_path)
    (written,) = re.findall(r'^\$ python -c "(.*)"$', page, flags=re.MULTILINE)
    exec(written, {})
    for command, shown in parts:
        done = CliRunner().invoke(app, shlex.split(command.replace("\\\n", " ")))
        assert done.exit_code == 0, done.output
        assert shown and " ".join(shown.split()) in " ".join(done.output.split()), done.output
    assert json.loads((tmp_path / "results.json").read_text())["schema_version"]
    assert "Over-confident" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_reference_does_not_show_what_python_says_of_a_tuple() -> None:
    """A constant has its value on its page, and not the docstring of its type in the table."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    code = "import make_site_pages as m; print(m.api_pages()['raterwise_torch_losses'])"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, 'tools'); {code}"]
    page = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    table, _, entries = page.partition(".. autosummary::")[2].partition("..")
    assert "focal_loss" in table and "FLSD_53" not in table
    assert (
        "py:data:: raterwise.torch.losses.FLSD_53\n   :value: ((0.2, 5.0), (0.5, 3.0))" in entries
    )

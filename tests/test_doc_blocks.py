"""Every command and every block of Python in README and the pages runs; what is shown comes out."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import doc_world
import raterwise as rw
from experiments.commands import app as experiments
from raterwise.cli import app

ROOT = Path(__file__).resolve().parents[1]
MADE = {"metrics", "api", "gallery_of_tutorials", "_build", "_static"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(
    path for path in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    if not MADE & set(path.relative_to(ROOT).parts)
)]  # fmt: skip
# Programs of others, which are not ours to run here. Ours are run, or their options looked up.
OTHERS = {
    *("cp", "dask", "docker", "export", "for", "nvidia-cuda-mps-control", "openssl", "pip"),
    *("rattler-build", "source"),
}
# What keeps a command short; its output is then not compared.
SHORT = {
    "evaluate": "--resamples 20", "compare": "--resamples 20", "segment": "--resamples 20",
    "calibrate": "--resamples 20",
    "stability": "--repeats 2", "plan": "--repeats 2 --resamples 20",
}  # fmt: skip


def blocks(page: Path, kind: str) -> list[str]:
    """Return the blocks of one kind of a page."""
    return re.findall(rf"```{kind}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Yield every command of a page, in one line, with the output that is shown below it."""
    for block in blocks(page, "console"):
        text = block.replace("\\\n", " ")
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            yield re.sub(r"^\.venv/bin/|\s+#.*$", "", " ".join(line.split())), shown.strip()


# The five minutes are walked in tests/test_docs.py, on the tables of the demonstration.
WITH_COMMANDS = [
    page for page in PAGES if any(True for _ in commands(page)) and page.stem != "five_minutes"
]


@pytest.fixture(scope="module", name="world")
def world_of_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages speak of, made once."""
    folder = tmp_path_factory.mktemp("world")
    doc_world.make(folder)
    return folder


@pytest.fixture(name="here")
def copy_of_the_world(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them, to work in."""
    folder = tmp_path / "here"
    shutil.copytree(world, folder)
    monkeypatch.chdir(folder)
    return folder


def options_of(words: list[str]) -> set[str]:
    """Return the long options of a command line."""
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def run_ours(line: str, shown: str) -> None:
    """Run a `raterwise` command within this process; compare what is shown below it."""
    words = shlex.split(line)[1:]
    known = get_command(app).commands[words[0]]  # type: ignore[attr-defined]
    taken = {name for option in known.params for name in option.opts}
    assert options_of(words) - taken == set(), line
    if any(word.startswith(("tcp://", "tls://")) for word in words):
        return  # there is no such scheduler here; tests/test_cluster.py has its own
    if words[0] == "demo" and not shown:
        return  # it is long, and tests/test_cli.py runs it in every way
    words = [str(min(2, int(w))) if words[i - 1] == "--workers" else w for i, w in enumerate(words)]
    words = [found for word in words for found in expanded(word)]
    files = [word for word in words[1:] if word.endswith(".json")]  # which keep their resamples
    short = [] if shown or files else shlex.split(SHORT.get(words[0], ""))
    environment = {"COLUMNS": "95"}
    done = CliRunner(env=environment).invoke(app, [*words, *short])
    assert done.exit_code == 0, f"{line}\n{done.output}"
    if shown:
        assert " ".join(shown.split()) in " ".join(done.output.split()), done.output


def expanded(word: str) -> list[str]:
    """Return the files that an unquoted pattern means, as a shell does."""
    if "*" in word and word.endswith(".json"):
        return sorted(map(str, Path().glob(word)))
    return [word]


def check_make(line: str, shown: str) -> None:
    """The target of `make` is in the Makefile."""
    made = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    assert shlex.split(line)[1] in made and not shown


def check_python(line: str, shown: str) -> None:
    """An experiment or a benchmark has the options that it is shown with; a script runs."""
    words = [word for word in shlex.split(line)[1:] if word != "-P"]
    if words[:2] == ["-m", "experiments"]:
        command = get_command(experiments).commands[words[2]]  # type: ignore[attr-defined]
        taken = {name for option in command.params for name in option.opts}
        assert options_of(words) - taken == set(), line
        return
    if words[0] == "-m":
        assert (ROOT / words[1].replace(".", "/")).with_suffix(".py").is_file(), line
        return
    script = next(path for path in (ROOT / words[0], Path(words[0])) if path.is_file())
    if script.parent.name == "benchmarks":
        shared = script.with_name("resumed.py").read_text(encoding="utf-8")
        known = re.findall(r'"(--[a-z-]+)"', script.read_text(encoding="utf-8") + shared)
        assert options_of(words) - {*known} == set(), line
    elif script.parent.name != "tools":
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert not shown


RUN: dict[str, Callable[[str, str], None]] = {
    "mkdir": lambda line, _: Path(line.split()[-1]).mkdir(parents=True, exist_ok=True),
    "raterwise": run_ours,
    "make": check_make,
    "python": check_python,
}


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page(page: Path, here: Path) -> None:
    """Each runs on small files of the names that the page uses, one after the other."""
    if page.parent.name == "challenge":
        shutil.copytree(page.parent, here / "challenge")
        os.chdir(here / "challenge")
    for line, shown in commands(page):
        program = line.split()[0]
        assert program in RUN.keys() | OTHERS, f"{program}: who runs this?"
        if program in RUN:
            RUN[program](line, shown)
        else:  # after a copy, or in a loop of the shell
            for ours in re.findall(r"python -m experiments [^&;|]+", line):
                check_python(ours, "")
        if page.parent.name == "challenge" and line.startswith("python"):
            shutil.copytree("scores/sample", "scores/other")  # a second team, as the README has


def test_kept_outputs_are_copied_to_a_folder_each() -> None:
    """`cp -r` into a folder that is there makes a folder within it, and nothing is found there."""
    lines = [line for page in PAGES for line, _ in commands(page)]
    steps = [step.strip() for line in lines for step in line.split("&&")]
    copies = {step.split()[-1]: step.split()[-2] for step in steps if step.startswith("cp -r exp")}
    assert len(copies) == sum(step.startswith("cp -r exp") for step in steps) >= 7
    assert all((ROOT / source).is_dir() for source in copies.values())
    for step in steps:
        if step.startswith("python -m experiments ") and "--data" not in step:
            words = step.split()
            assert words[words.index("--out") + 1] in {*copies, "FOLDER"}, step


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_sentence_names_is_there(page: Path) -> None:
    """A command in a sentence has its options; files, targets of make and names of `rw` exist."""
    known = get_command(app).commands  # type: ignore[attr-defined]
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for said in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose):
        words = said.split()
        if words[0] == "raterwise" and len(words) > 1 and words[1].islower() and words[1][0] != "-":
            taken = {name for option in known[words[1]].params for name in option.opts} | {"--help"}
            assert options_of(words) - taken == set(), said
        if words[0] == "make" and len(words) > 1:
            check_make(said, "")
        for name in re.findall(r"^rw\.(\w+)", said):
            assert hasattr(rw, name), said
        for path in re.findall(
            r"^(?:python (?:-P )?)?((?:benchmarks|tools|tests)/[\w/]+\.\w+)", said
        ):
            assert (ROOT / path).exists(), said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_escapes(page: Path) -> None:
    """A fenced block is Python, commands or a directive of the site; no command is indented."""
    text = page.read_text(encoding="utf-8")
    opened = re.findall(r"^ *```(.*)$", text, flags=re.M)[::2]
    assert [kind for kind in opened if not re.match(r"python$|console$|\{\w", kind)] == []
    assert re.findall(r"^(?: {4}|\t)(?:python|make|pip|raterwise) .*$", text, flags=re.M) == []


def test_an_option_that_is_not_there_is_found(here: Path) -> None:
    """The test above would notice."""
    with pytest.raises(AssertionError, match="no-such-option"):
        run_ours("raterwise evaluate predictions.csv --no-such-option 3", "")
    with pytest.raises(AssertionError, match="Brier"):
        run_ours("raterwise evaluate predictions.csv --ratings ratings.csv --metrics brier", "0.9")


# Python ------------------------------------------------------------------------------------------

WITHOUT_PROMPT = [
    page
    for page in PAGES
    if any(">>>" not in block for block in blocks(page, "python")) and page.stem != "ensembles"
]


def names_of_the_pages(here: Path) -> dict[str, Any]:
    """Return what the blocks take for granted: the reader's own arrays."""
    random = np.random.default_rng(0)
    logits, new_logits = random.normal(0, 1, (2, 60, 2))
    features, new_features = random.normal(0, 1, (2, 60, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    counts = random.multinomial(3, probs)
    labels = rw.Labels.from_counts(counts)
    volumes = random.random((3, 4, 6, 6))
    scans = [
        (np.stack((1 - p, p)), (random.random((2, *p.shape)) < p).astype(int)) for p in volumes
    ]
    return {
        "rw": rw, "logits": logits, "new_logits": new_logits, "features": features,
        "new_features": new_features, "labels": labels, "counts": counts, "probs": probs,
        "patients": [f"p{i // 2}" for i in range(60)], "names": ("no", "yes"),
        "one_label_each": rw.Labels.from_classes([0] * 60, num_classes=2), "my_scans": scans,
        "confidence": probs.max(axis=1), "correct": random.random(60) < 0.7,
    }  # fmt: skip


@pytest.mark.parametrize("page", WITHOUT_PROMPT, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_of_a_page(page: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks without a prompt run in order, with stand-ins for the reader's own arrays."""
    text = "\n".join(block for block in blocks(page, "python") if ">>>" not in block)
    if "distributed" in text:
        distributed = pytest.importorskip("distributed", reason="Dask is not installed")
        own, cluster = distributed.Client, distributed.LocalCluster
        small = {
            "processes": False,
            "dashboard_address": None,
            "n_workers": 1,
            "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
        }
        monkeypatch.setattr("dask.distributed.Client", lambda at: own(
            cluster(**small) if isinstance(at, str) else at))  # fmt: skip
        monkeypatch.setattr("dask.distributed.LocalCluster", lambda **_: cluster(**small))
    held = {"__name__": page.stem, **names_of_the_pages(here)}
    for block in blocks(page, "python"):
        if ">>>" not in block:
            exec(compile(block, str(page), "exec"), held)
            if "my_scans" in block:  # an iterable is read once; the next block means it afresh
                held["cases"] = [rw.segmentation.Case(p, m) for p, m in held["my_scans"]]

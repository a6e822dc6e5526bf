"""What the commands of the experiments share: options, and what comes before and after."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from raterwise.cli.show import new_console
from raterwise.cli.writing import check_folder
from raterwise.errors import InvalidInputError, MissingExtraError

__all__ = [
    "Device",
    "JudgeOnly",
    "Part",
    "Quiet",
    "Resamples",
    "Seed",
    "given",
    "need_torch",
    "numbers",
    "prepared",
    "show",
]

Resamples = Annotated[int, typer.Option(help="Of the bootstrap, for the intervals.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same digits.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")]
Device = Annotated[str, typer.Option(help="Where to train: cpu, cuda.")]
JudgeOnly = Annotated[
    bool,
    typer.Option(
        "--judge-only", help="Judge the outputs that --out has already; needs no PyTorch."
    ),
]

Part = Annotated[
    str | None,
    typer.Option(
        metavar="I/N",
        help="Train the I-th of N parts of the networks, and make no tables: one process each.",
        show_default=False,
    ),
]


def given(data: Path | None) -> Path:
    """Return the folder with the data, without which nothing can be trained."""
    if data is None:
        raise InvalidInputError("--data: must be given, except with --judge-only")
    return data


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a list such as 1,5,10."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInputError(
            f"{option}: must be numbers divided by commas, such as 1,5,10; got {text!r}"
        ) from None


def need_torch() -> None:
    """Raise where PyTorch is not installed, before an experiment imports it."""
    if find_spec("torch") is None:
        raise MissingExtraError('this experiment needs PyTorch; pip install -e ".[torch]"')


def prepared(out: Path, part: str | None, judge_only: bool) -> tuple[int, int]:
    """Check the folder to write to; return which part of the work to do, counted from 0."""
    check_folder(out)
    if part is None:
        return 0, 1
    numbers = re.fullmatch(r"([0-9]+)/([0-9]+)", part)
    if not numbers or not 1 <= int(numbers[1]) <= int(numbers[2]):
        raise InvalidInputError(f"--part: must be I/N, such as 1/4 … 4/4; got {part!r}")
    if judge_only:
        raise InvalidInputError("--part: is for training; --judge-only judges all parts at once")
    return int(numbers[1]) - 1, int(numbers[2])


def show(out: Path, part: str | None = None, tables: str = "tables.md") -> None:
    """Print the tables of an experiment, and where it wrote them."""
    console = new_console()
    if part is not None:
        text = f"Part {part} is trained. Once all are, --judge-only makes the tables."
        console.print(Text(text), soft_wrap=True)
    else:
        console.print(Text((out / tables).read_text(encoding="utf-8")), soft_wrap=True)
    console.print(Text(f"Written: {out}"), soft_wrap=True)

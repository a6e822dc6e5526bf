"""`quorate reproduce`: the papers' experiments on real data, which can be stopped and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from quorate.cli import options
from quorate.cli.show import ProgressBar, new_console
from quorate.cli.writing import check_folder

__all__ = ["reproduce"]

reproduce = typer.Typer(
    no_args_is_help=True,
    help="Repeat the papers' experiments; what is done already is not done again.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@reproduce.callback()
def experiments() -> None:
    """Repeat the papers' experiments; what is done already is not done again."""


@reproduce.command("expert-labels")
def expert_labels(
    out: Annotated[Path, typer.Option(help="Folder for a file per model and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with cifar10h_counts.npy and cifar10_test_outputs.npz. Without it, only "
            "the data that come with quorate (LIDC) are used.",
            show_default=False,
        ),
    ] = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """α-calibration on real people: LH Tables 1 and 2 with CIFAR-10H and LIDC-IDRI.

    Calibrators see two raters of half of the cases, and are judged by all raters
    of the other half.
    """
    from quorate.experiments.expert_labels import Settings, run

    check_folder(out)
    with ProgressBar(shown=not quiet) as report:
        run(out, data, Settings(seed=seed, resamples=resamples), report)
    if not quiet:
        console = new_console()
        text = (out / "tables.md").read_text(encoding="utf-8")
        console.print(Text(text), soft_wrap=True)
        console.print(Text(f"Written: {out}"), soft_wrap=True)

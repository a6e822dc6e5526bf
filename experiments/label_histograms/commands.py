"""The commands of LH's experiments: `experiments.commands` puts them in its program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.options import (
    Device,
    JudgeOnly,
    Part,
    Quiet,
    Resamples,
    Seed,
    need_torch,
    prepared,
    show,
)
from raterwise.cli.writing import check_folder
from raterwise.errors import InvalidInputError
from raterwise.progress_bar import ProgressBar
from raterwise.rules import choose

__all__ = ["label_histograms", "mixed_labels", "several_labels"]

Figures = Annotated[
    bool, typer.Option("--figures", help="Draw the figures of LH into --out; needs matplotlib.")
]


def label_histograms(
    out: Annotated[Path, typer.Option(help="Folder for a file per model and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with cifar10h_counts.npy and cifar10_test_outputs.npz. Without it, only "
            "the data that come with raterwise (LIDC) are used.",
            show_default=False,
        ),
    ] = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """α-calibration on real people: LH Tables 1 and 2 with CIFAR-10H and LIDC-IDRI.

    Calibrators see two raters of half of the cases, and are judged by all raters
    of the other half.
    """
    from experiments.label_histograms.expert_labels import Settings, run

    check_folder(out)
    with ProgressBar(shown=not quiet) as report:
        run(out, data, Settings(seed=seed, resamples=resamples), report)
    if not quiet:
        show(out)


def mixed_labels(
    out: Annotated[Path, typer.Option(help="Folder for a file per network and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with mixed_mnist and mixed_cifar10 (the authors' text files), MNIST (idx "
            "files) and CIFAR-10 (data_batch_1.bin … or .png). Not needed to judge what --out has.",
            show_default=False,
        ),
    ] = None,
    problems: Annotated[
        str, typer.Option(help="Which data, of mixed_mnist,mixed_cifar10.")
    ] = "mixed_mnist,mixed_cifar10",
    mnist_seeds: Annotated[int, typer.Option(min=1, help="Networks of Mix-MNIST.")] = 5,
    cifar10_seeds: Annotated[int, typer.Option(min=1, help="Networks of Mix-CIFAR-10.")] = 3,
    mnist_epochs: Annotated[int, typer.Option(min=1, help="At most.")] = 100,
    cifar10_epochs: Annotated[int, typer.Option(min=1)] = 250,
    width: Annotated[float, typer.Option(help="Channels, as a share of the paper's.")] = 1.0,
    batch_norm: Annotated[
        bool,
        typer.Option("--batch-norm", help="VGG16 of Mix-CIFAR-10 with it; the paper's has none."),
    ] = False,
    device: Device = "cpu",
    part: Part = None,
    judge_only: JudgeOnly = False,
    keep: Annotated[
        Path | None,
        typer.Option(help="Copy there what the tables can be remade from.", show_default=False),
    ] = None,
    figures: Figures = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Mix-MNIST and Mix-CIFAR-10: LH Tables 1, 2, 4 and 5, with the true losses beside them.

    Raw outputs, Monte-Carlo dropout and test-time augmentation, each with four
    scalings, with and without α-calibration, fitted to 2 and to 5 labels.
    """
    from experiments.label_histograms.mixed_data import DATA
    from experiments.label_histograms.mixed_judging import Judging, judge, keep_small

    shard = prepared(out, part, judge_only)
    chosen = [choose("--problems", name.strip(), DATA) for name in problems.split(",")]
    with ProgressBar(shown=not quiet) as report:
        if not judge_only:
            need_torch()
            from experiments.label_histograms.mixed_training import Settings, train_all

            if data is None:
                raise InvalidInputError("--data: must be given, except with --judge-only")
            settings = Settings(
                mnist_seeds=mnist_seeds,
                cifar10_seeds=cifar10_seeds,
                mnist_epochs=mnist_epochs,
                cifar10_epochs=cifar10_epochs,
                width=width,
                batch_norm=batch_norm,
            )
            train_all(data, out, chosen, settings, device=device, shard=shard, progress=report)
        if part is None:
            judge(data, out, chosen, Judging(seed=seed), report)
            if keep is not None:
                keep_small(out, keep, chosen)
            if figures:
                from experiments.label_histograms.figures import draw_mixed

                draw_mixed(out)
    if not quiet:
        show(out, part)


def several_labels(
    out: Annotated[Path, typer.Option(help="Folder for a file per network and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with CIFAR-10 (data_batch_1.bin … or .png), cifar10n.npz, "
            "cifar10h_counts.npy, lidc_nodules.npz. Without it, with --judge-only, what --out has "
            "makes the tables.",
            show_default=False,
        ),
    ] = None,
    studies: Annotated[
        str, typer.Option(help="Which, of cifar10n_1,cifar10n_3,lidc_1,lidc_all.")
    ] = "cifar10n_1,cifar10n_3,lidc_1,lidc_all",
    seeds: Annotated[int, typer.Option(min=1, help="Networks of each study (and fold).")] = 3,
    cifar10n_epochs: Annotated[int, typer.Option(min=1)] = 80,
    lidc_epochs: Annotated[int, typer.Option(min=1)] = 60,
    width: Annotated[float, typer.Option(help="Channels, as a share of VGG16's.")] = 0.5,
    device: Device = "cpu",
    part: Part = None,
    judge_only: JudgeOnly = False,
    keep: Annotated[
        Path | None,
        typer.Option(help="Copy there what the tables can be remade from.", show_default=False),
    ] = None,
    figures: Figures = False,
    quiet: Quiet = False,
) -> None:
    """One label of each image to learn from, or several: in the place of LH Table 6.

    CIFAR-10N and CIFAR-10H, and the malignancy of lung nodules (LIDC-IDRI) by up to
    four radiologists.
    """
    from experiments.label_histograms.several_data import STUDIES
    from experiments.label_histograms.several_judging import Judging, judge, keep_small

    shard = prepared(out, part, judge_only)
    chosen = [choose("--studies", name.strip(), STUDIES) for name in studies.split(",")]
    with ProgressBar(shown=not quiet) as report:
        if not judge_only:
            need_torch()
            from experiments.label_histograms.several_training import Settings, train_all

            if data is None:
                raise InvalidInputError("--data: must be given, except with --judge-only")
            settings = Settings(seeds, cifar10n_epochs, lidc_epochs, width=width)
            train_all(data, out, chosen, settings, device=device, shard=shard, progress=report)
        if part is None:
            found = judge(data, out, chosen, Judging(), report)
            if keep is not None:
                keep_small(out, keep)
            if figures:
                from experiments.label_histograms.figures import draw_several

                draw_several(out, found)
    if not quiet:
        show(out, part)

"""`python -m experiments`: the papers' experiments, which can be stopped and resumed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments.label_histograms.commands import label_histograms, mixed_labels, several_labels
from experiments.options import (
    Device,
    JudgeOnly,
    Part,
    Quiet,
    Resamples,
    Seed,
    given,
    need_torch,
    numbers,
    prepared,
    show,
)
from raterwise.cli.app import OneLineErrors
from raterwise.cli.writing import check_folder
from raterwise.errors import InvalidInputError
from raterwise.progress_bar import ProgressBar
from raterwise.rules import choose

__all__ = ["app", "main"]

EXAMPLES = """
[bold]Examples[/bold]

  [dim]# with the ratings that come with raterwise[/dim]
  python -m experiments label_histograms --out out

  [dim]# train on one machine, make the tables on another that has no PyTorch[/dim]
  python -m experiments robust_ece --data DIR --out out --device cuda
  python -m experiments robust_ece --out out --judge-only

  [dim]# the tables of the documentation, from what is kept in the repository[/dim]
  cp -r experiments/outputs/robust_ece again
  python -m experiments robust_ece --out again --judge-only
"""


class Experiments(OneLineErrors):
    """The errors of the command line, under the name of this program."""

    program = "experiments"


app = typer.Typer(
    cls=Experiments,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(epilog=EXAMPLES)
def experiments() -> None:
    """Repeat the papers' experiments, with intervals.

    Each reads public data from --data, trains its networks if it has some,
    keeps what they say in --out, and writes its tables there (tables.md,
    summary.json). Stop a run whenever you like, and give the same command to
    go on: what --out holds, made of the same data and settings, is not made
    again. [bold]python -m experiments NAME --help[/bold] says which files --data must
    hold, docs/reproduction/files.md how to make them from the official ones;
    docs/command_line.md links the pages with what came of them.
    """


for command in (label_histograms, mixed_labels, several_labels):
    app.command(command.__name__)(command)


@app.command("robust_ece")
def robust_ece(
    out: Annotated[Path, typer.Option(help="Folder for a file per network and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the files of the data sets (breastmnist.npz, busi.npz …; CIFAR-10 as "
            "data_batch_1.bin …). Those that are not there are left out. Not needed with "
            "--judge-only.",
            show_default=False,
        ),
    ] = None,
    problems: Annotated[
        str,
        typer.Option(
            help="Which data: breastmnist, pneumoniamnist, busi, pocus, covid_ct, retinamnist, "
            "dermamnist, cifar10-1000, cifar10-5000, the last two also with -batch32."
        ),
    ] = "breastmnist,pneumoniamnist",
    device: Device = "cpu",
    seeds: Annotated[int, typer.Option(min=1, help="Training runs of each loss.")] = 10,
    betas: Annotated[str, typer.Option(help="Weights of the calibration terms.")] = "1,5,10",
    part: Part = None,
    judge_only: JudgeOnly = False,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Calibration losses in training: RECE Table 2 with the images that can be had.

    Cross-entropy, focal loss, FLSD, DCA, MDCA and RCR, each from several
    seeds, with intervals over test images and training runs.
    """
    from experiments.robust_ece.judging import judge
    from experiments.robust_ece.runs import DATA, MORE_DATA, Settings

    known = (*DATA, *MORE_DATA)
    shard = prepared(out, part, judge_only)
    with ProgressBar(shown=not quiet) as report:
        if not judge_only:
            need_torch()
            from experiments.robust_ece.training_losses import train_all

            data = given(data)
            chosen = [choose("--problems", name.strip(), known) for name in problems.split(",")]
            settings = Settings(seeds=seeds, betas=numbers("--betas", betas))
            train_all(data, out, settings, data=chosen, device=device, shard=shard, progress=report)
        if part is None:
            judge(out, resamples, seed, report)
    if not quiet:
        show(out, part)


@app.command("sample_sizes")
def sample_sizes(
    out: Annotated[Path, typer.Option(help="Folder for the values and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with cifar10_test_outputs.npz, pathmnist_resnet50_scores.npy, "
            "cxr14_chexnet_test.npz, breastmnist.npz, pneumoniamnist.npz. Those that are not there "
            "are left out.",
            show_default=False,
        ),
    ] = None,
    problems: Annotated[
        str, typer.Option(help="What to train on; also busi,pocus,covid_ct, with a GPU.")
    ] = "breastmnist,pneumoniamnist",
    device: Device = "cpu",
    judge_only: JudgeOnly = False,
    repeats: Annotated[int, typer.Option(min=2, help="Samples of each size.")] = 20,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Calibration errors on small test sets: RECE Table 1 and Figs 1 to 3.

    Six metrics on 1 to 50 % of the test cases, against their own values on all
    cases and, in a simulation, against the truth.
    """
    from experiments.robust_ece.sizes import Sampling, judge

    check_folder(out)
    with ProgressBar(shown=not quiet) as report:
        if not judge_only:
            need_torch()
            from experiments.robust_ece.sizes_networks import PROBLEMS, train_networks

            data = given(data)
            chosen = [choose("--problems", name.strip(), PROBLEMS) for name in problems.split(",")]
            train_networks(data, out, problems=chosen, device=device, progress=report)
        judge(out, None if judge_only else data, Sampling(repeats, seed=seed), progress=report)
    if not quiet:
        show(out)


@app.command("multi_rater")
def multi_rater(
    out: Annotated[Path, typer.Option(help="Folder for predictions, values and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with lidc_nodules.npz, bubil_cells.npz, qubiq_brain_growth.npz. Without "
            "it, with --judge-only, the values that --out has make the tables.",
            show_default=False,
        ),
    ] = None,
    studies: Annotated[
        str, typer.Option(help="Which of the data sets: lidc,bubil,qubiq.")
    ] = "lidc,bubil,qubiq",
    networks: Annotated[int, typer.Option(min=1, help="Networks per split.")] = 3,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Default: 60 for lidc, 150 for the others.", show_default=False),
    ] = None,
    device: Device = "cpu",
    part: Part = None,
    judge_only: JudgeOnly = False,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Stability of calibration errors in segmented images: MR Table 2 with LIDC, BU-BIL, QUBIQ.

    Networks learn from one rater of each image, and are judged by one rater and by
    all of other patients' images.
    """
    from experiments.multi_rater.data import Training
    from experiments.multi_rater.judging import Judging, judge

    shard = prepared(out, part, judge_only)
    training = Training(seed=seed, networks=networks, epochs=epochs)
    chosen = [name.strip() for name in studies.split(",")]
    with ProgressBar(shown=not quiet) as report:
        if not judge_only:
            need_torch()
            data = given(data)
            from experiments.multi_rater.segmentation import train_networks

            train_networks(data, out, training, chosen, device=device, shard=shard, progress=report)
        if part is None:
            judge(data, out, training, Judging(seed=seed, resamples=resamples), chosen, report)
    if not quiet:
        show(out, part)


@app.command("rater_stability")
def rater_stability(
    out: Annotated[Path, typer.Option(help="Folder for a file per model and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with cifar10h_counts.npy, cifar10_test_outputs.npz, lidc_nodules.npz, "
            "cxr14_chexnet_test.npz, cxr14_readers. Without it, what --out has makes the tables.",
            show_default=False,
        ),
    ] = None,
    nodules: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the networks that rate nodules; trained there with --train.",
            show_default=False,
        ),
    ] = None,
    train: Annotated[bool, typer.Option("--train", help="Train those networks first.")] = False,
    device: Device = "cpu",
    judge_only: JudgeOnly = False,
    draws: Annotated[int, typer.Option(min=1, help="Of the raters.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Bootstraps for each draw.")] = 10,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Stability of calibration errors of classes, by one rater and by all: MR Table 1.

    CIFAR-10H, nodules of LIDC-IDRI and chest X-rays, beside what the agreement of
    the raters predicts.
    """
    from experiments.multi_rater.classification import Settings
    from experiments.multi_rater.rater_stability import run

    check_folder(out)
    if train:
        if judge_only:
            raise InvalidInputError("--train: is not for --judge-only, which trains nothing")
        need_torch()
        from experiments.multi_rater.nodule_networks import train_ratings

        if data is None or nodules is None:
            raise InvalidInputError("--train: needs --data and --nodules")
        train_ratings(data / "lidc_nodules.npz", nodules, device=device)
    with ProgressBar(shown=not quiet) as report:
        settings = Settings(draws=draws, repeats=repeats, seed=seed)
        run(None if judge_only else data, out, nodules, settings, report)
    if not quiet:
        show(out)


@app.command("confidence_curves")
def confidence_curves(
    out: Annotated[Path, typer.Option(help="Folder for a file per cascade and tables.md.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with CIFAR-10 (data_batch_1.bin … or .png), MNIST (idx files), and where "
            "there are some pneumoniamnist.npz, fashion-images-idx3-ubyte, cifar10h_counts.npy. "
            "Not needed with --judge-only.",
            show_default=False,
        ),
    ] = None,
    problems: Annotated[
        str, typer.Option(help="What to learn, of cifar10,cifar8,mnist,pneumonia.")
    ] = "cifar10,cifar8,pneumonia",
    network: Annotated[
        str, typer.Option(help="Which kind of networks: densenet, vgg, resnet9.")
    ] = "densenet",
    seeds: Annotated[int, typer.Option(min=1, help="Cascades of each problem.")] = 3,
    members: Annotated[int, typer.Option(min=1, help="Networks in an ensemble.")] = 4,
    epochs: Annotated[int, typer.Option(min=1, help="Of each member.")] = 100,
    weight_decay: Annotated[float, typer.Option(min=0, help="Of the members.")] = 0.0,
    held_out: Annotated[
        int, typer.Option(min=1, help="Training images that the members never see.")
    ] = 5000,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many images of each part, for a trial."),
    ] = None,
    device: Device = "cpu",
    part: Part = None,
    judge_only: JudgeOnly = False,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Uncertainty distillation: CCC Tables 1 and 3, and Table 2 with CheXNet's outputs.

    Max softmax, ensemble, softened ensemble and UDist, on test images and on images
    from elsewhere. With cxr14_chexnet_test.npz in --data, findings.md is Table 2, which
    needs no networks of ours.
    """
    from experiments.confidence_curves.findings import judge_findings
    from experiments.confidence_curves.judging import judge

    shard, alone = prepared(out, part, judge_only), False
    with ProgressBar(shown=not quiet) as report:
        if not judge_only:
            need_torch()
            from experiments.confidence_curves.distillation import NETWORKS, Settings, train_all

            data = given(data)
            settings = Settings(
                network=choose("--network", network, NETWORKS),
                members=members,
                epochs=epochs,
                weight_decay=weight_decay,
                held_out=held_out,
                limit=limit,
            )
            train_all(
                data,
                out,
                problems=[name.strip() for name in problems.split(",")],
                seeds=range(seed, seed + seeds),
                settings=settings,
                device=device,
                shard=shard,
                report=report,
            )
        if part is None:
            counts = _there(data, "cifar10h_counts.npy")
            findings = _there(data, "cxr14_chexnet_test.npz")
            judged = judge_findings(findings, out, resamples, seed)
            alone = judged is not None and not any(out.glob("*-seed*.npz"))
            if not alone:
                judge(out, counts, resamples=resamples, seed=seed, progress=report)
    if not quiet:
        show(out, part, "findings.md" if alone else "tables.md")


def _there(folder: Path | None, name: str) -> Path | None:
    """Return a file of a folder where both are there."""
    return folder / name if folder is not None and (folder / name).is_file() else None


def main() -> None:
    """Run the program; what a terminal's encoding cannot show becomes a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="python -m experiments")

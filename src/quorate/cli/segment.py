"""`quorate segment`: images that several raters segmented, from a manifest of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quorate.cli import options
from quorate.cli.options import OnProblem, comma_list
from quorate.cli.show import (
    ProgressBar,
    interval,
    new_console,
    number,
    print_notes,
    print_results,
)
from quorate.cli.writing import check_folder
from quorate.errors import InvalidInputError, MissingExtraError, QuorateError
from quorate.io.files import check_can_write
from quorate.io.volumes import CaseFiles, ImageSet, read_images, read_manifest, write_nifti

if TYPE_CHECKING:
    from quorate.segmentation.reduction import Reduction, SegmentationResults
    from quorate.segmentation.request import Request

__all__ = ["EXAMPLES", "segment"]

EXAMPLES = """[bold]Examples[/bold]

[dim]# manifest.csv: case,probabilities,raters,patient
# c1,prob/c1.nii.gz,masks/c1_*.nii.gz,p1[/dim]
quorate segment manifest.csv --metrics ece,kde_ece,brier --out results.json

[dim]# the foreground's probability, near the raters' boundaries, maps of disagreement[/dim]
quorate segment manifest.csv --question positive --boundary-mm 5 --maps maps/

[dim]# on a cluster, going on where a run was killed[/dim]
quorate segment manifest.csv --cluster tcp://scheduler:8786 --checkpoint run1/"""

IMAGES = "Images"
CLUSTER = "Where it runs"


class How(StrEnum):
    """How images become one number."""

    per_case = "per_case"
    pooled = "pooled"


class Asked(StrEnum):
    """Which probability is judged."""

    top_label = "top_label"
    positive = "positive"


def _option(panel: str, help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel)


Manifest = Annotated[
    Path,
    typer.Argument(
        help="CSV with the columns case, probabilities, raters (paths or patterns joined by ;) "
        "and, if you like, mask and patient. Paths are relative to it."
    ),
]
Cluster = Annotated[
    str | None, _option(CLUSTER, "A Dask scheduler, tcp://host:port, or local for this machine.")
]
Workers = Annotated[int | None, _option(CLUSTER, "Processes of --cluster local.")]
CheckpointFolder = Annotated[
    Path | None, _option(CLUSTER, "Keep finished parts here, and go on from them.", "--checkpoint")
]


def segment(
    manifest: Manifest,
    reduction: Annotated[
        How, _option(IMAGES, "One value per image and their mean, or all voxels together.")
    ] = How.per_case,
    question: Annotated[
        Asked, _option(IMAGES, "The predicted class, or the foreground of two classes.")
    ] = Asked.top_label,
    num_classes: Annotated[int | None, _option(IMAGES, "To check the images by.")] = None,
    class_names: Annotated[str | None, _option(IMAGES, "Names of the classes: a,b,c.")] = None,
    foreground_only: Annotated[
        bool,
        _option(IMAGES, "Voxels that the prediction or a rater marks.", "--foreground-only"),
    ] = False,
    boundary_mm: Annotated[
        float | None, _option(IMAGES, "Voxels within so many mm of a rater's boundary.")
    ] = None,
    spacing: Annotated[
        str | None, _option(IMAGES, "Size of a voxel in mm, x,y,z, where files do not say.")
    ] = None,
    ignore_label: Annotated[int | None, _option(IMAGES, "Label of voxels left out.")] = None,
    skip_bad: Annotated[
        bool, _option(IMAGES, "Leave out, and count, images that cannot be used.", "--skip-bad")
    ] = False,
    maps: Annotated[
        Path | None, _option(IMAGES, "Write maps of predicted disagreement (NIfTI) here.")
    ] = None,
    metrics: options.Metrics = "all",
    bins: options.Bins = 15,
    resamples: options.Resamples = 1000,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    on_single: options.OnSingle = OnProblem.error,
    cluster: Cluster = None,
    workers: Workers = None,
    checkpoint: CheckpointFolder = None,
    out: options.Out = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how far the probabilities of a segmentation can be trusted, by what several raters drew.

    NIfTI, Zarr, NPY, NPZ, PNG, TIFF, or a folder of slices. Shapes, affines and
    orientations must agree: nothing is resampled.
    """
    from quorate.inference import Settings
    from quorate.segmentation.cases import Selection
    from quorate.segmentation.reduction import Reduction
    from quorate.segmentation.request import Request

    if out is not None:
        check_can_write(out)
    if maps is not None:
        check_folder(maps).mkdir(parents=True, exist_ok=True)
    settings = Settings(resamples, level, seed, "cases", "auto", on_single.value)
    selection = Selection(ignore_label, foreground_only, boundary_mm)
    request = Request.of(metrics, reduction.value, bins, question.value, settings, selection)
    job = Job(request, num_classes, _sizes(spacing), maps)
    files = read_manifest(manifest)
    gathered = Reduction(request, comma_list(class_names) or None)
    with ProgressBar(shown=not quiet) as report:
        made = _measured(job, files, cluster, workers, checkpoint, report)
        bad = _gather(gathered, files, made, skip_bad=skip_bad)
        report("intervals", 1.0)
        results = gathered.results()
    results = replace(results, warnings=(*results.warnings, *bad))
    if out is not None:
        results.to_json(out)
    if not quiet:
        _print(results)


@dataclass(frozen=True)
class Job:
    """What is done with every image, wherever that is."""

    request: Request
    num_classes: int | None = None
    spacing: tuple[float, ...] | None = None
    maps: Path | None = None


@dataclass(frozen=True)
class Bad:
    """An image that cannot be used, and why."""

    why: str


def measure(job: Job, files: CaseFiles) -> Any:
    """Read an image and return what the reduction keeps of it, or why it cannot be used."""
    return measure_images(job, files, load(files))


def load(files: CaseFiles) -> ImageSet | Bad:
    """Return the arrays of an image, or why they cannot be read."""
    try:
        return read_images(files)
    except MissingExtraError:
        raise  # which is nobody's bad image
    except (QuorateError, OSError) as error:
        return Bad(str(error))


def measure_images(job: Job, files: CaseFiles, images: ImageSet | Bad) -> Any:
    """Return what the reduction keeps of an image that was read."""
    from quorate.segmentation.cases import Case
    from quorate.segmentation.request import CaseValues

    if isinstance(images, Bad):
        return images
    case = Case(
        images.probabilities,
        images.masks,
        region=images.region,
        spacing=images.spacing or job.spacing,
        patient=files.patient,
        name=files.case,
        layout="labels",
    )
    try:
        digest = job.request.digest(case, job.num_classes)
        kept = digest if job.request.reduction == "pooled" else CaseValues.of(digest, job.request)
    except QuorateError as error:
        return Bad(str(error))
    if job.maps is not None:
        _write_map(job.maps, files.case, images)
    return kept


def _write_map(folder: Path, case: str, images: ImageSet) -> None:
    from quorate.segmentation.maps import disagreement_map

    one_channel = images.probabilities.shape == images.masks[0].shape
    values = disagreement_map(images.probabilities, one_channel=one_channel)
    name = re.sub(r"[^\w.-]", "_", case)
    write_nifti(folder / f"{name}_disagreement.nii.gz", values, images.affine)


def _measured(
    job: Job,
    files: Sequence[CaseFiles],
    cluster: str | None,
    workers: int | None,
    folder: Path | None,
    report: ProgressBar,
) -> Iterator[Any]:
    """Yield what is kept of every image, in order; made here or on a cluster."""
    from quorate.engines.streaming import read_ahead

    kept = None if folder is None else _checkpoint(folder, job, files)
    if cluster is not None:
        from quorate.engines.dask import connected, results_on_cluster

        names = [f"case {f.case}" for f in files]
        with connected(cluster, workers) as client:
            yield from results_on_cluster(
                partial(measure, job), files, client, names=names, checkpoint=kept,
                progress=report, keep=lambda result: not isinstance(result, Bad),
            )  # fmt: skip
        return
    todo = [i for i in range(len(files)) if kept is None or not kept.has(i)]
    ahead = read_ahead(load(files[i]) for i in todo)
    waiting = set(todo)
    for i, f in enumerate(files):
        report(f"case {f.case} ({i + 1} of {len(files)})", i / len(files))
        if i not in waiting:
            assert kept is not None
            yield kept.get(i)
            continue
        result = measure_images(job, f, next(ahead))
        if kept is not None and not isinstance(result, Bad):
            kept.put(i, result)
        yield result


def _checkpoint(folder: Path, job: Job, files: Sequence[CaseFiles]) -> Any:
    from quorate.engines.checkpoint import Checkpoint
    from quorate.segmentation.request import CaseValues

    about = {"job": asdict(job), "files": [(asdict(f), _stamps(f)) for f in files]}
    if job.request.reduction == "pooled":
        return Checkpoint.open(folder, about)
    return Checkpoint.open(folder, about, lambda path, v: v.save(path), CaseValues.load)


def _stamps(files: CaseFiles) -> list[tuple[int, int]]:
    """Return size and time of every file: parts of files that changed since are not used."""
    paths = [files.probabilities, *files.raters, *([files.mask] if files.mask else [])]
    stats = [path.stat() for path in paths if path.exists()]
    return [(stat.st_size, stat.st_mtime_ns) for stat in stats]


def _gather(
    gathered: Reduction, files: Sequence[CaseFiles], made: Iterable[Any], *, skip_bad: bool
) -> list[str]:
    """Add the images that can be used; return what to say of the others."""
    bad = []
    for f, kept in zip(files, made, strict=True):
        if isinstance(kept, Bad):
            if not skip_bad:
                raise InvalidInputError(f"{kept.why}; --skip-bad leaves such images out")
            bad.append(f"left out: {kept.why}")
            gathered.skipped += 1
            continue
        gathered.add(f.case, f.patient, kept)
    return bad


def _sizes(text: str | None) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in comma_list(text)) or None
    except ValueError:
        raise InvalidInputError(f"spacing: must be numbers, x,y,z; got {text!r}") from None


def _print(results: SegmentationResults, console: Console | None = None) -> None:
    console = console or new_console()
    if not results.per_case:
        print_results(results, console)
        return
    data = results.data
    patients = f" of {data['patients']} patients" if data["patients"] else ""
    console.print(
        Text(
            f"{data['cases']} images{patients}, {data['voxels']} voxels, {data['classes']} classes",
            style="bold",
        )
    )
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("metric", "mean", "± std", f"{100 * results.options['level']:g}% interval"):
        table.add_column(name, no_wrap=True, justify="left" if name == "metric" else "right")
    table.add_column("images", justify="right")
    table.add_column("error at most", justify="right")
    for e in results.values():
        std, defined = getattr(e, "std", None), getattr(e, "defined", 0)
        value = "undefined" if e.value is None else number(e.value)
        bound = "" if e.bound is None else f"{e.bound:.1e}"
        table.add_row(e.title, value, "" if std is None else number(std), interval(e),
                      str(defined), bound)  # fmt: skip
    console.print(table)
    print_notes(results, console)

"""`raterwise segment`: images that several raters segmented, from a manifest of files."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from raterwise.cli import options
from raterwise.cli.checks import check_asked
from raterwise.cli.options import OnProblem, Unit, _option, asked_of, comma_list
from raterwise.cli.show import ProgressBar
from raterwise.cli.stream import client_of
from raterwise.cli.writing import check_folder, check_html, check_json, check_outputs, deliver
from raterwise.errors import InvalidInputError
from raterwise.io.manifests import CaseFiles, read_by, read_manifest
from raterwise.io.outputs import checkpoint_files, refuse_overwriting

EXAMPLES = """[bold]Examples[/bold]

[dim]# manifest.csv: case,probabilities,raters,patient
# c1,prob/c1.nii.gz,masks/c1_*.nii.gz,p1[/dim]
raterwise segment manifest.csv --metrics ece,kde_ece,brier --out results.json

[dim]# the foreground's probability, near the raters' boundaries, maps of disagreement[/dim]
raterwise segment manifest.csv --question positive --boundary-mm 5 --maps maps/

[dim]# on a cluster, resuming a run that was killed[/dim]
raterwise segment manifest.csv --cluster tcp://scheduler:8786 --checkpoint run1/"""

IMAGES = "Images"
CLUSTER = "Where it runs"


class How(StrEnum):
    """How images become one number."""

    per_case = "per_case"
    pooled = "pooled"


Manifest = Annotated[
    Path,
    typer.Argument(
        help="CSV with the columns case, probabilities, raters (paths or patterns joined by ;) "
        "and optionally mask, patient, spacing, rater_names (joined by ;) and axes. Paths are "
        "relative to it."
    ),
]
Cluster = Annotated[
    str | None, _option(CLUSTER, "A Dask scheduler, tcp://host:port, or local for this machine.")
]
Workers = Annotated[int | None, _option(CLUSTER, "Number of processes of --cluster local.")]
CheckpointFolder = Annotated[
    Path | None, _option(CLUSTER, "Keep finished parts here and resume from them.", "--checkpoint")
]


def segment(
    manifest: Manifest,
    reduction: Annotated[
        How, _option(IMAGES, "One value per image and their mean, or all voxels together.")
    ] = How.per_case,
    num_classes: Annotated[
        int | None, _option(IMAGES, "Number of classes, to check the images against.")
    ] = None,
    class_names: Annotated[str | None, _option(IMAGES, "Names of the classes: a,b,c.")] = None,
    foreground_only: Annotated[
        bool,
        _option(
            IMAGES, "Use only voxels that the prediction or a rater marks.", "--foreground-only"
        ),
    ] = False,
    boundary_mm: Annotated[
        float | None, _option(IMAGES, "Use only voxels within this many mm of a rater's boundary.")
    ] = None,
    axes: Annotated[
        str | None,
        _option(
            IMAGES,
            "Order of the axes of NPY, NPZ, Zarr, PNG and TIFF images beside NIfTI files: zyx or "
            "xyz. nnU-Net's NPZ files are recognised.",
        ),
    ] = None,
    spacing: Annotated[
        str | None,
        _option(
            IMAGES,
            "Size of a voxel in mm along each axis, where files do not say; with --axes: x,y,z.",
        ),
    ] = None,
    ignore_label: Annotated[int | None, _option(IMAGES, "Label of voxels to leave out.")] = None,
    skip_bad: Annotated[
        bool, _option(IMAGES, "Leave out and count images that cannot be used.", "--skip-bad")
    ] = False,
    maps: Annotated[
        Path | None, _option(IMAGES, "Write maps of predicted disagreement (NIfTI) here.")
    ] = None,
    metrics: options.Metrics = "all",
    bins: options.Bins = 15,
    question: options.QuestionAsked = None,
    per: options.Counted = None,
    option: options.MetricOptions = None,
    threshold: options.Threshold = None,
    resamples: options.Resamples = 1000,
    level: options.Level = 0.95,
    seed: options.Seed = 0,
    unit: options.UnitDrawn = Unit.cases,
    raters: Annotated[
        str | None,
        _option(IMAGES, "Who drew the masks, in their order: a,b,c; for --unit raters and both."),
    ] = None,
    on_single: options.OnSingle = OnProblem.error,
    subgroup_column: options.SubgroupColumn = None,
    subgroup_metrics: options.SubgroupMetrics = None,
    cluster: Cluster = None,
    workers: Workers = None,
    checkpoint: CheckpointFolder = None,
    out: options.Out = None,
    csv_out: options.CsvOut = None,
    html: options.HtmlOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how far the probabilities of a segmentation can be trusted, given what raters drew.

    NIfTI, Zarr, NPY, NPZ, PNG, TIFF, or a folder of slices. Shapes, affines and
    orientations must agree: nothing is resampled.
    """
    from raterwise.inference.settings import Settings
    from raterwise.request import Request
    from raterwise.segmentation.cases import Selection
    from raterwise.segmentation.evaluation import classes_of, evaluate_job
    from raterwise.segmentation.panels import roster_of
    from raterwise.segmentation.request import ImageRequest
    from raterwise.segmentation.running import Job

    check_json(out)
    check_html(html)
    read = manifest, *checkpoint_files(checkpoint)
    check_outputs((out, csv_out, html), read)
    settings = Settings(resamples, level, seed, unit.value, on_single=on_single.value)
    asked, sizes = asked_of(bins, question, per, option, threshold), _sizes(spacing)
    check_asked(metrics, asked)
    selection = Selection(ignore_label, foreground_only, boundary_mm)
    apart = list(subgroup_column or ())
    files = read_manifest(manifest, values=apart, axes=axes)
    request = Request.of(
        metrics, **asked, settings=settings,
        classes=classes_of(files, num_classes) if "all" in metrics else None,
    )  # fmt: skip
    drawn = [] if maps is None else _prepare_maps(maps, files)
    refuse_overwriting((out, csv_out, html, *drawn), (*read, *read_by(manifest, files)))
    roster = roster_of(comma_list(raters) or None, files) if settings.draws_raters else ()
    images = ImageRequest(request, selection, reduction.value, roster)
    with ProgressBar(shown=not quiet) as report, client_of(cluster, workers) as client:
        results = evaluate_job(
            Job(images, num_classes, sizes, maps),
            files,
            class_names=comma_list(class_names) or None,
            skip_bad=skip_bad,
            client=client,
            checkpoint=checkpoint,
            progress=report,
            subgroups={name: [dict(f.values)[name] for f in files] for name in apart} or None,
            subgroup_metrics=subgroup_metrics,
        )
    masks = (file for each in files for file in (*each.raters, each.mask))
    inputs = (manifest, *(each.probabilities for each in files), *masks)
    deliver(results, out, csv_out, quiet=quiet, written=(maps,), html=html, inputs=inputs)


def _prepare_maps(folder: Path, files: Sequence[CaseFiles]) -> list[Path]:
    """Make the folder of maps, return their files; cases that would share one are an error."""
    from raterwise.segmentation.running import map_name

    check_folder(folder).mkdir(parents=True, exist_ok=True)
    owner: dict[str, str] = {}
    for f in files:
        other = owner.setdefault(map_name(f.case), f.case)
        if other != f.case:
            raise InvalidInputError(
                f"maps: cases {other!r} and {f.case!r} would have one file, {map_name(f.case)}"
            )
    return [folder / name for name in owner]


def _sizes(text: str | None) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in comma_list(text)) or None
    except ValueError:
        raise InvalidInputError(f"spacing: must be numbers, x,y,z; got {text!r}") from None

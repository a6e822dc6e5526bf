"""`raterwise segment`: images that several raters segmented, from a manifest of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from raterwise.cli import options
from raterwise.cli.options import Asked, Drawn, in_panel, with_options
from raterwise.cli.parsing import comma_list, numbers
from raterwise.cli.stream import client_of
from raterwise.cli.writing import Files, check_folder
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Settings
from raterwise.io.files import checkpoint_files, refuse_overwriting
from raterwise.io.manifests import CaseFiles, read_by, read_manifest
from raterwise.segmentation.cases import Selection
from raterwise.segmentation.evaluation import evaluate_job, job_of
from raterwise.segmentation.running import map_name

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


Manifest = Annotated[
    Path,
    typer.Argument(
        help="CSV with the columns case, probabilities, raters (paths or patterns joined by ;) "
        "and optionally mask, patient, spacing, rater_names (joined by ;) and axes. Paths are "
        "relative to it."
    ),
]
Cluster = Annotated[
    str | None, in_panel(CLUSTER, "A Dask scheduler, tcp://host:port, or local for this machine.")
]
Workers = Annotated[int | None, in_panel(CLUSTER, "Number of processes of --cluster local.")]
CheckpointFolder = Annotated[
    Path | None, in_panel(CLUSTER, "Keep finished parts here and resume from them.")
]


@with_options
def segment(
    asked: Asked,
    drawn: Drawn,
    files: Files,
    manifest: Manifest,
    reduction: Annotated[
        Literal["per_case", "pooled"],
        in_panel(IMAGES, "One value per image and their mean, or all voxels together."),
    ] = "per_case",
    num_classes: Annotated[
        int | None, in_panel(IMAGES, "Number of classes, to check the images against.")
    ] = None,
    class_names: Annotated[str | None, in_panel(IMAGES, "Names of the classes: a,b,c.")] = None,
    foreground_only: Annotated[
        bool,
        in_panel(
            IMAGES, "Use only voxels that the prediction or a rater marks.", "--foreground-only"
        ),
    ] = False,
    boundary_mm: Annotated[
        float | None, in_panel(IMAGES, "Use only voxels within this many mm of a rater's boundary.")
    ] = None,
    axes: Annotated[
        str | None,
        in_panel(
            IMAGES,
            "Order of the axes of NPY, NPZ, Zarr, PNG and TIFF images beside NIfTI files: zyx or "
            "xyz. nnU-Net's NPZ files are recognised.",
        ),
    ] = None,
    spacing: Annotated[
        str | None,
        in_panel(
            IMAGES,
            "Size of a voxel in mm along each axis, where files do not say; with --axes: x,y,z.",
        ),
    ] = None,
    ignore_label: Annotated[int | None, in_panel(IMAGES, "Label of voxels to leave out.")] = None,
    skip_bad: Annotated[
        bool, in_panel(IMAGES, "Leave out and count images that cannot be used.", "--skip-bad")
    ] = False,
    maps: Annotated[
        Path | None, in_panel(IMAGES, "Write maps of predicted disagreement (NIfTI) here.")
    ] = None,
    metrics: options.Metrics = "all",
    raters: Annotated[
        str | None,
        in_panel(IMAGES, "Who drew the masks, in their order: a,b,c; for --unit raters and both."),
    ] = None,
    subgroup_column: options.SubgroupColumn = None,
    subgroup_metrics: options.SubgroupMetrics = None,
    cluster: Cluster = None,
    workers: Workers = None,
    checkpoint: CheckpointFolder = None,
) -> None:
    """Say how far the probabilities of a segmentation can be trusted, given what raters drew.

    NIfTI, Zarr, NPY, NPZ, PNG, TIFF, or a folder of slices. Shapes, affines and
    orientations must agree: nothing is resampled.
    """
    read = manifest, *checkpoint_files(checkpoint)
    files.check(read)
    settings = Settings(**drawn.told)
    sizes = tuple(numbers("--spacing", spacing, float, "0.5,0.5,1.25")) or None
    asked.check(metrics)
    selection = Selection(ignore_label, foreground_only, boundary_mm)
    apart = list(subgroup_column or ())
    images = read_manifest(manifest, values=apart, axes=axes)
    job = job_of(
        images, metrics, settings, selection, reduction, comma_list(raters) or None, num_classes,
        **asked.told,
    )  # fmt: skip
    mapped = [] if maps is None else _prepare_maps(maps, images)
    refuse_overwriting((*files.paths, *mapped), (*read, *read_by(manifest, images)))
    with files.progress() as report, client_of(cluster, workers) as client:
        results = evaluate_job(
            replace(job, spacing=sizes, maps=maps),
            images,
            class_names=comma_list(class_names) or None,
            skip_bad=skip_bad,
            client=client,
            checkpoint=checkpoint,
            progress=report,
            subgroups={name: [dict(f.values)[name] for f in images] for name in apart} or None,
            subgroup_metrics=subgroup_metrics,
        )
    masks = (file for each in images for file in (*each.raters, each.mask))
    inputs = (manifest, *(each.probabilities for each in images), *masks)
    files.deliver(results, inputs, maps)


def _prepare_maps(folder: Path, files: Sequence[CaseFiles]) -> list[Path]:
    """Make the folder of maps, return their files; cases that would share one are an error."""
    check_folder(folder).mkdir(parents=True, exist_ok=True)
    owner: dict[str, str] = {}
    for f in files:
        other = owner.setdefault(map_name(f.case), f.case)
        if other != f.case:
            raise InvalidInputError(
                f"maps: cases {other!r} and {f.case!r} would have one file, {map_name(f.case)}"
            )
    return [folder / name for name in owner]

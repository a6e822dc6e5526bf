"""Images measured one after the other here, or side by side on a Dask cluster.

An image comes as its arrays, as its files, or as a function that opens it. Files and functions
are opened where the image is measured, so that no array travels over the network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence, Sized
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import (
    InvalidInputError,
    InvalidTypeError,
    MissingExtraError,
    RaterwiseError,
    named,
)
from raterwise.inference.settings import Progress
from raterwise.io.manifests import CaseFiles
from raterwise.io.volumes import read_images, write_nifti
from raterwise.kernels._threads import number_of_threads
from raterwise.segmentation.cases import Case
from raterwise.segmentation.maps import disagreement_map
from raterwise.segmentation.reduction import Reduction
from raterwise.segmentation.request import CaseValues, ImageRequest
from raterwise.segmentation.subgroups import LevelImages
from raterwise.streaming.in_process import results_here
from raterwise.streaming.saved import Checkpoint, load_saved, save_digest, stamp
from raterwise.summaries.digest import Digest

Source = Case | CaseFiles | Callable[[], Case]
"""What an image comes as."""

ARRAYS_AHEAD = 2
"""Images per thread of a cluster whose arrays are sent ahead: they wait in the scheduler."""


@dataclass(frozen=True)
class Job:
    """What is done with every image, wherever that is."""

    request: ImageRequest
    num_classes: int | None = None
    spacing: tuple[float, ...] | None = None
    """Of files that do not say."""
    maps: Path | None = None
    """The folder of maps of disagreement, where they are wanted."""


@dataclass(frozen=True, eq=False)
class Measured:
    """An image, and what the reduction keeps of it."""

    name: str
    patient: Hashable | None
    kept: Digest | CaseValues

    def save(self, path: Path, identity: str) -> None:
        """Write it down, every digit of it, and which part of which run it is."""
        about: dict[str, Any] = {"name": self.name, "patient": self.patient}
        digest = self.kept
        if isinstance(digest, CaseValues):
            about |= {"values": dict(digest.values), "per_class": dict(digest.per_class)}
            about["by_panel"] = [(panel, dict(v)) for panel, v in digest.by_panel.items()]
            digest = digest.tables
        save_digest(path, digest, about, identity=identity)

    @staticmethod
    def load(path: Path, identity: str) -> Measured:
        """Read what `save` wrote."""
        saved = load_saved(path, identity)
        kept: Digest | CaseValues = saved.digest
        about = saved.options
        if "values" in about:
            values = {name: tuple(value) for name, value in about["values"].items()}
            by_class = {name: tuple(each) for name, each in about["per_class"].items()}
            by_panel = {tuple(panel): v for panel, v in about.get("by_panel", ())}
            kept = CaseValues(saved.digest, values, by_class, by_panel)
        return Measured(about["name"], about["patient"], kept)


@dataclass(frozen=True)
class Bad:
    """An image that cannot be used, and why."""

    why: str
    argument: str | None = None
    """Of a case, where it is about one."""


@dataclass(frozen=True, eq=False)
class _Opened:
    case: Case
    affine: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class _Item:
    """An image and its place among all, which is its name where it has no other."""

    number: int
    source: Source

    @staticmethod
    def of(number: int, source: Source) -> _Item:
        """Return an image of a kind that is known; other machines find its files, too."""
        if isinstance(source, CaseFiles):
            return _Item(number, source.absolute())
        if not isinstance(source, Case) and not callable(source):
            raise InvalidInputError(
                f"cases: must be of Case, CaseFiles or functions that return a Case; case {number} "
                f"is a {type(source).__name__}"
            )
        return _Item(number, source)

    @property
    def name(self) -> str:
        """What messages call it."""
        known = None
        if isinstance(self.source, CaseFiles):
            known = self.source.case
        elif isinstance(self.source, Case):
            known = self.source.name
        return f"case {self.number if known is None else known}"


def measured(
    job: Job,
    sources: Iterable[Source],
    *,
    client: Any = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Generator[Measured | Bad]:
    """Yield what is kept of every image, in order; made here, or on a cluster by its client."""
    if not isinstance(sources, Iterable):
        raise InvalidTypeError(
            f"cases: must be a list or another iterable of images; got one {type(sources).__name__}"
        )
    total = len(sources) if isinstance(sources, Sized) else None
    items: Iterable[_Item] = (_Item.of(i, source) for i, source in enumerate(sources))
    unopened = False
    if isinstance(sources, Sequence):
        items = list(items)
        unopened = not any(isinstance(source, Case) for source in sources)
    if client is None:
        yield from results_here(
            items,
            lambda item: (item, _open(job, item)),
            lambda opened: _measure_opened(job, *opened),
            total=total,
            checkpoint=checkpoint,
            progress=progress,
            keep=_is_good,
            # While one image is measured, the next is read, if there may be a thread for it.
            workers=1 if unopened and number_of_threads() > 1 else 0,
        )
        return
    from raterwise.streaming.cluster import IN_FLIGHT, connected, results_on_cluster

    maps = None if job.maps is None else job.maps.absolute()
    with connected(client) as own:
        yield from results_on_cluster(
            partial(measure, replace(job, maps=maps)),
            items,
            own,
            total=total,
            checkpoint=checkpoint,
            progress=progress,
            keep=_is_good,
            ahead=IN_FLIGHT if unopened else ARRAYS_AHEAD,
        )


def measure(job: Job, item: _Item) -> Measured | Bad:
    """Open an image and return what the reduction keeps of it, or why it cannot be used."""
    return _measure_opened(job, item, _open(job, item))


def _open(job: Job, item: _Item) -> _Opened | Bad:
    source = item.source
    if isinstance(source, Case):
        return _Opened(source)
    try:
        if not isinstance(source, CaseFiles):
            return _Opened(source())
        return _of_files(source, job.spacing)
    except MissingExtraError:
        raise  # which is nobody's bad image
    except (RaterwiseError, OSError) as error:
        return Bad(named(error, item.name), getattr(error, "argument", None))


def _of_files(files: CaseFiles, spacing: tuple[float, ...] | None = None) -> _Opened:
    images = read_images(files)
    case = Case(
        images.probabilities,
        images.masks,
        region=images.region,
        spacing=images.spacing or spacing,
        patient=files.patient,
        name=files.case,
        layout="one_hot" if images.one_hot else "labels",
        raters=files.rater_names,
        step=images.step,
    )
    return _Opened(case, images.affine)


def opened(source: Source) -> Case | None:
    """Return an image that may be looked at before it is measured; None of a function."""
    if isinstance(source, CaseFiles):
        return _of_files(source).case
    return source if isinstance(source, Case) else None


def _measure_opened(job: Job, item: _Item, image: _Opened | Bad) -> Measured | Bad:
    if isinstance(image, Bad):
        return image
    case, request = image.case, job.request
    if not isinstance(case, Case):
        raise InvalidInputError(f"{item.name}: must be a Case; got a {type(case).__name__}")
    try:
        kept = request.kept_of(case, job.num_classes, item.number)
        if job.maps is not None:
            _write_map(job.maps, case, image.affine)
    except RaterwiseError as error:
        return Bad(_with_files(str(error), item.source), error.argument)
    return Measured(str(item.number) if case.name is None else case.name, case.patient, kept)


def _with_files(text: str, source: Source) -> str:
    """Return what is wrong with the values of an image, with the files that hold them."""
    if not isinstance(source, CaseFiles):
        return text
    names = [source.probabilities.name, *(path.name for path in source.raters)]
    return f"{text} (in {', '.join(names)})"


def map_name(case: str) -> str:
    """Return the name of the file of a case's map.

    >>> map_name("p1/scan 3")
    'p1_scan_3_disagreement.nii.gz'
    """
    return re.sub(r"[^\w.-]", "_", case) + "_disagreement.nii.gz"


def _write_map(folder: Path, case: Case, affine: NDArray[np.float64] | None) -> None:
    assert case.name is not None
    probs: Any = case.probabilities
    masks: Any = case.masks
    one_channel = case.layout == "labels" and probs.shape == masks[0].shape
    values = disagreement_map(probs, one_channel=one_channel, region=case.region, step=case.step)
    write_nifti(folder / map_name(case.name), values, affine)


def _is_good(result: Measured | Bad) -> bool:
    return not isinstance(result, Bad)


def checkpoint_of(folder: str | PathLike[str], job: Job, sources: Iterable[Source]) -> Checkpoint:
    """Return the checkpoint of images in files, new or begun."""
    if not isinstance(sources, Sequence) or not all(isinstance(s, CaseFiles) for s in sources):
        raise InvalidInputError(
            "checkpoint: must go with a list of files, as read_manifest gives, by which a run that "
            "goes on can tell that they are the same"
        )
    about = {"job": asdict(job), "files": [(asdict(f), _stamps(f)) for f in sources]}
    return Checkpoint.open(folder, about, Measured.save, Measured.load)


def _stamps(files: CaseFiles) -> list[tuple[int, int]]:
    """Return size and time of every file: parts of files that changed since are not used."""
    paths = [files.probabilities, *files.raters, *([files.mask] if files.mask else [])]
    return [stamp(path) for path in paths if path.exists()]


def gather(
    reduction: Reduction,
    images: Iterable[Measured | Bad],
    *,
    skip_bad: bool = False,
    levels: LevelImages | None = None,
) -> list[str]:
    """Add the images that can be used to a reduction; return what to say of the others.

    They are added to their levels, too, where they are told apart.
    """
    notes = []
    for image in images:
        if not isinstance(image, Bad):
            code = reduction.add(image.name, image.patient, image.kept)
            if levels is not None:
                levels.add(image.name, image.patient, image.kept, code)
            continue
        if levels is not None:
            levels.skip()
        if not skip_bad:
            # What is wrong with an option is wrong with all images.
            way = (
                "" if image.argument == "num_classes" else "; skip_bad=True leaves such images out"
            )
            raise InvalidInputError(f"{image.why}{way}", argument=image.argument)
        notes.append(f"left out: {image.why}")
        reduction.skipped += 1
    return notes

"""Every metric of the catalog over images: one value per image, or all voxels pooled."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import intervals
from quorate.arrays import choose
from quorate.binning import bin_edges
from quorate.catalog import Metric, find
from quorate.engines.streaming import digest as digest_part
from quorate.errors import InvalidInputError, QuorateError
from quorate.evaluate import rows_of
from quorate.inference import Progress, Settings
from quorate.io.files import write_text_atomically
from quorate.merged import asked_of, blank, plans_of, results_of, value_of
from quorate.resample import multiplicities
from quorate.results import Estimate, Results
from quorate.segmentation.binary import binary_digest, has_binary_digest
from quorate.segmentation.cases import Case, Selection, Voxels
from quorate.summaries import BinPlan, BinTable
from quorate.summaries.digest import Digest, Facts, UnitStack, bounded, merged_in_order

__all__ = ["CaseEstimate", "CaseValues", "Reduction", "Request", "SegmentationResults", "evaluate"]

REDUCTIONS = ("per_case", "pooled")
EXACT_VOXELS = 1 << 18
"""Up to how many voxels an image's scores are sorted; cells stand in for those of larger ones."""
MOST_BLOCKS = 1024
"""Into how many blocks patients are pooled where there are more."""
BY_CLASS = (
    *("classwise_ece", "calibration_loss", "calibration_error", "epistemic_loss"),
    *("irreducible_loss", "dispersion_loss", "expected_squared_loss"),
)
"""Metrics that are made of one table per class, and so have a value for each."""


@dataclass(frozen=True)
class CaseEstimate(Estimate):
    """The mean of a metric over images, and how the images differ."""

    std: float | None = None
    """Standard deviation over images."""
    defined: int = 0
    """Images on which the metric has a value."""


@dataclass(frozen=True, eq=False, repr=False)
class SegmentationResults(Results):
    """Results over images, with the value of each image where the reduction is "per_case"."""

    case_names: tuple[str, ...] = ()
    per_case: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """By metric, one value per image (NaN where it is undefined)."""
    per_class: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By metric, one value per class, of the metrics that are sums over classes."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: what `to_json` writes."""
        out = super().to_dict()
        values = {name: [None if np.isnan(v) else float(v) for v in each]
                  for name, each in self.per_case.items()}  # fmt: skip
        out["per_case"] = {"cases": list(self.case_names), "values": values}
        out["per_class"] = {
            name: [None if np.isnan(v) else v for v in each]
            for name, each in self.per_class.items()
        }
        return out


def evaluate(
    cases: Iterable[Case],
    metrics: str | Sequence[str] = "all",
    reduction: str = "per_case",
    num_classes: int | None = None,
    *,
    foreground_only: bool = False,
    boundary_mm: float | None = None,
    ignore_label: int | None = None,
    class_names: Sequence[str] | None = None,
    bins: int = 15,
    question: str | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    interval: str = "auto",
    on_single: str = "error",
    threads: int | None = None,
    progress: Progress | None = None,
) -> SegmentationResults:
    """Return every metric asked for over images that several raters segmented.

    Voxels are cases with label histograms: a voxel counts once per rater and is never repeated
    (MR section 2.3). Memory is that of one image, whatever their number.

    Parameters
    ----------
    cases
        Any iterable of `Case`, read once.
    reduction
        "per_case": one value per image, their mean and standard deviation, and an interval over
        images (the MR paper's). "pooled": all voxels together; every voxel counts, so large images
        count more.
    num_classes
        To check the cases by; that of the first case where it is None.
    foreground_only
        Look at voxels that the prediction or any rater calls other than class 0.
    boundary_mm
        Look at voxels within so many mm of any rater's boundary; the cases need a `spacing`.
    ignore_label
        The label of voxels that a rater left out.
    question
        "top_label" (the default), or "positive" for the foreground of two classes (MR eq 5).
    resamples, level, seed, interval
        Of the bootstrap over patients, or over images where cases name no patient.
    on_single
        "error" or "drop" for voxels that too few raters labelled for a metric.
    progress
        Called with a description and the fraction done, where `cases` has a length.

    >>> masks = np.array([[[0, 1], [1, 1]], [[0, 0], [1, 1]]])     # two raters
    >>> image = np.array([[0.25, 0.5], [0.75, 1.0]])               # probability of class 1
    >>> results = evaluate([Case(image, masks)], "ece,brier", question="positive", resamples=0)
    >>> results["ece"].value                                       # (1/4 + 0 + 1/4 + 0) / 4
    0.125
    """
    settings = Settings(resamples, level, seed, "cases", interval, on_single, threads)
    selection = Selection(ignore_label, foreground_only, boundary_mm)
    request = Request.of(metrics, reduction, bins, question, settings, selection)
    gathered = Reduction(request, class_names)
    total = len(cases) if hasattr(cases, "__len__") else None
    for number, case in enumerate(cases):
        if not isinstance(case, Case):
            raise InvalidInputError(f"cases: must be of Case; case {number} is a {type(case)}")
        if progress and total:
            progress(f"image {number + 1} of {total}", number / total)
        known = num_classes if num_classes is not None else gathered.num_classes
        values = request.digest(case, known, number)
        gathered.add(case.name or str(number), case.patient, gathered.of(values))
    if progress:
        progress("done", 1.0)
    return gathered.results()


@dataclass(frozen=True)
class Request:
    """What is asked of every image: the metrics with their options, and which voxels."""

    metrics: tuple[str, ...]
    options: Mapping[str, Any]
    settings: Settings
    selection: Selection
    reduction: str

    @staticmethod
    def of(
        metrics: str | Sequence[str],
        reduction: str,
        bins: int,
        question: str | None,
        settings: Settings,
        selection: Selection,
    ) -> Request:
        """Return a request whose arguments are checked."""
        bin_edges(bins)
        options: dict[str, Any] = {"bins": bins}
        if question is not None:
            options["question"] = choose("question", question, ("top_label", "positive"))
        rows = rows_of(metrics)
        beliefs = [row.name for row in rows if row.needs_belief]
        if beliefs:
            raise InvalidInputError(f"metrics: {', '.join(beliefs)} are not for images")
        choose("reduction", reduction, REDUCTIONS)
        return Request(tuple(row.name for row in rows), options, settings, selection, reduction)

    @property
    def rows(self) -> list[Metric]:
        """The rows of the catalog: looked up, so that a request can be sent to another machine."""
        return [find(name) for name in self.metrics]

    @property
    def asked(self) -> dict[str, tuple[Metric, dict[str, Any]]]:
        """The metrics with their options."""
        asked = asked_of(self.rows, self.options)
        if "question" in self.options and "kde_ece" in asked:  # its row has no such option
            asked["kde_ece"][1]["question"] = self.options["question"]
        return asked

    def plans(self, voxels: int) -> list[Any]:
        """Return what to keep of an image of so many voxels."""
        if self.reduction == "pooled":
            return plans_of(self.asked)
        exact = voxels <= EXACT_VOXELS
        plans = [
            row.plan(own) if exact and row.name != "kde_ece" else bounded(row.plan(own))
            for row, own in self.asked.values()
        ]
        return list(dict.fromkeys(plans))

    def digest(self, case: Case, num_classes: int | None = None, number: int = 0) -> Digest:
        """Return the digest of one image."""
        voxels = Voxels.of(case, num_classes, self.selection, number)
        threads = self.settings.threads
        plans = self.plans(len(voxels))
        try:
            if has_binary_digest(voxels, plans):
                return binary_digest(voxels, plans, threads)
            return merged_in_order(
                digest_part(part, plans, threads=threads) for part in voxels.parts()
            )
        except QuorateError as error:
            raise voxels.explained(error) from error


@dataclass(frozen=True, eq=False)
class CaseValues:
    """The metrics of one image: what is kept of it where the reduction is "per_case"."""

    facts: Facts
    values: Mapping[str, tuple[float, float | None, str | None]]
    """By metric: value (NaN where undefined), bound, and why it is undefined."""
    per_class: Mapping[str, tuple[float, ...]]

    def save(self, path: Path) -> None:
        """Write the values as JSON, every digit of them."""
        content = {"facts": asdict(self.facts), "values": self.values, "per_class": self.per_class}
        write_text_atomically(path, json.dumps(content))

    @staticmethod
    def load(path: Path) -> CaseValues:
        """Read what `save` wrote."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            names = content["facts"].pop("class_names")
            facts = Facts(class_names=names and tuple(names), **content["facts"])
            values = {name: tuple(value) for name, value in content["values"].items()}
            by_class = {name: tuple(each) for name, each in content["per_class"].items()}
            return CaseValues(facts, values, by_class)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{path}: is damaged ({error})") from error

    @staticmethod
    def of(digest: Digest, request: Request) -> CaseValues:
        """Return the metrics of the digest of one image."""
        values: dict[str, tuple[float, float | None, str | None]] = {}
        by_class = {}
        for name, (row, own) in request.asked.items():
            try:
                digest.facts.require_raters(row.raters_needed(own), request.settings.on_single)
                plan = bounded(row.plan(own))
                if name != "kde_ece" and row.plan(own) in digest.summaries:
                    plan = row.plan(own)
                summary = digest.summaries[plan]
                value, bound = value_of(row, own, summary)
            except QuorateError as error:
                values[name] = (float("nan"), None, str(error))
                continue
            why = None if np.isfinite(value) else row.undefined
            values[name] = (float(value) if why is None else float("nan"), bound, why)
            if name in BY_CLASS:
                by_class[name] = _by_class(row, own, summary)
        return CaseValues(digest.facts, values, by_class)


def _by_class(row: Metric, own: Mapping[str, Any], summary: Any) -> tuple[float, ...]:
    assert isinstance(summary.plan, BinPlan)
    sums = summary.table.sums
    tables = [BinTable(sums[..., k : k + 1, :, :]) for k in range(sums.shape[-3])]
    return tuple(float(row.over(table, own)) for table in tables)


class Reduction:
    """Gathers images one by one and makes results of them."""

    def __init__(self, request: Request, class_names: Sequence[str] | None = None) -> None:
        self.request = request
        self.num_classes: int | None = None
        self.skipped = 0
        self._class_names = class_names
        self._names: list[str] = []
        self._patients: dict[Hashable, int] = {}
        self._patient_of: list[int] = []
        self._values: list[CaseValues] = []
        self._facts: Facts | None = None
        self._stack = UnitStack("patients")

    def of(self, digest: Digest) -> Digest | CaseValues:
        """Return what this reduction keeps of an image."""
        if self.request.reduction == "per_case":
            return CaseValues.of(digest, self.request)
        return digest

    def add(self, name: str, patient: Hashable | None, kept: Digest | CaseValues) -> None:
        """Add an image."""
        key = ("image", len(self._names)) if patient is None else ("patient", patient)
        code = self._patients.setdefault(key, len(self._patients))
        facts = kept.facts
        if self.num_classes is None:
            self.num_classes = facts.classes
            names = self._class_names
            if names is not None and len(names) != facts.classes:
                raise InvalidInputError(
                    f"class_names: must name each of the {facts.classes} classes; got {len(names)}"
                )
        if facts.classes != self.num_classes:
            raise InvalidInputError(
                f"case {name}: has {facts.classes} classes; those before it have {self.num_classes}"
            )
        if isinstance(kept, CaseValues):
            self._values.append(kept)
        else:
            self._stack.add(kept, code % MOST_BLOCKS)
        self._facts = facts if self._facts is None else self._facts + facts
        self._names.append(name)
        self._patient_of.append(code)

    def results(self) -> SegmentationResults:
        """Return the results of all images that were added."""
        if self._facts is None:
            raise InvalidInputError("cases: must hold at least one image; got none")
        return self._per_case() if self.request.reduction == "per_case" else self._pooled()

    def _pooled(self) -> SegmentationResults:
        request, digest = self.request, self._stack.digest()
        found = results_of(digest, request.asked, request.options, request.settings)
        by_class = CaseValues.of(digest, request).per_class
        return self._with_facts(found.estimates, {}, by_class)

    def _per_case(self) -> SegmentationResults:
        settings = self.request.settings
        units = len(self._patients)
        times = None
        if settings.resamples and units > 1:
            times = multiplicities(units, settings.resamples, settings.seed)
        estimates: dict[str, Estimate] = {}
        values: dict[str, NDArray[np.float64]] = {}
        for row in self.request.rows:
            each = [case.values[row.name] for case in self._values]
            values[row.name] = np.array([value for value, _, _ in each])
            bounds = [bound or 0.0 for value, bound, _ in each if not np.isnan(value)]
            why = next((reason for _, _, reason in each if reason), row.undefined)
            estimates[row.name] = self._mean(row, values[row.name], bounds, why, times)
        by_class = {
            name: tuple(np.nanmean([case.per_class[name] for case in having], axis=0).tolist())
            for name in BY_CLASS
            if (having := [case for case in self._values if name in case.per_class])
        }
        return self._with_facts(estimates, values, by_class)

    def _mean(
        self,
        row: Metric,
        values: NDArray[np.float64],
        bounds: list[float],
        why: str,
        times: NDArray[np.float64] | None,
    ) -> CaseEstimate:
        start = {f: v for f, v in asdict(blank(row)).items() if f not in ("value", "undefined")}
        defined = ~np.isnan(values)
        if not defined.any():
            return CaseEstimate(**start, value=None, undefined=why)
        mean = float(values[defined].mean())
        point = CaseEstimate(
            **start,
            value=mean,
            std=float(values[defined].std(ddof=1)) if defined.sum() > 1 else None,
            defined=int(defined.sum()),
        )
        point = replace(point, bound=float(np.mean(bounds)) or None)
        patients = np.array(self._patient_of)[defined]
        if times is None or len(np.unique(patients)) < 2:
            return point
        units = times.shape[1]
        sums = np.bincount(patients, values[defined], units)
        counts = np.bincount(patients, minlength=units)
        drawn = times @ counts
        with np.errstate(invalid="ignore", divide="ignore"):
            replicates = np.where(drawn > 0, times @ sums / drawn, np.nan)
        settings = self.request.settings
        if settings.interval == "percentile":
            ends = intervals.percentile_interval(replicates, settings.level, units=units)
        else:
            ends = intervals.bias_corrected_interval(mean, replicates, settings.level, units=units)
        return replace(point, low=ends.low, high=ends.high)

    def _with_facts(
        self,
        estimates: Mapping[str, Estimate],
        values: Mapping[str, NDArray[np.float64]],
        by_class: Mapping[str, tuple[float, ...]],
    ) -> SegmentationResults:
        facts, request = self._facts, self.request
        assert facts is not None
        named = any(kind == "patient" for kind, _ in self._patients)
        dropped = {**facts.dropped, **({"bad images": self.skipped} if self.skipped else {})}
        data = {
            "cases": len(self._names),
            "voxels": facts.cases,
            "patients": len(self._patients) if named else None,
            "classes": facts.classes,
            "class_names": None if self._class_names is None else list(self._class_names),
            "ratings": facts.ratings,
            "raters": {
                "mean": facts.ratings / facts.cases, "min": facts.fewest, "max": facts.most
            },
            "dropped": dropped,
        }  # fmt: skip
        options = {
            **request.options, **asdict(request.settings), **asdict(request.selection),
            "reduction": request.reduction,
        }  # fmt: skip
        warnings = self._warnings(len(self._patients))
        return SegmentationResults(
            estimates,
            data=data,
            options=options,
            warnings=warnings,
            case_names=tuple(self._names),
            per_case=values,
            per_class=by_class,
        )

    def _warnings(self, units: int) -> tuple[str, ...]:
        what = "images" if units == len(self._names) else "patients"
        few = f"only {units} {what}: intervals are too short below about 20"
        return (few,) if 1 < units < 20 and self.request.settings.resamples else ()

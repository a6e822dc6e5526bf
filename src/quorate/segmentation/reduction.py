"""From images to results: one value per image, or all voxels pooled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import intervals
from quorate.catalog import Metric
from quorate.errors import InvalidInputError
from quorate.merged import blank, results_of
from quorate.resample import multiplicities
from quorate.results import Estimate, Results
from quorate.segmentation.request import BY_CLASS, CaseValues, Request
from quorate.summaries.digest import Digest, Facts, UnitStack

__all__ = ["CaseEstimate", "Reduction", "SegmentationResults"]

MOST_BLOCKS = 1024
"""Into how many blocks patients are pooled where there are more."""


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


class Reduction:
    """Gathers images one by one and makes results of them."""

    def __init__(self, request: Request, class_names: Sequence[str] | None = None) -> None:
        self.request = request
        self.num_classes: int | None = None
        self.skipped = 0
        self._class_names = class_names
        self._names: list[str] = []
        self._patients: dict[tuple[str, Hashable], int] = {}
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
        notes = tuple(note for note in found.warnings if note.startswith("approximate"))
        return self._with_facts(found.estimates, {}, by_class, notes)

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
        notes: tuple[str, ...] = (),
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
            warnings=(*warnings, *notes),
            case_names=tuple(self._names),
            per_case=values,
            per_class=by_class,
        )

    def _warnings(self, units: int) -> tuple[str, ...]:
        what = "images" if units == len(self._names) else "patients"
        few = f"only {units} {what}: intervals are too short below about 20"
        return (few,) if 1 < units < 20 and self.request.settings.resamples else ()

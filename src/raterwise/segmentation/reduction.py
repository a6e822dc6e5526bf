"""From images to results: one value per image, or all voxels pooled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import intervals
from raterwise.catalog import Metric
from raterwise.curves import curves_of
from raterwise.errors import InvalidInputError
from raterwise.evaluate import blank
from raterwise.merged import pass_of, results_of
from raterwise.resample import multiplicities
from raterwise.results import Estimate, Results
from raterwise.segmentation.request import BY_CLASS, CaseValues, Request
from raterwise.summaries.digest import Digest, Facts, UnitStack

__all__ = ["Reduction"]

MOST_BLOCKS = 1024
"""Into how many blocks patients are pooled where there are more."""


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
        tables = kept.tables if isinstance(kept, CaseValues) else kept
        self._stack.add(tables, code % MOST_BLOCKS)
        self._facts = facts if self._facts is None else self._facts + facts
        self._names.append(name)
        self._patient_of.append(code)

    def results(self) -> Results:
        """Return the results of all images that were added."""
        if self._facts is None:
            raise InvalidInputError("cases: must hold at least one image; got none")
        return self._per_case() if self.request.reduction == "per_case" else self._pooled()

    def _pooled(self) -> Results:
        request, digest = self.request, self._digest()
        found = results_of(digest, request.asked, request.options, request.settings)
        by_class = CaseValues.of(digest, request).per_class
        notes = tuple(note for note in found.warnings if note.startswith("approximate"))
        return self._with_facts(found.estimates, {}, by_class, found.curves, notes)

    def _digest(self) -> Digest:
        digest = self._stack.digest()
        names = None if self._class_names is None else tuple(self._class_names)
        return replace(digest, facts=replace(digest.facts, class_names=names))

    def _per_case(self) -> Results:
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
        notes = self._without_value(estimates)
        return self._with_facts(estimates, values, by_class, self._curves(), notes)

    def _without_value(self, estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
        """Say on how many images which metrics have no value, and why."""
        found: dict[tuple[int, str], list[str]] = {}
        for name, e in estimates.items():
            missing = [why for case in self._values if (why := case.values[name][2])]
            if missing and e.value is not None:
                found.setdefault((len(missing), missing[0]), []).append(e.title)
        total = len(self._values)
        return tuple(
            f"no value on {count} of {total} images: {', '.join(titles)} ({why})"
            for (count, why), titles in found.items()
        )

    def _curves(self) -> dict[str, Any]:
        """Return the reliability curves of all voxels together."""
        digest = self._digest()
        rated = {
            name: (row, own)
            for name, (row, own) in self.request.drawn.items()
            if digest.facts.too_few(row.raters_needed(own)) < digest.facts.cases
        }
        pass_ = pass_of(digest, rated, self.request.settings)
        return curves_of(pass_, rated, digest.facts.class_names)

    def _mean(
        self,
        row: Metric,
        values: NDArray[np.float64],
        bounds: list[float],
        why: str,
        times: NDArray[np.float64] | None,
    ) -> Estimate:
        defined = ~np.isnan(values)
        if not defined.any():
            return replace(blank(row), undefined=why, defined=0)
        mean = float(values[defined].mean())
        point = replace(
            blank(row),
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
        curves: Mapping[str, Any],
        notes: tuple[str, ...] = (),
    ) -> Results:
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
        return Results(
            estimates,
            data=data,
            options=options,
            warnings=(*warnings, *notes),
            curves=curves,
            case_names=tuple(self._names),
            per_case=values,
            per_class=by_class,
        )

    def _warnings(self, units: int) -> tuple[str, ...]:
        what = "images" if units == len(self._names) else "patients"
        few = f"only {units} {what}: intervals are too short below about 20"
        return (few,) if 1 < units < 20 and self.request.settings.resamples else ()

"""From images to results: one value per image, or all voxels pooled."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from raterwise.catalog import Metric
from raterwise.curves.reliability import curves_of
from raterwise.errors import InvalidInputError
from raterwise.evaluation.judged import Judged, judge, results_of
from raterwise.inference.draws import multiplicities
from raterwise.inference.estimates import blank, infinite_mean, mean_over_units
from raterwise.inference.measures import Measure, step_of
from raterwise.inference.passes import Pass
from raterwise.inference.raters import Panels, RaterDraws
from raterwise.labels.classes import names_of
from raterwise.results import Estimate, Results
from raterwise.rules import is_missing
from raterwise.segmentation.request import CaseValues, ImageRequest, values_by_class
from raterwise.summaries.digest import Digest, UnitStack
from raterwise.summaries.facts import Patients
from raterwise.summaries.fingerprint import Fingerprint
from raterwise.types import FloatArray

ORIGIN = {"call": "raterwise.segmentation.evaluate"}
MOST_BLOCKS = 1024
"""Into how many blocks patients are pooled where there are more."""


def unnamed_patients(case: str) -> InvalidInputError:
    """Return the error about an image without a patient among images that have one."""
    return InvalidInputError(
        f"patient: must be given of every image, or of none; case {case} has none and others have "
        "one. Give each unknown patient a name of its own"
    )


def check_patients(cases: Iterable[Any]) -> None:
    """Refuse, before any image is measured, images of which only some name a patient."""
    if not isinstance(cases, Sequence) or not all(hasattr(case, "patient") for case in cases):
        return
    missing = [number for number, case in enumerate(cases) if is_missing(case.patient)]
    if 0 < len(missing) < len(cases):
        bad = cases[missing[0]]
        name = bad.case if hasattr(bad, "case") else bad.name
        raise unnamed_patients(str(missing[0]) if name is None else name)


class Reduction:
    """Gathers images one by one and makes results of them."""

    def __init__(self, request: ImageRequest, class_names: Sequence[str] | None = None) -> None:
        self.request = request
        self.num_classes: int | None = None
        self.skipped = 0
        if isinstance(class_names, str):
            class_names = tuple(class_names)  # each letter a name, as in `evaluate`
        self._class_names = None if class_names is None else names_of(class_names)
        self._names: list[str] = []
        self._patients: dict[tuple[str, Hashable], int] = {}
        self._patient_of: list[int] = []
        self._added: list[tuple[str, Hashable | None, CaseValues, int]] = []
        self._values: list[CaseValues] = []
        self._fingerprint = Fingerprint()
        self._stack = UnitStack("patients")

    def add(
        self,
        name: str,
        patient: Hashable | None,
        kept: Digest | CaseValues,
        code: int | None = None,
    ) -> int:
        """Add an image, and return the number of its patient, which may be one given to it."""
        patient = None if is_missing(patient) else str(patient)  # 7 and "7" alike, as in tables
        if code is None:
            self._check_named(name, patient)
            key = ("image", len(self._names)) if patient is None else ("patient", patient)
            code = self._patients.setdefault(key, len(self._patients))
        else:
            key = ("image", code) if patient is None else ("patient", patient)
            self._patients[key] = code
        self._check_classes(name, kept.facts.classes)
        if isinstance(kept, CaseValues):
            self._values.append(kept)
            self._added.append((name, patient, kept, code))
        tables = kept.tables if isinstance(kept, CaseValues) else kept
        self._stack.add(tables, code % MOST_BLOCKS)
        facts = kept.facts
        about = (len(self._names), name, patient, facts.cases, facts.ratings, facts.by_class)
        mark = Fingerprint.of_text(*about)
        if (by := facts.fingerprint.raters) is not None:
            mark = replace(mark, raters=Fingerprint.of_text(len(self._names), by).labels)
        self._fingerprint += mark
        self._names.append(name)
        self._patient_of.append(code)
        return code

    def joined(self, others: Sequence[Reduction]) -> Reduction:
        """Return a reduction of the images of others, each with one value per image."""
        whole = Reduction(self.request, self._class_names)
        for other in others:
            for image in other._added:
                whole.add(*image)
        return whole

    def _check_named(self, name: str, patient: str | None) -> None:
        """Refuse images of which only some name a patient: who is independent of whom?"""
        if self._patients and (next(iter(self._patients))[0] == "patient") == (patient is None):
            raise unnamed_patients(name if patient is None else self._names[-1])

    def _check_classes(self, name: str, classes: int) -> None:
        names = self._class_names
        if self.num_classes is None:
            self.num_classes = classes
            if names is not None and len(names) != classes:
                raise InvalidInputError(
                    f"class_names: must name each of the {classes} classes; got {len(names)}"
                )
        if classes != self.num_classes:
            raise InvalidInputError(
                f"case {name}: has {classes} classes; those before it have {self.num_classes}"
            )

    def results(self, notes: tuple[str, ...] = ()) -> Results:
        """Return the results of all images that were added."""
        if not self._names and self.skipped:
            raise InvalidInputError(
                f"images: at least one must be usable; none of {self.skipped} is ({notes[0]})"
            )
        if not self._names:
            raise InvalidInputError("cases: must hold at least one image; got none")
        per_case = self.request.reduction == "per_case"
        results = self._per_case(notes) if per_case else self._pooled(notes)
        about = {**asdict(self.request.selection), "reduction": self.request.reduction}
        return replace(results, options={**results.options, **about}, case_names=tuple(self._names))

    def digest(self, units: int = 0) -> Digest:
        """Return the digest of all images, with what is known of them as images."""
        digest = self._stack.digest(units)
        names = self._class_names
        named = any(kind == "patient" for kind, _ in self._patients)
        ids = {code: str(patient) for (_, patient), code in self._patients.items()}
        known, codes = np.unique(self._patient_of, return_inverse=True)
        dropped = dict(digest.facts.dropped)
        facts = replace(
            digest.facts,
            class_names=None if names is None else tuple(names),
            dropped={**dropped, **({"bad images": self.skipped} if self.skipped else {})},
            patients=Patients.of_codes(codes, [ids[c] for c in known]) if named else None,
            fingerprint=self._fingerprint,
        )
        return replace(digest, facts=facts, unit="patients" if named else "images")

    def _pooled(self, notes: tuple[str, ...]) -> Results:
        judged = judge(self.digest(), self.request.request)
        measures = judged.measures().items()
        by_class = values_by_class(m for n, m in measures if judged.estimates[n].value is not None)
        return results_of(judged, notes=notes, origin=ORIGIN, per_class=by_class)

    def judged_images(self) -> Judged:
        """Return the means over the images, with intervals over patients."""
        request, panels = self.request.request, self.request.panels()
        settings = request.settings
        known, codes = np.unique(self._patient_of, return_inverse=True)
        times = None
        if settings.resamples and settings.unit != "raters" and len(known) > 1:
            times = multiplicities(len(known), settings.resamples, settings.seed)
        estimates: dict[str, Estimate] = {}
        replicates: dict[str, FloatArray] = {}
        digest = self.digest()
        for row in request.rows:
            values = self._values_of(row.name)
            own = request.asked[row.name][1]
            point = self._point(row, blank(row, own))
            defined = ~np.isnan(values)
            estimates[row.name] = point
            several = times is not None and len(np.unique(codes[defined])) > 1
            if point.value is not None and (several or (settings.unit == "raters" and panels)):
                plan = row.plan_of_step(own, settings.on_single)
                estimates[row.name], replicates[row.name] = mean_over_units(
                    point, values[defined], codes[defined], times, settings,
                    row, step_of(row, own, digest, plan, len(np.unique(codes[defined]))),
                    row.within_bounds(-np.inf, np.inf, own, self.num_classes or 2),
                    None if panels is None else self._by_raters(row, point.value, panels),
                )  # fmt: skip
        rated = self._rated(digest)
        return Judged(request, digest, estimates, rated, None, replicates, by_image=True)

    def _values_of(self, name: str) -> FloatArray:
        return np.array([case.values[name][0] for case in self._values])

    def _per_case(self, notes: tuple[str, ...]) -> Results:
        judged = self.judged_images()
        by_class = {
            row.name: tuple(np.nanmean([case.per_class[row.name] for case in having], axis=0))
            for row in self.request.request.rows
            if (having := [case for case in self._values if row.name in case.per_class])
        }
        notes = (*self._without_value(judged.estimates), *notes)
        panels = self.request.panels()
        return results_of(
            judged,
            data={} if panels is None else {"resampled_raters": len(self.request.raters)},
            notes=notes,
            origin=ORIGIN,
            curves=self._curves(judged),
            per_case={name: self._values_of(name) for name in judged.estimates},
            per_class={name: tuple(float(v) for v in each) for name, each in by_class.items()},
        )

    def _by_raters(
        self, row: Metric, value: float, panels: Panels
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean over the images with every resample of raters, and without each."""
        means, seed = {}, self.request.request.settings.seed
        for panel in panels.different:
            each = np.array([case.by_panel[panel][row.name] for case in self._values])
            defined = each[~np.isnan(each)]
            means[panel] = float(defined.mean()) if len(defined) else np.nan
        draws = RaterDraws.of_panels(panels, {panel: {} for panel in means}, seed)
        drawn, without = (
            np.array([means[panel] for panel in which]) for which in (panels.drawn, panels.left_out)
        )
        return draws.replicates(value, drawn, without, of_pairs=row.of_pairs), without

    def _point(self, row: Metric, empty: Estimate) -> Estimate:
        """Return the mean over the images on which a metric has a value."""
        each = [case.values[row.name] for case in self._values]
        values = np.array([value for value, _, why in each if why is None])
        if infinite := infinite_mean(row, [why for _, _, why in each], "images"):
            return replace(empty, undefined=infinite, defined=len(values))
        if not len(values):
            why = next((reason for _, _, reason in each if reason), row.undefined)
            return replace(empty, undefined=why, defined=0)
        bounds = [bound or 0.0 for _, bound, why in each if why is None]
        return replace(
            empty,
            value=float(values.mean()),
            std=float(values.std(ddof=1)) if len(values) > 1 else None,
            defined=len(values),
            bound=float(np.mean(bounds)) or None,
        )

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

    def _rated(self, digest: Digest) -> Any:
        """Return the metrics that some voxels have enough raters for."""
        on_single = self.request.request.settings.on_single
        return {
            name: (row, own)
            for name, (row, own) in self.request.request.asked.items()
            if digest.facts.too_few(row.raters_needed(own, on_single)) < digest.facts.cases
        }

    def _curves(self, judged: Judged) -> dict[str, Any]:
        """Return the reliability curves of all voxels together."""
        rated, digest = judged.asked, judged.digest
        drawn = {name: rated[name] for name in self.request.drawn if name in rated}
        pass_ = Pass(digest, drawn, self.request.request.settings)
        return curves_of([Measure(*one, pass_) for one in drawn.values()], digest.facts.class_names)

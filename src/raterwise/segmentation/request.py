"""What is asked of every image, and the metrics of one image."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.evaluation.request import Request
from raterwise.inference.measures import Measure
from raterwise.inference.passes import Asked, Pass
from raterwise.inference.raters import Panel, Panels
from raterwise.rules import choose
from raterwise.segmentation.binary import binary_digest, has_binary_digest
from raterwise.segmentation.cases import Case, Selection, Voxels
from raterwise.segmentation.panels import names_of, voxels_of
from raterwise.summaries import BinTable
from raterwise.summaries.digest import Digest, digest_of, merged_in_order
from raterwise.summaries.facts import Facts
from raterwise.summaries.fingerprint import Fingerprint

REDUCTIONS = ("per_case", "pooled")
EXACT_VOXELS = 1 << 18
"""Up to how many voxels an image's scores are sorted; cells stand in for those of larger ones."""
STEP_VOXELS = 1 << 14
"""Up to how many voxels an image's loss allows for one more error; it is nothing among more."""


@dataclass(frozen=True)
class ImageRequest:
    """A request, of which voxels it is asked, and how images become one number."""

    request: Request
    selection: Selection
    reduction: str = "per_case"
    raters: tuple[str, ...] = ()
    """Whom the masks are by, as told; where raters are resampled, all of them."""

    def __post_init__(self) -> None:
        choose("reduction", self.reduction, REDUCTIONS)
        if beliefs := [row.name for row in self.request.rows if row.needs_belief]:
            raise InvalidInputError(f"metrics: {', '.join(beliefs)} are not for images")
        self.request.plans(bounded=True)  # these say at once what cannot be
        self.panels()

    def panels(self) -> Panels | None:
        """Return the panels that are resampled; None where raters are not."""
        return Panels.for_persons(len(self.raters), self.request.settings)

    @property
    def drawn(self) -> Asked:
        """The metrics, among those asked for, whose tables reliability curves show."""
        return {
            name: (row, own)
            for name, (row, own) in self.request.asked.items()
            if row.curve is not None and row.plan(own).kind == "bins"
        }

    def plans(self, voxels: int) -> list[Any]:
        """Return what to keep of an image of so many voxels."""
        if self.reduction == "pooled":
            return self.request.plans(bounded=True, steps=False, grouped=True)
        exact, on_single = voxels <= EXACT_VOXELS, self.request.settings.on_single
        plans = []
        for row, own in self.request.asked.values():
            plan = row.plan_of(own, on_single)
            plans.append(plan if exact and "kernel" not in row.tags else plan.bounded())
        return list(dict.fromkeys([*plans, *self.request.verdict_plans(grouped=True)]))

    def _step_plans(self, voxels: int) -> list[Any]:
        """Return what to keep beside it, for what one more error would cost."""
        if voxels > STEP_VOXELS:
            return []
        return [row.step_plan for row, _ in self.request.asked.values() if row.step_plan]

    @property
    def plans_of_all(self) -> set[Any]:
        """What is kept of images that have one value each, to be added up over all of them.

        Reliability curves, the verdict, and what one more error would cost are made of it.
        """
        request = self.request
        on_single = request.settings.on_single
        steps = {row.plan_of_step(own, on_single) for row, own in request.asked.values()} - {None}
        drawn = {row.plan(own) for row, own in self.drawn.values()}
        return drawn | steps | set(request.verdict_plans(grouped=True))

    def kept_of(
        self, case: Case, num_classes: int | None = None, number: int = 0
    ) -> Digest | CaseValues:
        """Return what is kept of one image: its digest, or its values."""
        voxels = Voxels.of(case, num_classes, self.selection, number)
        plans = self.plans(len(voxels))
        try:
            by = names_of(case, len(voxels.raters), self.raters)
        except RaterwiseError as error:
            raise voxels.explained(error) from error
        steps = self._step_plans(len(voxels))
        digest = _digest_of(voxels, list(dict.fromkeys([*plans, *steps])))
        digest = replace(digest, facts=replace(digest.facts, rater_names=tuple(dict.fromkeys(by))))
        per_case = self.reduction == "per_case"
        panels = self.panels()
        if panels is None:
            return CaseValues.of(digest, self) if per_case else digest
        mark = replace(digest.facts.fingerprint, raters=Fingerprint.of_text(*by).labels)
        digest = replace(digest, facts=replace(digest.facts, fingerprint=mark))
        known: dict[Panel, Any] = {}  # panels that count the masks of this image alike share one
        found: dict[Panel, Any] = {}
        for panel in panels.different:
            times = tuple(panel[self.raters.index(name)] for name in by)
            if times not in known:
                own = _of_panel(voxels, times, plans)
                if per_case:
                    known[times] = _values_alone(own, self.request)
                elif own is None:
                    known[times] = {plan: plan.empty(digest.facts.classes) for plan in plans}
                else:
                    known[times] = own.summaries
            found[panel] = known[times]
        if per_case:
            return replace(CaseValues.of(digest, self), by_panel=found)
        return replace(digest, panels=found)


def _digest_of(voxels: Voxels, plans: list[Any]) -> Digest:
    """Return the digest of one image."""
    try:
        if has_binary_digest(voxels, plans):
            found = binary_digest(voxels, plans)
        else:
            digests = _digests(voxels, plans)
            if (first := next(digests, None)) is None:
                raise InvalidInputError("masks: a voxel that is looked at must be rated; none is")
            found = merged_in_order(itertools.chain([first], digests))
    except RaterwiseError as error:
        raise voxels.explained(error) from error
    unrated = len(voxels) - found.facts.cases
    dropped = {"voxels that nobody rated": unrated} if unrated else {}
    return replace(found, facts=replace(found.facts, dropped=dropped, images=1))


def _digests(voxels: Voxels, plans: list[Any]) -> Iterator[Digest]:
    """Yield the digests of an image's slabs; an error names the voxel."""
    for first, part in voxels.slabs():
        try:
            yield digest_of(part, plans)
        except RaterwiseError as error:
            raise voxels.explained(error, first) from error


def _of_panel(voxels: Voxels, times: Panel, plans: list[Any]) -> Digest | None:
    """Return the digest of a panel of raters; None where they rated no voxel."""
    chosen = voxels_of(voxels, times)
    try:
        return None if chosen is None else _digest_of(chosen, plans)
    except InvalidInputError:  # all is checked already, but that this panel left every voxel out
        return None


@dataclass(frozen=True, eq=False)
class CaseValues:
    """The metrics of one image: what is kept of it where the reduction is "per_case"."""

    tables: Digest
    """What is added up over all images: see `ImageRequest.plans_of_all`."""
    values: Mapping[str, tuple[float, float | None, str | None]]
    """By metric: value (NaN where undefined), bound, and why it is undefined."""
    per_class: Mapping[str, tuple[float, ...]]
    by_panel: Mapping[Panel, Mapping[str, float]] = field(default_factory=dict)
    """By panel of raters and metric: the value, NaN where undefined."""

    @property
    def facts(self) -> Facts:
        """What the values rest on."""
        return self.tables.facts

    @staticmethod
    def of(digest: Digest, asked: ImageRequest) -> CaseValues:
        """Return the metrics of the digest of one image."""
        pass_ = Pass(digest, asked.request.asked, asked.request.settings)
        values = _values(pass_, asked.request)
        defined = {name for name, (_, _, why) in values.items() if why is None}
        added = asked.plans_of_all
        tables = {plan: table for plan, table in digest.summaries.items() if plan in added}
        chosen = [one for name, one in asked.request.asked.items() if name in defined]
        by_class = values_by_class(Measure(*one, pass_) for one in chosen)
        return CaseValues(replace(digest, summaries=tables), values, by_class)


def _values(pass_: Pass, request: Request) -> dict[str, tuple[float, float | None, str | None]]:
    """Return the metrics of one image: value, bound, and why there is none."""
    values: dict[str, tuple[float, float | None, str | None]] = {}
    on_single = request.settings.on_single
    for name, (row, own) in request.asked.items():
        try:
            pass_.facts.require_raters(row.raters_needed(own, on_single), on_single)
            value, bound = Measure(row, own, pass_).value()
        except RaterwiseError as error:
            values[name] = (float("nan"), None, str(error))
            continue
        why = None if np.isfinite(value) else row.undefined
        values[name] = (value if why is None else float("nan"), bound, why)
    return values


def _values_alone(digest: Digest | None, request: Request) -> dict[str, float]:
    """Return the metrics of a panel; NaN where they are undefined, or it rated no voxel."""
    if digest is None:
        return dict.fromkeys(request.asked, float("nan"))
    found = _values(Pass(digest, request.asked, request.settings), request)
    return {name: value for name, (value, _, _) in found.items()}


def values_by_class(measures: Iterable[Measure]) -> dict[str, tuple[float, ...]]:
    """Return one value per class of the metrics that are made of one table per class."""
    return {m.row.name: _by_class(m) for m in measures if "by_class" in m.row.tags}


def _by_class(measure: Measure) -> tuple[float, ...]:
    sums = measure.table.sums
    tables = [BinTable(sums[..., k : k + 1, :, :]) for k in range(measure.channels)]
    return tuple(float(measure.over(table)) for table in tables)

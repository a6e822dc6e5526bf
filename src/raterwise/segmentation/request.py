"""What is asked of every image, and the metrics of one image."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raterwise.arrays import choose
from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.inference.passes import Asked, Pass
from raterwise.request import Request
from raterwise.segmentation.binary import binary_digest, has_binary_digest
from raterwise.segmentation.cases import Case, Selection, Voxels
from raterwise.summaries import BinTable
from raterwise.summaries.digest import Digest, digest_of, merged_in_order
from raterwise.summaries.facts import Facts

__all__ = ["CaseValues", "ImageRequest"]

REDUCTIONS = ("per_case", "pooled")
EXACT_VOXELS = 1 << 18
"""Up to how many voxels an image's scores are sorted; cells stand in for those of larger ones."""


@dataclass(frozen=True)
class ImageRequest:
    """A request, of which voxels it is asked, and how images become one number."""

    request: Request
    selection: Selection
    reduction: str = "per_case"

    def __post_init__(self) -> None:
        choose("reduction", self.reduction, REDUCTIONS)
        if beliefs := [row.name for row in self.request.rows if row.needs_belief]:
            raise InvalidInputError(f"metrics: {', '.join(beliefs)} are not for images")
        if self.request.settings.unit != "cases":
            raise InvalidInputError('unit: of images must be "cases", or patients; got "raters"')

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
            # The millions of voxels of an image are no few errors.
            return self.request.plans(bounded=True, steps=False, grouped=True)
        exact, on_single = voxels <= EXACT_VOXELS, self.request.settings.on_single
        plans = []
        for row, own in self.request.asked.values():
            plan = row.plan_of(own, on_single)
            plans.append(plan if exact and "kernel" not in row.tags else plan.bounded())
        return list(dict.fromkeys([*plans, *self.request.verdict_plans(grouped=True)]))

    def digest(self, case: Case, num_classes: int | None = None, number: int = 0) -> Digest:
        """Return the digest of one image."""
        voxels = Voxels.of(case, num_classes, self.selection, number)
        plans = self.plans(len(voxels))
        try:
            if has_binary_digest(voxels, plans):
                found = binary_digest(voxels, plans)
            else:
                parts = voxels.parts()
                if (first := next(parts, None)) is None:
                    raise InvalidInputError(
                        "masks: a voxel that is looked at must be rated; none is"
                    )
                found = merged_in_order(
                    digest_of(part, plans) for part in itertools.chain([first], parts)
                )
        except RaterwiseError as error:
            raise voxels.explained(error) from error
        unrated = len(voxels) - found.facts.cases
        dropped = {"voxels that nobody rated": unrated} if unrated else {}
        return replace(found, facts=replace(found.facts, dropped=dropped, images=1))


@dataclass(frozen=True, eq=False)
class CaseValues:
    """The metrics of one image: what is kept of it where the reduction is "per_case"."""

    tables: Digest
    """Of the metrics that reliability curves are drawn from, and of the verdict; no others."""
    values: Mapping[str, tuple[float, float | None, str | None]]
    """By metric: value (NaN where undefined), bound, and why it is undefined."""
    per_class: Mapping[str, tuple[float, ...]]

    @property
    def facts(self) -> Facts:
        """What the values rest on."""
        return self.tables.facts

    @staticmethod
    def of(digest: Digest, asked: ImageRequest) -> CaseValues:
        """Return the metrics of the digest of one image."""
        values: dict[str, tuple[float, float | None, str | None]] = {}
        settings = asked.request.settings
        pass_ = Pass(digest, asked.request.asked, settings)
        for name, (row, own) in asked.request.asked.items():
            try:
                digest.facts.require_raters(
                    row.raters_needed(own, settings.on_single), settings.on_single
                )
                value, bound = pass_.value(row, own)
            except RaterwiseError as error:
                values[name] = (float("nan"), None, str(error))
                continue
            why = None if np.isfinite(value) else row.undefined
            values[name] = (value if why is None else float("nan"), bound, why)
        defined = {name for name, (_, _, why) in values.items() if why is None}
        drawn = {row.plan(own) for row, own in asked.drawn.values()}
        drawn |= set(asked.request.verdict_plans(grouped=True))
        tables = {plan: table for plan, table in digest.summaries.items() if plan in drawn}
        by_class = values_by_class(pass_, asked.request.asked, defined)
        return CaseValues(replace(digest, summaries=tables), values, by_class)


def values_by_class(pass_: Pass, asked: Asked, defined: set[str]) -> dict[str, tuple[float, ...]]:
    """Return one value per class of the metrics that are made of one table per class."""
    return {
        name: _by_class(row, own, pass_.table(row, own))
        for name, (row, own) in asked.items()
        if name in defined and "by_class" in row.tags
    }


def _by_class(row: Metric, own: Mapping[str, Any], table: BinTable) -> tuple[float, ...]:
    channels = range(table.sums.shape[-3])
    tables = [BinTable(table.sums[..., k : k + 1, :, :]) for k in channels]
    return tuple(float(row.over(one, own)) for one in tables)

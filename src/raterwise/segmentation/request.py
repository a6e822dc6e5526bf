"""What is asked of every image, and the metrics of one image."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raterwise.arrays import choose
from raterwise.binning import bin_edges
from raterwise.catalog import Metric, find
from raterwise.engines.streaming import digest as digest_part
from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.evaluate import rows_of
from raterwise.inference import Settings, value_of
from raterwise.merged import asked_of, plans_of
from raterwise.segmentation.binary import binary_digest, has_binary_digest
from raterwise.segmentation.cases import Case, Selection, Voxels
from raterwise.summaries import BinPlan, BinTable
from raterwise.summaries.digest import Digest, Facts, bounded, merged_in_order

__all__ = ["BY_CLASS", "CaseValues", "Request"]

REDUCTIONS = ("per_case", "pooled")
EXACT_VOXELS = 1 << 18
"""Up to how many voxels an image's scores are sorted; cells stand in for those of larger ones."""
BY_CLASS = (
    *("classwise_ece", "calibration_loss", "calibration_error", "epistemic_loss"),
    *("irreducible_loss", "dispersion_loss", "expected_squared_loss"),
)
"""Metrics that are made of one table per class, and so have a value for each."""
DRAWN = ("ece", "classwise_ece", "disagreement_calibration_error")
"""Metrics with a table that a reliability curve shows."""


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

    @property
    def drawn(self) -> dict[str, tuple[Metric, dict[str, Any]]]:
        """The metrics, among those asked for, whose tables reliability curves show."""
        asked = self.asked
        return {name: asked[name] for name in DRAWN if name in asked}

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
            parts = voxels.parts()
            if (first := next(parts, None)) is None:
                raise InvalidInputError("masks: a voxel that is looked at must be rated; none is")
            found = merged_in_order(
                digest_part(part, plans, threads=threads)
                for part in itertools.chain([first], parts)
            )
        except RaterwiseError as error:
            raise voxels.explained(error) from error
        unrated = len(voxels) - found.facts.cases
        dropped = {"voxels that nobody rated": unrated} if unrated else {}
        return replace(found, facts=replace(found.facts, dropped=dropped))


@dataclass(frozen=True, eq=False)
class CaseValues:
    """The metrics of one image: what is kept of it where the reduction is "per_case"."""

    tables: Digest
    """Of the metrics that reliability curves are drawn from, and no others."""
    values: Mapping[str, tuple[float, float | None, str | None]]
    """By metric: value (NaN where undefined), bound, and why it is undefined."""
    per_class: Mapping[str, tuple[float, ...]]

    @property
    def facts(self) -> Facts:
        """What the values rest on."""
        return self.tables.facts

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
            except RaterwiseError as error:
                values[name] = (float("nan"), None, str(error))
                continue
            why = None if np.isfinite(value) else row.undefined
            values[name] = (float(value) if why is None else float("nan"), bound, why)
            if name in BY_CLASS:
                by_class[name] = _by_class(row, own, summary)
        drawn = {row.plan(own) for row, own in request.drawn.values()}
        tables = {plan: table for plan, table in digest.summaries.items() if plan in drawn}
        return CaseValues(replace(digest, summaries=tables), values, by_class)


def _by_class(row: Metric, own: Mapping[str, Any], summary: Any) -> tuple[float, ...]:
    assert isinstance(summary.plan, BinPlan)
    sums = summary.table.sums
    tables = [BinTable(sums[..., k : k + 1, :, :]) for k in range(sums.shape[-3])]
    return tuple(float(row.over(table, own)) for table in tables)

"""Sums of what the raters said, per resampling unit: what agreement is a formula over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import MergeError
from raterwise.predictions import Rows
from raterwise.summaries.contract import Metric, Plan, TableSummary
from raterwise.summaries.votes import Votes
from raterwise.types import FloatArray, Options


@dataclass(frozen=True)
class AgreementTable:
    """The sums for Fleiss' kappa and Krippendorff's alpha, with leading axes for resamples."""

    sums: FloatArray
    """(…, 2 + K + K²)."""

    @property
    def classes(self) -> int:
        """K, from 2 + K + K² columns."""
        return int((4 * self.sums.shape[-1] - 7) ** 0.5 - 1) // 2

    @property
    def fleiss(self) -> FloatArray:
        """(…, 2 + K)."""
        return self.sums[..., : 2 + self.classes]

    @property
    def coincidences(self) -> FloatArray:
        """(…, K, K)."""
        k = self.classes
        return self.sums[..., 2 + k :].reshape(*self.sums.shape[:-1], k, k)


@dataclass(frozen=True)
class AgreementPlan(Plan):
    """Sum the agreement of the raters, whatever was predicted."""

    kind: ClassVar[str] = "agreement"

    def takes_votes(self) -> bool:
        """Yes."""
        return True

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> AgreementSums:
        """Return the sums that `arrays()` wrote down."""
        return AgreementSums(self, arrays["sums"])

    def empty(self, num_classes: int, units: int = 1) -> AgreementSums:
        """Return the sums of no cases."""
        return AgreementSums(self, np.zeros((units, 2 + num_classes + num_classes**2)))


@dataclass(frozen=True, eq=False)
class AgreementSums(TableSummary):
    """Agreement sums per unit; `a + b` is the sums of all their cases."""

    plan: AgreementPlan
    sums: FloatArray

    def __add__(self, other: AgreementSums) -> AgreementSums:
        if not isinstance(other, AgreementSums):
            return NotImplemented
        if self.sums.shape != other.sums.shape:
            raise MergeError(
                f"cannot add agreement sums of shapes {self.sums.shape} and {other.sums.shape}: "
                "different classes or resampling units"
            )
        return AgreementSums(self.plan, self.sums + other.sums)

    @property
    def table(self) -> AgreementTable:
        """The sums over all units."""
        return AgreementTable(self.sums.sum(axis=0))

    def nested(self, row: Metric, options: Options) -> FloatArray:
        """Return a metric of the first unit, of the first two, and so on."""
        return np.asarray(row.over(AgreementTable(np.cumsum(self.sums, axis=0)), options))

    def grouped(self, groups: NDArray[Any], number: int) -> AgreementTable:
        """Return the sums of groups of units: `groups` (units,) is the group of each."""
        member = (groups == np.arange(number)[:, None]).astype(np.float64)
        return AgreementTable(member @ self.sums)

    def without_each(self, first: int, last: int) -> AgreementTable:
        """Return the sums of all units but one, leaving out the first … last - 1 in turn."""
        return AgreementTable(self.sums.sum(axis=0) - self.sums[first:last])

    def resampled(self, multiplicities: NDArray[Any]) -> AgreementTable:
        """Return the sums of resamples: `multiplicities` (B, units)."""
        return AgreementTable(multiplicities @ self.sums)

    def absorb_votes(self, votes: Votes) -> None:
        """Add voxels of two classes in place."""
        self.absorb(votes.rows())

    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made these sums and has not shown them yet."""
        from raterwise.kernels import _agreement as kernels

        if rows.counts is None:  # single labels have no pairs
            return
        classes = rows.counts.shape[1]
        weights = np.ones(len(rows.counts)) if rows.weights is None else rows.weights
        unit = np.empty(0, np.int64) if rows.units is None else rows.units
        fleiss = self.sums[:, : 2 + classes]
        kernels.add_fleiss_sums(rows.counts, weights, unit, fleiss)
        pairs = np.zeros((len(self.sums), classes, classes))
        kernels.add_coincidences(rows.counts, weights, unit, pairs)
        self.sums[:, 2 + classes :] += pairs.reshape(len(self.sums), -1)

"""One pass over the cases: its summaries, and the resampled tables that metrics share.

A pass is made of a digest, wherever that came from; a metric on it is a `Measure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError
from raterwise.inference import intervals, noise
from raterwise.inference.draws import multiplicities
from raterwise.inference.raters import RaterDraws
from raterwise.inference.settings import Settings
from raterwise.questions import Question
from raterwise.summaries import BinPlan, DeviationPlan
from raterwise.summaries.digest import Digest
from raterwise.types import Options

FloatArray = NDArray[Any]
Asked = Mapping[str, tuple[Metric, Options]]
"""Metrics by their names, each with its options."""

PAIRS = BinPlan(Question("disagreement", "case"), 1, least_raters=2)
"""The plan of how often two raters differ, and how often the probabilities say so."""
OUTSIDE_STREAM = 7
"""The stream of random numbers that draws cases from elsewhere."""


class Pass:
    """The summaries of one pass, and the stacks of resampled tables that metrics share."""

    def __init__(
        self,
        digest: Digest,
        asked: Asked,
        settings: Settings,
        *,
        rater_draws: RaterDraws | None = None,
    ) -> None:
        """Take the digest of a pass that is over.

        Parameters
        ----------
        digest
            With the summaries that the metrics asked for need: of their plans, or of cells that
            stand for the scores.
        rater_draws
            The summaries of every resample, where raters are resampled.
        """
        self.settings = settings
        self.facts = digest.facts
        self.digest = digest
        self.plans = {
            name: _plan_in(digest, row, row.plan_of(own, settings.on_single))
            for name, (row, own) in asked.items()
        }
        if missing := [name for name, plan in self.plans.items() if plan is None]:
            raise InvalidInputError(
                f"metrics: these were not summarised, or with other options: {', '.join(missing)}"
            )
        self.rater_draws = rater_draws
        self.tables: dict[Any, Any] = {}
        self.stacks: dict[Any, Any] = {}

    @property
    def units(self) -> int | None:
        """How many units are resampled; None where only raters are, or nothing is."""
        if not self.settings.resamples or self.settings.unit == "raters":
            return None
        return len(self.digest.unit_cases)

    @property
    def resampled(self) -> bool:
        """Whether there are resamples to make intervals of."""
        drawn = self.units is not None or self.rater_draws is not None
        return self.settings.resamples > 0 and self.units != 1 and drawn

    @cached_property
    def times(self) -> FloatArray:
        """(resamples, units): how often each resample draws each unit."""
        assert self.units is not None
        return multiplicities(self.units, self.settings.resamples, self.settings.seed)

    @cached_property
    def times_with_outside(self) -> FloatArray:
        """The same beside how often it draws each unit of cases from elsewhere, by itself."""
        number, settings = len(self.digest.outside_cases), self.settings
        outside = multiplicities(number, settings.resamples, settings.seed, OUTSIDE_STREAM)
        return np.hstack((self.times, outside))

    @property
    def raters(self) -> float:
        """Labels per case, on average."""
        return self.facts.raters

    @property
    def cases(self) -> float:
        """How many independent cases of equal weight would carry as much."""
        return self.facts.worth

    @cached_property
    def agreement(self) -> float:
        """How far two raters of a case agree beyond what its probabilities say: 0 … 1.

        1 - observed / predicted disagreement; 1 where no case has two labels, so that nothing is
        taken for granted.
        """
        if self.facts.most < 2 or PAIRS not in self.digest.summaries:
            return 1.0
        table = self.digest.summaries[PAIRS].table
        predicted, observed = float(table.score.sum()), float(table.positive.sum())
        return float(np.clip(1 - observed / predicted, 0, 1)) if predicted > 0 else 1.0

    def agreement_on(self, often: int = 1) -> float:
        """Return how far two raters agree on what is asked, at least as far as on the classes.

        Raters who confuse neighbours only, as on an ordered scale, may differ on the class as often
        as the probabilities say, and less on whether the predicted class is right. With `often`,
        each case is asked about all classes: those on which raters agree most count most.
        """
        held = self.digest.summaries  # the others may be made in turn, when they are asked for
        plan = next((p for p in (DeviationPlan(), DeviationPlan(grouped=True)) if p in held), None)
        if self.facts.classes == 2 or self.facts.most < 2 or plan is None:
            return self.agreement
        table = held[plan].without_units().counted(1.0, 0.0)
        if len(table.weight) < self.facts.classes + 2:  # too many classes to look at each
            return self.agreement
        shared = np.maximum((table.together - table.alone).sum(axis=-1), 0)
        apart = table.apart.sum(axis=-1)
        which = slice(-2) if often > 1 else slice(-2, -1)  # the last is all classes at once
        agreed = np.clip(shared[which] - apart[which], 0, None)
        total = float(agreed.sum())
        seen = np.divide(agreed, shared[which], out=np.zeros(len(agreed)), where=agreed > 0)
        found = float(agreed @ seen) / total if total > 0 else 0.0
        return max(self.agreement, min(found, 1.0))

    def in_turns(self) -> list[list[str]]:
        """Return the metrics in the order in which their tables take the least memory."""
        return self.digest.in_turns(self.plans)

    def let_go(self, metrics: Sequence[str], *, part: bool = False) -> None:
        """Free the tables of metrics that have been judged; with `part`, the least useful."""
        gone = {self.plans[name] for name in metrics}
        for known in (self.tables, self.stacks):
            for key in list(known):
                if (key[1][0] if key[0] == "raters" else key[0]) in gone:
                    del known[key]
        self.digest.let_go(gone, part=part)

    def noise_of_cells(self, table: Any, often: int = 1) -> FloatArray:
        """Return the noise of a calibrated model in cells that hold different cases."""
        share = table.weight / (table.weight.sum() / often)
        score = table.score / np.where(table.weight > 0, table.weight, 1)
        found = intervals.calibrated_noise(
            score, share, self.cases, self.raters, self.agreement_on(often)
        )
        return np.asarray(found / often)

    def noise_of_soft_bins(self, cells: Any) -> FloatArray:
        """Return the same of bins that a Gaussian spreads each score over."""
        from scipy.special import ndtr

        table, edges = cells.table, cells.plan.edges
        centres = (edges[1:] + edges[:-1]) / 2
        shares = np.diff(ndtr((edges - centres[:, None]) / cells.plan.spread), axis=1)
        shares /= shares.sum(axis=1, keepdims=True)
        score = table.score / np.where(table.weight > 0, table.weight, 1)
        about = self.cases, self.raters, self.agreement_on()
        each = [
            noise.soft_noise(z, n, shares, *about) if n.sum() else np.zeros(len(z))
            for z, n in zip(score, table.cases, strict=True)
        ]
        return np.stack(each)

    def noise_of_mixtures(self, table: Any) -> FloatArray:
        """Return the same of bins over which each case is spread in its own way: Σ (w s)² is kept.

        sqrt( z̄_b (1 - z̄_b) Σ_i (w_i s_ib)² / (Σ w)² · (a + (1 - a) / raters) )
        """
        score = table.score / np.where(table.weight > 0, table.weight, 1)
        agreement = self.agreement_on()
        per_case = agreement + (1 - agreement) / self.raters
        part = table.squared_weight / table.weight.sum() ** 2
        return np.asarray(np.sqrt(np.clip(score * (1 - score), 0, None) * part * per_case))


def _plan_in(digest: Digest, row: Metric, plan: Any) -> Any:
    """Return the plan of a metric whose summary the digest has: its own, or one of cells.

    A kernel compares every score with every other: where there are cells, it takes those.
    """
    either = (plan.bounded(), plan) if "kernel" in row.tags else (plan, plan.bounded())
    return next((p for p in either if p in digest.summaries), None)

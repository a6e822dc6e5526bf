"""The questions of `raterwise.questions` for tensors: rows of probabilities become scored cases."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from raterwise.kernels._torch import Reading
from raterwise.questions import (
    MOST_PLACES,
    POWERS_OF_TEN,
    Event,
    PerCaseScore,
    Question,
    sum_digits,
)


class TensorRows(NamedTuple):
    """A chunk of cases, on one device."""

    probs: Tensor
    """(n, K), float32 or float64."""
    reading: Reading
    classes: Tensor | None
    """(n,): the label where every case has exactly one."""
    counts: Tensor | None
    """(n, K): otherwise the label histograms, float64."""
    weights: Tensor | None
    """(n,): case weights; None where all are 1."""

    @property
    def raters(self) -> Tensor | None:
        """(n,): how many raters labelled each case; None where one did."""
        return None if self.counts is None else self.counts.sum(dim=1)

    def with_raters(self, least: int) -> TensorRows:
        """Return the cases that at least `least` raters labelled."""
        if least <= 1:
            return self
        if self.raters is None:
            keep = torch.zeros(len(self.probs), dtype=torch.bool, device=self.probs.device)
        else:
            keep = self.raters >= least
            if bool(keep.all()):
                return self

        columns = {name: getattr(self, name) for name in ("probs", "classes", "counts", "weights")}
        kept = {name: values[keep] for name, values in columns.items() if values is not None}
        reading = Reading(self.reading.confidence[keep], self.reading.predicted[keep], -1)
        return self._replace(reading=reading, **kept)


class Scored(NamedTuple):
    """Scored cases: see `raterwise.questions.ScoredCases`."""

    z: Tensor
    mu: Tensor
    weights: Tensor
    v: Tensor | None
    channel: Tensor | None


def score(
    asked: Question | Event | PerCaseScore, rows: TensorRows, rounding: float = 0.0
) -> Scored:
    """Return the scored cases of a chunk for a question, counted per annotation or per case."""
    raters, question, per = rows.raters, asked.name, asked.per
    z, mu = _event(asked, rows, rounding) if isinstance(asked, Event) else _ask(question, rows)
    weights = rows.weights
    if weights is None:
        weights = torch.ones(len(z), dtype=torch.float64, device=z.device)
    v = None
    if raters is not None and per == "annotation":
        weights = weights * raters
    elif raters is not None and question not in PER_CASE_SCORES and bool((raters >= 2).all()):
        v = mu * (1 - mu) / (raters - 1)[:, None]
    channel = rows.reading.predicted if question == "predicted_class" else None
    return Scored(z, mu, weights, v, channel)


def _ask(question: str, rows: TensorRows) -> tuple[Tensor, Tensor]:
    if question in PER_CASE_SCORES:
        value = PER_CASE_SCORES[question](rows)[:, None]
        return torch.zeros_like(value), value
    if question in ("top_label", "predicted_class"):
        return rows.reading.confidence[:, None], _hits(rows)[:, None]
    if question == "positive":
        return rows.probs[:, 1:2], _frequencies(rows)[:, 1:2]
    if question == "per_class":
        return rows.probs, _frequencies(rows)
    assert question == "disagreement" and rows.counts is not None
    probs, n = rows.probs.double(), rows.counts.sum(dim=1)
    differ = (1 - (probs * probs).sum(dim=1)).clamp(0, 1)
    same = (rows.counts * (rows.counts - 1)).sum(dim=1)
    return differ[:, None], (1 - same / (n * (n - 1)))[:, None]


def _event(asked: Event, rows: TensorRows, rounding: float) -> tuple[Tensor, Tensor]:
    chosen = asked.columns(rows.probs.shape[1])
    z, mu = rows.probs, _frequencies(rows)
    if asked.ordered and rows.probs.shape[1] > 2:
        z, mu = _cumulative(z.double(), rounding), _at_least(mu)
    return z[:, chosen], mu[:, chosen]


def _at_least(values: Tensor) -> Tensor:
    return values.flip(1).cumsum(dim=1).flip(1).clamp(max=1)


def _cumulative(probs: Tensor, rounding: float) -> Tensor:
    """As `raterwise.questions.cumulative`."""
    sums = _at_least(probs)
    place = (sum_digits(rounding) - 1 - sums.log10().floor()).clamp(0, MOST_PLACES)
    scale = torch.from_numpy(POWERS_OF_TEN).to(probs.device)[place.long()]
    rounded = (sums * scale).round() / scale
    unsure = probs.cumsum(dim=1) - probs > 0
    return torch.where(unsure & (rounded >= 1), sums, rounded)


def _hits(rows: TensorRows) -> Tensor:
    predicted = rows.reading.predicted
    if rows.classes is not None:
        return (predicted == rows.classes).double()
    assert rows.counts is not None
    return rows.counts.gather(1, predicted[:, None])[:, 0] / rows.counts.sum(dim=1)


def _frequencies(rows: TensorRows) -> Tensor:
    if rows.classes is not None:
        # Compared, not scattered: a label that is no class, where nobody checks, is none of them.
        own = torch.arange(rows.probs.shape[1], device=rows.probs.device)
        return (rows.classes[:, None] == own).double()
    assert rows.counts is not None
    return rows.counts / rows.counts.sum(dim=1, keepdim=True)


def _log_score(rows: TensorRows) -> Tensor:
    # 0 log 0 is 0: what nobody chose costs nothing.
    return -torch.xlogy(_frequencies(rows), rows.probs.double()).sum(dim=1)


def _ranked_score(rows: TensorRows) -> Tensor:
    observed = _frequencies(rows).cumsum(dim=1)[:, :-1]
    gap = rows.probs.double().cumsum(dim=1)[:, :-1] - observed
    return (gap**2 + observed * (1 - observed)).sum(dim=1)


PER_CASE_SCORES = {"log": _log_score, "ranked": _ranked_score}
"""As `raterwise.questions.PerCaseScore`."""

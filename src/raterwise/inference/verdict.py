"""The verdict: is this model miscalibrated, and how?

One procedure for all that a report shows. With two classes it looks at the positive class (its
mean, the slope on its logit, five bins) and at the mean of the top label; with more, at the top
label and at every class in these ways, and at the probability given to what the raters said. The
smallest of the p-values is judged by what calibrated models get by chance (`evidence.py`), so that
at most 5 % of them are called miscalibrated, however many statistics there are; the statistic that
attains it says how the model is off. docs/verdict.md has the error rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import choose, positive_integer
from raterwise.errors import InvalidInputError
from raterwise.inference.deviations import ALL, TOP, Cases, Features, Statistic
from raterwise.inference.evidence import Evidence, simulated_p_values, step_down
from raterwise.predictions import Predictions

__all__ = ["Counting", "Deviation", "Verdict", "judge"]

FloatArray = NDArray[np.float64]

LEAST = 1e-4
"""A probability of exactly 0 is read as one below this: networks and tables round."""
MOST_DIGITS = 4


@dataclass(frozen=True)
class Deviation:
    """One way in which a model can be off, and whether it is."""

    statistic: str
    """For instance "mean of oedema", "bin 3 of 5 of oedema", "slope of oedema", "top label"."""
    channel: str
    """The class, "top label" or "all classes"."""
    direction: str
    """too often, too rarely, over-confident or under-confident."""
    predicted: float
    observed: float
    """Mean predicted probability and observed frequency of the cases it speaks of."""
    standardised: float
    """In standard errors; positive where the raters said it more often than predicted."""
    p_value: float
    """By itself."""
    adjusted: float
    """For all statistics together (step-down)."""
    sentence: str


@dataclass(frozen=True)
class Counting:
    """Whether it matters that some cases have more raters than others."""

    matters: bool
    p_value: float
    channel: str
    by_annotation: float
    by_case: float
    """Observed minus predicted frequency in the channel that differs most, counted both ways."""
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """The answer, and what it rests on."""

    miscalibrated: bool
    p_value: float
    """Family-wise: how often a calibrated model would look at least as bad."""
    statistic: str
    channel: str
    direction: str
    predicted: float
    observed: float
    sentence: str
    per: str
    significance: float
    design_effect: float
    """By how much several raters of a case and cases of a patient widen this statistic's null."""
    agreement: float
    """How far the raters of a case go together beyond its probabilities: 0 … 1."""
    deviations: tuple[Deviation, ...]
    """All statistics: the positive class first with two classes, the top label first with more."""
    counting: Counting | None = None
    """Where numbers of raters differ: whether that matters."""
    other: Verdict | None = None
    """Where numbers of raters differ: the verdict counted the other way."""

    @property
    def found(self) -> tuple[Deviation, ...]:
        """The significant deviations, the clearest first."""
        clear = [d for d in self.deviations if d.adjusted <= self.significance]
        return tuple(sorted(clear, key=_clearness))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, for JSON."""
        return asdict(self)


def judge(
    predictions: Any,
    labels: Any = None,
    *,
    groups: Any = None,
    weights: Any = None,
    class_names: Sequence[str] | None = None,
    per: str = "annotation",
    significance: float = 0.05,
    simulations: int = 2000,
    seed: int = 0,
) -> Verdict:
    """Say whether a model is miscalibrated, and how.

    Parameters
    ----------
    predictions : Predictions or array of shape (N,) or (N, K)
        Probabilities, or predictions with labels, patients, weights and names.
    labels : Labels or array of shape (N,), optional
        What the raters said; with probabilities only.
    groups, weights, class_names : optional
        The patient of each case, case weights and the names of the classes; with probabilities
        only. Cases of a patient, and raters of a case, need not be independent.
    per : {"annotation", "case"}
        Whether a case counts once per rating or once. Where numbers of raters differ the verdict
        has the other one as well (`other`), and says whether it matters (`counting`).
    significance : float
        How often a calibrated model may be called miscalibrated.
    simulations : int
        How many calibrated models the null is made of.
    seed : int
        Of these.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> read = np.arange(300) % 5 == 0
    >>> judge(np.full(300, 0.42), read.astype(int), class_names=["none", "oedema"]).sentence
    'says *oedema* too often: predicted 42 %, read 20 %'
    """
    choose("per", per, ("annotation", "case"))
    positive_integer("simulations", simulations, least=100)
    positive_integer("seed", seed, least=0)
    if not 0 < significance < 1:
        raise InvalidInputError(f"significance: must be between 0 and 1; got {significance}")
    if not isinstance(predictions, Predictions):
        predictions = Predictions.of(
            predictions, labels, groups=groups, weights=weights, class_names=class_names
        )
    elif not (labels is groups is weights is class_names is None):
        raise InvalidInputError(
            "labels, groups, weights, class_names: belong to the predictions where these are given"
        )
    asked = _Asked(_cases(predictions), _names(predictions), significance, simulations, seed)
    verdict = asked.verdict(per)
    raters = asked.cases.raters
    if raters.min() == raters.max():
        return verdict
    other = asked.verdict("case" if per == "annotation" else "annotation")
    known = {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}
    return Verdict(**{**known, "counting": asked.counting(), "other": other})


def _names(predictions: Predictions) -> tuple[str, ...]:
    return predictions.class_names or tuple(f"class {k}" for k in range(predictions.num_classes))


def _cases(predictions: Predictions) -> Cases:
    """Read and check the predictions, and give exact zeros and ones the benefit of rounding."""
    rows = predictions.read(0, len(predictions))
    counts = predictions.labels.counts.astype(np.float64)
    raters = counts.sum(axis=1)
    weights = np.ones(len(raters)) if rows.weights is None else rows.weights
    probs, observed = rows.probs.astype(np.float64), counts / raters[:, None]
    probs = _within_rounding(probs, observed, weights)
    return Cases(probs, observed, raters, weights, predictions.groups)


def _within_rounding(probs: FloatArray, observed: FloatArray, weights: FloatArray) -> FloatArray:
    """Return probabilities in which 0 and 1 are as near to what was observed as rounding allows.

    A table with two decimals says 0.00 of everything below 0.005; taken literally, a single such
    case that is positive would prove the model wrong.
    """
    slack, probs = max(LEAST, _half_a_digit(probs)), probs.copy()
    for k in range(probs.shape[1]):
        for end in (0.0, 1.0):
            at = probs[:, k] == end
            if at.any():
                off = abs(float(np.average(observed[at, k], weights=weights[at])) - end)
                probs[at, k] = abs(end - min(slack, off))
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


def _half_a_digit(probs: FloatArray) -> float:
    """Return half a unit of the last decimal that the probabilities have; 0 for full precision."""
    inner = probs[(probs > 0) & (probs < 1)]
    for digits in range(1, MOST_DIGITS + 1):
        for looked_at in (inner[:100], inner):  # most tables are told by their first rows
            scaled = looked_at * 10**digits
            if not (np.abs(scaled - np.rint(scaled)) < 1e-3).all():
                break
        else:
            return 0.5 / 10**digits if inner.size else 0.0
    return 0.0


@dataclass(frozen=True, eq=False)
class _Asked:
    """Cases with the settings of a verdict."""

    cases: Cases
    names: tuple[str, ...]
    significance: float
    simulations: int
    seed: int

    def verdict(self, per: str) -> Verdict:
        """Judge the cases, counted per annotation or per case."""
        weights = self._weights(per)
        features = Features.of(self.cases, weights)
        evidence, p, adjusted = self._tested(features, weights)
        scope = ", over all ratings" if per == "annotation" and self.cases.raters.max() > 1 else ""
        t = evidence.standardised
        deviations = tuple(
            self._deviation(statistic, weights, float(t[j]), float(p[j]), float(adjusted[j]), scope)
            for j, statistic in enumerate(features.statistics)
        )
        order = sorted(range(len(p)), key=lambda j: _clearness(deviations[j]))
        lead = order[0]
        found = bool(adjusted[lead] <= self.significance)
        if found and len(self.names) == 2:  # the positive class first
            named = [j for j in order if adjusted[j] <= self.significance]
            lead = next((j for j in named if features.statistics[j].channel != TOP), lead)
        chosen, smallest = deviations[lead], float(adjusted.min())
        sentence = chosen.sentence if found else f"no miscalibration found (p = {smallest:.2g})"
        return Verdict(
            found,
            smallest,
            chosen.statistic,
            chosen.channel,
            chosen.direction,
            chosen.predicted,
            chosen.observed,
            sentence,
            per,
            self.significance,
            float(evidence.widened[lead]),
            evidence.agreement,
            deviations,
        )

    def counting(self) -> Counting:
        """Test whether deviations counted per annotation and per case differ by chance.

        Their difference is a deviation with weights that add to 0: n w / Σ n w - w / Σ w.
        """
        by_annotation, by_case = (self._weights(per) for per in ("annotation", "case"))
        shares = by_annotation / by_annotation.sum(), by_case / by_case.sum()
        features = Features.means(self.cases)
        evidence, p, adjusted = self._tested(features, shares[0] - shares[1])
        lead = min(range(len(p)), key=lambda j: (p[j], -abs(evidence.standardised[j])))
        channel = features.statistics[lead].channel
        z, mu = self.cases.of_channel(channel)
        both = [float(share @ (mu - z)) for share in shares]
        matters = bool(adjusted[lead] <= self.significance)
        sentence = (
            f"observed minus predicted ({self._name(channel)}) is {100 * both[0]:+.1f} points over "
            f"all ratings and {100 * both[1]:+.1f} over all cases: "
            + ("numbers of raters depend on the case" if matters else "a difference as by chance")
        )
        name = self._name(channel)
        return Counting(matters, float(adjusted[lead]), name, both[0], both[1], sentence)

    def _weights(self, per: str) -> FloatArray:
        cases = self.cases
        return cases.weights * cases.raters if per == "annotation" else cases.weights

    def _tested(
        self, features: Features, weights: FloatArray
    ) -> tuple[Evidence, FloatArray, FloatArray]:
        evidence = Evidence.of(self.cases, features, weights)
        p = evidence.p_values()
        by_chance = simulated_p_values(
            self.cases, features, weights, evidence, self.simulations, self.seed
        )
        return evidence, p, step_down(p, by_chance)

    def _name(self, channel: int) -> str:
        return {TOP: "top label", ALL: "all classes"}.get(channel) or self.names[channel]

    def _deviation(
        self, statistic: Statistic, weights: FloatArray, t: float, p: float, adjusted: float,
        scope: str,
    ) -> Deviation:  # fmt: skip
        z, mu = self.cases.of_channel(statistic.channel)
        members = statistic.members(z)
        predicted, observed = _means(z, mu, weights, members)
        rest = _means(z, mu, weights, ~members) if statistic.kind == "slope" else None
        name = self._name(statistic.channel)
        if statistic.kind in ("mean", "bin") and statistic.channel >= 0:
            direction = "too often" if t < 0 else "too rarely"
        else:
            direction = "over-confident" if t < 0 else "under-confident"
        words = _sentence(statistic, name, direction, (predicted, observed), rest)
        return Deviation(
            _title(statistic, name),
            name,
            direction,
            predicted,
            observed,
            t,
            p,
            adjusted,
            words + scope,
        )


def _clearness(deviation: Deviation) -> tuple[float, float, float]:
    return deviation.adjusted, deviation.p_value, -abs(deviation.standardised)


def _means(
    z: FloatArray, mu: FloatArray, weights: FloatArray, rows: NDArray[np.bool_]
) -> tuple[float, float]:
    if not rows.any():  # all on one side of a slope
        rows = np.ones(len(z), bool)
    total = weights[rows].sum()
    return float(weights[rows] @ z[rows] / total), float(weights[rows] @ mu[rows] / total)


def _title(statistic: Statistic, name: str) -> str:
    if statistic.kind == "sharpness":
        return "probability of what was read"
    if statistic.kind == "bin":
        return f"bin {statistic.number} of {statistic.bins} of {name}"
    return f"{statistic.kind} of {name}"


def _sentence(
    statistic: Statistic,
    name: str,
    direction: str,
    means: tuple[float, float],
    rest: tuple[float, float] | None,
) -> str:
    """Say which way and by how much, in the words of the field."""
    predicted, observed = percentages(*means)
    about = "its answer" if statistic.channel == TOP else f"*{name}*"
    if statistic.kind == "sharpness":
        return f"{direction}: expects to give {predicted} to what is read, gives {observed}"
    if rest is not None:
        less, fewer = percentages(*rest)
        return (
            f"{direction} about {about}: predicted {predicted} where {observed} is read, "
            f"{less} where {fewer} is"
        )
    where = ""
    if statistic.kind == "bin":
        low, high = percentages(statistic.low, statistic.high)
        where = f" where it says {low} to {high}"
    if statistic.channel == TOP:
        return f"{direction}{where}: predicted {predicted}, right {observed}"
    return f"says *{name}* {direction}{where}: predicted {predicted}, read {observed}"


def percentages(first: float, second: float) -> tuple[str, str]:
    """Return two frequencies with as many decimals as it takes to see that they differ.

    >>> percentages(0.42, 0.2), percentages(0.0131, 0.0129)
    (('42 %', '20 %'), ('1.31 %', '1.29 %'))
    """
    for decimals in range(1 if 0 < min(first, second) < 0.02 else 0, 5):
        texts = f"{100 * first:.{decimals}f} %", f"{100 * second:.{decimals}f} %"
        if first == second or abs(first - second) > 1.5 * 10.0 ** -(2 + decimals):
            break
    return texts

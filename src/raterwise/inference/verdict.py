"""The verdict: is this model miscalibrated, and how?

One procedure for all that a report shows. With two classes it looks at the positive class (its
mean, the slope on its logit, five bins) and at the mean of the top label; with more, at the top
label and at every class in these ways, and at the probability given to what the raters said. The
smallest of the p-values is judged by what calibrated models get by chance (`evidence.py`), so that
at most 5% of them are called miscalibrated, however many statistics there are; the statistic that
attains it says how the model is off. docs/verdict.md has the error rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.inference.deviations import ALL, TOP, Statistic, channels_of
from raterwise.inference.evidence import Evidence, adjusted_p_values, simulated_p_values
from raterwise.summaries import DeviationSums, DeviationTable

SIGNIFICANCE = 0.05
"""How often a calibrated model may be called miscalibrated."""


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
        """Return plain numbers and words, for JSON.

        Numbers have nine digits: parts that are added up in another order differ beyond them.
        """
        plain: dict[str, Any] = _rounded(asdict(self))
        return plain


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@dataclass(frozen=True)
class About:
    """What a verdict knows of the cases beside their sums."""

    classes: int
    class_names: tuple[str, ...] | None
    fewest: int
    """Raters of the case that has the fewest."""
    most: int
    patients: int | None = None
    """How many, where cases of one patient go together; images are patients to their voxels."""
    by_class: bool = False
    """Whether every label weighs what its class does."""

    def name(self, channel: int) -> str:
        """Return what a channel is called."""
        if channel < 0:
            return {TOP: "top label", ALL: "all classes"}[channel]
        return self.class_names[channel] if self.class_names else f"class {channel}"


def judge_sums(
    sums: DeviationSums,
    about: About,
    per: str = "annotation",
    simulations: int = 1000,
    seed: int = 0,
) -> Verdict:
    """Return the verdict on the sums of some cases, wherever these are.

    `simulations` calibrated models are what the null is made of. Where numbers of raters differ,
    the verdict has the one that counts the other way, and says whether it matters (`counting`).
    """
    asked = _Asked(sums, about, simulations, seed)
    verdict = asked.verdict(per)
    if about.fewest == about.most:
        return verdict
    other = asked.verdict("case" if per == "annotation" else "annotation")
    return replace(verdict, counting=asked.counting(), other=other)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Sums with the settings of a verdict."""

    sums: DeviationSums
    about: About
    simulations: int
    seed: int

    def table(self, per: str) -> DeviationTable:
        """Return the sums counted per annotation or per case."""
        return self.sums.counted(1.0, 0.0) if per == "annotation" else self.sums.counted(0.0, 1.0)

    def verdict(self, per: str) -> Verdict:
        """Judge the cases, counted per annotation or per case."""
        table = self.table(per)
        channels = channels_of(table, self.about.classes)
        evidence = Evidence.of(table, channels, patients=self.about.patients)
        p = evidence.p_values()
        chance = simulated_p_values(
            table, channels, evidence, self.simulations, self.seed, by_class=self.about.by_class
        )
        adjusted, t = adjusted_p_values(p, chance), evidence.standardised
        several = per == "annotation" and self.about.fewest != self.about.most
        scope = ", counting every rating" if several else ""
        listed = [(c.place, s) for c in channels for s in c.statistics]
        deviations = tuple(
            self._deviation(table, *one, float(t[j]), float(p[j]), float(adjusted[j]), scope)
            for j, one in enumerate(listed)
        )
        order = sorted(range(len(p)), key=lambda j: _clearness(deviations[j]))
        lead = order[0]
        found = bool(adjusted[lead] <= SIGNIFICANCE)
        if found and self.about.classes == 2:  # the positive class first
            named = [j for j in order if adjusted[j] <= SIGNIFICANCE]
            lead = next((j for j in named if listed[j][1].channel != TOP), lead)
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
            SIGNIFICANCE,
            float(evidence.widened[lead]),
            evidence.agreement,
            deviations,
        )

    def counting(self) -> Counting:
        """Test whether deviations counted per annotation and per case differ by chance.

        Their difference is a deviation with weights that add to 0: n w / Σ n w - w / Σ w.
        """
        tables = [self.table(per) for per in ("annotation", "case")]
        whole = [float(table.weight[0].sum()) for table in tables]
        all_channels = channels_of(tables[0], self.about.classes)
        channels = [c for one in all_channels if (c := one.only(("mean",))).statistics]
        known = Evidence.of(tables[0], channels, patients=None).agreement
        table = self.sums.counted(1 / whole[0], -1 / whole[1])
        # Whether the model is calibrated is another question: its deviations vary as they do.
        patients = self.about.patients
        null = Evidence.of(table, channels, patients=patients, agreement=known)
        evidence = Evidence.of(table, channels, patients=patients, agreement=known, scattered=True)
        p = evidence.p_values()
        chance = simulated_p_values(
            table, channels, null, self.simulations, self.seed, as_labels=False
        )
        adjusted = adjusted_p_values(p, chance)
        lead = min(range(len(p)), key=lambda j: (p[j], -abs(evidence.standardised[j])))
        place, statistic = [(c.place, s) for c in channels for s in c.statistics][lead]
        both = [
            float(t.deviation[place] @ statistic.coefficients) / n
            for t, n in zip(tables, whole, strict=True)
        ]
        matters = bool(adjusted[lead] <= SIGNIFICANCE)
        name, told = self.about.name(statistic.channel), _told_apart(both)
        what = f"“{name}”" if statistic.channel >= 0 else f"the {name}"
        sentence = (
            f"for {what}, observed minus predicted is {told[0]} percentage points if every rating "
            f"counts once and {told[1]} if every case does: "
            + ("the number of raters depends on the case" if matters else "no more than chance")
        )
        return Counting(matters, float(adjusted[lead]), name, both[0], both[1], sentence)

    def _deviation(
        self, table: DeviationTable, place: int, statistic: Statistic, t: float, p: float,
        adjusted: float, scope: str,
    ) -> Deviation:  # fmt: skip
        flipped = None
        if self.about.classes == 2 and statistic.channel == TOP:
            flipped = statistic.coefficients < 0
        means = _means(table, place, statistic.members, flipped)
        rest = _means(table, place, ~statistic.members) if statistic.kind == "slope" else None
        name = self.about.name(statistic.channel)
        if statistic.kind in ("mean", "bin") and statistic.channel >= 0:
            direction = "too often" if t < 0 else "too rarely"
        else:
            direction = "over-confident" if t < 0 else "under-confident"
        ends = _ends(table, statistic)
        words = _sentence(statistic, name, direction, means, rest, ends)
        return Deviation(
            _title(statistic, name), name, direction, *means, t, p, adjusted, words + scope
        )


def _clearness(deviation: Deviation) -> tuple[float, float, float]:
    return deviation.adjusted, deviation.p_value, -abs(deviation.standardised)


def _means(
    table: DeviationTable,
    place: int,
    cells: NDArray[np.bool_],
    flipped: NDArray[np.bool_] | None = None,
) -> tuple[float, float]:
    """Return the mean predicted and observed frequency over some cells.

    In `flipped` cells the other of two classes is meant.
    """
    weight, sums = table.weight[place], (table.predicted[place], table.observed[place])
    total = float(weight @ cells)
    if not total:  # all on one side of a slope
        cells, total = np.ones(len(cells), bool), float(weight.sum())
    if flipped is not None:
        sums = (
            np.where(flipped, weight - sums[0], sums[0]),
            np.where(flipped, weight - sums[1], sums[1]),
        )
    return float(sums[0] @ cells) / total, float(sums[1] @ cells) / total


def _ends(table: DeviationTable, statistic: Statistic) -> tuple[float, float]:
    """Return between which probabilities the cases of a bin lie."""
    cells = np.flatnonzero(statistic.members)
    if not len(cells):
        return 0.0, 1.0
    return float(table.edges[cells[0]]), float(table.edges[cells[-1] + 1])


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
    ends: tuple[float, float],
) -> str:
    """Say which way and by how much, in the words of the field."""
    predicted, observed = percentages(*means)
    if statistic.kind == "sharpness":
        return (
            f"{direction}: on average it gives the class that a rater chose a probability of "
            f"{observed}; a calibrated model would give it {predicted}"
        )
    if rest is not None:
        about = "" if statistic.channel == TOP else f" about *{name}*"
        seen = "it is right" if statistic.channel == TOP else "raters say so"
        less, fewer = percentages(*rest)
        return (
            f"{direction}{about}: where it predicts {predicted}, {seen} {observed} of the time; "
            f"where it predicts {less}, {fewer} of the time"
        )
    where = ""
    if statistic.kind == "bin":
        low, high = percentages(*ends)
        where = f" where it predicts {low} to {high}"
    if statistic.channel == TOP:
        return f"{direction}{where}: {predicted} sure on average and right {observed} of the time"
    mean = f"on average {predicted}" if where else f"it predicts {predicted} on average"
    return f"says *{name}* {direction}{where}: {mean}; raters say so {observed} of the time"


def percentages(first: float, second: float) -> tuple[str, str]:
    """Return two frequencies with as many decimals as it takes to see that they differ.

    >>> percentages(0.42, 0.2), percentages(0.0131, 0.0129)
    (('42%', '20%'), ('1.31%', '1.29%'))
    """
    for decimals in range(1 if 0 < min(first, second) < 0.02 else 0, 5):
        texts = f"{first:.{decimals}%}", f"{second:.{decimals}%}"
        if first == second or abs(first - second) > 1.5 * 10.0 ** -(2 + decimals):
            break
    return texts


def _told_apart(gaps: Sequence[float]) -> list[str]:
    """Return gaps in percentage points, with as many digits as tell them apart, up to three.

    >>> _told_apart([0.031, -0.012]), _told_apart([0.0051, 0.0047])
    (['+3.1', '-1.2'], ['+0.51', '+0.47'])
    """
    for digits in (1, 2, 3):
        told = [f"{100 * gap:+.{digits}f}" for gap in gaps]
        if len(set(told)) > 1:
            break
    return told

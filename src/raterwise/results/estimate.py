"""The value of one metric with its interval, on all cases and in each level of a variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raterwise.errors import UndefinedMetricError
from raterwise.rules import did_you_mean

NUMBERS = ("value", "low", "high", "debiased", "bound", "p_value", "std", "undefined")
"""The fields that a console shows of an estimate."""


@dataclass(frozen=True, repr=False)
class Estimate:
    """The value of one metric with its interval, or the reason why it has none.

    Parameters
    ----------
    name : str
        Name of the metric.
    value : float or None
        None if the metric is undefined.
    low, high : float, default None
        The ends of the interval; None without resamples.
    debiased : float, default None
        The median-unbiased value, for errors whose plain value is biased upwards.
    bound : float, default None
        How far the value may be from the exact one, if it is an approximation. For ICI, E50 and E90
        the bound is empirical, from many sets of scores, and not proven.
    undefined : str, default None
        Why there is no value.
    dropped : int, default 0
        Number of cases left out for this metric.
    title, group, meaning, reference : str, default ""
        Its display name, the group it is shown in, its meaning, and its reference.
    direction : {"lower", "higher", "none"}, default "none"
        Which values are better.
    std : float, default None
        Standard deviation over images, if the value is their mean.
    rater_share : float, default None
        The share of the variance that is between raters, if both cases and raters are resampled.
    defined : int, default None
        Number of images with a value, over which the mean is taken.
    p_value : float, default None
        For a calibration error: how often a calibrated model shows an error this large by chance.
        With a 95% interval, it is at most 0.05 exactly if the interval excludes 0. For a metric
        that is a test statistic: the p-value of the test.

    See Also
    --------
    Results : the estimates by name.

    Examples
    --------
    >>> import raterwise as rw
    >>> found = rw.evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], "accuracy", resamples=0)["accuracy"]
    >>> found.value, float(found), found.direction
    (0.75, 0.75, 'higher')
    >>> print(found)
    Accuracy: 0.7500
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    debiased: float | None = None
    bound: float | None = None
    undefined: str | None = None
    dropped: int = 0
    title: str = ""
    group: str = ""
    meaning: str = ""
    direction: str = "none"
    reference: str = ""
    std: float | None = None
    rater_share: float | None = None
    defined: int | None = None
    p_value: float | None = None

    @property
    def less_chance(self) -> float | None:
        """The value without the part that chance adds to an error; of other metrics, the value."""
        return self.value if self.debiased is None else self.debiased

    def __float__(self) -> float:
        if self.value is None:
            raise UndefinedMetricError(f"{self.name}: undefined, {self.undefined}")
        return float(self.value)

    def __repr__(self) -> str:
        """Return the numbers with every digit; what metrics mean is not told again."""
        shown = {name: getattr(self, name) for name in NUMBERS}
        told = [f"{name}={value!r}" for name, value in shown.items() if value is not None]
        return f"Estimate({', '.join((repr(self.name), *told))})"

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.title}: undefined ({self.undefined})"
        tested = "" if self.p_value is None else f", p = {self.p_value:.2g}"
        if self.low is None or self.high is None:
            return f"{self.title}: {self.value:.4f}{tested}"
        return f"{self.title}: {self.value:.4f} [{self.low:.4f}, {self.high:.4f}]{tested}"


@dataclass(frozen=True)
class LevelDifference:
    """One metric of the cases of a level minus that of all other cases, both less chance.

    Parameters
    ----------
    metric : str
        Name of the metric.
    difference : float
        The value of the level minus that of all other cases.
    low, high : float, default None
        The ends of its interval.
    p_value : float, default None
        Two-sided, of no difference: below 1 - level where 0 is outside the interval.
    adjusted_p_value : float, default None
        Adjusted over all levels of the variable and all metrics, by permuting levels.
    """

    metric: str
    difference: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    adjusted_p_value: float | None = None


@dataclass(frozen=True)
class Subgroup:
    """The cases of one level of a variable: metrics within it, and how it differs from the rest.

    Parameters
    ----------
    variable, level : str
        What tells the cases apart, and its value.
    cases : int
        How many there are.
    patients : int or None
        How many patients they are of, where that is known.
    estimates : mapping of str to Estimate
        By metric, its value in the level.
    differences : mapping of str to LevelDifference
        By metric, how the level differs from all other cases.
    """

    variable: str
    level: str
    cases: int
    patients: int | None
    estimates: Mapping[str, Estimate]
    differences: Mapping[str, LevelDifference]

    def __getitem__(self, name: str) -> Estimate:
        try:
            return self.estimates[name]
        except KeyError:
            meant, known = did_you_mean(name, self.estimates), ", ".join(self.estimates)
            raise KeyError(f"no metric {name!r} in this level{meant}; there are: {known}") from None

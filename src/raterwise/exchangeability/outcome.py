"""What the test of interchangeable raters found, and how it is said."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from raterwise.brief import brief
from raterwise.rules import p_in_words


def largest_of(excess: Mapping[Any, float]) -> tuple[Any, float]:
    """Return the class with the largest excess, either way; of two classes, the second.

    >>> largest_of({"no": 0.2, "yes": -0.2}), largest_of({"a": 0.1, "b": 0.2, "c": -0.3})
    (('yes', -0.2), ('c', -0.3))
    """
    classes = list(excess.items())
    return classes[1] if len(classes) == 2 else max(classes, key=lambda item: abs(item[1]))


@dataclass(frozen=True)
class RaterDeviation:
    """How one rater compares with the other raters of the same cases.

    Attributes
    ----------
    rater_id : hashable
        The rater, as the labels name it.
    ratings : int
        How many of the rater's labels are on cases that another rater labelled too.
    statistic : float
        dᵀ V⁺ d, where d are the deviations in `excess` times `ratings` and V is their covariance
        under permutation: roughly χ² with K - 1 degrees of freedom for a rater like the others.
    p_value : float
        The p-value of this rater's deviation alone, not adjusted for the number of raters.
    adjusted_p_value : float
        Adjusted for the number of raters; never below `p_value`, nor below that of all raters
        together.
    excess : dict
        For each class, how much more often this rater gives it than the others on the same cases,
        as a signed fraction: 0.1 is 10 percentage points more often. NaN if nobody else labelled
        any of the rater's cases. This contrast is what is tested.
    breaks : bool
        Whether the rater stands out: `adjusted_p_value` is at most the significance.

    See Also
    --------
    exchangeability_test : returns them.

    Examples
    --------
    >>> import raterwise as rw
    >>> ratings = [[i % 2, (i // 2) % 2, (i // 4) % 2, 1] for i in range(40)]
    >>> rater = rw.exchangeability_test(rw.Labels.from_ratings(ratings, num_classes=2)).raters[3]
    >>> rater.ratings, rater.largest, rater.breaks
    (40, (1, 0.5), True)
    """

    rater_id: Hashable
    ratings: int
    statistic: float
    p_value: float
    adjusted_p_value: float
    excess: dict[Hashable, float]
    breaks: bool

    @property
    def largest(self) -> tuple[Hashable, float]:
        """The class this rater differs on most, and its excess; of two classes, the second."""
        return largest_of(self.excess)

    def __str__(self) -> str:
        if self.ratings == 0:
            return f"Rater {self.rater_id!r} shares no case with another rater."
        klass, most = self.largest
        way = "more" if most > 0 else "less"
        return (
            f"Rater {self.rater_id!r} gives class {klass!r} {way} often than the other raters of "
            f"the same {self.ratings:,} cases: {100 * most:+.1f} percentage points "
            f"(adjusted {p_in_words(self.adjusted_p_value)})."
        )


@dataclass(frozen=True)
class ExchangeabilityTest:
    """The outcome of `exchangeability_test`.

    Attributes
    ----------
    statistic : float
        (R-1)/R Σ_r of the raters' statistics. With complete ratings and no patients it is the
        generalised Cochran-Mantel-Haenszel statistic (two classes: Cochran's Q; two raters:
        Stuart-Maxwell).
    p_value : float
        The p-value of all raters together.
    raters : tuple of RaterDeviation
        Each rater against the others, in the order of the labels.
    significance : float
        The largest p-value that counts as a difference.
    permutations : int
        How many random permutations were used for the p-values.
    cases : int
        How many cases have two labels or more.
    divided_cases : int
        On how many of them the labels differ; the others say nothing about the raters.
    patients : int or None
        How many patients these cases belong to; None when `groups` was not given.
    uneven_patients : int
        In how many of them raters who disagree labelled different cases, so that a random sign
        takes part.
    rest_p_value : float or None
        The p-value of the other raters together without the most deviant one; None if no rater
        stands out, or if fewer than three can be tested.
    arbiters : tuple
        Raters who seem to have been asked only where the others differ. They are not compared.

    See Also
    --------
    exchangeability_test : the test, its null hypothesis and an example.

    Examples
    --------
    >>> import raterwise as rw
    >>> ratings = [[0, 1, 1], [1, 0, 1], [1, 1, 0]] * 10
    >>> test = rw.exchangeability_test(rw.Labels.from_ratings(ratings, num_classes=2))
    >>> print(test)
    The raters look interchangeable (p = 1; their labels differ on 30 of 30 shared cases).
    """

    __repr__ = brief

    statistic: float
    p_value: float
    raters: tuple[RaterDeviation, ...]
    significance: float
    permutations: int
    cases: int
    divided_cases: int
    patients: int | None = None
    uneven_patients: int = 0
    rest_p_value: float | None = None
    arbiters: tuple[Hashable, ...] = ()

    @property
    def breaking(self) -> tuple[Hashable, ...]:
        """The raters that stand out, the most deviant first."""
        return tuple(rater.rater_id for rater in self._named())

    def _named(self) -> list[RaterDeviation]:
        named = [rater for rater in self.raters if rater.breaks]
        return sorted(named, key=lambda r: (r.adjusted_p_value, r.p_value, -r.statistic))

    def summary(self) -> str:
        """Return the outcome in a few sentences, the most deviant rater first.

        Returns
        -------
        str
            One sentence for the panel, one for each rater that stands out, one for the rest.

        Examples
        --------
        >>> import raterwise as rw
        >>> ratings = [[i % 2, (i // 2) % 2, (i // 4) % 2, 1] for i in range(40)]
        >>> test = rw.exchangeability_test(rw.Labels.from_ratings(ratings, num_classes=2))
        >>> print(test.summary())
        The raters are not interchangeable (p < 0.001; their labels differ on 35 of 40 ...
        Rater 3 gives class 1 more often than the other raters of the same 40 cases: +50.0 ...
        Without rater 3 the others look alike (p = 1).
        """
        differ = self.p_value <= self.significance
        verdict = "are not interchangeable" if differ else "look interchangeable"
        of = "" if self.patients is None else f" of {self.patients:,} patients"
        lines = [
            f"The raters {verdict} ({p_in_words(self.p_value)}; their labels differ on "
            f"{self.divided_cases:,} of {self.cases:,} shared cases{of})."
        ]
        named = self._named() if differ else []
        if differ:
            lines += [str(rater) for rater in named] or ["No single rater stands out."]
        if named and self.rest_p_value is not None:
            rest = "still differ" if self.rest_p_value <= self.significance else "look alike"
            lines.append(
                f"Without rater {named[0].rater_id!r} the others {rest} "
                f"({p_in_words(self.rest_p_value)})."
            )
        return "\n".join((*lines, *self.left_out()))

    def left_out(self) -> list[str]:
        """Return a sentence for each rater who is not compared.

        Returns
        -------
        list of str
            Empty where all raters are compared.

        Examples
        --------
        >>> import raterwise as rw
        >>> ratings = [[0, 0, -1], [1, 1, -1], [0, 1, 1], [1, 0, 1]] * 20
        >>> rw.exchangeability_test(rw.Labels.from_ratings(ratings, num_classes=2)).left_out()
        ['Rater 2 seems to have been asked only where the others differ, and is not compared.']
        """
        why = "seems to have been asked only where the others differ, and is not compared."
        return [f"Rater {rater!r} {why}" for rater in self.arbiters]

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; raters and classes are named by text.

        Returns
        -------
        dict
            The attributes by name, `raters` as a list of dicts.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_ratings([[0, 1, 1], [1, 0, 1], [1, 1, 0]] * 10, num_classes=2)
        >>> rw.exchangeability_test(labels).to_dict()["cases"]
        30
        """
        content = asdict(self)
        for rater in content["raters"]:
            rater["rater_id"] = str(rater["rater_id"])
            rater["excess"] = {str(name): value for name, value in rater["excess"].items()}
        arbiters = [str(rater_id) for rater_id in self.arbiters]
        return {**content, "raters": list(content["raters"]), "arbiters": arbiters}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild the outcome from the output of `to_dict`.

        Parameters
        ----------
        content : mapping
            What `to_dict` returned, now or in version 0.1, which called the significance `level`.

        Returns
        -------
        ExchangeabilityTest
            The outcome; raters and classes are named by text.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_ratings([[0, 1, 1], [1, 0, 1], [1, 1, 0]] * 10, num_classes=2)
        >>> test = rw.exchangeability_test(labels)
        >>> rw.ExchangeabilityTest.from_dict(test.to_dict()).p_value == test.p_value
        True
        """
        raters = tuple(RaterDeviation(**rater) for rater in content["raters"])
        renamed = {"significance" if key == "level" else key: v for key, v in content.items()}
        arbiters = tuple(content.get("arbiters", ()))
        return cls(**{**renamed, "raters": raters, "arbiters": arbiters})

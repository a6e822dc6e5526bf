"""What readers as a yardstick found, and how it is said."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

Ends = tuple[float, float, float]
"""Value, low, high."""


@dataclass(frozen=True)
class Yardstick:
    """One metric of a reader and of the model against the other readers of the same cases.

    Attributes
    ----------
    metric, title, direction : str
        Name and title of the metric, and whether "higher" or "lower" is better.
    reader, model, difference : tuple of float
        Value, low and high: the mean over readers, weighted by their readings; the model on the
        same cases against the same labels; the model minus the reader.

    See Also
    --------
    against_readers : returns it.

    Examples
    --------
    >>> import raterwise as rw
    >>> reads = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 5
    >>> labels = rw.Labels.from_ratings(reads, num_classes=2)
    >>> found = rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels)
    >>> found.metrics["accuracy"].title
    'Accuracy'
    """

    metric: str
    title: str
    direction: str
    reader: Ends
    model: Ends
    difference: Ends


@dataclass(frozen=True)
class Reader:
    """One rater, and the model, against the other raters of the same cases.

    Attributes
    ----------
    rater : hashable
        The rater's name in the labels.
    cases : int
        How many of the rater's cases another rater rated too.
    reader, model : dict of str to float
        By metric; None where it is undefined on these cases.

    See Also
    --------
    against_readers : returns it.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
    >>> rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels).readers[0].reader["accuracy"]
    0.75
    """

    rater: Hashable
    cases: int
    reader: dict[str, float | None]
    model: dict[str, float | None]


@dataclass(frozen=True)
class AgainstReaders:
    """The model compared with the readers, each evaluated against the other readers.

    Attributes
    ----------
    metrics : dict of str to Yardstick
        By the metric's name.
    readers : tuple of Reader
        Each rater that shares enough cases.
    level : float
        Confidence level of the intervals, over patients (or cases) and for these readers.

    See Also
    --------
    against_readers : returns it.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
    >>> found = rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels)
    >>> [reader.cases for reader in found.readers]
    [20, 20]
    """

    metrics: dict[str, Yardstick]
    readers: tuple[Reader, ...]
    level: float

    def sentence(self) -> str:
        """Return in words whether the model differs from a reader as much as readers do.

        Returns
        -------
        str
            A few sentences about agreement, "" without the accuracy among the metrics.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
        >>> print(rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels).sentence())
        Two readers of a case agree 75.0% [...] of the time; the model and a reader ...
        """
        if "accuracy" not in self.metrics:
            return ""
        found = self.metrics["accuracy"]
        gap, low, high = (100 * x for x in found.difference)
        if low > 0:
            verdict = "The model differs from a reader less than readers differ from each other."
        elif high < 0:
            verdict = "The model differs from a reader more than readers differ from each other."
        else:
            verdict = (
                "The model differs from a reader about as often as readers differ from each "
                f"other; a difference of up to {max(-low, high):.1f} points cannot be ruled out."
            )
        verdict += self._otherwise()
        return (
            f"Two readers of a case agree {_percent(found.reader)} of the time; the model and a "
            f"reader agree {_percent(found.model)} of the time on the same cases: {gap:+.1f} "
            f"points [{low:+.1f}, {high:+.1f}]. {verdict}"
        )

    def _otherwise(self) -> str:
        """Return in which other metrics the model and a reader differ beyond chance."""
        said = []
        for found in self.metrics.values():
            gap, low, high = found.difference
            if found.metric != "accuracy" and (low > 0 or high < 0):
                way = "higher" if gap > 0 else "lower"
                ends = f"[{100 * low:+.1f}, {100 * high:+.1f}]"
                said.append(f"{found.title.lower()} is {100 * abs(gap):.1f} points {way} {ends}")
        if not said:
            return ""
        return f" Its {' and its '.join(said)} than a reader's."

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values.

        Returns
        -------
        dict
            Values that JSON can hold.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
        >>> sorted(rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels).to_dict())
        ['level', 'metrics', 'readers', 'sentence']
        """
        return {
            "metrics": {name: asdict(found) for name, found in self.metrics.items()},
            "readers": [{**asdict(one), "rater": str(one.rater)} for one in self.readers],
            "level": self.level,
            "sentence": self.sentence(),
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> AgainstReaders:
        """Rebuild the comparison from the output of `to_dict`.

        Parameters
        ----------
        content : mapping
            What `to_dict` returned.

        Returns
        -------
        AgainstReaders
            The same comparison; raters are named by text.

        Examples
        --------
        >>> import raterwise as rw
        >>> labels = rw.Labels.from_ratings([[0, 0], [1, 1], [0, 1], [1, 1]] * 5, num_classes=2)
        >>> found = rw.against_readers([0.2, 0.9, 0.1, 0.6] * 5, labels)
        >>> AgainstReaders.from_dict(found.to_dict()).sentence() == found.sentence()
        True
        """
        ends = ("reader", "model", "difference")
        metrics = {
            name: Yardstick(**{**one, **{key: tuple(one[key]) for key in ends}})
            for name, one in content["metrics"].items()
        }
        readers = tuple(Reader(**one) for one in content["readers"])
        return AgainstReaders(metrics, readers, content["level"])


def _percent(ends: Ends) -> str:
    value, low, high = (100 * x for x in ends)
    return f"{value:.1f}% [{low:.1f}, {high:.1f}]"

"""How intervals are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.rules import between_zero_and_one, choose, positive_integer

Progress = Callable[[str, float], None]
"""Called with a description and the fraction done."""

UNITS = ("cases", "raters", "both")
"""What may be resampled."""
MOST_RESAMPLES = 10_000_000
LEAST_LEVEL, MOST_LEVEL = 1e-6, 1 - 1e-9
"""Beyond them, quantiles of intervals are no numbers."""


def silent(what: str, done: float) -> None:
    """Report no progress."""


def reporting(progress: Progress | None) -> Progress:
    """Return what to report progress to: nobody where it is None."""
    if progress is None:
        return silent
    if not callable(progress):
        raise InvalidTypeError(
            "progress: must be a function of a description and of the fraction done; "
            f"got {progress!r:.80}"
        )
    return progress


def within(progress: Progress | None, begin: float, end: float, title: str = "") -> Progress:
    """Return the progress of a part of the work, from `begin` to `end` of the whole."""
    report, before = reporting(progress), f"{title}: " if title else ""
    return lambda what, done: report(f"{before}{what}", begin + (end - begin) * done)


@dataclass(frozen=True)
class Settings:
    """How intervals are made."""

    resamples: int = 1000
    level: float = 0.95
    seed: int = 0
    unit: str = "cases"
    """What is resampled: "cases" (patients, where they are known), "raters", or "both"."""
    interval: str = "auto"
    on_single: str = "error"
    threads: int | None = None

    @property
    def draws_raters(self) -> bool:
        """Whether raters are resampled, with or without the cases."""
        return self.resamples > 0 and self.unit != "cases"

    def __post_init__(self) -> None:
        positive_integer("resamples", self.resamples, least=0, most=MOST_RESAMPLES)
        positive_integer("seed", self.seed, least=0)
        choose("unit", self.unit, UNITS)
        choose("interval", self.interval, ("auto", "percentile", "bias_corrected"))
        choose("on_single", self.on_single, ("error", "drop"))
        if not LEAST_LEVEL <= between_zero_and_one("level", self.level) <= MOST_LEVEL:
            raise InvalidInputError(
                f"level: must be at least 1e-6 and at most 1 - 1e-9; got {self.level!r}"
            )
        if self.threads is not None:
            positive_integer("threads", self.threads)
        if self.resamples == 1:
            raise InvalidInputError("resamples: must be 0 (no intervals) or at least 2; got 1")

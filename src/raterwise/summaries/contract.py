"""The contract of summaries: what every plan and every summary can do.

A *plan* says what to keep of the cases; equal plans share one summary. A *summary* is a mergeable
table: besides what `Summary` does, `a + b` is that of the cases of both, and those that metrics are
made of have `value(row, options)`, `nested` (of the first resampling unit, of the first two, and so
on), `units` (what each unit adds) and `with_units`. Nobody outside this package asks which kind a
summary is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidTypeError
from raterwise.predictions import Predictions, Rows
from raterwise.summaries.votes import Votes, asked_of_two
from raterwise.types import Options


class Metric(Protocol):
    """What a summary needs to know of a metric to give its value: parts of a catalog row."""

    @property
    def prepare(self) -> Callable[..., Any]:
        """From the summary to the table that the formula is over."""

    @property
    def exact(self) -> Callable[[Any, Options], tuple[float, float | None]] | None:
        """The value of sorted scores, where the table for the interval is coarser."""

    @property
    def growing(self) -> Callable[[Any, Options], NDArray[Any] | None] | None:
        """The values of sorted scores on all growing parts at once, or None if it cannot."""

    @property
    def of_cells(self) -> Callable[[Any, Options], tuple[float, float | None]] | None:
        """The value where cells stand for scores, with a bound on its error."""

    def over(self, table: Any, options: Options) -> NDArray[Any]:
        """Return the formula over a table or a stack of tables."""


class Plan(ABC):
    """What to keep of the cases; unless told otherwise, a table whose size they do not change."""

    kind: ClassVar[str]
    grows: ClassVar[bool] = False
    """Whether the summary keeps whole rows."""
    by_units: ClassVar[bool] = False
    """Whether what cases of one unit add is apart from what those of another do."""

    @property
    def tabled(self) -> bool:
        """Whether there are tables to resample."""
        return True

    @abstractmethod
    def empty(self, num_classes: int, units: int = 1) -> Any:
        """Return the summary of no cases."""

    def direct_loop(self, predictions: Predictions) -> Any:
        """Return a loop from these arrays straight to the summary; None where there is none."""
        return None

    def prepared(self, rows: Rows) -> Any:
        """Return cases as `take_in` wants them; `prepared.take(rows, units)` chooses some."""
        return rows

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Any:
        """Return the summary that `arrays()` wrote down; files hold no case."""
        raise keeps_cases(self)

    def bounded(self) -> Any:
        """Return the plan of the same metrics in memory that does not grow with the cases."""
        return self

    def takes_votes(self) -> bool:
        """Tell whether its summary can `absorb_votes`."""
        return False

    def room(self, num_classes: int, units: int, cases: int) -> int:
        """Return how many bytes the summary of so many cases takes, more or less."""
        tables = self.empty(num_classes).arrays().values()
        return units * sum(int(table.nbytes) for table in tables)


def keeps_cases(plan: Plan) -> InvalidTypeError:
    """What to say where a summary that holds cases is to be written to a file."""
    return InvalidTypeError(f"plan: a summary of {plan} keeps cases and cannot be saved")


class ScorePlan(Plan):
    """What plans share whose summary is made of scored cases."""

    question: Any

    def prepared(self, rows: Rows) -> Any:
        """Return the cases with their scores."""
        return self.question.score(rows)

    def takes_votes(self) -> bool:
        """Tell whether `absorb_votes` can answer this question: where a case has one score."""
        return asked_of_two(self.question) in ("top_label", "positive")


class Summary(ABC):
    """A mergeable table of some cases; what most of them do."""

    plan: Any

    @abstractmethod
    def absorb(self, rows: Rows) -> None:
        """Add a chunk in place: for the one who made the summary and has not shown it yet."""

    def take_in(self, prepared: Any) -> None:
        """Add in place what the plan has prepared: rows, or scored cases."""
        self.absorb(prepared)

    def absorb_votes(self, votes: Votes) -> None:
        """Add voxels of two classes in place, as its question scores them."""
        self.take_in(votes.scored(self.plan.question))

    def by_unit(self) -> Any:
        """Return a summary with a table for every resampling unit: itself."""
        return self

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file keeps, which is no case."""
        raise keeps_cases(self.plan)

    def forget(self) -> None:  # noqa: B027
        """Let go of what was made of the summary, which can be made again; usually nothing."""

    def tidy(self) -> None:  # noqa: B027
        """Let go of the part of it that will hardly be asked for again."""


class TableSummary(Summary):
    """What summaries do that are one table, (units, …): what each resampling unit adds."""

    sums: NDArray[np.float64]

    @property
    def units(self) -> NDArray[np.float64]:
        """(units, …): what each resampling unit adds."""
        return self.sums

    def with_units(self, units: NDArray[np.float64]) -> Any:
        """Return the table of these units instead."""
        return type(self)(self.plan, units)  # type: ignore[call-arg]

    def value(self, row: Metric, options: Options) -> tuple[float, float | None]:
        """Return a metric of this table, which is exact."""
        return float(row.over(row.prepare(self, options).table, options)), None

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return what a file keeps."""
        return {"sums": self.sums}

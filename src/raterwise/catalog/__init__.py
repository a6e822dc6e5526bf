"""The catalog: one row per metric, a module per family; the functions, `evaluate`, the laws and the
docs all read it.

A row says which summary a metric needs (`plan`), how that becomes a table (`prepare`), and the
formula over the table. The same formula gives the estimate and, over resampled tables, its
interval: by test inversion for non-negative errors, by leaving out one unit at a time for the rest.
"""

from __future__ import annotations

from raterwise.catalog import (
    agreement,
    calibration,
    clinical_thresholds,
    histograms,
    proper,
    ranking,
    weak_calibration,
)
from raterwise.catalog.metric import Metric
from raterwise.errors import InvalidInputError
from raterwise.rules import did_you_mean

__all__ = ["CATALOG", "Metric", "find"]

_FAMILIES = (
    *(proper, histograms, calibration, ranking, clinical_thresholds),
    *(weak_calibration, agreement),
)

CATALOG: dict[str, Metric] = {row.name: row for family in _FAMILIES for row in family.ROWS}


def find(name: str, argument: str = "metrics") -> Metric:
    """Return the row of a metric by its name; an error names the argument that it was given as."""
    try:
        return CATALOG[name]
    except KeyError:
        known, meant = ", ".join(CATALOG), did_you_mean(name, CATALOG)
        raise InvalidInputError(
            f"{argument}: no metric is called {name!r}{meant}; known: {known}"
        ) from None

"""What `raterwise calibrate` writes of before and after, and `raterwise report` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from raterwise.cli.reading import Cases
from raterwise.cli.writing import with_notes
from raterwise.compare import Comparison, Difference
from raterwise.errors import InvalidInputError
from raterwise.io.damaged import read_json
from raterwise.results import Results

SCHEMA_VERSION = 1


def record_of(
    method: str,
    known: Cases,
    new: Cases,
    found: Any,
    comparison: Comparison | None,
    overlap: dict[str, Any],
    notes: list[str],
) -> dict[str, Any]:
    """Return what was fitted, to what, and the results before and after.

    `found` are the fitted calibrators.
    """

    def facts(cases: Cases) -> dict[str, Any]:
        ratings = None if cases.labels is None else int(cases.labels.num_raters.sum())
        return {"cases": len(cases), "ratings": ratings, "without_labels": cases.dropped}

    made = {} if comparison is None else comparison.to_dict()
    shared = {key: made.get(key, {}) for key in ("data", "options", "versions")}
    return {
        "schema_version": SCHEMA_VERSION,
        "method": method,
        "alpha": found.alpha is not None,
        "fitted": found.in_words(),
        "fit": {"file": known.table.source, **facts(known)},
        "apply": {"file": new.table.source, **facts(new)},
        "overlap": overlap["shared"],
        "before": made.get("models", {}).get("before"),
        "after": made.get("models", {}).get("after"),
        "differences": made.get("differences"),
        **shared,
        "warnings": notes,
    }


def write_page(
    html: Path, comparison: Comparison | None, record: Mapping[str, Any], notes: Sequence[str]
) -> Path:
    """Write the report of after, with before beside it."""
    assert comparison is not None
    after, before = comparison.models["after"], comparison.models["before"]
    after = replace(with_notes(after, notes), provenance=record["provenance"])
    after.to_html(html, before=before, differences=comparison.differences)
    return html


def read_results(path: Path) -> tuple[Results, dict[str, Any]]:
    """Return the results of a file, and what else of a report it holds.

    What `raterwise calibrate` wrote holds results before and after, and their differences.
    """
    content = read_json(path, "a raterwise result file")
    if not isinstance(content, dict) or "metrics" in content or "fitted" not in content:
        return Results.from_json(path), {}  # which explains what is no such file
    if content.get("after") is None or content.get("before") is None:
        raise InvalidInputError(
            f"{path}: holds nothing to compare; raterwise calibrate needs --apply-ratings for that"
        )
    try:
        after, before = (Results.from_dict(content[name]) for name in ("after", "before"))
        made = tuple(Difference(**row) for row in content.get("differences") or ())
    except (InvalidInputError, TypeError) as error:
        raise InvalidInputError(
            f"{path}: is not what raterwise calibrate writes ({error})"
        ) from error
    origin = content.get("provenance") or after.provenance  # which files of before had not
    after = replace(with_notes(after, content.get("warnings") or ()), provenance=origin)
    return after, {"before": before, "differences": made}

"""The section of a report that puts the model beside the readers."""

from __future__ import annotations

from typing import Any

from raterwise.readers.yardstick import AgainstReaders
from raterwise.report.markup import Html, data_table, el
from raterwise.report.sections import scrolled, section
from raterwise.report.words import natural, percent
from raterwise.results import Results


def readers(results: Results) -> Html | None:
    """Return how the model and each reader agree with the other readers of the same cases."""
    content = results.data.get("readers")
    if not content:
        return None
    found = AgainstReaders.from_dict(content)
    rows = [
        (one.title, _ends(one.reader), _ends(one.model), _points(one.difference))
        for one in found.metrics.values()
    ]
    header = ("", "A reader", "The model", "Model minus reader")
    table = data_table(header, rows, "A reader and the model against the other readers")
    note = (
        "Each reader is judged against the other readers of the same cases, and the model on the "
        "same cases against the same labels. Values are means over the readers, weighted by their "
        "numbers of cases. Intervals come from leaving out one patient (or case) at a time and "
        "hold for these readers."
    )
    if len(found.metrics) > 1:
        note += (
            " The model's sensitivity and specificity are at a threshold of 0.5. They differ from "
            "those at a threshold above, which count all ratings together."
        )
    parts: list[Any] = [
        el("p", found.sentence().replace("-", "−")),
        table,
        el("p", note, class_="note"),
    ]
    parts.append(el("details", el("summary", "Each reader"), scrolled(_each(found), "Each reader")))
    return section(
        "readers", "Does it agree with readers as well as they agree with each other?", *parts
    )


def _each(found: AgainstReaders) -> Html:
    header = ["Reader", "Shared cases"]
    for one in found.metrics.values():
        header += [f"{one.title}: reader", f"{one.title}: model"]
    rows = []
    for reader in sorted(found.readers, key=lambda one: natural(one.rater)):
        row = [str(reader.rater), f"{reader.cases:,}"]
        for name in found.metrics:
            row += [_share(reader.reader[name]), _share(reader.model[name])]
        rows.append(tuple(row))
    return data_table(
        tuple(header),
        rows,
        "Each reader, and the model on the same cases, in the order of the readers' names",
    )


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _ends(ends: tuple[float, float, float]) -> str:
    value, low, high = ends
    return f"{100 * value:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"


def _points(ends: tuple[float, float, float]) -> str:
    value, low, high = (100 * x for x in ends)
    return f"{value:+.1f} points [{low:+.1f}, {high:+.1f}]".replace("-", "−")

"""The sections on the raters: whether they agree, and the model beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from raterwise.catalog import CATALOG
from raterwise.exchangeability import ExchangeabilityTest
from raterwise.readers.yardstick import AgainstReaders
from raterwise.report.markup import Html, data_table, el
from raterwise.report.sections import scrolled, section
from raterwise.report.words import bracketed, natural, number, p_value, percent, points
from raterwise.results import Results


def agreement(results: Results, test: Any, note: str | None = None) -> Html | None:
    """Return how far the raters agree, and whether they are interchangeable.

    Results hold the test where it was known who said what.
    """
    if test is None and results.data.get("exchangeability"):
        test = ExchangeabilityTest.from_dict(results.data["exchangeability"])
    lines = []
    for name, e in results.items():
        if name in CATALOG and "of_pairs" in CATALOG[name].tags and e.value is not None:
            title = el("strong", f"{e.title}: {number(e.value, 2)}{bracketed(e, 2)}. ")
            lines.append(el("li", title, e.meaning))
    if not lines and test is None:
        return None
    content: list[Any] = [el("ul", lines)] if lines else []
    if test is not None:
        content += [el("p", line) for line in interchangeable(test)]
        content += [el("p", note, class_="note")] if note else []
        rows = [
            (r.rater_id, f"{r.ratings:,}", _difference(r), p_value(r.adjusted_p_value),
             "stands out" if r.breaks else "–")
            for r in by_name(test.raters)
        ]  # fmt: skip
        header = ("Rater", "Ratings compared", "Largest difference", "Adjusted p-value", "Verdict")
        caption = "Each rater against the others on the same cases, in the order of their names"
        table = scrolled(data_table(header, rows, caption), "Each rater")
        content.append(el("details", el("summary", "Each rater"), table))
    return section("raters", "Do the raters agree?", *content)


def interchangeable(test: Any) -> list[str]:
    """Return the outcome of the test in sentences."""
    rests = (
        f"labels differ on {test.divided_cases:,} of the {test.cases:,} cases with two or more; "
        f"{test.permutations:,} permutations"
    )
    p = p_value(test.p_value, "p")
    if test.p_value > test.significance:
        return [f"The raters look interchangeable: {p} ({rests}).", *test.left_out()]
    lines = [
        f"The raters are not interchangeable: {p} ({rests}). The figures in this report describe "
        "the panel that rated these cases; another panel might say something else."
    ]
    for rater in (r for r in by_name(test.raters) if r.breaks):
        klass, most = rater.largest
        lines.append(
            f"{called(rater.rater_id)} says “{klass}” {points(abs(most))} percentage points "
            f"{'more' if most > 0 else 'less'} often than the others do on the same "
            f"{rater.ratings:,} cases (adjusted {p_value(rater.adjusted_p_value, 'p')})."
        )
    if test.breaking and test.rest_p_value is not None:
        rest = "still differ" if test.rest_p_value <= test.significance else "look alike"
        name = called(test.breaking[0])
        name = f"r{name[1:]}" if name.startswith("Rater ") else name
        lines.append(f"Without {name} the others {rest} ({p_value(test.rest_p_value, 'p')}).")
    if len(lines) == 1:
        lines.append("No single rater stands out.")
    return [*lines, *test.left_out()]


def called(name: Any) -> str:
    """Return what to call a rater at the beginning of a sentence.

    >>> called(3), called("Smith"), called("reader_2")
    ('Rater 3', 'Rater Smith', 'reader_2')
    """
    own = str(name)
    return own if own.casefold().startswith(("rater", "reader")) else f"Rater {own}"


def by_name(raters: Iterable[Any]) -> list[Any]:
    """Return raters in the order of their names, in which 2 comes before 10."""
    return sorted(raters, key=lambda rater: natural(rater.rater_id))


def _difference(rater: Any) -> str:
    """Return the class on which a rater differs most, and by how many percentage points."""
    if not rater.ratings:
        return "–"
    return by_points(*rater.largest)


def by_points(name: Any, excess: float) -> str:
    """Return a class, and how much more often it is said, in percentage points."""
    return f"{name}: {100 * excess:+.1f}\u00a0points".replace("-", "−")


def readers(results: Results) -> Html | None:
    """Return how the model and each reader agree with the other readers of the same cases."""
    content = results.data.get("readers")
    if not content:
        return None
    found = AgainstReaders.from_dict(content)
    rows = [
        (one.title, _ends(one.reader), _ends(one.model), _difference_of(one.difference))
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
    return section(
        "readers",
        "Does it agree with readers as well as they agree with each other?",
        el("p", found.sentence().replace("-", "−")),
        table,
        el("p", note, class_="note"),
        el("details", el("summary", "Each reader"), scrolled(_each(found), "Each reader")),
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


def _difference_of(ends: tuple[float, float, float]) -> str:
    value, low, high = (100 * x for x in ends)
    return f"{value:+.1f} points [{low:+.1f}, {high:+.1f}]".replace("-", "−")

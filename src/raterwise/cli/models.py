"""Several models on the same cases, read from their files: `raterwise compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.cli.members import Members, in_one_order
from raterwise.cli.reading import Cases, numbers_of, read_cases
from raterwise.cli.table_options import TableOptions
from raterwise.errors import InvalidInputError
from raterwise.io.scores import read_outside


@dataclass(frozen=True)
class Draws:
    """By model: where its draws are, and those of cases from elsewhere."""

    samples: Mapping[str, list[Path]] = field(default_factory=dict)
    member: Mapping[str, list[Path]] = field(default_factory=dict)
    elsewhere: Mapping[str, list[Path]] = field(default_factory=dict)
    confidence_column: str | None = None

    @staticmethod
    def of(
        samples: Sequence[str] | None,
        member: Sequence[str] | None,
        outside: Sequence[str] | None,
        confidence_column: str | None,
    ) -> Draws:
        """Return what NAME=FILE options say."""
        return Draws(
            _by_model("samples", samples),
            _by_model("member", member),
            _by_model("outside", outside),
            confidence_column,
        )

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file of them."""
        told = (self.samples, self.member, self.elsewhere)
        return tuple(file for by_model in told for files in by_model.values() for file in files)

    @property
    def given(self) -> bool:
        """Whether anything is told."""
        return bool(self.paths) or self.confidence_column is not None

    @property
    def outside(self) -> dict[str, Path]:
        """By model, the file of its cases from elsewhere."""
        return {name: files[0] for name, files in self.elsewhere.items()}

    def members(self, name: str) -> Members:
        """Return the draws of a model."""
        return Members.of(next(iter(self.samples.get(name, ())), None), self.member.get(name))

    def check(self, names: Sequence[str]) -> None:
        """Refuse names of no model, and two files where one is enough."""
        told = {"samples": self.samples, "member": self.member, "outside": self.elsewhere}
        for option, by_model in told.items():
            for name, files in by_model.items():
                if name not in names:
                    raise InvalidInputError(
                        f"--{option}: there is no model {name!r}; they are {', '.join(names)}"
                    )
                if option != "member" and len(files) > 1:
                    raise InvalidInputError(f"--{option}: must be one file of {name}; got two")


def _by_model(option: str, given: Sequence[str] | None) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for text in given or ():
        name, _, file = text.partition("=")
        if not file:
            raise InvalidInputError(f"--{option}: must be NAME=FILE, of a model; got {text!r}")
        found.setdefault(name, []).append(Path(file))
    return found


def read_models(
    files: Sequence[Path],
    names: Sequence[str],
    ratings: Path | None,
    tables: TableOptions,
    draws: Draws,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what `compare` takes of the models, their cases as in the first file, and notes."""
    draws.check(names)
    each = [
        read_cases(file, ratings, tables, members=draws.members(name))
        for file, name in zip(files, names, strict=True)
    ]
    first, probs, ranked = each[0], {}, {}
    labels = first.require_labels()
    for name, file, one in zip(names, files, each, strict=True):
        if one.table.class_names != first.table.class_names:
            raise InvalidInputError(
                f"{one.table.source}: must have the classes of {first.table.source}, "
                f"{', '.join(first.table.class_names)}; got {', '.join(one.table.class_names)}"
                f"{in_one_order(one.table, first.table)}"
            )
        rows = first.rated if one is first else _same_cases(first, one)
        probs[name] = replace(one, rated=rows).probs_or_belief()
        found = numbers_of(file, draws.confidence_column, tables)
        if found is not None:
            ranked[name] = found[rows]
    outside = {
        name: read_outside(file, draws.confidence_column, tables.told)
        for name, file in draws.outside.items()
    }
    known: dict[str, Any] = {
        "models": probs,
        "labels": labels,
        "groups": first.of_rated(first.table.groups),
        "weights": first.of_rated(first.table.weights),
        "class_names": first.table.class_names,
        "confidence": ranked or None,
        "outside": outside or None,
    }
    return known, _notes_of(each)


def _notes_of(each: Sequence[Cases]) -> tuple[str, ...]:
    """Return what there is to know of all tables; what was said of the first is not said again."""
    first = each[0].table
    told = dict.fromkeys(first.notes)
    for one in (cases.table for cases in each[1:]):
        new = (n for n in one.notes if n.replace(one.source, first.source) not in first.notes)
        told |= dict.fromkeys(new)
    return tuple(told)


def _same_cases(first: Cases, other: Cases) -> NDArray[np.int64]:
    """Return the rows of `other` that hold the rated cases of `first`, in their order."""
    ids = None if first.table.ids is None else first.table.ids[first.rated]
    sources = first.table.source, other.table.source
    return same_rows(ids, other.table.ids, (len(first.rated), other.rated), sources)


def same_rows(
    ids: NDArray[Any] | None,
    others: NDArray[Any] | None,
    rated: tuple[int, NDArray[np.int64]],
    sources: tuple[str, str],
) -> NDArray[np.int64]:
    """Return the rows with these ids, in their order; both tables must hold the same cases.

    `rated` is how many cases the first table has, and which rows of the other are rated.
    """
    number, rows = rated
    one, two = sources
    if ids is None or others is None:
        if number != len(rows):
            raise InvalidInputError(
                f"{two}: must hold the cases of {one}; got {len(rows)} for {number}, and no ids to "
                "match them by"
            )
        return rows
    row = {name: i for i, name in enumerate(others.tolist())}
    wanted = ids.tolist()
    missing = [name for name in wanted if name not in row]
    extra = len(rows) - (len(wanted) - len(missing))
    if missing or extra:
        what = f"lacks case {missing[0]!r}" if missing else f"has {extra} more"
        raise InvalidInputError(f"{two}: must hold the cases of {one}; it {what}")
    return np.array([row[name] for name in wanted], np.int64)

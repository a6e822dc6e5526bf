"""Which columns of a table are the cases, the raters, the ratings and the counts.

As told, or by their usual names; what the names leave open is refused with what to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.io.sources import TableFile, open_table
from raterwise.io.unused_columns import unused_columns
from raterwise.labels.classes import is_whole
from raterwise.rules import did_you_mean, listed, one_value, several_names

LAYOUT_ARGUMENTS = {
    "wide": ("rater_columns", "rater_prefix"),
    "long": ("rater_column", "rating_column"),
    "counts": ("count_columns", "count_prefix"),
}
CASE_COLUMNS = ("case",)
RATER_COLUMNS = ("reader", "rater")
RATING_COLUMNS = ("label", "rating")
RATER_PREFIXES = ("reader_", "rater_")
RATER_NAME = re.compile(r"(reader|rater)(?:[ _.-]+\S.*|\d+)", re.IGNORECASE)
"""How the columns of raters are usually called: reader_1, Reader 2, reader3, rater_smith."""
OF_FINDING = re.compile(r"((?:reader|rater)[ _.-]*[^ _.-]+)[ _.-](.+)", re.IGNORECASE)
"""How a rater's answers about several findings are called: reader_1_edema, reader_1_mass."""
LIKE_IDS = re.compile(r"(^|[ _.-])(id|case|image|study|file(name)?)s?$", re.IGNORECASE)
NO_CASE = re.compile(r"patient|subject|reader|rater|annotation", re.IGNORECASE)
SUMMARY = re.compile(
    r"[ _.-](majority|consensus|mean|median|mode|average|agreement|id|name|conf(idence)?|certainty|"
    r"time|date|seconds|comments?|notes?|count|total|final|truth)$",
    re.IGNORECASE,
)
"""What follows reader_ in columns that are no rater's own ratings."""
UNNAMED = ("", "Unnamed: 0")
"""What pandas and others write over a column that has no name: the first one may be the id."""
COUNT_PREFIX = "count_"
COUNTED = re.compile(r"(n|num|number|votes?|counts?)[ _.-]", re.IGNORECASE)
PROBABILITY = ("prob", "Prob", "PROB")
"""How the names of probabilities begin, which are no ratings."""
MOST_GUESSED = 10
"""Up to how many columns may be guessed to be raters."""


COLUMNS = (
    "id_column", "label_column", "group_column", "weight_column", "rater_column", "rating_column",
    "ratings_id_column",
)  # fmt: skip
"""The arguments that name one column each."""


@dataclass(frozen=True)
class TableColumns:
    """Which column of which file is what, and how its values are read.

    Columns of ratings that are left out are found by their usual names, or refused. wide:
    `rater_columns` or `rater_prefix` (usually reader_ or rater_), one column per rater; long:
    `rater_column` (usually reader or rater) and `rating_column` (usually label or rating); counts:
    `count_columns` or `count_prefix` (usually count_), one column per class.
    """

    id_column: str | None = None
    prob_prefix: str = "prob_"
    prob_columns: Sequence[str] = ()
    class_names: Sequence[str] | None = None
    label_column: str | None = None
    group_column: str | None = None
    weight_column: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    normalize: bool = False
    percent: bool = False
    ignore_case: bool = False
    missing: Collection[str] = ()
    ratings_layout: str | None = None
    rater_columns: Sequence[str] = ()
    rater_prefix: str | None = None
    rater_column: str | None = None
    rating_column: str | None = None
    count_columns: Sequence[str] = ()
    count_prefix: str | None = None
    ratings_id_column: str | None = None
    duplicates: str = "error"
    allow_unmatched: bool = False
    loose_ids: bool = False

    def __post_init__(self) -> None:
        """Take a word alone for a list of one, not for its letters."""
        for name in ("prob_columns", "rater_columns", "count_columns", "missing"):
            object.__setattr__(self, name, several_names(name, getattr(self, name)))
        for name in COLUMNS:
            one_value(name, getattr(self, name))
        for name in ("prob_prefix", "rater_prefix", "count_prefix"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):
                raise InvalidTypeError(f"{name}: must be text; got {given!r:.80}")
        if self.class_names is not None and not isinstance(self.class_names, str):
            names = tuple(map(str, several_names("class_names", self.class_names)))
            object.__setattr__(self, "class_names", names)

    @property
    def id_of_ratings(self) -> str | None:
        """The column of the cases in the file of ratings."""
        return self.ratings_id_column or self.id_column

    @property
    def ratings_named(self) -> dict[str, list[str]]:
        """The arguments about ratings that were given, by the layout they speak of."""
        return {
            layout: given
            for layout, names in LAYOUT_ARGUMENTS.items()
            if (given := [name for name in names if getattr(self, name)])
        }

    def open(self, path: str | PathLike[str]) -> TableFile:
        """Return the table in a file; only its names are read yet."""
        return open_table(path, delimiter=self.delimiter, encoding=self.encoding)


AS_USUAL = TableColumns()


def find_id_column(file: TableFile, id_column: str | None, argument: str = "id_column") -> str:
    """Return the column that names the case: the one asked for, `case`, or an unnamed first one.

    `argument` is what names the column of this file.
    """
    if id_column is not None:
        return file.require(id_column, argument)
    if named := usual_names(file, CASE_COLUMNS):
        return named[0]
    if file.columns[0] in UNNAMED:
        return file.columns[0]
    raise InvalidInputError(
        f"{argument}: must say which column of {file.name} names the case; there is no 'case' "
        f"(columns: {listed(file.columns)}){_maybe_ids(file, argument)}{file.read_so}"
    )


def _maybe_ids(file: TableFile, argument: str) -> str:
    """Return how to say that a column names the case, where one looks like it."""
    like = [name for name in file.columns if LIKE_IDS.search(name) and not NO_CASE.search(name)]
    return f'; perhaps {argument}="{like[0]}"' if like else did_you_mean("case", file.columns)


def has_ids(file: TableFile, id_column: str | None) -> bool:
    """Tell whether a column of ids is named, or found without a name."""
    named = bool(usual_names(file, CASE_COLUMNS))
    return id_column is not None or named or file.columns[0] in UNNAMED


def usual_names(file: TableFile, usual: Collection[str]) -> list[str]:
    """Return the columns that have one of the usual names, else those that have it in capitals."""
    exact = [name for name in usual if name in file.columns]
    return exact or [name for name in file.columns if name.casefold() in usual]


def layout_of(file: TableFile, told: TableColumns) -> str:
    """Return the layout that was asked for, or the only one that the columns can mean."""
    named, chosen = told.ratings_named, told.ratings_layout
    if chosen is not None:
        wrong = [name for layout in named if layout != chosen for name in named[layout]]
        if wrong:
            raise InvalidInputError(
                f"{wrong[0]}: does not go with the layout {chosen!r} of the ratings"
            )
        return chosen
    if len(named) > 1:
        raise InvalidInputError(
            f"{' and '.join(names[0] for names in named.values())}: belong to different layouts "
            f"of the ratings ({', '.join(named)}); use one"
        )
    if named:
        return next(iter(named))
    found = [layout for layout, fits in usual_layouts(file).items() if fits]
    if len(found) == 1:
        return found[0]
    problem = f"fit {' and '.join(found)}" if found else "fit none"
    raise InvalidInputError(
        f"ratings_layout: must be given for {file.name}; the names of its columns {problem} "
        f"({listed(file.columns)}). wide has rater_columns (reader_… or rater_…), long has a "
        "rater_column (reader or rater) and a rating_column (label or rating), counts has "
        f"count_columns (count_…){_maybe_ratings(file)}{file.read_so}"
    )


def _maybe_ratings(file: TableFile) -> str:
    """Return how to name the columns of ratings, where some look like them."""
    like = unused_columns(file, ()).get("a rater", [])
    if len(like) > 1:
        return f"; perhaps {_naming('rater_columns', like)}"
    others = [n for n in file.columns if n and n not in like and not LIKE_IDS.search(n)]
    who = usual_names(file, RATER_COLUMNS) or like
    if len(who) == len(others) == 1:
        return f'; perhaps rater_column="{who[0]}" and rating_column="{others[0]}"'
    if who and len(others) > 1 and not any(LIKE_IDS.search(name) for name in file.columns):
        return "; a row per rater is not read: turn the table, a row per case"
    if len(others) == 1 and usual_names(file, RATING_COLUMNS) == others:
        return f"; perhaps {_naming('rater_columns', others)}, if they are of one rater"
    others = [n for n in others if not NO_CASE.search(n) and not n.startswith(PROBABILITY)]
    if 1 < len(others) <= MOST_GUESSED and any(LIKE_IDS.search(n) for n in file.columns):
        counted = all(COUNTED.match(name) for name in others)
        wide = _naming("count_columns" if counted else "rater_columns", others)
        long = f'rater_column="{others[0]}" and rating_column="{others[1]}"'
        return f"; perhaps {wide}" + (f" or {long}" if len(others) == 2 and not counted else "")
    return ""


def _naming(argument: str, names: Sequence[str]) -> str:
    """Return how to name several columns; one whose name holds a comma stands in quotes."""
    if any("," in name for name in names):
        quoted = ",".join(f'"{name}"' if "," in name else name for name in names)
        return f"{argument}, where a name that holds a comma stands in quotes: '{quoted}'"
    return f'{argument}="{",".join(names)}"'


def usual_layouts(file: TableFile) -> dict[str, bool]:
    """Return which layouts the columns have the usual names of."""

    long = (usual_names(file, names) for names in (RATER_COLUMNS, RATING_COLUMNS))
    return {
        "wide": any(RATER_NAME.fullmatch(name) for name in file.columns),
        "long": all(long),
        "counts": bool(_with_prefix(file, COUNT_PREFIX)),
    }


def _with_prefix(file: TableFile, prefix: str) -> list[str]:
    exact = [name for name in file.columns if name.startswith(prefix)]
    folded = prefix.casefold()
    return exact or [name for name in file.columns if name.casefold().startswith(folded)]


def _after(prefix: str, name: str) -> str:
    """Return what a name says after a prefix, in letters of any case."""
    begins = name.casefold().startswith(prefix.casefold())
    return name[len(prefix) :] if begins else name


def _by_prefix(file: TableFile, prefixes: Sequence[str], argument: str) -> tuple[str, list[str]]:
    """Return the one prefix of `prefixes` that columns have, and those columns."""
    found = {prefix: names for prefix in prefixes if (names := _with_prefix(file, prefix))}
    if len(found) != 1:
        rule = "name one" if found else "be the beginning of a column's name"
        raise InvalidInputError(
            f"{argument}: must {rule} in {file.name}; tried {listed(prefixes)} "
            f"(columns: {listed(file.columns)})"
        )
    return next(iter(found.items()))


def wide_columns(file: TableFile, told: TableColumns) -> list[str]:
    """Return the raters' columns: as given, by a prefix, or those of one kind: readers, raters."""
    if told.rater_columns:
        _refuse_twice(told.rater_columns, "rater_columns")
        return [file.require(name, "rater_columns") for name in told.rater_columns]
    if told.rater_prefix:
        return _by_prefix(file, [told.rater_prefix], "rater_prefix")[1]
    found: dict[str, list[str]] = {}
    for name in file.columns:
        if match := RATER_NAME.fullmatch(name):
            found.setdefault(match[1].lower(), []).append(name)
    if len(found) != 1:
        return _by_prefix(file, RATER_PREFIXES, "rater_prefix")[1]  # which says what is wrong
    (names,) = found.values()
    _refuse_findings(file, names)
    _refuse_summaries(file, names)
    return names


def _refuse_findings(file: TableFile, names: Sequence[str]) -> None:
    """Refuse to take every answer of a rater about several findings for another rater."""
    split = [match.groups() for name in names if (match := OF_FINDING.fullmatch(name))]
    raters, findings = (list(dict.fromkeys(pair[i] for pair in split)) for i in range(2))
    whole = len(set(split)) == len(names) == len(raters) * len(findings)
    if whole and min(len(raters), len(findings)) > 1:
        raise InvalidInputError(
            f"rater_columns: {file.name} looks like {len(raters)} raters of {len(findings)} "
            f"findings ({listed(findings)}); name the columns of one finding, such as "
            f"{','.join(f'{rater}_{findings[0]}' for rater in raters[:3])}, or evaluate all of "
            "them with multilabel"
        )


def _refuse_twice(names: Sequence[str], argument: str) -> None:
    """Refuse a column that is named twice: it would count twice."""
    if twice := [name for name in dict.fromkeys(names) if list(names).count(name) > 1]:
        raise InvalidInputError(f"{argument}: must differ; {listed(twice)} is there twice")


def _refuse_summaries(file: TableFile, names: Sequence[str]) -> None:
    """Refuse columns that say something about raters, such as reader_majority or reader_1_sure."""
    odd = [
        name
        for name in names
        if SUMMARY.search(name) or any(re.match(rf"{re.escape(n)}[ _.-]", name) for n in names)
    ]
    if odd and len(odd) < len(names):
        raters = ",".join(name for name in names if name not in odd)
        raise InvalidInputError(
            f"rater_columns: must name the raters in {file.name}; {listed(odd)} may not be one "
            f'(rater_columns="{raters}" leaves it out)'
        )


def usual_column(file: TableFile, given: str | None, usual: Sequence[str], argument: str) -> str:
    """Return the column asked for, or the only one that has a usual name."""
    if given is not None:
        return file.require(given, argument)
    found = usual_names(file, usual)
    if len(found) != 1:
        problem = f"both {' and '.join(found)} are there" if found else "it has none of the usual"
        raise InvalidInputError(
            f"{argument}: must name a column of {file.name}; {problem} "
            f"({' or '.join(usual)}; columns: {listed(file.columns)})"
        )
    return found[0]


def rating_columns(file: TableFile, told: TableColumns) -> tuple[str, dict[str, str]]:
    """Return the layout of ratings, and the columns that hold them: by rater, or by class."""
    layout = layout_of(file, told)
    if layout == "long":
        rating = usual_column(file, told.rating_column, RATING_COLUMNS, "rating_column")
        return layout, {rating: rating}
    if layout == "wide":
        return layout, {name: name for name in wide_columns(file, told)}
    prefix, names = told.count_prefix or COUNT_PREFIX, list(told.count_columns)
    names = names or _by_prefix(file, [prefix], "count_prefix")[1]
    return layout, {_after(prefix, name): name for name in names}


def columns_beside(
    file: TableFile, told: TableColumns, class_names: tuple[str, ...]
) -> tuple[str | None, list[str]]:
    """Return the layout of ratings beside probabilities, one row a case, and their columns.

    None where neither the options nor the usual names tell it.
    """
    usual = usual_layouts(file)
    if not told.ratings_named and not (usual["wide"] or usual["counts"]):
        return None, []
    layout = layout_of(file, told)
    if layout == "wide":
        return layout, wide_columns(file, told)
    return layout, count_columns(file, told, class_names)


def count_columns(file: TableFile, told: TableColumns, class_names: tuple[str, ...]) -> list[str]:
    """Return the count column of each class: by the class in its name, or in the order given."""
    given = [file.require(name, "count_columns") for name in told.count_columns]
    _refuse_twice(given, "count_columns")
    if given:
        prefix = told.count_prefix or COUNT_PREFIX
        names = given
    else:
        prefix, names = _by_prefix(file, [told.count_prefix or COUNT_PREFIX], "count_prefix")
    by_class = {_after(prefix, name): name for name in names}
    if set(by_class) == set(class_names):
        return [by_class[name] for name in class_names]
    folded = {name.casefold(): column for name, column in by_class.items()}
    if len(folded) == len(by_class) and set(folded) == {name.casefold() for name in class_names}:
        return [folded[name.casefold()] for name in class_names]
    codes = {str(k): k for k in range(len(class_names))}
    if set(by_class) == set(codes) and not any(map(is_whole, class_names)):
        return [by_class[code] for code in codes]  # numbers are codes of classes with names
    if given and len(given) == len(class_names):
        return given
    argument = "count_columns" if given else "count_prefix"
    raise InvalidInputError(
        f"{argument}: must give one column of {file.name} for each of the classes "
        f"{listed(class_names)}; got {listed(names)}"
    )

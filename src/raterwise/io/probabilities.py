"""The probabilities of a table: which columns, of which classes, and whether they add up."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.io.sources import TableFile
from raterwise.io.unused_columns import unused_columns
from raterwise.io.values import id_at
from raterwise.predictions.checks import row_sum_tolerance
from raterwise.predictions.odd_columns import named_as_odd, odd_columns
from raterwise.rules import OVERSHOOT, did_you_mean, listed, spelled
from raterwise.types import Array

CONFIDENCE = re.compile(r"conf(idence)?$|certainty", re.IGNORECASE)
HALF_A_PERCENT = 0.005
"""How far a probability may be off that was rounded to two decimals."""
NEARLY = 1e-4
"""How far outside [0, 1] a probability may lie by rounding."""


def probability_columns(file: TableFile, prefix: str, given: Sequence[str]) -> list[str]:
    """Return the columns of the probabilities: as given, or by how their names begin."""
    if given:
        return [file.require(name, "prob_columns") for name in given]
    found = [name for name in file.columns if _begins(name, prefix)]
    like = unused_columns(file, found).get("a class", [])
    if len(found) == 1 and like:
        raise InvalidInputError(
            f"prob_prefix: only {found[0]!r} begins with {prefix!r} in {file.name}, and "
            f"{listed(like)} may be the probability of another class; prob_columns="
            f'"{",".join([*found, *like])}" takes them all, prob_columns="{found[0]}" the one'
        )
    if not found:
        hint = f'prob_columns="{",".join(like)}"' if like else "prob_columns"
        raise InvalidInputError(
            f"prob_prefix: must be the beginning of a column's name in {file.name}; none begins "
            f"with {prefix!r}{did_you_mean(prefix, file.columns)} (columns: "
            f"{listed(file.columns)}); {hint} names them one by one"
            f"{_other_shape(file)}{file.read_so}"
        )
    return found


def _other_shape(file: TableFile) -> str:
    """Return what columns say of a table that has not one row of probabilities per case."""
    names = [name.casefold() for name in file.columns]
    if any(name.startswith("logit") for name in names):
        return "; logits need a softmax first"
    said = {"class", "label", "diagnosis", "category", "finding"} & set(names)
    predicted = any(name.startswith("pred") for name in names)
    if predicted and any(CONFIDENCE.search(name) for name in names):
        return "; the confidence of the predicted class is not enough: every class needs a column"
    if said and any(re.match("(p|prob|probability|score)$", name) for name in names):
        return "; one row per case and one column per class are needed"
    return ""


def notes_on_columns(columns: Sequence[str], class_names: Sequence[str]) -> tuple[str, ...]:
    """Return how columns are understood whose names may mean something else."""
    if len(columns) == 1 and CONFIDENCE.search(columns[0]):
        return (
            f"{columns[0]!r} was read as the probability of {class_names[1]!r}; if it is the "
            "confidence of whatever class was predicted, the figures are wrong",
        )
    return ()


def _begins(name: str, prefix: str) -> bool:
    """Tell whether a name begins with the prefix, in letters of any case."""
    return bool(prefix) and name[: len(prefix)].casefold() == prefix.casefold()


def class_names_of(
    columns: Sequence[str], prefix: str, given: Sequence[str] | None, exclusive: bool
) -> tuple[str, ...]:
    """Return the classes: as given, or what the columns' names say after the prefix.

    A lone prob_malignant is the probability of malignant, and the other class is its opposite.

    >>> class_names_of(["prob_malignant"], "prob_", None, True)
    ('not malignant', 'malignant')
    """
    named = all(_begins(name, prefix) for name in columns)
    after = [name[len(prefix) :].strip() for name in columns] if named else list(columns)
    if given:
        names = tuple(given)
        _check_same_order(columns, after, names)
    elif exclusive and len(columns) == 1:
        positive = after[0] if named else ""
        plain = not positive or positive.isdigit()
        if plain and positive not in ("", "1"):
            other = "1" if positive == "0" else "0"
            raise InvalidInputError(
                f"class_names: must say what {columns[0]!r} is, as it is the only probability; "
                f'class_names="{other},{positive}" takes it for that of {positive}, '
                f'class_names="{positive},{other}" for that of {other}'
            )
        names = ("0", "1") if plain else (f"not {positive}", positive)
    else:
        names = tuple(after)
    check_names(names, max(len(columns), 2) if exclusive else len(columns))
    return names


def _check_same_order(columns: Sequence[str], after: Sequence[str], names: Sequence[str]) -> None:
    """Refuse the columns' own names in another order: one class would go by another's name."""
    own, told = ([name.casefold() for name in each] for each in (after, names))
    if own == told or sorted(own) != sorted(told):
        return
    wrong = next(i for i, name in enumerate(own) if name != told[i])
    raise InvalidInputError(
        "class_names: must be in the order of the columns, which have the same names; "
        f"{columns[wrong]!r} would be called {names[wrong]!r} "
        f'(class_names="{",".join(after)}" is their order)'
    )


def check_names(names: tuple[str, ...], num_classes: int) -> None:
    """Refuse names that are not one for each class."""
    if len(names) != num_classes or len(set(names)) < num_classes or "" in names:
        raise InvalidInputError(
            f"class_names: must be {num_classes} different names, one per class; "
            f"got {listed(names)}"
        )


def rounding_room(num_classes: int) -> float:
    """Return how far rows may sum from 1 where each probability is rounded to two decimals."""
    return num_classes * HALF_A_PERCENT + 1e-9


def normalized(probs: Array) -> Array:
    """Return rows that were rounded divided by their sums; rows further from 1 stay as they are.

    >>> normalized(np.array([[0.33, 0.33, 0.33], [0.5, 0.2, 0.2]])).tolist()
    [[0.3333333333333333, 0.3333333333333333, 0.3333333333333333], [0.5, 0.2, 0.2]]
    """
    if probs.ndim == 1:
        return probs
    sums = probs.sum(axis=1, dtype=np.float64, keepdims=True)
    near = np.abs(sums - 1) <= rounding_room(probs.shape[1])
    return np.asarray(np.where(near, probs / np.where(near, sums, 1), probs), probs.dtype)


def check_probabilities(
    probs: Array,
    source: str,
    columns: Sequence[str],
    ids: Array | None,
    exclusive: bool,
    unused: Sequence[str] = (),
    rows: Array | None = None,
    chosen: bool = True,
) -> None:
    """Refuse what is not a probability while its file, column and row can still be named.

    `rows` are those of the file, where not all of them are here; `chosen` tells whether
    `prob_columns` chooses the columns, as in all files but NPZ.
    """

    def case(row: int) -> str:
        number = row if rows is None else int(rows[row])
        return f"data row {number + 1}" + ("" if ids is None else f" (case {id_at(ids, row)!r})")

    outside = ~((probs >= -OVERSHOOT) & (probs <= 1 + OVERSHOOT))
    if outside.any():
        place = np.argwhere(outside)[0]
        name = columns[place[1] if len(place) == 2 else -1]
        value = probs[tuple(place)]
        if odd := odd_columns(probs, row_sum_tolerance(probs)):
            raise _odd(source, columns, odd, chosen)
        hint = "logits need a softmax first"
        if not outside[:-1].any() and len(probs) > 1 and probs[-1].min() >= 0:
            hint = "if the last row is no case, delete it"
        if not np.isfinite(value):
            hint = "leave out the cases without a number"
        if _percent(probs):
            hint = "percent=True takes percentages"
        elif exclusive and probs.ndim == 2 and probs.min() >= 0 and probs.max() <= 1 + NEARLY:
            hint = "they look rounded: normalize=True divides each row by its sum"
        elif -NEARLY <= probs.min() < 0 and probs.max() <= 1 + NEARLY:
            hint = "if rounding did that, write 0 for what is below 0"
        raise InvalidInputError(
            f"{source}: probabilities must lie in [0, 1]; {name!r} is {value:.9g} in "
            f"{case(int(place[0]))} ({hint})"
        )
    if not exclusive or probs.ndim != 2:
        return
    sums, tolerance = probs.sum(axis=1, dtype=np.float64), row_sum_tolerance(probs)
    off = np.abs(sums - 1)
    if not (off > tolerance).any():
        return
    row = int(np.flatnonzero(off > tolerance)[0])
    if odd := odd_columns(probs, tolerance):
        raise _odd(source, columns, odd, chosen)
    if off.max() <= rounding_room(probs.shape[1]):
        hint = "they look rounded: normalize=True divides each row by its sum"
    else:
        hint = (
            "findings that may occur together need not: evaluate_multilabel or raterwise evaluate "
            "--multilabel takes them"
        )
        if unused:
            hint = f"{listed(list(unused))} not among the probabilities; {hint}"
    raise InvalidInputError(
        f"{source}: the probabilities of a case must sum to 1 within {spelled(tolerance)}; "
        f"those of {case(row)} sum to {sums[row]:.6g} ({hint})"
    )


def _odd(
    source: str, columns: Sequence[str], odd: Sequence[int], chosen: bool
) -> InvalidInputError:
    """Say which columns are no probabilities, and how to choose those that are."""
    others = ",".join(name for k, name in enumerate(columns) if k not in odd)
    them = "it" if len(odd) == 1 else "them"
    way = f'prob_columns="{others}" leaves {them} out' if chosen else f"leave {them} out"
    return InvalidInputError(
        f"{source}: the columns of probabilities must hold nothing else; "
        f"{named_as_odd([columns[k] for k in odd])}: {way}"
    )


def _percent(probs: Array) -> bool:
    """Tell whether numbers look like percentages: 0 … 100, rows with a sum of 100."""
    if probs.min() < 0 or probs.max() > 100 or probs.max() <= 1:
        return False
    if probs.ndim == 1 or probs.shape[1] == 1:
        return bool(probs.max() > 5)
    sums = probs.sum(axis=1, dtype=np.float64)
    return bool((np.abs(sums - 100) <= 100 * rounding_room(probs.shape[1])).all())

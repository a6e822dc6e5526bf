"""Labels that may mean something else than they are taken for: refused, or told in the results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.frames import PREFIX, class_names_of, columns_of
from raterwise.labels import Labels
from raterwise.labels.classes import is_whole

NEGATIVE = re.compile(
    r"benign|normal|neg(ative)?|no|none|non?[ _-].*|not .*|healthy|absent|control|absence",
    re.IGNORECASE,
)
"""What the class is called that people give the code 0."""
IN_ORDER_OF_CODES = "prob_columns takes the columns in the order of the codes"
"""What to do about classes of tables in another order than that of the codes."""
UNLIKELY, IMPOSSIBLE = 0.1, 1e-6
"""How often raters may say by chance what looks like one-hot rows, to be told of and refused."""


def one_hot_notes(labels: Labels) -> tuple[str, ...]:
    """Return that ratings may be one-hot rows; raise where they can be nothing else.

    As many raters as classes, of whom in every case exactly one says class 1 and all others class
    0. Raters who say 1 with any one probability, each on his own, do so in a case with a
    probability of at most (1 - 1/K)^(K-1).

    >>> one_hot_notes(Labels.from_ratings([[0, 1], [1, 1]], num_classes=2))
    ()
    """
    ratings, cases, classes = labels.ratings, len(labels), labels.num_classes
    if ratings is None or len(ratings.rater_ids) != classes:
        return ()
    chance = (1 - 1 / classes) ** ((classes - 1) * cases)
    if chance > UNLIKELY or len(ratings.label) != cases * classes or ratings.label.max() > 1:
        return ()
    if not (labels.counts[:, 1] == 1).all():
        return ()
    of = f"{classes} columns for {classes} classes with a single 1 in every row"
    ways = "Labels.from_counts takes a column per class (of tables: count_columns)"
    # Two raters may well disagree throughout, and one rater may be the only one who says 1.
    several = len(np.unique(ratings.rater[ratings.label == 1])) > 1
    if classes > 2 and several and chance < IMPOSSIBLE:
        raise InvalidInputError(
            f"ratings: must have a column per rater; these are one-hot, {of}. {ways}, "
            "Labels.from_ratings one per rater"
        )
    return (
        f"the ratings may be one-hot: {of}, and were read as those of {classes} raters, as "
        f"Labels.from_ratings does; if the columns are classes, {ways}",
    )


def code_notes(
    class_names: Sequence[str], way: str = "put the probabilities in the order of the codes"
) -> tuple[str, ...]:
    """Return what the codes 0 … K-1 were taken for, where the order of the classes may surprise.

    Nobody is surprised by the order of the alphabet, nor by a class such as normal in front.
    `way` says what to do where it is wrong.

    >>> code_notes(["benign", "malignant"]), code_notes(["not malignant", "malignant"])
    ((), ())
    >>> print(*code_notes(["not benign", "benign"]))
    the labels are codes: 0 was read as 'not benign', 1 as 'benign', in the order of the
    probabilities; if that is wrong, write the labels as names
    """
    names = [str(name) for name in class_names]
    if any(map(is_whole, names)):
        return ()
    first, last = (bool(NEGATIVE.fullmatch(names[k])) for k in (0, -1))
    lone = names[0] == f"not {names[-1]}"
    in_order = names == sorted(names, key=str.casefold)
    if not (last if lone or (last and not first) else not first and not in_order):
        return ()
    read = ", ".join(f"{k} {'was read ' if k == 0 else ''}as {n!r}" for k, n in enumerate(names))
    wrong = "write the labels as names" if lone else way
    return (
        f"the labels are codes: {read}, in the order of the probabilities; if that is wrong, "
        f"{wrong}",
    )


def code_notes_of(probs: Any, labels: Any) -> tuple[str, ...]:
    """Return what codes were taken for by the columns of a frame of probabilities."""
    names = class_names_of(probs)
    if names is None and (columns := columns_of(probs, "probs")) is not None and len(columns) == 1:
        (title,) = columns
        if title.startswith(PREFIX) and title != PREFIX:
            names = (f"not {title.removeprefix(PREFIX)}", title.removeprefix(PREFIX))
    if names is None or not (notes := code_notes(names)):
        return ()
    if isinstance(labels, Labels):
        return notes if labels.class_names is None else ()
    coded = hasattr(labels, "detach") or np.asarray(labels).dtype.kind in "biuf"
    return notes if coded else ()

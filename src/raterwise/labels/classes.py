"""Classes as people write them, in numbers, words or categories, as codes 0 … K-1."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise import rules
from raterwise.arrays import as_array, as_integer_array
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.frames import Values, columns_of, refuse_ragged, values_of
from raterwise.rules import listed, positive_integer
from raterwise.types import Integers

NO_RATING = -1
ANSWERS = {
    **dict.fromkeys(("0", "no", "n", "false", "f", "negative", "absent"), 0),
    **dict.fromkeys(("1", "yes", "y", "true", "t", "positive", "present"), 1),
    **dict.fromkeys(("nein", "falsch", "negativ", "non", "faux", "falso"), 0),
    **dict.fromkeys(("ja", "wahr", "positiv", "oui", "vrai", "si", "sí", "sì", "vero"), 1),
}
"""What a rater may answer to the question whether something is there, in small letters.

True and false are what spreadsheets write in their own language.
"""
MEANS_NONE = re.compile(
    r"#?n/?an?|#?null!?|none|missing|unknown|[.?-]+|-[0-9]+|#(div/0|ref|value|num|name)[!?]",
    re.IGNORECASE,
)
"""What people and spreadsheets write where there is nothing."""
MISSING_CODES = frozenset((9, 77, 88, 99, 777, 888, 999, 9999))
"""What people write for no rating in columns of numbers."""
WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)(?:\.0*)?")


@dataclass(frozen=True, eq=False)
class Coded:
    """Classes as codes, and how many classes there are."""

    codes: Integers
    """(N,) or (N, R); NO_RATING where there is none."""
    num_classes: int
    class_names: tuple[str, ...] | None
    inferred: bool = False
    """Whether the number of classes is only the largest code and one."""
    gaps: bool = False
    """Whether some are NO_RATING on purpose, and no mistake."""


# words --------------------------------------------------------------------------------------------


def codes_of_texts(
    texts: Iterable[str], class_names: Sequence[str], *, ignore_case: bool = False
) -> dict[str, int]:
    """Return what each text means: names where they are names, codes where they can only be.

    Where no class has a whole number for a name, texts that are nothing but whole numbers are
    codes: 0 is the first class. Where the classes are "not malignant" and "malignant", or answers
    such as 0 and 1 themselves, yes and no (true and false, …) answer the question.

    >>> codes_of_texts(["malignant"], ["benign", "malignant"])
    {'malignant': 1}
    >>> codes_of_texts(["1.0", "0"], ["benign", "malignant"])
    {'1.0': 1, '0': 0}
    >>> codes_of_texts(["YES", "no"], ["not malignant", "malignant"])
    {'YES': 1, 'no': 0}
    """
    values = list(texts)
    names = {name: k for k, name in enumerate(class_names)}
    numbers = {_number(name): k for name, k in names.items()}
    if not any(map(is_whole, class_names)) and all(map(is_whole, values)):
        numbers = {k: k for k in range(len(class_names))}
    elif None in numbers or len(numbers) < len(names):  # "1" and "01" are different names
        numbers = {}
    found = {value: names.get(value, numbers.get(_number(value))) for value in values}
    if _is_question(class_names):
        found = {v: ANSWERS.get(v.lower()) if k is None else k for v, k in found.items()}
    if ignore_case:
        folded = {_folded(name): k for name, k in names.items()}
        if len(folded) < len(names):
            raise InvalidInputError(
                f"ignore_case: the classes {listed(class_names)} differ in upper and lower case"
            )
        found = {
            value: folded.get(_folded(value)) if k is None else k for value, k in found.items()
        }
    return {value: code for value, code in found.items() if code is not None}


def _is_question(class_names: Sequence[str]) -> bool:
    """Tell whether two classes are no and yes."""
    if len(class_names) != 2:
        return False
    no, yes = class_names
    # N and T may be anything; 0 and 1, no and yes, negative and positive are answers.
    told = not any(name.isalpha() and len(name) == 1 for name in class_names)
    answers = ANSWERS.get(no.lower()), ANSWERS.get(yes.lower())
    return no == f"not {yes}" or (told and answers == (0, 1))


def as_text(value: object) -> str:
    """Return a rating as text, "" where there is none; true is "1" and 1.0 is a number like 1."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, bool | np.bool_) else str(value).strip()


def same_text(text: str) -> str:
    """Return the text that all writings of one value share: "1" for "1.0"."""
    number = _number(text)
    return text if number is None else str(number)


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number; columns with gaps are often written 1.0 for 1."""
    return _number(text) is not None


def missing_codes(texts: Iterable[str]) -> list[str]:
    """Return the numbers that are far beyond all others and may stand for no rating.

    >>> missing_codes(["0", "1", "99"]), missing_codes(["1", "5", "9"]), missing_codes(["x", "99"])
    (['99'], [], [])
    """
    numbers = {text: _number(text) for text in texts}
    known = [n for n in numbers.values() if n is not None and n not in MISSING_CODES]
    if None in numbers.values() or not known:
        return []
    beyond = max(known) + 2 * (max(known) - min(known) + 1)
    return [t for t, n in numbers.items() if n in MISSING_CODES and n is not None and n > beyond]


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _number(text: str) -> int | None:
    match = WHOLE_NUMBER.fullmatch(text)
    return int(match[1]) if match else None


# arrays and columns -------------------------------------------------------------------------------


def coded_column(
    values: Any, name: str, num_classes: int | None, class_names: Sequence[str] | None
) -> Coded:
    """Return one label per case as codes (N,).

    Of a frame's column, and of words, what is missing is no rating; a plain array of numbers has
    no such gaps.
    """
    if columns_of(values, name) is None and _of_categorical(values) is None:
        array = _plain(values, name)
        if not array.ndim and array.dtype.kind not in "biuf":
            raise InvalidTypeError(
                f"{name}: must be an array of numbers or words, one per case; got {values!r}"
            )
        rules.check_dimensions(name, array.shape, (1,))
        if array.dtype.kind in "biuf":
            codes = as_integer_array(array, name, ndim=1)
            return _with_names(codes, _least_two(num_classes), class_names, name)
        values = array
    found = coded_columns([values], name, num_classes, class_names, ())
    return replace(found, codes=found.codes[:, 0])


def coded_columns(
    columns: Sequence[Any],
    name: str,
    num_classes: int | None,
    class_names: Sequence[str] | None,
    missing: Any,
) -> Coded:
    """Return several columns of one length as codes (N, R)."""
    parsed = [_parsed(column, name) for column in columns]
    return _of_values(parsed, name, _least_two(num_classes), class_names, _listed(missing))


def coded_matrix(
    values: Any,
    name: str,
    num_classes: int | None,
    class_names: Sequence[str] | None,
    missing: Any = NO_RATING,
) -> tuple[Coded, tuple[str, ...] | None]:
    """Return ratings (N, R) as codes, and what the raters are called if they have names.

    NaN, None, NA, what a masked array hides, and whatever is `missing`, are no rating.
    """
    num_classes, absent = _least_two(num_classes), _listed(missing)
    columns = columns_of(values, name)
    if columns is not None:
        parsed = [values_of(column) for column in columns.values()]
        raters = tuple(columns) if all(columns) else None
        return _of_values(parsed, name, num_classes, class_names, absent), raters
    hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = _plain(values.data if hidden is not None else values, name)
    if array.ndim != 2:
        raise InvalidInputError(f"{name}: must be (cases, raters); got shape {array.shape}")
    if array.dtype.kind in "biuf":
        codes = _numeric(array, name, absent, num_classes, hidden)
        return _with_names(codes, num_classes, class_names, name, gaps=True), None
    if hidden is not None:
        array = array.astype(object)
        array[hidden] = None
    parsed = [values_of(array[:, j]) for j in range(array.shape[1])]
    return _of_values(parsed, name, num_classes, class_names, absent), None


def names_of(names: Iterable[str], num_classes: int | None = None) -> tuple[str, ...]:
    """Return the names of the classes, one for each: a list or an array, but no word alone."""
    alone = isinstance(names, str) or not isinstance(names, Iterable)
    found = () if alone else tuple(str(name) for name in names)
    if alone or num_classes not in (None, len(found)):
        got = repr(names) if alone else f"{len(found)} names"
        classes = "classes" if num_classes is None else f"{num_classes} classes"
        raise InvalidInputError(f"class_names: must name each of the {classes}; got {got}")
    if len(found) < 2:
        raise InvalidInputError(f"class_names: must name at least 2 classes; got {listed(found)}")
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise InvalidInputError(
            f"class_names: must differ from each other; {twice!r} is there twice"
        )
    return found


def _least_two(num_classes: int | None) -> int | None:
    return None if num_classes is None else positive_integer("num_classes", num_classes, least=2)


def _listed(missing: Any) -> tuple[Any, ...]:
    if isinstance(missing, Collection) and not isinstance(missing, str):
        return tuple(missing)
    return (missing,)


def _plain(values: Any, name: str) -> NDArray[Any]:
    """Return an array of numbers, text or objects; ragged and masked ones are refused."""
    if hasattr(values, "detach") or isinstance(values, np.ma.MaskedArray):
        return as_array(values, name)  # which refuses hidden values
    try:
        array = np.asarray(values)
        if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
            array = np.asarray(values, dtype=object)  # NumPy would write None as "None"
    except (ValueError, TypeError) as error:
        if isinstance(values, list | tuple):
            refuse_ragged(values, name)
        raise InvalidTypeError(f"{name}: must be an array of numbers; {error}") from error
    if array.dtype.kind not in "biufUSTO":
        raise rules.not_numbers(name, array.dtype, array.flat[0] if array.size else None)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _of_categorical(values: Any) -> Values | None:
    """Return the values of a bare pandas Categorical, which is no series."""
    categories, codes = getattr(values, "categories", None), getattr(values, "codes", None)
    if categories is None or codes is None:
        return None
    names = tuple(map(str, categories))
    listed = [None if code < 0 else names[code] for code in np.asarray(codes).tolist()]
    return Values(None, listed, names, "category")


def _parsed(column: Any, name: str) -> Values:
    """Return one column, of a frame or an array."""
    columns = columns_of(column, name)
    if columns is not None and len(columns) != 1:
        raise InvalidInputError(
            f"{name}: must be one column, with one class per case; got {len(columns)} columns. "
            "Labels.from_frame takes a column for each rater, Labels.from_counts one for each class"
        )
    if columns is not None:
        return values_of(next(iter(columns.values())))
    if (categorical := _of_categorical(column)) is not None:
        return categorical
    array = _plain(column, name)
    rules.check_dimensions(name, array.shape, (1,))
    return values_of(array)


def _numeric(
    array: NDArray[Any],
    name: str,
    missing: Sequence[Any],
    num_classes: int | None,
    hidden: NDArray[np.bool_] | None = None,
) -> Integers:
    """Return numbers as codes; NaN, what is hidden and whatever is `missing` are no rating."""
    present = np.ones(array.shape, bool) if array.dtype.kind != "f" else ~np.isnan(array)
    if hidden is not None:
        present &= ~hidden
    for value in missing:
        if isinstance(value, bool | int | float | np.number) and value == value:
            present &= array != value
    found = as_integer_array(array[present], name, ndim=1)
    if (wrong := found == NO_RATING).any():  # the code of no rating, and yet it is one
        classes = num_classes or max(2, int(found.max()) + 1)
        raise rules.not_a_class(name, int(np.flatnonzero(wrong)[0]), NO_RATING, classes)
    if present.all():
        return found.reshape(array.shape)
    codes = np.full(array.shape, NO_RATING, np.int64)
    codes[present] = found
    return codes


def _of_values(
    columns: Sequence[Values],
    name: str,
    num_classes: int | None,
    class_names: Sequence[str] | None,
    missing: Sequence[Any],
) -> Coded:
    """Return columns as codes (N, R)."""
    numbers = [column.numbers for column in columns if column.numbers is not None]
    if len(numbers) == len(columns):
        arrays = [_numeric(array, name, missing, num_classes) for array in numbers]
        return _with_names(np.stack(arrays, axis=1), num_classes, class_names, name, gaps=True)
    names = _order_of_classes(columns, name, class_names)
    codes = np.stack([_texts(column, name, names, missing) for column in columns], axis=1)
    total = len(names) if num_classes is None else num_classes
    if class_names is None and len(names) != total:
        raise InvalidInputError(
            f"{name}: must have a category for each of the {total} classes; got {listed(names)}: "
            "class_names says which classes there are"
        )
    return Coded(codes, total, names_of(names, total), gaps=bool((codes == NO_RATING).any()))


def _order_of_classes(
    columns: Sequence[Values], name: str, class_names: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the classes in their order: as told, or that of the categories; never a guess."""
    if class_names is not None:
        return names_of(class_names)
    told = {column.categories for column in columns if column.categories is not None}
    if len(told) == 1:
        return told.pop()
    if told:
        raise InvalidInputError(
            f"{name}: must have the same categories in each column; got "
            f"{' and '.join(listed(one) for one in list(told)[:2])}: class_names says their order"
        )
    odd = next(column for column in columns if column.numbers is None)
    first = next((value for value in odd.objects if isinstance(value, str)), None)
    first = next((v for v in odd.objects if v is not None), None) if first is None else first
    raise InvalidTypeError(
        f"{name}: must be an array of numbers, or words with class_names, which say the order of "
        f"the classes; got dtype {odd.kind} (first value {first!r})"
    )


def _texts(
    column: Values, name: str, class_names: tuple[str, ...], missing: Sequence[Any]
) -> Integers:
    if column.numbers is not None:
        objects: Sequence[Any] = [None if v != v else v for v in column.numbers.tolist()]
    else:
        objects = column.objects
    texts = [as_text(value) for value in objects]
    absent = {"", *(same_text(as_text(value)) for value in missing)}
    rated = [text for text in dict.fromkeys(texts) if same_text(text) not in absent]
    known = codes_of_texts(rated, class_names)
    for text in rated:
        if text not in known:
            none = (
                f' (if that is no rating: missing="{text}")' if MEANS_NONE.fullmatch(text) else ""
            )
            raise InvalidInputError(
                f"{name}: must hold classes; entry {texts.index(text)} is {text!r}"
                f"{rules.did_you_mean(text, class_names)}, and the classes are "
                f"{listed(class_names)}{none}"
            )
    return np.array([known.get(text, NO_RATING) for text in texts], np.int64)


def _with_names(
    codes: Integers,
    num_classes: int | None,
    class_names: Sequence[str] | None,
    name: str,
    *,
    gaps: bool = False,
) -> Coded:
    """Return codes with the number of classes: as told, as named, or as many as are there."""
    inferred = num_classes is None and class_names is None
    names = None if class_names is None else names_of(class_names, num_classes)
    if num_classes is None:
        num_classes = _inferred(codes, name) if names is None else len(names)
    gaps = gaps and bool((codes == NO_RATING).any())
    return Coded(codes, num_classes, names, inferred, gaps)


def _inferred(codes: Integers, name: str) -> int:
    if codes.size == 0 or int(codes.max()) < 0:
        raise InvalidInputError(
            f"num_classes: must be given; the {name} hold no class to infer it from"
        )
    return max(2, int(codes.max()) + 1)

"""The checks and their messages, from plain numbers, shared by arrays and tensors.

Whoever holds the data finds the first offence in its own way (a compiled loop, a pass on a GPU)
and asks here for the words. Each function returns the error, for the caller to raise; those
called `check_…`, `choose` and the like need nothing but scalars and raise it themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from numbers import Integral
from typing import Any

from raterwise.errors import InvalidInputError, InvalidTypeError

MOST_WEIGHT = 1e300
"""What weights may sum to: beyond it, sums over raters and classes are no numbers."""

LARGE_LOGIT = 15.0
"""Beyond it logits are hardly ever, and percentages mostly."""

Shape = Sequence[int]
FIRST_NAMED = 5
"""How many of the offending cases a message names."""


def first_cases(names: Iterable[object], what: str = "cases") -> str:
    """How to name the first few of some cases, or of the rows of a file.

    >>> first_cases([3]), first_cases([3, 7]), first_cases(range(8))
    ('case 3', 'cases 3, 7', 'cases 0, 1, 2, 3, 4 …')
    """
    some = list(islice(names, FIRST_NAMED + 1))
    more = " …" if len(some) > FIRST_NAMED else ""
    what = what.removesuffix("s") if len(some) == 1 else what
    return f"{what} {', '.join(str(name) for name in some[:FIRST_NAMED])}{more}"


def have(number: int) -> str:
    """Return the verb of so many.

    >>> have(1), have(2)
    ('has', 'have')
    """
    return "has" if number == 1 else "have"


def listed(names: Sequence[object], most: int = 20) -> str:
    """Return names for a message, in quotes so that blanks show, and no more than `most`.

    >>> listed(["benign", " malignant"]), listed([0, 1, 2], most=2)
    ("'benign', ' malignant'", '0, 1 … (3 in all)')
    """
    quoted = (repr(name) for name in names[:most])
    shown = ", ".join(text if len(text) <= 80 else f"{text[:80]}…" for text in quoted)
    return shown + (f" … ({len(names)} in all)" if len(names) > most else "")


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for none: None, NaN, NaT or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    try:
        return value is None or bool(value != value)
    except ValueError:  # an array, which says so of each of its values
        return False
    except TypeError:  # pandas' NA neither equals itself nor does not
        return True


def p_in_words(p: float) -> str:
    """Return a p-value as sentences have it.

    >>> p_in_words(0.0005), p_in_words(0.0213), p_in_words(1.0)
    ('p < 0.001', 'p = 0.021', 'p = 1')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """Return " (did you mean 'x'?)" where a known word is close to this one; "" otherwise.

    >>> did_you_mean("brir", ["ece", "brier"]), did_you_mean("Reader", ["reader", "case"])
    (" (did you mean 'brier'?)", " (did you mean 'reader'?)")
    >>> did_you_mean("xyz", ["ece", "brier"])
    ''
    """
    by_text = {str(name).lower(): str(name) for name in known}
    close = get_close_matches(str(word).lower(), by_text, n=1, cutoff=0.65)
    return f" (did you mean {by_text[close[0]]!r}?)" if close else ""


# options ------------------------------------------------------------------------------------------


def choose(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return `value` when it is one of `allowed`; otherwise say what is."""
    one_value(name, value)
    if value not in allowed:
        words = ", ".join(str(word) for word in allowed)
        meant = did_you_mean(value, allowed)
        raise InvalidInputError(f"{name}: must be one of {words}; got {value!r}{meant}")
    return value


def one_value(name: str, value: Any) -> None:
    """Raise where an option is an array, such as weights that were given by place."""
    if getattr(value, "shape", ()):
        raise InvalidTypeError(
            f"{name}: must be one value; got an array of shape {tuple(value.shape)} (weights are "
            "given by their name, weights=)"
        )


def several_names(name: str, given: Any) -> tuple[Any, ...]:
    """Return a list of names, an array or an index of them; a word alone is one, None is none.

    >>> several_names("count_columns", "count_benign"), several_names("count_columns", None)
    (('count_benign',), ())
    """
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
        raise InvalidTypeError(f"{name}: must be a list of names; got {given!r:.80}")
    return tuple(given)


def positive_integer(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an int of at least `least`, and of at most `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidTypeError(f"{name}: must be a whole number; got {value!r}")
    whole = int(value)
    if whole < least:
        raise InvalidInputError(f"{name}: must be at least {least}; got {whole}")
    if most is not None and whole > most:
        raise InvalidInputError(f"{name}: must be at most {most:,}; got {whole:,}")
    return whole


def one_class(name: str, value: Any, classes: int) -> int:
    """Return `value` as the number of one of so many classes."""
    if positive_integer(name, value, least=0) >= classes:
        raise InvalidInputError(
            f"{name}: must be one of the classes 0 … {classes - 1}; got {value}"
        )
    return int(value)


def positive(name: str, value: float) -> float:
    """Return `value` when it is positive and finite."""
    a_number(name, value)
    if not 0 < value < math.inf:
        raise InvalidInputError(f"{name}: must be positive and finite; got {value}")
    return value


def at_least_one(name: str, value: float) -> float:
    """Return `value` when it is 1 or more; it may be infinite."""
    a_number(name, value)
    if not value >= 1:
        raise InvalidInputError(f"{name}: must be at least 1; got {value}")
    return value


def at_least_zero(name: str, value: float) -> float:
    """Return `value` when it is finite and not negative."""
    a_number(name, value)
    if not 0 <= value < math.inf:
        raise InvalidInputError(f"{name}: must be finite and not negative; got {value}")
    return value


def between_zero_and_one(name: str, value: float) -> float:
    """Return `value` when it lies between 0 and 1, both excluded."""
    a_number(name, value)
    if not 0 < value < 1:
        raise InvalidInputError(f"{name}: must lie between 0 and 1, both excluded; got {value}")
    return float(value)


def a_number(name: str, value: Any) -> None:
    """Raise where an option is no number; it may be infinite."""
    try:
        bool(value < math.inf)
        float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # 2**1024; a tensor
        raise InvalidTypeError(f"{name}: must be a number; got {value!r:.80}") from None


# arrays of any kind -------------------------------------------------------------------------------


def not_numbers(
    name: str, dtype: object, first: object = None, *, objects: bool = False, missing: int = 0
) -> InvalidTypeError:
    """Values of a kind that is no number; or `objects` that are, but for those `missing`."""
    kind = str(dtype).removeprefix("torch.")
    seen = "" if first is None else f" (first value {first!r})"
    way = ""
    if objects and missing:
        way = f": {missing} values are missing (NA, None or NaN); leave these cases out"
    elif objects:
        way = f": {name}.astype(float) makes numbers of them"
    return InvalidTypeError(f"{name}: must be an array of numbers; got dtype {kind}{seen}{way}")


def masked_values(name: str, masked: int, size: int) -> InvalidTypeError:
    """An array of which some values are hidden: leaving them in or out would both be a guess."""
    return InvalidTypeError(
        f"{name}: must not be a masked array with hidden values; {masked} of {size} are masked. "
        "Leave these cases out, or fill them in with .filled(…)"
    )


def check_dimensions(name: str, shape: Shape, allowed: tuple[int, ...]) -> None:
    """Raise where an array has not one of the allowed numbers of dimensions."""
    if len(shape) not in allowed:
        words = " or ".join(f"{n}-dimensional" for n in allowed)
        raise InvalidInputError(f"{name}: must be {words}; got shape {tuple(shape)}")


def check_one_per_case(name: str, shape: Shape, cases: int) -> None:
    """Raise where there is not one value for each case."""
    check_dimensions(name, shape, (1,))
    if shape[0] != cases:
        raise InvalidInputError(
            f"{name}: must have one value per case; got {shape[0]} for {cases} cases"
        )


def contains_nan(name: str, missing: int, row: int | None = None) -> InvalidInputError:
    """Values that are not there."""
    place = None if row is None else f"row {row}"
    first = "" if place is None else f", the first in {place}"
    return InvalidInputError(
        f"{name}: must not contain NaN; {missing} values are NaN{first}", where=place
    )


def not_whole(name: str, value: float, missing: int) -> InvalidInputError:
    """Numbers that should be whole: the first that is not, and how many are NaN."""
    if missing:
        return InvalidInputError(f"{name}: must be whole numbers; {missing} are NaN")
    if math.isinf(value):
        return InvalidInputError(f"{name}: must be whole numbers; some are infinite")
    return InvalidInputError(f"{name}: must be whole numbers; got {value:.6g}")


# probabilities ------------------------------------------------------------------------------------

OVERSHOOT = 1e-6
"""By so much a probability may leave [0, 1] and counts as 0 or 1: the mean of many draws that are
sure is 1.0000001 in float32."""


def check_probabilities_shape(name: str, shape: Shape) -> None:
    """Raise where probabilities are not (N, K) or (N,) with a case and two classes at least."""
    check_dimensions(name, shape, (1, 2))
    if shape[0] == 0:
        raise InvalidInputError(f"{name}: must hold at least one case; got shape {tuple(shape)}")
    if len(shape) == 2 and shape[1] < 2:
        raise InvalidInputError(
            f"{name}: must have at least 2 classes, or be (N,) for the probability of class 1; "
            f"got shape {tuple(shape)}"
        )


def bad_row(
    name: str, row: int, values: Sequence[float], tolerance: float, count_nan: Callable[[], int]
) -> InvalidInputError:
    """What is wrong with the first bad row; `count_nan` looks at all of them.

    >>> print(bad_row("probs", 3, [1.5, -0.5], 1e-4, lambda: 0))
    probs: must lie in [0, 1]; row 3 holds 1.5 (logits need a softmax first)
    """
    if any(math.isnan(value) for value in values):
        return contains_nan(name, count_nan(), row)
    place = f"row {row}"
    outside = [value for value in values if not 0 <= value <= 1]
    if outside:
        hint = "" if math.isinf(outside[0]) else " (logits need a softmax first)"
        if _are_percentages(values):
            hint = f" ({name} / 100 makes probabilities of percentages)"
        text = f"{name}: must lie in [0, 1]; {place} holds {outside[0]:.7g}{hint}"
    else:
        total = math.fsum(values)
        text = (
            f"{name}: rows must sum to 1 within {spelled(tolerance)}; {place} sums to {total:.6g}"
        )
    return InvalidInputError(text, where=place)


def _are_percentages(values: Sequence[float]) -> bool:
    """Tell whether a row sums to 100, but for rounding to whole ones; one alone is no logit."""
    if not all(0 <= value <= 100 for value in values):
        return False
    if len(values) == 1:  # which may be no logit, as none is that large
        return values[0] > LARGE_LOGIT
    return abs(math.fsum(values) - 100) <= len(values) / 2


def spelled(tolerance: float) -> str:
    """Return a power of ten as people write it.

    >>> spelled(1e-4)
    '1e-4'
    """
    return f"{tolerance:.0e}".replace("e-0", "e-")


# labels -------------------------------------------------------------------------------------------


def not_a_class(
    name: str, entry: int, value: float, classes: int, besides: str = "", after: str = ""
) -> InvalidInputError:
    """A label that is no class; `besides` says what else it may be, `after` what to do."""
    return InvalidInputError(
        f"{name}: must be classes 0 … {classes - 1}{besides}; entry {entry} is {value:.6g}{after}"
    )


def negative_count(name: str, case: int, k: int, value: float) -> InvalidInputError:
    """A number of labels below 0."""
    return InvalidInputError(
        f"{name}: label counts must not be negative; case {case}, class {k} has {value:.6g}"
    )


def check_number_of_cases(name: str, got: int, cases: int, probs: str = "probs") -> None:
    """Raise where labels and probabilities are not of the same cases."""
    if got != cases:
        raise InvalidInputError(f"{name}: must match {probs}; got {got} labels for {cases} cases")


def check_number_of_classes(name: str, got: int, classes: int, probs: str = "probs") -> None:
    """Raise where labels and probabilities are not of the same classes."""
    if got != classes:
        raise InvalidInputError(
            f"{name}: must have the classes of {probs}; got {got} classes in {name} "
            f"and {classes} in {probs}"
        )


def unfit_labels(
    name: str, shape: Shape, per_case: Shape, probs: Shape, like: str
) -> InvalidInputError:
    """Labels that are neither one class per case nor label counts, of dense cases or plain ones."""
    return InvalidInputError(
        f"{name}: must be {tuple(per_case)} classes or {tuple(probs)} label counts, as {like}; "
        f"got shape {tuple(shape)}"
    )


def unrated(
    name: str, number: int, cases: int, first: str, *, as_raters: bool = False
) -> InvalidInputError:
    """Cases that nobody rated; `first` names some of them.

    `as_raters` says that the histograms could be ratings: no number in them is beyond the classes.
    """
    other = "; if the columns are raters and not classes, Labels.from_ratings takes them"
    some = f"{number:,} of {cases:,} {have(number)} none ({first})"
    return InvalidInputError(
        f"{name}: every case needs a rating; {some}; "
        f'on_unrated="drop" leaves them out{other if as_raters else ""}'
    )


def none_rated(name: str) -> InvalidInputError:
    """No case was rated."""
    return InvalidInputError(f"{name}: every case needs a rating; none has one")


def too_few_raters(
    name: str, least: int, number: int, cases: int, first: str, *, dropping: bool,
    way_out: str = 'on_single="drop" leaves them out',
) -> InvalidInputError:  # fmt: skip
    """Cases with fewer labels than a metric needs; `dropping`, nothing else would be left."""
    need = f"{name}: needs at least {least} labels per case"
    if dropping or number == cases:  # leaving them out would not help
        return InvalidInputError(f"{need}; no case has that many")
    some = f" ({first})" if first else ""
    fewer = f"{number:,} of {cases:,} cases {have(number)} fewer{some}"
    return InvalidInputError(f"{need}; {fewer}; {way_out}")


# weights and patients -----------------------------------------------------------------------------


def bad_weight(name: str, case: int, value: float) -> InvalidInputError:
    """A weight that is negative or no number."""
    return InvalidInputError(
        f"{name}: must be finite and not negative; case {case} has {value:.6g}"
    )


def no_weight(name: str) -> InvalidInputError:
    """Weights that are all 0."""
    return InvalidInputError(f"{name}: at least one must be positive; all are 0")


def check_sum_of_counts(name: str, total: float) -> None:
    """Refuse counts whose sum an integer does not hold."""
    if total >= 2.0**63:
        raise InvalidInputError(f"{name}: must sum to less than 2**63; got {total:.3g}")


def check_sum_of_weights(name: str, total: float) -> None:
    """Refuse weights whose sum, over raters and classes, leaves the numbers."""
    if not total < MOST_WEIGHT:
        raise InvalidInputError(
            f"{name}: must sum to less than {MOST_WEIGHT:g}; got {total:.3g} (only their ratios "
            "matter: divide them by their mean)"
        )


def check_squared_weights(name: str, squares: float) -> None:
    """Refuse weights whose squares, which intervals rest on, are infinite or vanish."""
    if not 0 < squares < math.inf:
        size = "large" if squares else "small"
        raise InvalidInputError(
            f"{name}: are too {size} to compute the effective number of cases (only their ratios "
            "matter: divide them by their mean)"
        )


def missing_patients(name: str, number: int, cases: int, first: str) -> InvalidInputError:
    """Cases of an unknown patient: they would all be taken for one."""
    return InvalidInputError(
        f"{name}: must name the patient of each case; {number} of {cases} are NaN or None "
        f"({first}). Give each unknown patient a name of its own, or leave these cases out"
    )

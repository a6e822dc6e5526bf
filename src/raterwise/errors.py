"""The exceptions of raterwise, all of them ordinary Python errors underneath.

RaterwiseError
├── InvalidInputError     (ValueError)   an argument breaks a rule; names argument, rule, value
├── InvalidTypeError      (TypeError)    an argument is of a kind that cannot be used
├── UndefinedMetricError  (ValueError)   the metric has no value on these data
├── MergeError            (ValueError)   two summaries that cannot be added
└── MissingExtraError     (ImportError)  an optional dependency is not installed

RaterwiseWarning          (UserWarning)  a result that holds, and something to know about it

Messages read "argument: rule; value". `error.argument` is the name of the argument, where the
error is about one.
"""

from __future__ import annotations

from typing import Self


def argument_of(message: str) -> str | None:
    """Return the name that a message begins with, where that can be one of an argument.

    >>> argument_of("bins: must be at least 1; got 0")
    'bins'
    >>> argument_of("p.csv: there is no such file") is argument_of("no case was given") is None
    True
    """
    name, colon, _ = message.partition(": ")
    return name if colon and name.isidentifier() else None


class RaterwiseError(Exception):
    """The base class of every error that raterwise raises deliberately.

    Parameters
    ----------
    message : str
        What is wrong, as "argument: rule; value".
    argument : str, optional
        The name of the argument; by default the one that the message begins with.
    where : str, optional
        The part of the message that names a place, such as "row 3".

    See Also
    --------
    InvalidInputError, InvalidTypeError, UndefinedMetricError, MergeError, MissingExtraError

    Examples
    --------
    >>> InvalidInputError("bins: must be at least 1; got 0").argument
    'bins'
    """

    begins_with_argument = True

    def __init__(
        self, message: str = "", *, argument: str | None = None, where: str | None = None
    ) -> None:
        super().__init__(message)
        if argument is None and self.begins_with_argument:
            argument = argument_of(message)
        self.argument = argument
        self.where = where

    def renamed(self, argument: str, where: str | None = None) -> Self:
        """Return the error with other names for the argument or the place.

        Parameters
        ----------
        argument : str
            The new name of the argument.
        where : str, default None
            The new name of the place, if the error names one.

        Returns
        -------
        RaterwiseError
            An error of the same class.

        Examples
        --------
        >>> error = InvalidInputError("probs: must not be NaN; row 3 is", where="row 3")
        >>> str(error.renamed("probabilities", "a voxel"))
        'probabilities: must not be NaN; a voxel is'
        """
        text = str(self)
        if self.argument is not None:
            text = f"{argument}{text.removeprefix(self.argument)}"
        if self.where is not None and where is not None:
            text = text.replace(self.where, where, 1)
        return type(self)(text, argument=argument, where=where or self.where)


class InvalidInputError(RaterwiseError, ValueError):
    """An argument breaks a rule; the message names the argument, the rule and the value.

    See Also
    --------
    InvalidTypeError : an argument of a wrong type.
    UndefinedMetricError : valid input on which the metric has no value.

    Examples
    --------
    >>> import raterwise as rw
    >>> rw.ece([[0.9, 0.2]], [0])
    Traceback (most recent call last):
    ...
    raterwise.errors.InvalidInputError: probs: rows must sum to 1 within 1e-4; row 0 sums to 1.1
    """


class InvalidTypeError(RaterwiseError, TypeError):
    """An argument has a type that cannot be used, such as text instead of numbers.

    See Also
    --------
    InvalidInputError : an argument with a wrong value.

    Examples
    --------
    >>> import raterwise as rw
    >>> rw.fleiss_kappa([0, 1])
    Traceback (most recent call last):
    ...
    raterwise.errors.InvalidTypeError: labels: must be Labels with several labels per case, as ...
    """


class UndefinedMetricError(RaterwiseError, ValueError):
    """The metric has no value on these data, such as AUCCC when every case is right.

    See Also
    --------
    InvalidInputError : input that cannot be used.

    Examples
    --------
    >>> import raterwise as rw
    >>> rw.fleiss_kappa(rw.Labels.from_counts([[2, 0], [2, 0]]))
    Traceback (most recent call last):
    ...
    raterwise.errors.UndefinedMetricError: fleiss_kappa: undefined, all labels of cases with ...
    """

    begins_with_argument = False  # but with the name of the metric


class MergeError(RaterwiseError, ValueError):
    """Two summaries were made with different bins, questions or classes and cannot be added.

    See Also
    --------
    evaluate_stream : summaries that are merged.

    Examples
    --------
    >>> issubclass(MergeError, ValueError)
    True
    """


class MissingExtraError(RaterwiseError, ImportError):
    """An optional dependency is needed; the message says which extra to install.

    See Also
    --------
    RaterwiseError : all every error that raterwise raises deliberately.

    Examples
    --------
    >>> issubclass(MissingExtraError, ImportError)
    True
    """

    begins_with_argument = False


def missing_extra(need: str, extra: str) -> MissingExtraError:
    """Return the error that says what is needed and how to install it.

    >>> print(missing_extra("figures need matplotlib", "report"))
    figures need matplotlib: pip install "raterwise[report]"
    (in a checkout: pip install -e ".[report]")
    """
    return MissingExtraError(
        f'{need}: pip install "raterwise[{extra}]" (in a checkout: pip install -e ".[{extra}]")'
    )


def named(error: Exception, name: str) -> str:
    """Return what an error says, with the name of the part it is about.

    >>> named(ValueError("bins: must be at least 1"), "part 3")
    'part 3: bins: must be at least 1'
    >>> named(ValueError("part 3: cannot be read"), "part 3")
    'part 3: cannot be read'
    """
    text = str(error)
    return text if name in text else f"{name}: {text}"


class RaterwiseWarning(UserWarning):
    """A caution about a valid result; errors are RaterwiseError.

    See Also
    --------
    RaterwiseError : stops the computation.

    Examples
    --------
    >>> issubclass(RaterwiseWarning, UserWarning)
    True
    """

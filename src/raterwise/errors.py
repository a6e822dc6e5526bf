"""The exceptions of raterwise, all of them ordinary Python errors underneath.

RaterwiseError
├── InvalidInputError     (ValueError)   an argument breaks a rule; names argument, rule, value
├── InvalidTypeError      (TypeError)    an argument is of a kind that cannot be used
├── UndefinedMetricError  (ValueError)   the metric has no value on these data
├── MergeError            (ValueError)   two summaries that cannot be added
└── MissingExtraError     (ImportError)  an optional dependency is not installed

RaterwiseWarning          (UserWarning)  a result that holds, and something to know about it
"""

__all__ = [
    "InvalidInputError",
    "InvalidTypeError",
    "MergeError",
    "MissingExtraError",
    "RaterwiseError",
    "RaterwiseWarning",
    "UndefinedMetricError",
]


class RaterwiseError(Exception):
    """The base of everything that raterwise raises on purpose."""


class InvalidInputError(RaterwiseError, ValueError):
    """An argument breaks a rule; the message names the argument, the rule and the value."""


class InvalidTypeError(RaterwiseError, TypeError):
    """An argument is of a kind that cannot be used, such as text where numbers are needed."""


class UndefinedMetricError(RaterwiseError, ValueError):
    """The metric has no value on these data, such as AUCCC when every case is right."""


class MergeError(RaterwiseError, ValueError):
    """Two summaries were made with different bins, questions or classes and cannot be added."""


class MissingExtraError(RaterwiseError, ImportError):
    """An optional dependency is needed; the message says which extra to install."""


class RaterwiseWarning(UserWarning):
    """Something to know about a result that holds all the same; errors are RaterwiseError."""

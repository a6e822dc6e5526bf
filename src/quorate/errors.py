"""The exceptions of quorate, all of them ordinary Python errors underneath.

QuorateError
├── InvalidInputError     (ValueError)   an argument breaks a rule; names argument, rule, value
├── InvalidTypeError      (TypeError)    an argument is of a kind that cannot be used
├── UndefinedMetricError  (ValueError)   the metric has no value on these data
├── MergeError            (ValueError)   two summaries that cannot be added
└── MissingExtraError     (ImportError)  an optional dependency is not installed
"""

__all__ = [
    "InvalidInputError",
    "InvalidTypeError",
    "MergeError",
    "MissingExtraError",
    "QuorateError",
    "UndefinedMetricError",
]


class QuorateError(Exception):
    """The base of everything that quorate raises on purpose."""


class InvalidInputError(QuorateError, ValueError):
    """An argument breaks a rule; the message names the argument, the rule and the value."""


class InvalidTypeError(QuorateError, TypeError):
    """An argument is of a kind that cannot be used, such as text where numbers are needed."""


class UndefinedMetricError(QuorateError, ValueError):
    """The metric has no value on these data, such as AUCCC when every case is right."""


class MergeError(QuorateError, ValueError):
    """Two summaries were made with different bins, questions or classes and cannot be added."""


class MissingExtraError(QuorateError, ImportError):
    """An optional dependency is needed; the message says which extra to install."""

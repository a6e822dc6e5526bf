"""What a person types for an option, as the library takes it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from raterwise.errors import InvalidInputError

Number = TypeVar("Number", int, float)


def comma_list(text: str | None) -> Sequence[str]:
    """Return the parts of a,b,c; a part that has a comma itself stands in double quotes.

    >>> comma_list('benign, "other, rare"')
    ['benign', 'other, rare']
    """
    return next(csv.reader([text], skipinitialspace=True), []) if text else []


def numbers(
    name: str, text: str | None, kind: Callable[[str], Number], example: str
) -> list[Number]:
    """Return the numbers of 100,200,500; `name` is the option that they are of.

    >>> numbers("--cases", "100,200", int, "100,200")
    [100, 200]
    """
    try:
        return [kind(part) for part in comma_list(text)]
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise InvalidInputError(
            f"{name}: must be {what} with commas between them, such as {example}; got {text!r}"
        ) from None


def prevalences(name: str, text: str | None) -> list[float] | None:
    """Return the prevalence of the second class, or of every class: 0.03, or 0.9,0.07,0.03.

    >>> prevalences("--target-prevalence", "0.03")
    [0.03]
    """
    return None if text is None else numbers(name, text, float, "0.03")


def metric_options(told: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return METRIC.NAME=VALUE by metric and name.

    >>> metric_options(["robust_ece.sigma=0.05"])
    {'robust_ece': {'sigma': 0.05}}
    """
    found: dict[str, dict[str, Any]] = {}
    for text in told:
        left, equals, value = text.partition("=")
        metric, dot, name = left.strip().partition(".")
        if not (equals and dot and metric and name):
            raise InvalidInputError(
                f"--option: must be METRIC.NAME=VALUE, such as robust_ece.sigma=0.05; got {text!r}"
            )
        found.setdefault(metric, {})[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    """Return a number, true, false or none for what reads like one; otherwise the text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

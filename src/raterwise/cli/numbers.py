"""Numbers as the terminal shows them."""

from __future__ import annotations

from raterwise.results import Estimate


def number(value: float | None, digits: int = 4) -> str:
    """Return a value with as many decimals; what would round to 0 is told from 0 itself.

    >>> number(0.12345), number(0.0), number(0.00001), number(-0.00001), number(None)
    ('0.1235', '0.0000', '< 0.0001', '> -0.0001', '-')
    """
    if value is None:
        return "-"
    least = 10.0**-digits
    if value and abs(value) < 0.5 * least:
        return f"< {least:.{digits}f}" if value > 0 else f"> -{least:.{digits}f}"
    return f"{value:.{digits}f}"


def p_value(p: float | None) -> str:
    """Return a p-value with three decimals.

    >>> p_value(0.0213), p_value(0.00001), p_value(None)
    ('0.021', '< 0.001', '-')
    """
    return "< 0.001" if p is not None and p < 0.001 else number(p, 3)


def signed(value: float) -> str:
    """Return a difference with its sign.

    >>> signed(0.12345), signed(-0.12345), signed(0.00001), signed(0.0)
    ('+0.1235', '-0.1235', '< +0.0001', '0.0000')
    """
    text = number(value)
    if not value > 0:
        return text
    return f"< +{text[2:]}" if text.startswith("<") else f"+{text}"


def interval(estimate: Estimate, digits: int = 4) -> str:
    """Return the interval in brackets, or nothing where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"[{number(estimate.low, digits)}, {number(estimate.high, digits)}]"

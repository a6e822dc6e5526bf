"""Raters who were asked because others differ: what they say is no further independent label."""

from __future__ import annotations

LEAST_ARBITRATED, OUT_OF_TURN = 12, 0.05
"""How many cases it takes to tell that a third label was asked for where two differ, and how many
may be otherwise. Two raters who are asked whatever they will say differ, of two classes, in at most
half of any cases, and three in at most three quarters."""


def asked_to_decide(divided: int, asked: int, others_divided: int, others: int) -> bool:
    """Return whether one more rater was asked for cases because their raters differ.

    They differ in `divided` of the cases that were `asked` about, and in `others_divided` of the
    `others`.
    """
    return (
        min(divided, others - others_divided) >= LEAST_ARBITRATED
        and asked - divided <= OUT_OF_TURN * asked
        and others_divided <= OUT_OF_TURN * others
    )

"""Help that shows what a person types: FILE, N, TEXT, and nothing after a switch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperOption

__all__ = ["PlainCommand", "in_plain_words"]

WORDS = {int: "N", float: "X", str: "TEXT", Path: "FILE"}
KINDS = {"integer": "N", "float": "X", "text": "TEXT", "path": "FILE", "file": "FILE"}
"""What click calls them, for versions of typer that say no more."""


def in_plain_words(params: Iterable[Any]) -> list[Any]:
    """Return parameters that say what they are; choices say it already.

    The metavar of an argument is its name, so that its kind is set where typer asks for it.
    """
    found = list(params)
    for param in found:
        if isinstance(param, TyperOption) and param.metavar is None:
            param.metavar = "" if param.is_flag else _word(param)
        elif isinstance(param, TyperArgument) and (word := _word(param)) is not None:
            setattr(param, "display_type_rich", lambda ctx, word=word: word)  # noqa: B010
    return found


def _word(param: Any) -> str | None:
    kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    each = getattr(kind, "__args__", (kind,))[0]  # of a list, that of its items
    return WORDS.get(each) or KINDS.get(getattr(getattr(param, "type", None), "name", ""))


class PlainCommand(TyperCommand):
    """A command with such help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with words for people."""
        return in_plain_words(super().get_params(ctx))

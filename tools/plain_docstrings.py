"""A Sphinx extension: docstrings are plain text with `code` and formulas, not reStructuredText.

|A - C| is an absolute value and not a substitution, (R, *spatial) no emphasis, `ece` code; names
in See Also are looked up from `raterwise` on, as a reader would.
"""

from __future__ import annotations

import re
from typing import Any

PIECES = re.compile(r"(``[^`]+``|`[^`]+`)")
EMPHASIS = re.compile(r"(?<![\w*])\*(?=\w)([^*\n]+?)(?<=\w)\*(?![\w*])")
HIDDEN = re.compile(r"^set_\w+_request$")  # scikit-learn's, about its own metadata routing


def plain(text: str) -> str:
    """Return prose in which nothing but `code` and *emphasis* is markup."""
    return "".join(_code(piece) if n % 2 else _words(piece) for n, piece in enumerate(_split(text)))


def _split(text: str) -> list[str]:
    return PIECES.split(text)


def _code(piece: str) -> str:
    return f"``{piece.strip('`')}``"


def _words(piece: str) -> str:
    parts = EMPHASIS.split(piece)
    escaped = [re.sub(r"([*|])|(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts]
    return "".join(f"*{part}*" if n % 2 else part for n, part in enumerate(escaped))


def _for_readers(line: str) -> str:
    """Return a line of an example without the folder that the tests lend it.

    >>> _for_readers('>>> path = getfixture("tmp_path") / "results.json"')
    '>>> path = Path("results.json")'
    """
    line = re.sub(r'getfixture\("tmp_path"\) / ("[^"]+")', r"Path(\1)", line)
    return line.replace('getfixture("tmp_path")', 'Path(".")')


def prose(lines: list[str]) -> list[str]:
    """Return a docstring's lines with the prose made plain; examples and names stay as they are."""
    found: list[str] = []
    waiting: list[str] = []
    example = False
    for line in lines:
        starts = line.lstrip().startswith(">>>")
        example = bool(line.strip()) and (example or starts)
        name, colon, kind = line.partition(" : ")
        if example or (line[:1] not in ("", " ") and colon):
            found += plain("\n".join(waiting)).split("\n") if waiting else []
            waiting = []
            found.append(_for_readers(line) if example else name + colon + plain(kind))
        else:
            waiting.append(line)
    return found + (plain("\n".join(waiting)).split("\n") if waiting else [])


def on_docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: Any) -> None:
    """Make the docstring plain before numpydoc reads it."""
    lines[:] = prose(lines)


def on_member(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class has from scikit-learn's routing of metadata."""
    return True if HIDDEN.match(name) else None


def on_missing(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Look a name up from the package on: `torch.losses.RCR` is raterwise.torch.losses.RCR."""
    if node.get("refdomain") != "py":
        return None
    domain, target = env.get_domain("py"), node["reftarget"].removeprefix("rw.")
    for name in (f"raterwise.{target}", f"{node.get('py:module')}.{target}"):
        if name in domain.objects or name in domain.modules:
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    return None


def setup(app: Any) -> dict[str, bool]:
    """Register the hooks; numpydoc's own comes at priority 500."""
    app.connect("autodoc-process-docstring", on_docstring, priority=100)
    app.connect("autodoc-skip-member", on_member)
    app.connect("missing-reference", on_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

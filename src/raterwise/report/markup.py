"""HTML from Python, in which text can never become markup by mistake.

Whatever is not `Html` already is escaped: names of classes, cases and files come from outside.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

ALONE = {"input", "meta", "link", "br"}


class Html(str):
    """Text that is markup, made by `el` from escaped parts."""

    __slots__ = ()


def el(tag: str, *children: Any, **attributes: Any) -> Html:
    """Return an element; children are escaped unless they are `Html`, None ones are left out.

    An attribute's trailing underscore is dropped and others become hyphens; True stands alone.

    >>> el("p", "a < b", class_="note", aria_label='"x"')
    '<p class="note" aria-label="&quot;x&quot;">a &lt; b</p>'
    """
    written = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.removesuffix("_").replace("_", "-")
        written.append(f" {name}" if value is True else f' {name}="{html.escape(str(value))}"')
    start = f"<{tag}{''.join(written)}>"
    return Html(start if tag in ALONE else f"{start}{_inside(children)}</{tag}>")


def _inside(children: Iterable[Any]) -> str:
    parts = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(str(child))
        elif isinstance(child, list | tuple):
            parts.append(_inside(child))
        else:
            parts.append(html.escape(str(child)))
    return "".join(parts)


def names_apart(names: Iterable[Any], between: str = ", ") -> Html:
    """Return names one after the other, each of which may be written from right to left.

    Without an element of its own, such a name takes what is next to it into its direction, and two
    of them change places.

    >>> names_apart(["a < b", "c"])
    '<bdi>a &lt; b</bdi>, <bdi>c</bdi>'
    """
    return Html(html.escape(between).join(el("bdi", name) for name in names))


def data_table(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    caption: str | None = None,
    class_: str = "",
) -> Html:
    """Return a plain table; the first column names the row."""
    body = [
        el("tr", el("th", row[0], scope="row"), [el("td", cell) for cell in row[1:]])
        for row in rows
    ]
    return el(
        "table",
        el("caption", caption) if caption else None,
        el("thead", el("tr", [el("th", name, scope="col") for name in header])),
        el("tbody", body),
        class_=f"data {class_}".strip(),
    )


def json_block(name: str, content: Any) -> Html:
    """Return a script element that holds data; nothing in them can end it."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Html(f'<script type="application/json" id="{html.escape(name)}">{text}</script>')

"""One self-contained HTML file: content, style, charts, and a policy that forbids the rest."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from raterwise import __version__
from raterwise.palette import IDEAL, ON_DARK, SERIES
from raterwise.report.charts import altair
from raterwise.report.markup import Html, el, json_block
from raterwise.report.sections import Charts


def page(
    title: str, subtitle: str | list[str], sections: Sequence[Html | None], found: Charts
) -> str:
    """Return the whole page.

    The browser is told to load nothing from anywhere and to run no script but those that are
    written here, by their hashes: were a name ever to slip through as markup, it could do nothing.
    A page without charts has at most one, which opens for print what is folded.
    """
    paper = _own("print.js")
    folded = any("<details" in part for part in sections if part is not None)
    scripts = [paper] if folded else []
    if found.specs:
        scripts = [chart_library(), paper + _own("app.js")]
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="generator", content=f"raterwise {__version__}"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("link", rel="icon", href="data:,"),
        Html(f"<style>{_colours()}{_own('style.css')}</style>"),
    )
    shown = [part for part in sections if part is not None]
    body = el(
        "body",
        el("a", "Skip to the report", href="#report", class_="skip"),
        el("header", el("h1", title), el("p", subtitle) if subtitle else None),
        el("main", shown, id="report"),
        el("footer", el("p", f"Made by raterwise {__version__}. This file needs no network.")),
        json_block(
            "data",
            {"charts": found.specs, "thresholds": found.thresholds, "operating": found.operating},
        ),
        [Html(f"<script>{script}</script>") for script in scripts],
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


NPM = "https://cdn.jsdelivr.net/npm"
CARRIED = {"1.8": ("6.1.2", "2.0.0"), "1.9": ("6.2.0", "2.0.0")}
"""The versions of vega and vega-interpreter that each version of vl-convert carries."""


@cache
def chart_library() -> str:
    """Return the Vega runtime, which draws the charts.

    Vega alone is two thirds of the usual bundle. It needs the interpreter of expressions, since the
    page's policy forbids making code of text; where it is not known which versions vl-convert
    carries, the whole bundle is taken. The addresses are names of what it carries: nothing is
    loaded.
    """
    altair()  # which says how to install what is missing
    from importlib.metadata import version

    import vl_convert

    carried = CARRIED.get(".".join(version("vl-convert-python").split(".")[:2]))
    if carried is None:
        return _inline(str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")))
    vega, interpreter = (
        f'"{NPM}/{name}@{number}/+esm"'
        for name, number in zip(("vega", "vega-interpreter"), carried, strict=True)
    )
    made = vl_convert.javascript_bundle(
        f"import {{ parse, View }} from {vega};"
        f"import {{ expressionInterpreter as expr }} from {interpreter};"
        "window.charts = { parse, View, expr };"
    )
    return _inline(str(made))


def _own(name: str) -> str:
    return _inline(files("raterwise.report").joinpath(name).read_text(encoding="utf-8"))


def _inline(text: str) -> str:
    # A browser turns CR LF into LF before it hashes.
    return text.replace("\r\n", "\n").replace("</script", "<\\/script")


def _hash(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()


def _colours() -> str:
    """Return the palette as CSS variables, for light and for dark pages."""

    def variables(series: Sequence[str]) -> str:
        return "".join(f"--series-{i + 1}:{colour};" for i, colour in enumerate(series))

    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(ON_DARK)}}}}}"
    return f":root{{{variables(SERIES)}--ideal:{IDEAL};}}{dark}"

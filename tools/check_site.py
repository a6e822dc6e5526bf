"""Check the built site: it loads nothing from elsewhere, and every link within it leads somewhere.

python tools/check_site.py FOLDER
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches on its own, by tag: a link that a person may click is no such thing.
LOADED = {
    "script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"),
    "video": ("src", "poster"), "audio": ("src",), "embed": ("src",), "object": ("data",),
}  # fmt: skip
LINKS_LOADED = {"stylesheet", "preload", "modulepreload", "icon", "shortcut", "prefetch",
                "preconnect", "dns-prefetch", "manifest"}  # fmt: skip
ELSEWHERE = re.compile(r"^(https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(
    r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]((?:https?:)?//[^'\"]+)"
)


class Page(HTMLParser):
    """What a page loads, where it links to, and the places within it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)
        self.loads += [a or b for a, b in IN_STYLES.findall(text)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag loads, links to or names."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.loads += [given[name] for name in LOADED.get(tag, ()) if name in given]
        if tag == "link" and LINKS_LOADED & set(given.get("rel", "").lower().split()):
            self.loads.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


def complaints(site: Path) -> Iterator[str]:
    """Yield what is wrong with a site."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in files}
    if not pages:
        yield f"{site}: no page"
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for loaded in page.loads:
            if ELSEWHERE.match(loaded):
                yield f"{where}: loads {loaded}"
            elif loaded and not loaded.startswith("data:") and not target(path, loaded).exists():
                yield f"{where}: loads {loaded}, which is not there"
        yield from (f"{where}: {said}" for said in broken(path, page, pages))
    for style in sorted(site.rglob("*.css")):
        for found in IN_STYLES.findall(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)}: loads {found[0] or found[1]}"


def target(path: Path, link: str) -> Path:
    """Return the file that a link of a page leads to."""
    part = unquote(urlsplit(link).path)
    return (path.parent / part).resolve() if part else path


def broken(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield the links of a page that lead to no file or to no place within one."""
    for link in page.links:
        if urlsplit(link).scheme or link.startswith("//"):
            continue
        found, place = target(path, link), unquote(urlsplit(link).fragment)
        if not found.exists():
            yield f"links to {link}, which is not there"
        elif place and found in pages and place not in pages[found].anchors:
            yield f"links to {link}, and there is no such place in it"


def main() -> int:
    """Print what is wrong; 0 if nothing is."""
    site = Path(sys.argv[1])
    found = list(complaints(site))
    print("\n".join(found) or "The site loads nothing from elsewhere, and no link in it is broken.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

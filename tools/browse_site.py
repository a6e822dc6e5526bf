"""Read the built site in a browser: no page asks anybody else for anything; axe-core is content.

    python tools/browse_site.py FOLDER [--photographs FOLDER]

Every page is opened, and what the browser requests is looked at; a few, one of each kind, are
checked for accessibility (axe-core: AXE_CORE names its file, or node_modules has it), in the light
and in the dark, and for being wider than a telephone. --photographs keeps pictures of those, at
1400 and at 390 pixels. Needs Chromium with its driver, and Selenium; what is missing is told.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver

LOOKED_AT = (
    "index.html",
    "start/five_minutes.html",
    "start/which_metric.html",
    "guides/device_team.html",
    "gallery_of_tutorials/index.html",
    "gallery_of_tutorials/tutorial_03_small_test_sets.html",
    "metrics/calibration.html",
    "reference/api/evaluate.html",
    "reference/command_line.html",
    "coming_from/netcal.html",
    "evidence.html",
    "reference/api/labels.html",
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    "--allow-file-access-from-files",
)
DRAWN = """
const done = arguments[arguments.length - 1], startup = (window.MathJax || {}).startup;
Promise.resolve(startup && startup.promise).then(() => done(true));
"""
AXE = (
    "const done = arguments[arguments.length - 1]; axe.run(document).then(r => done(r.violations))"
)
# What sticks out of the window, leaving out what scrolls within a box of its own.
WIDER = """
const wide = window.innerWidth + 1, boxes = 'pre, .pst-scrollable-table-container, mjx-container';
if (document.documentElement.scrollWidth <= wide) return [];
return [...document.querySelectorAll('main *')]
  .filter(e => e.getBoundingClientRect().right > wide && !e.closest(boxes))
  .slice(0, 3).map(e => e.outerHTML.slice(0, 120));
"""


def opened(folder: Path) -> Any:
    """Return a browser with a fresh profile, which keeps a log of its requests."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver, port=port))
    browser.set_script_timeout(60)
    browser.get("about:blank")
    browser.get_log("performance"), browser.get_log("browser")  # of the browser's own first page
    return browser


def show(browser: Any, page: Path, width: int = 1400, dark: bool = False) -> None:
    """Open a page at a width, in the light or in the dark, and wait until it is drawn."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {
        "prefers-color-scheme": "dark" if dark else "light",
        "prefers-reduced-motion": "reduce",
    }
    # Without motion: colours that are still changing, on a busy machine, are none of the page's.
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(page.resolve().as_uri())
    browser.execute_async_script(DRAWN)


def requests(browser: Any) -> Iterator[str]:
    """Yield what the browser has asked for since it was asked last."""
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


def asked_elsewhere(browser: Any, site: Path) -> Iterator[str]:
    """Open every page, and yield what is requested from elsewhere or is not there."""
    for page in sorted(site.rglob("*.html")):
        if "_static" in page.parts:
            continue
        show(browser, page)
        for url in requests(browser):
            if urlsplit(url).scheme not in ("file", "data", "blob"):
                yield f"{page.relative_to(site)}: asks for {url}"
        for entry in browser.get_log("browser"):
            if entry["level"] == "SEVERE":
                yield f"{page.relative_to(site)}: {entry['message'][:200]}"


def hard_to_use(browser: Any, page: Path, axe: str | None) -> Iterator[str]:
    """Yield what axe-core finds serious, and what is wider than a telephone."""
    for dark in (False, True) if axe else ():
        show(browser, page, dark=dark)
        browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        browser.execute_script(axe)
        for found in browser.execute_async_script(AXE):
            if found["impact"] in ("serious", "critical"):
                where = [node["html"][:100] for node in found["nodes"][:3]]
                yield f"{page.name} ({'dark' if dark else 'light'}): {found['id']} {where}"
    show(browser, page, width=390)
    for element in browser.execute_script(WIDER):
        yield f"{page.name}: wider than a telephone: {element}"


def photograph(browser: Any, page: Path, name: str, folder: Path) -> None:
    """Keep what a page looks like, the first three screens of it, wide and narrow."""
    for width in (1400, 390):
        show(browser, page, width=width)
        clip = {"x": 0, "y": 0, "width": width, "height": 1800, "scale": 1}
        asked = {"format": "png", "clip": clip, "captureBeyondViewport": True}
        taken = browser.execute_cdp_cmd("Page.captureScreenshot", asked)
        (folder / f"{name}_{width}.png").write_bytes(base64.b64decode(taken["data"]))


def main() -> int:
    """Print what is wrong; 0 if nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--photographs", type=Path)
    given = parser.parse_args()
    file = Path(os.environ.get("AXE_CORE") or "node_modules/axe-core/axe.min.js")
    axe = file.read_text(encoding="utf-8") if file.is_file() else None
    with tempfile.TemporaryDirectory() as profile:
        browser = opened(Path(profile))
        if browser is None:
            print("no Chromium with its driver: the site was not read in a browser")
            return 0
        try:
            found = [] if given.photographs else list(asked_elsewhere(browser, given.site))
            for name in LOOKED_AT:
                page = given.site / name
                if given.photographs:
                    given.photographs.mkdir(parents=True, exist_ok=True)
                    photograph(browser, page, name[:-5].replace("/", "_"), given.photographs)
                else:
                    found += hard_to_use(browser, page, axe)
        finally:
            browser.quit()
    told = "" if axe else " (axe-core is not here: accessibility was not checked)"
    print("\n".join(found) or f"No page asks anybody else for anything, or is hard to use{told}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

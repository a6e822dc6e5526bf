"""Run the examples of docs/coming_from that need a peer, and keep what they print.

python tools/peer_outputs.py netcal calzone uncertainty_calibration

Run it in an environment with the peers and NumPy (raterwise is not needed), from the root of the
repository. What a page shows must be what the peer prints; it is then written, with the versions,
into tests/fixtures/peer_outputs.json, with which the tests compare the pages from then on.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "fixtures" / "peer_outputs.json"
PACKAGES = {
    "netcal": "netcal",
    "calzone": "calzone-tool",
    "uncertainty_calibration": "uncertainty-calibration",
}


def examples(page: str) -> list[doctest.Example]:
    """Return the examples of a page."""
    text = (ROOT / "docs" / "coming_from" / f"{page}.md").read_text(encoding="utf-8")
    text = "\n".join("" if line.startswith("```") else line for line in text.splitlines())
    return doctest.DocTestParser().get_examples(text)


def of_the_peer(example: doctest.Example) -> bool:
    """Say whether an example is of the peer: our tests skip it."""
    return bool(example.options.get(doctest.SKIP))


def ran(page: str) -> list[dict[str, str]]:
    """Run the peer's examples, and those before them that prepare the data."""
    held: dict[str, Any] = {}
    found = []
    for example in examples(page):
        if not of_the_peer(example) and ("raterwise" in example.source or "rw." in example.source):
            continue
        if not of_the_peer(example) and "test." in example.source:
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(example.source, page, "single"), held)
        if of_the_peer(example):
            if said.getvalue() != example.want:
                raise SystemExit(
                    f"{page}: {example.source}shows {example.want}says {said.getvalue()}"
                )
            found.append({"source": example.source, "says": said.getvalue()})
    return found


def main() -> None:
    """Run the pages that were named."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for page in sys.argv[1:]:
        kept[page] = {"version": version(PACKAGES[page]), "examples": ran(page)}
        print(f"{page} {kept[page]['version']}: {len(kept[page]['examples'])} examples agree")
    KEPT.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

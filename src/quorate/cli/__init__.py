"""The command line: `quorate evaluate`, `quorate demo`."""

from quorate.cli.app import app, main

__all__ = ["app", "main"]

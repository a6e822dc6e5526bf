"""The command line: `raterwise evaluate`, `raterwise demo`."""

from raterwise.cli.app import app, main

__all__ = ["app", "main"]

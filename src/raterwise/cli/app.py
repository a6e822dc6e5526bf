"""The `raterwise` program: its commands, its exit codes, and errors in one line.

Exit codes: 0 all is well, 2 input that cannot be used, 130 interrupted by Ctrl-C, 141 nobody reads
what is printed any more.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from raterwise import __version__
from raterwise.cli import (
    agreement,
    calibrate,
    compare,
    demo,
    evaluate,
    merge,
    plan,
    report,
    segment,
    stability,
    worklist,
)
from raterwise.cli.help import (
    PlainHelp,
    WholeLines,
    in_paragraphs,
    in_plain_words,
    usage_in_words,
)
from raterwise.cli.spelling import as_options, quoted
from raterwise.cli.writing import COMMAND_LINE
from raterwise.errors import RaterwiseError

BAD_INPUT, INTERRUPTED, READ_ENOUGH = 2, 130, 141


class OneLineErrors(WholeLines, TyperGroup):
    """A group of commands whose expected errors are one line on stderr, without a traceback."""

    program = "raterwise"
    """Whose errors they are."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with words for people."""
        return in_plain_words(super().get_params(ctx), ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; what was typed is kept for the provenance of results."""
        COMMAND_LINE.set(" ".join(map(quoted, (self.program, *args))))
        if not args:  # which shows the help
            return list(super().parse_args(ctx, args))
        try:
            return list(super().parse_args(ctx, args))
        except Exception as error:
            raise self._one_line(error, ctx) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn an error on purpose, or of the file system, into an exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            end_quietly()
        except (RaterwiseError, OSError) as error:
            said = as_options(_in_words(error), getattr(error, "argument", None))
            typer.echo(f"{self.program}: {' '.join(said.split())}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except Exception as error:
            raise self._one_line(error, ctx) from None
        except KeyboardInterrupt:
            typer.echo(f"{self.program}: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None

    def _one_line(self, error: Exception, ctx: Any) -> Exception:
        """Say what is wrong with what was typed, and return how to end; of other errors, the error.

        A usage error may be of typer's class or of click's.
        """
        if not hasattr(error, "format_message"):
            return error
        path = (getattr(error, "ctx", None) or ctx).command_path
        typer.echo(f"{self.program}: {usage_in_words(error)}\nUsage: {path} --help", err=True)
        return typer.Exit(BAD_INPUT)


def end_quietly(*_: Any) -> NoReturn:
    """End as a program does whose reader has read enough: `raterwise … | head` is no mistake."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # what is still to be flushed
    raise SystemExit(READ_ENOUGH)


def _in_words(error: Exception) -> str:
    """Return what an error says; of the file system's errors, the file before what is wrong."""
    if not isinstance(error, OSError) or isinstance(error, RaterwiseError) or not error.filename:
        return str(error)
    if isinstance(error, FileNotFoundError):
        return f"{error.filename}: there is no such file"
    return f"{error.filename}: {(error.strerror or str(error)).lower()}"


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    *(evaluate, compare, report, calibrate, worklist, stability, plan, segment),
    *(agreement, merge, demo),
):
    command = getattr(module, module.__name__.rpartition(".")[2])
    app.command(cls=PlainHelp, help=in_paragraphs(command.__doc__), epilog=module.EXAMPLES)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"raterwise {__version__}")
        raise typer.Exit


@app.callback()
def raterwise(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """How far can a medical-imaging model's probabilities be trusted when the experts disagree?

    Start with [bold]raterwise demo[/bold], then [bold]raterwise evaluate --help[/bold].
    """


def main() -> None:
    """Run the program; what a terminal's encoding cannot show becomes a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    Console.on_broken_pipe = end_quietly  # type: ignore[method-assign,assignment]  # it would exit with 1
    app(prog_name="raterwise")

"""What --help shows of an option: the word that a person types for it, not a type."""

from __future__ import annotations

import re
from copy import copy
from inspect import cleandoc
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

from raterwise.errors import InvalidInputError
from raterwise.rules import did_you_mean

BY_NAME = {
    **dict.fromkeys(("checkpoint", "maps"), "FOLDER"),
    **dict.fromkeys(("metrics", "subgroup_metrics", "class_names", "names", "missing"), "A,B,C"),
    **dict.fromkeys(("prob_columns", "rater_columns", "count_columns", "raters"), "A,B,C"),
    **dict.fromkeys(("cases", "fractions"), "N,N,N"),
    **dict.fromkeys(("target_prevalence", "source_prevalence"), "NUMBER"),
    **dict.fromkeys(("finding", "encoding"), "NAME"),
    "axes": "ZYX",
    "cluster": "ADDRESS",
    "delimiter": "SIGN",
    "option": "METRIC.NAME=VALUE",
    "spacing": "X,Y,Z",
}
"""Words for options whose type says too little."""
BY_TYPE = {
    **dict.fromkeys(("path", "file", "filename", "directory"), "FILE"),
    **dict.fromkeys(("int", "integer", "int range", "integer range"), "N"),
    **dict.fromkeys(("float", "float range"), "NUMBER"),
    **dict.fromkeys(("str", "text"), "TEXT"),
    **dict.fromkeys(("bool", "boolean"), ""),
}
NOT_ONE_OF = re.compile(r"'(?P<got>.*)' is not one of (?P<known>.*?)\.?$")
UNEXPECTED = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<words>.*)\)")
NUMBERS = (
    ("valid int", "a whole number"),
    *dict.fromkeys(("valid number", "valid float"), "a number").items(),
)
"""How versions of typer say that it is no number."""
ASKED = ("--metrics", "--question", "--per", "--option", "--bins", "--threshold")
IN_MEMORY = "reads its tables into memory; raterwise evaluate --stream takes --cluster"
NOT_HERE: dict[str, dict[str, str]] = {
    "segment": {
        "--group-column": "the manifest's column patient names the patients",
        "--ratings": "the manifest's column raters names the masks",
    },
    "merge": dict.fromkeys((*ASKED, "--seed"), "the saved summaries keep what they were made with"),
    "report": dict.fromkeys((*ASKED, "--seed"), "the results keep what they were made with"),
    "worklist": {
        **dict.fromkeys(ASKED, "a worklist ranks cases and computes no metric"),
        "--seed": "a worklist draws nothing at random",
    },
    "agreement": dict.fromkeys(ASKED, "it computes kappa and every alpha, of the ratings alone"),
    "demo": dict.fromkeys(ASKED, "it computes every metric; raterwise evaluate takes its files"),
    **{
        name: {"--cluster": f"raterwise {name} {IN_MEMORY}"}
        for name in ("compare", "calibrate", "stability", "plan")
    },
}
"""Why a command does not have an option that most have."""
NOT_EVEN_ONE = {"--version": "raterwise --version prints it"}
TYPER = tuple(int(part) for part in re.findall(r"[0-9]+", typer.__version__)[:3])


class WholeLines:
    """A command, or a group, whose --help shows its epilogue line by line."""

    epilog: str | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help, and examples as they are: one that is broken into lines is not copied."""
        epilog, self.epilog = self.epilog, None
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        finally:
            self.epilog = epilog
        if epilog:
            lines = Text.from_markup("\n" + epilog.strip() + "\n").split("\n", allow_blank=True)
            Console().print(Text("\n").join(Text(" ") + line for line in lines), soft_wrap=True)


class PlainHelp(WholeLines, TyperCommand):
    """A command whose --help shows FILE, COLUMN or N, and nothing where nothing is to be typed."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options and arguments, each with what a person types for it."""
        return in_plain_words(super().get_params(ctx), ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; an option that counts once is not given twice."""
        if not ctx.resilient_parsing:  # a shell completes what may be wrong yet
            refuse_repeated(self.get_params(ctx), args)
        try:
            return list(super().parse_args(ctx, args))
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # a usage error that forgot where it was
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


def in_paragraphs(text: str) -> str:
    """Return a docstring without the ends of its lines: a terminal of any width breaks its own.

    >>> in_paragraphs("Say it.\\n\\n    Once, and\\n    briefly.")
    'Say it.\\n\\nOnce, and briefly.'
    """
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(text).split("\n\n"))


def refuse_repeated(params: list[Any], args: list[str]) -> None:
    """Refuse a second value of an option that takes one: only the last would have been read."""
    by_name = {name: param for param in params for name in (*param.opts, *param.secondary_opts)}
    given: dict[str, str] = {}
    words = iter(args)
    for word in words:
        if word == "--":  # what follows are arguments, whatever they begin with
            return
        name, equals, value = word.partition("=")
        param = by_name.get(name)
        if param is None or not name.startswith("-") or getattr(param, "is_flag", False):
            continue
        value = value if equals else next(words, "")
        if param.name in given and not param.multiple:
            before = given[param.name]
            way = _as_one(param, before, value)
            raise InvalidInputError(f"{name}: takes one value; got {before!r} and {value!r}{way}")
        given[param.name] = value


def _as_one(param: Any, *values: str) -> str:
    """Return how to give two values as one, where that can be done."""
    if param.metavar in ("A,B,C", "N,N,N"):
        return f"; several are one list: {','.join(values)}"
    if param.name == "ratings":
        return "; put the ratings of all raters into one table, a row per rating"
    return ""


NO_COMMAND = {
    f"No such command {word!r}.": f"{word}: there is no such command; raterwise --{word} says it"
    for word in ("help", "version")
}


def in_plain_words(params: list[Any], ctx: Any) -> list[Any]:
    """Return options and arguments, each with what a person types for it."""
    for param in params:
        word = _word(param, ctx)
        if param.param_type_name == "argument":  # whose own name is shown before it
            if hasattr(param, "display_type_rich"):
                param.display_type_rich = lambda ctx, word=word: word
            elif TYPER >= (0, 27):  # and below 0.29
                param.type = copy(param.type)
                param.type.get_metavar = lambda param, ctx, word=word: word
        elif param.metavar is None:
            param.metavar = word
    return params


def _word(param: Any, ctx: Any) -> str:
    """Return what to type for a parameter."""
    name = param.name or ""
    if getattr(param, "is_flag", False):
        return ""
    if name.endswith("_column"):
        return "COLUMN"
    show = getattr(param, "display_type", None)
    if show is None:  # before typer 0.29
        choices = [str(getattr(c, "value", c)) for c in getattr(param.type, "choices", ())]
        shown = "|".join(choices) or param.type.name
    else:
        shown = str(show(ctx)).strip("<>")
    shown = re.sub(r"^list\[(.*)\]$", r"\1", shown)
    if name in BY_NAME and "|" not in shown:
        return BY_NAME[name]
    folder = name == "out" and "folder" in (getattr(param, "help", "") or "").lower()
    return "FOLDER" if folder else BY_TYPE.get(shown.lower(), shown)


def _commands_with(option: str, ctx: Any) -> list[str]:
    """Return the first two of the other commands that have this option."""
    group = getattr(getattr(ctx, "parent", None), "command", None)
    others = getattr(group, "commands", {})
    return [
        name
        for name, command in others.items()
        if any(option in param.opts for param in command.get_params(ctx))
    ][:2]


def usage_in_words(error: Any) -> str:
    """Return what is wrong with what was typed, in one line, with what may have been meant."""
    message = " ".join(str(error.format_message()).split())
    if extra := UNEXPECTED.match(message):
        return (
            f"{extra['words']}: not expected here; an option takes one value: one file, or a list "
            "a,b,c without blanks"
        )
    option = getattr(error, "option_name", None)
    if option is not None and not message.startswith("No such"):
        needs = "must be followed by a value" if "requires" in message else "takes no value"
        return f"{option}: {needs}"
    if option is not None:
        ctx = getattr(error, "ctx", None)
        params = ctx.command.get_params(ctx) if ctx is not None else []
        known = [name for param in params for name in param.opts if name.startswith("--")]
        command = getattr(ctx, "info_name", "") or ""
        why = {**NOT_EVEN_ONE, **NOT_HERE.get(command, {})}.get(option)
        if why is not None:
            return f"{option}: there is no such option here; {why}"
        if elsewhere := _commands_with(option, ctx):
            one = "has" if len(elsewhere) == 1 else "have"
            return (
                f"{option}: there is no such option here; raterwise {' and '.join(elsewhere)} "
                f"{one} it"
            )
        return f"{option}: there is no such option{did_you_mean(option, known)}"
    param = getattr(error, "param", None)
    if param is None:
        if told := NO_COMMAND.get(message):
            return told
        return message[:1].lower() + message[1:]
    name = next((n for n in getattr(param, "opts", ()) if n.startswith("--")), param.name)
    if message.startswith("Missing argument"):
        return f"missing argument {name!r}."
    said = " ".join(str(getattr(error, "message", "") or message).split())
    if found := NOT_ONE_OF.search(said):
        known = re.findall(r"'([^']*)'", found["known"])
        meant = did_you_mean(found["got"], known)
        return f"{name}: must be one of {', '.join(known)}; got {found['got']!r}{meant}"
    for words, rule in NUMBERS:
        if words in said:
            return f"{name}: must be {rule}"
    return message[:1].lower() + message[1:]

"""Messages of the library in the words of the command line: its arguments are options there."""

from __future__ import annotations

import shlex

from raterwise.errors import argument_of

OPTIONS = frozenset((
    "allow_unmatched", "class_names", "on_single", "on_unrated", "ratings_layout", "skip_bad",
    "ignore_label",
    "ignore_case", "normalize", "percent", "loose_ids", "save_summary", "target_prevalence",
    "source_prevalence", "features_prefix", "logit_prefix", "prob_prefix", "rater_prefix",
    "count_prefix", "prob_columns", "rater_columns", "count_columns", "subgroup_metrics",
    "subgroup_column", "id_column", "ratings_id_column", "label_column", "group_column",
    "weight_column", "confidence_column", "rater_column", "rating_column", "alpha_column",
    "finding_column",
))  # fmt: skip
"""Arguments of the library that are options here, wherever a message speaks of them."""
OPTIONS_WITH_VALUES = frozenset(
    ("axes", "delimiter", "duplicates", "encoding", "missing", "unit", "values")
)
"""Those that are also common words, and so must come with a value: delimiter=";"."""
OPTIONS_IN_FRONT = frozenset((
    "axes", "bins", "boundary_mm", "budget", "cases", "checkpoint", "data", "delimiter",
    "fractions", "level", "maps", "metric", "metrics", "num_classes", "options", "out", "per",
    "question", "raters", "ratings", "repeats", "resamples", "seed", "spacing", "subgroups",
    "threshold", "top", "unit",
))  # fmt: skip
"""Those that are common words too, and so only count as the argument of an error."""
OPTIONS_OF_A_METRIC = frozenset(("bandwidth", "clip", "estimator"))
"""Those that a metric takes, with a value: --option METRIC.clip=1e-7."""
SPELT_OTHERWISE = {
    "metric": "metrics", "options": "option", "subgroups": "subgroup_column",
    "values": "subgroup_column",
}  # fmt: skip

NOT_IN_DOUBLE_QUOTES = frozenset('"$`\\!')
"""Signs that a shell reads between double quotes, too."""


def as_options(message: str, argument: str | None = None) -> str:
    """Return a message of the library with its arguments as options of the command line.

    `argument` is the one that an error is about, `error.argument`; by default the name that the
    message begins with.

    >>> as_options('id_column: must name …; on_single="drop" leaves them out; delimiter=";" …')
    '--id-column: must name …; --on-single drop leaves them out; --delimiter ";" …'
    >>> as_options("bins: must be at least 1; got 0"), as_options("subgroups: 'site' has one level")
    ('--bins: must be at least 1; got 0', "--subgroup-column: 'site' has one level")
    >>> as_options('use estimator="plugin"')
    'use --option METRIC.estimator=plugin'
    """
    argument = argument_of(message) if argument is None else argument
    if argument in OPTIONS_IN_FRONT | OPTIONS_WITH_VALUES and message.startswith(f"{argument}: "):
        message = _option(argument) + message.removeprefix(argument)
    return " ".join(_word_as_option(word) for word in message.split(" "))


def quoted(word: str) -> str:
    """Return a word as it is typed in any shell: that of Windows knows double quotes alone.

    >>> quoted("a.csv"), quoted("Case ID"), quoted(";"), quoted("$5, or 6")
    ('a.csv', '"Case ID"', '";"', "'$5, or 6'")
    """
    plain = shlex.quote(word)
    return plain if plain == word or set(word) & NOT_IN_DOUBLE_QUOTES else f'"{word}"'


def _option(argument: str) -> str:
    return f"--{SPELT_OTHERWISE.get(argument, argument).replace('_', '-')}"


def _word_as_option(word: str) -> str:
    """Return a word such as (on_single="drop"), as an option with its value."""
    before = word[: len(word) - len(word.lstrip("("))]
    name, equals, value = word[len(before) :].partition("=")
    bare = name.rstrip(",;:.)")
    if name in OPTIONS_OF_A_METRIC and equals:
        return before + f"--option METRIC.{name}={value}".replace('"', "")
    if bare in OPTIONS and (not equals or bare == name):
        after = name[len(bare) :]
    elif name in OPTIONS_WITH_VALUES and value.startswith('"'):
        after = ""
    else:
        return word
    if equals:
        inner, quote, rest = value.removeprefix('"').partition('"')
        # A value of several words keeps its quotes: the second one is in another word.
        plain = f" {quoted(inner)}{rest}" if quote else f" {value}"
        after = value.removeprefix("True") if value.startswith("True") else plain
    return f"{before}{_option(bare)}{after}"

"""The options that commands share, each with its help, in the panels that --help shows.

Options that go together are the fields of a dataclass. A command that takes such a group has one
argument for it, and `with_options` gives it the options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from raterwise import types
from raterwise.catalog.metric import Given
from raterwise.cli.parsing import metric_options, prevalences
from raterwise.evaluation.request import Request
from raterwise.inference.settings import Settings


def in_panel(panel: str, help: str, *names: str, **more: Any) -> Any:
    """Return an option in a panel; by default it is called as its argument is."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


COLUMNS = "Predictions: which columns are what"
RATINGS = "Ratings: which columns are what"
MODEL = "The model's outputs"
EVALUATION = "Evaluation"
OUTPUT = "Output"

RatingsFile = Annotated[
    Path | None, typer.Option(help="File of the ratings, joined to the predictions by id.")
]
Multilabel = Annotated[
    bool,
    typer.Option(
        "--multilabel",
        help="Each probability column is a separate finding; several may occur together.",
    ),
]
FindingColumn = Annotated[
    str | None, in_panel(RATINGS, "long, --multilabel: column with the finding. Default: finding.")
]
Metrics = Annotated[str, in_panel(EVALUATION, "all, or a list: ece,brier,auccc.")]
Resamples = Annotated[
    int, in_panel(EVALUATION, "Number of bootstrap resamples; 0 makes no intervals.")
]
Level = Annotated[float, in_panel(EVALUATION, "Confidence level of the intervals.")]
Seed = Annotated[int, in_panel(EVALUATION, "Random seed; the same seed gives the same digits.")]
UnitDrawn = Annotated[
    types.Unit,
    in_panel(
        EVALUATION, "What to resample: cases (patients, where they are given), raters, or both."
    ),
]
OnSingle = Annotated[
    types.OnSingle,
    in_panel(
        EVALUATION,
        "If cases have too few ratings for a metric: leave it undefined, or drop those cases.",
    ),
]
SubgroupColumn = Annotated[
    list[str] | None,
    in_panel(
        EVALUATION,
        "Also report metrics by the levels of this column, such as the scanner. May be repeated.",
    ),
]
SubgroupMetrics = Annotated[
    str | None,
    in_panel(EVALUATION, "Metrics to report by level: ece,brier. Default: a short list."),
]
Out = Annotated[Path | None, in_panel(OUTPUT, "Write everything to this JSON file.")]
CsvOut = Annotated[Path | None, in_panel(OUTPUT, "Write the metrics to this CSV file.", "--csv")]
HtmlOut = Annotated[Path | None, in_panel(OUTPUT, "Write a report to this HTML file.", "--html")]
Quiet = Annotated[bool, in_panel(OUTPUT, "Print no table.", "--quiet", "-q")]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its arguments that are groups, after its own."""
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: p.annotation for name, p in parameters.items() if is_dataclass(p.annotation)
    }
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [p.replace(kind=keyword) for name, p in parameters.items() if name not in groups]
    for group in groups.values():
        hints = get_type_hints(group, include_extras=True)
        options += [
            inspect.Parameter(f.name, keyword, default=f.default, annotation=hints[f.name])
            for f in fields(group)
        ]

    @wraps(command)
    def wrapper(**given: Any) -> None:
        own = {
            name: group(**{f.name: given.pop(f.name) for f in fields(group)})
            for name, group in groups.items()
        }
        command(**own, **given)

    wrapper.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in options}
    return wrapper


@dataclass(frozen=True)
class Asked:
    """What is asked of the metrics."""

    bins: Annotated[int, in_panel(EVALUATION, "Number of bins of the binned metrics.")] = 15
    question: Annotated[
        types.Questions | None,
        in_panel(
            EVALUATION,
            "What a metric asks of a case: is the predicted class right, is it the second of two "
            "classes, is it class k? Default: the metric's own question.",
        ),
    ] = None
    per: Annotated[
        types.Per | None, in_panel(EVALUATION, "Count a case once per rating, or once.")
    ] = None
    option: Annotated[
        list[str] | None,
        in_panel(
            EVALUATION, "An option of a metric, such as robust_ece.sigma=0.05. May be repeated."
        ),
    ] = None
    threshold: Annotated[
        float | None,
        in_panel(
            EVALUATION, "Lowest probability of a positive test: sensitivity, ppv, … Default: 0.5."
        ),
    ] = None

    @property
    def told(self) -> dict[str, Any]:
        """The same as `evaluate` takes it."""
        return {
            "bins": self.bins,
            "question": self.question,
            "per": self.per,
            "threshold": self.threshold,
            "options": metric_options(self.option or ()) or None,
        }

    def check(
        self,
        metrics: str | Sequence[str],
        *,
        confidence: bool = False,
        outside: bool = False,
        **settings: Any,
    ) -> None:
        """Refuse what cannot be before any data are read: a typo should not cost a long wait.

        `settings` are those of the intervals. "all" stands for every metric here: whether there are
        two classes, or draws of an ensemble, is not known yet.
        """
        given = Given(belief=True, samples=2, confidence=confidence, outside=outside)
        Request.of(
            metrics,
            **self.told,
            settings=Settings(**{"resamples": 0, **settings}),
            given=given,
            classes=2 if metrics == "all" else None,
        )


@dataclass(frozen=True)
class Drawn:
    """How intervals are made."""

    resamples: Resamples = 1000
    level: Level = 0.95
    seed: Seed = 0
    unit: UnitDrawn = "cases"
    on_single: OnSingle = "error"

    @property
    def told(self) -> dict[str, Any]:
        """The same as `evaluate` takes it."""
        return dict(vars(self))


@dataclass(frozen=True)
class InUse:
    """How frequent the classes are where the model is used."""

    target_prevalence: Annotated[
        str | None,
        in_panel(
            EVALUATION,
            "Prevalence of the second class in use (or of every class: a,b,c), if disease is "
            "enriched in the file. Labels are weighted and probabilities shifted to it.",
        ),
    ] = None
    source_prevalence: Annotated[
        str | None,
        in_panel(
            EVALUATION,
            "With --target-prevalence: the prevalence at which the probabilities are right. "
            "Default: that of the file. Give the target again to leave them as they are.",
        ),
    ] = None

    @property
    def told(self) -> dict[str, Any]:
        """The same as `evaluate` takes it."""
        return {
            "target_prevalence": prevalences("--target-prevalence", self.target_prevalence),
            "source_prevalence": prevalences("--source-prevalence", self.source_prevalence),
        }

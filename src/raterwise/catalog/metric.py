"""What a metric is: its words, the summary it needs, its formula, the shape of its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any, Literal

from numpy.typing import NDArray

from raterwise.catalog.recipes.common import Prepare
from raterwise.errors import InvalidInputError
from raterwise.predictions import Predictions, Rows
from raterwise.rules import choose, did_you_mean, one_value, positive, positive_integer
from raterwise.types import Options


@dataclass(frozen=True)
class Given:
    """What comes with the probabilities and labels."""

    belief: bool = False
    """A belief over class probabilities."""
    samples: int = 0
    """How many draws of an ensemble, of equal weight."""
    confidence: bool = False
    """A confidence that ranks the cases in place of the largest probability."""
    outside: bool = False
    """Cases from elsewhere."""

    @property
    def ranking(self) -> str:
        """The question that metrics of ranks ask in place of "top_label"."""
        return "with_outside" if self.outside else self.ranking_inside

    @property
    def ranking_inside(self) -> str:
        """The same without cases from elsewhere."""
        return "confidence" if self.confidence else "top_label"

    @staticmethod
    def of(predictions: Predictions) -> Given:
        """Return what predictions have besides probabilities and labels."""
        return Given(
            predictions.belief is not None,
            0 if predictions.draws is None else predictions.draws.number,
            predictions.confidence is not None,
            predictions.outside is not None,
        )


def _as_it_is(summary: Any, options: Options, like: Any = None) -> Any:
    return summary


@dataclass(frozen=True)
class Metric:
    """One metric: its words, its summary, its formula."""

    name: str
    title: str
    group: str
    meaning: str
    direction: str
    """"lower" or "higher" is better; "none" where it describes the data."""
    reference: str
    plan: Callable[[Options], Any]
    formula: Callable[..., NDArray[Any]]
    """formula(table, **options) -> array over the table's leading axes; it gets the options that
    its parameters name."""
    prepare: Prepare = field(default=_as_it_is)
    exact: Callable[[Any, Options], tuple[float, float | None]] | None = None
    """The value of sorted scores, where the table for the interval is coarser, with a bound on its
    error where it is an approximation."""
    growing: Callable[[Any, Options], NDArray[Any] | None] | None = None
    """The values of sorted scores of the first unit, of the first two, and so on, where they take
    less time together than one by one; it returns None where it cannot."""
    of_cells: Callable[[Any, Options], tuple[float, float | None]] | None = None
    """The value where cells stand for scores, with a bound on its error."""
    options: Options = field(default_factory=dict)
    table_options: tuple[str, ...] = ()
    """Options that its table depends on, besides the bins and what the plan says."""
    questions: tuple[str, ...] = ()
    """What `question` may be, where it is an option."""
    needs_raters: int = 1
    """How many labels each case needs, where its plan does not count them."""
    error: bool = False
    """A non-negative calibration error: its interval inverts a test."""
    norm: Callable[[Options], float] | None = None
    """Of an error that is a norm of the gaps of its bins: which. A larger one is at least as large
    as a smaller one of the same plan."""
    calibrated: float | None = None
    """The value that a calibrated model has, where it is no error and may lie on either side."""
    shape: str = "student"
    """Of its interval: "student", "proportion", "loss" (few cases may make up most of it),
    "signed_loss" (the same, but its estimate may be below 0), "separation" (an area over pairs of
    a right and a wrong case), "difference" (of two proportions, its
    `parts`), "ratio" (of what was observed to what was expected) or "resampled" (it jumps from case
    to case, so that leaving one out says nothing)."""
    denominator: Callable[[Any, Options], NDArray[Any]] | None = None
    """Of a ratio: what it is divided by, from a table with leading axes; the weight by default."""
    hits: Literal["", "any", "positive", "others"] = ""
    """Of a proportion: whose labels count as hits, where a miss may be of another class."""
    counts_positives: bool = False
    """Where nothing varies, positives were seen and not cases, as of an average precision."""
    parts: Callable[..., tuple[tuple[NDArray[Any], float], tuple[NDArray[Any], float]]] | None = (
        None
    )
    """Of a difference: parts(table, **options) -> the two shares, each with its factor."""
    step: Callable[..., dict[str, float]] | Mapping[str, float] | None = None
    """Of a loss: step(table, **options) -> what one more error would add to it
    (`small_samples.loss_interval`)."""
    step_plan: Any = None
    """The plan of the table that `step` is made from, where it is not the metric's own."""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    """The smallest and the largest value that there can be, with any options."""
    most: Callable[[Options, int], float] | None = None
    """The largest value with these options and so many classes, where these matter."""
    closer: Callable[[Options, float], Options] | None = None
    """Of a smoothed error: its options where so many cases are smoothed less. The interval holds
    what either curve allows, for no noise tells what smoothing rounds off."""
    measured_bound: bool = False
    """Whether the bound of its value from cells was measured on many sets, and not proven."""
    test: Literal["", "normal", "signs"] = ""
    """Where the metric is the statistic of a test, how its p-value is made (`p_values`)."""
    products: Callable[[Any, Options, int], NDArray[Any]] | None = None
    """Of such a test where whole rows are kept: (units, units), what cases of two units add."""
    undefined: str = "it has no value on these data"
    in_all: bool | str = True
    """Whether "all" has it; "two classes": only of two."""
    needs: Literal["", "belief", "samples", "outside"] = ""
    """What there must be besides probabilities and labels: a belief over class probabilities, the
    draws of an ensemble, cases from elsewhere."""
    ranks: bool = False
    """It ranks the cases by confidence: takes one of the user's own, and cases from elsewhere."""
    meaning_of_event: str = ""
    """The meaning where the question is about a class and not about the prediction being right."""
    curve: str | None = None
    """The curve that its table shows: "top_label", "per_class", "disagreement", "thresholds"; or
    "operating", over the tables of `curve_plans`."""
    curve_plans: Callable[[Options], tuple[Any, ...]] | None = None
    """The plans of the tables that its curve is made from, where they are not the metric's own."""
    settle: Callable[[Any, Options], Options] | None = None
    """The options with those that follow from the data chosen, once for many subsets of it."""
    notice: Callable[[Any, Options], str | None] | None = None
    """What to say of options that were chosen from the data, such as a bandwidth, if anything."""
    label_loss: Callable[[Rows], NDArray[Any]] | None = None
    """What each label would add, (n, K), where the metric is a mean over labels."""
    headline: tuple[int | None, int | None] = (None, None)
    """Its place among the key figures of a report, of two classes and of more; of several metrics
    with one place the first that has a value takes it."""
    tags: frozenset[str] = frozenset()
    """by_class: one value per class; of_pairs: compares raters with each other; by_level: made
    within sub-groups unless told otherwise; kernel: needs neighbours; variance: below 0 by
    chance alone; of_cases: tells equal scores of different cases apart; other_scale: it may
    be less than the gap between all that was said and all that was predicted; quantile: so
    it may, on the same scale, for most cases can be nearer than the mean; infinite: it is,
    where it is undefined, and so is a mean over images or findings of which one is; log_odds: it
    is added to the log odds, so that its error tells how many events it rests on."""

    @cached_property
    def formula_options(self) -> tuple[str, ...]:
        """The options that the formula takes, which its parameters name."""
        taken = signature(self.formula).parameters
        return tuple(name for name in self.options if name in taken)

    def estimate(self, summary: Any, options: Options) -> float:
        """Return the value of the metric."""
        value: float = summary.value(self, options)[0]
        return value

    def over(self, table: Any, options: Options) -> NDArray[Any]:
        """Return the formula over a table or a stack of resampled tables."""
        return self.formula(table, **{name: options[name] for name in self.formula_options})

    @property
    def needs_belief(self) -> bool:
        """Whether bare probabilities are not enough."""
        return self.needs != ""

    def lacks(self, given: Given, options: Options | None = None) -> str | None:
        """Return why it cannot be had from what is given; None where it can."""
        if self.needs == "" or (self.needs == "outside" and given.outside):
            return None
        if self.needs != "samples":
            return None if self.needs == "belief" and given.belief else LACKING[self.needs]
        components = (options or self.options)["components"]
        least = max(components, 2)
        if given.samples == 0 or given.samples >= least:
            return None if given.samples else LACKING["samples"]
        return f"it needs at least {least} draws for {components} components; got {given.samples}"

    @property
    def takes_confidence(self) -> bool:
        """Whether it looks at a confidence of the user's own, or at cases from elsewhere."""
        return self.ranks or self.needs == "outside"

    @cached_property
    def least_raters(self) -> int:
        """How many labels each case needs, unless other options need fewer."""
        return max(self.needs_raters, _labels_of(self.plan(self.options)))

    @property
    def of_pairs(self) -> bool:
        """Whether it compares raters with each other."""
        return self.least_raters > 1 or "of_pairs" in self.tags

    def raters_needed(self, options: Options, on_single: str = "error") -> int:
        """Return how many labels each case needs; the plugin of a class's probability needs one.

        Asked to drop single labels, it is of the same cases as the unbiased estimate.
        """
        if on_single != "error":
            return self.least_raters
        return max(self.needs_raters, _labels_of(self.plan(options)))

    def plan_of(self, options: Options, on_single: str = "error") -> Any:
        """Return the plan of the cases that have as many labels as are needed."""
        plan, needed = self.plan(options), self.raters_needed(options, on_single)
        counts = hasattr(plan, "least_raters") and plan.least_raters < needed
        return replace(plan, least_raters=needed) if counts else plan

    def plan_of_step(self, options: Options, on_single: str = "error") -> Any:
        """Return the plan of the table that `step` is made from; None where it needs none."""
        if not callable(self.step):
            return None
        return self.step_plan or self.plan_of(options, on_single)

    def within_bounds(
        self, low: float, high: float, options: Options, classes: int
    ) -> tuple[float, float]:
        """Return an interval without what cannot be with these options and so many classes."""
        least, _ = self.possible
        most = self.bounds[1] if self.most is None else self.most(options, classes)
        return max(low, least), min(high, most)

    @property
    def possible(self) -> tuple[float, float]:
        """Between which values the truth lies, with any options and classes."""
        return max(self.bounds[0], 0.0) if self.error else self.bounds[0], self.bounds[1]

    def meaning_for(self, options: Options) -> str:
        """Return what it means with these options."""
        about_class = options.get("question", "top_label") not in OF_THE_PREDICTION
        return self.meaning_of_event if about_class and self.meaning_of_event else self.meaning

    def by_class(self, options: Options) -> bool:
        """Tell whether it is asked of every class."""
        question = getattr(self.plan(options), "question", None)
        return getattr(question, "name", "") in ("per_class", "predicted_class")

    def with_defaults(self, given: Options) -> dict[str, Any]:
        """Return the options of this metric: those given that it has, otherwise the defaults."""
        return {name: given.get(name, default) for name, default in self.options.items()}

    def checked(self, given: Options, called: str = "{}") -> dict[str, Any]:
        """Return the same, where each is one of its choices; errors say what it is `called`."""
        found = self.with_defaults(given)
        for name, value in found.items():
            if name != "bins":
                one_value(called.format(name), value)
            if allowed := self._choices(name):
                choose(called.format(name), value, allowed)
        if found.get("bandwidth") is not None:
            positive("bandwidth", found["bandwidth"])
        if "components" in found:
            positive_integer("components", found["components"])
        if "seed" in found:
            positive_integer("seed", found["seed"], least=0)
        return found

    def with_options(self, shared: Options, own: Options) -> dict[str, Any]:
        """Return the options of this metric, checked.

        `shared` are for every metric that can take them, `own` for this one: one that it does not
        have is an error that names those it has.
        """
        known = ", ".join(self.options) or "none"
        for name in own:
            if name not in self.options:
                raise InvalidInputError(
                    f"options: {self.name} has no option {name!r}"
                    f"{did_you_mean(name, self.options)}; it has: {known}"
                )
        told = {name: value for name, value in shared.items() if self.can_take(name, value)}
        return self.checked({**told, **own}, f"options: {{}} of {self.name}")

    def _choices(self, name: str) -> tuple[Any, ...]:
        """Return what an option may be, where there are a few choices."""
        if name == "question":
            return self.questions
        return (self.options[name], "plugin") if name == "estimator" else CHOICES.get(name, ())

    def can_take(self, name: str, value: Any) -> bool:
        """Tell whether an option is one of this metric's, with a value that it may have."""
        if name != "question":
            return name in self.options
        one_value(name, value)
        return name in self.options and value in self.questions


def _labels_of(plan: Any) -> int:
    """Return how many labels a plan needs of each case, 1 where it does not count them."""
    return int(getattr(plan, "least_raters", 1))


OF_THE_PREDICTION = ("top_label", "confidence", "with_outside")
"""Questions about whether the predicted class is right."""
LACKING = {
    "belief": "it needs a belief over class probabilities, not probabilities alone",
    "samples": "it needs the draws of an ensemble, of equal weight, not probabilities alone",
    "outside": "it needs out-of-distribution cases (outside=)",
}
"""Why a metric has no value where what it needs was not given."""

CHOICES: dict[str, tuple[Any, ...]] = {
    "ordered": (True, False),
    "leave_out": ("case", "copy"),
    "method": ("auto", "exact", "cells"),
    "observed_bins_only": (True, False),
    "of": ("errors", "successes"),
    "p": (1, 2),
    "per": ("annotation", "case"),
    "scale": ("nominal", "ordinal", "interval"),
    "scale_by_half": (True, False, "auto"),
    "singletons": ("zero", "plugin"),
}
"""What an option may be, by its name."""

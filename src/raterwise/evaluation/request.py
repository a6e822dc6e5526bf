"""What is asked of the cases, whatever they come from: metrics with their options, settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from raterwise.binning import bin_edges
from raterwise.catalog import CATALOG, Metric, find
from raterwise.catalog.metric import Given
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.inference.passes import PAIRS
from raterwise.inference.settings import Settings
from raterwise.rules import choose
from raterwise.summaries import DeviationPlan
from raterwise.types import Options

Metrics = str | Sequence[str]
"""Names of metrics: "all", "ece,brier" or ["ece", "brier"]."""


@dataclass(frozen=True)
class Request:
    """The metrics with their options, and how intervals are made: every front end builds one.

    It holds names, not catalog rows, so that it can be sent to another machine.
    """

    metrics: tuple[str, ...]
    shared: Options = field(default_factory=dict)
    """`bins`, `question`, `per`: for every metric that can take them."""
    own: Mapping[str, Options] = field(default_factory=dict)
    """By metric: options of its own."""
    settings: Settings = field(default_factory=Settings)
    given: Given = field(default_factory=Given)
    """What there is besides probabilities and labels."""

    @staticmethod
    def of(
        metrics: Metrics = "all",
        *,
        bins: Any = 15,
        question: str | None = None,
        per: str | None = None,
        threshold: float | None = None,
        options: Mapping[str, Options] | None = None,
        settings: Settings | None = None,
        given: Given | None = None,
        classes: int | None = None,
    ) -> Request:
        """Return a request whose arguments are checked.

        Parameters
        ----------
        metrics
            "all" has those that what is `given` suffices for, and those of a positive class only of
            two `classes`; the name of a group ("clinical") stands for its metrics.
        bins, question, per, threshold
            For every metric that can take them; a question, a way to count or a threshold that no
            metric of these can take is an error.
        options
            By metric, options of its own: {"robust_ece": {"sigma": 0.05}}; the name of a group
            gives them to all of its metrics that have them: {"clinical": {"positive": 2}}.

        >>> request = Request.of("ece,robust_ece", bins=10, options={"robust_ece": {"sigma": 0.05}})
        >>> request.asked["robust_ece"][1]["sigma"], request.asked["ece"][1]["bins"]
        (0.05, 10)
        """
        bin_edges(bins)  # a bad number is the caller's mistake, not a metric without a value
        given = given or Given()
        rows = rows_of(metrics, given, classes=classes)
        told = {"question": question, "per": per, "threshold": threshold}
        shared = {"bins": bins, **{k: v for k, v in told.items() if v is not None}}
        for name in told:
            if name in shared and not any(row.can_take(name, shared[name]) for row in rows):
                raise InvalidInputError(
                    f"{name}: none of these metrics can use {shared[name]!r}; "
                    f"{_choices(rows, name)}"
                )
        if per is not None:
            choose("per", per, ("annotation", "case"))
        _check_ranking(rows, question, given)
        own = _of_each(_by_metric(options), rows)
        for name in own:
            if name not in [row.name for row in rows]:
                try:
                    find(name)  # one that does not exist is said to be so
                except InvalidInputError as error:
                    raise error.renamed("options") from None
                raise InvalidInputError(f"options: {name} is not among the metrics asked for")
        names = tuple(row.name for row in rows)
        request = Request(names, shared, own, settings or Settings(), given)
        for row, options_of_row in request.asked.values():
            try:
                row.plan(options_of_row)  # says at once what cannot be
            except InvalidTypeError as error:
                if error.argument != "bins" or "bins" in own.get(row.name, {}):
                    raise
                raise InvalidTypeError(
                    f"bins: {row.name} takes how many, not edges; give it its own with "
                    f'options={{"{row.name}": {{"bins": 15}}}}'
                ) from error
        return request

    @property
    def rows(self) -> list[Metric]:
        """The rows of the catalog."""
        return [find(name) for name in self.metrics]

    @property
    def asked(self) -> dict[str, tuple[Metric, dict[str, Any]]]:
        """The metrics with their options, but for those that need what is not given."""
        found = {}
        for row in self.rows:
            own = row.with_options(self.shared, self.own.get(row.name, {}))
            if row.lacks(self.given, own) is None:
                if row.ranks and own["question"] == "top_label":
                    own["question"] = self.given.ranking
                found[row.name] = row, own
        return found

    def lacking(self, row: Metric) -> str | None:
        """Return why a metric has no value, where what it needs is not given."""
        return row.lacks(self.given, row.with_options(self.shared, self.own.get(row.name, {})))

    def plans(
        self, *, bounded: bool = False, steps: bool = True, grouped: bool | None = None
    ) -> list[Any]:
        """Return what to keep of the cases, in memory that does not grow if it is `bounded`.

        Also how far raters agree, for the noise of a calibrated model, and unless `steps` is false
        how sure the model is, for what one more error would cost. What a verdict needs is kept if
        it is said whether the cases are `grouped` into patients or images.
        """
        on_single = self.settings.on_single
        plans = [row.plan_of(own, on_single) for row, own in self.asked.values()]
        if bounded and any(plan.grows for plan in plans):
            raise InvalidInputError(
                'question: "canonical" compares every case with every other, so it needs them all '
                'in memory. For a stream or images use "per_class", or for two classes "positive" '
                '("canonical" is twice that), or evaluate a random sample of the cases'
            )
        plans += [row.step_plan for row, _ in self.asked.values() if steps and row.step_plan]
        if self.given.outside:  # the curve without them is shown beside that with them
            inside = {"question": self.given.ranking_inside}
            curves = [(row, own) for row, own in self.asked.values() if row.ranks and row.curve]
            plans += [row.plan_of({**own, **inside}, on_single) for row, own in curves]
        for row, own in self.asked.values():
            plans += row.curve_plans(own) if steps and row.curve_plans is not None else ()
        plans = [*(p.bounded() if bounded else p for p in plans), PAIRS]
        return list(dict.fromkeys([*plans, *self.verdict_plans(grouped)]))

    def verdict_plans(self, grouped: bool | None) -> list[DeviationPlan]:
        """Return what a verdict needs of the cases; nothing where none is to be had."""
        wanted = grouped is not None and not self.no_verdict
        return [DeviationPlan(bool(grouped))] if wanted else []

    @property
    def no_verdict(self) -> str:
        """Why there is no verdict on calibration, or nothing."""
        if not any(row.error for row in self.rows):
            return "no calibration error is among the metrics"
        return "" if self.settings.resamples else "resamples=0 asks for values alone"

    @property
    def compares_raters(self) -> bool:
        """Whether metrics of agreement are asked for, beside which raters are compared."""
        return any("of_pairs" in row.tags for row in self.rows)

    def only(self, metrics: Sequence[str]) -> Request:
        """Return the request for some of the metrics."""
        own = {name: given for name, given in self.own.items() if name in metrics}
        return replace(self, metrics=tuple(metrics), own=own)

    def at_other_prevalence(self, metrics: Metrics, given: Given | None = None) -> Request:
        """Return the request with labels weighted by their class; "all" has what that leaves.

        Weights of labels do not carry over how raters of a case differ, nor what a belief says.
        """
        if self.settings.draws_raters:
            raise InvalidInputError(
                'target_prevalence: needs unit="cases"; labels are weighted whoever gave them'
            )
        found = replace(self, given=given or self.given)
        named = names_asked(metrics)
        if "all" not in named:
            return found
        left = [
            row.name
            for row in found.rows
            if row.name in named
            or (
                not row.of_pairs
                and row.options.get("estimator") != "debiased"
                and row.lacks(found.given) is None
            )
        ]
        return found.only(left)

    def about_the_positive_class(self) -> Request:
        """Return the request with calibration errors that ask about the positive class."""
        own = {
            row.name: {"question": "positive", **self.own.get(row.name, {})}
            for row in self.rows
            if row.error and row.can_take("question", "positive")
        }
        return replace(self, own={**self.own, **own})

    def with_settings(self, **changed: Any) -> Request:
        """Return the request with other settings."""
        return replace(self, settings=replace(self.settings, **changed))

    def notices(self) -> tuple[str, ...]:
        """Say which metrics have other questions than the one that all were asked."""
        wanted = self.shared.get("question")
        kept: dict[str, list[str]] = {}
        for row, own in self.asked.values():
            told = "question" in self.own.get(row.name, {})
            if wanted and row.questions and wanted not in row.questions and not told:
                kept.setdefault(own["question"], []).append(row.title)
        return tuple(
            f"{', '.join(titles)}: {'has' if len(titles) == 1 else 'have'} no question {wanted!r}, "
            f"and {'answers' if len(titles) == 1 else 'answer'} {own!r}"
            for own, titles in kept.items()
        )

    def as_options(self) -> dict[str, Any]:
        """Return what results say of how they were made."""
        return {**self.shared, "options": dict(self.own), **asdict(self.settings)}


def _check_ranking(rows: Sequence[Metric], question: str | None, given: Given) -> None:
    """Refuse a confidence or outside cases that no metric would look at."""
    named = {"confidence": given.confidence, "outside": given.outside}
    for name in (name for name, there in named.items() if there):
        if question not in (None, "top_label"):
            raise InvalidInputError(f'{name}: needs question="top_label"; got {question!r}')
        if not any(row.takes_confidence for row in rows):
            known = [row.name for row in CATALOG.values() if row.takes_confidence]
            raise InvalidInputError(
                f"{name}: none of these metrics ranks cases by it; {', '.join(known)} do"
            )


def rows_of(
    metrics: Metrics, given: Given | None = None, *, classes: int | None = None
) -> list[Metric]:
    """Return the catalog rows asked for; "all" has those that what is given suffices for.

    It has those of a positive class where there are two classes. The name of a group stands for
    its metrics.

    >>> "net_benefit" in [row.name for row in rows_of("ece,clinical")]
    True
    """
    rows: list[Metric] = []
    for name in names_asked(metrics):
        group = [row for row in CATALOG.values() if row.group.lower() == name.lower()]
        if name == "all":
            group = [row for row in CATALOG.values() if _in_all(row, given or Given(), classes)]
        rows += group or [find(name)]
    rows = list({row.name: row for row in rows}.values())
    if not rows:
        raise InvalidInputError("metrics: must name at least one metric; got none")
    return rows


def one_metric(metric: Any) -> str:
    """Return the name of the metric that a function of one metric is asked for."""
    if not isinstance(metric, str):
        raise InvalidTypeError(f"metric: must be the name of a metric; got {metric!r:.80}")
    return find(metric.strip(), "metric").name


def names_asked(metrics: Metrics) -> list[str]:
    """Return the names of metrics and groups that are asked for, as they are written."""
    told: Any = metrics.split(",") if isinstance(metrics, str) else metrics
    names = list(told) if isinstance(told, Iterable) else [told]
    if not all(isinstance(name, str) for name in names):
        raise InvalidTypeError(f"metrics: must be names of metrics; got {metrics!r}")
    return [name.strip() for name in names]


def _in_all(row: Metric, given: Given, classes: int | None) -> bool:
    fits = classes == 2 if row.in_all == "two classes" else bool(row.in_all)
    return fits and row.lacks(given) is None


def options_of(metric: str, options: Options | None) -> dict[str, Options]:
    """Return the options of one metric as `Request.of` takes them: by metric, or without its name.

    >>> options_of("ece", {"bins": 5}) == options_of("ece", {"ece": {"bins": 5}})
    True
    """
    alone = isinstance(options, Mapping) and not any(
        isinstance(given, Mapping) for given in options.values()
    )
    return _by_metric({metric: options} if alone and options else options)


def _by_metric(options: Mapping[str, Options] | None) -> dict[str, Options]:
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(
        isinstance(name, str) and isinstance(given, Mapping) for name, given in options.items()
    ):
        raise InvalidTypeError(
            'options: must give options by metric, such as {"robust_ece": {"sigma": 0.05}}; '
            f"got {options!r}"
        )
    return {name: dict(given) for name, given in options.items()}


def _of_each(options: Mapping[str, Options], rows: Sequence[Metric]) -> dict[str, Options]:
    """Return options by metric, those of a group given to each of its metrics that has them."""
    found: dict[str, dict[str, Any]] = {}
    for name, given in options.items():
        group = [row for row in rows if row.group.lower() == name.lower()]
        for option in given:
            if group and not any(option in row.options for row in group):
                known = ", ".join(dict.fromkeys(own for row in group for own in row.options))
                raise InvalidInputError(
                    f"options: no metric of {name} has an option {option!r}; they have: {known}"
                )
        for row in group:
            told = {k: v for k, v in given.items() if k in row.options}
            found[row.name] = {**told, **found.get(row.name, {})}
        if not group:
            found[name] = {**found.get(name, {}), **given}
    return {name: own for name, own in found.items() if own or name in options}


def _choices(rows: Sequence[Metric], name: str) -> str:
    """Say what these metrics take, or which metrics have an option that none of these has."""
    questions = dict.fromkeys(q for row in rows for q in row.questions)
    if name == "question" and questions:
        return f"they take {', '.join(questions)}"
    others = [row.name for row in CATALOG.values() if name in row.options]
    return f"they take no such option; {', '.join(others)} do"

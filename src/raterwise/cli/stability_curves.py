"""How steady metrics are when the test set shrinks, of classes and of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.catalog import find
from raterwise.catalog.metric import Given
from raterwise.cli.findings import asked_of_findings, of_each_finding
from raterwise.curves.tables import as_numbers, as_plain
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.evaluation.request import Request
from raterwise.inference.settings import Progress, within
from raterwise.io.findings import Findings
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.stability import SubsampleCurve, TotalVariation
from raterwise.stability.parts import Partition, paths_of
from raterwise.stability.subsamples import curve_of
from raterwise.stability.variation import variation_of

EVERY, ONE = "every rater", "one rater"
CURVES_SHARE = 0.3
"""How much of the work on a metric is its curve; the rest is its total variation."""


@dataclass(frozen=True, eq=False)
class MetricStability:
    """One metric on parts of the cases, with the labels of every rater or of one."""

    metric: str
    raters: str
    curve: SubsampleCurve
    variation: TotalVariation
    paths: NDArray[np.float64] | None = None
    """The metric on the growing parts of every repeat, where they have just been made."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, None for NaN."""
        curve = self.curve
        return {
            "raters": self.raters,
            "unit": curve.unit,
            "fractions": list(curve.fractions),
            "sizes": list(curve.sizes),
            "values": [as_plain(row) for row in curve.values],
            "mean": as_plain(curve.mean),
            "std": as_plain(curve.std),
            "full": as_plain(curve.full),
            "total_variation": {key: as_plain(v) for key, v in self.variation._asdict().items()},
        }

    @staticmethod
    def from_dict(metric: str, content: Mapping[str, Any]) -> MetricStability:
        """Return what `to_dict` wrote down."""
        values = np.array(content["values"], np.float64)
        fractions, sizes = tuple(content["fractions"]), tuple(content["sizes"])
        full = as_numbers(content["full"])
        curve = SubsampleCurve(fractions, sizes, values, full, content["unit"])
        ends = content["total_variation"]
        moved = TotalVariation(as_numbers(ends["mean"]), as_numbers(ends["std"]))
        return MetricStability(metric, content["raters"], curve, moved)


def named(found: Sequence[MetricStability]) -> dict[str, MetricStability]:
    """Return each by the name to show: its raters, too, where the same metric comes twice."""
    several = len({one.raters for one in found}) > 1
    titles = [find(one.metric).title for one in found]
    names = [
        f"{title}, {one.raters}" if several else title
        for title, one in zip(titles, found, strict=True)
    ]
    return dict(zip(names, found, strict=True))


def parts_of_report(found: Sequence[MetricStability]) -> dict[str, dict[str, Any]]:
    """Return the curves and the total variations by name, as a report takes them."""
    known = named(found).items()
    return {
        "stability": {name: one.curve for name, one in known},
        "variation": {name: one.variation for name, one in known},
    }


def measure(
    cases: Predictions,
    metrics: Sequence[str],
    *,
    fractions: Sequence[float] = (0.01, 0.05, 0.1, 0.25, 0.5, 1),
    repeats: int = 100,
    seed: int = 0,
    on_single: str = "error",
    asked: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> tuple[list[MetricStability], list[str]]:
    """Return every metric with all labels and with one per case; and what could not be had.

    `asked` is what `Asked.told` says of the metrics.
    """
    request = Request.of(list(metrics), given=Given.of(cases), **(asked or {}))
    if missing := [row for row in request.rows if row.name not in request.asked]:
        raise InvalidInputError(f"--metrics: {missing[0].name}: {request.lacking(missing[0])}")
    metrics, labels = list(request.asked), cases.labels  # a group's name stands for its metrics
    needed = {name: row.raters_needed(own) for name, (row, own) in request.asked.items()}
    notes = [
        f"{count} cases with too few raters for {find(name).title}"
        for name, least in needed.items()
        if (count := labels.require_raters(least, on_single))
    ]
    tasks = [(metric, EVERY) for metric in metrics]
    if labels.num_raters.max() > 1:
        tasks = [(metric, raters) for metric in metrics for raters in (EVERY, ONE)]
        notes += [
            f"{find(m).title} with one rater: it needs {n}" for m, n in needed.items() if n > 1
        ]
        tasks = [task for task in tasks if task[1] == EVERY or needed[task[0]] == 1]
    by = {EVERY: cases, ONE: replace(cases, labels=one_rater_each(labels, seed))}
    found = []
    for i, (metric, raters) in enumerate(tasks):
        row, enough = find(metric), labels.num_raters >= needed[metric]
        part = by[raters].take(enough).without_absent_patients()
        measured, what = request.asked[metric], f"{row.title}, {raters}"
        begin, middle, end = ((i + share) / len(tasks) for share in (0, CURVES_SHARE, 1))
        first, rest = within(progress, begin, middle, what), within(progress, middle, end, what)
        curve = curve_of(part, measured, fractions, repeats, seed, first)
        if "infinite" in row.tags and not np.isfinite(curve.full):
            notes.append(f"{what}: {row.undefined}")
            continue
        parts = Partition(repeats=repeats, seed=seed)
        paths = paths_of(part, measured, parts, rest)
        found.append(MetricStability(metric, raters, curve, variation_of(paths), paths))
    if not found:
        raise UndefinedMetricError("; ".join(notes))
    return found, notes


def measure_findings(
    found: Findings,
    metrics: Sequence[str],
    *,
    asked: Mapping[str, Any],
    progress: Progress,
    **how: Any,
) -> tuple[list[MetricStability], dict[str, list[MetricStability]], list[str]]:
    """Return the means over the findings, each finding, and what could not be had.

    The same seed draws the same cases for every finding that the same cases
    were rated for: only then is there a mean over the findings, on each subset and each growing
    part, and the variation is that of this mean.
    """
    asked = asked_of_findings(metrics, asked)
    one = partial(measure, metrics=metrics, asked=asked, **how)
    made = of_each_finding(found, progress, one)
    each = {title: measured for title, (measured, _) in made.items()}
    notes: dict[str, list[str]] = {}
    for title, (_, lacking) in made.items():
        for note in lacking:
            notes.setdefault(note, []).append(title)
    means, missing = _means(found, each, Request.of(list(metrics), **asked))
    told = [n if len(t) == len(made) else f"{n}: {', '.join(t)}" for n, t in notes.items()]
    return means, each, [*told, *missing]


def _means(
    found: Findings, each: Mapping[str, Sequence[MetricStability]], request: Request
) -> tuple[list[MetricStability], list[str]]:
    """Return the mean over the findings of each metric, repeat by repeat; or why there is none."""
    means, notes = [], []
    for name, (row, own) in request.asked.items():
        used = found.raters >= row.raters_needed(own)
        if (used != used[:, :1]).any():
            notes.append(f"the mean of {row.title}: not the same cases were rated for each finding")
            continue
        for raters in (EVERY, ONE):
            same = [
                one
                for measured in each.values()
                for one in measured
                if (one.metric, one.raters) == (name, raters)
            ]
            if len(same) == len(found.names):
                means.append(_mean(same))
    return means, notes


def _mean(findings: Sequence[MetricStability]) -> MetricStability:
    first = findings[0]
    paths = _over([one.paths for one in findings])
    curve = replace(
        first.curve,
        values=_over([one.curve.values for one in findings]),
        full=float(_over([one.curve.full for one in findings])),
    )
    return MetricStability(first.metric, first.raters, curve, variation_of(paths), paths)


def _over(values: Sequence[Any]) -> NDArray[np.float64]:
    """Return the mean over the findings in which a metric is defined; NaN where it is in none."""
    stacked = np.array(values, np.float64)
    defined = np.isfinite(stacked)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(defined, stacked, 0.0).sum(axis=0) / defined.sum(axis=0))


def one_rater_each(labels: Labels, seed: int) -> Labels:
    """Return one label per case, drawn at random from its raters: what most test sets have."""
    if labels.ratings is not None:
        case, label = labels.ratings.case, labels.ratings.label
    else:
        row, klass = np.nonzero(labels.counts)
        times = labels.counts[row, klass]
        case, label = np.repeat(row, times), np.repeat(klass, times)
    order = np.random.default_rng(seed).permutation(len(case))
    cases, first = np.unique(case[order], return_index=True)
    if len(cases) != len(labels):
        raise InvalidInputError(
            f"labels: every case needs a rating; nobody rated {len(labels) - len(cases)}"
        )
    return Labels.from_classes(
        label[order][first], num_classes=labels.num_classes, class_names=labels.class_names
    )

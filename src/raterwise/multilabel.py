"""Multi-label tasks: L yes-or-no findings per case, each and on average."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.arrays import as_float_array, as_integer_array, choose
from raterwise.catalog import Metric
from raterwise.errors import InvalidInputError
from raterwise.evaluate import blanks, facts, rows_of, warnings_about
from raterwise.inference import Draws, Pass, Progress, Settings, estimate, mean_estimate
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.results import Estimate, Results

__all__ = ["MultilabelResults", "evaluate_multilabel"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class MultilabelResults(Mapping[str, Results]):
    """The results of each finding, and their mean over the findings (`macro`)."""

    findings: Mapping[str, Results]
    macro: Results = field(default_factory=lambda: Results({}))

    def __getitem__(self, name: str) -> Results:
        return self.findings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return {
            "findings": {name: results.to_dict() for name, results in self.items()},
            "macro": self.macro.to_dict(),
        }


def evaluate_multilabel(
    probs: Any,
    positives: Any,
    raters: Any,
    names: Sequence[str] | None = None,
    metrics: str | Sequence[str] = "all",
    groups: Any = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    *,
    weights: Any = None,
    bins: int = 15,
    interval: str = "auto",
    on_unrated: str = "error",
    on_single: str = "error",
    threads: int | None = None,
    progress: Progress | None = None,
) -> MultilabelResults:
    """Return every metric of every finding, and its mean over the findings, with intervals.

    Each of the L findings is a yes-or-no task of its own; calibration errors ask about the
    positive class. The findings are resampled together, patient by patient, so the interval of
    the mean knows that one patient's findings hang together.

    Parameters
    ----------
    probs
        (N, L): the probability that each finding is present.
    positives, raters
        (N, L): how many raters saw the finding, out of how many who looked for it.
    names
        The findings' names.
    on_unrated
        "error", or "drop" to leave a case out of the findings that nobody rated.

    >>> probs = [[0.9, 0.2], [0.4, 0.1], [0.7, 0.6]]
    >>> positives, raters = [[1, 0], [0, 0], [1, 1]], [[1, 1], [1, 1], [1, 1]]
    >>> results = evaluate_multilabel(
    ...     probs, positives, raters, names=["mass", "nodule"], metrics="accuracy", resamples=0
    ... )
    >>> results["mass"]["accuracy"].value, results.macro["accuracy"].value
    (1.0, 1.0)
    """
    settings = Settings(resamples, level, seed, "cases", interval, on_single, threads)
    array, counts, labelled = _checked(probs, positives, raters)
    titles = _titles(names, array.shape[1])
    choose("on_unrated", on_unrated, ("error", "drop"))
    rows = rows_of(metrics)
    whole = Predictions.of(array[:, 0], np.zeros(len(array), int), weights=weights, groups=groups)
    draws = Draws.of(whole, settings)
    findings: dict[str, Results] = {}
    passes: dict[str, list[tuple[Pass, float, dict[str, Any]]]] = {row.name: [] for row in rows}
    for i, title in enumerate(titles):
        if progress:
            progress(title, i / len(titles))
        seen = labelled[:, i] > 0
        if on_unrated == "error" and not seen.all():
            raise InvalidInputError(
                f"raters: every case needs a rating of {title}; {int((~seen).sum())} have none "
                f'(first: row {int(np.flatnonzero(~seen)[0])}); on_unrated="drop" leaves them out'
            )
        histogram = np.stack((labelled[:, i] - counts[:, i], counts[:, i]), axis=1)
        labels = Labels.from_counts(histogram)
        part = replace(whole, probs=array[:, i], labels=labels).take(
            seen, dropped={} if seen.all() else {"unrated": int((~seen).sum())}
        )
        own_draws = draws.take(seen) if draws is not None else None
        findings[title] = _finding(part, rows, bins, settings, own_draws, passes)
    if progress:
        progress("done", 1.0)
    macro = {row.name: _macro(row, passes[row.name], findings) for row in rows}
    first = findings[titles[0]]
    facts = {**first.data, "cases": len(array), "findings": list(titles)}
    return MultilabelResults(findings, Results(macro, facts, first.options))


def _finding(
    part: Predictions,
    rows: Sequence[Metric],
    bins: int,
    settings: Settings,
    draws: Draws | None,
    passes: dict[str, list[tuple[Pass, float, dict[str, Any]]]],
) -> Results:
    estimates, asked = blanks(part, rows, {"bins": bins}, settings)
    for name, (row, own) in asked.items():
        if row.error and "question" in own:
            asked[name] = row, {**own, "question": "positive"}
    if asked:
        pass_ = Pass.of(part, list(asked.values()), settings, draws)
        for name, (row, own) in asked.items():
            estimates[name] = estimate(row, own, estimates[name], pass_)
            if (value := estimates[name].value) is not None:
                passes[name].append((pass_, value, own))
    options = {"bins": bins, **asdict(settings)}
    return Results(estimates, facts(part), options, warnings_about(part))


def _macro(
    row: Metric,
    parts: list[tuple[Pass, float, dict[str, Any]]],
    findings: Mapping[str, Results],
) -> Estimate:
    """Return the mean over the findings in which the metric is defined."""
    blank = replace(
        next(iter(findings.values()))[row.name],
        value=None, low=None, high=None, debiased=None, undefined=None,
        dropped=sum(results[row.name].value is None for results in findings.values()),
    )  # fmt: skip
    if not parts:
        return replace(blank, undefined="it is undefined for every finding")
    own = [options for _, _, options in parts]
    return mean_estimate(row, own, blank, [(pass_, value) for pass_, value, _ in parts])


def _checked(probs: Any, positives: Any, raters: Any) -> tuple[Array, Array, Array]:
    array = as_float_array(probs, "probs", ndim=2)
    if 0 in array.shape:
        raise InvalidInputError(f"probs: must hold cases and findings; got shape {array.shape}")
    counts = as_integer_array(positives, "positives", ndim=2)
    labelled = as_integer_array(raters, "raters", ndim=2)
    for name, values in (("positives", counts), ("raters", labelled)):
        if values.shape != array.shape:
            raise InvalidInputError(
                f"{name}: must have the shape of probs, {array.shape}; got {values.shape}"
            )
    wrong = (counts < 0) | (counts > labelled)
    if wrong.any():
        case, finding = np.argwhere(wrong)[0]
        raise InvalidInputError(
            "positives: must be between 0 and raters; case "
            f"{case}, finding {finding} has {counts[case, finding]} of {labelled[case, finding]}"
        )
    return array, counts, labelled


def _titles(names: Sequence[str] | None, number: int) -> list[str]:
    titles = [f"finding {i}" for i in range(number)] if names is None else [str(n) for n in names]
    if len(titles) != number or len(set(titles)) != number:
        raise InvalidInputError(
            f"names: must be {number} different names, one per finding; got {titles}"
        )
    return titles

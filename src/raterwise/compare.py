"""Several models on the same cases: paired differences with intervals and adjusted p-values."""

from __future__ import annotations

import json
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from raterwise.errors import InvalidInputError
from raterwise.evaluate import evaluate_predictions, predictions_of
from raterwise.inference.paired import Difference, differences, ranking, require_pairs
from raterwise.inference.settings import Progress, Settings
from raterwise.kernels._threads import with_threads
from raterwise.request import Metrics, Request, rows_of
from raterwise.results import Results

__all__ = ["Comparison", "Difference", "compare"]

SCHEMA_VERSION = 1
RESAMPLES, LEVEL, SEED, BINS = 1000, 0.95, 0, 15


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results of every model, every pair's differences, and how steady the ranking is."""

    models: Mapping[str, Results]
    differences: tuple[Difference, ...]
    ranking: Mapping[str, Mapping[str, float]]
    """For each metric, the share of resamples in which each model is the best."""

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return the difference of one metric between two models, first minus second."""
        for found in self.differences:
            if (found.metric, found.first, found.second) == (metric, first, second):
                return found
        raise InvalidInputError(
            f"no difference of {metric!r} between {first!r} and {second!r} was made, in that order"
        )

    def to_dict(self, *, replicates: bool = False) -> dict[str, Any]:
        """Return plain Python values; the models' resampled values only if they are asked for."""
        return {
            "schema_version": SCHEMA_VERSION,
            "models": {n: r.to_dict(replicates=replicates) for n, r in self.models.items()},
            "differences": [asdict(found) for found in self.differences],
            "ranking": {metric: dict(shares) for metric, shares in self.ranking.items()},
        }

    def to_json(self, path: str | Path, *, replicates: bool = False) -> None:
        """Write the comparison as JSON, whole or not at all."""
        content = self.to_dict(replicates=replicates)
        _write(path, json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n")

    @staticmethod
    def from_json(path: str | Path) -> Comparison:
        """Read a comparison that `to_json` wrote."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            version = content["schema_version"]
            if version != SCHEMA_VERSION:
                raise InvalidInputError(
                    f"{path}: schema_version must be {SCHEMA_VERSION}; got {version!r}"
                )
            models = {name: Results.from_dict(part) for name, part in content["models"].items()}
            made = tuple(Difference(**row) for row in content["differences"])
            return Comparison(models, made, content["ranking"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"{path}: is not a raterwise comparison ({error})") from error

    def to_html(self, path: str | Path) -> None:
        """Write the comparison for people: one file that opens without a network."""
        from raterwise.report import write_comparison

        write_comparison(self, path)

    def to_csv(self, path: str | Path) -> None:
        """Write every difference with every digit, one line each."""
        from raterwise.report import as_csv

        _write(path, as_csv(self))

    def to_latex(self, path: str | Path) -> None:
        """Write the metrics of every model as a LaTeX table for the booktabs package."""
        from raterwise.report import as_latex

        _write(path, as_latex(self))

    def to_markdown(self, path: str | Path) -> None:
        """Write the metrics of every model as a Markdown table, the best of each in bold."""
        from raterwise.report import as_markdown

        _write(path, as_markdown(self))


def compare(
    models: Mapping[str, Any],
    labels: Any = None,
    metrics: Metrics = "all",
    groups: Any = None,
    class_names: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
    *,
    bins: int = BINS,
    question: str | None = None,
    per: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    weights: Any = None,
    on_unrated: str = "error",
    on_single: str = "error",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Return how models differ on the same cases, resampled together.

    `models` maps names to class probabilities or beliefs; the other arguments are those of
    `evaluate`. Every pair is compared, in the order given.

    Or it maps names to the `Results` of `evaluate`, which may come from files: then there is
    nothing more to give, except which of their metrics. Both ways give the same numbers. Results
    of other cases, labels, patients or weights, or with another seed, are refused: their resamples
    are no pairs.

    >>> import raterwise as rw
    >>> sharp, blunt = [[0.9, 0.1], [0.2, 0.8]] * 20, [[0.6, 0.4], [0.4, 0.6]] * 20
    >>> found = rw.compare({"sharp": sharp, "blunt": blunt}, [0, 1] * 20, "brier", resamples=50)
    >>> round(found.difference("brier", "sharp", "blunt").difference, 4)
    -0.135
    >>> of_sharp = rw.evaluate(sharp, [0, 1] * 20, "brier", resamples=50)
    >>> of_blunt = rw.evaluate(blunt, [0, 1] * 20, "brier", resamples=50)
    >>> again = rw.compare({"sharp": of_sharp, "blunt": of_blunt})
    >>> again.differences == found.differences
    True
    """
    if len(models) < 2:
        raise InvalidInputError(f"models: must be at least two; got {len(models)}")
    judged = [name for name, model in models.items() if isinstance(model, Results)]
    if judged:
        if len(judged) < len(models):
            other = next(name for name in models if name not in judged)
            raise InvalidInputError(
                f"models: must be all results or all predictions; {judged[0]!r} is the first, "
                f"{other!r} the second"
            )
        cases = {"labels": labels, "groups": groups, "class_names": class_names, "weights": weights}
        made_with = {"resamples": (resamples, RESAMPLES), "level": (level, LEVEL),
                     "seed": (seed, SEED), "bins": (bins, BINS), "question": (question, None),
                     "per": (per, None), "options": (options, None)}  # fmt: skip
        _refuse_what_results_know(next(iter(models.values())), cases, made_with)
        require_pairs(models)
        return _compared(_with_metrics(models, metrics))
    if labels is None:
        raise InvalidInputError("labels: are needed with predictions; only results go without")
    if resamples < 2:
        raise InvalidInputError(f"resamples: must be at least 2 to compare; got {resamples}")
    settings = Settings(resamples, level, seed, on_single=on_single, threads=threads)
    results: dict[str, Results] = {}
    for i, (name, probs) in enumerate(models.items()):
        if progress:
            progress(name, i / len(models))
        predictions = predictions_of(probs, labels, weights, groups, class_names, on_unrated)
        request = Request.of(
            metrics, bins=bins, question=question, per=per, options=options, settings=settings,
            belief=predictions.belief is not None,
        )  # fmt: skip
        with with_threads(threads):
            results[name] = evaluate_predictions(predictions, request)
    if progress:
        progress("done", 1.0)
    return _compared(results)


def _compared(models: Mapping[str, Results]) -> Comparison:
    return Comparison(dict(models), tuple(differences(models)), ranking(models))


def _refuse_what_results_know(
    results: Results,
    cases: Mapping[str, Any],
    made_with: Mapping[str, tuple[Any, Any]],
) -> None:
    """Refuse arguments that would be left unread: results know their cases and their resamples."""
    for argument, given in cases.items():
        if given is not None:
            raise InvalidInputError(f"{argument}: results know theirs; give it with predictions")
    for argument, (value, usual) in made_with.items():
        known = results.options.get(argument)
        if value not in (usual, known):
            raise InvalidInputError(
                f"{argument}: the results were made with {known!r}, which cannot be changed; "
                f"got {value!r}"
            )


def _with_metrics(
    models: Mapping[str, Results], metrics: str | Sequence[str]
) -> dict[str, Results]:
    """Return the results with the metrics asked for, or with those that all of them have."""
    known = list(dict.fromkeys(metric for results in models.values() for metric in results))
    if metrics == "all":
        wanted = [metric for metric in known if all(metric in r for r in models.values())]
        if not wanted:
            raise InvalidInputError("models: must have a metric in common; they have none")
        if missing := [metric for metric in known if metric not in wanted]:
            python_warnings.warn(
                f"not compared, since not all models have them: {', '.join(missing)}", stacklevel=3
            )
    else:
        wanted = [row.name for row in rows_of(metrics)]
        for name, results in models.items():
            if missing := [metric for metric in wanted if metric not in results]:
                raise InvalidInputError(
                    f"metrics: {name!r} has no {', '.join(missing)}; it has {', '.join(results)}"
                )
    return {
        name: replace(
            results,
            estimates={metric: results[metric] for metric in wanted},
            replicates={m: results.replicates[m] for m in wanted if m in results.replicates},
        )
        for name, results in models.items()
    }


def _write(path: str | Path, text: str) -> None:
    from raterwise.io.files import write_text_atomically

    write_text_atomically(path, text)

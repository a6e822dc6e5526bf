"""Judges the networks of `training_losses`: what RECE Table 2 has, and paired differences.

How a metric and its interval come from several networks is in `spreads`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from experiments.kept import fingerprint, kept, write_json
from experiments.robust_ece.losses_paper import beside_the_paper
from experiments.robust_ece.runs import (
    FEWER,
    LOSS_NAMES,
    PEEKED,
    WEIGHTED,
    WIDTHS,
    Run,
    load_runs,
)
from experiments.robust_ece.spreads import (
    FloatArray,
    Network,
    Spread,
    differences_of,
    level_of,
    spreads_of,
)
from experiments.robust_ece.tables import (
    REFERENCES,
    as_markdown,
    read_judged,
)
from raterwise.errors import InvalidInputError
from raterwise.functions.proper import accuracy, nll
from raterwise.inference.settings import Progress, Settings
from raterwise.io.files import write_text_atomically

__all__ = ["judge", "judged", "network_of"]

VERSION = 8
TEMPERATURE = "cross-entropy, then temperature"
BEST_EPOCH = "best epoch on the test images"

Arrays = Mapping[str, FloatArray]


def judged(runs: Mapping[Run, Arrays], settings: Settings) -> dict[str, Any]:
    """Return what came of the networks of one data set."""
    seeds = _common_seeds(runs)
    nlls = _by_weight(runs, seeds, _validation_nll)
    run, first = next(iter(runs.items()))
    data, cases = run.data, len(first["test_labels"])
    groups = first.get("test_groups")
    units = cases if groups is None else len(np.unique(groups))
    plain = [runs[Run(data, "cross-entropy", 1.0, seed)] for seed in seeds]
    temperatures = [_temperature(arrays) for arrays in plain]
    variants = _variants(runs, seeds, nlls, temperatures)

    @cache
    def spreads(name: str, own_seeds: tuple[int, ...]) -> dict[str, Spread]:
        return spreads_of([variants[name][seed] for seed in own_seeds], settings)

    return {
        "data": data,
        "cases": {"validation": len(first["validation_labels"]), "test": cases},
        "seeds": len(seeds),
        "fewer_seeds": {name: len(own) for name, own in variants.items() if len(own) < len(seeds)},
        "level": settings.level,
        "validation_nll": nlls,
        "validation": {
            loss: _validation(_of_seeds(runs, data, loss, next(iter(own)), seeds).values())
            for loss, own in nlls.items()
        },
        "temperatures": [[float(t) for t in own] for own in temperatures],
        "train_accuracy": _by_weight(runs, seeds, lambda arrays: float(arrays["train_accuracy"])),
        "seconds": float(sum(a["seconds"] for run, a in runs.items() if run.seed in seeds)),
        "confidence": {
            name: float(np.mean([n.probs.max(axis=1) for n in own.values()]))
            for name, own in variants.items()
        },
        "metrics": {
            name: {
                metric: level_of(spread, settings.level)
                for metric, spread in spreads(name, tuple(own)).items()
            }
            for name, own in variants.items()
        },
        "differences": [
            {"metric": metric, "loss": name, "reference": reference, **found}
            for reference in REFERENCES
            for name, own in variants.items()
            if name != reference
            for metric, found in differences_of(
                spreads(name, tuple(own)), spreads(reference, tuple(own)), units, settings
            ).items()
        ],
    }


def _of_seeds(
    runs: Mapping[Run, Arrays], data: str, loss: str, beta: str, seeds: Sequence[int]
) -> dict[int, Arrays]:
    """Return the networks of one loss by seed, where they are there."""
    wanted = {seed: Run(data, loss, float(beta), seed) for seed in seeds}
    return {seed: runs[run] for seed, run in wanted.items() if run in runs}


def _common_seeds(runs: Iterable[Run]) -> list[int]:
    """Return the seeds with which every network is there, but those that have fewer on purpose."""
    by_loss: dict[tuple[str, float], set[int]] = {}
    for run in runs:
        by_loss.setdefault((run.loss, run.beta), set()).add(run.seed)
    whole = [own for (loss, _), own in by_loss.items() if loss not in FEWER]
    common = sorted(set.intersection(*whole)) if whole else []
    missing = [name for name in LOSS_NAMES if name not in {loss for loss, _ in by_loss}]
    if missing or not common:
        raise InvalidInputError(
            "networks: every loss must have been trained with at least one common seed; "
            + (f"{', '.join(missing)} missing" if missing else "there is none")
        )
    return common


def _by_weight(
    runs: Mapping[Run, Arrays], seeds: Sequence[int], value_of: Callable[[Arrays], float]
) -> dict[str, dict[str, float]]:
    """Return the mean over seeds of something, by loss and weight β."""
    out: dict[str, dict[float, list[float]]] = {loss: {} for loss in LOSS_NAMES}
    for run, arrays in runs.items():
        if run.seed in seeds:
            out.setdefault(run.loss, {}).setdefault(run.beta, []).append(value_of(arrays))
    return {
        loss: {f"{beta:g}": float(np.mean(own[beta])) for beta in sorted(own)}
        for loss, own in out.items()
    }


def _validation_nll(arrays: Arrays) -> float:
    return nll(_probabilities(arrays["validation_logits"]), arrays["validation_labels"])


def _validation(networks: Iterable[Arrays]) -> dict[str, float]:
    """Return how often networks are right on the validation images, and how sure they are."""
    pairs = [(_probabilities(a["validation_logits"]), a["validation_labels"]) for a in networks]
    return {
        "accuracy": float(np.mean([accuracy(*pair) for pair in pairs])),
        "confidence": float(np.mean([probs.max(axis=1) for probs, _ in pairs])),
    }


def _variants(
    runs: Mapping[Run, Arrays],
    seeds: Sequence[int],
    nlls: Mapping[str, Mapping[str, float]],
    temperatures: Sequence[FloatArray],
) -> dict[str, dict[int, Network]]:
    """Return what is compared, by seed: every loss with every weight β, a temperature."""
    data = next(iter(runs)).data

    def networks(loss: str, beta: str) -> dict[int, Network]:
        own = _of_seeds(runs, data, loss, beta, seeds)
        return {seed: network_of(arrays) for seed, arrays in own.items()}

    found: dict[str, dict[int, Network]] = {}
    for loss in LOSS_NAMES:
        first = next(iter(nlls[loss]))
        found[loss] = networks(loss, first)
    for loss in WEIGHTED:
        for beta in list(nlls[loss])[1:]:
            found[f"{loss}, β = {beta}"] = networks(loss, beta)
    for loss, sigma in WIDTHS.items():
        if loss in nlls:
            beta = next(iter(nlls[loss]))
            found[f"focal+rcr, β = {beta}, σ = {sigma}"] = networks(loss, beta)
    plain = _of_seeds(runs, data, "cross-entropy", "1", seeds)
    found[TEMPERATURE] = {
        seed: network_of(arrays, t)
        for (seed, arrays), t in zip(plain.items(), temperatures, strict=True)
    }
    for loss in PEEKED:
        own_runs = _of_seeds(runs, data, loss, "1", seeds)
        if all("best_logits" in arrays for arrays in own_runs.values()):
            found[f"{loss}, {BEST_EPOCH}"] = {s: _peeked(own) for s, own in own_runs.items()}
    return {name: own for name, own in found.items() if own}


def _peeked(arrays: Arrays) -> Network:
    """Return the network of the epoch that was best on the test images."""
    chosen = {**arrays, "test_logits": arrays["best_logits"]}
    chosen.pop("test_view_logits")
    return network_of(chosen)


def _temperature(arrays: Arrays) -> FloatArray:
    """Return the temperature that suits the validation images of each fold.

    It is reported, doubtful or not.
    """
    from sklearn.exceptions import ConvergenceWarning

    from raterwise.calibrators.scaling import TemperatureScaling

    logits = arrays["validation_logits"].astype(np.float64)
    fold, found = arrays["validation_fold"], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for own in (fold == i for i in np.unique(fold)):
            scaling = TemperatureScaling(input="logits")
            found.append(scaling.fit(logits[own], arrays["validation_labels"][own]).temperature_)
    return np.array(found)


def network_of(arrays: Arrays, temperature: FloatArray | None = None) -> Network:
    """Return what a network says of the test cases, its logits divided by the temperatures."""
    by = 1.0 if temperature is None else temperature[arrays["test_fold"]][:, None]
    probs = _probabilities(arrays["test_logits"] / by)
    views = arrays.get("test_view_logits")
    spread = None if views is None else _probabilities(views / by)
    return Network(probs, spread, arrays["test_labels"], arrays.get("test_groups"))


def _probabilities(logits: FloatArray) -> FloatArray:
    from scipy.special import softmax

    return np.asarray(softmax(logits.astype(np.float64), axis=-1))


def judge(
    folder: str | PathLike[str],
    resamples: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Judge the networks in `folder`; write one JSON file per data set, summary.json, tables.md.

    Where it has no networks, but what was judged of some, that makes the tables.
    """
    settings = Settings(resamples=resamples, seed=seed)
    if resamples < 2:
        raise InvalidInputError(f"resamples: must be at least 2; got {resamples}")
    by_data: dict[str, dict[Run, Arrays]] = {}
    for run, arrays in load_runs(folder):
        by_data.setdefault(run.data, {})[run] = arrays
    found = [] if by_data else read_judged(folder)
    if not by_data and not found:
        raise InvalidInputError(
            f"{folder}: must hold the NPZ files of trained networks, or the JSON files of what was "
            "judged; none found"
        )
    for i, (data, runs) in enumerate(by_data.items()):
        if progress:
            progress(f"judging {data}", i / len(by_data))
        contents = [own[key] for own in runs.values() for key in sorted(own)]
        names = [run.name for run in runs]
        made_of = {"version": VERSION, "runs": names, "arrays": fingerprint(*contents)}
        made_of |= asdict(settings)
        file = Path(folder) / f"{data}.json"
        found.append(kept(file, made_of, partial(judged, runs, settings)))
    if progress:
        progress("done", 1.0)
    write_json(Path(folder) / "summary.json", found)
    text = f"### RECE Table 2\n\n{beside_the_paper(found)}\n\n{as_markdown(found)}"
    write_text_atomically(Path(folder) / "tables.md", text)
    return found

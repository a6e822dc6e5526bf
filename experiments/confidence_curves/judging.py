"""Judges the predictions of `distillation`: does a confidence know when the class is wrong?

These confidences are compared, as in CCC Tables 1 and 3: the largest softmax output of a single
network (the mean over the members), that of their ensemble, that of the ensemble softened with a
temperature T (CCC eq 2), and the confidence network's, distilled from all members on the training
images or on images that the members never saw, or from one member alone. T is the paper's 3 or 10,
or chosen on the held-out images.

A value is the mean over cascades (seeds). Its interval is that of test images and cascades, both
drawn again, for all methods alike; those of the single cascades are given too. Over-confidence is
what the members say of images that they were trained on, beside what they say of test images.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.confidence_curves import paper
from experiments.confidence_curves.condensed import RANKED, condensed, of_bytes, softened
from experiments.confidence_curves.tables import KINDS, METHODS, PAIRS, TEMPERED, as_markdown
from experiments.kept import fingerprint, kept, write_json
from raterwise.confidence import auccc
from raterwise.datasets import read_cifar10h
from raterwise.errors import InvalidInputError, UndefinedMetricError
from raterwise.inference.draws import multiplicities
from raterwise.inference.intervals import percentile_interval
from raterwise.inference.settings import Progress
from raterwise.io.files import write_text_atomically
from raterwise.metrics import ranking

__all__ = ["Cascade", "Judgement", "judge", "judged", "load_cascades", "softened"]

FloatArray = NDArray[Any]
Arrays = Mapping[str, FloatArray]
Formula = Callable[[FloatArray, FloatArray], FloatArray]

VERSION = 3
PAPER_TEMPERATURE = 3.0
OUTSIDE_TEMPERATURE = 10.0
"""Of CCC Tables 2 and 3."""
TILE = 16
"""Resamples at a time: as many as a processor's cache holds."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """One confidence: how sure it is of each prediction, and which predictions those are."""

    confidence: FloatArray
    """(N,): as ranks among all images of the cascade."""
    right: NDArray[np.bool_]
    predicted: NDArray[np.uint8]
    outside: dict[str, FloatArray]
    """Its confidence in cases from elsewhere."""


class Cascade:
    """The predictions of one file, and the methods that are compared."""

    def __init__(self, arrays: Arrays, made_of: Mapping[str, Any]) -> None:
        self.temperatures: list[float] = list(made_of["test_temperatures"])
        if "softened" not in arrays:
            arrays = condensed(arrays, self.temperatures)
        arrays = {**arrays, **{kind: of_bytes(arrays[kind]) for kind in RANKED if kind in arrays}}
        self.arrays, self.made_of = arrays, made_of
        self.group = (made_of["problem"], made_of.get("network", "resnet9"))
        """What its seeds are averaged over."""
        self.sizes: dict[str, int] = dict(
            zip(arrays["parts"].tolist(), arrays["sizes"].tolist(), strict=True)
        )
        self.outside = [part.removeprefix("out.") for part in self.sizes if part.startswith("out.")]

    def methods(self) -> dict[str, list[Judgement]]:
        """Return the judgements of each method that the file has: one, or those of all members."""
        chosen = self.chosen_temperatures()
        members = range(len(self.arrays["members"]))
        found = {
            "max softmax": [self._judged(self.arrays["members"][m], m) for m in members],
            "ensemble": [self.tempered("softened", 1.0)],
            "softened, chosen": [self.tempered("softened", chosen["softened"])],
        }
        if "udist" in chosen:
            found["udist, chosen"] = [self.tempered("udist", chosen["udist"])]
        for method in self.tempered_methods():
            for ending, temperature in (("", PAPER_TEMPERATURE), (", T = 10", OUTSIDE_TEMPERATURE)):
                if method + ending in METHODS and temperature in self.temperatures:
                    found[method + ending] = [self.tempered(method, temperature)]
        return {name: found[name] for name in METHODS if name in found}

    def tempered_methods(self) -> list[str]:
        """Return those of `TEMPERED` that the file has."""
        return [name for name in TEMPERED if name == "softened" or KINDS[name] in self.arrays]

    def tempered(self, method: str, temperature: float) -> Judgement:
        """Return the judgement of one of `TEMPERED` at a temperature."""
        kind = KINDS.get(method, method)
        ranks = self.arrays[kind][self.temperatures.index(temperature)]
        # what a network was distilled from: all members, or the first
        return self._judged(ranks, 0 if kind == "udist_single" else None)

    def chosen_temperatures(self) -> dict[str, float]:
        """Return the temperatures with the best AUCCC on the held-out images, or the paper's."""
        correct = self.arrays["right.held_out"]

        def best(kind: str) -> float:
            def area(t: float) -> float:
                ranks = self.arrays[kind][self.temperatures.index(t)]
                return auccc(self._part(ranks, "held_out"), correct)

            try:
                return max(self.temperatures, key=area)
            except UndefinedMetricError:  # every held-out image is classified right
                return PAPER_TEMPERATURE

        return {kind: best(kind) for kind in ("softened", "udist") if kind in self.arrays}

    def over_confidence(self) -> dict[str, dict[str, float | None]]:
        """Return accuracy, confidence, ECE and AUCCC of images trained on, held out, and tested."""
        found: dict[str, dict[str, float | None]] = json.loads(str(self.arrays["over_confidence"]))
        return found

    def _judged(self, ranks: FloatArray, member: int | None) -> Judgement:
        """Return the judgement of a confidence in what a member says, or in what all say."""
        right, said = self.arrays["right.test"], self.arrays["predicted"]
        if member is not None:
            right = self.arrays["member_right"][member]
            said = self.arrays["member_predicted"][member]
        outside = {kind: self._part(ranks, f"out.{kind}") for kind in self.outside}
        return Judgement(self._part(ranks, "test"), right, said, outside)

    def _part(self, ranks: FloatArray, part: str) -> FloatArray:
        names = list(self.sizes)
        start = sum(self.sizes[name] for name in names[: names.index(part)])
        return ranks[start : start + self.sizes[part]].astype(np.float64)


def load_cascades(folder: str | PathLike[str]) -> list[Cascade]:
    """Return the cascades whose predictions a folder holds, in order of problem and seed."""
    found = []
    for file in sorted(Path(folder).glob("*-seed*.npz")):
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files if name != "made_of"}
            made_of = json.loads(str(stored["made_of"]))
        found.append(Cascade(arrays, made_of))
    return sorted(found, key=lambda c: (*c.group, c.made_of["seed"]))


# metrics and their resamples ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of a judgement."""

    metric: str
    correct: Callable[[Judgement], FloatArray]
    """How far each test case counts as right."""
    formula: Formula
    """Of masses and hits at sorted scores."""


def _questions(kind: str | None, counts: FloatArray | None) -> Iterator[_Question]:
    """Yield what is asked about the test images alone, or beside those of one kind."""

    def right(judgement: Judgement) -> FloatArray:
        return judgement.right.astype(np.float64)

    def by_raters(judgement: Judgement) -> FloatArray:
        assert counts is not None
        chosen = counts[np.arange(len(counts)), judgement.predicted]
        return np.asarray(chosen / counts.sum(axis=1))

    if kind is not None:
        yield _Question(f"auccc, {kind}", right, ranking.auccc)
        # P(in is more confident than out): the same area, with every test image right.
        yield _Question(f"io_auroc, {kind}", lambda j: np.ones(len(j.right)), ranking.auccc)
        return
    yield _Question("accuracy", right, _share)
    yield _Question("auccc", right, ranking.auccc)
    yield _Question("aurc", right, ranking.aurc)
    if counts is not None:
        yield _Question("auccc by raters", by_raters, ranking.auccc)


def _share(mass: FloatArray, hits: FloatArray) -> FloatArray:
    return np.asarray(hits.sum(axis=-1) / mass.sum(axis=-1))


def _measured(
    confidence: FloatArray,
    asked: Sequence[tuple[FloatArray, Formula]],
    times: FloatArray,
) -> list[FloatArray]:
    """Return formulas over masses of sorted scores for every row of `times` (resamples, N).

    What is asked is how far each case counts as right, and the formula.
    """
    order = np.argsort(confidence, kind="stable")
    score, rights = confidence[order], [correct[order] for correct, _ in asked]
    starts = np.flatnonzero(np.concatenate(([True], score[1:] != score[:-1])))
    tied = len(starts) < len(score)
    out: list[list[FloatArray]] = [[] for _ in asked]
    for tile in np.split(times, range(TILE, len(times), TILE)):
        weight = tile[:, order]
        mass = np.add.reduceat(weight, starts, axis=1) if tied else weight
        for found, right, (_, formula) in zip(out, rights, asked, strict=True):
            hits = weight * right
            found.append(formula(mass, np.add.reduceat(hits, starts, axis=1) if tied else hits))
    return [np.concatenate(found) for found in out]


def _drawn(cases: int, resamples: int, seed: int) -> FloatArray:
    """Return how often each case stands: once in the first row, drawn again in the others."""
    return np.concatenate((np.ones((1, cases)), multiplicities(cases, resamples, seed)))


# a problem ---------------------------------------------------------------------------------------


def judged(
    cascades: Sequence[Cascade],
    *,
    counts: FloatArray | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return what came of the cascades of one problem, which differ in their seeds alone.

    `counts` (N, K), of the test images in the order of the files, are what raters said.
    """
    first = cascades[0]
    for other in cascades:
        if str(other.arrays["same"]) != str(first.arrays["same"]) or other.sizes != first.sizes:
            raise InvalidInputError(
                f"predictions: the files of {first.made_of['problem']} must be of the same images; "
                f"seeds {first.made_of['seed']} and {other.made_of['seed']} differ"
            )
    tables = _tables(cascades, counts, resamples, seed)

    def estimate(table: FloatArray) -> dict[str, Any]:
        """Of the cascades that have it: a run may have ended before all were distilled."""
        there = table[np.isfinite(table[:, 0])]
        random = np.random.default_rng([seed, 1])
        return _estimate(there, level, random.integers(len(there), size=(len(there), resamples)))

    return {
        "problem": first.group[0],
        "network": first.group[1],
        "seeds": [cascade.made_of["seed"] for cascade in cascades],
        "cases": {"test": first.sizes["test"]}
        | {kind: first.sizes[f"out.{kind}"] for kind in first.outside},
        "settings": {k: v for k, v in first.made_of.items() if k not in ("data", "seed")},
        "temperatures": [cascade.chosen_temperatures() for cascade in cascades],
        "by_temperature": _by_temperature(cascades),
        "over_confidence": [cascade.over_confidence() for cascade in cascades],
        "level": level,
        "values": {
            name: {metric: estimate(table) for metric, table in own.items()}
            for name, own in tables.items()
        },
        "differences": [
            {"metric": metric, "first": a, "second": b}
            | estimate(tables[a][metric] - tables[b][metric])
            for a, b in PAIRS
            if a in tables and b in tables
            for metric in tables[a]
            if metric != "accuracy"
        ],
    }


def _tables(
    cascades: Sequence[Cascade], counts: FloatArray | None, resamples: int, seed: int
) -> dict[str, dict[str, FloatArray]]:
    """Return (seeds, 1 + resamples) of each method and metric; first, the cases as they are.

    NaN where a cascade does not have the method.
    """
    first, methods = cascades[0], [cascade.methods() for cascade in cascades]
    inside = _drawn(first.sizes["test"], resamples, seed)
    there = [name for name in METHODS if any(name in own for own in methods)]
    tables: dict[str, dict[str, FloatArray]] = {name: {} for name in there}
    for i, kind in enumerate((None, *first.outside)):
        times = inside
        if kind is not None:
            cases = first.sizes[f"out.{kind}"]
            times = np.hstack((inside, _drawn(cases, resamples, seed + 1000 * i)))
        questions = list(_questions(kind, counts))
        missing = np.full((len(questions), 1 + resamples), np.nan)
        for name in there:
            found = np.stack(
                [_mean(m[name], questions, kind, times) if name in m else missing for m in methods],
                axis=1,
            )
            tables[name] |= {q.metric: part for q, part in zip(questions, found, strict=True)}
    return tables


def _mean(
    judgements: Sequence[Judgement],
    questions: Sequence[_Question],
    kind: str | None,
    times: FloatArray,
) -> FloatArray:
    """Return (questions, resamples): the mean over judgements, for every row of `times`."""
    out = []
    for judgement in judgements:
        elsewhere = np.empty(0) if kind is None else judgement.outside[kind]
        confidence = np.concatenate((judgement.confidence, elsewhere))
        wrong = np.zeros(len(elsewhere))
        asked = [(np.concatenate((q.correct(judgement), wrong)), q.formula) for q in questions]
        out.append(_measured(confidence, asked, times))
    return np.asarray(np.mean(out, axis=0))


def _by_temperature(
    cascades: Sequence[Cascade],
) -> dict[str, dict[str, list[float]]]:
    """Return AUCCC at each temperature, alone and beside other images: the mean over seeds."""
    out: dict[str, dict[str, list[float]]] = {}
    for name in TEMPERED:
        there = [c for c in cascades if name in c.tempered_methods()]
        for temperature in there[0].temperatures if there else ():
            found = [cascade.tempered(name, temperature) for cascade in there]
            for kind in (None, *cascades[0].outside):
                areas = [
                    auccc(j.confidence, j.right, outside=None if kind is None else j.outside[kind])
                    for j in found
                ]
                own = out.setdefault(name, {}).setdefault(kind or "test", [])
                own.append(float(np.mean(areas)))
    return out


def _estimate(table: FloatArray, level: float, chosen: NDArray[np.int64]) -> dict[str, Any]:
    """Return the mean over seeds of (seeds, 1 + resamples) with its interval, and each seed's.

    `chosen` (seeds, resamples) are the seeds that each resample of the images takes.
    """
    each = table[:, 0]
    resampled = np.take_along_axis(table[:, 1:], chosen, axis=0).mean(axis=0)
    value = float(each.mean())
    low, high = percentile_interval(resampled, level)
    # The percentiles need not contain the value, where the metric is near its bound.
    low, high = min(low, value), max(high, value)
    return {"value": value, "low": low, "high": high, "each": [float(v) for v in each]}


# everything --------------------------------------------------------------------------------------


def judge(
    out: str | PathLike[str],
    ratings: str | PathLike[str] | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Judge the cascades in `out`; write a JSON file per problem and network, and tables.md.

    `ratings` is cifar10h_counts.npy; predictions on CIFAR-10 are then judged by its raters too.
    """
    folder = Path(out)
    cascades = load_cascades(folder)
    if not cascades:
        raise InvalidInputError(f"out: {folder} must hold predictions to judge; it has none")
    counts = None if ratings is None else read_cifar10h(ratings)
    groups = sorted({c.group for c in cascades})
    found = []
    for i, group in enumerate(groups):
        name = "-".join(group)
        if progress:
            progress(f"judging {name}", i / len(groups))
        own = [c for c in cascades if c.group == group]
        found.append(_judged_once(folder / f"{name}.json", own, counts, resamples, seed))
    if progress:
        progress("done", 1.0)
    write_json(folder / "summary.json", found)
    beside = paper.as_markdown(sorted(found, key=paper.place_of))
    write_text_atomically(folder / "tables.md", f"{beside}\n{as_markdown(found)}")
    return found


def _judged_once(
    file: Path, own: Sequence[Cascade], counts: FloatArray | None, resamples: int, seed: int
) -> dict[str, Any]:
    """Return what came of a problem, from its file where that was made of the same things."""
    by_raters = counts is not None and own[0].made_of["problem"] == "cifar10"
    raters = counts[own[0].arrays["rows"]] if counts is not None and by_raters else None
    made_of = {
        "version": VERSION,
        "resamples": resamples,
        "seed": seed,
        "predictions": [fingerprint(*c.arrays.values()) for c in own],
        "ratings": None if raters is None else fingerprint(raters),
    }
    return kept(file, made_of, lambda: judged(own, counts=raters, resamples=resamples, seed=seed))

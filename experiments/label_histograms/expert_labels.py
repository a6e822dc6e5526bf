"""Does α-calibration help on real people? LH Tables 1 and 2 with CIFAR-10H and LIDC-IDRI.

Half of the cases, with the labels of two raters drawn at random, are there to fit on; the other
half, with every rater, to judge by. A model is taken as it is (raw), with a temperature, with
α-calibration, and with both; the last also with a penalty λ of eq 50 that is chosen by
cross-validation within the first half, instead of the paper's 0.005.

One file per model is written as soon as that model is done, and a run that finds it, made with the
same data and settings, goes on to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.kept import fingerprint, kept, write_json
from experiments.label_histograms.tables import as_markdown
from raterwise.beliefs import Belief, PointBelief
from raterwise.compare import compare
from raterwise.datasets import load_lidc_malignancy, read_cifar10h
from raterwise.errors import InvalidInputError
from raterwise.inference.settings import Progress
from raterwise.io.files import write_text_atomically
from raterwise.labels import Labels
from raterwise.rules import positive_integer

__all__ = [
    "METRICS",
    "VARIANTS",
    "Model",
    "Settings",
    "cifar10h_models",
    "drawn_labels",
    "halves",
    "judged",
    "lidc_model",
    "run",
]

IntArray = NDArray[np.int64]

VERSION = 1
COUNTS, OUTPUTS = ("cifar10h_counts.npy", "cifar10h-counts.npy"), "cifar10_test_outputs.npz"
INPUTS = ("probs", "logits")
VARIANTS = ("raw", "temperature", "alpha", "temperature+alpha", "temperature+alpha-cv")
METRICS = (
    *("disagreement_loss", "disagreement_calibration_error"),
    *("prior_epistemic_loss", "posterior_epistemic_loss", "posterior_gain", "nll"),
)


@dataclass(frozen=True, eq=False)
class Model:
    """What one model says about cases that several people labelled."""

    data: str
    name: str
    input: str
    """"probs" or "logits": what `scores` are."""
    scores: NDArray[Any]
    """(N, K)."""
    labels: Labels
    patients: NDArray[Any] | None = None
    """(N,): whose cases must not be split, and are resampled together."""


@dataclass(frozen=True)
class Settings:
    """What the numbers depend on, besides the data."""

    seed: int = 0
    """Of the halves, of the two raters and of the resamples."""
    resamples: int = 1000
    level: float = 0.95
    bins: int = 15
    raters: int = 2
    """How many labels of each case the calibrators may see."""


def cifar10h_models(folder: str | PathLike[str]) -> Iterator[Model]:
    """Yield the models of cifar10_test_outputs.npz on the images of cifar10h_counts.npy.

    The arrays probs_NAME and logits_NAME, (N, 10), are the outputs of the model NAME, in the order
    of the images of the histograms.
    """
    place = Path(folder)
    counts = next((place / name for name in COUNTS if (place / name).is_file()), None)
    if counts is None or not (place / OUTPUTS).is_file():
        raise InvalidInputError(f"data: {place} must hold {COUNTS[0]} and {OUTPUTS}")
    labels = Labels.from_counts(read_cifar10h(counts))
    with np.load(place / OUTPUTS, allow_pickle=False) as file:
        for key in sorted(file.files):
            kind, _, name = key.partition("_")
            if kind not in INPUTS or not name:
                continue
            scores = file[key]
            if scores.shape != labels.counts.shape:
                raise InvalidInputError(
                    f"{OUTPUTS}: {key} must have the shape of the histograms, "
                    f"{labels.counts.shape}; got {scores.shape}"
                )
            yield Model("CIFAR-10H", name, kind, scores, labels)


def lidc_model() -> Model:
    """Return the demonstration model on LIDC-IDRI malignancy, whose patients stay together."""
    demo = load_lidc_malignancy()
    return Model("LIDC-IDRI malignancy", "demo", "probs", demo.probs, demo.labels, demo.patients)


def halves(model: Model, seed: int) -> tuple[IntArray, IntArray]:
    """Return the cases to fit on and those to judge by: half of the cases, or of the patients."""
    cases = len(model.labels)
    units = np.arange(cases) if model.patients is None else model.patients
    _, unit = np.unique(units, return_inverse=True)
    order = np.random.default_rng([seed, 1]).permutation(unit.max() + 1)
    first = np.isin(unit, order[: len(order) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)


def drawn_labels(labels: Labels, number: int, seed: int) -> Labels:
    """Return the labels of `number` raters of each case, drawn without replacement.

    A case with fewer keeps those it has.
    """
    random = np.random.default_rng([seed, 2])
    left = labels.counts.astype(np.int64)
    drawn = np.zeros_like(left)
    for _ in range(positive_integer("number", number)):
        rows = np.flatnonzero(left.sum(axis=1) > 0)
        ticket = random.integers(left[rows].sum(axis=1))
        chosen = (left[rows].cumsum(axis=1) <= ticket[:, None]).sum(axis=1)
        drawn[rows, chosen] += 1
        left[rows, chosen] -= 1
    return Labels.from_counts(drawn)


def beliefs_of(
    model: Model, fit: IntArray, test: IntArray, settings: Settings
) -> tuple[dict[str, Belief], dict[str, Any]]:
    """Return the beliefs about the test cases, and what was fitted."""
    from scipy.special import softmax

    from raterwise.calibrators.alpha import AlphaCalibration
    from raterwise.calibrators.scaling import TemperatureScaling

    labels = drawn_labels(model.labels.take(fit), settings.raters, settings.seed)
    temperature = TemperatureScaling().set_params(input=model.input).fit(model.scores[fit], labels)
    logits = model.input == "logits"
    raw = softmax(model.scores.astype(np.float64), axis=1) if logits else model.scores
    means = {"": PointBelief(raw).mean, "temperature": temperature.predict_proba(model.scores)}
    beliefs: dict[str, Belief] = {}
    fitted: dict[str, Any] = {"temperature": temperature.temperature_}
    patients = None if model.patients is None else model.patients[fit]
    paper = AlphaCalibration(l2=0.005, penalty="paper")
    chosen = AlphaCalibration(seed=settings.seed)
    for variant, name, alpha in (
        ("alpha", "", paper),
        ("temperature+alpha", "temperature", paper),
        ("temperature+alpha-cv", "temperature", chosen),
    ):
        probs = means[name]
        alpha.fit(None, labels, probs=probs[fit], groups=patients)
        belief = alpha.predict(None, probs=probs[test])
        beliefs[name or "raw"], beliefs[variant] = PointBelief(probs[test]), belief
        quartiles = np.quantile(belief.concentration, (0.25, 0.5, 0.75))
        strength = alpha.l2_ if np.isfinite(alpha.l2_) else None  # None: one α0 for all cases
        fitted[variant] = {"l2": strength, "concentration": [float(q) for q in quartiles]}
    return {name: beliefs[name] for name in VARIANTS}, fitted


def judged(model: Model, settings: Settings, progress: Progress | None = None) -> dict[str, Any]:
    """Return what came of one model: every variant's metrics, and their paired differences."""
    fit, test = halves(model, settings.seed)
    beliefs, fitted = beliefs_of(model, fit, test, settings)
    labels = model.labels.take(test)
    found = compare(
        beliefs,
        labels,
        METRICS,
        groups=None if model.patients is None else model.patients[test],
        resamples=settings.resamples,
        level=settings.level,
        seed=settings.seed,
        bins=settings.bins,
        on_single="drop",
        progress=progress,
    )
    results = {name: part.to_dict(replicates=False) for name, part in found.models.items()}
    return {
        "model": model.name,
        "data": model.data,
        "cases": {"fit": len(fit), "test": len(test)},
        "judged": {m: len(test) - found.models["raw"][m].dropped for m in METRICS},
        "patients": results["raw"]["data"]["patients"],
        "fitted": fitted,
        "disagreement": _disagreement(beliefs, labels),
        "metrics": {
            name: {
                metric: {key: part["metrics"][metric][key] for key in ("value", "low", "high")}
                for metric in METRICS
            }
            for name, part in results.items()
        },
        "differences": [asdict(row) for row in found.differences],
    }


def _disagreement(beliefs: dict[str, Belief], labels: Labels) -> dict[str, float]:
    """Return how often two raters differ, observed and as each belief has it, on the same cases."""
    rows = np.flatnonzero(labels.num_raters >= 2)
    counts, n = labels.counts[rows].astype(np.float64), labels.num_raters[rows]
    observed = 1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
    means = {name: float(belief.disagreement()[rows].mean()) for name, belief in beliefs.items()}
    return {"observed": float(observed.mean()), **means}


def run(
    out: str | PathLike[str],
    data: str | PathLike[str] | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Judge the LIDC model and, where `data` is given, those on CIFAR-10H; write `out`.

    `out` receives one JSON file per model, tables.md with the tables of all and summary.json.
    """
    settings = settings or Settings()
    folder = Path(out)
    models: list[Model] = [] if data is None else list(cifar10h_models(data))
    models.append(lidc_model())
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for i, model in enumerate(models):
        if progress:
            progress(f"{model.data}: {model.name}", i / len(models))
        found.append(_judged_once(model, settings, folder))
    if progress:
        progress("done", 1.0)
    write_json(folder / "summary.json", found)
    write_text_atomically(folder / "tables.md", as_markdown(found))
    return found


def _judged_once(model: Model, settings: Settings, folder: Path) -> dict[str, Any]:
    """Return what came of a model, from its file where that was made of the same things."""
    name = f"{model.data}-{model.name}".replace(" ", "-").lower()
    parts = [model.scores, model.labels.counts.astype(np.int64)]
    parts += [] if model.patients is None else [model.patients]
    made_of = {"version": VERSION, "data": fingerprint(*parts), **asdict(settings)}
    return kept(folder / f"{name}.json", made_of, lambda: judged(model, settings))

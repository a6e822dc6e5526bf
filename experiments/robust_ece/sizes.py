"""How calibration errors behave on small test sets: RECE Table 1, Figs 1 and 2.

Six metrics on samples of 1 to 50 % of a network's test cases, 20 samples of each size. Networks of
the same data are judged on the same samples, so that they can be ranked sample by sample.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import raterwise as rw
from experiments.kept import fingerprint, json_files, kept, read_json, write_json
from experiments.robust_ece.judging import network_of
from experiments.robust_ece.runs import load_runs
from experiments.robust_ece.sizes_paper import FRACTIONS
from experiments.robust_ece.sizes_tables import as_markdown
from experiments.robust_ece.spreads import Network, mixture_rows
from experiments.robust_ece.tables import MIXTURE, TITLES
from experiments.robust_ece.truth import Study, study
from raterwise.errors import InvalidInputError
from raterwise.io.files import write_text_atomically

__all__ = ["Model", "Sampling", "judge", "models_in", "sampled", "trained_models", "values_of"]

Array = NDArray[Any]
Progress = Callable[[str, float], None]

VERSION = 1
SAMPLES_VERSION = 2
CIFAR10 = {
    "logits_resnet50_psr": "ResNet-50",
    "probs_wrn16_4_netcal": "WRN-16-4",
    "probs_vgg16_keras": "VGG-16",
    "probs_lenet5_netcal": "LeNet-5",
    "probs_cleanlab_cv": "cross-validated ResNet",
}
FINDING = "Effusion"
FEWEST = 2
"""A kernel density that leaves out a case needs another one."""


@dataclass(frozen=True, eq=False)
class Model:
    """What one network says of its test cases."""

    data: str
    """Networks of the same data are ranked."""
    name: str
    network: Network


@dataclass(frozen=True)
class Sampling:
    """How the samples are drawn."""

    repeats: int = 20
    fractions: tuple[float, ...] = FRACTIONS
    seed: int = 0


# The networks -------------------------------------------------------------------------------------


def models_in(folder: str | PathLike[str]) -> list[Model]:
    """Return the published networks whose outputs a folder holds; what is not there is left out."""
    place = Path(folder)
    found = [*_cifar10(place), *_pathmnist(place), *_chexnet(place)]
    if not found:
        raise InvalidInputError(
            f"data: {folder} must hold cifar10_test_outputs.npz, pathmnist_resnet50_scores.npy or "
            "cxr14_chexnet_test.npz"
        )
    return found


def _softmax(logits: Array) -> Array:
    from scipy.special import softmax

    return np.asarray(softmax(logits.astype(np.float64), axis=-1))


def _cifar10(place: Path) -> Iterator[Model]:
    file = place / "cifar10_test_outputs.npz"
    if file.is_file():
        with np.load(file, allow_pickle=False) as stored:
            labels = stored["labels"].astype(np.int64)
            for key, title in CIFAR10.items():
                given = stored[key].astype(np.float64)
                # In single precision rows sum to 1 within a few millionths.
                logits = key.startswith("logits")
                probs = _softmax(given) if logits else given / given.sum(axis=1, keepdims=True)
                yield Model("CIFAR-10", title, Network(probs, None, labels))


def _pathmnist(place: Path) -> Iterator[Model]:
    scores, targets = (place / f"pathmnist_resnet50_{end}.npy" for end in ("scores", "targets"))
    if scores.is_file() and targets.is_file():
        logs, labels = (np.load(file, allow_pickle=False) for file in (scores, targets))
        yield Model(
            "PathMNIST", "ResNet-50", Network(_softmax(logs), None, labels.astype(np.int64))
        )


def _chexnet(place: Path) -> Iterator[Model]:
    """Yield one finding of the first film of each patient: those are independent."""
    file = place / "cxr14_chexnet_test.npz"
    if file.is_file():
        with np.load(file, allow_pickle=False) as stored:
            column = stored["classes"].tolist().index(FINDING)
            present = stored["probs"][:, column].astype(np.float64)
            labels = stored["labels"][:, column].astype(np.int64)
            patients = [name.split("_")[0] for name in stored["image"].tolist()]
        first = np.unique(patients, return_index=True)[1]
        probs = np.stack([1 - present, present], axis=1)[first]
        yield Model("ChestX-ray14, effusion", "CheXNet", Network(probs, None, labels[first]))


def trained_models(folder: str | PathLike[str]) -> list[Model]:
    """Return the networks that were trained here, with their views of each test image."""
    return [
        Model(TITLES[run.data], f"{run.loss}, seed {run.seed}", network_of(arrays))
        for run, arrays in load_runs(folder)
    ]


# The samples --------------------------------------------------------------------------------------


def values_of(model: Network, rows: Array, shares: Array | None = None) -> dict[str, float]:
    """Return the six metrics of some cases; NaN where one is not defined, or not to be had.

    `shares` are the rows of RECE eq 7, which belong to single cases and are made once.
    """
    probs, labels = model.probs[rows], model.labels[rows]
    found = {
        "ece": rw.ece(probs, labels),
        "sce": rw.sce(probs, labels),
        "adaptive_ece": rw.adaptive_ece(probs, labels),
        "kde_ece": np.nan,
        "robust_ece": rw.robust_ece(probs, labels),
        MIXTURE: np.nan,
    }
    if len(rows) >= FEWEST:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of bandwidths at the end of the search
            found["kde_ece"] = rw.kde_ece(probs, labels, question="canonical")
    if shares is not None:
        found[MIXTURE] = float(np.abs(shares[rows].mean(axis=0)).sum())
    return {name: float(value) for name, value in found.items()}


def sampled(model: Model, sampling: Sampling) -> dict[str, Any]:
    """Return the metrics on all cases and on every sample."""
    cases = len(model.network.labels)
    shares = None if model.network.views is None else mixture_rows(model.network, sampling.seed)
    sizes = [max(1, round(fraction * cases)) for fraction in sampling.fractions]
    full = values_of(model.network, np.arange(cases), shares)
    found: dict[str, list[list[float]]] = {name: [] for name in full}
    released: dict[str, list[list[float]]] = {"robust_ece": [], "sce": []}
    for place, size in enumerate(sizes):
        random = np.random.default_rng([sampling.seed, place])
        drawn = [random.choice(cases, size, replace=False) for _ in range(sampling.repeats)]
        each = [values_of(model.network, rows, shares) for rows in drawn]
        for name, own in found.items():
            own.append([values[name] for values in each])
        again = [_released(model.network, rows) for rows in drawn]
        for name, own in released.items():
            own.append([values[name] for values in again])
    return {
        "data": model.data,
        "name": model.name,
        "cases": cases,
        "classes": int(model.network.probs.shape[1]),
        "fractions": list(sampling.fractions),
        "sizes": sizes,
        "full": _jsonable(full),
        "values": {name: [_blank(own) for own in rows] for name, rows in found.items()},
        "released_rece_g": released["robust_ece"],
        "released_sce": released["sce"],
        "released_sce_full": _released(model.network, np.arange(cases))["sce"],
    }


def _released(model: Network, rows: Array) -> dict[str, float]:
    """Return what the released code has: RECE-G without the bins that hold no confidence, SCE.

    Its SCE is the mean over all classes of the error of each class's own probability.
    """
    probs, labels = model.probs[rows], model.labels[rows]
    return {
        "robust_ece": float(rw.robust_ece(probs, labels, observed_bins_only=True)),
        "sce": float(rw.classwise_ece(probs, labels)),
    }


def _jsonable(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def _blank(values: list[float]) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values]


def judge(
    out: str | PathLike[str],
    data: str | PathLike[str] | None = None,
    sampling: Sampling | None = None,
    simulation: Study | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Sample, simulate, and write summary.json and tables.md.

    Networks are those that `out` holds (NPZ files) and the published ones of `data`; without
    `data`, what was kept of these stands as it is.
    """
    place = Path(out)
    sampling, simulation = sampling or Sampling(), simulation or Study()
    report = progress or (lambda words, share: None)
    models = trained_models(place) + ([] if data is None else models_in(data))
    for number, model in enumerate(models):
        report(f"{model.data}, {model.name}", number / (len(models) + 1))
        parts = [model.network.probs, model.network.labels]
        parts += [] if model.network.views is None else [model.network.views]
        made_of = {"version": SAMPLES_VERSION, "arrays": fingerprint(*parts), **asdict(sampling)}
        kept(place / f"{_slug(model)}.json", made_of, partial(sampled, model, sampling))
    samples = _stored(place)
    if not samples:  # said before the simulation, which takes minutes
        raise InvalidInputError(f"{out}: must hold what was judged before, or --data must be given")
    report("a world whose truth is known", len(models) / (len(models) + 1))
    made_of = {"version": VERSION, **asdict(simulation)}
    truth = kept(place / "truth.json", made_of, partial(study, simulation))
    found = {"samples": samples, "truth": truth}
    write_json(place / "summary.json", found)
    write_text_atomically(place / "tables.md", as_markdown(found))
    report("done", 1.0)
    return found


def _slug(model: Model) -> str:
    words = f"sizes-{model.data}-{model.name}".lower()
    return "".join(c if c.isalnum() else "-" for c in words).replace("--", "-")


def _stored(place: Path) -> list[dict[str, Any]]:
    return [read_json(file) for file in json_files(place, "sizes-*.json")]

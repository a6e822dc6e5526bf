"""LH Table 6 from the outputs of the networks of `several_training`: on a CPU, without PyTorch.

Of each network (of LIDC: of the five of a seed) a file of rows is made, and a small file `plain-…`
with the logits of the test cases and the log α0 of each scaling. From the latter the rows of Raw
can be made again where the labels are at hand; the licences of CIFAR-10N and CIFAR-10H do not allow
us to keep these.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.kept import (
    fingerprint,
    json_files,
    kept,
    kept_arrays,
    pack_json,
    read_json,
    write_json,
)
from experiments.label_histograms.calibrators import (
    ALPHA_L2,
    SCALINGS,
    calibrated,
    drawn,
    fit_all,
    restored_pair,
    within_reach,
)
from experiments.label_histograms.expert_labels import drawn_labels
from experiments.label_histograms.mixed_outputs import Outputs, load_outputs
from experiments.label_histograms.several_data import (
    cifar10h,
    cifar_labels,
    family,
    nodule_labels,
)
from experiments.label_histograms.several_rows import Key, differences_and_values
from experiments.label_histograms.several_scores import (
    JudgedCases,
    Said,
    disagreement_bins,
    estimates,
    said_of,
    together,
)
from experiments.label_histograms.several_tables import as_markdown
from experiments.nodules import FOLDS
from raterwise.beliefs import Belief, DirichletBelief, EnsembleBelief, PointBelief
from raterwise.calibrators.alpha import AlphaCalibration
from raterwise.calibrators.scaling import TemperatureScaling
from raterwise.errors import InvalidInputError, RaterwiseWarning
from raterwise.inference.settings import Progress
from raterwise.io.files import write_bytes_atomically, write_text_atomically
from raterwise.labels import Labels

__all__ = ["Judging", "judge", "keep_small"]

Arrays = dict[str, NDArray[Any]]

VERSION = 1
SMALLEST = 1e-12


@dataclass(frozen=True)
class Judging:
    """What the numbers depend on, besides the networks and the labels."""

    samples: int = 20
    """Draws of Monte-Carlo dropout."""
    fit_samples: int = 5
    """Draws of the validation cases that its α is fitted to."""
    other_labels: int = 5
    """Labels of each test case that calibrators see in the second analysis."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class StudyLabels:
    """The labels of one family of studies."""

    valid: list[Labels]
    """Of the validation cases, by fold where there are some."""
    test: JudgedCases
    same: JudgedCases | None
    patients: list[NDArray[np.str_]] | None = None
    """Of the validation cases, by fold."""

    @property
    def digest(self) -> str:
        """What tells these labels from others."""
        return fingerprint(*(part.counts for part in self.valid), *self.test)


def read_labels(data: str | PathLike[str], kind: str) -> StudyLabels:
    """Return the labels that calibrators and tables of "cifar10n" or "lidc" need."""
    if kind == "cifar10n":
        labels = cifar_labels(data)
        valid = Labels.from_counts(labels.counts("valid"))
        same = JudgedCases.of(labels.counts("same"))
        return StudyLabels([valid], JudgedCases.of(cifar10h(data)), same)
    nodules, _ = nodule_labels(data)
    counts = nodules.counts
    rows = [nodules.rows(fold)["valid"] for fold in range(FOLDS)]
    each = [Labels.from_counts(counts[own]) for own in rows]
    patients = [nodules.patients[own] for own in rows]
    return StudyLabels(each, JudgedCases.of(counts, nodules.patients), None, patients)


def judge(
    data: str | PathLike[str] | None,
    out: str | PathLike[str],
    studies: Iterable[str],
    settings: Judging,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Judge the networks that `out` holds; write summary.json and tables.md there.

    Without `data`, what an earlier run kept makes the tables.
    """
    folder = Path(out)
    read: dict[str, StudyLabels] = {}
    found = []
    for study in studies:
        kind = family(study)
        seeds = _seeds(folder, study)
        if data is not None and seeds and kind not in read:
            read[kind] = read_labels(data, kind)
        for i, seed in enumerate(seeds):
            if progress:
                progress(f"{study}, seed {seed}", i / len(seeds))
            found.append(_network(folder, study, seed, read.get(kind), settings))
    if not found:
        raise InvalidInputError(f"out: {folder} must hold networks of several_labels; none do")
    write_json(folder / "summary.json", found)
    write_text_atomically(folder / "tables.md", as_markdown(found))
    if progress:
        progress("done", 1.0)
    return found


def _seeds(folder: Path, study: str) -> list[int]:
    """Return the seeds of the networks, or of the rows, that a folder holds."""
    pattern = re.compile(rf"(?:rows-)?{study}(?:_fold0)?-([0-9]+)\.(?:npz|json|json\.xz)")
    names = (pattern.fullmatch(file.name) for file in folder.iterdir())
    return sorted({int(match[1]) for match in names if match})


def _network(
    folder: Path, study: str, seed: int, labels: StudyLabels | None, settings: Judging
) -> dict[str, Any]:
    parts = _outputs(folder, study, seed)
    rows, plain = _files(folder, study, seed)
    if parts:
        if labels is None:
            raise InvalidInputError("data: must be given, to judge networks for the first time")
        made_of = {
            **{"version": VERSION, "study": study, "seed": seed, "settings": asdict(settings)},
            "outputs": fingerprint(*(np.array(part.digest("pooled_test")) for part in parts)),
            "labels": labels.digest,
        }
        return kept(rows, made_of, partial(_judged, study, parts, labels, settings, plain))
    stored: dict[str, Any] = read_json(rows)
    if labels is not None and plain.is_file():
        return _again(stored, plain, labels.test)
    return stored


def _files(folder: Path, study: str, seed: int) -> tuple[Path, Path]:
    return folder / f"rows-{study}-{seed}.json", folder / f"plain-{study}-{seed}.npz"


def _outputs(folder: Path, study: str, seed: int) -> list[Outputs]:
    """Return the network of a seed, or those of its five folds; none if one is missing."""
    lidc = family(study) == "lidc"
    names = [f"{study}_fold{fold}" for fold in range(FOLDS)] if lidc else [study]
    found = [[part for part in load_outputs(folder, n) if part.seed == seed] for n in names]
    return [part for own in found for part in own] if all(found) else []


def _judged(
    study: str, parts: list[Outputs], labels: StudyLabels, settings: Judging, plain: Path
) -> dict[str, Any]:
    """Return every row of the tables for one network, or for the networks of a seed."""
    fitted = [
        fit_all(outputs, said, settings.fit_samples, settings.seed)
        for outputs, said in zip(parts, labels.valid, strict=True)
    ]
    scalings = [{name: pair["scaling"] for name, pair in own.items()} for own in fitted]
    plain.unlink(missing_ok=True)
    arrays = kept_arrays(plain, {"study": study}, partial(_plain, parts, fitted))
    said = dict(_raw(arrays, scalings, labels.test))
    for method in ("mcdo", "tta"):
        said |= _drawn(method, "test", parts, fitted, labels.test, settings)
    bins = {key: disagreement_bins(value, labels.test) for key, value in said.items()}
    found = {key: estimates(value, labels.test) for key, value in said.items()}
    if labels.same is not None:
        for method in ("raw", "mcdo"):
            own = _drawn(method, "same", parts, fitted, labels.same, settings)
            found |= {key: estimates(value, labels.same) for key, value in own.items()}
        own = dict(_other_raters(parts[0], labels.test, settings))
    else:
        own = dict(_chosen_penalty(parts, fitted, labels))
    found |= {key: estimates(value, labels.test) for key, value in own.items()}
    temperatures = [restored_pair("ts", own["ts"])[0].temperature_ for own in fitted]
    rows = differences_and_values(found, bins)
    about = {"study": study, "seed": parts[0].seed, "temperatures": temperatures}
    return {
        **about,
        "epochs": parts[0].made_of["recipe"]["epochs"],
        "scalings": scalings,
        "rows": rows,
    }


def _again(stored: dict[str, Any], plain: Path, cases: JudgedCases) -> dict[str, Any]:
    """Return stored rows, with those of Raw judged anew."""
    with np.load(plain, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    said = dict(_raw(arrays, stored["scalings"], cases))
    bins = {key: disagreement_bins(value, cases) for key, value in said.items()}
    rows = differences_and_values({k: estimates(v, cases) for k, v in said.items()}, bins)
    new = {Key.of(row): row for row in rows}
    return {**stored, "rows": [new.get(Key.of(row), row) for row in stored["rows"]]}


def _plain(parts: list[Outputs], fitted: list[dict[str, Any]]) -> Arrays:
    """Return logits and log α0 of the test cases, in their order, and which network said them."""
    logits, alphas, rows, part = [], [], [], []
    for i, (outputs, pairs) in enumerate(zip(parts, fitted, strict=True)):
        u, x = outputs.plain("test")
        u, x = u.astype(np.float16), _bounded(x, outputs, outputs.plain("valid")[1])
        logits.append(u)
        each = []
        for name, pair in pairs.items():
            scaling, alpha = restored_pair(name, pair)
            belief = alpha["raw"].predict(x, probs=_probs(scaling, u))
            each.append(np.log(belief.concentration).astype(np.float16))
        alphas.append(np.stack(each))
        rows.append(outputs.arrays.get("rows", np.arange(len(u))))
        part.append(np.full(len(u), i, np.uint8))
    order = np.argsort(np.concatenate(rows))
    return {
        "logits": np.concatenate(logits)[order],
        "log_alpha": np.concatenate(alphas, axis=1)[:, order],
        "part": np.concatenate(part)[order],
    }


def _probs(scaling: Any, logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the class probabilities of logits, none of them 0: no label is beyond belief."""
    return np.maximum(calibrated(scaling, logits), SMALLEST)


def _bounded(
    features: NDArray[np.float32], outputs: Outputs, seen: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the features of nodules within reach; their validation cases are few."""
    return within_reach(features, seen) if "rows" in outputs.arrays else features


def _raw(
    arrays: Arrays, scalings: list[dict[str, Any]], cases: JudgedCases
) -> Iterable[tuple[Key, Said]]:
    """Yield what the networks say without draws, with four scalings, without and with α."""
    for place, (name, (kind, _)) in enumerate(SCALINGS.items()):
        probs = np.empty(arrays["logits"].shape)
        for i, own in enumerate(scalings):
            rows = arrays["part"] == i
            scaling = None if kind is None else kind.from_dict(own[name])
            probs[rows] = _probs(scaling, arrays["logits"][rows])
        strength = np.exp(arrays["log_alpha"][place].astype(np.float64))
        for alpha, belief in enumerate((PointBelief(probs), DirichletBelief(probs, strength))):
            yield Key("valid", "test", "raw", name, bool(alpha)), said_of(belief, cases)


def _drawn(
    method: str,
    part: str,
    parts: list[Outputs],
    fitted: list[dict[str, Any]],
    cases: JudgedCases,
    settings: Judging,
) -> dict[Key, Said]:
    """Return what the networks say of a part by draws, with four scalings, without and with α."""
    found: dict[Key, list[tuple[NDArray[np.int64], Said]]] = {}
    for outputs, pairs in zip(parts, fitted, strict=True):
        logits, features = drawn(method, outputs, settings.samples, settings.seed, part)
        seen = drawn(
            "mcdo" if method == "mcdo" else "raw",
            *(outputs, settings.fit_samples, settings.seed, "valid"),
        )[1]
        features = _bounded(features, outputs, seen)
        rows = outputs.arrays.get("rows", np.arange(logits.shape[-2]))
        own = cases.rows(rows)
        for name, pair in pairs.items():
            scaling, alphas = restored_pair(name, pair)
            probs = _probs(scaling, logits)
            plain: Belief = PointBelief(probs) if probs.ndim == 2 else EnsembleBelief(probs)
            for alpha, belief in enumerate((plain, alphas[method].predict(features, probs=probs))):
                key = Key("valid", part, method, name, bool(alpha))
                found.setdefault(key, []).append((rows, said_of(belief, own)))
    return {key: together(said) for key, said in found.items()}


def _other_raters(
    outputs: Outputs, cases: JudgedCases, settings: Judging
) -> Iterable[tuple[Key, Said]]:
    """Yield Raw with ts and α fitted to the raters that judge, each half on the other."""
    logits, features = outputs.plain("test")
    half = np.random.default_rng([settings.seed, 23]).permutation(len(logits)) % 2
    found: dict[Key, list[tuple[NDArray[np.int64], Said]]] = {}
    for side in (0, 1):
        fit, test = np.flatnonzero(half == side), np.flatnonzero(half != side)
        every = Labels.from_counts(cases.counts[fit])
        labels = drawn_labels(every, settings.other_labels, settings.seed)
        for name in ("none", "ts"):
            scaling = None
            if name == "ts":
                scaling = TemperatureScaling().fit(logits[fit].astype(float), labels)
            probs = _probs(scaling, logits)
            alpha = AlphaCalibration(ALPHA_L2, "paper").fit(features[fit], labels, probs=probs[fit])
            strength = alpha.predict(features[test], probs=probs[test])
            for i, belief in enumerate((PointBelief(probs[test]), strength)):
                key = Key("other", "test", "raw", name, bool(i))
                found.setdefault(key, []).append((test, said_of(belief, cases.rows(test))))
    for key, said in found.items():
        yield key, together(said)


def _chosen_penalty(
    parts: list[Outputs], fitted: list[dict[str, Any]], labels: StudyLabels
) -> Iterable[tuple[Key, Said]]:
    """Yield Raw with α whose penalty, on the coefficients, is chosen by cross-validation."""
    assert labels.patients is not None
    found: dict[Key, list[tuple[NDArray[np.int64], Said]]] = {}
    for i, (outputs, pairs) in enumerate(zip(parts, fitted, strict=True)):
        (u, x), (logits, features) = outputs.plain("valid"), outputs.plain("test")
        rows = outputs.arrays["rows"]
        own = labels.test.rows(rows)
        for name in ("none", "ts"):
            scaling, _ = restored_pair(name, pairs[name])
            alpha = AlphaCalibration()
            with warnings.catch_warnings():
                # That no feature helps is a finding here, and the same α0 for all what follows.
                warnings.simplefilter("ignore", RaterwiseWarning)
                alpha.fit(x, labels.valid[i], probs=_probs(scaling, u), groups=labels.patients[i])
            probs = _probs(scaling, logits)
            after = alpha.predict(within_reach(features, x), probs=probs)
            for j, belief in enumerate((PointBelief(probs), after)):
                key = Key("chosen", "test", "raw", name, bool(j))
                found.setdefault(key, []).append((rows, said_of(belief, own)))
    for key, said in found.items():
        yield key, together(said)


def keep_small(out: str | PathLike[str], to: str | PathLike[str]) -> None:
    """Copy to a folder what the tables can be remade from; of CIFAR-10N one network's logits."""
    place = Path(to)
    place.mkdir(parents=True, exist_ok=True)
    for file in sorted(Path(out).glob("plain-*.npz")):
        if "cifar10n" in file.name and not file.stem.endswith("-0"):
            continue
        write_bytes_atomically(place / file.name, file.read_bytes())
    for file in json_files(Path(out), "rows-*.json"):
        pack_json(file, place)

"""What is left between our Mix-CIFAR-10 networks and the paper's: from what is kept, on a CPU.

    python -m experiments.label_histograms.mixed_differences FOLDER    # seconds

FOLDER has the rows, calibrators, labels and test logits of networks
(experiments/outputs/label_histograms). Four tables: how many of the paper's numbers are
near ours, column by column; whether the calibration error of Raw+ts depends on the temperature
or on the bins; for Mix-MNIST as well, what other test cases would do to the numbers; and
what our Mix-MNIST networks give at temperatures that raise disagreement as the paper's does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax, stdtrit

from experiments.kept import read_json
from experiments.label_histograms.calibrators import calibrated, drawn, restored_pair
from experiments.label_histograms.intervals import mean_and_half
from experiments.label_histograms.mixed_judging import Judging, judge, kept_labels
from experiments.label_histograms.mixed_outputs import Outputs, load_outputs
from experiments.label_histograms.mixed_paper import Row, paper_value
from experiments.label_histograms.mixed_scores import scored, true_calibration_error
from experiments.label_histograms.several_scores import JudgedCases, error_of, estimates, said_of
from experiments.markdown import table_head, table_row
from raterwise.beliefs import Belief, EnsembleBelief, PointBelief

__all__ = ["Cell", "cells", "errors_of", "over_cases", "prediction_factor", "raising_temperature"]

FloatArray = NDArray[np.float64]

NAME, LABELS = "mixed_cifar10", 2
NEAR = 2.5
"""Standard deviations between our networks: what the page calls near."""
COLUMNS = {
    "true_accuracy": "Acc",
    "squared_loss": "L_sq",
    "epistemic_loss_true": "EL",
    "true_calibration_error": "CE",
    "disagreement_loss": "L_φD",
    "true_disagreement_calibration_error": "CE_φD",
    "prior": "prior EL",
    "posterior_true": "posterior EL",
    "posterior_sum_true": "the same, released sum",
}
ESTIMATES = {
    "accuracy": "Acc",
    "squared_loss": "L_sq",
    "epistemic_loss": "EL",
    "calibration_error": "CE",
    "disagreement_loss": "L_φD",
    "disagreement_calibration_error": "CE_φD",
}
"""By the ten labels of the test cases."""
TEMPERATURES = np.round(np.arange(1.0, 2.001, 0.02), 2)
BINS = (5, 10, 15, 20, 30, 50)
RAISED = 0.027
"""By how much ts raises the mean predicted disagreement of Mix-MNIST(2) (LH appendix F.2)."""


class Cell(NamedTuple):
    """A number of the paper's tables beside those of our networks."""

    metric: str
    printed: float
    ours: FloatArray

    @property
    def apart(self) -> float:
        """How many standard deviations between networks it is from our mean."""
        return float(abs(self.ours.mean() - self.printed) / self.ours.std(ddof=1))


def prediction_factor(networks: int, level: float = 0.95) -> float:
    """Return how many standard deviations one more network may be away: t √(1 + 1/n).

    >>> round(prediction_factor(3), 2), round(prediction_factor(1000), 2)
    (4.97, 1.96)
    """
    t = stdtrit(networks - 1, (1 + level) / 2)
    return float(t * np.sqrt(1 + 1 / networks))


def cells(networks: Sequence[dict[str, Any]]) -> Iterator[Cell]:
    """Yield every number that the paper prints for these networks."""
    rows: dict[tuple[int, Row], list[dict[str, float]]] = {}
    for network in networks:
        for row in network["rows"]:
            key: Row = (row["method"], row["scaling"], row["alpha"])
            rows.setdefault((row["labels"], key), []).append(row["values"])
    for (labels, key), values in rows.items():
        for metric in COLUMNS:
            printed = paper_value(networks[0]["data"], labels, key, metric)
            if printed:
                yield Cell(metric, float(printed), np.array([own[metric] for own in values]))


def errors_of(logits: FloatArray, truth: FloatArray, temperature: float) -> dict[str, float]:
    """Return the true calibration error of logits at a temperature, and what it might depend on.

    `least` is the smallest that any temperature from 1 to 2 gives; `fewest bins` and `most bins`
    the range over 5 to 50 bins.
    """

    def error(divisor: float, bins: int = 15) -> float:
        return true_calibration_error(softmax(logits / divisor, axis=1), truth, bins)

    binned = [error(temperature, bins) for bins in BINS]
    return {
        "Raw": error(1.0),
        "Raw+ts": error(temperature),
        "least": min(error(divisor) for divisor in TEMPERATURES),
        "least over bins": min(binned),
        "most over bins": max(binned),
    }


def _counted(found: Sequence[Cell]) -> list[str]:
    """Return the table of what is near, column by column and in all."""
    factor = prediction_factor(len(found[0].ours))
    head = ("column", "numbers", f"within {NEAR} SD", f"within {factor:.2f} SD", "median distance")
    lines = table_head(head)
    for metric, title in {**COLUMNS, "": "all"}.items():
        own = [cell for cell in found if metric in ("", cell.metric)]
        near = [sum(cell.apart <= by for cell in own) for by in (NEAR, factor)]
        away = np.median([abs(cell.ours.mean() - cell.printed) / cell.printed for cell in own])
        lines.append(table_row((title, str(len(own)), *map(str, near), f"{away:.1%}")))
    return lines


def _errors(folder: Path) -> list[str]:
    """Return the table of calibration errors, a row per network."""
    truth = kept_labels(None, folder, NAME).test.truth
    lines: list[str] = []
    for outputs in load_outputs(folder, NAME):
        stored = read_json(folder / f"{NAME}-{outputs.seed}-calibrators.json")["fitted"]
        temperature = stored[str(LABELS)]["ts"]["scaling"]["fitted"]["temperature_"]
        logits = outputs.arrays["logits_test"].astype(np.float64)
        found = errors_of(logits, truth, temperature)
        probs = softmax(logits / temperature, axis=1)
        bias = ", ".join(f"{100 * gap:+.1f}" for gap in (probs - truth).mean(axis=0))
        lines = lines or table_head(("network", "T", *found, "class predicted - true, %"))
        numbers = (f"{value:.4f}" for value in found.values())
        lines.append(table_row((f"seed {outputs.seed}", f"{temperature:.3f}", *numbers, bias)))
    return lines


def over_cases(folder: Path) -> list[str]:
    """Return half of the 95 % interval over networks and test cases, a row per method and data set.

    The errors over cases are those of a jackknife over fifty groups. Of Mix-CIFAR-10 the logits
    alone are kept, so that there is neither α nor dropout.
    """
    lines = table_head(("half of the interval", *ESTIMATES.values()))
    for name, title in (("mixed_mnist", "Mix-MNIST"), (NAME, "Mix-CIFAR-10")):
        cases = JudgedCases.of(kept_labels(None, folder, name).test.counts)
        pairs: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for outputs in load_outputs(folder, name):
            for method, belief in _beliefs(outputs, folder):
                found = estimates(said_of(belief, cases), cases)
                own = pairs.setdefault(method, {metric: [] for metric in ESTIMATES})
                for metric in ESTIMATES:
                    own[metric].append((float(found[metric][0]), error_of(found[metric])))
        for method, own in pairs.items():
            halves = (mean_and_half(own[metric])[1] for metric in ESTIMATES)
            lines.append(table_row((f"{title}, {method}", *(f"{half:.4f}" for half in halves))))
    return lines


def _beliefs(outputs: Outputs, folder: Path) -> Iterator[tuple[str, Belief]]:
    """Yield what a network says of the test cases, as far as it follows from what is kept."""
    stored = read_json(folder / f"{outputs.data}-{outputs.seed}-calibrators.json")["fitted"]
    fitted = {name: restored_pair(name, stored[str(LABELS)][name]) for name in ("none", "ts")}
    logits, drawing = outputs.arrays["logits_test"], Judging()
    said: dict[str, tuple[NDArray[Any], NDArray[Any] | None]] = {"raw": (logits, None)}
    if outputs.has("pooled_test"):
        said["raw"] = (logits, outputs.plain("test")[1])
        said["mcdo"] = drawn("mcdo", outputs, drawing.samples, drawing.seed)
    for method, (logits, features) in said.items():
        for name, (scaling, alphas) in fitted.items():
            title = {"raw": "Raw", "mcdo": "MCDO"}[method] + {"none": "", "ts": "+ts"}[name]
            probs = calibrated(scaling, logits)
            yield title, PointBelief(probs) if probs.ndim == 2 else EnsembleBelief(probs)
            if features is not None:
                yield f"{title}+α", alphas[method].predict(features, probs=probs)


def raising_temperature(logits: FloatArray, by: float) -> float:
    """Return the temperature that raises the mean predicted disagreement by so much.

    >>> logits = np.log([[0.9, 0.1]])  # 0.18; at T = 2 it is 0.75 and 0.25, 0.375
    >>> round(raising_temperature(logits, 0.375 - 0.18), 6)
    2.0
    """

    def disagreement(temperature: float) -> float:
        return float(1 - (softmax(logits / temperature, axis=1) ** 2).sum(axis=1).mean())

    start = disagreement(1.0)
    return float(brentq(lambda t: disagreement(t) - start - by, 1.0, 20.0, xtol=1e-10))


def as_much_as_the_paper(folder: Path) -> list[str]:
    """Return the table of Mix-MNIST(2) with ts that raises disagreement as the paper's does."""
    name, drawing = "mixed_mnist", Judging()
    test = kept_labels(None, folder, name).test
    wanted = [metric for metric in COLUMNS if "prior" not in metric and "posterior" not in metric]
    found: dict[str, list[list[float]]] = {"raw": [], "mcdo": []}
    for outputs in load_outputs(folder, name):
        logits = outputs.plain("test")[0].astype(np.float64)
        temperature = raising_temperature(logits, RAISED)
        draws = outputs.dropout("test", drawing.samples, drawing.seed)[0].astype(np.float64)
        beliefs: dict[str, Belief] = {
            "raw": PointBelief(softmax(logits / temperature, axis=-1)),
            "mcdo": EnsembleBelief(softmax(draws / temperature, axis=-1)),
        }
        for method, belief in beliefs.items():
            own = scored(belief, test)
            found[method].append([temperature, *(own[metric] for metric in wanted)])
    lines = table_head((f"Mix-MNIST({LABELS})", "T", *(COLUMNS[metric] for metric in wanted)))
    for method, rows in found.items():
        means, deviations = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
        printed = (paper_value(name, LABELS, (method, "ts", False), metric) for metric in wanted)
        spans = zip(means[1:], deviations[1:], printed, strict=True)
        ends = (f"{end([row[0] for row in rows]):.2f}" for end in (min, max))
        cells = (f"{mean:.4f} ± {deviation:.4f} ({said})" for mean, deviation, said in spans)
        title = {"raw": "Raw+ts", "mcdo": "MCDO+ts"}[method]
        lines.append(table_row((title, " to ".join(ends), *cells)))
    return lines


def main() -> None:
    """Print the tables."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m experiments.label_histograms.mixed_differences FOLDER")
    folder = Path(sys.argv[1])
    networks = [own for own in read_networks(folder) if own["data"] == NAME]
    tables = (
        *(_counted(list(cells(networks))), _errors(folder)),
        *(over_cases(folder), as_much_as_the_paper(folder)),
    )
    print("\n\n".join("\n".join(table) for table in tables))


def read_networks(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the kept networks; nothing is written into the folder."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        for file in folder.glob(f"*{NAME}*"):
            (Path(place) / file.name).write_bytes(file.read_bytes())
        return judge(None, place, [NAME], Judging())


if __name__ == "__main__":
    main()

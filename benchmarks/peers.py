"""Calibration errors of one score per case, ours and those of other libraries, behind one call.

`prepare = PEERS[name].make(bins)` imports the library; `call = prepare(p, y)` puts the
probabilities of the positive class (float32 or float64) and the labels (0 or 1, int64) into the
form that the library likes best; `call()` is what is measured. Their own defaults decide
everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

Call = Callable[[], float]
Prepare = Callable[[Any, Any], Call]


@dataclass(frozen=True)
class Peer:
    """A library, what it calls the number, and how to get it."""

    package: str
    what: str
    make: Callable[[int], Prepare]

    @property
    def version(self) -> str:
        """Return the version that is installed."""
        return version(self.package)


# Ours ---------------------------------------------------------------------------------------------


def ours(name: str, **options: Any) -> Callable[[int], Prepare]:
    """Return the call of one of our functions; those without `bins` do not get any."""

    def make(bins: int) -> Prepare:
        import inspect

        import raterwise as rw

        metric = getattr(rw, name)
        given = {"question": "positive", **options}
        if "bins" in inspect.signature(metric).parameters:
            given["bins"] = bins
        return lambda p, y: lambda: metric(p, y, **given)

    return make


def ours_with_interval(bins: int) -> Prepare:
    """Return the call of `evaluate`: the error and its 95 % interval."""
    import raterwise as rw

    given: Any = {"metrics": ["ece"], "question": "positive", "bins": bins}
    return lambda p, y: lambda: rw.evaluate(p, y, **given)["ece"].value


def ours_from_a_file(bins: int) -> Prepare:
    """Return the call of `evaluate_stream` on a Parquet file, which is written before."""
    import tempfile
    from pathlib import Path

    import pyarrow as pa
    import pyarrow.parquet as pq

    import raterwise as rw

    def prepare(p: Any, y: Any) -> Call:
        folder = tempfile.TemporaryDirectory()
        path, step = Path(folder.name) / "cases.parquet", 1_000_000
        table = pa.table({"prob_yes": pa.array(p), "label": pa.array(y.astype(np.int8))})
        pq.write_table(table, path, row_group_size=step, use_dictionary=False)
        del table

        def call(kept: Any = folder) -> float:
            return rw.evaluate_stream(
                str(path),
                label_column="label",
                class_names=["no", "yes"],
                metrics=["ece"],
                question="positive",
                bins=bins,
            )["ece"].value

        return call

    return prepare


# Theirs -------------------------------------------------------------------------------------------


def numpy(bins: int) -> Prepare:
    """Return the loop that people write themselves, without one: three calls of `bincount`."""

    def error(p: Any, y: Any) -> float:
        place = np.minimum((p * bins).astype(np.int64), bins - 1)
        return float(np.abs(np.bincount(place, y - p, bins)).sum() / len(p))

    return lambda p, y: lambda: error(p, y)


def torchmetrics(bins: int) -> Prepare:
    """Return the call of torchmetrics."""
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    def prepare(p: Any, y: Any) -> Call:
        score, said = torch.from_numpy(p), torch.from_numpy(y)
        return lambda: float(binary_calibration_error(score, said, n_bins=bins))

    return prepare


def monai(bins: int) -> Prepare:
    """Return the call of MONAI: one image, the class 1."""
    import torch
    from monai.metrics import CalibrationErrorMetric

    def prepare(p: Any, y: Any) -> Call:
        said = y.astype(p.dtype)
        given = [torch.from_numpy(np.stack([1 - a, a]))[None, :, :, None] for a in (p, said)]

        def call() -> float:
            metric = CalibrationErrorMetric(num_bins=bins, include_background=False)
            metric(*given)
            return float(metric.aggregate().item())

        return call

    return prepare


def netcal(bins: int) -> Prepare:
    """Return the call of netcal."""
    from netcal.metrics import ECE

    return lambda p, y: lambda: float(ECE(bins).measure(p, y))


def calzone(bins: int) -> Prepare:
    """Return the call of calzone, which wants both columns."""
    from calzone.metrics import CalibrationMetrics

    made = CalibrationMetrics(class_to_calculate=1, num_bins=bins)

    def prepare(p: Any, y: Any) -> Call:
        both = np.stack([1 - p, p], axis=1)
        return lambda: float(made.calculate_metrics(y, both, metrics=["ECE-H"])["ECE-H"])

    return prepare


def uncertainty_calibration(bins: int) -> Prepare:
    """Return the call of uncertainty-calibration."""
    import calibration

    return lambda p, y: lambda: float(calibration.get_ece(p, y, num_bins=bins))


def mapie(bins: int) -> Prepare:
    """Return the call of MAPIE, whose `num_bins` counts the edges."""
    from mapie.metrics.calibration import expected_calibration_error

    given: Any = {"num_bins": bins + 1, "split_strategy": "uniform"}
    return lambda p, y: lambda: float(expected_calibration_error(y, p, **given))


def sklearn(bins: int) -> Prepare:
    """Return scikit-learn's calibration curve, weighted by a histogram: it has no ECE."""
    from sklearn.calibration import calibration_curve

    def error(p: Any, y: Any) -> float:
        seen, said = calibration_curve(y, p, n_bins=bins)
        cases = np.histogram(p, bins, (0, 1))[0]
        return float(np.abs(seen - said) @ cases[cases > 0] / len(p))

    return lambda p, y: lambda: error(p, y)


def tensorflow_probability(bins: int) -> Prepare:
    """Return the call of TensorFlow Probability: the top label, from logits."""
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    import tensorflow_probability as tfp

    def prepare(p: Any, y: Any) -> Call:
        odds = (np.log(p) - np.log1p(-p)).astype(np.float32)  # it takes no float64
        logits = tf.constant(np.stack([np.zeros_like(odds), odds], axis=1))
        said = tf.constant(y.astype(np.int32))
        error = tfp.stats.expected_calibration_error
        return lambda: float(error(bins, logits=logits, labels_true=said))

    return prepare


def pycaleva(bins: int) -> Prepare:
    """Return PyCalEva's error in equal-mass groups; its constructor computes all that it has."""
    from pycaleva import CalibrationEvaluator

    return lambda p, y: lambda: float(CalibrationEvaluator(y, p, True, n_groups=bins).ace)


def relplot(bins: int) -> Prepare:
    """Return relplot's smooth error."""
    from relplot.metrics import smECE

    return lambda p, y: lambda: float(smECE(p, y))


PEERS: dict[str, Peer] = {
    "raterwise": Peer("raterwise", "`ece`", ours("ece")),
    "raterwise, interval": Peer(
        "raterwise", "`evaluate`, `ece` with its interval", ours_with_interval
    ),
    "raterwise, file": Peer("raterwise", "the same from a Parquet file", ours_from_a_file),
    "NumPy": Peer("numpy", "`bincount`", numpy),
    "torchmetrics": Peer("torchmetrics", "`binary_calibration_error`", torchmetrics),
    "MONAI": Peer("monai", "`CalibrationErrorMetric`", monai),
    "netcal": Peer("netcal", "`ECE`", netcal),
    "calzone": Peer("calzone-tool", "`ECE-H`", calzone),
    "uncertainty-calibration": Peer(
        "uncertainty-calibration", "`get_ece`", uncertainty_calibration
    ),
    "MAPIE": Peer("mapie", "`expected_calibration_error`", mapie),
    "scikit-learn": Peer("scikit-learn", "`calibration_curve`", sklearn),
    "TensorFlow Probability": Peer(
        "tensorflow-probability", "`expected_calibration_error`", tensorflow_probability
    ),
    "PyCalEva": Peer("pycaleva", "`CalibrationEvaluator`", pycaleva),
    "raterwise, smooth": Peer("raterwise", "`smooth_ece`", ours("smooth_ece")),
    "relplot": Peer("relplot", "`smECE`", relplot),
}
"""By the name that the tables show."""

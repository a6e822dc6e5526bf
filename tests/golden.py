"""Reference values: what the papers' own released code prints on fixed inputs.

The folder is ``tests/fixtures/golden``, or any other of the same form named by the environment
variable ``RATERWISE_GOLDEN``. Every test runs on every set found there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]

FOLDER = Path(
    os.environ.get("RATERWISE_GOLDEN", Path(__file__).resolve().parent / "fixtures" / "golden")
)

LABEL_HISTOGRAMS = "m1m0r1/lh_calib"
ROBUST = "MayankGupta73/Robust-Calibration"
NETCAL = "EFS-OpenSource/calibration-framework"
KDE = "tpopordanoska/ece-kde"
FOCAL = "torrvision/focal_calibration"
PEARCE = "Jonathan-Pearce/calibration_library"
MDCA = "mdca-loss/MDCA-Calibration"
DIRICHLET = "dirichletcal/experiments_neurips"
NN_CALIBRATION = "markus93/NN_calibration"
SKLEARN = "scikit-learn/scikit-learn"

# These put a score on an edge into the lower bin, (a, b]; the others into the upper, [a, b).
RIGHT_CLOSED = (ROBUST, PEARCE, MDCA, FOCAL, NN_CALIBRATION)


@dataclass(frozen=True)
class GoldenSet:
    """The inputs of one set; arrays by name."""

    name: str

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """Every array of the set."""
        with np.load(FOLDER / f"inputs_{self.name}.npz", allow_pickle=False) as stored:
            return {key: stored[key] for key in stored}

    def __getitem__(self, key: str) -> Array:
        return self.arrays[key]

    @property
    def probs(self) -> Array:
        """(N, K) predicted probabilities."""
        return self["probs"]

    @property
    def classes(self) -> Array:
        """(N,) the first rater's labels."""
        return self["labels"]

    @property
    def counts(self) -> Array:
        """(N, K) label histograms."""
        return self["hist"]

    @property
    def num_classes(self) -> int:
        """K."""
        return int(self.probs.shape[1])

    @property
    def has_single_labels(self) -> bool:
        """Whether a case has one label only."""
        return bool((self.counts.sum(axis=1) < 2).any())

    @property
    def has_edge_scores(self) -> bool:
        """Whether a probability lies on the edge of one of 10 or 15 bins."""
        probs = self.probs.ravel()
        return any(np.abs(probs * m - np.round(probs * m)).min() < 1e-9 for m in (10, 15))

    def prediction(self, kind: str) -> tuple[Array, Array]:
        """Class probabilities and disagreement probabilities (LH eqs 17, 71, 72, 73)."""
        probs = self["mc_probs"] if kind.startswith("mc") else self.probs
        disagreement = 1 - (probs**2).sum(axis=-1)
        if kind.endswith("alpha"):
            alpha0 = self["mc_alpha0"] if kind == "mc_alpha" else self["alpha0"]
            disagreement = disagreement * alpha0 / (alpha0 + 1)
        if kind.startswith("mc"):
            return probs.mean(axis=1), disagreement.mean(axis=1)
        return probs, disagreement


@cache
def golden_set(name: str) -> GoldenSet:
    """The set of this name."""
    return GoldenSet(name)


@dataclass(frozen=True)
class GoldenValue:
    """One reference value with its set, what it is, its parameters and the code it came from."""

    id: str
    set_name: str
    what: str
    params: dict[str, Any]
    repository: str
    dtype: str
    stored: float | None
    key: str

    @property
    def data(self) -> GoldenSet:
        """The inputs."""
        return golden_set(self.set_name)

    @property
    def value(self) -> Any:
        """The number, or the array."""
        if self.stored is not None:
            return self.stored
        with np.load(FOLDER / "outputs.npz", allow_pickle=False) as outputs:
            return outputs[self.key]

    @property
    def bins(self) -> int:
        """Number of bins; 15 where the original has no choice."""
        return int(self.params.get("bins", 15))

    def approx(self, tolerance: float = 1e-12, divisor: float = 1) -> Any:
        """The value / divisor within the tolerance: 1e-12, or 1e-5 if the original is float32."""
        if "float32" in (self.dtype, self.params.get("dtype")):
            tolerance = 1e-5
        return pytest.approx(self.value / divisor, rel=0, abs=tolerance)


@lru_cache(maxsize=1)
def index() -> tuple[GoldenValue, ...]:
    """Every value in the folder whose set is there."""
    rows = json.loads((FOLDER / "index.json").read_text())
    return tuple(
        GoldenValue(
            row["id"], row["set"], row["what"], row["params"], row["repo"], row["dtype"],
            row["value"], row["key"],
        )
        for row in rows
        if (FOLDER / f"inputs_{row['set']}.npz").exists()
    )  # fmt: skip


def find(
    *what: str,
    repository: str | tuple[str, ...],
    where: Callable[[GoldenValue], bool] = lambda _: True,
) -> Iterator[GoldenValue]:
    """The values of these names from these repositories."""
    allowed = (repository,) if isinstance(repository, str) else repository
    for value in index():
        if value.what in what and value.repository in allowed and where(value):
            yield value


def values(*what: str, **conditions: Any) -> pytest.MarkDecorator:
    """Run the test once for each value found, as its argument ``golden``."""
    found = list(find(*what, **conditions))
    return pytest.mark.parametrize("golden", found, ids=[value.id for value in found])


def array(data: GoldenSet, what: str, repository: str, **params: Any) -> Array:
    """The one array of this name and these parameters in a set."""
    found = [
        value
        for value in find(what, repository=repository)
        if value.set_name == data.name and params.items() <= value.params.items()
    ]
    assert len(found) == 1, f"{what} {params} of {data.name}: {len(found)} values"
    return np.asarray(found[0].value)

"""How often the verdict calls calibrated models miscalibrated, and how often it finds the others.

    python benchmarks/verdict_errors.py --replications 300 --jobs 2 --out verdicts.jsonl

Cases have logits and probabilities q = softmax(logits); a calibrated model predicts q. The worlds:

    plain        raters draw their labels from q, independently
    saturated    the same with logits four times as large: most probabilities are nearly 0 or 1
    vague        the truth of a case varies around q (Dirichlet, concentration 2): the raters
                 of a case agree more than q says; the model is calibrated, but not sharp
    patients     five cases each; half of the labels follow one draw that the patient's cases share
    heavy        patients of round(exp(N(0.6, 1.3))) cases, at most 100; 80 % of the labels follow
    saturated-patients   both, 80 % follow
    counts       one to five raters, whatever the case
    hard-first   the truth varies as in *vague*, and cases on which the model will be wrong get five
                 raters, the others one: calibrated over cases, over-confident over ratings

and the models: calibrated, overconfident (logits × 1.8), shifted (+0.7 on the last logit) and
sign-changing (too high here, too low there). Runs are resumed as those of `interval_coverage.py`.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from interval_coverage import run
from raterwise.inference.verdict import About, Verdict, judge_sums
from raterwise.labels import Labels
from raterwise.predictions import Predictions
from raterwise.summaries import DeviationPlan, summarise

Array = NDArray[np.float64]

SIZES = (50, 100, 500, 5000)
WORLDS = ("plain", "saturated", "patients", "heavy", "saturated-patients")
OF_SEVERAL_RATERS = ("vague", "saturated-vague", "counts")
OFF = ("overconfident", "shifted", "sign-changing")
SHARED = {"patients": 0.5, "heavy": 0.8, "saturated-patients": 0.8}


@dataclass(frozen=True)
class Design:
    """One kind of test set and model."""

    cases: int
    classes: int
    raters: int
    world: str
    model: str
    per: str = "annotation"

    @property
    def name(self) -> str:
        """What the design is called in files and filters."""
        return f"n{self.cases}-k{self.classes}-r{self.raters}-{self.world}-{self.model}-{self.per}"


def designs() -> Iterator[Design]:
    """Yield all designs."""
    for cases, classes, raters in itertools.product(SIZES, (2, 5), (1, 3)):
        worlds = WORLDS if raters == 1 else (*WORLDS, *OF_SEVERAL_RATERS)
        yield from (Design(cases, classes, raters, world, "calibrated") for world in worlds)
        if cases < 5000:
            yield from (Design(cases, classes, raters, "plain", model) for model in OFF)
            yield from (Design(cases, classes, raters, "patients", model) for model in OFF[:2])
    for cases, per in itertools.product((100, 500), ("annotation", "case")):
        yield Design(cases, 2, 3, "hard-first", "calibrated", per)
        yield Design(cases, 2, 3, "counts", "calibrated", per)


def draw(
    design: Design, random: np.random.Generator
) -> tuple[Array, NDArray[np.int64], NDArray[np.int64] | None]:
    """Return probabilities, label histograms and patients of a test set."""
    n, k = design.cases, design.classes
    patients = _patients(design, random)
    logits = random.normal(size=(n, k))
    if patients is not None:
        logits = np.sqrt(0.5) * (logits + random.normal(size=(patients.max() + 1, k))[patients])
    logits *= (1.5 if k == 2 else 2.0) * (4.0 if design.world.startswith("saturated") else 1.0)
    q = np.asarray(softmax(logits, axis=1))
    truth = q
    if design.world.endswith("vague") or design.world == "hard-first":
        truth = random.standard_gamma(np.maximum(2 * q, 1e-9)) + 1e-300
        truth /= truth.sum(axis=1, keepdims=True)
    raters = np.full(n, design.raters)
    if design.world == "counts":
        raters = random.integers(1, 6, size=n)
    elif design.world == "hard-first":
        top = q.argmax(axis=1)
        raters = np.where(truth[np.arange(n), top] < q[np.arange(n), top], 5, 1)
    reached, counts = np.cumsum(truth, axis=1), np.zeros((n, k), np.int64)
    for rater in range(int(raters.max())):
        place = random.random(n)
        if patients is not None:
            common = random.random(patients.max() + 1)[patients]
            place = np.where(random.random(n) < SHARED[design.world], common, place)
        label = np.minimum((place[:, None] > reached).sum(axis=1), k - 1)
        counts[np.arange(n), label] += rater < raters
    return predicted(logits, q, design.model), counts, patients


def _patients(design: Design, random: np.random.Generator) -> NDArray[np.int64] | None:
    if design.world not in SHARED:
        return None
    if design.world != "heavy":
        return np.arange(design.cases) // 5
    sizes = np.clip(np.rint(np.exp(random.normal(0.6, 1.3, design.cases))), 1, 100).astype(int)
    return np.repeat(np.arange(design.cases), sizes)[: design.cases]


def predicted(logits: Array, q: Array, model: str) -> Array:
    """Return what a model makes of the cases."""
    if model == "overconfident":
        return np.asarray(softmax(1.8 * logits, axis=1))
    if model == "shifted":
        return np.asarray(softmax(logits + 0.7 * (np.arange(q.shape[1]) == q.shape[1] - 1), axis=1))
    if model == "sign-changing":
        last = q[:, -1:]
        moved = np.clip(last + 0.5 * last * (1 - last) * np.sin(4 * np.pi * last), 0.001, 0.999)
        return np.concatenate((q[:, :-1] * (1 - moved) / (1 - last), moved), axis=1)
    return q


@dataclass(frozen=True)
class Settings:
    """What two runs must share for their lines to stand in one table."""

    replications: int
    simulations: int
    seed: int


def one(design: Design, simulations: int, replication: int, seed: int) -> Verdict:
    """Return the verdict on one test set."""
    random = np.random.default_rng([seed, replication, *design.name.encode()])
    probs, counts, patients = draw(design, random)
    cases = Predictions.of(probs, Labels.from_counts(counts), groups=patients)
    plan, raters = DeviationPlan(patients is not None), cases.labels.num_raters
    number = len(cases.group_ids)
    sums = summarise(cases, [plan], units=cases.groups, num_units=number or 1)[plan]
    several = number if 0 < number < len(cases) else None
    about = About(design.classes, None, int(raters.min()), int(raters.max()), several)
    return judge_sums(sums, about, design.per, simulations, replication)


def simulate(design: Design, _: Any, settings: Settings) -> dict[str, Any]:
    """Return how often the design was called miscalibrated, by which kind of statistic."""
    start, called, matter = time.perf_counter(), 0, 0
    by: dict[str, int] = {}
    for replication in range(settings.replications):
        verdict = one(design, settings.simulations, replication, settings.seed)
        called += verdict.miscalibrated
        matter += verdict.counting is not None and verdict.counting.matters
        if verdict.miscalibrated:
            kind = "bin" if verdict.statistic.startswith("bin") else verdict.statistic.split(" ")[0]
            by[kind] = by.get(kind, 0) + 1
    return {
        "design": design.name,
        "settings": asdict(settings),
        "seconds": round(time.perf_counter() - start, 1),
        "called": called,
        "counts_matter": matter,
        "by": by,
    }


def table(asked: list[Design], records: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a Markdown table: worlds down, classes and raters across, in %."""
    columns = sorted({(d.classes, d.raters) for d in asked})
    rows = list(dict.fromkeys((d.model, d.world, d.per, d.cases) for d in asked))
    rows.sort(key=lambda row: (row[0] != "calibrated", row[0], row[1], row[2], row[3]))
    heads = [f"K = {k}, {r} rater{'s' * (r > 1)}" for k, r in columns]
    yield "| model | world | cases | " + " | ".join(heads) + " |"
    yield "| --- | --- | ---: |" + " ---: |" * len(columns)
    for model, world, per, cases in rows:
        cells = []
        for k, r in columns:
            record = records.get(Design(cases, k, r, world, model, per).name)
            if record is None:
                cells.append("–")
                continue
            percent = 100 / record["settings"]["replications"]
            cells.append(f"{percent * record['called']:.1f}")
            if record["counts_matter"]:
                cells[-1] += f" (counting: {percent * record['counts_matter']:.0f})"
        shown = world if per == "annotation" else f"{world}, per case"
        yield f"| {model} | {shown} | {cases} | " + " | ".join(cells) + " |"


def main() -> None:
    """Run the designs and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replications", type=int, default=300, help="test sets per design")
    parser.add_argument("--simulations", type=int, default=1000, help="of each null")
    parser.add_argument("--seed", type=int, default=0, help="another seed: other test sets")
    parser.add_argument("--designs", nargs="+", default=["*"], help='such as "n50-k2-*"')
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("verdicts.jsonl"))
    given = parser.parse_args()
    settings = Settings(given.replications, given.simulations, given.seed)
    asked = [d for d in designs() if any(fnmatch(d.name, pattern) for pattern in given.designs)]
    if not asked:
        parser.error(f"--designs: none matches {given.designs}")
    records = run(simulate, dict.fromkeys(asked, ()), settings, given.out, given.jobs)
    print("\n".join(table(asked, records)))


if __name__ == "__main__":
    main()

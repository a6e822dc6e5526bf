"""How often the test of interchangeable raters rejects: no difference, and a true one.

python benchmarks/exchangeability_nulls.py [--seeds choose|confirm] [--repeats 1000] [--out FILE]

Readers of simulated patients. Reader r gives case i of patient g the classes with logits
a + patient_g + case_i + s · (reader × patient)_gr + (reader's own shift), all normal. With no shift
the readers are interchangeable, however large s is: each is strict with some patients and lax with
others. `cases` is the test without `groups=`, which takes the cases of a patient for independent;
`patients` is the test with it. Seeds `choose` were looked at while the method was made, `confirm`
only afterwards. Each design is written to FILE as it is done, and a second run goes on from there.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import raterwise as rw

SEEDS = {"choose": 1, "confirm": 2}
PERMUTATIONS = 199
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Design:
    """A panel and what it reads."""

    name: str
    patients: int = 20
    images: str = "5"
    """How many per patient: a number, or "heavy", one to forty with a long tail."""
    raters: int = 3
    classes: int = 2
    prevalence: float = 0.0
    """The logit of every class but the first."""
    effect: float = 1.5
    """The standard deviation of reader × patient."""
    missing: float = 0.0
    """The share of labels that are missing, each by itself."""
    panel: int | None = None
    """How many readers, drawn at random, see each case; None is all of them."""
    whole_panel: bool = False
    """Whether the same of them see all cases of a patient."""
    shift: float = 0.0
    """How far the last reader's logits of the classes but the first are off."""


NULLS = (
    Design("no reader × patient effect", effect=0.0),
    Design("20 patients"),
    Design("20 patients, 2 readers", raters=2),
    Design("20 patients, 6 readers", raters=6),
    Design("20 patients, 3 classes", classes=3),
    Design("20 patients, 4 readers, 5 classes", raters=4, classes=5),
    Design("20 patients, rare class", prevalence=-3.0),
    Design("20 patients, heavy tail", images="heavy"),
    Design("100 patients", patients=100),
    Design("20 patients, 15 % missing", missing=0.15),
    Design("20 patients, 15 % missing, 5 readers", missing=0.15, raters=5),
    Design("20 patients, 15 % missing, rare class", missing=0.15, prevalence=-3.0),
    Design("20 patients, 15 % missing, 3 classes", missing=0.15, classes=3, raters=4),
    Design("20 patients, 15 % missing, heavy tail", missing=0.15, images="heavy"),
    Design("100 patients, 40 % missing, rare class", 100, missing=0.4, prevalence=-3.0, raters=5),
    Design("40 patients, 3 of 8 readers per case", 40, raters=8, panel=3),
    Design("40 patients, 3 of 8 readers per patient", 40, raters=8, panel=3, whole_panel=True),
    Design("100 patients, heavy tail, 3 of 8 per case", 100, images="heavy", raters=8, panel=3),
)
TRUE = (
    Design("20 patients", shift=2.5),
    Design("20 patients, no reader × patient effect", effect=0.0, shift=1.0),
    Design("100 patients", patients=100, shift=1.2),
    Design("100 patients, 5 readers, 3 classes", patients=100, raters=5, classes=3, shift=1.2),
    Design("100 patients, 15 % missing", patients=100, missing=0.15, shift=1.2),
    Design("100 patients, heavy tail, 15 % missing", 100, "heavy", missing=0.15, shift=1.2),
    Design("100 patients, 3 of 8 readers per case", 100, raters=8, panel=3, shift=1.2),
    Design("100 patients, 3 of 8 readers per patient", 100, raters=8, panel=3, whole_panel=True,
           shift=1.2),
)  # fmt: skip


def simulate(design: Design, random: np.random.Generator) -> tuple[rw.Labels, np.ndarray]:
    """Return the labels of one data set, and the patient of each case."""
    d = design
    sizes = np.full(d.patients, 5)
    if d.images == "heavy":
        sizes = np.clip(np.round(np.exp(random.normal(0.9, 1.2, d.patients))), 1, 40).astype(int)
    else:
        sizes[:] = int(d.images)
    patient = np.repeat(np.arange(d.patients), sizes)
    cases, others = len(patient), d.classes - 1
    logits = d.prevalence + random.normal(0, 1, (d.patients, 1, others))[patient]
    logits = logits + random.normal(0, 1, (cases, 1, others))
    logits = logits + d.effect * random.normal(size=(d.patients, d.raters, others))[patient]
    logits[:, -1, 0] += d.shift
    # The largest of logit + Gumbel noise is a draw from the softmax.
    utility = np.concatenate((np.zeros((cases, d.raters, 1)), logits), axis=2)
    ratings = (utility + random.gumbel(size=utility.shape)).argmax(axis=2)
    seen = random.random((cases, d.raters)) >= d.missing
    if d.panel is not None:
        draws = random.random((d.patients if d.whole_panel else cases, d.raters))
        drawn = draws.argsort(axis=1).argsort(axis=1) < d.panel
        seen &= drawn[patient] if d.whole_panel else drawn
    ratings[~seen] = -1
    rated = seen.any(axis=1)
    return rw.Labels.from_ratings(ratings[rated], num_classes=d.classes), patient[rated]


def rates(design: Design, repeats: int, seed: int) -> dict[str, float]:
    """Return how often raters are said to differ and to stand out, with and without patients."""
    found: dict[str, list[bool]] = {}
    for b in range(repeats):
        labels, patient = simulate(design, np.random.default_rng([seed, b]))
        for name, groups in (("cases", None), ("patients", patient)):
            test = rw.exchangeability_test(
                labels, groups, SIGNIFICANCE, permutations=PERMUTATIONS, seed=b
            )
            for outcome, value in outcomes(test, design).items():
                found.setdefault(f"{name}: {outcome}", []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def outcomes(test: rw.ExchangeabilityTest, design: Design) -> dict[str, bool]:
    """Return what is counted of one test."""
    last = design.raters - 1
    if not design.shift:
        return {"differ": test.p_value <= SIGNIFICANCE, "named": bool(test.breaking)}
    return {
        "differ": test.p_value <= SIGNIFICANCE,
        "right one named": last in test.breaking,
        "right one first": test.breaking[:1] == (last,),
        "rest differs": (test.rest_p_value or 1.0) <= SIGNIFICANCE,
    }


def main() -> None:
    """Print a line for each design, those done before included."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", choices=SEEDS, default="confirm")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("exchangeability_nulls.jsonl"))
    options = parser.parse_args()
    done: dict[str, dict[str, Any]] = {}
    if options.out.exists():
        lines = options.out.read_text(encoding="utf-8").splitlines()
        done = {row["key"]: row for row in map(json.loads, lines)}
    for title, designs in (("No true difference", NULLS), ("The last reader differs", TRUE)):
        print(f"\n{title}, {options.repeats} data sets, seeds to {options.seeds}")
        for design in designs:
            key = json.dumps([asdict(design), options.seeds, options.repeats])
            if key not in done:
                found = rates(design, options.repeats, SEEDS[options.seeds])
                done[key] = {"key": key, "rates": found}
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(done[key]) + "\n")
            cells = (f"{name} {value:.1%}" for name, value in done[key]["rates"].items())
            print(f"{design.name:42} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()

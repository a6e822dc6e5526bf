"""Which headline a report has: red, amber or green, of models that are calibrated and that are not.

Test sets and models are those of `verdict_errors.py`; the headline is that of `rw.evaluate` with
all metrics, as people read it. `every_figure.py` runs it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

import raterwise as rw
from raterwise.report.verdicts import DISAGREEMENT, verdict
from verdict_errors import Design, draw

DESIGNS = (
    Design(100, 2, 1, "plain", "calibrated"),
    Design(300, 2, 1, "plain", "calibrated"),
    Design(1000, 2, 3, "plain", "calibrated"),
    Design(300, 2, 1, "saturated", "calibrated"),
    Design(300, 2, 1, "patients", "calibrated"),
    Design(300, 2, 3, "heavy", "calibrated"),
    Design(300, 5, 1, "plain", "calibrated"),
    Design(300, 5, 3, "vague", "calibrated"),
    Design(100, 2, 1, "plain", "overconfident"),
    Design(300, 5, 1, "plain", "shifted"),
    Design(1000, 2, 3, "plain", "sign-changing"),
)
TELLING = (
    "red", "amber", "off about disagreement", "too little data", "green",
    "green beside an interval above 0",
)  # fmt: skip


def one(design: Design, resamples: int, replication: int, seed: int) -> Counter[str]:
    """Return the colour of one report, and what stands beside it."""
    random = np.random.default_rng([seed, replication, *design.name.encode()])
    probs, counts, patients = draw(design, random)
    results = rw.evaluate(
        probs, rw.Labels.from_counts(counts), groups=patients, resamples=resamples,
        seed=replication, threads=1,
    )  # fmt: skip
    told, found = verdict(results), results.data["verdict"]
    colour = {
        "Possibly miscalibrated": "amber",
        DISAGREEMENT: "off about disagreement",
        "Too little data to say": "too little data",
    }.get(told.headline, "green" if told.tone == "good" else "red")
    beside = colour in ("green", "too little data") and bool(found["above_zero"])
    return Counter({
        colour: 1, "sets": 1, "green beside an interval above 0": int(beside),
        "any interval above 0": int(bool(found["above_zero"])),
    })  # fmt: skip

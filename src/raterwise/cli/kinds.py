"""The words that options of the commands may be."""

from __future__ import annotations

from enum import StrEnum


class Layout(StrEnum):
    """How a file holds the ratings."""

    wide = "wide"
    long = "long"
    counts = "counts"


class Duplicates(StrEnum):
    """What becomes of several ratings of a case by one rater."""

    error = "error"
    keep = "keep"
    average = "average"
    last = "last"


class Unit(StrEnum):
    """What the bootstrap draws."""

    cases = "cases"
    raters = "raters"
    both = "both"


class Question(StrEnum):
    """What is asked of a case."""

    top_label = "top_label"
    positive = "positive"
    per_class = "per_class"
    predicted_class = "predicted_class"


class Per(StrEnum):
    """What counts once."""

    annotation = "annotation"
    case = "case"


class OnProblem(StrEnum):
    """What to do with a case that cannot be used."""

    error = "error"
    drop = "drop"


class Method(StrEnum):
    """How class probabilities are calibrated."""

    temperature = "temperature"
    vector = "vector"
    matrix = "matrix"
    dirichlet = "dirichlet"
    isotonic = "isotonic"
    beta = "beta"
    histogram = "histogram"
    none = "none"


class Input(StrEnum):
    """What a model's outputs are."""

    probs = "probs"
    logits = "logits"


class Order(StrEnum):
    """What a worklist is sorted by."""

    gain = "gain"
    disagreement = "disagreement"

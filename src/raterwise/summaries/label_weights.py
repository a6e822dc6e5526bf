"""Weights that follow from the labels, as of a test set enriched with disease."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterwise.predictions import Predictions

LEAST_CASES = 5
"""Cases of a class before their weights, all alike, are no coincidence."""


@dataclass(frozen=True)
class LabelWeights:
    """The range of the weights of the cases that most raters give each class."""

    cases: tuple[int, ...]
    lightest: tuple[float, ...]
    heaviest: tuple[float, ...]

    @staticmethod
    def of(predictions: Predictions) -> LabelWeights | None:
        """Return the ranges; None of cases without weights, or weighted to another prevalence."""
        labels, weights = predictions.labels, predictions.weights
        if weights is None or predictions.class_weights is not None:
            return None
        said = labels.counts.argmax(axis=1) if labels.classes is None else labels.classes
        low, high = np.full(labels.num_classes, np.inf), np.zeros(labels.num_classes)
        np.minimum.at(low, said, weights)
        np.maximum.at(high, said, weights)
        cases = np.bincount(said, minlength=labels.num_classes)
        return LabelWeights(tuple(cases.tolist()), tuple(low.tolist()), tuple(high.tolist()))

    def __add__(self, other: LabelWeights) -> LabelWeights:
        return LabelWeights(
            tuple(map(sum, zip(self.cases, other.cases, strict=True))),
            tuple(map(min, zip(self.lightest, other.lightest, strict=True))),
            tuple(map(max, zip(self.heaviest, other.heaviest, strict=True))),
        )

    @property
    def of_classes(self) -> dict[int, float]:
        """What the cases of each class weigh, if that follows from the class alone; else empty."""
        ranges = zip(self.cases, self.lightest, self.heaviest, strict=True)
        seen = {k: (n, low, high) for k, (n, low, high) in enumerate(ranges) if n}
        alike = all(np.isclose(low, high, rtol=1e-6, atol=0) for _, low, high in seen.values())
        sure = [low for n, low, _ in seen.values() if n >= LEAST_CASES]
        if not alike or np.isclose(min(sure, default=1), max(sure, default=1), rtol=1e-6, atol=0):
            return {}
        return {k: low for k, (_, low, _) in seen.items()}

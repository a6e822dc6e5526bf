"""How well confidence tells right from wrong predictions."""

from __future__ import annotations

from raterwise import recipes
from raterwise.catalog import common
from raterwise.metric import Metric
from raterwise.metrics import cell_bounds, ranking

__all__ = ["ROWS"]

ROWS = (
    Metric(
        "auccc", "AUCCC", "Ranking",
        "How well confidence separates right from wrong predictions (0.5 is chance).",
        "higher", "CCC section 2.2",
        undefined="every prediction is right, or every one is wrong",
        curve="thresholds",
        tags=frozenset({"by_level"}), **recipes.of_ranks(ranking.auccc, cell_bounds.auccc),
        shape="separation", bounds=common.UNIT,
        meaning_of_event="How well the probability separates the raters' yes from their no.",
    ),
    Metric(
        "aurc", "AURC", "Ranking",
        "Mean error rate among the most confident cases, over all coverages.",
        "lower", "Geifman & El-Yaniv 2017", **recipes.of_ranks(ranking.aurc, cell_bounds.aurc),
        shape="loss", step=lambda table: {"step": 1.0, "squared_step": 2.0}, bounds=common.UNIT,
        meaning_of_event="Mean share of no among the highest probabilities, over all coverages.",
    ),
    Metric(
        "augrc", "AUGRC", "Ranking",
        "Mean risk of an undetected error, over all coverages.",
        "lower", "Traub et al. 2024", **recipes.of_ranks(ranking.augrc, cell_bounds.augrc),
        shape="loss", step=lambda table: {"step": 1 / 2, "squared_step": 1 / 3}, bounds=(0.0, 0.5),
        meaning_of_event="Mean share of all cases that are no and among the highest probabilities.",
    ),
)  # fmt: skip

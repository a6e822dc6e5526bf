"""How well confidence tells right from wrong predictions."""

from __future__ import annotations

from functools import partial

from raterwise.catalog import common
from raterwise.catalog.metric import Metric
from raterwise.catalog.recipes import common as recipes
from raterwise.metrics import cell_bounds, ranking

ERROR_ANYWHERE = {"step": 1.0, "squared_step": 2.0, "dear": 3 / 2, "squared_dear": 7 / 2}
"""What an error at any rank adds to AURC, log(N / rank), is exponential: its mean and mean square,
and those of the dearer one of two such errors."""

ROWS = (
    Metric(
        "auccc", "AUCCC", "Ranking",
        "How well confidence separates right from wrong predictions (0.5 is chance).",
        "higher", "CCC section 2.2",
        undefined="every prediction is right, or every one is wrong",
        curve="thresholds",
        tags=frozenset({"by_level"}), **recipes.of_ranks(ranking.auccc, cell_bounds.auccc),
        shape="separation", bounds=common.UNIT, ranks=True,
        meaning_of_event="How well the probability separates the raters' yes from their no.",
        headline=(None, 5),
    ),
    Metric(
        "aurc", "AURC", "Ranking",
        "Mean error rate among the most confident cases, over all coverages.",
        "lower", "Geifman & El-Yaniv 2017", **recipes.of_ranks(ranking.aurc, cell_bounds.aurc),
        shape="loss", step=ERROR_ANYWHERE, bounds=common.UNIT,
        ranks=True,
        meaning_of_event="Mean share of no among the highest probabilities, over all coverages.",
    ),
    Metric(
        "augrc", "AUGRC", "Ranking",
        "Mean risk of an undetected error, over all coverages.",
        "lower", "Traub et al. 2024", **recipes.of_ranks(ranking.augrc, cell_bounds.augrc),
        shape="loss", step={"step": 1 / 2, "squared_step": 1 / 3}, bounds=(0.0, 0.5),
        ranks=True,
        meaning_of_event="Mean share of all cases that are no and among the highest probabilities.",
    ),
    Metric(
        "excess_aurc", "Excess AURC", "Ranking",
        "AURC minus that of the best ranking, with every right case before every wrong one.",
        "lower", "Geifman, Uziel & El-Yaniv 2019",
        **recipes.of_ranks(ranking.excess_aurc, cell_bounds.aurc),
        shape="loss", step=ERROR_ANYWHERE, bounds=common.UNIT, in_all=False,
        ranks=True,
        meaning_of_event="AURC less that of probabilities that put every yes before every no.",
    ),
    Metric(
        "fpr_at_95_tpr", "False accepts at 95% right accepts", "Ranking",
        "Share of wrong predictions accepted when 95% of the right ones are.",
        "lower", "Liang et al. 2018",
        **recipes.of_ranks(
            ranking.fpr_at_tpr, cell_bounds.fpr, partial(ranking.fpr_at_tpr, within=True)
        ),
        undefined="every prediction is right, or every one is wrong",
        shape="resampled", bounds=common.UNIT, in_all=False, ranks=True,
        meaning_of_event="Share of the raters' no accepted where 95% of their yes are.",
    ),
    Metric(
        "failure_average_precision", "Average precision of failures", "Ranking",
        "How many of the least confident predictions are wrong, over all numbers reviewed.",
        "higher", "Hendrycks & Gimpel 2017",
        **recipes.of_ranks(
            ranking.failure_average_precision, cell_bounds.failure_average_precision, of="errors"
        ),
        undefined="no prediction is wrong (of successes: none is right)",
        bounds=common.UNIT, in_all=False, ranks=True,
        meaning_of_event="How many of the lowest probabilities are a no, over all numbers "
        "reviewed.",
    ),
    Metric(
        "io_auroc", "In/out AUROC", "Ranking",
        "How well confidence separates the cases from out-of-distribution ones (0.5 is chance).",
        "higher", "CCC section 4.3",
        **{**recipes.of_ranks(ranking.auccc, cell_bounds.auccc), "plan": recipes.inside_scores,
           "options": {}, "questions": ()},
        shape="separation", bounds=common.UNIT, needs="outside",
    ),
)  # fmt: skip

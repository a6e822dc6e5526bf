"""Scores of single cases: how good the probabilities are, all in all."""

from __future__ import annotations

from raterwise.catalog import common
from raterwise.catalog.metric import Metric
from raterwise.catalog.recipes import common as recipes
from raterwise.catalog.recipes import peers as peer_recipes
from raterwise.catalog.recipes import steps
from raterwise.metrics import proper

ROWS = (
    Metric(
        "accuracy", "Accuracy", "Proper scores",
        "How often the predicted class is what a rater says.",
        "higher", "LH section 7",
        plan=recipes.binned("top_label", "case"), formula=proper.mean_hit, options={"per": "case"},
        label_loss=recipes.hit_of_label, tags=frozenset({"by_level"}),
        shape="proportion", hits="any", bounds=common.UNIT,
        headline=(None, 1),
    ),
    Metric(
        "brier", "Brier score", "Proper scores",
        "Mean squared distance between the probabilities and what a rater says.",
        "lower", "Brier 1950; LH eqs 3-4, 8",
        plan=recipes.binned("per_class", "case"), formula=proper.brier,
        options={"per": "case", "scale_by_half": "auto"},
        label_loss=recipes.halved_squares_of_label, tags=frozenset({"by_level"}),
        shape="loss", step=steps.halved_step_of_classes,
        bounds=(0.0, 2.0), most=recipes.most_of_squares,
        headline=(2, 2),
    ),
    Metric(
        "nll", "Negative log-likelihood", "Proper scores",
        "Mean of -log of the probability given to what a rater says.",
        "lower", "LH eq 82",
        plan=recipes.per_case("log"), formula=proper.mean_score, options={"per": "case"},
        undefined="it is infinite: a class that a rater chose was given the probability 0",
        label_loss=recipes.log_of_label, tags=frozenset({"infinite"}),
        shape="loss", step=steps.step_of_log, step_plan=steps.CONFIDENCE,
        bounds=common.POSITIVE,
    ),
    Metric(
        "ranked_probability_score", "Ranked probability score", "Proper scores",
        "Mean squared distance between cumulative probabilities, for ordered classes.",
        "lower", "Epstein 1969; Murphy 1971",
        plan=recipes.per_case("ranked"), formula=proper.mean_score, options={"per": "case"},
        in_all=False,
        shape="loss", step=steps.step_of_ranked, step_plan=steps.RANKED,
        bounds=common.POSITIVE, most=recipes.most_of_cuts,
    ),
    Metric(
        "majority_accuracy", "Majority accuracy", "Proper scores",
        "How often the predicted class is the one that most raters chose.",
        "higher", "LH section 7, \"Acc\"",
        plan=recipes.per_case("majority"), formula=proper.mean_hit,
        in_all=False, shape="proportion", hits="any", bounds=common.UNIT,
    ),
    Metric(
        "ranked_log_score", "Ranked log score", "Proper scores",
        "Mean log loss of \"at most class k\", summed over k, for ordered classes.",
        "lower", "Tödter & Ahrens 2012",
        plan=recipes.per_case("ranked_log"), formula=proper.mean_score, options={"per": "case"},
        undefined="it is infinite: a rater chose a class where the model excludes all up to it, "
        "or all from it on",
        in_all=False, shape="loss",
        step=steps.step_of_ranked_log, step_plan=steps.SURE_OF_CUTS,
        bounds=common.POSITIVE, tags=frozenset({"infinite"}),
    ),
    Metric(
        "top_label_brier", "Top-label Brier score", "Proper scores",
        "Mean squared distance between the confidence and whether a rater agrees.",
        "lower", "Gupta & Ramdas 2022",
        plan=recipes.binned("top_label", "case"), formula=proper.expected_squared_loss,
        options={"per": "case"}, label_loss=peer_recipes.top_squares_of_label,
        in_all=False, shape="loss", step=steps.step_of_squares, bounds=common.UNIT,
    ),
)  # fmt: skip

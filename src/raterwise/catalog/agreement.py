"""How far the raters agree with each other; no model is asked."""

from __future__ import annotations

import math

from raterwise.catalog.metric import Metric
from raterwise.catalog.recipes import common as recipes
from raterwise.metrics import agreement

ROWS = (
    Metric(
        "fleiss_kappa", "Fleiss' kappa", "Rater agreement",
        "Agreement of the raters beyond chance (1 is perfect, 0 is chance).",
        "none", "Fleiss 1971; Fleiss, Levin & Paik 2003",
        plan=recipes.agreement_plan, formula=lambda table: agreement.fleiss_from_sums(table.fleiss),
        needs_raters=2, undefined="all labels are of one class",
        tags=frozenset({"of_pairs"}),
        bounds=(-1.0, 1.0),
        headline=(6, 6),
    ),
    Metric(
        "krippendorff_alpha", "Krippendorff's alpha", "Rater agreement",
        "Agreement of the raters beyond chance; takes any number of labels per case.",
        "none", "Krippendorff 2011",
        plan=recipes.agreement_plan, formula=recipes.krippendorff, options={"scale": "nominal"},
        undefined="no two labels can be paired, or all are of one class",
        tags=frozenset({"of_pairs"}),
        bounds=(-math.inf, 1.0),
        headline=(6, 6),
    ),
)  # fmt: skip

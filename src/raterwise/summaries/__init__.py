"""Mergeable tables: each has `empty`, `of(chunk)` and `+`, and a metric is a formula over one."""

from raterwise.summaries.agreement_sums import AgreementPlan, AgreementTable
from raterwise.summaries.bin_sums import BinPlan, BinSums
from raterwise.summaries.bin_table import BinTable, through
from raterwise.summaries.cells import CellPlan, CellSums
from raterwise.summaries.contract import Plan
from raterwise.summaries.deviation_sums import DeviationPlan, DeviationSums, DeviationTable
from raterwise.summaries.kept_sample import KeptSample, SamplePlan
from raterwise.summaries.one_pass import summarise
from raterwise.summaries.simplex import SimplexPlan, SimplexSums
from raterwise.summaries.sorted_scores import ScoreMasses, SortedPlan, SortedScores
from raterwise.summaries.votes import Votes

__all__ = [
    "AgreementPlan",
    "AgreementTable",
    "BinPlan",
    "BinSums",
    "BinTable",
    "CellPlan",
    "CellSums",
    "DeviationPlan",
    "DeviationSums",
    "DeviationTable",
    "KeptSample",
    "Plan",
    "SamplePlan",
    "ScoreMasses",
    "SimplexPlan",
    "SimplexSums",
    "SortedPlan",
    "SortedScores",
    "Votes",
    "summarise",
    "through",
]

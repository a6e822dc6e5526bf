"""Mergeable tables: each has `empty`, `of(chunk)` and `+`, and a metric is a formula over one."""

from raterwise.summaries.agreement_sums import AgreementPlan, AgreementSums, AgreementTable
from raterwise.summaries.bin_sums import BinPlan, BinSums, BinTable, SoftBinPlan
from raterwise.summaries.kept_sample import KeptSample, SamplePlan
from raterwise.summaries.sorted_scores import ScoreMasses, SortedPlan, SortedScores

__all__ = [
    "AgreementPlan",
    "AgreementSums",
    "AgreementTable",
    "BinPlan",
    "BinSums",
    "BinTable",
    "KeptSample",
    "SamplePlan",
    "ScoreMasses",
    "SoftBinPlan",
    "SortedPlan",
    "SortedScores",
]

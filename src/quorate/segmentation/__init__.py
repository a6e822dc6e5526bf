"""Images that several raters segmented: calibration of every voxel, per image or pooled."""

from quorate.segmentation.bands import boundary_band
from quorate.segmentation.cases import Case
from quorate.segmentation.evaluation import evaluate
from quorate.segmentation.maps import disagreement_map
from quorate.segmentation.reduction import CaseEstimate, SegmentationResults
from quorate.segmentation.variation import total_variation

__all__ = [
    "Case",
    "CaseEstimate",
    "SegmentationResults",
    "boundary_band",
    "disagreement_map",
    "evaluate",
    "total_variation",
]

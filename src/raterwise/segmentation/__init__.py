"""Images that several raters segmented: calibration of every voxel, per image or pooled."""

from raterwise.io.manifests import CaseFiles, read_manifest
from raterwise.segmentation.bands import boundary_band
from raterwise.segmentation.cases import Case
from raterwise.segmentation.evaluation import evaluate
from raterwise.segmentation.maps import disagreement_map
from raterwise.segmentation.variation import total_variation

__all__ = [
    "Case",
    "CaseFiles",
    "boundary_band",
    "disagreement_map",
    "evaluate",
    "read_manifest",
    "total_variation",
]

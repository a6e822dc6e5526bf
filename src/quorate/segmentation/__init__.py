"""Images that several raters segmented: calibration of every voxel, per image or pooled."""

from quorate.io.manifests import CaseFiles, read_manifest
from quorate.segmentation.bands import boundary_band
from quorate.segmentation.cases import Case
from quorate.segmentation.evaluation import evaluate
from quorate.segmentation.maps import disagreement_map
from quorate.segmentation.variation import total_variation

__all__ = [
    "Case",
    "CaseFiles",
    "boundary_band",
    "disagreement_map",
    "evaluate",
    "read_manifest",
    "total_variation",
]

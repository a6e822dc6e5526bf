"""How steady is a metric when the test set shrinks? (RECE Table 1 and Fig 2; MR Table 1, Fig 3)"""

from raterwise.stability.subsamples import SubsampleCurve, subsample_curve
from raterwise.stability.variation import TotalVariation, total_variation

__all__ = ["SubsampleCurve", "TotalVariation", "subsample_curve", "total_variation"]

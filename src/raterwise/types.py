"""Types of arrays, and the words that options accept: for readers, editors and type checkers."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]
"""Of any size, as callers have them."""

Options = Mapping[str, Any]
"""Of a metric, by their names."""

Questions = Literal["top_label", "positive", "per_class", "predicted_class"]
"""What a calibration error asks of a case."""
KernelQuestion = Literal["top_label", "positive", "per_class", "canonical"]
"""What the squared kernel error asks of a case."""
OneScore = Literal["top_label", "positive"]
"""The questions with one score per case."""
Per = Literal["annotation", "case"]
"""What counts once."""
OnUnrated = Literal["error", "drop"]
"""What is done about a case that nobody rated."""
OnSingle = Literal["error", "drop"]
"""What is done about a case with too few labels."""
Interval = Literal["auto", "percentile", "bias_corrected"]
"""How intervals are made."""
Unit = Literal["cases", "raters", "both"]
"""What is resampled: what is a sample of a population."""
Debiasing = Literal["debiased", "plugin"]
Unbiasing = Literal["unbiased", "plugin"]
Singletons = Literal["zero", "plugin"]
"""What a bin with one case adds to a debiased loss."""
Scale = Literal["nominal", "ordinal", "interval"]
"""Of measurement."""

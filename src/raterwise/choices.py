"""The words that options take, as types: an editor completes them, a type checker knows them."""

from typing import Literal

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

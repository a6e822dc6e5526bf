"""The multi-rater version of anybody's calibration error (MR)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from raterwise.errors import InvalidTypeError
from raterwise.predictions import Predictions


def multi_rater(calibration_error: Callable[..., float]) -> Callable[..., float]:
    """Return the multi-rater version of any calibration error (MR section 2.2).

    raterwise's own functions need no wrapper: they handle several raters without repeating rows.

    Parameters
    ----------
    calibration_error : callable
        `calibration_error(probs, y)`; further arguments are passed on. It receives every case once
        per rater, each time with another rater's label: the extended test set of MR eq 4.

    Returns
    -------
    callable
        A function of (probs, labels, ...), where labels may be `Labels`. Tensors stay tensors.
        `weights=`, one per case, is passed on with the weight of a case at each of its labels, and
        `on_unrated="drop"` leaves out unrated cases.

    See Also
    --------
    ece, kde_ece, classwise_ece, robust_ece : take several raters as they are.

    References
    ----------
    MR section 2.2, eq 4: the extended test set.

    Examples
    --------
    >>> from raterwise.labels import Labels
    >>> labels = Labels.from_counts([[2, 1], [0, 1]])
    >>> multi_rater(lambda probs, y: float((probs.argmax(1) == y).mean()))(
    ...     [[0.9, 0.1], [0.2, 0.8]], labels
    ... )
    0.75
    """
    if not callable(calibration_error):
        raise InvalidTypeError(
            f"calibration_error: must be a function of (probs, y); got {calibration_error!r}"
        )

    def wrapped(probs: Any, labels: Any, *args: Any, **kwargs: Any) -> float:
        weights = kwargs.pop("weights", None)
        on_unrated = kwargs.pop("on_unrated", "error")
        predictions = Predictions.of(probs, labels, weights=weights, on_unrated=on_unrated)
        counts = predictions.labels.counts
        rows = np.repeat(np.arange(len(predictions)), predictions.labels.num_raters)
        cases, classes = np.nonzero(counts)
        y: Any = np.repeat(classes, counts[cases, classes])
        repeated: Any = predictions.probs[rows]
        if predictions.weights is not None:
            kwargs["weights"] = predictions.weights[rows]
        if hasattr(probs, "detach"):
            import torch

            repeated, y = torch.as_tensor(repeated), torch.as_tensor(y)
            if "weights" in kwargs:
                kwargs["weights"] = torch.as_tensor(kwargs["weights"])
        return float(calibration_error(repeated, y, *args, **kwargs))

    return wrapped

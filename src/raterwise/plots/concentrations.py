"""The α0 that suits the labels of a case, against the strength of its penalty (LH Fig 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterwise.arrays import as_float_array
from raterwise.calibrators.alpha_loss import optimal_concentration
from raterwise.errors import InvalidInputError
from raterwise.palette import IDEAL, SERIES
from raterwise.plots.style import axes, in_style, tidy
from raterwise.rules import positive, positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROBABILITIES = (0.001, 0.01, *(k / 10 for k in range(1, 10)), 0.99, 0.999)
STRENGTHS = tuple(np.geomspace(1e-4, 1, 25).tolist())


class OptimalConcentrationDisplay:
    """The best log α0 of single cases of two classes against λ of α-calibration (LH Fig 3).

    A line for every number of raters who differ from the others, with a band over the probabilities
    that the model may have given. The larger λ, the nearer log α0 is to 0.

    Parameters
    ----------
    raters : int, default 5
        Labels of the case.
    strengths : sequence of float, default 25 values from 0.0001 to 1
        λ, positive.
    probabilities : array-like, default LH's 13 values
        What the model gives class 1, each between 0 and 1.

    Attributes
    ----------
    log_concentration : array of shape (raters + 1, probabilities, strengths)
        Best log α0 by how many raters say class 1, probability and λ.
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    raterwise.AlphaCalibration : chooses λ by cross-validation.

    Examples
    --------
    >>> display = OptimalConcentrationDisplay(raters=2, strengths=[0.005, 0.5])
    >>> display.log_concentration.shape
    (3, 13, 2)
    """

    def __init__(
        self,
        raters: int = 5,
        strengths: Sequence[float] = STRENGTHS,
        probabilities: ArrayLike = PROBABILITIES,
    ) -> None:
        self.raters = positive_integer("raters", raters)
        self.strengths = np.array([positive("strengths", value) for value in strengths])
        self.probabilities = as_float_array(probabilities, "probabilities", ndim=1)
        if not ((self.probabilities > 0) & (self.probabilities < 1)).all():
            raise InvalidInputError(
                f"probabilities: must lie between 0 and 1; got {self.probabilities.tolist()}"
            )
        self.log_concentration = self._optima()

    def _optima(self) -> NDArray[np.float64]:
        said = np.repeat(np.arange(self.raters + 1), len(self.probabilities))
        counts = np.stack((self.raters - said, said), axis=1)
        probs = np.tile(self.probabilities, self.raters + 1)
        each = [np.log(optimal_concentration(probs, counts, l2=float(s))) for s in self.strengths]
        shape = self.raters + 1, len(self.probabilities), len(self.strengths)
        return np.stack(each, axis=1).reshape(shape)

    @in_style
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw a line and a band for every number of raters who differ from the others.

        Parameters
        ----------
        ax : Axes, default None
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        OptimalConcentrationDisplay
            Itself.

        Examples
        --------
        >>> display = OptimalConcentrationDisplay(raters=2, strengths=[0.005, 0.5]).plot()
        >>> display.ax_.get_xscale(), len(display.ax_.get_legend().get_texts())
        ('log', 2)
        """
        self.ax_ = ax = axes(ax)
        self.figure_: Any = ax.figure
        ax.axhline(0, color=IDEAL, lw=0.8, ls=(0, (4, 3)), zorder=1)
        for few in range(self.raters // 2 + 1):
            colour = SERIES[few % len(SERIES)]
            either = self.log_concentration[[few, self.raters - few]]
            values = either.reshape(-1, len(self.strengths))
            low, middle, high = np.quantile(values, [0, 0.5, 1], axis=0)
            ax.fill_between(self.strengths, low, high, color=colour, alpha=0.15, lw=0)
            label = f"{few} of {self.raters} differ" if few else f"all {self.raters} agree"
            ax.plot(self.strengths, middle, color=colour, label=label)
        ax.set_xscale("log")
        tidy(ax, x="Penalty λ", y="Best log α0")
        ax.legend(loc="upper left", bbox_to_anchor=(0, -0.2), ncols=2, frameon=False)
        return self

"""α-calibration with a small network: log α0 need not be linear in the features (LH 5.3).

`raterwise.AlphaCalibration` is the place to start: it is exact and needs no torch. This is for
features whose relation to log α0 is not linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from raterwise.arrays import as_float_array
from raterwise.beliefs import DirichletBelief
from raterwise.errors import InvalidInputError
from raterwise.predictions import Predictions
from raterwise.predictions.predictions import rows_of
from raterwise.rules import at_least_zero, choose, positive_integer

__all__ = ["AlphaHead", "dirichlet_multinomial_nll"]


def dirichlet_multinomial_nll(log_alpha: Tensor, probs: Tensor, counts: Tensor) -> Tensor:
    """Return -log DirMult(y | α0 f) of each case, without the multinomial coefficient.

    Σ_{l<n} log(α0 + l) - Σ_k Σ_{l<y_k} log(α0 f_k + l): sums of logarithms, exact for counts (the
    recurrence of LH eq 51). Classes that nobody chose take no part.

    Parameters
    ----------
    log_alpha : Tensor
        (N,): log α0.
    probs : Tensor
        (N, K): f.
    counts : Tensor
        (N, K): y, how many raters chose each class.

    Returns
    -------
    Tensor
        (N,), with a gradient.

    See Also
    --------
    AlphaHead : fits α0 with it.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eq 51.

    Examples
    --------
    >>> half = torch.full((1, 2), 0.5, dtype=torch.float64)
    >>> dirichlet_multinomial_nll(torch.zeros(1), half, torch.tensor([[1, 1]])).exp()
    tensor([8.], dtype=torch.float64)
    """
    alpha = log_alpha.exp()
    total = counts.sum(dim=1)
    out = torch.zeros_like(probs[:, 0])
    for step in range(int(total.max())):
        out = out + torch.where(total > step, torch.log(alpha + step), 0.0)
        chosen = counts > step
        inside = torch.where(chosen, alpha[:, None] * probs + step, 1.0)
        out = out - torch.log(inside).sum(dim=1)
    return out


class AlphaHead:
    """Estimate α0 of each case with a network on the features, fitted to several raters (LH eq 50).

    Parameters
    ----------
    hidden : sequence of int, default (16,)
        Widths of the hidden layers (tanh); none makes log α0 linear in the features.
    l2 : float, default 0.005
        λ of LH eq 50, which draws α0 towards 1.
    weight_l2 : float, default 0.001
        Penalty on the weights of the network, against fitting the raters of these very cases.
    weighting : {"paper", "per_case"}, default "paper"
        Eq 50, or the released code's mean_i (n_i/n̄) NLL_i.
    steps : int, default 200
        Number of L-BFGS steps on all cases at once.
    seed : int, default 0
        Seed of the initial weights; the same seed gives the same digits.

    See Also
    --------
    raterwise.AlphaCalibration : log α0 linear in the features, without PyTorch; try it first.

    References
    ----------
    Mimori, Sasada, Matsui, Sato, Diagnostic uncertainty calibration: towards reliable machine
    predictions in medical domain, AISTATS 2021, eq 50.

    Examples
    --------
    >>> labels = [[0, 4], [4, 0], [2, 2], [3, 1]]
    >>> from raterwise.labels import Labels
    >>> features, probs = [[-1.0], [-1.0], [1.0], [1.0]], [[0.5, 0.5]] * 4
    >>> belief = (
    ...     AlphaHead(hidden=())
    ...     .fit(features, probs, Labels.from_counts(labels))
    ...     .predict(features, probs)
    ... )
    >>> bool(belief.concentration[0] < belief.concentration[2])  # raters of the first two agree
    True
    """

    def __init__(
        self,
        hidden: Sequence[int] = (16,),
        l2: float = 0.005,
        weight_l2: float = 1e-3,
        weighting: Literal["paper", "per_case"] = "paper",
        steps: int = 200,
        seed: int = 0,
    ) -> None:
        self.hidden = tuple(positive_integer("hidden", width) for width in hidden)
        self.l2 = float(at_least_zero("l2", l2))
        self.weight_l2 = float(at_least_zero("weight_l2", weight_l2))
        self.weighting = choose("weighting", weighting, ("paper", "per_case"))
        self.steps = positive_integer("steps", steps)
        self.seed = positive_integer("seed", seed, least=0)
        self.network: nn.Sequential | None = None

    def fit(self, features: Any, probs: Any, labels: Any) -> Self:
        """Fit the network to what the raters said.

        Parameters
        ----------
        features : array or Tensor
            (N, D): features that α0 may depend on.
        probs : array or Tensor
            (N, K): class probabilities.
        labels : Labels
            Some cases need two labels.

        Returns
        -------
        AlphaHead
            Itself.

        >>> from raterwise.labels import Labels
        >>> labels = Labels.from_counts([[0, 4], [2, 2]])
        >>> features, probs = [[-1.0], [1.0]], [[0.5, 0.5]] * 2
        >>> head = AlphaHead(hidden=()).fit(features, probs, labels)
        >>> len(head.network)  # one layer
        1
        """
        predictions = Predictions.of(probs, labels)
        predictions.labels.require_raters(2, "drop")  # some case must show how far raters agree
        x = _features(features, len(predictions))
        self._centre, spread = x.mean(axis=0), x.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1)
        inputs = self._standard(x)
        f = torch.as_tensor(predictions.read(0, len(predictions)).probs.astype(np.float64))
        counts = torch.as_tensor(np.asarray(predictions.labels.counts, np.int64))
        self.network = self._fresh(x.shape[1])
        self._minimise(inputs, f, counts)
        return self

    def predict(self, features: Any, probs: Any) -> DirichletBelief:
        """Return the belief: the class probabilities as they are, with the α0 found.

        Parameters
        ----------
        features : array or Tensor
            (N, D), as fitted.
        probs : array or Tensor
            (N, K): class probabilities.

        Returns
        -------
        DirichletBelief
            With mean `probs`.

        >>> from raterwise.labels import Labels
        >>> labels = Labels.from_counts([[0, 4], [2, 2]])
        >>> features, probs = [[-1.0], [1.0]], [[0.5, 0.5]] * 2
        >>> head = AlphaHead(hidden=()).fit(features, probs, labels)
        >>> head.predict(features, probs).mean.tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        if self.network is None:
            raise InvalidInputError("AlphaHead: must be fitted before it predicts")
        means = rows_of(probs).probs.astype(np.float64)
        x = _features(features, len(means))
        if x.shape[1] != len(self._centre):
            raise InvalidInputError(
                f"features: must have {len(self._centre)} columns, as fitted; got {x.shape[1]}"
            )
        with torch.no_grad():
            log_alpha = self.network(self._standard(x))[:, 0]
        return DirichletBelief(means, log_alpha.exp().numpy())

    def _standard(self, x: Any) -> Tensor:
        return torch.as_tensor((x - self._centre) / self._scale)

    def _fresh(self, width: int) -> nn.Sequential:
        generator = torch.Generator().manual_seed(self.seed)
        layers: list[nn.Module] = []
        for size in (*self.hidden, 1):
            layer = nn.Linear(width, size, dtype=torch.float64)
            last = size == 1 and len(layers) == 2 * len(self.hidden)
            with torch.no_grad():
                # The last layer starts at 0, that is at α0 = 1 for every case.
                drawn = torch.randn(size, width, generator=generator, dtype=torch.float64)
                layer.weight.copy_(drawn * (0.0 if last else width**-0.5))
                layer.bias.zero_()
            layers += [layer] if last else [layer, nn.Tanh()]
            width = size
        return nn.Sequential(*layers)

    def _minimise(self, inputs: Tensor, probs: Tensor, counts: Tensor) -> None:
        assert self.network is not None
        network, labels = self.network, counts.sum()
        weights = [p for name, p in network.named_parameters() if name.endswith("weight")]
        optimiser = torch.optim.LBFGS(
            network.parameters(),
            max_iter=self.steps,
            tolerance_grad=1e-9,
            tolerance_change=1e-14,
            history_size=50,
            line_search_fn="strong_wolfe",
        )

        def loss() -> Tensor:
            optimiser.zero_grad()
            log_alpha = network(inputs)[:, 0]
            nll = dirichlet_multinomial_nll(log_alpha, probs, counts)
            if self.weighting == "paper":
                fit = nll.sum() / labels
            else:
                raters = counts.sum(dim=1).double()
                fit = (raters / raters.mean() * nll).mean()
            size = torch.stack([(w**2).sum() for w in weights]).sum()
            value: Tensor = fit + self.l2 * (log_alpha**2).mean() + self.weight_l2 * size
            value.backward()  # type: ignore[no-untyped-call]
            return value

        optimiser.step(loss)  # type: ignore[no-untyped-call]
        if not all(torch.isfinite(p).all() for p in network.parameters()):
            raise InvalidInputError("features, probs: the fit did not stay finite; raise l2")


def _features(features: Any, cases: int) -> Any:
    x = as_float_array(features, "features", ndim=2).astype(np.float64)
    if len(x) != cases:
        raise InvalidInputError(f"features: must match probs; got {len(x)} rows for {cases} cases")
    if missing := int((~np.isfinite(x)).sum()):
        raise InvalidInputError(f"features: must be finite; {missing} values are not")
    return x

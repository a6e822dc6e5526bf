"""Softmax of a linear map of the logits, and its penalised likelihood with derivatives.

softmax(W u + b) (LH eqs 46-47) with the multinomial likelihood (LH eq 82) and squared penalties
(LH eqs 48-49) is convex in (W, b). Parameters are kept as (K, F): one row per class, [W | b] with
F = K + 1 for a full matrix, [v | b] with F = 2 for a diagonal one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from raterwise.kernels._threads import in_threads
from raterwise.types import FloatArray

CHUNK_VALUES = 1 << 20
AT_ONCE = 64
"""Of so many chunks are the second derivatives kept before they are added up."""


@dataclass(frozen=True, eq=False)
class LinearLikelihood:
    """Σ_ik -t_ik log softmax_k(W u_i + b) + Σ penalty · θ² as a function of θ."""

    logits: FloatArray
    """u (N, K)."""
    targets: FloatArray
    """t (N, K); they sum to 1."""
    penalty: FloatArray
    """(K, F): the factor of each squared parameter."""

    def value(self, theta: FloatArray) -> tuple[float, float]:
        """Return the loss with its penalties, and the negative log-likelihood alone."""
        likelihood_loss = -float(np.vdot(self.targets, _log_probs(self.logits, theta)))
        return likelihood_loss + float(np.vdot(self.penalty, theta**2)), likelihood_loss

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Return the derivative with respect to θ, (K, F)."""
        masses = self.targets.sum(axis=1, keepdims=True)
        excess = masses * np.exp(_log_probs(self.logits, theta)) - self.targets
        if is_diagonal(theta):
            slopes = np.einsum("ik,ik->k", excess, self.logits)[:, None]
        else:
            slopes = excess.T @ self.logits
        gradient = np.column_stack((slopes, excess.sum(axis=0)))
        return np.asarray(gradient + 2 * self.penalty * theta)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return Σ_i c_i (δ_kl p_k - p_k p_l) φ_k φ_lᵀ + 2 penalty, (K F, K F).

        φ_k are the features of class k, (u, 1) or (u_k, 1), and c_i is the mass of case i. Chunks
        of cases go to threads and are added up in order.
        """
        rows = max(256, CHUNK_VALUES // theta.size)

        def curvature(first: int) -> FloatArray:
            return self._curvature(slice(first, first + rows), theta)

        result = np.diag(2 * self.penalty.ravel())
        chunks = range(0, len(self.logits), rows)
        for i in range(0, len(chunks), AT_ONCE):
            for part in in_threads(curvature, chunks[i : i + AT_ONCE]):
                result += part
        return result

    def _curvature(self, rows: slice, theta: FloatArray) -> FloatArray:
        """Return the share of some cases in the second derivatives."""
        logits, (classes, size) = self.logits[rows], theta.shape
        if is_diagonal(theta):
            features = np.stack((logits, np.ones_like(logits)), axis=2)
        else:
            features = np.column_stack((logits, np.ones(len(logits))))[:, None, :]
        masses = self.targets[rows].sum(axis=1, keepdims=True)
        probs = np.exp(_log_probs(logits, theta))
        flat = ((probs * np.sqrt(masses))[:, :, None] * features).reshape(len(logits), -1)
        result = -(flat.T @ flat)
        for k in range(classes):
            mine = features[:, k if features.shape[1] > 1 else 0]
            block = slice(k * size, (k + 1) * size)
            result[block, block] += mine.T @ (mine * (masses * probs[:, k : k + 1]))
        return np.asarray(result)


def is_diagonal(theta: FloatArray) -> bool:
    """Tell [v | b] from [W | b]: a full matrix has at least three columns."""
    return bool(theta.shape[1] == 2)


def apply_linear(logits: FloatArray, theta: FloatArray) -> FloatArray:
    """Return W u + b, or v u + b for a diagonal map, (N, K)."""
    if is_diagonal(theta):
        return np.asarray(logits * theta[:, 0] + theta[:, 1])
    return np.asarray(logits @ theta[:, :-1].T + theta[:, -1])


def _log_probs(logits: FloatArray, theta: FloatArray) -> FloatArray:
    z = apply_linear(logits, theta)
    return np.asarray(z - logsumexp(z, axis=1, keepdims=True))

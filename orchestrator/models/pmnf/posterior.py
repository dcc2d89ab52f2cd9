"""The hypotheses that remain possible, with weights, and what they predict."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.pmnf.correction import BEYOND, Correction
from orchestrator.models.pmnf.hypotheses import block_values
from orchestrator.models.symbolic import LARGEST_LOG

_TINY = 1e-300  # keeps logarithms and quotients of zero finite
# A standard deviation of the logarithm that says: nothing is known. Chosen by hand; not derived.
_UNKNOWN = 10.0
# Blocks times points up to which each is evaluated by itself: to find the different ones takes longer.
_DIRECT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """Members, the most probable hypothesis first; each is a hypothesis with fitted coefficients."""

    weights: Floats  # probabilities, shape (members,); of the first its own, others may stand for many
    exponents: Floats  # pairs (i, j) per member, term and parameter, shape (members, terms, parameters, 2)
    coefficients: Floats  # constant first, shape (members, terms + 1)
    covariance: Floats  # of the coefficients, shape (members, terms + 1, terms + 1)
    # Relative standard deviation of the truth around each member within the fitted range, shape (members,).
    misfit: Floats
    # Smooth correction by which every member is multiplied, where there is lack of fit.
    correction: Correction | None = None
    # Share of the sizes of its terms above which a prediction is kept: terms that cancel each other more
    # closely do so by chance.
    least_share: float = 1e-3
    # Share of the prior of each member that comes from other campaigns in which such forms fitted, shape
    # (members,); None without such campaigns.
    learned: Floats | None = None

    def design(self, x: Floats) -> Floats:
        """Evaluate the terms (constant first) at coordinates (n, parameters): (members, terms + 1, n)."""
        members, terms, parameters, _ = self.exponents.shape
        result = np.ones((members, terms + 1, len(x)))
        for k in range(parameters):
            pairs = self.exponents[:, :, k].reshape(-1, 2)
            # On a grid few values are repeated at many points.
            values, place = np.unique(x[:, k], return_inverse=True)
            if len(pairs) * len(values) <= _DIRECT:
                blocks = block_values(values, pairs).reshape(members, terms, len(values))
            else:
                # As complex numbers, pairs are sorted ten times as fast as rows are.
                number = np.ascontiguousarray(pairs, np.float64).view(np.complex128)[:, 0]
                _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
                blocks = block_values(values, pairs[first])[inverse.reshape(members, terms)]
            result[:, 1:] *= blocks[..., place]
        return result

    def log_slopes(self, x: Floats) -> tuple[Floats, Floats]:
        """Logarithm without correction (members, n), and slopes by coefficients (members, terms + 1, n).

        Slopes by coefficients that are 0 are 0.
        """
        design = self.design(x)
        value = self._value(design)
        used = (self.coefficients != 0)[:, :, None]
        return np.log(value), np.where(used, design / value[:, None], 0.0)

    def log_mean(self, x: Floats) -> Floats:
        """Logarithm of the prediction of every member at coordinates (n, parameters): (members, n)."""
        result: Floats = np.log(self._value(self.design(x)))
        if self.correction is not None:
            result += self.correction.coefficients @ self.correction.features(x).T
        return result

    def _value(self, design: Floats) -> Floats:
        """Values without correction, kept positive where negative coefficients would win far out."""
        value = np.einsum("ktn,kt->kn", design, self.coefficients)
        if np.any(self.coefficients < 0):
            value = np.maximum(value, self._least(design))
        result: Floats = np.maximum(value, _TINY)
        return result

    def _least(self, design: Floats) -> Floats:
        sizes = np.einsum("ktn,kt->kn", np.abs(design), np.abs(self.coefficients))
        return np.asarray(self.least_share * sizes)

    def is_positive(self, x: Floats) -> NDArray[np.bool_]:
        """Return whether members are positive by themselves at coordinates (n, parameters): (members, n)."""
        design = self.design(x)
        value = np.einsum("ktn,kt->kn", design, self.coefficients)
        return np.asarray(value > self._least(design))

    def log_moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the log prediction of every member: (members, n) each."""
        mean, factor, rough = self.log_factors(x)
        spread = np.sqrt(np.einsum("kqn,kqn->kn", factor, factor) + rough**2)
        return mean, np.minimum(spread, _UNKNOWN)

    def log_factors(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Gaussian log prediction of every member at coordinates (n, parameters).

        Returns
        -------
        Mean (members, n); a factor F (members, q, n) such that the covariance of two points within member k
        is ``F[k, :, i] @ F[k, :, j]``; and a standard deviation (members, n) independent between points.
        """
        design = self.design(x)
        value = self._value(design)
        mean, slope = np.log(value), design / value[:, None]
        rough = np.broadcast_to(self.misfit[:, None], mean.shape)
        root = _root(self.covariance).swapaxes(1, 2)
        if self.correction is None:
            return mean, root @ slope, rough
        features = self.correction.features(x)
        mean = mean + self.correction.coefficients @ features.T
        slope = slope - np.einsum("nr,krt->ktn", features, self.correction.coupling)
        own = _root(self.correction.covariance).swapaxes(1, 2) @ features.T
        beyond = BEYOND * self.correction.smooth[:, None] ** 2 * self.correction.features.outside(x)
        return mean, np.concatenate([root @ slope, own], axis=1), np.sqrt(rough**2 + beyond)

    def first(self) -> Posterior:
        """Return the most probable member alone."""
        return replace(
            self,
            weights=self.weights[:1],
            exponents=self.exponents[:1],
            coefficients=self.coefficients[:1],
            covariance=self.covariance[:1],
            misfit=self.misfit[:1],
            correction=None if self.correction is None else self.correction.first(),
            learned=None if self.learned is None else self.learned[:1],
        )

    def best(self, x: Floats) -> Floats:
        """Prediction of the most probable member at coordinates (n, parameters): shape (n,)."""
        result: Floats = np.exp(self.first().log_mean(x)[0])
        return result

    def expected(self, x: Floats) -> Floats:
        """Mean prediction over members and coefficients at coordinates (n, parameters): shape (n,)."""
        mean, spread = self.log_moments(x)
        logs = mean + np.minimum(spread, 1.0) ** 2 / 2
        result: Floats = self.weights @ np.exp(np.minimum(logs, LARGEST_LOG))
        return result


def _root(covariance: Floats) -> Floats:
    """Square roots of positive semidefinite matrices, shape (..., t, t)."""
    variance = np.einsum("...tt->...t", covariance)
    known = np.isfinite(variance) & (variance > _TINY)
    diagonal = np.where(known, np.sqrt(np.where(known, variance, 1.0)), 0.0)
    inverse = np.where(known, 1 / np.where(known, diagonal, 1.0), 0.0)
    correlation = np.nan_to_num(covariance) * inverse[..., :, None] * inverse[..., None, :]
    value, vector = np.linalg.eigh(np.clip(correlation, -1.0, 1.0))
    root: Floats = diagonal[..., :, None] * vector * np.sqrt(np.maximum(value, 0.0))[..., None, :]
    return root

"""The distribution of measured values around a hypothesis: noise, rough and smooth lack of fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.pmnf.correction import ROUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """Covariance of log values of call paths: ``variance * (1/weights + smooth * features featuresᵀ)``."""

    weights: Floats  # relative precision of every point, mean 1, shape (call paths, points)
    variance: Floats  # expected relative variance of a value of weight 1, shape (call paths,)
    freedom: Floats  # how sure that is, in degrees of freedom, shape (call paths,)
    noise: Floats  # the part of ``variance`` that is noise and not lack of fit, shape (call paths,)
    # Variance of the coefficients of the correction, in units of ``variance``, shape (call paths,).
    smooth: Floats
    features: Floats  # monomials of the correction at the points, shape (points, features)
    # Posterior covariance of these coefficients for a given hypothesis, in units of ``variance``, shape (call
    # paths, features, features).
    spread: Floats
    # Half the log determinant of the inverse covariance without ``variance``, shape (call paths,).
    log_scale: Floats

    def correction(self) -> tuple[Floats, Floats]:
        """Features and square root of ``spread`` (lower triangular); none where no call path has any."""
        if not np.any(self.smooth):
            return self.features[:, :0], self.spread[:, :0, :0]
        root = np.zeros_like(self.spread)
        some = self.smooth > 0
        root[some] = np.linalg.cholesky(self.spread[some])
        return self.features, root

    def rows(self, index: NDArray[np.intp]) -> Self:
        """Select call paths."""
        return replace(self, **{name: getattr(self, name)[index] for name in _BY_CALL_PATH})

    def put(self, index: NDArray[np.intp], part: Weighting) -> Self:
        """Replace some call paths."""
        changed = {name: getattr(self, name).copy() for name in _BY_CALL_PATH}
        for name, array in changed.items():
            array[index] = getattr(part, name)
        return replace(self, **changed)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Put the call paths of several, which have the same features, one after another."""
        each = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_CALL_PATH}
        return replace(parts[0], **each)


_BY_CALL_PATH = tuple(field.name for field in fields(Weighting) if field.name != "features")


def weighting(count: Floats, sigma: Floats, freedom: Floats, misfit: Floats, features: Floats) -> Weighting:
    """Combine noise and lack of fit.

    Parameters
    ----------
    count
        Effective repetitions, shape (call paths, points).
    sigma, freedom
        Noise of one repetition and its degrees of freedom, shape (call paths,).
    misfit
        Standard deviation of the coefficients of the smooth correction, shape (call paths,); 0 for none.
    features
        Shape (points, features).
    """
    noise = sigma[:, None] ** 2 / count
    precision = 1 / (noise + ROUGH * misfit[:, None] ** 2)
    variance = 1 / precision.mean(axis=1)
    weights = precision * variance[:, None]
    smooth = misfit**2 / variance
    size = features.shape[1]
    gram = np.einsum("nr,cn,ns->crs", features, weights, features)
    scaled = np.eye(size) + smooth[:, None, None] * gram
    spread = smooth[:, None, None] * np.linalg.inv(scaled)
    spread = (spread + spread.swapaxes(1, 2)) / 2
    log_scale = (np.log(weights).sum(axis=1) - np.linalg.slogdet(scaled)[1]) / 2
    typical = 1 / (count.mean(axis=1) / sigma**2)
    return Weighting(
        weights=weights,
        variance=variance,
        freedom=freedom,
        noise=np.minimum(typical, variance),
        smooth=smooth,
        features=features,
        spread=spread,
        log_scale=log_scale,
    )

"""What call paths that were measured at the same points share: the algebra of the Gaussian process.

For given sizes of the components the process is a linear model with independent normal coefficients
(Rasmussen and Williams, Gaussian processes for machine learning, section 2.1). Measured values are weighted
and projected onto what the features span, so that the cost depends on the smaller of points and features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.blas import decomposed
from orchestrator.models.curves.features import Features
from orchestrator.models.curves.prior import Draws
from orchestrator.models.unseen import ties

_TOGETHER = 4_000_000  # numbers in the matrices that are factorised at once
_RANK = 1e-10  # singular values below this share of the largest one are rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Measured points and their features."""

    features: Features  # functions of the parameters
    points: Floats  # coordinates, shape (points, parameters)
    # Relative weight of every point: its repetitions over a typical number, shape (points,).
    precision: Floats
    typical: float  # that number
    basis: Floats  # weighted features of the points, projected, shape (rank, features)
    projection: Floats  # from weighted values at the points to the projected ones, shape (rank, points)
    ties: Floats  # directions along which points do not differ, see `orchestrator.models.unseen.ties`

    @classmethod
    def of(cls, points: Floats, count: Floats) -> Design:
        """Choose features for measured points, shape (points, parameters), with repetitions (points,)."""
        features = Features.of(points)
        typical = float(1 / np.mean(1 / count))
        precision = count / typical
        basis, projection = _projected(features(points), precision)
        return cls(
            features=features,
            points=points,
            precision=precision,
            typical=typical,
            basis=basis,
            projection=projection,
            ties=ties(points),
        )

    def with_slopes(self, slopes: Floats) -> Self:
        """Return the design of values that depend on coefficients with these slopes, (points, features)."""
        basis, projection = _projected(slopes, self.precision)
        return replace(self, basis=basis, projection=projection)

    def weighted(self, values: Floats) -> tuple[Floats, Floats]:
        """Return values at the points, shape (..., points), weighted, and projected as well (..., rank)."""
        weighted = values * np.sqrt(self.precision)
        return weighted, weighted @ self.projection.T

    @property
    def log_constant(self) -> float:
        """Logarithm of the density of all values at their mean, where each has a scatter of 1."""
        number = len(self.points)
        return 0.5 * float(np.log(self.precision).sum()) - number / 2 * float(np.log(2 * np.pi))

    def gains(self, draws: Draws) -> Floats:
        """Return mean coefficients of features by projected values, shape (draws, features, rank)."""
        variance = draws.sizes[:, self.features.component] ** 2
        solved = np.linalg.solve(self.covariance(draws), self.basis)
        return np.asarray(variance[:, :, None] * solved.swapaxes(1, 2), np.float64)

    def factor(self, slopes: Floats, gains: Floats, draws: Draws) -> Floats:
        """Return factors of the covariance, for every draw, of n numbers that depend on the coefficients.

        What the measurements leave open, and how their scatter moves what they determine: Joseph's form of
        the covariance, without differences of large numbers and without matrices between features.

        Parameters
        ----------
        slopes
            Of the numbers by coefficients, shape (draws, n, features), or (n, features) for all draws.
        gains
            As in `gains`.
        draws
            Sizes and scatter.

        Returns
        -------
        Shape (draws, features + rank, n).
        """
        moved = slopes @ gains
        left_open = (slopes - moved @ self.basis) * draws.sizes[:, None, self.features.component]
        scattered = moved * draws.noise[:, None, None]
        return np.concatenate([left_open, scattered], axis=2).swapaxes(1, 2)

    def covariance(self, draws: Draws) -> Floats:
        """Return covariances of projected values, shape (draws, rank, rank)."""
        rank = len(self.basis)
        parts = [self.basis[:, self.features.component == k] for k in range(draws.sizes.shape[1])]
        units = np.array([part @ part.T for part in parts]).reshape(-1, rank**2)
        result: Floats = (draws.sizes**2 @ units).reshape(-1, rank, rank)
        np.einsum("kii->ki", result)[:] += draws.noise[:, None] ** 2
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Precisions:
    """What projected values are weighed with, for many draws."""

    inverse: Floats  # inverse Cholesky factors of their covariances, shape (draws, rank, rank)
    # The upper triangles of the inverse covariances row by row, with half of the diagonal; last the inverse
    # variance beyond what the features span. Shape (draws, rank * (rank + 1) / 2 + 1).
    packed: Floats
    log_density: Floats  # logarithm of the density at the mean, shape (draws,)

    @classmethod
    def of(cls, design: Design, draws: Draws) -> Self:
        """Factorise the covariances of all draws."""
        rank, number = design.projection.shape
        inverse = inverse_root(design.covariance(draws))
        halves = np.log(np.einsum("kii->ki", inverse)).sum(axis=1)
        precision = inverse.swapaxes(1, 2) @ inverse
        np.einsum("kii->ki", precision)[:] /= 2
        packed = precision[:, *np.triu_indices(rank)]
        return cls(
            inverse=inverse,
            packed=np.concatenate([packed, draws.noise[:, None] ** -2], axis=1),
            log_density=design.log_constant + halves - (number - rank) * np.log(draws.noise),
        )

    @classmethod
    def without_curves(cls, design: Design, noise: Floats) -> Self:
        """Return those of values that only scatter: nothing is in the span of features, the rank is 0."""
        return cls(
            inverse=np.empty((len(noise), 0, 0)),
            packed=noise[:, None] ** -2,
            log_density=design.log_constant - len(design.points) * np.log(noise),
        )

    @classmethod
    def parts(cls, design: Design, draws: Draws) -> Iterator[Self]:
        """Factorise so many at once as there is place for."""
        step = max(1, _TOGETHER // len(design.projection) ** 2)
        for begin in range(0, len(draws.noise), step):
            part = slice(begin, begin + step)
            yield cls.of(design, Draws(draws.sizes[part], draws.noise[part]))


def inverse_root(matrices: Floats) -> Floats:
    """Return the inverse Cholesky factors of many small matrices, shape (..., n, n)."""
    lower = np.linalg.cholesky(matrices)
    result = np.zeros_like(lower)
    for k in range(lower.shape[-1]):
        result[..., k, k] = 1.0
        result[..., k, :k] = -np.einsum("...j,...ji->...i", lower[..., k, :k], result[..., :k, :k])
        result[..., k, :] /= lower[..., k, k, None]
    return np.asarray(result, np.float64)


def solved_lower(lower: Floats, values: Floats) -> Floats:
    """Return the solutions of many small lower triangular systems, (..., n, n), for the same values (n,)."""
    result = np.empty(lower.shape[:-1])
    for k, value in enumerate(values):
        known = np.einsum("...j,...j->...", lower[..., k, :k], result[..., :k])
        result[..., k] = (value - known) / lower[..., k, k]
    return result


def _projected(features: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """Return weighted features of the points, projected onto what they span, and that projection."""
    left, size, right = decomposed(features * np.sqrt(precision)[:, None])
    rank = max(1, int(np.count_nonzero(size > _RANK * size[0])))
    return size[:rank, None] * right[:rank], np.ascontiguousarray(left[:, :rank].T)  # as it is when pickled


@dataclass(frozen=True, slots=True)
class Process:
    """The process at measured points, with many sizes of its components."""

    design: Design
    draws: Draws
    _gains: dict[int, Floats] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, design: Design, draws: Sequence[Draws]) -> Process:
        """Put draws of several kinds one after the other."""
        sizes = np.concatenate([item.sizes for item in draws])
        return cls(design, Draws(sizes, np.concatenate([item.noise for item in draws])))

    def gains(self, draws: Integers) -> list[Floats]:
        """Return `Design.gains` of each of some draws, shape (features, rank); computed once."""
        missing = np.array([draw for draw in draws.tolist() if draw not in self._gains], np.intp)
        step = max(1, _TOGETHER // self.design.basis.size)
        for begin in range(0, len(missing), step):
            some = missing[begin : begin + step]
            self._gains.update(zip(some.tolist(), self.design.gains(self.draws.rows(some)), strict=True))
        return [self._gains[draw] for draw in draws.tolist()]

    def __reduce__(self) -> tuple[type[Process], tuple[Design, Draws]]:
        """Leave out what was computed for predictions: it is more than all else of a model."""
        return type(self), (self.design, self.draws)

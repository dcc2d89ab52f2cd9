"""Curves that add up: the time is a sum of parts, of which each depends on some of the parameters only.

Curves of the logarithm continue a product. Measured programs are as often nearer to a sum, of computation
that grows with the problem and of communication that grows with the processes. With ``f_g`` the curve of a
part, 0 at the smallest measured values, where the time is ``exp(c)``,

    log t = c + h + log(sum of exp(q f_g) over the parts - their number + 1) / q.

With ``q = 1`` the time is a sum, with ``q -> 0`` it would be a product (an additive model on the scale of Box
and Cox, An analysis of transformations, 1964). ``h`` is the curve of a parameter that multiplies all parts.
Or a constant adds to the product of all parameters, ``a`` times as long at the smallest measured values:

    log t = c + log((exp(f) + a) / (1 + a)).

It is what a call, a message or a serial part takes however little there is to do: growth is slow at first,
and faster far out than any line through logarithms says.

Along a line of points, from the smallest values on, all of these are the same curve. They are linear in small
changes around the most probable curves (a Laplace approximation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.curves.design import Design
from orchestrator.models.curves.prior import Draws

# Scales on which parts add up.
_POWERS = 1.0, 0.5
# A constant beside a product of all parameters, relative to that at the smallest measured values.
_CONSTANTS = 1.0, 9.0
# Part of a parameter that multiplies all of them.
_MULTIPLIES = -1
# Steps towards the most probable curves, at most; how often one is halved, at most, until it leads to more
# probable ones; and the change of a logarithm that ends them.
_STEPS, _HALVINGS, _CLOSE = 20, 8, 1e-3
# What parts add up to is at least this share of the smallest: it would be negative where several fall far.
_LEAST = 0.1
_LARGEST = 300.0  # largest logarithm of a part


class Structure(NamedTuple):
    """How parts make the whole: the part of every parameter, and the power to which parts add up.

    ``constant`` is added to them, relative to the whole of the others at the smallest measured values.
    """

    parts: tuple[int, ...]
    power: float
    constant: float = 0.0

    def text(self, parameters: Sequence[str]) -> str:
        """Return what adds up, as ``p + n``, ``p * (n + m)`` or ``constant + p * n``."""
        multiply = [name for name, part in zip(parameters, self.parts, strict=True) if part == _MULTIPLIES]
        sums = [
            " * ".join(name for name, own in zip(parameters, self.parts, strict=True) if own == part)
            for part in sorted({part for part in self.parts if part != _MULTIPLIES})
        ]
        whole = " + ".join(["constant", *sums] if self.constant else sums)
        return " * ".join([*multiply, f"({whole})"]) if multiply else whole


def structures(parameters: int) -> list[Structure]:
    """Return those that are looked at for so many parameters.

    Every parameter is a part by itself; or one adds to a product of the others; or one multiplies the sum of
    the others; or a constant adds to the product of all.
    """
    if parameters == 0:
        return []
    found = [tuple(range(parameters))] if parameters > 1 else []
    if parameters > 2:
        for one in range(parameters):
            found.append(tuple(int(k == one) for k in range(parameters)))
            rest = iter(range(parameters))
            found.append(tuple(_MULTIPLIES if k == one else next(rest) for k in range(parameters)))
    sums = [Structure(parts, power) for parts in found for power in _POWERS]
    whole = (0,) * parameters
    return [*sums, *(Structure(whole, 1.0, constant) for constant in _CONSTANTS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive:
    """Curves of one call path that add up, linear in changes around the most probable ones."""

    structure: Structure  # how parts make the whole
    # Part of every feature; `_MULTIPLIES` also for the constant and for products across parts, shape
    # (features,).
    part: Integers
    reference: Floats  # features of the smallest measured values, shape (features,); 0 for the constant
    design: Design  # with slopes by coefficients instead of features of the measured points
    values: Floats  # logarithms of the measured values around their mean, if all were linear, shape (points,)
    measured: Floats  # the same as they are, shape (points,)
    centre: float  # that mean

    @classmethod
    def of(cls, design: Design, structure: Structure, log_value: Floats, sizes: Floats, noise: float) -> Self:
        """Find the most probable curves, by Gauss and Newton.

        Parameters
        ----------
        design
            Points and features.
        structure
            How parts make the whole.
        log_value
            Logarithm of the location of the values, shape (points,).
        sizes, noise
            Of curves, as in `Draws`.
        """
        part = design.features.by_part(structure.parts, _MULTIPLIES)
        reference = design.features(design.points.min(axis=0, keepdims=True))[0]
        reference[0] = 0.0
        phi = design.features(design.points) - reference
        variance = sizes[design.features.component] ** 2
        scatter = noise**2 / design.precision
        centre = float(log_value.mean())
        centred = log_value - centre
        coefficients = np.zeros(len(part))
        value, slopes, _ = _whole(phi, part, structure, coefficients)
        best = float(((centred - value) ** 2 / scatter).sum())
        for _ in range(_STEPS):
            linear = centred - value + slopes @ coefficients
            step = _most_probable(slopes, linear, variance, scatter) - coefficients
            for _ in range(_HALVINGS):
                there, its_slopes, is_positive = _whole(phi, part, structure, coefficients + step)
                misfit = ((centred - there) ** 2 / scatter).sum()
                cost = float(misfit + ((coefficients + step) ** 2 / variance).sum())
                if is_positive and cost < best:
                    break
                step /= 2
            else:
                break
            change = np.abs(there - value).max()
            value, slopes, coefficients, best = there, its_slopes, coefficients + step, cost
            if change < _CLOSE:
                break
        return cls(
            structure=structure,
            part=part,
            reference=reference,
            design=design.with_slopes(slopes),
            values=centred - value + slopes @ coefficients,
            measured=centred,
            centre=centre,
        )

    def log_exact(self, draws: Draws) -> Floats:
        """Return how much more probable draws are than if all were linear, natural logarithm, (draws,).

        At the mean coefficients of each: far from those that all is linear around, a draw may follow the
        values only if it is.
        """
        gains = self.design.gains(draws)
        weighted, projected = self.design.weighted(self.values)
        left = weighted - (gains @ projected) @ self.design.basis.T @ self.design.projection
        mean, _ = self.mean(self.design.features(self.design.points), gains)
        exact, _ = self.design.weighted(self.measured + self.centre - mean)
        result: Floats = ((left**2).sum(axis=1) - (exact**2).sum(axis=1)) / (2 * draws.noise**2)
        return result

    def moments(self, phi: Floats, draws: Draws) -> tuple[Floats, Floats]:
        """Return mean logarithms (draws, n), and factors of their covariance (draws, features + rank, n)."""
        gains = self.design.gains(draws)
        mean, slopes = self.mean(phi, gains)
        return mean, self.design.factor(slopes, gains, draws)

    def mean(self, phi: Floats, gains: Floats) -> tuple[Floats, Floats]:
        """Return mean logarithms (draws, n) and their slopes (draws, n, features), at features (n, features).

        ``gains`` are those of the design, shape (draws, features, rank).
        """
        coefficients = gains @ self.design.weighted(self.values)[1]
        value, slopes, _ = _whole(phi - self.reference, self.part, self.structure, coefficients)
        return self.centre + value, slopes


def _most_probable(slopes: Floats, values: Floats, variance: Floats, scatter: Floats) -> Floats:
    """Return coefficients with these variances beforehand, for values (n,) that scatter with those (n,)."""
    scaled = slopes * variance
    if len(values) <= len(variance):
        covariance = scaled @ slopes.T
        covariance[np.diag_indices_from(covariance)] += scatter
        return np.asarray(scaled.T @ np.linalg.solve(covariance, values), np.float64)
    weighted = scaled / scatter[:, None]
    precision = weighted.T @ slopes
    precision[np.diag_indices_from(precision)] += 1.0
    return np.asarray(np.linalg.solve(precision, weighted.T @ values), np.float64)


def _whole(
    phi: Floats, part: Integers, structure: Structure, coefficients: Floats
) -> tuple[Floats, Floats, bool]:
    """Return what parts make: its logarithm (..., n), slopes (..., n, features), and whether it is positive.

    For features of shape (n, features) and coefficients (..., features).
    """
    number, power, constant = int(part.max()) + 1, structure.power, structure.constant
    members = part == np.arange(number)[:, None]
    curves = np.array([coefficients[..., own] @ phi[:, own].T for own in members])
    each = np.exp(np.clip(power * curves, -_LARGEST, _LARGEST))
    total = each.sum(axis=0) - (number - 1) + constant
    least = _LEAST * each.min(axis=0)
    is_positive = bool((total > least).all())
    total = np.maximum(total, least)
    multiplies = part == _MULTIPLIES
    shares = np.moveaxis(each / total, 0, -1)
    slopes = phi * np.where(multiplies, 1.0, shares[..., part])
    value: Floats = (
        np.log(total / (1 + constant)) / power + coefficients[..., multiplies] @ phi[:, multiplies].T
    )
    return value, slopes, is_positive

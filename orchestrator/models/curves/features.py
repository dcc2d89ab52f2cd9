"""Functions of the parameters whose random sums are the Gaussian process: lines, bends, walks, and a start.

Everything happens on logarithms, of the parameters and of the time, where growth is a slope. A random walk is
a sum of ramps between neighbouring measured values (its increments); summed once more, a smooth path whose
slope walks. Beyond the largest value both go on walking, so that doubt grows with the distance. The smallest
value may be a case of its own, as one process is, which has nobody to communicate with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from orchestrator.models.base import Floats, Integers

# Knots within the measured range, at most: more values than that are thinned.
_INSIDE = 16
# Doublings of a parameter beyond its measured values for which walks go on, upwards and downwards.
_ABOVE, _BELOW = 8, 2
# Measured values from which on the smallest one may be a case of its own: three others must show the growth.
_LEAST_FOR_START = 4
_DOUBLING = float(np.log(2.0))

# Components per parameter; one more is shared by all pairs of parameters.
KINDS = ("slope", "bend", "smooth walk", "walk", "start")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One parameter: how its values become coordinates, and where its walks have knots.

    ``scale`` is 0 where all values are positive and the coordinate is the logarithm; else the smallest
    positive value, near which the coordinate, an inverse hyperbolic sine, becomes linear. ``middle`` and
    ``square`` are the mean of the measured coordinates and of their squares around it. ``lowest`` is the
    smallest coordinate, and ``has_start`` whether enough others were measured for it to be a case of its own.
    """

    scale: float
    middle: float
    square: float
    knots: Floats
    lowest: float
    has_start: bool

    @classmethod
    def of(cls, values: Floats) -> Axis:
        """Choose coordinates and knots for the measured values of a parameter, shape (points,)."""
        positive = np.abs(values[values != 0])
        scale = 0.0 if (values > 0).all() else float(positive.min()) if len(positive) else 1.0
        u = _coordinate(values, scale)
        inside = np.unique(u)
        if len(inside) > _INSIDE:
            inside = np.unique(np.quantile(inside, np.linspace(0, 1, _INSIDE)))
        above = inside[-1] + _DOUBLING * np.arange(1, _ABOVE + 1)
        below = inside[0] - _DOUBLING * np.arange(_BELOW, 0, -1)
        middle = float(u.mean())
        return cls(
            scale=scale,
            middle=middle,
            square=float(((u - middle) ** 2).mean()),
            knots=np.concatenate([below, inside, above]),
            lowest=float(inside[0]),
            has_start=len(inside) >= _LEAST_FOR_START,
        )

    def centred(self, values: Floats) -> Floats:
        """Return coordinates relative to the middle of the measured ones."""
        return _coordinate(values, self.scale) - self.middle

    def features(self, values: Floats) -> tuple[Floats, ...]:
        """Return the features of every kind in `KINDS`, each of shape (n, features of the kind)."""
        u = _coordinate(values, self.scale)
        c = u - self.middle
        left, width = self.knots[:-1], np.diff(self.knots)
        ramp = np.clip(u[:, None] - left, 0.0, width)
        walk = ramp / np.sqrt(width)
        # The integral of a ramp, from the smallest measured value on: a parabola, then a line.
        started = left >= self.lowest - 1e-12
        far = np.maximum(u[:, None] - left[started], 0.0)
        short = np.minimum(far, width[started])
        smooth = (short**2 / 2 + (far - short) * width[started]) / np.sqrt(width[started])
        start = np.where(self.has_start & (u <= self.lowest + 1e-12), 1.0, 0.0)
        return c[:, None], (c**2 - self.square)[:, None], smooth, walk, start[:, None]


@dataclass(frozen=True, slots=True)
class Features:
    """All features of a set of measured points."""

    axes: tuple[Axis, ...]  # one per parameter
    # Of every feature: which scale it has. 0 is the constant; ``1 + K l + k`` is kind k of K of parameter l;
    # the last one is shared by the products of two parameters. Shape (features,).
    component: Integers

    @classmethod
    def of(cls, points: Floats) -> Features:
        """Choose features for measured points, shape (points, parameters)."""
        axes = tuple(Axis.of(points[:, k]) for k in range(points.shape[1]))
        sizes = [part.shape[1] for axis in axes for part in axis.features(np.ones(1))]
        pairs = len(axes) * (len(axes) - 1) // 2
        index = np.repeat(np.arange(len(sizes) + 2), [1, *sizes, pairs])
        return cls(axes, index.astype(np.intp))

    def by_part(self, parts: Sequence[int], otherwise: int) -> Integers:
        """Return the part that every feature belongs to, shape (features,).

        Parameters
        ----------
        parts
            That of every parameter.
        otherwise
            Of the constant, and of products of parameters of two parts.
        """
        kinds = np.repeat(parts, len(KINDS))
        pairs = [a if a == b else otherwise for a, b in combinations(parts, 2)]
        of_component = np.concatenate([[otherwise], kinds])
        singles = self.component[: len(self.component) - len(pairs)]
        return np.concatenate([of_component[singles], pairs]).astype(np.intp)

    def __call__(self, points: Floats) -> Floats:
        """Evaluate at coordinates (n, parameters): shape (n, features)."""
        columns = [np.ones((len(points), 1))]
        for k, axis in enumerate(self.axes):
            columns += axis.features(points[:, k])
        centred = [axis.centred(points[:, k]) for k, axis in enumerate(self.axes)]
        columns += [(a * b)[:, None] for a, b in combinations(centred, 2)]
        result: Floats = np.concatenate(columns, axis=1)
        return result


def _coordinate(values: Floats, scale: float) -> Floats:
    if scale:
        return np.asarray(np.arcsinh(values / scale))
    return np.asarray(np.log(np.maximum(values, 1e-300)))

"""Grids of points, and formulas whose most probable coefficients are given, for tests of curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from orchestrator.models.base import Floats, Integers


def grid(*values: Sequence[float]) -> Floats:
    """Return all combinations of values of parameters, shape (points, parameters)."""
    return np.array(list(product(*values)), dtype=float)


POINTS = grid((4, 8, 16, 32, 64), (10, 20, 30, 40, 50))


@dataclass(frozen=True)
class Known:
    """Given formulas, each with one coefficient per term."""

    terms: tuple[tuple[Callable[[Floats], Floats], ...], ...]

    @property
    def factors(self) -> Integers:
        return np.full(len(self.terms), 2)

    @property
    def weights(self) -> Floats:
        return np.full(len(self.terms), 1 / len(self.terms))

    def log_prior(self, points: Floats) -> Floats:
        return np.zeros(len(self.terms))

    @property
    def learned(self) -> Floats:
        return np.zeros(len(self.terms))

    @property
    def coefficients(self) -> Floats:
        return np.ones((len(self.terms), len(self.terms[0])))

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        each = np.array([[term(x) for term in formula] for formula in self.terms])
        value = each.sum(axis=1)
        return np.log(value), each / value[:, None]

    def rows(self, index: Integers) -> Known:
        return Known(tuple(self.terms[k] for k in index))

    def followed_by(self, others: Sequence[Known]) -> Known:
        return Known((*self.terms, *(formula for item in others for formula in item.terms)))


RIGHT = (lambda x: np.full(len(x), 2.0), lambda x: 1e-2 * x[:, 0] ** 0.5 * x[:, 1])
WRONG = (lambda x: np.full(len(x), 2.0), lambda x: 1e-3 * x[:, 0] * x[:, 1])

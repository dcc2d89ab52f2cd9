"""A family for tests: the mean of the nearest samples, alone and on the trend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from orchestrator.models.base import Floats, Modeler
from orchestrator.models.regression.choice import Family
from orchestrator.models.regression.learner import Fitted, Learner
from orchestrator.models.regression.modeler import modeler_of
from orchestrator.models.regression.samples import Samples
from orchestrator.models.regression.trend import on_trend


@dataclass(frozen=True, eq=False)
class Neighbours:
    x: Floats
    y: Floats
    number: int

    @property
    def text(self) -> str:
        return f"mean of {self.number} neighbours"

    def at(self, x: Floats) -> Floats:
        known = np.isfinite(x).all(axis=1)
        _, index = cKDTree(self.x).query(
            np.nan_to_num(x), k=list(range(1, min(self.number, len(self.y)) + 1))
        )
        return np.where(known, self.y[index].mean(axis=1), np.nan)


def neighbours(number: int) -> Learner:
    def fit(samples: Samples, rng: np.random.Generator) -> Fitted:
        return Neighbours(samples.x, samples.y, number)

    return Learner(family="neighbours", name=f"{number} neighbours", fit=fit)


def candidates(samples: Samples) -> Sequence[Learner]:
    plain = [neighbours(number) for number in (1, 2, 4, 8)]
    return [*plain, *map(on_trend, plain)]


def modeler(*, combine: bool = True, doubts: bool = False) -> Modeler:
    return modeler_of(Family(inside=candidates, outside=lambda samples: (), combine=combine, doubts=doubts))

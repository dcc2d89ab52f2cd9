"""What benchmarks on drawn functions share: the points that are measured, and scores of predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from orchestrator.evaluation.strategies.synthetic import SERIES
from orchestrator.models.base import Prediction
from orchestrator.types import Parameter, Point

# What most functions are drawn of: two parameters, and the point one step beyond their values.
PARAMETERS = [parameter for parameter, _ in SERIES[:2]]
NAMES = tuple(parameter.name for parameter in PARAMETERS)
BEYOND = Point.of({parameter.name: value for parameter, value in SERIES[:2]})


def points(parameters: Sequence[Parameter], lines: bool) -> list[Point]:
    """Return the points of a grid, or of its lines: those that differ from the first in one parameter."""
    names = [parameter.name for parameter in parameters]
    grid = product(*(parameter.values for parameter in parameters))
    found = [Point.of(dict(zip(names, values, strict=True))) for values in grid]
    return [p for p in found if not lines or sum(p[s.name] != s.values[0] for s in parameters) <= 1]


class Score(NamedTuple):
    """How good a prediction is: log error, whether the 90 % interval holds, and the log width of that."""

    error: float
    holds: bool
    width: float

    @property
    def is_close(self) -> bool:
        """Whether the prediction is within 10 % of the truth."""
        return self.error < math.log(1.1)


def score(said: Prediction, truth: float, place: int = 0) -> Score:
    """Return how good a prediction is at one of its points."""
    value, low, high = (float(part[place]) for part in (said.value, said.low, said.high))
    with np.errstate(divide="ignore", invalid="ignore"):
        error, width = abs(np.log(np.divide(value, truth))), np.log(np.divide(high, low))
    return Score(float(error), low <= truth <= high, float(width))

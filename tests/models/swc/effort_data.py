"""Synthetic times with the effort that goes with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from orchestrator.types import Measurement, Measurements, Point

RANKS = (4, 8, 16, 32, 64)
SIZES = (10, 20, 30, 40, 50)
POINTS = [Point.of(p=p, n=n) for p, n in product(RANKS, SIZES)]
FAR = Point.of(p=256, n=100)
FORM = Callable[[float, float], float]


def exact(callpath: str, metric: str, form: FORM, runs: int = 2) -> Measurement:
    """The same count in every run."""
    return Measurement(
        callpath, metric, {q: (float(form(q.number("p"), q.number("n"))),) * runs for q in POINTS}
    )


def slowed(callpath: str, form: FORM, noise: float, seed: int = 0, repetitions: int = 1) -> Measurement:
    """Times that disturbances lengthen by up to ``noise``."""
    rng = np.random.default_rng(seed)
    return Measurement(
        callpath,
        "time",
        {
            q: tuple(
                float(form(q.number("p"), q.number("n"))) * (1 + noise * rng.random())
                for _ in range(repetitions)
            )
            for q in POINTS
        },
    )


def together(*items: Measurement, parameters: Sequence[str] = ("p", "n")) -> Measurements:
    return Measurements(tuple(parameters), items)

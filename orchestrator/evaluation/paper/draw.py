"""Functions, value series and noise of the paper's synthetic evaluation (Ritter et al., section IV-A).

Where the text leaves something open, or where the published evaluation (the repository extra-p/extrap-gpr)
does something else, this says so.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from orchestrator.evaluation.artificial_noise import mixed
from orchestrator.evaluation.strategies.bench import Bench
from orchestrator.evaluation.strategies.functions import Function
from orchestrator.evaluation.strategies.synthetic import SERIES as PUBLISHED_SERIES
from orchestrator.evaluation.strategies.synthetic import Series, bench_of, number_of_points
from orchestrator.models import LOGARITHMIC, POLYNOMIAL
from orchestrator.models.base import Floats
from orchestrator.types import Parameter, format_value

# Least share of every term at both ends of the grid, and largest coefficient, as in the published generator.
_LEAST_SHARE, _LARGEST = 0.01, 1000.0
# The state from which the published evaluation draws the noise of every function.
_STATE = 10


def _series(*values: tuple[tuple[int, ...], int]) -> Series:
    return tuple((Parameter(name, row), plus) for name, (row, plus) in zip("abcd", values, strict=True))


SERIES: Mapping[str, Series] = MappingProxyType(
    {
        "published": PUBLISHED_SERIES,
        "text": _series(
            ((32, 64, 128, 256, 512), 1024),
            ((2, 4, 6, 8, 10), 12),
            ((1000, 2000, 3000, 4000, 5000), 6000),
            ((10, 20, 30, 40, 50), 60),
        ),
        "cases": _series(
            ((125, 216, 343, 512, 729), 1000),
            ((75, 80, 85, 90, 95), 100),
            ((5000, 6000, 7000, 8000, 9000), 10000),
            ((32, 64, 96, 128, 160), 192),
        ),
    }
)
"""Parameters with their value at P₊: those of the published evaluation, the examples of section IV-A (the
fourth is ours), and some of the case studies (Table II). The first parameter is the number of processes."""


def draw(series: Series, rng: np.random.Generator) -> Function:
    """Draw a sum over all parameters or a product of all, with equal probability, and a constant.

    Coefficients are uniform up to 1000, exponents those of the normal form. Every term has 1 % of the time at
    both ends of the grid, as in the published generator; of products that asks for 1 % of slope instead.
    """
    ends = [[float(parameter.values[place]) for parameter, _ in series] for place in (0, -1)]
    while True:
        additive = rng.random() < 0.5
        constant, *coefficients = rng.uniform(0.0, _LARGEST, 1 + len(series))
        exponents = [_exponents(rng) for _ in series]
        shares = [_shares(constant, coefficients, exponents, end, additive) for end in ends]
        if np.min(shares) >= _LEAST_SHARE:
            break
    blocks = [
        f"{coefficient:.3f}*{parameter.name}**{format_value(i)}*log2({parameter.name})**{format_value(j)}"
        for coefficient, (parameter, _), (i, j) in zip(coefficients, series, exponents, strict=True)
    ]
    return Function(f"{constant:.3f}+{('+' if additive else '*').join(blocks)}")


def _exponents(rng: np.random.Generator) -> tuple[float, float]:
    while True:
        i = POLYNOMIAL[int(rng.integers(len(POLYNOMIAL)))]
        j = LOGARITHMIC[int(rng.integers(len(LOGARITHMIC)))]
        if i or j:
            return i, j


def _shares(
    constant: float,
    coefficients: Sequence[float],
    exponents: Sequence[tuple[float, float]],
    point: Sequence[float],
    additive: bool,
) -> Floats:
    """Return the share of every term in the time at a point."""
    blocks = np.array(
        [c * x**i * math.log2(x) ** j for c, x, (i, j) in zip(coefficients, point, exponents, strict=True)]
    )
    terms = blocks if additive else np.array([blocks.prod()])
    return np.asarray(terms / (constant + terms.sum()), np.float64)


def bench(
    function: Function, series: Series, percent: float, repetitions: int, rng: np.random.Generator | None
) -> Bench:
    """Return noisy runs at every point of the grid, and the truth at P₊.

    Parameters
    ----------
    function, series
        What is measured, and where.
    percent
        Noise level n.
    repetitions
        Runs per point.
    rng
        For noise that is independent between runs and functions; None for the noise of the published
        evaluation, see `compounding`.
    """
    shape = number_of_points(series), repetitions
    factors = compounding(percent, shape) if rng is None else mixed(percent, shape, rng)
    return bench_of(function, series, factors)


def compounding(percent: float, shape: tuple[int, int]) -> Floats:
    """Return the noise of the published evaluation as factors, shape (points, repetitions).

    Every run deviates from the one before it at the same point by up to ``percent / 2``, up or down, so that
    deviations add up. All functions have the same factors, because the generator begins in the same state.
    """
    draws = random.Random(_STATE)
    factors = np.empty(shape)
    for point in range(shape[0]):
        factor = 1.0
        for repetition in range(shape[1]):
            sign = -1 if draws.randint(1, 2) == 1 else 1
            factor *= 1 + sign * draws.uniform(0, percent / 2) / 100
            factors[point, repetition] = factor
    return factors

"""Restricted cubic splines: cubic between knots, straight beyond the outer ones (section 3.2.2).

Knots are at fixed quantiles, and columns are those of Harrell (Regression Modeling Strategies, 2001, section
2.4.4 and table 2.3), whose packages the paper uses.
"""

from __future__ import annotations

import numpy as np

from orchestrator.models.base import Floats

# Table 2.3.
_QUANTILES = {
    3: (0.1, 0.5, 0.9),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
    6: (0.05, 0.23, 0.41, 0.59, 0.77, 0.95),
    7: (0.025, 0.1833, 0.3417, 0.5, 0.6583, 0.8167, 0.975),
}
MOST_KNOTS = max(_QUANTILES)
"""Knots that a predictor may have."""
# With fewer samples the outer knots are the fifth smallest and the fifth largest value (Stone and Koo 1985).
_FEW, _FIFTH = 100, 5


def knots(values: Floats, number: int) -> tuple[float, ...]:
    """Return at most ``number`` knots at fixed quantiles of values; none where a straight line must do.

    Parameters
    ----------
    values
        Coordinates of a predictor, shape (n,), with repetitions.
    number
        3 to 7. Of few different values there are fewer: no more knots than values. Where quantiles coincide
        they are those of the different values.
    """
    different = np.unique(values)
    number = min(number, len(different))
    if number < min(_QUANTILES):
        return ()
    found = np.quantile(values, _QUANTILES[number])
    if len(values) < _FEW and len(values) >= 2 * _FIFTH + number:
        ordered = np.sort(values)
        found[0], found[-1] = ordered[_FIFTH - 1], ordered[-_FIFTH]
    if _too_near(found, different):
        # The values themselves are the finest that can be told apart.
        found = np.quantile(different, np.linspace(0, 1, number))
    return tuple(float(knot) for knot in found)


def columns(values: Floats, knots: tuple[float, ...]) -> Floats:
    """Return the columns of a predictor: itself, then those that bend, shape (n, max(1, knots - 1)).

    Columns that bend are divided by the squared distance of the outer knots: all have the unit of the values.
    """
    return np.column_stack([values, *bends(values, knots)])


def bends(values: Floats, knots: tuple[float, ...]) -> list[Floats]:
    """Return the columns that bend: zero below the first knot, straight beyond the last."""
    return [
        np.asarray(sum(factor * np.maximum(values - knot, 0) ** 3 for knot, factor in cubes), np.float64)
        for cubes in cubes_of(knots)
    ]


def cubes_of(knots: tuple[float, ...]) -> list[list[tuple[float, float]]]:
    """Return for every column that bends its cubes: knots with factors of ``max(x - knot, 0)**3``."""
    if not knots:
        return []
    last, before, scale = knots[-1], knots[-2], (knots[-1] - knots[0]) ** 2
    return [
        [
            (knot, 1 / scale),
            (before, -(last - knot) / (last - before) / scale),
            (last, (before - knot) / (last - before) / scale),
        ]
        for knot in knots[:-2]
    ]


def _too_near(found: Floats, different: Floats) -> bool:
    """Return whether two knots have no measured value between or at them that tells their columns apart."""
    places = np.searchsorted(different, found)
    return bool((np.diff(places) < 1).any() or (np.diff(found) <= 1e-9 * np.ptp(different)).any())

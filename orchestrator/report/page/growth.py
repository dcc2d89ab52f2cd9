"""How models grow with each parameter, in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from orchestrator.models.base import Floats, Model
from orchestrator.models.exponential import LevelModel
from orchestrator.models.symbolic import falls, power_text, significant, terms_of
from orchestrator.models.symbolic import growth as growth_of
from orchestrator.report.page.grid import Grid

_CONSTANT = "constant"
# Slope of the logarithm from which values are said to change although the formula does not. By hand.
_CHANGES = 0.1


def described(model: Model, grid: Grid, values: Floats) -> list[dict[str, Any]]:
    """Return how a model grows in every numeric parameter: by its terms, else by its values over the grid.

    Values are the median of all that is possible, or none at all for a model with terms. Where they change
    with a parameter that the most probable formula does not contain, they say how.
    """
    terms = terms_of(model)
    slopes: dict[str, float | None] = {}
    levels: dict[str, float | None] = {}
    if values.size:
        table = values.reshape(grid.shape)
        slopes = {axis.name: _slope(grid, table, k) for k, axis in enumerate(grid.axes)}
        acting = model.levels if isinstance(model, LevelModel) else ()
        levels = {
            axis.name: _slope(grid, table, k, np.exp2)
            for k, axis in enumerate(grid.axes)
            if axis.name in acting
        }
    if not terms:
        return [
            _by_slope(name, slope, levels.get(name))
            for name, slope in slopes.items()
            if slope is not None and name in model.parameters
        ]
    # A constant of a thousandth of the value says nothing about how a call path scales here.
    leading = significant(terms, _ends(grid, model.parameters))
    growths = []
    for name in model.parameters:
        n, log = growth_of(leading, name)
        slope = slopes.get(name)
        if (n, log) != (0, 0):
            text = _power(name, n, log)
        elif falls(leading, name):
            text = f"{name} (falls to a constant)"
        elif slope is not None and abs(slope) >= _CHANGES:
            growths.append(_by_slope(name, slope))
            continue
        else:
            text = _CONSTANT
        growths.append({"parameter": name, "text": text, "exponent": n, "log": log, "kind": "terms"})
    return growths


def _by_slope(name: str, slope: float, level: float | None = None) -> dict[str, Any]:
    """Describe a slope; ``level``: that in 2 to the power of a parameter that acts exponentially."""
    return {
        "parameter": name,
        "text": f"2**({level:g} * {name})" if level else _power(name, slope, 0.0),
        "exponent": slope,
        "log": 0.0,
        "kind": "slope",
    }


def _ends(grid: Grid, names: Sequence[str]) -> dict[str, Floats]:
    """Return the default point, and those at both ends of every axis, as a table of numeric parameters."""
    default = grid.default.as_dict()
    numeric = [axis for axis in grid.axes if not axis.is_categorical and axis.stops]
    points = [default, *({**default, axis.name: axis.stops[k]} for axis in numeric for k in (0, -1))]
    kept = {axis.name for axis in numeric} & {*names}
    return {name: np.array([float(point[name]) for point in points]) for name in kept}


def _power(name: str, exponent: float, log: float) -> str:
    factors = (power_text(name, exponent), power_text(f"log2({name})", log))
    return " * ".join(filter(None, factors)) or _CONSTANT


def _slope(grid: Grid, table: Floats, k: int, size: Callable[[Floats], Floats] = np.asarray) -> float | None:
    """Return the slope of the logarithm of predictions between the default stop and the one before it.

    It is that in the logarithm of what a value of the parameter is the ``size`` of.
    """
    axis = grid.axes[k]
    if axis.is_categorical or len(axis.stops) < 2:
        return None
    index = [item.stops.index(item.default) for item in grid.axes]
    here = index[k] or 1
    x = size(np.array([float(axis.stops[here - 1]), float(axis.stops[here])]))
    y = [float(table[(*index[:k], at, *index[k + 1 :])]) for at in (here - 1, here)]
    if min(x) <= 0 or not min(y) > 0:
        return None
    slope = float(np.log(y[1] / y[0]) / np.log(x[1] / x[0]))
    return round(slope, 2) if np.isfinite(slope) else None

"""Which curves a call path may have: such that multiply each other, or add up in one of several ways."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.curves.additive import Additive, structures
from orchestrator.models.curves.design import Process
from orchestrator.models.curves.evidence import normalised, of_values
from orchestrator.models.curves.explanations import standing_for_all
from orchestrator.models.curves.prior import Draws
from orchestrator.models.curves.scatter import Scatter, log_plausible

# Probability, before anything was measured, that curves add up: measured broadcasts are nearer to sums of
# parameters, a neural simulation to products. How many draws they are weighed with, and how many stand for
# all.
_ADDITIVE, _ADDITIVE_DRAWS, _ADDITIVE_KEPT = 0.5, 512, 64
# So many draws are looked at first; and natural logarithm of how much less probable than any other
# explanation they may be to be weighed with all.
_FIRST, _HOPELESS = 32, 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """One kind of curves of one call path: which, probabilities of its draws (draws,), and log probability.

    ``additive`` is None where they multiply each other. The last is up to a constant per call path.
    """

    additive: Additive | None
    given: Floats
    log_mass: float


def every(
    process: Process, multiplied: Curves, log_value: Floats, scatter: Scatter, best: float
) -> list[Curves]:
    """Return curves that multiply each other, and those that add up where these are not hopeless.

    Parameters
    ----------
    process
        Its first draws are those of curves alone.
    multiplied
        Curves that multiply each other, as if there were no others.
    log_value
        Logarithm of the location of the values, shape (points,).
    scatter
        What repetitions say.
    best
        Log probability of the best other explanation.
    """
    possible = structures(process.design.points.shape[1])
    if not possible:
        return [multiplied]
    draws = process.draws.first(_ADDITIVE_DRAWS)
    few = draws.first(_FIRST)
    likely = int(multiplied.given[:_ADDITIVE_DRAWS].argmax())
    result = [replace(multiplied, log_mass=multiplied.log_mass + np.log1p(-_ADDITIVE))]
    for structure in possible:
        found = Additive.of(
            process.design, structure, log_value, draws.sizes[likely], float(draws.noise[likely])
        )
        if _added(found, few, scatter).log_mass > best - _HOPELESS:
            item = _added(found, draws, scatter)
            result.append(replace(item, log_mass=item.log_mass + np.log(_ADDITIVE / len(possible))))
    return _as_probable(result)


def _as_probable(curves: list[Curves]) -> list[Curves]:
    """Return curves that are together as probable as without those beside a constant.

    A constant and growth is what formulas say best: they are not to be doubted for curves that imitate them.
    """
    others = [
        item.log_mass for item in curves if item.additive is None or not item.additive.structure.constant
    ]
    excess = np.logaddexp.reduce([item.log_mass for item in curves]) - np.logaddexp.reduce(others)
    return [replace(item, log_mass=item.log_mass - float(excess)) for item in curves]


def _added(additive: Additive, draws: Draws, scatter: Scatter) -> Curves:
    """Weigh curves that add up; a few draws stand for all."""
    plausible = log_plausible(draws.noise, additive.design, [scatter])[:, 0]
    odds, log_mass = normalised(of_values(additive.design, draws, additive.values) + plausible)
    kept, weights = standing_for_all(odds, _ADDITIVE_KEPT)
    weights, log_exact = normalised(np.log(weights) + additive.log_exact(draws.rows(kept)))
    given = np.zeros(len(odds))
    given[kept] = weights
    return Curves(additive=additive, given=given, log_mass=float(log_mass + log_exact) - np.log(len(odds)))

"""Which call paths a formula alone explains: found for many at once, so that only the others take time.

And how much more probable formulas are than curves for each call path alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.curves.design import Design, Precisions
from orchestrator.models.curves.evidence import Columns, Formulas, normalised, of_curves, of_formulas
from orchestrator.models.curves.explanations import LIKELY
from orchestrator.models.curves.prior import Sizes, alone, beside, exact
from orchestrator.models.curves.scatter import Scatter, log_plausible

# So many draws are looked at, of curves alone and beside formulas; and all of the scatter around exact ones,
# which costs little.
_ALONE, _AROUND = 128, 32
# Natural logarithm of how much more probable a formula must be than curves: 150 times, and 1000 times where
# nothing was repeated, because noise is a guess there.
_CERTAIN, _CERTAIN_ONCE = 5.0, 7.0
# The same for how much more probable curves beside it must be to be looked at.
_BESIDE = 2.0


@dataclass(frozen=True, slots=True)
class Screening:
    """What a look at all call paths says of formulas."""

    # Which call paths their most probable formula explains better than curves do, alone or beside it. Not
    # where points scatter around it by far more than their repetitions, or than a guess where there are none:
    # what the formula leaves unexplained counts in an explanation, but not in the formula alone.
    suffices: NDArray[np.bool_]
    # Natural logarithm of how much more probable all of its formulas are than curves, for each call path.
    log_odds: Floats


def screened(
    design: Design,
    log_value: Floats,
    scatter: Sequence[Scatter],
    first: Formulas,
    sizes: Sizes,
) -> Screening:
    """Look at all call paths that were measured at the points of a design.

    Parameters
    ----------
    design
        Points and features.
    log_value
        Logarithm of the location of the values, shape (call paths, points).
    scatter
        Of every call path.
    first
        The most probable formula of every call path.
    sizes
        Of curves alone.
    """
    points, parameters = design.points.shape
    curves, around = alone(parameters, sizes).first(_ALONE), beside(parameters).first(_AROUND)
    sharp = exact(parameters, points)
    columns = Columns.of(design, first, log_value)
    without = of_curves(design, curves, log_value)
    smooth = of_formulas(Precisions.of(design, around), columns)
    strict = of_formulas(Precisions.without_curves(design, sharp.noise), columns)
    found = [
        normalised(evidence + log_plausible(bank.noise, design, scatter))
        for evidence, bank in ((without, curves), (smooth, around), (strict, sharp))
    ]
    curves_alone, with_curves, by_itself = (log_sum - np.log(len(odds)) for odds, log_sum in found)
    enough = np.where([item.is_guess for item in scatter], _CERTAIN_ONCE, _CERTAIN)
    certain = by_itself + columns.log_price > curves_alone + enough
    exceeded = np.array([item.is_exceeded(sharp.noise, design.typical) for item in scatter]).T
    misfits = (found[-1][0] * exceeded).sum(axis=0) >= LIKELY
    formulas = np.logaddexp(by_itself, with_curves) - np.log(2 * first.weights) + columns.log_price
    suffices = certain & (by_itself > with_curves - _BESIDE) & ~misfits
    return Screening(suffices, formulas - curves_alone)

"""How real programs vary: a prior over the sizes of the components of the Gaussian process.

The process explains measurements alone, or what a formula leaves unexplained; a formula may also be exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import ceil, log2
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from orchestrator.models.base import Floats, Integers, one_of
from orchestrator.models.curves.features import KINDS
from orchestrator.models.curves.sizes import ALL, WITHOUT

_CONSTANT = 10.0  # standard deviation of the mean logarithm: nothing is known of it
_SCALED = 0.05  # the same beside a formula, which has coefficients of its own
# Decimal logarithm of the scatter around an exact formula: from rounding to nonsense.
_SCATTER = (-7.5, 0.0)
# Up to so many points the draws of that scatter are close enough to each other. How probable values are falls
# to either side of the right scatter the faster the more points there are.
_COARSE = 25
# Heavy tails: a share of programs leaves its curves by more than the process says, so many times as much, but
# at most by so much more in the logarithm; and upwards rather than downwards, by so much of it per doubling.
# What happens beyond the measurements need not be like anything in them, and what begins there costs more
# often than it saves. Chosen by hand in coarse steps.
TAIL_SHARE, _TAIL_FACTOR, _TAIL_MOST, TAIL_RISE = 0.25, 3.0, 0.4, 0.15
# Draws of the sizes of curves alone, beside formulas, and of exact values. More change the errors in measured
# corners by no more than other seeds do (docs/experiments.md).
_ALONE_DRAWS, _BESIDE_DRAWS, _EXACT_DRAWS = 2048, 128, 48
_MOST_PERMUTED = 4  # parameters of which draws come in all orders

# Natural logarithm of how much less probable a formula is before anything was measured: so much, more for
# every factor in it, and for every point. A formula is chosen among thousands, and real programs are in the
# normal form only nearly: it must explain every point a little better than curves do, not only some of them.
# There are many more formulas of two parameters, and fewer points do not make them more probable. Two or
# three values of one parameter test none.
_FORMULA, _FACTOR, _POINT, _PARAMETER, _LEAST, _MOST = 3.0, 0.6, 0.6, 4.0, 5.5, 10.0


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws of the sizes of all components, equally probable."""

    # Standard deviation of every component, in the order of `features.Features.component`, shape (draws,
    # components).
    sizes: Floats
    noise: Floats  # relative scatter of the mean of all repetitions of a typical point, shape (draws,)

    def rows(self, chosen: Integers) -> Draws:
        """Return some of them."""
        return Draws(self.sizes[chosen], self.noise[chosen])

    def first(self, number: int) -> Draws:
        """Return so many of them: they are as evenly spread as all."""
        return Draws(self.sizes[:number], self.noise[:number])


class Sizes(NamedTuple):
    """Decimal logarithm of the typical standard deviation of every component, or how far it varies.

    By kind as in `features.KINDS`; of products of two parameters; and of the scatter of a mean of all
    repetitions of a point. Slopes are powers of the parameters; the others are per doubling or so.
    """

    slope: float
    bend: float
    smooth_walk: float
    walk: float
    start: float
    product: float
    noise: float

    def of_components(self, parameters: int) -> Floats:
        """Return those of all components of every parameter, of products, and of the scatter."""
        own, shared = self[: len(KINDS)], self[len(KINDS) :]
        return np.array([*own * parameters, *shared])


# Beside a formula: chosen by hand in coarse steps. Of curves alone they are learned from measured data
# (`learned`).
_BESIDE = Sizes(slope=-1.5, bend=-2.0, smooth_walk=-2.0, walk=-1.5, start=-3.0, product=-2.0, noise=-1.5)
# How far they vary between programs.
_SPREAD = Sizes(slope=0.4, bend=0.7, smooth_walk=0.7, walk=0.7, start=1.0, product=0.7, noise=0.7)


@cache
def learned(name: str = "all") -> Sizes:
    """Return the sizes that predict held-out far corners of measured data best.

    ``benchmarks/learn_sizes.py`` makes the table.

    Parameters
    ----------
    name
        ``all``, or ``without F``: learned without the data sets of family F, to be scored on them.

    Raises
    ------
    ModelError
        For another name.
    """
    differences = {"all": {}, **{f"without {family}": other for family, other in WITHOUT.items()}}
    one_of("sizes", name, differences)
    return Sizes(**{**ALL, **differences[name]})


@cache
def alone(parameters: int, sizes: Sizes) -> Draws:
    """Return draws of a process that explains the measurements alone: the same every time, evenly spread."""
    return _sobol(sizes, parameters, _ALONE_DRAWS, _CONSTANT)


@cache
def beside(parameters: int) -> Draws:
    """Return draws of a process that a formula is multiplied by."""
    return _sobol(_BESIDE, parameters, _BESIDE_DRAWS, _SCALED)


@cache
def exact(parameters: int, points: int) -> Draws:
    """Return scatters of so many points around a formula that nothing multiplies: all sizes are 0."""
    number = round(_EXACT_DRAWS * np.sqrt(max(points / _COARSE, 1.0)))
    sizes = np.zeros((number, 2 + len(KINDS) * parameters))
    return Draws(sizes, np.asarray(10 ** np.linspace(*_SCATTER, number), np.float64))


def in_tail(spread: Floats) -> Floats:
    """Return standard deviations of the logarithm for programs that leave their curves."""
    return spread + np.minimum((_TAIL_FACTOR - 1) * spread, _TAIL_MOST)


def log_price(factors: Integers, points: int, parameters: int, learned: Floats | float = 0.0) -> Floats:
    """Return the logarithm of how probable formulas with so many factors are, relative to curves.

    A share of each is ``learned`` from other campaigns, where it fitted: that is not chosen among thousands.
    """
    least = max(_PARAMETER * parameters, _LEAST)
    price = -min(max(_FORMULA + _POINT * points, least), _MOST) - _FACTOR * factors
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(np.log1p(-learned) + price, np.log(learned)), np.float64)


def _sobol(typical: Sizes, parameters: int, number: int, constant: float) -> Draws:
    """Return draws, at least so many; with every draw come those with the same sizes of other parameters.

    So it matters little in which order parameters are given.
    """
    from scipy.stats import qmc  # takes a second to import

    given = range(parameters)
    orders = np.array([*permutations(given)] if parameters <= _MOST_PERMUTED else [given], dtype=np.intp)
    different = 2 ** ceil(log2(number / len(orders)))  # the points of Sobol are even in powers of two
    centre, spread = (table.of_components(parameters) for table in (typical, _SPREAD))
    uniform = qmc.Sobol(len(centre), scramble=True, seed=1).random(different)
    sizes = 10 ** (centre + spread * ndtri(np.clip(uniform, 1e-6, 1 - 1e-6)))
    own, shared = np.split(sizes, [len(KINDS) * parameters], axis=1)
    own = own.reshape(different, parameters, len(KINDS))[:, orders]
    own = own.reshape(different * len(orders), len(KINDS) * parameters)
    shared = np.repeat(shared, len(orders), axis=0)
    return Draws(np.column_stack([np.full(len(own), constant), own, shared[:, 0]]), shared[:, 1])

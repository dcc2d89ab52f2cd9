"""Amdahl's law as an explanation: power laws whose speedup saturates at some number of processes.

``1 - p + p/N`` is ``(1 - p) (1 + N1/N)`` with ``N1 = p / (1 - p)``, the number of processes on which both
parts take as long. With powers of N as overhead (Alasandagutti et al., equations 2 and 5) a time is
``N**a (1 + N/N1)**h``, and for a given N1 its logarithm is linear in a and h: of the law alone a is -1 and h
is 1, and with a larger h the speedup falls in the end. N1 grows with the problem, as that of the law for
every problem (equation 9) does: not at all, or with a power of the sizes. All are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.types import format_value

# Numbers of processes N1 that are tried for a middle problem: so many, from the fewest measured processes to
# so many times the most.
_TRIED, _BEYOND = 8, 4.0
# By which power of the product of all sizes N1 grows: work over what is exchanged at most grows like that.
_POWERS = (0.0, 0.5, 1.0)
# Different numbers of processes, and points beyond the coefficients, at least.
_LEAST, _SPARE = 4, 2


@dataclass(frozen=True, slots=True)
class Saturation:
    """A factor ``(1 + N/N1)**h`` with ``N1 = scale * size**power``, size the product of the sizes."""

    counting: tuple[int, ...]  # columns of the points whose product is N
    sizes: tuple[int, ...]  # those of the sizes
    # scale, power: of N1.
    scale: float
    power: float

    @property
    def place(self) -> tuple[int, float]:
        """The same for all: they are much alike, and which one it is seldom shows."""
        return self.counting[0], np.inf

    @property
    def used(self) -> tuple[bool, bool]:
        """Which of the two last coefficients of a law it has."""
        return False, True

    def text(self, names: Sequence[str]) -> str:
        """Return the base of the power: ``(1 + p / (12 * n**0.5))``."""
        processes, size = (" * ".join(names[k] for k in columns) for columns in (self.counting, self.sizes))
        most = format_value(float(f"{self.scale:.3g}"))
        if self.power:
            base = f"({size})" if len(self.sizes) > 1 else size
            most = f"({most} * {base}" + (")" if self.power == 1 else f"**{self.power:g})")
        return f"(1 + {processes} / {most})"


def features(found: Sequence[Saturation], logs: Floats) -> Floats:
    """Return what the two last coefficients of laws are multiplied by, shape (laws, 2, n).

    Parameters
    ----------
    found
        Of one set of points: all have the same columns.
    logs
        Logarithms of points, shape (n, parameters).
    """
    counting, sizes = list(found[0].counting), list(found[0].sizes)
    scale = np.array([np.log(item.scale) for item in found])
    power = np.array([item.power for item in found])
    most = scale[:, None] + power[:, None] * logs[:, sizes].sum(axis=1)
    factors = np.logaddexp(0.0, logs[:, counting].sum(axis=1) - most)
    return np.stack([np.zeros_like(factors), factors], axis=1)


def saturations(points: Floats, counting: Sequence[int]) -> tuple[Saturation, ...]:
    """Return those to be tried.

    Parameters
    ----------
    points
        Coordinates, all positive, shape (points, parameters).
    counting
        Columns whose product is the number of processes.

    Returns
    -------
    Nothing where there are too few numbers of processes, or points.
    """
    if not counting:
        return ()
    processes = np.unique(points[:, list(counting)].prod(axis=1))
    if len(processes) < _LEAST or len(points) < points.shape[1] + 2 + _SPARE:
        return ()
    sizes = tuple(k for k in range(points.shape[1]) if k not in counting)
    size = np.log(points[:, list(sizes)]).sum(axis=1).mean()
    tried = np.geomspace(processes[0], _BEYOND * processes[-1], _TRIED)
    return tuple(
        Saturation(tuple(counting), sizes, float(at * np.exp(-power * size)), power)
        for at, power in product(tried, _POWERS if sizes else (0.0,))
    )

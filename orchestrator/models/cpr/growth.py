"""Further modes along combinations of parameters: products and quotients, such as the work or a tile's shape.

What happens where ``n / p`` or ``m * k`` crosses a threshold needs many products of functions of ``n`` and
``p``, but only one more function of their combination. Which combinations matter is found by growing: each is
tried as a further mode of the tensor, and the one that helps samples that were left out most stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import Entries, alternating, improved, row_begins
from orchestrator.models.cpr.fitting import at_samples, beginning
from orchestrator.models.cpr.modes import FEW_LEVELS, Mode, combined, node_modes
from orchestrator.models.cpr.penalty import Smoothness, diagonals
from orchestrator.models.regression.samples import Samples

Slopes = tuple[float, ...]
"""A combination of coordinates: what each axis is multiplied by."""

_MOST_SAMPLES = 4096  # more change little in what is chosen
# Most combinations, rank and nodes of each, share of the samples by which they are chosen, and penalties of
# the tensor and while combinations are compared. Chosen by hand; not derived.
_MOST_MODES = 6
_LEAST_GAIN = 0.01  # of the error of samples that were left out
_RANK, _NODES = 8, 32
_HELD_OUT = 0.25
_SMOOTHNESS = Smoothness(ridge=1e-3, slope=0.03)
_SCREENED = Smoothness(ridge=1e-5, slope=0.03)
_TRIED = 2  # so many of the best combinations are fitted in full before none is added


def combinations(samples: Samples) -> list[Slopes]:
    """Return products and quotients of two numeric parameters, and the product of all with many values."""
    numeric = [k for k, axis in enumerate(samples.axes) if not axis.is_categorical]
    axes = len(samples.axes)
    found = [
        _slopes(axes, {first: 1.0, second: sign})
        for first, second in itertools.combinations(numeric, 2)
        for sign in (1.0, -1.0)
    ]
    many = [k for k in numeric if len(np.unique(samples.x[:, k])) > FEW_LEVELS]
    if len(many) > 2:
        found.append(_slopes(axes, dict.fromkeys(many, 1.0)))
    return found


def chosen_combinations(samples: Samples, rng: np.random.Generator) -> tuple[Slopes, ...]:
    """Return the combinations along which a further mode helps.

    Parameters
    ----------
    samples
        Of variance about 1.
    rng
        Chooses samples and beginnings.
    """
    choices = combinations(samples)
    if len(samples) > _MOST_SAMPLES:
        samples = samples.rows(rng.choice(len(samples), _MOST_SAMPLES, replace=False))
    held = np.zeros(len(samples), bool)
    held[rng.permutation(len(samples))[: round(_HELD_OUT * len(samples))]] = True
    if held.sum() < len(samples.axes) or not choices:
        return ()
    grown = _begun(samples, held, rng)
    chosen: list[Slopes] = []
    left = {slopes: combined(samples, slopes, _NODES) for slopes in choices}
    while left and len(chosen) < _MOST_MODES:
        best = sorted(left, key=lambda slopes: _screened(grown.along(left[slopes]), samples))[:_TRIED]
        tried = ((slopes, _fitted(grown.along(left[slopes]), samples, sweeps=15)) for slopes in best)
        better = next(((s, g) for s, g in tried if g.error < (1 - _LEAST_GAIN) * grown.error), None)
        if better is None:
            break
        chosen.append(better[0])
        grown = better[1]
        del left[better[0]]
    return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Coordinates of some samples, and where they are along the modes."""

    x: Floats
    entries: Entries

    @classmethod
    def of(cls, modes: Sequence[Mode], samples: Samples) -> Self:
        return cls(x=samples.x, entries=at_samples(modes, samples.x, samples.y))

    def along(self, mode: Mode) -> Self:
        """Return the same samples with one more mode."""
        node, weight = mode.neighbours(self.x)
        nodes, weights = np.vstack([self.entries.node, node]), np.vstack([self.entries.weight, weight])
        return replace(self, entries=replace(self.entries, node=nodes, weight=weights))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grown:
    """Modes with their factors, samples to fit to and others, and the mean absolute error of the others."""

    modes: tuple[Mode, ...]
    table: Floats
    fitted: _Part
    held: _Part
    error: float = np.inf

    def along(self, mode: Mode) -> Self:
        """Return the same with one more mode, whose factor is constant."""
        rank = self.table.shape[1]
        table = np.vstack([self.table[:-1], np.ones((len(mode), rank)), np.zeros((1, rank))])
        modes, fitted, held = (*self.modes, mode), self.fitted.along(mode), self.held.along(mode)
        return replace(self, modes=modes, table=table, fitted=fitted, held=held)


def _begun(samples: Samples, held: NDArray[np.bool_], rng: np.random.Generator) -> _Grown:
    modes = node_modes(samples, _NODES)
    parts = [_Part.of(modes, samples.rows(np.flatnonzero(rows))) for rows in (~held, held)]
    table = beginning(modes, _RANK, rng)
    return _fitted(_Grown(modes=modes, table=table, fitted=parts[0], held=parts[1]), samples, sweeps=20)


def _screened(grown: _Grown, samples: Samples) -> float:
    """Return the error when only the factor of the last mode is fitted."""
    first = row_begins([len(each) for each in grown.modes])
    table, last = grown.table.copy(), len(grown.modes) - 1
    penalty = diagonals(grown.modes[last], _SCREENED, len(samples))
    table[first[last] : -1] = improved(grown.fitted.entries, first, table, last, penalty)
    return _error(grown, table)


def _fitted(grown: _Grown, samples: Samples, sweeps: int) -> _Grown:
    penalties = [diagonals(mode, _SMOOTHNESS, len(samples)) for mode in grown.modes]
    table = alternating(grown.fitted.entries, penalties, grown.table, sweeps=sweeps, tolerance=1e-3)
    return replace(grown, table=table, error=_error(grown, table))


def _error(grown: _Grown, table: Floats) -> float:
    unknown, first = grown.held.entries, row_begins([len(mode) for mode in grown.modes])
    return float(np.mean(np.abs(unknown.completed(first, table) - unknown.y)))


def _slopes(axes: int, some: dict[int, float]) -> Slopes:
    return tuple(some.get(k, 0.0) for k in range(axes))

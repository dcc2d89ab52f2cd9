"""Further modes along combinations of parameters: products and quotients, such as the work or a tile's shape.

What happens where ``n / p`` or ``m * k`` crosses a threshold needs many products of functions of ``n`` and
``p``, but only one more function of their combination. Which combinations matter is found by growing: each is
tried as a further mode of the tensor, and the one that helps samples that were left out most stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import Entries, alternating, completed, improved, row_begins
from orchestrator.models.cpr.fitting import at_samples, beginning
from orchestrator.models.cpr.modes import FEW_LEVELS, Mode, combined, node_modes
from orchestrator.models.cpr.penalty import Smoothness, diagonals
from orchestrator.models.regression.samples import Samples

Slopes = tuple[float, ...]
"""A combination of coordinates: what each axis is multiplied by."""

_MOST_SAMPLES = 4096  # more change little in what is chosen
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


def chosen_combinations(samples: Samples, rng: np.random.Generator, share: float = 1.0) -> tuple[Slopes, ...]:
    """Return the combinations along which a further mode helps.

    Parameters
    ----------
    samples
        Of variance about 1.
    rng
        Chooses samples and beginnings.
    share
        Of the combinations that are tried at all, at random: members of an average shall differ.
    """
    choices = combinations(samples)
    if share < 1:
        kept = rng.permutation(len(choices))[: max(1, round(share * len(choices)))]
        choices = [choices[k] for k in np.sort(kept)] if choices else []
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
        best = sorted(left, key=lambda slopes: _screened(samples, held, grown, left[slopes]))[:_TRIED]
        tried = ((slopes, _extended(samples, held, grown, left[slopes])) for slopes in best)
        better = next(((s, g) for s, g in tried if g.error < (1 - _LEAST_GAIN) * grown.error), None)
        if better is None:
            break
        chosen.append(better[0])
        grown = better[1]
        del left[better[0]]
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class _Grown:
    """Modes with their factors and the mean absolute error of the samples that were left out."""

    modes: tuple[Mode, ...]
    table: Floats
    error: float


def _begun(samples: Samples, held: NDArray[np.bool_], rng: np.random.Generator) -> _Grown:
    modes = node_modes(samples, _NODES)
    return _fitted(samples, held, modes, beginning(modes, _RANK, rng), sweeps=20)


def _extended(samples: Samples, held: NDArray[np.bool_], grown: _Grown, mode: Mode) -> _Grown:
    return _fitted(samples, held, (*grown.modes, mode), _with_ones(grown.table, mode), sweeps=15)


def _screened(samples: Samples, held: NDArray[np.bool_], grown: _Grown, mode: Mode) -> float:
    """Return the error when only the factor of the new mode is fitted."""
    modes = (*grown.modes, mode)
    first = row_begins([len(each) for each in modes])
    table = _with_ones(grown.table, mode)
    known = at_samples(modes, samples.x[~held], samples.y[~held])
    penalty = diagonals(mode, _SCREENED, len(samples))
    table[first[-1] : -1] = improved(known, first, table, len(modes) - 1, penalty)
    return _error(samples, held, modes, table)


def _fitted(
    samples: Samples, held: NDArray[np.bool_], modes: Sequence[Mode], table: Floats, sweeps: int
) -> _Grown:
    known = at_samples(modes, samples.x[~held], samples.y[~held])
    penalties = [diagonals(mode, _SMOOTHNESS, len(samples)) for mode in modes]
    table = alternating(known, penalties, table, sweeps=sweeps, tolerance=1e-3)
    return _Grown(tuple(modes), table, _error(samples, held, modes, table))


def _error(samples: Samples, held: NDArray[np.bool_], modes: Sequence[Mode], table: Floats) -> float:
    unknown: Entries = at_samples(modes, samples.x[held], samples.y[held])
    first = row_begins([len(mode) for mode in modes])
    return float(np.mean(np.abs(completed(unknown.node, unknown.weight, first, table) - unknown.y)))


def _with_ones(table: Floats, mode: Mode) -> Floats:
    """Return the table with a constant factor for one more mode."""
    rank = table.shape[1]
    return np.vstack([table[:-1], np.ones((len(mode), rank)), np.zeros((1, rank))])


def _slopes(axes: int, some: dict[int, float]) -> Slopes:
    return tuple(some.get(k, 0.0) for k in range(axes))

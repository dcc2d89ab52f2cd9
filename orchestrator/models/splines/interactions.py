"""Which pairs of predictors interact: the paper's users know it, cross-validation finds it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.splines.design import Design, Pair
from orchestrator.models.splines.moments import Moments, Scale

_FOLDS = 5  # into which samples are divided. Chosen by hand; not derived
# By how much a pair must lower the mean squared error of what was left out. Chosen by hand; not derived.
_GAIN = 0.01
# Price on squares of coefficients of standardised columns.
_RIDGE = 1e-6
# Columns that so many samples bear: with more, what is left out says little about a pair.
_PER_COLUMN = 3
# Samples and columns of all pairs together for the choice: sums of more take longer than all fits.
_MOST, _MOST_COLUMNS = 4096, 800


def chosen_pairs(
    design: Design, x: Floats, response: Floats, weights: Floats, rng: np.random.Generator
) -> tuple[Pair, ...]:
    """Return the pairs that lower the error of what was left out, found one after another.

    Parameters
    ----------
    design
        Predictors, without interactions.
    x, response, weights
        Coordinates (n, axes), response (n,) and weights (n,) of the samples.
    rng
        Of the folds, and of the part of many samples that is used.
    """
    if len(x) > _MOST:
        part = np.sort(rng.choice(len(x), _MOST, replace=False))
        x, response, weights = x[part], response[part], weights[part]
    possible = _affordable(design, len(x))
    full = design.with_pairs(possible)
    columns = full.at(x)
    parts = _folds(Scale.of(columns, weights).at(columns), response, weights, rng)
    blocks = dict(zip(possible, full.blocks[len(design.predictors) :], strict=True))
    used = np.zeros(full.width, bool)
    used[: design.width] = True
    error, pairs = _left_out(parts, used), []
    while possible and used.sum() < len(x) / _PER_COLUMN:
        errors = [_left_out(parts, _and(used, blocks[pair])) for pair in possible]
        best = int(np.argmin(errors))
        if errors[best] > (1 - _GAIN) * error:
            break
        # A pair that does not help now hardly helps beside another one.
        helpful = [pair for pair, value in zip(possible, errors, strict=True) if value < error]
        error = errors[best]
        used = _and(used, blocks[possible[best]])
        pairs.append(possible[best])
        possible = [pair for pair in helpful if pair != pairs[-1]]
    return tuple(sorted(pairs))


def _affordable(design: Design, samples: int) -> list[Pair]:
    """Return the pairs whose columns the samples bear, those with few columns first."""
    pairs = list(combinations(range(len(design.predictors)), 2))
    widths = [design.with_pairs([pair]).width - design.width for pair in pairs]
    found: list[Pair] = []
    total = 0
    for place in np.argsort(widths, kind="stable"):
        total += widths[place]
        if design.width + widths[place] <= samples / _PER_COLUMN and total <= _MOST_COLUMNS:
            found.append(pairs[place])
    return found


def _folds(
    scaled: Floats, response: Floats, weights: Floats, rng: np.random.Generator
) -> list[tuple[Moments, Moments]]:
    """Return the sums of the rows that are fitted and of those that are left out, per fold."""
    whole = Moments.of(scaled, response, weights)
    parts = np.array_split(rng.permutation(len(response)), min(_FOLDS, len(response)))
    out = [Moments.of(scaled[part], response[part], weights[part]) for part in parts]
    return [(whole.minus(part), part) for part in out]


def _left_out(parts: Sequence[tuple[Moments, Moments]], columns: NDArray[np.bool_]) -> float:
    """Return the squared error of what was left out."""
    total = 0.0
    for fitted, left_out in parts:
        total += left_out.some(columns).loss(fitted.some(columns).ridged(_RIDGE))
    return total


def _and(used: NDArray[np.bool_], block: slice) -> NDArray[np.bool_]:
    found = used.copy()
    found[block] = True
    return found

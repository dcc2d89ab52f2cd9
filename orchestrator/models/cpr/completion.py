"""A completed tensor: the modes with their factors, and how it is fitted to samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import MOST_SWEEPS, alternating, completed, row_begins
from orchestrator.models.cpr.fitting import at_samples, beginning, cell_means, fitted_table, neighbours
from orchestrator.models.cpr.growth import Slopes
from orchestrator.models.cpr.modes import Mode, cell_modes, combined, node_modes
from orchestrator.models.cpr.penalty import DEFAULT, Smoothness, diagonals
from orchestrator.models.regression.samples import Samples

# Products that nowhere exceed this, with values of variance 1, are left out.
_IDLE = 1e-6
_LEAST = 1e-300  # size of a factor, so that zeros can be divided by it


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to complete a tensor."""

    rank: int  # number of products that are summed, at most: those that do not pay vanish
    number: int  # cells or nodes of a numeric mode
    cells: bool = False  # whether entries are means of cells (the paper) or samples at their true coordinates
    smoothness: Smoothness = DEFAULT  # what the factors cost
    further: tuple[Slopes, ...] = ()  # combinations of coordinates that have a mode each, besides all axes

    @property
    def text(self) -> str:
        """What results."""
        what = "cells" if self.cells else "nodes"
        return f"tensor of rank {self.rank} with {self.number} {what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A sum over ranks of products over modes of functions of one coordinate."""

    modes: tuple[Mode, ...]  # where their nodes are
    # Factors of all modes one below the other, and a row of zeros, shape (rows + 1, rank).
    table: NDArray[np.float16]
    # mean, scale: what is added to the sum and what it is multiplied by.
    mean: float
    scale: float
    recipe: Recipe  # how it was made

    @classmethod
    def of(cls, modes: tuple[Mode, ...], table: Floats, mean: float, scale: float, recipe: Recipe) -> Self:
        """Keep the ranks that are used, as half-precision numbers: values change by about 0.0001.

        The factors of a rank are made equally large in all modes, so that none is too large or too small.
        """
        first = row_begins([len(mode) for mode in modes])
        table = _used(table, first)
        size = _largest(table, first)
        even = np.exp(np.log(np.maximum(size, _LEAST)).mean(axis=0)) / np.maximum(size, _LEAST)
        rows = np.repeat(even, [len(mode) for mode in modes], axis=0)
        return cls(
            modes=modes,
            table=(table * np.vstack([rows, rows[-1:]])).astype(np.float16),
            mean=mean,
            scale=scale,
            recipe=recipe,
        )

    @property
    def text(self) -> str:
        """What it is."""
        return self.recipe.text

    def at(self, x: Floats) -> Floats:
        """Return logarithms at coordinates (n, axes), shape (n,): equation 5 on logarithms."""
        node, weight = neighbours(self.modes, x)
        first = row_begins([len(mode) for mode in self.modes])
        values = completed(node, weight, first, self.table.astype(np.float64))
        return np.asarray(self.mean + self.scale * values, np.float64)


def modes_of(samples: Samples, recipe: Recipe) -> tuple[Mode, ...]:
    """Return the modes of a recipe."""
    if recipe.cells:
        return cell_modes(samples, recipe.number)
    further = tuple(combined(samples, slopes, recipe.number) for slopes in recipe.further)
    return (*node_modes(samples, recipe.number), *further)


def standardised(samples: Samples) -> tuple[Samples, float, float]:
    """Return the samples with mean 0 and variance 1, their mean and their scale; 1 for a constant."""
    mean, scale = float(samples.y.mean()), float(samples.y.std())
    scale = scale if scale > 1e-12 * max(abs(mean), 1.0) else 1.0
    return samples.with_y((samples.y - mean) / scale), mean, scale


def complete(samples: Samples, recipe: Recipe, rng: np.random.Generator) -> Completion:
    """Fit a recipe by alternating least squares."""
    modes = modes_of(samples, recipe)
    normal, mean, scale = standardised(samples)
    table = factors(modes, normal, recipe, beginning(modes, recipe.rank, rng))
    return Completion.of(modes, table, mean, scale, recipe)


def factors(
    modes: Sequence[Mode], samples: Samples, recipe: Recipe, table: Floats, *, is_begun: bool = False
) -> Floats:
    """Return the factors of standardised samples from where a table begins.

    ``is_begun``: it already follows samples, so that a fourth of the sweeps is enough.
    """
    if not recipe.cells:
        entries = at_samples(modes, samples.x, samples.y)
        return fitted_table(modes, entries, recipe.smoothness, table, is_begun=is_begun)
    means = cell_means(modes, samples.x, samples.y)
    penalties = [diagonals(mode, recipe.smoothness, len(samples)) for mode in modes]
    return alternating(means, penalties, table, sweeps=MOST_SWEEPS // 4 if is_begun else MOST_SWEEPS)


def _used(table: Floats, first: NDArray[np.int32]) -> Floats:
    """Return a table without the ranks whose products are zero everywhere; at least one remains.

    What the squares of factors cost makes all of a product zero that does not pay: half of 16 ranks, and
    more. Not while factors are fitted: prices fall from round to round, and then some of them do pay.
    """
    size = _largest(table, first).prod(axis=0)
    return table[:, size > min(_IDLE, size.max() / 2)] if size.max() > 0 else table[:, :1]


def _largest(table: Floats, first: NDArray[np.int32]) -> Floats:
    """Return the largest absolute value of every rank in every mode, shape (modes, rank)."""
    return np.asarray(np.maximum.reduceat(np.abs(table[:-1]), first), np.float64)

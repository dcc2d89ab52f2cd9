"""A completed tensor: the modes with their factors, and how it is fitted to samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import MOST_SWEEPS, Entries, alternating, completed, row_begins
from orchestrator.models.cpr.modes import Mode, cell_modes, node_modes
from orchestrator.models.cpr.penalty import DEFAULT, Smoothness, diagonals
from orchestrator.models.regression.samples import Samples

# Factors begin as constants with so much noise: products of nine random numbers would be far apart.
_NOISE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to complete a tensor.

    Attributes
    ----------
    rank
        Number of products that are summed.
    number
        Cells or nodes of a numeric mode.
    cells
        Whether entries are means of cells (the paper) or samples at their true coordinates.
    smoothness
        What the factors cost.
    """

    rank: int
    number: int
    cells: bool = False
    smoothness: Smoothness = DEFAULT

    @property
    def text(self) -> str:
        """What results."""
        what = "cells" if self.cells else "nodes"
        return f"tensor of rank {self.rank} with {self.number} {what}"


@dataclass(frozen=True, slots=True)
class Completion:
    """A sum over ranks of products over modes of functions of one coordinate.

    Attributes
    ----------
    modes
        Where their nodes are.
    table
        Factors of all modes one below the other, and a row of zeros, shape (rows + 1, rank).
    mean, scale
        What the sum is multiplied by and what is added.
    recipe
        How it was made.
    """

    modes: tuple[Mode, ...]
    table: NDArray[np.float32]
    mean: float
    scale: float
    recipe: Recipe

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


def neighbours(modes: Sequence[Mode], x: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return nodes below and weights of the nodes above for all modes, shapes (modes, n)."""
    pairs = [mode.neighbours(x) for mode in modes]
    return np.array([node for node, _ in pairs]), np.array([weight for _, weight in pairs])


def entries_of(modes: Sequence[Mode], samples: Samples, y: Floats, *, cells: bool) -> Entries:
    """Return what is known of the tensor: every sample, or the means of cells (section 5.1)."""
    if not cells:
        node, weight = neighbours(modes, samples.x)
        return Entries(node=node, weight=weight, y=y, share=np.ones(len(y)))
    index = np.array([mode.cells(samples.x)[0] for mode in modes])
    distinct, owner = np.unique(index, axis=1, return_inverse=True)
    owner = owner.ravel()
    count = np.bincount(owner).astype(float)
    means = np.bincount(owner, y) / count
    return Entries(
        node=np.ascontiguousarray(distinct, np.int32), weight=np.zeros(distinct.shape), y=means, share=count
    )


def beginning(modes: Sequence[Mode], rank: int, rng: np.random.Generator) -> Floats:
    """Return random factors: constants with noise, the first mode with a sign and a size per rank."""
    rows = sum(len(mode) for mode in modes)
    table = np.zeros((rows + 1, rank))
    table[:-1] = 1 + _NOISE * rng.standard_normal((rows, rank))
    table[: len(modes[0])] *= rng.standard_normal(rank) / np.sqrt(rank)
    return table


def complete(samples: Samples, recipe: Recipe, rng: np.random.Generator) -> Completion:
    """Fit by alternating least squares."""
    place = cell_modes if recipe.cells else node_modes
    modes = place(samples, recipe.number)
    mean, scale = float(samples.y.mean()), float(samples.y.std())
    scale = scale if scale > 1e-12 * max(abs(mean), 1.0) else 1.0
    entries = entries_of(modes, samples, (samples.y - mean) / scale, cells=recipe.cells)
    penalties = [diagonals(mode, recipe.smoothness, len(samples)) for mode in modes]
    table = beginning(modes, recipe.rank, rng)
    table = alternating(entries, penalties, table, sweeps=MOST_SWEEPS)
    return Completion(modes, table.astype(np.float32), mean, scale, recipe)

"""Which samples are left out to see how well a learner predicts what it does not know.

Folds are for points among the measured ones. For points beyond them the largest values of a parameter are
left out: a learner that interpolates well may be useless there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.models.base import Floats, Integers
from orchestrator.models.regression.samples import Samples

# Folds, and the number of samples above which one held-out part says enough and saves the other fits. The
# share of that part, and the most samples in it. Chosen by hand; not derived.
FOLDS, _SEVERAL = 5, 4096
_HELD_OUT = 0.2
_MOST_HELD_OUT = 4096
# Share of the samples with the largest values of a parameter that is left out, and the least number of
# different values that must remain and of samples on either side. Chosen by hand; not derived.
_END = 0.2
_LEAST_VALUES, LEAST_SAMPLES = 3, 4


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to fit to, and rows to predict."""

    fitted: Integers
    left_out: Integers


@dataclass(frozen=True, slots=True)
class End:
    """A split that leaves out the largest values of one axis."""

    axis: int
    split: Split


def folds(n: int, rng: np.random.Generator) -> tuple[Split, ...]:
    """Return K random folds that together leave out every row once; of many rows one random part."""
    order = rng.permutation(n)
    if n > _SEVERAL:
        held = min(int(n * _HELD_OUT), _MOST_HELD_OUT)
        return (Split(np.sort(order[held:]), np.sort(order[:held])),)
    parts = np.array_split(order, min(FOLDS, n))
    return tuple(Split(np.sort(np.setdiff1d(order, part)), np.sort(part)) for part in parts if len(part) < n)


def ends(samples: Samples, least: int) -> tuple[End, ...]:
    """Return a split per numeric axis that has enough values: its largest ones are left out.

    At least ``least`` samples are on either side.
    """
    splits = []
    for k, axis in enumerate(samples.axes):
        edge = None if axis.is_categorical else _edge(samples.x[:, k])
        if edge is None:
            continue
        above = samples.x[:, k] > edge
        if min(above.sum(), (~above).sum()) >= least:
            splits.append(End(k, Split(np.flatnonzero(~above), np.flatnonzero(above))))
    return tuple(splits)


def _edge(column: Floats) -> float | None:
    """Return the largest value that is kept: at least one different value is left out."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= _LEAST_VALUES:
        return None
    kept = int(np.searchsorted(np.cumsum(counts), (1 - _END) * len(column)))
    return float(values[np.clip(kept, _LEAST_VALUES - 1, len(values) - 2)])

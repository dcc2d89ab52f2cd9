"""Cyclic coordinate descent: one column of one factor at a time (section 4.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orchestrator.models.base import Floats
from orchestrator.models.cpr.als import MOST_SWEEPS, Entries, improved, row_begins


def by_columns(
    entries: Entries,
    penalties: Sequence[Floats],
    table: Floats,
    *,
    sweeps: int = MOST_SWEEPS,
    tolerance: float = 1e-4,
) -> Floats:
    """Return the table after sweeps over the columns of all factors; parameters as of `als.alternating`.

    Every step is exact, so the loss never rises. The elements of a column do not depend on each other where
    entries are cells, which is the paper's method; between nodes they are found together. A sweep costs a
    share of ``1 / rank`` of one of alternating least squares, and more sweeps are needed.
    """
    first = row_begins([penalty.shape[1] for penalty in penalties])
    table = table.copy()
    scale = max(float(np.sqrt(np.mean(entries.y**2))), 1e-300)
    rest = entries.y - entries.completed(first, table)
    for _ in range(sweeps):
        before = rest
        for r in range(table.shape[1]):
            column = np.ascontiguousarray(table[:, r : r + 1])
            target = replace(entries, y=rest + entries.completed(first, column))
            for mode, penalty in enumerate(penalties):
                rows = slice(first[mode], first[mode] + penalty.shape[1])
                column[rows] = improved(target, first, column, mode, penalty)
            table[:, r] = column[:, 0]
            rest = target.y - entries.completed(first, column)
        if np.sqrt(np.mean((rest - before) ** 2)) < tolerance * scale:
            break
    return table

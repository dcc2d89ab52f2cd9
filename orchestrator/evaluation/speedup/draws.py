"""What several draws of noise say together: medians of errors, and the smallest and the largest of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orchestrator.evaluation.speedup.runs import Scaling
from orchestrator.evaluation.speedup.study import QUANTILES, Row

Quantity = Literal["cutoff", "size_share"]
"""c_f, and w_f / w_max."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Where a table or a figure is of."""

    machine: str
    scaling: Scaling
    levels: int

    @property
    def title(self) -> str:
        """For tables and figures."""
        several = ", several processes per node" if self.levels > 1 else ""
        return f"{self.machine}, {self.scaling} scaling{several}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Errors of one contender on one program with one pair of cut-offs, over draws."""

    # setup, program, contender, cutoff, size_share, beyond: as in `Row`.
    setup: Setup
    program: str
    contender: str
    cutoff: float
    size_share: float
    beyond: float
    # rmse, relative_rmse: medians; None where there was no model in any draw.
    rmse: float | None
    relative_rmse: float | None
    # low, high: the smallest and the largest relative RMSE.
    low: float | None
    high: float | None
    relative_rse: tuple[float, ...]  # medians of the quantiles `QUANTILES`


def cells(rows: Iterable[Row]) -> list[Cell]:
    """Return a cell for all draws of the same, in the order of first appearance; draws that failed are left
    out.
    """
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("machine", "scaling", "levels", "program", "contender"))
        groups.setdefault((*key, row["cutoff"], row["size_share"], row["beyond"]), []).append(row)
    return [_cell(members) for members in groups.values()]


def _cell(rows: Sequence[Row]) -> Cell:
    known = [row for row in rows if row["rmse"] is not None]
    relative = [row["relative_rmse"] for row in known if row["relative_rmse"] is not None]
    quantiles = np.array([row["relative_rse"] for row in known]).reshape(-1, len(QUANTILES))
    first = rows[0]
    return Cell(
        setup=Setup(machine=first["machine"], scaling=first["scaling"], levels=first["levels"]),
        program=first["program"],
        contender=first["contender"],
        cutoff=first["cutoff"],
        size_share=first["size_share"],
        beyond=first["beyond"],
        rmse=float(np.median([row["rmse"] or 0.0 for row in known])) if known else None,
        relative_rmse=float(np.median(relative)) if known else None,
        low=min(relative, default=None),
        high=max(relative, default=None),
        relative_rse=tuple(np.median(quantiles, axis=0).tolist()) if known else (),
    )


def by_setup(known: Iterable[Cell]) -> dict[Setup, list[Cell]]:
    """Return the cells of every setup, in their order."""
    groups: dict[Setup, list[Cell]] = {}
    for cell in known:
        groups.setdefault(cell.setup, []).append(cell)
    return groups


def varied(known: Sequence[Cell], quantity: Quantity) -> list[Cell]:
    """Return the cells of a setup in which only one cut-off varies, with the same tested runs.

    Parameters
    ----------
    known
        Of one setup, as `cases.sensitivity` varies cut-offs: the other one has its usual value.
    quantity
        Which one varies.
    """
    other: Quantity = "size_share" if quantity == "cutoff" else "cutoff"
    chosen: list[Cell] = []
    for program in dict.fromkeys(cell.program for cell in known):
        mine = [cell for cell in known if cell.program == program]
        places = [(getattr(cell, other), cell.beyond) for cell in mine]
        usual = max(places, key=places.count)
        same = [cell for cell, place in zip(mine, places, strict=True) if place == usual]
        chosen += same if len({getattr(cell, quantity) for cell in same}) > 1 else []
    return chosen

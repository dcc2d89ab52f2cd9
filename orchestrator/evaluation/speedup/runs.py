"""Run times over processes and problem sizes, and the speedups that follow from them.

Alasandagutti et al., Grey-Box Machine Learning Prediction of Parallel Application Scaling, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import MeasurementError
from orchestrator.models.base import Floats
from orchestrator.types import Measurement, Measurements, Point

Scaling = Literal["strong", "weak", "hybrid"]
Chosen = NDArray[np.bool_]

_HALF = 0.5  # hybrid scaling: w is at most this (section 5.2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Run times of one program."""

    name: str  # of the program
    # nodes, per_node: nodes, and processes on each; shape (n,).
    nodes: Floats
    per_node: Floats
    size: Floats  # problem size in units of work; of weak scaling that of a process; shape (n,)
    seconds: Floats  # measured, shape (n,)
    exact: Floats  # what would have been measured without noise, NaN where nobody knows it; shape (n,)

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def processes(self) -> Floats:
        """N, shape (n,)."""
        return np.asarray(self.nodes * self.per_node)

    @property
    def levels(self) -> int:
        """2 where runs have different numbers of processes per node, else 1."""
        several = self.per_node[self.processes > 1]
        return 1 + (len(np.unique(several)) > 1)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of `points`: ``p`` or ``nodes`` and ``ppn``, and ``n`` where sizes differ."""
        sizes = ("n",) if len(np.unique(self.size)) > 1 else ()
        return (*(("nodes", "ppn") if self.levels > 1 else ("p",)), *sizes)

    def rows(self, chosen: Chosen) -> Self:
        """Return some of the runs."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _COLUMNS})

    def points(self, parameters: Iterable[str]) -> list[Point]:
        """Return the point of every run."""
        known = {"p": self.processes, "nodes": self.nodes, "ppn": self.per_node, "n": self.size}
        columns = {name: known[name].tolist() for name in parameters}
        return [Point.of({name: values[k] for name, values in columns.items()}) for k in range(len(self))]

    def measurements(self, parameters: tuple[str, ...]) -> Measurements:
        """Return the runs as measurements of one call path."""
        values: dict[Point, tuple[float, ...]] = {}
        for point, seconds in zip(self.points(parameters), self.seconds.tolist(), strict=True):
            values[point] = (*values.get(point, ()), seconds)
        return Measurements(parameters, (Measurement("main", "time", values),))


_COLUMNS = tuple(field.name for field in fields(Runs) if field.name != "name")


def on_one_process(runs: Runs, seconds: Floats) -> dict[float, float]:
    """Return problem size -> mean seconds on the fewest processes, which is one where there are such runs.

    Parameters
    ----------
    runs, seconds
        The runs, and how long each of them took, shape (n,).

    Raises
    ------
    MeasurementError
        When all runs have the same number of processes.
    """
    fewest = runs.processes.min()
    here = runs.processes == fewest
    if here.all():
        raise MeasurementError(
            f"{runs.name}: all runs have {fewest:g} processes: speedups need several numbers of them"
        )
    return {
        float(size): float(seconds[here & (runs.size == size)].mean()) for size in np.unique(runs.size[here])
    }


def reference(runs: Runs, scaling: Scaling, on_one: dict[float, float]) -> Floats:
    """Return the seconds on one process that every run is compared with, shape (n,); NaN where none is.

    Parameters
    ----------
    runs
        To compare.
    scaling
        ``strong``, ``weak``: a run of the same size, which in weak scaling is that of a process. ``hybrid``:
        the smallest size of all, where the run's is at least twice as large.
    on_one
        As `on_one_process` returns it.
    """
    if scaling == "hybrid":
        original = min(on_one)
        return np.where(original <= _HALF * runs.size, on_one[original], np.nan)
    return np.array([on_one.get(float(size), np.nan) for size in runs.size])

"""Score-P profiles (CUBE 4): samples per call path, aggregated over ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestrator.errors import ReadError
from orchestrator.readers.base import reads
from orchestrator.readers.cubex import EXTREMES, Array, CubeMetric, CubeProfile, read_cubex
from orchestrator.readers.entries import SECONDS
from orchestrator.readers.profile_files import only_one
from orchestrator.types import Application, Sample

DEPTH = 3  # folders below the attempt's directory; Score-P makes one of its own

# Exclusive time is a difference of sums of doubles: this fraction of the inclusive time is rounding.
ROUNDING = 1e-9


@reads("*.cubex")
def read(directory: Path, application: Application, inclusive: bool = False) -> list[Sample]:
    """Return the samples of the one Score-P profile below ``directory``; see `profile`.

    Raises
    ------
    ReadError
        Where there is no profile, or more than one, or a broken one.
    """
    remedy = (
        f"was {application.name} instrumented with Score-P, and did it end normally (the profile is written "
        "at the end)?"
    )
    return profile(only_one(directory, ".cubex", DEPTH, remedy), inclusive)


def profile(path: Path, inclusive: bool = False) -> list[Sample]:
    """Read a CUBE 4 profile into samples of every numeric metric at every call path.

    A call path joins the names of its regions by ``->``. Siblings of one name become one call path,
    with the sum of their values. Per metric and call path there are the aggregates ``mean``, ``max``
    and ``min`` over the ranks, and ``sum`` over all locations. Where ranks have several threads, a
    rank's value is the sum over its threads, except for times: these take the slowest thread, so that
    serial and parallel regions alike count as the wall time they cost. ``MINDOUBLE`` and
    ``MAXDOUBLE`` metrics (``min_time``) combine by minimum and maximum and have no ``sum``.
    Times are in seconds. A declared metric without data is zero at every call path.

    Parameters
    ----------
    path
        The ``.cubex`` file.
    inclusive
        Whether a value includes those of the regions called from the call path; by default not.

    Raises
    ------
    ReadError
        For a broken file; for values that are not finite and for negative times, naming the call path.
    """
    cube = read_cubex(path)
    names, groups = np.unique(np.array(cube.callpaths, dtype=object), return_inverse=True)
    order = np.full(len(names), len(groups))
    np.minimum.at(order, groups, np.arange(len(groups)))
    samples: list[Sample] = []
    for metric in cube.metrics:
        converted = _converted(metric, cube.parents, inclusive)
        values = _merged(_checked(path, cube, metric, converted), groups, len(names), metric.data_type)
        aggregates = _aggregates(values, cube.ranks, metric)
        for place in np.argsort(order).tolist():
            callpath = names[place]
            samples += [Sample(callpath, metric.name, row[place], name) for name, row in aggregates.items()]
    return samples


def _converted(metric: CubeMetric, parents: NDArray[np.int64], inclusive: bool) -> Array:
    """Return the values as inclusive or exclusive ones, whatever the file holds."""
    values = metric.values * SECONDS.get(metric.unit, 1.0)
    if metric.data_type in EXTREMES:
        values[~np.isfinite(values)] = 0.0  # the neutral element: never visited
    if metric.inclusive == inclusive:
        return values
    called = parents >= 0
    if not inclusive:
        exclusive = values.copy()
        np.subtract.at(exclusive, parents[called], values[called])
        # Unsigned counters that wrapped around are read as zero, which can leave a parent too small.
        if metric.unit not in SECONDS:
            return np.where(values >= 0, np.maximum(exclusive, 0.0), exclusive)
        return np.where((exclusive < 0) & (exclusive >= -ROUNDING * np.abs(values)), 0.0, exclusive)
    combine = _combine(metric.data_type)
    for node in range(len(parents) - 1, 0, -1):  # preorder: children come after their parents
        if parents[node] >= 0:
            values[parents[node]] = combine(values[parents[node]], values[node])
    return values


def _combine(data_type: str) -> np.ufunc:
    return {"MINDOUBLE": np.minimum, "MAXDOUBLE": np.maximum}.get(data_type, np.add)


def _checked(path: Path, cube: CubeProfile, metric: CubeMetric, values: Array) -> Array:
    wrong = ~np.isfinite(values)
    if metric.unit in SECONDS:
        wrong |= values < 0
    if wrong.any():
        node, location = np.argwhere(wrong)[0]
        raise ReadError(
            f"{path}: metric {metric.name} is {values[node, location]} at {cube.callpaths[node]} "
            f"(rank {cube.ranks[location]}): not a possible value"
        )
    return values


def _merged(values: Array, groups: NDArray[np.int64], count: int, data_type: str) -> Array:
    """Combine the rows of nodes that have the same call path."""
    if count == len(groups):
        merged = np.empty_like(values)
        merged[groups] = values
        return merged
    start = {"MINDOUBLE": np.inf, "MAXDOUBLE": -np.inf}.get(data_type, 0.0)
    merged = np.full((count, values.shape[1]), start)
    _combine(data_type).at(merged, groups, values)
    return merged


def _aggregates(values: Array, ranks: NDArray[np.int64], metric: CubeMetric) -> dict[str, list[float]]:
    """Aggregate (call paths, locations) over locations; one list over call paths per aggregate."""
    starts = np.flatnonzero(np.diff(ranks, prepend=-1))
    if metric.data_type in EXTREMES:
        combine = _combine(metric.data_type)
    else:
        combine = np.maximum if metric.unit in SECONDS else np.add
    per_rank = combine.reduceat(values, starts, axis=1)
    aggregates = {"mean": per_rank.mean(axis=1), "max": per_rank.max(axis=1), "min": per_rank.min(axis=1)}
    if metric.data_type not in EXTREMES:
        aggregates["sum"] = values.sum(axis=1)
    return {name: column.tolist() for name, column in aggregates.items()}

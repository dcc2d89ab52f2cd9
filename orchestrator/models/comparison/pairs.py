"""Pairs of measurements at common points: the logarithm of their ratio, and its noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.errors import CampaignError
from orchestrator.models.base import Floats, Key
from orchestrator.models.callpaths import names
from orchestrator.models.data import Group, groups
from orchestrator.models.noise import Located, locate
from orchestrator.types import Measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """One call path (and metric, and category) at the points where both A and B were measured.

    Attributes
    ----------
    parameters
        Numeric parameters.
    points
        Their values, shape (pairs, parameters).
    difference
        Logarithm of B / A, shape (pairs,).
    variance
        Of ``difference``, as far as repetitions show it, shape (pairs,).
    freedom
        Degrees of freedom behind ``variance``.
    noise
        Relative standard deviation of a single repetition of A and of B.
    """

    parameters: tuple[str, ...]
    points: Floats
    difference: Floats
    variance: Floats
    freedom: float
    noise: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """Two sets of measurements whose call paths and parameters have the same names.

    ``only_first`` and ``only_second`` are the call paths and metrics that the other one has not;
    ``renamed`` the call paths of B, by the name that A has for them, where that is another one.
    """

    first: Measurements
    second: Measurements
    only_first: tuple[tuple[str, str], ...]
    only_second: tuple[tuple[str, str], ...]
    renamed: dict[str, str]


def aligned(first: Measurements, second: Measurements) -> Aligned:
    """Give the call paths of B the names that A has for them: compilers write names differently.

    Raises
    ------
    CampaignError
        Where the parameters differ, or nothing was measured in both.
    """
    if set(first.parameters) != set(second.parameters):
        raise CampaignError(
            f"A has the parameters {', '.join(first.parameters)} and B {', '.join(second.parameters)}: "
            "only measurements with the same parameters can be compared (--parameters names those of tables)"
        )
    there = dict.fromkeys(item.callpath for item in first.items)
    others = dict.fromkeys(item.callpath for item in second.items)
    known = names(there, others)
    found = {path: path if path in there else known.find(path) for path in others}
    # A name that stands for several call paths of B is none.
    taken = [name for name in found.values() if name is not None]
    renamed = {
        name: path
        for path, name in found.items()
        if name is not None and name != path and taken.count(name) == 1
    }
    back = {path: name for name, path in renamed.items()}
    items = tuple(replace(item, callpath=back.get(item.callpath, item.callpath)) for item in second.items)
    categorical = first.categorical | second.categorical
    mine, yours = ({(item.callpath, item.metric): None for item in side} for side in (first.items, items))
    if not mine.keys() & yours.keys():
        raise CampaignError(
            f"no metric of a call path was measured in both: A has {_some(mine)}, B has {_some(yours)}"
        )
    return Aligned(
        first=replace(first, categorical=categorical),
        second=replace(second, parameters=first.parameters, items=items, categorical=categorical),
        only_first=tuple(key for key in mine if key not in yours),
        only_second=tuple(key for key in yours if key not in mine),
        renamed=renamed,
    )


def _some(keys: dict[tuple[str, str], None]) -> str:
    few = [f"{metric} of {callpath}" for callpath, metric in list(keys)[:3]]
    return ", ".join(few) + ", ..." * (len(keys) > len(few))


def pairs(first: Measurements, second: Measurements) -> dict[Key, Pairs]:
    """Return the pairs of every call path, metric and category that has some.

    Repetitions are weighed as models weigh them (`orchestrator.models.noise`): robustly, with noise that is
    pooled over points and call paths, and with what those of one job or node share.

    Parameters
    ----------
    first, second
        From `aligned`.
    """
    mine = dict(_sides(first))
    found = {}
    for key, other in _sides(second):
        if key in mine and (pair := _pair(mine[key], other)) is not None:
            found[key] = pair
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Located values of one call path: a row per point."""

    parameters: tuple[str, ...]
    rows: dict[tuple[float, ...], int]
    log_value: Floats
    variance: Floats
    freedom: float
    noise: float


def _sides(known: Measurements) -> Iterator[tuple[Key, _Side]]:
    if not known.items:
        return
    for group in groups(known, positive=True)[0]:
        # The same robust mean on both sides: an aggregate of its own would shift one of them.
        located = locate(group.values, "none", group.origins)
        names, rows = _coordinates(group)
        for row, (callpath, metric) in enumerate(group.labels):
            yield (callpath, metric, group.category), _side(located, row, names, rows)


def _side(located: Located, row: int, names: tuple[str, ...], rows: dict[tuple[float, ...], int]) -> _Side:
    noise = float(located.sigma[row])
    return _Side(
        parameters=names,
        rows=rows,
        log_value=located.log_value[row],
        variance=noise**2 / located.count[row],
        freedom=float(located.freedom[row]),
        noise=noise,
    )


def _coordinates(group: Group) -> tuple[tuple[str, ...], dict[tuple[float, ...], int]]:
    """Return all numeric parameters, and the row of every point by its coordinates."""
    varied = iter(group.points.T)
    count = len(group.points)
    columns = [next(varied) if value is None else np.full(count, value) for _, value in group.fixed]
    table = np.array(columns, dtype=float).reshape(len(columns), count).T
    return tuple(name for name, _ in group.fixed), {tuple(row): k for k, row in enumerate(table.tolist())}


def _pair(first: _Side, second: _Side) -> Pairs | None:
    common = [point for point in first.rows if point in second.rows]
    if not common:
        return None
    a, b = ([side.rows[point] for point in common] for side in (first, second))
    parts = first.variance[a].mean(), second.variance[b].mean()
    # Satterthwaite: the freedom of a sum of variances, each with its own.
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / first.freedom + parts[1] ** 2 / second.freedom)
    return Pairs(
        parameters=first.parameters,
        points=np.array(common, dtype=float).reshape(len(common), len(first.parameters)),
        difference=second.log_value[b] - first.log_value[a],
        variance=first.variance[a] + second.variance[b],
        freedom=float(freedom),
        noise=(first.noise, second.noise),
    )

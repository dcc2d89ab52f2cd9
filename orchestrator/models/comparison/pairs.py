"""Pairs of measurements at common points: the logarithm of their ratio, and its noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.errors import CampaignError
from orchestrator.models.base import Floats, Key, Label, label_of
from orchestrator.models.callpaths import names
from orchestrator.models.data import groups
from orchestrator.models.noise import GUESS_WEIGHT, Located, locate, robust_weights, tick
from orchestrator.models.shared_noise import satterthwaite
from orchestrator.types import Measurement, Measurements

# Noise below which repetitions may agree because of the digits that they are printed with.
_ROUNDED = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """One call path (and metric, and category) at the points where both A and B were measured."""

    parameters: tuple[str, ...]  # numeric parameters
    points: Floats  # their values, shape (pairs, parameters)
    difference: Floats  # logarithm of B / A, shape (pairs,)
    variance: Floats  # of ``difference``, as far as repetitions show it, shape (pairs,)
    freedom: float  # degrees of freedom behind ``variance``
    noise: tuple[float, float]  # relative standard deviation of a single repetition of A and of B


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """Two sets of measurements whose call paths and parameters have the same names.

    ``only_first`` and ``only_second`` are the call paths and metrics that the other one has not;
    ``renamed`` the call paths of B, by the name that A has for them, where that is another one.
    ``together`` tells whether repetition k of A and of B were made one after the other.
    """

    first: Measurements
    second: Measurements
    only_first: tuple[Label, ...]
    only_second: tuple[Label, ...]
    renamed: dict[str, str]
    together: bool = False


def aligned(first: Measurements, second: Measurements, *, together: bool = False) -> Aligned:
    """Give the call paths of B the names that A has for them: compilers write names differently.

    ``together``: whether repetition k of A and of B were made one after the other.

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
    mine, yours = (dict.fromkeys(map(label_of, side)) for side in (first.items, items))
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
        together=together,
    )


def _some(keys: dict[Label, None]) -> str:
    few = [f"{metric} of {callpath}" for callpath, metric in list(keys)[:3]]
    return ", ".join(few) + ", ..." * (len(keys) > len(few))


def pairs(first: Measurements, second: Measurements, together: bool = False) -> dict[Key, Pairs]:
    """Return the pairs of every call path, metric and category that has some.

    Repetitions are weighed as models weigh them (`orchestrator.models.noise`): robustly, with noise that is
    pooled over points and call paths, and with what those of one job or node share.

    Parameters
    ----------
    first, second
        From `aligned`.
    together
        Whether repetition k of A and of B were made one after the other. Then what disturbs both alike does
        not count as noise: that is how much their ratio differs between repetitions.
    """
    mine, yours = dict(_sides(first)), dict(_sides(second))
    ratios = dict(_sides(_ratios(first, second))) if together else {}
    found = {}
    for key, other in yours.items():
        if key in mine and (pair := _pair(mine[key], other)) is not None:
            found[key] = _with_common_noise(pair, mine[key], other, ratios.get(key))
    return found


def _ratios(first: Measurements, second: Measurements) -> Measurements:
    """Return B / A of every repetition that both have, as measurements."""
    mine = {label_of(item): item for item in first.items}
    items = []
    for other in second.items:
        item = mine.get(label_of(other))
        if item is None:
            continue
        found = {
            point: tuple(b / a for a, b in zip(item.values[point], values, strict=False) if a > 0 and b > 0)
            for point, values in other.values.items()
            if point in item.values
        }
        values = {point: ratios for point, ratios in found.items() if ratios}
        if values:
            items.append(Measurement(item.callpath, item.metric, values))
    return Measurements(first.parameters, tuple(items), first.categorical)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Located values of one call path: a row per point; ``logs`` of the repetitions, NaN where none is.

    ``rounding``: variance of what rounding does to all repetitions at a point alike.
    """

    parameters: tuple[str, ...]
    rows: dict[tuple[float, ...], int]
    log_value: Floats
    variance: Floats
    freedom: float
    noise: float
    logs: Floats
    rounding: Floats


def _sides(known: Measurements) -> Iterator[tuple[Key, _Side]]:
    if not known.items:
        return
    ticks = {label_of(item): _tick(item) for item in known.items}
    for group in groups(known)[0]:
        # The same robust mean on both sides: an aggregate of its own would shift one of them.
        located = locate(group.values, "none", group.origins)
        names = tuple(name for name, _ in group.fixed)
        rows = {tuple(point): k for k, point in enumerate(group.coordinates(names).tolist())}
        for row, label in enumerate(group.labels):
            side = _side(located, row, names, rows, np.log(group.values[row]), ticks[label])
            yield (*label, group.category), side


def _side(
    located: Located,
    row: int,
    names: tuple[str, ...],
    rows: dict[tuple[float, ...], int],
    logs: Floats,
    step: float,
) -> _Side:
    noise = float(located.sigma[row])
    relative = step / np.exp(located.log_value[row])
    return _Side(
        parameters=names,
        rows=rows,
        log_value=located.log_value[row],
        variance=noise**2 / located.count[row],
        freedom=float(located.freedom[row]),
        noise=noise,
        logs=logs,
        # Noise of more than a step makes repetitions differ, so that rounding is part of it.
        rounding=np.where(noise < relative, relative**2 / 12, 0.0),
    )


def _tick(item: Measurement) -> float:
    """Return the step that times are printed in; 0 for whole numbers, which are counts, and where none is."""
    values = np.array([value for found in item.values.values() for value in found if 0 < value < math.inf])
    whole = np.all(np.abs(values - np.rint(values)) < 1e-9 * values)
    return 0.0 if whole or not len(values) else tick(values)


def _common(first: _Side, second: _Side) -> list[tuple[float, ...]]:
    """Return the coordinates at which both have values."""
    return [point for point in first.rows if point in second.rows]


def _pair(first: _Side, second: _Side) -> Pairs | None:
    common = _common(first, second)
    if not common:
        return None
    a, b = ([side.rows[point] for point in common] for side in (first, second))
    return Pairs(
        parameters=first.parameters,
        points=np.array(common, dtype=float).reshape(len(common), len(first.parameters)),
        difference=second.log_value[b] - first.log_value[a],
        variance=first.variance[a] + second.variance[b] + first.rounding[a] + second.rounding[b],
        freedom=satterthwaite(
            (first.variance[a].mean(), first.freedom), (second.variance[b].mean(), second.freedom)
        ),
        noise=(first.noise, second.noise),
    )


def _with_common_noise(pair: Pairs, first: _Side, second: _Side, ratios: _Side | None) -> Pairs:
    """Return a pair whose noise is that of the ratio of repetitions; unchanged where none was repeated.

    Repetitions that are far from the others of their side lose weight together with their counterpart.
    """
    common = _common(first, second)
    if ratios is None or ratios.freedom <= GUESS_WEIGHT or not all(point in ratios.rows for point in common):
        return pair
    sides = [(side, [side.rows[point] for point in common]) for side in (first, second)]
    weighed = [_weights(side, rows) for side, rows in sides]
    most = min(len(logs[0]) for logs, _ in weighed)
    (a, of_a), (b, of_b) = ((logs[:, :most], weights[:, :most]) for logs, weights in weighed)
    weights = np.minimum(of_a, of_b)
    count = weights.sum(axis=1)
    if not np.all(count > 0):
        return pair
    # Rounding may be the same in all repetitions: then their ratios seem to be better known than they are.
    noise = max(ratios.noise, min(math.hypot(first.noise, second.noise), _ROUNDED))
    return replace(
        pair,
        difference=(weights * np.where(weights > 0, b - a, 0.0)).sum(axis=1) / count,
        variance=noise**2 / count + sum(side.rounding[rows] for side, rows in sides),
        freedom=ratios.freedom,
    )


def _weights(side: _Side, rows: list[int]) -> tuple[Floats, Floats]:
    """Return the logarithms of all repetitions at points, and their robust weights: 0 where there is none."""
    logs = side.logs[rows]
    scaled = (logs - side.log_value[rows][:, None]) / side.noise
    return logs, np.where(np.isfinite(logs), robust_weights(scaled), 0.0)

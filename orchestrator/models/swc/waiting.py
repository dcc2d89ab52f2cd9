"""Waiting time: what measured times have beyond the work that was counted.

De Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section VII: where
times and counts disagree, the gap is waiting time, or a cost that counts do not show. Here it is a lower
bound: every count gets the highest price that no measured time contradicts, so that the counts explain as
much of all times as they can. What a call path waits at every point alike cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog

from orchestrator.models.base import Category, Floats, Label, Model, is_of, label_of
from orchestrator.models.effort import BLOCKS, EFFORT, TOLERANCE, category
from orchestrator.models.mpi_costs import Row, rows
from orchestrator.models.swc.skeleton import counted, ranks_of
from orchestrator.types import Measurements, Point

TIME = "time"
_SPARE = 2  # points beyond the number of prices: as many points as prices are explained whatever they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The times of one call path in one category, and how much of them its counts explain at most."""

    # callpath, category: whose times they are.
    callpath: str
    category: Category
    # What was counted: ``basic_blocks``, ``allreduce calls``, ``allreduce bytes_sent``.
    counts: tuple[str, ...]
    points: tuple[Point, ...]  # where both times and counts are known
    # seconds, explained: median time, and the part that counts explain, shape (points,).
    seconds: Floats
    explained: Floats
    beyond: Mapping[Point, float]  # what counts explain at further points, by the models of the counts


def explained(known: Measurements, models: Sequence[Model], further: Sequence[Point]) -> list[Explained]:
    """Return what counts explain of the times of every call path that has enough of both.

    Parameters
    ----------
    known
        Times, and effort metrics as Score-P names them (`orchestrator.models.effort.EFFORT`).
    models
        Of the effort metrics; those of others are not looked at.
    further
        Points that were not counted.
    """
    times = {item.callpath: item.values for item in known.items if item.metric == TIME}
    everything = _with_predicted(known, models, further)
    counts: dict[str, dict[str, Mapping[Point, tuple[float, ...]]]] = {}
    for item in counted(everything, times, TOLERANCE, None):
        counts.setdefault(item.callpath, {})[item.metric] = item.values
    categorical = [name for name in known.parameters if known.is_categorical(name)]
    size = ranks_of(known, None)
    found = []
    for callpath, metrics in counts.items():
        groups: dict[Category, list[Point]] = {}
        for point in times[callpath]:
            groups.setdefault(category(point, categorical), []).append(point)
        for kind, points in groups.items():
            there = [point for point in points if all(point in values for values in metrics.values())]
            ahead = [point for point in further if is_of(point, kind) and point not in there]
            entry = _explained(callpath, kind, times[callpath], _Work(metrics, size), there, ahead)
            found += [] if entry is None else [entry]
    return found


def _with_predicted(known: Measurements, models: Sequence[Model], further: Sequence[Point]) -> Measurements:
    """Return the measurements with the counts that models predict at further points, as if counted there."""
    predicted: dict[Label, dict[Point, tuple[float, ...]]] = {}
    for model in models:
        if model.metric in EFFORT:
            there = [point for point in further if is_of(point, model.category)]
            for point, value in zip(there, model.value(there).tolist() if there else [], strict=True):
                if np.isfinite(value):
                    predicted.setdefault(label_of(model), {})[point] = (max(value, 0.0),)
    items = tuple(
        replace(item, values={**predicted.get(label_of(item), {}), **item.values}) for item in known.items
    )
    return replace(known, items=items)


@dataclass(frozen=True, slots=True)
class _Work:
    """The counts of one call path as columns: each has one price, that of a block, a call or a byte."""

    metrics: Mapping[str, Mapping[Point, tuple[float, ...]]]
    ranks: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.metrics if not name.endswith(" size"))

    def at(self, points: Sequence[Point]) -> Floats | None:
        """Return the work at points, shape (points, names); None where a count is not known there."""
        if not all(point in self.metrics[name] for name in self.metrics for point in points):
            return None
        return np.array([[self._amount(name, point) for name in self.names] for point in points], dtype=float)

    def _amount(self, name: str, point: Point) -> float:
        count = self.metrics[name][point][0]
        if name == BLOCKS:
            return count
        operation, _, metric = name.partition(" ")
        row = next((row for row in rows(operation) if metric in ("calls", row.metric)), None)
        return count * (1.0 if row is None else self._factor(row, operation, metric, point))

    def _factor(self, row: Row, operation: str, metric: str, point: Point) -> float:
        """Return what a call or a byte is multiplied with, by Table I of the paper."""
        sizes = self.metrics.get(f"{operation} size")
        ranks = sizes[point][0] if sizes else point.number(self.ranks) if self.ranks else 2.0
        rounds, others = float(np.log2(max(ranks, 1.0))), max(ranks - 1.0, 0.0)
        if metric == "calls":
            return rounds if row.tree or row.rounds else others if row.partners else 1.0
        return rounds if row.rounds else others / max(ranks, 1.0) if row.fraction else 1.0


def _explained(
    callpath: str,
    kind: Category,
    times: Mapping[Point, tuple[float, ...]],
    work: _Work,
    points: Sequence[Point],
    further: Sequence[Point],
) -> Explained | None:
    """Return what counts explain of one call path; None without enough points."""
    measured = [point for point in points if times[point] and np.median(times[point]) > 0]
    amounts = work.at(measured)
    if amounts is None or len(measured) < len(work.names) + _SPARE or not amounts.any():
        return None
    seconds = np.array([float(np.median(times[point])) for point in measured])
    prices = _prices(amounts, seconds)
    return Explained(
        callpath=callpath,
        category=kind,
        counts=work.names,
        points=tuple(measured),
        seconds=seconds,
        explained=np.minimum(amounts @ prices, seconds),
        beyond=dict(_ahead(work, prices, further)),
    )


def _ahead(work: _Work, prices: Floats, points: Sequence[Point]) -> Iterator[tuple[Point, float]]:
    for point in points:
        amounts = work.at([point])
        if amounts is not None:
            yield point, float((amounts @ prices)[0])


def _prices(amounts: Floats, seconds: Floats) -> Floats:
    """Return the prices, not negative, by which work explains most of the times, and nowhere more than these.

    A linear program: the shares of the times that are explained have the largest sum.
    """
    shares = amounts / seconds[:, None]
    scale = np.maximum(shares.max(axis=0), 1e-300)
    scaled = shares / scale
    found = linprog(-scaled.sum(axis=0), A_ub=scaled, b_ub=np.ones(len(seconds)), method="highs")
    prices = np.zeros(len(scale)) if found.x is None else np.asarray(found.x, dtype=float)
    return np.where(amounts.any(axis=0), prices / scale, 0.0)

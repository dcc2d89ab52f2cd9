"""Points drawn at random from spaces of any size: value by value, without walking the space.

Numeric parameters with a wide positive range (inputs and the machine) are drawn log-uniformly, all others
(options) uniformly, as the data sets of Hutter and Solomonik, Application Performance Modeling via Tensor
Completion, section 6.0.3. A combination that is no point of the space is drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, Self, runtime_checkable

import numpy as np

from orchestrator.errors import CampaignError
from orchestrator.models.base import Floats
from orchestrator.strategies.base import Space, View
from orchestrator.strategies.candidates import Candidate, chunks, open_points, single_runs
from orchestrator.types import Parameter, Point
from orchestrator.units import did_you_mean

# Ratio of the largest and the smallest value from which on a range is wide: a decade. Chosen by hand.
_WIDE = 10.0
SMALL = 4096
"""Combinations up to which a space is walked once instead: then no point is missed, and none drawn twice."""
_AT_ONCE = 1024  # combinations that are drawn together
MOST_VAIN = 50_000
"""Draws in a row without a new point after which there are taken to be no more, or hardly any."""
_LOOKED_AT = 20_000  # points drawn for one round at most: others may be too expensive, or failed


@runtime_checkable
class Listed(Protocol):
    """A space that is a list of points, such as those of a data set."""

    @property
    def points(self) -> Sequence[Point]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Law:
    """How points are drawn: a probability for every value of every parameter."""

    parameters: tuple[Parameter, ...]  # of the space
    weights: tuple[Floats, ...]  # per parameter, the probability of each of its values
    logarithmic: tuple[str, ...]  # names of the parameters that are drawn log-uniformly

    @classmethod
    def of(cls, parameters: Sequence[Parameter], uniform: Collection[str], log: Collection[str]) -> Self:
        """Return the law for parameters; what the user does not name follows the rule of `is_wide`.

        Raises
        ------
        CampaignError
            If ``uniform`` or ``log`` name no parameter, the same one, or one without positive numbers.
        """
        _check(parameters, uniform, log)
        chosen = [p for p in parameters if p.name in log or (p.name not in uniform and is_wide(p))]
        weights = [_log_uniform(p) if p in chosen else np.full(len(p.values), 1.0) for p in parameters]
        return cls(
            tuple(parameters), tuple(item / item.sum() for item in weights), tuple(p.name for p in chosen)
        )

    def describe(self) -> str:
        """Say how points are drawn: ``drawn at random (log-uniform in m, n)``."""
        how = f"log-uniform in {', '.join(self.logarithmic)}" if self.logarithmic else "uniform"
        return f"drawn at random ({how})"

    def points(self, space: Space, rng: np.random.Generator) -> Iterator[Point]:
        """Draw different points of the space until hardly any are left.

        All points of a listed space are equally likely: how a data set was drawn, it says itself.
        """
        if isinstance(space, Listed):
            known = space.points
            return (known[index] for index in rng.permutation(len(known)))
        if math.prod(len(parameter.values) for parameter in self.parameters) <= SMALL:
            return self._of_few(space, rng)
        return self._of_many(space, rng)

    def _of_few(self, space: Space, rng: np.random.Generator) -> Iterator[Point]:
        """Yield all points in random order.

        Weighted sampling without replacement: the largest of log(u) / w first (Efraimidis and Spirakis).
        """
        points = list(space)
        place = [{value: index for index, value in enumerate(p.values)} for p in self.parameters]
        weights = np.array(
            [
                math.prod(w[at[v]] for w, at, (_, v) in zip(self.weights, place, point.items, strict=True))
                for point in points
            ]
        )
        keys = np.log(rng.random(len(points))) / weights
        return (points[index] for index in np.argsort(-keys, kind="stable"))

    def _of_many(self, space: Space, rng: np.random.Generator) -> Iterator[Point]:
        """Yield points as they are drawn; combinations outside the space are rejected."""
        names = [parameter.name for parameter in self.parameters]
        seen: set[Point] = set()
        vain = 0
        while vain < MOST_VAIN:
            columns = [
                rng.choice(len(p.values), size=_AT_ONCE, p=weights)
                for p, weights in zip(self.parameters, self.weights, strict=True)
            ]
            for row in zip(*columns, strict=True):
                values = [p.values[index] for p, index in zip(self.parameters, row, strict=True)]
                point = Point(tuple(zip(names, values, strict=True)))
                if point in seen or point not in space:
                    vain += 1
                    continue
                vain = 0
                seen.add(point)
                yield point


def is_wide(parameter: Parameter) -> bool:
    """Return whether a parameter is drawn log-uniformly by default: positive numbers over a decade."""
    if parameter.categorical or str in map(type, parameter.values):
        return False
    numbers = np.array(parameter.values, float)  # there may be a million of them
    return bool(numbers.max() >= _WIDE * numbers.min() > 0)


def _check(parameters: Sequence[Parameter], uniform: Collection[str], log: Collection[str]) -> None:
    known = {parameter.name: parameter for parameter in parameters}
    for option, names in (("uniform", uniform), ("log", log)):
        for name in names:
            if name not in known:
                raise CampaignError(
                    f"strategy.{option}: unknown parameter {name!r}; {did_you_mean(name, known)}"
                )
    for name in log:
        if name in uniform:
            raise CampaignError(f"strategy.log: {name} is under strategy.uniform, too; keep one of them")
        values = known[name].values
        if known[name].categorical or any(isinstance(value, str) or value <= 0 for value in values):
            raise CampaignError(f"strategy.log: {name} has values that are no positive numbers; remove it")


def _log_uniform(parameter: Parameter) -> Floats:
    """Return weights by the width of what is nearest to each value on a logarithmic scale."""
    logs = np.log(np.array(parameter.values, float))
    if len(logs) == 1:
        return np.ones(1)
    order = np.argsort(logs)
    gaps = np.diff(logs[order])
    halves = np.concatenate([gaps[:1], gaps, gaps[-1:]])  # the ends reach as far outside as inside
    weights = np.empty(len(logs))
    weights[order] = (halves[:-1] + halves[1:]) / 2
    return weights


def drawn_runs(view: View, law: Law, number: int, rng: np.random.Generator, new: bool) -> list[Candidate]:
    """Draw points at which one repetition more is affordable; ``new``: only points without any."""
    points = open_points(view, islice(law.points(view.space, rng), _LOOKED_AT))
    if new:
        points = (point for point in points if not view.done.get(point))
    found: list[Candidate] = []
    for chunk in chunks(points, max(number, 64)):
        found += single_runs(view, chunk)
        if len(found) >= number:
            break
    return found[:number]

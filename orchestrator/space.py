"""The search space: parameters and constraints, walked lazily.

The product of the parameters' values is walked depth first, and every constraint is applied as soon as
all its names have values, so what it excludes is cut off as a whole. Nothing is stored. Of spaces that are
too large to be walked, points are drawn at random instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from orchestrator.expressions import Expression
from orchestrator.types import Parameter, Point, Value

MOST_COMBINATIONS = 10**8
"""Combinations up to which strategies may walk a space."""

_MOST_VISITED = 1_000_000  # values that a description looks at before it draws combinations instead
_DRAWN = 20_000  # combinations that such a description draws
_CERTAIN = 100  # points among them from which on their number is known to 10 %
# Upper limits of what is expected where none was found, or one, with a probability of 95 % (Poisson).
_UPPER = 2.996, 4.744
_SEED = 0  # of what a description draws: it is the same every time

Check = Callable[[Mapping[str, Value]], str | None]
Solve = Callable[[Mapping[str, Value]], int | float | None]
Exclude = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a search space holds.

    Attributes
    ----------
    combinations
        Product of the numbers of values.
    feasible
        Points of the space.
    infeasible
        Combinations excluded, by constraint or by the application's reason (an example of it, where
        reasons differ in their figures only).
    values
        Per parameter, the values that occur in points, in order.
    last
        The reason that excluded combinations last, i.e. after every other one; None if none did.
    drawn
        0 where the figures are exact. Else the space is too large to be walked, and they are estimates by so
        many combinations, drawn at random; ``values`` are those of the points among these.
    at_most
        Points that there are at most, with a probability of 95 %, where so few of the combinations drawn are
        points that ``feasible`` says nothing; else None.
    """

    combinations: int
    feasible: int
    infeasible: Mapping[str, int]
    values: Mapping[str, tuple[Value, ...]]
    last: str | None
    drawn: int = 0
    at_most: float | None = None

    @property
    def bounds(self) -> dict[str, tuple[Value, Value]]:
        """Per parameter, the first and last value that occurs in points; empty for an empty space."""
        return {name: (values[0], values[-1]) for name, values in self.values.items() if values}


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A value that follows from others at every point, such as the nodes from ranks and ranks per node.

    Attributes
    ----------
    name
        Under which constraints and the application see it.
    needs
        Names of the values that it follows from.
    reason
        Why a combination is excluded where there is no such value: the equation as it is written.
    solve
        Returns the value, from those of ``needs``; None where there is none.
    """

    name: str
    needs: frozenset[str]
    reason: str
    solve: Solve


class SearchSpace:
    """All points that satisfy every constraint and the application's own check.

    Iterates in lexicographic order of the parameters' values; see `orchestrator.strategies.base.Space`.

    Parameters
    ----------
    parameters
        In the order of the points' coordinates.
    constraints
        Compiled over the names of parameters and settings.
    settings
        Fixed values that constraints and ``check`` see beside the point's.
    check
        Why a point is impossible, or None.
    derived
        Values that follow from those of points and settings, each after those that it needs. Constraints and
        ``check`` see them, points do not have them.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        constraints: Sequence[Expression] = (),
        settings: Mapping[str, Value] | None = None,
        check: Check = lambda values: None,
        derived: Sequence[Derived] = (),
    ):
        self._parameters = tuple(parameters)
        self._names = tuple(parameter.name for parameter in self._parameters)
        self._settings = dict(settings or {})
        self._check = check
        depths = _depths(self._names, derived)
        self._levels = _by_depth(self._names, depths, constraints)
        self._derived = tuple(
            tuple(item for item in derived if depths[item.name] == depth) for depth in range(len(self._names))
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters, in the order of the points' coordinates."""
        return self._parameters

    @property
    def combinations(self) -> int:
        """Return the number of combinations before any constraint."""
        return math.prod(len(parameter.values) for parameter in self._parameters)

    def __iter__(self) -> Iterator[Point]:
        return self.within({})

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        """Walk the points at which some parameters have the given values; no others are looked at."""
        return map(self._point, self._walk(_ignore, fixed))

    def __contains__(self, point: object) -> bool:
        if not isinstance(point, Point) or tuple(name for name, _ in point.items) != self._names:
            return False
        if any(value not in allowed for (_, value), allowed in zip(point.items, self._allowed, strict=True)):
            return False
        return self._excluded({**self._settings, **point.as_dict()}, _ignore) is None

    def some(self, walked: int = 100_000, drawn: int = _DRAWN) -> Iterator[Point]:
        """Yield the first points, and if these are not all, such that are drawn from the whole space, too.

        Parameters
        ----------
        walked
            Most points that are walked, a tenth of it where there are certainly millions; ten times as many
            combinations are looked at.
        drawn
            Combinations that are drawn uniformly, always the same ones; those that are points are yielded.
        """
        if self._immense:
            walked //= 10
        left = 10 * walked

        def exclude(reason: str, depth: int, order: int) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise _TooManyError

        try:
            for number, values in enumerate(self._walk(exclude)):
                if number == walked:
                    raise _TooManyError
                yield self._point(values)
        except _TooManyError:
            yield from self.drawn(drawn)

    def sampled(self) -> tuple[Iterator[Point], float]:
        """Return all points, or such that are drawn; and how many points of the space each stands for."""
        if not self.describe().drawn:
            return iter(self), 1.0
        return self.drawn(_DRAWN), self.combinations / _DRAWN

    def drawn(self, number: int) -> Iterator[Point]:
        """Yield those of so many combinations that are points; drawn uniformly, always the same ones."""
        return (self._point(values) for values in self._draws(number, _ignore))

    def _draws(self, number: int, exclude: Exclude) -> Iterator[dict[str, Value]]:
        rng = np.random.default_rng(_SEED)
        lengths = [len(parameter.values) for parameter in self._parameters]
        for row in rng.integers(0, lengths, size=(number, len(lengths))).tolist():
            chosen = {p.name: p.values[index] for p, index in zip(self._parameters, row, strict=True)}
            values = {**self._settings, **chosen}
            if self._excluded(values, exclude) is None:
                yield values

    def _point(self, values: Mapping[str, Value]) -> Point:
        return Point(tuple([(name, values[name]) for name in self._names]))

    def _excluded(self, values: dict[str, Value], exclude: Exclude) -> str | None:
        """Return why a combination is no point, or None; adds the derived values."""
        for depth, level in enumerate(self._levels):
            reason, order = _derive(self._derived[depth], values), -1
            if reason is None:
                order, reason = next(
                    ((order, item.text) for order, item in enumerate(level) if not item(values)), (-1, None)
                )
            if reason is not None:
                exclude(reason, depth, order)
                return reason
        reason = self._check(values)
        if reason is not None:
            exclude(reason, len(self._levels) - 1, len(self._levels[-1]))
        return reason

    def size(self) -> int:
        """Return the number of points, without storing any; an estimate where `describe` gives estimates."""
        return self.describe().feasible

    def describe(self) -> Description:
        """Count points and excluded combinations by reason: one walk, or draws; remembered."""
        return self._description

    def _walk(self, exclude: Exclude, fixed: Mapping[str, Value] | None = None) -> Iterator[dict[str, Value]]:
        """Yield one mapping, changed in place, with the settings and the values of each point in turn."""
        values = dict(self._settings)
        walked = {p.name: p.values for p in self._parameters} | {n: (v,) for n, v in (fixed or {}).items()}
        deepest = len(self._parameters) - 1

        def descend(depth: int) -> Iterator[dict[str, Value]]:
            name, level, derived = self._names[depth], self._levels[depth], self._derived[depth]
            for value in walked[name]:
                values[name] = value
                if derived and (reason := _derive(derived, values)) is not None:
                    exclude(reason, depth, -1)
                    continue
                for order, constraint in enumerate(level):
                    if not constraint(values):
                        exclude(constraint.text, depth, order)
                        break
                else:
                    if depth < deepest:
                        yield from descend(depth + 1)
                    elif (reason := self._check(values)) is None:
                        yield values
                    else:
                        exclude(reason, depth, len(level))

        return descend(0)

    @cached_property
    def _allowed(self) -> tuple[frozenset[Value], ...]:
        return tuple(frozenset(parameter.values) for parameter in self._parameters)

    @property
    def _immense(self) -> bool:
        """Whether a walk through all points certainly ends early: so many of the combinations are points."""
        if self.combinations <= _MOST_VISITED:
            return False
        certain = _CERTAIN * self.combinations / _DRAWN
        return self._estimate.feasible >= max(1.5 * _MOST_VISITED, certain)

    @cached_property
    def _description(self) -> Description:
        if self._immense:
            return self._estimate
        lengths = [len(parameter.values) for parameter in self._parameters]
        tally = _Tally([math.prod(lengths[depth + 1 :]) for depth in range(len(lengths))])
        visited = 0

        def exclude(reason: str, depth: int, order: int) -> None:
            nonlocal visited
            visited += 1
            if visited > _MOST_VISITED:
                raise _TooManyError
            tally.exclude(reason, depth, order)

        seen: dict[str, set[Value]] = {name: set() for name in self._names}
        feasible = 0
        try:
            for values in self._walk(exclude):
                feasible += 1
                if feasible + visited > _MOST_VISITED:
                    raise _TooManyError
                for name, known in seen.items():
                    known.add(values[name])
        except _TooManyError:
            return self._estimate
        return self._described(feasible, tally.named(), seen, tally.last)

    @cached_property
    def _estimate(self) -> Description:
        """Estimates by combinations that are drawn; a space of which none is a point has one."""
        tally = _Tally([1] * len(self._names))
        seen: dict[str, set[Value]] = {name: set() for name in self._names}
        found = 0
        for values in self._draws(_DRAWN, tally.exclude):
            found += 1
            for name, known in seen.items():
                known.add(values[name])
        each = self.combinations / _DRAWN
        excluded = {reason: round(number * each) for reason, number in tally.named().items()}
        counted = self._described(max(round(found * each), 1), excluded, seen, tally.last)
        at_most = _UPPER[found] * each if found < len(_UPPER) else None
        return replace(counted, drawn=_DRAWN, at_most=at_most)

    def _described(
        self,
        feasible: int,
        infeasible: Mapping[str, int],
        seen: Mapping[str, Collection[Value]],
        last: str | None,
    ) -> Description:
        values = {p.name: tuple(v for v in p.values if v in seen[p.name]) for p in self._parameters}
        return Description(
            combinations=self.combinations,
            feasible=feasible,
            infeasible=infeasible,
            values=values,
            last=last,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories:
    """Listed points, also by their categorical values: of 100,000 points, each may have a thousandth.

    Attributes
    ----------
    points
        All, in their order.
    names
        The categorical parameters.
    each
        The points with the same values of these, in the same order.
    """

    points: Sequence[Point]
    names: tuple[str, ...]
    each: Mapping[tuple[Value, ...], Sequence[Point]]

    @classmethod
    def of(cls, parameters: Sequence[Parameter], points: Sequence[Point]) -> Self:
        """Arrange points."""
        names = tuple(parameter.name for parameter in parameters if parameter.categorical)
        each: dict[tuple[Value, ...], list[Point]] = {}
        for point in points:
            each.setdefault(tuple(point[name] for name in names), []).append(point)
        return cls(points=points, names=names, each=each)

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        """Walk the points at which some parameters have the given values."""
        points, others = self.points, dict(fixed)
        if all(name in fixed for name in self.names):
            points = self.each.get(tuple(others.pop(name) for name in self.names), ())
        return (point for point in points if all(point[name] == value for name, value in others.items()))


class ListedSpace(SearchSpace):
    """A search space whose points are known: it is walked along their list, and nothing else is looked at.

    Parameters
    ----------
    space
        The space.
    points
        Coordinates of all its points, in any order; others than those of its points are left out.
    """

    def __init__(self, space: SearchSpace, points: Collection[tuple[Value, ...]]):
        self.__dict__.update(space.__dict__)
        self.__dict__.pop("_description", None)  # of the whole space, where somebody asked for it before
        self._whole = space
        place = [{value: index for index, value in enumerate(p.values)} for p in self._parameters]
        known = [c for c in points if all(v in at for v, at in zip(c, place, strict=True))]
        known.sort(key=lambda c: [at[v] for v, at in zip(c, place, strict=True)])
        # Numbers as the campaign writes them: 8, not 8.0.
        own = ([p.values[at[v]] for p, v, at in zip(self._parameters, c, place, strict=True)] for c in known)
        listed = (Point(tuple(zip(self._names, values, strict=True))) for values in own)
        self.points = tuple(point for point in dict.fromkeys(listed) if point in space)
        self._listed = frozenset(self.points)
        self._categories = Categories.of(self._parameters, self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        """Return the points at which some parameters have the given values."""
        return self._categories.within(fixed)

    def __contains__(self, point: object) -> bool:
        return point in self._listed

    def some(self, walked: int = 0, drawn: int = 0) -> Iterator[Point]:
        """Return all points."""
        return iter(self.points)

    def sampled(self) -> tuple[Iterator[Point], float]:
        """Return all points, of which each stands for itself."""
        return iter(self.points), 1.0

    @cached_property
    def _description(self) -> Description:
        whole = self._whole.describe()
        seen = {name: {point[name] for point in self.points} for name in self._names}
        found = self._described(len(self.points), whole.infeasible, seen, whole.last)
        return replace(found, drawn=whole.drawn)


class _TooManyError(Exception):
    """A space has more points or combinations than are looked at."""


def _derive(derived: Sequence[Derived], values: dict[str, Value]) -> str | None:
    """Add derived values to ``values``; return why there is none, or None."""
    for item in derived:
        found = item.solve(values)
        if found is None:
            return item.reason
        values[item.name] = found
    return None


def _ignore(reason: str, depth: int, order: int) -> None:
    pass


class _Tally:
    """Excluded combinations by reason. Reasons that differ in their figures only count as one."""

    MOST_REASONS = 50

    def __init__(self, below: Sequence[int]):
        self._below = below  # combinations below one value, per depth
        self._counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}
        self._last = (-1, -2)
        self.last: str | None = None

    def exclude(self, reason: str, depth: int, order: int) -> None:
        pattern = re.sub(r"\d+(?:\.\d+)?", "#", reason)
        if pattern not in self._counts and len(self._counts) >= self.MOST_REASONS:
            pattern = reason = "other reasons"
        self._counts[pattern] = self._counts.get(pattern, 0) + self._below[depth]
        self._examples.setdefault(pattern, reason)
        if (depth, order) > self._last:
            self._last, self.last = (depth, order), reason

    def named(self) -> dict[str, int]:
        return {self._examples[pattern]: count for pattern, count in self._counts.items()}


def _depths(names: Sequence[str], derived: Sequence[Derived]) -> dict[str, int]:
    """Return the depth from which on each parameter and each derived value is known."""
    depth = {name: index for index, name in enumerate(names)}
    for item in derived:
        depth[item.name] = max((depth.get(name, 0) for name in item.needs), default=0)
    return depth


def _by_depth(
    names: Sequence[str], depth: Mapping[str, int], constraints: Sequence[Expression]
) -> tuple[tuple[Expression, ...], ...]:
    """Return, per depth, the constraints whose names all have values there but not before."""
    levels: list[list[Expression]] = [[] for _ in names]
    for constraint in constraints:
        levels[max((depth.get(name, 0) for name in constraint.names), default=0)].append(constraint)
    return tuple(tuple(level) for level in levels)

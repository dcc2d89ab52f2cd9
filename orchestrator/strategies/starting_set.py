"""The starting set that strategies share (Ritter et al., Cost-Effective Empirical Performance Modeling,
section II and figures 1 to 3).

Per parameter the five cheapest points along a line on which the other parameters are constant at their
lowest values, plus one point per parameter off those lines, the cheapest available.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

import numpy as np

from orchestrator.strategies.base import Choice, Strategy, View
from orchestrator.strategies.candidates import cost_text, initial_runs, run_cost, within_budget
from orchestrator.types import Parameter, Point, Value, assigned, format_value

# Points per parameter in the papers' starting set (docs/strategies.md).
POINTS_PER_LINE = 5
# Points that are kept after the first walk over them, some ten megabytes: an equation among many parameters
# leaves few of millions of combinations.
_KEPT = 20_000

_Constants = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class _Slice:
    """The usable points of one combination of categorical values, and what they cost."""

    view: View
    category: Mapping[str, Value]

    @property
    def varying(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.view.space.parameters if not p.categorical and len(p.values) > 1)

    def cost(self, point: Point) -> float:
        return run_cost(self.view, point)

    def usable(self, point: Point) -> bool:
        return point != self.view.evaluation_point and point not in self.view.infeasible

    def points(self) -> Iterator[Point]:
        """Walk the whole slice; once, if its points are few enough to be kept."""
        return self._walk() if self._kept is None else iter(self._kept)

    @cached_property
    def _kept(self) -> tuple[Point, ...] | None:
        points = tuple(islice(self._walk(), _KEPT + 1))
        return points if len(points) <= _KEPT else None

    def _walk(self) -> Iterator[Point]:
        return filter(self.usable, self.view.space.within(self.category))

    @property
    def lowest(self) -> dict[str, Value]:
        """The lowest value of every numeric parameter, in this category."""
        numeric = (p for p in self.view.space.parameters if not p.categorical)
        return {p.name: _lowest(p) for p in numeric} | dict(self.category)

    def line(
        self, varied: Parameter, others: Mapping[str, Value], values: Sequence[Value] | None = None
    ) -> Iterator[Point]:
        """Walk one line, or some of its values; nothing else is looked at, however large the space is."""
        for value in varied.values if values is None else values:
            coordinates = {
                p.name: value if p == varied else others[p.name] for p in self.view.space.parameters
            }
            point = Point.of(coordinates)
            if point in self.view.space and self.usable(point):
                yield point


def starting_points(
    view: View, per_line: int = POINTS_PER_LINE, extra: int | None = None
) -> dict[Point, str]:
    """Return the points of the starting set, each with its role.

    The category of the evaluation point gets a whole starting set, and every category if there is no such
    point. Models of categories may share their form, so the other combinations of categorical values get a
    part of one: the ends of each line and one point off the lines, from which coefficients follow (of a
    single line the middle, too).

    Where constraints leave the lowest line without ``per_line`` points (or all values, if there are fewer),
    the line of a parameter is the one that has the most points and then is the cheapest. Where even the best
    lines show fewer values of a parameter than the space has, the cheapest points at further values are
    added: a model needs different values.

    The lowest lines need one look at each of their points, the points off the lines one pass over the
    space, constrained lines up to two further passes per parameter (none if all points can be kept); memory
    is needed for as many numbers as there are lines, only in the constrained case.

    Parameters
    ----------
    view
        What is known.
    per_line
        Points per line.
    extra
        Points off the lines; one per varying numeric parameter unless given.
    """
    chosen: dict[Point, str] = {}
    for number, category in enumerate(_categories(view)):
        part = _Slice(view, category)
        whole = number == 0 or view.evaluation_point is None
        lines = {parameter.name: _best_line(part, parameter, per_line) for parameter in part.varying}
        if not whole:
            lines = {name: _ends(points, len(lines) == 1) for name, points in lines.items()}
        selection: dict[Point, str] = {}
        for name, points in lines.items():
            for point in points:
                selection.setdefault(point, f"starting set, line of {name}: {_constants(point, name)}")
        wanted = len(part.varying) if extra is None else extra
        wanted = wanted if whole else min(wanted, 1)
        for point in _off_lines(part, lines, wanted):
            selection.setdefault(point, "starting set: cheapest point off the lines")
        for name, points in lines.items():
            if whole and len(points) < per_line:
                selection.update(_further_values(part, name, selection, per_line))
        chosen.update(selection)
    return chosen


def first_round(view: View, per_line: int = POINTS_PER_LINE, extra: int | None = None) -> list[Choice]:
    """Return the runs missing from the starting set, cheapest first, as far as the budget reaches.

    Empty when the starting set has its initial repetitions already (measurements brought along).
    """
    roles = starting_points(view, per_line, extra)
    runs = [run for run in (initial_runs(view, point) for point in roles) if run.repetitions > 0]
    runs.sort(key=lambda run: run.seconds)
    return within_budget(view, runs, lambda run: f"{roles[run.point]}; {cost_text(view, run)}")


def after_starting_set(choose: Strategy) -> Strategy:
    """Return the strategy that begins with what is missing of the starting set, and then chooses."""

    def propose(view: View, rng: np.random.Generator) -> Sequence[Choice]:
        start = first_round(view) if view.round == 1 else []
        return start or choose(view, rng)

    return propose


def spread_lines(view: View) -> list[Point]:
    """Return points spread evenly over all values of each parameter, the others at their lowest ones.

    Unlike those of the starting set they reach the largest values, whatever these cost. In the category of
    the evaluation point, or in every one; points that must not be measured are left out without a substitute.
    """
    chosen: dict[Point, None] = {}
    categories = _categories(view)
    for category in categories if view.evaluation_point is None else categories[:1]:
        part = _Slice(view, category)
        for varied in part.varying:
            values = sorted(varied.values, key=float)
            steps = POINTS_PER_LINE - 1
            places = sorted({round(k * (len(values) - 1) / steps) for k in range(POINTS_PER_LINE)})
            line = part.line(varied, part.lowest, [values[place] for place in places])
            chosen.update(dict.fromkeys(line))
    return list(chosen)


def _categories(view: View) -> list[dict[str, Value]]:
    """Return every combination of categorical values, that of the evaluation point first."""
    categorical = [parameter for parameter in view.space.parameters if parameter.categorical]
    names = [parameter.name for parameter in categorical]
    combinations = [
        dict(zip(names, values, strict=True)) for values in product(*(p.values for p in categorical))
    ]
    target = view.evaluation_point
    if target is not None:
        combinations.sort(key=lambda category: any(target[name] != v for name, v in category.items()))
    return combinations


def _best_line(part: _Slice, varied: Parameter, per_line: int) -> list[Point]:
    points = heapq.nsmallest(per_line, part.line(varied, part.lowest), key=part.cost)
    if len(points) == min(per_line, len(varied.values)):
        return points
    lines: dict[_Constants, list[float]] = {}  # the costs of its cheapest points, ascending
    for point in part.points():
        constants = tuple(item for item in point.items if item[0] != varied.name)
        insort(costs := lines.setdefault(constants, []), part.cost(point))
        del costs[per_line:]
    if not lines:
        return []
    best = min(lines, key=lambda constants: (-len(lines[constants]), sum(lines[constants])))
    return heapq.nsmallest(per_line, part.line(varied, dict(best)), key=part.cost)


def _ends(points: list[Point], middle: bool) -> list[Point]:
    """Return the first and the last of some points, and maybe the one between them."""
    places = {0, len(points) // 2, len(points) - 1} if middle else {0, len(points) - 1}
    return [points[place] for place in sorted(places)] if points else []


def _lowest(parameter: Parameter) -> Value:
    return min(parameter.values, key=float)


def _off_lines(part: _Slice, lines: Mapping[str, list[Point]], number: int) -> list[Point]:
    """Return the cheapest points that lie on no line (the whole line, not only its chosen points)."""
    through = [(name, points[0]) for name, points in lines.items() if points]

    def off(point: Point) -> bool:
        return not any(_same_line(point, on, name) for name, on in through)

    return heapq.nsmallest(number, filter(off, part.points()), key=part.cost)


def _same_line(a: Point, b: Point, varied: str) -> bool:
    return all(x == y for x, y in zip(a.items, b.items, strict=True) if x[0] != varied)


def _further_values(part: _Slice, name: str, selection: Mapping[Point, str], number: int) -> dict[Point, str]:
    """Return the cheapest points at values of a parameter not selected yet, up to ``number`` values."""
    seen = {point[name] for point in selection}
    best: dict[Value, tuple[float, Point]] = {}
    for point in part.points():
        if point[name] not in seen:
            cost = part.cost(point)
            if point[name] not in best or cost < best[point[name]][0]:
                best[point[name]] = (cost, point)
    further = heapq.nsmallest(max(number - len(seen), 0), best.values(), key=lambda entry: entry[0])
    return {
        point: f"starting set: no line has {number} values of {name}, this is the cheapest point "
        f"with {name}={format_value(point[name])}"
        for _, point in further
    }


def _constants(point: Point, varied: str) -> str:
    others = assigned(item for item in point.items if item[0] != varied)
    return f"{others} constant" if others else "the only parameter"

"""Points beyond the ranges of a search space, towards the evaluation point: what wider ranges would buy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, product

from orchestrator.strategies.base import View
from orchestrator.types import Parameter, Point, Value

# Of a parameter, values within its range and beyond it that are combined with those of others; and
# combinations that are looked at. Chosen by hand; not derived.
_WITHIN, _BEYOND = 3, 3
_MOST = 4000


def points_beyond(view: View, aim: Point) -> Iterator[Point]:
    """Yield feasible points that have values beyond those of the search space, up to those of P₊.

    P₊ itself is none of them. Beyond a space whose points are listed there is nothing.
    """
    beyond = {p.name: values_beyond(p, aim[p.name]) for p in view.space.parameters}
    values = [beyond[p.name] + _within(p, aim[p.name]) for p in view.space.parameters]
    for combination in islice(product(*values), _MOST):
        named = dict(zip(beyond, combination, strict=True))
        if any(value in beyond[name] for name, value in named.items()):
            yield from (point for point in view.space.within(named) if point != aim)


def values_beyond(parameter: Parameter, aim: Value) -> tuple[Value, ...]:
    """Return values between the outermost one of a parameter and that of P₊, which is the last of them.

    They continue the parameter's values: by the last step where the last two are equal, else by the ratio.
    """
    if parameter.categorical or isinstance(aim, str):
        return ()
    known = sorted(map(float, parameter.values))
    if known[0] <= aim <= known[-1]:
        return ()
    if aim < known[0]:
        known.reverse()
    last, before = known[-1], known[-2] if len(known) > 1 else known[-1]
    even = len(known) > 2 and math.isclose(last - before, before - known[-3])
    if not even and last * before > 0 and last * aim > 0 and last != before:
        steps = math.log(aim / last) / math.log(last / before)
        reached = [last * (last / before) ** k for k in _some(steps)]
    else:
        steps = (aim - last) / (last - before) if last != before else 0.0
        reached = [last + k * (last - before) for k in _some(steps)]
    whole = all(isinstance(value, int) for value in parameter.values)
    return (*(round(value) if whole else value for value in reached), aim)


def _some(steps: float) -> list[int]:
    """Return a few numbers of steps, evenly spread, below so many."""
    whole = math.ceil(steps - 1e-9) - 1
    return sorted({math.ceil(whole * k / _BEYOND) for k in range(1, _BEYOND)} - {0})


def _within(parameter: Parameter, aim: Value) -> tuple[Value, ...]:
    """Return the smallest, a middle and the largest value of a parameter; of categories, that of P₊."""
    if parameter.categorical:
        return (aim,)
    known = sorted(parameter.values, key=float)
    picked = {round(k * (len(known) - 1) / (_WITHIN - 1)) for k in range(_WITHIN)}
    return tuple(known[k] for k in sorted(picked))

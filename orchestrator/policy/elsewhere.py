"""What a strategy may choose where a program is known to fail at some points. Pure.

Apart from `failing`, which says where: a look at a campaign needs no strategies, and none of their libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from orchestrator.journal.state import State
from orchestrator.policy.failing import regions, why_not
from orchestrator.policy.regions import Region
from orchestrator.strategies.base import Choice, Nothing, Space
from orchestrator.strategies.drawing import Listed
from orchestrator.types import Parameter, Point, Value


def to_be_tried(choices: Sequence[Choice], state: State) -> Sequence[Choice]:
    """Return the choices that a round may try.

    None is at a point that was given up or is expected to fail: a strategy that insists on such points would
    choose them for ever. At most one run is where a failure would be no surprise: it shows whether.
    """
    if not choices:
        return choices
    known = regions(state)
    possible = [c for c in choices if c.point not in state.infeasible and not why_not(c.point, known)]
    if not possible:
        return Nothing("exhausted", "the strategy chooses only points at which the program fails", False)
    probes = [choice for choice in possible if any(region.explains(choice.point) for region in known)]
    tried = [choice for choice in possible if choice not in probes[1:]]
    return [replace(choice, repetitions=1) if choice in probes else choice for choice in tried]


def without(space: Space, known: Sequence[Region]) -> Space:
    """Return a search space without the points at which a program is expected to fail."""
    if not known:
        return space
    return _ListedRest(space, known) if isinstance(space, Listed) else _Rest(space, known)


class _Rest:
    """What is left of a search space; see `Space`."""

    def __init__(self, space: Space, known: Sequence[Region]):
        self._space = space
        self._known = known

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self._space.parameters

    def __iter__(self) -> Iterator[Point]:
        return filter(self._is_left, self._space)

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        return filter(self._is_left, self._space.within(fixed))

    def __contains__(self, point: object) -> bool:
        return point in self._space and self._is_left(point)

    def _is_left(self, point: object) -> bool:
        return not any(point in region for region in self._known)


class _ListedRest(_Rest):
    """What is left of a list of points; see `Listed`."""

    @cached_property
    def points(self) -> tuple[Point, ...]:
        return tuple(self)

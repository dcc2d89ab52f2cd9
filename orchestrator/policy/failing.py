"""Where a program does not run, as far as failures tell, and what follows for a campaign. Pure.

A program that needs too much memory at large sizes, or does not converge there, fails at every such point. A
campaign that learns it from the first of them spends its budget elsewhere. So points are set aside that are
beyond failed ones in the fewest parameters in which no measured point is, unless chance may arrange failures
so (`orchestrator.policy.region_search`). A program may also fail wherever one parameter is no multiple of
another one, as a size and the ranks that it is divided among.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from orchestrator.journal.state import RunStatus, State
from orchestrator.policy.region_search import search
from orchestrator.policy.regions import Region
from orchestrator.strategies.base import Choice, Nothing, Space
from orchestrator.strategies.drawing import Listed
from orchestrator.types import Parameter, Point, Value

LEFT_OUT = "left out: "


def regions(state: State) -> tuple[Region, ...]:
    """Return where a program is expected to fail, by what was given up and what was measured so far.

    Points that were measured before count as measured. What a `resume` tries again is not known to fail.
    """
    if len(state.infeasible) < 2:
        return ()
    reasons: dict[Point, str] = {}
    measured: set[Point] = set()
    for run, item in state.runs.items():
        if run.kind == "time" and item.status in (RunStatus.MEASURED, RunStatus.DISCARDED):
            measured.add(run.point)
        elif run.kind == "time" and item.status is RunStatus.GIVEN_UP and run.point in state.infeasible:
            reasons[run.point] = re.sub(r" \(\d+ attempts?\)$", "", item.reason)
    known = (item for item in reasons.items() if item[0] not in measured)
    failed = tuple(sorted(known, key=lambda item: item[0].key))
    return search(failed, frozenset(measured))


def warnings(state: State, target: Point | None = None) -> list[str]:
    """Return which points are left out and why, and whether ``target``, P₊, would be one of them."""
    known = regions(state)
    lines = [f"{LEFT_OUT}{region}" for region in known]
    if target is not None and any(target in region for region in known):
        lines.append(
            "the evaluation point is one of these: the program probably fails there, whatever its models say"
        )
    return lines


def why_not(point: Point, known: Collection[Region]) -> str:
    """Return why a run at a point would probably fail; empty where nothing says so."""
    return next((f"{LEFT_OUT}{region}" for region in known if point in region), "")


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
        return Nothing("exhausted", "the strategy chooses only points at which the program fails")
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

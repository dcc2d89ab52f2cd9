"""Where a program does not run, as far as failures tell. Pure.

A program that needs too much memory at large sizes, or does not converge there, fails at every such point. A
campaign that learns it from the first of them spends its budget `elsewhere`. So points are set aside that are
beyond failed ones in the fewest parameters in which no measured point is, unless chance may arrange failures
so (`orchestrator.policy.region_search`). A program may also fail wherever one parameter is no multiple of
another one, as a size and the ranks that it is divided among.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from orchestrator.journal.state import RunStatus, State
from orchestrator.policy.regions import Region
from orchestrator.types import Point

LEFT_OUT = "left out: "


def regions(state: State) -> tuple[Region, ...]:
    """Return where a program is expected to fail, by what was given up and what was measured so far.

    Points that were measured before count as measured. What a `resume` tries again is not known to fail.
    """
    if len(state.infeasible) < 2:
        return ()
    from orchestrator.policy.region_search import search  # numpy, which a look at a campaign seldom needs

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

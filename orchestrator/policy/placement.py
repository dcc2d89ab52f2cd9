"""Which nodes a run is asked onto, so that differences between nodes do not look like scaling: a pure rule.

``same``: all runs at a point have the nodes of its first run. ``nested``: the nodes of the campaign are in
the order in which its runs came to use them, and every run has the first ones. So the nodes of a run are
among those of every larger one. In both cases Slurm chooses nodes only where none are known yet; until
they are, no other run may begin for which they would decide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from orchestrator.journal import nodes
from orchestrator.journal.state import RunState, State
from orchestrator.policy.estimates import PointEstimate
from orchestrator.types import FailureClass, Point, Run

Placement = Literal["any", "same", "nested"]


def nodelist(rule: Placement, state: State, run: Run, count: int) -> tuple[str, ...]:
    """Return the nodes that a run on ``count`` nodes is asked onto: as many, or fewer if not all are known.

    None after a failure of the infrastructure: then Slurm chooses, because the nodes may be the cause.
    """
    if rule == "any" or _was_let_down(state, run):
        return ()
    known = state.node_order if rule == "nested" else state.placements.get(run.point, ())
    excluded = nodes.excluded(state.marks)
    return tuple(name for name in known if name not in excluded)[:count]


def is_held(
    rule: Placement,
    state: State,
    run: Run,
    beside: Collection[Run],
    points: Mapping[Point, PointEstimate],
) -> bool:
    """Return whether a run has to wait for the nodes of another one.

    Parameters
    ----------
    rule, state
        The campaign's rule, and where it stands.
    run
        The run that could begin.
    beside
        Runs that are in flight or begin now.
    points
        What runs occupy.
    """
    if rule == "any" or not beside or _was_let_down(state, run):
        return False
    if rule == "same":
        return not state.placements.get(run.point) and any(item.point == run.point for item in beside)
    return _extends(state, run, points) and any(_extends(state, item, points) for item in beside)


def _extends(state: State, run: Run, points: Mapping[Point, PointEstimate]) -> bool:
    """Return whether a run gets nodes that no run had before."""
    known = points.get(run.point)
    return known is None or len(nodelist("nested", state, run, known.resources.nodes)) < known.resources.nodes


def _was_let_down(state: State, run: Run) -> bool:
    failures = state.runs.get(run, RunState()).failures
    return bool(failures) and failures[-1] is FailureClass.INFRASTRUCTURE

"""Why these points: measured, failed, rejected, infeasible, next and unchosen ones, with cost and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from orchestrator.journal.state import RunState, RunStatus
from orchestrator.policy import failing
from orchestrator.report.page.encoding import place
from orchestrator.report.page.history import History
from orchestrator.report.page.numerals import powers
from orchestrator.resources import core_hours
from orchestrator.types import Point, Run

_MOST_EXCLUDED = 400  # points that the constraints exclude


def points(
    history: History, excluded: Iterable[tuple[Point, str]], space: Iterable[Point]
) -> list[dict[str, Any]]:
    """Return every point that the campaign considered, and those that it never chose.

    Parameters
    ----------
    history
        The course of the campaign.
    excluded
        Points that its space excludes, with the reasons.
    space
        The points of its space; none where they are too many to be shown.
    """
    seen: dict[Point, list[tuple[Run, RunState]]] = {}
    for run, item in history.state.runs.items():
        seen.setdefault(run.point, []).append((run, item))
    described = [_point(point, runs, history) for point, runs in seen.items()]
    rest = (pair for pair in excluded if pair[0] not in seen)
    described += [_unseen(point, "infeasible", reason) for point, reason in islice(rest, _MOST_EXCLUDED)]
    known = failing.regions(history.state)
    for point in space:
        if point not in seen:
            why = failing.why_not(point, known)
            described.append(
                _unseen(point, *(("infeasible", why) if why else ("not chosen", "never chosen")))
            )
    return described


def _point(point: Point, seen: list[tuple[Run, RunState]], history: History) -> dict[str, Any]:
    validation, state = history.state.validation, _state(item.status for _, item in seen)
    runs = sorted(seen, key=lambda pair: (pair[0].kind, pair[0].repetition))
    return {
        "point": place(point),
        "state": state,
        "cost": core_hours(sum(item.cost for _, item in runs)),
        "runs": sum(item.status is RunStatus.MEASURED for _, item in runs),
        "round": history.round_of.get(point),
        "validation": any(run == validation for run, _ in runs),
        "reason": _reason(runs, state, history.reasons),
    }


def _state(statuses: Iterable[RunStatus]) -> str:
    """Return what became of a point whose runs have these statuses."""
    there = set(statuses)
    if RunStatus.MEASURED in there:
        return "measured"
    if there & {RunStatus.WAITING, RunStatus.IN_FLIGHT}:
        return "next"
    return "failed" if there & {RunStatus.GIVEN_UP, RunStatus.FAILED} else "rejected"


def _reason(runs: list[tuple[Run, RunState]], state: str, reasons: Mapping[Run, str]) -> str:
    """Return why a point was chosen, and where it was not measured, why not."""
    chosen = next((reasons[run] for run, _ in runs if reasons.get(run)), "")
    ended = next((item.reason for _, item in runs if item.reason), "")
    return powers("; ".join(filter(None, (chosen, ended if state in ("failed", "rejected") else ""))))


def _unseen(point: Point, state: str, reason: str) -> dict[str, Any]:
    """Return a point at which there is no run."""
    return {
        "point": place(point),
        "state": state,
        "cost": None,
        "runs": 0,
        "round": None,
        "validation": False,
        "reason": reason,
    }

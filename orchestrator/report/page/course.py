"""The course of a campaign: its rounds, its attempts, what was spent when, and what failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from orchestrator.journal.state import RunStatus
from orchestrator.report import event_text
from orchestrator.report.models_document import number
from orchestrator.report.page.history import AttemptCourse, History, Spending
from orchestrator.report.page.numerals import powers
from orchestrator.resources import core_hours
from orchestrator.types import Attempt

_MOST_ATTEMPTS = 3_000  # that are drawn; beyond, measured ones are thinned evenly
_MOST_STEPS = 1_500  # of what was spent when


def rounds(history: History) -> list[dict[str, Any]]:
    """Return what every round spent and gained."""
    return [
        {
            "round": item.event.round,
            "spent": core_hours(item.spent),
            "uncertainty_percent": None if item.event.width is None else number(100 * item.event.width),
            "smape": item.event.smape,
            "points": item.points,
            "improved": item.event.improved if item.event.measured else None,
            "sentence": powers(event_text.describe(item.event)),
            "t": item.time - _start(history),
        }
        for item in history.rounds
    ]


def attempts(history: History) -> list[dict[str, Any]]:
    """Return the attempts in the order of their intents, seconds since the start of the campaign."""
    start = _start(history)
    return [
        {
            "run": attempt.run.id,
            "attempt": attempt.number,
            "kind": attempt.run.kind,
            "node": course.node or None,
            "cores": course.cores,
            "queued": course.intended - start,
            "started": None if course.started is None else course.started - start,
            "finished": None if course.finished is None else course.finished - start,
            "state": course.state,
            "charge": None if course.charge is None else core_hours(course.charge),
            "reason": course.why or None,
        }
        for attempt, course in _drawn(list(history.attempts.items()))
    ]


def _drawn(items: Sequence[tuple[Attempt, AttemptCourse]]) -> list[tuple[Attempt, AttemptCourse]]:
    """Return at most so many attempts: all that did not measure, and some that did."""
    if len(items) <= _MOST_ATTEMPTS:
        return list(items)
    plain = [k for k, (_, course) in enumerate(items) if course.state == "measured"]
    room = max(_MOST_ATTEMPTS - (len(items) - len(plain)), 1)
    step = math.ceil(len(plain) / room)
    gone = set(plain) - set(plain[::step])
    return [item for k, item in enumerate(items) if k not in gone]


def spending(history: History) -> dict[str, Any] | None:
    """Return what was spent, reserved and allowed over time (core-hours), each value until the next time."""
    if not history.spending:
        return None
    rows = _steps(history.spending)
    return {
        "time": [row.time - _start(history) for row in rows],
        "spent": [core_hours(row.spent) for row in rows],
        "reserved": [core_hours(row.reserved) for row in rows],
        "budget": [core_hours(row.budget) for row in rows],
    }


def _steps(found: Sequence[Spending]) -> Sequence[Spending]:
    """Return the rows that are kept: all changes of the budget, the last row, and of the rest so many."""
    if len(found) <= _MOST_STEPS:
        return found
    some = set(np.linspace(0, len(found) - 1, _MOST_STEPS).round().astype(int).tolist())
    changes = {k for k in range(1, len(found)) if found[k].budget != found[k - 1].budget}
    return [found[k] for k in sorted(some | changes | {k - 1 for k in changes})]


def failures(history: History, files: str | None) -> list[dict[str, Any]]:
    """Return failed attempts: class and reason, charge, files, and what became of the run.

    ``files``: the path of the campaign's directory as seen from the report; None in a rehearsal.
    """
    return [
        {
            "run": attempt.run.id,
            "attempt": attempt.number,
            "node": course.node or None,
            "charge": None if course.charge is None else core_hours(course.charge),
            "class": course.failure,
            "reason": course.reason,
            "files": None if files is None else "/".join(filter(None, (files, "runs", attempt.id))),
            "outcome": str(history.state.runs[attempt.run].status),
        }
        for attempt, course in history.attempts.items()
        if course.state == "failed"
    ]


def unmeasured(history: History) -> list[dict[str, Any]]:
    """Return runs that were given up, skipped or discarded, what their attempts were charged, and why."""
    chosen = ((run, history.state.runs[run]) for run in history.reasons)  # in the order of the rounds
    return [
        {"run": run.id, "outcome": str(item.status), "charge": core_hours(item.cost), "reason": item.reason}
        for run, item in chosen
        if item.status in (RunStatus.GIVEN_UP, RunStatus.SKIPPED, RunStatus.DISCARDED)
    ]


def _start(history: History) -> float:
    return history.state.started or 0.0

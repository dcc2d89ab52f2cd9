"""What the live view shows of a campaign beside its status: what is in flight, the queue, expected ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.executors.attempt.worker import RECORD
from orchestrator.journal.state import State
from orchestrator.report.expected_end import seconds_to_next_round
from orchestrator.types import Attempt

_MOST = 100  # attempts in flight whose records are read: more than a screen shows


class InFlightRecords:
    """Where attempts run and since when: their records are read until they say it, then never again."""

    def __init__(self, directory: Path):
        self._runs = directory / "runs"
        self._known: dict[Attempt, tuple[str, str | None]] = {}

    def of(self, attempt: Attempt) -> tuple[str, str | None]:
        """Return its nodes as text, and its start (ISO 8601); empty and None while no record says it."""
        if attempt not in self._known:
            try:
                record = json.loads((self._runs / attempt.id / RECORD).read_bytes())
                self._known[attempt] = str(record.get("nodes") or record["host"]), str(record["started"])
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                return "", None
        return self._known[attempt]

    def keep(self, state: State) -> None:
        """Forget the attempts that are no longer in flight."""
        self._known = {key: value for key, value in self._known.items() if key in state.in_flight}


def document(
    state: State, status: dict[str, Any], events: list[dict[str, str]], records: InFlightRecords, now: float
) -> dict[str, Any]:
    """Return the status with ``in_flight``, ``queue``, ``next_round_seconds`` and the ``events`` of the log.

    Parameters
    ----------
    state, status
        The state, and its status document.
    events
        Those of the log.
    records
        Of the attempts in flight.
    now
        Unix seconds, by the clock of the campaign.
    """
    records.keep(state)
    flights = sorted(state.in_flight.items(), key=lambda pair: (pair[1].since, pair[0].id))
    shown = [
        {
            "run": attempt.run.id,
            "attempt": attempt.number,
            "state": "running" if item.running else "queued" if item.submitted else "submitting",
            "since": item.since,
            "limit": item.limit,
            "cores": item.cores,
            "job": item.handle,
            **dict(zip(("node", "started"), records.of(attempt), strict=True)),
        }
        for attempt, item in flights[:_MOST]
    ]
    return {
        **status,
        "now": now,
        "started": state.started,
        "in_flight": shown,
        "flying": len(flights),
        "queue": [run.id for run in state.waiting[:_MOST]],
        "waiting": len(state.waiting),
        "next_round_seconds": seconds_to_next_round(state, status["models"], now),
        "events": events,
    }

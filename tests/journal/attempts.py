"""Events of attempts, with what most tests do not care for filled in."""

from __future__ import annotations

from typing import Any

from orchestrator.journal import events
from orchestrator.types import Attempt


def attempt_intended(attempt: Attempt, limit: float = 10.0, **more: Any) -> events.AttemptIntended:
    """On one core, for which the limit is reserved."""
    filled: dict[str, Any] = {"name": "x", "cores": 1, "reserved": limit}
    return events.AttemptIntended(attempt=attempt, limit=limit, **filled | more)


def attempt_finished(attempt: Attempt, elapsed: float = 1.0, **more: Any) -> events.AttemptFinished:
    """Charged for as many core-seconds as it took seconds."""
    return events.AttemptFinished(attempt=attempt, elapsed=elapsed, **{"cost": elapsed} | more)

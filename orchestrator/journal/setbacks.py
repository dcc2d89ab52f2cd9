"""Failures of the infrastructure: what they cost, how long to wait after them, when to ask for help. Pure.

An attempt that Slurm, a node or a file system ended is charged, and its run is repeated. It counts neither
for retries nor for the stop rules about failures. Two bounds hold instead: a share of the budget that such
attempts may cost, and a number of tries in a row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

KEPT = 20  # reasons
FIRST_WAIT = 60.0  # seconds, after the second failure in a row
LONGEST_WAIT = 1800.0  # seconds
MOST = 10  # tries in a row that failed: with the waits between them, more than two hours


class Setbacks(NamedTuple):
    """Where a campaign stands with failures of the infrastructure.

    ``charged``: core-seconds of all of them; ``granted``: what was charged when the campaign was last resumed
    after a pause; ``tries``: how often in a row attempts were begun and failed, those that were begun
    together being one try; ``last``: when one failed last (Unix seconds); ``reasons`` of the last ones;
    ``since``: when the first attempt of the present try failed. What was begun before belongs to that try.
    Instants are those of the last try, of which there may be none yet.
    """

    charged: float = 0.0
    granted: float = 0.0
    tries: int = 0
    last: float = 0.0
    reasons: tuple[str, ...] = ()
    since: float = 0.0

    @property
    def wait(self) -> float:
        """Return the seconds to wait after the last failure before anything is begun."""
        if self.tries < 2:
            return 0.0
        return min(FIRST_WAIT * 2.0 ** (self.tries - 2), LONGEST_WAIT)

    @property
    def since_resumed(self) -> float:
        """Return the core-seconds that count against the share of the budget."""
        return self.charged - self.granted


NONE = Setbacks()


def failed(known: Setbacks, cost: float, begun: float, now: float, reason: str) -> Setbacks:
    """Return the setbacks after an attempt that was begun at an instant has failed (Unix seconds)."""
    another = known.tries == 0 or begun >= known.since
    return known._replace(
        charged=known.charged + cost,
        tries=known.tries + another,
        last=now,
        reasons=(*known.reasons, reason)[-KEPT:],
        since=now if another else known.since,
    )


def worked(known: Setbacks) -> Setbacks:
    """Return the setbacks after an attempt whose end was its own: the infrastructure works."""
    return known._replace(tries=0) if known.tries else known


def resumed(known: Setbacks) -> Setbacks:
    """Return the setbacks after somebody resumed a paused campaign: all bounds start again."""
    return known._replace(granted=known.charged, tries=0, reasons=())


def most_frequent(reasons: Sequence[str]) -> tuple[str, int]:
    """Return the reason that occurs most often, and its number; numbers in it do not matter.

    The latest of equal ones is returned; an empty text and 0 without any.
    """
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kinds.setdefault(_kind(reason), []).append(reason)
    largest = max(kinds.values(), key=len, default=[])
    return (largest[-1], len(largest)) if largest else ("", 0)


def alike(items: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Return pairs of a reason and a name grouped by the reason: numbers and directories in it do not matter.

    Each group has the reason of its first item; groups and names keep their order.
    """
    kinds: dict[str, tuple[str, list[str]]] = {}
    for reason, name in items:
        kinds.setdefault(_kind(reason), (reason, []))[1].append(name)
    return list(kinds.values())


def _kind(reason: str) -> str:
    """Return what reasons have in common that differ by numbers, and by the points that directories name."""
    return re.sub(r"\d+", "#", re.sub(r"\S*/attempt-\d+\b", "#", reason))

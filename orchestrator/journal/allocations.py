"""Shared jobs in the accounting: what they reserve of the budget, and what a job costs beside its runs. Pure.

Attempts that share a job have the same ``pack`` in the journal. The reservation of the job is held as a whole
until the last of its attempts is settled and its charge is confirmed: until then Slurm may charge all of it,
whichever attempts have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import immutables

RECENT = 20  # jobs that the medians are taken over


class Hold(NamedTuple):
    """One shared job: core-seconds ``reserved`` in all and ``charged`` so far, ``unsettled`` attempts."""

    reserved: float = 0.0
    charged: float = 0.0
    unsettled: int = 0

    @property
    def left(self) -> float:
        """Return the core-seconds that are still reserved; the rest is spent."""
        return max(0.0, self.reserved - self.charged)


Holds = immutables.Map[str, Hold]
"""By ``pack``."""


def begun(holds: Holds, pack: str, reserved: float) -> Holds:
    """Return the holds with one attempt more; an attempt in a job of its own changes none."""
    if not pack:
        return holds
    hold = holds.get(pack, Hold())
    return holds.set(pack, hold._replace(reserved=hold.reserved + reserved, unsettled=hold.unsettled + 1))


def charged(holds: Holds, pack: str, cost: float, final: bool) -> Holds:
    """Return the holds after a charge.

    ``final``: no other charge of the same attempt follows. The last final charge of a job releases what was
    not spent.
    """
    if not pack:
        return holds
    hold = holds[pack]
    hold = hold._replace(charged=hold.charged + cost, unsettled=hold.unsettled - final)
    return holds.set(pack, hold) if hold.unsettled else holds.delete(pack)


def _median(values: Sequence[float]) -> float:
    import statistics  # those who look at a campaign seldom need it

    return statistics.median(values) if values else 0.0


class JobCosts(NamedTuple):
    """Seconds that the last jobs cost beside their runs: charged ``overheads``, and ``waits`` to begin."""

    overheads: tuple[float, ...] = ()
    waits: tuple[float, ...] = ()

    @property
    def overhead(self) -> float:
        """Return the median of the seconds that a job is charged beside its runs; 0 before any is known."""
        return _median(self.overheads)

    @property
    def wait(self) -> float:
        """Return the median of the seconds between intent and begin of an attempt, without the overhead."""
        return _median(self.waits)


def after_job(costs: JobCosts, elapsed: float, intended: float, started: float, finished: float) -> JobCosts:
    """Return the costs after a job with one attempt: ``elapsed`` seconds charged, and three instants."""
    overhead = max(0.0, elapsed - (finished - started))
    wait = max(0.0, started - intended - overhead)
    return JobCosts((*costs.overheads[1 - RECENT :], overhead), (*costs.waits[1 - RECENT :], wait))


def after_shared_job(costs: JobCosts, overhead: float) -> JobCosts:
    """Return the costs after a shared job, which was charged ``overhead`` seconds beside its attempts."""
    return costs._replace(overheads=(*costs.overheads[1 - RECENT :], overhead))

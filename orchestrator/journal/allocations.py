"""Jobs that several attempts share: what they hold of the budget, and what a job costs beside its runs. Pure.

A pack's reservation is held as a whole until the last of its attempts is settled and confirmed: until then
Slurm may book all of it, whichever attempts have ended already.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

import immutables

RECENT = 20  # jobs that a price is taken of


class Hold(NamedTuple):
    """What one pack holds, in core-seconds: ``reserved`` in all, ``charged`` so far for ``left`` of them."""

    reserved: float = 0.0
    charged: float = 0.0
    unsettled: int = 0

    @property
    def left(self) -> float:
        """Return what is still reserved: the rest of it is among what was spent."""
        return max(0.0, self.reserved - self.charged)


Holds = immutables.Map[str, Hold]


def begun(holds: Holds, pack: str, reserved: float) -> Holds:
    """Return the holds with one attempt more; those without a pack hold nothing together."""
    if not pack:
        return holds
    hold = holds.get(pack, Hold())
    return holds.set(pack, hold._replace(reserved=hold.reserved + reserved, unsettled=hold.unsettled + 1))


def charged(holds: Holds, pack: str, cost: float, final: bool) -> Holds:
    """Return the holds after a charge; the last ``final`` one of a pack releases what was not spent."""
    if not pack:
        return holds
    hold = holds[pack]
    hold = hold._replace(charged=hold.charged + cost, unsettled=hold.unsettled - final)
    return holds.set(pack, hold) if hold.unsettled else holds.delete(pack)


class Price(NamedTuple):
    """Of the last jobs with one attempt: seconds charged beside it, and seconds that it waited to begin."""

    overheads: tuple[float, ...] = ()
    waits: tuple[float, ...] = ()

    @property
    def overhead(self) -> float:
        """Return the median of what is charged beside an attempt; 0 before anything is known."""
        return statistics.median(self.overheads) if self.overheads else 0.0

    @property
    def wait(self) -> float:
        """Return the median of the seconds from the intent to the attempt's begin, the overhead excepted."""
        return statistics.median(self.waits) if self.waits else 0.0


def seen_in_pack(price: Price, overhead: float) -> Price:
    """Return the price after one more pack, with the seconds charged beside its attempts."""
    return price._replace(overheads=(*price.overheads[1 - RECENT :], overhead))


def seen(price: Price, elapsed: float, intended: float, started: float, finished: float) -> Price:
    """Return the price after one more job: ``elapsed`` seconds were charged, the rest are instants."""
    overhead = max(0.0, elapsed - (finished - started))
    wait = max(0.0, started - intended - overhead)
    return Price((*price.overheads[1 - RECENT :], overhead), (*price.waits[1 - RECENT :], wait))

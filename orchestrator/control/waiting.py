"""A scheduler that does not answer when a campaign is to be continued is waited for.

Only once it answers is it known which cluster it is, and what it would never start.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.control import settle
from orchestrator.executors.base import Executor, services
from orchestrator.journal.codec import Entry
from orchestrator.journal.replay import apply
from orchestrator.journal.state import State
from orchestrator.journal.writer import Journal

_LOOK = 1.0  # seconds between looks at whether the user interrupts


def until_answered(
    executor: Executor,
    journal: Journal,
    state: State,
    listen: Callable[[Entry, State], None],
    remark: Callable[[str], None],
    interrupted: Callable[[], bool],
) -> tuple[State, bool]:
    """Wait until all that an executor cannot do without answers; report the outage as the loop does.

    Parameters
    ----------
    executor, journal, state
        Of the campaign; nothing of it has begun.
    listen
        Called with every new entry and the state after it.
    remark
        Tells the user at once, where the journal has the outage after a minute.
    interrupted
        Whether the user does not want to wait.

    Returns
    -------
    tuple
        The state, and whether there was an answer; false where the user interrupted.
    """
    said = False
    while True:
        silent = {name: outage for name, outage in services(executor).items() if outage and outage.blocking}
        if not silent or interrupted():
            return state, not silent
        if not said:
            said = True
            for name, outage in silent.items():
                remark(f"{name} does not answer ({outage.reason}): nothing is begun or ended until it does")
        now = executor.now()
        new = settle.outages(silent, state, now)
        for entry in journal.append(new, now) if new else ():
            state = apply(state, entry.event, entry.time)
            listen(entry, state)
        executor.wait(_LOOK)

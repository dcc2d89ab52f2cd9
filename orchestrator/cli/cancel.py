"""End the runs in flight of a campaign whose controller has ended; they are charged for the time they took.

Nothing is begun. What was reserved for them and not used is left in the budget; resume makes the runs again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable

from orchestrator.api import running
from orchestrator.cli import common
from orchestrator.control import existing, session
from orchestrator.journal.codec import Entry
from orchestrator.journal.events import AttemptCharged, AttemptFinished
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.resources import core_hours
from orchestrator.types import Attempt
from orchestrator.units import count, format_cost, in_unit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it returns when every run has ended, and its charge is known or does not come.

    3 if it was interrupted while Slurm did not answer.
    """
    directory = arguments.directory
    chosen = existing.load(directory)
    before = existing.replayed(directory)
    hooks = session.Hooks(cancel_on_interrupt=True, begin=False)
    after = running.drive(chosen, directory, hooks, progress=True)
    charged = charges(read(directory / FILE_NAME), before.in_flight)
    budget, unit = chosen.stop.budget, chosen.stop.unit
    if after.in_flight:
        left = count(len(after.in_flight), "attempt")
        print(f"interrupted: nothing was ended, and {left} may still run; try again later", file=sys.stderr)
        return 3
    if arguments.json:
        common.print_json(
            {
                "attempts": sorted(attempt.id for attempt in before.in_flight),
                "charged": core_hours(charged),
                "left": core_hours(budget - after.spent),
            }
        )
    elif not before.in_flight:
        print("nothing was in flight")
    else:
        left = f"{in_unit(budget - after.spent, unit)} of {format_cost(budget, unit)} are left"
        again = f"; continue with: orchestrator resume {directory}" if after.stopped is None else ""
        number, cost = count(len(before.in_flight), "attempt"), format_cost(charged, unit)
        unknown = any(attempt in after.unconfirmed for attempt in before.in_flight)
        most = " at most, until Slurm says more" if unknown else ""
        print(f"{number} ended, charged {cost}{most}; {left}{again}")
    return 0


def charges(entries: Iterable[Entry], attempts: Collection[Attempt]) -> float:
    """Return what some attempts were charged by a journal, in core-seconds."""
    charged: dict[Attempt, float] = {}
    for entry in entries:
        match entry.event:
            case AttemptFinished(attempt=attempt, cost=cost) | AttemptCharged(attempt=attempt, cost=cost):
                charged[attempt] = cost
    return sum(cost for attempt, cost in charged.items() if attempt in attempts)

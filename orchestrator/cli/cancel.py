"""End the runs in flight of a campaign whose controller has ended; they are charged for the time they took.

Nothing is begun. What was reserved for them and not used is left in the budget; resume makes the runs again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from orchestrator.api import running
from orchestrator.cli import common
from orchestrator.control import session
from orchestrator.journal.state import State
from orchestrator.resources import core_hours
from orchestrator.units import CostUnit, count, format_cost, in_unit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it returns when every run has ended and its charge is known."""
    directory = arguments.directory
    chosen = session.load(directory)
    before = session.replayed(directory)
    after = running.drive(chosen, directory, progress=True, cancel=True, begin=False)
    if arguments.json:
        common.print_json(document(before, after, chosen.stop.budget))
    else:
        print(render(before, after, directory, chosen.stop.budget, chosen.stop.unit))
    return 0


def document(before: State, after: State, budget: float) -> dict[str, Any]:
    """Return what was done, JSON-ready: attempts that were in flight, and costs in core-hours."""
    return {
        "attempts": sorted(attempt.id for attempt in before.in_flight),
        "charged": core_hours(after.spent - before.spent),
        "left": core_hours(budget - after.spent),
    }


def render(before: State, after: State, directory: Path, budget: float, unit: CostUnit) -> str:
    """Return what was done as text."""
    if not before.in_flight:
        return "nothing was in flight"
    charged = format_cost(after.spent - before.spent, unit)
    left = f"{in_unit(budget - after.spent, unit)} of {format_cost(budget, unit)} are left"
    number = count(len(before.in_flight), "attempt")
    again = f"; continue with: orchestrator resume {directory}" if after.stopped is None else ""
    return f"{number} ended, charged {charged}; {left}{again}"

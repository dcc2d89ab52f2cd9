"""Write one self-contained HTML file about a campaign, with plots of every model."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.cli import common
from orchestrator.control import counting, overview, session
from orchestrator.control.assembly import assemble, modeler
from orchestrator.control.fastest import fastest
from orchestrator.control.runtime import fit
from orchestrator.errors import CampaignError
from orchestrator.journal import file as journal
from orchestrator.journal.measurements import measurements
from orchestrator.journal.state import State, apply
from orchestrator.report import figures, html, status

FILE_NAME = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_directory(parser)
    parser.add_argument("--output", metavar="FILE", type=Path, help=f"where to (default: DIR/{FILE_NAME})")
    common.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it only reads the campaign, also while a controller is running."""
    directory: Path = arguments.directory
    chosen = session.load(directory)
    times, spent, reserved, state = _history(directory)
    known = measurements(state, chosen.parameters)
    models = fit(modeler(chosen), known)
    spending = figures.ledger(times, spent, reserved, chosen.stop.budget, chosen.stop.unit)
    running, quickest = overview.seen(directory)[1], fastest(assemble(chosen), models, known)
    document = status.document(state, models, known, chosen.evaluation_point, running, quickest)
    study = counting.study(chosen, known)
    text = html.page(document, models, known, chosen.evaluation_point, spending, study)
    output = arguments.output or directory / FILE_NAME
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CampaignError(f"cannot write {output}: {error.strerror}") from error
    if arguments.json:
        common.print_json({"report": str(output)})
    else:
        print(output)
    return 0


def _history(directory: Path) -> tuple[list[float], list[float], list[float], State]:
    """Return times and costs after each entry of the journal, and the final state."""
    state = State()
    times: list[float] = []
    spent: list[float] = []
    reserved: list[float] = []
    for entry in journal.read(directory / journal.FILE_NAME):
        state = apply(state, entry.event, entry.time)
        times.append(entry.time)
        spent.append(state.spent)
        reserved.append(state.reserved)
    return times, spent, reserved, state

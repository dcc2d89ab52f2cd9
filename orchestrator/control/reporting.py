"""The report of a campaign: one self-contained HTML page, from its directory."""

from __future__ import annotations

from pathlib import Path

from orchestrator.control import counting, overview, session
from orchestrator.control.assembly import assemble, modeler
from orchestrator.control.fastest import fastest
from orchestrator.control.runtime import fit
from orchestrator.journal import file as journal
from orchestrator.journal.measurements import measurements
from orchestrator.journal.state import State, apply
from orchestrator.report import figures, html, status


def report(directory: Path) -> str:
    """Return the report of the campaign that a directory holds; fits its models, which may take minutes.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    CampaignError
        If its campaign file cannot be read.
    """
    chosen = session.load(directory)
    times, spent, reserved, state = _history(directory)
    known = measurements(state, chosen.parameters)
    models = fit(modeler(chosen), known)
    spending = figures.ledger(times, spent, reserved, chosen.stop.budget, chosen.stop.unit)
    running, quickest = overview.seen(directory)[1], fastest(assemble(chosen), models, known)
    document = status.document(state, models, known, chosen.evaluation_point, running, quickest)
    study = counting.study(chosen, known)
    return html.page(document, models, known, chosen.evaluation_point, spending, study)


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

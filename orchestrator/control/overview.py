"""The status document of a campaign: refits the models, which are never stored as truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.campaign.model import Campaign
from orchestrator.control import runtime, session
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.measurements import measurements
from orchestrator.journal.state import State, replay
from orchestrator.report import controller, status


def status_of(campaign: Campaign, now: State, at_work: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the status document of a campaign in a state.

    Parameters
    ----------
    campaign, now
        The campaign and its state.
    at_work
        Who is at work, from `report.controller`; None where the controller has just stopped in good order.
    """
    known = measurements(now, campaign.parameters)
    models = runtime.fit(runtime.modeler(campaign), known)
    return status.document(now, models, known, campaign.evaluation_point, at_work)


def status_in(campaign: Campaign, directory: Path) -> dict[str, Any]:
    """Return the status document of the campaign that a directory holds.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    session.require_campaign(directory)
    path = directory / FILE_NAME
    while True:
        size, witness = path.stat().st_size, controller.Witness()
        now = replay(witness.hear(read(path)))
        at_work = controller.look(directory, witness, now.time, now.stopped is not None)
        # A controller that has left meanwhile has said so in what was not read yet.
        if at_work["state"] == "at work" or path.stat().st_size == size:
            return status_of(campaign, now, at_work)

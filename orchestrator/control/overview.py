"""The status document of a campaign, from its journal and the models that its controller published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.journal.file import FILE_NAME, require_campaign
from orchestrator.journal.measurements import measurements
from orchestrator.journal.snapshot import Followed
from orchestrator.journal.state import State
from orchestrator.report import controller, models_document, status
from orchestrator.report.controller import JOURNALED, Journaled
from orchestrator.types import Parameter

if TYPE_CHECKING:  # what fits models is imported only where models must be fitted
    from orchestrator.campaign.definition import Campaign

Seen = tuple[State, dict[str, Any]]
"""The state of a campaign, and which controller is running: see `report.controller`."""


def status_of(campaign: Campaign, now: State, running: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the status document of a campaign in a state; fits the models again.

    Parameters
    ----------
    campaign, now
        The campaign and its state.
    running
        Which controller is running, from `report.controller`; None where the controller has just stopped in
        good order.
    """
    from orchestrator.control.assembly import assemble, modeler
    from orchestrator.control.fastest import fastest
    from orchestrator.control.runtime import fit

    known = measurements(now, campaign.parameters)
    models = fit(modeler(campaign), known)
    quickest = fastest(assemble(campaign), models, known, now)
    return status.document(now, models, known, campaign.evaluation_point, running, quickest)


def status_in(directory: Path, before: Seen | None = None, *, fit: bool = False) -> dict[str, Any]:
    """Return the status document of the campaign that a directory holds.

    Parameters
    ----------
    directory
        The campaign directory.
    before
        What `seen` returned; by default the directory is read now.
    fit
        Whether models are fitted, which may take minutes, where ``models.json`` is not of this state. By
        default the document has the models that the controller published last, and says of what they are.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    now, running = before or seen(directory)
    published = models_document.published(directory, now)
    if fit and published["outdated"] is not None:
        from orchestrator.control import existing

        return status_of(existing.load(directory), now, running)
    names = [Parameter(name, ()) for name in now.campaign["parameters"]]
    return status.combined(now, measurements(now, names), published, running)


def seen(directory: Path, followed: Followed[Journaled] | None = None) -> Seen:
    """Return the state of the campaign that a directory holds, and which controller is running.

    Parameters
    ----------
    directory
        The campaign directory.
    followed
        What was read of its journal before; only the rest is read.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    require_campaign(directory)
    path = directory / FILE_NAME
    followed = followed or Followed(directory, JOURNALED)
    while True:
        size = path.stat().st_size
        followed.refresh()
        now, history = followed.value
        running = controller.look(directory, history, now.time, now.stopped is not None)
        # A controller that has stopped meanwhile has said so in what was not read yet.
        if running["state"] == "at work" or path.stat().st_size == size:
            return now, running

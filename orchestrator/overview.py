"""The status document of a campaign: refits the models, which are never stored as truth."""

from __future__ import annotations

from typing import Any

from orchestrator import assembly, plugins
from orchestrator.campaign import Campaign
from orchestrator.measured import measurements
from orchestrator.report import status
from orchestrator.state import State


def status_of(campaign: Campaign, state: State) -> dict[str, Any]:
    """Return the status document of a campaign in a state."""
    known = measurements(state, tuple(item.name for item in campaign.parameters))
    models = assembly.fit(plugins.modeler(campaign), known)
    return status.document(state, models, known, campaign.evaluation_point)

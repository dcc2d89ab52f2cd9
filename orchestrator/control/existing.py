"""The campaign that a directory holds: its rules and its state, without a lock and without a controller."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import priors
from orchestrator.journal.file import FILE_NAME, no_campaign, read, require_campaign
from orchestrator.journal.replay import replay
from orchestrator.journal.state import State
from orchestrator.journal.writer import writing
from orchestrator.storage import write_atomically


def load(directory: Path, overrides: Sequence[str] = (), starts: bool = False) -> Campaign:
    """Read the campaign that a directory holds; its executable must exist only if a run ``starts``.

    Raises
    ------
    JournalError
        If there is none.
    """
    require(directory)
    return priors.with_copy(loader.of_directory(directory, overrides, starts=starts), directory)


def require(directory: Path) -> None:
    """Raise ``NoCampaign`` unless a directory holds a campaign."""
    require_campaign(directory)
    if not (directory / loader.CAMPAIGN_FILE).exists():
        raise no_campaign(directory, loader.CAMPAIGN_FILE)


def replayed(directory: Path) -> State:
    """Return the state of a campaign without locking it.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    require_campaign(directory)
    return replay(read(directory / FILE_NAME))


def save(chosen: Campaign, directory: Path) -> None:
    """Replace the campaign file of a directory; on a full disk the old one stays."""
    path = directory / loader.CAMPAIGN_FILE
    with writing(path):
        write_atomically(path, loader.dump(chosen))

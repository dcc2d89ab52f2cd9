"""The campaign that a directory holds: its rules and its state, without a lock and without a controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.yaml import dump
from orchestrator.control import priors
from orchestrator.errors import NoCampaign
from orchestrator.journal.file import FILE_NAME, holds_campaign, read, require_campaign
from orchestrator.journal.replay import replay
from orchestrator.journal.state import State
from orchestrator.journal.writer import writing
from orchestrator.storage import sync_directory, write_atomically
from orchestrator.types import Parameter, Value


def load(directory: Path, overrides: Sequence[str] = (), starts: bool = False) -> Campaign:
    """Read the campaign that a directory holds; its executable must exist only if a run ``starts``.

    Then its file, where it is gone or empty, is first written again from the journal.

    Raises
    ------
    JournalError
        If there is none.
    """
    if starts and holds_campaign(directory) and _is_gone(directory / loader.CAMPAIGN_FILE):
        _write(directory, dump(replayed(directory).campaign))
    require(directory)
    return priors.with_copy(loader.of_directory(directory, overrides, starts=starts), directory)


def require(directory: Path) -> None:
    """Raise ``NoCampaign`` unless a directory holds a campaign."""
    require_campaign(directory)
    if _is_gone(directory / loader.CAMPAIGN_FILE):
        again = f"orchestrator resume {directory} writes it again from the journal"
        raise NoCampaign(f"{directory}: {loader.CAMPAIGN_FILE} is missing or empty; {again}")


def _is_gone(path: Path) -> bool:
    return not path.exists() or not path.read_bytes().strip()


def replayed(directory: Path) -> State:
    """Return the state of a campaign without locking it.

    Raises
    ------
    JournalError
        If the directory holds no readable campaign.
    """
    require_campaign(directory)
    return replay(read(directory / FILE_NAME))


def parameters(state: State) -> tuple[Parameter, ...]:
    """Return the parameters of the runs of a campaign, from its journal alone.

    So measurements are read where plug-ins of the campaign are missing or broken.
    """
    # In an order of their own: the runs of a state come in any.
    points = sorted({run.point for run in state.runs}, key=lambda point: point.order)
    values: dict[str, dict[Value, None]] = {}
    for point in points:
        for name, value in point.items:
            values.setdefault(name, {})[value] = None
    stated = state.campaign.get("parameters", {})
    return tuple(
        Parameter(name, tuple(found), _is_categorical(stated.get(name), found))
        for name, found in values.items()
    )


def _is_categorical(stated: object, found: Iterable[Value]) -> bool:
    named = isinstance(stated, Mapping) and stated.get("type") == "categorical"
    return named or any(isinstance(value, str) for value in found)


def save(chosen: Campaign, directory: Path) -> None:
    """Replace the campaign file of a directory, durably as its journal; on a full disk the old one stays."""
    _write(directory, loader.dump(chosen))


def _write(directory: Path, text: str) -> None:
    path = directory / loader.CAMPAIGN_FILE
    with writing(path):
        write_atomically(path, text, durable=True)
        sync_directory(directory)

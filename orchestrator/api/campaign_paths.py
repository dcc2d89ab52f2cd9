"""Campaigns found by name: files and directories below the current directory, and the ready campaigns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import CampaignError
from orchestrator.journal.file import FILE_NAME, holds_campaign
from orchestrator.storage import YAML_SUFFIXES
from orchestrator.units import closest

_LEVELS = ("", "*/", "*/*/")  # folders below the current directory that are searched
_MOST = 10_000  # files that are looked at to find out what a misspelt name means


def campaign_path(text: str) -> Path:
    """Return the path of a campaign file: a path, or the name of a file below, or of a ready campaign.

    A file in the current directory or up to two folders below comes before a ready campaign of that name.

    Raises
    ------
    CampaignError
        If there is none, with the names that are similar, or if several files have the name.
    """
    path = Path(text)
    if path.exists() and not path.is_dir():
        return path
    if path.name == text and (found := _below(text)) is not None:
        return found
    from orchestrator.launch.script import data_directory  # commands that show something need no scripts

    folder = data_directory("campaigns")
    ready = folder / (path.name if path.suffix else f"{path.name}.yaml")
    if str(path.parent) in (".", "campaigns") and ready.exists():
        return ready
    if path.is_dir():  # most likely a campaign that was begun
        raise CampaignError(
            f"{text} is a directory; to continue the campaign in it: orchestrator resume {text}"
        )
    names = sorted(item.stem for item in folder.glob("*.yaml"))
    meant = closest(path.stem, (*names, *dict.fromkeys(_files_below())))
    hint = f"did you mean {meant!r}? " if meant is not None else ""
    raise CampaignError(f"there is no campaign file {text}; {hint}ready campaigns: {', '.join(names)}")


def _below(name: str) -> Path | None:
    """Return the one file of a name, with or without its suffix, in the nearest folders that have any."""
    names = [name] if Path(name).suffix in YAML_SUFFIXES else [f"{name}{suffix}" for suffix in YAML_SUFFIXES]
    for level in _LEVELS:
        found = sorted(path for item in names for path in Path().glob(f"{level}{_literal(item)}"))
        if len(found) > 1:
            several = ", ".join(map(str, found))
            raise CampaignError(f"several campaign files are called {name}: {several}; give the path of one")
        if found:
            return found[0]
    return None


def _files_below() -> Iterator[str]:
    """Yield the names of files that may be campaigns."""
    found = (path for level in _LEVELS[:2] for path in Path().glob(f"{level}*.y*ml"))
    return (path.stem for path in itertools.islice(found, _MOST) if path.suffix in YAML_SUFFIXES)


def campaign_directory(text: str) -> Path:
    """Return a campaign directory by its path, or by its name where it lies up to two folders below.

    What is found nowhere, or several times, is returned as it was given.
    """
    path = Path(text)
    if path.exists() or path.name != text:
        return path
    found = [
        item.parent for level in _LEVELS[1:] for item in Path().glob(f"{level}{_literal(text)}/{FILE_NAME}")
    ]
    campaigns = [item for item in found if holds_campaign(item)]
    return campaigns[0] if len(campaigns) == 1 else path


def _literal(name: str) -> str:
    """Return a pattern that only this name matches."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)

"""A folder with a link to every campaign of a user. There is none unless the user wants it.

The links alone are the store: what is listed is read from the campaigns themselves, and a link may be
deleted at any time. ``serve`` and ``priors.campaigns`` take the folder and its links like any other path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.campaign import site
from orchestrator.errors import CampaignError, JournalError
from orchestrator.journal.file import holds_campaign
from orchestrator.journal.snapshot import read_through
from orchestrator.report.controller import JOURNALED
from orchestrator.report.status import in_list

_ANY = "generic"  # the application of every program without an adapter


def folder(environment: Mapping[str, str]) -> Path:
    """Return where the store is, or would be: what the site file says, else in the user's data folder.

    Raises
    ------
    CampaignError
        If the site file cannot be read.
    """
    chosen = site.campaigns(environment)
    if chosen is not None:
        return chosen
    own = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111 (never raises)
    return Path(own) / "orchestrator" / "campaigns"


def create(store: Path) -> None:
    """Create the store: from now on a campaign that starts is linked there.

    Raises
    ------
    CampaignError
        If the folder cannot be created.
    """
    try:
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CampaignError(f"cannot create {store}: {error.strerror}") from error


def add(directory: Path, environment: Mapping[str, str]) -> str | None:
    """Link a campaign directory, if there is a store; return why that failed, None if nothing did.

    A campaign must not depend on its link.
    """
    try:
        store = folder(environment)
        if not store.is_dir():
            return None
        path = directory.resolve()
        if not _is_linked(path, store):
            _link(store, path)
    except (OSError, CampaignError) as error:
        return f"not added to the list of campaigns: {error}"
    return None


def _is_linked(path: Path, store: Path) -> bool:
    """Return whether a link leads to a path; thousands are looked at in milliseconds."""
    here = path.stat()
    with os.scandir(store) as links:
        return any(_leads_to(here, link) for link in links)


def _leads_to(here: os.stat_result, link: os.DirEntry[str]) -> bool:
    try:
        return os.path.samestat(here, link.stat())
    except OSError:  # it leads nowhere
        return False


def _target(link: Path) -> Path:
    """Return where a link leads; the link itself where it leads nowhere, as one to itself."""
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # RuntimeError of a loop, before Python 3.13
        return link.absolute()


def _link(store: Path, path: Path) -> None:
    """Link a path under its name, or the first free one: ``lulesh``, ``lulesh-2``."""
    number = 1
    while True:
        link = store / (path.name if number == 1 else f"{path.name}-{number}")
        try:
            link.symlink_to(path, target_is_directory=True)
            return
        except FileExistsError:
            number += 1


def listed(store: Path) -> list[dict[str, Any]]:
    """Return the campaigns of a store, JSON-ready, the latest first; those that are gone last.

    Raises
    ------
    CampaignError
        If the folder cannot be read.
    """
    try:
        links = sorted(store.iterdir())
    except OSError as error:
        raise CampaignError(f"cannot read {store}: {error.strerror}") from error
    rows = [_row(link) for link in links]
    return sorted(rows, key=lambda row: row["last"] or "", reverse=True)


def _row(link: Path) -> dict[str, Any]:
    directory = _target(link)
    row: dict[str, Any] = {"name": link.name, "directory": str(directory), "state": "gone", "last": None}
    try:
        if not holds_campaign(directory):
            return row
        state = read_through(directory, JOURNALED).state
    except (JournalError, OSError) as error:
        return {**row, "state": "unreadable", "error": str(error)}
    return {
        **row,
        "name": state.campaign["name"],
        **in_list(state),
        "unit": "core-hours",
        **asked(state.campaign),
    }


def asked(campaign: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes campaigns alike, of one as the journal has it: its program and its parameters."""
    return {
        "application": campaign["application"],
        "executable": campaign["executable"],
        "parameters": list(campaign["parameters"]),
    }


def alike(rows: Sequence[dict[str, Any]], wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the campaigns of the same program, those with the most parameters in common first.

    Parameters
    ----------
    rows
        As `listed` returns them.
    wanted
        As `asked` returns it. Programs without an adapter are the same if their files have the same name.
    """

    def program(row: Mapping[str, Any]) -> tuple[str, str]:
        name = Path(row["executable"]).name if row["application"] == _ANY else ""
        return row["application"], name

    def common(row: Mapping[str, Any]) -> int:
        return len(set(row["parameters"]) & set(wanted["parameters"]))

    same = [row for row in rows if "application" in row and program(row) == program(wanted)]
    return sorted((row for row in same if common(row)), key=common, reverse=True)

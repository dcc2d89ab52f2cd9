"""What a controller's runs are made from: the executable's content, version and source revision.

Gathered once per controller. An attempt records only size and time of modification of the executable, which
lead back to the hash recorded here. Facts that cannot be determined are left out and never stop a campaign.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.campaign.definition import Campaign
from orchestrator.control.compilers import compiler
from orchestrator.storage import file_hash, file_identity

_PATIENCE = 10.0  # seconds for git, or for the executable to print its version
_LONGEST = 200  # characters of a version


def gather(campaign: Campaign) -> dict[str, Any]:
    """Describe the campaign's executables and this Python, JSON-ready; empty for simulated runs.

    Returns
    -------
    dict
        ``executable`` (``path``, and as far as known ``size``, ``mtime_ns``, ``sha256``, ``version``,
        ``revision``, ``compiler``), ``python``, and ``site``: the site file. ``revision`` is the commit of
        the git checkout that holds the executable, with ``-dirty`` if tracked files were changed. And
        ``compared_executable`` and ``effort_executable``, likewise, where such runs start other ones.
    """
    if campaign.executor.name == "simulated":
        return {}
    executables = {"executable": _executable(campaign.executable, campaign.version_arguments)}
    if campaign.compare is not None:
        executables["compared_executable"] = _executable(campaign.compare.with_, campaign.version_arguments)
    if campaign.measure.effort is not None:
        effort = campaign.measure.effort.executable
        executables["effort_executable"] = _executable(effort, campaign.version_arguments)
    site = {"site": campaign.site} if campaign.site else {}
    return {**executables, "python": platform.python_version(), **site}


def roles(gathered: Mapping[str, Any], used: Mapping[str, Any]) -> list[str]:
    """Return the roles of an executable, by its path; the arguments are those of `started`."""
    known = {role: item for role, item in gathered.items() if isinstance(item, Mapping)}
    return [role for role, item in known.items() if "path" in used and item.get("path") == used["path"]]


def started(gathered: Mapping[str, Any], used: Mapping[str, Any]) -> dict[str, str]:
    """Return what tells the content of the executable that an attempt started, by its role; {} if unknown.

    Parameters
    ----------
    gathered
        What `gather` returned when the controller began.
    used
        ``path``, ``size`` and ``mtime_ns``, as the attempt recorded them.

    Returns
    -------
    dict
        The SHA-256, or where that file is gone its size and time. A file of the same size is taken as the one
        that was hashed while the path has its content: nodes may tell its time in another way.
    """
    known = {role: gathered[role] for role in roles(gathered, used) if "sha256" in gathered[role]}
    if not known or not {"size", "mtime_ns"} <= used.keys():
        return {}
    found, path = next(iter(known.values())), Path(used["path"])
    digest = str(found["sha256"])
    if not _same(used, found):
        now, content = file_identity(path) or {}, file_hash(path)
        unchanged = used["size"] == now.get("size") and content == digest
        if not unchanged:
            digest = content if content and _same(used, now) else f"{used['size']} bytes, {used['mtime_ns']}"
    return dict.fromkeys(known, digest)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(key) == other.get(key) for key in ("size", "mtime_ns"))


def _executable(name: str, version_arguments: Sequence[str]) -> dict[str, Any]:
    path = Path(name)
    further = {
        "sha256": file_hash(path),
        "version": _first_line([name, *version_arguments]) if version_arguments else None,
        "revision": _git_revision(path.resolve().parent),
        "compiler": compiler(path),
    }
    known = {key: value for key, value in further.items() if value}
    return {"path": str(path), **(file_identity(path) or {}), **known}


def _git_revision(folder: Path) -> str | None:
    """Return the commit of the checkout around a folder, with ``-dirty`` if changed, or None."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    # An enclosing git (a hook, a rebase) would answer for itself.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return _first_line(command, {**variables, "GIT_OPTIONAL_LOCKS": "0"}, only_output=True)


def _first_line(
    command: Sequence[str], variables: Mapping[str, str] | None = None, only_output: bool = False
) -> str | None:
    """Return the first line that a command prints; many programs print their version as an error."""
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            env=variables,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if only_output and answer.returncode != 0:
        return None
    text = (answer.stdout if only_output else answer.stdout + answer.stderr).decode(errors="replace")
    return next((line.strip()[:_LONGEST] for line in text.splitlines() if line.strip()), None)

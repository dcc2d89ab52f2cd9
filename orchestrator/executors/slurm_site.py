"""What the administrators of a Slurm chose: read once, needed for limits and for what may be charged."""

from __future__ import annotations

import getpass
import re
from dataclasses import dataclass

from orchestrator.executors.slurm_query import CommandFailed, call

_DEFAULT_ARRAY = 1001  # Slurm's own default of MaxArraySize
_NO_ACCOUNTING = {"", "(null)", "accounting_storage/none"}


@dataclass(frozen=True, slots=True)
class Site:
    """Settings of a Slurm; the defaults are Slurm's own.

    Attributes
    ----------
    accounting
        Whether there is a ``slurmdbd`` for ``sacct`` to ask.
    kill_wait
        Seconds from SIGTERM to SIGKILL at the end of a job.
    over_time_limit
        Minutes that a job may exceed its limit.
    remembered
        Seconds for which ``squeue`` still shows a job that has ended (``MinJobAge``).
    array_size
        Most elements of an array.
    submit_limit
        Most jobs, queued or running, that this user may have; None without such a limit.
    """

    accounting: bool = True
    kill_wait: float = 30.0
    over_time_limit: float = 0.0
    remembered: float = 300.0
    array_size: int = _DEFAULT_ARRAY
    submit_limit: int | None = None


def read_site(seconds: float, account: str | None = None, qos: str | None = None) -> Site:
    """Ask ``scontrol`` and, where there is accounting, ``sacctmgr``.

    Parameters
    ----------
    seconds
        Time limit of each of the three commands.
    account, qos
        Those of the campaign; limits of others do not matter.

    Raises
    ------
    CommandFailed
        If ``scontrol`` fails, or prints something else: nothing is known of the cluster then.
    """
    configuration = parse_configuration(call(["scontrol", "show", "config"], seconds))
    if "KillWait" not in configuration:  # what else it is must not be taken for a site without accounting
        raise CommandFailed("scontrol printed no configuration")
    accounting = configuration.get("AccountingStorageType", "") not in _NO_ACCOUNTING
    limit = _submit_limit(seconds, account, qos) if accounting else None
    return Site(
        accounting=accounting,
        kill_wait=_number(configuration.get("KillWait"), 30.0),
        over_time_limit=_number(configuration.get("OverTimeLimit"), 0.0),
        remembered=_number(configuration.get("MinJobAge"), 300.0),
        array_size=max(1, int(_number(configuration.get("MaxArraySize"), _DEFAULT_ARRAY))),
        submit_limit=limit,
    )


def parse_configuration(text: str) -> dict[str, str]:
    """Read the ``Name = value`` lines of ``scontrol show config``."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_limits(text: str, wanted: str | None) -> list[int]:
    """Read ``name|limit|limit...`` lines of ``sacctmgr``: the limits of one name, or of all for None."""
    rows = [line.split("|") for line in text.splitlines()]
    chosen = [row[1:] for row in rows if wanted is None or row[0] == wanted]
    return [int(field) for row in chosen for field in row if field.isdigit()]


def _submit_limit(seconds: float, account: str | None, qos: str | None) -> int | None:
    query = ["sacctmgr", "--noheader", "--parsable2", "show"]
    user = f"user={getpass.getuser()}"
    found: list[int] = []
    try:
        fields = "format=Account,MaxSubmitJobs,GrpSubmitJobs"
        found += parse_limits(call([*query, "associations", user, fields], seconds), account)
        if qos is not None:
            fields = "format=Name,MaxSubmitJobsPerUser,GrpSubmitJobs"
            found += parse_limits(call([*query, "qos", fields], seconds), qos)
    except CommandFailed:
        return None  # then sbatch will say when it is too much
    return min(found, default=None)


def _number(text: str | None, default: float) -> float:
    """Read ``30 sec``; UNLIMITED and what is missing are the default."""
    found = re.match(r"\d+", text or "")
    return float(found[0]) if found else default

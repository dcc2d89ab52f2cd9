"""Slurm's commands: how they are called, and what ``squeue``, ``sacct`` and ``scontrol`` answer.

Every command has a time limit, and one call answers for all jobs. Jobs are asked for by name: the name is
all that is known of a submission that was not confirmed.
"""

from __future__ import annotations

import getpass
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from orchestrator.errors import ExecutorError
from orchestrator.executors import inherited
from orchestrator.types import AttemptState

TIMED_OUT = -1  # in place of an exit code

_KEPT = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_CONF_SERVER")
_DEFAULTS = ("SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_CONSTRAINT")
_FOREIGN = ("SLURM_", "SLURMD_", "SBATCH_", "SQUEUE_", "SACCT_", "SALLOC_", "SRUN_", "PMI_", "PMIX_")


class CommandFailed(ExecutorError):
    """A command of Slurm that failed, took too long, or printed what cannot be read."""

    def __init__(self, message: str, code: int = 0, output: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.output = output


def environment(keep: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment for Slurm's commands, and through ``sbatch`` for jobs.

    Without the variables of a job that the controller itself may be running in, and without those that
    change what commands do or print. ``keep`` names further ones that may stay.
    """
    kept = {
        name: value
        for name, value in inherited.environment().items()
        if not name.startswith(_FOREIGN) or name in _KEPT or name in keep
    }
    # Instants in Unix seconds; lists of array indices in full.
    return kept | {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}


def submission_environment(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the environment for ``sbatch``, with the user's own defaults where the campaign sets nothing.

    All other defaults of the user are removed: for ``sbatch`` a variable outweighs an option in the script.
    """
    keep = [name for name in _DEFAULTS if settings.get(name.removeprefix("SBATCH_").lower()) is None]
    changed = environment(keep)
    del changed["SLURM_TIME_FORMAT"], changed["SLURM_BITSTR_LEN"]
    return changed


def call(command: Sequence[str], seconds: float, env: Mapping[str, str] | None = None) -> str:
    """Return what a command prints.

    Raises
    ------
    CommandFailed
        If it cannot be started, exits with another code than 0, or has not ended after ``seconds``.
    """
    try:
        done = subprocess.run(
            command,
            env=environment() if env is None else env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{command[0]} did not answer within {seconds:g} s", TIMED_OUT) from error
    except OSError as error:
        raise CommandFailed(f"{command[0]} cannot be started: {error.strerror}", TIMED_OUT) from error
    output = done.stdout.decode(errors="replace")
    if done.returncode:
        complaint = done.stderr.decode(errors="replace").strip() or output.strip()
        words = in_one_line(complaint, command[0])
        raise CommandFailed(
            f"{command[0]} failed with exit code {done.returncode}: {words}", done.returncode, complaint
        )
    return output


def answer(command: Sequence[str], seconds: float = 30.0) -> str | None:
    """Return what a command prints; None where it fails."""
    try:
        return call(command, seconds)
    except CommandFailed:
        return None


def in_one_line(complaint: str, command: str) -> str:
    """Return what a command complained about in one line, without its own name in front of each."""
    lines = [re.sub(rf"^{re.escape(command)}: (?:error: )?", "", line) for line in complaint.splitlines()]
    return "; ".join(line.strip() for line in lines if line.strip())


# --- job states -----------------------------------------------------------------------------------------

_QUEUED = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT")
_RUNNING = (
    "COMPLETING",
    "CONFIGURING",
    "POWER_UP_NODE",
    "RESIZING",
    "RUNNING",
    "SIGNALING",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
)
# None of these proves that the attempt finished, COMPLETED least of all: only its own record does.
_ENDED = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "RECONFIG_FAIL",
    "REVOKED",
    "TIMEOUT",
)
# If Slurm ends a job in one of these, a failure of the application is not the application's fault.
_FROM_OUTSIDE = ("BOOT_FAIL", "CANCELLED", "DEADLINE", "NODE_FAIL", "PREEMPTED", "REVOKED")

# A job in one of these has its nodes, and does nothing until somebody, or Slurm, resumes it.
_STANDING = ("STOPPED", "SUSPENDED")

# If a job ends in one of these, its node failed.
_NODE = ("BOOT_FAIL", "LAUNCH_FAILED", "NODE_FAIL")

STATES: Mapping[str, AttemptState] = MappingProxyType(
    dict.fromkeys(_QUEUED, AttemptState.QUEUED)
    | dict.fromkeys(_RUNNING, AttemptState.RUNNING)
    | dict.fromkeys(_ENDED, AttemptState.LOST)
)


def meaning(state: str) -> AttemptState:
    """Return what a job state means for an attempt that has no finished record.

    Parameters
    ----------
    state
        As ``squeue`` or ``sacct`` print it: ``RUNNING``, ``CANCELLED by 1000``, ``CANCELLED+``.

    Returns
    -------
    AttemptState
        QUEUED, RUNNING, LOST (the job has ended) or, for a word that no Slurm known to us prints, UNKNOWN.
    """
    return STATES.get(word(state), AttemptState.UNKNOWN)


def word(state: str) -> str:
    """Return a job state without what ``sacct`` appends to it."""
    return (state.split() or [""])[0].rstrip("+").upper()


def from_outside(state: str) -> bool:
    """Return whether a job in this state was ended by Slurm, its nodes or a person."""
    return word(state) in _FROM_OUTSIDE


def stands_still(state: str) -> bool:
    """Return whether a job in this state has begun, and is stopped until somebody resumes it."""
    return word(state) in _STANDING


def blames_node(state: str) -> bool:
    """Return whether a job in this state was ended by a failing node."""
    return word(state) in _NODE


# --- queue and accounting -------------------------------------------------------------------------------

_QUEUE_FORMAT = "%F|%K|%j|%T|%S|%e|%N|%C|%r"
_ACCOUNTING_FIELDS = "JobID,JobName,State,ElapsedRaw,NodeList,AllocCPUS"
_LONGEST_ARGUMENT = 100_000  # bytes; Linux refuses more than 128 KiB
_MOST_TASKS = 4_000_001  # Slurm's own bound on the size of an array


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What Slurm reports of one element of a job array.

    Attributes
    ----------
    name, number
        Of the array.
    index
        Of the element; None stands for all elements that have no row of their own.
    state
        As Slurm prints it.
    started
        Unix seconds; None where it has not started, or the source does not say.
    elapsed
        Seconds charged for it, or None before its end.
    reason
        Why it is still queued.
    nodes
        Where it runs or ran, in Slurm's short form.
    cpus
        Allocated to it; 0 before it got a node.
    """

    name: str
    number: int
    index: int | None
    state: str
    started: float | None = None
    elapsed: float | None = None
    reason: str = ""
    nodes: str = ""
    cpus: int = 0

    @property
    def meaning(self) -> AttemptState:
        """Return what the state means for the attempt."""
        return meaning(self.state)


def queue(names: Sequence[str], seconds: float) -> list[Job]:
    """Ask ``squeue`` once for the jobs with these names, the recently ended ones among them."""
    command = ["squeue", "--noheader", "--array", "--states=all", f"--format={_QUEUE_FORMAT}"]
    wanted = set(names)
    return [job for job in parse_queue(call([*command, _selection(names)], seconds)) if job.name in wanted]


def accounting(names: Sequence[str], since: float, seconds: float) -> list[Job]:
    """Ask ``sacct`` once for the jobs with these names that existed after an instant (Unix seconds).

    Without a start time ``sacct`` begins at midnight. A requeued job has one row per start.
    """
    start = datetime.fromtimestamp(since).strftime("%Y-%m-%dT%H:%M:%S")
    command = ["sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", f"--starttime={start}"]
    wanted = set(names)
    rows = parse_accounting(call([*command, f"--format={_ACCOUNTING_FIELDS}", _selection(names)], seconds))
    return [job for job in rows if job.name in wanted]


def _selection(names: Sequence[str]) -> str:
    joined = ",".join(names)
    return f"--name={joined}" if len(joined) < _LONGEST_ARGUMENT else f"--user={os.getuid()}"


def parse_queue(text: str) -> list[Job]:
    """Read what `queue` makes ``squeue`` print.

    Raises
    ------
    CommandFailed
        For a line that cannot be read. A job must not seem to have vanished because its line was cut.
    """
    jobs = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            number, index, name, state, start, end, nodes, cpus, reason = line.split("|", 8)
            # An array that is cancelled before any of its elements started is listed as one job.
            position = None if index == "N/A" else _integer(index)
            # A job that is cancelled before its start may have an instant of start, but never has nodes.
            started, ended = (_instant(start) if nodes else None), _instant(end)
            over = meaning(state) is AttemptState.LOST
            # The clock of slurmctld may have been set back meanwhile.
            elapsed = max(0.0, ended - started) if started is not None and ended is not None else 0.0
            jobs.append(
                Job(
                    name=name,
                    number=_integer(number),
                    index=position,
                    state=state,
                    started=started,
                    elapsed=elapsed if over else None,
                    reason=reason,
                    nodes=nodes,
                    cpus=_integer(cpus) if nodes else 0,
                )
            )
        except ValueError as error:
            raise CommandFailed(f"squeue printed {line[:200]!r}: {error}") from error
    return jobs


def parse_accounting(text: str) -> list[Job]:
    """Read what `accounting` makes ``sacct`` print; raises like `parse_queue`."""
    jobs = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            identifier, name, state, elapsed, nodes, cpus = line.split("|")
            number, _, indices = identifier.partition("_")
            # A requeue is the end of one start: its time was spent, whatever becomes of the job.
            over = meaning(state) is AttemptState.LOST or word(state) == "REQUEUED"
            seconds = 0.0 if nodes in ("", "None assigned") else float(_integer(elapsed or "0"))
            jobs += [
                Job(
                    name=name,
                    number=_integer(number),
                    index=index,
                    state=state,
                    elapsed=seconds if over else None,
                    nodes=nodes,
                    cpus=_integer(cpus or "0"),
                )
                for index in _indices(indices)
            ]
        except ValueError as error:
            raise CommandFailed(f"sacct printed {line[:200]!r}: {error}") from error
    return jobs


def _instant(text: str) -> float | None:
    return None if text in ("N/A", "Unknown", "None", "0", "") else float(_integer(text))


def _integer(text: str) -> int:
    if not re.fullmatch(r"\d+", text, re.ASCII):  # int() would take " 1_000 "
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _indices(text: str) -> Sequence[int | None]:
    """Expand ``7``, ``[0-3,7]``, ``[0-6:2]`` and ``[0-3%2]``, as array elements are listed."""
    if not text.startswith("["):
        return [_integer(text) if text else None]
    found = re.fullmatch(r"\[([\d,:-]+)(?:%\d+)?\]", text)
    if found is None:
        raise ValueError(f"{text!r} is no list of array indices")
    indices: list[int | None] = []
    for item in found[1].split(","):
        span, _, step = item.partition(":")
        first, _, last = span.partition("-")
        stop = _integer(last or first) + 1
        if stop > _MOST_TASKS:
            raise ValueError(f"{text!r} is larger than any job array")
        indices += range(_integer(first), stop, _integer(step or "1"))
    return indices


# --- the site -------------------------------------------------------------------------------------------

_DEFAULT_ARRAY = 1001  # Slurm's own default of MaxArraySize
_NO_ACCOUNTING = {"", "(null)", "accounting_storage/none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Settings of a Slurm; the defaults are Slurm's own.

    Attributes
    ----------
    cluster
        Its name; empty where it is not known.
    accounting
        Whether there is a ``slurmdbd`` for ``sacct`` to ask.
    over_time_limit
        Minutes that a job may exceed its limit.
    remembered
        Seconds for which ``squeue`` still shows a job that has ended (``MinJobAge``).
    array_size
        Most elements of an array.
    submit_limit
        Most jobs, queued or running, that this user may have; None without such a limit.
    """

    cluster: str = ""
    accounting: bool = True
    over_time_limit: float = 0.0
    remembered: float = 300.0
    array_size: int = _DEFAULT_ARRAY
    submit_limit: int | None = None


def read_site(
    seconds: float, account: str | None = None, qos: str | None = None, partitions: Sequence[str] = ()
) -> Site:
    """Ask ``scontrol`` and, where there is accounting, ``sacctmgr``.

    Parameters
    ----------
    seconds
        Time limit of each command.
    account, qos, partitions
        Those of the campaign; limits of others do not matter.

    Raises
    ------
    CommandFailed
        If ``scontrol`` fails, or prints something else: nothing is known of the cluster then.
    """
    configuration = parse_configuration(call(["scontrol", "show", "config"], seconds))
    if "KillWait" not in configuration:  # other output must not pass for a site without accounting
        raise CommandFailed("scontrol printed no configuration")
    accounting = configuration.get("AccountingStorageType", "") not in _NO_ACCOUNTING
    limit = _submit_limit(seconds, account, qos) if accounting else None
    return Site(
        cluster=configuration.get("ClusterName", ""),
        accounting=accounting,
        over_time_limit=_over_time_limit(seconds, configuration, partitions),
        remembered=_number(configuration.get("MinJobAge"), 300.0),
        array_size=max(1, int(_number(configuration.get("MaxArraySize"), _DEFAULT_ARRAY))),
        submit_limit=limit,
    )


def parse_configuration(text: str) -> dict[str, str]:
    """Read the ``Name = value`` lines of ``scontrol show config``."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_over_time_limits(text: str, partitions: Sequence[str]) -> list[float]:
    """Read lines of ``scontrol --oneliner show partition``: what these partitions state, in minutes.

    Without ``partitions`` those that are the default count. A partition without a limit of its own has that
    of the cluster.
    """
    rows = [dict(part.split("=", 1) for part in line.split() if "=" in part) for line in text.splitlines()]
    chosen = [
        row
        for row in rows
        if (row.get("PartitionName") in partitions if partitions else row.get("Default") == "YES")
    ]
    return [_number(row.get("OverTimeLimit"), 0.0) for row in chosen]


def _over_time_limit(seconds: float, configuration: Mapping[str, str], partitions: Sequence[str]) -> float:
    of_cluster = _number(configuration.get("OverTimeLimit"), 0.0)
    try:
        found = call(["scontrol", "--oneliner", "show", "partition"], seconds)
    except CommandFailed:
        return of_cluster
    return max([of_cluster, *parse_over_time_limits(found, partitions)])


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
        return None  # then sbatch refuses what is too much
    return min(found, default=None)


def _number(text: str | None, default: float) -> float:
    """Return the number of ``30 sec``; the default for UNLIMITED and for a missing entry."""
    found = re.match(r"\d+", text or "")
    return float(found[0]) if found else default

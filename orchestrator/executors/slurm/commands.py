"""Slurm's commands: how they are called, and what ``squeue`` and ``sacct`` answer.

Every command has a time limit, and one call answers for all jobs. Jobs are asked for by name: the name is
all that is known of a submission that was not confirmed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.errors import ExecutorError
from orchestrator.executors import inherited
from orchestrator.executors.slurm.silence import awaited
from orchestrator.executors.slurm.states import meaning, word
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
        with awaited(command, seconds):
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


# --- queue and accounting -------------------------------------------------------------------------------

_QUEUE_FORMAT = "%F|%K|%j|%T|%S|%e|%N|%C|%r"
_ACCOUNTING_FIELDS = "JobID,JobName,State,ElapsedRaw,NodeList,AllocCPUS,End"
_RAN = frozenset({"COMPLETED", "TIMEOUT", "OUT_OF_MEMORY"})  # states that only a job on nodes comes to
_LONGEST_ARGUMENT = 100_000  # bytes; Linux refuses more than 128 KiB
_MOST_TASKS = 4_000_001  # Slurm's own bound on the size of an array


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What Slurm reports of one element of a job array."""

    # name, number: of the array.
    name: str
    number: int
    index: int | None  # of the element; None stands for all elements that have no row of their own
    state: str  # as Slurm prints it
    started: float | None = None  # Unix seconds; None where it has not started, or the source does not say
    # Seconds charged for it, or None before its end, or where they are not known.
    elapsed: float | None = None
    reason: str = ""  # why it is still queued
    nodes: str = ""  # where it runs or ran, in Slurm's short form; empty before it got one
    cpus: int = 0  # allocated to it; 0 before it got a node

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
            elapsed = None if word(state) in _RAN else 0.0
            if started is not None and ended is not None:
                elapsed = max(0.0, ended - started)
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
            identifier, name, state, elapsed, nodes, cpus, end = line.split("|")
            number, _, indices = identifier.partition("_")
            somewhere = nodes not in ("", "None assigned")
            over = meaning(state) is AttemptState.LOST
            if over and (end == "Unknown" or (word(state) in _RAN and not somewhere)):
                # slurmdbd has its state, but not yet its end or its start: the seconds will change.
                state, over = "COMPLETING", False
            # A requeue is the end of one start: its time was spent, whatever becomes of the job.
            over = over or word(state) == "REQUEUED"
            seconds = float(_integer(elapsed or "0")) if somewhere else 0.0
            jobs += [
                Job(
                    name=name,
                    number=_integer(number),
                    index=index,
                    state=state,
                    elapsed=seconds if over else None,
                    nodes=nodes if somewhere else "",
                    cpus=_integer(cpus or "0"),
                )
                for index in _indices(indices)
            ]
        except ValueError as error:
            raise CommandFailed(f"sacct printed {line[:200]!r}: {error}") from error
    return jobs


def _instant(text: str) -> float | None:
    # squeue prints NONE as the end of a job without a time limit: somebody may have lifted it.
    return None if text in ("N/A", "Unknown", "None", "NONE", "0", "") else float(_integer(text))


def _integer(text: str) -> int:
    if not re.fullmatch(r"\d+", text, re.ASCII):  # int() would take " 1_000 "
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _indices(text: str) -> Sequence[int | None]:
    """Expand ``7``, ``[0-3,7]``, ``[0-6:2]`` and ``[0-3%2]``, as array elements are listed."""
    if not text.startswith("["):
        return [_integer(text) if text else None]
    match = re.fullmatch(r"\[([\d,:-]+)(?:%\d+)?\]", text)
    if match is None:
        raise ValueError(f"{text!r} is no list of array indices")
    indices: list[int | None] = []
    for item in match[1].split(","):
        span, _, step = item.partition(":")
        first, _, last = span.partition("-")
        stop = _integer(last or first) + 1
        if stop > _MOST_TASKS:
            raise ValueError(f"{text!r} is larger than any job array")
        indices += range(_integer(first), stop, _integer(step or "1"))
    return indices

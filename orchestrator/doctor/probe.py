"""How checks look at a machine: a `Probe` finds programs and runs commands, and tests replace it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from orchestrator.executors.slurm import commands
from orchestrator.executors.slurm.silence import awaited

_PATIENCE = 10.0  # seconds; without its configuration a command of Slurm tries for a minute
_GRACE = 2.0  # seconds from SIGTERM to SIGKILL; mpiexec ends its ranks on SIGTERM
_TICK = 0.02  # seconds


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed; ``ok`` means that it ended with exit code 0, in time."""

    ok: bool
    output: str = ""
    error: str = ""

    @property
    def complaint(self) -> str:
        """Return the last line that it printed as an error, which is the one that names the cause."""
        lines = [line for line in (self.error or self.output).splitlines() if line.strip()]
        return lines[-1].strip() if lines else "it printed nothing"


@dataclass(frozen=True, slots=True)
class Probe:
    """``which`` finds a program on PATH; ``ask`` runs a command and returns its answer, whatever happens."""

    which: Callable[[str], str | None]
    ask: Callable[[Sequence[str]], Answer]


def here(environment: Mapping[str, str] | None = None, patience: float = _PATIENCE) -> Probe:
    """Return the probe of this machine.

    Parameters
    ----------
    environment
        Of the commands; by default that of Slurm's commands. Their messages are in English in any case.
    patience
        Seconds after which a command that has not ended is ended, with whatever it started.
    """
    variables = {**(commands.environment() if environment is None else environment), "LC_ALL": "C"}
    return Probe(shutil.which, lambda command: _ask(command, variables, patience))


def _ask(command: Sequence[str], environment: Mapping[str, str], patience: float) -> Answer:
    # Files, not pipes: a grandchild may hold the other end of a pipe for ever.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as error:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=error,
                env=environment,
                start_new_session=True,
            )
        except OSError as cause:
            return Answer(False, error=f"{command[0]} cannot be started: {cause.strerror}")
        try:
            with awaited(command, patience):
                code = process.wait(patience)
        except subprocess.TimeoutExpired:
            _end(process)
            return Answer(False, error=f"no answer within {patience:g} s")
        return Answer(code == 0, _content(output), _content(error))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    deadline = time.monotonic() + _GRACE
    # Until wait() the process id of the leader, and so the id of its group, is not reused.
    ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, process.pid, ended) is None and time.monotonic() < deadline:
        time.sleep(_TICK)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")

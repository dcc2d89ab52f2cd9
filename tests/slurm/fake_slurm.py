"""Slurm's commands as scripts that answer what a test chooses, and a clock that a test turns."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator import storage
from orchestrator.executors.attempt import worker
from orchestrator.executors.slurm.executor import SlurmExecutor
from orchestrator.executors.slurm.options import SlurmSettings
from orchestrator.types import Attempt, AttemptRequest, Observation, Point, Resources, Run

START = 1_800_000_000.0
END = 1_800_000_009  # where nothing depends on it
COMMANDS = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sacctmgr")
SCRIPT = """\
#!/bin/sh
cd {answers}
echo "{name} $*" >> calls
env > {name}.env
[ -e {name}.seconds ] && sleep "$(cat {name}.seconds)"
[ -e {name}.sh ] && . ./{name}.sh
[ -e {name}.err ] && cat {name}.err >&2
[ -e {name}.out ] && cat {name}.out
[ -e {name}.code ] && exit "$(cat {name}.code)"
exit 0
"""
CONFIGURATION = """\
AccountingStorageType   = accounting_storage/{kind}
ClusterName             = {cluster}
KillWait                = 30 sec
MaxArraySize            = 1001
MinJobAge               = 300 sec
OverTimeLimit           = 0 min
"""


@dataclass
class FakeSlurm:
    """The commands, what they were called with, and executors over one campaign directory.

    Attributes
    ----------
    now
        The executors' clock; waiting turns it.
    """

    folder: Path
    campaign: Path
    accounting: bool = True
    now: float = START
    requests: list[AttemptRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        for name in COMMANDS:
            script = self.folder / name
            script.write_text(SCRIPT.format(answers=shlex.quote(str(self.folder)), name=name))
            script.chmod(0o755)
        self.name_cluster("testing")
        self.answer("sbatch", "Submitted batch job 100\n")

    def name_cluster(self, name: str) -> None:
        """Become the cluster of this name."""
        kind = "slurmdbd" if self.accounting else "none"
        self.answer("scontrol", CONFIGURATION.format(kind=kind, cluster=name))

    def answer(
        self, name: str, out: str = "", err: str = "", code: int = 0, seconds: float = 0, script: str = ""
    ) -> None:
        """Let a command print this and exit with this code, after some seconds."""
        texts = {"out": out, "err": err, "code": str(code), "seconds": str(seconds), "sh": script}
        for suffix, text in texts.items():
            path = self.folder / f"{name}.{suffix}"
            if text not in ("", "0"):
                path.write_text(text)
            else:
                path.unlink(missing_ok=True)

    def calls(self, name: str) -> list[str]:
        """Return what a command was called with, call by call."""
        log = self.folder / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.partition(" ")[2] for line in lines if line.split(" ")[0] == name]

    def environment(self, name: str) -> str:
        """Return the environment that a command last saw."""
        return (self.folder / f"{name}.env").read_text()

    def executor(self, **settings: Any) -> SlurmExecutor:
        """Return a new controller's executor."""
        return SlurmExecutor(
            self.campaign,
            SlurmSettings(**{"command_timeout": 5.0, "file_grace": 30.0, **settings}),
            np.random.default_rng(1),
            clock=lambda: self.now,
            sleep=self.turn,
        )

    def turn(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def request(self, script: str = "true\n", cores: int = 1, limit: float = 100.0) -> AttemptRequest:
        """Describe one attempt more."""
        number = len(self.requests) + 1
        one = Attempt(Run(Point.of(p=cores), "time", number))
        resources = Resources(ranks=cores, ranks_per_node=cores, cores=cores)
        directory = self.campaign / "runs" / one.id
        request = AttemptRequest(
            attempt=one,
            name=f"name-{number}",
            directory=directory,
            resources=resources,
            limit=limit,
            script="#!/bin/sh\n" + script,
        )
        self.requests.append(request)
        return request

    def batch(self) -> str:
        """Return the name of the only batch."""
        [manifest] = (self.campaign / "batches").glob("*.json")
        return manifest.stem

    def queue(self, *rows: str) -> None:
        """Let ``squeue`` list ``id state [reason]`` under the name of the batch, all started at START."""
        text = ""
        for row in rows:
            identifier, state, *reason = row.split()
            job, _, index = identifier.partition("_")
            times = "N/A|N/A||1" if state == "PENDING" else f"{START:.0f}|{self.now:.0f}|n1|1"
            text += f"{job}|{index}|{self.batch()}|{state}|{times}|{' '.join(reason) or 'None'}\n"
        self.answer("squeue", text)

    def accounted(self, *rows: str) -> None:
        """Let ``sacct`` list ``id elapsed state`` under the name of the batch."""
        parts = [row.split(maxsplit=2) for row in rows]
        self.answer("sacct", "".join(f"{i}|{self.batch()}|{state}|{t}|n1|1|{END}\n" for i, t, state in parts))

    def execute(self, request: AttemptRequest) -> int:
        """Do what a node does; return the exit code of the attempt's process."""
        return subprocess.run(worker.command(str(request.directory)), check=False).returncode

    def begin(self, request: AttemptRequest, lasted: float | None = None) -> None:
        """Leave behind what an attempt leaves whose node died while it ran, or that ended well."""
        end = "" if lasted is None else f', "finished": "{storage.iso(self.now + lasted)}", "exit_code": 0'
        assert worker.claim(request.directory, worker.OWNER)
        (request.directory / worker.RECORD).write_text(
            f'{{"run": "{request.attempt.run.id}", "attempt": 1, "host": "n1", "pid": 1, "boot": "b", '
            f'"namespace": "n", "processes": [], "started": "{storage.iso(self.now)}"{end}}}'
        )


def install(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Put the commands before those of the machine."""
    monkeypatch.setenv("PATH", f"{slurm.folder}{os.pathsep}{os.environ['PATH']}")
    return slurm


def state_of(observations: list[Observation]) -> str:
    """Return the state of the only observation."""
    [observation] = observations
    return observation.state.value


def submitted(slurm: FakeSlurm, script: str = "true\n") -> tuple[SlurmExecutor, AttemptRequest]:
    request = slurm.request(script)
    executor = slurm.executor()
    executor.submit([request])
    return executor, request


def states(slurm: FakeSlurm, executor: SlurmExecutor, request: AttemptRequest, seconds: float) -> set[str]:
    """Poll for a while; return every state that was reported."""
    seen = set()
    deadline = slurm.now + seconds
    while slurm.now < deadline:
        seen.add(state_of(executor.poll([request])))
        executor.wait(5.0)
    return seen

"""Executors for the contract suite: each joins with one function and one entry in a table."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from orchestrator.executors.base import Executor, SimulatedRun
from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.executors.simulated.executor import SimulatedExecutor, SimulatedSettings
from orchestrator.types import (
    Attempt,
    AttemptRequest,
    AttemptState,
    Observation,
    Point,
    Resources,
    Run,
    Sample,
)
from tests.slurm.faulty.server import FaultySlurm
from tests.slurm.faulty.world import Settings
from tests.slurm.fixtures import executor as slurm_executor

TERMINAL = {AttemptState.FINISHED, AttemptState.LOST}
PATIENCE = 300.0  # seconds; only against hangs


@dataclass
class ExecutorUnderTest:
    """An executor and what the suite may expect of it.

    Attributes
    ----------
    make
        A new controller's executor over the same directories and the same machine or cluster.
    directory
        A campaign directory.
    real
        Whether processes are really started, so that scripts matter and files appear.
    limit
        Seconds given to attempts that are to finish.
    short_limit
        The shortest limit that the executor can keep, in seconds.
    slots
        Cores that run at once: one attempt more than that has to wait.
    """

    make: Callable[[], Executor]
    directory: Path
    real: bool = True
    limit: float = 60.0
    short_limit: float = 0.3
    slots: int = 2
    requests: list[AttemptRequest] = field(default_factory=list)

    def request(
        self,
        script: str = "true\n",
        limit: float | None = None,
        cores: int = 1,
        files: Mapping[str, str] | None = None,
        directory: Path | None = None,
        shebang: str = "#!/bin/sh\n",
    ) -> AttemptRequest:
        """Describe one attempt more, at a run of its own."""
        number = len(self.requests) + 1
        attempt = Attempt(Run(Point.of(p=cores), "time", number))
        request = AttemptRequest(
            attempt=attempt,
            name=f"test-{os.getpid()}-{self.directory.parent.name}-{number}",
            directory=directory or self.directory / "runs" / attempt.id,
            resources=Resources(ranks=cores, ranks_per_node=cores, cores=cores),
            limit=self.limit if limit is None else limit,
            script=shebang + script,
            files=files or {},
        )
        self.requests.append(request)
        return request


def local(request: pytest.FixtureRequest, directory: Path) -> ExecutorUnderTest:
    """Two slots, so that there is both running side by side and waiting."""
    return ExecutorUnderTest(lambda: LocalExecutor(slots=2), directory)


def simulated(request: pytest.FixtureRequest, directory: Path) -> ExecutorUnderTest:
    """Runs of one virtual second; a new controller finds nothing of the old one's."""
    settings = SimulatedSettings(slots=2)
    truth = SimulatedRun((Sample("main", "time", 1.0, "value"),), 1.0)
    return ExecutorUnderTest(
        lambda: SimulatedExecutor(settings, lambda run, rng: truth), directory, real=False
    )


def slurm(request: pytest.FixtureRequest, directory: Path) -> ExecutorUnderTest:
    """Two of a node's cores on a cluster that keeps accounts."""
    return _on_cluster(request, directory, "slurm_cluster")


def slurm_without_accounting(request: pytest.FixtureRequest, directory: Path) -> ExecutorUnderTest:
    """The same where only the queue and the attempts' own files report."""
    return _on_cluster(request, directory, "slurm_cluster_without_accounting")


def faulty_slurm(request: pytest.FixtureRequest, directory: Path) -> ExecutorUnderTest:
    """The Slurm that can fail on purpose, while it does not."""
    return _on_faulty_slurm(request, directory, accounting=True)


def faulty_slurm_without_accounting(request: pytest.FixtureRequest, directory: Path) -> ExecutorUnderTest:
    """The same without accounts."""
    return _on_faulty_slurm(request, directory, accounting=False)


def _on_faulty_slurm(request: pytest.FixtureRequest, directory: Path, accounting: bool) -> ExecutorUnderTest:
    settings = Settings(nodes={"small": 2}, accounting=accounting, kill_wait=5)
    slurm = FaultySlurm(directory.parent / "faulty", settings).__enter__()
    request.addfinalizer(lambda: slurm.__exit__(None, None, None))
    path = f"{slurm.bin}{os.pathsep}{os.environ['PATH']}"
    request.getfixturevalue("monkeypatch").setenv("PATH", path)
    return ExecutorUnderTest(lambda: slurm_executor(directory, "small"), directory)


def _on_cluster(request: pytest.FixtureRequest, directory: Path, fixture: str) -> ExecutorUnderTest:
    cluster = request.getfixturevalue(fixture)
    request.getfixturevalue("monkeypatch").setenv("SLURM_CONF", str(cluster.conf))
    return ExecutorUnderTest(lambda: slurm_executor(directory, "small"), directory)


Factory = Callable[[pytest.FixtureRequest, Path], ExecutorUnderTest]

WITH_PROCESSES: dict[str, Factory] = {
    "local": local,
    "slurm": slurm,
    "slurm without accounting": slurm_without_accounting,
    "faulty slurm": faulty_slurm,
    "faulty slurm without accounting": faulty_slurm_without_accounting,
}
EXECUTORS: dict[str, Factory] = {**WITH_PROCESSES, "simulated": simulated}


# --- watching -----------------------------------------------------------------------------------------


def watch(
    executor: Executor,
    requests: Sequence[AttemptRequest],
    until: Callable[[Mapping[Attempt, Observation]], bool] | None = None,
    patience: float = PATIENCE,
) -> dict[Attempt, Observation]:
    """Poll until all ended (or ``until`` is true) and return the last observations.

    Fails if an attempt's state goes backwards, or after ``patience`` seconds.
    """
    last: dict[Attempt, Observation] = {}
    deadline = time.monotonic() + patience
    while True:
        open_requests = [
            item for item in requests if item.attempt not in last or not over(last[item.attempt])
        ]
        for item in executor.poll(open_requests):
            before = last.get(item.attempt)
            goes_back = before is not None and not item.revoked and _goes_back(before.state, item.state)
            assert not goes_back, f"{before} -> {item}"
            last[item.attempt] = item
        if until(last) if until else all(map(over, last.values())):
            return last
        assert time.monotonic() < deadline, f"after {patience} s: {last}"
        executor.wait(5.0)


def settle(executor: Executor, requests: Sequence[AttemptRequest]) -> list[Observation]:
    """Watch attempts to their end, and charges that were estimated to their correction."""
    last = watch(executor, requests)
    deadline = time.monotonic() + PATIENCE
    while open_ := [item for item in requests if last[item.attempt].estimated]:
        for item in executor.charged(open_):
            if item is not None:
                last[item.attempt] = replace(last[item.attempt], elapsed=item.elapsed, estimated=False)
        assert time.monotonic() < deadline, f"after {PATIENCE} s: {last}"
        executor.wait(0.1)
    return [last[item.attempt] for item in requests]


def over(observation: Observation) -> bool:
    """Whether nothing more is to be seen of an attempt."""
    return observation.state in TERMINAL or observation.revoked


def _goes_back(before: AttemptState, after: AttemptState) -> bool:
    order = [AttemptState.QUEUED, AttemptState.RUNNING, AttemptState.FINISHED]
    if after is AttemptState.ABSENT:
        return True
    return before in order and after in order and order.index(after) < order.index(before)


def run(executor: Executor, *requests: AttemptRequest) -> list[Observation]:
    """Submit attempts and watch them to their end."""
    executor.submit(requests)
    last = watch(executor, requests)
    return [last[item.attempt] for item in requests]


def wait_for_file(path: Path, patience: float = PATIENCE) -> str:
    """Return the content of a file that a script writes, once there is any."""
    deadline = time.monotonic() + patience
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"{path} never appeared"
        time.sleep(0.01)
    return path.read_text()


def processes_of(directory: Path) -> list[int]:
    """Return the living processes that were started, by attempts of any kind, below a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"ORCHESTRATOR_ATTEMPT={directory}".encode() in environment:
                found.append(int(entry.name))
    return found


def assert_nothing_lives(directory: Path, patience: float = 10.0) -> None:
    """Fail if a process started below a directory outlives ``patience`` seconds; end it then."""
    deadline = time.monotonic() + patience
    while (pids := processes_of(directory)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert not pids, f"processes outlived their attempts: {pids}"

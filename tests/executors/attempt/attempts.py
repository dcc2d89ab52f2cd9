"""Attempts as executors start them, what they leave in their directories, and scripts for them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from orchestrator.executors.attempt import processes
from orchestrator.executors.attempt import worker as attempt
from orchestrator.executors.attempt.record import read_record
from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import AttemptRecord, AttemptRequest, Observation

ROOT = str(Path(__file__).parents[3])

UNTIL_GO = "echo begun\nwhile [ ! -e go ]; do sleep 0.02; done\n"

# A program that ignores SIGTERM and whose daemon has left its session and process group.
STUBBORN = """\
trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ > daemon; sleep 600; sleep 600' &
while [ ! -s daemon ]; do sleep 0.01; done
echo begun
sleep 600
sleep 600
"""

# Python executed before an attempt: what waits, waits briefly.
FAST = """
attempt.TERM_GRACE = attempt.GUARD_SLACK = 0.2
attempt.KILL_WAIT = processes.KILL_WAIT = 0.5
"""


def start(request: AttemptRequest, patch: str = "", **variables: str) -> subprocess.Popen[bytes]:
    """Start the process of an attempt as executors do; ``patch`` is Python executed before."""
    command = attempt.command(str(request.directory))
    if patch:
        command[-2] = (
            f"import sys; sys.path.append({ROOT!r})\n"
            "from orchestrator.executors.attempt import processes, worker as attempt\n"
            f"{patch}\nattempt.main()"
        )
    environment = {**os.environ, processes.MARK: str(request.directory), **variables}
    return subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE)


def execute(request: AttemptRequest, patch: str = "", **variables: str) -> AttemptRecord:
    with start(request, patch, **variables) as process:
        _, complaints = process.communicate(timeout=300)
    assert process.returncode == attempt.DONE, complaints
    record = read_record(request.directory)
    assert record is not None
    return record


def document(request: AttemptRequest) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((request.directory / "attempt.json").read_text())
    return result


def owners(request: AttemptRequest) -> tuple[int, int]:
    """Return the pids of guard and worker."""
    (guard, _), (worker, _) = document(request)["processes"]
    return guard, worker


def charged(record: AttemptRecord | None) -> float:
    assert record is not None and record.finished is not None
    return record.finished - record.started


def wait_for_record(request: AttemptRequest) -> None:
    while read_record(request.directory) is None:
        time.sleep(0.01)


def one(executor: LocalExecutor, request: AttemptRequest) -> Observation:
    """Return what an executor finds of an attempt, even one that it did not submit."""
    [observation] = executor.find([request])
    return observation

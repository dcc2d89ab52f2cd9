"""The local executor: after a controller was killed, the next one executes what is left."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest

from orchestrator.executors.local.executor import LocalExecutor
from orchestrator.types import AttemptState
from tests.executors.attempt.attempts import ROOT
from tests.executors.under_test import ExecutorUnderTest, watch

CONTROLLER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from orchestrator.executors.local.executor import LocalExecutor
from tests.executors.under_test import ExecutorUnderTest, local
tested = local(None, Path(sys.argv[2]))
script = "echo $$ >> times\\nsleep 0.1\\n"
requests = [tested.request(script) for _ in range(4)]
executor = LocalExecutor(slots=2)
print("ready", flush=True)
executor.submit(requests)
while True:
    executor.wait(5)
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_controller_killed_at_any_time_leaves_every_attempt_executed_once(
    machine: ExecutorUnderTest, seed: int
) -> None:
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, ROOT, str(machine.directory)], stdout=subprocess.PIPE
    )
    assert controller.stdout is not None
    with controller:
        assert controller.stdout.readline() == b"ready\n"
        time.sleep(random.Random(seed).uniform(0, 0.2))
        controller.kill()
    requests = [machine.request("echo $$ >> times\nsleep 0.1\n") for _ in range(4)]
    executor = LocalExecutor(slots=2)
    absent = [
        request
        for request, found in zip(requests, executor.find(requests), strict=True)
        if found.state is AttemptState.ABSENT
    ]
    executor.submit(absent)
    states = {item.state for item in watch(executor, requests).values()}
    assert states == {AttemptState.FINISHED}
    for request in requests:
        assert len((request.directory / "times").read_text().splitlines()) == 1

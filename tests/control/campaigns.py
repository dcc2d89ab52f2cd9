"""Campaigns of these tests: simulated, and as programs on this machine."""

from __future__ import annotations

from pathlib import Path

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.journal.state import RunStatus, State

SIMULATED = """
name: rehearsal
application: generic
program: {arguments: ["{p}"], ranks: p, output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {p: [1, 2, 4, 8], n: [10, 20, 30, 40]}
evaluation_point: {p: 16, n: 50}
measure: {time_limit: 60 s, expected_time: 5 s}
model: pmnf
stop: {budget: 2 core-hours, patience: 3}
executor:
  name: simulated
  poll_interval: 1 s
  truth: {solve: "0.5 + 0.05*n*p", exchange: "1 + log2(p)*n*0.01"}
"""
# Fails until MENDED is set.
SHELL = """
name: shell
application: generic
executable: /bin/sh
program:
  arguments: ["-c", "sleep $LONG; test -n \\"$MENDED\\" && echo t={n}"]
  ranks: "1"
  output: [{callpath: main, pattern: "t=(.*)"}]
parameters: {n: [10, 20, 30, 40]}
evaluation_point: {n: 50}
measure: {time_limit: 60 s, expected_time: 5 s, repetitions: {initial: 1, maximum: 1}}
strategy: {name: full, batch_size: 4}
stop: {budget: 2 core-hours, patience: 1, failures: 2}
executor: {name: local, slots: 1, launcher: none, oversubscribe: true, environment: {LONG: "0"}}
"""
_LOCAL = """
name: local
application: generic
executable: /bin/sh
program:
  arguments: ["-c", 'echo "total {n}.5 s"; REST']
  output: [{callpath: main, pattern: 'total (\\S+) s'}]
parameters: {n: [10, 20, 30]}
measure: {time_limit: 60 s, expected_time: 5 s, repetitions: {initial: 1, maximum: 1}}
strategy: {name: full, batch_size: 4}
stop: {budget: 2 core-hours, patience: 1}
retries: {application: 0, parse: 0}
executor: {name: local, slots: 1, launcher: none, oversubscribe: true}
"""


def load(*overrides: str, text: str = SIMULATED) -> Campaign:
    return loader.loads(text, "test.yaml", Path.cwd(), overrides)


def local(rest: str, retries: int = 0) -> str:
    """Return a campaign file whose program prints a total and does the rest."""
    return _LOCAL.replace("REST", rest).replace("application: 0", f"application: {retries}")


def values(state: State) -> dict[int, float]:
    measured = {run.point["n"]: item for run, item in state.runs.items() if item.status is RunStatus.MEASURED}
    return {int(n): dict(item.samples["time"])["main"] for n, item in sorted(measured.items())}

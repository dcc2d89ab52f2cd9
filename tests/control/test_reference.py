"""A drift in a whole campaign: reference runs are made, charged and shown; without one nothing changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import session
from orchestrator.executors.simulated.executor import SimulatedExecutor
from orchestrator.journal.references import REASON, references
from orchestrator.journal.state import State
from orchestrator.types import AttemptRequest, Observation, Sample
from tests.cli.running import SIMULATED, run

CAMPAIGN = SIMULATED.replace("failure_rate: 0.1", "failure_rate: 0").replace("noise: 2", "noise: 1")


def drifting(monkeypatch: pytest.MonkeyPatch, per_hour: float) -> None:
    """Let the samples of rehearsed runs grow with the virtual time at which they began."""
    poll = SimulatedExecutor.poll

    def grown(item: Observation) -> Observation:
        if item.record is None or not item.samples:
            return item
        factor = 1 + per_hour * (item.record.started - START[0]) / 3600
        samples = tuple(Sample(s.callpath, s.metric, factor * s.value, s.aggregate) for s in item.samples)
        return Observation(item.attempt, item.state, item.handle, record=item.record, samples=samples)

    def polled(self: SimulatedExecutor, attempts: list[AttemptRequest]) -> list[Observation]:
        found = poll(self, attempts)
        started = [item.record.started for item in found if item.record is not None]
        if started and not START:
            START.append(min(started))
        return [grown(item) for item in found]

    START: list[float] = []
    monkeypatch.setattr(SimulatedExecutor, "poll", polled)


def made(directory: Path, *overrides: str) -> State:
    return session.run(loader.loads(CAMPAIGN, overrides=overrides), directory)


def test_a_drift_brings_reference_runs_whose_cost_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drifting(monkeypatch, 0.2)
    state = made(tmp_path)
    found = references(state)
    assert len(found.points) == 1 and found.runs >= 1
    assert 0 < found.cost <= 0.05 * 5 * 3600
    assert "slower" in state.machine["drift"]
    status = run("status", tmp_path)
    assert f"reference runs: {found.runs} measured at {found.points[0]}" in status.out
    assert "drift: the same points became" in " ".join(status.out.split())
    log = run("log", tmp_path)
    assert f"for {found.runs} reference run" in log.out and "drift: the same points" in log.out
    assert run("log", tmp_path, "--json").document["reference"]["cost"] == pytest.approx(found.cost / 3600)


def test_without_a_drift_there_are_none(tmp_path: Path) -> None:
    state = made(tmp_path)
    assert references(state).points == ()
    assert state.machine == {}
    assert run("status", tmp_path, "--json").document["reference"] is None


def test_they_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drifting(monkeypatch, 0.2)
    state = made(tmp_path, "measure.reference=false")
    assert references(state).points == ()
    assert "drift" in state.machine


def test_of_two_executables_both_have_every_reference_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drifting(monkeypatch, 0.2)
    state = made(tmp_path, "compare={with: /bin/false}")
    chosen = [run for run, item in state.runs.items() if item.chosen.startswith(REASON)]
    assert chosen
    kinds = Counter(run.point["variant"] for run in chosen)
    assert kinds["A"] == kinds["B"]
    assert references(state).cost <= 0.05 * 5 * 3600
    assert "reference runs: " in run("status", tmp_path).out

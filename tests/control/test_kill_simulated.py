"""SIGKILL at every boundary of the journal, in simulation: resume loses nothing and repeats nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import existing, overview, session
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.state import State
from tests.crash import campaign_in_child

CAMPAIGN = """
name: rehearsal
application: generic
program: {arguments: ["{p}"], ranks: p, output: [{callpath: main, pattern: "t=(.*)"}]}
parameters: {p: [1, 2], n: [10, 20]}
evaluation_point: {p: 8, n: 30}
measure: {time_limit: 100 s, repetitions: {initial: 1, maximum: 2}}
strategy: {name: full, batch_size: 3}
stop: {budget: 5 core-hours, patience: 9}
executor:
  name: simulated
  max_pending: 3
  poll_interval: 1 s
  queue_delay: 20 s
  failure_rate: 0.25
  noise: 3
  truth: {solve: "2 + 0.1*n*p", exchange: "1 + log2(p)*n*0.01"}
model: pmnf  # rather than all families: hundreds of campaigns are fitted after every round
validate: true
seed: 4
"""

_MODELS: dict[str, object] = {}


def final(directory: Path) -> State:
    return existing.replayed(directory)


def models(state: State) -> object:
    measured = [(run, item.samples) for run, item in state.runs.items()]
    if repr(measured) not in _MODELS:  # what was measured in the same order has the same models
        document = overview.status_of(loader.loads(CAMPAIGN, "test.yaml", Path.cwd()), state)
        _MODELS[repr(measured)] = document["models"]
    return _MODELS[repr(measured)]


@dataclass(frozen=True)
class Reference:
    """A campaign that nobody killed: its final state and its models."""

    state: State
    models: object


def reference(directory: Path) -> Reference:
    state = final(directory)
    return Reference(state, models(state))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    directory = tmp_path_factory.mktemp("uninterrupted")
    assert campaign_in_child(CAMPAIGN, directory) == 0
    return reference(directory)


@pytest.fixture(scope="module")
def appends(tmp_path_factory: pytest.TempPathFactory) -> int:
    return count_appends(tmp_path_factory.mktemp("count"))


def check_same_campaign(directory: Path, expected: Reference) -> None:
    """Every run has one accepted attempt, costs add up, the models are those of the reference."""
    entries = [entry.event for entry in read(directory / FILE_NAME)]
    state = final(directory)
    assert state.stopped is not None and not state.in_flight
    settled = [event for event in entries if isinstance(event, events.AttemptFinished)]
    accepted = Counter(event.attempt.run for event in settled if event.failure is None)
    assert set(accepted.values()) == {1}
    assert len({event.attempt for event in settled}) == len(settled), "an attempt was settled twice"
    assert state.spent == pytest.approx(sum(event.cost for event in settled))
    assert state.spent == pytest.approx(expected.state.spent)
    samples = {run: item.samples for run, item in state.runs.items()}
    assert samples == {run: item.samples for run, item in expected.state.runs.items()}
    assert state.stopped == expected.state.stopped
    assert models(state) == expected.models


def count_appends(directory: Path) -> int:
    """Appends of one uninterrupted campaign, counted by running it once more."""
    seen = []
    chosen = loader.loads(CAMPAIGN, "test.yaml", Path.cwd())
    session.run(chosen, directory, session.Hooks(boundary=lambda moment, entries: seen.append(moment)))
    return seen.count("after")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_a_kill_at_any_append_loses_and_repeats_nothing(
    moment: str, uninterrupted: Reference, appends: int, tmp_path: Path
) -> None:
    assert appends > 20
    for append in range(1, appends + 1):
        directory = tmp_path / str(append)
        assert campaign_in_child(CAMPAIGN, directory, moment, append) == -9
        assert campaign_in_child(CAMPAIGN, directory) == 0
        check_same_campaign(directory, uninterrupted)


def test_a_controller_that_is_killed_again_and_again_still_gets_there(
    uninterrupted: Reference, tmp_path: Path
) -> None:
    for _ in range(200):
        code = campaign_in_child(CAMPAIGN, tmp_path / "c", "after", 15)
        if code == 0:
            break
        assert code == -9
    check_same_campaign(tmp_path / "c", uninterrupted)

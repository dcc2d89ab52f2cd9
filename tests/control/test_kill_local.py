"""SIGKILL of the controller of real processes: what outlives it is adopted, nothing runs twice at once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import existing, overview
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.state import RunStatus, State
from tests.crash import campaign_in_child
from tests.executors.under_test import processes_of
from tests.processes import wait_until_dead

# The program notes when each attempt begins and ends, and prints a value that depends on its point only.
CAMPAIGN = """
name: kill-local
application: generic
executable: /bin/sh
program:
  arguments:
    - -c
    - 'echo "begin $PWD" >> {log}; sleep 0.05; echo t=$(({p} * {n})); echo "end $PWD" >> {log}'
  output: [{callpath: main, pattern: "t=(.*)"}]
settings: {log: LOG}
parameters: {p: [1, 2], n: [10, 20]}
evaluation_point: {p: 4, n: 30}
model: pmnf
measure: {time_limit: 20 s, repetitions: {initial: 1, maximum: 1}}
strategy: {name: full, batch_size: 2}
stop: {budget: 5 core-hours, patience: 9}
executor: {name: local, slots: 2, max_pending: 3, launcher: none}
validate: true
"""


def text_for(directory: Path) -> str:
    return CAMPAIGN.replace("LOG", str(directory.with_suffix(".log")))


def run_to_the_end(directory: Path, moment: str = "", append: int = 0) -> int:
    directory.parent.mkdir(exist_ok=True)
    return campaign_in_child(text_for(directory), directory, moment, append)


def time_models(directory: Path, state: State) -> object:
    document = overview.status_of(loader.loads(text_for(directory), "test.yaml", Path.cwd()), state)
    return [model for model in document["models"] if model["metric"] == "time"]


def check(directory: Path, reference: Path) -> None:
    state, expected = existing.replayed(directory), existing.replayed(reference)
    entries = [entry.event for entry in read(directory / FILE_NAME)]
    settled = [event for event in entries if isinstance(event, events.AttemptFinished)]
    assert state.stopped == expected.stopped and not state.in_flight
    assert {item.status for item in state.runs.values()} == {RunStatus.MEASURED}
    accepted = Counter(event.attempt.run for event in settled if event.failure is None)
    assert set(accepted) == set(expected.runs) and set(accepted.values()) == {1}
    assert state.spent == pytest.approx(sum(event.cost for event in settled))
    assert time_models(directory, state) == time_models(reference, expected)
    check_log(directory.with_suffix(".log"), attempts={event.attempt.id for event in settled})
    for event in settled:
        record = json.loads((directory / "runs" / event.attempt.id / "attempt.json").read_text())
        assert record["finished"], "settled without proof"


def check_log(log: Path, attempts: set[str]) -> None:
    """Every attempt began once and ended once; no run had two attempts at the same time."""
    lines = [line.split(" ", 1) for line in log.read_text().splitlines()]
    began = [path for word, path in lines if word == "begin"]
    assert len(set(began)) == len(began) == len(attempts)
    assert {path.split("/runs/")[1] for path in began} == attempts
    running: set[str] = set()
    for word, path in lines:
        run = path.rsplit("/", 1)[0]
        if word == "begin":
            assert run not in running, f"{run} was executed twice at the same time"
            running.add(run)
        else:
            running.remove(run)
    assert not running


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("kill-local") / "uninterrupted"
    assert run_to_the_end(directory) == 0
    check(directory, directory)
    return directory


def test_a_run_that_deleted_its_directory_while_no_controller_ran_is_charged_and_not_repeated(
    tmp_path: Path,
) -> None:
    delete = 'case {p}-{n}$PWD in 1-10*attempt-1) rm -rf "$PWD";; esac; sleep 0.3'
    directory = tmp_path / "deleted"
    text = text_for(directory).replace("sleep 0.05", delete)
    assert campaign_in_child(text, directory, "after", 5) == -9
    wait_until_dead(*processes_of(directory))  # so that nothing is left but what the journal has seen
    deleted = "p=1,n=10/time-1/attempt-1"
    now = existing.replayed(directory)
    assert deleted in {attempt.id for attempt, item in now.in_flight.items() if item.running}
    assert campaign_in_child(text, directory) == 0
    entries = [entry.event for entry in read(directory / FILE_NAME)]
    charged = {event.attempt.id: event.cost for event in entries if isinstance(event, events.AttemptFinished)}
    assert charged[deleted] > 20, "what was reserved"
    check_log(directory.with_suffix(".log"), attempts=set(charged))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_at_any_append_loses_and_repeats_nothing(
    moment: str, uninterrupted: Path, tmp_path: Path
) -> None:
    killed = 0
    for append in range(1, 40):
        directory = tmp_path / str(append)
        code = run_to_the_end(directory, moment, append)
        if code == 0:
            break  # the campaign has fewer appends than that
        assert code == -9
        killed += 1
        assert run_to_the_end(directory) == 0
        check(directory, uninterrupted)
    assert killed >= 12


@pytest.mark.slow
def test_many_kills_of_one_campaign(uninterrupted: Path, tmp_path: Path) -> None:
    directory = tmp_path / "again"
    codes = [run_to_the_end(directory, "torn", 2 + number % 5) for number in range(8)]
    assert set(codes) <= {-9, 0} and codes.count(-9) >= 3
    assert run_to_the_end(directory) == 0
    check(directory, uninterrupted)

"""A campaign learns where its program does not run, measures elsewhere, and says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.cli.main import main
from orchestrator.control import reporting, session
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.state import RunStatus, State
from orchestrator.policy import failing
from orchestrator.report import advice
from orchestrator.types import Point

CAMPAIGN = """
name: fails-beyond
application: generic
executable: PROGRAM
program:
  arguments: ["{n}", "{m}"]
  output: [{callpath: main, pattern: 'total (\\S+) s'}]
parameters: {n: [10, 20, 30, 40, 50, 60, 70, 80, 90, 100], m: [1, 2, 3]}
evaluation_point: {n: 110, m: 5}
measure: {time_limit: 60 s, expected_time: 1 s, repetitions: {initial: 1, maximum: 1}}
strategy: {name: grid, batch_size: 10}
stop: {budget: 2 core-hours, patience: 80, failures: 5}
executor: {name: local, slots: 1, launcher: none, oversubscribe: true}
"""


PROGRAM = """#!/bin/sh
if test $1 -ge 60 && ! test -e REPAIRED; then
  echo "Error: mesh too fine" >&2
  exit 3
fi
echo "total $1.$2 s"
"""


def finished(folder: Path, *overrides: str) -> State:
    """Run a campaign with a program that fails from n = 60 on, until ``repaired`` is beside its directory."""
    program = folder.parent / "program"
    program.write_text(PROGRAM.replace("REPAIRED", str(folder.parent / "repaired")))
    program.chmod(0o755)
    text = CAMPAIGN.replace("PROGRAM", str(program))
    chosen = loader.loads(text, "test.yaml", Path.cwd(), overrides)
    return session.run(chosen, folder, session.Hooks(again=True))


def points(state: State, status: RunStatus) -> set[Point]:
    return {run.point for run, item in state.runs.items() if item.status is status}


@pytest.mark.parametrize("name", ["grid", "random", "information"])
def test_a_campaign_measures_where_its_program_runs(tmp_path: Path, name: str) -> None:
    state = finished(tmp_path / name, f"strategy.name={name}")
    failed = points(state, RunStatus.GIVEN_UP)
    assert state.stopped is not None
    assert state.stopped.rule not in ("failures", "failure_rate")
    assert 2 <= len(failed) <= 12  # of 15
    assert all(point.number("n") >= 60 for point in failed)
    least = min(point.number("n") for point in failed)
    measured = points(state, RunStatus.MEASURED)
    assert len(measured) >= 8 and max(point.number("n") for point in measured) < least
    assert failing.warnings(state)[0].startswith(f"left out: n >= {least:g} (all {len(failed)} points tried")


def test_status_and_log_say_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished(tmp_path / "told", "strategy={name: random, batch_size: 4}", "validate=true")
    notes = {
        entry.event.note
        for entry in read(tmp_path / "told" / FILE_NAME)
        if isinstance(entry.event, events.RoundProposed)
    }
    assert any(note.startswith("left out: n >= ") for note in notes)
    assert main(["status", str(tmp_path / "told")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"left out: n >= \d+ \(all \d+ points tried there were given up, none of \d+ ", said)
    assert "application: exit code 3; last line of stderr: Error: mesh too fine)" in said
    assert "the evaluation point is one of these: the program probably fails there" in said
    assert main(["status", "--json", str(tmp_path / "told")]) == 0
    status = json.loads(capsys.readouterr().out)
    assert len(status["left_out"]) == 2
    assert re.fullmatch(
        r"validation not made: \S+/time-1 was skipped: left out: n >= \d+", status["no_validation"]
    )


def test_the_map_of_the_report_shows_what_was_left_out(tmp_path: Path) -> None:
    finished(tmp_path / "shown", "strategy={name: random, batch_size: 4}")
    shown = {item["reason"]: item["state"] for item in reporting.document(tmp_path / "shown")["points"]}
    (why,) = (reason for reason in shown if reason.startswith("left out: n >= "))
    assert shown[why] == "infeasible"


def test_a_resumed_campaign_tries_again(tmp_path: Path) -> None:
    """Whoever resumes it by the same rules has repaired the program."""
    folder = tmp_path / "again"
    before = finished(folder)
    assert before.stopped is not None and before.stopped.rule == "exhausted"
    assert "once it runs there, continue with: orchestrator resume" in advice.to_continue(before, folder)
    (tmp_path / "repaired").touch()
    assert finished(folder, "stop.patience=90").infeasible == before.infeasible  # another rule says nothing
    state = finished(folder, "stop.patience=90")
    assert not state.infeasible
    assert {point.number("n") for point in points(state, RunStatus.MEASURED)} >= {60, 100}

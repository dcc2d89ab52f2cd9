"""Outputs are read again by other rules: as events that count together, or not at all."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from orchestrator.campaign import changes
from orchestrator.campaign.definition import Campaign
from orchestrator.control import existing, session
from orchestrator.control.reread import reread, rules
from orchestrator.errors import CampaignError, JournalError
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.measurements import measurements
from orchestrator.journal.replay import replay
from orchestrator.journal.state import WRONG_UNIT, RunStatus
from orchestrator.journal.writer import Journal
from orchestrator.report import advice, comparison_facts, dossier, log
from orchestrator.types import Point, Run
from tests.control import campaigns
from tests.control.campaigns import local, values

INNER = "program.output=[{callpath: main, pattern: 'inner (\\S+) s'}]"
NOWHERE = "program.output=[{callpath: main, pattern: 'nowhere (.*)'}]"
CAMPAIGN = local('echo "inner {n}.25 s"')
load = partial(campaigns.load, text=CAMPAIGN)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A campaign that has measured its three points."""
    session.run(load(), tmp_path)
    assert values(existing.replayed(tmp_path)) == {10: 10.5, 20: 20.5, 30: 30.5}
    return tmp_path


def test_all_values_are_replaced_and_nothing_is_spent(begun: Path) -> None:
    before = existing.replayed(begun)
    found = reread(begun, load(INNER))
    assert (found.read, found.changed, found.recovered, found.refused) == (3, 3, 0, False)
    assert any("inner" in text for text in found.changes)
    after = existing.replayed(begun)
    assert values(after) == {10: 10.25, 20: 20.25, 30: 30.25}
    assert (after.spent, after.stopped, after.attempts_settled) == (before.spent, before.stopped, 3)
    models = {item.callpath: item for item in measurements(after, load().parameters).items}
    assert models["main"].values[Point.of(n=20)] == (20.25,)
    # The directory goes on by the new rules, and a second reading finds nothing to change.
    assert existing.load(begun).program == load(INNER).program
    lines = len(list(read(begun / FILE_NAME)))
    again = reread(begun, existing.load(begun))
    assert (again.read, again.changed, again.changes) == (3, 0, ())
    assert len(list(read(begun / FILE_NAME))) == lines


def test_values_of_one_call_path_are_not_read_by_two_rules(begun: Path) -> None:
    """A campaign that goes on with milliseconds after seconds would spend its budget on a mixture."""
    known = existing.replayed(begun)
    [rule] = load().raw["program"]["output"]
    for change in ({"pattern": "inner (.*) s"}, {"scale": 0.001}, {"file": "stderr"}):
        why = changes.refusal(load(f"program.output=[{json.dumps({**rule, **change})}]"), known)
        assert why is not None
        assert "cannot be mixed (program.output" in why and "orchestrator reread DIR" in why
    more = {**rule, "callpath": "main->inner"}
    for rules_ in ([rule, more], [more], [{**rule, "optional": True}]):
        assert changes.refusal(load(f"program.output={json.dumps(rules_)}"), known) is None


def test_times_of_whole_runs_may_become_those_that_programs_print(tmp_path: Path) -> None:
    session.run(load("measure.profiler=time"), tmp_path)
    assert max(values(existing.replayed(tmp_path)).values()) < 10
    found = reread(tmp_path, load("measure.profiler=stdout"))
    assert (found.read, found.changed) == (3, 3)
    assert found.changes == ("measure.profiler: time -> stdout",)
    assert values(existing.replayed(tmp_path)) == {10: 10.5, 20: 20.5, 30: 30.5}
    assert rules(tmp_path, None, ()).measure.profiler == "stdout"
    (tmp_path / "time.yaml").write_text(CAMPAIGN.replace("{time_limit", "{profiler: time, time_limit"))
    assert rules(tmp_path, tmp_path / "time.yaml", ()).measure.profiler == "time"
    with pytest.raises(CampaignError, match=r"measure\.profiler: stdout -> mpi: reading again changes only"):
        reread(tmp_path, load("measure.profiler=mpi"))


def test_other_values_let_a_campaign_that_has_stopped_decide_again(begun: Path) -> None:
    assert not existing.replayed(begun).undecided
    reread(begun, load(INNER))
    state = existing.replayed(begun)
    assert state.undecided and state.reassess and state.uncertainty is None
    assert "read again since then: orchestrator resume" in advice.to_continue(state, begun)
    changes: list[str] = []
    after = session.run(existing.load(begun), begun, session.Hooks(changed=changes.extend))
    assert changes == [
        "measurements were discarded, restored or read again: what to do next is decided again"
    ]
    assert after.stopped is not None and not after.undecided


def test_a_comparison_says_by_which_rules_the_values_are_read(begun: Path) -> None:
    reread(begun, load(INNER))
    found = comparison_facts.of_campaign(begun)
    assert "inner (" in found["program"] and "total (" not in found["program"]


def test_a_changed_output_file_counts_with_the_same_rules(begun: Path) -> None:
    path = begun / "runs" / "n=20" / "time-1" / "attempt-1" / "stdout"
    path.write_text("total 77 s\n")
    assert reread(begun, load()).changed == 1
    assert values(existing.replayed(begun)) == {10: 10.5, 20: 77.0, 30: 30.5}


@pytest.mark.parametrize("damage", ["pattern", "file"])
def test_what_was_accepted_and_cannot_be_read_any_more_changes_nothing(begun: Path, damage: str) -> None:
    journal, rules = (begun / FILE_NAME).read_bytes(), (begun / "campaign.yaml").read_bytes()
    if damage == "file":
        (begun / "runs" / "n=20" / "time-1" / "attempt-1" / "stdout").unlink()
    found = reread(begun, load(NOWHERE if damage == "pattern" else INNER))
    assert found.refused and len(found.unreadable) == (3 if damage == "pattern" else 1)
    assert (begun / FILE_NAME).read_bytes() == journal
    assert (begun / "campaign.yaml").read_bytes() == rules


def test_what_could_not_be_read_becomes_a_measurement(tmp_path: Path) -> None:
    first = session.run(load(NOWHERE), tmp_path)
    assert {item.status for item in first.runs.values()} == {RunStatus.GIVEN_UP}
    assert first.infeasible == {Point.of(n=10), Point.of(n=20), Point.of(n=30)}
    found = reread(tmp_path, load())
    assert (found.changed, found.recovered, found.unreadable) == (0, 3, {})
    state = existing.replayed(tmp_path)
    assert values(state) == {10: 10.5, 20: 20.5, 30: 30.5}
    assert not state.infeasible and state.spent == first.spent
    item = state.runs[Run(Point.of(n=10))]
    assert item.accepted == 1 and item.elapsed > 0 and item.node and item.began is not None
    known = measurements(state, load().parameters)
    assert {(item.callpath, item.metric) for item in known.items} == {("(run)", "elapsed"), ("main", "time")}
    assert log.document(read(tmp_path / FILE_NAME))["given_up"] == []
    [attempt] = dossier.document(tmp_path, read(tmp_path / FILE_NAME), "n=10/time-1")["attempts"]
    assert attempt["samples"] == {"time": {"main": 10.5}} and attempt["read_again"]
    # It can go on from here: nothing is left to measure.
    assert session.run(load(), tmp_path, session.Hooks(again=True)).attempts_settled == 3


def test_what_another_template_started_is_no_measurement_of_this_one(tmp_path: Path) -> None:
    """Nothing could be read of three runs; with the corrected template, one at a time ran until a stop."""

    def scripted(size: str, *overrides: str) -> Campaign:
        campaign = CAMPAIGN.replace("  arguments:", "  #")
        command = f"template: \"{{{{launcher}}}} {{{{executable}}}} -c 'echo total {size} s'\""
        return campaigns.load(*overrides, text=f"{campaign}{command}\n")

    session.run(scripted("{{n}}", NOWHERE), tmp_path)
    few = ("strategy.batch_size=1", "stop.failures=2")
    session.run(scripted("{{n * 60}}", NOWHERE, *few), tmp_path, session.Hooks(again=True))
    again = {
        int(run.point["n"]) for run, item in existing.replayed(tmp_path).runs.items() if item.attempts > 1
    }
    assert 0 < len(again) < 3
    found = reread(tmp_path, scripted("{{n * 60}}", *few))
    assert found.recovered == len(again)
    assert values(existing.replayed(tmp_path)) == {n: 60.0 * n for n in again}


def test_what_was_recovered_is_as_if_it_had_been_read_at_once(tmp_path: Path) -> None:
    rules = ("strategy.first_round=1", "strategy.batch_size=1", "stop.failures=9", "stop.patience=9")
    origins = []
    for name, wanted in (("good", ""), ("bad", NOWHERE)):
        folder = tmp_path / name
        folder.mkdir()
        session.run(load(*rules, *([wanted] if wanted else [])), folder)
        reread(folder, load(*rules))
        state = existing.replayed(folder)
        origins.append({run: item.origin for run, item in state.runs.items()})
    assert origins[0] == origins[1]
    assert len(set(origins[0].values())) == 3, "one for each round"


def test_a_run_that_was_recovered_is_told_as_measured(tmp_path: Path) -> None:
    session.run(load(NOWHERE), tmp_path)
    whole = (tmp_path / FILE_NAME).read_bytes()
    failed = dossier.document_in(tmp_path, "n=10/time-1")
    assert failed["outcome"].startswith("given up: parse")
    reread(tmp_path, load())
    found = dossier.document_in(tmp_path, "n=10/time-1")
    assert found == dossier.document(tmp_path, read(tmp_path / FILE_NAME), "n=10/time-1")
    [attempt] = found["attempts"]
    assert (found["outcome"], attempt["failure"], attempt["reason"]) == ("measured", None, "")
    # Without its end, as after a crash, the earlier values hold.
    rest = (tmp_path / FILE_NAME).read_bytes()[len(whole) :].splitlines(keepends=True)
    (tmp_path / FILE_NAME).write_bytes(whole + b"".join(rest[:-1]))
    assert dossier.document_in(tmp_path, "n=10/time-1") == failed


def test_only_what_says_how_outputs_are_read_may_change(begun: Path) -> None:
    with pytest.raises(CampaignError, match=r"stop\.budget: .*reading again changes only program\.output"):
        reread(begun, load("stop.budget=9 core-hours"))
    with pytest.raises(CampaignError, match=r"parameters\.n"):
        reread(begun, load("parameters.n=[10, 20]"))


def test_beside_a_running_controller_it_is_refused(begun: Path) -> None:
    with Journal(begun) as journal:
        list(journal.entries())
        with pytest.raises(JournalError):
            reread(begun, load(INNER))


def test_a_rehearsal_has_no_outputs(tmp_path: Path) -> None:
    rehearsal = ("executor.name=simulated", "executor.truth={main: n}", "executor.slots=null")
    chosen = load(*rehearsal[:2])
    session.run(chosen, tmp_path)
    with pytest.raises(CampaignError, match="a rehearsal leaves no outputs"):
        reread(tmp_path, chosen)


def test_what_was_said_of_the_earlier_values_does_not_hold_any_more(begun: Path) -> None:
    """Times of 10 s were read from runs of milliseconds."""
    before = existing.replayed(begun)
    assert WRONG_UNIT in before.machine and WRONG_UNIT in before.remarked
    reread(begun, existing.load(begun))
    assert existing.replayed(begun).machine == before.machine
    reread(begun, load(INNER))
    state = existing.replayed(begun)
    assert WRONG_UNIT not in state.machine and WRONG_UNIT not in state.remarked


@pytest.mark.parametrize("moment", ["before", "after"])
def test_kill_9_leaves_all_of_it_or_nothing(begun: Path, moment: str) -> None:
    old = existing.replayed(begun)

    def killed(now: str, entries: Sequence[Entry]) -> None:
        if now == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            reread(begun, load(INNER), killed)
        finally:
            os._exit(70)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    state = existing.replayed(begun)
    assert values(state) == (values(old) if moment == "before" else {10: 10.25, 20: 20.25, 30: 30.25})
    assert reread(begun, existing.load(begun)).changed == (3 if moment == "before" else 0)
    assert values(existing.replayed(begun)) == {10: 10.25, 20: 20.25, 30: 30.25}


def test_a_torn_journal_has_the_earlier_values_until_the_last_line_is_there(begun: Path) -> None:
    old = existing.replayed(begun)
    before = (begun / FILE_NAME).read_bytes()
    reread(begun, load(INNER))
    whole = (begun / FILE_NAME).read_bytes()
    lines = whole[len(before) :].splitlines(keepends=True)
    assert [e.event.__class__ for e in list(read(begun / FILE_NAME))[-5:]] == [
        events.RereadBegan,
        *[events.AttemptReread] * 3,
        events.RereadCompleted,
    ]
    for count in range(len(lines)):
        for torn in (b"", lines[count][: len(lines[count]) // 2]):
            (begun / FILE_NAME).write_bytes(before + b"".join(lines[:count]) + torn)
            assert values(existing.replayed(begun)) == values(old)
            assert reread(begun, load(INNER)).changed == 3
            state = existing.replayed(begun)
            assert values(state) == {10: 10.25, 20: 20.25, 30: 30.25} and state.rereads == 1


def test_values_that_are_not_complete_wait(begun: Path) -> None:
    reread(begun, load(INNER))
    entries = list(read(begun / FILE_NAME))
    assert replay(entries).rereads == 1
    assert set(replay(entries[:-1]).reread) == {Run(Point.of(n=n)) for n in (10, 20, 30)}

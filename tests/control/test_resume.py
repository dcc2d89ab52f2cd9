"""What a resume may change, and how it goes on from where it ended: cancelled, killed or failed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from orchestrator.campaign import changes
from orchestrator.control import existing, session, settle
from orchestrator.errors import CampaignError
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.file import FILE_NAME, holds_campaign, read
from orchestrator.journal.replay import replay
from orchestrator.journal.state import RunStatus, State
from orchestrator.types import Attempt, FailureClass, Point, Run
from tests.control.campaigns import SHELL, load
from tests.journal.attempts import attempt_finished

MANY = ("stop.patience=9", "strategy=full")


class Killed(BaseException):
    pass


def entries(directory: Path) -> list[Entry]:
    return list(read(directory / FILE_NAME))


def cancelled(directory: Path, settled: int) -> State:
    """Run until so many attempts are settled and four in flight, then interrupt with --cancel."""

    def interrupted() -> bool:
        state = existing.replayed(directory)
        return state.attempts_settled >= settled and len(state.in_flight) == 4

    chosen = load("executor.max_pending=4", *MANY)
    return session.run(chosen, directory, session.Hooks(interrupted=interrupted, cancel_on_interrupt=True))


def test_what_the_user_cancels_is_charged_and_is_no_failure(tmp_path: Path) -> None:
    for _ in range(4):  # more often than an attempt that fails is tried again
        known = existing.replayed(tmp_path).attempts_settled if holds_campaign(tmp_path) else 0
        state = cancelled(tmp_path, known + 1)
        assert not state.in_flight and not any(state.recent)
    ends = [e.event for e in entries(tmp_path) if isinstance(e.event, events.AttemptFinished)]
    assert [end for end in ends if end.cancelled and end.cost > 0]
    assert state.spent == pytest.approx(sum(end.cost for end in ends))
    assert not any(item.failures for item in state.runs.values())
    state = session.run(load(*MANY), tmp_path)
    assert state.stopped is not None and state.stopped.rule == "exhausted" and not state.infeasible


def test_what_had_not_begun_when_the_user_cancelled_is_withdrawn(tmp_path: Path) -> None:
    chosen = load("executor.environment={LONG: '30'}", text=SHELL)

    def interrupted() -> bool:
        return any(tmp_path.glob("runs/**/attempt.json"))

    state = session.run(chosen, tmp_path, session.Hooks(interrupted=interrupted, cancel_on_interrupt=True))
    happened = [entry.event for entry in entries(tmp_path)]
    finished = [event for event in happened if isinstance(event, events.AttemptFinished)]
    withdrawn = [event for event in happened if isinstance(event, events.AttemptWithdrawn)]
    assert [event.cancelled for event in finished] == [True]
    assert len(withdrawn) == 3 and all(event.barred for event in withdrawn)
    assert {item.status for item in state.runs.values()} == {RunStatus.WAITING}
    assert not any(item.failures for item in state.runs.values())


def test_what_has_not_begun_when_the_campaign_stops_is_withdrawn_at_no_cost(tmp_path: Path) -> None:
    rules = ("stop.wall_time=1 s", "executor.environment={LONG: '3', MENDED: 'yes'}")
    state = session.run(load(*rules, text=SHELL), tmp_path)
    assert state.stopped is not None and state.stopped.rule == "wall_time"
    happened = [entry.event for entry in entries(tmp_path)]
    (finished,) = (event for event in happened if isinstance(event, events.AttemptFinished))
    assert finished.failure is None and state.spent == finished.cost > 0
    withdrawn = [event for event in happened if isinstance(event, events.AttemptWithdrawn)]
    assert {event.reason for event in withdrawn} == {
        "withdrawn as the campaign stops (wall_time) before it began"
    }
    assert len(withdrawn) == 3 == [item.status for item in state.runs.values()].count(RunStatus.SKIPPED)
    state = session.run(load("stop.wall_time=1 h", *rules[1:], text=SHELL), tmp_path)
    assert state.stopped is not None and state.stopped.rule != "wall_time"
    measured = [item for item in state.runs.values() if item.status is RunStatus.MEASURED]
    assert len(measured) >= 4  # a busy machine gets a reference run, too


@pytest.mark.parametrize("failure", [None, FailureClass.APPLICATION, FailureClass.TIMEOUT])
def test_what_ended_by_itself_stays_what_it_is_although_the_user_cancelled(
    failure: FailureClass | None,
) -> None:
    event = attempt_finished(Attempt(Run(Point.of(p=1))), 2.0, failure=failure, reason="why")
    assert settle.ended_on_purpose(event, "cancelled by the user") is event


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_a_larger_budget_counts_even_if_the_controller_was_killed_as_it_stopped(
    killed: bool, tmp_path: Path
) -> None:
    def boundary(moment: str, new: Sequence[Entry]) -> None:
        if killed and moment == "before" and isinstance(new[0].event, events.CampaignStopped):
            raise Killed

    with suppress(Killed):
        session.run(load("stop.budget=0.25", "stop.patience=99"), tmp_path, session.Hooks(boundary=boundary))
    before = existing.replayed(tmp_path)
    assert before.stopping is not None and (before.stopped is None) == killed
    state = session.run(load("stop.budget=9", "stop.patience=99"), tmp_path)
    assert state.stopped is not None and state.stopped.rule == "exhausted"
    assert state.spent > before.spent


@pytest.mark.parametrize("mended", ["executor.environment={LONG: '0', MENDED: '1'}", "stop.failures=4"])
def test_after_failures_a_campaign_with_other_rules_tries_again_what_was_given_up(
    mended: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = session.run(load(text=SHELL), tmp_path)
    assert state.stopped is not None and state.stopped.rule == "failures" and len(state.infeasible) == 2
    monkeypatch.setenv("MENDED", "1")  # outside of the campaign file
    state = session.run(load(mended, text=SHELL), tmp_path)
    assert state.stopped is not None and state.stopped.rule != "failures"
    measured = {run.point for run, item in state.runs.items() if item.status is RunStatus.MEASURED}
    assert len(measured) == 4 and not state.infeasible
    assert replay(entries(tmp_path)) == state


def test_points_stay_given_up_where_no_change_of_rules_can_matter(tmp_path: Path) -> None:
    one = SHELL.replace('test -n \\"$MENDED\\" &&', "test {n} = 30 &&")
    rules = ("stop.failures=99", "stop.patience=9")
    state = session.run(load(*rules, text=one), tmp_path)
    assert state.stopped is not None and state.stopped.rule == "exhausted" and len(state.infeasible) == 3
    more = session.run(load(*rules, "stop.budget=3 core-hours", text=one), tmp_path)
    assert len(more.infeasible) == 3


def test_a_campaign_of_few_points_that_all_fail_stops_by_failures_and_names_the_cause(tmp_path: Path) -> None:
    state = session.run(load("stop.failures=99", text=SHELL), tmp_path)
    assert state.stopped is not None and state.stopped.rule == "failures"
    assert state.stopped.detail.startswith("every run was given up; most often (4 of 4): ")


def test_another_executor_is_refused_while_only_the_first_can_tell(tmp_path: Path) -> None:
    chosen = load("executor.environment={LONG: '30'}", text=SHELL)

    def interrupted() -> bool:
        return any(tmp_path.glob("runs/**/attempt.json"))

    session.run(chosen, tmp_path, session.Hooks(interrupted=interrupted))
    lines = len(entries(tmp_path))
    other = load("executor.environment={LONG: '30'}", "executor.name=slurm", text=SHELL)
    with pytest.raises(CampaignError, match=r"attempts in flight: 4, .* with executor.name=local first"):
        session.run(other, tmp_path)
    assert len(entries(tmp_path)) == lines
    session.run(chosen, tmp_path, session.Hooks(interrupted=lambda: True, cancel_on_interrupt=True))


def test_of_another_executor_only_what_both_have_is_told(tmp_path: Path) -> None:
    environment = "environment: {LONG: '0', MENDED: 'yes'}"
    session.run(load(f"executor={{name: local, {environment}}}", text=SHELL), tmp_path)
    slurm = load(f"executor={{name: slurm, cores_per_node: 8, {environment}}}", text=SHELL)
    told = changes.changed_rules(slurm, existing.replayed(tmp_path))
    assert told[0] == "executor.name: local -> slurm"
    assert told[-1].startswith("executor.name: earlier measurements are still used, so ")
    assert not [text for text in told if "slots" in text or "cores_per_node" in text or "sbatch" in text]


def test_a_machine_that_cannot_hold_an_open_run_is_refused_before_anything_is_journaled(
    tmp_path: Path,
) -> None:
    local = (
        "executor={name: local, launcher: 'env', slots: 8}",
        "executable=/bin/true",
        "parameters.p=[2, 1]",
    )

    def interrupted() -> bool:
        return existing.replayed(tmp_path).round > 0

    session.run(load(*local), tmp_path, session.Hooks(interrupted=interrupted))
    lines = len(entries(tmp_path))
    with pytest.raises(CampaignError, match=r"p=2.* is not settled.*set executor.slots.*Nothing was changed"):
        session.run(load(*local, "executor.slots=1"), tmp_path)
    assert len(entries(tmp_path)) == lines
    assert session.run(load(*local), tmp_path).stopped is not None

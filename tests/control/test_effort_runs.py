"""Runs of kind effort in the loop: proposed, charged, kept apart from times, safe to interrupt."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import assembly, execution, overview, planning, session, settle
from orchestrator.errors import CampaignError
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.measurements import WHOLE_RUN, counting_keeps_failing, measurements, repetitions
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State
from orchestrator.policy import effort_runs
from orchestrator.report import status_text, tables
from orchestrator.strategies.base import Choice
from orchestrator.types import Attempt, FailureClass, Parameter, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended

PARAMETERS = "{p: [1, 2, 4], n: [10, 20, 30]}"
CAMPAIGN = f"""
name: counted
application: generic
program: {{arguments: ["{{p}}"], ranks: p, output: [{{callpath: main, pattern: "t=(.*)"}}]}}
parameters: {PARAMETERS}
evaluation_point: {{p: 8, n: 40}}
measure:
  effort: {{when: always}}
  time_limit: 100 s
  expected_time: 3 s
  repetitions: {{initial: 1, maximum: 2}}
strategy: {{name: full, batch_size: 3}}
stop: {{budget: 5 core-hours, patience: 9}}
executor: {{name: simulated, dataset: data.csv, poll_interval: 1 s}}
"""
A, B = Point.of(p=1, n=10), Point.of(p=2, n=10)


@pytest.fixture
def chosen(tmp_path: Path) -> Campaign:
    rows = ["p,n,callpath,metric,value"]
    for p in (1, 2, 4):
        for n in (10, 20, 30):
            rows += [f"{p},{n},main->solve,time,{1 + 0.01 * n * n + 0.001 * p}"]
            rows += [f"{p},{n},main->solve,basic_blocks,{100 + 7 * n * n}"]
            rows += [f"{p},{n},main->solve->MPI_Bcast,bytes_sent,{8 * n * p}"]
            rows += [f"{p},{n},main->solve,cycles,{3 * n}"]
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
    return loader.loads(CAMPAIGN, "test.yaml", tmp_path)


def propose(state: State, choices: list[Choice], effort: int) -> State:
    """Propose a round of a campaign that counts every point ``effort`` times."""
    number = state.round + 1
    rule = effort_runs.Rules(repetitions=effort, always=True, parameters=(), parallel=lambda point: False)
    plan = effort_runs.plan(rule, choices, state, {}, lambda points: [1.0] * len(points))
    return apply(state, settle.round_of(number, choices, state, plan), float(number))


def settled(state: State, run: Run, failure: FailureClass | None = None, **samples: float) -> State:
    attempt = Attempt(run)
    found = {metric: {"main": value} for metric, value in samples.items()}
    state = apply(state, attempt_intended(attempt), 1.0)
    return apply(state, attempt_finished(attempt, samples=found, failure=failure, reason="no"), 2.0)


def given_up(state: State, run: Run) -> State:
    return apply(settled(state, run, FailureClass.PARSE), events.RunGivenUp(run, "parse"), 3.0)


def test_every_point_gets_its_effort_runs_once_after_its_timed_ones() -> None:
    state = propose(State(), [Choice(A, 2, "why"), Choice(B, 1, "why")], 2)
    assert [run.id for run in state.queue] == [
        *("p=1,n=10/time-1", "p=1,n=10/time-2", "p=1,n=10/effort-1", "p=1,n=10/effort-2"),
        *("p=2,n=10/time-1", "p=2,n=10/effort-1", "p=2,n=10/effort-2"),
    ]
    state = propose(state, [Choice(A, 1, "again"), Choice(A, 1, "and again")], 2)
    assert [run.id for run in state.queue] == ["p=1,n=10/time-3", "p=1,n=10/time-4"]
    assert repetitions(state) == {A: 4, B: 1} and repetitions(state, "effort") == {A: 2, B: 2}


def test_without_effort_nothing_changes() -> None:
    assert {run.kind for run in propose(State(), [Choice(A, 2, "")], 0).queue} == {"time"}


def test_effort_runs_that_were_skipped_are_proposed_again() -> None:
    state = propose(State(), [Choice(A, 1, "")], 1)
    state = apply(state, events.RunSkipped(Run(A, "time", 1), "budget"), 1.0)
    state = apply(state, events.RunSkipped(Run(A, "effort", 1), "budget"), 1.0)
    assert Run(A, "effort", 1) in propose(state, [Choice(A, 1, "")], 1).queue


def test_times_and_counts_share_no_metric() -> None:
    state = propose(State(), [Choice(A, 1, "")], 1)
    state = settled(state, Run(A, "time", 1), time=2.0)
    state = settled(state, Run(A, "effort", 1), basic_blocks=70.0)
    parameters = (Parameter("p", ()), Parameter("n", ()))
    found = {(item.callpath, item.metric): item.values for item in measurements(state, parameters).items}
    assert found == {
        (WHOLE_RUN, "elapsed"): {A: (1.0,)},  # that of the time run alone: counting takes longer
        ("main", "time"): {A: (2.0,)},
        ("main", "basic_blocks"): {A: (70.0,)},
    }


def test_a_point_where_counting_fails_can_still_be_timed() -> None:
    state = propose(State(), [Choice(A, 1, "")], 1)
    assert not given_up(state, Run(A, "effort", 1)).infeasible
    assert given_up(state, Run(A, "time", 1)).infeasible == {A}


def test_counting_that_never_works_is_not_tried_for_ever() -> None:
    points = [Point.of(p=p, n=10) for p in range(1, 6)]
    state = propose(State(), [Choice(point, 1, "") for point in points[:3]], 1)
    for point in points[:3]:
        assert not counting_keeps_failing(state)
        state = given_up(state, Run(point, "effort", 1))
    assert {run.kind for run in propose(state, [Choice(points[3], 1, "")], 1).queue} == {"time"}
    counted = settled(
        propose(State(), [Choice(points[4], 1, "")], 1), Run(points[4], "effort", 1), visits=1.0
    )
    assert not counting_keeps_failing(counted)


def test_a_campaign_counts_every_point_once_and_is_charged_for_it(chosen: Campaign, tmp_path: Path) -> None:
    state = session.run(chosen, tmp_path / "c")
    kinds = Counter(run.kind for run, item in state.runs.items() if item.status is RunStatus.MEASURED)
    assert kinds["time"] in (9, 18) and kinds["effort"] == 9
    assert state.spent == pytest.approx(sum(item.cost for item in state.runs.values()))
    assert all(item.cost > 0 for item in state.runs.values())
    samples = {run.kind: set(item.samples) for run, item in state.runs.items()}
    assert samples == {"time": {"time"}, "effort": {"basic_blocks", "bytes_sent"}}  # no cycles
    document = overview.status_of(chosen, state)
    assert document["effort_runs"]["measured"] == 9
    metrics = {(model["callpath"], model["metric"]) for model in document["models"]}
    assert {("main->solve", "time"), ("main->solve", "basic_blocks")} <= metrics
    blocks = next(model for model in document["models"] if model["metric"] == "basic_blocks")
    assert blocks["normal_form"] == "100 + 7 * n**2"


def test_the_status_says_how_far_the_counting_is(chosen: Campaign, tmp_path: Path) -> None:
    state = session.run(chosen, tmp_path / "c")
    console = tables.console()
    with console.capture() as captured:
        console.print(status_text.render(overview.status_of(chosen, state)))
    shown = captured.get()
    assert "of these count effort: 9 measured" in shown
    assert "effort: 2 call paths counted, 0 of them irreproducible; 0 % of the basic blocks" in shown
    assert "elapsed" in shown and "basic_blocks" not in shown  # its models are folded away


def test_effort_runs_get_more_time_and_are_paid_for(chosen: Campaign, tmp_path: Path) -> None:
    built = assembly.assemble(chosen)
    plan = planning.first_round(built, execution.executor(chosen, tmp_path, 0.0))
    limits = {run.kind: limit for run, limit in zip(plan.runs, plan.limits, strict=True)}
    assert limits == {"time": 12.0, "effort": 60.0}  # twice twice the estimate
    expected = {"time": 3.0, "effort": 15.0}
    total = sum(expected[run.kind] * cores for run, cores in zip(plan.runs, plan.cores, strict=True))
    assert plan.expected == pytest.approx(total)
    session.run(chosen, tmp_path / "c")
    intents = [entry.event for entry in read(tmp_path / "c" / FILE_NAME)]
    intended = {
        event.attempt.run.kind: (event.limit, event.reserved / event.cores)
        for event in intents
        if isinstance(event, events.AttemptIntended)
    }
    assert intended == {"time": (12.0, 12.0), "effort": (60.0, 60.0)}


def test_a_limit_from_the_budget_pays_for_the_counting_too(tmp_path: Path, chosen: Campaign) -> None:
    overrides = ["measure.time_limit=null", "measure.expected_time=null", "stop.budget=1"]
    free = loader.loads(CAMPAIGN, "test.yaml", tmp_path, overrides)
    plan = planning.first_round(assembly.assemble(free), execution.executor(free, tmp_path, 0.0))
    assert plan.derived_limit is not None
    assert set(plan.limits) == {plan.derived_limit, 5 * plan.derived_limit}
    assert plan.worst == pytest.approx(free.stop.budget)


def test_interrupted_anywhere_it_goes_on_without_counting_twice(chosen: Campaign, tmp_path: Path) -> None:
    whole = session.run(chosen, tmp_path / "whole")
    for stop_after in (5, 17, 29):
        seen: list[object] = []
        hooks = session.Hooks(
            listen=lambda entry, state, seen=seen: seen.append(entry),  # type: ignore[misc]
            interrupted=lambda seen=seen, stop_after=stop_after: len(seen) > stop_after,  # type: ignore[misc]
        )
        directory = tmp_path / str(stop_after)
        assert session.run(chosen, directory, hooks).stopped is None
        state = session.run(chosen, directory)
        assert state.spent == pytest.approx(whole.spent)
        assert {run: item.samples for run, item in state.runs.items()} == {
            run: item.samples for run, item in whole.runs.items()
        }


def test_effort_cannot_be_switched_on_or_off_on_the_way(chosen: Campaign, tmp_path: Path) -> None:
    session.run(chosen, tmp_path / "c")
    other = loader.loads(CAMPAIGN, "test.yaml", tmp_path, ["measure.effort=false", "model=swc"])
    with pytest.raises(CampaignError, match="other measure"):
        session.run(other, tmp_path / "c")

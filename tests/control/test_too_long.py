"""Points at which models say that a run would reach its time limit: nothing is spent there."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import session
from orchestrator.journal import events
from orchestrator.journal.file import FILE_NAME, read
from orchestrator.journal.state import RunStatus, State
from orchestrator.types import Point, Run

CAMPAIGN = """
name: too-long
application: generic
executable: /bin/true
program: {output: [{callpath: main, pattern: "(.*)"}]}
parameters: {n: [2, 4, 6, 8, 10, 12, 14, 20, 30]}
measure: {time_limit: 30 s, repetitions: {initial: 1, maximum: 3}}
stop: {budget: 10 core-hours, patience: 3}
executor: {name: simulated, noise: 1, truth: {main: 2 * n}}
"""


def finished(folder: Path, *overrides: str) -> State:
    return session.run(loader.loads(CAMPAIGN, "test.yaml", Path.cwd(), overrides), folder)


def begun(state: State) -> set[float]:
    return {run.point.number("n") for run, item in state.runs.items() if item.attempts}


def test_points_that_take_longer_than_the_limit_are_not_begun(tmp_path: Path) -> None:
    state = finished(tmp_path / "limited")
    assert max(begun(state)) == 14  # 28 s
    assert all(item.status is RunStatus.MEASURED for item in state.runs.values())
    assert state.stopped is not None and state.stopped.rule == "exhausted"
    assert "by the models, and measure.time_limit is 30 s" in state.stopped.detail
    assert max(begun(finished(tmp_path / "free", "measure.time_limit=2 min"))) == 30


def test_a_program_that_takes_longer_than_the_budget_allows_does_not_cost_all_of_it(tmp_path: Path) -> None:
    """Nothing says how long runs take: the first of them tells, and not all at once."""
    state = finished(
        tmp_path,
        "parameters={n: [1, 2, 4, 8, 16]}",
        "measure={repetitions: {initial: 1}}",
        "stop.budget=600 core-seconds",
        "executor.truth={main: 200 + 25 * n}",
    )
    assert state.time_limit is not None and state.time_limit < 225
    first, *others = sorted(begun(state))
    assert first == 1 and state.runs[Run(Point.of(n=1))].status is RunStatus.MEASURED
    assert len(others) <= 1, "the rest of the budget holds no more"


@pytest.mark.parametrize(("batch_size", "first"), [(2, 14), (1, 10)])
def test_a_campaign_does_not_converge_in_the_round_of_a_run_that_contradicts_its_models(
    batch_size: int, first: int, tmp_path: Path
) -> None:
    """Further rounds show whether the program does something else from there on, or hangs at one point."""

    def stopped(folder: str, holds: str) -> tuple[int, str]:
        state = finished(
            tmp_path / folder,
            "parameters={n: [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32]}",
            "evaluation_point={n: 70}",
            "measure={expected_time: 2 + n / 2, repetitions: {initial: 1}}",
            f"strategy={{name: cpf, batch_size: {batch_size}}}",
            f"executor.truth={{main: 1 + n / 2 if {holds} else 400 * n}}",
            "executor.noise=0.05",
            "stop.budget=100",
        )
        assert state.stopped is not None
        return state.rounds_completed, state.stopped.rule

    rounds, rule = stopped("regular", "True")
    assert (rounds, rule) == (3, "converged")
    assert stopped("one", f"n != {first}") == (rounds + 3, "converged")
    rounds, rule = stopped("all", f"n < {first}")
    assert rule == "exhausted", "the others were tried, and fail alike"


def test_no_run_that_is_never_begun_is_named_as_the_next_useful_one(tmp_path: Path) -> None:
    """A larger budget would buy nothing there."""
    state = finished(
        tmp_path, "parameters={n: [2, 4, 6, 3000]}", "measure.time_limit=20 s", "stop.budget=0.1 core-hours"
    )
    assert state.stopped is not None and state.stopped.rule in ("exhausted", "converged")
    assert "no run is begun at P(n=" in state.stopped.detail
    assert "by the models, and measure.time_limit is 20 s" in state.stopped.detail
    assert "the next useful run" not in state.stopped.detail


def test_runs_that_reached_their_limits_are_named_with_the_key_that_allows_more(tmp_path: Path) -> None:
    state = finished(
        tmp_path,
        "parameters={n: [2, 4, 6, 100]}",
        "measure={time_limit: 3 min, limit_margin: 1, repetitions: {initial: 1, maximum: 2}}",
        "executor.truth={main: 2 * n if n < 50 else 1e6}",
        "retries.timeout=0",
    )
    assert state.stopped is not None and state.stopped.rule == "exhausted"
    assert "1 run given up" in state.stopped.detail
    assert "; retries.timeout permits no further attempt" in state.stopped.detail


def test_a_validation_that_takes_longer_is_skipped_with_the_figures(tmp_path: Path) -> None:
    state = finished(tmp_path, "evaluation_point={n: 40}", "validate=true")
    assert state.validation is not None and state.validation.point == Point.of(n=40)
    skipped = state.runs[state.validation]
    assert skipped.status is RunStatus.SKIPPED and skipped.attempts == 0
    assert "by the models, and measure.time_limit is 30 s" in skipped.reason


def test_limits_and_points_keep_to_what_the_scheduler_grants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else jobs would be queued for ever: a limit that follows from the budget or the models grows."""
    monkeypatch.setattr(
        session, "_granted", lambda chosen, cluster: lambda resources: (30.0, "partition debug")
    )
    state = finished(tmp_path / "granted", "measure={repetitions: {initial: 1, maximum: 3}}")
    assert max(begun(state)) == 14  # 28 s
    assert state.stopped is not None
    assert "by the models, and partition debug grants it 30 s" in state.stopped.detail
    limits = [
        entry.event.limit
        for entry in read(tmp_path / "granted" / FILE_NAME)
        if isinstance(entry.event, events.AttemptIntended)
    ]
    assert max(limits) <= 30.0

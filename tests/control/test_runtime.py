"""A decision never fits a model; what it knows of runs was computed before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.control import existing, session
from orchestrator.control.runtime import Runtime
from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.state import RunStatus, State
from orchestrator.models.base import Model
from orchestrator.policy import decide
from orchestrator.policy.actions import Action, Submit
from tests.control.campaigns import load

# Limits and shared jobs both need predicted durations.
RULES = (
    "measure.limit_margin=3",
    "executor.pack={most: auto}",
    "executor.failure_rate=0.1",
    "executor.noise=2",
)


class Watch:
    """Counts fits and decisions, and refuses fits within decisions."""

    def __init__(self) -> None:
        self.fits = 0
        self.fits_before_first_decision: int | None = None
        self.decisions = 0
        self.limits: set[float] = set()
        self._deciding = False

    @contextmanager
    def decision(self) -> Iterator[None]:
        if self.fits_before_first_decision is None:
            self.fits_before_first_decision = self.fits
        self.decisions += 1
        self._deciding = True
        try:
            yield
        finally:
            self._deciding = False

    def fit(self) -> None:
        if self._deciding:
            raise AssertionError("a decision fitted models")
        self.fits += 1


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    fit, measurements, next_actions = Runtime.fit, Runtime.measurements, decide.next_actions

    def watched_fit(self: Runtime, state: State) -> tuple[Model, ...]:
        watch.fit()
        return fit(self, state)

    def watched_measurements(self: Runtime, state: State) -> Any:
        assert not watch._deciding
        return measurements(self, state)

    def watched_decision(*arguments: Any) -> list[Action]:
        with watch.decision():
            actions = next_actions(*arguments)
        watch.limits |= {item.reservation.limit for item in actions if isinstance(item, Submit)}
        return actions

    monkeypatch.setattr(Runtime, "fit", watched_fit)
    monkeypatch.setattr(Runtime, "measurements", watched_measurements)
    monkeypatch.setattr(decide, "next_actions", watched_decision)
    return watch


def test_a_decision_never_fits_a_model(watch: Watch, tmp_path: Path) -> None:
    state = session.run(load(*RULES), tmp_path)
    assert state.stopped is not None and state.rounds_completed > 1
    assert watch.decisions > watch.fits == state.rounds_completed
    assert watch.fits_before_first_decision == 0
    assert len(watch.limits) > 1  # limits came from models


def test_a_resumed_controller_fits_once_before_it_decides(watch: Watch, tmp_path: Path) -> None:
    submitted = 0

    def listen(entry: Entry, state: State) -> None:
        nonlocal submitted
        submitted += isinstance(entry.event, events.AttemptIntended) and state.rounds_completed == 1

    hooks = session.Hooks(listen=listen, interrupted=lambda: submitted > 0)
    state = session.run(load(*RULES), tmp_path, hooks)
    assert state.stopped is None and state.rounds_completed == 1 and state.in_flight
    watch.fits, watch.fits_before_first_decision = 0, None
    state = session.run(load(*RULES), tmp_path)
    assert watch.fits_before_first_decision == 1
    assert watch.fits == state.rounds_completed  # one at the start, and one for each round from the second on


def test_a_resumed_first_round_has_the_limits_of_an_uninterrupted_one(watch: Watch, tmp_path: Path) -> None:
    """No models steer the first round, whatever was measured before the interrupt."""

    def settled() -> bool:
        return existing.replayed(tmp_path).attempts_settled > 3

    chosen = load(*RULES, "executor.max_pending=2")
    state = session.run(chosen, tmp_path, session.Hooks(interrupted=settled))
    assert state.rounds_completed == 0 and state.waiting
    watch.fits_before_first_decision = None
    session.run(chosen, tmp_path)
    assert watch.fits_before_first_decision == 0


def test_what_the_budget_left_cannot_reserve_is_not_proposed(tmp_path: Path) -> None:
    """The first run of a round always fits; only the last round may be one of which nothing does."""
    rules = (
        "strategy=gpr",
        "stop.budget=0.2",
        "stop.patience=99",
        "executor.noise=5",
        "executor.max_pending=1",
        "measure.repetitions.initial=1",
        "measure.limit_margin=8",  # a run reserves much more than it is expected to cost
        "measure.time_limit=600 s",
        "measure.expected_time=1",
    )
    rounds: list[events.RoundProposed] = []

    def listen(entry: Entry, state: State) -> None:
        if isinstance(entry.event, events.RoundProposed):
            rounds.append(entry.event)

    state = session.run(load(*rules), tmp_path, session.Hooks(listen=listen))
    assert state.stopped is not None and len(rounds) > 2
    for event in rounds[1:-1]:
        assert state.runs[event.runs[0]].status is not RunStatus.SKIPPED
    assert state.spent > 0.8 * 0.2 * 3600  # half of it without that rule


def test_a_time_limit_that_skips_a_whole_round_is_not_called_the_budget(tmp_path: Path) -> None:
    rules = ("strategy={name: full, first_round: 8, batch_size: 4}", "executor.max_pending=1")
    proposed: list[int] = []

    def listen(entry: Entry, state: State) -> None:
        if isinstance(entry.event, events.RoundProposed):
            proposed.append(entry.event.round)

    session.run(load(*rules), tmp_path, session.Hooks(listen=listen, interrupted=lambda: 2 in proposed))
    state = session.run(load(*rules, "measure.time_limit=2 s"), tmp_path)
    assert all(state.runs[run].status is RunStatus.SKIPPED for run in state.queue)
    assert state.stopped is not None and state.stopped.rule == "exhausted"
    assert "measure.time_limit is 2 s" in state.stopped.detail

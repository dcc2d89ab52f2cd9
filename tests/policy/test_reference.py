"""The reference run: proposed only where a drift is suspected, cheap, and always at the same point."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean

import immutables
import numpy as np
import pytest

from orchestrator.journal.references import REASON, references
from orchestrator.journal.state import InFlight, RunState, RunStatus, State
from orchestrator.policy import reference
from orchestrator.strategies.base import Choice
from orchestrator.types import Attempt, Point, Run

BUDGET = 1e6
NEW = [Choice(Point.of(n=99), 1, "new")]
MINUTE = 60.0


def state(
    times: dict[int, list[float]], drift: Callable[[float], float] = lambda t: 1.0, origin: str = "node, 1, 1"
) -> State:
    """Runs at points n, by the minutes when they began; each takes n² seconds times the drift."""
    rng = np.random.default_rng(0)
    runs = {}
    for n, minutes in times.items():
        for k, minute in enumerate(minutes, start=1):
            seconds = n**2 * drift(minute) * math.exp(0.01 * rng.standard_normal())
            runs[Run(Point.of(n=n), "time", k)] = RunState(
                status=RunStatus.MEASURED,
                accepted=1,
                elapsed=seconds,
                cost=seconds,
                began=MINUTE * minute,
                origin=origin,
            )
    last = immutables.Map({Point.of(n=n): len(minutes) for n, minutes in times.items()})
    return State(runs=immutables.Map(runs), proposed=immutables.Map({"time": last}))


SPREAD = {n: [0.0, 10.0 + n, 30.0 + n] for n in range(1, 7)}
EARLY = {n: [float(n), n + 1.0] for n in range(1, 40)}  # never again


def test_nothing_is_measured_again_without_suspicion() -> None:
    assert reference.propose(state(SPREAD), NEW, BUDGET) == []
    assert reference.propose(State(), NEW, BUDGET) == []


def test_a_suspected_drift_brings_a_cheap_early_point() -> None:
    [choice] = reference.propose(state(SPREAD, lambda t: 1 + t / 100), NEW, BUDGET)
    assert choice.repetitions == 1
    # n=1 and n=2 take a second and four, too little beside the usual thirteen.
    assert choice.point == Point.of(n=3)
    assert choice.reason.startswith("reference: times of the same points changed by +")


@pytest.mark.parametrize("kind", ["busy machine", "busy host"])
def test_a_busy_machine_is_a_suspicion(kind: str) -> None:
    busy = state(SPREAD)._replace(machine={kind: "..."})
    [choice] = reference.propose(busy, NEW, BUDGET)
    assert kind in choice.reason


def test_a_campaign_that_could_not_see_a_drift_looks_for_one() -> None:
    [choice] = reference.propose(state(EARLY), NEW, BUDGET)
    assert "no point was measured both early and late in 39 minutes" in choice.reason
    short = {n: [minute / 10 for minute in minutes] for n, minutes in EARLY.items()}
    assert reference.propose(state(short), NEW, BUDGET) == []
    assert reference.propose(state(EARLY, origin=""), NEW, BUDGET) == [], "a rehearsal has no machine"


def chosen_as_reference(state: State, run: Run) -> State:
    return state._replace(runs=state.runs.set(run, state.runs[run]._replace(chosen=REASON + "...")))


def test_the_point_stays_the_same_and_is_not_added_where_it_is_chosen_anyway() -> None:
    drifting = state(SPREAD, lambda t: 1 + t / 100)
    run = Run(Point.of(n=4), "time", 3)
    drifting = chosen_as_reference(drifting, run)
    [choice] = reference.propose(drifting, NEW, BUDGET)
    assert choice.point == run.point
    assert reference.propose(drifting, [Choice(run.point, 1, "again")], BUDGET) == []
    assert reference.propose(drifting, [], BUDGET) == [], "a round without choices ends the campaign"


def test_reference_runs_cost_no_more_than_their_share() -> None:
    drifting = state(SPREAD, lambda t: 1 + t / 100)
    run = Run(Point.of(n=2), "time", 3)
    drifting = chosen_as_reference(drifting, run)
    found = references(drifting)
    assert (found.points, found.runs) == ((run.point,), 1)
    need = found.cost + fmean(drifting.runs[Run(run.point, "time", k)].cost for k in (1, 2, 3))
    assert reference.propose(drifting, NEW, 20.1 * need)
    assert not reference.propose(drifting, NEW, 19.9 * need)


def test_what_a_reference_run_in_flight_reserves_counts_for_the_share_but_was_not_spent() -> None:
    drifting = state(SPREAD, lambda t: 1 + t / 100)
    run = Run(Point.of(n=2), "time", 3)
    drifting = chosen_as_reference(drifting, run)
    flying = drifting._replace(
        in_flight=immutables.Map({Attempt(run, 2): InFlight("job", 1, 60.0, reserved=95.0)})
    )
    found = references(flying)
    assert (found.cost, found.reserved) == (references(drifting).cost, 95.0)
    need = found.cost + fmean(drifting.runs[Run(run.point, "time", k)].cost for k in (1, 2, 3))
    assert reference.propose(drifting, NEW, 20.1 * need)
    assert not reference.propose(flying, NEW, 20.1 * need)
    assert reference.propose(flying, NEW, 20.1 * (need + 95.0))


def test_one_run_of_each_executable_counts_for_the_share() -> None:
    drifting = state(SPREAD, lambda t: 1 + t / 100)
    [choice] = reference.propose(drifting, NEW, BUDGET)
    need = 20 * fmean(drifting.runs[Run(choice.point, "time", k)].cost for k in (1, 2, 3))
    assert reference.propose(drifting, NEW, 1.01 * need)
    assert reference.propose(drifting, NEW, 2.01 * need, runs=2)
    assert not reference.propose(drifting, NEW, 1.99 * need, runs=2)

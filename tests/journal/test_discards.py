"""Measurements that are discarded or restored: nothing but their values stops counting, or counts again."""

from __future__ import annotations

import immutables
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.journal import discards, events
from orchestrator.journal.codec import Entry
from orchestrator.journal.measurements import measurements, repetitions, standing
from orchestrator.journal.replay import apply, replay
from orchestrator.journal.state import Discarded, RunStatus, State, validation_run
from orchestrator.types import Attempt, Parameter, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.journal.journals import journals

PARAMETERS = (Parameter("p", ()), Parameter("solver", ()))
RUNS = tuple(Run(Point.of(p=p, solver="cg"), "time", k) for p in (1, 2) for k in (1, 2))
TARGET = Point.of(p=99, solver="cg")


def measured(*runs: Run, state: State | None = None) -> State:
    """Return a state in which runs were proposed and measured."""
    state = apply(state or State(), events.RoundProposed(1, runs, ("",) * len(runs)), 1.0)
    for run in runs:
        state = finished(state, run)
    return state


def finished(state: State, run: Run, number: int = 1) -> State:
    attempt, value = Attempt(run, number), float(run.point["p"]) + run.repetition
    for event in (
        attempt_intended(attempt),
        attempt_finished(attempt, value, samples={"time": {"main": value}}),
    ):
        state = apply(state, event, 1.0)
    return state


def validated(state: State) -> State:
    run = validation_run(state, TARGET)
    return finished(apply(state, events.ValidationProposed(run), 2.0), run)


@given(journals(), st.data())
def test_only_the_values_stop_counting_and_restored_ones_count_as_before(
    entries: list[Entry], data: st.DataObject
) -> None:
    before = replay(entries)
    runs = sorted((run for run in before.runs if discards.refusal(before, run) is None), key=str)
    assume(runs)
    chosen = tuple(data.draw(st.lists(st.sampled_from(runs), min_size=1, unique=True)))
    without = apply(before, events.MeasurementsDiscarded(chosen, "wrong"), before.time + 1)
    assert (without.spent, without.reserved, without.in_flight) == (
        before.spent,
        before.reserved,
        before.in_flight,
    )
    assert without.proposed == before.proposed and repetitions(without) == repetitions(before)
    assert {run: (i.cost, i.samples, i.accepted) for run, i in without.runs.items()} == {
        run: (i.cost, i.samples, i.accepted) for run, i in before.runs.items()
    }
    assert without.validation is None or without.validation not in chosen
    left = [run for run, item in without.runs.items() if item.status is RunStatus.MEASURED]
    assert set(left).isdisjoint(chosen)
    seen = {key for run in left if run != without.validation for key in [(run.point, run.kind)]}
    found = measurements(without, PARAMETERS)
    assert {point for point, kind in seen} == set(found.points)
    again = apply(without, events.MeasurementsRestored(chosen, "right"), before.time + 2)
    assert again.runs == before.runs and again.discarded == before.discarded
    assert again.proposed == before.proposed and again.validation == before.validation
    assert measurements(again, PARAMETERS) == measurements(before, PARAMETERS)
    assert again.undecided and again.smape is None and again.rounds == ()


def test_values_and_counts_are_those_of_the_other_repetitions() -> None:
    state = apply(measured(*RUNS), events.MeasurementsDiscarded((RUNS[0], RUNS[2], RUNS[3]), "hot"), 5.0)
    known = measurements(state, PARAMETERS)
    assert {dict(item.values)[RUNS[0].point] for item in known.items} == {(3.0,)}
    assert known.points == (RUNS[0].point,)
    assert repetitions(state) == {RUNS[0].point: 2, RUNS[2].point: 2}
    assert standing(state) == {RUNS[0].point: 1}
    assert state.discarded[RUNS[0]] == Discarded("hot", 5.0)


@pytest.mark.parametrize("restore", [False, True])
def test_what_cannot_be_changed_is_no_possible_event(restore: bool) -> None:
    state = measured(*RUNS[:2])
    state = apply(state, events.RoundProposed(2, (RUNS[2],), ("",)), 3.0)
    gone = apply(state, events.MeasurementsDiscarded((RUNS[1],), "hot"), 3.0)
    kind = events.MeasurementsRestored if restore else events.MeasurementsDiscarded
    impossible = RUNS[0] if restore else RUNS[1]
    for run, why in ((RUNS[2], "is waiting"), (RUNS[3], "never proposed"), (impossible, "discarded")):
        with pytest.raises(ValueError, match=why):
            apply(gone, kind((run,), "why"), 4.0)


def test_another_run_validates_the_models_and_only_one_of_them_counts() -> None:
    state = validated(measured(*RUNS))
    first = Run(TARGET)
    assert state.validation == first
    state = state._replace(campaign={"evaluation_point": TARGET.as_dict()})
    state = apply(state, events.MeasurementsDiscarded((first,), "hot"), 3.0)
    assert state.validation is None and validation_run(state, TARGET) == Run(TARGET, "time", 2)
    state = validated(state)
    second = Run(TARGET, "time", 2)
    assert state.validation == second and TARGET not in measurements(state, PARAMETERS).points
    assert "another run validates" in (discards.refusal(state, first, restore=True) or "")
    state = apply(state, events.MeasurementsDiscarded((second,), "hot"), 4.0)
    with pytest.raises(ValueError, match="another run validates"):
        apply(state, events.MeasurementsRestored((first, second)), 5.0)
    state = apply(state, events.MeasurementsRestored((second,)), 5.0)
    assert state.validation == second and TARGET not in measurements(state, PARAMETERS).points


def test_of_a_discarded_validation_elsewhere_no_run_gets_the_number_again() -> None:
    here, there = {"evaluation_point": TARGET.as_dict()}, {"evaluation_point": {"p": 7, "solver": "cg"}}
    state = validated(measured(*RUNS))._replace(campaign=here)
    state = apply(state, events.MeasurementsDiscarded((Run(TARGET),), "hot"), 3.0)
    state = apply(state, events.CampaignChanged(there, elsewhere=True), 4.0)
    assert repetitions(state)[TARGET] == 1 and TARGET not in standing(state)
    restored = apply(state, events.MeasurementsRestored((Run(TARGET),)), 5.0)
    assert restored.validation is None and TARGET in measurements(restored, PARAMETERS).points


def test_what_was_measured_at_a_later_evaluation_point_is_not_restored() -> None:
    state = apply(measured(*RUNS), events.MeasurementsDiscarded(RUNS[:2], "hot"), 3.0)
    target = {"evaluation_point": RUNS[0].point.as_dict()}
    state = apply(state, events.CampaignChanged(target, elsewhere=True), 4.0)
    assert validation_run(state, RUNS[0].point).repetition == 3
    assert "never fitted" in (discards.refusal(state, RUNS[0], restore=True) or "")


def test_values_of_other_patterns_are_not_restored() -> None:
    state = apply(measured(*RUNS), events.MeasurementsDiscarded(RUNS[:1], "hot"), 3.0)
    for event in (events.RereadBegan(), events.RereadCompleted({}, 0)):
        state = apply(state, event, 4.0)
    assert "read again" in (discards.refusal(state, RUNS[0], restore=True) or "")


def test_a_late_charge_of_a_discarded_run_counts() -> None:
    state = apply(State(), events.RoundProposed(1, RUNS[:1], ("",)), 1.0)
    attempt = Attempt(RUNS[0])
    for event in (
        attempt_intended(attempt),
        attempt_finished(attempt, 10.0, estimated=True),
        events.MeasurementsDiscarded((RUNS[0],), "hot"),
        events.AttemptCharged(attempt, 4.0, 4.0),
    ):
        state = apply(state, event, 2.0)
    assert state.spent == 4.0 and state.runs[RUNS[0]].cost == 4.0
    assert state.runs[RUNS[0]].status is RunStatus.DISCARDED


def test_rules_that_count_rounds_begin_again() -> None:
    state = measured(*RUNS)
    completed = events.RoundCompleted(round=1, smape=2.0, width=0.1, improved=False, widest=0.2, narrow=True)
    state = apply(state, completed, 2.0)
    assert (state.rounds_without_improvement, state.narrow_rounds) == (1, 1)
    state = apply(state, events.CampaignStopped("patience", "why"), 3.0)
    state = apply(state, events.MeasurementsDiscarded(RUNS[:1], "hot"), 4.0)
    assert (state.rounds_without_improvement, state.narrow_rounds, state.widest) == (0, 0, None)
    assert state.stopped is not None and state.undecided
    state = apply(state, events.CampaignChanged({}), 5.0)
    assert state.stopped is None and not state.undecided and state.discarded
    assert isinstance(state.discarded, immutables.Map)

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.journal import events
from orchestrator.journal.codec import Entry
from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN, measurements, repetitions
from orchestrator.journal.replay import apply, replay
from orchestrator.journal.state import State
from orchestrator.types import Attempt, FailureClass, Parameter, Point, Run
from tests.journal.attempts import attempt_finished, attempt_intended

RUNS = tuple(Run(Point.of(p=p, n=n), "time", k) for p in (2, 16) for n in (5, 10) for k in (1, 2))


def measured(run: Run, value: float) -> list[events.Event]:
    attempt = Attempt(run)
    return [attempt_intended(attempt), attempt_finished(attempt, value, samples={"time": {"main": value}})]


def history(order: list[Run]) -> list[events.Event]:
    values = {run: float(index) for index, run in enumerate(RUNS)}
    proposed = events.RoundProposed(1, tuple(order), ("",) * len(order))
    return [proposed, *(event for run in order for event in measured(run, values[run]))]


@given(st.permutations(RUNS))
def test_measurements_do_not_depend_on_the_order_in_which_runs_finished(order: list[Run]) -> None:
    entries = [Entry(i, float(i), event) for i, event in enumerate(history(order), start=1)]
    parameters = (Parameter("p", ()), Parameter("n", ()))
    found = measurements(replay(entries), parameters)
    assert found == measurements(
        replay([Entry(i, float(i), e) for i, e in enumerate(history(list(RUNS)), start=1)]), parameters
    )
    elapsed, main = found.items
    assert (elapsed.callpath, elapsed.metric) == (WHOLE_RUN, ELAPSED)
    assert main.values[Point.of(p=2, n=5)] == (0.0, 1.0)
    assert list(main.values) == [Point.of(p=p, n=n) for p in (2, 16) for n in (5, 10)]


def test_replay_is_the_same_in_one_go_or_in_parts() -> None:
    entries = [Entry(i, float(i), event) for i, event in enumerate(history(list(RUNS)), start=1)]
    for cut in range(len(entries) + 1):
        assert replay(entries[cut:], replay(entries[:cut])) == replay(entries)


def test_apply_leaves_the_old_state_alone() -> None:
    before = replay([Entry(1, 1.0, history(list(RUNS))[0])])
    snapshot = dict(before.runs)
    apply(before, history(list(RUNS))[1], 2.0)
    assert dict(before.runs) == snapshot and not before.in_flight


def test_the_validation_run_is_never_among_the_measurements() -> None:
    run = Run(Point.of(p=99, n=99))
    state = replay([Entry(i, float(i), e) for i, e in enumerate(history(list(RUNS)), start=1)])
    for event in (events.ValidationProposed(run), *measured(run, 7.0)):
        state = apply(state, event, 99.0)
    assert run.point not in measurements(state, (Parameter("p", ()), Parameter("n", ()))).points
    assert run.point not in repetitions(state)


def test_a_validation_that_was_given_up_before_any_round_is_possible_under_other_rules() -> None:
    run = Run(Point.of(p=99, n=99))
    state = State()
    for event in (events.ValidationProposed(run), events.RunGivenUp(run, "why")):
        state = apply(state, event, 1.0)
    assert run.point in state.infeasible
    state = apply(state, events.CampaignChanged({}, anew=True), 2.0)
    assert run.point not in state.infeasible and state.validation is None


def test_costs_add_up() -> None:
    state = replay([Entry(i, float(i), e) for i, e in enumerate(history(list(RUNS)), start=1)])
    assert state.spent == sum(item.cost for item in state.runs.values()) == sum(range(len(RUNS)))
    assert State().spent == 0


def test_what_a_node_did_at_one_instant_counts_once_however_quiet_it_was_before() -> None:
    runs = [Run(Point.of(p=1), "time", k) for k in (1, 2)]
    state = apply(State(), events.RoundProposed(1, tuple(runs), ("",) * 2), 0.0)
    for run in runs:
        state = apply(state, attempt_intended(Attempt(run), 9e3, name=str(run)), 0.0)
    for run in runs:
        failure = FailureClass.INFRASTRUCTURE
        end = attempt_finished(Attempt(run), failure=failure, reason="NODE_FAIL", blamed=("n7",))
        state = apply(state, end, 7000.0)
    assert len(state.marks["n7"]) == 1


@given(st.booleans())
def test_cores_that_are_counted_anew_are_charged_as_they_are_until_something_else_is_known(
    late: bool,
) -> None:
    """The user states the two CPUs per core that the first run was charged, while two others are out."""
    first, second, third, fourth = map(Attempt, RUNS[:4])

    def intended(attempt: Attempt, cores: int) -> events.Event:
        return attempt_intended(attempt, name=str(attempt), cores=cores)

    def finished(attempt: Attempt, cost: float, estimated: bool = False) -> events.Event:
        return attempt_finished(attempt, 5.0, cost=cost, estimated=estimated)

    state = State(campaign={"executor": {"name": "slurm"}})
    before = [
        events.RoundProposed(1, RUNS, ("",) * len(RUNS)),
        *(intended(a, 1) for a in (first, second, third)),
    ]
    for event in (*before, finished(first, 10.0), finished(second, 10.0, estimated=True)):
        state = apply(state, event, 1.0)
    assert state.allocation == 2.0
    options = {"name": "slurm", "max_pending": 3}
    state = apply(state, events.CampaignChanged({"executor": options}), 1.0)
    assert state.allocation == 2.0
    state = apply(state, events.CampaignChanged({"executor": {**options, "threads_per_core": 2}}), 1.0)
    assert state.allocation == 1.0
    open_ones = [finished(third, 10.0), events.AttemptCharged(second, 5.0, 10.0)]
    for event in (*(open_ones[::-1] if late else open_ones), intended(fourth, 2), finished(fourth, 10.0)):
        state = apply(state, event, 2.0)
    assert (state.allocation, state.spent) == (1.0, 40.0)

"""Where a program does not run is learned from failures, neither from chance nor against a measurement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.journal import events
from orchestrator.journal.replay import apply
from orchestrator.journal.state import State
from orchestrator.policy import elsewhere, failing
from orchestrator.policy.actions import Submit
from orchestrator.policy.budget import kept_for_validation
from orchestrator.policy.decide import next_actions
from orchestrator.policy.failing import regions
from orchestrator.policy.regions import Region
from orchestrator.policy.rules import Policy
from orchestrator.policy.stop_rules import for_want_of_runs
from orchestrator.strategies.base import Choice, Nothing
from orchestrator.strategies.drawing import Listed
from orchestrator.types import Attempt, FailureClass, Parameter, Point, Run, Value
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.policy.known import estimates

POLICY = Policy(
    budget=1e6,
    patience=2,
    failures=3,
    max_pending=100,
    retries={FailureClass.APPLICATION: 1, FailureClass.MEMORY: 2},
    failure_rate=0.75,
)
SIZES = tuple(Point.of(n=n, p=p) for n, p in product((100, 200, 300, 400), (1, 2, 4)))
EXIT = "application: exit code 1; last line of stderr: Error: 7 negative volumes"


def after(
    failed: Iterable[Point], measured: Iterable[Point], waiting: Iterable[Point] = (), why: str = EXIT
) -> State:
    """Return the state in which points were measured or given up, and others wait to be begun."""
    kinds = {**dict.fromkeys(measured, True), **dict.fromkeys(failed, False)}
    runs = tuple(Run(point) for point in (*kinds, *waiting))
    new: list[events.Event] = [events.RoundProposed(1, runs, ("new",) * len(runs))]
    for point, succeeds in kinds.items():
        run = Run(point)
        for number in (1,) if succeeds else (1, 2):
            attempt = Attempt(run, number)
            new.append(attempt_intended(attempt, 9.0))
            new.append(
                attempt_finished(
                    attempt,
                    failure=None if succeeds else FailureClass.APPLICATION,
                    reason="" if succeeds else why,
                )
            )
        if not succeeds:
            new.append(events.RunGivenUp(run, f"{why} (2 attempts)"))
    state = State()
    for time, event in enumerate(new):
        state = apply(state, event, float(time))
    return state


def large(points: Iterable[Point], least: int = 300) -> list[Point]:
    return [point for point in points if point.number("n") >= least]


def small(points: Iterable[Point], least: int = 300) -> list[Point]:
    return [point for point in points if point.number("n") < least]


def only(found: tuple[Region, ...]) -> Region:
    (region,) = found
    return region


def test_values_from_which_every_run_fails_are_learned() -> None:
    region = only(regions(after(large(SIZES), small(SIZES))))
    assert str(region) == (
        "n >= 300 (all 6 points tried there were given up, none of 6 measured ones is there; "
        "application: exit code 1; last line of stderr: Error: 7 negative volumes)"
    )
    assert Point.of(n=1000, p=16) in region
    assert Point.of(n=250, p=1) not in region  # between the last that runs and the first that fails


def test_values_up_to_which_every_run_fails_are_learned() -> None:
    assert only(regions(after(small(SIZES), large(SIZES)))).where == "n <= 200"


def test_a_category_that_fails_is_learned() -> None:
    points = [Point.of(solver=solver, n=n) for solver, n in product(("cg", "amg"), (1, 2, 3, 4, 5))]
    broken = [point for point in points if point["solver"] == "amg"]
    assert only(regions(after(broken, [p for p in points if p not in broken]))).where == "solver = amg"


def test_memory_per_rank_is_a_region_of_two_parameters() -> None:
    points = [Point.of(n=n, p=p) for n, p in product((100, 200, 400, 800), (1, 2, 4))]
    fits = [point for point in points if point.number("n") / point.number("p") <= 100]
    region = only(regions(after([point for point in points if point not in fits], fits)))
    assert region.where == "(n >= 200 and p <= 1) or (n >= 400 and p <= 2) or (n >= 800 and p <= 4)"
    assert Point.of(n=1600, p=4) in region
    assert Point.of(n=800, p=8) not in region


def test_a_region_may_need_three_parameters() -> None:
    """As that of a mesh whose blocks become too many with levels of refinement and with time."""
    points = [Point.of(b=b, r=r, t=t) for b, r, t in product((50, 100, 300), (1, 2, 3, 4), (5, 10, 20))]
    failed = [p for p in points if p.number("r") * p.number("t") > 0.4 * p.number("b")]
    region = only(regions(after(failed, [point for point in points if point not in failed])))
    assert region.where.startswith("(b <= 50 and r >= 2 and t >= 20) or (b <= 50 and r >= 3 and t >= 10) or ")
    assert Point.of(b=40, r=5, t=40) in region
    assert Point.of(b=300, r=5, t=40) not in region


def test_a_size_that_is_no_multiple_of_the_ranks_is_a_region() -> None:
    """Failures lie between measured points, so no comparison with values tells them apart."""
    points = [Point.of(p=p, n=n) for p, n in product((1, 2, 4), (500, 501, 750, 1000, 1001, 1500, 2000))]
    failed = [point for point in points if point["n"] in (501, 1001) and point["p"] == 2]
    tried = [point for point in points if point.number("n") % point.number("p") == 0]
    region = only(regions(after(failed, tried)))
    assert region.where == "n % p != 0"
    assert Point.of(p=4, n=1001) in region and Point.of(p=4, n=750) in region
    assert Point.of(p=4, n=1000) not in region and Point.of(p=1, n=501) not in region


def test_a_remainder_is_a_region_as_far_as_failures_reach_in_other_parameters() -> None:
    points = [Point.of(p=p, n=n, steps=s) for p, n, s in product((1, 2), (10, 11, 12, 13), (1, 2, 3))]
    fails = [point for point in points if point.number("n") % point.number("p")]
    few = [point for point in fails if point.number("steps") <= 2]
    region = only(regions(after(few, [point for point in points if point not in fails])))
    assert region.where == "n % p != 0 and steps <= 2"
    assert region.explains(Point.of(p=2, n=15, steps=3)) and Point.of(p=2, n=15, steps=3) not in region


def test_a_remainder_with_which_a_program_runs_is_none() -> None:
    tried = [Point.of(p=p, n=n) for p, n in product((1, 2, 5), (10, 20, 30, 40))]
    failed = [Point.of(p=2, n=n) for n in (11, 21, 31)]
    assert only(regions(after(failed, tried))).where == "n % p != 0"
    assert all("%" not in region.where for region in regions(after(failed, [*tried, Point.of(p=2, n=13)])))


@pytest.mark.parametrize("values", [(1.5, 2.5, 4.0), ("rows", "columns", "blocks"), (0, 3, 4)])
def test_only_whole_numbers_above_zero_have_remainders(values: tuple[Value, ...]) -> None:
    points = [Point.of(p=p, x=x) for p, x in product((1, 2, 3, 4, 5), values)]
    assert [r for r in regions(after([points[3], points[-2]], points[:2])) if "%" in r.where] == []


def test_failures_with_a_remainder_and_without_one_are_no_region_of_remainders() -> None:
    tried = [Point.of(p=p, n=n) for p, n in product((1, 2, 3), (12, 24, 36, 48))]
    failed = [Point.of(p=2, n=25), Point.of(p=2, n=13), Point.of(p=2, n=30)]
    assert all("%" not in region.where for region in regions(after(failed, tried)))


def test_a_value_that_fails_with_some_values_of_another_parameter_is_a_region() -> None:
    """As where a program hangs with one size on several ranks: all sizes around run, and that one on one."""
    points = [Point.of(p=p, n=n, k=k) for p, n, k in product((1, 2, 4), (100, 200, 300, 400), (1, 2, 3))]
    failed = [point for point in points if point["n"] == 300 and point.number("p") >= 2]
    region = only(regions(after(failed, [point for point in points if point not in failed])))
    assert region.where == "n = 300 and p >= 2"
    assert Point.of(p=8, n=300, k=2) in region
    assert Point.of(p=1, n=300, k=2) not in region and Point.of(p=2, n=350, k=2) not in region


def test_one_failure_at_the_end_of_all_ranges_is_no_region() -> None:
    """Expensive points are chosen last: that one of them is beyond all others says nothing."""
    points = [Point.of(n=n, p=p) for n, p in product(range(10), range(10))]
    assert regions(after(points[-1:], points[:-1])) == ()


def test_where_two_parameters_explain_failures_alike_both_are_needed() -> None:
    line = [Point.of(n=n, m=n) for n in (1, 2, 3, 4, 5, 6, 7, 8)]
    region = only(regions(after(line[5:], line[:5])))
    assert region.where == "m >= 6 and n >= 6" or region.where == "n >= 6 and m >= 6"
    assert Point.of(n=7, m=1) not in region  # the run there tells them apart


def test_each_cause_may_have_its_region() -> None:
    state = after([Point.of(n=n, p=1) for n in (500, 600, 700, 800)], [Point.of(n=n, p=4) for n in (1, 2)])
    runs = [Point.of(n=n, p=p) for n, p in product((10, 20, 30), (1, 2, 4))]
    both = after(large(SIZES), [*small(SIZES), *runs])
    assert len(regions(state)) <= 1
    other = [Point.of(n=n, p=p) for n, p in product((10, 20, 30), (8, 16, 32))]
    for run in other:
        both = _given_up(both, run, "memory: out of memory")
    assert {region.where for region in regions(both)} == {"n >= 300", "p >= 8 and n <= 30"}


def test_what_was_tried_with_one_rank_only_says_nothing_of_more() -> None:
    """Memory per rank: a run that fails with one rank may need two."""
    line = [Point.of(n=n, p=1) for n in (100, 200, 300, 400, 500)]
    ranks = [Point.of(n=n, p=p) for n, p in product((100, 200), (2, 4, 8, 16))]
    region = only(regions(after(line[3:], [*line[:3], *ranks])))
    assert region.where == "n >= 400 and p <= 1"
    assert Point.of(n=400, p=2) not in region
    everywhere = after([*line[3:], Point.of(n=500, p=16)], [*line[:3], *ranks])
    assert only(regions(everywhere)).where == "n >= 400"


def test_beyond_what_was_tried_a_failure_is_no_surprise() -> None:
    line = [Point.of(n=n, p=1) for n in (100, 200, 300, 400, 500)]
    ranks = [Point.of(n=n, p=p) for n, p in product((100, 200), (2, 4, 8, 16))]
    region = only(regions(after(line[3:], [*line[:3], *ranks])))
    assert region.explains(Point.of(n=400, p=2)) and not region.explains(Point.of(n=300, p=1))


def test_one_run_of_a_round_shows_whether_the_region_goes_on() -> None:
    line = [Point.of(n=n, p=1) for n in (100, 200, 300, 400, 500)]
    ranks = [Point.of(n=n, p=p) for n, p in product((100, 200), (2, 4, 8, 16))]
    state = after(line[3:], [*line[:3], *ranks])
    choices = [Choice(Point.of(n=n, p=p), 2, "") for n, p in product((100, 500), (1, 2, 4, 8))]
    kept = elsewhere.to_be_tried(choices, state)
    assert [(choice.point["n"], choice.point["p"], choice.repetitions) for choice in kept] == [
        (100, 1, 2),
        (100, 2, 2),
        (100, 4, 2),
        (100, 8, 2),
        (500, 2, 1),
    ]
    assert elsewhere.to_be_tried(choices, State()) == choices


def test_a_strategy_that_insists_on_points_that_fail_is_exhausted() -> None:
    """Else each of its rounds is skipped, for ever."""
    state = after(large(SIZES), small(SIZES))
    nothing = elsewhere.to_be_tried([Choice(SIZES[-1], 1, ""), Choice(Point.of(n=900, p=1), 1, "")], state)
    assert isinstance(nothing, Nothing) and nothing.rule == "exhausted"
    empty = Nothing("converged", "")
    assert elsewhere.to_be_tried(empty, state) is empty


def test_what_was_tried_in_one_category_says_nothing_of_others() -> None:
    line = [Point.of(n=n, solver="cg") for n in (100, 200, 300, 400, 500)]
    others = [Point.of(n=n, solver=solver) for n, solver in product((100, 200), ("amg", "ilu", "jacobi"))]
    assert only(regions(after(line[3:], [*line[:3], *others]))).where == "n >= 400 and solver = cg"


def _given_up(state: State, point: Point, why: str) -> State:
    run = Run(point)
    proposed = events.RoundProposed(state.round + 1, (run,), ("new",))
    return apply(apply(state, proposed, 0.0), events.RunGivenUp(run, why), 0.0)


@pytest.mark.parametrize(
    ("failed", "measured"),
    [
        ([], SIZES),
        (SIZES, []),  # nothing runs anywhere: the stop rules end that
        (SIZES[-1:], SIZES[:-1]),  # a single failure
        ([SIZES[4], SIZES[6]], [SIZES[0]]),  # too few points to tell it from chance
        ([SIZES[0], SIZES[7], SIZES[3]], [SIZES[1], SIZES[2], SIZES[4], SIZES[5], SIZES[6]]),  # scattered
    ],
)
def test_what_chance_explains_is_no_region(failed: list[Point], measured: list[Point]) -> None:
    assert regions(after(failed, measured)) == ()


def test_values_at_which_every_run_fails_are_learned() -> None:
    """As those of a program that needs a power of two."""
    points = [Point.of(n=n, p=p) for n, p in product((1, 2, 3), range(1, 9))]
    powers = [point for point in points if point["p"] in (1, 2, 4, 8)]
    region = only(regions(after([point for point in points if point not in powers], powers)))
    assert region.where == "p = 3 or p = 5 or p = 6 and 1 more"
    assert Point.of(n=9, p=7) in region
    assert Point.of(n=1, p=9) not in region


def test_a_measurement_beyond_ends_a_region() -> None:
    known = after(large(SIZES), small(SIZES))
    assert regions(known)
    run = Run(Point.of(n=800, p=8))
    flight = attempt_intended(Attempt(run, 1), 9.0)
    done = attempt_finished(Attempt(run, 1))
    for event in (events.RoundProposed(2, (run,), ("new",)), flight, done):
        known = apply(known, event, 0.0)
    assert not any(run.point in region for region in regions(known))


POINTS = st.builds(
    lambda n, p, s: Point.of(n=n, p=p, s=s),
    st.sampled_from((1, 2, 4, 8)),
    st.integers(1, 4),
    st.sampled_from(("a", "b")),
)


@given(st.dictionaries(POINTS, st.booleans(), min_size=2, max_size=24), st.randoms())
def test_no_measured_point_is_left_out_and_the_order_does_not_matter(
    outcome: dict[Point, bool], random: object
) -> None:
    failed = [point for point, succeeds in outcome.items() if not succeeds]
    measured = [point for point, succeeds in outcome.items() if succeeds]
    known = regions(after(failed, measured))
    assert not any(point in region for region in known for point in measured)
    assert all(any(point in region for region in known) for point in failed) or len(known) != 1
    random.shuffle(failed)  # type: ignore[attr-defined]
    random.shuffle(measured)  # type: ignore[attr-defined]
    again = regions(after(failed, measured))
    assert [region.where for region in again] == [region.where for region in known]


@dataclass(frozen=True)
class Grid:
    parameters: tuple[Parameter, ...]

    def __iter__(self) -> Iterator[Point]:
        return self.within({})

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        return (p for p in SIZES if all(p[name] == value for name, value in fixed.items()))

    def __contains__(self, point: object) -> bool:
        return point in SIZES


class Listing(Grid):
    @property
    def points(self) -> tuple[Point, ...]:
        return SIZES


@pytest.mark.parametrize("kind", [Grid, Listing])
def test_a_search_space_loses_the_points_of_regions(kind: type[Grid]) -> None:
    space = kind((Parameter("n", (100, 200, 300, 400)), Parameter("p", (1, 2, 4))))
    assert elsewhere.without(space, ()) is space
    rest = elsewhere.without(space, regions(after(large(SIZES), small(SIZES))))
    assert list(rest) == small(SIZES)
    assert list(rest.within({"p": 2})) == small(SIZES)[1::3]
    assert SIZES[0] in rest and SIZES[-1] not in rest
    assert rest.parameters == space.parameters
    assert isinstance(rest, Listed) == isinstance(space, Listed)
    assert not isinstance(rest, Listed) or rest.points == tuple(small(SIZES))


def test_runs_of_the_round_that_would_fail_alike_are_not_begun() -> None:
    further, inside = Point.of(n=100, p=8), Point.of(n=500, p=8)
    state = after(large(SIZES), small(SIZES), (further, inside))
    said = next_actions(state, POLICY, 100.0, estimates())
    (begun,) = (item for item in said if isinstance(item, Submit))
    (skipped,) = (item for item in said if isinstance(item, events.RunSkipped))
    assert begun.attempt.run.point == further
    assert skipped.run.point == inside
    assert skipped.reason.startswith("left out: n >= 300 (all 6 points")


@pytest.mark.parametrize(("n", "fails"), [(500, True), (150, False)])
def test_a_validation_is_neither_made_nor_paid_for_where_the_program_fails(n: int, fails: bool) -> None:
    state, known = after(large(SIZES), small(SIZES)), estimates()
    run = Run(Point.of(n=n, p=4))
    policy = replace(POLICY, validation_point=run.point)
    assert (kept_for_validation(state, policy, known) == 0) is fails
    for event in (
        events.RoundCompleted(round=1, smape=None, width=None, improved=True),
        events.StopRuleReached("patience", ""),
        events.ValidationProposed(run),
    ):
        state = apply(state, event, 0.0)
    said = next_actions(state, policy, 100.0, known)
    assert [item.attempt.run for item in said if isinstance(item, Submit)] == [run] * (not fails)
    skipped = [item.reason for item in said if isinstance(item, events.RunSkipped)]
    assert [reason.startswith("left out: n >= 300") for reason in skipped] == [True] * fails


@pytest.mark.parametrize(
    ("point", "failure", "again"),
    [
        (Point.of(n=500, p=8), FailureClass.APPLICATION, False),
        (Point.of(n=500, p=8), FailureClass.INFRASTRUCTURE, True),
        (Point.of(n=500, p=8), FailureClass.MEMORY, True),  # the next attempt asks for more
        (Point.of(n=100, p=8), FailureClass.APPLICATION, True),
    ],
)
def test_what_fails_as_others_around_it_did_has_no_further_attempt(
    point: Point, failure: FailureClass, again: bool
) -> None:
    attempt = Attempt(Run(point), 1)
    state = after(large(SIZES), small(SIZES), [point])
    flight = attempt_intended(attempt, 9.0)
    failed = attempt_finished(attempt, failure=failure, reason="why")
    for event in (flight, failed):
        state = apply(state, event, 50.0)
    (action,) = next_actions(state, POLICY, 100.0, estimates())
    assert isinstance(action, Submit if again else events.RunGivenUp)


def test_failures_where_the_program_does_not_run_stop_no_campaign() -> None:
    many = [Point.of(n=n, p=p) for n, p in product((300, 400, 500, 600, 700, 800), (1, 2))]
    state = after(many, small(SIZES), [Point.of(n=100, p=8)])  # the last twelve points, 24 attempts, failed
    said = next_actions(state, POLICY, 100.0, estimates())
    assert [type(item) for item in said] == [Submit]


def test_failures_everywhere_stop_a_campaign() -> None:
    broken = [SIZES[0], *large(SIZES)]  # one of them where others run
    said = next_actions(after(broken, small(SIZES)[1:]), POLICY, 100.0, estimates())
    assert [(type(item), item.rule) for item in said if isinstance(item, events.StopRuleReached)] == [
        (events.StopRuleReached, "failures")
    ]


def test_the_stop_says_what_was_left_out() -> None:
    state = after(large(SIZES), small(SIZES))
    stop = for_want_of_runs(state, Nothing("exhausted", "nothing is left"))
    assert stop.detail == "nothing is left; left out: n >= 300"


def test_it_is_said_whether_the_evaluation_point_is_left_out() -> None:
    state = after(large(SIZES), small(SIZES))
    assert len(failing.warnings(state, Point.of(n=50, p=64))) == 1
    assert failing.warnings(state, Point.of(n=800, p=64))[1].startswith(
        "the evaluation point is one of these"
    )

"""Runs on the same or nested nodes: whatever Slurm chooses and whichever run ends first."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import immutables
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.journal import events
from orchestrator.journal.replay import apply
from orchestrator.journal.state import RunStatus, State
from orchestrator.policy.actions import Fit, Submit
from orchestrator.policy.decide import next_actions
from orchestrator.policy.estimates import Estimates, PointEstimate
from orchestrator.policy.packing import SharingRules
from orchestrator.policy.placement import Placement, is_held, nodelist
from orchestrator.policy.rules import Policy
from orchestrator.types import Attempt, FailureClass, Point, Resources, Run
from tests.journal.attempts import attempt_finished, attempt_intended
from tests.policy.known import total

CLUSTER = tuple(f"n{number}" for number in range(1, 9))


def points(counts: Mapping[Point, int]) -> dict[Point, PointEstimate]:
    return {
        point: PointEstimate(Resources(ranks=count, nodes=count, cores=count), 10.0)
        for point, count in counts.items()
    }


def rules(placement: Placement, sharing: SharingRules | None = None) -> Policy:
    return Policy(
        budget=1e9,
        patience=9,
        failures=99,
        max_pending=4,
        retries=dict.fromkeys(FailureClass, 5),
        placement=placement,
        sharing=sharing,
    )


class Cluster:
    """A campaign's only round on a cluster that chooses nodes and ends jobs as it likes."""

    def __init__(self, counts: list[int], repetitions: int, policy: Policy, chance: random.Random) -> None:
        at = {Point.of(p=number): count for number, count in enumerate(counts)}
        runs = tuple(Run(point, "time", k) for k in range(1, repetitions + 1) for point in at)
        self.policy, self.chance, self.at = policy, chance, at
        self.known = Estimates(points=points(at), reserved_seconds=total, slowdown={})
        self.state = apply(State(), events.RoundProposed(1, runs, ("",) * len(runs)), 1.0)
        self.jobs: dict[str, tuple[str, ...]] = {}  # nodes by job
        self.nodes: dict[Run, tuple[str, ...]] = {}
        self.began: list[int] = []  # how many ran side by side

    def go(self, failing: float = 0.0) -> None:
        for _ in range(1000):
            actions = next_actions(self.state, self.policy, self.state.time, self.known)
            for action in actions:
                if isinstance(action, Fit):
                    return
                assert isinstance(action, Submit), action
                self._begin(action)
            self.began.append(len(self.state.in_flight))
            assert self.state.in_flight, "nothing begins, and nothing is left to wait for"
            self._end(self.chance.choice(sorted(self.state.in_flight, key=str)), failing)
        raise AssertionError("it does not end")

    def _begin(self, action: Submit) -> None:
        attempt = action.attempt
        pack = "" if action.pack is None else str(action.pack)
        intent = attempt_intended(attempt, name=str(attempt), pack=pack)
        asked = nodelist(self.policy.placement, self.state, attempt.run, self.at[attempt.run.point])
        self.state = apply(self.state, intent, self.state.time + 1)
        job = pack or str(attempt)
        if job not in self.jobs:
            others = [name for name in CLUSTER if name not in asked]
            more = self.chance.sample(others, self.at[attempt.run.point] - len(asked))
            self.jobs[job] = tuple(sorted([*asked, *more]))
        assert set(asked) <= set(self.jobs[job])

    def _end(self, attempt: Attempt, failing: float) -> None:
        flight = self.state.in_flight[attempt]
        nodes = self.jobs[flight.pack or str(attempt)]
        failed = attempt.number <= 2 and self.chance.random() < failing
        event = attempt_finished(
            attempt,
            failure=FailureClass.APPLICATION if failed else None,
            on=nodes,
            nodes=len(nodes),
            host=nodes[0],
        )
        self.state = apply(self.state, event, self.state.time + 1)
        if not failed:
            self.nodes[attempt.run] = nodes


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=6),
    st.integers(1, 3),
    st.sampled_from([None, SharingRules(most=3), SharingRules(most=4, repetitions="together")]),
    st.sampled_from([0.0, 0.3]),
    st.randoms(use_true_random=False),
)
def test_nested_runs_are_on_nodes_of_every_larger_one(
    counts: list[int], repetitions: int, sharing: SharingRules | None, failing: float, chance: random.Random
) -> None:
    one = Cluster(counts, repetitions, rules("nested", sharing), chance)
    one.go(failing)
    sets = sorted((set(nodes) for nodes in one.nodes.values()), key=len)
    assert all(small <= large for small, large in itertools.pairwise(sets))
    assert len(one.nodes) == len(counts) * repetitions


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=6),
    st.integers(1, 3),
    st.sampled_from([None, SharingRules(most=3), SharingRules(most=4, repetitions="together")]),
    st.randoms(use_true_random=False),
)
def test_all_runs_at_a_point_are_on_the_same_nodes(
    counts: list[int], repetitions: int, sharing: SharingRules | None, chance: random.Random
) -> None:
    one = Cluster(counts, repetitions, rules("same", sharing), chance)
    one.go()
    for point in one.at:
        assert len({nodes for run, nodes in one.nodes.items() if run.point == point}) == 1


def test_only_runs_that_would_decide_about_nodes_wait() -> None:
    one = Cluster([1, 1, 1, 1], 1, rules("same"), random.Random(0))
    one.go()
    assert one.began[0] == 4  # different points
    nested = Cluster([2, 1, 2, 1], 1, rules("nested"), random.Random(0))
    nested.go()
    assert nested.began[:2] == [1, 3]  # the first one chooses the nodes of all others


def test_without_a_rule_nothing_waits_and_nothing_is_asked_for() -> None:
    run = Run(Point.of(p=1))
    state = State(node_order=("n1",), placements=immutables.Map({run.point: ("n1",)}))
    assert nodelist("any", state, run, 1) == ()
    assert not is_held("any", state, run, [run], {})


@pytest.mark.parametrize("rule", ["same", "nested"])
def test_nodes_that_may_be_the_cause_of_a_failure_are_not_asked_for_again(rule: Placement) -> None:
    run, other = Run(Point.of(p=1)), Run(Point.of(p=1), "time", 2)
    state = apply(State(), events.RoundProposed(1, (run, other), ("", "")), 1.0)
    state = state._replace(node_order=("n1", "n2"), placements=immutables.Map({run.point: ("n1", "n2")}))
    assert nodelist(rule, state, run, 2) == ("n1", "n2")
    marked = state._replace(marks=immutables.Map({"n1": ("slow", "slow")}))
    assert nodelist(rule, marked, run, 2) == ("n2",)
    item = state.runs[run]._replace(status=RunStatus.FAILED, failures=(FailureClass.INFRASTRUCTURE,))
    failed = state._replace(runs=state.runs.set(run, item))
    assert nodelist(rule, failed, run, 2) == ()
    assert nodelist(rule, failed, other, 2) == ("n1", "n2")


def test_the_journal_keeps_the_nodes() -> None:
    event = attempt_finished(Attempt(Run(Point.of(p=1))), on=("n1", "n2"))
    data = events.to_json(event)
    assert data["on"] == ["n1", "n2"]
    assert events.from_json("attempt_finished", data) == event
    del data["on"]  # as earlier versions wrote it
    read = events.from_json("attempt_finished", data)
    assert isinstance(read, events.AttemptFinished) and read.on == ()

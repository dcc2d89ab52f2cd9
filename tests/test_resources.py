from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import resources
from orchestrator.resources import Machine
from orchestrator.types import Point


def in_whole_minutes(limit: float) -> float:
    """As a scheduler charges that rounds limits up and is slow to end jobs."""
    return 60.0 * math.ceil((limit + 42) / 60) + 60


@given(
    st.floats(1, 1e7),
    st.lists(st.integers(1, 500), min_size=1, max_size=30),
    st.sampled_from([in_whole_minutes, lambda limit: limit, lambda limit: limit + 12]),
)
def test_the_budget_pays_for_the_fair_limit_and_no_longer_one(
    budget: float, cores: list[int], reserved: Callable[[float], float]
) -> None:
    limit = resources.fair_limit(budget, cores, reserved)
    assert 0 <= limit <= 3600
    if limit > 0:
        assert sum(cores) * reserved(limit) <= budget
    if 0 < limit < 3600:
        assert sum(cores) * reserved(limit + 1e-6) > budget * (1 - 1e-9)


@pytest.mark.parametrize(
    ("ranks", "threads", "machine", "nodes", "per_node", "cores"),
    [
        (2, 1, Machine(slots=4), 1, 2, 2),
        (8, 1, Machine(slots=2, oversubscribe=True), 1, 8, 2),
        (64, 1, Machine(cores_per_node=48), 2, 48, 64),
        (64, 1, Machine(cores_per_node=48, whole_nodes=True), 2, 48, 96),
        (64, 6, Machine(cores_per_node=48), 8, 8, 384),
        (27, 1, Machine(cores_per_node=48, ranks_per_node=12), 3, 12, 27),
        (27, 1, Machine(), 1, 27, 27),
    ],
)
def test_nodes_and_cores_are_derived(
    ranks: int, threads: int, machine: Machine, nodes: int, per_node: int, cores: int
) -> None:
    found = resources.resources(ranks, threads, machine)
    assert (found.nodes, found.ranks_per_node, found.cores) == (nodes, per_node, cores)
    assert found.nodes * found.ranks_per_node >= ranks


@pytest.mark.parametrize(
    ("ranks", "threads", "machine", "words"),
    [
        (8, 1, Machine(slots=2), "need 8 cores, the local executor has 2 slots.*oversubscribe"),
        (1, 64, Machine(cores_per_node=48), "do not fit a node of 48 cores"),
        (64, 6, Machine(cores_per_node=48, ranks_per_node=12), "12 ranks x 6 threads per node do not fit"),
        (0, 1, Machine(), "must be at least 1"),
    ],
)
def test_what_no_machine_can_hold_is_refused_with_the_remedy(
    ranks: int, threads: int, machine: Machine, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        resources.resources(ranks, threads, machine)


def test_the_first_guess_of_costs_grows_with_every_parameter() -> None:
    guess = resources.guess(
        {"p": (2, 4), "x": (-1.0, 3.0), "solver": ("cg", "amg")}, lambda point: int(point.number("p"))
    )
    costs = [guess(Point.of(p=p, x=x, solver="cg")) for p in (2, 4) for x in (-1.0, 3.0)]
    assert costs[0] < costs[1] and costs[0] < costs[2] < costs[3]

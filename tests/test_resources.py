from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from orchestrator import resources
from orchestrator.resources import Asked, Machine
from orchestrator.types import Point, Resources


def in_whole_minutes(limit: float) -> float:
    """As a scheduler charges that rounds limits up and is slow to end jobs."""
    return 60.0 * math.ceil((limit + 42) / 60) + 60


@given(
    st.floats(1, 1e7),
    st.integers(1, 10_000),
    st.sampled_from([in_whole_minutes, lambda limit: limit, lambda limit: limit + 12]),
)
def test_the_budget_pays_for_the_fair_limit_and_no_longer_one(
    budget: float, cores: int, reserved: Callable[[float], float]
) -> None:
    limit = resources.fair_limit(budget, lambda limit: cores * reserved(limit))
    assert 0 <= limit <= 3600
    if limit > 0:
        assert cores * reserved(limit) <= budget
    if 0 < limit < 3600:
        assert cores * reserved(limit + 1e-6) > budget * (1 - 1e-9)


@pytest.mark.parametrize(
    ("ranks", "threads", "machine", "nodes", "per_node", "cores"),
    [
        (2, 1, Machine(slots=4), 1, 2, 2),
        (8, 1, Machine(slots=2, oversubscribe=True), 1, 8, 2),
        (64, 1, Machine(cores_per_node=48), 2, 48, 96),
        (64, 1, Machine(cores_per_node=48, whole_nodes=True), 2, 48, 96),
        (64, 6, Machine(cores_per_node=48), 8, 8, 384),
        (27, 1, Machine(cores_per_node=48, ranks_per_node=12), 3, 12, 36),
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
        (8, 1, Machine(slots=2, nodes=1), "need 8 cores, the local executor has 2 slots.*oversubscribe"),
        (8, 1, Machine(slots=2), "need 8 cores, the simulated executor has 2: raise executor.cores"),
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


# --- what a campaign states -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "asked", "machine", "nodes", "per_node"),
    [
        (8, Asked(nodes=2), Machine(cores_per_node=48), 2, 4),
        (8, Asked(ranks_per_node=2, exact=True), Machine(cores_per_node=48), 4, 2),
        (8, Asked(nodes=4, ranks_per_node=2, exact=True), Machine(), 4, 2),
        (5, Asked(nodes=4), Machine(cores_per_node=48), 4, 2),
        (27, Asked(nodes=2, ranks_per_node=14), Machine(cores_per_node=48), 2, 14),
        (2, Asked(ranks_per_node=4), Machine(cores_per_node=48), 1, 2),  # a number is the most
        (8, Asked(ranks_per_node=2, exact=True), Machine(cores_per_node=48, ranks_per_node=12), 4, 2),
        (4, Asked(nodes=1), Machine(slots=4, nodes=1), 1, 4),
        (4, Asked(nodes=2), Machine(slots=4), 2, 2),  # the rehearsal of a campaign on a cluster
    ],
)
def test_runs_are_placed_as_stated(
    ranks: int, asked: Asked, machine: Machine, nodes: int, per_node: int
) -> None:
    found = resources.resources(ranks, 1, machine, asked)
    assert (found.nodes, found.ranks_per_node) == (nodes, per_node)
    assert found.cores == (ranks if machine.slots else nodes * per_node)


@pytest.mark.parametrize(
    ("ranks", "threads", "asked", "machine", "words"),
    [
        (6, 1, Asked(ranks_per_node=4, exact=True), Machine(), "6 ranks do not fill nodes of 4 ranks"),
        (2, 1, Asked(ranks_per_node=4, exact=True), Machine(), "2 ranks do not fill nodes of 4 ranks"),
        (2, 1, Asked(nodes=4), Machine(), "4 nodes .* are more than the 2 ranks"),
        (8, 1, Asked(nodes=4, ranks_per_node=4), Machine(), "8 ranks, 4 per node, occupy 2 nodes, not 4"),
        (8, 2, Asked(threads=4), Machine(), "resources.threads gives 4 .* the run has 2"),
        (8, 1, Asked(nodes=1), Machine(cores_per_node=4), "8 ranks x 1 threads .* raise resources.nodes"),
        (8, 4, Asked(ranks_per_node=4), Machine(cores_per_node=8), "lower resources.ranks_per_node or"),
        (4, 1, Asked(nodes=2), Machine(slots=8, nodes=1), "2 nodes are more than the 1 of this executor"),
    ],
)
def test_what_contradicts_itself_or_the_machine_is_refused(
    ranks: int, threads: int, asked: Asked, machine: Machine, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        resources.resources(ranks, threads, machine, asked)


@pytest.mark.parametrize(
    ("asked", "gpus"), [(Asked(), 4), (Asked(gpus_per_node=2), 2), (Asked(gpus_per_node=0), 0)]
)
def test_gpus_are_those_of_the_run_else_those_of_all_runs(asked: Asked, gpus: int) -> None:
    assert resources.resources(1, 1, Machine(gpus_per_node=4), asked).gpus_per_node == gpus


# --- what Slurm charges for it --------------------------------------------------------------------------


def spread(found: Resources, leaning: list[int]) -> list[int]:
    """Return the ranks on each node in one of the ways that Slurm may choose: at least one, none too many."""
    ranks = [1] * found.nodes
    for turn in range(found.ranks - found.nodes):
        free = [node for node, count in enumerate(ranks) if count < found.ranks_per_node]
        ranks[free[leaning[turn % len(leaning)] % len(free)]] += 1
    return ranks


def charged(found: Resources, machine: Machine, ranks: list[int]) -> int:
    """Return AllocCPUS of a job with so many ranks on its nodes, where whole cores are allocated."""
    per_core = machine.threads_per_core
    if machine.whole_nodes:
        return found.nodes * (machine.cores_per_node or 0) * per_core
    if machine.own_cores:  # --hint=nomultithread
        return sum(count * found.threads * per_core for count in ranks)
    return sum(math.ceil(count * found.threads / per_core) * per_core for count in ranks)


@st.composite
def placed(draw: st.DrawFn) -> tuple[Resources, Machine]:
    per_core = draw(st.sampled_from([1, 2, 4]))
    machine = Machine(
        cores_per_node=draw(st.integers(1, 64)),
        threads_per_core=per_core,
        own_cores=draw(st.booleans()),
        whole_nodes=draw(st.booleans()),
    )
    ranks, threads = draw(st.integers(1, 96)), draw(st.integers(1, 16))
    asked = draw(
        st.one_of(
            st.just(Asked()),
            st.builds(lambda n: Asked(nodes=n), st.integers(1, 16)),
            st.builds(lambda n, e: Asked(ranks_per_node=n, exact=e), st.integers(1, 64), st.booleans()),
            st.builds(lambda n, r: Asked(nodes=n, ranks_per_node=r), st.integers(1, 16), st.integers(1, 64)),
        )
    )
    try:
        return resources.resources(ranks, threads, machine, asked), machine
    except ValueError:
        reject()


@given(placed(), st.lists(st.integers(0, 100), min_size=1, max_size=10))
def test_a_run_is_reserved_at_least_what_slurm_charges(
    case: tuple[Resources, Machine], leaning: list[int]
) -> None:
    found, machine = case
    assert found.nodes * found.ranks_per_node >= found.ranks >= found.nodes
    ranks = spread(found, leaning)
    assert sum(ranks) == found.ranks
    assert charged(found, machine, ranks) <= found.cores
    # As Slurm 22.05 allocates: every node for the most ranks of a node.
    full = charged(found, machine, [found.ranks_per_node] * found.nodes)
    assert full <= found.cores
    if machine.whole_nodes or machine.own_cores or found.threads % machine.threads_per_core == 0:
        assert full == found.cores


@given(placed())
def test_the_ranks_of_a_node_fit_it(case: tuple[Resources, Machine]) -> None:
    found, machine = case
    of_rank = found.threads if machine.own_cores else math.ceil(found.threads / machine.threads_per_core)
    assert found.ranks_per_node * of_rank <= (machine.cores_per_node or 0)

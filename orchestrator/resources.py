"""What a run occupies and costs: pure functions. Core-seconds inside, core-hours for humans."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import expressions
from orchestrator.errors import CampaignError, ExpressionError
from orchestrator.types import Point, Resources, Value

_OPTION = "--processes"
_HALVINGS = 50  # of an hour: beyond any clock's resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What decides how many cores a run is charged for.

    Attributes
    ----------
    slots
        Cores that run at once, of a local campaign or a rehearsal of one; None on a cluster.
    nodes
        Most nodes of a run; None for any number.
    cores_per_node
        Cores of a node; None where that is not known.
    ranks_per_node
        Most ranks on a node, for runs that do not state it themselves.
    gpus_per_node
        For runs that do not state it themselves.
    threads_per_core
        Hardware threads of a core, where the site counts and charges these.
    own_cores
        Whether every thread gets a core of its own although a core has several hardware threads.
    whole_nodes
        Whether the site bills, or the job asks for, whole nodes.
    oversubscribe
        Whether runs may have more threads than ``slots``.
    sizes
        The most cores that a run may ask for in each of several places, ascending, with the cores of a node
        there (None: ``cores_per_node``).
    """

    slots: int | None = None
    nodes: int | None = None
    cores_per_node: int | None = None
    ranks_per_node: int | None = None
    gpus_per_node: int = 0
    threads_per_core: int = 1
    own_cores: bool = False
    whole_nodes: bool = False
    oversubscribe: bool = False
    sizes: tuple[tuple[float, int | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a campaign states of a run's resources beside its ranks; None where it says nothing.

    ``exact``: the ranks fill all nodes with ``ranks_per_node`` each; else that is the most.
    """

    nodes: int | None = None
    ranks_per_node: int | None = None
    threads: int | None = None
    gpus_per_node: int | None = None
    exact: bool = False


NOTHING_ASKED = Asked()


@dataclass(frozen=True, slots=True)
class Reservation:
    """The most that one attempt can be charged: ``cores``, time ``limit`` (s), ``reserved`` core-seconds.

    ``likely``: the seconds that it takes at most as far as is known; None where nothing is.
    """

    cores: int
    limit: float
    reserved: float
    likely: float | None = None


def resources(ranks: int, threads: int, machine: Machine, asked: Asked = NOTHING_ASKED) -> Resources:
    """Derive nodes and charged cores from ranks and threads: the only place where this is done.

    Parameters
    ----------
    ranks, threads
        MPI ranks of the run, and threads of each.
    machine
        Where it runs.
    asked
        What the campaign states for this run.

    Raises
    ------
    ValueError
        If what is stated cannot be, or the machine cannot hold the run; the text says what to change.
    """
    if ranks < 1 or threads < 1:
        raise ValueError(f"{ranks} ranks with {threads} threads: both must be at least 1")
    if asked.threads is not None and asked.threads != threads:
        raise ValueError(
            f"resources.threads gives {asked.threads} threads per rank, the run has {threads}: state the "
            "same under resources as for the program"
        )
    gpus = machine.gpus_per_node if asked.gpus_per_node is None else asked.gpus_per_node
    occupied = _on_nodes if machine.slots is None else _on_slots
    per_node, nodes, cores = occupied(ranks, threads, machine, asked)
    return Resources(
        ranks=ranks, threads=threads, nodes=nodes, ranks_per_node=per_node, cores=cores, gpus_per_node=gpus
    )


def _on_slots(ranks: int, threads: int, machine: Machine, asked: Asked) -> tuple[int, int, int]:
    """Return ranks per node, nodes and charged cores on a machine of which the slots are counted."""
    need, slots = ranks * threads, machine.slots
    assert slots is not None
    per_node, nodes = _placed(ranks, ranks, machine, asked)
    if need > slots and not machine.oversubscribe:
        known = (
            f"simulated executor has {slots}: raise executor.cores, of a local campaign executor.slots"
            if machine.nodes is None
            else f"local executor has {slots} slots: set executor.slots or executor.oversubscribe: true"
        )
        raise ValueError(f"{ranks} ranks x {threads} threads need {need} cores, the {known}")
    return per_node, nodes, min(need, slots)


def _on_nodes(ranks: int, threads: int, machine: Machine, asked: Asked) -> tuple[int, int, int]:
    """Return ranks per node, nodes and charged cores on the nodes of a cluster."""
    cores_per_node, of_rank = _cores_per_node(ranks * threads, machine), _cores_of_rank(threads, machine)
    fitting = ranks
    if cores_per_node is not None:
        fitting = machine.ranks_per_node or cores_per_node // of_rank
    per_node, nodes = _placed(ranks, fitting, machine, asked)
    if cores_per_node is not None and (per_node < 1 or per_node * of_rank > cores_per_node):
        raise ValueError(
            f"{per_node or 1} ranks x {threads} threads per node do not fit a node of "
            f"{cores_per_node} cores: {_fewer(machine, asked)}"
        )
    whole = machine.whole_nodes and cores_per_node is not None
    # On each node Slurm allocates what those of a full one need, also where the ranks do not fill all.
    on_node = (cores_per_node or 0) if whole else per_node * of_rank
    return per_node, nodes, machine.threads_per_core * nodes * on_node


def _placed(ranks: int, fitting: int, machine: Machine, asked: Asked) -> tuple[int, int]:
    """Return ranks per node and nodes: as stated, else ``fitting`` ranks per node, which may be none."""
    most = asked.ranks_per_node
    if asked.exact and most is not None and ranks % most:
        raise ValueError(
            f"{ranks} ranks do not fill nodes of {most} ranks (resources.ranks_per_node): exclude such "
            "points by constraints, such as p % ppn == 0"
        )
    if asked.nodes is not None and asked.nodes > ranks:
        raise ValueError(
            f"{asked.nodes} nodes (resources.nodes) are more than the {ranks} ranks: exclude such points by "
            "constraints"
        )
    if most is None and asked.nodes is not None:
        most = math.ceil(ranks / asked.nodes)
    per_node = min(ranks, fitting if most is None else most)
    if per_node < 1:
        return per_node, 1
    nodes = math.ceil(ranks / per_node)
    if asked.nodes is not None and asked.nodes != nodes:
        if asked.ranks_per_node is not None:
            raise ValueError(
                f"{ranks} ranks, {per_node} per node, occupy {nodes} nodes, not {asked.nodes}: state "
                "resources.nodes or resources.ranks_per_node, or add a constraint such as nodes * ppn == p"
            )
        nodes = asked.nodes
    if machine.nodes is not None and nodes > machine.nodes:
        raise ValueError(
            f"{nodes} nodes are more than the {machine.nodes} of this executor: set executor.name: slurm, or "
            "exclude such points by constraints"
        )
    return per_node, nodes


def _cores_of_rank(threads: int, machine: Machine) -> int:
    """Return the cores that a rank occupies, which it shares with no other one."""
    return threads if machine.own_cores else math.ceil(threads / machine.threads_per_core)


def _fewer(machine: Machine, asked: Asked) -> str:
    """Return what to lower where the ranks of a node do not fit."""
    if asked.ranks_per_node is not None:
        return "exclude such points by constraints, or lower resources.ranks_per_node or the threads"
    if asked.nodes is not None:
        return "exclude such points by constraints, or raise resources.nodes"
    return "lower executor.ranks_per_node or the threads"


def _cores_per_node(need: int, machine: Machine) -> int | None:
    if not machine.sizes:
        return machine.cores_per_node
    for most, cores in machine.sizes:
        if need <= most:
            return cores or machine.cores_per_node
    raise ValueError(
        f"{need} cores are more than the {machine.sizes[-1][0]:.0f} of the last of "
        "executor.by_size: exclude such points by constraints, or raise its up_to"
    )


def of_expression(text: str, names: Collection[str], texts: Collection[str] = ()) -> Callable[[Point], float]:
    """Return the cores of a run at a point, from what ``--processes`` says.

    Parameters
    ----------
    text
        The expression.
    names, texts
        Parameters, and those of them that are categorical.

    Raises
    ------
    ExpressionError
        For a malformed expression; at a point for one that cannot be evaluated there.
    CampaignError
        At a point where it gives less than one core.
    """
    try:
        expression = expressions.parse(text, names, texts)
    except ExpressionError as error:
        raise ExpressionError(f"{_OPTION}: {error}") from None

    def cores(point: Point) -> float:
        try:
            found = expression.number(point.as_dict())
        except ExpressionError as error:
            raise ExpressionError(f"{_OPTION}: {error}") from None
        if found < 1:
            raise CampaignError(
                f"{_OPTION} {text!r} gives {found:g} at {point}: a run occupies at least one core"
            )
        return found

    return cores


def shared_limits(attempts: Iterable[tuple[float, float | None]]) -> list[float]:
    """Return the seconds that the attempts of a shared job get in it, of which the job's time is the sum.

    Each gets what it likely takes, and one of them, whichever it will be, its whole limit. An attempt begins
    only if the rest of the job holds its limit: those after one that took its limit get another job.

    Parameters
    ----------
    attempts
        The limit of each, and the seconds that it likely takes (None: its limit).
    """
    items = [(limit, limit if likely is None else min(limit, likely)) for limit, likely in attempts]
    most = max(range(len(items)), key=lambda i: items[i][0] - items[i][1])
    return [limit if i == most else likely for i, (limit, likely) in enumerate(items)]


def core_hours(core_seconds: float) -> float:
    """Convert core-seconds to core-hours."""
    return core_seconds / 3600.0


def affordable(budget: float, spent: float, reserved: float, more: float) -> bool:
    """Return whether ``more`` core-seconds can be reserved without the budget ever being exceeded."""
    return spent + reserved + more <= budget


def fair_limit(budget: float, reserved: Callable[[float], float], longest: float = 3600.0) -> float:
    """Return the longest time limit (s) at which the budget pays for runs even if all take that long.

    Parameters
    ----------
    budget
        What may be charged.
    reserved
        What runs with a limit may be charged; never falls with the limit, but may jump.
    longest
        No limit is longer than that.

    Returns
    -------
    0 if the budget pays for no limit at all.
    """
    if reserved(longest) <= budget:
        return longest
    low, high = 0.0, longest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if reserved(middle) <= budget else (low, middle)
    return low


def each(cost: Callable[[Point], float]) -> Callable[[Sequence[Point]], list[float]]:
    """Return a cost of one point as the costs of several."""
    return lambda points: [cost(point) for point in points]


def cores_at(cores: Callable[[Point], float]) -> Callable[[Sequence[Point]], list[float]]:
    """Return the cores of runs at several points; NaN where a run cannot be placed, as one at P₊ may be."""

    def at(point: Point) -> float:
        try:
            return float(cores(point))
        except (ValueError, CampaignError):
            return math.nan

    return each(at)


def guess(
    parameters: Mapping[str, tuple[Value, ...]], cores: Callable[[Point], int]
) -> Callable[[Point], float]:
    """Return a monotone guess of a run's cost before anything is known.

    Runtimes are taken to grow with every numeric parameter (Ritter et al., Cost-Effective Empirical
    Performance Modeling, section II): cores times the product of values relative to the smallest one, each on
    a scale that is 1 at the smallest value. Only the order of points means something.
    """
    lowest = {
        name: min(float(v) for v in values if not isinstance(v, str))
        for name, values in parameters.items()
        if not any(isinstance(v, str) for v in values)
    }

    def cost(point: Point) -> float:
        factor = 1.0
        for name, low in lowest.items():
            value = point.number(name)
            factor *= value / low if low > 0 else 1.0 + value - low
        return cores(point) * factor

    return cost

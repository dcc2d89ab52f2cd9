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

    ``slots`` are the cores a local campaign may use (None on a cluster). ``whole_nodes`` is true where
    the site bills, or the job asks for, whole nodes. ``sizes`` are the most cores that a run may ask
    for in each of several places, ascending, with the cores of a node there (None: ``cores_per_node``).
    """

    slots: int | None = None
    cores_per_node: int | None = None
    ranks_per_node: int | None = None
    whole_nodes: bool = False
    oversubscribe: bool = False
    sizes: tuple[tuple[float, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Reservation:
    """The most that one attempt can be charged: ``cores``, time ``limit`` (s), ``reserved`` core-seconds.

    ``likely``: the seconds that it takes at most as far as is known; None where nothing is.
    """

    cores: int
    limit: float
    reserved: float
    likely: float | None = None


def resources(ranks: int, threads: int, machine: Machine) -> Resources:
    """Derive nodes and allocated cores from ranks and threads: the only place where this is done.

    Raises
    ------
    ValueError
        If the machine cannot hold the run; the text says what to change.
    """
    if ranks < 1 or threads < 1:
        raise ValueError(f"{ranks} ranks with {threads} threads: both must be at least 1")
    need = ranks * threads
    if machine.slots is not None:
        if need > machine.slots and not machine.oversubscribe:
            raise ValueError(
                f"{ranks} ranks x {threads} threads need {need} cores, the local executor has "
                f"{machine.slots} slots: set executor.slots or executor.oversubscribe: true"
            )
        return Resources(
            ranks=ranks, threads=threads, nodes=1, ranks_per_node=ranks, cores=min(need, machine.slots)
        )
    cores_per_node = _cores_per_node(need, machine)
    if cores_per_node is None:
        return Resources(ranks=ranks, threads=threads, nodes=1, ranks_per_node=ranks, cores=need)
    per_node = min(ranks, machine.ranks_per_node or cores_per_node // threads)
    if per_node < 1 or per_node * threads > cores_per_node:
        raise ValueError(
            f"{per_node or 1} ranks x {threads} threads per node do not fit a node of "
            f"{cores_per_node} cores: lower executor.ranks_per_node or the threads"
        )
    nodes = math.ceil(ranks / per_node)
    cores = nodes * cores_per_node if machine.whole_nodes else need
    return Resources(ranks=ranks, threads=threads, nodes=nodes, ranks_per_node=per_node, cores=cores)


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


def fair_limit(
    budget: float, cores: Iterable[int], reserved: Callable[[float], float], longest: float = 3600.0
) -> float:
    """Return the longest time limit (s) at which the budget pays for runs even if all take that long.

    Parameters
    ----------
    budget
        Core-seconds.
    cores
        Of each run.
    reserved
        The seconds that an attempt with a limit may be charged; never falls with the limit, but may jump.
    longest
        No limit is longer than that.

    Returns
    -------
    0 if the budget pays for no limit at all.
    """
    total = sum(cores)
    if total * reserved(longest) <= budget:
        return longest
    low, high = 0.0, longest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if total * reserved(middle) <= budget else (low, middle)
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

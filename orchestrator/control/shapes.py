"""What the runs of a campaign occupy, point by point and as kinds of runs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from orchestrator.control.assembly import Assembly
from orchestrator.types import Point, Resources
from orchestrator.units import count

MOST_POINTS = 100_000  # of a search space that are looked at

_FIELDS = ("nodes", "ranks_per_node", "threads", "gpus_per_node", "ranks", "cores")


def at_points(built: Assembly) -> Iterator[tuple[Point, Resources]]:
    """Yield the points of the search space, and P₊ if it is to be measured, each with its resources.

    Of a space with more than a hundred thousand points these are the first ones, and some drawn at random.
    """
    last = built.campaign.validation_point
    for point in itertools.chain(built.space.some(), () if last is None else (last,)):
        yield point, built.resources(point)


def kinds(built: Assembly) -> dict[Resources, int]:
    """Return the kinds of runs with their numbers of points, the one with fewest cores first.

    The numbers are estimates where those of the space are (`orchestrator.space.Description.drawn`).
    """
    points, each = built.space.sampled()
    counted = Counter(map(built.resources, itertools.islice(points, MOST_POINTS)))
    numbers = {
        resources: number if each == 1 else int(float(f"{each * number:.2g}"))
        for resources, number in counted.items()
    }
    if (last := built.campaign.validation_point) is not None:
        validated = built.resources(last)
        numbers[validated] = numbers.get(validated, 0) + 1
    return {resources: numbers[resources] for resources in ordered(numbers)}


def ordered(sizes: Iterable[Resources]) -> list[Resources]:
    """Return kinds of runs, the one with fewest cores first."""
    return sorted(sizes, key=_size)


def _size(resources: Resources) -> tuple[int, ...]:
    return (resources.cores, resources.nodes, resources.ranks_per_node, resources.threads)


def document(resources: Resources) -> dict[str, int]:
    """Return resources, JSON-ready."""
    return {field: getattr(resources, field) for field in _FIELDS}


def described(resources: Mapping[str, int]) -> str:
    """Return a `document` as text: ``2 nodes x 4 ranks x 1 thread``, or with the uneven number of ranks."""
    nodes, per_node, ranks = resources["nodes"], resources["ranks_per_node"], resources["ranks"]
    text = f"{count(nodes, 'node')} x {count(per_node, 'rank')} x {count(resources['threads'], 'thread')}"
    if nodes * per_node != ranks:
        text += f" ({count(ranks, 'rank')} in all)"
    gpus = resources["gpus_per_node"]
    return f"{text}, {count(gpus, 'GPU')} per node" if gpus else text

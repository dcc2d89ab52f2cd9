"""What every strategy shares: which points may be proposed, at what cost, and how often.

The search space is walked lazily: nothing here holds more points than it returns.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from orchestrator.strategies.base import Choice, Nothing, View
from orchestrator.types import Point
from orchestrator.units import count, format_cost

# Points whose cost is predicted and that are rated at once: bounds memory. Chosen by hand; not derived.
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Candidate:
    """``repetitions`` further runs at ``point``; ``seconds`` is their expected cost in core-seconds."""

    point: Point
    repetitions: int
    seconds: float


def open_points(view: View, points: Iterable[Point] | None = None) -> Iterator[Point]:
    """Iterate lazily over the points that may still be measured, of some or, in its order, of the space.

    Left out: the evaluation point, points at which runs were given up, and points that have their
    maximum of repetitions.
    """
    for point in view.space if points is None else points:
        if (
            point != view.evaluation_point
            and point not in view.infeasible
            and view.done.get(point, 0) < view.maximum_repetitions
        ):
            yield point


def chunks(points: Iterable[Point], size: int = _CHUNK) -> Iterator[list[Point]]:
    """Split a stream of points into lists that get a cost and a rating at once."""
    stream = iter(points)
    while chunk := list(islice(stream, size)):
        yield chunk


def missing(view: View, point: Point) -> int:
    """Return how many initial repetitions are missing at a point (never beyond the maximum)."""
    wanted = min(view.initial_repetitions, view.maximum_repetitions)
    return max(wanted - view.done.get(point, 0), 0)


def kind_of_run(view: View, point: Point) -> str:
    """Return which run the next one at a point is, for its reason: ``new point`` or ``repetition 3``."""
    done = view.done.get(point, 0)
    return f"repetition {done + 1}" if done else "new point"


def run_cost(view: View, point: Point, repetitions: int = 1) -> float:
    """Return the expected core-seconds of runs at a point; infinite where the expectation is unusable.

    The first run at a point pays for the effort that is counted there, too.
    """
    return _with_cost(view, [point], [repetitions])[0].seconds


def _usable(seconds: float) -> float:
    return seconds if math.isfinite(seconds) and seconds >= 0 else math.inf


def initial_runs(view: View, point: Point) -> Candidate:
    """Return a point with its missing initial repetitions: the one procedure for new points."""
    repetitions = missing(view, point)
    return Candidate(point, repetitions, run_cost(view, point, repetitions))


def single_run(view: View, point: Point) -> Candidate:
    """Return a point with one repetition more."""
    return Candidate(point, 1, run_cost(view, point))


def single_runs(view: View, points: Sequence[Point]) -> list[Candidate]:
    """Return those of some points at which one repetition more is affordable."""
    return [run for run in _with_cost(view, points, [1] * len(points)) if affordable(view, run.seconds)]


def all_initial_runs(view: View) -> Iterator[Candidate]:
    """Iterate lazily over the points with missing initial repetitions, with these."""
    for chunk in chunks(point for point in open_points(view) if missing(view, point)):
        yield from _with_cost(view, chunk, [missing(view, point) for point in chunk])


def _with_cost(view: View, points: Sequence[Point], repetitions: Sequence[int]) -> list[Candidate]:
    """Return the cost of many points at once: a model predicts a thousand points as fast as a few."""
    first = [0.0] * len(points) if view.first is None else view.first(points)
    return [
        Candidate(
            point, number, _usable(number * float(seconds) + (0.0 if view.done.get(point) else float(more)))
        )
        for point, number, seconds, more in zip(points, repetitions, view.costs(points), first, strict=True)
    ]


def affordable(view: View, seconds: float) -> bool:
    """Return whether a cost fits the budget that is left; while costs are only relative, every one fits."""
    return math.isfinite(seconds) if view.cost_is_relative else seconds <= view.budget_left


def cheapest(view: View, candidates: Iterable[Candidate], number: int) -> list[Candidate]:
    """Return the ``number`` cheapest affordable candidates, cheapest first; ties in the given order.

    One pass, memory for ``number`` candidates.
    """
    fitting = (candidate for candidate in candidates if affordable(view, candidate.seconds))
    return heapq.nsmallest(number, fitting, key=lambda candidate: candidate.seconds)


def sample(view: View, points: Iterable[Point], number: int, rng: np.random.Generator) -> list[Candidate]:
    """Draw ``number`` different points uniformly among those of which one run is affordable.

    Reservoir sampling by random keys: one pass, memory for ``number`` points, and only the points that
    would enter the reservoir get a cost (about ``number * log(n)`` of ``n``).
    """
    reservoir: list[tuple[float, int, Candidate]] = []  # a heap whose root has the largest key
    for index, point in enumerate(points):
        key = rng.random()
        if len(reservoir) == number and -key <= reservoir[0][0]:
            continue
        candidate = single_run(view, point)
        if not affordable(view, candidate.seconds):
            continue
        push = heapq.heappush if len(reservoir) < number else heapq.heapreplace
        push(reservoir, (-key, index, candidate))
    return [candidate for _, _, candidate in sorted(reservoir, key=lambda entry: -entry[0])]


def nothing_left(view: View) -> Nothing:
    """Return why there is no further run, where a strategy proposes none and does not say why."""
    points = list(islice(open_points(view), _CHUNK))
    if not points:
        fails = " or fails" if view.infeasible else ""
        reason = (
            f"every point has {count(view.maximum_repetitions, 'run')}{fails}; further values of parameters "
            "or measure.repetitions.maximum allow more"
        )
        return Nothing("exhausted", reason, False)
    least = min(_with_cost(view, points, [1] * len(points)), key=lambda run: run.seconds)
    if affordable(view, least.seconds):
        return Nothing("exhausted", "the strategy has nothing left to measure")
    left = format_cost(view.budget_left, view.unit, 3)
    return Nothing(
        "exhausted", f"no run fits the {left} that are left; at {least.point}: {cost_text(view, least)}"
    )


def within_budget(
    view: View, candidates: Sequence[Candidate], reason: Callable[[Candidate], str]
) -> list[Choice]:
    """Turn candidates into choices as long as their sum fits the budget; what does not fit is skipped.

    A candidate that does not fit is skipped, not cut: later, cheaper ones still get their turn.
    """
    choices = []
    spent = 0.0
    for candidate in candidates:
        if not affordable(view, spent + candidate.seconds):
            continue
        spent += candidate.seconds
        choices.append(Choice(candidate.point, candidate.repetitions, reason(candidate)))
    return choices


def cost_text(view: View, candidate: Candidate) -> str:
    """Say what a candidate is expected to cost, e.g. ``0.012 core-hours expected for 2 repetitions``."""
    runs = count(candidate.repetitions, "repetition")
    if view.cost_is_relative:
        return f"relative cost {candidate.seconds:.3g} for {runs}, none measured yet"
    return f"{format_cost(candidate.seconds, view.unit, 3)} expected for {runs}"

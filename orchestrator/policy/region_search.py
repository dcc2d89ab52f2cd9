"""The simplest region that separates the failures of a program from what was measured. Pure.

A failed point says that the program may fail beyond it: at larger values, at smaller ones, at the same ones,
or wherever one parameter is no multiple of another one. Combinations of such directions are tried, those of
few parameters first. One is believed if every failure agrees with it, no measured point contradicts it, and
chance would seldom arrange as many failures so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

from orchestrator.journal.setbacks import most_frequent
from orchestrator.policy.regions import Comparison, Condition, Corner, Indivisible, Region, Rule, Sign
from orchestrator.types import Point, Value

# Probability up to which an arrangement of failures is no chance, and relabelings from which it is estimated.
# Chosen by hand; not derived.
_CHANCE, _RELABELINGS = 0.05, 199
# Most measured points that are relabeled, and most combinations that are tried: these bound the time, to some
# tenths of a second. Chosen by hand; not derived.
_MOST_MEASURED, _MOST_COMBINATIONS = 200, 500
_MOST_PARAMETERS = 4  # of a combination
_SIZE_OF_REMAINDERS = 2  # parameters of one
# What failures of one cause have in common: their class, and with which exit code the program ended.
_KIND = re.compile(r"^([^:]*(?:: exit code \d+)?).*", re.DOTALL)

_COMPARED: Mapping[Sign, Callable[..., NDArray[np.bool_]]] = {
    "=": np.equal,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}


@dataclass(frozen=True, slots=True)
class _Direction:
    """Where points are beyond a failed one in one parameter: ``n`` at least as large as there."""

    parameter: str
    sign: Sign

    @property
    def parameters(self) -> tuple[str, ...]:
        return (self.parameter,)

    def beyond(self, points: Sequence[Point], others: Sequence[Point]) -> NDArray[np.bool_]:
        """Return which points are beyond which others, shape (points, others)."""
        kind = object if self.sign == "=" else float
        here = np.array([point[self.parameter] for point in points], dtype=kind)[:, None]
        there = np.array([point[self.parameter] for point in others], dtype=kind)
        return _COMPARED[self.sign](here, there)

    def condition(self, point: Point) -> Condition:
        """Return what holds of points beyond ``point``."""
        return Comparison(self.parameter, self.sign, point[self.parameter])


@dataclass(frozen=True, slots=True)
class _NoMultiple:
    """Points whose parameters leave a remainder, as those of a failed point do, whatever it is."""

    remainder: Indivisible

    @property
    def parameters(self) -> tuple[str, ...]:
        return (self.remainder.number, self.remainder.divisor)

    def beyond(self, points: Sequence[Point], others: Sequence[Point]) -> NDArray[np.bool_]:
        """Return which points leave a remainder together with which others, shape (points, others)."""
        here, there = (
            np.array([self.remainder.holds(point.as_dict()) for point in some], dtype=bool)
            for some in (points, others)
        )
        result: NDArray[np.bool_] = here[:, None] & there
        return result

    def condition(self, _point: Point) -> Condition:
        """Return what holds of these points; it is the same for every failed one."""
        return self.remainder


_Combination = tuple[_Direction | _NoMultiple, ...]
"""All must hold: one of at most `_MOST_PARAMETERS` parameters."""


@lru_cache(maxsize=4)  # decisions are taken much more often than points are given up or measured
def search(failed: tuple[tuple[Point, str], ...], measured: frozenset[Point]) -> tuple[Region, ...]:
    """Return the simplest region of all failures, or else those of each cause that has one.

    Parameters
    ----------
    failed
        The points that were given up, in a fixed order, with the reason of each.
    measured
        The points at which the program ran.
    """
    succeeded = sorted(measured, key=lambda point: point.key)
    causes: dict[str, dict[Point, str]] = {}
    for point, reason in failed:
        causes.setdefault(_KIND.sub(r"\1", reason), {})[point] = reason
    of_one_parameter = _region(dict(failed), succeeded, 1)
    if of_one_parameter is not None or len(causes) == 1:
        return tuple(filter(None, (of_one_parameter or _simplest(dict(failed), succeeded),)))
    each = tuple(filter(None, (_simplest(some, succeeded) for some in causes.values())))
    return each or tuple(filter(None, (_simplest(dict(failed), succeeded),)))


def _simplest(failed: Mapping[Point, str], measured: Sequence[Point]) -> Region | None:
    """Return the region with conditions on the fewest parameters, or of values at which every run fails.

    A value may fail together with a condition on one other parameter, as where a program hangs with one size
    on several ranks.
    """
    by_size = (_region(failed, measured, size) for size in range(1, _MOST_PARAMETERS + 1))
    at_values = (_region(failed, measured, size, values=True) for size in (1, 2))
    return next(filter(None, chain(by_size, at_values)), None)


def _region(
    failed: Mapping[Point, str], measured: Sequence[Point], size: int, values: bool = False
) -> Region | None:
    """Return the region of conditions on ``size`` parameters that separate failures from measured points.

    In other parameters it reaches as far as failures do: where all of them had one rank, nothing says that
    several ranks fail as well.
    """
    points, known = [*failed, *measured], list(failed)
    tried = _combinations(points, size, values)
    if len(failed) < 2 or not measured or len(tried) > _MOST_COMBINATIONS:
        return None
    some = measured[:: -(-len(measured) // _MOST_MEASURED)]  # of all over the space: they are sorted
    possible = [each for each in tried if _separates(each, known, some)]  # most combinations end here
    apart = [each for each in possible if not _beyond(each, measured, known).any()]
    if not apart or _chance([*known, *some], tried, len(failed)) > _CHANCE:
        return None
    rules = sorted((_rule(each, known) for each in apart), key=len)
    separating = {name for each in apart for direction in each for name in direction.parameters}
    others = [name for name in _shared(points) if name not in separating]
    cause, _ = most_frequent(list(failed.values()))
    return Region(
        rules=tuple(rules),
        bounds=tuple(bound for name in others for bound in _bounds(name, known, points)),
        failed=len(failed),
        measured=len(measured),
        cause=cause,
    )


def _separates(combination: _Combination, failed: Sequence[Point], measured: Sequence[Point]) -> bool:
    """Return whether it holds of all failures (of remainders, it need not), and of no measured point."""
    itself = np.diagonal(_beyond(combination, failed, failed))
    return bool(itself.all()) and not _beyond(combination, measured, failed).any()


def _shared(points: Sequence[Point]) -> list[str]:
    """Return the parameters that all points have; those of a campaign may have become more."""
    return [name for name in points[0].as_dict() if all(name in point.as_dict() for point in points)]


def _bounds(name: str, failed: Sequence[Point], points: Sequence[Point]) -> Iterator[Rule]:
    """Yield how far a parameter of failures reaches, where other points have values beyond."""
    here, everywhere = ({point[name] for point in some} for some in (failed, points))
    if any(isinstance(value, str) for value in everywhere):
        if here != everywhere:
            yield tuple((Comparison(name, "=", value),) for value in sorted(here, key=str))
        return
    least, most = min(here, key=float), max(here, key=float)
    if least != min(everywhere, key=float):
        yield ((Comparison(name, ">=", least),),)
    if most != max(everywhere, key=float):
        yield ((Comparison(name, "<=", most),),)


def _combinations(points: Sequence[Point], size: int, values: bool) -> list[_Combination]:
    """Return how points may be beyond others, in ``size`` of the parameters that vary among them.

    ``values``: one of them is a number that is among those that failed.
    """
    ordered: list[str] = []
    categorical: list[str] = []
    for name in _shared(points):
        different = {point[name] for point in points}
        if len(different) > 1:
            (categorical if any(isinstance(value, str) for value in different) else ordered).append(name)
    ways = {name: [_Direction(name, ">="), _Direction(name, "<=")] for name in ordered}
    ways |= {name: [_Direction(name, "=")] for name in categorical}
    if not values:
        chosen = combinations(ways, size)
        directions = [each for names in chosen for each in product(*map(ways.__getitem__, names))]
        remainders = _remainders(points, ordered) if size == _SIZE_OF_REMAINDERS else []
        together = len(directions) + len(remainders)
        return [*directions, *remainders] if together <= _MOST_COMBINATIONS else [*directions]
    return [
        (_Direction(name, "="), *rest)
        for name in ordered
        for names in combinations([other for other in ways if other != name], size - 1)
        for rest in product(*map(ways.__getitem__, names))
    ]


def _remainders(points: Sequence[Point], names: Sequence[str]) -> list[_Combination]:
    """Return which parameters leave a remainder at some of the points when divided by another one."""
    whole = [
        name
        for name in names
        if all(isinstance(value := point[name], int) and value >= 1 for point in points)
    ]
    values = {name: np.array([point[name] for point in points]) for name in whole}
    left = {pair: values[pair[0]] % values[pair[1]] != 0 for pair in permutations(whole, 2)}
    return [
        (_NoMultiple(Indivisible(*pair)),) for pair, some in left.items() if some.any() and not some.all()
    ]


def _beyond(combination: _Combination, points: Sequence[Point], others: Sequence[Point]) -> NDArray[np.bool_]:
    """Return which points are beyond which others in all that is combined, shape (points, others)."""
    result = np.ones((len(points), len(others)), dtype=bool)
    for direction in combination:
        result &= direction.beyond(points, others)
    return result


def _rule(combination: _Combination, failed: Sequence[Point]) -> Rule:
    """Return the conditions of those failed points that are beyond no other one."""
    beyond = _beyond(combination, failed, failed)
    further = np.any(beyond & ~beyond.T, axis=1).tolist()
    nearest = (point for point, is_further in zip(failed, further, strict=True) if not is_further)
    corners = {tuple(direction.condition(point) for direction in combination) for point in nearest}
    return tuple(sorted(corners, key=_in_order))


def _in_order(corner: Corner) -> list[tuple[bool, Value]]:
    """Sort numbers before categories; of a remainder there is but one corner."""
    limits = [condition.limit for condition in corner if isinstance(condition, Comparison)]
    return [(isinstance(limit, str), limit) for limit in limits]


def _chance(points: Sequence[Point], tried: Sequence[_Combination], failed: int) -> float:
    """Return how often so many failures at random points would be apart from all measured ones, too.

    A permutation test: of the points the first ``failed`` fail; equal numbers draw the same relabelings.
    """
    rng = np.random.default_rng([failed, len(points)])
    fails = np.argsort(rng.random((_RELABELINGS, len(points))), axis=1) < failed
    weights, apart = fails.astype(np.float32), np.zeros(_RELABELINGS, dtype=bool)
    for combination in tried:
        beyond = _beyond(combination, points, points).astype(np.float32)
        against = (1 - weights) @ beyond + (1 - np.diagonal(beyond))
        apart |= np.einsum("pf,pf->p", against, weights) == 0
    return float((1 + apart.sum()) / (1 + _RELABELINGS))

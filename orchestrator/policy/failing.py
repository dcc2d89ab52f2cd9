"""Where a program does not run, as far as failures tell: beyond which values every run was given up. Pure.

A program that needs too much memory at large sizes, or does not converge there, fails at every such point. A
campaign that learns it from the first of them spends its budget elsewhere. So points are set aside that are
beyond failed ones in the fewest parameters in which no measured point is, unless chance may arrange failures
so. A program may also fail wherever one parameter is no multiple of another one, as a size and the ranks that
it is divided among.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

from orchestrator.journal.setbacks import most_frequent
from orchestrator.journal.state import RunStatus, State
from orchestrator.strategies.base import Choice, Nothing, Space
from orchestrator.strategies.drawing import Listed
from orchestrator.types import Parameter, Point, Value, format_value
from orchestrator.units import count, listed

# Probability up to which an arrangement of failures is no chance, and relabelings from which it is estimated.
# Chosen by hand; not derived.
_CHANCE, _RELABELINGS = 0.05, 199
# Most measured points that are relabeled, and most rules that are tried: these bound the time, to some tenths
# of a second. Chosen by hand; not derived.
_MOST_MEASURED, _MOST_RULES = 200, 500
_MOST_PARAMETERS = 4  # of a rule
_SIZE_OF_REMAINDERS = 2  # parameters of one
_MOST_NAMED = 3
LEFT_OUT = "left out: "
# What failures of one cause have in common: their class, and with which exit code the program ended.
_KIND = re.compile(r"^([^:]*(?:: exit code \d+)?).*", re.DOTALL)

_REMAINDER = " % "  # between two parameters: no multiple of ranks, say, can be divided among them

Relation = tuple[str, str]
"""A parameter, and how its value compares with that of a failed point: ``>=``, ``<=`` or ``=``.

Or a remainder that both points have, whatever it is: ``n % p`` and ``!=``.
"""
Condition = tuple[str, str, Value]
"""A relation to a value: ``n >= 400``, or ``n % p != 0``."""
Corner = tuple[Condition, ...]
"""Relations to the values of one failed point, all of which must hold: ``n >= 400`` and ``p <= 2``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Points at which a program is expected to fail.

    Attributes
    ----------
    rules, bounds
        All must hold of a point; each is a list of corners, of which one must hold. The rules separate
        failures from measured points; the bounds say how far failures were seen in other parameters.
    failed, measured
        How many points were given up, all of them inside, and how many were measured, all of them outside.
    cause
        The most frequent reason of the failures.
    """

    rules: tuple[tuple[Corner, ...], ...]
    bounds: tuple[tuple[Corner, ...], ...]
    failed: int
    measured: int
    cause: str

    def __contains__(self, point: object) -> bool:
        return isinstance(point, Point) and self.explains(point) and _follows(point, self.bounds)

    def __str__(self) -> str:
        tried = f"all {count(self.failed, 'point')} tried there were given up"
        return f"{self.where} ({tried}, none of {self.measured} measured ones is there; {self.cause})"

    def explains(self, point: Point) -> bool:
        """Whether a failure at a point is no surprise: by the rules, however far the failures reach."""
        return _follows(point, self.rules)

    @property
    def where(self) -> str:
        """The region in words: ``n >= 300 and p <= 2``."""
        rules = (*self.rules, *self.bounds)
        if len(rules) == 1:
            return _in_words(rules[0])
        alone = dict.fromkeys(condition for rule in rules if len(rule) == 1 for condition in rule[0])
        texts = [f"({_in_words(rule)})" for rule in rules if len(rule) > 1]
        return " and ".join([*texts, *([_all_of(alone)] if alone else [])])


def _follows(point: Point, rules: Iterable[Sequence[Corner]]) -> bool:
    values = point.as_dict()
    for rule in rules:  # plain loops: a search space may have millions of points
        for corner in rule:
            for name, how, limit in corner:
                if not _holds(_coordinate(values, name), how, limit):
                    break
            else:
                break  # one corner is enough
        else:
            return False
    return True


def _in_words(rule: Sequence[Corner]) -> str:
    texts = [_all_of(corner) for corner in rule]
    if len(texts) == 1:
        return texts[0]
    return listed([f"({text})" if " and " in text else text for text in texts], _MOST_NAMED, " or ")


def _all_of(conditions: Iterable[Condition]) -> str:
    return " and ".join(f"{name} {how} {format_value(value)}" for name, how, value in conditions)


def regions(state: State) -> tuple[Region, ...]:
    """Return where a program is expected to fail, by what was given up and what was measured so far.

    Points that were measured before count as measured. What a `resume` tries again is not known to fail.
    """
    if len(state.infeasible) < 2:
        return ()
    reasons: dict[Point, str] = {}
    measured: set[Point] = set()
    for run, item in state.runs.items():
        if run.kind == "time" and item.status in (RunStatus.MEASURED, RunStatus.DISCARDED):
            measured.add(run.point)
        elif run.kind == "time" and item.status is RunStatus.GIVEN_UP and run.point in state.infeasible:
            reasons[run.point] = re.sub(r" \(\d+ attempts?\)$", "", item.reason)
    known = (item for item in reasons.items() if item[0] not in measured)
    failed = tuple(sorted(known, key=lambda item: item[0].key))
    return _regions(failed, frozenset(measured))


def warnings(state: State, target: Point | None = None) -> list[str]:
    """Return which points are left out and why, and whether ``target``, P₊, would be one of them."""
    known = regions(state)
    found = [f"{LEFT_OUT}{region}" for region in known]
    if target is not None and any(target in region for region in known):
        found.append(
            "the evaluation point is one of these: the program probably fails there, whatever its models say"
        )
    return found


def why_not(point: Point, known: Collection[Region]) -> str:
    """Return why a run at a point would probably fail; empty where nothing says so."""
    return next((f"{LEFT_OUT}{region}" for region in known if point in region), "")


def to_be_tried(choices: Sequence[Choice], state: State) -> Sequence[Choice]:
    """Return the choices that a round may try.

    None is at a point that was given up or is expected to fail: a strategy that insists on such points would
    choose them for ever. At most one run is where a failure would be no surprise: it shows whether.
    """
    if not choices:
        return choices
    known = regions(state)
    possible = [c for c in choices if c.point not in state.infeasible and not why_not(c.point, known)]
    if not possible:
        return Nothing("exhausted", "the strategy chooses only points at which the program fails")
    probes = [choice for choice in possible if any(region.explains(choice.point) for region in known)]
    tried = [choice for choice in possible if choice not in probes[1:]]
    return [replace(choice, repetitions=1) if choice in probes else choice for choice in tried]


def without(space: Space, known: Sequence[Region]) -> Space:
    """Return a search space without the points at which a program is expected to fail."""
    if not known:
        return space
    return _ListedRest(space, known) if isinstance(space, Listed) else _Rest(space, known)


class _Rest:
    """What is left of a search space; see `Space`."""

    def __init__(self, space: Space, known: Sequence[Region]):
        self._space = space
        self._known = known

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self._space.parameters

    def __iter__(self) -> Iterator[Point]:
        return filter(self._is_left, self._space)

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        return filter(self._is_left, self._space.within(fixed))

    def __contains__(self, point: object) -> bool:
        return point in self._space and self._is_left(point)

    def _is_left(self, point: object) -> bool:
        return not any(point in region for region in self._known)


class _ListedRest(_Rest):
    """What is left of a list of points; see `Listed`."""

    @cached_property
    def points(self) -> tuple[Point, ...]:
        return tuple(self)


@lru_cache(maxsize=4)  # decisions are taken much more often than points are given up or measured
def _regions(failed: tuple[tuple[Point, str], ...], measured: frozenset[Point]) -> tuple[Region, ...]:
    """Return the simplest region of all failures, or else those of each cause that has one."""
    succeeded = sorted(measured, key=lambda point: point.key)
    causes: dict[str, dict[Point, str]] = {}
    for point, reason in failed:
        causes.setdefault(_KIND.sub(r"\1", reason), {})[point] = reason
    found = _region(dict(failed), succeeded, 1)
    if found is not None or len(causes) == 1:
        return tuple(filter(None, (found or _simplest(dict(failed), succeeded),)))
    each = tuple(filter(None, (_simplest(some, succeeded) for some in causes.values())))
    return each or tuple(filter(None, (_simplest(dict(failed), succeeded),)))


def _simplest(failed: Mapping[Point, str], measured: Sequence[Point]) -> Region | None:
    """Return the region with conditions on the fewest parameters, or of values at which every run fails.

    A value may fail together with a condition on one other parameter, as where a program hangs with one size
    on several ranks.
    """
    found = (_region(failed, measured, size) for size in range(1, _MOST_PARAMETERS + 1))
    at_values = (_region(failed, measured, size, values=True) for size in (1, 2))
    return next(filter(None, chain(found, at_values)), None)


def _region(
    failed: Mapping[Point, str], measured: Sequence[Point], size: int, values: bool = False
) -> Region | None:
    """Return the region of conditions on ``size`` parameters that separate failures from measured points.

    In other parameters it reaches as far as failures do: where all of them had one rank, nothing says that
    several ranks fail as well.
    """
    points, known = [*failed, *measured], list(failed)
    tried = _rules(points, size, values)
    if len(failed) < 2 or not measured or len(tried) > _MOST_RULES:
        return None
    some = measured[:: -(-len(measured) // _MOST_MEASURED)]  # of all over the space: they are sorted
    possible = [rule for rule in tried if _separates(known, some, rule)]  # most rules end here
    apart = [rule for rule in possible if not _beyond(measured, known, rule).any()]
    if not apart or _chance([*known, *some], tried, len(failed)) > _CHANCE:
        return None
    rules = sorted((_corners(known, rule) for rule in apart), key=len)
    separating = {part for rule in apart for name, _ in rule for part in name.split(_REMAINDER)}
    others = [name for name in _shared(points) if name not in separating]
    cause, _ = most_frequent(list(failed.values()))
    return Region(
        rules=tuple(rules),
        bounds=tuple(bound for name in others for bound in _bounds(name, known, points)),
        failed=len(failed),
        measured=len(measured),
        cause=cause,
    )


def _separates(failed: Sequence[Point], measured: Sequence[Point], rule: Sequence[Relation]) -> bool:
    """Return whether a rule holds of all failures (of remainders, it need not), and of no measured point."""
    itself = np.diagonal(_beyond(failed, failed, rule))
    return bool(itself.all()) and not _beyond(measured, failed, rule).any()


def _shared(points: Sequence[Point]) -> list[str]:
    """Return the parameters that all points have; those of a campaign may have become more."""
    return [name for name in points[0].as_dict() if all(name in point.as_dict() for point in points)]


def _bounds(name: str, failed: Sequence[Point], points: Sequence[Point]) -> Iterator[tuple[Corner, ...]]:
    """Yield how far a parameter of failures reaches, where other points have values beyond."""
    here, everywhere = ({point[name] for point in some} for some in (failed, points))
    if any(isinstance(value, str) for value in everywhere):
        if here != everywhere:
            yield tuple(((name, "=", value),) for value in sorted(here, key=str))
        return
    for how, end in ((">=", min), ("<=", max)):
        furthest = end(here, key=float)
        if furthest != end(everywhere, key=float):
            yield (((name, how, furthest),),)


def _rules(points: Sequence[Point], size: int, values: bool) -> list[tuple[Relation, ...]]:
    """Return how points may be beyond others, in ``size`` of the parameters that vary among them.

    ``values``: one of them is a number that is among those that failed.
    """
    ordered: list[str] = []
    categorical: list[str] = []
    for name in _shared(points):
        found = {point[name] for point in points}
        if len(found) > 1:
            (categorical if any(isinstance(value, str) for value in found) else ordered).append(name)
    ways = {name: [(name, ">="), (name, "<=")] for name in ordered}
    ways |= {name: [(name, "=")] for name in categorical}
    if not values:
        chosen = combinations(ways, size)
        rules = [rule for names in chosen for rule in product(*map(ways.__getitem__, names))]
        remainders = _remainders(points, ordered) if size == _SIZE_OF_REMAINDERS else []
        return [*rules, *remainders] if len(rules) + len(remainders) <= _MOST_RULES else rules
    return [
        ((name, "="), *rule)
        for name in ordered
        for names in combinations([other for other in ways if other != name], size - 1)
        for rule in product(*map(ways.__getitem__, names))
    ]


def _remainders(points: Sequence[Point], names: Sequence[str]) -> list[tuple[Relation, ...]]:
    """Return which parameters leave a remainder at some of the points when divided by another one."""
    whole = [
        name
        for name in names
        if all(isinstance(value := point[name], int) and value >= 1 for point in points)
    ]
    values = {name: np.array([point[name] for point in points]) for name in whole}
    left = {pair: values[pair[0]] % values[pair[1]] != 0 for pair in permutations(whole, 2)}
    return [((_REMAINDER.join(pair), "!="),) for pair, some in left.items() if some.any() and not some.all()]


def _at(point: Point, name: str) -> Value | None:
    return _coordinate(point.as_dict(), name) if _REMAINDER in name else point[name]


def _coordinate(values: Mapping[str, Value], name: str) -> Value | None:
    """Return the value of a parameter, or the remainder of two; None of a point that lacks one."""
    if name in values or _REMAINDER not in name:
        return values.get(name)
    number, divisor = map(values.get, name.split(_REMAINDER))
    return number % divisor if isinstance(number, int) and isinstance(divisor, int) and divisor else None


def _beyond(points: Sequence[Point], others: Sequence[Point], rule: Sequence[Relation]) -> NDArray[np.bool_]:
    """Return whether points are beyond others, or equal to them; shape (points, others)."""
    result = np.ones((len(points), len(others)), dtype=bool)
    for name, how in rule:
        kind = object if how == "=" else float
        here = np.array([_at(point, name) for point in points], dtype=kind)[:, None]
        there = np.array([_at(point, name) for point in others], dtype=kind)
        if how == "!=":
            result &= (here != 0) & (there != 0)
        else:
            result &= here == there if how == "=" else here >= there if how == ">=" else here <= there
    return result


def _corners(failed: Sequence[Point], rule: Sequence[Relation]) -> tuple[Corner, ...]:
    """Return the relations to those failed points that are beyond no other one."""
    beyond = _beyond(failed, failed, rule)
    further = np.any(beyond & ~beyond.T, axis=1).tolist()
    nearest = (point for point, is_further in zip(failed, further, strict=True) if not is_further)
    corners = {
        tuple((name, how, 0 if how == "!=" else point[name]) for name, how in rule) for point in nearest
    }
    return tuple(sorted(corners, key=lambda corner: [(isinstance(v, str), v) for _, _, v in corner]))


def _holds(here: Value | None, how: str, value: Value) -> bool:
    if how == "!=":
        return here is not None and here != value
    if how == "=" or here is None or isinstance(here, str) or isinstance(value, str):
        return here == value
    return here >= value if how == ">=" else here <= value


def _chance(points: Sequence[Point], rules: Sequence[tuple[Relation, ...]], failed: int) -> float:
    """Return how often so many failures at random points would be apart from all measured ones, too.

    A permutation test: of the points the first ``failed`` fail; equal numbers draw the same relabelings.
    """
    rng = np.random.default_rng([failed, len(points)])
    fails = np.argsort(rng.random((_RELABELINGS, len(points))), axis=1) < failed
    weights, apart = fails.astype(np.float32), np.zeros(_RELABELINGS, dtype=bool)
    for rule in rules:
        beyond = _beyond(points, points, rule).astype(np.float32)
        against = (1 - weights) @ beyond + (1 - np.diagonal(beyond))
        apart |= np.einsum("pf,pf->p", against, weights) == 0
    return float((1 + apart.sum()) / (1 + _RELABELINGS))

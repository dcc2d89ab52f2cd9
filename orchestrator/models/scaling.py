"""Speedup, efficiency and cost over numbers of processes, from the predictions of any model.

All are relative to a reference, the run with the fewest processes N0. With T for the time, strong scaling has
``S = T(N0) / T(N)`` and weak scaling, where the problem grows with N, ``S = T(N0) N / (T(N) N0)``; efficiency
is ``S N0 / N``. With N0 = 1 these are the usual ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats, Model, is_of, one_of, unit_of
from orchestrator.models.belief import has_belief
from orchestrator.models.intervals import LEVEL, Predictive, lognormal, predictive
from orchestrator.models.processes import Processes
from orchestrator.models.zero import ZeroModel
from orchestrator.types import Measurement, Measurements, Point, assigned, format_value

# Times that fall more slowly than this power of N are taken as those of weak scaling. Chosen by hand.
_FALLING = -0.25
# A limit is sought up to so many times the measured processes, in steps of this factor.
_FARTHEST, _STEP = 1024, 1.02
_MOST_DOUBLINGS = 50  # of a curve: from there on, every second, third, ... doubling is a row
_HOUR = 3600.0


def _whole(value: float) -> int | float:
    """Return a whole number as such, unless it is too large to be exact."""
    return int(value) if value.is_integer() and value < 2**53 else value


@dataclass(frozen=True, slots=True)
class Band:
    """Values with the ends of their 90 % intervals, shape (n,) each."""

    value: Floats
    low: Floats
    high: Floats

    def scaled(self, factor: Floats) -> Band:
        """Return all of it times a positive factor."""
        with np.errstate(over="ignore"):  # infinite then
            return Band(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """How runs on different numbers of processes are compared."""

    processes: Processes  # the parameters that count them
    along: str  # the one of these that varies along a curve
    weak: bool  # whether the problem grows with N: sizes are then per process
    # The smallest measured value of each of ``processes.names``: the reference.
    fewest: tuple[tuple[str, float], ...]
    most: float  # the largest measured value of ``along``
    reason: str = ""  # why scaling was taken as weak or strong; empty where it was said

    @classmethod
    def of(cls, known: Measurements, processes: Processes, scaling: str = "auto") -> Study:
        """Find the reference and the direction among measurements.

        Parameters
        ----------
        known
            What was measured.
        processes
            The parameters that count processes.
        scaling
            ``strong``, ``weak``, or ``auto``: weak if the measured times hardly fall with N.

        Raises
        ------
        ModelError
            When all runs have one number of processes, and for an unknown scaling.
        """
        one_of("scaling", scaling, ("auto", "strong", "weak"))
        values = {name: sorted(_numbers(known, name)) for name in processes.names}
        varied = [name for name in processes.names if len(values[name]) > 1]
        if not varied:
            raise ModelError(
                f"every run has the same number of processes ({processes.text}): speedup and efficiency need "
                "runs on two or more"
            )
        for name in processes.names:
            if values[name][0] <= 0:
                raise ModelError(
                    f"{name} counts processes and has the value {format_value(values[name][0])}: speedup "
                    "needs numbers above 0; leave these runs out, or name other parameters (processes)"
                )
        weak, reason = scaling == "weak", ""
        if scaling == "auto":
            weak = _falls(known, processes) > _FALLING
            reason = "times hardly fall with processes" if weak else "times fall with processes"
        along = varied[0]
        return cls(
            processes=processes,
            along=along,
            weak=weak,
            fewest=tuple((name, values[name][0]) for name in processes.names),
            most=values[along][-1],
            reason=reason,
        )

    def number(self, point: Point) -> float:
        """Return N at a point."""
        return float(np.prod([point.number(name) for name in self.processes.names]))

    def reference(self, point: Point) -> Point:
        """Return the reference of a point: the same problem on the fewest processes."""
        return Point.of({**point.as_dict(), **dict(self.fewest)})

    def path(self, point: Point) -> tuple[Point, ...]:
        """Return points up to a point, by doubled processes; far out, by larger steps."""
        first, last = dict(self.fewest)[self.along], point.number(self.along)
        doublings = max(0, int(np.ceil(np.log2(max(last / first, 1)) - 1e-9)))
        doubled = first * 2.0 ** np.arange(0, doublings, 1 + doublings // _MOST_DOUBLINGS)
        values = [*doubled[doubled < last], last]
        return tuple(self._at(point, value) for value in values)

    def _at(self, point: Point, value: float) -> Point:
        return Point.of({**point.as_dict(), self.along: _whole(float(value))})

    def fine(self, point: Point) -> tuple[Point, ...]:
        """Return points in small steps, far beyond what was measured, for limits."""
        first = dict(self.fewest)[self.along]
        most = _FARTHEST * max(self.most, point.number(self.along))
        steps = int(np.log(most / first) / np.log(_STEP)) + 1
        values = np.unique(np.append(np.round(first * _STEP ** np.arange(steps + 1)), (first, most)))
        between = values[(values >= first) & (values <= most)]
        return tuple(self._at(point, float(value)) for value in between)

    @property
    def text(self) -> str:
        """What is compared, for a title."""
        kind = "weak scaling: the problem grows with" if self.weak else "strong scaling: one problem on"
        return f"{kind} N = {self.processes.text}, relative to {assigned(self.fewest)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What a model predicts along numbers of processes."""

    points: tuple[Point, ...]  # where, by ascending N
    processes: Floats  # N there, shape (n,)
    # seconds, speedup, efficiency: with 90 % intervals.
    seconds: Band
    speedup: Band
    efficiency: Band
    core_hours: Band  # what one run costs, with a core per process

    def part(self, begin: int, end: int) -> Curve:
        """Return the points from one place to before another one."""
        bands = {
            name: Band(*(ends[begin:end] for ends in (band.value, band.low, band.high)))
            for name in ("seconds", "speedup", "efficiency", "core_hours")
            for band in [getattr(self, name)]
        }
        return Curve(points=self.points[begin:end], processes=self.processes[begin:end], **bands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The processes beyond which efficiency is below a target."""

    target: float  # of efficiency, as a share
    processes: float | None  # N; None where it is not below up to ``searched``
    already: bool  # whether it is below on the fewest processes of the line, which ``processes`` then are
    # low, high: ends of the 90 % interval; None where that end was not found.
    low: float | None
    high: float | None
    searched: float  # N up to which it was sought
    measured: float  # the largest N along the same line within what was measured


def has_speedup(model: Model) -> bool:
    """Return whether a model is of times that are not all zero."""
    return unit_of(model.metric) == "s" and not isinstance(model, ZeroModel)


def curve(model: Model, study: Study, points: Sequence[Point]) -> Curve:
    """Return speedup, efficiency and cost at points that differ in their processes only.

    Parameters
    ----------
    model
        Of times in seconds.
    study
        How runs are compared.
    points
        Not empty; the reference is that of the first.
    """
    n = np.array([study.number(point) for point in points])
    reference = study.reference(points[0])
    start = study.number(reference)
    found = predictive(model, [reference, *points])  # asked once: some families need long for a call
    ends = found.of_mean(LEVEL)
    faster = _faster(model, found.value, ends, reference, points)
    seconds = Band(found.value[1:], ends[0][1:], ends[1][1:])
    return Curve(
        points=tuple(points),
        processes=n,
        seconds=seconds,
        speedup=faster.scaled(n / start if study.weak else np.ones_like(n)),
        efficiency=faster.scaled(np.ones_like(n) if study.weak else start / n),
        core_hours=seconds.scaled(n / _HOUR),
    )


def curve_and_limit(model: Model, study: Study, point: Point, target: float) -> tuple[Curve, Limit]:
    """Return `curve` up to a point, and the largest N whose efficiency is not below a target beyond that.

    Both from one question to the model.

    Parameters
    ----------
    model, study
        As for `curve`.
    point
        The problem, and where the curve ends; of its processes those other than ``study.along`` count for the
        limit.
    target
        Efficiency as a share, more than 0 and less than 1.

    Raises
    ------
    ModelError
        For another target.
    """
    if not isinstance(target, Real) or not 0 < target < 1:
        given = f"{target:g}" if isinstance(target, Real) else repr(target)
        raise ModelError(f"efficiency {given} is no share between 0 and 1: 0.5 is half of the ideal")
    path, steps = study.path(point), study.fine(point)
    both = curve(model, study, [*path, *steps])
    fine = both.part(len(path), len(both.points))
    value, low, high = (
        _crossing(fine.processes, np.asarray(part, np.float64), target)
        for part in (fine.efficiency.value, fine.efficiency.low, fine.efficiency.high)
    )
    return both.part(0, len(path)), Limit(
        target=target,
        processes=value,
        already=bool(np.all(fine.efficiency.value < target)),
        low=low,
        high=high,
        searched=float(fine.processes[-1]),
        measured=study.number(Point.of({**point.as_dict(), study.along: study.most})),
    )


def corners(known: Measurements) -> Iterator[Point]:
    """Yield a point per measured combination of categories: the largest value of every other parameter."""
    names = [name for name in known.parameters if known.is_categorical(name)]
    largest = {name: _whole(max(_numbers(known, name))) for name in known.parameters if name not in names}
    seen = dict.fromkeys(tuple(point[name] for name in names) for point in known.points)
    for categories in seen:
        values = {**largest, **dict(zip(names, categories, strict=True))}
        yield Point.of({name: values[name] for name in known.parameters})


def relative(item: Measurement, study: Study, point: Point) -> dict[Point, float]:
    """Return measured speedups along the curve of a point, by point; none without a measured reference.

    They are ratios of means, of the same kind as those of `curve`.
    """
    names = set(study.processes.names)
    problem = [(name, format_value(value)) for name, value in point.items if name not in names]
    here = {
        other: float(np.mean(values))
        for other, values in item.values.items()
        if is_of(other, problem) and np.mean(values) > 0
    }
    start = next((other for other in here if _same(other, dict(study.fewest))), None)
    if start is None:
        return {}
    fixed = {name: point.number(name) for name in names if name != study.along}
    n0 = study.number(start)
    return {
        other: here[start] / seconds * (study.number(other) / n0 if study.weak else 1.0)
        for other, seconds in here.items()
        if _same(other, fixed)
    }


def _same(point: Point, values: dict[str, float]) -> bool:
    return all(point.number(name) == value for name, value in values.items())


def _faster(
    model: Model, value: Floats, ends: tuple[Floats, Floats], reference: Point, points: Sequence[Point]
) -> Band:
    """Return the time at the reference over that at points, from the values and intervals of all of them.

    Errors that a model's belief has in common at both cancel; without a belief they count as independent.
    """
    together = [reference, *points]
    same = np.array([_equal(point, reference) for point in points])
    if has_belief(model):
        belief = model.belief(together)
        mean = belief.mean[:, :1] - belief.mean[:, 1:]
        shared = belief.factor[:, :, :1] - belief.factor[:, :, 1:]
        rough = belief.rough[:, :1] ** 2 + belief.rough[:, 1:] ** 2
        spread, weights = np.sqrt((shared**2).sum(axis=1) + rough), belief.weights
    else:
        middle, half = lognormal(*ends)
        mean, weights = (middle[:1] - middle[1:])[None], np.ones(1)
        spread = np.hypot(half[:1], half[1:])[None]
    spread, mean = np.where(same, 0.0, spread), np.where(same, 0.0, mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(same, 1.0, value[0] / value[1:])
    faster = Predictive(value=ratio, weights=weights, mean=mean, spread=spread, noise=0.0)
    low, high = (np.where(same, 1.0, end) for end in faster.of_mean(LEVEL))
    return Band(ratio, low, high)


def _equal(first: Point, second: Point) -> bool:
    """Return whether two points have equal values, whatever their order and type of number."""
    return is_of(first, [(name, format_value(value)) for name, value in second.items])


def _crossing(n: Floats, efficiency: Floats, target: float) -> float | None:
    """Return the whole N up to which efficiency is not below a target for good; None if it never is below."""
    above = np.flatnonzero(efficiency >= target)
    last = int(above[-1]) if len(above) else 0
    if last == len(n) - 1:
        return None
    if not len(above):
        return float(n[0])
    logs, ends = np.log(n[last : last + 2]), np.log(np.maximum(efficiency[last : last + 2], 1e-300))
    share = (ends[0] - np.log(target)) / max(ends[0] - ends[1], 1e-300)
    return float(max(np.floor(np.exp(logs[0] + min(share, 1.0) * (logs[1] - logs[0])) + 1e-9), n[0]))


def _falls(known: Measurements, processes: Processes) -> float:
    """Return the power of N with which measured times fall or rise: a median over the longer problems.

    The call path with the largest times decides: communication alone may take longer on more processes. So
    do the problems that take longest on the fewest: what small ones take may hardly depend on N.
    """
    times = [item for item in known.items if unit_of(item.metric) == "s"]
    largest = max(times, key=lambda item: sum(map(sum, item.values.values())), default=None)
    slopes = [] if largest is None else [slope for _, slope in sorted(_slopes(largest, processes))]
    return float(np.median(slopes[-max(1, len(slopes) // 2) :])) if slopes else -1.0


def _slopes(item: Measurement, processes: Processes) -> Iterator[tuple[float, float]]:
    """Yield the time of each problem on the fewest processes, and the power of N up to the most."""
    names = set(processes.names)
    problems: dict[tuple[tuple[str, object], ...], list[tuple[float, float]]] = {}
    for point, values in item.values.items():
        n = float(np.prod([point.number(name) for name in processes.names]))
        mean = float(np.mean(values))
        if mean > 0:
            key = tuple((name, value) for name, value in point.items if name not in names)
            problems.setdefault(key, []).append((n, mean))
    for runs in problems.values():
        (n0, first), (n1, last) = min(runs), max(runs)
        if n1 > n0:
            yield first, float(np.log(last / first) / np.log(n1 / n0))


def _numbers(known: Measurements, name: str) -> Iterable[float]:
    return [float(value) for value in known.values_of(name) if not isinstance(value, str)]

"""What simulated runs yield: stated functions, models of an earlier campaign, or measurements from files.

A function here returns what a run yields without noise (`Exact`); `noisy` adds noise. Measured values have
theirs already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from orchestrator.errors import CampaignError
from orchestrator.executors.base import SimulatedRun, Truth
from orchestrator.expressions import Expression
from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.models.base import Model, holds_at
from orchestrator.models.callpaths import callers
from orchestrator.models.effort import BLOCKS, EFFORT
from orchestrator.types import ROOTS, Measurements, Point, Run, Sample, Value, by_callpath

BLOCKS_PER_SECOND = 1e6  # that an effort run counts where only times are known
COUNTING = 2.0  # how many times longer an effort run takes, where no effort run is known

Exact = Callable[[Run], SimulatedRun]
"""What a run yields without noise."""

_TIMES = ("time", ELAPSED)


def stated(functions: Mapping[str, Expression], values_at: Callable[[Point], Mapping[str, Value]]) -> Exact:
    """Return runs whose times are the given functions of the parameters.

    A run takes what `duration` says. Effort runs count as `counted` says.

    Parameters
    ----------
    functions
        Call path -> expression in parameters and settings, in seconds; that of a caller includes its callees.
    values_at
        The values of both at a point.
    """

    def exact(run: Run) -> SimulatedRun:
        values, times = values_at(run.point), {}
        for path, expression in functions.items():
            seconds = expression.number(values)
            if not seconds >= 0:
                raise CampaignError(f"executor.truth.{path} is {seconds} at {run.point}: times are >= 0")
            times[path] = seconds
        samples = tuple(Sample(path, "time", seconds) for path, seconds in times.items())
        found = SimulatedRun(samples, duration(times))
        return counted(found) if run.kind == "effort" else found

    return exact


def failing(whole: Truth, region: Expression, values_at: Callable[[Point], Mapping[str, Value]]) -> Truth:
    """Return runs that fail where a condition on parameters and settings holds; others are as before."""

    def found(run: Run, rng: np.random.Generator) -> SimulatedRun:
        return replace(whole(run, rng), fails=bool(region(values_at(run.point))))

    return found


def counted(timed: SimulatedRun, slowdown: float = COUNTING) -> SimulatedRun:
    """Return the effort run of which only the times are known.

    It counts basic blocks in proportion to the times. So a rehearsal is as good as effort can be: the effort
    models have the very form of the times.
    """
    times = [sample for sample in timed.samples if sample.metric == "time"]
    blocks = [Sample(item.callpath, BLOCKS, float(round(BLOCKS_PER_SECOND * item.value))) for item in times]
    visits = [Sample(item.callpath, "visits", 1.0) for item in times]
    return SimulatedRun((*blocks, *visits), slowdown * timed.seconds)


def modelled(
    models: Sequence[Model],
    values_at: Callable[[Point], Mapping[str, Value]],
    parameters: Sequence[str],
    slowdown: float = COUNTING,
) -> Exact:
    """Return runs that yield what the models of an earlier campaign predict, at all its call paths.

    Parameters
    ----------
    models
        Of times, durations of whole runs, and whatever else the campaign has measured or counted.
    values_at
        The values of parameters and settings at a point.
    parameters
        Those of the earlier campaign.
    slowdown
        How many times longer an effort run takes than a time run.
    """
    paths = by_callpath(models)
    known: dict[tuple[Value, ...], list[Sample]] = {}

    def samples_at(point: Point) -> list[Sample]:
        values = values_at(point)
        key = tuple(values[name] for name in parameters)
        if key not in known:
            there = Point(tuple(zip(parameters, key, strict=True)))
            predicted = ((path, metric, _value(same, there)) for (path, metric), same in paths.items())
            known[key] = [
                Sample(path, metric, float(round(value)) if metric in EFFORT else value)
                for path, metric, value in predicted
                if math.isfinite(value)
            ]
        return known[key]

    def exact(run: Run) -> SimulatedRun:
        samples = samples_at(run.point)
        timed = tuple(sample for sample in samples if sample.metric not in EFFORT)
        plain = SimulatedRun(timed, seconds_of(timed))
        if run.kind != "effort":
            return plain
        counts = tuple(sample for sample in samples if sample.metric in EFFORT)
        return SimulatedRun(counts, slowdown * plain.seconds) if counts else counted(plain, slowdown)

    return exact


def _value(alternatives: Sequence[Model], point: Point) -> float:
    """Return the value of a call path, never negative; in an unknown category, the largest known one."""
    here = [model for model in alternatives if holds_at(model, point)]
    values = [
        float(model.value([point if here else Point.of({**point.as_dict(), **dict(model.category)})])[0])
        for model in here or alternatives
    ]
    return max(0.0, max(values))


def noisy(exact: Exact, noise: float) -> Truth:
    """Return runs with multiplicative noise on all times.

    Parameters
    ----------
    exact
        Runs without noise.
    noise
        Half width of the uniform noise, in percent (5 means ±5 %).
    """

    def truth(run: Run, rng: np.random.Generator) -> SimulatedRun:
        quiet = exact(run)
        if run.kind == "effort":
            return SimulatedRun(quiet.samples, quiet.seconds * _factor(noise, rng))
        samples = tuple(
            Sample(item.callpath, item.metric, item.value * _factor(noise, rng), item.aggregate)
            if item.metric in _TIMES
            else item
            for item in quiet.samples
        )
        return SimulatedRun(samples, seconds_of(samples))

    return truth


def _factor(noise: float, rng: np.random.Generator) -> float:
    return max(0.0, 1 + noise / 100 * rng.uniform(-1, 1))


def replayed(measurements: Measurements) -> Truth:
    """Return runs that yield measured values: repetition k gives the k-th measured one.

    No number is invented: beyond the measured repetitions, earlier ones are drawn again. A run takes what
    `seconds_of` says.

    Raises
    ------
    CampaignError
        When a run asks for a point that the data do not hold.
    """
    known = frozenset(measurements.points)

    def truth(run: Run, rng: np.random.Generator) -> SimulatedRun:
        values_at = run.point.as_dict()
        point = Point.of({name: values_at[name] for name in measurements.parameters if name in values_at})
        if point not in known:
            raise CampaignError(
                f"the data set has no measurement at {run.point}: restrict the parameters to measured values"
            )
        draw = int(rng.integers(1 << 30))
        samples = []
        for item in measurements.items:
            values = item.values.get(point, ())
            if values:
                index = run.repetition - 1 if run.repetition <= len(values) else draw % len(values)
                samples.append(Sample(item.callpath, item.metric, values[index]))
        return SimulatedRun(tuple(samples), seconds_of(samples))

    return truth


def seconds_of(samples: Sequence[Sample]) -> float:
    """Return how long a run with these samples takes: its stated duration as a whole, else `duration`."""
    for sample in samples:
        if (sample.callpath, sample.metric) == (WHOLE_RUN, ELAPSED):
            return sample.value
    return duration({sample.callpath: sample.value for sample in samples if sample.metric == "time"})


def duration(times: Mapping[str, float]) -> float:
    """Return the seconds of a whole run, from the times of its call paths.

    The time of a caller includes its callees, so each callee is counted once: the outermost call paths count,
    and of these ``main`` alone where it is stated. Where callees take longer than their caller, the time of
    the caller is its own alone, or a value is wrong: then the callees count.
    """
    below: dict[str | None, list[str]] = {}
    for path in times:
        nearest = next((caller for caller in callers(path)[1:] if caller in times), None)
        below.setdefault(nearest, []).append(path)

    def total(path: str) -> float:
        return max(times[path], sum(map(total, below.get(path, ()))))

    outermost = below.get(None, [])
    return sum(map(total, [path for path in ROOTS if path in times][:1] or outermost))

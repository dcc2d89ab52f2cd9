"""Comparison of strategies on measured data (Ritter et al., section V)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from orchestrator import resources
from orchestrator.errors import CampaignError
from orchestrator.evaluation.parallel import Advance, in_parallel
from orchestrator.evaluation.strategies.bench import Bench, ListedSpace
from orchestrator.evaluation.strategies.rules import Rules, campaigns
from orchestrator.evaluation.strategies.trial import Outcome
from orchestrator.models.uncertainty import RELEVANT_SHARE
from orchestrator.types import ROOTS, Measurement, Measurements, Parameter, Point, Value


def replay_outcomes(
    bench: Bench,
    rules: Rules,
    *,
    repetitions: int | None = None,
    together: bool = False,
    workers: int | None,
    advance: Advance | None = None,
) -> list[Outcome]:
    """Let every contender choose among measured runs, and compare its models with the run held out.

    Parameters
    ----------
    bench
        All points that are offered, as of `replay_bench`.
    rules
        What all contenders share. Budgets are in percent of the cost of all points offered, with as many
        repetitions as may be measured, at most five.
    repetitions
        Most repetitions of a point; never more than the point with the fewest has, which is the default.
    together
        One campaign measures all call paths in every run and is charged the whole run, as real campaigns are.
        Otherwise each call path has a campaign of its own and is charged its own time only, as in the paper.
    workers, advance
        As in `synthetic_outcomes`.

    Returns
    -------
    list of Outcome
        One per contender, budget and call path that takes more than 1 % of the run at P₊.
    """
    most = min(len(runs) for runs in bench.seconds.values())
    limit = most if repetitions is None else min(repetitions, most)
    benches = [bench] if together else [_alone(bench, callpath) for callpath in bench.truth]
    tasks = [(rules, one, limit) for one in benches]
    return [outcome for part in in_parallel(_try_bench, tasks, workers, advance) for outcome in part]


def replay_bench(
    measurements: Measurements,
    processes: str,
    holdout: Mapping[str, Value],
    *,
    inside: bool = False,
) -> Bench:
    """Turn measurements into a bench that offers what was measured.

    Parameters
    ----------
    measurements
        Every point with its repetitions.
    processes
        Expression in the parameters: cores that a run occupies.
    holdout
        P₊: the mean of its repetitions is the truth, and it is never offered.
    inside
        Offer only points that are below P₊ in every numeric parameter: makes an extrapolation of data of
        which P₊ is a corner.

    Raises
    ------
    CampaignError
        When the holdout was not measured, nothing remains to be offered, or an expression is malformed or
        gives less than one core.
    """
    items = [item for item in measurements.items if item.metric == "time"]
    beyond = _held_out(measurements, items, holdout)
    points = [point for point in measurements.points if point != beyond]
    if inside:
        points = [point for point in points if _below(point, beyond)]
    seconds = _durations(items, points)
    if len(seconds) < 2:
        raise CampaignError(f"nothing to measure remains beside the holdout {beyond}: {len(seconds)} points")
    occupied = resources.of_expression(processes, measurements.parameters)
    truth = {item.callpath: float(np.mean(item.values[beyond])) for item in items if item.values.get(beyond)}
    total = max((truth[root] for root in ROOTS if root in truth), default=sum(truth.values()))
    return Bench(
        space=_space(measurements, list(seconds)),
        evaluation_point=beyond,
        times={item.callpath: item.values for item in items},
        seconds=seconds,
        cores={point: occupied(point) for point in seconds},
        truth={callpath: time for callpath, time in truth.items() if time > RELEVANT_SHARE * total},
    )


def _held_out(
    measurements: Measurements, items: Sequence[Measurement], holdout: Mapping[str, Value]
) -> Point:
    for point in measurements.points:
        here = all(point[name] == holdout.get(name) for name in measurements.parameters)
        if here and any(item.values.get(point) for item in items):
            return point
    known = "; ".join(
        f"{name}: {', '.join(map(str, dict.fromkeys(point[name] for point in measurements.points)))}"
        for name in measurements.parameters
    )
    wanted = ", ".join(f"{name}={value}" for name, value in holdout.items())
    raise CampaignError(f"the holdout {wanted} is not among the measured points; measured are {known}")


def _below(point: Point, beyond: Point) -> bool:
    return all(isinstance(value, str) or value < beyond.number(name) for name, value in point.items)


def _durations(items: Sequence[Measurement], points: Sequence[Point]) -> dict[Point, tuple[float, ...]]:
    """Return the time of every run: that of the root call path where there is one, else the sum of all."""
    counted = [item for item in items if item.callpath in ROOTS][:1] or items
    durations: dict[Point, tuple[float, ...]] = {}
    for point in points:
        series = [item.values.get(point, ()) for item in counted]
        if all(series):
            durations[point] = tuple(map(sum, zip(*series, strict=False)))
    return durations


def _space(measurements: Measurements, points: Sequence[Point]) -> ListedSpace:
    parameters = []
    for name in measurements.parameters:
        values = dict.fromkeys(point[name] for point in points)
        categorical = measurements.is_categorical(name)
        ordered = tuple(values) if categorical else tuple(sorted(values, key=float))
        parameters.append(Parameter(name, ordered, categorical))
    place = {p.name: {value: index for index, value in enumerate(p.values)} for p in parameters}
    ordered_points = sorted(
        points, key=lambda point: [place[name][point[name]] for name in measurements.parameters]
    )
    return ListedSpace(tuple(parameters), tuple(ordered_points))


def _alone(whole: Bench, callpath: str) -> Bench:
    times = {p: runs for p, runs in whole.times[callpath].items() if p in whole.seconds and runs}
    points = tuple(point for point in whole.space.points if point in times)
    return Bench(
        space=ListedSpace(whole.space.parameters, points),
        evaluation_point=whole.evaluation_point,
        times={callpath: times},
        seconds=times,
        cores=whole.cores,
        truth={callpath: whole.truth[callpath]},
    )


def _try_bench(task: tuple[Rules, Bench, int]) -> list[Outcome]:
    rules, bench, repetitions = task
    return campaigns(rules, bench, seed=(rules.seed,), maximum_repetitions=repetitions)

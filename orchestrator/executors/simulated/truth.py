"""What simulated runs yield: stated functions with noise, or measurements replayed from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from orchestrator.errors import CampaignError
from orchestrator.executors.base import SimulatedRun, Truth
from orchestrator.expressions import Expression
from orchestrator.journal.measurements import ELAPSED, WHOLE_RUN
from orchestrator.types import ROOTS, Measurements, Point, Run, Sample, Value


def stated(
    functions: Mapping[str, Expression], values_at: Callable[[Point], Mapping[str, Value]], noise: float
) -> Truth:
    """Return runs whose times are the given functions of the parameters.

    Parameters
    ----------
    functions
        Call path -> expression in parameters and settings, in seconds.
    values_at
        The values of both at a point.
    noise
        Half width of the uniform multiplicative noise, in percent (5 means ±5 %).
    """

    def truth(run: Run, rng: np.random.Generator) -> SimulatedRun:
        values = values_at(run.point)
        samples = []
        for path, expression in functions.items():
            seconds = expression.number(values) * (1 + noise / 100 * rng.uniform(-1, 1))
            if not seconds >= 0:
                raise CampaignError(f"executor.truth.{path} is {seconds} at {run.point}: times are >= 0")
            samples.append(Sample(path, "time", seconds))
        return SimulatedRun(tuple(samples), sum(sample.value for sample in samples))

    return truth


def replayed(measurements: Measurements) -> Truth:
    """Return runs that yield measured values: repetition k gives the k-th measured one.

    No number is invented: beyond the measured repetitions, earlier ones are drawn again. A run takes the
    duration of whole runs in the data (see `orchestrator.journal.measurements`), else the time of the call
    path ``main``, else the sum over call paths.

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
        return SimulatedRun(tuple(samples), _seconds(samples))

    return truth


def _seconds(samples: list[Sample]) -> float:
    for sample in samples:
        if (sample.callpath, sample.metric) == (WHOLE_RUN, ELAPSED):
            return sample.value
    times = {sample.callpath: sample.value for sample in samples if sample.metric == "time"}
    for root in ROOTS:
        if root in times:
            return times[root]
    return sum(times.values())

"""Whether measurements can be trusted: other processes on the machine, times that drift, only zeros,
times that are longer than the runs, never differ, or have too few digits, runs that all take as long. Pure.

A drift is looked for only between repetitions of the same point: whatever a model gets wrong cannot look like
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from orchestrator.journal.state import (
    FEW_DIGITS,
    GIVEN_TIME,
    NOT_MEASURED,
    ONLY_ZEROS,
    WRONG_UNIT,
    RunState,
    RunStatus,
    State,
)
from orchestrator.models.base import Floats
from orchestrator.models.effort import EFFORT
from orchestrator.models.noise import tick
from orchestrator.models.processes import counts_processes
from orchestrator.types import Point, Run
from orchestrator.units import listed, plain

BUSY = 0.1  # share of CPU time that others take from which runs count as disturbed. Chosen by hand
_LEAST_SECONDS = 2.0  # of runs, below which the clock ticks of the kernel say little about shares
_TIME = "time"
# A drift smaller than this over the whole campaign is not worth a word; its significance must be better than
# `_CERTAIN` to be reported, and than `_SUSPECTED` for a reference run. All chosen by hand.
_LEAST_DRIFT = 0.03
_CERTAIN, _SUSPECTED = 0.01, 0.02
# Distance from the median beyond which a repetition is moved to that distance: in deviations, and the least,
# as a logarithm: a drift may double times, however small the noise is. Chosen by hand.
_OUTLIER, _LEAST_OUTLIER = 5.0, 0.7
_LEAST_FREEDOM = 3
# Times as long as all cores of a run together, from which on its unit is wrong: of hardware threads, each may
# count. Chosen by hand.
_TOO_LONG = 2.0
# Points and repetitions without any difference, and digits that a value has at least, from which on times
# were not measured: of fewer digits, rounded ones may well be equal. Chosen by hand.
_SAME_POINTS, _SAME_REPETITIONS, _SAME_DIGITS = 3, 4, 5
# Steps of the last printed digit that a time should have, so that rounding changes it by 5 % at most, and
# runs from which on steps are known: of fewer, all may be round by chance. Chosen by hand.
_FEW_STEPS, _LEAST_RUNS = 10, 5
# Points, seconds that each run takes at least, and their largest ratio, of runs that work for a given time;
# and by how much a parameter varied that should have changed them. Chosen by hand.
_ALIKE_POINTS, _ALIKE_SECONDS, _ALIKE_RATIO, _VARIED = 5, 5.0, 1.1, 4.0
_NAMED = 3  # call paths in a sentence


@dataclass(frozen=True, slots=True)
class Taken:
    """What others took of the CPU time of timed runs: their ``share``, and how many runs lost much."""

    share: float
    disturbed: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How times of the same points changed from the first to the last measurement."""

    # change, low, high: relative change with its 90 % interval: 0.1 is 10 % slower at the end.
    change: float
    low: float
    high: float
    chance: float  # probability of a trend as clear without any drift
    # points, repetitions: what it was found from.
    points: int
    repetitions: int
    # begin, end: the first and the last measurement, in Unix seconds.
    begin: float
    end: float

    @property
    def certain(self) -> bool:
        """Whether it is worth a report."""
        return self.chance < _CERTAIN and abs(self.change) >= _LEAST_DRIFT

    @property
    def suspected(self) -> bool:
        """Whether it is worth a reference run."""
        return self.chance < _SUSPECTED and abs(self.change) >= _LEAST_DRIFT


def timed(state: State) -> Iterator[tuple[Run, RunState]]:
    """Yield the measured time runs, without the validation, in any order."""
    for run, item in state.runs.items():
        if run.kind == "time" and item.status is RunStatus.MEASURED and run != state.validation:
            yield run, item


def taken(items: Iterable[RunState], by: str) -> Taken | None:
    """Return what ``others`` took of the CPU time of timed runs, or what was ``stolen`` by a hypervisor.

    None where that is not known, or where the runs were too short to know it.
    """
    known = [item for item in items if by in item.load]
    # Exact sums: the runs come in any order.
    seconds = math.fsum(item.elapsed for item in known)
    if seconds < _LEAST_SECONDS:
        return None
    share = math.fsum(item.load[by] * item.elapsed for item in known) / seconds
    return Taken(share, sum(item.load[by] >= BUSY for item in known), len(known))


def drift(state: State) -> Drift | None:
    """Return the linear trend of the logarithm of times over time, each point by itself; None without any.

    One regression over all points that were repeated, with a mean of its own for each. Its residuals give the
    noise, so slow runs that others caused at random make a drift less, not more, likely to be found.
    """
    series: dict[Point, list[tuple[float, float]]] = {}
    last: Mapping[Point, int] = state.proposed.get("time", {})
    for run, item in timed(state):
        if last.get(run.point, 0) > 1 and item.began is not None and (seconds := duration(item)) > 0:
            series.setdefault(run.point, []).append((item.began, math.log(seconds)))
    ordered = sorted(series.items(), key=lambda pair: pair[0].key)
    repeated = [np.array(sorted(values)) for _, values in ordered if len(values) > 1]
    if not repeated:
        return None
    times = np.concatenate([values[:, 0] for values in repeated])
    begin, end = float(times.min()), float(times.max())
    if end <= begin:
        return None
    x = np.concatenate([values[:, 0] - values[:, 0].mean() for values in repeated]) / (end - begin)
    y = _clipped(np.concatenate([values[:, 1] - np.median(values[:, 1]) for values in repeated]))
    y = _centred(y, [len(values) for values in repeated])
    freedom, spread = len(y) - len(repeated) - 1, float(x @ x)
    if freedom < _LEAST_FREEDOM or spread <= 0:
        return None
    slope = float(x @ y) / spread
    error = math.sqrt(max(float(((y - slope * x) ** 2).sum()) / freedom / spread, 1e-18))
    half = float(stdtrit(freedom, 0.95)) * error
    return Drift(
        change=math.expm1(slope),
        low=math.expm1(slope - half),
        high=math.expm1(slope + half),
        chance=2 * float(stdtr(freedom, -abs(slope) / error)),
        points=len(repeated),
        repetitions=len(y),
        begin=begin,
        end=end,
    )


def duration(item: RunState) -> float:
    """Return the seconds that stand for a run: the largest measured time, else that of the whole attempt."""
    return max(item.samples.get(_TIME, {}).values(), default=item.elapsed)


def _clipped(deviations: Floats) -> Floats:
    """Move what lies far out to the edge: one disturbed run must not decide about a trend."""
    some = deviations[deviations != 0]
    scale = 1.4826 * float(np.median(np.abs(some))) if len(some) else 0.0
    edge = max(_OUTLIER * scale, _LEAST_OUTLIER)
    return np.clip(deviations, -edge, edge)


def _centred(values: Floats, sizes: list[int]) -> Floats:
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return np.concatenate([part - part.mean() for part in parts])


def only_zeros(items: Iterable[RunState]) -> list[str]:
    """Return the metrics of which every value is zero; a count, as of bytes on one rank, may well be."""
    zero: dict[str, bool] = {}
    for item in items:
        for metric, values in item.samples.items():
            zero[metric] = zero.get(metric, True) and not any(values.values())
    return sorted(metric for metric, is_zero in zero.items() if is_zero and metric not in EFFORT)


def too_long(items: Iterable[RunState]) -> tuple[str, float] | None:
    """Return the call path whose times are longest beside its runs, and how many times as long as those.

    None where most are no longer than all cores of the run together: then they may be sums over ranks.
    """
    ratios: dict[str, list[float]] = {}
    for item in items:
        longest = max(item.elapsed, item.cost)
        for callpath, seconds in item.samples.get(_TIME, {}).items() if longest > 0 else ():
            ratios.setdefault(callpath, []).append(seconds / longest)
    medians = {callpath: float(np.median(values)) for callpath, values in ratios.items()}
    worst = max(sorted(medians), key=medians.__getitem__, default=None)
    return None if worst is None or medians[worst] <= _TOO_LONG else (worst, medians[worst])


def never_differ(items: Iterable[tuple[Run, RunState]]) -> list[str]:
    """Return the call paths whose times are the same in all repetitions, to more digits than chance permits.

    Only of runs that were executed: a rehearsal may be without noise.
    """
    values: dict[str, dict[Point, list[float]]] = {}
    for run, item in items:
        for callpath, seconds in item.samples.get(_TIME, {}).items() if item.origin else ():
            values.setdefault(callpath, {}).setdefault(run.point, []).append(seconds)
    return sorted(callpath for callpath, points in values.items() if _are_the_same(points.values()))


def _are_the_same(points: Iterable[Sequence[float]]) -> bool:
    repeated = [values for values in points if len(values) > 1]
    return (
        len(repeated) >= _SAME_POINTS
        and sum(len(values) - 1 for values in repeated) >= _SAME_REPETITIONS
        and all(len(set(values)) == 1 for values in repeated)
        and all(_has_digits(values[0]) for values in repeated)
    )


def _has_digits(value: float) -> bool:
    """Return whether a number was printed with so many digits that chance hardly makes two equal."""
    step = tick(np.array([value])) if value > 0 else math.inf
    return step == 0 or value / step > 10.0 ** (_SAME_DIGITS - 1) * (1 - 1e-9)


def few_digits(items: Iterable[RunState]) -> tuple[str, float] | None:
    """Return the call path that takes longest, and its last printed digit, where that is most of its times.

    Short call paths beside it may have few digits: they hardly matter. Only of runs that were executed: the
    truth of a rehearsal may be round.
    """
    longest: dict[str, list[float]] = {}
    for item in items:
        times = item.samples.get(_TIME, {}) if item.origin else {}
        if times:
            callpath = max(sorted(times), key=times.__getitem__)
            longest.setdefault(callpath, []).append(times[callpath])
    callpath = max(sorted(longest), key=lambda name: len(longest[name]), default="")
    values = np.array(longest.get(callpath, []))
    if len(values) < _LEAST_RUNS or not (values > 0).any() or len(set(values.tolist())) == 1:
        return None
    step = tick(values[values > 0])
    return (callpath, step) if step > 0 and np.median(values) < _FEW_STEPS * step * (1 - 1e-9) else None


def as_long(items: Iterable[tuple[Run, RunState]]) -> tuple[float, list[str]] | None:
    """Return the seconds that all runs take, and the numeric parameters that varied and changed nothing.

    None where some run takes longer than others, or where nothing varied but what counts processes: work that
    scales well may take as long on more of them. Only of runs that were executed.
    """
    seconds: dict[Point, list[float]] = {}
    for run, item in items:
        if item.origin:
            seconds.setdefault(run.point, []).append(item.elapsed)
    every = [value for values in seconds.values() for value in values]
    if len(seconds) < _ALIKE_POINTS or min(every) < max(_ALIKE_SECONDS, max(every) / _ALIKE_RATIO):
        return None
    varied: dict[str, list[float]] = {}
    for point in seconds:
        for name, value in point.items:
            if not isinstance(value, str) and value > 0 and not counts_processes(name):
                varied.setdefault(name, []).append(value)
    names = sorted(name for name, values in varied.items() if max(values) >= _VARIED * min(values))
    return (float(np.median(every)), names) if names else None


def findings(state: State) -> dict[str, str]:
    """Return what is to be known of the measurements: one sentence with numbers for each kind of finding."""
    of_runs = list(timed(state))
    runs = [item for _, item in of_runs]
    sentences = {}
    for kind, by, (who, remedy) in (
        ("busy machine", "others", ("other processes", "end them, or measure on another machine")),
        ("busy host", "stolen", ("the hypervisor", "measure on a machine whose CPUs are not shared")),
    ):
        load = taken(runs, by)
        if load is not None and load.share >= BUSY:
            sentences[kind] = (
                f"{who} took {100 * load.share:.0f} % of the CPU time of timed runs ({load.disturbed} of "
                f"{load.runs} runs lost {100 * BUSY:.0f} % or more): {remedy}"
            )
    if zeros := only_zeros(runs):
        sentences[ONLY_ZEROS] = (
            f"every value of {', '.join(zeros)} is zero: the program's timer is too coarse for such short "
            "runs, or a pattern reads the wrong number"
        )
    if (longer := too_long(runs)) is not None:
        sentences[WRONG_UNIT] = (
            f"{longer[0]} takes {plain(longer[1])} times as long as the whole runs that it was read from: "
            "its unit is another, or a pattern reads another number; correct it, then orchestrator reread"
        )
    if same := never_differ(of_runs):
        sentences[NOT_MEASURED] = (
            f"in all repetitions of a point the time of {listed(same, _NAMED)} is the same to the last "
            "digit, so it was not measured: a pattern may read the time that the program simulates; correct "
            "it, then orchestrator reread"
        )
    if (coarse := few_digits(runs)) is not None:
        sentences[FEW_DIGITS] = (
            f"the times of {coarse[0]} are multiples of {plain(coarse[1])} s, and most are less than "
            f"{_FEW_STEPS} of them: choose values at which runs take longer, or read what is printed with "
            "more digits, such as a rate"
        )
    if (same_time := as_long(of_runs)) is not None:
        seconds, names = same_time
        sentences[GIVEN_TIME] = (
            f"all runs take {plain(seconds)} s within {100 * (_ALIKE_RATIO - 1):.0f} %, whatever "
            f"{listed(names, _NAMED)} {'is' if len(names) == 1 else 'are'}: if the program works for a given "
            "time, models of its time say nothing: fix its work instead, or measure the rate that it prints"
        )
    trend = drift(state)
    if trend is not None and trend.certain:
        word = "slower" if trend.change > 0 else "faster"
        sentences["drift"] = (
            f"the same points became {100 * abs(trend.change):.0f} % {word} from the first to the last "
            f"measurement (90 % interval {100 * trend.low:+.0f} to {100 * trend.high:+.0f} %, "
            f"{trend.repetitions} repetitions at {trend.points} points)"
        )
    return sentences

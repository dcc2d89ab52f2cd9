"""What the noise study fits: times with known complexity, counted effort, and a test point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from orchestrator.errors import CampaignError
from orchestrator.evaluation.artificial_noise import mixed
from orchestrator.generate import directory
from orchestrator.generate.complexity import RANKS, Function, model_terms
from orchestrator.generate.counts import bytes_per_rank, calls, loop_counts
from orchestrator.generate.manifest import Manifest, callpaths, parts
from orchestrator.generate.population import DEFAULT, Range, draw
from orchestrator.models.base import Floats
from orchestrator.models.effort import BLOCKS
from orchestrator.models.mpi_costs import TABLE
from orchestrator.types import Measurement, Measurements, Point

KINDS = ("computation", "communication")
REPETITIONS = 5
# The paper's training points (section V-B).
PAPER = Range({"p": 128, "n": 8000}, {"p": 2048, "n": 40000})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Times of one call path without artificial noise."""

    # callpath, kind: which code; ``kind`` is one of `KINDS`.
    callpath: str
    kind: str
    truth: tuple[Mapping[str, object], ...]  # terms of the theoretical model
    times: Mapping[Point, tuple[float, ...]]  # repetitions per training point
    expected: float  # the time at the test point


@dataclass(frozen=True, slots=True)
class Study:
    """Cases that are fitted together, the effort counted for them, and where predictions are tested."""

    parameters: tuple[str, ...]
    cases: tuple[Case, ...]
    effort: tuple[Measurement, ...]
    test: Point


def synthetic(functions: int, natural: float, seed: int, range_: Range = PAPER) -> Study:
    """Return a study on drawn functions, as `orchestrator generate` writes them, with simulated times.

    Loops take about a nanosecond per iteration, messages follow Table I with drawn α, β and γ, and every
    time has noise of its own.

    Parameters
    ----------
    functions
        How many; each has a computation and a communication.
    natural
        Bound of the noise that the times have anyway, in percent
        (`orchestrator.evaluation.artificial_noise.mixed`).
    seed
        Of the functions, their costs and the noise.
    range_
        Training points; the default is the paper's.
    """
    rng = np.random.default_rng(seed)
    values = directory.series(range_)
    names = range_.parameters
    points = [Point(tuple(zip(names, v, strict=True))) for v in product(*(values[n][:-1] for n in names))]
    test = Point(tuple((name, values[name][-1]) for name in names))
    cases: list[Case] = []
    effort: list[Measurement] = []
    for index in range(functions):
        function = draw(index, range_, DEFAULT, rng)
        clean = _simulated(function, range_, [*points, test], rng)
        for kind, path, truth, seconds in zip(
            KINDS, callpaths(function), parts(function), clean, strict=True
        ):
            noisy = seconds[:-1, None] * mixed(natural, (len(points), REPETITIONS), rng)
            times = {p: tuple(map(float, row)) for p, row in zip(points, noisy, strict=True)}
            expected = float(seconds[-1])
            terms = tuple(model_terms(truth))
            cases.append(Case(callpath=path, kind=kind, truth=terms, times=times, expected=expected))
        effort += _counted(function, range_, points)
    return Study(names, tuple(cases), tuple(effort), test)


def _simulated(
    function: Function, range_: Range, points: Sequence[Point], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Seconds of computation and communication at points."""
    per_block = 1e-9 * np.exp(rng.normal(0, 0.3, len(function.computation.loops)))
    overhead, latency = 2e-6, 2e-6 * np.exp(rng.normal(0, 0.5))
    transfer, reduction = 1e-9 * np.exp(rng.normal(0, 0.5, 2))
    row = TABLE[function.communication.operation][0]
    compute, communicate = [], []
    for point in points:
        x = {name: point.number(name) for name in range_.parameters}
        compute.append(overhead + float(per_block @ loop_counts(function, range_, x)))
        p, times = x[RANKS], calls(function, range_, x)
        seconds = times * latency * (np.log2(p) if row.tree else 1.0)
        if row.metric:
            volume = times * bytes_per_rank(function, range_, x)[row.metric] * p**row.power
            seconds += volume * transfer * ((p - 1) / p if row.fraction else 1.0)
            seconds += volume * reduction * (p - 1) / p if row.reduces else 0.0
        communicate.append(seconds)
    return np.array(compute), np.array(communicate)


def _counted(function: Function, range_: Range, points: Sequence[Point]) -> list[Measurement]:
    """What an effort run counts, exactly as the generated program does."""
    compute, communicate = callpaths(function)
    counts: dict[tuple[str, str], dict[Point, tuple[float, ...]]] = {}
    for point in points:
        x = {name: point.number(name) for name in range_.parameters}
        times = calls(function, range_, x)
        counts.setdefault((compute, BLOCKS), {})[point] = (float(sum(loop_counts(function, range_, x))),)
        counts.setdefault((communicate, "visits"), {})[point] = (times,)
        for metric, size in bytes_per_rank(function, range_, x).items():
            counts.setdefault((communicate, metric), {})[point] = (times * size,)
    return [Measurement(path, metric, values) for (path, metric), values in counts.items()]


def measured(manifest: Manifest, known: Measurements, metric: str = "time") -> Study:
    """Return a study on runs of generated programs; the largest values of all parameters are the test point.

    Only points at which no parameter has its largest value train the models.

    Raises
    ------
    CampaignError
        When times, counts or the test point are missing.
    """
    names = known.parameters
    largest = {name: max(point.number(name) for point in known.points) for name in names}
    training = {p for p in known.points if all(p.number(name) < largest[name] for name in names)}
    items = {(item.callpath, item.metric): item for item in known.items}
    test = next((p for p in known.points if all(p.number(n) == largest[n] for n in names)), None)
    cases, effort = [], []
    for function in (f for functions in manifest.programs.values() for f in functions):
        for kind, path, truth in zip(KINDS, callpaths(function), parts(function), strict=True):
            item = items.get((path, metric))
            if item is None or test is None or test not in item.values:
                raise CampaignError(f"no {metric} of {path} at the largest values of {', '.join(names)}")
            times = {p: v for p, v in item.values.items() if p in training}
            expected = float(np.median(item.values[test]))
            terms = tuple(model_terms(truth))
            cases.append(Case(callpath=path, kind=kind, truth=terms, times=times, expected=expected))
    paths = {case.callpath for case in cases}
    for item in known.items:
        if item.callpath in paths and item.metric in {BLOCKS, "visits", "bytes_sent", "bytes_received"}:
            values = {p: v for p, v in item.values.items() if p in training}
            effort.append(Measurement(item.callpath, item.metric, values))
    if not effort:
        raise CampaignError("no counts among the measurements: run the programs ending in -counts, too")
    return Study(names, tuple(cases), tuple(effort), Point(tuple(largest.items())))

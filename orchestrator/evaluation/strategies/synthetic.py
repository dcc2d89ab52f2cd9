"""Comparison of strategies on synthetic functions (Ritter et al., section IV)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from orchestrator.errors import CampaignError
from orchestrator.evaluation.artificial_noise import mixed, slowed
from orchestrator.evaluation.parallel import Advance, in_parallel
from orchestrator.evaluation.strategies.bench import FULL_REPETITIONS, Bench, ListedSpace
from orchestrator.evaluation.strategies.contenders import MAXIMUM_REPETITIONS, contenders
from orchestrator.evaluation.strategies.functions import Function, draw, of_terms, read
from orchestrator.evaluation.strategies.rules import Rules, campaigns
from orchestrator.evaluation.strategies.trial import Conditions, Outcome, measured
from orchestrator.models import NOTHING, Neighbours, known_form, of_measurements
from orchestrator.models.base import Floats
from orchestrator.types import Parameter, Point

_CALLPATH = "main"

NEIGHBOURS = ("none", "same", "misleading")
"""What another campaign found: nothing, a function with the same exponents, or one with others."""

# How the other campaign measured: the default strategy, runs per round, budget in percent of its cost.
_STRATEGY, _ROUND, _BUDGET = "information", 5, 10.0

Series = tuple[tuple[Parameter, int], ...]

SERIES: Series = (
    (Parameter("a", (4, 8, 16, 32, 64)), 128),
    (Parameter("b", (10, 20, 30, 40, 50)), 60),
    (Parameter("c", (1000, 2000, 3000, 4000, 5000)), 6000),
    (Parameter("d", (10, 12, 14, 16, 18)), 20),
)
"""Parameters, each with its value at P₊, one step beyond. The first is the number of processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The functions of a comparison.

    Raises
    ------
    CampaignError
        For a number of parameters out of range.
    """

    parameters: int = 2  # number of parameters, 1 to 4
    # Bound of the mixed noise in percent. Each function has its own noise, the same for all contenders.
    noise: float = 5.0
    outliers: float = 0.0  # percent of the runs that are slowed down 2 to 5 times
    functions: int = 100  # how many
    # The first ``functions`` expressions of this file, in the parameters a, b, c, d; drawn unless given.
    functions_file: Path | None = None
    # One of `NEIGHBOURS`: what another campaign, with as much noise, found of another function.
    neighbour: str = "none"

    def __post_init__(self) -> None:
        if not 1 <= self.parameters <= len(SERIES):
            raise CampaignError(f"parameters is {self.parameters}: there are series for 1 to {len(SERIES)}")
        if self.neighbour not in NEIGHBOURS:
            raise CampaignError(f"neighbour is {self.neighbour!r}: use one of {', '.join(NEIGHBOURS)}")


def synthetic_outcomes(
    setting: Setting, rules: Rules, *, workers: int | None = None, advance: Advance | None = None
) -> list[Outcome]:
    """Run every contender at every budget on every function.

    Parameters
    ----------
    setting, rules
        The functions, and what all contenders share.
    workers
        Processes; as many as there are cores unless given.
    advance
        Called with the number of finished functions and of all.

    Raises
    ------
    CampaignError
        For a file of functions that cannot be used, before any campaign begins.
    """
    known: Sequence[Function | None] = [None] * setting.functions
    if setting.functions_file is not None:
        known = _given(setting.functions_file, setting, rules)
    tasks = [(setting, rules, index, function) for index, function in enumerate(known)]
    return [outcome for part in in_parallel(_try_function, tasks, workers, advance) for outcome in part]


def _given(path: Path, setting: Setting, rules: Rules) -> list[Function]:
    """Return the functions of a file: of known parameters, and with what the contenders need."""
    names = [parameter.name for parameter, _ in SERIES[: setting.parameters]]
    functions = read(path, names)[: setting.functions]
    points, beyond = _grid(SERIES[: setting.parameters])
    for function in functions:
        for point in (*points, beyond):
            function(point)
        if any(contender.oracle for contender in contenders(rules.strategies)):
            function.terms()
    return functions


def _grid(series: Series) -> tuple[tuple[Point, ...], Point]:
    """Return the points that can be measured, and P₊ one step beyond."""
    names = [parameter.name for parameter, _ in series]
    points = tuple(
        Point(tuple(zip(names, values, strict=True)))
        for values in product(*(parameter.values for parameter, _ in series))
    )
    return points, Point(tuple((parameter.name, value) for parameter, value in series))


def synthetic_bench(
    function: Function, parameters: int, noise: float, rng: np.random.Generator, outliers: float = 0.0
) -> Bench:
    """Return ten noisy runs at every point of the grid, and the noise-free truth at P₊ one step beyond.

    Noise is in percent, and so is the share of runs that are slowed down.
    """
    series = SERIES[:parameters]
    shape = (number_of_points(series), MAXIMUM_REPETITIONS)
    return bench_of(function, series, mixed(noise, shape, rng) * slowed(outliers, shape, rng))


def number_of_points(series: Series) -> int:
    """Return how many points of the grid can be measured."""
    return math.prod(len(parameter.values) for parameter, _ in series)


def bench_of(function: Function, series: Series, factors: Floats) -> Bench:
    """Return runs at every point of the grid, and the truth at P₊.

    Parameters
    ----------
    function, series
        What is measured, and where; the first parameter is the number of processes.
    factors
        By which runs differ from the function, shape (points, runs).
    """
    points, beyond = _grid(series)
    times = {
        point: tuple(float(time) for time in function(point) * row)
        for point, row in zip(points, factors, strict=True)
    }
    return Bench(
        space=ListedSpace(tuple(parameter for parameter, _ in series), points),
        evaluation_point=beyond,
        times={_CALLPATH: times},
        seconds=times,
        cores={point: point.number(series[0][0].name) for point in points},
        truth={_CALLPATH: function(beyond)},
    )


def _try_function(task: tuple[Setting, Rules, int, Function | None]) -> list[Outcome]:
    setting, rules, index, given = task
    rng = np.random.default_rng([rules.seed, index])
    function = given or draw([parameter for parameter, _ in SERIES[: setting.parameters]], rng)
    bench = synthetic_bench(function, setting.parameters, setting.noise, rng, setting.outliers)
    return campaigns(
        rules,
        bench,
        seed=(rules.seed, index),
        oracle=lambda: known_form(function.terms()),
        neighbours=_neighbours(function, setting, rules, index),
    )


def _neighbours(function: Function, setting: Setting, rules: Rules, index: int) -> Neighbours:
    """Return what another campaign knows of a function, from runs of another one with its own noise."""
    if setting.neighbour == "none":
        return NOTHING
    rng = np.random.default_rng([rules.seed, index, 1])
    parameters = [parameter for parameter, _ in SERIES[: setting.parameters]]
    same = setting.neighbour == "same"
    other = of_terms(function.terms(), parameters, rng) if same else draw(parameters, rng)
    bench = synthetic_bench(other, setting.parameters, setting.noise, rng, setting.outliers)
    conditions = Conditions(
        budget_percent=_BUDGET,
        full_cost=bench.full_cost(FULL_REPETITIONS),
        batch_size=_ROUND,
        seed=(rules.seed, index, 1),
    )
    known = measured(bench, contenders((_STRATEGY,))[0], rules.modeler(), conditions)
    return of_measurements(known, "another campaign")

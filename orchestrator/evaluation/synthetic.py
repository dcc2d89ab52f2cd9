"""Comparison of strategies on synthetic functions (Ritter et al., section IV)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator import registry
from orchestrator.errors import CampaignError
from orchestrator.evaluation import oracle
from orchestrator.evaluation.bench import FULL_REPETITIONS, Bench, Listed
from orchestrator.evaluation.contenders import MAXIMUM_REPETITIONS, STANDARD, Contender, contenders
from orchestrator.evaluation.functions import Function, draw, read
from orchestrator.evaluation.noise import mixed, slowed
from orchestrator.evaluation.parallel import Advance, in_parallel
from orchestrator.evaluation.rows import Row, rows
from orchestrator.evaluation.trial import Outcome, run_trial
from orchestrator.types import Parameter, Point

_CALLPATH = "main"

SERIES: tuple[tuple[Parameter, int], ...] = (
    (Parameter("a", (4, 8, 16, 32, 64)), 128),
    (Parameter("b", (10, 20, 30, 40, 50)), 60),
    (Parameter("c", (1000, 2000, 3000, 4000, 5000)), 6000),
    (Parameter("d", (10, 12, 14, 16, 18)), 20),
)
"""Parameters, each with its value at P₊, one step beyond. The first is the number of processes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all functions of a comparison share; travels to the worker processes."""

    parameters: int
    noise: float
    outliers: float
    contenders: tuple[Contender, ...]
    budgets: tuple[float, ...]
    batch_size: int
    seed: int
    model: str = "pmnf"
    model_options: Mapping[str, Any] = field(default_factory=dict)


def evaluate_synthetic(
    *,
    parameters: int = 2,
    noise: float = 5.0,
    outliers: float = 0.0,
    functions: int = 100,
    strategies: Sequence[str] = STANDARD,
    budgets: Sequence[float] = (10.0,),
    seed: int = 0,
    functions_file: Path | None = None,
    tolerance: float = 5.0,
    batch_size: int = 1,
    model: str = "pmnf",
    model_options: Mapping[str, Any] | None = None,
    workers: int | None = None,
    advance: Advance | None = None,
) -> list[Row]:
    """Compare strategies on synthetic functions; see `synthetic_outcomes` and `Row`."""
    outcomes = synthetic_outcomes(
        parameters=parameters,
        noise=noise,
        outliers=outliers,
        functions=functions,
        strategies=strategies,
        budgets=budgets,
        seed=seed,
        functions_file=functions_file,
        batch_size=batch_size,
        model=model,
        model_options=model_options,
        workers=workers,
        advance=advance,
    )
    return rows(outcomes, tolerance)


def synthetic_outcomes(
    *,
    parameters: int,
    noise: float,
    functions: int,
    strategies: Sequence[str],
    budgets: Sequence[float],
    seed: int,
    outliers: float = 0.0,
    functions_file: Path | None = None,
    batch_size: int = 1,
    model: str = "pmnf",
    model_options: Mapping[str, Any] | None = None,
    workers: int | None = None,
    advance: Advance | None = None,
) -> list[Outcome]:
    """Run every contender at every budget on every function.

    Parameters
    ----------
    parameters
        Number of parameters, 1 to 4.
    noise
        Bound of the mixed noise in percent. Each function has its own noise, the same for all contenders.
    outliers
        Percent of the runs that are slowed down 2 to 5 times.
    functions
        How many functions.
    strategies
        Labels of contenders.
    budgets
        In percent of the cost of every point with five repetitions; contenders that make sense only with the
        whole matrix run once, at 100 %.
    seed
        Same seed, same outcomes, whatever ``workers``.
    functions_file
        The first ``functions`` expressions of this file, in the parameters a, b, c, d; drawn unless given.
    batch_size
        n_b after the starting set.
    model, model_options
        The registered modeler.
    workers
        Processes; as many as there are cores unless given.
    advance
        Called with the number of finished functions and of all.

    Raises
    ------
    CampaignError
        For an unknown strategy, a number of parameters out of range, or an unusable file.
    """
    if not 1 <= parameters <= len(SERIES):
        raise CampaignError(f"parameters is {parameters}: there are series for 1 to {len(SERIES)}")
    chosen = tuple(contenders(strategies))
    setting = Setting(
        parameters,
        noise,
        outliers,
        chosen,
        tuple(budgets),
        batch_size,
        seed,
        model,
        dict(model_options or {}),
    )
    known: list[Function | None] = [None] * functions if functions_file is None else [*read(functions_file)]
    tasks = [(setting, index, function) for index, function in enumerate(known[:functions])]
    return [outcome for part in in_parallel(_try_function, tasks, workers, advance) for outcome in part]


def synthetic_bench(
    function: Function, parameters: int, noise: float, rng: np.random.Generator, outliers: float = 0.0
) -> Bench:
    """Return ten noisy runs at every point of the grid, and the noise-free truth at P₊ one step beyond.

    Noise is in percent, and so is the share of runs that are slowed down.
    """
    names = tuple(parameter for parameter, _ in SERIES[:parameters])
    points = tuple(
        Point(tuple(zip((p.name for p in names), values, strict=True)))
        for values in product(*(p.values for p in names))
    )
    beyond = Point(tuple((parameter.name, value) for parameter, value in SERIES[:parameters]))
    shape = (len(points), MAXIMUM_REPETITIONS)
    factors = mixed(noise, shape, rng) * slowed(outliers, shape, rng)
    times = {
        point: tuple(float(value) for value in function(point) * factors[index])
        for index, point in enumerate(points)
    }
    cores = {point: point.number(names[0].name) for point in points}
    return Bench(
        Listed(names, points), beyond, {_CALLPATH: times}, times, cores, {_CALLPATH: function(beyond)}
    )


def _try_function(task: tuple[Setting, int, Function | None]) -> list[Outcome]:
    setting, index, function = task
    rng = np.random.default_rng([setting.seed, index])
    if function is None:
        function = draw([parameter for parameter, _ in SERIES[: setting.parameters]], rng)
    bench = synthetic_bench(function, setting.parameters, setting.noise, rng, setting.outliers)
    full_cost = bench.full_cost(FULL_REPETITIONS)
    model = registry.load("model", setting.model)(**setting.model_options)
    outcomes = []
    for contender in setting.contenders:
        for budget in (100.0,) if contender.whole else setting.budgets:
            outcomes += run_trial(
                bench,
                contender,
                model,
                budget_percent=budget,
                full_cost=full_cost,
                batch_size=setting.batch_size,
                seed=(setting.seed, index),
                last=oracle.modeler(function.terms()) if contender.oracle else None,
            )
    return outcomes

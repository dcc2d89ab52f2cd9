"""The synthetic evaluation of Ritter et al., Cost-Effective Empirical Performance Modeling, section IV.

Beside `orchestrator.evaluation.strategies.synthetic`, which compares strategies as campaigns use them: here a
starting set is 9, 13 or 17 points, costs are known, the first point over budget ends the evaluation, and
models of several modelers are compared at the same points, with several numbers of parameters and noise
levels at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from orchestrator import registry
from orchestrator.errors import CampaignError
from orchestrator.evaluation.paper.course import Course, Step, course, measured, until_no_gain
from orchestrator.evaluation.paper.draw import SERIES, bench, draw
from orchestrator.evaluation.parallel import Advance, in_parallel
from orchestrator.evaluation.strategies.bench import FULL_REPETITIONS, Bench
from orchestrator.evaluation.strategies.contenders import MAXIMUM_REPETITIONS, Contender, contenders
from orchestrator.evaluation.strategies.functions import Function, read
from orchestrator.evaluation.strategies.trial import Outcome, fitted, outcome
from orchestrator.models.base import Modeler

STRATEGIES = ("full", "cpf", "gpr")
BUDGETS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
# Runs per round: every run by itself changes little with thousands of runs, and takes hours.
_BATCHES = MappingProxyType({2: 1, 3: 5, 4: 50})
# Of how many functions one is evaluated: more parameters take longer. The published evaluation has 10,000,
# 1000 and 1000.
_SPARED = MappingProxyType({2: 1, 3: 2, 4: 5})
_FUNCTIONS = 100
_PUBLISHED_REPETITIONS = 4  # of every point, and the most of a point, in the published evaluation
# Strategies that look at the models only to divide the time among call paths, of which there is one.
_WITHOUT_MODELS = frozenset({"full", "cpf", "gpr", "hybrid", "random", "grid"})


class Cell(NamedTuple):
    """One panel of figure 5, and who modelled."""

    parameters: int
    noise: float
    modeler: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What is compared; it travels to the worker processes.

    Raises
    ------
    CampaignError
        For what is unknown or out of range.
    """

    # parameters, noise: numbers of model parameters m, and noise levels n in percent: every combination is a
    # cell.
    parameters: tuple[int, ...] = (2, 3, 4)
    noise: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0)
    # How many per cell with two parameters, half of them with three and a fifth with four; or how many per
    # number of parameters, where missing ones are as of 100. They are the same ones at all noise levels.
    functions: int | Mapping[int, int] = _FUNCTIONS
    # A folder with ``m2.json``, ``m3.json``, ``m4.json``, or the file for one number of parameters; functions
    # are drawn unless given.
    functions_file: Path | None = None
    # strategies, modelers: labels of contenders, and registered modelers.
    strategies: tuple[str, ...] = STRATEGIES
    modelers: tuple[str, ...] = ("extra-p",)
    budgets: tuple[float, ...] = BUDGETS  # in percent of the cost of the full matrix with five repetitions
    # Names of `SERIES` that functions have in turn.
    series: tuple[str, ...] = field(default_factory=lambda: tuple(SERIES))
    # Whether noise and repetitions are those of the published evaluation instead of the text's: deviations
    # add up and are the same for all functions, and there are four repetitions, which make 100 %.
    published_noise: bool = False
    # n_b, for all or per number of parameters; 1, 5 and 50 with two, three and four unless given.
    batch_size: int | Mapping[int, int] | None = None
    # λ: rounds without a lower SMAPE that end the evaluation. None: only the budget does, as in figure 4.
    patience: int | None = None
    seed: int = 0  # same seed, same outcomes

    def __post_init__(self) -> None:
        for number in self.parameters:
            if number not in _BATCHES:
                raise CampaignError(f"parameters is {number}: the paper's evaluation has 2, 3 or 4")
        for what, given in (("functions", self.functions), ("batch_size", self.batch_size)):
            for number in given if isinstance(given, Mapping) else ():
                if number not in self.parameters:
                    raise CampaignError(
                        f"{what} has a value for {number} parameters, which are not evaluated: leave it out, "
                        f"or choose among {', '.join(map(str, self.parameters))}"
                    )
        for name in self.series:
            if name not in SERIES:
                raise CampaignError(f"unknown value series {name!r}: use {', '.join(SERIES)}")
        if any(contender.oracle for contender in contenders(self.strategies)):
            raise CampaignError("the oracle has no place in the paper's evaluation: choose other strategies")

    def number(self, parameters: int) -> int:
        """Return how many functions of so many parameters are evaluated."""
        if isinstance(self.functions, Mapping):
            return self.functions.get(parameters, -(-_FUNCTIONS // _SPARED[parameters]))
        return -(-self.functions // _SPARED[parameters])

    def batch(self, parameters: int) -> int:
        """Return n_b with so many parameters."""
        if isinstance(self.batch_size, int):
            return self.batch_size
        return (self.batch_size or {}).get(parameters, _BATCHES[parameters])

    @property
    def most_repetitions(self) -> int:
        """Most runs of a point."""
        return _PUBLISHED_REPETITIONS if self.published_noise else MAXIMUM_REPETITIONS

    @property
    def full_repetitions(self) -> int:
        """Runs of every point that make 100 %."""
        return _PUBLISHED_REPETITIONS if self.published_noise else FULL_REPETITIONS


_Task = tuple[Protocol, int, float, int, Function | None]


def paper_outcomes(
    protocol: Protocol, *, workers: int | None, advance: Advance | None = None
) -> dict[Cell, list[Outcome]]:
    """Return the outcomes of every cell.

    Parameters
    ----------
    protocol
        What is compared.
    workers, advance
        See `orchestrator.evaluation.parallel.in_parallel`.

    Raises
    ------
    CampaignError
        For a file of functions that cannot be used.
    """
    known = {number: _functions(protocol, number) for number in protocol.parameters}
    tasks = [
        (protocol, number, noise, index, known[number][index] if known[number] else None)
        for number, noise in product(protocol.parameters, protocol.noise)
        for index in range(len(known[number]) or protocol.number(number))
    ]
    cells: dict[Cell, list[Outcome]] = {}
    for part in in_parallel(_evaluate, tasks, workers, advance):
        for cell, outcomes in part.items():
            cells.setdefault(cell, []).extend(outcomes)
    order = list(product(protocol.parameters, protocol.noise, protocol.modelers))
    return {Cell(*key): cells[Cell(*key)] for key in order}


def _functions(protocol: Protocol, parameters: int) -> list[Function]:
    """Return the given functions of so many parameters; none where they are drawn."""
    path = protocol.functions_file
    if path is None:
        return []
    names = [parameter.name for parameter, _ in SERIES["published"][:parameters]]
    return read(path / f"m{parameters}.json" if path.is_dir() else path, names)[: protocol.number(parameters)]


def _evaluate(task: _Task) -> dict[Cell, list[Outcome]]:
    protocol, parameters, noise, index, given = task
    series = SERIES[protocol.series[index % len(protocol.series)]][:parameters]
    rng = np.random.default_rng([protocol.seed, parameters, index])
    function = given or draw(series, rng)
    runs = bench(
        function, series, noise, protocol.most_repetitions, None if protocol.published_noise else rng
    )
    modelers: dict[str, Modeler] = {name: registry.load("model", name)() for name in protocol.modelers}
    found: dict[Cell, list[Outcome]] = {Cell(parameters, noise, name): [] for name in modelers}
    for contender in contenders(protocol.strategies):
        shared = contender.strategy in _WITHOUT_MODELS
        steps = _course(protocol, runs, contender, index, None) if shared else None
        for name, modeler in modelers.items():
            own = steps or _course(protocol, runs, contender, index, modeler)
            found[Cell(parameters, noise, name)] += _outcomes(protocol, runs, contender, own, modeler)
    return found


def _course(
    protocol: Protocol, runs: Bench, contender: Contender, index: int, modeler: Modeler | None
) -> Course:
    full = runs.full_cost(protocol.full_repetitions)
    if contender.whole:
        cost = full / len(runs.space.points)
        every = enumerate(runs.space, start=1)
        return Course(tuple(Step(point, protocol.full_repetitions, k * cost, 1) for k, point in every))
    parameters = len(runs.space.parameters)
    return course(
        runs,
        contender,
        most=full * max(protocol.budgets) / 100,
        batch_size=protocol.batch(parameters),
        maximum_repetitions=protocol.most_repetitions,
        seed=(protocol.seed, parameters, index),
        modeler=modeler,
    )


def _outcomes(
    protocol: Protocol, runs: Bench, contender: Contender, steps: Course, modeler: Modeler
) -> list[Outcome]:
    """Return an outcome per budget; one that holds no more than a smaller one has the same model."""
    full = runs.full_cost(protocol.full_repetitions)
    known: dict[int, Outcome] = {}
    outcomes = []
    for budget in (100.0,) if contender.whole else protocol.budgets:
        within = steps.within(full * budget / 100)
        if len(within) not in known:
            stopped = within
            if protocol.patience is not None and not contender.whole:
                stopped = until_no_gain(runs, within, modeler, protocol.patience)
            known[len(within)] = _outcome(runs, contender, stopped, modeler, full)
        outcomes.append(replace(known[len(within)], budget_percent=budget))
    return outcomes


def _outcome(
    runs: Bench, contender: Contender, steps: Sequence[Step], modeler: Modeler, full: float
) -> Outcome:
    [callpath] = runs.truth
    done = measured(steps)
    models = fitted(modeler, runs.measured(done)) if done else ()
    return outcome(
        runs,
        contender,
        callpath,
        models[0] if models else None,
        budget_percent=0.0,
        cost_percent=100.0 * steps[-1].spent / full if steps else 0.0,
        done=done,
    )

"""The contract of a strategy: what it may know, and what it proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Model
from orchestrator.types import Measurements, Parameter, Point, Value
from orchestrator.units import CostUnit

Costs = Callable[[Sequence[Point]], Sequence[float] | NDArray[np.float64]]
"""Expected core-seconds of one run at each of several points."""


class Space(Protocol):
    """The search space: iterated lazily, in lexicographic order of the parameters' values."""

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...  # noqa: D102

    def __iter__(self) -> Iterator[Point]: ...

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]: ...  # noqa: D102

    def __contains__(self, point: object) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that a strategy may know. A proposal is a pure function of the view and the ``rng``.

    Attributes
    ----------
    space
        The search space, without points where the program fails (never contains an evaluation point).
    evaluation_point
        P₊, where the models must hold.
    measurements, models
        What is known so far; empty before the first round.
    done
        Time repetitions per point that were proposed so far: measured, or given up for good.
    infeasible
        Points at which runs were given up; never propose them again.
    costs
        Expected core-seconds of one time run at each of several points: predicted by the models when there
        are any, else by the user's estimate, else by a monotone guess. Only ratios count in the latter case.
    budget_left
        Core-seconds neither spent nor reserved, nor kept back for the validation.
    batch_size
        n_b, points per round; a strategy may take more where runs are nearly free.
    initial_repetitions, maximum_repetitions
        Repetitions per new point, and most repetitions of one point.
    round
        Number of the round to propose, from 1.
    cores
        Cores that runs at several points occupy, P₊ included; None where that is unknown.
    first
        Core-seconds that the first run at each of several points brings along, because effort is counted
        there, too; None where nothing is.
    cost_is_relative
        True while ``costs`` is only a guess whose ratios count: it is not compared with the budget.
    unit
        In which reasons say costs.
    kept
        Core-seconds kept back for the validation.
    """

    space: Space
    evaluation_point: Point | None
    measurements: Measurements
    models: tuple[Model, ...]
    done: Mapping[Point, int]
    infeasible: frozenset[Point]
    costs: Costs
    budget_left: float
    batch_size: int
    initial_repetitions: int
    maximum_repetitions: int
    round: int
    cost_is_relative: bool = False
    first: Costs | None = None
    cores: Costs | None = None
    unit: CostUnit = "core-hours"
    kept: float = 0.0

    def cost(self, point: Point) -> float:
        """Return the expected core-seconds of one time run at one point."""
        return float(self.costs([point])[0])


@dataclass(frozen=True, slots=True)
class Choice:
    """``repetitions`` further runs at ``point``, and why, for a human to read."""

    point: Point
    repetitions: int
    reason: str


class Nothing(Sequence[Choice]):
    """An empty proposal that says why: the stop rule that holds, and the reason for a human to read.

    ``exhausted``: nothing that is affordable would help, with what would; ``converged``: no run of the search
    space would, at any price. ``for_want_of_budget``: with more of it there might be something. ``useful``: a
    point that the reason names, at which a run would help that the budget or the search space does not hold.
    """

    def __init__(
        self, rule: str, reason: str, for_want_of_budget: bool = True, useful: Point | None = None
    ) -> None:
        self.rule = rule
        self.reason = reason
        self.for_want_of_budget = for_want_of_budget
        self.useful = useful

    def __len__(self) -> int:
        return 0

    @overload
    def __getitem__(self, index: int) -> Choice: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Choice]: ...
    def __getitem__(self, index: int | slice) -> Choice | Sequence[Choice]:
        return ()[index]


class Strategy(Protocol):
    """Choose what to measure next. An empty proposal means that nothing is left to measure.

    `Nothing` is an empty proposal that says why.
    """

    def __call__(self, view: View, rng: np.random.Generator) -> Sequence[Choice]:
        """Propose a round; round 1 is the starting set and ignores ``batch_size``."""
        ...

"""Small search spaces and views for the tests of strategies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.models.base import Model, Prediction, document
from orchestrator.strategies.base import Choice, View
from orchestrator.types import Measurement, Measurements, Parameter, Point, Value


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def everything(point: Point) -> bool:
    return True


@dataclass(frozen=True)
class Box:
    """All combinations that satisfy a predicate, never held in memory."""

    parameters: tuple[Parameter, ...]
    allowed: Callable[[Point], bool] = everything

    def __iter__(self) -> Iterator[Point]:
        names = [p.name for p in self.parameters]
        for values in product(*(p.values for p in self.parameters)):
            point = Point(tuple(zip(names, values, strict=True)))
            if self.allowed(point):
                yield point

    def within(self, fixed: Mapping[str, Value]) -> Iterator[Point]:
        return (point for point in self if all(point[name] == value for name, value in fixed.items()))

    def __contains__(self, point: object) -> bool:
        return (
            isinstance(point, Point)
            and [name for name, _ in point.items] == [p.name for p in self.parameters]
            and all(point[p.name] in p.values for p in self.parameters)
            and self.allowed(point)
        )


def numbers(point: Point) -> list[float]:
    return [float(value) for _, value in point.items if not isinstance(value, str)]


def cost(point: Point) -> float:
    """Core-seconds that grow in every parameter."""
    return math.prod(1.0 + 0.1 * number for number in numbers(point))


def measured(point: Point, repetition: int, callpath: int = 0) -> float:
    """A time with ±3 % of reproducible noise."""
    noise = 0.03 * np.sin(97.0 * sum(numbers(point)) + 31.0 * repetition + 17.0 * callpath)
    return float((cost(point) + callpath) * (1.0 + noise))


def measurements(done: Mapping[Point, int], names: Sequence[str], callpaths: int = 2) -> Measurements:
    items = tuple(
        Measurement(
            f"main->f{number}",
            "time",
            {
                point: tuple(measured(point, repetition, number) for repetition in range(repetitions))
                for point, repetitions in done.items()
            },
        )
        for number in range(callpaths)
    )
    return Measurements(tuple(names), items if done else ())


@dataclass(frozen=True)
class TrueModel:
    """Predicts ``factor`` times the noise-free time."""

    callpath: str
    factor: float = 1.0
    metric: str = "time"
    expression: str = "the truth"
    category: tuple[tuple[str, str], ...] = ()
    parameters: tuple[str, ...] = ()
    noise: float = 0.03
    smape: float = 0.0
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return document(self)

    def value(self, points: Sequence[Point]) -> NDArray[np.float64]:
        return self.predict(points).value

    def expected(self, points: Sequence[Point]) -> NDArray[np.float64]:
        return self.predict(points).value

    def predict(self, points: Sequence[Point]) -> Prediction:
        values = self.factor * np.array([cost(point) for point in points])
        return Prediction(values, 0.9 * values, 1.1 * values)


def make_view(
    space: Box,
    *,
    done: Mapping[Point, int] | None = None,
    evaluation_point: Point | None = None,
    infeasible: frozenset[Point] = frozenset(),
    models: tuple[Model, ...] = (),
    budget_left: float = float("inf"),
    batch_size: int = 3,
    initial_repetitions: int = 2,
    maximum_repetitions: int = 4,
    round: int = 1,
    cost: Callable[[Point], float] = cost,
    cost_is_relative: bool = False,
) -> View:
    done = done or {}
    usable = {point: repetitions for point, repetitions in done.items() if point not in infeasible}
    return View(
        space=space,
        evaluation_point=evaluation_point,
        measurements=measurements(usable, [p.name for p in space.parameters]),
        models=models,
        done=done,
        infeasible=infeasible,
        costs=lambda points: [cost(point) for point in points],
        budget_left=budget_left,
        batch_size=batch_size,
        initial_repetitions=initial_repetitions,
        maximum_repetitions=maximum_repetitions,
        round=round,
        cost_is_relative=cost_is_relative,
    )


def after(view: View, choices: Sequence[Choice]) -> View:
    """The view of the next round, when every choice has been measured at its expected cost."""
    done = dict(view.done)
    spent = 0.0
    for choice in choices:
        done[choice.point] = done.get(choice.point, 0) + choice.repetitions
        spent += choice.repetitions * view.cost(choice.point)
    names = [p.name for p in view.space.parameters]
    return replace(
        view,
        done=done,
        measurements=measurements(done, names),
        budget_left=view.budget_left - spent,
        round=view.round + 1,
    )

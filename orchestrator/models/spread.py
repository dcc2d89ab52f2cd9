"""Fits that know nothing of each other and take seconds each: whoever asks for them may spread them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from orchestrator.models.base import Model, Modeler
from orchestrator.types import Measurements

Spreader = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""What maps a function over tasks, and gives the results in the order of tasks: `map`, or processes."""

Task = TypeVar("Task")
Result = TypeVar("Result")

_SPREADER: ContextVar[Spreader] = ContextVar("spreader", default=map)


def spread_by(spreader: Spreader, modeler: Modeler) -> Modeler:
    """Return a modeler that gives the same models, whose fits are spread."""

    def model(measurements: Measurements) -> tuple[Model, ...]:
        token = _SPREADER.set(spreader)
        try:
            return modeler(measurements)
        finally:
            _SPREADER.reset(token)

    return model


def spread(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """Map a function over tasks, one after another unless somebody spreads them; results in their order.

    The function may have no side effects.
    """
    return iter(_SPREADER.get()(work, tasks))

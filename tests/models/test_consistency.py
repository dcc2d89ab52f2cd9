"""A call path that is predicted to take less than what it includes is reported, with numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.models.base import Prediction
from orchestrator.models.consistency import Contradiction, contradictions, sentence
from orchestrator.types import Point

TOP = Point.of(p=64)
RUN = {"main": 3.1, "main->Solve": 3.0, "main->Solve->a": 1.0, "main->Solve->b": 1.9}


@dataclass(frozen=True)
class Known:
    """What a model predicts at the one point, with half its interval."""

    callpath: str
    value: float
    half: float = 0.1
    metric: str = "time"
    category: tuple[tuple[str, str], ...] = ()

    def predict(self, points: Sequence[Point]) -> Prediction:
        value = np.full(len(points), self.value)
        return Prediction(value, value - self.half, value + self.half, "s")


def found(*models: Known, runs: Sequence[Mapping[str, float]] = (RUN,)) -> list[Contradiction]:
    chosen: Any = models
    return contradictions(chosen, TOP, runs, "time")


SOLVE, A, B = Known("main->Solve", 3.2), Known("main->Solve->a", 2.0), Known("main->Solve->b", 2.4)


def test_a_parent_below_its_children_is_reported_with_numbers() -> None:
    [item] = found(SOLVE, A, B)
    assert (item.value, item.total, item.beyond) == (3.2, 4.4, True)
    assert item.children == ("main->Solve->a", "main->Solve->b")
    text = sentence(item, TOP)
    assert text.startswith("main->Solve: predicted 3.2 s at P(p=64), but the 2 parts of Solve together 4.4 s")
    assert "at least one of these models is wrong" in text


def test_wide_intervals_are_told_from_contradictions() -> None:
    [item] = found(Known("main->Solve", 3.2, 2.0), A, B)
    assert not item.beyond and "which their intervals permit" in sentence(item, TOP)


def test_parents_that_take_longer_are_fine() -> None:
    assert found(Known("main->Solve", 4.35), A, B) == [], "rounding"
    assert found(Known("main->Solve", 9.0), A, B) == []
    assert found(A, B) == []
    assert found(SOLVE, Known("main->Solve->a", float("nan")), B) == []


def test_call_paths_that_do_not_include_others_are_not_compared() -> None:
    exclusive = {**RUN, "main->Solve": 0.2}
    assert found(SOLVE, A, B, runs=[RUN, exclusive]) == []
    assert found(SOLVE, A, B, runs=[]) == []
    assert found(SOLVE, A, B, runs=[{"main->Solve": 3.0}]) == [], "never measured together"


def test_only_the_nearest_caller_includes() -> None:
    [item] = found(Known("main", 5.0), SOLVE, A, B)
    assert item.callpath == "main->Solve"

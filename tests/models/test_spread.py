"""Fits that are spread over processes: the same models, learners chosen once, and other processes at work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from orchestrator import cores
from orchestrator.models import selection
from orchestrator.models.base import Modeler
from orchestrator.models.pmnf import modeler as pmnf
from orchestrator.models.splines import modeler as splines
from orchestrator.models.spread import spread_by
from orchestrator.types import Measurement, Measurements, Point

_Truth = Callable[[float, float], float]


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have two cores; give where tasks were done, in their order."""
    monkeypatch.setattr(cores, "_WORTH", 0.0)
    monkeypatch.setattr(cores, "_cores", lambda: 2)
    return []


def spread_with(processes: list[int], modeler: Modeler) -> Modeler:
    def spread(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        for result, process in cores.spread(lambda task: (work(task), os.getpid()), tasks):
            processes.append(process)
            yield result

    return spread_by(spread, modeler)


def measured(truth: _Truth, ranks: Sequence[int], sizes: Sequence[int]) -> Measurements:
    points = {Point.of(p=p, n=n): (truth(p, n),) for p, n in product(ranks, sizes)}
    return Measurements(("p", "n"), tuple(Measurement(name, "time", points) for name in ("a", "b", "c")))


def test_families_that_are_compared_in_processes_give_the_same_models(processes: list[int]) -> None:
    families = ["splines"]
    known = measured(lambda p, n: p * n * (3.0 if p * n % 40 < 20 else 1.0), range(1, 17), range(1, 6))
    alone = selection.modeler(families=families)(known)
    several = spread_with(processes, selection.modeler(families=families))
    assert [model.document() for model in several(known)] == [model.document() for model in alone]
    assert {*processes} - {os.getpid()}, "other processes took part"
    assert [model.document() for model in several(known)] == [model.document() for model in alone], "again"


def test_learners_of_one_call_path_are_compared_in_processes(processes: list[int]) -> None:
    known = measured(lambda p, n: p * n * (3.0 if p * n % 40 < 20 else 1.0), range(1, 17), range(1, 6))
    one = replace(known, items=known.items[:1])
    several = spread_with(processes, splines.modeler())(one)
    assert [model.document() for model in several] == [model.document() for model in splines.modeler()(one)]
    assert {*processes} - {os.getpid()}, "other processes took part"


def test_formulas_that_are_searched_in_processes_are_the_same(
    processes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pmnf, "_TOGETHER", 1)
    rng = np.random.default_rng(0)
    known = measured(lambda p, n: float((3 + p * n) * rng.uniform(0.97, 1.03)), (2, 4, 8), (2, 4, 8))
    several = spread_with(processes, pmnf.modeler())(known)
    assert [model.document() for model in several] == [model.document() for model in pmnf.modeler()(known)]
    assert {*processes} - {os.getpid()}, "other processes took part"


def test_call_paths_with_too_few_points_for_a_choice_go_to_processes_as_well(processes: list[int]) -> None:
    known = measured(lambda p, n: p * n, (2, 4), (2, 4))
    several = spread_with(processes, splines.modeler())(known)
    assert [model.document() for model in several] == [model.document() for model in splines.modeler()(known)]
    assert {*processes} - {os.getpid()}, "other processes took part"

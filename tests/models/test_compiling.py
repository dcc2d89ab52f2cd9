"""Who is told that the modeler is compiled, and what is compiled beforehand."""

from __future__ import annotations

import subprocess
import sys

import numba
import pytest

from orchestrator.models import compiling
from orchestrator.models.pmnf import kernels

# Prints how many overloads the loops of the modeler have, after compiling and after fitting other data.
COUNT = """
import sys
from numba.core.registry import CPUDispatcher
from orchestrator.models import compiling
from orchestrator.models.selection import modeler
from orchestrator.types import Measurement, Measurements, Point
compiling.compile_now()
ours = [module for name, module in sys.modules.items() if name.startswith("orchestrator.models")]
loops = {item for module in ours for item in vars(module).values() if isinstance(item, CPUDispatcher)}
count = lambda: sum(len(item.signatures) for item in loops)
before = count()
points = [(x, y) for x in (1, 2, 3, 5, 9) for y in (2, 4, 6, 8, 9)]
values = {Point.of({"x": x, "y": y}): (x * y + 1.0, x * y + 1.5) for x, y in points}
items = tuple(Measurement("main", metric, values) for metric in ("time", "visits"))
modeler()(Measurements(("x", "y"), items))
print(before, count())
"""


def test_the_first_compilation_is_told_once_and_no_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_tell", [])
    told: list[str] = []
    compiling.when_compiling(lambda: told.append("compiling"))
    twice = numba.njit(lambda x: 2 * x)  # not kept on disk, so always compiled
    assert told == []
    assert twice(1) == 2
    assert told == ["compiling"]
    assert twice(1.5) == 3, "compiled for another type"
    assert told == ["compiling"]


def test_the_loops_of_the_modeler_are_such_functions() -> None:
    assert isinstance(kernels.compiled(lambda x: x), numba.core.registry.CPUDispatcher)


@pytest.mark.slow
def test_what_is_compiled_beforehand_is_all_that_models_need() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before == after > 5

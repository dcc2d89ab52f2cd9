"""Who is told that the modeler is compiled."""

from __future__ import annotations

import numba
import pytest

from orchestrator.models import compiling, machine_code


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
    assert isinstance(machine_code.compiled(lambda x: x), numba.core.registry.CPUDispatcher)

"""Who is told that the modeler is compiled, and what is kept of it on disk."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def _calls_of_a_later_process(numbers: Sequence[int]) -> Any:
    """Return a function of this file, compiled or loaded as by a process of its own, after some calls."""
    function: Any = machine_code.compiled(_doubled)
    assert [function(number) for number in numbers] == [2 * number for number in numbers]
    return function


def _doubled(number: int) -> int:
    return 2 * number


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the directory where machine code is kept."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def test_machine_code_is_kept_for_later_processes(kept: Path) -> None:
    assert not _calls_of_a_later_process([1]).stats.cache_hits
    assert any(kept.rglob("*.nbi"))
    assert _calls_of_a_later_process([2]).stats.cache_hits


def test_without_room_for_machine_code_it_serves_this_process(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", full)
    assert not _calls_of_a_later_process([1, 2]).stats.cache_hits


def test_without_a_place_for_machine_code_it_serves_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither beside the source nor in the user's cache."""
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    assert not _calls_of_a_later_process([1, 2]).stats.cache_hits


def test_machine_code_that_was_cut_is_made_again(kept: Path) -> None:
    _calls_of_a_later_process([1])
    for file in kept.rglob("*.nb[ci]"):
        file.write_bytes(b"")
    assert not _calls_of_a_later_process([2]).stats.cache_hits
    assert _calls_of_a_later_process([3]).stats.cache_hits

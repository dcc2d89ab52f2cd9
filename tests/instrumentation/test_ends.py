"""Whatever way a program ends, it leaves its counts or says clearly why they cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.readers import effort
from tests.instrumentation import tools


@pytest.fixture(scope="module")
def program(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ends")
    return tools.compile_program(tools.compiler("gcc", cache), "ends.c", folder / "ends")


@pytest.mark.parametrize("how", ["return", "exit", "_exit", "quick_exit", "chdir", "fork"])
def test_a_whole_run_leaves_its_counts(program: Path, how: str, tmp_path: Path) -> None:
    assert tools.start([program, how], tmp_path).returncode == 0
    visits = tools.counts(tmp_path)["visits"]
    assert visits == {"main": 1, "main->loop": 1}  # of a child that forks, nothing


@pytest.mark.parametrize(("how", "number"), [("abort", 6), ("term", 15), ("segv", 11)])
def test_a_run_ended_by_a_signal_says_so(program: Path, how: str, number: int, tmp_path: Path) -> None:
    assert tools.start([program, how], tmp_path).returncode == -number
    with pytest.raises(ReadError, match=f"rank 0 was ended by signal {number}"):
        effort.profile(tmp_path)


def test_a_killed_run_leaves_nothing(program: Path, tmp_path: Path) -> None:
    assert tools.start([program, "kill"], tmp_path).returncode == -9
    with pytest.raises(ReadError, match="killed"):
        effort.profile(tmp_path)


def test_the_directory_can_be_chosen(program: Path, tmp_path: Path) -> None:
    tools.start([program], tmp_path, ORCHESTRATOR_EFFORT_DIRECTORY="there")
    assert [path.parent.name for path in list(tmp_path.rglob("*.effort"))] == ["there"]


def test_counts_that_cannot_be_written_are_complained_of(program: Path, tmp_path: Path) -> None:
    (tmp_path / "effort").write_text("in the way")
    done = tools.start([program], tmp_path)
    assert done.returncode == 0
    assert "counts cannot be written" in done.stderr and "effort/rank-0" in done.stderr


def test_a_stripped_program_is_refused(cache: Path, tmp_path: Path) -> None:
    program = tools.compile_program(tools.compiler("gcc", cache), "ends.c", tmp_path / "stripped", "-s")
    assert tools.start([program], tmp_path).returncode == 0
    with pytest.raises(ReadError, match="have no names: link it without -s"):
        effort.profile(tmp_path)

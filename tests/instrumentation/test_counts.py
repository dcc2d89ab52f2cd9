"""Basic blocks and visits per call path, exact and the same with both compilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.instrumentation import tools

# What can be said of every call path without knowing how a compiler lays out blocks.
VISITS = {
    "main": 1,
    "main->loop": 2,
    "main->many": 2,
    "main->many->loop": 2,
    "main->clear": 1,
    "main->accessed": 1,
    "main->templated": 1,
    "main->catcher": 1,
    "main->catcher->thrower": 1,
    "main->catcher->thrower->loop": 1,
    "main->catcher->loop": 2,  # after the exception
    "main->fibonacci": 177,  # recursion is one call path
    "main->sorted": 1,
    "main->sorted->compare": 12,  # called by the C library
    "main->sorted->loop": 1,
    "main->in_thread": 2,  # where the threads were started
    "main->in_thread->loop": 2,
}
# Loops of n rounds: the call path, and loops of n rounds at it.
LOOPS = {
    "main->loop": 2,
    "main->clear": 1,
    "main->accessed": 1,
    "main->templated": 1,
    "main->in_thread->loop": 2,
}


@pytest.fixture(scope="module", params=["g++", "clang++"])
def runs(request: pytest.FixtureRequest, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("calls")
    program = tools.compile_program(
        tools.compiler(request.param, cache), "calls.cpp", folder / "calls", "-pthread"
    )
    for n in (100, 200, 300):
        assert tools.start([program, str(n)], folder / str(n)).returncode == 0
    return [folder / str(n) for n in (100, 200, 300)]


@pytest.mark.slow
def test_every_call_path_is_found_with_its_visits(runs: list[Path]) -> None:
    for folder in runs:
        visits = tools.counts(folder)["visits"]
        own = {path: value for path, value in visits.items() if path.startswith("main")}
        assert {path: tools.below(own, path) for path in VISITS if path != "main"} == {
            path: value for path, value in VISITS.items() if path != "main"
        }
        assert own["main"] == 1
        assert len(own) == len(VISITS)


def test_blocks_grow_with_every_round_of_every_loop(runs: list[Path]) -> None:
    blocks = [tools.counts(folder)["basic_blocks"] for folder in runs]
    for path, loops in LOOPS.items():
        first, second, third = (tools.below(values, path) for values in blocks)
        assert third - second == second - first, path  # no remainder loops, no memset
        assert (second - first) % (100 * loops) == 0, path
        assert second - first >= 100 * loops, path


def test_what_does_not_depend_on_n_stays_as_it_is(runs: list[Path]) -> None:
    first, second, _ = (tools.counts(folder)["basic_blocks"] for folder in runs)
    for path in set(VISITS) - set(LOOPS) - {"main"}:
        assert tools.below(first, path) == tools.below(second, path), path


def test_a_program_without_mpi_has_no_bytes(runs: list[Path]) -> None:
    assert set(tools.counts(runs[0])) == {"visits", "basic_blocks"}


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_repeated_runs_count_the_same(name: str, cache: Path, tmp_path: Path) -> None:
    program = tools.compile_program(
        tools.compiler(name, cache), "threads.c", tmp_path / "threads", "-pthread", "-Wno-unknown-pragmas"
    )
    for number in range(3):
        assert tools.start([program], tmp_path / str(number)).returncode == 0
    first, *others = (tools.counts(tmp_path / str(number)) for number in range(3))
    assert all(other == first for other in others)
    assert tools.below(first["visits"], "starter->work") == 20
    assert tools.below(first["visits"], "starter->work->loop") == 60


def test_openmp_threads_count_where_their_region_is_called(cache: Path, tmp_path: Path) -> None:
    program = tools.compile_program(
        tools.compiler("gcc", cache), "threads.c", tmp_path / "threads", "-pthread", "-fopenmp"
    )
    for threads in ("1", "4"):
        assert tools.start([program], tmp_path / threads, OMP_NUM_THREADS=threads).returncode == 0
        visits = tools.counts(tmp_path / threads)["visits"]
        assert visits["main->region->region._omp_fn.0->loop"] == 40
        assert visits["main->other->region->region._omp_fn.0->loop"] == 20
        assert visits["main->other->other._omp_fn.0->loop"] == 20
        assert visits["main->region->region._omp_fn.0"] == int(threads)

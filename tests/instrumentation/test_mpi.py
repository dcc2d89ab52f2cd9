"""Calls, bytes and communicator sizes of MPI operations, against figures worked out by hand."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.errors import ReadError
from orchestrator.instrumentation import build as build
from orchestrator.instrumentation.build import Build
from orchestrator.readers import effort
from tests.instrumentation import tools
from tests.requirements import need

pytestmark = pytest.mark.mpi

P = 4
INT = 4
TRIANGLE = sum(range(1, P + 1))  # elements that all ranks give when rank r gives r + 1

# Call path below main -> calls, bytes sent and received, summed over ranks. What one rank sends to all counts
# once per receiver, itself included.
EXPECTED = {
    "collective->MPI_Bcast": (P, P * 10 * INT, P * 10 * INT),
    "collective->MPI_Scatter": (P, P * 3 * INT, P * 3 * INT),
    "collective->MPI_Gather": (P, P * 3 * INT, P * 3 * INT),
    "collective->MPI_Allgather": (P, P * P * 3 * INT, P * P * 3 * INT),
    "collective->MPI_Alltoall": (P, P * P * 3 * INT, P * P * 3 * INT),
    "collective->MPI_Reduce": (P, P * 5 * INT, P * 5 * INT),
    "collective->MPI_Allreduce": (2 * P, (P * P + P * (P - 1)) * 5 * INT, (P * P + P * (P - 1)) * 5 * INT),
    "collective->MPI_Barrier": (P, 0, 0),
    "collective->MPI_Gatherv": (P, TRIANGLE * INT, TRIANGLE * INT),
    "collective->MPI_Scatterv": (P, TRIANGLE * INT, TRIANGLE * INT),
    "collective->MPI_Allgatherv": (P, P * TRIANGLE * INT, P * TRIANGLE * INT),
    "collective->MPI_Reduce_scatter_block": (P, P * P * 2 * INT, P * P * 2 * INT),
    "collective->MPI_Scan": (P, TRIANGLE * 2 * INT, TRIANGLE * 2 * INT),
    "collective->MPI_Iallreduce": (P, P * P * 5 * INT, P * P * 5 * INT),
    "collective->MPI_Wait": (P, 0, 0),
    "point->MPI_Send": (1 + 2 * P, 7 * INT + P * 4 * INT, 0),
    "point->MPI_Ssend": (P, 0, 0),  # to nobody
    "point->MPI_Bsend": (P, 0, 0),
    "point->MPI_Recv": (1, 0, 7 * INT),  # what came, not what there was room for
    "point->MPI_Irecv": (4 * P, 0, 0),
    "point->MPI_Isend": (P, P * 9 * INT, 0),
    "point->MPI_Waitall": (4 * P, 0, P * (9 + 3 * 6) * INT),
    "point->MPI_Sendrecv": (P, P * 4 * 8, P * 4 * 8),
    "point->MPI_Send_init": (P, 0, 0),
    "point->MPI_Recv_init": (P, 0, 0),
    "point->MPI_Startall": (3 * P, 3 * P * 6 * INT, 0),
    "point->MPI_Request_free": (2 * P, 0, 0),
    "point->MPI_Waitany": (P, 0, P * 2 * INT),
    "point->MPI_Waitsome": (P, 0, P * 2 * INT),
    "point->MPI_Wait": (P, 0, 0),  # cancelled
    "MPI_Allreduce": (P, P * 2 * INT, P * 2 * INT),
    "MPI_Barrier": (P, 0, 0),
}


def mpi(name: str, cache: Path) -> tuple[Build, list[str]]:
    compiler, launcher = tools.MPI[name]
    need(shutil.which(compiler) and shutil.which(launcher.split()[0]), f"{name} ({compiler})")
    return build.build(compiler, cache), [*launcher.split(), "-n", str(P)]


@pytest.fixture(params=tools.MPI)
def library(request: pytest.FixtureRequest, cache: Path) -> tuple[Build, list[str]]:
    return mpi(request.param, cache)


@pytest.mark.slow
def test_every_operation_counts_calls_and_bytes(library: tuple[Build, list[str]], tmp_path: Path) -> None:
    built, launcher = library
    program = tools.compile_program(built, "communicate.c", tmp_path / "communicate")
    done = tools.start([*launcher, program], tmp_path)
    assert done.returncode == 0, done.stderr
    found = tools.counts(tmp_path)
    metrics = ("visits", "bytes_sent", "bytes_received")
    counted = {path: tuple(found[metric][f"main->{path}"] for metric in metrics) for path in EXPECTED}
    assert counted == EXPECTED
    others = {path for path, value in found["bytes_sent"].items() if value} - {f"main->{p}" for p in EXPECTED}
    assert not others
    assert found["visits"]["main"] == P
    sizes = tools.counts(tmp_path, "mean")["communicator_size"]
    assert sizes["main->MPI_Allreduce"] == P / 2  # a communicator of half the ranks
    assert sizes["main->collective->MPI_Bcast"] == P
    assert "main->collective->MPI_Wait" not in sizes


def test_preloaded_it_counts_a_program_as_it_is(library: tuple[Build, list[str]], tmp_path: Path) -> None:
    built, launcher = library
    program = tmp_path / "plain"
    tools.start([built.compiler, tools.PROGRAMS / "communicate.c", "-o", program], tmp_path)
    libraries = ":".join(map(str, build.preload(built)))
    done = tools.start([*launcher, "env", f"LD_PRELOAD={libraries}", program], tmp_path)
    assert done.returncode == 0, done.stderr
    found = tools.counts(tmp_path)
    assert set(found) == {"visits", "bytes_sent", "bytes_received"}  # absent is not zero: no basic blocks
    sent = sum(values[1] for values in EXPECTED.values())
    assert sum(found["bytes_sent"].values()) == sent


def test_completing_no_requests_counts_nothing_and_harms_nothing(
    library: tuple[Build, list[str]], tmp_path: Path
) -> None:
    built, launcher = library
    program = tools.compile_program(built, "nothing.c", tmp_path / "nothing")
    done = tools.start([*launcher, program], tmp_path)
    assert done.returncode == 0, done.stderr
    found = tools.counts(tmp_path)
    for name in ("Waitall", "Testall", "Waitany", "Testany", "Waitsome", "Testsome"):
        assert found["visits"][f"main->complete->MPI_{name}"] == 3 * P
        assert found["bytes_received"].get(f"main->complete->MPI_{name}", 0) == 0


def test_an_aborted_program_is_refused(library: tuple[Build, list[str]], tmp_path: Path) -> None:
    built, launcher = library
    program = tools.compile_program(built, "communicate.c", tmp_path / "communicate")
    # Open MPI's launcher hangs once in a while after an abort; the time limit of an attempt would end it.
    with contextlib.suppress(subprocess.TimeoutExpired):
        assert tools.start([*launcher, program, "abort"], tmp_path).returncode != 0
    with pytest.raises(ReadError, match=r"ended by|have left counts|killed"):
        effort.profile(tmp_path)


def test_without_finalize_counts_are_there_or_it_fails_clearly(
    library: tuple[Build, list[str]], tmp_path: Path
) -> None:
    built, launcher = library
    program = tools.compile_program(built, "communicate.c", tmp_path / "communicate")
    tools.start([*launcher, program, "unfinished"], tmp_path)
    try:
        visits = tools.counts(tmp_path)["visits"]
    except ReadError as error:  # launchers may kill the other ranks once one has left
        assert "rank" in str(error)
    else:
        assert visits["main"] == P
        assert "main->MPI_Finalize" not in visits

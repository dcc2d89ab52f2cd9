"""Ranks started by a real mpiexec end with their attempt, whatever they do about it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.executors.attempt.record import read_record
from orchestrator.types import AttemptRequest
from tests.executors.attempt.attempts import FAST, owners, start
from tests.executors.conftest import Prepared
from tests.requirements import need

pytestmark = pytest.mark.mpi

RANKS = 3
PROGRAM = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, size;
    signal(SIGTERM, SIG_IGN);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) { FILE *ready = fopen("ready", "w"); fprintf(ready, "%d\n", size); fclose(ready); }
    if (argc > 1) { MPI_Finalize(); return 0; }
    for (;;) pause();
}
"""

# Open MPI as root is the launch script's business; here we are it.
MPIS = {
    "mpich": (str(Path(sys.executable).parent / "mpicc"), str(Path(sys.executable).parent / "mpiexec"), ""),
    "openmpi": (
        "mpicc.openmpi",
        "mpiexec.openmpi",
        "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
        "export OMPI_MCA_rmaps_base_oversubscribe=1\n",
    ),
}


@pytest.fixture(params=MPIS)
def script(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    compiler, launcher, environment = MPIS[request.param]
    need(shutil.which(compiler) and shutil.which(launcher), f"{compiler} and {launcher}")
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run([compiler, "-o", "program", "program.c"], cwd=tmp_path, check=True)
    return f"{environment}{launcher} -n {RANKS} {tmp_path}/program"


def running(request: AttemptRequest) -> list[int]:
    """Return the pids of all that execute the program, or were started by its attempt."""
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            program = (entry / "exe").readlink() if entry.name.isdigit() else entry
        except OSError:
            continue
        if program.name == "program" and program.parent in request.directory.parents:
            pids.append(int(entry.name))
    return pids


def wait_for_ranks(request: AttemptRequest) -> None:
    deadline = time.monotonic() + 60
    while not (request.directory / "ready").exists():
        assert time.monotonic() < deadline, (request.directory / "stderr").read_text()
        time.sleep(0.02)
    assert len(running(request)) == RANKS


def test_ranks_that_finish_are_recorded(prepared: Prepared, script: str) -> None:
    request = prepared(f"{script} finish\n")
    with start(request) as process:
        assert process.wait(60) == 0
    record = read_record(request.directory)
    assert record is not None and record.exit_code == 0, (request.directory / "stderr").read_text()
    assert (request.directory / "ready").read_text() == f"{RANKS}\n"


def test_the_limit_ends_every_rank(prepared: Prepared, script: str) -> None:
    request = prepared(f"{script}\n", limit=3.0)
    with start(request, FAST) as process:
        wait_for_ranks(request)
        assert process.wait(60) == 0
    record = read_record(request.directory)
    assert record is not None and record.timed_out
    assert not running(request)


@pytest.mark.parametrize("victim", [0, 1], ids=["guard", "worker"])
def test_no_rank_outlives_the_process_that_owns_it(prepared: Prepared, script: str, victim: int) -> None:
    request = prepared(f"{script}\n")
    with start(request, FAST) as process:
        wait_for_ranks(request)
        os.kill(owners(request)[victim], signal.SIGKILL)
        process.wait(60)
        deadline = time.monotonic() + 30
        while running(request):
            assert time.monotonic() < deadline
            time.sleep(0.02)

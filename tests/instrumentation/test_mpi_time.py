"""Times in MPI operations of programs as they are, with the MPI libraries of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.control import session
from orchestrator.errors import CampaignError, ReadError
from orchestrator.instrumentation import build as build
from orchestrator.journal.state import RunStatus
from orchestrator.launch import mpi
from orchestrator.readers import mpi_time
from tests.applications import demo
from tests.instrumentation import tools
from tests.instrumentation.test_mpi import EXPECTED, P
from tests.requirements import need

pytestmark = pytest.mark.mpi

APPLICATION = demo()


@pytest.fixture(params=tools.MPI)
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[str], Path]:
    """Return a compiler, a launcher, and a program that was built without any of ours."""
    compiler, launcher = tools.MPI[request.param]
    need(shutil.which(compiler) and shutil.which(launcher.split()[0]), f"{request.param} ({compiler})")
    program = tmp_path / "plain"
    tools.start([compiler, "-O0", tools.PROGRAMS / "communicate.c", "-o", program], tmp_path)
    return compiler, [*launcher.split(), "-n", str(P)], program


def preload(compiler: str, cache: Path) -> str:
    return f"LD_PRELOAD={build.timer(build.build(compiler, cache))}"


def test_every_operation_is_timed_at_its_call_site(
    plain: tuple[str, list[str], Path], cache: Path, tmp_path: Path
) -> None:
    compiler, launcher, program = plain
    done = tools.start([*launcher, "env", preload(compiler, cache), program], tmp_path)
    assert done.returncode == 0, done.stderr
    samples = mpi_time.read(tmp_path, APPLICATION)
    sums = {(s.callpath, s.metric): s.value for s in samples if s.aggregate == "sum"}
    counted = {path: sums[f"main->{path}", "visits"] for path in EXPECTED}
    assert counted == {path: calls for path, (calls, _, _) in EXPECTED.items()}
    sent = {path: sums[f"main->{path}", "bytes_sent"] for path in EXPECTED}
    assert sent == {path: count for path, (_, count, _) in EXPECTED.items()}
    times = {path: value for (path, metric), value in sums.items() if metric == "time"}
    assert all(value > 0 for value in times.values())
    [whole] = [
        sample.value
        for sample in mpi_time.read(tmp_path, APPLICATION, inclusive=True)
        if (sample.callpath, sample.metric, sample.aggregate) == ("main", "time", "sum")
    ]
    assert sum(times.values()) == pytest.approx(whole)


def test_completing_no_requests_is_timed_like_any_operation(
    plain: tuple[str, list[str], Path], cache: Path, tmp_path: Path
) -> None:
    compiler, launcher, _ = plain
    program = tmp_path / "nothing"
    tools.start([compiler, "-O0", tools.PROGRAMS / "nothing.c", "-o", program], tmp_path)
    done = tools.start([*launcher, "env", preload(compiler, cache), program], tmp_path)
    assert done.returncode == 0, done.stderr
    samples = mpi_time.read(tmp_path, APPLICATION)
    visits = {s.callpath: s.value for s in samples if (s.metric, s.aggregate) == ("visits", "sum")}
    for name in ("Waitall", "Testall", "Waitany", "Testany", "Waitsome", "Testsome"):
        assert visits[f"main->complete->MPI_{name}"] == 3 * P


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
def test_operations_that_fortran_calls_are_timed(module: str, cache: Path, tmp_path: Path) -> None:
    compiler, launcher = tools.MPI["openmpi"]
    need(shutil.which("mpifort.openmpi") and shutil.which("gfortran"), "mpifort.openmpi with gfortran")
    text = (tools.PROGRAMS / "ring.f90").read_text().replace("use mpi", f"use {module}")
    if module == "mpi_f08":
        text = text.replace("integer :: requests(2),", "type(MPI_Request) :: requests(2)\n integer ::")
    (tmp_path / "ring.f90").write_text(text)
    built = tools.start(["mpifort.openmpi", "-O1", "ring.f90", "-o", "ring"], tmp_path)
    assert built.returncode == 0, built.stderr
    command = [*launcher.split(), "-n", "3", "env", preload(compiler, cache), "./ring"]
    done = tools.start(command, tmp_path)
    assert done.returncode == 0, done.stderr
    samples = mpi_time.read(tmp_path, APPLICATION)
    visits = {s.callpath: s.value for s in samples if (s.metric, s.aggregate) == ("visits", "sum")}
    exchange = next(path.rpartition("->")[0] for path in visits if path.endswith("MPI_Irecv"))
    assert exchange.startswith("main->exchange")
    assert visits == {
        "main": 3,
        "main->MPI_Init": 3,
        f"{exchange}->MPI_Irecv": 9,
        f"{exchange}->MPI_Isend": 9,
        f"{exchange}->MPI_Waitall": 9,
        "main->MPI_Allreduce": 3,
        "main->MPI_Finalize": 3,
    }


def test_a_stripped_program_has_operations_without_functions(
    plain: tuple[str, list[str], Path], cache: Path, tmp_path: Path
) -> None:
    compiler, launcher, program = plain
    tools.start(["strip", program], tmp_path)
    assert tools.start([*launcher, "env", preload(compiler, cache), program], tmp_path).returncode == 0
    found = {sample.callpath for sample in mpi_time.read(tmp_path, APPLICATION)}
    assert {"main", "main->MPI_Bcast", "main->MPI_Waitall"} <= found
    assert all(path.count("->") <= 1 for path in found)


def test_shells_around_the_program_leave_nothing(
    plain: tuple[str, list[str], Path], cache: Path, tmp_path: Path
) -> None:
    compiler, launcher, program = plain
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/bash\n/bin/true\n/bin/ls > /dev/null\n{program}\n")
    script.chmod(0o755)
    assert tools.start([*launcher, "env", preload(compiler, cache), script], tmp_path).returncode == 0
    assert len(list((tmp_path / "mpi-time").iterdir())) == P
    assert mpi_time.read(tmp_path, APPLICATION)


def test_an_aborted_program_is_refused(
    plain: tuple[str, list[str], Path], cache: Path, tmp_path: Path
) -> None:
    compiler, launcher, program = plain
    tools.start([*launcher, "env", preload(compiler, cache), "timeout", "20", program, "abort"], tmp_path)
    with pytest.raises(ReadError, match=r"ended by|have left times|killed|no \*.mpitime"):
        mpi_time.read(tmp_path, APPLICATION)


def test_the_compiler_is_that_of_the_mpi_that_a_program_is_linked_with(
    plain: tuple[str, list[str], Path],
) -> None:
    compiler, _, program = plain
    found = mpi.compiler_for(str(program))
    assert mpi.flavour_of_compiler(found) == mpi.linked_mpi(str(program)) != "unknown"
    assert mpi.flavour_of_compiler(found) == mpi.flavour_of_compiler(str(shutil.which(compiler)))


def test_without_a_compiler_the_missing_mpi_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(CampaignError, match="no mpicc of any MPI, the MPI of"):
        mpi.compiler_for(str(program))


@pytest.mark.slow
def test_a_campaign_measures_a_program_as_it_is(
    plain: tuple[str, list[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, program = plain
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = f"""
name: plain
application: generic
executable: {program}
program: {{arguments: [], ranks: p, environment: {{}}}}
parameters: {{p: [4]}}
measure: {{profiler: mpi, time_limit: 60 s, repetitions: {{initial: 1, maximum: 1}}}}
strategy: full
stop: {{budget: 1 core-hours}}
executor: {{name: local, slots: 4, oversubscribe: true}}
"""
    state = session.run(loader.loads(text, "plain.yaml", tmp_path), tmp_path / "measured")
    [item] = state.runs.values()
    assert item.status is RunStatus.MEASURED, item.reason
    assert {"main", "main->MPI_Init", "main->collective->MPI_Allreduce"} <= set(item.samples["time"])

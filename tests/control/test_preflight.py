"""Launchers that certainly cannot start a campaign's programs; no other ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import preflight
from orchestrator.errors import CampaignError
from orchestrator.launch import mpi

TEXT = """\
name: tiny
application: generic
executable: ./app
program: {{ranks: n, output: [{{callpath: main, pattern: '(.*)'}}]}}
parameters: {{n: [1, 2]}}
stop: {{budget: 1}}
executor: {{name: local, slots: 2, {0}}}
"""


CACHED = (mpi.detect, mpi.flavour_of, mpi.flavour_of_compiler, mpi.linked_mpi, mpi._libraries)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program linked with Open MPI, the launchers of both, and nothing else on PATH."""
    for name, words in (
        ("app", ""),
        ("ldd", "libmpi.so.40 => /opt/none/lib/libmpi.so.40"),
        ("mpiexec", "HYDRA build details:"),
        ("mpiexec.openmpi", "mpiexec (OpenRTE) 4.1.4"),
        ("wrapper", "usage: wrapper COMMAND"),
        ("env", ""),
    ):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{words}'\n")
        path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


def load(options: str, *overrides: str) -> Campaign:
    return loader.loads(TEXT.format(options), base_directory=Path.cwd(), overrides=overrides)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("launcher: 'mpiexec -n {ranks}'", "is of MPICH"),
        ("launcher: mpiexec", "is of MPICH"),
        ("launcher: 'env A=1 B=2 mpiexec -n {ranks}'", "is of MPICH"),
        ("launcher: 'mpirunx -n {ranks}'", "mpirunx of executor.launcher is not on PATH"),
        ("launcher: /no/such/mpiexec", "/no/such/mpiexec of executor.launcher is not on PATH"),
    ],
)
def test_what_cannot_work(options: str, words: str) -> None:
    fault = preflight.fault(load(options), parallel=True)
    assert fault is not None and words in fault.detail and fault.remedy


def test_a_launcher_that_was_found_is_checked_too() -> None:
    Path("mpiexec.openmpi").unlink()
    fault = preflight.fault(load("oversubscribe: false"), parallel=True)
    assert fault is not None and "is of MPICH" in fault.detail


def test_an_absolute_path_is_the_same_with_modules() -> None:
    path = Path.cwd() / "mpiexec"
    fault = preflight.fault(load(f"launcher: {path}, modules: [mpi]"), parallel=True)
    assert fault is not None and f"{path} is of MPICH" in fault.detail


@pytest.mark.parametrize(
    "options",
    [
        "oversubscribe: false",  # the launcher that fits is found
        "launcher: 'mpiexec.openmpi -n {ranks}'",
        "launcher: 'wrapper mpiexec -n {ranks}'",
        "launcher: 'mpiexec -n {ranks}', modules: [openmpi]",
        "launcher: 'mpirunx -n {ranks}', modules: [openmpi]",
        "launcher: 'mpirunx -n {ranks}', prologue: ['PATH=/opt/bin:$PATH']",
        "launcher: 'mpirunx -n {ranks}', environment: {PATH: /opt/bin}",
        "launcher: './mpirunx -n {ranks}'",
    ],
)
def test_what_may_work(options: str) -> None:
    assert preflight.fault(load(options), parallel=True) is None


def test_one_rank_runs_under_any_mpi_and_a_rehearsal_under_none() -> None:
    assert preflight.fault(load("launcher: 'mpiexec -n {ranks}'"), parallel=False) is None
    rehearsal = load("launcher: mpirunx", "executor.name=simulated", "executor.truth={main: '1'}")
    assert preflight.fault(rehearsal, parallel=True) is None
    other = load("launcher: 'mpirunx -n {ranks}'", "executor.name=slurm")
    assert preflight.fault(other, parallel=True) is None


def test_mpi_operations_cannot_be_timed_without_a_compiler_of_the_programs_mpi(tmp_path: Path) -> None:
    campaign = load("launcher: 'mpiexec.openmpi -n {ranks}'", "measure.profiler=mpi")
    fault = preflight.fault(campaign, parallel=False)
    assert fault is not None
    assert fault.detail == (
        f"measure.profiler mpi: no mpicc of Open MPI, the MPI of {tmp_path}/app, beside it, beside its "
        "library, beside its mpiexec or on PATH"
    )
    assert "load its module" in fault.remedy
    assert preflight.fault(load("launcher: 'mpiexec.openmpi -n {ranks}'"), parallel=False) is None


@pytest.mark.parametrize("profiler", ["hpctoolkit", "tau"])
def test_profiles_that_cannot_be_read_are_not_made(profiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round was spent, and all its runs were given up."""
    campaign = load("oversubscribe: false", f"measure.profiler={profiler}")
    monkeypatch.setattr(preflight, "find_spec", lambda _: None)
    fault = preflight.fault(campaign, parallel=False)
    assert fault is not None and "llnl-hatchet" in fault.detail and "[hatchet]" in fault.remedy
    monkeypatch.setattr(preflight, "find_spec", lambda _: "there")
    assert preflight.fault(campaign, parallel=False) is None


def test_a_compiler_of_another_mpi_is_not_taken(tmp_path: Path) -> None:
    other = tmp_path / "mpicc"
    other.write_text("#!/bin/sh\necho '#define MPICH_VERSION \"4.1\"'\n")
    other.chmod(0o755)
    with pytest.raises(CampaignError, match="no mpicc of Open MPI"):
        mpi.compiler_for(str(tmp_path / "app"))
    other.with_name("mpicc.openmpi").write_text("#!/bin/sh\necho '#define OPEN_MPI 1'\n")
    other.with_name("mpicc.openmpi").chmod(0o755)
    assert mpi.compiler_for(str(tmp_path / "app")) == str(tmp_path / "mpicc.openmpi")

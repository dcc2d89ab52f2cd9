from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import CampaignError
from orchestrator.launch import mpi, script
from orchestrator.launch.mpi import Launcher
from orchestrator.types import Resources
from tests.applications import demo
from tests.requirements import need

OPEN_MPI = "mpiexec (OpenRTE) 4.1.4"
MPICH = "HYDRA build details:\n    Version: 5.0.2"
TWO = Resources(ranks=2, threads=1, nodes=1, ranks_per_node=2, cores=2)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    cached = (mpi.detect, mpi.flavour_of, mpi.linked_mpi, mpi._interfaces, mpi.calls_mpi, mpi._libraries)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def fake(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def path_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the only one on PATH, apart from cat and sh."""
    folder = tmp_path / "path"
    folder.mkdir()
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("cat", "sh"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{tools}")
    return folder


def test_the_mpiexec_beside_the_executable_comes_first(tmp_path: Path, path_with: Path) -> None:
    fake(path_with / "mpiexec", OPEN_MPI)
    beside = fake(tmp_path / "venv" / "mpiexec", MPICH)
    executable = fake(tmp_path / "venv" / "app", "")
    found = mpi.detect(executable)
    assert (found.kind, found.path) == ("mpich", beside)
    assert found.pattern(TWO) == f"{beside} -n {{ranks}}"


def test_a_link_leads_to_the_mpiexec_beside_its_target(tmp_path: Path, path_with: Path) -> None:
    beside = fake(tmp_path / "mpi" / "mpiexec", MPICH)
    executable = fake(tmp_path / "mpi" / "app", "")
    (tmp_path / "link").symlink_to(executable)
    assert mpi.detect(str(tmp_path / "link")).path == beside


def test_the_mpiexec_that_fits_the_linked_library_is_taken(tmp_path: Path, path_with: Path) -> None:
    """An activated virtual environment with an MPICH must not start programs built with Open MPI."""
    fake(path_with / "mpiexec", MPICH)
    fitting = fake(path_with / "mpiexec.openmpi", OPEN_MPI)
    fake(path_with / "ldd", "\tlibmpi.so.40 => /opt/none/lib/libmpi.so.40 (0x00007fc7dd368000)")
    executable = fake(tmp_path / "app", "")
    assert mpi.detect(executable).path == fitting


def test_the_mpiexec_and_the_compiler_where_the_library_is_installed_are_taken(
    tmp_path: Path, path_with: Path
) -> None:
    """A program built in a virtual environment runs with its MPICH where this was not activated."""
    fake(path_with / "mpiexec", OPEN_MPI)
    fake(path_with / "mpicc", "#define OPEN_MPI 1")
    installed = tmp_path / "venv" / "bin"
    fitting = fake(installed / "mpiexec", MPICH)
    compiler = fake(installed / "mpicc", '#define MPICH_VERSION "5.0.2"')
    library = tmp_path / "venv" / "lib" / "libmpi.so.12"
    fake(path_with / "ldd", f"\tlibmpi.so.12 => {library} (0x00007fc7dd368000)")
    executable = fake(tmp_path / "app", "")
    assert mpi.detect(executable).path == fitting
    assert mpi.compiler_for(executable) == compiler


@pytest.mark.parametrize(
    ("libraries", "flavour"),
    [
        ("libmpi.so.40 => /opt/none/lib/libmpi.so.40", "openmpi"),
        ("libmpi.so.12 => /opt/intel/libmpi.so.12", "mpich"),
        ("libmpichcxx.so.12 => /opt/none/lib/libmpichcxx.so.12", "mpich"),
        ("libc.so.6 => /lib/libc.so.6", "unknown"),
        ("not a dynamic executable", "unknown"),
    ],
)
def test_libraries_tell_the_mpi(tmp_path: Path, path_with: Path, libraries: str, flavour: str) -> None:
    fake(path_with / "ldd", libraries)
    assert mpi.linked_mpi(fake(tmp_path / "app", "")) == flavour


def test_open_mpi_as_root_with_more_ranks_than_cores() -> None:
    launcher = Launcher(kind="openmpi", path="/opt/my mpi/mpiexec", root=True, slots=2)
    allow = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    assert launcher.pattern(TWO) == f"{allow} '/opt/my mpi/mpiexec' -n {{ranks}} --bind-to none"
    assert launcher.pattern(Resources(ranks=3)).endswith("-n {ranks} --bind-to none --oversubscribe")
    assert "env" not in Launcher(kind="openmpi", path="mpiexec").pattern(TWO)


def test_braces_in_the_path_are_no_placeholders() -> None:
    pattern = Launcher(kind="mpich", path="/opt/{mpi}/mpiexec").pattern(TWO)
    application = demo(2)
    text = script.launch_script(
        application=application,
        executable="./app",
        settings={},
        resources=TWO,
        launcher=pattern,
        frame=script.Frame(text="{{prologue}}{{environment}}\n{{launcher}} {{command}}", profiler="stdout"),
    )
    assert shlex.split(text.splitlines()[-1]) == ["/opt/{mpi}/mpiexec", "-n", "2", "./app"]


@pytest.mark.parametrize(
    ("libraries", "interfaces", "option"),
    [
        ("libmpi.so.40 =>", "\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4", "--mpi=pmix"),
        ("libmpi.so.12 =>", "\tpmi2\n\tpmix", "--mpi=pmi2"),
        ("libmpi.so.40 =>", "srun: fatal: Could not establish a configuration source", None),
        ("libc.so.6 =>", "\tpmi2\n\tpmix", None),
    ],
)
def test_srun_speaks_the_interface_of_the_library(
    tmp_path: Path, path_with: Path, libraries: str, interfaces: str, option: str | None
) -> None:
    fake(path_with / "ldd", libraries)
    fake(path_with / "mpiexec", OPEN_MPI)
    srun = fake(path_with / "srun", interfaces)
    words = mpi.launcher_for(fake(tmp_path / "app", ""), None, "slurm", TWO).split()
    assert words[:3] == [srun, "--ntasks={ranks}", "--cpus-per-task={threads}"]
    assert [word for word in words if word.startswith("--mpi")] == ([option] if option else [])


def test_mpiexec_takes_over_where_srun_lacks_the_interface(tmp_path: Path, path_with: Path) -> None:
    fake(path_with / "ldd", "libmpi.so.40 =>")
    mpiexec = fake(path_with / "mpiexec", OPEN_MPI)
    fake(path_with / "srun", "MPI plugin types are...\n\tnone\n\tpmi2")
    assert mpiexec in mpi.launcher_for(fake(tmp_path / "app", ""), None, "slurm", TWO)


def test_the_configured_launcher_is_taken_as_it_is(tmp_path: Path, path_with: Path) -> None:
    assert mpi.launcher_for("app", "jsrun -n {ranks}", "slurm", TWO) == "jsrun -n {ranks}"
    assert mpi.launcher_for("app", "none", "local", Resources(ranks=1)) == "none"


def test_without_any_launcher_one_rank_starts_by_itself_and_two_are_an_error(
    tmp_path: Path, path_with: Path
) -> None:
    executable = fake(tmp_path / "app", "")
    assert mpi.launcher_for(executable, None, "local", Resources(ranks=1)) == ""
    with pytest.raises(CampaignError, match=r"no mpiexec beside .*app or on PATH to start 2 ranks"):
        mpi.launcher_for(executable, None, "local", TWO)


def test_a_program_without_mpi_needs_no_launcher_where_no_run_has_several_ranks(
    tmp_path: Path, path_with: Path
) -> None:
    mpiexec, one = fake(path_with / "mpiexec", MPICH), Resources(ranks=1)
    script, plain, static = fake(tmp_path / "app.sh", ""), tmp_path / "plain", tmp_path / "static"
    plain.write_bytes(b"\x7fELF nothing of the kind")
    static.write_bytes(b"\x7fELF PMPI_Init")
    assert mpi.launcher_for(script, None, "local", one, serial=True) == ""
    assert mpi.launcher_for(str(plain), None, "local", one, serial=True) == ""
    assert mpi.launcher_for(str(static), None, "local", one, serial=True) == f"{mpiexec} -n {{ranks}}"
    assert mpi.launcher_for(script, None, "local", one) == f"{mpiexec} -n {{ranks}}", "others have more ranks"
    assert mpi.launcher_for(script, "mpiexec", "local", one, serial=True) == f"{mpiexec} -n {{ranks}}"


@pytest.mark.mpi
def test_a_real_launcher_starts_all_ranks(tmp_path: Path) -> None:
    need(shutil.which("mpiexec"), "mpiexec")
    executable = tmp_path / "app"
    executable.write_text("#!/bin/sh\necho rank\n")
    executable.chmod(0o755)
    application = demo(3)
    three = Resources(ranks=3, threads=1, nodes=1, ranks_per_node=3, cores=3)
    (tmp_path / "run.sh").write_text(
        script.launch_script(
            application=application,
            executable=str(executable),
            settings={},
            resources=three,
            launcher=mpi.launcher_for(str(executable), None, "local", three),
            frame=script.Frame(text=script.find_frame(None, "local").read_text(), profiler="stdout"),
        )
    )
    process = subprocess.run(
        ["bash", "run.sh"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert process.stdout.split() == ["rank"] * 3, process.stderr


# --- launchers by name --------------------------------------------------------------------------------


def test_the_word_srun_gets_its_options(tmp_path: Path, path_with: Path) -> None:
    srun = fake(path_with / "srun", "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix")
    app = fake(tmp_path / "app", "")
    words = mpi.launcher_for(app, "srun", "local", TWO).split()
    assert words[:3] == [srun, "--ntasks={ranks}", "--cpus-per-task={threads}"]
    assert not any(word.startswith("--mpi") for word in words), "whose MPI it is cannot be told"
    assert "--mpi=cray_shasta" in mpi.launcher_for(app, "srun", "slurm", TWO, "cray_shasta")


def test_an_interface_without_a_launcher_means_srun(tmp_path: Path, path_with: Path) -> None:
    fake(path_with / "mpiexec", OPEN_MPI)
    app = fake(tmp_path / "app", "")
    assert "--mpi=pmix_v5" in mpi.launcher_for(app, None, "slurm", TWO, "pmix_v5")
    assert "mpiexec" in mpi.launcher_for(app, None, "local", TWO, "pmix_v5")


def test_the_word_mpirun_gets_its_options_also_where_it_comes_with_a_module(path_with: Path) -> None:
    assert mpi.launcher_for("app", "mpirun", "slurm", TWO) == "mpirun -n {ranks}"
    mpirun = fake(path_with / "mpirun", OPEN_MPI)
    mpi.flavour_of.cache_clear()
    assert f"{mpirun} -n {{ranks}} --bind-to none" in mpi.launcher_for("app", "mpirun", "slurm", TWO)

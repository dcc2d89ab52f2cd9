"""Which command starts parallel programs here. Looks at the machine, so that `templates` need not."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from orchestrator.errors import CampaignError
from orchestrator.types import Resources

Flavour = Literal["openmpi", "mpich", "unknown"]

KNOWN = ("srun", "mpiexec", "mpirun")
_NAMES = ("mpiexec", "mpirun", "mpiexec.openmpi", "mpiexec.mpich", "mpiexec.hydra")
_COMPILERS = ("mpicc", "mpicc.openmpi", "mpicc.mpich")
_TITLES: Mapping[Flavour, str] = {"openmpi": "Open MPI", "mpich": "MPICH or derived", "unknown": "any MPI"}
_WANTED: Mapping[Flavour, str] = {"openmpi": "pmix", "mpich": "pmi2", "unknown": ""}
_PATIENCE = 10.0  # seconds for a program to print its version


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A command found on this machine: ``kind`` is ``openmpi``, ``mpich``, ``srun``, ``unknown`` or ``none``.

    ``slots`` are the ranks that Open MPI places without being told to oversubscribe.
    """

    kind: Flavour | Literal["srun", "none"]
    path: str = ""
    mpi: str = ""
    root: bool = False
    slots: int = 1

    def pattern(self, resources: Resources) -> str:
        """Return the command for `script.launch_script`, with its ``{placeholders}``. Pure."""
        return " ".join(self._words(resources))

    def _words(self, resources: Resources) -> Iterator[str]:
        command = shlex.quote(self.path.replace("{", "{{").replace("}", "}}"))
        if self.kind == "none":
            return
        if self.kind == "srun":
            yield from (command, "--ntasks={ranks}", "--cpus-per-task={threads}", "--export=ALL")
            yield from ("--cpu-bind=verbose", "--kill-on-bad-exit=1")
            if self.mpi:
                yield f"--mpi={self.mpi}"
            return
        if self.kind == "openmpi" and self.root:
            yield from ("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
        yield from (command, "-n", "{ranks}")
        if self.kind == "openmpi":
            # By itself it binds every program to the same first cores, and all threads of a rank to one core.
            yield from ("--bind-to", "none")
            # A run that is bound to fewer cores than ranks sees no others.
            if resources.ranks > min(self.slots, resources.cores):
                yield "--oversubscribe"


def launcher_for(
    executable: str,
    configured: str | None,
    executor_name: str,
    resources: Resources,
    mpi: str | None = None,
    *,
    serial: bool = False,
) -> str:
    """Return the launcher for `script.launch_script`: the configured one, else what this machine has.

    The bare words ``srun``, ``mpiexec`` and ``mpirun`` get the options that they need; ``mpi`` is the
    interface through which ``srun`` starts MPI programs, by default that of the executable's MPI.
    ``serial``: no run of the campaign has several ranks, so that a program without MPI needs no ``mpiexec``.

    Raises
    ------
    CampaignError
        If several ranks are wanted and nothing here can start them.
    """
    if configured is not None and configured not in KNOWN:
        return configured
    if configured is None and mpi and executor_name == "slurm":
        configured = "srun"
    if configured:
        return named(configured, executable, mpi).pattern(resources)
    launcher = unlaunched(detect(executable, executor_name), executable, serial)
    if launcher.kind == "none" and resources.ranks > 1:
        raise CampaignError(
            f"no mpiexec beside {executable} or on PATH to start {resources.ranks} ranks: install the MPI "
            "that the executable was built with, or set executor.launcher"
        )
    return launcher.pattern(resources)


def unlaunched(launcher: Launcher, executable: str, serial: bool) -> Launcher:
    """Return the launcher that was found, or none where a program without MPI is started by itself.

    That is where no run has several ranks and nothing shows that the program calls MPI. ``srun`` is kept: it
    binds a program to its cores.
    """
    alone = serial and launcher.kind != "srun" and not calls_mpi(executable)
    return Launcher(kind="none") if alone else launcher


@cache
def calls_mpi(executable: str) -> bool:
    """Whether a program is linked with an MPI library, or has one inside; of scripts this is not known."""
    if linked_mpi(executable) != "unknown":
        return True
    try:
        content = Path(shutil.which(executable) or executable).read_bytes()
    except OSError:
        return True  # nothing is known of it
    return content.startswith(b"\x7fELF") and b"MPI_Init" in content


def named(name: str, executable: str, mpi: str | None) -> Launcher:
    """Return the launcher that one of the `KNOWN` words means; it need not be on this machine."""
    path = shutil.which(name) or name
    if name == "srun":
        wanted = _WANTED[linked_mpi(executable)]
        return Launcher(kind="srun", path=path, mpi=mpi or (wanted if wanted in _interfaces(path) else ""))
    return Launcher(kind=flavour_of(path), path=path, root=os.geteuid() == 0, slots=_physical_cores())


@cache
def detect(executable: str, executor_name: str = "local") -> Launcher:
    """Find what starts this executable.

    Its MPI is that of the library it is linked with or, where that cannot be told (a script, a static
    program), that of the ``mpiexec`` beside it. Locally the first ``mpiexec`` of that MPI is taken, beside
    the executable (or beside what its name links to), where the library is installed, or on ``PATH``;
    failing that, the first of any MPI.
    Under Slurm it is ``srun``, if it speaks the process management interface of that MPI, else that
    ``mpiexec``, which starts its ranks through Slurm, too.
    """
    flavour = linked_mpi(executable)
    if flavour == "unknown":
        flavour = next((flavour_of(path) for path in _programs(_beside(executable))), flavour)
    local = _local(executable, flavour)
    srun = shutil.which("srun")
    if executor_name != "slurm" or (srun is None and local.kind != "none"):
        return local
    spoken = _interfaces(srun) if srun else ()
    wanted = _WANTED[flavour]
    if wanted and spoken and wanted not in spoken and local.kind == flavour:
        return local
    return Launcher(kind="srun", path=srun or "srun", mpi=wanted if wanted in spoken else "")


def _local(executable: str, flavour: Flavour) -> Launcher:
    found = [(path, flavour_of(path)) for path in _candidates(executable)]
    for path, kind in [pair for pair in found if flavour in (pair[1], "unknown")] + found:
        return Launcher(kind=kind, path=path, root=os.geteuid() == 0, slots=_physical_cores())
    return Launcher(kind="none")


def _candidates(executable: str) -> list[str]:
    return _programs([*_beside(executable), *_installed(executable), *map(Path, os.get_exec_path())])


def _beside(executable: str) -> list[Path]:
    path = Path(executable)
    return [path.parent, path.resolve().parent] if os.sep in executable else []


def _installed(executable: str) -> list[Path]:
    """Return where programs of the MPI are that the executable is linked with: ``bin`` above its library."""
    found = re.search(r"libmpi\S* => (/\S+)", _libraries(executable))
    # Links are followed and /bin is left out: Open MPI takes the folder of an mpiexec for its own.
    above = list(Path(found.group(1)).resolve().parents)[1:3] if found else []
    return [folder / "bin" for folder in above if folder.name and (folder / "bin").is_dir()]


def _programs(folders: Iterable[Path]) -> list[str]:
    paths = [str(folder / name) for folder in folders for name in _NAMES]
    return list(dict.fromkeys(path for path in paths if shutil.which(path)))


@cache
def flavour_of(mpiexec: str) -> Flavour:
    """Tell whose ``mpiexec`` this is from what ``--version`` prints."""
    text = _output(mpiexec, "--version")
    if re.search(r"Open MPI|OpenRTE|PRRTE|prterun", text):
        return "openmpi"
    # MPICH and what is derived from it (Intel MPI, MVAPICH) are started by Hydra.
    return "mpich" if re.search(r"HYDRA|Intel\(R\) MPI|MVAPICH", text, re.IGNORECASE) else "unknown"


@cache
def linked_mpi(executable: str) -> Flavour:
    """Tell which MPI library an executable is linked with.

    The file names are part of the libraries' binary interfaces: Open MPI's is ``libmpi.so.40`` since 3.0,
    that of MPICH and its derivatives ``libmpi.so.12`` (or ``libmpich``).
    """
    text = _libraries(executable)
    if re.search(r"libmpi\.so\.(?:20|40)\b|libopen-rte", text):
        return "openmpi"
    return "mpich" if re.search(r"libmpi(?:fort|cxx)?\.so\.12\b|libmpich", text) else "unknown"


@cache
def _libraries(executable: str) -> str:
    path = shutil.which(executable)
    return _output("ldd", path) if path else ""


def compiler_for(executable: str) -> str:
    """Return the path of the C compiler that belongs to the MPI which an executable is linked with.

    Where that MPI cannot be told, it is the one of the launcher. Looked for are the compilers beside the
    executable, where its MPI library is installed, beside the launcher and on ``PATH``.

    Raises
    ------
    CampaignError
        If there is none.
    """
    launcher = detect(executable)
    wanted = linked_mpi(executable)
    if wanted == "unknown" and launcher.kind in _WANTED:
        wanted = launcher.kind  # type: ignore[assignment]  # one of the flavours, as was just checked
    beside_launcher = [Path(launcher.path).parent] if launcher.path else []
    folders = [
        *_beside(executable),
        *_installed(executable),
        *beside_launcher,
        *map(Path, os.get_exec_path()),
    ]
    found = list(dict.fromkeys(str(folder / name) for folder in folders for name in _COMPILERS))
    for path in filter(shutil.which, found):
        if wanted in ("unknown", flavour_of_compiler(path)):
            return path
    raise CampaignError(
        f"no mpicc of {_TITLES[wanted]}, the MPI of {executable}, beside it, beside its library, beside its "
        "mpiexec or on PATH: install its development files or load its module before this command"
    )


@cache
def flavour_of_compiler(mpicc: str) -> Flavour:
    """Tell whose compiler this is from what its ``mpi.h`` defines."""
    text = _output(mpicc, "-dM", "-E", "-include", "mpi.h", "-x", "c", "/dev/null")
    if "#define OPEN_MPI " in text:
        return "openmpi"
    return (
        "mpich"
        if re.search(r"#define (?:MPICH_VERSION|MPICH_NUMVERSION|I_MPI_VERSION) ", text)
        else "unknown"
    )


@cache
def _interfaces(srun: str) -> tuple[str, ...]:
    return tuple(re.findall(r"^\s*(\w+)\s*$", _output(srun, "--mpi=list"), re.MULTILINE))


@cache
def _physical_cores() -> int:
    """Cores that this process may use, hyper-threads counted once, as Open MPI counts its slots."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for number in os.sched_getaffinity(0):
        topology = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        cores.add(topology.read_text() if topology.exists() else str(number))
    return len(cores)


def _output(*command: str) -> str:
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout + process.stderr

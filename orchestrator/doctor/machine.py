"""What this machine offers: cores, MPI, compilers, profilers. Only some campaigns need them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from orchestrator.doctor.check import Check, failed, missing, ok, warning
from orchestrator.doctor.probe import Probe
from orchestrator.executors.attempt.processes import Times, load_between
from orchestrator.launch.mpi import Launcher
from orchestrator.policy.machine import BUSY
from orchestrator.types import Resources

MPI_PACKAGES = "apt-get install mpich libmpich-dev (or openmpi-bin libopenmpi-dev), or module load your MPI"
_FLAVOURS = {"openmpi": "Open MPI", "mpich": "MPICH or derived", "unknown": "of unknown flavour"}
_RANKS = 2
_FEATURE = re.compile(r"^\s*(PAPI|Unwinding|OpenMP) support:\s+(yes|no)", re.MULTILINE)
_NO_SCOREP = (
    "module load Score-P, spack install scorep, or build it from https://www.score-p.org (apt and pip have "
    "none); measure.profiler: stdout and time work without it"
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler: its program, its purpose, and the packages that contain it."""

    program: str
    purpose: str
    remedy: str


COMPILERS = (
    Compiler("mpicc", "to build MPI programs", MPI_PACKAGES),
    Compiler("gcc", "to build programs", "apt-get install gcc"),
    Compiler("clang", "to build programs, an alternative to gcc", "apt-get install clang"),
)


def cores(usable: int, installed: int | None) -> Check:
    """Report how many cores local campaigns may use."""
    if installed is not None and usable < installed:
        return ok("cores", f"{usable} usable of {installed} (CPU affinity)")
    return ok("cores", f"{usable} usable")


def load(before: Times, after: Times, seconds: float, usable: Collection[int]) -> Check:
    """Report how busy the usable CPUs are, from two readings some ``seconds`` apart."""
    spent = load_between(before, after, usable)
    share = (spent["busy"] + spent["stolen"]) / (spent["cpus"] * seconds) if spent["cpus"] else 0.0
    detail = f"{100 * min(share, 1.0):.0f} % of the CPU time is used now, without any run"
    if share < BUSY:
        return ok("load", detail)
    return warning("load", f"{detail}: times measured meanwhile are too long", "end what runs; see: top")


def mpi(launcher: Launcher, probe: Probe) -> Iterator[Check]:
    """Check the ``mpiexec`` that `mpi.detect` found: which one, and whether it starts processes."""
    if launcher.kind in ("none", "srun"):
        detail = "mpiexec is not on PATH; only programs with several ranks need it"
        yield missing("mpiexec", detail, MPI_PACKAGES)
        return
    pattern = launcher.pattern(Resources(ranks=_RANKS, ranks_per_node=_RANKS, cores=_RANKS))
    command = [*shlex.split(pattern.replace("{ranks}", str(_RANKS))), "echo", "started"]
    answer = probe.ask(command)
    detail = f"{launcher.path} ({_FLAVOURS[launcher.kind]})"
    if answer.ok and answer.output.split().count("started") == _RANKS:
        yield ok("mpiexec", f"{detail}, starts {_RANKS} processes")
        return
    remedy = f"run it by hand: {shlex.join(command)}; reinstall that MPI, or set executor.launcher"
    yield failed("mpiexec", f"{detail} does not start {_RANKS} processes: {answer.complaint}", remedy)


def compilers(probe: Probe) -> Iterator[Check]:
    """Report the compilers that are found, with their versions."""
    for compiler in COMPILERS:
        path = probe.which(compiler.program)
        if path is None:
            yield missing(compiler.program, f"not found; needed {compiler.purpose}", compiler.remedy)
            continue
        answer = probe.ask([path, "--version"])
        first = next(iter(answer.output.splitlines()), "").strip()
        if answer.ok:
            yield ok(compiler.program, f"{path}: {first}")
        else:
            yield failed(compiler.program, f"{path}: {answer.complaint}", compiler.remedy)


def scorep(probe: Probe) -> Check:
    """Report the instrumenter of Score-P and what its installation can do.

    The features come from ``scorep-info config-summary``, which repeats them per back end (serial, MPI,
    SHMEM): a feature is there if some back end has it.
    """
    path = probe.which("scorep")
    if path is None:
        detail = "not found; needed only to instrument programs for measure.profiler: scorep"
        return missing("scorep", detail, _NO_SCOREP)
    answer = probe.ask([path, "--version"])
    if not answer.ok:
        return failed("scorep", f"{path}: {answer.complaint}", _NO_SCOREP)
    version = re.search(r"\d+(?:\.\d+)+\S*", answer.output)
    summary = probe.ask(["scorep-info", "config-summary"])
    detail = f"{path}: Score-P {version[0] if version else answer.output.strip()}"
    return ok("scorep", f"{detail}{_features(summary.output)}")


def _features(summary: str) -> str:
    found: dict[str, bool] = {}
    for name, word in _FEATURE.findall(summary):
        found[name] = found.get(name, False) or word == "yes"
    if summary:
        found["MPI"] = "(MPI backend)" in summary
    return "".join(f", {'with' if there else 'without'} {name}" for name, there in sorted(found.items()))

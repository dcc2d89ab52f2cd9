"""Whether programs can be started and measured: faults that are certain before the first run."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from orchestrator.campaign.definition import Campaign
from orchestrator.control import preloading
from orchestrator.errors import OrchestratorError
from orchestrator.launch import mpi, script
from orchestrator.readers import hatchet

_NAMES = {"openmpi": "Open MPI", "mpich": "MPICH (or derived)"}
_WORDS = ("time", "command", "builtin", "eval", "exec")  # words of the shell, no programs
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why runs cannot start, and what to do."""

    detail: str
    remedy: str


def fault(
    campaign: Campaign, parallel: bool, which: Callable[[str], str | None] = shutil.which
) -> Fault | None:
    """Return what certainly prevents runs, or None.

    Parameters
    ----------
    campaign
        The campaign; with a simulated executor nothing is launched.
    parallel
        Whether a run has several ranks: with one rank, the launcher's MPI does not matter.
    which
        Finds a program on PATH.
    """
    if campaign.executor.name == "simulated":
        return None
    unmeasurable = _unmeasurable(campaign)
    if unmeasurable is not None:
        return unmeasurable
    program = _program(campaign.executor.launcher)
    if program is not None and which(program) is None:
        return _absent(program) if _nothing_loads_it(campaign, program) else None
    return _mpi_mismatch(campaign, program, which) if parallel else None


def _unmeasurable(campaign: Campaign) -> Fault | None:
    """Return a fault where what the profiler needs cannot be built, or its profiles cannot be read."""
    profiler = campaign.measure.profiler
    if profiler in hatchet.PROFILERS and find_spec("hatchet") is None:
        return Fault(
            f"measure.profiler {profiler}: llnl-hatchet, which reads its profiles, is missing", hatchet.EXTRA
        )
    try:
        preloading.libraries(profiler, campaign.executable)
    except OrchestratorError as error:
        detail, _, remedy = str(error).partition(": ")
        return Fault(f"measure.profiler {profiler}: {detail}", remedy or "use another")
    return None


def _program(pattern: str | None) -> str | None:
    """Return the program that a configured launcher begins with, None without one."""
    if pattern is None or pattern.strip() in script.NO_LAUNCHER:
        return None
    words = shlex.split(pattern)
    if words and words[0].rpartition("/")[2] == "env":
        words = list(itertools.dropwhile(_ASSIGNMENT.fullmatch, words[1:]))
    return words[0] if words and words[0] not in _WORDS and not words[0].startswith("-") else None


def _nothing_loads_it(campaign: Campaign, program: str) -> bool:
    """Whether a program that is not on PATH here is certainly missing in a run, too."""
    options = campaign.executor
    variables = {*options.environment, *(campaign.program.environment if campaign.program else ())}
    relative = os.sep in program and not os.path.isabs(program)  # noqa: PTH117 (no path is meant)
    loads = options.prologue or options.modules or options.template is not None or "PATH" in variables
    return options.name == "local" and not loads and not relative


def _absent(program: str) -> Fault:
    return Fault(
        f"{program} of executor.launcher is not on PATH here, and nothing loads it: every run would fail",
        "correct executor.launcher, remove it to have one found, or load it in executor.modules or "
        "executor.prologue",
    )


def _mpi_mismatch(
    campaign: Campaign, program: str | None, which: Callable[[str], str | None]
) -> Fault | None:
    """Return a fault where the launcher and a program certainly belong to different MPI libraries."""
    effort = campaign.measure.effort
    for executable in (campaign.executable, *([effort.executable] if effort is not None else [])):
        linked = mpi.linked_mpi(executable)
        path, kind = _launcher(campaign, program, executable, which)
        if linked in _NAMES and kind in _NAMES and linked != kind:
            return Fault(
                f"{path} is of {_NAMES[kind]}, {executable} is linked with {_NAMES[linked]}: every rank "
                "would run alone, as a program of one rank",
                f"put the mpiexec of {_NAMES[linked]} on PATH or into executor.launcher, or rebuild it",
            )
    return None


def _launcher(
    campaign: Campaign, program: str | None, executable: str, which: Callable[[str], str | None]
) -> tuple[str, str]:
    """Return the path of the launcher of an executable, and its MPI; both empty where that is not certain."""
    options = campaign.executor
    if program is None:
        none = options.launcher is not None or (options.mpi is not None and options.name == "slurm")
        found = mpi.Launcher(kind="none") if none else mpi.detect(executable, options.name)
        return found.path, found.kind
    path = which(program) or ""
    certain = os.path.isabs(program) or not (options.prologue or options.modules)  # noqa: PTH117
    if not certain or path.rpartition("/")[2] == "srun":
        return "", ""
    return path, mpi.flavour_of(path)

"""Can this campaign run here? Checks beyond its file: programs, launcher, budget and directory."""

from __future__ import annotations

import math
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from orchestrator.campaign import changes
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.effort import counts_for_sure
from orchestrator.campaign.schema import LocalOptions
from orchestrator.control import cautions, existing, preflight, shapes
from orchestrator.control.assembly import Assembly
from orchestrator.control.planning import FirstRound
from orchestrator.doctor.check import Check, failed, missing, ok, warning
from orchestrator.doctor.examined import Examined
from orchestrator.doctor.probe import Probe
from orchestrator.errors import JournalError, OrchestratorError
from orchestrator.journal.file import holds_campaign
from orchestrator.journal.writer import holder_of
from orchestrator.launch import script
from orchestrator.launch.mpi import Launcher, detect, unlaunched
from orchestrator.report.controller import is_locked
from orchestrator.types import Point, Resources
from orchestrator.units import count, format_cost, format_duration, in_unit

_LEAST_SPACE = 1e9  # bytes; profiles of thousands of runs, and a journal that must never fail to grow
_LEAST_FILES = 10_000
_MOST_KINDS = 12  # of runs that are listed


def checks(examined: Examined, probe: Probe) -> Iterator[Check]:
    """Check everything that does not depend on the cluster (see `executor_section`)."""
    built, chosen = examined.built, examined.built.campaign
    if chosen.executor.name != "simulated":
        yield from executable(chosen, probe)
        yield from launcher(chosen, examined.largest, probe)
        frame = script.find_frame(chosen.executor.template, chosen.executor.name)
        launch = "" if chosen.launch is None else f"{chosen.launch.source} in "
        yield ok("launch script", f"{launch}{frame}")  # that it can be filled in was checked with the file
    if isinstance(chosen.executor, LocalOptions):
        yield slots(chosen.executor.slots, chosen.executor.oversubscribe, len(os.sched_getaffinity(0)))
        yield from side_by_side(built)
    yield occupied(examined.sizes)
    yield budget(chosen, examined.first_round)
    yield from folder(chosen, examined.directory)


def occupied(sizes: Iterable[Resources]) -> Check:
    """Say what runs occupy at the points of the search space."""
    known = shapes.ordered(sizes)
    texts = [f"{shapes.described(shapes.document(item))} ({count(item.cores, 'core')})" for item in known]
    if len(texts) > _MOST_KINDS:
        texts = [*texts[: _MOST_KINDS - 1], f"{len(texts) - _MOST_KINDS} others", texts[-1]]
    return ok("resources", "; ".join(texts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrumentation:
    """How to see that a program is built with a profiler: texts in its file, or a library."""

    name: str
    traces: tuple[bytes, ...]
    library: str
    remedy: str


_INSTRUMENTED = MappingProxyType(
    {
        "scorep": Instrumentation(
            name="Score-P",
            traces=(b"SCOREP_",),
            library="libscorep",
            remedy="rebuild it with the compiler call prefixed: scorep mpicc ...",
        ),
        "caliper": Instrumentation(
            name="Caliper",
            traces=(b"libcaliper", b"cali_init"),
            library="libcaliper",
            remedy="rebuild it with its Caliper annotations (often -DENABLE_CALIPER=On or -DWITH_CALIPER=On)",
        ),
    }
)


# --- programs -----------------------------------------------------------------------------------------


def executable(chosen: Campaign, probe: Probe) -> Iterator[Check]:
    """Check that executables' interpreters and libraries are there, and what they are instrumented with."""
    path, effort = Path(chosen.executable), chosen.measure.effort
    yield from _program(path, chosen.measure.profiler, probe)
    if effort is not None:
        for check in _program(Path(effort.executable), effort.profiler, probe):
            yield replace(check, name="effort executable")
    if chosen.measure.profiler != "effort" and counts_for_sure(path):
        remedy = "set executable to the program built without counters, and this one under measure.effort"
        yield warning("counters", f"{path} counts effort, so its times include the counting", remedy)


def _program(path: Path, profiler: str, probe: Probe) -> Iterator[Check]:
    with path.open("rb") as file:
        head = file.read(256)
    if head.startswith(b"#!"):
        yield _script(path, head)
    elif head.startswith(b"\x7fELF"):
        yield _binary(path, head, probe)
    else:
        remedy = "set executable to one of these; a script begins with #!/path/to/interpreter"
        detail = f"{path} is neither a compiled program nor a script that names its interpreter"
        yield failed("executable", detail, remedy)
        return
    if profiler in _INSTRUMENTED:
        by = _INSTRUMENTED[profiler]
        yield _started_by_script(path, by) if head.startswith(b"#!") else _instrumented(path, by, probe)


def _script(path: Path, head: bytes) -> Check:
    words = head.split(b"\n")[0][2:].decode(errors="replace").split()
    interpreter = words[1] if words and words[0].endswith("/env") and len(words) > 1 else (words or [""])[0]
    if shutil.which(interpreter) is None:
        remedy = f"install {interpreter or 'an interpreter'}, or correct the first line of {path}"
        return failed("executable", f"{path}: its interpreter {interpreter!r} is missing", remedy)
    return ok("executable", f"{path} (script of {interpreter})")


def _binary(path: Path, head: bytes, probe: Probe) -> Check:
    with Path("/proc/self/exe").open("rb") as file:  # this Python: a program that certainly runs here
        runs = file.read(20)
    if runs[:4] == head[:4] and (head[4:6], head[18:20]) != (runs[4:6], runs[18:20]):
        remedy = "rebuild it here, unless the machine that the runs go to differs from this one"
        return warning("executable", f"{path} is built for another processor", remedy)
    answer = probe.ask(["ldd", str(path)])
    lines = f"{answer.output}\n{answer.error}".splitlines()
    absent = [line.strip() for line in lines if "not found" in line]
    if absent:
        remedy = "module load what it was built with (executor.prologue), set LD_LIBRARY_PATH, or rebuild it"
        return failed("executable", f"{path}: {'; '.join(absent)}", remedy)
    return ok("executable", f"{path}, all libraries found")


def _instrumented(path: Path, by: Instrumentation, probe: Probe) -> Check:
    content = path.read_bytes()
    if any(trace in content for trace in by.traces) or by.library in probe.ask(["ldd", str(path)]).output:
        return ok("instrumentation", f"{by.name} is linked in")
    detail = f"no trace of {by.name} in {path}: runs would leave no profile (unless it is a wrapper)"
    return warning("instrumentation", detail, f"{by.remedy}; or set measure.profiler: stdout")


def _started_by_script(path: Path, by: Instrumentation) -> Check:
    """Return what is known of a script, whatever it says: only what it starts can be instrumented."""
    detail = f"{path} is a script: whether what it starts is built with {by.name} is seen only in a run"
    return warning("instrumentation", detail, f"orchestrator doctor --try makes one; otherwise {by.remedy}")


def launcher(chosen: Campaign, largest: tuple[Point, Resources], probe: Probe) -> Iterator[Check]:
    """Check the launcher: that there is one, and that it is of the MPI the executable is linked with."""
    point, resources = largest
    configured = chosen.executor.launcher
    fault = preflight.fault(chosen, resources.ranks > 1, probe.which)
    if fault is not None:
        yield failed("launcher", fault.detail, fault.remedy)
        return
    if configured is not None:
        yield _configured(configured, resources, point, chosen.executor.modules, probe)
        return
    found = unlaunched(detect(chosen.executable, chosen.executor.name), chosen.executable, chosen.serial)
    yield _detected(found, resources, point)


def _configured(
    pattern: str, resources: Resources, point: Point, modules: Sequence[str], probe: Probe
) -> Check:
    if pattern.strip() in script.NO_LAUNCHER:
        if resources.ranks > 1:
            remedy = "set executor.launcher, such as 'mpiexec -n {ranks}', or remove it to have one found"
            return failed(
                "launcher", f"executor.launcher is none, but {point} has {resources.ranks} ranks", remedy
            )
        return ok("launcher", "none: every run is a single process")
    program = next(iter(shlex.split(pattern)), "")
    if modules:
        return ok("launcher", f"{pattern}, looked for with the modules loaded (below)")
    if probe.which(program) is None:
        remedy = "correct executor.launcher, or load it in executor.prologue"
        return warning("launcher", f"{program} of executor.launcher is not on PATH here", remedy)
    return ok("launcher", pattern)


def _detected(found: Launcher, resources: Resources, point: Point) -> Check:
    if found.kind == "none":
        if resources.ranks > 1:
            remedy = "install the MPI that the executable was built with, or set executor.launcher"
            return missing(
                "launcher", f"no launcher was found for the {resources.ranks} ranks of {point}", remedy
            )
        return ok("launcher", "none needed: every run is a single process")
    return ok("launcher", found.pattern(resources))


def slots(wanted: int, oversubscribe: bool, usable: int) -> Check:
    """Check that the local executor's slots are cores that exist."""
    if wanted > usable:
        detail = f"executor.slots is {wanted}, but {usable} cores are usable: larger runs would share them"
        return warning("slots", detail, f"set executor.slots: {usable}")
    if oversubscribe:
        detail = "executor.oversubscribe: runs may have more ranks than cores; times are then unreliable"
        return warning("slots", detail, "remove executor.oversubscribe")
    return ok("slots", f"{wanted} of {usable} cores")


def side_by_side(built: Assembly) -> Iterator[Check]:
    """Warn of local runs that would be timed at the same time."""
    smallest = sorted(resources.cores for _, resources in shapes.at_points(built))
    detail = cautions.side_by_side(built.campaign, smallest)
    if detail is not None:
        yield warning("timing", detail, "set executor.max_pending: 1, or leave it if runs use little memory")


# --- budget and folder --------------------------------------------------------------------------------


def budget(chosen: Campaign, first: FirstRound | OrchestratorError) -> Check:
    """Check that the budget pays for the first round, if there is one."""
    if isinstance(first, OrchestratorError):
        return failed("first round", str(first), "")  # it says itself what to change, often not the budget
    cost = first.worst if first.expected is None else first.expected
    word = "at most" if first.expected is None else "about"
    longest = f", time limit up to {format_duration(max(first.limits))}"
    unit = chosen.stop.unit
    price = f"{word} {in_unit(cost, unit)} of {format_cost(chosen.stop.budget, unit)}"
    detail = f"{len(first.runs)} runs, {price}{longest}"
    return ok("first round", detail)


def folder(chosen: Campaign, directory: Path) -> Iterator[Check]:
    """Check the campaign directory: writable, with space left, free or this campaign's own."""
    existing = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        detail = f"{directory}: cannot write to {existing}"
        yield failed("directory", detail, "give another --directory")
        return
    yield _held(chosen, directory)
    yield space_left(existing)


def space_left(existing: Path) -> Check:
    """Check bytes and files that may still be written; a user's quota may be smaller, and is not seen."""
    found = os.statvfs(existing)
    free = found.f_bavail * found.f_frsize
    files = found.f_favail if found.f_files else math.inf  # some file systems count none
    detail = f"{free / 1e9:.4g} GB free at {existing}"
    if free < _LEAST_SPACE or files < _LEAST_FILES:
        remedy = "free some, or give a --directory on another file system"
        return warning("disk space", f"{detail}, {files} files", remedy)
    return ok("disk space", detail)


def _held(chosen: Campaign, directory: Path) -> Check:
    """Check whether the directory is free, holds another campaign, or is used by a running controller."""
    if not holds_campaign(directory):
        return ok("directory", f"{directory} is free")
    if is_locked(directory):
        holder = holder_of(directory) or " on some host"
        remedy = "wait for it, or stop it with Ctrl-C; see: orchestrator status " + str(directory)
        return failed("directory", f"{directory} is used by a running controller{holder}", remedy)
    try:
        known = existing.replayed(directory)
    except JournalError as error:
        return failed("directory", str(error), "give another --directory")
    if (why := changes.refusal(chosen, known)) is not None:
        return failed("directory", f"{directory}: {why}", "correct the file, or give another --directory")
    rules = "".join(f"; rules would change: {text}" for text in changes.changed_rules(chosen, known))
    return ok("directory", f"{directory} holds this campaign, which would be continued{rules}")

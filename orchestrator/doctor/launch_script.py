"""Does the launch script work here? Its modules, its shell text and its launcher."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from orchestrator.campaign.schema import ExecutorOptions
from orchestrator.doctor.check import Check, Status, failed, ok
from orchestrator.doctor.probe import Probe
from orchestrator.launch.mpi import KNOWN
from orchestrator.launch.script import load_lines
from orchestrator.units import count


def checks(options: ExecutorOptions, probe: Probe) -> Iterator[Check]:
    """Check the parts of the launch script besides the program: modules, shell text, the launcher."""
    loaded = False
    if options.modules:
        found = modules(options.modules, probe)
        loaded = found.status is Status.OK
        yield found
    for key in ("prologue", "epilogue"):
        lines = getattr(options, key)
        if lines:
            yield shell(key, lines, probe)
    if options.launcher is not None and loaded:
        yield launcher(options.launcher, options.modules, probe)


def modules(names: Sequence[str], probe: Probe) -> Check:
    """Load modules in a shell of their own."""
    script = "\n".join([*load_lines(names), 'printf %s "${LOADEDMODULES-}"'])
    answer = probe.ask(["bash", "-c", script])
    if not answer.ok:
        remedy = "correct executor.modules; see: module avail"
        return failed("modules", f"{', '.join(names)}: {answer.complaint}", remedy)
    return ok("modules", answer.output.strip() or ", ".join(names))


def shell(key: str, lines: Sequence[str], probe: Probe) -> Check:
    """Check the syntax only; the lines themselves run in the jobs."""
    answer = probe.ask(["bash", "-n", "-c", "\n".join(lines)])
    if not answer.ok:
        return failed(key, f"not valid shell text: {answer.complaint}", f"correct executor.{key}")
    return ok(key, f"{count(len(lines), 'line')} of valid shell text")


def launcher(pattern: str, names: Sequence[str], probe: Probe) -> Check:
    """Find the launcher with the modules loaded."""
    program = pattern if pattern in KNOWN else next(iter(shlex.split(pattern)), "")
    script = "\n".join([*load_lines(names), 'command -v "$1"'])
    answer = probe.ask(["bash", "-c", script, "bash", program])
    if not answer.ok:
        detail = f"{program} is not on PATH, even with the modules loaded"
        return failed("launcher", detail, "correct executor.launcher or executor.modules")
    return ok("launcher", f"{program} is {answer.output.strip().splitlines()[-1]} with the modules loaded")

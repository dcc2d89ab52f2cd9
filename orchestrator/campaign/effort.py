"""What a campaign that counts effort needs beside others: a build that counts, and other defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.campaign.paths import find_executable, find_file, is_path
from orchestrator.campaign.schema import Compare, Measure, ModelChoice
from orchestrator.campaign.yaml import Problem, Tree

EFFORT_KEY = ("measure", "effort")
EFFORT_SUFFIX = "-effort"
EFFORT_METRICS = ("visits", "basic_blocks", "bytes_sent", "bytes_received", "communicator_size")
"""What effort runs are read for. Times measured in them are those of counting."""

BUILD_WITH_COUNTERS = 'CXX="$(orchestrator effort compiler mpicxx)" make'

_ELF = b"\x7fELF"
_COUNTERS = b"liborchestrator-effort.so"


def resolved(measure: Measure, program: str, base: Path, tree: Tree) -> Measure:
    """Return the section with the effort runs' executable and template as absolute paths.

    ``effort: true`` means the program beside the campaign's executable whose name ends in ``-effort``.
    """
    effort = measure.effort
    if effort is None or (not effort.executable and "${" in program):  # that variable is reported already
        return measure
    update: dict[str, str] = {}
    try:
        wanted = effort.executable or _beside(program)
        update["executable"] = find_executable(wanted, base)
    except ValueError as error:
        tree.problems.append(
            Problem((*EFFORT_KEY, "executable") if effort.executable else EFFORT_KEY, str(error))
        )
    if effort.template is not None and is_path(effort.template, base):
        try:
            update["template"] = find_file(effort.template, base)
        except ValueError as error:
            tree.problems.append(Problem((*EFFORT_KEY, "template"), str(error)))
    return measure.model_copy(update={"effort": effort.model_copy(update=update)})


def compared(section: Compare, measure: Measure, base: Path, tree: Tree) -> Compare:
    """Return the section with absolute paths of the other executable, and of the one that counts effort."""
    update: dict[str, str] = {}
    key = "with"
    try:
        update["with_"] = find_executable(section.with_, base)
        if measure.effort is not None:
            key = "effort"
            update["effort"] = find_executable(section.effort or _beside(update["with_"]), base)
    except ValueError as error:
        tree.problems.append(Problem(("compare", key), str(error)))
    return section.model_copy(update=update)


def defaults(measure: Measure, model: ModelChoice, written: Mapping[str, Any]) -> tuple[Measure, ModelChoice]:
    """Return the defaults of a campaign that counts effort, where ``written`` does not say otherwise.

    The modeler is the one that knows priors, and a point is timed once: the paper's section V-A.4, "a single
    noise-sensitive measurement per configuration".
    """
    if "model" not in written:
        model = ModelChoice(name="swc")
    section = written.get("measure")
    repetitions = section.get("repetitions") if isinstance(section, Mapping) else None
    if not isinstance(repetitions, Mapping) or "initial" not in repetitions:
        once = measure.repetitions.model_copy(update={"initial": 1})
        measure = measure.model_copy(update={"repetitions": once})
    return measure, model


def _beside(executable: str) -> str:
    path = f"{executable}{EFFORT_SUFFIX}"
    if not executable or Path(path).is_file():
        return path
    raise ValueError(
        f"there is no {path}: times and effort need a build each. Build that one with "
        f"{BUILD_WITH_COUNTERS}, or name it under measure.effort.executable; see docs/effort.md. "
        "Times alone: measure.effort: false, and model: auto"
    )


def is_instrumented(path: Path) -> bool:
    """Return whether a program is linked with the counters' library; scripts are assumed to start one."""
    try:
        content = path.read_bytes()
    except OSError:
        return True  # another check reports what is wrong with the file
    return not content.startswith(_ELF) or _COUNTERS in content


def counts_for_sure(path: Path) -> bool:
    """Return whether a file is a program, not a script, that is linked with the counters' library."""
    return is_instrumented(path) and path.read_bytes().startswith(_ELF)

"""Compile the test programs with a wrapped compiler, run them, and read what they counted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.instrumentation import build as build
from orchestrator.instrumentation.build import Build
from orchestrator.readers import effort
from tests.requirements import need

PROGRAMS = Path(__file__).parent / "programs"
_VENV = Path(sys.executable).parent

# Name -> compiler, launcher. The MPICH is the one that pip installs beside Python.
MPI = {
    "openmpi": ("mpicc.openmpi", "mpiexec.openmpi --oversubscribe"),
    "mpich": (str(_VENV / "mpicc"), str(_VENV / "mpiexec")),
}
Counts = dict[str, dict[str, float]]


def compiler(name: str, cache: Path) -> Build:
    """Return the runtime built for a compiler, or skip."""
    need(shutil.which(name), name)
    return build.build(name, cache)


def compile_program(built: Build, source: str, target: Path, *options: str) -> Path:
    """Compile with the wrapper, as a user's makefile would: with -O3."""
    command = [str(build.wrapper(built)), "-O3", str(PROGRAMS / source), "-o", str(target), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def start(
    command: Sequence[str | Path], folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder of its own."""
    folder.mkdir(exist_ok=True)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    variables = {k: v for k, v in os.environ.items() if k != "ORCHESTRATOR_EFFORT_DIRECTORY"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**variables, **root, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def counts(folder: Path, aggregate: str = "sum") -> Counts:
    """Return metric -> call path -> value of what a run left."""
    found: Counts = {}
    for sample in effort.samples(effort.profile(folder)):
        if sample.aggregate == aggregate:
            found.setdefault(sample.metric, {})[sample.callpath] = sample.value
    return found


def below(values: Mapping[str, float], path: str) -> float:
    """Return the value of the one call path that ends like this, names without parameter lists."""
    hits = [value for name, value in values.items() if _short(name).endswith(path)]
    assert len(hits) == 1, (path, list(values))
    return hits[0]


def _short(callpath: str) -> str:
    names = (part.split("(")[0] for part in callpath.split("->"))
    return "->".join(name.removeprefix("int ").removesuffix("<int>") for name in names)

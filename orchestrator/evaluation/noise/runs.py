"""Run generated programs on this machine: times with repetitions, counts once per point."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from orchestrator.errors import CampaignError, OrchestratorError, ReadError
from orchestrator.evaluation.noise.cases import REPETITIONS
from orchestrator.evaluation.parallel import Advance
from orchestrator.generate import directory
from orchestrator.generate.complexity import RANKS
from orchestrator.generate.manifest import Manifest
from orchestrator.launch.mpi import launcher_for
from orchestrator.readers.entries import Entry, assemble
from orchestrator.readers.extrap_json import read_json_lines
from orchestrator.report.export import export
from orchestrator.types import Measurements, Resources, Value

FILE = "measurements.jsonl"
_LIMIT = 3600.0  # seconds per run
_LINE = re.compile(r"^(\S+)\t(\w+)\t(\S+)$", re.MULTILINE)


def measurements(folder: Path, manifest: Manifest, advance: Advance | None = None) -> Measurements:
    """Return the runs of the programs in a folder, kept in `FILE` there; without it, run them now.

    All points of the range are run, and the one beyond (`orchestrator.generate.directory.series`).

    Raises
    ------
    CampaignError
        When a program is not built or there is no launcher.
    OrchestratorError
        When a run fails, naming the command.
    ReadError
        When `FILE` is broken.
    """
    kept = folder / FILE
    if kept.exists():
        return read_json_lines(kept.read_text(encoding="utf-8"), str(kept))
    tasks = list(_tasks(folder, manifest))
    entries = []
    for done, (binary, point, repetitions) in enumerate(tasks, start=1):
        for _ in range(repetitions):
            entries += _run(binary, manifest.range.parameters, point)
        if advance is not None:
            advance(done, len(tasks))
    found = assemble(manifest.range.parameters, entries, str(folder))
    kept.write_bytes(export(found, "extrap-jsonl"))
    return found


def _tasks(folder: Path, manifest: Manifest) -> Iterator[tuple[Path, tuple[Value, ...], int]]:
    """Yield programs, points and repetitions; large counts are never needed at the test point."""
    values = directory.series(manifest.range)
    names = manifest.range.parameters
    training = list(product(*(values[name][:-1] for name in names)))
    test = tuple(values[name][-1] for name in names)
    for program in manifest.programs:
        for binary, points, repetitions in (
            (folder / program, [*training, test], REPETITIONS),
            (folder / f"{program}-counts", training, 1),
        ):
            if not binary.exists():
                raise CampaignError(f"{binary} is not built: make -C {folder}")
            yield from ((binary, point, repetitions) for point in points)


def _run(binary: Path, names: tuple[str, ...], point: tuple[Value, ...]) -> list[Entry]:
    ranks = int(point[names.index(RANKS)])
    launcher = launcher_for(str(binary.resolve()), None, "local", Resources(ranks=ranks, cores=ranks))
    command = launcher.replace("{ranks}", str(ranks)) + " " + shlex.quote(str(binary.resolve()))
    command += "".join(f" {value}" for name, value in zip(names, point, strict=True) if name != RANKS)
    where = f"{binary.name} at {dict(zip(names, point, strict=True))}"
    try:
        done = subprocess.run(
            shlex.split(command),
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT,
            env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OrchestratorError(f"{where}: {command}: {error}") from error
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise OrchestratorError(f"{where}: {command} ended with exit code {done.returncode}:\n{tail}")
    found = [
        Entry(where=where, callpath=path, metric=metric, point=point, values=(float(value),))
        for path, metric, value in _LINE.findall(done.stdout)
    ]
    if not found:
        raise ReadError(f"{where}: {command} printed no measurements")
    return found


def _environment() -> dict[str, str]:
    """Let Open MPI run as root and give up cores while it waits: there are more ranks than cores."""
    extra = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, **extra, "OMPI_MCA_mpi_yield_when_idle": "1"}

"""The launch scripts of every application are as they were."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.launch.script import find_frame, template_of
from orchestrator.types import Application, Resources, Value
from tests.adapters.outputs import SETTINGS
from tests.launch.scripts import script

GOLDEN = Path(__file__).parents[1] / "golden" / "scripts"
# REGENERATE_GOLDEN=1 pytest tests/launch/test_golden.py writes them anew; look at the diff afterwards.
REGENERATE = os.environ.get("REGENERATE_GOLDEN") == "1"

LAUNCHERS = {
    "local": "mpiexec -n {ranks}",
    "slurm": "srun --ntasks={ranks} --cpus-per-task={threads} --export=ALL",
}


@pytest.mark.parametrize("executor", LAUNCHERS)
@pytest.mark.parametrize("name", registry.names("application"))
def test_scripts_are_as_they_were(name: str, executor: str) -> None:
    application: Application = registry.load("application", name)
    point: Mapping[str, Value] = SETTINGS[name]
    ranks, threads = application.ranks(point), application.threads(point)
    text = script(
        application=application,
        executable="/opt/my apps/program.x",
        settings=point,
        resources=Resources(
            ranks=ranks, threads=threads, nodes=1, ranks_per_node=ranks, cores=ranks * threads
        ),
        launcher=LAUNCHERS[executor],
        frame=find_frame(None, executor).read_text(),
        template=template_of(name),
        prologue=["module load mpi"] if executor == "slurm" else [],
        profiler="scorep" if executor == "slurm" else "stdout",
    )
    path = GOLDEN / f"{name}-{executor}.sh"
    if REGENERATE:
        path.write_text(text)
    assert path.read_text() == text


def test_no_golden_script_is_left_over() -> None:
    expected = {f"{name}-{executor}.sh" for name in registry.names("application") for executor in LAUNCHERS}
    assert {path.name for path in GOLDEN.iterdir()} == expected


def test_scripts_are_shell() -> None:
    for path in GOLDEN.iterdir():
        assert subprocess.run(["bash", "-n", path], check=False).returncode == 0, path

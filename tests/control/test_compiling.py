"""The modeler is compiled beside runs that are elsewhere, and only where it is not compiled yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import compiling

TEXT = """\
name: tiny
application: generic
executable: /bin/true
program: {{output: [{{callpath: main, pattern: '(.*)'}}]}}
parameters: {{n: [1, 2]}}
stop: {{budget: 1}}
executor: {{name: {0}}}
"""


# Prints how many overloads the loops of the modeler have, after compiling and after fitting other data.
COUNT = """
import sys
from numba.core.registry import CPUDispatcher
from orchestrator.control import compiling
from orchestrator.models.selection import modeler
from orchestrator.types import Measurement, Measurements, Point
compiling.compile_now()
ours = [module for name, module in sys.modules.items() if name.startswith("orchestrator.models")]
loops = {item for module in ours for item in vars(module).values() if isinstance(item, CPUDispatcher)}
count = lambda: sum(len(item.signatures) for item in loops)
before = count()
points = [(x, y) for x in (1, 2, 3, 5, 9) for y in (2, 4, 6, 8, 9)]
values = {Point.of({"x": x, "y": y}): (x * y + 1.0, x * y + 1.5) for x, y in points}
items = tuple(Measurement("main", metric, values) for metric in ("time", "visits"))
modeler()(Measurements(("x", "y"), items))
print(before, count())
"""


@pytest.fixture(autouse=True)
def nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_CODE", "from orchestrator.control.compiling import compile_now")


def campaign(executor: str) -> Campaign:
    return loader.loads(TEXT.format(executor), base_directory=Path.cwd())


def test_it_is_compiled_while_runs_are_on_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_is_compiled", lambda: False)
    process = compiling.begin(campaign("slurm"))
    assert process is not None and process.wait(timeout=300) == 0


def test_it_is_not_compiled_beside_runs_that_are_timed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_is_compiled", lambda: False)
    assert compiling.begin(campaign("local")) is None


def test_machine_code_newer_than_the_source_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernels.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(compiling, "_KERNELS", "kernels")
    assert not compiling._is_compiled()
    (tmp_path / "__pycache__").mkdir()
    index = tmp_path / "__pycache__" / "kernels.solve-44.py311.nbi"
    index.touch()
    import os

    os.utime(tmp_path / "kernels.py", (1, 1))
    assert compiling._is_compiled()
    os.utime(index, (0, 0))
    assert not compiling._is_compiled(), "of an older version"


@pytest.mark.slow
def test_what_is_compiled_beforehand_is_all_that_models_need() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before == after > 5

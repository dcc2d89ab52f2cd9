"""The modeler is compiled beside runs that are elsewhere, and only where it is not compiled yet."""

from __future__ import annotations

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


@pytest.fixture(autouse=True)
def nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_CODE", "from orchestrator.models.compiling import compile_now")


def campaign(executor: str) -> Campaign:
    return loader.loads(TEXT.format(executor), base_directory=Path.cwd())


def test_it_is_compiled_while_runs_are_on_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_is_compiled", lambda: False)
    process = compiling.begin(campaign("slurm"))
    assert process is not None and process.wait(timeout=60) == 0


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

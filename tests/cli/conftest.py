"""Every command line test works in an empty directory and on a terminal of known width."""

from functools import partial
from pathlib import Path

import pytest

from orchestrator.cli import plan
from orchestrator.control import expectation


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a directory of the test's own, so that what a command creates is seen."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "250")
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearsals of plan end by themselves, however slow the machine is."""
    monkeypatch.setattr(plan, "expect", partial(expectation.expect, seconds=300.0))

"""Slurm from a campaign directory that is full: nothing is submitted, nothing fails, it can be continued."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator.executors.attempt import directory as files
from orchestrator.executors.attempt.directory import DirectoryUnwritable
from orchestrator.executors.slurm import arrays
from orchestrator.types import AttemptState
from tests.slurm.fake_slurm import FakeSlurm, state_of


@pytest.mark.parametrize(
    ("where", "name"), [(files, "write_atomically"), (arrays, "_write"), (Path, "write_text")], ids=str
)
def test_a_full_disk_fails_no_attempt(
    fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, where: Any, name: str
) -> None:
    request = fake.request()

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(where, name, fail)
        with pytest.raises(DirectoryUnwritable, match="No space left"):
            fake.executor().submit([request])
    assert not fake.calls("sbatch")
    fake.answer("squeue", "")
    executor = fake.executor()
    fake.turn(100)
    executor.find([request])
    assert state_of(executor.find([request])) == "absent"
    [observation] = executor.submit([request])
    assert observation.state is AttemptState.QUEUED
    assert len(fake.calls("sbatch")) == 1

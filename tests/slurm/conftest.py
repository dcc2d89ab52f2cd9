"""A faked Slurm, with and without accounting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.fake_slurm import FakeSlurm, install


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return install(FakeSlurm(tmp_path / "bin", tmp_path / "campaign"), monkeypatch)


@pytest.fixture
def fake_without_accounting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return install(FakeSlurm(tmp_path / "bin", tmp_path / "campaign", accounting=False), monkeypatch)

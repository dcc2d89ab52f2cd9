"""A real Slurm, and a faked one with and without accounting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.fake_slurm import FakeSlurm, install


@pytest.fixture(scope="module")
def cluster(slurm_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(slurm_cluster.conf))
        yield slurm_cluster


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return install(FakeSlurm(tmp_path / "bin", tmp_path / "campaign"), monkeypatch)


@pytest.fixture
def fake_without_accounting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return install(FakeSlurm(tmp_path / "bin", tmp_path / "campaign", accounting=False), monkeypatch)

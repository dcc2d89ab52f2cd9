"""A real Slurm, and a faked one with and without accounting."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.executors.under_test import ExecutorUnderTest, assert_nothing_lives
from tests.slurm.cluster import SlurmCluster
from tests.slurm.fake_slurm import FakeSlurm, install
from tests.slurm.fixtures import executor


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test what its cluster says, which is gone when the session ends."""
    report = yield
    if report.when == "call" and report.failed:
        clusters = [one for one in item.funcargs.values() if isinstance(one, SlurmCluster)]
        report.sections += [("the cluster", one.described()) for one in clusters[:1]]
    return report


@pytest.fixture(scope="module")
def cluster(slurm_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(slurm_cluster.conf))
        slurm_cluster.repair()  # a failure of the tests before must not become one of these
        yield slurm_cluster


@pytest.fixture
def tested(cluster: SlurmCluster, tmp_path: Path) -> Iterator[ExecutorUnderTest]:
    directory = tmp_path / "campaign"
    yield ExecutorUnderTest(lambda: executor(directory), directory)
    assert_nothing_lives(directory)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return install(FakeSlurm(tmp_path / "bin", tmp_path / "campaign"), monkeypatch)


@pytest.fixture
def fake_without_accounting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return install(FakeSlurm(tmp_path / "bin", tmp_path / "campaign", accounting=False), monkeypatch)

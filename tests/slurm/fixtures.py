"""Clusters that live as long as the test session, and executors on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.executors.slurm.executor import SlurmExecutor
from orchestrator.executors.slurm.options import JobOptions, SlurmSettings
from tests.requirements import need
from tests.slurm.cluster import SlurmCluster, missing


def _cluster(accounting: bool) -> Iterator[SlurmCluster]:
    absent = missing(accounting)
    need(not absent, f"{', '.join(absent)} for a Slurm of our own")
    with SlurmCluster(accounting) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[SlurmCluster]:
    yield from _cluster(accounting=True)


@pytest.fixture(scope="session")
def slurm_cluster_without_accounting() -> Iterator[SlurmCluster]:
    yield from _cluster(accounting=False)


def settings(partition: str = "debug", **changes: Any) -> SlurmSettings:
    """Return settings for a cluster whose files are local and whose daemons are idle."""
    patience = {"poll_interval": 0.2, "submission_grace": 3.0, "file_grace": 0.5, "accounting_grace": 10.0}
    return SlurmSettings(**{"job": JobOptions(partition=partition), **patience, **changes})


def executor(directory: Path, partition: str = "debug", **changes: Any) -> SlurmExecutor:
    return SlurmExecutor(directory, settings(partition, **changes), np.random.default_rng(0))

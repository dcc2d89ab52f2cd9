"""Settings of all tests: which ones are slow, and which ones share a process when there are several."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.slurm.fixtures import slurm_cluster as slurm_cluster
from tests.slurm.fixtures import slurm_cluster_without_accounting as slurm_cluster_without_accounting

# No test is timed: the machines that run them are shared.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

os.environ.pop("COLUMNS", None)  # xdist sets it; tables are as wide as in a file
# Campaigns of tests do not get into the list of whoever runs them, where one is kept.
os.environ["XDG_DATA_HOME"] = str(Path(tempfile.gettempdir(), f"orchestrator-tests-{os.getuid()}", "nothing"))
# Else each of the many processes that tests start would compile every module from its source.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Threads that wait for one another burn busy cores: matrices of 100 rows take a hundred times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

CLUSTERS = {"slurm_cluster", "slurm_cluster_without_accounting"}
# All tests on a real cluster run in one process, which starts the daemons once.
ON_CLUSTERS = (
    "tests/slurm/test_cluster.py",
    "tests/slurm/test_hostile.py",
    "tests/slurm/test_levels.py",
    "tests/slurm/test_packs.py",
    "tests/slurm/test_script.py",
    "tests/slurm/test_states.py",
    "tests/slurm/test_two_executables.py",
    "tests/evaluation/models/test_slurm.py",
    "tests/cli/test_doctor_site.py",
    "tests/cli/test_doctor_slurm.py",
)
CONTRACT = "tests/contracts/test_executors.py"  # one suite over all executors, some of them on a cluster
COMPILATION = pytest.StashKey[subprocess.Popen[bytes]]()
MOST_PROCESSES = 8  # tests wait for real processes, which more of them would slow down


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use all cores for the whole suite, and only this process for a selection: it starts at once.

    Four processes more than there are cores: tests with clusters, and those that kill and watch others, wait.
    """
    selected = config.args_source is pytest.Config.ArgsSource.ARGS or config.option.keyword
    return 0 if selected else min(len(os.sched_getaffinity(0)) + 4, MOST_PROCESSES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compile the modeler, and the tests as pytest rewrites them: else each process would, at once."""
    code = "from orchestrator.control import compiling; compiling.compile_now()"
    config.stash[COMPILATION] = subprocess.Popen([sys.executable, "-c", code], cwd=config.rootpath)
    if not any(Path(__file__).parent.glob("__pycache__/test_*-pytest-*.pyc")):
        collect = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "tests"]
        subprocess.run(collect, cwd=config.rootpath, stdout=subprocess.DEVNULL, check=False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """Begin when the modeler is compiled; without it, tests say what is wrong."""
    node.config.stash[COMPILATION].wait()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Hand out tests in groups (see `group_of`)."""
    return _Groups(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests on a real cluster; in several processes long groups start first."""
    long = set()
    for item in items:
        group = group_of(item.nodeid)
        if _is_on_cluster(item):
            if group != "clusters":
                raise pytest.UsageError(f"{item.nodeid} needs a cluster: add its file to ON_CLUSTERS")
            item.add_marker(pytest.mark.slurm)
            item.add_marker(pytest.mark.slow)
        elif group.startswith(f"{CONTRACT}[faulty"):  # commands are processes there, too
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow"):
            long.add(group)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _urgency(group_of(item.nodeid), long))


def group_of(node: str) -> str:
    """Return what a test shares with others in one process: the clusters, or the fixtures of its module."""
    module, _, rest = node.partition("::")
    if module == CONTRACT:
        executor = rest.partition("[")[2]
        return "clusters" if executor.startswith("slurm") else f"{module}[{executor}"
    return "clusters" if module in ON_CLUSTERS else module


def _urgency(group: str, long: set[str]) -> int:
    return 0 if group == "clusters" else 1 if group in long else 2


def _is_on_cluster(item: pytest.Item) -> bool:
    executor = group_of(item.nodeid) == "clusters" and item.nodeid.startswith(CONTRACT)
    return executor or not CLUSTERS.isdisjoint(getattr(item, "fixturenames", ()))


class _Groups(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

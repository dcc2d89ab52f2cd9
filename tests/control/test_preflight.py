"""Launchers that certainly cannot start a campaign's programs; no other ones are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import preflight
from orchestrator.errors import CampaignError
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.launch import mpi
from orchestrator.types import Point, Resources, Run
from tests.slurm.sacctmgr import association, qos

TEXT = """\
name: tiny
application: generic
executable: ./app
program: {{ranks: n, output: [{{callpath: main, pattern: '(.*)'}}]}}
parameters: {{n: [1, 2]}}
stop: {{budget: 1}}
executor: {{name: local, slots: 2, {0}}}
"""


CACHED = (mpi.detect, mpi.flavour_of, mpi.flavour_of_compiler, mpi.linked_mpi, mpi._libraries)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program linked with Open MPI, the launchers of both, and nothing else on PATH."""
    for name, words in (
        ("app", ""),
        ("ldd", "libmpi.so.40 => /opt/none/lib/libmpi.so.40"),
        ("mpiexec", "HYDRA build details:"),
        ("mpiexec.openmpi", "mpiexec (OpenRTE) 4.1.4"),
        ("wrapper", "usage: wrapper COMMAND"),
        ("env", ""),
    ):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho '{words}'\n")
        path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


def load(options: str, *overrides: str) -> Campaign:
    return loader.loads(TEXT.format(options), base_directory=Path.cwd(), overrides=overrides)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("launcher: 'mpiexec -n {ranks}'", "is of MPICH"),
        ("launcher: mpiexec", "is of MPICH"),
        ("launcher: 'env A=1 B=2 mpiexec -n {ranks}'", "is of MPICH"),
        ("launcher: 'mpirunx -n {ranks}'", "mpirunx of executor.launcher is not on PATH"),
        ("launcher: /no/such/mpiexec", "/no/such/mpiexec of executor.launcher is not on PATH"),
    ],
)
def test_what_cannot_work(options: str, words: str) -> None:
    fault = preflight.fault(load(options), 2)
    assert fault is not None and words in fault.detail and fault.remedy


def test_a_launcher_that_was_found_is_checked_too() -> None:
    Path("mpiexec.openmpi").unlink()
    fault = preflight.fault(load("oversubscribe: false"), 2)
    assert fault is not None and "is of MPICH" in fault.detail


def test_an_absolute_path_is_the_same_with_modules() -> None:
    path = Path.cwd() / "mpiexec"
    fault = preflight.fault(load(f"launcher: {path}, modules: [mpi]"), 2)
    assert fault is not None and f"{path} is of MPICH" in fault.detail


@pytest.mark.parametrize(
    "options",
    [
        "oversubscribe: false",  # the launcher that fits is found
        "launcher: 'mpiexec.openmpi -n {ranks}'",
        "launcher: 'wrapper mpiexec -n {ranks}'",
        "launcher: 'mpiexec -n {ranks}', modules: [openmpi]",
        "launcher: 'mpirunx -n {ranks}', modules: [openmpi]",
        "launcher: 'mpirunx -n {ranks}', prologue: ['PATH=/opt/bin:$PATH']",
        "launcher: 'mpirunx -n {ranks}', environment: {PATH: /opt/bin}",
        "launcher: './mpirunx -n {ranks}'",
    ],
)
def test_what_may_work(options: str) -> None:
    assert preflight.fault(load(options), 2) is None


def test_one_rank_runs_under_any_mpi_and_a_rehearsal_under_none() -> None:
    assert preflight.fault(load("launcher: 'mpiexec -n {ranks}'"), 1) is None
    rehearsal = load("launcher: mpirunx", "executor.name=simulated", "executor.truth={main: '1'}")
    assert preflight.fault(rehearsal, 2) is None
    other = load("launcher: 'mpirunx -n {ranks}'", "executor.name=slurm")
    assert preflight.fault(other, 2) is None


# --- nodes that are too small for a run -------------------------------------------------------------------

SINFO = "debug*|up|idle|4|4|1:4:1|infinite\nbig|up|idle|2|64|2:16:2|infinite\n"
ENFORCED = (
    "AccountingStorageType = accounting_storage/slurmdbd\nAccountingStorageEnforce = limits,associations\n"
)
NO_SLURM = Cluster(lambda command: None)
RUNS = [(Point.of(n=n), Resources(ranks=n, ranks_per_node=n)) for n in (1, 8)]


def cluster(listed: str = SINFO, most: int | None = None, lifting: str = "") -> Cluster:
    """Return a Slurm with these partitions and most nodes of a job, which a QOS may lift."""

    def ask(command: Sequence[str]) -> str | None:
        if command[0] == "sinfo":
            sizes = "".join(f"{line.split('|')[0]}|1-{most or 'infinite'}\n" for line in listed.splitlines())
            return sizes if command[-1].endswith("%s") else listed
        if "associations" in command:
            return association("project")
        if "qos" in command:
            return qos(lifting, flags="PartitionMaxNodes")
        return ENFORCED if "config" in command and lifting else None

    return Cluster(ask)


def on_slurm(*overrides: str) -> Campaign:
    text = TEXT.format("").replace("slots: 2, ", "").replace("local", "slurm")
    return loader.loads(text, base_directory=Path.cwd(), overrides=overrides)


def test_a_run_that_no_node_can_hold_is_refused_with_the_remedy() -> None:
    fault = preflight.node_fault(on_slurm(), RUNS, cluster())
    assert fault is not None
    assert "P(n=8) needs 8 cores, nodes of partition debug have 4" in fault.detail
    assert fault.remedy == "set executor.cores_per_node: 4"


@pytest.mark.parametrize(
    "overrides", [("executor.partition=big",), ("executor.cores_per_node=4",), ("executor.partition=none",)]
)
def test_runs_that_fit_or_partitions_that_are_unknown_are_not_refused(overrides: tuple[str, ...]) -> None:
    assert preflight.node_fault(on_slurm(*overrides), RUNS, cluster()) is None


def test_the_cluster_is_not_asked_where_every_run_has_one_core() -> None:
    def asked(command: Sequence[str]) -> str | None:
        raise AssertionError("not needed")

    assert preflight.node_fault(on_slurm(), RUNS[:1], Cluster(asked)) is None


def test_stated_nodes_that_are_too_small_are_refused() -> None:
    wide = [(Point.of(n=1), Resources(ranks=16, threads=1, nodes=2, ranks_per_node=8))]
    fault = preflight.node_fault(on_slurm(), wide, cluster())
    assert fault is not None
    assert "P(n=1) needs 8 cores on each of 2 nodes, nodes of partition debug have 4" in fault.detail
    fits = [(Point.of(n=1), Resources(ranks=16, threads=1, nodes=4, ranks_per_node=4))]
    assert preflight.node_fault(on_slurm(), fits, cluster()) is None


@pytest.mark.parametrize("how", ["exclusive=true", "billing=nodes"])
def test_whole_nodes_of_unknown_size_are_refused_with_the_remedy(how: str) -> None:
    fault = preflight.node_fault(on_slurm(f"executor.{how}"), RUNS[:1], cluster())
    assert fault is not None
    assert "A node of partition debug has 4 cores" in fault.detail
    assert fault.remedy == "set executor.cores_per_node: 4"
    known = on_slurm(f"executor.{how}", "executor.cores_per_node=4")
    assert preflight.node_fault(known, RUNS[:1], cluster()) is None


def test_mpi_operations_cannot_be_timed_without_a_compiler_of_the_programs_mpi(tmp_path: Path) -> None:
    campaign = load("launcher: 'mpiexec.openmpi -n {ranks}'", "measure.profiler=mpi")
    fault = preflight.fault(campaign, 1)
    assert fault is not None
    assert fault.detail == (
        f"measure.profiler mpi: no mpicc of Open MPI, the MPI of {tmp_path}/app, beside it, beside its "
        "library, beside its mpiexec or on PATH"
    )
    assert "load its module" in fault.remedy
    assert preflight.fault(load("launcher: 'mpiexec.openmpi -n {ranks}'"), 1) is None


def test_a_compiler_of_another_mpi_is_not_taken(tmp_path: Path) -> None:
    other = tmp_path / "mpicc"
    other.write_text("#!/bin/sh\necho '#define MPICH_VERSION \"4.1\"'\n")
    other.chmod(0o755)
    with pytest.raises(CampaignError, match="no mpicc of Open MPI"):
        mpi.compiler_for(str(tmp_path / "app"))
    other.with_name("mpicc.openmpi").write_text("#!/bin/sh\necho '#define OPEN_MPI 1'\n")
    other.with_name("mpicc.openmpi").chmod(0o755)
    assert mpi.compiler_for(str(tmp_path / "app")) == str(tmp_path / "mpicc.openmpi")


# --- what Slurm does not have -----------------------------------------------------------------------------


def test_the_smallest_run_of_every_partition_is_asked_for() -> None:
    sizes = "[{up_to: 4, partition: small, cores_per_node: 4}, {partition: big, cores_per_node: 64}]"
    campaign = on_slurm(f"executor.by_size={sizes}")
    asked: list[tuple[int, str | None]] = []

    def refusal(resources: Resources, options: JobOptions) -> str | None:
        asked.append((resources.ranks, options.fitting(resources).partition))
        return "invalid partition specified" if resources.ranks > 4 else None

    runs = [Resources(ranks=n, ranks_per_node=n) for n in (16, 2, 1, 8)]
    fault = preflight.submission_fault(campaign, runs, refusal)
    assert fault is not None
    assert asked == [(1, "small"), (8, "big")]
    assert "with executor.partition=big: invalid partition specified" in fault.detail
    assert preflight.submission_fault(campaign, runs, lambda resources, options: None) is None


def test_other_executors_ask_no_slurm() -> None:
    def refusal(resources: Resources, options: JobOptions) -> str | None:
        raise AssertionError("not needed")

    assert preflight.submission_fault(load(""), [Resources(ranks=1)], refusal) is None


# --- what Slurm would never start --------------------------------------------------------------------------

LIMITED = "debug*|up|idle|4|4|1:4:1|1:00:00\nbig|up|idle|2|64|2:16:2|infinite\n"


def wide(nodes: int = 1, cores: int = 1) -> list[tuple[Point, Resources]]:
    return [(Point.of(n=1), Resources(ranks=nodes * cores, nodes=nodes, ranks_per_node=cores))]


@pytest.mark.parametrize(
    ("runs", "most", "words"),
    [
        (wide(nodes=5), None, "P(n=1) needs 5 nodes, and a job in partition debug gets at most 4"),
        (wide(nodes=3), 2, "P(n=1) needs 3 nodes, and a job in partition debug gets at most 2"),
        (wide(cores=8), None, "P(n=1) needs 8 cores of a node, and nodes of partition debug have 4"),
    ],
)
def test_runs_of_a_size_that_the_partition_never_has_are_refused(
    runs: list[tuple[Point, Resources]], most: int | None, words: str
) -> None:
    campaign = on_slurm("executor.cores_per_node=8")
    fault = preflight.size_fault(campaign, runs, cluster(LIMITED, most))
    assert fault is not None and words in fault.detail and "executor.partition" in fault.remedy
    assert preflight.size_fault(campaign, runs, NO_SLURM) is None  # Slurm does not answer
    assert preflight.size_fault(load(""), runs, cluster(LIMITED, most)) is None


def test_one_of_several_partitions_that_takes_a_run_is_enough() -> None:
    both = on_slurm("executor.cores_per_node=8", "executor.partition='debug,big'")
    assert preflight.size_fault(both, wide(cores=64), cluster(LIMITED)) is None
    assert preflight.size_fault(both, wide(nodes=4, cores=4), cluster(LIMITED)) is None
    assert preflight.size_fault(both, wide(nodes=4, cores=8), cluster(LIMITED)) is not None


def test_a_qos_may_lift_the_most_nodes_of_a_job() -> None:
    runs = wide(nodes=3)
    campaign = on_slurm("executor.cores_per_node=4", "executor.qos=wide")
    assert preflight.size_fault(campaign, runs, cluster(LIMITED, 2, lifting="wide")) is None


def test_the_longest_run_of_every_partition_must_fit_its_time() -> None:
    sizes = "[{up_to: 4, partition: debug, cores_per_node: 4}, {partition: big, cores_per_node: 64}]"
    campaign = on_slurm(f"executor.by_size={sizes}", "measure.time_limit=2 h")
    small, large = (Resources(ranks=n, ranks_per_node=n) for n in (2, 16))
    run = Run(Point.of(n=1))
    limits = [(run, large, 7200.0), (run, small, 60.0), (run, small, 3590.0)]
    assert preflight.time_fault(campaign, limits[:2], cluster(LIMITED)) is None
    fault = preflight.time_fault(campaign, limits, cluster(LIMITED))
    assert fault is not None
    assert "needs 61 min, and partition debug allows 1 h" in fault.detail
    assert "measure.time_limit to at most 59 min" in fault.remedy
    assert preflight.time_fault(campaign, limits, NO_SLURM) is None
    assert preflight.time_fault(load(""), limits, cluster(LIMITED)) is None

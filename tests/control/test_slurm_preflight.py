"""Runs that Slurm would certainly reject, never start, or charge more than is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.control import slurm_preflight
from orchestrator.control.assembly import assemble
from orchestrator.control.preflight import Fault
from orchestrator.control.slurm_preflight import time_fault
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.types import Point, Resources, Run
from tests.slurm.sacctmgr import association, qos

TEXT = """\
name: tiny
application: generic
executable: /bin/true
program: {ranks: n, output: [{callpath: main, pattern: '(.*)'}]}
parameters: {n: [1, 2]}
stop: {budget: 1}
executor: {name: slurm}
"""
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
    return loader.loads(TEXT, base_directory=Path.cwd(), overrides=overrides)


def local() -> Campaign:
    return on_slurm("executor={name: local}")


def start_fault(
    campaign: Campaign, runs: Sequence[tuple[Point, Resources]], known: Cluster | None = None
) -> Fault | None:
    return slurm_preflight.start_fault(campaign, runs, known or cluster(), lambda resources, options: None)


def test_a_run_that_no_node_can_hold_is_refused_with_the_remedy() -> None:
    fault = start_fault(on_slurm(), RUNS)
    assert fault is not None
    assert "P(n=8) needs 8 cores, nodes of partition debug have 4" in fault.detail
    assert fault.remedy == "set executor.cores_per_node: 4"


@pytest.mark.parametrize("overrides", [("executor.partition=big",), ("executor.partition=none",)])
def test_runs_that_fit_or_partitions_that_are_unknown_are_not_refused(overrides: tuple[str, ...]) -> None:
    assert start_fault(on_slurm(*overrides), RUNS) is None


def test_stated_nodes_that_are_too_small_are_refused() -> None:
    wide = [(Point.of(n=1), Resources(ranks=16, threads=1, nodes=2, ranks_per_node=8))]
    fault = start_fault(on_slurm(), wide)
    assert fault is not None
    assert "P(n=1) needs 8 cores on each of 2 nodes, nodes of partition debug have 4" in fault.detail
    fits = [(Point.of(n=1), Resources(ranks=16, threads=1, nodes=4, ranks_per_node=4))]
    assert start_fault(on_slurm(), fits) is None


@pytest.mark.parametrize("how", ["exclusive=true", "billing=nodes"])
def test_whole_nodes_of_unknown_size_are_refused_with_the_remedy(how: str) -> None:
    fault = start_fault(on_slurm(f"executor.{how}"), RUNS[:1])
    assert fault is not None
    assert "A node of partition debug has 4 cores" in fault.detail
    assert fault.remedy == "set executor.cores_per_node: 4"
    known = on_slurm(f"executor.{how}", "executor.cores_per_node=4")
    assert start_fault(known, RUNS[:1]) is None


def test_hardware_threads_that_are_charged_and_not_counted_are_told_before_the_first_run() -> None:
    threads = SINFO + "threads|up|idle|2|8|1:4:2|infinite\n"
    (note,) = slurm_preflight.notes(on_slurm("executor.partition=threads"), cluster(threads))
    assert "Slurm counts 2 hardware threads for each core of threads and charges whole cores" in note
    assert note.endswith("set executor.threads_per_core: 2")
    counted = on_slurm("executor.partition=threads", "executor.threads_per_core=2")
    for campaign in (counted, on_slurm(), local()):
        assert slurm_preflight.notes(campaign, cluster(threads)) == []
    assert slurm_preflight.notes(on_slurm(), NO_SLURM) == []


# --- what accounting never allows -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "words"),
    [
        (("cpu=4", "", "", ""), "P(n=8) needs 8 CPUs, and QOS normal allows a job 4: such runs never start"),
        (("", "cpu=7", "", ""), "needs 8 CPUs, and QOS normal allows the jobs of a user 7: such runs never"),
        (("", "", "cpu=7", ""), "needs 8 CPUs, and QOS normal allows the jobs of an account 7: such runs"),
        (("", "", "", "node=1"), "needs 2 nodes, and QOS normal allows all its jobs together 1: such runs"),
    ],
)
def test_runs_larger_than_accounting_allows_are_refused(most: tuple[str, str, str, str], words: str) -> None:
    def ask(command: Sequence[str]) -> str | None:
        if command[0] == "sinfo":
            return None if command[-1].endswith("%s") else SINFO
        if "associations" in command:
            return association("project", qos="normal")
        return qos("normal", most=most) if "qos" in command else ENFORCED

    runs = [
        (Point.of(n=n), Resources(ranks=n, ranks_per_node=4, nodes=nodes)) for n, nodes in ((8, 2), (4, 1))
    ]
    fault = start_fault(on_slurm("executor.cores_per_node=4"), runs, Cluster(ask))
    assert fault is not None
    assert words in fault.detail
    assert fault.remedy == "set another executor.qos, or exclude such points by constraints"
    assert start_fault(on_slurm("executor.cores_per_node=4"), runs[1:], Cluster(ask)) is None


# --- what Slurm does not have -----------------------------------------------------------------------------


def test_the_smallest_run_of_every_partition_is_asked_for() -> None:
    sizes = "[{up_to: 4, partition: small, cores_per_node: 4}, {partition: big, cores_per_node: 64}]"
    campaign = on_slurm(f"executor.by_size={sizes}")
    asked: list[tuple[int, str | None]] = []

    def refusal(resources: Resources, options: JobOptions) -> str | None:
        asked.append((resources.ranks, options.fitting(resources).partition))
        return "invalid partition specified" if resources.ranks > 4 else None

    runs = [(Point.of(n=n), Resources(ranks=n, ranks_per_node=n)) for n in (2, 16, 1, 8)]
    fault = slurm_preflight.start_fault(campaign, runs, NO_SLURM, refusal)
    assert fault is not None
    assert asked == [(1, "small"), (8, "big")]
    assert "with executor.partition=big: invalid partition specified" in fault.detail
    assert start_fault(campaign, runs, NO_SLURM) is None


def test_other_executors_ask_no_slurm() -> None:
    def ask(*question: object) -> str | None:
        raise AssertionError("not needed")

    assert slurm_preflight.start_fault(local(), RUNS, Cluster(ask), ask) is None
    assert time_fault(assemble(local()), [(Run(Point.of(n=1)), 1e9)], Cluster(ask)) is None


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
    fault = start_fault(campaign, runs, cluster(LIMITED, most))
    assert fault is not None and words in fault.detail and "executor.partition" in fault.remedy
    assert start_fault(campaign, runs, NO_SLURM) is None  # Slurm does not answer


def test_one_of_several_partitions_that_takes_a_run_is_enough() -> None:
    both = on_slurm("executor.cores_per_node=8", "executor.partition='debug,big'")
    assert start_fault(both, wide(cores=64), cluster(LIMITED)) is None
    assert start_fault(both, wide(nodes=4, cores=4), cluster(LIMITED)) is None
    assert start_fault(both, wide(nodes=4, cores=8), cluster(LIMITED)) is not None


def test_a_qos_may_lift_the_most_nodes_of_a_job() -> None:
    runs = wide(nodes=3)
    campaign = on_slurm("executor.cores_per_node=4", "executor.qos=wide")
    assert start_fault(campaign, runs, cluster(LIMITED, 2, lifting="wide")) is None


def test_the_longest_run_of_every_partition_must_fit_its_time() -> None:
    sizes = "[{up_to: 4, partition: debug, cores_per_node: 4}, {partition: big, cores_per_node: 64}]"
    campaign = on_slurm(f"executor.by_size={sizes}", "measure.time_limit=2 h", "parameters={n: [2, 16]}")
    built, small, large = assemble(campaign), Run(Point.of(n=2)), Run(Point.of(n=16))
    limits = [(large, 7200.0), (small, 60.0), (small, 3590.0)]
    assert time_fault(built, limits[:2], cluster(LIMITED)) is None
    fault = time_fault(built, limits, cluster(LIMITED))
    assert fault is not None
    assert "needs 61 min, and partition debug allows 1 h" in fault.detail
    assert "measure.time_limit to at most 59 min" in fault.remedy
    assert time_fault(built, limits, NO_SLURM) is None

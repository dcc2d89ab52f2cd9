"""The longest job that Slurm starts: by partition, QOS and association, as their commands print them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from orchestrator.executors.slurm import ceilings
from orchestrator.executors.slurm.ceilings import Ceiling
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.types import Resources
from orchestrator.units import parse_duration
from tests.slurm.sacctmgr import association, qos

ENFORCED = (
    "AccountingStorageType = accounting_storage/slurmdbd\nAccountingStorageEnforce = {}\n"
    "ClusterName = testing\n"
)
ANSWERS = {
    "config": ENFORCED.format("associations,limits,qos"),
    "qos": "".join(
        (
            qos("normal"),
            qos("short", "00:05:00"),
            qos("long", "7-00:00:00", "PartitionTimeLimit,PartitionMaxNodes"),
            qos("half", "00:30:00"),
            qos("over", "00:40:00", "OverPartQOS"),
        )
    ),
    "associations": "".join(
        (
            association("project", qos="half,long,normal,over,short"),
            association("teaching", qos="half"),
            association("old", qos="normal", wall="02:00:00"),
        )
    ),
    "partition": (
        "PartitionName=debug QoS=N/A MaxTime=01:00:00\nPartitionName=big QoS=short MaxTime=2-00:00:00\n"
    ),
    "sinfo": (
        "debug*|up|idle|4|4|1:4:1|1:00:00\nbig|up|idle|2|64|2:16:2|2-00:00:00\n"
        "free|up|idle|2|64|2:16:2|infinite\n"
    ),
}


def cluster(**changes: str | None) -> Cluster:
    known: Mapping[str, str | None] = ANSWERS | changes

    def ask(command: Sequence[str]) -> str | None:
        return next((text for word, text in known.items() if word in command), None)

    return Cluster(ask)


def ceiling(known: Cluster, **options: str) -> Ceiling | None:
    return ceilings.ceiling(JobOptions(**options), known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "seconds", "of"),
    [
        ({}, 3600, "partition debug"),
        ({"qos": "short"}, 300, "QOS short"),
        ({"account": "teaching"}, 1800, "QOS half"),  # its only QOS
        ({"account": "old", "partition": "free"}, 7200, "account old"),
        ({"partition": "big"}, 300, "QOS short"),  # of the partition
        ({"partition": "big", "qos": "over"}, 2400, "QOS over"),
        ({"partition": "debug,big"}, 172800, "partition debug and big"),
        ({"qos": "long"}, 604800, "QOS long"),  # which lifts the limit of the partition
    ],
)
def test_the_first_that_states_a_limit_decides(options: dict[str, str], seconds: float, of: str) -> None:
    assert ceiling(cluster(), **options) == Ceiling(seconds, of)


@pytest.mark.parametrize(
    ("options", "kind", "amount", "of"),
    [
        ({"qos": "a"}, "cpu", 64, "QOS a"),  # of a user, below those of a job and of all
        ({"qos": "a"}, "node", 4, "QOS a"),
        ({"qos": "b"}, "cpu", 96, "account project"),  # the QOS states none for a job
        ({"qos": "b"}, "node", 8, "account project"),
        ({"qos": "b", "partition": "big"}, "cpu", 16, "QOS short"),  # of the partition
        ({"qos": "b", "account": "old"}, "cpu", 5, "account old"),
    ],
)
def test_the_least_of_all_that_limits_how_much_jobs_occupy_decides(
    options: dict[str, str], kind: str, amount: int, of: str
) -> None:
    known = cluster(
        qos=qos("a", most=("cpu=128,node=4", "cpu=64,gres/gpu=2", "", "cpu=999"))
        + qos("b", most=("gres/gpu=2", "", "", ""))
        + qos("short", most=("cpu=16", "", "", "")),
        associations=association("project", qos="a,b", resources="cpu=96,node=16", together="node=8")
        + association("old", qos="a,b", together="cpu=5"),
    )
    jobs = JobOptions(**({"account": "project"} | options))  # type: ignore[arg-type]
    found = ceilings.widest(jobs, known, kind)
    assert found is not None
    assert (found.amount, found.of) == (amount, of)


def test_where_nothing_limits_jobs_or_one_account_does_not_they_may_be_of_any_size() -> None:
    assert ceilings.widest(JobOptions(), cluster(), "cpu") is None
    one = association("project", qos="normal", resources="cpu=8")
    assert ceilings.widest(JobOptions(), cluster(associations=one), "cpu") is not None
    both = one + association("other", qos="normal")
    assert ceilings.widest(JobOptions(), cluster(associations=both), "cpu") is None
    both = one + association("other", qos="normal", resources="cpu=16")
    most = ceilings.widest(JobOptions(), cluster(associations=both), "cpu")
    assert most is not None and (most.amount, most.of) == (16, "account other")
    elsewhere = one + association("project", qos="normal", resources="cpu=16", partition="big")
    most = ceilings.widest(JobOptions(), cluster(associations=elsewhere), "cpu")
    assert most is not None and most.amount == 8
    assert ceilings.widest(JobOptions(), cluster(config=None, associations=one), "cpu") is None


def test_what_is_not_known_limits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ceiling(cluster(), partition="free") is None
    assert ceiling(cluster(), partition="debug,free") is None
    assert ceiling(cluster(), partition="big,free") is None, "only one of them has a QOS"
    assert ceiling(cluster(), partition="unheard-of", account="unheard-of") is None
    assert ceiling(cluster(qos=None), qos="short") is None  # it may lift the partition's limit
    assert ceiling(cluster(associations=None), account="old") == Ceiling(3600, "partition debug")
    assert ceiling(cluster(config=ENFORCED.format("none")), account="old") == Ceiling(3600, "partition debug")
    assert ceiling(cluster(sinfo=None, config=None)) is None
    monkeypatch.setenv("SBATCH_PARTITION", "free")  # sbatch takes it where the campaign names none
    assert ceiling(cluster()) is None


@pytest.mark.parametrize("seconds", [60, 300, 3600, 7 * 86400 + 30])
@pytest.mark.parametrize("slowdown", [1.0, 10.0])
def test_the_remedy_is_a_limit_that_fits(seconds: float, slowdown: float) -> None:
    found = Ceiling(seconds, "QOS short")
    text = found.remedy(slowdown)
    assert text.endswith("another executor.qos")
    stated = text.removeprefix("set measure.time_limit to at most ").partition(", or")[0]
    assert found.holds(slowdown * parse_duration(stated))
    assert not found.holds(seconds)  # ending the run takes time, too


def test_a_partition_that_is_too_short_for_any_run() -> None:
    assert Ceiling(0, "partition debug").remedy() == "set another executor.partition"


def test_a_run_is_granted_what_its_job_is() -> None:
    granted = ceilings.granting(JobOptions(), cluster())
    for ranks in (1, 2, 2):
        assert granted(Resources(ranks=ranks, ranks_per_node=ranks)) == (3600 - 22, "partition debug")
    assert ceilings.granting(JobOptions(partition="free"), cluster())(Resources(ranks=1)) == (math.inf, "")


def test_limits_that_slurm_did_not_say_are_asked_for_again_but_not_at_every_run() -> None:
    now, answers = [0.0], iter([cluster(qos=None), cluster()])
    granted = ceilings.granting(
        JobOptions(qos="short"), cluster(qos=None), lambda: next(answers), lambda: now[0]
    )
    for now[0], limit in ((1, None), (599, None), (600, None), (1199, None), (1200, 278), (9999, 278)):
        assert granted(Resources(ranks=1))[0] == (limit or math.inf)

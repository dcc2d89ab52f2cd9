"""The longest job that Slurm starts: by partition, QOS and association, as their commands print them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from orchestrator.executors.slurm import ceilings
from orchestrator.executors.slurm.ceilings import Ceiling, Enforced
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.executors.slurm.partitions import parse_partitions
from orchestrator.types import Resources
from orchestrator.units import parse_duration

SINFO = """\
debug*|up|idle|4|4|1:4:1|1:00:00
big|up|idle|2|64|2:16:2|2-00:00:00
free|up|idle|2|64|2:16:2|infinite
"""
ANSWERS = {
    "scontrol show config": "AccountingStorageEnforce = associations,limits,qos\nClusterName = testing\n",
    "sacctmgr --noheader --parsable2 show qos": (
        "normal||\nshort|00:05:00|\nlong|7-00:00:00|PartitionTimeLimit,PartitionMaxNodes\nhalf|00:30:00|\n"
        "over|00:40:00|OverPartQOS\n"
    ),
    "sacctmgr --noheader --parsable2 show associations": (
        "project||half,long,normal,over,short||\nteaching||half||\nold||normal||02:00:00\n"
    ),
    "scontrol --oneliner show partition": (
        "PartitionName=debug QoS=N/A MaxTime=01:00:00\nPartitionName=big QoS=short MaxTime=2-00:00:00\n"
    ),
}


def limits(**changes: str | None) -> Enforced:
    known: Mapping[str, str | None] = ANSWERS | {
        {"config": "scontrol show config", "qos": "sacctmgr --noheader --parsable2 show qos"}[name]: text
        for name, text in changes.items()
    }

    def ask(command: Sequence[str]) -> str | None:
        return next((text for start, text in known.items() if " ".join(command).startswith(start)), None)

    return ceilings.enforced(ask)


def ceiling(enforced: Enforced, **options: str) -> Ceiling | None:
    return ceilings.ceiling(JobOptions(**options), parse_partitions(SINFO), enforced)  # type: ignore[arg-type]


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
    assert ceiling(limits(), **options) == Ceiling(seconds, of)


def test_what_is_not_known_limits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ceiling(limits(), partition="free") is None
    assert ceiling(limits(), partition="debug,free") is None
    assert ceiling(limits(), partition="unheard-of", account="unheard-of") is None
    assert ceiling(limits(qos=None), qos="short") is None  # it may lift the partition's limit
    assert ceiling(limits(config="AccountingStorageEnforce = none\n"), account="old") == Ceiling(
        3600, "partition debug"
    )
    assert ceilings.enforced(lambda command: None) == Enforced()
    monkeypatch.setenv("SBATCH_PARTITION", "free")  # sbatch takes it where the campaign names none
    assert ceiling(limits()) is None


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


def test_slurm_is_asked_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def partitions() -> object:
        asked.append("sinfo")
        return parse_partitions(SINFO)

    monkeypatch.setattr(ceilings, "partitions", partitions)
    monkeypatch.setattr(ceilings, "enforced", Enforced)
    granted = ceilings.granting(JobOptions())
    for ranks in (1, 2, 2):
        assert granted(Resources(ranks=ranks, ranks_per_node=ranks)) == (3600 - 22, "partition debug")
    assert asked == ["sinfo"]
    assert ceilings.granting(JobOptions(partition="free"))(Resources(ranks=1)) == (math.inf, "")

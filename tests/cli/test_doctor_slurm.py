"""Checks of Slurm: on invented clusters, and once on a real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign import loader
from orchestrator.campaign.schema import SlurmOptions
from orchestrator.control.assembly import assemble
from orchestrator.control.planning import FirstRound
from orchestrator.doctor import executor_section, slurm
from orchestrator.doctor.check import Check, Status
from orchestrator.doctor.examined import Examined
from orchestrator.doctor.probe import Answer, Probe, here
from orchestrator.executors.slurm import partitions
from orchestrator.executors.slurm.cluster import Cluster
from orchestrator.executors.slurm.partitions import Partition
from orchestrator.types import Point, Resources, Run
from tests.cli import machines
from tests.cli.machines import CONFIGURATION, PARTITIONS
from tests.cli.running import LOCAL, run, write_campaign
from tests.slurm.cluster import SlurmCluster


def examined(probe: Probe) -> dict[str, Check]:
    return {item.name: item for item in slurm.examine(probe)[0]}


def test_a_machine_without_slurm_is_calm() -> None:
    checks, cluster = slurm.examine(machines.probe())
    (check,) = checks
    assert cluster is None
    assert check.status is Status.MISSING
    assert "needed only for the executor slurm" in check.detail
    assert "apt-get install slurm-client" in check.remedy


def test_a_slurm_that_does_not_answer() -> None:
    silent = Answer(False, error="scontrol: error: fetch_config\nscontrol: fatal: no configuration source\n")
    checks = examined(machines.cluster(ping=silent))
    assert checks["slurmctld"].status is Status.MISSING
    assert "fatal: no configuration source" in checks["slurmctld"].detail
    assert "SLURM_CONF" in checks["slurmctld"].remedy
    down = "Slurmctld(primary) at head is DOWN\n"
    assert examined(machines.cluster(ping=down))["slurmctld"].status is Status.MISSING


def test_whether_there_is_a_slurm_takes_one_question() -> None:
    whole, asked = machines.cluster(), []

    def ask(command: Sequence[str]) -> Answer:
        asked.append(list(command))
        return whole.ask(command)

    assert slurm.find(replace(whole, ask=ask))[1] is not None
    assert asked == [["scontrol", "ping"]]


def test_one_of_two_controllers_is_enough() -> None:
    ping = Answer(False, "Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP\n")
    assert examined(machines.cluster(ping=ping))["slurmctld"].status is Status.OK


def test_a_cluster_where_everything_works() -> None:
    checks = examined(machines.cluster())
    assert {item.status for item in checks.values()} == {Status.OK}
    assert checks["slurmctld"].detail == "answers: Slurm 22.05.8, cluster big"
    assert "compute (default): 98 of 100 nodes up, 64 cores each, up to 24 h" in checks["partitions"].detail
    assert checks["limits"].detail == "MaxArraySize 1001, MaxJobCount 10000, KillWait 30 sec"
    assert (
        "at most 10 jobs queued or running, up to 24 h, at most cpu=256 per job" in checks["accounts"].detail
    )
    assert "other in compute (QOS normal), at most 4 jobs at once" in checks["accounts"].detail
    assert checks["srun --mpi"].detail == "pmix, pmi2"


def test_programs_that_are_missing() -> None:
    whole = machines.cluster()
    for program, status in (("squeue", Status.MISSING), ("sacct", Status.WARNING)):
        check = examined(
            replace(whole, which={name: name for name in machines.SLURM if name != program}.get)
        )["Slurm"]
        assert check.status is status
        assert program in check.detail


@pytest.mark.parametrize("kind", ["accounting_storage/none", "(null)"])
def test_accounting_is_off(kind: str) -> None:
    config = CONFIGURATION.replace("accounting_storage/slurmdbd", kind)
    checks = examined(machines.cluster(config=config, sacct=Answer(False, error="disabled")))
    assert checks["accounting"].status is Status.WARNING
    assert checks["accounting"].detail.startswith("off")
    assert "accounts" not in checks


def test_accounting_that_does_not_answer() -> None:
    silent = Answer(False, error="sacct: error: Connection refused")
    check = examined(machines.cluster(sacct=silent))["accounting"]
    assert check.status is Status.WARNING
    assert "Connection refused" in check.detail


def test_a_user_without_an_account() -> None:
    assert examined(machines.cluster(sacctmgr=""))["accounts"].status is Status.FAILED
    config = CONFIGURATION.replace("associations,limits,qos", "none")
    assert examined(machines.cluster(sacctmgr="", config=config))["accounts"].status is Status.OK


def test_no_node_takes_jobs() -> None:
    check = examined(machines.cluster(sinfo=PARTITIONS.splitlines()[-1]))["partitions"]
    assert check.status is Status.FAILED
    assert "sinfo --list-reasons" in check.remedy
    assert examined(machines.cluster(sinfo=""))["partitions"].status is Status.FAILED


def test_many_partitions_are_summed_up() -> None:
    lines = "\n".join(f"p{number}|up|idle|1|4|1:4:1|infinite" for number in range(50))
    assert examined(machines.cluster(sinfo=lines))["partitions"].detail.endswith("and 44 more")


@pytest.mark.parametrize(
    ("listed", "status"),
    [
        ("srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: openmpi\n", Status.OK),
        ("MPI plugin types are...\n\tnone\n\tcray_shasta\n", Status.WARNING),
        ("", Status.WARNING),
    ],
)
def test_interfaces_of_srun(listed: str, status: Status) -> None:
    assert examined(machines.cluster(srun=Answer(True, error=listed)))["srun --mpi"].status is status


def test_a_long_time_to_kill_is_reserved_by_every_run() -> None:
    config = CONFIGURATION.replace("30 sec", "600 sec")
    assert examined(machines.cluster(config=config))["limits"].status is Status.WARNING


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("infinite", None),
        ("UNLIMITED", None),
        ("n/a", None),
        ("", None),
        ("30", 1800),
        ("2:00", 120),
        ("1:30:00", 5400),
        ("1-00:00:00", 86400),
        ("7-12", 648000),
        ("2-03:04", 183840),
    ],
)
def test_time_limits(text: str, seconds: float | None) -> None:
    assert partitions.parse_time(text) == seconds


def test_partitions_are_put_together_from_their_lines() -> None:
    found = {item.name: item for item in partitions.parse_partitions(PARTITIONS)}
    assert found["compute"] == Partition(
        name="compute", default=True, up=True, nodes=100, usable=98, cores=(64,), threads=1, time=86400
    )
    assert found["threads"] == Partition(
        name="threads", default=False, up=True, nodes=4, usable=4, cores=(64,), threads=2, time=None
    )
    assert found["mixture"].cores == (48, 64)
    assert not found["closed"].up
    assert found["dead"].usable == 0


@pytest.mark.parametrize(
    "state", ["idle", "mixed", "allocated", "allocated+", "completing", "planned", "idle~"]
)
def test_nodes_that_take_jobs(state: str) -> None:
    (item,) = partitions.parse_partitions(f"p|up|{state}|1|4|1:4:1|infinite")
    assert item.usable == 1


@pytest.mark.parametrize("state", ["down", "down*", "idle*", "drained", "draining", "fail", "maint", "inval"])
def test_nodes_that_take_no_jobs(state: str) -> None:
    (item,) = partitions.parse_partitions(f"p|up|{state}|1|4|1:4:1|infinite")
    assert item.usable == 0


# --- a campaign against a cluster -----------------------------------------------------------------------


def faults(options: Mapping[str, Any], ranks: int = 1, limit: float | None = 60.0) -> dict[str, Check]:
    cluster = slurm.examine(machines.cluster())[1]
    assert cluster is not None
    executor = SlurmOptions.model_validate({"name": "slurm", "cores_per_node": 64, **options})
    largest = Resources(ranks=ranks, threads=2, ranks_per_node=ranks)
    found = executor_section.of_size(executor, cluster, largest, limit)
    return {item.name: item for item in found if item.status is not Status.OK}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"partition": "compute"},
        {"partition": "mixture", "cores_per_node": 48, "constraint": "old"},
        {"account": "project", "qos": "long"},
        {"partition": "compute,threads", "threads_per_core": 2},
        {"partition": "mixture,threads", "threads_per_core": 2, "cores_per_node": None},
        {"partition": "compute,threads", "threads_per_core": 2, "pack": {"longest": "25 h"}},
    ],
)
def test_a_campaign_that_fits(options: Mapping[str, Any]) -> None:
    assert faults(options) == {}


@pytest.mark.parametrize(
    ("options", "name", "status", "remedy"),
    [
        ({"partition": "compute2"}, "partition", Status.FAILED, "did you mean 'compute'?"),
        ({"partition": "closed"}, "partition", Status.FAILED, "another executor.partition"),
        ({"partition": "dead"}, "partition", Status.WARNING, "wait"),
        ({"cores_per_node": 65}, "cores_per_node", Status.FAILED, "executor.cores_per_node: 64"),
        ({"cores_per_node": 32}, "cores_per_node", Status.WARNING, "executor.cores_per_node: 64"),
        (
            {"partition": "threads", "cores_per_node": 128, "threads_per_core": 2},
            "cores_per_node",
            Status.WARNING,
            "executor.cores_per_node: 64",
        ),
        (
            {"partition": "mixture", "cores_per_node": 48},
            "cores_per_node",
            Status.WARNING,
            "executor.constraint",
        ),
        ({"partition": "compute,mixture"}, "cores_per_node", Status.WARNING, "or by executor.partition"),
        ({"partition": "compute,threads"}, "threads_per_core", Status.WARNING, "threads_per_core: 2"),
        (
            {"partition": "compute,mixture", "pack": {"longest": "25 h"}, "constraint": "new"},
            "pack",
            Status.WARNING,
            "24 h",
        ),
        ({"partition": "threads"}, "threads_per_core", Status.WARNING, "executor.threads_per_core: 2"),
        ({"account": "projekt"}, "account", Status.FAILED, "did you mean 'project'?"),
        ({"account": "other", "qos": "long"}, "QOS", Status.FAILED, "normal"),
        ({"max_pending": 20}, "max_pending", Status.WARNING, "executor.max_pending: 10"),
    ],
)
def test_a_campaign_that_does_not_fit(
    options: Mapping[str, Any], name: str, status: Status, remedy: str
) -> None:
    found = faults(options)
    assert set(found) == {name}
    assert found[name].status is status
    assert remedy in found[name].remedy


def test_cores_per_node_must_be_known_for_runs_larger_than_a_node() -> None:
    assert faults({"cores_per_node": None}, ranks=32) == {}
    found = faults({"cores_per_node": None}, ranks=33)
    assert found["cores_per_node"].status is Status.MISSING
    assert found["cores_per_node"].remedy == "set executor.cores_per_node: 64"
    assert faults({"cores_per_node": None, "partition": "mixture,compute"}, ranks=32) == {}


SIZES = """\
name: sizes
application: generic
executable: /bin/true
program: {ranks: n, output: [{callpath: main, pattern: '(.*)'}]}
parameters: {n: [1, 2, 4, 128]}
measure: {time_limit: 20 * n}
stop: {budget: 9}
executor:
  name: slurm
  launcher: 'srun -n {ranks}'
  by_size: [{up_to: 2, partition: mixture, cores_per_node: 48}, {partition: compute, cores_per_node: 64}]
"""


def never_started(limit: float, *overrides: str) -> list[Check]:
    """Return what is wrong if runs at n=2 may take so long, and those at n=128 two hours."""
    cluster = slurm.examine(machines.cluster())[1]
    assert cluster is not None
    built = assemble(loader.loads(SIZES, base_directory=Path.cwd(), overrides=overrides))
    plan = FirstRound(
        runs=(Run(Point.of(n=2)), Run(Point.of(n=128))),
        reasons=("", ""),
        cores=(2, 128),
        limits=(limit, 7200.0),
        derived_limit=None,
        worst=0.0,
        needed=0.0,
        expected=None,
    )
    examined = Examined(built, Path("sizes"))
    examined.__dict__["first_round"] = plan
    return list(executor_section.never_started(examined, cluster))


def test_a_run_is_held_to_the_limits_of_its_own_partition_as_at_the_start() -> None:
    assert never_started(90.0) == []
    [check] = never_started(100.0)  # ending the run takes time, too
    assert (check.name, check.status) == ("time limit", Status.FAILED)
    assert "P(n=2) time may take 1 min 40 s" in check.detail
    assert "partition mixture allows 2 min" in check.detail
    assert check.remedy.startswith("set measure.time_limit to at most 1 min 38 s")


def test_a_run_that_needs_more_nodes_than_there_are() -> None:
    assert never_started(90.0, "parameters={n: [1, 2, 6400]}") == []
    [check] = never_started(90.0, "parameters={n: [1, 2, 6401]}")
    assert (check.name, check.status) == ("size of runs", Status.FAILED)
    assert "P(n=6401) needs 101 nodes" in check.detail


def test_jobs_of_several_runs_that_take_longer_than_the_partition_allows() -> None:
    too_long = {"pack": {"longest": "25 h"}}
    assert "pack.longest below 24 h" in faults(too_long)["pack"].remedy
    assert faults({"pack": {"longest": "25 h", "most": "off"}}) == {}
    assert faults(too_long, limit=13 * 3600) == {}  # only one fits anyway


def test_a_cluster_without_a_default_partition() -> None:
    listed = PARTITIONS.replace("*", "")
    cluster = Cluster(lambda command: listed if command == partitions.SINFO else None)
    checks = executor_section.of_size(SlurmOptions(name="slurm"), cluster, Resources(ranks=1), None)
    (check,) = checks
    assert check.status is Status.FAILED
    assert "compute, threads" in check.remedy


# --- a real Slurm ----------------------------------------------------------------------------------------


@pytest.mark.slurm
def test_a_real_slurm_and_a_campaign_on_it(
    slurm_cluster_without_accounting: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {item.name: item for item in slurm.examine(here(slurm_cluster_without_accounting.environment))[0]}
    assert found["slurmctld"].status is Status.OK
    assert "debug (default)" in found["partitions"].detail
    assert "KillWait 5 sec" in found["limits"].detail
    assert found["accounting"].detail.startswith("off")
    monkeypatch.setenv("SLURM_CONF", str(slurm_cluster_without_accounting.conf))
    cores = partitions.parse_partitions(
        here(slurm_cluster_without_accounting.environment).ask(partitions.SINFO).output
    )[0].cores[-1]
    text = LOCAL.replace(
        "{name: local, slots: 1, max_pending: 1, launcher: none}", "{name: slurm, partition: PART}"
    )
    write_campaign(Path.cwd(), text)
    options = ("--set", f"executor.cores_per_node={cores}", "--json")
    good = run("doctor", "campaign.yaml", "--set", "executor.partition=debug", *options)
    assert good.code == 0, good.out
    bad = run("doctor", "campaign.yaml", "--set", "executor.partition=debuk", *options)
    assert bad.code == 1
    (fault,) = [item for item in bad.document["checks"] if item["status"] == "failed"]
    assert (fault["name"], fault["needed"]) == ("partition", True)
    assert "debug" in fault["remedy"]

"""Settings of a site against a cluster: each that does not hold is found, with its remedy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.campaign.schema import SlurmOptions
from orchestrator.doctor import executor_section, launch_script, slurm, trial_run
from orchestrator.doctor.check import Check, Status
from orchestrator.doctor.probe import Answer, Probe, here
from tests.cli import machines
from tests.cli.running import PROGRAM, run, write_campaign, write_program
from tests.slurm.cluster import SlurmCluster

NODES = """\
compute*|amd,avx512|gpu:a100:4(S:0-1)
mixture|old|(null)
mixture|new|gpu:2
"""
PARTITION = "PartitionName=compute AllowAccounts=project,other AllowQos=ALL DenyQos=slow OverSubscribe=NO\n"
RESERVATION = "ReservationName=week StartTime=a EndTime=b State={} Users=me Accounts=(null)\n"


def probe(**changes: str | Answer) -> Probe:
    return machines.cluster(
        **{
            "sinfo --all --noheader --format": NODES,
            "scontrol --all --oneliner show partition": PARTITION,
            "scontrol --oneliner show reservation": RESERVATION.format("ACTIVE"),
            "bash": "gcc/12",
            **changes,
        }
    )


def found(options: Mapping[str, Any], configuration: str = "", **changes: str | Answer) -> dict[str, Check]:
    at = probe(config=machines.CONFIGURATION + configuration, **changes)
    cluster = slurm.examine(at)[1]
    assert cluster is not None
    section = SlurmOptions.model_validate({"name": "slurm", **options})
    checks = [*launch_script.checks(section, at), *executor_section.of_jobs(section, at)]
    checks += executor_section.of_partition(section, cluster, at)
    return {item.name: item for item in checks}


def test_a_campaign_that_says_nothing_needs_no_check() -> None:
    assert found({}) == {}


@pytest.mark.parametrize(("value", "warns"), [("FORCE:4", True), ("FORCE:1", False), ("YES:4", False)])
def test_cores_that_other_jobs_get_too_disturb_times(value: str, warns: bool) -> None:
    partition = {"scontrol --all --oneliner show partition": PARTITION.replace("=NO", f"={value}")}
    checks = found({}, **partition)
    assert ("shared cores" in checks) == warns
    if warns:
        assert checks["shared cores"].status is Status.WARNING
        assert f"compute gives the cores of a run to other jobs, too (OverSubscribe={value})" in (
            checks["shared cores"].detail
        )


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"constraint": "amd&[avx512*2]"}, "constraint"),
        ({"partition": "mixture", "constraint": "old|new"}, "constraint"),
        ({"gpus_per_node": 4}, "GPUs"),
        ({"partition": "mixture", "gpus_per_node": 2}, "GPUs"),
        ({"reservation": "week"}, "reservation"),
        ({"modules": ("gcc/12",)}, "modules"),
        ({"prologue": ("x=1",)}, "prologue"),
        ({"epilogue": ("x=1",)}, "epilogue"),
        ({"mpi": "pmix"}, "mpi"),
        ({"modules": ("gcc/12",), "launcher": "jsrun -n {ranks}"}, "launcher"),
    ],
)
def test_a_setting_that_holds(options: Mapping[str, Any], name: str) -> None:
    checks = found(options)
    assert checks[name].status is Status.OK
    assert all(item.status is Status.OK for item in checks.values())


@pytest.mark.parametrize(
    ("options", "changes", "name", "text"),
    [
        ({"constraint": "amd&avx521"}, {}, "constraint", "did you mean 'avx512'?"),
        ({"constraint": "old"}, {}, "constraint", "no node of compute has the feature 'old'"),
        ({"gpus_per_node": 5}, {}, "GPUs", "at most 4"),
        (
            {"reservation": "weak"},
            {"scontrol --oneliner show reservation": "none\n"},
            "reservation",
            "'weak'",
        ),
        ({"modules": ("gcc/1",)}, {"bash": Answer(False, error="no gcc/1")}, "modules", "gcc/1: no gcc/1"),
        (
            {"prologue": ("if",)},
            {"bash": Answer(False, error="unexpected end")},
            "prologue",
            "unexpected end",
        ),
        ({"mpi": "pmxi"}, {}, "mpi", "did you mean 'pmix'?"),
        ({"account": "third"}, {}, "account", "compute does not admit account 'third'"),
        ({"qos": "slow"}, {}, "QOS", "compute does not admit QOS 'slow'"),
        ({"billing": "nodes"}, {}, "billing", "set executor.cores_per_node"),
    ],
)
def test_a_setting_that_does_not_hold(
    options: Mapping[str, Any], changes: Mapping[str, Any], name: str, text: str
) -> None:
    check = found(options, **changes)[name]
    assert check.status is Status.FAILED
    assert text in f"{check.detail} {check.remedy}"


def test_a_reservation_that_has_not_begun_is_a_warning() -> None:
    changes = {"scontrol --oneliner show reservation": RESERVATION.format("INACTIVE")}
    assert found({"reservation": "week"}, **changes)["reservation"].status is Status.WARNING


@pytest.mark.parametrize("how", ["partition", "configuration"])
def test_whole_nodes_must_be_counted_where_slurm_gives_them(how: str) -> None:
    exclusive = {"scontrol --all --oneliner show partition": PARTITION.replace("=NO", "=EXCLUSIVE")}
    changes: dict[str, Any] = exclusive if how == "partition" else {}
    configuration = "SelectType = select/linear\n" if how == "configuration" else ""
    assert found({}, configuration, **changes)["billing"].status is Status.FAILED
    counted = {"billing": "nodes", "cores_per_node": 64}
    assert found(counted, configuration, **changes)["billing"].status is Status.OK


def test_where_modules_fail_the_launcher_is_not_looked_for() -> None:
    options = {"modules": ("gcc/1",), "launcher": "srun"}
    assert "launcher" not in found(options, bash=Answer(False, error="no gcc/1"))


def test_shell_text_and_modules_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "init").mkdir()
    text = 'module() { [ "$2" = gcc/12 ] && export LOADEDMODULES="$2"; }\n'
    (tmp_path / "init" / "bash").write_text(text)
    monkeypatch.setenv("LMOD_PKG", str(tmp_path))
    at = here()
    assert launch_script.modules(["gcc/12"], at).detail == "gcc/12"
    assert "cannot be loaded: gcc/13" in launch_script.modules(["gcc/12", "gcc/13"], at).detail
    assert launch_script.shell("prologue", ["if true", "then x; fi"], at).status is Status.OK
    assert launch_script.shell("prologue", ["true"], at).detail == "1 line of valid shell text"
    assert launch_script.shell("prologue", ["if true"], at).status is Status.FAILED
    assert launch_script.shell("epilogue", [f"touch {tmp_path}/done"], at).status is Status.OK
    assert not (tmp_path / "done").exists(), "nothing is executed"
    assert launch_script.launcher("sh -c {ranks}", ["gcc/12"], at).status is Status.OK
    assert launch_script.launcher("nowhere -n {ranks}", ["gcc/12"], at).status is Status.FAILED


def test_modules_and_shell_text_are_checked_for_local_runs_too() -> None:
    write_campaign(Path.cwd())
    prologue = "executor.prologue=['if true']"
    document = run("doctor", "campaign.yaml", "--json", "--set", prologue).document
    (check,) = (item for item in document["checks"] if item["name"] == "prologue")
    assert (check["status"], check["needed"]) == ("failed", True)


# --- one run ---------------------------------------------------------------------------------------------


def one_run(*arguments: str) -> dict[str, Any]:
    document = run("doctor", "campaign.yaml", "--try", "--json", *arguments).document
    return next((item for item in document["checks"] if item["group"] == "one run"), {})


def test_the_smallest_point_is_run_once_and_cleared_away() -> None:
    write_campaign(Path.cwd(), program='#!/bin/sh\necho "$1" >> "${0%/*}/ran"\necho "time: $1.5 s"\n')
    check = one_run()
    assert check["status"] == "ok" and check["detail"].startswith("P(n=1): 1 values in ")
    assert Path("ran").read_text() == "1\n"
    assert not list(Path.cwd().glob("tiny*"))


def test_a_run_that_fails_is_kept_to_look_at() -> None:
    write_campaign(Path.cwd(), program="#!/bin/sh\necho broken >&2\nexit 3\n")
    check = one_run()
    assert check["status"] == "failed" and "exit code 3; last line of stderr: broken" in check["detail"]
    assert (Path(check["remedy"].removeprefix("see ")) / "attempt-1" / "stderr").read_text() == "broken\n"
    assert run("doctor", "campaign.yaml", "--try").code == 1


def test_nothing_is_run_where_something_stands_in_the_way() -> None:
    write_campaign(Path.cwd(), program="#!/no/such/interpreter\n")
    assert one_run() == {}
    assert not list(Path.cwd().glob("tiny*"))


@pytest.mark.parametrize(
    ("allocated", "bills_nodes", "warned"),
    [(4, False, False), (1, False, True), (1, True, False), (8, True, True)],
)
def test_fewer_cores_than_are_counted_are_right_where_whole_nodes_are_charged(
    allocated: int, bills_nodes: bool, warned: bool
) -> None:
    assert bool(trial_run.compared(allocated, 4, bills_nodes)) == warned


def test_without_a_campaign_there_is_nothing_to_try() -> None:
    assert run("doctor", "--try").code == 2


SITED = """\
name: sited
site: ./site.yaml
application: generic
executable: ./program.sh
program:
  arguments: ["{n}"]
  ranks: r
  output: [{callpath: main, pattern: 'time: (\\S+) s'}]
parameters: {n: [1, 2], r: [1, 4]}
measure: {time_limit: 20 s}
stop: {budget: 5 core-hours}
"""
SITE = """\
launcher: srun
epilogue: ["touch over"]
cores_per_node: 4
poll_interval: 1 s
by_size:
  - {up_to: 2, partition: small, cores_per_node: 2}
  - {partition: debug}
"""


@pytest.mark.slow
@pytest.mark.slurm
def test_a_site_on_a_real_slurm(
    slurm_cluster_without_accounting: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm_cluster_without_accounting.conf))
    folder = Path.cwd()
    write_program(folder, PROGRAM)
    (folder / "campaign.yaml").write_text(SITED)
    (folder / "site.yaml").write_text(SITE)
    assert one_run()["status"] == "ok"
    assert run("run", "campaign.yaml", "--set", "strategy.name=full").code == 0
    for point, partition in (("n=1,r=1", "small"), ("n=2,r=4", "debug")):
        (attempt,) = run("status", "sited", "--json", "--run", f"{point}/time-1").document["attempts"]
        assert attempt["environment"]["SLURM_JOB_PARTITION"] == partition
        assert attempt["job"].startswith(attempt["handle"])
        assert attempt["site"] == str(folder / "site.yaml")
        assert (Path(attempt["directory"]) / "over").exists()
    (folder / "site.yaml").write_text(
        SITE.replace("small", "smal").replace("cores_per_node: 4", "reservation: x")
    )
    document = run("doctor", "campaign.yaml", "--try", "--json").document
    faults = {item["name"] for item in document["checks"] if item["needed"] and item["status"] == "failed"}
    assert {"partition", "reservation"} <= faults

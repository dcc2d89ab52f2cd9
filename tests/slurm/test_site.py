"""What Slurm reports of itself: its settings, and what accounting grants."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.executors.slurm.cluster import Cluster, Enforced, parse_associations, parse_configuration
from orchestrator.executors.slurm.commands import answer
from orchestrator.executors.slurm.options import JobOptions
from orchestrator.executors.slurm.site import Site, read_site
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.sacctmgr import association, qos

MINE = JobOptions(account="mine", qos="fast")


@given(st.text())
def test_a_configuration_of_any_text_is_read(text: str) -> None:
    found = parse_configuration(f"{text}\nKillWait = 30 sec\nno value")
    assert found["KillWait"] == "30 sec"
    assert all(name in text and value in text for name, value in found.items() if name != "KillWait")


def test_a_site_without_accounting_is_recognised(fake_without_accounting: FakeSlurm) -> None:
    assert read_site(answer, JobOptions()) == Site(cluster="testing", accounting=False)
    assert not fake_without_accounting.calls("sacctmgr")


def test_a_site_whose_accounting_does_not_answer_has_no_known_limit(fake: FakeSlurm) -> None:
    fake.answer("sacctmgr", err="Unable to contact slurmdbd", code=1)
    assert read_site(answer, MINE) == Site(cluster="testing", accounting=True, submit_limit=None)
    assert len(fake.calls("sacctmgr")) == 1  # each question may take until its time limit


def test_the_smallest_limit_of_the_campaigns_account_and_qos_counts(fake: FakeSlurm) -> None:
    associations = association("mine", submitted="9", submitted_by_all="20") + association(
        "other", submitted="3"
    )
    listed = qos("fast", submitted="7", submitted_by_all="8") + qos("slow", submitted="2")
    fake.answer("sacctmgr", associations + listed)  # a line says by its fields what it is
    assert read_site(answer, MINE) == Site(cluster="testing", submit_limit=7)
    assert read_site(answer, JobOptions(account="mine")) == Site(cluster="testing", submit_limit=9)
    assert read_site(answer, JobOptions()) == Site(cluster="testing", submit_limit=3)
    assert read_site(answer, JobOptions(account="else")) == Site(cluster="testing")


def test_a_message_is_not_taken_for_a_site_without_accounting(fake: FakeSlurm) -> None:
    fake.answer("scontrol", "NOTICE: maintenance on Friday = soon\n")
    assert read_site(answer, JobOptions()) is None


def test_associations_of_the_same_user_on_other_clusters_do_not_count(fake: FakeSlurm) -> None:
    fake.answer("scontrol", "AccountingStorageType = accounting_storage/slurmdbd\nClusterName = here\n")
    assert Cluster().associations == ()
    assert "cluster=here" in fake.calls("sacctmgr")[0]


def test_each_question_is_asked_once_and_only_where_its_answer_is_needed() -> None:
    asked: list[str] = []

    def ask(command: Sequence[str]) -> str | None:
        asked.append(" ".join(command))
        return None

    cluster = Cluster(ask)
    assert not asked
    for _ in range(2):
        assert cluster.partitions == () and cluster.enforced == Enforced() and cluster.qos is None
    assert [words.split(" --")[0] for words in asked] == ["sinfo", "scontrol show config"]


def test_partitions_that_are_hidden_from_the_user_are_known() -> None:
    def ask(command: Sequence[str]) -> str | None:
        every = "--all" in command
        if command[0] == "scontrol":
            return "PartitionName=open\n" + "PartitionName=hidden\n" * every
        return "open*|up|idle|4|4|1:4:1|infinite\n" + "hidden|up|idle|2|4|1:4:1|infinite\n" * every

    cluster = Cluster(ask)
    assert [item.name for item in cluster.partitions] == ["open", "hidden"]
    assert list(cluster.partition_settings) == ["open", "hidden"]


@given(st.text())
def test_associations_of_any_text_are_read(text: str) -> None:
    assert len(parse_associations(text)) <= len(text.splitlines())


def test_a_site_whose_partitions_are_not_said_is_asked_again() -> None:
    def ask(command: Sequence[str]) -> str | None:
        return "KillWait = 30 sec\n" if "config" in command else None

    assert read_site(ask, JobOptions()) is None


def test_account_and_qos_of_the_users_environment_count(
    fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    associations = association("mine", submitted="9") + association("other", submitted="3")
    fake.answer("sacctmgr", associations + qos("fast", submitted="7"))
    monkeypatch.setenv("SBATCH_ACCOUNT", "mine")
    assert read_site(answer, JobOptions()) == Site(cluster="testing", submit_limit=9)
    monkeypatch.setenv("SBATCH_QOS", "fast")
    assert read_site(answer, JobOptions()) == Site(cluster="testing", submit_limit=7)

"""What waits in Slurm is never handed to another executor, or cluster, which could not know of it."""

from __future__ import annotations

import argparse
import shutil
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from orchestrator.api import running
from orchestrator.cli import cancel
from orchestrator.control import session
from orchestrator.errors import CampaignError
from orchestrator.executors.slurm.outcome import MOVED
from orchestrator.journal.file import FILE_NAME
from orchestrator.types import AttemptRequest, AttemptState
from tests.control.campaigns import SHELL, load
from tests.slurm.fake_slurm import FakeSlurm

AWAY = "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)"

SLURM = "executor={name: slurm, launcher: none, cores_per_node: 8, poll_interval: 1 s}"


@pytest.mark.parametrize("confirmed", [True, False], ids=["accepted by Slurm", "sbatch did not answer"])
def test_the_local_executor_is_refused_while_attempts_wait_in_slurm(
    fake: FakeSlurm, tmp_path: Path, confirmed: bool
) -> None:
    directory = tmp_path / "held"
    if confirmed:
        fake.answer("squeue", code=1)  # so that nothing is concluded from what it does not list
    else:
        fake.answer("sbatch", err="Socket timed out on send/recv operation", code=1)
    # Through the campaign's own executor, whose clock is the real one. The first call only asks.
    hooks = session.Hooks(interrupted=lambda: len(fake.calls("sbatch")) > 1)
    waiting = session.run(load(SLURM, text=SHELL), directory, hooks).in_flight
    assert waiting and all(flight.submitted is confirmed for flight in waiting.values())
    before = (directory / FILE_NAME).read_bytes()
    with pytest.raises(CampaignError, match=r"slurm -> local: .* executor\.name=slurm first"):
        session.run(load(text=SHELL), directory)
    assert (directory / FILE_NAME).read_bytes() == before
    assert not list(directory.glob("runs/**/claim")), "nothing was started here"
    assert list((directory / "batches").glob("*.json"))


def test_a_campaign_is_refused_on_another_cluster(fake: FakeSlurm, tmp_path: Path) -> None:
    directory = tmp_path / "held"
    fake.answer("squeue", code=1)
    hooks = session.Hooks(interrupted=lambda: len(fake.calls("sbatch")) > 1)
    session.run(load(SLURM, text=SHELL), directory, hooks)
    before, asked = (directory / FILE_NAME).read_bytes(), len(fake.calls("sbatch"))
    fake.name_cluster("elsewhere")
    with pytest.raises(CampaignError, match=r"cluster testing, .* cluster elsewhere: .*Resume"):
        session.run(load(SLURM, text=SHELL), directory)
    assert (directory / FILE_NAME).read_bytes() == before
    assert not list(directory.glob("runs/**/claim"))
    assert len(fake.calls("sbatch")) == asked
    fake.name_cluster("testing")
    session.run(load(SLURM, text=SHELL), directory, session.Hooks(interrupted=lambda: True))
    assert (directory / FILE_NAME).read_bytes() > before


@pytest.mark.parametrize("answers", ["elsewhere", "testing", ""], ids=["another", "the same", "none"])
def test_a_slurm_that_is_silent_when_a_campaign_is_resumed_is_waited_for(
    fake: FakeSlurm, tmp_path: Path, answers: str
) -> None:
    directory = tmp_path / "held"
    fake.answer("squeue", code=1)
    hooks = session.Hooks(interrupted=lambda: len(fake.calls("sbatch")) > 1)
    session.run(load(SLURM, text=SHELL), directory, hooks)
    before, asked = (directory / FILE_NAME).read_bytes(), len(fake.calls("sbatch"))
    fake.answer("scontrol", err=AWAY, code=1)
    remarks: list[str] = []
    looks = iter(range(3))

    def interrupted() -> bool:
        """Slurm answers at the third look, as this cluster; or the user has waited for long enough."""
        if next(looks, None) is not None:
            return False
        if answers:
            fake.name_cluster(answers)
        return not answers or (answers == "testing" and len(fake.calls("squeue")) > queries)

    queries = len(fake.calls("squeue"))
    hooks = session.Hooks(interrupted=interrupted, remark=remarks.append)
    if answers == "elsewhere":
        with pytest.raises(CampaignError, match="here is the cluster elsewhere"):
            session.run(load(SLURM, text=SHELL), directory, hooks)
    else:
        assert session.run(load(SLURM, text=SHELL), directory, hooks).in_flight
    assert [text for text in remarks if "slurmctld does not answer (scontrol" in text] == remarks[:1]
    assert ((directory / FILE_NAME).read_bytes() == before) is (answers != "testing")
    assert (len(fake.calls("squeue")) > queries) is (answers == "testing")
    assert len(fake.calls("sbatch")) == asked


def test_a_campaign_continues_on_another_cluster_where_the_user_names_it(
    fake: FakeSlurm, tmp_path: Path
) -> None:
    directory = tmp_path / "held"
    fake.answer("squeue", code=1)
    hooks = session.Hooks(interrupted=lambda: len(fake.calls("sbatch")) > 1)
    session.run(load(SLURM, text=SHELL), directory, hooks)
    fake.name_cluster("renamed")
    interrupted = partial(session.Hooks, interrupted=lambda: True)
    with pytest.raises(CampaignError, match=r"orchestrator resume \S*/held --cluster renamed\. Nothing"):
        session.run(load(SLURM, text=SHELL), directory, interrupted())
    with pytest.raises(CampaignError, match=r"--cluster typing: here is the cluster renamed\. Nothing"):
        session.run(load(SLURM, text=SHELL), directory, interrupted(cluster="typing"))
    assert (
        session.run(load(SLURM, text=SHELL), directory, interrupted(cluster="renamed")).cluster == "renamed"
    )
    session.run(load(SLURM, text=SHELL), directory, interrupted())


def test_a_copy_is_refused_while_jobs_of_the_original_are_out_unless_the_original_is_gone(
    fake: FakeSlurm, tmp_path: Path
) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    fake.answer("squeue", code=1)
    hooks = session.Hooks(interrupted=lambda: len(fake.calls("sbatch")) > 1)
    session.run(load(SLURM, text=SHELL), original, hooks)
    shutil.copytree(original, copy)
    before = (copy / FILE_NAME).read_bytes()
    with pytest.raises(CampaignError, match=r"copy is a copy of .*original, and \d+ attempts? in flight"):
        session.run(load(SLURM, text=SHELL), copy)
    assert (copy / FILE_NAME).read_bytes() == before
    asks = session.Hooks(interrupted=lambda: True)
    session.run(load(SLURM, text=SHELL), original, asks)
    original.rename(tmp_path / "renamed")
    session.run(load(SLURM, text=SHELL), tmp_path / "renamed", asks)
    session.run(load(SLURM, text=SHELL), copy, asks)
    assert (copy / FILE_NAME).read_bytes() > before


def test_a_cancellation_that_is_interrupted_while_slurm_is_silent_says_that_nothing_was_ended(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "held"
    fake.answer("squeue", code=1)
    hooks = session.Hooks(interrupted=lambda: len(fake.calls("sbatch")) > 1)
    session.run(load(SLURM, text=SHELL), directory, hooks)
    fake.answer("scontrol", err=AWAY, code=1)
    monkeypatch.setattr(running, "interruptible", lambda: nullcontext(lambda: True))
    assert cancel.run(argparse.Namespace(directory=directory, json=False)) == 3
    printed = capsys.readouterr()
    assert not printed.out and "interrupted: nothing was ended" in printed.err
    assert not fake.calls("scancel") and not list(directory.glob("runs/**/claim"))


@pytest.mark.parametrize("pack", ["", "name-1"])
@pytest.mark.parametrize("link", [False, True], ids=["moved", "a link at the old path"])
def test_jobs_that_wait_are_withdrawn_where_the_directory_was_moved(
    fake: FakeSlurm, pack: str, link: bool
) -> None:
    requests = [replace(fake.request(), pack=pack) for _ in range(2)]
    fake.executor().submit(requests)
    requests = _moved(fake, requests, link)
    executor = fake.executor()
    fake.queue("100_0 PENDING Priority", *([] if pack else ["100_1 PENDING Priority"]))
    executor.find(requests)
    assert bool(fake.calls("scancel")) is not link
    fake.queue()
    fake.accounted("100_0 0 CANCELLED by 0", *([] if pack else ["100_1 0 CANCELLED by 0"]))
    fake.turn(20)
    for found in executor.poll(requests):
        assert found.state is (AttemptState.UNKNOWN if link else AttemptState.ABSENT)
        assert link or (found.revoked and found.elapsed == 0.0 and found.reason == MOVED)


@pytest.mark.parametrize("seconds", [0, 1])
def test_jobs_that_slurm_started_after_the_directory_was_moved_did_not_fail_unless_they_cost_something(
    fake: FakeSlurm, seconds: int
) -> None:
    requests = [fake.request()]
    fake.executor().submit(requests)
    requests = _moved(fake, requests, link=False)
    executor = fake.executor()
    fake.accounted(f"100_0 {seconds} FAILED")
    found = executor.find(requests)
    while found[0].state is AttemptState.UNKNOWN and seconds:
        fake.turn(20)
        found = executor.poll(requests)
    [only] = found
    assert only.state is (AttemptState.LOST if seconds else AttemptState.ABSENT)
    assert MOVED in only.reason and only.elapsed == seconds
    assert only.revoked is not bool(seconds)


def _moved(fake: FakeSlurm, requests: list[AttemptRequest], link: bool) -> list[AttemptRequest]:
    """Move the campaign directory; return the attempts as they are there."""
    before, fake.campaign = fake.campaign, fake.campaign.with_name("elsewhere")
    before.rename(fake.campaign)
    if link:
        before.symlink_to(fake.campaign)
    return [replace(item, directory=fake.campaign / item.directory.relative_to(before)) for item in requests]

"""Whole campaigns while Slurm fails in every known way, and controllers die: promises are kept."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings

from orchestrator.journal import events
from tests.slurm.faulty.campaigns import Scenario, describe, play
from tests.slurm.faulty.faults import MOMENTS, SITE, Fault
from tests.slurm.faulty.generate import scenarios
from tests.slurm.faulty.promises import violations

SEQUENCES = int(os.environ.get("FAULT_SEQUENCES", "40"))


def check(scenario: Scenario) -> int:
    """Play a campaign on a disk of memory, where there is one; fail with its story. Return the kills."""
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="faulty-", dir=memory if memory.is_dir() else None))
    try:
        outcome = play(scenario, directory)
        broken = violations(outcome)
        if broken:
            note(describe(outcome))
        assert not broken, broken
        return outcome.kills
    finally:
        shutil.rmtree(directory)


@pytest.mark.slow
@given(scenarios())
@settings(max_examples=SEQUENCES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_a_campaign_keeps_its_promises_whatever_goes_wrong(scenario: Scenario) -> None:
    check(scenario)


def test_a_frozen_run_of_a_pack_is_charged_for_all_that_slurm_may_have_charged() -> None:
    """The other run of its job was taken for one that never began, and the cost of the job stays unknown."""
    faults = (
        Fault(what="application crashes", begin=0.0, seconds=0.0, ordinal=7, value=9.0),
        Fault(what="stale", command="sacct", begin=8.0, seconds=10800.0, value=157.0),
        Fault(what="frozen", begin=0.0, seconds=0.0, ordinal=4, value=8.0),
        Fault(what="empty", command="squeue", begin=268.0, seconds=1652.0, value=210.0),
    )
    check(
        Scenario(
            faults=faults,
            kills=(56,),
            away=60.0,
            budget=20000.0,
            max_pending=2,
            seed=46,
            queue_delay=400.0,
            pack=2,
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_daemons_may_be_away_whatever_a_job_does(moment: str) -> None:
    for what in ("controller away", "controller killed", "controller hangs", "accounting away", "both away"):
        for seconds, pack in ((120.0, 1), (7200.0, 3)):
            fault = Fault(what, SITE, ordinal=2, seconds=seconds, value=5.0, moment=moment)
            check(Scenario(faults=(fault,), queue_delay=0.0, pack=pack))


def test_many_failures_of_srun_stop_no_campaign() -> None:
    """More than three of four attempts fail, which would stop it if they were the application's failures."""
    away = tuple(
        Fault("controller hangs", SITE, ordinal=ordinal, seconds=100.0, moment="starting")
        for ordinal in range(1, 60, 2)
    )
    scenario = Scenario(faults=away, queue_delay=0.0, max_pending=2, srun=True, times=4)
    directory = Path(tempfile.mkdtemp(prefix="faulty-"))
    try:
        outcome = play(scenario, directory)
        assert not violations(outcome)
    finally:
        shutil.rmtree(directory)
    settled = [entry.event for entry in outcome.entries if isinstance(entry.event, events.AttemptFinished)]
    failed = [event for event in settled if event.failure is not None]
    assert len(failed) > 20 and len(failed) > 0.75 * len(settled)


@pytest.mark.parametrize("what", ["controller's clock", "nodes' clocks", "our clock"])
@pytest.mark.parametrize("step", [-7200.0, -60.0, 60.0, 7200.0])
def test_clocks_may_be_set(what: str, step: float) -> None:
    for moment in ("queued", "running", "ending"):
        fault = Fault(what, SITE, ordinal=1, value=step, moment=moment)
        check(Scenario(faults=(fault,), queue_delay=0.0, pack=3))


@pytest.mark.parametrize("what", ["files late", "output late", "signs late"])
def test_files_may_be_seen_late(what: str) -> None:
    fault = Fault(what, SITE, seconds=3600.0, value=60.0)
    assert [check(Scenario(faults=(fault,), pack=pack)) for pack in (1, 3)] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "pack"), [("nothing", 1), ("accepted, no answer", 1), ("accepted late", 1), ("accepted late", 3)]
)
def test_a_controller_may_die_between_any_two_steps(what: str, pack: int) -> None:
    """Before and after every append to the journal and every command, whether it is answered or not."""
    faults = () if what == "nothing" else (Fault(what, "sbatch", seconds=45.0, value=50.0),)
    died = 0
    for boundary in itertools.count(1):
        kills = check(
            Scenario(faults=faults, kills=(boundary,), away=5.0, max_pending=3, queue_delay=0.0, pack=pack)
        )
        died += kills
        if not kills:
            break  # the campaign has fewer steps than that
    assert died > 40

"""Whole campaigns while Slurm does all that it can do wrong, and controllers die: promises are kept."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.slurm.faulty.campaigns import Scenario, describe, play, violations
from tests.slurm.faulty.faults import Fault
from tests.slurm.faulty.generate import scenarios

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


@given(scenarios())
@settings(max_examples=SEQUENCES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_a_campaign_keeps_its_promises_whatever_goes_wrong(scenario: Scenario) -> None:
    check(scenario)


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

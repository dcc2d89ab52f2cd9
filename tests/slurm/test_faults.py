"""Whole campaigns while Slurm does all that it can do wrong, and controllers die: promises are kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings

from tests.slurm.faulty.campaigns import Scenario, describe, play, violations
from tests.slurm.faulty.generate import scenarios

SEQUENCES = int(os.environ.get("FAULT_SEQUENCES", "40"))


def check(scenario: Scenario) -> None:
    """Play a campaign on a disk of memory, where there is one; fail with its story."""
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="faulty-", dir=memory if memory.is_dir() else None))
    try:
        outcome = play(scenario, directory)
        broken = violations(outcome)
        if broken:
            note(describe(outcome))
        assert not broken, broken
    finally:
        shutil.rmtree(directory)


@given(scenarios())
@settings(max_examples=SEQUENCES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_a_campaign_keeps_its_promises_whatever_goes_wrong(scenario: Scenario) -> None:
    check(scenario)

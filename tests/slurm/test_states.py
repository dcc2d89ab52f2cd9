"""Every word that Slurm has for the state of a job has a meaning here, and so has every other word."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.executors.slurm.states import STATES, from_outside, meaning
from orchestrator.types import AttemptState
from tests.slurm.cluster import SlurmCluster

# squeue(1) and sacct(1) of Slurm 22.05 to 24.05, section JOB STATE CODES; and the flags of slurm.h.
DOCUMENTED = """
    BOOT_FAIL CANCELLED COMPLETED COMPLETING CONFIGURING DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY
    PENDING POWER_UP_NODE PREEMPTED RECONFIG_FAIL REQUEUED REQUEUE_FED REQUEUE_HOLD RESIZING RESV_DEL_HOLD
    REVOKED RUNNING SIGNALING SPECIAL_EXIT STAGE_OUT STOPPED SUSPENDED TIMEOUT
"""


@pytest.mark.parametrize("state", DOCUMENTED.split())
def test_every_documented_state_is_known(state: str) -> None:
    assert meaning(state) in {AttemptState.QUEUED, AttemptState.RUNNING, AttemptState.LOST}


def test_no_state_proves_that_an_attempt_finished() -> None:
    assert set(STATES.values()) == {AttemptState.QUEUED, AttemptState.RUNNING, AttemptState.LOST}
    assert meaning("COMPLETED") is AttemptState.LOST


@pytest.mark.parametrize("text", ["CANCELLED by 1000", "CANCELLED+", "cancelled", " CANCELLED "])
def test_decorations_do_not_matter(text: str) -> None:
    assert meaning(text) is AttemptState.LOST
    assert from_outside(text)


@given(st.text())
def test_every_other_word_is_unknown(text: str) -> None:
    words = text.split()
    documented = bool(words) and words[0].rstrip("+").upper() in DOCUMENTED.split()
    assert (meaning(text) is AttemptState.UNKNOWN) is not documented


def test_the_installed_slurm_has_no_other_states(slurm_cluster: SlurmCluster) -> None:
    # squeue lists all the states that it knows when it is asked for one that does not exist.
    done = subprocess.run(
        ["squeue", "--states=NONSENSE"],
        env=slurm_cluster.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    listed = done.stderr.partition("Valid job states include:")[2].replace("\n", " ")
    words = {word.strip().upper() for word in re.split(r"[,\s]+", listed) if re.fullmatch(r"\s*\w+\s*", word)}
    assert {"PENDING", "RUNNING", "NODE_FAIL"} <= words
    assert {word for word in words if meaning(word) is AttemptState.UNKNOWN} == set()

"""States of jobs, as ``squeue`` and ``sacct`` print them: what they mean for an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orchestrator.types import AttemptState

_QUEUED = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT")
_RUNNING = (
    "COMPLETING",
    "CONFIGURING",
    "POWER_UP_NODE",
    "RESIZING",
    "RUNNING",
    "SIGNALING",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
)
# None of these proves that the attempt finished, COMPLETED least of all: only its own record does.
_ENDED = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "RECONFIG_FAIL",
    "REVOKED",
    "TIMEOUT",
)
# If Slurm ends a job in one of these, a failure of the application is not the application's fault.
_FROM_OUTSIDE = ("BOOT_FAIL", "CANCELLED", "DEADLINE", "NODE_FAIL", "PREEMPTED", "REVOKED")

# A job in one of these has its nodes, and does nothing until somebody, or Slurm, resumes it.
_STANDING = ("STOPPED", "SUSPENDED")

# If a job ends in one of these, its node failed.
_NODE = ("BOOT_FAIL", "LAUNCH_FAILED", "NODE_FAIL")

STATES: Mapping[str, AttemptState] = MappingProxyType(
    dict.fromkeys(_QUEUED, AttemptState.QUEUED)
    | dict.fromkeys(_RUNNING, AttemptState.RUNNING)
    | dict.fromkeys(_ENDED, AttemptState.LOST)
)


def meaning(state: str) -> AttemptState:
    """Return what a job state means for an attempt that has no finished record.

    Parameters
    ----------
    state
        As ``squeue`` or ``sacct`` print it: ``RUNNING``, ``CANCELLED by 1000``, ``CANCELLED+``.

    Returns
    -------
    AttemptState
        QUEUED, RUNNING, LOST (the job has ended) or, for a word that no Slurm known to us prints, UNKNOWN.
    """
    return STATES.get(word(state), AttemptState.UNKNOWN)


def word(state: str) -> str:
    """Return a job state without what ``sacct`` appends to it."""
    return (state.split() or [""])[0].rstrip("+").upper()


def from_outside(state: str) -> bool:
    """Return whether a job in this state was ended by Slurm, its nodes or a person."""
    return word(state) in _FROM_OUTSIDE


def stands_still(state: str) -> bool:
    """Return whether a job in this state has begun, and is stopped until somebody resumes it."""
    return word(state) in _STANDING


def blames_node(state: str) -> bool:
    """Return whether a job in this state was ended by a failing node."""
    return word(state) in _NODE

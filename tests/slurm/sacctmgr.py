"""Lines that ``sacctmgr`` prints for what is asked of it; empty fields are limits that are not set."""

from __future__ import annotations


def association(
    account: str,
    partition: str = "",
    qos: str = "",
    default_qos: str = "",
    jobs: str = "",
    submitted: str = "",
    submitted_by_all: str = "",
    wall: str = "",
    resources: str = "",
) -> str:
    """Return the line of an association of the user."""
    row = (account, partition, qos, default_qos, jobs, submitted, submitted_by_all, wall, resources)
    return "|".join(row) + "\n"


def qos(name: str, wall: str = "", flags: str = "", submitted: str = "", submitted_by_all: str = "") -> str:
    """Return the line of a QOS."""
    return "|".join((name, wall, flags, submitted, submitted_by_all)) + "\n"

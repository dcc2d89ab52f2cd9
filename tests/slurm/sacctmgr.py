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
    together: str = "",
) -> str:
    """Return the line of an association of the user."""
    row = (account, partition, qos, default_qos, jobs, submitted, submitted_by_all, wall, resources, together)
    return "|".join(row) + "\n"


def qos(
    name: str,
    wall: str = "",
    flags: str = "",
    submitted: str = "",
    submitted_by_all: str = "",
    most: tuple[str, str, str, str] = ("", "", "", ""),
) -> str:
    """Return the line of a QOS; ``most`` for a job, a user, an account, and together."""
    return "|".join((name, wall, flags, submitted, submitted_by_all, *most)) + "\n"

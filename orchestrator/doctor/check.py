"""The result of a check: what was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"  # works, but may surprise
    MISSING = "missing"  # not installed, not set
    FAILED = "failed"  # there, but does not work


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check.

    ``remedy`` says what to install, set or call. ``needed`` is true where the campaign, or the orchestrator
    itself, cannot work otherwise.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""
    needed: bool = False

    @property
    def prevents(self) -> bool:
        """Whether nothing can run before this is fixed."""
        return self.needed and self.status in (Status.MISSING, Status.FAILED)


def ok(name: str, detail: str) -> Check:
    """Return a check that found nothing wrong."""
    return Check(name=name, status=Status.OK, detail=detail)


def warning(name: str, detail: str, remedy: str) -> Check:
    """Return a check that found something unexpected that works."""
    return Check(name=name, status=Status.WARNING, detail=detail, remedy=remedy)


def missing(name: str, detail: str, remedy: str) -> Check:
    """Return a check of something that is not there."""
    return Check(name=name, status=Status.MISSING, detail=detail, remedy=remedy)


def failed(name: str, detail: str, remedy: str) -> Check:
    """Return a check of something that does not work."""
    return Check(name=name, status=Status.FAILED, detail=detail, remedy=remedy)


def needed(checks: Iterable[Check]) -> Iterator[Check]:
    """Mark checks as needed."""
    return (replace(check, needed=True) for check in checks)

"""What attempts leave on disk, as far as the Slurm executor judges them by it."""

from __future__ import annotations

from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.executors import attempt, files
from orchestrator.executors.slurm_batch import Batches
from orchestrator.executors.slurm_crew import Crew, Member
from orchestrator.types import AttemptRecord, AttemptRequest


class Crews:
    """Those who share a job: read together, as what one is charged depends on the others."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._ended: dict[str, AttemptRecord] = {}  # a final record never changes

    def of(self, request: AttemptRequest, record: AttemptRecord | None) -> Crew | None:
        """Return what the files say of all that share a job with an attempt; None if it has its own."""
        companions = self._batches.companions(request.name)
        if not companions:
            return None
        members = []
        for name, directory in companions:
            found = record if name == request.name else self._ended.get(name) or read_record(directory)[0]
            if found is not None and found.finished is not None:
                self._ended[name] = found
            members.append(Member(found, owner(directory) if found is None else None))
        return Crew(tuple(members), [name for name, _ in companions].index(request.name))

    def heartbeats(self, request: AttemptRequest) -> tuple[int | None, ...]:
        """Return what changes every few seconds while an attempt lives, or one that shares its job."""
        companions = self._batches.companions(request.name) or [(request.name, request.directory)]
        return tuple(heartbeat(directory) for _, directory in companions)

    def forget(self) -> None:
        """Forget what was read, when nothing is in flight."""
        self._ended.clear()


def read_record(directory: Path) -> tuple[AttemptRecord | None, str]:
    """Return the record of an attempt, and why it cannot be read."""
    try:
        return files.read_record(directory), ""
    except ReadError as error:
        return None, str(error)


def owner(directory: Path) -> str | None:
    """Return who claimed an attempt; its own process where the claim does not say."""
    try:
        owners = files.owners(directory)
    except ReadError:
        return attempt.OWNER
    return owners.who if owners is not None else None


def heartbeat(directory: Path) -> int | None:
    """Return what an attempt that lives changes every few seconds; None before it began."""
    try:
        return (directory / attempt.CLAIM).stat().st_mtime_ns
    except OSError:
        return None


def sign(directory: Path) -> tuple[int, int] | None:
    """Return what changes when an attempt writes its record; None before it does."""
    try:
        status = (directory / attempt.RECORD).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns

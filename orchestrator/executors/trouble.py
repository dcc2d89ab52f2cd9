"""Trouble of the campaign directory itself: it stops the campaign instead of failing its attempts."""

from __future__ import annotations

import errno
from pathlib import Path

from orchestrator.errors import ExecutorError

_TROUBLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_PROBE = ".probe"
_ROOM = 16384  # bytes, more than what is written before an attempt begins


class DirectoryTrouble(ExecutorError):
    """A campaign directory in which nothing can be written now: no attempt's fault, so that none fails.

    The campaign stops at once and can be resumed; what never began is withdrawn then.
    """

    exit_code = 3


def stop_for_trouble(error: OSError, directory: Path) -> None:
    """Raise `DirectoryTrouble` if an error says that the file system is full, read-only or broken."""
    if error.errno in _TROUBLE:
        raise DirectoryTrouble(
            f"cannot write into {directory}: {error.strerror}. The campaign has stopped, nothing is lost: "
            "free some space (df -h), files (df -i) or quota, or mend the file system, then resume it"
        ) from error


def require_room(directory: Path) -> None:
    """Raise `DirectoryTrouble` where an attempt's directory has no room for a file."""
    path = directory / _PROBE
    try:
        try:
            path.write_bytes(bytes(_ROOM))
        finally:
            path.unlink(missing_ok=True)
    except OSError as error:
        stop_for_trouble(error, directory)

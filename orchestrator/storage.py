"""Files: atomic writes, full disks, identity, hashes; how instants and secrets are written in them."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import time
from pathlib import Path

YAML_SUFFIXES = (".yaml", ".yml")
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of a full disk, an exhausted quota, and a limit on the size of files."""
# Less than this is a full disk, for what a controller and the runs in flight still have to write.
_LEAST_BYTES, _LEAST_SHARE = 5e6, 0.05
_LEAST_FILES = 50
SECRET_WORDS = ("TOKEN", "SECRET", "PASSW", "KEY", "CREDENTIAL", "AUTH", "COOKIE")


def iso(instant: float) -> str:
    """Return Unix seconds as UTC, ISO 8601 with microseconds."""
    seconds, micro = divmod(round(instant * 1e6), 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{micro:06d}+00:00"


def write_atomically(path: Path, content: str | bytes, *, mode: int = 0o666, durable: bool = False) -> None:
    """Replace a file as a whole: a reader sees the old or the new content, and a full disk keeps the old one.

    A symbolic link at ``path`` is replaced, not followed.

    Parameters
    ----------
    path
        The file.
    content
        Text is written as UTF-8.
    mode
        Permissions of the new file, less the umask.
    durable
        Whether the content is on disk when this function returns. So is the file's new name after
        `sync_directory`, which is worth calling once for several files.

    Raises
    ------
    OSError
        Where the file cannot be written; nothing is left beside it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def sync_directory(path: Path) -> None:
    """Return when the names of the files in a directory are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_identity(path: Path) -> dict[str, int] | None:
    """Return size (bytes) and time of modification (ns), as attempts record them; None if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns}


def file_hash(path: Path) -> str | None:
    """Return the SHA-256 of a file's content, or None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def shortage(directory: Path) -> str:
    """Return what is free where a directory is if the disk is full; empty if it is not, or if unknown."""
    space = _space(directory)
    if space is None:
        return ""
    free, total = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    files = space.f_favail if space.f_files else math.inf  # some file systems count none
    full = free < min(_LEAST_BYTES, _LEAST_SHARE * total) or files < _LEAST_FILES
    return _free(space, directory) if full else ""


def remedy(error: OSError) -> str:
    """Return what to do about a write that failed for want of space (`FULL`); empty for other reasons."""
    if error.errno == errno.EFBIG:
        return "allow larger files (ulimit -f says how large they may be)"
    return "free some space" if error.errno in FULL else ""


def free_at(directory: Path) -> str:
    """Return what is free where a directory is, for people; empty where that is not known."""
    space = _space(directory)
    return "" if space is None else _free(space, directory)


def _space(directory: Path) -> os.statvfs_result | None:
    try:
        return os.statvfs(directory)
    except OSError:
        return None


def _free(space: os.statvfs_result, directory: Path) -> str:
    files = f" and {space.f_favail} files" if space.f_files and space.f_favail < _LEAST_FILES else ""
    return f"{space.f_bavail * space.f_frsize / 1e6:.4g} MB{files} free at {directory}"

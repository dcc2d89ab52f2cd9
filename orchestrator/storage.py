"""Files and what is said of them: instants, identity, hashes, revisions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

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


_PATIENCE = 10.0  # seconds for git, or for the executable to print its version
_LONGEST = 200  # characters of a version


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


def git_revision(folder: Path) -> str | None:
    """Return the commit of the checkout around a folder, with ``-dirty`` if changed, or None."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    # An enclosing git (a hook, a rebase) would answer for itself.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return first_line(command, {**variables, "GIT_OPTIONAL_LOCKS": "0"}, only_output=True)


def first_line(command: Sequence[str], variables: Mapping[str, str], only_output: bool) -> str | None:
    """Return the first line that a command prints; many programs print their version as an error."""
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            env=variables,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if only_output and answer.returncode != 0:
        return None
    text = (answer.stdout if only_output else answer.stdout + answer.stderr).decode(errors="replace")
    return next((line.strip()[:_LONGEST] for line in text.splitlines() if line.strip()), None)

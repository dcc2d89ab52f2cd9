"""Programs, files and folders that a campaign file names: where they are on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def is_path(template: str, base: Path) -> bool:
    """Whether a template is meant as a file, not as the name of one that comes with the program."""
    return os.sep in template or (base / template).is_file()


def is_text(template: str) -> bool:
    """Whether a launch template is given by its text, not by its file or name.

    The text of one has a placeholder for the program, or several lines.
    """
    return "\n" in template or "{{" in template


def find_executable(text: str, base: Path) -> str:
    """Return the absolute path of a program.

    A bare name is looked for beside Python's own executable (a virtual environment's ``bin``), then on
    PATH; a relative path from ``base``, then from the working directory.

    Raises
    ------
    ValueError
        Naming what was tried.
    """
    if not text:
        raise ValueError("is required; give the path of the application's executable")
    path = Path(os.path.expanduser(text))  # noqa: PTH111 (Path.expanduser raises for an unknown user)
    bare = os.sep not in text
    if bare:
        on_path = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
        folders = [Path(sys.executable).parent, *map(Path, on_path)]
    else:
        folders = list(dict.fromkeys([base, Path.cwd()]))
    tried = [Path(os.path.abspath(folder / path)) for folder in folders]  # noqa: PTH100 (keeps symbolic links)
    for candidate in tried:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return _utf8(candidate)
    present = next((candidate for candidate in tried if candidate.exists()), None)
    if present is not None:
        remedy = "it is a folder" if present.is_dir() else f"make it executable: chmod +x {present}"
        raise ValueError(f"{text!r} cannot be executed: {remedy}")
    if bare:
        beside = f"; for a file beside the campaign file write ./{text}" if (base / text).exists() else ""
        raise ValueError(f"{text!r} is neither in {folders[0]} nor on PATH{beside}; correct it or set PATH")
    where = " and ".join(map(str, dict.fromkeys(tried)))
    raise ValueError(f"{text!r} does not exist; tried {where}: give its path in the file, or by --set")


def _utf8(path: Path) -> str:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{str(path)!r} is not valid UTF-8; rename the file or its folder") from None
    return str(path)


def find_file(text: str, base: Path) -> str:
    """Return the absolute path of a file, relative to ``base`` or the working directory.

    Raises
    ------
    ValueError
        Naming what was tried.
    """
    path = Path(os.path.expanduser(text))  # noqa: PTH111 (as above)
    tried = [Path(os.path.abspath(folder / path)) for folder in (base, Path.cwd())]  # noqa: PTH100 (as above)
    for candidate in tried:
        if candidate.exists():
            return _utf8(candidate)
    raise ValueError(f"{text!r} does not exist; tried {' and '.join(map(str, dict.fromkeys(tried)))}")


def absolute_folder(text: str, base: Path) -> str:
    """Return the absolute path of a folder relative to ``base``; it need not be there."""
    return os.path.abspath(base / os.path.expanduser(text))  # noqa: PTH100, PTH111 (as above)

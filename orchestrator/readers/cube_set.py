"""Folders of Score-P profiles whose names carry the measurement point: ``lulesh.p64.s20.r1``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers import profile_set
from orchestrator.readers.reading import SUFFIXES
from orchestrator.readers.scorep import profile
from orchestrator.types import Measurements


def profiles_in(folder: Path) -> list[Path]:
    """Return the profiles of a CUBE set, or of a single point's folder; hidden files are ignored."""
    own = sorted(folder.glob("*.cubex"))
    return [path for path in own or sorted(folder.glob("*/*.cubex")) if not path.name.startswith(".")]


def read(
    folders: Sequence[Path],
    metrics: Collection[str] | None = None,
    aggregate: str = "mean",
    inclusive: bool = False,
    shape: str | None = None,
) -> Measurements:
    """Read CUBE sets as one; see `orchestrator.readers.profile_set.measurements`.

    Parameters
    ----------
    folders
        CUBE sets, or folders of single points.
    metrics
        The wanted metrics; None for all.
    aggregate, inclusive
        How ranks become one value, see `orchestrator.readers.scorep.profile` and `select`.
    shape
        Where paths have the values of parameters, if not as Extra-P names folders: see `profile_set.named`.

    Raises
    ------
    ReadError
        Without profiles; for names of folders without parameters; as `profile_set.measurements`.
    """
    profiles = [profile_set.named(path, shape) for folder in folders for path in profiles_in(folder)]
    source = ", ".join(map(str, folders))
    if not profiles:
        said = f"{source}: no .cubex files in subfolders, and no .cali files; {profile_set.REMEDY}"
        raise ReadError(said + _others(folders))
    return profile_set.measurements(
        profiles, partial(profile, inclusive=inclusive), metrics, aggregate, source
    )


def _others(folders: Sequence[Path]) -> str:
    """Return how files of other formats are given, which are not looked for in folders."""
    found = {path.with_name(f"*{path.suffix}") for folder in folders for path in folder.iterdir()}
    files = sorted(str(path) for path in found if path.suffix in SUFFIXES)
    return f". Name files of other formats themselves: {', '.join(files)}" if files else ""

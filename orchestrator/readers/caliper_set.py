"""Folders of Caliper profiles, one per run, such as a Benchpark or Thicket study collects.

The point is in the names of folders, or in what the runs recorded as globals: the number of ranks, and what
the program or Adiak adds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers import profile_set
from orchestrator.readers.cali import read_cali
from orchestrator.readers.caliper import RANKS, SUFFIX, profile
from orchestrator.readers.profile_set import Profile
from orchestrator.readers.settings import Settings, differing, value_of
from orchestrator.types import Measurements, Value

PROCESSES = "p"
"""What the number of ranks is called."""

# What Caliper and Adiak record of every run, and what differs between runs of one point.
_OF_THE_RUN = re.compile(
    r"spot\.|cali\.|opts:|starttime|launch|elapsed|wall|cpu_?time|sys_?time|job_?(id|name)|user|uid|"
    r"cluster|(num_?)?host|executable|cmdline|libraries|working|(compiler|mpi)_?version",
    re.IGNORECASE,
)


def profiles_in(folder: Path) -> list[Path]:
    """Return the ``.cali`` files below a folder, hidden ones excepted."""
    return [path for path in sorted(folder.rglob(f"*{SUFFIX}")) if not path.name.startswith(".")]


def read(
    folders: Sequence[Path],
    metrics: Collection[str] | None = None,
    aggregate: str = "mean",
    inclusive: bool = False,
    parameters: Sequence[str] | None = None,
    shape: str | None = None,
) -> Measurements:
    """Read all profiles below folders as one set; see `orchestrator.readers.profile_set.measurements`.

    Parameters
    ----------
    folders
        Each with profiles at any depth.
    metrics
        The wanted metrics; None for all.
    aggregate, inclusive
        How ranks become one value, see `orchestrator.readers.caliper.samples` and `select`.
    parameters
        Globals that are the parameters. Without them the names of the profiles' folders say it, where all
        do; else the integer globals that differ between profiles, except those that describe the run. Of
        globals that always change together, such as the ranks and the cells of all of them, the first
        counts; the number of ranks comes first and is called `PROCESSES`.
    shape
        Where paths have the values of parameters: see `profile_set.named`.

    Raises
    ------
    ReadError
        Without profiles; without parameters; as `profile_set.measurements`.
    """
    paths = [path for folder in folders for path in profiles_in(folder)]
    source = ", ".join(map(str, folders))
    if not paths:
        raise ReadError(f"{source}: no {SUFFIX} files")
    if shape is not None:
        found = [profile_set.named(path, shape) for path in paths]
    else:
        found = (_by_folder(paths) if parameters is None else None) or _by_globals(paths, parameters, source)
    return profile_set.measurements(found, partial(profile, inclusive=inclusive), metrics, aggregate, source)


def _by_folder(paths: Sequence[Path]) -> list[Profile] | None:
    """Return the points that names of folders say; None where not all names certainly do.

    Names of experiments end with numbers, too (``run_2``, ``kripke_2_8``): a point needs a dot.
    """
    folders = [path.resolve().parent.name for path in paths]
    if not all("." in folder and not re.search(r"_[0-9]", folder) for folder in folders):
        return None
    try:
        return [profile_set.named(path) for path in paths]
    except ReadError:
        return None


def _by_globals(paths: Sequence[Path], parameters: Sequence[str] | None, source: str) -> list[Profile]:
    known = {path: _globals(path) for path in paths}
    names = _differing(list(known.values())) if parameters is None else tuple(parameters)
    if not names:
        there = dict.fromkeys(name for item in known.values() for name in item if not _OF_THE_RUN.match(name))
        raise ReadError(
            f"{source}: which parameters? The {len(paths)} profiles differ in no integer global, and their "
            f"folders are not named like lulesh.p64.s20.r1; name globals (--parameters): {', '.join(there)}"
        )
    return [
        Profile(path, names, tuple(_value(item, name, path) for name in names))
        for path, item in known.items()
    ]


def _globals(path: Path) -> Settings:
    """Return the globals by names that expressions can hold: ``kripke.nx`` becomes ``kripke_nx``."""
    values = read_cali(path).globals
    names = {name: re.sub(r"\W", "_", name) for name in values if not _OF_THE_RUN.match(name)}
    if RANKS in names and PROCESSES not in values:
        names[RANKS] = PROCESSES
    return {names[name]: values[name] for name in names}


def _differing(runs: Sequence[Settings]) -> tuple[str, ...]:
    """Return the integer globals that differ between runs, the number of ranks first."""
    integer = [name for name in runs[0] if all(run.get(name, "").lstrip("-").isdecimal() for run in runs)]
    return differing(runs, sorted(integer, key=lambda name: name != PROCESSES))


def _value(settings: Settings, name: str, path: Path) -> Value:
    if name not in settings:
        raise ReadError(f"{path}: no global {name!r}; there are {', '.join(settings)}")
    return value_of(settings[name], f"{path}: global {name}")

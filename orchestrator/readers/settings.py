"""Settings that runs recorded: which of them are parameters, and what their values are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.errors import ReadError
from orchestrator.readers.entries import is_number, number
from orchestrator.types import Value

Settings = Mapping[str, str]
"""What one run recorded: name -> value as text."""


def differing(runs: Sequence[Settings], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in which runs differ; of those that always change together the first.

    Parameters
    ----------
    runs
        What each run recorded; only what all did is considered.
    names
        What may be a parameter, the preferred ones first.
    """
    patterns: dict[tuple[int, ...], str] = {}
    for name in names:
        if all(name in run for run in runs):
            pattern = _pattern([run[name] for run in runs])
            if len(set(pattern)) > 1:
                patterns.setdefault(pattern, name)
    return tuple(patterns.values())


def follows(runs: Sequence[Settings], name: str, other: str) -> bool:
    """Return whether a value of ``other`` always comes with the same value of ``name``."""
    pairs = {(run[other], run[name]) for run in runs}
    return len(pairs) == len({first for first, _ in pairs})


def _pattern(column: Sequence[str]) -> tuple[int, ...]:
    """Return where each value appeared first: equal for columns that change together."""
    first = {text: place for place, text in reversed(list(enumerate(column)))}
    return tuple(first[text] for text in column)


def point_of(known: Settings, names: Sequence[str], where: str, kind: str) -> tuple[Value, ...]:
    """Return the values of parameters in what a run recorded: numbers, or texts of categories.

    Raises
    ------
    ReadError
        Where one of them was not recorded; ``kind`` is what the settings are called there.
    """
    missing = [name for name in names if name not in known]
    if missing:
        raise ReadError(f"{where}: no {kind} {', '.join(missing)}; there are {', '.join(known)}")
    return tuple(value_of(known[name], f"{where}: {name}") for name in names)


def value_of(text: str, where: str) -> Value:
    """Return a recorded value: a number, or the text of a category."""
    return number(text, where) if is_number(text) else text

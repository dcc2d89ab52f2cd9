"""Arguments of public functions: what is meant is taken, and what is not is told with the remedy."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.errors import CampaignError, MeasurementError, OrchestratorError
from orchestrator.types import Measurements

# What follows is a list of names if it has a comma or an equals sign, ends a parenthesis, or only names can
# follow.
_OPTION = re.compile(
    r"--(parameters|named|names|response|categorical|output-of|aggregate|inclusive)\b"
    r"(?: ((?<=categorical )\w+|\w+(?=\))|[\w.]+[,=][\w.,=]*\w))?"
)


def texts(given: object, option: str, remedy: str = "give names as text") -> list[str]:
    """Return the texts that an option holds: one, several, or none.

    Raises
    ------
    MeasurementError
        For anything that is no text.
    """
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    items = list(given) if isinstance(given, Iterable) else [given]
    words = [item for item in items if isinstance(item, str)]
    if len(words) < len(items):
        wrong = next(item for item in items if not isinstance(item, str))
        raise MeasurementError(f"{option}: {wrong!r} is no text; {remedy}")
    return words


def mapping(
    given: object, option: str, example: str, error: type[OrchestratorError] = MeasurementError
) -> Mapping[Any, Any]:
    """Return a dictionary; raise ``error`` for anything else, with an example of one."""
    if not isinstance(given, Mapping):
        raise error(f"{option} is of type {type(given).__name__}: give a dictionary such as {example}")
    return given


def optional_mapping(given: object, option: str, example: str) -> Mapping[Any, Any]:
    """Return a dictionary, empty for None; raise ``MeasurementError`` for anything else."""
    return {} if given is None else mapping(given, option, example)


def warn(known: Measurements) -> Measurements:
    """Return measurements; what had to be assumed of them is a warning at the caller of a public function."""
    for note in known.notes:
        warnings.warn(in_python(note), stacklevel=3)
    return known


def in_python(text: str) -> str:
    """Return a message with arguments of Python's functions for the options of the command line."""

    def argument(option: re.Match[str]) -> str:
        name = "responses" if option[1] == "response" else option[1].replace("-", "_")
        return name if option[2] is None else f"{name}={option[2].split(',')}"

    return _OPTION.sub(argument, text)


def path(given: object, option: str) -> Path:
    """Return a path; raise ``CampaignError`` for anything that is none."""
    if not isinstance(given, str | os.PathLike):
        raise CampaignError(f"{option} is of type {type(given).__name__}: give a path")
    return Path(os.fspath(given))

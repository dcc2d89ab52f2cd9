"""Where the path of a file says at which point it was measured: ``si-{cutoff}Ry-{p}ranks.out``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import ReadError
from orchestrator.readers.entries import number
from orchestrator.types import Value

NUMBER = r"\d+(?:[.,]\d+)?"
WORD = r"[^\W\d_][^_=/.,-]*"
_PART = re.compile(r"\{([^{}]*)\}|(\*)")


def values_in(path: Path, shape: str) -> Mapping[str, Value]:
    """Return the values of parameters in the last part of a path that has a shape.

    Parameters
    ----------
    path
        Any path; the shape need not be all of it.
    shape
        Text of the path, with ``{name}`` where it has the value of a parameter, a number or a word that is a
        category, and ``*`` for any characters but ``/``.

    Raises
    ------
    ReadError
        For a path without this shape, and for a shape without parameters, or with one of them twice.
    """
    names = names_in(shape)
    found = list(re.finditer(_pattern(shape), str(path)))
    if not found:
        raise ReadError(f"{path}: nothing in the path has the shape {shape!r} of --named")
    return dict(zip(names, (value_of(text, path) for text in found[-1].groups()), strict=True))


def names_in(shape: str) -> tuple[str, ...]:
    """Return the parameters of a shape, in its order; raise ``ReadError`` as `values_in`."""
    names = tuple(part[1].strip() for part in _PART.finditer(shape) if part[1] is not None)
    if not names or not all(name.isidentifier() for name in names) or len({*names}) < len(names):
        raise ReadError(
            f"--named {shape!r}: name each parameter once, in braces, like n{{n}}_{{p}}ranks; * stands for "
            "anything else that differs"
        )
    return names


def _pattern(shape: str) -> str:
    parts, end = [], 0
    for part in _PART.finditer(shape):
        value = "[^/]*?" if part[2] else rf"(?<!\d)({NUMBER}|{WORD})"
        parts += [re.escape(shape[end : part.start()]), value]
        end = part.end()
    return "".join([*parts, re.escape(shape[end:])])


def value_of(text: str, path: Path) -> Value:
    """Return what a part of a path says: a number, whose comma is decimal, or a word."""
    return number(text.replace(",", "."), str(path)) if re.fullmatch(NUMBER, text) else text

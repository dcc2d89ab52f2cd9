"""What stands for characters that a terminal or file cannot take, as in the locale C: ``+-`` for a ±."""

from __future__ import annotations

import codecs

NAME = "orchestrator.readable"
"""The error handler of streams."""

_PLAIN = {"±": "+-", "₊": "+", "λ": "lambda", "·": "-", "…": "...", "×": "x", "≥": ">=", "≤": "<=", "→": "->"}


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    if all(character in _PLAIN for character in text):
        return "".join(_PLAIN[character] for character in text), error.end
    return codecs.lookup_error("backslashreplace")(error)


codecs.register_error(NAME, _replace)

"""Remedies for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher


def closest(word: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the candidate most similar to ``word`` (difflib's ratio, case ignored), or None.

    Unlike ``difflib.get_close_matches``, ties are broken by the order of ``candidates``.
    """
    best, best_ratio = None, cutoff
    for candidate in candidates:
        ratio = SequenceMatcher(None, word.lower(), candidate.lower()).ratio()
        if ratio > best_ratio or (best is None and ratio >= cutoff):
            best, best_ratio = candidate, ratio
    return best


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return ``did you mean 'x'?``, or else the list of what is known."""
    known = list(candidates)
    meant = closest(word, known)
    if meant is not None:
        return f"did you mean {meant!r}?"
    return f"known: {', '.join(known)}" if known else "none is known here"

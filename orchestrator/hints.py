"""Remedies for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import takewhile


def closest(word: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the candidate most similar to ``word``, or None if none is similar.

    A candidate that one slip of the finger turns into ``word`` comes first; the others are compared by
    difflib's ratio, which must reach ``cutoff``. Case is ignored; ties go to the first candidate.
    """

    def rank(candidate: str) -> tuple[bool, float]:
        a, b = word.lower(), candidate.lower()
        return _one_slip(a, b), SequenceMatcher(None, a, b).ratio()

    ranked = [(rank(candidate), candidate) for candidate in candidates]
    similar = [(key, candidate) for key, candidate in ranked if key[1] >= cutoff]
    return max(similar, key=lambda item: item[0])[1] if similar else None


def _one_slip(a: str, b: str) -> bool:
    """Whether one letter was left out, added, replaced, or swapped with its neighbour."""
    start = _common(a, b)
    a, b = a[start:], b[start:]
    end = _common(a[::-1], b[::-1])
    a, b = a[: len(a) - end], b[: len(b) - end]
    return (len(a) <= 1 and len(b) <= 1) or (len(a) == 2 and a == b[::-1])


def _common(a: str, b: str) -> int:
    """Return the number of letters with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return ``did you mean 'x'?``, or else the list of what is known."""
    known = list(candidates)
    meant = closest(word, known)
    if meant is not None:
        return f"did you mean {meant!r}?"
    return f"known: {', '.join(known)}" if known else "none is known here"

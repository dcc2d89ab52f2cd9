"""Where times may stand in what an unknown program prints: candidates for patterns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("minute", "minutes"), 60.0),
}
_NUMBER = r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eEdD][+-]?\d+)?"
_GROUPED = rf"(?:[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?(?!,?\d)|{_NUMBER})"  # thousands, too
# Neither begins nor ends within a number: `0,5` and `1,2,3` are none that could be read.
_VALUE = re.compile(
    rf"(?<![\w.+:-])(?<!\d,)({_GROUPED})(?![\w.:]|,\d)(?: ?\(?\[?([a-zµ]+)\b(?!/)\)?\]?)?"
    rf"|(?<!\d)(?<!\d[.,])(?<!\d[eEdD][+-])({_GROUPED})(ms|us|s)\b"
)
_TIMED = re.compile(r"\b(time|elapsed|seconds|duration|wall|walltime|runtime)\b", re.IGNORECASE)
_UNIT_IN_LABEL = re.compile(r"[(\[]\s*([a-zµ]+)\s*[)\]]")
# What has a unit of time, or speaks of one, and is none: rates, dates, sizes of steps.
_OTHER = re.compile(
    r"per |/|rate|flop|%|date|stamp|time ?step|\b(mon|tue|wed|thu|fri|sat|sun)\b", re.IGNORECASE
)
_END = r"(?=[\s;)]|,(?!\d)|$)"  # of a value: a comma before a digit belongs to the number
_WHOLE = ("total", "all", "overall", "main", "run", "program")
MOST = 12
_SHARE = 0.1  # of the time of a whole run, below which a time is hardly that of the run


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A time in an output: an item of ``program.output``.

    ``value`` is what it yields there, in seconds; ``line`` is the line that it was found in. ``thousands`` is
    what separates groups of three digits there.
    """

    callpath: str
    pattern: str
    scale: float = 1.0
    aggregate: str = "last"
    thousands: str | None = None
    value: float
    line: str


def times(text: str, elapsed: float = 0.0) -> tuple[Candidate, ...]:
    """Return candidates for times in a text, at most `MOST`, the one of the whole run first.

    A number is a time if a unit follows it, or if the words before it say so. Of several in a line the first
    counts. Where a label is repeated, its values are added.

    Parameters
    ----------
    text
        What a run printed.
    elapsed
        Seconds that the whole run took: a tiny share of them is that of the run only if its label says so and
        there is no larger one. Starting a program may take longer than the program.
    """
    found: dict[str, list[Candidate]] = {}
    for line in text.splitlines():
        candidate = _of(line)
        if candidate is not None:
            found.setdefault(candidate.pattern, []).append(candidate)
    merged = [_merged(items) for items in found.values()]
    least = _SHARE * elapsed
    largest = max((item.value for item in merged), default=0.0)
    ranked = sorted(merged, key=lambda item: _rank(item, least if largest >= least else 0.0))[:MOST]
    whole = bool(ranked) and (_names_the_whole(ranked[0]) or ranked[0].value >= least)
    return tuple(_with_paths(ranked, whole))


def _of(line: str) -> Candidate | None:
    for match in _VALUE.finditer(line):
        label = line[: match.start()]
        unit = _unit(match[2] or match[4], label)
        if unit is None or not re.search(r"[A-Za-z]", label) or _OTHER.search(label):
            continue
        number = match[1] or match[3]
        value = float(re.sub("[dD]", "e", number.replace(",", ""))) * unit
        return Candidate(
            callpath=_words(label),
            pattern=f"^{_pattern(label)}(\\S+?)" + (re.escape(match[4]) if match[4] else _END),
            scale=unit,
            thousands="," if "," in number else None,
            value=value,
            line=line.strip(),
        )
    return None


def _unit(after: str | None, label: str) -> float | None:
    """Return the seconds of a unit after the number or in the label; 1 where only words speak of a time."""
    if after and after in _UNITS:
        return _UNITS[after]
    named = [_UNITS[word] for word in _UNIT_IN_LABEL.findall(label) if word in _UNITS]
    if named:
        return named[-1]
    return 1.0 if _TIMED.search(label) else None


def _pattern(label: str) -> str:
    """Return a pattern of a label: numbers and spaces may differ in other runs."""
    parts = re.split(rf"({_NUMBER}|\s+)", label)
    return "".join(_part(part) for part in parts if part)


def _part(text: str) -> str:
    if text.isspace():
        return r"\s*"
    return r"\S+" if re.fullmatch(_NUMBER, text) else re.escape(text)


def _words(label: str) -> str:
    words = re.sub(r"[(\[].*?[)\]]", " ", label)
    words = re.sub(rf"{_NUMBER}|[^\w &+/-]", " ", words)
    words = re.sub(
        r"\b(time|elapsed|in|of|took|is|was|wall|clock|seconds)\b", " ", words, flags=re.IGNORECASE
    )
    return " ".join(words.replace("->", " ").split())[:60]


def _merged(items: Sequence[Candidate]) -> Candidate:
    if len(items) == 1:
        return items[0]
    thousands = next((item.thousands for item in items if item.thousands), None)
    value = sum(item.value for item in items)
    return replace(items[0], aggregate="sum", thousands=thousands, value=value)


def _names_the_whole(item: Candidate) -> bool:
    return not item.callpath or item.callpath.lower() in _WHOLE


def _rank(item: Candidate, least: float) -> tuple[bool, float]:
    """Return what sorts a time of the whole run first, if it takes long enough, then by length."""
    return (not (_names_the_whole(item) and item.value >= least), -item.value)


def _with_paths(items: Sequence[Candidate], whole: bool) -> Iterator[Candidate]:
    """Yield candidates with unique call paths: ``main`` for the whole run, which is the first, if any."""
    used: set[str] = set()
    above = "main->" if whole else ""
    for index, item in enumerate(items):
        path = "main" if whole and index == 0 else f"{above}{item.callpath or 'time'}"
        number = 2
        while path in used:
            path = f"{above}{item.callpath or 'time'} {number}"
            number += 1
        used.add(path)
        yield replace(item, callpath=path)

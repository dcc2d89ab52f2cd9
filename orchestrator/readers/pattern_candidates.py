"""Where times may stand in what an unknown program prints: candidates for patterns. Pure."""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from orchestrator.units import PRINTED_MINUTES, PRINTED_SECONDS, printed_duration

_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("minute", "minutes"), 60.0),
}
_NUMBER = r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eEdD][+-]?\d+)?"
_GROUPED = rf"(?:[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?(?!,?\d)|{_NUMBER})"  # thousands, too
# Neither begins nor ends within a number: `0,5` and `1,2,3` are none that could be read.
_VALUE = re.compile(
    rf"(?<!\d)(?<!\d[.,])(?<!\d[eEdD][+-])"
    rf"(?:({PRINTED_MINUTES})(?={PRINTED_SECONDS}\b)|({_GROUPED})(?=(?:ms|us|s)\b))({PRINTED_SECONDS}|ms|us)\b"
    rf"|(?<![\w.+:-])(?<!\d,)({_GROUPED})(?![\w.:/]|,\d)(?: ?\(?\[?([a-zµ]+)\b(?!/)\)?\]?)?"
)
_TIMED = re.compile(r"\b(time|elapsed|seconds|duration|wall|walltime|wtime|runtime)\b", re.IGNORECASE)
_HEADER = re.compile(r"\b(times?|timings?|timers?|seconds)\b", re.IGNORECASE)
_FIELDS = re.compile(r"\s{2,}|\t|\s*\|\s*")
_UNIT_IN_LABEL = re.compile(r"[(\[]\s*([a-zµ]+)\s*[)\]]")
# What has a unit of time, or speaks of one, and is none: rates (I/O is none), dates, sizes of steps.
_OTHER = re.compile(
    r"per |(?<!\bi)/|/(?!o\b)|rate|flop|%|date|stamp|time ?step|\b(mon|tue|wed|thu|fri|sat|sun)\b",
    re.IGNORECASE,
)
_SO_FAR = re.compile(r"\b(so far|up to now|until now|cumulative|accumulated)\b", re.IGNORECASE)
_CPU, _WALL = re.compile(r" *CPU\b"), re.compile(r" *WALL\b")
_SIMULATED = re.compile(r"\b(?:dt|cycle|cycles|step|steps)\s*=", re.IGNORECASE)  # so is what is beside it
_END = r"(?=[\s;)]|,(?!\d)|$)"  # of a value: a comma before a digit belongs to the number
_WHOLE = {"total", "all", "overall", "main", "run", "program", "execution", "simulation"}
MOST = 12
_MANY = 5
_SHARE = 0.1  # of the time of a whole run, below which a time is hardly that of the run


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A time in an output: an item of ``program.output``.

    ``value`` is what it yields there, in seconds; ``line`` is the line that it was found in. ``thousands`` is
    what separates groups of three digits there. ``file`` is the output: ``stdout``, or a pattern of files.
    """

    callpath: str
    pattern: str
    scale: float = 1.0
    aggregate: str = "last"
    thousands: str | None = None
    value: float
    line: str
    file: str = "stdout"


def times_in(outputs: Mapping[str, str], elapsed: float = 0.0) -> tuple[Candidate, ...]:
    """Return candidates for times in what a run printed, or else in the other output that has most.

    Parameters
    ----------
    outputs
        Texts by name: ``stdout``, ``stderr`` and files.
    elapsed
        As in `times`.
    """
    found = {name: times(text, elapsed) for name, text in outputs.items()}
    best = max(found, key=lambda name: (bool(found[name]) and name == "stdout", len(found[name])), default="")
    return tuple(replace(item, file=_file(best, outputs)) for item in found.get(best, ()))


def _file(name: str, names: Iterable[str]) -> str:
    """Return a glob pattern of a file: its numbers (a date, a process, a size) differ from run to run."""
    pattern = "*".join(map(glob.escape, re.split(r"\d+", name)))
    return pattern if fnmatch.filter(names, pattern) == [name] else glob.escape(name)


def times(text: str, elapsed: float = 0.0) -> tuple[Candidate, ...]:
    """Return candidates for times in a text, at most `MOST`, the one of the whole run first.

    A number is a time if a unit follows it, or if the words before it say so, or the header of a table above
    it. Several in a line need a label each, and wall time stands behind CPU time. Where a label is repeated,
    its values are added, unless they add up already: the time so far, after every step.

    Parameters
    ----------
    text
        What a run printed.
    elapsed
        Seconds that the whole run took: a tiny share of them is that of the run only if its label says so and
        there is no larger one. Starting a program may take longer than the program.
    """
    found: dict[str, list[Candidate]] = {}
    totals: dict[str, list[Candidate]] = {}
    tables: set[str] = set()
    column = None
    for line in text.splitlines():
        candidates = list(_of(line))
        if not candidates and column is not None and (row := column.of(line)) is not None:
            candidates = [row]
            tables.add(row.pattern)
        for candidate in candidates:
            of_all = totals if _names_the_whole(candidate) and _follows_a_number(candidate) else found
            of_all.setdefault(candidate.pattern, []).append(candidate)
        column = _column(line, column, bool(candidates))
    found |= totals if len(totals) == 1 else {}  # beside several parts it is the time so far
    merged = []
    for pattern, items in found.items():
        item = _merged(items, elapsed)
        aggregate = _of_table(item, len(items), text) if pattern in tables else item.aggregate
        merged += [replace(item, aggregate=aggregate)] if aggregate else []
    possible = [item for item in merged if item.value <= elapsed]
    if any(map(_names_the_whole, possible)):
        merged = possible  # what is longer than the whole run is a time of what is simulated
    least = _SHARE * elapsed
    largest = max((item.value for item in merged), default=0.0)
    ranked = sorted(merged, key=lambda item: _rank(item, least if largest >= least else 0.0))[:MOST]
    whole = bool(ranked) and (_names_the_whole(ranked[0]) or ranked[0].value >= least)
    return tuple(_with_paths(ranked, whole))


@dataclass(frozen=True)
class _Column:
    """The times of a table: which column of how many, their unit, and whether a row was seen."""

    index: int
    number: int
    unit: float
    begun: bool = False

    def of(self, line: str) -> Candidate | None:
        """Return the time in a row: a label, and as many numbers as the header has columns."""
        numbers = list(_VALUE.finditer(line))
        if len(numbers) != self.number or not re.match(r"\s*[A-Za-z]", line):
            return None
        between = [line[a.end() : b.start()] for a, b in pairwise(numbers)] + [line[numbers[-1].end() :]]
        if any(text.strip(" \t|%") for text in between):
            return None
        if self.unit == 1 and re.fullmatch(r"\d+", numbers[self.index][0]):
            return None  # a count among times
        return _candidate(line, numbers[self.index], self.unit)


def _column(line: str, above: _Column | None, is_time: bool) -> _Column | None:
    """Return the column of times that a line begins, or goes on with; None where there is none."""
    if is_time:
        return above and replace(above, begun=True)
    if not re.search(r"\w", line):
        return above if above is None or not above.begun or line.strip() else None
    if _VALUE.search(line) or not _HEADER.search(line) or _OTHER.search(line):
        return None
    fields = [field for field in _FIELDS.split(line.strip()) if re.search(r"\w", field)]
    units = [found for field in fields if (found := _unit(None, field))]
    if len(fields) == 1:
        is_header = line.rstrip().endswith(":") or _UNIT_IN_LABEL.search(line)
        return _Column(0, 1, units[0] if units else 1.0) if is_header else None
    index = next((k for k, field in enumerate(fields[1:]) if _HEADER.search(field)), None)
    return None if index is None else _Column(index, len(fields) - 1, _unit(None, fields[index + 1]) or 1.0)


def _of(line: str) -> Iterator[Candidate]:
    """Yield the times in a line: numbers with a label of their own."""
    if _SIMULATED.search(line):
        return
    end = 0
    matches = list(_VALUE.finditer(line))
    for match, following in zip_longest(matches, matches[1:]):
        label, end = line[end : match.start()], _end(match)
        unit = _unit(_unit_behind(match), label)
        if unit is None or not re.search(r"[A-Za-z]", label) or _OTHER.search(label):
            continue
        if following and _CPU.match(line, match.end()) and _WALL.match(line, following.end()):
            wall = _candidate(line, following, _UNITS.get(_unit_behind(following), unit))
            yield replace(wall, callpath=_words(line[: match.start()]))
            return
        yield _candidate(line, match, unit)


def _end(match: re.Match[str]) -> int:
    """Return where a number and its unit of time end; other words behind it belong to what follows."""
    return match.end() if _unit_behind(match) in _UNITS else match.end(_group(match))


def _group(match: re.Match[str]) -> int:
    """Return the group of `_VALUE` that has the number, or the duration of several parts."""
    return next(group for group in (1, 2, 4) if match[group])


def _unit_behind(match: re.Match[str]) -> str:
    return (match[3] or match[5] or "").strip()


def _candidate(line: str, match: re.Match[str], unit: float) -> Candidate:
    """Return the time that was found in a line."""
    label = line[: match.start()]
    number = match[_group(match)]
    group = ".+?" if " " in number else r"\S+?"
    seconds = printed_duration(number)
    if seconds is None:
        seconds = float(re.sub("[dD]", "e", number.replace(",", "")))
    before = [_end(other) for other in _VALUE.finditer(label)]
    return Candidate(
        callpath=(_words(label[before[-1] :]) if before else "") or _words(label),
        pattern=f"^{_pattern(label)}({group})" + (re.escape(match[3]) if match[3] else _END),
        scale=unit,
        thousands="," if "," in number else None,
        value=seconds * unit,
        line=line.strip(),
    )


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


def _merged(items: Sequence[Candidate], elapsed: float) -> Candidate:
    if len(items) == 1:
        return items[0]
    thousands = next((item.thousands for item in items if item.thousands), None)
    values = [item.value for item in items]
    if _SO_FAR.search(items[0].line) or _is_so_far(values, elapsed):
        return replace(items[-1], thousands=thousands)
    return replace(items[0], aggregate="sum", thousands=thousands, value=sum(values))


def _is_so_far(values: Sequence[float], elapsed: float) -> bool:
    """Whether values are the time so far, of which the last is the sum of all.

    They never fall, and either their sum is more than the whole run took, or there are so many that times of
    steps would hardly be in that order by chance.
    """
    rises = values[0] < values[-1] and all(a <= b for a, b in pairwise(values))
    return rises and (0 < elapsed < sum(values) or len(values) >= _MANY)


def _of_table(item: Candidate, number: int, text: str) -> str:
    """Return how so many rows are told from other lines with their label; empty where nothing tells them."""
    found = re.findall(item.pattern, text, re.MULTILINE)
    if len(found) == number:
        return item.aggregate
    if number > 1:
        return ""
    value = item.line.split()
    return "first" if found[0] in value else "last" if found[-1] in value else ""


def _names_the_whole(item: Candidate) -> bool:
    return set(item.callpath.lower().split()) <= _WHOLE


def _follows_a_number(item: Candidate) -> bool:
    return r"\S+" in item.pattern.partition("(")[0]


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

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
_IS_NUMBER = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?").fullmatch
_VALUE = re.compile(
    rf"(?<!\d)(?<!\d[.,])(?<!\d[eEdD][+-])"
    rf"(?:({PRINTED_MINUTES})(?={PRINTED_SECONDS}\b)|({_GROUPED})(?=(?:ms|us|s)\b))({PRINTED_SECONDS}|ms|us)\b"
    rf"|(?<![\w.+:-])(?<!\d,)({_GROUPED})(?![\w.:/]|,\d)(?: ?\(?\[?([a-zµ]+)\b(?!/)\)?\]?)?"
)
_A, _Z = r"(?<![^\W_])", r"(?![^\W_])"  # of a word: names such as solve_time have several
_TIMED = re.compile(rf"{_A}(time|elapsed|seconds|duration|wall|walltime|wtime|runtime){_Z}", re.IGNORECASE)
_HEADER = re.compile(rf"{_A}(times?|timings?|timers?|seconds){_Z}", re.IGNORECASE)
_FIELDS = re.compile(r"\s{2,}|\t|\s*\|\s*")
_WORDS = re.compile(r"\s+(?![(\[])")  # a unit in parentheses belongs to the word before it
_UNIT_IN_LABEL = re.compile(
    r"[(\[]\s*(?:in\s+)?([a-zµ]+)\s*[)\]]|(?:\bin |_)(ms|us|µs|ns|[mµn]?sec|[a-z]*seconds)(?=\W*$)"
)
# What has a unit of time, or speaks of one, and is none: rates (I/O is none), dates, sizes of steps,
# products, and what is simulated in femtoseconds.
_OTHER = re.compile(
    rf"{_A}per{_Z}|(?<!\bi)/|/(?!o\b)|{_A}(?:bit|data|frame)?rates?{_Z}|flop|%|{_A}date{_Z}"
    rf"|stamp|time[ _]?step|\w \* |{_A}[fp]s{_Z}"
    r"|\b(mon|tue|wed|thu|fri|sat|sun)\b",
    re.IGNORECASE,
)
_DEVIATION = re.compile(rf"{_A}(?:std|stdev|stddev|deviation|variance){_Z}", re.IGNORECASE)
_MEAN = re.compile(rf"{_A}(?:avg|ave|average|mean){_Z}", re.IGNORECASE)
_PREFERRED = (re.compile(rf"{_A}total{_Z}", re.IGNORECASE), _MEAN)  # of several columns
_MEASURED = re.compile(
    rf"{_A}(latency|elapsed|duration|wall|walltime|wtime|runtime|cpu){_Z}", re.IGNORECASE
)  # what is simulated has other names
_SIZED = re.compile(r"\s*\d+\s")  # a row that begins with a number
# Between a number and the one that it belongs to the label of: `Time for step 63 is 0.5`.
_OF_LABEL = re.compile(r"[^,;|]*(?:[:=]|\b(?:is|was|took))\s*", re.IGNORECASE)
_SO_FAR = re.compile(r"\b(so far|up to now|until now|cumulative|accumulated)\b", re.IGNORECASE)
_CPU, _WALL = re.compile(r" *CPU\b"), re.compile(r" *WALL\b")
_SIMULATED_UNITS = ("fs", "ps")
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
    its values are added, unless they add up already: the time so far, after every step. A line below another
    one that begins farther right, and is no longer than it, is a part of it.

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
    tables: dict[str, int] = {}
    table, blocks = None, [list[_Line]()]
    for line in text.splitlines():
        candidates = list(_of(line))
        if not candidates and table is not None and (row := table.of(line)) is not None:
            candidates = [row[0]]
            tables[row[0].pattern] = row[1]
        for candidate in candidates:
            of_all = totals if _names_the_whole(candidate) and _follows_a_number(candidate) else found
            of_all.setdefault(candidate.pattern, []).append(candidate)
        if candidates:
            blocks[-1].append(_line(line, candidates[0].pattern))
        else:
            blocks.append([])
        table = _table(line, table, bool(candidates))
    found |= totals if len(totals) == 1 else {}  # beside several parts it is the time so far
    merged, ids = [], dict[str, str]()
    for pattern, items in found.items():
        sized = pattern in tables and _SIZED.match(
            items[-1].line
        )  # a row per size: that of the last, which is the largest
        item: Candidate | None = items[-1] if sized else _merged(items, elapsed)
        if item is not None and pattern in tables:
            item = _told_apart(item, len(items), tables[pattern], text)
        if item is not None:
            merged.append(item)
            ids[item.pattern] = pattern
    possible = [item for item in merged if item.value <= elapsed]
    if any(map(_names_the_whole, possible)):
        merged = possible  # what is longer than the whole run is a time of what is simulated
    least = _SHARE * elapsed
    largest = max((item.value for item in merged), default=0.0)
    ranked = sorted(merged, key=lambda item: _rank(item, least if largest >= least else 0.0))[:MOST]
    whole = bool(ranked) and (_names_the_whole(ranked[0]) or ranked[0].value >= least)
    callers = {part: caller for block in blocks for part, caller in _outline(block)}
    paths = _with_paths(ranked, whole, [callers.get(ids[item.pattern], "") for item in ranked], ids)
    return tuple(paths)


@dataclass(frozen=True)
class _Line:
    """A line with a time: where its label begins and ends, and the pattern of its time."""

    begin: int
    end: int
    pattern: str


def _line(line: str, pattern: str) -> _Line:
    line = line.expandtabs()
    number = _VALUE.search(line)
    label = line[: number.start() if number else None].rstrip(" .:=|")
    return _Line(len(label) - len(label.lstrip()), len(label), pattern)


def _outline(block: Sequence[_Line]) -> Iterator[tuple[str, str]]:
    """Yield the patterns of parts and of what contains them; none where labels are aligned at their ends."""
    if len({item.end for item in block}) == 1:
        return
    above: list[_Line] = []
    for item in block:
        above = [other for other in above if other.begin < item.begin]
        if above:
            yield item.pattern, above[-1].pattern
        above.append(item)


@dataclass(frozen=True)
class _Column:
    """The times of a table: which column of how many, their unit, and what the header calls them."""

    index: int
    number: int
    unit: float
    heading: str = ""

    def of(self, line: str) -> Candidate | None:
        """Return the time in a row: a label, and as many numbers as the header has columns."""
        if _SIZED.match(line):
            return self._of_size(line)
        numbers = list(_VALUE.finditer(line))
        if len(numbers) != self.number or not re.match(r"\s*[A-Za-z]", line):
            return None
        between = [line[a.end() : b.start()] for a, b in pairwise(numbers)] + [line[numbers[-1].end() :]]
        if any(text.strip(" \t|%") for text in between):
            return None
        if self.unit == 1 and re.fullmatch(r"\d+", numbers[self.index][0]):
            return None  # a count among times
        return _candidate(line, numbers[self.index], self.unit)

    def _of_size(self, line: str) -> Candidate | None:
        """Return the time in a row that begins with a size, where the header says that it was measured."""
        fields = line.split()
        measured = _MEASURED.search(self.heading) and _unit(None, self.heading)
        if not measured or len(fields) != self.number + 1 or not all(map(_IS_NUMBER, fields)):
            return None
        before, behind = (r"[ \t]+\S+" * number for number in (self.index, self.number - self.index - 1))
        return Candidate(
            callpath=_words(self.heading) or "time",
            pattern=rf"^[ \t]*\d+{before}[ \t]+(\S+){behind}[ \t]*$",
            scale=self.unit,
            value=float(fields[self.index + 1]) * self.unit,
            line=line.strip(),
        )


@dataclass(frozen=True)
class _Table:
    """What the header of a table may mean, likeliest first, and whether a row was seen."""

    columns: tuple[_Column, ...]
    begun: bool = False

    def of(self, line: str) -> tuple[Candidate, int] | None:
        """Return the time in a row, and how many numbers are behind it."""
        rows = ((column.of(line), column.number - column.index - 1) for column in self.columns)
        return next(((found, behind) for found, behind in rows if found is not None), None)


def _table(line: str, above: _Table | None, is_time: bool) -> _Table | None:
    """Return the table that a line begins, or goes on with; None where there is none."""
    if is_time:
        return above and replace(above, begun=True)
    if not re.search(r"[^\W_]", line):
        return above if above is None or not above.begun or line.strip() else None
    if _VALUE.search(line):
        return None
    splits = (_fields(_FIELDS, line), _fields(_WORDS, line))
    if len(splits[0]) == 1:
        is_header = line.rstrip().endswith(":") or _UNIT_IN_LABEL.search(line)
        if not is_header or not _HEADER.search(line) or _is_no_time(line):
            return None
        return _Table((_Column(0, 1, _unit(None, line) or 1.0),))
    columns = tuple(column for fields in splits if (column := _column(fields)) is not None)
    return _Table(columns) if columns else None


def _is_no_time(label: str) -> bool:
    """Tell whether a label is that of something else; of `ave, stddev, min, max` the first is a time."""
    return bool(_OTHER.search(label) or (_DEVIATION.search(label) and not _MEAN.search(label)))


def _fields(parting: re.Pattern[str], line: str) -> list[str]:
    return [field for field in parting.split(line.strip()) if re.search(r"\w", field)]


def _column(fields: Sequence[str]) -> _Column | None:
    """Return the column of times below a header: the total where there are several, or the mean."""
    units = [None if _is_no_time(field) else _unit(None, field) for field in fields[1:]]
    units = [
        1.0 if unit is None and _HEADER.search(field) and not _is_no_time(field) else unit
        for unit, field in zip(units, fields[1:], strict=True)
    ]
    timed = [index for index, unit in enumerate(units) if unit is not None]
    if not timed:
        return None
    preferred = (k for words in _PREFERRED for k in timed if words.search(fields[k + 1]))
    index = next(preferred, timed[0])
    return _Column(index, len(fields) - 1, units[index] or 1.0, fields[index + 1])


def _of(line: str) -> Iterator[Candidate]:
    """Yield the times in a line: numbers with a label of their own."""
    if _SIMULATED.search(line):
        return
    end = 0
    matches = list(_VALUE.finditer(line))
    for match, following in zip_longest(matches, matches[1:]):
        if following and _is_of_label(line, match, following):
            continue
        begin, label, end = end, line[end : match.start()], _end(match)
        unit = _unit(_unit_behind(match), label)
        if unit is None or not re.search(r"[A-Za-z]", label) or _is_no_time(label):
            continue
        if following and _CPU.match(line, match.end()) and _WALL.match(line, following.end()):
            wall = _candidate(line, following, _UNITS.get(_unit_behind(following), unit))
            yield replace(wall, callpath=_words(line[: match.start()]))
            return
        yield _candidate(line, match, unit, begin)


def _is_of_label(line: str, match: re.Match[str], following: re.Match[str]) -> bool:
    """Tell whether a whole number belongs to the label of the one behind it: ``Time of step 63 is 0.5``."""
    if _unit_behind(match) in _UNITS or not re.fullmatch(r"\d+", match[_group(match)]):
        return False
    if re.search(r"[:=]\s*$", line[: match.start()]):
        return False
    return bool(_OF_LABEL.fullmatch(line, match.end(_group(match)), following.start()))


def _end(match: re.Match[str]) -> int:
    """Return where a number and its unit of time end; other words behind it belong to what follows."""
    return match.end() if _unit_behind(match) in _UNITS else match.end(_group(match))


def _group(match: re.Match[str]) -> int:
    """Return the group of `_VALUE` that has the number, or the duration of several parts."""
    return next(group for group in (1, 2, 4) if match[group])


def _unit_behind(match: re.Match[str]) -> str:
    return (match[3] or match[5] or "").strip()


def _candidate(line: str, match: re.Match[str], unit: float, begin: int = 0) -> Candidate:
    """Return the time that was found in a line, whose own label begins somewhere in it."""
    label = line[: match.start()]
    number = match[_group(match)]
    group = ".+?" if " " in number else r"\S+?"
    seconds = printed_duration(number)
    if seconds is None:
        seconds = float(re.sub("[dD]", "e", number.replace(",", "")))
    return Candidate(
        callpath=_words(label[begin:]) or _words(label),
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
    if after in _SIMULATED_UNITS:
        return None
    words = (found[1] or found[2] for found in _UNIT_IN_LABEL.finditer(label))
    named = [_UNITS[word] for word in words if word in _UNITS]
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
    words = re.sub(r"^\W*(to|for)\b", " ", words)
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


def _told_apart(item: Candidate, number: int, behind: int, text: str) -> Candidate | None:
    """Return how so many rows are told from other lines with their label; None where nothing tells them."""
    found = re.findall(item.pattern, text, re.MULTILINE)
    if len(found) == number:
        return item
    whole = rf"{item.pattern}(?=(?:[ \t|%]+[^\s|%]+){{{behind}}}[ \t|%]*$)"  # a row of so many columns
    if behind and len(re.findall(whole, text, re.MULTILINE)) == number:
        return replace(item, pattern=whole)
    value = item.line.split()
    if number > 1 or not {found[0], found[-1]} & {*value}:
        return None
    return replace(item, aggregate="first" if found[0] in value else "last")


def _names_the_whole(item: Candidate) -> bool:
    return set(item.callpath.lower().split()) <= _WHOLE


def _follows_a_number(item: Candidate) -> bool:
    return r"\S+" in item.pattern.partition("(")[0]


def _rank(item: Candidate, least: float) -> tuple[bool, float]:
    """Return what sorts a time of the whole run first, if it takes long enough, then by length."""
    return (not (_names_the_whole(item) and item.value >= least), -item.value)


def _with_paths(
    items: Sequence[Candidate], whole: bool, callers: Sequence[str], ids: Mapping[str, str]
) -> Iterator[Candidate]:
    """Yield candidates with unique call paths: ``main`` for the whole run, which is the first, if any.

    Parameters
    ----------
    items, whole
        The candidates, the longest first, and whether the first is the whole run.
    callers
        Of each what it is a part of, by an id; empty where it is not known.
    ids
        The ids, by pattern.
    """
    known: dict[str, Candidate] = {}
    above = "main->" if whole else ""
    for index, (item, caller) in enumerate(zip(items, callers, strict=True)):
        outer = known.get(caller)
        within = f"{outer.callpath}->" if outer is not None and outer.value >= item.value else above
        path = "main" if whole and index == 0 else f"{within}{item.callpath or 'time'}"
        used = {other.callpath for other in known.values()}
        number = 2
        while path in used:
            path = f"{within}{item.callpath or 'time'} {number}"
            number += 1
        known[ids[item.pattern]] = replace(item, callpath=path)
        yield known[ids[item.pattern]]

"""The times in tables that an unknown program prints: below a header that speaks of time. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from orchestrator.readers.printed_line import (
    MEAN,
    VALUE,
    Candidate,
    candidate,
    has_unit,
    is_no_time,
    named_unit,
    unit_of,
    word,
    words_of,
)
from orchestrator.units import PRINTED_UNITS

_HEADER = word("times?|timings?|timers?|seconds")
_GROUP = re.compile(r"\S+(?: \S+)*")
_CAPTION = re.compile(r"\s*[-=*]{3,}\s*\w")  # between a header and its rows: `--- Stage 0: Main`
_RULE = re.compile(r"\s*[-=*]{3,}\s*")
# The unit of the times of a whole table: `Total time (sorted, milliseconds)`.
_UNIT_OF_ALL = re.compile(r"[(\[](?:[^()\[\]]*[ ,])?([a-zµ]+) *[)\]]")
# Names that are the same in every run, with their numbers: `make_m2s`, `PME 3D-FFT`, `map 2-0`; not `Step 7`.
_NAME = re.compile(r"[A-Za-z]\w*|(?=.*\d)[A-Za-z]\S*(?: (?:\S*[A-Za-z]\S*|\d+-\d+))*(?<![:=])")
_FIELDS = re.compile(r"\s{2,}|\t|\s*\|\s*")
_WORDS = re.compile(r"\s+(?![(\[])")  # a unit in parentheses belongs to the word before it
_TOTAL = word("total|tot")
# Columns that are called by what a time includes: `Incl. Avg`. Of counts, that stands behind the quantity.
_BARE = re.compile(r"(?:incl|excl)(?:usive|\.)? ?(?:min|avg|mean|average|max)", re.IGNORECASE)
_UNIT_ALONE = re.compile(r"[a-z]*sec(?:s|onds?)?", re.IGNORECASE)  # a heading of nothing else: `microSecs`
_EXCLUSIVE = re.compile(r"\bexcl(?:usive|\b)", re.IGNORECASE)
# Of these the slowest process counts, by whose times such tables are sorted.
_SLOWEST = re.compile(rf"(?=.*\bmax)(?:{_BARE.pattern})", re.IGNORECASE)
# Of several columns: all of a part, with what it calls, or else the mean over processes or calls.
_PREFERRED = (_TOTAL, re.compile(rf"{word('inclusive|incl?').pattern}|\(I\)", re.IGNORECASE), _SLOWEST, MEAN)
# Of rows that begin with a size: what is simulated has other names.
_MEASURED = word("latency|elapsed|duration|wall|walltime|wtime|runtime|cpu")
_SIZED = re.compile(r"\s*\d+\s")
_STATISTIC = re.compile(r"avg|average|mean|min|max|tot|total", re.IGNORECASE)
_BARRED = re.compile(r"\s*[A-Za-z][^|]*\|")  # a label that may have numbers: `map of dim = 2  |  1  0.005`
_RATIO = re.compile(r"\w / \w")  # of two times: `CPU / elapsed time`
# What stands in place of a number, or behind one and tells of which process it is: `-`, `(     1)`.
_NO_NUMBER, _OF_PROCESS = re.compile(r"(?<=\s)-(?=\s)"), re.compile(r"(?<=\d )\( *\d+(?: +\d+)?\)")
_IS_NUMBER = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?").fullmatch


def is_sized(item: Candidate) -> bool:
    """Tell whether a time stands in a row that begins with a size."""
    return bool(_SIZED.match(item.line))


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
        text, numbers = _row(line, self.number)
        if len(numbers) != self.number:
            return None
        if self.unit == 1 and re.fullmatch(r"\d+", numbers[self.index][0]):
            return None  # a count among times
        name = line[: numbers[0].start()].rstrip(" \t|").lstrip()
        if _RATIO.search(name):
            return None
        found = candidate(
            text, numbers[self.index], self.unit, name=name if _NAME.fullmatch(name) else "", is_row=True
        )
        return replace(found, line=line.strip())

    def _of_size(self, line: str) -> Candidate | None:
        """Return the time in a row that begins with a size, where the header says that it was measured."""
        fields = line.split()
        measured = _MEASURED.search(self.heading) and unit_of(None, self.heading)
        if not measured or len(fields) != self.number + 1 or not all(map(_IS_NUMBER, fields)):
            return None
        before, behind = (r"[ \t]+\S+" * number for number in (self.index, self.number - self.index - 1))
        return Candidate(
            callpath=words_of(self.heading) or "time",
            pattern=rf"^[ \t]*\d+{before}[ \t]+(\S+){behind}[ \t]*$",
            scale=self.unit,
            value=float(fields[self.index + 1]) * self.unit,
            line=line.strip(),
        )


def _numbers(line: str, begin: int = 0) -> list[re.Match[str]]:
    """Return the numbers of a row: a label, and nothing but them behind it; none of any other line."""
    numbers = list(VALUE.finditer(line, begin))
    between = [line[a.end() : b.start()] for a, b in pairwise(numbers)]
    between += [line[numbers[-1].end() :]] if numbers else []
    is_row = re.match(r"[\s|*]*[A-Za-z]", line) and not any(text.strip(" \t|%") for text in between)
    return numbers if is_row else []


def _row(line: str, number: int | None = None) -> tuple[str, list[re.Match[str]]]:
    """Return a row and its numbers: with one in place of each sign for none, if it has not so many as it is.

    ``number``: how many a row has; by default any.
    """
    numbers = _numbers(line)
    if len(numbers) == number or (numbers and number is None):
        return line, numbers
    if (label := _BARRED.match(line)) and len(behind := _numbers(line, label.end())) == number:
        return line, behind
    text = _NO_NUMBER.sub("0", _OF_PROCESS.sub(lambda found: " " * len(found[0]), line))
    return text, _numbers(text)


@dataclass(frozen=True)
class _Below:
    """The times below a heading that stands over several columns: its place in the line, and their unit.

    Some columns have a name of several words or none, so the first row shows which of how many it is.
    """

    begin: int
    end: int
    unit: float

    def column(self, line: str) -> _Column | None:
        """Return the column of a row that stands below the heading, or the first of several."""
        numbers = _numbers(line)
        below = (k for k, item in enumerate(numbers) if item.start() < self.end and item.end() > self.begin)
        index = next(below, None)
        return None if index is None else _Column(index, len(numbers), self.unit)


@dataclass(frozen=True)
class _Above:
    """The words of a header whose names of columns have one space within and between them, with their places.

    ``Path  Min time/rank Max time/rank Time %``: the numbers of the first row end where their columns do.
    """

    words: tuple[tuple[int, str], ...]
    labels: int  # where the heading of the labels ends, if there is one
    unit: float  # of a heading that names none

    def column(self, line: str) -> _Column | None:
        """Return the column of times above the numbers of a row; None where the words are not above them."""
        numbers = _row(line)[1]
        least = 0 if self.begins_with(numbers[0]) else self.labels
        words = [(at, word) for at, word in self.words if at >= least]
        ends = [item.end() for item in numbers]
        fields = [
            " ".join(word for at, word in words if begin <= at < end) for begin, end in pairwise([0, *ends])
        ]
        is_above = all(fields) and words[-1][0] < ends[-1]
        return _column(["", *fields], self.unit) if is_above else None

    def begins_with(self, number: re.Match[str]) -> bool:
        """Tell whether the first word stands above the first number: the labels have no heading then."""
        at, word = self.words[0]
        return at < number.end() and number.start() < at + len(word)


@dataclass(frozen=True)
class Row:
    """The time in a row, how many numbers are behind it, and whether it is that of a part alone."""

    time: Candidate
    behind: int
    is_exclusive: bool


@dataclass(frozen=True)
class Table:
    """What the header of a table may mean, likeliest first, and whether a row was seen."""

    columns: tuple[_Column, ...]
    begun: bool = False
    # Of a header of two lines, which no rows but its own fit: empty lines and captions do not end it.
    below: _Below | None = None
    above: _Above | None = None  # of a header whose names of columns cannot be told apart without a row

    def resolved(self, line: str) -> Table:
        """Return the table whose columns are known from its first row, if a line is it."""
        if self.above is not None and (numbers := _row(line)[1]):
            column = None
            if (unlabelled := self.above.begins_with(numbers[0])) or not self.fits(line):
                column = self.above.column(line)
            known = () if unlabelled and column else self.columns
            return replace(self, columns=(*known, *([column] if column else [])), above=None)
        if self.below is None or self.columns or (column := self.below.column(line)) is None:
            return self
        return replace(self, columns=(column,))

    def fits(self, line: str) -> bool:
        """Return whether a line has as many numbers as a row."""
        return any(len(_row(line, column.number)[1]) == column.number for column in self.columns)

    def of(self, line: str) -> Row | None:
        """Return the time in a row."""
        for column in self.columns:
            if (found := column.of(line)) is not None:
                behind = column.number - column.index - 1
                return Row(found, behind, bool(_EXCLUSIVE.search(column.heading)))
        return None


def caption_of(line: str, above: str) -> str:
    """Return what stands above the next line, be there a rule between or not."""
    return above if _RULE.fullmatch(line) else line


def table_of(line: str, before: str, caption: str, above: Table | None, is_time: bool) -> Table | None:
    """Return the table that a line begins, or goes on with; None where there is none.

    Parameters
    ----------
    line, before
        The line, and the one before it.
    caption
        What stands above the line, which may name the unit of a table.
    above
        The table that goes on there.
    is_time
        Whether the line has a time.
    """
    if is_time:
        return above and replace(above, begun=True)
    if not re.search(r"[^\W_]", line):
        ends = above is not None and above.begun and above.below is None and not line.strip()
        return None if ends else above
    has_groups = above is not None and above.below is not None
    if VALUE.search(line):
        # A sum below some of the columns, or a whole number in one of them, as where a routine takes no time.
        number = len(_row(line)[1])
        return above if above and number and (has_groups or (number > 1 and above.fits(line))) else None
    is_caption = _CAPTION.match(line) or (has_groups and _RULE.fullmatch(before))
    return _below_groups(before, line) or _begun_by(line, caption) or (above if is_caption else None)


def _below_groups(before: str, line: str) -> Table | None:
    """Return the table whose header has two lines: groups of columns, and the names of the columns.

    ``Time (sec)`` above ``Max Ratio``, say. Of several groups with times the total counts, or else the mean.
    """
    groups = list(_GROUP.finditer(before))  # the first one is the heading of the labels
    names = list(re.finditer(r"\S+", line))
    if not groups or len(names) < len(groups) or names[0].start() <= groups[0].end():
        return None
    timed = [(group, unit) for group in groups[1:] if (unit := _unit(group[0])) is not None]
    if not timed:
        return None
    means = [name for name in names if MEAN.fullmatch(name[0])]
    totals = (item for item in timed if _TOTAL.search(item[0][0]))
    of_means = (item for item in timed if any(_is_below(name, item[0]) for name in means))
    group, unit = next(totals, next(of_means, timed[0]))
    return Table((), below=_Below(group.start(), group.end(), unit))


def _is_below(name: re.Match[str], group: re.Match[str]) -> bool:
    return name.start() < group.end() and group.start() < name.end()


def _begun_by(line: str, caption: str) -> Table | None:
    """Return the table whose header a line is."""
    named = [] if is_no_time(caption) else _UNIT_OF_ALL.findall(caption)
    unit = next((PRINTED_UNITS[unit] for unit in named if unit in PRINTED_UNITS), 1.0)
    splits = (_fields(_FIELDS, line), _fields(_WORDS, line))
    if len(splits[0]) == 1:
        is_header = line.rstrip().endswith(":") or has_unit(line)
        if not is_header or not _HEADER.search(line) or is_no_time(line):
            return None
        return Table((_Column(0, 1, unit_of(None, line) or 1.0),))
    columns = tuple(column for fields in splits if (column := _column(fields, unit)) is not None)
    if not columns:
        return None
    words = tuple((word.start(), word[0]) for word in re.finditer(r"\S+", line))
    return Table(columns, above=_Above(words, line.index(splits[0][1]), unit))


def told_apart(item: Candidate, number: int, behind: int, text: str) -> Candidate | None:
    """Return how so many rows are told from other lines with their label; None where nothing tells them."""
    matches = re.findall(item.pattern, text, re.MULTILINE)
    if len(matches) == number:
        return item
    whole = of_whole_row(item, behind)
    if behind and len(re.findall(whole.pattern, text, re.MULTILINE)) == number:
        return whole
    value = item.line.split()
    if number > 1 or not {matches[0], matches[-1]} & {*value}:
        return None
    return replace(item, aggregate="first" if matches[0] in value else "last")


def of_whole_row(item: Candidate, behind: int) -> Candidate:
    """Return a time in a row with exactly so many numbers behind it: other tables have other rows."""
    return replace(item, pattern=rf"{item.pattern}(?=(?:[ \t|%]+[^\s|%]+){{{behind}}}[ \t|%]*$)")


def _fields(parting: re.Pattern[str], line: str) -> list[str]:
    return [field for field in parting.split(line.strip()) if re.search(r"[\w%]", field)]


def _column(fields: Sequence[str], unit: float) -> _Column | None:
    """Return the column of times below a header; of several the total or the mean."""
    units = [_unit(field, unit) for field in fields[1:]]
    if not any(units) and _HEADER.search(fields[0]) and not is_no_time(fields[0]):
        of_all = named_unit(
            fields[0]
        )  # of a heading of the labels: `Summary of timings (s)  |  reps  avg  tot`
        units = [of_all if _STATISTIC.fullmatch(field) else None for field in fields[1:]]
    timed = [index for index, unit in enumerate(units) if unit is not None]
    if not timed:
        return None
    for words in _PREFERRED:
        timed = [index for index in timed if words.search(fields[index + 1])] or timed
    index = timed[0]
    return _Column(index, len(fields) - 1, units[index] or 1.0, fields[index + 1])


def _unit(heading: str, default: float = 1.0) -> float | None:
    """Return the seconds of the unit of a column; None where it holds no times."""
    if is_no_time(heading):
        return None
    unit = PRINTED_UNITS.get(heading.lower()) if _UNIT_ALONE.fullmatch(heading) else named_unit(heading)
    is_time = unit or _HEADER.search(heading) or _BARE.fullmatch(heading.strip()) or unit_of(None, heading)
    return (unit or default) if is_time else None

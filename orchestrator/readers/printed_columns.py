"""Times in columns that a header names, where labels come last, or where there are none. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from orchestrator.readers.printed_line import VALUE, Candidate, is_no_time, unit_of, word, words_of

# Columns of times in a row without a label: t_force, force_time, time_s.
_TIMED = re.compile(
    r"(?:t|time|wtime)_\w+|\w+_(?:t|time|wtime|sec|secs|seconds)|time|walltime|user|sys(?:tem)?|elapsed",
    re.IGNORECASE,
)
# Columns of times beside labels, in one word: `time` alone may be a share, as in gprof's profile.
_BESIDE_LABELS = re.compile(r"[a-z]+time", re.IGNORECASE)
_WITH_CALLED = re.compile(r"cum|incl", re.IGNORECASE)  # with the time of what is called
_LABELS = re.compile(r"\b(?:function|name|routine|region)\b", re.IGNORECASE)
_DECIMAL = re.compile(r"\d+\.\d*(?:[eE][-+]?\d+)?")
_NUMBER = re.compile(r"[+-]?\d[\d.]*(?:[eE][-+]?\d+)?(?:/\d+)?")  # calls in all / not recursive
_LINE = re.compile(r":\d+(?=\()")  # of a function in its file
_FEWEST = 2  # times in a row without a label
# Columns of times in rows without a label, between commas: what is simulated has other names.
_MEASURED = word("elapsed|duration|latency|wall|walltime|wtime|runtime")
_WALL = word("wall|walltime|elapsed|real")
# Times with the number of calls behind each, below a header of timers, as Trilinos prints them. On several
# processes they are the minimum, the mean and the maximum; on one there is one.
_OF_TIMERS = re.compile(r"\s*timers?\b(?!.*[-+]?\d)", re.IGNORECASE)
_COUNTED = re.compile(r"(?:\d[\d.]*(?:e[-+]?\d+)? \(\d[\d.e+]*\)\s*)+$")
_GAP = re.compile(r"\s{2,}|\t")  # between the names of columns, which may have several words


@dataclass(frozen=True)
class LabelledRows:
    """A header whose last column has labels: how many columns are before it, and which one is the time."""

    number: int
    index: int

    def of(self, line: str) -> Candidate | None:
        """Return the time in a row, if it is not zero."""
        fields = line.split(None, self.number)
        numbers, label = fields[: self.number], fields[self.number :]
        if not label or not all(map(_NUMBER.fullmatch, numbers)) or not re.search(r"[A-Za-z]", label[0]):
            return None
        value, name = numbers[self.index], label[0].strip()
        if not _DECIMAL.fullmatch(value) or not float(value) > 0:
            return None
        before, behind = (r"\S+[ \t]+" * n for n in (self.index, self.number - self.index - 1))
        return Candidate(
            callpath=_LINE.sub("", name if " " in name else name.rpartition("/")[2]).replace("->", " "),
            pattern=rf"^[ \t]*{before}(\S+)[ \t]+{behind}{_label(name)}[ \t]*$",
            value=float(value),
            line=line.strip(),
        )


def _label(name: str) -> str:
    """Return a pattern of a label, also in another version, folder or process of the program."""
    folder, short = ("", name) if " " in name else name.rpartition("/")[::2]
    parts = re.split(r"(:\d+(?=\()|0x[0-9a-f]+)", short)
    varied = [
        re.escape(part) if k % 2 == 0 else r":\d+" if part.startswith(":") else r"0x\w+"
        for k, part in enumerate(parts)
    ]
    return (r"\S*/" if folder else "") + "".join(varied)


def labelled_rows(line: str, above: LabelledRows | None) -> LabelledRows | None:
    """Return the table that a line begins, or goes on with; an empty line ends it."""
    if not line.strip():
        return None
    names = line.split()
    timed = [k for k, name in enumerate(names[:-1]) if _BESIDE_LABELS.fullmatch(name)]
    if len(names) < 3 or not timed or not _LABELS.search(names[-1]) or VALUE.search(line):
        return above
    index = next((k for k in timed if _WITH_CALLED.match(names[k])), timed[0])
    return LabelledRows(len(names) - 1, index)


@dataclass(frozen=True)
class CommaRows:
    """A header whose fields are apart by commas: how many, which one is the time, its unit and its name."""

    number: int
    index: int
    unit: float
    heading: str

    def of(self, line: str) -> Candidate | None:
        """Return the time in a row: one with a label, or one whose header says that it was measured."""
        fields = line.strip().split(",")
        if len(fields) != self.number or not _DECIMAL.fullmatch(fields[self.index].strip()):
            return None
        labels = [field.strip() if re.search(r"[A-Za-z]{2}", field) else "" for field in fields]
        if not any(labels) and not _MEASURED.search(self.heading):
            return None
        parts = [rf"\s*{re.escape(label)}\s*" if label else r"[^,\n]*" for label in labels]
        parts[self.index] = r"\s*([^,\s]+)\s*"
        return Candidate(
            callpath=words_of(" ".join(filter(None, labels)) or self.heading) or "time",
            pattern=f"^{','.join(parts)}$",
            scale=self.unit,
            value=float(fields[self.index]) * self.unit,
            line=line.strip(),
        )


def comma_rows(line: str, above: CommaRows | None) -> CommaRows | None:
    """Return the table that a line with commas begins, or goes on with; one without commas ends it."""
    names = [name.strip(' \t#"') for name in line.split(",")]
    if len(names) < _FEWEST:
        return None
    if not all(re.match(r"[A-Za-z]", name) for name in names) or VALUE.search(line):
        return above
    units = [None if is_no_time(name) else unit_of(None, name) for name in names]
    index = next((k for k, unit in enumerate(units) if unit is not None), None)
    return above if index is None else CommaRows(len(names), index, units[index] or 1.0, names[index])


def counted_rows(line: str, above: bool) -> bool:
    """Tell whether rows of timers with counts may follow a line; an empty line ends them."""
    return bool(line.strip()) and (above or bool(_OF_TIMERS.match(line)))


def counted_time(line: str) -> Candidate | None:
    """Return the time in a row such as ``Assembly  0.12 (3)``: of several that of the slowest process."""
    label, gap, numbers = line.strip().partition("  ")
    values = numbers.split(")")
    if not (gap and _COUNTED.match(numbers.lstrip())):
        return None
    return Candidate(
        callpath=label.replace("->", " "),
        pattern=rf"^\s*{re.escape(label)}\s{{2,}}(?:\S+ \(\S+\)\s+){{0,2}}(\S+) \(",
        value=float(values[min(2, len(values) - 2)].split()[0]),
        line=line.strip(),
        optional=True,
    )


def below_names(header: str, line: str) -> list[Candidate]:
    """Return the times in a row below a line with a name for each of its fields.

    Parameters
    ----------
    header
        The line above: some names are those of times, such as ``t_total t_force``.
    line
        As many fields, of which those are decimal numbers.
    """
    names, fields = (text.lstrip(" \t#%").split() for text in (header, line))
    timed = [k for k, name in enumerate(names) if _TIMED.fullmatch(name)]
    if len(names) != len(fields) or len(timed) < _FEWEST or VALUE.search(header):
        return []
    if not all(_DECIMAL.fullmatch(fields[k]) for k in timed):
        return []
    found = []
    for k in timed:
        before, behind = r"\S+[ \t]+" * k, r"[ \t]+\S+" * (len(fields) - k - 1)
        label = re.sub(r"^(?:t|time|wtime)_|_(?:t|time|wtime|sec|secs|seconds)$", "", names[k])
        found.append(
            Candidate(
                callpath=words_of(label) or "time",
                pattern=rf"^[ \t#%]*{before}({_DECIMAL.pattern}){behind}[ \t]*$",
                value=float(fields[k]),
                line=line.strip(),
            )
        )
    return found


def wall_below(header: str, found: Candidate) -> Candidate:
    """Return the wall time of a row with a label whose numbers have names in the line above.

    GROMACS prints ``Core t (s)   Wall t (s)   (%)`` above ``Time:   25.530   12.765   200.0``; what was
    found is the first number behind the label.
    """
    label, colon, rest = found.line.partition(":")
    names, numbers = _GAP.split(header.strip()), rest.split()
    index = next((k for k, name in enumerate(names) if _WALL.search(name)), 0)
    if not (colon and index and len(names) == len(numbers) and all(map(_DECIMAL.fullmatch, numbers))):
        return found
    before = r"\S+\s+" * index
    pattern = rf"^\s*{re.escape(label)}:\s*{before}(\S+)"
    return replace(found, pattern=pattern, value=float(numbers[index]) * found.scale)

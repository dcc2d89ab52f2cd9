"""The times in a line of what an unknown program prints: numbers with a unit, or words that say so. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from orchestrator.units import PRINTED_MINUTES, PRINTED_SECONDS, PRINTED_UNITS, printed_duration

_NUMBER = r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eEdD][+-]?\d+)?"
_GROUPED = rf"(?:[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?(?!,?\d)|{_NUMBER})"  # thousands, too
# Neither begins nor ends within a number: `0,5` and `1,2,3` are none that could be read.
VALUE = re.compile(
    rf"(?<!\d)(?<!\d[.,])(?<!\d[eEdD][+-])"
    rf"(?<![A-Za-z_])"
    rf"(?:({PRINTED_MINUTES})(?={PRINTED_SECONDS}\b)|({_GROUPED})(?=[mnuµ]?s\b))({PRINTED_SECONDS}|[mnuµ]s)\b"
    rf"|(?<![\w.+:/-])(?<!\d,)({_GROUPED})(?![\w.:/]|,\d|-\d)(?: ?\(?\[?([a-zµ]+)\b(?!/)\)?\]?)?"
)


def word(words: str) -> re.Pattern[str]:
    """Return a pattern of whole words, in names such as solve_time, too, which have several."""
    return re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE)


# Of flows and boxes there are walls, too: `wall distance: 0.5`, `wall-density = 0`.
_TIMED = word(
    r"time|elapsed|seconds|duration|wall(?=\W*$|[ _-](?:clock|time|avg|tot|total)\b)|walltime|wtime|runtime"
)
# Begins of such words within others, as in `ExecutionTime`; and what `time -p` prints.
_WITHIN = re.compile(r"(?<=[A-Za-z])(?=(?:Time|Clock|Elapsed|Wall)(?![a-z]))")
_OF_TIME = re.compile(r"\s*(?:real|user|sys)\s+")
_UNIT_IN_LABEL = re.compile(
    r"[(\[]\s*(?:in\s+)?([a-zµ]+)\s*[)\]]|(?:\bin |_)(ms|us|µs|ns|[mµn]?sec|[a-z]*seconds)(?=\W*$)"
)
# What has a unit of time, or speaks of one, and is none: rates (I/O and `time/rank` are none), dates, sizes
# of steps, products, what is simulated in femtoseconds, the most of something at any time, and times to come.
_OTHER_WORDS = word(
    "per|(?:bit|data|frame)?rates?|date|[fp]s|granularity|resolution|timeout|time limit|any time"
    "|will (?:take|need|last)|estimated|expected|eta|time (?:left|remaining)|remaining time"
)
# Before a number that bounds a time, or that a clock counts by: `completed in less than 1 second`.
_BOUND = re.compile(
    r"(?:\b(?:(?:less|more|longer|shorter) than|at (?:most|least)|up to|counts? as|every)|<=?)\s*$",
    re.IGNORECASE,
)
# What a clock shows when a part begins: `Starting SCF solution at 1.2s`. What ends then took so long.
_MOMENT = re.compile(r"^(?!.*\b(?:finish|end|done|complet|exit|stop)).*\bat\s*$", re.IGNORECASE)
_NO_RATE = r"\d|ranks?\b|proc(?:ess)?\b"  # behind a slash
_OTHER = re.compile(
    rf"(?<!\b[iw])/(?!{_NO_RATE})|/(?!o\b|{_NO_RATE})"
    r"|flop|%|stamp|time[ _]?step|\w \* |\b(mon|tue|wed|thu|fri|sat|sun)\b",
    re.IGNORECASE,
)
_DEVIATIONS, _MEANS = "std|stdev|stddev|deviation|variance", "avg|ave|average|mean"
_DEVIATION, MEAN = word(_DEVIATIONS), word(_MEANS)
# Names of columns that follow, which are no part of a label's: `Setup time: ave, stddev, min, max (sec)`.
_STATISTIC = rf"(?:{_DEVIATIONS}|{_MEANS}|median|min|max|minimum|maximum)"
_STATISTICS = word(rf"{_STATISTIC}(?:\s*[,/|]\s*{_STATISTIC})+")
# Before three numbers, the last of which is that of the slowest process: `[min...avg...max]: 1 ... 2 ... 3`.
_SPREAD = re.compile(r"\bmin *\.\.+ *(?:avg|mean) *\.\.+ *max\b\W*$", re.IGNORECASE)
# Between a number and the one that it belongs to the label of: `Time for step 63 is 0.5`.
_OF_LABEL = re.compile(r"[^,;|]*(?:[:=]|\b(?:is|was|took))\s*", re.IGNORECASE)
_CPU, _WALL = re.compile(r" *CPU\b"), re.compile(r" *WALL\b")
_CPU_FIRST, _THEN_WALL = re.compile(r"\bcpu\W*$", re.IGNORECASE), re.compile(r"\W*wall\W*", re.IGNORECASE)
# Behind a whole number that counts what a time is that of, and behind a rate: `Time: 1 CPUs 0.112 s/step`.
_COUNTED = re.compile(
    r"\s*(?:cpu|core|thread|rank|proc|processor|process|node|gpu|pe|task|step|iteration|repetition|run|call)"
    r"(?:e?s)?\b",
    re.IGNORECASE,
)
_OF_RATE = re.compile(rf" ?[a-zµ]+/(?!{_NO_RATE})")
# Between a duration of several parts and the same in seconds: `0 minutes 4 seconds (4.585 seconds)`.
_AGAIN = re.compile(r"\s*([(\[=])\s*")
# Before a duration such as 0:00.12, as GNU time prints it; `Start time: 11:30:04` is none.
_BEFORE_CLOCK = word("elapsed|wall|duration|took|runtime|(?:run|execution|total) time")
# A number before its label: `1.25 seconds time elapsed`, `1.25 seconds (1.2 k allocations: 1.5 KiB)`.
_AHEAD = re.compile(
    rf"\s*(?P<number>\d+\.\d+)\s+(?P<unit>{'|'.join(PRINTED_UNITS)})\s+(?P<label>[A-Za-z][A-Za-z ]*|\()"
)
# Of what is simulated, and of times that are mostly printed in seconds, too.
_OTHER_UNITS = ("fs", "ps", "h", "hr", "hrs", "hour", "hours", "day", "days")
# Beside these what is simulated stands: `Step 5 time 0.016 timestep 4.00E-03`, `time = 0.0022, tstop = 0.6`.
_SIMULATED = re.compile(
    r"\b(?:dt|cycle|cycles|step|steps|t_?(?:stop|end|final))\s*=|\btime[ _]?step\s*[:=]?\s*\d*\.\d",
    re.IGNORECASE,
)
_END = r'(?=[\s;)\]}"]|,(?!\d)|$)'  # of a value: a comma before a digit belongs to the number


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A time in an output: an item of ``program.output``.

    ``value`` is what it yields there, in seconds; ``line`` is the line that it was found in. ``thousands`` is
    what separates groups of three digits there. ``file`` is the output: ``stdout``, or a pattern of files.
    ``optional``: other runs may lack it.
    """

    callpath: str
    pattern: str
    scale: float = 1.0
    aggregate: str = "last"
    thousands: str | None = None
    value: float
    line: str
    file: str = "stdout"
    optional: bool = False


def of_line(line: str) -> Iterator[Candidate]:
    """Yield the times in a line: numbers with a label of their own."""
    if _SIMULATED.search(line):
        return
    *words, last = line.rsplit(maxsplit=1) or [""]
    if words and ":" in last and _BEFORE_CLOCK.search(words[0]):
        label, seconds = line[: line.rindex(last)], printed_duration(last)
        if seconds is not None and not is_no_time(label):
            pattern = rf"^{_pattern(label)}(\S+?){_END}"
            yield Candidate(callpath=words_of(label), pattern=pattern, value=seconds, line=line.strip())
            return
    if (ahead := _AHEAD.match(line)) and not is_no_time(ahead["label"]):
        scale = PRINTED_UNITS[ahead["unit"]]
        pattern = rf"^\s*(\S+)\s+{ahead['unit']}\s+{_pattern(ahead['label'].rstrip())}"
        value = float(ahead["number"]) * scale
        name = words_of(ahead["label"])
        yield Candidate(callpath=name, pattern=pattern, scale=scale, value=value, line=line.strip())
        return
    end, repeated = 0, False
    matches = list(VALUE.finditer(line))
    for match, following in zip_longest(matches, matches[1:]):
        if repeated or (following and _is_of_label(line, match, following)):
            repeated = False
            continue
        if _is_count(line, match):
            continue
        begin, label, end = end, line[end : match.start()], _end(match)
        unit = unit_of(_unit_behind(match), label)
        if unit is None or not re.search(r"[A-Za-z]", label) or is_no_time(label):
            continue
        if len(matches) == 3 and _SPREAD.search(label):
            yield candidate(line, matches[-1], unit)
            return
        if following and _CPU.match(line, match.end()) and _WALL.match(line, following.end()):
            wall = candidate(line, following, PRINTED_UNITS.get(_unit_behind(following), unit))
            # A time alone stands before CPU: `h_psi :` and `h_psi:calbec :` are two clocks.
            behind = r"[\d.dhmsuµ \t]+?CPU\s*(.+?)\s*WALL"
            before = line[: match.start()]
            # The numbers of a clock's name are the same in every run: `hinit0`, `init_us_2`.
            is_clock = re.fullmatch(r"\s*([A-Za-z]\w*)\s*:\s*", before)
            named = rf"\s*{is_clock[1]}\s*:\s*" if is_clock else _pattern(before)
            yield replace(
                wall,
                callpath=is_clock[1] if is_clock else words_of(before),
                pattern=f"^{named}{behind}",
                scale=1.0 if _unit_behind(following) else unit,
            )
            return
        if following and _CPU_FIRST.search(label) and _THEN_WALL.fullmatch(line, end, following.start()):
            wall = candidate(line, following, PRINTED_UNITS.get(_unit_behind(following), unit))
            yield replace(wall, callpath=words_of(_CPU_FIRST.sub("", label)))
            repeated, end = True, _end(following)
            continue
        if following and (opened := _AGAIN.fullmatch(line, match.end(), following.start())):
            finer = candidate(line, following, PRINTED_UNITS.get(_unit_behind(following), 0.0))
            if match[1] and abs(finer.value - candidate(line, match, unit).value) <= 1:
                before, number = line[: match.start()], _captured(line, following, 1.0)[0]
                yield replace(
                    finer,
                    callpath=words_of(line[begin : match.start()]) or words_of(before),
                    pattern=rf"^{_pattern(before)}.*?{re.escape(opened[1])}\s*{number}",
                )
                repeated, end = True, _end(following)
                continue
        yield candidate(line, match, unit, begin)


def is_no_time(label: str) -> bool:
    """Tell whether a label is that of something else; of `ave, stddev, min, max` the first is a time."""
    return bool(
        _BOUND.search(label)
        or _MOMENT.search(label)
        or _OTHER.search(label)
        or _OTHER_WORDS.search(label)
        or (_DEVIATION.search(label) and not MEAN.search(label))
    )


def _is_of_label(line: str, match: re.Match[str], following: re.Match[str]) -> bool:
    """Tell whether a whole number belongs to the label of the one behind it: ``Time of step 63 is 0.5``."""
    if _unit_behind(match) in PRINTED_UNITS or not re.fullmatch(r"\d+", match[_group(match)]):
        return False
    if re.search(r"[:=]\s*$", line[: match.start()]):
        return False
    return bool(_OF_LABEL.fullmatch(line, match.end(_group(match)), following.start()))


def _is_count(line: str, match: re.Match[str]) -> bool:
    """Tell whether a number is a rate, or counts what a time is that of, such as processes."""
    group = _group(match)
    end = match.end(group)
    is_whole = re.fullmatch(r"\d+", match[group])
    return bool((is_whole and _COUNTED.match(line, end)) or _OF_RATE.match(line, end))


def _end(match: re.Match[str]) -> int:
    """Return where a number and its unit of time end; other words behind it belong to what follows."""
    return match.end() if _unit_behind(match) in PRINTED_UNITS else match.end(_group(match))


def _group(match: re.Match[str]) -> int:
    """Return the group of `VALUE` that has the number, or the duration of several parts."""
    return next(group for group in (1, 2, 4) if match[group])


def _unit_behind(match: re.Match[str]) -> str:
    return (match[3] or match[5] or "").strip()


def candidate(
    line: str, match: re.Match[str], unit: float, begin: int = 0, name: str = "", is_row: bool = False
) -> Candidate:
    """Return the time that was found in a line, whose own label begins somewhere in it.

    ``name``: what the line begins with, if that is a name: unlike a label it is the same in every run, with
    its numbers, and is the call path as it is. ``is_row``: of a table, where nothing but numbers stands
    between the name and the time, and which other runs may lack.
    """
    label = line[: match.start()]
    rest = label.strip()[len(name) :].lstrip()
    pattern = rf"\s*{re.escape(name)}\s+{_pattern(f'{rest} ')}" if name else _pattern(label)
    if is_row:  # else the row of `PME` would match that of `PME wait`, too, and take another column
        pattern = pattern.replace(r"\S+", r"[-+.\d]\S*")
    number = match[_group(match)]
    captured, scale = _captured(line, match, unit)
    seconds = printed_duration(number)
    if seconds is None:
        seconds = float(re.sub("[dD]", "e", number.replace(",", "")))
    return Candidate(
        callpath=name or words_of(label[begin:]) or words_of(label),
        pattern=f"^{pattern}{captured}",
        scale=scale,
        optional=is_row,
        thousands="," if "," in number else None,
        value=seconds * unit,
        line=line.strip(),
    )


def _captured(line: str, match: re.Match[str], unit: float) -> tuple[str, float]:
    """Return a pattern of a number and its scale; it takes the unit, too, where that may change.

    Programs that print ``850.1ms`` or ``850.1 ms`` print ``1.2s`` or ``1.2 s`` of a longer run.
    """
    number, attached, behind = match[_group(match)], match[3], match[5]
    if attached and " " in number + attached:
        return f"(.+?){re.escape(attached)}", unit
    if attached and not re.match(_END, line[match.end() :]):
        return rf"(\S+?){attached}", unit
    if attached:
        return rf"(\S+?){_END}", 1.0
    if PRINTED_UNITS.get(behind, 1.0) < 1 and line.startswith(f" {behind}", match.end(4)):
        return r"(\S+ [a-zµ]+)", 1.0
    return rf"(\S+?){_END}", unit


def has_unit(label: str) -> bool:
    """Tell whether a unit of time may stand in a label: in parentheses, or as ``in ms`` at its end."""
    return bool(_UNIT_IN_LABEL.search(label))


def unit_of(after: str | None, label: str) -> float | None:
    """Return the seconds of a unit after the number or in the label; 1 where only words speak of a time."""
    if after and after in PRINTED_UNITS:
        return PRINTED_UNITS[after]
    if after in _OTHER_UNITS:
        return None
    if (named := named_unit(label)) is not None:
        return named
    is_timed = _OF_TIME.fullmatch(label) or _TIMED.search(_WITHIN.sub(" ", label))
    return 1.0 if is_timed else None


def named_unit(label: str) -> float | None:
    """Return the seconds of the unit that a label names, if it does."""
    words = (found[1] or found[2] for found in _UNIT_IN_LABEL.finditer(label))
    return next((PRINTED_UNITS[word] for word in reversed([*words]) if word in PRINTED_UNITS), None)


def printed(item: Candidate) -> str:
    """Return the number of a candidate as its line has it; empty where its pattern does not match there."""
    found = re.search(item.pattern, item.line)
    return found[1] if found else ""


def tick(item: Candidate) -> float:
    """Return the seconds of the last digit that a time was printed with; 0 where that is not known."""
    digits = re.fullmatch(r"(?:\d+:)*\d+(?:\.(\d*))? ?([a-zµ]*)", printed(item))
    return PRINTED_UNITS.get(digits[2], item.scale) * 10.0 ** -len(digits[1] or "") if digits else 0.0


def _pattern(label: str) -> str:
    """Return a pattern of a label: numbers and spaces may differ in other runs."""
    parts = [part for part in re.split(rf"({_NUMBER}|\s+)", label) if part]
    return "".join(_part(*three) for three in zip(["", *parts], parts, [*parts[1:], "0"], strict=False))


def _part(before: str, text: str, after: str) -> str:
    if text.isspace():
        # Else `MatMult` and any number would match `MatMultAdd`, and two numbers one.
        is_apart = re.search(r"\w$", before) and re.fullmatch(_NUMBER, after)
        return r"\s+" if is_apart else r"\s*"
    return r"\S+" if re.fullmatch(_NUMBER, text) else re.escape(text)


def words_of(label: str) -> str:
    """Return what a label names, without numbers, units and words such as ``time``: a name of a call path."""
    words = _STATISTICS.sub(" ", re.sub(r"[(\[].*?[)\]]", " ", label))
    words = re.sub(rf"{_NUMBER}|[^\w &+/-]", " ", _WITHIN.sub(" ", words))
    words = re.sub(
        r"\b(time|elapsed|in|of|took|is|was|wall|clock|seconds)\b", " ", words, flags=re.IGNORECASE
    )
    words = re.sub(r"^\W*(to|for)\b|^\s*-+ ", " ", words)
    return " ".join(words.replace("->", " ").split())[:60].rstrip(" /")

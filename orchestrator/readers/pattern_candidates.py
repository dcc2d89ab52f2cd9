"""Where times may stand in what an unknown program prints: candidates for patterns. Pure."""

from __future__ import annotations

import fnmatch
import glob
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from orchestrator.readers.printed_columns import (
    below_names,
    comma_rows,
    counted_rows,
    counted_time,
    labelled_rows,
    wall_below,
)
from orchestrator.readers.printed_line import VALUE, Candidate, of_line, printed, tick, word
from orchestrator.readers.printed_table import caption_of, is_sized, of_whole_row, table_of, told_apart

_SO_FAR = re.compile(r"\b(so far|up to now|until now|cumulative|accumulated)\b", re.IGNORECASE)
_CLOCK = re.compile(r"\s*wall[ -]?clock\W*\d", re.IGNORECASE)  # what a clock shows, not what a part took
_WHOLE = {"total", "all", "overall", "main", "run", "program", "execution", "simulation"}
_OF_WHOLE = {"for", "of", "the", "test", "benchmark"}  # what may follow these: `Total time for test`
# Parts of a run, however long they take: what stands beside them in an output is beside them in the run, too.
_PHASE = word(
    "generat(?:e|ed|ing|ion)|init|initiali[sz](?:e|ed|ing|ation)|set ?up|start ?up|warm ?up"
    "|prepar(?:e|ing|ation)|load|loaded|loading|read|reading|input|build|building|mesh|meshing"
    "|partitioning|alloc|allocation"
    "|output|write|writing|checkpoint|checkpointing|finali[sz](?:e|ing|ation)|teardown"
)
_SOME = re.compile(r"\([a-z]+(?:, [a-z]+)+\)", re.IGNORECASE)  # of several parts: `Main (parse, allocate)`
MOST = 40
_MANY = 5
_LONGER = 1.5  # times its caller: a part with a time that does not include another's
_MERE_TIME = re.compile(r"time\W*\d\S*", re.IGNORECASE)
# A number with a decimal comma, as locales such as de_DE print it; no list, and no groups of digits.
_DECIMAL_COMMA = re.compile(r"(?<![\w.,])(\d+),(\d+)(?![\d.,])")
_SHARE = 0.1  # of the time of a whole run, below which a time is hardly that of the run


def times_in(outputs: Mapping[str, str], elapsed: float = 0.0, cores: int = 1) -> tuple[Candidate, ...]:
    """Return candidates for times in what a run printed, or else in the other output that has most.

    Parameters
    ----------
    outputs
        Texts by name: ``stdout``, ``stderr`` and files.
    elapsed, cores
        As in `times`.
    """
    found = {name: times(text, elapsed, cores) for name, text in outputs.items()}
    best = max(found, key=lambda name: (bool(found[name]) and name == "stdout", len(found[name])), default="")
    return tuple(replace(item, file=_file(best, outputs)) for item in found.get(best, ()))


def _file(name: str, names: Iterable[str]) -> str:
    """Return a glob pattern of a file: its numbers (a date, a process, a size) differ from run to run."""
    pattern = "*".join(map(glob.escape, re.split(r"\d+", name)))
    return pattern if fnmatch.filter(names, pattern) == [name] else glob.escape(name)


def times(text: str, elapsed: float = 0.0, cores: int = 1) -> tuple[Candidate, ...]:
    """Return candidates for times in a text, at most `MOST`, the one of the whole run first.

    A number is a time if a unit follows it, or if the words before it say so, or the header of a table above
    it, or a line above it that names every field. Several in a line need a label each, and wall time stands
    behind CPU time. Where a label is repeated, its values are added, unless they add up already: the time so
    far, after every step. A line below another one that begins farther right, and is no longer than it, is a
    part of it; but where a row of a table is much longer than that which it is a part of, the times are those
    of each alone. Commas are decimal where nothing else is found.

    Parameters
    ----------
    text
        What a run printed.
    elapsed
        Seconds that the whole run took: a tiny share of them is that of the run only if its label says so and
        there is no larger one. Beside other times, that of a phase such as ``Generate Time`` never is.
        Starting a program may take longer than the program. What is longer than all of the run is left out,
        if anything else is found: a bound, a date, a size in a table. What is called the time of the run
        stays, as its unit may be another.
    cores
        On which it ran: CPU time may be that many times longer.
    """
    longest = cores * elapsed if elapsed > 0 else math.inf
    seen = _seen(text)
    return (
        _ranked(seen, elapsed, longest)
        or _with_decimal_commas(text, elapsed, longest)
        or _ranked(seen, elapsed, math.inf)
    )


def _with_decimal_commas(text: str, elapsed: float, longest: float) -> tuple[Candidate, ...]:
    pointed = _DECIMAL_COMMA.sub(r"\1.\2", text)
    found = () if pointed == text else _ranked(_seen(pointed), elapsed, longest)
    return tuple(replace(item, thousands=".") for item in found)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """The times in a text by their patterns, in the order of its lines."""

    text: str
    items: Mapping[str, Sequence[Candidate]]
    behind: Mapping[str, int]  # of times in tables, how many numbers are behind them
    exclusive: Mapping[str, Sequence[bool]]  # and whether each is that of a part alone
    named: Collection[str]  # patterns of columns with a name, which no other line may match
    callers: Mapping[str, str]  # what others are a part of


def _seen(text: str) -> _Seen:
    parts, totals = defaultdict[str, list[Candidate]](list), defaultdict[str, list[Candidate]](list)
    behind, named, blocks = dict[str, int](), set[str](), [list[_Line]()]
    exclusive = defaultdict[str, list[bool]](list)
    table, labelled, commas, counted, above, caption = None, None, None, False, "", ""
    for line in text.splitlines():
        counted = counted_rows(line, counted)
        if counted and (of_timer := counted_time(line)) is not None:
            candidates = [of_timer]
        else:
            candidates = [wall_below(above, item) for item in of_line(line)]
        table = table and table.resolved(line)
        if not candidates and table is not None and (row := table.of(line)) is not None:
            candidates = [row.time]
            behind[row.time.pattern] = row.behind
            exclusive[row.time.pattern].append(row.is_exclusive)
        if not candidates and commas is not None and (between_commas := commas.of(line)) is not None:
            candidates = [between_commas]
        commas = comma_rows(line, commas)
        labelled = labelled_rows(line, labelled)
        if candidates:
            blocks[-1].append(_line(line, candidates[0].pattern))
        elif labelled is not None and (labelled_time := labelled.of(line)) is not None:
            parts[labelled_time.pattern].append(labelled_time)
        else:
            for column in below_names(above, line):
                parts[column.pattern].append(column)
                named.add(column.pattern)
        if not candidates:
            blocks.append([])
        for candidate in candidates:
            of_all = totals if _names_the_whole(candidate) and _follows_a_number(candidate) else parts
            of_all[candidate.pattern].append(candidate)
        table = table_of(line, above, caption, table, bool(candidates))
        above, caption = line, caption_of(line, caption)
    parts |= totals if len(totals) == 1 else {}  # beside several parts it is the time so far
    callers = {part: caller for block in blocks for part, caller in _outline(block)}
    return _Seen(text=text, items=parts, behind=behind, exclusive=exclusive, named=named, callers=callers)


def _ranked(seen: _Seen, elapsed: float, longest: float) -> tuple[Candidate, ...]:
    """Return the times no part of which is longer than some seconds, that of the whole run first."""
    together = {pattern: _together(pattern, seen, elapsed, longest) for pattern in seen.items}
    ids = {item.pattern: pattern for pattern, item in together.items() if item is not None}
    found = _plausible([item for item in together.values() if item is not None], elapsed)
    least = _SHARE * elapsed
    largest = max((item.value for item in found), default=0.0)
    least_of_whole = least if largest >= least else 0.0
    ranked = sorted(found, key=lambda item: _rank(item, least_of_whole, elapsed))[:MOST]
    if _is_exclusive(seen, ranked, ids):
        return tuple(_with_paths(ranked, False, [""] * len(ranked), ids))
    is_phase = len(ranked) > 1 and bool(_PHASE.search(ranked[0].callpath))
    whole = bool(ranked) and (_names_the_whole(ranked[0]) or (ranked[0].value >= least and not is_phase))
    callers = [seen.callers.get(ids[item.pattern], "") for item in ranked]
    return tuple(_with_paths(ranked, whole, callers, ids))


def _is_exclusive(seen: _Seen, items: Sequence[Candidate], ids: Mapping[str, str]) -> bool:
    """Tell whether rows have times without those of what is called, as of profilers: parts take longer."""
    values = {ids[item.pattern]: item.value for item in items if ids[item.pattern] in seen.behind}
    pairs = [(part, caller) for part, caller in seen.callers.items() if part in values and caller in values]
    return any(values[part] > _LONGER * values[caller] for part, caller in pairs)


def _together(pattern: str, seen: _Seen, elapsed: float, longest: float) -> Candidate | None:
    """Return what the lines with a pattern say together; None where that is no time of the run."""
    items = seen.items[pattern]
    if pattern in seen.named and len(re.findall(pattern, seen.text, re.MULTILINE)) != 1:
        return None
    if any(item.value < 0 for item in items):
        return None
    whole_run = bool(items[0].callpath) and _names_the_whole(items[0])
    if not whole_run and any(item.value - tick(item) > longest for item in items):
        return None
    if pattern not in seen.behind:
        return _merged(items, elapsed)
    if len({*seen.exclusive[pattern]}) > 1:
        return _with_all_it_calls(pattern, seen)
    # Of a row per size the last, which is the largest.
    item = items[-1] if is_sized(items[-1]) else _merged(items, elapsed)
    return told_apart(item, len(items), seen.behind[pattern], seen.text)


def _with_all_it_calls(pattern: str, seen: _Seen) -> Candidate | None:
    """Return the inclusive of the times that several tables have of a part; None where nothing tells them.

    It is the largest one, also where further tables have the times in regions of the program, which are a
    part of those in the first. Profilers print other tables with the same names, of memory, say: in other
    runs, if not in this one.
    """
    items = seen.items[pattern]
    inclusive = [item for item, alone in zip(items, seen.exclusive[pattern], strict=True) if not alone]
    if any(item.value > inclusive[0].value for item in items):  # those of steps, or the sum of all others
        return None
    is_last = len(inclusive) == 1 and not seen.exclusive[pattern][-1]
    aggregate = "last" if is_last else "max"  # of a very long output the last is read, and no largest one
    item = of_whole_row(replace(inclusive[0], aggregate=aggregate), seen.behind[pattern])
    return item if len(re.findall(item.pattern, seen.text, re.MULTILINE)) == len(items) else None


def _plausible(items: Sequence[Candidate], elapsed: float) -> Sequence[Candidate]:
    """Leave out what is simulated: longer than the whole run, or a mere time beside that of the run.

    Beside other times, 0 without a decimal is a setting, or a clock that counts whole seconds.
    """
    if any(item.value for item in items):
        items = [item for item in items if item.value or "." in printed(item)]
    possible = [item for item in items if item.value <= elapsed]
    if any(map(_names_the_whole, possible)):
        items = possible
    if not all(map(_is_mere_time, filter(_names_the_whole, items))):
        items = [item for item in items if not (_names_the_whole(item) and _is_mere_time(item))]
    return items


@dataclass(frozen=True)
class _Line:
    """A line with a time: where its label begins and ends, and the pattern of its time."""

    begin: int
    end: int
    pattern: str


def _line(line: str, pattern: str) -> _Line:
    line = line.expandtabs()
    number = VALUE.search(line)
    label = line[: number.start() if number else None].rstrip(" .:=|")
    return _Line(len(label) - len(label.lstrip(" *")), len(label), pattern)  # `*` marks some rows


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


def _merged(items: Sequence[Candidate], elapsed: float) -> Candidate:
    if len(items) == 1:
        return items[0]
    thousands = next((item.thousands for item in items if item.thousands), None)
    values = [item.value for item in items]
    line = items[0].line
    if _SO_FAR.search(line) or _is_so_far(values, elapsed, enough=2 if _CLOCK.match(line) else _MANY):
        return replace(items[-1], thousands=thousands)
    return replace(items[0], aggregate="sum", thousands=thousands, value=sum(values))


def _is_so_far(values: Sequence[float], elapsed: float, enough: int) -> bool:
    """Whether values are the time so far, of which the last is the sum of all.

    They never fall, and either their sum is more than the whole run took, or there are so many (``enough``)
    that times of steps would hardly be in that order by chance.
    """
    rises = values[0] < values[-1] and all(a <= b for a, b in pairwise(values))
    return rises and (0 < elapsed < sum(values) or len(values) >= enough)


def _names_the_whole(item: Candidate) -> bool:
    words = set(item.callpath.lower().split())
    return words - (_OF_WHOLE if words & _WHOLE else set()) <= _WHOLE and not _SOME.search(item.line)


def _is_mere_time(item: Candidate) -> bool:
    """Whether a line has only that word and a number: beside `Wall clock` this is what was simulated."""
    return bool(_MERE_TIME.fullmatch(item.line))


def _follows_a_number(item: Candidate) -> bool:
    return r"\S+" in item.pattern.partition("(")[0]


def _rank(item: Candidate, least: float, elapsed: float) -> tuple[bool, bool, bool, float]:
    """Return what sorts a time of the whole run first, if it takes long enough, then by length.

    What is longer than the run comes last: it is CPU time, or that of several tasks at once. A sum of times
    without a name, one below each heading say, comes behind a named time of the run, though it may be longer.
    """
    # Of two times of the run, one with a digit less may seem to be longer.
    whole = _names_the_whole(item) and item.value >= least
    unnamed = whole and not item.callpath and item.aggregate == "sum"
    return (not whole, unnamed, 0 < elapsed < item.value - tick(item), tick(item) / 2 - item.value)


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

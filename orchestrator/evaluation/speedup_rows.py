"""Tables of the comparison of speedups: a contender per line, a program per column, as the paper's 1 to 6."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.evaluation.speedup_contenders import contender
from orchestrator.evaluation.speedup_study import Row


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its title."""

    title: str
    lines: tuple[tuple[str, ...], ...]
    """The header first."""


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table per machine, scaling and number of levels, in the order of rows.

    A cell is the root mean squared error of speedups, and in parentheses that of relative errors. Where there
    are several cut-offs, a contender has a line for each.
    """
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["machine"], row["scaling"], row["levels"]), []).append(row)
    return [Table(_title(*key), tuple(_lines(members))) for key, members in groups.items()]


def _title(machine: str, scaling: str, levels: int) -> str:
    several = ", several processes per node" if levels > 1 else ""
    return f"{machine}, {scaling} scaling{several}"


def _lines(rows: Sequence[Row]) -> Iterable[tuple[str, ...]]:
    programs = list(dict.fromkeys(row["program"] for row in rows))
    cutoffs = {row["program"]: _cutoffs(rows, row["program"]) for row in rows}
    several = max(len(found) for found in cutoffs.values()) > 1
    cells = {
        (
            row["contender"],
            cutoffs[row["program"]].index((row["cutoff"], row["largest"])),
            row["program"],
        ): row
        for row in rows
    }
    yield ("model", *(("c_f, w_f/w_max",) if several else ()), *programs)
    for name in dict.fromkeys(row["contender"] for row in rows):
        for k in range(max(map(len, cutoffs.values()))):
            found = [cells.get((name, k, program)) for program in programs]
            some = next((row for row in found if row is not None), None)
            if some is not None:
                which = (f"{some['cutoff']:g}, {some['size_share']:.2g}",) if several else ()
                yield (contender(name).text, *which, *map(_cell, found))


def _cutoffs(rows: Sequence[Row], program: str) -> list[tuple[float, float]]:
    return list(dict.fromkeys((row["cutoff"], row["largest"]) for row in rows if row["program"] == program))


def _cell(row: Row | None) -> str:
    if row is None or row["rmse"] is None or row["relative_rmse"] is None:
        return "-"
    return f"{_short(row['rmse'])} ({_short(row['relative_rmse'])})"


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.2g}"


def text(rows: Sequence[Row]) -> str:
    """Return all tables as aligned text, and why contenders failed."""
    parts = []
    for table in tables(rows):
        widths = [max(map(len, column)) for column in zip(*table.lines, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if k == 0 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in table.lines
        ]
        parts.append("\n".join([f"RMSE of speedups (relative): {table.title}", *lines]))
    return "\n\n".join([*parts, *failures(rows)])


def failures(rows: Sequence[Row]) -> list[str]:
    """Return a sentence per contender and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["failure"] is not None:
            where = f"{row['program']} ({_title(row['machine'], row['scaling'], row['levels'])})"
            places = found.setdefault((row["contender"], row["failure"]), [])
            if where not in places:
                places.append(where)
    return [f"no model: {name}, {'; '.join(places)}: {reason}" for (name, reason), places in found.items()]

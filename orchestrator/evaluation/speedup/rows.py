"""Tables of the comparison of speedups: a contender per line, a program per column, as the paper's 1 to 6."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.evaluation.aligned import aligned
from orchestrator.evaluation.speedup.contenders import contender
from orchestrator.evaluation.speedup.draws import Cell, Quantity, Setup, by_setup, cells, varied
from orchestrator.evaluation.speedup.study import Row


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its title."""

    title: str
    lines: tuple[tuple[str, ...], ...]
    """The header first."""


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table per machine, scaling and number of levels, in the order of rows.

    A cell is the root mean squared error of speedups, and in parentheses that of relative errors: medians of
    several draws, with the smallest and the largest relative one. Where there are several cut-offs, a
    contender has a line for each.
    """
    return [Table(setup.title, tuple(_lines(known))) for setup, known in by_setup(cells(rows)).items()]


def _lines(known: Sequence[Cell]) -> Iterable[tuple[str, ...]]:
    programs = list(dict.fromkeys(cell.program for cell in known))
    cutoffs = {program: _cutoffs(known, program) for program in programs}
    several = max(len(found) for found in cutoffs.values()) > 1
    placed = {
        (cell.contender, cutoffs[cell.program].index(_cutoff(cell)), cell.program): cell for cell in known
    }
    yield ("model", *(("c_f, w_f/w_max",) if several else ()), *programs)
    for name in dict.fromkeys(cell.contender for cell in known):
        for k in range(max(map(len, cutoffs.values()))):
            found = [placed.get((name, k, program)) for program in programs]
            some = next((cell for cell in found if cell is not None), None)
            if some is not None:
                which = (f"{some.cutoff:g}, {some.size_share:.2g}",) if several else ()
                yield (contender(name).text, *which, *map(_text, found))


def _cutoffs(known: Sequence[Cell], program: str) -> list[tuple[float, float, float]]:
    return list(dict.fromkeys(_cutoff(cell) for cell in known if cell.program == program))


def _cutoff(cell: Cell) -> tuple[float, float, float]:
    return cell.cutoff, cell.size_share, cell.beyond


def _text(cell: Cell | None) -> str:
    if cell is None or cell.rmse is None or cell.relative_rmse is None:
        return "-"
    low, middle, high = (f"{error or 0.0:.2g}" for error in (cell.low, cell.relative_rmse, cell.high))
    relative = f"{middle}, {low} to {high}" if low != high else _short(cell.relative_rmse)
    return f"{_short(cell.rmse)} ({relative})"


def sensitivity(rows: Sequence[Row]) -> list[Table]:
    """Return a table per machine, scaling and number of levels: relative errors over c_f and w_f / w_max.

    A line is a value of one of the two, a column a contender; its numbers are medians over draws, one per
    program.
    """
    found = []
    for setup, known in by_setup(cells(rows)).items():
        lines = [*_varied(known, "cutoff", "c_f"), *_varied(known, "size_share", "w_f/w_max")]
        names = [contender(name).text for name in dict.fromkeys(cell.contender for cell in known)]
        programs = ", ".join(dict.fromkeys(cell.program for cell in known))
        title = f"{setup.title}, relative errors of {programs}"
        if lines:
            found.append(Table(title, (("fitted up to", *names), *lines)))
    return found


def _varied(known: Sequence[Cell], quantity: Quantity, name: str) -> Iterable[tuple[str, ...]]:
    placed = {
        (round(getattr(cell, quantity), 6), cell.contender, cell.program): cell.relative_rmse
        for cell in varied(known, quantity)
    }
    contenders = list(dict.fromkeys(cell.contender for cell in known))
    programs = list(dict.fromkeys(cell.program for cell in known))
    for value in sorted({value for value, _, _ in placed}):
        columns = [[placed.get((value, one, program)) for program in programs] for one in contenders]
        texts = (
            ", ".join("-" if error is None else f"{error:.2f}" for error in column) for column in columns
        )
        yield (f"{name} = {value:g}", *texts)


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.2g}"


def text(rows: Sequence[Row]) -> str:
    """Return all tables as aligned text, and why contenders failed."""
    parts = []
    for table in tables(rows):
        parts.append("\n".join([f"RMSE of speedups (relative): {table.title}", *aligned(table.lines)]))
    return "\n\n".join([*parts, *failures(rows)])


def failures(rows: Sequence[Row]) -> list[str]:
    """Return a sentence per contender and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["failure"] is not None:
            setup = Setup(machine=row["machine"], scaling=row["scaling"], levels=row["levels"])
            where = f"{row['program']} ({setup.title})"
            places = found.setdefault((row["contender"], row["failure"]), [])
            if where not in places:
                places.append(where)
    return [f"no model: {name}, {'; '.join(places)}: {reason}" for (name, reason), places in found.items()]

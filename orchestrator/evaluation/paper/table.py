"""The paper's evaluation as a table, with the published figures, and as figure 5: 3 x 4 panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from orchestrator.evaluation.panels import empty, legend_below, save
from orchestrator.evaluation.paper.study import BUDGETS, Cell
from orchestrator.evaluation.strategies.rows import Row, rows
from orchestrator.evaluation.strategies.trial import Outcome
from orchestrator.report.figures import label_logarithmic

_WIDTH, _HEIGHT = 3.6, 2.9  # inches per panel
_STYLES = ("-", "--", ":", "-.")


class Figures(NamedTuple):
    """Percentage of models within ±5 % at P₊: of the full matrix, and of CPF and GPR at `BUDGETS`."""

    full: float
    cpf: tuple[float, ...]
    gpr: tuple[float, ...]


PUBLISHED: Mapping[tuple[int, float], Figures] = MappingProxyType(
    {
        (2, 1): Figures(
            85.67,
            (9.35, 16.57, 28.36, 49.07, 79.78, 83.59),
            (16.71, 23.6, 47.76, 78.37, 82.88, 83.74),
        ),
        (2, 2): Figures(
            84.02,
            (9.37, 16.45, 28.3, 48.72, 79.77, 83.98),
            (16.47, 23.52, 47.6, 78.0, 82.79, 84.04),
        ),
        (2, 5): Figures(
            66.01,
            (8.34, 14.58, 27.22, 47.24, 79.25, 83.0),
            (14.63, 21.07, 45.63, 77.82, 81.59, 83.51),
        ),
        (2, 10): Figures(
            22.43,
            (5.19, 9.36, 21.15, 39.82, 70.23, 78.01),
            (9.67, 15.31, 39.1, 67.42, 71.62, 80.63),
        ),
        (3, 1): Figures(87.9, (36.9, 42.9, 77.5, 85.3, 85.6, 86.2), (42.0, 60.3, 84.6, 85.1, 85.3, 87.0)),
        (3, 2): Figures(87.9, (36.1, 42.1, 76.1, 84.3, 85.7, 86.1), (40.9, 58.8, 83.1, 84.4, 85.4, 87.2)),
        (3, 5): Figures(86.9, (32.0, 37.3, 71.1, 77.5, 81.8, 85.7), (38.3, 53.8, 78.4, 82.3, 82.8, 86.3)),
        (3, 10): Figures(87.0, (20.5, 26.6, 51.6, 60.3, 70.6, 77.5), (30.1, 40.8, 64.4, 70.9, 73.3, 81.1)),
        (4, 1): Figures(84.9, (79.2, 62.3, 73.5, 76.2, 78.6, 82.4), (79.6, 66.9, 74.3, 77.4, 79.7, 81.7)),
        (4, 2): Figures(82.7, (75.4, 60.6, 71.9, 73.8, 75.3, 80.6), (77.8, 64.0, 72.1, 74.2, 76.6, 81.2)),
        (4, 5): Figures(79.5, (67.4, 53.2, 62.9, 61.9, 63.9, 79.0), (72.5, 60.8, 68.7, 68.7, 64.6, 77.5)),
        (4, 10): Figures(71.1, (44.1, 35.8, 47.4, 48.5, 47.2, 70.7), (59.1, 53.0, 59.6, 62.1, 54.5, 75.5)),
    }
)
"""(m, n) -> what the published evaluation has, of 10,000 (m = 2) and 1,000 functions."""


def paper_rows(cells: Mapping[Cell, Sequence[Outcome]], tolerance: float) -> dict[Cell, list[Row]]:
    """Aggregate the outcomes of every cell; ``tolerance`` in percent."""
    return {cell: rows(outcomes, tolerance) for cell, outcomes in cells.items()}


def document(results: Mapping[Cell, Sequence[Row]]) -> list[dict[str, Any]]:
    """Return the rows of all cells as JSON-ready objects."""
    return [{**cell._asdict(), **row} for cell, found in results.items() for row in found]


def table(results: Mapping[Cell, Sequence[Row]], tolerance: float) -> str:
    """Return a Markdown table: accurate models and, in brackets, functions with a model, in percent.

    The published figures of a cell follow it, if the tolerance is theirs.
    """
    budgets = sorted({row["budget_percent"] for found in results.values() for row in found})
    lines = [("m", "noise", "modeler", "strategy", *(f"{budget:g} %" for budget in budgets))]
    seen: dict[tuple[int, float], list[str]] = {}
    for cell, found in results.items():
        for label in dict.fromkeys(row["strategy"] for row in found):
            at = {row["budget_percent"]: _text(row) for row in found if row["strategy"] == label}
            lines.append((*_heads(cell), label, *(at.get(budget, "") for budget in budgets)))
            labels = seen.setdefault((cell.parameters, cell.noise), [])
            labels += [label] if label not in labels else []
        later = list(results)[list(results).index(cell) + 1 :]
        if tolerance == 5.0 and all(other[:2] != cell[:2] for other in later):
            lines += _published(cell, seen[cell.parameters, cell.noise], budgets)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(_joined(line, widths) for line in (lines[0], rule, *lines[1:]))


def numbers(results: Mapping[Cell, Sequence[Row]]) -> str:
    """Return of how many functions every number of parameters is evaluated: ``40 (m = 2), 8 (m = 4)``."""
    return ", ".join(f"{count} (m = {number})" for number, count in _functions(results).items())


def _functions(results: Mapping[Cell, Sequence[Row]]) -> dict[int, int]:
    return {cell.parameters: row["functions"] for cell, found in results.items() for row in found}


def _heads(cell: Cell) -> tuple[str, str, str]:
    return str(cell.parameters), f"±{cell.noise:g} %", cell.modeler


def _text(row: Row) -> str:
    accurate, feasible = row["accurate_percent"], row["feasible_percent"]
    return f"{accurate:.1f}" if feasible == 100 else f"{accurate:.1f} ({feasible:.0f})"


def _published(cell: Cell, labels: Sequence[str], budgets: Sequence[float]) -> list[tuple[str, ...]]:
    """Return the published figures of the strategies of a cell."""
    known = PUBLISHED.get((cell.parameters, cell.noise))
    if known is None:
        return []
    lines = []
    for label in labels:
        if label not in known._fields:
            continue
        found = (
            {100.0: known.full} if label == "full" else dict(zip(BUDGETS, getattr(known, label), strict=True))
        )
        values = (f"{found[budget]:g}" if budget in found else "" for budget in budgets)
        lines.append((*_heads(cell)[:2], "published", label, *values))
    return lines


def _joined(line: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |"


def figure(results: Mapping[Cell, Sequence[Row]], path: Path, tolerance: float) -> None:
    """Draw accuracy over budget (logarithmic): a row of panels per m, a column per noise level.

    Parameters
    ----------
    results
        Rows of every cell.
    path
        PNG file to write.
    tolerance
        Of accurate models, in percent.
    """
    numbers = list(dict.fromkeys(cell.parameters for cell in results))
    levels = list(dict.fromkeys(cell.noise for cell in results))
    modelers = list(dict.fromkeys(cell.modeler for cell in results))
    counts = _functions(results)
    canvas = empty(_WIDTH * len(levels), _HEIGHT * len(numbers) + 0.5)
    panels = canvas.subplots(len(numbers), len(levels), sharex=True, sharey=True, squeeze=False)
    for row, number in enumerate(numbers):
        for column, level in enumerate(levels):
            place = panels[row, column]
            for modeler, style in zip(modelers, _STYLES, strict=False):
                _draw(place, results.get(Cell(number, level, modeler), ()), modeler, style)
            title = f"m = {number}, n = ±{level:g} % ({counts[number]} functions)"
            place.set_title(title, fontsize="medium")
            place.grid(True, alpha=0.3)
        panels[row, 0].set_ylabel(f"within ±{tolerance:g} % at P₊ [%]")
    panels[0, 0].set_xscale("log")
    label_logarithmic(panels[0, 0].xaxis)
    panels[0, 0].set_ylim(-2, 102)
    for place in panels[-1]:
        place.set_xlabel("budget [% of the full matrix]")
    legend_below(canvas, *panels[0, 0].get_legend_handles_labels())
    save(canvas, path, dpi=120)


def _draw(place: Axes, found: Sequence[Row], modeler: str, style: str) -> None:
    """Draw a line per strategy; what is known at 100 % alone (the full matrix) is a level."""
    for index, label in enumerate(dict.fromkeys(row["strategy"] for row in found)):
        mine = sorted((r for r in found if r["strategy"] == label), key=lambda row: row["budget_percent"])
        x = [row["budget_percent"] for row in mine]
        y = [row["accurate_percent"] for row in mine]
        name = f"{label}, {modeler}"
        if label == "full":
            place.axhline(y[-1], color="black", linestyle=style, linewidth=1.0, label=name)
        else:
            place.plot(
                x, y, marker="o", markersize=3, linewidth=1.2, linestyle=style, color=f"C{index}", label=name
            )

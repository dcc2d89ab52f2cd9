"""Both sides of a comparison as figures show them: models with their bands, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.models.base import Key, Model, key_of
from orchestrator.models.comparison.pairs import Aligned
from orchestrator.report.page import runs
from orchestrator.report.page.callpaths import Line, curves, lines_through
from orchestrator.report.page.encoding import packed
from orchestrator.report.page.grid import grid_of
from orchestrator.report.page.runs import Runs
from orchestrator.report.page.subject import Subject
from orchestrator.types import Point

_MOST_ROWS, _MOST_MEASURED = 150, 300_000  # rows with figures, and measured values of all of them

Row = Mapping[str, Any]


def sides(
    rows: Sequence[Row],
    both: Aligned,
    models: tuple[Sequence[Model], Sequence[Model]],
    point: Mapping[str, Any],
) -> dict[str, Any]:
    """Return ``parameters``, ``lines``, the ``points`` of each side's runs, and ``pairs``: what rows show.

    Parameters
    ----------
    rows
        Of the comparison; those of largest interest first.
    both, models
        Measurements and models of A and B; without models only measurements are shown.
    point
        Where they are compared.
    """
    joint = replace(both.first, items=(*both.first.items, *both.second.items))
    subject = Subject(known=joint, models=(), point=Point.of({n: point[n] for n in joint.parameters}))
    grid = grid_of(subject)
    lines = lines_through(subject, grid)
    measured = [runs.of_measurements(side) for side in (both.first, both.second)]
    fitted = [{key_of(model): model for model in side} for side in models]
    most = min(_MOST_ROWS, _MOST_MEASURED // max(sum(len(side.points) for side in measured), 1))
    return {
        "parameters": [axis.document() for axis in grid.axes],
        "lines": [line.document() for line in lines],
        "points": [[item["point"] for item in side.documents] for side in measured],
        "pairs": [
            [_side(_key(row), side, known, lines) for side, known in zip(measured, fitted, strict=True)]
            for row in rows[: max(most, 1)]
        ],
    }


def _key(row: Row) -> Key:
    return row["callpath"], row["metric"], tuple(row["category"].items())


def _side(key: Key, measured: Runs, models: Mapping[Key, Model], lines: Sequence[Line]) -> dict[str, Any]:
    model = models.get(key) or models.get((*key[:2], ()))
    return {
        "expression": None if model is None else model.expression,
        "measured": packed(measured.of(key)),
        "curves": [] if model is None else curves(model, lines),
    }

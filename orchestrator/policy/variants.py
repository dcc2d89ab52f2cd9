"""Two executables measured together: every chosen point for both, in random order. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from orchestrator.strategies.base import Choice
from orchestrator.types import Point


def paired(
    choices: Sequence[Choice],
    parameter: str,
    names: Sequence[str],
    infeasible: Collection[Point],
    rng: np.random.Generator,
) -> list[Choice]:
    """Return the choices with every run doubled, one choice per run in the order of execution.

    The runs of all variants at a point are neighbours, in blocks of one repetition with a random order each:
    whatever drifts disturbs all of them alike.

    Parameters
    ----------
    choices
        Of the strategy, which may name one variant of a point, or several.
    parameter, names
        The parameter that stands for the executables, and its values.
    infeasible
        Points that keep failing: there the others are measured alone.
    rng
        Decides the order.
    """
    wanted: dict[Point, tuple[int, str]] = {}
    for choice in choices:
        point = _changed(choice.point, parameter, names[0])
        most, reason = wanted.get(point, (0, _of_both(choice, parameter)))
        wanted[point] = max(most, choice.repetitions), reason
    return [
        Choice(there, 1, reason)
        for point, (repetitions, reason) in wanted.items()
        for _ in range(repetitions)
        for k in rng.permutation(len(names))
        if (there := _changed(point, parameter, names[k])) not in infeasible
    ]


def _of_both(choice: Choice, parameter: str) -> str:
    """Return why a point was chosen: its variant was constant for the strategy, but both are measured."""
    chosen = f"{parameter}={choice.point[parameter]}"
    return re.sub(rf"(?:, |(: )){re.escape(chosen)} constant", _without, choice.reason)


def _without(found: re.Match[str]) -> str:
    return ": the only parameter" if found[1] else " constant"


def _changed(point: Point, parameter: str, name: str) -> Point:
    return Point(tuple((key, name if key == parameter else value) for key, value in point.items))

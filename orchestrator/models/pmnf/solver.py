"""From located values to weighed hypotheses: search and fit, look for outliers, then for lack of fit."""

from __future__ import annotations

from orchestrator.models.base import Floats
from orchestrator.models.noise import Located
from orchestrator.models.pmnf.misfit import with_correction
from orchestrator.models.pmnf.outliers import without_outliers
from orchestrator.models.pmnf.plain import without_correction
from orchestrator.models.pmnf.solution import Solution, Task


def solve(task: Task, values: Floats, located: Located) -> Solution:
    """Weigh the hypotheses of every call path.

    Parameters
    ----------
    task
        What the call paths share.
    values
        Measured values, shape (call paths, points, repetitions).
    located
        Their locations.
    """
    solution = without_correction(task, located)
    solution = without_outliers(task, values, solution)
    return with_correction(task, solution)

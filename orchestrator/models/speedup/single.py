"""One learner of the family alone: without a choice among them, and without intervals."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.models.processes import fixed_factor, required
from orchestrator.models.regression.learner import Learner
from orchestrator.models.speedup.family import learner
from orchestrator.models.speedup.law import Settings
from orchestrator.types import Measurements


def speedup_learner(
    measurements: Measurements,
    *,
    overhead: str,
    variant: str = "aggregate",
    scaling: str = "strong",
    most_processes: float,
    largest: Mapping[str, float],
) -> Learner:
    """Return the law with one kind of overhead, for samples of some measurements.

    Parameters
    ----------
    measurements
        Whose parameters count processes by their names.
    overhead, variant, scaling, most_processes, largest
        As for the modeler ``speedup``.

    Raises
    ------
    ModelError
        When no parameter counts processes.
    """
    counting = required(measurements.parameters)
    settings = Settings(
        variant=variant, scaling=scaling, exponents={}, most_processes=most_processes, largest=largest
    )
    return learner(counting, fixed_factor(measurements, counting), settings, overhead)

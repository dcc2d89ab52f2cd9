"""The modeler ``speedup``: Amdahl's law with an overhead, per call path and metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Model, Modeler, one_of
from orchestrator.models.noise import AGGREGATES
from orchestrator.models.processes import Processes, fixed_factor, required
from orchestrator.models.regression.modeler import modeler_of
from orchestrator.models.speedup.family import ALL_OVERHEADS, OLIVEIRA, OVERHEADS, family
from orchestrator.models.speedup.law import SCALINGS, VARIANTS, Settings
from orchestrator.types import Measurements


def modeler(
    *,
    overhead: str = "auto",
    variant: str = "aggregate",
    scaling: str = "strong",
    processes: str | Sequence[str] = "auto",
    exponents: Mapping[str, float] | None = None,
    most_processes: float | None = None,
    largest: Mapping[str, float] | None = None,
    aggregate: str = "auto",
    seed: int = 0,
) -> Modeler:
    """Return a modeler of speedups (Alasandagutti et al., sections 2 and 3).

    Parameters
    ----------
    overhead
        What corrects the law: ``none``, ``power`` (a power of every parameter), ``forest``, ``boosting``,
        ``network``; ``oliveira``, which puts Oliveira's model in place of the law (strong scaling), by least
        squares, and ``oliveira-swarm``, the same by particle swarms; ``auto`` takes what predicts best what
        was left out.
    variant
        Whose runs give the parallel fraction: ``aggregate`` (all), ``optimal`` (those of the problem),
        ``full-data`` (the same, without the cut-offs).
    scaling
        ``strong``; ``weak``, where sizes are per process; ``hybrid``, where the work is a product of powers
        of the sizes.
    processes
        Parameters whose product is the number of processes: names, or a text such as ``nodes * ppn``;
        ``auto`` goes by names.
    exponents
        By which power of a size the work grows, for ``hybrid`` (1, as in the paper, where nothing is said).
    most_processes, largest
        The cut-offs c_f, and w_f by the name of the size; none by default.
    aggregate
        How repetitions become one value, as for ``pmnf``.
    seed
        Of the random parts of fits and of their comparison.

    Raises
    ------
    ModelError
        For an option that makes no sense; and by the modeler where no parameter counts processes, where all
        runs have one number of processes, and when no call path can be fitted.
    """
    overheads = OVERHEADS if overhead == "auto" else (one_of("overhead", overhead, ALL_OVERHEADS),)
    settings = Settings(
        variant=one_of("variant", variant, VARIANTS),
        scaling=one_of("scaling", scaling, SCALINGS),
        exponents=_numbers("exponents", exponents),
        most_processes=np.inf if most_processes is None else _number("most_processes", most_processes),
        largest=_numbers("largest", largest),
    )
    if overhead.startswith(OLIVEIRA) and scaling != "strong":
        raise ModelError(f"Oliveira's model is for strong scaling, not for {scaling} scaling")
    one_of("aggregate", aggregate, AGGREGATES)
    known: dict[tuple[Processes, float], Modeler] = {}

    def model(measurements: Measurements) -> tuple[Model, ...]:
        numeric = [name for name in measurements.parameters if not measurements.is_categorical(name)]
        counting = required(numeric, processes)
        factor = fixed_factor(measurements, counting)
        _check_varied(measurements, counting)
        key = counting, factor
        if key not in known:
            known[key] = modeler_of(
                family(counting, factor, settings, overheads), aggregate=aggregate, seed=seed
            )
        return known[key](measurements)

    return model


def _numbers(name: str, value: object) -> dict[str, float]:
    """Return numbers by the names of parameters."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ModelError(f"{name} is {value!r}: give a number per parameter, such as {{n: 3}}")
    return {str(key): _number(f"{name}.{key}", number) for key, number in value.items()}


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ModelError(f"{name} is {value!r}: give a number")
    return float(value)


def _check_varied(measurements: Measurements, processes: Processes) -> None:
    points = {point for item in measurements.items for point in item.values}
    if len({math.prod(point.number(name) for name in processes.names) for point in points}) == 1:
        raise ModelError(
            f"every run has the same number of processes ({processes.text}): a speedup needs runs on two or "
            "more; measure some, name other parameters with the option processes, or choose another modeler"
        )

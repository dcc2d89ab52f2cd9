"""What to measure next for a table of measurements, and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from orchestrator import resources, units
from orchestrator.api import points
from orchestrator.api.arguments import mapping, optional_mapping, texts, warn
from orchestrator.api.fit import chosen_modeler
from orchestrator.control import suggest as question
from orchestrator.control.suggest import Answer, Question, Suggestion
from orchestrator.errors import MeasurementError
from orchestrator.models.base import Modeler
from orchestrator.resources import core_hours
from orchestrator.types import Measurements, Point, Value
from orchestrator.units import cost_unit, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.api.frames import Names


def suggest(
    frame: pd.DataFrame,
    parameters: Names | None = None,
    response: Names | None = None,
    callpath: str | None = None,
    *,
    target: Mapping[str, object],
    budget: float | str,
    processes: str | int = 1,
    batch_size: int = 4,
    values: Mapping[str, Iterable[Value]] | None = None,
    constraints: Names | None = (),
    modeler: str | Modeler = "auto",
    options: Mapping[str, Any] | None = None,
    strategy: str = "information",
    seed: int = 0,
) -> pd.DataFrame:
    """Suggest the points to measure next, such that models hold at a target.

    Parameters
    ----------
    frame, parameters, response, callpath
        As of `orchestrator.fit`. Times in seconds, as costs are predicted from them: a warning says where
        nothing is called ``time``.
    target
        Where the models must hold: a value for every parameter. It is never suggested itself.
    budget
        What may be spent: a number of core-hours, or a text such as ``"2 core-hours"``.
    processes
        Cores of a run: a number, or an expression in the parameters such as ``"p"``.
    batch_size
        Most points to suggest.
    values
        Further values of parameters that could be measured, beside those that were.
    constraints
        Expressions that a point must satisfy, such as ``"p * n <= 4096"``, or one of them.
    modeler, options
        The kind of model, and its options as under ``model:`` of a campaign file.
    strategy, seed
        Who chooses, and the seed of what is random in that.

    Returns
    -------
    DataFrame
        The parameters, ``repetitions``, ``core_hours`` (expected; missing while nothing predicts it) and
        ``reason``. Empty if nothing within the budget is left to measure.

    Raises
    ------
    MeasurementError
        For a table, target or value that cannot be used.
    CampaignError
        For a budget, expression, kind of model, option or strategy that is not understood.
    """
    import pandas as pd

    from orchestrator.api import frames

    known = warn(frames.to_measurements(frame, parameters, response, callpath))
    for name, number, least in (("batch_size", batch_size, 1), ("seed", seed, 0)):
        if not isinstance(number, Integral) or number < least:
            raise MeasurementError(f"{name}={number!r}: give a whole number from {least}")
    mapping(target, "target", "{'p': 1024}")
    if not isinstance(processes, str | Real):
        raise MeasurementError(f"processes={processes!r}: give a number, or an expression such as 'p'")
    answer = question.suggest(
        known,
        Question(
            evaluation_point=points.point_of(target, known),
            cores=cores_of(str(processes), known),
            budget=core_seconds(budget),
            unit=cost_unit(budget),
            modeler=chosen_modeler(modeler, optional_mapping(options, "options", "{'members': 100}")),
            values=_values(optional_mapping(values, "values", "{'p': [128, 256]}"), known),
            constraints=texts(constraints, "constraints", "give expressions such as 'p * n <= 4096'"),
            strategy=strategy,
            batch_size=batch_size,
            seed=seed,
        ),
    )
    if answer.taken_for_seconds:
        warnings.warn(f"{as_seconds(answer)}; call the one that is time", stacklevel=2)
    columns = [*known.parameters, "repetitions", "core_hours", "reason"]
    rows = [
        (
            *(item.choice.point[name] for name in known.parameters),
            item.choice.repetitions,
            None if item.cost is None else core_hours(item.cost),
            item.choice.reason,
        )
        for item in answer.suggestions
    ]
    return pd.DataFrame(rows, columns=columns).astype({"core_hours": float})


def as_seconds(answer: Answer) -> str:
    """Return the note that costs are predicted from metrics that may be no times."""
    metrics = ", ".join(answer.taken_for_seconds)
    return f"no metric is called time: costs are predicted as if {metrics} were in seconds"


def describe(item: Suggestion) -> dict[str, object]:
    """Return a suggestion, JSON-ready; the cost in core-hours."""
    return {
        "point": item.choice.point.as_dict(),
        "repetitions": item.choice.repetitions,
        "cost": None if item.cost is None else core_hours(item.cost),
        "reason": item.choice.reason,
    }


def cores_of(processes: str, known: Measurements) -> Callable[[Point], float]:
    """Return the cores of a run at a point, from an expression in the parameters."""
    texts = [name for name in known.parameters if known.is_categorical(name)]
    return resources.of_expression(processes, known.parameters, texts)


def core_seconds(budget: float | str) -> float:
    """Return a budget in core-seconds; raise `MeasurementError` for what is none."""
    try:
        found = units.parse_cost(budget)
    except (ValueError, OverflowError) as error:
        raise MeasurementError(f"budget: {error}") from None
    if found <= 0:
        raise MeasurementError(f"budget: {budget!r} must be greater than 0, such as 2 core-hours")
    return found


def _values(given: Mapping[str, Iterable[Value]], known: Measurements) -> dict[str, list[Value]]:
    values: dict[str, list[Value]] = {}
    for name, wanted in given.items():
        if name not in known.parameters:
            raise MeasurementError(
                f"values: unknown parameter {name!r}: {did_you_mean(name, known.parameters)}"
            )
        is_list = isinstance(wanted, Iterable) and not isinstance(wanted, str | Mapping)
        if not is_list or getattr(wanted, "ndim", 1) != 1:
            raise MeasurementError(f"values: {name}={wanted!r} is no list of values")
        plain = [points.plain(value) for value in wanted]
        if not known.is_categorical(name):
            plain = [points.check_number(value, name, known) for value in plain]
        values[name] = plain
    return values

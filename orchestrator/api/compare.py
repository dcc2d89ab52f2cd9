"""Compare two tables of measurements, call path by call path."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.api import points
from orchestrator.api.arguments import optional_mapping, warn
from orchestrator.api.fit import chosen_modeler, fit_measurements
from orchestrator.errors import CampaignError, ModelError
from orchestrator.models.base import Model, Modeler
from orchestrator.models.comparison.pairs import Aligned, aligned
from orchestrator.models.effort import EFFORT
from orchestrator.types import Measurements, Point

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.api.frames import Names

_FIGURES = ("ratio", "low", "high", "probability", "false_alarms")
_COLUMNS = ("callpath", "metric", *_FIGURES, "basis", "what_changed")


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    parameters: Names | None = None,
    response: Names | None = None,
    callpath: str | None = None,
    *,
    at: Mapping[str, object] | pd.DataFrame | None = None,
    modeler: str | Modeler | None = "auto",
    options: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Compare two tables of measurements call path by call path: the ratio second / first.

    Parameters
    ----------
    first, second
        Tables as of `orchestrator.fit`, with the same parameters: A and B.
    parameters, response, callpath
        As of `orchestrator.fit`, of both tables.
    at
        Where the ratio is wanted: a value for every parameter, or a table of points (default: the largest
        point that both measured).
    modeler, options
        The kind of model for ratios beyond common points, and its options as under ``model:`` of a campaign
        file. None: common points alone, much faster.

    Returns
    -------
    DataFrame
        A row per call path, metric and point: the parameters, ``callpath``, ``metric``, ``ratio``, ``low``
        and ``high`` of its 90 % interval, ``probability`` that something changed, ``false_alarms`` (their
        share among the rows that are at least as probable), ``basis`` (``pairs`` or ``models``) and
        ``what_changed`` in words. Figures are missing where nothing can be said, or only one table has the
        call path.

    Raises
    ------
    MeasurementError
        For a table or point that cannot be used as it is.
    CampaignError
        Where the parameters differ, nothing was measured in both, or kind of model or option is unknown.
    ModelError
        Where no model can be fitted, or no call path has usable values in both.
    """
    from orchestrator.api.frames import to_measurements
    from orchestrator.report import comparison

    sides = [warn(to_measurements(side, parameters, response, callpath)) for side in (first, second)]
    chosen = optional_mapping(options, "options", "{'members': 100}")
    both = aligned(*sides)
    metrics = compared_metrics(both)
    fitted = None if modeler is None else chosen_modeler(modeler, chosen)
    models = models_of_both(both, metrics, None if fitted is None else (fitted, fitted))
    question = comparison.Question(
        points=_points(at, joint(both)), metrics=metrics, names=("first", "second")
    )
    compared = comparison.document(both, models, question)
    if not compared["rows"]:
        raise ModelError("nothing can be compared: no call path has usable values in both")
    for note in compared["notes"]:
        warnings.warn(note, stacklevel=2)
    return _table(compared, both.first.parameters)


def joint(both: Aligned) -> Measurements:
    """Return everything that can be asked for: call paths and values of both."""
    return replace(both.first, items=(*both.first.items, *both.second.items))


def compared_metrics(both: Aligned, wanted: Sequence[str] | None = None) -> list[str]:
    """Return the metrics to compare: those that both have; counts only if they are asked for.

    Raises
    ------
    CampaignError
        For a metric that one of them has not.
    """
    common = [name for name in both.first.metrics() if name in both.second.metrics()]
    if wanted is None:
        return [name for name in common if name not in EFFORT] or common
    for name in wanted:
        if name not in common:
            raise CampaignError(f"metric {name}: both have the metrics {', '.join(common)}")
    return list(wanted)


def models_of_both(
    both: Aligned, metrics: Sequence[str] | None, modelers: tuple[Modeler, Modeler] | None
) -> tuple[Sequence[Model], Sequence[Model]]:
    """Return the models of A and B, of what both have; none without modelers."""
    if modelers is None:
        return (), ()
    first = fit_measurements(_shared(both.first, both.only_first), modelers[0], metrics)
    second = fit_measurements(_shared(both.second, both.only_second), modelers[1], metrics)
    return first, second


def _shared(known: Measurements, only: Sequence[tuple[str, str]]) -> Measurements:
    """Leave out what the other one has not, except for counts: they belong to the times."""
    left_out = {key for key in only if key[1] not in EFFORT}
    kept = tuple(item for item in known.items if (item.callpath, item.metric) not in left_out)
    return replace(known, items=kept)


def _points(at: Mapping[str, object] | pd.DataFrame | None, known: Measurements) -> list[Point]:
    from orchestrator.api import frames

    if at is None:
        return []
    return [points.point_of(at, known)] if isinstance(at, Mapping) else frames.to_points(at, known)


def _table(compared: Mapping[str, Any], parameters: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    somewhere = compared["points"][0]
    for row in compared["rows"]:
        names = (row["callpath"], row["metric"])
        alarms = (row["probability"], row["false_discovery_rate"])
        for item in row["predictions"] or [{"point": {**somewhere, **row["category"]}, "basis": None}]:
            figures = (item.get(name) for name in ("ratio", "low", "high"))
            place = (item["point"].get(name) for name in parameters)
            rows.append((*place, *names, *figures, *alarms, item["basis"], row["sentence"]))
    for side, name in compared["names"].items():
        rows += [
            (
                *map(somewhere.get, parameters),
                item["callpath"],
                item["metric"],
                *[None] * len(_FIGURES),
                None,
                f"only in {name}",
            )
            for item in compared[f"only_in_{side}"]
        ]
    frame = pd.DataFrame(rows, columns=[*parameters, *_COLUMNS])
    return frame.astype(dict.fromkeys(_FIGURES, float))

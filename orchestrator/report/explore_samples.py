"""The columns that an exploration looks at: one per varied parameter and per response, one row per point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.errors import ModelError
from orchestrator.models.base import Floats
from orchestrator.report.callpath_names import shortened
from orchestrator.types import Measurements, format_value, order_of
from orchestrator.units import count, listed

FEWEST = 4  # points; of three, ranks agree by chance every third time
_RESPONSE = " (response)"  # tells a response from a parameter of the same name
_EXAMPLES = 3  # names that a note gives


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A parameter or a response at every point."""

    name: str  # as shown; unique among the columns of an exploration
    # Shape (points,), NaN where a response was not measured. Numbers of categories are places in `levels`.
    values: Floats
    levels: tuple[str, ...] = ()  # the categories; empty where values are numbers
    # callpath, metric: of a response; empty for a parameter.
    callpath: str = ""
    metric: str = ""

    @property
    def unnamed_metric(self) -> str:
        """The metric of a response, empty where its name ends with it."""
        name = self.name.removesuffix(_RESPONSE)
        return "" if name == self.metric or name.endswith(f" {self.metric}") else self.metric

    @property
    def categorical(self) -> bool:
        """Whether values have no order."""
        return bool(self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Parameters and responses at the same points; `notes` say what was left out."""

    points: int
    parameters: tuple[Column, ...]
    responses: tuple[Column, ...]
    notes: tuple[str, ...]


def samples(known: Measurements, most: int) -> Samples:
    """Return the columns of all varied parameters, and of the largest responses.

    A response is the median of the repetitions at a point.

    Parameters
    ----------
    known
        What was measured.
    most
        Responses to keep: the largest of every metric, metrics in turn.

    Raises
    ------
    ModelError
        When fewer than four points were measured, when no parameter varies, or when no response does.
    """
    if len(known.points) < FEWEST:
        raise ModelError(
            f"{count(len(known.points), 'measured point')}: too few to explore, measure at least {FEWEST}"
        )
    columns = [_parameter(known, name) for name in known.parameters]
    varied = tuple(column for column in columns if _varies(column))
    if not varied:
        raise ModelError("no parameter has more than one measured value: there is nothing to explore")
    responses = _responses(known)
    usable = [column for column in responses if _varies(column)]
    if not usable:
        raise ModelError(
            "no response varies: every call path has the same value at all points, or was measured at fewer "
            f"than {FEWEST}"
        )
    kept = _largest(usable, most)
    fixed = [f"{column.name}={_only(column)}" for column in columns if not _varies(column)]
    notes = [f"left out, with one value each: {', '.join(fixed)}"] if fixed else []
    few = [column.name for column in responses if np.isfinite(column.values).sum() < FEWEST]
    constant = [column.name for column in responses if not _varies(column) and column.name not in few]
    for why, names in (
        ("the same at all points", constant),
        (f"measured at fewer than {FEWEST} points", few),
    ):
        if names:
            notes.append(f"{why}, and left out: {listed(names, _EXAMPLES)}")
    if len(kept) < len(usable):
        notes.append(
            f"the {len(kept)} largest of {len(usable)} responses are shown: choose others with --callpath"
        )
    return Samples(
        points=len(known.points), parameters=varied, responses=tuple(kept), notes=(*known.notes, *notes)
    )


def _parameter(known: Measurements, name: str) -> Column:
    raw = [point[name] for point in known.points]
    if not known.is_categorical(name):
        return Column(name=name, values=np.array(raw, dtype=float))
    texts = [format_value(value) for value in raw]
    levels = tuple(dict.fromkeys(format_value(value) for value in sorted(raw, key=order_of)))
    place = {level: k for k, level in enumerate(levels)}
    return Column(name=name, values=np.array([place[text] for text in texts], dtype=float), levels=levels)


def _responses(known: Measurements) -> list[Column]:
    names = _names(known)
    rows = {point: k for k, point in enumerate(known.points)}
    responses = []
    for item, name in zip(known.items, names, strict=True):
        values = np.full(len(rows), np.nan)
        for point, repetitions in item.values.items():
            finite = [value for value in repetitions if np.isfinite(value)]
            if finite:
                values[rows[point]] = np.median(finite)
        responses.append(Column(name=name, values=values, callpath=item.callpath, metric=item.metric))
    return responses


def _names(known: Measurements) -> list[str]:
    """Return names of all responses, none of them a parameter's: call paths, metrics, or both."""
    paths = shortened(item.callpath for item in known.items)
    several = len(known.metrics()) > 1
    names = []
    for item in known.items:
        both = f"{paths[item.callpath]} {item.metric}" if several else paths[item.callpath]
        name = item.metric if len(paths) == 1 else both
        names.append(f"{name}{_RESPONSE}" if name in known.parameters else name)
    return names


def _varies(column: Column) -> bool:
    finite = column.values[np.isfinite(column.values)]
    return len(finite) >= FEWEST and bool(np.any(finite != finite[0]))


def _only(column: Column) -> str:
    return column.levels[0] if column.levels else format_value(float(column.values[0]))


def _largest(columns: Sequence[Column], most: int) -> list[Column]:
    """Return the largest responses in their first order; those of different metrics are not compared."""
    metrics: dict[str, list[Column]] = defaultdict(list)
    for column in columns:
        metrics[column.metric].append(column)
    ranked = [
        (place, k, column)
        for k, group in enumerate(metrics.values())
        for place, column in enumerate(sorted(group, key=_total, reverse=True))
    ]
    kept = {column.name for _, _, column in sorted(ranked, key=lambda item: item[:2])[:most]}
    return [column for column in columns if column.name in kept]


def _total(column: Column) -> float:
    return float(np.nansum(np.abs(column.values)))

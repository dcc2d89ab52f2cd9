"""Measured samples of one response: chosen by expressions, split at random, drawn in nested subsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orchestrator import expressions
from orchestrator.errors import MeasurementError
from orchestrator.types import Measurement, Measurements, Point, format_value
from orchestrator.units import did_you_mean

_EXAMPLES = 10  # names in an error


def of_response(known: Measurements, callpath: str | None, source: str) -> Measurements:
    """Return the measurements of the only response, at one call path: a single item.

    Raises
    ------
    MeasurementError
        Naming ``source`` and what there is: for several responses, for several call paths without a choice,
        and for an unknown call path.
    """
    metrics = known.metrics()
    if len(metrics) != 1:
        raise MeasurementError(f"{source}: choose one of {_some(metrics)} with --response")
    paths = tuple(dict.fromkeys(item.callpath for item in known.items))
    if callpath is None and len(paths) != 1:
        raise MeasurementError(f"{source}: choose one of the call paths {_some(paths)} with --callpath")
    if callpath is not None and callpath not in paths:
        raise MeasurementError(f"{source}: no call path {callpath!r}: {did_you_mean(callpath, paths)}")
    chosen = callpath or paths[0]
    return replace(known, items=tuple(item for item in known.items if item.callpath == chosen))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_EXAMPLES]) + ", ..." * (len(names) > _EXAMPLES)


def check_alike(train: Measurements, test: Measurements, sources: tuple[str, str]) -> None:
    """Refuse training and test samples of different parameters.

    Raises
    ------
    MeasurementError
        Naming both sources and the parameters.
    """
    if set(train.parameters) != set(test.parameters):
        first, second = (", ".join(known.parameters) for known in (train, test))
        raise MeasurementError(
            f"{sources[0]} has the parameters {first}, but {sources[1]} has {second}: "
            "name those that both have with --parameters"
        )
    for name in train.parameters:
        if train.is_categorical(name) != test.is_categorical(name):
            raise MeasurementError(
                f"parameter {name} has categories in one of {sources[0]} and {sources[1]}, and numbers in "
                f"the other: use --categorical {name}, or correct the values"
            )


def where(known: Measurements, conditions: Sequence[str], source: str) -> Measurements:
    """Return the samples at points where all conditions hold, such as ``m < 2048``.

    Raises
    ------
    ExpressionError
        For a condition that is malformed or names no parameter.
    MeasurementError
        If no sample is left, with the range of each parameter.
    """
    if not conditions:
        return known
    texts = {name for name in known.parameters if any(isinstance(p[name], str) for p in known.points)}
    found = [expressions.parse(text, known.parameters, texts) for text in conditions]
    [item] = known.items
    kept = [point for point in item.values if all(holds(point.as_dict()) for holds in found)]
    if not kept:
        raise MeasurementError(
            f"{source}: none of the {len(item.values)} points satisfies {' and '.join(conditions)}; "
            f"there are {_ranges(known)}"
        )
    return of_points(known, kept)


def _ranges(known: Measurements) -> str:
    parts = []
    for name in known.parameters:
        values = {point[name] for point in known.points}
        numbers = [value for value in values if not isinstance(value, str)]
        if len(numbers) == len(values):
            parts.append(f"{name} from {format_value(min(numbers))} to {format_value(max(numbers))}")
        else:
            parts.append(f"{name} in {', '.join(sorted(map(str, values))[:_EXAMPLES])}")
    return "; ".join(parts)


def split(known: Measurements, share: float, rng: np.random.Generator) -> tuple[Measurements, Measurements]:
    """Return samples to fit, and a ``share`` of the points, drawn at random, to test with.

    Repetitions of a point stay together.

    Raises
    ------
    MeasurementError
        If one of both would be empty.
    """
    points = list(known.items[0].values)
    count = round(share * len(points))
    if not 0 < count < len(points):
        raise MeasurementError(
            f"a share of {share:g} of {len(points)} points is {count}: nothing is left to "
            f"{'fit' if count else 'test with'}; choose another --test-share, or give --test"
        )
    order = rng.permutation(len(points))
    test = set(order[:count].tolist())
    return (
        of_points(known, [point for k, point in enumerate(points) if k not in test]),
        of_points(known, [point for k, point in enumerate(points) if k in test]),
    )


def subsets(
    known: Measurements, sizes: Sequence[int], rng: np.random.Generator, source: str
) -> list[Measurements]:
    """Return samples of so many points each, drawn at random; smaller sets are parts of larger ones.

    Raises
    ------
    MeasurementError
        For a size that is larger than the number of points.
    """
    points = list(known.items[0].values)
    for size in sizes:
        if size > len(points):
            raise MeasurementError(
                f"{source}: a size of {size} is more than the {len(points)} points there are to fit; "
                "choose smaller --sizes"
            )
    order = rng.permutation(len(points)).tolist()
    return [of_points(known, [points[k] for k in order[:size]]) for size in sizes]


def check_response(known: Measurements, source: str) -> None:
    """Refuse samples that say nothing about the response.

    Raises
    ------
    MeasurementError
        For a response that is the same everywhere.
    """
    [item] = known.items
    values = {value for found in item.values.values() for value in found}
    if len(values) == 1:
        raise MeasurementError(
            f"{source}: {item.metric} is {values.pop():g} at all {len(item.values)} points: there is nothing "
            "to model; choose another column with --response"
        )


def check_positive(known: Measurements, source: str) -> None:
    """Refuse test samples whose relative error has no meaning.

    Raises
    ------
    MeasurementError
        For a value that is not positive, naming its point.
    """
    [item] = known.items
    for point, values in item.values.items():
        for value in values:
            if not value > 0:
                raise MeasurementError(
                    f"{source}: {item.metric} is {value:g} at {point}: errors are relative, so test with "
                    "positive values; leave such rows out"
                )


def of_points(known: Measurements, points: Sequence[Point]) -> Measurements:
    """Return the samples of a single item at some of its points, in their order."""
    [item] = known.items
    values = {point: item.values[point] for point in points}
    origins = {point: item.origins[point] for point in points if point in item.origins}
    return replace(known, items=(Measurement(item.callpath, item.metric, values, origins),))

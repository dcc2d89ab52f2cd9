"""Figures of merit as their inverse: work per second as seconds per unit of work.

A time is a sum of terms of the parameters, which is what models are made of; a rate is the quotient of work
and such a sum.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from orchestrator.errors import ReadError
from orchestrator.types import Measurement, Measurements

_QUOTIENT = re.compile(r"([^/()]+)/([^/()]+)")


def inverse_name(metric: str) -> str:
    """Return what the inverse of a metric is called: ``1/fom``."""
    return f"1/{metric}"


def inverse_unit(unit: str) -> str:
    """Return the unit of the inverse: ``s/cells`` for ``cells/s``, ``s`` for ``1/s``; empty for none."""
    match = _QUOTIENT.fullmatch(unit.strip())
    if match is None:
        return f"1/{unit.strip()}" if unit.strip().isalnum() else f"1/({unit})" if unit.strip() else ""
    numerator, denominator = match[1].strip(), match[2].strip()
    return denominator if numerator == "1" else f"{denominator}/{numerator}"


def inverse_value(value: float, metric: str, where: str) -> float:
    """Return the inverse of a value.

    Raises
    ------
    ReadError
        For zero, and for what is so small that its inverse is not finite.
    """
    result = math.inf if value == 0 else 1.0 / value
    if not math.isfinite(result):
        raise ReadError(
            f"{where}: {metric} is {value:g}, which has no inverse; model it as it is (without "
            "--inverse, or with model: value in measure.metrics)"
        )
    return result


def with_inverses(
    values: Mapping[tuple[str, str], float], metrics: Collection[str], where: str
) -> dict[tuple[str, str], float]:
    """Return values by call path and metric, those of some metrics replaced by their inverses."""
    return {
        (callpath, inverse_name(metric) if metric in metrics else metric): (
            inverse_value(value, metric, f"{where}: {callpath}") if metric in metrics else value
        )
        for (callpath, metric), value in values.items()
    }


def inverted(known: Measurements, metrics: Collection[str]) -> Measurements:
    """Return measurements, those of some metrics replaced by their inverses.

    Raises
    ------
    ReadError
        For a metric that was not measured, and for values without an inverse.
    """
    missing = [metric for metric in metrics if metric not in known.metrics()]
    if missing:
        there = ", ".join(known.metrics())
        raise ReadError(f"no measurements of {', '.join(missing)} to invert; there are {there}")
    items = tuple(_inverted(item) if item.metric in metrics else item for item in known.items)
    return replace(known, items=items)


def _inverted(item: Measurement) -> Measurement:
    values = {
        point: tuple(
            inverse_value(value, item.metric, f"{item.callpath} at {point}") for value in repetitions
        )
        for point, repetitions in item.values.items()
    }
    return replace(item, metric=inverse_name(item.metric), values=values)

"""Points at which models are asked for: checked against the measurements that the models come from."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Container, Mapping, Sized
from decimal import Decimal

from orchestrator.errors import MeasurementError
from orchestrator.readers.entries import is_number
from orchestrator.types import Measurements, Point, Value, format_value
from orchestrator.units import did_you_mean

LARGEST = sys.float_info.max
"""Of a number that models can be asked for."""
_SHOWN = 40  # letters of a value that an error shows


def point_of(values: Mapping[str, object], known: Measurements) -> Point:
    """Return the point with a value for every parameter of the measurements that has several.

    Raises
    ------
    MeasurementError
        For unknown or missing parameters, and for values at which no model of theirs holds.
    """
    if not values:
        raise MeasurementError(f"no point was given; give a value for {', '.join(known.parameters)}")
    for name in values:
        if name not in known.parameters:
            raise MeasurementError(f"unknown parameter {name!r}: {did_you_mean(str(name), known.parameters)}")
    if names := missing(values, known):
        raise MeasurementError(
            f"no value for parameter {', '.join(names)}; a point needs one for every parameter"
        )
    return Point.of(
        {
            name: coordinate(values[name], name, known) if name in values else known.values_of(name)[0]
            for name in known.parameters
        }
    )


def missing(values: Container[str], known: Measurements) -> list[str]:
    """Return the parameters that a point lacks: those with one measured value have that one."""
    return [name for name in known.parameters if name not in values and len(known.values_of(name)) != 1]


def coordinate(value: object, name: str, known: Measurements) -> Value:
    """Return a parameter's value at which there are models: one of its categories, or a number.

    Raises
    ------
    MeasurementError
        For anything else.
    """
    if isinstance(_cell(value), Sized) and not isinstance(value, str | bytes):
        raise MeasurementError(
            f"{name}={_shown(str(value))}: a point has one value for every parameter; for several points "
            "give a table with a row per point: predict(pandas.DataFrame({...}))"
        )
    found = plain(value)
    if known.is_categorical(name):
        there = {format_value(value): value for value in known.values_of(name)}
        if format_value(found) not in there:
            raise MeasurementError(f"{name}={_shown(found)}: models exist only for {', '.join(there)}")
        return there[format_value(found)]
    return check_number(found, name, known)


def check_number(value: Value, name: str, known: Measurements, text: str = "") -> int | float:
    """Return a value of a parameter that was measured as numbers; ``text`` is how a user wrote it.

    Raises
    ------
    MeasurementError
        Unless models can say something there: a finite positive number; zero only if zero or less was
        measured, and numbers below it only if such were.
    """
    text = text or _shown(value)
    if text == value and is_number(text):
        text = repr(text)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise MeasurementError(f"{name}={text}: the largest number that models know is {LARGEST:.4g}")
    if isinstance(value, str) or not math.isfinite(value):
        raise MeasurementError(f"{name}={text}: {name} is a number, so write one")
    smallest = min((float(x) for x in known.values_of(name)), default=math.inf)
    if (value < 0 and smallest >= 0) or (value == 0 and smallest > 0):
        raise MeasurementError(
            f"{name}={text}: models have powers and logarithms of {name}, so it must be greater than 0"
        )
    return value


def plain(value: object) -> Value:
    """Return a cell as a Python number, or as text where it is none; truth values (numpy's, too) are text."""
    value = _cell(value)
    if isinstance(value, str | bool) or type(value).__name__ == "bool":
        return str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real | Decimal):
        return _float(value)
    return str(value)


def is_plain(value: object) -> bool:
    """Return whether a cell is a real number, a text or a truth value."""
    value = _cell(value)
    return isinstance(value, str | numbers.Real | Decimal) or type(value).__name__ == "bool"


def _cell(value: object) -> object:
    """Return what an array without dimensions, or a number of numpy's, holds, and all else as it is.

    Without numpy itself: commands that look at a campaign do not load it.
    """
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def _float(value: numbers.Real | Decimal) -> float:
    """Return a float, infinite where the number is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def _shown(value: Value) -> str:
    """Return a value for an error; Python refuses to write integers of thousands of digits."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"{'-' if value < 0 else ''}10**{int(math.log10(abs(value)))}"
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

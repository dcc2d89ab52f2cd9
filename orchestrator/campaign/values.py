"""Which values the parameters of a campaign have, and the evaluation point. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from orchestrator import expressions
from orchestrator.campaign.schema import Values
from orchestrator.types import Parameter, Point, Value, format_value
from orchestrator.units import SIZE, did_you_mean

MOST_VALUES = 10**6


def parameter(name: str, section: Values, settings: Mapping[str, Value]) -> Parameter:
    """Return a parameter with its values: numbers ascending, categories in the order given.

    Raises
    ------
    ValueError
        Saying which key is wrong, and the remedy.
    ExpressionError
        If the constraint is malformed.
    """
    listed = _range(section) if section.values is None else _list(section)
    categorical = section.type == "categorical" or any(isinstance(value, str) for value in listed)
    values = _categories(listed, section.type) if categorical else _numbers(listed, section)
    if section.constraint is not None:
        values = _satisfying(name, values, section.constraint, settings)
    return Parameter(name, values, categorical)


def _list(section: Values) -> tuple[Value, ...]:
    ranged = {"from": section.from_, "to": section.to, "step": section.step, "factor": section.factor}
    for key, value in ranged.items():
        if value is not None:
            raise ValueError(f"has both values and {key}; a range has no values, a list no {key}")
    if not section.values:
        raise ValueError("values is empty; list at least one value")
    return section.values


def _categories(listed: tuple[Value, ...], kind: str | None) -> tuple[Value, ...]:
    if kind not in (None, "categorical"):
        raise ValueError(f"type {kind} does not fit text values; drop it, or write the values without quotes")
    if len({isinstance(value, str) for value in listed}) > 1:
        raise ValueError("values mix text and numbers; quote all of them or none")
    _refuse_duplicates(listed)
    return listed


def _numbers(listed: tuple[Value, ...], section: Values) -> tuple[Value, ...]:
    numbers = [value for value in listed if not isinstance(value, str)]
    whole = all(number == int(number) for number in numbers)
    if section.type == "integer" and not whole:
        if section.factor is None:
            broken = next(number for number in numbers if number != int(number))
            raise ValueError(f"type is integer, but {broken} is not a whole number")
        numbers = list(dict.fromkeys(round(number) for number in numbers))
        whole = True
    _refuse_duplicates(numbers)
    if whole and section.type != "float":
        return tuple(sorted(int(number) for number in numbers))
    return tuple(sorted(float(number) for number in numbers))


def _refuse_duplicates(values: tuple[Value, ...] | list[int | float]) -> None:
    seen: set[Value] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"values has {format_value(value)} twice; remove one")
        seen.add(value)


def _range(section: Values) -> tuple[Value, ...]:
    low, high, step, factor = section.from_, section.to, section.step, section.factor
    if low is None or high is None:
        raise ValueError("needs either values: [...], or from: and to: with step: or factor:")
    if step is not None and factor is not None:
        raise ValueError(f"has both step {step} and factor {factor}; keep one")
    if high < low:
        raise ValueError(f"from {low} is greater than to {high}; swap them")
    if factor is None:
        return tuple(_steps(low, high, 1 if step is None else step))
    return tuple(_powers(low, high, factor))


def _steps(low: float, high: float, step: float) -> Iterator[int | float]:
    """Exact multiples of the step as it is written: 0.1 three times is 0.3, not 0.30000000000000004."""
    if step <= 0:
        raise ValueError(f"step {step} must be positive")
    first, width = Decimal(repr(low)), Decimal(repr(step))
    count = int((Decimal(repr(high)) - first) / width) + 1
    _refuse_more_than_most(count)
    if isinstance(low, int) and isinstance(step, int):
        yield from range(low, low + count * step, step)
        return
    for index in range(count):
        yield _plain(first + index * width)


def _powers(low: float, high: float, factor: float) -> Iterator[int | float]:
    """Rounded to 12 digits, so that a factor of 1.4142135623730951 meets the whole numbers."""
    if factor <= 1 or low <= 0:
        raise ValueError(f"factor {factor} must be greater than 1, and from {low} greater than 0")
    _refuse_more_than_most(math.log(high / low) / math.log(factor))
    number, index = low, 0
    while number <= high:
        yield number
        index += 1
        exact = Decimal(repr(low)) * Decimal(repr(factor)) ** index
        number = _plain(exact) if isinstance(low, int) and isinstance(factor, int) else float(f"{exact:.12g}")


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _refuse_more_than_most(count: float) -> None:
    if count > MOST_VALUES:
        raise ValueError(
            f"the range has {count:.3g} values, at most {MOST_VALUES} are possible; use a wider step"
        )


def _satisfying(
    name: str, values: tuple[Value, ...], constraint: str, settings: Mapping[str, Value]
) -> tuple[Value, ...]:
    known = {**settings, name: values[0]}
    texts = [key for key, value in known.items() if isinstance(value, str)]
    holds = expressions.parse(constraint, known, texts)
    if holds.kind != "truth":
        raise ValueError(f"constraint {constraint!r} is neither true nor false; write a comparison")
    kept = tuple(value for value in values if holds({**settings, name: value}))
    if not kept:
        bounds = f"{format_value(values[0])} .. {format_value(values[-1])}"
        raise ValueError(f"constraint {constraint!r} excludes all {len(values)} values {bounds}; relax it")
    return kept


def evaluation_point(given: Mapping[str, Value], parameters: Sequence[Parameter]) -> Point:
    """Return P₊ in the order of the parameters.

    Raises
    ------
    ValueError
        For a missing or unknown parameter, or a value of the wrong kind.
    """
    names = [item.name for item in parameters]
    for name in given:
        if name not in names:
            raise ValueError(f"unknown parameter {name!r}; {did_you_mean(name, names)}")
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(f"lacks a value for {', '.join(missing)}; it needs one for every parameter")
    return Point(tuple((item.name, _coordinate(item, given[item.name])) for item in parameters))


def _coordinate(item: Parameter, value: Value) -> Value:
    if item.categorical:
        if value not in item.values:
            known = ", ".join(format_value(known) for known in item.values)
            raise ValueError(
                f"{item.name}: {value!r} is none of the categories {known}; models exist only for those"
                + (f"; {remedy}" if (remedy := sizes_as_numbers(item)) else "")
            )
        return value
    if isinstance(value, str):
        raise ValueError(f"{item.name}: {value!r} is text; write a number without quotes")
    return (
        int(value) if value == int(value) and all(isinstance(known, int) for known in item.values) else value
    )


def sizes_as_numbers(item: Parameter) -> str:
    """Return how to write values such as ``100k``, which are text, as numbers; empty for other parameters."""
    sizes = [SIZE.fullmatch(value) if isinstance(value, str) else None for value in item.values]
    units = [size[1] for size in sizes if size is not None]
    if len(units) < len(sizes):
        return ""
    return (
        f"values such as {format_value(item.values[0])} are text: write numbers, and the unit where the "
        f"program gets them, as in {{{item.name}}}{units[0]}"
    )

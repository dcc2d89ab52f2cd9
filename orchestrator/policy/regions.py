"""Regions of a search space in which a program is expected to fail, as conditions on parameters. Pure.

`Region` is what `orchestrator.policy.region_search` finds and `orchestrator.policy.failing` acts on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.types import Point, Value, format_value
from orchestrator.units import count, listed

_MOST_NAMED = 3

Sign = Literal[">=", "<=", "="]
"""How the value of a parameter compares with a limit; categories only with ``=``."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A parameter has a limit: ``n >= 400``."""

    parameter: str
    sign: Sign
    limit: Value

    def __str__(self) -> str:
        return f"{self.parameter} {self.sign} {format_value(self.limit)}"

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether the values of a point satisfy the condition."""
        value, limit = values.get(self.parameter), self.limit
        if self.sign == "=" or value is None or isinstance(value, str) or isinstance(limit, str):
            return value == limit
        return value >= limit if self.sign == ">=" else value <= limit


@dataclass(frozen=True, slots=True)
class Indivisible:
    """A parameter is no multiple of another one, as a size that ranks cannot share: ``n % p != 0``."""

    number: str
    divisor: str

    def __str__(self) -> str:
        return f"{self.number} % {self.divisor} != 0"

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether the values of a point leave a remainder; numbers that are not whole leave none."""
        number, divisor = values.get(self.number), values.get(self.divisor)
        if not (isinstance(number, int) and isinstance(divisor, int) and divisor):
            return False
        return number % divisor != 0


Condition = Comparison | Indivisible
Corner = tuple[Condition, ...]
"""Conditions that all hold of one failed point, and beyond it: ``n >= 400`` and ``p <= 2``."""
Rule = tuple[Corner, ...]
"""Corners of which one must hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Points at which a program is expected to fail."""

    # rules, bounds: all must hold of a point. The rules separate failures from measured points; the bounds
    # say how far failures were seen in other parameters.
    rules: tuple[Rule, ...]
    bounds: tuple[Rule, ...]
    # failed, measured: how many points were given up, all of them inside, and how many were measured, all of
    # them outside.
    failed: int
    measured: int
    cause: str  # the most frequent reason of the failures

    def __contains__(self, point: object) -> bool:
        return isinstance(point, Point) and self.explains(point) and _all_hold(self.bounds, point)

    def __str__(self) -> str:
        tried = f"all {count(self.failed, 'point')} tried there were given up"
        return f"{self.where} ({tried}, none of {self.measured} measured ones is there; {self.cause})"

    def explains(self, point: Point) -> bool:
        """Whether a failure at a point is no surprise: by the rules, however far the failures reach."""
        return _all_hold(self.rules, point)

    @property
    def where(self) -> str:
        """The region in words: ``n >= 300 and p <= 2``."""
        rules = (*self.rules, *self.bounds)
        if len(rules) == 1:
            return _any_in_words(rules[0])
        alone = dict.fromkeys(condition for rule in rules if len(rule) == 1 for condition in rule[0])
        texts = [f"({_any_in_words(rule)})" for rule in rules if len(rule) > 1]
        return " and ".join([*texts, *([_all_in_words(alone)] if alone else [])])


def _all_hold(rules: Iterable[Rule], point: Point) -> bool:
    values = point.as_dict()
    for rule in rules:  # plain loops: a search space may have millions of points
        for corner in rule:
            for condition in corner:
                if not condition.holds(values):
                    break
            else:
                break  # one corner is enough
        else:
            return False
    return True


def _any_in_words(rule: Sequence[Corner]) -> str:
    texts = [_all_in_words(corner) for corner in rule]
    if len(texts) == 1:
        return texts[0]
    return listed([f"({text})" if " and " in text else text for text in texts], _MOST_NAMED, " or ")


def _all_in_words(conditions: Iterable[Condition]) -> str:
    return " and ".join(map(str, conditions))

"""What differs between two campaigns as they stand in the journal, as users write such values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestrator.units import CostUnit, campaign_unit, format_cost, format_duration, in_unit

_UNIT = "stop.unit"
_BUDGET = "stop.budget"
_DURATIONS = (
    "stop.wall_time",
    "measure.time_limit",
    "measure.expected_time",
    "executor.pack.longest",
    "executor.poll_interval",
    "executor.queue_delay",
    "executor.overhead",
    "notify.timeout",
)
_SHOWN = 80  # characters of a value
_BEFORE = 30  # of them, at most so many that two values have in common


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return ``key: before -> after`` for every value that differs; keys are dotted.

    The unit in which costs are shown is no rule. Budgets are shown in that of the new campaign.
    """
    return [
        f"{key}: {_change(key, before, after, campaign_unit(new))}"
        for key, before, after in _differing(old, new, "")
        if key != _UNIT
    ]


def _differing(old: Any, new: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the dotted keys of values that differ, with both values."""
    if _alike(old, new):  # the texts of whole lists would be cut before they differ
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from _differing(*pair, f"{prefix}.{number}") if pair[0] != pair[1] else ()
        return
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        yield prefix, old, new
        return
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            yield from _differing(old.get(key), new.get(key), f"{prefix}.{key}" if prefix else key)


def _alike(old: Any, new: Any) -> bool:
    """Return whether both are lists of as many sections."""
    lists = all(isinstance(item, list | tuple) for item in (old, new))
    return lists and len(old) == len(new) and all(isinstance(item, Mapping) for item in (*old, *new))


def _change(key: str, before: Any, after: Any, unit: CostUnit) -> str:
    """Return both values of a key; a unit that they have in common is named once."""
    if key == _BUDGET and isinstance(before, str) and isinstance(after, str):
        first, last = (float(text.split()[0]) for text in (before, after))
        digits = 4 if in_unit(first, unit) != in_unit(last, unit) else 12
        return f"{in_unit(first, unit, digits)} -> {format_cost(last, unit, digits)}"
    show: Callable[[Any], str] = _duration if key in _DURATIONS else _plain
    return " -> ".join(_shortened(show(before), show(after)))


def _shortened(before: str, after: str) -> tuple[str, str]:
    """Return both texts, long ones from shortly before they differ: paths often differ at their end."""
    pairs = enumerate(zip(before, after, strict=False))
    alike = next((k for k, (one, other) in pairs if one != other), min(len(before), len(after)))
    start = max(0, alike - _BEFORE) if max(len(before), len(after)) > _SHOWN else 0
    end = start + _SHOWN
    cut = ["..." * (start > 0) + text[start:end] + "..." * (len(text) > end) for text in (before, after)]
    return cut[0], cut[1]


def _duration(value: Any) -> str:
    """Return a duration, which may be an expression of the parameters."""
    try:
        return format_duration(float(value))
    except (TypeError, ValueError):
        return _plain(value)


def _plain(value: Any) -> str:
    """Return a value as it stands in a campaign file."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_plain(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return str(value)

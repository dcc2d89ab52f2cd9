"""What users write and read: durations, core-hours and figures as text; what a misspelt word meant."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from difflib import SequenceMatcher
from numbers import Real
from typing import Any, Literal, cast

_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    "ms": 0.001,
}
_KNOWN = {"": ("ms", "s", "min", "h", "d"), "core-": ("seconds", "minutes", "hours", "days")}
_SIMILAR = 0.6  # difflib's own threshold for a close match
_TIMES = 10.0  # from this ratio on it is clearer than percent
_MOST_TIMES = 1000.0
_ROUNDING = 1e-6  # core-seconds: what sums of costs leave beside zero
CostUnit = Literal["core-seconds", "core-minutes", "core-hours", "core-days"]
_PER_UNIT: dict[CostUnit, float] = {
    "core-seconds": 1.0,
    "core-minutes": 60.0,
    "core-hours": 3600.0,
    "core-days": 86400.0,
}
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]+)\s*")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):([0-5]?\d):([0-5]?\d(?:\.\d+)?)")
_LONG, _MINUTES, _REST = (
    r"(?:\d+ *d(?:ays?)? *)?(?:\d+ *h(?:(?:ou)?rs?)? *)?",
    r"\d+ *m(?:in(?:ute)?s?)? *",
    r"\d+(?:\.\d*)?",
)
PRINTED_MINUTES = f"{_LONG}{_MINUTES}{_REST}"
"""Matches a duration of several parts as programs print it, up to its seconds without their unit."""
PRINTED_SECONDS = " *s(?:ec(?:ond)?s?)?"
"""Matches that unit."""
PRINTED_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "usec", "microsecs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecs", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("minute", "minutes"), 60.0),
}
"""Seconds of the units that programs print behind a number."""
_PRINTED = re.compile(f"{_LONG}(?:{_MINUTES}(?:{_REST}(?:{PRINTED_SECONDS})?)?)?")
_PRINTED_CLOCK = re.compile(r"(?:(\d+)-)?(?:(\d+):(?=\d+:)|(?=\d+:\d+\.))([0-5]?\d):([0-5]\d(?:\.\d+)?)")
SIZE = re.compile(r"\d+(?:\.\d+)?\s*((?:[kKMGT]i?[bB]?)|[bB])")
"""Matches a size with a unit, such as ``100k`` or ``4 GiB``, which is text; its group is the unit."""
_COST = re.compile(rf"({_NUMBER})\s*core[-\s]?([A-Za-z]+)")
_OTHER_COST = re.compile(rf"{_NUMBER}\s*(node|gpu)[-\s]?[A-Za-z]+", re.IGNORECASE)
_IN_CORE_HOURS = {
    "node": "write core-hours, the node-hours times the cores of a node, with executor.billing: nodes",
    "gpu": "write core-hours, the GPU-hours divided by the GPUs of a node and times its cores, with "
    "executor.billing: nodes",
}


def parse_duration(value: float | str) -> float:
    """Return seconds from ``90``, ``"90 s"``, ``"1 h 30 min"``, ``"1:30:00"`` or ``"2-12:00:00"``.

    Raises
    ------
    ValueError
        With the remedy, for anything else; ``"12:30"`` is refused because it could be minutes or hours.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _finite(float(value), value)
    text = value.strip() if isinstance(value, str) else ""
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = clock.groups(default="0")
        return int(days) * 86400.0 + int(hours) * 3600.0 + int(minutes) * 60.0 + float(seconds)
    if re.fullmatch(r"\d+:\d+", text):
        raise ValueError(f"{value!r} may mean minutes or hours; write {text}:00, or like '12 min 30 s'")
    if re.fullmatch(_NUMBER, text):
        raise ValueError(f"{value!r} has no unit; write {text} s, {text} min or {text} h")
    quantities = _QUANTITY.findall(text)
    if not quantities or _QUANTITY.sub("", text):
        raise ValueError(f"{value!r} is not a duration; write for example 90 s, 10 min, 12 h or 1:30:00")
    return _finite(sum(float(number) * _seconds(unit, value, "") for number, unit in quantities), value)


def printed_duration(text: str) -> float | None:
    """Return seconds from a duration of several parts as programs print it; None for any other text.

    ``1m23.45s``, ``1h 2m``, ``1 min 23 sec``, ``0:01:23`` and ``1:23.4``. The ``s`` may be missing, as
    patterns often name it. ``12:30`` may mean minutes or hours.
    """
    if clock := _PRINTED_CLOCK.fullmatch(text):
        lengths = (86400.0, 3600.0, 60.0, 1.0)
        return sum(float(part or 0) * length for part, length in zip(clock.groups(), lengths, strict=True))
    parts = re.findall(r"([\d.]+) *([dhm]?)", text) if _PRINTED.fullmatch(text) else []
    return sum(float(part) * _SECONDS[unit or "s"] for part, unit in parts) if len(parts) > 1 else None


def is_quantity(text: str) -> bool:
    """Return whether a text is made of numbers with a word behind each, whether or not it names units."""
    return _QUANTITY.match(text) is not None and not _QUANTITY.sub("", text)


def parse_cost(value: float | str) -> float:
    """Return core-seconds from ``50`` (core-hours), ``"50 core-hours"`` or ``"30 core-minutes"``.

    The units are those of durations, behind ``core-``: seconds, minutes, hours, days, or ``s, min, h, d``.

    Raises
    ------
    ValueError
        With the remedy, for anything else.
    """
    if isinstance(value, Real) and not isinstance(value, bool):  # numpy's, too
        return _finite(float(value) * 3600.0, value)
    match = _COST.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        other = _OTHER_COST.fullmatch(value.strip()) if isinstance(value, str) else None
        how = (
            _IN_CORE_HOURS[other[1].lower()]
            if other
            else "write for example 50 core-hours or 30 core-minutes"
        )
        raise ValueError(f"{value!r} is not a budget; {how}")
    return _finite(float(match[1]) * _seconds(match[2], value, "core-"), value)


def format_duration(seconds: float) -> str:
    """Return text for a human, exact to the millisecond: ``1 h 30 min``, ``0.25 s``."""
    sign = "-" if seconds < 0 else ""
    total = round(abs(seconds) * 1000)
    hours, rest = divmod(total, 3_600_000)
    minutes, milliseconds = divmod(rest, 60_000)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    if milliseconds or not parts:
        parts.append(f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".") + " s")
    return sign + " ".join(parts)


def cost_unit(value: object) -> CostUnit:
    """Return the unit in which a cost is written, core-hours for a plain number and for what is no cost."""
    match = _COST.fullmatch(value.strip()) if isinstance(value, str) else None
    seconds = _SECONDS.get(match[2].lower()) if match else None
    return next((unit for unit, length in _PER_UNIT.items() if length == seconds), "core-hours")


def per_unit(unit: CostUnit) -> float:
    """Return the core-seconds of a unit."""
    return _PER_UNIT[unit]


def in_unit(core_seconds: float, unit: CostUnit = "core-hours", digits: int = 4) -> str:
    """Return the number of units that core-seconds are, for a human, to ``digits`` significant digits."""
    number = core_seconds / _PER_UNIT[unit] if abs(core_seconds) > _ROUNDING else 0.0
    return f"{number:.0f}" if abs(number) >= 10 ** (digits - 1) else f"{number:.{digits}g}"


def hours_in(core_hours: float, unit: CostUnit) -> str:
    """Return the number of units that core-hours, as documents have them, are for a human: see `in_unit`."""
    return in_unit(3600.0 * core_hours, unit)


def format_cost(core_seconds: float, unit: CostUnit = "core-hours", digits: int = 4) -> str:
    """Return a cost for a human in the unit of the budget: ``12.35 core-hours``, ``60 core-seconds``."""
    return f"{in_unit(core_seconds, unit, digits)} {unit}"


def cost_at_least(core_seconds: float, unit: CostUnit = "core-hours") -> str:
    """Return a cost, rounded up to thousandths of the unit, as a budget that is enough for it."""
    return f"{math.ceil(1000 * core_seconds / _PER_UNIT[unit]) / 1000:g} {unit}"


def campaign_budget(campaign: Mapping[str, Any]) -> float:
    """Return what a campaign as journaled may spend, in core-seconds."""
    return float(campaign["stop"]["budget"].split()[0])


def campaign_unit(campaign: Mapping[str, Any]) -> CostUnit:
    """Return the unit of costs in a campaign as journaled; earlier versions showed core-hours."""
    return cast(CostUnit, (campaign.get("stop") or {}).get("unit", "core-hours"))


def _seconds(unit: str, value: object, prefix: Literal["", "core-"]) -> float:
    """Return the seconds of a unit, which stands behind ``prefix`` in ``value``."""
    try:
        return _SECONDS[unit if unit in _SECONDS else unit.lower()]
    except KeyError:
        known = ", ".join(f"{prefix}{name}" for name in _KNOWN[prefix])
        example = "50 core-hours" if prefix else "10 min"
        raise ValueError(
            f"unknown unit {prefix + unit!r} in {value!r}; known: {known}; write for example {example}"
        ) from None


def _finite(number: float, value: object) -> float:
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most similar to ``word``, or None if none is similar. Case is ignored.

    Of equally similar ones, that with the same letters comes before the first.
    """

    def similarity(candidate: str) -> tuple[float, bool]:
        a, b = word.lower(), candidate.lower()
        return SequenceMatcher(None, a, b).ratio(), sorted(a) == sorted(b)

    best = max(candidates, key=similarity, default=None)
    return best if best is not None and similarity(best)[0] >= _SIMILAR else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return ``did you mean 'x'?``, or else the list of what is known."""
    known = list(candidates)
    meant = closest(word, known)
    if meant is not None:
        return f"did you mean {meant!r}?"
    return f"known: {', '.join(known)}" if known else "none is known here"


def count(number: int, word: str) -> str:
    """Return ``1 run``, ``2 runs``."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int, separator: str = ", ", rest: str = "") -> str:
    """Return the first names, and how many more there are: ``a, b and 3 more``, or ``and 3 others``."""
    left = len(names) - most
    more = "" if left <= 0 else f" and {count(left, rest) if rest else f'{left} more'}"
    return f"{separator.join(names[:most])}{more}"


def without_controls(text: str) -> str:
    """Return a text without control characters, which a terminal would obey: programs may print any."""
    return "".join(c if c.isprintable() else "?" for c in text)


def plain(value: float, digits: int = 3) -> str:
    """Return a figure with so many significant digits, never with an exponent: ``160``, ``0.0027``."""
    return format(Decimal(f"{value:.{digits}g}"), "f")


def uncertainty(share: float) -> str:
    """Return a relative width of intervals at P₊ as text: ``187 %``, ``12 times the value``."""
    if share > _MOST_TIMES:
        return f"more than {_MOST_TIMES:.0f} times the value"
    return f"{plain(share)} times the value" if share > _TIMES else f"{plain(100 * share)} %"


def place(targets: int) -> str:
    """Return where an uncertainty is known: at P₊, or over so many random points."""
    return "over the search space" if targets else "at the evaluation point"

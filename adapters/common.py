"""What several adapters share: reading settings, dividing ranks into a grid, reading outputs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache

from orchestrator.types import Sample, Value, format_value, gap_in

Settings = Mapping[str, Value]

MOST_RANKS = 2**31 - 1
"""An MPI rank is a C ``int``."""

RANKS = "MPI ranks"
THREADS = "OpenMP threads per rank (default 1)"


def integer(settings: Settings, name: str, default: int | None = None) -> int:
    """Return a setting as an integer.

    Raises
    ------
    ValueError
        If it is missing without a default, or no whole number.
    """
    if name not in settings:
        if default is None:
            raise ValueError(f"{name} is not set: vary it under parameters or fix it under settings")
        return default
    value = settings[name]
    try:
        number = int(value)
    except (ValueError, OverflowError):
        number = None
    if number is None or (isinstance(value, float) and number != value):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    return number


def positive(settings: Settings, name: str, default: int | None = None) -> int:
    """Return a setting as an integer of at least 1, or raise ``ValueError``."""
    number = integer(settings, name, default)
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")
    return number


def ranks(settings: Settings) -> int:
    """Return the MPI ranks, by convention the parameter ``p``, or raise ``ValueError``."""
    count = positive(settings, "p")
    if count > MOST_RANKS:
        raise ValueError(f"p = {count} ranks are more than MPI can number: at most {MOST_RANKS}")
    return count


def threads(settings: Settings) -> int:
    """OpenMP threads per rank, by convention the parameter ``t``."""
    return positive(settings, "t", 1)


def triple(settings: Settings, name: str) -> tuple[int, int, int] | None:
    """Return a setting such as ``4,2,1`` or ``4x2x1`` as three integers of at least 1; None when unset."""
    if name not in settings:
        return None
    text = str(settings[name])
    parts = re.split(r"[,x]", text.replace(" ", ""))
    if len(parts) != 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"{name} must be three whole numbers of at least 1 such as '4,2,1', not {text!r}")
    first, second, third = (int(part) for part in parts)
    return first, second, third


def axes(prefix: str, numbers: tuple[int, int, int]) -> dict[str, int]:
    """Return three numbers by axis: ``nx``, ``ny``, ``nz`` for the prefix ``n``."""
    return {f"{prefix}{axis}": number for axis, number in zip("xyz", numbers, strict=True)}


def block(settings: Settings) -> tuple[int, int, int]:
    """Return the grid points of one rank: ``s`` in each dimension, ``nx``, ``ny``, ``nz``, or ``block``.

    Raises
    ------
    ValueError
        Unless exactly one of the three is given.
    """
    numbers = [name for name in ("nx", "ny", "nz") if name in settings]
    given = [name for name in ("s", "block") if name in settings] + numbers[:1]
    if len(given) != 1 or len(numbers) in (1, 2):
        raise ValueError("set exactly one of s, block, and nx with ny and nz: the grid points of one rank")
    if numbers:
        x, y, z = (positive(settings, name) for name in numbers)
        return x, y, z
    edge = positive(settings, "s", 1)
    return triple(settings, "block") or (edge, edge, edge)


def at_least_zero(settings: Settings, name: str, default: float) -> float:
    """Return a setting as a number of at least 0, or raise ``ValueError``."""
    value = settings.get(name, default)
    if isinstance(value, str) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a number from 0, not {value!r}")
    return value


def joined(numbers: tuple[int, int, int]) -> str:
    """Return ``4,2,1``."""
    return ",".join(str(number) for number in numbers)


@cache  # asked for at every point of a space
def most_cubic(count: int) -> tuple[int, int, int]:
    """Return the factorisation of ``count`` into three factors with the smallest surface, largest first.

    A cube has the least communication per volume: 8 -> (2, 2, 2), 12 -> (3, 2, 2), 7 -> (7, 1, 1).
    """
    divisors = _divisors(count)
    candidates = [
        (count // (a * b), b, a)
        for a in divisors
        if a**3 <= count
        for b in divisors
        if a <= b and b * b <= count // a and count // a % b == 0
    ]
    return min(candidates, key=lambda f: f[0] * f[1] + f[1] * f[2] + f[0] * f[2])


def most_square(count: int) -> tuple[int, int]:
    """Return the factorisation of ``count`` into two factors that are closest, smallest first."""
    small = max(divisor for divisor in _divisors(count) if divisor * divisor <= count)
    return small, count // small


def _divisors(count: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(count) + 1) if count % d == 0]
    return sorted({*small, *(count // d for d in small)})


def rank_grid(settings: Settings, name: str) -> tuple[int, int, int]:
    """Return the grid of ranks: the setting ``name``, else the most cubic factorisation of ``p``.

    Raises
    ------
    ValueError
        If the product of the grid is not ``p``.
    """
    count = ranks(settings)
    grid = triple(settings, name)
    if grid is None:
        return most_cubic(count)
    if grid[0] * grid[1] * grid[2] != count:
        raise ValueError(f"{name} {joined(grid)} has {grid[0] * grid[1] * grid[2]} ranks, but p is {count}")
    return grid


def cells(settings: Settings, grid: tuple[int, int, int], name: str) -> tuple[int, int, int]:
    """Return the cells of the whole domain per dimension, from exactly one of three settings.

    ``name`` (such as ``zones``) gives them per dimension, ``n`` one number for all three (fixed total,
    strong scaling), ``s`` those along each edge of one rank's block (weak scaling).
    """
    given = [key for key in (name, "n", "s") if key in settings]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} all give the problem size: set one of them")
    if not given:
        raise ValueError(f"the problem size is not set: s (per rank), n or {name} (of the whole domain)")
    whole = triple(settings, name)
    if whole is not None:
        return whole
    edge = positive(settings, given[0])
    return (grid[0] * edge, grid[1] * edge, grid[2] * edge) if given == ["s"] else (edge, edge, edge)


def one_of(settings: Settings, name: str, choices: tuple[str, ...], default: str) -> str:
    """Return a setting that must be one of ``choices``, or raise ``ValueError``."""
    value = format_value(settings.get(name, default))
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def refusal(plan: Callable[[Settings], object]) -> Callable[[Settings], str | None]:
    """Turn a function that raises ``ValueError`` at impossible points into a check that returns why."""

    def check(settings: Settings) -> str | None:
        try:
            plan(settings)
        except ValueError as error:
            return str(error)
        return None

    return check


def output_text(texts: Mapping[str, str], complaints: str) -> str:
    """Return what the application printed.

    Parameters
    ----------
    texts
        Contents by file name, with ``stdout`` and ``stderr``.
    complaints
        Regular expression of the lines in which the application itself reports a failure.

    Raises
    ------
    ValueError
        If it printed nothing, or complained.
    """
    for name in ("stdout", "stderr"):
        complaint = re.search(f"^.*(?:{complaints}).*$", texts.get(name, ""), re.MULTILINE)
        if complaint:
            raise ValueError(f"the application reports on {name}: {complaint[0].strip()}")
    if not texts.get("stdout", "").strip():
        raise ValueError("stdout is empty")
    return texts["stdout"]


def all_of(text: str, what: str) -> None:
    """Raise ``ValueError`` if not all of a long output was read, of which every ``what`` counts."""
    if gap := gap_in(text):
        raise ValueError(
            f"{gap[0].strip()}: of so much output only the beginning and the end are read, and not every "
            f"{what}; let the application print less"
        )


def only(pattern: str, text: str, what: str) -> re.Match[str]:
    """Return the one match of ``pattern`` in ``text``.

    Raises
    ------
    ValueError
        If there is none, or more than one: then as many independent copies ran, each with one rank, because
        the launcher belongs to another MPI than the executable.
    """
    matches = list(re.finditer(pattern, text, re.MULTILINE))
    if not matches:
        last = text.rstrip().rpartition("\n")[2].strip()
        raise ValueError(f"the output has no {what}; it ends with {last[:120]!r}")
    if len(matches) > 1:
        raise ValueError(
            f"the output has {len(matches)} times {what}: independent copies ran instead of one parallel "
            "program, so the launcher belongs to another MPI than the executable (set executor.launcher)"
        )
    return matches[0]


def seconds(callpath: str, value: str | float, aggregate: str = "value") -> Sample:
    """Return a time as a sample; raise ``ValueError`` unless it is finite and not negative."""
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"the time of {callpath} is {value}")
    return Sample(callpath, "time", number, aggregate)

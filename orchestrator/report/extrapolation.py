"""How far beyond the measured values the evaluation point lies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.types import Measurements, Point, Value
from orchestrator.units import count, plain

FAR = 2.0  # times the measured range: from there on it is said
_WRITTEN_OUT = 1e6  # from there on, factors have an exponent: nobody counts 300 digits
# A power from which on a parameter may well act exponentially: formulas try no larger one. Chosen by hand.
STEEP = 5.0
# Values of a parameter that show a form of growth, at least: with fewer, models have a note, too.
_SHOWN_BY = 4
_OFTEN = 1 / 3  # share of the models with a parameter that are so steep. Chosen by hand


def announcements(
    point: Point, values: Mapping[str, Iterable[Value]], what: str = "", where: str = "the evaluation point"
) -> list[str]:
    """Return a sentence for every parameter in which a point lies far beyond some values.

    Parameters
    ----------
    point
        P₊.
    values
        By parameter: those of the search space, or those that were measured. Parameters without a range, such
        as categories, never count.
    what
        An adjective for these values, such as ``measured``.
    where
        What the point is called.
    """
    sentences = []
    for name, value in point.items:
        numbers = [item for item in values.get(name, ()) if not isinstance(item, str)]
        if isinstance(value, str) or not numbers:
            continue
        for end, factor in (
            (max(numbers), value / max(numbers) if max(numbers) > 0 else 0.0),
            (min(numbers), min(numbers) / value if value > 0 else 0.0),
        ):
            if factor > FAR:
                above = value > end
                kind = " ".join(filter(None, ("largest" if above else "smallest", what, "value")))
                times = plain(factor) if factor < _WRITTEN_OUT else f"{factor:.3g}"
                share = f"{times} times" if above else f"1/{times} of"
                sentences.append(
                    f"{where} has {name}={value:g}, {share} the {kind} {end:g}: no run "
                    "shows whether the models hold so far beyond"
                )
    return sentences


def of_measured(point: Point | None, known: Measurements, where: str = "the evaluation point") -> list[str]:
    """Return the same for what was measured; nothing before anything is, or without an evaluation point."""
    if point is None or not known.points:
        return []
    values = {name: {item[name] for item in known.points} for name in known.parameters}
    return announcements(point, values, "measured", where)


def counts(known: Measurements) -> dict[str, int]:
    """Return by parameter how many values of it were measured."""
    return {name: len(known.values_of(name)) for name in known.parameters}


def steep(rows: Sequence[Mapping[str, Any]], measured: Mapping[str, int]) -> list[str]:
    """Return a sentence for every parameter of which the terms of described models have a large power.

    Powers fit an exponential where it was measured, and are far too low beyond. One model of many may be
    steep because of its noise.

    Parameters
    ----------
    rows
        The described models.
    measured
        By parameter: how many values of it were measured (see `counts`). Through few values there is a steep
        power for many a growth: communication that one rank has none of, and two ranks have.
    """
    largest: dict[str, list[float]] = {}
    for row in rows:
        own: dict[str, float] = {}
        for factor in (factor for term in row.get("terms", ()) for factor in term["factors"]):
            name, exponent = factor["parameter"], factor["exponent"]
            own[name] = max(exponent, own.get(name, exponent))
        for name, exponent in own.items():
            largest.setdefault(name, []).append(exponent)
    growths = {
        name: f"models grow as {name}**{plain(max(found))}"
        for name, found in largest.items()
        if sum(item >= STEEP for item in found) >= _OFTEN * len(found)
    }
    return [
        f"{growth}, which {count(measured[name], 'value')} of {name} can hardly show: measure further ones"
        if measured[name] < _SHOWN_BY
        else f"{growth}: if {name} acts exponentially, as 2**{name}, they are too low "
        f"beyond what was measured; let n = 2**{name} be the parameter, and give the program log2(n)"
        for name, growth in growths.items()
    ]
